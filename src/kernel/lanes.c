/* The engine "lanes": what is computed in, boxes, and what takes the lanes. See lanes.h for the
 * idea. */
#include "lanes.h"
#include "engines.h"

static tarn_engine_pass run_pass;

void tarn_engine_lanes(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const tarn_row_ops *ops)
{
    run_passes(run_pass, p, t, begin, end, ops);
}

/* ---- What is computed in -------------------------------------------------------------------- */

static void set_types(lanes_plan *plan)
{
    const tarn_problem *p = plan->p;
    plan->element = plan->bytes = p->element_bytes[TARN_X];
    if (!plan->sums) {
        plan->key = key_of(p->dtype, plan->by_order);
        plan->flip = flip_of(p, plan->key);
    } else if (plan->element < 8)
        plan->bytes = p->dtype == TARN_I32 || p->dtype == TARN_U32 ? 8 : 4;
}

/* ---- Boxes ---------------------------------------------------------------------------------- */

/* Those of them that are read, if rows between windows are left out. */
static int64_t rows_of(const tarn_axis *axis, int64_t n)
{
    int64_t cells = cells_of(axis, n);
    return axis->adaptive ? cells : min_i64(cells, n * ((axis->kernel - 1) * axis->dilation + 1));
}

/* Of a box: cells, and the runs of them that are turned in one go, which go on over axes that are
 * read from end to end. */
typedef struct {
    int64_t cells, runs, run_cells, outputs, row_outputs;
} extent;

static extent extent_of(const lanes_plan *plan, const int64_t *n)
{
    const tarn_problem *p = plan->p;
    int last = p->spatial - 1;
    extent e = {1, 1, 1, 1, n[last]};
    bool whole = true;
    for (int a = last; a >= 0; a--) {
        int64_t cells = cells_of(&plan->axis[a], n[a]);
        whole = whole && !(plan->banded && a == 0 && last > 0) &&
                (p->stride[plan->in][a] == e.cells * plan->channels || cells == 1);
        e.runs *= whole ? 1 : rows_of(&plan->axis[a], n[a]);
        e.run_cells *= whole ? cells : 1;
        e.cells *= cells;
        e.outputs *= n[a];
    }
    return e;
}

/* Runs of n windows along an axis: those inside x are one, others each may be one. */
static int64_t most_runs(const tarn_axis *axis, int64_t n)
{
    int64_t inside = axis->size - 1 - (axis->kernel - 1) * axis->dilation;
    if (axis->adaptive || inside < 0)
        return n;
    int64_t before = (axis->lo + axis->stride - 1) / axis->stride,
            behind = axis->out - 1 - (inside + axis->lo) / axis->stride;
    return min_i64(n, before + 1 + max_i64(behind, 0));
}

/* Lays the arena out for boxes of n outputs; false if that does not fit. Turned results wait for
 * the whole box, and their codes are turned back to where the tile was. */
static bool set_arena(lanes_plan *plan, const int64_t *n)
{
    extent e = extent_of(plan, n);
    int64_t kept = plan->turned ? e.outputs : e.row_outputs, tile = 0;
    int64_t values = plan->in_place ? 0 : kept;
    if (plan->turned)
        tile = max_i64(e.cells * plan->element, e.outputs * (plan->codes ? plan->bytes : 0));
    plan->tile_bytes = (tile * plan->lanes + 63) / 64 * 64;
    plan->value_bytes = (values * plan->lanes * plan->bytes + 63) / 64 * 64;
    return most_runs(&plan->axis[plan->p->spatial - 1], e.row_outputs) <= MOST_RUNS &&
           plan->tile_bytes + plan->value_bytes +
                   (plan->codes && !plan->saves ? kept * plan->lanes * plan->bytes : 0) <=
               LANE_ARENA_BYTES;
}

/* Whether a single window fits, if it is found to be odd. */
static bool fits_by_order(const lanes_plan *plan, const int64_t *n)
{
    lanes_plan ordered = *plan;
    ordered.codes = !plan->sums;
    ordered.in_place = plan->in_place && plan->sums;
    ordered.saves = false;
    return set_arena(&ordered, n);
}

/* What a box costs for each output, but for its taps, in nanoseconds of one machine: turning runs
 * of elements, rows of windows, and what each lane takes by itself. */
static double box_cost(const lanes_plan *plan, const int64_t *n)
{
    extent e = extent_of(plan, n);
    double width = (double)plan->width,
           words = (double)(e.run_cells * plan->channels * plan->element) / 4;
    double runs = (double)e.runs * (30 + 0.07 * words * width),
           lanes = width * (plan->codes ? 90 : 45);
    return (runs + 50 * (double)(e.outputs / e.row_outputs) + lanes) / (double)e.outputs;
}

/* Lets a box grow on axis `a` as far as it fits and does not cost more. */
static bool grow(lanes_plan *plan, int a, int64_t by)
{
    int64_t *n = &plan->most[a], keep = *n;
    double cost = box_cost(plan, plan->most);
    *n = min_i64(keep + by, plan->axis[a].out);
    if (*n > keep && set_arena(plan, plan->most) && box_cost(plan, plan->most) <= cost)
        return true;
    *n = keep;
    return false;
}

/* A box that grows from the last axis on, and one that grows on all axes alike: what costs less.
 * False if not even one window fits. */
static bool set_box(lanes_plan *plan)
{
    int64_t *n = plan->most, other[TARN_MAX_SPATIAL];
    int spatial = plan->p->spatial, first = plan->turned ? 0 : spatial - 1;
    for (int a = 0; a < spatial; a++)
        n[a] = other[a] = 1;
    if (!fits_by_order(plan, n) || !set_arena(plan, n))
        return false;
    for (int a = first; a < spatial; a++)
        n[a] = plan->axis[a].out;
    if (set_arena(plan, n))
        return true;
    for (int a = first; a < spatial; a++)
        n[a] = 1;
    for (bool grows = true; grows;) {
        grows = false;
        for (int a = spatial - 1; a >= first; a--)
            grows |= grow(plan, a, (n[a] + 1) / 2);
    }
    for (int a = first; a < spatial; a++) {
        other[a] = n[a];
        n[a] = 1;
    }
    for (int a = spatial - 1; a >= first; a--)
        for (int64_t by = plan->axis[a].out; by > 0; by /= 2)
            grow(plan, a, by);
    if (box_cost(plan, other) < box_cost(plan, n))
        memcpy(n, other, sizeof other);
    for (int a = first; a < spatial; a++) { /* of about the same size */
        int64_t boxes = (plan->axis[a].out + n[a] - 1) / n[a];
        n[a] = (plan->axis[a].out + boxes - 1) / boxes;
    }
    return set_arena(plan, n);
}

/* Channels that go together: all, or as many as leave room for a few windows. */
static void set_channels(lanes_plan *plan)
{
    enum { MOST_BYTES = 4 << 10 };
    int64_t lanes = plan->p->lanes, vector = plan->ops->vector_bytes / plan->bytes;
    int64_t blocks = (lanes * plan->bytes + MOST_BYTES - 1) / MOST_BYTES;
    plan->channels = min_i64(lanes, ((lanes + blocks - 1) / blocks + vector - 1) / vector * vector);
    plan->lanes = plan->channels;
    set_box(plan);
}

/* Whether pixels fill vectors of some family. */
static bool has_channels(const tarn_problem *p)
{
    return p->lanes * p->element_bytes[TARN_X] >= 16;
}

/* Whether a pixel goes as a part of a vector, as it is no whole shorter one. */
static bool fits_part(const lanes_plan *plan)
{
    const int64_t pixel = plan->p->lanes * plan->bytes;
    return plan->ops->part_lanes && (pixel & (pixel - 1)) != 0;
}

static void set_plan(lanes_plan *plan, const tarn_tensors *t)
{
    const tarn_problem *p = plan->p;
    plan->sums = p->op == TARN_AVG;
    plan->other = t->base[TARN_INDICES] ? TARN_INDICES : t->base[TARN_DY] ? TARN_DY : -1;
    plan->codes = !plan->sums && (t->base[OPERAND_SAVED] || plan->other >= 0);
    plan->turned = !has_channels(p);
    plan->width = 1;
    memcpy(plan->axis, p->axis, sizeof plan->axis);
    set_types(plan);
    if (plan->turned)
        return;
    plan->in_place = plan->sums || t->base[TARN_Y] != NULL;
    plan->saves = plan->codes && plan->other < 0 && p->element_bytes[OPERAND_SAVED] == 1;
    while (p->lanes * plan->bytes < plan->ops->vector_bytes && !fits_part(plan))
        plan->ops = plan->ops->narrower;
    set_channels(plan);
}

/* ---- Lanes of planes and bands -------------------------------------------------------------- */

/* The axes for `windows` windows on the first one: of bands, each as if x had no border there.
 * False if a window does not fit then. */
static bool set_turned(lanes_plan *plan, const tarn_row_ops *ops, bool banded, int64_t windows)
{
    const tarn_problem *p = plan->p;
    plan->channels = p->lanes;
    plan->banded = banded;
    plan->axis[0] = p->axis[0];
    if (banded) {
        plan->axis[0].size = INT64_MAX / 4;
        plan->axis[0].lo = 0;
        plan->axis[0].out = windows;
    }
    plan->ops = ops;
    plan->width = ops->vector_bytes / plan->element;
    plan->lanes = plan->width * plan->channels;
    return set_box(plan);
}

static void run_boxes(lanes_state *s, const lanes_plan *plan, const lanes_box *all);

static void set_origins(lanes_state *s, const lanes_plan *plan)
{
    const tarn_axis *axis = &plan->p->axis[0];
    for (int k = 0; k < plan->width; k++) {
        int64_t origin = plan->banded ? s->lane[k].start * axis->stride - axis->lo : 0;
        s->in[k] = s->lane[k].base[plan->in];
        s->origin[k] = origin;
        s->least_origin = k == 0 ? origin : min_i64(s->least_origin, origin);
        s->most_origin = k == 0 ? origin : max_i64(s->most_origin, origin);
    }
}

/* Windows [lo,hi) on the first axis of all lanes. */
static void run_lanes(lanes_state *s, const lanes_plan *plan, int64_t lo, int64_t hi)
{
    lanes_box all = {.o = {0}};
    set_origins(s, plan);
    for (int a = 0; a < plan->p->spatial; a++)
        all.n[a] = plan->p->axis[a].out;
    all.o[0] = lo;
    all.n[0] = hi - lo;
    run_boxes(s, plan, &all);
}

/* Into how many bands each of `planes` planes of `rows` windows is cut: so that lanes are filled,
 * and bands share little. */
static int64_t count_bands(const tarn_axis *axis, int64_t planes, int64_t rows, int64_t width)
{
    int64_t best = 1,
            extent_less_stride = max_i64((axis->kernel - 1) * axis->dilation + 1 - axis->stride, 0);
    double least = 0;
    int64_t most = axis->adaptive || axis->out == 1 ? 1 : min_i64(width, rows);
    for (int64_t bands = 1; bands <= most; bands++) {
        int64_t height = (rows + bands - 1) / bands, used = (rows + height - 1) / height;
        int64_t batches = (planes * used + width - 1) / width;
        double cost = (double)batches * (double)(height * axis->stride + extent_less_stride);
        if (bands == 1 || cost < least) {
            least = cost;
            best = used;
        }
    }
    return best;
}

/* What all of it costs. Bands of a line or a volume lie far apart, and means of a line have a
 * divisor each. */
static double cost_of(const lanes_plan *plan, int64_t lanes)
{
    const int spatial = plan->p->spatial;
    const double apart = !plan->banded || spatial == 2 ? 1 : spatial == 1 && plan->sums ? 8 : 1.3;
    double fold = (plan->codes ? 1.2 : 0.7) * (double)plan->channels,
           outputs = (double)((lanes - 1) / plan->width + 1);
    for (int a = 0; a < spatial; a++) {
        fold *= (double)plan->axis[a].kernel;
        outputs *= (double)plan->axis[a].out;
    }
    return outputs * (fold + box_cost(plan, plan->most)) * apart;
}

/* Whether a box has all the windows of a lane. */
static bool has_whole_box(const lanes_plan *plan)
{
    for (int a = 0; a < plan->p->spatial; a++)
        if (plan->most[a] < plan->axis[a].out)
            return false;
    return true;
}

/* The length of vectors that costs least, and whether planes are cut into bands: longer ones have
 * boxes of fewer windows, which share less, and may have more lanes than there is work for. Returns
 * the bands of each of `planes` planes of `rows` rows. */
static int64_t set_width(lanes_plan *plan, const tarn_row_ops *ops, int64_t planes, int64_t rows)
{
    int64_t least_bands = 0, most_lanes = planes * (plan->p->axis[0].adaptive ? 1 : rows);
    lanes_plan least = *plan;
    while (ops->narrower && most_lanes * plan->element <= ops->narrower->vector_bytes)
        ops = ops->narrower; /* there is not more work at once */
    for (; ops; ops = ops->narrower) {
        int64_t width = ops->vector_bytes / plan->element;
        int64_t most = count_bands(&plan->p->axis[0], planes, rows, width);
        for (int64_t bands = most; bands > 0; bands = bands > 1 ? 1 : 0)
            if (set_turned(plan, ops, bands > 1, (rows + bands - 1) / bands) &&
                (least_bands == 0 ||
                 cost_of(plan, planes * bands) < cost_of(&least, planes * least_bands))) {
                least = *plan;
                least_bands = bands;
            }
        if (most == 1 && least_bands > 0 && has_whole_box(&least) && planes >= width)
            break; /* nothing is read twice */
    }
    *plan = least;
    return least_bands;
}

/* The slabs of units [begin,end), which have the same rows [lo,hi), in bands; a lane for each. */
static void run_slabs(lanes_state *s, lanes_plan *plan, const tarn_row_ops *ops,
                      const tarn_tensors *t, int64_t begin, int64_t planes, int64_t lo, int64_t hi)
{
    const tarn_problem *p = plan->p;
    int64_t rows = hi - lo, bands = set_width(plan, ops, planes, rows);
    int64_t height = (rows + bands - 1) / bands;
    tarn_lanes_begin(s, plan);
    tarn_slab slab;
    for (int64_t k = 0; k < planes * bands; k++) {
        int64_t unit = begin + k / bands * p->axis[0].out;
        lanes_lane *lane = &s->lane[s->used];
        next_slab(p, t, p->axis[0].out, &unit, unit + 1, &slab);
        memcpy(lane->base, slab.base, sizeof lane->base);
        lane->start = bands > 1 ? min_i64(lo + k % bands * height, hi - height) : 0;
        if (++s->used < plan->width && k + 1 < planes * bands)
            continue;
        for (int idle = s->used; idle < plan->width; idle++) /* do the same again */
            s->lane[idle] = s->lane[0];
        run_lanes(s, plan, bands > 1 ? 0 : lo, bands > 1 ? height : hi);
        s->used = 0;
    }
}

static void run_turned(lanes_state *s, lanes_plan *plan, const tarn_tensors *t, int64_t begin,
                       int64_t end)
{
    const tarn_row_ops *ops = plan->ops;
    int64_t rows = plan->p->axis[0].out, width = ops->vector_bytes / plan->element;
    while (begin < end) {
        int64_t lo = begin % rows, planes = 1, hi = min_i64(rows, lo + end - begin);
        if (lo == 0 && hi == rows) {
            planes = (end - begin) / rows;
            if (planes > width) /* fill all lanes; what is left comes last */
                planes -= planes % width;
        }
        run_slabs(s, plan, ops, t, begin, planes, lo, hi);
        begin += planes * (hi - lo);
    }
}

/* ---- Lanes of channels ---------------------------------------------------------------------- */

static void move_lane(lanes_state *s, const tarn_problem *p, char *const *base, int64_t channel)
{
    for (int k = 0; k < OPERANDS; k++)
        s->lane[0].base[k] = base[k] ? base[k] + channel * p->element_bytes[k] : NULL;
}

static void run_channels(lanes_state *s, const lanes_plan *plan, const tarn_tensors *t,
                         int64_t begin, int64_t end)
{
    const tarn_problem *p = plan->p;
    tarn_slab slab;
    tarn_lanes_begin(s, plan);
    while (next_slab(p, t, p->axis[0].out, &begin, end, &slab))
        for (int64_t channel = 0; channel < p->lanes; channel += plan->channels) {
            int64_t first = min_i64(channel, p->lanes - plan->channels); /* the last overlaps */
            move_lane(s, p, slab.base, first);
            s->lane[0].start = 0;
            s->used = 1;
            run_lanes(s, plan, slab.lo, slab.hi);
        }
}

static void run_pass(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                     const tarn_row_ops *ops, int in, int out)
{
    _Alignas(64) char arena[LANE_ARENA_BYTES + SCRATCH_SLACK];
    lanes_state s;
    lanes_plan plan = {.p = p, .ops = ops, .in = in, .out = out};
    s.arena = arena;
    s.used = 0;
    set_plan(&plan, t);
    if (has_channels(p))
        run_channels(&s, &plan, t, begin, end);
    else
        run_turned(&s, &plan, t, begin, end);
}

/* ---- Boxes of outputs ----------------------------------------------------------------------- */

/* The box holds NaN, or zeros that keys cannot order: once more, in the order of the contract. */
static void run_by_order(lanes_state *s, const lanes_plan *plan, const lanes_box *box)
{
    lanes_plan ordered = *plan;
    ordered.by_order = ordered.codes = true;
    ordered.in_place = ordered.saves = false;
    set_types(&ordered);
    set_box(&ordered);
    tarn_lanes_begin(s, &ordered);
    run_boxes(s, &ordered, box);
    tarn_lanes_begin(s, plan);
}

static void run_boxes(lanes_state *s, const lanes_plan *plan, const lanes_box *all)
{
    int spatial = plan->p->spatial;
    lanes_box box;
    memcpy(box.o, all->o, sizeof box.o);
    for (;;) {
        for (int a = 0; a < spatial; a++)
            box.n[a] = min_i64(plan->most[a], all->o[a] + all->n[a] - box.o[a]);
        tarn_lanes_run_box(s, &box);
        if (s->odd)
            run_by_order(s, plan, &box);
        int a = spatial - 1;
        for (; a >= 0; a--) {
            box.o[a] += plan->most[a];
            if (box.o[a] < all->o[a] + all->n[a])
                break;
            box.o[a] = all->o[a];
        }
        if (a < 0)
            return;
    }
}
