/* What small.c takes, for it and for choose.c. */
#ifndef TARN_TAP_LIMITS_H
#define TARN_TAP_LIMITS_H

#include "../problem.h"

enum {
    MOST_SMALL_TAPS = 32, /* of all windows: what vectors take no longer for */
    MOST_SMALL_SIDE = 4   /* of a window whose taps are summed */
};

static inline int64_t taps_of(const tarn_problem *problem)
{
    int64_t taps = 1;
    for (int a = 0; a < problem->spatial; a++)
        taps *= problem->axis[a].kernel;
    return taps;
}

#endif
