/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A warp's share of a wgmma: operands from shared memory by the bits of their descriptors, products
 * by the exact model.
 */
#include <string.h>

#include "emulator/emu_wgmma.h"
#include "emulator/operation.h"
#include "emulator/tensor_map.h"
#include "model/chain.h"
#include "model/tensor_core.h"

enum {
    K_BYTES = 32,
    CHUNK = 16,
    ADDRESS_BITS = 0x3ffff, /* a descriptor's 14 bits, times 16 */
    PANELS_MAX = 256 / CHAIN_COLUMNS,
};

/* A K-major matrix in shared memory.  PTX ISA "Matrix-descriptor Format". */
typedef struct matrix {
    uint32_t start, leading, stride; /* bytes */
    uint32_t base;                   /* base offset: start of the swizzle's pattern, / 128 mod 8 */
    uint32_t swizzle;
} matrix;

static matrix matrix_of(uint64_t desc)
{
    return (matrix){.start = (uint32_t)(desc & 0x3fff) << 4,
                    .leading = (uint32_t)(desc >> 16 & 0x3fff) << 4,
                    .stride = (uint32_t)(desc >> 32 & 0x3fff) << 4,
                    .base = (uint32_t)(desc >> 49 & 7),
                    .swizzle = (uint32_t)(desc >> 62)};
}

/* Address of 16 bytes: row, and which half of the 32 bytes of k. */
static uint32_t chunk_address(const matrix *m, uint32_t row, uint32_t half)
{
    static const uint32_t pitches[] = {16, 128, 64, 32};
    uint32_t address = m->start + row / 8 * m->stride + row % 8 * pitches[m->swizzle];
    if (m->swizzle == 0) {
        return (address + half * m->leading) & ADDRESS_BITS;
    }
    address += half * CHUNK;
    const uint32_t shift = m->base << 7; /* the pattern counts rows from its own start */
    return (swizzled(address - shift, m->swizzle) + shift) & ADDRESS_BITS;
}

static bool inside(const block *owner, uint32_t address)
{
    return address >= SMEM_START && address + CHUNK <= owner->smem_end;
}

static void check_matrix(const observer *by, block *owner, uint64_t desc, uint32_t first_row,
                         uint32_t rows)
{
    const matrix m = matrix_of(desc);
    for (uint32_t row = first_row; row < first_row + rows; row++) {
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t address = chunk_address(&m, row, half);
            if (inside(owner, address)) {
                shadow_read(owner, address, CHUNK, by);
            } else {
                hazard(by->thread, "memory", by->site, NULL,
                       "row %u of a matrix lies at 0x%x, outside the block's shared memory", row,
                       address);
                return;
            }
        }
    }
}

static uint32_t first_row_of(const operation *self)
{
    return self->wgmma.warp->in_block % WARPS_A_GROUP * WARP_ROWS;
}

void wgmma_check_operands(const operation *self, thread *leader)
{
    const wgmma_operation *mma = &self->wgmma;
    tensor_core *tensor = mma->warp->tensor;
    observer by = {tensor->vc,
                   tensor->f,
                   leader,
                   self->site,
                   touch_make(tensor->agent, mma->group, self->site->id, true),
                   true};
    if (tensor->fences == 0) {
        hazard(leader, "f", self->site, NULL, "the warp has not executed wgmma_fence yet");
        by.vc = leader->vc;
        by.f = leader->f;
    }
    if (!mma->from_registers) {
        check_matrix(&by, leader->block, mma->desc_a, first_row_of(self), WARP_ROWS);
    }
    check_matrix(&by, leader->block, mma->desc_b, 0, mma->n);
}

static void gather(const block *owner, uint64_t desc, uint32_t first_row, uint32_t rows,
                   uint8_t (*to)[K_BYTES])
{
    const matrix m = matrix_of(desc);
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t address = chunk_address(&m, first_row + row, half);
            uint8_t *chunk = to[row] + half * CHUNK;
            if (inside(owner, address)) {
                memcpy(chunk, owner->smem + address, CHUNK);
            } else {
                memset(chunk, 0, CHUNK);
            }
        }
    }
}

/* Register i of lane t: bytes 16 * (i / 2) + t % 4 * 4 of row t / 4 + 8 * (i % 2). */
static void gather_registers(const wgmma_operation *mma, uint8_t (*to)[K_BYTES])
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t i = 0; i < 4; i++) {
            memcpy(to[lane / 4 + 8 * (i & 1)] + 16 * (i >> 1) + lane % 4 * 4,
                   mma->a + lane * mma->a_stride + i, 4);
        }
    }
}

/* B of the latest operation, decoded: the other warps of a warpgroup mostly multiply by the same.
 */
static struct {
    const block *owner;
    uint64_t version, desc;
    uint32_t n;
    chain_panel panels[PANELS_MAX];
} decoded;

static const chain_panel *panels_of(const block *owner, const chain_ops *ops, uint64_t desc,
                                    uint32_t n)
{
    uint8_t columns[256][K_BYTES];
    if (decoded.owner == owner && decoded.version == owner->smem_version && decoded.desc == desc &&
        decoded.n == n) {
        return decoded.panels;
    }
    gather(owner, desc, 0, n, columns);
    for (uint32_t c = 0; c < n; c += CHAIN_COLUMNS) {
        const uint32_t count = n - c < CHAIN_COLUMNS ? n - c : CHAIN_COLUMNS;
        ops->decode_panel(columns[c], K_BYTES, (int)count, K_BYTES,
                          &decoded.panels[c / CHAIN_COLUMNS]);
    }
    decoded.owner = owner;
    decoded.version = owner->smem_version;
    decoded.desc = desc;
    decoded.n = n;
    return decoded.panels;
}

static void multiply_e4m3(const wgmma_operation *mma, uint8_t (*a)[K_BYTES])
{
    static const chain_ops *ops;
    if (ops == NULL) {
        ops = chain_ops_get(CHAIN_ISA_AUTO);
    }
    const chain_panel *panels = panels_of(mma->warp->block, ops, mma->desc_b, mma->n);
    const uint32_t panel_count = (mma->n + CHAIN_COLUMNS - 1) / CHAIN_COLUMNS;
    static chain_row row;
    for (uint32_t r = 0; r < WARP_ROWS; r++) {
        float *values = mma->d->values + (size_t)r * panel_count * CHAIN_COLUMNS;
        ops->decode_row(a[r], K_BYTES, &row);
        for (uint32_t p = 0; p < panel_count; p++) {
            ops->run(&row, &panels[p], 0, 1, values + p * CHAIN_COLUMNS);
        }
    }
}

static void multiply_bf16(const wgmma_operation *mma, uint8_t (*a)[K_BYTES])
{
    uint8_t columns[256][K_BYTES];
    uint16_t a_row[K_BYTES / 2], b_column[K_BYTES / 2];
    const size_t pitch = (mma->n + CHAIN_COLUMNS - 1) / CHAIN_COLUMNS * CHAIN_COLUMNS;
    gather(mma->warp->block, mma->desc_b, 0, mma->n, columns);
    for (uint32_t r = 0; r < WARP_ROWS; r++) {
        memcpy(a_row, a[r], sizeof a_row);
        for (uint32_t c = 0; c < mma->n; c++) {
            float *value = mma->d->values + r * pitch + c;
            uint32_t bits;
            memcpy(b_column, columns[c], sizeof b_column);
            memcpy(&bits, value, sizeof bits);
            bits = tensor_core_block(TENSOR_CORE_BF16, a_row, b_column, bits);
            memcpy(value, &bits, sizeof bits);
        }
    }
}

bool wgmma_advance(operation *self)
{
    const wgmma_operation *mma = &self->wgmma;
    uint8_t a[WARP_ROWS][K_BYTES];
    if (mma->from_registers) {
        gather_registers(mma, a);
    } else {
        gather(mma->warp->block, mma->desc_a, first_row_of(self), WARP_ROWS, a);
    }
    if (!mma->accumulate) {
        memset(mma->d->values, 0, (size_t)WARP_ROWS * ((mma->n + 31) / 32 * 32) * sizeof(float));
    }
    if (mma->type == EMU_E4M3) {
        multiply_e4m3(mma, a);
    } else {
        multiply_bf16(mma, a);
    }
    return true;
}
