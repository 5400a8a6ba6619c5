/* tarn bench: how long the passes of a problem take, beside the time that reading the same inputs
 * and writing the same outputs takes. What is compared is measured in turn, so that a busy machine
 * slows both alike. */
#include "progress.h"
#include "tensors.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, BAR = 30, PROBLEM_TEXT = 512 };
static const double sample_seconds = 2e-3; /* calls are repeated until a sample takes as long */

static const char *const usual_problems[] = {
    "max k2s2 f32 1x64x112x112",      "max k3s2p1 f32 1x64x112x112",
    "avg k3s2p1 f32 1x64x112x112",    "smooth k3s2p1 beta=1 f32 1x16x112x112",
    "max k13s1 f32 1x1x512x512",      "avg global f32 1x2048x7x7",
    "avg a7 f32 1x64x56x56",          "max last k3s2p1 f32 1x64x112x112",
    "lp k3s2p1 p=2 f32 1x16x112x112",
};

typedef struct {
    const char *problem;
    tarn_pass pass;
    double pass_seconds, stream_seconds; /* medians of one call */
} row;

static volatile uint64_t sink; /* keeps the compiler from dropping loops without a result */

static uint64_t read_words(const void *data, size_t bytes)
{
    uint64_t sum = 0, word;
    for (size_t k = 0; k + sizeof word <= bytes; k += sizeof word) {
        memcpy(&word, (const char *)data + k, sizeof word);
        sum += word;
    }
    return sum;
}

static void write_words(void *data, size_t bytes, uint64_t word)
{
    for (size_t k = 0; k + sizeof word <= bytes; k += sizeof word)
        memcpy((char *)data + k, &word, sizeof word);
}

/* Reads what the pass reads and writes what it writes. */
static void stream(const tool_tensors *t, tarn_pass pass, bool linear)
{
    uint64_t sum = 0;
    for (const int *k = tool_pass_reads(pass); *k >= 0; k++)
        if (*k == TOOL_SAVED)
            sum += read_words(t->saved, t->saved_bytes);
        else if (*k != TARN_X || !linear || pass < TARN_JVP)
            sum += read_words(t->view[*k].data, t->bytes[*k]);
    for (const int *k = tool_pass_writes(pass); *k >= 0; k++)
        if (*k == TOOL_SAVED)
            write_words(t->saved, t->saved_bytes, sum);
        else
            write_words(t->view[*k].data, t->bytes[*k], sum);
    sink = sum;
}

typedef struct {
    const tarn_plan *plan;
    const tool_tensors *tensors, *streamed; /* what streams write must not pass for winners */
    bool linear;
} bench;

static double sample(const bench *b, tarn_pass pass, bool streams, long repeats)
{
    double begin = tool_seconds();
    for (long k = 0; k < repeats; k++)
        if (streams)
            stream(b->streamed, pass, b->linear);
        else
            tool_run_pass(b->plan, pass, b->tensors, NULL);
    return (tool_seconds() - begin) / (double)repeats;
}

static long choose_repeats(const bench *b, tarn_pass pass, bool streams)
{
    double once = sample(b, pass, streams, 1);
    return once > sample_seconds ? 1 : (long)(sample_seconds / (once + 1e-9)) + 1;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static row measure(const bench *b, const char *problem, tarn_pass pass)
{
    double seconds[2][ROUNDS];
    long repeats[2] = {choose_repeats(b, pass, false), choose_repeats(b, pass, true)};
    for (int round = 0; round < ROUNDS; round++)
        for (int streams = 0; streams < 2; streams++)
            seconds[streams][round] = sample(b, pass, streams, repeats[streams]);
    for (int streams = 0; streams < 2; streams++)
        qsort(seconds[streams], ROUNDS, sizeof(double), compare_doubles);
    return (row){problem, pass, seconds[0][ROUNDS / 2], seconds[1][ROUNDS / 2]};
}

/* The bar is full where a pass runs at the speed of streaming. */
static void print_row(const row *r)
{
    char bar[BAR + 1];
    double part = r->stream_seconds / r->pass_seconds;
    for (int k = 0; k < BAR; k++)
        bar[k] = k < (int)(part * BAR + 0.5) ? '#' : '.';
    bar[BAR] = '\0';
    printf("%-40s %-16s %10.2f %10.2f %7.2f  %s\n", r->problem, tool_pass_name(r->pass),
           r->pass_seconds * 1e6, r->stream_seconds * 1e6, 1 / part, bar);
    fflush(stdout);
}

static void print_json_row(const row *r)
{
    fputs("{\"problem\": ", stdout);
    tool_json_string(stdout, r->problem);
    printf(", \"pass\": \"%s\", \"seconds\": %.9g, \"stream_seconds\": %.9g, \"ratio\": %.4g}\n",
           tool_pass_name(r->pass), r->pass_seconds, r->stream_seconds,
           r->pass_seconds / r->stream_seconds);
}

static void run_passes(const tool_call *call, const bench *b, const char *problem)
{
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (tool_has_pass(b->plan, (tarn_pass)pass)) {
            row r = measure(b, problem, (tarn_pass)pass);
            (tool_given(call, OPTION_JSON) ? print_json_row : print_row)(&r);
        }
}

static void print_header(const tool_call *call)
{
    if (!tool_given(call, OPTION_JSON))
        printf("%-40s %-16s %10s %10s %7s  %s\n", "problem", "pass", "us", "stream us", "ratio",
               "share of streaming speed");
}

static bool run_problem(const tool_call *call, const tarn_options *options, const char *text,
                        const tarn_pool *pool, const tarn_view *x, tarn_complaint *complaint)
{
    tarn_error error;
    tarn_plan *plan;
    tool_tensors tensors = {0}, streamed = {0};
    if (tarn_plan_create(&plan, pool, x, options, &error))
        return tool_complain_library(complaint, &error);
    bench b = {plan, &tensors, &streamed, pool->op == TARN_AVG && pool->skip == TARN_SKIP_NOTHING};
    bool good = tool_tensors_make(&tensors, plan, complaint) &&
                tool_tensors_make(&streamed, plan, complaint);
    if (good && tool_has_pass(plan, TARN_FORWARD_SAVED)) /* the backward pass wants true winners */
        tool_run_pass(plan, TARN_FORWARD_SAVED, &tensors, NULL);
    if (good)
        run_passes(call, &b, text);
    tool_tensors_free(&tensors);
    tool_tensors_free(&streamed);
    tarn_plan_destroy(plan);
    return good;
}

/* Each word is a problem string of its own if the first one is. */
static bool run_strings(const tool_call *call, const tarn_options *options,
                        const char *const *texts, int count, tarn_complaint *complaint)
{
    for (int k = 0; k < count; k++) {
        tarn_pool pool;
        tarn_view x;
        tarn_error error;
        if (tarn_problem_parse(texts[k], &pool, &x, &error))
            return tool_complain_library(complaint, &error);
        if (k == 0)
            print_header(call);
        if (!run_problem(call, options, texts[k], &pool, &x, complaint))
            return false;
    }
    return true;
}

static bool run_options(const tool_call *call, const tarn_options *options,
                        tarn_complaint *complaint)
{
    char text[PROBLEM_TEXT];
    tool_problem problem;
    if (!tool_problem_open(call, &problem, complaint))
        return false;
    tarn_view x = tarn_view_dense(NULL, problem.x.dtype, problem.x.rank, problem.x.shape);
    tarn_problem_format(&problem.pool, &x, text, sizeof text);
    print_header(call);
    bool good = run_problem(call, options, text, &problem.pool, &x, complaint);
    tool_problem_close(&problem);
    return good;
}

bool tool_run_bench(const tool_call *call, tarn_complaint *complaint)
{
    tarn_options options;
    int usual = (int)(sizeof usual_problems / sizeof *usual_problems);
    if (!tool_read_options(call, &options, complaint))
        return false;
    if (call->words == 0)
        return run_strings(call, &options, usual_problems, usual, complaint);
    bool strings = strchr(call->word[0], ' ') != NULL;
    return strings ? run_strings(call, &options, call->word, call->words, complaint)
                   : run_options(call, &options, complaint);
}
