/* Pad, unpad, unpool, and a fold of the caller's own. */
#include "error.h"
#include "layout.h"
#include "shape.h"

/* ---- Walking a view ------------------------------------------------------------------------- */

static bool view_is_empty(const tarn_view *view)
{
    for (int a = 0; a < view->rank; a++)
        if (view->shape[a] == 0)
            return true;
    return false;
}

/* Steps `at` to the next index of axes [first,last) in row-major order; false after the last one.
 * */
static bool next_index(const tarn_view *view, int first, int last, int64_t *at)
{
    for (int a = last - 1; a >= first; a--) {
        if (++at[a] < view->shape[a])
            return true;
        at[a] = 0;
    }
    return false;
}

static char *element(const tarn_view *view, const int64_t *at)
{
    int64_t offset = 0;
    for (int a = 0; a < view->rank; a++)
        offset += at[a] * view->strides[a];
    return (char *)view->data + offset * (int64_t)tarn_dtype_size(view->dtype);
}

/* Sets every element of y to zero bits, which is the number 0 in every dtype. */
static void fill_zero(const tarn_view *y)
{
    int64_t at[TARN_MAX_RANK] = {0};
    do
        memset(element(y, at), 0, tarn_dtype_size(y->dtype));
    while (next_index(y, 0, y->rank, at));
}

/* Copies elements bit by bit; both views have the shape of x. */
static void copy_elements(const tarn_view *x, const tarn_view *y)
{
    int64_t at[TARN_MAX_RANK] = {0};
    do
        memcpy(element(y, at), element(x, at), tarn_dtype_size(x->dtype));
    while (next_index(x, 0, x->rank, at));
}

/* ---- Checks --------------------------------------------------------------------------------- */

static tarn_status check_spatial(const tarn_view *x, int spatial, tarn_error *error)
{
    if (spatial < 1 || spatial > TARN_MAX_SPATIAL || spatial > x->rank)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS,
                         "%d spatial axes are not in 1..%d or more than the rank %d of x", spatial,
                         TARN_MAX_SPATIAL, x->rank);
    for (int a = 0; a < spatial; a++)
        if (x->shape[x->rank - spatial + a] == 0)
            return tarn_fail(error, TARN_BAD_SHAPE, a, "spatial axis %d is empty", a);
    return TARN_OK;
}

static tarn_status check_input(const char *name, const tarn_view *x, int spatial,
                               tarn_extent *extent, tarn_error *error)
{
    tarn_status status;
    if ((status = tarn_check_view(name, x, extent, error)) ||
        (status = check_spatial(x, spatial, error)))
        return status;
    return tarn_check_data(name, x->data, x->dtype, view_is_empty(x), error);
}

/* That y can be written and shares no memory with x. */
static tarn_status check_output(const tarn_view *y, const tarn_view *x, tarn_extent x_extent,
                                tarn_error *error)
{
    tarn_extent extent;
    tarn_status status;
    if ((status = tarn_check_view("y", y, &extent, error)) ||
        (status = tarn_check_no_overlap("y", y, error)) ||
        (status = tarn_check_data("y", y->data, y->dtype, view_is_empty(y), error)))
        return status;
    if (tarn_extents_meet(x->data, x_extent, y->data, extent))
        return tarn_fail(error, TARN_ALIAS, NO_AXIS,
                         "y is written and shares memory with an input");
    return TARN_OK;
}

/* ---- Pad and unpad [H1, H2] ----------------------------------------------------------------- */

/* The inner part of `large` that remains between the paddings: the shape of `small`, and its
 * data moved to the first element that remains. Both functions below check with it and copy
 * through it. */
static tarn_status inner_view(const tarn_view *small, const tarn_view *large, int spatial,
                              const int64_t *lo, const int64_t *hi, tarn_view *inner,
                              tarn_error *error)
{
    tarn_view expected = *small;
    int64_t at[TARN_MAX_RANK] = {0};
    expected.dtype = large->dtype;
    for (int a = 0; a < spatial; a++) {
        int axis = small->rank - spatial + a;
        if (lo[a] < 0 || hi[a] < 0)
            return tarn_fail(error, TARN_BAD_WINDOW, a, "padding %lld, %lld on axis %d is negative",
                             (long long)lo[a], (long long)hi[a], a);
        if (!checked_add(expected.shape[axis], lo[a], &expected.shape[axis]) ||
            !checked_add(expected.shape[axis], hi[a], &expected.shape[axis]))
            return tarn_fail(error, TARN_OVERFLOW, a,
                             "the padded size of axis %d does not fit 63 bits", a);
        at[axis] = lo[a];
    }
    tarn_status status = tarn_check_same_shape("the padded tensor", large, &expected, error);
    if (status)
        return status;
    *inner = *large;
    memcpy(inner->shape, small->shape, sizeof inner->shape);
    if (!view_is_empty(small))
        inner->data = element(large, at);
    return TARN_OK;
}

static tarn_status check_padding_arrays(const int64_t *lo, const int64_t *hi, tarn_error *error)
{
    if (lo && hi)
        return TARN_OK;
    return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", lo ? "hi" : "lo");
}

static tarn_status check_same_dtype(const tarn_view *x, const tarn_view *y, tarn_error *error)
{
    if (x->dtype == y->dtype)
        return TARN_OK;
    return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "y has dtype %s, expected %s",
                     tarn_dtype_name(y->dtype), tarn_dtype_name(x->dtype));
}

tarn_status tarn_pad(const tarn_view *x, int spatial, const int64_t *lo, const int64_t *hi,
                     const tarn_view *y, tarn_error *error)
{
    tarn_extent extent;
    tarn_view inner;
    tarn_status status;
    if ((status = check_padding_arrays(lo, hi, error)) ||
        (status = check_input("x", x, spatial, &extent, error)) ||
        (status = check_output(y, x, extent, error)) || (status = check_same_dtype(x, y, error)) ||
        (status = inner_view(x, y, spatial, lo, hi, &inner, error)))
        return status;
    if (!view_is_empty(y)) {
        fill_zero(y);
        copy_elements(x, &inner);
    }
    return tarn_succeed(error);
}

/* Says which axis has less than is to be removed; otherwise the shapes are compared later. */
static tarn_status check_removal(const tarn_view *x, int spatial, const int64_t *lo,
                                 const int64_t *hi, tarn_error *error)
{
    for (int a = 0; a < spatial; a++) {
        int64_t size = x->shape[x->rank - spatial + a];
        if (lo[a] >= 0 && hi[a] >= 0 && (lo[a] >= size || hi[a] >= size - lo[a]))
            return tarn_fail(error, TARN_DOES_NOT_FIT, a,
                             "removing %lld and %lld leaves nothing of axis %d: its size is %lld",
                             (long long)lo[a], (long long)hi[a], a, (long long)size);
    }
    return TARN_OK;
}

tarn_status tarn_unpad(const tarn_view *x, int spatial, const int64_t *lo, const int64_t *hi,
                       const tarn_view *y, tarn_error *error)
{
    tarn_extent extent;
    tarn_view inner;
    tarn_status status;
    if ((status = check_padding_arrays(lo, hi, error)) ||
        (status = check_input("x", x, spatial, &extent, error)) ||
        (status = check_removal(x, spatial, lo, hi, error)) ||
        (status = check_output(y, x, extent, error)) || (status = check_same_dtype(x, y, error)))
        return status;
    if (y->rank < spatial)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "y has rank %d, expected %d", y->rank,
                         x->rank);
    if ((status = inner_view(y, x, spatial, lo, hi, &inner, error)))
        return status;
    if (!view_is_empty(y))
        copy_elements(&inner, y);
    return tarn_succeed(error);
}

tarn_status tarn_unpad2d(const tarn_view *x, int64_t padding, const tarn_view *y, tarn_error *error)
{
    const int64_t both[2] = {padding, padding};
    return tarn_unpad(x, 2, both, both, y, error);
}

/* ---- Unpool [H3] ---------------------------------------------------------------------------- */

static int64_t load_index(const tarn_view *indices, const int64_t *at)
{
    int64_t index;
    memcpy(&index, element(indices, at), sizeof index);
    return index;
}

static int64_t spatial_cells(const tarn_view *view, int spatial)
{
    int64_t cells = 1;
    for (int a = view->rank - spatial; a < view->rank; a++)
        cells *= view->shape[a];
    return cells;
}

static tarn_status check_indices(const tarn_view *indices, int64_t cells, tarn_error *error)
{
    int64_t at[TARN_MAX_RANK] = {0};
    do {
        int64_t index = load_index(indices, at);
        if (index < -1 || index >= cells)
            return tarn_fail(error, TARN_BAD_INDEX, NO_AXIS,
                             "index %lld is outside the %lld cells of a plane of y",
                             (long long)index, (long long)cells);
    } while (next_index(indices, 0, indices->rank, at));
    return TARN_OK;
}

/* The coordinates, in y, of a value of x at `from` with the given flat index. */
static void place_of(const tarn_view *y, int spatial, const int64_t *from, int64_t index,
                     int64_t *place)
{
    for (int a = 0; a < y->rank - spatial; a++)
        place[a] = from[a];
    for (int a = y->rank - 1; a >= y->rank - spatial; a--) {
        place[a] = index % y->shape[a];
        index /= y->shape[a];
    }
}

static void scatter(const tarn_view *x, const tarn_view *indices, int spatial, const tarn_view *y)
{
    int64_t at[TARN_MAX_RANK] = {0}, place[TARN_MAX_RANK];
    do {
        int64_t index = load_index(indices, at);
        if (index < 0)
            continue;
        place_of(y, spatial, at, index, place);
        memcpy(element(y, place), element(x, at), tarn_dtype_size(x->dtype));
    } while (next_index(x, 0, x->rank, at));
}

static tarn_status check_leading(const tarn_view *x, const tarn_view *y, int spatial,
                                 tarn_error *error)
{
    tarn_view expected = *x;
    if (y->rank == x->rank)
        for (int a = x->rank - spatial; a < x->rank; a++)
            expected.shape[a] = y->shape[a];
    tarn_status status = tarn_check_same_shape("y", y, &expected, error);
    return status ? status : check_spatial(y, spatial, error);
}

tarn_status tarn_unpool(const tarn_view *x, const tarn_view *indices, int spatial,
                        const tarn_view *y, tarn_error *error)
{
    tarn_extent x_extent, index_extent;
    tarn_status status;
    if ((status = check_input("x", x, spatial, &x_extent, error)) ||
        (status = tarn_check_view("indices", indices, &index_extent, error)))
        return status;
    tarn_view expected = *x;
    expected.dtype = TARN_I64;
    if ((status = tarn_check_same_shape("indices", indices, &expected, error)) ||
        (status = tarn_check_data("indices", indices->data, TARN_I64, view_is_empty(x), error)) ||
        (status = check_output(y, x, x_extent, error)) ||
        (status = check_leading(x, y, spatial, error)))
        return status;
    if (view_is_empty(y))
        return tarn_succeed(error);
    if ((status = check_output(y, indices, index_extent, error)) ||
        (status = check_indices(indices, spatial_cells(y, spatial), error)))
        return status;
    fill_zero(y);
    scatter(x, indices, spatial, y);
    return tarn_succeed(error);
}

/* ---- A fold of the caller's own ------------------------------------------------------------- */

static tarn_status check_fold_shape(const tarn_view *x, int spatial, const tarn_view *y,
                                    tarn_error *error)
{
    tarn_view expected = *x;
    expected.dtype = y->dtype;
    for (int a = x->rank - spatial; a < x->rank; a++)
        expected.shape[a] = 1;
    if (y->rank == x->rank - spatial)
        expected.rank = y->rank;
    return tarn_check_same_shape("y", y, &expected, error);
}

tarn_status tarn_global_fold(const tarn_view *x, int spatial, tarn_fold fold, void *context,
                             const tarn_view *y, tarn_error *error)
{
    tarn_extent extent;
    tarn_status status;
    int64_t at[TARN_MAX_RANK] = {0};
    if (!fold)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "fold is NULL");
    if ((status = check_input("x", x, spatial, &extent, error)) ||
        (status = check_output(y, x, extent, error)) ||
        (status = check_fold_shape(x, spatial, y, error)))
        return status;
    if (view_is_empty(x))
        return tarn_succeed(error);
    do {
        int64_t out[TARN_MAX_RANK] = {0};
        memcpy(out, at, sizeof(int64_t) * (size_t)(x->rank - spatial));
        fold(context, element(y, out), element(x, at));
    } while (next_index(x, 0, x->rank, at));
    return tarn_succeed(error);
}
