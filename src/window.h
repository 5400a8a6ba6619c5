/* Which cells a window reads, and which windows read a cell: docs/spec.md, clauses W1-W5.
 *
 * Both answers are a list of coordinates in arithmetic progression, some of which fall outside the
 * tensor: padding taps on the one hand, outputs that do not exist on the other. The order of
 * summation (clauses S1-S5) is defined on the whole list, so that it does not change at a border;
 * the missing entries count as zero.
 */
#ifndef TARN_WINDOW_H
#define TARN_WINDOW_H

#include "checked.h"

/* One spatial axis of a checked problem. A global window is a sliding one with kernel == size. */
typedef struct tarn_axis {
    int64_t size;   /* input cells */
    int64_t out;    /* windows */
    int64_t kernel; /* taps of a window; adaptive: of the longest one */
    int64_t stride, dilation, lo, hi;
    bool adaptive;
    /* [P1] The axis is cells [origin,origin+size) and windows [first,first+out) of one of `whole`
     * cells and `windows` windows, which only adaptive windows and indices must know: paddings are
     * counted from this part. */
    int64_t whole, windows, origin, first;
    /* Window o reads cell i by tap j when stride*o + dilation*j == i + lo. With g the greatest
     * common divisor of stride and dilation, such j are tap_step = stride/g apart and such o
     * window_step = dilation/g; `inverse` is that of window_step modulo tap_step. */
    int64_t gcd, tap_step, window_step, inverse;
} tarn_axis;

/* Coordinates first, first+step, ...: n of them, of which entries [lo,hi) exist. */
typedef struct tarn_span {
    int64_t n, lo, hi, first, step;
} tarn_span;

static inline int64_t span_at(const tarn_span *span, int64_t entry)
{
    return span->first + span->step * entry;
}

/* Entries whose coordinate lies in [0,limit). */
static inline tarn_span span_clipped(int64_t n, int64_t first, int64_t step, int64_t limit)
{
    int64_t lo = max_i64(-first, 0), hi = max_i64(limit - first, 0);
    if (step > 1) { /* the usual step needs no division */
        lo = ceil_div(lo, step);
        hi = ceil_div(hi, step);
    }
    hi = min_i64(hi, n);
    return (tarn_span){.n = n, .lo = min_i64(lo, hi), .hi = hi, .first = first, .step = step};
}

/* [W4, P1] Where adaptive window o starts, and ends. */
static inline int64_t adaptive_start(const tarn_axis *axis, int64_t o)
{
    return muldiv_floor(o + axis->first, axis->whole, axis->windows) - axis->origin;
}

static inline int64_t adaptive_end(const tarn_axis *axis, int64_t o)
{
    return muldiv_ceil(o + axis->first + 1, axis->whole, axis->windows) - axis->origin;
}

/* The adaptive windows that read cells of [lo,hi): start(o) < hi and lo < end(o), solved for o. It
 * is the same rule with sizes swapped; of a part, those that it has. */
static inline int64_t first_adaptive(const tarn_axis *axis, int64_t lo)
{
    return max_i64(muldiv_floor(lo + axis->origin, axis->windows, axis->whole) - axis->first, 0);
}

static inline int64_t end_adaptive(const tarn_axis *axis, int64_t hi)
{
    return min_i64(muldiv_ceil(hi + axis->origin, axis->windows, axis->whole) - axis->first,
                   axis->out);
}

/* The taps of window o. */
static inline tarn_span window_taps(const tarn_axis *axis, int64_t o)
{
    if (axis->adaptive) {
        int64_t start = adaptive_start(axis, o), end = adaptive_end(axis, o);
        return (tarn_span){.n = end - start, .hi = end - start, .first = start, .step = 1};
    }
    return span_clipped(axis->kernel, o * axis->stride - axis->lo, axis->dilation, axis->size);
}

/* The least j >= 0 for which stride*o + dilation*j == position has a solution o; -1 if none has. */
static inline int64_t least_reading_tap(const tarn_axis *axis, int64_t position)
{
    if (axis->dilation == 1)
        return position % axis->stride;
    if (position % axis->gcd != 0)
        return -1;
    return mulmod(position / axis->gcd % axis->tap_step, axis->inverse, axis->tap_step);
}

/* The windows that read cell i, in increasing order. */
static inline tarn_span cell_windows(const tarn_axis *axis, int64_t i)
{
    if (axis->adaptive) {
        int64_t start = muldiv_floor(i + axis->origin, axis->windows, axis->whole);
        int64_t end = muldiv_ceil(i + axis->origin + 1, axis->windows, axis->whole);
        return span_clipped(end - start, start - axis->first, 1, axis->out);
    }
    int64_t position = i + axis->lo;
    if (axis->stride == 1) /* every tap reads the cell, in some window */
        return span_clipped(axis->kernel, position - axis->dilation * (axis->kernel - 1),
                            axis->dilation, axis->out);
    int64_t least_tap = least_reading_tap(axis, position);
    if (least_tap < 0 || least_tap >= axis->kernel)
        return (tarn_span){.step = 1};
    int64_t n = (axis->kernel - 1 - least_tap) / axis->tap_step + 1;
    int64_t greatest_tap = least_tap + (n - 1) * axis->tap_step;
    int64_t first = (position - axis->dilation * greatest_tap) / axis->stride; /* exact */
    return span_clipped(n, first, axis->window_step, axis->out);
}

/* The tap by which window o reads cell i, given that it does. */
static inline int64_t tap_of(const tarn_axis *axis, int64_t o, int64_t i)
{
    if (axis->adaptive)
        return i - adaptive_start(axis, o);
    int64_t distance = i + axis->lo - o * axis->stride;
    return axis->dilation == 1 ? distance : distance / axis->dilation;
}

/* Taps of window o inside the padded extent [-lo, size+hi): clause A2. */
static inline int64_t padded_taps(const tarn_axis *axis, int64_t o)
{
    if (axis->adaptive)
        return window_taps(axis, o).n;
    int64_t room = axis->size + axis->hi + axis->lo - o * axis->stride; /* from the first tap on */
    return min_i64(axis->kernel, axis->dilation == 1 ? room : ceil_div(room, axis->dilation));
}

/* Where a list of n terms is cut in two [S1]: the greatest power of two below n; n >= 2. */
static inline int64_t split_point(int64_t n)
{
    return INT64_C(1) << (63 - __builtin_clzll((unsigned long long)(n - 1)));
}

#endif
