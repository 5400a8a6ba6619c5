/* A plan: the checked problem, the layouts it was made for, and a kernel for each pass. */
#ifndef TARN_PLAN_H
#define TARN_PLAN_H

#include "dispatch.h"
#include "layout.h"

struct tarn_plan {
    tarn_problem problem;
    tarn_view view[OPERANDS];     /* layouts, without data */
    tarn_extent extent[OPERANDS]; /* bytes each tensor may touch */
    const tarn_kernel_row *kernel[TARN_PASSES];
    uint32_t isa; /* families that were allowed */
    tarn_executor executor;
    tarn_allocator allocator;
};

/* tarn_plan_create() without the allocation. On error *plan holds nothing of use. */
tarn_status tarn_plan_init(tarn_plan *plan, const tarn_pool *pool, const tarn_view *x,
                           const tarn_options *options, tarn_error *error);

/* Whether a problem has a pass: winners where there are any, derivatives of floating types. */
bool tarn_pass_exists(const tarn_problem *problem, tarn_pass pass);

/* What is said of a pass that it does not have. */
tarn_status tarn_no_derivative(const tarn_problem *problem, tarn_error *error);
tarn_status tarn_no_winners(const tarn_problem *problem, const char *what, tarn_error *error);

/* "x", "y", "dx", ... */
const char *tarn_operand_name(int operand);

#endif
