/* The benchmark: nanoseconds per call of every pass, in both layouts, by one thread and by all,
 * beside the time that reading the same inputs and writing the same outputs takes, and the error.
 *
 *   bench [options] [ROW | PROBLEM]...
 *
 * ROW is a name of bench_rows.def, or how one begins; PROBLEM is a problem string such as
 * "max k3s2p1 f32 1x64x112x112". Without either all rows are run. docs/performance.md tells how to
 * read the result. */
#define _DEFAULT_SOURCE /* sysconf */
#include "bench_bound.h"
#include "bench_measure.h"
#include "bench_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TARN_BENCH_FLAGS
#define TARN_BENCH_FLAGS "not told by the build"
#endif
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char usage[] =
    "bench [options] [ROW | PROBLEM]...\n"
    "  --quick         three short rounds\n"
    "  --seconds S     about how long all of it may take (default 240)\n"
    "  --threads N     threads of the second measurement (default: all; 1: none)\n"
    "  --pass NAME     only this pass: fwd train indices jvp bwd bwd_x plan\n"
    "  --families      every kernel family, not only the one that is chosen\n"
    "  --csv FILE      write the numbers there, too\n"
    "  --list          print rows and problems, measure nothing\n"
    "  --calls N       call each pass N times, measure nothing (for callgrind, perf stat)";

enum {
    MOST_FAMILIES = 31,
    MOST_CASES = 2 * (MOST_FAMILIES + 1),
    MOST_JOBS = 2 * (TARN_PASSES + 1) * (MOST_CASES + 2)
};

typedef enum { ALL_PASSES, FORWARD_ONLY, SWEEP } row_kind;

typedef struct {
    const char *name, *suffix, *problem;
    row_kind kind;
} row;

static const row rows[] = {
#define ROW(name, suffix, problem, kind) {name, suffix, problem, kind},
#include "bench_rows.def"
};

enum { ROWS = sizeof rows / sizeof rows[0] };

typedef struct {
    bench_effort effort;
    double seconds;
    int threads;
    bool families, list;
    const char *pass;
    long calls;
    FILE *csv;
} settings;

/* ---- One row ------------------------------------------------------------------------------- */

typedef struct {
    const row *row;
    bench_case *c[MOST_CASES];
    const char *layout[MOST_CASES];
    const char *family[MOST_CASES];
    int cases;
    bench_job job[MOST_JOBS];
    int jobs;
} experiment;

static void open_case(experiment *e, const char *layout, const char *family, uint32_t isa,
                      int threads)
{
    char problem[256];
    snprintf(problem, sizeof problem, "%s%s", e->row->problem,
             strcmp(layout, "nhwc") ? "" : " last");
    e->c[e->cases] = bench_open(problem, threads, isa);
    e->layout[e->cases] = layout;
    e->family[e->cases++] = family;
}

/* Without two channels at least, both layouts are one; and some problems have theirs. */
static bool has_two_layouts(const bench_case *c)
{
    const tarn_view *x = &c->view[TARN_X];
    int channel = x->rank - c->pool.spatial - 1;
    return channel >= 0 && x->shape[channel] > 1 && x->strides[channel] != 1;
}

static void open_layout(experiment *e, const settings *s, const char *layout)
{
    static const char *const names[] = {
        [1] = "portable", [3] = "avx2", [4] = "avx512"}; /* by bit of the mask */
    uint32_t available = tarn_isa_available();
    if (!s->families)
        open_case(e, layout, "best", 0, s->threads);
    for (int bit = 1; s->families && bit < (int)(sizeof names / sizeof names[0]); bit++)
        if (names[bit] &&
            (available >> bit & 1)) /* a family need not have all kernels: those before it help */
            open_case(e, layout, names[bit], (UINT32_C(2) << bit) - 1, s->threads);
    if (e->cases == 0)
        bench_stop(e->row->name, "no kernel family to measure: see TARN_ISA");
}

static void open_cases(experiment *e, const settings *s)
{
    open_layout(e, s, "nchw");
    if (e->row->kind != SWEEP && s->calls == 0 && has_two_layouts(e->c[0]))
        open_layout(e, s, "nhwc");
}

static void add_job(experiment *e, bench_subject subject, int which, tarn_pass pass, int threads)
{
    e->job[e->jobs++] = (bench_job){.subject = subject,
                                    .c = e->c[which],
                                    .layout = e->layout[which],
                                    .family = e->family[which],
                                    .pass = pass,
                                    .threads = threads};
}

/* A pass is asked for by its name, with or without the suffix of the row. */
static bool is_named(const char *name, const char *suffix, const char *asked)
{
    size_t length = strlen(name);
    return strncmp(asked, name, length) == 0 &&
           (asked[length] == '\0' || strcmp(asked + length, suffix) == 0);
}

static bool wanted(const settings *s, const experiment *e, tarn_pass pass)
{
    if (!bench_has(e->c[0], pass) || (e->row->kind != ALL_PASSES && pass != TARN_FORWARD))
        return false;
    return !s->pass || is_named(bench_pass_name(e->c[0], pass), e->row->suffix, s->pass);
}

/* A family without a kernel of its own for a pass runs that of the family before it. */
static bool is_repetition(const experiment *e, int which, tarn_pass pass)
{
    char mine[128], before[128];
    if (which == 0 || strcmp(e->layout[which], e->layout[which - 1]) != 0)
        return false;
    bench_kernel(e->c[which], pass, mine, sizeof mine);
    bench_kernel(e->c[which - 1], pass, before, sizeof before);
    return strcmp(mine, before) == 0;
}

/* The bounds of a pass stand before what they bound. */
static void add_pass(experiment *e, tarn_pass pass, int threads)
{
    add_job(e, TIME_BOUND, 0, pass, threads);
    add_job(e, TIME_BOUND_BYPASSING, 0, pass, threads);
    for (int k = 0; k < e->cases; k++)
        if (bench_has(e->c[k], pass) && !is_repetition(e, k, pass))
            add_job(e, TIME_PASS, k, pass, threads);
}

static void add_jobs(experiment *e, const settings *s)
{
    int most_threads = e->row->kind == SWEEP ? 1 : s->threads;
    for (int threads = 1; threads <= most_threads;
         threads += most_threads > 1 ? most_threads - 1 : 1)
        for (int pass = 0; pass < TARN_PASSES; pass++)
            if (wanted(s, e, (tarn_pass)pass))
                add_pass(e, (tarn_pass)pass, threads);
    if (e->row->kind == ALL_PASSES && (!s->pass || strcmp(s->pass, "plan") == 0))
        add_job(e, TIME_PLANNING, 0, TARN_FORWARD, 1);
}

/* ---- Reporting ----------------------------------------------------------------------------- */

static long last_level_cache(void)
{
#ifdef _SC_LEVEL3_CACHE_SIZE
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? size : sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    return 0;
#endif
}

static void print_machine(FILE *file, const char *prefix, int threads)
{
    char line[256], model[256] = "unknown";
    int family = 0, number = 0;
    FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
    while (cpuinfo && fgets(line, sizeof line, cpuinfo) && line[0] != '\n') {
        sscanf(line, "model name : %255[^\n]", model);
        sscanf(line, "cpu family : %d", &family);
        sscanf(line, "model : %d", &number);
    }
    if (cpuinfo)
        fclose(cpuinfo);
    fprintf(file, "%scpu: %s (family %d, model %d), threads: %d\n", prefix, model, family, number,
            threads);
    fprintf(file, "%slast-level cache: %ld bytes\n", prefix, last_level_cache());
    fprintf(file, "%scompiler: %s, %s\n", prefix, COMPILER, TARN_BENCH_FLAGS);
    fprintf(file, "%starn: %s\n", prefix, tarn_version());
}

static void print_header(const settings *s)
{
    print_machine(stdout, "", s->threads);
    printf("\n| %-31s | %-9s | thr | %-4s | %-8s | %11s | %23s | %11s | %7s | %6s | %8s |\n", "row",
           "pass", "lay", "family", "median us", "min .. max", "bound us", "x bound", "GB/s",
           "error");
    puts("|---|---|--:|---|---|--:|--:|--:|--:|--:|--:|");
    if (!s->csv)
        return;
    print_machine(s->csv, "# ", s->threads);
    fputs("row,pass,threads,who,layout,median_ns,min_ns,max_ns,rounds,bytes,error,detail\n",
          s->csv);
}

static void write_csv(const settings *s, const experiment *e, const bench_job *job, const char *who,
                      const char *pass, double bytes, double error, const char *detail)
{
    if (!s->csv)
        return;
    const char *quote = strchr(e->row->name, ',') ? "\"" : ""; /* a problem string */
    fprintf(s->csv, "%s%s%s,%s%s,%d,%s,%s,%.2f,%.2f,%.2f,%d,%.0f,%.3g,%s\n", quote, e->row->name,
            quote, pass, e->row->suffix, job->threads, who,
            job->subject == TIME_PASS ? job->layout : "-", bench_median(job), job->ns[0],
            job->ns[job->samples - 1], job->samples, bytes, error, detail);
}

static double bytes_of(const bench_job *job)
{
    return (double)bench_read_bytes(job->c, job->pass) +
           (double)bench_written_bytes(job->c, job->pass);
}

static void report_pass(const settings *s, const experiment *e, const bench_job *job, double bound)
{
    char pass[32], kernel[128];
    double median = bench_median(job), error = bench_error(job->c, job->pass, job->threads > 1);
    snprintf(pass, sizeof pass, "%s%s", bench_pass_name(job->c, job->pass), e->row->suffix);
    bench_kernel(job->c, job->pass, kernel, sizeof kernel);
    printf("| %-31s | %-9s | %3d | %-4s | %-8s | %11.3f | %10.3f .. %9.3f | %11.3f | %7.2f | %6.1f "
           "| %8.1e |\n",
           e->row->name, pass, job->threads, job->layout, job->family, median / 1e3,
           job->ns[0] / 1e3, job->ns[job->samples - 1] / 1e3, bound / 1e3, median / bound,
           bytes_of(job) / median, error);
    const char *who = s->families ? job->family : "tarn";
    write_csv(s, e, job, who, bench_pass_name(job->c, job->pass), bytes_of(job), error, kernel);
}

static void report_planning(const settings *s, const experiment *e, const bench_job *job)
{
    printf("| %-31s | %-9s | %3d | %-4s | %-8s | %11.3f | %10.3f .. %9.3f | | | | |\n",
           e->row->name, "plan", 1, "-", "-", bench_median(job) / 1e3, job->ns[0] / 1e3,
           job->ns[job->samples - 1] / 1e3);
    write_csv(s, e, job, "tarn", "plan", 0, 0, "create and destroy");
}

/* Reports the better bound and returns its time. */
static double report_bound(const settings *s, const experiment *e, const bench_job *pair)
{
    const bench_job *better =
        bench_median(&pair[0]) <= bench_median(&pair[1]) ? &pair[0] : &pair[1];
    write_csv(s, e, better, "bound", bench_pass_name(better->c, better->pass), bytes_of(better), 0,
              better == pair ? "plain stores" : "stores past the caches");
    return bench_median(better);
}

static void report(const settings *s, const experiment *e)
{
    double bound = 0;
    for (const bench_job *job = e->job; job < e->job + e->jobs; job++)
        if (job->subject == TIME_BOUND)
            bound = report_bound(s, e, job);
        else if (job->subject == TIME_PASS)
            report_pass(s, e, job, bound);
        else if (job->subject == TIME_PLANNING)
            report_planning(s, e, job);
    fflush(stdout);
}

/* ---- Running ------------------------------------------------------------------------------- */

/* What tools/counts.py counts: known to callgrind by its name. */
static __attribute__((noinline)) void counted_calls(const bench_case *c, tarn_pass pass, long calls)
{
    bench_run(c, pass, false, calls);
    __asm__ volatile(""); /* or the last call became a jump, which leaves the function */
}

/* Outputs and calls, for tools that count what a call executes. */
static void call_only(const settings *s, const experiment *e)
{
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (wanted(s, e, (tarn_pass)pass)) {
            tarn_operand result = bench_result((tarn_pass)pass);
            counted_calls(e->c[0], (tarn_pass)pass, s->calls);
            printf("%s,%s%s,%zu\n", e->row->name, bench_pass_name(e->c[0], (tarn_pass)pass),
                   e->row->suffix,
                   e->c[0]->bytes[result] / tarn_dtype_size(e->c[0]->view[result].dtype));
        }
}

static void run_row(const row *row, const settings *s)
{
    static experiment e;
    e = (experiment){.row = row};
    open_cases(&e, s);
    if (s->calls > 0) {
        call_only(s, &e);
    } else {
        add_jobs(&e, s);
        bench_measure(e.job, e.jobs, &s->effort);
        report(s, &e);
    }
    for (int k = 0; k < e.cases; k++)
        bench_close(e.c[k]);
}

static int default_threads(void)
{
    tarn_executor executor;
    return tarn_executor_threads(0, &executor, NULL) ? 1 : executor.parts;
}

static const char *value(int argc, char **argv, int *k)
{
    if (++*k >= argc)
        bench_stop("usage", usage);
    return argv[*k];
}

static void parse_option(settings *s, int argc, char **argv, int *k)
{
    const char *option = argv[*k];
    if (strcmp(option, "--quick") == 0)
        s->effort = (bench_effort){3, 0.3e6, 0};
    else if (strcmp(option, "--seconds") == 0)
        s->seconds = strtod(value(argc, argv, k), NULL);
    else if (strcmp(option, "--threads") == 0)
        s->threads = (int)strtol(value(argc, argv, k), NULL, 10);
    else if (strcmp(option, "--pass") == 0)
        s->pass = value(argc, argv, k);
    else if (strcmp(option, "--families") == 0)
        s->families = true;
    else if (strcmp(option, "--list") == 0)
        s->list = true;
    else if (strcmp(option, "--calls") == 0)
        s->calls = strtol(value(argc, argv, k), NULL, 10);
    else if (strcmp(option, "--csv") == 0) {
        if (!(s->csv = fopen(value(argc, argv, k), "w")))
            bench_stop(argv[*k], "cannot be written");
    } else
        bench_stop("usage", usage);
}

/* Takes the options off the arguments and returns how many others are left in front. */
static int parse_arguments(int argc, char **argv, settings *s)
{
    int others = 0;
    for (int k = 1; k < argc; k++)
        if (argv[k][0] == '-')
            parse_option(s, argc, argv, &k);
        else
            argv[others++] = argv[k];
    if (s->threads < 1)
        bench_stop("--threads", "at least 1");
    return others;
}

/* The rows that the arguments name, in their order; all of them without arguments. */
static int choose_rows(char **names, int count, row *chosen, int most)
{
    int found = 0;
    for (int k = 0; k < (count ? count : 1); k++) {
        int before = found;
        for (int r = 0; r < ROWS && found < most; r++)
            if (!count || strncmp(rows[r].name, names[k], strlen(names[k])) == 0)
                chosen[found++] = rows[r];
        if (found == before && strchr(names[k], ' ') && found < most)
            chosen[found++] = (row){names[k], "", names[k], ALL_PASSES};
        if (found == before)
            bench_stop(names[k], "neither a row nor a problem");
    }
    return found;
}

static void run_rows(const row *chosen, int count, settings *s)
{
    double end = bench_now() + s->seconds * 1e9;
    print_header(s);
    for (int k = 0; k < count; k++) { /* what a row leaves over is for those behind it */
        double left = end - bench_now();
        s->effort.patience_ns = left > 0 ? left / (count - k) : 0;
        run_row(&chosen[k], s);
    }
}

int main(int argc, char **argv)
{
    settings s = {.effort = {MOST_ROUNDS, 3e6, 0}, .seconds = 240, .threads = default_threads()};
    enum { MOST_ROWS = 4 * ROWS };
    static row chosen[MOST_ROWS];
    int count = choose_rows(argv, parse_arguments(argc, argv, &s), chosen, MOST_ROWS);
    for (int k = 0; s.list && k < count; k++)
        printf("%s,%s,%s,%s\n", chosen[k].name, chosen[k].suffix, chosen[k].problem,
               (const char *[]){"all", "forward", "sweep"}[chosen[k].kind]);
    for (int k = 0; !s.list && s.calls > 0 && k < count; k++)
        run_row(&chosen[k], &s);
    if (!s.list && s.calls == 0)
        run_rows(chosen, count, &s);
    if (s.csv && fclose(s.csv))
        bench_stop("--csv", "could not be written in full");
    return EXIT_SUCCESS;
}
