/* The specification in multiple precision (MPFR), for tests: src/spec/spec.inc instantiated for
 * 320-bit numbers, and what is needed to hold the library to them. */
#ifndef TARN_PRECISE_H
#define TARN_PRECISE_H

#include "exact.h"

#include <mpfr.h>

enum { PRECISION = 320 };
#define UNIT 0x1p-53

/* ---- Reals with value semantics ------------------------------------------------------------ */

typedef struct real {
    mpfr_t value;
} * M;

static struct {
    M *item;
    size_t used, made, room;
} arena;

_Static_assert(sizeof(M) == 8, "arrays of reals borrow the strides and bytes of f64 tensors");

static inline M m_new(void)
{
    if (arena.used == arena.room) {
        arena.room = arena.room ? 2 * arena.room : 4096;
        arena.item = realloc(arena.item, arena.room * sizeof *arena.item);
    }
    if (arena.used == arena.made) {
        arena.item[arena.made] = malloc(sizeof *arena.item[0]);
        mpfr_init2(arena.item[arena.made++]->value, PRECISION);
    }
    return arena.item[arena.used++];
}

static inline void free_arena(void)
{
    for (size_t k = 0; k < arena.made; k++) {
        mpfr_clear(arena.item[k]->value);
        free(arena.item[k]);
    }
    free(arena.item);
    mpfr_free_cache();
}

static inline M m_of(double value)
{
    M m = m_new();
    mpfr_set_d(m->value, value, MPFR_RNDN);
    return m;
}

#define M_BINARY(name, operation)                                                                  \
    static inline M name(M a, M b)                                                                 \
    {                                                                                              \
        M m = m_new();                                                                             \
        operation(m->value, a->value, b->value, MPFR_RNDN);                                        \
        return m;                                                                                  \
    }
#define M_UNARY(name, operation)                                                                   \
    static inline M name(M a)                                                                      \
    {                                                                                              \
        M m = m_new();                                                                             \
        operation(m->value, a->value, MPFR_RNDN);                                                  \
        return m;                                                                                  \
    }
M_BINARY(m_add, mpfr_add)
M_BINARY(m_sub, mpfr_sub)
M_BINARY(m_mul, mpfr_mul)
M_BINARY(m_div, mpfr_div)
M_BINARY(m_max, mpfr_max)
M_UNARY(m_exp, mpfr_exp)
M_UNARY(m_log, mpfr_log)
M_UNARY(m_log1p, mpfr_log1p)
M_UNARY(m_abs, mpfr_abs)
M_BINARY(m_pow, mpfr_pow)

static inline M m_scaled(M a, double factor)
{
    M m = m_new();
    mpfr_mul_d(m->value, a->value, factor, MPFR_RNDN);
    return m;
}

static inline bool m_less(M a, M b)
{
    return mpfr_less_p(a->value, b->value) != 0;
}

static inline double m_about(M a)
{
    return mpfr_get_d(a->value, MPFR_RNDN);
}

/* The unit in the last place that a format has at |a|. */
static inline M m_ulp(format f, M a)
{
    M m = m_of(1.0);
    mpfr_exp_t e = mpfr_zero_p(a->value) ? f.least : mpfr_get_exp(a->value) - 1;
    mpfr_mul_2si(m->value, m->value, (long)(e < f.least ? f.least : e) - f.precision + 1,
                 MPFR_RNDN);
    return m;
}

/* ---- The specification, instantiated ------------------------------------------------------- */

/* A weight is mantissa * e^exponent, the exponent being the greatest beta*x so far. */
typedef struct weight {
    M mantissa, exponent;
} weight;

static inline M brought_to(weight w, M exponent)
{
    if (mpfr_equal_p(w.exponent->value, exponent->value)) /* equal infinities, too */
        return w.mantissa;
    return m_mul(w.mantissa, m_exp(m_sub(w.exponent, exponent)));
}

static inline weight w_zero(void)
{
    return (weight){m_of(0), m_of(-INFINITY)};
}

static inline weight w_add(weight a, weight b)
{
    M top = m_max(a.exponent, b.exponent);
    return (weight){m_add(brought_to(a, top), brought_to(b, top)), top};
}

static inline weight w_exp(double beta, M x)
{
    return (weight){m_of(1), m_scaled(x, beta)};
}

static inline weight w_times(weight w, M x)
{
    return (weight){m_mul(w.mantissa, x), w.exponent};
}

static inline M w_value(double beta, weight w)
{
    return m_div(m_add(w.exponent, m_log(w.mantissa)), m_of(beta));
}

static inline weight w_share(M gy, weight sum)
{
    return (weight){m_div(gy, sum.mantissa), m_scaled(sum.exponent, -1)};
}

static inline M w_gradient(weight w, weight shares)
{
    if (mpfr_zero_p(shares.mantissa->value))
        return m_of(0);
    return m_mul(m_mul(w.mantissa, shares.mantissa), m_exp(m_add(w.exponent, shares.exponent)));
}

/* Powers of Lp are plain numbers: the range of exponents is wide enough for 2^(2^51). */
static inline weight w_plain(M value)
{
    return (weight){value, m_of(0)};
}

static inline bool w_is_zero(weight w)
{
    return mpfr_zero_p(w.mantissa->value) != 0;
}

static inline weight w_power_of(weight w, double q)
{
    M base = brought_to(w, m_of(0));
    return w_plain(mpfr_zero_p(base->value) ? base : m_pow(base, m_of(q)));
}

static inline weight w_signed_power(M x, double q)
{
    weight power = w_power_of(w_plain(m_abs(x)), q);
    mpfr_copysign(power.mantissa->value, power.mantissa->value, x->value, MPFR_RNDN);
    return power;
}

static inline weight w_norm(double p, weight sum)
{
    M base = brought_to(sum, m_of(0));
    return w_plain(mpfr_zero_p(base->value) ? base : m_pow(base, m_div(m_of(1), m_of(p))));
}

static inline M w_slope(weight numerator, weight denominator)
{
    if (w_is_zero(denominator))
        return m_of(0);
    return m_div(brought_to(numerator, m_of(0)), denominator.mantissa);
}

#define SPEC_DERIVATIVES 1
#define FN(name) precise_##name
#define S M
#define A M
#define LOAD(s) (s)
#define STORE(a) (a)
#define ZERO m_of(0)
#define ADD(a, b) m_add(a, b)
#define FROM_COUNT(n) m_of((double)(n))
#define DIVIDE(a, b) m_div(a, b)
#define MEAN(a, n) m_div(a, m_of((double)(n)))
#define LESS(s, t) m_less(s, t)
#define IS_NAN(s) (mpfr_nan_p((s)->value) != 0)
#define W weight
#define W_ZERO w_zero()
#define W_ADD(w, v) w_add(w, v)
#define W_EXP(beta, s) w_exp(beta, s)
#define W_COUNT(n) ((weight){m_of((double)(n)), m_of(0)})
#define W_TIMES(w, s) w_times(w, s)
#define W_VALUE(top, beta, w) ((void)(top), w_value(beta, w))
#define W_TANGENT(w, v) m_div(brought_to(w, (v).exponent), (v).mantissa)
#define W_SHARE(s, w) w_share(s, w)
#define W_GRADIENT(w, v) w_gradient(w, v)
#define MAGNITUDE(s) m_abs(s)
#define W_POWER(s, q) w_power_of(w_plain(m_abs(s)), q)
#define W_SIGNED_POWER(s, q) w_signed_power(s, q)
#define W_NORM(top, p, w) ((void)(top), w_norm(p, w))
#define W_POWER_OF(w, q) w_power_of(w, q)
#define W_NUMBER(w) brought_to(w, m_of(0))
#define W_SLOPE(w, v) w_slope(w, v)
#define W_LP_SHARE(s, w) (w_is_zero(w) ? w_zero() : w_share(s, w))
#include "spec/spec.inc"

typedef struct reals {
    M y[MOST_ELEMENTS], dy[MOST_ELEMENTS], gx[MOST_ELEMENTS];
} reals;

static inline void put_reals(const scene *s, int operand, const double *logical, M *memory)
{
    for (int64_t k = 0; k < elements_of(s, operand); k++)
        memory[place_in_view(&s->plan.view[operand], k)] = m_of(logical[k]);
}

static inline void get_reals(const scene *s, int operand, M *logical, M const *memory)
{
    for (int64_t k = 0; k < elements_of(s, operand); k++)
        logical[k] = memory[place_in_view(&s->plan.view[operand], k)];
}

static inline void run_precise(const scene *planned, const floats *f, reals *result)
{
    static scene wide, *s = &wide;
    static M x[MOST_ELEMENTS], y[MOST_ELEMENTS], dx[MOST_ELEMENTS], dy[MOST_ELEMENTS];
    static M gx[MOST_ELEMENTS], gy[MOST_ELEMENTS];
    const tarn_problem *p = &s->plan.problem;
    tarn_tensors t = {{[TARN_X] = (char *)x,
                       [TARN_Y] = (char *)y,
                       [TARN_DX] = (char *)dx,
                       [TARN_DY] = (char *)dy,
                       [TARN_GX] = (char *)gx,
                       [TARN_GY] = (char *)gy}};
    wide = *planned;
    plan_scene(s, TARN_F64);
    put_reals(s, TARN_X, f->x, x);
    put_reals(s, TARN_DX, f->dx, dx);
    put_reals(s, TARN_GY, f->gy, gy);
    precise_forward(p, &t, 0, p->planes * p->axis[0].out);
    precise_jvp(p, &t, 0, p->planes * p->axis[0].out);
    precise_vjp(p, &t, 0, p->planes * p->axis[0].size);
    get_reals(s, TARN_Y, result->y, y);
    get_reals(s, TARN_DY, result->dy, dy);
    get_reals(s, TARN_GX, result->gx, gx);
}

/* ---- Measuring ----------------------------------------------------------------------------- */

static inline double greater_of(double a, double b)
{
    return a > b ? a : b;
}

/* Units in the last place of f64 between `got` and what it should be. */
static inline double error_in_ulps(double got, M exact)
{
    M error = m_abs(m_sub(m_of(got), exact));
    return m_about(m_div(error, m_ulp(stored_format(TARN_F64), exact)));
}

static inline double neighbour(double value, int64_t steps)
{
    uint64_t bits = bits_of_f64(value);
    return f64_of_bits(bits + (uint64_t)steps);
}

/* Whether a value is so large that the dtype has only infinity for it. */
static inline bool overflows(tarn_dtype dtype, M value)
{
    format f = stored_format(dtype);
    double edge = ldexp(2 - ldexp(1, -f.precision), f.greatest);
    return mpfr_cmp_d(m_abs(value)->value, edge) >= 0;
}

/* Error over bound, which has to be at most 1. `relative` is the a priori bound in units of 2^-53;
 * then the stored type rounds, and what is below 2^-1022 of the greatest weight is lost. */
static inline double check_within(const scene *s, tarn_dtype dtype, const char *what, double got,
                                  M exact, M relative)
{
    M bound = m_add(m_scaled(relative, UNIT), m_of(0x1p-1000));
    M reach = m_add(m_abs(exact), bound);
    if (dtype != TARN_F64)
        bound = m_add(bound, m_scaled(m_ulp(stored_format(dtype), reach), 0.5));
    M error = m_abs(m_sub(m_of(got), exact));
    double ratio = m_about(m_div(error, bound));
    CHECK(ratio <= 1, "%s %s %a instead of %a, %g times the bound: %s", tarn_dtype_name(dtype),
          what, got, m_about(exact), ratio, describe(s));
    return ratio;
}

/* Within 2^-250 of itself, of its terms, or of the range of the logarithm. */
static inline void check_close(const scene *s, const char *what, M got, M exact, M size)
{
    M error = m_abs(m_sub(got, exact));
    CHECK(!m_less(m_scaled(m_add(size, m_of(1e-300)), 0x1p-250), error), "%s %g instead of %g: %s",
          what, m_about(got), m_about(exact), describe(s));
}

/* A power of two of any size that the dtype has. */
static inline double draw_size(rng *r, tarn_dtype dtype)
{
    format f = stored_format(dtype);
    return ldexp(1, (int)rng_range(r, f.least - f.precision, f.greatest - 1));
}

static inline void report(const char *what, const double *by_dtype)
{
    printf("%s:", what);
    for (int d = 0; d < 4; d++)
        printf("  %s %.3f", tarn_dtype_name(float_dtypes[d]), by_dtype[float_dtypes[d]]);
    printf("\n");
}

#endif
