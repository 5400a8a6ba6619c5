/* The graph itself: memory, creation, questions. */
#include "graph.h"

#include "../checked.h"
#include "../error.h"

#include <string.h>

/* ---- Memory -------------------------------------------------------------------------------- */

tarn_status tarn_no_memory(tarn_error *error)
{
    return tarn_fail(error, TARN_NO_MEMORY, NO_AXIS, "no memory for the graph");
}

bool tarn_list_reserve(tarn_list *list, int64_t more, size_t item_bytes,
                       const tarn_allocator *allocator)
{
    int64_t bytes, wanted = list->count + more; /* both are counts of what is in memory */
    if (wanted <= list->room)
        return true;
    int64_t room = max_i64(wanted, max_i64(8, list->room <= INT64_MAX / 2 ? 2 * list->room : 0));
    if (!checked_mul(room, (int64_t)item_bytes, &bytes))
        return false;
    void *items = allocator->allocate(allocator->context, size_of_bytes(bytes));
    if (!items)
        return false;
    if (list->items) {
        memcpy(items, list->items, (size_t)list->count * item_bytes);
        allocator->release(allocator->context, list->items);
    }
    list->items = items;
    list->room = room;
    return true;
}

void tarn_list_free(tarn_list *list, const tarn_allocator *allocator)
{
    if (list->items)
        allocator->release(allocator->context, list->items);
    *list = (tarn_list){0};
}

tarn_status tarn_settle_allocator(const tarn_allocator *given, tarn_allocator *allocator,
                                  tarn_error *error)
{
    *allocator = tarn_options_default().allocator;
    if (!given || (!given->allocate && !given->release))
        return TARN_OK;
    if (!given->allocate || !given->release)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                         "allocator needs both allocate and release, or neither");
    *allocator = *given;
    return TARN_OK;
}

tarn_status tarn_graph_create(tarn_graph **graph, const tarn_allocator *allocator,
                              tarn_error *error)
{
    tarn_allocator own;
    if (!graph)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "graph is NULL");
    *graph = NULL;
    tarn_status status = tarn_settle_allocator(allocator, &own, error);
    if (status)
        return status;
    tarn_graph *made = own.allocate(own.context, sizeof *made);
    if (!made)
        return tarn_no_memory(error);
    *made = (tarn_graph){.allocator = own};
    *graph = made;
    return tarn_succeed(error);
}

static void free_node(const tarn_graph *graph, const tarn_node *node)
{
    if (node->kind == NODE_CUSTOM) {
        const tarn_custom *custom = &((tarn_custom_node *)node->payload)->custom;
        if (custom->destroy)
            custom->destroy(custom->context);
    }
    if (node->payload)
        graph->allocator.release(graph->allocator.context, node->payload);
}

void tarn_graph_destroy(tarn_graph *graph)
{
    if (!graph)
        return;
    tarn_allocator allocator = graph->allocator;
    for (tarn_value v = 0; v < graph->nodes.count; v++)
        free_node(graph, graph_node(graph, v));
    tarn_list_free(&graph->nodes, &allocator);
    tarn_list_free(&graph->operands, &allocator);
    tarn_list_free(&graph->inputs, &allocator);
    tarn_list_free(&graph->outputs, &allocator);
    tarn_list_free(&graph->forks, &allocator);
    allocator.release(allocator.context, graph);
}

/* ---- Questions ----------------------------------------------------------------------------- */

int tarn_graph_values(const tarn_graph *graph)
{
    return graph ? (int)graph->nodes.count : 0;
}

int tarn_graph_inputs(const tarn_graph *graph)
{
    return graph ? (int)graph->inputs.count : 0;
}

int tarn_graph_outputs(const tarn_graph *graph)
{
    return graph ? (int)graph->outputs.count : 0;
}

tarn_value tarn_graph_input_value(const tarn_graph *graph, int k)
{
    return k >= 0 && k < tarn_graph_inputs(graph) ? graph_input(graph, k) : -1;
}

tarn_value tarn_graph_output_value(const tarn_graph *graph, int k)
{
    return k >= 0 && k < tarn_graph_outputs(graph) ? graph_output(graph, k) : -1;
}

const char *tarn_graph_value_name(const tarn_graph *graph, tarn_value value)
{
    return value >= 0 && value < tarn_graph_values(graph) ? graph_node(graph, value)->name : NULL;
}

tarn_status tarn_check_value(const tarn_graph *graph, const char *what, tarn_value value,
                             tarn_error *error)
{
    if (!graph)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "graph is NULL");
    if (value < 0 || value >= graph->nodes.count)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                         "%s: %d is not a value of this graph, which has %d", what, (int)value,
                         (int)graph->nodes.count);
    return TARN_OK;
}

tarn_status tarn_graph_view(const tarn_graph *graph, tarn_value value, tarn_view *view,
                            tarn_error *error)
{
    tarn_status status = tarn_check_value(graph, "value", value, error);
    if (status)
        return status;
    if (!view)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "view is NULL");
    *view = graph_node(graph, value)->view;
    return tarn_succeed(error);
}
