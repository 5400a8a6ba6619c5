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
/* What the CPU says, and which registers the system keeps. The compilers'
 * __builtin_cpu_supports() wants a runtime library that not all of them bring. */
typedef struct {
    unsigned leaf1_c, leaf7_b, leaf7_c, kept;
} cpu;

static cpu ask_cpu(void)
{
    enum { SYSTEM_KEEPS = 1 << 27 };
    unsigned a, b, c = 0, d, kept = 0;
    cpu found = {0};
    if (__get_cpuid(1, &a, &b, &found.leaf1_c, &d) && found.leaf1_c & SYSTEM_KEEPS)
        __asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        found.leaf7_b = b;
        found.leaf7_c = c;
    }
    found.kept = kept;
    return found;
}

static bool has_all(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static bool has_avx2(const cpu *c)
{
    enum { XMM_YMM = 6, AVX = 1 << 28, F16C = 1 << 29, AVX2 = 1 << 5 };
    return has_all(c->kept, XMM_YMM) && has_all(c->leaf1_c, AVX | F16C) &&
           has_all(c->leaf7_b, AVX2);
}
#endif

#if HAVE_AVX512
/* Intel's first machines with AVX-512 (Skylake-X, Cascade Lake) lower their clock for 64-byte
 * vectors: AVX2 is faster there. VBMI2, of which kernels make no use, came with those that keep it:
 * Ice Lake, and AMD's Zen 4. */
static bool has_fast_avx512(const cpu *c)
{
    const unsigned registers = 0xe6, f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    const unsigned vbmi2 = 1u << 6;
    return has_all(c->kept, registers) && has_all(c->leaf7_b, f | dq | bw | vl) &&
           has_all(c->leaf7_c, vbmi2);
}
#endif

/* The families of kernels that this CPU can run. */
static uint32_t detect(void)
{
    uint32_t mask = TARN_ISA_SPEC | TARN_ISA_PORTABLE;
#if HAVE_AVX2
    const cpu found = ask_cpu();
    if (has_avx2(&found))
        mask |= TARN_ISA_AVX2;
#endif
#if HAVE_AVX512
    if ((mask & TARN_ISA_AVX2) && has_fast_avx512(&found))
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
        uint32_t capable = detect();
        mask = known | (list && *list ? capable & parse_mask(list) : capable);
        atomic_store_explicit(&cached, mask, memory_order_relaxed);
    }
    return mask & ~known;
}
