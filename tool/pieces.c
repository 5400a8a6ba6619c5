#include "pieces.h"

static int64_t extent_of(const tarn_axis *axis)
{
    return axis->dilation * (axis->kernel - 1) + 1;
}

static bool is_whole(tool_range range, int64_t size)
{
    return range.lo == 0 && range.hi == size;
}

/* ---- One axis of a piece ------------------------------------------------------------------- */

/* Whether the last window of an axis reaches beyond the padding (ceil mode). On its own such a window would not fit
 * its part of the axis, so it never comes alone. */
static bool last_hangs(const tarn_axis *axis)
{
    return (axis->out - 1) * axis->stride + extent_of(axis) > axis->lo + axis->size + axis->hi;
}

/* Windows that read cells of [cells.lo,cells.hi), and one that begins at or before the first cell, so that
 * padding is never negative. The next window, if there is one, begins at or behind cells.hi. */
static tool_range windows_of(const tarn_axis *axis, tool_range cells)
{
    int64_t first = floor_div(cells.lo + axis->lo, axis->stride);
    int64_t reading = ceil_div(cells.lo + axis->lo - (extent_of(axis) - 1), axis->stride);
    int64_t last = floor_div(cells.hi - 1 + axis->lo, axis->stride);
    first = max_i64(0, min_i64(min_i64(first, reading), axis->out - 1));
    return (tool_range){first, max_i64(first, min_i64(last, axis->out - 1)) + 1};
}

/* The part of a sliding axis that the windows read, and the padding that it needs: the piece's first tap
 * keeps its distance from the first cell, the last from the end. */
static tool_range crop_sliding(const tarn_axis *axis, int a, tool_range windows, int64_t least_end,
                               tarn_pool *pool)
{
    int64_t start = windows.lo * axis->stride - axis->lo;
    int64_t end = (windows.hi - 1) * axis->stride - axis->lo + extent_of(axis);
    tool_range cells = {max_i64(0, start), max_i64(min_i64(axis->size, end), least_end)};
    bool hangs = end > axis->size + axis->hi;
    pool->pad_lo[a] = cells.lo - start;
    pool->pad_hi[a] = hangs ? axis->hi : max_i64(0, end - cells.hi);
    return cells;
}

static tool_range keep_company(const tarn_axis *axis, tool_range windows)
{
    if (windows.lo == axis->out - 1 && windows.lo > 0 && last_hangs(axis))
        windows.lo--;
    return windows;
}

/* Axis a of the piece that writes `kept` of it; the axis is not written whole. */
static void cut_spatial(const tool_cutter *c, int a, tool_range kept, tool_piece *piece)
{
    const tarn_axis *axis = &c->checked.axis[a];
    tool_range *x = &piece->x[c->leading + a], *y = &piece->y[c->leading + a];
    if (axis->adaptive) { /* one window: it is all of its part */
        tarn_span taps = window_taps(axis, kept.lo);
        piece->pool.out[a] = 1;
        *y = kept;
        *x = (tool_range){taps.first, taps.first + taps.n};
        return;
    }
    *y = keep_company(axis, c->gradient ? windows_of(axis, kept) : kept);
    *x = crop_sliding(axis, a, *y, c->gradient ? kept.hi : 0, &piece->pool);
}

static tool_piece make_piece(const tool_cutter *c, const tool_range *kept)
{
    tool_piece piece = {.pool = c->pool};
    for (int k = 0; k < c->rank; k++) {
        piece.kept[k] = kept[k];
        piece.x[k] = (tool_range){0, c->x_shape[k]};
        piece.y[k] = (tool_range){0, c->y_shape[k]};
        if (k < c->leading)
            piece.x[k] = piece.y[k] = kept[k];
        else if (!is_whole(kept[k], c->written_shape[k]))
            cut_spatial(c, k - c->leading, kept[k], &piece);
    }
    return piece;
}

/* ---- Where to cut -------------------------------------------------------------------------- */

static bool is_cuttable(const tool_cutter *c, int axis)
{
    if (axis < c->leading || c->written_shape[axis] == 1)
        return true;
    const tarn_axis *spatial = &c->checked.axis[axis - c->leading];
    if (c->pool.window == TARN_GLOBAL)
        return false;
    if (spatial->adaptive)
        return !c->gradient;
    return spatial->lo < extent_of(spatial) && spatial->hi < extent_of(spatial);
}

/* The piece at the origin with axes before place `cut` single, that one `block` long, the rest whole. */
static tool_piece first_piece(const tool_cutter *c, int cut, int64_t block)
{
    tool_range kept[TARN_MAX_RANK];
    for (int k = 0; k < c->rank; k++)
        kept[c->order[k]] = (tool_range){0, k < cut    ? 1
                                            : k == cut ? block
                                                       : c->written_shape[c->order[k]]};
    return make_piece(c, kept);
}

static int64_t cost_of(const tool_cutter *c, int cut, int64_t block, tool_piece_cost *cost,
                       const void *context)
{
    tool_piece piece = first_piece(c, cut, block);
    return cost(context, &piece);
}

/* The outermost place where single coordinates cost no more than the goal, or, if none does, than twice
 * the least that can be had: cutting further would only read the same bytes again. */
static int choose_cut(const tool_cutter *c, int64_t *goal, tool_piece_cost *cost,
                      const void *context)
{
    int64_t least = INT64_MAX;
    int places = 0;
    while (places < c->rank && is_cuttable(c, c->order[places]))
        places++;
    for (int k = 0; k < places; k++)
        least = min_i64(least, cost_of(c, k, 1, cost, context));
    if (least > *goal)
        *goal = least > INT64_MAX / 2 ? INT64_MAX : 2 * least;
    for (int k = 0; k < places; k++)
        if (cost_of(c, k, 1, cost, context) <= *goal)
            return k;
    return 0;
}

/* As many coordinates as the goal allows. Adaptive windows go one by one: several of them are not
 * adaptive windows of their part. */
static int64_t choose_block(const tool_cutter *c, int64_t goal, tool_piece_cost *cost,
                            const void *context)
{
    int axis = c->order[c->cut];
    int64_t fits = 1, most = c->written_shape[axis];
    if (axis >= c->leading && c->pool.window == TARN_ADAPTIVE)
        return 1;
    while (fits < most) {
        int64_t half = fits + (most - fits + 1) / 2;
        if (cost_of(c, c->cut, half, cost, context) <= goal)
            fits = half;
        else
            most = half - 1;
    }
    return fits;
}

static bool has_nothing(const tool_cutter *c)
{
    for (int k = 0; k < c->rank; k++)
        if (c->written_shape[k] == 0)
            return true;
    return false;
}

void tool_cutter_begin(tool_cutter *cutter, const tarn_pool *pool, const tarn_problem *checked,
                       const tarn_view *x, const tarn_view *y, bool gradient, const int *order,
                       int64_t goal, tool_piece_cost *cost, const void *context)
{
    *cutter = (tool_cutter){.pool = *pool, .checked = *checked, .rank = x->rank};
    cutter->leading = x->rank - pool->spatial;
    cutter->gradient = gradient;
    cutter->written_shape = gradient ? cutter->x_shape : cutter->y_shape;
    for (int k = 0; k < x->rank; k++) {
        cutter->order[k] = order[k];
        cutter->x_shape[k] = x->shape[k];
        cutter->y_shape[k] = y->shape[k];
    }
    cutter->finished = has_nothing(cutter);
    /* A tensor that fits as a whole, or that cannot be cut at all, is one piece. */
    int64_t size = cutter->written_shape[order[0]];
    cutter->block = size;
    if (cutter->finished || !is_cuttable(cutter, order[0]) ||
        cost_of(cutter, 0, size, cost, context) <= goal)
        return;
    cutter->cut = choose_cut(cutter, &goal, cost, context);
    cutter->block = choose_block(cutter, goal, cost, context);
}

bool tool_next_piece(tool_cutter *c, tool_piece *piece)
{
    tool_range kept[TARN_MAX_RANK];
    if (c->finished)
        return false;
    for (int k = 0; k < c->rank; k++) {
        int axis = c->order[k];
        int64_t step = k < c->cut ? 1 : k == c->cut ? c->block : c->written_shape[axis];
        kept[axis].lo = c->at[axis];
        kept[axis].hi = min_i64(c->written_shape[axis], c->at[axis] + step);
    }
    *piece = make_piece(c, kept);
    for (int k = c->cut; k >= 0; k--) {
        int axis = c->order[k];
        c->at[axis] = kept[axis].hi;
        if (c->at[axis] < c->written_shape[axis])
            return true;
        c->at[axis] = 0;
    }
    c->finished = true;
    return true;
}
