/* Scatter: any windows. Each window's gradient is added to the cell that won it, in the order of
 * S5, which wants a sum of its own for each axis.
 *
 * Along a row: the winners of neighbouring windows never go back to a column that they left, so
 * the windows that a cell wins follow each other, and their gradients are the sum of a *run*.
 * That is so for true winners; false ones are noticed, and such windows are done one by one,
 * looking for others with the same winner.
 *
 * Runs become a *list* of places and sums, which is added to gx: that is the sum over the
 * outermost axis on which windows overlap. An axis between these two is *joined* where it ends:
 * what its list has for one cell is added up, with gx as memory, whose values are put aside
 * meanwhile. If gx has 16 bits, sums stay in the list, and a cell has their number in it.
 *
 * Cells are cleared along the first axis as windows reach them. Several rows of windows, or several
 * small planes, are a *block*, with tables of where windows begin. Lists and tables have room for a
 * *tile* of cells; windows that read two tiles are read twice.
 */
#include "winners.h"

enum {
    AXES = TARN_MAX_SPATIAL + 1, /* planes, and then space */
    ROOM_BYTES = 30 << 10,
    LITTLE_ROOM_BYTES = 13 << 10, /* beside winners that were found */
    ALIGNMENT = 64,
    MOST_WINDOWS = 512, /* of a list, each channel by itself */
    MOST_LAG = 128,
    CHANNELS_TOGETHER = 16,
    FEW_CHANNELS = 8,
    WHOLE_VECTORS = MOST_WINDOWS + MOST_LANES,
    MOST_TAPS = 256, /* that a byte names */
    MOST_SPAN = 1 << 29
};

/* A window on one axis: its taps [first,end] are in the tile. */
typedef struct scatter_window {
    int64_t o, start, first, end;
} scatter_window;

/* Winners of a byte, where one axis is summed at most: windows [lo,hi) of some, all of whose taps
 * are inside, or not. */
typedef struct scatter_job scatter_job;
typedef void scatter_put(const scatter_job *j, const tarn_placing *by, const uint8_t *codes,
                         const void *gy, int64_t away, range some, bool inside);

struct scatter_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last, join, moving; /* axes: the first that is joined, and that along which cells go */
    int lowest;             /* axis of a block */
    bool wide, half, alone; /* f64; 16 bits; no other axis than the last overlaps */
    bool numbered, apart;   /* 16 bits: sums are in the list, not in a box; and have one term */
    bool slow, odd, read;   /* ...; not tame; the tile has windows */
    bool joins[AXES];
    int64_t sum_bytes, room_bytes, taps;
    tarn_axis axis[AXES];
    int64_t stride[OPERANDS][AXES];
    range all[AXES], cells[AXES], windows[AXES], channels; /* of the slab; of the tile */
    int64_t begin[AXES];              /* of the slab, of which `all` begins where a stride does */
    int64_t size[AXES], pixel, ready; /* of tiles; end of the cells that are clear */
    int64_t pitch[AXES], origin;      /* of gx, or of the box; where cell 0 would be */
    char *sums, *box;
    scatter_window at[AXES]; /* the first windows in hand */
    int block_axis;
    int64_t block, chunk, lag; /* windows of the block axis at a time, channels; elements */
    int64_t boxes;             /* planes that the box has room for */
    int64_t base, count, settled, listed; /* settled: of 16 bits, the entries that cells name */
    int32_t *list;
    char *values, *aside;
    bool whole, clipped;         /* a block has all windows of its axis; not all taps are inside, on
                                  * the axes before the last */
    int64_t row;                 /* elements of a row of a block */
    range inside;                /* some of them, whose taps are inside on the last axis */
    int64_t known[3 * AXES + 3]; /* what the tables are of */
    int64_t span;                /* of keys, from a window of the block axis to the next */
    tarn_placing placing;
    scatter_put *put;
    int64_t put_bytes; /* of the gradients that it takes */
    int shift[AXES];   /* of an axis' field */
    int32_t *key, *place, *least, *most, *keys, *places;
    uint16_t *ends;
    char *gradients, *run_sums;
    uint64_t *tap;
};

/* What the job's pointers point to, not cleared at the start. */
typedef struct scatter_tables {
    int32_t of_windows[4][WHOLE_VECTORS];
    uint16_t ends[MOST_WINDOWS];
    int32_t found[MOST_LAG + WHOLE_VECTORS + MOST_LAG + WHOLE_VECTORS]; /* keys, places */
    double sums[MOST_LAG + 2 * WHOLE_VECTORS];                          /* of windows, of runs */
    uint64_t tap[MOST_TAPS];                                            /* of windows apart */
} scatter_tables;

static int64_t step_of_taps(const tarn_axis *axis)
{
    return axis->adaptive ? 1 : axis->dilation;
}

/* From a tap to the next, in sums. */
static int64_t tap_pitch(const scatter_job *j, int axis)
{
    return j->pitch[axis] * step_of_taps(&j->axis[axis]);
}

/* Window o of an axis; false if it has no tap in the tile. */
static bool find_window(const scatter_job *j, int axis, int64_t o, scatter_window *found)
{
    const tarn_axis *along = &j->axis[axis];
    range cells = j->cells[axis];
    int64_t start = window_start(along, o), step = step_of_taps(along), first = 0;
    int64_t end = (along->adaptive ? adaptive_end(along, o) - start : along->kernel) - 1;
    if (start < cells.lo)
        first = ceil_div(cells.lo - start, step);
    if (start + end * step >= cells.hi)
        end = floor_div(cells.hi - 1 - start, step);
    *found = (scatter_window){o, start, first, end};
    return first <= end;
}

/* The next of the places [0,n) on the axes [lo,hi), the last one first; false at the end. */
static bool advance(int64_t *at, const int64_t *n, int lo, int hi)
{
    for (int a = hi - 1; a >= lo; a--) {
        if (++at[a] < n[a])
            return true;
        at[a] = 0;
    }
    return false;
}

/* ---- Cells ---------------------------------------------------------------------------------- */

/* Clears the cells of the tile in a range of the moving axis, in runs that lie side by side; rounds
 * the sums of the box to them; or makes every NaN of theirs the one [S6]. */
typedef enum { CLEAR, ROUND, CORRECT } cells_action;

static void go_over_cells(const scatter_job *j, range moving, cells_action action)
{
    const int64_t *stride = j->stride[TARN_GX], bytes = j->p->element_bytes[TARN_GX];
    int64_t n[AXES] = {0}, at[AXES] = {0}, run = length(j->channels), first = j->channels.lo;
    int axes = j->last + 1; /* that are not part of a run */
    for (int a = 0; a <= j->last; a++) {
        range some = a == j->moving ? moving : j->cells[a];
        n[a] = a < j->moving ? 1 : length(some);
        first += (a < j->moving ? j->at[a].o : some.lo) * stride[a];
        if (n[a] <= 0)
            return;
    }
    while (axes > 0 && (n[axes - 1] == 1 || (stride[axes - 1] == run &&
                                             (action != ROUND || j->pitch[axes - 1] == run))))
        run *= n[--axes];
    int64_t runs = axes > 0 ? n[--axes] : 1, to_step = stride[axes]; /* of a call */
    int64_t from_step = action == ROUND ? j->pitch[axes] : to_step;
    do {
        int64_t to = first, from = 0;
        for (int a = 0; a < axes; a++) {
            to += at[a] * stride[a];
            from += at[a] * j->pitch[a];
        }
        char *gx = j->slab->base[TARN_GX] + to * bytes;
        const char *sums = action == ROUND ? j->box + from * j->sum_bytes : gx;
        for (int64_t k = 0; k < runs && action == CLEAR; k++)
            memset(gx + k * to_step * bytes, 0, (size_t)(run * bytes));
        if (action != CLEAR)
            j->ops->write_gradients[j->p->dtype](gx, to_step, sums, from_step, run, runs);
    } while (advance(at, n, 0, axes));
}

/* Makes the cells of some windows of the moving axis ready. */
static void reach(scatter_job *j, range windows)
{
    enum { AHEAD_BYTES = 128 << 10 };
    int64_t all = j->cells[j->moving].hi, bytes = j->pitch[j->moving] * j->sum_bytes;
    int64_t end = min_i64(window_end(&j->axis[j->moving], windows.hi - 1), all), from = j->ready;
    if (end <= from)
        return;
    j->ready = min_i64(max_i64(end, from + AHEAD_BYTES / max_i64(bytes, 1)), all);
    go_over_cells(j, (range){from, j->ready}, CLEAR);
}

/* ---- Lists ---------------------------------------------------------------------------------- */

/* Adds a list to sums. Adds up what the list from `first` on has for the same place, as the first
 * of its entries, the others being 0; and adds that to sums. */
#define LISTS(t)                                                                                   \
    static void add_##t(scatter_job *j)                                                            \
    {                                                                                              \
        t *restrict sums = (t *)(void *)j->sums + (j->base - j->origin);                           \
        const t *restrict value = (const t *)(const void *)j->values;                              \
        const int32_t *restrict at = j->list;                                                      \
        for (int64_t k = 0, n = j->count; k < n; k++)                                              \
            sums[at[k]] += value[k];                                                               \
        j->count = 0;                                                                              \
    }                                                                                              \
    static void join_##t(scatter_job *j, int64_t first, bool adds)                                 \
    {                                                                                              \
        t *restrict sums = (t *)(void *)j->sums + (j->base - j->origin);                           \
        t *restrict value = (t *)(void *)j->values, *restrict aside = (t *)(void *)j->aside;       \
        const int32_t *restrict at = j->list;                                                      \
        int64_t end = j->count;                                                                    \
        for (int64_t k = first; k < end; k++) {                                                    \
            aside[k] = sums[at[k]];                                                                \
            sums[at[k]] = 0;                                                                       \
        }                                                                                          \
        for (int64_t k = first; k < end; k++)                                                      \
            sums[at[k]] += value[k];                                                               \
        if (adds)                                                                                  \
            for (int64_t k = first; k < end; k++)                                                  \
                sums[at[k]] = aside[k] + sums[at[k]];                                              \
        for (int64_t k = first; k < end && !adds; k++) {                                           \
            value[k] = sums[at[k]];                                                                \
            sums[at[k]] = 0;                                                                       \
        }                                                                                          \
        for (int64_t k = end - 1; k >= first && !adds; k--)                                        \
            sums[at[k]] = aside[k];                                                                \
        j->count = adds ? first : end;                                                             \
    }
LISTS(float)
LISTS(double)
#undef LISTS

/* The same where cells have the number of their sum in the list, from 1 on. */
static void add_half(scatter_job *j, int64_t first)
{
    uint16_t *restrict cells = (uint16_t *)(void *)j->slab->base[TARN_GX] + j->base;
    float *restrict value = (float *)(void *)j->values;
    int32_t *restrict at = j->list;
    int64_t settled = j->settled;
    for (int64_t k = first; k < j->count; k++) {
        int64_t number = cells[at[k]], to = number ? number - 1 : settled;
        float more = value[k];
        value[settled] = 0;
        value[to] += more;
        at[to] = at[k];
        cells[at[k]] = (uint16_t)(to + 1);
        settled += number == 0;
    }
    j->settled = j->count = settled;
}

static void join_half(scatter_job *j, int64_t first, bool adds)
{
    uint16_t *restrict cells = (uint16_t *)(void *)j->slab->base[TARN_GX] + j->base;
    float *restrict value = (float *)(void *)j->values;
    uint16_t *restrict aside = (uint16_t *)(void *)j->aside;
    const int32_t *restrict at = j->list;
    for (int64_t k = first; k < j->count; k++) {
        int64_t number = cells[at[k]], to = number > first ? number - 1 : k;
        float more = value[k];
        value[k] = 0;
        value[to] += more;
        aside[k] = (uint16_t)number;
        cells[at[k]] = (uint16_t)(to + 1);
    }
    for (int64_t k = j->count - 1; k >= first; k--)
        cells[at[k]] = aside[k];
    if (adds)
        add_half(j, first);
}

static void store_half(scatter_job *j)
{
    uint16_t *restrict cells = (uint16_t *)(void *)j->slab->base[TARN_GX] + j->base;
    uint16_t *restrict rounded = (uint16_t *)(void *)j->aside;
    float *restrict value = (float *)(void *)j->values;
    for (int64_t k = 0; k < j->count && j->apart; k++)
        value[k] += 0; /* not -0 */
    if (j->count > 0)
        j->ops->write_gradients[j->p->dtype](rounded, j->count, value, j->count, j->count, 1);
    for (int64_t k = 0; k < j->count; k++)
        cells[j->list[k]] = rounded[k];
    j->settled = j->count = 0;
}

static void add_list(scatter_job *j)
{
    if (j->numbered && !j->apart)
        add_half(j, j->settled);
    else
        (j->apart ? store_half : j->wide ? add_double : add_float)(j);
}

/* An axis ends, whose windows are in the list from `first` on. */
static void join_list(scatter_job *j, int64_t first, bool adds)
{
    if (j->join > j->last)
        add_list(j);
    else
        (j->numbered ? join_half : j->wide ? join_double : join_float)(j, first, adds);
}

/* ---- Windows one by one --------------------------------------------------------------------- */

#define NOWHERE INT64_MIN

/* The place of the winner of window o of the row in hand, and its column. */
static int64_t place_of(const scatter_job *j, const char *codes, int64_t o, int64_t *column)
{
    const scatter_window *at = j->at;
    int64_t rest = load_winner(j->p, codes, o * j->stride[OPERAND_SAVED][j->last]), place = 0;
    scatter_window row;
    if (rest < 0 || rest >= j->taps || !find_window(j, j->last, o, &row))
        return NOWHERE;
    for (int a = j->last; a > 0; a--) {
        const scatter_window *window = a == j->last ? &row : &at[a];
        int64_t tap = rest % j->axis[a].kernel,
                cell = window->start + tap * step_of_taps(&j->axis[a]);
        if (tap < window->first || tap > window->end)
            return NOWHERE;
        *column = a == j->last ? cell : *column;
        place += cell * j->pitch[a];
        rest /= j->axis[a].kernel;
    }
    return place + at[0].o * j->pitch[0];
}

static double gradient_at(const scatter_job *j, const char *gy, int64_t o)
{
    double value[2];
    const tarn_problem *p = j->p;
    j->ops->read_gradients[p->dtype](
        value, 1, gy + o * j->stride[TARN_GY][j->last] * p->element_bytes[TARN_GY], 1, 1, 1);
    float narrow;
    memcpy(&narrow, value, sizeof narrow);
    return j->wide ? value[0] : (double)narrow;
}

/* The windows of a row, of one channel: each that is the first of its winner finds the others. */
static void list_row_slowly(scatter_job *j, const char *codes, const char *gy, int64_t channel)
{
    for (int64_t o = j->windows[j->last].lo; o < j->windows[j->last].hi; o++) {
        int64_t column = 0, place = place_of(j, codes, o, &column), other;
        bool first = place != NOWHERE;
        tarn_span windows = {.step = 1, .first = o, .lo = 0, .hi = 1};
        if (first && !j->alone)
            windows = cell_windows(&j->axis[j->last], column);
        double sum = 0;
        for (int64_t k = windows.lo; k < windows.hi && first; k++) {
            int64_t at = span_at(&windows, k);
            if (at != o && place_of(j, codes, at, &other) != place)
                continue;
            first = at >= o;
            double more = gradient_at(j, gy, at);
            sum = j->wide ? sum + more : (double)((float)sum + (float)more);
        }
        if (!first)
            continue;
        if (j->count == j->listed)
            add_list(j);
        j->list[j->count] = (int32_t)(place + channel - j->base);
        if (j->wide)
            ((double *)(void *)j->values)[j->count++] = sum;
        else
            ((float *)(void *)j->values)[j->count++] = (float)sum;
    }
}

/* Some windows of an axis, all of those behind it, and some channels. */
static void list_slowly(scatter_job *j, int axis, range windows, range channels)
{
    const tarn_problem *p = j->p;
    int64_t first = j->count;
    for (int64_t o = windows.lo; o < windows.hi && axis < j->last; o++)
        if (find_window(j, axis, o, &j->at[axis]))
            list_slowly(j, axis + 1, j->windows[axis + 1], channels);
    if (axis == j->join && j->block_axis < axis)
        join_list(j, first, true);
    int64_t codes = 0, gy = 0;
    for (int a = 0; a < j->last; a++) {
        codes += j->at[a].o * j->stride[OPERAND_SAVED][a];
        gy += j->at[a].o * j->stride[TARN_GY][a];
    }
    for (int64_t c = channels.lo; c < channels.hi && axis == j->last; c++)
        list_row_slowly(
            j, j->slab->base[OPERAND_SAVED] + (codes + c) * p->element_bytes[OPERAND_SAVED],
            j->slab->base[TARN_GY] + (gy + c) * p->element_bytes[TARN_GY], c);
}

/* ---- Windows of a block --------------------------------------------------------------------- */

static bool is_full(const scatter_job *j, int axis, const scatter_window *w)
{
    return w->first == 0 && w->end == j->axis[axis].kernel - 1;
}

/* A window's taps inside, in their field; least above most if there are none. */
static int32_t field(const scatter_job *j, int axis, const scatter_window *w, bool least)
{
    int32_t value = (int32_t)(w->first > w->end ? least : least ? w->first : w->end);
    return axis == 0 ? 0 : value << j->shift[axis];
}

/* The tables of a block's windows, from those of its last axis outwards; of a block that has not
 * all of its axis, without the taps inside on that. */
static void fill_tables(scatter_job *j)
{
    int64_t n = j->chunk;
    int64_t width = 2 * (length(j->cells[j->last]) + 2 * extent_of(&j->axis[j->last]));
    int64_t span = 0; /* of keys */
    j->clipped = false;
    j->inside = (range){0, 0};
    for (int64_t c = 0; c < n; c++) {
        j->place[c] = (int32_t)c;
        j->key[c] = j->least[c] = j->most[c] = 0;
    }
    for (int a = j->last; a >= j->block_axis; a--) {
        range windows = j->windows[a];
        bool bounds = a > j->block_axis || j->whole;
        if (a == j->block_axis)
            windows.hi = min_i64(windows.lo + j->block, windows.hi);
        int64_t first = window_start(&j->axis[a], windows.lo);
        for (int64_t o = windows.hi - 1; o >= windows.lo; o--) {
            scatter_window w;
            find_window(j, a, o, &w);
            bool inside = !bounds || is_full(j, a, &w);
            j->clipped |= a < j->last && !inside;
            if (a == j->last && inside) {
                int64_t at = (o - windows.lo) * n, next = at + n;
                j->inside = (range){at, j->inside.lo == next ? j->inside.hi : next};
            }
            int32_t least = bounds ? field(j, a, &w, true) : 0,
                    most = bounds ? field(j, a, &w, false) : 0;
            int32_t place = (int32_t)((w.start - first) * j->pitch[a]);
            int32_t more =
                (int32_t)(a == j->last ? 2 * (w.start - first) : (o - windows.lo) * span);
            for (int64_t k = 0, to = (o - windows.lo) * n; k < n; k++, to++) {
                j->key[to] = j->key[k] + more;
                j->place[to] = j->place[k] + place;
                j->least[to] = j->least[k] | least;
                j->most[to] = j->most[k] | most;
            }
        }
        n *= length(windows);
        if (a == j->last)
            j->row = n;
        j->span = span;
        span = a == j->last ? width : span * length(windows);
    }
    for (int64_t k = n; k < n + MOST_LANES; k++) /* read by whole vectors, and not used */
        j->key[k] = j->place[k] = j->least[k] = j->most[k] = 0;
}

/* Whether the tables are those of the tile in hand; notes what they will be of. */
static bool tables_are_known(scatter_job *j)
{
    int64_t now[3 * AXES + 3] = {j->block_axis, j->block, j->chunk}, *to = now + 3;
    for (int a = j->block_axis; a <= j->last; a++) {
        const tarn_axis *axis = &j->axis[a];
        int64_t lo = j->windows[a].lo, cell = j->cells[a].lo;
        *to++ = axis->adaptive ? lo : window_start(axis, lo) - cell;
        *to++ = axis->adaptive ? cell : length(j->windows[a]);
        *to++ = length(j->cells[a]);
    }
    bool same = memcmp(j->known, now, sizeof now) == 0;
    memcpy(j->known, now, sizeof now);
    return same;
}

/* The elements of a block's windows as they lie, if that is one behind the other; or copied. */
static const char *read_block(const scatter_job *j, int operand, range block, int64_t channel,
                              char *copy)
{
    const int64_t *stride = j->stride[operand];
    int64_t bytes = j->p->element_bytes[operand], run = j->chunk, first = channel;
    int64_t n[AXES] = {0}, at[AXES] = {0};
    int lowest = j->block_axis, axes = j->last + 1; /* not part of a run */
    for (int a = 0; a <= j->last; a++) {
        range some = a == lowest ? block : j->windows[a];
        n[a] = length(some);
        first += (a < lowest ? j->at[a].o : some.lo) * stride[a];
    }
    while (axes > lowest && (n[axes - 1] == 1 || stride[axes - 1] == run))
        run *= n[--axes];
    const char *from = j->slab->base[operand] + first * bytes;
    bool dense = axes == lowest && j->chunk == length(j->channels);
    if (dense && (j->whole || run / n[lowest] >= MOST_LANES) && run >= MOST_LANES)
        return from;
    char *to = copy;
    do {
        int64_t away = 0;
        for (int a = lowest; a < axes; a++)
            away += at[a] * stride[a];
        memcpy(to, from + away * bytes, (size_t)(run * bytes));
        to += run * bytes;
    } while (advance(at, n, lowest, axes));
    return copy;
}

/* The bits of +0 plus a gradient [S5]: other zeros, and other NaNs, than that [S6]. */
static inline uint16_t canonical(uint16_t infinity, uint16_t bits)
{
    uint16_t magnitude = bits & 0x7fff, nan = infinity | infinity >> 1;
    return magnitude == 0 ? 0 : magnitude > infinity ? nan : bits;
}

/* Loops of a few instructions: where they begin makes a third of what they take. */
#define PUT_WINDOWS(dtype, t, PUT)                                                                 \
    __attribute__((aligned(64))) static void put_##dtype(                                          \
        const scatter_job *j, const tarn_placing *by, const uint8_t *restrict codes,               \
        const void *gy, int64_t away, range some, bool inside)                                     \
    {                                                                                              \
        const t *restrict from = gy;                                                               \
        t *restrict to = (t *)(void *)j->sums + (away + by->all_place - j->origin);                \
        const int32_t *restrict place = by->place, *restrict least = by->least;                    \
        const int32_t *restrict most = by->most;                                                   \
        const uint64_t *restrict tap = j->tap;                                                     \
        const uint32_t signs = (uint32_t)by->signs, all_least = (uint32_t)by->all_least;           \
        const uint32_t all_most = (uint32_t)by->all_most | signs;                                  \
        const int32_t taps = by->taps;                                                             \
        for (int64_t k = some.lo; k < some.hi && inside; k++)                                      \
            if (codes[k] < taps)                                                                   \
                PUT(to[place[k] + (int32_t)tap[codes[k]]], from[k]);                               \
        for (int64_t k = some.lo; k < some.hi && !inside; k++) {                                   \
            uint32_t fields = (uint32_t)(tap[codes[k]] >> 32);                                     \
            uint32_t above = (fields | signs) - ((uint32_t)least[k] | all_least);                  \
            uint32_t below = ((uint32_t)most[k] | all_most) - fields;                              \
            if ((above & below & signs) == signs)                                                  \
                PUT(to[place[k] + (int32_t)tap[codes[k]]], from[k]);                               \
        }                                                                                          \
    }
#define ADD(cell, gradient) cell += gradient
#define STORE_F16(cell, gradient) cell = canonical(0x7c00, gradient)
#define STORE_BF16(cell, gradient) cell = canonical(0x7f80, gradient)
PUT_WINDOWS(f64, double, ADD)
PUT_WINDOWS(f32, float, ADD)
PUT_WINDOWS(f16, uint16_t, STORE_F16)
PUT_WINDOWS(bf16, uint16_t, STORE_BF16)
#undef PUT_WINDOWS
#undef ADD
#undef STORE_F16
#undef STORE_BF16

/* Puts n windows, from the first of a row on; of rows of which most windows are inside, those at
 * the ends by themselves. */
static void put_rows(const scatter_job *j, const tarn_placing *by, const uint8_t *codes,
                     const void *gy, int64_t away, int64_t n, bool full)
{
    enum { SHORT_ROW = 16 };
    range inside = j->inside;
    if (!full || length(inside) == j->row || j->row < SHORT_ROW) {
        j->put(j, by, codes, gy, away, (range){0, n}, full && length(inside) == j->row);
        return;
    }
    for (int64_t row = 0; row < n; row += j->row) {
        j->put(j, by, codes, gy, away, (range){row, row + inside.lo}, false);
        j->put(j, by, codes, gy, away, (range){row + inside.lo, row + inside.hi}, true);
        j->put(j, by, codes, gy, away, (range){row + inside.hi, row + j->row}, false);
    }
}

/* By number of a tap: where it lies from the first, and its fields, which are those of no tap for
 * numbers that name none. */
static void list_taps(scatter_job *j)
{
    for (int64_t tap = 0; tap < MOST_TAPS; tap++) {
        int64_t rest = tap;
        int32_t offset = 0, fields = 0;
        for (int a = j->last; a > 0 && tap < j->taps; a--) {
            int64_t on = rest % j->axis[a].kernel;
            offset += (int32_t)(on * tap_pitch(j, a));
            fields |= (int32_t)on << j->shift[a];
            rest /= j->axis[a].kernel;
        }
        if (tap >= j->taps)
            fields = (j->placing.signs - 1) & ~j->placing.signs;
        j->tap[tap] = (uint64_t)(uint32_t)fields << 32 | (uint32_t)offset;
    }
}

/* Whether all taps of windows are in the tile, on the axis of which the tables do not tell. */
static bool are_inside(const scatter_job *j, range windows)
{
    const tarn_axis *axis = &j->axis[j->block_axis];
    range cells = j->cells[j->block_axis];
    return j->whole || (window_start(axis, windows.lo) >= cells.lo &&
                        window_end(axis, windows.hi - 1) <= cells.hi);
}

/* The places of a block's winners: of all windows at once that are inside, of others one by one. */
static void find_block(scatter_job *j, const char *codes, const char *gy, int64_t away, range block,
                       int64_t n)
{
    int axis = j->block_axis;
    int64_t bytes = j->p->element_bytes[OPERAND_SAVED], each = n / length(block);
    tarn_placing by = j->placing;
    for (int a = 1; a < axis; a++) {
        by.all_least |= field(j, a, &j->at[a], true);
        by.all_most |= field(j, a, &j->at[a], false);
    }
    int32_t least = by.all_least, most = by.all_most;
    bool full = !j->clipped;
    for (int a = 1; a < axis; a++)
        full &= is_full(j, a, &j->at[a]);
    for (range some = {block.lo, block.hi}; some.lo < block.hi; some.lo = some.hi) {
        scatter_window w = {0};
        int64_t at = (some.lo - block.lo) * each;
        bool alike = j->whole || !j->axis[axis].adaptive;
        some.hi = alike && are_inside(j, (range){some.lo, some.lo + 1}) ? block.hi : some.lo + 1;
        while (length(some) > 1 && !are_inside(j, some))
            some.hi--;
        int64_t table = alike ? at : 0;
        if (!j->whole) {
            find_window(j, axis, some.lo, &w);
            by.all_least = least | field(j, axis, &w, true);
            by.all_most = most | field(j, axis, &w, false);
        }
        if (!alike) { /* the tables of the first window have to do */
            by.all_key = (int32_t)((some.lo - block.lo) * j->span);
            by.all_place = (int32_t)((w.start - j->at[axis].start) * j->pitch[axis]);
        }
        by.key = j->key + table;
        by.place = j->place + table;
        by.least = j->least + table;
        by.most = j->most + table;
        if (j->put)
            put_rows(j, &by, (const uint8_t *)codes + at, gy + at * j->put_bytes, away,
                     length(some) * each, full && (j->whole || is_full(j, axis, &w)));
        else {
            by.clipped = !full || length(j->inside) < j->row || !(j->whole || is_full(j, axis, &w));
            j->ops->find_places[bytes > 1](j->keys + at, j->places + at, codes + at * bytes, &by,
                                           max_i64(length(some) * each, j->ops->vector_bytes / 4));
        }
    }
}

/* The place of the first tap of the first windows in hand, on the first axes. */
static int64_t first_place(const scatter_job *j, int axes)
{
    int64_t place = 0;
    for (int a = 0; a < axes; a++)
        place += j->pitch[a] * (a <= j->block_axis ? j->at[a].start
                                                   : window_start(&j->axis[a], j->windows[a].lo));
    return place;
}

/* Lists the runs of a block, whose winners have their places; false if winners are none. Windows
 * before the axis that is joined are one list each. */
static bool list_runs(scatter_job *j, const char *gy, int32_t away, range block, int64_t n)
{
    enum { MOST_ROUNDS = 12 };
    int64_t behind = windows_behind(&j->axis[j->last]), start = j->count;
    int64_t each = n, bytes = j->sum_bytes;
    for (int64_t k = n; k < n + j->lag + MOST_LANES; k++)
        j->keys[k] = INT32_MAX - 1;
    memset(j->places + n, 0, MOST_LANES * sizeof j->places[0]);
    j->ops->read_gradients[j->p->dtype](j->gradients, n, gy, n, n, 1);
    memset(j->gradients + n * bytes, 0, (size_t)(MOST_LANES * bytes));
    bool many = behind > MOST_ROUNDS || behind * j->lag > MOST_LAG;
    const char *sums = many ? j->run_sums : j->gradients;
    tarn_runs runs = {j->keys, j->places, j->gradients, sums, j->lag, many ? 0 : behind, away};
    if (many)
        j->ops->sum_runs[j->wide](j->run_sums, &runs, n);
    for (int a = j->block_axis; a < j->join && j->join <= j->last; a++)
        each /= length(a == j->block_axis ? block : j->windows[a]);
    for (int64_t at = 0; at < n; at += each) {
        runs.keys = j->keys + at;
        runs.places = j->places + at;
        runs.gy = j->gradients + at * bytes;
        runs.sums = sums + at * bytes;
        int64_t listed = j->ops->list_runs[j->wide](
            j->list + j->count, j->values + j->count * bytes, &runs, each, &j->odd);
        if (listed < 0) {
            j->count = start;
            return false;
        }
        j->count += listed;
        j->ends[at / each] = (uint16_t)j->count;
    }
    if (j->block_axis >= j->join)
        return true;
    for (int64_t k = 0, first = start; k < n / each; first = j->ends[k++]) {
        j->count = j->ends[k];
        join_list(j, first, true);
    }
    j->count = j->settled;
    return true;
}

/* Lists `chunk` channels of the block, the first `skipped` of them being done; false if runs are
 * none. */
static bool list_block(scatter_job *j, range block, int64_t channel, int64_t skipped, int64_t n)
{
    const tarn_problem *p = j->p;
    int64_t code_bytes = p->element_bytes[OPERAND_SAVED];
    const char *codes = read_block(j, OPERAND_SAVED, block, channel, j->run_sums);
    for (int64_t k = 0; k < n && skipped > 0; k += j->chunk) /* then there are copies */
        memset(j->run_sums + k * code_bytes, 0xff, (size_t)(skipped * code_bytes));
    const char *gy = read_block(j, TARN_GY, block, channel,
                                j->half ? j->run_sums + 4 * MOST_WINDOWS : j->gradients);
    int64_t place = channel + first_place(j, j->last + 1);
    if (j->put) {
        j->odd |= !j->half && !j->ops->are_tame[j->wide](gy, n);
        if (j->sums == j->box) {
            j->ops->read_gradients[p->dtype](j->keys, n, gy, n, n, 1);
            gy = (const char *)j->keys;
        }
    }
    find_block(j, codes, gy, place, block, n);
    if (j->put)
        return true;
    return list_runs(j, gy, (int32_t)(place - j->base), block, n);
}

static void run_block(scatter_job *j, range block)
{
    int64_t n = j->chunk * length(block);
    scatter_window kept = j->at[j->block_axis];
    bool adds = j->block_axis < j->join; /* or they wait for the end of their axis */
    for (int a = j->block_axis + 1; a <= j->last; a++)
        n *= length(j->windows[a]);
    j->base = first_place(j, j->half ? 1 : adds ? j->last + 1 : j->join);
    for (int64_t c = j->channels.lo; c < j->channels.hi; c += j->chunk) {
        int64_t from = min_i64(c, j->channels.hi - j->chunk);
        if (j->slow || !list_block(j, block, from, c - from, n)) {
            j->odd = true;
            list_slowly(j, j->block_axis, block, (range){c, from + j->chunk});
            j->at[j->block_axis] = kept;
        }
        if (adds)
            add_list(j);
    }
}

/* Where the sums of some planes lie: in gx, or in the box. */
static void start_plane(scatter_job *j, range planes)
{
    j->sums = j->slab->base[TARN_GX];
    j->origin = 0;
    if (!j->half || j->numbered)
        return;
    j->sums = j->box;
    j->origin = j->channels.lo + planes.lo * j->pitch[0];
    for (int a = 1; a <= j->last; a++)
        j->origin += j->cells[a].lo * j->pitch[a];
    memset(j->box, 0, (size_t)(length(planes) * j->pitch[0] * j->sum_bytes));
}

/* The windows of the axes from `axis` on. */
static void visit(scatter_job *j, int axis)
{
    range all = j->windows[axis], some = {all.lo, all.lo};
    int64_t first = j->count;
    if (axis == j->moving) {
        j->odd = false;
        j->ready = j->cells[axis].lo;
    }
    for (; some.lo < all.hi; some.lo = some.hi) {
        some.hi = axis == j->block_axis ? min_i64(some.lo + j->block, all.hi) : some.lo + 1;
        if (axis == 0)
            start_plane(j, some);
        if (axis == j->moving && j->sums != j->box)
            reach(j, some);
        bool any = find_window(j, axis, some.lo, &j->at[axis]);
        if (axis == j->block_axis && j->read)
            run_block(j, some);
        else if (axis != j->block_axis && any)
            visit(j, axis + 1);
        if (axis == 0 && j->numbered)
            store_half(j);
        if (axis == 0 && j->half && !j->numbered)
            go_over_cells(j, j->moving == 0 ? some : j->cells[1], ROUND);
    }
    if (j->joins[axis] && j->block_axis >= j->join)
        join_list(j, first, axis == j->join);
    if (axis == j->moving && j->sums != j->box)
        go_over_cells(j, (range){j->ready, j->cells[axis].hi}, CLEAR);
    if (axis == j->moving && j->odd && !j->half)
        go_over_cells(j, j->cells[axis], CORRECT);
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* At most so many windows of an axis read so many cells. */
static int64_t most_windows(const tarn_axis *axis, int64_t cells)
{
    int64_t most = axis->adaptive ? muldiv_ceil(cells, axis->windows, axis->whole) + 1
                                  : (cells + extent_of(axis) - 2) / axis->stride + 1;
    return min_i64(most, axis->out);
}

static int64_t bounded_product(int64_t a, int64_t b)
{
    return min_i64(a, MOST_SPAN) * min_i64(b, MOST_SPAN);
}

static bool row_fits(const scatter_job *j)
{
    int64_t channels = min_i64(j->pixel, CHANNELS_TOGETHER), last = j->last;
    return bounded_product(most_windows(&j->axis[last], j->size[last]), channels) <= MOST_WINDOWS &&
           bounded_product(channels, j->axis[last].window_step) <= MOST_LAG;
}

/* Cells of the tile, and entries of a list at most: of 16 bits, all cells of the tile that won, and
 * more. */
static int64_t most_listed(const scatter_job *j, int64_t *cells)
{
    int64_t n = j->pixel, windows = n;
    *cells = n;
    for (int a = 1; a <= j->last; a++) {
        int64_t some = most_windows(&j->axis[a], j->size[a]);
        windows = bounded_product(windows, some);
        *cells = bounded_product(*cells, j->size[a]);
        if (a >= j->join)
            n = bounded_product(n, some);
    }
    n = j->join > j->last ? MOST_WINDOWS : max_i64(n, MOST_WINDOWS);
    int64_t settled = max_i64(min_i64(windows, *cells), MOST_WINDOWS); /* see choose_block() */
    return n + (j->numbered && !j->apart ? settled : 0) + MOST_LANES;
}

static bool list_fits(const scatter_job *j)
{
    int64_t each = 4 + j->sum_bytes + (j->numbered ? 2 : j->join > j->last ? 0 : j->sum_bytes);
    int64_t cells, n = most_listed(j, &cells), span = 0;
    for (int a = 1; a <= j->last; a++) {
        int64_t reach = j->size[a] + extent_of(&j->axis[a]), stride = j->stride[TARN_GX][a];
        span += bounded_product(reach, stride < 0 ? -stride : stride);
    }
    n = bounded_product(n, each) + (j->half && !j->numbered ? cells * j->sum_bytes : 0);
    return n + 4 * ALIGNMENT <= j->room_bytes && span < MOST_SPAN;
}

/* Halves what has most cells for its windows, or many channels: these also where windows would be
 * read by many tiles; false if nothing fits. */
static bool cut_tile(scatter_job *j)
{
    for (int a = 1; a <= j->last; a++)
        j->size[a] = length(j->all[a]);
    j->pixel = j->p->lanes;
    for (;;) {
        bool row = j->slow || row_fits(j);
        if (row && list_fits(j))
            return true;
        int best = row ? -1 : j->last;
        double most = 0;
        int first = j->half || j->join > j->last ? 1 : j->join; /* others make no list shorter */
        for (int a = first; a <= j->last && row; a++) {
            const tarn_axis *axis = &j->axis[a];
            int64_t shared = extent_of(axis) - (axis->adaptive ? 0 : axis->stride - 1);
            double times = (double)j->size[a] / (double)max_i64(shared, 1);
            if (j->size[a] > 1 && times > most) {
                most = times;
                best = a;
            }
        }
        most = best < 0 ? 0 : (double)j->size[best] / (double)extent_of(&j->axis[best]);
        bool channels = j->pixel > (j->numbered ? MOST_LAG : CHANNELS_TOGETHER) ||
                        (j->pixel > 1 && most <= (j->half || j->pixel <= FEW_CHANNELS ? 1 : 4));
        if ((row && channels) || best < 0 || j->size[best] == 1) {
            if (j->pixel == 1)
                return false;
            j->pixel = ceil_div(j->pixel, 2);
        } else {
            const tarn_axis *axis = &j->axis[best];
            int64_t size = ceil_div(j->size[best], 2);
            int64_t stride = axis->adaptive ? 1 : axis->stride; /* which has none */
            int64_t most_cells =
                (MOST_WINDOWS / min_i64(j->pixel, CHANNELS_TOGETHER) - 2) * stride -
                extent_of(axis);
            if (!row && !axis->adaptive && most_cells > 0)
                size = max_i64(min_i64(j->size[best] - 1, most_cells), 1);
            int64_t alike = ceil_div(size, stride) * stride; /* tiles are, then */
            if (!axis->adaptive && alike < j->size[best] && row)
                size = alike;
            else if (!axis->adaptive && size > stride)
                size -= size % stride;
            j->size[best] = size;
        }
    }
}

/* What of the tile is one block: as many whole axes as fit, and some windows of the next. */
static void choose_block(scatter_job *j)
{
    int64_t row = length(j->windows[j->last]), span = MOST_SPAN;
    j->chunk = min_i64(length(j->channels), MOST_LAG / j->axis[j->last].window_step);
    j->chunk = j->slow ? 1 : min_i64(j->chunk, MOST_WINDOWS / row);
    if (j->chunk > CHANNELS_TOGETHER && j->chunk < length(j->channels))
        j->chunk -= j->chunk % CHANNELS_TOGETHER;
    j->lag = j->chunk * j->axis[j->last].window_step;
    j->block_axis = j->last;
    j->block = row;
    span /= length(j->cells[j->last]) + 2 * extent_of(&j->axis[j->last]);
    for (int64_t n = row * j->chunk; j->block_axis > j->lowest && !j->slow;) {
        int next = j->block_axis - 1;
        int64_t all = length(j->windows[next]), some = min_i64(MOST_WINDOWS / n, span);
        int64_t stride = j->stride[TARN_GX][0];
        if (next == 0)
            some = stride > 0 ? min_i64(some, MOST_SPAN / stride) : 1;
        if (next == 0 && j->half && !j->numbered)
            some = min_i64(some, j->boxes);
        if (next == 0 && j->numbered && !j->apart) /* their cells are settled in one list */
            some = min_i64(some, MOST_WINDOWS / (n / j->chunk * length(j->channels)));
        if (some < 1 || (some < all && some < 2))
            break;
        j->block_axis = next;
        j->block = min_i64(some, all);
        n *= j->block;
        span /= j->block;
        if (some < all)
            break;
    }
    j->whole = j->block_axis > 0 && j->block >= length(j->windows[j->block_axis]);
    j->moving = j->block_axis == 0 ? 0 : 1;
}

/* Strides of planes are those of a leading axis. Pitches are gx's, or those of the box, which has
 * room for the largest tile. */
static void set_pitches(scatter_job *j)
{
    const tarn_problem *p = j->p;
    int64_t pitch = j->pixel;
    for (int k = 0; k < OPERANDS && p->leading > 0; k++)
        j->stride[k][0] = p->lead_stride[k][p->leading - 1];
    for (int a = j->last; a >= 0; a--) {
        int64_t stride = a > 0 && j->axis[a].size == 1 ? 0 : j->stride[TARN_GX][a];
        j->pitch[a] = j->half && !j->numbered ? pitch : stride;
        pitch *= a > 0 ? j->size[a] : 1;
    }
    j->placing.axis[0].place = (int32_t)tap_pitch(j, j->last);
    for (int a = j->last - 1; a > 0; a--)
        j->placing.axis[j->last - a].place =
            (int32_t)(tap_pitch(j, a) - j->axis[a + 1].kernel * tap_pitch(j, a + 1));
}

static void run_tile(scatter_job *j)
{
    j->read = true;
    for (int a = 0; a <= j->last; a++) {
        j->windows[a] = tarn_windows_reading(&j->axis[a], j->cells[a]);
        j->read &= length(j->windows[a]) > 0;
    }
    for (int a = 1; a <= j->last && !j->read; a++)
        j->windows[a] = (range){0, 1};
    set_pitches(j);
    choose_block(j);
    if (!tables_are_known(j) && !j->slow)
        fill_tables(j);
    visit(j, 0);
}

/* ---- The job -------------------------------------------------------------------------------- */

/* Tiles begin where windows do that share no cell. */
static void set_cells(scatter_job *j, int a, range cells)
{
    const tarn_axis *axis = &j->axis[a];
    j->begin[a] = cells.lo;
    j->all[a] = cells;
    if (!axis->adaptive && axis->stride < length(cells))
        j->all[a].lo = floor_div(cells.lo + axis->lo, axis->stride) * axis->stride - axis->lo;
}

static void set_axes(scatter_job *j, const range *box)
{
    const tarn_problem *p = j->p;
    int shift = 0;
    j->last = p->spatial;
    j->join = j->last + 1;
    j->taps = 1;
    j->axis[0] = (tarn_axis){.kernel = 1, .stride = 1, .dilation = 1, .tap_step = 1};
    j->axis[0].window_step = j->axis[0].gcd = 1;
    int overlapping = 0;
    for (int a = 1; a <= j->last; a++) {
        j->axis[a] = p->axis[a - 1];
        if (j->axis[a].adaptive)
            j->axis[a].window_step = 1;
        set_cells(j, a, box ? box[a - 1] : (range){0, j->axis[a].size});
        for (int k = 0; k < OPERANDS; k++)
            j->stride[k][a] = p->stride[k][a - 1];
        j->taps *= j->axis[a].kernel;
        bool overlaps = tarn_windows_overlap(&j->axis[a]);
        j->joins[a] = overlaps && overlapping > 0 && a < j->last;
        if (j->joins[a] && j->join <= j->last)
            j->lowest = a; /* blocks may have many of one joined axis only */
        if (j->joins[a] && j->join > a)
            j->join = a;
        overlapping += overlaps;
    }
    j->alone = overlapping == 1;
    j->placing = (tarn_placing){.axes = j->last,
                                .taps = (int32_t)j->taps,
                                .key = j->key,
                                .place = j->place,
                                .least = j->least,
                                .most = j->most};
    int64_t divisor = 1, key = 2 * step_of_taps(&j->axis[j->last]), field = 0;
    for (int a = j->last; a > 0; a--) {
        int64_t kernel = j->axis[a].kernel;
        tarn_placed_axis *by = &j->placing.axis[j->last - a];
        by->divisor = (int32_t)divisor;
        by->reciprocal = (int32_t)((1 << 16) / divisor + 1);
        by->inverse = 1 / (float)divisor;
        by->key = (int32_t)(a == j->last ? key : -key * j->axis[j->last].kernel);
        by->field = (int32_t)((INT64_C(1) << min_i64(shift, 31)) - field);
        field = kernel << min_i64(shift, 31);
        divisor *= kernel;
        j->shift[a] = shift;
        shift += 64 - __builtin_clzll((uint64_t)kernel);
        if (shift < 31)
            j->placing.signs |= (int32_t)(UINT32_C(1) << shift);
        shift++;
    }
    j->slow = shift > 31 || j->taps / j->axis[j->last].kernel >= 1 << 22 ||
              windows_behind(&j->axis[j->last]) >= MOST_WINDOWS / 2 ||
              j->axis[j->last].window_step > MOST_LAG;
    j->apart = j->half && overlapping == 0;
    static scatter_put *const puts[] = {
        [TARN_F64] = put_f64, [TARN_F32] = put_f32, [TARN_F16] = put_f16, [TARN_BF16] = put_bf16};
    j->numbered = j->apart || tarn_sums_are_numbered(p);
    if (p->element_bytes[OPERAND_SAVED] == 1 && overlapping < 2 && (j->apart || !j->numbered))
        j->put = j->half && !j->apart ? put_f32 : puts[p->dtype];
    j->put_bytes = j->apart ? p->element_bytes[TARN_GY] : j->sum_bytes;
}

static void divide_room(scatter_job *j, char *room)
{
    int64_t cells;
    j->listed = most_listed(j, &cells);
    int64_t bytes = ceil_div(j->listed * j->sum_bytes, ALIGNMENT) * ALIGNMENT;
    j->values = room;
    j->list = (int32_t *)(void *)(room + bytes);
    j->aside = room + bytes + ceil_div(j->listed * 4, ALIGNMENT) * ALIGNMENT;
    j->box = j->aside + (j->join > j->last ? 0 : bytes);
    j->boxes = (j->room_bytes - (j->box - room)) / (cells * j->sum_bytes);
    j->known[0] = -1;
}

/* Tiles of some planes that stay in the cache, as tables are for all that are alike. */
static void run_tiles(scatter_job *j)
{
    for (int64_t c = 0; c < j->p->lanes; c += j->pixel) {
        j->channels.lo = min_i64(c, j->p->lanes - j->pixel); /* some twice */
        j->channels.hi = j->channels.lo + j->pixel;
        tarn_first_box(j->cells + 1, j->all + 1, j->size + 1, j->last);
        do {
            bool any = true;
            for (int a = 1; a <= j->last; a++) {
                j->cells[a].lo = max_i64(j->cells[a].lo, j->begin[a]);
                any &= length(j->cells[a]) > 0;
            }
            if (any)
                run_tile(j);
        } while (tarn_next_box(j->cells + 1, j->all + 1, j->size + 1, j->last));
    }
}

static void run_planes(scatter_job *j)
{
    enum { CACHED_BYTES = 1 << 20 };
    bool whole = j->pixel == j->p->lanes;
    double bytes = (double)(j->p->lanes * j->p->element_bytes[TARN_GX]);
    for (int a = 1; a <= j->last; a++) {
        whole &= j->size[a] == length(j->all[a]);
        bytes *= (double)length(j->all[a]);
    }
    int64_t all = j->axis[0].size;
    int64_t some = whole ? all : max_i64((int64_t)(CACHED_BYTES / bytes), 1);
    for (int64_t lo = 0; lo < all; lo += some) {
        j->cells[0] = (range){lo, min_i64(lo + some, all)};
        run_tiles(j);
    }
}

static void scatter_in(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const range *box, const tarn_row_ops *ops, char *room, int64_t room_bytes)
{
    tarn_slab slab;
    scatter_tables tables;
    int32_t(*of_windows)[WHOLE_VECTORS] = tables.of_windows, *keys = tables.found + MOST_LAG;
    double *gradients = tables.sums + MOST_LAG;
    scatter_job j = {.p = p,
                     .ops = ops,
                     .slab = &slab,
                     .key = of_windows[0],
                     .place = of_windows[1],
                     .least = of_windows[2],
                     .most = of_windows[3],
                     .keys = keys,
                     .places = keys + WHOLE_VECTORS + MOST_LAG,
                     .ends = tables.ends,
                     .gradients = (char *)gradients,
                     .run_sums = (char *)(gradients + WHOLE_VECTORS),
                     .tap = tables.tap,
                     .wide = p->dtype == TARN_F64,
                     .half = p->element_bytes[TARN_GX] == 2,
                     .sum_bytes = p->dtype == TARN_F64 ? 8 : 4,
                     .room_bytes = room_bytes};
    range units = {0, 0};
    set_axes(&j, box);
    for (int k = 0; k < MOST_LAG; k++)
        tables.found[k] = INT32_MIN;
    memset(tables.sums, 0, MOST_LAG * sizeof tables.sums[0]);
    while (begin < end) {
        int64_t size = p->axis[0].size, planes = max_i64(tarn_whole_planes(p, begin, end), 1);
        next_slab(p, t, size, &begin, end, &slab);
        begin += (planes - 1) * size;
        j.axis[0].size = j.axis[0].out = planes;
        set_cells(&j, 1, (range){slab.lo, slab.hi});
        if (units.lo != slab.lo || units.hi != slab.hi) {
            cut_tile(&j);
            divide_room(&j, room);
            set_pitches(&j);
            if (j.put)
                list_taps(&j);
        }
        units = (range){slab.lo, slab.hi};
        run_planes(&j);
    }
}

__attribute__((noinline)) static void scatter_in_little(const tarn_problem *p,
                                                        const tarn_tensors *t, int64_t begin,
                                                        int64_t end, const range *box,
                                                        const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char room[LITTLE_ROOM_BYTES];
    scatter_in(p, t, begin, end, box, ops, room, LITTLE_ROOM_BYTES);
}

__attribute__((noinline)) static void scatter_in_much(const tarn_problem *p, const tarn_tensors *t,
                                                      int64_t begin, int64_t end,
                                                      const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char room[ROOM_BYTES];
    scatter_in(p, t, begin, end, NULL, ops, room, ROOM_BYTES);
}

void tarn_scatter_gradients(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const range *box, const tarn_row_ops *ops)
{
    if (box)
        scatter_in_little(p, t, begin, end, box, ops);
    else
        scatter_in_much(p, t, begin, end, ops);
}

bool tarn_can_scatter(const tarn_problem *p, const tarn_row_ops *ops)
{
    scatter_job j = {.p = p,
                     .ops = ops,
                     .half = p->element_bytes[TARN_GX] == 2,
                     .sum_bytes = p->dtype == TARN_F64 ? 8 : 4,
                     .room_bytes = LITTLE_ROOM_BYTES};
    set_axes(&j, NULL);
    return cut_tile(&j);
}
