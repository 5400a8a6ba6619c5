/* Shared by backward_mean.c and mean_apart.c. */
#ifndef TARN_MEAN_APART_H
#define TARN_MEAN_APART_H

#include "row_ops.h"

/* [A2] The taps of a window on one axis: a factor of the divisor. */
static inline int64_t counted_taps(const tarn_problem *p, const tarn_axis *axis, int64_t o)
{
    tarn_span taps = window_taps(axis, o);
    return p->count_include_pad ? padded_taps(axis, o) : taps.hi - taps.lo;
}

/* Whether no cell has two windows, and pixels are long enough. */
bool tarn_means_are_apart(const tarn_problem *p);
/* Their gradient. */
void tarn_spread_means(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                       int64_t end, const tarn_row_ops *ops);

#endif
