/* The executable specification, compiled for every dtype. */
#include "../problem.h"
#include "../scalar.h"
#include "power.h"

#define JOIN3(a, b, c) a##b##_##c
#define JOIN2(a, b) a##_##b
#define FN_OF(name, dtype) JOIN3(tarn_spec_, name, dtype)
#define SCALAR_OF(dtype, name) JOIN2(dtype, name)
#define FN(name) FN_OF(name, DTYPE)
#define SCALAR(name) SCALAR_OF(DTYPE, name)

#define S SCALAR(s)
#define A SCALAR(a)
#define LOAD SCALAR(load)
#define STORE SCALAR(store)
#define MEAN SCALAR(mean)
#define LESS SCALAR(less)
#define IS_NAN SCALAR(nan)
#define ZERO SCALAR(zero)
#define ADD SCALAR(add)
#define DIVIDE(a, b) ((a) / (b))
#define FROM_COUNT(n) ((A)(n))

#define W tarn_weight
#define W_ZERO weight_zero
#define W_ADD weight_add
#define FULL (sizeof(S) == sizeof(double))
#define W_EXP(beta, x) weight_exp(FULL, (beta)*SCALAR(widen)(x))
#define W_COUNT(n) ((tarn_weight){(double)(n), 0.0})
#define W_TIMES(w, dx) ((tarn_weight){(w).mantissa * SCALAR(widen)(dx), (w).exponent})
#define W_VALUE(top, beta, w) SCALAR(narrow)(smooth_value(FULL, SCALAR(widen)(top), beta, w))
#define W_TANGENT(w, sum) SCALAR(narrow)(smooth_tangent(w, sum))
#define W_SHARE(gy, sum) smooth_share(SCALAR(widen)(gy), sum)
#define W_GRADIENT(w, shares) SCALAR(narrow)(smooth_gradient(w, shares))

#define MAGNITUDE(x) SCALAR(narrow)(__builtin_fabs(SCALAR(widen)(x)))
#define W_POWER(x, q) weight_power(magnitude(SCALAR(widen)(x)), q)
#define W_SIGNED_POWER(x, q) signed_power(SCALAR(widen)(x), q)
#define W_NORM(top, p, sum) lp_norm(SCALAR(widen)(top), p, sum)
#define W_POWER_OF(w, q) weight_power(w, q)
#define W_NUMBER(w) SCALAR(narrow)(weight_number(w))
#define W_SLOPE(w, v) SCALAR(narrow)(lp_tangent(w, v))
#define W_LP_SHARE(gy, w) lp_share(SCALAR(widen)(gy), w)

#define SPEC_DERIVATIVES 1
#define DTYPE f64
#include "spec.inc"
#undef DTYPE
#define DTYPE f32
#include "spec.inc"
#undef DTYPE
#define DTYPE f16
#include "spec.inc"
#undef DTYPE
#define DTYPE bf16
#include "spec.inc"
#undef DTYPE
#undef SPEC_DERIVATIVES

#define SPEC_DERIVATIVES 0
#define DTYPE i8
#include "spec.inc"
#undef DTYPE
#define DTYPE u8
#include "spec.inc"
#undef DTYPE
#define DTYPE i16
#include "spec.inc"
#undef DTYPE
#define DTYPE u16
#include "spec.inc"
#undef DTYPE
#define DTYPE i32
#include "spec.inc"
#undef DTYPE
#define DTYPE u32
#include "spec.inc"
#undef DTYPE
#define DTYPE i64
#include "spec.inc"
#undef DTYPE
#define DTYPE u64
#include "spec.inc"
#undef DTYPE
