/* What engines take, for them and for choose.c. */
#ifndef TARN_TAP_LIMITS_H
#define TARN_TAP_LIMITS_H

#include "../problem.h"

enum {
    MOST_SMALL_TAPS = 32, /* of all windows: what vectors take no longer for */
    MOST_SMALL_SIDE = 4,  /* of a window whose taps are summed */
    MOST_HALVED = 4,      /* rows of which pairs are averaged */
    MOST_MODE_TAPS = 125, /* of a window, each compared with all; counts of them fit a byte */
    MOST_PICKED = 64      /* stride of windows that slide and are picked: of more columns, few are
                             wanted */
};

static inline int64_t taps_of(const tarn_problem *problem)
{
    int64_t taps = 1;
    for (int a = 0; a < problem->spatial; a++)
        taps *= problem->axis[a].kernel;
    return taps;
}

/* Whether the numbers of taps, and beyond them those of padding, fit 32 bits, or the 64 of the
 * widest types: see set_codes() in forward.c. */
static inline bool codes_fit(const tarn_problem *problem)
{
    int64_t kernel = problem->axis[problem->spatial - 1].kernel;
    return tarn_dtype_size(problem->dtype) == 8 || taps_of(problem) < (INT64_C(1) << 32) - kernel;
}

/* Cells that n windows read at most, with all between them. All windows have the whole axis if few
 * cells are left over: then runs of cells go on over the next axis. */
static inline int64_t cells_of(const tarn_axis *axis, int64_t n)
{
    int64_t cells;
    if (axis->adaptive) /* with q = whole/windows, window o lies between o*q - 1 and (o+1)*q + 1 */
        cells = muldiv_ceil(n, axis->whole, axis->windows) + 2;
    else
        cells = (n - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1;
    return cells >= (n == axis->out ? axis->size - axis->size / 4 : axis->size) ? axis->size
                                                                                : cells;
}

#endif
