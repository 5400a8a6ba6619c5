/* Families of kernels: their names, and which of them this machine can run. */
#include "dispatch.h"

#include <stdatomic.h>
#include <stdlib.h>
#if HAVE_AVX2
#include <cpuid.h>
#endif

static const struct {
    const char *name;
    uint32_t isa;
} families[] = {
    {"spec", TARN_ISA_SPEC},     {"portable", TARN_ISA_PORTABLE}, {"avx2", TARN_ISA_AVX2},
    {"avx512", TARN_ISA_AVX512}, {"sse2", TARN_ISA_SSE2},         {"neon", TARN_ISA_NEON},
};
enum { FAMILIES = 4, NAMES = sizeof families / sizeof families[0] };

const char *tarn_isa_name(uint32_t isa)
{
    int k = FAMILIES - 1;
    while (k > 0 && !(families[k].isa & isa))
        k--;
    return families[k].name;
}

uint32_t tarn_isa_named(const char *name, size_t length)
{
    for (int k = 0; k < NAMES; k++)
        if (strlen(families[k].name) == length && memcmp(name, families[k].name, length) == 0)
            return families[k].isa;
    return 0;
}

#if HAVE_AVX2
/* Bit 29 of leaf 1: clang's __builtin_cpu_supports() does not know the name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}

static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && has_f16c();
}
#endif

#if HAVE_AVX512
/* Intel's first machines with AVX-512 (Skylake-X, Cascade Lake) lower their clock for 64-byte
 * vectors: AVX2 is faster there. VBMI2, of which kernels make no use, came with those that keep it:
 * Ice Lake, and AMD's Zen 4. */
static bool has_fast_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2");
}
#endif

/* The families of kernels that this CPU can run. */
static uint32_t detect(void)
{
    uint32_t mask = TARN_ISA_SPEC | TARN_ISA_PORTABLE;
#if HAVE_AVX2
    if (has_avx2())
        mask |= TARN_ISA_AVX2;
#endif
#if HAVE_AVX512
    if ((mask & TARN_ISA_AVX2) && has_fast_avx512())
        mask |= TARN_ISA_AVX512;
#endif
    return mask;
}

/* A comma-separated list of names to a mask; words that are no names say nothing. */
static uint32_t parse_mask(const char *list)
{
    uint32_t mask = 0;
    while (*list) {
        size_t length = strcspn(list, ",");
        mask |= tarn_isa_named(list, length);
        list += length + (list[length] == ',');
    }
    return mask;
}

uint32_t tarn_isa_available(void)
{
    static _Atomic uint32_t cached; /* every thread would compute the same; 0 is "not yet" */
    const uint32_t known = UINT32_C(1) << 31;
    uint32_t mask = atomic_load_explicit(&cached, memory_order_relaxed);
    if (mask == 0) {
        const char *list = getenv("TARN_ISA");
        mask = known | (detect() & (list && *list ? parse_mask(list) : TARN_ISA_ALL));
        atomic_store_explicit(&cached, mask, memory_order_relaxed);
    }
    return mask & ~known;
}
