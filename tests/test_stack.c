/* The stack that calls take, as tarn.h states it: measured on a painted stack, whole calls and
 * not kernels alone (test_kernels measures those on many more problems). */
#define _GNU_SOURCE /* pthread_attr_setstack, MAP_ANONYMOUS */
#include "fixture.h"
#include "tarn_graph.h"

#include <pthread.h>
#include <sys/mman.h>

enum {
    PASS_BYTES = 66 << 10,  /* a pass of a plan: 64 KiB of its kernel, and what is around it */
    OTHER_BYTES = 96 << 10, /* anything else, a call without a plan included */
    STACK_BYTES = 4 << 20,  /* what the measuring thread has */
    CALL_BYTES = 256,       /* what memset() and the harness may take */
    PAINT = 0x5b
};

typedef struct {
    const char *text;
    tarn_pool pool;
    tarn_view x, y;
    tarn_plan *plan;
    tensor in, tangent, out, out_tangent, gradient;
} subject;

typedef tarn_status action(subject *s, tarn_error *error);

typedef struct {
    action *act;
    subject *subject;
    char *stack;
    int64_t bytes;
    tarn_status status;
    tarn_error error;
} measurement;

static void *measure_in_thread(void *argument)
{
    measurement *m = argument;
    char *here = __builtin_frame_address(0), *byte = m->stack;
    memset(m->stack, PAINT, (size_t)(here - CALL_BYTES - m->stack));
    m->status = m->act(m->subject, &m->error);
    while (byte < here && *byte == PAINT)
        byte++;
    m->bytes = here - byte;
    return NULL;
}

static int64_t measure(const char *name, action *act, subject *subject, int64_t most)
{
    static char *stack;
    if (!stack)
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    measurement m = {.act = act, .subject = subject, .stack = stack};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (stack == MAP_FAILED || pthread_attr_setstack(&attributes, stack, STACK_BYTES) ||
        pthread_create(&thread, &attributes, measure_in_thread, &m) || pthread_join(thread, NULL))
        abort();
    pthread_attr_destroy(&attributes);
    CHECK(m.status == TARN_OK, "%s of %s: %s", name, subject->text, m.error.message);
#ifndef TARN_SANITIZED /* frames of instrumented code are larger */
    CHECK(m.bytes <= most, "%s of %s takes %lld bytes of stack", name, subject->text,
          (long long)m.bytes);
#endif
    (void)most;
    return m.bytes;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static tarn_status parse(subject *s, tarn_error *error)
{
    return tarn_problem_parse(s->text, &s->pool, &s->x, error);
}

static tarn_status create_plan(subject *s, tarn_error *error)
{
    return tarn_plan_create(&s->plan, &s->pool, &s->x, NULL, error);
}

static tarn_status forward(subject *s, tarn_error *error)
{
    return tarn_forward(s->plan, s->in.memory, s->out.memory, NULL, error);
}

static tarn_status jvp(subject *s, tarn_error *error)
{
    return tarn_jvp(s->plan, s->in.memory, s->tangent.memory, s->out.memory, s->out_tangent.memory,
                    error);
}

static tarn_status vjp(subject *s, tarn_error *error)
{
    return tarn_vjp(s->plan, s->in.memory, NULL, s->out_tangent.memory, s->gradient.memory, error);
}

static tarn_status forward_without_plan(subject *s, tarn_error *error)
{
    return tarn_pool_forward(&s->pool, &s->in.view, &s->out.view, error);
}

static tarn_status vjp_without_plan(subject *s, tarn_error *error)
{
    return tarn_pool_vjp(&s->pool, &s->in.view, &s->out_tangent.view, &s->gradient.view, error);
}

static tarn_status graph(subject *s, tarn_error *error)
{
    tarn_graph *made;
    tarn_value x, y;
    static char text[4000];
    tarn_status status = tarn_graph_create(&made, NULL, error);
    if (!status)
        status = tarn_graph_input(made, s->x.dtype, s->x.rank, s->x.shape, &x, error);
    if (!status)
        status = tarn_graph_pool(made, x, &s->pool, &y, error);
    if (!status)
        status = tarn_graph_output(made, y, error);
    if (!status)
        status = tarn_graph_vjp(made, (const void *[]){s->in.memory},
                                (const void *[]){s->out_tangent.memory}, (void *[]){s->out.memory},
                                (void *[]){s->gradient.memory}, NULL, error);
    int64_t length = status ? 0 : tarn_graph_save(made, text, sizeof text);
    tarn_graph_destroy(made);
    if (!status)
        status = tarn_graph_load(&made, text, (size_t)length, NULL, NULL, NULL, error);
    if (!status)
        tarn_graph_destroy(made);
    return status;
}

static void test_problem(const char *text, bool show)
{
    subject s = {.text = text};
    rng r = {3};
    int64_t deepest = measure("parsing", parse, &s, OTHER_BYTES);
    deepest = max_i64(deepest, measure("planning", create_plan, &s, OTHER_BYTES));
    tarn_output_view(&s.pool, &s.x, &s.y, NULL);
    s.in = tensor_like(&s.x);
    s.tangent = tensor_like(&s.x);
    s.gradient = tensor_like(&s.x);
    s.out = tensor_like(&s.y);
    s.out_tangent = tensor_like(&s.y);
    fill(&s.in.view, &r, random_wide);
    fill(&s.tangent.view, &r, random_wide);
    fill(&s.out_tangent.view, &r, random_wide);
    int64_t pass = measure("forward", forward, &s, PASS_BYTES);
    pass = max_i64(pass, measure("jvp", jvp, &s, PASS_BYTES));
    pass = max_i64(pass, measure("vjp", vjp, &s, PASS_BYTES));
    deepest =
        max_i64(deepest, measure("forward without a plan", forward_without_plan, &s, OTHER_BYTES));
    deepest = max_i64(deepest, measure("vjp without a plan", vjp_without_plan, &s, OTHER_BYTES));
    deepest = max_i64(deepest, measure("a graph", graph, &s, OTHER_BYTES));
    if (show)
        printf("%-50s passes %6lld, others %6lld\n", text, (long long)pass, (long long)deepest);
    tarn_plan_destroy(s.plan);
    tensor_free(&s.in);
    tensor_free(&s.tangent);
    tensor_free(&s.gradient);
    tensor_free(&s.out);
    tensor_free(&s.out_tangent);
}

int main(int argc, char **argv)
{
    static const char *const problems[] = {"max k3s2p1 f32 2x3x65x130",
                                           "max k31s1 f16 1x1x70x3000",
                                           "min k2s2 bf16 2x64x9x10 last",
                                           "avg k9s1p4 f32 1x2x65x700",
                                           "avg k3s1 f16 2x17x19x33 last",
                                           "avg a7,3 f64 2x65x130",
                                           "smooth k3s2p1 f32 2x3x65x130 beta=3",
                                           "smooth k17s1 f16 1x1x70x200 beta=3",
                                           "lp k5s2 f32 2x3x65x130 p=3",
                                           "max k5s2 f32 2x3x33x70 ties=split",
                                           "max k2,2,2,2,2,2,2,2s1 f32 3x3x3x3x3x3x3x3 d8",
                                           "smooth global f32 2x3x65x130"};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        test_problem(problems[k], argc > 1 && argv[1]); /* any argument: print what was measured */
    return finish_checks();
}
