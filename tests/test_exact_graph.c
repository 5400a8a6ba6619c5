/* Whole graphs in exact rational arithmetic: <gy, J dx> = <J' gy, dx>, without a rounding error to
 * forgive.
 *
 * What is tested is the engine's own composition, not a copy of it. A graph of f64 is compiled as
 * always. Rationals are pointers, eight bytes each, so they fit the program's tensors, its arena
 * and its copies as they are; then only the arithmetic of the program is exchanged: the kernels of
 * its plans for the specification instantiated for rationals, the row of its sums and products, the
 * numbers of its constants. The payloads of custom nodes are rational from the start. Which steps
 * there are, in which order they run, what they read and where it lies, which contributions to a
 * gradient are summed and which derivatives are left out, is what tarn_graph_compile() made, run by
 * tarn_program_jvp() and tarn_program_vjp().
 */
#include "graph_reference.h"
#include "rational.h"

#include "graph/graph_program.h"
#include "plan.h"

#ifdef TARN_SHORT_TESTS
enum { GRAPHS = 200, MOST_CELLS = 1000 };
#else
enum { GRAPHS = 5000, MOST_CELLS = 4000 };
#endif

/* ---- A program in rational arithmetic ------------------------------------------------------ */

static void sum_rationals(const tarn_program *p, const tarn_ref *y, const tarn_ref *x, int operands,
                          int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        Q sum = q_int(0);
        for (int k = 0; k < operands; k++)
            sum = q_add(sum, ((Q *)(void *)program_at(p, &x[k]))[i]);
        ((Q *)(void *)program_at(p, y))[i] = sum;
    }
}

static void scale_rationals(const char *x, char *y, double factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((Q *)(void *)y)[i] = q_mul(q_double(factor), ((Q const *)(const void *)x)[i]);
}

static const tarn_arithmetic rational_row = {sizeof(Q), sum_rationals, scale_rationals};

static const tarn_kernel_row rational_kernels[TARN_PASSES] = {
    [TARN_FORWARD] = {.run = exact_forward}, [TARN_FORWARD_SAVED] = {.run = exact_forward},
    [TARN_JVP] = {.run = exact_jvp},         [TARN_VJP] = {.run = exact_vjp},
    [TARN_VJP_SAVED] = {.run = exact_vjp},
};

static void make_rational(tarn_program *p, const r_graph *g, Q *const *numbers)
{
    for (int64_t k = 0; k < p->plans.count; k++)
        for (int pass = 0; pass < TARN_PASSES; pass++) {
            tarn_plan *plan = ((tarn_plan **)p->plans.items)[k];
            if (plan->kernel[pass]) /* it has this pass */
                plan->kernel[pass] = &rational_kernels[pass];
        }
    for (int64_t k = 0; k < p->steps.count; k++)
        program_step(p, k)->arithmetic = &rational_row;
    for (int v = 0, base = p->base_constants; v < g->nodes; v++)
        if (g->node[v].kind == R_CONSTANT)
            p->base[base++] = (char *)numbers[v];
    memset(p->base[0], POISON, (size_t)p->report.arena);
}

static tarn_program *compile(const r_graph *g, tarn_mode mode, const unsigned char *inputs,
                             int values, Q *const *numbers)
{
    tarn_request request = {.mode = mode, .inputs = inputs, .values = values};
    tarn_error error;
    tarn_program *program;
    CHECK(!tarn_graph_compile(&program, g->graph, &request, NULL, &error), "%s", error.message);
    if (!program)
        exit(finish_checks());
    make_rational(program, g, numbers);
    return program;
}

/* ---- The custom node ----------------------------------------------------------------------- */

static Q *rationals_of(const tarn_view *view)
{
    return view->data;
}

static tarn_status multiply(void *context, const tarn_view *x, const tarn_view *y,
                            tarn_error *error)
{
    (void)context, (void)error;
    for (int64_t k = 0; k < count_of(y); k++)
        rationals_of(y)[k] = q_mul(rationals_of(&x[0])[k], rationals_of(&x[1])[k]);
    return TARN_OK;
}

static tarn_status multiply_jvp(void *context, const tarn_view *x, const tarn_view *dx,
                                const tarn_view *dy, tarn_error *error)
{
    (void)context, (void)error;
    for (int64_t k = 0; k < count_of(dy); k++) {
        Q sum = q_int(0);
        for (int operand = 0; operand < 2; operand++)
            if (dx[operand].data)
                sum = q_add(sum,
                            q_mul(rationals_of(&dx[operand])[k], rationals_of(&x[1 - operand])[k]));
        rationals_of(dy)[k] = sum;
    }
    return TARN_OK;
}

static tarn_status multiply_vjp(void *context, const tarn_view *x, const tarn_view *gy,
                                const tarn_view *gx, tarn_error *error)
{
    (void)context, (void)error;
    for (int operand = 0; operand < 2; operand++)
        for (int64_t k = 0; gx[operand].data && k < count_of(gy); k++)
            rationals_of(&gx[operand])[k] =
                q_mul(rationals_of(gy)[k], rationals_of(&x[1 - operand])[k]);
    return TARN_OK;
}

/* ---- Graphs -------------------------------------------------------------------------------- */

static const tarn_custom product = {
    .name = "product", .forward = multiply, .jvp = multiply_jvp, .vjp = multiply_vjp};

/* Products and quotients double the digits of what they are made from: a few are enough. */
static bool is_small(const r_graph *g)
{
    int64_t cells = 0, growth = 0;
    for (int v = 0; v < g->nodes; v++) {
        const r_node *n = &g->node[v];
        cells += count_of(&n->view);
        growth += n->kind == R_PRODUCT;
        growth += n->kind == R_POOL && n->pool.op >= TARN_SMOOTH ? 2 : 0; /* Lp: |x|^p */
    }
    return cells <= MOST_CELLS && growth <= 4;
}

/* Graphs whose value is affine: their JVP is a difference of values. */
static bool is_affine(const r_graph *g)
{
    for (int v = 0; v < g->nodes; v++) {
        const r_node *n = &g->node[v];
        if (n->kind == R_PRODUCT || (n->kind == R_POOL && n->pool.op != TARN_AVG))
            return false;
    }
    return true;
}

/* Tensors of rationals: of each node, or of each output. */
typedef struct {
    Q *value[MOST_NODES], *tangent[MOST_NODES], *gradient[MOST_NODES]; /* by node */
    Q *y[MOST_NODES], *dy[MOST_NODES], *gy[MOST_NODES];                /* by output */
} bench;

/* Fractions with many ties among them, or none given. */
static Q *draw(rng *r, const tarn_view *view, bool numbers)
{
    int64_t count = count_of(view);
    Q *made = calloc((size_t)count + 1, sizeof *made);
    for (int64_t k = 0; numbers && k < count; k++) {
        long numerator = (long)rng_range(r, -5, 5);
        made[k] = q_ratio(numerator, (unsigned long)rng_range(r, 1, 3));
    }
    return made;
}

static bench set_up(const r_graph *g, rng *r)
{
    bench b;
    for (int v = 0; v < g->nodes; v++) {
        b.value[v] = draw(r, &g->node[v].view, true);
        b.tangent[v] = draw(r, &g->node[v].view, true);
        b.gradient[v] = draw(r, &g->node[v].view, false);
    }
    for (int k = 0; k < g->outputs; k++) {
        b.y[k] = draw(r, &g->node[g->output[k]].view, false);
        b.dy[k] = draw(r, &g->node[g->output[k]].view, false);
        b.gy[k] = draw(r, &g->node[g->output[k]].view, true);
    }
    return b;
}

static void tear_down(const r_graph *g, bench *b)
{
    for (int v = 0; v < g->nodes; v++) {
        free(b->value[v]);
        free(b->tangent[v]);
        free(b->gradient[v]);
    }
    for (int k = 0; k < g->outputs; k++) {
        free(b->y[k]);
        free(b->dy[k]);
        free(b->gy[k]);
    }
}

static Q dot(Q const *a, Q const *b, int64_t count, Q sum)
{
    for (int64_t k = 0; k < count; k++)
        sum = q_add(sum, q_mul(a[k], b[k]));
    return sum;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* The tensors of all inputs. */
static void gather_inputs(const r_graph *g, Q *const *by_node, void **pointers)
{
    for (int k = 0; k < g->inputs; k++)
        pointers[k] = by_node[g->input[k]];
}

static void run_forward(const r_graph *g, bench *b)
{
    void *x[MOST_NODES];
    tarn_error error;
    tarn_program *p = compile(g, TARN_GRAPH_FORWARD, NULL, 0, b->value);
    gather_inputs(g, b->value, x);
    CHECK(!tarn_program_forward(p, (const void *const *)x, (void *const *)b->y, &error), "%s",
          error.message);
    tarn_program_destroy(p);
}

static void run_jvp(const r_graph *g, bench *b, const unsigned char *wanted, int values)
{
    void *x[MOST_NODES], *dx[MOST_NODES];
    tarn_error error;
    tarn_program *p = compile(g, TARN_GRAPH_JVP, wanted, values, b->value);
    gather_inputs(g, b->value, x);
    gather_inputs(g, b->tangent, dx);
    CHECK(!tarn_program_jvp(p, (const void *const *)x, (const void *const *)dx, (void *const *)b->y,
                            (void *const *)b->dy, &error),
          "%s", error.message);
    tarn_program_destroy(p);
}

static void run_vjp(const r_graph *g, bench *b, const unsigned char *wanted, int values)
{
    void *x[MOST_NODES], *gx[MOST_NODES];
    tarn_error error;
    tarn_program *p = compile(g, TARN_GRAPH_VJP, wanted, values, b->value);
    gather_inputs(g, b->value, x);
    gather_inputs(g, b->gradient, gx);
    CHECK(!tarn_program_vjp(p, (const void *const *)x, (const void *const *)b->gy,
                            (void *const *)b->y, gx, &error),
          "%s", error.message);
    tarn_program_destroy(p);
}

/* ---- Checks -------------------------------------------------------------------------------- */

static int telling, affine, by_kind[R_KINDS], by_ties[TARN_TIES], by_window[TARN_WINDOWS];

static void count_kinds(const r_graph *g)
{
    for (int v = 0; v < g->nodes; v++) {
        const r_node *n = &g->node[v];
        by_kind[n->kind]++;
        if (n->kind == R_POOL) {
            by_window[n->pool.window]++;
            if (n->pool.op == TARN_MAX || n->pool.op == TARN_MIN)
                by_ties[n->pool.ties]++;
        }
    }
}

/* With values the VJP of max and min takes saved winners, without them x. */
static void check_adjoint(const r_graph *g, bench *b, const unsigned char *wanted, int values,
                          uint64_t seed)
{
    Q left = q_int(0), right = q_int(0);
    run_jvp(g, b, wanted, values);
    run_vjp(g, b, wanted, values);
    for (int k = 0; k < g->outputs; k++)
        left = dot(b->gy[k], b->dy[k], count_of(&g->node[g->output[k]].view), left);
    for (int k = 0; k < g->inputs; k++) {
        tarn_value v = g->input[k];
        if (!wanted || wanted[k])
            right = dot(b->gradient[v], b->tangent[v], count_of(&g->node[v].view), right);
    }
    CHECK(q_equal(left, right), "seed %llu: %g, not %g", (unsigned long long)seed, q_about(left),
          q_about(right));
    telling += !q_equal(left, NULL);
}

/* f(x + dx) - f(x) = J dx. */
static void check_difference(const r_graph *g, bench *b, uint64_t seed)
{
    bench moved = *b;
    for (int v = 0; v < g->nodes; v++) {
        int64_t count = count_of(&g->node[v].view);
        moved.value[v] = calloc((size_t)count + 1, sizeof(Q));
        for (int64_t k = 0; k < count; k++)
            moved.value[v][k] = g->node[v].kind == R_INPUT ? q_add(b->value[v][k], b->tangent[v][k])
                                                           : b->value[v][k];
    }
    rng none = {0};
    for (int k = 0; k < g->outputs; k++)
        moved.y[k] = draw(&none, &g->node[g->output[k]].view, false);
    run_forward(g, b);
    run_forward(g, &moved);
    run_jvp(g, b, NULL, 0);
    for (int k = 0; k < g->outputs; k++)
        for (int64_t i = 0; i < count_of(&g->node[g->output[k]].view); i++)
            CHECK(q_equal(q_sub(moved.y[k][i], b->y[k][i]), b->dy[k][i]), "seed %llu: output %d",
                  (unsigned long long)seed, k);
    for (int v = 0; v < g->nodes; v++)
        free(moved.value[v]);
    for (int k = 0; k < g->outputs; k++)
        free(moved.y[k]);
    affine++;
}

static void check_graph(uint64_t seed)
{
    rng r = {seed};
    unsigned char wanted[MOST_NODES];
    r_graph g = random_graph_with(&r, TARN_F64, false, &product);
    arena.used = 0;
    if (is_small(&g)) {
        bench b = set_up(&g, &r);
        for (int k = 0; k < g.inputs; k++)
            wanted[k] = (unsigned char)rng_range(&r, 0, 1);
        count_kinds(&g);
        for (int values = 0; values <= 1; values++)
            check_adjoint(&g, &b, NULL, values, seed);
        check_adjoint(&g, &b, wanted, 1, seed);
        if (is_affine(&g))
            check_difference(&g, &b, seed);
        tear_down(&g, &b);
    }
    free_random(&g);
}

int main(void)
{
    for (uint64_t seed = 0; seed < GRAPHS; seed++)
        check_graph(seed);
    CHECK(telling > GRAPHS / 2, "only %d adjoints say something", telling);
    CHECK(affine > GRAPHS / 50, "only %d graphs are affine", affine);
    for (int kind = 0; kind < R_KINDS; kind++)
        CHECK(by_kind[kind] > 0, "no node of kind %d", kind);
    for (int rule = 0; rule < TARN_TIES; rule++)
        CHECK(by_ties[rule] > 0 && by_window[rule] > 0, "no pool of rule %d", rule);
    free_arena();
    return finish_checks();
}
