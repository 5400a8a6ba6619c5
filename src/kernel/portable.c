/* The portable kernels, compiled for every dtype. */
#include "../scalar.h"
#include "../spec/power.h"
#include "../spec/spec.h"
#include "columns.h"

/* What a strip of values may hold, see extreme.inc. */
enum { HOLDS_NAN = 1, HOLDS_MINUS_ZERO = 2 };

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
#define IS_MINUS_ZERO(x) (bits_of_f64(x) == UINT64_C(1) << 63)
#define U uint64_t
#define BITS(x) bits_of_f64(x)
#include "portable.inc"
#undef DTYPE
#undef U
#undef BITS
#undef IS_MINUS_ZERO

#define DTYPE f32
#define IS_MINUS_ZERO(x) (bits_of_f32(x) == UINT32_C(1) << 31)
#define U uint32_t
#define BITS(x) bits_of_f32(x)
#include "portable.inc"
#undef DTYPE
#undef U
#undef BITS
#undef IS_MINUS_ZERO

#define DTYPE f16
#define IS_MINUS_ZERO(x) ((x) == 0x8000)
#define U uint16_t
#define BITS(x) (x)
#include "portable.inc"
#undef DTYPE
#undef U
#undef BITS
#undef IS_MINUS_ZERO

#define DTYPE bf16
#define IS_MINUS_ZERO(x) ((x) == 0x8000)
#define U uint16_t
#define BITS(x) (x)
#include "portable.inc"
#undef DTYPE
#undef U
#undef BITS
#undef IS_MINUS_ZERO

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
#define IS_MINUS_ZERO(x) 0

#define LOWEST SCALAR(lowest)
#define HIGHEST SCALAR(highest)

#define P int64_t
#define PORTABLE_MEAN SCALAR(mean_i64)
#define DTYPE i8
#include "portable.inc"
#undef DTYPE
#define DTYPE u8
#include "portable.inc"
#undef DTYPE
#define DTYPE i16
#include "portable.inc"
#undef DTYPE
#define DTYPE u16
#include "portable.inc"
#undef DTYPE
#undef P
#undef PORTABLE_MEAN

#define P tarn_i128
#define PORTABLE_MEAN SCALAR(mean)
#define DTYPE i32
#include "portable.inc"
#undef DTYPE
#define DTYPE u32
#include "portable.inc"
#undef DTYPE
#define DTYPE i64
#include "portable.inc"
#undef DTYPE
#define DTYPE u64
#include "portable.inc"
#undef DTYPE
