/* A thin set of vector operations, the same on every instruction set: vectors of VECTOR_BYTES bytes.
 *
 * Arithmetic, comparison and bit operations are the compiler's own (+ / > & on vector types); a
 * comparison gives a vector of all-ones and all-zeros lanes. What C has no operator for is here, for
 * each element type t of f32 f64 i8 u8 i16 u16 i32 u32 i64 u64:
 *
 *   v_t                      the vector; LANES_t its number of lanes
 *   load_t(p)  store_t(p,v)  unaligned
 *   load_part_t(p,n)         the first n < LANES_t elements, zeros behind; reads nothing else
 *   store_part_t(p,v,n)
 *   splat_t(x)
 *   select_t(mask,a,b)       a where mask is set, else b; mask is of the signed type of that width
 *   greater_t(right,left)    right > left ? right : left; so the left one of equals
 *   lesser_t(right,left)     right < left ? right : left
 *   evens_t(a,b) odds_t(a,b) every second lane of a and b, side by side
 *   blend_lo_t blend_hi_t    a0 b0 a1 b1 ... : the lower and the upper half of the result
 *   any(mask)                whether any bit of a vector is set
 */
#ifndef TARN_VECTOR_H
#define TARN_VECTOR_H

#include "../scalar.h"

#define VECTOR_TYPE(t, element)                                                                    \
    typedef element v_##t __attribute__((vector_size(VECTOR_BYTES)));                              \
    enum { LANES_##t = VECTOR_BYTES / (int)sizeof(element) };
VECTOR_TYPE(f32, float)
VECTOR_TYPE(f64, double)
VECTOR_TYPE(i8, int8_t)
VECTOR_TYPE(u8, uint8_t)
VECTOR_TYPE(i16, int16_t)
VECTOR_TYPE(u16, uint16_t)
VECTOR_TYPE(i32, int32_t)
VECTOR_TYPE(u32, uint32_t)
VECTOR_TYPE(i64, int64_t)
VECTOR_TYPE(u64, uint64_t)
#undef VECTOR_TYPE

/* ---- Whether a mask has a set bit ----------------------------------------------------------- */

static inline bool any(v_i32 mask)
{
#if VECTOR_BYTES == 64
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif VECTOR_BYTES == 32
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    v_u64 halves = (v_u64)mask;
    return (halves[0] | halves[1]) != 0;
#endif
}

/* ---- Loads, stores, selection --------------------------------------------------------------- */

/* A part of a vector goes by its binary digits: no loop, and no call of memcpy. */
static inline void copy_part(char *restrict to, const char *restrict from, size_t bytes)
{
    for (size_t piece = VECTOR_BYTES / 2; piece > 0; piece /= 2)
        if (bytes & piece) {
            switch (piece) {
            case 32: memcpy(to, from, 32); break;
            case 16: memcpy(to, from, 16); break;
            case 8: memcpy(to, from, 8); break;
            case 4: memcpy(to, from, 4); break;
            case 2: memcpy(to, from, 2); break;
            default: *to = *from; break;
            }
            to += piece;
            from += piece;
        }
}

#if VECTOR_BYTES == 32
#define SELECT(mask, a, b) _mm256_blendv_epi8((__m256i)(b), (__m256i)(a), (__m256i)(mask))
#else
#define SELECT(mask, a, b) (((v_i32)(mask) & (v_i32)(a)) | (~(v_i32)(mask) & (v_i32)(b)))
#endif

#define MEMORY_OPERATIONS(t, element, signed_type)                                                 \
    static inline v_##t load_##t(const void *p)                                                    \
    {                                                                                              \
        v_##t v;                                                                                   \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    static inline void store_##t(void *p, v_##t v)                                                 \
    {                                                                                              \
        memcpy(p, &v, sizeof v);                                                                   \
    }                                                                                              \
    static inline v_##t load_part_##t(const void *p, int64_t n)                                    \
    {                                                                                              \
        v_##t v = {0};                                                                             \
        copy_part((char *)&v, p, (size_t)n * sizeof(element));                                     \
        return v;                                                                                  \
    }                                                                                              \
    static inline void store_part_##t(void *p, v_##t v, int64_t n)                                 \
    {                                                                                              \
        copy_part(p, (const char *)&v, (size_t)n * sizeof(element));                               \
    }                                                                                              \
    static inline v_##t splat_##t(element x)                                                       \
    {                                                                                              \
        return x - (v_##t){0};                                                                     \
    }                                                                                              \
    static inline v_##t select_##t(v_##signed_type mask, v_##t a, v_##t b)                         \
    {                                                                                              \
        return (v_##t)SELECT(mask, a, b);                                                          \
    }
MEMORY_OPERATIONS(f32, float, i32)
MEMORY_OPERATIONS(f64, double, i64)
MEMORY_OPERATIONS(i8, int8_t, i8)
MEMORY_OPERATIONS(u8, uint8_t, i8)
MEMORY_OPERATIONS(i16, int16_t, i16)
MEMORY_OPERATIONS(u16, uint16_t, i16)
MEMORY_OPERATIONS(i32, int32_t, i32)
MEMORY_OPERATIONS(u32, uint32_t, i32)
MEMORY_OPERATIONS(i64, int64_t, i64)
MEMORY_OPERATIONS(u64, uint64_t, i64)
#undef MEMORY_OPERATIONS

/* ---- The greater and the lesser of two ------------------------------------------------------- */

/* x86's maxps and minps are these very functions, also for zeros of both signs; AArch64's fmax is not. */
#define BY_COMPARISON(t)                                                                           \
    static inline v_##t greater_##t(v_##t right, v_##t left)                                       \
    {                                                                                              \
        return select_##t(right > left, right, left);                                              \
    }                                                                                              \
    static inline v_##t lesser_##t(v_##t right, v_##t left)                                        \
    {                                                                                              \
        return select_##t(right < left, right, left);                                              \
    }
#define BY_INSTRUCTION(t, vector, greater, lesser)                                                 \
    static inline v_##t greater_##t(v_##t right, v_##t left)                                       \
    {                                                                                              \
        return (v_##t)greater((vector)right, (vector)left);                                        \
    }                                                                                              \
    static inline v_##t lesser_##t(v_##t right, v_##t left)                                        \
    {                                                                                              \
        return (v_##t)lesser((vector)right, (vector)left);                                         \
    }

#if !defined(__x86_64__)
BY_COMPARISON(f32)
BY_COMPARISON(f64)
BY_COMPARISON(i8)
BY_COMPARISON(u8)
BY_COMPARISON(i16)
BY_COMPARISON(u16)
BY_COMPARISON(i32)
BY_COMPARISON(u32)
BY_COMPARISON(i64)
BY_COMPARISON(u64)
#elif VECTOR_BYTES == 16
BY_INSTRUCTION(f32, __m128, _mm_max_ps, _mm_min_ps)
BY_INSTRUCTION(f64, __m128d, _mm_max_pd, _mm_min_pd)
BY_COMPARISON(i8)
BY_INSTRUCTION(u8, __m128i, _mm_max_epu8, _mm_min_epu8)
BY_INSTRUCTION(i16, __m128i, _mm_max_epi16, _mm_min_epi16)
BY_COMPARISON(u16)
BY_COMPARISON(i32)
BY_COMPARISON(u32)
BY_COMPARISON(i64)
BY_COMPARISON(u64)
#elif VECTOR_BYTES == 32
BY_INSTRUCTION(f32, __m256, _mm256_max_ps, _mm256_min_ps)
BY_INSTRUCTION(f64, __m256d, _mm256_max_pd, _mm256_min_pd)
BY_INSTRUCTION(i8, __m256i, _mm256_max_epi8, _mm256_min_epi8)
BY_INSTRUCTION(u8, __m256i, _mm256_max_epu8, _mm256_min_epu8)
BY_INSTRUCTION(i16, __m256i, _mm256_max_epi16, _mm256_min_epi16)
BY_INSTRUCTION(u16, __m256i, _mm256_max_epu16, _mm256_min_epu16)
BY_INSTRUCTION(i32, __m256i, _mm256_max_epi32, _mm256_min_epi32)
BY_INSTRUCTION(u32, __m256i, _mm256_max_epu32, _mm256_min_epu32)
BY_COMPARISON(i64)
BY_COMPARISON(u64)
#else
BY_INSTRUCTION(f32, __m512, _mm512_max_ps, _mm512_min_ps)
BY_INSTRUCTION(f64, __m512d, _mm512_max_pd, _mm512_min_pd)
BY_INSTRUCTION(i8, __m512i, _mm512_max_epi8, _mm512_min_epi8)
BY_INSTRUCTION(u8, __m512i, _mm512_max_epu8, _mm512_min_epu8)
BY_INSTRUCTION(i16, __m512i, _mm512_max_epi16, _mm512_min_epi16)
BY_INSTRUCTION(u16, __m512i, _mm512_max_epu16, _mm512_min_epu16)
BY_INSTRUCTION(i32, __m512i, _mm512_max_epi32, _mm512_min_epi32)
BY_INSTRUCTION(u32, __m512i, _mm512_max_epu32, _mm512_min_epu32)
BY_INSTRUCTION(i64, __m512i, _mm512_max_epi64, _mm512_min_epi64)
BY_INSTRUCTION(u64, __m512i, _mm512_max_epu64, _mm512_min_epu64)
#endif
#undef BY_COMPARISON
#undef BY_INSTRUCTION

/* ---- Every second lane ----------------------------------------------------------------------- */

/* Lane k of a and b, counted as one list, for the lanes in brackets. */
#ifdef __clang__
#define SHUFFLE(t, signed_type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(t, signed_type, a, b, ...) __builtin_shuffle(a, b, (v_##signed_type){__VA_ARGS__})
#endif
/* n, n+2, ... : 2, 4, ..., 64 numbers. */
#define STEPS_2(n) (n), (n) + 2
#define STEPS_4(n) STEPS_2(n), STEPS_2((n) + 4)
#define STEPS_8(n) STEPS_4(n), STEPS_4((n) + 8)
#define STEPS_16(n) STEPS_8(n), STEPS_8((n) + 16)
#define STEPS_32(n) STEPS_16(n), STEPS_16((n) + 32)
#define STEPS_64(n) STEPS_32(n), STEPS_32((n) + 64)
/* n, n+d, n+1, n+1+d, ... */
#define PAIRS_2(n, d) (n), (n) + (d)
#define PAIRS_4(n, d) PAIRS_2(n, d), PAIRS_2((n) + 1, d)
#define PAIRS_8(n, d) PAIRS_4(n, d), PAIRS_4((n) + 2, d)
#define PAIRS_16(n, d) PAIRS_8(n, d), PAIRS_8((n) + 4, d)
#define PAIRS_32(n, d) PAIRS_16(n, d), PAIRS_16((n) + 8, d)
#define PAIRS_64(n, d) PAIRS_32(n, d), PAIRS_32((n) + 16, d)

#define SHUFFLES(t, signed_type, STEPS, PAIRS)                                                     \
    static inline v_##t evens_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return SHUFFLE(t, signed_type, a, b, STEPS(0));                                            \
    }                                                                                              \
    static inline v_##t odds_##t(v_##t a, v_##t b)                                                 \
    {                                                                                              \
        return SHUFFLE(t, signed_type, a, b, STEPS(1));                                            \
    }                                                                                              \
    static inline v_##t blend_lo_##t(v_##t a, v_##t b)                                             \
    {                                                                                              \
        return SHUFFLE(t, signed_type, a, b, PAIRS(0, LANES_##t));                                 \
    }                                                                                              \
    static inline v_##t blend_hi_##t(v_##t a, v_##t b)                                             \
    {                                                                                              \
        return SHUFFLE(t, signed_type, a, b, PAIRS(LANES_##t / 2, LANES_##t));                     \
    }
#if VECTOR_BYTES == 16
#define SHUFFLES_8(t, m) SHUFFLES(t, m, STEPS_16, PAIRS_16)
#define SHUFFLES_16(t, m) SHUFFLES(t, m, STEPS_8, PAIRS_8)
#define SHUFFLES_32(t, m) SHUFFLES(t, m, STEPS_4, PAIRS_4)
#define SHUFFLES_64(t, m) SHUFFLES(t, m, STEPS_2, PAIRS_2)
#elif VECTOR_BYTES == 32
#define SHUFFLES_8(t, m) SHUFFLES(t, m, STEPS_32, PAIRS_32)
#define SHUFFLES_16(t, m) SHUFFLES(t, m, STEPS_16, PAIRS_16)
#define SHUFFLES_32(t, m) SHUFFLES(t, m, STEPS_8, PAIRS_8)
#define SHUFFLES_64(t, m) SHUFFLES(t, m, STEPS_4, PAIRS_4)
#else
#define SHUFFLES_8(t, m) SHUFFLES(t, m, STEPS_64, PAIRS_64)
#define SHUFFLES_16(t, m) SHUFFLES(t, m, STEPS_32, PAIRS_32)
#define SHUFFLES_32(t, m) SHUFFLES(t, m, STEPS_16, PAIRS_16)
#define SHUFFLES_64(t, m) SHUFFLES(t, m, STEPS_8, PAIRS_8)
#endif
SHUFFLES_32(f32, i32)
SHUFFLES_64(f64, i64)
SHUFFLES_8(i8, i8)
SHUFFLES_8(u8, i8)
SHUFFLES_16(i16, i16)
SHUFFLES_16(u16, i16)
SHUFFLES_32(i32, i32)
SHUFFLES_32(u32, i32)
SHUFFLES_64(i64, i64)
SHUFFLES_64(u64, i64)

#endif
