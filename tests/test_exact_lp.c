/* Lp against multiple precision (MPFR).
 *
 * src/spec/spec.inc, instantiated for 320-bit numbers, is compared with a naive evaluation of the
 * formula; the library's own results, and the powers they are made from, are then held to that
 * evaluation. The bounds are those of clause N7: with u = 2^-53, D the depth of the pairwise sum of
 * the window, R that of the windows of a cell and n taps, value   the relative error is at most
 * norm_error() * u: powers err by up to (1.25p + 1.5)u, and so does the greatest of them, by
 *          which they are divided,
 *  jvp     sum w_i|dx_i| * (weight_error() + D)u,
 *  vjp     sum_o |gy_o|w_io * (weight_error() + R)u,
 * and half a unit of the stored type. */
#include "precise.h"
#include "spec/power.h"

static double norm_error(double p, int depth, int64_t taps)
{
    if (p == 1 || p == 2)
        return p == 1 ? depth + 1 : depth / 2.0 + 2;
    return 5 + (depth + 2 * log((double)taps) + 4) / p;
}

static double weight_error(double p, int depth, int64_t taps)
{
    return (p - 1) * (8 + (depth + 2 * log((double)taps) + 4) / p) + 4;
}

/* ---- The formula, evaluated naively -------------------------------------------------------- */

/* One window: its greatest |x|, norm, and sign(x)*(|x|/y)^(p-1) for each real tap. */
typedef struct evaluated {
    M top, norm;
    M weight[MOST_TAPS];
} evaluated;

/* x over the greatest |x|, to the power q: nothing is too large for MPFR, but quotients near 1 keep
 * more digits than huge powers. */
static M relative_power(double x, M top, double q)
{
    M power = m_pow(m_div(m_abs(m_of(x)), top), m_of(q));
    return x == 0 ? m_of(0) : power;
}

static void evaluate(const scene *s, const window *w, const double *x, evaluated *e)
{
    double p = s->pool.power;
    M sum = m_of(0);
    e->top = e->norm = m_of(0);
    for (int k = 0; k < w->taps; k++) {
        e->weight[k] = m_of(0);
        if (w->tap[k].real)
            e->top = m_max(e->top, m_abs(m_of(x[w->tap[k].cell])));
    }
    if (mpfr_zero_p(e->top->value))
        return;
    for (int k = 0; k < w->taps; k++)
        if (w->tap[k].real)
            sum = m_add(sum, relative_power(x[w->tap[k].cell], e->top, p));
    e->norm = m_mul(e->top, m_pow(sum, m_div(m_of(1), m_of(p))));
    for (int k = 0; k < w->taps; k++) {
        if (!w->tap[k].real)
            continue;
        double tap = x[w->tap[k].cell];
        e->weight[k] = m_scaled(relative_power(tap, e->norm, p - 1), tap < 0 ? -1 : 1);
    }
}

/* ---- Powers -------------------------------------------------------------------------------- */

/* Error of |x|^q in units of u, over 1.25*q + 1.5. */
static double power_error(double x, double q)
{
    tarn_weight power = weight_power(magnitude(x), q);
    M exact = m_pow(m_abs(m_of(x)), m_of(q));
    CHECK(power.exponent == floor(power.exponent), "%a^%a", x, q);
    mpfr_mul_2si(exact->value, exact->value, -(long)power.exponent, MPFR_RNDN);
    M error = m_div(m_abs(m_sub(m_of(power.mantissa), exact)), exact);
    return m_about(error) / UNIT / (1.25 * q + 1.5);
}

static double draw_power(rng *r)
{
    static const double usual[] = {1, 2, 3, 4, 1.5, 2.5, 7, 1e3, 0x1p40, 1.0000000000000002};
    double fraction = rng_unit(r);
    return rng_range(r, 0, 1)
               ? usual[rng_range(r, 0, 9)]
               : ldexp(1 + fraction, (int)rng_range(r, 0, rng_range(r, 0, 1) ? 4 : 39));
}

static void check_powers(rng *r)
{
    double worst = 0;
    for (int k = 0; k < ROUNDS(40000); k++) {
        arena.used = 0;
        double x = ldexp(1 + rng_unit(r), (int)rng_range(r, -1074, 1022)), q = draw_power(r);
        if (rng_range(r, 0, 2) == 0)
            x = neighbour(rng_range(r, 0, 1) ? 1.4142135623730951 : 1, rng_range(r, -4, 4));
        if (rng_range(r, 0, 2) == 0 && q > 1)
            q -= 1;
        worst = greater_of(worst, power_error(x, q));
    }
    CHECK(worst <= 1, "powers are off by %g times their bound", worst);
    printf("powers, largest error/bound: %.3f\n", worst);
}

/* ---- Values -------------------------------------------------------------------------------- */

static double worst_value[4], worst_jvp[4], worst_vjp[4]; /* error over bound */

static void check_value(const scene *s, tarn_dtype dtype, double got, const window *w,
                        const evaluated *e)
{
    double factor = norm_error(s->pool.power, w->depth, w->taps);
    if (overflows(dtype, m_scaled(e->norm, 1 + factor * UNIT))) {
        CHECK(isinf(got) || got >= m_about(e->top), "%s %a: %s", tarn_dtype_name(dtype), got,
              describe(s));
        return;
    }
    M bound = m_add(m_scaled(e->norm, factor * UNIT), m_of(0x1p-1074));
    if (dtype != TARN_F64)
        bound = m_add(bound, m_scaled(m_ulp(stored_format(dtype), m_add(e->norm, bound)), 0.5));
    double ratio = m_about(m_div(m_abs(m_sub(m_of(got), e->norm)), bound));
    CHECK(ratio <= 1, "%s %a instead of %a, %g times the bound, p %a: %s", tarn_dtype_name(dtype),
          got, m_about(e->norm), ratio, s->pool.power, describe(s));
    CHECK(!m_less(m_of(got), e->top), "%s %a is below its greatest tap %a, p %a: %s",
          tarn_dtype_name(dtype), got, m_about(e->top), s->pool.power, describe(s));
    worst_value[dtype] = greater_of(worst_value[dtype], ratio);
}

/* Kinds of windows: numbers of one size; of all sizes; copies of one number; neighbours of it. */
enum { ONE_SIZE, ALL_SIZES, COPIES, NEIGHBOURS, KINDS };

static void draw_window(rng *r, tarn_dtype dtype, int kind, double *x, int64_t n)
{
    double size = draw_size(r, dtype), first = size * (1 + rng_unit(r));
    for (int64_t k = 0; k < n; k++) {
        double unit = rng_unit(r) * 2;
        double value = kind == ONE_SIZE    ? size * unit
                       : kind == ALL_SIZES ? draw_size(r, dtype) * unit
                       : kind == COPIES    ? first
                                           : first * (1 + unit * 0x1p-40);
        value = as_dtype(dtype, value);
        x[k] = signed_by(r, isinf(value) ? as_dtype(dtype, size) : value);
    }
}

static void check_values(rng *r, tarn_dtype dtype, int kind)
{
    static scene s;
    static floats f;
    static window w;
    static evaluated e;
    arena.used = 0;
    global_scene(&s, TARN_LP, rng_range(r, 1, rng_range(r, 0, 3) ? 9 : 200));
    s.pool.power = draw_power(r);
    plan_scene(&s, dtype);
    draw_window(r, dtype, kind, f.x, s.cells);
    memset(f.dx, 0, sizeof f.dx);
    f.gy[0] = 0;
    run_floats(&s, &f);
    list_window(&s, 0, &w);
    evaluate(&s, &w, f.x, &e);
    check_value(&s, dtype, f.y[0], &w, &e);
    if (s.cells == 1)
        CHECK(f.y[0] == fabs(f.x[0]), "|%a| is %a for p %a", f.x[0], f.y[0], s.pool.power);
}

/* ---- Derivatives --------------------------------------------------------------------------- */

static void check_scene(const scene *s, tarn_dtype dtype, const floats *f)
{
    static window w;
    static evaluated e;
    static reals precise;
    static M exact[MOST_ELEMENTS], relative[MOST_ELEMENTS];
    run_precise(s, f, &precise);
    for (int64_t k = 0; k < s->planes * s->cells; k++)
        exact[k] = relative[k] = m_of(0);
    for (int64_t k = 0; k < s->planes * s->outs; k++) {
        int64_t base = k / s->outs * s->cells;
        M tangent = m_of(0), tangent_bound = m_of(0);
        list_window(s, k % s->outs, &w);
        evaluate(s, &w, f->x + base, &e);
        double factor = weight_error(s->pool.power, w.depth, w.taps);
        for (int j = 0; j < w.taps; j++) {
            if (!w.tap[j].real)
                continue;
            int64_t cell = base + w.tap[j].cell;
            M forth = m_scaled(e.weight[j], f->dx[cell]), back = m_scaled(e.weight[j], f->gy[k]);
            int depth = reader_depth(s, w.tap[j].cell, false);
            tangent = m_add(tangent, forth);
            tangent_bound = m_add(tangent_bound, m_scaled(m_abs(forth), factor + w.depth));
            exact[cell] = m_add(exact[cell], back);
            relative[cell] = m_add(relative[cell], m_scaled(m_abs(back), factor + depth));
        }
        check_value(s, dtype, f->y[k], &w, &e);
        worst_jvp[dtype] =
            greater_of(worst_jvp[dtype],
                       check_within(s, dtype, "jvp", f->dy[k], tangent, tangent_bound));
        check_close(s, "value", precise.y[k], e.norm, e.norm);
        check_close(s, "jvp", precise.dy[k], tangent, tangent_bound);
    }
    for (int64_t k = 0; k < s->planes * s->cells; k++) {
        worst_vjp[dtype] = greater_of(
            worst_vjp[dtype], check_within(s, dtype, "vjp", f->gx[k], exact[k], relative[k]));
        check_close(s, "vjp", precise.gx[k], exact[k], relative[k]);
    }
}

static void check_random_scene(rng *r, tarn_dtype dtype)
{
    static scene s;
    static floats f;
    arena.used = 0;
    draw_scene(r, &s, TARN_LP);
    s.pool.power = draw_power(r);
    plan_scene(&s, dtype);
    double size = dtype == TARN_F64 ? draw_size(r, dtype) : 1, zeros = rng_unit(r);
    for (int64_t k = 0; k < s.planes * s.cells; k++) {
        f.x[k] = as_dtype(dtype, (2 * rng_unit(r) - 1) * size);
        f.dx[k] = as_dtype(dtype, 2 * rng_unit(r) - 1);
        if (rng_unit(r) < zeros * zeros)
            f.x[k] = 0;
    }
    for (int64_t k = 0; k < s.planes * s.outs; k++)
        f.gy[k] = as_dtype(dtype, 2 * rng_unit(r) - 1);
    run_floats(&s, &f);
    check_scene(&s, dtype, &f);
}

/* ---- Values that are not numbers, zeros, and taps that are not there ----------------------- */

static void run_row(double p, tarn_dtype dtype, int64_t kernel, const double *x, int64_t n,
                    floats *f)
{
    scene s = {.rank = 1, .shape = {n}, .size = {n}};
    s.pool = tarn_lp_pool(1, p);
    s.pool.kernel[0] = kernel;
    measure_scene(&s);
    plan_scene(&s, dtype);
    for (int64_t k = 0; k < n; k++) {
        f->x[k] = x[k];
        f->dx[k] = (double)(k + 1);
    }
    for (int64_t k = 0; k < s.outs; k++)
        f->gy[k] = (double)(k + 1);
    run_floats(&s, f);
}

/* [N6] Four infinite taps share evenly; finite ones beside them weigh nothing. */
static void check_infinities(tarn_dtype dtype)
{
    static floats f;
    const double x[] = {INFINITY, 1, -INFINITY, INFINITY, INFINITY};
    run_row(2, dtype, 5, x, 5, &f);
    CHECK(f.y[0] == INFINITY && f.dy[0] == (1 - 3 + 4 + 5) / 2.0, "%a %a", f.y[0], f.dy[0]);
    CHECK(f.gx[0] == 0.5 && f.gx[1] == 0 && f.gx[2] == -0.5, "%a %a %a", f.gx[0], f.gx[1], f.gx[2]);
    run_row(1, dtype, 5, x, 5, &f);
    CHECK(f.y[0] == INFINITY && f.dy[0] == 1 + 2 - 3 + 4 + 5, "%a %a", f.y[0], f.dy[0]);
    CHECK(f.gx[0] == 1 && f.gx[1] == 1 && f.gx[2] == -1, "%a %a %a", f.gx[0], f.gx[1], f.gx[2]);
    run_row(3, dtype, 5, x, 5, &f);
    double third = pow(4, -2.0 / 3);
    CHECK(f.y[0] == INFINITY && fabs(f.gx[2] + third) < 0.004 && f.gx[1] == 0, "%a", f.gx[2]);
}

static void check_nan(tarn_dtype dtype, double p)
{
    static floats f;
    const double x[] = {1, NAN, INFINITY, 3, 0};
    run_row(p, dtype, 2, x, 5, &f);
    CHECK(isnan(f.y[0]) && isnan(f.y[1]) && f.y[2] == INFINITY && f.y[3] == 3, "%a", f.y[2]);
    CHECK(isnan(f.dy[0]) && isnan(f.dy[1]) && f.dy[3] == 4, "%a", f.dy[3]);
    CHECK(isnan(f.gx[0]) && isnan(f.gx[1]) && isnan(f.gx[2]) && f.gx[4] == 0, "%a", f.gx[4]);
    CHECK(f.gx[3] == (p == 1 ? 7 : 4), "%a", f.gx[3]);
}

/* [N4] A zero has weight 0, and a window of zeros no derivative, whatever the tangents are. */
static void check_zeros(tarn_dtype dtype, double p)
{
    static floats f;
    const double x[] = {0, -0.0, 0, -2, 0};
    run_row(p, dtype, 2, x, 5, &f);
    CHECK(f.y[0] == 0 && !signbit(f.y[0]) && f.y[2] == 2 && f.y[3] == 2, "%a %a", f.y[0], f.y[2]);
    CHECK(f.dy[0] == 0 && f.dy[2] == -4 && f.dy[3] == -4, "%a %a", f.dy[0], f.dy[2]);
    CHECK(f.gx[0] == 0 && f.gx[1] == 0 && f.gx[2] == 0 && fabs(f.gx[3] + 7) < 1e-14, "%a %a",
          f.gx[2], f.gx[3]);
}

/* [N1] Beyond 2^40 nothing changes. */
static void check_huge_power(tarn_dtype dtype)
{
    static floats limit, beyond;
    const double x[] = {1, -2, 2, 0.5, 1.75, -1.75};
    run_row(0x1p40, dtype, 3, x, 6, &limit);
    run_row(1e300, dtype, 3, x, 6, &beyond);
    CHECK(memcmp(limit.y, beyond.y, 4 * sizeof(double)) == 0 &&
              memcmp(limit.dy, beyond.dy, 4 * sizeof(double)) == 0 &&
              memcmp(limit.gx, beyond.gx, 6 * sizeof(double)) == 0,
          "p 2^40 and 1e300");
    CHECK(fabs(limit.y[0] - 2) < 1e-11 && fabs(limit.y[3] - 1.75) < 1e-11, "%a", limit.y[0]);
}

/* Neither squares nor cubes of such numbers are numbers of binary64. */
static void check_ends_of_range(void)
{
    static floats f;
    const double sizes[] = {0x1p1000, 0x1p-1000, 0x1p-1074};
    for (int k = 0; k < 3; k++) {
        const double x[] = {3 * sizes[k], -4 * sizes[k]};
        run_row(2, TARN_F64, 2, x, 2, &f);
        CHECK(f.y[0] == 5 * sizes[k] && f.dy[0] == -1 && fabs(f.gx[0] - 0.6) < 1e-15 &&
                  fabs(f.gx[1] + 0.8) < 1e-15,
              "%a %a %a %a", f.y[0], f.dy[0], f.gx[0], f.gx[1]);
        run_row(3, TARN_F64, 2, x, 2, &f);
        CHECK(fabs(f.y[0] / sizes[k] - 4.497941445275415) < 0.51, "%a", f.y[0] / sizes[k]);
        CHECK(fabs(f.gx[0] - 0.44485) < 1e-4 && fabs(f.gx[1] + 0.79083) < 1e-4, "%a", f.gx[0]);
    }
    const double x[] = {0x1.8p1023, -0x1.8p1023}; /* the norm is no number, its derivative is */
    run_row(2, TARN_F64, 2, x, 2, &f);
    CHECK(isinf(f.y[0]) && fabs(f.gx[0] - sqrt(0.5)) < 1e-15, "%a %a", f.y[0], f.gx[0]);
}

static void check_special_values(void)
{
    for (int d = 0; d < 4; d++) {
        arena.used = 0;
        check_infinities(float_dtypes[d]);
        check_huge_power(float_dtypes[d]);
        for (int k = 0; k < 4; k++) {
            check_nan(float_dtypes[d], (double[]){1, 2, 3, 1.5}[k]);
            check_zeros(float_dtypes[d], (double[]){1, 2, 3, 1.5}[k]);
        }
    }
    check_ends_of_range();
}

int main(void)
{
    rng r = {20240609};
    mpfr_set_emin(mpfr_get_emin_min()); /* room for 2^(2^51) */
    mpfr_set_emax(mpfr_get_emax_max());
    check_powers(&r);
    check_special_values();
    for (int round = 0; round < ROUNDS(100); round++)
        for (int d = 0; d < 4; d++) {
            check_random_scene(&r, float_dtypes[d]);
            for (int kind = 0; kind < 5 * KINDS; kind++)
                check_values(&r, float_dtypes[d], kind % KINDS);
        }
    report("lp value, largest error/bound", worst_value);
    report("lp jvp, largest error/bound", worst_jvp);
    report("lp vjp, largest error/bound", worst_vjp);
    free_arena();
    return finish_checks();
}
