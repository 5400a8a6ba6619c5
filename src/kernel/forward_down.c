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

/* The first column that exists, of X or DX. */
static const char *row_of(const forward_state *s, int operand)
{
    const tarn_problem *p = s->plan.p;
    const int64_t *stride = p->stride[operand];
    int64_t offset = (s->first + s->lo) * stride[p->spatial - 1];
    for (int a = 0; a <= s->plan.row_axis; a++)
        offset += s->i[a] * stride[a];
    return s->base[operand] + offset * p->element_bytes[operand];
}

static const char *row_of_x(const forward_state *s)
{
    return row_of(s, s->plan.in);
}

/* Rows are read from so many planes behind, then. */
static void move_planes(forward_state *s, int64_t planes)
{
    for (int k = 0; k < OPERANDS; k++)
        if (s->base[k] && (k == TARN_X || k == TARN_DX))
            s->base[k] += planes * plane_step(&s->plan, k) * s->plan.p->element_bytes[k];
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

/* Terms or keys of n elements, or ones for those that count: cells of x tell which. */
static void convert_row(forward_state *s, char *to, const char *from, const char *x, int64_t n)
{
    enum { SOME = 128 };
    const forward_plan *plan = &s->plan;
    _Alignas(32) char some[SOME * sizeof(double)];
    if (!plan->p->skips) {
        convert_elements(s, to, from, n);
        return;
    }
    for (int64_t at = 0, m; at < n; at += m, to += m * plan->bytes) {
        m = min_i64(n - at, SOME);
        if (plan->p->part == COUNT_PART) {
            tarn_count_others((uint8_t *)some, x, &plan->skip, m);
            make_terms(plan->ops, plan->core == CORE_F64, TARN_U8, to, some, m);
        } else {
            tarn_replace_skipped(some, from, x, &plan->skip, m);
            convert_elements(s, to, some, m);
        }
        from += m * plan->skip.bytes;
        x += m * plan->skip.bytes;
    }
}

/* A row of tangents, side by side, of cells that count. */
static const char *gather_tangents(forward_state *s, const char *from, const char *x)
{
    const tarn_problem *p = s->plan.p;
    const int last = p->spatial - 1;
    const int64_t bytes = p->element_bytes[TARN_X], n = s->plan.channels;
    for (int64_t c = 0; c < s->hi - s->lo; c++)
        tarn_replace_skipped(s->gathered[0] + c * n * bytes,
                             from + c * p->stride[TARN_DX][last] * bytes,
                             x + c * p->stride[TARN_X][last] * bytes, &s->plan.skip, n);
    return s->gathered[0];
}

/* `rows` rows of x from s->i on; such as follow each other are converted in one go. */
static void convert_rows(forward_state *s, int64_t rows, forward_row to)
{
    const tarn_problem *p = s->plan.p;
    const bool masked = p->skips && s->plan.in == TARN_DX; /* by cells of x */
    const int axis = s->plan.row_axis, last = p->spatial - 1, other = masked ? TARN_X : s->plan.in;
    const int64_t *stride = p->stride[s->plan.in], *step = p->stride[other];
    int64_t n = columns_of_x(s), bytes = p->element_bytes[s->plan.in];
    const char *from = row_of_x(s), *x = row_of(s, other);
    bool follow = rows == 1 || (stride[axis] == n && step[axis] == n);
    bool apart = stride[last] != s->plan.channels || step[last] != s->plan.channels;
    if (follow && !apart && !s->plan.look_up) { /* not by way of a single scratch row */
        convert_row(s, to.values, from, x, rows * n);
        return;
    }
    for (int64_t r = 0; r < rows; r++, to.values += n * s->plan.bytes) {
        const char *row = masked ? from : gather_row(s, from);
        if (masked && apart)
            convert_elements(s, to.values, gather_tangents(s, from, x), n);
        else
            convert_row(s, to.values, row, masked ? x : row, n);
        from += rows > 1 ? stride[axis] * bytes : 0;
        x += rows > 1 ? step[axis] * bytes : 0;
    }
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

/* Rows of x to an entry of axis 0. */
static int64_t rows_of_entry(const forward_plan *plan)
{
    int64_t rows = 1;
    for (int a = 1; a <= plan->row_axis; a++)
        rows *= plan->p->axis[a].size;
    return rows;
}

/* Where the rows of x for the taps of axis 0 begin. False if one is odd; rows between them may
 * count, too. */
static bool set_direct(forward_state *s, const tarn_span *taps)
{
    int64_t pitch = s->plan.p->stride[s->plan.in][0], first = span_at(taps, taps->lo);
    int64_t rows = (taps->hi - 1 - taps->lo) * taps->step + 1;
    bool whole = s->run_rows == rows_of_entry(&s->plan);
    s->i[0] = first;
    s->direct = (char *)(uintptr_t)row_of_x(s);
    s->direct_step = pitch * s->plan.bytes;
    if (s->plan.row_axis == 0) {
        int64_t known = known_rows(s, first);
        if (known < rows &&
            is_odd_run(s, s->direct + known * s->direct_step, rows - known, pitch))
            return false;
    } else /* a run for each tap */
        for (int64_t j = whole ? known_rows(s, first) : 0; j < rows; j += whole ? 1 : taps->step)
            if (is_odd_run(s, s->direct + j * s->direct_step, s->run_rows, columns_of_x(s)))
                return false;
    if (whole)
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
    bool complete = tap >= taps->lo && tap + k <= taps->hi;
    rows[0] = to;
    if (is_direct(s, axis) && k <= MOST_SUMMED && complete) {
        int64_t step = direct_step(s, taps), bytes = (tap - taps->lo) * step * s->plan.bytes;
        fold_taps(&s->plan, to, n, (forward_row){s->direct + bytes, NULL}, 0, 0, k, step, n, n, 1);
        return;
    }
    if (k == 1 || (k <= s->plan.listed && is_listed(s, axis) && (complete || s->run_rows == 1))) {
        for (int j = 0; j < k; j++) {
            bool exists = tap + j >= taps->lo && tap + j < taps->hi;
            rows[j] = exists ? entry(s, axis, taps, tap + j, j, to) : (forward_row){s->zeros, NULL};
        }
        if (k > 1 || rows[0].values != to.values)
            fold_rows(&s->plan, to, rows, 0, 0, k, n);
        return;
    }
    int64_t half = split_point(k);
    bool left = taps->lo < tap + half, right = taps->hi > tap + half;
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

/* Sums over the first axis of what lies in x, in any dtype. */
static void sum_in_x(forward_state *s, const tarn_span *taps, forward_row to)
{
    const forward_plan *plan = &s->plan;
    const tarn_problem *p = plan->p;
    const int64_t n = run_of_x(s), apart = taps->step * p->stride[plan->in][0];
    tarn_lane_step steps[MOST_SUMMED];
    s->i[0] = span_at(taps, taps->lo);
    ops_for(plan->ops, n * plan->bytes)
        ->sum_lanes[p->dtype](&(tarn_lane_row){
            .from = row_of_x(s),
            .lanes = n,
            .outputs = 1,
            .step_count =
                list_steps(steps, taps->lo, taps->hi, apart * p->element_bytes[plan->in]),
            .first_step = apart * p->element_bytes[plan->in],
            .steps = steps,
            .to = to.values});
}

static bool can_sum_in_x(const forward_state *s)
{
    return s->plan.sums_in_x && rows_follow(s) &&
           run_of_x(s) * s->plan.bytes >= narrowest(s->plan.ops)->vector_bytes;
}

static forward_row fold_axis(forward_state *s, int axis, forward_row to)
{
    tarn_span taps = window_taps(&s->plan.p->axis[axis], s->o[axis]);
    if (axis == 0 && can_sum_in_x(s)) {
        sum_in_x(s, &taps, to);
        return to;
    }
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

/* Padding on both sides of `rows` rows; it stays, as nothing else is written there. */
static void pad_margins(forward_state *s, forward_row to, int64_t rows)
{
    const forward_plan *plan = &s->plan;
    const int64_t pitch = plan->pitch * plan->bytes;
    const int64_t slot = (to.values - s->down.values) / pitch;
    if (s->margin_first != s->first)
        s->margin_rows = 0;
    s->margin_first = s->first;
    for (int64_t r = max_i64(s->margin_rows - slot, 0); r < rows; r++) {
        pad_row(plan, row_at(to, r * pitch), 0, s->lo * plan->channels);
        pad_row(plan, row_at(to, r * pitch), s->hi * plan->channels, s->columns * plan->channels);
    }
    if (slot <= s->margin_rows)
        s->margin_rows = max_i64(s->margin_rows, slot + rows);
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
        forward_forget_margins(s);
        pad_row(plan, to, 0, s->columns * channels);
        return;
    }
    pad_margins(s, to, 1);
    forward_row middle = row_at(to, s->lo * channels * plan->bytes);
    if (plan->row_axis >= 0) {
        fold_axis(s, plan->row_axis, middle);
        return;
    }
    forward_row row = read_row(s, middle);
    if (row.values != middle.values || middle.codes)
        fold_rows(plan, middle, &row, 0, 0, 1, columns_of_x(s));
}

/* ---- Boxes: output rows that are folded at once --------------------------------------------- */

/* Rows of x from s->i on, where they lie. */
static bool rows_are_odd(const forward_state *s, const char *from, int64_t rows, int64_t pitch)
{
    const forward_plan *plan = &s->plan;
    if (!plan->strided)
        return is_odd_run(s, from, rows, pitch);
    bool (*is_odd_row)(const void *, int64_t) = plan->sums ? NULL : plan->ops->is_odd[plan->key];
    const int64_t pixel = plan->p->stride[plan->in][1] * plan->bytes;
    for (int64_t r = 0; is_odd_row && r < rows; r++)
        for (int64_t c = 0; c < s->hi - s->lo; c++)
            if (is_odd_row(from + r * pitch * plan->bytes + c * pixel, plan->channels))
                return true;
    return false;
}

/* Entries [i,i+count) of axis 0, each of `rows` rows, of so many planes. Each entry of one plane
 * is looked at once. */
static bool planes_are_odd(forward_state *s, int64_t i, int64_t count, int64_t rows, int64_t planes)
{
    const forward_plan *plan = &s->plan;
    const int64_t pitch = plan->p->stride[plan->in][plan->row_axis], bytes = pitch * plan->bytes;
    const int64_t plane = plane_step(plan, plan->in) * plan->bytes;
    const char *from = row_of_x(s);
    int64_t known = planes == 1 ? known_rows(s, i) : 0;
    if (plane == count * rows * bytes) {
        count *= planes;
        planes = 1;
    }
    for (int64_t k = 0; k < planes && known < count; k++)
        if (rows_are_odd(s, from + k * plane + known * rows * bytes, (count - known) * rows, pitch))
            return true;
    if (planes == 1)
        remember_clean(s, i, count);
    return false;
}

/* Entries [i,i+count) of the box's first axis, converted, and folded over the axes before it. False
 * if they are odd. */
static bool make_source(forward_state *s, const forward_box *box, int64_t count)
{
    const forward_plan *plan = &s->plan;
    s->run_rows = count * box->entry_rows;
    const int64_t plane = s->run_rows * columns_of_x(s) * plan->bytes;
    s->odd = plan->sums_in_x && !can_sum_in_x(s);
    if (plan->box_axis > 0 && !s->odd)
        fold_axis(s, plan->box_axis - 1, s->source);
    for (int64_t k = 0; k < box->planes && plan->box_axis == 0; k++) {
        convert_rows(s, s->run_rows, row_at(s->source, k * plane));
        move_planes(s, 1);
    }
    move_planes(s, plan->box_axis == 0 ? -box->planes : 0);
    s->run_rows = 1;
    return !s->odd;
}

/* A window whose terms are missing so that they count: zeros stand for them. */
static void sum_with_zeros(const forward_state *s, const tarn_span *taps, forward_row to,
                           forward_row from, int64_t tap_step, int64_t n)
{
    const int64_t bytes = s->plan.bytes, most = s->plan.row_bytes / bytes;
    forward_row rows[MOST_SUMMED];
    for (int64_t at = 0; at < n; at += most) {
        for (int64_t j = 0; j < taps->n; j++)
            rows[j] = j < taps->lo || j >= taps->hi
                          ? (forward_row){s->zeros, NULL}
                          : row_at(from, ((j - taps->lo) * tap_step + at) * bytes);
        fold_rows(&s->plan, row_at(to, at * bytes), rows, 0, 0, taps->n, min_i64(most, n - at));
    }
}

/* How many windows from o on have all their taps, one stride behind the other; 1 if that one has
 * not. */
static int64_t windows_inside(const tarn_axis *axis, const tarn_span *taps, int64_t o, int64_t end)
{
    if (axis->adaptive || taps->lo > 0 || taps->hi < taps->n)
        return 1;
    const int64_t last = axis->size - 1 - (axis->kernel - 1) * axis->dilation;
    return min_i64((last - taps->first) / axis->stride + 1, end - o);
}

/* A window of each group, or `rows` of them, one stride behind the other. */
static void fold_windows(const forward_state *s, const forward_stage *g, const tarn_span *taps,
                         int64_t step, forward_row to, forward_row from, int64_t rows)
{
    const forward_plan *plan = &s->plan;
    const int64_t k = taps->hi - taps->lo, first = taps->lo * step, bytes = plan->bytes;
    const int64_t tap_step = step_between(k, taps->step, g->row_pitch);
    const int64_t down = step_between(rows, plan->p->axis[g->axis].stride, g->row_pitch);
    const bool follow = rows == 1 || (down == g->n && g->to_row == g->n);
    if (plan->sums && k < taps->n && !sum_may_be_clipped(taps))
        for (int64_t n = 0; n < g->groups; n++)
            sum_with_zeros(s, taps, row_at(to, n * g->to_group * bytes),
                           row_at(from, n * g->group_pitch * bytes), tap_step, g->n);
    else if (follow || plan->strided)
        for (int64_t r = 0; r < (follow ? 1 : rows); r++)
            fold_taps(plan, row_at(to, r * g->to_row * bytes), g->to_group,
                      row_at(from, r * down * bytes), first, step, k, tap_step,
                      step_between(g->groups, g->group_pitch, 1), (follow ? rows : 1) * g->n,
                      g->groups);
    else
        for (int64_t n = 0; n < g->groups; n++)
            fold_taps(plan, row_at(to, n * g->to_group * bytes), g->to_row,
                      row_at(from, n * g->group_pitch * bytes), first, step, k, tap_step, down,
                      g->n, rows);
}

/* Windows [lo,hi) of an axis, in every group. */
static void fold_stage(const forward_state *s, const forward_stage *g, int64_t lo, int64_t hi,
                       forward_row to)
{
    const forward_plan *plan = &s->plan;
    const tarn_axis *axis = &plan->p->axis[g->axis];
    const int64_t step = plan->codes ? code_step(plan->p, g->axis) : 0;
    for (int64_t o = lo, rows; o < hi; o += rows) {
        const tarn_span taps = window_taps(axis, o);
        const int64_t at = (span_at(&taps, taps.lo) - g->first) * g->row_pitch;
        rows = windows_inside(axis, &taps, o, hi);
        fold_windows(s, g, &taps, step, row_at(to, (o - lo) * g->to_row * plan->bytes),
                     row_at(g->from, at * plan->bytes), rows);
    }
}

/* Makes what the row axis is folded from: s->stage. False, with nothing done, if that cannot be. */
bool tarn_forward_begin_box(forward_state *s, forward_box *box)
{
    const forward_plan *plan = &s->plan;
    const tarn_problem *p = plan->p;
    const int first_axis = plan->box_axis, row_axis = plan->row_axis;
    const tarn_span first = window_taps(&p->axis[first_axis], box->lo),
                    last = window_taps(&p->axis[first_axis], box->hi - 1);
    const int64_t i = max_i64(first.first, 0);
    const int64_t count = min_i64(span_at(&last, last.n - 1) + 1, p->axis[first_axis].size) - i;
    forward_stage *g = &s->stage;
    box->entry_rows = 1;
    for (int a = first_axis; a <= row_axis; a++) {
        s->i[a] = a == first_axis ? i : 0;
        box->entry_rows *= a > first_axis ? p->axis[a].size : 1;
    }
    for (int a = 0; a < first_axis; a++) {
        const tarn_span taps = window_taps(&p->axis[a], s->o[a]);
        if (taps.lo >= taps.hi)
            return false;
    }
    if (s->lo >= s->hi)
        return false;
    *g = (forward_stage){.axis = first_axis, .groups = box->planes, .first = i};
    g->n = box->entry_rows * columns_of_x(s);
    if (plan->in_place) {
        if (planes_are_odd(s, i, count, box->entry_rows, box->planes))
            return false;
        g->from = (forward_row){(char *)(uintptr_t)row_of_x(s), NULL};
        g->row_pitch = p->stride[plan->in][first_axis];
        g->group_pitch = plane_step(plan, plan->in);
    } else {
        if (!make_source(s, box, count))
            return false;
        g->from = s->source;
        g->row_pitch = g->n;
        g->group_pitch = count * g->n;
    }
    if (first_axis == 0)
        g->from.codes = NULL;
    if (plan->strided) { /* groups are pixels */
        g->groups = s->hi - s->lo;
        g->n = g->to_group = plan->channels;
        g->group_pitch = p->stride[plan->in][1];
    }
    for (forward_row to = s->part; g->axis < row_axis;
         to = to.values == s->part.values ? s->source : s->part) {
        const bool is_first = g->axis == first_axis;
        const int64_t lo = is_first ? box->lo : 0, hi = is_first ? box->hi : p->axis[g->axis].out;
        g->to_row = g->n;
        g->to_group = (hi - lo) * g->n;
        fold_stage(s, g, lo, hi, to);
        g->axis++;
        g->groups *= hi - lo;
        g->first = 0;
        g->group_pitch = g->n;
        g->row_pitch = g->n /= p->axis[g->axis].size;
        g->from = to;
    }
    return true;
}

/* Output rows [row,row+rows) of `groups` groups from number `group` on, to `to` and the rows behind
 * it. */
void tarn_forward_down_box(forward_state *s, int64_t group, int64_t groups, int64_t row,
                           int64_t rows, forward_row to)
{
    const forward_plan *plan = &s->plan;
    forward_stage g = s->stage;
    pad_margins(s, to, groups * rows);
    g.to_row = plan->pitch;
    if (!plan->strided) {
        g.from = row_at(g.from, group * g.group_pitch * plan->bytes);
        g.groups = groups;
        g.to_group = rows * plan->pitch;
    }
    fold_stage(s, &g, row, row + rows, row_at(to, s->lo * plan->channels * plan->bytes));
}

/* Planes of one axis: rows of the tile. False if one is odd. */
bool tarn_forward_down_lines(forward_state *s, int64_t planes, forward_row to)
{
    const forward_plan *plan = &s->plan;
    const int64_t line = plane_step(plan, plan->in), n = columns_of_x(s), bytes = plan->bytes;
    if (s->lo >= s->hi || (plan->direct && is_odd_run(s, row_of_x(s), planes, line)))
        return false;
    pad_margins(s, to, planes);
    to = row_at(to, s->lo * plan->channels * bytes);
    if (plan->direct) {
        const forward_row from = {(char *)(uintptr_t)row_of_x(s), NULL};
        fold_taps(plan, to, plan->pitch, from, 0, 0, 1, 0, step_between(planes, line, 1), n,
                  planes);
        return true;
    }
    s->odd = false;
    for (int64_t r = 0; r < planes; r++) {
        forward_row row = row_at(to, r * plan->pitch * bytes);
        convert_rows(s, 1, row);
        if (row.codes)
            fold_rows(plan, row, &(forward_row){row.values, NULL}, 0, 0, 1, n);
        move_planes(s, 1);
    }
    move_planes(s, -planes);
    return !s->odd;
}
