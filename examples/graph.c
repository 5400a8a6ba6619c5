/* A graph: loaded from text or built node by node, with a node of our own; value and gradient in
 * one call; the memory it takes; a drawing for Graphviz.
 *
 * usage: graph [file.graph]      e.g. graph examples/graphs/spp.graph | dot -Tsvg > spp.svg */
#include "tarn_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(tarn_status status, const tarn_error *error)
{
    if (status) {
        fprintf(stderr, "graph: %s: %s\n", tarn_status_name(status), error->message);
        exit(EXIT_FAILURE);
    }
}

/* ---- A node of our own: the square --------------------------------------------------------- */

static size_t count_elements(const tarn_view *view)
{
    return tarn_view_bytes(view) / tarn_dtype_size(view->dtype);
}

static tarn_status square(void *context, const tarn_view *x, const tarn_view *y, tarn_error *error)
{
    const float *from = x[0].data;
    float *to = y->data;
    (void)context, (void)error;
    for (size_t k = 0; k < count_elements(y); k++)
        to[k] = from[k] * from[k];
    return TARN_OK;
}

static tarn_status square_vjp(void *context, const tarn_view *x, const tarn_view *gy,
                              const tarn_view *gx, tarn_error *error)
{
    const float *at = x[0].data, *g = gy->data;
    float *to = gx[0].data;
    (void)context, (void)error;
    for (size_t k = 0; k < count_elements(gy); k++)
        to[k] = 2 * at[k] * g[k];
    return TARN_OK;
}

/* The energy of an image: means of squares over windows of 2x2. */
static void show_custom_node(void)
{
    float x[16], y[4], gx[16];
    const float gy[4] = {1, 1, 1, 1};
    const int64_t shape[2] = {4, 4};
    const void *inputs[1] = {x}, *cotangents[1] = {gy};
    void *outputs[1] = {y}, *gradients[1] = {gx};
    tarn_graph *graph;
    tarn_value image, squares, energy;
    tarn_error error;
    tarn_custom custom = {.name = "square",
                          .dtype = TARN_F32,
                          .rank = 2,
                          .shape = {4, 4},
                          .forward = square,
                          .vjp = square_vjp};
    for (int k = 0; k < 16; k++)
        x[k] = (float)k;
    must(tarn_graph_create(&graph, NULL, &error), &error);
    must(tarn_graph_input(graph, TARN_F32, 2, shape, &image, &error), &error);
    must(tarn_graph_custom(graph, 1, &image, &custom, &squares, &error), &error);
    must(tarn_graph_avg_pool2d(graph, squares, 2, 2, 2, &energy, &error), &error);
    must(tarn_graph_output(graph, energy, &error), &error);
    must(tarn_graph_vjp(graph, inputs, cotangents, outputs, gradients, NULL, &error), &error);
    fprintf(stderr, "energy %g %g %g %g, gradient of the last cell %g\n", y[0], y[1], y[2], y[3],
            gx[15]);
    tarn_graph_destroy(graph);
}

/* ---- A file, drawn ------------------------------------------------------------------------- */

static const char head[] = "x = input f32 2x256x7x7\nmean = avg x global\npeak = max x global\n"
                           "part = scale peak factor=0.5\nboth = add mean part\n"
                           "y = flatten both axis=1\nreturn y\n";

static char *read_text(const char *path)
{
    enum { MOST = 1 << 20 };
    char *text = calloc(1, MOST);
    FILE *file = text ? fopen(path, "rb") : NULL;
    if (!file || (fread(text, 1, MOST - 1, file) == 0 && ferror(file))) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return text;
}

static void draw(const char *text)
{
    tarn_graph *graph;
    tarn_program *program;
    tarn_memory memory;
    tarn_error error;
    tarn_request request = {TARN_GRAPH_VJP, 1, NULL, NULL}; /* value and gradient */
    must(tarn_graph_load(&graph, text, strlen(text), NULL, NULL, NULL, &error), &error);
    must(tarn_graph_compile(&program, graph, &request, NULL, &error), &error);
    must(tarn_program_memory(program, &memory, &error), &error);
    fprintf(stderr, "%d values, %d steps, arena %lld bytes, without reuse %lld\n",
            tarn_graph_values(graph), memory.steps, (long long)memory.arena,
            (long long)memory.without_reuse);
    int64_t length = tarn_graph_dot(graph, program, NULL, 0);
    char *drawing = malloc((size_t)length + 1);
    if (!drawing)
        exit(EXIT_FAILURE);
    tarn_graph_dot(graph, program, drawing, (size_t)length + 1);
    fputs(drawing, stdout);
    free(drawing);
    tarn_program_destroy(program);
    tarn_graph_destroy(graph);
}

int main(int count, char **arguments)
{
    char *text = count > 1 ? read_text(arguments[1]) : NULL;
    show_custom_node();
    draw(text ? text : head);
    free(text);
    return EXIT_SUCCESS;
}
