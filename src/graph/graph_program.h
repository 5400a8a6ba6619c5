/* A program: steps over places in buffers. Made by graph_compile.c, packed by graph_arena.c, run by
 * graph_run.c. Tests read it to verify the plan of the memory on their own. */
#ifndef TARN_GRAPH_PROGRAM_H
#define TARN_GRAPH_PROGRAM_H

#include "graph.h"

typedef enum tarn_role {
    ROLE_VALUE,
    ROLE_TANGENT,
    ROLE_GRADIENT, /* of a value, or one of several contributions to it */
    ROLE_SAVED     /* winners */
} tarn_role;

/* A stretch of memory. base 0 is the arena; every other base is a pointer of the caller or a
 * constant, and then the offset is 0. */
typedef struct tarn_buffer {
    int base;
    int64_t offset, bytes;
    int first, last; /* steps that touch it first and last; first > last: none */
    tarn_value value;
    tarn_role role;
    bool written;
} tarn_buffer;

#define NO_BUFFER (-1)

/* A tensor inside a buffer. */
typedef struct tarn_place {
    int buffer; /* NO_BUFFER: none */
    int64_t offset, bytes;
} tarn_place;

/* A place that a step touches; base and at are settled when the arena is packed. */
typedef struct tarn_ref {
    tarn_place place;
    int base; /* -1: none */
    int64_t at;
} tarn_ref;

typedef enum tarn_step_kind {
    STEP_FORWARD, /* writes y [saved], reads x */
    STEP_JVP,     /* writes dy [y], reads dx [x] */
    STEP_VJP,     /* writes gx, reads gy [x or saved] */
    STEP_SUM,     /* writes y, reads any number */
    STEP_SCALE,   /* writes y, reads x */
    STEP_INTO,    /* writes the box of y, reads x */
    STEP_OUT_OF,  /* writes y, reads the box of x */
    STEP_ZERO,    /* writes y */
    STEP_CUSTOM_FORWARD,
    STEP_CUSTOM_JVP,
    STEP_CUSTOM_VJP
} tarn_step_kind;

typedef struct tarn_step {
    tarn_step_kind kind;
    tarn_value node;
    int first, written, count; /* refs: [first,first+written) are written, the rest is read */
    const tarn_plan *plan;
    bool with_value, with_saved;              /* JVP: y is written; VJP: winners are read */
    const struct tarn_arithmetic *arithmetic; /* of sums and products */
    int64_t detail; /* index of the box, or of the first view of a custom step */
    double factor;
    const tarn_custom_node *custom;
} tarn_step;

/* A dense small tensor inside a large one, in bytes: contiguous runs at the crossings of axes. */
typedef struct tarn_inset {
    int axes;
    int64_t size[TARN_MAX_SPATIAL + 1], stride[TARN_MAX_SPATIAL + 1];
    int64_t offset, run;
} tarn_inset;

struct tarn_program {
    tarn_allocator allocator;
    tarn_request request; /* its pointers are NULL */
    int inputs, outputs;
    int base_inputs, base_outputs, base_seeds, base_results, base_constants, bases;
    int *external;            /* by base: its buffer, or NO_BUFFER if it is not used */
    char **base;              /* by base: the pointer of this run */
    int *external_alignment;  /* by base: bytes of an element */
    int *by_address, tensors; /* the bases of the caller's tensors, as they lay in the last run */
    tarn_list steps, refs, buffers, boxes, views, plans;
    tarn_place *place; /* of every value of the graph, for drawings; NO_BUFFER: not computed */
    int values;
    void *memory; /* the arena, as allocated */
    tarn_memory report;
};

static inline tarn_step *program_step(const tarn_program *p, int64_t k)
{
    return (tarn_step *)p->steps.items + k;
}

static inline tarn_ref *program_ref(const tarn_program *p, int64_t k)
{
    return (tarn_ref *)p->refs.items + k;
}

static inline tarn_buffer *program_buffer(const tarn_program *p, int64_t k)
{
    return (tarn_buffer *)p->buffers.items + k;
}

/* Gives every buffer of the arena its offset and every ref its place; allocates the arena. */
tarn_status tarn_pack_arena(tarn_program *program, tarn_error *error);

/* Runs step k; bases are set. */
tarn_status tarn_run_step(tarn_program *program, int64_t k, tarn_error *error);

/* Sums and products of `count` elements of one dtype. Steps point at their row, so that the tests
 * can run a program in exact arithmetic, as it is, by giving its steps another row. */
typedef struct tarn_arithmetic {
    size_t element_bytes;
    /* y may be one of the operands. */
    void (*sum)(const tarn_program *program, const tarn_ref *y, const tarn_ref *x, int operands,
                int64_t count);
    void (*scale)(const char *x, char *y, double factor, int64_t count); /* NULL for integers */
} tarn_arithmetic;

const tarn_arithmetic *tarn_arithmetic_of(tarn_dtype dtype);
void tarn_copy_box(const tarn_inset *box, char *large, char *small, bool into);

static inline char *program_at(const tarn_program *p, const tarn_ref *ref)
{
    return ref->base < 0 ? NULL : p->base[ref->base] + ref->at;
}

#endif
