/* The portable kernels, compiled for every dtype. */
#include "../scalar.h"
#include "../spec/exponential.h"
#include "../spec/spec.h"

/* Elements of a row buffer. Rows live on the stack, one for each level of halving: a window of 2^20
 * rows takes 20 of at most 4 KiB. */
#define CAPACITY 512

#define JOIN3(a, b, c) a##b##_##c
#define JOIN2(a, b) a##_##b
#define NAME_OF(prefix, name, dtype) JOIN3(prefix, name, dtype)
#define SCALAR_OF(dtype, name) JOIN2(dtype, name)
#define FN(name) NAME_OF(tarn_portable_, name, DTYPE)
#define SPEC(name) NAME_OF(tarn_spec_, name, DTYPE)
#define SCALAR(name) SCALAR_OF(DTYPE, name)
#define S SCALAR(s)
#define LOAD SCALAR(load)
#define STORE SCALAR(store)
#define WIDEN SCALAR(widen)
#define NARROW SCALAR(narrow)

/* Floating types: values are compared in the type of sums, which holds them exactly. */
#define PORTABLE_DERIVATIVES 1
#define V SCALAR(a)
#define P SCALAR(a)
#define LOWEST (-INFINITY)
#define HIGHEST INFINITY
#define LOAD_VALUE LOAD
#define IS_NAN_VALUE(v) ((v) != (v))
#define STORE_VALUE STORE
#define PORTABLE_MEAN SCALAR(mean)

#define DTYPE f64
#define IS_SPECIAL(x) ((x) != (x) || bits_of_f64(x) == UINT64_C(1) << 63)
#include "portable.inc"
#undef DTYPE
#undef IS_SPECIAL

#define DTYPE f32
#define IS_SPECIAL(x) ((x) != (x) || bits_of_f32(x) == UINT32_C(1) << 31)
#include "portable.inc"
#undef DTYPE
#undef IS_SPECIAL

#define DTYPE f16
#define IS_SPECIAL(x) (((x)&0x7fff) > 0x7c00 || (x) == 0x8000)
#include "portable.inc"
#undef DTYPE
#undef IS_SPECIAL

#define DTYPE bf16
#define IS_SPECIAL(x) (((x)&0x7fff) > 0x7f80 || (x) == 0x8000)
#include "portable.inc"
#undef DTYPE
#undef IS_SPECIAL

#undef PORTABLE_DERIVATIVES
#undef V
#undef P
#undef LOWEST
#undef HIGHEST
#undef LOAD_VALUE
#undef IS_NAN_VALUE
#undef STORE_VALUE
#undef PORTABLE_MEAN

/* Integers: compared as they are; summed in 64 bits as far as no window in memory can overflow them (2^47
 * taps of 16 bits), beyond that in 128. */
#define PORTABLE_DERIVATIVES 0
#define V S
#define LOAD_VALUE(x) (x)
#define STORE_VALUE(x) (x)
#define IS_NAN_VALUE(v) false
#define IS_SPECIAL(x) 0

#define P int64_t
#define PORTABLE_MEAN(sum, divisor) ((S)rounded_mean_i64(sum, divisor))
#define DTYPE i8
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST

#define DTYPE u8
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST

#define DTYPE i16
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST

#define DTYPE u16
#define LOWEST 0
#define HIGHEST UINT16_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST
#undef P
#undef PORTABLE_MEAN

#define P tarn_i128
#define PORTABLE_MEAN SCALAR(mean)
#define DTYPE i32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST

#define DTYPE u32
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST

#define DTYPE i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "portable.inc"
#undef DTYPE
#undef LOWEST
#undef HIGHEST

#define DTYPE u64
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "portable.inc"
