#include "dispatch.h"
#include "kernel/backward_limits.h"
#include "kernel/recomputed.h"

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

static bool average_slides_backward(const tarn_problem *problem)
{
    return slides_backward(problem, 2 * rows_kept(problem) + 4,
                           most_readers(&problem->axis[problem->spatial - 1])) &&
           (problem->spatial < 3 || most_readers(&problem->axis[0]) <= 8);
}

static bool winners_are_contiguous(const tarn_problem *problem)
{
    return problem->ties == TARN_TIES_FIRST && problem->element_bytes[OPERAND_SAVED] <= 4 &&
           problem->stride[OPERAND_SAVED][problem->spatial - 1] == problem->lanes;
}

static bool winners_slide_backward(const tarn_problem *problem)
{
    int inner = problem->spatial - 1;
    for (int a = 0; a <= inner; a++)
        if (most_readers(&problem->axis[a]) > 8)
            return false;
    return winners_are_contiguous(problem) && slides_backward(problem, 2 * rows_kept(problem) + 1,
                                                              most_readers(&problem->axis[inner]));
}

/* Large windows on two axes: asking every window of a cell would take longer. */
static bool winners_scatter(const tarn_problem *problem)
{
    enum { FEW_READERS = 25 };
    const tarn_axis *axis = problem->axis;
    return problem->spatial == 2 && winners_are_contiguous(problem) &&
           most_readers(&axis[0]) * most_readers(&axis[1]) > FEW_READERS &&
           axis[0].kernel <= MOST_TAPS && axis[1].kernel <= MOST_TAPS / axis[0].kernel &&
           slides_backward(problem, scatter_rows(problem), scatter_halo(problem));
}

/* Two columns in each window, no window meets another or reaches beyond the input. */
static bool in_pairs(const tarn_problem *problem)
{
    int inner = problem->spatial - 1;
    for (int a = 0; a <= inner; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (most_readers(axis) > 1 || axis->lo > 0 ||
            axis->size - axis->kernel < (axis->out - 1) * axis->stride)
            return false;
    }
    return inner > 0 && problem->axis[inner].kernel == 2 && problem->axis[inner].stride == 2 &&
           problem->lanes == 1 && problem->stride[TARN_GX][inner] == 1 &&
           problem->stride[TARN_GY][inner] == 1;
}

static bool winners_in_pairs(const tarn_problem *problem)
{
    return in_pairs(problem) && problem->ties == TARN_TIES_FIRST &&
           problem->element_bytes[OPERAND_SAVED] == 1 &&
           problem->stride[OPERAND_SAVED][problem->spatial - 1] == 1;
}

/* From x: winners are recomputed into a buffer and then used as saved ones. */
static bool winners_can_be_recomputed(const tarn_problem *problem)
{
    if (problem->ties != TARN_TIES_FIRST || problem->planes == 0 ||
        most_readers(&problem->axis[0]) > MOST_READERS || recomputed_rows(problem) == 0)
        return false;
    tarn_problem own = with_own_winners(problem);
    return winners_slide_backward(&own) || winners_scatter(&own) || winners_in_pairs(&own);
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
