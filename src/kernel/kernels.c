/* The kernels of the table (src/kernels.def): engines with the row operations of a family, and what
 * exists once for each dtype, behind one function. The tensors that are there tell the pass. */
#include "../dispatch.h"
#include "engines.h"

/* ---- By dtype ------------------------------------------------------------------------------- */

typedef tarn_kernel *kernels_by_dtype[TARN_DTYPES];

/* What is left out (families.h) is not named here, so that the linker can drop it. */
enum {
    NO_EXTREMES = (OMITTED_OPERATORS >> TARN_MAX & 1) && (OMITTED_OPERATORS >> TARN_MIN & 1),
    NO_AVG = OMITTED_OPERATORS >> TARN_AVG & 1,
    NO_SMOOTH = OMITTED_OPERATORS >> TARN_SMOOTH & 1,
    NO_LP = OMITTED_OPERATORS >> TARN_LP & 1,
    NO_MODE = OMITTED_OPERATORS >> TARN_MODE & 1
};

#define UNLESS(omitted, DTYPE, function)                                                           \
    [TARN_##DTYPE] = (omitted) || (OMITTED_DTYPES >> TARN_##DTYPE & 1) ? NULL : function
#define OF_WIDE_FLOATS(omitted, kernel)                                                            \
    UNLESS(omitted, F64, kernel##_f64), UNLESS(omitted, F32, kernel##_f32)
#define OF_FLOATS(omitted, kernel)                                                                 \
    OF_WIDE_FLOATS(omitted, kernel), UNLESS(omitted, F16, kernel##_f16),                           \
        UNLESS(omitted, BF16, kernel##_bf16)
#define OF_INTEGERS(kernel)                                                                        \
    UNLESS(0, I8, kernel##_i8), UNLESS(0, U8, kernel##_u8), UNLESS(0, I16, kernel##_i16),          \
        UNLESS(0, U16, kernel##_u16), UNLESS(0, I32, kernel##_i32), UNLESS(0, U32, kernel##_u32),  \
        UNLESS(0, I64, kernel##_i64), UNLESS(0, U64, kernel##_u64)

#define DECLARE(kernel, dtype) tarn_kernel kernel##_##dtype;
#define DECLARE_WIDE_FLOATS(kernel) DECLARE(kernel, f64) DECLARE(kernel, f32)
#define DECLARE_FLOATS(kernel)                                                                     \
    DECLARE_WIDE_FLOATS(kernel) DECLARE(kernel, f16) DECLARE(kernel, bf16)
#define DECLARE_INTEGERS(kernel)                                                                   \
    DECLARE(kernel, i8)                                                                            \
    DECLARE(kernel, u8)                                                                            \
    DECLARE(kernel, i16) DECLARE(kernel, u16) DECLARE(kernel, i32) DECLARE(kernel, u32)            \
        DECLARE(kernel, i64) DECLARE(kernel, u64)

/* ---- The specification ---------------------------------------------------------------------- */

DECLARE_FLOATS(tarn_spec_forward)
DECLARE_INTEGERS(tarn_spec_forward)
DECLARE_FLOATS(tarn_spec_jvp)
DECLARE_FLOATS(tarn_spec_vjp)

void tarn_spec(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin, int64_t end)
{
    static const kernels_by_dtype forward = {OF_FLOATS(0, tarn_spec_forward),
                                             OF_INTEGERS(tarn_spec_forward)};
    static const kernels_by_dtype jvp = {OF_FLOATS(0, tarn_spec_jvp)};
    static const kernels_by_dtype vjp = {OF_FLOATS(0, tarn_spec_vjp)};
    const kernels_by_dtype *kernels = tensors->base[TARN_GX]   ? &vjp
                                      : tensors->base[TARN_DY] ? &jvp
                                                               : &forward;
    (*kernels)[problem->dtype](problem, tensors, begin, end);
}

/* ---- Small planes --------------------------------------------------------------------------- */

DECLARE_WIDE_FLOATS(tarn_small_extreme)
DECLARE_WIDE_FLOATS(tarn_small_extreme_vjp)
DECLARE_WIDE_FLOATS(tarn_small_average)
DECLARE_WIDE_FLOATS(tarn_small_average_jvp)
DECLARE_WIDE_FLOATS(tarn_small_average_vjp)

void tarn_small(const tarn_problem *problem, const tarn_tensors *tensors, int64_t begin,
                int64_t end)
{
    static const kernels_by_dtype extreme = {OF_WIDE_FLOATS(NO_EXTREMES, tarn_small_extreme)};
    static const kernels_by_dtype extreme_vjp = {
        OF_WIDE_FLOATS(NO_EXTREMES, tarn_small_extreme_vjp)};
    static const kernels_by_dtype average = {OF_WIDE_FLOATS(NO_AVG, tarn_small_average)};
    static const kernels_by_dtype average_jvp = {OF_WIDE_FLOATS(NO_AVG, tarn_small_average_jvp)};
    static const kernels_by_dtype average_vjp = {OF_WIDE_FLOATS(NO_AVG, tarn_small_average_vjp)};
    char *const *base = tensors->base;
    const kernels_by_dtype *kernels;
    bool avg = problem->op == TARN_AVG;
    if (base[TARN_GX])
        kernels = avg ? &average_vjp : &extreme_vjp;
    else if (base[TARN_DY])
        kernels = avg ? &average_jvp : &extreme;
    else
        kernels = avg ? &average : &extreme;
    (*kernels)[problem->dtype](problem, tensors, begin, end);
}

/* ---- Families ------------------------------------------------------------------------------- */

#define ENGINE(family, engine, ops, omitted)                                                       \
    void tarn_##family##_##engine(const tarn_problem *problem, const tarn_tensors *tensors,        \
                                  int64_t begin, int64_t end)                                      \
    {                                                                                              \
        if (!(omitted))                                                                            \
            tarn_engine_##engine(problem, tensors, begin, end, &tarn_##family##_##ops);            \
    }

#define FAMILY(family)                                                                             \
    ENGINE(family, forward, row_ops, (NO_EXTREMES && NO_AVG))                                      \
    ENGINE(family, lanes, row_ops, (NO_EXTREMES && NO_AVG))                                        \
    ENGINE(family, long, row_ops, (NO_EXTREMES && NO_AVG))                                         \
    ENGINE(family, backward_mean, row_ops, NO_AVG)                                                 \
    ENGINE(family, backward_winners, row_ops, NO_EXTREMES)                                         \
    ENGINE(family, ties, tie_ops, NO_EXTREMES)                                                     \
    ENGINE(family, weights, weight_ops, (NO_SMOOTH && NO_LP))                                      \
    ENGINE(family, skipping, row_ops, (NO_EXTREMES && NO_AVG))                                     \
    ENGINE(family, wide_means, row_ops, NO_AVG)                                                    \
    ENGINE(family, halves, row_ops, NO_AVG)                                                        \
    ENGINE(family, mode, row_ops, NO_MODE)

FAMILY(portable)
#if HAVE_AVX2
FAMILY(avx2)
#endif
#if HAVE_AVX512
FAMILY(avx512)
#endif
