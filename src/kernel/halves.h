/* Vectors of 16-bit floats: LANES_f32 of them, widened to f32 exactly and narrowed back. */
#ifndef TARN_HALVES_H
#define TARN_HALVES_H

#include "vector.h"

/* The bits of LANES_f32 stored numbers, one to a lane. */
static inline v_u32 load_half(const void *p)
{
    v_half half;
    memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, v_u32);
}

static inline v_u32 load_half_part(const void *p, int64_t n)
{
    v_half half = {0};
    copy_part((char *)&half, p, (size_t)n * sizeof(uint16_t), sizeof half);
    return __builtin_convertvector(half, v_u32);
}

static inline void store_half(void *p, v_u32 bits)
{
    v_half half = __builtin_convertvector(bits, v_half);
    memcpy(p, &half, sizeof half);
}

static inline void store_half_part(void *p, v_u32 bits, int64_t n)
{
    v_half half = __builtin_convertvector(bits, v_half);
    copy_part(p, (const char *)&half, (size_t)n * sizeof(uint16_t), sizeof half);
}

static inline v_f32 float_of_bf16(v_u32 bits)
{
    return (v_f32)(bits << 16);
}

/* Of numbers that a bf16 holds exactly. */
static inline v_u32 exact_bf16(v_f32 v)
{
    return (v_u32)v >> 16;
}

/* A product with 2^112 rebiases the exponent, subnormals included; it would make infinities and NaN finite. */
static inline v_f32 float_of_f16(v_u32 bits)
{
    v_u32 sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;
    v_u32 rebiased = (v_u32)((v_f32)magnitude * 0x1p112f);
    v_u32 special = (v_u32)(magnitude >= (0x7c00u << 13));
    return (v_f32)(sign | select_u32((v_i32)special, magnitude | 0x7f800000u, rebiased));
}

/* Of numbers that an f16 holds exactly. */
static inline v_u32 exact_f16(v_f32 v)
{
    v_u32 bits = (v_u32)v, magnitude = bits & 0x7fffffffu;
    v_u32 rebiased = (v_u32)((v_f32)magnitude * 0x1p-112f) >> 13;
    v_u32 special = (v_u32)(magnitude >= 0x7f800000u);
    return (bits >> 16 & 0x8000u) |
           select_u32((v_i32)special, (magnitude >> 13 & 0x3ffu) | 0x7c00u, rebiased);
}

/* Rounded to nearest even; a NaN becomes the quiet one without payload. The arithmetic is that of scalar.h. */
static inline v_u32 round_bf16(v_f32 v)
{
    v_u32 bits = (v_u32)v, rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return select_u32((v_i32)(v != v), splat_u32(0x7fc0), rounded);
}

static inline v_u32 round_f16(v_f32 v)
{
    v_u32 bits = (v_u32)v, sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    v_u32 normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    v_u32 subnormal = (v_u32)((v_f32)magnitude + 0.5f) - 0x3f000000u;
    v_u32 finite = select_u32((v_i32)(magnitude < 0x38800000u), subnormal, normal);
    v_u32 number = select_u32((v_i32)(magnitude >= 0x477ff000u), splat_u32(0x7c00), finite);
    return select_u32((v_i32)(v != v), splat_u32(0x7e00), sign | number);
}

#endif
