/* A thin set of vector operations, the same on every instruction set: vectors of VECTOR_BYTES
 * bytes.
 *
 * Arithmetic, comparison and bit operations are the compiler's own (+ / > & on vector types); a
 * comparison gives a vector of all-ones and all-zeros lanes. What C has no operator for is here,
 * for each element type t of f32 f64 i8 i16 i32 i64; u8 u16 u32 u64 have v_t, load to select only:
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
 *   take_greater_t(best,code,x,its_code) x and its code, an integer as wide, where x > *best; not
 * for unsigned types, as all three
 *   take_winner_t(...)       the same, also the lesser code where x == *best
 *   near_evens_t(a,b) near_odds_t(a,b)   every second lane of a and b in some order, the same for
 *   in_order_t(v)            both, and in order: it can come after arithmetic on what was picked
 *   unpack_lo_t unpack_hi_t  a0 b0 a1 b1 ... of the lower, or the upper, half of every 16 bytes;
 * signed integers
 *   blend_lo_t blend_hi_t    a0 b0 a1 b1 ... : the lower and the upper half of the result; f32 f64
 *   unordered_t(a,b)         where a or b is NaN; f32 f64
 *   any(mask)                whether any bit of a vector is set
 *   first_byte(mask)         the number of the first byte that is
 *   HELD(v)                  v stays in a register: compilers may load it again for each use
 */
#ifndef TARN_VECTOR_H
#define TARN_VECTOR_H

#include "../scalar.h"

/* All of them: the element, the signed integer as wide, and its bits. */
#define SHORT_SIGNED_TYPES(DO)                                                                     \
    DO(f32, float, i32, 32)                                                                        \
    DO(f64, double, i64, 64)                                                                       \
    DO(i8, int8_t, i8, 8) DO(i16, int16_t, i16, 16) DO(i32, int32_t, i32, 32)
#define SIGNED_TYPES(DO) SHORT_SIGNED_TYPES(DO) DO(i64, int64_t, i64, 64)
#define TYPES(DO)                                                                                  \
    SIGNED_TYPES(DO)                                                                               \
    DO(u8, uint8_t, i8, 8)                                                                         \
    DO(u16, uint16_t, i16, 16) DO(u32, uint32_t, i32, 32) DO(u64, uint64_t, i64, 64)

#define VECTOR_TYPE(t, element, m, bits)                                                           \
    typedef element v_##t __attribute__((vector_size(VECTOR_BYTES)));                              \
    enum { LANES_##t = VECTOR_BYTES / (int)sizeof(element) };
TYPES(VECTOR_TYPE)
#undef VECTOR_TYPE

/* What instructions of x86 take, and how those begin that exist for every length of vectors. */
#if VECTOR_BYTES == 64
#define X86(name) _mm512_##name
typedef __m512i v_raw;
typedef __m512 v_raw_ps;
typedef __m512d v_raw_pd;
#elif VECTOR_BYTES == 32
#define X86(name) _mm256_##name
typedef __m256i v_raw;
typedef __m256 v_raw_ps;
typedef __m256d v_raw_pd;
#elif defined(__x86_64__)
#define X86(name) _mm_##name
typedef __m128i v_raw;
typedef __m128 v_raw_ps;
typedef __m128d v_raw_pd;
#endif

#ifdef X86
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

/* The number of the first byte that is set, of lanes that are all set or not; one of them is. */
static inline int64_t first_byte(v_i32 mask)
{
#if VECTOR_BYTES == 64
    return __builtin_ctzll(_mm512_movepi8_mask((__m512i)mask));
#elif VECTOR_BYTES == 32
    return __builtin_ctz((unsigned)_mm256_movemask_epi8((__m256i)mask));
#elif defined(__SSE2__)
    return __builtin_ctz((unsigned)_mm_movemask_epi8((__m128i)mask));
#else
    unsigned char bytes[VECTOR_BYTES];
    int64_t k = 0;
    memcpy(bytes, &mask, sizeof bytes);
    while (!bytes[k])
        k++;
    return k;
#endif
}

/* ---- Loads, stores, selection --------------------------------------------------------------- */

#if VECTOR_BYTES == 32
#define SELECT(mask, a, b) _mm256_blendv_epi8((__m256i)(b), (__m256i)(a), (__m256i)(mask))
#else
#define SELECT(mask, a, b) (((v_i32)(mask) & (v_i32)(a)) | (~(v_i32)(mask) & (v_i32)(b)))
#endif

#define MEMORY_OPERATIONS(t, element, m, bits)                                                     \
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
    static inline v_##t select_##t(v_##m mask, v_##t a, v_##t b)                                   \
    {                                                                                              \
        return (v_##t)SELECT(mask, a, b);                                                          \
    }
TYPES(MEMORY_OPERATIONS)
#undef MEMORY_OPERATIONS

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

/* A part of 16 bytes as two pieces that overlap, in the halves of a vector: for rows that are
 * loaded and stored alike. */
#if VECTOR_BYTES == 16
static inline uint64_t load_piece(const char *p, size_t bytes)
{
    uint64_t whole = 0;
    uint32_t half = 0;
    uint16_t quarter = 0;
    if (bytes == 8)
        memcpy(&whole, p, 8);
    else if (bytes == 4)
        memcpy(&half, p, 4);
    else if (bytes == 2)
        memcpy(&quarter, p, 2);
    else
        quarter = *(const uint8_t *)p;
    return whole | half | quarter;
}

static inline void store_piece(char *p, uint64_t piece, size_t bytes)
{
    const uint32_t half = (uint32_t)piece;
    const uint16_t quarter = (uint16_t)piece;
    if (bytes == 8)
        memcpy(p, &piece, 8);
    else if (bytes == 4)
        memcpy(p, &half, 4);
    else if (bytes == 2)
        memcpy(p, &quarter, 2);
    else
        *(uint8_t *)p = (uint8_t)piece;
}

static inline v_i8 load_ends(const void *p, size_t bytes)
{
    const size_t piece = bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
    return (v_i8)(v_u64){load_piece(p, piece), load_piece((const char *)p + bytes - piece, piece)};
}

static inline void store_ends(void *p, v_i8 v, size_t bytes)
{
    const size_t piece = bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
    store_piece(p, ((v_u64)v)[0], piece);
    store_piece((char *)p + bytes - piece, ((v_u64)v)[1], piece);
}
#endif

static inline v_i8 load_some(const void *p, size_t bytes)
{
    v_i8 v = {0};
    copy_part((char *)&v, p, bytes, sizeof v);
    return v;
}

static inline void store_some(void *p, v_i8 v, size_t bytes)
{
    copy_part(p, (const char *)&v, bytes, sizeof v);
}

/* By masks where there are some. */
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
#else
#define LOAD_8(p, n) load_some(p, (size_t)(n))
#define LOAD_16(p, n) load_some(p, 2 * (size_t)(n))
#define STORE_8(p, v, n) store_some(p, (v_i8)(v), (size_t)(n))
#define STORE_16(p, v, n) store_some(p, (v_i8)(v), 2 * (size_t)(n))
#if VECTOR_BYTES == 32
#define FIRST_32(n)                                                                                \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define FIRST_64(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define LOAD_32(p, n) _mm256_maskload_epi32(p, FIRST_32(n))
#define LOAD_64(p, n) _mm256_maskload_epi64(p, FIRST_64(n))
#define STORE_32(p, v, n) _mm256_maskstore_epi32(p, FIRST_32(n), (__m256i)(v))
#define STORE_64(p, v, n) _mm256_maskstore_epi64(p, FIRST_64(n), (__m256i)(v))
#else
#define LOAD_32(p, n) load_some(p, 4 * (size_t)(n))
#define LOAD_64(p, n) load_some(p, 8 * (size_t)(n))
#define STORE_32(p, v, n) store_some(p, (v_i8)(v), 4 * (size_t)(n))
#define STORE_64(p, v, n) store_some(p, (v_i8)(v), 8 * (size_t)(n))
#endif
#endif
#define PARTS(t, element, m, bits)                                                                 \
    static inline v_##t load_part_##t(const void *p, int64_t n)                                    \
    {                                                                                              \
        return (v_##t)LOAD_##bits(p, n);                                                           \
    }                                                                                              \
    static inline void store_part_##t(void *p, v_##t v, int64_t n)                                 \
    {                                                                                              \
        STORE_##bits(p, v, n);                                                                     \
    }
TYPES(PARTS)
#undef PARTS

/* ---- Stores past the caches ----------------------------------------------------------------- */

/* Ordinary stores read a line of memory before they overwrite it. */
static inline void store_past_f32(float *p, v_f32 v)
{
#ifdef X86
    X86(stream_ps)(p, (v_raw_ps)v);
#else
    store_f32(p, v);
#endif
}

/* Before another thread is told that results are there. */
static inline void finish_stores(void)
{
#ifdef X86
    _mm_sfence();
#endif
}

/* ---- Comparisons ---------------------------------------------------------------------------- */

#define COMPARISONS(t, element, m, bits)                                                           \
    static inline v_##m above_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return a > b;                                                                              \
    }                                                                                              \
    static inline v_##m equal_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return a == b;                                                                             \
    }
#if VECTOR_BYTES > 16 || !defined(X86)
SIGNED_TYPES(COMPARISONS)
#else
SHORT_SIGNED_TYPES(COMPARISONS)
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
#define BY_COMPARISON(t, element, m, bits)                                                         \
    static inline v_##t greater_##t(v_##t right, v_##t left)                                       \
    {                                                                                              \
        return select_##t(above_##t(right, left), right, left);                                    \
    }                                                                                              \
    static inline v_##t lesser_##t(v_##t right, v_##t left)                                        \
    {                                                                                              \
        return select_##t(above_##t(left, right), right, left);                                    \
    }
#define BY_INSTRUCTION(t, raw, suffix)                                                             \
    static inline v_##t greater_##t(v_##t right, v_##t left)                                       \
    {                                                                                              \
        return (v_##t)X86(max_##suffix)((raw)right, (raw)left);                                    \
    }                                                                                              \
    static inline v_##t lesser_##t(v_##t right, v_##t left)                                        \
    {                                                                                              \
        return (v_##t)X86(min_##suffix)((raw)right, (raw)left);                                    \
    }
#ifndef X86
SIGNED_TYPES(BY_COMPARISON)
#else
BY_INSTRUCTION(f32, v_raw_ps, ps)
BY_INSTRUCTION(f64, v_raw_pd, pd)
BY_INSTRUCTION(i16, v_raw, epi16)
#if VECTOR_BYTES > 16
BY_INSTRUCTION(i8, v_raw, epi8)
BY_INSTRUCTION(i32, v_raw, epi32)
#else
BY_COMPARISON(i8, int8_t, i8, 8)
BY_COMPARISON(i32, int32_t, i32, 32)
#endif
#if VECTOR_BYTES == 64
BY_INSTRUCTION(i64, v_raw, epi64)
#else
BY_COMPARISON(i64, int64_t, i64, 64)
#endif
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

#if VECTOR_BYTES < 64
#define CHOICES(t, element, m, bits)                                                               \
    static inline void take_greater_##t(v_##t *best, v_##m *code, v_##t x, v_##m its_code)         \
    {                                                                                              \
        *code = select_##m(above_##t(x, *best), its_code, *code);                                  \
        *best = greater_##t(x, *best);                                                             \
    }                                                                                              \
    static inline void take_winner_##t(v_##t *best, v_##m *code, v_##t x, v_##m its_code)          \
    {                                                                                              \
        v_##m wins = above_##t(x, *best) | (equal_##t(x, *best) & above_##m(*code, its_code));     \
        *code = select_##m(wins, its_code, *code);                                                 \
        *best = greater_##t(x, *best);                                                             \
    }
SIGNED_TYPES(CHOICES)
#undef CHOICES
#else
/* Masks are registers of their own: a masked move, before which codes take the minimum where
 * x == best. The greater one does not wait for the mask. */
#define CHOICES_BY_MASK(t, m, vector, bits, GREATER, EQUAL)                                        \
    static inline void take_greater_##t(v_##t *best, v_##m *code, v_##t x, v_##m its_code)         \
    {                                                                                              \
        uint64_t wins = GREATER((vector)x, (vector)*best);                                         \
        *code = (v_##m)_mm512_mask_mov_epi##bits((__m512i)*code, wins, (__m512i)its_code);         \
        *best = greater_##t(x, *best);                                                             \
    }                                                                                              \
    static inline void take_winner_##t(v_##t *best, v_##m *code, v_##t x, v_##m its_code)          \
    {                                                                                              \
        *code = (v_##m)_mm512_mask_min_epi##bits((__m512i)*code, EQUAL((vector)x, (vector)*best),  \
                                                 (__m512i)its_code, (__m512i)*code);               \
        take_greater_##t(best, code, x, its_code);                                                 \
    }
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
#undef CHOICES_BY_MASK
#endif

/* ---- NaN ------------------------------------------------------------------------------------ */

static inline v_i32 unordered_f32(v_f32 a, v_f32 b)
{
#if VECTOR_BYTES == 64
    return (v_i32)_mm512_movm_epi32(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q));
#elif VECTOR_BYTES == 32
    return (v_i32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#elif defined(X86)
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
#elif defined(X86)
    return (v_i64)_mm_cmpunord_pd((__m128d)a, (__m128d)b);
#else
    return (a != a) | (b != b);
#endif
}

/* ---- Shuffles ------------------------------------------------------------------------------- */

/* Lane k of a and b, counted as one list, for the lanes in brackets. */
#ifdef __clang__
#define SHUFFLE(m, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(m, a, b, ...) __builtin_shuffle(a, b, (v_##m){__VA_ARGS__})
#endif
/* n, n+2, ... : 2, 4, ..., 16 numbers. */
#define STEPS_2(n) (n), (n) + 2
#define STEPS_4(n) STEPS_2(n), STEPS_2((n) + 4)
#define STEPS_8(n) STEPS_4(n), STEPS_4((n) + 8)
#define STEPS_16(n) STEPS_8(n), STEPS_8((n) + 16)
/* n, n+d, n+1, n+1+d, ... */
#define PAIRS_2(n, d) (n), (n) + (d)
#define PAIRS_4(n, d) PAIRS_2(n, d), PAIRS_2((n) + 1, d)
#define PAIRS_8(n, d) PAIRS_4(n, d), PAIRS_4((n) + 2, d)
#define PAIRS_16(n, d) PAIRS_8(n, d), PAIRS_8((n) + 4, d)
/* ... as many as there are lanes. */
#if VECTOR_BYTES == 64
#define FOR_32(LIST) LIST##_16
#define FOR_64(LIST) LIST##_8
#elif VECTOR_BYTES == 32
#define FOR_32(LIST) LIST##_8
#define FOR_64(LIST) LIST##_4
#else
#define FOR_8(LIST) LIST##_16
#define FOR_16(LIST) LIST##_8
#define FOR_32(LIST) LIST##_4
#define FOR_64(LIST) LIST##_2
#endif

#define NEAR(t, PICK, IN_ORDER)                                                                    \
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
        return (v_##t)IN_ORDER(v);                                                                 \
    }
#define AS_IT_IS(v) (v)
/* Where one instruction picks within 16 bytes, the quarters of both vectors take turns. */
#if VECTOR_BYTES == 64
#define QUARTERS_IN_ORDER(v)                                                                       \
    _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512i)(v))
#elif VECTOR_BYTES == 32
#define QUARTERS_IN_ORDER(v) _mm256_permute4x64_epi64((__m256i)(v), 0xd8)
#else
#define QUARTERS_IN_ORDER(v) (v)
#endif

#if VECTOR_BYTES == 32
#define PICK_32(a, b, odd) _mm256_shuffle_ps((__m256)(a), (__m256)(b), (odd) ? 0xdd : 0x88)
#define PICK_64(a, b, odd) _mm256_shuffle_pd((__m256d)(a), (__m256d)(b), (odd) ? 0xf : 0)
NEAR(f32, PICK_32, QUARTERS_IN_ORDER)
NEAR(i32, PICK_32, QUARTERS_IN_ORDER)
NEAR(f64, PICK_64, QUARTERS_IN_ORDER)
NEAR(i64, PICK_64, QUARTERS_IN_ORDER)
#else
#define PICK_32(a, b, odd) SHUFFLE(i32, a, b, FOR_32(STEPS)(odd))
#define PICK_64(a, b, odd) SHUFFLE(i64, a, b, FOR_64(STEPS)(odd))
NEAR(f32, PICK_32, AS_IT_IS)
NEAR(i32, PICK_32, AS_IT_IS)
NEAR(f64, PICK_64, AS_IT_IS)
NEAR(i64, PICK_64, AS_IT_IS)
#endif
#ifdef X86
/* Short integers are the halves of wider ones, which x86 narrows in pairs of vectors. */
#define HALF_16(v, odd) ((v_raw)((odd) ? (v_u16)(v) >> 8 : (v_u16)(v)&0xff))
#define PICK_8(a, b, odd) X86(packus_epi16)(HALF_16(a, odd), HALF_16(b, odd))
#if VECTOR_BYTES > 16
#define HALF_32(v, odd) ((v_raw)((odd) ? (v_u32)(v) >> 16 : (v_u32)(v)&0xffff))
#define PICK_16(a, b, odd) X86(packus_epi32)(HALF_32(a, odd), HALF_32(b, odd))
#else
#define HALF_32(v, odd) ((v_raw)((v_i32)((odd) ? (v_u32)(v) : (v_u32)(v) << 16) >> 16))
#define PICK_16(a, b, odd) _mm_packs_epi32(HALF_32(a, odd), HALF_32(b, odd))
#endif
NEAR(i8, PICK_8, QUARTERS_IN_ORDER)
NEAR(i16, PICK_16, QUARTERS_IN_ORDER)
#else
#define PICK_8(a, b, odd) SHUFFLE(i8, a, b, FOR_8(STEPS)(odd))
#define PICK_16(a, b, odd) SHUFFLE(i16, a, b, FOR_16(STEPS)(odd))
NEAR(i8, PICK_8, AS_IT_IS)
NEAR(i16, PICK_16, AS_IT_IS)
#endif
#undef NEAR

#define BLEND(name, t, m, bits)                                                                    \
    static inline v_##t name##_lo_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return SHUFFLE(m, a, b, FOR_##bits(PAIRS)(0, LANES_##t));                                  \
    }                                                                                              \
    static inline v_##t name##_hi_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return SHUFFLE(m, a, b, FOR_##bits(PAIRS)(LANES_##t / 2, LANES_##t));                      \
    }
BLEND(blend, f32, i32, 32)
BLEND(blend, f64, i64, 64)
#if VECTOR_BYTES == 16
#define UNPACK(t, bits) BLEND(unpack, t, t, bits)
#else
#define UNPACK(t, bits)                                                                            \
    static inline v_##t unpack_lo_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return (v_##t)X86(unpacklo_epi##bits)((v_raw)a, (v_raw)b);                                 \
    }                                                                                              \
    static inline v_##t unpack_hi_##t(v_##t a, v_##t b)                                            \
    {                                                                                              \
        return (v_##t)X86(unpackhi_epi##bits)((v_raw)a, (v_raw)b);                                 \
    }
#endif
UNPACK(i8, 8)
UNPACK(i16, 16)
UNPACK(i32, 32)
UNPACK(i64, 64)
#undef UNPACK
#undef BLEND

/* ---- Rows ----------------------------------------------------------------------------------- */

/* i = 0, lanes, 2*lanes, ..., and at last n - lanes, if n is no multiple of them; n >= lanes. */
#define EACH_VECTOR(i, lanes, n)                                                                   \
    for (int64_t i = 0; i < (n); i = i < (n) ? (n) - (lanes) : (n))                                \
        for (; i <= (n) - (lanes); i += (lanes))

#include "vector_types.inc"

#endif
