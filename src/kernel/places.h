/* Where the winners of windows lie, by the number of their tap. */
#ifndef TARN_PLACES_H
#define TARN_PLACES_H

#include "../problem.h"

/* In bytes of a plane of x; and in bytes of dx, or as a position in the flattened input [M5], as
 * tangents or indices are asked for. Unsigned: what lies far out in the padding may wrap on the
 * way. */
enum { PLACE_IN_X, PLACE_OTHER, PLACES };

enum { MOST_PLACED_TAPS = 256 }; /* whose places are in a table */

typedef struct tap_places {
    const tarn_problem *p;
    uint64_t step[PLACES][TARN_MAX_SPATIAL]; /* what a step of one cell adds to a place */
    bool listed;
    uint64_t of_tap[PLACES][MOST_PLACED_TAPS]; /* from tap 0 of the window on */
} tap_places;

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

/* The table, if taps are few. */
static inline void list_places(tap_places *places)
{
    int64_t taps = 1;
    for (int a = 0; a < places->p->spatial; a++)
        taps *= places->p->axis[a].kernel;
    places->listed = false;
    for (int which = 0; which < PLACES && taps <= MOST_PLACED_TAPS; which++)
        for (int64_t tap = 0; tap < taps; tap++)
            places->of_tap[which][tap] = place_of_tap(places, which, tap);
    places->listed = taps <= MOST_PLACED_TAPS;
}

#endif
