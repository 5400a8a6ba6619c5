/* Corners of views, shapes, plans and calls that no other test looked into, as branches that
 * nothing had reached (tools/coverage.py) and mutants (tools/mutate.py) showed. */
#include "fixture.h"
#include "plan.h"

static tarn_error error;

#define GOOD(call) CHECK((call) == TARN_OK, "%s: %s", #call, error.message)
#define BAD(expected, call)                                                                        \
    do {                                                                                           \
        tarn_status got = (call);                                                                  \
        CHECK(got == expected && error.code == got && error.message[0], "%s: %s, %s", #call,       \
              tarn_status_name(got), error.message);                                               \
    } while (0)

/* ---- Views and shapes ----------------------------------------------------------------------- */

static void test_views(void)
{
    int64_t shape[TARN_MAX_RANK + 1], out[TARN_MAX_RANK];
    int rank;
    for (int a = 0; a <= TARN_MAX_RANK; a++)
        shape[a] = 1;
    /* A rank out of range is kept for the checker to refuse; nothing behind the arrays is
     * written. */
    tarn_view many = tarn_view_dense(NULL, TARN_F32, TARN_MAX_RANK + 1, shape);
    tarn_view few = tarn_view_dense(NULL, TARN_F32, -1, shape);
    tarn_view none = tarn_view_dense(NULL, TARN_F32, 2, NULL);
    CHECK(many.rank == TARN_MAX_RANK + 1 && tarn_view_bytes(&many) == 0, "%d", many.rank);
    CHECK(few.rank == -1 && tarn_view_bytes(&few) == 0, "%d", few.rank);
    CHECK(none.shape[1] == -1 && tarn_view_bytes(&none) == 0, "shape is NULL");
    /* Bytes that do not fit, where elements do: by their sizes, above the first, below it. */
    tarn_pool pool = tarn_max_pool2d(1, 1, 1);
    static const int64_t strides[] = {INT64_C(1) << 61, -(INT64_C(1) << 61), INT64_MAX - 1};
    for (int k = 0; k < 3; k++) {
        tarn_view far = tarn_view_dense(NULL, TARN_F64, 2, (int64_t[]){2, 1}), y;
        far.strides[0] = strides[k];
        BAD(TARN_OVERFLOW, tarn_output_view(&pool, &far, &y, &error));
        CHECK(tarn_view_bytes(&far) == 0, "stride %lld", (long long)strides[k]);
    }
    BAD(TARN_BAD_RANK, tarn_global_shape(0, NULL, 2, 0, out, &rank, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_global_shape(2, NULL, 2, 0, out, &rank, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_global_shape(2, shape, 2, 0, NULL, &rank, &error));
}

/* ---- Calls ---------------------------------------------------------------------------------- */

static void count_folds(void *context, void *into, const void *element)
{
    (void)into, (void)element;
    ++*(int *)context;
}

/* Empty tensors need no memory; tensors beyond the end of all memory are refused. */
static void test_calls(void)
{
    int64_t empty[3] = {0, 2, 2}, pooled[3] = {0, 1, 1}, four[2] = {2, 2}, one[2] = {1, 1};
    int folds = 0;
    float number[4] = {0};
    tarn_pool pool = tarn_max_pool2d(2, 2, 2);
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 3, empty),
              y = tarn_view_dense(NULL, TARN_F32, 3, pooled);
    tarn_view indices = tarn_view_dense(NULL, TARN_I64, 3, pooled);
    GOOD(tarn_pool_indices(&pool, &x, &y, &indices, &error));
    GOOD(tarn_pool_jvp(&pool, &x, &x, &y, &y, &error));
    GOOD(tarn_global_fold(&x, 2, count_folds, &folds, &y, &error));
    CHECK(folds == 0, "%d elements of nothing", folds);
    x = tarn_view_dense((void *)(UINTPTR_MAX - 7), TARN_F32, 2, four);
    y = tarn_view_dense(number, TARN_F32, 2, one);
    BAD(TARN_BAD_LAYOUT, tarn_pool_forward(&pool, &x, &y, &error));
    x = tarn_view_dense((void *)4, TARN_F32, 2, four);
    x.strides[0] = -2;
    BAD(TARN_BAD_LAYOUT, tarn_pool_forward(&pool, &x, &y, &error));
}

/* ---- Plans of problems too large to run ------------------------------------------------------ */

/* What the chooser takes is what the engine accepts, and planning a size costs no more than writing
 * it. */
static void check_choice(const char *text)
{
    tarn_pool pool;
    tarn_view x;
    tarn_plan *plan;
    static const uint32_t masks[] = {TARN_ISA_ALL, TARN_ISA_SPEC | TARN_ISA_PORTABLE,
                                     TARN_ISA_SPEC | TARN_ISA_AVX512, TARN_ISA_SPEC};
    GOOD(tarn_problem_parse(text, &pool, &x, &error));
    for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
        tarn_options options = tarn_options_default();
        options.isa = masks[k];
        GOOD(tarn_plan_create(&plan, &pool, &x, &options, &error));
        for (int pass = 0; plan && pass < TARN_PASSES; pass++) {
            const tarn_kernel_row *row = plan->kernel[pass];
            char line[300];
            if (!row)
                continue;
            CHECK(row->accepts(&plan->problem, (tarn_pass)pass) && (row->isa & masks[k]), "%s: %s",
                  text, row->name);
            int length = tarn_plan_explain(plan, (tarn_pass)pass, line, sizeof line);
            CHECK(length > 0 && strstr(line, row->name), "%s: %s", text, line);
        }
        tarn_plan_destroy(plan);
    }
}

static void test_large_plans(void)
{
    static const char *const problems[] = {
        "max k2s2000000 f32 1x5000000x4",
        "avg k2s2000000 f32 1x5000000x4000000",
        "max k2s1e70000 f32 1x140000x140000",
        "max k1,2s1e70000 f32 1x4x140000",
        "max k70000,1s1 f32 1x140000x4",
        "max k17,17,2s1 f32 1x20x20x20",
        "avg k17,17,2s1 f32 1x20x20x20",
        "avg k200,2s1 f32 1x300x20",
        "avg k600,2s1 f32 8x800x20",
        "max k2s3000000000 f32 9000000000x90000000",
        "avg k2s3000000000 f64 9000000000x90000000",
        "max k3000s1 f32 1x6000x6000 skip=nan",
        "avg k3000s1 u8 1x6000x6000 skip=0",
        "avg k60000s1 f32 60000x60000",
        "max k2s2 f32 2x100000",
        "avg k2s2 f64 100000x2",
        "max k2s2 f64 4x6",
        "max k2s2 f32 17x2",
        "avg k2s2 f32 2x17",
        "avg k1000000s1000000 i8 1x4000000000x4000000",
        "max k2000000,1s1 u8 1x3000000000x1000",
        "max global f32 1x4000000000x1000000",
        "max a1,3 u8 1048576x1048576",
        "avg a3,1 u8 1x1048576x4398046",
        "max a1 i8 65536x4294967296",
        "smooth k3s1 f32 1x4000000x4000000",
        "lp k70000s1 f64 1x100000x100000",
        "avg k2s1 u64 1x4000000000x2",
        "avg k100000s1 i16 1x4000000000x100000",
        "max a7 f32 1x1000x1001",
        "avg k2s2 u8 2x4x300x4 last",
        "max k3s2 i8 4x3x33x33 last",
        "min a5 bf16 4x2x33x33 last",
        "avg k9s2 f16 4x33x33x10",
        "max k2s2 i64 1x4x4",
        "max k3s1 f32 1x3x70 ties=all",
        "min k3s1 u8 1x3x70 ties=split",
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        check_choice(problems[k]);
}

/* Taps that 32 bits cannot count, and sums that f64 cannot hold, are the specification's alone. */
static void test_only_specification(void)
{
    static const char *const problems[] = {"max global f32 1x4000000000x1000000",
                                           "avg k2s2 u64 1x4x4",
                                           "min k100000s1 i8 1x4000000x100000"};
    for (int n = 0; n < 3; n++) {
        tarn_pool pool;
        tarn_view x;
        tarn_plan *plan;
        GOOD(tarn_problem_parse(problems[n], &pool, &x, &error));
        GOOD(tarn_plan_create(&plan, &pool, &x, NULL, &error));
        for (int k = 0; k < tarn_kernel_row_count; k++) {
            const tarn_kernel_row *row = &tarn_kernel_rows[k];
            bool accepts = row->accepts(&plan->problem, TARN_FORWARD_INDICES) ||
                           row->accepts(&plan->problem, TARN_VJP);
            bool linear = row->engine == ENGINE_BACKWARD_MEAN && pool.op == TARN_AVG;
            CHECK(accepts == (row->engine == ENGINE_SPEC || linear ||
                              (row->engine == ENGINE_TIES && pool.ties != TARN_TIES_FIRST)),
                  "%s: %s", problems[n], row->name);
        }
        tarn_plan_destroy(plan);
    }
}

/* What a pass moves, in how many parts, and why, for everything that the sentence can say. */
static void no_threads(void *context, int parts, void (*body)(void *argument, int index),
                       void *argument)
{
    (void)context;
    for (int k = 0; k < parts; k++)
        body(argument, k);
}

static void test_explanations(void)
{
    tarn_options options = tarn_options_default();
    tarn_pool pool;
    tarn_view x;
    tarn_plan *plan;
    char line[300];
    options.executor = (tarn_executor){.parts = 3, .parallel_for = no_threads};
    GOOD(tarn_problem_parse("avg k2s2 f32 1x8x64x64 last", &pool, &x, &error));
    GOOD(tarn_plan_create(&plan, &pool, &x, &options, &error));
    tarn_plan_explain(plan, TARN_VJP, line, sizeof line);
    /* gy and gx, and not x: averages are linear */
    CHECK(strstr(line, "moves 163840 bytes of f32 with 8 channels last in 3 parts"), "%s", line);
    tarn_plan_explain(plan, TARN_FORWARD, line, sizeof line);
    CHECK(strstr(line, "moves 163840 bytes"), "%s", line);
    CHECK(tarn_plan_explain(plan, TARN_FORWARD_SAVED, line, sizeof line) == -1, "no winners");
    CHECK(tarn_plan_explain(plan, (tarn_pass)-1, line, sizeof line) == -1, "no pass");
    CHECK(tarn_plan_explain(plan, TARN_PASSES, line, sizeof line) == -1, "no pass");
    CHECK(tarn_plan_explain(NULL, TARN_FORWARD, line, sizeof line) == -1, "no plan");
    CHECK(tarn_plan_saved_bytes(plan) == 0 && tarn_plan_saved_bytes(NULL) == 0,
          "winners of averages");
    tarn_plan_destroy(plan);
    GOOD(tarn_problem_parse("max k2s2 f32 3x9x9", &pool, &x, &error));
    GOOD(tarn_plan_create(&plan, &pool, &x, NULL, &error));
    tarn_plan_explain(plan, TARN_FORWARD, line, sizeof line);
    CHECK(!strstr(line, "channels") && strstr(line, " in 1 part") && !strstr(line, "parts"), "%s",
          line);
    tarn_plan_destroy(plan);
}

/* [L2] Padding beside taps whose weights lie about as far from its own as plain numbers reach, 576
 * binary exponents: beta*x from 398 to 401, of either sign. */
static void test_padding_at_the_reach(void)
{
    static const int families[2] = {TARN_ISA_SPEC, TARN_ISA_PORTABLE};
    const double sign[2] = {1, -1}, dx[2] = {1, -3}, gy[2] = {2, 5};
    tarn_pool pool;
    tarn_view view;
    GOOD(tarn_problem_parse("smooth k2s2p1:0 ceil beta=1000 f64 1x2", &pool, &view, &error));
    for (int k = 0; k < 6000; k++) {
        const double x[2] = {0.001 * (k % 3), sign[k % 2] * (0.398 + 5e-7 * k)};
        double y[2][2], dy[2][2], g[2][2];
        for (int f = 0; f < 2; f++) {
            tarn_options options = tarn_options_default();
            tarn_plan *plan;
            options.isa = (unsigned)families[f];
            GOOD(tarn_plan_create(&plan, &pool, &view, &options, &error));
            GOOD(tarn_jvp(plan, x, dx, y[f], dy[f], &error));
            GOOD(tarn_vjp(plan, x, NULL, gy, g[f], &error));
            tarn_plan_destroy(plan);
        }
        CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0, "y of %.17g %.17g", x[0], x[1]);
        CHECK(memcmp(dy[0], dy[1], sizeof dy[0]) == 0, "dy of %.17g %.17g", x[0], x[1]);
        CHECK(memcmp(g[0], g[1], sizeof g[0]) == 0, "g of %.17g %.17g", x[0], x[1]);
    }
}

/* [K1] The last numbers that dtypes have, and the first that they do not. */
static void test_skipped_numbers(void)
{
    static const struct {
        const char *problem;
        tarn_status expected;
    } cases[] = {
        {"max k1 skip=127 i8 1", TARN_OK},
        {"max k1 skip=128 i8 1", TARN_BAD_VALUE},
        {"max k1 skip=-128 i8 1", TARN_OK},
        {"max k1 skip=255 u8 1", TARN_OK},
        {"max k1 skip=0 u8 1", TARN_OK},
        {"max k1 skip=9223372036854775807 i64 1", TARN_OK},
        {"max k1 skip=-9223372036854775808 i64 1", TARN_OK},
        {"max k1 skip=9223372036854775808 i64 1", TARN_BAD_VALUE},
        {"max k1 skip=18446744073709551615 u64 1", TARN_OK},
        {"max k1 skip=18446744073709551616 u64 1", TARN_BAD_VALUE},
        {"max k1 skip=-2.0 i16 1", TARN_OK},
        {"max k1 skip=inf f16 1", TARN_OK},
        {"max k1 skip=-inf f16 1", TARN_OK},
        {"max k1 skip=65504 f16 1", TARN_OK},
        {"max k1 skip=65520 f16 1", TARN_BAD_VALUE},
    };
    tarn_pool pool;
    tarn_view x;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tarn_plan *plan = NULL;
        GOOD(tarn_problem_parse(cases[k].problem, &pool, &x, &error));
        tarn_status status = tarn_plan_create(&plan, &pool, &x, NULL, &error);
        CHECK(status == cases[k].expected, "%s: %s", cases[k].problem, tarn_status_name(status));
        tarn_plan_destroy(plan);
    }
}

/* [K3] Where all taps are skipped, the skipped number is the result: of zeros +0. */
static void test_skipped_zeros(void)
{
    static const uint32_t families[] = {TARN_ISA_SPEC, TARN_ISA_PORTABLE};
    double x[2] = {0.0, -0.0}, y[2];
    tarn_pool pool = tarn_max_pool(1);
    tarn_view view = tarn_view_dense(NULL, TARN_F64, 1, (int64_t[]){2});
    pool.skip = TARN_SKIP_REAL;
    pool.skip_real = -0.0;
    for (int f = 0; f < 2; f++) {
        tarn_options options = tarn_options_default();
        tarn_plan *plan;
        options.isa = families[f];
        GOOD(tarn_plan_create(&plan, &pool, &view, &options, &error));
        GOOD(tarn_forward(plan, x, y, NULL, &error));
        CHECK(memcmp(y, (double[2]){0.0, 0.0}, sizeof y) == 0, "%g %g", y[0], y[1]);
        tarn_plan_destroy(plan);
    }
}

/* [N4] A tangent that is too small for its type is +0, of whatever sign it was. */
static void test_vanishing_tangent(void)
{
    static const uint32_t families[] = {TARN_ISA_SPEC, TARN_ISA_PORTABLE};
    double x[64], dx[64] = {-0x1p-1072}, dy; /* over 64^(2/3) */
    tarn_pool pool;
    tarn_view view;
    for (int k = 0; k < 64; k++)
        x[k] = 1;
    GOOD(tarn_problem_parse("lp k64 p=3 f64 64", &pool, &view, &error));
    for (int f = 0; f < 2; f++) {
        tarn_options options = tarn_options_default();
        tarn_plan *plan;
        options.isa = families[f];
        GOOD(tarn_plan_create(&plan, &pool, &view, &options, &error));
        GOOD(tarn_jvp(plan, x, dx, NULL, &dy, &error));
        CHECK(memcmp(&dy, &(double){0.0}, sizeof dy) == 0, "%g", dy);
        tarn_plan_destroy(plan);
    }
}

/* Leading axes that lie densely in all tensors are one. */
static void test_merged_axes(void)
{
    tarn_pool pool;
    tarn_view x;
    tarn_plan *plan;
    GOOD(tarn_problem_parse("max k2 f32 5x3x7x4x4 d2", &pool, &x, &error));
    GOOD(tarn_plan_create(&plan, &pool, &x, NULL, &error));
    CHECK(plan->problem.leading == 1 && plan->problem.lead_size[0] == 105,
          "%d axes, the first %lld", plan->problem.leading, (long long)plan->problem.lead_size[0]);
    tarn_plan_destroy(plan);
    x.strides[1] = 200; /* of the three, the last two do not lie densely */
    x.strides[0] = 600;
    GOOD(tarn_plan_create(&plan, &pool, &x, NULL, &error));
    CHECK(plan->problem.leading == 2, "%d axes", plan->problem.leading);
    tarn_plan_destroy(plan);
    /* One tensor that does not is enough. */
    for (int k = 0; k < TARN_OPERANDS; k++) {
        tarn_options options = tarn_options_default();
        tarn_view shaped[TARN_OPERANDS];
        GOOD(tarn_plan_create(&plan, &pool, &x, NULL, &error));
        for (int operand = 0; operand < TARN_OPERANDS; operand++) {
            GOOD(tarn_plan_layout(plan, operand, &shaped[operand], &error));
            shaped[operand] =
                tarn_view_dense(NULL, shaped[operand].dtype, 5, shaped[operand].shape);
            if (operand == k) {
                shaped[operand].strides[1] = 200;
                shaped[operand].strides[0] = 600;
            }
            options.layout[operand] = operand == TARN_X ? NULL : &shaped[operand];
        }
        tarn_plan_destroy(plan);
        GOOD(tarn_plan_create(&plan, &pool, &shaped[TARN_X], &options, &error));
        CHECK(plan->problem.leading == 2, "%d axes", plan->problem.leading);
        tarn_plan_destroy(plan);
    }
}

/* Sums of 16 bits wait in a list until their plane is done: of several planes, and many channels,
 * more than it has room for. */
static void test_planes_of_many_channels(void)
{
    enum { PLANES = 4, CHANNELS = 431, CELLS = 12 * 8 * 7, WINDOWS = 2 };
    static uint16_t x[PLANES * CHANNELS * CELLS], gx[2][PLANES * CHANNELS * CELLS];
    static uint16_t y[PLANES * CHANNELS * WINDOWS], gy[PLANES * CHANNELS * WINDOWS];
    static int32_t saved[PLANES * CHANNELS * WINDOWS];
    tarn_pool pool;
    tarn_view view;
    for (int k = 0; k < PLANES * CHANNELS * CELLS; k++)
        x[k] = (uint16_t)((unsigned)k * 7919 % 0x7000);
    for (int k = 0; k < PLANES * CHANNELS * WINDOWS; k++)
        gy[k] = (uint16_t)((unsigned)k * 104729 % 0x7000);
    GOOD(tarn_problem_parse("max d3 k7s4 f16 4x431x12x8x7 last", &pool, &view, &error));
    for (int fast = 0; fast < 2; fast++) {
        tarn_options options = tarn_options_default();
        tarn_plan *plan;
        options.isa = fast ? 0 : TARN_ISA_SPEC;
        GOOD(tarn_plan_create(&plan, &pool, &view, &options, &error));
        GOOD(tarn_forward(plan, x, y, saved, &error));
        GOOD(tarn_vjp(plan, x, saved, gy, gx[fast], &error));
        tarn_plan_destroy(plan);
    }
    CHECK(memcmp(gx[0], gx[1], sizeof gx[0]) == 0, "gradients of %d planes", PLANES);
}

/* A dilation that engines do not count with, in a window that lies inside all the same: of one
 * cell, which is all cells of the axis. */
static void test_far_taps(void)
{
    const int64_t far = (INT64_C(1) << 26) + 1;
    tarn_pool pool = tarn_avg_pool_nd(1, (int64_t[]){2}, (int64_t[]){1}, NULL);
    pool.dilation[0] = far;
    tarn_view x = tarn_view_dense(NULL, TARN_U8, 1, (int64_t[]){far + 3});
    x.strides[0] = 0;
    unsigned char cell = 7, y[3] = {0};
    tarn_plan *plan;
    GOOD(tarn_plan_create(&plan, &pool, &x, NULL, &error));
    GOOD(tarn_forward(plan, &cell, y, NULL, &error));
    CHECK(y[0] == 7 && y[1] == 7 && y[2] == 7, "%d %d %d", y[0], y[1], y[2]);
    tarn_plan_destroy(plan);
}

int main(void)
{
    test_planes_of_many_channels();
    test_far_taps();
    test_skipped_numbers();
    test_skipped_zeros();
    test_vanishing_tangent();
    test_merged_axes();
    test_views();
    test_padding_at_the_reach();
    test_calls();
    test_large_plans();
    test_only_specification();
    test_explanations();
    return finish_checks();
}
