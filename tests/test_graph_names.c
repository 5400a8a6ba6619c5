/* Names of values: the tree finds what a plain list finds, through any sequence of namings, and
 * no names make it deeper than they have bits; drawings of long graphs look at near neighbours
 * only. */
#include "check.h"
#include "graph/graph.h"

enum { VALUES = 700 };

typedef struct {
    tarn_graph *graph;
    char name[VALUES][TARN_NAME_BYTES]; /* what the graph should answer */
    int count;
} book;

static tarn_value listed(const book *b, const char *name)
{
    for (int k = 0; k < b->count; k++)
        if (strcmp(b->name[k], name) == 0)
            return k;
    return -1;
}

/* Forks below `at`, whose bits grow on the way down; -1 if they do not. */
static int count_forks(const tarn_graph *graph, int32_t at, int32_t above, int *depth)
{
    if (at < 0)
        return 0;
    const tarn_fork *fork = (const tarn_fork *)graph->forks.items + at;
    int deepest = 0, forks = 1;
    if (fork->bit <= above || fork->bit >= 8 * TARN_NAME_BYTES)
        return -1;
    for (int side = 0; side < 2; side++) {
        int depth_here = 0, below = count_forks(graph, fork->side[side], fork->bit, &depth_here);
        if (below < 0)
            return -1;
        forks += below;
        deepest = depth_here > deepest ? depth_here : deepest;
    }
    *depth = deepest + 1;
    return forks;
}

static void check_book(const book *b)
{
    int depth = 0;
    CHECK(count_forks(b->graph, b->graph->name_root, -1, &depth) == b->count - 1,
          "a fork for every name but one");
    CHECK(depth <= 8 * (TARN_NAME_BYTES - 1), "%d forks on the way to a name", depth);
    for (int k = 0; k < b->count; k++) {
        CHECK(tarn_graph_find(b->graph, b->name[k]) == k, "%s is not found", b->name[k]);
        CHECK(strcmp(tarn_graph_value_name(b->graph, k), b->name[k]) == 0, "value %d is not %s", k,
              b->name[k]);
    }
}

/* Few letters and many lengths, so that names are taken, prefixes of others, or like those that
 * values get by themselves. */
static void random_name(rng *r, char name[TARN_NAME_BYTES])
{
    int length = 0;
    if (rng_range(r, 0, 3) == 0) {
        snprintf(name, TARN_NAME_BYTES, rng_range(r, 0, 1) ? "v%d" : "v%d_1",
                 (int)rng_range(r, 0, VALUES));
        return;
    }
    for (int most = (int)rng_range(r, 1, rng_range(r, 0, 9) ? 4 : TARN_NAME_BYTES - 1);
         length < most; length++)
        name[length] = "ab_A"[rng_range(r, 0, 3)];
    name[length] = '\0';
}

static void add_value(book *b)
{
    tarn_value value;
    const int64_t shape[1] = {4};
    char name[TARN_NAME_BYTES];
    if (tarn_graph_input(b->graph, TARN_F32, 1, shape, &value, NULL))
        abort();
    snprintf(name, sizeof name, "v%d", b->count);
    for (int k = 1; listed(b, name) >= 0; k++)
        snprintf(name, sizeof name, "v%d_%d", b->count, k);
    memcpy(b->name[b->count++], name, sizeof name);
}

static void rename_one(book *b, rng *r)
{
    tarn_value value = (tarn_value)rng_range(r, 0, b->count - 1);
    char name[TARN_NAME_BYTES] = "";
    random_name(r, name);
    tarn_value holder = listed(b, name);
    tarn_status status = tarn_graph_name(b->graph, value, name, NULL);
    CHECK((status == TARN_OK) == (holder < 0 || holder == value), "%s for value %d: %s", name,
          value, tarn_status_name(status));
    if (!status)
        memcpy(b->name[value], name, sizeof name);
}

static void test_random_names(uint64_t seed)
{
    static book b;
    rng r = {seed};
    b.count = 0;
    if (tarn_graph_create(&b.graph, NULL, NULL))
        abort();
    CHECK(tarn_graph_find(b.graph, "v0") == -1, "a name without values");
    while (b.count < VALUES) {
        add_value(&b);
        for (int k = (int)rng_range(&r, 0, 3); k > 0; k--)
            rename_one(&b, &r);
        char name[TARN_NAME_BYTES] = "";
        random_name(&r, name);
        CHECK(tarn_graph_find(b.graph, name) == listed(&b, name), "%s", name);
        if (b.count % 50 == 1)
            check_book(&b);
    }
    check_book(&b);
    tarn_graph_destroy(b.graph);
}

/* The deepest tree there can be: names that part one bit after the other. */
static void test_deep_names(void)
{
    static book b;
    b.count = 0;
    if (tarn_graph_create(&b.graph, NULL, NULL))
        abort();
    for (int length = 1; length < TARN_NAME_BYTES; length++)
        for (int last = 0; last < 4 && b.count < VALUES; last++) {
            add_value(&b);
            char *name = b.name[b.count - 1];
            memset(name, 'a', (size_t)length);
            name[length - 1] = "abdh"[last];
            name[length] = '\0';
            CHECK(tarn_graph_name(b.graph, b.count - 1, name, NULL) == TARN_OK, "%s", name);
        }
    check_book(&b);
    tarn_graph_destroy(b.graph);
}

/* A chain whose values take turns in two buffers: the first values of a short one name all that
 * share; those of a long one speak of their neighbourhood. */
static void test_drawings(void)
{
    static char text[1 << 20];
    static const struct {
        int values;
        const char *said;
    } chains[] = {{200, "and 93 more\""}, {1000, "and 243 more nearby\""}};
    for (int k = 0; k < 2; k++) {
        tarn_graph *graph;
        tarn_program *program;
        tarn_value value;
        tarn_error error;
        if (tarn_graph_create(&graph, NULL, &error) ||
            tarn_graph_input(graph, TARN_F32, 2, (int64_t[]){4, 4}, &value, &error))
            abort();
        for (int v = 0; v < chains[k].values; v++)
            tarn_graph_max_pool2d(graph, value, 1, 1, 1, &value, &error);
        tarn_graph_output(graph, value, &error);
        if (tarn_graph_compile(&program, graph, &(tarn_request){.mode = TARN_GRAPH_FORWARD}, NULL,
                               &error))
            abort();
        int64_t length = tarn_graph_dot(graph, program, text, sizeof text);
        CHECK(length > 0 && length < (int64_t)sizeof text && strstr(text, chains[k].said),
              "%.2000s", text);
        tarn_program_destroy(program);
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        test_random_names(seed);
    test_deep_names();
    test_drawings();
    return finish_checks();
}
