/* The strips' entry points: kernels in plain C, one for each floating dtype (portable.c). */
#ifndef TARN_STRIPS_H
#define TARN_STRIPS_H

#include "../problem.h"

#define DECLARE_STRIPS(dtype)                                                                      \
    tarn_kernel tarn_portable_extreme_jvp_##dtype, tarn_portable_extreme_vjp_##dtype,              \
        tarn_portable_smooth_##dtype, tarn_portable_smooth_vjp_##dtype, tarn_portable_lp_##dtype,  \
        tarn_portable_lp_vjp_##dtype;
DECLARE_STRIPS(f64)
DECLARE_STRIPS(f32)
DECLARE_STRIPS(f16)
DECLARE_STRIPS(bf16)
#undef DECLARE_STRIPS

#endif
