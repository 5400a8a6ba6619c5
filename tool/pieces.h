/* Problems larger than memory, cut into pieces by tarn_piece(). Pieces follow the memory order of
 * the written tensor: one behind the other they are the output file. */
#ifndef TARN_PIECES_H
#define TARN_PIECES_H

#include "../src/problem.h"

#include <stdbool.h>

typedef struct tool_piece {
    tarn_pool pool; /* the piece's own pooling */
    tarn_box x;     /* the cells it reads */
    tarn_box y;     /* the windows it has */
    tarn_box kept;  /* what it is for: coordinates of the written tensor */
} tool_piece;

/* Bytes that a piece keeps in memory. */
typedef int64_t tool_piece_cost(const void *context, const tool_piece *piece);

typedef struct tool_cutter {
    tarn_pool pool; /* not flat */
    tarn_view x;    /* the whole */
    tarn_pass pass;
    const int64_t *written_shape; /* of the tensor that it writes */
    int order[TARN_MAX_RANK];     /* axes of the written tensor, outermost in memory first */
    int cut;                      /* place in `order`: axes before it are taken one by one */
    int64_t block;                /* coordinates of the cut axis in a piece */
    int64_t at[TARN_MAX_RANK];    /* the next piece begins here */
    bool finished;
} tool_cutter;

/* Makes pieces that cost at most `goal`, where that is possible: a piece has all cells of its
 * windows. Of `x` and `y`, which must stay, the shapes are used. Errors: those of tarn_piece(). */
tarn_status tool_cutter_begin(tool_cutter *cutter, const tarn_pool *pool, const tarn_view *x,
                              const tarn_view *y, tarn_pass pass, const int *order, int64_t goal,
                              tool_piece_cost *cost, const void *context, tarn_error *error);

/* The next piece; false behind the last. */
bool tool_next_piece(tool_cutter *cutter, tool_piece *piece);

/* What a piece computes of the written tensor: at least what is kept. */
static inline const tarn_box *tool_computed(const tool_cutter *cutter, const tool_piece *piece)
{
    return cutter->pass == TARN_VJP ? &piece->x : &piece->y;
}

#endif
