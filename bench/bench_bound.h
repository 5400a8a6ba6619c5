/* The streaming bound: the time it takes to read as many bytes as a pass must read and to
 * write as many as it must write, and nothing else. */
#ifndef TARN_BENCH_BOUND_H
#define TARN_BENCH_BOUND_H

#include <stdbool.h>
#include <stddef.h>

/* Nanoseconds of `repeats` times reading and writing that many bytes, with `threads` threads;
 * with stores that bypass the caches if `bypass`. Both kinds are measured: the better is the
 * bound. */
double bench_bound(size_t read, size_t written, int threads, bool bypass, long repeats);

#endif
