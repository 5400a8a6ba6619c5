/* What can be checked about a graph without knowing what it should compute. */
#include "../src/checked.h"
#include "../src/io/convert.h"
#include "graph_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers of ports ----------------------------------------------------------------------- */

static int64_t count_of(const graph_port *port)
{
    return (int64_t)(tarn_view_bytes(&port->view) / tarn_dtype_size(port->view.dtype));
}

/* Rounding of a floating type: half the distance from 1 to the next number. */
static double epsilon_of(tarn_dtype dtype)
{
    static const double epsilon[] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8}; /* f64 f32 f16 bf16 */
    return dtype <= TARN_BF16 ? epsilon[dtype] : 0;
}

/* A tensor as doubles; the caller frees them. NULL if there is no memory. */
static double *numbers_of(const graph_port *port, graph_tensor which)
{
    double *numbers = malloc((size_t)(count_of(port) + 1) * sizeof *numbers);
    tarn_view from = graph_port_view(port, which);
    tarn_view to = tarn_view_dense(numbers, TARN_F64, from.rank, from.shape);
    if (numbers)
        tarn_convert(&from, false, &to);
    return numbers;
}

static void set_numbers(const graph_port *port, graph_tensor which, double *numbers)
{
    tarn_view from = tarn_view_dense(numbers, TARN_F64, port->view.rank, port->view.shape);
    tarn_view to = graph_port_view(port, which);
    tarn_convert(&from, false, &to);
}

static bool no_memory(tarn_complaint *complaint)
{
    return tarn_complain(complaint, FAILED_WORK, "no memory for the checks");
}

/* ---- Tensors that are made up --------------------------------------------------------------- */

/* A permutation of the numbers of `bits` bits that looks random. */
static uint64_t shuffled(uint64_t k, int bits, uint64_t seed)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (int round = 0; round < 3; round++) {
        k = (k * (UINT64_C(0x9e3779b97f4a7c15) + 2 * seed) + seed) & mask; /* an odd factor */
        k ^= k >> (bits / 2 + 1);
    }
    return k;
}

/* Values are all different, as far as the type allows, so that no maximum is a tie; derivatives are
 * multiples of 1/8, so that sums of them are exact. */
static double made_up(graph_tensor which, bool floating, int64_t k, int bits, uint64_t seed)
{
    uint64_t random = shuffled((uint64_t)k, bits, seed);
    if (which != GRAPH_VALUE)
        return ((double)(shuffled((uint64_t)k, 40, seed) % 17) - 8) / 8;
    return floating ? ldexp((double)random, 1 - bits) - 1 : (double)(random % 100);
}

static bool make_up(graph_port *port, graph_tensor which, uint64_t seed, tarn_complaint *complaint)
{
    int64_t count = count_of(port);
    int bits = 4;
    while (bits < 40 && (INT64_C(1) << bits) < count)
        bits++;
    if (port->tensor[which])
        return true;
    double *numbers = malloc((size_t)(count + 1) * sizeof *numbers);
    if (!numbers || !graph_port_room(port, which, complaint)) {
        free(numbers);
        return no_memory(complaint);
    }
    for (int64_t k = 0; k < count; k++)
        numbers[k] = made_up(which, graph_port_varies(port), k, bits, seed);
    set_numbers(port, which, numbers);
    free(numbers);
    return true;
}

/* Everything that is needed and not given; integers do not vary. */
static bool make_up_all(graph_file *file, tarn_complaint *complaint)
{
    bool good = true;
    for (int k = 0; good && k < file->inputs; k++) {
        graph_port *port = &file->input[k];
        port->wanted = graph_port_varies(port);
        good = make_up(port, GRAPH_VALUE, 3 * (uint64_t)k + 1, complaint) &&
               (!port->wanted || make_up(port, GRAPH_TANGENT, 3 * (uint64_t)k + 2, complaint));
    }
    for (int k = 0; good && k < file->outputs; k++)
        good = make_up(&file->output[k], GRAPH_COTANGENT, 3 * (uint64_t)k + 3, complaint);
    return good;
}

/* ---- Results -------------------------------------------------------------------------------- */

static bool run_once(graph_file *file, tarn_mode mode, tarn_complaint *complaint)
{
    tarn_program *program = NULL;
    bool good = graph_file_room(file, mode, true, complaint) &&
                graph_file_compile(file, mode, true, &program, complaint) &&
                graph_file_run(file, mode, program, complaint);
    tarn_program_destroy(program);
    return good;
}

/* Values and tangents of the first `outputs` outputs, and gradients, into the ports. */
static bool compute(graph_file *file, int outputs, tarn_complaint *complaint)
{
    if (!run_once(file, TARN_GRAPH_JVP, complaint))
        return false;
    for (int k = outputs; k < file->outputs; k++)
        file->output[k].wanted = false; /* a cotangent of 0 would add to the sums of gradients */
    return run_once(file, TARN_GRAPH_VJP, complaint);
}

/* Results that were taken away from the ports, so that they can be computed again. */
typedef struct results {
    int outputs, inputs;
    void **value, **tangent, **gradient;
} results;

static void *take(graph_port *port, graph_tensor which)
{
    void *tensor = port->tensor[which];
    port->tensor[which] = NULL;
    return tensor;
}

static bool take_results(graph_file *file, results *r, tarn_complaint *complaint)
{
    *r = (results){.outputs = file->outputs, .inputs = file->inputs};
    size_t count = 2 * (size_t)r->outputs + (size_t)r->inputs;
    r->value = calloc(count + 1, sizeof *r->value);
    if (!r->value)
        return no_memory(complaint);
    r->tangent = r->value + r->outputs;
    r->gradient = r->tangent + r->outputs;
    for (int k = 0; k < r->outputs; k++) {
        r->value[k] = take(&file->output[k], GRAPH_VALUE);
        r->tangent[k] = take(&file->output[k], GRAPH_TANGENT);
    }
    for (int k = 0; k < r->inputs; k++)
        r->gradient[k] = take(&file->input[k], GRAPH_COTANGENT);
    return true;
}

static void free_results(results *r)
{
    for (int k = 0; r->value && k < 2 * r->outputs + r->inputs; k++)
        free(r->value[k]);
    free(r->value);
}

static bool same_bits(const graph_port *port, graph_tensor which, const void *other)
{
    const void *tensor = port->tensor[which];
    return tensor == other ||
           (tensor && other && memcmp(tensor, other, tarn_view_bytes(&port->view)) == 0);
}

/* How many results of the ports have other bits than those taken. */
static int differing(const graph_file *file, const results *r)
{
    int count = 0;
    for (int k = 0; k < r->outputs; k++)
        count += !same_bits(&file->output[k], GRAPH_VALUE, r->value[k]) +
                 !same_bits(&file->output[k], GRAPH_TANGENT, r->tangent[k]);
    for (int k = 0; k < r->inputs; k++)
        count += !same_bits(&file->input[k], GRAPH_COTANGENT, r->gradient[k]);
    return count;
}

/* ---- The adjoint identity ------------------------------------------------------------------- */

/* Adds the products of two tensors to *sum, and their sizes to *size. */
static bool add_products(const graph_port *port, graph_tensor a, graph_tensor b, double *sum,
                         double *size)
{
    double *x = numbers_of(port, a), *y = numbers_of(port, b);
    for (int64_t k = 0; x && y && k < count_of(port); k++) {
        *sum += x[k] * y[k];
        *size += fabs(x[k] * y[k]);
    }
    bool good = x && y;
    free(x);
    free(y);
    return good;
}

static double coarsest(const graph_file *file)
{
    double epsilon = 0;
    for (int k = 0; k < file->inputs; k++)
        epsilon = fmax(epsilon, epsilon_of(file->input[k].view.dtype));
    return epsilon;
}

static bool check_adjoint(const graph_file *file, graph_finding *found, tarn_complaint *complaint)
{
    double left = 0, right = 0, size = 0;
    bool good = true;
    for (int k = 0; good && k < file->outputs; k++)
        if (graph_port_varies(&file->output[k]))
            good = add_products(&file->output[k], GRAPH_COTANGENT, GRAPH_TANGENT, &left, &size);
    for (int k = 0; good && k < file->inputs; k++)
        if (file->input[k].wanted)
            good = add_products(&file->input[k], GRAPH_COTANGENT, GRAPH_TANGENT, &right, &size);
    if (!good)
        return no_memory(complaint);
    /* Every node rounds each of its results once, or a few times in a sum. */
    double allowed = 8 * coarsest(file) * (tarn_graph_values(file->graph) + 4) * size;
    found->name = "adjoint identity";
    found->verdict = isfinite(size) ? tool_judge(fabs(left - right), allowed, size) : CHECK_SKIPPED;
    snprintf(found->text, sizeof found->text, "<gy, J dx> = %.9g, <J' gy, dx> = %.9g", left, right);
    return true;
}

/* ---- Finite differences --------------------------------------------------------------------- */

/* Moves every input by h times its tangent. */
static bool move_inputs(graph_file *file, double *const *at, double h)
{
    for (int k = 0; k < file->inputs; k++) {
        graph_port *port = &file->input[k];
        if (!port->wanted)
            continue;
        double *numbers = numbers_of(port, GRAPH_TANGENT);
        for (int64_t i = 0; numbers && i < count_of(port); i++)
            numbers[i] = at[k][i] + h * numbers[i];
        if (!numbers)
            return false;
        set_numbers(port, GRAPH_VALUE, numbers);
        free(numbers);
    }
    return true;
}

/* What is known about one output: its values at x - h dx, x and x + h dx. */
typedef struct differences {
    int64_t count, kinks;
    double worst, largest; /* |difference quotient - tangent|, |tangent| */
} differences;

static void compare(const double *before, const double *at, const double *after,
                    const double *tangent, int64_t count, double h, double kink, differences *d)
{
    for (int64_t k = 0; k < count; k++) {
        double left = (at[k] - before[k]) / h, right = (after[k] - at[k]) / h;
        double error = fabs((left + right) / 2 - tangent[k]);
        if (!isfinite(left) || !isfinite(right))
            continue; /* infinities and NaN have no differences */
        d->count++;
        if (fabs(right - left) > kink) {
            d->kinks++; /* a maximum changes hands between the three: no derivative to compare */
            continue;
        }
        d->worst = fmax(d->worst, isnan(error) ? INFINITY : error);
        d->largest = fmax(d->largest, fabs(tangent[k]));
    }
}

/* Values of every output as doubles, one array for each. */
static bool read_outputs(const graph_file *file, double **values)
{
    bool good = true;
    for (int k = 0; k < file->outputs; k++)
        good &= (values[k] = numbers_of(&file->output[k], GRAPH_VALUE)) != NULL;
    return good;
}

static void free_all(double **arrays, size_t count)
{
    for (size_t k = 0; arrays && k < count; k++)
        free(arrays[k]);
    free(arrays);
}

enum { AT, AFTER, BEFORE, PLACES };

/* Runs at three places; values[p * outputs + k] is output k at place p. */
static bool run_at_places(graph_file *file, double **x, double **values, double h,
                          tarn_complaint *complaint)
{
    static const double steps[PLACES] = {0, 1, -1};
    tarn_program *program;
    if (!graph_file_compile(file, TARN_GRAPH_FORWARD, true, &program, complaint))
        return false;
    bool good = true;
    for (int p = 0; good && p < PLACES; p++)
        good = (move_inputs(file, x, steps[p] * h) || no_memory(complaint)) &&
               graph_file_run(file, TARN_GRAPH_FORWARD, program, complaint) &&
               (read_outputs(file, values + p * file->outputs) || no_memory(complaint));
    good = (move_inputs(file, x, 0) || no_memory(complaint)) && good;
    tarn_program_destroy(program);
    return good;
}

static bool compare_outputs(const graph_file *file, double *const *values, double h, double kink,
                            differences *d)
{
    int n = file->outputs;
    for (int k = 0; k < n; k++) {
        const graph_port *port = &file->output[k];
        if (!graph_port_varies(port))
            continue;
        double *tangent = numbers_of(port, GRAPH_TANGENT);
        if (!tangent)
            return false;
        compare(values[BEFORE * n + k], values[AT * n + k], values[AFTER * n + k], tangent,
                count_of(port), h, kink, d);
        free(tangent);
    }
    return true;
}

/* Where inputs lie, and how large they are. */
static bool read_inputs(const graph_file *file, double **x, double *size)
{
    for (int k = 0; k < file->inputs; k++) {
        if (!(x[k] = numbers_of(&file->input[k], GRAPH_VALUE)))
            return false;
        for (int64_t i = 0; i < count_of(&file->input[k]); i++)
            *size = fmax(*size, fabs(x[k][i]));
    }
    return true;
}

static void judge_differences(const differences *d, double allowed, graph_finding *found)
{
    bool mostly_kinks = 2 * d->kinks >= d->count; /* too little is left to be called fine */
    found->verdict = tool_judge(d->worst, allowed, mostly_kinks ? 0 : d->largest);
    snprintf(found->text, sizeof found->text,
             "%lld numbers, %lld of them at kinks; greatest error %.2g", (long long)d->count,
             (long long)d->kinks, d->worst);
}

/* Steps are large against the rounding of the type and small against the distances of its
 * numbers. */
static bool check_differences(graph_file *file, graph_finding *found, tarn_complaint *complaint)
{
    bool f64 = coarsest(file) == 0x1p-53;
    double size = 1, allowed = f64 ? 1e-4 : 2e-2;
    differences d = {0};
    found->name = "finite differences";
    found->verdict = CHECK_SKIPPED;
    if (coarsest(file) > 0x1p-24)
        return snprintf(found->text, sizeof found->text,
                        "a type narrower than f32 has too few digits"),
               true;
    double **x = calloc((size_t)file->inputs + 1, sizeof *x);
    double **values = calloc(PLACES * (size_t)file->outputs + 1, sizeof *values);
    bool good = (x && values && read_inputs(file, x, &size)) || no_memory(complaint);
    double h = (f64 ? 0x1p-20 : 0x1p-10) * size;
    good = good && run_at_places(file, x, values, h, complaint) &&
           (compare_outputs(file, values, h, allowed, &d) || no_memory(complaint));
    free_all(x, (size_t)file->inputs);
    free_all(values, PLACES * (size_t)file->outputs);
    judge_differences(&d, allowed, found);
    return good;
}

/* ---- Other programs ------------------------------------------------------------------------- */

static bool any_numbers(const graph_port *ports, int count)
{
    for (int k = 0; k < count; k++)
        if (tarn_view_bytes(&ports[k].view) > 0)
            return true;
    return false;
}

static tool_verdict judge_bits(const graph_file *file, int differing)
{
    bool numbers =
        any_numbers(file->input, file->inputs) || any_numbers(file->output, file->outputs);
    return differing > 0 ? CHECK_FAILED : numbers ? CHECK_OK : CHECK_SKIPPED;
}

/* The same graph where every value is kept and every node is the specification's. */
static bool check_specification(graph_file *file, const results *fast, graph_finding *found,
                                tarn_complaint *complaint)
{
    found->name = "specification";
    found->verdict = CHECK_SKIPPED;
    if (!(tarn_isa_available() & TARN_ISA_SPEC))
        return snprintf(found->text, sizeof found->text, "TARN_ISA leaves it out"), true;
    file->options.isa = TARN_ISA_SPEC;
    if (!graph_file_keep_all(file, complaint) || !compute(file, fast->outputs, complaint))
        return false;
    int count = differing(file, fast), all = 2 * fast->outputs + fast->inputs;
    found->verdict = judge_bits(file, count);
    snprintf(found->text, sizeof found->text,
             "every value kept, every node the specification: %d of %d tensors have the same bits",
             all - count, all);
    return true;
}

static bool alike(const graph_port *a, const graph_port *b)
{
    return a->view.dtype == b->view.dtype && a->view.rank == b->view.rank &&
           memcmp(a->view.shape, b->view.shape, (size_t)a->view.rank * sizeof *a->view.shape) == 0;
}

/* Gives `other` copies of the inputs, tangents and cotangents of `file`. */
static bool lend(const graph_port *from, graph_port *to, graph_tensor which,
                 tarn_complaint *complaint)
{
    if (!from->tensor[which])
        return true;
    if (!graph_port_room(to, which, complaint))
        return false;
    memcpy(to->tensor[which], from->tensor[which], tarn_view_bytes(&from->view));
    return true;
}

static bool lend_all(const graph_file *file, graph_file *other, tarn_complaint *complaint)
{
    bool good = file->inputs == other->inputs && file->outputs == other->outputs;
    for (int k = 0; good && k < file->inputs; k++)
        good = alike(&file->input[k], &other->input[k]);
    for (int k = 0; good && k < file->outputs; k++)
        good = alike(&file->output[k], &other->output[k]);
    if (!good)
        return tarn_complain(complaint, FAILED_WORK,
                             "the graphs have other inputs or outputs: they cannot be compared");
    for (int k = 0; good && k < file->inputs; k++) {
        other->input[k].wanted = file->input[k].wanted;
        good = lend(&file->input[k], &other->input[k], GRAPH_VALUE, complaint) &&
               lend(&file->input[k], &other->input[k], GRAPH_TANGENT, complaint);
    }
    for (int k = 0; good && k < file->outputs; k++)
        good = lend(&file->output[k], &other->output[k], GRAPH_COTANGENT, complaint);
    return good;
}

/* Sums of gradients may come in another order: sums of multiples of 1/8 are the same all the
 * same. */
static bool check_same(const graph_file *file, graph_file *other, const results *fast,
                       graph_finding *found, tarn_complaint *complaint)
{
    if (!lend_all(file, other, complaint) || !compute(other, other->outputs, complaint))
        return false;
    int count = differing(other, fast);
    found->name = "same as";
    found->verdict = judge_bits(file, count);
    snprintf(found->text, sizeof found->text,
             count ? "%.80s: %d of its tensors have other bits"
                   : "%.80s: values, tangents and gradients have the same bits",
             other->path, count);
    return true;
}

bool graph_file_check(graph_file *file, graph_file *other, graph_finding findings[GRAPH_CHECKS],
                      int *count, tarn_complaint *complaint)
{
    results fast = {0};
    *count = 0;
    bool good = make_up_all(file, complaint) && compute(file, file->outputs, complaint) &&
                check_adjoint(file, &findings[(*count)++], complaint) &&
                check_differences(file, &findings[(*count)++], complaint) &&
                compute(file, file->outputs, complaint) && take_results(file, &fast, complaint);
    if (good && other)
        good = check_same(file, other, &fast, &findings[(*count)++], complaint);
    good = good && check_specification(file, &fast, &findings[(*count)++], complaint);
    free_results(&fast);
    return good;
}
