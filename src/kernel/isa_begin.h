/* Begins a file of kernels for one instruction set, which its file names: ISA_BASELINE (what
 * every machine of the architecture has, SSE2 or NEON, or none: the compiler then spells
 * vectors out), ISA_AVX2 or ISA_AVX512. Where the set exists, PREFIX is defined, the beginning
 * of the functions' names, and with it VECTOR_BYTES; isa_end.h ends the file. The compiler may
 * use the set's instructions between the two only, so no flag of the command line is needed. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Not even a build for a debugger has these files unoptimised: inlined as they are, that takes the
 * compiler minutes, and gigabytes. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE__)
#pragma GCC optimize("O1")
#endif

#include "../families.h"

/* For a loop over a few taps whose number is known: as straight code, with values in registers.
 * clang needs no telling. */
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

/* For a loop that is seldom run. */
#ifdef __clang__
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* For functions compiled anew for constants among their arguments, and for those that are
 * better called. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#ifdef __clang__
#define NOT_INLINE __attribute__((noinline, unused))
#else
#define NOT_INLINE __attribute__((noinline, noclone, unused))
#endif

#ifdef __SSE2__
#include <immintrin.h>
#endif
#if defined(ISA_BASELINE)
#define PREFIX tarn_portable_
#define VECTOR_BYTES 16
#elif defined(ISA_AVX2) && HAVE_AVX2
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
