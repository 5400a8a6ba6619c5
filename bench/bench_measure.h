/* Measuring in turn, round by round: a busy machine or a changing clock slows all of it alike. */
#ifndef TARN_BENCH_MEASURE_H
#define TARN_BENCH_MEASURE_H

#include "bench_case.h"

enum { MOST_ROUNDS = 31 };

/* What a job times. */
typedef enum { TIME_PASS, TIME_PLANNING, TIME_BOUND, TIME_BOUND_BYPASSING } bench_subject;

/* One thing to measure, and its times per call, sorted in the end. */
typedef struct {
    bench_subject subject;
    const bench_case *c;
    const char *layout, *family; /* for the report */
    tarn_pass pass;
    int threads;
    long repeats; /* calls in a sample */
    int samples;
    double ns[MOST_ROUNDS];
} bench_job;

typedef struct {
    int rounds;         /* at most MOST_ROUNDS */
    double sample_ns;   /* calls are repeated until a sample takes about as long */
    double patience_ns; /* at least three rounds, then only those that fit in this time */
} bench_effort;

void bench_measure(bench_job *jobs, int count, const bench_effort *effort);

double bench_median(const bench_job *job);

#endif
