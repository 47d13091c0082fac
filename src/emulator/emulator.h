/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator: runs kernels written against the Hopper instruction layer on the CPU, while every
 * asynchronous operation completes as early, as late or as oddly as PTX allows, and reports what a
 * correct kernel must not do.  docs/emulator.md explains reports and limits.
 *
 *     emu_memory *memory = emu_memory_create();
 *     emu_memory_add(memory, a, a_bytes, "a", EMU_READ_ONLY);         every buffer the kernel may
 * touch emu_tensor_map_encode(&params.a, &desc); emu_launch launch = {"kernel", kernel, &params,
 * sizeof params, blocks, 1, 384, smem_bytes, 168}; emu_config config = emu_config_default();
 *     emu_report *report = emu_report_create();
 *     emu_run(&config, memory, &launch, 1, report);
 *     emu_report_print(report, stdout);
 *
 * THREADS.  One run at a time a process: fragments in flight are guarded by a signal handler.  Runs
 * are deterministic: the same configuration gives the same schedule, report and output bits.
 */
#ifndef HALFBYTE_EMULATOR_EMULATOR_H
#define HALFBYTE_EMULATOR_EMULATOR_H

#include <stdio.h>

#include "kernels/hopper/emulated/instructions.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------
 * Configuration: one schedule out of all legal ones
 */

/* When an asynchronous operation (copy, wgmma) takes effect. */
typedef enum emu_policy {
    EMU_EARLIEST,   /* as it is issued */
    EMU_LATEST,     /* when every thread waits for something */
    EMU_LIFO,       /* like LATEST, the youngest first where order is free */
    EMU_TORN,       /* half of a copy at once, the rest and its completion like LATEST */
    EMU_DELAY_SITE, /* one site's operations like LATEST, all others like EARLIEST */
    EMU_RANDOM,     /* by seed */
    EMU_POLICY_COUNT
} emu_policy;

/* Which of the threads that can run does. */
typedef enum emu_order {
    EMU_LOW_FIRST,   /* the lowest warp: a producer warp 0 runs ahead */
    EMU_HIGH_FIRST,  /* the highest warp: consumers run ahead */
    EMU_STARVE_WARP, /* config.starved_warp only when nobody else can run */
    EMU_SHUFFLED,    /* by seed */
    EMU_ORDER_COUNT
} emu_order;

/* What a mutant changes at one site; see emu_mutation_kinds(). */
typedef enum emu_mutation {
    EMU_MUTATE_NOTHING,
    EMU_MUTATE_REMOVE,      /* the instruction does nothing */
    EMU_MUTATE_WEAKEN,      /* a wait for n pending groups waits for n + 1 */
    EMU_MUTATE_COUNT_LESS,  /* bytes less 16; arrivals or threads less one (one warp) */
    EMU_MUTATE_COUNT_MORE,  /* bytes plus 16; arrivals or threads plus one (one warp) */
    EMU_MUTATE_FLIP_PARITY, /* a wait for the other phase */
    EMU_MUTATION_COUNT
} emu_mutation;

typedef struct emu_config {
    emu_policy policy;
    emu_order order;
    uint64_t seed;          /* RANDOM, SHUFFLED */
    uint8_t poison;         /* byte of memory that nobody wrote; 0xff is NaN in every float type */
    int starved_warp;       /* STARVE_WARP: warp of each block */
    const char *delay_file; /* DELAY_SITE: the site, by file name (as __FILE__) and line */
    int delay_line;
    const char *mutate_file; /* mutant: the site, as above; NULL = none */
    int mutate_line;
    const char *mutate_instruction; /* tells several instructions of one line apart */
    emu_mutation mutation;
    bool relaxed; /* false: PTX text.  true: what CUTLASS-like kernels rely on (docs/emulator.md) */
    bool no_clocks;     /* switch a detector off: happens-before clocks */
    bool no_guards;     /* guard pages of fragments in flight */
    uint64_t max_steps; /* thread switches before a run is called endless; 0 = 200 million */
} emu_config;

emu_config emu_config_default(void);
const char *emu_policy_name(emu_policy policy);
const char *emu_order_name(emu_order order);
const char *emu_mutation_name(emu_mutation mutation);

/*
 * A configuration as text, for --replay: settings "name=value" joined by commas, those that have
 * their default left out.
 *   policy=earliest|latest|lifo|torn|delay|random   order=low-first|high-first|starve|shuffled
 *   seed=N   poison=HEX   warp=N (starved)   delay=FILE:LINE   mutate=FILE:LINE:INSTRUCTION:KIND
 *   relaxed   no-clocks   no-guards   steps=N
 * format always ends the text with NUL; EMU_CONFIG_TEXT_BYTES suffice unless file names are longer
 * than 400 bytes in all.  parse starts from the defaults; false, and *config untouched, if the text
 * is wrong. File names that it sets live as long as the process.
 */
#define EMU_CONFIG_TEXT_BYTES 640
void emu_config_format(const emu_config *config, char *text, size_t text_bytes);
bool emu_config_parse(emu_config *config, const char *text);

/* ---------------------------------------------------------------------------------------------
 * Global memory
 */
typedef struct emu_memory emu_memory;

typedef enum emu_access { EMU_READ_ONLY, EMU_READ_WRITE } emu_access;

/* NULL if memory is out. */
emu_memory *emu_memory_create(void);
void emu_memory_destroy(emu_memory *memory);

/*
 * Lets kernels touch [data, data + bytes), which the caller keeps; name appears in findings and is
 * copied.  Buffers must not overlap.  False if memory is out.
 */
bool emu_memory_add(emu_memory *memory, const void *data, size_t bytes, const char *name,
                    emu_access access);

/* A tensor map of 1 to 3 dimensions, innermost first, as cuTensorMapEncodeTiled takes it. */
typedef struct emu_tensor {
    const void *data;
    uint32_t element_bytes; /* 1, 2, 4, 8 */
    uint32_t rank;
    uint64_t dims[3];          /* elements */
    uint64_t strides_bytes[3]; /* [1], [2]: between rows and planes, multiples of 16; [0] unused */
    uint32_t box[3];           /* elements, 1 .. 256 */
    uint32_t swizzle;          /* SWIZZLE_* */
} emu_tensor;

/* False, and *map untouched, if cuTensorMapEncodeTiled would refuse it. */
bool emu_tensor_map_encode(tensor_map *map, const emu_tensor *tensor);

/* ---------------------------------------------------------------------------------------------
 * Findings
 */
typedef struct emu_report emu_report;

/* One place in the source. */
typedef struct emu_place {
    const char *file; /* NULL: unknown */
    int line;
    const char *instruction;
} emu_place;

typedef struct emu_finding {
    const char *hazard; /* class of docs/emulator.md: "a" .. "p", "c2", "race" or "memory" */
    const char *title;  /* the class in words */
    char message[320];  /* what happened, first occurrence */
    emu_place place;    /* the access or instruction that is at fault */
    emu_place other;    /* what it conflicts with; file NULL if nothing */
    uint32_t block, thread;
    uint64_t count; /* occurrences with these two places */
} emu_finding;

emu_report *emu_report_create(void);
void emu_report_destroy(emu_report *report);
void emu_report_clear(emu_report *report);
size_t emu_report_count(const emu_report *report);
const emu_finding *emu_report_finding(const emu_report *report, size_t index);

/* Text: one paragraph a finding, with the configuration that replays it.  Nothing if there is none.
 */
void emu_report_print(const emu_report *report, const emu_config *config, FILE *stream);

/* ---------------------------------------------------------------------------------------------
 * Sites: every call of an instruction that runs have met since the process began
 */
size_t emu_site_count(void);
const emu_site *emu_site_at(size_t index);

/* Mutations that make sense at a site, as a set of bits 1 << emu_mutation; 0 = none. */
uint32_t emu_mutation_kinds(const emu_site *site);

/* ---------------------------------------------------------------------------------------------
 * Running
 */
typedef struct emu_launch {
    const char *name;
    void (*kernel)(const void *params);
    const void *params; /* copied, 64-byte aligned, for the run */
    size_t params_bytes;
    uint32_t blocks;
    uint32_t cluster; /* blocks a cluster, divides blocks; 1 = none */
    uint32_t threads; /* a multiple of 32, at most 1,024; at most 8,192 of a cluster, or of a pair
                         of grids */
    uint32_t smem_bytes;
    uint32_t registers; /* a thread at launch, for the setmaxnreg pool; 0 = not checked */
} emu_launch;

typedef enum emu_status {
    EMU_OK,            /* it ran; see the report */
    EMU_STOPPED,       /* a deadlock or endless run was reported and the run ended there */
    EMU_OUT_OF_MEMORY, /* nothing ran */
    EMU_BAD_ARGUMENT
} emu_status;

/*
 * Runs one launch, or two of which the second depends on the first by programmatic dependent
 * launch. Findings are added to report.
 */
emu_status emu_run(const emu_config *config, emu_memory *memory, const emu_launch *launches,
                   size_t count, emu_report *report);

#ifdef __cplusplus
}
#endif

#endif
