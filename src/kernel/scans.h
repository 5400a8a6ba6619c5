/* Windows of max and min, one apart, by scans: a plane's rows are cut into blocks of as many as a window has, and a
 * window that begins in one block and ends in the next is the end of the former with the beginning of the latter.
 *
 * A row of x is folded across when it is taken, by doubling, and kept. The best of its block's rows so far is kept beside
 * it, the prefix. When a block is complete, its rows are replaced by the best of themselves and those below, the
 * suffixes. So a row costs three comparisons down, whatever the window's height. Rows above and below the plane are not
 * taken at all.
 *
 * Short rows of several planes lie side by side, as if they were one row; of interleaved planes some lanes are in hand
 * at a time.
 */
#ifndef TARN_SCANS_H
#define TARN_SCANS_H

#include "sliding.h"

enum {
    SCAN_BYTES = 160 << 10, /* all rows */
    SCAN_PLANES = 32,       /* side by side, at most: as many as make ... */
    SCAN_ROW = 256          /* ... a row of so many elements */
};

/* What is sought, and so what goes with a value: nothing; its tap's number; the bits of its tangent; or its tap's
 * column and its row, in a byte each. Across, the last have but their column. */
typedef enum tarn_scan_kind {
    SCAN_VALUES,
    SCAN_WINNERS,
    SCAN_TANGENTS,
    SCAN_WIDE_WINNERS,
    SCAN_WIDE_COLUMNS
} tarn_scan_kind;

typedef struct tarn_scan {
    const tarn_problem *p;
    const tarn_axis *across, *down;
    char *base[SCAN_PLANES][OPERANDS]; /* of each plane in hand, at the first of the lanes in hand */
    int64_t planes, lanes;
    int64_t lo, hi;                       /* output rows */
    int64_t column, columns;              /* outputs of a row in hand */
    int64_t width, apart, span; /* elements of a plane in a row of x, from plane to plane there, in a row that is kept */
    int64_t folded, prefix, kept, pitch;  /* where rows lie in the buffer, in elements; the row of x is the first */
    int64_t first, taken, scanned;        /* rows of x that are taken, and how many there were at the last scan */
} tarn_scan;

/* Bytes from a value to what goes with it, and from that to the tap's row: not whole pages, so that a store of the one
 * is not taken for a store of the other. */
static inline int64_t scan_area(tarn_scan_kind kind)
{
    int64_t areas = kind == SCAN_VALUES ? 1 : kind == SCAN_WINNERS || kind == SCAN_TANGENTS ? 2 : 3;
    return (SCAN_BYTES / areas / CACHE_LINE - 9) * CACHE_LINE;
}

static inline int64_t rounded_up(int64_t n, int64_t unit)
{
    return ceil_div(n, unit) * unit;
}

/* Elements behind a row of x that whole vectors may touch. */
static inline int64_t scan_slack(const tarn_scan *s, int64_t vector)
{
    return s->lanes + 2 * vector;
}

/* Elements from a kept row to the next: an odd number of vectors, so that rows do not share places in the caches. */
static inline int64_t scan_pitch(int64_t elements, int64_t vector)
{
    return (ceil_div(elements, vector) | 1) * vector;
}

/* As many lanes as share a cache line, or all. */
static inline int64_t scan_lanes(const tarn_problem *p, int64_t element_bytes)
{
    return min_i64(p->lanes, CACHE_LINE / element_bytes);
}

/* As many columns as fit: of each, two elements in rows of x, and one in the prefix and in each row of a block. */
static inline int64_t scan_columns(const tarn_scan *s, int64_t elements, int64_t vector)
{
    int64_t rows = s->down->kernel + 1;
    int64_t halo = 2 * ((s->across->kernel - 1) * s->lanes + scan_slack(s, vector)) + rows * 2 * vector;
    return balanced(s->across->out, max_i64(1, (elements - halo) / (rows + 2) / s->lanes));
}

/* Planes side by side, if all columns fit. */
static inline int64_t scan_planes(const tarn_scan *s, int64_t columns, int64_t elements, int64_t vector)
{
    int64_t out = s->across->out, rows = s->down->kernel + 1;
    int64_t plane = 2 * (out + s->across->kernel - 1) + rows * rounded_up(out, vector);
    int64_t most = min_i64(SCAN_PLANES, (elements - 2 * scan_slack(s, vector) - rows * vector) / plane);
    return columns < out || s->lanes > 1 ? 1 : max_i64(1, min_i64(most, ceil_div(SCAN_ROW, out)));
}

/* Of the columns that a plane's row in hand has, those inside the plane. */
static inline void real_scan_columns(const tarn_scan *s, int64_t *first, int64_t *lo, int64_t *hi)
{
    *first = s->column - s->across->lo;
    *lo = max_i64(0, -*first);
    *hi = max_i64(*lo, min_i64(s->columns + s->across->kernel - 1, s->across->size - *first));
}

/* Elements of a row of x, from the first plane to the last. */
static inline int64_t scan_row(const tarn_scan *s)
{
    return (s->planes - 1) * s->apart + s->width;
}

/* The padding on the right of a plane is that on the left of the next, as far as that reaches. */
static inline void set_scan_columns(tarn_scan *s, int64_t column, int64_t columns, int64_t vector)
{
    int64_t first, lo, hi;
    s->column = column;
    s->columns = columns;
    s->width = (columns + s->across->kernel - 1) * s->lanes;
    real_scan_columns(s, &first, &lo, &hi);
    s->apart = max_i64(hi * s->lanes, s->width - lo * s->lanes);
    s->span = rounded_up(columns * s->lanes, vector);
    s->pitch = scan_pitch(s->planes * s->span, vector);
    s->folded = rounded_up(scan_row(s) + scan_slack(s, vector), vector);
    s->prefix = 2 * s->folded;
    s->kept = s->prefix + s->pitch;
    s->first = max_i64(0, s->lo - s->down->lo);
    s->taken = s->scanned = 0;
}

/* Takes planes off the units [*begin,end): a part of one, or several whole ones. False at the end. */
static inline bool next_planes(tarn_scan *s, const tarn_tensors *t, int64_t most, int64_t *begin, int64_t end)
{
    int64_t rows = s->down->out;
    tarn_slab slab;
    for (s->planes = 0; s->planes < most; s->planes++) {
        if (s->planes > 0 && (s->hi - s->lo < rows || end - *begin < rows))
            break;
        if (!next_slab(s->p, t, rows, begin, end, &slab))
            return false;
        memcpy(s->base[s->planes], slab.base, sizeof slab.base);
        s->lo = slab.lo;
        s->hi = slab.hi;
    }
    return true;
}

#endif
