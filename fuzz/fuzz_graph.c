/* Graphs from text: what loads is saved as text that loads to the same text, and small ones are
 * compiled and run in every mode, with the kernels that are chosen and with the specification's. */
#include "fuzz_run.h"
#include "tarn_graph.h"

enum { MOST_VALUES = 40, MOST_TEXT = 1 << 16 };

static bool is_small(const tarn_graph *graph)
{
    int64_t bytes = 0;
    tarn_view view;
    if (tarn_graph_values(graph) > MOST_VALUES || tarn_graph_outputs(graph) > MOST_VALUES)
        return false;
    for (tarn_value v = 0; v < tarn_graph_values(graph); v++) {
        fuzz_expect(!tarn_graph_view(graph, v, &view, NULL));
        bytes += (int64_t)tarn_view_bytes(&view);
        if (bytes > 2000)
            return false;
    }
    return true;
}

typedef struct {
    void *in[MOST_VALUES], *out[MOST_VALUES], *seed[MOST_VALUES], *result[MOST_VALUES];
    size_t out_bytes[MOST_VALUES], result_bytes[MOST_VALUES];
    int outs, results;
} tensors;

static void *make(const tarn_graph *graph, tarn_value v, const fuzz_bytes *b, size_t *bytes)
{
    tarn_view view;
    size_t size = 0;
    tarn_graph_view(graph, v, &view, NULL);
    size = tarn_view_bytes(&view);
    void *memory = malloc(size ? size : 1);
    fuzz_expect(memory != NULL);
    fuzz_fill(memory, size, b);
    if (bytes)
        *bytes = size;
    return memory;
}

static tensors make_tensors(const tarn_graph *graph, bool backward, const fuzz_bytes *b)
{
    tensors t = {.outs = tarn_graph_outputs(graph)};
    int inputs = tarn_graph_inputs(graph);
    t.results = backward ? inputs : t.outs;
    for (int k = 0; k < inputs; k++)
        t.in[k] = make(graph, tarn_graph_input_value(graph, k), b, NULL);
    for (int k = 0; k < (backward ? t.outs : inputs); k++)
        t.seed[k] = make(
            graph, backward ? tarn_graph_output_value(graph, k) : tarn_graph_input_value(graph, k),
            b, NULL);
    for (int k = 0; k < t.outs; k++)
        t.out[k] = make(graph, tarn_graph_output_value(graph, k), b, &t.out_bytes[k]);
    for (int k = 0; k < t.results; k++)
        t.result[k] = make(
            graph, backward ? tarn_graph_input_value(graph, k) : tarn_graph_output_value(graph, k),
            b, &t.result_bytes[k]);
    return t;
}

static void free_tensors(tensors *t)
{
    for (int k = 0; k < MOST_VALUES; k++) {
        free(t->in[k]);
        free(t->seed[k]);
        free(t->out[k]);
        free(t->result[k]);
    }
}

static tarn_status run(const tarn_graph *graph, tarn_mode mode, uint32_t isa, tensors *t,
                       tarn_error *error)
{
    tarn_options options = tarn_options_default();
    const void *const *in = (const void *const *)t->in, *const *seed = (const void *const *)t->seed;
    if (isa)
        options.isa = isa;
    return mode == TARN_GRAPH_FORWARD ? tarn_graph_forward(graph, in, t->out, &options, error)
           : mode == TARN_GRAPH_JVP
               ? tarn_graph_jvp(graph, in, seed, t->out, t->result, &options, error)
               : tarn_graph_vjp(graph, in, seed, t->out, t->result, &options, error);
}

static void run_mode(const tarn_graph *graph, tarn_mode mode, const fuzz_bytes *b)
{
    tensors t = make_tensors(graph, mode == TARN_GRAPH_VJP, b),
            s = make_tensors(graph, mode == TARN_GRAPH_VJP, b);
    tarn_error error;
    tarn_status status = run(graph, mode, 0, &t, &error);
    fuzz_expect(error.code == status && (status != 0) == (error.message[0] != '\0'));
    fuzz_expect(run(graph, mode, TARN_ISA_SPEC, &s, NULL) == status);
    for (int k = 0; k < t.outs; k++)
        fuzz_expect(memcmp(t.out[k], s.out[k], t.out_bytes[k]) == 0);
    for (int k = 0; k < t.results; k++)
        fuzz_expect(memcmp(t.result[k], s.result[k], t.result_bytes[k]) == 0);
    free_tensors(&t);
    free_tensors(&s);
}

static void round_trip(const tarn_graph *graph)
{
    static char once[MOST_TEXT], twice[MOST_TEXT];
    tarn_graph *again;
    int64_t length = tarn_graph_save(graph, once, sizeof once);
    fuzz_expect(length >= 0);
    if (length >= MOST_TEXT)
        return;
    fuzz_expect(!tarn_graph_load(&again, once, (size_t)length, NULL, NULL, NULL, NULL));
    fuzz_expect(tarn_graph_save(again, twice, sizeof twice) == length && strcmp(once, twice) == 0);
    tarn_graph_destroy(again);
    fuzz_expect(tarn_graph_dot(graph, NULL, twice, sizeof twice) > 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    tarn_graph *graph;
    tarn_error error;
    fuzz_bytes rest = {data, size, size / 2};
    tarn_status status =
        tarn_graph_load(&graph, (const char *)data, size, NULL, NULL, NULL, &error);
    fuzz_expect(error.code == status && (status != 0) == (error.message[0] != '\0'));
    fuzz_expect((graph == NULL) == (status != 0));
    if (status)
        return 0;
    round_trip(graph);
    for (int mode = 0; mode < TARN_MODES && is_small(graph); mode++)
        run_mode(graph, (tarn_mode)mode, &rest);
    tarn_graph_destroy(graph);
    return 0;
}
