/* The engines over row operations: plain C, compiled once. A kernel of the table
 * (src/kernels.def) is an engine with the row operations of one instruction set. */
#ifndef TARN_ENGINES_H
#define TARN_ENGINES_H

#include "row_ops.h"
#include "tie_ops.h"
#include "weight_ops.h"

/* As tarn_kernel, with the row operations to use. The pass is told by the tensors there are. */
typedef void tarn_engine(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                         int64_t end, const tarn_row_ops *ops);

/* ... from x to y, or by the same arithmetic from dx to dy: tangents of averages. */
typedef void tarn_engine_pass(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                              int64_t end, const tarn_row_ops *ops, int in, int out);

static inline void run_passes(tarn_engine_pass *run, const tarn_problem *p, const tarn_tensors *t,
                              int64_t begin, int64_t end, const tarn_row_ops *ops)
{
    bool tangents_of_means = p->op == TARN_AVG && t->base[TARN_DY];
    if (t->base[TARN_Y] || !tangents_of_means)
        run(p, t, begin, end, ops, TARN_X, TARN_Y);
    if (tangents_of_means)
        run(p, t, begin, end, ops, TARN_DX, TARN_DY);
}

/* Terms of sums, and means, in f64 or f32: as row operations have them. */
static inline void make_terms(const tarn_row_ops *ops, bool wide, tarn_dtype dtype, void *to,
                              const void *from, int64_t n)
{
    if (wide)
        ops->terms_f64[dtype](to, from, n);
    else
        ops->terms_f32[dtype](to, from, n);
}

static inline void make_means(const tarn_row_ops *ops, bool wide, tarn_dtype dtype, void *to,
                              const void *sums, const void *divisors, int64_t step, int64_t n)
{
    if (wide)
        ops->means_f64[dtype](to, sums, divisors, step, n);
    else
        ops->means_f32[dtype](to, sums, divisors, step, n);
}

/* A divisor of means. */
static inline void put_one_divisor(bool wide, void *to, int64_t divisor)
{
    const float single = (float)divisor;
    const double twice = (double)divisor;
    memcpy(to, wide ? (const void *)&twice : &single, wide ? sizeof twice : sizeof single);
}

tarn_engine tarn_engine_forward; /* max, min, avg: values, winners, indices, JVP (rule `first`) */
tarn_engine tarn_engine_lanes;   /* the same */
tarn_engine tarn_engine_long;    /* the same */
tarn_engine tarn_engine_backward_mean; /* avg: VJP; then the same in scratch that is given */
void tarn_backward_mean_in(char *scratch, int64_t bytes, const tarn_problem *problem,
                           const tarn_tensors *tensors, int64_t begin, int64_t end,
                           const tarn_row_ops *ops);
tarn_engine
    tarn_engine_backward_winners;   /* max, min, rule `first`: VJP from saved winners, and from x */
tarn_engine tarn_engine_skipping;   /* max, min, avg with skipped taps, no gradients of extremes */
tarn_engine tarn_engine_wide_means; /* avg of 64-bit integers: forward */
tarn_engine tarn_engine_halves;     /* avg of pairs of integers: forward */
tarn_engine tarn_engine_mode;       /* mode of integers, of few taps */

/* The same with operations of their own. */
void tarn_engine_weights(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                         int64_t end, const tarn_weight_ops *ops); /* smooth max, lp */
void tarn_engine_ties(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                      int64_t end,
                      const tarn_tie_ops *ops); /* max, min, rules `all` and `split`: derivatives */

/* Whether no cell has two windows, and pixels are long enough; then their gradient. mean_apart.c */
bool tarn_means_are_apart(const tarn_problem *p);
void tarn_spread_means(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                       int64_t end, const tarn_row_ops *ops);

#endif
