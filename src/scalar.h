/* The scalar types: how each is widened to the type its sums are taken in, and rounded once,
 * back.
 *
 * For every dtype name, such as f32:
 *   f32_s, f32_a      the stored type; the type of sums
 *   f32_load(s)       s as a sum            f32_store(a)   a rounded to nearest even
 *   f32_zero, f32_add(a, a)                 sums
 *   f32_mean(a, n)    a/n, rounded once     f32_less, f32_nan   comparisons of stored values
 * and for the floating types:
 *   f32_widen(s), f32_narrow(d)   to binary64, exactly; from binary64, rounded once
 * Every NaN that is computed is stored as the one positive quiet NaN without payload.
 */
#ifndef TARN_SCALAR_H
#define TARN_SCALAR_H

#include "checked.h"

#include <float.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error                                                                                             \
    "tarn needs arithmetic in the type of its operands (FLT_EVAL_METHOD == 0): -msse2 -mfpmath=sse"
#endif
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "tarn must not be compiled with -ffast-math or -ffinite-math-only: it promises bits"
#endif

/* No fused multiply-add, whatever the command line says. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off", "no-math-errno") /* a square root is one instruction */
#endif

static inline uint32_t bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The one NaN that computed results have: quiet, positive, no payload. */
static inline double f64_store(double value)
{
    return value == value ? value : f64_of_bits(UINT64_C(0x7ff8000000000000));
}

static inline float f32_store(float value)
{
    return value == value ? value : f32_of_bits(0x7fc00000u);
}

static inline float f32_narrow(double value)
{
    return f32_store((float)value);
}

static inline float bf16_load(uint16_t bits)
{
    return f32_of_bits((uint32_t)bits << 16);
}

/* Rounds to nearest even: adds half a unit of the lower 16 bits, less one if the upper part is
 * even; a carry out of the mantissa is the next exponent, as it should be. */
static inline uint16_t bf16_store(float value)
{
    if (value != value)
        return 0x7fc0;
    uint32_t bits = bits_of_f32(value);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Rounds a double to the nearest float, but towards an odd last bit if inexact: a second rounding,
 * to a type at least two bits narrower, then gives what rounding once would. */
static inline float f32_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits = bits_of_f32(nearest);
    if (nearest == (double)value || value != value || (bits & 1u))
        return nearest;
    /* An even neighbour was taken; the odd one on the other side of the value is adjacent. */
    double magnitude = value < 0 ? -value : value;
    double taken = nearest < 0 ? -(double)nearest : (double)nearest;
    return f32_of_bits(magnitude > taken ? bits + 1 : bits - 1);
}

static inline uint16_t bf16_narrow(double value)
{
    return bf16_store(f32_odd(value));
}

static inline float f16_load(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) /* infinity or NaN: exponent all ones */
        return f32_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x400u) /* subnormal: a multiple of 2^-24, and normal in binary32 */
        return f32_of_bits(sign | bits_of_f32((float)magnitude * 0x1p-24f));
    return f32_of_bits(sign | ((magnitude << 13) + (112u << 23))); /* rebias by 127 - 15 */
}

/* Rounds to nearest even, infinity from 65520 on. */
static inline uint16_t f16_store(float value)
{
    if (value != value)
        return 0x7e00;
    uint32_t bits = bits_of_f32(value), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x477ff000u) /* 65520: halfway between 65504 and 65536, ties up */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) /* below 2^-14: adding 0.5 leaves multiples of 2^-24 as low bits */
        return (uint16_t)(sign | (bits_of_f32(f32_of_bits(magnitude) + 0.5f) - 0x3f000000u));
    uint32_t even = (magnitude >> 13) & 1u; /* rebias by 112, round at bit 13 */
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfffu + even) >> 13));
}

static inline uint16_t f16_narrow(double value)
{
    return f16_store(f32_odd(value));
}

static inline double f64_narrow(double value)
{
    return f64_store(value);
}

/* Whether quotient + rest/divisor is rounded up, half to even; 0 <= rest < divisor. */
static inline bool rounds_up(uint64_t quotient, int64_t rest, int64_t divisor)
{
    int64_t beyond_half = rest - (divisor - rest);
    return beyond_half > 0 || (beyond_half == 0 && (quotient & 1));
}

/* sum/divisor, rounded half to even, exactly; divisor > 0. For two widths of the sum. */
static inline tarn_wide rounded_mean(tarn_wide sum, int64_t divisor)
{
    int64_t rest;
    tarn_wide quotient = wide_divide(sum, divisor, &rest);
    return wide_add(quotient, wide_of(rounds_up(wide_low(quotient), rest, divisor)));
}

static inline int64_t rounded_mean_i64(int64_t sum, int64_t divisor)
{
    int64_t quotient = floor_div(sum, divisor);
    return quotient + rounds_up((uint64_t)quotient, sum - quotient * divisor, divisor);
}

#define FLOAT_SCALAR(name, stored, sums)                                                           \
    typedef stored name##_s;                                                                       \
    typedef sums name##_a;                                                                         \
    static const name##_a name##_zero = 0;                                                         \
    static inline name##_a name##_add(name##_a a, name##_a b)                                      \
    {                                                                                              \
        return a + b;                                                                              \
    }                                                                                              \
    static inline name##_s name##_mean(name##_a sum, int64_t divisor)                              \
    {                                                                                              \
        return name##_store(sum / (name##_a)divisor);                                              \
    }                                                                                              \
    static inline bool name##_less(name##_s a, name##_s b)                                         \
    {                                                                                              \
        return name##_load(a) < name##_load(b);                                                    \
    }                                                                                              \
    static inline bool name##_nan(name##_s a)                                                      \
    {                                                                                              \
        return name##_load(a) != name##_load(a);                                                   \
    }                                                                                              \
    static inline double name##_widen(name##_s a)                                                  \
    {                                                                                              \
        return (double)name##_load(a);                                                             \
    }

static inline double f64_load(double value)
{
    return value;
}

static inline float f32_load(float value)
{
    return value;
}

FLOAT_SCALAR(f64, double, double)
FLOAT_SCALAR(f32, float, float)
FLOAT_SCALAR(f16, uint16_t, float)
FLOAT_SCALAR(bf16, uint16_t, float)

/* Integers are summed in 128 bits, which no sum can leave, or in 64 bits where that is known to do.
 * A mean beyond the type's range (a given divisor below the number of taps) saturates. */
#define INTEGER_SCALAR(name, stored, least, greatest)                                              \
    typedef stored name##_s;                                                                       \
    typedef tarn_wide name##_a;                                                                    \
    static const tarn_wide name##_zero = WIDE_ZERO;                                                \
    static const stored name##_lowest = least, name##_highest = greatest;                          \
    static inline name##_a name##_add(name##_a a, name##_a b)                                      \
    {                                                                                              \
        return wide_add(a, b);                                                                     \
    }                                                                                              \
    static inline name##_a name##_load(name##_s value)                                             \
    {                                                                                              \
        return (least) < 0 ? wide_of((int64_t)value) : wide_of_unsigned((uint64_t)value);          \
    }                                                                                              \
    static inline name##_s name##_store(name##_a sum)                                              \
    {                                                                                              \
        return wide_less(sum, name##_load(name##_lowest))    ? name##_lowest                       \
               : wide_less(name##_load(name##_highest), sum) ? name##_highest                      \
                                                             : (name##_s)wide_low(sum);            \
    }                                                                                              \
    static inline name##_s name##_mean(name##_a sum, int64_t divisor)                              \
    {                                                                                              \
        return name##_store(rounded_mean(sum, divisor));                                           \
    }                                                                                              \
    static inline name##_s name##_mean_i64(int64_t sum, int64_t divisor)                           \
    {                                                                                              \
        return name##_store(wide_of(rounded_mean_i64(sum, divisor)));                              \
    }                                                                                              \
    static inline bool name##_less(name##_s a, name##_s b)                                         \
    {                                                                                              \
        return a < b;                                                                              \
    }                                                                                              \
    static inline bool name##_nan(name##_s a)                                                      \
    {                                                                                              \
        (void)a;                                                                                   \
        return false;                                                                              \
    }

INTEGER_SCALAR(i8, int8_t, INT8_MIN, INT8_MAX)
INTEGER_SCALAR(u8, uint8_t, 0, UINT8_MAX)
INTEGER_SCALAR(i16, int16_t, INT16_MIN, INT16_MAX)
INTEGER_SCALAR(u16, uint16_t, 0, UINT16_MAX)
INTEGER_SCALAR(i32, int32_t, INT32_MIN, INT32_MAX)
INTEGER_SCALAR(u32, uint32_t, 0, UINT32_MAX)
INTEGER_SCALAR(i64, int64_t, INT64_MIN, INT64_MAX)
INTEGER_SCALAR(u64, uint64_t, 0, UINT64_MAX)

#endif
