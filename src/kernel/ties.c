/* Max and min where equal taps share [M6]: tangents and gradients. Values are the forward engine's.
 *
 * Windows are taken in runs: neighbours in a row or, where each window covers its plane, those of
 * neighbouring planes. First the tops of a run are found, and how many taps reach them if that
 * matters; then the taps that reach them give, or are given to. Taps are visited row by row of
 * cells: where windows slide, one tap of all windows of the run at a time, otherwise all taps of a
 * window.
 */
#include "../dispatch.h"
#include "../scalar.h"
#include "engines.h"
#include "fold.h"

#include <math.h>

enum {
    RUN = 64,            /* windows, times lanes, of a run in a row */
    LEAST_RUN = 16,      /* of one that is remembered beside many */
    TIED_LANES = 16,     /* interleaved planes, at most */
    SUMMED_PLANES = 256, /* of one of planes, or entries of a window, that is summed up */
    GIVEN_PLANES = 512,
    SLOTS = 256 /* runs that are remembered, at most */
};

/* A run of windows, all lanes of each side by side, with tops and shares in the type of sums. */
typedef struct {
    int64_t o[TARN_MAX_SPATIAL], n;
    void *top, *share;
    int64_t *count; /* of taps that reach the top; 1 if that does not matter */
} window_run;

typedef struct {
    const tarn_problem *p;
    const tarn_tie_ops *ops;
    int64_t bytes;                  /* of a sum: f32 or f64 */
    char *base[OPERANDS];           /* of the plane in hand, or the first of them */
    int64_t lanes;                  /* interleaved planes that go together */
    bool by_taps;                   /* all windows of a run at a time */
    bool stacked;                   /* runs are those of planes, */
    int64_t plane_step[OPERANDS];   /* so many elements apart */
    int64_t run;                    /* windows of a run, times their lanes, at most */
    int64_t entry, entries;         /* of the last axis, in hand */
    int64_t slots;                  /* for tops and shares of runs, which are in the arena */
    int64_t known[SLOTS];           /* the number of the run in a slot; -1: none */
    int64_t near[TARN_MAX_SPATIAL]; /* windows that read a cell; last axis: runs above a strip */
    int64_t strip;                  /* columns that are done together, row by row */
    arena room;
} pass;

static void run_planes(pass *s, const tarn_tensors *t, int64_t begin, int64_t end);
static void run_windows(pass *s, const tarn_tensors *t, int64_t begin, int64_t end);

static void run_derivatives(const tarn_problem *p, const tarn_tensors *t, int64_t begin,
                            int64_t end, const tarn_tie_ops *ops);

void tarn_engine_ties(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const tarn_tie_ops *ops)
{
    const tarn_tensors values = {.base = {[TARN_X] = t->base[TARN_X], [TARN_Y] = t->base[TARN_Y]}};
    if (t->base[TARN_Y] && codes_fit(p))
        tarn_engine_forward(p, &values, begin, end, ops->rows);
    else if (t->base[TARN_Y])
        tarn_spec(p, &values, begin, end);
    run_derivatives(p, t, begin, end, ops);
}

/* All but values. */
__attribute__((noinline)) static void run_derivatives(const tarn_problem *p, const tarn_tensors *t,
                                                      int64_t begin, int64_t end,
                                                      const tarn_tie_ops *ops)
{
    const tarn_axis *last = &p->axis[p->spatial - 1];
    pass s;
    s.p = p;
    s.ops = ops;
    s.bytes = p->dtype == TARN_F64 ? sizeof(double) : sizeof(float);
    s.run = RUN;
    s.room.used = 0;
    s.stacked = true;
    for (int a = 0; a < p->spatial; a++)
        s.stacked &= is_global(&p->axis[a]);
    s.by_taps = !s.stacked && !last->adaptive && last->out >= last->kernel;
    for (int k = 0; k < OPERANDS; k++)
        s.plane_step[k] = p->leading > 0 ? p->lead_stride[k][p->leading - 1] : 0;
    if (s.stacked)
        run_planes(&s, t, begin, end);
    else
        run_windows(&s, t, begin, end);
}

/* ---- Tensors and scratch -------------------------------------------------------------------- */

static bool is_single(const pass *s)
{
    return s->bytes == sizeof(float);
}

static char *place_of(const pass *s, int operand, const int64_t *place)
{
    return s->base[operand] + offset_of(s->p, operand, place) * s->p->element_bytes[operand];
}

/* Bytes from a cell of a row to the next. */
static int64_t column_of(const pass *s, int operand)
{
    return s->p->stride[operand][s->p->spatial - 1] * s->p->element_bytes[operand];
}

/* Elements from a window of a run to the next, of a tensor of windows. */
static int64_t window_step(const pass *s, int operand)
{
    return s->stacked ? s->plane_step[operand] : s->p->stride[operand][s->p->spatial - 1];
}

/* Numbers of the windows of a run. */
static void read_windows(const pass *s, int operand, const window_run *w, void *to)
{
    s->ops->rows->read_gradients[s->p->dtype](to, s->lanes, place_of(s, operand, w->o),
                                              window_step(s, operand), s->lanes, w->n);
}

static void add_rows(const pass *s, char *to, const char *from, int64_t n)
{
    s->ops->rows->add_sums[!is_single(s)](to, from, n);
}

/* Sets the pass to interleaved planes of the slab, from `lane` on. */
static void set_planes(pass *s, const tarn_slab *slab, int64_t lane)
{
    memset(s->known, -1, sizeof s->known);
    for (int k = 0; k < OPERANDS; k++)
        s->base[k] = slab->base[k] ? slab->base[k] + lane * s->p->element_bytes[k] : NULL;
}

static window_run new_run(pass *s)
{
    const int64_t most = s->run;
    void *top = take(&s->room, most, s->bytes), *share = take(&s->room, most, s->bytes);
    return (window_run){.top = top, .share = share, .count = take(&s->room, most, 8)};
}

/* ---- Tops ----------------------------------------------------------------------------------- */

enum { FIND, COUNT, GIVE };

/* The worst of all tops, for what is better to replace. */
static void start_tops(const pass *s, window_run *w)
{
    const double worst = s->p->op == TARN_MIN ? INFINITY : -INFINITY;
    for (int64_t k = 0; k < w->n * s->lanes; k++)
        if (is_single(s))
            ((float *)w->top)[k] = (float)worst;
        else
            ((double *)w->top)[k] = worst;
}

/* Divides by how many taps there are; where there is none, nothing takes the quotient. */
static void share_out(const pass *s, void *numbers, const window_run *w)
{
    for (int64_t k = 0; k < w->n * s->lanes; k++)
        if (is_single(s))
            ((float *)numbers)[k] /= (float)max_i64(w->count[k], 1);
        else
            ((double *)numbers)[k] /= (double)max_i64(w->count[k], 1);
}

/* Taps in a row of cells: `taps` of each of `windows` windows from `first` on, `step` columns
 * apart, the first one at `place`. Windows that are side by side as their cells are, a tap each,
 * are lanes. */
static tarn_tied_rows taps_at(const pass *s, const window_run *w, const int64_t *place,
                              int64_t first, int64_t windows, int64_t taps, int64_t step)
{
    const int64_t stride = s->p->axis[s->p->spatial - 1].stride, column = column_of(s, TARN_X),
                  dx = s->base[TARN_DX] ? column_of(s, TARN_DX) : column,
                  pixel = s->lanes * s->p->element_bytes[TARN_X];
    const bool joined = s->by_taps && stride == 1 && column == pixel && dx == pixel;
    return (tarn_tied_rows){
        .x = place_of(s, TARN_X, place),
        .step = taps > 1 ? step * column : 0,
        .pixels = taps,
        .lanes = joined ? s->lanes * windows : s->lanes,
        .rows = joined ? 1 : windows,
        .row_step = s->stacked    ? s->plane_step[TARN_X] * s->p->element_bytes[TARN_X]
                    : windows > 1 ? stride * column
                                  : 0,
        .tops = (const char *)w->top + first * s->lanes * s->bytes,
    };
}

/* Finds the best of such taps, counts those that reach the tops, or adds what they get to sums. */
static void visit_taps(pass *s, window_run *w, int what, const int64_t *place, int64_t first,
                       int64_t windows, int64_t taps, int64_t step, char *sums)
{
    if (windows <= 0 || taps <= 0)
        return;
    const tarn_tied_rows rows = taps_at(s, w, place, first, windows, taps, step);
    const int64_t at = first * s->lanes, stride = s->p->axis[s->p->spatial - 1].stride;
    if (what == FIND)
        s->ops->tops[s->p->dtype]((char *)w->top + at * s->bytes, &rows, s->p->op == TARN_MIN);
    else if (what == COUNT)
        s->ops->counts[s->p->dtype](w->count + at, &rows);
    else
        s->ops->add[s->p->dtype](sums, taps > 1 ? step * s->lanes : 0,
                                 rows.rows > 1 ? stride * s->lanes : 0, &rows,
                                 (char *)w->share + at * s->bytes);
}

/* The taps of a run in the columns [from,end) of the row of cells at `place`; of each cell, the
 * first window comes first. `sums` are those of the columns. */
static void visit_row(pass *s, window_run *w, int what, int64_t *place, int64_t from, int64_t end,
                      char *sums)
{
    const int inner = s->p->spatial - 1;
    const tarn_axis *axis = &s->p->axis[inner];
    const int64_t bytes = s->lanes * s->bytes;
    const int64_t origin = w->o[inner] * axis->stride - axis->lo, e = axis->dilation;
    if (s->by_taps)
        for (int64_t j = min_i64(floor_div(end - 1 - origin, e), axis->kernel - 1),
                     least = ceil_div(from - origin - (w->n - 1) * axis->stride, e);
             j >= max_i64(least, 0); j--) {
            const int64_t start = origin + j * e;
            const int64_t first = max_i64(ceil_div(from - start, axis->stride), 0);
            const int64_t n = min_i64(floor_div(end - 1 - start, axis->stride) + 1, w->n) - first;
            if (n <= 0)
                continue;
            place[inner] = start + first * axis->stride;
            visit_taps(s, w, what, place, first, n, 1, 1, sums + (place[inner] - from) * bytes);
        }
    else
        for (int64_t o = 0, together = s->stacked ? w->n : 1; o < w->n; o += together) {
            const tarn_span taps = window_taps(axis, w->o[inner] + o);
            const int64_t lo = max_i64(ceil_div(from - taps.first, taps.step), taps.lo);
            const int64_t n = min_i64(ceil_div(end - taps.first, taps.step), taps.hi) - lo;
            if (n <= 0) /* then the place may be huge */
                continue;
            place[inner] = span_at(&taps, lo);
            visit_taps(s, w, what, place, o, together, n, taps.step,
                       sums + (place[inner] - from) * bytes);
        }
}

/* All taps of a run. */
static void visit_all(pass *s, window_run *w, int what)
{
    const int inner = s->p->spatial - 1;
    int64_t place[TARN_MAX_SPATIAL], tap[TARN_MAX_SPATIAL];
    box rows; /* of taps */
    for (int a = 0; a < inner; a++) {
        const tarn_span taps = window_taps(&s->p->axis[a], w->o[a]);
        rows.from[a] = tap[a] = taps.lo;
        rows.count[a] = taps.hi - taps.lo;
        if (rows.count[a] <= 0)
            return;
    }
    do {
        for (int a = 0; a < inner; a++) {
            const tarn_span taps = window_taps(&s->p->axis[a], w->o[a]);
            place[a] = span_at(&taps, tap[a]);
        }
        visit_row(s, w, what, place, 0, s->p->axis[inner].size, w->share);
    } while (next_place(inner, &rows, tap));
}

/* Finds the tops of a run's windows, where they are not written yet, and how many taps reach
 * them. */
static void find_run(pass *s, window_run *w)
{
    const bool split = s->p->ties == TARN_TIES_SPLIT;
    if (s->base[TARN_Y]) {
        read_windows(s, TARN_Y, w, w->top);
    } else {
        start_tops(s, w);
        visit_all(s, w, FIND);
    }
    for (int64_t k = 0; k < w->n * s->lanes; k++)
        w->count[k] = split ? 0 : 1;
    if (split)
        visit_all(s, w, COUNT);
}

/* ... and what each of these gets. */
static void find_shares(pass *s, window_run *w)
{
    find_run(s, w);
    read_windows(s, TARN_GY, w, w->share);
    share_out(s, w->share, w);
}

/* ---- Tangents ------------------------------------------------------------------------------- */

/* Masked tangents of taps [entry,entry+n) on the last axis, in the row of cells at `place`. */
static void load_tangents(pass *s, const window_run *w, int64_t *place, int64_t entry, int64_t n,
                          char *out)
{
    const int inner = s->p->spatial - 1;
    const tarn_axis *axis = &s->p->axis[inner];
    const tarn_span taps = window_taps(axis, w->o[inner]);
    const int64_t bytes = s->lanes * s->bytes, column = column_of(s, TARN_DX);
    int64_t first = 0, windows = w->n, lo = entry, row_step = 0;
    if (s->by_taps) {
        const int64_t start = span_at(&taps, entry);
        memset(out, 0, (size_t)(w->n * bytes));
        first = max_i64(ceil_div(-start, axis->stride), 0);
        windows = min_i64(floor_div(axis->size - 1 - start, axis->stride) + 1, w->n) - first;
        place[inner] = start + first * axis->stride;
        row_step = windows > 1 ? axis->stride * column : 0; /* then it is within x */
    } else {
        lo = max_i64(entry, taps.lo);
        const int64_t real = min_i64(entry + n, taps.hi) - lo;
        if (real < n) /* and so not planes */
            memset(out, 0, (size_t)(n * bytes));
        n = real;
        place[inner] = span_at(&taps, lo);
        row_step = s->plane_step[TARN_DX] * s->p->element_bytes[TARN_DX];
    }
    if (windows <= 0 || n <= 0)
        return;
    const tarn_tied_rows rows = taps_at(s, w, place, first, windows, n, taps.step);
    s->ops->tangents[s->p->dtype](out + (first + lo - entry) * bytes, place_of(s, TARN_DX, place),
                                  n > 1 ? taps.step * column : 0, windows > 1 ? row_step : 0,
                                  &rows);
}

/* The sums in halves of n rows of each window, of `length` numbers each, in place. */
static void sum_in_place(pass *s, char *rows, int64_t windows, int64_t n, int64_t length)
{
    const tarn_core core = is_single(s) ? CORE_F32 : CORE_F64;
    const int64_t bytes = s->bytes, used = s->room.used;
    char *sums = take(&s->room, s->run, bytes);
    for (int64_t left; n > 1; n = left) {
        const bool pairs = length == 1 && (n % 2 == 0 || windows == 1);
        left = ceil_div(n, pairs ? 2 : MOST_SUMMED);
        if (pairs)
            s->ops->rows->sum_stride2[core](sums, rows, 2, 1, windows * (n / 2));
        if (pairs && n % 2)
            memcpy(sums + n / 2 * bytes, rows + (n - 1) * bytes, (size_t)bytes);
        for (int64_t j = 0; j < left && !pairs; j++)
            s->ops->rows->sum_pixels[core](
                sums + j * length * bytes, left * length, rows + j * MOST_SUMMED * length * bytes,
                min_i64(MOST_SUMMED, n - j * MOST_SUMMED), length, n * length, length, windows);
        memcpy(rows, sums, (size_t)(windows * left * length * bytes));
    }
    s->room.used = used;
}

static void sum_axis(pass *s, const window_run *w, int64_t *place, int axis, char *out);

/* [S2] The sum over the entries [entry,entry+n) of an axis, all axes before it summed up; on the
 * last axis over as many taps of a window at once as there is room for, unless windows go by taps.
 * `taps.n` is the entry. */
static void sum_entries(pass *s, const window_run *w, int64_t *place, int axis, tarn_span taps,
                        int64_t n, char *out)
{
    const bool last = axis == s->p->spatial - 1, whole = last && !s->by_taps;
    const int64_t used = s->room.used;
    if (taps.n + n <= taps.lo || taps.n >= taps.hi) {
        memset(out, 0, (size_t)(s->run * s->bytes));
    } else if (n > (whole ? s->run / (w->n * s->lanes) : 1)) {
        const int64_t half = split_point(n), entries = last || s->by_taps ? 1 : s->entries;
        char *right = take(&s->room, s->run, s->bytes);
        sum_entries(s, w, place, axis, taps, half, out);
        taps.n += half;
        sum_entries(s, w, place, axis, taps, n - half, right);
        add_rows(s, out, right, entries * w->n * s->lanes);
    } else {
        if (last) {
            s->entry = taps.n;
            s->entries = n;
        } else {
            place[axis] = span_at(&taps, taps.n);
        }
        if (axis == 0)
            load_tangents(s, w, place, s->entry, s->entries, out);
        else
            sum_axis(s, w, place, axis - 1, out);
        if (whole)
            sum_in_place(s, out, w->n, n, s->lanes);
    }
    s->room.used = used;
}

static void sum_axis(pass *s, const window_run *w, int64_t *place, int axis, char *out)
{
    tarn_span taps = window_taps(&s->p->axis[axis], w->o[axis]);
    const int64_t n = taps.n;
    taps.n = 0;
    if (axis == s->p->spatial - 1 && s->by_taps) /* taps that any window has */
        taps.lo = window_taps(&s->p->axis[axis], w->o[axis] + w->n - 1).lo;
    sum_entries(s, w, place, axis, taps, n, out);
}

/* The tangents of a run whose tops are known. */
static void follow_run(pass *s, const window_run *w)
{
    int64_t place[TARN_MAX_SPATIAL];
    const int64_t used = s->room.used;
    char *sums = take(&s->room, s->run, s->bytes);
    sum_axis(s, w, place, s->p->spatial - 1, sums);
    share_out(s, sums, w);
    s->ops->rows->write_gradients[s->p->dtype](place_of(s, TARN_DY, w->o), window_step(s, TARN_DY),
                                               sums, s->lanes, s->lanes, w->n);
    s->room.used = used;
}

static void follow_windows(pass *s, const tarn_slab *slab)
{
    const int inner = s->p->spatial - 1;
    const int64_t most = s->by_taps ? RUN / s->lanes : 1, used = s->room.used;
    window_run w = new_run(s);
    const box windows = box_of_slab(s->p, slab, false);
    const int64_t end = windows.from[inner] + windows.count[inner];
    memcpy(w.o, windows.from, sizeof w.o);
    do
        for (w.o[inner] = windows.from[inner]; w.o[inner] < end; w.o[inner] += w.n) {
            w.n = min_i64(most, end - w.o[inner]);
            find_run(s, &w);
            follow_run(s, &w);
        }
    while (next_place(inner, &windows, w.o));
    s->room.used = used;
}

/* ---- Gradients ------------------------------------------------------------------------------ */

/* Windows of an axis that may read one of n neighbouring cells, at most. */
static int64_t windows_near(const tarn_axis *axis, int64_t n)
{
    if (axis->adaptive)
        return muldiv_floor(n, axis->windows, axis->whole) + 2;
    return ((axis->kernel - 1) * axis->dilation + n - 1) / axis->stride + 1;
}

/* Sets w to the run that begins at window o, a multiple of the longest run, with what its windows
 * give: it is found unless it is remembered. No two runs that reach one row of cells have one slot,
 * if there are slots enough. */
static void set_run(pass *s, const int64_t *o, window_run *w)
{
    const int inner = s->p->spatial - 1;
    const int64_t most = s->run / s->lanes, out = s->p->axis[inner].out;
    int64_t number = 0, slot = 0;
    for (int a = 0; a < inner; a++) {
        number = number * s->p->axis[a].out + o[a];
        slot = (slot * s->near[a] + o[a] % s->near[a]) % s->slots;
    }
    number = number * out + o[inner];
    slot = (slot * s->near[inner] + o[inner] / most % s->near[inner]) % s->slots;
    memcpy(w->o, o, sizeof w->o);
    w->n = min_i64(most, out - o[inner]);
    w->top = s->room.bytes + slot * 2 * s->run * s->bytes;
    w->share = (char *)w->top + s->run * s->bytes;
    if (s->known[slot] != number)
        find_shares(s, w);
    s->known[slot] = number;
}

/* Windows [*first,*end) that may read any of the cells [from,to). */
static void windows_of_cells(const tarn_axis *axis, int64_t from, int64_t to, int64_t *first,
                             int64_t *end)
{
    if (axis->adaptive) {
        *first = first_adaptive(axis, from);
        *end = end_adaptive(axis, to);
    } else {
        const int64_t extent = (axis->kernel - 1) * axis->dilation;
        *first = max_i64(ceil_div(from + axis->lo - extent, axis->stride), 0);
        *end = min_i64(floor_div(to - 1 + axis->lo, axis->stride) + 1, axis->out);
    }
}

/* [S5] The gradients of the cells [from,end) of the row at `place`, by the windows at w->o, whose
 * axes from `axis` on are summed over. */
static void sum_gradients(pass *s, int64_t *place, int axis, window_run *w, int64_t from,
                          int64_t end, char *out)
{
    const int inner = s->p->spatial - 1;
    int64_t o[TARN_MAX_SPATIAL];
    memset(out, 0, (size_t)((end - from) * s->lanes * s->bytes));
    memcpy(o, w->o, sizeof o);
    if (axis == inner) {
        int64_t first, stop, most = s->run / s->lanes;
        windows_of_cells(&s->p->axis[inner], from, end, &first, &stop);
        for (o[inner] = first - first % most; o[inner] < stop; o[inner] += most) {
            set_run(s, o, w);
            visit_row(s, w, GIVE, place, from, end, out);
        }
        return;
    }
    double part[RUN];
    const tarn_span windows = cell_windows(&s->p->axis[axis], place[axis]);
    for (int64_t k = windows.lo; k < windows.hi; k++) {
        w->o[axis] = span_at(&windows, k);
        sum_gradients(s, place, axis + 1, w, from, end, (char *)part);
        add_rows(s, out, (char *)part, (end - from) * s->lanes);
    }
}

/* The cells [from,end) of the row at `place`, in pieces of a run's length. */
static void give_cells(pass *s, window_run *w, const int64_t *place, int64_t from, int64_t end)
{
    const int inner = s->p->spatial - 1;
    int64_t at[TARN_MAX_SPATIAL];
    double sums[RUN];
    memcpy(at, place, sizeof at);
    for (int64_t n; from < end; from += n) {
        n = min_i64(s->run / s->lanes, end - from);
        sum_gradients(s, at, 0, w, from, from + n, (char *)sums);
        at[inner] = from;
        s->ops->rows->write_gradients[s->p->dtype](
            place_of(s, TARN_GX, at), s->p->stride[TARN_GX][inner], sums, s->lanes, s->lanes, n);
    }
}

/* Strips of columns, row by row. */
static void give_windows(pass *s, window_run *w, const tarn_slab *slab)
{
    const int inner = s->p->spatial - 1;
    const box cells = box_of_slab(s->p, slab, true);
    const int64_t stop = cells.from[inner] + cells.count[inner];
    int64_t place[TARN_MAX_SPATIAL];
    for (int64_t from = cells.from[inner]; from < stop; from += s->strip) {
        memcpy(place, cells.from, sizeof place);
        do
            give_cells(s, w, place, from, min_i64(from + s->strip, stop));
        while (next_place(inner, &cells, place));
    }
}

/* The widest strip for which all runs that reach a row of it have slots; of shorter runs if need
 * be. A run that is not remembered is found again for every row. */
static void plan_strips(pass *s)
{
    const int inner = s->p->spatial - 1;
    const tarn_axis *last = &s->p->axis[inner];
    double rows = 1;
    for (int a = 0; a < inner; a++) {
        s->near[a] = windows_near(&s->p->axis[a], 1);
        rows *= (double)s->near[a];
    }
    for (s->run = RUN;; s->run /= 2) {
        const int64_t most = s->run / s->lanes;
        s->slots = min_i64(ARENA_BYTES / (2 * s->run * s->bytes), SLOTS);
        for (s->strip = last->size;; s->strip = ceil_div(s->strip, 2)) {
            s->near[inner] =
                min_i64(windows_near(last, s->strip) / most + 2, ceil_div(last->out, most));
            if (rows * (double)s->near[inner] <= (double)s->slots)
                return;
            if (s->strip <= most * 2)
                break;
        }
        if (s->run == LEAST_RUN)
            return;
    }
}

static void run_windows(pass *s, const tarn_tensors *t, int64_t begin, int64_t end)
{
    const tarn_problem *p = s->p;
    const bool backward = t->base[TARN_GX] != NULL;
    int64_t count[RUN];
    window_run w = {.count = count};
    tarn_slab slab;
    s->lanes = min_i64(TIED_LANES, p->lanes);
    if (backward)
        plan_strips(s);
    while (next_slab(p, t, backward ? p->axis[0].size : p->axis[0].out, &begin, end, &slab))
        for (int64_t lane = 0; lane < p->lanes; lane += s->lanes) {
            s->lanes = min_i64(TIED_LANES, p->lanes - lane);
            set_planes(s, &slab, lane);
            if (backward)
                give_windows(s, &w, &slab);
            else
                follow_windows(s, &slab);
        }
}

/* ---- Windows that cover their planes -------------------------------------------------------- */

/* Gradients of the rows of the slab. */
static void give_planes(pass *s, window_run *w, const tarn_slab *slab)
{
    const int inner = s->p->spatial - 1;
    const box cells = box_of_slab(s->p, slab, true);
    int64_t place[TARN_MAX_SPATIAL];
    find_shares(s, w);
    memcpy(place, cells.from, sizeof place);
    do {
        const tarn_tied_rows rows = taps_at(s, w, place, 0, w->n, cells.count[inner], 1);
        s->ops->give[s->p->dtype](place_of(s, TARN_GX, place), column_of(s, TARN_GX),
                                  s->plane_step[TARN_GX] * s->p->element_bytes[TARN_GX], &rows,
                                  w->share);
    } while (next_place(inner, &cells, place));
}

/* Numbers that are summed up together, as many as there is room for in all halves of the list. */
static int64_t summed_together(const tarn_problem *p)
{
    const double room = (double)ARENA_BYTES / sizeof(double);
    double halves = 6; /* and other arrays */
    for (int a = 0; a < p->spatial; a++) {
        bool last = a == p->spatial - 1 && p->lanes == 1;
        for (int64_t n = p->axis[a].size; n > (last ? SUMMED_PLANES : 1); n -= n / 2)
            halves++;
    }
    return halves * SUMMED_PLANES < room ? SUMMED_PLANES : RUN;
}

static void run_planes(pass *s, const tarn_tensors *t, int64_t begin, int64_t end)
{
    const tarn_problem *p = s->p;
    const bool backward = t->base[TARN_GX] != NULL;
    tarn_problem merged = *p;
    tarn_slab slab;
    const int64_t units = merge_global_axes(&merged);
    s->run = backward ? GIVEN_PLANES : summed_together(p);
    const int64_t width = backward ? 1 : p->axis[p->spatial - 1].size,
                  most = max_i64(s->run / p->lanes / width, 1);
    window_run w = new_run(s);
    memset(w.o, 0, sizeof w.o);
    while ((w.n = next_planes(p, t, backward ? p->axis[0].size : 1, &begin, end, most, &slab)) >
           0) {
        slab.lo *= units;
        slab.hi *= units;
        for (int64_t lane = 0; lane < p->lanes; lane += s->lanes) {
            s->lanes = min_i64(s->run, p->lanes - lane);
            set_planes(s, &slab, lane);
            s->p = &merged;
            if (backward)
                give_planes(s, &w, &slab);
            else
                find_run(s, &w);
            s->p = p;
            if (!backward)
                follow_run(s, &w);
        }
    }
}
