/* The gradient of means where no cell has two windows and a pixel fills a vector: each window's
 * gradient is divided and stored to its cells, row by row of cells. Nothing is kept, nothing is
 * added up. */
#include "boxes.h"
#include "winners.h"

enum {
    MOST_PIECES = 4,    /* windows at either border, and those between */
    LEAST_PIXEL = 32,   /* bytes: shorter ones are faster picked, several at a time */
    LEAST_COPIED = 512, /* of a row: what was just stored is read too early from shorter ones */
};

/* Neighbouring windows of a row: as many cells each, as many cells of none behind it, and taps that
 * count. */
typedef struct apart_piece {
    int64_t window, windows, cells, gap, taps;
} apart_piece;

typedef struct apart_walk {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    int64_t lo, hi, lead; /* the cells of a row, and how many are before the first window */
    apart_piece piece[MOST_PIECES];
    int pieces;
    int64_t solid;       /* bytes of a row without gaps, if copies of it pay; or 0 */
    const char *read;    /* the row of windows of the row of cells that was just written, */
    const char *written; /* and where that is */
} apart_walk;

/* ---- Rows ----------------------------------------------------------------------------------- */

static void clear_pixels(const apart_walk *w, char *to, int64_t n)
{
    int64_t pixel = w->p->element_bytes[TARN_GX],
            step = pixel * w->p->stride[TARN_GX][w->p->spatial - 1];
    pixel *= w->p->lanes;
    if (step == pixel)
        memset(to, 0, (size_t)(n * pixel));
    else
        for (int64_t i = 0; i < n; i++)
            memset(to + i * step, 0, (size_t)pixel);
}

static void add_window(apart_walk *w, apart_piece one)
{
    apart_piece *last = w->piece + w->pieces;
    bool alike = w->pieces > 0 && last[-1].cells == one.cells && last[-1].gap == one.gap &&
                 last[-1].taps == one.taps;
    if (alike)
        last[-1].windows++;
    else
        w->piece[w->pieces++] = one;
}

/* The cells [lo,hi) of a row. */
static void set_row(apart_walk *w, int64_t lo, int64_t hi)
{
    const tarn_axis *axis = &w->p->axis[w->p->spatial - 1];
    apart_piece one = {.windows = 0};
    int64_t end = lo;
    w->lo = lo;
    w->hi = hi;
    w->pieces = 0;
    w->read = NULL;
    for (int64_t o = 0; o < axis->out; o++) {
        tarn_span taps = window_taps(axis, o);
        int64_t from = max_i64(taps.first + taps.lo, lo), to = min_i64(taps.first + taps.hi, hi);
        if (from >= to)
            continue;
        one.gap = from - end;
        if (one.windows > 0)
            add_window(w, one);
        else
            w->lead = one.gap;
        one = (apart_piece){o, 1, to - from, 0, counted_taps(w->p, axis, o)};
        end = to;
    }
    one.gap = hi - end;
    if (one.windows > 0)
        add_window(w, one);
    else
        w->lead = one.gap;
    bool dense = w->p->stride[TARN_GX][w->p->spatial - 1] == w->p->lanes;
    int64_t bytes = (hi - lo) * w->p->lanes * w->p->element_bytes[TARN_GX];
    w->solid = dense && bytes >= LEAST_COPIED ? bytes : 0;
}

/* A row of cells; gy of the windows that read it, and how many of their taps count on the other
 * axes. Rows of the same windows are the same. */
static void write_row(apart_walk *w, char *gx, const char *gy, int64_t outer)
{
    const tarn_problem *p = w->p;
    if (w->solid > 0 && w->read == gy) {
        w->ops->copy(gx, w->written, w->solid);
        return;
    }
    w->read = gy;
    w->written = gx;
    int last = p->spatial - 1;
    int64_t to_step = p->stride[TARN_GX][last], from_step = p->stride[TARN_GY][last];
    int64_t bytes = p->element_bytes[TARN_GX];
    clear_pixels(w, gx, w->lead);
    gx += w->lead * to_step * bytes;
    for (const apart_piece *one = w->piece; one < w->piece + w->pieces; one++) {
        int64_t divisor = p->divisor > 0 ? p->divisor : outer * one->taps;
        w->ops->spread[p->dtype](gx, to_step, gy + one->window * from_step * bytes, from_step,
                                 divisor, p->lanes, one->cells, one->gap, one->windows);
        gx += one->windows * (one->cells + one->gap) * to_step * bytes;
    }
}

/* ---- Planes --------------------------------------------------------------------------------- */

/* The row of cells at `at`. */
static void run_row(apart_walk *w, const tarn_slab *slab, const int64_t *at)
{
    const tarn_problem *p = w->p;
    int64_t bytes = p->element_bytes[TARN_GX], outer = 1, gx = offset_of(p, TARN_GX, at), gy = 0;
    bool read = true;
    for (int a = 0; a < p->spatial - 1 && read; a++) {
        tarn_span windows = cell_windows(&p->axis[a], at[a]);
        int64_t o = span_at(&windows, windows.lo);
        read = windows.lo < windows.hi;
        gy += o * p->stride[TARN_GY][a];
        outer *= read ? counted_taps(p, &p->axis[a], o) : 1;
    }
    if (read)
        write_row(w, slab->base[TARN_GX] + gx * bytes, slab->base[TARN_GY] + gy * bytes, outer);
    else
        clear_pixels(w, slab->base[TARN_GX] + gx * bytes, w->hi - w->lo);
}

/* Of a pixel, in f32 or f64. */
static int64_t sum_bytes(const tarn_problem *p)
{
    return p->lanes * max_i64(p->element_bytes[TARN_GX], (int64_t)sizeof(float));
}

bool tarn_means_are_apart(const tarn_problem *p)
{
    bool apart = p->lanes * p->element_bytes[TARN_GX] >= LEAST_PIXEL;
    for (int a = 0; a < p->spatial; a++)
        apart &=
            !tarn_windows_overlap(&p->axis[a]) && (p->axis[a].adaptive || p->axis[a].dilation == 1);
    return apart;
}

void tarn_spread_means(const tarn_problem *p, const tarn_tensors *tensors, int64_t begin,
                       int64_t end, const tarn_row_ops *ops)
{
    apart_walk w = {.p = p, .ops = ops_for(ops, sum_bytes(p)), .lo = -1};
    int last = p->spatial - 1;
    tarn_slab slab;
    while (next_slab(p, tensors, p->axis[0].size, &begin, end, &slab)) {
        const box cells = box_of_slab(p, &slab, true);
        int64_t at[TARN_MAX_SPATIAL], lo = cells.from[last], hi = lo + cells.count[last];
        if (lo != w.lo || hi != w.hi)
            set_row(&w, lo, hi);
        memcpy(at, cells.from, sizeof at);
        do
            run_row(&w, &slab, at);
        while (next_place(last, &cells, at));
    }
}
