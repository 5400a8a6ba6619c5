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

/* Whether a plane's cells lie side by side, in row-major order. */
static bool is_dense(const tarn_problem *problem, int operand)
{
    int64_t step = 1;
    for (int a = problem->spatial - 1; a >= 0; a--) {
        if (problem->axis[a].size > 1 && problem->stride[operand][a] != step)
            return false;
        step *= problem->axis[a].size;
    }
    return true;
}

static bool have_equal_strides(const tarn_problem *problem, int one, int other)
{
    for (int a = 0; a < problem->spatial; a++)
        if (problem->axis[a].size > 1 && problem->stride[one][a] != problem->stride[other][a])
            return false;
    return true;
}

/* Planes in one run, of up to two axes, dense or with enough channels last to fill vectors. Cells are counted
 * in 31 bits. */
static bool has_vector_planes(const tarn_problem *problem)
{
    int64_t cells = 1;
    for (int a = 0; a < problem->spatial; a++) {
        if (problem->axis[a].size > INT32_MAX / cells)
            return false;
        cells *= problem->axis[a].size;
    }
    if (problem->spatial > 2 || problem->leading > 1)
        return false;
    if (problem->lanes > 1)
        return problem->lanes >= 8 && have_equal_strides(problem, TARN_X, TARN_DX);
    return is_dense(problem, TARN_X) && is_dense(problem, TARN_DX) && is_dense(problem, TARN_GX);
}

/* One window that covers its plane. */
static bool is_global(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        tarn_span taps = window_taps(axis, 0);
        if (axis->out != 1 || taps.n != axis->size || taps.lo != 0 || taps.hi != taps.n ||
            (taps.step != 1 && taps.n > 1))
            return false;
    }
    return has_vector_planes(problem);
}

/* Adaptive windows whose rows fit buffers, and whose taps are few enough for f32 to count them. */
static bool is_adaptive(const tarn_problem *problem)
{
    const tarn_axis *rows = &problem->axis[0], *columns = &problem->axis[1];
    return problem->spatial == 2 && rows->adaptive && columns->size <= 128 && columns->out <= 128 &&
           rows->size <= 1 << 16 && has_vector_planes(problem);
}

/* ... of which no more than two on an axis meet in a cell. */
static bool is_adaptive_down(const tarn_problem *problem)
{
    return is_adaptive(problem) && problem->axis[0].out <= problem->axis[0].size &&
           problem->axis[1].out <= problem->axis[1].size;
}

static bool is_adaptive_first(const tarn_problem *problem)
{
    return is_adaptive(problem) && problem->ties == TARN_TIES_FIRST;
}

static bool is_adaptive_down_first(const tarn_problem *problem)
{
    return is_adaptive_down(problem) && problem->ties == TARN_TIES_FIRST;
}

/* Sliding windows in two dimensions that fit the rings of weights.inc. */
static bool has_small_windows(const tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        const tarn_axis *axis = &problem->axis[a];
        if (axis->adaptive || axis->kernel > 8 || axis->stride > 16 || axis->dilation > 1)
            return false;
    }
    return problem->spatial == 2;
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
