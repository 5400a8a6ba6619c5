/* Values, and tangents beside them, in the order of the nodes. Some are made where they are wanted:
 * in the caller's output, or inside a concatenation. */
#include "graph_compiler.h"

/* ---- Placing ------------------------------------------------------------------------------- */

/* Whether a value, which is no other's reshape, has memory that can be put anywhere. */
static bool can_place(const tarn_compiler *c, tarn_value root, const tarn_place *places)
{
    tarn_node_kind kind = node_of(c, root)->kind;
    return kind != NODE_INPUT && kind != NODE_CONSTANT && places[root].buffer == NO_BUFFER;
}

static void ensure_place(tarn_compiler *c, tarn_value v, tarn_place *places, tarn_role role)
{
    if (places[v].buffer == NO_BUFFER)
        places[v] = tarn_new_buffer(c, 0, node_of(c, v)->bytes, v, role);
}

/* Operands of a concatenation whose slices are contiguous are made in it: no copy. */
static void place_operands(tarn_compiler *c, tarn_value v, const unsigned char *wanted,
                           tarn_place *places, tarn_role role)
{
    int64_t offset = 0;
    ensure_place(c, v, places, role);
    for (int k = 0; k < node_of(c, v)->operands && !c->status; k++) {
        tarn_inset box = tarn_operand_slice(c, v, k, offset);
        tarn_value root = c->root[operands_of(c, v)[k]];
        if (box.size[0] != 1)
            return;
        if (wanted[root] && can_place(c, root, places))
            places[root] = (tarn_place){places[v].buffer, places[v].offset + offset, box.run};
        offset += box.run;
    }
}

/* Outputs first, then concatenations from the last to the first. */
static void place(tarn_compiler *c, const unsigned char *wanted, tarn_place *places, int base,
                  tarn_role role)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++) {
        tarn_value v = graph_output(c->graph, k), root = c->root[v];
        bool asked = role == ROLE_VALUE ? wants_value(c, k) : wants_output(c, k);
        if (asked && wanted[v] && can_place(c, root, places))
            places[root] = tarn_external(c, base + (int)k, v, role);
    }
    for (tarn_value v = c->values - 1; v >= 0; v--)
        if (wanted[v] && node_of(c, v)->kind == NODE_CONCAT)
            place_operands(c, v, wanted, places, role);
}

/* ---- The linear nodes ---------------------------------------------------------------------- */

/* The glue is linear: the same steps make values and tangents. `wanted` says which operands have
 * one; the others are zero. */
typedef struct {
    const unsigned char *wanted;
    const tarn_place *places;
} field;

static void emit_add(tarn_compiler *c, tarn_value v, field f)
{
    if (!tarn_begin_sum(c, v, f.places[v]))
        return;
    for (int k = 0; k < 2; k++)
        if (f.wanted[operands_of(c, v)[k]])
            tarn_add_ref(c, f.places[operands_of(c, v)[k]], false);
}

static void emit_padding(tarn_compiler *c, tarn_value v, field f)
{
    bool pads = node_of(c, v)->kind == NODE_PAD;
    tarn_inset box = tarn_padding_box(c, v);
    if (pads)
        tarn_add_zero(c, v, f.places[v]);
    tarn_add_copy(c, v, pads ? STEP_INTO : STEP_OUT_OF, &box, f.places[v],
                  f.places[operands_of(c, v)[0]]);
}

/* Slices of zeros between others cannot be zeroed alone: zero the whole before. */
static void zero_under_slices(tarn_compiler *c, tarn_value v, field f)
{
    for (int k = 0; k < node_of(c, v)->operands; k++)
        if (!f.wanted[operands_of(c, v)[k]] && tarn_operand_slice(c, v, k, 0).size[0] > 1) {
            tarn_add_zero(c, v, f.places[v]);
            return;
        }
}

static void emit_slice(tarn_compiler *c, tarn_value v, const tarn_inset *box, tarn_value x, field f)
{
    tarn_place to = f.places[v], from = f.places[x];
    bool there = from.buffer == to.buffer && from.offset == to.offset + box->offset;
    if (box->run == 0 || (f.wanted[x] && there))
        return;
    if (f.wanted[x])
        tarn_add_copy(c, v, STEP_INTO, box, to, from);
    else if (box->size[0] == 1)
        tarn_add_zero(c, v, (tarn_place){to.buffer, to.offset + box->offset, box->run});
}

static void emit_concat(tarn_compiler *c, tarn_value v, field f)
{
    int64_t offset = 0;
    zero_under_slices(c, v, f);
    for (int k = 0; k < node_of(c, v)->operands; k++) {
        tarn_inset box = tarn_operand_slice(c, v, k, offset);
        emit_slice(c, v, &box, operands_of(c, v)[k], f);
        offset += box.run;
    }
}

static void emit_linear(tarn_compiler *c, tarn_value v, field f)
{
    if (f.places[v].bytes == 0)
        return;
    switch (node_of(c, v)->kind) {
    case NODE_ADD:
        emit_add(c, v, f);
        return;
    case NODE_SCALE:
        tarn_add_scale(c, v, f.places[v], f.places[operands_of(c, v)[0]]);
        return;
    case NODE_CONCAT:
        emit_concat(c, v, f);
        return;
    default:
        emit_padding(c, v, f);
    }
}

/* ---- Pools and custom nodes ---------------------------------------------------------------- */

static bool has_tangent(const tarn_compiler *c, tarn_value v)
{
    return c->request.mode == TARN_GRAPH_JVP && c->diff[v];
}

static void emit_pool(tarn_compiler *c, tarn_value v)
{
    const tarn_node *node = node_of(c, v);
    tarn_value x = operands_of(c, v)[0];
    bool jvp = has_tangent(c, v);
    tarn_step *step = tarn_begin_pool(c, jvp ? STEP_JVP : STEP_FORWARD, v);
    if (!step)
        return;
    step->with_value = c->need[v];
    step->with_saved = c->request.mode == TARN_GRAPH_VJP && c->diff[v] && keeps_winners(node);
    if (jvp)
        tarn_add_ref(c, c->tangent[v], true);
    if (c->need[v])
        tarn_add_ref(c, c->value[v], true);
    if (step->with_saved) {
        int64_t bytes = (int64_t)tarn_plan_saved_bytes(step->plan);
        c->saved[v] = tarn_new_buffer(c, 0, bytes, v, ROLE_SAVED);
        tarn_add_ref(c, c->saved[v], true);
    }
    if (jvp)
        tarn_add_ref(c, c->tangent[x], false);
    if (c->need[v] || !is_linear_pool(node))
        tarn_add_ref(c, c->value[x], false);
}

static void emit_custom(tarn_compiler *c, tarn_value v, bool jvp)
{
    const tarn_value *x = operands_of(c, v);
    int operands = node_of(c, v)->operands;
    if (!tarn_begin_custom(c, jvp ? STEP_CUSTOM_JVP : STEP_CUSTOM_FORWARD, v))
        return;
    tarn_add_viewed(c, v, (jvp ? c->tangent : c->value)[v], true);
    for (int k = 0; k < operands; k++)
        tarn_add_viewed(c, x[k], c->value[x[k]], false);
    for (int k = 0; jvp && k < operands; k++)
        tarn_add_viewed(c, x[k], c->diff[x[k]] ? c->tangent[x[k]] : nowhere, false);
}

/* ---- Nodes --------------------------------------------------------------------------------- */

/* Where the value (and the tangent) of a node lie, before its step. Constants were settled
 * before. */
static void settle_places(tarn_compiler *c, tarn_value v)
{
    const tarn_node *node = node_of(c, v);
    const tarn_program *p = c->program;
    if (node->kind == NODE_RESHAPE) {
        tarn_value x = operands_of(c, v)[0];
        c->value[v] = c->value[x];
        c->tangent[v] = c->tangent[x];
        return;
    }
    bool input = node->kind == NODE_INPUT;
    if (c->need[v] && input)
        c->value[v] = tarn_external(c, p->base_inputs + node->input, v, ROLE_VALUE);
    else if (c->need[v])
        ensure_place(c, v, c->value, ROLE_VALUE);
    if (has_tangent(c, v) && input)
        c->tangent[v] = tarn_external(c, p->base_seeds + node->input, v, ROLE_TANGENT);
    else if (has_tangent(c, v))
        ensure_place(c, v, c->tangent, ROLE_TANGENT);
}

static void emit_node(tarn_compiler *c, tarn_value v)
{
    bool tangent = has_tangent(c, v);
    settle_places(c, v);
    switch (node_of(c, v)->kind) {
    case NODE_INPUT:
    case NODE_CONSTANT:
    case NODE_RESHAPE:
        return;
    case NODE_POOL: /* one step makes both */
        if (c->need[v] || tangent)
            emit_pool(c, v);
        return;
    case NODE_CUSTOM:
        if (c->need[v])
            emit_custom(c, v, false);
        if (tangent)
            emit_custom(c, v, true);
        return;
    default:
        if (c->need[v])
            emit_linear(c, v, (field){c->need, c->value});
        if (tangent)
            emit_linear(c, v, (field){c->diff, c->tangent});
    }
}

static void place_constants(tarn_compiler *c)
{
    int base = c->program->base_constants;
    for (tarn_value v = 0; v < c->values; v++) {
        if (node_of(c, v)->kind != NODE_CONSTANT)
            continue;
        if (c->need[v])
            c->value[v] = tarn_external(c, base, v, ROLE_VALUE);
        c->program->base[base++] = node_of(c, v)->payload;
    }
}

/* Outputs that could not be made in the caller's memory are copied there. */
static void emit_outputs(tarn_compiler *c)
{
    const tarn_program *p = c->program;
    for (int64_t k = 0; k < c->graph->outputs.count && !c->status; k++) {
        tarn_value v = graph_output(c->graph, k);
        int value_base = p->base_outputs + (int)k, tangent_base = p->base_results + (int)k;
        if (wants_value(c, k) && !tarn_lies_in(c, c->value[v], value_base))
            tarn_add_plain_copy(c, v, tarn_external(c, value_base, v, ROLE_VALUE), c->value[v]);
        if (c->request.mode != TARN_GRAPH_JVP || !wants_output(c, k) || !is_float(c, v))
            continue;
        tarn_place to = tarn_external(c, tangent_base, v, ROLE_TANGENT);
        if (!c->diff[v])
            tarn_add_zero(c, v, to);
        else if (!tarn_lies_in(c, c->tangent[v], tangent_base))
            tarn_add_plain_copy(c, v, to, c->tangent[v]);
    }
}

void tarn_emit_values(tarn_compiler *c)
{
    place_constants(c);
    place(c, c->need, c->value, c->program->base_outputs, ROLE_VALUE);
    if (c->request.mode == TARN_GRAPH_JVP)
        place(c, c->diff, c->tangent, c->program->base_results, ROLE_TANGENT);
    for (tarn_value v = 0; v < c->values && !c->status; v++)
        emit_node(c, v);
    emit_outputs(c);
}
