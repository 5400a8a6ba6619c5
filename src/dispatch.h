/* The table of kernels, and which of them runs. */
#ifndef TARN_DISPATCH_H
#define TARN_DISPATCH_H

#include "families.h"
#include "problem.h"

/* Each is one idea; those with vectors are compiled for several families. */
typedef enum {
    ENGINE_SPEC,             /* src/spec: everything */
    ENGINE_SMALL,            /* one plane of few taps, in plain C */
    ENGINE_FORWARD,          /* values, winners, indices and tangents of max, min and avg */
    ENGINE_LANES,            /* the same, a plane for each lane of a vector */
    ENGINE_LONG,             /* the same, of windows that are long runs of elements */
    ENGINE_BACKWARD_MEAN,    /* gradients of avg */
    ENGINE_BACKWARD_WINNERS, /* gradients of max and min */
    ENGINE_TIES,             /* derivatives of max and min that equal taps share */
    ENGINE_WEIGHTS,          /* smooth max and lp */
    ENGINE_SKIPPING,         /* max, min, avg where taps are skipped */
    ENGINE_WIDE_MEANS,       /* avg of 64-bit integers */
    ENGINE_HALVES,           /* avg of pairs of integers */
    ENGINE_MODE              /* mode of few taps */
} tarn_engine_id;

/* One row of kernels.def. */
typedef struct tarn_kernel_row {
    uint32_t isa; /* the families it is part of */
    tarn_engine_id engine;
    bool (*accepts)(const tarn_problem *problem, tarn_pass pass);
    tarn_kernel *run;
    const char *name;
} tarn_kernel_row;

extern const tarn_kernel_row tarn_kernel_rows[];
extern const int tarn_kernel_row_count;

/* Every kernel function is declared from the table, so no second list can fall behind it. */
#define KERNEL(isa, engine, accepts, function) tarn_kernel function;
#include "kernels.def"

/* The kernel for a pass, of the families in the mask `isa`; the specification stands in for what
 * they cannot do. NULL if the mask is empty, or if the dtype or the operator is not compiled. */
const tarn_kernel_row *tarn_choose_kernel(const tarn_problem *problem, tarn_pass pass,
                                          uint32_t isa);

/* The engine that saves the winners of max or min with vectors of so many bytes. */
tarn_engine_id tarn_engine_of_winners(const tarn_problem *problem, int64_t vector);

/* A few words on what the engine of a chosen kernel does, and why it was taken. */
const char *tarn_why_kernel(const tarn_problem *problem, tarn_pass pass,
                            const tarn_kernel_row *row);

bool tarn_is_compiled(tarn_op op, tarn_dtype dtype);

/* "spec", "portable", ...: of the mask's widest family. */
const char *tarn_isa_name(uint32_t isa);

/* The family that has a name, as a mask; 0 if none has. */
uint32_t tarn_isa_named(const char *name, size_t length);

/* Whether the compiler kept to IEEE arithmetic, operation by operation; found out at the first
 * call. */
bool tarn_arithmetic_is_exact(void);

#endif
