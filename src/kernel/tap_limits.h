/* What small.c and mode.c take, for them and for choose.c. */
#ifndef TARN_TAP_LIMITS_H
#define TARN_TAP_LIMITS_H

#include "../problem.h"

enum {
    MOST_SMALL_TAPS = 32, /* of all windows: what vectors take no longer for */
    MOST_SMALL_SIDE = 4,  /* of a window whose taps are summed */
    MOST_MODE_TAPS = 16   /* of a window, each compared with all */
};

static inline int64_t taps_of(const tarn_problem *problem)
{
    int64_t taps = 1;
    for (int a = 0; a < problem->spatial; a++)
        taps *= problem->axis[a].kernel;
    return taps;
}

#endif
