/* Arithmetic on sizes that says when the result does not fit. */
#ifndef TARN_CHECKED_H
#define TARN_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* 128 bits hold every product of two sizes, and every sum of 2^63 64-bit integers. */
__extension__ typedef __int128 tarn_i128;

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
    return (int64_t)((tarn_i128)a * b / c);
}

/* ceil(a*b/c) for a, b >= 0 and c > 0, the product taken exactly. */
static inline int64_t muldiv_ceil(int64_t a, int64_t b, int64_t c)
{
    if (are_small(a, b, c))
        return (a * b + (c - 1)) / c;
    return (int64_t)(((tarn_i128)a * b + (c - 1)) / c);
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
