/* Kernels in plain C for what has no engine: smooth max, Lp, and the derivatives of max and min
 * where equal taps share. Any window, any floating type. */
#include "../spec/spec.h"
#include "weighted.h"

/* ---- Smooth max and Lp ---------------------------------------------------------------------- */

#define T double
#define PASS(name) plain_##name
#define MERGE(a, b) ((a) + (b))
#define EXACT 0
#include "weighted.inc"

#define T tarn_weight
#define PASS(name) exact_##name
#define MERGE(a, b) weight_add(a, b)
#define EXACT 1
#include "weighted.inc"

enum { ALIGNMENT = 2048 }; /* bytes that a hundred arrays may lose by it */

static void start_pass(pass *s, const tarn_problem *p, const tarn_numbers *numbers)
{
    s->windows[0].pass = s->windows[1].pass = s->cells[0].pass = s->cells[1].pass = s;
    s->windows[0].room = s->windows[1].room = s->cells[0].room = s->cells[1].room = &s->room;
    s->p = p;
    s->numbers = numbers;
    s->shift = s->slope_shift = 0;
    s->kept.x = NULL;
    s->room.used = 0;
    s->large_windows = false;
    for (int64_t a = 0, taps = 1; a < p->spatial && !s->large_windows; a++)
        s->large_windows = (taps *= p->axis[a].kernel) >= MANY_TAPS;
}

/* Plans for elements of so many bytes; backward, the room is shared by cells and windows. */
static void plan_pass(pass *s, bool exact, bool backward, int64_t lanes)
{
    const int64_t element = exact ? sizeof(tarn_weight) : sizeof(double),
                  room = (ARENA_BYTES - ALIGNMENT) / element;
    fold *windows = &s->windows[exact], *cells = &s->cells[exact];
    start_fold(windows, s->p, false);
    start_fold(cells, s->p, true);
    if (!backward) {
        plan_fold(windows, 1, lanes, room, 3);
        return;
    }
    for (windows->lanes = min_i64(lanes, MOST_LANES);
         planned_room(windows, 2) > (double)(room / 2 - KEPT);)
        windows->lanes = (windows->lanes + 1) / 2;
    plan_fold(cells, 1, windows->lanes, room / 2, 1);
    for (int k = 0; k < cells->axes; k++) /* no more are asked for at once */
        windows->axis[k].results =
            min_i64(windows->axis[k].results, (int64_t)planned_part(&cells->axis[k]) + 1);
    plan_fold(windows, cells->lanes, cells->lanes, room / 2 - KEPT, 2);
}

/* Sets the pass to `lanes` of the interleaved planes that begin at `base`, from `lane` on. */
static void set_lanes(pass *s, bool exact, char *const *base, int64_t lane, int64_t lanes)
{
    s->windows[exact].lanes = s->cells[exact].lanes = lanes;
    for (int k = 0; k < OPERANDS; k++)
        s->base[k] = base[k] ? base[k] + lane * s->p->element_bytes[k] : NULL;
}

static box whole_box(const fold *f, const tarn_slab *slab)
{
    box b = {{slab->lo}, {slab->hi - slab->lo}};
    for (int k = 1; k < f->axes; k++)
        b.count[k] = f->axis[k].results;
    return b;
}

static void forget_range(pass *s)
{
    s->low = INFINITY;
    s->high = -INFINITY;
    s->moderate = true;
}

static void run_box(pass *s, bool exact, bool backward, const box *b)
{
    static void (*const run[2][2])(pass *, const box *) = {{plain_forward, plain_backward},
                                                           {exact_forward, exact_backward}};
    forget_range(s);
    run[exact][backward](s, b);
    s->room.used = 0;
}

/* A box that plain numbers cannot do, in smaller ones. */
static void run_exactly(pass *s, bool backward, const box *whole, int64_t lanes)
{
    const fold *f = backward ? &s->cells[1] : &s->windows[1];
    char *base[OPERANDS];
    memcpy(base, s->base, sizeof base);
    plan_pass(s, true, backward, lanes);
    for (int64_t lane = 0, most = f->lanes; lane < lanes; lane += most) {
        box b = first_part(f, whole);
        set_lanes(s, true, base, lane, min_i64(most, lanes - lane));
        do {
            s->fresh = b.from[0] == whole->from[0];
            run_box(s, true, backward, &b);
        } while (next_part(f, whole, &b));
    }
    memcpy(s->base, base, sizeof base);
}

/* A box by a scale of its own, or exactly; with a ring all boxes below it, too. False if those
 * below are still to do. */
static bool run_again(pass *s, bool backward, const box *whole, box *b)
{
    const fold *f = backward ? &s->cells[0] : &s->windows[0];
    s->fresh = true;
    if (find_scale(s)) {
        run_box(s, false, backward, b);
        if (is_sound(s)) /* a ring that is filled again may be not */
            return false;
    }
    if (f->ring)
        b->count[0] = whole->from[0] + whole->count[0] - b->from[0];
    run_exactly(s, backward, b, f->lanes);
    return true;
}

static void run_boxes(pass *s, bool backward, const box *whole)
{
    const fold *f = backward ? &s->cells[0] : &s->windows[0];
    box b = first_part(f, whole);
    s->fresh = true;
    do {
        s->fresh |= b.from[0] == whole->from[0];
        run_box(s, false, backward, &b);
        s->fresh = !is_sound(s) && run_again(s, backward, whole, &b);
    } while (next_part(f, whole, &b));
}

static void run_weighted(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                         const tarn_numbers *numbers)
{
    pass s;
    tarn_slab slab;
    const bool backward = t->base[TARN_GX] != NULL;
    const fold *f = backward ? &s.cells[0] : &s.windows[0];
    start_pass(&s, p, numbers);
    s.any_will_do = !backward && !t->base[TARN_DY] && p->op == TARN_LP &&
                    (p->power == 1.0 || (p->power == 2.0 && !numbers->full));
    plan_pass(&s, false, backward, p->lanes);
    const int64_t most = f->lanes;
    while (next_slab(p, t, f->axis[0].results, &begin, end, &slab))
        for (int64_t lane = 0; lane < p->lanes; lane += most) {
            const box whole = whole_box(f, &slab);
            set_lanes(&s, false, slab.base, lane, min_i64(most, p->lanes - lane));
            run_boxes(&s, backward, &whole);
        }
}

/* ---- Max and min ---------------------------------------------------------------------------- */

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

/* ---- The gradient's problem ----------------------------------------------------------------- */

static bool is_global(const tarn_axis *axis)
{
    return axis->out == 1 &&
           (axis->adaptive || (axis->kernel == axis->size && axis->lo == 0 && axis->dilation == 1));
}

/* Makes one axis of two that a global window covers, if both tensors of cells lie so; here the
 * order of taps does not matter. Returns how many units a unit of the first axis has become. */
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

/* ---- Entry points --------------------------------------------------------------------------- */

#define KERNEL(name, dtype, run, numbers)                                                          \
    void tarn_portable_##name##_##dtype(const tarn_problem *p, const tarn_tensors *t,              \
                                        int64_t begin, int64_t end)                                \
    {                                                                                              \
        run(p, t, begin, end, &dtype##_##numbers);                                                 \
    }
#define KERNELS(dtype, run_ties)                                                                   \
    WIDE_NUMBERS(dtype)                                                                            \
    SUM_NUMBERS(dtype)                                                                             \
    KERNEL(smooth, dtype, run_weighted, wide)                                                      \
    KERNEL(smooth_vjp, dtype, run_weighted, wide)                                                  \
    KERNEL(lp, dtype, run_weighted, wide)                                                          \
    KERNEL(lp_vjp, dtype, run_weighted, wide)                                                      \
    KERNEL(extreme_jvp, dtype, run_ties, sum)                                                      \
    KERNEL(extreme_vjp, dtype, run_ties, sum)
KERNELS(f64, run_f64)
KERNELS(f32, run_f32)
KERNELS(f16, run_f32)
KERNELS(bf16, run_f32)
