/* Averages of integers of up to 32 bits that halve the last axis, and one or two others or none:
 * what pyramids of images are made of. Sums fit integers twice as wide, and are shifted. */
#include "boxes.h"
#include "engines.h"

static int64_t step_of(const tarn_problem *p, int operand, int axis)
{
    return p->stride[operand][axis] * p->element_bytes[operand];
}

/* The rows of windows, along the last axis but one, from place o on. */
static void halve_rows(const tarn_problem *p, char *const *base, const int64_t *o, int64_t rows,
                       const tarn_row_ops *ops)
{
    const int last = p->spatial - 1;
    const int64_t bytes = p->element_bytes[TARN_X], n = p->axis[last].out;
    const int width = __builtin_ctzll((unsigned long long)bytes);
    const bool is_signed = p->dtype != TARN_U8 && p->dtype != TARN_U16 && p->dtype != TARN_U32;
    const char *from[MOST_HALVED] = {base[TARN_X]};
    char *to = base[TARN_Y];
    int k = 1;
    for (int a = 0; a < last; a++) {
        from[0] += o[a] * p->axis[a].stride * step_of(p, TARN_X, a);
        to += o[a] * step_of(p, TARN_Y, a);
    }
    for (int a = 0; a < last; a++)
        if (p->axis[a].kernel == 2) {
            for (int j = 0; j < k; j++)
                from[k + j] = from[j] + p->axis[a].dilation * step_of(p, TARN_X, a);
            k *= 2;
        }
    ops_for(ops, n * bytes)
        ->halves[width](to, step_of(p, TARN_Y, last - 1), from,
                        p->axis[last - 1].stride * step_of(p, TARN_X, last - 1), k, is_signed, n,
                        rows);
}

void tarn_engine_halves(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                        int64_t end, const tarn_row_ops *ops)
{
    tarn_slab slab;
    const int row = p->spatial - 2;
    while (next_slab(p, tensors, p->axis[0].out, &begin, end, &slab)) {
        const box windows = box_of_slab(p, &slab, false);
        int64_t o[TARN_MAX_SPATIAL];
        memcpy(o, windows.from, sizeof o);
        do
            halve_rows(p, slab.base, o, windows.count[row], ops);
        while (next_place(row, &windows, o));
    }
}
