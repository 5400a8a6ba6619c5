/* Begins a file of kernels for one instruction set, which its file names: ISA_BASELINE (what every machine of the
 * architecture has), ISA_AVX2 or ISA_AVX512. Where the set exists, PREFIX is defined, the beginning
 * of the functions' names, and with it VECTOR_BYTES; isa_end.h ends the file. The compiler may use the
 * set's instructions between the two only, so no flag of the command line is needed. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../families.h"

/* For a loop over a few taps whose number is known: as straight code, with values in registers. clang needs no
 * telling. */
#ifdef __clang__
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* For a loop whose own instructions are a good part of it, or most. */
#ifdef __clang__
#define TWICE _Pragma("clang loop unroll_count(2)")
#define FOUR_TIMES _Pragma("clang loop unroll_count(4)")
#else
#define TWICE _Pragma("GCC unroll 2")
#define FOUR_TIMES _Pragma("GCC unroll 4")
#endif

#if HAVE_X86_VECTORS
#include <immintrin.h>
#if defined(ISA_BASELINE)
#define PREFIX tarn_sse2_
#define VECTOR_BYTES 16
#elif defined(ISA_AVX2)
#define PREFIX tarn_avx2_
#define VECTOR_BYTES 32
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif
#elif defined(ISA_AVX512) && HAVE_AVX512
#define PREFIX tarn_avx512_
#define VECTOR_BYTES 64
#ifdef __clang__
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#endif
#endif
#elif HAVE_NEON && defined(ISA_BASELINE)
#define PREFIX tarn_neon_
#define VECTOR_BYTES 16
#endif
