/* The engine "lanes": max, min and avg of any window, with winners, indices and tangents on
 * request.
 *
 *     x -> cells -> windows, lane by lane -> results
 *
 * Every lane of a vector has a plane of its own, and windows walk from cell to cell, a cell being a
 * vector or more. So a window costs its taps divided by the lanes, whatever its stride, dilation,
 * padding or rank, and nothing is shuffled. Lanes come from
 *
 *   channels last, at least a vector of channels: the channels. Cells are read where they lie.
 *   anything else: as many planes as a vector has lanes, whose rows are turned (transposed) to
 *     cells of a tile, and whose results are turned back. A cell has all channels of each plane. If
 *     planes are few, several *bands* of windows of one plane take lanes: as many windows on the
 *     first axis each.
 *
 * Bands have the same geometry, so what lies outside x on the first axis is in their tile: +0 for
 * sums, the least key for extremes. Otherwise windows are clipped, and padding does not exist.
 *
 * A tile serves a box of outputs. NaN is noticed in passing; then the box is done again, with keys
 * that order it (row_ops.h), and values are looked up by their winners.
 */
#ifndef TARN_LANES_H
#define TARN_LANES_H

#include "places.h"
#include "row_ops.h"

enum {
    LANE_ARENA_BYTES = 24 << 10, /* tile and results */
    STAGING_BYTES = 2 << 10,     /* numbers of taps, or divisors */
    MOST_RUNS = 128,             /* of windows of a box along the last axis */
    MOST_TAP_ROWS = 256,         /* taps on the axes before the last */
    MOST_STEPS = 256,            /* of sums */
    MOST_LISTS = 8,              /* of steps */
    MOST_VECTOR_LANES = 64
};

typedef struct lanes_taps {
    int64_t lo, hi, step; /* taps of an axis that exist; bytes from one to the next */
} lanes_taps;

/* Steps of a sum over the columns [lo,hi). */
typedef struct lanes_list {
    int64_t lo, hi, first, count;
} lanes_list;

/* Windows [first,first+n) of a box along the last axis that have the same taps, which exist, and of
 * which as many are counted [A2]. Those of the first begin `at` bytes from where the row's are
 * counted from, each of the others' `step` bytes on. */
typedef struct lanes_run {
    int64_t first, n, at, step;
    int32_t lo, hi, counted;
} lanes_run;

typedef struct lanes_plan {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    int in, out; /* X and Y, or DX and DY for tangents of averages */
    int other;   /* of winners: INDICES, DY, or -1 */
    bool sums, codes, by_order;
    tarn_key key;
    uint64_t flip;
    int64_t element, bytes; /* of the dtype; of a sum, a key or a code */
    bool turned, banded;
    bool in_place, saves;             /* values, and winners, are made where they are to be */
    int64_t channels;                 /* of a cell that go together */
    int64_t width, lanes;             /* planes, or bands, of a cell; its elements */
    tarn_axis axis[TARN_MAX_SPATIAL]; /* the problem's; of bands, the first one has no border */
    int64_t most[TARN_MAX_SPATIAL];   /* outputs of a box */
    int64_t tile_bytes, value_bytes;  /* of the arena; the rest is for codes */
} lanes_plan;

/* Outputs, and the cells that they read. Of bands, the first axis counts from each band's start. */
typedef struct lanes_box {
    int64_t o[TARN_MAX_SPATIAL], n[TARN_MAX_SPATIAL];
    int64_t first[TARN_MAX_SPATIAL], cells[TARN_MAX_SPATIAL];
} lanes_box;

/* What a lane works on: a plane, or a band of it; or all channels, in one. */
typedef struct lanes_lane {
    char *base[OPERANDS];
    int64_t start;
} lanes_lane;

typedef struct lanes_state {
    const lanes_plan *plan;
    const tarn_row_ops *code_ops; /* on winners: see narrowest() */
    lanes_lane lane[MOST_VECTOR_LANES];
    int used;
    /* What turning rows needs of them: x, and where cell 0 is on its first axis; the rows. */
    const char *in[MOST_VECTOR_LANES];
    const void *rows[MOST_VECTOR_LANES];
    int64_t origin[MOST_VECTOR_LANES], least_origin, most_origin;
    bool odd; /* of the box: NaN, or what keys cannot order */
    char *arena, *tile, *values, *codes;

    /* Where cells lie: the cell `first` is at `cells`. */
    const char *cells;
    int64_t first[TARN_MAX_SPATIAL], step[TARN_MAX_SPATIAL];

    /* The row of windows in hand, and whose tables are there. */
    tarn_lane_row row;
    int64_t runs_o, runs_n;
    lanes_taps clip[TARN_MAX_SPATIAL];
    int run_count;
    lanes_run runs[MOST_RUNS];
    /* Sums: steps of a column of taps, and how many of those that wait its sum takes in; lists of
     * them repeated for some columns, one for each border of a row. The first begins with them. */
    int64_t column_steps;
    int32_t column_pops;
    int lists;
    lanes_list list[MOST_LISTS];
    union { /* of extremes, of sums */
        struct {
            int64_t row_at[MOST_TAP_ROWS], row_codes[MOST_TAP_ROWS];
        };
        tarn_lane_step steps[MOST_STEPS];
    };
    _Alignas(64) char first_codes[64];
    tap_places places;
    _Alignas(64) char staging[STAGING_BYTES];
} lanes_state;

/* lanes_tile.c: makes a box of outputs; s->odd tells that it must be done by order. */
void tarn_lanes_run_box(lanes_state *s, lanes_box *box);
/* ... for a plan, before its first box. */
void tarn_lanes_begin(lanes_state *s, const lanes_plan *plan);

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

/* Steps `at`, the last of `axes` axes first, through the box of `n` from `from` on; false at its
 * end. */
static inline bool next_in_box(int64_t *at, const int64_t *from, const int64_t *n, int axes)
{
    for (int a = axes - 1; a >= 0; a--) {
        if (++at[a] < from[a] + n[a])
            return true;
        at[a] = from[a];
    }
    return false;
}

#endif
