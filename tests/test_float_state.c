/* The caller's floating-point state does not matter [S6]: flush to zero, denormals are zero,
 * rounding modes and traps give the bits of a thread as it starts, with any number of threads,
 * and are there again afterwards. Where the library does not know such a register
 * (src/float_state.h), only the state that threads start with is tried. */
#include "fixture.h"
#include "float_state.h"
#include "tarn_graph.h"

#include <pthread.h>

static const struct {
    const char *name;
    uint64_t flip; /* of the state that threads start with */
} states[] = {
    {"as threads start", 0},
#if defined __x86_64__
    {"flush to zero", 0x8000},
    {"denormals are zero", 0x40},
    {"both", 0x8040},
    {"down", 0x2000},
    {"up", 0x4000},
    {"to zero", 0x6000},
    {"traps", 0x1f80},
    {"all of it", 0xffc0},
#elif defined __aarch64__
    {"flush to zero", 1u << 24}, {"default NaN", 1u << 25}, {"up", 1u << 22},
    {"down", 2u << 22},          {"to zero", 3u << 22},     {"all of it", 0xfu << 22},
#endif
};
enum { STATES = sizeof states / sizeof *states };

static uint64_t at_start; /* the state that threads start with */

/* fesetround() and feenableexcept() set the x87 as well, where libraries convert text: its control
 * word with the rounding mode and the masks of MXCSR. Returns what was there. */
static unsigned exchange_x87(uint64_t mxcsr)
{
#if defined __x86_64__
    uint16_t control = (uint16_t)(0x340 | (mxcsr >> 13 & 3) << 10 | (mxcsr >> 7 & 0x3f));
    uint16_t former = 0; /* sanitizers do not see what assembly writes */
    __asm__ volatile("fnstcw %0; fnclex; fldcw %1" : "=m"(former) : "m"(control));
    return former;
#else
    return (void)mxcsr, 0;
#endif
}

static void enter(int state)
{
    write_float_state(at_start ^ states[state].flip);
    exchange_x87(at_start ^ states[state].flip);
}

/* Leaves the state; true if it was still there. */
static bool leave(int state)
{
    uint64_t entered = at_start ^ states[state].flip;
    bool kept = (read_float_state() & FLOAT_CONTROL) == (entered & FLOAT_CONTROL) &&
                exchange_x87(entered) == exchange_x87(entered);
    write_float_state(at_start);
    exchange_x87(at_start);
    return kept;
}

/* ---- Threads that have states of their own -------------------------------------------------- */

typedef struct {
    void (*body)(void *argument, int index);
    void *argument;
    int index, state;
    bool kept;
} part;

static void *run_part(void *argument)
{
    part *p = argument;
    enter(p->state);
    p->body(p->argument, p->index);
    p->kept = leave(p->state);
    return NULL;
}

enum { PARTS = 3 };
static bool parts_kept = true;

/* The part's thread has the state of its number, counted from that of the context. */
static void for_threads(void *context, int count, void (*body)(void *, int), void *argument)
{
    pthread_t thread[PARTS];
    part parts[PARTS];
    for (int k = 0; k < count; k++) {
        parts[k] = (part){body, argument, k, (*(const int *)context + k) % STATES, false};
        if (pthread_create(&thread[k], NULL, run_part, &parts[k]))
            abort();
    }
    for (int k = 0; k < count; k++) {
        pthread_join(thread[k], NULL);
        parts_kept &= parts[k].kept;
    }
}

/* ---- Passes --------------------------------------------------------------------------------- */

/* Subnormals, and sums whose last bit depends on rounding. */
static double random_fragile(rng *r, tarn_dtype dtype)
{
    static const double least[] = {0x1p-1074, 0x1p-149, 0x1p-24, 0x1p-133}; /* f64 f32 f16 bf16 */
    double number = rng_unit(r) - 0.5;
    if (rng_range(r, 0, 2) == 0)
        number = (double)rng_range(r, -99, 99) * least[dtype];
    return number;
}

typedef struct {
    tensor y, dy, gx;
} results;

static results run_passes(const char *text, const tarn_options *options, int state)
{
    tarn_pool pool;
    tarn_view x;
    tarn_plan *plan;
    tarn_error error;
    rng r = {7};
    if (tarn_problem_parse(text, &pool, &x, &error))
        abort();
    tensor in = tensor_like(&x), dx = tensor_like(&x);
    fill(&in.view, &r, random_fragile);
    fill(&dx.view, &r, random_fragile);
    results made = {.gx = tensor_like(&x)};
    tarn_view y;
    tarn_output_view(&pool, &x, &y, &error);
    made.y = tensor_like(&y);
    made.dy = tensor_like(&y);
    tensor gy = tensor_like(&y);
    fill(&gy.view, &r, random_fragile);
    enter(state);
    tarn_status status = tarn_plan_create(&plan, &pool, &x, options, &error);
    if (!status)
        status = tarn_jvp(plan, in.memory, dx.memory, made.y.memory, made.dy.memory, &error);
    if (!status)
        status = tarn_vjp(plan, in.memory, NULL, gy.memory, made.gx.memory, &error);
    if (!status)
        status = tarn_forward(plan, in.memory, made.y.memory, NULL, &error);
    tarn_plan_destroy(plan);
    bool kept = leave(state);
    CHECK(!status, "%s, %s: %s", text, states[state].name, error.message);
    CHECK(kept, "%s: the state %s is gone", text, states[state].name);
    tensor_free(&in);
    tensor_free(&dx);
    tensor_free(&gy);
    return made;
}

static void free_results(results *made)
{
    tensor_free(&made->y);
    tensor_free(&made->dy);
    tensor_free(&made->gx);
}

static void compare_state(const char *text, const results *expected, int state, int threads_from)
{
    tarn_options options = tarn_options_default();
    if (threads_from >= 0)
        options.executor =
            (tarn_executor){.parts = PARTS, .parallel_for = for_threads, .context = &threads_from};
    results made = run_passes(text, &options, state);
    bool same = same_elements(&expected->y.view, &made.y.view) &&
                same_elements(&expected->dy.view, &made.dy.view) &&
                same_elements(&expected->gx.view, &made.gx.view);
    CHECK(same, "%s with the state %s, threads from %d", text, states[state].name, threads_from);
    free_results(&made);
}

static void test_passes(void)
{
    static const char *const problems[] = {
        "max k3s2p1 %s 2x9x17",      "min k2s1 %s 2x9x17 ties=split",    "avg k3s1p1 %s 2x9x17",
        "avg a4 %s 3x9x17",          "smooth k3s2 %s 2x9x17 beta=3",     "lp k3s2 %s 2x9x17 p=3",
        "avg k3s1 %s 2x9x17x4 last", "smooth k9s1 %s 2x19x9 beta=1e-310"};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        for (int dtype = TARN_F64; dtype <= TARN_BF16; dtype++) {
            char text[100];
            snprintf(text, sizeof text, problems[k], tarn_dtype_name((tarn_dtype)dtype));
            results expected = run_passes(text, NULL, 0);
            for (int state = 0; state < STATES; state++) {
                compare_state(text, &expected, state, -1);
                compare_state(text, &expected, state, (state + dtype) % STATES);
            }
            free_results(&expected);
        }
    CHECK(parts_kept, "threads do not get their states back");
}

/* ---- Text and graphs ------------------------------------------------------------------------ */

static const char graph_text[] = "x = input f32 4\n"
                                 "c = constant f32 4 0.1 1e-40 -3e-45 0.7\n"
                                 "s = scale x factor=0.1\n"
                                 "t = scale s factor=1e-310\n"
                                 "a = add s c\n"
                                 "b = add a t\n"
                                 "p = smooth x kernel=4 spatial=1 beta=1e-310\n"
                                 "q = smooth x kernel=4 spatial=1 beta=-1e-310\n"
                                 "return b p q\n"; /* p and q are not one problem */
enum { NUMBERS = 4 + 1 + 1 };

/* Loads, runs and saves the graph; returns the length of its text. */
static int64_t run_graph(int state, float *y, char *text, size_t size)
{
    const float x[4] = {0x1p-130f, 3, -0x1p-149f, 0x1.fp-126f};
    tarn_graph *graph;
    tarn_error error;
    enter(state);
    int64_t length = -1;
    tarn_status status =
        tarn_graph_load(&graph, graph_text, sizeof graph_text - 1, NULL, NULL, NULL, &error);
    if (!status)
        status = tarn_graph_forward(graph, (const void *[]){x}, (void *[]){y, y + 4, y + 5}, NULL,
                                    &error);
    if (!status)
        length = tarn_graph_save(graph, text, size);
    tarn_graph_destroy(graph);
    bool kept = leave(state);
    CHECK(!status, "%s", error.message);
    CHECK(kept, "graph: the state %s is gone", states[state].name);
    return length;
}

static void test_graphs(void)
{
    float expected[NUMBERS] = {0}, made[NUMBERS];
    char expected_text[1000] = "", text[1000];
    int64_t length = run_graph(0, expected, expected_text, sizeof expected_text);
    CHECK(expected[4] != expected[5], "signs of beta give %g twice", (double)expected[4]);
    for (int state = 0; state < STATES; state++) {
        CHECK(run_graph(state, made, text, sizeof text) == length, "%s", states[state].name);
        CHECK(memcmp(expected, made, sizeof made) == 0, "graph in the state %s",
              states[state].name);
        CHECK(strcmp(expected_text, text) == 0, "text in the state %s: %s", states[state].name,
              text);
    }
}

static void test_problem_strings(void)
{
    static const char problem[] = "smooth k2 f64 4x4 beta=0.1";
    for (int state = 0; state < STATES; state++) {
        tarn_pool pool;
        tarn_view x;
        char text[100];
        enter(state);
        tarn_problem_parse(problem, &pool, &x, NULL);
        int length = tarn_problem_format(&pool, &x, text, sizeof text);
        bool kept = leave(state);
        CHECK(kept && pool.beta == 0.1, "beta in the state %s", states[state].name);
        CHECK(length > 0 && strcmp(text, "smooth k2s2 f64 4x4 beta=0.1") == 0, "%s in the state %s",
              text, states[state].name);
    }
}

int main(void)
{
    at_start = read_float_state();
    test_passes();
    test_graphs();
    test_problem_strings();
    return finish_checks();
}
