/* The engines over row operations: plain C, compiled once. A kernel of the table
 * (src/kernels.def) is an engine with the row operations of one instruction set. */
#ifndef TARN_ENGINES_H
#define TARN_ENGINES_H

#include "row_ops.h"
#include "tie_ops.h"
#include "weight_ops.h"

/* As tarn_kernel, with the row operations to use. The pass is told by the tensors that are there.
 * */
typedef void tarn_engine(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                         int64_t end, const tarn_row_ops *ops);

tarn_engine tarn_engine_forward; /* max, min, avg: values, winners, indices, JVP (rule `first`) */
tarn_engine tarn_engine_lanes;   /* the same */
tarn_engine tarn_engine_long;    /* the same */
tarn_engine tarn_engine_backward_mean; /* avg: VJP */
tarn_engine
    tarn_engine_backward_winners; /* max, min, rule `first`: VJP from saved winners, and from x */
tarn_engine tarn_engine_skipping; /* max, min, avg with skipped taps: forward */
tarn_engine tarn_engine_mode; /* mode of integers, of few taps */

/* The same with operations of their own. */
void tarn_engine_weights(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                         int64_t end, const tarn_weight_ops *ops); /* smooth max, lp */
void tarn_engine_ties(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                      int64_t end,
                      const tarn_tie_ops *ops); /* max, min, rules `all` and `split`: derivatives */

#endif
