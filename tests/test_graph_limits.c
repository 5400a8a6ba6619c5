/* What graphs refuse, what they leave undone, what they cost: errors, failing memory, custom
 * payloads, pruning, long chains, programs side by side. */
#include "graph_reference.h"

#include <math.h>
#include <pthread.h>

static tarn_error error;

#define GOOD(call) CHECK((call) == TARN_OK, "%s: %s", #call, error.message)
#define BAD(expected, call)                                                                        \
    do {                                                                                           \
        tarn_status got = (call);                                                                  \
        CHECK(got == expected && error.code == got && error.message[0], "%s: %s, %s", #call,       \
              tarn_status_name(got), error.message);                                               \
    } while (0)

/* ---- Memory that fails --------------------------------------------------------------------- */

typedef struct {
    long long until, live, made; /* the allocation that fails, counted from 0; negative: none */
    size_t bytes;
    bool once; /* else all behind it fail, too */
} accountant;

static void *account(void *context, size_t bytes)
{
    accountant *a = context;
    bool fails = a->until == 0;
    a->until -= a->until > 0 || (fails && a->once);
    if (fails)
        return NULL;
    a->live++;
    a->made++;
    a->bytes += bytes;
    return malloc(bytes);
}

static void settle(void *context, void *memory)
{
    ((accountant *)context)->live--;
    free(memory);
}

static const char everything[] =
    "x = input f32 1x2x6x6\nz = input f32 1x2x6x6\nk = constant f32 1x2x6x6"
    " 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9"
    " 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9\n"
    "a = max x kernel=3 stride=1 pad=1\nb = avg a kernel=3 stride=1 pad=1\ns = add a b\n"
    "m = custom product s k f32 1x2x6x6\nt = scale m factor=0.5\nc = concat t x z axis=1\n"
    "d = concat t s axis=2\np = pad d pad=1\nu = unpad p pad=0:1\nf = flatten c axis=1\n"
    "q = smooth z kernel=2 beta=2\nreturn f u q a\n";

static tarn_status load_and_compile(const char *text, accountant *a)
{
    tarn_allocator allocator = {account, settle, a};
    tarn_options options = tarn_options_default();
    options.allocator = allocator;
    tarn_graph *graph;
    tarn_status status =
        tarn_graph_load(&graph, text, strlen(text), resolve_product, NULL, &allocator, &error);
    CHECK(!status == (graph != NULL), "a graph and an error");
    for (int mode = 0; mode < TARN_MODES && !status; mode++) {
        tarn_request request = {.mode = (tarn_mode)mode, .values = 1};
        tarn_program *program;
        status = tarn_graph_compile(&program, graph, &request, &options, &error);
        CHECK(!status == (program != NULL), "a program and an error");
        tarn_program_destroy(program);
    }
    tarn_graph_destroy(graph);
    return status;
}

static void fail_everywhere(const char *text, int least)
{
    accountant whole = {.until = -1};
    GOOD(load_and_compile(text, &whole));
    CHECK(whole.live == 0 && whole.made > least, "%lld live, %lld made", whole.live, whole.made);
    for (long long n = 0; n < 2 * whole.made; n++) {
        accountant a = {.until = n / 2, .once = n % 2};
        BAD(TARN_NO_MEMORY, load_and_compile(text, &a));
        CHECK(a.live == 0, "allocation %lld: %lld blocks leak", n / 2, a.live);
    }
}

/* Lists grow by doubling: chains of all lengths before a node let each of its steps be the one that
 * finds no room. */
static void test_failing_memory(void)
{
    fail_everywhere(everything, 40);
    fail_everywhere("x = input f32 2x2\nc = concat x x axis=0\nreturn c\n", 4);
    for (int chain = 0; chain < 20; chain++) {
        char text[4096] = "x = input f32 2x2\nm = custom product x x f32 2x2\n", last[16] = "m";
        for (int k = 0; k < chain; k++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "s%d = scale %s factor=2\n", k, last);
            snprintf(last, sizeof last, "s%d", k);
        }
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "n = custom product %s %s f32 2x2\nreturn n\n",
                 last, last);
        fail_everywhere(text, 10);
    }
}

/* Builders that fail for memory leave the graph as it was: the same call then succeeds. */
static void test_failed_builders(void)
{
    accountant a = {.until = -1};
    tarn_allocator allocator = {account, settle, &a};
    tarn_graph *graph;
    int64_t shape[2] = {8, 8}, ones[2] = {1, 1};
    tarn_value v;
    tarn_pool pool = tarn_max_pool2d(1, 1, 1);
    GOOD(tarn_graph_create(&graph, &allocator, &error));
    for (int k = 0; k < 100; k++) {
        for (long long n = 0;; n++) {
            int before = tarn_graph_values(graph);
            a.until = n;
            tarn_status status = k % 4 == 0
                                     ? tarn_graph_input(graph, TARN_F32, 2, shape, &v, &error)
                                 : k % 4 == 1 ? tarn_graph_pool(graph, 0, &pool, &v, &error)
                                 : k % 4 == 2 ? tarn_graph_pad(graph, 0, 2, ones, ones, &v, &error)
                                              : tarn_graph_add(graph, 0, 0, &v, &error);
            a.until = -1;
            CHECK(tarn_graph_values(graph) == before + !status, "changed by a failure");
            CHECK(tarn_graph_inputs(graph) == (k + (k % 4 == 0 && !status) + 3) / 4, "inputs");
            if (!status)
                break;
            CHECK(status == TARN_NO_MEMORY, "%s", error.message);
        }
        CHECK(v == k && tarn_graph_find(graph, tarn_graph_value_name(graph, v)) == v, "%d", k);
    }
    tarn_graph_destroy(graph);
    CHECK(a.live == 0, "%lld blocks leak", a.live);
}

/* ---- Refusals ------------------------------------------------------------------------------ */

static int destroyed;

static void count_destruction(void *context)
{
    (void)context;
    destroyed++;
}

static void test_builder_errors(void)
{
    tarn_graph *g;
    tarn_value x, i, y = -5;
    int64_t shape[4] = {1, 2, 6, 6}, negative[1] = {-1}, ones[2] = {1, 1}, many[2] = {6, 6};
    int64_t huge[2] = {INT64_MAX / 4, 4}, minus[2] = {-1, 0}, other[2] = {72, 2};
    float numbers[2] = {1, 2};
    tarn_pool pool = tarn_max_pool2d(7, 7, 1);
    tarn_view odd = tarn_view_dense((char *)numbers + 1, TARN_F32, 1, ones);
    tarn_allocator half = {.allocate = account};
    BAD(TARN_BAD_ARGUMENT, tarn_graph_create(NULL, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_create(&g, &half, &error));
    CHECK(!g, "a graph and an error");
    GOOD(tarn_graph_create(&g, NULL, &error));
    CHECK(tarn_graph_find(g, "x") == -1, "nothing there");
    GOOD(tarn_graph_input(g, TARN_F32, 4, shape, &x, &error));
    GOOD(tarn_graph_input(g, TARN_I32, 4, shape, &i, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_input(NULL, TARN_F32, 4, shape, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_input(g, TARN_F32, 4, shape, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_input(g, TARN_F32, 4, NULL, &y, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_input(g, TARN_DTYPES, 4, shape, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_input(g, TARN_F32, 65, shape, &y, &error));
    BAD(TARN_BAD_SHAPE, tarn_graph_input(g, TARN_F32, 1, negative, &y, &error));
    BAD(TARN_OVERFLOW, tarn_graph_input(g, TARN_F32, 2, huge, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_constant(g, NULL, &y, &error));
    BAD(TARN_BAD_LAYOUT, tarn_graph_constant(g, &odd, &y, &error));
    odd.data = NULL;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_constant(g, &odd, &y, &error));
    BAD(TARN_DOES_NOT_FIT, tarn_graph_pool(g, x, &pool, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_pool(g, x, NULL, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_pool(g, 2, &pool, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_pool(g, -1, &pool, &y, &error));
    BAD(TARN_BAD_WINDOW, tarn_graph_max_pool2d(g, x, 0, 1, 1, &y, &error));
    BAD(TARN_BAD_WINDOW, tarn_graph_max_pool2d_padded(g, x, 1, 1, 1, -1, &y, &error));
    BAD(TARN_BAD_WINDOW, tarn_graph_avg_pool2d(g, x, 1, 1, 0, &y, &error));
    BAD(TARN_DOES_NOT_FIT, tarn_graph_avg_pool2d_padded(g, x, 9, 9, 1, 1, &y, &error));
    BAD(TARN_BAD_VALUE, tarn_graph_smooth_pool2d(g, x, 2, 2, 1, 0, &y, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_smooth_pool2d(g, i, 2, 2, 1, 1, &y, &error));
    BAD(TARN_BAD_VALUE, tarn_graph_lp_pool2d(g, x, 2, 2, 1, 0.5, &y, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_lp_pool2d(g, i, 2, 2, 1, 2, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_pad(g, x, 2, NULL, ones, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_pad(g, x, 5, ones, ones, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_pad(g, x, 0, ones, ones, &y, &error));
    BAD(TARN_BAD_WINDOW, tarn_graph_pad(g, x, 2, ones, minus, &y, &error));
    BAD(TARN_OVERFLOW, tarn_graph_pad(g, x, 2, huge, huge, &y, &error));
    BAD(TARN_DOES_NOT_FIT, tarn_graph_unpad(g, x, 2, ones, many, &y, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_add(g, x, i, &y, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_scale(g, i, 2, &y, &error));
    BAD(TARN_BAD_VALUE, tarn_graph_scale(g, x, (double)INFINITY, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_concat(g, 0, &x, 0, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_concat(g, 1, NULL, 0, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_concat(g, 1, &x, 4, &y, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_concat(g, 2, (tarn_value[]){0, 1}, 0, &y, &error));
    BAD(TARN_BAD_SHAPE, tarn_graph_reshape(g, x, 2, other, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_reshape(g, x, 2, NULL, &y, &error));
    BAD(TARN_BAD_RANK, tarn_graph_flatten(g, x, 4, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_output(g, 2, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_output(NULL, 0, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(g, x, "two words", &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(g, x, "return", &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(g, x, "v1", &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_name(g, 9, "a", &error));
    GOOD(tarn_graph_name(g, x, "image", &error));
    CHECK(tarn_graph_find(g, "image") == x && tarn_graph_find(g, "v0") == -1, "names");
    BAD(TARN_BAD_ARGUMENT, tarn_graph_view(g, x, NULL, &error));
    tarn_view view = tarn_view_dense(NULL, TARN_F32, 4, shape);
    tarn_custom custom = product_of(&view);
    custom.destroy = count_destruction;
    custom.name = "9";
    BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(g, 1, &x, &custom, &y, &error));
    custom.name = "c", custom.forward = NULL;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(g, 1, &x, &custom, &y, &error));
    custom.forward = product_forward, custom.rank = -1;
    BAD(TARN_BAD_RANK, tarn_graph_custom(g, 1, &x, &custom, &y, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_custom(g, -1, &x, &custom, &y, &error));
    CHECK(tarn_graph_values(g) == 2 && y == -5, "a refused node was pushed");
    CHECK(destroyed == 0, "the context of a refused node was destroyed");
    custom.rank = 4;
    GOOD(tarn_graph_custom(g, 2, (tarn_value[]){x, x}, &custom, &y, &error));
    tarn_graph_destroy(g);
    CHECK(destroyed == 1, "destroyed %d times", destroyed);
    tarn_graph_destroy(NULL);
    CHECK(tarn_graph_output_value(NULL, 0) == -1 && tarn_graph_input_value(NULL, 0) == -1 &&
              tarn_graph_values(NULL) == 0 && !tarn_graph_value_name(NULL, 0),
          "NULL");
}

/* Names made for values avoid those that the caller gave. */
static void test_names(void)
{
    tarn_graph *g;
    tarn_value v;
    char name[TARN_NAME_BYTES];
    GOOD(tarn_graph_create(&g, NULL, &error));
    for (int k = 0; k < 100; k++) {
        GOOD(tarn_graph_input(g, TARN_F32, 0, NULL, &v, &error));
        if (k < 60) /* v60, v60_, v60__, ... */
            snprintf(name, sizeof name, "v60%.*s", k,
                     "____________________________________________________________");
        else
            snprintf(name, sizeof name, "v%d_%d", k + 1, 1);
        GOOD(tarn_graph_name(g, v, name, &error));
    }
    for (v = 0; v < 100; v++)
        CHECK(tarn_graph_find(g, tarn_graph_value_name(g, v)) == v, "%d", (int)v);
    GOOD(tarn_graph_input(g, TARN_F32, 0, NULL, &v, &error));
    GOOD(tarn_graph_name(g, 0, "v101", &error));
    GOOD(tarn_graph_name(g, 1, "v101_1", &error));
    GOOD(tarn_graph_input(g, TARN_F32, 0, NULL, &v, &error));
    CHECK(strcmp(tarn_graph_value_name(g, v), "v101_2") == 0, "%s", tarn_graph_value_name(g, v));
    CHECK(tarn_graph_find(g, "v101") == 0 && tarn_graph_find(g, "v101_2") == v, "lost");
    tarn_graph_destroy(g);
}

static tarn_graph *load(const char *text)
{
    tarn_graph *graph;
    GOOD(tarn_graph_load(&graph, text, strlen(text), resolve_product, NULL, NULL, &error));
    return graph;
}

static void test_run_errors(void)
{
    tarn_graph *g = load("i = input i32 2x2\nx = input f32 2x2\ny = max x kernel=1\n"
                         "z = scale x factor=2\nreturn y z i");
    tarn_program *p, *none;
    tarn_request forward = {.mode = TARN_GRAPH_FORWARD}, vjp = {.mode = TARN_GRAPH_VJP};
    tarn_request wrong = {.mode = TARN_MODES}, integer = {.mode = TARN_GRAPH_VJP};
    tarn_options options = tarn_options_default();
    tarn_view layout = tarn_view_dense(NULL, TARN_F32, 0, NULL);
    float x[4] = {1, 2, 3, 4}, y[4], z[4], gx[4];
    int32_t i[4] = {5, 6, 7, 8}, j[4];
    const void *in[2] = {i, x}, *holes[2] = {i, NULL}, *odd[2] = {i, (char *)x + 1};
    void *out[3] = {y, z, j}, *twice[3] = {y, y, j}, *over[3] = {y, x, j};
    void *gradients[2] = {NULL, gx};
    integer.inputs = (const unsigned char[]){1, 1};
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(NULL, g, &forward, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, NULL, &forward, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, g, NULL, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, g, &wrong, NULL, &error));
    BAD(TARN_BAD_DTYPE, tarn_graph_compile(&none, g, &integer, NULL, &error));
    options.layout[TARN_Y] = &layout;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, g, &forward, &options, &error));
    options = tarn_options_default();
    options.isa = 1u << 20; /* no family has this bit */
    BAD(TARN_UNSUPPORTED, tarn_graph_compile(&none, g, &forward, &options, &error));
    options = tarn_options_default();
    options.executor.parts = 2;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, g, &forward, &options, &error));
    options.executor.parts = -2;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, g, &forward, &options, &error));
    options = tarn_options_default();
    options.allocator.release = NULL;
    BAD(TARN_BAD_ARGUMENT, tarn_graph_compile(&none, g, &forward, &options, &error));
    CHECK(!none, "a program and an error");
    GOOD(tarn_graph_compile(&p, g, &forward, NULL, &error));
    memset(y, POISON, sizeof y);
    BAD(TARN_BAD_ARGUMENT, tarn_program_forward(NULL, in, out, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_program_forward(p, NULL, out, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_program_forward(p, in, NULL, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_program_forward(p, holes, out, &error));
    BAD(TARN_BAD_LAYOUT, tarn_program_forward(p, odd, out, &error));
    BAD(TARN_ALIAS, tarn_program_forward(p, in, twice, &error));
    BAD(TARN_ALIAS, tarn_program_forward(p, in, over, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_program_vjp(p, in, in, out, out, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_program_jvp(p, in, in, out, out, &error));
    BAD(TARN_BAD_ARGUMENT, tarn_program_memory(p, NULL, &error));
    CHECK(is_poison(y, sizeof y), "a failed run has written");
    GOOD(tarn_program_forward(p, in, out, &error));
    CHECK(error.code == TARN_OK && !error.message[0], "the error is not cleared");
    CHECK(y[3] == 4 && z[3] == 8 && j[3] == 8, "%g %g", (double)y[3], (double)z[3]);
    tarn_program_destroy(p);
    /* Integers have no cotangent: it is not looked at. */
    GOOD(tarn_graph_compile(&p, g, &vjp, NULL, &error));
    const void *cotangents[3] = {y, z, NULL};
    GOOD(tarn_program_vjp(p, in, cotangents, NULL, gradients, &error));
    CHECK(gx[0] == 1 + 2 * 2, "%g", (double)gx[0]);
    tarn_program_destroy(p);
    /* One output wanted: the other's cotangent is not looked at either. */
    vjp.outputs = (const unsigned char[]){0, 1, 0};
    GOOD(tarn_graph_compile(&p, g, &vjp, NULL, &error));
    const void *one[3] = {NULL, z, NULL};
    GOOD(tarn_program_vjp(p, NULL, one, NULL, gradients, &error));
    CHECK(gx[0] == 4, "%g", (double)gx[0]);
    tarn_program_destroy(p);
    tarn_program_destroy(NULL);
    tarn_graph_destroy(g);
}

/* Tensors anywhere in one block, against a comparison of all pairs. */
static void test_aliases(void)
{
    enum { PAIRS = 3, TENSORS = 2 * PAIRS, NUMBERS = 4, ROOM = 120 };
    static const char text[] = "a = input f32 4\nb = input f32 4\nc = input f32 4\nx = scale a "
                               "factor=1\ny = scale b factor=2\nz = scale c factor=3\nreturn x y z";
    float block[ROOM] = {0};
    int at[TENSORS], refused = 0;
    tarn_graph *g = load(text);
    tarn_program *p;
    tarn_request request = {.mode = TARN_GRAPH_FORWARD};
    rng r = {5};
    GOOD(tarn_graph_compile(&p, g, &request, NULL, &error));
    for (int round = 0; round < 2000; round++) {
        const void *in[PAIRS];
        void *out[PAIRS];
        bool meet = false;
        for (int k = 0; k < TENSORS; k++) { /* the first ones are read */
            at[k] = (int)rng_range(&r, 0, ROOM - NUMBERS);
            for (int j = 0; j < k; j++)
                meet |= k >= PAIRS && abs(at[k] - at[j]) < NUMBERS;
        }
        for (int k = 0; k < PAIRS; k++) {
            in[k] = block + at[k];
            out[k] = block + at[PAIRS + k];
        }
        tarn_status status = tarn_program_forward(p, in, out, &error);
        CHECK(status == (meet ? TARN_ALIAS : TARN_OK), "round %d: %s", round, error.message);
        refused += meet;
    }
    CHECK(refused > 500 && refused < 1500, "%d refused", refused);
    tarn_program_destroy(p);
    tarn_graph_destroy(g);
}

/* ---- Custom payloads and pruning ----------------------------------------------------------- */

typedef struct {
    int forward, jvp, vjp;
    tarn_status answer;
    const char *message;
    bool unclosed; /* the message has no closing zero */
} probe;

static tarn_status answer(const probe *p, tarn_error *e)
{
    if (p->answer && p->message) { /* a payload always has an error to fill */
        e->code = p->answer;
        e->axis = 3;
        memset(e->message, '!', sizeof e->message);
        memcpy(e->message, p->message, strlen(p->message) + !p->unclosed);
    }
    return p->answer;
}

static tarn_status probe_forward(void *context, const tarn_view *x, const tarn_view *y,
                                 tarn_error *e)
{
    probe *p = context;
    p->forward++;
    memcpy(y->data, x->data, tarn_view_bytes(y));
    return answer(p, e);
}

static tarn_status probe_jvp(void *context, const tarn_view *x, const tarn_view *dx,
                             const tarn_view *dy, tarn_error *e)
{
    probe *p = context;
    (void)x;
    p->jvp++;
    memcpy(dy->data, dx->data, tarn_view_bytes(dy));
    return answer(p, e);
}

static tarn_status probe_vjp(void *context, const tarn_view *x, const tarn_view *gy,
                             const tarn_view *gx, tarn_error *e)
{
    probe *p = context;
    (void)x;
    p->vjp++;
    memcpy(gx->data, gy->data, tarn_view_bytes(gx));
    return answer(p, e);
}

static tarn_value push_probe(tarn_graph *g, tarn_value x, probe *p)
{
    tarn_custom custom = {.name = "probe",
                          .dtype = TARN_F32,
                          .rank = 1,
                          .shape = {2},
                          .forward = probe_forward,
                          .jvp = probe_jvp,
                          .vjp = probe_vjp,
                          .context = p};
    tarn_value y = -1;
    GOOD(tarn_graph_custom(g, 1, &x, &custom, &y, &error));
    return y;
}

static tarn_memory memory_of(const tarn_graph *g, tarn_mode mode, int values)
{
    tarn_request request = {.mode = mode, .values = values};
    tarn_memory memory = {0};
    tarn_program *p;
    GOOD(tarn_graph_compile(&p, g, &request, NULL, &error));
    GOOD(tarn_program_memory(p, &memory, &error));
    tarn_program_destroy(p);
    return memory;
}

static void test_payloads(void)
{
    probe first = {0}, second = {0}, unused = {0};
    tarn_graph *g;
    tarn_value x, a, b;
    int64_t shape[1] = {2};
    float in[2] = {1, 2}, out[2], seed[2] = {3, 4}, result[2];
    const void *inputs[1] = {in}, *seeds[1] = {seed};
    void *outputs[1] = {out}, *results[1] = {result};
    GOOD(tarn_graph_create(&g, NULL, &error));
    GOOD(tarn_graph_input(g, TARN_F32, 1, shape, &x, &error));
    a = push_probe(g, x, &first);
    b = push_probe(g, a, &second);
    push_probe(g, a, &unused);
    GOOD(tarn_graph_output(g, b, &error));
    GOOD(tarn_graph_vjp(g, inputs, seeds, outputs, results, NULL, &error));
    CHECK(first.forward == 1 && first.vjp == 1 && second.forward == 1 && second.vjp == 1, "calls");
    CHECK(result[1] == 4 && out[1] == 2, "%g", (double)result[1]);
    /* Without values the last forward is not needed, but the operand of its VJP is. */
    GOOD(tarn_graph_vjp(g, inputs, seeds, NULL, results, NULL, &error));
    CHECK(first.forward == 2 && second.forward == 1 && second.vjp == 2, "calls");
    CHECK(unused.forward + unused.jvp + unused.vjp == 0, "an unused node was computed");
    /* An error stops the run, with the payload's words or ours. */
    first.answer = TARN_BAD_VALUE;
    BAD(TARN_BAD_VALUE, tarn_graph_jvp(g, inputs, seeds, NULL, results, NULL, &error));
    CHECK(strstr(error.message, "probe"), "%s", error.message);
    CHECK(second.jvp == 0, "the run went on");
    first.message = "the lamp is out";
    BAD(TARN_BAD_VALUE, tarn_graph_forward(g, inputs, outputs, NULL, &error));
    CHECK(strcmp(error.message, "the lamp is out") == 0 && error.axis == 3, "%s", error.message);
    CHECK(tarn_graph_forward(g, inputs, outputs, NULL, NULL) == TARN_BAD_VALUE, "without error");
    first.unclosed = true;
    BAD(TARN_BAD_VALUE, tarn_graph_forward(g, inputs, outputs, NULL, &error));
    CHECK(strlen(error.message) == sizeof error.message - 1, "%s", error.message);
    first.answer = TARN_OK;
    second.answer = TARN_OVERFLOW;
    BAD(TARN_OVERFLOW, tarn_graph_vjp(g, inputs, seeds, NULL, results, NULL, &error));
    second.answer = TARN_OK;
    tarn_graph_destroy(g);
    /* Before a payload gives its part of a gradient, the two that wait are added up: one buffer
     * beside the caller's is enough. */
    GOOD(tarn_graph_create(&g, NULL, &error));
    GOOD(tarn_graph_input(g, TARN_F32, 1, shape, &x, &error));
    tarn_value parts[3] = {push_probe(g, x, &first)};
    tarn_pool pool = tarn_avg_pool(1);
    for (int k = 1; k < 3; k++)
        GOOD(tarn_graph_pool(g, x, &pool, &parts[k], &error));
    GOOD(tarn_graph_concat(g, 3, parts, 0, &a, &error));
    GOOD(tarn_graph_output(g, a, &error));
    CHECK(memory_of(g, TARN_GRAPH_VJP, 0).arena == 64, "%lld",
          (long long)memory_of(g, TARN_GRAPH_VJP, 0).arena);
    tarn_graph_destroy(g);
    /* Payloads that are not there. */
    GOOD(tarn_graph_create(&g, NULL, &error));
    GOOD(tarn_graph_input(g, TARN_F32, 1, shape, &x, &error));
    tarn_custom only = {.name = "only",
                        .dtype = TARN_F32,
                        .rank = 1,
                        .shape = {2},
                        .forward = probe_forward,
                        .context = &first};
    GOOD(tarn_graph_custom(g, 1, &x, &only, &a, &error));
    GOOD(tarn_graph_output(g, a, &error));
    GOOD(tarn_graph_forward(g, inputs, outputs, NULL, &error));
    BAD(TARN_UNSUPPORTED, tarn_graph_jvp(g, inputs, seeds, NULL, results, NULL, &error));
    BAD(TARN_UNSUPPORTED, tarn_graph_vjp(g, inputs, seeds, NULL, results, NULL, &error));
    tarn_graph_destroy(g);
}

/* ---- Memory -------------------------------------------------------------------------------- */

static void test_memory(void)
{
    tarn_graph *g = load("x = input f32 4x4\na = max x kernel=1\nb = max a kernel=1\n"
                         "c = max b kernel=1\nd = max c kernel=1\ne = max d kernel=1\nreturn e");
    tarn_memory m = memory_of(g, TARN_GRAPH_FORWARD, 0);
    CHECK(m.arena == 128 && m.without_reuse == 256 && m.floor == 128 && m.saved == 0, "%lld %lld",
          (long long)m.arena, (long long)m.without_reuse);
    m = memory_of(g, TARN_GRAPH_JVP, 1);
    CHECK(m.saved == 0 && m.arena == 256, "%lld", (long long)m.arena);
    m = memory_of(g, TARN_GRAPH_VJP, 1);
    CHECK(m.saved == 5 * 64, "five pools save winners: %lld", (long long)m.saved);
    tarn_graph_destroy(g);
    g = load("x = input f32 4x4\na = avg x kernel=1\nb = avg a kernel=1\nreturn b");
    m = memory_of(g, TARN_GRAPH_VJP, 0);
    CHECK(m.steps == 2 && m.saved == 0, "averages need no values to differentiate: %d", m.steps);
    tarn_graph_destroy(g);
    /* Products are made over operands that nothing reads again, but not over those that are. */
    g = load("x = input f32 4x4\na = scale x factor=2\nb = scale a factor=2\nc = add b b\n"
             "d = scale c factor=2\ny = scale d factor=2\nreturn y");
    m = memory_of(g, TARN_GRAPH_FORWARD, 0);
    CHECK(m.arena == 64 && m.floor == 64 && m.without_reuse == 256, "%lld", (long long)m.arena);
    tarn_graph_destroy(g);
    g = load("x = input f32 4x4\na = scale x factor=2\nb = scale a factor=2\nc = add a b\n"
             "y = scale c factor=2\nreturn y");
    m = memory_of(g, TARN_GRAPH_FORWARD, 0);
    CHECK(m.arena == 128 && m.floor == 128, "%lld", (long long)m.arena);
    tarn_graph_destroy(g);
    /* SPP: three pools with 256 winners each and gradients of 1024 bytes. The first is made with
     * the caller, the others one after the other beside it; at the first of them two pools still
     * have their winners. f16 waits for all of them. */
    g = load(
        "x = input f32 1x4x8x8\na = max x kernel=3 stride=1 pad=1\nb = max x kernel=5 stride=1 "
        "pad=2\nc = max x kernel=7 stride=1 pad=3\ny = concat x a b c axis=1\nreturn y");
    m = memory_of(g, TARN_GRAPH_VJP, 1);
    CHECK(m.arena == 2 * 256 + 1024 && m.floor == m.arena && m.without_reuse == 3 * 256 + 2 * 1024,
          "%lld, %lld", (long long)m.arena, (long long)m.without_reuse);
    tarn_graph_destroy(g);
    g = load(
        "x = input f16 1x4x8x8\na = max x kernel=3 stride=1 pad=1\nb = max x kernel=5 stride=1 "
        "pad=2\nc = max x kernel=7 stride=1 pad=3\ny = concat x a b c axis=1\nreturn y");
    m = memory_of(g, TARN_GRAPH_VJP, 1);
    CHECK(m.arena == 256 + 2 * 512 && m.floor == m.arena, "%lld", (long long)m.arena);
    tarn_graph_destroy(g);
    /* What is left of the gap of a, 128 bytes, after 64 of them went to c, goes to d. */
    g = load("x = input f32 32\ns = input f32 16\na = max x kernel=1 spatial=1\nb = max a kernel=2 "
             "spatial=1\nc = max b kernel=1 spatial=1\nd = max s kernel=1 spatial=1\ne = max d "
             "kernel=1 spatial=1\nf = add c e\ny = add f b\nz = add y d\nreturn z");
    m = memory_of(g, TARN_GRAPH_FORWARD, 0);
    CHECK(m.arena == 256 && m.floor == 256, "%lld, %lld", (long long)m.arena, (long long)m.floor);
    tarn_graph_destroy(g);
    /* Concatenated pools are made in place, in the caller's output. */
    g = load("x = input f32 1x4x8x8\na = max x kernel=3 stride=1 pad=1\nb = max a kernel=3 "
             "stride=1 pad=1\ny = concat x a b axis=1\nreturn y");
    m = memory_of(g, TARN_GRAPH_FORWARD, 0);
    CHECK(m.arena == 0 && m.steps == 3, "%lld bytes, %d steps", (long long)m.arena, m.steps);
    tarn_graph_destroy(g);
}

static void test_runs_allocate_nothing(void)
{
    accountant a = {.until = -1};
    tarn_options options = tarn_options_default();
    options.allocator = (tarn_allocator){account, settle, &a};
    tarn_graph *g = load("x = input f32 6x6\na = max x kernel=2\nb = add a a\nreturn b");
    tarn_request request = {.mode = TARN_GRAPH_VJP, .values = 1};
    tarn_program *p;
    float x[36] = {0}, y[9], gy[9] = {1}, gx[36];
    GOOD(tarn_graph_compile(&p, g, &request, &options, &error));
    long long made = a.made;
    GOOD(tarn_program_vjp(p, (const void *[]){x}, (const void *[]){gy}, (void *[]){y},
                          (void *[]){gx}, &error));
    CHECK(a.made == made, "a run allocates");
    CHECK(gx[0] == 2, "%g", (double)gx[0]);
    tarn_program_destroy(p);
    CHECK(a.live == 0, "leak");
    tarn_graph_destroy(g);
}

static void *refuse_much(void *context, size_t bytes)
{
    (void)context;
    return bytes > 1 << 20 ? NULL : malloc(bytes);
}

static void give_back(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* Values may be larger than memory, and their sum larger than numbers: compiling says so. */
static void test_huge_values(void)
{
    static const struct {
        const char *text;
        tarn_status expected;
    } cases[] = {
        {"x = input i8 9223372036854775807\na = add x x\n"
         "y = unpad a pad=0:9223372036854775806 spatial=1\nreturn y",
         TARN_OVERFLOW},
        {"x = input i8 4611686018427387904\na = add x x\nb = add a x\nc = add a b\n"
         "y = unpad c pad=0:4611686018427387903 spatial=1\nreturn y",
         TARN_OVERFLOW},
        {"x = input i8 4611686018427387904\na = add x x\n"
         "y = unpad a pad=0:4611686018427387903 spatial=1\nreturn y",
         TARN_NO_MEMORY},
    };
    tarn_options options = tarn_options_default();
    options.allocator = (tarn_allocator){refuse_much, give_back, NULL};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tarn_graph *g = load(cases[k].text);
        tarn_request request = {.mode = TARN_GRAPH_FORWARD};
        tarn_program *p;
        BAD(cases[k].expected, tarn_graph_compile(&p, g, &request, &options, &error));
        tarn_graph_destroy(g);
    }
}

/* ---- Long chains --------------------------------------------------------------------------- */

enum { CHAIN = 10000 };

/* Builds, compiles and runs a chain, in a thread whose stack no recursion over it would fit. */
static void *run_chain(void *argument)
{
    accountant *a = argument;
    tarn_options options = tarn_options_default();
    options.allocator = (tarn_allocator){account, settle, a};
    tarn_graph *g;
    tarn_value v;
    int64_t shape[2] = {1, 4};
    float x[4] = {1, 2, 3, 4}, y[4], seed[4] = {1, 1, 1, 1}, result[4];
    const void *inputs[1] = {x}, *seeds[1] = {seed};
    void *outputs[1] = {y}, *results[1] = {result};
    GOOD(tarn_graph_create(&g, &options.allocator, &error));
    GOOD(tarn_graph_input(g, TARN_F32, 2, shape, &v, &error));
    for (int k = 0; k < CHAIN; k++)
        GOOD(k % 3 == 0   ? tarn_graph_max_pool2d(g, v, 1, 1, 1, &v, &error)
             : k % 3 == 1 ? tarn_graph_avg_pool2d(g, v, 1, 1, 1, &v, &error)
                          : tarn_graph_reshape(g, v, 2, shape, &v, &error));
    GOOD(tarn_graph_output(g, v, &error));
    GOOD(tarn_graph_vjp(g, inputs, seeds, outputs, results, &options, &error));
    CHECK(memcmp(x, y, sizeof x) == 0 && memcmp(seed, result, sizeof seed) == 0, "a chain of ones");
    GOOD(tarn_graph_jvp(g, inputs, seeds, outputs, results, &options, &error));
    CHECK(memcmp(seed, result, sizeof seed) == 0, "tangent");
    tarn_memory m = memory_of(g, TARN_GRAPH_FORWARD, 0);
    CHECK(m.arena == 128, "two buffers do: %lld", (long long)m.arena);
    tarn_graph_destroy(g);
    return NULL;
}

static void test_chain(void)
{
    accountant a = {.until = -1};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 * 1024); /* 52 bytes a node */
    if (pthread_create(&thread, &attributes, run_chain, &a))
        abort();
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    CHECK(a.live == 0, "leak");
    CHECK(a.bytes < (size_t)CHAIN * 8000, "%zu bytes: not linear", a.bytes);
}

/* ---- Programs side by side ----------------------------------------------------------------- */

static void *run_beside(void *argument)
{
    float x[36], y[9], gy[9], gx[36];
    for (int k = 0; k < 36; k++)
        x[k] = (float)(k % 7);
    for (int k = 0; k < 9; k++)
        gy[k] = (float)k;
    tarn_error own;
    for (int k = 0; k < 50; k++)
        if (tarn_graph_vjp(argument, (const void *[]){x}, (const void *[]){gy}, (void *[]){y},
                           (void *[]){gx}, NULL, &own))
            return argument;
    return NULL;
}

static void test_side_by_side(void)
{
    tarn_graph *g = load("x = input f32 6x6\na = max x kernel=2\nb = add a a\nreturn b");
    pthread_t threads[4];
    for (int k = 0; k < 4; k++)
        if (pthread_create(&threads[k], NULL, run_beside, g))
            abort();
    for (int k = 0; k < 4; k++) {
        void *failed;
        pthread_join(threads[k], &failed);
        CHECK(!failed, "thread %d", k);
    }
    tarn_graph_destroy(g);
}

int main(void)
{
    test_failing_memory();
    test_failed_builders();
    test_builder_errors();
    test_run_errors();
    test_aliases();
    test_payloads();
    test_memory();
    test_runs_allocate_nothing();
    test_huge_values();
    test_names();
    test_chain();
    test_side_by_side();
    return finish_checks();
}
