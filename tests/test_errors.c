/* Every refusal: the code, the axis, the numbers in the sentence, and nothing written. */
#include "fixture.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define POW2(n) (INT64_C(1) << (n))

static const int64_t extremes[] = {
    0,        -1,        POW2(31) - 1, POW2(31), POW2(31) + 1, POW2(32) - 1, POW2(32) + 1,
    POW2(62), INT64_MAX, INT64_MIN};

/* ---- A scene: one problem with all its tensors, ready to be spoilt -------------------------- */

enum { SAVED = TARN_OPERANDS, TENSORS };

typedef struct {
    tarn_pool pool;
    tarn_options options;
    tarn_view view[TENSORS];
    tensor memory[TENSORS];
    bool absent[TENSORS]; /* NULL instead of the view or pointer */
} scene;

static const int64_t scene_shape[3] = {2, 6, 7};

static bool is_read(int operand)
{
    return operand == TARN_X || operand == TARN_DX || operand == TARN_GY;
}

static void reset_memory(scene *s)
{
    rng r = {1};
    for (int k = 0; k < TENSORS; k++) {
        memset(s->memory[k].memory, POISON, s->memory[k].bytes);
        if (is_read(k))
            fill(&s->memory[k].view, &r, random_small);
        s->view[k] = s->memory[k].view;
        s->absent[k] = false;
    }
    memset(s->memory[SAVED].memory, 0, s->memory[SAVED].bytes);
}

static scene make_scene(tarn_op op, tarn_dtype dtype)
{
    scene s = {.pool = tarn_max_pool2d_padded(3, 2, 2, 1), .options = tarn_options_default()};
    tarn_plan *plan;
    s.pool.op = op;
    tarn_view x = tarn_view_dense(NULL, dtype, 3, scene_shape);
    if (tarn_plan_create(&plan, &s.pool, &x, NULL, NULL))
        abort();
    for (int k = 0; k < TARN_OPERANDS; k++) {
        tarn_view layout;
        tarn_plan_layout(plan, (tarn_operand)k, &layout, NULL);
        s.memory[k] = tensor_like(&layout);
    }
    int64_t bytes = count_of(&s.memory[TARN_Y].view);
    s.memory[SAVED] = tensor_dense(TARN_U8, 1, &bytes);
    tarn_plan_destroy(plan);
    reset_memory(&s);
    return s;
}

static void free_scene(scene *s)
{
    for (int k = 0; k < TENSORS; k++)
        tensor_free(&s->memory[k]);
}

/* Whether no output has been touched and no input changed. */
static bool nothing_written(const scene *s)
{
    for (int k = 0; k < TENSORS; k++)
        if (!is_read(k) && k != SAVED && !is_poison(s->memory[k].memory, s->memory[k].bytes))
            return false;
    return true;
}

/* ---- Entry points --------------------------------------------------------------------------- */

typedef enum {
    POOL_FORWARD,
    POOL_INDICES,
    POOL_JVP,
    POOL_VJP,
    PLAN_FORWARD,
    PLAN_SAVED,
    PLAN_INDICES,
    PLAN_JVP,
    PLAN_VJP,
    PLAN_VJP_SAVED,
    ENTRIES
} entry;

#define BIT(operand) (1u << (operand))

static const struct {
    const char *name;
    unsigned needed, optional, written;
} entries[ENTRIES] = {
    [POOL_FORWARD] = {"pool_forward", BIT(TARN_X) | BIT(TARN_Y), 0, BIT(TARN_Y)},
    [POOL_INDICES] = {"pool_indices", BIT(TARN_X) | BIT(TARN_INDICES), BIT(TARN_Y),
                      BIT(TARN_Y) | BIT(TARN_INDICES)},
    [POOL_JVP] = {"pool_jvp", BIT(TARN_X) | BIT(TARN_DX) | BIT(TARN_DY), BIT(TARN_Y),
                  BIT(TARN_Y) | BIT(TARN_DY)},
    [POOL_VJP] = {"pool_vjp", BIT(TARN_X) | BIT(TARN_GY) | BIT(TARN_GX), 0, BIT(TARN_GX)},
    [PLAN_FORWARD] = {"forward", BIT(TARN_X) | BIT(TARN_Y), 0, BIT(TARN_Y)},
    [PLAN_SAVED] = {"forward saved", BIT(TARN_X) | BIT(TARN_Y), BIT(SAVED),
                    BIT(TARN_Y) | BIT(SAVED)},
    [PLAN_INDICES] = {"forward_indices", BIT(TARN_X) | BIT(TARN_INDICES), BIT(TARN_Y),
                      BIT(TARN_Y) | BIT(TARN_INDICES)},
    [PLAN_JVP] = {"jvp", BIT(TARN_X) | BIT(TARN_DX) | BIT(TARN_DY), BIT(TARN_Y),
                  BIT(TARN_Y) | BIT(TARN_DY)},
    [PLAN_VJP] = {"vjp", BIT(TARN_X) | BIT(TARN_GY) | BIT(TARN_GX), 0, BIT(TARN_GX)},
    [PLAN_VJP_SAVED] = {"vjp saved", BIT(SAVED) | BIT(TARN_GY) | BIT(TARN_GX), 0, BIT(TARN_GX)},
};

static const tarn_view *view_or_null(const scene *s, int k)
{
    return s->absent[k] ? NULL : &s->view[k];
}

static void *data_or_null(const scene *s, int k)
{
    return s->absent[k] ? NULL : s->view[k].data;
}

static tarn_status run_planned(scene *s, entry e, const tarn_plan *plan, tarn_error *error)
{
    void *p[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        p[k] = data_or_null(s, k);
    switch (e) {
    case PLAN_FORWARD:
        return tarn_forward(plan, p[TARN_X], p[TARN_Y], NULL, error);
    case PLAN_SAVED:
        return tarn_forward(plan, p[TARN_X], p[TARN_Y], p[SAVED], error);
    case PLAN_INDICES:
        return tarn_forward_indices(plan, p[TARN_X], p[TARN_Y], p[TARN_INDICES], error);
    case PLAN_JVP:
        return tarn_jvp(plan, p[TARN_X], p[TARN_DX], p[TARN_Y], p[TARN_DY], error);
    case PLAN_VJP:
        return tarn_vjp(plan, p[TARN_X], NULL, p[TARN_GY], p[TARN_GX], error);
    default:
        return tarn_vjp(plan, NULL, p[SAVED], p[TARN_GY], p[TARN_GX], error);
    }
}

static tarn_status call_entry(scene *s, entry e, tarn_error *error)
{
    const tarn_view *v[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        v[k] = view_or_null(s, k);
    switch (e) {
    case POOL_FORWARD:
        return tarn_pool_forward(&s->pool, v[TARN_X], v[TARN_Y], error);
    case POOL_INDICES:
        return tarn_pool_indices(&s->pool, v[TARN_X], v[TARN_Y], v[TARN_INDICES], error);
    case POOL_JVP:
        return tarn_pool_jvp(&s->pool, v[TARN_X], v[TARN_DX], v[TARN_Y], v[TARN_DY], error);
    case POOL_VJP:
        return tarn_pool_vjp(&s->pool, v[TARN_X], v[TARN_GY], v[TARN_GX], error);
    default:
        break;
    }
    tarn_plan *plan;
    tarn_view x = s->memory[TARN_X].view; /* the layout; the data may be spoilt */
    tarn_status status = tarn_plan_create(&plan, &s->pool, &x, &s->options, error);
    if (status)
        return status;
    status = run_planned(s, e, plan, error);
    tarn_plan_destroy(plan);
    return status;
}

/* Calls with and without an error struct: the same code, and nothing written unless it is
 * TARN_OK. */
static tarn_status call_both_ways(scene *s, entry e, tarn_error *error)
{
    memset(error, 0x5a, sizeof *error);
    tarn_status status = call_entry(s, e, error);
    CHECK(status == TARN_OK || nothing_written(s), "%s wrote before failing with %s",
          entries[e].name, tarn_status_name(status));
    CHECK(call_entry(s, e, NULL) == status, "%s with a NULL error", entries[e].name);
    CHECK(error->code == status, "%s: code in the struct", entries[e].name);
    CHECK(memchr(error->message, 0, sizeof error->message), "%s: message ends", entries[e].name);
    if (status == TARN_OK)
        CHECK(error->message[0] == '\0' && error->axis == -1, "%s: success", entries[e].name);
    return status;
}

static bool belongs(unsigned set, int operand)
{
    return (set & BIT(operand)) != 0;
}

/* ---- One checker for all: the descriptor and x ---------------------------------------------- */

/* The ways to ask about a descriptor and an input. All must give one answer. */
enum { ASK_OUTPUT_VIEW, ASK_PLAN, ASK_FORWARD, ASK_INDICES, ASK_JVP, ASK_VJP, ASKS };

static tarn_status ask(scene *s, int how, tarn_error *error)
{
    tarn_view y = {.rank = -77};
    tarn_plan *plan = (tarn_plan *)(void *)&y; /* must become NULL */
    tarn_status status;
    switch (how) {
    case ASK_OUTPUT_VIEW:
        status = tarn_output_view(&s->pool, view_or_null(s, TARN_X), &y, error);
        CHECK(status == TARN_OK || y.rank == -77, "output_view wrote y");
        return status;
    case ASK_PLAN:
        status = tarn_plan_create(&plan, &s->pool, view_or_null(s, TARN_X), &s->options, error);
        CHECK(status == TARN_OK || plan == NULL, "plan is not NULL after %s",
              tarn_status_name(status));
        if (status == TARN_OK)
            tarn_plan_destroy(plan);
        return status;
    default:
        return call_entry(s, POOL_FORWARD + how - ASK_FORWARD, error);
    }
}

static void expect_from_all(scene *s, const char *what, tarn_status code, int axis,
                            const char *words)
{
    for (int how = 0; how < ASKS; how++) {
        tarn_error error = {.axis = 99};
        tarn_status status = ask(s, how, &error);
        CHECK(status == code && error.code == code && error.axis == axis,
              "%s (asked way %d): %s, axis %d, %s", what, how, tarn_status_name(status), error.axis,
              error.message);
        CHECK(strstr(error.message, words), "%s (asked way %d): \"%s\" lacks \"%s\"", what, how,
              error.message, words);
        CHECK(ask(s, how, NULL) == code, "%s (asked way %d) with a NULL error", what, how);
        CHECK(nothing_written(s), "%s (asked way %d) wrote", what, how);
    }
}

typedef struct {
    const char *what;
    tarn_op op;
    void (*spoil)(scene *);
    tarn_status code;
    int axis;
    const char *words; /* that the sentence must contain */
} refusal;

#define SPOIL(name, statement)                                                                     \
    static void name(scene *s)                                                                     \
    {                                                                                              \
        statement;                                                                                 \
    }
SPOIL(no_input, s->absent[TARN_X] = true)
SPOIL(op_negative, s->pool.op = (tarn_op)-1)
SPOIL(op_beyond, s->pool.op = TARN_OPS)
SPOIL(window_negative, s->pool.window = (tarn_window)-5)
SPOIL(window_beyond, s->pool.window = (tarn_window)1000)
SPOIL(ties_negative, s->pool.ties = (tarn_ties)-1)
SPOIL(ties_beyond, s->pool.ties = TARN_TIES)
SPOIL(spatial_zero, s->pool.spatial = 0)
SPOIL(spatial_negative, s->pool.spatial = -2)
SPOIL(spatial_least, s->pool.spatial = INT_MIN)
SPOIL(spatial_nine, s->pool.spatial = 9)
SPOIL(spatial_greatest, s->pool.spatial = INT_MAX)
SPOIL(spatial_above_rank, s->pool.spatial = 4)
SPOIL(rank_negative, s->view[TARN_X].rank = -1)
SPOIL(rank_least, s->view[TARN_X].rank = INT_MIN)
SPOIL(rank_65, s->view[TARN_X].rank = 65)
SPOIL(rank_greatest, s->view[TARN_X].rank = INT_MAX)
SPOIL(rank_zero, s->view[TARN_X].rank = 0)
SPOIL(rank_below_spatial, s->view[TARN_X].rank = 1)
SPOIL(dtype_negative, s->view[TARN_X].dtype = (tarn_dtype)-1)
SPOIL(dtype_beyond, s->view[TARN_X].dtype = TARN_DTYPES)
SPOIL(size_negative, s->view[TARN_X].shape[1] = -4)
SPOIL(size_least, s->view[TARN_X].shape[0] = INT64_MIN)
SPOIL(spatial_axis_empty, s->view[TARN_X].shape[2] = 0)
SPOIL(size_greatest, s->view[TARN_X].shape[1] = INT64_MAX)
SPOIL(bytes_overflow, s->view[TARN_X].shape[0] = POW2(62))
SPOIL(offset_overflow, s->view[TARN_X].strides[1] = INT64_MAX)
SPOIL(offset_underflow, s->view[TARN_X].strides[1] = INT64_MIN)
SPOIL(zero_hides_overflow, s->view[TARN_X].shape[0] = 0; s->view[TARN_X].shape[1] = POW2(40);
      s->view[TARN_X].shape[2] = POW2(40))
SPOIL(kernel_zero, s->pool.kernel[0] = 0)
SPOIL(kernel_negative, s->pool.kernel[1] = -3)
SPOIL(stride_zero, s->pool.stride[1] = 0)
SPOIL(dilation_zero, s->pool.dilation[0] = 0)
SPOIL(pad_lo_negative, s->pool.pad_lo[1] = -1)
SPOIL(pad_hi_negative, s->pool.pad_hi[0] = -9)
SPOIL(kernel_too_large, s->pool.kernel[0] = 9)
SPOIL(dilated_too_large, s->pool.kernel[1] = 4; s->pool.dilation[1] = 3)
SPOIL(extent_overflow, s->pool.kernel[1] = POW2(40); s->pool.dilation[1] = POW2(40))
SPOIL(padded_overflow, s->pool.pad_lo[0] = INT64_MAX)
SPOIL(both_paddings_overflow, s->pool.pad_lo[0] = s->pool.pad_hi[0] = POW2(62))
SPOIL(
    taps_overflow, for (int a = 0; a < 2; a++) {
        s->pool.kernel[a] = s->pool.pad_lo[a] = POW2(40);
        s->pool.stride[a] = POW2(41);
    })
SPOIL(
    windows_overflow, for (int a = 0; a < 2; a++) {
        s->pool.pad_lo[a] = POW2(40);
        s->pool.stride[a] = 1;
    })
SPOIL(adaptive_zero, s->pool.window = TARN_ADAPTIVE; s->pool.out[0] = 0)
SPOIL(adaptive_negative, s->pool.window = TARN_ADAPTIVE; s->pool.out[1] = -7)
SPOIL(adaptive_overflow, s->pool.window = TARN_ADAPTIVE; s->pool.out[0] = s->pool.out[1] = POW2(40))
SPOIL(divisor_negative, s->pool.divisor = -1)
SPOIL(divisor_least, s->pool.divisor = INT64_MIN)
SPOIL(beta_zero, s->pool.beta = 0.0)
SPOIL(beta_minus_zero, s->pool.beta = -0.0)
SPOIL(beta_nan, s->pool.beta = (double)NAN)
SPOIL(beta_infinite, s->pool.beta = (double)INFINITY)
SPOIL(beta_minus_infinite, s->pool.beta = -(double)INFINITY)
SPOIL(power_below_one, s->pool.power = 0.99)
SPOIL(power_negative, s->pool.power = -2.0)
SPOIL(power_nan, s->pool.power = (double)NAN)
SPOIL(power_infinite, s->pool.power = (double)INFINITY)
SPOIL(divisor_of_all, s->pool.window = TARN_GLOBAL; s->pool.divisor = -1)
SPOIL(skip_negative, s->pool.skip = (tarn_skip)-1)
SPOIL(skip_beyond, s->pool.skip = TARN_SKIPS)
SPOIL(skips, s->pool.skip = TARN_SKIP_NAN)
SPOIL(skips_nan_integers, s->pool.skip = TARN_SKIP_NAN; s->view[TARN_X].dtype = TARN_I32)
SPOIL(skips_half, s->pool.skip = TARN_SKIP_REAL; s->pool.skip_real = 0.5;
      s->view[TARN_X].dtype = TARN_I32)
SPOIL(skips_real_nan, s->pool.skip = TARN_SKIP_REAL; s->pool.skip_real = (double)NAN)
SPOIL(skips_too_large, s->pool.skip = TARN_SKIP_REAL; s->pool.skip_real = 1e39)
SPOIL(skips_256, s->pool.skip = TARN_SKIP_INTEGER; s->pool.skip_integer = 256;
      s->view[TARN_X].dtype = TARN_U8)
SPOIL(skips_minus_129, s->pool.skip = TARN_SKIP_REAL; s->pool.skip_real = -129;
      s->view[TARN_X].dtype = TARN_I8)
SPOIL(skips_unsigned, s->pool.skip = TARN_SKIP_UNSIGNED; s->pool.skip_integer = -1;
      s->view[TARN_X].dtype = TARN_I64)
SPOIL(skips_minus_one, s->pool.skip = TARN_SKIP_INTEGER; s->pool.skip_integer = -1;
      s->view[TARN_X].dtype = TARN_U64)
SPOIL(count_negative, s->pool.skip = TARN_SKIP_NAN; s->pool.min_count = -1)
SPOIL(mode_of_floats, s->pool.op = TARN_MODE)
SPOIL(integers, s->view[TARN_X].dtype = TARN_I32)

static const refusal refusals[] = {
    {"NULL x", TARN_MAX, no_input, TARN_BAD_ARGUMENT, -1, "x is NULL"},
    {"op -1", TARN_MAX, op_negative, TARN_BAD_ARGUMENT, -1, "-1"},
    {"op beyond", TARN_MAX, op_beyond, TARN_BAD_ARGUMENT, -1, "6"},
    {"window -5", TARN_MAX, window_negative, TARN_BAD_ARGUMENT, -1, "-5"},
    {"window 1000", TARN_MAX, window_beyond, TARN_BAD_ARGUMENT, -1, "1000"},
    {"ties -1", TARN_MIN, ties_negative, TARN_BAD_ARGUMENT, -1, "-1"},
    {"ties beyond", TARN_MIN, ties_beyond, TARN_BAD_ARGUMENT, -1, "3"},
    {"spatial 0", TARN_MAX, spatial_zero, TARN_BAD_RANK, -1, "0 spatial"},
    {"spatial -2", TARN_AVG, spatial_negative, TARN_BAD_RANK, -1, "-2 spatial"},
    {"spatial INT_MIN", TARN_AVG, spatial_least, TARN_BAD_RANK, -1, "-2147483648"},
    {"spatial 9", TARN_AVG, spatial_nine, TARN_BAD_RANK, -1, "9 spatial"},
    {"spatial INT_MAX", TARN_AVG, spatial_greatest, TARN_BAD_RANK, -1, "2147483647"},
    {"spatial > rank", TARN_MAX, spatial_above_rank, TARN_BAD_RANK, -1, "rank 3, less than its 4"},
    {"rank -1", TARN_MAX, rank_negative, TARN_BAD_RANK, -1, "-1"},
    {"rank INT_MIN", TARN_MAX, rank_least, TARN_BAD_RANK, -1, "-2147483648"},
    {"rank 65", TARN_MAX, rank_65, TARN_BAD_RANK, -1, "65, not in 0..64"},
    {"rank INT_MAX", TARN_MAX, rank_greatest, TARN_BAD_RANK, -1, "2147483647"},
    {"rank 0", TARN_MAX, rank_zero, TARN_BAD_RANK, -1, "rank 0"},
    {"rank 1", TARN_MAX, rank_below_spatial, TARN_BAD_RANK, -1, "rank 1"},
    {"dtype -1", TARN_MAX, dtype_negative, TARN_BAD_DTYPE, -1, "-1"},
    {"dtype beyond", TARN_MAX, dtype_beyond, TARN_BAD_DTYPE, -1, "12"},
    {"size -4", TARN_MAX, size_negative, TARN_BAD_SHAPE, -1, "-4 in dimension 1"},
    {"size INT64_MIN", TARN_MAX, size_least, TARN_BAD_SHAPE, -1,
     "-9223372036854775808 in dimension 0"},
    {"empty spatial", TARN_MAX, spatial_axis_empty, TARN_BAD_SHAPE, 1, "axis 1"},
    {"size INT64_MAX", TARN_MAX, size_greatest, TARN_OVERFLOW, -1, "x"},
    {"bytes", TARN_MAX, bytes_overflow, TARN_OVERFLOW, -1, "x"},
    {"offset", TARN_MAX, offset_overflow, TARN_OVERFLOW, -1, "x"},
    {"negative offset", TARN_MAX, offset_underflow, TARN_OVERFLOW, -1, "x"},
    {"zero hides overflow", TARN_MAX, zero_hides_overflow, TARN_OVERFLOW, -1, "x"},
    {"kernel 0", TARN_MAX, kernel_zero, TARN_BAD_WINDOW, 0, "kernel 0 on axis 0"},
    {"kernel -3", TARN_AVG, kernel_negative, TARN_BAD_WINDOW, 1, "kernel -3 on axis 1"},
    {"stride 0", TARN_SMOOTH, stride_zero, TARN_BAD_WINDOW, 1, "stride 0 on axis 1"},
    {"dilation 0", TARN_MIN, dilation_zero, TARN_BAD_WINDOW, 0, "dilation 0 on axis 0"},
    {"pad_lo -1", TARN_MAX, pad_lo_negative, TARN_BAD_WINDOW, 1, "-1 on axis 1"},
    {"pad_hi -9", TARN_MAX, pad_hi_negative, TARN_BAD_WINDOW, 0, "-9 on axis 0"},
    {"kernel 9", TARN_MAX, kernel_too_large, TARN_DOES_NOT_FIT, 0,
     "kernel 9 does not fit axis 0: padded size is 8"},
    {"dilated kernel", TARN_AVG, dilated_too_large, TARN_DOES_NOT_FIT, 1,
     "kernel 4 with dilation 3 spans 10 and does not fit axis 1: padded size is 9"},
    {"extent", TARN_MAX, extent_overflow, TARN_OVERFLOW, 1, "axis 1"},
    {"padded size", TARN_MAX, padded_overflow, TARN_OVERFLOW, 0, "axis 0"},
    {"both paddings", TARN_MAX, both_paddings_overflow, TARN_OVERFLOW, 0, "axis 0"},
    {"taps", TARN_MAX, taps_overflow, TARN_OVERFLOW, 1, "axis 1"},
    {"windows", TARN_MAX, windows_overflow, TARN_OVERFLOW, 1, "axis 1"},
    {"adaptive 0", TARN_MAX, adaptive_zero, TARN_BAD_WINDOW, 0, "0 on axis 0"},
    {"adaptive -7", TARN_AVG, adaptive_negative, TARN_BAD_WINDOW, 1, "-7 on axis 1"},
    {"adaptive 2^80", TARN_AVG, adaptive_overflow, TARN_OVERFLOW, 1, "axis 1"},
    {"divisor -1", TARN_AVG, divisor_negative, TARN_BAD_VALUE, -1, "-1"},
    {"divisor INT64_MIN", TARN_AVG, divisor_least, TARN_BAD_VALUE, -1, "-9223372036854775808"},
    {"beta 0", TARN_SMOOTH, beta_zero, TARN_BAD_VALUE, -1, "0"},
    {"beta -0", TARN_SMOOTH, beta_minus_zero, TARN_BAD_VALUE, -1, "-0"},
    {"beta NaN", TARN_SMOOTH, beta_nan, TARN_BAD_VALUE, -1, "nan"},
    {"beta inf", TARN_SMOOTH, beta_infinite, TARN_BAD_VALUE, -1, "inf"},
    {"beta -inf", TARN_SMOOTH, beta_minus_infinite, TARN_BAD_VALUE, -1, "-inf"},
    {"smooth i32", TARN_SMOOTH, integers, TARN_BAD_DTYPE, -1, "smooth max needs"},
    {"p 0.99", TARN_LP, power_below_one, TARN_BAD_VALUE, -1, "power 0.99"},
    {"p -2", TARN_LP, power_negative, TARN_BAD_VALUE, -1, "-2"},
    {"p NaN", TARN_LP, power_nan, TARN_BAD_VALUE, -1, "nan"},
    {"p inf", TARN_LP, power_infinite, TARN_BAD_VALUE, -1, "inf"},
    {"divisor of all", TARN_AVG, divisor_of_all, TARN_BAD_VALUE, -1, "-1"},
    {"skip -1", TARN_MAX, skip_negative, TARN_BAD_ARGUMENT, -1, "-1 is not a rule"},
    {"skip beyond", TARN_AVG, skip_beyond, TARN_BAD_ARGUMENT, -1, "5 is not a rule"},
    {"smooth skips", TARN_SMOOTH, skips, TARN_UNSUPPORTED, -1, "smooth max does not skip"},
    {"lp skips", TARN_LP, skips, TARN_UNSUPPORTED, -1, "lp does not skip"},
    {"NaN of i32", TARN_MIN, skips_nan_integers, TARN_BAD_DTYPE, -1, "x is i32"},
    {"0.5 of i32", TARN_AVG, skips_half, TARN_BAD_VALUE, -1, "0.5 is not a number of i32"},
    {"real NaN", TARN_AVG, skips_real_nan, TARN_BAD_VALUE, -1, "NaN"},
    {"1e39 of f32", TARN_AVG, skips_too_large, TARN_BAD_VALUE, -1, "is not a number of f32"},
    {"256 of u8", TARN_MAX, skips_256, TARN_BAD_VALUE, -1, "256 is not a number of u8"},
    {"-129 of i8", TARN_MAX, skips_minus_129, TARN_BAD_VALUE, -1, "-129 is not a number of i8"},
    {"2^64-1 of i64", TARN_MAX, skips_unsigned, TARN_BAD_VALUE, -1,
     "18446744073709551615 is not a number of i64"},
    {"-1 of u64", TARN_MIN, skips_minus_one, TARN_BAD_VALUE, -1, "-1 is not a number of u64"},
    {"min_count -1", TARN_MAX, count_negative, TARN_BAD_VALUE, -1, "min_count -1 is negative"},
    {"mode f32", TARN_MAX, mode_of_floats, TARN_BAD_DTYPE, -1,
     "mode needs an integer dtype, x is f32"},
    {"lp i32", TARN_LP, integers, TARN_BAD_DTYPE, -1, "lp needs a floating dtype, x is i32"},
};

static void test_refusals(void)
{
    for (int k = 0; k < COUNT(refusals); k++) {
        scene s = make_scene(refusals[k].op, TARN_F32);
        refusals[k].spoil(&s);
        expect_from_all(&s, refusals[k].what, refusals[k].code, refusals[k].axis,
                        refusals[k].words);
        free_scene(&s);
    }
}

/* ---- Extreme values of every number of a descriptor ----------------------------------------- */

/* What exact arithmetic says about one sliding axis. Sums that pass 2^63 may be refused as overflow
 * even where the answer itself would fit. */
typedef struct {
    tarn_status status;
    bool may_overflow;
    tarn_i128 out;
} verdict;

static verdict judge_axis(const tarn_pool *pool, int a, int64_t size)
{
    tarn_i128 stride = pool->stride[a];
    tarn_i128 extent = ((tarn_i128)pool->kernel[a] - 1) * pool->dilation[a] + 1;
    tarn_i128 padded = (tarn_i128)size + pool->pad_lo[a] + pool->pad_hi[a];
    if (size < 1)
        return (verdict){.status = TARN_BAD_SHAPE};
    if (pool->kernel[a] < 1 || stride < 1 || pool->dilation[a] < 1 || pool->pad_lo[a] < 0 ||
        pool->pad_hi[a] < 0)
        return (verdict){.status = TARN_BAD_WINDOW};
    if (extent > INT64_MAX || padded > INT64_MAX)
        return (verdict){.status = TARN_OVERFLOW, .may_overflow = true};
    verdict v = {.may_overflow = padded + extent + stride > INT64_MAX};
    if (extent > padded) {
        v.status = TARN_DOES_NOT_FIT;
        return v;
    }
    tarn_i128 room = padded - extent;
    v.out = (pool->ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
    if (pool->ceil_mode && (v.out - 1) * stride >= (tarn_i128)size + pool->pad_lo[a])
        v.out--;
    return v;
}

static bool agrees(verdict v, tarn_status status)
{
    return status == v.status || (v.may_overflow && status == TARN_OVERFLOW);
}

static const size_t sliding_members[] = {offsetof(tarn_pool, kernel), offsetof(tarn_pool, stride),
                                         offsetof(tarn_pool, dilation), offsetof(tarn_pool, pad_lo),
                                         offsetof(tarn_pool, pad_hi)};

static int64_t *member_of(tarn_pool *pool, size_t offset, int axis)
{
    return (int64_t *)(void *)((char *)pool + offset) + axis;
}

static void check_output_size(const tarn_pool *pool, int a, int64_t size)
{
    tarn_error error = {.axis = 99};
    int64_t out = -7;
    verdict v = judge_axis(pool, a, size);
    tarn_status status =
        tarn_output_size(size, pool->kernel[a], pool->stride[a], pool->dilation[a], pool->pad_lo[a],
                         pool->pad_hi[a], pool->ceil_mode, &out, &error);
    CHECK(agrees(v, status), "size %lld k%lld s%lld d%lld p%lld,%lld ceil %d: %s", (long long)size,
          (long long)pool->kernel[a], (long long)pool->stride[a], (long long)pool->dilation[a],
          (long long)pool->pad_lo[a], (long long)pool->pad_hi[a], pool->ceil_mode,
          tarn_status_name(status));
    CHECK(out == (status ? -7 : (int64_t)v.out), "output_size wrote %lld", (long long)out);
    CHECK(error.axis == (status ? 0 : -1), "output_size: axis %d", error.axis);
}

/* Every pair of extreme numbers in the five members of one axis, and every extreme size. */
static void test_output_size_extremes(void)
{
    for (int ceil_mode = 0; ceil_mode <= 1; ceil_mode++)
        for (int m = 0; m < COUNT(sliding_members); m++)
            for (int n = 0; n <= m; n++)
                for (int e = 0; e < COUNT(extremes); e++)
                    for (int f = 0; f < COUNT(extremes); f++)
                        for (int z = -1; z < COUNT(extremes); z++) {
                            tarn_pool pool = tarn_max_pool(1);
                            pool.ceil_mode = ceil_mode;
                            *member_of(&pool, sliding_members[n], 0) = extremes[f];
                            *member_of(&pool, sliding_members[m], 0) = extremes[e];
                            check_output_size(&pool, 0, z < 0 ? 9 : extremes[z]);
                        }
}

/* The same numbers through every way to ask. Where they are legal the outputs no longer have the
 * scene's shape, which is then the answer of the passes. */
static void ask_extreme(scene *s, int axis, verdict v, const char *what, int64_t value)
{
    for (int how = 0; how < ASKS; how++) {
        tarn_error error = {.axis = 99};
        tarn_status status = ask(s, how, &error);
        bool fits = v.status == TARN_OK && (status == TARN_BAD_SHAPE || status == TARN_OVERFLOW);
        CHECK(agrees(v, status) || (how >= ASK_FORWARD && fits) ||
                  (status == TARN_OVERFLOW && v.out > POW2(50)),
              "%s %lld on axis %d (asked way %d): %s: %s", what, (long long)value, axis, how,
              tarn_status_name(status), error.message);
        CHECK(ask(s, how, NULL) == status, "%s %lld with a NULL error", what, (long long)value);
        if (status == v.status && status != TARN_OK)
            CHECK(error.axis == axis, "%s %lld: axis %d, expected %d", what, (long long)value,
                  error.axis, axis);
        CHECK(status == TARN_OK || nothing_written(s), "%s %lld wrote", what, (long long)value);
    }
}

static void test_descriptor_extremes(void)
{
    for (int op = 0; op < TARN_OPS; op++)
        for (int m = 0; m < COUNT(sliding_members); m++)
            for (int e = 0; e < COUNT(extremes); e++)
                for (int axis = 0; axis < 2; axis++) {
                    scene s = make_scene((tarn_op)op, op == TARN_MODE ? TARN_I32 : TARN_F32);
                    *member_of(&s.pool, sliding_members[m], axis) = extremes[e];
                    verdict v = judge_axis(&s.pool, axis, scene_shape[1 + axis]);
                    if (v.status || v.out != s.view[TARN_Y].shape[1 + axis])
                        ask_extreme(&s, axis, v, "member", extremes[e]);
                    free_scene(&s);
                }
}

static void test_adaptive_extremes(void)
{
    for (int e = 0; e < COUNT(extremes); e++)
        for (int axis = 0; axis < 2; axis++) {
            scene s = make_scene(TARN_AVG, TARN_F32);
            s.pool.window = TARN_ADAPTIVE;
            s.pool.out[axis] = extremes[e];
            verdict v = {.status = extremes[e] < 1 ? TARN_BAD_WINDOW : TARN_OK, .out = extremes[e]};
            ask_extreme(&s, axis, v, "out", extremes[e]);
            free_scene(&s);
        }
}

static void test_shape_queries(void)
{
    const int64_t shape[3] = {2, 6, 7};
    int64_t out[3] = {-7, -7, -7};
    for (int e = 0; e < COUNT(extremes); e++)
        for (int which = 0; which < 4; which++) {
            int64_t n[4] = {3, 3, 2, 1};
            n[which] = extremes[e];
            tarn_pool pool = tarn_max_pool2d_padded(n[0], n[1], n[2], n[3]);
            verdict h = judge_axis(&pool, 0, 6), w = judge_axis(&pool, 1, 7);
            tarn_status status = tarn_pool2d_shape(3, shape, n[0], n[1], n[2], n[3], out, NULL);
            verdict v = h.status ? h : w;
            v.may_overflow |= w.may_overflow || h.out * w.out > POW2(60);
            CHECK(agrees(v, status), "pool2d_shape %lld %lld %lld %lld: %s", (long long)n[0],
                  (long long)n[1], (long long)n[2], (long long)n[3], tarn_status_name(status));
            CHECK(out[0] == (status ? -7 : 2), "pool2d_shape wrote on error");
            out[0] = out[1] = out[2] = -7;
        }
    for (int e = 0; e < COUNT(extremes); e++)
        for (int axis = 0; axis < 3; axis++) {
            int64_t odd[3] = {2, 6, 7};
            int rank = -7;
            odd[axis] = extremes[e];
            tarn_i128 bytes = 1;
            for (int a = 0; a < 3; a++)
                bytes *= odd[a] > 0 ? odd[a] : 1;
            tarn_status code = odd[axis] < 0 || (odd[axis] == 0 && axis > 0) ? TARN_BAD_SHAPE
                               : bytes > INT64_MAX                           ? TARN_OVERFLOW
                                                                             : TARN_OK;
            tarn_status status = tarn_global_shape(3, odd, 2, 0, out, &rank, NULL);
            CHECK(status == code && rank == (status ? -7 : 3), "global_shape %lld on axis %d: %s",
                  (long long)extremes[e], axis, tarn_status_name(status));
        }
}

static void test_shape_query_pointers(void)
{
    const int64_t shape[2] = {4, 4};
    int64_t out[2];
    int rank;
    tarn_pool pool = tarn_max_pool(2);
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 2, shape), y;
    tarn_error error;
    CHECK(tarn_output_size(4, 2, 2, 1, 0, 0, 0, NULL, &error) == TARN_BAD_ARGUMENT, "out");
    CHECK(tarn_pool2d_shape(2, NULL, 2, 2, 2, 0, out, &error) == TARN_BAD_ARGUMENT, "shape");
    CHECK(tarn_pool2d_shape(2, shape, 2, 2, 2, 0, NULL, &error) == TARN_BAD_ARGUMENT, "out_shape");
    CHECK(tarn_pool2d_shape(1, shape, 2, 2, 2, 0, out, &error) == TARN_BAD_RANK, "rank 1");
    CHECK(tarn_pool2d_shape(-1, shape, 2, 2, 2, 0, out, &error) == TARN_BAD_RANK, "rank -1");
    CHECK(tarn_global_shape(2, NULL, 2, 0, out, &rank, &error) == TARN_BAD_ARGUMENT, "shape");
    CHECK(tarn_global_shape(2, shape, 2, 0, NULL, &rank, &error) == TARN_BAD_ARGUMENT, "out_shape");
    CHECK(tarn_global_shape(2, shape, 2, 0, out, NULL, &error) == TARN_BAD_ARGUMENT, "out_rank");
    CHECK(tarn_global_shape(INT_MIN, shape, 2, 0, out, &rank, &error) == TARN_BAD_RANK, "INT_MIN");
    CHECK(tarn_output_view(NULL, &x, &y, &error) == TARN_BAD_ARGUMENT, "pool");
    CHECK(tarn_output_view(&pool, NULL, &y, &error) == TARN_BAD_ARGUMENT, "x");
    CHECK(tarn_output_view(&pool, &x, NULL, &error) == TARN_BAD_ARGUMENT, "y");
}

/* ---- Mismatched, overlapping and overflowing layouts of the other tensors ------------------- */

typedef struct {
    const char *what;
    void (*spoil)(tarn_view *);
    tarn_status read, written; /* expected for inputs and for outputs */
} misfit;

#define MISFIT(name, statement)                                                                    \
    static void name(tarn_view *v)                                                                 \
    {                                                                                              \
        statement;                                                                                 \
    }
MISFIT(rank_more, v->rank = 4; v->shape[3] = 1)
MISFIT(rank_less, v->rank = 2)
MISFIT(rank_none, v->rank = 0)
MISFIT(rank_huge, v->rank = INT_MAX)
MISFIT(rank_minus, v->rank = -1)
MISFIT(other_dtype, v->dtype = v->dtype == TARN_I64 ? TARN_U64 : TARN_I32)
MISFIT(no_dtype, v->dtype = (tarn_dtype)-1)
MISFIT(no_such_dtype, v->dtype = (tarn_dtype)64)
MISFIT(lead_more, v->shape[0]++)
MISFIT(lead_less, v->shape[0]--)
MISFIT(lead_zero, v->shape[0] = 0)
MISFIT(outer_more, v->shape[1]++)
MISFIT(inner_less, v->shape[2]--)
MISFIT(inner_zero, v->shape[2] = 0)
MISFIT(inner_negative, v->shape[2] = -v->shape[2])
MISFIT(inner_2_32, v->shape[2] += POW2(32))
MISFIT(inner_least, v->shape[2] = INT64_MIN)
MISFIT(inner_greatest, v->shape[2] = INT64_MAX)
MISFIT(swapped, int64_t h = v->shape[1]; v->shape[1] = v->shape[2] + 1; v->shape[2] = h)
MISFIT(stride_inner_zero, v->strides[2] = 0)
MISFIT(stride_lead_zero, v->strides[0] = 0)
MISFIT(stride_outer_small, v->strides[1] = v->shape[2] - 1)
MISFIT(stride_outer_reversed_small, v->strides[1] = 1 - v->shape[2])
MISFIT(stride_greatest, v->strides[1] = INT64_MAX)
MISFIT(stride_least, v->strides[1] = INT64_MIN)

static const misfit misfits[] = {
    {"rank 4", rank_more, TARN_BAD_RANK, TARN_BAD_RANK},
    {"rank 2", rank_less, TARN_BAD_RANK, TARN_BAD_RANK},
    {"rank 0", rank_none, TARN_BAD_RANK, TARN_BAD_RANK},
    {"rank INT_MAX", rank_huge, TARN_BAD_RANK, TARN_BAD_RANK},
    {"rank -1", rank_minus, TARN_BAD_RANK, TARN_BAD_RANK},
    {"other dtype", other_dtype, TARN_BAD_DTYPE, TARN_BAD_DTYPE},
    {"dtype -1", no_dtype, TARN_BAD_DTYPE, TARN_BAD_DTYPE},
    {"dtype 64", no_such_dtype, TARN_BAD_DTYPE, TARN_BAD_DTYPE},
    {"more planes", lead_more, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"fewer planes", lead_less, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"no planes", lead_zero, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"more rows", outer_more, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"fewer columns", inner_less, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"no columns", inner_zero, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"negative columns", inner_negative, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"2^32 more columns", inner_2_32, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"INT64_MIN columns", inner_least, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"INT64_MAX columns", inner_greatest, TARN_OVERFLOW, TARN_OVERFLOW},
    {"swapped axes", swapped, TARN_BAD_SHAPE, TARN_BAD_SHAPE},
    {"stride 0, innermost", stride_inner_zero, TARN_OK, TARN_BAD_LAYOUT},
    {"stride 0, planes", stride_lead_zero, TARN_OK, TARN_BAD_LAYOUT},
    {"stride too small", stride_outer_small, TARN_OK, TARN_BAD_LAYOUT},
    {"stride too small, reversed", stride_outer_reversed_small, TARN_OK, TARN_BAD_LAYOUT},
    {"stride INT64_MAX", stride_greatest, TARN_OVERFLOW, TARN_OVERFLOW},
    {"stride INT64_MIN", stride_least, TARN_OVERFLOW, TARN_OVERFLOW},
};

/* Names of the operands as the messages spell them. */
static const char *const operand_words[TENSORS] = {"x",  "y",  "dx",      "dy",
                                                   "gx", "gy", "indices", "saved"};

static void check_misfit_of_call(const misfit *m, entry e, int operand)
{
    tarn_error error;
    scene s = make_scene(TARN_MAX, TARN_F32);
    m->spoil(&s.view[operand]);
    tarn_status expected = is_read(operand) ? m->read : m->written;
    if (expected != TARN_OK) {
        tarn_status status = call_both_ways(&s, e, &error);
        CHECK(status == expected, "%s of %s in %s: %s: %s", m->what, operand_words[operand],
              entries[e].name, tarn_status_name(status), error.message);
        CHECK(strstr(error.message, operand_words[operand]), "\"%s\" does not name %s",
              error.message, operand_words[operand]);
    }
    free_scene(&s);
}

static void check_misfit_of_plan(const misfit *m, int operand)
{
    tarn_error error = {.code = TARN_OK};
    scene s = make_scene(TARN_MAX, TARN_F32);
    tarn_plan *plan = (tarn_plan *)(void *)&s;
    m->spoil(&s.view[operand]);
    s.options.layout[operand] = &s.view[operand];
    tarn_status expected = is_read(operand) ? m->read : m->written;
    tarn_status status = tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], &s.options, &error);
    CHECK(status == expected && (status == TARN_OK) == (plan != NULL), "%s of layout %s: %s: %s",
          m->what, operand_words[operand], tarn_status_name(status), error.message);
    tarn_plan_destroy(plan);
    free_scene(&s);
}

static void test_misfits(void)
{
    for (int m = 0; m < COUNT(misfits); m++) {
        for (int e = POOL_FORWARD; e <= POOL_VJP; e++)
            for (int k = TARN_Y; k < TARN_OPERANDS; k++)
                if (belongs(entries[e].needed | entries[e].optional, k))
                    check_misfit_of_call(&misfits[m], (entry)e, k);
        for (int k = TARN_Y; k < TARN_OPERANDS; k++)
            check_misfit_of_plan(&misfits[m], k);
    }
}

/* Strides at the edge of 63 bits, where checking itself can overflow. Each needs bytes of one, so
 * that nothing but the stride is large. */
static void test_extreme_strides(void)
{
    static const struct {
        const char *what;
        int64_t shape[2], strides[2];
        tarn_status code;
    } cases[] = {
        {"one cell, INT64_MIN", {1, 1}, {INT64_MIN, INT64_MIN}, TARN_OK},
        {"one cell, INT64_MAX", {1, 1}, {INT64_MAX, INT64_MAX}, TARN_OK},
        {"empty, INT64_MIN", {0, 1}, {INT64_MIN, INT64_MIN}, TARN_OK},
        {"two cells, INT64_MIN", {2, 1}, {INT64_MIN, 1}, TARN_OK},
        {"two cells, INT64_MAX - 1", {2, 1}, {INT64_MAX - 1, 1}, TARN_OK},
        {"two cells, INT64_MAX", {2, 1}, {INT64_MAX, 1}, TARN_OVERFLOW},
        {"far apart both ways", {2, 2}, {INT64_MAX - 1, -INT64_MAX}, TARN_OK},
        {"far apart one way", {2, 2}, {INT64_MIN, -1}, TARN_OVERFLOW},
        {"three cells, INT64_MIN", {3, 1}, {INT64_MIN, 1}, TARN_OVERFLOW},
        {"2^62 twice", {2, 2}, {POW2(62), POW2(62) - 1}, TARN_OVERFLOW},
        {"2^62 there and back", {2, 2}, {POW2(62), -POW2(62)}, TARN_BAD_LAYOUT},
    };
    tarn_pool pool = tarn_max_pool(1);
    for (int c = 0; c < COUNT(cases); c++)
        for (int k = TARN_Y; k <= TARN_GY; k++) {
            tarn_plan *plan;
            tarn_view x = tarn_view_dense(NULL, TARN_U8, 2, cases[c].shape), odd = x;
            tarn_view indices = tarn_view_dense(NULL, TARN_I64, 2, cases[c].shape);
            tarn_options options = tarn_options_default();
            options.layout[TARN_INDICES] = &indices; /* else they would be laid out as y */
            memcpy(odd.strides, cases[c].strides, sizeof cases[c].strides);
            options.layout[k] = &odd;
            tarn_status expected = cases[c].code;
            if (is_read(k) && expected == TARN_BAD_LAYOUT)
                expected = TARN_OK;
            tarn_status status = tarn_plan_create(&plan, &pool, &x, &options, NULL);
            CHECK(status == expected, "%s of %s: %s", cases[c].what, operand_words[k],
                  tarn_status_name(status));
            tarn_plan_destroy(plan);
        }
}

/* Leading axes are merged where their strides allow it; that product must not overflow either. */
static void test_extreme_leading_strides(void)
{
    const int64_t shape[3] = {2, 2, 1};
    static const int64_t strides[][2] = {{1, POW2(62)},
                                         {POW2(61), POW2(62)},
                                         {INT64_MIN, INT64_MAX - 1},
                                         {0, INT64_MAX - 1},
                                         {POW2(32), POW2(62)}};
    tarn_pool pool = tarn_max_pool(1);
    for (int c = 0; c < COUNT(strides); c++) {
        tarn_plan *plan;
        tarn_view x = tarn_view_dense(NULL, TARN_U8, 3, shape);
        x.strides[0] = strides[c][0];
        x.strides[1] = strides[c][1];
        CHECK(tarn_plan_create(&plan, &pool, &x, NULL, NULL) == TARN_OK, "leading strides %d", c);
        tarn_plan_destroy(plan);
    }
}

/* ---- Data: NULL, misaligned, shared --------------------------------------------------------- */

static void test_null_operands(void)
{
    for (int e = 0; e < ENTRIES; e++)
        for (int k = 0; k < TENSORS; k++) {
            tarn_error error;
            scene s = make_scene(TARN_MAX, TARN_F32);
            s.absent[k] = true;
            if (belongs(entries[e].needed, k) && !(e == PLAN_VJP_SAVED && k == SAVED)) {
                CHECK(call_both_ways(&s, (entry)e, &error) == TARN_BAD_ARGUMENT, "%s without %s",
                      entries[e].name, operand_words[k]);
                CHECK(strstr(error.message, "NULL"), "%s", error.message);
            } else if (belongs(entries[e].optional, k)) {
                CHECK(call_both_ways(&s, (entry)e, &error) == TARN_OK, "%s without %s",
                      entries[e].name, operand_words[k]);
            }
            free_scene(&s);
        }
}

/* A view that is there, but has no data, is not the same as no view. */
static void test_null_data(void)
{
    for (int e = POOL_FORWARD; e <= POOL_VJP; e++)
        for (int k = 0; k < TARN_OPERANDS; k++) {
            tarn_error error;
            scene s = make_scene(TARN_MAX, TARN_F32);
            s.view[k].data = NULL;
            if (belongs(entries[e].needed | entries[e].optional, k))
                CHECK(call_both_ways(&s, (entry)e, &error) == TARN_BAD_ARGUMENT,
                      "%s with NULL data of %s", entries[e].name, operand_words[k]);
            free_scene(&s);
        }
}

static void test_null_pool_and_plan(void)
{
    tarn_error error;
    scene s = make_scene(TARN_MAX, TARN_F32);
    tarn_view *v = s.view, got;
    tarn_plan *plan;
    CHECK(tarn_pool_forward(NULL, v, v + TARN_Y, &error) == TARN_BAD_ARGUMENT, "pool");
    CHECK(tarn_pool_indices(NULL, v, NULL, v + TARN_INDICES, &error) == TARN_BAD_ARGUMENT, "pool");
    CHECK(tarn_pool_jvp(NULL, v, v + TARN_DX, NULL, v + TARN_DY, NULL) == TARN_BAD_ARGUMENT, "p");
    CHECK(tarn_pool_vjp(NULL, v, v + TARN_GY, v + TARN_GX, NULL) == TARN_BAD_ARGUMENT, "pool");
    for (int e = PLAN_FORWARD; e < ENTRIES; e++) {
        CHECK(run_planned(&s, (entry)e, NULL, &error) == TARN_BAD_ARGUMENT, "%s", entries[e].name);
        CHECK(run_planned(&s, (entry)e, NULL, NULL) == TARN_BAD_ARGUMENT, "%s", entries[e].name);
        CHECK(strstr(error.message, "plan"), "%s", error.message);
    }
    CHECK(nothing_written(&s), "without a plan");
    CHECK(tarn_plan_create(NULL, &s.pool, v, NULL, &error) == TARN_BAD_ARGUMENT, "plan");
    CHECK(tarn_plan_create(NULL, &s.pool, v, NULL, NULL) == TARN_BAD_ARGUMENT, "plan");
    CHECK(tarn_plan_create(&plan, NULL, v, NULL, &error) == TARN_BAD_ARGUMENT && !plan, "pool");
    CHECK(tarn_plan_layout(NULL, TARN_X, &got, &error) == TARN_BAD_ARGUMENT, "layout");
    CHECK(tarn_plan_saved_bytes(NULL) == 0, "saved_bytes");
    CHECK(tarn_plan_explain(NULL, TARN_FORWARD, NULL, 0) < 0, "explain");
    CHECK(tarn_executor_openmp(1, NULL, &error) == TARN_BAD_ARGUMENT, "executor");
    tarn_plan_destroy(NULL);
    free_scene(&s);
}

static void test_misaligned_data(void)
{
    for (int e = 0; e < ENTRIES; e++)
        for (int k = 0; k < TARN_OPERANDS; k++)
            for (int shift = 1; shift < 4; shift++) {
                tarn_error error;
                scene s = make_scene(TARN_MAX, TARN_F32);
                s.view[k].data = s.memory[k].memory + shift;
                if (belongs(entries[e].needed | entries[e].optional, k)) {
                    CHECK(call_both_ways(&s, (entry)e, &error) == TARN_BAD_LAYOUT,
                          "%s with %s misaligned by %d", entries[e].name, operand_words[k], shift);
                    CHECK(strstr(error.message, k == TARN_INDICES ? "8" : "4"), "%s",
                          error.message);
                }
                free_scene(&s);
            }
}

/* Gives operand k one byte, or all, of the memory of operand `of`. Both live in one block here, so
 * that sharing is in the test's hand. */
static void check_alias(entry e, int k, int of, bool last_byte)
{
    tarn_error error;
    scene s = make_scene(TARN_MAX, TARN_F64);
    size_t room = s.memory[k].bytes + s.memory[of].bytes;
    unsigned char *block = malloc(2 * room), *expected = malloc(2 * room);
    if (!block || !expected)
        abort();
    memset(block, POISON, 2 * room);
    /* `of` starts on the last aligned byte of k, or at the same place. */
    s.view[k].data = block;
    s.view[of].data = block + (last_byte ? (s.memory[k].bytes - 1) / 8 * 8 : 0);
    memcpy(expected, block, 2 * room);
    CHECK(call_both_ways(&s, e, &error) == TARN_ALIAS, "%s: %s shares memory with %s (%s): %s",
          entries[e].name, operand_words[k], operand_words[of], last_byte ? "edge" : "start",
          error.message);
    CHECK(memcmp(block, expected, 2 * room) == 0, "%s wrote", entries[e].name);
    CHECK(strstr(error.message, operand_words[k]) && strstr(error.message, operand_words[of]),
          "\"%s\" does not name %s and %s", error.message, operand_words[k], operand_words[of]);
    free(block);
    free(expected);
    free_scene(&s);
}

/* Next to each other is not shared. */
static void check_neighbours(entry e, int k, int of)
{
    tarn_error error;
    scene s = make_scene(TARN_MAX, TARN_F64);
    unsigned char *block = calloc(1, s.memory[k].bytes + s.memory[of].bytes + 8);
    if (!block)
        abort();
    s.view[k].data = block;
    s.view[of].data = block + (s.memory[k].bytes + 7) / 8 * 8;
    CHECK(call_both_ways(&s, e, &error) == TARN_OK, "%s: %s lies before %s: %s", entries[e].name,
          operand_words[k], operand_words[of], error.message);
    free(block);
    free_scene(&s);
}

static void test_aliases(void)
{
    for (int e = 0; e < ENTRIES; e++)
        for (int k = 0; k < TENSORS; k++)
            for (int of = 0; of < TENSORS; of++) {
                unsigned used = entries[e].needed | entries[e].optional;
                if (k == of || !belongs(used, k) || !belongs(used, of))
                    continue;
                check_neighbours((entry)e, k, of);
                if (!belongs(entries[e].written, k) && !belongs(entries[e].written, of))
                    continue;
                check_alias((entry)e, k, of, false);
                check_alias((entry)e, k, of, true);
            }
}

/* Saved winners have a width of their own: what they occupy is tarn_plan_saved_bytes(), neither
 * less nor more, whatever the dtype. Inside that, sharing is refused; behind it, it is not
 * sharing. */
static void check_saved_extent(tarn_dtype dtype, int64_t kernel)
{
    const int64_t size = kernel + 40;
    size_t width = tarn_dtype_size(dtype), room = (size_t)size * 16 + 64;
    unsigned char *block = calloc(room, 1), *x = calloc((size_t)size, width);
    tarn_pool pool = tarn_max_pool(1);
    tarn_view view = tarn_view_dense(NULL, dtype, 1, &size);
    tarn_plan *plan;
    pool.kernel[0] = kernel;
    if (!block || !x || tarn_plan_create(&plan, &pool, &view, NULL, NULL))
        abort();
    size_t saved = tarn_plan_saved_bytes(plan), behind = (saved + 7) / 8 * 8;
    tarn_status status = tarn_forward(plan, x, block + behind, block, NULL);
    CHECK(status == TARN_OK, "%s kernel %lld: y behind %d saved bytes: %s", tarn_dtype_name(dtype),
          (long long)kernel, (int)saved, tarn_status_name(status));
    size_t inside = (saved - 1) / width * width;
    status = tarn_forward(plan, x, block + inside, block, NULL);
    CHECK(status == TARN_ALIAS, "%s kernel %lld: y on the last of %d saved bytes: %s",
          tarn_dtype_name(dtype), (long long)kernel, (int)saved, tarn_status_name(status));
    tarn_plan_destroy(plan);
    free(block);
    free(x);
}

static void test_saved_extents(void)
{
    static const tarn_dtype dtypes[] = {TARN_F64, TARN_F32, TARN_F16, TARN_U8};
    for (int d = 0; d < COUNT(dtypes); d++) {
        check_saved_extent(dtypes[d], 3);
        check_saved_extent(dtypes[d], 255);
        check_saved_extent(dtypes[d], 256);
    }
}

/* Inputs may share memory with each other, and with themselves. */
static void test_inputs_may_alias(void)
{
    tarn_error error;
    scene s = make_scene(TARN_MAX, TARN_F32);
    s.view[TARN_DX].data = s.view[TARN_X].data;
    CHECK(call_both_ways(&s, POOL_JVP, &error) == TARN_OK, "dx is x: %s", error.message);
    reset_memory(&s);
    s.view[TARN_X].strides[0] = s.view[TARN_X].strides[1] = s.view[TARN_X].strides[2] = 0;
    CHECK(call_both_ways(&s, POOL_FORWARD, &error) == TARN_OK, "broadcast x: %s", error.message);
    free_scene(&s);
}

/* ---- Passes that a plan does not have ------------------------------------------------------- */

static void test_missing_passes(void)
{
    static const struct {
        const char *what;
        tarn_op op;
        tarn_dtype dtype;
        tarn_ties ties;
        entry e;
        tarn_status code;
        const char *words;
    } cases[] = {
        {"saved of avg", TARN_AVG, TARN_F32, TARN_TIES_FIRST, PLAN_SAVED, TARN_UNSUPPORTED,
         "saved"},
        {"saved of smooth", TARN_SMOOTH, TARN_F32, TARN_TIES_FIRST, PLAN_SAVED, TARN_UNSUPPORTED,
         "saved"},
        {"saved of lp", TARN_LP, TARN_F32, TARN_TIES_FIRST, PLAN_SAVED, TARN_UNSUPPORTED, "saved"},
        {"saved under all", TARN_MAX, TARN_F32, TARN_TIES_ALL, PLAN_SAVED, TARN_UNSUPPORTED,
         "first"},
        {"saved under split", TARN_MIN, TARN_F32, TARN_TIES_SPLIT, PLAN_SAVED, TARN_UNSUPPORTED,
         "first"},
        {"vjp saved of avg", TARN_AVG, TARN_F32, TARN_TIES_FIRST, PLAN_VJP_SAVED, TARN_UNSUPPORTED,
         "saved"},
        {"vjp saved under all", TARN_MAX, TARN_F32, TARN_TIES_ALL, PLAN_VJP_SAVED, TARN_UNSUPPORTED,
         "first"},
        {"indices of avg", TARN_AVG, TARN_F32, TARN_TIES_FIRST, PLAN_INDICES, TARN_UNSUPPORTED,
         "indices"},
        {"indices of smooth", TARN_SMOOTH, TARN_F64, TARN_TIES_FIRST, POOL_INDICES,
         TARN_UNSUPPORTED, "indices"},
        {"indices of lp", TARN_LP, TARN_F64, TARN_TIES_FIRST, POOL_INDICES, TARN_UNSUPPORTED,
         "indices"},
        {"saved of mode", TARN_MODE, TARN_U8, TARN_TIES_FIRST, PLAN_SAVED, TARN_UNSUPPORTED,
         "saved"},
        {"indices of mode", TARN_MODE, TARN_U64, TARN_TIES_FIRST, PLAN_INDICES, TARN_UNSUPPORTED,
         "only max and min"},
        {"jvp of mode", TARN_MODE, TARN_U8, TARN_TIES_FIRST, POOL_JVP, TARN_UNSUPPORTED,
         "mode has no derivatives"},
        {"vjp of mode", TARN_MODE, TARN_I64, TARN_TIES_FIRST, PLAN_VJP, TARN_UNSUPPORTED,
         "mode has no derivatives"},
        {"jvp of i8", TARN_MAX, TARN_I8, TARN_TIES_FIRST, POOL_JVP, TARN_BAD_DTYPE, "i8"},
        {"vjp of u64", TARN_AVG, TARN_U64, TARN_TIES_FIRST, POOL_VJP, TARN_BAD_DTYPE, "u64"},
        {"vjp saved of i16", TARN_MAX, TARN_I16, TARN_TIES_FIRST, PLAN_VJP_SAVED, TARN_BAD_DTYPE,
         "i16"},
    };
    for (int c = 0; c < COUNT(cases); c++) {
        tarn_error error;
        scene s = make_scene(cases[c].op, cases[c].dtype);
        s.pool.ties = cases[c].ties;
        CHECK(call_both_ways(&s, cases[c].e, &error) == cases[c].code, "%s: %s", cases[c].what,
              error.message);
        CHECK(strstr(error.message, cases[c].words), "%s: %s", cases[c].what, error.message);
        free_scene(&s);
    }
}

static void test_saved_bytes_and_explain(void)
{
    static const struct {
        tarn_op op;
        tarn_ties ties;
        bool saves;
    } cases[] = {{TARN_MAX, TARN_TIES_FIRST, true},  {TARN_MIN, TARN_TIES_FIRST, true},
                 {TARN_MAX, TARN_TIES_ALL, false},   {TARN_MIN, TARN_TIES_SPLIT, false},
                 {TARN_AVG, TARN_TIES_FIRST, false}, {TARN_SMOOTH, TARN_TIES_FIRST, false},
                 {TARN_LP, TARN_TIES_FIRST, false}};
    for (int c = 0; c < COUNT(cases); c++) {
        char text[400], start[8];
        tarn_plan *plan;
        scene s = make_scene(cases[c].op, TARN_F32);
        s.pool.ties = cases[c].ties;
        tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], NULL, NULL);
        CHECK((tarn_plan_saved_bytes(plan) > 0) == cases[c].saves, "case %d", c);
        CHECK((tarn_plan_explain(plan, TARN_VJP_SAVED, text, sizeof text) > 0) == cases[c].saves,
              "case %d", c);
        int length = tarn_plan_explain(plan, TARN_FORWARD, text, sizeof text);
        CHECK(length > 0 && length == (int)strlen(text), "case %d: %s", c, text);
        CHECK(tarn_plan_explain(plan, TARN_FORWARD, NULL, 0) == length, "NULL text");
        CHECK(tarn_plan_explain(plan, TARN_FORWARD, start, sizeof start) == length &&
                  memcmp(start, text, 7) == 0 && start[7] == '\0',
              "short text");
        CHECK(tarn_plan_explain(plan, (tarn_pass)-1, text, sizeof text) < 0 &&
                  tarn_plan_explain(plan, TARN_PASSES, text, sizeof text) < 0,
              "bad pass");
        tarn_plan_destroy(plan);
        free_scene(&s);
    }
}

/* ---- Options -------------------------------------------------------------------------------- */

static void *allocate_from_malloc(void *context, size_t bytes)
{
    (void)context;
    return malloc(bytes);
}

static void release_to_free(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static void run_in_turn(void *context, int count, void (*body)(void *argument, int index),
                        void *argument)
{
    (void)context;
    for (int k = 0; k < count; k++)
        body(argument, k);
}

static void expect_of_options(const char *what, const tarn_options *options, tarn_status code,
                              const char *words)
{
    tarn_error error;
    scene s = make_scene(TARN_MAX, TARN_F32);
    tarn_plan *plan = (tarn_plan *)(void *)&s;
    tarn_status status = tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], options, &error);
    CHECK(status == code && (plan == NULL) == (code != TARN_OK), "%s: %s: %s", what,
          tarn_status_name(status), error.message);
    CHECK(strstr(error.message, words), "%s: \"%s\" lacks \"%s\"", what, error.message, words);
    tarn_plan_destroy(plan);
    free_scene(&s);
}

static void test_options(void)
{
    tarn_options o = tarn_options_default();
    o.executor = (tarn_executor){.parts = -1};
    expect_of_options("parts -1", &o, TARN_BAD_ARGUMENT, "-1");
    o.executor = (tarn_executor){.parts = INT_MIN};
    expect_of_options("parts INT_MIN", &o, TARN_BAD_ARGUMENT, "-2147483648");
    o.executor = (tarn_executor){.parts = 2};
    expect_of_options("no parallel_for", &o, TARN_BAD_ARGUMENT, "2");
    o.executor = (tarn_executor){.parts = INT_MAX, .parallel_for = run_in_turn};
    expect_of_options("parts INT_MAX", &o, TARN_OK, "");
    o.executor = (tarn_executor){.parts = 0};
    expect_of_options("parts 0", &o, TARN_OK, "");
    o.executor = (tarn_executor){.grain = -1};
    expect_of_options("grain -1", &o, TARN_BAD_ARGUMENT, "-1");
    o.executor = (tarn_executor){.parts = 3, .parallel_for = run_in_turn, .grain = INT64_MAX};
    expect_of_options("grain INT64_MAX", &o, TARN_OK, "");
    o = tarn_options_default();
    o.allocator = (tarn_allocator){.allocate = allocate_from_malloc};
    expect_of_options("allocate only", &o, TARN_BAD_ARGUMENT, "allocator");
    o.allocator = (tarn_allocator){.release = release_to_free};
    expect_of_options("release only", &o, TARN_BAD_ARGUMENT, "allocator");
    o.allocator = (tarn_allocator){.allocate = NULL};
    expect_of_options("neither", &o, TARN_OK, "");
    o = tarn_options_default();
    o.isa = 0;
    expect_of_options("any ISA", &o, TARN_OK, "");
    o.isa = UINT32_C(1) << 30;
    expect_of_options("unknown ISA", &o, TARN_UNSUPPORTED, "0x40000000");
    for (int k = 0; k < 4; k++) {
        o = tarn_options_default();
        o.reserved[k] = 1;
        expect_of_options("reserved", &o, TARN_BAD_ARGUMENT, "reserved");
    }
    o = (tarn_options){.isa = 0};
    expect_of_options("all zero", &o, TARN_OK, "");
}

/* A pool with a reserved member set, or with the first number that is no name any more, is refused;
 * a view that would leave the address space, too. */
static void test_reserved_and_address_space(void)
{
    const int64_t shape[2] = {4, 4};
    float x[16] = {0}, y[16];
    tarn_error error;
    tarn_pool pool = tarn_max_pool2d(1, 1, 1);
    tarn_view in = tarn_view_dense(x, TARN_F32, 2, shape),
              out = tarn_view_dense(y, TARN_F32, 2, shape);
    tarn_pool bad[4 + 3] = {pool, pool, pool, pool, pool, pool, pool};
    for (int k = 0; k < 4; k++)
        bad[k].reserved[k] = 1;
    bad[4].op = (tarn_op)TARN_OPS;
    bad[5].window = (tarn_window)TARN_WINDOWS;
    bad[6].ties = (tarn_ties)TARN_TIES;
    for (int k = 0; k < 4 + 3; k++)
        CHECK(tarn_pool_forward(&bad[k], &in, &out, &error) == TARN_BAD_ARGUMENT, "%d: %s", k,
              error.message);
    in.strides[0] = -(INT64_C(1) << 58);
    CHECK(tarn_pool_forward(&pool, &in, &out, &error) == TARN_BAD_LAYOUT, "%s", error.message);
    CHECK(strstr(error.message, "address space"), "%s", error.message);
}

/* Parts may be many more than threads: no number of them crashes. */
typedef tarn_status make_executor(int threads, tarn_executor *executor, tarn_error *error);

static void test_many_parts(make_executor *make)
{
    enum { SIDE = 300 };
    static unsigned char x[SIDE * SIDE], y[SIDE * SIDE];
    const int64_t shape[2] = {SIDE, SIDE};
    tarn_options options = tarn_options_default();
    tarn_error error;
    tarn_plan *plan;
    tarn_pool pool = tarn_max_pool2d(1, 1, 1);
    tarn_view in = tarn_view_dense(NULL, TARN_U8, 2, shape);
    for (int k = 0; k < SIDE * SIDE; k++)
        x[k] = (unsigned char)(k * 7);
    if (make(200000, &options.executor, &error) == TARN_UNSUPPORTED)
        return;
    options.executor.grain = 0;
    CHECK(tarn_plan_create(&plan, &pool, &in, &options, &error) == TARN_OK, "%s", error.message);
    CHECK(tarn_forward(plan, x, y, NULL, &error) == TARN_OK, "%s", error.message);
    CHECK(memcmp(x, y, sizeof x) == 0, "kernel 1 copies");
    tarn_plan_destroy(plan);
}

static void count_parts(void *context, int count, void (*body)(void *argument, int index),
                        void *argument)
{
    *(int *)context = count;
    for (int k = 0; k < count; k++)
        body(argument, k);
}

/* In how many parts a plane of 4x8 is pooled to 2x4, or a plane of 2x4 adapted to 4x8, with four on
 * offer. */
static int parts_with_grain(int64_t grain, bool growing)
{
    const int64_t shape[2] = {growing ? 2 : 4, growing ? 4 : 8};
    float x[32] = {0}, y[32];
    int parts = 1;
    tarn_error error;
    tarn_plan *plan;
    tarn_options options = tarn_options_default();
    options.executor =
        (tarn_executor){.parts = 4, .parallel_for = count_parts, .context = &parts, .grain = grain};
    tarn_pool pool = tarn_max_pool2d(2, 2, 2);
    if (growing) {
        pool.window = TARN_ADAPTIVE;
        pool.out[0] = 4;
        pool.out[1] = 8;
    }
    tarn_view in = tarn_view_dense(NULL, TARN_F32, 2, shape);
    CHECK(tarn_plan_create(&plan, &pool, &in, &options, &error) == TARN_OK, "%s", error.message);
    CHECK(tarn_forward(plan, x, y, NULL, &error) == TARN_OK, "%s", error.message);
    tarn_plan_destroy(plan);
    return parts;
}

static void test_grain(void)
{
    CHECK(parts_with_grain(0, false) == 2, "as many parts as rows");
    CHECK(parts_with_grain(16, false) == 2, "two parts of 16");
    CHECK(parts_with_grain(17, false) == 1, "no two parts of 17");
    CHECK(parts_with_grain(INT64_MAX, false) == 1, "no part so large");
    CHECK(parts_with_grain(0, true) == 4, "four rows");
    CHECK(parts_with_grain(8, true) == 4, "four parts of 8");
    CHECK(parts_with_grain(9, true) == 3, "three parts of 9");
    CHECK(parts_with_grain(33, true) == 1, "y has 32 elements");
}

static void test_executor_arguments(make_executor *make)
{
    tarn_error error;
    tarn_executor executor = {.parts = -77};
    CHECK(make(-1, &executor, &error) == TARN_BAD_ARGUMENT, "-1 threads");
    CHECK(strstr(error.message, "-1") && executor.parts == -77, "-1 threads: %s", error.message);
    CHECK(make(INT_MIN, &executor, NULL) == TARN_BAD_ARGUMENT, "INT_MIN threads");
    CHECK(make(2, NULL, NULL) == TARN_BAD_ARGUMENT, "no executor");
    tarn_status status = make(3, &executor, &error);
    CHECK(status == TARN_OK || status == TARN_UNSUPPORTED, "%s", tarn_status_name(status));
    CHECK(executor.parts == (status ? -77 : 3), "%d parts", executor.parts);
}

static void test_layout_queries(void)
{
    tarn_error error;
    tarn_view view = {.rank = -77};
    tarn_plan *plan;
    scene s = make_scene(TARN_MAX, TARN_F32);
    tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], NULL, NULL);
    CHECK(tarn_plan_layout(plan, TARN_X, NULL, &error) == TARN_BAD_ARGUMENT, "view");
    CHECK(tarn_plan_layout(plan, (tarn_operand)-1, &view, &error) == TARN_BAD_ARGUMENT, "-1");
    CHECK(strstr(error.message, "-1") && view.rank == -77, "%s", error.message);
    CHECK(tarn_plan_layout(plan, TARN_OPERANDS, &view, NULL) == TARN_BAD_ARGUMENT, "beyond");
    for (int k = 0; k < TARN_OPERANDS; k++)
        CHECK(tarn_plan_layout(plan, (tarn_operand)k, &view, &error) == TARN_OK && !view.data &&
                  view.dtype == (k == TARN_INDICES ? TARN_I64 : TARN_F32),
              "%s", operand_words[k]);
    tarn_plan_destroy(plan);
    free_scene(&s);
}

/* ---- Memory --------------------------------------------------------------------------------- */

typedef struct {
    int calls, live, fail_at; /* the call that fails, counted from 0; -1 for none */
} ledger;

static void *allocate_counted(void *context, size_t bytes)
{
    ledger *l = context;
    if (l->calls++ == l->fail_at)
        return NULL;
    l->live++;
    return malloc(bytes);
}

static void release_counted(void *context, void *memory)
{
    ledger *l = context;
    l->live--;
    free(memory);
}

/* Each allocation fails in turn, until one round needs no more of them. */
static void test_failing_allocator(void)
{
    scene s = make_scene(TARN_MAX, TARN_F32);
    int rounds = 0;
    for (tarn_status status = TARN_NO_MEMORY; status != TARN_OK; rounds++) {
        ledger l = {.fail_at = rounds};
        tarn_error error;
        tarn_plan *plan = (tarn_plan *)(void *)&s;
        s.options.allocator = (tarn_allocator){allocate_counted, release_counted, &l};
        status = tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], &s.options, &error);
        CHECK(status == (l.calls > rounds ? TARN_NO_MEMORY : TARN_OK), "round %d: %s", rounds,
              tarn_status_name(status));
        CHECK((plan == NULL) == (status != TARN_OK), "round %d", rounds);
        CHECK(status == TARN_OK || (strpbrk(error.message, "123456789") && error.axis == -1), "%s",
              error.message);
        CHECK(status == TARN_OK || l.live == 0, "round %d leaks", rounds);
        tarn_plan_destroy(plan);
        CHECK(l.live == 0, "round %d: %d blocks are left", rounds, l.live);
        if (rounds > 50)
            break;
    }
    CHECK(rounds == 2, "the header says one allocation, there are %d", rounds - 1);
    free_scene(&s);
}

static void test_allocation_comes_last(void)
{
    for (int k = 0; k < COUNT(refusals); k++) {
        ledger l = {.fail_at = -1};
        tarn_plan *plan;
        scene s = make_scene(refusals[k].op, TARN_F32);
        refusals[k].spoil(&s);
        s.options.allocator = (tarn_allocator){allocate_counted, release_counted, &l};
        tarn_plan_create(&plan, &s.pool, view_or_null(&s, TARN_X), &s.options, NULL);
        CHECK(l.calls == 0, "%s: allocated before the checks were done", refusals[k].what);
        free_scene(&s);
    }
}

/* glibc lets a program bring its own malloc; sanitizers bring theirs. */
#if defined(__GLIBC__) && !defined(TARN_SANITIZED)
#define COUNTS_MALLOC 1
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static volatile long malloc_calls;

void *malloc(size_t bytes)
{
    malloc_calls++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    malloc_calls++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    malloc_calls++;
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    malloc_calls += memory != NULL;
    __libc_free(memory);
}
#else
#define COUNTS_MALLOC 0
static volatile long malloc_calls;
#endif

/* Running a plan allocates nothing, nor do the calls without a plan. */
static void test_running_allocates_nothing(void)
{
    volatile long at_start = malloc_calls;
    void *volatile block = malloc(10); /* volatile, or a compiler leaves both calls out */
    free(block);
    CHECK(malloc_calls - at_start == 2 * COUNTS_MALLOC, "the counter works");
    for (int op = 0; op < TARN_OPS; op++) {
        scene s = make_scene((tarn_op)op, op == TARN_MODE ? TARN_I32 : TARN_F32);
        tarn_error error;
        tarn_plan *plan;
        s.options.executor = (tarn_executor){.parts = 3, .parallel_for = run_in_turn};
        if (tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], &s.options, NULL))
            abort();
        long before = malloc_calls;
        for (int e = 0; e < ENTRIES; e++)
            (void)(e < PLAN_FORWARD ? call_entry(&s, (entry)e, &error)
                                    : run_planned(&s, (entry)e, plan, &error));
        CHECK(malloc_calls == before, "op %d: %ld calls of malloc", op, malloc_calls - before);
        tarn_plan_destroy(plan);
        free_scene(&s);
    }
}

static void test_balance_of_malloc(void)
{
    scene s = make_scene(TARN_MAX, TARN_F32);
    tarn_plan *plan;
    long before = malloc_calls;
    tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], NULL, NULL);
    CHECK(malloc_calls - before == COUNTS_MALLOC, "one allocation makes a plan");
    tarn_plan_destroy(plan);
    CHECK(malloc_calls - before == 2 * COUNTS_MALLOC, "one release ends it");
    free_scene(&s);
}

/* ---- Helpers -------------------------------------------------------------------------------- */

/* x [2,3,4], padded by 1 and 2 to y [2,6,7]; unpool scatters x over y by `indices`. */
typedef struct {
    tensor x, y, indices, fold;
    tarn_view vx, vy, vi, vf;
    const tarn_view *px, *py, *pi;
    int64_t lo[2], hi[2];
    const int64_t *plo, *phi;
    int spatial;
} kit;

static kit make_kit(void)
{
    const int64_t small[3] = {2, 3, 4}, large[3] = {2, 6, 7}, ones[3] = {2, 1, 1};
    rng r = {3};
    kit k = {.x = tensor_dense(TARN_F32, 3, small),
             .y = tensor_dense(TARN_F32, 3, large),
             .indices = tensor_dense(TARN_I64, 3, small),
             .fold = tensor_dense(TARN_F32, 3, ones),
             .lo = {1, 1},
             .hi = {2, 2},
             .spatial = 2};
    fill(&k.x.view, &r, random_small);
    for (int n = 0; n < 24; n++)
        ((int64_t *)(void *)k.indices.memory)[n] = n % 12;
    k.vx = k.x.view;
    k.vy = k.y.view;
    k.vi = k.indices.view;
    k.vf = k.fold.view;
    return k;
}

static void point_kit(kit *k)
{
    k->px = &k->vx;
    k->py = &k->vy;
    k->pi = &k->vi;
    k->plo = k->lo;
    k->phi = k->hi;
}

static void free_kit(kit *k)
{
    tensor_free(&k->x);
    tensor_free(&k->y);
    tensor_free(&k->indices);
    tensor_free(&k->fold);
}

static void ignore_element(void *context, void *accumulator, const void *element)
{
    (void)context, (void)accumulator, (void)element;
}

enum { PAD, UNPAD, UNPOOL, FOLD, HELPERS };
static const char *const helper_names[HELPERS] = {"pad", "unpad", "unpool", "fold"};

/* unpad goes the other way: from memory like y to memory like x. */
static tarn_status call_helper(kit *k, int helper, tarn_error *error)
{
    switch (helper) {
    case PAD:
        return tarn_pad(k->px, k->spatial, k->plo, k->phi, k->py, error);
    case UNPAD:
        return tarn_unpad(k->py, k->spatial, k->plo, k->phi, k->px, error);
    case UNPOOL:
        return tarn_unpool(k->px, k->pi, k->spatial, k->py, error);
    default:
        return tarn_global_fold(k->px, k->spatial, ignore_element, NULL, &k->vf, error);
    }
}

typedef struct {
    const char *what;
    void (*spoil)(kit *);
    tarn_status code[HELPERS]; /* TARN_OK: does not concern this helper */
    int axis;
} helper_refusal;

#define OF_KIT(name, statement)                                                                    \
    static void name(kit *k)                                                                       \
    {                                                                                              \
        statement;                                                                                 \
    }
OF_KIT(kit_no_x, k->px = NULL)
OF_KIT(kit_no_y, k->py = NULL)
OF_KIT(kit_no_indices, k->pi = NULL)
OF_KIT(kit_no_lo, k->plo = NULL)
OF_KIT(kit_no_hi, k->phi = NULL)
OF_KIT(kit_no_x_data, k->vx.data = NULL)
OF_KIT(kit_no_y_data, k->vy.data = NULL)
OF_KIT(kit_no_index_data, k->vi.data = NULL)
OF_KIT(kit_odd_x_data, k->vx.data = k->x.memory + 1)
OF_KIT(kit_odd_y_data, k->vy.data = k->y.memory + 2)
OF_KIT(kit_odd_index_data, k->vi.data = k->indices.memory + 4)
OF_KIT(kit_spatial_0, k->spatial = 0)
OF_KIT(kit_spatial_minus, k->spatial = INT_MIN)
OF_KIT(kit_spatial_4, k->spatial = 4)
OF_KIT(kit_spatial_huge, k->spatial = INT_MAX)
OF_KIT(kit_x_rank, k->vx.rank = 65)
OF_KIT(kit_y_rank, k->vy.rank = -1)
OF_KIT(kit_y_rank_less, k->vy.rank = 2)
OF_KIT(kit_y_rank_none, k->vy.rank = 0)
OF_KIT(kit_x_rank_less, k->vx.rank = 2)
OF_KIT(kit_x_rank_one, k->vx.rank = 1)
OF_KIT(kit_x_dtype, k->vx.dtype = TARN_I32)
OF_KIT(kit_y_dtype, k->vy.dtype = (tarn_dtype)-3)
OF_KIT(kit_index_dtype, k->vi.dtype = TARN_U64)
OF_KIT(kit_index_rank, k->vi.rank = 2)
OF_KIT(kit_index_shape, k->vi.shape[2] = 3)
OF_KIT(kit_index_empty, k->vi.shape[0] = 0)
OF_KIT(kit_x_shape, k->vx.shape[1]--)
OF_KIT(kit_x_planes, k->vx.shape[0] = 1)
OF_KIT(kit_x_minus, k->vx.shape[2] = -1)
OF_KIT(kit_x_empty, k->vx.shape[2] = 0)
OF_KIT(kit_y_shape, k->vy.shape[2]--)
OF_KIT(kit_y_empty, k->vy.shape[1] = 0)
OF_KIT(kit_lo_minus, k->lo[1] = -1)
OF_KIT(kit_hi_least, k->hi[0] = INT64_MIN)
OF_KIT(kit_lo_greatest, k->lo[1] = INT64_MAX)
OF_KIT(kit_hi_greatest, k->hi[0] = INT64_MAX)
OF_KIT(kit_lo_narrowed, k->lo[0] += POW2(32))
OF_KIT(kit_y_broadcast, k->vy.strides[1] = 0)
OF_KIT(kit_y_overlaps, k->vy.strides[1] = 6)
OF_KIT(kit_x_overlaps, k->vx.strides[1] = 2)
OF_KIT(kit_x_stride, k->vx.strides[0] = INT64_MAX)
OF_KIT(kit_y_stride, k->vy.strides[0] = INT64_MIN)
OF_KIT(kit_shared, k->vy.data = k->vx.data)
OF_KIT(kit_shared_index, k->vi.data = k->y.memory)
OF_KIT(kit_index_out, ((int64_t *)k->vi.data)[23] = 42)
OF_KIT(kit_index_minus, ((int64_t *)k->vi.data)[23] = -2)
OF_KIT(kit_index_least, ((int64_t *)k->vi.data)[23] = INT64_MIN)
OF_KIT(kit_index_narrow, ((int64_t *)k->vi.data)[23] = POW2(32) + 3)
OF_KIT(kit_index_greatest, ((int64_t *)k->vi.data)[23] = INT64_MAX)
OF_KIT(kit_fold_shape, k->vf.shape[1] = k->vf.strides[0] = 2)
OF_KIT(kit_fold_rank, k->vf.rank = 2)
OF_KIT(kit_fold_planes, k->vf.shape[0] = 1)
OF_KIT(kit_fold_data, k->vf.data = NULL)
OF_KIT(kit_fold_shared, k->vf.data = k->vx.data)
OF_KIT(kit_fold_dtype, k->vf.dtype = TARN_DTYPES)

#define ARG TARN_BAD_ARGUMENT
#define RANK TARN_BAD_RANK
#define SHAPE TARN_BAD_SHAPE
#define DTYPE TARN_BAD_DTYPE
#define LAYOUT TARN_BAD_LAYOUT
#define WINDOW TARN_BAD_WINDOW
#define INDEX TARN_BAD_INDEX
#define OVER TARN_OVERFLOW
#define FIT TARN_DOES_NOT_FIT
#define OK TARN_OK
static const helper_refusal helper_refusals[] = {
    {"NULL x", kit_no_x, {ARG, ARG, ARG, ARG}, -1},
    {"NULL y", kit_no_y, {ARG, ARG, ARG, OK}, -1},
    {"NULL indices", kit_no_indices, {OK, OK, ARG, OK}, -1},
    {"NULL lo", kit_no_lo, {ARG, ARG, OK, OK}, -1},
    {"NULL hi", kit_no_hi, {ARG, ARG, OK, OK}, -1},
    {"NULL data of x", kit_no_x_data, {ARG, ARG, ARG, ARG}, -1},
    {"NULL data of y", kit_no_y_data, {ARG, ARG, ARG, OK}, -1},
    {"NULL data of indices", kit_no_index_data, {OK, OK, ARG, OK}, -1},
    {"misaligned x", kit_odd_x_data, {LAYOUT, LAYOUT, LAYOUT, LAYOUT}, -1},
    {"misaligned y", kit_odd_y_data, {LAYOUT, LAYOUT, LAYOUT, OK}, -1},
    {"misaligned indices", kit_odd_index_data, {OK, OK, LAYOUT, OK}, -1},
    {"spatial 0", kit_spatial_0, {RANK, RANK, RANK, RANK}, -1},
    {"spatial INT_MIN", kit_spatial_minus, {RANK, RANK, RANK, RANK}, -1},
    {"spatial 4", kit_spatial_4, {RANK, RANK, RANK, RANK}, -1},
    {"spatial INT_MAX", kit_spatial_huge, {RANK, RANK, RANK, RANK}, -1},
    {"rank 65 of x", kit_x_rank, {RANK, RANK, RANK, RANK}, -1},
    {"rank -1 of y", kit_y_rank, {RANK, RANK, RANK, OK}, -1},
    {"rank 2 of y", kit_y_rank_less, {RANK, OK, RANK, OK}, -1},
    {"rank 0 of y", kit_y_rank_none, {RANK, RANK, RANK, OK}, -1},
    {"rank 2 of x", kit_x_rank_less, {RANK, RANK, RANK, RANK}, -1},
    {"rank 1 of x", kit_x_rank_one, {RANK, RANK, RANK, RANK}, -1},
    {"other dtype of x", kit_x_dtype, {DTYPE, DTYPE, DTYPE, OK}, -1},
    {"dtype -3 of y", kit_y_dtype, {DTYPE, DTYPE, DTYPE, OK}, -1},
    {"dtype of indices", kit_index_dtype, {OK, OK, DTYPE, OK}, -1},
    {"rank of indices", kit_index_rank, {OK, OK, RANK, OK}, -1},
    {"shape of indices", kit_index_shape, {OK, OK, SHAPE, OK}, -1},
    {"no indices", kit_index_empty, {OK, OK, SHAPE, OK}, -1},
    {"shape of x", kit_x_shape, {SHAPE, SHAPE, SHAPE, OK}, -1},
    {"planes of x", kit_x_planes, {SHAPE, SHAPE, SHAPE, SHAPE}, -1},
    {"size -1 of x", kit_x_minus, {SHAPE, SHAPE, SHAPE, SHAPE}, -1},
    {"x empty", kit_x_empty, {SHAPE, OK, SHAPE, SHAPE}, 1},
    {"shape of y", kit_y_shape, {SHAPE, SHAPE, OK, OK}, -1},
    {"y empty", kit_y_empty, {OK, SHAPE, SHAPE, OK}, 0},
    {"padding -1", kit_lo_minus, {WINDOW, WINDOW, OK, OK}, 1},
    {"padding INT64_MIN", kit_hi_least, {WINDOW, WINDOW, OK, OK}, 0},
    {"padding INT64_MAX before", kit_lo_greatest, {OVER, FIT, OK, OK}, 1},
    {"padding INT64_MAX behind", kit_hi_greatest, {OVER, FIT, OK, OK}, 0},
    {"padding 2^32 + 1", kit_lo_narrowed, {SHAPE, OK, OK, OK}, -1},
    {"y broadcast", kit_y_broadcast, {LAYOUT, OK, LAYOUT, OK}, -1},
    {"y overlaps itself", kit_y_overlaps, {LAYOUT, OK, LAYOUT, OK}, -1},
    {"x overlaps itself", kit_x_overlaps, {OK, LAYOUT, OK, OK}, -1},
    {"stride INT64_MAX of x", kit_x_stride, {OVER, OVER, OVER, OVER}, -1},
    {"stride INT64_MIN of y", kit_y_stride, {OVER, OVER, OVER, OK}, -1},
    {"x and y share", kit_shared, {TARN_ALIAS, TARN_ALIAS, TARN_ALIAS, OK}, -1},
    {"y and indices share", kit_shared_index, {OK, OK, TARN_ALIAS, OK}, -1},
    {"index 42 of 42", kit_index_out, {OK, OK, INDEX, OK}, -1},
    {"index -2", kit_index_minus, {OK, OK, INDEX, OK}, -1},
    {"index INT64_MIN", kit_index_least, {OK, OK, INDEX, OK}, -1},
    {"index 2^32 + 3", kit_index_narrow, {OK, OK, INDEX, OK}, -1},
    {"index INT64_MAX", kit_index_greatest, {OK, OK, INDEX, OK}, -1},
    {"shape of fold", kit_fold_shape, {OK, OK, OK, SHAPE}, -1},
    {"rank of fold", kit_fold_rank, {OK, OK, OK, RANK}, -1},
    {"planes of fold", kit_fold_planes, {OK, OK, OK, SHAPE}, -1},
    {"data of fold", kit_fold_data, {OK, OK, OK, ARG}, -1},
    {"fold shares", kit_fold_shared, {OK, OK, OK, TARN_ALIAS}, -1},
    {"dtype of fold", kit_fold_dtype, {OK, OK, OK, DTYPE}, -1},
};
#undef ARG
#undef RANK
#undef SHAPE
#undef DTYPE
#undef LAYOUT
#undef WINDOW
#undef INDEX
#undef OVER
#undef FIT
#undef OK

static void check_helper(const helper_refusal *refused, int helper)
{
    tarn_error error = {.axis = 99};
    kit k = make_kit();
    point_kit(&k);
    CHECK(call_helper(&k, helper, NULL) == TARN_OK, "%s as it should be", helper_names[helper]);
    tensor *written = helper == UNPAD ? &k.x : helper == FOLD ? &k.fold : &k.y;
    memset(written->memory, POISON, written->bytes);
    refused->spoil(&k);
    /* memory that was spoilt on purpose is not evidence: compare with a copy */
    unsigned char *copy = malloc(k.x.bytes + k.y.bytes);
    if (!copy)
        abort();
    memcpy(copy, k.x.memory, k.x.bytes);
    memcpy(copy + k.x.bytes, k.y.memory, k.y.bytes);
    tarn_status code = refused->code[helper], status = call_helper(&k, helper, &error);
    CHECK(status == code && error.code == code && error.axis == refused->axis,
          "%s: %s: %s, axis %d: %s", helper_names[helper], refused->what, tarn_status_name(status),
          error.axis, error.message);
    CHECK(call_helper(&k, helper, NULL) == code, "%s: NULL error", helper_names[helper]);
    CHECK(memcmp(copy, k.x.memory, k.x.bytes) == 0 &&
              memcmp(copy + k.x.bytes, k.y.memory, k.y.bytes) == 0 &&
              (helper != FOLD || is_poison(k.fold.memory, k.fold.bytes)),
          "%s: %s: written", helper_names[helper], refused->what);
    free(copy);
    free_kit(&k);
}

static void test_helpers(void)
{
    for (int c = 0; c < COUNT(helper_refusals); c++)
        for (int helper = 0; helper < HELPERS; helper++)
            if (helper_refusals[c].code[helper] != TARN_OK)
                check_helper(&helper_refusals[c], helper);
    kit k = make_kit();
    tarn_error error;
    CHECK(tarn_global_fold(&k.vx, 2, NULL, NULL, &k.vf, &error) == TARN_BAD_ARGUMENT, "NULL fold");
    CHECK(tarn_unpad2d(&k.vy, 4, &k.vx, &error) == TARN_DOES_NOT_FIT && error.axis == 0, "unpad2d");
    CHECK(strstr(error.message, "4") && strstr(error.message, "6"), "%s", error.message);
    CHECK(tarn_unpad2d(&k.vy, -1, &k.vx, &error) == TARN_BAD_WINDOW, "unpad2d -1");
    CHECK(tarn_unpad2d(&k.vy, INT64_MAX, &k.vx, &error) == TARN_DOES_NOT_FIT, "unpad2d huge");
    CHECK(tarn_unpad2d(NULL, 1, &k.vx, &error) == TARN_BAD_ARGUMENT, "unpad2d NULL");
    free_kit(&k);
}

/* ---- Sentences ------------------------------------------------------------------------------ */

/* SPEC 9 quotes this sentence. */
static void test_the_sentence(void)
{
    const int64_t shape[3] = {4, 8, 3};
    tarn_error error;
    tarn_plan *plan;
    tarn_pool pool = tarn_max_pool2d(2, 5, 1);
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 3, shape);
    CHECK(tarn_plan_create(&plan, &pool, &x, NULL, &error) == TARN_DOES_NOT_FIT, "code");
    CHECK(strcmp(error.message, "kernel 5 does not fit axis 1: padded size is 3") == 0, "\"%s\"",
          error.message);
    CHECK(error.axis == 1 && error.code == TARN_DOES_NOT_FIT, "axis %d", error.axis);
}

/* A sentence about an overflow has to carry the numbers that overflow, like every other. */
static void test_overflow_sentences(void)
{
    static const struct {
        void (*spoil)(scene *);
        const char *number;
    } cases[] = {{extent_overflow, "1099511627776"},
                 {padded_overflow, "9223372036854775807"},
                 {both_paddings_overflow, "4611686018427387904"},
                 {taps_overflow, "1099511627776"},
                 {adaptive_overflow, "1099511627776"},
                 {bytes_overflow, "4611686018427387904"},
                 {offset_overflow, "9223372036854775807"}};
    for (int c = 0; c < COUNT(cases); c++) {
        tarn_error error;
        tarn_plan *plan;
        scene s = make_scene(TARN_MAX, TARN_F32);
        cases[c].spoil(&s);
        CHECK(tarn_plan_create(&plan, &s.pool, &s.view[TARN_X], NULL, &error) == TARN_OVERFLOW,
              "case %d", c);
        CHECK(strstr(error.message, cases[c].number), "\"%s\" lacks %s", error.message,
              cases[c].number);
        free_scene(&s);
    }
}

static void test_names(void)
{
    static const char *const names[] = {"TARN_OK",        "TARN_BAD_ARGUMENT", "TARN_BAD_RANK",
                                        "TARN_BAD_SHAPE", "TARN_BAD_WINDOW",   "TARN_DOES_NOT_FIT",
                                        "TARN_BAD_VALUE", "TARN_BAD_DTYPE",    "TARN_BAD_LAYOUT",
                                        "TARN_OVERFLOW",  "TARN_ALIAS",        "TARN_BAD_INDEX",
                                        "TARN_NO_MEMORY", "TARN_UNSUPPORTED",  "TARN_BAD_TEXT"};
    for (int k = 0; k < COUNT(names); k++)
        CHECK(strcmp(tarn_status_name((tarn_status)k), names[k]) == 0, "%d", k);
    CHECK(strcmp(tarn_status_name((tarn_status)-1), "unknown") == 0, "-1");
    CHECK(strcmp(tarn_status_name((tarn_status)COUNT(names)), "unknown") == 0, "beyond");
    CHECK(tarn_dtype_size((tarn_dtype)-1) == 0 && tarn_dtype_size(TARN_DTYPES) == 0, "no dtype");
    CHECK(strcmp(tarn_dtype_name((tarn_dtype)-1), "?") == 0, "no dtype");
    CHECK(strcmp(tarn_dtype_name(TARN_BF16), "bf16") == 0 && tarn_dtype_size(TARN_BF16) == 2,
          "bf16");
}

/* ---- Constructors given NULL ---------------------------------------------------------------- */

/* A crash would end the test. More axes than descriptors have are refused later. */
static void test_null_arrays(void)
{
    int64_t nine[] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    tarn_pool pool = tarn_max_pool_nd(2, NULL, NULL, NULL);
    CHECK(pool.spatial == 2 && pool.kernel[1] == 0, "tarn_max_pool_nd(2, NULL, ...)");
    pool = tarn_adaptive_avg_pool(2, NULL);
    CHECK(pool.spatial == 2 && pool.out[1] == 0, "tarn_adaptive_avg_pool(2, NULL)");
    CHECK(tarn_view_dense(NULL, TARN_F32, 2, NULL).rank == 2, "tarn_view_dense(..., NULL)");
    CHECK(tarn_max_pool_nd(9, nine, NULL, NULL).kernel[7] == 2, "nine axes");
    CHECK(tarn_adaptive_avg_pool(9, nine).out[7] == 2, "nine axes");
}

int main(void)
{
    test_the_sentence();
    test_names();
    test_refusals();
    test_output_size_extremes();
    test_descriptor_extremes();
    test_adaptive_extremes();
    test_shape_queries();
    test_shape_query_pointers();
    test_misfits();
    test_extreme_strides();
    test_extreme_leading_strides();
    test_null_operands();
    test_null_data();
    test_null_pool_and_plan();
    test_misaligned_data();
    test_aliases();
    test_saved_extents();
    test_inputs_may_alias();
    test_missing_passes();
    test_saved_bytes_and_explain();
    test_options();
    test_grain();
    test_executor_arguments(tarn_executor_openmp);
    test_executor_arguments(tarn_executor_threads);
    test_reserved_and_address_space();
    test_many_parts(tarn_executor_openmp);
    test_many_parts(tarn_executor_threads);
    test_layout_queries();
    test_failing_allocator();
    test_allocation_comes_last();
    test_running_allocates_nothing();
    test_balance_of_malloc();
    test_helpers();
    test_overflow_sentences();
    test_null_arrays();
    return finish_checks();
}
