#include "bench_measure.h"
#include "bench_bound.h"

#include <stdlib.h>

/* A call that takes longer is sampled once: the time is better spent on the others. */
static const double slow_ns = 0.2e9;

/* Nanoseconds of `repeats` calls. */
static double sample(const bench_job *job, long repeats)
{
    switch (job->subject) {
    case TIME_PASS:
        return bench_run(job->c, job->pass, job->threads > 1, repeats);
    case TIME_PLANNING:
        return bench_run_planning(job->c, repeats);
    default:
        return bench_bound(bench_read_bytes(job->c, job->pass),
                           bench_written_bytes(job->c, job->pass), job->threads,
                           job->subject == TIME_BOUND_BYPASSING, repeats);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Finds out how often to repeat a call, which warms caches, clocks and threads up. */
static void calibrate(bench_job *job, double sample_ns)
{
    for (job->repeats = 1; sample(job, job->repeats) < sample_ns / 2;)
        job->repeats *= 2;
    job->samples = 0;
}

/* The first call after another job finds foreign caches and sleeping threads: where calls are
 * repeated, one of them is not counted. */
static void measure_once(bench_job *job)
{
    if (job->repeats > 1)
        sample(job, 1);
    job->ns[job->samples++] = sample(job, job->repeats) / (double)job->repeats;
}

void bench_measure(bench_job *jobs, int count, const bench_effort *effort)
{
    double begin = bench_now();
    for (bench_job *job = jobs; job < jobs + count; job++)
        calibrate(job, effort->sample_ns);
    for (int round = 0; round < effort->rounds; round++) {
        if (round >= 3 && bench_now() - begin > effort->patience_ns)
            break;
        for (bench_job *job = jobs; job < jobs + count; job++)
            if (round == 0 || job->ns[0] < slow_ns)
                measure_once(job);
    }
    for (bench_job *job = jobs; job < jobs + count; job++)
        qsort(job->ns, (size_t)job->samples, sizeof job->ns[0], compare);
}

double bench_median(const bench_job *job)
{
    return job->ns[(job->samples - 1) / 2];
}
