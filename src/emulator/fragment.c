/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */
#include "emulator/fragment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS_A_PAGE = 4096 / 4 };

static struct arena {
    uint8_t *kernel_view, *own_view;
    size_t bytes, page_bytes;
    uint32_t threads;
    uint32_t pages_used; /* a thread */
    fragment fragments[FRAGMENTS_MAX];
    uint32_t count;
    warp_fragment (*of_warp)[FRAGMENTS_MAX]; /* [warps of the machine] */
} arena;

static void unmap(void)
{
    if (arena.kernel_view != NULL) {
        munmap(arena.kernel_view, arena.bytes);
    }
    if (arena.own_view != NULL) {
        munmap(arena.own_view, arena.bytes);
    }
    free(arena.of_warp);
    memset(&arena, 0, sizeof arena);
}

static bool map(uint32_t threads)
{
    const int file = memfd_create("halfbyte-fragments", MFD_CLOEXEC);
    arena.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    arena.bytes = (size_t)threads * FRAGMENTS_MAX * arena.page_bytes;
    arena.threads = threads;
    arena.of_warp = calloc(threads / LANES, sizeof *arena.of_warp);
    if (file < 0) {
        return false;
    }
    if (ftruncate(file, (off_t)arena.bytes) == 0) {
        void *kernel_view = mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        void *own_view = mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        arena.kernel_view = kernel_view == MAP_FAILED ? NULL : kernel_view;
        arena.own_view = own_view == MAP_FAILED ? NULL : own_view;
    }
    close(file);
    return arena.kernel_view != NULL && arena.own_view != NULL && arena.of_warp != NULL;
}

bool fragments_begin(uint32_t threads)
{
    if (arena.threads != threads) {
        unmap();
        if (!map(threads)) {
            unmap();
            return false;
        }
    }
    fragments_forget();
    return true;
}

void fragments_forget(void)
{
    for (uint32_t w = 0; w < arena.threads / LANES; w++) {
        for (uint32_t i = 0; i < arena.count; i++) {
            warp_fragment *own = &arena.of_warp[w][i];
            if (own->guard != GUARD_OPEN) {
                fragment_guard(&arena.fragments[i], &the_machine.warps[w], GUARD_OPEN);
            }
            free(own->fenced);
            memset(own, 0, sizeof *own);
        }
    }
    arena.count = 0;
    arena.pages_used = 0;
}

static size_t offset_of(const fragment *f, uint32_t of)
{
    return ((size_t)f->first_page * arena.threads + (size_t)of * f->pages) * arena.page_bytes;
}

uint32_t *fragment_words(const fragment *f, uint32_t of)
{
    return (uint32_t *)(void *)(arena.own_view + offset_of(f, of));
}

size_t fragment_lane_stride(const fragment *f)
{
    return f->pages * arena.page_bytes / sizeof(uint32_t);
}

uint32_t fragment_count(void)
{
    return arena.count;
}

fragment *fragment_at(uint32_t index)
{
    return &arena.fragments[index];
}

warp_fragment *fragment_of_warp(const fragment *f, const warp *w)
{
    return &arena.of_warp[w->index][f->index];
}

bool fragment_locate(const void *address, fragment_place *place)
{
    const uintptr_t start = (uintptr_t)arena.kernel_view;
    const uintptr_t at = (uintptr_t)address;
    if (at < start || at - start >= arena.bytes) {
        return false;
    }
    const size_t page = (at - start) / arena.page_bytes;
    for (uint32_t i = 0; i < arena.count; i++) {
        fragment *f = &arena.fragments[i];
        const size_t first = (size_t)f->first_page * arena.threads;
        if (page >= first && page < first + (size_t)f->pages * arena.threads) {
            place->fragment = f;
            place->thread = (uint32_t)((page - first) / f->pages);
            place->element = (uint32_t)((at - start - offset_of(f, place->thread)) / 4);
            return true;
        }
    }
    return false;
}

void fragment_guard(const fragment *f, warp *w, page_guard guard)
{
    static const int protections[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
    warp_fragment *own = fragment_of_warp(f, w);
    if (own->guard != guard && !the_machine.config.no_guards) {
        mprotect(arena.kernel_view + offset_of(f, w->threads[0].index),
                 (size_t)LANES * f->pages * arena.page_bytes, protections[guard]);
    }
    own->guard = guard;
}

void fragment_open_thread(const fragment *f, uint32_t of)
{
    mprotect(arena.kernel_view + offset_of(f, of), f->pages * arena.page_bytes,
             PROT_READ | PROT_WRITE);
}

void fragments_fence(warp *w)
{
    for (uint32_t i = 0; i < arena.count; i++) {
        const fragment *f = &arena.fragments[i];
        warp_fragment *own = fragment_of_warp(f, w);
        if (!own->created) {
            continue;
        }
        own->needs_fence = false;
        if (own->fenced == NULL) {
            own->fenced = malloc((size_t)LANES * f->count * sizeof *own->fenced);
        }
        if (own->fenced == NULL) {
            abort_run("out of memory");
            return;
        }
        const uint32_t *words = fragment_words(f, w->threads[0].index);
        for (size_t lane = 0; lane < LANES; lane++) {
            memcpy(own->fenced + lane * f->count, words + lane * fragment_lane_stride(f),
                   f->count * sizeof *words);
        }
    }
}

bool fragment_changed_since_fence(const fragment *f, const warp *w, uint32_t element,
                                  uint32_t count)
{
    const warp_fragment *own = fragment_of_warp(f, w);
    const uint32_t *words = fragment_words(f, w->threads[0].index) + element;
    if (own->fenced == NULL) {
        return false;
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        if (memcmp(own->fenced + lane * f->count + element, words + lane * fragment_lane_stride(f),
                   count * sizeof *words) != 0) {
            return true;
        }
    }
    return false;
}

static fragment *find_or_make(uint32_t count, const char *name, emu_site *site)
{
    for (uint32_t i = 0; i < arena.count; i++) {
        fragment *f = &arena.fragments[i];
        if (f->site->id == site->id && f->count == count && strcmp(f->name, name) == 0) {
            return f;
        }
    }
    const uint32_t pages = (uint32_t)((count * 4 + arena.page_bytes - 1) / arena.page_bytes);
    if (arena.count == FRAGMENTS_MAX || arena.pages_used + pages > FRAGMENTS_MAX) {
        abort_run("too many fragments");
        return &arena.fragments[0];
    }
    fragment *f = &arena.fragments[arena.count];
    *f = (fragment){site, name, arena.count, count, pages, arena.pages_used};
    arena.count++;
    arena.pages_used += pages;
    return f;
}

static void *fragment_declare(uint32_t count, const char *name, emu_site *site)
{
    thread *self = thread_enter(site);
    fragment *f = find_or_make(count, name, site);
    warp_fragment *own = fragment_of_warp(f, self->warp);
    if (!own->created) {
        own->created = true;
        own->needs_fence = true;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            memset(fragment_words(f, self->warp->threads[lane].index), the_machine.config.poison,
                   count * sizeof(uint32_t));
        }
    }
    return arena.kernel_view + offset_of(f, self->index);
}

float *emu_fragment_f32(uint32_t count, const char *name, emu_site *site)
{
    return fragment_declare(count, name, site);
}

uint32_t *emu_fragment_u32(uint32_t count, const char *name, emu_site *site)
{
    return fragment_declare(count, name, site);
}
