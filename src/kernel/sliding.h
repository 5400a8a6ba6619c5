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

enum {
    /* Elements of a tile's buffer: 32 KiB of f32, the level-1 cache of many machines; and of a row of it. Behind
     * the end, loops over whole vectors may read and write some elements more. */
    TILE_CAPACITY = 8192,
    TILE_ROW = 1024,
    TILE_SLACK = 256,
    MOST_OUTER_TAPS = 64,
    MOST_DIRECT_TAPS = 4 /* up to so many taps a window is folded tap by tap, beyond by doubling */
};

/* A tap on the axes outside of `down`. */
typedef struct tarn_outer_tap {
    int64_t coordinate[TARN_MAX_SPATIAL];
    int64_t tap;  /* row-major number among the outer taps of a window */
    int64_t cell; /* distance of its cell from the window's first one, in the flattened input */
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

/* Lists the real taps of the tile's windows on the outer axes, in row-major order. */
static inline void list_outer_taps(tarn_tile *t)
{
    const tarn_problem *p = t->p;
    int axes = outer_axes(p);
    tarn_span span[TARN_MAX_SPATIAL];
    int64_t entry[TARN_MAX_SPATIAL], cells[TARN_MAX_SPATIAL], inside = t->down->size * t->across->size;
    for (int a = axes - 1; a >= 0; a--) {
        span[a] = window_taps(&p->axis[a], t->outer[a]);
        entry[a] = span[a].lo;
        cells[a] = inside;
        inside = (int64_t)((uint64_t)inside * (uint64_t)p->axis[a].size);
    }
    for (t->outer_taps = 0;;) {
        tarn_outer_tap *tap = &t->outer_tap[t->outer_taps++];
        *tap = (tarn_outer_tap){.tap = 0};
        for (int a = 0; a < axes; a++) {
            tap->coordinate[a] = span_at(&span[a], entry[a]);
            tap->tap = tap->tap * p->axis[a].kernel + entry[a];
            /* of use where cells are few (indices), elsewhere it may wrap */
            tap->cell = (int64_t)((uint64_t)tap->cell +
                                  (uint64_t)entry[a] * (uint64_t)span[a].step * (uint64_t)cells[a]);
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

/* Whole rows if they fit TILE_ROW elements, and then as many as the buffer holds; high kernels
 * leave less width, so that at least eight rows of outputs share the input rows of a tile. */
static inline tarn_tiling tiling_of(const tarn_tile *t)
{
    const tarn_axis *across = t->across, *down = t->down;
    int64_t room = min_i64(TILE_ROW, TILE_CAPACITY / (down->kernel + 7 * down->stride)) - 2 * t->vector;
    room = max_i64(room, across->kernel + across->stride); /* at least one column of one lane */
    int64_t lanes = min_i64(t->p->lanes, room / (across->kernel + across->stride));
    int64_t columns = outputs_reading(across, room / lanes - across->stride);
    columns = min_i64(across->out, max_i64(1, columns));
    int64_t pitch = (reads_of(across, columns) + across->stride) * lanes + t->vector;
    int64_t rows = outputs_reading(down, TILE_CAPACITY / pitch);
    rows = min_i64(rows, TILE_CAPACITY / 2 / whole_vectors(t, columns * lanes));
    return (tarn_tiling){lanes, columns, min_i64(down->out, max_i64(1, rows))};
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

/* Calls body() for the tiles that make up the units [begin,end). `sorted`: pixels are sorted by phase, see
 * tarn_tile. */
static inline void for_tiles(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin, int64_t end,
                             bool sorted, int64_t vector, tile_body *body, void *context)
{
    tarn_slab slab;
    tarn_outer_tap outer_tap[MOST_OUTER_TAPS];
    tarn_tile t = {.p = p, .outer_tap = outer_tap, .across = &p->axis[p->spatial - 1],
                   .down = p->spatial > 1 ? &p->axis[p->spatial - 2] : &single_row};
    t.vector = vector;
    t.phases = sorted ? t.across->stride : 1;
    tarn_tiling g = tiling_of(&t);
    while (next_slab(p, tensors, p->axis[0].out, &begin, end, &slab))
        for (int64_t lane = 0; lane < p->lanes; lane += g.lanes) {
            t.lanes = min_i64(g.lanes, p->lanes - lane);
            for (int k = 0; k < OPERANDS; k++)
                t.base[k] = slab.base[k] ? slab.base[k] + lane * p->element_bytes[k] : NULL;
            for_tiles_of_plane(&t, &g, slab.lo, slab.hi, body, context);
        }
}

/* The number of doublings whose lengths, 2^n, still fit a kernel. */
static inline int doublings(int64_t kernel)
{
    return 63 - __builtin_clzll((unsigned long long)kernel);
}

#endif
