#include "dispatch.h"

#include "accepts.h"

#include <stdatomic.h>
#include <stdlib.h>
#if HAVE_X86_VECTORS
#include <cpuid.h>
#endif

const tarn_kernel_row tarn_kernel_rows[] = {
#define KERNEL(isa, op, pass, dtype, accepts, function)                                            \
    {TARN_ISA_##isa, TARN_##op, TARN_##pass, TARN_##dtype, accepts, function, #function},
#include "kernels.def"
};

const int tarn_kernel_row_count = (int)(sizeof tarn_kernel_rows / sizeof tarn_kernel_rows[0]);

/* The rows by operator, pass and dtype, as chains from the last row to the first: there are thousands, and a plan
 * looks for six kernels. Made at the first call; threads that make them at the same time write the same numbers. */
enum { NO_ROW = -1, ROWS = (int)(sizeof tarn_kernel_rows / sizeof tarn_kernel_rows[0]) };
static _Atomic int16_t last_row[TARN_OPS][TARN_PASSES][TARN_DTYPES], row_before[ROWS];
static _Atomic bool chains_are_made;
_Static_assert(ROWS <= INT16_MAX, "a row's number takes 16 bits");

static void make_chains(void)
{
    int16_t last[TARN_OPS][TARN_PASSES][TARN_DTYPES];
    memset(last, NO_ROW, sizeof last); /* all bits set: -1 in every width */
    for (int n = 0; n < ROWS; n++) {
        const tarn_kernel_row *row = &tarn_kernel_rows[n];
        row_before[n] = last[row->op][row->pass][row->dtype];
        last[row->op][row->pass][row->dtype] = (int16_t)n;
    }
    for (int op = 0; op < TARN_OPS; op++)
        for (int pass = 0; pass < TARN_PASSES; pass++)
            for (int dtype = 0; dtype < TARN_DTYPES; dtype++)
                last_row[op][pass][dtype] = last[op][pass][dtype];
    atomic_store_explicit(&chains_are_made, true, memory_order_release);
}

const tarn_kernel_row *tarn_choose_kernel(const tarn_problem *problem, tarn_pass pass, uint32_t isa)
{
    if (!atomic_load_explicit(&chains_are_made, memory_order_acquire))
        make_chains();
    int n = last_row[problem->op][pass][problem->dtype];
    while (n != NO_ROW && !((tarn_kernel_rows[n].isa & isa) && tarn_kernel_rows[n].accepts(problem)))
        n = row_before[n];
    return n == NO_ROW ? NULL : &tarn_kernel_rows[n];
}

const char *tarn_isa_name(int bit)
{
    static const char *const names[] = {"spec", "portable", "sse2", "avx2", "avx512", "neon"};
    return bit < (int)(sizeof names / sizeof names[0]) ? names[bit] : NULL;
}

#if HAVE_X86_VECTORS
/* Bit 29 of leaf 1: clang's __builtin_cpu_supports() does not know the name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}
#endif

/* The families of kernels that this CPU can run. */
static uint32_t detect(void)
{
    uint32_t mask = TARN_ISA_SPEC | TARN_ISA_PORTABLE;
#if HAVE_X86_VECTORS
    mask |= TARN_ISA_SSE2;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && has_f16c())
        mask |= TARN_ISA_AVX2;
    if (HAVE_AVX512 && (mask & TARN_ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        mask |= TARN_ISA_AVX512;
#elif HAVE_NEON
    mask |= TARN_ISA_NEON;
#endif
    return mask;
}

/* A comma-separated list of names to a mask; words that are no names say nothing. */
static uint32_t parse_mask(const char *list)
{
    uint32_t mask = 0;
    while (*list) {
        size_t length = strcspn(list, ",");
        for (int bit = 0; tarn_isa_name(bit); bit++)
            if (strlen(tarn_isa_name(bit)) == length &&
                memcmp(list, tarn_isa_name(bit), length) == 0)
                mask |= (uint32_t)1 << bit;
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
