/* Modes of integers, forward: windows of few taps, any rank, padding and dilation.
 *
 * Along a row, windows that have the same taps form a run. Their taps are rows of their own, one
 * for each tap: where they lie in x if they are side by side there, or every second cell, otherwise
 * copied to scratch. A row operation compares all with all. At a border the taps in the padding are
 * missing from the list.
 */
#include "boxes.h"
#include "engines.h"
#include "tap_limits.h"

enum { MOST_RUN_BYTES = 1024, TAKEN_BYTES = 24 << 10 };

/* Windows [lo,hi) of an axis have all their taps: o begins at cell first + o*stride. */
typedef struct even_windows {
    int64_t lo, hi, first, stride;
} even_windows;

typedef struct mode_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last, width;                              /* the last axis; index of tables by width */
    int64_t bytes, pixel, step[TARN_MAX_SPATIAL]; /* from cell to cell of x, in bytes */
    int64_t run_bytes;                            /* of a run, at most */
    tarn_mode_rule rule;
    even_windows even[TARN_MAX_SPATIAL];
    int even_taps; /* of windows that are even on all axes, as bytes from where these begin */
    int64_t even_tap[MOST_MODE_TAPS];
    int64_t o[TARN_MAX_SPATIAL]; /* the window in hand */
    char *taken, *results;       /* scratch */
} mode_job;

/* ---- Taps ----------------------------------------------------------------------------------- */

/* The taps of the window in hand, as bytes from the plane; returns how many. */
static int list_taps(const mode_job *j, int64_t *taps)
{
    int k = 1;
    taps[0] = 0;
    for (int a = 0; a <= j->last; a++) {
        const tarn_span span = window_taps(&j->p->axis[a], j->o[a]);
        int64_t before[MOST_MODE_TAPS];
        const int rows = k;
        memcpy(before, taps, sizeof before);
        k = 0;
        for (int r = 0; r < rows; r++)
            for (int64_t tap = span.lo; tap < span.hi; tap++)
                taps[k++] = before[r] + span_at(&span, tap) * j->step[a];
    }
    return k;
}

static bool is_even(const mode_job *j)
{
    bool even = true;
    for (int a = 0; a <= j->last; a++)
        even &= j->o[a] >= j->even[a].lo && j->o[a] < j->even[a].hi;
    return even;
}

/* Where the window in hand begins, which is even on all axes. */
static int64_t even_start(const mode_job *j)
{
    int64_t start = 0;
    for (int a = 0; a <= j->last; a++)
        start += (j->even[a].first + j->o[a] * j->even[a].stride) * j->step[a];
    return start;
}

/* ---- A run of windows ----------------------------------------------------------------------- */

/* Some pixels, `step` bytes apart. */
static void take_pixels(const mode_job *j, char *to, const char *from, int64_t step, int64_t n)
{
    if (j->p->lanes == 1) {
        j->ops->take[j->width](to, from, step / j->bytes, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * j->pixel, from + i * step, (size_t)j->pixel);
}

/* n windows from the one in hand on; more than one are even. */
static void write_run(mode_job *j, int64_t n)
{
    int64_t listed[MOST_MODE_TAPS] = {0}, start = 0;
    const int64_t *tap = listed, elements = n * j->p->lanes,
                  apart = n == 1 ? j->pixel : j->even[j->last].stride * j->step[j->last],
                  y_step = j->p->stride[TARN_Y][j->last] * j->bytes;
    const bool seconds = j->p->lanes == 1 && apart == 2 * j->pixel,
               dense = n == 1 || y_step == j->pixel;
    const void *taps[MOST_MODE_TAPS];
    int k = j->even_taps;
    if (is_even(j)) {
        tap = j->even_tap;
        start = even_start(j);
    } else {
        k = list_taps(j, listed);
    }
    for (int i = 0; i < k; i++) {
        const char *from = j->slab->base[TARN_X] + (start + tap[i]);
        taps[i] = from;
        if (apart != j->pixel && !seconds) {
            char *row = j->taken + i * (j->run_bytes + SCRATCH_SLACK);
            take_pixels(j, row, from, apart, n);
            taps[i] = row;
        }
    }
    char *y = j->slab->base[TARN_Y] + offset_of(j->p, TARN_Y, j->o) * j->bytes;
    ops_for(j->ops, elements * j->bytes)
        ->modes[j->width](dense ? y : j->results, taps, k, &j->rule, seconds ? 2 : 1, elements);
    for (int64_t i = 0; i < n && !dense; i++)
        memcpy(y + i * y_step, j->results + i * j->pixel, (size_t)j->pixel);
}

/* Windows [lo,hi) of the row in hand. */
static void write_row(mode_job *j, int64_t lo, int64_t hi)
{
    const int64_t most = max_i64(j->run_bytes / j->pixel, 1);
    int64_t *o = &j->o[j->last], n;
    for (*o = lo; *o < hi; *o += n) {
        n = is_even(j) ? min_i64(min_i64(hi, j->even[j->last].hi) - *o, most) : 1;
        write_run(j, n);
    }
}

static void write_slab(mode_job *j)
{
    const box windows = box_of_slab(j->p, j->slab, false);
    const int64_t lo = windows.from[j->last];
    memcpy(j->o, windows.from, sizeof j->o);
    do
        write_row(j, lo, lo + windows.count[j->last]);
    while (next_place(j->last, &windows, j->o));
}

/* ---- Preparation ---------------------------------------------------------------------------- */

/* Adaptive windows that are even have become sliding ones. */
static even_windows find_even(const tarn_axis *axis)
{
    int64_t room = axis->size + axis->lo - ((axis->kernel - 1) * axis->dilation + 1);
    if (axis->adaptive || room < 0)
        return (even_windows){0};
    return (even_windows){ceil_div(axis->lo, axis->stride),
                          min_i64(room / axis->stride + 1, axis->out), -axis->lo, axis->stride};
}

static void prepare_even(mode_job *j)
{
    for (int a = 0; a <= j->last; a++) {
        j->step[a] = j->p->stride[TARN_X][a] * j->bytes;
        j->even[a] = find_even(&j->p->axis[a]);
        j->o[a] = j->even[a].lo;
    }
    if (!is_even(j))
        return;
    j->even_taps = list_taps(j, j->even_tap);
    for (int i = 0; i < j->even_taps; i++)
        j->even_tap[i] -= even_start(j);
}

static tarn_mode_rule rule_of(const tarn_problem *p)
{
    tarn_mode_rule rule = {.skips = p->skips != SKIPS_NOTHING,
                           .min_count = min_i64(p->min_count, MOST_MODE_TAPS + 1)};
    bool is_unsigned =
        p->dtype == TARN_U8 || p->dtype == TARN_U16 || p->dtype == TARN_U32 || p->dtype == TARN_U64;
    rule.flip = (uint64_t)is_unsigned << (8 * p->element_bytes[TARN_X] - 1);
    memcpy(rule.skipped, p->skipped, sizeof rule.skipped);
    if (p->min_count > 0)
        memcpy(rule.none, p->skipped, sizeof rule.none);
    return rule;
}

void tarn_engine_mode(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                      int64_t end, const tarn_row_ops *ops)
{
    _Alignas(64) char taken[TAKEN_BYTES], results[MOST_RUN_BYTES + SCRATCH_SLACK];
    tarn_slab slab;
    mode_job job = {.p = problem,
                    .ops = ops,
                    .slab = &slab,
                    .last = problem->spatial - 1,
                    .bytes = problem->element_bytes[TARN_X],
                    .rule = rule_of(problem),
                    .taken = taken,
                    .results = results};
    job.width = __builtin_ctzll((unsigned long long)job.bytes);
    job.pixel = problem->lanes * job.bytes;
    job.run_bytes = min_i64(TAKEN_BYTES / taps_of(problem) - SCRATCH_SLACK, MOST_RUN_BYTES) / 8 * 8;
    prepare_even(&job);
    while (next_slab(problem, tensors, problem->axis[0].out, &begin, end, &slab))
        write_slab(&job);
}
