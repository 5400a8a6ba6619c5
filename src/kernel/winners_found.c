/* Without saved winners: the engine of the forward pass finds them, and they are then used as if
 * they were saved. Their memory is the part of gx that is not yet written: behind some planes that
 * of the next ones; in the last plane its own end, from where the winners that are still needed
 * move on to what is left, until they fit a buffer. So they are found once, but for few cells at
 * the end; those, and planes that are not dense, go in boxes whose winners fit a buffer.
 */
#include "winners.h"

#include "../dispatch.h"

enum { ALIGNMENT = 64, WINNER_ALIGNMENT = 8 };

/* ---- A box of cells, with the windows that read them ---------------------------------------- */

range tarn_windows_of_cells(const tarn_axis *axis, range cells)
{
    range windows = tarn_windows_reading(axis, cells);
    int64_t first = min_i64(windows.lo, axis->out - 1);
    return (range){first, max_i64(windows.hi, first + 1)};
}

/* The problem in the box's planes and lanes, with winners that lie densely, as y would. */
static void set_part(tarn_problem *part, const tarn_problem *p, const found_box *b)
{
    int64_t step = length(b->lanes);
    *part = *p;
    part->lanes = step;
    for (int a = p->spatial - 1; a >= 0; step *= length(b->windows[a--]))
        part->stride[OPERAND_SAVED][a] = part->stride[TARN_Y][a] = step;
    part->planes = b->planes;
    part->leading = b->planes > 1;
    for (int k = 0; k < OPERANDS && b->planes > 1; k++)
        part->lead_stride[k][0] =
            k == OPERAND_SAVED || k == TARN_Y ? step : p->lead_stride[k][p->leading - 1];
    part->lead_size[0] = b->planes;
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
    tarn_problem part;
    int64_t cell[TARN_MAX_SPATIAL];
    set_part(&part, p, b);
    for (int a = 0; a < p->spatial; a++)
        part.axis[a] = tarn_axis_of_windows(&p->axis[a], b->windows[a], &cell[a]);
    int64_t first = offset_of(p, TARN_X, cell) + b->lanes.lo;
    tarn_tensors t = {.base = {[TARN_X] = base[TARN_X] + first * p->element_bytes[TARN_X],
                               [OPERAND_SAVED] = b->winners}};
    if (p->skips)
        tarn_find_counted(&part, &t, b->engine, ops);
    else
        b->engine(&part, &t, 0, part.planes * part.axis[0].out, ops);
}

__attribute__((noinline)) static void use_winners(const tarn_problem *p, char *const *base,
                                                  const found_box *b, const tarn_row_ops *ops)
{
    tarn_problem part;
    int64_t first = 0, lanes = b->lanes.lo;
    set_part(&part, p, b);
    for (int a = 0; a < p->spatial; a++)
        first += b->windows[a].lo * part.stride[OPERAND_SAVED][a];
    tarn_tensors t = {
        .base = {[TARN_GY] = base[TARN_GY] + lanes * p->element_bytes[TARN_GY],
                 [TARN_GX] = base[TARN_GX] + lanes * p->element_bytes[TARN_GX],
                 [OPERAND_SAVED] = b->winners - first * p->element_bytes[OPERAND_SAVED]}};
    int64_t units = (b->planes - 1) * p->axis[0].size;
    tarn_run_winners(&part, &t, b->cells[0].lo, units + b->cells[0].hi, b->cells, ops);
}

static void set_windows(const tarn_problem *p, found_box *b)
{
    for (int a = 0; a < p->spatial; a++)
        b->windows[a] = tarn_windows_of_cells(&p->axis[a], b->cells[a]);
}

static void run_box(const tarn_problem *p, char *const *base, found_box *b, const tarn_row_ops *ops)
{
    set_windows(p, b);
    tarn_find_box(p, base, b, ops);
    use_winners(p, base, b, ops);
}

/* ---- Boxes that fit a buffer ---------------------------------------------------------------- */

/* Whether a box of some cells has at most so many windows and cells. */
static bool box_fits(const tarn_problem *p, const int64_t *size, int64_t most_windows,
                     int64_t most_cells)
{
    int64_t windows = 1, cells = 1;
    for (int a = 0; a < p->spatial && windows <= most_windows && cells <= most_cells; a++) {
        windows *= min_i64(tarn_most_windows(&p->axis[a], size[a]), most_windows + 1);
        cells *= size[a];
    }
    return windows <= most_windows && cells <= most_cells;
}

/* What has most cells for its windows is halved; or lanes, down to a vector, where windows would
 * be found several times. */
bool tarn_cut_cells(const tarn_problem *p, int64_t windows, int64_t cells, int64_t vector,
                    double longer, int64_t *size, int64_t *lanes)
{
    enum { MUCH = 4 };
    for (int a = 0; a < p->spatial; a++)
        size[a] = p->axis[a].size;
    while (!box_fits(p, size, windows / *lanes, cells / *lanes)) {
        int best = -1;
        double most = 0;
        for (int a = 0; a < p->spatial; a++) {
            double times = (double)size[a] / (double)extent_of(&p->axis[a]);
            times /= a == p->spatial - 1 ? longer : 1;
            if (size[a] > 1 && times > most) {
                most = times;
                best = a;
            }
        }
        if (*lanes > 1 && ((*lanes > vector && most < MUCH) || most < 1))
            *lanes = ceil_div(*lanes, 2);
        else if (best >= 0)
            size[best] = ceil_div(size[best], 2);
        else
            return false;
    }
    return true;
}

/* ... whose winners fit the buffer. */
static bool cut_boxes(const tarn_problem *p, const tarn_row_ops *ops, int64_t *size, int64_t *lanes)
{
    *lanes = p->lanes;
    return tarn_cut_cells(p, FOUND_BYTES / p->element_bytes[OPERAND_SAVED], INT64_MAX,
                          ops->vector_bytes / p->element_bytes[TARN_X], 1, size, lanes);
}

/* Some cells of a plane, by the engine of rows: that of lanes needs most of the stack itself. */
__attribute__((noinline)) static void run_boxes(const tarn_problem *p, const tarn_slab *slab,
                                                const range *all, const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char winners[FOUND_BYTES];
    int64_t size[TARN_MAX_SPATIAL], lanes;
    found_box b = {.planes = 1, .winners = winners, .engine = tarn_engine_forward};
    if (!cut_boxes(p, ops, size, &lanes)) {
        tarn_find_huge(p, slab, all, winners, ops);
        return;
    }
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

/* Bytes of a cell of an axis, with all that lies behind it on later axes, where gx is dense; before
 * the first axis, of a plane. */
static int64_t bytes_of_cell(const tarn_problem *p, int axis)
{
    int64_t bytes = p->lanes * p->element_bytes[TARN_GX];
    for (int a = axis + 1; a < p->spatial; a++)
        bytes *= p->axis[a].size;
    return bytes;
}

/* Bytes of the winners of a box; more than there is memory if they are many. */
static int64_t bytes_of_winners(const tarn_problem *p, const found_box *b)
{
    const int64_t most = INT64_C(1) << 60;
    int64_t bytes = b->planes * length(b->lanes) * p->element_bytes[OPERAND_SAVED];
    for (int a = 0; a < p->spatial; a++)
        bytes = bytes > most / length(b->windows[a]) ? most : bytes * length(b->windows[a]);
    return bytes;
}

/* Winners are as wide as they must be aligned, so that they can follow or end anywhere else. */
static char *aligned_after(char *at)
{
    return at + -(uintptr_t)at % WINNER_ALIGNMENT;
}

static char *aligned_before(char *at)
{
    return at - (uintptr_t)at % WINNER_ALIGNMENT;
}

/* Copies the winners of fewer windows to where they lie densely again: another memory, or one that
 * ends where theirs does; so none is written to before it is read if the last come first. */
static void move_winners(const tarn_problem *p, found_box *b, const range *fewer, char *to)
{
    int axes = p->spatial; /* that are not part of a run */
    int64_t run = length(b->lanes) * p->element_bytes[OPERAND_SAVED], runs = 1;
    while (axes > 0 && length(fewer[axes - 1]) == length(b->windows[axes - 1]))
        run *= length(fewer[--axes]);
    if (axes > 0)
        run *= length(fewer[--axes]);
    else
        run *= b->planes;
    for (int a = 0; a < axes; a++)
        runs *= length(fewer[a]);
    for (int64_t k = runs - 1; k >= 0; k--) {
        int64_t from = 0, rest = k, pitch = run;
        if (axes < p->spatial) {
            pitch = run / length(fewer[axes]) * length(b->windows[axes]);
            from = (fewer[axes].lo - b->windows[axes].lo) * (run / length(fewer[axes]));
        }
        for (int a = axes - 1; a >= 0; rest /= length(fewer[a--])) {
            from += (fewer[a].lo - b->windows[a].lo + rest % length(fewer[a])) * pitch;
            pitch *= length(b->windows[a]);
        }
        memmove(to + k * run, b->winners + from, (size_t)run);
    }
    memmove(b->windows, fewer, sizeof b->windows);
    b->winners = to;
}

/* The cells of a box whose winners fit the buffer. */
__attribute__((noinline)) static void use_copy(const tarn_problem *p, char *const *base,
                                               found_box *b, const range *fewer,
                                               const tarn_row_ops *ops)
{
    _Alignas(ALIGNMENT) char winners[FOUND_BYTES];
    move_winners(p, b, fewer, winners);
    use_winners(p, base, b, ops);
}

/* The cells of a box whose winners lie at its end: those before them, along `axis`; then winners
 * move on. Of a single cell that has no room for them the next axis is cut. Cells are left in the
 * box where that is of no use. */
static bool use_own_memory(const tarn_problem *p, const tarn_slab *slab, found_box *b, int axis,
                           const tarn_row_ops *ops)
{
    int64_t unit = bytes_of_cell(p, axis), cell[TARN_MAX_SPATIAL], hi = b->cells[axis].hi;
    for (int a = 0; a < p->spatial; a++)
        cell[a] = b->cells[a].lo;
    char *first = slab->base[TARN_GX] + offset_of(p, TARN_GX, cell) * p->element_bytes[TARN_GX],
         *end = aligned_before(first + length(b->cells[axis]) * unit);
    for (;;) {
        found_box rest = *b;
        set_windows(p, &rest);
        int64_t bytes = bytes_of_winners(p, &rest);
        if (bytes <= FOUND_BYTES) {
            use_copy(p, slab->base, b, rest.windows, ops);
            return true;
        }
        move_winners(p, b, rest.windows, end - bytes);
        int64_t n = (b->winners - first) / unit;
        if (n <= 0) {
            b->cells[axis].hi = hi;
            return length(b->cells[axis]) == 1 && axis + 1 < p->spatial &&
                   use_own_memory(p, slab, b, axis + 1, ops);
        }
        b->cells[axis].hi = b->cells[axis].lo + n;
        use_winners(p, slab->base, b, ops);
        b->cells[axis] = (range){b->cells[axis].hi, hi};
        first += n * unit;
    }
}

/* How many cells on the first axis, from `lo` on, leave room for their winners before `hi`. */
static int64_t cells_before_winners(const tarn_problem *p, found_box b, range cells)
{
    int64_t unit = bytes_of_cell(p, 0), least = 0, most = length(cells) - 1;
    while (least < most) {
        int64_t n = least + (most - least + 1) / 2;
        b.cells[0] = (range){cells.lo, cells.lo + n};
        set_windows(p, &b);
        if (bytes_of_winners(p, &b) + WINNER_ALIGNMENT <= (length(cells) - n) * unit)
            least = n;
        else
            most = n - 1;
    }
    return least;
}

/* Some units of a plane, with no memory but theirs. If all winners fit it, they are found at once;
 * else those of the first cells, behind these. */
static void find_slab(const tarn_problem *p, const tarn_slab *slab, found_box *b,
                      const tarn_row_ops *ops)
{
    int64_t unit = bytes_of_cell(p, 0);
    b->planes = 1;
    for (int a = 0; a < p->spatial; a++)
        b->cells[a] = a == 0 ? (range){slab->lo, slab->hi} : (range){0, p->axis[a].size};
    while (is_dense(p, TARN_GX)) {
        range left = b->cells[0];
        char *memory = slab->base[TARN_GX] + left.lo * unit;
        set_windows(p, b);
        int64_t bytes = bytes_of_winners(p, b), n = length(left);
        if (bytes + WINNER_ALIGNMENT <= n * unit) {
            b->winners = aligned_before(memory + n * unit) - bytes;
            tarn_find_box(p, slab->base, b, ops);
            if (use_own_memory(p, slab, b, 0, ops))
                return;
            break;
        }
        n = cells_before_winners(p, *b, left);
        if (n == 0)
            break;
        b->cells[0].hi = left.lo + n;
        memory += n * unit;
        b->winners = aligned_after(memory);
        run_box(p, slab->base, b, ops);
        b->cells[0] = (range){left.lo + n, left.hi};
    }
    run_boxes(p, slab, b->cells, ops);
}

/* Planes that follow each other: all, if their winners fit the buffer; or the first of them, with
 * winners behind, not more than stay in the cache, but enough for all lanes of vectors. Returns how
 * many. */
static int64_t find_planes(const tarn_problem *p, const tarn_slab *slab, int64_t planes,
                           found_box *b, const tarn_row_ops *ops)
{
    enum { CACHED_BYTES = 256 << 10, VECTOR_OF_PLANES = 64 };
    int64_t plane = bytes_of_cell(p, -1);
    if (planes < 2 || !is_dense(p, TARN_GX) ||
        p->lead_stride[TARN_GX][p->leading - 1] * p->element_bytes[TARN_GX] != plane)
        return 0;
    b->planes = 1;
    for (int a = 0; a < p->spatial; a++)
        b->cells[a] = (range){0, p->axis[a].size};
    set_windows(p, b);
    int64_t bytes = bytes_of_winners(p, b),
            cached = max_i64(CACHED_BYTES / bytes, VECTOR_OF_PLANES);
    char *end = aligned_before(slab->base[TARN_GX] + planes * plane);
    if (bytes <= FOUND_BYTES / planes && bytes + WINNER_ALIGNMENT <= plane) {
        b->planes = planes;
        b->winners = end - planes * bytes;
        tarn_find_box(p, slab->base, b, ops);
        use_copy(p, slab->base, b, b->windows, ops);
        return planes;
    }
    b->planes = min_i64((planes * plane - WINNER_ALIGNMENT) / (plane + bytes),
                        cached - cached % VECTOR_OF_PLANES);
    if (b->planes < 1)
        return 0;
    b->winners = aligned_after(slab->base[TARN_GX] + b->planes * plane);
    tarn_find_box(p, slab->base, b, ops);
    use_winners(p, slab->base, b, ops);
    return b->planes;
}

/* ---- Units ---------------------------------------------------------------------------------- */

/* The engine that saves winners in the forward pass. Not inlined: its problem would stay on the
 * stack. */
__attribute__((noinline)) static tarn_engine *engine_of(const tarn_problem *p, const found_box *b,
                                                        const tarn_row_ops *ops)
{
    tarn_problem forward;
    set_part(&forward, p, b);
    forward.planes = p->planes;
    switch (tarn_engine_of_winners(&forward, ops->vector_bytes)) {
    case ENGINE_LANES:
        return tarn_engine_lanes;
    case ENGINE_LONG:
        return tarn_engine_long;
    default:
        return tarn_engine_forward;
    }
}

void tarn_find_winners(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                       const tarn_row_ops *ops)
{
    tarn_slab slab;
    int64_t size[TARN_MAX_SPATIAL], lanes;
    if ((p->skips || p->axis[p->spatial - 1].window_step > MOST_CHAINS) &&
        !cut_boxes(p, ops, size, &lanes)) {
        tarn_spec(p, t, begin, end);
        return;
    }
    found_box b = {.lanes = {0, p->lanes}, .planes = 1};
    for (int a = 0; a < p->spatial; a++)
        b.windows[a] = (range){0, p->axis[a].out};
    b.engine = engine_of(p, &b, ops);
    while (begin < end) {
        int64_t planes = tarn_whole_planes(p, begin, end);
        next_slab(p, t, p->axis[0].size, &begin, end, &slab);
        int64_t done = find_planes(p, &slab, planes, &b, ops);
        if (done > 0)
            begin += (done - 1) * p->axis[0].size;
        else
            find_slab(p, &slab, &b, ops);
    }
}
