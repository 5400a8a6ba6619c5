/* Without saved winners: the forward engine finds those of some windows, in a buffer that is then
 * used as if it were the saved ones. Whole planes, as many as the buffer holds; or boxes of cells.
 * Where boxes would be so small that windows are found again and again, the part of gx that is
 * not yet written lends its memory.
 */
#include "winners_found.h"

#include "../dispatch.h"

enum { ALIGNMENT = 64 };

/* ---- A box of cells, with the windows that read them ---------------------------------------- */

range tarn_windows_of_cells(const tarn_axis *axis, range cells)
{
    range windows = tarn_windows_reading(axis, cells);
    int64_t first = min_i64(windows.lo, axis->out - 1);
    return (range){first, max_i64(windows.hi, first + 1)};
}

/* The problem in the box's planes and lanes, with winners that lie densely, as y would. */
static tarn_problem part_of(const tarn_problem *p, const found_box *b)
{
    tarn_problem part = *p;
    int64_t step = length(b->lanes);
    part.lanes = step;
    for (int a = p->spatial - 1; a >= 0; step *= length(b->windows[a--]))
        part.stride[OPERAND_SAVED][a] = part.stride[TARN_Y][a] = step;
    part.planes = b->planes;
    part.leading = b->planes > 1;
    for (int k = 0; k < OPERANDS && b->planes > 1; k++)
        part.lead_stride[k][0] =
            k == OPERAND_SAVED || k == TARN_Y ? step : p->lead_stride[k][p->leading - 1];
    part.lead_size[0] = b->planes;
    return part;
}

tarn_axis tarn_axis_of_windows(const tarn_axis *axis, range windows, int64_t *cell)
{
    tarn_axis part = *axis;
    int64_t start = window_start(axis, windows.lo), end = window_end(axis, windows.hi - 1);
    *cell = 0;
    if (length(windows) == axis->out)
        return part;
    *cell = min_i64(max_i64(start, 0), axis->size - 1);
    part.out = length(windows);
    part.size = max_i64(min_i64(end, axis->size) - *cell, 1);
    part.origin += *cell;
    part.first += windows.lo;
    if (axis->adaptive)
        return part;
    part.lo = *cell - start;
    part.hi =
        max_i64(start + extent_of(&part) + (part.out - 1) * part.stride - *cell - part.size, 0);
    return part;
}

__attribute__((noinline)) void tarn_find_box(const tarn_problem *p, char *const *base,
                                             const found_box *b, const tarn_row_ops *ops)
{
    tarn_problem part = part_of(p, b);
    int64_t cell[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++)
        part.axis[a] = tarn_axis_of_windows(&p->axis[a], b->windows[a], &cell[a]);
    int64_t first = offset_of(p, TARN_X, cell) + b->lanes.lo;
    tarn_tensors t = {.base = {[TARN_X] = base[TARN_X] + first * p->element_bytes[TARN_X],
                               [OPERAND_SAVED] = b->winners}};
    (b->lanes_find ? tarn_engine_lanes : tarn_engine_forward)(&part, &t, 0,
                                                              part.planes * part.axis[0].out, ops);
}

__attribute__((noinline)) static void use_winners(const tarn_problem *p, char *const *base,
                                                  const found_box *b, const tarn_row_ops *ops)
{
    tarn_problem part = part_of(p, b);
    int64_t first = 0, lanes = b->lanes.lo;
    for (int a = 0; a < p->spatial; a++)
        first += b->windows[a].lo * part.stride[OPERAND_SAVED][a];
    tarn_tensors t = {
        .base = {[TARN_GY] = base[TARN_GY] + lanes * p->element_bytes[TARN_GY],
                 [TARN_GX] = base[TARN_GX] + lanes * p->element_bytes[TARN_GX],
                 [OPERAND_SAVED] = b->winners - first * p->element_bytes[OPERAND_SAVED]}};
    int64_t units = (b->planes - 1) * p->axis[0].size;
    tarn_run_winners(&part, &t, b->cells[0].lo, units + b->cells[0].hi, b->cells, ops);
}

static void run_box(const tarn_problem *p, char *const *base, found_box *b, const tarn_row_ops *ops)
{
    for (int a = 0; a < p->spatial; a++)
        b->windows[a] = tarn_windows_of_cells(&p->axis[a], b->cells[a]);
    tarn_find_box(p, base, b, ops);
    use_winners(p, base, b, ops);
}

/* ---- Boxes that fit ------------------------------------------------------------------------- */

/* A buffer for winners, and who finds them: the engine that does it in the forward pass. That of
 * lanes needs most of the stack itself. */
enum { ROOM_BESIDE_LANES = 1 << 10 };

typedef struct found_room {
    char *winners;
    int64_t bytes;
    bool lanes_find;
} found_room;

static bool winners_fit(const tarn_problem *p, const found_room *r, const int64_t *size,
                        int64_t lanes)
{
    int64_t room = r->bytes / p->element_bytes[OPERAND_SAVED] / lanes, windows = 1;
    for (int a = 0; a < p->spatial && windows <= room; a++) {
        const tarn_axis *axis = &p->axis[a];
        int64_t most = axis->adaptive ? muldiv_ceil(size[a], axis->windows, axis->whole) + 1
                                      : (size[a] + extent_of(axis) - 2) / axis->stride + 2;
        windows *= min_i64(min_i64(most, axis->out), room + 1);
    }
    return windows <= room;
}

/* Lanes that a box must keep: where channels fill vectors of 16 bytes, the engine of lanes was
 * chosen for that. */
static int64_t least_lanes(const tarn_problem *p, const found_room *r)
{
    int64_t vector = 16 / p->element_bytes[TARN_X];
    return r->lanes_find && p->lanes >= vector ? vector : 1;
}

/* Cells of boxes, and lanes. What has most cells for its windows is halved, or many lanes. */
static bool cut_boxes(const tarn_problem *p, const found_room *r, int64_t *size, int64_t *lanes)
{
    enum { MUCH = 2, MANY_LANES = 64, FEW_LANES = 16 };
    *lanes = p->lanes;
    for (int a = 0; a < p->spatial; a++)
        size[a] = p->axis[a].size;
    while (!winners_fit(p, r, size, *lanes)) {
        int64_t half = ceil_div(*lanes, 2);
        bool halves = half < *lanes && half >= least_lanes(p, r);
        int best = -1;
        double most = 0;
        for (int a = 0; a < p->spatial; a++) {
            double times = (double)size[a] / (double)extent_of(&p->axis[a]);
            if (size[a] > 1 && times > most) {
                most = times;
                best = a;
            }
        }
        if (halves && (*lanes > MANY_LANES || (*lanes > FEW_LANES && most < MUCH) || most < 1))
            *lanes = half;
        else if (best >= 0)
            size[best] = ceil_div(size[best], 2);
        else
            return false;
    }
    return true;
}

static void run_boxes(const tarn_problem *p, const tarn_slab *slab, const found_room *r,
                      const tarn_row_ops *ops)
{
    int64_t size[TARN_MAX_SPATIAL], lanes;
    found_box b = {.planes = 1, .winners = r->winners, .lanes_find = r->lanes_find};
    if (!cut_boxes(p, r, size, &lanes)) {
        tarn_find_huge(p, slab, r->winners, ops);
        return;
    }
    range all[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++)
        all[a] = a == 0 ? (range){slab->lo, slab->hi} : (range){0, p->axis[a].size};
    for (int64_t lane = 0; lane < p->lanes; lane += lanes) {
        b.lanes.lo = min_i64(lane, p->lanes - lanes); /* the last overlaps, and does it again */
        b.lanes.hi = b.lanes.lo + lanes;
        tarn_first_box(b.cells, all, size, p->spatial);
        do
            run_box(p, slab->base, &b, ops);
        while (tarn_next_box(b.cells, all, size, p->spatial));
    }
}

/* ---- Winners in gx -------------------------------------------------------------------------- */

static bool is_dense(const tarn_problem *p, int operand)
{
    int64_t step = p->lanes;
    for (int a = p->spatial - 1; a >= 0; step *= p->axis[a--].size)
        if (p->axis[a].size > 1 && p->stride[operand][a] != step)
            return false;
    return true;
}

/* How many cells on the first axis, from `lo` on, leave room for their winners before `hi`. */
static int64_t cells_before_winners(const tarn_problem *p, int64_t lo, int64_t hi)
{
    int64_t row = p->stride[TARN_GX][0] * p->element_bytes[TARN_GX];
    int64_t window = p->lanes * p->element_bytes[OPERAND_SAVED], least = 0, most = hi - lo - 1;
    for (int a = 1; a < p->spatial; a++) {
        if (window > INT64_MAX / p->axis[a].out)
            return 0;
        window *= p->axis[a].out;
    }
    while (least < most) {
        int64_t n = least + (most - least + 1) / 2, bytes = (hi - lo - n) * row - ALIGNMENT;
        if (length(tarn_windows_of_cells(&p->axis[0], (range){lo, lo + n})) <= bytes / window)
            least = n;
        else
            most = n - 1;
    }
    return least;
}

/* The first cells of a slab, whose winners are put into the memory of those behind them, which come
 * after. The slab is left with those that have too few behind them. */
static void lend_gx(const tarn_problem *p, tarn_slab *slab, const found_room *r,
                    const tarn_row_ops *ops)
{
    found_box b = {.planes = 1, .lanes = {0, p->lanes}, .lanes_find = r->lanes_find};
    const int64_t few = p->axis[0].adaptive ? 2 : 3; /* fewer cells at a time do not pay */
    if (!is_dense(p, TARN_GX) || p->axis[0].size == 1)
        return;
    for (int a = 1; a < p->spatial; a++)
        b.cells[a] = (range){0, p->axis[a].size};
    for (;; slab->lo = b.cells[0].hi) {
        int64_t n = cells_before_winners(p, slab->lo, slab->hi);
        if (n == 0 || few * n < slab->hi - slab->lo)
            return;
        b.cells[0] = (range){slab->lo, slab->lo + n};
        b.winners =
            slab->base[TARN_GX] + b.cells[0].hi * p->stride[TARN_GX][0] * p->element_bytes[TARN_GX];
        b.winners += -(uintptr_t)b.winners % ALIGNMENT;
        run_box(p, slab->base, &b, ops);
    }
}

/* All winners of some planes at once, in the memory of the last cells: of the last planes, or units
 * of a single one. Those that these need are copied to the buffer before cells are written; returns
 * the planes that were done, less than all where they do not fit. */
static int64_t find_planes(const tarn_problem *p, const tarn_slab *slab, int64_t planes,
                           const found_room *r, const tarn_row_ops *ops)
{
    enum {
        MUCH = 128 << 10,
        FEW = 6
    }; /* bytes, that stay in caches; planes of which one is lent */
    found_box b = {.lanes = {0, p->lanes}, .lanes_find = r->lanes_find};
    int64_t size = p->axis[0].size, unit = p->stride[TARN_GX][0] * p->element_bytes[TARN_GX],
            windows = p->lanes * p->element_bytes[OPERAND_SAVED];
    if (!is_dense(p, TARN_GX) || size == 1)
        return 0;
    for (int a = p->spatial - 1; a >= 0; a--) {
        b.cells[a] = (range){0, p->axis[a].size};
        b.windows[a] = (range){0, p->axis[a].out};
        if (windows > (INT64_C(1) << 40) / p->axis[a].out)
            return 0;
        windows *= p->axis[a].out; /* bytes of a plane's */
    }
    bool several = planes >= FEW && FEW * windows <= MUCH && FEW * windows <= size * unit &&
                   p->lead_stride[TARN_GX][p->leading - 1] == size * p->stride[TARN_GX][0];
    b.planes = several ? min_i64(planes, MUCH / windows) : 1;
    int64_t whole = several ? size * unit : unit, all = several ? b.planes : size,
            behind = ceil_div(windows * b.planes + ALIGNMENT, whole), done = b.planes;
    if (behind >= all || (!several && windows <= r->bytes))
        return 0;
    range last = {0, behind};
    if (!several) {
        windows /= p->axis[0].out;
        last = tarn_windows_of_cells(&p->axis[0], (range){size - behind, size});
    }
    bool copied = length(last) <= r->bytes / windows;
    if (!several && !copied)
        return 0;
    b.winners = slab->base[TARN_GX] + (all - behind) * whole;
    b.winners += -(uintptr_t)b.winners % ALIGNMENT;
    tarn_find_box(p, slab->base, &b, ops);
    if (copied)
        memcpy(r->winners, b.winners + (several ? all - behind : last.lo) * windows,
               (size_t)(length(last) * windows));
    if (several)
        b.planes -= behind;
    else
        b.cells[0].hi -= behind;
    use_winners(p, slab->base, &b, ops);
    if (!copied)
        return b.planes;
    char *base[OPERANDS];
    memcpy(base, slab->base, sizeof base);
    for (int k = 0; k < OPERANDS && several; k++)
        if (base[k])
            base[k] += b.planes * p->lead_stride[k][p->leading - 1] * p->element_bytes[k];
    b.planes = several ? behind : 1;
    if (!several) {
        b.cells[0] = (range){size - behind, size};
        b.windows[0] = last;
    }
    b.winners = r->winners;
    use_winners(p, base, &b, ops);
    return done;
}

/* A plane whose winners are put into the memory of the next one, which comes after; false if they
 * do not fit there. */
static bool lend_next_plane(const tarn_problem *p, const tarn_tensors *t, int64_t unit,
                            const tarn_slab *slab, bool lanes_find, const tarn_row_ops *ops)
{
    found_box b = {.planes = 1, .lanes = {0, p->lanes}, .lanes_find = lanes_find};
    int64_t size = p->axis[0].size, windows = p->lanes * p->element_bytes[OPERAND_SAVED],
            room = size * p->stride[TARN_GX][0] * p->element_bytes[TARN_GX] - ALIGNMENT;
    if (!is_dense(p, TARN_GX) || size == 1)
        return false;
    for (int a = 0; a < p->spatial; a++) {
        b.cells[a] = (range){0, p->axis[a].size};
        if (windows > room / p->axis[a].out)
            return false;
        windows *= p->axis[a].out;
    }
    tarn_slab next;
    unit += size;
    next_slab(p, t, size, &unit, unit + 1, &next);
    b.winners = next.base[TARN_GX] + -(uintptr_t)next.base[TARN_GX] % ALIGNMENT;
    run_box(p, slab->base, &b, ops);
    return true;
}

/* ---- Units ---------------------------------------------------------------------------------- */

static bool fits_whole(const tarn_problem *p, const found_room *r)
{
    int64_t size[TARN_MAX_SPATIAL];
    for (int a = 0; a < p->spatial; a++)
        size[a] = p->axis[a].size;
    return winners_fit(p, r, size, p->lanes);
}

/* Planes whose winners fit. */
static int64_t planes_together(const tarn_problem *p, const found_room *r, int64_t planes)
{
    int64_t room = r->bytes / p->element_bytes[OPERAND_SAVED] / p->lanes;
    for (int a = 0; a < p->spatial; a++)
        room /= p->axis[a].out;
    return max_i64(min_i64(room, planes), 1);
}

/* What is left of a plane goes in boxes of rows, which leave more room on the stack. */
__attribute__((noinline)) static void find_rest(const tarn_problem *p, const tarn_slab *slab,
                                                const tarn_row_ops *ops)
{
    enum { REST_BYTES = FOUND_BYTES - 2 * ROOM_BESIDE_LANES }; /* that room is taken already */
    _Alignas(ALIGNMENT) char winners[REST_BYTES];
    run_boxes(p, slab, &(found_room){winners, REST_BYTES, false}, ops);
}

static void find_units(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const found_room *r, const tarn_row_ops *ops)
{
    tarn_slab slab;
    while (begin < end) {
        int64_t first = begin, planes = tarn_whole_planes(p, begin, end), done = 0;
        found_box b = {.lanes = {0, p->lanes}, .winners = r->winners, .lanes_find = r->lanes_find};
        b.planes = planes_together(p, r, planes);
        next_slab(p, t, p->axis[0].size, &begin, end, &slab);
        if (planes > b.planes || planes == 1)
            done = find_planes(p, &slab, planes, r, ops);
        if (done > 0) {
            begin = first + done * p->axis[0].size;
        } else if (b.planes > 1) {
            for (int a = 0; a < p->spatial; a++)
                b.cells[a] = (range){0, p->axis[a].size};
            run_box(p, slab.base, &b, ops);
            begin += (b.planes - 1) * p->axis[0].size;
        } else if (fits_whole(p, r)) {
            run_boxes(p, &slab, r, ops);
        } else if (planes < 2 || !lend_next_plane(p, t, first, &slab, r->lanes_find, ops)) {
            lend_gx(p, &slab, r, ops);
            if (r->lanes_find && !p->axis[0].adaptive)
                find_rest(p, &slab, ops);
            else
                run_boxes(p, &slab, r, ops);
        }
    }
}

__attribute__((noinline)) static void find_by_rows(const tarn_problem *p, const tarn_tensors *t,
                                                   int64_t begin, int64_t end,
                                                   const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char winners[FOUND_BYTES];
    found_room room = {winners, FOUND_BYTES, false};
    int64_t size[TARN_MAX_SPATIAL], lanes;
    if (p->axis[p->spatial - 1].window_step > MOST_CHAINS && !cut_boxes(p, &room, size, &lanes))
        tarn_spec(p, t, begin, end);
    else
        find_units(p, t, begin, end, &room, ops);
}

__attribute__((noinline)) static void find_by_lanes(const tarn_problem *p, const tarn_tensors *t,
                                                    int64_t begin, int64_t end,
                                                    const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char winners[ROOM_BESIDE_LANES];
    find_units(p, t, begin, end, &(found_room){winners, ROOM_BESIDE_LANES, true}, ops);
}

void tarn_find_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const tarn_row_ops *ops)
{
    int64_t size[TARN_MAX_SPATIAL], lanes;
    found_room beside_lanes = {.bytes = ROOM_BESIDE_LANES, .lanes_find = true};
    bool fits = cut_boxes(p, &beside_lanes, size, &lanes);
    (fits && tarn_lanes_find_winners(p, ops->vector_bytes) ? find_by_lanes
                                                           : find_by_rows)(p, t, begin, end, ops);
}
