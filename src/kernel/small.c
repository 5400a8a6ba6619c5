/* Kernels for single planes of few taps, in plain C. */
#include "../dispatch.h"
#include "../scalar.h"
#include "tap_limits.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define JOIN(a, b) a##_##b
#define NAME_OF(name, dtype) JOIN(tarn_small_##name, dtype)
#define SCALAR_OF(dtype, name) JOIN(dtype, name)
#define FN(name) NAME_OF(name, DTYPE)
#define SCALAR(name) SCALAR_OF(DTYPE, name)
#define S SCALAR(s)

#define DTYPE f64
#include "small.inc"
#undef DTYPE
#define DTYPE f32
#include "small.inc"
#undef DTYPE
