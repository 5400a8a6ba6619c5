/* Across: windows along rows that were folded down. */
#include "forward.h"

static void slide(const forward_state *s, forward_row row, forward_row to, int64_t elements,
                  int64_t n);
static void slide_and_pick(const forward_state *s);
static void fold_lists(forward_state *s, forward_row row, forward_row to, const forward_job *job,
                       int64_t channels);
static void fold_turned(forward_state *s);
static void fold_stride2(const forward_state *s, int64_t n);
static void fold_pixels(const forward_plan *plan, forward_row row, forward_row to, int64_t to_step,
                        int64_t channels, int64_t outputs);
static void fold_row(forward_state *s, const forward_job *job, int r);

/* All rows that wait, from s->down to s->across; values go to y itself if the plan says so. */
void tarn_forward_across(forward_state *s)
{
    const forward_plan *plan = &s->plan;
    int64_t before = (s->rows - 1) * plan->output_pitch,
            n = before + plan->most_outputs * plan->channels;
    if (plan->across == ACROSS_WIDE)
        return; /* done already */
    if (plan->across == ACROSS_TURNED)
        fold_turned(s);
    else if (plan->across == ACROSS_STRIDE2)
        fold_stride2(s, n);
    else if (plan->picks)
        slide_and_pick(s);
    else if (plan->across == ACROSS_SLIDE && !plan->writes_y)
        slide(s, s->down, s->across, s->rows * plan->pitch, n);
    else
        for (int k = 0; k < s->jobs; k++)
            for (int r = 0; r < s->job[k].rows; r++)
                fold_row(s, &s->job[k], r);
    if (plan->across == ACROSS_TURNED ||
        (plan->across == ACROSS_SLIDE && plan->columns->kernel > MOST_LISTED))
        forward_forget_margins(s); /* results, or sums of neighbours, lie there */
}

static void fold_row(forward_state *s, const forward_job *job, int r)
{
    const forward_plan *plan = &s->plan;
    forward_row row = down_row(s, job->slot + r), to = across_row(s, job->slot + r);
    int64_t step = plan->channels; /* of y, which may have more */
    if (plan->writes_y)
        to.values = job->written[WRITE_Y] + r * plan->written_step[WRITE_Y];
    if (plan->writes_y && !plan->codes)
        step = plan->p->stride[TARN_Y][plan->p->spatial - 1];
    if (plan->across == ACROSS_SLIDE)
        slide(s, row, to, plan->pitch, job->outputs * plan->channels);
    else if (plan->across == ACROSS_PIXELS)
        fold_pixels(plan, row, to, step, plan->channels, job->outputs);
    else
        fold_lists(s, row, to, job, plan->channels);
}

static void fold_stride2(const forward_state *s, int64_t n)
{
    const forward_plan *plan = &s->plan;
    const tarn_axis *axis = plan->columns;
    if (plan->sums)
        plan->ops->sum_stride2[plan->core](s->across.values, s->down.values, axis->kernel,
                                           axis->dilation, n);
    else if (plan->codes)
        plan->ops->best_codes_stride2[plan->core](s->across.values, s->across.codes, s->down.values,
                                                  s->down.codes, axis->kernel, axis->dilation, n);
    else
        plan->ops->best_stride2[plan->core](s->across.values, s->down.values, axis->kernel,
                                            axis->dilation, n);
}

/* ---- Stride 1 ------------------------------------------------------------------------------- */

/* Many taps: folds of 1, 2, 4, ... neighbours at every place, in the row itself. Whole vectors,
 * so that none is folded twice. */
static void double_row(const forward_plan *plan, forward_row row, int64_t taps, int64_t elements)
{
    int64_t shift = taps * plan->columns->dilation * plan->channels;
    int64_t n = (elements - shift + plan->lanes - 1) / plan->lanes * plan->lanes;
    forward_row rows[2] = {row, row_at(row, shift * plan->bytes)};
    fold_rows(plan, row, rows, 0, taps, 2, n);
}

/* Two folds of neighbours that overlap are a window, in extremes. */
static void slide_best(const forward_plan *plan, forward_row row, forward_row to, int64_t elements,
                       int64_t n)
{
    int64_t kernel = plan->columns->kernel, taps = 1,
            step = plan->columns->dilation * plan->channels;
    for (; 2 * taps <= kernel; taps *= 2)
        double_row(plan, row, taps, elements);
    forward_row rows[2] = {row, row_at(row, (kernel - taps) * step * plan->bytes)};
    fold_rows(plan, to, rows, 0, kernel - taps, kernel > taps ? 2 : 1, n);
}

/* [S1] A window is its binary digits: those of the greatest value first, so that sums grow from
 * the right. */
static void slide_sum(const forward_state *s, forward_row row, forward_row to, int64_t elements,
                      int64_t n)
{
    const forward_plan *plan = &s->plan;
    int64_t kernel = plan->columns->kernel, step = plan->columns->dilation * plan->channels;
    forward_row sum = to, other = s->folded;
    bool started = false;
    for (int64_t taps = 1; taps <= kernel; taps *= 2) {
        if (kernel & taps) {
            int64_t before = kernel & ~(2 * taps - 1);
            forward_row rows[2] = {row_at(row, before * step * plan->bytes), sum};
            fold_rows(plan, started ? other : sum, rows, 0, 0, started ? 2 : 1, n);
            if (started) {
                forward_row last = other;
                other = sum;
                sum = last;
            }
            started = true;
        }
        if (2 * taps <= kernel)
            double_row(plan, row, taps, elements);
    }
    if (sum.values != to.values)
        memcpy(to.values, sum.values, (size_t)(n * plan->bytes));
}

/* n windows that begin at neighbouring elements of a row of so many elements. */
static void slide(const forward_state *s, forward_row row, forward_row to, int64_t elements,
                  int64_t n)
{
    const forward_plan *plan = &s->plan;
    int64_t kernel = plan->columns->kernel,
            step = step_between(kernel, plan->columns->dilation, plan->channels * plan->bytes);
    forward_row rows[MOST_LISTED];
    if (kernel > MOST_LISTED) {
        if (plan->sums)
            slide_sum(s, row, to, elements, n);
        else
            slide_best(plan, row, to, elements, n);
        return;
    }
    for (int64_t j = 0; j < kernel; j++)
        rows[j] = row_at(row, j * step);
    fold_rows(plan, to, rows, 0, 1, kernel, n);
}

/* ---- Other strides, few channels ------------------------------------------------------------ */

/* Of n pixels `step` bytes apart, each as two pieces that overlap; `to` may be where they lie. */
#define COPY_ENDS(piece)                                                                           \
    for (int64_t k = 0; k < n; k++, to += pixel, from += step) {                                   \
        char head[piece], tail[piece];                                                             \
        memcpy(head, from, piece);                                                                 \
        memcpy(tail, from + pixel - (piece), piece);                                               \
        memcpy(to, head, piece);                                                                   \
        memcpy(to + pixel - (piece), tail, piece);                                                 \
    }

#define COPY_WHOLE(bytes)                                                                          \
    for (int64_t k = 0; k < n; k++) {                                                              \
        char whole[bytes];                                                                         \
        memcpy(whole, from + k * step, bytes);                                                     \
        memcpy(to + k * (bytes), whole, bytes);                                                    \
    }

static void pick_pixels(char *to, const char *from, int64_t pixel, int64_t step, int64_t n)
{
    switch (pixel) {
    case 1:
        COPY_WHOLE(1)
        return;
    case 2:
        COPY_WHOLE(2)
        return;
    case 4:
        COPY_WHOLE(4)
        return;
    case 8:
        COPY_WHOLE(8)
        return;
    default:
        break;
    }
    if (pixel > 16) {
        for (int64_t k = 0; k < n; k++, to += pixel, from += step)
            memmove(to, from, (size_t)pixel);
    } else if (pixel >= 8) {
        COPY_ENDS(8)
    } else if (pixel >= 4) {
        COPY_ENDS(4)
    } else {
        COPY_ENDS(2)
    }
}
#undef COPY_ENDS
#undef COPY_WHOLE

/* Windows that begin at every pixel, then those among them that are asked for: all rows in one go,
 * as strides divide their pitch, or each to y. */
static void slide_and_pick(const forward_state *s)
{
    const forward_plan *plan = &s->plan;
    int64_t pixel = plan->channels * plan->bytes, step = plan->columns->stride * pixel;
    int64_t columns = (plan->most_outputs - 1) * plan->columns->stride + 1;
    int64_t before = (s->rows - 1) * plan->output_pitch / plan->channels;
    slide(s, s->down, s->across, s->rows * plan->pitch,
          (s->rows - 1) * plan->pitch + columns * plan->channels);
    if (plan->codes)
        pick_pixels(s->across.codes, s->across.codes, pixel, step, before + plan->most_outputs);
    if (!plan->writes_y)
        pick_pixels(s->across.values, s->across.values, pixel, step, before + plan->most_outputs);
    for (int k = 0; k < s->jobs && plan->writes_y; k++)
        for (int r = 0; r < s->job[k].rows; r++)
            pick_pixels(s->job[k].written[WRITE_Y] + r * plan->written_step[WRITE_Y],
                        s->across.values + (s->job[k].slot + r) * plan->pitch * plan->bytes, pixel,
                        step, s->job[k].outputs);
}

/* ---- Pixels --------------------------------------------------------------------------------- */

static void fold_pixels(const forward_plan *plan, forward_row row, forward_row to, int64_t to_step,
                        int64_t channels, int64_t outputs)
{
    const tarn_axis *axis = plan->columns;
    fold_taps(plan, to, to_step, row, 0, 1, axis->kernel,
              step_between(axis->kernel, axis->dilation, channels),
              step_between(outputs, axis->stride, channels), channels, outputs);
}

/* ---- Windows as lists of pixels ------------------------------------------------------------- */

/* Pixels of less than a vector, side by side: one half is folded with the other, in whole vectors,
 * until the rest fits one. If their number is odd, the halves share a pixel. */
static forward_row fold_halves(forward_state *s, forward_row row, int64_t step, int64_t *k,
                               int64_t n)
{
    const forward_row folded = forward_take(s);
    while (*k * step > s->plan.ops->vector_bytes) {
        const int64_t right = *k / 2;
        forward_row rows[2] = {row, row_at(row, right * step)};
        *k -= right;
        fold_rows(&s->plan, folded, rows, 0, right, 2, *k * n);
        row = folded;
    }
    return row;
}

/* Taps [tap,tap+k) of a window whose tap 0 is at `row`, one each `step` bytes. */
static void best_of_list(forward_state *s, forward_row row, int64_t step, int64_t k, int64_t n,
                         forward_row to)
{
    int64_t used = s->arena_used, some;
    forward_row rows[MOST_LISTED], more = to;
    if (k > MOST_LISTED && step == n * s->plan.bytes && step < s->plan.ops->vector_bytes)
        row = fold_halves(s, row, step, &k, n);
    for (int64_t tap = 0; tap < k; tap += some) {
        some = min_i64(MOST_LISTED, k - tap);
        if (tap == MOST_LISTED)
            more = forward_take(s);
        for (int64_t j = 0; j < some; j++)
            rows[j] = row_at(row, (tap + j) * step);
        fold_rows(&s->plan, more, rows, tap, 1, some, n);
        if (tap > 0) {
            rows[0] = to;
            rows[1] = more;
            fold_rows(&s->plan, to, rows, 0, 0, 2, n);
        }
    }
    s->arena_used = used;
}

/* [S1] */
static void sum_of_list(forward_state *s, forward_row row, int64_t step, int64_t k, int64_t n,
                        forward_row to)
{
    forward_row rows[MOST_LISTED];
    if (k <= MOST_LISTED) {
        for (int64_t j = 0; j < k; j++)
            rows[j] = row_at(row, j * step);
        fold_rows(&s->plan, to, rows, 0, 0, k, n);
        return;
    }
    int64_t used = s->arena_used, half = split_point(k);
    rows[0] = forward_take(s);
    rows[1] = forward_take(s);
    sum_of_list(s, row, step, half, n, rows[0]);
    sum_of_list(s, row_at(row, half * step), step, k - half, n, rows[1]);
    fold_rows(&s->plan, to, rows, 0, 0, 2, n);
    s->arena_used = used;
}

static void fold_list(forward_state *s, forward_row row, int64_t step, int64_t k, int64_t n,
                      forward_row to)
{
    if (s->plan.sums)
        sum_of_list(s, row, step, k, n, to);
    else
        best_of_list(s, row, step, k, n, to);
}

static void fold_lists(forward_state *s, forward_row row, forward_row to, const forward_job *job,
                       int64_t channels)
{
    int64_t pixel = channels * s->plan.bytes, origin = window_taps(s->plan.columns, job->o).first;
    for (int64_t o = 0; o < job->outputs; o++) {
        tarn_span taps = window_taps(s->plan.columns, job->o + o);
        fold_list(s, row_at(row, (taps.first - origin) * pixel), taps.step * pixel, taps.n,
                  channels, row_at(to, o * pixel));
    }
}

/* ---- Rows that are turned: a lane is a row -------------------------------------------------- */

static void turn(const forward_state *s, char *to, bool codes, int64_t columns)
{
    const void *rows[MOST_JOBS];
    for (int r = 0; r < s->plan.batch_rows; r++) {
        forward_row row = down_row(s, r < s->rows ? r : 0);
        rows[r] = codes ? row.codes : row.values;
    }
    s->plan.ops->turn[core_width(s->plan.core)](to, rows, columns);
}

static void turn_back(const forward_state *s, const char *from, bool codes, int64_t outputs)
{
    void *rows[MOST_JOBS];
    for (int r = 0; r < s->plan.batch_rows; r++) {
        forward_row row = across_row(s, r);
        rows[r] = codes ? row.codes : row.values;
    }
    s->plan.ops->turn_back[core_width(s->plan.core)](rows, from, outputs);
}

static void fold_turned(forward_state *s)
{
    const forward_plan *plan = &s->plan;
    forward_job job = s->job[0];
    for (int r = 1; r < s->jobs; r++)
        job.outputs = max_i64(job.outputs, s->job[r].outputs);
    turn(s, s->turned.values, false, s->columns);
    if (plan->codes)
        turn(s, s->turned.codes, true, s->columns);
    if (plan->lists)
        fold_lists(s, s->turned, s->folded, &job, plan->lanes);
    else
        fold_pixels(plan, s->turned, s->folded, plan->lanes, plan->lanes, job.outputs);
    if (plan->output_pitch == 1)
        return;
    turn_back(s, s->folded.values, false, job.outputs);
    if (plan->codes)
        turn_back(s, s->folded.codes, true, job.outputs);
}

/* ---- Wide windows, in pieces ---------------------------------------------------------------- */

/* The taps [tap,tap+k) of a window, which fit a row. */
static void fold_piece(forward_state *s, const tarn_span *taps, int64_t tap, int64_t k,
                       forward_row to)
{
    const forward_plan *plan = &s->plan;
    int64_t pixel = plan->channels * plan->bytes;
    s->first = span_at(taps, tap);
    s->columns = (k - 1) * taps->step + 1;
    s->lo = min_i64(max_i64(-s->first, 0), s->columns);
    s->hi = max_i64(min_i64(plan->columns->size - s->first, s->columns), s->lo);
    forward_forget_rows(s);
    forward_forget_margins(s);
    tarn_forward_down(s, s->down);
    if (plan->codes || plan->channels > 1 || taps->step > 1)
        fold_list(s, s->down, taps->step * pixel, k, plan->channels, to);
    else if (plan->sums)
        plan->ops->sum_run[plan->core == CORE_F32 ? TARN_F32 : TARN_F64](to.values, s->down.values,
                                                                         k);
    else /* keys of a core are those of the same number */
        plan->ops->best_run[plan->core](to.values, true, s->down.values, 0, k);
}

/* [S1] In halves, extremes too. Halves that lie in the padding are left out: most of a huge
 * window may be there. */
static void fold_wide(forward_state *s, const tarn_span *taps, int64_t tap, int64_t k,
                      forward_row to)
{
    if (k <= (s->plan.most_columns - 1) / taps->step + 1) {
        fold_piece(s, taps, tap, k, to);
        return;
    }
    int64_t used = s->arena_used, half = split_point(k);
    bool left = taps->lo < tap + half && taps->hi > tap,
         right = taps->hi > tap + half && taps->lo < tap + k;
    forward_row rows[2] = {to, to};
    if (left && right) {
        rows[0] = forward_take(s);
        rows[1] = forward_take(s);
    }
    if (left || !right)
        fold_wide(s, taps, tap, half, rows[0]);
    if (right)
        fold_wide(s, taps, tap + half, k - half, rows[1]);
    if (left && right)
        fold_rows(&s->plan, to, rows, 0, half, 2, s->plan.channels);
    else if (right && to.codes)
        fold_rows(&s->plan, to, rows, half, 0, 1, s->plan.channels);
    s->arena_used = used;
}

void tarn_forward_wide(forward_state *s, int64_t o, forward_row to)
{
    tarn_span taps = window_taps(s->plan.columns, o);
    fold_wide(s, &taps, 0, taps.n, to);
}
