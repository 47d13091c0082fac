/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pack_launch.h"

#include <inttypes.h>
#include <string.h>

#include "api/error.h"

#define MOST_BLOCKS INT64_C(0x7fffffff)
#define OFFSET_FLIP 0x88888888u

enum {
    UNIT_BYTES = 8,
    SLOTS_WANTED = 7, /* of a block: few enough that several blocks share an SM */
};

static int64_t divide_up(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

/* Do all rows begin where their units can be accessed at once? */
static bool rows_are_aligned(const pack_tensors *t)
{
    return (uintptr_t)t->plain % UNIT_BYTES == 0 && t->row_bytes % UNIT_BYTES == 0 &&
           t->group_bytes % UNIT_BYTES == 0;
}

static void params_fill(const pack_tensors *t, pack_params *p)
{
    const struct int4_packed_shape *shape = &t->shape;
    p->plain = t->plain;
    p->packed = t->packed;
    p->row_bytes = t->row_bytes;
    p->group_bytes = t->group_bytes;
    p->n = (uint32_t)shape->n;
    p->k = (uint32_t)shape->k;
    p->k_offset = (uint32_t)shape->group_k_offset;
    p->used_bytes = (uint32_t)int4_row_bytes(t->form, shape->k);
    p->flip = t->form == INT4_OFFSET32 ? OFFSET_FLIP : 0;
    p->panels = (uint32_t)int4_packed_panels(shape);
    p->atoms = (uint32_t)int4_packed_atoms(shape);
    p->is_aligned = rows_are_aligned(t);
    p->holds_minus8 = (shape->flags & INT4_PACKED_HOLDS_MINUS8) != 0;
    p->gate_up = (shape->flags & INT4_PACKED_GATE_UP) != 0;
}

/* One block, or cluster, a panel and chunk. */
static halfbyte_status blocks_count(const pack_tensors *t, int64_t chunks, pack_launch *launch)
{
    const int64_t panels = t->shape.groups * int4_packed_panels(&t->shape);
    CHECK(chunks == 0 || panels <= MOST_BLOCKS / chunks, HALFBYTE_ERR_UNSUPPORTED,
          "groups = %" PRId64 ", n = %" PRId64 ", k = %" PRId64 ": packed by %" PRId64
          " times %" PRId64 " blocks of threads; a GPU takes at most %" PRId64,
          t->shape.groups, t->shape.n, t->shape.k, panels, chunks, MOST_BLOCKS);
    launch->blocks = (uint32_t)(panels * chunks);
    launch->params.chunks = (uint32_t)chunks;
    return HALFBYTE_SUCCESS;
}

static halfbyte_status launch_start(const pack_tensors *t, int kernel, pack_launch *launch)
{
    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    launch->cluster = 1;
    launch->smem_bytes = 0;
    params_fill(t, &launch->params);
    return blocks_count(t, divide_up(int4_packed_atoms(&t->shape), PACK_BLOCK_ATOMS), launch);
}

halfbyte_status pack_launch_scan(const pack_tensors *tensors, uint32_t *flag, pack_launch *launch)
{
    CHECK_STATUS(launch_start(tensors, KERNEL_INDEX_halfbyte_sm90_pack_scan, launch));
    launch->params.flag = flag;
    return HALFBYTE_SUCCESS;
}

/* As few blocks a panel as leave room for others beside them. */
static halfbyte_status in_place_make(const pack_tensors *t, bool unpack, pack_launch *launch)
{
    const int64_t atoms = int4_packed_atoms(&t->shape);
    CHECK(atoms <= PACK_MOST_CLUSTER * PACK_MOST_SLOTS, HALFBYTE_ERR_UNSUPPORTED,
          "desc.k = %" PRId64 ": in place on a GPU at most %d; packed elsewhere any", t->shape.k,
          PACK_MOST_CLUSTER * PACK_MOST_SLOTS * INT4_PACKED_ATOM_K);
    CHECK_STATUS(launch_start(t, KERNEL_INDEX_halfbyte_sm90_pack_in_place, launch));
    while (launch->cluster < PACK_MOST_CLUSTER &&
           divide_up(atoms, launch->cluster) > SLOTS_WANTED) {
        launch->cluster *= 2;
    }
    const int64_t slots = divide_up(divide_up(atoms, launch->cluster), 2) * 2;
    launch->smem_bytes = (uint32_t)PACK_IN_PLACE_SMEM(slots);
    launch->params.unpacks = unpack;
    return blocks_count(t, launch->cluster, launch);
}

halfbyte_status pack_launch_make(const pack_tensors *tensors, bool unpack, pack_launch *launch)
{
    if (tensors->packed == tensors->plain) {
        return in_place_make(tensors, unpack, launch);
    }
    return launch_start(tensors,
                        unpack ? KERNEL_INDEX_halfbyte_sm90_unpack_weights
                               : KERNEL_INDEX_halfbyte_sm90_pack_weights,
                        launch);
}
