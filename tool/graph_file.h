/* A graph in a file with its tensors: what the verbs of `tarn graph` work on. */
#ifndef TARN_TOOL_GRAPH_FILE_H
#define TARN_TOOL_GRAPH_FILE_H

#include "tarn_graph.h"
#include "tool.h"

/* The tensors that an input or output can have. */
typedef enum graph_tensor {
    GRAPH_VALUE,
    GRAPH_TANGENT,
    GRAPH_COTANGENT,
    GRAPH_TENSORS
} graph_tensor;

/* An input or output. */
typedef struct graph_port {
    const char *name;
    tarn_view view;              /* shape and type of its tensors, which are dense */
    void *tensor[GRAPH_TENSORS]; /* NULL: not there */
    bool wanted;                 /* takes part: as tarn_request.inputs and .outputs */
} graph_port;

typedef struct graph_file {
    const char *path;
    tarn_options options; /* threads and kernel families */
    tarn_graph *graph;
    int inputs, outputs;
    graph_port *input, *output;
} graph_file;

/* Loads a graph; errors name line and column. Close it with graph_file_close(), also on failure. */
bool graph_file_open(const char *path, int64_t memory, const tarn_options *options,
                     graph_file *file, tarn_complaint *complaint);
void graph_file_close(graph_file *file);

/* Whether it can have tangents and cotangents. */
static inline bool graph_port_varies(const graph_port *port)
{
    return port->view.dtype <= TARN_BF16;
}

/* Room for a tensor that is not there yet, zeroed. */
bool graph_port_room(graph_port *port, graph_tensor which, tarn_complaint *complaint);
/* The tensor with its data. */
tarn_view graph_port_view(const graph_port *port, graph_tensor which);

/* Room for every tensor that a mode reads or writes, of the ports that take part; with `values`
 * also for the values of outputs. */
bool graph_file_room(graph_file *file, tarn_mode mode, bool values, tarn_complaint *complaint);

/* Compiles what takes part, with the options of the file. */
bool graph_file_compile(const graph_file *file, tarn_mode mode, bool values, tarn_program **program,
                        tarn_complaint *complaint);
/* Runs a program of that mode on the tensors of the ports. */
bool graph_file_run(const graph_file *file, tarn_mode mode, tarn_program *program,
                    tarn_complaint *complaint);

/* Makes every value an output, behind those there are: then none shares its memory. */
bool graph_file_keep_all(graph_file *file, tarn_complaint *complaint);

/* What a check found. */
typedef struct graph_finding {
    const char *name;
    tool_verdict verdict;
    char text[160];
} graph_finding;

enum { GRAPH_CHECKS = 4 };

/* The adjoint identity, finite differences, the program against one that keeps every value and uses
 * the specification alone, and with `other` whether both graphs compute the same. Tensors that are
 * not there are made up; *count says how many findings there are. False if a check could not be
 * made. */
bool graph_file_check(graph_file *file, graph_file *other, graph_finding findings[GRAPH_CHECKS],
                      int *count, tarn_complaint *complaint);

#endif
