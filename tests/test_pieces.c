/* Random problems, and random boxes of what each of their passes writes: a piece has the bits of
 * the whole [P1-P4]. usage: test_pieces [boxes [seed]] */
#include "fixture.h"
#include "window.h"

#include <math.h>

static rng state = {1};

static int64_t any(int64_t low, int64_t high)
{
    return rng_range(&state, low, high);
}

/* ---- Problems ------------------------------------------------------------------------------- */

typedef struct {
    tarn_pool pool;
    tarn_view x, y;
} problem;

static const char *describe(const tarn_pool *pool, const tarn_view *x)
{
    static char text[600];
    return tarn_problem_format(pool, x, text, sizeof text) < 0 ? "?" : text;
}

/* Few numbers, so that many tie; in floating types also NaNs with a payload, infinities and zeros
 * of both signs. */
static double random_any(rng *r, tarn_dtype dtype)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    if (is_floating_dtype(dtype) && rng_next(r) % 24 == 0)
        return special[rng_next(r) % 5];
    return rng_next(r) % 2 ? random_small(r, dtype) : random_wide(r, dtype);
}

static void random_axis(tarn_pool *pool, int a, int64_t size)
{
    do {
        pool->kernel[a] = any(1, any(0, 3) ? 5 : size + 4);
        pool->stride[a] = any(1, any(0, 2) ? 3 : 9);
        pool->dilation[a] = any(0, 2) ? 1 : any(2, 4);
        pool->pad_lo[a] = any(0, 1) ? 0 : any(0, any(0, 3) ? 3 : 20); /* beyond the window, too */
        pool->pad_hi[a] = any(0, 1) ? 0 : any(0, any(0, 3) ? 3 : 20);
    } while (size + pool->pad_lo[a] + pool->pad_hi[a] <
             pool->dilation[a] * (pool->kernel[a] - 1) + 1);
    pool->out[a] = any(1, any(0, 2) ? size : size + 5);
}

static problem random_problem(void)
{
    int64_t shape[TARN_MAX_RANK];
    int spatial = (int)any(1, 3), leading = (int)any(0, 2);
    tarn_pool pool = tarn_max_pool(spatial);
    pool.op = (tarn_op)any(0, TARN_MODE);
    pool.window = (tarn_window)(any(0, 5) < 4 ? any(0, 1) : TARN_GLOBAL);
    for (int a = 0; a < leading + spatial; a++)
        shape[a] = any(1, a < leading ? 4 : spatial == 1 ? 60 : spatial == 2 ? 16 : 7);
    for (int a = 0; a < spatial; a++)
        random_axis(&pool, a, shape[leading + a]);
    pool.ceil_mode = (int)any(0, 1);
    pool.count_include_pad = (int)any(0, 1);
    pool.divisor = any(0, 3) ? 0 : any(1, 9);
    pool.beta = any(0, 1) ? 1.5 : -40;
    pool.power = any(0, 1) ? 2 : 3.5;
    pool.ties = (tarn_ties)any(0, 2);
    pool.flat = (int)any(0, 1);
    bool floating = pool.op == TARN_SMOOTH || pool.op == TARN_LP || any(0, 2);
    if (pool.op != TARN_SMOOTH && pool.op != TARN_LP && any(0, 3) == 0)
        pool.skip = TARN_SKIP_INTEGER, pool.skip_integer = any(0, 2), pool.min_count = any(0, 3);
    floating &= pool.op != TARN_MODE;
    tarn_dtype dtype = (tarn_dtype)(floating ? any(TARN_F64, TARN_BF16) : any(TARN_I8, TARN_U64));
    problem p = {.pool = pool, .x = tarn_view_dense(NULL, dtype, leading + spatial, shape)};
    CHECK(!tarn_output_view(&p.pool, &p.x, &p.y, NULL), "%s", describe(&p.pool, &p.x));
    return p;
}

/* ---- One run -------------------------------------------------------------------------------- */

/* The tensors of a run, all dense; saved winners are bytes in an axis of their own. */
typedef struct {
    tensor x, dx, gy, y, dy, gx, indices, saved;
} tensors;

static tensor like(const tarn_view *view, tarn_dtype dtype)
{
    return tensor_dense(dtype, view->rank, view->shape);
}

static tensor saved_like(const tarn_view *y, int64_t bytes)
{
    tarn_view view = *y;
    view.shape[view.rank++] = bytes;
    return like(&view, TARN_U8);
}

static tensors make_tensors(const tarn_view *x, const tarn_view *y, int64_t winner_bytes)
{
    return (tensors){.x = like(x, x->dtype),
                     .dx = like(x, x->dtype),
                     .gx = like(x, x->dtype),
                     .y = like(y, x->dtype),
                     .dy = like(y, x->dtype),
                     .gy = like(y, x->dtype),
                     .indices = like(y, TARN_I64),
                     .saved = saved_like(y, winner_bytes)};
}

static void free_tensors(tensors *t)
{
    tensor *all[] = {&t->x, &t->dx, &t->gx, &t->y, &t->dy, &t->gy, &t->indices, &t->saved};
    for (int k = 0; k < 8; k++)
        tensor_free(all[k]);
}

static void *data_of(const tensor *t)
{
    return t->view.data;
}

static tarn_status run_pass(const tarn_plan *plan, tarn_pass pass, bool avg, tensors *t)
{
    const void *x = avg && pass >= TARN_JVP ? NULL : data_of(&t->x);
    switch (pass) {
    case TARN_FORWARD:
        return tarn_forward(plan, x, data_of(&t->y), NULL, NULL);
    case TARN_FORWARD_SAVED:
        return tarn_forward(plan, x, data_of(&t->y), data_of(&t->saved), NULL);
    case TARN_FORWARD_INDICES:
        return tarn_forward_indices(plan, x, data_of(&t->y), data_of(&t->indices), NULL);
    case TARN_JVP:
        return tarn_jvp(plan, x, data_of(&t->dx), NULL, data_of(&t->dy), NULL);
    case TARN_VJP:
        return tarn_vjp(plan, x, NULL, data_of(&t->gy), data_of(&t->gx), NULL);
    default:
        return tarn_vjp(plan, NULL, data_of(&t->saved), data_of(&t->gy), data_of(&t->gx), NULL);
    }
}

/* ---- Whole and piece ------------------------------------------------------------------------ */

static tarn_view crop(const tarn_view *view, const tarn_box *box, int axes)
{
    tarn_view part = *view;
    int64_t offset = 0;
    for (int a = 0; a < axes; a++) {
        offset += box->lo[a] * view->strides[a];
        part.shape[a] = box->hi[a] - box->lo[a];
    }
    part.data = (char *)view->data + offset * (int64_t)tarn_dtype_size(view->dtype);
    return part;
}

static void copy_crop(const tensor *whole, const tarn_box *box, int axes, tensor *piece)
{
    tarn_view from = crop(&whole->view, box, axes);
    copy_view(&from, &piece->view);
}

static tarn_box random_box(const tarn_view *written)
{
    tarn_box box = {{0}, {0}};
    for (int a = 0; a < written->rank; a++) {
        box.lo[a] = any(0, written->shape[a] - 1);
        box.hi[a] = any(0, 3) ? any(box.lo[a] + 1, written->shape[a]) : box.lo[a] + 1;
    }
    return box;
}

/* Whether what is kept of the piece is that box of the whole. */
static bool is_kept(const tensor *whole, const tensor *piece, const tarn_box *kept,
                    const tarn_box *computed, int axes)
{
    tarn_box inside = {{0}, {0}};
    for (int a = 0; a < axes; a++) {
        inside.lo[a] = kept->lo[a] - computed->lo[a];
        inside.hi[a] = kept->hi[a] - computed->lo[a];
        if (inside.lo[a] < 0 || kept->hi[a] > computed->hi[a])
            return false;
    }
    tarn_view expected = crop(&whole->view, kept, axes);
    tarn_view found = crop(&piece->view, &inside, axes);
    return same_elements(&expected, &found);
}

static void compare(const problem *p, tarn_pass pass, tensors *whole, int64_t winner_bytes)
{
    bool backward = pass >= TARN_VJP, avg = p->pool.op == TARN_AVG && !p->pool.skip;
    tarn_box box = random_box(backward ? &p->x : &p->y), cells, windows;
    tarn_pool pool;
    tarn_error error = {TARN_OK, -1, ""};
    tarn_plan *plan = NULL;
    CHECK(!tarn_piece(&p->pool, &p->x, pass, &box, &pool, &cells, &windows, &error), "%s of %s",
          error.message, describe(&p->pool, &p->x));
    tarn_view x = crop(&p->x, &cells, p->x.rank), y = crop(&p->y, &windows, p->y.rank);
    x = tarn_view_dense(NULL, x.dtype, x.rank, x.shape);
    tensors part = make_tensors(&x, &y, winner_bytes);
    copy_crop(&whole->x, &cells, x.rank, &part.x);
    copy_crop(&whole->dx, &cells, x.rank, &part.dx);
    copy_crop(&whole->gy, &windows, y.rank, &part.gy);
    if (pass == TARN_VJP_SAVED)
        copy_crop(&whole->saved, &windows, y.rank, &part.saved);
    CHECK(!tarn_plan_create(&plan, &pool, &x, NULL, &error), "%s: %s", error.message,
          describe(&pool, &x));
    if (plan) {
        CHECK(!run_pass(plan, pass, avg, &part), "%s", describe(&pool, &x));
        const tarn_box *computed = backward ? &cells : &windows;
        int axes = backward ? x.rank : y.rank;
        bool same = backward           ? is_kept(&whole->gx, &part.gx, &box, computed, axes)
                    : pass == TARN_JVP ? is_kept(&whole->dy, &part.dy, &box, computed, axes)
                                       : is_kept(&whole->y, &part.y, &box, computed, axes);
        if (pass == TARN_FORWARD_INDICES)
            same &= is_kept(&whole->indices, &part.indices, &box, computed, axes);
        if (pass == TARN_FORWARD_SAVED)
            same &= is_kept(&whole->saved, &part.saved, &box, computed, axes);
        CHECK(same, "pass %d of %s", (int)pass, describe(&p->pool, &p->x));
    }
    tarn_plan_destroy(plan);
    free_tensors(&part);
}

/* Every pass of a random problem, a box each; returns how many. */
static long compare_passes(void)
{
    problem p = random_problem();
    bool extreme = p.pool.op <= TARN_MIN, first = extreme && p.pool.ties == TARN_TIES_FIRST;
    bool exists[TARN_PASSES] = {true,
                                first,
                                extreme,
                                is_floating_dtype(p.x.dtype),
                                is_floating_dtype(p.x.dtype),
                                first && is_floating_dtype(p.x.dtype)};
    tarn_plan *plan = NULL;
    long boxes = 0;
    CHECK(!tarn_plan_create(&plan, &p.pool, &p.x, NULL, NULL), "%s", describe(&p.pool, &p.x));
    int64_t winner_bytes = (int64_t)tarn_plan_saved_bytes(plan) / count_of(&p.y);
    tensors whole = make_tensors(&p.x, &p.y, winner_bytes);
    fill(&whole.x.view, &state, random_any);
    fill(&whole.dx.view, &state, random_wide);
    fill(&whole.gy.view, &state, random_wide);
    for (int pass = 0; pass < TARN_PASSES; pass++) {
        if (!exists[pass])
            continue;
        CHECK(!run_pass(plan, (tarn_pass)pass, p.pool.op == TARN_AVG && !p.pool.skip, &whole), "%s",
              describe(&p.pool, &p.x));
        compare(&p, (tarn_pass)pass, &whole, winner_bytes);
        boxes++;
    }
    tarn_plan_destroy(plan);
    free_tensors(&whole);
    return boxes;
}

/* ---- Partial sums [P4] ---------------------------------------------------------------------- */

enum { MOST_TERMS = 200 };

static tarn_dtype sum_type(tarn_dtype dtype)
{
    return dtype == TARN_F64 ? TARN_F64 : is_floating_dtype(dtype) ? TARN_F32 : TARN_I64;
}

/* The sum over rows (axis 0) or columns of a dense array of sums: an average whose divisor is 1. */
static tensor sum_of(const tarn_view *x, int axis, int64_t divisor)
{
    tarn_pool pool = tarn_avg_pool(2);
    pool.kernel[axis] = pool.stride[axis] = x->shape[axis];
    pool.divisor = divisor;
    tarn_view y;
    CHECK(!tarn_output_view(&pool, x, &y, NULL), "sum");
    tensor sum = tensor_dense(y.dtype, y.rank, y.shape);
    CHECK(!tarn_pool_forward(&pool, x, &sum.view, NULL), "sum");
    return sum;
}

static tarn_view part_of(const tarn_view *x, int axis, int64_t lo, int64_t hi)
{
    tarn_box box = {{0}, {x->shape[0], x->shape[1]}};
    box.lo[axis] = lo;
    box.hi[axis] = hi;
    return crop(x, &box, 2);
}

typedef struct {
    tensor sum[MOST_TERMS];
    int64_t end[MOST_TERMS];
    int next;
} node_list;

/* Adds the nodes of [first,first+n) in the order of the tree. */
static tensor add_nodes(node_list *nodes, int axis, int64_t first, int64_t n)
{
    if (nodes->end[nodes->next] == first + n)
        return nodes->sum[nodes->next++];
    int64_t half = split_point(n), shape[2];
    tensor left = add_nodes(nodes, axis, first, half);
    tensor right = add_nodes(nodes, axis, first + half, n - half);
    memcpy(shape, left.view.shape, sizeof shape);
    shape[axis] = 2;
    tensor both = tensor_dense(left.view.dtype, 2, shape);
    tarn_view place = part_of(&both.view, axis, 0, 1);
    copy_view(&left.view, &place);
    place = part_of(&both.view, axis, 1, 2);
    copy_view(&right.view, &place);
    tensor sum = sum_of(&both.view, axis, 1);
    tensor_free(&left);
    tensor_free(&right);
    tensor_free(&both);
    return sum;
}

/* An axis summed in chunks of any sizes. */
static tensor sum_in_chunks(const tarn_view *x, int axis)
{
    static node_list nodes;
    int64_t n = x->shape[axis], ends[TARN_MAX_NODES], depth = 0;
    int count = 0;
    while (INT64_C(1) << depth < n)
        depth++;
    for (int64_t lo = 0, hi; lo < n; lo = hi) {
        hi = any(0, 2) ? any(lo + 1, n) : lo + 1;
        int found = tarn_nodes(n, lo, hi, ends);
        CHECK(found >= 1 && found <= (depth > 0 ? 2 * depth : 1) && ends[found - 1] == hi,
              "%d nodes", found);
        for (int k = 0; k < found; k++) {
            tarn_view node = part_of(x, axis, k ? ends[k - 1] : lo, ends[k]);
            nodes.sum[count] = sum_of(&node, axis, 1);
            nodes.end[count++] = ends[k];
        }
    }
    nodes.next = 0;
    return add_nodes(&nodes, axis, 0, n);
}

static void convert(const tarn_view *from, const tarn_view *to)
{
    int64_t at[TARN_MAX_RANK] = {0};
    do
        put_number(to->dtype, element_at(to, at), get_number(from->dtype, element_at(from, at)));
    while (step_index(from, at));
}

static void compare_partial_sums(void)
{
    int64_t shape[2] = {any(1, MOST_TERMS / 2), any(1, 12)};
    tarn_dtype dtype = (tarn_dtype)any(0, TARN_DTYPES - 1);
    tarn_pool pool = tarn_global_avg_pool(2, 0);
    tensor x = tensor_dense(dtype, 2, shape), y = tensor_dense(dtype, 2, (int64_t[]){1, 1});
    tensor terms = tensor_dense(sum_type(dtype), 2, shape),
           mean = tensor_dense(dtype, 2, (int64_t[]){1, 1});
    fill(&x.view, &state, random_wide);
    CHECK(!tarn_pool_forward(&pool, &x.view, &y.view, NULL), "whole");
    convert(&x.view, &terms.view);
    tensor columns = sum_in_chunks(&terms.view, 0), sum = sum_in_chunks(&columns.view, 1);
    tensor quotient = sum_of(&sum.view, 1, shape[0] * shape[1]);
    convert(&quotient.view, &mean.view);
    CHECK(same_elements(&y.view, &mean.view), "%s mean of %lldx%lld in chunks",
          tarn_dtype_name(dtype), (long long)shape[0], (long long)shape[1]);
    tensor *all[] = {&x, &y, &terms, &mean, &columns, &sum, &quotient};
    for (int k = 0; k < 7; k++)
        tensor_free(all[k]);
}

/* ---- Errors --------------------------------------------------------------------------------- */

#define PIECE(written)                                                                             \
    tarn_piece(&pool, &x, TARN_FORWARD, written, &piece, &cells, &windows, &error)

/* The axis of an error is a spatial one, or none. */
static void check_leading_boxes(void)
{
    tarn_pool pool = tarn_max_pool2d(3, 3, 1), piece;
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 4, (int64_t[]){2, 3, 9, 9});
    tarn_box box = {{0, 0, 0, 0}, {2, 3, 7, 8}}, cells, windows;
    tarn_error error;
    CHECK(PIECE(&box) == TARN_BAD_SHAPE && error.axis == 1, "%s", error.message);
    box.hi[3] = 7, box.hi[2] = 8;
    CHECK(PIECE(&box) == TARN_BAD_SHAPE && error.axis == 0, "%s", error.message);
    box.hi[2] = 7, box.hi[1] = 4;
    CHECK(PIECE(&box) == TARN_BAD_SHAPE && error.axis == -1, "%s", error.message);
    box.hi[1] = 0; /* no channel is no error */
    CHECK(!PIECE(&box), "%s", error.message);
}

/* A piece has the windows that read its cells, and the cells that they read, and no others. */
static void check_windows(void)
{
    static const struct {
        const char *problem;
        int64_t cell, windows[2], cells[2];
    } cases[] = {
        {"max k3s1 f32 12", 5, {3, 6}, {3, 8}},
        {"max k3s1p1 f32 12", 5, {4, 7}, {3, 8}},
        {"max k2s4p1 f32 16", 11, {3, 4}, {11, 13}},
        {"avg k3s1p1 f32 12", 5, {4, 7}, {5, 6}},
        {"avg k3s1p1 nopad f32 12", 5, {4, 7}, {3, 8}},
        {"avg k3s1p1 nopad div=3 f32 12", 5, {4, 7}, {5, 6}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tarn_pool pool, piece;
        tarn_view x;
        tarn_box box = {{cases[k].cell}, {cases[k].cell + 1}}, cells, windows;
        tarn_error error;
        CHECK(!tarn_problem_parse(cases[k].problem, &pool, &x, &error), "%s", error.message);
        CHECK(!tarn_piece(&pool, &x, TARN_VJP, &box, &piece, &cells, &windows, &error), "%s",
              error.message);
        CHECK(windows.lo[0] == cases[k].windows[0] && windows.hi[0] == cases[k].windows[1] &&
                  cells.lo[0] == cases[k].cells[0] && cells.hi[0] == cases[k].cells[1],
              "%s: windows %lld to %lld, cells %lld to %lld", cases[k].problem,
              (long long)windows.lo[0], (long long)windows.hi[0], (long long)cells.lo[0],
              (long long)cells.hi[0]);
    }
}

static void check_errors(void)
{
    tarn_pool pool = tarn_avg_pool2d(3, 3, 2), piece;
    tarn_view x = tarn_view_dense(NULL, TARN_F32, 2, (int64_t[]){9, 9});
    tarn_box box = {{1, 1}, {3, 3}}, cells, windows;
    tarn_error error;
    CHECK(!PIECE(&box) && cells.lo[0] == 2 && cells.hi[0] == 7 && piece.whole[0] == 9 &&
              piece.origin[0] == 2 && piece.first[0] == 1 && piece.count[0] == 2,
          "%s", error.message);
    CHECK(PIECE(NULL) == TARN_BAD_ARGUMENT, "no box");
    CHECK(tarn_piece(&pool, &x, TARN_FORWARD, &box, NULL, &cells, &windows, &error) ==
                  TARN_BAD_ARGUMENT &&
              strcmp(error.message, "piece is NULL") == 0,
          "%s", error.message);
    CHECK(tarn_piece(&pool, &x, TARN_FORWARD, &box, &piece, NULL, &windows, &error) ==
                  TARN_BAD_ARGUMENT &&
              strcmp(error.message, "x_box is NULL") == 0,
          "%s", error.message);
    CHECK(tarn_piece(&pool, &x, TARN_FORWARD, &box, &piece, &cells, NULL, &error) ==
                  TARN_BAD_ARGUMENT &&
              strcmp(error.message, "y_box is NULL") == 0,
          "%s", error.message);
    CHECK(tarn_piece(NULL, &x, TARN_FORWARD, &box, &piece, &cells, &windows, &error) ==
              TARN_BAD_ARGUMENT,
          "no pool");
    CHECK(tarn_piece(&pool, NULL, TARN_FORWARD, &box, &piece, &cells, &windows, &error) ==
              TARN_BAD_ARGUMENT,
          "no x");
    CHECK(tarn_piece(&pool, &x, TARN_FORWARD_SAVED, &box, &piece, &cells, &windows, &error) ==
              TARN_UNSUPPORTED,
          "winners of an average");
    CHECK(tarn_piece(&pool, &x, TARN_FORWARD_INDICES, &box, &piece, &cells, &windows, &error) ==
                  TARN_UNSUPPORTED &&
              strncmp(error.message, "indices: ", 9) == 0,
          "%s", error.message);
    tarn_view integers = tarn_view_dense(NULL, TARN_I32, 2, (int64_t[]){9, 9});
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (pass == TARN_JVP || pass == TARN_VJP)
            CHECK(tarn_piece(&pool, &integers, (tarn_pass)pass, &box, &piece, &cells, &windows,
                             &error) == TARN_BAD_DTYPE,
                  "derivatives of integers");
    CHECK(tarn_piece(&pool, &x, (tarn_pass)-1, &box, &piece, &cells, &windows, &error) ==
              TARN_BAD_ARGUMENT,
          "no pass");
    CHECK(tarn_piece(&pool, &x, TARN_PASSES, &box, &piece, &cells, &windows, &error) ==
              TARN_BAD_ARGUMENT,
          "no pass");
    tarn_pool many = pool;
    many.spatial = 99;
    CHECK(tarn_piece(&many, &x, TARN_FORWARD, &box, &piece, &cells, &windows, &error) ==
              TARN_BAD_RANK,
          "%s", error.message);
    box.hi[1] = 5;
    CHECK(PIECE(&box) == TARN_BAD_SHAPE && error.axis == 1, "a box outside");
    box.hi[1] = 1;
    CHECK(PIECE(&box) == TARN_BAD_SHAPE, "an empty box");
    box.lo[1] = 2; /* and one that ends before it begins, and one that begins before the axis */
    CHECK(PIECE(&box) == TARN_BAD_SHAPE && error.axis == 1, "%s", error.message);
    box.lo[1] = -1;
    CHECK(PIECE(&box) == TARN_BAD_SHAPE && error.axis == 1, "%s", error.message);
    check_leading_boxes();
    box.lo[1] = 1, box.hi[1] = 3;
    CHECK(!PIECE(&box), "%s", error.message);
    pool = piece;
    CHECK(PIECE(&box) == TARN_BAD_ARGUMENT && error.axis == 0, "a piece of a piece");
    tarn_view part = tarn_view_dense(NULL, TARN_F32, 2, (int64_t[]){5, 5}), y;
    CHECK(!tarn_output_view(&pool, &part, &y, &error) && y.shape[0] == 2, "%s", error.message);
    pool.origin[1] = 1; /* windows begin behind it */
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW && error.axis == 1, "%s",
          error.message);
    pool.origin[1] = 5; /* ends beyond the axis */
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW, "%s", error.message);
    pool = piece;
    pool.count[0] = 4;
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW && error.axis == 0, "%s",
          error.message);
    pool.count[0] = 1; /* windows from before the first, none of them, more than there are */
    pool.first[0] = -1;
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW && error.axis == 0, "%s",
          error.message);
    pool.first[0] = 0, pool.count[0] = 0;
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW && error.axis == 0, "%s",
          error.message);
    pool.count[0] = 5;
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW && error.axis == 0, "%s",
          error.message);
    pool = piece;
    pool.whole[0] = -9;
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW, "%s", error.message);
    pool = tarn_adaptive_avg_pool(1, (int64_t[]){4});
    pool.whole[0] = 10, pool.first[0] = 1, pool.count[0] = 2, pool.origin[0] = 2;
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW, "%s", error.message);
    part = tarn_view_dense(NULL, TARN_F32, 1, (int64_t[]){6});
    CHECK(!tarn_output_view(&pool, &part, &y, &error) && y.shape[0] == 2, "%s", error.message);
    pool.origin[0] = 1; /* the cells that windows end at, but not where they begin */
    CHECK(tarn_output_view(&pool, &part, &y, &error) == TARN_BAD_WINDOW &&
              strncmp(error.message, "windows 1 to 2 of axis 0 read 6 cells from 2 on;", 48) == 0,
          "%s", error.message);
    /* The whole has more cells than 63 bits count; x and the windows are few. */
    pool = tarn_max_pool2d(1, 1, INT64_C(1) << 40);
    for (int a = 0; a < 2; a++)
        pool.whole[a] = INT64_C(1) << 40, pool.count[a] = 1;
    CHECK(tarn_output_view(&pool, &x, &y, &error) == TARN_OVERFLOW && error.axis == 1, "%s",
          error.message);
    int64_t ends[TARN_MAX_NODES];
    CHECK(tarn_nodes(0, 0, 1, ends) == 0 && tarn_nodes(8, 0, 8, NULL) == 0, "no list");
    CHECK(tarn_nodes(8, -1, 8, ends) == 0 && tarn_nodes(8, 0, 9, ends) == 0 &&
              tarn_nodes(8, 4, 4, ends) == 0,
          "no part of the list");
    CHECK(tarn_nodes(INT64_MAX, 1, INT64_MAX - 1, (int64_t[TARN_MAX_NODES]){0}) <= 126,
          "a long list");
}

int main(int argc, char **argv)
{
    long wanted = argc > 1 ? atol(argv[1]) : 6000, boxes = 0;
    state.state = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
    check_errors();
    check_windows();
    for (int n = 0; n < wanted / 10 + 1; n++)
        compare_partial_sums();
    while (boxes < wanted)
        boxes += compare_passes();
    printf("%ld boxes\n", boxes);
    return finish_checks();
}
