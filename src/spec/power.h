/* Powers and norms of Lp, as weights (exponential.h), so that nothing overflows.
 *
 * IEEE binary64 operations in a fixed order, square roots among them; no math library is involved.
 * NaN has the exponent +infinity here: beside it, everything else is shifted out of sight.
 */
#ifndef TARN_POWER_H
#define TARN_POWER_H

#include "exponential.h"

#include <stdbool.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LN2 0x1.62e42fefa39efp-1

/* The correctly rounded square root. Compilers would call the math library for the sake of
 * errno. */
static inline double square_root(double v)
{
#if defined(__SSE2__)
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(v)));
#elif defined(__aarch64__)
    return vget_lane_f64(vsqrt_f64(vdup_n_f64(v)), 0);
#else
    return __builtin_sqrt(v);
#endif
}

/* |x|, exactly, with a mantissa in [1/sqrt(2), sqrt(2)); infinity is 1 * 2^infinity. */
static inline tarn_weight magnitude(double x)
{
    double a = __builtin_fabs(x), lift = a < 0x1p-1022 ? 54.0 : 0.0, k;
    if (!(a > 0.0))
        return a == 0.0 ? weight_zero : (tarn_weight){a, INFINITY};
    if (a == INFINITY)
        return (tarn_weight){1.0, INFINITY};
    double mantissa = split_binary(lift > 0 ? a * 0x1p54 : a, &k); /* subnormals become normal */
    return (tarn_weight){mantissa, k - lift};
}

/* mantissa * 2^exponent as a plain number: rounded once, infinite or zero beyond the range. */
static inline double weight_number(tarn_weight w)
{
    if (w.exponent > 1100.0 || w.exponent < -1200.0)
        return w.mantissa * (w.exponent > 0.0 ? INFINITY : 0.0);
    double step = w.exponent > 1000.0 ? 1000.0 : w.exponent < -1000.0 ? -1000.0 : 0.0;
    return w.mantissa * power_of_two(w.exponent - step) * power_of_two(step);
}

/* The mantissa of b^q for b as magnitude() makes it, finite, and 0 < q <= 2^40; *n receives the
 * exponent. The product of q, cut in two, with the exponent of b is exact, 42 + 11 and 11 + 11
 * bits; so the logarithm of the power errs like q*log(b.mantissa), a few q ulp, however large b
 * is. */
static inline double power_mantissa(tarn_weight b, double q, double *n)
{
    uint64_t bits;
    double high;
    memcpy(&bits, &q, sizeof bits);
    bits &= ~UINT64_C(0x7ff);
    memcpy(&high, &bits, sizeof high);
    double whole = high * b.exponent;
    double rest = (q - high) * b.exponent + q * (log_reduced(b.mantissa) * LOG2_E);
    *n = ((whole + rest) + TO_INTEGER) - TO_INTEGER; /* below 2^51 */
    return exp_reduced(((whole - *n) + rest) * LN2);
}

/* b^q for b as magnitude() or lp_norm() make it, and 0 <= q <= 2^40; 0 for 0, and 1 for q = 0
 * else. */
static inline tarn_weight weight_power(tarn_weight b, double q)
{
    if (!(b.mantissa > 0.0))
        return b;
    if (q == 0.0)
        return (tarn_weight){1.0, 0.0};
    if (q == 1.0)
        return b;
    if (b.exponent == INFINITY) { /* the power of the mantissa, as a plain number */
        tarn_weight power = weight_power(magnitude(b.mantissa), q);
        return (tarn_weight){weight_number(power), INFINITY};
    }
    if (q == 2.0)
        return (tarn_weight){b.mantissa * b.mantissa, 2.0 * b.exponent};
    tarn_weight power;
    power.mantissa = power_mantissa(b, q, &power.exponent);
    return power;
}

/* [N4] sign(x) * |x|^q. */
static inline tarn_weight signed_power(double x, double q)
{
    tarn_weight power = weight_power(magnitude(x), q);
    return (tarn_weight){x < 0.0 ? -power.mantissa : power.mantissa, power.exponent};
}

/* The same number with a mantissa as magnitude() makes it, for lp_norm(); infinite exponents
 * stay. */
static inline tarn_weight normal_weight(tarn_weight w)
{
    tarn_weight unit = magnitude(w.mantissa);
    return w.exponent == INFINITY ? w : (tarn_weight){unit.mantissa, unit.exponent + w.exponent};
}

/* [N3] The norm but for p = 1 and 2, from the greatest |x| and the sum of the powers over its
 * power. */
static inline tarn_weight norm_from_ratio(tarn_weight top, double p, double ratio)
{
    return (tarn_weight){top.mantissa * exp_scaled(true, log_ratio(ratio) / p, 0.0), top.exponent};
}

/* [N3] The norm from the greatest |x| and the sum of the powers. */
static inline tarn_weight lp_norm(double greatest, double p, tarn_weight sum)
{
    tarn_weight norm = sum;
    if (!(sum.mantissa > 0.0))
        return sum;
    if (p == 2.0) {
        norm = (tarn_weight){square_root(sum.mantissa), sum.exponent / 2.0};
    } else if (p != 1.0) {
        tarn_weight top = magnitude(greatest), power = weight_power(top, p);
        double least = aligned(power.mantissa, power.exponent, sum.exponent);
        norm = norm_from_ratio(top, p, sum.mantissa / least);
    }
    return normal_weight(norm);
}

/* [N4] The tangent from its numerator and y^(p-1); 0 where y is 0. Adding +0 makes a zero
 * positive. */
static inline double lp_tangent(tarn_weight numerator, tarn_weight denominator)
{
    if (denominator.mantissa == 0.0)
        return 0.0;
    bool same = numerator.exponent == denominator.exponent; /* equal infinities, too */
    double shift = same ? 0.0 : numerator.exponent - denominator.exponent;
    return weight_number((tarn_weight){numerator.mantissa / denominator.mantissa, shift}) + 0.0;
}

/* [N5] One window's share gy / y^(p-1); none where y is 0. smooth_gradient() makes gradients of
 * them. */
static inline tarn_weight lp_share(double gy, tarn_weight denominator)
{
    return denominator.mantissa == 0.0 ? weight_zero : smooth_share(gy, denominator);
}

#endif
