/* Geometry of rows: how many results fit a row buffer, and which columns they need. */
#ifndef TARN_COLUMNS_H
#define TARN_COLUMNS_H

#include "../problem.h"

/* Elements of a row buffer: 2 to 8 KiB, by the type of sums. Rows live on the stack, one for each level
 * of halving: a window of 2^10 rows takes ten. */
#define CAPACITY 512

static inline int64_t window_extent(const tarn_axis *axis)
{
    return axis->adaptive ? axis->kernel : (axis->kernel - 1) * axis->dilation + 1;
}

/* Windows [*first,*end) that read any of the cells [from,to), borders ignored. */
static inline void windows_of_cells(const tarn_axis *axis, int64_t from, int64_t to, int64_t *first,
                                    int64_t *end)
{
    if (axis->adaptive) {
        *first = muldiv_floor(from, axis->out, axis->size);
        *end = muldiv_ceil(to, axis->out, axis->size);
    } else {
        *first = ceil_div(from + axis->lo - (window_extent(axis) - 1), axis->stride);
        *end = floor_div(to - 1 + axis->lo, axis->stride) + 1;
    }
}

/* Columns that the windows [from,to) span. */
static inline int64_t columns_of_windows(const tarn_axis *axis, int64_t from, int64_t to)
{
    tarn_span first = window_taps(axis, from), last = window_taps(axis, to - 1);
    return last.first - first.first + (axis->adaptive ? last.n : window_extent(axis));
}

/* Whether the results [from,to) need no row longer than `room`. */
static inline bool results_fit(const tarn_axis *axis, bool backward, int64_t from, int64_t to,
                               int64_t room)
{
    if (!backward)
        return to - from <= room && columns_of_windows(axis, from, to) <= room;
    int64_t first, end;
    windows_of_cells(axis, from, to, &first, &end);
    if (to - from > room || end - first > room)
        return false;
    first = max_i64(first, 0);
    end = min_i64(end, axis->out);
    return end <= first || columns_of_windows(axis, first, end) <= room;
}

/* The greatest number of results from `from` on, at most `most`, that fits; 0 if one does not. */
static inline int64_t strip_length(const tarn_axis *axis, bool backward, int64_t from, int64_t most,
                                   int64_t room)
{
    int64_t good = 0, step = 1;
    if (results_fit(axis, backward, from, from + most, room))
        return most;
    if (!backward && !axis->adaptive)
        return room < window_extent(axis) ? 0 : (room - window_extent(axis)) / axis->stride + 1;
    while (step <= most - good && results_fit(axis, backward, from, from + good + step, room)) {
        good += step;
        step *= 2;
    }
    for (; step > 0; step /= 2)
        if (step <= most - good && results_fit(axis, backward, from, from + good + step, room))
            good += step;
    return good;
}

/* How many lanes a strip takes: as many as leave room for a few results. */
static inline int64_t lane_block(const tarn_problem *p, bool backward, int64_t most)
{
    const tarn_axis *axis = &p->axis[p->spatial - 1];
    int64_t lanes = min_i64(p->lanes, most), results = backward ? axis->size : axis->out;
    while (lanes > 1 && !results_fit(axis, backward, 0, min_i64(4, results), CAPACITY / lanes))
        lanes = (lanes + 1) / 2;
    return lanes;
}

/* Whether no cell is read by more than two windows: then their order does not matter. */
static inline bool at_most_two_windows(const tarn_axis *axis)
{
    return axis->adaptive ? axis->out <= axis->size
                          : axis->dilation == 1 && (axis->kernel - 1) / 2 < axis->stride;
}

/* Whether columns are combined by doubling, for all windows at once, or list by list: doubling costs
 * log2(kernel) operations a column, a list one a tap. */
static inline bool combines_by_doubling(const tarn_axis *axis, int64_t stride)
{
    int64_t levels =
        axis->kernel > 1 ? 64 - __builtin_clzll((unsigned long long)axis->kernel - 1) : 0;
    return !axis->adaptive && (axis->kernel <= 8 || stride < axis->kernel / levels);
}

#endif
