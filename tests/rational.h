/* Rationals (GMP) as a scalar type, and the specification instantiated for them: src/spec/spec.inc,
 * the very text that the library's dtypes are made from, as exact_forward(), exact_jvp() and
 * exact_vjp(). */
#ifndef TARN_RATIONAL_H
#define TARN_RATIONAL_H

#include "problem.h"

#include <gmp.h>
#include <stdlib.h>

/* ---- Rationals with value semantics -------------------------------------------------------- */

/* A rational is a pointer into an arena that is taken back as a whole after each case. NULL is 0,
 * so that zeroed bytes are zeros as they are in every dtype. */
typedef struct rational {
    mpq_t value;
} * Q;

static struct {
    Q *item;
    size_t used, made, room;
} arena;

_Static_assert(sizeof(Q) == 8, "arrays of rationals borrow the strides and bytes of f64 tensors");

static inline Q q_new(void)
{
    if (arena.used == arena.room) {
        arena.room = arena.room ? 2 * arena.room : 4096;
        arena.item = realloc(arena.item, arena.room * sizeof *arena.item);
    }
    if (arena.used == arena.made) {
        arena.item[arena.made] = malloc(sizeof *arena.item[0]);
        mpq_init(arena.item[arena.made++]->value);
    }
    return arena.item[arena.used++];
}

static inline void free_arena(void)
{
    for (size_t k = 0; k < arena.made; k++) {
        mpq_clear(arena.item[k]->value);
        free(arena.item[k]);
    }
    free(arena.item);
}

static inline Q q_ratio(long numerator, unsigned long denominator)
{
    Q q = q_new();
    mpq_set_si(q->value, numerator, denominator);
    mpq_canonicalize(q->value);
    return q;
}

static inline Q q_int(int64_t n)
{
    return q_ratio((long)n, 1);
}

static inline Q q_double(double value)
{
    Q q = q_new();
    mpq_set_d(q->value, value);
    return q;
}

static inline Q q_some(Q a)
{
    return a ? a : q_int(0);
}

#define Q_OPERATION(name, operation)                                                               \
    static inline Q name(Q a, Q b)                                                                 \
    {                                                                                              \
        Q q = q_new();                                                                             \
        operation(q->value, q_some(a)->value, q_some(b)->value);                                   \
        return q;                                                                                  \
    }
Q_OPERATION(q_add, mpq_add)
Q_OPERATION(q_sub, mpq_sub)
Q_OPERATION(q_mul, mpq_mul)
Q_OPERATION(q_div, mpq_div)

static inline Q q_abs(Q a)
{
    Q q = q_new();
    mpq_abs(q->value, q_some(a)->value);
    return q;
}

static inline Q q_power_of_two(int exponent)
{
    Q q = q_int(1);
    if (exponent >= 0)
        mpq_mul_2exp(q->value, q->value, (mp_bitcnt_t)exponent);
    else
        mpq_div_2exp(q->value, q->value, (mp_bitcnt_t)-exponent);
    return q;
}

static inline bool q_less(Q a, Q b)
{
    return mpq_cmp(q_some(a)->value, q_some(b)->value) < 0;
}

static inline bool q_equal(Q a, Q b)
{
    return mpq_equal(q_some(a)->value, q_some(b)->value) != 0;
}

static inline double q_about(Q a)
{
    return mpq_get_d(q_some(a)->value);
}

/* ---- The specification, instantiated ------------------------------------------------------- */

/* Smooth max needs e^(beta*x), which no rational is. The stand-in (1 + beta*x)^2 + 1 is positive
 * and exact and keeps the algebra: weights, their sums over taps and windows, and shares. */
static inline Q toy_weight(double beta, Q x)
{
    Q root = q_add(q_int(1), q_mul(q_double(beta), x));
    return q_add(q_mul(root, root), q_int(1));
}

/* Likewise instead of the logarithm: top + sum, so that a wrong top or a wrong sum is seen. */
/* |x|^q for a whole q; 0 for 0 [N2]. */
static Q q_power(Q x, double q)
{
    Q power = q_int(mpq_sgn(q_some(x)->value) != 0);
    for (int k = 0; k < (int)q; k++)
        power = q_mul(power, q_abs(x));
    return power;
}

static Q q_signed_power(Q x, double q)
{
    return q_mul(q_int(mpq_sgn(q_some(x)->value)), q_power(x, q));
}

static Q q_over(Q a, Q b)
{
    return mpq_sgn(q_some(b)->value) ? q_div(a, b) : q_int(0);
}

/* Lp needs a root, which rationals do not have unless p = 1. The stand-in is the sum, and the top
 * where p is not 1 or 2. */
static Q toy_norm(Q top, double p, Q sum)
{
    return p > 2 ? q_add(top, sum) : sum;
}

#define SPEC_DERIVATIVES 1
#define FN(name) exact_##name
#define S Q
#define A Q
#define LOAD(s) (s)
#define STORE(a) (a)
#define ZERO q_int(0)
#define ADD(a, b) q_add(a, b)
#define FROM_COUNT(n) q_int(n)
#define DIVIDE(a, b) q_div(a, b)
#define MEAN(a, n) q_div(a, q_int(n))
#define LESS(s, t) q_less(s, t)
#define IS_NAN(s) ((void)(s), false)
#define W Q
#define W_ZERO q_int(0)
#define W_ADD(w, v) q_add(w, v)
#define W_EXP(beta, s) toy_weight(beta, s)
#define W_COUNT(n) q_mul(q_int(n), toy_weight(1.0, q_int(0)))
#define W_TIMES(w, s) q_mul(w, s)
#define W_VALUE(top, beta, w) ((void)(beta), q_add(top, w))
#define W_TANGENT(w, v) q_div(w, v)
#define W_SHARE(s, w) q_div(s, w)
#define W_GRADIENT(w, v) q_mul(w, v)
#define MAGNITUDE(s) q_abs(s)
#define W_POWER(s, q) q_power(s, q)
#define W_SIGNED_POWER(s, q) q_signed_power(s, q)
#define W_NORM(top, p, w) toy_norm(top, p, w)
#define W_POWER_OF(w, q) q_power(w, q)
#define W_NUMBER(w) (w)
#define W_SLOPE(w, v) q_over(w, v)
#define W_LP_SHARE(s, w) q_over(s, w)
#include "spec/spec.inc"

#endif
