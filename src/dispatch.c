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
static bool has_all(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

/* What the CPU has, and whose registers the system keeps. The compilers' __builtin_cpu_supports()
 * wants a runtime library that not all of them bring. */
static uint32_t ask_cpu(void)
{
    enum { SYSTEM_KEEPS = 1 << 27, AVX = 1 << 28, F16C = 1 << 29, AVX2 = 1 << 5 };
    enum { KEPT_YMM = 0x06, KEPT_ZMM = 0xe6 };
    const unsigned f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    unsigned a, b, c, d, leaf1_c, kept;
    if (!__get_cpuid(1, &a, &b, &leaf1_c, &d) || !has_all(leaf1_c, SYSTEM_KEEPS | AVX | F16C))
        return 0;
    __asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, AVX2) || !has_all(kept, KEPT_YMM))
        return 0;
    bool avx512 = HAVE_AVX512 && has_all(kept, KEPT_ZMM) && has_all(b, f | dq | bw | vl);
    return TARN_ISA_AVX2 | (avx512 ? TARN_ISA_AVX512 : 0);
}
#else
static uint32_t ask_cpu(void)
{
    return 0;
}
#endif

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
        mask = TARN_ISA_SPEC | TARN_ISA_PORTABLE | ask_cpu();
        mask = known | (list && *list ? mask & parse_mask(list) : mask);
        atomic_store_explicit(&cached, mask, memory_order_relaxed);
    }
    return mask & ~known;
}
