#include "layout.h"

#include "checked.h"
#include "error.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[TARN_DTYPES] = {
    [TARN_F64] = {"f64", 8},   [TARN_F32] = {"f32", 4}, [TARN_F16] = {"f16", 2},
    [TARN_BF16] = {"bf16", 2}, [TARN_I8] = {"i8", 1},   [TARN_U8] = {"u8", 1},
    [TARN_I16] = {"i16", 2},   [TARN_U16] = {"u16", 2}, [TARN_I32] = {"i32", 4},
    [TARN_U32] = {"u32", 4},   [TARN_I64] = {"i64", 8}, [TARN_U64] = {"u64", 8},
};

static bool is_dtype(tarn_dtype dtype)
{
    return (int)dtype >= 0 && dtype < TARN_DTYPES;
}

size_t tarn_dtype_size(tarn_dtype dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

const char *tarn_dtype_name(tarn_dtype dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

/* Sets dense strides, the axes lying in memory in the given order, outermost first. Sizes that
 * would overflow wrap here, harmlessly: the checker refuses such a view before its strides are
 * used. */
static void make_dense(tarn_view *view, const int *order)
{
    uint64_t stride = 1;
    for (int k = view->rank - 1; k >= 0; k--) {
        view->strides[order[k]] = (int64_t)stride;
        stride *= view->shape[order[k]] > 0 ? (uint64_t)view->shape[order[k]] : 1;
    }
}

static tarn_view shaped(void *data, tarn_dtype dtype, int rank, const int64_t *shape)
{
    tarn_view view = {.data = data, .dtype = dtype, .rank = rank};
    for (int a = 0; a < rank && a < TARN_MAX_RANK; a++)
        view.shape[a] = shape ? shape[a] : -1;
    return view;
}

tarn_view tarn_view_dense(void *data, tarn_dtype dtype, int rank, const int64_t *shape)
{
    return tarn_view_channels_last(data, dtype, rank, rank, shape);
}

tarn_view tarn_view_channels_last(void *data, tarn_dtype dtype, int rank, int spatial,
                                  const int64_t *shape)
{
    tarn_view view = shaped(data, dtype, rank, shape);
    if (rank < 0 || rank > TARN_MAX_RANK)
        return view;
    int order[TARN_MAX_RANK], used = 0;
    int channel = spatial >= 0 && spatial < rank ? rank - spatial - 1 : -1;
    for (int a = 0; a < rank; a++)
        if (a != channel)
            order[used++] = a;
    if (channel >= 0)
        order[used] = channel;
    make_dense(&view, order);
    return view;
}

/* Whether axis a of `view` certainly lies inside axis b. Axes of one cell, or broadcast, say
 * nothing. */
static bool nests_inside(const tarn_view *view, int a, int b)
{
    int64_t inner = view->strides[a], outer = view->strides[b];
    if (view->shape[a] < 2 || view->shape[b] < 2 || inner == 0 || outer == 0)
        return false;
    return (inner < 0 ? -(uint64_t)inner : (uint64_t)inner) <
           (outer < 0 ? -(uint64_t)outer : (uint64_t)outer);
}

void tarn_make_dense_like(tarn_view *view, const tarn_view *like)
{
    int order[TARN_MAX_RANK];
    for (int a = 0; a < view->rank; a++) { /* insertion sort; axes that say nothing stay put */
        int place = a;
        for (int k = a - 1; k >= 0; k--) {
            if (nests_inside(like, order[k], a))
                place = k;
            else if (nests_inside(like, a, order[k]))
                break;
        }
        for (int k = a; k > place; k--)
            order[k] = order[k - 1];
        order[place] = a;
    }
    make_dense(view, order);
}

/* Adds the reach of one axis, in elements, to [*lo,*hi]. */
static bool add_reach(int64_t size, int64_t stride, int64_t *lo, int64_t *hi)
{
    int64_t reach;
    if (!checked_mul(size - 1, stride, &reach))
        return false;
    return checked_add(reach < 0 ? *lo : *hi, reach, reach < 0 ? lo : hi);
}

static tarn_status too_large(const char *name, const tarn_view *view, int axis, tarn_error *error)
{
    return tarn_fail(
        error, TARN_OVERFLOW, NO_AXIS,
        "%s is too large: with size %lld and stride %lld in dimension %d its bytes do not fit "
        "63 bits",
        name, (long long)view->shape[axis], (long long)view->strides[axis], axis);
}

tarn_status tarn_check_view(const char *name, const tarn_view *view, tarn_extent *extent,
                            tarn_error *error)
{
    if (!view)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", name);
    if (!is_dtype(view->dtype))
        return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "%s: %d is not a dtype", name,
                         (int)view->dtype);
    if (view->rank < 0 || view->rank > TARN_MAX_RANK)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "%s has rank %d, not in 0..%d", name,
                         view->rank, TARN_MAX_RANK);
    int64_t bytes = (int64_t)tarn_dtype_size(view->dtype), size = bytes, lo = 0, hi = 0;
    bool empty = false;
    for (int a = 0; a < view->rank; a++) {
        int64_t n = view->shape[a];
        if (n < 0)
            return tarn_fail(error, TARN_BAD_SHAPE, NO_AXIS, "%s has size %lld in dimension %d",
                             name, (long long)n, a);
        empty |= n == 0;
        /* A size of 0 must not hide an overflow of the others: other code may multiply them. */
        if (n > 0 && (!checked_mul(bytes, n, &bytes) || !add_reach(n, view->strides[a], &lo, &hi)))
            return too_large(name, view, a, error);
    }
    if (!checked_add(hi, 1, &hi) || !checked_mul(lo, size, &lo) || !checked_mul(hi, size, &hi))
        return too_large(name, view, 0, error);
    *extent = empty ? (tarn_extent){0, 0} : (tarn_extent){lo, hi};
    return TARN_OK;
}

tarn_status tarn_check_no_overlap(const char *name, const tarn_view *view, tarn_error *error)
{
    /* Repeatedly take the axis with the least stride not yet taken: it must step over
     * everything that the axes before it reach. The extents were checked, so the sums below
     * cannot overflow. */
    bool taken[TARN_MAX_RANK] = {false};
    uint64_t reach = 0;
    for (int a = 0; a < view->rank; a++) {
        if (view->shape[a] == 0)
            return TARN_OK;
        taken[a] = view->shape[a] == 1;
    }
    for (;;) {
        int least = -1;
        uint64_t step = 0;
        for (int a = 0; a < view->rank; a++) {
            uint64_t stride =
                view->strides[a] < 0 ? -(uint64_t)view->strides[a] : (uint64_t)view->strides[a];
            if (!taken[a] && (least < 0 || stride < step)) {
                least = a;
                step = stride;
            }
        }
        if (least < 0)
            return TARN_OK;
        if (step <= reach)
            return tarn_fail(error, TARN_BAD_LAYOUT, NO_AXIS,
                             "%s is written, but its elements overlap: stride %lld in dimension %d "
                             "does not step over the %llu elements inside it",
                             name, (long long)view->strides[least], least,
                             (unsigned long long)reach + 1);
        reach += (uint64_t)(view->shape[least] - 1) * step;
        taken[least] = true;
    }
}

tarn_status tarn_check_same_shape(const char *name, const tarn_view *view,
                                  const tarn_view *expected, tarn_error *error)
{
    if (view->dtype != expected->dtype)
        return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "%s has dtype %s, expected %s", name,
                         tarn_dtype_name(view->dtype), tarn_dtype_name(expected->dtype));
    if (view->rank != expected->rank)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "%s has rank %d, expected %d", name,
                         view->rank, expected->rank);
    for (int a = 0; a < view->rank; a++)
        if (view->shape[a] != expected->shape[a])
            return tarn_fail(error, TARN_BAD_SHAPE, NO_AXIS,
                             "%s has size %lld in dimension %d, expected %lld", name,
                             (long long)view->shape[a], a, (long long)expected->shape[a]);
    return TARN_OK;
}

tarn_status tarn_check_data(const char *name, const void *data, tarn_dtype dtype, bool empty,
                            tarn_error *error)
{
    if (empty)
        return TARN_OK;
    if (!data)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", name);
    if ((uintptr_t)data % tarn_dtype_size(dtype) != 0)
        return tarn_fail(error, TARN_BAD_LAYOUT, NO_AXIS,
                         "%s is not aligned to its %d-byte elements", name,
                         (int)tarn_dtype_size(dtype));
    return TARN_OK;
}

size_t tarn_view_bytes(const tarn_view *view)
{
    tarn_extent extent = {0, 0};
    return tarn_check_view("view", view, &extent, NULL) ? 0 : size_of_bytes(extent.hi - extent.lo);
}
