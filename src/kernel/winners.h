/* VJP of max and min, rule `first`: every window's gradient goes to the cell that won it [M6],
 * in the order of S5. Shared by the files of the engine.
 *
 *     winners.c        the way that is taken
 *     winners_asked.c  sliding windows of few taps: each cell asks its windows, in vectors
 *     winners_pixels.c channels last: the same in place, pixel by pixel
 *     winners_scatter.c all others: runs of windows with one winner, added to its cell
 *     winners_found.c  without saved winners: the forward engine finds those of some windows first
 *     winners_huge.c   ... of huge windows
 */
#ifndef TARN_WINNERS_H
#define TARN_WINNERS_H

#include "engines.h"

enum { MOST_LANES = 16 }; /* of a vector of f32 */

typedef struct range {
    int64_t lo, hi;
} range;

static inline int64_t length(range r)
{
    return r.hi - r.lo;
}

static inline int64_t extent_of(const tarn_axis *axis)
{
    return axis->adaptive ? axis->kernel : axis->dilation * (axis->kernel - 1) + 1;
}

static inline int64_t window_start(const tarn_axis *axis, int64_t o)
{
    return axis->adaptive ? adaptive_start(axis, o) : o * axis->stride - axis->lo;
}

static inline int64_t window_end(const tarn_axis *axis, int64_t o)
{
    return axis->adaptive ? adaptive_end(axis, o) : window_start(axis, o) + extent_of(axis);
}

/* Whether a cell may have two windows on the axis. */
static inline bool tarn_windows_overlap(const tarn_axis *axis)
{
    return axis->out > 1 &&
           (axis->adaptive ? axis->whole % axis->windows != 0 : axis->kernel > axis->tap_step);
}

/* All windows that may read some cells; none if hi <= lo. */
static inline range tarn_windows_reading(const tarn_axis *axis, range cells)
{
    if (axis->adaptive)
        return (range){first_adaptive(axis, cells.lo), end_adaptive(axis, cells.hi)};
    return (range){max_i64(floor_div(cells.lo + axis->lo - extent_of(axis), axis->stride) + 1, 0),
                   min_i64(floor_div(cells.hi - 1 + axis->lo, axis->stride) + 1, axis->out)};
}

/* The windows that read a cell, less one: at most. */
static inline int64_t windows_behind(const tarn_axis *axis)
{
    int64_t most = axis->adaptive ? ceil_div(axis->windows, axis->whole) + 1
                                  : (axis->kernel - 1) / axis->tap_step + 1;
    return min_i64(most, axis->out) - 1;
}

/* Planes from the unit `begin` on that are whole, and of one leading axis; 0 if not even one is. */
static inline int64_t tarn_whole_planes(const tarn_problem *p, int64_t begin, int64_t end)
{
    int64_t size = p->axis[0].size;
    if (begin % size != 0 || end - begin < size)
        return 0;
    if (p->leading == 0)
        return 1;
    int64_t along = p->lead_size[p->leading - 1];
    return min_i64((end - begin) / size, along - begin / size % along);
}

/* Boxes of at most that size, one after the other; false at the end. */
static inline void tarn_first_box(range *cells, const range *all, const int64_t *size, int axes)
{
    for (int a = 0; a < axes; a++)
        cells[a] = (range){all[a].lo, min_i64(all[a].lo + size[a], all[a].hi)};
}

static inline bool tarn_next_box(range *cells, const range *all, const int64_t *size, int axes)
{
    for (int a = axes - 1; a >= 0; a--) {
        bool more = cells[a].hi < all[a].hi;
        cells[a].lo = more ? cells[a].hi : all[a].lo;
        cells[a].hi = min_i64(cells[a].lo + size[a], all[a].hi);
        if (more)
            return true;
    }
    return false;
}

/* Whether pixels can ask their windows in place; then their gradients, as tarn_run_winners(). */
bool tarn_pixels_can_ask(const tarn_problem *p, const tarn_row_ops *ops);
void tarn_ask_pixels(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                     const range *box, const tarn_row_ops *ops);

/* Windows that a box has for each that begins in it, if cells can ask them, else 0; then their
 * gradients, as tarn_run_winners(). */
double tarn_windows_asked(const tarn_problem *p, const tarn_row_ops *ops);
void tarn_ask_windows(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops);

/* Whether scratch is enough for windows that overlap; then the gradients of any windows, as
 * tarn_run_winners(). */
bool tarn_can_scatter(const tarn_problem *p, const tarn_row_ops *ops);
void tarn_scatter_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const range *box, const tarn_row_ops *ops);

/* Whether cells of 16 bits have the numbers of their sums, as few of them win. */
static inline bool tarn_sums_are_numbered(const tarn_problem *p)
{
    enum { CELLS_PER_WINDOW = 8 };
    double windows = 1, cells = 1;
    for (int a = 0; a < p->spatial; a++) {
        windows *= (double)p->axis[a].out;
        cells *= (double)p->axis[a].size;
    }
    return p->element_bytes[TARN_GX] == 2 && cells > CELLS_PER_WINDOW * windows;
}

/* The gradient of some units, from saved winners, in a box of cells if one is given (its range on
 * the first axis is that of the units); and from x. */
void tarn_run_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops);
void tarn_find_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const tarn_row_ops *ops);

tarn_kernel tarn_spec;

#endif
