/* Vectors of other types: integers of other widths, and what floating tensors are computed in.
 * Included by vector.h. */
#ifndef TARN_VECTOR_TYPES_H
#define TARN_VECTOR_TYPES_H

/* ---- Integers of other widths --------------------------------------------------------------- */

/* widen_a_b(p) reads as many a as there are lanes of b; store_a_b(p,v) writes the lowest bits of
 * all lanes of b as a. Compilers do most of them lane by lane. x86 has instructions for a part
 * of a vector: the half, ... */
#if VECTOR_BYTES == 64
#define WIDENED(name) _mm512_##name
#define NARROWED(name) _mm512_##name
typedef __m512i x86_whole;
typedef __m256i x86_part_2;
typedef __m128i x86_part_4, x86_part_8;
#define LOAD_PART_2(p) _mm256_loadu_si256(p)
#define LOAD_PART_4(p) _mm_loadu_si128(p)
#define LOAD_PART_8(p) _mm_loadl_epi64(p)

#elif VECTOR_BYTES == 32 || defined(__SSE2__)
typedef __m128i x86_part_2, x86_part_4, x86_part_8;
static inline __m128i load_bytes(const void *p, size_t size)
{
    int32_t bytes = 0;
    memcpy(&bytes, p, size);
    return _mm_cvtsi32_si128(bytes);
}
#if VECTOR_BYTES == 32
#define WIDENED(name) _mm256_##name
#define NARROWED(name) avx2_##name
typedef __m256i x86_whole;
#define LOAD_PART_2(p) _mm_loadu_si128(p)
#define LOAD_PART_4(p) _mm_loadl_epi64(p)
#define LOAD_PART_8(p) load_bytes(p, 4)
/* Picks bytes in both halves, to places where the other half has zeros. */
#define NARROW_BY_BYTES(name, ...)                                                                 \
    static inline __m128i avx2_##name(__m256i v)                                                   \
    {                                                                                              \
        __m256i picked = _mm256_shuffle_epi8(v, _mm256_setr_epi64x(__VA_ARGS__));                  \
        return _mm_or_si128(_mm256_castsi256_si128(picked), _mm256_extracti128_si256(picked, 1));  \
    }
NARROW_BY_BYTES(cvtepi16_epi8, 0x0e0c0a0806040200, -1, -1, 0x0e0c0a0806040200)
NARROW_BY_BYTES(cvtepi32_epi16, 0x0d0c090805040100, -1, -1, 0x0d0c090805040100)
NARROW_BY_BYTES(cvtepi64_epi32, 0x0b0a090803020100, -1, -1, 0x0b0a090803020100)
NARROW_BY_BYTES(cvtepi32_epi8, ~0xffffffffLL | 0x0c080400, -1, 0x0c080400ffffffff, -1)
NARROW_BY_BYTES(cvtepi64_epi16, ~0xffffffffLL | 0x09080100, -1, 0x09080100ffffffff, -1)
NARROW_BY_BYTES(cvtepi64_epi8, ~0xffffLL | 0x0800, -1, ~0xffffffffLL | 0x0800ffff, -1)
#undef NARROW_BY_BYTES
#else
#define WIDENED(name) sse2_##name
#define NARROWED(name) sse2_##name
typedef __m128i x86_whole;
#define LOAD_PART_2(p) _mm_loadl_epi64(p)
#define LOAD_PART_4(p) load_bytes(p, 4)
#define LOAD_PART_8(p) load_bytes(p, 2)
/* To twice the bits: the lane twice, shifted down with its sign; or zeros above it. To half:
 * saturation cuts nothing off once the upper bits are gone. */
#define SSE2_CONVERSION(name, result)                                                              \
    static inline __m128i sse2_##name(__m128i v)                                                   \
    {                                                                                              \
        return result;                                                                             \
    }
SSE2_CONVERSION(cvtepi8_epi16, _mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8))
SSE2_CONVERSION(cvtepi16_epi32, _mm_srai_epi32(_mm_unpacklo_epi16(v, v), 16))
SSE2_CONVERSION(cvtepi32_epi64, _mm_unpacklo_epi32(v, _mm_srai_epi32(v, 31)))
SSE2_CONVERSION(cvtepi8_epi32, sse2_cvtepi16_epi32(sse2_cvtepi8_epi16(v)))
SSE2_CONVERSION(cvtepi16_epi64, sse2_cvtepi32_epi64(sse2_cvtepi16_epi32(v)))
SSE2_CONVERSION(cvtepi8_epi64, sse2_cvtepi16_epi64(sse2_cvtepi8_epi16(v)))
SSE2_CONVERSION(cvtepu8_epi16, _mm_unpacklo_epi8(v, _mm_setzero_si128()))
SSE2_CONVERSION(cvtepu16_epi32, _mm_unpacklo_epi16(v, _mm_setzero_si128()))
SSE2_CONVERSION(cvtepu32_epi64, _mm_unpacklo_epi32(v, _mm_setzero_si128()))
SSE2_CONVERSION(cvtepu8_epi32, sse2_cvtepu16_epi32(sse2_cvtepu8_epi16(v)))
SSE2_CONVERSION(cvtepu16_epi64, sse2_cvtepu32_epi64(sse2_cvtepu16_epi32(v)))
SSE2_CONVERSION(cvtepu8_epi64, sse2_cvtepu16_epi64(sse2_cvtepu8_epi16(v)))
SSE2_CONVERSION(cvtepi16_epi8, _mm_packus_epi16(_mm_and_si128(v, _mm_set1_epi16(0xff)), v))
SSE2_CONVERSION(cvtepi32_epi16, _mm_packs_epi32(_mm_srai_epi32(_mm_slli_epi32(v, 16), 16), v))
SSE2_CONVERSION(cvtepi64_epi32, _mm_shuffle_epi32(v, 0x08))
SSE2_CONVERSION(cvtepi32_epi8, sse2_cvtepi16_epi8(sse2_cvtepi32_epi16(v)))
SSE2_CONVERSION(cvtepi64_epi16, sse2_cvtepi32_epi16(sse2_cvtepi64_epi32(v)))
SSE2_CONVERSION(cvtepi64_epi8, sse2_cvtepi32_epi8(sse2_cvtepi64_epi32(v)))
#undef SSE2_CONVERSION
#endif
#endif

#ifdef WIDENED
#define WIDEN(a, b, part, name)                                                                    \
    static inline v_##b widen_##a##_##b(const void *p)                                             \
    {                                                                                              \
        return (v_##b)WIDENED(name)(LOAD_PART_##part(p));                                          \
    }
#define NARROW(a, b, part, name)                                                                   \
    static inline void store_##a##_##b(void *p, v_##b v)                                           \
    {                                                                                              \
        x86_part_##part lowest = NARROWED(name)((x86_whole)v);                                     \
        memcpy(p, &lowest, VECTOR_BYTES / part);                                                   \
    }
#else
#define WIDEN(a, b, part, name)                                                                    \
    static inline v_##b widen_##a##_##b(const void *p)                                             \
    {                                                                                              \
        typedef a##_s short_vector __attribute__((vector_size(VECTOR_BYTES / part)));              \
        short_vector v;                                                                            \
        memcpy(&v, p, sizeof v);                                                                   \
        return __builtin_convertvector(v, v_##b);                                                  \
    }
#define NARROW(a, b, part, name)                                                                   \
    static inline void store_##a##_##b(void *p, v_##b v)                                           \
    {                                                                                              \
        typedef a##_s short_vector __attribute__((vector_size(VECTOR_BYTES / part)));              \
        short_vector lowest = __builtin_convertvector(v, short_vector);                            \
        memcpy(p, &lowest, sizeof lowest);                                                         \
    }
#endif
WIDEN(i8, i16, 2, cvtepi8_epi16)
WIDEN(i8, i32, 4, cvtepi8_epi32)
WIDEN(i8, i64, 8, cvtepi8_epi64)
WIDEN(i16, i32, 2, cvtepi16_epi32)
WIDEN(i16, i64, 4, cvtepi16_epi64)
WIDEN(i32, i64, 2, cvtepi32_epi64)
WIDEN(u8, i32, 4, cvtepu8_epi32)
WIDEN(u8, i64, 8, cvtepu8_epi64)
WIDEN(u16, i32, 2, cvtepu16_epi32)
WIDEN(u16, i64, 4, cvtepu16_epi64)
WIDEN(u32, i64, 2, cvtepu32_epi64)
NARROW(i8, i16, 2, cvtepi16_epi8)
NARROW(i8, i32, 4, cvtepi32_epi8)
NARROW(i8, i64, 8, cvtepi64_epi8)
NARROW(i16, i32, 2, cvtepi32_epi16)
NARROW(i16, i64, 4, cvtepi64_epi16)
NARROW(i32, i64, 2, cvtepi64_epi32)
#undef WIDEN
#undef NARROW
#undef WIDENED
#undef NARROWED
#undef LOAD_PART_2
#undef LOAD_PART_4
#undef LOAD_PART_8

/* ---- Floating tensors ----------------------------------------------------------------------- */

/* They are computed in f64 if they are f64, and in f32 otherwise. For each dtype d:
 *
 *   read_d(p)        a vector from as many elements; a NaN may become another, quiet, one
 *   write_d(p,v)     as many elements, rounded once to nearest even; any NaN as the one quiet NaN
 *   read_some_d(p,n) write_some_d(p,v,n)   the same of the first n lanes, fewer than a vector
 */
static inline v_f32 quiet_f32(v_f32 v)
{
    v_f32 nan = (v_f32)splat_u32(0x7fc00000u);
#if VECTOR_BYTES == 64
    __mmask16 is_nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
    return (v_f32)_mm512_mask_mov_ps((__m512)v, is_nan, (__m512)nan);
#else
    return select_f32(v == v, v, nan);
#endif
}

static inline v_f64 quiet_f64(v_f64 v)
{
    v_f64 nan = (v_f64)splat_u64(UINT64_C(0x7ff8000000000000));
#if VECTOR_BYTES == 64
    __mmask8 is_nan = _mm512_cmp_pd_mask((__m512d)v, (__m512d)v, _CMP_UNORD_Q);
    return (v_f64)_mm512_mask_mov_pd((__m512d)v, is_nan, (__m512d)nan);
#else
    return select_f64(v == v, v, nan);
#endif
}

static inline v_f64 read_f64(const void *p)
{
    return load_f64(p);
}

static inline void write_f64(void *p, v_f64 v)
{
    store_f64(p, quiet_f64(v));
}

static inline v_f32 read_f32(const void *p)
{
    return load_f32(p);
}

static inline void write_f32(void *p, v_f32 v)
{
    store_f32(p, quiet_f32(v));
}

static inline v_f32 read_bf16(const void *p)
{
    return (v_f32)((v_u32)widen_u16_i32(p) << 16);
}

static inline void write_bf16(void *p, v_f32 v)
{
    v_u32 bits = (v_u32)quiet_f32(v);
    store_i16_i32(p, (v_i32)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
}

#if VECTOR_BYTES == 64
static inline v_f32 read_f16(const void *p)
{
    return (v_f32)_mm512_cvtph_ps(_mm256_loadu_si256(p));
}

static inline void write_f16(void *p, v_f32 v)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph((__m512)quiet_f32(v), _MM_FROUND_TO_NEAREST_INT));
}
#elif VECTOR_BYTES == 32
static inline v_f32 read_f16(const void *p)
{
    return (v_f32)_mm256_cvtph_ps(_mm_loadu_si128(p));
}

static inline void write_f16(void *p, v_f32 v)
{
    _mm_storeu_si128(p, _mm256_cvtps_ph((__m256)quiet_f32(v), _MM_FROUND_TO_NEAREST_INT));
}
#else
static inline v_f32 read_f16(const void *p)
{
    v_i32 bits = widen_u16_i32(p), magnitude = bits & 0x7fff, shifted = magnitude << 13;
    v_u32 subnormal = (v_u32)(__builtin_convertvector(magnitude, v_f32) * 0x1p-24f);
    v_u32 finite = select_u32(magnitude < 0x400, subnormal, (v_u32)shifted + (112u << 23));
    v_u32 number = select_u32(magnitude >= 0x7c00, (v_u32)shifted | 0x7f800000u, finite);
    return (v_f32)(number | ((v_u32)bits & 0x8000u) << 16);
}

static inline void write_f16(void *p, v_f32 v)
{
    v_u32 bits = (v_u32)v, sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    v_u32 normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    v_u32 subnormal = (v_u32)((v_f32)magnitude + 0.5f) - 0x3f000000u;
    v_u32 finite = select_u32((v_i32)magnitude < 0x38800000, subnormal, normal);
    v_u32 number = select_u32((v_i32)magnitude >= 0x477ff000, splat_u32(0x7c00), finite) | sign;
    store_i16_i32(p, (v_i32)select_u32(v == v, number, splat_u32(0x7e00)));
}
#endif

/* The first bytes of a vector. What is stored with a mask cannot be read back at once on AVX2. */
static inline void store_first(void *to, const void *vector, size_t bytes)
{
#if VECTOR_BYTES == 64
    _mm512_mask_storeu_epi8(to, (UINT64_C(1) << bytes) - 1, _mm512_loadu_si512(vector));
#else
    copy_part(to, vector, bytes, VECTOR_BYTES);
#endif
}

#define SOME_OF(d, sum, element)                                                                   \
    static inline v_##sum read_some_##d(const void *p, int64_t n)                                  \
    {                                                                                              \
        v_##element some = load_part_##element(p, n);                                              \
        return read_##d(&some);                                                                    \
    }                                                                                              \
    static inline void write_some_##d(void *p, v_##sum v, int64_t n)                               \
    {                                                                                              \
        v_##element some = {0};                                                                    \
        write_##d(&some, v);                                                                       \
        store_first(p, &some, (size_t)n * sizeof some[0]);                                         \
    }
SOME_OF(f64, f64, f64)
SOME_OF(f32, f32, f32)
SOME_OF(f16, f32, u16)
SOME_OF(bf16, f32, u16)
#undef SOME_OF

#endif
