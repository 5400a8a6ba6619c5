#include "graph_file.h"
#include "../src/io/region.h"

#include <stdlib.h>

/* ---- Opening -------------------------------------------------------------------------------- */

static bool make_ports(const graph_file *file, int count,
                       tarn_value (*value_of)(const tarn_graph *graph, int k), graph_port **ports,
                       tarn_complaint *complaint)
{
    tarn_error error;
    *ports = calloc((size_t)(count > 0 ? count : 1), sizeof **ports);
    if (!*ports)
        return tarn_complain(complaint, FAILED_WORK, "no memory for a graph of that size");
    for (int k = 0; k < count; k++) {
        graph_port *port = &(*ports)[k];
        tarn_value value = value_of(file->graph, k);
        port->name = tarn_graph_value_name(file->graph, value);
        port->wanted = 1;
        if (tarn_graph_view(file->graph, value, &port->view, &error))
            return tool_complain_library(complaint, &error);
    }
    return true;
}

bool graph_file_open(const char *path, int64_t memory, graph_file *file, tarn_complaint *complaint)
{
    tarn_region text = {0};
    tarn_error error;
    *file = (graph_file){.path = path};
    tarn_complaint_file(complaint, path);
    bool good = tarn_region_open(path, memory, &text, complaint);
    if (good && tarn_graph_load(&file->graph, (const char *)text.data, text.size, NULL, NULL, NULL,
                                &error))
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
    for (int k = 0; ports && k < count; k++) {
        free(ports[k].value);
        free(ports[k].tangent);
        free(ports[k].cotangent);
    }
    free(ports);
}

void graph_file_close(graph_file *file)
{
    free_ports(file->input, file->inputs);
    free_ports(file->output, file->outputs);
    tarn_graph_destroy(file->graph);
    *file = (graph_file){0};
}

bool graph_port_room(const graph_port *port, void **slot, tarn_complaint *complaint)
{
    size_t bytes = tarn_view_bytes(&port->view);
    if (!*slot)
        *slot = calloc(bytes > 0 ? bytes : 1, 1);
    return *slot || tarn_complain(complaint, FAILED_WORK, "no memory for the %zu bytes of %s",
                                  bytes, port->name);
}

bool graph_file_room(graph_file *file, tarn_mode mode, bool values, tarn_complaint *complaint)
{
    bool good = true;
    for (int k = 0; good && k < file->inputs; k++) {
        graph_port *port = &file->input[k];
        good = graph_port_room(port, &port->value, complaint);
        if (good && mode == TARN_GRAPH_JVP && port->wanted)
            good = graph_port_room(port, &port->tangent, complaint);
        if (good && mode == TARN_GRAPH_VJP && port->wanted)
            good = graph_port_room(port, &port->cotangent, complaint);
    }
    for (int k = 0; good && k < file->outputs; k++) {
        graph_port *port = &file->output[k];
        if (!port->wanted)
            continue;
        if (values || mode == TARN_GRAPH_FORWARD)
            good = graph_port_room(port, &port->value, complaint);
        if (good && mode == TARN_GRAPH_JVP)
            good = graph_port_room(port, &port->tangent, complaint);
        if (good && mode == TARN_GRAPH_VJP)
            good = graph_port_room(port, &port->cotangent, complaint);
    }
    return good;
}

/* ---- Running -------------------------------------------------------------------------------- */

static void list_wanted(const graph_port *ports, int count, unsigned char *list)
{
    for (int k = 0; k < count; k++)
        list[k] = ports[k].wanted;
}

bool graph_file_compile(const graph_file *file, tarn_mode mode, bool values, uint32_t isa,
                        tarn_program **program, tarn_complaint *complaint)
{
    unsigned char *wanted = malloc((size_t)file->inputs + (size_t)file->outputs + 1);
    tarn_options options = tarn_options_default();
    tarn_error error;
    *program = NULL;
    if (!wanted)
        return tarn_complain(complaint, FAILED_WORK, "no memory for a graph of that size");
    options.isa = isa;
    list_wanted(file->input, file->inputs, wanted);
    list_wanted(file->output, file->outputs, wanted + file->inputs);
    tarn_request request = {mode, values, wanted + file->inputs,
                            mode == TARN_GRAPH_FORWARD ? NULL : wanted};
    bool good = !tarn_graph_compile(program, file->graph, &request, &options, &error);
    free(wanted);
    return good || tool_complain_library(complaint, &error);
}

enum { VALUES, TANGENTS, COTANGENTS, KINDS };

/* Pointers of all ports, kind by kind. */
static void **list_tensors(const graph_port *ports, int count)
{
    void **list = malloc(((size_t)count * KINDS + 1) * sizeof *list);
    for (int k = 0; list && k < count; k++) {
        list[VALUES * count + k] = ports[k].value;
        list[TANGENTS * count + k] = ports[k].tangent;
        list[COTANGENTS * count + k] = ports[k].cotangent;
    }
    return list;
}

static tarn_status run_mode(const graph_file *file, tarn_mode mode, tarn_program *program,
                            void **in, void **out, tarn_error *error)
{
    const void *const *x = (const void *const *)in;
    const void *const *dx = x + TANGENTS * file->inputs;
    const void *const *gy = (const void *const *)out + COTANGENTS * file->outputs;
    if (mode == TARN_GRAPH_FORWARD)
        return tarn_program_forward(program, x, out, error);
    if (mode == TARN_GRAPH_JVP)
        return tarn_program_jvp(program, x, dx, out, out + TANGENTS * file->outputs, error);
    return tarn_program_vjp(program, x, gy, out, in + COTANGENTS * file->inputs, error);
}

bool graph_file_run(const graph_file *file, tarn_mode mode, tarn_program *program,
                    tarn_complaint *complaint)
{
    tarn_error error = {.code = TARN_NO_MEMORY, .axis = -1, .message = "no memory to run the graph"};
    void **in = list_tensors(file->input, file->inputs);
    void **out = list_tensors(file->output, file->outputs);
    bool good = in && out && !run_mode(file, mode, program, in, out, &error);
    free(in);
    free(out);
    return good || tool_complain_library(complaint, &error);
}
