/* The engine of max and min where equal taps share [M6]: tangents and gradients.
 *
 * A window that covers the whole plane, as those of global pooling do, is found in one pass over
 * it and used in another, by row operations (tie_ops.h). Other windows are taken strip by strip
 * (ties.inc).
 */
#include "../scalar.h"
#include "../spec/spec.h"
#include "boxes.h"
#include "engines.h"

typedef struct {
    const tarn_problem *p;
    const tarn_tie_ops *ops;
    char *base[OPERANDS]; /* of the planes in hand */
    fold windows;
    fold_sum sum;
    void *tops;       /* of the windows in hand */
    bool minus_zeros; /* there is a -0 among the taps */
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

enum { STRIP = 128 }; /* windows of a strip, or cells of a row that go together, lanes counted */

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOT_INLINE __attribute__((noinline)) /* keeps its arrays from the stack of its caller */

/* Rows of cells, steps apart on each axis; the innermost is left out. */
typedef struct {
    int inner;
    int64_t first[TARN_MAX_SPATIAL], end[TARN_MAX_SPATIAL], step[TARN_MAX_SPATIAL],
        at[TARN_MAX_SPATIAL];
} lattice;

/* The rows that window o reads; only those of `cells`, if that is given, and from `axis` on all
 * of them. */
static bool rows_of_window(const tarn_problem *p, const int64_t *o, int axis, const box *cells,
                           lattice *rows)
{
    bool any = true;
    rows->inner = p->spatial - 1;
    for (int a = 0; a < rows->inner; a++) {
        tarn_span taps =
            a < axis ? window_taps(&p->axis[a], o[a])
                     : (tarn_span){.hi = cells->count[a], .first = cells->from[a], .step = 1};
        if (cells) {
            taps.lo = max_i64(taps.lo, ceil_div(cells->from[a] - taps.first, taps.step));
            taps.hi = min_i64(taps.hi,
                              ceil_div(cells->from[a] + cells->count[a] - taps.first, taps.step));
        }
        rows->at[a] = rows->first[a] = span_at(&taps, taps.lo);
        rows->end[a] = span_at(&taps, taps.hi);
        rows->step[a] = taps.step;
        any &= taps.lo < taps.hi;
    }
    return any;
}

static bool next_of(lattice *rows)
{
    for (int a = rows->inner - 1; a >= 0; a--) {
        rows->at[a] += rows->step[a];
        if (rows->at[a] < rows->end[a])
            return true;
        rows->at[a] = rows->first[a];
    }
    return false;
}

static int64_t extent_of(const tarn_axis *axis)
{
    return axis->adaptive ? axis->kernel : (axis->kernel - 1) * axis->dilation + 1;
}

/* Whether windows are so far apart that most columns are in none. */
static bool is_sparse(const tarn_axis *axis)
{
    return !axis->adaptive && axis->stride / 2 > extent_of(axis);
}

/* Windows [*first,*end) that may read any of the cells [from,to). */
static void windows_of_cells(const tarn_axis *axis, int64_t from, int64_t to, int64_t *first,
                             int64_t *end)
{
    if (axis->adaptive) {
        *first = muldiv_floor(from, axis->out, axis->size);
        *end = muldiv_ceil(to, axis->out, axis->size);
    } else {
        *first = max_i64(ceil_div(from + axis->lo - (extent_of(axis) - 1), axis->stride), 0);
        *end = min_i64(floor_div(to - 1 + axis->lo, axis->stride) + 1, axis->out);
    }
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

static bool is_single(const pass *s)
{
    return s->sum.bytes == sizeof(float);
}

/* The row at `place` of all planes. */
static tarn_tied_rows tied_rows(const pass *s, const whole_windows *w, const int64_t *place,
                                int64_t pixels)
{
    return (tarn_tied_rows){place_of(s, TARN_X, place), step_of(s, TARN_X),     pixels, w->lanes,
                            w->planes,                  w->plane_step[TARN_X], w->top};
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
    for (int64_t k = 0; k < w->planes * w->lanes; k++) {
        w->count[k] = split ? 0 : 1;
        if (is_single(s))
            ((float *)w->top)[k] = least ? INFINITY : -INFINITY;
        else
            w->top[k] = least ? INFINITY : -INFINITY;
    }
    s->minus_zeros = false;
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

/* Divides by how many taps there are. */
static void share_out(const pass *s, void *numbers, const whole_windows *w)
{
    for (int64_t k = 0; k < w->planes * w->lanes; k++)
        if (is_single(s))
            ((float *)numbers)[k] = ((float *)numbers)[k] / (float)w->count[k] + 0;
        else
            ((double *)numbers)[k] = ((double *)numbers)[k] / (double)w->count[k] + 0;
}

/* Gradients of the rows of the slab, in as many planes. */
static void give_whole(pass *s, const tarn_slab *slab, int64_t planes)
{
    whole_windows w;
    const int inner = s->p->spatial - 1;
    const box cells = cells_of(s->p, slab->lo, slab->hi - slab->lo);
    for (int64_t lane = 0; lane < s->p->lanes; lane += w.lanes) {
        int64_t place[TARN_MAX_SPATIAL];
        set_whole(s, &w, slab, planes, lane, WHOLE_TOPS);
        find_whole(s, &w);
        s->ops->read[s->p->dtype](w.share, s->base[TARN_GY], w.plane_step[TARN_GY], planes,
                                  w.lanes);
        share_out(s, w.share, &w);
        memcpy(place, cells.from, sizeof place);
        do {
            const tarn_tied_rows rows = tied_rows(s, &w, place, cells.count[inner]);
            s->ops->give[s->p->dtype](place_of(s, TARN_GX, place), step_of(s, TARN_GX),
                                      w.plane_step[TARN_GX], &rows, w.share);
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
            const tarn_tied_rows row = {
                place_of(s, TARN_X, place), step_of(s, TARN_X), plane.count[inner],
                f->lanes, 1, 0, (const char *)w->top + (w->stacked ? place[0] * f->lanes * bytes : 0)};
            s->ops->tangents[s->p->dtype](
                (char *)to + place_in(f->axes, &all, place) * f->lanes * bytes,
                place_of(s, TARN_DX, place), step_of(s, TARN_DX), 0, &row);
        } while (next_place(inner, &plane, place));
    }
}

/* Values: which NaN or zero came first the specification has to find. Moves on to the end of the
 * planes. */
static void write_whole(pass *s, const whole_windows *w)
{
    const int64_t place[TARN_MAX_SPATIAL] = {0};
    s->ops->write[s->p->dtype](s->base[TARN_Y], w->plane_step[TARN_Y], w->top, w->planes, w->lanes);
    for (int64_t k = 0; k < w->planes * w->lanes; k++) {
        const double top = is_single(s) ? ((const float *)w->top)[k] : w->top[k];
        for (int o = 0; o < OPERANDS && k > 0 && k % w->lanes == 0; o++)
            s->base[o] = s->base[o] ? s->base[o] + w->plane_step[o] : NULL;
        if (top != top || (top == 0 && s->minus_zeros))
            ask_specification(s, place, 0, k % w->lanes);
    }
}

/* Tangents of windows of as many planes; `stacked` is the problem with an axis of planes. */
static void follow_whole(pass *s, const tarn_problem *merged, const tarn_problem *stacked,
                         const tarn_slab *slab, int64_t planes)
{
    whole_windows w;
    const tarn_problem *p = s->p;
    fold *f = &s->windows;
    const int64_t most = f->lanes;
    box windows = {.count = {planes}};
    w.stacked = stacked->spatial > p->spatial;
    for (int k = 1; k < f->axes; k++)
        windows.count[k] = 1;
    for (int64_t lane = 0; lane < p->lanes; lane += w.lanes) {
        set_whole(s, &w, slab, planes, lane, most);
        s->p = merged;
        find_whole(s, &w);
        s->p = stacked;
        s->tops = &w;
        f->lanes = w.lanes;
        box b = first_part(f, &windows);
        do {
            const int64_t at = b.from[0] * w.lanes * s->sum.bytes;
            set_box(f, &b);
            memcpy((char *)w.share + at, tarn_fold_sums(f, 0, &s->sum),
                   (size_t)(b.count[0] * w.lanes * s->sum.bytes));
            s->room.used = 0;
        } while (next_part(f, &windows, &b));
        s->p = p;
        share_out(s, w.share, &w);
        s->ops->write[p->dtype](s->base[TARN_DY], w.plane_step[TARN_DY], w.share, planes, w.lanes);
        if (s->base[TARN_Y])
            write_whole(s, &w);
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
    int64_t planes;
    f->load = load_whole;
    if (t->base[TARN_GX]) {
        s->p = &merged;
        while ((planes = next_planes(p, t, p->axis[0].size, &begin, end, most, &slab)) > 0) {
            slab.lo *= units;
            slab.hi *= units;
            give_whole(s, &slab, planes);
        }
        return;
    }
    most = stack_planes(p, INT64_MAX, &stacked) ? most : 1;
    tarn_start_fold(f, &stacked, false);
    const int64_t lanes = min_i64(p->lanes, MOST_LANES);
    tarn_plan_fold(f, lanes, lanes, (ARENA_BYTES - 1024) / s->sum.bytes, 1, 1);
    f->slides = false;
    while ((planes = next_planes(p, t, p->axis[0].out, &begin, end, most, &slab)) > 0)
        follow_whole(s, &merged, &stacked, &slab, planes);
}

#define P double
#define K int64_t
#define U uint64_t
#define BITS_OF bits_of_f64
#define OF_BITS f64_of_bits
#define TIES(name) name##_f64
#include "ties.inc"
#define P float
#define K int32_t
#define U uint32_t
#define BITS_OF bits_of_f32
#define OF_BITS f32_of_bits
#define TIES(name) name##_f32
#include "ties.inc"

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
    else if (core == CORE_F64)
        run_f64(&s, t, begin, end);
    else
        run_f32(&s, t, begin, end);
}
