/* How many taps the vector kernels take, for them and for the predicates that choose them. */
#ifndef TARN_TAP_LIMITS_H
#define TARN_TAP_LIMITS_H

#include "../problem.h"

enum {
    MOST_INDEXED_TAPS = 1024, /* of a window whose winners are asked for as cells of the input: they are listed */
    MOST_PIXEL_TAPS = 16      /* that pixels.inc reads one by one; more are shared between windows */
};

static inline int64_t taps_of(const tarn_problem *problem)
{
    int64_t taps = 1;
    for (int a = 0; a < problem->spatial; a++)
        taps *= problem->axis[a].kernel;
    return taps;
}

#endif
