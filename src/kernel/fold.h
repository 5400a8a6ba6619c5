/* Folds: for each of a box of results, the sum in halves [S1] of a list of sources on every
 * axis, one axis at a time.
 *
 * Forward, results are windows and sources cells; the outermost axis is folded first [S2].
 * Backward, results are cells and sources windows; the innermost axis is folded first [S4].
 * Either way a box of sources is loaded into an array, and each axis in its turn makes it a
 * smaller one (fold.inc). What windows share is computed once in a box.
 *
 * Where lists are too long for the room there is, the entries of an axis are taken in blocks of
 * a power of two, which are whole branches of the sum, and the blocks' sums are added as the
 * list asks.
 */
#ifndef TARN_FOLD_H
#define TARN_FOLD_H

#include "../problem.h"

#include <stdalign.h>

enum { ARENA_BYTES = 30 << 10, MOST_LANES = 16 };

/* Room for arrays, given back in the opposite order. */
typedef struct {
    int64_t used;
    alignas(16) char bytes[ARENA_BYTES];
} arena;

static inline void *take(arena *room, int64_t count, size_t element)
{
    void *array = room->bytes + room->used;
    room->used += (count * (int64_t)element + 15) & ~INT64_C(15);
    return array;
}

/* A box of results: windows, or cells. */
typedef struct {
    int64_t from[TARN_MAX_SPATIAL], count[TARN_MAX_SPATIAL];
} box;

/* One axis of a fold. */
typedef struct {
    const tarn_axis *axis;
    bool backward;
    bool irregular;           /* every list is one of its own */
    int64_t results, sources; /* that exist */
    int64_t longest;          /* entries of the longest list */
    int64_t step;             /* from one entry to the next, in sources */
    double pace;              /* from one result to the next */
    int64_t reach;            /* backward: cells that neighbouring windows share, in windows */
    int64_t most, block;      /* the plan: results of a box, entries of a block, */
    /* and of the first axis, backward, sources that are folded along the others at once */
    int64_t part;
    int64_t from, count;    /* the box */
    int64_t entry, entries; /* the block in hand, */
    int64_t start, width;   /* and its sources; those that do not exist are absent */
} fold_axis;

typedef struct fold {
    void *pass; /* what loads and absents need to know */
    arena *room;
    int axes;
    bool backward, interleaved;
    int terms;     /* what is loaded */
    int64_t lanes; /* interleaved planes that go together */
    fold_axis axis[TARN_MAX_SPATIAL];
    bool ring; /* see planned_room() */
    void *chunks;
    int64_t *chunk_numbers;
} fold;

/* Depth 0 is folded last. */
static inline fold_axis *axis_at(fold *f, int depth)
{
    return &f->axis[f->backward ? depth : f->axes - 1 - depth];
}

static inline tarn_span list_of(const fold_axis *a, int64_t result)
{
    tarn_span list = a->backward ? cell_windows(a->axis, result) : window_taps(a->axis, result);
    if (a->backward && a->irregular) /* one or two windows: where others would be does not matter */
        list = (tarn_span){.n = list.hi - list.lo,
                           .hi = list.hi - list.lo,
                           .first = span_at(&list, list.lo),
                           .step = 1};
    return list;
}

/* Results so far apart have lists that are alike, */
static inline int64_t period_of(const fold_axis *a)
{
    return a->irregular ? a->count : a->backward ? min_i64(a->axis->stride, a->count) : 1;
}

/* but so many sources further on. A stride that no result takes may be too long to compute with. */
static inline int64_t stride_of(const fold_axis *a)
{
    return a->backward || period_of(a) == a->count ? 1 : a->axis->stride;
}

/* Sets the block to the entries [entry,entry+entries) of every list; false if none of their
 * sources exists. */
static bool set_block(fold_axis *a, int64_t entry, int64_t entries)
{
    const int64_t period = period_of(a), stride = stride_of(a);
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (int64_t q = 0; q < period; q++) {
        tarn_span list = list_of(a, a->from + q);
        int64_t last = min_i64(list.n, entry + entries) - 1;
        if (last < entry)
            continue;
        start = min_i64(start, span_at(&list, entry));
        end = max_i64(end, span_at(&list, last) + (a->count - 1 - q) / period * stride + 1);
    }
    a->entry = entry;
    a->entries = entries;
    a->start = start;
    a->width = start < end ? end - start : 0;
    return start < end && start < a->sources && end > 0;
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

/* ---- Planning ------------------------------------------------------------------------------- */

/* What a box, a row and a pixel of interleaved planes cost beside their sources, in sources. */
enum { COST_OF_A_BOX = 40, COST_OF_A_ROW = 12, COST_OF_A_PIXEL = 6 };

static inline double planned_width(const fold_axis *a)
{
    double slack = a->most == 1                           ? 0
                   : a->irregular                         ? 1
                   : a->axis->stride == 1 || !a->backward ? 0
                                                          : (double)a->step;
    return (double)(a->most - 1) * a->pace + slack + (double)(a->block - 1) * (double)a->step + 1;
}

/* Sources that are loaded at once. */
static inline double planned_part(const fold_axis *a)
{
    double width = planned_width(a);
    return (double)a->part < width ? (double)a->part : width;
}

static inline double levels_of(const fold_axis *a)
{
    double levels = 0;
    for (int64_t n = a->longest; n > a->block; n -= n / 2)
        levels++;
    return levels;
}

/* Backward with a ring, box by box goes down the first axis, a row (or plane) of cells at a
 * time. What the windows of a row of windows add up to for the columns of the box is kept in a
 * ring, chunk by chunk of so many rows: as many as the windows of a cell reach over. */
static inline int64_t chunks_of_ring(const fold_axis *first)
{
    return (first->longest - 1) * first->step / first->part + 2;
}

/* Elements of all arrays, the results in `arrays` of them. */
static double planned_room(fold *f, int arrays)
{
    double size = (double)f->lanes, room = 0;
    for (int d = 0; d < f->axes; d++)
        size *= (double)axis_at(f, d)->most;
    room += size * arrays;
    for (int d = 0; d < f->axes; d++) {
        const fold_axis *a = axis_at(f, d);
        const double chunks = d == 0 && f->ring ? (double)chunks_of_ring(a) : 0;
        room += size * levels_of(a);
        size = size / (double)a->most;
        room += size * planned_width(a) + chunks * (1 + size * (double)a->part);
        size *= chunks > 0 ? (double)a->part : planned_part(a);
    }
    return room;
}

/* What is loaded for a result. A window as a source costs the cells that it does not share with
 * others of its box. */
static double planned_cost(fold *f)
{
    double boxes = 1, rows = 1, results = (double)f->lanes, each = 1, entries = 0;
    for (int k = 0; k < f->axes; k++) {
        const fold_axis *a = &f->axis[k];
        const bool ring = k == 0 && f->ring;
        double part = ring ? (double)a->part : planned_part(a);
        boxes *= ring ? a->pace / part
                      : (double)ceil_div(a->longest, a->block) * planned_width(a) / part;
        rows *= k < f->axes - 1 ? part : 1;
        results *= (double)a->most;
        each *= f->backward ? 1 + (double)a->reach / part : 1;
        entries += ring ? (double)a->longest : 0;
    }
    double pixels = rows * planned_part(&f->axis[f->axes - 1]);
    double pixel = (double)f->lanes + (f->interleaved ? COST_OF_A_PIXEL : 0);
    return (boxes * each * (pixels * pixel + rows * COST_OF_A_ROW + COST_OF_A_BOX) +
            entries * COST_OF_A_ROW) /
           results;
}

/* Doubles some of an axis' results (1), entries (2) and parts (4). */
static inline void grow(fold_axis *a, int what)
{
    a->most = what & 1 ? min_i64(2 * a->most, a->results) : a->most;
    a->block = what & 2 ? min_i64(2 * a->block, a->longest) : a->block;
    a->part = what & 4 ? 2 * a->part : a->part;
}

/* Starts with boxes of one result and doubles what makes results cheapest, as long as there is
 * room for so many elements. Returns what a result costs then. */
static double plan_boxes(fold *f, int64_t lanes, int64_t room, int arrays)
{
    for (;;) {
        double least = planned_cost(f);
        fold_axis best;
        int64_t best_lanes = f->lanes;
        int which = -1;
        for (int k = 0; k < f->axes; k++) {
            const fold_axis now = f->axis[k];
            const int step = k == 0 && f->ring ? 4 : 1,
                      end = k == 0 && f->backward && f->axes > 1 ? 8 : 4;
            for (int what = step; what < end; what += step) {
                grow(&f->axis[k], what);
                double cost = planned_cost(f);
                if (cost < least && planned_room(f, arrays) <= (double)room) {
                    least = cost;
                    best = f->axis[k];
                    which = k;
                }
                f->axis[k] = now;
            }
        }
        f->lanes = min_i64(2 * f->lanes, lanes);
        if (planned_cost(f) < least && planned_room(f, arrays) <= (double)room)
            continue;
        f->lanes = best_lanes;
        if (which < 0)
            return least;
        f->axis[which] = best;
    }
}

static void plan_fold(fold *f, int64_t least_lanes, int64_t lanes, int64_t room, int arrays)
{
    fold with_ring = *f;
    f->interleaved = with_ring.interleaved = lanes > 1;
    f->lanes = with_ring.lanes = least_lanes;
    with_ring.ring = f->backward && f->axes > 1;
    lanes = min_i64(lanes, MOST_LANES);
    double cost = plan_boxes(f, lanes, room, arrays);
    if (with_ring.ring && planned_room(&with_ring, arrays) <= (double)room &&
        plan_boxes(&with_ring, lanes, room, arrays) < cost)
        *f = with_ring;
    for (int k = 0; k < f->axes; k++) { /* boxes of about the same size */
        fold_axis *a = &f->axis[k];
        a->most = ceil_div(a->results, ceil_div(a->results, a->most));
    }
}

static void start_fold(fold *f, const tarn_problem *p, bool backward)
{
    f->axes = p->spatial;
    f->backward = backward;
    f->ring = false;
    for (int k = 0; k < p->spatial; k++) {
        const tarn_axis *axis = &p->axis[k];
        fold_axis *a = &f->axis[k];
        *a = (fold_axis){.axis = axis,
                         .backward = backward,
                         .results = axis->out,
                         .sources = axis->size,
                         .most = 1,
                         .block = 1};
        a->part = backward && k == 0 && p->spatial > 1 ? 1 : INT64_MAX;
        a->irregular = axis->adaptive || (backward && axis->out <= 2);
        a->longest = axis->kernel;
        a->step = axis->adaptive ? 1 : axis->dilation;
        a->pace = axis->adaptive ? (double)axis->size / (double)axis->out : (double)axis->stride;
        if (!backward)
            continue;
        a->results = axis->size;
        a->sources = axis->out;
        a->longest = axis->adaptive      ? ceil_div(axis->out, axis->size) + 1
                     : axis->stride == 1 ? axis->kernel
                                         : (axis->kernel - 1) / axis->tap_step + 1;
        a->step = axis->adaptive ? 1 : axis->stride == 1 ? axis->dilation : axis->window_step;
        a->pace = 1 / a->pace;
        if (axis->out <= 2) {
            a->longest = axis->out;
            a->step = 1;
            a->pace = (double)axis->out / (double)axis->size;
        }
        a->reach = a->longest - 1;
    }
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

static inline void set_box(fold *f, const box *b)
{
    for (int k = 0; k < f->axes; k++) {
        f->axis[k].from = b->from[k];
        f->axis[k].count = b->count[k];
    }
}

/* The first of the boxes that a plan cuts `whole` into, and the next one, down the first axis;
 * false behind the last. */
static inline box first_part(const fold *f, const box *whole)
{
    box part = *whole;
    for (int k = 0; k < f->axes; k++)
        part.count[k] = min_i64(whole->count[k], f->axis[k].most);
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
        part->count[k] = min_i64(end - part->from[k], f->axis[k].most);
        if (more)
            return true;
    }
    return false;
}

/* Steps to the next place of a box in row-major order, the last axes left out; false behind the
 * last one. */
static inline bool next_place(int axes, const box *b, int64_t *place)
{
    for (int k = axes - 1; k >= 0; k--) {
        if (++place[k] < b->from[k] + b->count[k])
            return true;
        place[k] = b->from[k];
    }
    return false;
}

/* The sources of the blocks of all axes, and those that exist; whether some do not. */
static bool clip_sources(const fold *f, box *all, box *real)
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
