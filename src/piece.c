/* Pieces of a problem: docs/spec.md, clauses P1-P4.
 *
 * Leading axes are cut anywhere. On a spatial axis the written box says which windows are needed,
 * and these say which cells. Whatever the piece then needs to know of the whole axis stands in its
 * descriptor, and shape.c makes of it an axis like any other. */
#include "error.h"
#include "plan.h"
#include "shape.h"

typedef struct {
    int64_t lo, hi;
} range;

static int64_t extent_of(const tarn_axis *axis)
{
    return axis->dilation * (axis->kernel - 1) + 1;
}

static bool is_backward(tarn_pass pass)
{
    return pass == TARN_VJP || pass == TARN_VJP_SAVED;
}

/* Whether a gradient needs its own cells only: nothing is read of x, and no divisor counts real
 * taps. */
static bool needs_no_cells(const tarn_pool *pool, tarn_pass pass)
{
    bool counts_real =
        pool->window == TARN_SLIDING && pool->divisor == 0 && !pool->count_include_pad;
    bool linear = pool->op == TARN_AVG && pool->skip == TARN_SKIP_NOTHING;
    return pass == TARN_VJP_SAVED || (pass == TARN_VJP && linear && !counts_real);
}

/* ---- One axis ------------------------------------------------------------------------------- */

/* The windows that may read the cells, of which the first begins no later than they do; one at
 * least. */
static range windows_reading(const tarn_axis *axis, range cells)
{
    if (axis->adaptive)
        return (range){first_adaptive(axis, cells.lo), end_adaptive(axis, cells.hi)};
    int64_t first = ceil_div(cells.lo + axis->lo - (extent_of(axis) - 1), axis->stride);
    int64_t begins = (cells.lo + axis->lo) / axis->stride;
    int64_t last = (cells.hi - 1 + axis->lo) / axis->stride;
    first = max_i64(0, min_i64(min_i64(first, begins), axis->out - 1));
    return (range){first, max_i64(first, min_i64(last, axis->out - 1)) + 1};
}

/* The cells between the first tap of the windows and the last; the nearest one if there is none. */
static range cells_read(const tarn_axis *axis, range windows)
{
    if (axis->adaptive)
        return (range){adaptive_start(axis, windows.lo), adaptive_end(axis, windows.hi - 1)};
    int64_t start = windows.lo * axis->stride - axis->lo;
    int64_t end = (windows.hi - 1) * axis->stride - axis->lo + extent_of(axis);
    range cells = {max_i64(0, start), min_i64(axis->size, end)};
    return (range){cells.lo, max_i64(cells.hi, cells.lo + 1)};
}

/* Windows that lie in the padding behind the axis come with one that begins on it, so that x has a
 * cell and the piece's padding is not negative. */
static range with_a_cell(const tarn_axis *axis, range windows)
{
    if (!axis->adaptive)
        windows.lo = min_i64(windows.lo, (axis->size - 1 + axis->lo) / axis->stride);
    return windows;
}

static void cut_axis(tarn_pool *piece, int a, const tarn_axis *axis, range cells, range windows)
{
    bool all_cells = cells.lo == 0 && cells.hi == axis->size;
    if (all_cells && windows.lo == 0 && windows.hi == axis->out)
        return; /* not cut */
    piece->whole[a] = axis->size;
    piece->origin[a] = cells.lo;
    piece->first[a] = windows.lo;
    piece->count[a] = windows.hi - windows.lo;
}

/* ---- The piece ------------------------------------------------------------------------------ */

static tarn_status check_box(const tarn_view *view, int leading, const tarn_box *box,
                             tarn_error *error)
{
    for (int k = 0; k < view->rank; k++) {
        int64_t lo = box->lo[k], hi = box->hi[k], least = k < leading ? 0 : 1;
        if (lo < 0 || hi > view->shape[k] || hi < lo || hi - lo < least)
            return tarn_fail(error, TARN_BAD_SHAPE, k < leading ? NO_AXIS : k - leading,
                             "the box holds %lld to %lld of axis %d, which has size %lld",
                             (long long)lo, (long long)hi, k, (long long)view->shape[k]);
    }
    return TARN_OK;
}

static tarn_status check_pass(const tarn_problem *problem, tarn_pass pass, tarn_error *error)
{
    if ((int)pass < 0 || pass >= TARN_PASSES)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not a pass", (int)pass);
    if (tarn_pass_exists(problem, pass))
        return TARN_OK;
    if (pass == TARN_JVP || pass == TARN_VJP)
        return tarn_no_derivative(problem, error);
    return tarn_no_winners(problem, pass == TARN_FORWARD_INDICES ? "indices" : "saved", error);
}

static tarn_status check_is_whole(const tarn_pool *pool, tarn_error *error)
{
    for (int a = 0; pool && a < TARN_MAX_SPATIAL && a < pool->spatial; a++)
        if (pool->whole[a] != 0)
            return tarn_fail(error, TARN_BAD_ARGUMENT, a,
                             "the pool is a piece already: cut the whole");
    return TARN_OK;
}

tarn_status tarn_piece(const tarn_pool *pool, const tarn_view *x, tarn_pass pass,
                       const tarn_box *written, tarn_pool *piece, tarn_box *x_box, tarn_box *y_box,
                       tarn_error *error)
{
    tarn_problem problem;
    tarn_view y;
    tarn_status status;
    if (!written || !piece || !x_box || !y_box)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         !written ? "written"
                         : !piece ? "piece"
                         : !x_box ? "x_box"
                                  : "y_box");
    if ((status = check_is_whole(pool, error)) || (status = tarn_output_view(pool, x, &y, error)))
        return status;
    tarn_check_pool(pool, x, &problem, NULL); /* which has just passed */
    if ((status = check_pass(&problem, pass, error)))
        return status;
    bool backward = is_backward(pass), blind = needs_no_cells(pool, pass);
    int leading = x->rank - pool->spatial;
    if ((status = check_box(backward ? x : &y, leading, written, error)))
        return status;
    tarn_box cells_box = *written, windows_box = *written;
    tarn_pool cut = *pool;
    for (int a = 0; a < pool->spatial; a++) {
        const tarn_axis *axis = &problem.axis[a];
        int k = leading + a;
        range kept = {0, 1}, windows, cells;
        if (k < (backward ? x->rank : y.rank))
            kept = (range){written->lo[k], written->hi[k]};
        windows = with_a_cell(axis, backward ? windows_reading(axis, kept) : kept);
        cells = blind && !axis->adaptive ? kept : cells_read(axis, windows);
        if (backward && !axis->adaptive) /* also those that no window reads */
            cells = (range){min_i64(cells.lo, kept.lo), max_i64(cells.hi, kept.hi)};
        cut_axis(&cut, a, axis, cells, windows);
        cells_box.lo[k] = cells.lo, cells_box.hi[k] = cells.hi;
        windows_box.lo[k] = windows.lo, windows_box.hi[k] = windows.hi;
    }
    if (blind) /* [A2] what x does not have counts */
        cut.count_include_pad = 1;
    *piece = cut;
    *x_box = cells_box;
    *y_box = windows_box;
    return tarn_succeed(error);
}

/* ---- Partial sums --------------------------------------------------------------------------- */

/* [P4] Appends the nodes of [first,first+n) that make up its part in [lo,hi). */
static int list_nodes(int64_t first, int64_t n, int64_t lo, int64_t hi, int64_t *ends, int count)
{
    if (first >= hi || first + n <= lo)
        return count;
    if (first >= lo && first + n <= hi) {
        ends[count] = first + n;
        return count + 1;
    }
    int64_t half = split_point(n);
    count = list_nodes(first, half, lo, hi, ends, count);
    return list_nodes(first + half, n - half, lo, hi, ends, count);
}

int tarn_nodes(int64_t n, int64_t lo, int64_t hi, int64_t ends[TARN_MAX_NODES])
{
    if (!ends || n < 1 || lo < 0 || hi > n || lo >= hi)
        return 0;
    return list_nodes(0, n, lo, hi, ends, 0);
}
