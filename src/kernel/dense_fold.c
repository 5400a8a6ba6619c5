/* Source, down, across: see dense.h. */
#include "dense.h"

/* ---- Folds of taps -------------------------------------------------------------------------- */

static dense_rows rows_at(dense_rows rows, int64_t bytes)
{
    rows.values += bytes;
    rows.codes = rows.codes ? rows.codes + bytes : NULL;
    return rows;
}

static int64_t lanes_of(const dense *d)
{
    return d->ops->vector_bytes / d->bytes;
}

/* Of n rows of so many elements, each the fold of k taps. Tap j adds first + j*step to the code. */
static void fold_taps(const dense *d, dense_rows to, int64_t to_step, dense_rows from,
                      int64_t first, int64_t step, int64_t k, int64_t tap_step, int64_t row_step,
                      int64_t elements, int64_t n)
{
    if (to.codes)
        d->ops->first_best_pixels[d->core](to.values, to.codes, to_step, from.values, from.codes,
                                           first, step, k, tap_step, row_step, elements, n);
    else if (d->sums)
        d->ops->sum_pixels[d->core](to.values, to_step, from.values, k, tap_step, row_step,
                                    elements, n);
    else
        d->ops->best_pixels[d->core](to.values, to_step, from.values, k, tap_step, row_step,
                                     elements, n);
}

/* n elements of scratch, in place: the fold of a row and another. Whole vectors, so that none is
 * folded twice. Codes may be new: 0, and `step` for the second. */
static void fold_into(const dense *d, dense_rows to, dense_rows more, bool coded, int64_t step,
                      int64_t n)
{
    const void *values[2] = {to.values, more.values}, *codes[2] = {to.codes, more.codes};
    int64_t lanes = lanes_of(d);
    n = (n + lanes - 1) / lanes * lanes;
    if (to.codes)
        d->ops->first_best[d->core](to.values, to.codes, values, coded ? codes : NULL, 0, step, 2,
                                    n);
    else if (d->sums)
        d->ops->sum[d->core](to.values, values, 2, n);
    else
        d->ops->best[d->core](to.values, values, 2, n);
}

/* Rows of scratch that are shorter than a vector are made as whole vectors, from the first to the
 * last: what is too much is overwritten by the next. */
static int64_t whole(const dense *d, int64_t elements)
{
    return max_i64(elements, lanes_of(d));
}

/* Elements that take no part, of n rows: +0 in sums, the least key in extremes. */
static void pad(const dense *d, char *to, int64_t to_step, int64_t elements, int64_t n)
{
    if (elements > 0 && n > 0)
        d->ops->best_pixels[d->core](to, to_step, d->pad, 1, 0, 0, elements, n);
}

/* ---- Source --------------------------------------------------------------------------------- */

static int64_t row_stride(const dense *d)
{
    return d->row_axis < 0 ? 0 : d->p->stride[d->in][d->row_axis];
}

static const char *row_of_x(const dense *d, int64_t row)
{
    const int64_t *stride = d->p->stride[d->in];
    int64_t offset = (d->first + d->lo) * stride[d->p->spatial - 1] + row * row_stride(d);
    for (int a = 0; a < d->row_axis; a++)
        offset += d->i[a] * stride[a];
    return d->at.base[d->in] + offset * d->p->element_bytes[d->in];
}

/* Notices rows that hold NaN, or -0 where that matters. */
static void look_at(dense *d, const char *from, int64_t pitch, int64_t rows)
{
    bool (*is_odd)(const void *, int64_t) = d->sums    ? NULL
                                            : d->codes ? d->ops->has_nan[d->core]
                                                       : d->ops->is_odd[d->key];
    int64_t n = elements_of_x(d);
    if (!is_odd || rows <= 0)
        return;
    if (pitch == n) {
        n *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows && !d->odd; r++)
        d->odd = is_odd(from + r * pitch * d->bytes, n);
}

/* Keys or terms of n elements. */
static void convert(dense *d, char *to, const char *from, int64_t n)
{
    tarn_dtype dtype = d->p->dtype;
    int64_t bytes = tarn_dtype_size(dtype);
    char narrow[512];
    if (d->sums && d->core == CORE_F32)
        d->ops->terms_f32[dtype]((float *)(void *)to, from, n);
    else if (d->sums)
        d->ops->terms_f64[dtype]((double *)(void *)to, from, n);
    else if (bytes == d->bytes)
        d->odd |= d->ops->key[d->key](to, from, d->flip, n);
    else
        for (int64_t done = 0, some; done < n; done += some) {
            some = min_i64(n - done, (int64_t)sizeof narrow / bytes);
            d->odd |= d->ops->key[d->key](narrow, from + done * bytes, d->flip, some);
            d->ops->widen_key[__builtin_ctz((unsigned)bytes)][core_width(d->core)](
                to + done * d->bytes, narrow, some);
        }
}

/* Pixels that do not follow each other, side by side. */
static const char *gather(const dense *d, const char *from)
{
    int64_t stride = d->p->stride[d->in][d->p->spatial - 1], columns = d->hi - d->lo;
    int64_t bytes = d->p->element_bytes[d->in], pixel = d->channels * bytes;
    if (stride == d->channels || columns == 1)
        return from;
    for (int64_t c = 0; c < columns; c++)
        memcpy(d->gathered + c * pixel, from + c * stride * bytes, (size_t)pixel);
    return d->gathered;
}

/* Rows of x from s->i on, in scratch, one behind the other. */
static void read_rows(dense *d, int64_t row, int64_t rows, char *to)
{
    int64_t n = elements_of_x(d), step = row_stride(d), bytes = d->p->element_bytes[d->in];
    const char *from = row_of_x(d, row);
    if (step == n && d->p->stride[d->in][d->p->spatial - 1] == d->channels) {
        convert(d, to, from, rows * n);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        convert(d, to + r * n * d->bytes, gather(d, from + r * step * bytes), n);
}

static void fold_outer(dense *d, int axis, int64_t row, int64_t rows, char *to, int temp);

/* [S1] The taps [tap,tap+k) of an outer axis, some of which may be missing, but not all. */
static void sum_outer(dense *d, int axis, const tarn_span *taps, int64_t tap, int64_t k,
                      int64_t row, int64_t rows, char *to, int temp)
{
    if (k == 1) {
        d->i[axis] = span_at(taps, tap);
        fold_outer(d, axis - 1, row, rows, to, temp);
        return;
    }
    int64_t half = split_point(k);
    bool left = taps->lo < tap + half && taps->hi > tap,
         right = taps->hi > tap + half && taps->lo < tap + k;
    char *more = d->temp + temp * d->temp_bytes;
    if (left)
        sum_outer(d, axis, taps, tap, half, row, rows, to, temp);
    if (right)
        sum_outer(d, axis, taps, tap + half, k - half, row, rows, left ? more : to, temp + left);
    if (left && right)
        fold_into(d, (dense_rows){.values = to}, (dense_rows){.values = more}, false, 0,
                  rows * elements_of_x(d));
}

/* Rows of x where they lie, folded over the first axis. */
static void fold_first_axis(dense *d, const tarn_span *taps, int64_t row, int64_t rows, char *to)
{
    int64_t n = elements_of_x(d), k = taps->hi - taps->lo, step = row_stride(d);
    for (int64_t tap = taps->lo; tap < taps->hi; tap++) {
        d->i[0] = span_at(taps, tap);
        look_at(d, row_of_x(d, row), step, rows);
    }
    d->i[0] = span_at(taps, taps->lo);
    dense_rows from = {.values = (char *)(uintptr_t)row_of_x(d, row)};
    if (step == n) {
        n *= rows;
        rows = 1;
    }
    fold_taps(d, (dense_rows){.values = to}, n, from, 0, 0, k,
              step_between(k, taps->step, d->p->stride[d->in][0]), step, n, rows);
}

/* Rows [row,row+rows) folded over the axes up to `axis`, the outermost first [S2]. */
static void fold_outer(dense *d, int axis, int64_t row, int64_t rows, char *to, int temp)
{
    if (axis < 0) {
        read_rows(d, row, rows, to);
        return;
    }
    tarn_span taps = window_taps(&d->p->axis[axis], d->at.o[axis]);
    if (axis == 0 && d->outer_in_place) {
        fold_first_axis(d, &taps, row, rows, to);
        return;
    }
    if (d->sums) {
        sum_outer(d, axis, &taps, 0, taps.n, row, rows, to, temp);
        return;
    }
    char *more = d->temp + temp * d->temp_bytes;
    for (int64_t tap = taps.lo; tap < taps.hi; tap++) {
        d->i[axis] = span_at(&taps, tap);
        fold_outer(d, axis - 1, row, rows, tap > taps.lo ? more : to, temp + 1);
        if (tap > taps.lo)
            fold_into(d, (dense_rows){.values = to}, (dense_rows){.values = more}, false, 0,
                      rows * elements_of_x(d));
    }
}

static bool outer_axes_are_read(const dense *d)
{
    for (int a = 0; a < d->row_axis; a++) {
        tarn_span taps = window_taps(&d->p->axis[a], d->at.o[a]);
        if (taps.lo >= taps.hi)
            return false;
    }
    return true;
}

/* One item of the source: as many rows at once as a temporary buffer holds. */
static void make_item(dense *d, int64_t row, int64_t rows, int outer, char *to)
{
    int64_t n = elements_of_x(d),
            most = d->temps > 0 ? max_i64(d->temp_bytes / (n * d->bytes), 1) : rows;
    for (int64_t done = 0; done < rows; done += most) {
        char *part = to + done * n * d->bytes;
        int64_t some = min_i64(most, rows - done);
        if (outer >= 0 && !outer_axes_are_read(d))
            pad(d, part, n, n, some);
        else
            fold_outer(d, outer, row + done, some, part, 0);
    }
}

/* Rows [row,row+rows) of all items, folded over the axes up to `outer`. */
static dense_rows make_source(dense *d, int64_t row, int64_t rows, int outer)
{
    int64_t n = elements_of_x(d);
    dense_rows source = {d->source.values, NULL, n, rows * n};
    dense_place at = d->at;
    if (n == 0)
        return source;
    if (d->in_place) {
        source = (dense_rows){(char *)(uintptr_t)row_of_x(d, row), NULL, row_stride(d),
                              d->items > 1 ? d->p->lead_stride[d->in][0] : 0};
        int64_t known = max_i64(min_i64(d->clean - row, rows), 0);
        if (d->items > 1 && source.plane == rows * source.pitch)
            look_at(d, source.values, source.pitch, rows * d->items);
        else
            for (int64_t k = 0; k < d->items; k++)
                look_at(d, source.values + (k * source.plane + known * source.pitch) * d->bytes,
                        source.pitch, rows - known);
        if (d->row_axis <= 0 && d->items == 1 && !d->odd)
            d->clean = row + rows;
        return source;
    }
    for (int64_t k = 0; k < d->items && !d->odd; k++) {
        make_item(d, row, rows, outer, source.values + k * source.plane * d->bytes);
        tarn_dense_next(d, &d->at);
    }
    d->at = at;
    return source;
}

/* ---- Down ----------------------------------------------------------------------------------- */

/* Windows of rows: tap j of window o is row first + o*stride + j*step, which exists if it is in
 * [0,size). */
typedef struct dense_windows {
    int64_t kernel, first, stride, step, size, count;
} dense_windows;

/* A sum whose first terms are missing: its tree stays. */
static void sum_with_missing(const dense *d, dense_rows from, const tarn_span *taps, char *to,
                             int64_t n)
{
    const void *rows[MOST_FOLDED];
    for (int64_t j = 0; j < taps->n; j++)
        rows[j] = j < taps->lo || j >= taps->hi
                      ? d->pad
                      : from.values + span_at(taps, j) * from.pitch * d->bytes;
    d->ops->sum[d->core](to, rows, taps->n, n);
}

/* `rows` windows with the same taps, of every item: n elements each. */
static void fold_alike(const dense *d, dense_rows from, const tarn_span *taps, int64_t stride,
                       int64_t rows, dense_rows to, int64_t n, int64_t code, int64_t code_step)
{
    int64_t k = taps->hi - taps->lo, tap_step = step_between(k, taps->step, from.pitch);
    from = rows_at(from, span_at(taps, taps->lo) * from.pitch * d->bytes);
    code += taps->lo * code_step;
    if (rows >= d->items)
        for (int64_t item = 0; item < d->items; item++)
            fold_taps(d, rows_at(to, item * to.plane * d->bytes), to.pitch,
                      rows_at(from, item * from.plane * d->bytes), code, code_step, k, tap_step,
                      step_between(rows, stride, from.pitch), n, rows);
    else
        for (int64_t r = 0; r < rows; r++)
            fold_taps(d, rows_at(to, r * to.pitch * d->bytes), to.plane,
                      rows_at(from, r * stride * from.pitch * d->bytes), code, code_step, k,
                      tap_step, from.plane, n, d->items);
}

static void down(const dense *d, dense_rows from, dense_windows w, dense_rows to, int64_t n,
                 int64_t code, int64_t code_step)
{
    for (int64_t o = 0, rows; o < w.count; o += rows) {
        tarn_span taps = span_clipped(w.kernel, w.first + o * w.stride, w.step, w.size);
        bool inside = taps.lo == 0 && taps.hi == taps.n;
        dense_rows part = rows_at(to, o * to.pitch * d->bytes);
        rows = 1;
        if (inside)
            rows = min_i64(w.count - o,
                           (w.size - 1 - (w.kernel - 1) * w.step - taps.first) / w.stride + 1);
        if (taps.lo >= taps.hi)
            pad(d, part.values, to.plane, n, d->items);
        else if (d->sums && taps.lo > 0 && w.kernel > 3)
            for (int64_t item = 0; item < d->items; item++)
                sum_with_missing(d, rows_at(from, item * from.plane * d->bytes), &taps,
                                 part.values + item * to.plane * d->bytes, n);
        else
            fold_alike(d, from, &taps, w.stride, rows, part, n, code, code_step);
    }
}

/* The windows of the block, and the rows [*row,*row+*rows) that they read. */
static dense_windows windows_of_block(const dense *d, int64_t *row, int64_t *rows)
{
    const tarn_axis *axis = &d->rows;
    tarn_span first = window_taps(axis, d->row),
              last = window_taps(axis, d->row + d->block_rows - 1);
    int64_t begin = min_i64(max_i64(first.first, 0), axis->size),
            end = max_i64(min_i64(span_at(&last, last.n - 1) + 1, axis->size), begin);
    *row = begin;
    *rows = end - begin;
    return (dense_windows){axis->kernel,   first.first - begin, axis->stride,
                           axis->dilation, end - begin,         d->block_rows};
}

/* ---- Across --------------------------------------------------------------------------------- */

/* Padding on both sides of the rows, unless it is there. */
static void pad_margins(dense *d, dense_rows rows, int64_t n)
{
    int64_t left = d->lo * d->channels, right = (d->read - d->hi) * d->channels;
    char *end = rows.values + d->hi * d->channels * d->bytes;
    if (d->padded_first == d->first && d->padded_rows >= n)
        return;
    d->padded_first = d->first;
    d->padded_rows = n;
    pad(d, rows.values, rows.pitch, left, 1);
    pad(d, end, rows.pitch, right + left, n - 1); /* up to the next row */
    pad(d, end + (n - 1) * rows.pitch * d->bytes, rows.pitch, right, 1);
}

/* Many taps: folds of 1, 2, 4, ... neighbours at every place, in the rows themselves. */
static void double_taps(const dense *d, dense_rows rows, int64_t taps, int64_t elements)
{
    int64_t shift = taps * d->columns->dilation * d->channels;
    fold_into(d, rows, rows_at(rows, shift * d->bytes), taps > 1, taps, elements - shift);
}

/* Two folds of neighbours that overlap are a window, in extremes. */
static void slide_best(dense *d, dense_rows from, int64_t n, dense_rows to)
{
    int64_t kernel = d->columns->kernel, taps = 1, step = d->columns->dilation * d->channels;
    for (; 2 * taps <= kernel; taps *= 2)
        double_taps(d, from, taps, n * from.pitch);
    fold_taps(d, to, to.pitch, from, 0, kernel - taps, kernel > taps ? 2 : 1,
              (kernel - taps) * step, from.pitch, d->outputs * d->channels, n);
}

/* [S1] A window is its binary digits: those of the greatest value first, so that sums grow from
 * the right. */
static void slide_sum(dense *d, dense_rows from, int64_t n, dense_rows to)
{
    int64_t kernel = d->columns->kernel, step = d->columns->dilation * d->channels;
    int64_t elements = (n - 1) * from.pitch + d->outputs * d->channels;
    char *sum = d->sums_of[0], *other = d->sums_of[1];
    bool started = false;
    for (int64_t taps = 1; taps <= kernel; taps *= 2) {
        if (kernel & taps) {
            const void *rows[2] = {from.values + (kernel & ~(2 * taps - 1)) * step * d->bytes, sum};
            d->ops->sum[d->core](started ? other : sum, rows, started ? 2 : 1, elements);
            if (started) {
                char *last = other;
                other = sum;
                sum = last;
            }
            started = true;
        }
        if (2 * taps <= kernel)
            double_taps(d, from, taps, n * from.pitch);
    }
    fold_taps(d, to, to.pitch, (dense_rows){.values = sum}, 0, 0, 1, 0, from.pitch,
              d->outputs * d->channels, n);
}

/* Windows along n rows, which have their padding. */
static void across(dense *d, dense_rows from, int64_t n, dense_rows to)
{
    const tarn_axis *axis = d->columns;
    int64_t outputs = d->outputs * d->channels;
    if (axis->stride == 2) {
        row_stride2 f = {to.values,    to.codes,       from.values, to.pitch, from.pitch,
                         axis->kernel, axis->dilation, d->outputs,  n};
        (to.codes  ? d->ops->first_best_rows_stride2
         : d->sums ? d->ops->sum_rows_stride2
                   : d->ops->best_rows_stride2)[d->core](&f);
    } else if (!slides(d)) {
        from.codes = NULL;
        fold_taps(d, to, to.pitch, from, 0, 1, axis->kernel,
                  step_between(axis->kernel, axis->dilation, d->channels), from.pitch,
                  d->to_y || from.values != d->padded.values ? outputs : whole(d, outputs), n);
    } else {
        (d->sums ? slide_sum : slide_best)(d, from, n, to);
        d->padded_rows = 0; /* folds of neighbours lie in the padding */
    }
}

/* ---- Rows for down -------------------------------------------------------------------------- */

/* Rows with their padding, for across. */
static dense_rows padded_source(dense *d, dense_rows source, int64_t rows)
{
    dense_rows to = d->padded;
    const tarn_axis *axis = d->columns;
    bool exact = axis->stride == 1 ? !slides(d) : axis->kernel > 1 && d->outputs >= lanes_of(d);
    if (exact && d->lo == 0 && d->hi == d->read)
        return source;
    to.pitch = d->read * d->channels;
    to.plane = rows * to.pitch;
    pad_margins(d, to, d->items * rows);
    dense_rows middle = rows_at(to, d->lo * d->channels * d->bytes);
    for (int64_t item = 0; item < d->items && d->lo < d->hi; item++)
        d->ops->best_pixels[d->core](middle.values + item * to.plane * d->bytes, to.pitch,
                                     source.values + item * source.plane * d->bytes, 1, 0,
                                     source.pitch, elements_of_x(d), rows);
    return to;
}

/* Rows that were folded across for the block before. */
static int64_t keep_rows(dense *d, int64_t row, int64_t rows)
{
    int64_t kept = row >= d->held ? max_i64(min_i64(d->held_end - row, rows), 0) : 0;
    int64_t bytes = d->outputs * d->channels * d->bytes, from = (row - d->held) * bytes;
    if (d->items > 1 || d->row_axis > 0)
        return 0;
    if (kept > 0 && from > 0) {
        memmove(d->folded.values, d->folded.values + from, (size_t)(kept * bytes));
        memmove(d->folded.codes, d->folded.codes + from, (size_t)(kept * bytes));
    }
    d->held = row;
    d->held_end = row + rows;
    return kept;
}

/* Rows [row,row+rows) of the plane at d->i, folded across. */
static dense_rows across_rows(dense *d, int64_t row, int64_t rows)
{
    int64_t n = d->outputs * d->channels, some;
    dense_rows folded = {d->folded.values, d->folded.codes, n, rows * n};
    for (int64_t done = keep_rows(d, row, rows); done < rows && !d->odd; done += some) {
        some = d->items > 1 ? rows : min_i64(d->chunk_rows, rows - done);
        dense_rows source = make_source(d, row + done, some, -1);
        if (d->odd)
            break;
        dense_rows part = rows_at(folded, done * n * d->bytes),
                   from = padded_source(d, source, some);
        if (from.plane == some * from.pitch || d->items == 1)
            across(d, from, d->items * some, part);
        else
            for (int64_t item = 0; item < d->items; item++)
                across(d, rows_at(from, item * from.plane * d->bytes), some,
                       rows_at(part, item * folded.plane * d->bytes));
    }
    return folded;
}

/* What down reads: the source, or rows folded across. */
static dense_rows rows_for_down(dense *d, int64_t row, int64_t rows)
{
    if (rows <= 0)
        return (dense_rows){0};
    return d->codes ? across_rows(d, row, rows) : make_source(d, row, rows, d->row_axis - 1);
}

/* ---- Tall windows --------------------------------------------------------------------------- */

/* `count` windows of `kernel` rows, `stride` apart, the first of which begins at row `first` of
 * the axis. */
static void down_some(dense *d, int64_t kernel, int64_t first, int64_t stride, int64_t count,
                      dense_rows to, int64_t n)
{
    int64_t step = d->rows.dilation, end = first + (count - 1) * stride + (kernel - 1) * step + 1;
    int64_t begin = min_i64(max_i64(first, 0), d->rows.size);
    end = max_i64(min_i64(end, d->rows.size), begin);
    dense_rows from = rows_for_down(d, begin, end - begin);
    if (!d->odd)
        down(d, from, (dense_windows){kernel, first - begin, stride, step, end - begin, count}, to,
             n, 0, d->columns->kernel);
}

/* Folds of level_taps rows, at every place that the windows of the block need. Those that the
 * block before needed, too, are there. */
static void make_level(dense *d, int64_t first, int64_t count, int64_t n)
{
    int64_t kept = 0, some;
    dense_rows level = {d->level.values, d->level.codes, n, count * n};
    if (d->items == 1 && d->row_axis <= 0 && first >= d->level_first && first < d->level_end)
        kept = d->level_end - first;
    if (kept > 0) {
        int64_t from = (first - d->level_first) * n * d->bytes;
        memmove(level.values, level.values + from, (size_t)(kept * n * d->bytes));
        if (level.codes)
            memmove(level.codes, level.codes + from, (size_t)(kept * n * d->bytes));
    }
    for (int64_t done = kept; done < count && !d->odd; done += some) {
        some = d->items > 1 ? count : min_i64(d->level_chunk, count - done);
        down_some(d, d->level_taps, first + done, 1, some, rows_at(level, done * n * d->bytes), n);
    }
    d->level_first = first;
    d->level_end = first + count;
}

/* [S1] Sums of 8 rows each, and behind them that of the rest. */
static void sum_level(dense *d, int64_t first, dense_rows to, int64_t n)
{
    int64_t eights = d->level_windows, left = d->rows.kernel % d->level_taps, some;
    int64_t step = d->level_step * n, count = d->level_end - d->level_first;
    dense_rows tail = {d->tail.values, NULL, n, d->block_rows * n};
    for (int64_t done = 0; done < d->block_rows && left > 0; done += some) {
        some = d->items > 1
                   ? d->block_rows
                   : min_i64(max_i64(d->level_chunk / d->rows.stride, 1), d->block_rows - done);
        down_some(d, left, first + eights * d->level_step + done * d->rows.stride, d->rows.stride,
                  some, rows_at(tail, done * n * d->bytes), n);
    }
    for (int64_t item = 0; item < d->items; item++)
        for (int64_t r = 0; r < d->block_rows; r++) {
            const void *rows[MOST_FOLDED];
            for (int64_t j = 0; j < eights; j++)
                rows[j] = d->level.values +
                          (item * count * n + r * d->rows.stride * n + j * step) * d->bytes;
            rows[eights] = tail.values + (item * tail.plane + r * n) * d->bytes;
            d->ops->sum[d->core](to.values + (item * to.plane + r * to.pitch) * d->bytes, rows,
                                 eights + (left > 0), n);
        }
}

/* The windows of the block, of rows of n elements. */
static void fold_down(dense *d, dense_rows to, int64_t n, int64_t code)
{
    int64_t row, rows, step = d->level_step, stride = d->rows.stride;
    if (!d->level_taps) {
        dense_windows w = windows_of_block(d, &row, &rows);
        dense_rows from = rows_for_down(d, row, rows);
        if (!d->odd)
            down(d, from, w, to, n, code, d->columns->kernel);
        return;
    }
    int64_t first = window_taps(&d->rows, d->row).first;
    int64_t count = (d->block_rows - 1) * stride + (d->level_windows - 1) * step + 1;
    make_level(d, first, count, n);
    if (d->odd)
        return;
    dense_rows level = {d->level.values, d->level.codes, n, count * n};
    dense_windows w = {d->level_windows, 0, stride, step, count, d->block_rows};
    if (d->sums)
        sum_level(d, first, to, n);
    else
        down(d, level, w, to, n, code, step / d->rows.dilation * d->columns->kernel);
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* Values: to y itself, or to the results. */
static void across_to_results(dense *d, dense_rows from)
{
    int64_t rows = d->block_rows, n = d->outputs * d->channels;
    dense_place at = d->at;
    if (!d->to_y) {
        across(d, from, d->items * rows, (dense_rows){d->result.values, NULL, n, rows * n});
        return;
    }
    int64_t pitch = d->row_axis < 0 ? n : d->p->stride[d->written[WRITE_Y]][d->row_axis], some;
    for (int64_t item = 0; item < d->items; item += some) {
        char *to = tarn_dense_output(d, &at, WRITE_Y, d->row), *next = to;
        for (some = 0; item + some < d->items && next == to + some * rows * pitch * d->bytes;
             some++) {
            tarn_dense_next(d, &at);
            next = tarn_dense_output(d, &at, WRITE_Y, d->row);
        }
        across(d, rows_at(from, item * from.plane * d->bytes), some * rows,
               (dense_rows){to, NULL, pitch, 0});
    }
}

bool tarn_dense_values(dense *d)
{
    dense_rows to = d->padded;
    d->odd = false;
    to.pitch = d->read * d->channels;
    to.plane = d->block_rows * to.pitch;
    pad_margins(d, to, d->items * d->block_rows);
    if (d->lo < d->hi)
        fold_down(d, rows_at(to, d->lo * d->channels * d->bytes), elements_of_x(d), 0);
    if (!d->odd)
        across_to_results(d, to);
    return !d->odd;
}

/* Tap by tap on the outer axes, in the order of the window. */
static bool winners_of_axis(dense *d, int axis, int64_t code, bool *found)
{
    int64_t n = d->outputs * d->channels;
    d->result.values =
        winners_go_to_y(d) ? tarn_dense_output(d, &d->at, WRITE_Y, d->row) : d->result_values;
    dense_rows to = d->result;
    to.pitch = d->more.pitch = n;
    to.plane = d->more.plane = d->block_rows * n;
    if (axis >= d->row_axis) {
        fold_down(d, *found ? d->more : to, n, code);
        if (d->odd)
            return false;
        if (*found)
            fold_into(d, to, d->more, true, 0, d->items * to.plane);
        *found = true;
        return true;
    }
    tarn_span taps = window_taps(&d->p->axis[axis], d->at.o[axis]);
    int64_t step = 1;
    for (int a = axis + 1; a < d->p->spatial; a++)
        step *= d->p->axis[a].kernel;
    for (int64_t tap = taps.lo; tap < taps.hi; tap++) {
        d->i[axis] = span_at(&taps, tap);
        if (!winners_of_axis(d, axis + 1, code + tap * step, found))
            return false;
    }
    return true;
}

bool tarn_dense_winners(dense *d)
{
    bool found = false;
    d->odd = false;
    return winners_of_axis(d, 0, 0, &found);
}
