/* The engine: which planes are taken together, and how. See winners.h. */
#include "winners.h"

/* ---- What fits ------------------------------------------------------------------------------ */

/* The engine: which planes are taken together, and how. See winners.h. */
#include "winners.h"

/* ---- What fits ------------------------------------------------------------------------------ */

/* Numbers of taps and places in scratch have 32 bits. To tell rows of taps apart, those of a plane
 * are divided in f32. */
static bool numbers_fit(const tarn_problem *p)
{
    enum { MOST = 1 << 30, MOST_DIVIDED = 1 << 23 };
    int last = p->spatial - 1;
    int64_t taps = 1, rows = last > 0 ? p->axis[last - 1].kernel : 1;
    for (int a = 0; a <= last; a++) {
        if (extent_of(&p->axis[a]) > MOST || p->axis[a].size > MOST ||
            p->axis[a].kernel > MOST / taps)
            return false;
        taps *= p->axis[a].kernel;
    }
    return p->element_bytes[OPERAND_SAVED] < 8 &&
           taps <= MOST / (p->axis[last].adaptive ? 1 : p->axis[last].dilation) &&
           (rows == 1 || rows * p->axis[last].kernel <= MOST_DIVIDED);
}

/* ---- Lanes ---------------------------------------------------------------------------------- */

static void set_lane(winners_lane *lane, const winners_job *j, const tarn_slab *slab, int64_t unit)
{
    *lane = (winners_lane){.gy = slab->base[TARN_GY],
                           .saved = slab->base[OPERAND_SAVED],
                           .gx = slab->base[TARN_GX],
                           .first_unit = unit / j->p->axis[0].size * j->p->axis[0].size};
}

/* The lanes that are left take parts of the planes: bands, which are equal but for their place if
 * they are a whole number of strides apart. */
static void use_bands(winners_job *j)
{
    const tarn_axis *axis = &j->p->axis[0];
    int64_t cells = length(j->box[0]), bands = j->lanes / j->used;
    if (j->pixels || axis->adaptive || bands < 2)
        return;
    int64_t each = ceil_div(ceil_div(cells, bands), axis->stride) * axis->stride;
    bands = min_i64(bands, ceil_div(cells, each));
    if (bands < 2 || each < extent_of(axis))
        return;
    int planes = j->used;
    for (int64_t band = 1; band < bands; band++)
        for (int k = 0; k < planes; k++) {
            winners_lane *lane = &j->lane[j->used++];
            *lane = j->lane[k];
            lane->cells = band * each;
            lane->windows = lane->cells / axis->stride;
        }
    j->bands = true;
    j->box[0].hi = j->box[0].lo + each;
    j->windows.lo = -(bands - 1) * each / axis->stride;
}

/* ---- The engine ----------------------------------------------------------------------------- */

static void run_lanes(winners_job *j)
{
    j->bands = false;
    j->windows = (range){0, j->p->axis[0].out};
    use_bands(j);
    tarn_add_runs(j);
}

static void run_pixels(winners_job *j, int64_t begin, int64_t end)
{
    tarn_slab slab;
    int64_t unit = begin,
            bytes[3] = {j->p->element_bytes[TARN_GY], j->p->element_bytes[OPERAND_SAVED],
                        j->p->element_bytes[TARN_GX]};
    while (next_slab(j->p, j->tensors, j->p->axis[0].size, &begin, end, &slab)) {
        j->box[0] = (range){slab.lo, slab.hi};
        j->end = slab.hi;
        j->used = 1;
        for (int64_t c = 0; c < j->p->lanes; c += j->lanes) {
            int64_t first = min_i64(c, j->p->lanes - j->lanes); /* some twice */
            set_lane(&j->lane[0], j, &slab, unit);
            j->lane[0].gy += first * bytes[0];
            j->lane[0].saved += first * bytes[1];
            j->lane[0].gx += first * bytes[2];
            run_lanes(j);
        }
        unit = begin;
    }
}

/* Whole planes, as many as there are lanes; or a part of one. */
static void run_turned(winners_job *j, int64_t begin, int64_t end)
{
    tarn_slab slab = {0};
    while (begin < end) {
        int64_t unit, size = j->p->axis[0].size;
        j->used = 0;
        do {
            unit = begin;
            next_slab(j->p, j->tensors, size, &begin, end, &slab);
            set_lane(&j->lane[j->used++], j, &slab, unit);
        } while (slab.lo == 0 && slab.hi == size && j->used < j->lanes && end - begin >= size);
        j->box[0] = (range){slab.lo, slab.hi};
        j->end = slab.hi;
        run_lanes(j);
    }
}

__attribute__((noinline)) static void run_in_lanes(const tarn_problem *p, const tarn_tensors *t,
                                                   int64_t begin, int64_t end, const range *box,
                                                   const tarn_row_ops *ops)
{
    enum { ALIGNMENT = 64 };
    _Alignas(ALIGNMENT) char scratch[SCRATCH_BYTES];
    int64_t sum_bytes = p->dtype == TARN_F64 ? 8 : 4, vector = ops->vector_bytes / sum_bytes;
    winners_job j = {.p = p,
                     .tensors = t,
                     .ops = ops,
                     .scratch = scratch,
                     .last = p->spatial - 1,
                     .wide = p->dtype == TARN_F64,
                     .pixels = p->lanes >= vector,
                     .channels = p->lanes >= vector ? 1 : p->lanes,
                     .lanes = vector,
                     .code_lanes = ops->vector_bytes / (int)sizeof(int32_t),
                     .cell_bytes = ops->vector_bytes};
    for (int a = 0; a < p->spatial; a++)
        j.box[a] = box ? box[a] : (range){0, p->axis[a].size};
    (j.pixels ? run_pixels : run_turned)(&j, begin, end);
}

/* Asking then costs less than clearing all cells and looking for those that won. */
static bool has_few_taps(const tarn_problem *p)
{
    enum { FEW = 9 };
    int64_t taps = 1;
    for (int a = 0; a < p->spatial; a++)
        taps = min_i64(taps * min_i64(p->axis[a].kernel, FEW + 1), FEW + 1);
    return taps <= FEW;
}

/* Runs need lanes that are alike: many channels, or planes of sliding windows that are turned. Of
 * these, rows must be visited once; with more than two axes they are
 * for each tap on the outer ones. */
static bool has_runs(const tarn_problem *p, const tarn_row_ops *ops)
{
    bool slides = p->spatial <= 2;
    for (int a = 0; a < p->spatial; a++)
        slides &= !p->axis[a].adaptive;
    return slides || p->lanes * (p->dtype == TARN_F64 ? 8 : 4) >= ops->vector_bytes;
}

void tarn_run_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const range *box, const tarn_row_ops *ops)
{
    bool apart = tarn_windows_lie_apart(p), can_ask = tarn_pixels_can_ask(p, ops);
    if (apart && !(can_ask && has_few_taps(p)) && !tarn_borders_are_many(p))
        tarn_put_gradients(p, t, begin, end, box, ops);
    else if (!apart && tarn_rows_fit(p, ops))
        tarn_sum_rows(p, t, begin, end, box, ops);
    else if (can_ask)
        tarn_ask_pixels(p, t, begin, end, box, ops);
    else if (!apart && has_runs(p, ops))
        run_in_lanes(p, t, begin, end, box, ops);
    else
        tarn_scatter_gradients(p, t, begin, end, box, ops);
}

void tarn_engine_backward_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                                  int64_t end, const tarn_row_ops *ops)
{
    if (!numbers_fit(p))
        tarn_spec(p, t, begin, end);
    else if (t->base[OPERAND_SAVED])
        tarn_run_winners(p, t, begin, end, NULL, ops);
    else
        tarn_find_winners(p, t, begin, end, ops);
}
