/* Drawings: the graph for Graphviz, with the memory of a program. */
#include "graph_program.h"
#include "graph_write.h"

/* The first byte of a value in the arena; -1 if it lies elsewhere or nowhere. */
static int64_t arena_offset(const tarn_program *program, tarn_value v)
{
    if (!program || v >= program->values || program->place[v].buffer == NO_BUFFER)
        return -1;
    const tarn_buffer *buffer = program_buffer(program, program->place[v].buffer);
    return buffer->base == 0 ? buffer->offset + program->place[v].offset : -1;
}

/* Whether a value at `offset` of the arena shares bytes with another. */
static bool shares(const tarn_program *program, tarn_value v, int64_t offset, tarn_value other)
{
    int64_t at = arena_offset(program, other);
    return at >= 0 && offset < at + program->place[other].bytes &&
           at < offset + program->place[v].bytes;
}

/* The first few by name: in a long chain every second value shares with every other. Of those
 * far away nothing is said: comparing all with all would take minutes for a hundred thousand
 * values. */
static void put_sharers(tarn_writer *w, const tarn_graph *graph, const tarn_program *program,
                        tarn_value v, int64_t offset)
{
    enum { MOST_NAMES = 6, NEAR = 250 };
    int sharers = 0;
    tarn_value begin = v > NEAR ? v - NEAR : 0;
    tarn_value end = v < program->values - NEAR ? v + NEAR : program->values;
    for (tarn_value other = begin; other < end; other++)
        if (other != v && shares(program, v, offset, other) && ++sharers <= MOST_NAMES)
            tarn_put(w, "%s%s", sharers == 1 ? "\\nshares memory with " : ", ",
                     graph_node(graph, other)->name);
    if (sharers > MOST_NAMES)
        tarn_put(w, " and %d more%s", sharers - MOST_NAMES,
                 begin > 0 || end < program->values ? " nearby" : "");
}

static void put_memory(tarn_writer *w, const tarn_graph *graph, const tarn_program *program,
                       tarn_value v)
{
    int64_t offset = arena_offset(program, v);
    if (v >= program->values || program->place[v].buffer == NO_BUFFER) {
        tarn_put(w, "\\nnot computed");
        return;
    }
    const tarn_buffer *buffer = program_buffer(program, program->place[v].buffer);
    if (offset >= 0) {
        tarn_put(w, "\\narena %lld..%lld", (long long)offset,
                 (long long)(offset + program->place[v].bytes));
        put_sharers(w, graph, program, v, offset);
    } else if (buffer->base >= program->base_constants) {
        tarn_put(w, "\\nconstant");
    } else if (buffer->base >= program->base_outputs) {
        tarn_put(w, "\\nin output %d", buffer->base - program->base_outputs);
    } else {
        tarn_put(w, "\\nthe caller's");
    }
}

static void put_box(tarn_writer *w, const tarn_graph *graph, const tarn_program *program,
                    tarn_value v)
{
    const tarn_node *node = graph_node(graph, v);
    int64_t offset = arena_offset(program, v);
    tarn_put(w, "  n%d [label=\"%s = %s", (int)v, node->name, tarn_node_word(node));
    if (node->kind == NODE_CUSTOM)
        tarn_put(w, " %s", ((const tarn_custom_node *)node->payload)->name);
    tarn_put_parameters(w, node);
    tarn_put(w, "\\n%s ", tarn_dtype_name(node->view.dtype));
    tarn_put_shape(w, &node->view);
    tarn_put(w, ", %lld bytes", (long long)node->bytes);
    if (program)
        put_memory(w, graph, program, v);
    tarn_put(w, "\"");
    if (offset >= 0) /* one hue for each place where values begin */
        tarn_put(w, ", style=filled, fillcolor=\"0.%03d 0.25 1.0\"",
                 (int)(offset / 64 * 619 % 1000));
    else if (program && (v >= program->values || program->place[v].buffer == NO_BUFFER))
        tarn_put(w, ", style=dashed");
    tarn_put(w, "];\n");
}

int64_t tarn_graph_dot(const tarn_graph *graph, const tarn_program *program, char *text,
                       size_t size)
{
    tarn_writer w = {.text = text, .size = text ? size : 0};
    if (!graph || (program && program->values > graph->nodes.count))
        return -1;
    tarn_put(&w, "digraph tarn {\n  node [shape=box, fontname=\"monospace\"];\n");
    for (tarn_value v = 0; v < graph->nodes.count; v++)
        put_box(&w, graph, program, v);
    for (tarn_value v = 0; v < graph->nodes.count; v++) {
        const tarn_node *node = graph_node(graph, v);
        for (int k = 0; k < node->operands; k++)
            tarn_put(&w, "  n%d -> n%d;\n", (int)node_operands(graph, node)[k], (int)v);
    }
    for (int64_t k = 0; k < graph->outputs.count; k++)
        tarn_put(&w, "  out%lld [label=\"output %lld\", shape=plain];\n  n%d -> out%lld;\n",
                 (long long)k, (long long)k, (int)graph_output(graph, k), (long long)k);
    if (program)
        tarn_put(&w, "  label=\"arena %lld bytes, without reuse %lld\";\n",
                 (long long)program->report.arena, (long long)program->report.without_reuse);
    tarn_put(&w, "}\n");
    return w.length;
}
