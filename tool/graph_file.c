#include "graph_file.h"
#include "../src/io/region.h"

#include <stdlib.h>

/* ---- Opening -------------------------------------------------------------------------------- */

static bool no_memory(tarn_complaint *complaint)
{
    return tarn_complain(complaint, FAILED_WORK, "no memory for a graph of that size");
}

static bool describe_port(const graph_file *file, tarn_value value, graph_port *port,
                          tarn_complaint *complaint)
{
    tarn_error error;
    *port = (graph_port){.name = tarn_graph_value_name(file->graph, value), .wanted = true};
    return !tarn_graph_view(file->graph, value, &port->view, &error) ||
           tool_complain_library(complaint, &error);
}

static bool make_ports(const graph_file *file, int count,
                       tarn_value (*value_of)(const tarn_graph *graph, int k), graph_port **ports,
                       tarn_complaint *complaint)
{
    *ports = calloc((size_t)(count > 0 ? count : 1), sizeof **ports);
    if (!*ports)
        return no_memory(complaint);
    for (int k = 0; k < count; k++)
        if (!describe_port(file, value_of(file->graph, k), &(*ports)[k], complaint))
            return false;
    return true;
}

bool graph_file_keep_all(graph_file *file, tarn_complaint *complaint)
{
    int values = tarn_graph_values(file->graph);
    tarn_error error;
    graph_port *more =
        realloc(file->output, ((size_t)file->outputs + (size_t)values) * sizeof *more);
    if (!more)
        return no_memory(complaint);
    file->output = more;
    for (tarn_value v = 0; v < values; v++) {
        if (tarn_graph_output(file->graph, v, &error))
            return tool_complain_library(complaint, &error);
        if (!describe_port(file, v, &more[file->outputs], complaint))
            return false;
        file->outputs++;
    }
    return true;
}

bool graph_file_open(const char *path, int64_t memory, const tarn_options *options,
                     graph_file *file, tarn_complaint *complaint)
{
    tarn_region text = {0};
    tarn_error error;
    *file = (graph_file){.path = path, .options = *options};
    tarn_complaint_file(complaint, path);
    bool good = tarn_region_open(path, memory, &text, complaint);
    if (good &&
        tarn_graph_load(&file->graph, (const char *)text.data, text.size, NULL, NULL, NULL, &error))
        good = tarn_complain(complaint, FAILED_WORK, "%s", error.message);
    tarn_region_close(&text);
    if (!good)
        return false;
    file->inputs = tarn_graph_inputs(file->graph);
    file->outputs = tarn_graph_outputs(file->graph);
    good = make_ports(file, file->inputs, tarn_graph_input_value, &file->input, complaint) &&
           make_ports(file, file->outputs, tarn_graph_output_value, &file->output, complaint);
    if (good)
        *complaint = tarn_no_complaint(); /* what is to come is not about the text */
    return good;
}

static void free_ports(graph_port *ports, int count)
{
    for (int k = 0; ports && k < count * GRAPH_TENSORS; k++)
        free(ports[k / GRAPH_TENSORS].tensor[k % GRAPH_TENSORS]);
    free(ports);
}

void graph_file_close(graph_file *file)
{
    free_ports(file->input, file->inputs);
    free_ports(file->output, file->outputs);
    tarn_graph_destroy(file->graph);
    *file = (graph_file){0};
}

/* ---- Tensors -------------------------------------------------------------------------------- */

bool graph_port_room(graph_port *port, graph_tensor which, tarn_complaint *complaint)
{
    size_t bytes = tarn_view_bytes(&port->view);
    if (!port->tensor[which])
        port->tensor[which] = calloc(bytes > 0 ? bytes : 1, 1);
    return port->tensor[which] ||
           tarn_complain(complaint, FAILED_WORK, "no memory for the %zu bytes of %s", bytes,
                         port->name);
}

tarn_view graph_port_view(const graph_port *port, graph_tensor which)
{
    tarn_view view = port->view;
    view.data = port->tensor[which];
    return view;
}

static bool make_room(graph_port *ports, int count, tarn_mode mode, bool values,
                      tarn_complaint *complaint)
{
    static const graph_tensor derivative[TARN_MODES] = {GRAPH_VALUE, GRAPH_TANGENT,
                                                        GRAPH_COTANGENT};
    bool good = true;
    for (int k = 0; good && k < count; k++) {
        if (values)
            good = graph_port_room(&ports[k], GRAPH_VALUE, complaint);
        if (good && ports[k].wanted)
            good = graph_port_room(&ports[k], derivative[mode], complaint);
    }
    return good;
}

bool graph_file_room(graph_file *file, tarn_mode mode, bool values, tarn_complaint *complaint)
{
    return make_room(file->input, file->inputs, mode, true, complaint) &&
           make_room(file->output, file->outputs, mode, values, complaint);
}

/* ---- Running -------------------------------------------------------------------------------- */

static void list_wanted(const graph_port *ports, int count, unsigned char *list)
{
    for (int k = 0; k < count; k++)
        list[k] = ports[k].wanted;
}

bool graph_file_compile(const graph_file *file, tarn_mode mode, bool values, tarn_program **program,
                        tarn_complaint *complaint)
{
    unsigned char *wanted = malloc((size_t)file->inputs + (size_t)file->outputs + 1);
    tarn_error error;
    *program = NULL;
    if (!wanted)
        return no_memory(complaint);
    list_wanted(file->input, file->inputs, wanted);
    list_wanted(file->output, file->outputs, wanted + file->inputs);
    tarn_request request = {mode, values, wanted + file->inputs,
                            mode == TARN_GRAPH_FORWARD ? NULL : wanted};
    bool good = !tarn_graph_compile(program, file->graph, &request, &file->options, &error);
    free(wanted);
    return good || tool_complain_library(complaint, &error);
}

/* Pointers of all ports, kind by kind. */
static void **list_tensors(const graph_port *ports, int count)
{
    void **list = malloc(((size_t)count * GRAPH_TENSORS + 1) * sizeof *list);
    for (int k = 0; list && k < count * GRAPH_TENSORS; k++)
        list[k] = ports[k % count].tensor[k / count];
    return list;
}

static tarn_status run_mode(const graph_file *file, tarn_mode mode, tarn_program *program,
                            void **in, void **out, tarn_error *error)
{
    const void *const *x = (const void *const *)in;
    const void *const *dx = x + GRAPH_TANGENT * file->inputs;
    const void *const *gy = (const void *const *)out + GRAPH_COTANGENT * file->outputs;
    if (mode == TARN_GRAPH_FORWARD)
        return tarn_program_forward(program, x, out, error);
    if (mode == TARN_GRAPH_JVP)
        return tarn_program_jvp(program, x, dx, out, out + GRAPH_TANGENT * file->outputs, error);
    return tarn_program_vjp(program, x, gy, out, in + GRAPH_COTANGENT * file->inputs, error);
}

bool graph_file_run(const graph_file *file, tarn_mode mode, tarn_program *program,
                    tarn_complaint *complaint)
{
    tarn_error error = {
        .code = TARN_NO_MEMORY, .axis = -1, .message = "no memory to run the graph"};
    void **in = list_tensors(file->input, file->inputs);
    void **out = list_tensors(file->output, file->outputs);
    bool good = in && out && !run_mode(file, mode, program, in, out, &error);
    free(in);
    free(out);
    return good || tool_complain_library(complaint, &error);
}
