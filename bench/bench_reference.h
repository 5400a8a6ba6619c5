/* What a pass should give, computed in long double by the formulas of docs/spec.md: nothing here is
 * shared with the library but the descriptor. */
#ifndef TARN_BENCH_REFERENCE_H
#define TARN_BENCH_REFERENCE_H

#include "bench_case.h"

/* One element of the result of a pass; `element` counts in row-major order, whatever the layout. */
double bench_reference(const bench_case *c, tarn_pass pass, int64_t element);

/* How many elements to look at, so that it takes no longer than a moment; and which: the k-th of
 * them. */
int64_t bench_probes(const bench_case *c, tarn_pass pass);
int64_t bench_probe(const bench_case *c, tarn_pass pass, int64_t k);

/* Runs the pass and returns the greatest error among the probes, relative to the greatest value. */
double bench_error(const bench_case *c, tarn_pass pass, bool threaded);

#endif
