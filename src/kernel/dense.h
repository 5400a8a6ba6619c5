/* Forward over dense rows: max, min and avg of sliding windows whose columns have stride 1 or 2,
 * with winners, indices and tangents on request.
 *
 * The unit of work is a block: some output rows of one plane, or all rows of several small ones,
 * a tile of columns wide. Two folds make it, each a call or a few of a row operation for all
 * its rows: *down*, along the axis before the last, and *across*, along the last.
 *
 *     values, sums:  source -> down -> across -> write
 *     winners:       source -> across -> down -> write
 *
 * Sums go down first, as the contract has it [S2]. Winners go across first: with the axes
 * folded from the innermost outwards, of equal taps the one that comes first in a fold is the
 * one that comes first in the window [M2], so that codes need no comparison.
 *
 * The source is x itself where the core is its type; or scratch: rows converted to keys or
 * terms, or folded over the axes before the last two. Rows that hold NaN, or -0 which down
 * before across puts out of order, are done again, as winners, with keys of the contract's own
 * order; values are then looked up.
 */
#ifndef TARN_DENSE_H
#define TARN_DENSE_H

#include "row_ops.h"

enum {
    DENSE_BYTES = 24 << 10, /* all scratch */
    MOST_FOLDED = 16,       /* rows of one fold: MOST_SUMMED */
    MOST_PLACES = 256       /* taps whose places are in a table */
};

/* Where a cell is: in bytes of a plane of x; and in bytes of dx, or as a position in the
 * flattened input [M5], as tangents or indices are asked for. Unsigned: what lies far out in
 * the padding may wrap on the way. */
enum { PLACE_IN_X, PLACE_OTHER, PLACES };

/* What is written. */
enum { WRITE_Y, WRITE_SAVED, WRITE_OTHER, WRITES };

/* Rows of several planes: values and their codes, or NULL. Steps in elements. */
typedef struct dense_rows {
    char *values, *codes;
    int64_t pitch, plane;
} dense_rows;

/* Where a block begins: the plane, and its place on the axes before the last two. */
typedef struct dense_place {
    char *base[OPERANDS];
    int64_t o[TARN_MAX_SPATIAL];
} dense_place;

typedef struct dense {
    /* What is computed, and in what. */
    const tarn_problem *p;
    const tarn_row_ops *ops;
    int in;              /* operands: X; for tangents of averages DX */
    int written[WRITES]; /* Y, or DY of averages; SAVED; INDICES or DY */
    uint64_t place_step[PLACES][TARN_MAX_SPATIAL];
    bool sums, codes, look_up;
    bool by_order;       /* in the contract's own order */
    bool native;         /* elements are what is computed in */
    bool in_place;       /* the source is x */
    bool outer_in_place; /* the first axis is folded where x lies */
    bool winners_to_y;   /* with whole rows, values of winners are folded to where they belong */
    bool to_y;           /* values are folded to where they belong */
    bool past_caches;    /* y is so large that it goes past the caches */
    bool has_padding;    /* windows may reach into it */
    bool has_empty;      /* windows may lie in the padding altogether */
    bool one_divisor;    /* all windows have the same */
    tarn_core core;
    tarn_key key;
    uint64_t flip;
    int64_t bytes, channels, taps;
    tarn_axis rows; /* the axis before the last; of one place, if there is none */
    const tarn_axis *columns;
    int row_axis; /* or -1 */

    /* Sizes of a block, and of what is read across at once. */
    int64_t most_outputs, most_rows, most_items, chunk_rows;
    int temps;
    int64_t temp_bytes;

    /* Tall windows: level_windows folds of level_taps rows, level_step rows apart; 0 for none. As
     * many of them are made at once. */
    int64_t level_taps, level_windows, level_step, level_chunk;
    int64_t level_first, level_end; /* rows at which they are there */

    /* Scratch. `padded` rows have their padding on both sides. */
    char *arena;
    dense_rows source, padded, folded, level, tail, result, more;
    char *result_values, *temp, *pad, *gathered, *divisors, *sums_of[2];
    int64_t padded_first, padded_rows; /* the tile whose padding is there, in so many rows */
    int64_t divisors_o, divisors_counted;

    /* The block: its place, `items` places from there on, and a tile. It reads `read` columns
     * from `first` on, of which [lo,hi) exist. */
    dense_place at;
    int64_t i[TARN_MAX_SPATIAL]; /* the row of x, on the axes before the last two */
    int64_t items, row, block_rows;
    int64_t o, outputs, first, read, lo, hi;
    int64_t held, held_end; /* rows of x that are in `folded` */
    int64_t clean;          /* rows of x below are known to hold neither NaN nor -0 */
    bool odd;
    uint64_t places[PLACES][MOST_PLACES];
} dense;

/* dense.c */
void tarn_dense_next(const dense *d, dense_place *at);
/* dense_fold.c: false if the rows are odd */
bool tarn_dense_values(dense *d);
bool tarn_dense_winners(dense *d);
/* dense_write.c */
void tarn_dense_write(dense *d);
void tarn_dense_set_places(dense *d);
char *tarn_dense_output(const dense *d, const dense_place *at, int written, int64_t row);

static inline int64_t step_between(int64_t count, int64_t step, int64_t elements)
{
    return count > 1 ? step * elements : 0;
}

/* The columns of x that a block reads, as elements. */
static inline int64_t elements_of_x(const dense *d)
{
    return (d->hi - d->lo) * d->channels;
}

/* Whether windows along a row share their work: many taps. */
static inline bool slides(const dense *d)
{
    return d->columns->stride == 1 && d->columns->kernel > (d->sums ? MOST_FOLDED : 8);
}

/* Whether the values of winners are folded to y: rows of the block follow each other there. */
static inline bool winners_go_to_y(const dense *d)
{
    return d->winners_to_y && (d->outputs == d->columns->out || d->row_axis < 0);
}

#endif
