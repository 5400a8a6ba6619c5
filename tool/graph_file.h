/* A graph in a file with its tensors: what the verbs of `tarn graph` work on. */
#ifndef TARN_TOOL_GRAPH_FILE_H
#define TARN_TOOL_GRAPH_FILE_H

#include "tarn_graph.h"
#include "tool.h"

/* The tensors of one input or output, dense, in the type of its value; NULL: not there. */
typedef struct graph_port {
    const char *name;
    tarn_view view; /* shape and type */
    void *value, *tangent, *cotangent;
    unsigned char wanted; /* as tarn_request.inputs and .outputs: takes part */
} graph_port;

typedef struct graph_file {
    const char *path;
    tarn_graph *graph;
    int inputs, outputs;
    graph_port *input, *output;
} graph_file;

/* Loads a graph; errors name line and column. Close it with graph_file_close(), also on failure. */
bool graph_file_open(const char *path, int64_t memory, graph_file *file,
                     tarn_complaint *complaint);
void graph_file_close(graph_file *file);

/* Room for a tensor of a port, zeroed; `slot` is one of its three. */
bool graph_port_room(const graph_port *port, void **slot, tarn_complaint *complaint);

/* Room for every tensor of a mode that is not there yet, of the ports that take part. */
bool graph_file_room(graph_file *file, tarn_mode mode, bool values, tarn_complaint *complaint);

/* Compiles what takes part; `isa` 0 is all. */
bool graph_file_compile(const graph_file *file, tarn_mode mode, bool values, uint32_t isa,
                        tarn_program **program, tarn_complaint *complaint);
/* Runs a program of that mode on the tensors of the ports. */
bool graph_file_run(const graph_file *file, tarn_mode mode, tarn_program *program,
                    tarn_complaint *complaint);

/* The adjoint identity, finite differences, and the program against one that keeps every value and uses the
 * specification alone; with `other`, also whether both graphs compute the same. Tensors that are not there
 * are made up. Prints a line for each; false also if one fails. */
bool graph_file_check(graph_file *file, graph_file *other, tarn_complaint *complaint);

#endif
