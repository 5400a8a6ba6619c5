/* Corners of graphs that no other test looked into, as mutants showed (tools/mutate.py). */
#include "check.h"
#include "tarn_graph.h"

static tarn_graph *graph;
static tarn_error error;

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

int main(void)
{
    test_unused_members();
    test_reshapes();
    return finish_checks();
}
