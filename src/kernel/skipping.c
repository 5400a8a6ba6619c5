/* Max, min and avg where taps are skipped [K1-K4]: values, winners, tangents, and the gradient of
 * avg.
 *
 * The forward engine does most of it: as it converts rows, it replaces what is skipped by what wins
 * no window, or adds nothing. Means are made of two of its results, for boxes of windows that fit
 * the stack: sums, and counts of taps, which are sums of ones. Extremes are right but where the
 * winner is what skipped taps were replaced by: those windows, and such in which too few taps
 * count, are looked at one by one. Gradients of means are those of quotients by such counts, which
 * the engine of gradients adds up for a box of cells; cells that are skipped get none. Some cells
 * are looked through first: where none of them is skipped, the other engines do all of it.
 */
#include "boxes.h"
#include "engines.h"
#include "row_types.h"
#include "skipping.h"
#include "winners.h"

enum {
    SKIP_BYTES = 8 << 10,      /* of the stack, on which other engines run */
    QUOTIENT_BYTES = 20 << 10, /* of theirs, for gradients */
    MOST_SKIP_LANES = 64,
    ROW_ELEMENTS = 256,
    LONGER = 16 /* rows of a box of cells than its other axes */
};

typedef struct skip_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    tarn_skip_rule rule;
    char *base[OPERANDS];            /* of the plane */
    int64_t planes;                  /* whole ones, one behind the other */
    range windows[TARN_MAX_SPATIAL]; /* the box in hand */
    range lanes;
    int64_t o[TARN_MAX_SPATIAL]; /* a window of it */
    bool single;                 /* sums and counts are f32, not f64 */
    char *sums, *counts;         /* of the box; its values instead of sums, if there is no y */
    bool backward;               /* gradients of means */
    int64_t rows;                /* units of a plane */
    int64_t box[TARN_MAX_SPATIAL], box_lanes; /* backward: cells of a box, at most */
    bool clean;                  /* no cell of the slab is skipped */
    bool counted;                /* there are counts */
    bool pads;                   /* windows may have taps in the padding */
    bool lacking;                /* windows may have too few taps even if none is skipped */
} skip_job;

/* ---- Boxes ---------------------------------------------------------------------------------- */

static int64_t sum_bytes(const skip_job *j)
{
    return j->single ? sizeof(float) : sizeof(double);
}

/* Whether an element of a row is skipped. */
static bool has_skipped(const skip_job *j, const char *from, int64_t n)
{
    uint8_t counts[ROW_ELEMENTS];
    for (int64_t at = 0, some; at < n; at += some, from += some * j->rule.bytes) {
        some = min_i64(n - at, ROW_ELEMENTS);
        tarn_count_others(counts, from, &j->rule, some);
        if (memchr(counts, 0, (size_t)some))
            return true;
    }
    return false;
}

/* Whether no cell of the box in hand is skipped, in one plane; cells that are not side by side are
 * not looked at. */
static bool is_clean(const skip_job *j, const char *x)
{
    const tarn_problem *p = j->p;
    const int last = p->spatial - 1;
    box cells;
    int64_t cell[TARN_MAX_SPATIAL];
    bool clean = p->stride[TARN_X][last] == p->lanes && length(j->lanes) == p->lanes;
    for (int a = 0; a <= last; a++) {
        cells.count[a] = tarn_axis_of_windows(&p->axis[a], j->windows[a], &cells.from[a]).size;
        cell[a] = cells.from[a];
    }
    do
        clean = clean && !has_skipped(j, x + offset_of(p, TARN_X, cell) * j->rule.bytes,
                                      cells.count[last] * p->lanes);
    while (clean && next_place(last, &cells, cell));
    return clean;
}

static bool all_clean(const skip_job *j)
{
    int64_t plane = 0;
    if (j->planes > 1)
        plane = j->p->lead_stride[TARN_X][j->p->leading - 1] * j->rule.bytes;
    bool clean = true;
    for (int64_t k = 0; k < j->planes && clean; k++)
        clean = is_clean(j, j->base[TARN_X] + k * plane);
    return clean;
}

/* The problem of the box, whose results are dense, channels last. */
static void set_box(const skip_job *j, int written, tarn_problem *box, tarn_tensors *t)
{
    const tarn_problem *p = j->p;
    int64_t cell[TARN_MAX_SPATIAL], window[TARN_MAX_SPATIAL], step = length(j->lanes);
    *box = *p;
    box->nested = true;
    box->lanes = step;
    for (int a = p->spatial - 1; a >= 0; step *= length(j->windows[a--])) {
        box->axis[a] = tarn_axis_of_windows(&p->axis[a], j->windows[a], &cell[a]);
        box->stride[written][a] = step;
        window[a] = j->windows[a].lo;
    }
    box->planes = box->lead_size[0] = j->planes;
    box->leading = j->planes > 1;
    for (int k = 0; k < OPERANDS; k++) {
        int64_t first = offset_of(p, k, k == TARN_X || k == TARN_DX ? cell : window) + j->lanes.lo;
        t->base[k] = j->base[k] ? j->base[k] + first * p->element_bytes[k] : NULL;
        if (box->leading)
            box->lead_stride[k][0] = k == written ? step : p->lead_stride[k][p->leading - 1];
    }
}

/* Sums of x, or of dx, or counts of the box. */
__attribute__((noinline)) static void sum_box(const skip_job *j, tarn_mean_part part, int in,
                                              char *to)
{
    const int out = in == TARN_DX ? TARN_DY : TARN_Y;
    tarn_problem box;
    tarn_tensors all, t = {{NULL}};
    set_box(j, out, &box, &all);
    box.op = TARN_AVG;
    box.part = part;
    box.divisor = 1;
    box.element_bytes[out] = sum_bytes(j);
    t.base[TARN_X] = all.base[TARN_X];
    t.base[in] = all.base[in];
    t.base[out] = to;
    tarn_engine_forward(&box, &t, 0, j->planes * box.axis[0].out, j->ops);
}

/* Winners and tangents of the box, and its values, where y is not asked for. */
__attribute__((noinline)) static void find_box(const skip_job *j)
{
    tarn_problem box;
    tarn_tensors t;
    set_box(j, TARN_Y, &box, &t);
    t.base[TARN_Y] = j->sums;
    tarn_engine_forward(&box, &t, 0, j->planes * box.axis[0].out, j->ops);
}

/* Windows that boxes have on each axis, and lanes: outer axes are cut first. */
static int64_t cut_boxes(const tarn_problem *p, int64_t room, int64_t *size)
{
    int64_t lanes = min_i64(p->lanes, MOST_SKIP_LANES);
    room /= lanes;
    for (int a = p->spatial - 1; a >= 0; a--) {
        size[a] = max_i64(min_i64(p->axis[a].out, room), 1);
        room /= size[a];
    }
    return lanes;
}

/* Calls `write` for each row of windows of the box, with the number of windows before it. */
static void for_rows(skip_job *j, void (*write)(skip_job *, int64_t at))
{
    const tarn_problem *p = j->p;
    const int last = p->spatial - 1;
    int64_t at = 0, row = length(j->windows[last]) * length(j->lanes);
    char *base[OPERANDS];
    box windows;
    for (int a = 0; a <= last; a++) {
        windows.from[a] = j->windows[a].lo;
        windows.count[a] = length(j->windows[a]);
    }
    memcpy(base, j->base, sizeof base);
    for (int64_t plane = 0; plane < j->planes; plane++) {
        memcpy(j->o, windows.from, sizeof j->o);
        do {
            j->o[last] = windows.from[last];
            write(j, at);
            at += row;
        } while (next_place(last, &windows, j->o));
        for (int k = 0; k < OPERANDS && j->planes > 1; k++)
            if (j->base[k])
                j->base[k] += p->lead_stride[k][p->leading - 1] * p->element_bytes[k];
    }
    memcpy(j->base, base, sizeof base);
}

/* ---- Means ---------------------------------------------------------------------------------- */

/* [K3] A window of which too few taps count: in y, or in dy. */
static void write_none(const skip_job *j, int operand, char *to)
{
    static const char zero[8];
    bool has_value = operand == TARN_Y && j->p->min_count > 0;
    memcpy(to, has_value ? j->p->skipped : zero, (size_t)j->rule.bytes);
}

static double count_at(const skip_job *j, int64_t at)
{
    return j->single ? (double)((const float *)(const void *)j->counts)[at]
                     : ((const double *)(const void *)j->counts)[at];
}

/* Of the window in hand. */
static int64_t real_taps(const skip_job *j)
{
    int64_t real = 1;
    for (int a = 0; a < j->p->spatial; a++) {
        tarn_span taps = window_taps(&j->p->axis[a], j->o[a]);
        real *= taps.hi - taps.lo;
    }
    return real;
}

/* [A2] Taps of the window in hand that are padding and count. */
static double padding_taps(const skip_job *j)
{
    int64_t padded = 1;
    for (int a = 0; a < j->p->spatial; a++)
        padded *= padded_taps(&j->p->axis[a], j->o[a]);
    return j->p->count_include_pad ? (double)(padded - real_taps(j)) : 0;
}

/* n divisors, from counts and the padding that counts. A mean without one is told, and divided by
 * 1; returns whether there is any. */
#define SET_DIVISORS(name, type)                                                                   \
    static bool name(const tarn_problem *p, type *to, const type *counts, double padding,          \
                     uint8_t *none, int64_t n)                                                     \
    {                                                                                              \
        const type least = (type)min_i64(p->min_count, 1 << 24), more = (type)padding,             \
                   given = (type)p->divisor;                                                       \
        uint8_t any = 0;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type divisor = given > 0 ? given : counts[i] + more;                                   \
            none[i] = (counts[i] < least) | (divisor == 0);                                        \
            to[i] = divisor == 0 ? 1 : divisor;                                                    \
            any |= none[i];                                                                        \
        }                                                                                          \
        return any;                                                                                \
    }
SET_DIVISORS(set_divisors_f32, float)
SET_DIVISORS(set_divisors_f64, double)
#undef SET_DIVISORS

static bool set_divisors(const skip_job *j, char *to, int64_t at, int64_t n, uint8_t *none)
{
    double padding = j->pads ? padding_taps(j) : 0;
    const void *counts = j->counts + at * sum_bytes(j);
    return j->single ? set_divisors_f32(j->p, (void *)to, counts, padding, none, n)
                     : set_divisors_f64(j->p, (void *)to, counts, padding, none, n);
}

/* How many of the next `many` windows of a row, from the one in hand on, have as much padding: all
 * if there is none. */
static int64_t windows_alike(const skip_job *j, int64_t many)
{
    const tarn_axis *axis = &j->p->axis[j->p->spatial - 1];
    int64_t o = j->o[j->p->spatial - 1], reach = axis->dilation * (axis->kernel - 1) + 1;
    if (!j->pads) /* nor have adaptive windows */
        return many;
    int64_t inside = floor_div(axis->size + axis->lo - reach, axis->stride) + 1;
    return o * axis->stride >= axis->lo && o < inside ? min_i64(many, inside - o) : 1;
}

/* Some windows of a row: what they are divided by, and which have none. */
typedef struct divided {
    _Alignas(32) char divisors[ROW_ELEMENTS * sizeof(double)];
    uint8_t none[ROW_ELEMENTS];
    bool any; /* of them */
} divided;

static void divide_some(skip_job *j, int64_t at, int64_t many, divided *by)
{
    const int last = j->p->spatial - 1;
    const int64_t lanes = length(j->lanes), first = j->o[last];
    by->any = false;
    for (int64_t i = 0, some; i < many; i += some) {
        j->o[last] = first + i;
        some = windows_alike(j, many - i);
        by->any |= set_divisors(j, by->divisors + i * lanes * sum_bytes(j), at + i * lanes,
                                some * lanes, by->none + i * lanes);
    }
    j->o[last] = first;
}

static char *element(const skip_job *j, int operand, const int64_t *at, int64_t lane)
{
    int64_t offset = offset_of(j->p, operand, at) + lane;
    return j->base[operand] + offset * j->p->element_bytes[operand];
}

/* `many` windows from the one in hand on: values, or tangents. */
__attribute__((noinline)) static void write_some_means(skip_job *j, int operand, int64_t at,
                                                       int64_t many)
{
    _Alignas(32) char means[ROW_ELEMENTS * sizeof(double)];
    divided by;
    const tarn_problem *p = j->p;
    int64_t lanes = length(j->lanes), n = many * lanes, bytes = j->rule.bytes;
    int64_t step = p->stride[operand][p->spatial - 1];
    char *y = element(j, operand, j->o, j->lanes.lo), *to = step == lanes || many == 1 ? y : means;
    divide_some(j, at, many, &by);
    make_means(ops_for(j->ops, n * sum_bytes(j)), !j->single, p->dtype, to,
               j->sums + at * sum_bytes(j), by.divisors, 1, n);
    for (int64_t i = 0; i < n && by.any; i++)
        if (by.none[i])
            write_none(j, operand, to + i * bytes);
    for (int64_t i = 0; i < many && to == means; i++)
        memcpy(y + i * step * bytes, means + i * lanes * bytes, (size_t)(lanes * bytes));
}

/* A row of windows of the box, by pieces. */
static void for_pieces(skip_job *j, int operand, int64_t at,
                       void (*write)(skip_job *, int operand, int64_t at, int64_t many))
{
    int last = j->p->spatial - 1;
    int64_t lanes = length(j->lanes), some;
    for (int64_t o = j->windows[last].lo; o < j->windows[last].hi; o += some, at += some * lanes) {
        some = min_i64(ROW_ELEMENTS / lanes, j->windows[last].hi - o);
        j->o[last] = o;
        write(j, operand, at, some);
    }
}

static void write_means(skip_job *j, int64_t at)
{
    for_pieces(j, TARN_Y, at, write_some_means);
}

static void write_tangents(skip_job *j, int64_t at)
{
    for_pieces(j, TARN_DY, at, write_some_means);
}

/* ---- Extremes ------------------------------------------------------------------------------- */

/* The first tap that counts of the window in hand: false if fewer than `least` do. */
static bool find_counted(const skip_job *j, int64_t lane, int64_t least, int64_t *cell)
{
    const tarn_problem *p = j->p;
    tarn_span taps[TARN_MAX_SPATIAL];
    box entries;
    int64_t entry[TARN_MAX_SPATIAL], at[TARN_MAX_SPATIAL], counted = 0;
    for (int a = 0; a < p->spatial; a++) {
        taps[a] = window_taps(&p->axis[a], j->o[a]);
        entries.from[a] = entry[a] = taps[a].lo;
        entries.count[a] = taps[a].hi - taps[a].lo;
        if (entries.count[a] <= 0)
            return false;
    }
    do {
        uint8_t counts;
        for (int a = 0; a < p->spatial; a++)
            at[a] = span_at(&taps[a], entry[a]);
        tarn_count_others(&counts, element(j, TARN_X, at, lane), &j->rule, 1);
        if (counts && counted++ == 0)
            memcpy(cell, at, sizeof at);
    } while (counted < least && next_place(p->spatial, &entries, entry));
    return counted >= least;
}

/* The results of a window, whose winner is a cell, or that has none. */
static void write_winner(const skip_job *j, int64_t lane, const int64_t *cell)
{
    const tarn_problem *p = j->p;
    char *const *base = j->base;
    size_t bytes = (size_t)j->rule.bytes;
    if (base[TARN_Y] && cell)
        memcpy(element(j, TARN_Y, j->o, lane), element(j, TARN_X, cell, lane), bytes);
    else if (base[TARN_Y])
        write_none(j, TARN_Y, element(j, TARN_Y, j->o, lane));
    if (base[TARN_INDICES])
        *(int64_t *)(void *)element(j, TARN_INDICES, j->o, lane) = cell ? cell_index(p, cell) : -1;
    if (base[OPERAND_SAVED])
        store_winner(p, element(j, OPERAND_SAVED, j->o, lane), 0,
                     cell ? tap_index(p, j->o, cell) : NO_WINNER);
    if (base[TARN_DY] && cell)
        memcpy(element(j, TARN_DY, j->o, lane), element(j, TARN_DX, cell, lane), bytes);
    else if (base[TARN_DY])
        memset(element(j, TARN_DY, j->o, lane), 0, bytes);
}

/* Whether too few taps count of the window in hand, which is number `at` of the box. */
static bool has_too_few(const skip_job *j, int64_t at)
{
    int64_t least = max_i64(j->p->min_count, 1);
    return j->counted ? count_at(j, at) < (double)least : real_taps(j) < least;
}

/* Where the winner is what replaced a skipped tap, all taps that count are the same; there may be
 * none. */
static void check_window(const skip_job *j, int64_t lane, const char *y, int64_t at)
{
    int64_t cell[TARN_MAX_SPATIAL];
    if ((j->counted || j->lacking) && has_too_few(j, at))
        write_winner(j, lane, NULL);
    else if (!j->clean && tarn_any_doubtful(y, &j->rule, 1))
        write_winner(j, lane, find_counted(j, lane, 1, cell) ? cell : NULL);
}

static void check_row(skip_job *j, int64_t at)
{
    int last = j->p->spatial - 1;
    int64_t lanes = length(j->lanes), n = length(j->windows[last]), bytes = j->rule.bytes;
    int64_t step = j->base[TARN_Y] ? j->p->stride[TARN_Y][last] : lanes;
    const char *y = j->base[TARN_Y] ? element(j, TARN_Y, j->o, j->lanes.lo) : j->sums + at * bytes;
    int64_t some = step == lanes ? max_i64(ROW_ELEMENTS / lanes, 1) : 1;
    const double least = (double)j->p->min_count;
    for (int64_t i = 0; i < n; i += some, y += some * step * bytes) {
        some = min_i64(some, n - i);
        bool doubtful = !j->clean && tarn_any_doubtful(y, &j->rule, some * lanes);
        for (int64_t k = 0; k < some * lanes && (doubtful || j->counted || j->lacking); k++) {
            if (!doubtful && j->counted && count_at(j, at + i * lanes + k) >= least)
                continue;
            j->o[last] = j->windows[last].lo + i + k / lanes;
            check_window(j, j->lanes.lo + k % lanes, y + k * bytes, at + i * lanes + k);
        }
    }
}

/* The cell of the winner that is saved of the window in hand; false if it has no real tap. */
static bool winner_cell(const skip_job *j, int64_t lane, int64_t *cell)
{
    const tarn_problem *p = j->p;
    int64_t tap = load_winner(p, element(j, OPERAND_SAVED, j->o, lane), 0);
    if (tap == NO_WINNER)
        return false;
    for (int a = p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &p->axis[a];
        cell[a] = window_start(axis, j->o[a]) +
                  tap % axis->kernel * (axis->adaptive ? 1 : axis->dilation);
        tap /= axis->kernel;
    }
    return true;
}

/* As check_row(), where there are winners alone. */
static void check_winners(skip_job *j, int64_t at)
{
    const tarn_problem *p = j->p;
    const range row = j->windows[p->spatial - 1];
    int64_t *o = &j->o[p->spatial - 1], cell[TARN_MAX_SPATIAL];
    (void)at;
    for (*o = row.lo; *o < row.hi; ++*o)
        for (int64_t lane = 0; lane < p->lanes; lane++) {
            if (!winner_cell(j, lane, cell))
                continue;
            bool doubtful =
                !j->clean && tarn_any_doubtful(element(j, TARN_X, cell, lane), &j->rule, 1);
            if (!doubtful && p->min_count <= 1)
                continue;
            bool found = find_counted(j, lane, max_i64(p->min_count, 1), cell);
            if (doubtful || !found)
                write_winner(j, lane, found ? cell : NULL);
        }
}

/* ---- Gradients of means --------------------------------------------------------------------- */

/* The quotients of some windows of a row, in place of their counts. */
__attribute__((noinline)) static void divide_gradients(skip_job *j, int operand, int64_t at,
                                                       int64_t many)
{
    divided by;
    const int64_t lanes = length(j->lanes), bytes = sum_bytes(j), n = many * lanes,
                  step = j->p->stride[operand][j->p->spatial - 1];
    const bool together = step == lanes || many == 1;
    const tarn_row_ops *ops = ops_for(j->ops, (together ? n : lanes) * bytes);
    const char *gy = element(j, operand, j->o, j->lanes.lo);
    char *to = j->counts + at * bytes;
    divide_some(j, at, many, &by);
    for (int64_t i = 0; i < (together ? 1 : many); i++)
        ops->shares[j->p->dtype](to + i * lanes * bytes, 0, gy + i * step * j->rule.bytes, 0,
                                 by.divisors + i * lanes * bytes, 1, together ? n : lanes, 1);
    for (int64_t i = 0; i < n && by.any; i++)
        if (by.none[i])
            memset(to + i * bytes, 0, (size_t)bytes);
}

static void divide_row(skip_job *j, int64_t at)
{
    for_pieces(j, TARN_GY, at, divide_gradients);
}

/* tarn_engine_backward_mean(), on what is left of the stack. */
static void add_shares(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                       int64_t end, const tarn_row_ops *ops)
{
    _Alignas(64) char scratch[QUOTIENT_BYTES];
    tarn_backward_mean_in(scratch, QUOTIENT_BYTES, p, tensors, begin, end, ops);
}

/* The cells of a box alone, with windows that read them and may reach out of them. */
static tarn_axis axis_of_cells(const tarn_axis *axis, range cells, range *windows)
{
    tarn_axis part = *axis;
    while (window_start(axis, windows->lo) > cells.lo) /* of which none is read: one more window */
        windows->lo--;
    part.size = length(cells);
    part.out = length(*windows);
    part.origin += cells.lo;
    part.first += windows->lo;
    if (axis->adaptive)
        return part;
    part.lo = cells.lo - window_start(axis, windows->lo);
    part.hi = max_i64(window_end(axis, windows->hi - 1) - cells.hi, 0);
    return part;
}

/* Sums of quotients, for the cells of a box, dense. */
__attribute__((noinline)) static void add_quotients(const skip_job *j, const tarn_axis *axis)
{
    tarn_problem box = *j->p;
    int64_t gx = length(j->lanes), gy = gx;
    box.dtype = j->single ? TARN_F32 : TARN_F64;
    box.skips = SKIPS_NOTHING;
    box.divisor = 1;
    box.lanes = gx;
    for (int k = 0; k < OPERANDS; k++)
        box.element_bytes[k] = sum_bytes(j);
    for (int a = box.spatial - 1; a >= 0; a--) {
        box.axis[a] = axis[a];
        box.stride[TARN_GX][a] = gx;
        box.stride[TARN_GY][a] = gy;
        gx *= axis[a].size;
        gy *= axis[a].out;
    }
    box.planes = box.lead_size[0] = j->planes;
    box.leading = j->planes > 1;
    box.lead_stride[TARN_GX][0] = gx;
    box.lead_stride[TARN_GY][0] = gy;
    tarn_tensors t = {.base = {[TARN_GY] = j->counts, [TARN_GX] = j->sums}};
    add_shares(&box, &t, 0, j->planes * axis[0].size, j->ops);
}

/* A row of sums, from the cell in hand on, to gx: but where x is skipped. */
__attribute__((noinline)) static void write_gradients(skip_job *j, int64_t at)
{
    static const double one_wide = 1;
    static const float one = 1;
    _Alignas(32) char some[ROW_ELEMENTS * sizeof(double)];
    const tarn_problem *p = j->p;
    const int last = p->spatial - 1;
    const int64_t lanes = length(j->lanes), bytes = j->rule.bytes, cells = length(j->windows[last]),
                  x_step = p->stride[TARN_X][last], gx_step = p->stride[TARN_GX][last],
                  most = x_step == lanes && gx_step == lanes ? ROW_ELEMENTS / lanes : 1;
    const char *x = element(j, TARN_X, j->o, j->lanes.lo);
    char *gx = element(j, TARN_GX, j->o, j->lanes.lo);
    for (int64_t i = 0, n; i < cells; i += n) {
        n = min_i64(cells - i, most);
        make_means(ops_for(j->ops, n * lanes * sum_bytes(j)), !j->single, p->dtype, some,
                   j->sums + (at + i * lanes) * sum_bytes(j),
                   j->single ? (const void *)&one : &one_wide, 0, n * lanes);
        tarn_replace_skipped(gx + i * gx_step * bytes, some, x + i * x_step * bytes, &j->rule,
                             n * lanes);
    }
}

/* A box of cells. */
__attribute__((noinline)) static void write_cells(skip_job *j, const range *cells)
{
    const tarn_problem *p = j->p;
    tarn_axis axis[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++) {
        j->windows[a] = tarn_windows_of_cells(&p->axis[a], cells[a]);
        axis[a] = axis_of_cells(&p->axis[a], cells[a], &j->windows[a]);
    }
    sum_box(j, COUNT_PART, TARN_X, j->counts);
    for_rows(j, divide_row);
    add_quotients(j, axis);
    memcpy(j->windows, cells, sizeof j->windows);
    for_rows(j, write_gradients);
}

/* ---- Values, winners, tangents -------------------------------------------------------------- */

static void run_box(skip_job *j)
{
    const bool means = j->p->op == TARN_AVG;
    if (j->counted)
        sum_box(j, COUNT_PART, TARN_X, j->counts);
    if (means && j->base[TARN_Y]) {
        sum_box(j, SUM_PART, TARN_X, j->sums);
        for_rows(j, write_means);
    }
    if (means && j->base[TARN_DY]) {
        sum_box(j, SUM_PART, TARN_DX, j->sums);
        for_rows(j, write_tangents);
    }
    if (means)
        return;
    if (!j->base[TARN_Y])
        find_box(j);
    for_rows(j, check_row);
}

/* The windows in hand, in boxes whose counts and sums fit. */
static void run_boxes(skip_job *j)
{
    const tarn_problem *p = j->p;
    int64_t size[TARN_MAX_SPATIAL], lanes = p->lanes;
    range all[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++) {
        all[a] = j->windows[a];
        size[a] = p->axis[a].out;
    }
    if (j->planes == 1)
        lanes = cut_boxes(p, SKIP_BYTES / 2 / sum_bytes(j), size);
    for (j->lanes.lo = 0; j->lanes.lo < p->lanes; j->lanes.lo = j->lanes.hi) {
        j->lanes.hi = min_i64(j->lanes.lo + lanes, p->lanes);
        tarn_first_box(j->windows, all, size, p->spatial);
        do
            run_box(j);
        while (tarn_next_box(j->windows, all, size, p->spatial));
    }
}

/* ---- The engine ----------------------------------------------------------------------------- */

/* All of it where nothing is skipped, and extremes but for windows in doubt. */
__attribute__((noinline)) static void run_whole(const skip_job *j, tarn_engine *engine,
                                                const tarn_tensors *tensors, int64_t begin,
                                                int64_t end)
{
    tarn_problem whole = *j->p;
    whole.nested = true;
    whole.skips = j->clean ? SKIPS_NOTHING : whole.skips;
    engine(&whole, tensors, begin, end, j->ops);
}

/* Whole planes that fit the room for sums. */
static int64_t planes_that_fit(const skip_job *j)
{
    if (j->p->lanes > MOST_SKIP_LANES)
        return 1;
    int64_t room = SKIP_BYTES / 2 / sum_bytes(j) / j->p->lanes;
    for (int a = 0; a < j->p->spatial; a++)
        room /= max_i64(j->p->axis[a].out, j->backward ? j->p->axis[a].size : 1);
    return max_i64(room, 1);
}

/* Units whose cells stay in a cache: they are looked through first. */
static int64_t units_together(const skip_job *j)
{
    enum { SOME_BYTES = 64 << 10 };
    const tarn_problem *p = j->p;
    double bytes = (double)(p->lanes * p->element_bytes[TARN_X]);
    for (int a = 0; a < p->spatial; a++)
        bytes *= (double)p->axis[a].size / (a == 0 ? (double)j->rows : 1);
    return (int64_t)(SOME_BYTES / bytes) + 1;
}

static void run_forward(skip_job *j, const tarn_tensors *tensors, int64_t begin, int64_t end)
{
    const bool means = j->p->op == TARN_AVG, in_place = !means && tensors->base[TARN_Y];
    j->counted = !j->clean && (means || j->p->min_count > 1);
    if (j->clean || in_place)
        run_whole(j, tarn_engine_forward, tensors, begin, end);
    if (j->counted || (!j->clean && !in_place))
        run_boxes(j);
    else if (!j->clean || j->lacking)
        for_rows(j, check_row);
}

/* Boxes of cells whose windows fit, too. */
static void run_backward(skip_job *j, const tarn_tensors *tensors, int64_t begin, int64_t end,
                         const range *all)
{
    const tarn_problem *p = j->p;
    range cells[TARN_MAX_SPATIAL];
    j->clean = j->clean && (p->min_count <= 1 || !j->lacking);
    if (j->clean) {
        run_whole(j, add_shares, tensors, begin, end);
        return;
    }
    for (j->lanes.lo = 0; j->lanes.lo < p->lanes; j->lanes.lo = j->lanes.hi) {
        j->lanes.hi = min_i64(j->lanes.lo + j->box_lanes, p->lanes);
        tarn_first_box(cells, all, j->box, p->spatial);
        do
            write_cells(j, cells);
        while (tarn_next_box(cells, all, j->box, p->spatial));
    }
}

static void run_slab(skip_job *j, const tarn_tensors *tensors, int64_t begin, int64_t end,
                     const tarn_slab *slab)
{
    const tarn_problem *p = j->p;
    range all[TARN_MAX_SPATIAL];
    memcpy(j->base, slab->base, sizeof j->base);
    j->lanes = (range){0, p->lanes};
    for (int a = 0; a < p->spatial; a++) {
        int64_t n = j->backward ? p->axis[a].size : p->axis[a].out;
        all[a] = a == 0 ? (range){slab->lo, slab->hi} : (range){0, n};
        j->windows[a] = j->backward ? tarn_windows_of_cells(&p->axis[a], all[a]) : all[a];
    }
    j->clean = all_clean(j);
    if (j->backward)
        run_backward(j, tensors, begin, end, all);
    else
        run_forward(j, tensors, begin, end);
}

/* Whether windows have taps in the padding, and whether some may have too few others. */
static void find_padding(skip_job *j)
{
    int64_t least = 1; /* real taps of a window: on each axis the first has least, or the last */
    for (int a = 0; a < j->p->spatial; a++) {
        const tarn_axis *axis = &j->p->axis[a];
        tarn_span first = window_taps(axis, 0), last = window_taps(axis, axis->out - 1);
        j->pads |= first.lo > 0 || last.hi < last.n;
        j->lacking |= !axis->adaptive && axis->dilation > 1;
        least *= axis->adaptive ? max_i64(axis->whole / axis->windows, 1)
                                : min_i64(first.hi - first.lo, last.hi - last.lo);
    }
    j->lacking |= least < max_i64(j->p->min_count, 1);
}

void tarn_engine_skipping(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                          int64_t end, const tarn_row_ops *ops)
{
    _Alignas(64) char room[SKIP_BYTES + SCRATCH_SLACK];
    skip_job j = {.p = p, .ops = ops, .rule = tarn_rule_of_skipping(p), .counts = room};
    tarn_slab slab = {.lo = 0};
    j.backward = tensors->base[TARN_GX];
    j.rows = j.backward ? p->axis[0].size : p->axis[0].out;
    j.sums = room + SKIP_BYTES / 2;
    j.single = means_fit_f32(p->dtype, taps_of(p));
    find_padding(&j);
    int64_t most = SKIP_BYTES / 2 / sum_bytes(&j);
    j.box_lanes = min_i64(p->lanes, MOST_SKIP_LANES);
    if ((j.backward && !tarn_cut_cells(p, most, most, 1, LONGER, j.box, &j.box_lanes)) ||
        (!tensors->base[TARN_Y] && tensors->base[TARN_INDICES])) {
        tarn_spec(p, tensors, begin, end);
        return;
    }
    const int64_t some = units_together(&j);
    most = planes_that_fit(&j);
    for (int64_t first = begin; begin < end; first = begin) {
        int64_t stop = min_i64(end, begin + some);
        j.planes = next_planes(p, tensors, j.rows, &begin, stop, most, &slab);
        run_slab(&j, tensors, first, begin, &slab);
    }
}

/* All windows. */
static skip_job job_of(const tarn_problem *p, const tarn_tensors *tensors)
{
    skip_job j = {.p = p,
                  .rule = tarn_rule_of_skipping(p),
                  .planes = p->planes,
                  .lanes = {0, p->lanes}};
    memcpy(j.base, tensors->base, sizeof j.base);
    for (int a = 0; a < p->spatial; a++)
        j.windows[a] = (range){0, p->axis[a].out};
    find_padding(&j);
    return j;
}

__attribute__((noinline)) static bool reads_clean(const tarn_problem *p, const tarn_tensors *t)
{
    const skip_job j = job_of(p, t);
    return all_clean(&j);
}

__attribute__((noinline)) static void check_all(const tarn_problem *p, const tarn_tensors *t,
                                                bool clean)
{
    skip_job j = job_of(p, t);
    j.clean = clean;
    if (!clean || j.lacking)
        for_rows(&j, check_winners);
}

void tarn_find_counted(tarn_problem *p, const tarn_tensors *tensors, tarn_engine *engine,
                       const tarn_row_ops *ops)
{
    const tarn_skips skips = p->skips;
    const bool clean = reads_clean(p, tensors);
    p->skips = clean ? SKIPS_NOTHING : skips;
    p->nested = true;
    (clean ? engine : tarn_engine_forward)(p, tensors, 0, p->planes * p->axis[0].out, ops);
    p->skips = skips;
    check_all(p, tensors, clean);
}
