/* Vectors of 8-bit and 16-bit integers: LANES_f32 of them, widened to f32, and means rounded back.
 *
 * A sum of n of them is exact in f32 while it stays below 2^24. Its quotient by n, rounded once to f32,
 * is then rounded half to even. That gives what rounding the exact quotient does: where that lies halfway
 * between integers, f32 holds it exactly; elsewhere it is at least 1/(2n) off, and rounding to f32 moves
 * a quotient below 2^8 by at most 2^-17 and one below 2^16 by at most 2^-9, which is less for n < 2^15
 * and n < 2^8.
 */
#ifndef TARN_SHORT_INTEGERS_H
#define TARN_SHORT_INTEGERS_H

#include "vector.h"

/* To the nearest integer: 1.5*2^23 pushes the fraction out. Saturates first, as no mean needs more. */
static inline v_i32 rounded_mean(v_f32 mean, float lowest, float highest)
{
    mean = lesser_f32(greater_f32(mean, splat_f32(lowest)), splat_f32(highest));
    return __builtin_convertvector((mean + 0x1.8p23f) - 0x1.8p23f, v_i32);
}

/* The mean of n <= 2^12 bytes as the lowest byte of a lane, given 1/n in f32. That and the product are each
 * rounded by 2^-24 of themselves, which moves a quotient below 2^8 by less than 2^-15. If n is odd it is at
 * least 1/(2n) off all that lies halfway, and so rounded as the exact one; if n is a power of two it is
 * exact. Other n are not taken. */
static inline bool can_be_scaled(int64_t n)
{
    return n % 2 == 1 || (n & (n - 1)) == 0;
}

static inline v_i32 scaled_mean(v_f32 sum, v_f32 reciprocal)
{
    return (v_i32)(sum * reciprocal + 0x1.8p23f);
}

/* Bytes are widened and narrowed by vector.h: compilers do it lane by lane. */
static inline v_i32 integers_of_u8(const void *p)
{
    return widen_bytes_i32(p);
}

static inline v_i32 integers_of_i8(const void *p)
{
    return (v_i32)((v_u32)widen_bytes_i32(p) << 24) >> 24;
}

/* ... to 16 bits. */
static inline v_u16 words_of_u8(const void *p)
{
    return widen_bytes_u16(p);
}

static inline v_u16 words_of_i8(const void *p)
{
    return (v_u16)((v_i16)(widen_bytes_u16(p) << 8) >> 8);
}

#define store_integers_u8(p, v) store_bytes_i32((char *)(p), v, LANES_i32)
#define store_integers_i8(p, v) store_bytes_i32((char *)(p), v, LANES_i32)

#define WORDS(t, element)                                                                          \
    typedef element v_short_##t __attribute__((vector_size(VECTOR_BYTES / 2)));                    \
    static inline v_i32 integers_of_##t(const void *p)                                             \
    {                                                                                              \
        v_short_##t v;                                                                             \
        memcpy(&v, p, sizeof v);                                                                   \
        return __builtin_convertvector(v, v_i32);                                                  \
    }                                                                                              \
    static inline void store_integers_##t(void *p, v_i32 integers)                                 \
    {                                                                                              \
        v_short_##t v = __builtin_convertvector(integers, v_short_##t);                            \
        memcpy(p, &v, sizeof v);                                                                   \
    }
WORDS(i16, int16_t)
WORDS(u16, uint16_t)
#undef WORDS

#define SHORT_INTEGERS(t, element, lowest, highest)                                                \
    static inline v_f32 floats_of_##t(const element *p)                                            \
    {                                                                                              \
        return __builtin_convertvector(integers_of_##t(p), v_f32);                                 \
    }                                                                                              \
    static inline v_f32 floats_of_part_##t(const element *p, int64_t n)                            \
    {                                                                                              \
        element part[LANES_i32] = {0};                                                             \
        copy_part((char *)part, (const char *)p, (size_t)n * sizeof(element), sizeof part);        \
        return floats_of_##t(part);                                                                \
    }                                                                                              \
    static inline void store_rounded_##t(element *p, v_f32 mean)                                   \
    {                                                                                              \
        store_integers_##t(p, rounded_mean(mean, lowest, highest));                                \
    }                                                                                              \
    static inline void store_rounded_part_##t(element *p, v_f32 mean, int64_t n)                   \
    {                                                                                              \
        element part[LANES_i32];                                                                   \
        store_rounded_##t(part, mean);                                                             \
        copy_part((char *)p, (const char *)part, (size_t)n * sizeof(element), sizeof part);        \
    }
SHORT_INTEGERS(i8, int8_t, INT8_MIN, INT8_MAX)
SHORT_INTEGERS(u8, uint8_t, 0, UINT8_MAX)
SHORT_INTEGERS(i16, int16_t, INT16_MIN, INT16_MAX)
SHORT_INTEGERS(u16, uint16_t, 0, UINT16_MAX)
#undef SHORT_INTEGERS

#endif
