/* The engine of smooth max and Lp: values, tangents and gradients, of any window.
 *
 * Both are sums of weights: e^(beta*x), |x|^p. A weight is a mantissa and an exponent
 * (exponential.h, power.h), but while the exponents of a box lie within a range, weights scaled
 * by one power of two are plain numbers and their sums plain sums: scaling commutes with
 * rounding as long as nothing overflows or becomes subnormal. So each box is first computed in
 * plain numbers by the scale of the box before it, in vectors, and what was loaded is looked at in
 * passing. If that lies outside the range, the box is done again by its own scale; or, if that does
 * not help, in weights, one by one.
 *
 * A range of 2*288 in the exponent, with tangents and gradients from 2^-250 to 2^250, leaves
 * room for any number of terms.
 */
#include "../scalar.h"
#include "../spec/power.h"
#include "engines.h"
#include "fold.h"

#define REACH 288.0 /* of exponents, from that of the scale */
#define LEAST_MODERATE 0x1p-250
#define GREATEST_MODERATE 0x1p250
#define MOST_NORMAL                                                                                \
    0x1p900 /* of |x|: norms are plain numbers up to here, and down to its inverse */
#define MOST_ARGUMENT 0x1p24 /* of exponentials in vectors */

/* What folds sum up: the weights of taps, tangents times weights (of Lp: times slopes); windows'
 * shares of their gradients; or what they compare, taps. */
enum { TERM_WEIGHT, TERM_TANGENT, TERM_TOP, TERM_SHARE = 0 };

enum {
    SLACK = SCRATCH_SLACK / sizeof(double),
    KEPT = 64,       /* shares of a box of windows that are kept for the next one */
    ALIGNMENT = 1024 /* bytes that arrays may lose by it */
};
typedef double piece[PIECE + SLACK];

typedef struct {
    const tarn_problem *p;
    const tarn_weight_ops *ops;
    char *base[OPERANDS]; /* of the planes in hand */
    bool full;            /* all of binary64 counts: see exponential.h */
    bool exact;           /* in weights; or in plain numbers */
    bool bounded;         /* powers of 1 and 2 need no scale: those of f32, and values of p = 1 */
    bool any_will_do;     /* ... and what is not finite needs no care: values */
    fold windows, cells;
    fold_sum sum[2], best[2]; /* of plain numbers, and of weights */
    int64_t planned_lanes;
    double shift, slope_shift; /* the scale, as exponents: of weights; of slopes |x|^(p-1) */
    tarn_seen seen;            /* beta*x, or |x| but 0, in what was loaded */
    bool moderate;             /* tangents and gradients are */
    box kept;                  /* windows whose shares are kept; count[0] is 0 if none are */
    tarn_weight share[KEPT];
    arena room;
} pass;

static bool is_smooth(const pass *s)
{
    return s->p->op == TARN_SMOOTH;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static void read_pixels(const pass *s, int operand, const walk *w, double *to)
{
    const int64_t bytes = s->p->element_bytes[operand];
    s->ops->read[s->p->dtype](to, s->base[operand] + offset_of(s->p, operand, w->place) * bytes,
                              s->p->stride[operand][w->inner] * bytes, w->pixels, w->lanes);
}

static void write_pixels(const pass *s, int operand, const walk *w, const double *from)
{
    const int64_t bytes = s->p->element_bytes[operand];
    s->ops->write[s->p->dtype](s->base[operand] + offset_of(s->p, operand, w->place) * bytes,
                               s->p->stride[operand][w->inner] * bytes, from, w->pixels, w->lanes);
}

/* Of f32 all are moderate, and what is infinite or NaN stays so in sums. */
static void see_factors(pass *s, double *x, int64_t n)
{
    tarn_seen seen = {INFINITY, -INFINITY, true};
    if (!s->full)
        return;
    s->ops->powers(x, n, 1.0, true, 0.0, &seen);
    s->moderate &= seen.finite && seen.low >= LEAST_MODERATE && seen.high <= GREATEST_MODERATE;
}

/* ---- Scales --------------------------------------------------------------------------------- */

static bool is_simple_power(double q)
{
    return q == 0.0 || q == 1.0 || q == 2.0;
}

static double exponent_of_power(double x, double q)
{
    return weight_power(magnitude(x), q).exponent;
}

/* Whether |x|^q is a plain number by the scale. Simple powers need none. */
static bool power_fits(const tarn_seen *seen, double q, double shift)
{
    if (is_simple_power(q))
        return seen->low >= LEAST_MODERATE && seen->high <= GREATEST_MODERATE;
    return seen->low >= 1 / MOST_NORMAL && seen->high <= MOST_NORMAL &&
           exponent_of_power(seen->low, q) >= shift - REACH &&
           exponent_of_power(seen->high, q) <= shift + REACH;
}

/* Whether plain numbers were right for what was loaded. */
static bool is_sound(const pass *s)
{
    const tarn_seen *seen = &s->seen;
    if (s->any_will_do)
        return true;
    if (!s->moderate || !seen->finite)
        return false;
    if (seen->low > seen->high || s->bounded)
        return true;
    if (is_smooth(s))
        return seen->low > -MOST_ARGUMENT && seen->high < MOST_ARGUMENT &&
               seen->low * LOG2_E >= s->shift - REACH && seen->high * LOG2_E <= s->shift + REACH;
    return power_fits(seen, s->p->power, s->shift) &&
           power_fits(seen, s->p->power - 1, s->slope_shift);
}

/* An even integer, as row operations want it. */
static double middle(double a, double b)
{
    return 2 * (((a + b) / 4 + TO_INTEGER) - TO_INTEGER);
}

static double middle_exponent(const pass *s, double q)
{
    if (is_simple_power(q) || !(s->seen.low <= s->seen.high))
        return 0.0;
    return middle(exponent_of_power(s->seen.low, q), exponent_of_power(s->seen.high, q));
}

/* Sets the scale to the middle of what was loaded; false if that does not help. */
static bool find_scale(pass *s)
{
    if (!s->moderate || !s->seen.finite)
        return false;
    if (is_smooth(s)) {
        s->shift = middle(s->seen.low * LOG2_E, s->seen.high * LOG2_E);
    } else {
        s->shift = middle_exponent(s, s->p->power);
        s->slope_shift = middle_exponent(s, s->p->power - 1);
    }
    return is_sound(s);
}

static void forget(pass *s)
{
    s->kept.count[0] = 0;
    forget_sources(&s->windows);
    forget_sources(&s->cells);
}

/* ---- Weights one by one --------------------------------------------------------------------- */

static void sum_weights(void *to, int64_t to_step, const void *from, int64_t k, int64_t tap_step,
                        int64_t pixel_step, int64_t channels, int64_t n)
{
    const tarn_weight *pixel = from;
    tarn_weight *sums = to;
    for (int64_t o = 0; o < n; o++, pixel += pixel_step, sums += to_step)
        for (int64_t c = 0; c < channels; c++) {
            tarn_weight tap[MOST_SUMMED];
            for (int64_t j = 0; j < k; j++)
                tap[j] = pixel[j * tap_step + c];
            for (int64_t half = 1; half < k; half *= 2)
                for (int64_t j = 0; j + half < k; j += 2 * half)
                    tap[j] = weight_add(tap[j], tap[j + half]);
            sums[c] = tap[0];
        }
}

/* The greatest; NaN wins. */
static void best_numbers(void *to, int64_t to_step, const void *from, int64_t k, int64_t tap_step,
                         int64_t pixel_step, int64_t channels, int64_t n)
{
    const double *pixel = from;
    double *best = to;
    for (int64_t o = 0; o < n; o++, pixel += pixel_step, best += to_step)
        for (int64_t c = 0; c < channels; c++) {
            double top = pixel[c];
            for (int64_t j = 1; j < k; j++) {
                double tap = pixel[j * tap_step + c];
                top = tap > top || tap != tap ? tap : top;
            }
            best[c] = top;
        }
}

static tarn_weight exact_weight(const pass *s, double x, bool slope)
{
    if (is_smooth(s))
        return weight_exp(s->full, s->p->beta * x);
    return slope ? signed_power(x, s->p->power - 1) : weight_power(magnitude(x), s->p->power);
}

static void exact_terms(const pass *s, int terms, const double *x, const double *dx, int64_t n,
                        tarn_weight *to)
{
    for (int64_t k = 0; k < n; k++) {
        to[k] = exact_weight(s, x[k], terms == TERM_TANGENT);
        if (terms == TERM_TANGENT)
            to[k].mantissa = to[k].mantissa * dx[k] + 0.0;
    }
}

/* What tangents and gradients of Lp are divided by. */
static tarn_weight exact_divisor(const pass *s, tarn_weight sum, double top)
{
    return weight_power(lp_norm(top, s->p->power, sum), s->p->power - 1);
}

static void exact_values(const pass *s, double *y, const tarn_weight *sums, const double *tops,
                         int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (!is_smooth(s))
            y[k] = weight_number(lp_norm(tops[k], s->p->power, sums[k]));
        else if (sums[k].mantissa == 0.0) /* no tap takes part */
            y[k] = 0.0;
        else
            y[k] = smooth_value(s->full, tops[k], s->p->beta, sums[k]);
}

static void exact_tangents(const pass *s, double *dy, const tarn_weight *tangents,
                           const tarn_weight *sums, const double *tops, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (!is_smooth(s))
            dy[k] = lp_tangent(tangents[k], exact_divisor(s, sums[k], tops[k]));
        else
            dy[k] = sums[k].mantissa == 0.0 ? 0.0 : smooth_tangent(tangents[k], sums[k]);
}

static void exact_shares(const pass *s, tarn_weight *to, const double *gy, const tarn_weight *sums,
                         const double *tops, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        to[k] = is_smooth(s) ? smooth_share(gy[k], sums[k])
                             : lp_share(gy[k], exact_divisor(s, sums[k], tops[k]));
        to[k].mantissa += 0.0;
    }
}

static void exact_gradients(const pass *s, double *x, const tarn_weight *shares, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = smooth_gradient(exact_weight(s, x[k], true), shares[k]);
}

/* ---- Plain numbers -------------------------------------------------------------------------- */

/* Weights in place of x; or slopes, which tangents and gradients are multiplied by. */
static void weigh(pass *s, double *x, int64_t n, bool slopes)
{
    const tarn_problem *p = s->p;
    if (is_smooth(s)) {
        s->ops->exponentials(x, n, s->full, p->beta, s->shift, &s->seen);
        return;
    }
    tarn_seen *seen = s->bounded ? NULL : &s->seen;
    if (slopes && p->power == 2.0 && !seen)
        return; /* x is its own slope */
    if (!slopes && p->power == 2.0 && !seen)
        s->ops->products(x, x, x, n);
    else if (slopes)
        s->ops->powers(x, n, p->power - 1, true, s->slope_shift, seen);
    else
        s->ops->powers(x, n, p->power, false, s->shift, seen);
}

static void plain_values(const pass *s, double *y, const double *sums, const double *tops,
                         int64_t n)
{
    if (is_smooth(s))
        s->ops->smooth_values(y, sums, tops, n, s->full, s->p->beta, s->shift);
    else
        s->ops->norms(y, sums, tops, n, s->p->power, s->shift);
}

/* Tangents, or windows' shares: a over the sum of weights, or over y^(p-1), scaled like slopes. */
static void plain_quotients(const pass *s, double *to, const double *a, const double *sums,
                            const double *tops, int64_t n)
{
    piece divisor;
    if (!is_smooth(s)) {
        s->ops->norms(divisor, sums, tops, n, s->p->power, s->shift);
        if (s->p->power != 2.0)
            s->ops->powers(divisor, n, s->p->power - 1, false, s->slope_shift, NULL);
    }
    s->ops->quotients(to, a, is_smooth(s) ? sums : divisor, n);
}

/* ---- Taps ----------------------------------------------------------------------------------- */

/* Whether values, or what tangents and gradients are divided by, need the tap of the greatest
 * weight. */
static bool needs_tops(const pass *s)
{
    if (is_smooth(s))
        return s->base[TARN_Y] != NULL;
    return s->p->power != 1.0 && s->p->power != 2.0;
}

/* Tops are compared as x, -x (smooth minimum) or |x|. */
static void compare_as(const pass *s, double *x, int64_t n)
{
    for (int64_t k = 0; k < n && !is_smooth(s); k++)
        x[k] = __builtin_fabs(x[k]);
    for (int64_t k = 0; k < n && is_smooth(s) && s->p->beta < 0; k++)
        x[k] = -x[k];
}

/* A piece of the tops as taps: in `room`, if they are not what was compared. */
static const double *tops_at(const pass *s, const double *tops, int64_t at, int64_t n, double *room)
{
    if (!tops || !is_smooth(s) || s->p->beta > 0)
        return tops ? tops + at : room;
    for (int64_t k = 0; k < n; k++)
        room[k] = -tops[at + k];
    return room;
}

/* [L2] A padding tap of smooth max is the number 0, if it counts; its tangent is 0. */
static bool padding_counts(const pass *s)
{
    return is_smooth(s) && s->p->count_include_pad;
}

static void fill_absent(fold *f, int64_t count, void *to, int64_t n)
{
    pass *s = f->pass;
    const bool counts = !f->backward && count > 0 && padding_counts(s);
    tarn_weight weight = weight_zero;
    if (counts)
        weight = (tarn_weight){f->terms == TERM_WEIGHT ? (double)count : 0.0, 0.0};
    double number = 0.0;
    if (!f->backward && f->terms == TERM_TOP)
        number = counts || !is_smooth(s) ? 0.0 : -INFINITY;
    else if (counts && f->terms == TERM_WEIGHT && !s->exact) {
        s->seen.low = s->seen.low < 0 ? s->seen.low : 0;
        s->seen.high = s->seen.high > 0 ? s->seen.high : 0;
        if (s->shift >= -REACH && s->shift <= REACH) /* otherwise is_sound() says no */
            number = (double)count * power_of_two(-s->shift);
    }
    const int64_t bytes = f->sum->bytes;
    memcpy(to, bytes == sizeof weight ? (void *)&weight : (void *)&number, (size_t)bytes);
    for (int64_t known = 1; known < n; known *= 2) /* copies of copies */
        memcpy((char *)to + known * bytes, to, (size_t)(min_i64(known, n - known) * bytes));
}

/* Whether the weights of taps that windows read are at hand. */
static bool keeps_weights(const pass *s, const fold *f)
{
    return f->slides && !s->exact && is_smooth(s);
}

static const double *weights_at(const fold *f, const int64_t *place)
{
    const kept_sources *kept = &f->kept[TERM_WEIGHT];
    const double *weights = (const void *)kept->array;
    return weights + place_in(f->axes, &kept->of, place) * f->lanes;
}

/* Tangents times weights: of smooth max, these may be at hand. */
static void load_tangents(pass *s, const fold *f, const walk *w, double *to)
{
    piece dx;
    const double *weights = to;
    if (keeps_weights(s, f)) {
        weights = weights_at(f, w->place);
    } else {
        read_pixels(s, TARN_X, w, to);
        weigh(s, to, w->n, true);
    }
    read_pixels(s, TARN_DX, w, dx);
    see_factors(s, dx, w->n);
    s->ops->products(to, weights, dx, w->n);
}

static void load_weights(pass *s, const walk *w, int terms, tarn_weight *to)
{
    piece x, dx;
    read_pixels(s, TARN_X, w, x);
    if (terms == TERM_TANGENT)
        read_pixels(s, TARN_DX, w, dx);
    exact_terms(s, terms, x, dx, w->n, to);
}

/* Loads the taps of the blocks of all axes. */
static void load_taps(fold *f, void *to)
{
    pass *s = f->pass;
    box all, real;
    const int other = f->terms == TERM_TANGENT ? TARN_DX : TARN_X;
    if (clip_sources(f, &all, &real))
        fill_absent(f, 1, to, array_size(f, f->axes - 1));
    join_rows(s->p, &all, TARN_X, other, &real);
    walk w = first_piece(f->axes, f->lanes, &real);
    do {
        const int64_t at = place_in(f->axes, &all, w.place) * f->lanes;
        double *numbers = (double *)to + at;
        if (s->exact && f->terms != TERM_TOP) {
            load_weights(s, &w, f->terms, (tarn_weight *)to + at);
        } else if (f->terms == TERM_TANGENT) {
            load_tangents(s, f, &w, numbers);
        } else {
            read_pixels(s, TARN_X, &w, numbers);
            if (f->terms == TERM_TOP)
                compare_as(s, numbers, w.n);
            else
                weigh(s, numbers, w.n, false);
        }
    } while (next_piece(&real, &w));
}

/* ---- Windows -------------------------------------------------------------------------------- */

/* Sums over the windows of a box, and their greatest taps. */
typedef struct {
    char *weights, *tangents;
    const double *tops;
} window_sums;

static window_sums sum_windows(pass *s, fold *f, const box *b, bool tangents)
{
    const fold_sum *sum = &s->sum[s->exact];
    window_sums sums = {NULL, NULL, NULL};
    set_box(f, b);
    sums.weights = tarn_fold_sums(f, TERM_WEIGHT, sum);
    if (s->bounded && !s->any_will_do && !s->exact) /* taps are finite where their sums are */
        s->ops->powers((void *)sums.weights, array_size(f, -1), 1.0, false, 0.0, &s->seen);
    if (tangents)
        sums.tangents = tarn_fold_sums(f, TERM_TANGENT, sum);
    if (needs_tops(s))
        sums.tops = tarn_fold_sums(f, TERM_TOP, &s->best[s->exact]);
    return sums;
}

/* The values and tangents of a box of windows. */
static void forward_box(pass *s, const box *b)
{
    fold *f = &s->windows;
    piece room = {0}, y;
    const window_sums sums = sum_windows(s, f, b, s->base[TARN_DY] != NULL);
    const int64_t bytes = s->sum[s->exact].bytes;
    box rows = *b;
    join_rows(s->p, b, s->base[TARN_Y] ? TARN_Y : TARN_DY, s->base[TARN_DY] ? TARN_DY : TARN_Y,
              &rows);
    walk w = first_piece(f->axes, f->lanes, &rows);
    do {
        const char *weights = sums.weights + w.at * bytes, *tangents = sums.tangents + w.at * bytes;
        const double *tops = tops_at(s, sums.tops, w.at, w.n, room);
        if (s->base[TARN_Y]) {
            if (s->exact)
                exact_values(s, y, (const void *)weights, tops, w.n);
            else
                plain_values(s, y, (const void *)weights, tops, w.n);
            write_pixels(s, TARN_Y, &w, y);
        }
        if (s->base[TARN_DY]) {
            if (s->exact)
                exact_tangents(s, y, (const void *)tangents, (const void *)weights, tops, w.n);
            else
                plain_quotients(s, y, (const void *)tangents, (const void *)weights, tops, w.n);
            write_pixels(s, TARN_DY, &w, y);
        }
    } while (next_piece(&rows, &w));
}

/* ---- Gradients ------------------------------------------------------------------------------ */

/* The shares of a box of windows to an array that `array` is laid out in. */
static void share_windows(pass *s, const box *windows, const box *array, char *to)
{
    fold *f = &s->windows;
    piece room = {0}, gy;
    const int64_t used = s->room.used, bytes = s->sum[s->exact].bytes;
    box part = first_part(f, windows);
    do {
        const window_sums sums = sum_windows(s, f, &part, false);
        box rows = part;
        join_rows(s->p, array, TARN_GY, TARN_GY, &rows);
        walk w = first_piece(f->axes, f->lanes, &rows);
        do {
            char *row = to + place_in(f->axes, array, w.place) * f->lanes * bytes;
            const char *weights = sums.weights + w.at * bytes;
            const double *tops = tops_at(s, sums.tops, w.at, w.n, room);
            read_pixels(s, TARN_GY, &w, gy);
            see_factors(s, gy, w.n);
            if (s->exact)
                exact_shares(s, (void *)row, gy, (const void *)weights, tops, w.n);
            else
                plain_quotients(s, (void *)row, gy, (const void *)weights, tops, w.n);
        } while (next_piece(&rows, &w));
        s->room.used = used;
    } while (next_part(f, windows, &part));
}

/* Loads the shares of windows. Those of few windows, which may be large, are kept. */
static void load_shares(fold *f, void *to)
{
    pass *s = f->pass;
    box all, real;
    int64_t count = f->lanes;
    bool known = s->kept.count[0] > 0;
    if (clip_sources(f, &all, &real))
        fill_absent(f, 0, to, array_size(f, f->axes - 1));
    for (int k = 0; k < f->axes; k++) {
        count = min_i64(count * real.count[k], KEPT + 1);
        known = known && s->kept.from[k] == real.from[k] && s->kept.count[k] == real.count[k];
    }
    if (count > KEPT) {
        share_windows(s, &real, &all, to);
        return;
    }
    if (!known)
        share_windows(s, &real, &real, (char *)s->share);
    s->kept = real;
    const int64_t bytes = s->sum[s->exact].bytes, row = real.count[f->axes - 1] * f->lanes * bytes;
    const char *from = (const char *)s->share;
    int64_t place[TARN_MAX_SPATIAL];
    memcpy(place, real.from, sizeof place);
    do {
        memcpy((char *)to + place_in(f->axes, &all, place) * f->lanes * bytes, from, (size_t)row);
        from += row;
    } while (next_place(f->axes - 1, &real, place));
}

/* The gradients of a box of cells. */
static void backward_box(pass *s, const box *b)
{
    fold *f = &s->cells;
    piece x;
    set_box(f, b);
    const char *shares = tarn_fold_sums(f, TERM_SHARE, &s->sum[s->exact]);
    box rows = *b;
    join_rows(s->p, b, TARN_X, TARN_GX, &rows);
    walk w = first_piece(f->axes, f->lanes, &rows);
    do {
        read_pixels(s, TARN_X, &w, x);
        if (s->exact) {
            exact_gradients(s, x, (const tarn_weight *)(const void *)shares + w.at, w.n);
        } else {
            weigh(s, x, w.n, true);
            s->ops->products(x, x, (const double *)(const void *)shares + w.at, w.n);
        }
        write_pixels(s, TARN_GX, &w, x);
    } while (next_piece(&rows, &w));
}

/* ---- Passes --------------------------------------------------------------------------------- */

/* Plans for elements of so many bytes, and takes the room for what slides; backward, the room is
 * shared by cells and windows. */
static void plan_pass(pass *s, int64_t lanes)
{
    const int64_t element = s->sum[s->exact].bytes;
    const double room = (double)(ARENA_BYTES - ALIGNMENT) / (double)element;
    const bool backward = s->base[TARN_GX] != NULL, jvp = s->base[TARN_DY] != NULL;
    const int terms = 1 + jvp + needs_tops(s);
    const fold_arrays arrays[2] = {{1, 1}, {terms, terms}};
    tarn_start_fold(&s->windows, s->p, false);
    tarn_start_fold(&s->cells, s->p, true);
    s->room.used = 0;
    if (backward) {
        tarn_plan_folds(&s->cells, &s->windows, lanes, room, arrays);
        tarn_keep_sources(&s->cells, 1 << TERM_SHARE, element);
    } else {
        tarn_plan_fold(&s->windows, 1, lanes, room, arrays + 1);
    }
    s->planned_lanes = s->windows.lanes;
    tarn_keep_sources(&s->windows,
                      1 << TERM_WEIGHT | jvp << TERM_TANGENT | needs_tops(s) << TERM_TOP, element);
}

/* Sets the pass to `lanes` of the interleaved planes that begin at `base`, from `lane` on. */
static void set_lanes(pass *s, char *const *base, int64_t lane, int64_t lanes)
{
    s->windows.lanes = s->cells.lanes = lanes;
    for (int k = 0; k < OPERANDS; k++)
        s->base[k] = base[k] ? base[k] + lane * s->p->element_bytes[k] : NULL;
    forget(s);
}

static void run_box(pass *s, const box *b)
{
    const int64_t used = s->room.used;
    s->seen = (tarn_seen){INFINITY, -INFINITY, true};
    s->moderate = true;
    if (s->base[TARN_GX])
        backward_box(s, b);
    else
        forward_box(s, b);
    s->room.used = used;
}

static fold *results_of(pass *s)
{
    return s->base[TARN_GX] ? &s->cells : &s->windows;
}

static void run_again(pass *s, const box *b);

/* Runs a box of results, of `lanes` interleaved planes that begin at `base`. */
static void run_parts(pass *s, char *const *base, int64_t lanes, const box *whole)
{
    const fold *f = results_of(s);
    const int64_t most = s->planned_lanes;
    for (int64_t lane = 0; lane < lanes; lane += most) {
        box b = first_part(f, whole);
        set_lanes(s, base, lane, min_i64(most, lanes - lane));
        do {
            run_box(s, &b);
            if (!s->exact && !is_sound(s))
                run_again(s, &b);
        } while (next_part(f, whole, &b));
    }
}

/* A box that plain numbers cannot do, in smaller ones. */
static void run_exactly(pass *s, const box *whole)
{
    const int64_t lanes = results_of(s)->lanes;
    char *base[OPERANDS];
    memcpy(base, s->base, sizeof base);
    s->exact = true;
    plan_pass(s, lanes);
    run_parts(s, base, lanes, whole);
    s->exact = false;
    plan_pass(s, s->p->lanes);
    set_lanes(s, base, 0, lanes);
}

/* A box by a scale of its own, or exactly. */
static void run_again(pass *s, const box *b)
{
    if (find_scale(s)) {
        forget(s);
        run_box(s, b);
    }
    if (!is_sound(s))
        run_exactly(s, b);
    forget(s);
}

static void start_pass(pass *s, const tarn_problem *p, const tarn_tensors *t,
                       const tarn_weight_ops *ops)
{
    s->p = p;
    s->ops = ops;
    memcpy(s->base, t->base, sizeof s->base);
    s->full = p->dtype == TARN_F64;
    s->exact = false;
    const bool values = !t->base[TARN_GX] && !t->base[TARN_DY];
    s->bounded = p->op == TARN_LP &&
                 ((p->power == 1.0 && (values || !s->full)) || (p->power == 2.0 && !s->full));
    s->any_will_do = s->bounded && values;
    s->shift = s->slope_shift = 0;
    s->sum[0] =
        (fold_sum){sizeof(double), ops->rows->sum_pixels[CORE_F64], ops->rows->sum_run[TARN_F64]};
    s->best[0] = (fold_sum){sizeof(double), ops->rows->best_pixels[CORE_F64], NULL};
    s->sum[1] = (fold_sum){sizeof(tarn_weight), sum_weights, NULL};
    s->best[1] = (fold_sum){sizeof(double), best_numbers, NULL};
    s->windows.pass = s->cells.pass = s;
    s->windows.room = s->cells.room = &s->room;
    s->windows.absent = s->cells.absent = fill_absent;
    s->windows.load = load_taps;
    s->cells.load = load_shares;
}

void tarn_engine_weights(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                         const tarn_weight_ops *ops)
{
    pass s;
    tarn_slab slab;
    tarn_problem stacked;
    const bool stacks = stack_planes(p, SMALL_PLANE, &stacked);
    const int64_t rows = t->base[TARN_GX] ? p->axis[0].size : p->axis[0].out;
    int64_t planes;
    start_pass(&s, p, t, ops);
    s.p = NULL;
    while ((planes = next_planes(p, t, rows, &begin, end, stacks ? INT64_MAX : 1, &slab)) > 0) {
        const tarn_problem *now = planes > 1 ? &stacked : p;
        if (s.p != now) {
            s.p = now;
            plan_pass(&s, p->lanes);
        }
        if (planes > 1) {
            slab.lo = 0;
            slab.hi = planes;
        }
        const box whole = box_of_slab(now, &slab, t->base[TARN_GX] != NULL);
        run_parts(&s, slab.base, p->lanes, &whole);
    }
}
