/* Where the winners of windows lie, by the number of their tap. */
#ifndef TARN_PLACES_H
#define TARN_PLACES_H

#include "row_ops.h"

/* In bytes of a plane of x; and in bytes of dx, or as a position in the flattened input [M5], as
 * tangents or indices are asked for. Unsigned: what lies far out in the padding may wrap on the
 * way. */
enum { PLACE_IN_X, PLACE_OTHER, PLACES };

enum { MOST_PLACED_TAPS = 256 }; /* whose places are in a table */

typedef struct tap_places {
    const tarn_problem *p;
    int64_t taps;
    uint64_t step[PLACES][TARN_MAX_SPATIAL]; /* what a step of one cell adds to a place */
    bool listed;
    uint64_t of_tap[PLACES][MOST_PLACED_TAPS]; /* from tap 0 of the window on */
    tarn_index_rule rule;                      /* of indices, if they are of 32 bits */
} tap_places;

/* Winners of windows [o,o+windows) of a row, of `channels` elements each, all side by side. What
 * lies at their places, elements of `bytes` bytes, is copied from `from`, the first channel;
 * without it, they are indices. Windows without a tap have any. */
typedef struct place_look_up {
    const tarn_row_ops *ops, *code_ops; /* on codes: see narrowest() */
    int which, width;                   /* of codes: CORE_I8 ... */
    const char *codes, *from;
    char *to;
    int64_t bytes, channels, o, windows;
    uint64_t place; /* of tap 0, on the axes before the last */
} place_look_up;
void tarn_look_up(const tap_places *places, const place_look_up *l);

/* From tap 0 of a window to another. */
static inline uint64_t place_of_tap(const tap_places *places, int which, int64_t tap)
{
    uint64_t place = 0;
    if (places->listed)
        return places->of_tap[which][tap];
    for (int a = places->p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &places->p->axis[a];
        int64_t cells = tap % axis->kernel * (axis->adaptive ? 1 : axis->dilation);
        place += (uint64_t)cells * places->step[which][a];
        tap /= axis->kernel;
    }
    return place;
}

static inline void set_place_steps(tap_places *places, const tarn_problem *p, bool indices)
{
    uint64_t position = 1;
    places->p = p;
    for (int a = p->spatial - 1; a >= 0; position *= (uint64_t)p->axis[a--].size) {
        places->step[PLACE_IN_X][a] = (uint64_t)(p->stride[TARN_X][a] * p->element_bytes[TARN_X]);
        places->step[PLACE_OTHER][a] =
            indices ? position : (uint64_t)(p->stride[TARN_DX][a] * p->element_bytes[TARN_DX]);
    }
}

/* The table, if taps are few; and the rule. */
void tarn_list_places(tap_places *places, bool indices);

#endif
