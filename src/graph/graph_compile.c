/* Compiling: a graph and a request become steps over places in buffers.
 *
 *   mark     which values vary with an input, which reach an output, which must be computed
 *   place    values that can be made where they are wanted: in the caller's output, in a concatenation
 *   emit     forward steps (and tangents beside them) in the order of the nodes, then gradients in the
 *            reverse order; every step stretches the life of the buffers it touches
 *   pack     graph_arena.c
 */
#include "graph_program.h"

#include "../error.h"
#include "../plan.h"
#include "../shape.h"

#include <limits.h>

enum { RECENT_PLANS = 8 }; /* chains repeat themselves: plans are shared with the last few */

typedef struct {
    tarn_place place;
    int next;
} contribution;

typedef struct {
    const tarn_graph *graph;
    tarn_program *program;
    tarn_request request;
    tarn_options options;
    tarn_error *error;
    tarn_status status; /* the first failure; everything is quiet after it */
    int values;
    unsigned char *need;   /* the value is computed */
    unsigned char *varies; /* it depends on an input that we differentiate by */
    unsigned char *diff;   /* and an output that is wanted depends on it */
    tarn_value *root;      /* through reshapes, the value whose memory this one is */
    tarn_place *value, *tangent, *gradient, *saved;
    int *head, *tail, *uses; /* contributions to the gradient of a value; how many there will be */
    tarn_list contributions;
    tarn_list recent; /* tarn_value: nodes whose plans are the last in program->plans */
} compiler;

static const tarn_place nowhere = {NO_BUFFER, 0, 0};

static void out_of_memory(compiler *c)
{
    if (!c->status)
        c->status = tarn_no_memory(c->error);
}

/* ---- Requests ------------------------------------------------------------------------------ */

static bool wants_output(const compiler *c, int64_t k)
{
    return !c->request.outputs || c->request.outputs[k];
}

static bool wants_value(const compiler *c, int64_t k)
{
    return wants_output(c, k) && (c->request.mode == TARN_GRAPH_FORWARD || c->request.values);
}

static bool is_float(const compiler *c, tarn_value v)
{
    return is_floating(graph_node(c->graph, v)->view.dtype);
}

static bool differentiates_by(const compiler *c, int input)
{
    if (c->request.mode == TARN_GRAPH_FORWARD || !is_float(c, graph_input(c->graph, input)))
        return false;
    return !c->request.inputs || c->request.inputs[input];
}

static tarn_status check_request(const tarn_graph *graph, const tarn_request *request,
                                 const tarn_options *options, tarn_error *error)
{
    if (!graph || !request)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         graph ? "request" : "graph");
    if ((int)request->mode < 0 || request->mode >= TARN_MODES)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not a mode", (int)request->mode);
    for (int k = 0; options && k < TARN_MAX_OPERANDS; k++)
        if (options->layout[k])
            return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                             "values of a graph are dense: options must not have layouts");
    if (options && options->executor.parts > 1 && !options->executor.parallel_for)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                         "executor has %d parts but no parallel_for", options->executor.parts);
    if (options && options->executor.parts < 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "executor has %d parts",
                         options->executor.parts);
    for (int k = 0;
         request->mode != TARN_GRAPH_FORWARD && request->inputs && k < tarn_graph_inputs(graph);
         k++) {
        tarn_dtype dtype = graph_node(graph, graph_input(graph, k))->view.dtype;
        if (request->inputs[k] && !is_floating(dtype))
            return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS,
                             "derivatives need a floating dtype, input %d is %s", k,
                             tarn_dtype_name(dtype));
    }
    return TARN_OK;
}

/* ---- Marking ------------------------------------------------------------------------------- */

static const tarn_pool *pool_of(const tarn_node *node)
{
    return node->payload;
}

/* Whether a VJP can be made from saved winners [M7]. */
static bool keeps_winners(const tarn_node *node)
{
    tarn_op op = pool_of(node)->op;
    return (op == TARN_MAX || op == TARN_MIN) && pool_of(node)->ties == TARN_TIES_FIRST;
}

static void mark_varying(compiler *c)
{
    for (tarn_value v = 0; v < c->values; v++) {
        const tarn_node *node = graph_node(c->graph, v);
        const tarn_value *x = node_operands(c->graph, node);
        if (node->kind == NODE_INPUT)
            c->varies[v] = differentiates_by(c, node->input);
        for (int k = 0; k < node->operands && is_float(c, v); k++)
            c->varies[v] |= c->varies[x[k]];
    }
}

static void mark_differentiated(compiler *c)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++)
        if (wants_output(c, k))
            c->diff[graph_output(c->graph, k)] = 1;
    for (tarn_value v = c->values - 1; v >= 0; v--) {
        const tarn_node *node = graph_node(c->graph, v);
        const tarn_value *x = node_operands(c->graph, node);
        c->diff[v] &= c->varies[v];
        for (int k = 0; k < node->operands && c->diff[v]; k++)
            c->diff[x[k]] = 1;
    }
}

/* Whether the derivative of a node looks at its operands. */
static bool derivative_needs_operands(const compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    if (!c->diff[v] || (node->kind != NODE_POOL && node->kind != NODE_CUSTOM))
        return false;
    if (node->kind == NODE_CUSTOM)
        return true;
    if (pool_of(node)->op == TARN_AVG)
        return false;
    return c->request.mode == TARN_GRAPH_JVP || !keeps_winners(node) || !c->need[v];
}

static void mark_needed(compiler *c)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++)
        if (wants_value(c, k))
            c->need[graph_output(c->graph, k)] = 1;
    for (tarn_value v = c->values - 1; v >= 0; v--) {
        const tarn_node *node = graph_node(c->graph, v);
        const tarn_value *x = node_operands(c->graph, node);
        for (int k = 0; k < node->operands; k++)
            c->need[x[k]] |= c->need[v] || derivative_needs_operands(c, v);
    }
}

static void mark_roots(compiler *c)
{
    for (tarn_value v = 0; v < c->values; v++) {
        const tarn_node *node = graph_node(c->graph, v);
        c->root[v] = node->kind == NODE_RESHAPE ? c->root[node_operands(c->graph, node)[0]] : v;
    }
}

static tarn_status check_payloads(const compiler *c)
{
    for (tarn_value v = 0; v < c->values; v++) {
        const tarn_node *node = graph_node(c->graph, v);
        if (node->kind != NODE_CUSTOM || !c->diff[v])
            continue;
        const tarn_custom_node *custom = node->payload;
        bool jvp = c->request.mode == TARN_GRAPH_JVP;
        if (jvp ? !custom->custom.jvp : !custom->custom.vjp)
            return tarn_fail(c->error, TARN_UNSUPPORTED, NO_AXIS,
                             "the custom node %s (%s) has no %s", node->name, custom->name,
                             jvp ? "JVP" : "VJP");
    }
    return TARN_OK;
}

/* ---- Buffers and steps --------------------------------------------------------------------- */

static void *append(compiler *c, tarn_list *list, size_t item_bytes)
{
    if (c->status || list->count >= INT_MAX ||
        !tarn_list_reserve(list, 1, item_bytes, &c->program->allocator)) {
        out_of_memory(c);
        return NULL;
    }
    return (char *)list->items + (size_t)list->count++ * item_bytes;
}

static tarn_place new_buffer(compiler *c, int base, int64_t bytes, tarn_value value, tarn_role role)
{
    tarn_buffer *made = append(c, &c->program->buffers, sizeof *made);
    if (!made)
        return nowhere;
    *made = (tarn_buffer){
        .base = base, .bytes = bytes, .first = INT_MAX, .last = -1, .value = value, .role = role};
    return (tarn_place){(int)c->program->buffers.count - 1, 0, bytes};
}

/* A tensor of the caller, or a constant, shaped like `value`. */
static tarn_place external(compiler *c, int base, tarn_value value, tarn_role role)
{
    const tarn_node *node = graph_node(c->graph, value);
    tarn_program *p = c->program;
    if (p->external[base] == NO_BUFFER) {
        p->external[base] = new_buffer(c, base, node->bytes, value, role).buffer;
        p->external_alignment[base] = (int)tarn_dtype_size(node->view.dtype);
    }
    return (tarn_place){p->external[base], 0, node->bytes};
}

static tarn_step *add_step(compiler *c, tarn_step_kind kind, tarn_value node)
{
    tarn_step *step = append(c, &c->program->steps, sizeof *step);
    if (step)
        *step = (tarn_step){.kind = kind, .node = node, .first = (int)c->program->refs.count};
    return step;
}

/* Adds a place to the step made last. Written places come first. */
static void add_ref(compiler *c, tarn_place place, bool written)
{
    tarn_ref *ref = append(c, &c->program->refs, sizeof *ref);
    if (!ref)
        return;
    int now = (int)c->program->steps.count - 1;
    tarn_step *step = program_step(c->program, now);
    *ref = (tarn_ref){.place = place};
    step->count++;
    step->written += written;
    if (place.buffer == NO_BUFFER)
        return;
    tarn_buffer *buffer = program_buffer(c->program, place.buffer);
    buffer->written |= written;
    if (buffer->first > now)
        buffer->first = now;
    buffer->last = now;
}

static void add_copy(compiler *c, tarn_value node, tarn_step_kind kind, const tarn_box *box,
                     tarn_place to, tarn_place from)
{
    tarn_box *made = append(c, &c->program->boxes, sizeof *made);
    tarn_step *step = made ? add_step(c, kind, node) : NULL;
    if (!step)
        return;
    *made = *box;
    step->detail = c->program->boxes.count - 1;
    add_ref(c, to, true);
    add_ref(c, from, false);
}

static void add_plain_copy(compiler *c, tarn_value node, tarn_place to, tarn_place from)
{
    if (to.bytes > 0)
        add_copy(c, node, STEP_INTO, &(tarn_box){.run = to.bytes}, to, from);
}

static void add_zero(compiler *c, tarn_value node, tarn_place to)
{
    if (to.bytes > 0 && add_step(c, STEP_ZERO, node))
        add_ref(c, to, true);
}

static void add_scale(compiler *c, tarn_value node, tarn_place to, tarn_place from)
{
    tarn_step *step = add_step(c, STEP_SCALE, node);
    if (!step)
        return;
    step->detail = graph_node(c->graph, node)->view.dtype;
    step->factor = *(const double *)graph_node(c->graph, node)->payload;
    add_ref(c, to, true);
    add_ref(c, from, false);
}

/* ---- Plans --------------------------------------------------------------------------------- */

/* Member by member: bytes between members say nothing. */
static bool same_pool(const tarn_pool *a, const tarn_pool *b)
{
#define SAME(member) (memcmp(a->member, b->member, sizeof a->member) == 0)
    return a->op == b->op && a->window == b->window && a->spatial == b->spatial && SAME(kernel) &&
           SAME(stride) && SAME(dilation) && SAME(pad_lo) && SAME(pad_hi) && SAME(out) &&
           a->ceil_mode == b->ceil_mode && a->count_include_pad == b->count_include_pad &&
           a->divisor == b->divisor && a->beta == b->beta && a->power == b->power &&
           a->ties == b->ties && a->flat == b->flat && SAME(reserved);
#undef SAME
}

static bool same_problem(const compiler *c, tarn_value a, tarn_value b)
{
    const tarn_node *first = graph_node(c->graph, a), *second = graph_node(c->graph, b);
    const tarn_view *x = &graph_node(c->graph, node_operands(c->graph, first)[0])->view;
    const tarn_view *y = &graph_node(c->graph, node_operands(c->graph, second)[0])->view;
    return same_pool(first->payload, second->payload) && x->dtype == y->dtype &&
           x->rank == y->rank &&
           memcmp(x->shape, y->shape, sizeof *x->shape * (size_t)x->rank) == 0;
}

static const tarn_plan *plan_of(compiler *c, tarn_value node)
{
    tarn_plan **plans = c->program->plans.items;
    const tarn_value *made_for = c->recent.items;
    int64_t count = c->program->plans.count;
    for (int64_t k = count - 1; k >= 0 && k >= count - RECENT_PLANS; k--)
        if (same_problem(c, made_for[k], node))
            return plans[k];
    tarn_value *remembered = append(c, &c->recent, sizeof *remembered);
    tarn_plan **made = remembered ? append(c, &c->program->plans, sizeof *made) : NULL;
    if (!made)
        return NULL;
    *remembered = node;
    *made = NULL;
    const tarn_node *n = graph_node(c->graph, node);
    const tarn_view *x = &graph_node(c->graph, node_operands(c->graph, n)[0])->view;
    c->status = tarn_plan_create(made, pool_of(n), x, &c->options, c->error);
    return *made;
}

/* ---- Boxes --------------------------------------------------------------------------------- */

/* The place of the small tensor in the large one of a pad or unpad node. */
static tarn_box padding_box(const tarn_padding *padding, const tarn_view *small,
                            const tarn_view *large)
{
    int64_t size = (int64_t)tarn_dtype_size(small->dtype);
    int d = padding->spatial, leading = small->rank - d;
    tarn_box box = {.axes = d, .size = {1}};
    for (int a = 0; a < leading; a++)
        box.size[0] *= small->shape[a];
    int64_t step = size;
    for (int a = d - 1; a >= 0; a--) { /* box axis a+1 is spatial axis a, but the last is the run */
        box.offset += padding->lo[a] * step;
        if (a < d - 1) {
            box.size[a + 1] = small->shape[leading + a];
            box.stride[a + 1] = step;
        }
        step *= large->shape[leading + a];
    }
    box.stride[0] = step;
    box.run = small->shape[small->rank - 1] * size;
    return box;
}

/* Operand k of a concatenation: `offset` is its first byte in each of the outer rows. */
static tarn_box slice_box(const tarn_view *small, const tarn_view *large, int axis, int64_t offset)
{
    int64_t outer = 1, inner = (int64_t)tarn_dtype_size(small->dtype);
    for (int a = 0; a < axis; a++)
        outer *= small->shape[a];
    for (int a = axis + 1; a < small->rank; a++)
        inner *= small->shape[a];
    return (tarn_box){.axes = 1,
                      .size = {outer},
                      .stride = {inner * large->shape[axis]},
                      .offset = offset,
                      .run = inner * small->shape[axis]};
}

static tarn_box operand_slice(const compiler *c, const tarn_node *node, int k, int64_t offset)
{
    const tarn_value *x = node_operands(c->graph, node);
    return slice_box(&graph_node(c->graph, x[k])->view, &node->view, *(const int *)node->payload,
                     offset);
}

/* ---- Placing ------------------------------------------------------------------------------- */

/* Whether a value has memory of its own that can be put anywhere. */
static bool can_place(const compiler *c, tarn_value v, const tarn_place *places)
{
    tarn_node_kind kind = graph_node(c->graph, v)->kind;
    return kind != NODE_INPUT && kind != NODE_CONSTANT && kind != NODE_RESHAPE &&
           places[v].buffer == NO_BUFFER;
}

/* Operands of a concatenation whose slices are contiguous are made in it: no copy. */
static void place_operands(compiler *c, tarn_value v, const unsigned char *wanted,
                           tarn_place *places, tarn_role role)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    int64_t offset = 0;
    if (places[v].buffer == NO_BUFFER)
        places[v] = new_buffer(c, 0, node->bytes, v, role);
    for (int k = 0; k < node->operands && !c->status; k++) {
        tarn_box box = operand_slice(c, node, k, offset);
        tarn_value root = c->root[x[k]];
        if (box.size[0] != 1)
            return;
        if (wanted[root] && can_place(c, root, places))
            places[root] = (tarn_place){places[v].buffer, places[v].offset + offset, box.run};
        offset += box.run;
    }
}

/* Outputs first, then concatenations from the last to the first. */
static void place(compiler *c, const unsigned char *wanted, tarn_place *places, int base,
                  tarn_role role)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++) {
        tarn_value v = graph_output(c->graph, k), root = c->root[v];
        bool asked = role == ROLE_VALUE ? wants_value(c, k) : wants_output(c, k);
        if (asked && wanted[v] && can_place(c, root, places))
            places[root] = external(c, base + (int)k, v, role);
    }
    for (tarn_value v = c->values - 1; v >= 0; v--)
        if (wanted[v] && graph_node(c->graph, v)->kind == NODE_CONCAT)
            place_operands(c, v, wanted, places, role);
}

static void ensure_place(compiler *c, tarn_value v, tarn_place *places, tarn_role role)
{
    if (places[v].buffer == NO_BUFFER)
        places[v] = new_buffer(c, 0, graph_node(c->graph, v)->bytes, v, role);
}

/* ---- Values and tangents ------------------------------------------------------------------- */

static void emit_pool(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    tarn_value x = node_operands(c->graph, node)[0];
    bool jvp = c->request.mode == TARN_GRAPH_JVP && c->diff[v];
    const tarn_plan *plan = plan_of(c, v);
    tarn_step *step = plan ? add_step(c, jvp ? STEP_JVP : STEP_FORWARD, v) : NULL;
    if (!step)
        return;
    step->plan = plan;
    step->with_value = c->need[v];
    step->with_saved =
        !jvp && c->request.mode == TARN_GRAPH_VJP && c->diff[v] && keeps_winners(node);
    bool saves = step->with_saved, reads = c->need[v] || pool_of(node)->op != TARN_AVG;
    if (jvp)
        add_ref(c, c->tangent[v], true);
    if (c->need[v])
        add_ref(c, c->value[v], true);
    if (saves) {
        c->saved[v] = new_buffer(c, 0, (int64_t)tarn_plan_saved_bytes(plan), v, ROLE_SAVED);
        add_ref(c, c->saved[v], true);
    }
    if (jvp)
        add_ref(c, c->tangent[x], false);
    if (reads)
        add_ref(c, c->value[x], false);
}

/* The glue is linear: the same steps make values and tangents. `wanted` says which operands have one;
 * the others are zero. */
static void emit_linear(compiler *c, tarn_value v, const unsigned char *wanted, tarn_place *places)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    tarn_place to = places[v];
    int64_t offset = 0;
    if (to.bytes == 0)
        return;
    switch (node->kind) {
    case NODE_ADD: {
        tarn_step *step = add_step(c, STEP_SUM, v);
        if (!step)
            return;
        step->detail = node->view.dtype;
        add_ref(c, to, true);
        for (int k = 0; k < 2; k++)
            if (wanted[x[k]])
                add_ref(c, places[x[k]], false);
        return;
    }
    case NODE_SCALE:
        add_scale(c, v, to, places[x[0]]);
        return;
    case NODE_PAD: {
        tarn_box box = padding_box(node->payload, &graph_node(c->graph, x[0])->view, &node->view);
        add_zero(c, v, to);
        add_copy(c, v, STEP_INTO, &box, to, places[x[0]]);
        return;
    }
    case NODE_UNPAD: {
        tarn_box box = padding_box(node->payload, &node->view, &graph_node(c->graph, x[0])->view);
        add_copy(c, v, STEP_OUT_OF, &box, to, places[x[0]]);
        return;
    }
    default: /* concatenation */
        for (int k = 0; k < node->operands; k++) {
            tarn_box box = operand_slice(c, node, k, offset);
            bool zero = !wanted[x[k]], there = !zero && places[x[k]].buffer == to.buffer &&
                                               places[x[k]].offset == to.offset + offset;
            offset += box.run;
            if (box.run == 0 || there)
                continue;
            if (zero && box.size[0] == 1)
                add_zero(c, v, (tarn_place){to.buffer, to.offset + box.offset, box.run});
            else if (!zero)
                add_copy(c, v, STEP_INTO, &box, to, places[x[k]]);
        }
    }
}

/* Slices of zeros between others cannot be zeroed alone: zero the whole before. */
static void zero_under_slices(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    for (int k = 0; node->kind == NODE_CONCAT && k < node->operands; k++)
        if (!c->diff[x[k]] && operand_slice(c, node, k, 0).size[0] > 1) {
            add_zero(c, v, c->tangent[v]);
            return;
        }
}

static void add_view(compiler *c, tarn_value like)
{
    tarn_view *view = append(c, &c->program->views, sizeof *view);
    if (view)
        *view = graph_node(c->graph, like)->view;
}

static tarn_step *begin_custom(compiler *c, tarn_step_kind kind, tarn_value v)
{
    tarn_step *step = add_step(c, kind, v);
    if (step) {
        step->custom = graph_node(c->graph, v)->payload;
        step->detail = c->program->views.count;
    }
    return step;
}

static void add_viewed(compiler *c, tarn_value like, tarn_place place, bool written)
{
    add_view(c, like);
    add_ref(c, place, written);
}

static void emit_custom(compiler *c, tarn_value v, bool jvp)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    if (!begin_custom(c, jvp ? STEP_CUSTOM_JVP : STEP_CUSTOM_FORWARD, v))
        return;
    add_viewed(c, v, (jvp ? c->tangent : c->value)[v], true);
    for (int k = 0; k < node->operands; k++)
        add_viewed(c, x[k], c->value[x[k]], false);
    for (int k = 0; jvp && k < node->operands; k++)
        add_viewed(c, x[k], c->diff[x[k]] ? c->tangent[x[k]] : nowhere, false);
}

/* Where the value (and the tangent) of a node lie, before its step. */
static void settle_places(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_program *p = c->program;
    bool tangent = c->request.mode == TARN_GRAPH_JVP && c->diff[v];
    if (node->kind == NODE_RESHAPE) {
        tarn_value x = node_operands(c->graph, node)[0];
        c->value[v] = c->value[x];
        c->tangent[v] = c->tangent[x];
        return;
    }
    if (c->need[v] && node->kind == NODE_INPUT)
        c->value[v] = external(c, p->base_inputs + node->input, v, ROLE_VALUE);
    else if (c->need[v] && node->kind != NODE_CONSTANT)
        ensure_place(c, v, c->value, ROLE_VALUE);
    if (tangent && node->kind == NODE_INPUT)
        c->tangent[v] = external(c, p->base_seeds + node->input, v, ROLE_TANGENT);
    else if (tangent)
        ensure_place(c, v, c->tangent, ROLE_TANGENT);
}

static void emit_node(compiler *c, tarn_value v, int *constants)
{
    tarn_node_kind kind = graph_node(c->graph, v)->kind;
    bool tangent = c->request.mode == TARN_GRAPH_JVP && c->diff[v];
    settle_places(c, v);
    if (kind == NODE_CONSTANT) {
        int base = c->program->base_constants + (*constants)++;
        if (c->need[v])
            c->value[v] = external(c, base, v, ROLE_VALUE);
        c->program->base[base] = graph_node(c->graph, v)->payload;
    }
    if (kind == NODE_INPUT || kind == NODE_CONSTANT || kind == NODE_RESHAPE)
        return;
    if (kind == NODE_POOL) {
        if (c->need[v] || tangent)
            emit_pool(c, v);
        return;
    }
    if (kind == NODE_CUSTOM) {
        if (c->need[v])
            emit_custom(c, v, false);
        if (tangent)
            emit_custom(c, v, true);
        return;
    }
    if (c->need[v])
        emit_linear(c, v, c->need, c->value);
    if (tangent) {
        zero_under_slices(c, v);
        emit_linear(c, v, c->diff, c->tangent);
    }
}

static bool lies_in(const compiler *c, tarn_place place, int base)
{
    return place.buffer != NO_BUFFER && program_buffer(c->program, place.buffer)->base == base;
}

/* Outputs that could not be made in the caller's memory are copied there. */
static void emit_outputs(compiler *c)
{
    const tarn_program *p = c->program;
    for (int64_t k = 0; k < c->graph->outputs.count && !c->status; k++) {
        tarn_value v = graph_output(c->graph, k);
        int value_base = p->base_outputs + (int)k, tangent_base = p->base_results + (int)k;
        if (wants_value(c, k) && !lies_in(c, c->value[v], value_base))
            add_plain_copy(c, v, external(c, value_base, v, ROLE_VALUE), c->value[v]);
        if (c->request.mode != TARN_GRAPH_JVP || !wants_output(c, k) || !is_float(c, v))
            continue;
        if (!c->diff[v])
            add_zero(c, v, external(c, tangent_base, v, ROLE_TANGENT));
        else if (!lies_in(c, c->tangent[v], tangent_base))
            add_plain_copy(c, v, external(c, tangent_base, v, ROLE_TANGENT), c->tangent[v]);
    }
}

/* ---- Gradients ----------------------------------------------------------------------------- */

static void contribute(compiler *c, tarn_value v, tarn_place place)
{
    contribution *made = append(c, &c->contributions, sizeof *made);
    if (!made)
        return;
    int index = (int)c->contributions.count - 1;
    *made = (contribution){place, -1};
    if (c->head[v] < 0)
        c->head[v] = index;
    else
        ((contribution *)c->contributions.items)[c->tail[v]].next = index;
    c->tail[v] = index;
}

/* The cotangents of outputs are the first contributions; the uses of each value are counted, so
 * that the only contribution to an input can be made in the caller's memory. */
static void start_gradients(compiler *c)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++) {
        tarn_value v = graph_output(c->graph, k);
        if (!wants_output(c, k) || !c->diff[v])
            continue;
        contribute(c, v, external(c, c->program->base_seeds + (int)k, v, ROLE_GRADIENT));
        c->uses[v]++;
    }
    for (tarn_value v = 0; v < c->values; v++) {
        const tarn_node *node = graph_node(c->graph, v);
        for (int k = 0; k < node->operands && c->diff[v]; k++)
            c->uses[node_operands(c->graph, node)[k]]++;
    }
}

/* Memory for a contribution to the gradient of v. */
static tarn_place contribution_place(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    if (node->kind == NODE_INPUT && c->uses[v] == 1)
        return external(c, c->program->base_results + node->input, v, ROLE_GRADIENT);
    return new_buffer(c, 0, node->bytes, v, ROLE_GRADIENT);
}

static void emit_sum(compiler *c, tarn_value v, tarn_place to)
{
    tarn_step *step = to.bytes > 0 ? add_step(c, STEP_SUM, v) : NULL;
    if (!step)
        return;
    step->detail = graph_node(c->graph, v)->view.dtype;
    add_ref(c, to, true);
    for (int k = c->head[v]; k >= 0; k = ((contribution *)c->contributions.items)[k].next)
        add_ref(c, ((contribution *)c->contributions.items)[k].place, false);
}

/* All contributions to v are there: one is the gradient itself, several are summed. */
static void finish_gradient(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    int base = c->program->base_results + node->input;
    bool to_caller = node->kind == NODE_INPUT;
    if (c->head[v] == c->tail[v]) {
        c->gradient[v] = ((contribution *)c->contributions.items)[c->head[v]].place;
        if (to_caller && !lies_in(c, c->gradient[v], base))
            add_plain_copy(c, v, external(c, base, v, ROLE_GRADIENT), c->gradient[v]);
        return;
    }
    c->gradient[v] = to_caller ? external(c, base, v, ROLE_GRADIENT)
                               : new_buffer(c, 0, node->bytes, v, ROLE_GRADIENT);
    emit_sum(c, v, c->gradient[v]);
}

static void emit_pool_vjp(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    tarn_value x = node_operands(c->graph, node)[0];
    tarn_place gx = contribution_place(c, x);
    const tarn_plan *plan = plan_of(c, v);
    tarn_step *step = plan ? add_step(c, STEP_VJP, v) : NULL;
    if (!step)
        return;
    step->plan = plan;
    step->with_saved = c->saved[v].buffer != NO_BUFFER;
    bool saved = step->with_saved, reads = pool_of(node)->op != TARN_AVG;
    add_ref(c, gx, true);
    add_ref(c, c->gradient[v], false);
    if (reads)
        add_ref(c, saved ? c->saved[v] : c->value[x], false);
    contribute(c, x, gx);
}

static void emit_concat_vjp(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    tarn_place gy = c->gradient[v];
    int64_t offset = 0;
    for (int k = 0; k < node->operands; k++) {
        tarn_box box = operand_slice(c, node, k, offset);
        offset += box.run;
        if (!c->diff[x[k]])
            continue;
        if (box.size[0] <= 1) { /* contiguous (or empty): the slice is the contribution */
            int64_t bytes = graph_node(c->graph, x[k])->bytes;
            contribute(c, x[k],
                       (tarn_place){gy.buffer, gy.offset + (bytes ? box.offset : 0), bytes});
            continue;
        }
        tarn_place gx = contribution_place(c, x[k]);
        if (gx.bytes > 0)
            add_copy(c, v, STEP_OUT_OF, &box, gx, gy);
        contribute(c, x[k], gx);
    }
}

static void emit_padding_vjp(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    tarn_value x = node_operands(c->graph, node)[0];
    const tarn_view *from = &graph_node(c->graph, x)->view;
    tarn_place gx = contribution_place(c, x);
    if (gx.bytes > 0 && node->kind == NODE_PAD) {
        tarn_box box = padding_box(node->payload, from, &node->view);
        add_copy(c, v, STEP_OUT_OF, &box, gx, c->gradient[v]);
    } else if (gx.bytes > 0) {
        tarn_box box = padding_box(node->payload, &node->view, from);
        add_zero(c, v, gx);
        add_copy(c, v, STEP_INTO, &box, gx, c->gradient[v]);
    }
    contribute(c, x, gx);
}

static void emit_custom_vjp(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    if (!begin_custom(c, STEP_CUSTOM_VJP, v))
        return;
    for (int k = 0; k < node->operands; k++) {
        tarn_place gx = c->diff[x[k]] ? contribution_place(c, x[k]) : nowhere;
        add_viewed(c, x[k], gx, true);
        if (c->diff[x[k]])
            contribute(c, x[k], gx);
    }
    add_viewed(c, v, c->gradient[v], false);
    for (int k = 0; k < node->operands; k++)
        add_viewed(c, x[k], c->value[x[k]], false);
}

static void emit_gradient(compiler *c, tarn_value v)
{
    const tarn_node *node = graph_node(c->graph, v);
    const tarn_value *x = node_operands(c->graph, node);
    finish_gradient(c, v);
    switch (node->kind) {
    case NODE_POOL:
        emit_pool_vjp(c, v);
        return;
    case NODE_PAD:
    case NODE_UNPAD:
        emit_padding_vjp(c, v);
        return;
    case NODE_SCALE: {
        tarn_place gx = contribution_place(c, x[0]);
        add_scale(c, v, gx, c->gradient[v]);
        contribute(c, x[0], gx);
        return;
    }
    case NODE_CONCAT:
        emit_concat_vjp(c, v);
        return;
    case NODE_CUSTOM:
        emit_custom_vjp(c, v);
        return;
    default: /* add and reshape hand the gradient on; inputs have no operands */
        for (int k = 0; k < node->operands; k++)
            if (c->diff[x[k]])
                contribute(c, x[k], c->gradient[v]);
    }
}

static void emit_gradients(compiler *c)
{
    start_gradients(c);
    for (tarn_value v = c->values - 1; v >= 0 && !c->status; v--)
        if (c->diff[v])
            emit_gradient(c, v);
    for (int k = 0; k < tarn_graph_inputs(c->graph) && !c->status; k++) {
        tarn_value v = graph_input(c->graph, k);
        if (differentiates_by(c, k) && !c->diff[v])
            add_zero(c, v, external(c, c->program->base_results + k, v, ROLE_GRADIENT));
    }
}

/* ---- All of it ----------------------------------------------------------------------------- */

static void emit(compiler *c)
{
    bool jvp = c->request.mode == TARN_GRAPH_JVP;
    int constants = 0;
    place(c, c->need, c->value, c->program->base_outputs, ROLE_VALUE);
    if (jvp)
        place(c, c->diff, c->tangent, c->program->base_results, ROLE_TANGENT);
    for (tarn_value v = 0; v < c->values && !c->status; v++)
        emit_node(c, v, &constants);
    emit_outputs(c);
    if (c->request.mode == TARN_GRAPH_VJP && !c->status)
        emit_gradients(c);
}

/* The scratch of the compiler, in one block. */
static void *allocate_scratch(compiler *c)
{
    size_t n = (size_t)c->values, places = 4 * n * sizeof(tarn_place), ints = 4 * n * sizeof(int);
    char *block =
        c->program->allocator.allocate(c->program->allocator.context, places + ints + 3 * n + 1);
    if (!block)
        return NULL;
    tarn_place *place = (tarn_place *)(void *)block;
    int *numbers = (int *)(void *)(block + places);
    unsigned char *marks = (unsigned char *)block + places + ints;
    for (size_t k = 0; k < 4 * n; k++)
        place[k] = nowhere;
    memset(numbers, 0xff, ints); /* -1 everywhere */
    memset(marks, 0, 3 * n);
    c->value = place, c->tangent = place + n, c->gradient = place + 2 * n, c->saved = place + 3 * n;
    c->head = numbers, c->tail = numbers + n, c->uses = numbers + 2 * n;
    c->root = numbers + 3 * n;
    memset(c->uses, 0, n * sizeof(int));
    c->need = marks, c->varies = marks + n, c->diff = marks + 2 * n;
    return block;
}

static tarn_status number_bases(tarn_program *p, const tarn_graph *graph, tarn_error *error)
{
    int64_t constants = 0;
    for (tarn_value v = 0; v < graph->nodes.count; v++)
        constants += graph_node(graph, v)->kind == NODE_CONSTANT;
    int64_t more = max_i64(p->inputs, p->outputs), all = 1 + p->inputs + p->outputs + 2 * more;
    if (graph->outputs.count > INT32_MAX / 8 || all + constants > INT32_MAX)
        return tarn_fail(error, TARN_OVERFLOW, NO_AXIS, "the graph has too many outputs");
    p->base_inputs = 1;
    p->base_outputs = p->base_inputs + p->inputs;
    p->base_seeds = p->base_outputs + p->outputs;
    p->base_results = p->base_seeds + (int)more;
    p->base_constants = (int)all;
    p->bases = (int)(all + constants);
    size_t n = (size_t)p->bases;
    p->base = p->allocator.allocate(p->allocator.context, n * (sizeof *p->base + 2 * sizeof(int)));
    if (!p->base)
        return tarn_no_memory(error);
    p->external = (int *)(void *)(p->base + n);
    p->external_alignment = p->external + n;
    for (size_t k = 0; k < n; k++) {
        p->base[k] = NULL;
        p->external[k] = NO_BUFFER;
        p->external_alignment[k] = 1;
    }
    return TARN_OK;
}

/* What drawings need to know: where each value lies. */
static tarn_status keep_places(compiler *c)
{
    tarn_program *p = c->program;
    size_t bytes = (size_t)c->values * sizeof *p->place;
    p->place = p->allocator.allocate(p->allocator.context, bytes + 1);
    if (!p->place)
        return tarn_no_memory(c->error);
    for (tarn_value v = 0; v < c->values; v++) {
        p->place[v] = c->need[v] ? c->value[v] : nowhere;
        p->place[v].bytes = graph_node(c->graph, v)->bytes;
    }
    p->values = c->values;
    return TARN_OK;
}

static tarn_status compile(compiler *c)
{
    tarn_program *p = c->program;
    tarn_status status = number_bases(p, c->graph, c->error);
    void *scratch = status ? NULL : allocate_scratch(c);
    if (!scratch)
        return status ? status : tarn_no_memory(c->error);
    if (c->request.mode != TARN_GRAPH_FORWARD) {
        mark_varying(c);
        mark_differentiated(c);
    }
    mark_needed(c);
    mark_roots(c);
    if ((status = check_payloads(c)) == TARN_OK) {
        emit(c);
        status = c->status;
    }
    if (!status)
        status = keep_places(c);
    tarn_list_free(&c->contributions, &p->allocator);
    tarn_list_free(&c->recent, &p->allocator);
    p->allocator.release(p->allocator.context, scratch);
    return status ? status : tarn_pack_arena(p, c->error);
}

tarn_status tarn_graph_compile(tarn_program **program, const tarn_graph *graph,
                               const tarn_request *request, const tarn_options *options,
                               tarn_error *error)
{
    if (!program)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "program is NULL");
    *program = NULL;
    tarn_allocator allocator;
    tarn_status status;
    if ((status = check_request(graph, request, options, error)) ||
        (status = tarn_settle_allocator(options ? &options->allocator : NULL, &allocator, error)))
        return status;
    tarn_program *made = allocator.allocate(allocator.context, sizeof *made);
    if (!made)
        return tarn_no_memory(error);
    *made = (tarn_program){.allocator = allocator,
                           .request = {request->mode, request->values, NULL, NULL},
                           .inputs = tarn_graph_inputs(graph),
                           .outputs = tarn_graph_outputs(graph)};
    compiler c = {.graph = graph,
                  .program = made,
                  .request = *request,
                  .options = options ? *options : tarn_options_default(),
                  .error = error,
                  .values = tarn_graph_values(graph)};
    c.options.allocator = allocator;
    if ((status = compile(&c))) {
        tarn_program_destroy(made);
        return status;
    }
    *program = made;
    return tarn_succeed(error);
}

void tarn_program_destroy(tarn_program *p)
{
    if (!p)
        return;
    tarn_allocator allocator = p->allocator;
    for (int64_t k = 0; k < p->plans.count; k++)
        tarn_plan_destroy(((tarn_plan **)p->plans.items)[k]);
    tarn_list *const lists[] = {&p->steps, &p->refs, &p->buffers, &p->boxes, &p->views, &p->plans};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        tarn_list_free(lists[k], &allocator);
    void *const blocks[] = {p->base, p->place, p->memory, p};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        if (blocks[k])
            allocator.release(allocator.context, blocks[k]);
}

tarn_status tarn_program_memory(const tarn_program *program, tarn_memory *memory, tarn_error *error)
{
    if (!program || !memory)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         program ? "memory" : "program");
    *memory = program->report;
    return tarn_succeed(error);
}
