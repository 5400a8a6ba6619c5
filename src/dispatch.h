/* CPU features x kernel table -> the kernel to call. */
#ifndef TARN_DISPATCH_H
#define TARN_DISPATCH_H

#include "families.h"
#include "problem.h"

/* One row of kernels.def. */
typedef struct tarn_kernel_row {
    uint32_t isa;
    tarn_op op;
    tarn_pass pass;
    tarn_dtype dtype;
    bool (*accepts)(const tarn_problem *problem);
    tarn_kernel *run;
    const char *name;
} tarn_kernel_row;

extern const tarn_kernel_row tarn_kernel_rows[];
extern const int tarn_kernel_row_count;

/* Every kernel function is declared from the table, so no second list can fall behind it. */
#define KERNEL(isa, op, pass, dtype, accepts, function) tarn_kernel function;
#include "kernels.def"

/* The last row that fits the problem and the mask of allowed ISAs; NULL if none does. */
const tarn_kernel_row *tarn_choose_kernel(const tarn_problem *problem, tarn_pass pass,
                                          uint32_t isa);

/* "spec", "portable", ...; NULL beyond the last. */
const char *tarn_isa_name(int bit);

#endif
