/* Write: a folded row becomes results: values, saved winners, indices, tangents. */
#include "engines.h"
#include "forward.h"

static void write_means(forward_state *s, const forward_job *job, const char *sums);
static const char *divisors_of(forward_state *s, const forward_job *job, int64_t *step);
static bool rows_follow(const forward_state *s, const forward_job *job, int written);
static void save_codes(const forward_state *s, char *to, const char *codes, int64_t n);
static bool is_contiguous(const forward_state *s, const forward_job *job, int written);
static int64_t bytes_of(const forward_state *s, int written);
static int64_t stride_of(const forward_state *s, int written);
static void write_keys(forward_state *s, const forward_job *job, const char *keys);
static void write_saved(forward_state *s, const forward_job *job, const char *codes);
static void look_up(forward_state *s, const forward_job *job, const char *codes, int written,
                    int which);
static void write_empty(const forward_state *s, const forward_job *job);

static void write_row(forward_state *s, const forward_job *job, forward_row row)
{
    const forward_plan *plan = &s->plan;
    if (plan->sums) {
        write_means(s, job, row.values);
        return;
    }
    if (job->written[WRITE_Y] && plan->look_up)
        look_up(s, job, row.codes, WRITE_Y, PLACE_IN_X);
    else if (job->written[WRITE_Y] && !plan->writes_y && !plan->copies_y)
        write_keys(s, job, row.values);
    if (job->written[WRITE_SAVED])
        write_saved(s, job, row.codes);
    if (job->written[WRITE_OTHER])
        look_up(s, job, row.codes, WRITE_OTHER, PLACE_OTHER);
    write_empty(s, job);
}

/* Elements of all rows that wait, whatever lies between them, in whole vectors: what is changed in
 * place must not be changed twice. */
static int64_t elements_of_rows(const forward_state *s)
{
    const forward_plan *plan = &s->plan;
    int64_t n = (s->rows - 1) * plan->output_pitch + plan->most_outputs * plan->channels;
    return (n + plan->lanes - 1) / plan->lanes * plan->lanes;
}

/* All rows of results of so many bytes in one go, from scratch. */
static void copy_rows(const forward_state *s, const forward_job *job, int written, const char *from)
{
    const forward_plan *plan = &s->plan;
    const int64_t bytes = bytes_of(s, written), n = job->outputs * plan->channels * bytes;
    ops_for(plan->write_ops, n)
        ->best_pixels[CORE_I8](job->written[written], plan->written_step[written], from, 1, 0,
                               plan->output_pitch * bytes, n, job->rows);
}

/* Elements of all rows of a job, whatever lies between them. */
static int64_t elements_of_job(const forward_state *s, const forward_job *job)
{
    return (job->rows - 1) * s->plan.output_pitch + job->outputs * s->plan.channels;
}

/* Of n elements those in whole vectors: what is made in place must not be made twice. */
static int64_t in_vectors(const forward_plan *plan, int64_t n)
{
    const int64_t lanes = plan->write_ops->vector_bytes / plan->bytes;
    return n / lanes * lanes;
}

/* Means of all rows in one go: in their place, or on top of the sums, and copied then. */
static void write_all_means(forward_state *s, const forward_job *job)
{
    const forward_plan *plan = &s->plan;
    const bool wide = plan->core == CORE_F64, direct = rows_follow(s, job, WRITE_Y);
    const int64_t n = elements_of_job(s, job), bytes = bytes_of(s, WRITE_Y);
    const int64_t whole = in_vectors(plan, n);
    int64_t step;
    const char *divisors = divisors_of(s, job, &step);
    char *sums = across_row(s, job->slot).values, *to = direct ? job->written[WRITE_Y] : sums;
    if (whole > 0)
        make_means(plan->write_ops, wide, plan->result, to, sums, divisors, step, whole);
    if (whole < n)
        make_means(plan->write_ops, wide, plan->result, to + whole * bytes,
                   sums + whole * plan->bytes, divisors + step * whole * plan->bytes, step,
                   n - whole);
    if (!direct)
        copy_rows(s, job, WRITE_Y, to);
}

/* Winners of all rows, the same. */
static void write_all_saved(forward_state *s, const forward_job *job)
{
    const forward_plan *plan = &s->plan;
    const bool direct = rows_follow(s, job, WRITE_SAVED);
    const int64_t n = elements_of_job(s, job), bytes = bytes_of(s, WRITE_SAVED);
    const int64_t whole = in_vectors(plan, n);
    char *codes = across_row(s, job->slot).codes, *to = direct ? job->written[WRITE_SAVED] : codes;
    if (whole > 0)
        save_codes(s, to, codes, whole);
    if (whole < n)
        save_codes(s, to + whole * bytes, codes + whole * plan->bytes, n - whole);
    if (!direct)
        copy_rows(s, job, WRITE_SAVED, to);
}

/* Whether rows of results are made all at once, and copied from where they are: short ones. */
static bool is_written_at_once(const forward_state *s, const forward_job *job, int written)
{
    enum { LONG_ROW = 512 };
    const int64_t bytes = bytes_of(s, written);
    return job->rows > 1 && is_contiguous(s, job, written) && bytes <= s->plan.bytes &&
           job->outputs * s->plan.channels * bytes < LONG_ROW;
}

/* Whether rows of results follow each other, in scratch as in memory. */
static bool rows_follow(const forward_state *s, const forward_job *job, int written)
{
    int64_t n = job->outputs * s->plan.channels;
    return s->plan.output_pitch == n && s->plan.written_step[written] == n * bytes_of(s, written) &&
           stride_of(s, written) == s->plan.channels;
}

/* Values are there already, and winners lie as they are to be saved. */
static bool is_saved_at_once(const forward_state *s, const forward_job *job)
{
    const forward_plan *plan = &s->plan;
    bool has_values = !job->written[WRITE_Y] || plan->writes_y || plan->copies_y;
    return has_values && job->written[WRITE_SAVED] && !job->written[WRITE_OTHER] && !job->empty &&
           !plan->has_empty && is_written_at_once(s, job, WRITE_SAVED);
}

static void write_job(forward_state *s, const forward_job *job)
{
    const forward_plan *plan = &s->plan;
    forward_job row = *job;
    if (plan->copies_y && job->written[WRITE_Y])
        copy_rows(s, job, WRITE_Y, across_row(s, job->slot).values);
    if (plan->sums && is_written_at_once(s, job, WRITE_Y)) {
        write_all_means(s, job);
        return;
    }
    if (plan->copies_y && !plan->codes && !job->empty && !plan->has_empty)
        return;
    if (is_saved_at_once(s, job)) {
        write_all_saved(s, job);
        return;
    }
    row.rows = 1;
    for (int r = 0; r < job->rows; r++, row.slot++) {
        write_row(s, &row, across_row(s, row.slot));
        for (int k = 0; k < WRITES; k++)
            row.written[k] += row.written[k] ? plan->written_step[k] : 0;
        for (int which = 0; which < PLACES && job->rows > 1 && plan->row_axis >= 0; which++)
            row.place[which] += (uint64_t)plan->p->axis[plan->row_axis].stride *
                                s->places.step[which][plan->row_axis];
    }
}

void tarn_forward_write(forward_state *s)
{
    const forward_plan *plan = &s->plan;
    if (plan->copies_y && !plan->native && plan->has_y)
        plan->write_ops->unkey[plan->key](s->across.values, s->across.values, plan->flip,
                                          elements_of_rows(s));
    for (int k = 0; k < s->jobs; k++)
        write_job(s, &s->job[k]);
}

/* ---- Rows of results, which need not be contiguous ------------------------------------------ */

static int64_t stride_of(const forward_state *s, int written)
{
    return s->plan.p->stride[s->plan.written[written]][s->plan.p->spatial - 1];
}

static int64_t bytes_of(const forward_state *s, int written)
{
    return s->plan.p->element_bytes[s->plan.written[written]];
}

static bool is_contiguous(const forward_state *s, const forward_job *job, int written)
{
    return stride_of(s, written) == s->plan.channels || job->outputs == 1;
}

/* Where a row of results is made: in its place, or in scratch. */
static char *begin_row(forward_state *s, const forward_job *job, int written)
{
    return is_contiguous(s, job, written) ? job->written[written] : s->gathered[0];
}

static void end_row(forward_state *s, const forward_job *job, int written, const char *row)
{
    int64_t bytes = bytes_of(s, written), pixel = s->plan.channels * bytes;
    char *to = job->written[written];
    if (row == to)
        return;
    for (int64_t o = 0; o < job->outputs; o++, to += stride_of(s, written) * bytes)
        memcpy(to, row + o * pixel, (size_t)pixel);
}

/* ---- Means ---------------------------------------------------------------------------------- */

/* Whether every tap of a sliding window exists: told without a division. */
static bool is_inside(const tarn_axis *axis, int64_t o)
{
    return !axis->adaptive && o * axis->stride >= axis->lo &&
           o * axis->stride - axis->lo < axis->size - (axis->kernel - 1) * axis->dilation;
}

/* [A2] Taps of a window on the last axis that count. A window that has none is divided by 1:
 * its sum is 0 [A3]. */
static int64_t counted_columns(const forward_plan *plan, int64_t o)
{
    if (is_inside(plan->columns, o))
        return plan->columns->kernel;
    tarn_span taps = window_taps(plan->columns, o);
    return plan->p->count_include_pad ? padded_taps(plan->columns, o) : taps.hi - taps.lo;
}

/* n of them. */
static void set_divisor(const forward_plan *plan, char *to, int64_t divisor, int64_t n)
{
    char one[sizeof(double)];
    put_one_divisor(plan->core == CORE_F64, one, max_i64(divisor, 1));
    forward_fill(to, one, plan->bytes, n);
}

/* Whether one divides all means of a job: its windows are inside x on the last axis then. */
static bool has_one_divisor(const forward_state *s, const forward_job *job)
{
    const tarn_axis *columns = s->plan.columns;
    if (!is_inside(columns, job->o) || !is_inside(columns, job->o + job->outputs - 1))
        return false;
    for (int r = job->slot; r < job->slot + job->rows; r++)
        if (s->counted[r] != s->counted[job->slot])
            return false;
    return true;
}

/* Those of the outputs of a row. */
static void set_row_divisors(const forward_state *s, const forward_job *job, char *to,
                             int64_t counted)
{
    const forward_plan *plan = &s->plan;
    set_divisor(plan, to, counted * plan->columns->kernel, plan->output_pitch);
    for (int64_t o = 0; o < job->outputs; o++)
        if (!is_inside(plan->columns, job->o + o))
            set_divisor(plan, to + o * plan->channels * plan->bytes,
                        counted * counted_columns(plan, job->o + o), plan->channels);
}

/* Of a job's rows: one, with a step of 0, or those of each row, which may be there already. */
static const char *divisors_of(forward_state *s, const forward_job *job, int64_t *step)
{
    const forward_plan *plan = &s->plan;
    const int64_t row = plan->output_pitch * plan->bytes;
    *step = 0;
    if (plan->one_divisor)
        return s->divisors;
    if (has_one_divisor(s, job)) {
        set_divisor(plan, s->divisor, s->counted[job->slot] * plan->columns->kernel, 1);
        return s->divisor;
    }
    *step = 1;
    if (s->divisors_o != job->o || s->divisors_outputs != job->outputs)
        memset(s->divided, 0xff, sizeof s->divided);
    s->divisors_o = job->o;
    s->divisors_outputs = job->outputs;
    for (int r = job->slot; r < job->slot + job->rows; r++) {
        char *to = s->divisors + r * row;
        if (s->divided[r] != s->counted[r] && r > 0 && s->divided[r - 1] == s->counted[r])
            memcpy(to, to - row, (size_t)row);
        else if (s->divided[r] != s->counted[r])
            set_row_divisors(s, job, to, s->counted[r]);
        s->divided[r] = s->counted[r];
    }
    return s->divisors + job->slot * row;
}

static void write_means(forward_state *s, const forward_job *job, const char *sums)
{
    const forward_plan *plan = &s->plan;
    int64_t step;
    const char *divisors = divisors_of(s, job, &step);
    char *row = begin_row(s, job, WRITE_Y);
    make_means(plan->write_ops, plan->core == CORE_F64, plan->result, row, sums, divisors, step,
               job->outputs * plan->channels);
    end_row(s, job, WRITE_Y, row);
}

/* ---- Extremes ------------------------------------------------------------------------------- */

static void write_keys(forward_state *s, const forward_job *job, const char *keys)
{
    char *row = begin_row(s, job, WRITE_Y);
    s->plan.write_ops->unkey[s->plan.key](row, keys, s->plan.flip, job->outputs * s->plan.channels);
    end_row(s, job, WRITE_Y, row);
}

static void save_codes(const forward_state *s, char *to, const char *codes, int64_t n)
{
    static const int8_t kind[] = {[1] = 0, [4] = 1, [8] = 2};
    s->plan.write_ops->save_codes[core_width(s->plan.core)][kind[bytes_of(s, WRITE_SAVED)]](
        to, codes, n);
}

static void write_saved(forward_state *s, const forward_job *job, const char *codes)
{
    char *row = begin_row(s, job, WRITE_SAVED);
    save_codes(s, row, codes, job->outputs * s->plan.channels);
    end_row(s, job, WRITE_SAVED, row);
}

/* ---- Places of winners ---------------------------------------------------------------------- */

static void look_up(forward_state *s, const forward_job *job, const char *codes, int written,
                    int which)
{
    const forward_plan *plan = &s->plan;
    char *row = begin_row(s, job, written);
    tarn_look_up(&s->places, &(place_look_up){.ops = plan->ops,
                                              .code_ops = plan->write_ops,
                                              .which = which,
                                              .width = core_width(plan->core),
                                              .codes = codes,
                                              .from = job->read[which],
                                              .to = row,
                                              .bytes = bytes_of(s, written),
                                              .channels = plan->channels,
                                              .o = job->o,
                                              .windows = job->outputs,
                                              .place = job->place[which]});
    end_row(s, job, written, row);
}

/* ---- Windows without a tap ------------------------------------------------------------------ */

/* [M4] Value and tangent 0; no winner, index -1: all bits set. */
static void clear_output(const forward_state *s, const forward_job *job, int64_t o)
{
    for (int k = 0; k < WRITES; k++) {
        int operand = s->plan.written[k],
            value = operand == TARN_Y || operand == TARN_DY ? 0 : 0xff;
        int64_t bytes = bytes_of(s, k);
        if (job->written[k])
            memset(job->written[k] + o * stride_of(s, k) * bytes, value,
                   (size_t)(s->plan.channels * bytes));
    }
}

static bool clear_if_empty(const forward_state *s, const forward_job *job, int64_t o)
{
    tarn_span taps = window_taps(s->plan.columns, job->o + o);
    bool empty = job->empty || taps.lo >= taps.hi;
    if (empty)
        clear_output(s, job, o);
    return empty;
}

/* They lie at the ends of a row, unless dilation skips all of it. */
static void write_empty(const forward_state *s, const forward_job *job)
{
    const tarn_axis *axis = s->plan.columns;
    bool anywhere = !axis->adaptive && axis->dilation > axis->size;
    int64_t o = 0, last = job->outputs - 1;
    if (!job->empty && !s->plan.has_empty)
        return;
    while (o <= last && (clear_if_empty(s, job, o) || anywhere))
        o++;
    while (last > o && clear_if_empty(s, job, last))
        last--;
}
