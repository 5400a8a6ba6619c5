/* The text form: saving and loading is the identity, bad text is refused with its place, random
 * text never crashes; and the drawing says what is shared. */
#include "graph_reference.h"

static tarn_status load(tarn_graph **graph, const char *text, tarn_error *error)
{
    return tarn_graph_load(graph, text, strlen(text), resolve_product, NULL, NULL, error);
}

static char *saved(const tarn_graph *graph)
{
    int64_t length = tarn_graph_save(graph, NULL, 0);
    char *text = malloc((size_t)length + 1);
    CHECK(tarn_graph_save(graph, text, (size_t)length + 1) == length, "two lengths");
    CHECK((int64_t)strlen(text) == length, "the length is not that of the text");
    return text;
}

static bool same_graph(const tarn_graph *a, const tarn_graph *b)
{
    tarn_error error;
    tarn_view x, y;
    bool same = tarn_graph_values(a) == tarn_graph_values(b) &&
                tarn_graph_outputs(a) == tarn_graph_outputs(b) &&
                tarn_graph_inputs(a) == tarn_graph_inputs(b);
    for (int v = 0; same && v < tarn_graph_values(a); v++) {
        tarn_graph_view(a, v, &x, &error);
        tarn_graph_view(b, v, &y, &error);
        same = same_shape_as(&x, &y, -1) &&
               strcmp(tarn_graph_value_name(a, v), tarn_graph_value_name(b, v)) == 0;
    }
    for (int k = 0; same && k < tarn_graph_outputs(a); k++)
        same = tarn_graph_output_value(a, k) == tarn_graph_output_value(b, k);
    return same;
}

/* The loaded graph computes the same bits. */
static void check_same_function(r_graph *g, tarn_graph *loaded, rng *r)
{
    const void *x[MOST_NODES];
    void *y[MOST_NODES], *z[MOST_NODES];
    tensor ty[MOST_NODES], tz[MOST_NODES];
    tarn_error error;
    for (int k = 0; k < g->inputs; k++) {
        r_node *n = &g->node[g->input[k]];
        n->value = tensor_like(&n->view);
        fill(&n->value.view, r, random_wide);
        x[k] = n->value.memory;
    }
    for (int k = 0; k < g->outputs; k++) {
        ty[k] = tensor_like(&g->node[g->output[k]].view);
        tz[k] = tensor_like(&g->node[g->output[k]].view);
        y[k] = ty[k].memory;
        z[k] = tz[k].memory;
    }
    CHECK(!tarn_graph_forward(g->graph, x, y, NULL, &error), "%s", error.message);
    CHECK(!tarn_graph_forward(loaded, x, z, NULL, &error), "%s", error.message);
    for (int k = 0; k < g->outputs; k++) {
        CHECK(memcmp(y[k], z[k], ty[k].bytes) == 0, "output %d", k);
        tensor_free(&ty[k]);
        tensor_free(&tz[k]);
    }
}

static void test_round_trip(void)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        rng r = {seed};
        r_graph g = random_graph(&r, (tarn_dtype)(seed % TARN_DTYPES), false);
        char *text = saved(g.graph);
        tarn_graph *loaded;
        tarn_error error;
        tarn_status status = load(&loaded, text, &error);
        CHECK(status == TARN_OK, "seed %llu: %s\n%s", (unsigned long long)seed, error.message,
              text);
        if (!status) {
            char *again = saved(loaded);
            CHECK(strcmp(text, again) == 0, "seed %llu:\n%s\n%s", (unsigned long long)seed, text,
                  again);
            CHECK(same_graph(g.graph, loaded), "seed %llu", (unsigned long long)seed);
            check_same_function(&g, loaded, &r);
            free(again);
        }
        tarn_graph_destroy(loaded);
        free(text);
        free_random(&g);
    }
}

/* Special numbers keep their bits. */
static void test_constant_bits(void)
{
    static const uint32_t bits[] = {0x7fc00001, 0xff800000, 0x80000000, 1, 0x3f800001, 0x7f7fffff};
    int64_t shape[1] = {6};
    float numbers[6];
    memcpy(numbers, bits, sizeof bits);
    tarn_view view = tarn_view_dense(numbers, TARN_F32, 1, shape);
    tarn_graph *graph, *loaded;
    tarn_value v;
    tarn_error error;
    float back[6];
    void *out[1] = {back};
    CHECK(!tarn_graph_create(&graph, NULL, &error), "%s", error.message);
    CHECK(!tarn_graph_constant(graph, &view, &v, &error), "%s", error.message);
    CHECK(!tarn_graph_output(graph, v, &error), "%s", error.message);
    char *text = saved(graph);
    CHECK(!load(&loaded, text, &error), "%s", error.message);
    CHECK(!tarn_graph_forward(loaded, NULL, out, NULL, &error), "%s", error.message);
    CHECK(memcmp(back, bits, sizeof bits) == 0, "%s", text);
    free(text);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(loaded);
}

/* Decimal numbers of every form mean what strtod() says. */
static void test_decimals(void)
{
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "1",
                                          "+1.5",
                                          ".5",
                                          "5.",
                                          "1e3",
                                          "1E+3",
                                          "12.5e-3",
                                          "0.1",
                                          "1e-400",
                                          "4.9e-324",
                                          "2.2250738585072011e-308",
                                          "1797693134862315708145274237317e278",
                                          "0.000000000000000000000000000000000000000000001e45"};
    char text[200];
    double back;
    void *out[1] = {&back};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        double expected = strtod(numbers[k], NULL);
        tarn_graph *graph;
        tarn_error error;
        snprintf(text, sizeof text, "x = constant f64 scalar %s\nreturn x", numbers[k]);
        CHECK(!load(&graph, text, &error), "%s: %s", text, error.message);
        CHECK(!tarn_graph_forward(graph, NULL, out, NULL, &error), "%s", error.message);
        CHECK(memcmp(&back, &expected, sizeof back) == 0, "%s: %a", numbers[k], back);
        tarn_graph_destroy(graph);
    }
}

/* Integers at the ends of their types. */
static void test_integers(void)
{
    static const char text[] =
        "a = constant i8 3 -128 127 -1\nb = constant u8 2 255 0\nc = constant i64 2 "
        "-9223372036854775808 9223372036854775807\nd = constant u64 1 18446744073709551615\n"
        "e = constant i16 1 -32768\nf = constant i32 1 -2147483648\nreturn a b c d e f\n";
    tarn_graph *graph;
    tarn_error error;
    CHECK(!load(&graph, text, &error), "%s", error.message);
    char *again = saved(graph);
    CHECK(strcmp(text, again) == 0, "%s", again);
    free(again);
    tarn_graph_destroy(graph);
}

static void test_refusals(void)
{
    static const struct {
        const char *text;
        tarn_status code;
        const char *place;
    } cases[] = {
        {"", TARN_BAD_TEXT, "line 1, column 1"},
        {"x = input f32 4\n", TARN_BAD_TEXT, "line 2, column 1"},
        {"x = input f33 4\nreturn x", TARN_BAD_TEXT, "line 1, column 11"},
        {"x = input f32 4y\nreturn x", TARN_BAD_TEXT, "line 1, column 15"},
        {"x = input f32 -4\nreturn x", TARN_BAD_SHAPE, "line 1, column 5"},
        {"x input f32 4\nreturn x", TARN_BAD_TEXT, "line 1, column 3"},
        {"x = inputs f32 4\nreturn x", TARN_BAD_TEXT, "line 1, column 5"},
        {"x =\nreturn x", TARN_BAD_TEXT, "line 1, column 4"},
        {"1x = input f32 4\nreturn", TARN_BAD_TEXT, "line 1, column 1"},
        {"x = input f32 4x4\nx = max x kernel=2\nreturn x", TARN_BAD_TEXT, "line 2, column 1"},
        {"x = input f32 4x4\ny = max z kernel=2\nreturn y", TARN_BAD_TEXT, "line 2, column 9"},
        {"x = input f32 4x4\ny = max x kernel=5\nreturn y", TARN_DOES_NOT_FIT, "line 2, column 5"},
        {"x = input f32 4x4\ny = max x kernel=2,2,\nreturn y", TARN_BAD_TEXT, "line 2, column 11"},
        {"x = input f32 4x4\ny = max x kernel=2 pad=1,2,3 stride=1,1\nreturn y", TARN_BAD_TEXT,
         "line 2, column 30"},
        {"x = input f32 4x4\ny = max x kernel=99999999999999999999\nreturn y", TARN_BAD_TEXT,
         "line 2, column 11"},
        {"x = input f32 4x4\ny = max x kernel=2 ties=none\nreturn y", TARN_BAD_TEXT,
         "line 2, column 20"},
        {"x = input f32 4x4\ny = smooth x kernel=2 beta=0\nreturn y", TARN_BAD_VALUE,
         "line 2, column 5"},
        {"x = input f32 4x4\ny = lp x kernel=2 p=0.5\nreturn y", TARN_BAD_VALUE,
         "line 2, column 5"},
        {"x = input f32 4x4\ny = lp x kernel=2 p=two\nreturn y", TARN_BAD_TEXT,
         "line 2, column 19"},
        {"x = input f32 4x4\ny = pad x pad=-1\nreturn y", TARN_BAD_WINDOW, "line 2, column 5"},
        {"x = input f32 4x4\ny = pad x\nreturn y", TARN_BAD_TEXT, "line 2, column 10"},
        {"x = input f32 4x4\ny = pad x pad=1 spatial=9\nreturn y", TARN_BAD_TEXT,
         "line 2, column 17"},
        {"x = input f32 4x4\ny = add x\nreturn y", TARN_BAD_TEXT, "line 2, column 10"},
        {"x = input f32 4x4\ny = scale x factor=z\nreturn y", TARN_BAD_TEXT, "line 2, column 13"},
        {"x = input f32 4x4\ny = concat x x axis=2\nreturn y", TARN_BAD_RANK, "line 2, column 5"},
        {"x = input f32 4x4\ny = concat axis=0\nreturn y", TARN_BAD_ARGUMENT, "line 2, column 5"},
        {"x = input f32 4x4\ny = reshape x 17\nreturn y", TARN_BAD_SHAPE, "line 2, column 5"},
        {"x = input f32 4x4\ny = flatten x axis=q\nreturn y", TARN_BAD_TEXT, "line 2, column 15"},
        {"x = constant i8 2 1 128\nreturn x", TARN_BAD_TEXT, "line 1, column 21"},
        {"x = constant i8 3 1 2\nreturn x", TARN_BAD_TEXT, "line 1, column 22"},
        {"x = constant f16 1 0x10000\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = input f32 4x4\ny = custom sum x x f32 4x4\nreturn y", TARN_UNSUPPORTED,
         "line 2, column 5"},
        {"x = input f32 4\nreturn x y", TARN_BAD_TEXT, "line 2, column 10"},
        {"x = input f32 4\nreturn x\nz = input f32 4", TARN_BAD_TEXT, "line 3, column 1"},
        {"f32 = input f32 4\nreturn f32", TARN_BAD_TEXT, "line 1, column 1"},
        {"x = input f32 4 5\nreturn x", TARN_BAD_TEXT, "line 1, column 17"},
        {"x = constant f16 1 70000\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant f64 1 1e400\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant f64 1 1e\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant f64 1 1,5\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant f64 1 .\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant f64 1 inf\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant i8 1 0x-1\nreturn x", TARN_BAD_TEXT, "line 1, column 19"},
        {"x = constant i8 1 0x\nreturn x", TARN_BAD_TEXT, "line 1, column 19"},
        {"x = constant u64 1 18446744073709551616\nreturn x", TARN_BAD_TEXT, "line 1, column 20"},
        {"x = constant u8 1 -1\nreturn x", TARN_BAD_TEXT, "line 1, column 19"},
        {"x = input f32 4x4\ny = max x kernel=2 global\nreturn y", TARN_BAD_TEXT,
         "line 2, column 20"},
        {"x = input f32 4x4\ny = max x adaptive=2 kernel=2\nreturn y", TARN_BAD_TEXT,
         "line 2, column 22"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tarn_graph *graph = (tarn_graph *)&graph;
        tarn_error error;
        tarn_status status = load(&graph, cases[k].text, &error);
        CHECK(status == cases[k].code && error.code == status, "%s: %s, %s", cases[k].text,
              tarn_status_name(status), error.message);
        CHECK(strncmp(error.message, cases[k].place, strlen(cases[k].place)) == 0 &&
                  error.message[strlen(cases[k].place)] == ':',
              "%s: %s", cases[k].text, error.message);
        CHECK(!graph, "a graph from bad text");
        if (!status)
            tarn_graph_destroy(graph);
    }
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 10000);
    CHECK(file != NULL, "%s", path);
    if (file) {
        CHECK(fread(text, 1, 9999, file) > 0, "%s", path);
        fclose(file);
    }
    return text;
}

static tarn_graph *load_file(const char *path)
{
    char *text = read_file(path);
    tarn_graph *graph;
    tarn_error error;
    CHECK(!load(&graph, text, &error), "%s: %s", path, error.message);
    free(text);
    return graph;
}

static void test_examples(void)
{
    static const char *const names[] = {"spp", "sppf", "inception", "pyramid", "head"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char path[100];
        snprintf(path, sizeof path, "examples/graphs/%s.graph", names[k]);
        tarn_graph_destroy(load_file(path));
    }
    /* SPP and SPPF: the same bits. */
    tarn_graph *spp = load_file("examples/graphs/spp.graph");
    tarn_graph *sppf = load_file("examples/graphs/sppf.graph");
    int64_t shape[4] = {1, 512, 20, 20}, wide[4] = {1, 2048, 20, 20};
    tensor x = tensor_dense(TARN_F32, 4, shape), y = tensor_dense(TARN_F32, 4, wide);
    tensor z = tensor_dense(TARN_F32, 4, wide);
    const void *in[1] = {x.memory};
    void *first[1] = {y.memory}, *second[1] = {z.memory};
    tarn_error error;
    rng r = {1};
    fill(&x.view, &r, random_wide);
    CHECK(!tarn_graph_forward(spp, in, first, NULL, &error), "%s", error.message);
    CHECK(!tarn_graph_forward(sppf, in, second, NULL, &error), "%s", error.message);
    CHECK(memcmp(y.memory, z.memory, y.bytes) == 0, "SPPF is not SPP");
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&z);
    tarn_graph_destroy(spp);
    tarn_graph_destroy(sppf);
}

/* Bytes of good text changed, removed, repeated: whatever comes, no crash, and an error has a
 * place. */
static void test_fuzz(void)
{
    static const char good[] =
        "x = input f32 1x2x6x6\nk = constant f32 2x2 1 -0 0x7fc00001 1e9\na = max x kernel=3,3 "
        "stride=1,2 pad=1:0,1 ceil dilation=1 ties=split\nb = avg x adaptive=3,3 nopad\nc = smooth "
        "x "
        "flat beta=2 spatial=2 # words\nl = lp x kernel=2 p=3\np = pad a pad=1,1\nu = unpad p "
        "pad=1\ns = add a a\nt = "
        "scale s "
        "factor=-0.5\ny = concat s t axis=1\nr = reshape y 4x5x4\nf = flatten y axis=1\nm = custom "
        "product a s f32 1x2x5x4\nreturn y c k l\n";
    static const char alphabet[] = "0123456789xkpads=,:.-#\n\t ef\0";
    int loaded = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        rng r = {seed};
        char text[sizeof good + 40];
        size_t length = sizeof good - 1;
        memcpy(text, good, length);
        for (int64_t edits = rng_range(&r, 0, 4); edits > 0; edits--) {
            size_t at = (size_t)rng_range(&r, 0, (int64_t)length - 1);
            size_t run = (size_t)rng_range(&r, 1, 10);
            switch (rng_range(&r, 0, 3)) {
            case 0:
                text[at] = alphabet[rng_range(&r, 0, sizeof alphabet - 2)];
                break;
            case 1:
                text[at] = (char)rng_next(&r);
                break;
            case 2:
                run = run < length - at ? run : length - at;
                memmove(text + at, text + at + run, length - at - run);
                length -= run;
                break;
            default:
                if (length + run <= sizeof text && at + run <= length) {
                    memmove(text + at + run, text + at, length - at);
                    length += run;
                }
            }
            if (length == 0)
                break;
        }
        char *exact = malloc(length ? length : 1); /* so that a sanitizer sees the end */
        memcpy(exact, text, length);
        tarn_graph *graph;
        tarn_error error;
        tarn_status status =
            tarn_graph_load(&graph, exact, length, resolve_product, NULL, NULL, &error);
        CHECK(!status == (graph != NULL), "seed %llu", (unsigned long long)seed);
        CHECK(!status || strncmp(error.message, "line ", 5) == 0, "seed %llu: %s",
              (unsigned long long)seed, error.message);
        if (!status) {
            char *first = saved(graph);
            tarn_graph *again;
            CHECK(!load(&again, first, &error), "seed %llu: %s\n%s", (unsigned long long)seed,
                  error.message, first);
            tarn_graph_destroy(again);
            free(first);
            loaded++;
        }
        tarn_graph_destroy(graph);
        free(exact);
    }
    CHECK(loaded > 2000 && loaded < 18000, "%d of 20000 texts load: no use", loaded);
}

static void test_dot(void)
{
    tarn_graph *graph;
    tarn_program *program;
    tarn_error error;
    tarn_request request = {.mode = TARN_GRAPH_FORWARD};
    CHECK(!load(&graph,
                "x = input f32 1x2x8x8\na = max x kernel=2\nb = scale a factor=2\nc = scale b "
                "factor=2\nd = scale c factor=2\nunused = avg x global\nreturn d",
                &error),
          "%s", error.message);
    CHECK(!tarn_graph_compile(&program, graph, &request, NULL, &error), "%s", error.message);
    char text[4000], cut[20];
    int64_t length = tarn_graph_dot(graph, program, text, sizeof text);
    CHECK(length > 0 && length < (int64_t)sizeof text, "%lld", (long long)length);
    CHECK(strstr(text, "f32 1x2x4x4, 128 bytes"), "%s", text);
    CHECK(strstr(text, "arena 0..128\\nshares memory with b, c"), "%s", text);
    CHECK(strstr(text, "in output 0"), "%s", text);
    CHECK(strstr(text, "not computed"), "%s", text);
    CHECK(strstr(text, "n0 -> n1;"), "%s", text);
    CHECK(tarn_graph_dot(graph, program, cut, sizeof cut) == length, "the whole length");
    CHECK(strlen(cut) == sizeof cut - 1 && strncmp(cut, text, sizeof cut - 1) == 0, "%s", cut);
    CHECK(tarn_graph_dot(graph, NULL, text, sizeof text) > 0 && !strstr(text, "arena"), "%s", text);
    CHECK(tarn_graph_dot(NULL, NULL, text, sizeof text) < 0, "NULL");
    CHECK(tarn_graph_save(NULL, text, sizeof text) < 0, "NULL");
    tarn_program_destroy(program);
    tarn_graph_destroy(graph);
}

/* In a chain every second value shares with every other; the drawing stays linear. */
static void test_dot_of_chain(void)
{
    enum { CHAIN = 400 };
    tarn_graph *graph;
    tarn_program *program;
    tarn_error error;
    tarn_value v;
    int64_t shape[2] = {1, 4};
    tarn_request request = {.mode = TARN_GRAPH_FORWARD};
    CHECK(!tarn_graph_create(&graph, NULL, &error), "%s", error.message);
    CHECK(!tarn_graph_input(graph, TARN_F32, 2, shape, &v, &error), "%s", error.message);
    for (int k = 0; k < CHAIN; k++)
        CHECK(!tarn_graph_max_pool2d(graph, v, 1, 1, 1, &v, &error), "%s", error.message);
    CHECK(!tarn_graph_output(graph, v, &error), "%s", error.message);
    CHECK(!tarn_graph_compile(&program, graph, &request, NULL, &error), "%s", error.message);
    CHECK(tarn_graph_dot(graph, program, NULL, 0) < CHAIN * 300, "not linear");
    tarn_program_destroy(program);
    tarn_graph_destroy(graph);
}

int main(void)
{
    test_round_trip();
    test_constant_bits();
    test_decimals();
    test_integers();
    test_refusals();
    test_examples();
    test_fuzz();
    test_dot();
    test_dot_of_chain();
    return finish_checks();
}
