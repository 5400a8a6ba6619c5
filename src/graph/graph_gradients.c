/* Gradients, in the reverse order of the nodes.
 *
 * Contributions to the gradient of a value come in the order in which they are summed. Some are
 * places that exist (the cotangent of an output, the gradient an addition hands on, a slice of
 * one). The first that needs memory is made where the gradient will lie, the others beside it, and
 * the sum is taken in place. One buffer beside it is enough for f32 and f64, whose sums are of
 * their own type: a sum that starts with the sum so far has the same bits (it started at +0, so it
 * is not -0, and +0 changes nothing else). f16 and bf16 are rounded once, so their contributions
 * wait for each other. */
#include "graph_compiler.h"

typedef struct {
    tarn_place place;
    int next;
} contribution;

/* ---- Contributions ------------------------------------------------------------------------- */

static contribution *contribution_at(const tarn_compiler *c, int k)
{
    return (contribution *)c->contributions.items + k;
}

static void contribute(tarn_compiler *c, tarn_value v, tarn_place place)
{
    contribution *made = tarn_append(c, &c->contributions, sizeof *made);
    if (!made)
        return;
    int index = (int)c->contributions.count - 1;
    *made = (contribution){place, -1};
    if (c->head[v] < 0)
        c->head[v] = index;
    else
        contribution_at(c, c->tail[v])->next = index;
    c->tail[v] = index;
}

/* Where the gradient of v lies if it is not one that exists: with the caller, or in the arena. */
static tarn_place destination(tarn_compiler *c, tarn_value v)
{
    const tarn_node *node = node_of(c, v);
    if (node->kind == NODE_INPUT)
        return tarn_external(c, c->program->base_results + node->input, v, ROLE_GRADIENT);
    return tarn_new_buffer(c, 0, node->bytes, v, ROLE_GRADIENT);
}

/* All contributions so far become one, where the gradient lies. */
static void add_up(tarn_compiler *c, tarn_value v)
{
    if (c->gradient[v].buffer == NO_BUFFER)
        c->gradient[v] = destination(c, v);
    if (tarn_begin_sum(c, v, c->gradient[v]))
        for (int k = c->head[v]; k >= 0; k = contribution_at(c, k)->next)
            tarn_add_ref(c, contribution_at(c, k)->place, false);
    c->head[v] = -1;
    c->beside[v] = 0;
    contribute(c, v, c->gradient[v]);
}

static bool sums_are_of_type(tarn_dtype dtype)
{
    return dtype == TARN_F64 || dtype == TARN_F32;
}

/* Before a step that contributes to v: what waits beside its gradient is added, where bits allow
 * it. */
static void make_room(tarn_compiler *c, tarn_value v)
{
    if (c->beside[v] && sums_are_of_type(node_of(c, v)->view.dtype))
        add_up(c, v);
}

static tarn_place contribution_place(tarn_compiler *c, tarn_value v)
{
    if (c->gradient[v].buffer == NO_BUFFER)
        return c->gradient[v] = destination(c, v);
    c->beside[v] = 1;
    return tarn_new_buffer(c, 0, node_of(c, v)->bytes, v, ROLE_GRADIENT);
}

/* Memory for the contribution of a step that has one. */
static tarn_place only_contribution(tarn_compiler *c, tarn_value v)
{
    make_room(c, v);
    tarn_place made = contribution_place(c, v);
    contribute(c, v, made);
    return made;
}

/* All contributions to v are there: one is the gradient itself, several are summed. */
static void finish_gradient(tarn_compiler *c, tarn_value v)
{
    const tarn_node *node = node_of(c, v);
    int base = c->program->base_results + node->input;
    if (c->head[v] != c->tail[v]) {
        add_up(c, v);
        return;
    }
    c->gradient[v] = contribution_at(c, c->head[v])->place;
    if (node->kind == NODE_INPUT && !tarn_lies_in(c, c->gradient[v], base))
        tarn_add_plain_copy(c, v, destination(c, v), c->gradient[v]);
}

/* ---- Nodes --------------------------------------------------------------------------------- */

static void emit_pool_vjp(tarn_compiler *c, tarn_value v)
{
    tarn_value x = operands_of(c, v)[0];
    tarn_place gx = only_contribution(c, x);
    tarn_step *step = tarn_begin_pool(c, STEP_VJP, v);
    if (!step)
        return;
    step->with_saved = c->saved[v].buffer != NO_BUFFER;
    tarn_add_ref(c, gx, true);
    tarn_add_ref(c, c->gradient[v], false);
    if (!is_linear_pool(node_of(c, v)))
        tarn_add_ref(c, step->with_saved ? c->saved[v] : c->value[x], false);
}

/* A contiguous slice (or an empty one) is the contribution itself. */
static void emit_slice_vjp(tarn_compiler *c, tarn_value v, const tarn_inset *box, tarn_value x)
{
    tarn_place gy = c->gradient[v];
    int64_t bytes = node_of(c, x)->bytes;
    if (box->size[0] <= 1)
        contribute(c, x, (tarn_place){gy.buffer, gy.offset + (bytes ? box->offset : 0), bytes});
    else
        tarn_add_copy(c, v, STEP_OUT_OF, box, only_contribution(c, x), gy);
}

static void emit_concat_vjp(tarn_compiler *c, tarn_value v)
{
    int64_t offset = 0;
    for (int k = 0; k < node_of(c, v)->operands; k++) {
        tarn_value x = operands_of(c, v)[k];
        tarn_inset box = tarn_operand_slice(c, v, k, offset);
        if (c->diff[x])
            emit_slice_vjp(c, v, &box, x);
        offset += box.run;
    }
}

static void emit_padding_vjp(tarn_compiler *c, tarn_value v)
{
    bool pads = node_of(c, v)->kind == NODE_PAD;
    tarn_place gx = only_contribution(c, operands_of(c, v)[0]);
    tarn_inset box = tarn_padding_box(c, v);
    if (!pads)
        tarn_add_zero(c, v, gx);
    tarn_add_copy(c, v, pads ? STEP_OUT_OF : STEP_INTO, &box, gx, c->gradient[v]);
}

/* One step may contribute to one value several times: they count only when it is done. */
static void emit_custom_vjp(tarn_compiler *c, tarn_value v)
{
    const tarn_value *x = operands_of(c, v);
    int operands = node_of(c, v)->operands;
    for (int k = 0; k < operands; k++)
        make_room(c, x[k]);
    if (!tarn_begin_custom(c, STEP_CUSTOM_VJP, v))
        return;
    for (int k = 0; k < operands; k++)
        tarn_add_viewed(c, x[k], c->diff[x[k]] ? contribution_place(c, x[k]) : nowhere, true);
    tarn_add_viewed(c, v, c->gradient[v], false);
    for (int k = 0; k < operands; k++)
        tarn_add_viewed(c, x[k], c->value[x[k]], false);
    int64_t first = program_step(c->program, c->program->steps.count - 1)->first;
    for (int k = 0; k < operands && !c->status; k++)
        if (c->diff[x[k]])
            contribute(c, x[k], program_ref(c->program, first + k)->place);
}

static void emit_gradient(tarn_compiler *c, tarn_value v)
{
    const tarn_value *x = operands_of(c, v);
    finish_gradient(c, v);
    switch (node_of(c, v)->kind) {
    case NODE_POOL:
        emit_pool_vjp(c, v);
        return;
    case NODE_PAD:
    case NODE_UNPAD:
        emit_padding_vjp(c, v);
        return;
    case NODE_SCALE:
        tarn_add_scale(c, v, only_contribution(c, x[0]), c->gradient[v]);
        return;
    case NODE_CONCAT:
        emit_concat_vjp(c, v);
        return;
    case NODE_CUSTOM:
        emit_custom_vjp(c, v);
        return;
    default: /* add and reshape hand the gradient on; inputs have no operands */
        for (int k = 0; k < node_of(c, v)->operands; k++)
            if (c->diff[x[k]])
                contribute(c, x[k], c->gradient[v]);
    }
}

/* ---- All of them --------------------------------------------------------------------------- */

/* The cotangents of outputs are the first contributions. */
static void start_gradients(tarn_compiler *c)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++) {
        tarn_value v = graph_output(c->graph, k);
        if (wants_output(c, k) && c->diff[v])
            contribute(c, v, tarn_external(c, c->program->base_seeds + (int)k, v, ROLE_GRADIENT));
    }
}

void tarn_emit_gradients(tarn_compiler *c)
{
    start_gradients(c);
    for (tarn_value v = c->values - 1; v >= 0 && !c->status; v--)
        if (c->diff[v])
            emit_gradient(c, v);
    for (int k = 0; k < tarn_graph_inputs(c->graph) && !c->status; k++) {
        tarn_value v = graph_input(c->graph, k);
        if (differentiates_by(c, k) && !c->diff[v])
            tarn_add_zero(c, v, destination(c, v));
    }
}
