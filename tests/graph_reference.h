/* Random graphs, and what they mean: the composition of the specification's operators, written with
 * loops over whole values and nothing of src/graph/. */
#ifndef TARN_GRAPH_REFERENCE_H
#define TARN_GRAPH_REFERENCE_H

#include "fixture.h"
#include "tarn_graph.h"

enum { MOST_NODES = 24, MOST_OPERANDS = 4 };

typedef enum {
    R_INPUT,
    R_CONSTANT,
    R_POOL,
    R_PAD,
    R_UNPAD,
    R_ADD,
    R_SCALE,
    R_CONCAT,
    R_RESHAPE,
    R_PRODUCT,
    R_KINDS
} r_kind;

typedef struct {
    r_kind kind;
    int operands;
    tarn_value x[MOST_OPERANDS];
    tarn_pool pool;
    int spatial, axis;
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL];
    double factor;
    tarn_view view;
    tensor value, tangent, gradient; /* filled by the reference */
    bool has_gradient, varies; /* a value that does not vary has tangent +0, whatever made it */
} r_node;

typedef struct {
    tarn_graph *graph;
    r_node node[MOST_NODES];
    int nodes, inputs, outputs;
    tarn_value input[MOST_NODES], output[MOST_NODES];
    unsigned fixed;       /* inputs, as bits, that we do not differentiate by */
    bool exact;           /* only arithmetic that does not round: f64, small numbers */
    tarn_custom payloads; /* of the product */
} r_graph;

/* ---- A custom node: the product of two values ---------------------------------------------- */

static inline double number_at(const tarn_view *view, int64_t k)
{
    return get_number(view->dtype, (char *)view->data + k * (int64_t)tarn_dtype_size(view->dtype));
}

static inline void set_number_at(const tarn_view *view, int64_t k, double number)
{
    put_number(view->dtype, (char *)view->data + k * (int64_t)tarn_dtype_size(view->dtype), number);
}

static inline tarn_status product_forward(void *context, const tarn_view *x, const tarn_view *y,
                                          tarn_error *error)
{
    (void)context, (void)error;
    for (int64_t k = 0; k < count_of(y); k++) {
        double product = number_at(&x[0], k) * number_at(&x[1], k);
        if (!is_floating_dtype(y->dtype)) /* what every integer type holds */
            product = product > 100 ? 100 : product < 0 ? 0 : product;
        set_number_at(y, k, product);
    }
    return TARN_OK;
}

static inline tarn_status product_jvp(void *context, const tarn_view *x, const tarn_view *dx,
                                      const tarn_view *dy, tarn_error *error)
{
    (void)context, (void)error;
    for (int64_t k = 0; k < count_of(dy); k++) {
        double first = dx[0].data ? number_at(&dx[0], k) * number_at(&x[1], k) : 0;
        double second = dx[1].data ? number_at(&dx[1], k) * number_at(&x[0], k) : 0;
        set_number_at(dy, k, first + second);
    }
    return TARN_OK;
}

static inline tarn_status product_vjp(void *context, const tarn_view *x, const tarn_view *gy,
                                      const tarn_view *gx, tarn_error *error)
{
    (void)context, (void)error;
    for (int operand = 0; operand < 2; operand++)
        for (int64_t k = 0; gx[operand].data && k < count_of(gy); k++)
            set_number_at(&gx[operand], k, number_at(gy, k) * number_at(&x[1 - operand], k));
    return TARN_OK;
}

static inline void shape_custom(tarn_custom *custom, const tarn_view *like)
{
    custom->dtype = like->dtype;
    custom->rank = like->rank;
    memcpy(custom->shape, like->shape, sizeof custom->shape);
}

static inline tarn_custom product_of(const tarn_view *like)
{
    tarn_custom custom = {
        .name = "product", .forward = product_forward, .jvp = product_jvp, .vjp = product_vjp};
    shape_custom(&custom, like);
    return custom;
}

static inline tarn_status resolve_product(void *context, const char *name, int count,
                                          const tarn_view *operands, tarn_custom *custom,
                                          tarn_error *error)
{
    (void)context, (void)error;
    if (strcmp(name, "product") != 0 || count != 2)
        return TARN_UNSUPPORTED;
    *custom = product_of(operands);
    return TARN_OK;
}

/* ---- Random graphs ------------------------------------------------------------------------- */

static inline tarn_pool random_pool(rng *r, bool exact, bool floating, int rank)
{
    int spatial = (int)rng_range(r, 1, rank < 3 ? rank : 3);
    tarn_pool pool = tarn_max_pool(spatial);
    pool.op = (tarn_op)rng_range(r, 0, exact || !floating ? 2 : TARN_LP);
    pool.window = (tarn_window)(rng_range(r, 0, 9) < 7 ? 0 : rng_range(r, 1, 2));
    if (exact && pool.op == TARN_AVG)
        pool.window = TARN_SLIDING;
    for (int a = 0; a < spatial; a++) {
        pool.kernel[a] = rng_range(r, 1, exact && pool.op == TARN_AVG ? 2 : 3);
        pool.stride[a] = rng_range(r, 1, 2);
        pool.pad_lo[a] = rng_range(r, 0, 1);
        pool.pad_hi[a] = rng_range(r, 0, 1);
        pool.dilation[a] = rng_range(r, 1, 4) == 1 ? 2 : 1;
        pool.out[a] = rng_range(r, 1, 3);
    }
    pool.ceil_mode = rng_range(r, 0, 4) == 0 && !exact;
    pool.count_include_pad = exact || rng_range(r, 0, 1);
    pool.beta = 0.5 * (double)rng_range(r, 1, 4);
    pool.power = 0.5 * (double)rng_range(r, 2, 6);
    pool.ties = (tarn_ties)rng_range(r, 0, exact ? 1 : 2);
    pool.flat = rng_range(r, 0, 1);
    return pool;
}

static inline bool same_shape_as(const tarn_view *a, const tarn_view *b, int but_axis)
{
    if (a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (k != but_axis && a->shape[k] != b->shape[k])
            return false;
    return true;
}

/* A value like x, often x itself: fan-out and diamonds. */
static inline tarn_value random_like(const r_graph *g, rng *r, tarn_value x, int but_axis)
{
    tarn_value found = x;
    int seen = 0;
    for (int v = 0; v < g->nodes; v++)
        if (same_shape_as(&g->node[v].view, &g->node[x].view, but_axis) &&
            rng_range(r, 0, seen++) == 0)
            found = v;
    return found;
}

static inline tarn_view random_shape(rng *r, tarn_dtype dtype)
{
    int64_t shape[4] = {rng_range(r, 1, 2), rng_range(r, 1, 3), rng_range(r, 3, 7),
                        rng_range(r, 3, 7)};
    int rank = (int)rng_range(r, 2, 4);
    if (rng_range(r, 0, 30) == 0 && rank > 2)
        shape[4 - rank] = 0; /* an empty batch */
    return tarn_view_dense(NULL, dtype, rank, shape + 4 - rank);
}

static inline tarn_status push_random(r_graph *g, rng *r, tarn_dtype dtype, r_node *n,
                                      tarn_value *made)
{
    tarn_error error;
    tarn_graph *graph = g->graph;
    n->kind = (r_kind)rng_range(r, g->nodes < 2 ? R_INPUT : R_POOL, R_KINDS - 1);
    if (g->nodes < 1 + (int)rng_range(r, 0, 1))
        n->kind = R_INPUT;
    else if (rng_range(r, 0, 19) == 0)
        n->kind = R_CONSTANT;
    else if (rng_range(r, 0, 3) == 0)
        n->kind = R_POOL;
    tarn_value x = g->nodes ? (tarn_value)rng_range(r, 0, g->nodes - 1) : 0;
    const tarn_view *from = &g->node[x].view;
    n->x[0] = x;
    n->operands = 1;
    switch (n->kind) {
    case R_INPUT:
        n->operands = 0;
        n->view = random_shape(r, dtype);
        return tarn_graph_input(graph, dtype, n->view.rank, n->view.shape, made, &error);
    case R_CONSTANT:
        n->operands = 0;
        n->view = *from;
        n->value = tensor_dense(dtype, from->rank, from->shape);
        fill(&n->value.view, r, g->exact ? random_small : random_wide);
        return tarn_graph_constant(graph, &n->value.view, made, &error);
    case R_POOL:
        if (from->rank < 1)
            return TARN_BAD_RANK;
        n->pool = random_pool(r, g->exact, is_floating_dtype(dtype), from->rank);
        return tarn_graph_pool(graph, x, &n->pool, made, &error);
    case R_PAD:
    case R_UNPAD:
        if (from->rank < 1)
            return TARN_BAD_RANK;
        n->spatial = (int)rng_range(r, 1, from->rank < 3 ? from->rank : 3);
        for (int a = 0; a < n->spatial; a++) {
            n->lo[a] = rng_range(r, 0, 1);
            n->hi[a] = rng_range(r, 0, 1);
        }
        return (n->kind == R_PAD ? tarn_graph_pad : tarn_graph_unpad)(graph, x, n->spatial, n->lo,
                                                                      n->hi, made, &error);
    case R_ADD:
        n->operands = 2;
        n->x[1] = random_like(g, r, x, -1);
        return tarn_graph_add(graph, x, n->x[1], made, &error);
    case R_SCALE:
        n->factor = g->exact ? 0.5 : rng_unit(r) * 3 - 1.5;
        return tarn_graph_scale(graph, x, n->factor, made, &error);
    case R_CONCAT:
        if (from->rank < 1)
            return TARN_BAD_RANK;
        n->axis = (int)rng_range(r, 0, from->rank - 1);
        n->operands = (int)rng_range(r, 1, MOST_OPERANDS);
        for (int k = 1; k < n->operands; k++)
            n->x[k] = random_like(g, r, x, n->axis);
        return tarn_graph_concat(graph, n->operands, n->x, n->axis, made, &error);
    case R_RESHAPE:
        if (from->rank < 1)
            return TARN_BAD_RANK;
        return tarn_graph_flatten(graph, x, (int)rng_range(r, 0, from->rank - 1), made, &error);
    default: {
        n->operands = 2;
        n->x[1] = random_like(g, r, x, -1);
        tarn_custom custom = g->payloads;
        shape_custom(&custom, from);
        return tarn_graph_custom(graph, 2, n->x, &custom, made, &error);
    }
    }
}

/* Nodes that are refused are tried again as others; the graph must not notice. */
static inline r_graph random_graph_with(rng *r, tarn_dtype dtype, bool exact,
                                        const tarn_custom *payloads)
{
    r_graph g = {.exact = exact, .payloads = *payloads};
    int wanted = (int)rng_range(r, 2, MOST_NODES - 1);
    tarn_error error;
    if (tarn_graph_create(&g.graph, NULL, &error))
        abort();
    for (int tries = 0; g.nodes < wanted && tries < 500; tries++) {
        r_node n = {.kind = R_INPUT};
        tarn_value made = -7;
        tarn_status status = push_random(&g, r, dtype, &n, &made);
        CHECK(tarn_graph_values(g.graph) == g.nodes + (status == TARN_OK), "refused but pushed");
        if (status) {
            CHECK(made == -7, "a refused node wrote its handle");
            tensor_free(&n.value);
            continue;
        }
        CHECK(made == g.nodes, "handles count from 0");
        CHECK(tarn_graph_view(g.graph, made, &n.view, &error) == TARN_OK, "%s", error.message);
        if (count_of(&n.view) > 4000)
            wanted = g.nodes; /* large enough */
        if (n.kind == R_INPUT)
            g.input[g.inputs++] = made;
        g.node[g.nodes++] = n;
    }
    g.outputs = (int)rng_range(r, 1, 4);
    for (int k = 0; k < g.outputs; k++) {
        g.output[k] = k == 0 ? g.nodes - 1 : (tarn_value)rng_range(r, 0, g.nodes - 1);
        CHECK(tarn_graph_output(g.graph, g.output[k], &error) == TARN_OK, "%s", error.message);
    }
    return g;
}

static inline r_graph random_graph(rng *r, tarn_dtype dtype, bool exact)
{
    tarn_custom payloads = product_of(&(tarn_view){.dtype = dtype});
    return random_graph_with(r, dtype, exact, &payloads);
}

static inline void free_random(r_graph *g)
{
    for (int v = 0; v < g->nodes; v++) {
        tensor_free(&g->node[v].value);
        tensor_free(&g->node[v].tangent);
        tensor_free(&g->node[v].gradient);
    }
    tarn_graph_destroy(g->graph);
}

/* ---- What they mean ------------------------------------------------------------------------ */

/* Sum left to right from +0, rounded once: f64 in double, the rest in float, integers saturate. */
static inline void sum_tensors(tensor *to, const tensor *const *from, int count)
{
    tarn_dtype dtype = to->view.dtype;
    for (int64_t k = 0; k < count_of(&to->view); k++) {
        double wide = 0;
        float narrow = 0;
        for (int j = 0; j < count; j++) {
            wide += number_at(&from[j]->view, k);
            narrow += (float)number_at(&from[j]->view, k);
        }
        if (!is_floating_dtype(dtype)) {
            double low = dtype == TARN_I8 ? -128 : dtype == TARN_U8 ? 0 : -1e15;
            double high = dtype == TARN_I8 ? 127 : dtype == TARN_U8 ? 255 : 1e15;
            wide = wide < low ? low : wide > high ? high : wide;
            set_number_at(&to->view, k, wide);
        } else {
            set_number_at(&to->view, k, dtype == TARN_F64 ? wide : (double)narrow);
        }
    }
}

static inline void scale_tensor(const tensor *x, tensor *y, double factor)
{
    for (int64_t k = 0; k < count_of(&y->view); k++)
        set_number_at(&y->view, k, factor * number_at(&x->view, k));
}

/* Copies operand `x` into (or out of) its slice of `y` along an axis. */
static inline void copy_slice(const tarn_view *x, const tarn_view *y, int axis, int64_t start,
                              bool into)
{
    tarn_view slice = *y;
    slice.shape[axis] = x->shape[axis];
    slice.data = (char *)y->data + start * y->strides[axis] * (int64_t)tarn_dtype_size(y->dtype);
    copy_view(into ? x : &slice, into ? &slice : x);
}

static inline tarn_plan *spec_plan(const r_node *n, const tarn_view *x)
{
    tarn_options options = tarn_options_default();
    tarn_plan *plan;
    tarn_error error;
    options.isa = TARN_ISA_SPEC;
    if (tarn_plan_create(&plan, &n->pool, x, &options, &error))
        abort();
    return plan;
}

/* The linear nodes, on values or tangents. */
static inline void reference_linear(r_graph *g, r_node *n, tensor *y, size_t which)
{
#define OPERAND(k) ((tensor *)(void *)((char *)&g->node[n->x[k]] + which))
    tarn_error error;
    const tensor *both[2];
    int64_t start = 0;
    switch (n->kind) {
    case R_PAD:
        if (tarn_pad(&OPERAND(0)->view, n->spatial, n->lo, n->hi, &y->view, &error))
            abort();
        return;
    case R_UNPAD:
        if (tarn_unpad(&OPERAND(0)->view, n->spatial, n->lo, n->hi, &y->view, &error))
            abort();
        return;
    case R_ADD:
        both[0] = OPERAND(0), both[1] = OPERAND(1);
        sum_tensors(y, both, 2);
        return;
    case R_SCALE:
        scale_tensor(OPERAND(0), y, n->factor);
        return;
    case R_CONCAT:
        for (int k = 0; k < n->operands; k++) {
            copy_slice(&OPERAND(k)->view, &y->view, n->axis, start, true);
            start += OPERAND(k)->view.shape[n->axis];
        }
        return;
    default:
        memcpy(y->memory, OPERAND(0)->memory, y->bytes);
    }
#undef OPERAND
}

static inline void reference_forward(r_graph *g)
{
    tarn_error error;
    for (int v = 0; v < g->nodes; v++) {
        r_node *n = &g->node[v];
        if (n->kind == R_INPUT || n->kind == R_CONSTANT)
            continue;
        n->value = tensor_like(&n->view);
        const tarn_view x[2] = {g->node[n->x[0]].value.view, g->node[n->x[1]].value.view};
        if (n->kind == R_POOL) {
            tarn_plan *plan = spec_plan(n, &x[0]);
            CHECK(!tarn_forward(plan, x[0].data, n->value.memory, NULL, &error), "%s",
                  error.message);
            tarn_plan_destroy(plan);
        } else if (n->kind == R_PRODUCT) {
            product_forward(NULL, x, &n->value.view, &error);
        } else {
            reference_linear(g, n, &n->value, offsetof(r_node, value));
        }
    }
}

static inline void reference_jvp(r_graph *g)
{
    tarn_error error;
    for (int k = 0; k < g->inputs; k++)
        if (g->fixed >> k & 1)
            memset(g->node[g->input[k]].tangent.memory, 0, g->node[g->input[k]].tangent.bytes);
    int inputs = 0;
    for (int v = 0; v < g->nodes; v++) {
        r_node *n = &g->node[v];
        n->varies = n->kind == R_INPUT && !(g->fixed >> inputs & 1);
        inputs += n->kind == R_INPUT;
        if (n->kind == R_INPUT)
            continue;
        for (int k = 0; k < n->operands; k++)
            n->varies |= g->node[n->x[k]].varies;
        tensor_free(&n->tangent);
        n->tangent = tensor_like(&n->view);
        const tarn_view x[2] = {g->node[n->x[0]].value.view, g->node[n->x[1]].value.view};
        tarn_view dx[2] = {g->node[n->x[0]].tangent.view, g->node[n->x[1]].tangent.view};
        if (!n->varies) {
            memset(n->tangent.memory, 0, n->tangent.bytes);
        } else if (n->kind == R_POOL) {
            tarn_plan *plan = spec_plan(n, &x[0]);
            CHECK(!tarn_jvp(plan, x[0].data, dx[0].data, NULL, n->tangent.memory, &error), "%s",
                  error.message);
            tarn_plan_destroy(plan);
        } else if (n->kind == R_PRODUCT) {
            for (int k = 0; k < 2; k++)
                if (!g->node[n->x[k]].varies)
                    dx[k].data = NULL;
            product_jvp(NULL, x, dx, &n->tangent.view, &error);
        } else {
            reference_linear(g, n, &n->tangent, offsetof(r_node, tangent));
        }
    }
}

/* The contribution of node n to the gradient of its operand k. */
static inline tensor reference_vjp_of(r_graph *g, const r_node *n, int k)
{
    const r_node *x = &g->node[n->x[k]];
    tensor gx = tensor_like(&x->view);
    tarn_error error;
    const tensor *gy = &n->gradient;
    if (n->kind == R_POOL) {
        tarn_plan *plan = spec_plan(n, &x->view);
        CHECK(!tarn_vjp(plan, x->value.memory, NULL, gy->memory, gx.memory, &error), "%s",
              error.message);
        tarn_plan_destroy(plan);
    } else if (n->kind == R_PAD) {
        if (tarn_unpad(&gy->view, n->spatial, n->lo, n->hi, &gx.view, &error))
            abort();
    } else if (n->kind == R_UNPAD) {
        if (tarn_pad(&gy->view, n->spatial, n->lo, n->hi, &gx.view, &error))
            abort();
    } else if (n->kind == R_SCALE) {
        scale_tensor(gy, &gx, n->factor);
    } else if (n->kind == R_CONCAT) {
        int64_t start = 0;
        for (int j = 0; j < k; j++)
            start += g->node[n->x[j]].view.shape[n->axis];
        copy_slice(&gx.view, &gy->view, n->axis, start, false);
    } else if (n->kind == R_PRODUCT) {
        const tarn_view values[2] = {g->node[n->x[0]].value.view, g->node[n->x[1]].value.view};
        tarn_view wanted[2] = {gx.view, gx.view};
        wanted[1 - k].data = NULL;
        product_vjp(NULL, values, &gy->view, wanted, &error);
    } else {
        memcpy(gx.memory, gy->memory, gx.bytes);
    }
    return gx;
}

/* The gradient of v from the documented list: outputs in order, then uses from the last node to the
 * first. One contribution is taken as it is. */
static inline void reference_gradient(r_graph *g, int v, const tensor *cotangents)
{
    tensor made[MOST_NODES * MOST_OPERANDS];
    const tensor *terms[MOST_NODES * MOST_OPERANDS + MOST_NODES];
    int count = 0, makes = 0;
    for (int k = 0; k < g->outputs; k++)
        if (g->output[k] == v)
            terms[count++] = &cotangents[k];
    for (int user = g->nodes - 1; user > v; user--)
        for (int k = 0; k < g->node[user].operands; k++)
            if (g->node[user].x[k] == v && g->node[user].has_gradient) {
                made[makes] = reference_vjp_of(g, &g->node[user], k);
                terms[count++] = &made[makes++];
            }
    r_node *n = &g->node[v];
    n->has_gradient = count > 0;
    n->gradient = tensor_like(&n->view);
    if (count == 0)
        memset(n->gradient.memory, 0, n->gradient.bytes);
    else if (count == 1)
        memcpy(n->gradient.memory, terms[0]->memory, n->gradient.bytes);
    else
        sum_tensors(&n->gradient, terms, count);
    for (int k = 0; k < makes; k++)
        tensor_free(&made[k]);
}

static inline void reference_vjp(r_graph *g, const tensor *cotangents)
{
    for (int v = g->nodes - 1; v >= 0; v--)
        reference_gradient(g, v, cotangents);
}

#endif
