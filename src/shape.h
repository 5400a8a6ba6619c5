/* Descriptor + input shape -> checked axes. */
#ifndef TARN_SHAPE_H
#define TARN_SHAPE_H

#include "problem.h"

/* Checks one descriptor against the input's dtype and shape and fills the problem's operator, axes
 * and winner width. Every entry point that pools or asks for a shape comes through here. */
tarn_status tarn_check_pool(const tarn_pool *pool, const tarn_view *x, tarn_problem *problem,
                            tarn_error *error);

/* Adaptive windows that divide their axis evenly are sliding ones [W4]: every engine does better
 * with these. For kernels only, as pieces must know what was asked for. */
void tarn_slide_even_windows(tarn_problem *problem);

/* The shape of the output: leading axes as x, then the windows (none if flat). */
void tarn_output_shape(const tarn_pool *pool, const tarn_view *x, const tarn_problem *problem,
                       tarn_view *y);

static inline bool is_floating(tarn_dtype dtype)
{
    return dtype <= TARN_BF16;
}

#endif
