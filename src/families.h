/* Which families of kernels are compiled, beside the specification and the portable ones.
 *
 * TARN_NO_VECTORS and TARN_NO_AVX512 leave some out: builds that look for something else than kernels
 * (thread sanitizers), or that could not run them, then take less time.
 */
#ifndef TARN_FAMILIES_H
#define TARN_FAMILIES_H

#if defined(__x86_64__) && !defined(TARN_NO_VECTORS)
#define HAVE_X86_VECTORS 1 /* SSE2 and AVX2 */
#else
#define HAVE_X86_VECTORS 0
#endif
#if HAVE_X86_VECTORS && !defined(TARN_NO_AVX512)
#define HAVE_AVX512 1
#else
#define HAVE_AVX512 0
#endif
#if defined(__aarch64__) && !defined(TARN_NO_VECTORS)
#define HAVE_NEON 1
#else
#define HAVE_NEON 0
#endif

#endif
