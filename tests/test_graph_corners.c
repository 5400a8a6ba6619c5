/* Corners of graphs that no other test looked into, as mutants (tools/mutate.py) and branches that
 * nothing had reached (tools/coverage.py) showed. */
#include "graph_reference.h"

static tarn_graph *graph;
static tarn_error error;

#define GOOD(call) CHECK((call) == TARN_OK, "%s: %s", #call, error.message)
#define BAD(expected, call)                                                                        \
    do {                                                                                           \
        tarn_status got = (call);                                                                  \
        CHECK(got == expected && error.code == got && error.message[0], "%s: %s, %s", #call,       \
              tarn_status_name(got), error.message);                                               \
    } while (0)

static tarn_value input(int rank, const int64_t *shape)
{
    tarn_value value;
    if (tarn_graph_create(&graph, NULL, &error) ||
        tarn_graph_input(graph, TARN_F32, rank, shape, &value, &error))
        abort();
    return value;
}

/* Numbers of a descriptor behind its last axis mean nothing, in the text neither. */
static void test_unused_members(void)
{
    tarn_value value, x = input(3, (int64_t[]){1, 4, 4});
    tarn_pool pool = tarn_max_pool2d(2, 2, 2);
    char text[1000];
    for (int a = 2; a < TARN_MAX_SPATIAL; a++)
        pool.kernel[a] = pool.stride[a] = pool.dilation[a] = pool.pad_lo[a] = pool.pad_hi[a] =
            pool.out[a] = 7;
    CHECK(tarn_graph_pool(graph, x, &pool, &value, &error) == TARN_OK, "%s", error.message);
    tarn_graph_output(graph, value, &error);
    tarn_graph_save(graph, text, sizeof text);
    CHECK(strcmp(text, "v0 = input f32 1x4x4\nv1 = max v0 kernel=2,2 stride=2,2\nreturn v1\n") == 0,
          "%s", text);
    tarn_graph_destroy(graph);
}

static void test_reshapes(void)
{
    static const struct {
        int from_rank, to_rank;
        int64_t from[2], to[2];
        tarn_status expected;
    } cases[] = {{2, 2, {0, 4}, {8, 0}, TARN_OK},       {2, 1, {0, 4}, {0}, TARN_OK},
                 {2, 1, {0, 4}, {1}, TARN_BAD_SHAPE},   {2, 0, {0, 4}, {0}, TARN_BAD_SHAPE},
                 {1, 2, {4}, {0, 4}, TARN_BAD_SHAPE},   {1, 0, {1}, {0}, TARN_OK},
                 {0, 2, {0}, {1, 1}, TARN_OK},          {2, 2, {2, 3}, {3, 2}, TARN_OK},
                 {2, 2, {2, 3}, {5, 1}, TARN_BAD_SHAPE}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tarn_value value, x = input(cases[k].from_rank, cases[k].from);
        CHECK(tarn_graph_reshape(graph, x, cases[k].to_rank, cases[k].to, &value, &error) ==
                  cases[k].expected,
              "case %zu: %s", k, error.message);
        tarn_graph_destroy(graph);
    }
}

/* ---- Refusals ------------------------------------------------------------------------------ */

/* Every builder without a graph, and with an operand that is none. */
static void test_handles(void)
{
    const int64_t ones[2] = {1, 1};
    float number = 1;
    tarn_value y = -5, x = input(2, ones), both[2] = {x, 7};
    tarn_pool pool = tarn_max_pool2d(1, 1, 1);
    tarn_view view = tarn_view_dense(&number, TARN_F32, 2, ones);
    tarn_custom custom = product_of(&view);
    for (int k = 0; k < 3; k++) {
        tarn_graph *g = k == 0 ? NULL : graph;
        tarn_value *to = k == 1 ? NULL : &y, bad = k == 2 ? 1 : x;
        if (k < 2) {
            BAD(TARN_BAD_ARGUMENT, tarn_graph_input(g, TARN_F32, 2, ones, to, &error));
            BAD(TARN_BAD_ARGUMENT, tarn_graph_constant(g, &view, to, &error));
            BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(g, 0, NULL, &custom, to, &error));
        }
        BAD(TARN_BAD_ARGUMENT, tarn_graph_pool(g, bad, &pool, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_pad(g, bad, 2, ones, ones, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_add(g, x, bad, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_scale(g, bad, 1, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_concat(g, 2, both, 0, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_reshape(g, bad, 2, ones, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_flatten(g, bad, 0, to, &error));
        BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(g, 2, both, &custom, to, &error));
    }
    CHECK(tarn_graph_values(graph) == 1 && y == -5, "a refused node was pushed");
    tarn_graph_destroy(graph);
}

static void test_builders(void)
{
    int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, most[1] = {INT64_MAX}, big[2] = {1LL << 62, 0};
    int64_t wide[2] = {1LL << 62, 1}, zero[1] = {0};
    tarn_value y, x = input(9, ones), e, w, flat;
    tarn_view view = tarn_view_dense(NULL, TARN_F32, 9, ones);
    tarn_custom custom = product_of(&view);
    GOOD(tarn_graph_input(graph, TARN_I8, 2, big, &e, &error));
    GOOD(tarn_graph_input(graph, TARN_I8, 2, wide, &w, &error));
    GOOD(tarn_graph_flatten(graph, x, 0, &flat, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_pad(graph, x, 1, ones, NULL, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_pad(graph, x, 9, ones, ones, &y, &error));
    BAD(TARN_OVERFLOW, tarn_graph_pad(graph, x, 1, most, zero, &y, &error));
    BAD(TARN_OVERFLOW, tarn_graph_pad(graph, x, 1, zero, most, &y, &error));
    BAD(TARN_BAD_SHAPE, tarn_graph_pad(graph, e, 1, ones, ones, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_concat(graph, 2, (tarn_value[]){x, flat}, 0, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_concat(graph, 3, (tarn_value[]){x, flat, x}, 0, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_concat(graph, 1, &x, -1, &y, &error));
    BAD(TARN_OVERFLOW, tarn_graph_concat(graph, 2, (tarn_value[]){e, e}, 0, &y, &error));
    BAD(TARN_OVERFLOW, tarn_graph_concat(graph, 2, (tarn_value[]){w, w}, 1, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_reshape(graph, x, TARN_MAX_RANK + 1, ones, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_reshape(graph, x, -1, ones, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_flatten(graph, x, -1, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(graph, 1, &x, NULL, &y, &error));
    custom.name = NULL;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(graph, 1, &x, &custom, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(graph, x, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(graph, x, "", &error));
    char name[TARN_NAME_BYTES + 1] = {0}; /* one letter more than fit */
    memset(name, 'a', TARN_NAME_BYTES);
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(graph, x, name, &error));
    tarn_pool piece = tarn_max_pool2d(1, 1, 1);
    piece.whole[1] = piece.count[1] = 1;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_pool(graph, x, &piece, &y, &error));
    CHECK(tarn_graph_values(graph) == 4, "a refused node was pushed");
    CHECK(tarn_graph_find(NULL, "x") == -1 && tarn_graph_find(graph, NULL) == -1, "found");
    for (int k = -1; k < 5; k += k < 0 ? 5 : 1) {
        CHECK(tarn_graph_input_value(graph, k) == -1, "%d", k);
        CHECK(tarn_graph_output_value(graph, k) == -1, "%d", k);
        CHECK(!tarn_graph_value_name(graph, k), "%d", k);
        BAD(TARN_BAD_ARGUMENT, tarn_graph_view(graph, k, &view, &error));
    }
    tarn_graph_destroy(graph);
}

/* Neither function of an allocator: malloc and free; one alone is refused. */
static void test_allocators(void)
{
    tarn_allocator none = {NULL, NULL, NULL},
                   half = {.release = tarn_options_default().allocator.release};
    GOOD(tarn_graph_create(&graph, &none, &error));
    tarn_graph_destroy(graph);
    BAD(TARN_BAD_ARGUMENT, tarn_graph_create(&graph, &half, &error));
    half = (tarn_allocator){.allocate = tarn_options_default().allocator.allocate};
    BAD(TARN_BAD_ARGUMENT, tarn_graph_create(&graph, &half, &error));
}

/* ---- Text ---------------------------------------------------------------------------------- */

static int destroyed;

static void count_destruction(void *context)
{
    (void)context;
    destroyed++;
}

/* Refuses without a word, or gives a node that the builder refuses. */
static tarn_status resolve_badly(void *context, const char *name, int count,
                                 const tarn_view *operands, tarn_custom *custom, tarn_error *bad)
{
    (void)count, (void)operands, (void)bad;
    *custom = (tarn_custom){.context = context, .destroy = count_destruction};
    return name[0] == 'r' ? TARN_UNSUPPORTED : TARN_OK;
}

/* What was loaded is saved so that loading it gives it back. */
static void check_saved(void)
{
    char first[1000], second[1000];
    tarn_graph *again;
    int64_t length = tarn_graph_save(graph, first, sizeof first);
    GOOD(tarn_graph_load(&again, first, (size_t)length, NULL, NULL, NULL, &error));
    tarn_graph_save(again, second, sizeof second);
    CHECK(strcmp(first, second) == 0, "%s, then %s", first, second);
    CHECK(!strstr(first, "avg") || strstr(first, " div=3\n"), "%s", first);
    tarn_graph_destroy(again);
}

static void test_text(void)
{
    static const struct {
        const char *line;
        tarn_status expected;
    } cases[] = {
        {"y = max x kernel=2 adaptive=3", TARN_BAD_TEXT},
        {"y = max x adaptive=3 global", TARN_BAD_TEXT},
        {"y = max x adaptive=3 adaptive=3", TARN_BAD_TEXT},
        {"y = max x kernel=1,1,1 spatial=2", TARN_BAD_TEXT},
        {"y = max x kernel=1,1 spatial=2", TARN_OK},
        {"y = max x kernel=1 spatial=1", TARN_OK},
        {"y = max x kernel=1 spatial=9", TARN_BAD_TEXT},
        {"y = avg x kernel=1 div=3", TARN_OK},
        {"y = avg x kernel=1 div=-3", TARN_BAD_VALUE},
        {"y = avg x kernel=1 div=3.5", TARN_BAD_TEXT},
        {"y = max x kernel=1,1,1,1,1,1,1,1,1", TARN_BAD_TEXT},
        {"y = max x kernel=1,", TARN_BAD_TEXT},
        {"y = max x kernel=1;1", TARN_BAD_TEXT},
        {"y = pad x pad=1,1 spatial=1", TARN_BAD_TEXT},
        {"y = pad x pad=1,1 spatial=2", TARN_OK},
        {"y = pad x pad=1 spatial=1", TARN_OK},
        {"y = unpad x pad=0 spatial=1", TARN_OK},
        {"y = pad x pad=1:", TARN_BAD_TEXT},
        {"y = concat x x axis=1 ", TARN_OK},
        {"y = concat x x axis=1x", TARN_BAD_TEXT},
        {"y = flatten x axis=-1", TARN_BAD_RANK},
        {"y = flatten x axis=-3000000000", TARN_BAD_TEXT},
        {"y = flatten x axis=3000000000", TARN_BAD_TEXT},
        {"y = reshape x "
         "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"
         "x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1",
         TARN_BAD_TEXT},
        {"y = reshape x 4x", TARN_BAD_TEXT},
        {"y = reshape x 4;1", TARN_BAD_TEXT},
        {"y = custom refused x f32 2x2", TARN_UNSUPPORTED},
        {"y = custom other x f32 2x2", TARN_BAD_ARGUMENT},
    };
    char text[5000];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int length = snprintf(text, sizeof text, "x = input f32 2x2\n%s\nreturn y", cases[k].line);
        tarn_status status =
            tarn_graph_load(&graph, text, (size_t)length, resolve_badly, NULL, NULL, &error);
        CHECK(status == cases[k].expected, "%s: %s", cases[k].line, error.message);
        CHECK(!status || strncmp(error.message, "line 2, column ", 15) == 0, "%s", error.message);
        if (!status)
            check_saved();
        tarn_graph_destroy(graph);
        CHECK(tarn_graph_load(&graph, text, (size_t)length, resolve_badly, NULL, NULL, NULL) ==
                  status,
              "%s without an error", cases[k].line);
        tarn_graph_destroy(graph);
    }
    CHECK(destroyed == 2, "%d: the loader frees what a refused node had", destroyed);
    BAD(TARN_BAD_TEXT,
        tarn_graph_load(&graph, "y = custom c f32 2x2", 20, NULL, NULL, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_load(NULL, "", 0, NULL, NULL, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_load(&graph, NULL, 1, NULL, NULL, NULL, &error));
    BAD(TARN_BAD_TEXT, tarn_graph_load(&graph, NULL, 0, NULL, NULL, NULL, &error));
    BAD(TARN_BAD_TEXT, tarn_graph_load(&graph, "x = input f32 2\0", 17, NULL, NULL, NULL, &error));
    memset(text, 'a', sizeof text);
    BAD(TARN_BAD_TEXT, tarn_graph_load(&graph, text, sizeof text, NULL, NULL, NULL, &error));
}

/* Loads, saves and compares. */
static void check_comes_back(const char *text)
{
    char saved[1000];
    GOOD(tarn_graph_load(&graph, text, strlen(text), NULL, NULL, NULL, &error));
    tarn_graph_save(graph, saved, sizeof saved);
    CHECK(strcmp(saved, text) == 0, "%s", saved);
    tarn_graph_destroy(graph);
}

/* Tie rules that are not the usual ones of their windows are written, and no others; so are
 * skipped values. */
static void test_saved_rules(void)
{
    check_comes_back("x = input f32 2x2\na = max x kernel=1,1 stride=1,1 ties=split\n"
                     "b = min x global ties=first\nc = max x kernel=1,1 stride=1,1\n"
                     "d = min x global\nreturn a b c d\n");
    check_comes_back("x = input f32 2x2\na = avg x kernel=2,2 stride=2,2 skip=nan\n"
                     "b = max x kernel=2,2 stride=2,2 skip=0.1 min=3\n"
                     "c = avg x kernel=2,2 stride=2,2 div=1\nreturn a b c\n");
    check_comes_back("x = input u8 2x2\na = mode x kernel=2,2 stride=2,2 skip=255\nreturn a\n");
}

/* One padding without a number of axes is that of a picture: two of them. */
static void test_padded_axes(void)
{
    static const char text[] = "x = input f32 3x2x2\ny = pad x pad=1\nreturn y\n";
    tarn_view y;
    GOOD(tarn_graph_load(&graph, text, sizeof text - 1, NULL, NULL, NULL, &error));
    GOOD(tarn_graph_view(graph, 1, &y, &error));
    CHECK(y.shape[0] == 3 && y.shape[1] == 4 && y.shape[2] == 4, "%d x %d x %d", (int)y.shape[0],
          (int)y.shape[1], (int)y.shape[2]);
    tarn_graph_destroy(graph);
}

/* The gradient of a mean that skips needs x, which that of another mean does not. */
static void test_gradient_of_skipping_mean(void)
{
    static const char text[] =
        "x = input f64 2x2\na = scale x factor=2\nb = avg a kernel=2,2 skip=0\nreturn b\n";
    const double x[4] = {1, 0, 2, 3}, gy = 3;
    double gx[4];
    GOOD(tarn_graph_load(&graph, text, sizeof text - 1, NULL, NULL, NULL, &error));
    GOOD(tarn_graph_vjp(graph, (const void *[]){x}, (const void *[]){&gy}, NULL, (void *[]){gx},
                        NULL, &error));
    CHECK(gx[0] == 2 && gx[1] == 0 && gx[2] == 2 && gx[3] == 2, "%g %g %g %g", gx[0], gx[1], gx[2],
          gx[3]);
    tarn_graph_destroy(graph);
}

/* ---- Pools that differ in one number -------------------------------------------------------- */

/* Each is planned for itself: the result of a graph with all of them is that of each alone. */
static void test_nearly_same_pools(void)
{
    static const char *const lines[] = {
        "avg x kernel=2 stride=1 pad=1",
        "avg x kernel=2 stride=1 pad=1 div=3",
        "sum x kernel=2 stride=1 pad=1",
        "avg x kernel=2 stride=1 pad=1 div=4",
        "avg x kernel=2 stride=1 pad=1 nopad",
        "avg x kernel=2 stride=1 pad=1:0",
        "avg x kernel=2 stride=1 pad=0:1",
        "avg x kernel=2 stride=1 pad=1 dilation=2",
        "avg x kernel=2 stride=2 pad=1",
        "avg x kernel=2,1 stride=1 pad=1,0",
        "avg x kernel=2 stride=1 pad=1 skip=nan",
        "avg x kernel=2 stride=1 pad=1 skip=0",
        "avg x kernel=2 stride=1 pad=1 skip=1",
        "avg x kernel=2 stride=1 pad=1 skip=1.0",
        "avg x kernel=2 stride=1 pad=1 skip=2.0",
        "avg x kernel=2 stride=1 pad=1 skip=1 min=2",
        "max x kernel=2 stride=1 pad=1",
        "max z kernel=2 stride=1 pad=1",
        "max v kernel=2 stride=1 pad=1",
        "max i kernel=2 stride=1 pad=1",
        "max x kernel=2 stride=1 pad=1 ties=split",
        "max x kernel=2 stride=1 pad=1 ties=all",
        "max x kernel=2 stride=2",
        "max x kernel=2 stride=2 ceil",
        "max x adaptive=2",
        "max x adaptive=3",
        "max x global",
        "max x flat",
        "smooth x kernel=2 beta=1",
        "smooth x kernel=2 beta=2",
        "lp x kernel=2 p=1",
        "lp x kernel=2 p=3",
    };
    enum { COUNT = sizeof lines / sizeof *lines, MOST = 64 };
    static const char inputs[] = "x = input f32 1x3x5\nz = input f32 1x3x4\nv = input f32 1x1x3x5\n"
                                 "i = input i32 1x3x5\n";
    float x[15], y[2][COUNT][MOST];
    int32_t i[15];
    char text[4000];
    for (int k = 0; k < 15; k++) {
        i[k] = k * 7 % 5 - 2;
        x[k] = (float)(i[k] + 1);
    }
    memset(y, 0, sizeof y);
    const void *in[4] = {x, x, x, i};
    for (int together = 0; together < 2; together++)
        for (int first = 0; first < COUNT; first += together ? COUNT : 1) {
            int last = together ? COUNT : first + 1,
                length = snprintf(text, sizeof text, "%s", inputs);
            for (int k = first; k < last; k++)
                length += snprintf(text + length, sizeof text - (size_t)length, "p%d = %s\n", k,
                                   lines[k]);
            length += snprintf(text + length, sizeof text - (size_t)length, "return");
            for (int k = first; k < last; k++)
                length += snprintf(text + length, sizeof text - (size_t)length, " p%d", k);
            void *out[COUNT];
            GOOD(tarn_graph_load(&graph, text, (size_t)length, NULL, NULL, NULL, &error));
            for (int k = first; k < last; k++)
                out[k - first] = y[together][k];
            GOOD(tarn_graph_forward(graph, in, out, NULL, &error));
            tarn_graph_destroy(graph);
        }
    for (int k = 0; k < COUNT; k++)
        CHECK(memcmp(y[0][k], y[1][k], sizeof y[0][k]) == 0, "%s", lines[k]);
}

/* ---- Drawings ------------------------------------------------------------------------------ */

static void test_drawings(void)
{
    static const char text[] =
        "x = input f32 2x2\nk = constant f32 2x2 1 2 3 4\nm = custom product x k f32 2x2\n"
        "a = add m k\nunused = scale k factor=3\ny = scale a factor=2\nreturn y k";
    tarn_request request = {.mode = TARN_GRAPH_FORWARD};
    tarn_program *program;
    tarn_graph *other;
    tarn_value v;
    char drawing[4000];
    GOOD(tarn_graph_load(&graph, text, sizeof text - 1, resolve_product, NULL, NULL, &error));
    GOOD(tarn_graph_compile(&program, graph, &request, NULL, &error));
    GOOD(tarn_graph_scale(graph, 0, 2, &v, &error)); /* after the program was made */
    CHECK(tarn_graph_dot(graph, program, drawing, sizeof drawing) == (int64_t)strlen(drawing),
          "length");
    static const char *const parts[] = {
        "m = custom product\\n",
        "\\nconstant\"",
        "\\nthe caller's\"",
        "\\nin output 0\"",
        "unused = scale factor=3\\nf32 2x2, 16 bytes\\nnot computed\", style=dashed",
        "v6 = scale factor=2\\nf32 2x2, 16 bytes\\nnot computed\", style=dashed"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        CHECK(strstr(drawing, parts[k]), "no %s in %s", parts[k], drawing);
    /* Arrows of all operands and outputs, and no others; the node that came later is the last. */
    CHECK(strstr(drawing,
                 "  n0 -> n2;\n  n1 -> n2;\n  n2 -> n3;\n  n1 -> n3;\n  n1 -> n4;\n  n3 -> "
                 "n5;\n  n0 -> n6;\n  out0 [label=\"output 0\", shape=plain];\n  n5 -> "
                 "out0;\n  out1 [label=\"output 1\", shape=plain];\n  n1 -> out1;\n"),
          "%s", drawing);
    GOOD(tarn_graph_create(&other, NULL, &error));
    CHECK(tarn_graph_dot(other, program, drawing, sizeof drawing) < 0,
          "a program of another graph");
    CHECK(tarn_graph_dot(NULL, NULL, drawing, sizeof drawing) < 0, "no graph");
    tarn_memory memory;
    BAD(TARN_BAD_ARGUMENT, tarn_program_memory(NULL, &memory, &error));
    tarn_program_destroy(program);
    request.mode = (tarn_mode)-1;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&program, graph, &request, NULL, &error));
    tarn_graph_destroy(other);
    tarn_graph_destroy(graph);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* Arrays that are not there, empty tensors, tensors that would lie beyond all memory. */
static void test_runs(void)
{
    static const char text[] = "x = input f32 2\ne = input f32 0x2\ny = scale x factor=2\nz = "
                               "scale e factor=2\nreturn y z";
    float x[2] = {1, 2}, y[2], t[2] = {3, 4};
    const void *in[2] = {x, NULL}, *end[2] = {(void *)(UINTPTR_MAX - 3), NULL},
               *seeds[2] = {t, NULL};
    void *out[2] = {y, NULL};
    GOOD(tarn_graph_load(&graph, text, sizeof text - 1, NULL, NULL, NULL, &error));
    GOOD(tarn_graph_forward(graph, in, out, NULL, &error));
    CHECK(y[1] == 4, "%g", (double)y[1]);
    GOOD(tarn_graph_jvp(graph, in, seeds, NULL, out, NULL, &error));
    CHECK(y[1] == 8, "%g", (double)y[1]);
    GOOD(tarn_graph_vjp(graph, in, seeds, NULL, out, NULL, &error));
    CHECK(y[0] == 6, "%g", (double)y[0]);
    BAD(TARN_BAD_LAYOUT, tarn_graph_forward(graph, end, out, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_jvp(graph, in, NULL, NULL, out, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_jvp(graph, in, seeds, NULL, NULL, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_vjp(graph, in, NULL, NULL, out, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_vjp(graph, in, seeds, NULL, NULL, NULL, &error));
    /* Of outputs that are not wanted nothing is asked. */
    tarn_program *program;
    tarn_request second = {.mode = TARN_GRAPH_JVP, .outputs = (const unsigned char[]){0, 1}};
    void *nothing[2] = {NULL, NULL};
    GOOD(tarn_graph_compile(&program, graph, &second, NULL, &error));
    GOOD(tarn_program_jvp(program, in, (const void *[]){NULL, NULL}, NULL, nothing, &error));
    tarn_program_destroy(program);
    tarn_graph_destroy(graph);
}

/* Slices without an element, with a derivative and without. */
static void test_empty_slices(void)
{
    static const char text[] =
        "x = input f32 2x2\ne = input f32 2x0\nn = input i8 1\nc = concat e x e axis=1\n"
        "d = concat x e axis=1\ns = add c d\nf = input f32 0x2\ng = concat f s axis=0\nreturn g";
    float x[4] = {1, 2, 3, 4}, y[4];
    const void *in[4] = {x, NULL, x, NULL}, *seed[1] = {x}, *no_seeds[4] = {NULL};
    void *out[1] = {y}, *gradients[4] = {y, NULL, NULL, NULL};
    tarn_program *program;
    GOOD(tarn_graph_load(&graph, text, sizeof text - 1, NULL, NULL, NULL, &error));
    GOOD(tarn_graph_forward(graph, in, out, NULL, &error));
    CHECK(y[0] == 2 && y[3] == 8, "%g", (double)y[3]);
    for (int varying = 0; varying < 8; varying++) {
        unsigned char inputs[4] = {varying & 1, varying >> 1 & 1, 0, varying >> 2 & 1};
        tarn_request request = {.mode = TARN_GRAPH_JVP, .inputs = inputs};
        GOOD(tarn_graph_compile(&program, graph, &request, NULL, &error));
        GOOD(tarn_program_jvp(program, in, varying & 1 ? in : no_seeds, NULL, out, &error));
        CHECK(y[1] == (varying & 1 ? 4 : 0), "%d: %g", varying, (double)y[1]);
        tarn_program_destroy(program);
        request.mode = TARN_GRAPH_VJP;
        GOOD(tarn_graph_compile(&program, graph, &request, NULL, &error));
        GOOD(tarn_program_vjp(program, in, seed, NULL, gradients, &error));
        CHECK(!(varying & 1) || y[2] == 6, "%d: %g", varying, (double)y[2]);
        tarn_program_destroy(program);
    }
    tarn_graph_destroy(graph);
}

/* ---- Memory that is not clean --------------------------------------------------------------- */

static void *allocate_poisoned(void *context, size_t bytes)
{
    (void)context;
    void *memory = malloc(bytes);
    return memory ? memset(memory, POISON, bytes) : NULL;
}

static void release_plainly(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* Who reads beyond what was written finds no handle there, and no zero. */
static void test_poisoned_memory(void)
{
    static const char *const texts[] = {
        "x = input f32 1x4x4\nz = input f32 1x4x4\ny = custom product x z f32 1x4x4\nreturn y",
        "x = input f32 1x4x4\nz = input f32 1x4x4\na = max x kernel=3 stride=1 pad=1\n"
        "y = add a z\nreturn y",
        "x = input f32 1x4x4\nz = input f32 1x4x4\na = avg x kernel=2\nb = smooth z kernel=2\n"
        "y = concat a b a b axis=2\nreturn y",
        "x = input f32 1x4x4\nz = input f32 1x4x4\na = scale x factor=3\nb = pad z pad=1\n"
        "c = unpad b pad=1\nd = add a c\ny = reshape d 16\nreturn y",
    };
    float x[16], z[16], results[2][3][2][16];
    for (int k = 0; k < 16; k++)
        x[k] = (float)(k * 5 % 7), z[k] = (float)(k * 3 % 11) - 4;
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
        memset(results, 0, sizeof results);
        for (int poisoned = 0; poisoned < 2; poisoned++) {
            tarn_options options = tarn_options_default();
            if (poisoned)
                options.allocator = (tarn_allocator){allocate_poisoned, release_plainly, NULL};
            GOOD(tarn_graph_load(&graph, texts[n], strlen(texts[n]), resolve_product, NULL,
                                 &options.allocator, &error));
            const void *in[2] = {x, z}, *back[1] = {x};
            float(*to)[2][16] = results[poisoned];
            GOOD(tarn_graph_forward(graph, in, (void *[]){to[0][0]}, &options, &error));
            GOOD(tarn_graph_jvp(graph, in, in, NULL, (void *[]){to[1][0]}, &options, &error));
            GOOD(tarn_graph_vjp(graph, in, back, NULL, (void *[]){to[2][0], to[2][1]}, &options,
                                &error));
            tarn_graph_destroy(graph);
        }
        CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0, "%s", texts[n]);
    }
}

/* As many axes as padding may have, all of them padded. */
static void test_eight_axes(void)
{
    static const char text[] = "x = input f32 2x1x2x1x1x1x2x2\nz = pad x pad=1:0,0,1,0,0,1,0:1,1\n"
                               "y = unpad z pad=1:0,0,1,0,0,1,0:1,1\nreturn y z";
    enum { CELLS = 16, PADDED = 3 * 1 * 4 * 1 * 1 * 3 * 3 * 4 };
    float x[CELLS], y[CELLS], z[PADDED], sum = 0;
    for (int k = 0; k < CELLS; k++)
        x[k] = (float)(k + 1);
    GOOD(tarn_graph_load(&graph, text, sizeof text - 1, NULL, NULL, NULL, &error));
    GOOD(tarn_graph_forward(graph, (const void *[]){x}, (void *[]){y, z}, NULL, &error));
    CHECK(memcmp(x, y, sizeof x) == 0, "unpad does not undo pad");
    for (int k = 0; k < PADDED; k++)
        sum += z[k];
    CHECK(sum == CELLS * (CELLS + 1) / 2, "%g", (double)sum);
    tarn_graph_destroy(graph);
}

/* ---- Nodes of the caller's own ------------------------------------------------------------- */

static tarn_status write_twos(void *context, const tarn_view *x, const tarn_view *y,
                              tarn_error *why)
{
    (void)context, (void)x, (void)why;
    for (size_t k = 0; k < tarn_view_bytes(y) / sizeof(float); k++)
        ((float *)y->data)[k] = 2;
    return TARN_OK;
}

/* A node without operands has no derivatives, and asks for none. */
static void test_a_source(void)
{
    const int64_t shape[2] = {1, 2};
    const float x[2] = {3, 4}, seed[2] = {5, 6};
    float y[2], result[2] = {0};
    tarn_custom source = {
        .name = "twos", .dtype = TARN_F32, .rank = 2, .shape = {1, 2}, .forward = write_twos};
    tarn_value twos, sum, v = input(2, shape);
    GOOD(tarn_graph_custom(graph, 0, NULL, &source, &twos, &error));
    GOOD(tarn_graph_add(graph, v, twos, &sum, &error));
    GOOD(tarn_graph_output(graph, sum, &error));
    const void *const in[] = {x}, *const seeds[] = {seed};
    void *const out[] = {y}, *const made[] = {result};
    GOOD(tarn_graph_forward(graph, in, out, NULL, &error));
    CHECK(y[0] == 5 && y[1] == 6, "%g %g", (double)y[0], (double)y[1]);
    GOOD(tarn_graph_jvp(graph, in, seeds, out, made, NULL, &error));
    CHECK(memcmp(result, seed, sizeof seed) == 0, "tangent %g", (double)result[0]);
    result[0] = 0;
    GOOD(tarn_graph_vjp(graph, in, seeds, out, made, NULL, &error));
    CHECK(memcmp(result, seed, sizeof seed) == 0, "gradient %g", (double)result[0]);
    tarn_graph_destroy(graph);
}

static tarn_status refuse(void *context, const char *name, int count, const tarn_view *operands,
                          tarn_custom *custom, tarn_error *why)
{
    (void)name, (void)count, (void)operands, (void)custom;
    if (context)
        *why = (tarn_error){.code = TARN_UNSUPPORTED, .message = "not on Sundays"};
    return TARN_UNSUPPORTED;
}

/* Who resolves nodes may say why one is refused, or not. */
static void test_reasons(void)
{
    static const char text[] = "x = input f32 2\ny = custom twos f32 2\nreturn y";
    for (int says = 0; says < 2; says++) {
        tarn_status status = tarn_graph_load(&graph, text, sizeof text - 1, refuse,
                                             says ? &graph : NULL, NULL, &error);
        CHECK(status == TARN_UNSUPPORTED && error.code == status && !graph, "%d", (int)status);
        CHECK(strstr(error.message, says ? "not on Sundays" : "was not resolved"), "%s",
              error.message);
    }
}

int main(void)
{
    test_a_source();
    test_reasons();
    test_unused_members();
    test_reshapes();
    test_handles();
    test_builders();
    test_allocators();
    test_text();
    test_saved_rules();
    test_padded_axes();
    test_gradient_of_skipping_mean();
    test_nearly_same_pools();
    test_drawings();
    test_runs();
    test_empty_slices();
    test_poisoned_memory();
    test_eight_axes();
    return finish_checks();
}
