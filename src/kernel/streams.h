/* Large windows, one apart, over planes. Max and min (streams_extreme.inc): rows of x stream through rings of rows, each of
 * which stands for 1, 2, 4, ... rows of the plane, so that none is read or folded twice. Averages (streams_sums.inc) go by
 * blocks, and have no rings.
 *
 * When row t comes in, ring j gets the row that stands for rows t-2^j+1 to t: one of ring j-1 that came 2^(j-1) rows ago,
 * with the one that came just now. A window of k rows is made of a few of these. Some columns of outputs are in hand at a
 * time, and the columns they read. Of interleaved planes, a column is a pixel with all its lanes.
 */
#ifndef TARN_STREAMS_H
#define TARN_STREAMS_H

#include "backward_limits.h"
#include "sliding.h"

enum {
    MOST_LEVELS = 6,           /* as 2^6 is LONGEST_KERNEL */
    STREAM_BYTES = 224 << 10,  /* all rows */
    STREAM_SLACK = 64          /* elements behind a row that whole vectors may touch */
};

_Static_assert(1 << MOST_LEVELS == LONGEST_KERNEL, "the longest window has a ring");

typedef struct tarn_stream {
    const tarn_problem *p;
    const tarn_axis *across, *down;
    int64_t most_columns;    /* as many as fit */
    int64_t column, columns; /* outputs of a row in hand */
    int64_t beyond;          /* elements that a row has beyond those of its outputs, slack included */
    int64_t pitch;           /* elements from a row to the next */
    int levels, levels_across; /* 2^levels is the greatest power of two in a window's length */
    int64_t ring[MOST_LEVELS + 1];   /* the first row of each ring, and */
    int64_t length[MOST_LEVELS + 1]; /* how many it has */
    int64_t spare;                   /* the first row that belongs to no ring */
    char *base[OPERANDS];
} tarn_stream;

static inline int log2_floor(int64_t n)
{
    return 63 - __builtin_clzll((unsigned long long)n);
}

static inline void set_levels(tarn_stream *s)
{
    s->levels = log2_floor(s->down->kernel);
    s->levels_across = log2_floor(s->across->kernel);
}

/* A row of ring j is needed until 2^j rows later, one of the last until the window is complete. */
static inline void set_rings(tarn_stream *s)
{
    int64_t rows = 0;
    set_levels(s);
    for (int j = 0; j <= s->levels; j++) {
        s->ring[j] = rows;
        s->length[j] = j < s->levels ? (INT64_C(1) << j) + 1 : s->down->kernel - (INT64_C(1) << j) + 1;
        rows += s->length[j];
    }
    s->spare = rows;
}

/* Rows stand for windows, as they are folded across before; and a spare one for columns. */
static inline void set_rows_of_windows(tarn_stream *s, int64_t element_bytes)
{
    int64_t halo = (s->across->kernel - 1) * s->p->lanes, rows = s->spare + 1;
    s->beyond = STREAM_SLACK;
    s->most_columns = (STREAM_BYTES / element_bytes - halo - rows * STREAM_SLACK) / rows / s->p->lanes;
}

/* The row of ring j that begins with row t of the stream. */
static inline int64_t ring_row(const tarn_stream *s, int j, int64_t t)
{
    return s->ring[j] + t % s->length[j];
}

#endif
