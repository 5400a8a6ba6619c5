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
 *   store_past_t(p,v)        past the caches, to an address that is a multiple of a vector's bytes; f32 f64. After the
 *                            last of them, finish_stores()
 *   READ_NOW(v)              of a variable just loaded, that it be loaded before what follows
 *   store_bytes_t(p,v,n)     the lowest byte of n lanes, of the signed types
 *   splat_t(x)
 *   select_t(mask,a,b)       a where mask is set, else b; mask is of the signed type of that width
 *   greater_t(right,left)    right > left ? right : left; so the left one of equals
 *   lesser_t(right,left)     right < left ? right : left
 *   evens_t(a,b) odds_t(a,b) every second lane of a and b, side by side
 *   near_evens_t(a,b) near_odds_t(a,b) in_order_t(v): the same in two steps
 *   blend_lo_t blend_hi_t    a0 b0 a1 b1 ... : the lower and the upper half of the result
 *   widen_bytes_i32(p)       as many bytes as lanes, as i32; and _i64, _u16
 *   store_bytes_of_4(p,v)    the lowest byte of the lanes of four vectors of i32
 *   unordered_t(a,b)         where a or b is NaN; f32 f64
 *   any(mask)                whether any bit of a vector is set
 *   bits_t(mask)             a number with bit k set where lane k of the mask is; t is i32 or i64
 *   pack_i32(v,bits)         the lanes whose bits are set, first; what follows them is not said; longer vectors than 16 bytes
 *   transpose_bytes(rows,at,to) eight runs of eight bytes
 *   transpose_t(rows)        LANES_t vectors as the rows of a square matrix, in place; f32 f64
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

/* AArch64 has no such instruction: powers of two, added up. */
static inline uint32_t bits_i32(v_i32 mask)
{
#if VECTOR_BYTES == 64
    return (uint32_t)_mm512_movepi32_mask((__m512i)mask);
#elif VECTOR_BYTES == 32
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
#elif defined(__x86_64__)
    return (uint32_t)_mm_movemask_ps((__m128)mask);
#else
    v_i32 powers = mask & (v_i32){1, 2, 4, 8};
    return (uint32_t)(powers[0] + powers[1] + powers[2] + powers[3]);
#endif
}

static inline uint32_t bits_i64(v_i64 mask)
{
#if VECTOR_BYTES == 64
    return (uint32_t)_mm512_movepi64_mask((__m512i)mask);
#elif VECTOR_BYTES == 32
    return (uint32_t)_mm256_movemask_pd((__m256d)mask);
#elif defined(__x86_64__)
    return (uint32_t)_mm_movemask_pd((__m128d)mask);
#else
    return (uint32_t)((mask[0] & 1) + (mask[1] & 2));
#endif
}

#if VECTOR_BYTES == 64
static inline v_i32 pack_i32(v_i32 v, uint32_t bits)
{
    return (v_i32)_mm512_maskz_compress_epi32((__mmask16)bits, (__m512i)v);
}
#elif VECTOR_BYTES == 32
/* For each set of bits a number, whose bytes are the positions of the bits. */
#define POSITION(set, k) ((uint64_t)((set) >> (k) & 1) * (k) << 8 * __builtin_popcount((set) & ((1 << (k)) - 1)))
#define POSITIONS(set)                                                                             \
    (POSITION(set, 1) | POSITION(set, 2) | POSITION(set, 3) | POSITION(set, 4) | POSITION(set, 5) | \
     POSITION(set, 6) | POSITION(set, 7))
#define POSITIONS_4(set) POSITIONS(set), POSITIONS((set) + 1), POSITIONS((set) + 2), POSITIONS((set) + 3)
#define POSITIONS_16(set) POSITIONS_4(set), POSITIONS_4((set) + 4), POSITIONS_4((set) + 8), POSITIONS_4((set) + 12)
#define POSITIONS_64(set) POSITIONS_16(set), POSITIONS_16((set) + 16), POSITIONS_16((set) + 32), POSITIONS_16((set) + 48)
static inline v_i32 pack_i32(v_i32 v, uint32_t bits)
{
    static const uint64_t positions[256] = {POSITIONS_64(0), POSITIONS_64(64), POSITIONS_64(128), POSITIONS_64(192)};
    __m256i from = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(positions + bits)));
    return (v_i32)_mm256_permutevar8x32_epi32((__m256i)v, from);
}
#undef POSITION
#undef POSITIONS
#undef POSITIONS_4
#undef POSITIONS_16
#undef POSITIONS_64
#endif

/* ---- Loads, stores, selection --------------------------------------------------------------- */

/* A part of a vector of `whole` bytes goes by its binary digits: no loop, and no call of memcpy. */
static inline void copy_part(char *restrict to, const char *restrict from, size_t bytes, size_t whole)
{
    for (size_t piece = whole / 2; piece > 0; piece /= 2)
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
        copy_part((char *)&v, p, (size_t)n * sizeof(element), sizeof v);                                     \
        return v;                                                                                  \
    }                                                                                              \
    static inline void store_part_##t(void *p, v_##t v, int64_t n)                                 \
    {                                                                                              \
        copy_part(p, (const char *)&v, (size_t)n * sizeof(element), sizeof v);                               \
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

/* Reads v now and not where it is first computed with. Rows that lie one behind the other are to be read in that order:
 * prefetchers that see the later row first fall behind, by half the time of what comes from memory. */
#if defined(__x86_64__)
#define READ_NOW(v) __asm__("" : "+x"(v))
#else
#define READ_NOW(v) __asm__("" : "+w"(v))
#endif

/* ---- Stores past the caches -------------------------------------------------------------------- */

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

static inline void store_past_f64(double *p, v_f64 v)
{
#if VECTOR_BYTES == 64
    _mm512_stream_pd(p, (__m512d)v);
#elif VECTOR_BYTES == 32
    _mm256_stream_pd(p, (__m256d)v);
#elif defined(__x86_64__)
    _mm_stream_pd(p, (__m128d)v);
#else
    store_f64(p, v);
#endif
}

/* Before another thread is told that results are there. */
static inline void finish_stores(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* Elements before the first at which a vector may be stored past the caches; -1 if there is none, as elements lie askew. */
static inline int64_t elements_before_past(const void *p, int64_t element_bytes)
{
    int64_t before = (int64_t)(-(uintptr_t)p % VECTOR_BYTES);
    return before % element_bytes ? -1 : before / element_bytes;
}

/* ---- Bytes to wider lanes -------------------------------------------------------------------- */

/* As many bytes as there are lanes, widened with zeros. Compilers widen such short vectors lane by lane. */
static inline v_i32 widen_bytes_i32(const void *p)
{
#if VECTOR_BYTES == 64
    return (v_i32)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif VECTOR_BYTES == 32
    return (v_i32)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
    uint8_t bytes[LANES_i32];
    memcpy(bytes, p, sizeof bytes);
    return (v_i32){bytes[0], bytes[1], bytes[2], bytes[3]};
#endif
}

static inline v_i64 widen_bytes_i64(const void *p)
{
#if VECTOR_BYTES == 64
    return (v_i64)_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)p));
#elif VECTOR_BYTES == 32
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return (v_i64)_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
#else
    uint8_t bytes[LANES_i64];
    memcpy(bytes, p, sizeof bytes);
    return (v_i64){bytes[0], bytes[1]};
#endif
}

static inline v_u16 widen_bytes_u16(const void *p)
{
#if VECTOR_BYTES == 64
    return (v_u16)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p));
#elif VECTOR_BYTES == 32
    return (v_u16)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
#elif defined(__x86_64__)
    return (v_u16)_mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)p), _mm_setzero_si128());
#else
    typedef uint8_t bytes __attribute__((vector_size(LANES_u16)));
    bytes v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, v_u16);
#endif
}

/* The lowest byte of the first n lanes. gcc narrows such vectors lane by lane: on AVX2, bytes are picked in each half,
 * then the halves are joined. */
#define STORE_BYTES(t, size)                                                                       \
    static inline void store_bytes_##t(char *p, v_##t v, int64_t n)                                \
    {                                                                                              \
        typedef uint8_t bytes __attribute__((vector_size(VECTOR_BYTES / (size))));                 \
        bytes low = LOW_BYTES_##t(v, bytes);                                                       \
        if (n >= LANES_##t)                                                                        \
            memcpy(p, &low, sizeof low);                                                           \
        else                                                                                       \
            copy_part(p, (const char *)&low, (size_t)n, sizeof low);                                           \
    }
#define LOW_BYTES_i8(v, bytes) ((bytes)(v))
#if VECTOR_BYTES == 32
static inline __m128i joined(__m256i picked)
{
    return _mm_unpacklo_epi64(_mm256_castsi256_si128(picked), _mm256_extracti128_si256(picked, 1));
}
static inline int64_t low_bytes_i32(v_i32 v)
{
    __m256i picked = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi32(0x0c080400));
    __m256i first = _mm256_permutevar8x32_epi32(picked, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    return _mm_cvtsi128_si64(_mm256_castsi256_si128(first));
}
static inline uint32_t low_bytes_i64(v_i64 v)
{
    __m256i picked = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi16(0x0800));
    return (uint16_t)_mm256_extract_epi16(picked, 0) | (uint32_t)(uint16_t)_mm256_extract_epi16(picked, 8) << 16;
}
#define LOW_BYTES_i16(v, bytes)                                                                    \
    ((bytes)joined(_mm256_shuffle_epi8((__m256i)(v), _mm256_setr_epi64x(0x0e0c0a0806040200, 0, 0x0e0c0a0806040200, 0))))
#define LOW_BYTES_i32(v, bytes) ((bytes)low_bytes_i32(v))
#define LOW_BYTES_i64(v, bytes) ((bytes)low_bytes_i64(v))
#else
#define LOW_BYTES_i16 __builtin_convertvector
#define LOW_BYTES_i32 __builtin_convertvector
#define LOW_BYTES_i64 __builtin_convertvector
#endif
STORE_BYTES(i8, 1)
STORE_BYTES(i16, 2)
STORE_BYTES(i32, 4)
STORE_BYTES(i64, 8)
#undef STORE_BYTES

static inline void store_bytes_of_4(void *p, const v_i32 *v)
{
#if VECTOR_BYTES <= 32 && defined(__x86_64__)
    v_i32 low[4];
    for (int k = 0; k < 4; k++)
        low[k] = v[k] & 0xff;
#if VECTOR_BYTES == 32
    __m256i ab = _mm256_packs_epi32((__m256i)low[0], (__m256i)low[1]);
    __m256i cd = _mm256_packs_epi32((__m256i)low[2], (__m256i)low[3]), abcd = _mm256_packus_epi16(ab, cd);
    store_i32(p, (v_i32)_mm256_permutevar8x32_epi32(abcd, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
#else
    __m128i ab = _mm_packs_epi32((__m128i)low[0], (__m128i)low[1]);
    __m128i cd = _mm_packs_epi32((__m128i)low[2], (__m128i)low[3]);
    store_i32(p, (v_i32)_mm_packus_epi16(ab, cd));
#endif
#else
    for (int k = 0; k < 4; k++)
        store_bytes_i32((char *)p + k * LANES_i32, v[k], LANES_i32);
#endif
}

/* ---- Four numbers of 32 bits, on every instruction set ------------------------------------------ */

typedef int32_t v_quad __attribute__((vector_size(16)));
typedef uint32_t v_unsigned_quad __attribute__((vector_size(16)));

static inline void store_quad(void *p, v_quad v)
{
    memcpy(p, &v, sizeof v);
}

static inline v_quad last_of_quad(v_quad v)
{
    return (v_quad){v[3], v[3], v[3], v[3]};
}

/* From numbers of 16 bits. */
static inline v_quad quad_of_u16(const void *p)
{
#if VECTOR_BYTES > 16
    return (v_quad)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p));
#elif defined(__x86_64__)
    return (v_quad)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)p), _mm_setzero_si128());
#else
    typedef uint16_t words __attribute__((vector_size(8)));
    words v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, v_quad);
#endif
}

static inline v_quad quad_of_i16(const void *p)
{
    return (v_quad)((v_unsigned_quad)quad_of_u16(p) << 16) >> 16;
}

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

/* ---- NaN ------------------------------------------------------------------------------------- */

static inline v_i32 unordered_f32(v_f32 a, v_f32 b)
{
#if VECTOR_BYTES == 32
    return (v_i32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#elif VECTOR_BYTES == 16 && defined(__x86_64__)
    return (v_i32)_mm_cmpunord_ps((__m128)a, (__m128)b);
#else
    return (a != a) | (b != b);
#endif
}

static inline v_i64 unordered_f64(v_f64 a, v_f64 b)
{
#if VECTOR_BYTES == 32
    return (v_i64)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
#elif VECTOR_BYTES == 16 && defined(__x86_64__)
    return (v_i64)_mm_cmpunord_pd((__m128d)a, (__m128d)b);
#else
    return (a != a) | (b != b);
#endif
}

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
/* Two steps, of which the second can come after arithmetic on what was picked: near_evens_t(a,b) and near_odds_t(a,b)
 * pick the lanes in some order, the same for both, and in_order_t(v) puts them in order. On AVX2, picking within each
 * half is one instruction. */
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
        return (v_##t)_mm256_permute4x64_epi64((__m256i)v, 0xd8);                                  \
    }                                                                                              \
    static inline v_##t evens_##t(v_##t a, v_##t b)                                                \
    {                                                                                              \
        return in_order_##t(near_evens_##t(a, b));                                                 \
    }                                                                                              \
    static inline v_##t odds_##t(v_##t a, v_##t b)                                                 \
    {                                                                                              \
        return in_order_##t(near_odds_##t(a, b));                                                  \
    }
#if VECTOR_BYTES == 32
#define PICK_32(a, b, odd) _mm256_shuffle_ps((__m256)(a), (__m256)(b), (odd) ? 0xdd : 0x88)
#define PICK_64(a, b, odd) _mm256_shuffle_pd((__m256d)(a), (__m256d)(b), (odd) ? 0xf : 0)
IN_TWO_STEPS(f32, PICK_32)
IN_TWO_STEPS(i32, PICK_32)
IN_TWO_STEPS(u32, PICK_32)
IN_TWO_STEPS(f64, PICK_64)
IN_TWO_STEPS(i64, PICK_64)
IN_TWO_STEPS(u64, PICK_64)
BLENDS(f32, i32, PAIRS_8)
BLENDS(i32, i32, PAIRS_8)
BLENDS(u32, i32, PAIRS_8)
BLENDS(f64, i64, PAIRS_4)
BLENDS(i64, i64, PAIRS_4)
BLENDS(u64, i64, PAIRS_4)
#else
SHUFFLES_32(f32, i32)
SHUFFLES_32(i32, i32)
SHUFFLES_32(u32, i32)
SHUFFLES_64(f64, i64)
SHUFFLES_64(i64, i64)
SHUFFLES_64(u64, i64)
IN_ONE_STEP(f32)
IN_ONE_STEP(i32)
IN_ONE_STEP(u32)
IN_ONE_STEP(f64)
IN_ONE_STEP(i64)
IN_ONE_STEP(u64)
#endif
SHUFFLES_8(i8, i8)
SHUFFLES_8(u8, i8)
SHUFFLES_16(i16, i16)
SHUFFLES_16(u16, i16)
IN_ONE_STEP(i8)
IN_ONE_STEP(u8)
IN_ONE_STEP(i16)
IN_ONE_STEP(u16)
#undef IN_ONE_STEP
#undef IN_TWO_STEPS

/* ---- One lane on ------------------------------------------------------------------------------ */

/* `now`, moved on by a lane; the first is the last one of `before`. */
static inline v_f32 shift_in_f32(v_f32 before, v_f32 now)
{
#if VECTOR_BYTES == 16
    return SHUFFLE(f32, i32, before, now, 3, 4, 5, 6);
#elif VECTOR_BYTES == 32
    return SHUFFLE(f32, i32, before, now, 7, 8, 9, 10, 11, 12, 13, 14);
#else
    return SHUFFLE(f32, i32, before, now, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
#endif
}

/* ---- Transposition --------------------------------------------------------------------------- */

/* Swaps the off-diagonal blocks of `d` by `d` lanes, for d = LANES/2, ..., 2, 1: lane l of a stays if bit d of l
 * is not set; where it is, lane l-d of b comes in. The other way round for b. */
#define UPPER(l, d, n) ((l) & (d) ? (n) + (l) - (d) : (l))
#define LOWER(l, d, n) ((l) & (d) ? (n) + (l) : (l) + (d))
#define EACH_2(F, l, d, n) F(l, d, n), F((l) + 1, d, n)
#define EACH_4(F, l, d, n) EACH_2(F, l, d, n), EACH_2(F, (l) + 2, d, n)
#define EACH_8(F, l, d, n) EACH_4(F, l, d, n), EACH_4(F, (l) + 4, d, n)
#define EACH_16(F, l, d, n) EACH_8(F, l, d, n), EACH_8(F, (l) + 8, d, n)
#define SWAP_BLOCKS(t, signed_type, EACH, d)                                                       \
    for (int r = 0; r < LANES_##t; r++)                                                            \
        if ((r & (d)) == 0) {                                                                      \
            v_##t a = rows[r], b = rows[r + (d)];                                                  \
            rows[r] = SHUFFLE(t, signed_type, a, b, EACH(UPPER, 0, d, LANES_##t));                 \
            rows[r + (d)] = SHUFFLE(t, signed_type, a, b, EACH(LOWER, 0, d, LANES_##t));           \
        }
#if VECTOR_BYTES == 16
#define SWAPS_32(t, m) SWAP_BLOCKS(t, m, EACH_4, 2) SWAP_BLOCKS(t, m, EACH_4, 1)
#define SWAPS_64(t, m) SWAP_BLOCKS(t, m, EACH_2, 1)
#elif VECTOR_BYTES == 32
#define SWAPS_32(t, m)                                                                             \
    SWAP_BLOCKS(t, m, EACH_8, 4) SWAP_BLOCKS(t, m, EACH_8, 2) SWAP_BLOCKS(t, m, EACH_8, 1)
#define SWAPS_64(t, m) SWAP_BLOCKS(t, m, EACH_4, 2) SWAP_BLOCKS(t, m, EACH_4, 1)
#else
#define SWAPS_32(t, m)                                                                             \
    SWAP_BLOCKS(t, m, EACH_16, 8)                                                                  \
    SWAP_BLOCKS(t, m, EACH_16, 4) SWAP_BLOCKS(t, m, EACH_16, 2) SWAP_BLOCKS(t, m, EACH_16, 1)
#define SWAPS_64(t, m)                                                                             \
    SWAP_BLOCKS(t, m, EACH_8, 4) SWAP_BLOCKS(t, m, EACH_8, 2) SWAP_BLOCKS(t, m, EACH_8, 1)
#endif
static inline void transpose_f32(v_f32 *rows)
{
    SWAPS_32(f32, i32)
}

static inline void transpose_f64(v_f64 *rows)
{
    SWAPS_64(f64, i64)
}

/* The same steps towards the greatest or least of each row, row by lane: after each, half of the rows are left. */
#define FOLD_BLOCKS(t, signed_type, EACH, d, better)                                               \
    for (int r = 0; r < (d); r++) {                                                                \
        v_##t a = rows[r], b = rows[r + (d)];                                                      \
        rows[r] = better##_##t(SHUFFLE(t, signed_type, a, b, EACH(UPPER, 0, d, LANES_##t)),        \
                               SHUFFLE(t, signed_type, a, b, EACH(LOWER, 0, d, LANES_##t)));       \
    }
#if VECTOR_BYTES == 16
#define FOLDS_32(t, m, better) FOLD_BLOCKS(t, m, EACH_4, 2, better) FOLD_BLOCKS(t, m, EACH_4, 1, better)
#define FOLDS_64(t, m, better) FOLD_BLOCKS(t, m, EACH_2, 1, better)
#elif VECTOR_BYTES == 32
#define FOLDS_32(t, m, better)                                                                     \
    FOLD_BLOCKS(t, m, EACH_8, 4, better) FOLD_BLOCKS(t, m, EACH_8, 2, better) FOLD_BLOCKS(t, m, EACH_8, 1, better)
#define FOLDS_64(t, m, better) FOLD_BLOCKS(t, m, EACH_4, 2, better) FOLD_BLOCKS(t, m, EACH_4, 1, better)
#else
#define FOLDS_32(t, m, better)                                                                     \
    FOLD_BLOCKS(t, m, EACH_16, 8, better)                                                          \
    FOLD_BLOCKS(t, m, EACH_16, 4, better) FOLD_BLOCKS(t, m, EACH_16, 2, better) FOLD_BLOCKS(t, m, EACH_16, 1, better)
#define FOLDS_64(t, m, better)                                                                     \
    FOLD_BLOCKS(t, m, EACH_8, 4, better) FOLD_BLOCKS(t, m, EACH_8, 2, better) FOLD_BLOCKS(t, m, EACH_8, 1, better)
#endif
#define OF_ROWS(t, m, FOLDS)                                                                       \
    static inline __attribute__((always_inline)) v_##t greatest_of_rows_##t(v_##t *rows)           \
    {                                                                                              \
        FOLDS(t, m, greater)                                                                       \
        return rows[0];                                                                            \
    }                                                                                              \
    static inline __attribute__((always_inline)) v_##t least_of_rows_##t(v_##t *rows)              \
    {                                                                                              \
        FOLDS(t, m, lesser)                                                                        \
        return rows[0];                                                                            \
    }
OF_ROWS(f32, i32, FOLDS_32)
OF_ROWS(f64, i64, FOLDS_64)

/* BYTE_ROWS runs of as many bytes, rows[k] + at, as the columns of `to`. */
enum { BYTE_ROWS = 8 };

static inline void transpose_bytes(const char *const *rows, int64_t at, void *to)
{
#ifdef __x86_64__
    __m128i row[BYTE_ROWS], pair[4], four[4];
    for (int k = 0; k < BYTE_ROWS; k++)
        row[k] = _mm_loadl_epi64((const __m128i *)(const void *)(rows[k] + at));
    for (int k = 0; k < 4; k++)
        pair[k] = _mm_unpacklo_epi8(row[2 * k], row[2 * k + 1]);
    for (int k = 0; k < 4; k++)
        four[k] = k % 2 ? _mm_unpackhi_epi16(pair[k - 1], pair[k]) : _mm_unpacklo_epi16(pair[k], pair[k + 1]);
    for (int k = 0; k < 2; k++) {
        _mm_storeu_si128((__m128i *)to + 2 * k, _mm_unpacklo_epi32(four[k], four[k + 2]));
        _mm_storeu_si128((__m128i *)to + 2 * k + 1, _mm_unpackhi_epi32(four[k], four[k + 2]));
    }
#else
    for (int k = 0; k < BYTE_ROWS * BYTE_ROWS; k++)
        ((char *)to)[k] = rows[k % BYTE_ROWS][at + k / BYTE_ROWS];
#endif
}

/* ---- The two formats of 16 bits -------------------------------------------------------------- */

/* Vectors of the LANES_f32 numbers at p as f32, and back, rounded to nearest even: as bf16_load() and so on. */
typedef uint16_t v_half __attribute__((vector_size(VECTOR_BYTES / 2)));

static inline v_f32 widen_bf16(v_half halves)
{
    return (v_f32)(__builtin_convertvector(halves, v_u32) << 16);
}

static inline v_half narrow_bf16(v_f32 v)
{
    v_u32 bits = (v_u32)v, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    rounded = select_u32(v == v, rounded, splat_u32(0x7fc0));
    return __builtin_convertvector(rounded, v_half);
}

static inline v_f32 widen_f16(v_half halves)
{
#if VECTOR_BYTES == 64
    return (v_f32)_mm512_cvtph_ps((__m256i)halves);
#elif VECTOR_BYTES == 32
    return (v_f32)_mm256_cvtph_ps((__m128i)halves);
#else
    v_u32 wide = __builtin_convertvector(halves, v_u32);
    v_u32 sign = (wide & 0x8000u) << 16, magnitude = wide & 0x7fffu;
    v_u32 normal = (magnitude << 13) + (112u << 23);
    v_u32 special = (magnitude << 13) | 0x7f800000u;
    v_u32 subnormal = (v_u32)(__builtin_convertvector((v_i32)magnitude, v_f32) * 0x1p-24f);
    v_u32 finite = select_u32((v_i32)magnitude < 0x400, subnormal, normal);
    return (v_f32)(sign | select_u32((v_i32)magnitude >= 0x7c00, special, finite));
#endif
}

static inline v_half narrow_f16(v_f32 v)
{
    v_u32 bits = (v_u32)v, sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    v_u32 subnormal = (v_u32)((v_f32)magnitude + 0.5f) - 0x3f000000u;
    v_u32 normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    v_u32 half = select_u32((v_i32)magnitude < 0x38800000, subnormal, normal);
    half = select_u32((v_i32)magnitude >= 0x477ff000, splat_u32(0x7c00), half) | sign;
    half = select_u32(v == v, half, splat_u32(0x7e00));
    return __builtin_convertvector(half, v_half);
}

#endif
