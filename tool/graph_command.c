/* tarn graph: runs, differentiates, checks and draws graphs in files. */
#include "../src/io/array_write.h"
#include "../src/io/convert.h"
#include "graph_file.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] = "tarn graph run|jvp|vjp|check|dot FILE.graph";

/* ---- Names and files ------------------------------------------------------------------------ */

/* The port that "NAME=FILE" names, and the file; a file alone is enough if there is one port. */
static bool find_port(graph_port *ports, int count, const tool_named *given, graph_port **port,
                      const char **path, tarn_complaint *complaint)
{
    size_t length = strcspn(given->value, "=");
    bool alone = given->value[length] == '\0';
    *path = alone ? given->value : given->value + length + 1;
    for (int k = 0; k < count; k++)
        if (alone ? count == 1
                  : strlen(ports[k].name) == length && memcmp(ports[k].name, given->value, length) == 0) {
            *port = &ports[k];
            return true;
        }
    if (alone)
        return tool_complain_option(complaint, given->option,
                                    "'%.60s' does not say of which value: say NAME=FILE", given->value);
    return tool_complain_option(complaint, given->option, "the graph has no such value as '%.*s'",
                                (int)(length < 60 ? length : 60), given->value);
}

static bool same_shape(const tarn_view *a, const tarn_view *b)
{
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* Reads a tensor of a port; the type is converted, the shape must be right. */
static bool load_tensor(const char *path, const graph_port *port, void **slot, int64_t memory,
                        tarn_complaint *complaint)
{
    tarn_array array = {0};
    tarn_view to = port->view;
    if (*slot)
        return tarn_complain(complaint, BAD_USAGE, "%s is given twice", port->name);
    if (!tarn_array_open(path, memory, &array, complaint))
        return false;
    bool good = same_shape(&array.view, &port->view) ||
                tarn_complain(complaint, FAILED_WORK, "does not have the shape of %s in the graph",
                              port->name);
    good = good && graph_port_room(port, slot, complaint);
    if (good) {
        to.data = *slot;
        tarn_convert(&array.view, array.swapped, &to);
        *complaint = tarn_no_complaint();
    }
    tarn_array_close(&array);
    return good;
}

static bool store_tensor(const char *path, const graph_port *port, const void *data,
                         tarn_complaint *complaint)
{
    char header[NPY_HEADER];
    size_t length = tarn_npy_header(&port->view, false, header);
    size_t bytes = tarn_view_bytes(&port->view);
    tarn_output output;
    if (tarn_file_kind_of(path) != TARN_FILE_NPY)
        return tool_complain_option(complaint, OPTION_OUTPUT, "'%.60s' is not a .npy file", path);
    if (!tarn_output_open(path, (int64_t)(length + bytes), &output, complaint))
        return false;
    if (tarn_output_write(&output, header, length, complaint) &&
        tarn_output_write(&output, data, bytes, complaint))
        return tarn_output_commit(&output, complaint);
    tarn_output_abandon(&output);
    return false;
}

/* Calls `act` for every use of an option, with the port it names. */
typedef bool (*port_act)(const char *path, graph_port *port, int64_t memory,
                         tarn_complaint *complaint);
static bool for_each_named(const tool_call *call, tool_option_id option, graph_port *ports, int count,
                           int64_t memory, port_act act, tarn_complaint *complaint)
{
    for (int k = 0; k < call->nameds; k++) {
        graph_port *port;
        const char *path;
        if (call->named[k].option != option)
            continue;
        if (!find_port(ports, count, &call->named[k], &port, &path, complaint) ||
            !act(path, port, memory, complaint))
            return false;
    }
    return true;
}

static bool load_value(const char *path, graph_port *port, int64_t memory, tarn_complaint *complaint)
{
    return load_tensor(path, port, &port->value, memory, complaint);
}

static bool load_tangent(const char *path, graph_port *port, int64_t memory,
                         tarn_complaint *complaint)
{
    return load_tensor(path, port, &port->tangent, memory, complaint);
}

static bool load_cotangent(const char *path, graph_port *port, int64_t memory,
                           tarn_complaint *complaint)
{
    return load_tensor(path, port, &port->cotangent, memory, complaint);
}

static bool store_value(const char *path, graph_port *port, int64_t memory, tarn_complaint *complaint)
{
    (void)memory;
    return store_tensor(path, port, port->value, complaint);
}

static bool store_tangent(const char *path, graph_port *port, int64_t memory,
                          tarn_complaint *complaint)
{
    (void)memory;
    return store_tensor(path, port, port->tangent, complaint);
}

static bool store_cotangent(const char *path, graph_port *port, int64_t memory,
                            tarn_complaint *complaint)
{
    (void)memory;
    return store_tensor(path, port, port->cotangent, complaint);
}
