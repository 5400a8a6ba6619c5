/* The engine: which way is taken. See winners.h. */
#include "winners.h"

#include <float.h>

/* Numbers of taps and places in scratch have 32 bits. */
static bool numbers_fit(const tarn_problem *p)
{
    enum { MOST = 1 << 30 };
    int last = p->spatial - 1;
    int64_t taps = 1;
    for (int a = 0; a <= last; a++) {
        if (extent_of(&p->axis[a]) > MOST || p->axis[a].size > MOST ||
            p->axis[a].kernel > MOST / taps)
            return false;
        taps *= p->axis[a].kernel;
    }
    return p->element_bytes[OPERAND_SAVED] < 8 &&
           taps <= MOST / (p->axis[last].adaptive ? 1 : p->axis[last].dilation);
}

/* ---- The way that takes least, in about nanoseconds for each window and channel ------------- */

typedef struct winners_cost {
    double taps, cells; /* for each window */
    int overlaps;       /* axes on which a cell may have two windows */
} winners_cost;

static winners_cost cost_of(const tarn_problem *p)
{
    winners_cost of = {1, 1, 0};
    for (int a = 0; a < p->spatial; a++) {
        of.taps *= (double)p->axis[a].kernel;
        of.cells *= (double)p->axis[a].size / (double)p->axis[a].out;
        of.overlaps += tarn_windows_overlap(&p->axis[a]);
    }
    return of;
}

/* Lanes of a vector of sums. */
static double lanes_of(const tarn_problem *p, const tarn_row_ops *ops)
{
    return (double)ops->vector_bytes / (p->dtype == TARN_F64 ? 8 : 4);
}

/* A pixel is found once for all its channels; each of its windows takes a vector operation. */
static double pixels_cost(const tarn_problem *p, const winners_cost *of, const tarn_row_ops *ops)
{
    return of->cells * (12 / (double)p->lanes + 0.15) + 0.85 * of->taps / lanes_of(p, ops);
}

/* Boxes have few of many channels. Cells of several phases along the row are joined, in vectors
 * only if there are two of f32. */
static double asked_cost(const tarn_problem *p, const winners_cost *of, const tarn_row_ops *ops)
{
    const tarn_axis *row = &p->axis[p->spatial - 1];
    int64_t stride = row->out > 1 ? row->stride : row->size;
    double window = p->lanes < 24 ? 0.3 : 1.6, margins = p->spatial < 3 ? 1 : 2;
    double joining = stride == 1 ? 0.1 : p->lanes > 1 ? 0.6 : stride == 2 ? 0.25 : 1;
    if (stride > 1 && p->dtype == TARN_F64)
        joining *= 3;
    return window + 0.8 * of->taps / lanes_of(p, ops) * margins + joining * of->cells;
}

/* Cells are cleared before, byte by byte. Interleaved channels make tiles short, whose windows are
 * read twice where they overlap. */
static double scatter_cost(const tarn_problem *p, const winners_cost *of)
{
    static const double one_channel[] = {0.9, 1.8, 2, 3}, channels[] = {0.9, 3.5, 3.2, 7};
    const double *windows = p->lanes == 1 ? one_channel : channels;
    double line = p->lanes > 1 && p->spatial == 1 && of->overlaps == 0 ? 1.5 : 0;
    return windows[of->overlaps < 3 ? of->overlaps : 3] + line +
           0.05 * (double)p->element_bytes[TARN_GX] * of->cells;
}

/* Vectors of 64 bytes gain only where they are loaded as they lie, and not from scratch that was
 * just stored in other pieces. */
enum { SCRATCH_VECTOR = 32 };

void tarn_run_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops)
{
    const tarn_row_ops *narrow = ops_for(ops, SCRATCH_VECTOR);
    winners_cost of = cost_of(p);
    double rest = scatter_cost(p, &of);
    double pixels = tarn_pixels_can_ask(p, ops) ? pixels_cost(p, &of, ops) : DBL_MAX;
    double asked = tarn_cells_can_ask(p) ? asked_cost(p, &of, narrow) : DBL_MAX;
    if (pixels < rest && pixels <= asked)
        tarn_ask_pixels(p, t, begin, end, box, ops);
    else if (asked < rest)
        tarn_ask_windows(p, t, begin, end, box, narrow);
    else
        tarn_scatter_gradients(p, t, begin, end, box, narrow);
}

void tarn_engine_backward_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                                  int64_t end, const tarn_row_ops *ops)
{
    if (!numbers_fit(p) || !tarn_can_scatter(p, ops))
        tarn_spec(p, t, begin, end);
    else if (t->base[OPERAND_SAVED])
        tarn_run_winners(p, t, begin, end, NULL, ops);
    else
        tarn_find_winners(p, t, begin, end, ops);
}
