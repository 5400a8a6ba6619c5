/* Equalities that hold bit by bit, whatever kernel runs: between operators, layouts, window rules,
 * executors and passes. Each is checked with the specification and with the fastest kernels. */
#define _POSIX_C_SOURCE 200809L

#include "fixture.h"

#include <math.h>
#include <pthread.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#ifdef TARN_SHORT_TESTS
enum { ROUNDS = 10, MAX_PARTS = 5 };
#else
enum { ROUNDS = 60, MAX_PARTS = 8 };
#endif

static uint32_t isa = TARN_ISA_ALL; /* the kernels under test */

/* ---- Running all passes of a problem -------------------------------------------------------- */

enum { HAS_Y, HAS_DY, HAS_GX, HAS_INDICES, HAS_SAVED, OUTPUTS };
static const char *const output_names[OUTPUTS] = {"y", "dy", "gx", "indices", "saved"};

typedef struct {
    bool has[OUTPUTS];
    tensor out[OUTPUTS];
} results;

static tarn_options options_here(void)
{
    tarn_options options = tarn_options_default();
    options.isa = isa;
    return options;
}

static tensor tensor_of(const tarn_plan *plan, tarn_operand operand)
{
    tarn_view layout;
    tarn_plan_layout(plan, operand, &layout, NULL);
    return tensor_like(&layout);
}

static void run_derivatives(const tarn_plan *plan, const void *x, uint64_t seed, results *r)
{
    rng random = {seed};
    tensor dx = tensor_of(plan, TARN_DX), gy = tensor_of(plan, TARN_GY);
    r->has[HAS_DY] = r->has[HAS_GX] = true;
    r->out[HAS_DY] = tensor_of(plan, TARN_DY);
    r->out[HAS_GX] = tensor_of(plan, TARN_GX);
    fill(&dx.view, &random, random_wide); /* in logical order: the same for every layout */
    fill(&gy.view, &random, random_wide);
    CHECK(tarn_jvp(plan, x, dx.memory, NULL, r->out[HAS_DY].memory, NULL) == TARN_OK, "jvp");
    CHECK(tarn_vjp(plan, x, NULL, gy.memory, r->out[HAS_GX].memory, NULL) == TARN_OK, "vjp");
    tensor_free(&dx);
    tensor_free(&gy);
}

static void run_winners(const tarn_plan *plan, const void *x, results *r)
{
    int64_t bytes = (int64_t)tarn_plan_saved_bytes(plan);
    tensor y = tensor_of(plan, TARN_Y);
    r->has[HAS_INDICES] = true;
    r->out[HAS_INDICES] = tensor_of(plan, TARN_INDICES);
    CHECK(tarn_forward_indices(plan, x, y.memory, (int64_t *)(void *)r->out[HAS_INDICES].memory,
                               NULL) == TARN_OK,
          "indices");
    CHECK(same_elements(&y.view, &r->out[HAS_Y].view), "y with indices differs");
    if (bytes > 0) {
        r->has[HAS_SAVED] = true;
        r->out[HAS_SAVED] = tensor_dense(TARN_U8, 1, &bytes);
        CHECK(tarn_forward(plan, x, y.memory, r->out[HAS_SAVED].memory, NULL) == TARN_OK, "saved");
        CHECK(same_elements(&y.view, &r->out[HAS_Y].view), "y with saved winners differs");
    }
    tensor_free(&y);
}

/* Everything a plan can compute from x; tangents and cotangents come from the seed. */
static results run_plan(const tarn_plan *plan, const tarn_pool *pool, const tarn_view *x,
                        uint64_t seed)
{
    results r = {.has = {[HAS_Y] = true}};
    r.out[HAS_Y] = tensor_of(plan, TARN_Y);
    CHECK(tarn_forward(plan, x->data, r.out[HAS_Y].memory, NULL, NULL) == TARN_OK, "forward");
    if (is_floating_dtype(x->dtype))
        run_derivatives(plan, x->data, seed, &r);
    if (pool->op == TARN_MAX || pool->op == TARN_MIN)
        run_winners(plan, x->data, &r);
    return r;
}

static results run_with(const tarn_pool *pool, const tarn_view *x, uint64_t seed,
                        const tarn_options *options)
{
    tarn_error error;
    tarn_plan *plan;
    if (tarn_plan_create(&plan, pool, x, options, &error)) {
        CHECK(false, "plan: %s", error.message);
        exit(finish_checks());
    }
    results r = run_plan(plan, pool, x, seed);
    tarn_plan_destroy(plan);
    return r;
}

static results run_all(const tarn_pool *pool, const tarn_view *x, uint64_t seed)
{
    tarn_options options = options_here();
    return run_with(pool, x, seed, &options);
}

/* One pass on given tensors with the kernels under test; the layouts are those of the views. */
static tarn_plan *plan_here(const tarn_pool *pool, const tarn_view *x,
                            const tarn_view *const layout[TARN_OPERANDS])
{
    tarn_options options = options_here();
    tarn_plan *plan;
    tarn_error error;
    for (int k = 0; k < TARN_OPERANDS; k++)
        options.layout[k] = layout[k];
    if (tarn_plan_create(&plan, pool, x, &options, &error)) {
        CHECK(false, "plan: %s", error.message);
        exit(finish_checks());
    }
    return plan;
}

static void forward_here(const tarn_pool *pool, const tarn_view *x, const tarn_view *y)
{
    tarn_plan *plan = plan_here(pool, x, (const tarn_view *[TARN_OPERANDS]){[TARN_Y] = y});
    CHECK(tarn_forward(plan, x->data, y->data, NULL, NULL) == TARN_OK, "forward");
    tarn_plan_destroy(plan);
}

static void jvp_here(const tarn_pool *pool, const tarn_view *x, const tarn_view *dx,
                     const tarn_view *y, const tarn_view *dy)
{
    tarn_plan *plan = plan_here(
        pool, x, (const tarn_view *[TARN_OPERANDS]){[TARN_DX] = dx, [TARN_Y] = y, [TARN_DY] = dy});
    CHECK(tarn_jvp(plan, x->data, dx->data, y ? y->data : NULL, dy->data, NULL) == TARN_OK, "jvp");
    tarn_plan_destroy(plan);
}

static void vjp_here(const tarn_pool *pool, const tarn_view *x, const tarn_view *gy,
                     const tarn_view *gx)
{
    tarn_plan *plan =
        plan_here(pool, x, (const tarn_view *[TARN_OPERANDS]){[TARN_GY] = gy, [TARN_GX] = gx});
    CHECK(tarn_vjp(plan, x->data, NULL, gy->data, gx->data, NULL) == TARN_OK, "vjp");
    tarn_plan_destroy(plan);
}

static void free_results(results *r)
{
    for (int k = 0; k < OUTPUTS; k++)
        if (r->has[k])
            tensor_free(&r->out[k]);
}

/* The same bits in the same logical order; ranks may differ (flat or kept). */
static bool same_sequence(const tarn_view *a, const tarn_view *b)
{
    int64_t i[TARN_MAX_RANK] = {0}, j[TARN_MAX_RANK] = {0};
    if (a->dtype != b->dtype || count_of(a) != count_of(b))
        return false;
    if (count_of(a) == 0)
        return true;
    do {
        if (memcmp(element_at(a, i), element_at(b, j), tarn_dtype_size(a->dtype)) != 0)
            return false;
        step_index(b, j);
    } while (step_index(a, i));
    return true;
}

/* Saved winners are opaque and in the order of y's memory: compared only where layouts are
 * equal. */
static void expect_same(const results *a, const results *b, bool saved, const char *what)
{
    for (int k = 0; k < OUTPUTS; k++)
        if (a->has[k] && b->has[k] && (saved || k != HAS_SAVED))
            CHECK(same_sequence(&a->out[k].view, &b->out[k].view), "%s: %s differs", what,
                  output_names[k]);
}

static tensor random_tensor(tarn_dtype dtype, int rank, const int64_t *shape, uint64_t seed,
                            double (*random)(rng *, tarn_dtype))
{
    rng r = {seed};
    tensor t = tensor_dense(dtype, rank, shape);
    fill(&t.view, &r, random);
    return t;
}

static bool allowed(tarn_op op, tarn_dtype dtype)
{
    return op < TARN_SMOOTH || is_floating_dtype(dtype) == (op != TARN_MODE);
}

static tarn_dtype random_dtype(rng *r, tarn_op op)
{
    tarn_dtype dtype;
    do
        dtype = (tarn_dtype)rng_range(r, 0, TARN_DTYPES - 1);
    while (!allowed(op, dtype));
    return dtype;
}

static const char *label(const char *what, int op, int dtype, int detail)
{
    static char text[160];
    snprintf(text, sizeof text, "%s: op %d %s [%d] isa %x", what, op,
             tarn_dtype_name((tarn_dtype)dtype), detail, (unsigned)isa);
    return text;
}

/* ---- Window rules that mean the same -------------------------------------------------------- */

static void check_global(tarn_op op, tarn_dtype dtype, tarn_ties ties, int spatial)
{
    const int64_t shape[4] = {3, 5, 4, 7};
    tensor x = random_tensor(dtype, 4, shape, 11, ties ? random_small : random_wide);
    tarn_pool pool = tarn_max_pool(spatial);
    pool.op = op;
    pool.ties = ties;
    for (int a = 0; a < spatial; a++)
        pool.kernel[a] = shape[4 - spatial + a];
    results sliding = run_all(&pool, &x.view, 1);
    pool.window = TARN_ADAPTIVE;
    results adaptive = run_all(&pool, &x.view, 1);
    pool.window = TARN_GLOBAL;
    results global = run_all(&pool, &x.view, 1);
    pool.flat = 1;
    results flat = run_all(&pool, &x.view, 1);
    expect_same(&sliding, &adaptive, true, label("adaptive to 1", op, dtype, ties));
    expect_same(&sliding, &global, true, label("global", op, dtype, ties));
    expect_same(&sliding, &flat, true, label("global flat", op, dtype, ties));
    CHECK(flat.out[HAS_Y].view.rank == 4 - spatial, "flat drops the spatial axes");
    free_results(&sliding);
    free_results(&adaptive);
    free_results(&global);
    free_results(&flat);
    tensor_free(&x);
}

static void test_global(void)
{
    for (int op = 0; op < TARN_OPS; op++)
        for (int dtype = 0; dtype < TARN_DTYPES; dtype++)
            for (int ties = 0; ties < TARN_TIES; ties++)
                for (int spatial = 1; spatial <= 4; spatial++)
                    if (allowed((tarn_op)op, (tarn_dtype)dtype))
                        check_global((tarn_op)op, (tarn_dtype)dtype, (tarn_ties)ties, spatial);
}

static bool same_pool(const tarn_pool *a, const tarn_pool *b)
{
    bool same = a->op == b->op && a->window == b->window && a->spatial == b->spatial &&
                a->ceil_mode == b->ceil_mode && a->count_include_pad == b->count_include_pad &&
                a->divisor == b->divisor && a->beta == b->beta && a->power == b->power &&
                a->ties == b->ties && a->flat == b->flat;
    for (int k = 0; k < a->spatial; k++)
        same = same && a->kernel[k] == b->kernel[k] && a->stride[k] == b->stride[k] &&
               a->dilation[k] == b->dilation[k] && a->pad_lo[k] == b->pad_lo[k] &&
               a->pad_hi[k] == b->pad_hi[k];
    return same;
}

static void test_constructors(void)
{
    const int64_t kernel[2] = {3, 2}, stride[2] = {2, 2}, padding[2] = {1, 1};
    const struct {
        const char *name;
        tarn_pool flat, general;
    } pairs[] = {
        {"max", tarn_max_pool2d(3, 2, 2), tarn_max_pool_nd(2, kernel, stride, NULL)},
        {"max padded", tarn_max_pool2d_padded(3, 2, 2, 1),
         tarn_max_pool_nd(2, kernel, stride, padding)},
        {"avg", tarn_avg_pool2d(3, 2, 2), tarn_avg_pool_nd(2, kernel, stride, NULL)},
        {"avg padded", tarn_avg_pool2d_padded(3, 2, 2, 1),
         tarn_avg_pool_nd(2, kernel, stride, padding)},
        {"smooth", tarn_smooth_pool2d(3, 2, 2, 2.5),
         tarn_smooth_pool_nd(2, kernel, stride, NULL, 2.5)},
        {"lp", tarn_lp_pool2d(3, 2, 2, 2.5), tarn_lp_pool_nd(2, kernel, stride, NULL, 2.5)},
    };
    const int64_t shape[3] = {2, 7, 6};
    tensor x = random_tensor(TARN_F32, 3, shape, 4, random_wide);
    for (int k = 0; k < COUNT(pairs); k++) {
        results a = run_all(&pairs[k].flat, &x.view, 2), b = run_all(&pairs[k].general, &x.view, 2);
        CHECK(same_pool(&pairs[k].flat, &pairs[k].general), "%s", pairs[k].name);
        expect_same(&a, &b, true, pairs[k].name);
        free_results(&a);
        free_results(&b);
    }
    tensor_free(&x);
    tarn_pool by_kernel = tarn_max_pool_nd(2, kernel, NULL, NULL);
    CHECK(by_kernel.stride[0] == 3 && by_kernel.stride[1] == 2, "NULL stride is the kernel");
    CHECK(tarn_avg_pool2d(1, 1, 1).count_include_pad == 1, "avg counts padding");
    CHECK(tarn_global_max_pool(2, 0).ties == TARN_TIES_ALL &&
              tarn_max_pool(2).ties == TARN_TIES_FIRST &&
              tarn_adaptive_max_pool(2, kernel).ties == TARN_TIES_FIRST,
          "default tie rules");
}

/* ---- Layouts and ranks ---------------------------------------------------------------------- */

static tarn_pool varied_pool(rng *r, tarn_op op)
{
    tarn_pool pool = tarn_max_pool(2);
    pool.op = op;
    pool.ties = (tarn_ties)rng_range(r, 0, 2);
    pool.ceil_mode = (int)rng_range(r, 0, 1);
    pool.count_include_pad = (int)rng_range(r, 0, 1);
    pool.divisor = rng_range(r, 0, 3) ? 0 : rng_range(r, 1, 9);
    pool.beta = rng_range(r, 0, 1) ? 3.0 : -0.7;
    pool.power = (double)rng_range(r, 2, 6) / 2;
    pool.window = rng_range(r, 0, 4) ? TARN_SLIDING : TARN_ADAPTIVE;
    for (int a = 0; a < 2; a++) {
        pool.kernel[a] = rng_range(r, 1, 4);
        pool.stride[a] = rng_range(r, 1, 3);
        pool.dilation[a] = pool.kernel[a] < 4 ? rng_range(r, 1, 2) : 1; /* spans at most 5 */
        pool.pad_lo[a] = rng_range(r, 0, 2);
        pool.pad_hi[a] = rng_range(r, 0, 2);
        pool.out[a] = rng_range(r, 1, 11);
    }
    return pool;
}

/* Copies x into another layout and compares all results. */
static void check_layout(const tarn_pool *pool, const tensor *x, const tarn_view *layout,
                         const char *what)
{
    tensor other = tensor_like(layout);
    copy_view(&x->view, &other.view);
    results a = run_all(pool, &x->view, 9), b = run_all(pool, &other.view, 9);
    expect_same(&a, &b, false, what);
    free_results(&a);
    free_results(&b);
    tensor_free(&other);
}

static void test_layouts(void)
{
    const int64_t shape[4] = {2, 5, 8, 9};
    rng r = {42};
    for (int round = 0; round < ROUNDS; round++)
        for (int op = 0; op < TARN_OPS; op++) {
            tarn_dtype dtype = random_dtype(&r, (tarn_op)op);
            tarn_pool pool = varied_pool(&r, (tarn_op)op);
            tensor x = random_tensor(dtype, 4, shape, rng_next(&r), random_small);
            tarn_view last = tarn_view_channels_last(NULL, dtype, 4, 2, shape);
            check_layout(&pool, &x, &last, label("channels last", op, dtype, round));
            tarn_view odd = {.dtype = dtype,
                             .rank = 4,
                             .shape = {2, 5, 8, 9},
                             .strides = {3, 1000, 7, 70}}; /* axes in another order, and gaps */
            check_layout(&pool, &x, &odd, label("odd strides", op, dtype, round));
            tensor_free(&x);
        }
}

/* A view with negative or zero strides into a block, and what it looks like when written out. */
static void test_odd_inputs(void)
{
    const int64_t shape[3] = {3, 6, 7};
    static const struct {
        int64_t start, strides[3];
    } views[] = {{126 - 1, {-42, -7, -1}}, {41, {42, -7, -1}}, {0, {0, 7, 1}}, {6, {42, 7, -1}},
                 {0, {42, 0, 1}},          {0, {42, 7, 0}},    {5, {0, 0, 0}}, {35, {1, -7, 2}}};
    rng r = {8};
    for (int op = 0; op < TARN_OPS; op++)
        for (int dtype = 0; dtype < TARN_DTYPES; dtype++)
            for (int v = 0; v < COUNT(views); v++) {
                if (!allowed((tarn_op)op, (tarn_dtype)dtype))
                    continue;
                tensor block = random_tensor((tarn_dtype)dtype, 3, shape, 6, random_small);
                tarn_view view = block.view;
                view.data = block.memory + (size_t)views[v].start * tarn_dtype_size(view.dtype);
                memcpy(view.strides, views[v].strides, sizeof views[v].strides);
                tensor copy = tensor_dense(view.dtype, 3, shape);
                copy_view(&view, &copy.view);
                tarn_pool pool = varied_pool(&r, (tarn_op)op);
                tarn_options options = options_here();
                options.layout[TARN_DX] = &copy.view; /* dx cannot be written through such a view */
                results a = run_with(&pool, &view, 3, &options);
                results b = run_with(&pool, &copy.view, 3, &options);
                expect_same(&a, &b, false, label("odd input", op, dtype, v));
                free_results(&a);
                free_results(&b);
                tensor_free(&block);
                tensor_free(&copy);
            }
}

/* One [N,C,H,W] call, N calls of [C,H,W], N*C calls of [H,W]: forward and indices. */
static void test_ranks(void)
{
    const int64_t shape[4] = {2, 3, 6, 7};
    rng r = {15};
    for (int round = 0; round < ROUNDS; round++) {
        tarn_op op = (tarn_op)(round % TARN_OPS);
        tarn_dtype dtype = random_dtype(&r, op);
        tarn_pool pool = varied_pool(&r, op);
        tensor x = random_tensor(dtype, 4, shape, rng_next(&r), random_wide);
        results whole = run_all(&pool, &x.view, 1);
        for (int rank = 2; rank <= 3; rank++) {
            int64_t pieces = rank == 2 ? 6 : 2;
            for (int64_t k = 0; k < pieces; k++) {
                size_t step = x.bytes / (size_t)pieces;
                tarn_view part =
                    tarn_view_dense(x.memory + (size_t)k * step, dtype, rank, shape + 4 - rank);
                results piece = run_all(&pool, &part, 1);
                for (int o = 0; o < OUTPUTS; o++) {
                    const tensor *all = &whole.out[o], *one = &piece.out[o];
                    if (o == HAS_DY || o == HAS_GX || !piece.has[o])
                        continue;
                    CHECK(one->bytes * (size_t)pieces == all->bytes &&
                              memcmp(all->memory + (size_t)k * one->bytes, one->memory,
                                     one->bytes) == 0,
                          "%s: %s of piece %d", label("rank", op, dtype, rank), output_names[o],
                          (int)k);
                }
                free_results(&piece);
            }
        }
        free_results(&whole);
        tensor_free(&x);
    }
}

/* ---- Translation and padding ---------------------------------------------------------------- */

static tarn_view crop(const tarn_view *view, const int64_t *from, const int64_t *size)
{
    tarn_view part = *view;
    part.data = element_at(view, from);
    for (int a = 0; a < view->rank; a++)
        part.shape[a] = size[a];
    return part;
}

/* Pooling a crop gives the crop of the pooled tensor: sums do not know where they are. */
static void test_translation(void)
{
    const int64_t shape[2] = {21, 23};
    rng r = {31};
    for (int round = 0; round < ROUNDS; round++)
        for (int op = TARN_AVG; op <= TARN_LP; op++)
            for (int dtype = TARN_F64; dtype <= TARN_BF16; dtype++) {
                tarn_pool pool = varied_pool(&r, (tarn_op)op);
                pool.window = TARN_SLIDING;
                pool.ceil_mode = 0;
                int64_t from[2], size[2], out_from[2];
                for (int a = 0; a < 2; a++) {
                    pool.pad_lo[a] = pool.pad_hi[a] = 0;
                    pool.kernel[a] = rng_range(&r, 1, 7);
                    out_from[a] = rng_range(&r, 0, 2);
                    from[a] = out_from[a] * pool.stride[a];
                    size[a] = rng_range(&r, pool.dilation[a] * (pool.kernel[a] - 1) + 1,
                                        shape[a] - from[a]);
                }
                tensor x = random_tensor((tarn_dtype)dtype, 2, shape, rng_next(&r), random_wide);
                tensor dx = random_tensor((tarn_dtype)dtype, 2, shape, rng_next(&r), random_wide);
                tarn_view part = crop(&x.view, from, size), dpart = crop(&dx.view, from, size);
                tarn_view layout, small;
                tarn_output_view(&pool, &x.view, &layout, NULL);
                tarn_output_view(&pool, &part, &small, NULL);
                tensor y = tensor_like(&layout), dy = tensor_like(&layout);
                tensor py = tensor_like(&small), pdy = tensor_like(&small);
                jvp_here(&pool, &x.view, &dx.view, &y.view, &dy.view);
                jvp_here(&pool, &part, &dpart, &py.view, &pdy.view);
                tarn_view cy = crop(&y.view, out_from, py.view.shape);
                tarn_view cdy = crop(&dy.view, out_from, py.view.shape);
                CHECK(same_elements(&cy, &py.view), "%s", label("crop", op, dtype, round));
                CHECK(same_elements(&cdy, &pdy.view), "%s", label("crop, jvp", op, dtype, round));
                tensor *all[] = {&x, &dx, &y, &dy, &py, &pdy};
                for (int k = 0; k < COUNT(all); k++)
                    tensor_free(all[k]);
            }
}

/* avg, smooth and lp with padding that counts are those of the tensor padded with zeros. */
static void test_padding_is_zeros(void)
{
    const int64_t shape[3] = {2, 7, 6};
    rng r = {77};
    for (int round = 0; round < ROUNDS; round++)
        for (int op = TARN_AVG; op <= TARN_LP; op++)
            for (int dtype = TARN_F64; dtype <= TARN_BF16; dtype++) {
                tarn_pool pool = varied_pool(&r, (tarn_op)op), bare;
                pool.window = TARN_SLIDING;
                pool.ceil_mode = 0;
                pool.count_include_pad = 1;
                int64_t padded[3] = {2, 0, 0};
                for (int a = 0; a < 2; a++)
                    padded[1 + a] = shape[1 + a] + pool.pad_lo[a] + pool.pad_hi[a];
                bare = pool;
                memset(bare.pad_lo, 0, sizeof bare.pad_lo);
                memset(bare.pad_hi, 0, sizeof bare.pad_hi);
                tensor x = random_tensor((tarn_dtype)dtype, 3, shape, rng_next(&r), random_wide);
                tensor px = tensor_dense((tarn_dtype)dtype, 3, padded);
                CHECK(tarn_pad(&x.view, 2, pool.pad_lo, pool.pad_hi, &px.view, NULL) == TARN_OK,
                      "pad");
                results a = run_all(&pool, &x.view, 5), b = run_all(&bare, &px.view, 5);
                a.has[HAS_DY] = a.has[HAS_GX] = false; /* other tangents: x has fewer cells */
                expect_same(&a, &b, false, label("padding is zeros", op, dtype, round));
                a.has[HAS_DY] = a.has[HAS_GX] = true;
                free_results(&a);
                free_results(&b);
                tensor_free(&x);
                tensor_free(&px);
            }
}

/* ---- Lp ------------------------------------------------------------------------------------- */

/* Multiplying by powers of two, or changing signs, changes no bit of a norm but for the factor;
 * powers of a wide range leave no room for plain sums, so fast and careful paths meet here. */
static void check_scaled_norm(double power, double factor, uint64_t seed)
{
    const int64_t shape[2] = {9, 11};
    tarn_pool pool = tarn_lp_pool2d(3, 2, 2, power);
    tensor x = random_tensor(TARN_F64, 2, shape, seed, random_wide);
    tensor fx = tensor_dense(TARN_F64, 2, shape);
    for (size_t k = 0; k < x.bytes / 8; k++)
        ((double *)(void *)fx.memory)[k] = factor * ((double *)(void *)x.memory)[k];
    results a = run_all(&pool, &x.view, 3), b = run_all(&pool, &fx.view, 3);
    const double *y = (double *)(void *)a.out[HAS_Y].memory;
    const double *fy = (double *)(void *)b.out[HAS_Y].memory;
    for (size_t k = 0; k < a.out[HAS_Y].bytes / 8; k++)
        CHECK(fy[k] == fabs(factor) * y[k], "p %g, factor %g: %a %a", power, factor, fy[k], y[k]);
    free_results(&a);
    free_results(&b);
    tensor_free(&x);
    tensor_free(&fx);
}

static void test_scaled_norms(void)
{
    static const double factors[] = {-1, 0x1p700, -0x1p-700, 0x1p-30};
    for (int k = 0; k < COUNT(factors); k++)
        for (int p = 1; p <= 2; p++)
            check_scaled_norm(p, factors[k], 50 + (uint64_t)k);
    check_scaled_norm(3, -1, 61);
}

/* ---- Pad, unpad, unpool, fold --------------------------------------------------------------- */

/* Any bits: NaN with payloads, -0, infinities, subnormals. */
static void fill_bits(const tensor *t, rng *r)
{
    for (size_t k = 0; k < t->bytes; k++)
        t->memory[k] = (unsigned char)rng_next(r);
}

static void check_pad(tarn_dtype dtype, const int64_t *lo, const int64_t *hi, rng *r)
{
    const int64_t shape[3] = {2, 3, 4}, padded[3] = {2, 3 + lo[0] + hi[0], 4 + lo[1] + hi[1]};
    tensor x = tensor_dense(dtype, 3, shape), y = tensor_dense(dtype, 3, padded);
    tensor back = tensor_dense(dtype, 3, shape), pooled = tensor_dense(dtype, 3, padded);
    tarn_pool pool = tarn_max_pool(2);
    fill_bits(&x, r);
    CHECK(tarn_pad(&x.view, 2, lo, hi, &y.view, NULL) == TARN_OK, "pad");
    CHECK(tarn_unpad(&y.view, 2, lo, hi, &back.view, NULL) == TARN_OK, "unpad");
    CHECK(same_elements(&x.view, &back.view), "unpad(pad(x)) %s", tarn_dtype_name(dtype));
    if (lo[0] == hi[0] && lo[1] == lo[0] && hi[1] == lo[0]) {
        memset(back.memory, POISON, back.bytes);
        CHECK(tarn_unpad2d(&y.view, lo[0], &back.view, NULL) == TARN_OK, "unpad2d");
        CHECK(same_elements(&x.view, &back.view), "unpad2d(pad(x)) %s", tarn_dtype_name(dtype));
    }
    memcpy(pool.pad_lo, lo, 2 * sizeof *lo);
    memcpy(pool.pad_hi, hi, 2 * sizeof *hi);
    forward_here(&pool, &x.view, &pooled.view);
    CHECK(same_elements(&y.view, &pooled.view), "pad is max with kernel 1: %s",
          tarn_dtype_name(dtype));
    /* and the padding is zero bits */
    int64_t corner[3] = {1, 0, 0};
    const unsigned char zeros[8] = {0};
    if (lo[0] > 0)
        CHECK(memcmp(element_at(&y.view, corner), zeros, tarn_dtype_size(dtype)) == 0, "corner");
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&back);
    tensor_free(&pooled);
}

static void test_pad(void)
{
    static const int64_t paddings[][4] = {
        {0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {1, 0, 0, 3}, {0, 2, 1, 0}};
    rng r = {12};
    for (int dtype = 0; dtype < TARN_DTYPES; dtype++)
        for (int p = 0; p < COUNT(paddings); p++)
            check_pad((tarn_dtype)dtype, paddings[p], paddings[p] + 2, &r);
}

static double inner_product(const tarn_view *a, const tarn_view *b)
{
    int64_t at[TARN_MAX_RANK] = {0};
    double sum = 0;
    do
        sum += get_number(a->dtype, element_at(a, at)) * get_number(b->dtype, element_at(b, at));
    while (step_index(a, at));
    return sum;
}

/* <pad x, g> == <x, unpad g>; the numbers are small, so both are exact. */
static void test_pad_is_adjoint(void)
{
    const int64_t shape[2] = {3, 5}, padded[2] = {6, 8}, lo[2] = {1, 3}, hi[2] = {2, 0};
    tensor x = random_tensor(TARN_F64, 2, shape, 1, random_small),
           px = tensor_dense(TARN_F64, 2, padded);
    tensor g = random_tensor(TARN_F64, 2, padded, 2, random_small),
           ug = tensor_dense(TARN_F64, 2, shape);
    tarn_pad(&x.view, 2, lo, hi, &px.view, NULL);
    tarn_unpad(&g.view, 2, lo, hi, &ug.view, NULL);
    CHECK(inner_product(&px.view, &g.view) == inner_product(&x.view, &ug.view), "adjoint");
    tensor_free(&x);
    tensor_free(&px);
    tensor_free(&g);
    tensor_free(&ug);
}

/* Each VJP is the transpose of its JVP: <J dx, gy> == <dx, J' gy>, exactly, for small numbers. */
static void test_transpose(void)
{
    const int64_t shape[3] = {2, 7, 8};
    rng r = {99};
    for (int round = 0; round < 4 * ROUNDS; round++) {
        tarn_pool pool = varied_pool(&r, (tarn_op)rng_range(&r, TARN_MAX, TARN_AVG));
        if (pool.op == TARN_AVG) {
            pool.window = TARN_SLIDING;
            pool.divisor = 4; /* exact */
        } else if (pool.ties == TARN_TIES_SPLIT)
            pool.ties = TARN_TIES_ALL;
        tarn_view layout;
        tensor x = random_tensor(TARN_F64, 3, shape, rng_next(&r), random_small);
        tensor dx = random_tensor(TARN_F64, 3, shape, rng_next(&r), random_small);
        tensor gx = tensor_dense(TARN_F64, 3, shape);
        CHECK(tarn_output_view(&pool, &x.view, &layout, NULL) == TARN_OK, "shape");
        tensor gy = tensor_like(&layout), dy = tensor_like(&layout);
        fill(&gy.view, &r, random_small);
        jvp_here(&pool, &x.view, &dx.view, NULL, &dy.view);
        vjp_here(&pool, &x.view, &gy.view, &gx.view);
        CHECK(inner_product(&dy.view, &gy.view) == inner_product(&dx.view, &gx.view), "%s",
              label("transpose", pool.op, TARN_F64, pool.ties));
        tensor *all[] = {&x, &dx, &gx, &gy, &dy};
        for (int k = 0; k < COUNT(all); k++)
            tensor_free(all[k]);
    }
}

static void test_unpool(void)
{
    const int64_t shape[3] = {2, 6, 6};
    for (int dtype = 0; dtype < TARN_DTYPES; dtype++) {
        tarn_pool pool = tarn_max_pool2d(2, 3, 2);
        pool.stride[1] = 3; /* windows do not overlap, so every maximum keeps its place */
        tensor x = random_tensor((tarn_dtype)dtype, 3, shape, 5, random_small);
        results r = run_all(&pool, &x.view, 1);
        tensor back = tensor_dense((tarn_dtype)dtype, 3, shape);
        CHECK(tarn_unpool(&r.out[HAS_Y].view, &r.out[HAS_INDICES].view, 2, &back.view, NULL) ==
                  TARN_OK,
              "unpool");
        int64_t at[3] = {0}, placed = 0;
        const tarn_view *indices = &r.out[HAS_INDICES].view;
        do {
            int64_t flat = *(int64_t *)element_at(indices, at);
            int64_t cell[3] = {at[0], flat / 6, flat % 6};
            CHECK(memcmp(element_at(&back.view, cell), element_at(&r.out[HAS_Y].view, at),
                         tarn_dtype_size((tarn_dtype)dtype)) == 0 &&
                      memcmp(element_at(&back.view, cell), element_at(&x.view, cell),
                             tarn_dtype_size((tarn_dtype)dtype)) == 0,
                  "%s", label("maximum in its place", 0, dtype, (int)flat));
            placed += get_number((tarn_dtype)dtype, element_at(&back.view, cell)) != 0;
        } while (step_index(indices, at));
        int64_t nonzero = 0, cell[3] = {0};
        do
            nonzero += get_number((tarn_dtype)dtype, element_at(&back.view, cell)) != 0;
        while (step_index(&back.view, cell));
        CHECK(nonzero == placed, "zeros elsewhere: %d", (int)(nonzero - placed));
        free_results(&r);
        tensor_free(&x);
        tensor_free(&back);
    }
}

static void test_unpool_rules(void)
{
    const int64_t small[2] = {2, 3}, large[2] = {2, 4};
    float x[6] = {1, 2, 3, 4, 5, 6}, y[8];
    int64_t indices[6] = {3, 0, 3, -1, 2, -1};
    const float expected[8] = {2, 0, 0, 3, 0, 0, 5, 0};
    tarn_view vx = tarn_view_dense(x, TARN_F32, 2, small),
              vy = tarn_view_dense(y, TARN_F32, 2, large);
    tarn_view vi = tarn_view_dense(indices, TARN_I64, 2, small);
    memset(y, POISON, sizeof y);
    CHECK(tarn_unpool(&vx, &vi, 1, &vy, NULL) == TARN_OK, "unpool");
    CHECK(memcmp(y, expected, sizeof y) == 0, "the later of two stays, -1 writes nothing");
    indices[5] = 4;
    memset(y, POISON, sizeof y);
    CHECK(tarn_unpool(&vx, &vi, 1, &vy, NULL) == TARN_BAD_INDEX && is_poison(y, sizeof y),
          "a bad index writes nothing");
}

static void fold_sum(void *context, void *accumulator, const void *element)
{
    float value;
    memcpy(&value, element, sizeof value);
    *(double *)accumulator += value;
    ++*(int *)context;
}

static void fold_max(void *context, void *accumulator, const void *element)
{
    (void)context;
    if (*(const float *)element > *(float *)accumulator)
        *(float *)accumulator = *(const float *)element;
}

/* Folds a string of digits: row-major order or not. */
static void fold_order(void *context, void *accumulator, const void *element)
{
    (void)context;
    *(double *)accumulator = *(double *)accumulator * 10 + (double)*(const float *)element;
}

static void test_fold(void)
{
    const int64_t shape[3] = {3, 4, 5}, ones[3] = {3, 1, 1};
    tensor x = random_tensor(TARN_F32, 3, shape, 21, random_small);
    tarn_pool pool = tarn_global_max_pool(2, 1);
    results r = run_all(&pool, &x.view, 1);
    for (int flat = 0; flat < 2; flat++) {
        tensor sum = tensor_dense(TARN_F64, flat ? 1 : 3, ones);
        tensor top = tensor_dense(TARN_F32, flat ? 1 : 3, ones);
        int calls = 0;
        for (int c = 0; c < 3; c++) {
            ((double *)(void *)sum.memory)[c] = 0;
            ((float *)(void *)top.memory)[c] = -INFINITY;
        }
        CHECK(tarn_global_fold(&x.view, 2, fold_sum, &calls, &sum.view, NULL) == TARN_OK, "sum");
        CHECK(tarn_global_fold(&x.view, 2, fold_max, NULL, &top.view, NULL) == TARN_OK, "max");
        CHECK(calls == 60, "%d calls", calls);
        CHECK(same_sequence(&top.view, &r.out[HAS_Y].view), "fold by max is global max");
        for (int c = 0; c < 3; c++) {
            double expected = 0;
            for (int k = 0; k < 20; k++)
                expected += (double)((float *)(void *)x.memory)[c * 20 + k];
            CHECK(((double *)(void *)sum.memory)[c] == expected, "fold by sum, channel %d", c);
        }
        tensor_free(&sum);
        tensor_free(&top);
    }
    free_results(&r);
    tensor_free(&x);
    float digits[6] = {1, 4, 2, 5, 3, 6}; /* [2,3] in column order */
    double number = 0;
    tarn_view columns = {
        .data = digits, .dtype = TARN_F32, .rank = 2, .shape = {2, 3}, .strides = {1, 2}};
    tarn_view scalar = tarn_view_dense(&number, TARN_F64, 0, NULL);
    CHECK(tarn_global_fold(&columns, 2, fold_order, NULL, &scalar, NULL) == TARN_OK, "order");
    CHECK(number == 123456, "row-major order: %g", number);
}

/* ---- Average -------------------------------------------------------------------------------- */

/* VJP of ones under a given divisor is the number of windows that read each cell, over the
 * divisor. */
static void test_avg_vjp_counts(void)
{
    const int64_t shape[2] = {7, 6};
    rng r = {123};
    for (int round = 0; round < 3 * ROUNDS; round++) {
        tarn_pool pool = varied_pool(&r, TARN_AVG);
        pool.window = TARN_SLIDING;
        pool.divisor = 8;
        tarn_view layout, x = tarn_view_dense(NULL, TARN_F32, 2, shape);
        CHECK(tarn_output_view(&pool, &x, &layout, NULL) == TARN_OK, "shape");
        tensor gy = tensor_like(&layout), gx = tensor_dense(TARN_F32, 2, shape);
        double expected[7 * 6] = {0};
        int64_t o[2] = {0};
        do {
            put_number(TARN_F32, element_at(&gy.view, o), 1.0);
            for (int64_t j = 0; j < pool.kernel[0] * pool.kernel[1]; j++) {
                int64_t row =
                    o[0] * pool.stride[0] - pool.pad_lo[0] + j / pool.kernel[1] * pool.dilation[0];
                int64_t column =
                    o[1] * pool.stride[1] - pool.pad_lo[1] + j % pool.kernel[1] * pool.dilation[1];
                if (row >= 0 && row < 7 && column >= 0 && column < 6)
                    expected[row * 6 + column] += 1.0 / 8.0;
            }
        } while (step_index(&gy.view, o));
        vjp_here(&pool, &x, &gy.view, &gx.view);
        for (int k = 0; k < 42; k++)
            CHECK((double)((float *)(void *)gx.memory)[k] == expected[k], "round %d, cell %d",
                  round, k);
        tensor_free(&gy);
        tensor_free(&gx);
    }
}

/* ---- Windows without a real tap, and padding that must not win ------------------------------ */

/* One cell of value 5 (or -5), kernel 1, padding 2: four of five windows have no real tap. */
static void check_empty_windows(tarn_op op, tarn_dtype dtype, tarn_ties ties)
{
    const int64_t shape[1] = {1};
    const double value = is_unsigned_dtype(dtype) ? 5 : -5;
    const double slope = op == TARN_LP ? -1 : 1; /* a norm of one number is its magnitude */
    tensor x = tensor_dense(dtype, 1, shape);
    tarn_pool pool = tarn_max_pool(1);
    put_number(dtype, x.memory, value);
    pool.op = op;
    pool.ties = ties;
    pool.pad_lo[0] = pool.pad_hi[0] = 2;
    pool.count_include_pad = 0;
    results r = run_all(&pool, &x.view, 4);
    const unsigned char zeros[8] = {0};
    size_t width = tarn_dtype_size(dtype);
    for (int o = 0; o < 5; o++) {
        const unsigned char *y = r.out[HAS_Y].memory + (size_t)o * width;
        CHECK(o == 2 ? get_number(dtype, y) == slope * value : memcmp(y, zeros, width) == 0, "%s",
              label("value without a tap", op, dtype, o));
        if (r.has[HAS_DY] && o != 2)
            CHECK(memcmp(r.out[HAS_DY].memory + (size_t)o * width, zeros, width) == 0, "%s",
                  label("tangent without a tap", op, dtype, o));
        if (r.has[HAS_INDICES])
            CHECK(((int64_t *)(void *)r.out[HAS_INDICES].memory)[o] == (o == 2 ? 0 : -1), "%s",
                  label("index without a tap", op, dtype, o));
    }
    if (is_floating_dtype(dtype)) { /* only the gradient of window 2 may arrive */
        const int64_t outs[1] = {5};
        tensor gy = tensor_dense(dtype, 1, outs), gx = tensor_dense(dtype, 1, shape);
        for (int o = 0; o < 5; o++)
            put_number(dtype, gy.memory + (size_t)o * width, o == 2 ? 3 : 1000);
        vjp_here(&pool, &x.view, &gy.view, &gx.view);
        CHECK(get_number(dtype, gx.memory) == slope * 3, "%s", label("gradient", op, dtype, ties));
        tensor_free(&gy);
        tensor_free(&gx);
    }
    free_results(&r);
    tensor_free(&x);
}

static void test_empty_windows(void)
{
    for (int op = 0; op < TARN_OPS; op++)
        for (int dtype = 0; dtype < TARN_DTYPES; dtype++)
            for (int ties = 0; ties < TARN_TIES; ties++)
                if (allowed((tarn_op)op, (tarn_dtype)dtype))
                    check_empty_windows((tarn_op)op, (tarn_dtype)dtype, (tarn_ties)ties);
}

/* The least number of a type everywhere: a padding of zero would win. For min, the greatest. */
static void test_padding_never_wins(void)
{
    const int64_t shape[2] = {3, 3};
    for (int dtype = 0; dtype < TARN_DTYPES; dtype++)
        for (int op = TARN_MAX; op <= TARN_MIN; op++)
            for (int infinite = 0; infinite < 2; infinite++) {
                tensor x = tensor_dense((tarn_dtype)dtype, 2, shape);
                size_t width = tarn_dtype_size((tarn_dtype)dtype);
                bool floating = is_floating_dtype((tarn_dtype)dtype);
                double value = op == TARN_MAX ? -3 : 3;
                if (floating && infinite)
                    value *= (double)INFINITY;
                if (is_unsigned_dtype((tarn_dtype)dtype))
                    value = op == TARN_MAX ? 0 : 3;
                for (int k = 0; k < 9; k++)
                    put_number((tarn_dtype)dtype, x.memory + (size_t)k * width, value);
                tarn_pool pool = tarn_max_pool2d_padded(2, 2, 1, 1);
                pool.op = (tarn_op)op;
                results r = run_all(&pool, &x.view, 1);
                for (int k = 0; k < 16; k++)
                    CHECK(get_number((tarn_dtype)dtype, r.out[HAS_Y].memory + (size_t)k * width) ==
                              value,
                          "%s", label("padding won", op, dtype, k));
                free_results(&r);
                tensor_free(&x);
            }
}

/* ---- Max and min: order, NaN, zeros, ties --------------------------------------------------- */

/* An order-reversing map of bits: the sign bit of floats, all bits of integers. */
static void reverse_order(const tarn_view *view)
{
    int64_t at[TARN_MAX_RANK] = {0};
    size_t width = tarn_dtype_size(view->dtype);
    do {
        unsigned char *element = element_at(view, at);
        if (is_floating_dtype(view->dtype))
            element[width - 1] ^= 0x80; /* little-endian */
        else
            for (size_t k = 0; k < width; k++)
                element[k] = (unsigned char)~element[k];
    } while (step_index(view, at));
}

static void test_min_is_reversed_max(void)
{
    const int64_t shape[3] = {2, 8, 7};
    rng r = {66};
    for (int round = 0; round < ROUNDS; round++)
        for (int dtype = 0; dtype < TARN_DTYPES; dtype++) {
            tarn_pool pool = varied_pool(&r, TARN_MAX), mirror = pool;
            mirror.op = TARN_MIN;
            tensor x = random_tensor((tarn_dtype)dtype, 3, shape, rng_next(&r), random_small);
            if (round % 2)
                fill_bits(&x, &r);
            tarn_view layout;
            CHECK(tarn_output_view(&pool, &x.view, &layout, NULL) == TARN_OK, "shape");
            results a = run_all(&pool, &x.view, 1);
            reverse_order(&x.view);
            results b = run_all(&mirror, &x.view, 1);
            /* Windows without a real tap are 0 on both sides: leave them out. */
            int64_t at[3] = {0};
            size_t width = tarn_dtype_size((tarn_dtype)dtype);
            do {
                int64_t winner = *(int64_t *)element_at(&a.out[HAS_INDICES].view, at);
                unsigned char *u = element_at(&a.out[HAS_Y].view, at);
                tarn_view one = tarn_view_dense(u, (tarn_dtype)dtype, 0, NULL);
                if (winner >= 0)
                    reverse_order(&one);
                CHECK(memcmp(u, element_at(&b.out[HAS_Y].view, at), width) == 0, "%s",
                      label("min is not max reversed", 1, dtype, round));
            } while (step_index(&a.out[HAS_Y].view, at));
            CHECK(same_sequence(&a.out[HAS_INDICES].view, &b.out[HAS_INDICES].view), "%s",
                  label("indices of min", 1, dtype, round));
            if (a.has[HAS_DY])
                CHECK(same_sequence(&a.out[HAS_DY].view, &b.out[HAS_DY].view) &&
                          same_sequence(&a.out[HAS_GX].view, &b.out[HAS_GX].view),
                      "%s", label("derivatives of min", 1, dtype, round));
            free_results(&a);
            free_results(&b);
            tensor_free(&x);
        }
}

/* Bit patterns of interest: two NaNs with payloads (one negative), zeros and numbers. */
typedef struct {
    tarn_dtype dtype;
    uint64_t nan_a, nan_b, plus_zero, minus_zero, one, minus_one;
} patterns;

static const patterns pattern_table[] = {
    {TARN_F64, UINT64_C(0x7ff8000000001234), UINT64_C(0xfff80000deadbeef), 0,
     UINT64_C(0x8000000000000000), UINT64_C(0x3ff0000000000000), UINT64_C(0xbff0000000000000)},
    {TARN_F32, 0x7fc01234, 0xffc0beef, 0, 0x80000000, 0x3f800000, 0xbf800000},
    {TARN_F16, 0x7e12, 0xfeef, 0, 0x8000, 0x3c00, 0xbc00},
    {TARN_BF16, 0x7fd2, 0xffef, 0, 0x8000, 0x3f80, 0xbf80},
};

/* A window of four given patterns: expected bits and index, under max and min. */
static void check_window(const patterns *p, const uint64_t values[4], tarn_op op, int winner,
                         const char *what)
{
    const int64_t shape[2] = {2, 2};
    size_t width = tarn_dtype_size(p->dtype);
    tensor x = tensor_dense(p->dtype, 2, shape);
    for (size_t k = 0; k < 4; k++) /* little-endian */
        memcpy(x.memory + k * width, &values[k], width);
    tarn_pool pool = tarn_max_pool2d(2, 2, 1);
    pool.op = op;
    results r = run_all(&pool, &x.view, 1);
    CHECK(memcmp(r.out[HAS_Y].memory, &values[winner], width) == 0, "%s: bits, %s", what,
          label("window", op, p->dtype, winner));
    CHECK(*(int64_t *)(void *)r.out[HAS_INDICES].memory == winner, "%s: index %d, %s", what,
          (int)*(int64_t *)(void *)r.out[HAS_INDICES].memory,
          label("window", op, p->dtype, winner));
    free_results(&r);
    tensor_free(&x);
}

static void test_nan_and_zeros(void)
{
    for (int k = 0; k < COUNT(pattern_table); k++) {
        const patterns *p = &pattern_table[k];
        const uint64_t a = p->nan_a, b = p->nan_b, z = p->plus_zero, m = p->minus_zero;
        for (int op = TARN_MAX; op <= TARN_MIN; op++) {
            tarn_op o = (tarn_op)op;
            check_window(p, (uint64_t[]){a, b, p->one, p->one}, o, 0, "NaN first");
            check_window(p, (uint64_t[]){p->one, b, a, z}, o, 1, "first NaN wins");
            check_window(p, (uint64_t[]){p->one, z, p->minus_one, b}, o, 3, "NaN last");
            check_window(p, (uint64_t[]){b, b, a, a}, o, 0, "all NaN");
            check_window(p, (uint64_t[]){z, m, m, z}, o, 0, "+0 first");
            check_window(p, (uint64_t[]){m, z, z, m}, o, 0, "-0 first");
        }
        check_window(p, (uint64_t[]){p->minus_one, m, z, m}, TARN_MAX, 1, "-0 beats -1");
        check_window(p, (uint64_t[]){p->one, z, m, z}, TARN_MIN, 1, "+0 below 1");
        check_window(p, (uint64_t[]){z, p->one, p->one, m}, TARN_MAX, 1, "first of two");
        check_window(p, (uint64_t[]){z, p->minus_one, p->one, p->minus_one}, TARN_MIN, 1, "min");
    }
}

/* All cells equal, one window of four: first takes dx[0]; all the sum; split the mean. */
static void test_ties(void)
{
    static const struct {
        tarn_ties ties;
        double dy, gx[4];
    } rules[] = {{TARN_TIES_FIRST, 1, {12, 0, 0, 0}},
                 {TARN_TIES_ALL, 10, {12, 12, 12, 12}},
                 {TARN_TIES_SPLIT, 2.5, {3, 3, 3, 3}}};
    static const uint64_t alike[][4] = {{1, 1, 1, 1}, {0, 2, 0, 2}, {3, 3, 3, 3}};
    const int64_t shape[2] = {2, 2}, one[2] = {1, 1};
    for (int k = 0; k < COUNT(pattern_table); k++)
        for (int t = 0; t < COUNT(rules); t++)
            for (int w = 0; w < COUNT(alike); w++)
                for (int op = TARN_MAX; op <= TARN_MIN; op++) {
                    const patterns *p = &pattern_table[k];
                    const uint64_t bits[4] = {p->plus_zero, p->one, p->minus_zero, p->nan_a};
                    size_t width = tarn_dtype_size(p->dtype);
                    tensor x = tensor_dense(p->dtype, 2, shape),
                           dx = tensor_dense(p->dtype, 2, shape);
                    tensor gx = tensor_dense(p->dtype, 2, shape),
                           gy = tensor_dense(p->dtype, 2, one);
                    tensor dy = tensor_dense(p->dtype, 2, one);
                    for (size_t c = 0; c < 4; c++) {
                        memcpy(x.memory + c * width, &bits[alike[w][c]], width);
                        put_number(p->dtype, dx.memory + c * width, (double)c + 1);
                    }
                    put_number(p->dtype, gy.memory, 12);
                    tarn_pool pool = tarn_max_pool2d(2, 2, 1);
                    pool.op = (tarn_op)op;
                    pool.ties = rules[t].ties;
                    jvp_here(&pool, &x.view, &dx.view, NULL, &dy.view);
                    vjp_here(&pool, &x.view, &gy.view, &gx.view);
                    CHECK(get_number(p->dtype, dy.memory) == rules[t].dy, "%s",
                          label("jvp of ties", op, p->dtype, t));
                    for (size_t c = 0; c < 4; c++)
                        CHECK(get_number(p->dtype, gx.memory + c * width) == rules[t].gx[c], "%s",
                              label("vjp of ties", op, p->dtype, t));
                    tensor *all[] = {&x, &dx, &gx, &gy, &dy};
                    for (int f = 0; f < COUNT(all); f++)
                        tensor_free(all[f]);
                }
}

/* ---- Executors ------------------------------------------------------------------------------ */

typedef struct {
    void (*body)(void *argument, int index);
    void *argument;
    int index;
} part;

static void *run_part(void *given)
{
    part *p = given;
    p->body(p->argument, p->index);
    return NULL;
}

/* One thread for each part, started from the last to the first: the order must not matter. */
static void for_threads(void *context, int count, void (*body)(void *argument, int index),
                        void *argument)
{
    pthread_t threads[16];
    part parts[16];
    ++*(int *)context;
    if (count > 16)
        abort();
    for (int k = count - 1; k >= 0; k--) {
        parts[k] = (part){body, argument, k};
        if (pthread_create(&threads[k], NULL, run_part, &parts[k]))
            abort();
    }
    for (int k = 0; k < count; k++)
        pthread_join(threads[k], NULL);
}

static void check_executor(const tarn_pool *pool, const tarn_view *x, const results *serial,
                           tarn_executor executor, const char *what)
{
    tarn_options options = options_here();
    options.executor = executor;
    results r = run_with(pool, x, 17, &options);
    expect_same(serial, &r, true, what);
    free_results(&r);
}

static void test_executors(void)
{
    const int64_t shape[4] = {2, 3, 9, 8};
    rng r = {404};
    int calls = 0;
    for (int round = 0; round < ROUNDS / 4; round++)
        for (int op = 0; op < TARN_OPS; op++)
            for (int last = 0; last < 2; last++) {
                tarn_dtype dtype = (tarn_dtype)rng_range(&r, 0, TARN_BF16);
                dtype = op == TARN_MODE ? TARN_U16 : dtype;
                tarn_pool pool = varied_pool(&r, (tarn_op)op);
                tarn_view layout = last ? tarn_view_channels_last(NULL, dtype, 4, 2, shape)
                                        : tarn_view_dense(NULL, dtype, 4, shape);
                tensor x = tensor_like(&layout);
                fill(&x.view, &r, random_wide);
                results serial = run_all(&pool, &x.view, 17);
                for (int parts = 0; parts <= MAX_PARTS; parts++)
                    check_executor(&pool, &x.view, &serial,
                                   (tarn_executor){.parts = parts,
                                                   .parallel_for = for_threads,
                                                   .context = &calls},
                                   label("pthreads", op, dtype, parts));
                tarn_executor openmp;
                for (int threads = 0; threads <= 3; threads++)
                    if (tarn_executor_openmp(threads, &openmp, NULL) == TARN_OK) {
                        openmp.grain = 0; /* these problems are small */
                        check_executor(&pool, &x.view, &serial, openmp,
                                       label("OpenMP", op, dtype, threads));
                    }
                tarn_executor own;
                for (int threads = 0; threads <= 5; threads++) {
                    CHECK(tarn_executor_threads(threads, &own, NULL) == TARN_OK, "threads");
                    own.grain = 0;
                    check_executor(&pool, &x.view, &serial, own,
                                   label("threads", op, dtype, threads));
                }
                free_results(&serial);
                tensor_free(&x);
            }
    CHECK(calls > 0, "the executor was never asked");
}

typedef struct {
    const tarn_plan *plan;
    const tarn_pool *pool;
    const tarn_view *x;
    tensor y, gx, gy;
} crew;

static void *run_crew(void *given)
{
    crew *c = given;
    for (int round = 0; round < ROUNDS; round++) {
        tarn_forward(c->plan, c->x->data, c->y.memory, NULL, NULL);
        tarn_vjp(c->plan, c->x->data, NULL, c->gy.memory, c->gx.memory, NULL);
    }
    return NULL;
}

/* One plan, eight threads at once, each with outputs of its own. */
static void test_shared_plan(void)
{
    const int64_t shape[3] = {3, 12, 11};
    for (int op = 0; op < TARN_OPS; op++) {
        rng r = {88};
        tarn_pool pool = varied_pool(&r, (tarn_op)op);
        tensor x = random_tensor(op == TARN_MODE ? TARN_U16 : TARN_F32, 3, shape, 1, random_wide);
        tarn_options options = options_here();
        tarn_plan *plan;
        if (tarn_plan_create(&plan, &pool, &x.view, &options, NULL))
            abort();
        crew crews[8];
        pthread_t threads[8];
        for (int k = 0; k < 8; k++) {
            rng seed = {5};
            crews[k] = (crew){plan,
                              &pool,
                              &x.view,
                              tensor_of(plan, TARN_Y),
                              tensor_of(plan, TARN_GX),
                              tensor_of(plan, TARN_GY)};
            fill(&crews[k].gy.view, &seed, random_wide);
            if (pthread_create(&threads[k], NULL, run_crew, &crews[k]))
                abort();
        }
        for (int k = 0; k < 8; k++)
            pthread_join(threads[k], NULL);
        run_crew(&(crew){plan, &pool, &x.view, crews[0].y, crews[0].gx, crews[0].gy});
        for (int k = 1; k < 8; k++)
            CHECK(same_elements(&crews[0].y.view, &crews[k].y.view) &&
                      same_elements(&crews[0].gx.view, &crews[k].gx.view),
                  "%s", label("shared plan", op, TARN_F32, k));
        for (int k = 0; k < 8; k++) {
            tensor_free(&crews[k].y);
            tensor_free(&crews[k].gx);
            tensor_free(&crews[k].gy);
        }
        tarn_plan_destroy(plan);
        tensor_free(&x);
    }
}

/* An empty leading axis: every pass succeeds, needs no memory, and asks no executor. */
static void test_empty_leading_axis(void)
{
    const int64_t shape[4] = {3, 0, 4, 4};
    int calls = 0;
    for (int op = 0; op <= TARN_LP; op++)
        for (int window = 0; window < TARN_WINDOWS; window++) {
            tarn_pool pool = tarn_max_pool(2);
            tarn_view y, x = tarn_view_dense(NULL, TARN_F32, 4, shape);
            tarn_options options = options_here();
            tarn_plan *plan;
            pool.op = (tarn_op)op;
            pool.window = (tarn_window)window;
            options.executor =
                (tarn_executor){.parts = 4, .parallel_for = for_threads, .context = &calls};
            CHECK(tarn_plan_create(&plan, &pool, &x, &options, NULL) == TARN_OK, "plan");
            tarn_plan_layout(plan, TARN_Y, &y, NULL);
            CHECK(count_of(&y) == 0 && y.shape[1] == 0 && tarn_plan_saved_bytes(plan) == 0, "y");
            CHECK(tarn_forward(plan, NULL, NULL, NULL, NULL) == TARN_OK, "forward");
            CHECK(tarn_jvp(plan, NULL, NULL, NULL, NULL, NULL) == TARN_OK, "jvp");
            CHECK(tarn_vjp(plan, NULL, NULL, NULL, NULL, NULL) == TARN_OK, "vjp");
            if (op <= TARN_MIN)
                CHECK(tarn_forward_indices(plan, NULL, NULL, NULL, NULL) == TARN_OK, "indices");
            tarn_plan_destroy(plan);
        }
    CHECK(calls == 0, "an executor was asked to do nothing");
}

/* ---- Saved winners -------------------------------------------------------------------------- */

static void test_saved_widths(void)
{
    static const struct {
        const char *what;
        int adaptive;
        int64_t size, kernel, out; /* adaptive: kernel is not used */
        size_t width;
    } cases[] = {
        {"1 tap", 0, 300, 1, 300, 1},
        {"255 taps", 0, 300, 255, 46, 1},
        {"256 taps", 0, 300, 256, 45, 4},
        {"2^31 - 1 taps", 0, INT64_C(1) << 31, INT32_MAX, 2, 4},
        {"2^31 taps", 0, INT64_C(1) << 31, INT64_C(1) << 31, 1, 8},
        {"adaptive, 255 taps each", 1, 510, 0, 2, 1},
        {"adaptive, windows of 255 that share a cell", 1, 509, 0, 2, 1},
        {"adaptive, longest of 256", 1, 511, 0, 2, 4},
        {"adaptive, out > in", 1, 7, 0, 100, 1},
    };
    for (int c = 0; c < COUNT(cases); c++) {
        tarn_pool pool = tarn_max_pool(1);
        tarn_plan *plan;
        tarn_view x = tarn_view_dense(NULL, TARN_U8, 1, &cases[c].size);
        pool.window = cases[c].adaptive ? TARN_ADAPTIVE : TARN_SLIDING;
        pool.kernel[0] = cases[c].kernel;
        pool.out[0] = cases[c].out;
        CHECK(tarn_plan_create(&plan, &pool, &x, NULL, NULL) == TARN_OK, "%s", cases[c].what);
        size_t bytes = tarn_plan_saved_bytes(plan);
        CHECK(bytes == (size_t)cases[c].out * cases[c].width, "%s: %d bytes for %d outputs",
              cases[c].what, (int)bytes, (int)cases[c].out);
        tarn_plan_destroy(plan);
    }
}

static void check_vjp_from_saved(const tarn_pool *pool, tarn_dtype dtype, const int64_t *shape,
                                 rng *r, int shift)
{
    tensor x = random_tensor(dtype, 3, shape, rng_next(r), random_small);
    tarn_options options = options_here();
    tarn_plan *plan;
    if (tarn_plan_create(&plan, pool, &x.view, &options, NULL))
        abort();
    tensor y = tensor_of(plan, TARN_Y), gy = tensor_of(plan, TARN_GY);
    tensor a = tensor_of(plan, TARN_GX), b = tensor_of(plan, TARN_GX);
    size_t bytes = tarn_plan_saved_bytes(plan);
    unsigned char *block = malloc(bytes + (size_t)shift); /* any alignment is allowed */
    if (!block)
        abort();
    fill(&gy.view, r, random_wide);
    CHECK(tarn_forward(plan, x.memory, y.memory, block + shift, NULL) == TARN_OK, "forward");
    CHECK(tarn_vjp(plan, x.memory, NULL, gy.memory, a.memory, NULL) == TARN_OK, "vjp");
    CHECK(tarn_vjp(plan, NULL, block + shift, gy.memory, b.memory, NULL) == TARN_OK, "vjp saved");
    CHECK(same_elements(&a.view, &b.view), "%s", label("vjp from saved", pool->op, dtype, shift));
    tensor *all[] = {&x, &y, &gy, &a, &b};
    for (int k = 0; k < COUNT(all); k++)
        tensor_free(all[k]);
    free(block);
    tarn_plan_destroy(plan);
}

static void test_vjp_from_saved(void)
{
    rng r = {1000};
    const int64_t shape[3] = {2, 9, 8}, wide[3] = {1, 20, 20};
    for (int round = 0; round < ROUNDS; round++)
        for (int dtype = TARN_F64; dtype <= TARN_BF16; dtype++) {
            tarn_pool pool = varied_pool(&r, round % 2 ? TARN_MAX : TARN_MIN);
            pool.ties = TARN_TIES_FIRST;
            check_vjp_from_saved(&pool, (tarn_dtype)dtype, shape, &r, round % 4);
        }
    tarn_pool large = tarn_max_pool2d(17, 16, 2); /* 272 taps: four bytes a winner */
    check_vjp_from_saved(&large, TARN_F32, wide, &r, 1);
    check_vjp_from_saved(&large, TARN_BF16, wide, &r, 3);
}

/* gx from any bytes: a winner names a tap; if that tap is real its cell receives the gradient, and
 * nothing happens otherwise. Everything is small and whole, so sums are exact in any order. */
static void expected_from_saved(const tarn_pool *pool, const int64_t size[2], const int64_t out[2],
                                const unsigned char *saved, const double *gy, double *gx)
{
    for (int64_t o = 0; o < out[0] * out[1]; o++) {
        int64_t row = o / out[1] * pool->stride[0] - pool->pad_lo[0];
        int64_t column = o % out[1] * pool->stride[1] - pool->pad_lo[1];
        if (saved[o] >= pool->kernel[0] * pool->kernel[1])
            continue;
        row += saved[o] / pool->kernel[1] * pool->dilation[0];
        column += saved[o] % pool->kernel[1] * pool->dilation[1];
        if (row >= 0 && row < size[0] && column >= 0 && column < size[1])
            gx[row * size[1] + column] += gy[o];
    }
}

static void test_corrupt_saved(void)
{
    const int64_t size[2] = {6, 7};
    rng r = {2024};
    for (int round = 0; round < 8 * ROUNDS; round++) {
        tarn_pool pool = varied_pool(&r, round % 2 ? TARN_MAX : TARN_MIN);
        pool.ties = TARN_TIES_FIRST;
        pool.window = TARN_SLIDING;
        tarn_view x = tarn_view_dense(NULL, TARN_F64, 2, size);
        tarn_options options = options_here();
        tarn_plan *plan;
        if (tarn_plan_create(&plan, &pool, &x, &options, NULL))
            abort();
        tensor gy = tensor_of(plan, TARN_GY), gx = tensor_of(plan, TARN_GX);
        size_t bytes = tarn_plan_saved_bytes(plan);
        unsigned char *saved = malloc(bytes);
        double expected[6 * 7] = {0};
        if (!saved)
            abort();
        fill(&gy.view, &r, random_small);
        for (size_t k = 0; k < bytes; k++) /* one in two within the window, or just outside */
            saved[k] = (unsigned char)(rng_range(&r, 0, 1) ? rng_next(&r) : rng_next(&r) % 18);
        expected_from_saved(&pool, size, gy.view.shape, saved, (double *)(void *)gy.memory,
                            expected);
        CHECK(tarn_vjp(plan, NULL, saved, gy.memory, gx.memory, NULL) == TARN_OK, "vjp");
        for (int k = 0; k < 42; k++)
            CHECK(((double *)(void *)gx.memory)[k] == expected[k], "round %d cell %d: %g, not %g",
                  round, k, ((double *)(void *)gx.memory)[k], expected[k]);
        free(saved);
        tensor_free(&gy);
        tensor_free(&gx);
        tarn_plan_destroy(plan);
    }
}

/* Wide winners and adaptive windows: no bytes may lead outside. Sanitizers and exact memory
 * watch. */
static void test_random_saved(void)
{
    rng r = {31337};
    const int64_t size[2] = {20, 21}, out[2] = {3, 4};
    for (int round = 0; round < ROUNDS; round++) {
        tarn_pool pool = round % 2 ? tarn_adaptive_max_pool(2, out) : tarn_max_pool2d(17, 16, 1);
        tarn_view x = tarn_view_dense(NULL, TARN_F32, 2, size);
        tarn_options options = options_here();
        tarn_plan *plan;
        if (tarn_plan_create(&plan, &pool, &x, &options, NULL))
            abort();
        tensor gy = tensor_of(plan, TARN_GY), gx = tensor_of(plan, TARN_GX);
        size_t bytes = tarn_plan_saved_bytes(plan);
        unsigned char *saved = malloc(bytes);
        if (!saved)
            abort();
        double given = 0, received = 0;
        for (size_t k = 0; k < bytes; k++)
            saved[k] = (unsigned char)(round % 3 ? rng_next(&r) : 0xff);
        for (int64_t k = 0; k < count_of(&gy.view); k++, given++)
            ((float *)(void *)gy.memory)[k] = 1;
        CHECK(tarn_vjp(plan, NULL, saved, gy.memory, gx.memory, NULL) == TARN_OK, "vjp");
        for (int64_t k = 0; k < 420; k++)
            received += (double)((float *)(void *)gx.memory)[k];
        CHECK(received >= 0 && received <= given && (round % 3 || received == 0),
              "round %d: %g of %g arrived", round, received, given);
        free(saved);
        tensor_free(&gy);
        tensor_free(&gx);
        tarn_plan_destroy(plan);
    }
}

int main(void)
{
    const uint32_t masks[] = {TARN_ISA_SPEC, TARN_ISA_ALL};
    for (int k = 0; k < COUNT(masks); k++) {
        isa = masks[k];
        if (!(isa & tarn_isa_available()))
            continue;
        test_global();
        test_constructors();
        test_layouts();
        test_odd_inputs();
        test_ranks();
        test_empty_windows();
        test_padding_never_wins();
        test_padding_is_zeros();
    test_scaled_norms();
        test_min_is_reversed_max();
        test_nan_and_zeros();
        test_unpool();
        test_fold();
        test_executors();
        test_shared_plan();
        test_empty_leading_axis();
        test_vjp_from_saved();
        test_corrupt_saved();
        test_random_saved();
        test_translation();
        test_pad();
        test_transpose();
        test_avg_vjp_counts();
        test_ties();
    }
    /* No kernels take part in these. */
    test_pad_is_adjoint();
    test_unpool_rules();
    test_saved_widths();
    return finish_checks();
}
