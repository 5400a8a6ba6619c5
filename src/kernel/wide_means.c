/* Means of 64-bit integers. Their sums need more than a double can hold, but seldom do: the cells
 * of some windows are looked through, and where all are small the forward engine sums them in f64,
 * as row_types.h allows. The specification does the others.
 */
#include "boxes.h"
#include "engines.h"
#include "row_types.h"
#include "winners.h"

/* Cells are small if `bias` added to them sets none of the bits `large`. */
typedef struct small_rule {
    uint64_t bias, large;
} small_rule;

/* The greatest power of two of which so many sum to 2^51 at most: below that, means_f64 rounds. */
static uint64_t most_of_small(int64_t taps)
{
    uint64_t most = UINT64_C(1) << 51;
    while (most > (UINT64_C(1) << 51) / (uint64_t)taps)
        most /= 2;
    return most;
}

/* -most to most - 1, or 0 to most - 1. */
static small_rule rule_of(const tarn_problem *p)
{
    uint64_t most = most_of_small(taps_of(p));
    return p->dtype == TARN_I64 ? (small_rule){most, ~(2 * most - 1)}
                                : (small_rule){0, ~(most - 1)};
}

static bool cells_are_small(const uint64_t *x, int64_t n, small_rule rule)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++)
        bits |= x[i] + rule.bias;
    return (bits & rule.large) == 0;
}

/* Whether all cells are small that the windows of a slab read. */
static bool slab_is_small(const tarn_problem *p, const tarn_slab *slab, small_rule rule)
{
    const int last = p->spatial - 1;
    const int64_t step = p->stride[TARN_X][last];
    int64_t cell[TARN_MAX_SPATIAL] = {0}, runs = p->axis[last].size, n = p->lanes;
    box cells = box_of_slab(p, slab, true);
    cells.count[0] =
        tarn_axis_of_windows(&p->axis[0], (range){slab->lo, slab->hi}, &cells.from[0]).size;
    cell[0] = cells.from[0];
    if (last == 0)
        runs = cells.count[0];
    if (step == p->lanes) {
        n *= runs;
        runs = 1;
    }
    bool small = true;
    do {
        const uint64_t *x =
            (const uint64_t *)(void *)slab->base[TARN_X] + offset_of(p, TARN_X, cell);
        for (int64_t k = 0; k < runs && small; k++)
            small = cells_are_small(x + k * step, n, rule);
    } while (small && next_place(last, &cells, cell));
    return small;
}

/* Units whose cells stay in a cache. */
static int64_t units_together(const tarn_problem *p)
{
    enum { SOME_BYTES = 128 << 10 };
    double bytes = (double)p->lanes * sizeof(int64_t);
    for (int a = 0; a < p->spatial; a++)
        bytes *= (double)p->axis[a].size / (a == 0 ? (double)p->axis[0].out : 1);
    return (int64_t)(SOME_BYTES / bytes) + 1;
}

void tarn_engine_wide_means(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const tarn_row_ops *ops)
{
    const small_rule rule = rule_of(p);
    const int64_t some = units_together(p);
    tarn_slab slab;
    for (int64_t first = begin; first < end; first = begin) {
        const int64_t stop = min_i64(end, begin + some);
        bool small = true;
        while (next_slab(p, t, p->axis[0].out, &begin, stop, &slab))
            small = small && slab_is_small(p, &slab, rule);
        if (small)
            tarn_engine_forward(p, t, first, stop, ops);
        else
            tarn_spec(p, t, first, stop);
    }
}
