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
    return taps <= MOST / (p->axis[last].adaptive ? 1 : p->axis[last].dilation);
}

/* ---- The way that takes least, in about nanoseconds for each window and channel ------------- */

/* Before the first window: tables, boxes. */
enum { START_ASKING = 400, START_SCATTER = 800 };

typedef struct winners_cost {
    double taps, cells; /* for each window */
    double picks;       /* windows of a cell, on the axes before the last times those on the last */
    double all;         /* windows of all channels */
    int overlaps;       /* axes on which a cell may have two windows */
} winners_cost;

static winners_cost cost_of(const tarn_problem *p)
{
    winners_cost of = {1, 1, 1, (double)p->planes * (double)p->lanes, 0};
    for (int a = 0; a < p->spatial; a++) {
        const tarn_axis *axis = &p->axis[a];
        double kernel = (double)axis->kernel, stride = (double)axis->stride;
        of.taps *= kernel;
        of.cells *= (double)axis->size / (double)axis->out;
        of.all *= (double)axis->out;
        of.picks *= a + 1 < p->spatial ? kernel / stride : (double)windows_behind(axis) + 1;
        of.overlaps += tarn_windows_overlap(axis);
    }
    return of;
}

/* A pixel is found once for all its channels; windows that share no cell are loaded once. */
static double pixels_cost(const tarn_problem *p, const winners_cost *of, const tarn_row_ops *ops)
{
    double bytes = (double)p->element_bytes[TARN_GX], wide = p->dtype == TARN_F64 ? 2 : 1;
    double vector = (bytes < 4 ? 6 : 4) * wide / (double)ops->vector_bytes;
    if (of->overlaps == 0)
        return 0.1 + of->cells * (1.5 / (double)p->lanes + vector);
    return of->cells * (5 / (double)p->lanes + 0.03 + 0.018 * bytes) +
           (0.04 + 0.02 * wide) * of->taps;
}

/* Of a row with a stride each cell asks, quickly if it has one window, and rows of several axes are
 * put where they belong; else each window is asked by its taps. `windows`: see
 * tarn_windows_asked(). */
static double asked_cost(const tarn_problem *p, const winners_cost *of, double windows,
                         const tarn_row_ops *ops)
{
    double wide = p->dtype == TARN_F64 ? 2 : 1, lane = 4 * wide / (double)ops->vector_bytes;
    if (p->axis[p->spatial - 1].stride == 1)
        return 0.27 + windows * of->taps * (0.037 + 0.22 * lane) + 0.1 * wide * wide * of->cells;
    double pick = (of->picks > 1 ? 0.043 : 0.03) * wide * wide * wide + 0.75 * lane;
    double cell = 0.03 * wide + (p->spatial > 1 ? 0.14 : 0);
    return 0.27 + of->cells * (cell + windows * of->picks * pick);
}

/* Cells are cleared before, byte by byte. Sums of three axes are one more list; those of channels
 * last are of short tiles, whose windows are read twice where they overlap. Numbers of sums wait
 * for each other. */
static double scatter_cost(const tarn_problem *p, const winners_cost *of)
{
    static const double one_channel[] = {1.35, 1.35, 1.9, 3}, channels[] = {1.35, 1.35, 1.6, 3.4};
    double window = (p->lanes == 1 ? one_channel : channels)[of->overlaps < 3 ? of->overlaps : 3];
    if (of->overlaps > 0 && tarn_sums_are_numbered(p))
        window += p->lanes == 1 ? 1.5 : 3.6;
    return window + 0.008 * (double)p->element_bytes[TARN_GX] * of->cells;
}

void tarn_run_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops)
{
    const tarn_row_ops *filled = ops_for(ops, p->lanes * (p->dtype == TARN_F64 ? 8 : 4));
    winners_cost of = cost_of(p);
    double rest = START_SCATTER / of.all + scatter_cost(p, &of),
           windows = tarn_windows_asked(p, ops);
    double pixels = tarn_pixels_can_ask(p, filled) ? pixels_cost(p, &of, filled) : DBL_MAX;
    double asked = windows > 0 ? START_ASKING / of.all + asked_cost(p, &of, windows, ops) : DBL_MAX;
    if (pixels < rest && pixels <= asked)
        tarn_ask_pixels(p, t, begin, end, box, filled);
    else if (asked < rest)
        tarn_ask_windows(p, t, begin, end, box, ops);
    else
        tarn_scatter_gradients(p, t, begin, end, box, ops);
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
