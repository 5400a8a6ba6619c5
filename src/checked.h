/* Arithmetic on sizes that says when the result does not fit. */
#ifndef TARN_CHECKED_H
#define TARN_CHECKED_H

#include "wide.h"

#include <stddef.h>

/* Each returns false, and leaves *result alone, if the exact result does not fit int64_t. */
static inline bool checked_add(int64_t a, int64_t b, int64_t *result)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *result = sum;
    return true;
}

static inline bool checked_mul(int64_t a, int64_t b, int64_t *result)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *result = product;
    return true;
}

/* Division that rounds down, whatever the sign of a; b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Division that rounds up, whatever the sign of a; b > 0. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* Whether a*b + c certainly fits 63 bits: then the slow 128-bit division is not needed. */
static inline bool are_small(int64_t a, int64_t b, int64_t c)
{
    return (a | b | c) < INT32_MAX;
}

/* floor(a*b/c) for a, b >= 0 and c > 0, the product taken exactly. */
static inline int64_t muldiv_floor(int64_t a, int64_t b, int64_t c)
{
    if (are_small(a, b, c))
        return a * b / c;
    int64_t rest;
    return (int64_t)wide_low(wide_divide(wide_mul(a, b), c, &rest));
}

/* ceil(a*b/c) for a, b >= 0 and c > 0, the product taken exactly. */
static inline int64_t muldiv_ceil(int64_t a, int64_t b, int64_t c)
{
    if (are_small(a, b, c))
        return (a * b + (c - 1)) / c;
    int64_t rest, quotient = (int64_t)wide_low(wide_divide(wide_mul(a, b), c, &rest));
    return quotient + (rest > 0);
}

/* a*b mod c for a, b >= 0 and c > 0, the product taken exactly. */
static inline int64_t mulmod(int64_t a, int64_t b, int64_t c)
{
    int64_t rest;
    wide_divide(wide_mul(a, b), c, &rest);
    return rest;
}

/* A number of bytes, not negative, as malloc() takes it; where that is too narrow, one that no
 * allocation has. */
static inline size_t size_of_bytes(int64_t bytes)
{
#if SIZE_MAX < INT64_MAX
    return bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
#else
    return (size_t)bytes;
#endif
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
