/* A thin set of vector operations, the same on every instruction set: vectors of VECTOR_BYTES
 * bytes.
 *
 * Arithmetic, comparison and bit operations are the compiler's own (+ / > & on vector types); a
 * comparison gives a vector of all-ones and all-zeros lanes. What C has no operator for is here,
 * for each element type t of f32 f64 i8 i16 i32 i64; u16 u32 u64 have v_t, load to select only:
 *
 *   v_t                      the vector; LANES_t its number of lanes
 *   load_t(p)  store_t(p,v)  unaligned
 *   load_part_t(p,n)         the first n < LANES_t elements, zeros behind; reads nothing else
 *   store_part_t(p,v,n)
 *   store_past_f32(p,v)      non-temporal, to an address that is a multiple of a vector's bytes;
 * finish_stores() after
 *                            the last of them
 *   splat_t(x)
 *   select_t(mask,a,b)       a where mask is set, else b; mask is of the signed type of that width
 *   greater_t(right,left)    right > left ? right : left; so the left one of equals
 *   lesser_t(right,left)     right < left ? right : left
 *   above_t(a,b) equal_t(a,b) where a > b, where a == b
 *   if_greater_t(a,b,x,y)    x where a > b, else y: integers of that width; not for unsigned
 * types, as all three
 *   if_wins_t(a,b,x,y)       x where a > b, or a == b and x < y; else y
 *   evens_t(a,b) odds_t(a,b) every second lane of a and b, side by side
 *   near_evens_t(a,b) near_odds_t(a,b) in_order_t(v): the same in two steps
 *   unpack_lo_t unpack_hi_t  a0 b0 a1 b1 ... of the lower, or the upper, half of every 16 bytes;
 * signed integers
 *   blend_lo_t blend_hi_t    a0 b0 a1 b1 ... : the lower and the upper half of the result
 *   unordered_t(a,b)         where a or b is NaN; f32 f64
 *   any(mask)                whether any bit of a vector is set
 *   HELD(v)                  v stays in a register: compilers may load it again for each use
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

/* What integer instructions take. */
#if VECTOR_BYTES == 64
typedef __m512i v_raw;
#elif VECTOR_BYTES == 32
typedef __m256i v_raw;
#elif defined(__x86_64__)
typedef __m128i v_raw;
#endif

#if defined(__x86_64__)
#define HELD(v) __asm__("" : "+x"(v))
#else
#define HELD(v) (void)0
#endif

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

/* A part of a vector of `whole` bytes goes by its binary digits: no loop, and no call of
 * memcpy. Not inlined: it would be most of the code of what calls it. */
static NOT_INLINE void copy_part(char *restrict to, const char *restrict from, size_t bytes,
                                 size_t whole)
{
    for (size_t piece = whole / 2; piece > 0; piece /= 2)
        if (bytes & piece) {
            switch (piece) {
            case 32:
                memcpy(to, from, 32);
                break;
            case 16:
                memcpy(to, from, 16);
                break;
            case 8:
                memcpy(to, from, 8);
                break;
            case 4:
                memcpy(to, from, 4);
                break;
            case 2:
                memcpy(to, from, 2);
                break;
            default:
                *to = *from;
                break;
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
MEMORY_OPERATIONS(i16, int16_t, i16)
MEMORY_OPERATIONS(u16, uint16_t, i16)
MEMORY_OPERATIONS(i32, int32_t, i32)
MEMORY_OPERATIONS(u32, uint32_t, i32)
MEMORY_OPERATIONS(i64, int64_t, i64)
MEMORY_OPERATIONS(u64, uint64_t, i64)
#undef MEMORY_OPERATIONS

#define PARTS_BY_COPY(t)                                                                           \
    static inline v_##t load_part_##t(const void *p, int64_t n)                                    \
    {                                                                                              \
        v_##t v = {0};                                                                             \
        copy_part((char *)&v, p, (size_t)n * sizeof v[0], sizeof v);                               \
        return v;                                                                                  \
    }                                                                                              \
    static inline void store_part_##t(void *p, v_##t v, int64_t n)                                 \
    {                                                                                              \
        copy_part(p, (const char *)&v, (size_t)n * sizeof v[0], sizeof v);                         \
    }
#define PARTS_BY_MASK(t, LOAD, STORE)                                                              \
    static inline v_##t load_part_##t(const void *p, int64_t n)                                    \
    {                                                                                              \
        return (v_##t)LOAD(p, n);                                                                  \
    }                                                                                              \
    static inline void store_part_##t(void *p, v_##t v, int64_t n)                                 \
    {                                                                                              \
        STORE(p, v, n);                                                                            \
    }
#if VECTOR_BYTES == 64
#define FIRST(n) ((UINT64_C(1) << (n)) - 1)
#define LOAD_8(p, n) _mm512_maskz_loadu_epi8((__mmask64)FIRST(n), p)
#define LOAD_16(p, n) _mm512_maskz_loadu_epi16((__mmask32)FIRST(n), p)
#define LOAD_32(p, n) _mm512_maskz_loadu_epi32((__mmask16)FIRST(n), p)
#define LOAD_64(p, n) _mm512_maskz_loadu_epi64((__mmask8)FIRST(n), p)
#define STORE_8(p, v, n) _mm512_mask_storeu_epi8(p, (__mmask64)FIRST(n), (__m512i)(v))
#define STORE_16(p, v, n) _mm512_mask_storeu_epi16(p, (__mmask32)FIRST(n), (__m512i)(v))
#define STORE_32(p, v, n) _mm512_mask_storeu_epi32(p, (__mmask16)FIRST(n), (__m512i)(v))
#define STORE_64(p, v, n) _mm512_mask_storeu_epi64(p, (__mmask8)FIRST(n), (__m512i)(v))
#elif VECTOR_BYTES == 32
#define FIRST_32(n)                                                                                \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define FIRST_64(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define LOAD_32(p, n) _mm256_maskload_epi32(p, FIRST_32(n))
#define LOAD_64(p, n) _mm256_maskload_epi64(p, FIRST_64(n))
#define STORE_32(p, v, n) _mm256_maskstore_epi32(p, FIRST_32(n), (__m256i)(v))
#define STORE_64(p, v, n) _mm256_maskstore_epi64(p, FIRST_64(n), (__m256i)(v))
#endif
#if VECTOR_BYTES == 64
PARTS_BY_MASK(i8, LOAD_8, STORE_8)
PARTS_BY_MASK(u8, LOAD_8, STORE_8)
PARTS_BY_MASK(i16, LOAD_16, STORE_16)
PARTS_BY_MASK(u16, LOAD_16, STORE_16)
#else
PARTS_BY_COPY(i8)
PARTS_BY_COPY(u8)
PARTS_BY_COPY(i16)
PARTS_BY_COPY(u16)
#endif
#if VECTOR_BYTES > 16
PARTS_BY_MASK(f32, LOAD_32, STORE_32)
PARTS_BY_MASK(i32, LOAD_32, STORE_32)
PARTS_BY_MASK(u32, LOAD_32, STORE_32)
PARTS_BY_MASK(f64, LOAD_64, STORE_64)
PARTS_BY_MASK(i64, LOAD_64, STORE_64)
#else
PARTS_BY_COPY(f32)
PARTS_BY_COPY(i32)
PARTS_BY_COPY(u32)
PARTS_BY_COPY(f64)
PARTS_BY_COPY(i64)
#endif
#undef PARTS_BY_COPY
#undef PARTS_BY_MASK
#undef FIRST
#undef LOAD_8
#undef LOAD_16
#undef LOAD_32
#undef LOAD_64
#undef STORE_8
#undef STORE_16
#undef STORE_32
#undef STORE_64

/* ---- Stores past the caches ----------------------------------------------------------------- */

/* Ordinary stores read a line of memory before they overwrite it. */
static inline void store_past_f32(float *p, v_f32 v)
{
#if VECTOR_BYTES == 64
    _mm512_stream_ps(p, (__m512)v);
#elif VECTOR_BYTES == 32
    _mm256_stream_ps(p, (__m256)v);
#elif defined(__x86_64__)
    _mm_stream_ps(p, (__m128)v);
#else
    store_f32(p, v);
#endif
}

/* Before another thread is told that results are there. */
static inline void finish_stores(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* ---- Comparisons ---------------------------------------------------------------------------- */

#define COMPARISONS(t, m)                                                                          \
    static inline v_##m above_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return a > b;                                                                              \
    }                                                                                              \
    static inline v_##m equal_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return a == b;                                                                             \
    }
COMPARISONS(f32, i32)
COMPARISONS(f64, i64)
COMPARISONS(i8, i8)
COMPARISONS(i16, i16)
COMPARISONS(i32, i32)
#if VECTOR_BYTES > 16 || !defined(__x86_64__)
COMPARISONS(i64, i64)
#else
/* SSE2 compares 32 bits at most. The lower halves decide between equal upper ones, by the
 * borrow of a difference. */
static inline v_i64 above_i64(v_i64 a, v_i64 b)
{
    __m128i above = _mm_cmpgt_epi32((__m128i)a, (__m128i)b),
            equal = _mm_cmpeq_epi32((__m128i)a, (__m128i)b);
    __m128i borrow = _mm_and_si128(equal, _mm_sub_epi64((__m128i)b, (__m128i)a));
    return (v_i64)_mm_shuffle_epi32(_mm_or_si128(above, borrow), 0xf5);
}

static inline v_i64 equal_i64(v_i64 a, v_i64 b)
{
    __m128i equal = _mm_cmpeq_epi32((__m128i)a, (__m128i)b);
    return (v_i64)_mm_and_si128(equal, _mm_shuffle_epi32(equal, 0xb1));
}
#endif
#undef COMPARISONS

/* ---- The greater and the lesser of two ------------------------------------------------------ */

/* x86's maxps and minps are these very functions, also for zeros of both signs; AArch64's fmax
 * is not. */
#define BY_COMPARISON(t)                                                                           \
    static inline v_##t greater_##t(v_##t right, v_##t left)                                       \
    {                                                                                              \
        return select_##t(above_##t(right, left), right, left);                                    \
    }                                                                                              \
    static inline v_##t lesser_##t(v_##t right, v_##t left)                                        \
    {                                                                                              \
        return select_##t(above_##t(left, right), right, left);                                    \
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
BY_COMPARISON(i16)
BY_COMPARISON(i32)
BY_COMPARISON(i64)
#elif VECTOR_BYTES == 16
BY_INSTRUCTION(f32, __m128, _mm_max_ps, _mm_min_ps)
BY_INSTRUCTION(f64, __m128d, _mm_max_pd, _mm_min_pd)
BY_COMPARISON(i8)
BY_INSTRUCTION(i16, __m128i, _mm_max_epi16, _mm_min_epi16)
BY_COMPARISON(i32)
BY_COMPARISON(i64)
#elif VECTOR_BYTES == 32
BY_INSTRUCTION(f32, __m256, _mm256_max_ps, _mm256_min_ps)
BY_INSTRUCTION(f64, __m256d, _mm256_max_pd, _mm256_min_pd)
BY_INSTRUCTION(i8, __m256i, _mm256_max_epi8, _mm256_min_epi8)
BY_INSTRUCTION(i16, __m256i, _mm256_max_epi16, _mm256_min_epi16)
BY_INSTRUCTION(i32, __m256i, _mm256_max_epi32, _mm256_min_epi32)
BY_COMPARISON(i64)
#else
BY_INSTRUCTION(f32, __m512, _mm512_max_ps, _mm512_min_ps)
BY_INSTRUCTION(f64, __m512d, _mm512_max_pd, _mm512_min_pd)
BY_INSTRUCTION(i8, __m512i, _mm512_max_epi8, _mm512_min_epi8)
BY_INSTRUCTION(i16, __m512i, _mm512_max_epi16, _mm512_min_epi16)
BY_INSTRUCTION(i32, __m512i, _mm512_max_epi32, _mm512_min_epi32)
BY_INSTRUCTION(i64, __m512i, _mm512_max_epi64, _mm512_min_epi64)
#endif
#undef BY_COMPARISON
#undef BY_INSTRUCTION

/* ---- Sums of codes -------------------------------------------------------------------------- */

/* They may wrap where nobody looks, between the rows of a block. */
#define ADDED(t, u)                                                                                \
    static inline v_##t added_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return (v_##t)((v_##u)a + (v_##u)b);                                                       \
    }
ADDED(i8, u8)
ADDED(i16, u16)
ADDED(i32, u32)
ADDED(i64, u64)
#undef ADDED

/* ---- What goes with the greater of two ------------------------------------------------------ */

#define CHOICES(t, m)                                                                              \
    static inline v_##m if_greater_##t(v_##t a, v_##t b, v_##m x, v_##m y)                         \
    {                                                                                              \
        return select_##m(above_##t(a, b), x, y);                                                  \
    }                                                                                              \
    static inline v_##m if_wins_##t(v_##t a, v_##t b, v_##m x, v_##m y)                            \
    {                                                                                              \
        return select_##m(above_##t(a, b) | (equal_##t(a, b) & above_##m(y, x)), x, y);            \
    }
/* Masks are registers of their own: two masked operations, of which the first is a minimum
 * where a == b. */
#define CHOICES_BY_MASK(t, m, vector, bits, GREATER, EQUAL)                                        \
    static inline v_##m if_greater_##t(v_##t a, v_##t b, v_##m x, v_##m y)                         \
    {                                                                                              \
        return (v_##m)_mm512_mask_mov_epi##bits((__m512i)y, GREATER((vector)a, (vector)b),         \
                                                (__m512i)x);                                       \
    }                                                                                              \
    static inline v_##m if_wins_##t(v_##t a, v_##t b, v_##m x, v_##m y)                            \
    {                                                                                              \
        __m512i least = _mm512_mask_min_epi##bits((__m512i)y, EQUAL((vector)a, (vector)b),         \
                                                  (__m512i)x, (__m512i)y);                         \
        return if_greater_##t(a, b, x, (v_##m)least);                                              \
    }
#if VECTOR_BYTES == 64
#define GREATER_PS(a, b) _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)
#define EQUAL_PS(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define GREATER_PD(a, b) _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ)
#define EQUAL_PD(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
CHOICES_BY_MASK(f32, i32, __m512, 32, GREATER_PS, EQUAL_PS)
CHOICES_BY_MASK(f64, i64, __m512d, 64, GREATER_PD, EQUAL_PD)
CHOICES_BY_MASK(i8, i8, __m512i, 8, _mm512_cmpgt_epi8_mask, _mm512_cmpeq_epi8_mask)
CHOICES_BY_MASK(i16, i16, __m512i, 16, _mm512_cmpgt_epi16_mask, _mm512_cmpeq_epi16_mask)
CHOICES_BY_MASK(i32, i32, __m512i, 32, _mm512_cmpgt_epi32_mask, _mm512_cmpeq_epi32_mask)
CHOICES_BY_MASK(i64, i64, __m512i, 64, _mm512_cmpgt_epi64_mask, _mm512_cmpeq_epi64_mask)
#else
CHOICES(f32, i32)
CHOICES(f64, i64)
CHOICES(i8, i8)
CHOICES(i16, i16)
CHOICES(i32, i32)
CHOICES(i64, i64)
#endif
#undef CHOICES
#undef CHOICES_BY_MASK

/* ---- NaN ------------------------------------------------------------------------------------ */

static inline v_i32 unordered_f32(v_f32 a, v_f32 b)
{
#if VECTOR_BYTES == 64
    return (v_i32)_mm512_movm_epi32(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q));
#elif VECTOR_BYTES == 32
    return (v_i32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#elif VECTOR_BYTES == 16 && defined(__x86_64__)
    return (v_i32)_mm_cmpunord_ps((__m128)a, (__m128)b);
#else
    return (a != a) | (b != b);
#endif
}

static inline v_i64 unordered_f64(v_f64 a, v_f64 b)
{
#if VECTOR_BYTES == 64
    return (v_i64)_mm512_movm_epi64(_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q));
#elif VECTOR_BYTES == 32
    return (v_i64)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
#elif VECTOR_BYTES == 16 && defined(__x86_64__)
    return (v_i64)_mm_cmpunord_pd((__m128d)a, (__m128d)b);
#else
    return (a != a) | (b != b);
#endif
}

/* ---- Every second lane ---------------------------------------------------------------------- */

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
    PICKS(t, signed_type, STEPS)                                                                   \
    BLENDS(t, signed_type, PAIRS)
#define PICKS(t, signed_type, STEPS)                                                               \
    static inline v_##t evens_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return SHUFFLE(t, signed_type, a, b, STEPS(0));                                            \
    }                                                                                              \
    static inline v_##t odds_##t(v_##t a, v_##t b)                                                 \
    {                                                                                              \
        return SHUFFLE(t, signed_type, a, b, STEPS(1));                                            \
    }
#define BLENDS(t, signed_type, PAIRS)                                                              \
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
/* Two steps, of which the second can come after arithmetic on what was picked:
 * near_evens_t(a,b) and near_odds_t(a,b) pick the lanes in some order, the same for both, and
 * in_order_t(v) puts them in order. On AVX2, picking within each half is one instruction. */
#if VECTOR_BYTES == 64
#define QUARTERS_IN_ORDER(v)                                                                       \
    _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512i)(v))
#elif VECTOR_BYTES == 32
#define QUARTERS_IN_ORDER(v) _mm256_permute4x64_epi64((__m256i)(v), 0xd8)
#else
#define QUARTERS_IN_ORDER(v) (v)
#endif
#define IN_ONE_STEP(t)                                                                             \
    static inline v_##t near_evens_##t(v_##t a, v_##t b)                                           \
    {                                                                                              \
        return evens_##t(a, b);                                                                    \
    }                                                                                              \
    static inline v_##t near_odds_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return odds_##t(a, b);                                                                     \
    }                                                                                              \
    static inline v_##t in_order_##t(v_##t v)                                                      \
    {                                                                                              \
        return v;                                                                                  \
    }
#define IN_TWO_STEPS(t, PICK)                                                                      \
    NEAR(t, PICK)                                                                                  \
    static inline v_##t evens_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return in_order_##t(near_evens_##t(a, b));                                                 \
    }                                                                                              \
    static inline v_##t odds_##t(v_##t a, v_##t b)                                                 \
    {                                                                                              \
        return in_order_##t(near_odds_##t(a, b));                                                  \
    }
#define NEAR(t, PICK)                                                                              \
    static inline v_##t near_evens_##t(v_##t a, v_##t b)                                           \
    {                                                                                              \
        return (v_##t)PICK(a, b, 0);                                                               \
    }                                                                                              \
    static inline v_##t near_odds_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return (v_##t)PICK(a, b, 1);                                                               \
    }                                                                                              \
    static inline v_##t in_order_##t(v_##t v)                                                      \
    {                                                                                              \
        return (v_##t)QUARTERS_IN_ORDER(v);                                                        \
    }
#if VECTOR_BYTES == 32
#define PICK_32(a, b, odd) _mm256_shuffle_ps((__m256)(a), (__m256)(b), (odd) ? 0xdd : 0x88)
#define PICK_64(a, b, odd) _mm256_shuffle_pd((__m256d)(a), (__m256d)(b), (odd) ? 0xf : 0)
IN_TWO_STEPS(f32, PICK_32)
IN_TWO_STEPS(i32, PICK_32)
IN_TWO_STEPS(f64, PICK_64)
IN_TWO_STEPS(i64, PICK_64)
BLENDS(f32, i32, PAIRS_8)
BLENDS(i32, i32, PAIRS_8)
BLENDS(f64, i64, PAIRS_4)
BLENDS(i64, i64, PAIRS_4)
#else
SHUFFLES_32(f32, i32)
SHUFFLES_32(i32, i32)
SHUFFLES_64(f64, i64)
SHUFFLES_64(i64, i64)
IN_ONE_STEP(f32)
IN_ONE_STEP(i32)
IN_ONE_STEP(f64)
IN_ONE_STEP(i64)
#endif
SHUFFLES_8(i8, i8)
SHUFFLES_16(i16, i16)
/* Short integers are the halves of wider ones, which x86 narrows in pairs of vectors. */
#if defined(__x86_64__)
#if VECTOR_BYTES == 64
#define PACK_16 _mm512_packus_epi16
#define PACK_32 _mm512_packus_epi32
#elif VECTOR_BYTES == 32
#define PACK_16 _mm256_packus_epi16
#define PACK_32 _mm256_packus_epi32
#else
#define PACK_16 _mm_packus_epi16
#endif
#define HALF_16(v, odd) ((v_raw)((odd) ? (v_u16)(v) >> 8 : (v_u16)(v)&0xff))
#define PICK_8(a, b, odd) PACK_16(HALF_16(a, odd), HALF_16(b, odd))
#ifdef PACK_32
#define HALF_32(v, odd) ((v_raw)((odd) ? (v_u32)(v) >> 16 : (v_u32)(v)&0xffff))
#define PICK_16(a, b, odd) PACK_32(HALF_32(a, odd), HALF_32(b, odd))
#else
#define HALF_32(v, odd) ((v_raw)((v_i32)((odd) ? (v_u32)(v) : (v_u32)(v) << 16) >> 16))
#define PICK_16(a, b, odd) _mm_packs_epi32(HALF_32(a, odd), HALF_32(b, odd))
#endif
NEAR(i8, PICK_8)
NEAR(i16, PICK_16)
#else
IN_ONE_STEP(i8)
IN_ONE_STEP(i16)
#endif
#undef NEAR
#undef IN_ONE_STEP
#undef IN_TWO_STEPS

/* ---- Within 16 bytes ------------------------------------------------------------------------ */

#define UNPACK(t, vector, LOW, HIGH)                                                               \
    static inline v_##t unpack_lo_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return (v_##t)LOW((vector)a, (vector)b);                                                   \
    }                                                                                              \
    static inline v_##t unpack_hi_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return (v_##t)HIGH((vector)a, (vector)b);                                                  \
    }
#if VECTOR_BYTES == 64
UNPACK(i8, __m512i, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8)
UNPACK(i16, __m512i, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16)
UNPACK(i32, __m512i, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32)
UNPACK(i64, __m512i, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64)
#elif VECTOR_BYTES == 32
UNPACK(i8, __m256i, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8)
UNPACK(i16, __m256i, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16)
UNPACK(i32, __m256i, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32)
UNPACK(i64, __m256i, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64)
#else
UNPACK(i8, v_i8, blend_lo_i8, blend_hi_i8)
UNPACK(i16, v_i16, blend_lo_i16, blend_hi_i16)
UNPACK(i32, v_i32, blend_lo_i32, blend_hi_i32)
UNPACK(i64, v_i64, blend_lo_i64, blend_hi_i64)
#endif
#undef UNPACK

#include "vector_types.inc"

#endif
