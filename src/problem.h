/* A checked problem: what every kernel receives. Made by shape.c and layout.c, never by hand. */
#ifndef TARN_PROBLEM_H
#define TARN_PROBLEM_H

#include "tarn.h"
#include "window.h"

#include <stddef.h>
#include <string.h>

/* Operands of a kernel: the public ones, and the saved winners. */
enum { OPERAND_SAVED = TARN_OPERANDS, OPERANDS };

/* Value of a saved winner that says "this window has none": all bits set, in any width. */
#define NO_WINNER (-1)

enum { LARGER_THAN_CACHES = 32 << 20 }; /* bytes */

/* Which real taps do not count [K1]. */
typedef enum { SKIPS_NOTHING, SKIPS_NAN, SKIPS_VALUE } tarn_skips;

/* What of means with skipped taps is asked for: y has the type that sums are taken in, then. */
typedef enum { WHOLE_MEANS, SUM_PART, COUNT_PART } tarn_mean_part;

typedef struct tarn_problem {
    tarn_op op;
    tarn_dtype dtype;
    tarn_ties ties;
    bool count_include_pad;
    int64_t divisor; /* 0: count the taps */
    double beta;
    double power; /* of lp: at most 2^40 */
    tarn_skips skips;
    int64_t min_count;   /* 0 where nothing is skipped */
    char skipped[8];     /* the skipped value, as an element of the dtype */
    tarn_mean_part part; /* only among engines: skipping.c */
    bool nested;         /* run by another engine, which takes a part of the stack */

    int spatial;
    tarn_axis axis[TARN_MAX_SPATIAL];
    int64_t stride[OPERANDS][TARN_MAX_SPATIAL]; /* of the spatial axes, in elements */

    /* Leading axes: the arrays at the end. */
    int leading;
    int64_t planes; /* product of lead_size; 0 for an empty tensor */

    /* The innermost leading axis, if it is contiguous in every tensor (channels last): planes
     * that lie interleaved, element by element. Otherwise 1. */
    int64_t lanes;

    int64_t element_bytes[OPERANDS]; /* a saved winner takes 1, 4 or 8 */
    int64_t cache_bytes; /* larger results may be stored non-temporally; that changes no bit */

    /* Outermost first, those of size 1 dropped and neighbours merged where all layouts allow
     * it. Last, as few of their many entries are set. */
    int64_t lead_size[TARN_MAX_RANK];
    int64_t lead_stride[OPERANDS][TARN_MAX_RANK];
} tarn_problem;

/* Where the element at spatial coordinates `at` lies in a plane, in elements. */
static inline int64_t offset_of(const tarn_problem *problem, int operand, const int64_t *at)
{
    int64_t offset = 0;
    for (int a = 0; a < problem->spatial; a++)
        offset += at[a] * problem->stride[operand][a];
    return offset;
}

/* [M5] The position of a cell in the flattened spatial input. */
static inline int64_t cell_index(const tarn_problem *problem, const int64_t *cell)
{
    int64_t index = 0;
    for (int a = 0; a < problem->spatial; a++)
        index = index * problem->axis[a].size + cell[a];
    return index;
}

/* [M7] The position, among the taps of window o, of the one that reads `cell`. */
static inline int64_t tap_index(const tarn_problem *problem, const int64_t *o, const int64_t *cell)
{
    int64_t index = 0;
    for (int a = 0; a < problem->spatial; a++)
        index = index * problem->axis[a].kernel + tap_of(&problem->axis[a], o[a], cell[a]);
    return index;
}

/* [A2] The divisor of window o; 0 if none of its taps counts. */
static inline int64_t window_divisor(const tarn_problem *problem, const int64_t *o)
{
    if (problem->divisor > 0)
        return problem->divisor;
    int64_t count = 1;
    for (int a = 0; a < problem->spatial; a++) {
        tarn_span taps = window_taps(&problem->axis[a], o[a]);
        count *=
            problem->count_include_pad ? padded_taps(&problem->axis[a], o[a]) : taps.hi - taps.lo;
    }
    return count;
}

/* Whether the only window of an axis reads all of its cells, and nothing else. */
static inline bool is_global(const tarn_axis *axis)
{
    return axis->out == 1 &&
           (axis->adaptive || (axis->kernel == axis->size && axis->lo == 0 && axis->dilation == 1));
}

/* Makes one axis of two that a global window covers, if all tensors of cells lie so; for where the
 * order of taps does not matter. Returns how many units of cells a unit has become. */
static inline int64_t merge_global_axes(tarn_problem *p)
{
    static const int cells[] = {TARN_X, TARN_DX, TARN_GX}; /* strides are 0 where there is none */
    int64_t units = 1;
    for (int a = p->spatial - 2; a >= 0; a--) {
        tarn_axis *axis = &p->axis[a], *next = axis + 1;
        bool merges = is_global(axis) && is_global(next);
        for (int k = 0; k < 3; k++)
            merges &= axis->size == 1 ||
                      p->stride[cells[k]][a] == next->size * p->stride[cells[k]][a + 1];
        if (!merges)
            continue;
        units = a == 0 ? next->size : 1;
        next->size *= axis->size;
        *axis = (tarn_axis){.size = next->size,
                            .out = 1,
                            .kernel = next->size,
                            .stride = 1,
                            .dilation = 1,
                            .gcd = 1,
                            .tap_step = 1,
                            .window_step = 1};
        p->spatial--;
        for (int b = a + 1; b < p->spatial; b++)
            p->axis[b] = p->axis[b + 1];
        for (int k = 0; k < OPERANDS; k++)
            memmove(&p->stride[k][a], &p->stride[k][a + 1],
                    sizeof(int64_t) * (size_t)(p->spatial - a));
    }
    return units;
}

/* Whether derivatives do not depend on x. */
static inline bool is_linear(const tarn_problem *problem)
{
    return problem->op == TARN_AVG && problem->skips == SKIPS_NOTHING;
}

/* One pass over some of the work: tensors, by operand, NULL where the pass has none. */
typedef struct tarn_tensors {
    char *base[OPERANDS];
} tarn_tensors;

/* A kernel computes the units [begin,end) of a pass. A unit is one coordinate on the first spatial
 * axis of the written tensor, in one plane; units are numbered plane by plane. */
typedef void tarn_kernel(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                         int64_t end);

/* The pieces of a range of units that lie in one plane each. */
typedef struct tarn_slab {
    /* element [0,...,0] of the plane; NULL where the pass has no such tensor */
    char *base[OPERANDS];
    int64_t lo, hi; /* coordinates on the first spatial axis of the written tensor */
} tarn_slab;

/* Takes the first slab off the units [*begin,end); `rows` is the units of a plane. False at the
 * end. */
static inline bool next_slab(const tarn_problem *problem, const tarn_tensors *tensors, int64_t rows,
                             int64_t *begin, int64_t end, tarn_slab *slab)
{
    if (*begin >= end)
        return false;
    int64_t plane = *begin / rows;
    slab->lo = *begin - plane * rows;
    slab->hi = min_i64(rows, slab->lo + (end - *begin));
    *begin += slab->hi - slab->lo;
    for (int k = 0; k < OPERANDS; k++)
        slab->base[k] = tensors->base[k];
    for (int a = problem->leading - 1; a >= 0; a--) {
        int64_t index = plane % problem->lead_size[a];
        plane /= problem->lead_size[a];
        for (int k = 0; k < OPERANDS; k++)
            if (slab->base[k])
                slab->base[k] += index * problem->lead_stride[k][a] * problem->element_bytes[k];
    }
    return true;
}

/* Moves a slab to the same place in the next of `lanes` interleaved planes. */
static inline void next_lane(const tarn_problem *problem, tarn_slab *slab)
{
    for (int k = 0; k < OPERANDS; k++)
        if (slab->base[k])
            slab->base[k] += problem->element_bytes[k];
}

/* Saved winners: the tap's position in its window, NO_WINNER for none. */
static inline void store_winner(const tarn_problem *problem, char *saved, int64_t at, int64_t tap)
{
    size_t bytes = (size_t)problem->element_bytes[OPERAND_SAVED];
    int32_t narrow = (int32_t)tap;
    if (bytes == 1)
        saved[at] = (char)tap;
    else
        memcpy(saved + at * (int64_t)bytes, bytes == 4 ? (void *)&narrow : (void *)&tap, bytes);
}

static inline int64_t load_winner(const tarn_problem *problem, const char *saved, int64_t at)
{
    int64_t wide;
    int32_t narrow;
    switch (problem->element_bytes[OPERAND_SAVED]) {
    case 1:
        return (unsigned char)saved[at] == 255 ? NO_WINNER : (unsigned char)saved[at];
    case 4:
        memcpy(&narrow, saved + at * 4, 4);
        return narrow;
    default:
        memcpy(&wide, saved + at * 8, 8);
        return wide;
    }
}

#endif
