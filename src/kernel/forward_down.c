/* Down: the rows of x that the windows of an output row read, folded into one row. */
#include "engines.h"
#include "forward.h"

static bool is_direct(const forward_state *s, int axis);
static bool is_listed(const forward_state *s, int axis);
static forward_row fold_axis(forward_state *s, int axis, forward_row to);

/* ---- Rows of x ------------------------------------------------------------------------------ */

static int64_t columns_of_x(const forward_state *s)
{
    return (s->hi - s->lo) * s->plan.channels;
}

/* Elements that folds of outer axes take at once: a row of x, or several that follow each other. */
static int64_t run_of_x(const forward_state *s)
{
    return s->run_rows * columns_of_x(s);
}

/* Whether the rows of a run lie one behind the other in x. */
static bool rows_follow(const forward_state *s)
{
    const forward_plan *plan = &s->plan;
    return s->run_rows == 1 || plan->p->stride[plan->in][plan->row_axis] == columns_of_x(s);
}

/* The first column that exists. */
static const char *row_of_x(const forward_state *s)
{
    const tarn_problem *p = s->plan.p;
    const int64_t *stride = p->stride[s->plan.in];
    int64_t offset = (s->first + s->lo) * stride[p->spatial - 1];
    for (int a = 0; a <= s->plan.row_axis; a++)
        offset += s->i[a] * stride[a];
    return s->base[s->plan.in] + offset * p->element_bytes[s->plan.in];
}

/* Whether rows that are folded where they lie hold NaN or -0. */
static bool is_odd_run(const forward_state *s, const char *from, int64_t rows, int64_t pitch)
{
    const forward_plan *plan = &s->plan;
    bool (*is_odd_row)(const void *, int64_t) = plan->ops->is_odd[plan->key];
    int64_t n = columns_of_x(s), bytes = pitch * plan->bytes;
    if (plan->sums || !is_odd_row)
        return false;
    if (pitch == n)
        return is_odd_row(from, rows * n);
    for (int64_t r = 0; r < rows; r++)
        if (is_odd_row(from + r * bytes, n))
            return true;
    return false;
}

/* How many rows from `first` on are known to be clean. */
static int64_t known_rows(const forward_state *s, int64_t first)
{
    return first >= s->clean_from ? max_i64(s->clean - first, 0) : 0;
}

static void remember_clean(forward_state *s, int64_t first, int64_t rows)
{
    bool joined = first >= s->clean_from && first <= s->clean;
    s->clean_from = joined ? s->clean_from : first;
    s->clean = joined ? max_i64(s->clean, first + rows) : first + rows;
}

/* Pixels that do not follow each other, side by side. */
static const char *gather_row(forward_state *s, const char *from)
{
    const tarn_problem *p = s->plan.p;
    int64_t stride = p->stride[s->plan.in][p->spatial - 1], columns = s->hi - s->lo;
    int64_t bytes = p->element_bytes[s->plan.in], pixel = s->plan.channels * bytes;
    if (stride == s->plan.channels || columns == 1)
        return from;
    char *to = s->gathered[0];
    if (s->plan.channels == 1) {
        s->plan.ops->take[__builtin_ctz((unsigned)bytes)](to, from, stride, columns);
        return to;
    }
    for (int64_t c = 0; c < columns; c++, from += stride * bytes)
        memcpy(to + c * pixel, from, (size_t)pixel);
    return to;
}

/* Terms or keys of n elements, none of which is skipped. */
static void convert_elements(forward_state *s, char *to, const char *from, int64_t n)
{
    const forward_plan *plan = &s->plan;
    tarn_dtype dtype = plan->p->dtype;
    int64_t bytes = plan->p->element_bytes[plan->in];
    int width = __builtin_ctz((unsigned)bytes); /* as CORE_I8, ... */
    bool widens = !plan->sums && width != core_width(plan->core);
    const tarn_row_ops *ops = ops_for(plan->ops, n * (plan->sums ? plan->bytes : bytes));
    if (plan->sums)
        make_terms(ops, plan->core == CORE_F64, dtype, to, from, n);
    else
        s->odd |= ops->key[plan->key](widens ? s->gathered[1] : to, from, plan->flip, n);
    if (widens)
        plan->ops->widen_key[width][core_width(plan->core)](to, s->gathered[1], n);
}

/* Terms or keys of n elements, or ones for those that count. */
static void convert_row(forward_state *s, char *to, const char *from, int64_t n)
{
    enum { SOME = 256 };
    const forward_plan *plan = &s->plan;
    _Alignas(32) char some[SOME * sizeof(double)];
    if (!plan->p->skips) {
        convert_elements(s, to, from, n);
        return;
    }
    for (int64_t at = 0, m; at < n; at += m, from += m * plan->skip.bytes, to += m * plan->bytes) {
        m = min_i64(n - at, SOME);
        if (plan->p->part == COUNT_PART) {
            tarn_count_others((uint8_t *)some, from, &plan->skip, m);
            make_terms(plan->ops, plan->core == CORE_F64, TARN_U8, to, some, m);
        } else {
            tarn_replace_skipped(some, from, &plan->skip, m);
            convert_elements(s, to, some, m);
        }
    }
}

/* `rows` rows of x from s->i on; such as follow each other are converted in one go. */
static void convert_rows(forward_state *s, int64_t rows, forward_row to)
{
    const tarn_problem *p = s->plan.p;
    const int64_t *stride = p->stride[s->plan.in];
    int axis = s->plan.row_axis, last = p->spatial - 1;
    int64_t n = columns_of_x(s), bytes = p->element_bytes[s->plan.in];
    const char *from = row_of_x(s);
    bool follow = rows == 1 || stride[axis] == n;
    bool one_by_one =
        s->plan.look_up || stride[last] != s->plan.channels; /* by way of a single scratch row */
    if (follow && !one_by_one) {
        convert_row(s, to.values, from, rows * n);
        return;
    }
    for (int64_t r = 0; r<rows; r++, from += rows> 1 ? stride[axis] * bytes : 0)
        convert_row(s, to.values + r * n * s->plan.bytes, gather_row(s, from), n);
}

/* The row of x at s->i, and those behind it in a run, in the core's type: where they lie, or in
 * `to`. There are no codes yet. */
static forward_row read_row(forward_state *s, forward_row to)
{
    const forward_plan *plan = &s->plan;
    int64_t pitch = plan->row_axis < 0 ? 0 : plan->p->stride[plan->in][plan->row_axis],
            n = columns_of_x(s);
    forward_row from = {(char *)(uintptr_t)row_of_x(s), NULL};
    to.codes = NULL;
    if (!plan->direct) {
        convert_rows(s, s->run_rows, to);
        return to;
    }
    s->odd |= is_odd_run(s, from.values, s->run_rows, pitch);
    if (rows_follow(s))
        return from;
    plan->ops->best_pixels[plan->core](to.values, n, from.values, 1, 0, pitch, n, s->run_rows);
    return to;
}

/* ---- Entries of an axis: the rows that its fold takes --------------------------------------- */

/* The row at s->i on the last axis but one, which the windows below may want, too. */
static forward_row ring_row(forward_state *s, int axis, int slot)
{
    if (s->plan.ring_keeps)
        slot = (int)(s->i[axis] % s->plan.ring_rows);
    forward_row row = s->ring[slot];
    if (!s->plan.ring_keeps || s->ring_tag[slot] != s->i[axis]) {
        bool odd = s->odd;
        s->odd = false;
        if (axis == 0)
            read_row(s, row);
        else
            fold_axis(s, axis - 1, row);
        s->ring_tag[slot] = s->i[axis];
        s->ring_odd[slot] = s->odd;
        s->odd = odd;
    }
    s->odd |= s->ring_odd[slot];
    return row;
}

/* The row of the axis' tap; `slot` is its place among those listed, `to` a row to put it in if
 * there is no list. */
static forward_row entry(forward_state *s, int axis, const tarn_span *taps, int64_t tap, int slot,
                         forward_row to)
{
    s->i[axis] = span_at(taps, tap);
    if (is_direct(s, axis))
        return (forward_row){s->direct + (tap - taps->lo) * taps->step * s->direct_step, NULL};
    if (axis == s->plan.row_axis)
        return ring_row(s, axis, slot);
    return axis == 0 ? read_row(s, to) : fold_axis(s, axis - 1, to);
}

/* Whether the entries of an axis are rows that stay, so that one operation takes many. */
static bool is_listed(const forward_state *s, int axis)
{
    return axis == s->plan.row_axis || is_direct(s, axis);
}

/* Whether they are rows of x, where they lie. */
static bool is_direct(const forward_state *s, int axis)
{
    return axis == 0 && s->plan.direct && rows_follow(s);
}

/* Where the rows of x for the taps of axis 0 begin. False if one is odd; rows between them may
 * count, too. */
static bool set_direct(forward_state *s, const tarn_span *taps)
{
    int64_t pitch = s->plan.p->stride[s->plan.in][0], first = span_at(taps, taps->lo);
    int64_t rows = (taps->hi - 1 - taps->lo) * taps->step + 1, known = 0;
    s->i[0] = first;
    s->direct = (char *)(uintptr_t)row_of_x(s);
    s->direct_step = pitch * s->plan.bytes;
    if (s->plan.row_axis > 0) { /* a run for each tap */
        for (int64_t j = 0; j < rows; j += taps->step)
            if (is_odd_run(s, s->direct + j * s->direct_step, s->run_rows, columns_of_x(s)))
                return false;
        return true;
    }
    known = known_rows(s, first);
    if (known < rows && is_odd_run(s, s->direct + known * s->direct_step, rows - known, pitch))
        return false;
    remember_clean(s, first, rows);
    return true;
}

/* ---- Folds ---------------------------------------------------------------------------------- */

/* What the next tap of an axis adds to the number of a tap. */
static int64_t code_step(const tarn_problem *p, int axis)
{
    int64_t step = 1;
    for (int a = axis + 1; a < p->spatial; a++)
        step *= p->axis[a].kernel;
    return step;
}

/* Elements from a row of x that is folded where it lies to the next. */
static int64_t direct_step(const forward_state *s, const tarn_span *taps)
{
    return step_between(taps->n, taps->step, s->direct_step / s->plan.bytes);
}

static void best_of_axis(forward_state *s, int axis, const tarn_span *taps, forward_row to)
{
    int64_t used = s->arena_used, n = run_of_x(s),
            step = s->plan.codes ? code_step(s->plan.p, axis) : 0;
    int64_t most = is_listed(s, axis) ? s->plan.listed : 1, k;
    forward_row rows[MOST_LISTED], more = to;
    if (is_direct(s, axis)) {
        fold_taps(&s->plan, to, n, (forward_row){s->direct, NULL}, taps->lo * step, step,
                  taps->hi - taps->lo, direct_step(s, taps), n, n, 1);
        return;
    }
    for (int64_t tap = taps->lo; tap < taps->hi; tap += k) {
        k = min_i64(most, taps->hi - tap);
        if (tap == taps->lo + most)
            more = forward_take(s);
        for (int j = 0; j < k; j++)
            rows[j] = entry(s, axis, taps, tap + j, j, more);
        fold_rows(&s->plan, more, rows, tap * step, step, k, n);
        if (tap > taps->lo) {
            rows[0] = to;
            rows[1] = more;
            fold_rows(&s->plan, to, rows, 0, 0, 2, n);
        }
    }
    s->arena_used = used;
}

/* [S1] The taps [tap,tap+k), some of which may be missing, but not all. */
static void sum_of_axis(forward_state *s, int axis, const tarn_span *taps, int64_t tap, int64_t k,
                        forward_row to)
{
    int64_t used = s->arena_used, n = run_of_x(s);
    forward_row rows[MOST_LISTED];
    rows[0] = to;
    if (is_direct(s, axis) && k <= MOST_SUMMED && tap >= taps->lo && tap + k <= taps->hi) {
        int64_t step = direct_step(s, taps), bytes = (tap - taps->lo) * step * s->plan.bytes;
        fold_taps(&s->plan, to, n, (forward_row){s->direct + bytes, NULL}, 0, 0, k, step, n, n, 1);
        return;
    }
    if (k == 1 || (k <= s->plan.listed && is_listed(s, axis))) {
        for (int j = 0; j < k; j++) {
            bool exists = tap + j >= taps->lo && tap + j < taps->hi;
            rows[j] = exists ? entry(s, axis, taps, tap + j, j, to) : (forward_row){s->zeros, NULL};
        }
        if (k > 1 || rows[0].values != to.values)
            fold_rows(&s->plan, to, rows, 0, 0, k, n);
        return;
    }
    int64_t half = split_point(k);
    bool left = taps->lo < tap + half && taps->hi > tap,
         right = taps->hi > tap + half && taps->lo < tap + k;
    if (left && right) {
        rows[0] = forward_take(s);
        rows[1] = forward_take(s);
        sum_of_axis(s, axis, taps, tap, half, rows[0]);
        sum_of_axis(s, axis, taps, tap + half, k - half, rows[1]);
        fold_rows(&s->plan, to, rows, 0, 0, 2, n);
    } else
        sum_of_axis(s, axis, taps, left ? tap : tap + half, left ? half : k - half, to);
    s->arena_used = used;
}

static forward_row fold_axis(forward_state *s, int axis, forward_row to)
{
    tarn_span taps = window_taps(&s->plan.p->axis[axis], s->o[axis]);
    if (is_direct(s, axis) && !set_direct(s, &taps)) {
        s->odd = true; /* all will be done again */
        return to;
    }
    if (s->plan.sums && sum_may_be_clipped(&taps))
        sum_of_axis(s, axis, &taps, taps.lo, taps.hi - taps.lo, to);
    else if (s->plan.sums)
        sum_of_axis(s, axis, &taps, 0, taps.n, to);
    else
        best_of_axis(s, axis, &taps, to);
    return to;
}

/* ---- Padding -------------------------------------------------------------------------------- */

/* n integers of `bytes` bytes, of the low bytes of `value`. */
static void fill_integers(char *to, uint64_t value, int64_t bytes, int64_t n)
{
    uint64_t element;
    put_integer(&element, value, bytes);
    forward_fill(to, &element, bytes, n);
}

/* Elements [from,end) of a row take no part: +0 in sums, the least key in extremes. */
static void pad_row(const forward_plan *plan, forward_row row, int64_t from, int64_t end)
{
    static const uint64_t least[CORES] = {
        [CORE_I8] = 0x80,        [CORE_I16] = 0x8000,
        [CORE_I32] = 0x80000000, [CORE_I64] = UINT64_C(1) << 63,
        [CORE_F32] = 0xff800000, [CORE_F64] = UINT64_C(0xfff) << 52};
    if (from >= end)
        return;
    row = row_at(row, from * plan->bytes);
    fill_integers(row.values, plan->sums ? 0 : least[plan->core], plan->bytes, end - from);
    if (row.codes)
        fill_integers(row.codes, code_of(plan, plan->pad_code), plan->bytes, end - from);
}

static int slot_of(const forward_state *s, forward_row row)
{
    return (int)((row.values - s->down.values) / (s->plan.pitch * s->plan.bytes));
}

/* Padding on both sides; it stays, as nothing else is written there. */
static void pad_margins(forward_state *s, forward_row row)
{
    int slot = slot_of(s, row);
    if (s->margin_first[slot] == s->first)
        return;
    s->margin_first[slot] = s->first;
    pad_row(&s->plan, row, 0, s->lo * s->plan.channels);
    pad_row(&s->plan, row, s->hi * s->plan.channels, s->columns * s->plan.channels);
}

/* Whether the windows of the row read anything on the axes before the last. */
static bool reads_rows(const forward_state *s)
{
    for (int a = 0; a <= s->plan.row_axis; a++) {
        tarn_span taps = window_taps(&s->plan.p->axis[a], s->o[a]);
        if (taps.lo >= taps.hi)
            return false;
    }
    return true;
}

/* The row for s->o and the tile, with its padding. */
void tarn_forward_down(forward_state *s, forward_row to)
{
    const forward_plan *plan = &s->plan;
    int64_t channels = plan->channels;
    if (s->lo >= s->hi || !reads_rows(s)) {
        s->margin_first[slot_of(s, to)] = INT64_MIN;
        pad_row(plan, to, 0, s->columns * channels);
        return;
    }
    pad_margins(s, to);
    forward_row middle = row_at(to, s->lo * channels * plan->bytes);
    if (plan->row_axis >= 0) {
        fold_axis(s, plan->row_axis, middle);
        return;
    }
    forward_row row = read_row(s, middle);
    if (row.values != middle.values || middle.codes)
        fold_rows(plan, middle, &row, 0, 0, 1, columns_of_x(s));
}

/* ---- Blocks: output rows that are folded at once -------------------------------------------- */

/* Rows [i,i+rows) of x where they lie. False if they are odd; each row is looked at once. */
static bool use_rows(forward_state *s, int64_t i, int64_t rows, forward_row *source, int64_t *pitch)
{
    int axis = s->plan.row_axis;
    *pitch = s->plan.p->stride[s->plan.in][axis];
    s->i[axis] = i;
    *source = (forward_row){(char *)(uintptr_t)row_of_x(s), NULL};
    int64_t known = known_rows(s, i), bytes = *pitch * s->plan.bytes;
    if (known < rows) {
        if (is_odd_run(s, source->values + known * bytes, rows - known, *pitch))
            return false;
        remember_clean(s, i, rows);
    }
    return true;
}

/* Rows [i,i+rows) of x, converted, and folded over the outer axes. False if they are odd, or if
 * sums miss terms there. */
static bool make_source(forward_state *s, int64_t i, int64_t rows, forward_row to)
{
    int axis = s->plan.row_axis;
    for (int a = 0; a < axis; a++) {
        tarn_span taps = window_taps(&s->plan.p->axis[a], s->o[a]);
        if (taps.lo >= taps.hi || (s->plan.sums && !sum_may_be_clipped(&taps)))
            return false;
    }
    s->odd = false;
    s->i[axis] = i;
    s->run_rows = rows;
    if (axis > 0)
        fold_axis(s, axis - 1, to);
    else
        convert_rows(s, rows, to);
    s->run_rows = 1;
    bool odd = s->odd;
    s->odd = false;
    return !odd;
}

/* A block of channels, where they lie: rows [i,i+read) of x are folded pixel by pixel into
 * `rows` rows. */
static bool fold_strided(forward_state *s, const tarn_span *taps, int64_t read, int64_t rows,
                         forward_row to)
{
    const forward_plan *plan = &s->plan;
    const tarn_axis *axis = &plan->p->axis[0];
    int64_t pitch = plan->p->stride[plan->in][0], pixel = plan->p->stride[plan->in][1],
            columns = s->hi - s->lo;
    int64_t step = plan->codes ? code_step(plan->p, 0) : 0, channels = plan->channels,
            bytes = plan->bytes;
    bool (*is_odd_row)(const void *, int64_t) = plan->sums ? NULL : plan->ops->is_odd[plan->key];
    int64_t i = span_at(taps, taps->lo);
    s->i[0] = i;
    forward_row from = {(char *)(uintptr_t)row_of_x(s), NULL};
    for (int64_t r = known_rows(s, i); is_odd_row && r < read; r++)
        for (int64_t c = 0; c < columns; c++)
            if (is_odd_row(from.values + (r * pitch + c * pixel) * bytes, channels))
                return false;
    remember_clean(s, i, read);
    for (int64_t r = 0; r < rows; r++) {
        pad_margins(s, row_at(to, r * plan->pitch * bytes));
        fold_taps(plan, row_at(to, (r * plan->pitch + s->lo * channels) * bytes), channels, from,
                  taps->lo * step, step, taps->hi - taps->lo,
                  step_between(axis->kernel, axis->dilation, pitch), pixel, channels, columns);
        from = row_at(from, step_between(rows, axis->stride, pitch * bytes));
    }
    return true;
}

/* Output rows [row,row+rows) at once, to `to` and the rows behind it. False, with nothing done,
 * if that cannot be. */
bool tarn_forward_down_block(forward_state *s, int64_t row, int64_t rows, forward_row to)
{
    const forward_plan *plan = &s->plan;
    const tarn_axis *axis = &plan->p->axis[plan->row_axis];
    tarn_span taps = window_taps(axis, row); /* of a single row, some may be missing */
    int64_t i = span_at(&taps, taps.lo), k = taps.hi - taps.lo, pitch = columns_of_x(s);
    int64_t step = plan->codes ? code_step(plan->p, plan->row_axis) : 0;
    int64_t read = (rows - 1) * axis->stride + (k - 1) * axis->dilation + 1;
    forward_row source = s->source;
    if (s->lo >= s->hi)
        return false;
    if (plan->strided)
        return fold_strided(s, &taps, read, rows, to);
    bool in_place = plan->direct && plan->row_axis == 0;
    if (!(in_place ? use_rows(s, i, read, &source, &pitch) : make_source(s, i, read, source)))
        return false;
    if (plan->row_axis == 0)
        source.codes = NULL;
    for (int64_t r = 0; r < rows; r++)
        pad_margins(s, row_at(to, r * plan->pitch * plan->bytes));
    fold_taps(plan, row_at(to, s->lo * plan->channels * plan->bytes), plan->pitch, source,
              taps.lo * step, step, k, step_between(k, axis->dilation, pitch),
              step_between(rows, axis->stride, pitch), columns_of_x(s), rows);
    return true;
}

/* ---- Stacks: all output rows of several planes, which follow s->base ------------------------ */

/* Whether the planes hold neither NaN nor -0. */
static bool is_clean_stack(const forward_state *s, const char *from, int64_t planes)
{
    const tarn_problem *p = s->plan.p;
    int64_t rows = p->axis[0].size, pitch = p->stride[s->plan.in][0],
            plane = p->lead_stride[s->plan.in][0];
    if (plane == rows * pitch)
        return !is_odd_run(s, from, planes * rows, pitch);
    for (int64_t k = 0; k < planes; k++)
        if (is_odd_run(s, from + k * plane * s->plan.bytes, rows, pitch))
            return false;
    return true;
}

/* Output rows [row,row+rows) of each plane, whose windows have the taps [lo,hi) in x. */
static void fold_stack(const forward_state *s, int64_t row, int64_t rows, const tarn_span *taps,
                       int64_t planes, forward_row to)
{
    const forward_plan *plan = &s->plan;
    const tarn_problem *p = plan->p;
    const tarn_axis *axis = &p->axis[0];
    int64_t pitch = p->stride[plan->in][0], plane = p->lead_stride[plan->in][0],
            n = columns_of_x(s);
    int64_t step = plan->codes ? code_step(p, 0) : 0, block = axis->out * plan->pitch,
            bytes = plan->bytes;
    forward_row from = {(char *)(uintptr_t)row_of_x(s) + span_at(taps, taps->lo) * pitch * bytes,
                        NULL};
    to = row_at(to, (row * plan->pitch + s->lo * plan->channels) * bytes);
    for (int64_t k = 0; k < (rows > 1 ? planes : 1);
         k++) /* rows of a plane, or a row of each plane */
        fold_taps(plan, row_at(to, k * block * bytes), rows > 1 ? plan->pitch : block,
                  row_at(from, k * plane * bytes), taps->lo * step, step, taps->hi - taps->lo,
                  step_between(taps->n, taps->step, pitch), rows > 1 ? pitch * axis->stride : plane,
                  n, rows > 1 ? rows : planes);
}

/* Planes of one axis are rows. */
static bool copy_lines(forward_state *s, int64_t planes, forward_row to)
{
    const forward_plan *plan = &s->plan;
    int64_t line = plan->p->lead_stride[plan->in][0];
    if (s->lo >= s->hi)
        return false;
    forward_row from = {(char *)(uintptr_t)row_of_x(s), NULL};
    if (is_odd_run(s, from.values, planes, line))
        return false;
    for (int64_t r = 0; r < planes; r++)
        pad_margins(s, row_at(to, r * plan->pitch * plan->bytes));
    fold_taps(plan, row_at(to, s->lo * plan->channels * plan->bytes), plan->pitch, from, 0, 0, 1, 0,
              step_between(planes, line, 1), columns_of_x(s), planes);
    return true;
}

bool tarn_forward_down_stack(forward_state *s, int64_t planes, forward_row to)
{
    const tarn_axis *axis = &s->plan.p->axis[0];
    if (s->plan.row_axis < 0)
        return copy_lines(s, planes, to);
    s->i[0] = 0;
    if (s->lo >= s->hi || !is_clean_stack(s, row_of_x(s), planes))
        return false;
    for (int64_t r = 0; r < planes * axis->out; r++)
        pad_margins(s, row_at(to, r * s->plan.pitch * s->plan.bytes));
    for (int64_t row = 0, rows; row < axis->out; row += rows) {
        tarn_span taps = window_taps(axis, row);
        bool inside = taps.lo == 0 && taps.hi == taps.n && !axis->adaptive && axis->out > 1;
        int64_t last =
            axis->size - 1 - (taps.n - 1) * taps.step; /* where windows inside x begin, at most */
        rows = inside ? min_i64((last - taps.first) / axis->stride + 1, axis->out - row) : 1;
        fold_stack(s, row, rows, &taps, planes, to);
    }
    return true;
}
