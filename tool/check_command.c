/* tarn check: what can be checked of a problem on this machine. Fast kernels against the
 * specification, bit by bit; the adjoint identity <gy, J dx> = <J' gy, dx>; finite differences
 * against J dx. */
#include "tensors.h"
#include "../src/layout.h"
#include "../src/shape.h"
#include "../src/io/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELLS = 1 << 18 }; /* of the input; more planes would tell nothing new */

typedef struct {
    const tool_call *call;
    tool_problem problem; /* leading axes shortened */
    tarn_options options;
    int failures;
    bool shortened;
} checker;

/* ---- Answers ------------------------------------------------------------------------------- */

static void answer(checker *c, const char *check, tool_verdict verdict, const char *note)
{
    c->failures += verdict == CHECK_FAILED;
    tool_print_answer(check, verdict, note, tool_given(c->call, OPTION_JSON));
}

/* ---- The problem --------------------------------------------------------------------------- */

/* Planes are independent: a few of them tell what all would. */
static void shorten(checker *c)
{
    tarn_view *x = &c->problem.x;
    int64_t cells = 1;
    for (int a = x->rank - 1; a >= 0; a--) {
        int64_t room = max_i64(1, MOST_CELLS / max_i64(cells, 1));
        if (a < x->rank - c->problem.pool.spatial && x->shape[a] > room) {
            x->shape[a] = room;
            c->shortened = true;
        }
        if (!checked_mul(cells, max_i64(x->shape[a], 1), &cells))
            cells = INT64_MAX;
    }
}

/* A plan of the problem in that dtype, its tensors dense in the problem's axis order. */
static bool make_plan(const checker *c, tarn_dtype dtype, uint32_t isa, tarn_plan **plan,
                      tarn_complaint *complaint)
{
    tarn_view x = c->problem.x;
    tarn_options options = c->options;
    tarn_error error;
    options.isa = isa ? isa : options.isa;
    x.dtype = dtype;
    tarn_make_dense_like(&x, &c->problem.x);
    return !tarn_plan_create(plan, &c->problem.pool, &x, &options, &error) ||
           tool_complain_library(complaint, &error);
}

/* The tensors of a plan; x is the file's, if there is one. */
static bool make_tensors(const checker *c, const tarn_plan *plan, tool_tensors *t,
                         tarn_complaint *complaint)
{
    if (!tool_tensors_make(t, plan, complaint))
        return false;
    if (c->problem.file.view.data) {
        tarn_view file = c->problem.x;
        file.dtype = c->problem.file.view.dtype;
        tarn_convert(&file, c->problem.file.swapped, &t->view[TARN_X]);
    }
    return true;
}

/* ---- Fast against the specification -------------------------------------------------------- */

static bool same_results(const tool_tensors *a, const tool_tensors *b, tarn_pass pass)
{
    for (const int *k = tool_pass_writes(pass); *k >= 0; k++)
        if (*k == TOOL_SAVED ? memcmp(a->saved, b->saved, a->saved_bytes) != 0
                             : memcmp(a->view[*k].data, b->view[*k].data, a->bytes[*k]) != 0)
            return false;
    return true;
}

static bool writes_numbers(const tool_tensors *t, tarn_pass pass)
{
    for (const int *k = tool_pass_writes(pass); *k >= 0; k++)
        if (*k == TOOL_SAVED ? t->saved_bytes : t->bytes[*k])
            return true;
    return false;
}

/* A sentence, and the names of the passes that it is true of. */
typedef struct {
    const char *check;
    char passes[240];
} finding;

static void compare(checker *c, const tarn_plan *fast, const tarn_plan *spec, tool_tensors *a,
                    tool_tensors *b)
{
    finding found[] = {
        [CHECK_FAILED] = {"fast kernels differ from the specification", ""},
        [CHECK_OK] = {"fast kernels equal the specification, bit by bit", ""},
        [CHECK_SKIPPED] = {"fast kernels write nothing to compare", ""},
    };
    for (int pass = 0; pass < TARN_PASSES; pass++) {
        if (!tool_has_pass(fast, (tarn_pass)pass))
            continue;
        bool same = !tool_run_pass(fast, (tarn_pass)pass, a, NULL) &&
                    !tool_run_pass(spec, (tarn_pass)pass, b, NULL) &&
                    same_results(a, b, (tarn_pass)pass);
        tool_verdict verdict = !same                                ? CHECK_FAILED
                               : writes_numbers(a, (tarn_pass)pass) ? CHECK_OK
                                                                    : CHECK_SKIPPED;
        char *list = found[verdict].passes;
        size_t used = strlen(list);
        snprintf(list + used, sizeof found->passes - used, "%s%s", used ? "; " : "",
                 tool_pass_name((tarn_pass)pass));
    }
    for (size_t k = 0; k < sizeof found / sizeof *found; k++)
        if (found[k].passes[0])
            answer(c, found[k].check, (tool_verdict)k, found[k].passes);
}

static bool check_bits(checker *c, tarn_complaint *complaint)
{
    tarn_plan *fast = NULL, *spec = NULL;
    tool_tensors a = {0}, b = {0};
    tarn_dtype dtype = c->problem.x.dtype;
    bool good = make_plan(c, dtype, 0, &fast, complaint) &&
                make_plan(c, dtype, TARN_ISA_SPEC, &spec, complaint) &&
                make_tensors(c, fast, &a, complaint) && make_tensors(c, spec, &b, complaint);
    if (good)
        compare(c, fast, spec, &a, &b);
    tool_tensors_free(&a);
    tool_tensors_free(&b);
    tarn_plan_destroy(fast);
    tarn_plan_destroy(spec);
    return good;
}

/* ---- Derivatives, in f64 ------------------------------------------------------------------- */

static size_t count_of(const tool_tensors *t, tarn_operand k)
{
    return t->bytes[k] / sizeof(double);
}

static double dot(const tool_tensors *t, tarn_operand a, tarn_operand b, double *magnitude)
{
    const double *p = t->view[a].data, *q = t->view[b].data;
    double sum = 0;
    for (size_t k = 0; k < count_of(t, a); k++) {
        sum += p[k] * q[k];
        *magnitude += fabs(p[k] * q[k]);
    }
    return sum;
}

/* Both sums have at most n terms, each a product of numbers that were rounded a few times: n units
 * in the last place of the sum of magnitudes bound the difference, with room to spare. */
static void check_adjoint(checker *c, const tarn_plan *plan, const tool_tensors *t)
{
    char note[200];
    double magnitude = 0;
    bool ran = !tool_run_pass(plan, TARN_JVP, t, NULL) && !tool_run_pass(plan, TARN_VJP, t, NULL);
    double left = dot(t, TARN_GY, TARN_DY, &magnitude),
           right = dot(t, TARN_GX, TARN_DX, &magnitude);
    double terms = (double)(count_of(t, TARN_DY) + count_of(t, TARN_DX));
    double allowed = magnitude * DBL_EPSILON * (64 + terms);
    double difference = fabs(left - right);
    tool_verdict verdict = tool_judge(difference, allowed, magnitude);
    if (!isfinite(magnitude))
        verdict = CHECK_SKIPPED; /* infinities have no identity */
    snprintf(note, sizeof note,
             "<gy, J dx> = %.12g, <J' gy, dx> = %.12g; difference %.1e, allowed %.1e", left, right,
             difference, allowed);
    answer(c, "adjoint identity", ran ? verdict : CHECK_FAILED, note);
}

typedef struct {
    size_t compared, skipped;
    double worst, largest; /* error; tangent */
} differences;

/* Outputs at two points, one behind the other; for max and min also their winners, and how many
 * taps reach the extreme between them; for lp the outputs between them. */
typedef struct {
    size_t count;
    double *y, *reached;
    int64_t *winners;
    const double *between;
} slopes;

/* y, and the winners of max and min, at x + step*dx. */
static bool shifted(const tarn_plan *plan, const tool_tensors *t, double step, double *y,
                    int64_t *winners)
{
    const double *x = t->view[TARN_X].data, *dx = t->view[TARN_DX].data;
    double *moved = malloc(t->bytes[TARN_X] + 1);
    for (size_t k = 0; moved && k < count_of(t, TARN_X); k++)
        moved[k] = x[k] + step * dx[k];
    bool good = moved && !(winners ? tarn_forward_indices(plan, moved, y, winners, NULL)
                                   : tarn_forward(plan, moved, y, NULL, NULL));
    free(moved);
    return good;
}

/* Where several taps reach the extreme, or the winner changes between the two points, there is no
 * derivative to compare with. */
static bool is_smooth_at(const slopes *s, size_t k)
{
    return !s->winners || (s->winners[k] == s->winners[s->count + k] && s->reached[k] <= 1);
}

/* How far a tangent is from what the outputs tell. A norm has kinks at zeros and bends sharply
 * beside them, but it is convex: its slope lies between the quotients on either side. */
static double slope_error(const slopes *s, size_t k, double step, double dy)
{
    double ahead = s->y[k], behind = s->y[s->count + k];
    if (!s->between)
        return fabs((ahead - behind) / (2 * step) - dy);
    double below = (s->between[k] - behind) / step - dy,
           above = dy - (ahead - s->between[k]) / step;
    return below > above ? below : above;
}

static differences compare_slopes(const tool_tensors *t, const slopes *s, double step)
{
    const double *dy = t->view[TARN_DY].data;
    differences d = {0};
    for (size_t k = 0; k < s->count; k++) {
        double error = slope_error(s, k, step, dy[k]);
        if (!is_smooth_at(s, k) || !isfinite(error)) {
            d.skipped++;
            continue;
        }
        d.compared++;
        d.worst = fmax(d.worst, error);
        d.largest = fmax(d.largest, fabs(dy[k]));
    }
    return d;
}

static double largest(const tool_tensors *t, tarn_operand k)
{
    const double *numbers = t->view[k].data;
    double most = 1;
    for (size_t i = 0; i < count_of(t, k); i++)
        if (isfinite(numbers[i]))
            most = fmax(most, fabs(numbers[i]));
    return most;
}

static double steepness(const tarn_pool *pool)
{
    return pool->op == TARN_SMOOTH ? fmax(1, fabs(pool->beta)) : 1;
}

/* Tie rule `all` gives each reached tap the whole of its tangent: tangents of 1 count them. */
static bool count_reached(const checker *c, const tool_tensors *t, double *reached,
                          tarn_complaint *complaint)
{
    checker counting = *c;
    tarn_plan *plan = NULL;
    size_t cells = count_of(t, TARN_X);
    double *ones = malloc(t->bytes[TARN_X] + 1);
    for (size_t k = 0; ones && k < cells; k++)
        ones[k] = 1;
    counting.problem.pool.ties = TARN_TIES_ALL;
    bool good = ones && make_plan(&counting, TARN_F64, 0, &plan, complaint) &&
                !tarn_jvp(plan, t->view[TARN_X].data, ones, NULL, reached, NULL);
    tarn_plan_destroy(plan);
    free(ones);
    return good;
}

/* Of windows of n taps, weights sum up to n^(1/p) at most and err by less than (8p + 176) units
 * [N7]. */
static double norm_tangent_error(const tool_tensors *t, double p)
{
    double weights = pow((double)count_of(t, TARN_X), 1 / p);
    return (8 * fmin(p, 0x1p40) + 176) * DBL_EPSILON * weights * largest(t, TARN_DX);
}

/* A value of size m is rounded to m*2^-53 a few times, which the quotient magnifies by 1/step;
 * smooth max bends by at most (beta*dx*step)^2 relative to its slope. */
static double allowed_error(const tarn_pool *pool, const tool_tensors *t, double step)
{
    double dx = largest(t, TARN_DX), scale = fmax(largest(t, TARN_X), largest(t, TARN_Y));
    double rounding = 64 * scale * DBL_EPSILON / step;
    if (pool->op == TARN_SMOOTH)
        return rounding + 4 * dx * pow(steepness(pool) * dx * step, 2);
    return pool->op == TARN_LP ? 2 * rounding + norm_tangent_error(t, pool->power) : rounding;
}

static void check_slopes(checker *c, const tarn_plan *plan, const tool_tensors *t, const slopes *s)
{
    char note[200];
    const tarn_pool *pool = &c->problem.pool;
    double step = 0x1p-18 / (steepness(pool) * largest(t, TARN_DX));
    double allowed = allowed_error(pool, t, step);
    int64_t *below = s->winners ? s->winners + s->count : NULL;
    bool ran =
        shifted(plan, t, step, s->y, s->winners) && shifted(plan, t, -step, s->y + s->count, below);
    differences d = {0};
    if (ran)
        d = compare_slopes(t, s, step);
    snprintf(note, sizeof note,
             "%zu windows, worst difference %.1e, allowed %.1e; %zu left out at ties", d.compared,
             d.worst, allowed, d.skipped);
    answer(c, "finite differences", ran ? tool_judge(d.worst, allowed, d.largest) : CHECK_FAILED,
           note);
}

static bool check_differences(checker *c, const tarn_plan *plan, const tool_tensors *t,
                              tarn_complaint *complaint)
{
    bool extreme = c->problem.pool.op == TARN_MAX || c->problem.pool.op == TARN_MIN;
    slopes s = {.count = count_of(t, TARN_DY)};
    s.between = c->problem.pool.op == TARN_LP ? t->view[TARN_Y].data : NULL;
    size_t room = 2 * s.count * sizeof(double) + 1;
    s.y = malloc(room);
    s.reached = malloc(room);
    s.winners = extreme ? malloc(room) : NULL;
    bool good = s.y && s.reached && (s.winners || !extreme) &&
                !tool_run_pass(plan, TARN_FORWARD, t, NULL) &&
                (!extreme || count_reached(c, t, s.reached, complaint));
    if (good)
        check_slopes(c, plan, t, &s);
    free(s.y);
    free(s.reached);
    free(s.winners);
    return good || tarn_complain(complaint, FAILED_WORK, "no memory for finite differences");
}

static bool check_derivatives(checker *c, tarn_complaint *complaint)
{
    tarn_plan *plan = NULL;
    tool_tensors t = {0};
    bool good = make_plan(c, TARN_F64, 0, &plan, complaint) && make_tensors(c, plan, &t, complaint);
    if (good) {
        check_adjoint(c, plan, &t);
        good = check_differences(c, plan, &t, complaint);
    }
    tool_tensors_free(&t);
    tarn_plan_destroy(plan);
    return good;
}

/* ---- The command --------------------------------------------------------------------------- */

static void introduce(const checker *c)
{
    char text[512];
    tarn_view x = c->problem.x;
    tarn_make_dense_like(&x, &c->problem.x);
    tarn_problem_format(&c->problem.pool, &x, text, sizeof text);
    if (!tool_given(c->call, OPTION_JSON))
        printf("check   %s%s\n", text, c->shortened ? " (fewer planes than asked for)" : "");
}

bool tool_run_check(const tool_call *call, tarn_complaint *complaint)
{
    checker c = {.call = call};
    tarn_error error;
    tarn_view y;
    if (!tool_read_options(call, &c.options, complaint) ||
        !tool_problem_open(call, &c.problem, complaint))
        return false;
    bool good = !tarn_output_view(&c.problem.pool, &c.problem.x, &y, &error) ||
                tool_complain_library(complaint, &error);
    if (good) {
        shorten(&c);
        introduce(&c);
        good = check_bits(&c, complaint) &&
               (c.problem.pool.op == TARN_MODE || check_derivatives(&c, complaint));
    }
    tool_problem_close(&c.problem);
    if (good && c.failures)
        return tarn_complain(complaint, FAILED_WORK, "%d of the checks failed", c.failures);
    return good;
}
