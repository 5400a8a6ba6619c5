/* Weights of smooth max: e^t as a mantissa and an exponent, so that nothing overflows.
 *
 * Everything here is built from IEEE binary64 additions, multiplications and divisions in a fixed
 * order, so every machine returns the same bits; no math library is involved. The polynomials
 * and the parts of ln 2 come from tools/coefficients.py.
 *
 * Values of f64 need all of binary64 (`full`); types of 24 bits and less are content with 2^-38 and
 * take shorter polynomials [L3].
 */
#ifndef TARN_EXPONENTIAL_H
#define TARN_EXPONENTIAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The number mantissa * 2^exponent. The exponent is an integer, or infinite. */
typedef struct tarn_weight {
    double mantissa, exponent;
} tarn_weight;

/* ln 2 = LN2_HIGH + LN2_MIDDLE + LN2_LOW; the first two have 26 bits each, so their products with
 * integers of up to 27 bits are exact. */
#define LN2_HIGH 0x1.62e42f8p-1
#define LN2_MIDDLE 0x1.be8e7b8p-27
#define LN2_LOW 0x1.35793c7673008p-53
#define LOG2_E 0x1.71547652b82fep+0

/* Adding and subtracting 1.5*2^52 rounds to an integer (any |v| < 2^51), half to even; 2^26 times
 * as much rounds to a multiple of 2^26. */
#define TO_INTEGER 0x1.8p52
#define TO_MULTIPLE 0x1.8p78

/* From here on the spacing of t is at least 1/8: reduced in one step, t errs by no more than
 * that. */
#define HUGE_ARGUMENT 0x1p50

/* Below 2^-1022 of the greatest weight, a weight is zero. */
#define LEAST_SHIFT (-1022.0)

/* e^r = 1 + r + r^2 * (a polynomial), |r| <= ln(2)/2. */
static const double exp_polynomial[] = {
    0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d63p-5,  0x1.11111111109b3p-7,
    0x1.6c16c1788bd90p-10, 0x1.a01a01a7c41d5p-13, 0x1.a019b90d2ae7ap-16, 0x1.71de0dae63bb3p-19,
    0x1.289185613a3d6p-22, 0x1.af38a9b0ec855p-26};

static inline double exp_reduced(double r)
{
    const double *p = exp_polynomial;
    double sum = p[9];
    for (int k = 8; k >= 0; k--)
        sum = sum * r + p[k];
    return (r * r * sum + r) + 1.0;
}

/* e^t for |t| >= HUGE_ARGUMENT, infinities included. From 2^52 on the binary exponent has no
 * fraction left. */
static inline tarn_weight weight_exp_huge(double t)
{
    double v = t * LOG2_E, to_integer = v < 0 ? -0x1p52 : 0x1p52;
    if (v >= 0x1p52 || v <= -0x1p52)
        return (tarn_weight){1.0, v};
    double n = (v + to_integer) - to_integer;
    return (tarn_weight){exp_reduced((v - n) * (LN2_HIGH + LN2_MIDDLE)), n};
}

/* The mantissa of e^t for |t| < HUGE_ARGUMENT; *n receives the exponent. */
static inline double exp_mantissa(double t, double *n)
{
    *n = (t * LOG2_E + TO_INTEGER) - TO_INTEGER;
    double coarse = (*n + TO_MULTIPLE) - TO_MULTIPLE; /* n = coarse + fine, 25 and 26 bits */
    double fine = *n - coarse;
    double r = (t - coarse * LN2_HIGH) - fine * LN2_HIGH;
    r = (r - coarse * LN2_MIDDLE) - fine * LN2_MIDDLE;
    return exp_reduced(r - *n * LN2_LOW);
}

/* 2^f = 1 + f * (a polynomial), |f| <= 1/2, but for 2^-38. */
static const double short_exp_polynomial[] = {
    0x1.62e42fef9cc52p-1,  0x1.ebfbdff82a72dp-3,  0x1.c6b08da715399p-5,  0x1.3b2ab70ad4abap-7,
    0x1.5d87758a2cd8bp-10, 0x1.4308c71076733p-13, 0x1.00c0f01af43d5p-16, 0x1.63b2e40877ca0p-20};

/* exp_mantissa() for short types: no more than t*log2(e) rounded, which is what t was worth. */
static inline double short_exp_mantissa(double t, double *n)
{
    const double *p = short_exp_polynomial;
    double v = t * LOG2_E;
    *n = (v + TO_INTEGER) - TO_INTEGER;
    double f = v - *n, z = f * f;
    double even = ((p[6] * z + p[4]) * z + p[2]) * z + p[0];
    double odd = ((p[7] * z + p[5]) * z + p[3]) * z + p[1];
    return f * (odd * f + even) + 1.0;
}

static inline double mantissa_of(bool full, double t, double *n)
{
    return full ? exp_mantissa(t, n) : short_exp_mantissa(t, n);
}

/* e^t for any t. */
static inline tarn_weight weight_exp(bool full, double t)
{
    tarn_weight weight;
    if (t != t)
        return (tarn_weight){t, 0.0};
    if (t >= HUGE_ARGUMENT || t <= -HUGE_ARGUMENT)
        return weight_exp_huge(t);
    weight.mantissa = mantissa_of(full, t, &weight.exponent);
    return weight;
}

/* 2^n for an integer n from -1022 to 1023. */
static inline double power_of_two(double n)
{
    uint64_t bits = (uint64_t)(1023 + (int)n) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* e^t * 2^-shift as a plain number, for |t| < HUGE_ARGUMENT: weight_exp() put together. For kernels
 * that know that nothing overflows. */
static inline double exp_scaled(bool full, double t, double shift)
{
    double n, mantissa = mantissa_of(full, t, &n);
    return mantissa * power_of_two(n - shift);
}

/* ln((1+s)/(1-s)) = 2s + s*z * (a polynomial in z), z = s^2. */
static const double log_polynomial[] = {
    0x1.5555555555558p-1, 0x1.99999999952d7p-2, 0x1.2492492df281ap-2, 0x1.c71c62e3f11e6p-3,
    0x1.7462b51cb66b1p-3, 0x1.39fe51a7c18f9p-3, 0x1.2b5900de53b32p-3};

#define SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd) /* of 1/sqrt(2) */

/* v = f * 2^k with f in [1/sqrt(2), sqrt(2)), for a normal v > 0; *k receives k. */
static inline double split_binary(double v, double *k)
{
    const uint64_t fraction = SQRT_HALF_BITS & ((UINT64_C(1) << 52) - 1);
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int power = (int)((bits - fraction) >> 52) - 1022; /* 1/sqrt(2) has the exponent field 1022 */
    bits -= (uint64_t)power << 52;
    memcpy(&v, &bits, sizeof v);
    *k = power;
    return v;
}

/* ln f for f in [1/sqrt(2), sqrt(2)). */
static inline double log_reduced(double f)
{
    const double *q = log_polynomial;
    double s = (f - 1.0) / (f + 1.0), z = s * s, sum = q[6];
    for (int i = 5; i >= 0; i--)
        sum = sum * z + q[i];
    return s * (z * sum) + 2.0 * s;
}

/* ln v for v >= 1; NaN for NaN. */
static inline double log_ratio(double v)
{
    double k;
    if (!(v >= 1.0))
        return v != v ? v : 0.0;
    double fraction = log_reduced(split_binary(v, &k));
    return k * LN2_HIGH + (k * (LN2_MIDDLE + LN2_LOW) + fraction);
}

/* The same polynomial for |s| <= 0.2004, but for 2^-40. */
static const double short_log_polynomial[] = {0x1.55555555a0afcp-1, 0x1.999996bd16fd3p-2,
                                              0x1.2494811d23e4ep-2, 0x1.c5e9896b73b79p-3,
                                              0x1.95df2e5633bd7p-3};

/* ln(sum/part) for sum >= part > 0, both normal; NaN for NaN. The bits of a number, taken as an
 * integer, are its logarithm but for 0.0861 of a binary exponent: enough to choose k, so that one
 * division serves (sum/part)/2^k. */
static inline double short_log_ratio(double sum, double part)
{
    const double *q = short_log_polynomial;
    uint64_t sum_bits, bits;
    memcpy(&sum_bits, &sum, sizeof sum_bits);
    memcpy(&bits, &part, sizeof bits);
    uint64_t k = (sum_bits - bits + (UINT64_C(1) << 51)) >> 52;
    bits += k << 52;
    memcpy(&part, &bits, sizeof part);
    double s = (sum - part) / (sum + part), z = s * s;
    double rest = (((q[4] * z + q[3]) * z + q[2]) * z + q[1]) * z + q[0];
    return (double)(int64_t)k * (LN2_HIGH + LN2_MIDDLE) + (s * (z * rest) + 2.0 * s);
}

/* mantissa * 2^shift for an integer shift <= 0. */
static inline double shifted(double mantissa, double shift)
{
    if (shift < LEAST_SHIFT)
        return mantissa * 0.0; /* keeps NaN */
    return mantissa * power_of_two(shift);
}

/* From exponent `from` to exponent `to` >= from; equal infinities are no distance apart. */
static inline double aligned(double mantissa, double from, double to)
{
    return from == to ? mantissa : shifted(mantissa, from - to);
}

static const tarn_weight weight_zero = {0.0, -INFINITY};

static inline tarn_weight weight_add(tarn_weight a, tarn_weight b)
{
    double top = a.exponent > b.exponent ? a.exponent : b.exponent;
    double sum = aligned(a.mantissa, a.exponent, top) + aligned(b.mantissa, b.exponent, top);
    return (tarn_weight){sum, top};
}

/* What the clauses on smooth max build from weights. `sum` is that of the window's weights. */

/* [L3] The window's value from its tap `top` of the greatest beta*x, the sum of its weights, and
 * that tap's weight on the same scale: at most the sum, so that the value is never below `top`.
 * Adding +0 makes a zero positive. */
static inline double smooth_from_sum(bool full, double top, double beta, double sum,
                                     double greatest)
{
    double log = full ? log_ratio(sum / greatest) : short_log_ratio(sum, greatest);
    return (top + log / beta) + 0.0;
}

/* The sum has the exponent of the greatest weight, so the ratio is that of the mantissas. */
static inline double smooth_value(bool full, double top, double beta, tarn_weight sum)
{
    return smooth_from_sum(full, top, beta, sum.mantissa, weight_exp(full, beta * top).mantissa);
}

/* [L4] sum(w*dx) / sum(w); both have the exponent of the greatest weight. */
static inline double smooth_tangent(tarn_weight weighted, tarn_weight sum)
{
    return weighted.mantissa / sum.mantissa;
}

/* [L5] One window's share gy / sum(w) ... */
static inline tarn_weight smooth_share(double gy, tarn_weight sum)
{
    return (tarn_weight){gy / sum.mantissa, -sum.exponent};
}

/* ... and the gradient of a cell: its weight times the sum of its windows' shares. A cell that no
 * window reads has gradient 0, whatever it holds. */
static inline double smooth_gradient(tarn_weight weight, tarn_weight shares)
{
    if (shares.mantissa == 0.0)
        return 0.0;
    return aligned(weight.mantissa, weight.exponent, -shares.exponent) * shares.mantissa + 0.0;
}

#endif
