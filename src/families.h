/* What is compiled: families of kernels, dtypes and operators. Small builds leave some out, by
 * CMake's options or by these names on the command line of a compiler:
 *
 *   TARN_NO_AVX2 (and so AVX-512), TARN_NO_AVX512
 *   TARN_NO_F64, TARN_NO_F32, ... TARN_NO_U64
 *   TARN_NO_MAX, TARN_NO_MIN, TARN_NO_AVG, TARN_NO_SMOOTH, TARN_NO_LP, TARN_NO_MODE
 *
 * A plan for what is left out fails with TARN_UNSUPPORTED. Nothing refers to its code any more: the
 * linker drops it (-ffunction-sections -fdata-sections -Wl,--gc-sections). Graphs (src/graph) and
 * problems as text (src/text.c) are left out by not compiling their files.
 */
#ifndef TARN_FAMILIES_H
#define TARN_FAMILIES_H

#include "tarn.h"

#if defined(__x86_64__) && !defined(TARN_NO_AVX2)
#define HAVE_AVX2 1
#else
#define HAVE_AVX2 0
#endif
#if HAVE_AVX2 && !defined(TARN_NO_AVX512)
#define HAVE_AVX512 1
#else
#define HAVE_AVX512 0
#endif

/* Sets of dtypes and operators, as bits. */
enum {
    OMITTED_DTYPES = 0
#ifdef TARN_NO_F64
                     | 1 << TARN_F64
#endif
#ifdef TARN_NO_F32
                     | 1 << TARN_F32
#endif
#ifdef TARN_NO_F16
                     | 1 << TARN_F16
#endif
#ifdef TARN_NO_BF16
                     | 1 << TARN_BF16
#endif
#ifdef TARN_NO_I8
                     | 1 << TARN_I8
#endif
#ifdef TARN_NO_U8
                     | 1 << TARN_U8
#endif
#ifdef TARN_NO_I16
                     | 1 << TARN_I16
#endif
#ifdef TARN_NO_U16
                     | 1 << TARN_U16
#endif
#ifdef TARN_NO_I32
                     | 1 << TARN_I32
#endif
#ifdef TARN_NO_U32
                     | 1 << TARN_U32
#endif
#ifdef TARN_NO_I64
                     | 1 << TARN_I64
#endif
#ifdef TARN_NO_U64
                     | 1 << TARN_U64
#endif
    ,
    OMITTED_OPERATORS = 0
#ifdef TARN_NO_MAX
                        | 1 << TARN_MAX
#endif
#ifdef TARN_NO_MIN
                        | 1 << TARN_MIN
#endif
#ifdef TARN_NO_AVG
                        | 1 << TARN_AVG
#endif
#ifdef TARN_NO_SMOOTH
                        | 1 << TARN_SMOOTH
#endif
#ifdef TARN_NO_LP
                        | 1 << TARN_LP
#endif
#ifdef TARN_NO_MODE
                        | 1 << TARN_MODE
#endif
};

#endif
