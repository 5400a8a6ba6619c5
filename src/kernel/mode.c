/* Modes of integers, forward: windows of few taps, any rank, padding and dilation.
 *
 * Along a row, windows that have the same taps form a run. Their taps are rows of their own, one for
 * each tap: where they lie in x if they are side by side there, otherwise copied to scratch. A row
 * operation compares all with all. At a border the taps in the padding are missing from the list.
 */
#include "engines.h"

enum { RUN_BYTES = 1024, ROW_BYTES = RUN_BYTES + SCRATCH_SLACK };

typedef struct mode_job {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    const tarn_slab *slab;
    int last, width; /* the last axis; index of tables by width */
    int64_t bytes, pixel;
    tarn_mode_rule rule;
    int64_t even_lo, even_hi, stride; /* windows along a row with all taps, `stride` cells apart */
    int64_t o[TARN_MAX_SPATIAL];
    int rows; /* of taps: those on the axes before the last */
    const char *row[MOST_MODE_TAPS];
    char *taken, *results; /* scratch */
} mode_job;

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

/* Lists the taps of n windows from column o on; returns how many each has. */
static int list_taps(const mode_job *j, int64_t o, int64_t n, const void **taps)
{
    const int64_t cell = j->p->stride[TARN_X][j->last] * j->bytes;
    const tarn_span span = window_taps(&j->p->axis[j->last], o);
    int k = 0;
    for (int r = 0; r < j->rows; r++)
        for (int64_t tap = span.lo; tap < span.hi; tap++, k++) {
            const char *from = j->row[r] + span_at(&span, tap) * cell;
            taps[k] = from;
            if (n == 1 || j->stride * cell == j->pixel)
                continue;
            taps[k] = j->taken + k * ROW_BYTES;
            take_pixels(j, j->taken + k * ROW_BYTES, from, j->stride * cell, n);
        }
    return k;
}

static void write_run(mode_job *j, int64_t o, int64_t n)
{
    const void *taps[MOST_MODE_TAPS];
    const int64_t step = j->p->stride[TARN_Y][j->last] * j->bytes, elements = n * j->p->lanes;
    const int k = list_taps(j, o, n, taps);
    j->o[j->last] = o;
    char *y = j->slab->base[TARN_Y] + offset_of(j->p, TARN_Y, j->o) * j->bytes;
    bool dense = n == 1 || step == j->pixel;
    ops_for(j->ops, elements * j->bytes)
        ->modes[j->width](dense ? y : j->results, taps, k, &j->rule, elements);
    for (int64_t i = 0; i < n && !dense; i++)
        memcpy(y + i * step, j->results + i * j->pixel, (size_t)j->pixel);
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* The rows of x that windows of the row in hand read. */
static void list_rows(mode_job *j)
{
    const tarn_problem *p = j->p;
    j->rows = 1;
    j->row[0] = j->slab->base[TARN_X];
    for (int a = 0; a < j->last; a++) {
        const tarn_span span = window_taps(&p->axis[a], j->o[a]);
        const char *before[MOST_MODE_TAPS];
        const int rows = j->rows;
        memcpy(before, j->row, sizeof *before * (size_t)rows);
        j->rows = 0;
        for (int r = 0; r < rows; r++)
            for (int64_t tap = span.lo; tap < span.hi; tap++)
                j->row[j->rows++] =
                    before[r] + span_at(&span, tap) * p->stride[TARN_X][a] * j->bytes;
    }
}

static void write_row(mode_job *j, int64_t lo, int64_t hi)
{
    const int64_t most = max_i64(RUN_BYTES / j->pixel, 1);
    list_rows(j);
    for (int64_t o = lo, end; o < hi; o = end) {
        bool even = o >= j->even_lo && o < j->even_hi;
        end = even ? min_i64(min_i64(hi, j->even_hi), o + most) : o + 1;
        write_run(j, o, end - o);
    }
}

static void write_slab(mode_job *j)
{
    const tarn_problem *p = j->p;
    if (j->last == 0) {
        write_row(j, j->slab->lo, j->slab->hi);
        return;
    }
    memset(j->o, 0, sizeof j->o);
    j->o[0] = j->slab->lo;
    for (int a = 0; a >= 0;) {
        write_row(j, 0, p->axis[j->last].out);
        for (a = j->last - 1; a >= 0; a--) {
            if (++j->o[a] < (a > 0 ? p->axis[a].out : j->slab->hi))
                break;
            j->o[a] = 0;
        }
    }
}

/* ---- Preparation ---------------------------------------------------------------------------- */

/* Adaptive windows are alike if their number divides that of cells. */
static void find_even_windows(mode_job *j)
{
    const tarn_axis *axis = &j->p->axis[j->last];
    if (axis->adaptive) {
        j->stride = axis->whole / axis->windows;
        j->even_hi = axis->whole % axis->windows == 0 ? axis->out : 0;
        return;
    }
    int64_t room = axis->size + axis->lo - ((axis->kernel - 1) * axis->dilation + 1);
    j->stride = axis->stride;
    j->even_lo = ceil_div(axis->lo, axis->stride);
    j->even_hi = room < 0 ? 0 : min_i64(room / axis->stride + 1, axis->out);
}

static tarn_mode_rule rule_of(const tarn_problem *p)
{
    tarn_mode_rule rule = {.skips = p->skips != SKIPS_NOTHING,
                           .min_count = min_i64(p->min_count, MOST_MODE_TAPS + 1)};
    bool is_unsigned = p->dtype == TARN_U8 || p->dtype == TARN_U16 || p->dtype == TARN_U32 ||
                       p->dtype == TARN_U64;
    rule.flip = (uint64_t)is_unsigned << (8 * p->element_bytes[TARN_X] - 1);
    memcpy(rule.skipped, p->skipped, sizeof rule.skipped);
    if (p->min_count > 0)
        memcpy(rule.none, p->skipped, sizeof rule.none);
    return rule;
}

void tarn_engine_mode(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                      int64_t end, const tarn_row_ops *ops)
{
    _Alignas(64) char taken[MOST_MODE_TAPS * ROW_BYTES], results[ROW_BYTES];
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
    find_even_windows(&job);
    while (next_slab(problem, tensors, problem->axis[0].out, &begin, end, &slab))
        write_slab(&job);
}
