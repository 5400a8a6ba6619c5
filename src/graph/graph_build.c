/* Building: every node is checked, then pushed; a refused one leaves the graph as it was. */
#include "graph.h"

#include "../error.h"
#include "../float_state.h"
#include "../layout.h"
#include "../plan.h"
#include "../shape.h"

#include <stdio.h>

/* ---- Pushing ------------------------------------------------------------------------------- */

/* A node that is being checked. */
typedef struct {
    tarn_node node;
    const tarn_value *operands;
    const void *payload;
    size_t payload_bytes;
} draft;

static tarn_status set_dense(draft *d, tarn_dtype dtype, int rank, const int64_t *shape,
                             tarn_error *error)
{
    tarn_extent extent;
    if (rank < 0 || rank > TARN_MAX_RANK) /* before the shape is looked at */
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "value has rank %d, not in 0..%d", rank,
                         TARN_MAX_RANK);
    d->node.view = tarn_view_dense(NULL, dtype, rank, shape);
    tarn_status status = tarn_check_view("value", &d->node.view, &extent, error);
    d->node.bytes = status ? 0 : extent.hi;
    return status;
}

/* ... of a shape that was checked. */
static void set_dense_like(draft *d, const tarn_view *like)
{
    d->node.view = tarn_view_dense(NULL, like->dtype, like->rank, like->shape);
    d->node.bytes = (int64_t)tarn_view_bytes(&d->node.view);
}

static bool make_room(tarn_graph *graph, const draft *d)
{
    return tarn_list_reserve(&graph->nodes, 1, sizeof(tarn_node), &graph->allocator) &&
           tarn_list_reserve(&graph->operands, d->node.operands, sizeof(tarn_value),
                             &graph->allocator) &&
           tarn_list_reserve(&graph->inputs, 1, sizeof(tarn_value), &graph->allocator) &&
           tarn_reserve_names(graph);
}

/* The payload of a constant is gathered later: it has bytes, but none to copy. */
static bool copy_payload(const tarn_graph *graph, draft *d)
{
    if (d->payload_bytes == 0)
        return true;
    d->node.payload = graph->allocator.allocate(graph->allocator.context, d->payload_bytes);
    if (d->node.payload && d->payload)
        memcpy(d->node.payload, d->payload, d->payload_bytes);
    return d->node.payload != NULL;
}

/* The last step of every builder: memory first, then nothing can fail. */
static tarn_status push(tarn_graph *graph, draft *d, tarn_value *value, tarn_error *error)
{
    tarn_node *node = &d->node;
    if (graph->nodes.count >= INT32_MAX || graph->operands.count > INT32_MAX - node->operands)
        return tarn_fail(error, TARN_OVERFLOW, NO_AXIS, "the graph has too many nodes");
    if (!make_room(graph, d) || !copy_payload(graph, d))
        return tarn_no_memory(error);
    tarn_value made = (tarn_value)graph->nodes.count;
    node->first = (int)graph->operands.count;
    for (int k = 0; k < node->operands; k++)
        ((tarn_value *)graph->operands.items)[graph->operands.count++] = d->operands[k];
    if (node->kind == NODE_INPUT) {
        node->input = (int)graph->inputs.count;
        ((tarn_value *)graph->inputs.items)[graph->inputs.count++] = made;
    }
    tarn_name_node(graph, node, made);
    ((tarn_node *)graph->nodes.items)[graph->nodes.count++] = *node;
    *value = made;
    return tarn_succeed(error);
}

static tarn_status check_target(const tarn_graph *graph, const tarn_value *value, tarn_error *error)
{
    if (!graph || !value)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         graph ? "value" : "graph");
    return TARN_OK;
}

static tarn_status check_operands(const tarn_graph *graph, int count, const tarn_value *operands,
                                  const tarn_value *value, tarn_error *error)
{
    tarn_status status = check_target(graph, value, error);
    if (!status && count > 0 && !operands)
        status = tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "operands is NULL");
    for (int k = 0; k < count && !status; k++)
        status = tarn_check_value(graph, "operand", operands[k], error);
    return status;
}

/* ---- Inputs and constants ------------------------------------------------------------------ */

tarn_status tarn_graph_input(tarn_graph *graph, tarn_dtype dtype, int rank, const int64_t *shape,
                             tarn_value *value, tarn_error *error)
{
    draft d = {.node = {.kind = NODE_INPUT}};
    tarn_status status = check_target(graph, value, error);
    if (!status && rank > 0 && !shape)
        status = tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "shape is NULL");
    if (status || (status = set_dense(&d, dtype, rank, shape, error)))
        return status;
    return push(graph, &d, value, error);
}

/* Dense bytes of a view of any layout. */
static void gather(const tarn_view *view, char *to)
{
    int64_t at[TARN_MAX_RANK] = {0}, size = (int64_t)tarn_dtype_size(view->dtype);
    for (;;) {
        int64_t offset = 0;
        for (int a = 0; a < view->rank; a++)
            offset += at[a] * view->strides[a];
        memcpy(to, (const char *)view->data + offset * size, (size_t)size);
        to += size;
        int a = view->rank - 1;
        for (; a >= 0 && ++at[a] == view->shape[a]; a--)
            at[a] = 0;
        if (a < 0)
            return;
    }
}

tarn_status tarn_graph_constant(tarn_graph *graph, const tarn_view *data, tarn_value *value,
                                tarn_error *error)
{
    draft d = {.node = {.kind = NODE_CONSTANT}};
    tarn_extent extent;
    tarn_status status;
    if ((status = check_target(graph, value, error)) ||
        (status = tarn_check_view("data", data, &extent, error)))
        return status;
    set_dense_like(&d, data);
    if ((status = tarn_check_data("data", data->data, data->dtype, d.node.bytes == 0, error)))
        return status;
    d.payload_bytes = size_of_bytes(d.node.bytes);
    if ((status = push(graph, &d, value, error)) == TARN_OK && d.node.bytes > 0)
        gather(data, d.node.payload);
    return status;
}

/* ---- Pooling ------------------------------------------------------------------------------- */

tarn_status tarn_graph_pool(tarn_graph *graph, tarn_value x, const tarn_pool *pool,
                            tarn_value *value, tarn_error *error)
{
    draft d = {.node = {.kind = NODE_POOL, .operands = 1},
               .operands = &x,
               .payload = pool,
               .payload_bytes = sizeof *pool};
    tarn_plan plan; /* everything that planning checks is checked now */
    tarn_status status;
    if ((status = check_operands(graph, 1, &x, value, error)) ||
        (status = tarn_plan_init(&plan, pool, &graph_node(graph, x)->view, NULL, error)))
        return status;
    for (int a = 0; a < pool->spatial; a++)
        if (pool->whole[a] != 0)
            return tarn_fail(error, TARN_BAD_ARGUMENT, a, "a graph pools whole tensors, no pieces");
    set_dense_like(&d, &plan.view[TARN_Y]);
    return push(graph, &d, value, error);
}

tarn_status tarn_graph_max_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                  int64_t kernel_w, int64_t stride, tarn_value *value,
                                  tarn_error *error)
{
    tarn_pool pool = tarn_max_pool2d(kernel_h, kernel_w, stride);
    return tarn_graph_pool(graph, x, &pool, value, error);
}

tarn_status tarn_graph_max_pool2d_padded(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                         int64_t kernel_w, int64_t stride, int64_t padding,
                                         tarn_value *value, tarn_error *error)
{
    tarn_pool pool = tarn_max_pool2d_padded(kernel_h, kernel_w, stride, padding);
    return tarn_graph_pool(graph, x, &pool, value, error);
}

tarn_status tarn_graph_smooth_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                     int64_t kernel_w, int64_t stride, double beta,
                                     tarn_value *value, tarn_error *error)
{
    tarn_pool pool = tarn_smooth_pool2d(kernel_h, kernel_w, stride, beta);
    return tarn_graph_pool(graph, x, &pool, value, error);
}

tarn_status tarn_graph_lp_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                 int64_t kernel_w, int64_t stride, double power, tarn_value *value,
                                 tarn_error *error)
{
    tarn_pool pool = tarn_lp_pool2d(kernel_h, kernel_w, stride, power);
    return tarn_graph_pool(graph, x, &pool, value, error);
}

tarn_status tarn_graph_avg_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                  int64_t kernel_w, int64_t stride, tarn_value *value,
                                  tarn_error *error)
{
    tarn_pool pool = tarn_avg_pool2d(kernel_h, kernel_w, stride);
    return tarn_graph_pool(graph, x, &pool, value, error);
}

tarn_status tarn_graph_avg_pool2d_padded(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                         int64_t kernel_w, int64_t stride, int64_t padding,
                                         tarn_value *value, tarn_error *error)
{
    tarn_pool pool = tarn_avg_pool2d_padded(kernel_h, kernel_w, stride, padding);
    return tarn_graph_pool(graph, x, &pool, value, error);
}

/* ---- Pad and unpad ------------------------------------------------------------------------- */

static tarn_status pad_axis(const tarn_padding *padding, int a, int64_t *size, tarn_error *error)
{
    if (!checked_add(*size, padding->lo[a], size) || !checked_add(*size, padding->hi[a], size))
        return tarn_fail(error, TARN_OVERFLOW, a, "the padded size of axis %d does not fit 63 bits",
                         a);
    return TARN_OK;
}

static tarn_status unpad_axis(const tarn_padding *padding, int a, int64_t *size, tarn_error *error)
{
    int64_t lo = padding->lo[a], hi = padding->hi[a];
    if (lo >= *size || hi >= *size - lo)
        return tarn_fail(error, TARN_DOES_NOT_FIT, a,
                         "removing %lld and %lld leaves nothing of axis %d: its size is %lld",
                         (long long)lo, (long long)hi, a, (long long)*size);
    *size -= lo + hi;
    return TARN_OK;
}

static tarn_status check_padding(const tarn_view *x, int spatial, const int64_t *lo,
                                 const int64_t *hi, tarn_padding *padding, tarn_error *error)
{
    if (!lo || !hi)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", lo ? "hi" : "lo");
    if (spatial < 1 || spatial > TARN_MAX_SPATIAL || spatial > x->rank)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS,
                         "%d spatial axes are not in 1..%d or more than the rank %d of x", spatial,
                         TARN_MAX_SPATIAL, x->rank);
    *padding = (tarn_padding){.spatial = spatial};
    for (int a = 0; a < spatial; a++) {
        if (x->shape[x->rank - spatial + a] == 0)
            return tarn_fail(error, TARN_BAD_SHAPE, a, "spatial axis %d is empty", a);
        if (lo[a] < 0 || hi[a] < 0)
            return tarn_fail(error, TARN_BAD_WINDOW, a, "padding %lld, %lld on axis %d is negative",
                             (long long)lo[a], (long long)hi[a], a);
        padding->lo[a] = lo[a];
        padding->hi[a] = hi[a];
    }
    return TARN_OK;
}

static tarn_status push_padding(tarn_graph *graph, tarn_node_kind kind, tarn_value x, int spatial,
                                const int64_t *lo, const int64_t *hi, tarn_value *value,
                                tarn_error *error)
{
    tarn_padding padding;
    draft d = {.node = {.kind = kind, .operands = 1},
               .operands = &x,
               .payload = &padding,
               .payload_bytes = sizeof padding};
    tarn_status status = check_operands(graph, 1, &x, value, error);
    if (status)
        return status;
    tarn_view y = graph_node(graph, x)->view;
    status = check_padding(&y, spatial, lo, hi, &padding, error);
    for (int a = 0; a < spatial && !status; a++)
        status = (kind == NODE_PAD ? pad_axis : unpad_axis)(&padding, a,
                                                            &y.shape[y.rank - spatial + a], error);
    if (status || (status = set_dense(&d, y.dtype, y.rank, y.shape, error)))
        return status;
    return push(graph, &d, value, error);
}

tarn_status tarn_graph_pad(tarn_graph *graph, tarn_value x, int spatial, const int64_t *lo,
                           const int64_t *hi, tarn_value *value, tarn_error *error)
{
    return push_padding(graph, NODE_PAD, x, spatial, lo, hi, value, error);
}

tarn_status tarn_graph_unpad(tarn_graph *graph, tarn_value x, int spatial, const int64_t *lo,
                             const int64_t *hi, tarn_value *value, tarn_error *error)
{
    return push_padding(graph, NODE_UNPAD, x, spatial, lo, hi, value, error);
}

/* ---- Glue ---------------------------------------------------------------------------------- */

/* A draft whose value has the shape of `like`. */
static draft draft_like(const tarn_node *like, tarn_node_kind kind, int count,
                        const tarn_value *operands)
{
    draft d = {.node = {.kind = kind, .operands = count}, .operands = operands};
    d.node.view = like->view;
    d.node.bytes = like->bytes;
    return d;
}

tarn_status tarn_graph_add(tarn_graph *graph, tarn_value a, tarn_value b, tarn_value *value,
                           tarn_error *error)
{
    const tarn_value both[2] = {a, b};
    tarn_status status;
    if ((status = check_operands(graph, 2, both, value, error)) ||
        (status = tarn_check_same_shape("the second operand", &graph_node(graph, b)->view,
                                        &graph_node(graph, a)->view, error)))
        return status;
    draft d = draft_like(graph_node(graph, a), NODE_ADD, 2, both);
    return push(graph, &d, value, error);
}

tarn_status tarn_graph_scale(tarn_graph *graph, tarn_value x, double factor, tarn_value *value,
                             tarn_error *error)
{
    tarn_status status = check_operands(graph, 1, &x, value, error);
    if (status)
        return status;
    draft d = draft_like(graph_node(graph, x), NODE_SCALE, 1, &x);
    if (!is_floating(d.node.view.dtype))
        return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS, "scale needs a floating dtype, x is %s",
                         tarn_dtype_name(d.node.view.dtype));
    if (!is_finite_in_any_state(factor))
        return tarn_fail(error, TARN_BAD_VALUE, NO_AXIS, "factor %g is not finite", factor);
    d.payload = &factor;
    d.payload_bytes = sizeof factor;
    return push(graph, &d, value, error);
}

/* Adds the size of one more operand; all other sizes must agree. */
static tarn_status join(const tarn_view *next, int axis, tarn_view *y, tarn_error *error)
{
    tarn_view expected = *y;
    if (next->rank == y->rank)
        expected.shape[axis] = next->shape[axis];
    tarn_status status = tarn_check_same_shape("operand", next, &expected, error);
    if (!status && !checked_add(y->shape[axis], next->shape[axis], &y->shape[axis]))
        status = tarn_fail(error, TARN_OVERFLOW, NO_AXIS, "the size does not fit 63 bits");
    return status;
}

tarn_status tarn_graph_concat(tarn_graph *graph, int count, const tarn_value *values, int axis,
                              tarn_value *value, tarn_error *error)
{
    draft d = {.node = {.kind = NODE_CONCAT, .operands = count},
               .operands = values,
               .payload = &axis,
               .payload_bytes = sizeof axis};
    if (count < 1)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d values cannot be concatenated",
                         count);
    tarn_status status = check_operands(graph, count, values, value, error);
    if (status)
        return status;
    tarn_view y = graph_node(graph, values[0])->view;
    if (axis < 0 || axis >= y.rank)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "axis %d of a value of rank %d", axis,
                         y.rank);
    for (int k = 1; k < count && !status; k++)
        status = join(&graph_node(graph, values[k])->view, axis, &y, error);
    if (status || (status = set_dense(&d, y.dtype, y.rank, y.shape, error)))
        return status;
    return push(graph, &d, value, error);
}

tarn_status tarn_graph_reshape(tarn_graph *graph, tarn_value x, int rank, const int64_t *shape,
                               tarn_value *value, tarn_error *error)
{
    draft d = {.node = {.kind = NODE_RESHAPE, .operands = 1}, .operands = &x};
    tarn_status status = check_operands(graph, 1, &x, value, error);
    if (!status && rank > 0 && !shape)
        status = tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "shape is NULL");
    if (status)
        return status;
    const tarn_node *from = graph_node(graph, x);
    if ((status = set_dense(&d, from->view.dtype, rank, shape, error)))
        return status;
    if (d.node.bytes != from->bytes) { /* 0 for empty ones only */
        long long size = (long long)tarn_dtype_size(from->view.dtype);
        return tarn_fail(error, TARN_BAD_SHAPE, NO_AXIS,
                         "the shape has %lld elements, the value has %lld",
                         (long long)d.node.bytes / size, (long long)from->bytes / size);
    }
    return push(graph, &d, value, error);
}

tarn_status tarn_graph_flatten(tarn_graph *graph, tarn_value x, int axis, tarn_value *value,
                               tarn_error *error)
{
    tarn_status status = check_operands(graph, 1, &x, value, error);
    if (status)
        return status;
    tarn_view view = graph_node(graph, x)->view;
    if (axis < 0 || axis >= view.rank)
        return tarn_fail(error, TARN_BAD_RANK, NO_AXIS, "axis %d of a value of rank %d", axis,
                         view.rank);
    for (int a = axis + 1; a < view.rank; a++)
        view.shape[axis] *= view.shape[a]; /* fits: the product of all sizes was checked */
    return tarn_graph_reshape(graph, x, axis + 1, view.shape, value, error);
}

/* ---- Custom nodes and outputs -------------------------------------------------------------- */

static tarn_status check_custom(const tarn_custom *custom, tarn_error *error)
{
    if (!custom)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "custom is NULL");
    if (!custom->forward)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "custom node without forward");
    if (!custom->name || !tarn_is_name(custom->name, strlen(custom->name)))
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "'%.70s' is not a name",
                         custom->name ? custom->name : "NULL");
    return TARN_OK;
}

tarn_status tarn_graph_custom(tarn_graph *graph, int count, const tarn_value *operands,
                              const tarn_custom *custom, tarn_value *value, tarn_error *error)
{
    tarn_custom_node payload;
    draft d = {.node = {.kind = NODE_CUSTOM, .operands = count},
               .operands = operands,
               .payload = &payload,
               .payload_bytes = sizeof payload};
    tarn_status status;
    if (count < 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d operands", count);
    if ((status = check_operands(graph, count, operands, value, error)) ||
        (status = check_custom(custom, error)) ||
        (status = set_dense(&d, custom->dtype, custom->rank, custom->shape, error)))
        return status;
    payload.custom = *custom;
    payload.custom.name = NULL; /* the copy beside it is the name */
    snprintf(payload.name, sizeof payload.name, "%s", custom->name);
    return push(graph, &d, value, error);
}

tarn_status tarn_graph_output(tarn_graph *graph, tarn_value value, tarn_error *error)
{
    tarn_status status = tarn_check_value(graph, "output", value, error);
    if (status)
        return status;
    if (!tarn_list_reserve(&graph->outputs, 1, sizeof(tarn_value), &graph->allocator))
        return tarn_no_memory(error);
    ((tarn_value *)graph->outputs.items)[graph->outputs.count++] = value;
    return tarn_succeed(error);
}
