/* Smooth max against multiple precision (MPFR).
 *
 * src/spec/spec.inc is instantiated for 320-bit numbers and compared with a naive evaluation of the
 * formula; the library's own results, and the exponential and logarithm they are made from, are
 * then held to that evaluation, in units of the last place. The bounds, with u = 2^-53, and v =
 * 2^-38 for f32, f16 and bf16, 0 for f64:
 *
 *  value     2 units in the last place of f64 at the larger of |result| and |greatest tap|, and
 *            (4u + 2v)/|beta|; f32, f16 and bf16 then round once, by half a unit of their own. So a
 *            result far smaller than the greatest tap, or than 1/|beta|, has the absolute accuracy
 *            that f64 has there: something cancels, or the other weights vanish beside 1.
 *  weights   t_i = beta*x_i is rounded before e^t is taken, so a weight is off by up to |t_i|u of
 *            itself and the sum of the weights by T = sum w_i|t_i| times u: it is the exact weight
 *            of inputs half a unit away. With D the depth of the pairwise sum of the window and R
 *            that of the windows of a cell, the errors are at most
 *            jvp   sum w_i|dx_i| * ((|t_i| + T + 2D + 8)u + 2v),
 *            vjp   sum_o |gy_o|w_io * ((|t_i| + T_o + D + R + 8)u + 2v),
 *            with 2|t_i| and 2T for the short types, whose arguments are rounded twice, and half a
 *            unit of the stored type. The weights of a window add up to 1 within
 *            (D + 4)u whatever the inputs: numerators and denominator carry the same errors.
 */
#include "precise.h"
#include "spec/exponential.h"

#define SHORT_ERROR 0x1p-38 /* of the exponential of types of 24 bits and less */
#define HALF_LN2 0.34657359027997264

/* ---- The formula, evaluated naively -------------------------------------------------------- */

/* One window: its greatest tap, value, and the weight and t = beta*x of each tap. */
typedef struct evaluated {
    int parts;          /* taps that take part */
    M top, value, pull; /* pull: sum w|t|, how strongly relative errors of t act */
    M weight[MOST_TAPS], t[MOST_TAPS];
} evaluated;

static void find_arguments(const scene *s, const window *w, const double *x, evaluated *e)
{
    M greatest = NULL;
    *e = (evaluated){.parts = 0};
    for (int k = 0; k < w->taps; k++) {
        if (!w->tap[k].real && !s->pool.count_include_pad)
            continue;
        M value = m_of(w->tap[k].real ? x[w->tap[k].cell] : 0);
        e->t[k] = m_scaled(value, s->pool.beta); /* 106 bits: exact */
        e->parts++;
        if (!greatest || m_less(greatest, e->t[k])) {
            greatest = e->t[k];
            e->top = value;
        }
    }
}

/* Weights relative to the greatest, whose own 1 is left out of `rest` so that log1p sees the
 * others, however small. */
static void evaluate(const scene *s, const window *w, const double *x, evaluated *e)
{
    find_arguments(s, w, x, e);
    e->value = e->pull = m_of(0);
    if (e->parts == 0)
        return;
    M greatest = m_scaled(e->top, s->pool.beta), rest = m_of(0);
    bool left_out = false;
    for (int k = 0; k < w->taps; k++) {
        if (!e->t[k])
            continue;
        e->weight[k] = m_exp(m_sub(e->t[k], greatest));
        if (!left_out && mpfr_equal_p(e->t[k]->value, greatest->value))
            left_out = true;
        else
            rest = m_add(rest, e->weight[k]);
    }
    e->value = m_add(e->top, m_div(m_log1p(rest), m_of(s->pool.beta)));
    M sum = m_add(rest, m_of(1));
    for (int k = 0; k < w->taps; k++) {
        if (!e->t[k])
            continue;
        e->weight[k] = m_div(e->weight[k], sum);
        e->pull = m_add(e->pull, m_mul(e->weight[k], m_abs(e->t[k])));
    }
}

/* ---- Exponential and logarithm ------------------------------------------------------------- */

static double exp_reduced_error(double r)
{
    return error_in_ulps(exp_reduced(r), m_exp(m_of(r)));
}

/* Of the mantissa, at the library's choice of exponent. Where |t| is large the choice is made
 * with an error that leads out of the range of the polynomial; what is lost there, 2^-42|t| ulp,
 * is next to nothing beside the |t|/2 ulp that the rounding of t itself costs. Returns error
 * over bound. */
static double weight_exp_error(double t)
{
    tarn_weight w = weight_exp(true, t);
    M exact = m_exp(m_of(t));
    CHECK(w.exponent == floor(w.exponent), "exponent of e^%a is %a", t, w.exponent);
    CHECK(w.mantissa > 0.6 && w.mantissa < 1.6, "mantissa of e^%a is %a", t, w.mantissa);
    mpfr_mul_2si(exact->value, exact->value, -(long)w.exponent, MPFR_RNDN);
    return error_in_ulps(w.mantissa, exact) / (1.1 + 0x1p-42 * fabs(t));
}

/* Error over bound: that of the polynomial, and the product with log2(e) that is rounded. */
static double short_exp_error(double t)
{
    tarn_weight w = weight_exp(false, t);
    M exact = m_exp(m_of(t));
    CHECK(w.exponent == floor(w.exponent), "exponent of e^%a is %a", t, w.exponent);
    CHECK(w.mantissa > 0.6 && w.mantissa < 1.6, "mantissa of e^%a is %a", t, w.mantissa);
    mpfr_mul_2si(exact->value, exact->value, -(long)w.exponent, MPFR_RNDN);
    M error = m_div(m_abs(m_sub(m_of(w.mantissa), exact)), exact);
    return m_about(error) / (SHORT_ERROR + 2 * UNIT * fabs(t));
}

/* Relative to the logarithm, but where the numbers are nearly equal: they are rounded. */
static double short_log_error(double v, double part)
{
    double got = short_log_ratio(v * part, part);
    M exact = m_log(m_div(m_of(v * part), m_of(part)));
    if (v * part == part)
        CHECK(got == 0, "log 1 is %a", got);
    return m_about(m_div(m_abs(m_sub(m_of(got), exact)), m_add(exact, m_of(UNIT)))) / 0x1p-40;
}

static double log_ratio_error(double v)
{
    double got = log_ratio(v);
    if (v == 1.0)
        CHECK(got == 0, "log 1 is %a", got);
    return v == 1.0 ? 0 : error_in_ulps(got, m_log(m_of(v)));
}

/* Arguments near multiples of ln(2)/2, where the reduction changes its mind, and of all sizes. */
static double draw_exponent(rng *r)
{
    double unit = signed_by(r, 1), fraction = rng_unit(r);
    switch (rng_range(r, 0, 3)) {
    case 0:
        return unit * fraction;
    case 1:
        return unit * ldexp(1 + fraction, (int)rng_range(r, -1074, 49));
    case 2:
        return unit * neighbour(floor(fraction * 3000 + 1) * HALF_LN2, rng_range(r, -3, 3));
    default:
        return unit * fraction * 750;
    }
}

static double draw_ratio(rng *r)
{
    int scale = (int)rng_range(r, 0, 1022);
    double fraction = rng_unit(r);
    switch (rng_range(r, 0, 4)) {
    case 0:
        return 1 + fraction;
    case 1:
        return neighbour(1.0, rng_range(r, 0, 1000));
    case 2:
        return 1 + ldexp(fraction, -scale % 53);
    case 3:
        return ldexp(1 + fraction, scale);
    default:
        return neighbour(ldexp(1.4142135623730951, scale % 61), rng_range(r, -4, 4));
    }
}

static void check_exp_and_log(rng *r)
{
    static const double edges[] = {
        0.0, -0.0, 0x1p-1074, -0x1p-1074, 0x1.fffffffffffffp49, -0x1.fffffffffffffp49};
    double half = HALF_LN2 * 1.0001, reduced = 0, whole = 0, log = 0, short_exp = 0, short_log = 0;
    for (int k = 0; k < ROUNDS(40000); k++) {
        arena.used = 0;
        double at = (2 * rng_unit(r) - 1) * half;
        reduced = greater_of(reduced, exp_reduced_error(at));
        whole = greater_of(whole, weight_exp_error(draw_exponent(r)));
        short_exp = greater_of(short_exp, short_exp_error(draw_exponent(r)));
        short_log = greater_of(
            short_log, short_log_error(fmin(draw_ratio(r), 0x1p500), 0.7 + 0.7 * rng_unit(r)));
        log = greater_of(log, log_ratio_error(draw_ratio(r)));
    }
    for (size_t k = 0; k < sizeof edges / sizeof edges[0]; k++)
        whole = greater_of(whole, weight_exp_error(edges[k]));
    log = greater_of(log, log_ratio_error(1.0));
    log = greater_of(log, log_ratio_error(0x1p1023));
    CHECK(reduced <= 1.0, "exp_reduced is off by %g", reduced);
    CHECK(whole <= 1.0, "weight_exp is off by %g times its bound", whole);
    CHECK(log <= 2.0, "log_ratio is off by %g", log);
    CHECK(short_exp <= 1.0, "the short exponential is off by %g times its bound", short_exp);
    CHECK(short_log <= 1.0, "the short logarithm is off by %g times its bound", short_log);
    printf(
        "largest error: exp_reduced %.3f ulp  log_ratio %.3f ulp  weight_exp %.3f of its bound\n",
        reduced, log, whole);
    printf("short exponential and logarithm, largest error/bound: %.3f %.3f\n", short_exp,
           short_log);
}

/* ---- Values -------------------------------------------------------------------------------- */

static double worst_value[4], worst_ratio[4]; /* in ulp, where nothing cancels; error over bound */

static M value_bound(tarn_dtype dtype, double beta, const evaluated *e)
{
    M ulp = m_ulp(stored_format(TARN_F64), m_max(m_abs(e->value), m_abs(e->top)));
    double near_zero = 4 * UNIT + (dtype == TARN_F64 ? 0 : 2 * SHORT_ERROR);
    M bound = m_add(m_scaled(ulp, 2), m_of(fabs(near_zero / beta)));
    if (dtype == TARN_F64)
        return bound;
    M reach = m_add(m_abs(e->value), bound); /* rounding may start from there */
    return m_add(bound, m_scaled(m_ulp(stored_format(dtype), reach), 0.5));
}

static void check_value(const scene *s, tarn_dtype dtype, double got, const evaluated *e)
{
    M size = dtype == TARN_F64 ? m_max(m_abs(e->value), m_abs(e->top)) : m_abs(e->value);
    M ulp = m_ulp(stored_format(dtype), size), bound = value_bound(dtype, s->pool.beta, e);
    M error = m_abs(m_sub(m_of(got), e->value));
    if (isinf(got) && overflows(dtype, m_add(m_abs(e->value), bound)))
        return;
    CHECK(isfinite(got) && !m_less(bound, error), "%s %a instead of %a, off by %g ulp: %s",
          tarn_dtype_name(dtype), got, m_about(e->value), m_about(m_div(error, ulp)), describe(s));
    worst_ratio[dtype] = greater_of(worst_ratio[dtype], m_about(m_div(error, bound)));
    if (m_less(bound, m_scaled(ulp, dtype == TARN_F64 ? 2.1 : 0.51)))
        worst_value[dtype] = greater_of(worst_value[dtype], m_about(m_div(error, ulp)));
}

/* [top, top + log(n)/beta], mirrored for a negative beta. The near end is kept exactly; the far
 * end, which equal taps reach, within 1 ulp, and for f64, whose errors nothing rounds away,
 * within 2. */
static void check_range(const scene *s, tarn_dtype dtype, double got, const evaluated *e)
{
    double side = s->pool.beta > 0 ? 1 : -1;
    M far = m_add(e->top, m_div(m_log(m_of(e->parts)), m_of(s->pool.beta)));
    if (overflows(dtype, far))
        return;
    M slack = m_scaled(m_ulp(stored_format(dtype), far), dtype == TARN_F64 ? 2 : 1);
    M room = m_add(m_scaled(far, side), slack);
    CHECK(side * got >= side * m_about(e->top), "%s %a, beyond its greatest tap %a: %s",
          tarn_dtype_name(dtype), got, m_about(e->top), describe(s));
    CHECK(!m_less(room, m_of(side * got)), "%s %a, beyond %a: %s", tarn_dtype_name(dtype), got,
          m_about(far), describe(s));
}

/* Kinds of windows: numbers of one size; of all sizes; taps a few 1/beta around one centre, of any
 * size; small multiples of 1/beta; one number and copies of another, whose errors add up; and, for
 * f64, centres where t = beta*x itself is huge. */
enum { ONE_SIZE, ALL_SIZES, CLUSTER, AROUND_ZERO, COPIES, HUGE_CLUSTER, KINDS };

static void draw_window(rng *r, tarn_dtype dtype, double beta, int kind, double *x, int64_t n)
{
    double size = draw_size(r, dtype);
    double reach = ldexp(1, (int)rng_range(r, -3, 5));
    double centre = size * (1 + rng_unit(r));
    if (kind == HUGE_CLUSTER) { /* half of them astride a power of two: the spacing of t changes */
        double power = ldexp(1, (int)(rng_range(r, 0, 1) ? 50 : rng_range(r, 46, 58)));
        centre = power / beta * (1 + (rng_range(r, 0, 1) ? rng_unit(r) : 0));
    }
    centre = signed_by(r, centre);
    int signs = (int)rng_range(r, 0, 2); /* positive, negative, mixed */
    for (int64_t k = 0; k < n; k++) {
        double sign = signs == 0 || (signs == 2 && rng_range(r, 0, 1)) ? 1 : -1;
        double unit = rng_unit(r) * 2;
        switch (kind) {
        case ONE_SIZE:
            x[k] = sign * size * unit;
            break;
        case ALL_SIZES:
            x[k] = sign * draw_size(r, dtype) * unit;
            break;
        case AROUND_ZERO:
            x[k] = sign * unit * reach / beta;
            break;
        case COPIES:
            x[k] = k < 2 ? (k ? -4 : 1) * unit / beta : x[1];
            break;
        default:
            x[k] = centre + (unit - 1) * reach / beta;
            break;
        }
        x[k] = as_dtype(dtype, x[k]);
        if (isinf(x[k]))
            x[k] = as_dtype(dtype, sign * size);
    }
}

static void check_values(rng *r, tarn_dtype dtype, double beta, int kind)
{
    static scene s;
    static floats f;
    static window w;
    static evaluated e;
    arena.used = 0;
    global_scene(&s, TARN_SMOOTH, rng_range(r, 1, 49));
    s.pool.beta = beta;
    plan_scene(&s, dtype);
    draw_window(r, dtype, beta, kind, f.x, s.cells);
    memset(f.dx, 0, sizeof f.dx);
    f.gy[0] = 0;
    run_floats(&s, &f);
    list_window(&s, 0, &w);
    evaluate(&s, &w, f.x, &e);
    check_value(&s, dtype, f.y[0], &e);
    check_range(&s, dtype, f.y[0], &e);
}

static void sweep_values(rng *r)
{
    static const double betas[] = {1e-3, 1e-2,   0.1,    1.0,  10.0,  1e2,
                                   1e3,  0.3737, 1.4427, 7.31, 0.6931};
    for (int round = 0; round < ROUNDS(40); round++)
        for (size_t b = 0; b < 2 * sizeof betas / sizeof betas[0]; b++)
            for (int d = 0; d < 4; d++)
                for (int kind = 0; kind < KINDS; kind++)
                    if (kind != HUGE_CLUSTER || float_dtypes[d] == TARN_F64)
                        check_values(r, float_dtypes[d], betas[b / 2] * (b % 2 ? -1 : 1), kind);
}

/* ---- Derivatives --------------------------------------------------------------------------- */

static double worst_jvp[4], worst_vjp[4], worst_total[4]; /* error over bound */

/* Gradients and their bounds are gathered window by window. */
typedef struct gradients {
    M exact[MOST_ELEMENTS], relative[MOST_ELEMENTS];
} gradients;

/* The relative error of a weight, in u: the roundings of arguments, twice for short types, and
 * `fixed` others. */
static M weight_factor(tarn_dtype dtype, const evaluated *e, int tap, int fixed)
{
    M arguments = m_add(m_abs(e->t[tap]), e->pull);
    if (dtype == TARN_F64)
        return m_add(arguments, m_of(fixed));
    return m_add(m_scaled(arguments, 2), m_of(fixed + 2 * SHORT_ERROR / UNIT));
}

static void add_gradients(const scene *s, tarn_dtype dtype, const window *w, const evaluated *e,
                          double gy, int64_t base, gradients *g)
{
    for (int k = 0; k < w->taps; k++) {
        if (!w->tap[k].real)
            continue;
        int64_t cell = base + w->tap[k].cell;
        M term = m_scaled(e->weight[k], gy);
        int fixed = w->depth + reader_depth(s, w->tap[k].cell, false) + 8;
        M factor = weight_factor(dtype, e, k, fixed);
        g->exact[cell] = m_add(g->exact[cell], term);
        g->relative[cell] = m_add(g->relative[cell], m_mul(m_abs(term), factor));
    }
}

static M exact_tangent(tarn_dtype dtype, const window *w, const evaluated *e, const double *dx,
                       M *relative)
{
    M sum = m_of(0);
    *relative = m_of(0);
    for (int k = 0; k < w->taps; k++) {
        if (!w->tap[k].real)
            continue;
        M term = m_scaled(e->weight[k], dx[w->tap[k].cell]);
        M factor = weight_factor(dtype, e, k, 2 * w->depth + 8);
        sum = m_add(sum, term);
        *relative = m_add(*relative, m_mul(m_abs(term), factor));
    }
    return sum;
}

static void check_scene(const scene *s, tarn_dtype dtype, const floats *f)
{
    static window w;
    static evaluated e;
    static gradients g;
    static reals precise;
    run_precise(s, f, &precise);
    for (int64_t k = 0; k < s->planes * s->cells; k++)
        g.exact[k] = g.relative[k] = m_of(0);
    for (int64_t k = 0; k < s->planes * s->outs; k++) {
        int64_t base = k / s->outs * s->cells;
        M relative;
        list_window(s, k % s->outs, &w);
        evaluate(s, &w, f->x + base, &e);
        M tangent = exact_tangent(dtype, &w, &e, f->dx + base, &relative);
        add_gradients(s, dtype, &w, &e, f->gy[k], base, &g);
        if (e.parts > 0)
            check_value(s, dtype, f->y[k], &e);
        else
            CHECK(f->y[k] == 0 && f->dy[k] == 0, "%s", describe(s));
        worst_jvp[dtype] = greater_of(worst_jvp[dtype],
                                      check_within(s, dtype, "jvp", f->dy[k], tangent, relative));
        M range = m_of(1 / fabs(s->pool.beta));
        check_close(s, "value", precise.y[k], e.value, m_add(m_abs(e.value), range));
        check_close(s, "jvp", precise.dy[k], tangent, relative);
    }
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        worst_vjp[dtype] = greater_of(
            worst_vjp[dtype], check_within(s, dtype, "vjp", f->gx[k], g.exact[k], g.relative[k]));
        check_close(s, "vjp", precise.gx[k], g.exact[k], g.relative[k]);
    }
}

static void check_random_scene(rng *r, tarn_dtype dtype)
{
    static scene s;
    static floats f;
    arena.used = 0;
    draw_scene(r, &s, TARN_SMOOTH);
    s.pool.beta = rng_unit(r) + 0.5;
    s.pool.beta = ldexp(s.pool.beta, (int)rng_range(r, -8, 8));
    s.pool.beta = signed_by(r, s.pool.beta);
    plan_scene(&s, dtype);
    double reach = ldexp(1, (int)rng_range(r, -4, 12)) / fabs(s.pool.beta);
    for (int64_t k = 0; k < s.planes * s.cells; k++) {
        f.x[k] = as_dtype(dtype, (2 * rng_unit(r) - 1) * (reach < 1e4 ? reach : 1e4));
        f.dx[k] = as_dtype(dtype, 2 * rng_unit(r) - 1);
    }
    for (int64_t k = 0; k < s.planes * s.outs; k++)
        f.gy[k] = as_dtype(dtype, 2 * rng_unit(r) - 1);
    run_floats(&s, &f);
    check_scene(&s, dtype, &f);
}

/* The VJP of 1 over one window is the weights themselves. */
static void check_total(rng *r, tarn_dtype dtype)
{
    static scene s;
    static floats f;
    arena.used = 0;
    global_scene(&s, TARN_SMOOTH, rng_range(r, 1, 200));
    s.pool.beta = rng_range(r, 0, 1) ? 3.7 : -0.41;
    plan_scene(&s, dtype);
    double reach = ldexp(1, (int)rng_range(r, -4, 15));
    for (int64_t k = 0; k < s.cells; k++) {
        f.x[k] = as_dtype(dtype, (2 * rng_unit(r) - 1) * reach);
        f.dx[k] = 1;
    }
    f.gy[0] = 1;
    run_floats(&s, &f);
    M total = m_of(0), bound = m_of((ceil_log2(s.cells) + 4) * UNIT);
    for (int64_t k = 0; k < s.cells; k++) {
        total = m_add(total, m_of(f.gx[k]));
        if (dtype != TARN_F64)
            bound = m_add(bound, m_scaled(m_ulp(stored_format(dtype), m_of(f.gx[k])), 0.5));
    }
    double ratio = m_about(m_div(m_abs(m_sub(total, m_of(1))), bound));
    CHECK(ratio <= 1, "%s weights add up to 1 + %g", tarn_dtype_name(dtype), m_about(total) - 1);
    CHECK(fabs(f.dy[0] - 1) <= ldexp(ceil_log2(s.cells) + 4, -stored_format(dtype).precision),
          "%s tangent of ones is %a", tarn_dtype_name(dtype), f.dy[0]);
    worst_total[dtype] = greater_of(worst_total[dtype], ratio);
}

/* ---- Values that are not numbers, and taps that are not there ------------------------------ */

static void run_special(scene *s, tarn_dtype dtype, double beta, const double *x, floats *f)
{
    s->pool.beta = beta;
    measure_scene(s);
    plan_scene(s, dtype);
    for (int64_t k = 0; k < s->cells; k++) {
        f->x[k] = x[k];
        f->dx[k] = (double)(k + 1);
    }
    for (int64_t k = 0; k < s->outs; k++)
        f->gy[k] = (double)(k + 1);
    run_floats(s, f);
}

static void check_infinities(tarn_dtype dtype, double sign)
{
    static floats f;
    scene s;
    const double two[] = {INFINITY * sign, 1, INFINITY * sign}, none[] = {-INFINITY * sign, 1, 1};
    const double all[] = {-INFINITY * sign, -INFINITY * sign, -INFINITY * sign, -INFINITY * sign};
    global_scene(&s, TARN_SMOOTH, 3);
    run_special(&s, dtype, sign * 2, two, &f);
    CHECK(f.y[0] == two[0] && f.dy[0] == 2, "%a %a", f.y[0], f.dy[0]);
    CHECK(f.gx[0] == 0.5 && f.gx[1] == 0 && f.gx[2] == 0.5, "%a %a", f.gx[0], f.gx[1]);
    run_special(&s, dtype, sign * 2, none, &f);
    CHECK(fabs(f.y[0] - (1 + sign * 0.34657359)) < 0.01, "%a", f.y[0]);
    CHECK(fabs(f.dy[0] - 2.5) < 1e-15, "%a", f.dy[0]);
    CHECK(f.gx[0] == 0 && f.gx[1] == 0.5 && f.gx[2] == 0.5, "%a %a", f.gx[0], f.gx[1]);
    global_scene(&s, TARN_SMOOTH, 4);
    run_special(&s, dtype, sign * 2, all, &f);
    CHECK(f.y[0] == all[0] && f.dy[0] == 2.5, "%a %a", f.y[0], f.dy[0]);
    for (int k = 0; k < 4; k++)
        CHECK(f.gx[k] == 0.25, "%a", f.gx[k]);
}

/* A cell at -inf between a window of nothing else and one with a number. */
static void check_infinite_neighbours(tarn_dtype dtype)
{
    static floats f;
    const double x[] = {-INFINITY, -INFINITY, 5};
    scene s = {.rank = 1, .shape = {3}, .size = {3}};
    s.pool = tarn_smooth_pool(1, 1);
    s.pool.kernel[0] = 2;
    run_special(&s, dtype, 1, x, &f);
    CHECK(f.y[0] == -INFINITY && f.y[1] == 5, "%a %a", f.y[0], f.y[1]);
    CHECK(f.gx[0] == 0.5 && f.gx[1] == 0.5 && f.gx[2] == 2, "%a %a %a", f.gx[0], f.gx[1], f.gx[2]);
}

/* The weight beside the first NaN is 2^2885: the NaN must not be shifted out of sight. */
static void check_nan(tarn_dtype dtype)
{
    static floats f;
    const double x[] = {-1000, NAN, 3, 3, INFINITY};
    scene s = {.rank = 1, .shape = {5}, .size = {5}};
    s.pool = tarn_smooth_pool(1, 1);
    s.pool.kernel[0] = 2;
    run_special(&s, dtype, -2, x, &f);
    CHECK(isnan(f.y[0]) && isnan(f.y[1]) && fabs(f.y[2] - 2.6534264) < 0.01 && f.y[3] == 3,
          "%a %a %a %a", f.y[0], f.y[1], f.y[2], f.y[3]);
    CHECK(isnan(f.dy[0]) && isnan(f.dy[1]) && f.dy[2] == 3.5 && f.dy[3] == 4, "%a %a %a %a",
          f.dy[0], f.dy[1], f.dy[2], f.dy[3]);
    CHECK(isnan(f.gx[0]) && isnan(f.gx[1]) && isnan(f.gx[2]) && f.gx[3] == 5.5 && f.gx[4] == 0,
          "%a %a %a %a %a", f.gx[0], f.gx[1], f.gx[2], f.gx[3], f.gx[4]);
}

/* Kernel 3 around one cell, and windows of padding alone on both sides of it. */
static void check_padding(tarn_dtype dtype, int counts)
{
    static floats f;
    static window w;
    static evaluated e;
    const double x[] = {-0.5};
    scene s = {.rank = 1, .shape = {1}, .size = {1}};
    s.pool = tarn_smooth_pool(1, 1);
    s.pool.kernel[0] = 3;
    s.pool.pad_lo[0] = s.pool.pad_hi[0] = 4;
    s.pool.count_include_pad = counts;
    run_special(&s, dtype, 2, x, &f);
    CHECK(s.outs == 7, "%lld", (long long)s.outs);
    for (int64_t k = 0; k < s.outs; k++) {
        list_window(&s, k, &w);
        evaluate(&s, &w, f.x, &e);
        if (e.parts > 0)
            check_value(&s, dtype, f.y[k], &e);
        if (w.real == 0)
            CHECK(f.dy[k] == 0, "%a", f.dy[k]);
        if (!counts)
            CHECK(f.y[k] == (w.real ? -0.5 : 0), "%a", f.y[k]);
    }
    double weight = counts ? exp(-1.0) / (2 + exp(-1.0)) : 1;
    CHECK(fabs(f.gx[0] - 12 * weight) < 0.02, "%a", f.gx[0]); /* of 3 + 4 + 5 */
}

static void check_special_values(void)
{
    for (int d = 0; d < 4; d++) {
        arena.used = 0;
        check_infinities(float_dtypes[d], 1);
        check_infinities(float_dtypes[d], -1);
        check_infinite_neighbours(float_dtypes[d]);
        check_nan(float_dtypes[d]);
        check_padding(float_dtypes[d], 1);
        check_padding(float_dtypes[d], 0);
    }
}

int main(void)
{
    rng r = {20240608};
    mpfr_set_emin(mpfr_get_emin_min()); /* room for e^(2^50) */
    mpfr_set_emax(mpfr_get_emax_max());
    check_exp_and_log(&r);
    check_special_values();
    for (int round = 0; round < ROUNDS(300); round++)
        for (int d = 0; d < 4; d++) {
            check_random_scene(&r, float_dtypes[d]);
            check_total(&r, float_dtypes[d]);
        }
    sweep_values(&r);
    report("smooth value, largest error in ulp", worst_value);
    report("smooth value, largest error/bound", worst_ratio);
    report("smooth jvp, largest error/bound", worst_jvp);
    report("smooth vjp, largest error/bound", worst_vjp);
    report("sum of weights, largest error/bound", worst_total);
    free_arena();
    return finish_checks();
}
