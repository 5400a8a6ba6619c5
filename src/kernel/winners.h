/* VJP of max and min, rule `first`: every window's gradient goes to the cell that won it [M6],
 * in the order of S5. Shared by the files of the engine.
 *
 *     winners.c        planes, or bands of one, fill the lanes of vectors
 *     winners_lanes.c  windows to scratch, cells back: [window][lane], [cell][lane]
 *     winners_apart.c  windows that have no cell in common
 *     winners_rows.c   sliding windows of few taps: rows of sums are added up
 *     winners_pixels.c channels last, few windows to a cell: in place
 *     winners_runs.c   the windows of a row that one cell won, a run, are summed, then added to it
 *     winners_scatter.c window by window, with sums for each axis
 *     winners_found.c  without saved winners: the forward engine finds those of some windows first
 *     winners_huge.c   ... of huge windows
 *
 * In scratch a lane is a plane, or a part of one, and all lanes have the same windows: so every
 * vector operation works on as many planes. Channels last, lanes are channels, where they lie;
 * otherwise rows of as many planes are turned. Channels too few for a vector stay side by side
 * in their rows, as columns of their own.
 */
#ifndef TARN_WINNERS_H
#define TARN_WINNERS_H

#include "engines.h"

enum {
    SCRATCH_BYTES = 30 << 10,
    MOST_LANES = 16 /* rows that are turned together */
};

typedef struct range {
    int64_t lo, hi;
} range;

static inline int64_t length(range r)
{
    return r.hi - r.lo;
}

/* Where a lane has its plane, and how much further on the first axis it is than the first lane. */
typedef struct winners_lane {
    char *gy, *saved, *gx; /* element 0,...,0 */
    int64_t cells, windows;
    int64_t first_unit; /* of the plane */
} winners_lane;

typedef struct winners_job {
    const tarn_problem *p;
    const tarn_tensors *tensors;
    const tarn_row_ops *ops;
    char *scratch;
    int last;           /* axis */
    int wide;           /* 1 if sums are f64, else 0 */
    bool pixels;        /* lanes are channels; otherwise rows are turned */
    int64_t channels;   /* side by side in rows that are turned */
    int64_t lanes;      /* of a window or cell in scratch, a vector */
    int64_t code_lanes; /* ... of its codes */
    int64_t cell_bytes; /* of either */

    /* The lanes in hand. */
    winners_lane lane[MOST_LANES];
    int used;
    range box[TARN_MAX_SPATIAL]; /* cells, those of the first lane on the first axis */
    int64_t end;                 /* ... where cells of all lanes end there */
    range windows;               /* ... that exist for some lane */
    bool bands;                  /* lanes are further on than the first */
} winners_job;

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

/* All windows that may read the cells [lo,hi) of an axis, in the first lane's numbers. */
range tarn_windows_of(const winners_job *j, int axis, int64_t lo, int64_t hi);
/* Those that read one cell. */
tarn_span tarn_windows_of_cell(const winners_job *j, int axis, int64_t cell);

/* Windows to scratch: some rows and columns; `at` has their places on the axes before. `room` is
 * for the rows that are turned, a cell_bytes for each window. */
void tarn_load_windows(const winners_job *j, const int64_t *at, range rows, range columns, char *gy,
                       int32_t *codes, char *room);
/* Sums of cells to gx; room_cells are turned at a time. */
void tarn_store_cells(const winners_job *j, const int64_t *at, range rows, range columns,
                      const char *sums, char *room, int64_t room_cells);

/* Whether no cell has two windows; then the gradients of some units, as tarn_run_winners(). */
bool tarn_windows_lie_apart(const tarn_problem *p);
/* ... and whether many are at a border, where that takes long. */
bool tarn_borders_are_many(const tarn_problem *p);
void tarn_put_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                        const range *box, const tarn_row_ops *ops);

/* Whether rows of sums fit, of sliding windows; then the gradients, as tarn_run_winners(). */
bool tarn_rows_fit(const tarn_problem *p, const tarn_row_ops *ops);
void tarn_sum_rows(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                   const range *box, const tarn_row_ops *ops);

/* Whether pixels can ask their windows in place; then their gradients, as tarn_run_winners(). */
bool tarn_pixels_can_ask(const tarn_problem *p, const tarn_row_ops *ops);
void tarn_ask_pixels(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                     const range *box, const tarn_row_ops *ops);

/* The gradients of any windows, as tarn_run_winners(). */
void tarn_scatter_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const range *box, const tarn_row_ops *ops);

/* The cells of the lanes in hand. */
void tarn_add_runs(const winners_job *j);

/* The gradient of some units, from saved winners, in a box of cells if one is given (its range on
 * the first axis is that of the units); and from x. */
void tarn_run_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops);
void tarn_find_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const tarn_row_ops *ops);

tarn_kernel tarn_spec;

#endif
