/* The benchmark: nanoseconds per call of every pass and kernel family, beside the time that reading
 * the same inputs and writing the same outputs takes.
 *
 *   bench [--quick] [--spec] [--csv FILE] [PROBLEM]...
 *
 * PROBLEM is a problem string such as "max k3s2p1 f32 1x64x112x112"; without one a list is run. The
 * rows of the kernel table that dispatch would choose are measured, and no others. What is compared
 * is measured in turn, round by round: a busy machine or a changing clock slows all of it alike. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "../src/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef TARN_BENCH_FLAGS
#define TARN_BENCH_FLAGS "not told by the build"
#endif
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif
#define HEADINGS "| %-37s | %-16s | %-8s | %11s | %11s | %11s | %11s | %8s |\n"
#define NUMBERS "| %-37s | %-16s | %-8s | %11.0f | %11.0f | %11.0f | %11.0f | %8.2f |\n"

enum { MOST_FAMILIES = 31, MOST_ROUNDS = 11 };

static const char *const usual_problems[] = {
    "max k2s2 f32 1x64x112x112",
    "avg k2s2 f32 1x64x112x112",
    "max k3s2p1 f32 1x64x112x112",
    "avg k3s2p1 f32 1x64x112x112",
    "smooth k3s2p1 beta=1 f32 1x16x112x112",
    "lp k3s2p1 p=2 f32 1x16x112x112",
    "max k3s1p1 f32 1x64x56x56",
    "max k5s1 f32 1x1x512x512",
    "max k13s1 f32 1x1x512x512",
    "max k31s1 f32 1x1x512x512",
    "avg k31s1 f32 1x1x512x512",
    "avg global f32 1x2048x7x7",
    "avg a7 f32 1x64x56x56",
    "max d1 k2s2 f32 1x64x4096",
    "max d3 k2s2 f32 1x16x16x56x56",
    "max k2s2 u8 1x64x112x112",
    "max k3s2p1 bf16 1x64x112x112",
    "max last k3s2p1 f32 1x64x112x112",
    "max k2s2 f32 1x1x4x4",
};

static const struct {
    const char *name;
    int reads[3], writes[3]; /* operands, closed by -1 */
} passes[TARN_PASSES] = {
    [TARN_FORWARD] = {"forward", {TARN_X, -1}, {TARN_Y, -1}},
    [TARN_FORWARD_SAVED] = {"forward, saved", {TARN_X, -1}, {TARN_Y, OPERAND_SAVED, -1}},
    [TARN_FORWARD_INDICES] = {"forward, indices", {TARN_X, -1}, {TARN_Y, TARN_INDICES, -1}},
    [TARN_JVP] = {"jvp", {TARN_X, TARN_DX, -1}, {TARN_DY, -1}},
    [TARN_VJP] = {"vjp", {TARN_X, TARN_GY, -1}, {TARN_GX, -1}},
    [TARN_VJP_SAVED] = {"vjp, saved", {OPERAND_SAVED, TARN_GY, -1}, {TARN_GX, -1}},
};

typedef struct {
    bool spec;
    int rounds;
    double sample_ns; /* calls are repeated until a sample takes about as long */
    FILE *csv;
} settings;

typedef struct {
    char *data[OPERANDS];
    size_t bytes[OPERANDS];
} tensors;

/* One thing to measure: a pass of a plan, or the streaming bound of that pass. */
typedef struct {
    const tarn_plan *plan;
    const tensors *tensors;
    tarn_pass pass;
    int family; /* bit of the ISA mask; -1 is the bound */
    long repeats;
    double ns[MOST_ROUNDS];
} measurement;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* Random bits for integers, ordinary numbers of both signs for floats: no NaN, no subnormal, which
 * would be another benchmark. */
static void fill(char *data, size_t bytes, tarn_dtype dtype)
{
    uint64_t state = 1;
    size_t size = tarn_dtype_size(dtype);
    for (size_t at = 0; at + size <= bytes; at += size) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t bits = state ^ state >> 31;
        double value = (double)(int32_t)(bits >> 32) * 0x1p-31;
        float narrow = (float)value;
        uint16_t half = (uint16_t)((bits & 0x81ff) + 0x3e00); /* below 2 as f16 and as bf16 */
        const void *const numbers[] = {&value, &narrow, &half, &half}; /* f64, f32, f16, bf16 */
        memcpy(data + at, dtype <= TARN_BF16 ? numbers[dtype] : &bits, size);
    }
}

static tensors make_tensors(const tarn_plan *plan)
{
    tensors t;
    for (int k = 0; k < OPERANDS; k++) {
        t.bytes[k] = k == OPERAND_SAVED ? tarn_plan_saved_bytes(plan)
                                        : (size_t)(plan->extent[k].hi - plan->extent[k].lo);
        t.data[k] = malloc(t.bytes[k] + 1);
        if (!t.data[k])
            stop("tensors", "out of memory");
        fill(t.data[k], t.bytes[k], k < TARN_INDICES ? plan->problem.dtype : TARN_U8);
    }
    if (plan->kernel[TARN_FORWARD_SAVED]) /* the backward pass wants true winners */
        tarn_forward(plan, t.data[TARN_X], t.data[TARN_Y], t.data[OPERAND_SAVED], NULL);
    return t;
}

static volatile uint64_t sink; /* keeps the compiler from dropping loops without a result */

/* Simple loops that compilers vectorise; a rest of less than 8 bytes is left out. */
static uint64_t read_bytes(const char *data, size_t bytes)
{
    uint64_t sum = 0, word;
    for (size_t k = 0; k < bytes / sizeof word; k++) {
        memcpy(&word, data + k * sizeof word, sizeof word);
        sum += word;
    }
    return sum;
}

static void write_bytes(char *data, size_t bytes, uint64_t word)
{
    for (size_t k = 0; k < bytes / sizeof word; k++)
        memcpy(data + k * sizeof word, &word, sizeof word);
}

static void stream(const measurement *m)
{
    const tensors *t = m->tensors;
    bool linear = m->plan->problem.op == TARN_AVG && m->pass >= TARN_JVP; /* x is not needed */
    uint64_t sum = 0;
    for (const int *k = passes[m->pass].reads; *k >= 0; k++)
        if (*k != TARN_X || !linear)
            sum += read_bytes(t->data[*k], t->bytes[*k]);
    for (const int *k = passes[m->pass].writes; *k >= 0; k++)
        write_bytes(t->data[*k], t->bytes[*k], sum);
    sink = sum;
}

static tarn_status run_pass(const measurement *m, tarn_error *error)
{
    char *const *d = m->tensors->data;
    switch (m->pass) {
    case TARN_FORWARD:
        return tarn_forward(m->plan, d[TARN_X], d[TARN_Y], NULL, error);
    case TARN_FORWARD_SAVED:
        return tarn_forward(m->plan, d[TARN_X], d[TARN_Y], d[OPERAND_SAVED], error);
    case TARN_FORWARD_INDICES:
        return tarn_forward_indices(m->plan, d[TARN_X], d[TARN_Y], (void *)d[TARN_INDICES], error);
    case TARN_JVP:
        return tarn_jvp(m->plan, d[TARN_X], d[TARN_DX], NULL, d[TARN_DY], error);
    case TARN_VJP:
        return tarn_vjp(m->plan, d[TARN_X], NULL, d[TARN_GY], d[TARN_GX], error);
    default:
        return tarn_vjp(m->plan, NULL, d[OPERAND_SAVED], d[TARN_GY], d[TARN_GX], error);
    }
}

/* ---- Measuring ----------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Nanoseconds of `repeats` calls. */
static double sample(const measurement *m, long repeats)
{
    tarn_error error;
    tarn_status status = TARN_OK;
    double begin = now_ns();
    for (long k = 0; k < repeats && !status; k++)
        if (m->family < 0)
            stream(m);
        else
            status = run_pass(m, &error);
    double end = now_ns();
    if (status)
        stop(tarn_status_name(status), error.message);
    return end - begin;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Measures all in turn and leaves the times of each sorted. Finding out how often to repeat a call
 * warms caches and clocks up. */
static void measure(measurement *list, int count, const settings *settings)
{
    for (measurement *m = list; m < list + count; m++)
        for (m->repeats = 1; sample(m, m->repeats) < settings->sample_ns / 2;)
            m->repeats *= 2;
    for (int round = 0; round < settings->rounds; round++)
        for (measurement *m = list; m < list + count; m++)
            m->ns[round] = sample(m, m->repeats) / (double)m->repeats;
    for (measurement *m = list; m < list + count; m++)
        qsort(m->ns, (size_t)settings->rounds, sizeof m->ns[0], compare);
}

static void print_header(int rounds)
{
    char line[256], model[256] = "an unknown CPU";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %255[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    printf("tarn %s on %s; %s, flags: %s\n", tarn_version(), model, COMPILER, TARN_BENCH_FLAGS);
    printf("ns per call, %d rounds; stream: the same bytes read and written\n\n", rounds);
    printf(HEADINGS, "problem", "pass", "family", "median", "min", "max", "stream", "ratio");
    puts("|---|---|---|--:|--:|--:|--:|--:|");
}

static void report(const char *problem, const measurement *m, const measurement *bound,
                   const settings *settings)
{
    const char *family = tarn_isa_name(m->family), *pass = passes[m->pass].name;
    int last = settings->rounds - 1;
    double median = m->ns[last / 2], streaming = bound->ns[last / 2];
    printf(NUMBERS, problem, pass, family, median, m->ns[0], m->ns[last], streaming,
           median / streaming);
    if (settings->csv)
        fprintf(settings->csv, "\"%s\",\"%s\",%s,%s,%.1f,%.1f,%.1f,%.1f,%.3f\n", problem, pass,
                family, m->plan->kernel[m->pass]->name, median, m->ns[0], m->ns[last], streaming,
                median / streaming);
}

/* ---- Problems ------------------------------------------------------------------------------ */

/* One plan for each family, which may also use all families before it: a family need not have a
 * kernel for every pass. Returns one of the plans. */
static tarn_plan *make_plans(const char *problem, uint32_t families, tarn_plan **plans)
{
    tarn_error error;
    tarn_pool pool;
    tarn_view x;
    tarn_plan *some = NULL;
    if (tarn_problem_parse(problem, &pool, &x, &error))
        stop(problem, error.message);
    for (int bit = 0; bit < MOST_FAMILIES; bit++) {
        tarn_options options = tarn_options_default();
        options.isa = (UINT32_C(2) << bit) - 1;
        plans[bit] = NULL;
        if ((families >> bit & 1) && tarn_plan_create(&plans[bit], &pool, &x, &options, &error))
            stop(problem, error.message);
        some = plans[bit] ? plans[bit] : some;
    }
    if (!some)
        stop(problem, "no kernel family to measure: see TARN_ISA and --spec");
    return some;
}

/* The bound of a pass, then the families that have a kernel of their own for it. The bounds have
 * tensors of their own: what they write must not pass for saved winners. */
static int list_pass(tarn_plan *const *plans, tarn_pass pass, const tensors *t,
                     const tensors *streamed, measurement *list)
{
    int count = 0;
    for (int bit = 0; bit < MOST_FAMILIES; bit++) {
        const tarn_plan *plan = plans[bit];
        if (!plan || !plan->kernel[pass] || plan->kernel[pass]->isa != UINT32_C(1) << bit)
            continue;
        if (count == 0)
            list[count++] = (measurement){plan, streamed, pass, .family = -1};
        list[count++] = (measurement){plan, t, pass, .family = bit};
    }
    return count;
}

static void run_problem(const char *problem, const settings *settings)
{
    static measurement list[TARN_PASSES * (MOST_FAMILIES + 1)];
    tarn_plan *plans[MOST_FAMILIES];
    uint32_t families = tarn_isa_available() & ~(settings->spec ? 0u : (uint32_t)TARN_ISA_SPEC);
    const tarn_plan *some = make_plans(problem, families, plans);
    tensors t = make_tensors(some), streamed = make_tensors(some);
    int count = 0;
    for (int pass = 0; pass < TARN_PASSES; pass++)
        count += list_pass(plans, (tarn_pass)pass, &t, &streamed, list + count);
    measure(list, count, settings);
    for (int k = 0, bound = 0; k < count; k++)
        if (list[k].family < 0)
            bound = k;
        else
            report(problem, &list[k], &list[bound], settings);
    for (int k = 0; k < OPERANDS; k++) {
        free(t.data[k]);
        free(streamed.data[k]);
    }
    for (int bit = 0; bit < MOST_FAMILIES; bit++)
        tarn_plan_destroy(plans[bit]);
}

/* Takes the options off the arguments and returns how many problems are left in front. */
static int parse_arguments(int argc, char **argv, settings *settings)
{
    int problems = 0;
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], "--quick") == 0) {
            settings->rounds = 3;
            settings->sample_ns = 0.5e6;
        } else if (strcmp(argv[k], "--spec") == 0) {
            settings->spec = true;
        } else if (strcmp(argv[k], "--csv") == 0 && k + 1 < argc) {
            if (!(settings->csv = fopen(argv[++k], "w")))
                stop(argv[k], "cannot be written");
        } else if (argv[k][0] == '-') {
            stop("usage", "bench [--quick] [--spec] [--csv FILE] [PROBLEM]...");
        } else {
            argv[problems++] = argv[k];
        }
    return problems;
}

int main(int argc, char **argv)
{
    settings settings = {.rounds = MOST_ROUNDS, .sample_ns = 4e6};
    int given = parse_arguments(argc, argv, &settings);
    int usual = (int)(sizeof usual_problems / sizeof usual_problems[0]);
    print_header(settings.rounds);
    if (settings.csv)
        fputs("problem,pass,family,kernel,median_ns,min_ns,max_ns,stream_ns,ratio\n", settings.csv);
    for (int k = 0; k < (given ? given : usual); k++)
        run_problem(given ? argv[k] : usual_problems[k], &settings);
    if (settings.csv && fclose(settings.csv))
        stop("--csv", "could not be written in full");
    return EXIT_SUCCESS;
}
