/* VJP of max and min from x, rule `first`: the forward pass finds the winners of a few rows of windows,
 * which stay in a buffer, and the VJP from saved winners takes them from there. */
#include "recomputed.h"

#include "../dispatch.h"

#if HAVE_X86_VECTORS || HAVE_NEON

/* The cells [lo,hi) on the first axis of one plane. */
static void recompute(const tarn_problem *own, const tarn_tensors *t,
                      const tarn_kernel_row *forward, const tarn_kernel_row *backward,
                      int64_t plane, int64_t lo, int64_t hi)
{
    _Alignas(64) char winners[RECOMPUTED_BYTES];
    const tarn_axis *axis = &own->axis[0];
    int64_t first = max_i64(readers_of(axis, lo).last - (most_readers(axis) - 1), 0);
    int64_t end = min_i64(readers_of(axis, hi - 1).last + 1, axis->out);
    if (first >= end) /* no window reads these cells */
        first = end = 0;
    char *base = winners - first * recomputed_row_bytes(own);
    tarn_tensors find = {.base = {[TARN_X] = t->base[TARN_X], [OPERAND_SAVED] = base}};
    tarn_tensors use = {
        .base = {
            [TARN_GY] = t->base[TARN_GY], [TARN_GX] = t->base[TARN_GX], [OPERAND_SAVED] = base}};
    if (first < end)
        forward->run(own, &find, plane * axis->out + first, plane * axis->out + end);
    backward->run(own, &use, plane * axis->size + lo, plane * axis->size + hi);
}

/* `isa`: the kernels that may be used. */
static void recomputed_vjp(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                           uint32_t isa)
{
    tarn_problem own = with_own_winners(p);
    const tarn_kernel_row *forward = tarn_choose_kernel(&own, TARN_FORWARD_SAVED, isa);
    const tarn_kernel_row *backward = tarn_choose_kernel(&own, TARN_VJP_SAVED, isa);
    int64_t size = p->axis[0].size, most = recomputed_rows(p);
    while (begin < end) {
        int64_t plane = begin / size, lo = begin - plane * size;
        int64_t hi = min_i64(min_i64(size, lo + most), lo + (end - begin));
        recompute(&own, t, forward, backward, plane, lo, hi);
        begin += hi - lo;
    }
}

/* For each family of vector kernels one, which may also use the families before it. */
#define RECOMPUTED_VJP(name, isa)                                                                  \
    void name(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end)            \
    {                                                                                              \
        recomputed_vjp(p, t, begin, end, TARN_ISA_PORTABLE | (isa));                               \
    }
#if HAVE_X86_VECTORS
RECOMPUTED_VJP(tarn_sse2_recomputed_vjp, TARN_ISA_SSE2)
RECOMPUTED_VJP(tarn_avx2_recomputed_vjp, TARN_ISA_SSE2 | TARN_ISA_AVX2)
#endif
#if HAVE_AVX512
RECOMPUTED_VJP(tarn_avx512_recomputed_vjp, TARN_ISA_SSE2 | TARN_ISA_AVX2 | TARN_ISA_AVX512)
#endif
#if HAVE_NEON
RECOMPUTED_VJP(tarn_neon_recomputed_vjp, TARN_ISA_NEON)
#endif

#endif
