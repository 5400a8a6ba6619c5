/* Graphs equal the composition of the specification's operators, bit by bit: forward, JVP and VJP,
 * serial and threaded, compiled and not; and no buffer is read that another has overwritten. */
#include "graph_reference.h"
#include "graph/graph_program.h"

#include <pthread.h>

#ifdef TARN_SHORT_TESTS
enum { GRAPHS = 250 };
#else
enum { GRAPHS = 1500 };
#endif

/* ---- Threads ------------------------------------------------------------------------------- */

typedef struct {
    void (*body)(void *, int);
    void *argument;
    int index;
} part;

static void *run_part(void *argument)
{
    part *p = argument;
    p->body(p->argument, p->index);
    return NULL;
}

static void for_threads(void *context, int count, void (*body)(void *, int), void *argument)
{
    pthread_t thread[8];
    part parts[8];
    (void)context;
    for (int k = 0; k < count; k++) {
        parts[k] = (part){body, argument, k};
        if (pthread_create(&thread[k], NULL, run_part, &parts[k]))
            abort();
    }
    for (int k = 0; k < count; k++)
        pthread_join(thread[k], NULL);
}

static tarn_options options_for(int parts)
{
    tarn_options options = tarn_options_default();
    if (parts > 1)
        options.executor = (tarn_executor){.parts = parts, .parallel_for = for_threads};
    return options;
}

/* ---- A run of a random graph --------------------------------------------------------------- */

typedef struct {
    tensor output[MOST_NODES], output_tangent[MOST_NODES], cotangent[MOST_NODES];
    tensor gradient[MOST_NODES];
    const void *x[MOST_NODES], *dx[MOST_NODES], *gy[MOST_NODES];
    void *y[MOST_NODES], *dy[MOST_NODES], *gx[MOST_NODES];
} bench;

static bench set_up(r_graph *g, rng *r)
{
    bench b;
    for (int k = 0; k < g->inputs; k++) {
        r_node *n = &g->node[g->input[k]];
        n->value = tensor_like(&n->view);
        n->tangent = tensor_like(&n->view);
        fill(&n->value.view, r, g->exact || rng_range(r, 0, 1) ? random_small : random_wide);
        fill(&n->tangent.view, r, g->exact ? random_small : random_wide);
        b.gradient[k] = tensor_like(&n->view);
        b.x[k] = n->value.memory;
        b.dx[k] = n->tangent.memory;
        b.gx[k] = b.gradient[k].memory;
    }
    for (int k = 0; k < g->outputs; k++) {
        const tarn_view *view = &g->node[g->output[k]].view;
        b.output[k] = tensor_like(view);
        b.output_tangent[k] = tensor_like(view);
        b.cotangent[k] = tensor_like(view);
        fill(&b.cotangent[k].view, r, g->exact ? random_small : random_wide);
        if (is_floating_dtype(view->dtype) && count_of(view) > 0)
            put_number(view->dtype, b.cotangent[k].memory, -0.0);
        b.y[k] = b.output[k].memory;
        b.dy[k] = b.output_tangent[k].memory;
        b.gy[k] = b.cotangent[k].memory;
    }
    return b;
}

static void poison_results(const r_graph *g, bench *b)
{
    for (int k = 0; k < g->inputs; k++)
        memset(b->gradient[k].memory, POISON, b->gradient[k].bytes);
    for (int k = 0; k < g->outputs; k++) {
        memset(b->output[k].memory, POISON, b->output[k].bytes);
        memset(b->output_tangent[k].memory, POISON, b->output_tangent[k].bytes);
    }
}

static void tear_down(const r_graph *g, bench *b)
{
    for (int k = 0; k < g->inputs; k++)
        tensor_free(&b->gradient[k]);
    for (int k = 0; k < g->outputs; k++) {
        tensor_free(&b->output[k]);
        tensor_free(&b->output_tangent[k]);
        tensor_free(&b->cotangent[k]);
    }
}

static void check_results(const r_graph *g, const bench *b, tarn_mode mode, bool values,
                          const char *how, uint64_t seed)
{
    for (int k = 0; k < g->outputs; k++) {
        const r_node *n = &g->node[g->output[k]];
        CHECK(!values || memcmp(b->output[k].memory, n->value.memory, n->value.bytes) == 0,
              "%s, seed %llu: output %d", how, (unsigned long long)seed, k);
        CHECK(values || is_poison(b->output[k].memory, b->output[k].bytes),
              "%s, seed %llu: output %d written unasked", how, (unsigned long long)seed, k);
        if (mode == TARN_GRAPH_JVP)
            CHECK(memcmp(b->output_tangent[k].memory, n->tangent.memory, n->tangent.bytes) == 0,
                  "%s, seed %llu: tangent of output %d", how, (unsigned long long)seed, k);
    }
    for (int k = 0; mode == TARN_GRAPH_VJP && k < g->inputs; k++) {
        const r_node *n = &g->node[g->input[k]];
        CHECK(memcmp(b->gradient[k].memory, n->gradient.memory, n->gradient.bytes) == 0,
              "%s, seed %llu: gradient of input %d", how, (unsigned long long)seed, k);
    }
}

static tarn_status run_program(tarn_program *p, const bench *b, tarn_mode mode, tarn_error *error)
{
    if (mode == TARN_GRAPH_FORWARD)
        return tarn_program_forward(p, b->x, b->y, error);
    if (mode == TARN_GRAPH_JVP)
        return tarn_program_jvp(p, b->x, b->dx, b->y, b->dy, error);
    return tarn_program_vjp(p, b->x, b->gy, b->y, b->gx, error);
}

/* ---- The plan of the memory, verified from its steps --------------------------------------- */

/* Every byte of the arena remembers the buffer that wrote it last; a read must find its own. That
 * is liveness from what the steps do, not from what the compiler noted. */
static void verify_plan(const tarn_program *p, uint64_t seed)
{
    int64_t bytes = p->report.arena;
    int *owner = malloc((size_t)(bytes + 1) * sizeof *owner);
    for (int64_t k = 0; k < bytes; k++)
        owner[k] = NO_BUFFER;
    for (int64_t s = 0; s < p->steps.count; s++) {
        const tarn_step *step = program_step(p, s);
        for (int pass = 0; pass < 2; pass++) /* reads, then writes */
            for (int k = 0; k < step->count; k++) {
                const tarn_ref *ref = program_ref(p, step->first + k);
                bool written = k < step->written;
                if (ref->base != 0 || written != (pass == 1))
                    continue;
                bool inside = ref->at >= 0 && ref->at + ref->place.bytes <= bytes;
                CHECK(inside, "seed %llu: step %lld leaves the arena", (unsigned long long)seed,
                      (long long)s);
                bool fine = true;
                for (int64_t at = ref->at; inside && at < ref->at + ref->place.bytes; at++) {
                    fine &= written || owner[at] == ref->place.buffer;
                    if (written)
                        owner[at] = ref->place.buffer;
                }
                CHECK(fine, "seed %llu: step %lld reads what another wrote",
                      (unsigned long long)seed, (long long)s);
            }
    }
    free(owner);
    CHECK(p->report.floor <= p->report.arena && p->report.arena <= p->report.without_reuse,
          "seed %llu: floor %lld, arena %lld, without reuse %lld", (unsigned long long)seed,
          (long long)p->report.floor, (long long)p->report.arena,
          (long long)p->report.without_reuse);
}

static bool step_touches(const tarn_program *p, const tarn_step *step, bool written, int buffer)
{
    for (int k = written ? 0 : step->written; k < (written ? step->written : step->count); k++)
        if (program_ref(p, step->first + k)->place.buffer == buffer)
            return true;
    return false;
}

/* Whether the only step that both are alive at is one that goes element by element, reads the one
 * for the last time and makes the other from it, in the same place. */
static bool is_made_over(const tarn_program *p, int old, int made)
{
    const tarn_buffer *a = program_buffer(p, old), *b = program_buffer(p, made);
    if (a->last != b->first || a->offset != b->offset || a->bytes != b->bytes)
        return false;
    const tarn_step *step = program_step(p, a->last);
    return (step->kind == STEP_SUM || step->kind == STEP_SCALE) &&
           step_touches(p, step, true, made) && step_touches(p, step, false, old);
}

static int made_over; /* how often that was seen */

/* No two buffers that are alive at one step overlap; pairwise, without the packer's lists. */
static void verify_lives(const tarn_program *p, uint64_t seed)
{
    for (int i = 0; i < p->buffers.count; i++)
        for (int j = 0; j < i; j++) {
            const tarn_buffer *a = program_buffer(p, i), *b = program_buffer(p, j);
            bool in_arena = a->base == 0 && b->base == 0 && a->bytes > 0 && b->bytes > 0;
            bool meet_in_time = a->first <= b->last && b->first <= a->last;
            bool meet_in_space =
                a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            bool meet = in_arena && meet_in_time && meet_in_space;
            bool allowed = meet && (is_made_over(p, i, j) || is_made_over(p, j, i));
            made_over += allowed;
            CHECK(!meet || allowed, "seed %llu: buffers %d and %d share bytes",
                  (unsigned long long)seed, i, j);
        }
}

/* Runs step by step; before each, everything that is not alive is poisoned. */
static void run_poisoned(tarn_program *p, uint64_t seed)
{
    tarn_error error;
    size_t bytes = (size_t)p->report.arena;
    char *kept = malloc(bytes + 1);
    for (int64_t s = 0; s < p->steps.count; s++) {
        memcpy(kept, p->base[0], bytes);
        memset(p->base[0], POISON, bytes);
        for (int64_t k = 0; k < p->buffers.count; k++) {
            const tarn_buffer *b = program_buffer(p, k);
            if (b->base == 0 && b->first < s && b->last >= s)
                memcpy(p->base[0] + b->offset, kept + b->offset, (size_t)b->bytes);
        }
        CHECK(tarn_run_step(p, s, &error) == TARN_OK, "seed %llu: %s", (unsigned long long)seed,
              error.message);
    }
    free(kept);
}

/* ---- Random graphs ------------------------------------------------------------------------- */

static void check_program(r_graph *g, bench *b, tarn_mode mode, bool values, int parts,
                          uint64_t seed)
{
    tarn_options options = options_for(parts);
    tarn_request request = {.mode = mode, .values = values};
    tarn_program *program;
    tarn_error error;
    tarn_status status = tarn_graph_compile(&program, g->graph, &request, &options, &error);
    CHECK(status == TARN_OK, "seed %llu: %s", (unsigned long long)seed, error.message);
    if (status)
        return;
    values |= mode == TARN_GRAPH_FORWARD;
    for (int again = 0; again < 2; again++) {
        poison_results(g, b);
        memset(program->base[0], POISON, (size_t)program->report.arena);
        status = run_program(program, b, mode, &error);
        CHECK(status == TARN_OK, "seed %llu: %s", (unsigned long long)seed, error.message);
        check_results(g, b, mode, values, parts > 1 ? "threads" : "serial", seed);
    }
    if (parts == 1) {
        verify_plan(program, seed);
        verify_lives(program, seed);
        poison_results(g, b);
        run_poisoned(program, seed);
        check_results(g, b, mode, values, "poisoned", seed);
    }
    tarn_program_destroy(program);
}

/* Without compiling, on threads, against the same composition. */
static void check_uncompiled(r_graph *g, bench *b, bool derivatives, int parts, uint64_t seed)
{
    tarn_error error;
    tarn_options options = options_for(parts);
    poison_results(g, b);
    CHECK(!tarn_graph_forward(g->graph, b->x, b->y, &options, &error), "%s", error.message);
    check_results(g, b, TARN_GRAPH_FORWARD, true, "uncompiled", seed);
    for (int values = 0; derivatives && values <= 1; values++) {
        void *const *y = values ? b->y : NULL;
        poison_results(g, b);
        CHECK(!tarn_graph_jvp(g->graph, b->x, b->dx, y, b->dy, &options, &error), "%s",
              error.message);
        check_results(g, b, TARN_GRAPH_JVP, values, "uncompiled", seed);
        poison_results(g, b);
        CHECK(!tarn_graph_vjp(g->graph, b->x, b->gy, y, b->gx, &options, &error), "%s",
              error.message);
        check_results(g, b, TARN_GRAPH_VJP, values, "uncompiled", seed);
    }
}

/* Derivatives with respect to some inputs only: the others are constants, and theirs are not
 * written. */
static void check_some_inputs(r_graph *g, bench *b, rng *r, uint64_t seed)
{
    unsigned char wanted[MOST_NODES];
    tarn_error error;
    g->fixed = 0;
    for (int k = 0; k < g->inputs; k++) {
        wanted[k] = (unsigned char)rng_range(r, 0, 1);
        g->fixed |= wanted[k] ? 0u : 1u << k;
    }
    reference_jvp(g);
    for (int mode = TARN_GRAPH_JVP; mode <= TARN_GRAPH_VJP; mode++) {
        tarn_request request = {.mode = (tarn_mode)mode, .inputs = wanted};
        tarn_program *program;
        CHECK(!tarn_graph_compile(&program, g->graph, &request, NULL, &error), "%s", error.message);
        poison_results(g, b);
        CHECK(!run_program(program, b, (tarn_mode)mode, &error), "%s", error.message);
        for (int k = 0; mode == TARN_GRAPH_JVP && k < g->outputs; k++)
            CHECK(memcmp(b->dy[k], g->node[g->output[k]].tangent.memory, b->output[k].bytes) == 0,
                  "seed %llu: tangent of output %d", (unsigned long long)seed, k);
        for (int k = 0; mode == TARN_GRAPH_VJP && k < g->inputs; k++)
            CHECK(wanted[k] ? memcmp(b->gx[k], g->node[g->input[k]].gradient.memory,
                                     b->gradient[k].bytes) == 0
                            : is_poison(b->gx[k], b->gradient[k].bytes),
                  "seed %llu: gradient of input %d", (unsigned long long)seed, k);
        verify_plan(program, seed);
        tarn_program_destroy(program);
    }
}

static void test_random_graphs(void)
{
    static const tarn_dtype dtypes[] = {TARN_F32, TARN_F64,  TARN_F32, TARN_F16,
                                        TARN_F32, TARN_BF16, TARN_I8,  TARN_I32};
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        rng r = {seed};
        tarn_dtype dtype = dtypes[seed % 8];
        bool derivatives = is_floating_dtype(dtype);
        r_graph g = random_graph(&r, dtype, false);
        bench b = set_up(&g, &r);
        reference_forward(&g);
        if (derivatives) {
            reference_jvp(&g);
            reference_vjp(&g, b.cotangent);
        }
        for (int parts = 1; parts <= (seed % 10 == 0 ? 3 : 1); parts += 2) {
            for (int mode = 0; mode <= (derivatives ? 2 : 0); mode++)
                for (int values = 0; values <= (mode > 0); values++)
                    check_program(&g, &b, (tarn_mode)mode, values, parts, seed);
            check_uncompiled(&g, &b, derivatives, parts, seed);
        }
        if (derivatives)
            check_some_inputs(&g, &b, &r, seed);
        tear_down(&g, &b);
        free_random(&g);
    }
    CHECK(made_over > 100, "only %d values are made over another", made_over);
}

/* <gy, J dx> = <J' gy, dx>, exactly: small numbers and arithmetic that does not round. */
static void test_adjoint(void)
{
    int tested = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        rng r = {seed + 77777};
        r_graph g = random_graph(&r, TARN_F64, true);
        int products = 0;
        for (int v = 0; v < g.nodes; v++)
            products += g.node[v].kind == R_PRODUCT || g.node[v].kind == R_SCALE;
        bench b = set_up(&g, &r);
        tarn_error error;
        double left = 0, right = 0;
        if (products <= 3) { /* more would outgrow 53 bits */
            CHECK(!tarn_graph_jvp(g.graph, b.x, b.dx, NULL, b.dy, NULL, &error), "%s",
                  error.message);
            CHECK(!tarn_graph_vjp(g.graph, b.x, b.gy, NULL, b.gx, NULL, &error), "%s",
                  error.message);
            for (int k = 0; k < g.outputs; k++)
                for (int64_t i = 0; i < count_of(&b.cotangent[k].view); i++)
                    left += number_at(&b.cotangent[k].view, i) *
                            number_at(&b.output_tangent[k].view, i);
            for (int k = 0; k < g.inputs; k++)
                for (int64_t i = 0; i < count_of(&b.gradient[k].view); i++)
                    right += number_at(&b.gradient[k].view, i) *
                             number_at(&g.node[g.input[k]].tangent.view, i);
            CHECK(left == right, "seed %llu: %.17g, %.17g", (unsigned long long)seed, left, right);
            tested += left != 0;
        }
        tear_down(&g, &b);
        free_random(&g);
    }
    CHECK(tested > GRAPHS / 4, "only %d adjoints say something", tested);
}

int main(void)
{
    test_random_graphs();
    test_adjoint();
    return finish_checks();
}
