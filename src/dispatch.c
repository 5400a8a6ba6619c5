#include "dispatch.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Predicates of the table: which problems a kernel takes. */
static bool any(const tarn_problem *problem)
{
    (void)problem;
    return true;
}

static bool windows_are_disjoint(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        bool apart = axis->adaptive ? axis->size % axis->out == 0
                                    : axis->stride > (axis->kernel - 1) * axis->dilation;
        if (!apart && axis->out > 1)
            return false;
    }
    return true;
}

/* Whether every window of an axis has a real tap. */
static bool every_window_reads(const tarn_axis *axis)
{
    return axis->lo <= (axis->kernel - 1) * axis->dilation &&
           (axis->out - 1) * axis->stride - axis->lo < axis->size;
}

/* Whether the elements of a row lie side by side, as lanes do, in all tensors. */
static bool rows_are_dense(const tarn_problem *problem)
{
    for (int k = 0; k < OPERANDS && problem->lanes == 1; k++)
        if (problem->stride[k][problem->spatial - 1] != 1)
            return false;
    return true;
}

/* What tiles of sliding.h take: windows of moderate size, each with a real tap. */
static bool windows_slide(const tarn_problem *problem)
{
    int64_t outer_taps = 1;
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        bool inner = a >= problem->spatial - 2, last = a == problem->spatial - 1;
        if (axis->adaptive || !every_window_reads(axis) || (axis->dilation > 1 && inner))
            return false;
        if (inner && (axis->kernel > 64 || axis->stride > 64 ||
                      axis->kernel + (last ? 1 : 7) * axis->stride > 72))
            return false;
        if (!inner && (axis->kernel > 64 || (outer_taps *= axis->kernel) > 64))
            return false;
    }
    return rows_are_dense(problem);
}

static int64_t taps_of(const tarn_problem *problem)
{
    int64_t taps = 1;
    for (int a = 0; a < problem->spatial; a++)
        taps *= problem->axis[a].kernel;
    return taps;
}

/* Winners are counted in integers as wide as the values: a byte holds 255 taps. */
static bool winners_slide(const tarn_problem *problem)
{
    int64_t most = tarn_dtype_size(problem->dtype) == 1 ? 255 : 65535;
    return windows_slide(problem) && taps_of(problem) <= most;
}

/* ... and cells, in 32 bits at least. */
static bool indices_slide(const tarn_problem *problem)
{
    int64_t cells = 1;
    bool half = problem->dtype == TARN_F16 || problem->dtype == TARN_BF16;
    for (int a = 0; a < problem->spatial; a++)
        if (!checked_mul(cells, problem->axis[a].size, &cells) || cells > INT32_MAX)
            return false;
    return windows_slide(problem) && (half || tarn_dtype_size(problem->dtype) >= 4);
}

static bool tangents_slide(const tarn_problem *problem)
{
    return windows_slide(problem) && problem->ties == TARN_TIES_FIRST;
}

const tarn_kernel_row tarn_kernel_rows[] = {
#define KERNEL(isa, op, pass, dtype, accepts, function)                                            \
    {TARN_ISA_##isa, TARN_##op, TARN_##pass, TARN_##dtype, accepts, function, #function},
#include "kernels.def"
};

const int tarn_kernel_row_count = (int)(sizeof tarn_kernel_rows / sizeof tarn_kernel_rows[0]);

const tarn_kernel_row *tarn_choose_kernel(const tarn_problem *problem, tarn_pass pass, uint32_t isa)
{
    for (const tarn_kernel_row *row = tarn_kernel_rows + tarn_kernel_row_count;
         row-- > tarn_kernel_rows;)
        if (row->op == problem->op && row->pass == pass && row->dtype == problem->dtype &&
            (row->isa & isa) && row->accepts(problem))
            return row;
    return NULL;
}

const char *tarn_isa_name(int bit)
{
    static const char *const names[] = {"spec", "portable", "sse2", "avx2", "avx512", "neon"};
    return bit < (int)(sizeof names / sizeof names[0]) ? names[bit] : NULL;
}

/* The families of kernels that this CPU can run. */
static uint32_t detect(void)
{
    uint32_t mask = TARN_ISA_SPEC | TARN_ISA_PORTABLE;
#if defined(__x86_64__)
    mask |= TARN_ISA_SSE2;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
        mask |= TARN_ISA_AVX2;
    if ((mask & TARN_ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        mask |= TARN_ISA_AVX512;
#elif defined(__aarch64__)
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
