/* Folds: for each of a box of results, the sum in halves [S1] of a list of sources on every
 * axis, one axis at a time.
 *
 * Forward, results are windows and sources cells; the outermost axis is folded first [S2].
 * Backward, results are cells and sources windows; the innermost axis is folded first [S4].
 * Either way a box of sources is loaded into an array, and each axis in its turn makes it a
 * smaller one. Boxes go down the first axis; its sources that the next box needs, too, stay where
 * they are (a fold that *slides*), so that most are loaded once.
 *
 * Where lists are too long for the room there is, the entries of an axis are taken in blocks of
 * a power of two, which are whole branches of the sum, and the blocks' sums are added as the
 * list asks. Such folds do not slide.
 */
#ifndef TARN_FOLD_H
#define TARN_FOLD_H

#include "boxes.h"
#include "row_ops.h"

#include <stdalign.h>

enum { ARENA_BYTES = 34 << 10, MOST_TERMS = 3, LONGEST_BLOCK = MOST_SUMMED * MOST_SUMMED };

/* Room for arrays, given back in the opposite order. */
typedef struct {
    int64_t used;
    alignas(16) char bytes[ARENA_BYTES + SCRATCH_SLACK];
} arena;

static inline void *take(arena *room, int64_t count, int64_t element)
{
    void *array = room->bytes + room->used;
    room->used += (count * element + 15) & ~INT64_C(15);
    return array;
}

/* One axis of a fold. */
typedef struct {
    const tarn_axis *axis;
    bool backward;
    bool irregular;           /* every list is one of its own */
    int64_t results, sources; /* that exist */
    int64_t longest;          /* entries of the longest list */
    int64_t step;             /* from one entry to the next, in sources */
    double pace;              /* from one result to the next */
    int64_t align, origin;    /* boxes of a multiple of `align` results begin at one of `origin` */
    int64_t most, block;      /* the plan: results of a box, entries of a block */
    int64_t from, count;      /* the box */
    int64_t entry, entries;   /* the block in hand, */
    int64_t start, width;     /* and its sources; those that do not exist are absent */
} fold_axis;

/* How elements are added: as row_ops.h says of sum_pixels and sum_run (which may be NULL). */
typedef struct {
    int64_t bytes; /* of an element: 8 or 16 */
    void (*pixels)(void *to, int64_t to_step, const void *from, int64_t k, int64_t tap_step,
                   int64_t pixel_step, int64_t channels, int64_t n);
    void (*run)(void *to, const void *run, int64_t n);
} fold_sum;

/* Sources of the first axis that a fold has kept: those of a box. */
typedef struct {
    char *array;
    bool valid;
    box of;
} kept_sources;

typedef struct fold fold;
struct fold {
    void *pass; /* what loads and absents need to know */
    arena *room;
    int axes;
    bool backward, slides;
    int64_t lanes;  /* interleaved planes that go together, */
    int64_t planes; /* of so many */
    fold_axis axis[TARN_MAX_SPATIAL];
    kept_sources kept[MOST_TERMS];
    int terms;           /* what is loaded, */
    const fold_sum *sum; /* and how it is added */
    /* Loads the sources of the blocks of all axes, in row-major order. */
    void (*load)(fold *, void *to);
    /* n times what `count` sources that do not exist add up to. */
    void (*absent)(fold *, int64_t count, void *to, int64_t n);
};

/* Sets the axes of a fold; all else is the plan's. */
void tarn_start_fold(fold *f, const tarn_problem *p, bool backward);

/* Arrays of results, and terms that slide in arrays of their own. */
typedef struct {
    int results, terms;
} fold_arrays;

/* Plans boxes of `least_lanes` to `lanes` planes whose arrays have no more than `room` elements in
 * all; and boxes of cells and of the windows that read them, each with a part of the room. */
void tarn_plan_fold(fold *f, int64_t least_lanes, int64_t lanes, double room,
                    const fold_arrays *arrays);
void tarn_plan_folds(fold *cells, fold *windows, int64_t lanes, double room,
                     const fold_arrays *arrays);

/* Takes room for what is kept of the terms in a mask, of elements of so many bytes. */
void tarn_keep_sources(fold *f, int terms, int64_t bytes);

/* The sums of the box, in an array of the arena's. */
void *tarn_fold_sums(fold *f, int terms, const fold_sum *sum);

/* Depth 0 is folded last. */
static inline fold_axis *axis_at(fold *f, int depth)
{
    return &f->axis[f->backward ? depth : f->axes - 1 - depth];
}

/* Elements of the array from which the axis at a depth is folded; of the results at the depth
 * of all axes less one. */
static inline int64_t array_size(fold *f, int depth)
{
    int64_t size = f->lanes;
    for (int d = 0; d < f->axes; d++)
        size *= d <= depth ? axis_at(f, d)->width : axis_at(f, d)->count;
    return size;
}

/* Whether boxes of cells begin where windows may, so that two of them share fewer windows. */
static inline bool is_aligned(const fold_axis *a)
{
    return a->align > 1 && a->most < a->results && a->most % a->align == 0 &&
           a->block == a->longest;
}

/* The most sources that a box has on an axis. */
static inline double planned_width(const fold_axis *a)
{
    double slack = a->most == 1                           ? 0
                   : a->irregular                         ? 1
                   : a->axis->stride == 1 || !a->backward ? 0
                                                          : (double)a->step;
    if (is_aligned(a)) /* phases of dilated windows may have windows of their own */
        return (double)(a->most / a->align) +
               (double)(a->block - (a->axis->dilation == 1)) * (double)a->step;
    return (double)(a->most - 1) * a->pace + slack + (double)(a->block - 1) * (double)a->step + 1;
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* What was kept is of no use: planes, or the scale, are others. */
static inline void forget_sources(fold *f)
{
    for (int k = 0; k < MOST_TERMS; k++)
        f->kept[k].valid = false;
}

static inline void set_box(fold *f, const box *b)
{
    for (int k = 0; k < f->axes; k++) {
        f->axis[k].from = b->from[k];
        f->axis[k].count = b->count[k];
    }
}

/* Results of the box that begins at `from`, of those up to `end`. */
static inline int64_t part_length(const fold_axis *a, int64_t from, int64_t end)
{
    return min_i64(end - from, a->most - (is_aligned(a) ? (from - a->origin) % a->most : 0));
}

/* The first of the boxes that a plan cuts `whole` into, and the next one, down the first axis;
 * false behind the last. */
static inline box first_part(const fold *f, const box *whole)
{
    box part = *whole;
    for (int k = 0; k < f->axes; k++)
        part.count[k] = part_length(&f->axis[k], part.from[k], part.from[k] + part.count[k]);
    return part;
}

static inline bool next_part(const fold *f, const box *whole, box *part)
{
    for (int k = 0; k < f->axes; k++) {
        int64_t end = whole->from[k] + whole->count[k];
        part->from[k] += part->count[k];
        bool more = part->from[k] < end;
        if (!more)
            part->from[k] = whole->from[k];
        part->count[k] = part_length(&f->axis[k], part->from[k], end);
        if (more)
            return true;
    }
    return false;
}

/* The sources of the blocks of all axes, and those that exist; whether some do not. */
static inline bool clip_sources(const fold *f, box *all, box *real)
{
    bool clipped = false;
    for (int k = 0; k < f->axes; k++) {
        const fold_axis *a = &f->axis[k];
        all->from[k] = a->start;
        all->count[k] = a->width;
        real->from[k] = max_i64(a->start, 0);
        real->count[k] = min_i64(a->start + a->width, a->sources) - real->from[k];
        clipped |= real->count[k] < a->width;
    }
    return clipped;
}

#endif
