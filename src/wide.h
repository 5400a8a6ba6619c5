/* Integers of 128 bits: they hold every product of two sizes, and every sum of 2^63 64-bit
 * integers. Compilers for 64-bit machines have them; for others they are two words here. */
#ifndef TARN_WIDE_H
#define TARN_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__SIZEOF_INT128__) && !defined(TARN_TWO_WORDS)

__extension__ typedef __int128 tarn_wide;
#define WIDE_ZERO 0

static inline tarn_wide wide_of(int64_t value)
{
    return value;
}

static inline tarn_wide wide_of_unsigned(uint64_t value)
{
    return value;
}

static inline tarn_wide wide_add(tarn_wide a, tarn_wide b)
{
    return a + b;
}

static inline tarn_wide wide_negated(tarn_wide a)
{
    return -a;
}

static inline bool wide_less(tarn_wide a, tarn_wide b)
{
    return a < b;
}

static inline tarn_wide wide_mul(int64_t a, int64_t b)
{
    return (tarn_wide)a * b;
}

/* a / b, rounded down, and a - b * (a / b), which is not negative; b > 0. */
static inline tarn_wide wide_divide(tarn_wide a, int64_t b, int64_t *rest)
{
    tarn_wide quotient = a / b;
    *rest = (int64_t)(a % b);
    if (*rest < 0) {
        *rest += b;
        quotient--;
    }
    return quotient;
}

/* The lower 64 bits. */
static inline uint64_t wide_low(tarn_wide a)
{
    return (uint64_t)a;
}

#else

typedef struct tarn_wide {
    uint64_t low;
    int64_t high;
} tarn_wide;
#define WIDE_ZERO                                                                                  \
    {                                                                                              \
        0, 0                                                                                       \
    }

static inline tarn_wide wide_of(int64_t value)
{
    return (tarn_wide){(uint64_t)value, value < 0 ? -1 : 0};
}

static inline tarn_wide wide_of_unsigned(uint64_t value)
{
    return (tarn_wide){value, 0};
}

static inline tarn_wide wide_add(tarn_wide a, tarn_wide b)
{
    uint64_t low = a.low + b.low, high = (uint64_t)a.high + (uint64_t)b.high + (low < a.low);
    return (tarn_wide){low, (int64_t)high};
}

static inline bool wide_less(tarn_wide a, tarn_wide b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

static inline tarn_wide wide_negated(tarn_wide a)
{
    return (tarn_wide){0 - a.low, (int64_t)(~(uint64_t)a.high + (a.low == 0))};
}

/* Schoolbook, in halves of words. */
static inline tarn_wide wide_mul(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t half = UINT32_MAX, low = (x & half) * (y & half);
    uint64_t middle = (x >> 32) * (y & half) + (low >> 32);
    uint64_t other = (x & half) * (y >> 32) + (middle & half);
    tarn_wide product = {other << 32 | (low & half),
                         (int64_t)((x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32))};
    return (a < 0) != (b < 0) ? wide_negated(product) : product;
}

/* high * 2^64 + low over b, bit by bit; high < b < 2^63, so that the quotient fits a word. */
static inline uint64_t divide_words(uint64_t high, uint64_t low, uint64_t b, uint64_t *rest)
{
    uint64_t quotient = 0;
    for (int bit = 63; bit >= 0; bit--) {
        high = high << 1 | (low >> bit & 1);
        quotient <<= 1;
        if (high >= b) {
            high -= b;
            quotient |= 1;
        }
    }
    *rest = high;
    return quotient;
}

static inline tarn_wide wide_divide(tarn_wide a, int64_t b, int64_t *rest)
{
    bool negative = a.high < 0;
    tarn_wide size = negative ? wide_negated(a) : a;
    uint64_t divisor = (uint64_t)b, high = (uint64_t)size.high / divisor, left;
    uint64_t low = high == 0 && size.high == 0
                       ? (left = size.low % divisor, size.low / divisor)
                       : divide_words((uint64_t)size.high % divisor, size.low, divisor, &left);
    tarn_wide quotient = {low, (int64_t)high};
    *rest = (int64_t)left;
    if (!negative)
        return quotient;
    if (left == 0)
        return wide_negated(quotient);
    *rest = b - (int64_t)left; /* -(q + r/b) is -(q + 1) + (b - r)/b */
    return wide_negated(wide_add(quotient, wide_of(1)));
}

static inline uint64_t wide_low(tarn_wide a)
{
    return a.low;
}

#endif
#endif
