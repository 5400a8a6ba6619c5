/* Marking: which values vary with an input, which reach an output, which must be computed. */
#include "graph_compiler.h"

#include "../error.h"

static void mark_varying(tarn_compiler *c)
{
    for (tarn_value v = 0; v < c->values; v++) {
        const tarn_node *node = node_of(c, v);
        if (node->kind == NODE_INPUT)
            c->varies[v] = differentiates_by(c, node->input);
        for (int k = 0; k < node->operands && is_float(c, v); k++)
            c->varies[v] |= c->varies[operands_of(c, v)[k]];
    }
}

static void mark_differentiated(tarn_compiler *c)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++)
        if (wants_output(c, k))
            c->diff[graph_output(c->graph, k)] = 1;
    for (tarn_value v = c->values - 1; v >= 0; v--) {
        c->diff[v] &= c->varies[v];
        for (int k = 0; k < node_of(c, v)->operands && c->diff[v]; k++)
            c->diff[operands_of(c, v)[k]] = 1;
    }
}

/* Whether the derivative of a node whose value is not needed looks at its operands. */
static bool derivative_needs_operands(const tarn_compiler *c, tarn_value v)
{
    const tarn_node *node = node_of(c, v);
    return c->diff[v] &&
           (node->kind == NODE_CUSTOM || (node->kind == NODE_POOL && !is_linear_pool(node)));
}

static void mark_needed(tarn_compiler *c)
{
    for (int64_t k = 0; k < c->graph->outputs.count; k++)
        if (wants_value(c, k))
            c->need[graph_output(c->graph, k)] = 1;
    for (tarn_value v = c->values - 1; v >= 0; v--)
        for (int k = 0; k < node_of(c, v)->operands; k++)
            c->need[operands_of(c, v)[k]] |= c->need[v] || derivative_needs_operands(c, v);
}

static void mark_roots(tarn_compiler *c)
{
    for (tarn_value v = 0; v < c->values; v++)
        c->root[v] = node_of(c, v)->kind == NODE_RESHAPE ? c->root[operands_of(c, v)[0]] : v;
}

void tarn_mark_values(tarn_compiler *c)
{
    if (c->request.mode != TARN_GRAPH_FORWARD) {
        mark_varying(c);
        mark_differentiated(c);
    }
    mark_needed(c);
    mark_roots(c);
}

tarn_status tarn_check_payloads(const tarn_compiler *c)
{
    bool jvp = c->request.mode == TARN_GRAPH_JVP;
    for (tarn_value v = 0; v < c->values; v++) {
        const tarn_node *node = node_of(c, v);
        if (node->kind != NODE_CUSTOM || !c->diff[v])
            continue;
        const tarn_custom_node *custom = node->payload;
        if (jvp ? !custom->custom.jvp : !custom->custom.vjp)
            return tarn_fail(c->error, TARN_UNSUPPORTED, NO_AXIS,
                             "the custom node %s (%s) has no %s", node->name, custom->name,
                             jvp ? "JVP" : "VJP");
    }
    return TARN_OK;
}
