/* How many taps the vector kernels take, for them and for the predicates that choose them. */
#ifndef TARN_TAP_LIMITS_H
#define TARN_TAP_LIMITS_H

#include "../problem.h"

enum {
    LONGEST_KERNEL = 64,      /* of windows that slide, on an axis */
    MOST_INDEXED_TAPS = 1024, /* of a window whose winners are asked for as cells of the input: they are listed */
    MOST_PIXEL_TAPS = 16,     /* that pixels.inc reads one by one; more are shared between windows */
    MOST_SMALL_TAPS = 32,     /* of all windows, in small.inc: what vectors take no longer for */
    MOST_SMALL_SIDE = 4,      /* of a window there whose taps are summed */
    MOST_NARROW_TAPS = 5,     /* of a row, in narrow.inc */
    NARROW_BYTES = 48 << 10,  /* of a buffer there: three rows of 4096 numbers ... */
    NARROW_USUAL = 16 << 10   /* ... and, where rows are shorter, what the level-1 cache holds twice */
};

static inline int64_t taps_of(const tarn_problem *problem)
{
    int64_t taps = 1;
    for (int a = 0; a < problem->spatial; a++)
        taps *= problem->axis[a].kernel;
    return taps;
}

/* Whether a result is larger than caches usually are: lines of memory need not be read before they are overwritten. */
static inline bool bypasses_caches(const tarn_problem *problem, int operand)
{
    int64_t elements = problem->planes * problem->lanes;
    for (int a = 0; a < problem->spatial; a++)
        elements *= operand == TARN_GX ? problem->axis[a].size : problem->axis[a].out;
    return elements >= problem->cache_bytes / problem->element_bytes[operand];
}

/* Elements that a row must have there to be folded in vectors of `lanes` windows, padding aside. */
static inline int64_t narrow_least(int64_t lanes, int64_t taps, int64_t stride)
{
    return lanes * stride + 2 * taps;
}

/* Columns of outputs that are in hand at once where planes are interleaved. */
static inline int64_t narrow_columns(const tarn_problem *problem)
{
    enum { ELEMENTS = 1024 };
    int64_t columns = problem->axis[1].out;
    return ceil_div(columns, ceil_div(columns, max_i64(1, ELEMENTS / problem->lanes)));
}

/* Rows of outputs that narrow.inc folds at once, if rows have so many elements of so many bytes; 0 if that is too much
 * for it. */
static inline int64_t narrow_rows(const tarn_axis *down, int64_t elements, int64_t element_bytes)
{
    int64_t most = NARROW_BYTES / element_bytes / elements;
    int64_t usual = max_i64(NARROW_USUAL / element_bytes / elements, down->kernel + 11 * down->stride);
    int64_t reads = min_i64(most, usual);
    return reads < down->kernel ? 0 : (reads - down->kernel) / down->stride + 1;
}

#endif
