/* Smooth max and Lp: what they make of numbers. Their passes are in weighted.inc.
 *
 * Both are sums of weights: e^(beta*x), |x|^p. A weight is a mantissa and an exponent
 * (exponential.h, power.h), but while the exponents of a box lie within a range, weights scaled
 * by one power of two are plain numbers and their sums plain sums: scaling commutes with
 * rounding as long as nothing overflows or becomes subnormal. So each box is first computed in
 * plain numbers by the scale of the box before it, and what was loaded is looked at in passing.
 * If that lies outside the range, the box is done again by its own scale; or, if that does not
 * help, in weights.
 *
 * A range of 2*288 in the exponent, with tangents and gradients from 2^-250 to 2^250, leaves
 * room for any number of terms.
 */
#ifndef TARN_WEIGHTED_H
#define TARN_WEIGHTED_H

#include "../spec/power.h"
#include "fold.h"
#include "numbers.h"

#define REACH 288.0 /* of exponents, from that of the scale */
#define LEAST_MODERATE 0x1p-250
#define GREATEST_MODERATE 0x1p250

/* What folds sum up: the weights of taps, tangents times weights (of Lp: times slopes),
 * windows' shares of their gradients; or what they compare, taps. */
enum { TERM_WEIGHT, TERM_TANGENT, TERM_SHARE, TERM_TOP };

enum {
    PIECE = 128,      /* numbers that go together */
    SIDE_BY_SIDE = 8, /* of them, for the sake of vectors */
    KEPT = 64,        /* shares of large windows that are kept from box to box */
    MANY_TAPS = 1024
};

/* The shares of a box of windows. */
typedef struct {
    box windows;
    const char *x, *gy;        /* their planes; NULL: none are kept */
    double shift, slope_shift; /* by which they are scaled */
    bool exact;
    tarn_weight share[KEPT];
} kept_shares;

typedef struct {
    const tarn_problem *p;
    const tarn_numbers *numbers;
    char *base[OPERANDS];      /* of the planes in hand */
    fold windows[2], cells[2]; /* of plain numbers, and of weights */
    double shift, slope_shift; /* the scale, as exponents: of weights; of slopes |x|^(p-1) */
    double low, high;          /* of beta*x, or of |x| but 0, in what was loaded */
    bool fresh;                /* not as in the box before: columns, planes, scale */
    bool large_windows;        /* their shares are worth keeping */
    bool any_will_do;          /* values are plain sums whatever the input holds */
    /* all that was loaded is finite, and tangents and gradients are moderate */
    bool moderate;
    void *tops; /* of max and min: keys, see ties.inc */
    kept_shares kept;
    arena room;
} pass;

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Pixels of a row of a tensor, and where the first of them is. */
static void read_pixels(const pass *s, int operand, const int64_t *place, int64_t pixels,
                        int64_t lanes, void *to)
{
    int64_t bytes = s->p->element_bytes[operand];
    s->numbers->read(to, s->base[operand] + offset_of(s->p, operand, place) * bytes,
                     s->p->stride[operand][s->p->spatial - 1] * bytes, pixels, lanes);
}

static void write_pixels(const pass *s, int operand, const int64_t *place, int64_t pixels,
                         int64_t lanes, const void *from)
{
    int64_t bytes = s->p->element_bytes[operand];
    s->numbers->write(s->base[operand] + offset_of(s->p, operand, place) * bytes,
                      s->p->stride[operand][s->p->spatial - 1] * bytes, from, pixels, lanes);
}

/* A walk over a box in row-major order, by rows, and these by pieces. */
typedef struct {
    int inner;
    int64_t lanes;
    int64_t place[TARN_MAX_SPATIAL]; /* of the piece */
    int64_t pixels, n;               /* in it; numbers in it */
    int64_t at;                      /* numbers before it */
} walk;

static walk first_piece(int axes, int64_t lanes, const box *b)
{
    walk w = {
        .inner = axes - 1, .lanes = lanes, .pixels = min_i64(PIECE / lanes, b->count[axes - 1])};
    memcpy(w.place, b->from, sizeof w.place);
    w.n = w.pixels * lanes;
    return w;
}

static bool next_piece(const box *b, walk *w)
{
    int64_t *column = &w->place[w->inner], end = b->from[w->inner] + b->count[w->inner];
    w->at += w->n;
    *column += w->pixels;
    if (*column == end) {
        *column = b->from[w->inner];
        if (!next_place(w->inner, b, w->place))
            return false;
    }
    w->pixels = min_i64(PIECE / w->lanes, end - *column);
    w->n = w->pixels * w->lanes;
    return true;
}

/* Where a place lies in an array of a box, in pixels. */
static int64_t place_in(int axes, const box *b, const int64_t *place)
{
    int64_t at = 0;
    for (int k = 0; k < axes; k++)
        at = at * b->count[k] + place[k] - b->from[k];
    return at;
}

/* Makes one row of rows of a box that follow each other without a gap, in two tensors and in
 * the array `all` that the box is part of: its places then go on beyond the end of a row. */
static void join_rows(const pass *s, const box *all, int operand, int other, box *b)
{
    const int inner = s->p->spatial - 1;
    int64_t below = b->count[inner];
    for (int k = inner - 1; k >= 0; k--) {
        const int64_t *one = s->p->stride[operand], *two = s->p->stride[other],
                      row = b->count[inner];
        if (below != all->count[k + 1] || one[k] != row * one[inner] || two[k] != row * two[inner])
            return;
        below = b->count[k];
        b->count[inner] *= below;
        b->count[k] = 1;
    }
}

/* ---- Scales --------------------------------------------------------------------------------- */

/* Extends the range by n numbers, and by copies of the last one. */
static void see_range(pass *s, double *v, int64_t n)
{
    double low[SIDE_BY_SIDE], high[SIDE_BY_SIDE], sum[SIDE_BY_SIDE];
    for (int i = 0; i < SIDE_BY_SIDE; i++) {
        low[i] = s->low;
        high[i] = s->high;
        sum[i] = 0;
        v[n + i] = v[n - 1];
    }
    for (int64_t k = 0; k < n; k += SIDE_BY_SIDE)
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            double t = v[k + i];
            low[i] = t < low[i] ? t : low[i];
            high[i] = t > high[i] ? t : high[i];
            sum[i] += t - t; /* NaN for NaN and infinities */
        }
    for (int i = 0; i < SIDE_BY_SIDE; i++) {
        s->low = low[i] < s->low ? low[i] : s->low;
        s->high = high[i] > s->high ? high[i] : s->high;
        s->moderate &= sum[i] == 0;
    }
}

/* ... by their magnitudes, zeros left out. */
static void see_magnitudes(pass *s, const double *x, int64_t n)
{
    double row[PIECE + SIDE_BY_SIDE], some = 0;
    for (int64_t k = 0; k < n; k++)
        some = x[k] == 0 ? some : __builtin_fabs(x[k]);
    for (int64_t k = 0; k < n; k++)
        row[k] = x[k] == 0 ? some : __builtin_fabs(x[k]);
    if (some != 0)
        see_range(s, row, n);
}

static void see_factors(pass *s, const double *x, int64_t n)
{
    bool moderate = true;
    for (int64_t k = 0; k < n; k++) {
        double size = __builtin_fabs(x[k]);
        moderate &= (size == 0) | ((size >= LEAST_MODERATE) & (size <= GREATEST_MODERATE));
    }
    s->moderate &= moderate;
}

static bool is_simple_power(double q)
{
    return q == 0.0 || q == 1.0 || q == 2.0;
}

static double exponent_of_power(double x, double q)
{
    return weight_power(magnitude(x), q).exponent;
}

/* Whether |x|^q is a plain number by the scale. Simple powers need none. */
static bool power_fits(const pass *s, double q, double shift)
{
    if (is_simple_power(q))
        return s->low >= LEAST_MODERATE && s->high <= GREATEST_MODERATE;
    return s->low >= 0x1p-1022 && exponent_of_power(s->low, q) >= shift - REACH &&
           exponent_of_power(s->high, q) <= shift + REACH;
}

/* Whether plain numbers were right for what was loaded. */
static bool is_sound(const pass *s)
{
    if (s->any_will_do)
        return true;
    if (!s->moderate || s->low > s->high)
        return s->moderate;
    if (s->p->op == TARN_SMOOTH)
        return s->low > -HUGE_ARGUMENT && s->high < HUGE_ARGUMENT &&
               s->low * LOG2_E >= s->shift - REACH && s->high * LOG2_E <= s->shift + REACH;
    return power_fits(s, s->p->power, s->shift) && power_fits(s, s->p->power - 1, s->slope_shift);
}

static double middle(double a, double b)
{
    return ((a + b) / 2 + TO_INTEGER) - TO_INTEGER;
}

static double middle_exponent(const pass *s, double q)
{
    return is_simple_power(q) ? 0.0
                              : middle(exponent_of_power(s->low, q), exponent_of_power(s->high, q));
}

/* Sets the scale to the middle of what was loaded; false if that does not help. */
static bool find_scale(pass *s)
{
    double q = s->p->power - 1;
    if (!s->moderate)
        return false;
    if (s->p->op == TARN_SMOOTH) {
        if (!(s->low > -HUGE_ARGUMENT && s->high < HUGE_ARGUMENT))
            return false;
        s->shift = middle(s->low * LOG2_E, s->high * LOG2_E);
    } else {
        s->shift = middle_exponent(s, q + 1);
        s->slope_shift = middle_exponent(s, q);
    }
    return is_sound(s);
}

/* Whether the share of a window is kept, for the planes in hand and by the same scale. */
static bool is_kept(const pass *s, bool exact, const int64_t *window)
{
    const kept_shares *kept = &s->kept;
    if (kept->x != s->base[TARN_X] || kept->gy != s->base[TARN_GY] || kept->exact != exact ||
        kept->shift != s->shift || kept->slope_shift != s->slope_shift)
        return false;
    for (int k = 0; k < s->p->spatial; k++)
        if (window[k] < kept->windows.from[k] ||
            window[k] >= kept->windows.from[k] + kept->windows.count[k])
            return false;
    return true;
}

/* ---- Plain weights -------------------------------------------------------------------------- */

/* 2^n for an integer n that sound weights and sums of them may have; for others, which are not
 * used, any such number. */
static inline double moderate_power_of_two(double n)
{
    n = n < REACH + 70 ? n : REACH + 70;
    n = n > -REACH - 70 ? n : -REACH - 70;
    return f64_of_bits(bits_of_f64(n + (TO_INTEGER + 1023)) << 52);
}

/* e^x * 2^-shift in place of x = beta*x. */
static void exponentiate(double *x, int64_t n, bool full, double shift)
{
    const double least = (shift - REACH - 10) / LOG2_E, greatest = (shift + REACH + 10) / LOG2_E;
    double e;
    for (int64_t k = 0; k < n; k++) { /* others would not be used */
        x[k] = x[k] > least ? x[k] : least;
        x[k] = x[k] < greatest ? x[k] : greatest;
    }
    if (full)
        for (int64_t k = 0; k < n; k++) {
            double mantissa = exp_mantissa(x[k], &e);
            x[k] = mantissa * moderate_power_of_two(e - shift);
        }
    else
        for (int64_t k = 0; k < n; k++) {
            double mantissa = short_exp_mantissa(x[k], &e);
            x[k] = mantissa * moderate_power_of_two(e - shift);
        }
}

/* |x|^q * 2^-shift for an x in range, and 0 for 0. Without branches, for the sake of vectors. */
static inline double scaled_power(double x, double q, double shift)
{
    tarn_weight size;
    double e, any = x == 0.0 ? 1.0 : __builtin_fabs(x);
    size.mantissa = split_binary(any, &size.exponent);
    double mantissa = power_mantissa(size, q, &e);
    return (x == 0.0 ? 0.0 : mantissa) * moderate_power_of_two(e - shift);
}

/* sign(x) * |x|^q in place of x. */
static void raise(double *x, int64_t n, double q, double shift)
{
    for (int64_t k = 0; q == 0.0 && k < n; k++)
        x[k] = (x[k] > 0.0) - (x[k] < 0.0);
    for (int64_t k = 0; q == 2.0 && k < n; k++)
        x[k] = x[k] * __builtin_fabs(x[k]);
    for (int64_t k = 0; !is_simple_power(q) && k < n; k++)
        x[k] = __builtin_copysign(scaled_power(x[k], q, shift), x[k]);
}

/* Weights in place of x; what gradients and tangents are multiplied by, if they are slopes. */
static void weigh(pass *s, double *x, int64_t n, bool slopes)
{
    const tarn_problem *p = s->p;
    if (p->op == TARN_SMOOTH) {
        for (int64_t k = 0; k < n; k++)
            x[k] *= p->beta;
        see_range(s, x, n);
        exponentiate(x, n, s->numbers->full, s->shift);
        return;
    }
    if (!s->any_will_do)
        see_magnitudes(s, x, n);
    raise(x, n, slopes ? p->power - 1 : p->power, slopes ? s->slope_shift : s->shift);
    for (int64_t k = 0; !slopes && k < n; k++)
        x[k] = __builtin_fabs(x[k]);
}

/* What is loaded of taps x and their tangents dx. */
static void plain_terms(pass *s, int terms, double *x, const double *dx, int64_t n, double *to)
{
    weigh(s, x, n, terms == TERM_TANGENT);
    if (terms == TERM_TANGENT)
        see_factors(s, dx, n);
    for (int64_t k = 0; k < n; k++)
        to[k] = terms == TERM_TANGENT ? x[k] * dx[k] + 0.0 : x[k];
}

/* [L2] A padding tap of smooth max is the number 0, if it counts; its tangent is 0. */
static bool padding_counts(const pass *s)
{
    return s->p->op == TARN_SMOOTH && s->p->count_include_pad;
}

static double plain_absent(fold *f, int64_t count)
{
    pass *s = f->pass;
    if (f->terms != TERM_WEIGHT || count == 0 || !padding_counts(s))
        return 0;
    s->low = s->low < 0 ? s->low : 0;
    s->high = s->high > 0 ? s->high : 0;
    return (double)count * moderate_power_of_two(-s->shift);
}

/* The norm of Lp from a plain sum. */
static tarn_weight plain_norm(const pass *s, double sum, double top)
{
    double p = s->p->power;
    if (sum == 0.0)
        return weight_zero;
    if (p == 1.0 || p == 2.0)
        return (tarn_weight){p == 1.0 ? sum : square_root(sum), 0.0};
    return norm_from_ratio(magnitude(top), p, sum / scaled_power(top, p, s->shift));
}

/* What tangents and gradients are divided by, 0 for none: the sum of weights; or y^(p-1),
 * scaled like slopes. */
static double plain_divisor(const pass *s, double sum, double top)
{
    double q = s->p->power - 1;
    if (s->p->op == TARN_SMOOTH)
        return sum;
    tarn_weight norm = plain_norm(s, sum, top);
    if (is_simple_power(q + 1)) /* norms are plain numbers then */
        return q == 1.0 ? norm.mantissa : norm.mantissa != 0.0;
    tarn_weight power = weight_power(normal_weight(norm), q);
    if (is_simple_power(q)) /* slopes are squares as they are, which may lie beyond any scale */
        return weight_number(power);
    return power.mantissa == 0.0
               ? 0.0
               : power.mantissa * moderate_power_of_two(power.exponent - s->slope_shift);
}

static double plain_value(const pass *s, double sum, double top)
{
    if (s->p->op == TARN_LP)
        return weight_number(plain_norm(s, sum, top));
    if (sum == 0.0) /* no tap takes part */
        return 0.0;
    double greatest = s->p->beta * top;
    exponentiate(&greatest, 1, s->numbers->full, s->shift);
    return smooth_from_sum(s->numbers->full, top, s->p->beta, sum, greatest);
}

static double plain_share(const pass *s, double gradient, double sum, double top)
{
    double divisor = plain_divisor(s, sum, top);
    return divisor == 0.0 ? 0.0 : gradient / divisor + 0.0;
}

static double plain_tangent(const pass *s, double tangents, double sum, double top)
{
    return plain_share(s, tangents, sum, top);
}

/* Gradients in place of cells x, from the sums of their windows' shares. */
static void plain_gradients(pass *s, double *x, const double *shares, int64_t n)
{
    weigh(s, x, n, true);
    for (int64_t k = 0; k < n; k++)
        x[k] = x[k] * shares[k] + 0.0;
}

/* ---- The greatest taps ---------------------------------------------------------------------- */

/* Whether values, or what tangents and gradients are divided by, need the tap of the greatest
 * weight. */
static bool needs_tops(const pass *s)
{
    if (s->p->op == TARN_SMOOTH)
        return s->base[TARN_Y] != NULL;
    return s->p->power != 1.0 && s->p->power != 2.0;
}

/* Tops are compared as x, -x (smooth minimum) or |x|. */
static double top_of(const pass *s, double compared)
{
    return s->p->op == TARN_SMOOTH && s->p->beta < 0 ? -compared : compared;
}

static double best_absent(fold *f, int64_t count)
{
    const pass *s = f->pass;
    return s->p->op == TARN_LP || (padding_counts(s) && count > 0) ? 0.0 : -INFINITY;
}

static void best_load(fold *f, double *to)
{
    pass *s = f->pass;
    box all, real;
    if (clip_sources(f, &all, &real)) {
        double absent = best_absent(f, 1);
        for (int64_t k = 0; k < array_size(f, f->axes - 1); k++)
            to[k] = absent;
    }
    join_rows(s, &all, TARN_X, TARN_X, &real);
    walk w = first_piece(f->axes, f->lanes, &real);
    do {
        double *row = to + place_in(f->axes, &all, w.place) * f->lanes;
        read_pixels(s, TARN_X, w.place, w.pixels, f->lanes, row);
        for (int64_t k = 0; k < w.n && s->p->op == TARN_LP; k++)
            row[k] = __builtin_fabs(row[k]);
        for (int64_t k = 0; k < w.n && s->p->op == TARN_SMOOTH && s->p->beta < 0; k++)
            row[k] = -row[k];
    } while (next_piece(&real, &w));
}

/* NaN wins. */
#define T double
#define FOLD(name) best_##name
#define MERGE(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a))
#include "fold.inc"
#undef T

/* ---- Exact weights -------------------------------------------------------------------------- */

static tarn_weight exact_weight(const pass *s, double x, bool slope)
{
    if (s->p->op == TARN_SMOOTH)
        return weight_exp(s->numbers->full, s->p->beta * x);
    return slope ? signed_power(x, s->p->power - 1) : weight_power(magnitude(x), s->p->power);
}

static void exact_terms(pass *s, int terms, double *x, const double *dx, int64_t n, tarn_weight *to)
{
    for (int64_t k = 0; k < n; k++) {
        to[k] = exact_weight(s, x[k], terms == TERM_TANGENT);
        if (terms == TERM_TANGENT)
            to[k].mantissa = to[k].mantissa * dx[k] + 0.0;
    }
}

static tarn_weight exact_absent(fold *f, int64_t count)
{
    if (f->terms == TERM_SHARE || count == 0 || !padding_counts(f->pass))
        return weight_zero;
    return (tarn_weight){f->terms == TERM_TANGENT ? 0.0 : (double)count, 0.0};
}

static tarn_weight exact_norm(const pass *s, tarn_weight sum, double top)
{
    return lp_norm(top, s->p->power, sum);
}

static double exact_value(const pass *s, tarn_weight sum, double top)
{
    if (s->p->op == TARN_LP)
        return weight_number(exact_norm(s, sum, top));
    return sum.mantissa == 0.0 ? 0.0 : smooth_value(s->numbers->full, top, s->p->beta, sum);
}

static double exact_tangent(const pass *s, tarn_weight tangents, tarn_weight sum, double top)
{
    if (s->p->op == TARN_LP)
        return lp_tangent(tangents, weight_power(exact_norm(s, sum, top), s->p->power - 1));
    return sum.mantissa == 0.0 ? 0.0 : smooth_tangent(tangents, sum);
}

static tarn_weight exact_share(const pass *s, double gradient, tarn_weight sum, double top)
{
    tarn_weight share;
    if (s->p->op == TARN_LP)
        share = lp_share(gradient, weight_power(exact_norm(s, sum, top), s->p->power - 1));
    else
        share = smooth_share(gradient, sum);
    share.mantissa += 0.0;
    return share;
}

static void exact_gradients(pass *s, double *x, const tarn_weight *shares, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = smooth_gradient(exact_weight(s, x[k], true), shares[k]);
}

#endif
