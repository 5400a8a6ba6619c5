/* Problems larger than memory, cut into pieces. A piece is a pooling of its own, on a part of the input: a
 * window's bits do not depend on where it lies (docs/spec.md, S3), so the pieces give what one call
 * would, bit by bit. Pieces follow the memory order of the written tensor: one behind the other they
 * are the output file. */
#ifndef TARN_PIECES_H
#define TARN_PIECES_H

#include "../src/problem.h"

#include <stdbool.h>

/* Coordinates [lo,hi) on an axis. */
typedef struct tool_range {
    int64_t lo, hi;
} tool_range;

typedef struct tool_piece {
    tarn_pool pool;                 /* the piece's own pooling */
    tool_range x[TARN_MAX_RANK];    /* the cells it reads */
    tool_range y[TARN_MAX_RANK];    /* the windows it has */
    tool_range kept[TARN_MAX_RANK]; /* what it is for: coordinates of the written tensor */
} tool_piece;

/* Bytes that a piece keeps in memory. */
typedef int64_t tool_piece_cost(const void *context, const tool_piece *piece);

typedef struct tool_cutter {
    tarn_pool pool; /* not flat */
    tarn_problem checked;
    int rank, leading;
    int64_t x_shape[TARN_MAX_RANK], y_shape[TARN_MAX_RANK];
    const int64_t *written_shape; /* one of these */
    bool gradient;                /* the written tensor is gx, not y */
    int order[TARN_MAX_RANK];     /* axes of the written tensor, outermost in memory first */
    int cut;                      /* place in `order`: axes before it are taken one by one */
    int64_t block;                /* coordinates of the cut axis in a piece */
    int64_t at[TARN_MAX_RANK];    /* the next piece begins here */
    bool finished;
} tool_cutter;

/* Makes pieces that cost at most `goal`, where that is possible: a global window is not cut, nor
 * are adaptive windows for the VJP, nor axes where a window may lie in the padding altogether. */
void tool_cutter_begin(tool_cutter *cutter, const tarn_pool *pool, const tarn_problem *checked,
                       const tarn_view *x, const tarn_view *y, bool gradient, const int *order,
                       int64_t goal, tool_piece_cost *cost, const void *context);

/* The next piece; false behind the last. */
bool tool_next_piece(tool_cutter *cutter, tool_piece *piece);

/* What a piece computes of the written tensor: at least what is kept. */
static inline const tool_range *tool_computed(const tool_cutter *cutter, const tool_piece *piece)
{
    return cutter->gradient ? piece->x : piece->y;
}

#endif
