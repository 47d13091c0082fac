/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragments: the registers that wgmma reads and writes.
 *
 * One object a FRAGMENT site, one copy a thread.  A copy takes whole pages; those of a warp's lanes
 * lie side by side.  The pages are mapped twice: kernels see one view, which is closed (no access,
 * or read only) while an operation is in flight; the emulator works on the other, which is always
 * open.
 */
#ifndef HALFBYTE_EMULATOR_FRAGMENT_H
#define HALFBYTE_EMULATOR_FRAGMENT_H

#include "emulator/machine.h"

enum {
    FRAGMENTS_MAX = 64,
    FRAGMENT_POISON = 0x7fc0dead, /* a NaN in what is in flight */
};

typedef struct fragment {
    const emu_site *site;
    const char *name;
    uint32_t index; /* among the fragments */
    uint32_t count; /* elements a thread */
    uint32_t pages; /* a thread */
    uint32_t first_page;
} fragment;

typedef enum page_guard { GUARD_OPEN, GUARD_READ_ONLY, GUARD_CLOSED } page_guard;

/* What a warp has of a fragment. */
typedef struct warp_fragment {
    bool created;
    bool needs_fence; /* ordinary accesses may have happened since the last wgmma_fence */
    page_guard guard;
    uint32_t *fenced; /* contents at the last wgmma_fence, lane by lane; NULL before */
} warp_fragment;

/* Where an address lies. */
typedef struct fragment_place {
    fragment *fragment;
    uint32_t thread; /* in the machine */
    uint32_t element;
} fragment_place;

/* Arena for `threads` threads, kept from run to run if it fits.  False if memory is out. */
bool fragments_begin(uint32_t threads);
void fragments_forget(void); /* all fragments, for the next cluster */

/* An address in the kernel's view; false if it is in no fragment. */
bool fragment_locate(const void *address, fragment_place *place);

/* The emulator's view of a thread's copy. */
uint32_t *fragment_words(const fragment *f, uint32_t of);

/* Words from one lane's copy to the next lane's, in both views. */
size_t fragment_lane_stride(const fragment *f);

/* Closes or opens the pages of a warp, or of one thread. */
void fragment_guard(const fragment *f, warp *w, page_guard guard);
void fragment_open_thread(const fragment *f, uint32_t of);

uint32_t fragment_count(void);
fragment *fragment_at(uint32_t index);
warp_fragment *fragment_of_warp(const fragment *f, const warp *w);

/* wgmma_fence by a warp: no fragment of its needs one now; contents are kept for comparison. */
void fragments_fence(warp *w);

/* Whether elements [element, element + count) of a lane differ from what they were at the fence. */
bool fragment_changed_since_fence(const fragment *f, const warp *w, uint32_t element,
                                  uint32_t count);

/* fault.c: the handler of faults in the kernel's view, for the calling OS thread. */
bool faults_begin(void);
void faults_end(void);

#endif
