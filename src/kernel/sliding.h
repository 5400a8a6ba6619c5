/* Sliding windows by tiles: the geometry that the vector kernels of sliding.inc and sliding_sums.inc share.
 *
 * A tile is some rows and columns of outputs and the input they read, copied into one small buffer: widened to
 * the type of the arithmetic, with padding in place, so that borders, tails and short rows need
 * no code of their own. In the buffer a row follows the other, and windows are folded over all of it at once,
 * first across, then down (or the other way round), by loops over contiguous memory.
 *
 * `across` is the innermost spatial axis and `down` the one before it, or a single row. The taps on
 * further axes are listed: each is a tile of its own, folded with the others. Channels last is the same
 * with `lanes` elements to a pixel.
 */
#ifndef TARN_SLIDING_H
#define TARN_SLIDING_H

#include "columns.h"
#include "tap_limits.h"

enum {
    /* Bytes of a tile's buffer: the level-1 cache of many machines; for large windows, which read many
     * rows and columns that are not their tile's own, a good part of the level-2 cache. */
    SMALL_TILE = 32 << 10,
    LARGE_TILE = 128 << 10,
    SMALL_KERNEL = 8,
    /* Elements of a row of results. Behind the end of a buffer, loops over whole vectors may read and write some
     * elements more. */
    TILE_ROW = 1024,
    TILE_SLACK = 256,
    /* All buffers of a thread: the tile, and half as much for results. Together with what else is on the stack
     * they stay below 256 KiB. */
    TILE_SCRATCH = LARGE_TILE + LARGE_TILE / 2 + 4 * TILE_SLACK * (int)sizeof(double),
    MOST_OUTER_TAPS = 64,
    MOST_DIRECT_DOUBLINGS = 2,
    MOST_DIRECT_TAPS = 1 << MOST_DIRECT_DOUBLINGS, /* up to so many taps a window is folded tap by tap, beyond by doubling */
    CACHE_LINE = 64,
    ZERO_LANES = 512 /* channels whose padding is read from one row of zeros */
};

/* A tap on the axes outside of `down`. */
typedef struct tarn_outer_tap {
    int64_t coordinate[TARN_MAX_SPATIAL];
    int64_t tap; /* row-major number among the outer taps of a window */
} tarn_outer_tap;

typedef struct tarn_tile {
    const tarn_problem *p;
    const tarn_axis *across, *down;
    int64_t lanes;           /* elements of a pixel in hand */
    char *base[OPERANDS];    /* element [0,...,0] of the plane, at the first of those lanes */
    int64_t outer[TARN_MAX_SPATIAL]; /* the output's coordinates on the outer axes */
    int64_t row, rows;       /* outputs: the first row, and how many */
    int64_t column, columns;
    int64_t first_row, read_rows; /* the input they read, padding included */
    int64_t first_column, width;
    int64_t phases; /* pixels of a row are sorted by their coordinate modulo this many */
    int64_t phase;  /* elements of one such list */
    int64_t pitch;  /* elements of a row in the buffer */
    int64_t vector; /* elements of a vector: loops may write so many beyond a row's results */
    int outer_taps;
    tarn_outer_tap *outer_tap; /* MOST_OUTER_TAPS of them, not part of what every tile has to clear */
} tarn_tile;

static const tarn_axis single_row = {
    .size = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1, .gcd = 1, .tap_step = 1, .window_step = 1};

static inline int inner_axis(const tarn_tile *t)
{
    return t->p->spatial - 1;
}

/* Axes outside of `down`. */
static inline int outer_axes(const tarn_problem *p)
{
    return p->spatial > 2 ? p->spatial - 2 : 0;
}

/* Elements from a row to the next, and from a pixel to the next. */
static inline int64_t row_stride(const tarn_tile *t, int operand)
{
    return t->p->spatial > 1 ? t->p->stride[operand][t->p->spatial - 2] : 0;
}

static inline int64_t pixel_stride(const tarn_tile *t, int operand)
{
    return t->p->stride[operand][inner_axis(t)];
}

static inline int64_t outer_offset(const tarn_tile *t, int operand, const int64_t *at)
{
    int64_t offset = 0;
    for (int a = 0; a < outer_axes(t->p); a++)
        offset += at[a] * t->p->stride[operand][a];
    return offset;
}

/* Where the tile's output (row, 0) lies, in bytes. */
static inline char *output_row(const tarn_tile *t, int operand, int64_t row)
{
    int64_t at = outer_offset(t, operand, t->outer) + row * row_stride(t, operand) +
                 t->column * pixel_stride(t, operand);
    return t->base[operand] + at * t->p->element_bytes[operand];
}

/* Real columns of the tile's input, relative to its first one. */
static inline void real_pixels(const tarn_tile *t, int64_t *lo, int64_t *hi)
{
    *hi = max_i64(0, min_i64(t->width, t->across->size - t->first_column));
    *lo = min_i64(max_i64(0, -t->first_column), *hi);
}

/* ... and real rows. */
static inline void real_rows(const tarn_tile *t, int64_t *lo, int64_t *hi)
{
    *hi = max_i64(0, min_i64(t->read_rows, t->down->size - t->first_row));
    *lo = min_i64(max_i64(0, -t->first_row), *hi);
}

/* Lists the real taps of the tile's windows on the outer axes, in row-major order. */
static inline void list_outer_taps(tarn_tile *t)
{
    const tarn_problem *p = t->p;
    int axes = outer_axes(p);
    tarn_span span[TARN_MAX_SPATIAL];
    int64_t entry[TARN_MAX_SPATIAL];
    for (int a = axes - 1; a >= 0; a--) {
        span[a] = window_taps(&p->axis[a], t->outer[a]);
        entry[a] = span[a].lo;
    }
    for (t->outer_taps = 0;;) {
        tarn_outer_tap *tap = &t->outer_tap[t->outer_taps++];
        *tap = (tarn_outer_tap){.tap = 0};
        for (int a = 0; a < axes; a++) {
            tap->coordinate[a] = span_at(&span[a], entry[a]);
            tap->tap = tap->tap * p->axis[a].kernel + entry[a];
        }
        int a = axes - 1;
        while (a >= 0 && ++entry[a] == span[a].hi) {
            entry[a] = span[a].lo;
            a--;
        }
        if (a < 0)
            return;
    }
}

/* Whether the window of an output of the plane reaches beyond the tensor. */
static inline bool is_clipped(const tarn_tile *t, int64_t row, int64_t column)
{
    tarn_span down = window_taps(t->down, row), across = window_taps(t->across, column);
    return down.lo > 0 || down.hi < down.n || across.lo > 0 || across.hi < across.n;
}

/* How many outputs of an axis read so many cells. */
static inline int64_t outputs_reading(const tarn_axis *axis, int64_t cells)
{
    return cells < axis->kernel ? 0 : (cells - axis->kernel) / axis->stride + 1;
}

static inline int64_t reads_of(const tarn_axis *axis, int64_t outputs)
{
    return (outputs - 1) * axis->stride + axis->kernel;
}

/* Pixels of a row in the buffer, whole numbers of phases. */
static inline int64_t phase_pixels(int64_t width, int64_t phases)
{
    return ceil_div(width, phases);
}

static inline void set_columns(tarn_tile *t, int64_t column, int64_t columns)
{
    t->column = column;
    t->columns = columns;
    t->first_column = column * t->across->stride - t->across->lo;
    t->width = reads_of(t->across, columns);
    t->phase = phase_pixels(t->width, t->phases) * t->lanes;
    t->pitch = t->phase * t->phases + (t->phases > 1 ? t->vector : 0);
}

static inline void set_rows(tarn_tile *t, int64_t row, int64_t rows)
{
    t->row = row;
    t->rows = rows;
    t->first_row = row * t->down->stride - t->down->lo;
    t->read_rows = reads_of(t->down, rows);
}

/* How outputs are cut into tiles. */
typedef struct tarn_tiling {
    int64_t lanes, columns, rows;
} tarn_tiling;

/* Elements of a row of outputs, in whole vectors. */
static inline int64_t whole_vectors(const tarn_tile *t, int64_t elements)
{
    return (elements + t->vector - 1) / t->vector * t->vector;
}

/* Elements of a row in the buffer, at most. */
static inline int64_t pitch_of(const tarn_tile *t, int64_t columns, int64_t lanes)
{
    return (reads_of(t->across, columns) + t->across->stride) * lanes + t->vector;
}

/* Bytes of a tile's values, and as many of its payloads if there are any. */
static inline int64_t tile_bytes(const tarn_problem *p, bool payload)
{
    for (int a = 0; a < p->spatial; a++)
        if (p->axis[a].kernel > SMALL_KERNEL)
            return payload ? LARGE_TILE / 2 : LARGE_TILE;
    return SMALL_TILE;
}

/* The length of rows that wastes least. A tile reads `halo` rows and columns beyond its own, and a row costs as
 * much as some elements more than it has: of capacity/w rows of w elements, those are a share of
 * halo_down * w / capacity + (halo_across + ROW_COST) / w. */
static inline int64_t best_row(const tarn_tile *t, int64_t lanes, int64_t capacity)
{
    enum { ROW_COST = 32, STEP = 32 };
    int64_t across = (t->across->kernel - 1) * lanes + ROW_COST, row = STEP;
    int64_t down = max_i64(1, t->down->kernel - t->down->stride);
    while (row < TILE_ROW && row * row * down < across * capacity)
        row += STEP;
    return row;
}

/* Pieces of equal length, none longer than `most`. */
static inline int64_t balanced(int64_t length, int64_t most)
{
    return ceil_div(length, ceil_div(length, most));
}

static inline bool fits(const tarn_tile *t, int64_t columns, int64_t lanes, int64_t read_rows, int64_t capacity)
{
    return columns <= TILE_ROW / lanes && read_rows <= capacity / pitch_of(t, columns, lanes);
}

/* The whole plane if it fits, with all lanes or as many as share a cache line; otherwise pieces of it. */
static inline tarn_tiling tiling_of(const tarn_tile *t, int64_t element_bytes, int64_t bytes)
{
    const tarn_axis *across = t->across, *down = t->down;
    int64_t capacity = bytes / element_bytes, read_rows = reads_of(down, down->out);
    int64_t lanes = t->p->lanes, columns = across->out;
    if (lanes > 1 && !fits(t, columns, lanes, read_rows, capacity))
        lanes = min_i64(lanes, CACHE_LINE / element_bytes);
    while (lanes > 1 && !fits(t, 1, lanes, down->kernel, capacity))
        lanes = (lanes + 1) / 2;
    if (!fits(t, columns, lanes, read_rows, capacity)) {
        int64_t row = min_i64(best_row(t, lanes, capacity), capacity / down->kernel - t->vector);
        columns = outputs_reading(across, row / lanes - across->stride);
        columns = balanced(across->out, min_i64(max_i64(1, columns), TILE_ROW / lanes));
    }
    int64_t rows = outputs_reading(down, capacity / pitch_of(t, columns, lanes));
    rows = min_i64(rows, capacity / 2 / whole_vectors(t, columns * lanes));
    return (tarn_tiling){lanes, columns, balanced(down->out, max_i64(1, rows))};
}

/* Steps the outer output coordinates; axis 0 runs over [lo,hi). */
static inline bool next_outer(tarn_tile *t, int64_t lo, int64_t hi)
{
    for (int a = outer_axes(t->p) - 1; a >= 0; a--) {
        if (++t->outer[a] < (a == 0 ? hi : t->p->axis[a].out))
            return true;
        t->outer[a] = a == 0 ? lo : 0;
    }
    return false;
}

typedef void tile_body(tarn_tile *t, void *context);

/* The tiles of one plane and one block of lanes: outputs [lo,hi) on the first spatial axis. */
static inline void for_tiles_of_plane(tarn_tile *t, const tarn_tiling *g, int64_t lo, int64_t hi, tile_body *body,
                                      void *context)
{
    int spatial = t->p->spatial;
    int64_t column_lo = spatial == 1 ? lo : 0, column_hi = spatial == 1 ? hi : t->across->out;
    int64_t row_lo = spatial == 2 ? lo : 0, row_hi = spatial == 2 ? hi : t->down->out;
    memset(t->outer, 0, sizeof t->outer);
    if (spatial > 2)
        t->outer[0] = lo;
    do {
        list_outer_taps(t);
        for (int64_t row = row_lo; row < row_hi; row += g->rows) {
            set_rows(t, row, min_i64(g->rows, row_hi - row));
            for (int64_t column = column_lo; column < column_hi; column += g->columns) {
                set_columns(t, column, min_i64(g->columns, column_hi - column));
                body(t, context);
            }
        }
    } while (next_outer(t, lo, hi));
}

/* The buffer that a kernel has for the values of a tile. */
typedef struct tarn_tile_needs {
    int64_t vector, element_bytes, bytes;
} tarn_tile_needs;

/* Calls body() for the tiles that make up the units [begin,end). The few taps of strided windows are folded
 * directly; the pixels of their rows are sorted by phase, see tarn_tile. */
static inline void for_tiles(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin, int64_t end,
                             const tarn_tile_needs *needs, tile_body *body, void *context)
{
    tarn_slab slab;
    tarn_outer_tap outer_tap[MOST_OUTER_TAPS];
    tarn_tile t = {.p = p, .outer_tap = outer_tap, .across = &p->axis[p->spatial - 1],
                   .down = p->spatial > 1 ? &p->axis[p->spatial - 2] : &single_row};
    t.vector = needs->vector;
    t.phases = t.across->stride > 1 && t.across->kernel <= MOST_DIRECT_TAPS ? t.across->stride : 1;
    tarn_tiling g = tiling_of(&t, needs->element_bytes, needs->bytes);
    while (next_slab(p, tensors, p->axis[0].out, &begin, end, &slab))
        for (int64_t lane = 0; lane < p->lanes; lane += g.lanes) {
            t.lanes = min_i64(g.lanes, p->lanes - lane);
            for (int k = 0; k < OPERANDS; k++)
                t.base[k] = slab.base[k] ? slab.base[k] + lane * p->element_bytes[k] : NULL;
            for_tiles_of_plane(&t, &g, slab.lo, slab.hi, body, context);
        }
}

#endif
