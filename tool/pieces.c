#include "pieces.h"

/* The box was made of the whole's own shape, so all errors are those that the first piece had. */
static tool_piece make_piece(const tool_cutter *c, const tarn_box *kept)
{
    tool_piece piece = {.kept = *kept};
    tarn_piece(&c->pool, &c->x, c->pass, kept, &piece.pool, &piece.x, &piece.y, NULL);
    return piece;
}

/* ---- Where to cut -------------------------------------------------------------------------- */

/* The piece at the origin with axes before place `cut` single, that one `block` long, the rest
 * whole. */
static tool_piece first_piece(const tool_cutter *c, int cut, int64_t block)
{
    tarn_box kept = {{0}, {0}};
    for (int k = 0; k < c->x.rank; k++)
        kept.hi[c->order[k]] = k < cut ? 1 : k == cut ? block : c->written_shape[c->order[k]];
    return make_piece(c, &kept);
}

static int64_t cost_of(const tool_cutter *c, int cut, int64_t block, tool_piece_cost *cost,
                       const void *context)
{
    tool_piece piece = first_piece(c, cut, block);
    return cost(context, &piece);
}

/* The outermost place where single coordinates cost no more than the goal, or, if none does, than
 * twice the least that can be had: cutting further would only read the same bytes again. */
static int choose_cut(const tool_cutter *c, int64_t *goal, tool_piece_cost *cost,
                      const void *context)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < c->x.rank; k++)
        least = min_i64(least, cost_of(c, k, 1, cost, context));
    if (least > *goal)
        *goal = least > INT64_MAX / 2 ? INT64_MAX : 2 * least;
    for (int k = 0; k < c->x.rank; k++)
        if (cost_of(c, k, 1, cost, context) <= *goal)
            return k;
    return 0;
}

/* As many coordinates as the goal allows. */
static int64_t choose_block(const tool_cutter *c, int64_t goal, tool_piece_cost *cost,
                            const void *context)
{
    int64_t fits = 1, most = c->written_shape[c->order[c->cut]];
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
    for (int k = 0; k < c->x.rank; k++)
        if (c->written_shape[k] == 0)
            return true;
    return false;
}

tarn_status tool_cutter_begin(tool_cutter *cutter, const tarn_pool *pool, const tarn_view *x,
                              const tarn_view *y, tarn_pass pass, const int *order, int64_t goal,
                              tool_piece_cost *cost, const void *context, tarn_error *error)
{
    *cutter = (tool_cutter){.pool = *pool, .x = *x, .pass = pass};
    cutter->written_shape = pass == TARN_VJP ? x->shape : y->shape;
    for (int k = 0; k < x->rank; k++)
        cutter->order[k] = order[k];
    cutter->finished = has_nothing(cutter);
    int64_t size = cutter->written_shape[order[0]];
    cutter->block = size;
    tarn_box all = {{0}, {0}};
    tool_piece whole = {.kept = all};
    memcpy(all.hi, cutter->written_shape, sizeof all.hi);
    tarn_status status = tarn_piece(pool, x, pass, &all, &whole.pool, &whole.x, &whole.y, error);
    if (status || cutter->finished || cost_of(cutter, 0, size, cost, context) <= goal)
        return status;
    cutter->cut = choose_cut(cutter, &goal, cost, context);
    cutter->block = choose_block(cutter, goal, cost, context);
    return TARN_OK;
}

bool tool_next_piece(tool_cutter *c, tool_piece *piece)
{
    tarn_box kept;
    if (c->finished)
        return false;
    for (int k = 0; k < c->x.rank; k++) {
        int axis = c->order[k];
        int64_t step = k < c->cut ? 1 : k == c->cut ? c->block : c->written_shape[axis];
        kept.lo[axis] = c->at[axis];
        kept.hi[axis] = min_i64(c->written_shape[axis], c->at[axis] + step);
    }
    *piece = make_piece(c, &kept);
    for (int k = c->cut; k >= 0; k--) {
        int axis = c->order[k];
        c->at[axis] = kept.hi[axis];
        if (c->at[axis] < c->written_shape[axis])
            return true;
        c->at[axis] = 0;
    }
    c->finished = true;
    return true;
}
