#include "shape.h"

#include "error.h"
#include "float_state.h"
#include "layout.h"
#include "skip.h"

static tarn_status check_at_least(const char *what, int64_t value, int64_t least, int axis,
                                  tarn_error *error)
{
    if (value >= least)
        return TARN_OK;
    return tarn_fail(error, TARN_BAD_WINDOW, axis, "%s %lld on axis %d is less than %lld", what,
                     (long long)value, axis, (long long)least);
}

static tarn_status overflows(const char *what, int64_t a, int64_t b, int64_t c, int axis,
                             tarn_error *error)
{
    return tarn_fail(error, TARN_OVERFLOW, axis,
                     "%s on axis %d does not fit 63 bits: %lld, %lld, %lld", what, axis,
                     (long long)a, (long long)b, (long long)c);
}

/* Extended Euclid: the inverse of a modulo m for coprime a and m, of either sign; 0 for m == 1. */
static int64_t inverse_modulo(int64_t a, int64_t m)
{
    int64_t r0 = m, r1 = a % m, t0 = 0, t1 = 1;
    while (r1 > 0) { /* |t| stays below m */
        int64_t quotient = r0 / r1, r = r0 - quotient * r1, t = t0 - quotient * t1;
        r0 = r1, r1 = r;
        t0 = t1, t1 = t;
    }
    return t0;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void solve_for_windows(tarn_axis *axis)
{
    axis->gcd = greatest_common_divisor(axis->stride, axis->dilation);
    axis->tap_step = axis->stride / axis->gcd;
    axis->window_step = axis->dilation / axis->gcd;
    axis->inverse = inverse_modulo(axis->window_step, axis->tap_step);
}

static tarn_status check_sliding_values(const tarn_axis *axis, int a, tarn_error *error)
{
    tarn_status status;
    if ((status = check_at_least("kernel", axis->kernel, 1, a, error)) ||
        (status = check_at_least("stride", axis->stride, 1, a, error)) ||
        (status = check_at_least("dilation", axis->dilation, 1, a, error)) ||
        (status = check_at_least("padding before", axis->lo, 0, a, error)) ||
        (status = check_at_least("padding behind", axis->hi, 0, a, error)))
        return status;
    return TARN_OK;
}

/* A stride that is never taken and a dilation between no two taps are 1: whatever they were,
 * they take part in no sum, and must not in any overflow. */
static void drop_unused_steps(tarn_axis *axis)
{
    if (axis->out == 1)
        axis->stride = 1;
    if (axis->kernel == 1)
        axis->dilation = 1;
}

/* Clauses W2 and W3. Every step that is taken lies within the padded size, so coordinates stay
 * within padded size + extent + stride in magnitude: this sum is checked, nothing else needs to
 * be. */
static tarn_status count_windows(tarn_axis *axis, int a, bool ceil_mode, tarn_error *error)
{
    int64_t extent = 0, padded = 0, bound = 0; /* compilers add before they know what to add */
    if (!checked_mul(axis->kernel - 1, axis->dilation, &extent) || !checked_add(extent, 1, &extent))
        return tarn_fail(error, TARN_OVERFLOW, a,
                         "kernel %lld with dilation %lld on axis %d spans more than 63 bits count",
                         (long long)axis->kernel, (long long)axis->dilation, a);
    if (!checked_add(axis->size, axis->lo, &padded) || !checked_add(padded, axis->hi, &padded))
        return overflows("the sum of size and paddings", axis->size, axis->lo, axis->hi, a, error);
    int64_t stride = min_i64(axis->stride, padded); /* a longer one is not taken */
    if (!checked_add(padded, extent, &bound) || !checked_add(bound, stride, &bound))
        return overflows("the sum of padded size, window and stride", padded, extent, stride, a,
                         error);
    if (padded < extent && axis->dilation == 1)
        return tarn_fail(error, TARN_DOES_NOT_FIT, a,
                         "kernel %lld does not fit axis %d: padded size is %lld",
                         (long long)axis->kernel, a, (long long)padded);
    if (padded < extent)
        return tarn_fail(error, TARN_DOES_NOT_FIT, a,
                         "kernel %lld with dilation %lld spans %lld and does not fit axis %d: "
                         "padded size is %lld",
                         (long long)axis->kernel, (long long)axis->dilation, (long long)extent, a,
                         (long long)padded);
    int64_t room = padded - extent;
    axis->out = (ceil_mode ? ceil_div(room, axis->stride) : room / axis->stride) + 1;
    if (ceil_mode && (axis->out - 1) * axis->stride >= axis->size + axis->lo)
        axis->out--; /* a window may hang over the edge, but not start beyond it */
    return TARN_OK;
}

static tarn_status check_sliding(tarn_axis *axis, int a, bool ceil_mode, tarn_error *error)
{
    tarn_status status = check_sliding_values(axis, a, error);
    return status ? status : count_windows(axis, a, ceil_mode, error);
}

static tarn_status check_adaptive(tarn_axis *axis, int64_t out, int a, tarn_error *error)
{
    tarn_status status = check_at_least("output size", out, 1, a, error);
    if (status)
        return status;
    axis->adaptive = true;
    axis->out = out;
    /* The longest window. With q = size/out and r/n the fraction left in lowest terms, window i
     * covers ceil((i+1)(q + r/n)) - floor(i(q + r/n)): q cells, and 0, 1 or 2 more for r = 0,
     * 1, more. */
    int64_t rest = axis->size % out / greatest_common_divisor(axis->size, out);
    axis->kernel = axis->size / out + (rest > 1 ? 2 : rest);
    return TARN_OK;
}

static tarn_status check_whole_axis(const tarn_pool *pool, int a, tarn_axis *axis,
                                    tarn_error *error)
{
    switch (pool->window) {
    case TARN_ADAPTIVE:
        return check_adaptive(axis, pool->out[a], a, error);
    case TARN_GLOBAL:
        axis->kernel = axis->size;
        axis->stride = axis->dilation = 1;
        return check_sliding(axis, a, false, error);
    default:
        axis->kernel = pool->kernel[a];
        axis->stride = pool->stride[a];
        axis->dilation = pool->dilation[a];
        axis->lo = pool->pad_lo[a];
        axis->hi = pool->pad_hi[a];
        return check_sliding(axis, a, pool->ceil_mode != 0, error);
    }
}

static tarn_status check_range(const char *what, int64_t first, int64_t count, int64_t all, int a,
                               tarn_error *error)
{
    if (first >= 0 && count >= 1 && count <= all && first <= all - count)
        return TARN_OK;
    return tarn_fail(error, TARN_BAD_WINDOW, a,
                     "a piece of %lld %s from %lld on is none of the %lld on axis %d",
                     (long long)count, what, (long long)first, (long long)all, a);
}

/* [P1] The whole axis becomes the part of it that x and y are. Paddings reach as far as before, so
 * that divisors stay what they are, and windows that are cut have padding where x ends. */
static tarn_status cut_axis(const tarn_pool *pool, int a, int64_t size, tarn_axis *axis,
                            tarn_error *error)
{
    int64_t origin = pool->origin[a], first = pool->first[a], count = pool->count[a];
    tarn_status status;
    if ((status = check_range("cells", origin, size, axis->whole, a, error)) ||
        (status = check_range("windows", first, count, axis->windows, a, error)))
        return status;
    axis->origin = origin;
    axis->first = first;
    axis->size = size;
    axis->out = count;
    if (axis->adaptive && (adaptive_start(axis, 0) != 0 || adaptive_end(axis, count - 1) != size))
        return tarn_fail(error, TARN_BAD_WINDOW, a,
                         "windows %lld to %lld of axis %d read %lld cells from %lld on; the piece "
                         "has %lld from %lld on",
                         (long long)first, (long long)(first + count - 1), a,
                         (long long)(adaptive_end(axis, count - 1) - adaptive_start(axis, 0)),
                         (long long)(adaptive_start(axis, 0) + origin), (long long)size,
                         (long long)origin);
    axis->lo += origin - first * axis->stride;
    axis->hi += axis->whole - origin - size;
    if (axis->adaptive)
        axis->lo = axis->hi = 0;
    if (axis->lo < 0)
        return tarn_fail(error, TARN_BAD_WINDOW, a,
                         "window %lld of axis %d begins %lld cells behind cell %lld, the first of "
                         "the piece",
                         (long long)first, a, (long long)-axis->lo, (long long)origin);
    return TARN_OK;
}

static tarn_status check_axis(const tarn_pool *pool, int a, int64_t size, tarn_axis *axis,
                              tarn_error *error)
{
    bool part = pool->whole[a] != 0;
    if (size < 1)
        return tarn_fail(error, TARN_BAD_SHAPE, a, "spatial axis %d is empty", a);
    if (pool->whole[a] < 0)
        return tarn_fail(error, TARN_BAD_WINDOW, a, "whole size %lld of axis %d is negative",
                         (long long)pool->whole[a], a);
    axis->size = axis->whole = part ? pool->whole[a] : size;
    tarn_status status = check_whole_axis(pool, a, axis, error);
    axis->windows = axis->out;
    if (!status && part)
        status = cut_axis(pool, a, size, axis, error);
    if (status || axis->adaptive)
        return status;
    drop_unused_steps(axis);
    solve_for_windows(axis);
    return TARN_OK;
}

static tarn_status check_enumerations(const tarn_pool *pool, tarn_error *error)
{
    for (int k = 0; k < 4; k++)
        if (pool->reserved[k] != 0)
            return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                             "a reserved member of the pool is not 0");
    if ((int)pool->op < 0 || pool->op >= TARN_OPS)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not an operator", (int)pool->op);
    if ((int)pool->window < 0 || pool->window >= TARN_WINDOWS)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not a window rule",
                         (int)pool->window);
    bool extreme = pool->op == TARN_MAX || pool->op == TARN_MIN;
    if (extreme && ((int)pool->ties < 0 || pool->ties >= TARN_TIES))
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not a tie rule",
                         (int)pool->ties);
    return TARN_OK;
}

static tarn_status check_values(const tarn_pool *pool, tarn_dtype dtype, tarn_error *error)
{
    if (pool->op == TARN_AVG && pool->divisor < 0)
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS, "divisor %lld is negative",
                         (long long)pool->divisor);
    if ((pool->op == TARN_SMOOTH || pool->op == TARN_LP) && !is_floating(dtype))
        return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "%s needs a floating dtype, x is %s",
                         pool->op == TARN_LP ? "lp" : "smooth max", tarn_dtype_name(dtype));
    if (pool->op == TARN_MODE && is_floating(dtype))
        return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "mode needs an integer dtype, x is %s",
                         tarn_dtype_name(dtype));
    if (pool->op == TARN_SMOOTH &&
        (!is_finite_in_any_state(pool->beta) || is_zero_in_any_state(pool->beta)))
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS, "beta %g is not finite and nonzero",
                         pool->beta);
    if (pool->op == TARN_LP &&
        (!is_finite_in_any_state(pool->power) || is_below_in_any_state(pool->power, 1)))
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS, "power %g is not finite and at least 1",
                         pool->power);
    return TARN_OK;
}

/* Multiplies *product by the next factor of a number that is a divisor, a count or an index. */
static tarn_status multiply(const char *what, int64_t *product, int64_t factor, int axis,
                            tarn_error *error)
{
    if (checked_mul(*product, factor, product))
        return TARN_OK;
    return tarn_fail(error, TARN_OVERFLOW, axis,
                     "the number of %s does not fit 63 bits: %lld up to axis %d, times %lld", what,
                     (long long)*product, axis, (long long)factor);
}

static tarn_status check_products(tarn_problem *problem, tarn_error *error)
{
    int64_t taps = 1, windows = 1, cells = 1;
    tarn_status status;
    for (int a = 0; a < problem->spatial; a++)
        if ((status = multiply("taps", &taps, problem->axis[a].kernel, a, error)) ||
            (status = multiply("windows", &windows, problem->axis[a].windows, a, error)) ||
            (status = multiply("cells", &cells, problem->axis[a].whole, a, error)))
            return status;
    problem->element_bytes[OPERAND_SAVED] = taps <= 255 ? 1 : taps <= INT32_MAX ? 4 : 8;
    return TARN_OK;
}

static void begin_problem(const tarn_pool *pool, tarn_dtype dtype, tarn_problem *problem)
{
    /* the rest is as long as `leading` says */
    memset(problem, 0, offsetof(tarn_problem, lead_size));
    problem->op = pool->op;
    problem->dtype = dtype;
    problem->ties = pool->ties;
    problem->count_include_pad = pool->count_include_pad != 0;
    problem->divisor = pool->divisor;
    problem->beta = pool->beta;
    problem->power = is_below_in_any_state(pool->power, 0x1p40) ? pool->power : 0x1p40; /* [N1] */
    problem->spatial = pool->spatial;
}

tarn_status tarn_check_pool(const tarn_pool *pool, const tarn_view *x, tarn_problem *problem,
                            tarn_error *error)
{
    tarn_extent extent;
    tarn_status status;
    if (!pool)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "pool is NULL");
    if ((status = tarn_check_view("x", x, &extent, error)) ||
        (status = check_enumerations(pool, error)))
        return status;
    if (pool->spatial < 1 || pool->spatial > TARN_MAX_SPATIAL)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "%d spatial axes are not in 1..%d",
                         pool->spatial, TARN_MAX_SPATIAL);
    if (x->rank < pool->spatial)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS,
                         "x has rank %d, less than its %d spatial axes", x->rank, pool->spatial);
    if ((status = check_values(pool, x->dtype, error)))
        return status;
    begin_problem(pool, x->dtype, problem);
    if ((status = tarn_check_skip(pool, x->dtype, problem, error)))
        return status;
    for (int a = 0; a < pool->spatial; a++) {
        int64_t size = x->shape[x->rank - pool->spatial + a];
        if ((status = check_axis(pool, a, size, &problem->axis[a], error)))
            return status;
    }
    return check_products(problem, error);
}

void tarn_slide_even_windows(tarn_problem *problem)
{
    for (int a = 0; a < problem->spatial; a++) {
        tarn_axis *axis = &problem->axis[a];
        if (!axis->adaptive || axis->whole % axis->windows != 0)
            continue;
        axis->adaptive = false;
        axis->stride = axis->kernel;
        axis->dilation = 1;
        drop_unused_steps(axis);
        solve_for_windows(axis);
    }
}

void tarn_output_shape(const tarn_pool *pool, const tarn_view *x, const tarn_problem *problem,
                       tarn_view *y)
{
    int leading = x->rank - pool->spatial;
    bool flat = pool->window == TARN_GLOBAL && pool->flat;
    *y = (tarn_view){.dtype = x->dtype, .rank = flat ? leading : x->rank};
    for (int a = 0; a < y->rank; a++)
        y->shape[a] = a < leading ? x->shape[a] : problem->axis[a - leading].out;
    tarn_make_dense_like(y, x);
}

tarn_status tarn_output_view(const tarn_pool *pool, const tarn_view *x, tarn_view *y,
                             tarn_error *error)
{
    tarn_problem problem;
    tarn_extent extent;
    tarn_view result;
    tarn_status status = tarn_check_pool(pool, x, &problem, error);
    if (status)
        return status;
    if (!y)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "y is NULL");
    tarn_output_shape(pool, x, &problem, &result);
    if ((status = tarn_check_view("y", &result, &extent, error)))
        return status;
    *y = result;
    return tarn_succeed(error);
}

tarn_status tarn_output_size(int64_t size, int64_t kernel, int64_t stride, int64_t dilation,
                             int64_t pad_lo, int64_t pad_hi, int ceil_mode, int64_t *out,
                             tarn_error *error)
{
    tarn_axis axis = {.size = size,
                      .kernel = kernel,
                      .stride = stride,
                      .dilation = dilation,
                      .lo = pad_lo,
                      .hi = pad_hi};
    if (!out)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "out is NULL");
    if (size < 1)
        return tarn_fail(error, TARN_BAD_SHAPE, 0, "size %lld is less than 1", (long long)size);
    tarn_status status = check_sliding(&axis, 0, ceil_mode != 0, error);
    if (status)
        return status;
    *out = axis.out;
    return tarn_succeed(error);
}

/* The output shape of `pool` on a dense input, for the two functions below. */
static tarn_status dense_shape(const tarn_pool *pool, int rank, const int64_t *shape,
                               int64_t *out_shape, int *out_rank, tarn_error *error)
{
    tarn_view y;
    if (!out_shape || (!shape && rank > 0))
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "shape is NULL");
    tarn_view x = tarn_view_dense(NULL, TARN_U8, rank, shape);
    tarn_status status = tarn_output_view(pool, &x, &y, error);
    if (status)
        return status;
    *out_rank = y.rank;
    for (int a = 0; a < y.rank; a++)
        out_shape[a] = y.shape[a];
    return TARN_OK;
}

tarn_status tarn_pool2d_shape(int rank, const int64_t *shape, int64_t kernel_h, int64_t kernel_w,
                              int64_t stride, int64_t padding, int64_t *out_shape,
                              tarn_error *error)
{
    int out_rank;
    tarn_pool pool = tarn_max_pool2d_padded(kernel_h, kernel_w, stride, padding);
    return dense_shape(&pool, rank, shape, out_shape, &out_rank, error);
}

tarn_status tarn_global_shape(int rank, const int64_t *shape, int spatial, int flat,
                              int64_t *out_shape, int *out_rank, tarn_error *error)
{
    tarn_pool pool = tarn_global_max_pool(spatial, flat);
    if (!out_rank)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "out_rank is NULL");
    return dense_shape(&pool, rank, shape, out_shape, out_rank, error);
}

int64_t tarn_adaptive_start(int64_t i, int64_t in, int64_t out)
{
    return i < 0 || i >= out || in < 0 ? -1 : muldiv_floor(i, in, out);
}

int64_t tarn_adaptive_end(int64_t i, int64_t in, int64_t out)
{
    return i < 0 || i >= out || in < 0 ? -1 : muldiv_ceil(i + 1, in, out);
}
