/* Boxes of cells or windows, walked row by row, and rows piece by piece; and several small planes
 * at once. */
#ifndef TARN_BOXES_H
#define TARN_BOXES_H

#include "../problem.h"

typedef struct {
    int64_t from[TARN_MAX_SPATIAL], count[TARN_MAX_SPATIAL];
} box;

/* The cells of a slab, or its windows. */
static inline box box_of_slab(const tarn_problem *p, const tarn_slab *slab, bool cells)
{
    box b = {{slab->lo}, {slab->hi - slab->lo}};
    for (int a = 1; a < p->spatial; a++)
        b.count[a] = cells ? p->axis[a].size : p->axis[a].out;
    return b;
}

/* Steps to the next place of a box in row-major order, the last axes left out; false behind the
 * last one. */
static inline bool next_place(int axes, const box *b, int64_t *place)
{
    for (int k = axes - 1; k >= 0; k--) {
        if (++place[k] < b->from[k] + b->count[k])
            return true;
        place[k] = b->from[k];
    }
    return false;
}

/* ---- Cells that the same windows read ------------------------------------------------------- */

/* The windows whose sum a cell gets. Of an axis with one or two, their sum has but one order, so
 * `few` leaves out those that do not exist. */
static inline tarn_span windows_of_cell(const tarn_axis *axis, bool few, int64_t i)
{
    tarn_span windows = cell_windows(axis, i);
    if (few)
        windows = (tarn_span){.n = windows.hi - windows.lo,
                              .hi = windows.hi - windows.lo,
                              .first = span_at(&windows, windows.lo),
                              .step = 1};
    return windows;
}

/* The next cell with other windows than cell i, were the axis endless. Without dilation they change
 * where the first of them ends, or the one after them begins. */
static inline int64_t next_windows(const tarn_axis *axis, bool few, int64_t i,
                                   const tarn_span *windows)
{
    int64_t next = INT64_MAX, after = windows->first + windows->n, end = INT64_MAX;
    if (axis->dilation > 1 || (axis->out <= 2 && !few)) /* nor has the stride to be short */
        return i + 1;
    if (few)
        end = axis->out;
    else if (axis->adaptive)
        end = axis->windows - axis->first;
    if (windows->n > 0) {
        const tarn_span taps = window_taps(axis, windows->first);
        next = min_i64(next, taps.first + taps.n);
    } else if (few) {
        for (after = 0; after < end && window_taps(axis, after).first <= i;)
            after++;
    } else {
        after = (i + axis->lo) / axis->stride + 1;
    }
    return after < end ? min_i64(next, window_taps(axis, after).first) : next;
}

/* [A2] The taps of a window on one axis: a factor of the divisor. */
static inline int64_t counted_taps(const tarn_problem *p, const tarn_axis *axis, int64_t o)
{
    tarn_span taps = window_taps(axis, o);
    return p->count_include_pad ? padded_taps(axis, o) : taps.hi - taps.lo;
}

/* ---- Pieces of rows ------------------------------------------------------------------------- */

enum { PIECE = 128 }; /* numbers that go together */

/* A walk over a box in row-major order, by rows, and these by pieces. */
typedef struct {
    int inner;
    int64_t lanes;
    int64_t place[TARN_MAX_SPATIAL]; /* of the piece */
    int64_t pixels, n;               /* in it; numbers in it */
    int64_t at;                      /* numbers before it */
} walk;

static inline walk first_piece(int axes, int64_t lanes, const box *b)
{
    walk w = {
        .inner = axes - 1, .lanes = lanes, .pixels = min_i64(PIECE / lanes, b->count[axes - 1])};
    memcpy(w.place, b->from, sizeof w.place);
    w.n = w.pixels * lanes;
    return w;
}

static inline bool next_piece(const box *b, walk *w)
{
    int64_t *column = &w->place[w->inner], end = b->from[w->inner] + b->count[w->inner];
    w->at += w->n;
    *column += w->pixels;
    if (*column == end) {
        *column = b->from[w->inner];
        if (!next_place(w->inner, b, w->place))
            return false;
    }
    w->pixels = min_i64(PIECE / w->lanes, end - *column);
    w->n = w->pixels * w->lanes;
    return true;
}

/* Where a place lies in an array of a box, in pixels. */
static inline int64_t place_in(int axes, const box *b, const int64_t *place)
{
    int64_t at = 0;
    for (int k = 0; k < axes; k++)
        at = at * b->count[k] + place[k] - b->from[k];
    return at;
}

/* Makes one row of rows of a box that follow each other without a gap, in two tensors and in
 * the array `all` that the box is part of: its places then go on beyond the end of a row. */
static inline void join_rows(const tarn_problem *p, const box *all, int operand, int other, box *b)
{
    const int inner = p->spatial - 1;
    int64_t below = b->count[inner];
    for (int k = inner - 1; k >= 0; k--) {
        const int64_t *one = p->stride[operand], *two = p->stride[other], row = b->count[inner];
        if (below != all->count[k + 1] || one[k] != row * one[inner] || two[k] != row * two[inner])
            return;
        below = b->count[k];
        b->count[inner] *= below;
        b->count[k] = 1;
    }
}

/* ---- Small planes --------------------------------------------------------------------------- */

enum {
    SMALL_PLANE = 600,   /* cells, or results, of planes of which a box has several */
    LANES_TOGETHER = 128 /* interleaved planes, at most */
};

/* A problem whose first axis is the innermost leading axis, with windows of one tap; false if
 * planes have more than `most` cells or results. */
static inline bool stack_planes(const tarn_problem *p, int64_t most, tarn_problem *stacked)
{
    const int last = p->leading - 1;
    double cells = (double)min_i64(p->lanes, LANES_TOGETHER), results = cells;
    for (int a = 0; a < p->spatial; a++) {
        cells *= (double)p->axis[a].size;
        results *= (double)p->axis[a].out;
    }
    if (last < 0 || p->spatial == TARN_MAX_SPATIAL || cells > (double)most ||
        results > (double)most)
        return false;
    *stacked = *p;
    stacked->spatial++;
    memcpy(stacked->axis + 1, p->axis, sizeof *p->axis * (size_t)p->spatial);
    const int64_t n = p->lead_size[last];
    stacked->axis[0] = (tarn_axis){.size = n, .out = n, .kernel = 1, .stride = 1, .dilation = 1};
    for (int k = 0; k < OPERANDS; k++) {
        memcpy(stacked->stride[k] + 1, p->stride[k], sizeof(int64_t) * (size_t)p->spatial);
        stacked->stride[k][0] = p->lead_stride[k][last];
    }
    return true;
}

/* As next_slab(), but several whole planes at once where they are steps of the innermost leading
 * axis apart. Returns how many, 0 at the end. */
static inline int64_t next_planes(const tarn_problem *p, const tarn_tensors *t, int64_t rows,
                                  int64_t *begin, int64_t end, int64_t most, tarn_slab *slab)
{
    int64_t planes = 1;
    if (p->leading > 0 && *begin % rows == 0 && end - *begin >= rows) {
        const int64_t size = p->lead_size[p->leading - 1], first = *begin / rows % size;
        planes = min_i64(most, min_i64(size - first, (end - *begin) / rows));
    }
    if (!next_slab(p, t, rows, begin, end, slab))
        return 0;
    *begin += (planes - 1) * rows;
    return planes;
}

#endif
