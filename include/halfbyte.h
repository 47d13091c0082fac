/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte: low-bit matrix products for LLM inference on NVIDIA Hopper, exact to the last bit.
 *
 * D[m,n] = epilogue( sum over k of A[m,k] * B[n,k] * scales )
 *
 *   A  activations, e4m3      B  weights      D  bf16, fp16 or fp32
 *
 *   FP8    B is e4m3, scaled per tensor, per output channel, per 1x128 or per 128x128 block.
 *   W4A8   B is int4, scaled per group of 32, 64, 128 or all k.
 *
 * Both families run dense or grouped (mixture of experts).  One call sequence serves all:
 *
 *     halfbyte_device *device;  halfbyte_plan *plan;
 *     halfbyte_problem problem = halfbyte_problem_init();    fill in what is multiplied
 *     halfbyte_operands operands = halfbyte_operands_init(); fill in pointers and strides
 *     halfbyte_device_open(&device, NULL);                   once; NULL: a GPU, else the CPU model
 *     halfbyte_plan_create(&plan, &problem, device);         once a layer
 *     halfbyte_run(plan, &operands, NULL, 0, NULL);          often
 *     halfbyte_plan_destroy(plan);  halfbyte_device_close(device);
 *
 * DeepSeek-V3's dense layer, activations scaled per 1x128 and weights per 128x128, in full:
 *
 *     problem.family = HALFBYTE_FAMILY_FP8;           operands.m = m;
 *     problem.m_max = m;                              operands.a.data = a;  operands.a.ld = k;
 *     problem.n = n;  problem.k = k;                  operands.b.data = b;  operands.b.ld = k;
 *     problem.d_type = HALFBYTE_TYPE_BF16;            operands.d.data = d;  operands.d.ld = n;
 *     problem.a_scale.mode = HALFBYTE_SCALE_1X128;    operands.a_scale.data = a_scale;
 *     problem.b_scale.mode = HALFBYTE_SCALE_128X128;  operands.a_scale.stride_k = m;
 *     problem.b_scale.layout =                        operands.b_scale.data = b_scale;
 *         HALFBYTE_SCALE_K_MAJOR;                     operands.b_scale.stride_mn = (k + 127) / 128;
 *
 * A mixture of experts with int4 weights, one bf16 scale per 128 weights, expert g's tokens being
 * rows offsets[g] to offsets[g + 1]; what differs (the scale layout is the default, MN_MAJOR):
 *
 *     problem.family = HALFBYTE_FAMILY_W4A8;          operands.b.group_stride = n * k;
 *     problem.grouping = HALFBYTE_GROUPING_RANGES;    operands.groups.starts = offsets;
 *     problem.groups = experts;                       operands.groups.ends = offsets + 1;
 *     problem.a_scale.mode = HALFBYTE_SCALE_OUTER;    operands.a_scale.data = token_scale;
 *     problem.b_scale.mode = HALFBYTE_SCALE_K_GROUP;  operands.b_scale.data = b_scale;
 *     problem.b_scale.type = HALFBYTE_TYPE_BF16;      operands.b_scale.stride_k = n;
 *     problem.weight_group_size = 128;                operands.b_scale.group_stride = n * k / 128;
 *
 * RESULT.  docs/numerics.md defines every output bit.  In short, for each output element: k is
 * walked in blocks (of 128, or of weight_group_size where that is smaller) in ascending order;
 * inside a block the tensor core's arithmetic chains 32 products at a time from +0; then acc =
 * fma(partial, scale, acc) in fp32, where scale is the product of the scales that vary along k.
 * Epilogue, absent terms skipped: acc, * A scale (tensor or row), * B scale (tensor or channel),
 * * channel scale, * alpha, + beta*C, + bias, conversion to d_type (round to nearest even, fp16
 * overflow to infinity).  All executors give these bits, whatever the batch, the number of threads
 * or SMs, or the group layout.  NaN results are 0x7fffffff in fp32, 0x7fff in bf16 and fp16.
 *
 * ERRORS.  Every function that can fail returns a halfbyte_status.  On failure nothing is written
 * to the caller's memory, nothing is enqueued and nothing leaks; halfbyte_last_error() gives one
 * sentence that names the argument, its value and what is accepted.  The library never prints and
 * never exits.
 *
 * STRUCTS begin with struct_size and are made by their _init() function, which sets that field and
 * zeroes the rest; zero is the default of every field.  New fields go to the end, so a program
 * built against an older header keeps working.  A program built against a newer one works if the
 * fields that this library does not know are zero: ERR_UNSUPPORTED if one is not.  A struct_size
 * that no version has (smaller than in 0.1.0, or larger than here by more than 4096 bytes) is
 * ERR_INVALID_ARGUMENT: the struct was not initialised.
 *
 * UNITS.  m, n, k, ld, strides and counts are in elements of the tensor they belong to (an int4
 * counts as one element, two in a byte) unless the name ends in _bytes.  Ranges are half-open.  A
 * stride along an extent of 0 or 1 is not looked at.
 *
 * THREADS.  A plan is immutable: any number of threads may run it at once.  A device may be used
 * from any thread.  Opening, closing, creating and destroying one and the same object is the
 * caller's to order.  After fork() a child must open its own device.
 *
 * MEMORY.  Tensors belong to the caller and are only read (inputs) or written (outputs) during the
 * call, or until the work on the stream has finished for the GPU.  Host memory for the CPU model
 * and the emulator, device memory for the GPU.  D may be the very tensor C (same pointer, strides
 * and type); apart from that an output must not overlap an input, and is refused if it does.
 * Elements count, not the memory between them: D may be some columns of a matrix whose other
 * columns are an input.
 *
 * Version 0.x: the ABI may change between minor versions (NEWS.md says how).
 */
#ifndef HALFBYTE_H
#define HALFBYTE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HALFBYTE_VERSION_MAJOR 0
#define HALFBYTE_VERSION_MINOR 1
#define HALFBYTE_VERSION_PATCH 0
#define HALFBYTE_API_VERSION 0 /* SONAME: libhalfbyte.so.<API version> */

#if defined(__GNUC__)
#define HALFBYTE_API __attribute__((visibility("default")))
#else
#define HALFBYTE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------
 * Status
 *
 * One table makes the enum, the names and the texts.  Thousands are categories: 1000 the caller's
 * argument, 2000 not served, 3000 resources, 4000 CUDA, 5000 a defect of the library.
 */
#define HALFBYTE_STATUS_MAP(XX)                                                                    \
    XX(SUCCESS, 0, "success")                                                                      \
    XX(ERR_INVALID_ARGUMENT, 1000, "invalid argument")                                             \
    XX(ERR_MISALIGNED, 1001, "pointer or stride misaligned")                                       \
    XX(ERR_BUFFER_TOO_SMALL, 1002, "buffer too small")                                             \
    XX(ERR_UNSUPPORTED, 2000, "no executor serves this problem")                                   \
    XX(ERR_NO_DEVICE, 2001, "no such device on this machine")                                      \
    XX(ERR_OUT_OF_MEMORY, 3000, "out of memory")                                                   \
    XX(ERR_CUDA, 4000, "CUDA call failed")                                                         \
    XX(ERR_INTERNAL, 5000, "internal error")

typedef enum halfbyte_status {
#define HALFBYTE_STATUS_ENUM_(name, code, text) HALFBYTE_##name = code,
    HALFBYTE_STATUS_MAP(HALFBYTE_STATUS_ENUM_)
#undef HALFBYTE_STATUS_ENUM_
        HALFBYTE_STATUS_LAST_ = 9999 /* not a status */
} halfbyte_status;

/*
 * Name ("ERR_MISALIGNED") and text ("pointer or stride misaligned") of a status; "unknown status"
 * for a value outside the table.  Static strings, never NULL.
 *
 *   INVALID_ARGUMENT   a value, a combination of values or an overlap that no version accepts
 *   MISALIGNED         a pointer or stride that is not a multiple of what profile or promise say
 *   BUFFER_TOO_SMALL   a size in bytes that the caller gave; the sentence says what is needed
 *   UNSUPPORTED        valid, but not served: a (later) field, a shape, an executor, a version
 *   NO_DEVICE          the machine lacks it
 *   OUT_OF_MEMORY      host memory; the call may be made again
 *   CUDA               the sentence has the driver's name of the error
 *   INTERNAL           please report it
 */
HALFBYTE_API const char *halfbyte_status_name(halfbyte_status status);
HALFBYTE_API const char *halfbyte_status_text(halfbyte_status status);

/* The sentence of this thread's most recent failure, "" if it had none.  Valid until this thread's
 * next failing call; a success leaves it as it is.  Never NULL. */
HALFBYTE_API const char *halfbyte_last_error(void);

/* Version of the library that is loaded: major * 1000000 + minor * 1000 + patch, and as text. */
HALFBYTE_API uint32_t halfbyte_version(void);
HALFBYTE_API const char *halfbyte_version_text(void);

/* ---------------------------------------------------------------------------------------------
 * Element types.  Values are pinned.
 */
/*
 *   NONE   the tensor is absent, or the default of its field
 *   E4M3   OCP FP8 E4M3 "fn": no infinity, 0x7f and 0xff are NaN, largest 448
 *   E5M2   OCP FP8 E5M2, with infinities, largest finite 57344
 *   E8M0   OCP scale byte: 2^(x - 127), 0xff is NaN
 *   INT4   two's complement -8..7; even index in the low nibble of a byte
 */
typedef enum halfbyte_type {
    HALFBYTE_TYPE_NONE = 0,
    HALFBYTE_TYPE_F32 = 1,
    HALFBYTE_TYPE_BF16 = 2,
    HALFBYTE_TYPE_F16 = 3,
    HALFBYTE_TYPE_E4M3 = 4,
    HALFBYTE_TYPE_E5M2 = 5,
    HALFBYTE_TYPE_E8M0 = 6,
    HALFBYTE_TYPE_INT4 = 7
} halfbyte_type;

/* "f32", "bf16", "f16", "e4m3", "e5m2", "e8m0", "int4", "none"; "unknown" outside the enum. */
HALFBYTE_API const char *halfbyte_type_name(halfbyte_type type);

/* Bits of one element: 32, 16, 16, 8, 8, 8, 4; 0 for NONE and outside the enum. */
HALFBYTE_API int halfbyte_type_bits(halfbyte_type type);

/*
 * Converts count elements.  f32 to every type but int4, and every type but int4 to f32; to itself
 * copies.  To narrower types: round to nearest even; e4m3 and e5m2 saturate to the largest finite
 * value (infinities too), fp16 overflows to infinity; NaN becomes 0x7fff (bf16, f16), 0x7f (e4m3,
 * e5m2), 0xff (e8m0).  f32 to e8m0 rounds up to the next power of two, clamps to [2^-127, 2^127];
 * zero gives 2^-127 and a negative number gives NaN.  Independent of the host's rounding mode.
 *   dst, src   count elements each, aligned to their element; must not overlap unless dst == src
 *              and both types have the same number of bits.  NULL is accepted if count is 0.
 * ERR_INVALID_ARGUMENT (NULL, negative count, overlap), ERR_MISALIGNED, ERR_UNSUPPORTED (the pair).
 */
HALFBYTE_API halfbyte_status halfbyte_convert(void *dst, halfbyte_type dst_type, const void *src,
                                              halfbyte_type src_type, int64_t count);

/* ---------------------------------------------------------------------------------------------
 * Device: the executor that plans are made for
 */
typedef struct halfbyte_device halfbyte_device;
typedef struct CUstream_st *halfbyte_stream; /* = CUstream, cudaStream_t; NULL = default stream */

/*
 *   AUTO       the GPU if it can be opened, else the CPU model.  Which one decides where operands
 *              live, so a program that has them in host memory asks for MODEL.
 *   MODEL      CPU model: host pointers, the GPU's bits
 *   GPU        an sm_90a GPU: device pointers.  In a library built with nvcc; serves what
 *              halfbyte_plan_create() accepts there: in this version FP8, DENSE, a_scale 1X128,
 *              b_scale 128X128, bf16 D and no further epilogue.
 *   EMULATOR   kernel source run on the CPU.  Not built in this version.
 */
typedef enum halfbyte_executor {
    HALFBYTE_EXECUTOR_AUTO = 0,
    HALFBYTE_EXECUTOR_MODEL = 1,
    HALFBYTE_EXECUTOR_GPU = 2,
    HALFBYTE_EXECUTOR_EMULATOR = 3
} halfbyte_executor;

/*
 *   SM90   the GPU kernels' rules for alignment, n and k, for the CPU model too: a program written
 *          on a laptop does not fail in production
 *   ANY    CPU model only: any n, k, pointer and stride
 */
typedef enum halfbyte_profile {
    HALFBYTE_PROFILE_SM90 = 0,
    HALFBYTE_PROFILE_ANY = 1
} halfbyte_profile;

/* Code path of the CPU model; every path gives the same bits.  AUTO is the fastest that this CPU
 * has; of the others, what it lacks is refused. */
typedef enum halfbyte_isa {
    HALFBYTE_ISA_AUTO = 0,
    HALFBYTE_ISA_PORTABLE = 1,
    HALFBYTE_ISA_AVX2 = 2,
    HALFBYTE_ISA_AVX512 = 3
} halfbyte_isa;

/*
 *   ordinal   GPU: CUDA device number, at least 0
 *   threads   model: threads that work, the caller's included, 1 to 1024; 0 = as many as CPUs that
 *             the process may use.  Where the system refuses some, fewer: describe says how many.
 *   isa       model
 *   tune_file a file that `halfbyte tune` wrote: which kernel is the fastest for a shape.  Read
 *             when the device is opened.  "" for none; NULL: the file that the environment variable
 *             HALFBYTE_TUNE_FILE names, if it is set.  Changes no bit.
 */
typedef struct halfbyte_device_options {
    size_t struct_size;
    halfbyte_executor executor;
    halfbyte_profile profile;
    int32_t ordinal;
    int32_t threads;
    halfbyte_isa isa;
    const char *tune_file;
} halfbyte_device_options;

/*
 * Opens a device.  The model's threads are started here; they take no signals.
 *   device    *device is written on success only; to be closed with halfbyte_device_close()
 *   options   NULL = all defaults; not kept
 * ERR_INVALID_ARGUMENT (also a tune file that has faults or cannot be read), ERR_NO_DEVICE (no
 * usable driver or GPU, or a code path that this CPU lacks), ERR_UNSUPPORTED (executor not built
 * into this library), ERR_OUT_OF_MEMORY, ERR_CUDA.
 */
HALFBYTE_API halfbyte_status halfbyte_device_open(halfbyte_device **device,
                                                  const halfbyte_device_options *options);

/* Closes a device and ends its threads; its plans must be destroyed and its work finished before.
 * NULL is fine. */
HALFBYTE_API void halfbyte_device_close(halfbyte_device *device);

/* Every describe function writes one line of text, NUL included, of at most this many bytes. */
#define HALFBYTE_TEXT_BYTES 1024

/*
 * One line: executor, profile, code path, threads.
 * ERR_INVALID_ARGUMENT (NULL), ERR_BUFFER_TOO_SMALL (and nothing written) if the text does not fit
 * into text_bytes; HALFBYTE_TEXT_BYTES always suffices.
 */
HALFBYTE_API halfbyte_status halfbyte_device_describe(const halfbyte_device *device, char *text,
                                                      size_t text_bytes);

/* ---------------------------------------------------------------------------------------------
 * Problem: what a plan fixes
 */
/* FP8: A e4m3, B e4m3.  W4A8: A e4m3, B int4, which the tensor core sees as e4m3 (docs/numerics.md
 * section 3). */
typedef enum halfbyte_family { HALFBYTE_FAMILY_FP8 = 1, HALFBYTE_FAMILY_W4A8 = 2 } halfbyte_family;

/*
 * How rows of A and D belong to the `groups` weight matrices.
 *
 *   DENSE    groups == 1; A is [m, k], D is [m, n].
 *   RANGES   A is [m, k], D is [m, n], all groups in one matrix; group g owns rows [start, end),
 *            see halfbyte_groups.  Any boundaries (no alignment), empty groups, gaps and rows past
 *            the last group are fine.
 *   MASKED   A is [groups, m, k], D is [groups, m, n]; group g owns its first counts[g] rows (all
 *            m if counts is NULL, which is a batched product).
 *   LABELS   A is [m, k], D is [m, n]; labels[row] names the group, -1 = no group.  Labels other
 *            than -1 must not decrease.
 *
 * Rows that no group owns are not read, and their rows of D are not written unless the flag
 * ZERO_FILL_PADDING is set.
 */
typedef enum halfbyte_grouping {
    HALFBYTE_GROUPING_DENSE = 0,
    HALFBYTE_GROUPING_RANGES = 1,
    HALFBYTE_GROUPING_MASKED = 2,
    HALFBYTE_GROUPING_LABELS = 3
} halfbyte_grouping;

/*
 * What one scale covers.  In brackets the name in cuBLASLt and the shape of the scale tensor, its
 * first index mn (m for A, n for B) and its second index along k; extents are always rounded up.
 *
 *   NONE      absent
 *   TENSOR    [SCALAR]       one value for the matrix, with group_stride one a group
 *   OUTER     [OUTER_VEC]    [m] one a token for A, [n] one an output channel for B
 *   1X128     [VEC128]       [m, ceil(k/128)] for A, [n, ceil(k/128)] for B
 *   128X128   [BLK128x128]   [ceil(n/128), ceil(k/128)], B only
 *   K_GROUP   [-]            [n, ceil((k + group_k_offset) / weight_group_size)], W4A8 B only
 *
 *   family   A scale                       B scale
 *   FP8      NONE TENSOR OUTER 1X128, f32  NONE TENSOR OUTER 1X128 128X128, f32
 *   W4A8     NONE TENSOR OUTER 1X128, f32  NONE, TENSOR OUTER in f32 bf16 f16,
 *                                          K_GROUP in f32 bf16 f16 e4m3
 *
 * A 1X128 with group_k_offset != 0 is refused: the two block grids would not agree.  Scales may be
 * zero, negative, infinite or NaN; arithmetic goes its usual way.
 */
typedef enum halfbyte_scale_mode {
    HALFBYTE_SCALE_NONE = 0,
    HALFBYTE_SCALE_TENSOR = 1,
    HALFBYTE_SCALE_OUTER = 2,
    HALFBYTE_SCALE_1X128 = 3,
    HALFBYTE_SCALE_128X128 = 4,
    HALFBYTE_SCALE_K_GROUP = 5
} halfbyte_scale_mode;

/*
 * Which stride of a two-dimensional scale tensor (1X128, 128X128, K_GROUP) is 1.
 *
 *   MN_MAJOR      element (mn, kb) at mn + kb * stride_k; stride_k >= extent of mn (any such value)
 *   K_MAJOR       element (mn, kb) at mn * stride_mn + kb; stride_mn >= extent of k blocks
 *   INTERLEAVED4  K_GROUP only: element (mn, kb) at (kb / 4) * stride_k + mn * 4 + kb % 4;
 *                 stride_k and group_stride multiples of 4, stride_k >= 4 * n.  It is what
 *                 cutlass_w4a8_moe_mm expects if the number of k groups is a multiple of 4, as it
 *                 must be here (otherwise it expects MN_MAJOR).  stride_mn is not looked at.
 *
 * NONE, TENSOR and OUTER have no second dimension: MN_MAJOR.
 */
typedef enum halfbyte_scale_layout {
    HALFBYTE_SCALE_MN_MAJOR = 0,
    HALFBYTE_SCALE_K_MAJOR = 1,
    HALFBYTE_SCALE_INTERLEAVED4 = 2
} halfbyte_scale_layout;

/* Scales of one operand.  type NONE = f32; with mode NONE it must be NONE, so that a forgotten mode
 * is refused rather than the scales ignored. */
typedef struct halfbyte_scale_spec {
    halfbyte_scale_mode mode;
    halfbyte_type type;
    halfbyte_scale_layout layout;
} halfbyte_scale_spec;

/*
 *   ROW_MAJOR   [groups, n, k], k contiguous; int4: byte j of a row holds k = 2j (low), 2j + 1
 *   PACKED      int4 only: made by halfbyte_pack_weights(), faster on the GPU, where every run
 *               packs ROW_MAJOR int4 weights into its workspace first
 */
typedef enum halfbyte_b_layout {
    HALFBYTE_B_ROW_MAJOR = 0,
    HALFBYTE_B_PACKED = 1
} halfbyte_b_layout;

/* Type of starts, ends and counts in halfbyte_groups. */
typedef enum halfbyte_index_type {
    HALFBYTE_INDEX_INT32 = 0,
    HALFBYTE_INDEX_INT64 = 1
} halfbyte_index_type;

/*
 *   NONE     no multiplication
 *   HOST     by operands.alpha, read when run is called
 *   DEVICE   by *operands.alpha_pointer, in the memory of the device, read when the work runs
 */
typedef enum halfbyte_alpha_mode {
    HALFBYTE_ALPHA_NONE = 0,
    HALFBYTE_ALPHA_HOST = 1,
    HALFBYTE_ALPHA_DEVICE = 2
} halfbyte_alpha_mode;

/*
 * SwiGLU: B has n = 2 * I rows, gate and up; D is [m, I].
 *
 *   HALVES        gate in columns [0, I), up in [I, 2 * I)
 *   INTERLEAVED   gate in even columns, up in odd ones
 */
typedef enum halfbyte_activation {
    HALFBYTE_ACTIVATION_NONE = 0,
    HALFBYTE_ACTIVATION_SWIGLU_HALVES = 1,
    HALFBYTE_ACTIVATION_SWIGLU_INTERLEAVED = 2
} halfbyte_activation;

/*
 * Flags of halfbyte_problem.
 *
 *   ZERO_FILL_PADDING   write +0 to the rows of D that no group owns
 *   WEIGHTS_CONSTANT    GPU: B and its scales may be read before the stream's previous kernel ends
 *   LAUNCH_DEPENDENTS   GPU: let the next kernel start early (programmatic dependent launch)
 */
#define HALFBYTE_ZERO_FILL_PADDING 1u
#define HALFBYTE_WEIGHTS_CONSTANT 2u
#define HALFBYTE_LAUNCH_DEPENDENTS 4u

/*
 * A problem.  Fields marked (later) exist so that the struct is complete; a value other than zero
 * is refused with ERR_UNSUPPORTED naming the field, and so is d_type e4m3.
 *
 * Limits: 0 <= m_max, n, k <= 2^31 - 1, 1 <= groups <= 2^20.
 * Profile SM90: W4A8 needs k % 32 == 0 and n % 8 == 0 (else ERR_UNSUPPORTED); FP8 takes any n, k.
 *
 *   family              must be set
 *   m_max               most rows that run will be given (MASKED: rows a group)
 *   n                   rows of B = columns of D
 *   k                   columns of A and B
 *   groups              weight matrices; 0 = 1
 *   a_type              NONE = e4m3, the only one
 *   b_type              NONE = that of the family, the only one
 *   d_type              bf16, f16 or f32; must be set
 *   weight_group_size   K_GROUP: 32, 64, 128, or 0 = all of k.  Other modes: 0.
 *   group_k_offset      K_GROUP: how far into a weight group k = 0 lies (a tensor-parallel slice);
 *                       a multiple of 32 below weight_group_size, 0 if that is 0.  Other modes: 0.
 *   channel_scale_type  f32: B has a further [groups, n] factor; NONE: it has not
 *   k_splits            0 or 1: one running sum.  s > 1: s contiguous ranges of whole blocks (the
 *                       first ones longer by one block where they do not divide evenly), each
 *                       summed from +0, added in ascending order.  At most the number of blocks,
 *                       ceil((k + group_k_offset) / block), or 1 if there is none.
 *   c_type              f32, bf16, f16: + beta * C; NONE: C is absent
 *   bias_type           f32, bf16, f16: + bias[n]; NONE: absent
 *   index_type          of starts, ends and counts
 *   flags               HALFBYTE_ZERO_FILL_PADDING and the like
 *   num_sms             GPU: most SMs to use; 0 = all.  Does not change a bit.
 *   a_alignment, b_alignment, d_alignment
 *                       promised alignment in bytes of the data pointer and of row and group
 *                       strides; a power of two up to 1024.  0, or less than the profile's minimum:
 *                       that minimum (halfbyte_operands).  Run refuses what breaks the promise.
 *   activation          (later)
 *   activation_type     (later) gate and up are rounded to this type first
 *   d_scale             (later) scales of an e4m3 D
 *   b_zero_point_type   (later) int4 zero points [n, k groups]
 *   a_prescale_type     (later) [k] factor on activations before quantisation (AWQ)
 */
typedef struct halfbyte_problem {
    size_t struct_size;
    halfbyte_family family;
    halfbyte_grouping grouping;
    int64_t m_max;
    int64_t n;
    int64_t k;
    int64_t groups;
    halfbyte_type a_type;
    halfbyte_type b_type;
    halfbyte_type d_type;
    halfbyte_b_layout b_layout;
    halfbyte_scale_spec a_scale;
    halfbyte_scale_spec b_scale;
    int64_t weight_group_size;
    int64_t group_k_offset;
    halfbyte_type channel_scale_type;
    int64_t k_splits;
    halfbyte_alpha_mode alpha_mode;
    halfbyte_type c_type;
    halfbyte_type bias_type;
    halfbyte_index_type index_type;
    uint32_t flags;
    int32_t num_sms;
    int32_t a_alignment, b_alignment, d_alignment;
    halfbyte_activation activation;
    halfbyte_type activation_type;
    halfbyte_scale_spec d_scale;
    halfbyte_type b_zero_point_type;
    halfbyte_type a_prescale_type;
} halfbyte_problem;

/* ---------------------------------------------------------------------------------------------
 * Plan
 */
typedef struct halfbyte_plan halfbyte_plan;

/*
 * Makes a plan for problem on device.  One plan serves every m in [0, m_max].  No GPU memory is
 * taken.
 *   plan      *plan is written on success only; to be freed with halfbyte_plan_destroy()
 *   problem   copied
 *   device    referred to: it must outlive the plan
 * ERR_INVALID_ARGUMENT, ERR_UNSUPPORTED (valid, but no executor of this device serves it),
 * ERR_OUT_OF_MEMORY.
 */
HALFBYTE_API halfbyte_status halfbyte_plan_create(halfbyte_plan **plan,
                                                  const halfbyte_problem *problem,
                                                  halfbyte_device *device);

/* Frees a plan, whose work must have finished.  NULL is fine.  The device stays open. */
HALFBYTE_API void halfbyte_plan_destroy(halfbyte_plan *plan);

/* Bytes of workspace that halfbyte_run() needs, for any m <= m_max; often 0.  0 for a NULL plan. */
HALFBYTE_API size_t halfbyte_plan_workspace_bytes(const halfbyte_plan *plan);

/*
 * One line: the problem with its defaults resolved, and the executor, for example
 *
 *   w4a8 ranges groups=8 m<=4096 n=4096 k=7168 a=e4m3:1x128/mn b=int4:k_group128:bf16/k d=bf16
 *   bias=f32 index=int32 executor=model profile=sm90 isa=avx2 threads=2
 *
 * A scale stands behind its operand as mode:type/layout, f32 unsaid; absent terms are left out.
 * Errors as halfbyte_device_describe().  The text is for people: it may change between versions.
 */
HALFBYTE_API halfbyte_status halfbyte_plan_describe(const halfbyte_plan *plan, char *text,
                                                    size_t text_bytes);

/* ---------------------------------------------------------------------------------------------
 * Operands: what a run is given
 */

/*
 * Element (g, row, column) at data[g * group_stride + row * ld + column].  ld >= columns.
 *
 * group_stride is used where the tensor has one matrix a group.  Then no element is shared, so that
 * a forgotten group_stride is refused:
 *
 *   one after another   group_stride >= (rows - 1) * ld + columns
 *   side by side        [rows, groups, columns]: group_stride >= columns and
 *                       ld >= (groups - 1) * group_stride + columns
 */
typedef struct halfbyte_matrix_in {
    const void *data;
    int64_t ld;
    int64_t group_stride;
} halfbyte_matrix_in;

typedef struct halfbyte_matrix_out {
    void *data;
    int64_t ld;
    int64_t group_stride;
} halfbyte_matrix_out;

/*
 * A scale tensor, read (_in) or written (_out); see halfbyte_scale_layout for its strides.  The one
 * that is 1 there (MN_MAJOR and OUTER: stride_mn, K_MAJOR: stride_k) must be 1, or 0, which stands
 * for 1.  group_stride as for matrices; for TENSOR it is the distance between the groups' values,
 * 0 = all groups share one.
 */
typedef struct halfbyte_scale_in {
    const void *data;
    int64_t stride_mn;
    int64_t stride_k;
    int64_t group_stride;
} halfbyte_scale_in;

typedef struct halfbyte_scale_out {
    void *data;
    int64_t stride_mn;
    int64_t stride_k;
    int64_t group_stride;
} halfbyte_scale_out;

/* A vector [n] with unit stride, one a group at group_stride >= n; 0 = all groups share one. */
typedef struct halfbyte_vector_in {
    const void *data;
    int64_t group_stride;
} halfbyte_vector_in;

/*
 * Group sizes, in the memory of the device (they are never read by the host of a GPU).
 *
 * RANGES takes one of these; the others are NULL:
 *   starts and ends     group g owns [starts[g], ends[g]); [groups + 1] offsets: ends = starts + 1
 *   starts and counts   [starts[g], starts[g] + counts[g])
 *   ends                [ends[g - 1], ends[g]), the first group from 0
 *   counts              the running sum
 * MASKED takes counts or nothing, LABELS takes labels, DENSE nothing; an array that the grouping
 * does not take is refused.  index_type says int32 or int64; labels are int32; arrays are aligned
 * to their element.  *_stride: distance between the values of neighbouring groups in elements, at
 * least 0, 0 = 1 (so one column of a [groups, 3] table passes as it is).
 *
 * Values are clamped as they are read: starts (of ends alone: the end before) to [0, m], ends to
 * [start, m], counts to [0, rows left]; a label outside [0, groups) counts as -1.  So no value can
 * make a kernel leave its tensors.  Groups must not overlap (a row of two groups gets the bits of
 * one of them; where D is C, any bits).  halfbyte_check_groups() names such faults.
 */
typedef struct halfbyte_groups {
    const void *starts;
    const void *ends;
    const void *counts;
    const int32_t *labels;
    int64_t starts_stride;
    int64_t ends_stride;
    int64_t counts_stride;
} halfbyte_groups;

/*
 * Travels with packed weights; plain data, may be stored.  Filled by halfbyte_pack_weights().
 *
 *   version             1
 *   flags               HOLDS_MINUS8: some weight is -8, so the words have the exact form;
 *                       GATE_UP_ROWS: gate and up rows are interleaved for a fused SwiGLU
 *   n, k, groups        of the weights
 *   group_k_offset      as in the problem: positions of the first atom that stay empty
 *   weight_group_size   as in the problem; 0 = all of k
 *   scale_type          of the K_GROUP scales that belong to the weights; NONE = not recorded
 *   reserved            0
 */
typedef struct halfbyte_packed_header {
    uint32_t version;
    uint32_t flags;
    int64_t n, k, groups;
    int64_t group_k_offset;
    int64_t weight_group_size;
    halfbyte_type scale_type;
    uint32_t reserved;
} halfbyte_packed_header;

#define HALFBYTE_PACKED_HOLDS_MINUS8 1u
#define HALFBYTE_PACKED_GATE_UP_ROWS 2u

/*
 * Operands of one run.  Which of them are read follows from the problem, from k (k == 0: not a, b
 * and the scales along k) and from beta (0: not c); the others are ignored.
 *
 *   m               rows of a, c, d (MASKED: rows a group); at most the problem's m_max
 *   expected_m      hint: typical rows a group, at least 0; 0 = unknown.  Does not change a bit.
 *   a               e4m3 [m, k], MASKED [groups, m, k]
 *   b               ROW_MAJOR: [groups, n, k]
 *                   PACKED: data = the packed bytes; ld and group_stride are ignored
 *   c               c_type, shape of d
 *   d               d_type [m, n], MASKED [groups, m, n]
 *   a_scale         shape by mode; rows are rows of a (MASKED: of the group, with group_stride);
 *                   TENSOR: a value a group where group_stride is not 0, in every grouping
 *   b_scale         shape by mode, one tensor a group at group_stride
 *   channel_scale   f32 [n] a group
 *   bias            bias_type [n] a group
 *   alpha           of ALPHA_HOST
 *   beta            factor of C, read when run is called; 0: C is not read
 *   alpha_pointer   of ALPHA_DEVICE, aligned to 4 bytes
 *   groups          of every grouping but DENSE
 *   b_header        PACKED: n, k, groups, group_k_offset and weight_group_size must be the
 *                   problem's; with K_GROUP scales scale_type too, unless it is NONE; no
 *                   GATE_UP_ROWS without an activation; version 1 (else ERR_UNSUPPORTED).  Host
 *                   memory, read when run is called.
 *   d_scale, b_zero_point, a_prescale   (later)
 *
 * Profile SM90: a.data, b.data 16-byte aligned; their ld and group_stride multiples of 16 bytes
 * (a: 16 elements; b: 16 for e4m3, 32 for int4).  d, c, bias and scales: aligned to their element.
 * Profile ANY: int4 ld and group_stride even (rows begin at a byte), else aligned to the element.
 * Packed weights are 16-byte aligned in both.
 */
typedef struct halfbyte_operands {
    size_t struct_size;
    int64_t m;
    int64_t expected_m;
    halfbyte_matrix_in a;
    halfbyte_matrix_in b;
    halfbyte_matrix_in c;
    halfbyte_matrix_out d;
    halfbyte_scale_in a_scale;
    halfbyte_scale_in b_scale;
    halfbyte_vector_in channel_scale;
    halfbyte_vector_in bias;
    float alpha;
    float beta;
    const float *alpha_pointer;
    halfbyte_groups groups;
    const halfbyte_packed_header *b_header;
    halfbyte_scale_out d_scale;
    halfbyte_scale_in b_zero_point;
    halfbyte_vector_in a_prescale;
} halfbyte_operands;

/*
 * Enqueues the product on stream and returns.  The CPU model computes it before it returns.
 * Never allocates, never synchronises, never reads device data on the host; may be captured into a
 * CUDA graph; safe from many threads on one plan with workspaces of their own.
 *   workspace   workspace_bytes bytes, 256-byte aligned, halfbyte_plan_workspace_bytes(plan) or
 *               more; may be NULL if workspace_bytes is 0.  In use until the work has finished.
 *   stream      must be NULL for the CPU model.
 * m == 0, n == 0: success, nothing is read or written, and tensors and groups are not looked at.
 * k == 0: the sum is +0 and the epilogue follows; a, b and the scales along k (1X128, 128X128,
 * K_GROUP) are not read.  The caller's floating-point environment is kept and does not matter.
 * ERR_INVALID_ARGUMENT, ERR_MISALIGNED, ERR_BUFFER_TOO_SMALL (workspace), ERR_UNSUPPORTED (version
 * of b_header), ERR_CUDA.
 */
HALFBYTE_API halfbyte_status halfbyte_run(const halfbyte_plan *plan,
                                          const halfbyte_operands *operands, void *workspace,
                                          size_t workspace_bytes, halfbyte_stream stream);

/*
 * Checks group sizes that only the device knows.  May synchronise; for debugging and tests.
 *   RANGES   all starts and ends within [0, m], no end before its start; groups that are not empty
 *            ascend and do not overlap
 *   MASKED   counts within [0, m]
 *   LABELS   within [-1, groups); those other than -1 do not decrease
 * ERR_INVALID_ARGUMENT names the first fault: group or row, value, what is accepted.
 * ERR_MISALIGNED.  A GPU copies the arrays to the host: ERR_OUT_OF_MEMORY, ERR_CUDA.
 * SUCCESS for DENSE.  Needs operands.m and operands.groups only; with m == 0 the arrays may all be
 * NULL.
 */
HALFBYTE_API halfbyte_status halfbyte_check_groups(const halfbyte_plan *plan,
                                                   const halfbyte_operands *operands,
                                                   halfbyte_stream stream);

/* ---------------------------------------------------------------------------------------------
 * int4 weights: checkpoint layouts and packing
 *
 * How a checkpoint stores weights:
 *
 *   INT8_LOW_FIRST   int8 [n, k/2], even k in the low nibble (w4afp8); the same as ROW_MAJOR
 *   INT32_SIGNED     int32 [n, k/8], k = 8j + i in bits 4i..4i+3, two's complement
 *   INT32_OFFSET     the same bits holding value + 8 (compressed-tensors pack-quantized)
 */
typedef enum halfbyte_int4_layout {
    HALFBYTE_INT4_INT8_LOW_FIRST = 0,
    HALFBYTE_INT4_INT32_SIGNED = 1,
    HALFBYTE_INT4_INT32_OFFSET = 2
} halfbyte_int4_layout;

/*
 * Describes int4 weights [groups, n, k] in a checkpoint's layout.
 *
 *   n, k, groups        limits as in the problem; groups 0 = 1
 *   ld, group_stride    in weights, multiples of 2 (INT8) or 8 (INT32); the data that goes with
 *                       the description is aligned to 1 or 4 bytes
 *   group_k_offset      as in the problem
 *   weight_group_size   recorded in the header
 *   scale_type          recorded in the header
 *   flags               0 or HALFBYTE_PACKED_GATE_UP_ROWS; n must be a multiple of 16 then
 */
typedef struct halfbyte_int4_desc {
    size_t struct_size;
    halfbyte_int4_layout layout;
    int64_t n, k, groups;
    int64_t ld, group_stride;
    int64_t group_k_offset;
    int64_t weight_group_size;
    halfbyte_type scale_type;
    uint32_t flags;
} halfbyte_int4_desc;

/*
 * Bytes of the packed form: groups * ceil(n/64) * ceil((k + group_k_offset)/128) * 4096.
 * docs/formats.md defines every bit of it.  ERR_INVALID_ARGUMENT.
 */
HALFBYTE_API halfbyte_status halfbyte_packed_weights_bytes(const halfbyte_int4_desc *desc,
                                                           size_t *bytes);

/*
 * Packs weights once, after loading.  The CPU may allocate bounded scratch memory (one panel of 64
 * rows a thread).  A GPU takes no memory: it looks through the weights, waits for the stream to say
 * whether there is a -8, and enqueues the packing behind; the header is filled on return.  It gives
 * the CPU's bits for any weights, and is fastest where rows begin at multiples of 8 bytes.
 *   device         NULL = the CPU
 *   desc           of src
 *   src, packed    memory of the device; packed 16-byte aligned.  In place (packed == src) if
 *                  n % 64 == 0, k % 128 == 0, group_k_offset == 0, ld == k, group_stride == n * k
 *                  and no flags, on a GPU k <= 57344; otherwise they must not overlap.
 *   packed_bytes   at least halfbyte_packed_weights_bytes(desc)
 *   header         filled; belongs to the caller
 *   stream         must be NULL for the CPU; must not be being captured (ERR_UNSUPPORTED)
 * ERR_INVALID_ARGUMENT, ERR_MISALIGNED, ERR_BUFFER_TOO_SMALL, ERR_UNSUPPORTED, ERR_OUT_OF_MEMORY,
 * ERR_CUDA.
 */
HALFBYTE_API halfbyte_status halfbyte_pack_weights(halfbyte_device *device,
                                                   const halfbyte_int4_desc *desc, const void *src,
                                                   void *packed, size_t packed_bytes,
                                                   halfbyte_packed_header *header,
                                                   halfbyte_stream stream);

/* The reverse, exactly: desc says the layout wanted and must agree with header in n, k, groups and
 * group_k_offset; its flags are 0 or as they were, its weight_group_size and scale_type are not
 * looked at.  In place under the same conditions.  A GPU only enqueues, also into a graph.  Errors
 * as above. */
HALFBYTE_API halfbyte_status halfbyte_unpack_weights(halfbyte_device *device,
                                                     const halfbyte_packed_header *header,
                                                     const void *packed, size_t packed_bytes,
                                                     const halfbyte_int4_desc *desc, void *dst,
                                                     halfbyte_stream stream);

/* ---------------------------------------------------------------------------------------------
 * Quantisation
 */

/*
 * Flags of the quantisers.
 *
 *   STATIC         activations, TENSOR: the scale is given, not computed
 *   POWER_OF_TWO   round computed scales up to a power of two, before scale_type; not with STATIC
 */
#define HALFBYTE_QUANTIZE_STATIC 1u
#define HALFBYTE_QUANTIZE_POWER_OF_TWO 2u

/*
 * Activations [m, k] to e4m3.  Per scale: amax = largest finite |x| (NaN and infinities ignored);
 * scale = div(max(amax, epsilon), 448); q = e4m3(div(x, scale)), fp32 divisions, round to nearest
 * even, saturating (infinities to +-448, NaN to 0x7f).
 *
 *   mode       TENSOR (dynamic, or STATIC: scale is read), OUTER (per token) or 1X128
 *   layout     1X128: MN_MAJOR or K_MAJOR
 *   src_type   f32, bf16 or f16
 *   src        [m, k]
 *   dst        e4m3 [m, k]; must not overlap src
 *   scale      f32, shape by mode; written, STATIC: read
 *   epsilon    at least 0 and finite, epsilon / 448 not 0; 0 itself = 1e-4
 * m or k 0: scales that cover no element are written as those of zeros.
 *
 * Tensors are aligned to their element, in the memory of the device.  A GPU gives the CPU's bits
 * for any of them, and is fastest where the rows of src begin at multiples of 16 bytes and those of
 * dst at multiples of 8 (f32: 4); a TENSOR without gaps between its rows counts as one row.  While
 * it computes the scale of a TENSOR, the scale's memory holds other values.
 */
typedef struct halfbyte_activation_quantization {
    size_t struct_size;
    halfbyte_scale_mode mode;
    halfbyte_scale_layout layout;
    halfbyte_type src_type;
    uint32_t flags;
    int64_t m, k;
    halfbyte_matrix_in src;
    halfbyte_matrix_out dst;
    halfbyte_scale_out scale;
    float epsilon;
} halfbyte_activation_quantization;

/*
 * Enqueues the work on stream and returns; the CPU computes before it returns.  Never allocates,
 * never synchronises, never reads device data on the host; may be captured into a CUDA graph.
 *   device   NULL = the CPU, one thread
 *   stream   must be NULL for the CPU
 * ERR_INVALID_ARGUMENT, ERR_MISALIGNED, ERR_UNSUPPORTED, ERR_CUDA.
 */
HALFBYTE_API halfbyte_status halfbyte_quantize_activations(
    halfbyte_device *device, const halfbyte_activation_quantization *arguments,
    halfbyte_stream stream);

/*
 * Weights [groups, n, k] to
 *   INT4  groups of weight_group_size along k: scale = amax / 7 rounded to scale_type, q =
 *         w / scale rounded to nearest even and clamped to -7..7 (fp32 division); a group of zeros
 *         has scale 0 and q = 0.  Never makes -8.  The convention of the public w4afp8 checkpoints.
 *   E4M3  128x128 blocks: scale = amax / 448, q = e4m3(w / scale); a block of zeros has scale 1.
 *         The convention of DeepSeek-V3 (weight_scale_inv).
 * w is about q * scale in both.  Refused by position, with nothing written: a weight that is not
 * finite; a group or block whose scale overflows scale_type, or rounds to zero although one of its
 * weights is not zero.
 *
 *   type                INT4 or E4M3: of dst
 *   src_type            f32, bf16 or f16
 *   scale_type          INT4: f32, bf16, f16; E4M3: f32; NONE = f32
 *   layout              of scale: MN_MAJOR or K_MAJOR
 *   groups              0 = 1
 *   weight_group_size   INT4: 32, 64, 128, 0 = all of k; E4M3: 0
 *   src                 [groups, n, k]
 *   dst                 the same shape; INT4: ROW_MAJOR, ld even
 *   scale               K_GROUP shape for INT4, 128X128 shape for E4M3
 */
typedef struct halfbyte_weight_quantization {
    size_t struct_size;
    halfbyte_type type;
    halfbyte_type src_type;
    halfbyte_type scale_type;
    halfbyte_scale_layout layout;
    uint32_t flags;
    int64_t n, k, groups;
    int64_t weight_group_size;
    halfbyte_matrix_in src;
    halfbyte_matrix_out dst;
    halfbyte_scale_out scale;
} halfbyte_weight_quantization;

/* ERR_INVALID_ARGUMENT, ERR_MISALIGNED, ERR_UNSUPPORTED.  Host memory and the CPU whatever the
 * device: the threads of a MODEL device, one thread with any other or NULL. */
HALFBYTE_API halfbyte_status
halfbyte_quantize_weights(halfbyte_device *device, const halfbyte_weight_quantization *arguments);

/* The reverse, to f32: dst = q * scale (fp32 product).  Reads arguments->dst and ->scale as inputs
 * and writes out [groups, n, k] f32; src is ignored.  Errors as above. */
HALFBYTE_API halfbyte_status
halfbyte_dequantize_weights(halfbyte_device *device, const halfbyte_weight_quantization *arguments,
                            const halfbyte_matrix_out *out);

/* ---------------------------------------------------------------------------------------------
 * The instruction itself
 *
 * One wgmma dot product on the CPU: *d = dot(a, b) + c in the tensor core's arithmetic
 * (docs/numerics.md section 2).  For kernel authors who need an oracle.
 *   type    e4m3, e5m2: a and b hold 32 bytes; bf16, f16: 16 two-byte elements
 *   c, *d   fp32 bit patterns
 * ERR_INVALID_ARGUMENT, ERR_UNSUPPORTED.
 */
HALFBYTE_API halfbyte_status halfbyte_tensor_core_dot(halfbyte_type type, const void *a,
                                                      const void *b, uint32_t c, uint32_t *d);

/* ---------------------------------------------------------------------------------------------
 * Initialisers: all defaults, struct_size set
 */
#define HALFBYTE_DEFINE_INIT_(name)                                                                \
    static inline name name##_init(void)                                                           \
    {                                                                                              \
        name value;                                                                                \
        memset(&value, 0, sizeof value);                                                           \
        value.struct_size = sizeof value;                                                          \
        return value;                                                                              \
    }
HALFBYTE_DEFINE_INIT_(halfbyte_device_options)
HALFBYTE_DEFINE_INIT_(halfbyte_problem)
HALFBYTE_DEFINE_INIT_(halfbyte_operands)
HALFBYTE_DEFINE_INIT_(halfbyte_int4_desc)
HALFBYTE_DEFINE_INIT_(halfbyte_activation_quantization)
HALFBYTE_DEFINE_INIT_(halfbyte_weight_quantization)
#undef HALFBYTE_DEFINE_INIT_

#ifdef __cplusplus
}
#endif

#endif /* HALFBYTE_H */
