/* The specification's entry points for single windows and cells. Its kernels are in kernels.def. */
#ifndef TARN_SPEC_H
#define TARN_SPEC_H

#include "../dispatch.h"
#include "exponential.h"

#define DECLARE_INTEGER(dtype)                                                                     \
    void tarn_spec_forward_at_##dtype(const tarn_problem *p, char *const *plane, const int64_t *o);
#define DECLARE_FLOAT(dtype)                                                                       \
    DECLARE_INTEGER(dtype)                                                                         \
    void tarn_spec_jvp_at_##dtype(const tarn_problem *p, char *const *plane, const int64_t *o);    \
    void tarn_spec_vjp_at_##dtype(const tarn_problem *p, char *const *plane, const int64_t *i);    \
    tarn_weight tarn_spec_weight_at_##dtype(const tarn_problem *p, char *const *plane,             \
                                            const int64_t *o);                                     \
    tarn_weight tarn_spec_steepest_at_##dtype(const tarn_problem *p, char *const *plane,           \
                                              const int64_t *o);

DECLARE_FLOAT(f64)
DECLARE_FLOAT(f32)
DECLARE_FLOAT(f16)
DECLARE_FLOAT(bf16)
DECLARE_INTEGER(i8)
DECLARE_INTEGER(u8)
DECLARE_INTEGER(i16)
DECLARE_INTEGER(u16)
DECLARE_INTEGER(i32)
DECLARE_INTEGER(u32)
DECLARE_INTEGER(i64)
DECLARE_INTEGER(u64)

#undef DECLARE_INTEGER
#undef DECLARE_FLOAT

#endif
