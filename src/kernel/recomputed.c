/* VJP of max and min from x, rule `first`: the forward kernel finds the winners of the windows that read a box of
 * cells, which stay in a buffer, and the VJP from saved winners takes them from there. */
#include "recomputed.h"

#include "../dispatch.h"

#if HAVE_X86_VECTORS || HAVE_NEON

/* A box as two problems, and the kernels that solve them. */
typedef struct recomputation {
    uint32_t isa; /* the kernels that may be used */
    tarn_problem forward, backward;
    const tarn_kernel_row *find, *use;
} recomputation;

/* Makes the box's axes and lanes those of the two problems. Kernels are chosen if these are not as they were. */
static void set_box(recomputation *r, const tarn_axis *forward, const tarn_axis *backward, int64_t lanes)
{
    size_t bytes = (size_t)r->forward.spatial * sizeof(tarn_axis);
    if (r->find && r->forward.lanes == lanes && memcmp(r->forward.axis, forward, bytes) == 0 &&
        memcmp(r->backward.axis, backward, bytes) == 0)
        return;
    memcpy(r->forward.axis, forward, bytes);
    memcpy(r->backward.axis, backward, bytes);
    set_box_lanes(&r->forward, lanes);
    set_box_lanes(&r->backward, lanes);
    r->find = tarn_choose_kernel(&r->forward, TARN_FORWARD_SAVED, r->isa);
    r->use = tarn_choose_kernel(&r->backward, TARN_VJP_SAVED, r->isa);
}

/* The cells [lo,hi), and `lanes` planes from the given base on. */
static void recompute(recomputation *r, const tarn_problem *p, char *const *base, const int64_t *lo, const int64_t *hi,
                      int64_t lanes)
{
    _Alignas(64) char winners[RECOMPUTED_BYTES];
    tarn_axis forward[TARN_MAX_SPATIAL], backward[TARN_MAX_SPATIAL];
    int64_t cell[TARN_MAX_SPATIAL], window[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++) {
        forward[a] = axis_of_winners(&p->axis[a], lo[a], hi[a], &cell[a]);
        backward[a] = axis_of_gradients(&p->axis[a], lo[a], hi[a], &window[a]);
    }
    set_box(r, forward, backward, lanes);
    tarn_tensors find = {.base = {[OPERAND_SAVED] = winners}}, use = find;
    find.base[TARN_X] = base[TARN_X] + offset_of(p, TARN_X, cell) * p->element_bytes[TARN_X];
    use.base[TARN_GY] = base[TARN_GY] + offset_of(p, TARN_GY, window) * p->element_bytes[TARN_GY];
    use.base[TARN_GX] = base[TARN_GX] + offset_of(p, TARN_GX, lo) * p->element_bytes[TARN_GX];
    r->find->run(&r->forward, &find, 0, forward[0].out);
    r->use->run(&r->backward, &use, 0, backward[0].size);
}

/* Moves to the next box of the slab; false at the end. */
static bool next_box(const tarn_problem *p, const tarn_box *box, const tarn_slab *slab, int64_t *lo, int64_t *hi)
{
    for (int a = p->spatial - 1; a >= 0; a--) {
        int64_t end = a == 0 ? slab->hi : p->axis[a].size;
        bool more = hi[a] < end;
        lo[a] = more ? hi[a] : a == 0 ? slab->lo : 0;
        hi[a] = min_i64(lo[a] + box->cells[a], end);
        if (more)
            return true;
    }
    return false;
}

static void recompute_slab(recomputation *r, const tarn_problem *p, const tarn_box *box, const tarn_slab *slab)
{
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL];
    for (int64_t lane = 0; lane < p->lanes; lane += box->lanes) {
        char *base[OPERANDS];
        for (int k = 0; k < OPERANDS; k++)
            base[k] = slab->base[k] ? slab->base[k] + lane * p->element_bytes[k] : NULL;
        for (int a = 0; a < p->spatial; a++) /* at the end: the next one is the first */
            hi[a] = a == 0 ? slab->hi : p->axis[a].size;
        next_box(p, box, slab, lo, hi);
        do
            recompute(r, p, base, lo, hi, min_i64(box->lanes, p->lanes - lane));
        while (next_box(p, box, slab, lo, hi));
    }
}

static void recomputed_vjp(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                           uint32_t isa)
{
    tarn_slab slab;
    tarn_box box = box_of(p);
    recomputation r = {.isa = isa, .forward = *p, .backward = *p};
    while (next_slab(p, t, p->axis[0].size, &begin, end, &slab))
        recompute_slab(&r, p, &box, &slab);
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
