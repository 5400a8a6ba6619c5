/* The families of row operations that this CPU has. */
#ifndef TARN_ROW_FAMILIES_H
#define TARN_ROW_FAMILIES_H

#include "kernel/row_ops.h"

typedef struct {
    const char *name;
    const tarn_row_ops *ops;
} family;

static inline int find_families(family *found)
{
    int n = 0;
    found[n++] = (family){"portable", &tarn_portable_row_ops};
#if HAVE_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        found[n++] = (family){"avx2", &tarn_avx2_row_ops};
#endif
#if HAVE_AVX512
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        found[n++] = (family){"avx512", &tarn_avx512_row_ops};
#endif
    return n;
}

#endif
