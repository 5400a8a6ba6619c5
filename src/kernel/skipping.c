/* Max, min and avg where taps are skipped [K1-K3], forward.
 *
 * The forward engine does most of it: as it converts rows, it replaces what is skipped by what wins
 * no window, or adds nothing. Means are made of two of its results, for boxes of windows that fit
 * the stack: sums, and counts of taps, which are sums of ones. Extremes are right but where the
 * winner is what skipped taps were replaced by: those windows, and such in which too few taps
 * count, are looked at one by one. Some cells are looked through first: where none of them is
 * skipped, the forward engine does all of it.
 */
#include "boxes.h"
#include "engines.h"
#include "row_types.h"
#include "skipping.h"
#include "winners_found.h"

enum { SKIP_BYTES = 10 << 10, MOST_SKIP_LANES = 64, ROW_ELEMENTS = 256 };

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
    char *sums, *counts;         /* of the box */
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

/* Sums, or counts, of the box: dense, channels last. */
__attribute__((noinline)) static void sum_box(const skip_job *j, tarn_mean_part part, char *to)
{
    tarn_problem box = *j->p;
    int64_t cell[TARN_MAX_SPATIAL], step = length(j->lanes);
    box.op = TARN_AVG;
    box.part = part;
    box.divisor = 1;
    box.lanes = step;
    box.planes = j->planes;
    box.leading = j->planes > 1;
    box.element_bytes[TARN_Y] = sum_bytes(j);
    for (int a = box.spatial - 1; a >= 0; step *= length(j->windows[a--])) {
        box.axis[a] = tarn_axis_of_windows(&j->p->axis[a], j->windows[a], &cell[a]);
        box.stride[TARN_Y][a] = step;
    }
    if (j->planes > 1) {
        box.lead_size[0] = j->planes;
        box.lead_stride[TARN_X][0] = j->p->lead_stride[TARN_X][j->p->leading - 1];
        box.lead_stride[TARN_Y][0] = step;
    }
    int64_t first = offset_of(j->p, TARN_X, cell) + j->lanes.lo;
    tarn_tensors t = {.base = {[TARN_X] = j->base[TARN_X] + first * j->rule.bytes, [TARN_Y] = to}};
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

/* [K3] A window of which too few taps count. */
static void write_none(const skip_job *j, char *y)
{
    static const char zero[8];
    memcpy(y, j->p->min_count > 0 ? j->p->skipped : zero, (size_t)j->rule.bytes);
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

/* `many` windows from the one in hand on. */
static void write_some_means(skip_job *j, int64_t at, int64_t many)
{
    _Alignas(32) char divisors[ROW_ELEMENTS * sizeof(double)], means[ROW_ELEMENTS * sizeof(double)];
    uint8_t none[ROW_ELEMENTS];
    bool any = false;
    const tarn_problem *p = j->p;
    int last = p->spatial - 1;
    int64_t lanes = length(j->lanes), n = many * lanes, first = j->o[last], bytes = j->rule.bytes;
    int64_t step = p->stride[TARN_Y][last];
    char *y = j->base[TARN_Y] + (offset_of(p, TARN_Y, j->o) + j->lanes.lo) * bytes;
    for (int64_t i = 0, some; i < many; i += some) {
        j->o[last] = first + i;
        some = windows_alike(j, many - i);
        any |= set_divisors(j, divisors + i * lanes * sum_bytes(j), at + i * lanes, some * lanes,
                            none + i * lanes);
    }
    const char *sums = j->sums + at * sum_bytes(j);
    const tarn_row_ops *ops = ops_for(j->ops, n * sum_bytes(j));
    char *to = step == lanes || many == 1 ? y : means;
    if (j->single)
        ops->means_f32[p->dtype](to, (const float *)(const void *)sums,
                                 (const float *)(const void *)divisors, 1, n);
    else
        ops->means_f64[p->dtype](to, (const double *)(const void *)sums,
                                 (const double *)(const void *)divisors, 1, n);
    for (int64_t i = 0; i < n && any; i++)
        if (none[i])
            write_none(j, to + i * bytes);
    for (int64_t i = 0; i < many && to == means; i++)
        memcpy(y + i * step * bytes, means + i * lanes * bytes, (size_t)(lanes * bytes));
}

static void write_means(skip_job *j, int64_t at)
{
    int last = j->p->spatial - 1;
    int64_t lanes = length(j->lanes), some;
    for (int64_t o = j->windows[last].lo; o < j->windows[last].hi; o += some, at += some * lanes) {
        some = min_i64(ROW_ELEMENTS / lanes, j->windows[last].hi - o);
        j->o[last] = o;
        write_some_means(j, at, some);
    }
}

/* ---- Extremes ------------------------------------------------------------------------------- */

static char *element(const skip_job *j, int operand, const int64_t *at, int64_t lane)
{
    int64_t offset = offset_of(j->p, operand, at) + lane;
    return j->base[operand] + offset * j->p->element_bytes[operand];
}

/* The first tap that counts of the window in hand: false if none does. */
static bool find_counted(const skip_job *j, int64_t lane, int64_t *cell)
{
    const tarn_problem *p = j->p;
    tarn_span taps[TARN_MAX_SPATIAL];
    box entries;
    int64_t entry[TARN_MAX_SPATIAL];
    uint8_t counts;
    for (int a = 0; a < p->spatial; a++) {
        taps[a] = window_taps(&p->axis[a], j->o[a]);
        entries.from[a] = entry[a] = taps[a].lo;
        entries.count[a] = taps[a].hi - taps[a].lo;
        if (entries.count[a] <= 0)
            return false;
    }
    do {
        for (int a = 0; a < p->spatial; a++)
            cell[a] = span_at(&taps[a], entry[a]);
        tarn_count_others(&counts, element(j, TARN_X, cell, lane), &j->rule, 1);
    } while (!counts && next_place(p->spatial, &entries, entry));
    return counts;
}

/* The results of a window, whose winner is a cell, or that has none. */
static void write_winner(const skip_job *j, int64_t lane, const int64_t *cell)
{
    const tarn_problem *p = j->p;
    char *const *base = j->base;
    size_t bytes = (size_t)j->rule.bytes;
    char *y = element(j, TARN_Y, j->o, lane);
    if (cell)
        memcpy(y, element(j, TARN_X, cell, lane), bytes);
    else
        write_none(j, y);
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
    if (j->lacking && has_too_few(j, at))
        write_winner(j, lane, NULL);
    else if (!j->clean && tarn_any_doubtful(y, &j->rule, 1))
        write_winner(j, lane, find_counted(j, lane, cell) ? cell : NULL);
}

static void check_row(skip_job *j, int64_t at)
{
    int last = j->p->spatial - 1;
    int64_t lanes = length(j->lanes), n = length(j->windows[last]), bytes = j->rule.bytes;
    int64_t step = j->p->stride[TARN_Y][last];
    const char *y = j->base[TARN_Y] + (offset_of(j->p, TARN_Y, j->o) + j->lanes.lo) * bytes;
    int64_t some = step == lanes ? max_i64(ROW_ELEMENTS / lanes, 1) : 1;
    const double least = (double)j->p->min_count;
    for (int64_t i = 0; i < n; i += some, y += some * step * bytes) {
        some = min_i64(some, n - i);
        bool doubtful = !j->clean && tarn_any_doubtful(y, &j->rule, some * lanes);
        for (int64_t k = 0; k < some * lanes && (doubtful || j->lacking); k++) {
            if (!doubtful && j->counted && count_at(j, at + i * lanes + k) >= least)
                continue;
            j->o[last] = j->windows[last].lo + i + k / lanes;
            check_window(j, j->lanes.lo + k % lanes, y + k * bytes, at + i * lanes + k);
        }
    }
}

/* ---- The engine ----------------------------------------------------------------------------- */

/* The windows in hand, in boxes whose counts and sums fit. */
static void run_boxes(skip_job *j)
{
    const tarn_problem *p = j->p;
    const bool means = p->op == TARN_AVG;
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
        do {
            sum_box(j, COUNT_PART, j->counts);
            if (means)
                sum_box(j, SUM_PART, j->sums);
            for_rows(j, means ? write_means : check_row);
        } while (tarn_next_box(j->windows, all, size, p->spatial));
    }
}

/* All of it where nothing is skipped, and extremes but for windows in doubt. */
__attribute__((noinline)) static void run_forward(const skip_job *j, const tarn_tensors *tensors,
                                                  int64_t begin, int64_t end)
{
    tarn_problem whole = *j->p;
    whole.skips = j->clean ? SKIPS_NOTHING : whole.skips;
    tarn_engine_forward(&whole, tensors, begin, end, j->ops);
}

/* Whole planes that fit the room for sums. */
static int64_t planes_that_fit(const skip_job *j)
{
    int64_t room = SKIP_BYTES / 2 / sum_bytes(j) / j->p->lanes;
    for (int a = 0; a < j->p->spatial; a++)
        room /= j->p->axis[a].out;
    return max_i64(room, 1);
}

/* Units whose cells stay in a cache: they are looked through first. */
static int64_t units_together(const tarn_problem *p)
{
    enum { SOME_BYTES = 64 << 10 };
    double bytes = (double)(p->lanes * p->element_bytes[TARN_X]);
    for (int a = 0; a < p->spatial; a++)
        bytes *= (double)p->axis[a].size / (a == 0 ? (double)p->axis[0].out : 1);
    return (int64_t)(SOME_BYTES / bytes) + 1;
}

static void run_slab(skip_job *j, const tarn_tensors *tensors, int64_t begin, int64_t end,
                     const tarn_slab *slab)
{
    const tarn_problem *p = j->p;
    const bool means = p->op == TARN_AVG;
    memcpy(j->base, slab->base, sizeof j->base);
    j->lanes = (range){0, p->lanes};
    for (int a = 0; a < p->spatial; a++)
        j->windows[a] = a == 0 ? (range){slab->lo, slab->hi} : (range){0, p->axis[a].out};
    j->clean = all_clean(j);
    j->counted = !j->clean && (means || p->min_count > 1);
    if (j->clean || !means)
        run_forward(j, tensors, begin, end);
    if (j->counted)
        run_boxes(j);
    else if (!j->clean || j->lacking)
        for_rows(j, check_row);
}

/* Whether windows have taps in the padding, and whether some may have too few others. */
static void find_padding(skip_job *j)
{
    j->lacking = j->p->min_count > 1;
    for (int a = 0; a < j->p->spatial; a++) {
        const tarn_axis *axis = &j->p->axis[a];
        tarn_span first = window_taps(axis, 0), last = window_taps(axis, axis->out - 1);
        j->pads |= first.lo > 0 || last.hi < last.n;
        j->lacking |= first.lo >= first.hi || last.lo >= last.hi || axis->dilation > 1;
    }
}

void tarn_engine_skipping(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                          int64_t end, const tarn_row_ops *ops)
{
    _Alignas(64) char room[SKIP_BYTES + SCRATCH_SLACK];
    skip_job j = {.p = p, .ops = ops, .rule = tarn_rule_of_skipping(p), .counts = room};
    tarn_slab slab = {.lo = 0};
    if (!tensors->base[TARN_Y]) {
        tarn_spec(p, tensors, begin, end);
        return;
    }
    j.sums = room + SKIP_BYTES / 2;
    j.single = means_fit_f32(p->dtype, taps_of(p));
    find_padding(&j);
    int64_t most = planes_that_fit(&j), some = units_together(p);
    for (int64_t first = begin; begin < end; first = begin) {
        int64_t stop = min_i64(end, begin + some);
        j.planes = next_planes(p, tensors, p->axis[0].out, &begin, stop, most, &slab);
        run_slab(&j, tensors, first, begin, &slab);
    }
}
