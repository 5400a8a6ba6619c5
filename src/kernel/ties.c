/* The engine of max and min where equal taps share [M6]: tangents and gradients.
 *
 * A window that covers the whole plane, as those of global pooling do, is found in one pass over
 * it and used in another, by row operations (tie_ops.h). Other windows are taken run by run,
 * one tap of all of them at a time, or all taps of one.
 */
#include "../scalar.h"
#include "../spec/spec.h"
#include "boxes.h"
#include "engines.h"

#define NOT_INLINE __attribute__((noinline)) /* keeps its arrays from the stack of its caller */

typedef struct {
    const tarn_problem *p;
    const tarn_tie_ops *ops;
    char *base[OPERANDS]; /* of the planes in hand */
    fold windows;
    fold_sum sum;
    void *tops;             /* of the windows in hand */
    bool minus_zeros;       /* there is a -0 among the taps */
    int64_t lanes;          /* interleaved planes that go together */
    int64_t entry, entries; /* of the last axis, in hand */
    arena room;
} pass;

static char *place_of(const pass *s, int operand, const int64_t *place)
{
    return s->base[operand] + offset_of(s->p, operand, place) * s->p->element_bytes[operand];
}

/* Bytes from a pixel to the next. */
static int64_t step_of(const pass *s, int operand)
{
    return s->p->stride[operand][s->p->spatial - 1] * s->p->element_bytes[operand];
}

static void read_pixels(const pass *s, int operand, const int64_t *place, int64_t pixels,
                        int64_t lanes, void *to)
{
    s->ops->read[s->p->dtype](to, place_of(s, operand, place), step_of(s, operand), pixels, lanes);
}

static void write_pixels(const pass *s, int operand, const int64_t *place, int64_t pixels,
                         int64_t lanes, const void *from)
{
    s->ops->write[s->p->dtype](place_of(s, operand, place), step_of(s, operand), from, pixels,
                               lanes);
}

/* Sets the pass to interleaved planes of the slab, from `lane` on. */
static void set_planes(pass *s, const tarn_slab *slab, int64_t lane)
{
    for (int k = 0; k < OPERANDS; k++)
        s->base[k] = slab->base[k] ? slab->base[k] + lane * s->p->element_bytes[k] : NULL;
}

static void fill_zeros(fold *f, int64_t count, void *to, int64_t n)
{
    (void)count;
    memset(to, 0, (size_t)(n * f->sum->bytes));
}

/* Lets the specification write the value of window `place`, `pixel` further on. */
static void ask_specification(const pass *s, const int64_t *place, int64_t pixel, int64_t lane)
{
    static void (*const forward_at[])(const tarn_problem *, char *const *, const int64_t *) = {
        [TARN_F64] = tarn_spec_forward_at_f64,
        [TARN_F32] = tarn_spec_forward_at_f32,
        [TARN_F16] = tarn_spec_forward_at_f16,
        [TARN_BF16] = tarn_spec_forward_at_bf16,
    };
    char *plane[OPERANDS];
    int64_t o[TARN_MAX_SPATIAL];
    memcpy(o, place, sizeof o);
    o[s->p->spatial - 1] += pixel;
    for (int k = 0; k < OPERANDS; k++)
        plane[k] = s->base[k] ? s->base[k] + lane * s->p->element_bytes[k] : NULL;
    forward_at[s->p->dtype](s->p, plane, o);
}

/* ---- Tops, in f32 or f64 -------------------------------------------------------------------- */

static bool is_single(const pass *s)
{
    return s->sum.bytes == sizeof(float);
}

static double worst_top(const pass *s)
{
    return s->p->op == TARN_MIN ? INFINITY : -INFINITY;
}

/* The worst of all tops; and how many taps reach each, which is counted if it matters. */
static void start_tops(pass *s, double *tops, int64_t *count, int64_t n)
{
    const double worst = worst_top(s);
    s->minus_zeros = false;
    for (int64_t k = 0; k < n; k++) {
        count[k] = s->p->ties == TARN_TIES_SPLIT ? 0 : 1;
        if (is_single(s))
            ((float *)tops)[k] = (float)worst;
        else
            tops[k] = worst;
    }
}

/* Divides by how many taps there are. */
static void share_out(const pass *s, void *numbers, const int64_t *count, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (is_single(s))
            ((float *)numbers)[k] /= (float)count[k];
        else
            ((double *)numbers)[k] /= (double)count[k];
}

/* Which NaN or zero came first, or whether there was a tap, the specification has to find. */
static bool is_unsure(const pass *s, const double *tops, int64_t k)
{
    const double top = is_single(s) ? ((const float *)tops)[k] : tops[k];
    return top != top || (top == 0 && s->minus_zeros) || top == worst_top(s);
}

static bool is_global(const tarn_axis *axis)
{
    return axis->out == 1 &&
           (axis->adaptive || (axis->kernel == axis->size && axis->lo == 0 && axis->dilation == 1));
}

/* Makes one axis of two that a global window covers, if both tensors of cells lie so; here the
 * order of taps does not matter. Returns how many units a unit
 * of the first axis has become. */
static int64_t merge_axes(tarn_problem *p)
{
    int64_t units = 1;
    for (int a = p->spatial - 2; a >= 0; a--) {
        tarn_axis *axis = &p->axis[a], *next = axis + 1;
        bool merge = is_global(axis) && is_global(next);
        /* a pass without GX has strides of 0 there */
        for (int k = TARN_X; k <= TARN_GX; k += TARN_GX - TARN_X)
            merge &= axis->size == 1 || p->stride[k][a] == next->size * p->stride[k][a + 1];
        if (!merge)
            continue;
        units = a == 0 ? next->size : 1;
        next->size *= axis->size;
        *axis = (tarn_axis){
            .size = next->size, .out = 1, .kernel = next->size, .stride = 1, .dilation = 1};
        p->spatial--;
        for (int b = a + 1; b < p->spatial; b++)
            p->axis[b] = p->axis[b + 1];
        for (int k = 0; k < OPERANDS; k++)
            memmove(&p->stride[k][a], &p->stride[k][a + 1],
                    sizeof(int64_t) * (size_t)(p->spatial - a));
    }
    return units;
}

/* ---- Windows that cover all ----------------------------------------------------------------- */

enum { WHOLE_TOPS = 512 };

/* The tops of several planes, each of `lanes` interleaved ones, in f32 or f64; how many taps reach
 * each, and what they get. */
typedef struct {
    int64_t planes, lanes, plane_step[OPERANDS]; /* in bytes */
    bool stacked;                                /* planes are an axis */
    double top[WHOLE_TOPS], share[WHOLE_TOPS];   /* room for either type */
    int64_t count[WHOLE_TOPS];
} whole_windows;

/* The row at `place` of all planes. */
static tarn_tied_rows tied_rows(const pass *s, const whole_windows *w, const int64_t *place,
                                int64_t pixels)
{
    return (tarn_tied_rows){place_of(s, TARN_X, place),
                            step_of(s, TARN_X),
                            pixels,
                            w->lanes,
                            w->planes,
                            w->plane_step[TARN_X],
                            w->top};
}

/* The cells of a plane; `rows` of them on the first axis, from `from` on. */
static box cells_of(const tarn_problem *p, int64_t from, int64_t rows)
{
    box b = {{from}, {rows}};
    for (int a = 1; a < p->spatial; a++)
        b.count[a] = p->axis[a].size;
    return b;
}

/* Sets the pass to `planes` planes from the slab's on, and to their lanes from `lane` on. */
static void set_whole(pass *s, whole_windows *w, const tarn_slab *slab, int64_t planes,
                      int64_t lane, int64_t most)
{
    const tarn_problem *p = s->p;
    w->planes = planes;
    w->lanes = min_i64(most, p->lanes - lane);
    for (int k = 0; k < OPERANDS; k++)
        w->plane_step[k] = planes > 1 ? p->lead_stride[k][p->leading - 1] * p->element_bytes[k] : 0;
    set_planes(s, slab, lane);
}

static void find_whole(pass *s, whole_windows *w)
{
    const int inner = s->p->spatial - 1;
    const box cells = cells_of(s->p, 0, s->p->axis[0].size);
    const bool least = s->p->op == TARN_MIN, split = s->p->ties == TARN_TIES_SPLIT;
    int64_t place[TARN_MAX_SPATIAL] = {0};
    start_tops(s, w->top, w->count, w->planes * w->lanes);
    do {
        const tarn_tied_rows rows = tied_rows(s, w, place, cells.count[inner]);
        s->minus_zeros |= s->ops->tops[s->p->dtype](w->top, &rows, least);
    } while (next_place(inner, &cells, place));
    if (split)
        do {
            const tarn_tied_rows rows = tied_rows(s, w, place, cells.count[inner]);
            s->ops->counts[s->p->dtype](w->count, &rows);
        } while (next_place(inner, &cells, place));
}

/* Gradients of the rows of the slab, in as many planes. */
static void give_whole(pass *s, whole_windows *w, const tarn_slab *slab, int64_t planes)
{
    const int inner = s->p->spatial - 1;
    const box cells = cells_of(s->p, slab->lo, slab->hi - slab->lo);
    for (int64_t lane = 0; lane < s->p->lanes; lane += w->lanes) {
        int64_t place[TARN_MAX_SPATIAL];
        set_whole(s, w, slab, planes, lane, WHOLE_TOPS);
        find_whole(s, w);
        s->ops->read[s->p->dtype](w->share, s->base[TARN_GY], w->plane_step[TARN_GY], planes,
                                  w->lanes);
        share_out(s, w->share, w->count, w->planes * w->lanes);
        memcpy(place, cells.from, sizeof place);
        do {
            const tarn_tied_rows rows = tied_rows(s, w, place, cells.count[inner]);
            s->ops->give[s->p->dtype](place_of(s, TARN_GX, place), step_of(s, TARN_GX),
                                      w->plane_step[TARN_GX], &rows, w->share);
        } while (next_place(inner, &cells, place));
    }
}

/* Tangents; the first axis may be that of planes. */
static void load_whole(fold *f, void *to)
{
    pass *s = f->pass;
    const whole_windows *w = s->tops;
    const int inner = f->axes - 1;
    const int64_t bytes = f->sum->bytes;
    box all, real;
    clip_sources(f, &all, &real);
    box plane = real;
    const int64_t planes = w->stacked ? real.count[0] : 1;
    plane.count[0] = w->stacked ? 1 : real.count[0];
    join_rows(s->p, &all, TARN_X, TARN_DX, &plane);
    for (int64_t k = 0; k < planes; k++) {
        int64_t place[TARN_MAX_SPATIAL];
        plane.from[0] = real.from[0] + k;
        memcpy(place, plane.from, sizeof place);
        do {
            const tarn_tied_rows row = {place_of(s, TARN_X, place),
                                        step_of(s, TARN_X),
                                        plane.count[inner],
                                        f->lanes,
                                        1,
                                        0,
                                        (const char *)w->top +
                                            (w->stacked ? place[0] * f->lanes * bytes : 0)};
            s->ops->tangents[s->p->dtype](
                (char *)to + place_in(f->axes, &all, place) * f->lanes * bytes,
                place_of(s, TARN_DX, place), step_of(s, TARN_DX), 0, &row);
        } while (next_place(inner, &plane, place));
    }
}

/* Values. Moves on to the end of the planes. */
static void write_whole(pass *s, const whole_windows *w)
{
    const int64_t place[TARN_MAX_SPATIAL] = {0};
    s->ops->write[s->p->dtype](s->base[TARN_Y], w->plane_step[TARN_Y], w->top, w->planes, w->lanes);
    for (int64_t k = 0; k < w->planes * w->lanes; k++) {
        for (int o = 0; o < OPERANDS && k > 0 && k % w->lanes == 0; o++)
            s->base[o] = s->base[o] ? s->base[o] + w->plane_step[o] : NULL;
        if (is_unsure(s, w->top, k))
            ask_specification(s, place, 0, k % w->lanes);
    }
}

/* Tangents of windows of as many planes; `stacked` is the problem with an axis of planes. */
static void follow_whole(pass *s, whole_windows *w, const tarn_problem *merged,
                         const tarn_problem *stacked, const tarn_slab *slab, int64_t planes)
{
    const tarn_problem *p = s->p;
    fold *f = &s->windows;
    const int64_t most = f->lanes, used = s->room.used;
    box windows = {.count = {planes}};
    w->stacked = stacked->spatial > p->spatial;
    for (int k = 1; k < f->axes; k++)
        windows.count[k] = 1;
    for (int64_t lane = 0; lane < p->lanes; lane += w->lanes) {
        set_whole(s, w, slab, planes, lane, most);
        s->p = merged;
        find_whole(s, w);
        s->p = stacked;
        s->tops = w;
        f->lanes = w->lanes;
        box b = first_part(f, &windows);
        do {
            const int64_t at = b.from[0] * w->lanes * s->sum.bytes;
            set_box(f, &b);
            memcpy((char *)w->share + at, tarn_fold_sums(f, 0, &s->sum),
                   (size_t)(b.count[0] * w->lanes * s->sum.bytes));
            s->room.used = used;
        } while (next_part(f, &windows, &b));
        s->p = p;
        share_out(s, w->share, w->count, w->planes * w->lanes);
        s->ops->write[p->dtype](s->base[TARN_DY], w->plane_step[TARN_DY], w->share, planes,
                                w->lanes);
        if (s->base[TARN_Y])
            write_whole(s, w);
    }
    f->lanes = most;
}

static NOT_INLINE void run_whole(pass *s, const tarn_tensors *t, int64_t begin, int64_t end)
{
    const tarn_problem *p = s->p;
    tarn_problem merged = *p, stacked = *p;
    const int64_t units = merge_axes(&merged);
    int64_t most = max_i64(WHOLE_TOPS / p->lanes, 1);
    tarn_slab slab;
    fold *f = &s->windows;
    whole_windows *w = take(&s->room, 1, sizeof *w);
    int64_t planes;
    f->load = load_whole;
    if (t->base[TARN_GX]) {
        s->p = &merged;
        while ((planes = next_planes(p, t, p->axis[0].size, &begin, end, most, &slab)) > 0) {
            slab.lo *= units;
            slab.hi *= units;
            give_whole(s, w, &slab, planes);
        }
        return;
    }
    most = stack_planes(p, INT64_MAX, &stacked) ? most : 1;
    tarn_start_fold(f, &stacked, false);
    const int64_t lanes = min_i64(p->lanes, MOST_LANES);
    tarn_plan_fold(f, lanes, lanes, (ARENA_BYTES - 1024 - s->room.used) / s->sum.bytes, 1, 1);
    f->slides = false;
    while ((planes = next_planes(p, t, p->axis[0].out, &begin, end, most, &slab)) > 0)
        follow_whole(s, w, &merged, &stacked, &slab, planes);
}

/* ---- Other windows -------------------------------------------------------------------------- */

enum { RUN = 64, SLOTS = 20 };

/* A run of windows in a row, with tops and shares in f32 or f64. */
typedef struct {
    const char *x, *gy; /* of the planes; NULL: nothing is known */
    int64_t o[TARN_MAX_SPATIAL], n;
    double top[RUN], share[RUN];
    int64_t count[RUN];
} window_run;

enum { FIND, COUNT, GIVE };

/* Whether one tap of all windows of a run is taken at a time; or all taps of one window. */
static bool goes_by_taps(const pass *s)
{
    const tarn_axis *axis = &s->p->axis[s->p->spatial - 1];
    return !axis->adaptive && axis->out >= axis->kernel;
}

/* Taps in a row of cells: of `windows` windows from `first` on a single tap each, the cell of the
 * first at `place`; or `taps` of one window, `step` columns apart. */
static tarn_tied_rows taps_at(const pass *s, const window_run *w, const int64_t *place,
                              int64_t first, int64_t windows, int64_t taps, int64_t step)
{
    const tarn_axis *axis = &s->p->axis[s->p->spatial - 1];
    const int64_t column = step_of(s, TARN_X), bytes = s->sum.bytes;
    return (tarn_tied_rows){.x = place_of(s, TARN_X, place),
                            .step = taps > 1 ? step * column : 0,
                            .pixels = taps,
                            .lanes = s->lanes,
                            .rows = windows,
                            .row_step = windows > 1 ? axis->stride * column : 0,
                            .tops = (const char *)w->top + first * s->lanes * bytes};
}

/* Windows side by side whose cells are, too, are lanes. */
static bool are_lanes(const pass *s, int operand)
{
    return s->p->axis[s->p->spatial - 1].stride == 1 &&
           step_of(s, operand) == s->lanes * s->p->element_bytes[operand];
}

static void visit_taps(pass *s, window_run *w, int what, tarn_tied_rows rows, int64_t first,
                       int64_t step, char *sums)
{
    const tarn_axis *axis = &s->p->axis[s->p->spatial - 1];
    const int64_t bytes = s->sum.bytes, at = first * s->lanes, lanes = s->lanes;
    if (rows.rows > 1 && are_lanes(s, TARN_X)) {
        rows.lanes *= rows.rows;
        rows.rows = 1;
    }
    if (what == FIND)
        s->minus_zeros |=
            s->ops->tops[s->p->dtype]((char *)w->top + at * bytes, &rows, s->p->op == TARN_MIN);
    else if (what == COUNT)
        s->ops->counts[s->p->dtype](w->count + at, &rows);
    else
        s->ops->add[s->p->dtype](sums, rows.pixels > 1 ? step * lanes : 0,
                                 rows.rows > 1 ? axis->stride * lanes : 0, &rows,
                                 (char *)w->share + at * bytes);
}

/* The taps of a run in the columns [from,end) of the row of cells at `place`; of each cell, the
 * first window comes first. `sums` are those of the columns. */
static void visit_row(pass *s, window_run *w, int what, int64_t *place, int64_t from, int64_t end,
                      char *sums)
{
    const int inner = s->p->spatial - 1;
    const tarn_axis *axis = &s->p->axis[inner];
    const int64_t bytes = s->lanes * s->sum.bytes;
    const int64_t origin = w->o[inner] * axis->stride - axis->lo, e = axis->dilation;
    if (goes_by_taps(s))
        for (int64_t j = min_i64(floor_div(end - 1 - origin, e), axis->kernel - 1),
                     least = ceil_div(from - origin - (w->n - 1) * axis->stride, e);
             j >= max_i64(least, 0); j--) {
            const int64_t start = origin + j * e;
            const int64_t first = max_i64(ceil_div(from - start, axis->stride), 0);
            const int64_t n = min_i64(floor_div(end - 1 - start, axis->stride) + 1, w->n) - first;
            place[inner] = start + first * axis->stride;
            if (n > 0)
                visit_taps(s, w, what, taps_at(s, w, place, first, n, 1, 1), first, 1,
                           sums + (place[inner] - from) * bytes);
        }
    else
        for (int64_t o = 0; o < w->n; o++) {
            const tarn_span taps = window_taps(axis, w->o[inner] + o);
            const int64_t lo = max_i64(ceil_div(from - taps.first, taps.step), taps.lo);
            const int64_t n = min_i64(ceil_div(end - taps.first, taps.step), taps.hi) - lo;
            place[inner] = span_at(&taps, lo);
            if (n > 0)
                visit_taps(s, w, what, taps_at(s, w, place, o, 1, n, taps.step), o, taps.step,
                           sums + (place[inner] - from) * bytes);
        }
}

/* All taps of a run. */
static void visit_all(pass *s, window_run *w, int what)
{
    const int inner = s->p->spatial - 1;
    int64_t place[TARN_MAX_SPATIAL];
    box rows; /* of taps */
    for (int a = 0; a < inner; a++) {
        const tarn_span taps = window_taps(&s->p->axis[a], w->o[a]);
        rows.from[a] = taps.lo;
        rows.count[a] = taps.hi - taps.lo;
        if (rows.count[a] <= 0)
            return;
    }
    int64_t tap[TARN_MAX_SPATIAL];
    memcpy(tap, rows.from, sizeof tap);
    do {
        for (int a = 0; a < inner; a++) {
            const tarn_span taps = window_taps(&s->p->axis[a], w->o[a]);
            place[a] = span_at(&taps, tap[a]);
        }
        visit_row(s, w, what, place, 0, s->p->axis[inner].size, (char *)w->share);
    } while (next_place(inner, &rows, tap));
}

/* Finds the tops of a run's windows and how many taps reach them, where that matters. */
static void find_run(pass *s, window_run *w)
{
    start_tops(s, w->top, w->count, w->n * s->lanes);
    visit_all(s, w, FIND);
    if (s->p->ties == TARN_TIES_SPLIT)
        visit_all(s, w, COUNT);
}

/* ---- Their tangents ---- */

/* Masked tangents of taps [entry,entry+n) on the last axis, in the row of cells at `place`. */
static void load_tangents(pass *s, const window_run *w, int64_t *place, int64_t entry, int64_t n,
                          char *out)
{
    const int inner = s->p->spatial - 1;
    const tarn_axis *axis = &s->p->axis[inner];
    const tarn_span taps = window_taps(axis, w->o[inner]);
    const int64_t bytes = s->lanes * s->sum.bytes, column = step_of(s, TARN_DX);
    int64_t first = 0, windows = w->n, lo = entry;
    memset(out, 0, (size_t)(max_i64(w->n, n) * bytes));
    if (goes_by_taps(s)) {
        const int64_t start = span_at(&taps, entry);
        first = max_i64(ceil_div(-start, axis->stride), 0);
        windows = min_i64(floor_div(axis->size - 1 - start, axis->stride) + 1, w->n) - first;
        place[inner] = start + first * axis->stride;
    } else {
        lo = max_i64(entry, taps.lo);
        n = min_i64(entry + n, taps.hi) - lo;
        place[inner] = span_at(&taps, lo);
    }
    if (windows <= 0 || n <= 0)
        return;
    tarn_tied_rows rows = taps_at(s, w, place, first, windows, n, taps.step);
    if (rows.rows > 1 && are_lanes(s, TARN_X) && are_lanes(s, TARN_DX)) {
        rows.lanes *= rows.rows;
        rows.rows = 1;
    }
    s->ops->tangents[s->p->dtype](out + (first + lo - entry) * bytes, place_of(s, TARN_DX, place),
                                  n > 1 ? taps.step * column : 0,
                                  windows > 1 ? axis->stride * column : 0, &rows);
}

static void add_rows(const pass *s, char *to, const char *from, int64_t n)
{
    s->ops->rows->add_sums[!is_single(s)](to, from, n);
}

/* The sum of n pixels in halves, in place. */
static void sum_pixels(const pass *s, char *pixels, int64_t n)
{
    const int64_t bytes = s->lanes * s->sum.bytes;
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t k = 0; k + half < n; k += 2 * half)
            add_rows(s, pixels + k * bytes, pixels + (k + half) * bytes, s->lanes);
}

static void sum_axis(pass *s, const window_run *w, int64_t *place, int axis, char *out);

/* [S2] The sum over the entries [entry,entry+n) of an axis, all axes before it summed up; over all
 * taps of one window at once on the last axis. */
static void sum_entries(pass *s, const window_run *w, int64_t *place, int axis, tarn_span taps,
                        int64_t n, char *out)
{
    const bool last = axis == s->p->spatial - 1, whole = last && !goes_by_taps(s);
    const int64_t used = s->room.used;
    if (taps.n + n <= taps.lo || taps.n >= taps.hi) {
        memset(out, 0, (size_t)(RUN * s->sum.bytes));
    } else if (n > (whole ? RUN / s->lanes : 1)) {
        const int64_t half = split_point(n);
        char *right = take(&s->room, RUN, s->sum.bytes);
        sum_entries(s, w, place, axis, taps, half, out);
        taps.n += half;
        sum_entries(s, w, place, axis, taps, n - half, right);
        add_rows(s, out, right, (last || goes_by_taps(s) ? w->n : s->entries) * s->lanes);
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
            sum_pixels(s, out, n);
    }
    s->room.used = used;
}

/* ... over all; `taps.n` is the entry from then on. */
static void sum_axis(pass *s, const window_run *w, int64_t *place, int axis, char *out)
{
    tarn_span taps = window_taps(&s->p->axis[axis], w->o[axis]);
    const int64_t n = taps.n;
    taps.n = 0;
    if (axis == s->p->spatial - 1 && w->n > 1) /* taps that any window has */
        taps.lo = window_taps(&s->p->axis[axis], w->o[axis] + w->n - 1).lo;
    sum_entries(s, w, place, axis, taps, n, out);
}

/* The tangents of a run, and their values. */
static void follow_run(pass *s, window_run *w)
{
    const int inner = s->p->spatial - 1;
    int64_t place[TARN_MAX_SPATIAL];
    char *sums = take(&s->room, RUN, s->sum.bytes);
    find_run(s, w);
    sum_axis(s, w, place, inner, sums);
    for (int64_t k = 0; k < w->n * s->lanes; k++) /* none is left without a tap */
        w->count[k] = max_i64(w->count[k], 1);
    share_out(s, sums, w->count, w->n * s->lanes);
    write_pixels(s, TARN_DY, w->o, w->n, s->lanes, sums);
    if (s->base[TARN_Y]) {
        write_pixels(s, TARN_Y, w->o, w->n, s->lanes, w->top);
        for (int64_t k = 0; k < w->n * s->lanes; k++)
            if (is_unsure(s, w->top, k))
                ask_specification(s, w->o, k / s->lanes, k % s->lanes);
    }
    s->room.used = 0;
}

static void follow_windows(pass *s, const tarn_slab *slab)
{
    window_run w;
    const int inner = s->p->spatial - 1;
    const int64_t most = goes_by_taps(s) ? RUN / s->lanes : 1;
    box windows = {{slab->lo}, {slab->hi - slab->lo}};
    for (int a = 1; a <= inner; a++)
        windows.count[a] = s->p->axis[a].out;
    const int64_t end = windows.from[inner] + windows.count[inner];
    memcpy(w.o, windows.from, sizeof w.o);
    do
        for (w.o[inner] = windows.from[inner]; w.o[inner] < end; w.o[inner] += w.n) {
            w.n = min_i64(most, end - w.o[inner]);
            follow_run(s, &w);
        }
    while (next_place(inner, &windows, w.o));
}

/* ---- Their gradients ---- */

/* The run that begins at window o, a multiple of the longest run, with what its windows give. */
static window_run *run_at(pass *s, const int64_t *o)
{
    const int inner = s->p->spatial - 1;
    const int64_t most = RUN / s->lanes, out = s->p->axis[inner].out;
    const size_t bytes = sizeof(int64_t) * (size_t)s->p->spatial;
    int64_t number = 0;
    for (int a = 0; a < inner; a++)
        number = number * s->p->axis[a].out + o[a];
    number = number * ceil_div(out, most) + o[inner] / most;
    window_run *w = (window_run *)(void *)s->room.bytes + number % SLOTS;
    if (w->x == s->base[TARN_X] && w->gy == s->base[TARN_GY] && memcmp(w->o, o, bytes) == 0)
        return w;
    w->x = s->base[TARN_X];
    w->gy = s->base[TARN_GY];
    w->n = min_i64(most, out - o[inner]);
    memcpy(w->o, o, sizeof w->o);
    find_run(s, w);
    read_pixels(s, TARN_GY, o, w->n, s->lanes, w->share);
    share_out(s, w->share, w->count, w->n * s->lanes);
    return w;
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

/* [S5] The gradients of the cells [from,end) of the row at `place`, by the windows at o, whose axes
 * from `axis` on are summed over. */
static void sum_gradients(pass *s, int64_t *place, int axis, int64_t *o, int64_t from, int64_t end,
                          char *out)
{
    const int inner = s->p->spatial - 1;
    memset(out, 0, (size_t)((end - from) * s->lanes * s->sum.bytes));
    if (axis == inner) {
        int64_t first, stop, most = RUN / s->lanes;
        windows_of_cells(&s->p->axis[inner], from, end, &first, &stop);
        for (o[inner] = first - first % most; o[inner] < stop; o[inner] += most)
            visit_row(s, run_at(s, o), GIVE, place, from, end, out);
        return;
    }
    double part[RUN];
    const tarn_span windows = cell_windows(&s->p->axis[axis], place[axis]);
    for (int64_t k = windows.lo; k < windows.hi; k++) {
        o[axis] = span_at(&windows, k);
        sum_gradients(s, place, axis + 1, o, from, end, (char *)part);
        add_rows(s, out, (char *)part, (end - from) * s->lanes);
    }
}

static void give_windows(pass *s, const tarn_slab *slab)
{
    const int inner = s->p->spatial - 1;
    const box cells = cells_of(s->p, slab->lo, slab->hi - slab->lo);
    const int64_t stop = cells.from[inner] + cells.count[inner];
    int64_t place[TARN_MAX_SPATIAL], at[TARN_MAX_SPATIAL], o[TARN_MAX_SPATIAL] = {0};
    double sums[RUN];
    memcpy(place, cells.from, sizeof place);
    do
        for (int64_t from = cells.from[inner], end; from < stop; from = end) {
            end = min_i64(from + RUN / s->lanes, stop);
            memcpy(at, place, sizeof at);
            sum_gradients(s, at, 0, o, from, end, (char *)sums);
            at[inner] = from;
            write_pixels(s, TARN_GX, at, end - from, s->lanes, sums);
        }
    while (next_place(inner, &cells, place));
}

static NOT_INLINE void run_windows(pass *s, const tarn_tensors *t, int64_t begin, int64_t end)
{
    const tarn_problem *p = s->p;
    const bool backward = t->base[TARN_GX] != NULL;
    tarn_slab slab;
    for (int k = 0; k < SLOTS; k++)
        ((window_run *)(void *)s->room.bytes)[k].x = NULL;
    while (next_slab(p, t, backward ? p->axis[0].size : p->axis[0].out, &begin, end, &slab))
        for (int64_t lane = 0; lane < p->lanes; lane += s->lanes) {
            s->lanes = min_i64(MOST_LANES, p->lanes - lane);
            set_planes(s, &slab, lane);
            if (backward)
                give_windows(s, &slab);
            else
                follow_windows(s, &slab);
        }
}

/* ---- The engine ----------------------------------------------------------------------------- */

void tarn_engine_ties(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const tarn_tie_ops *ops)
{
    pass s;
    s.p = p;
    s.ops = ops;
    s.room.used = 0;
    const tarn_core core = p->dtype == TARN_F64 ? CORE_F64 : CORE_F32;
    bool whole = true;
    s.sum = (fold_sum){core_bytes(core), ops->rows->sum_pixels[core], ops->rows->sum_stride2[core]};
    s.windows.pass = &s;
    s.windows.room = &s.room;
    s.windows.absent = fill_zeros;
    for (int a = 0; a < p->spatial; a++)
        whole &= is_global(&p->axis[a]);
    if (whole)
        run_whole(&s, t, begin, end);
    else
        run_windows(&s, t, begin, end);
}
