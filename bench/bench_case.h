/* A problem ready to be timed: plans, tensors with something in them, and the passes. Compiled
 * into the benchmark and into a shared library, through which the comparison with other
 * libraries (bench/peers) times tarn with the same code. */
#ifndef TARN_BENCH_CASE_H
#define TARN_BENCH_CASE_H

#include "tarn.h"

#include <stdbool.h>

enum { BENCH_SAVED = TARN_OPERANDS, BENCH_TENSORS }; /* the operands, and the saved winners */

typedef struct bench_case {
    tarn_pool pool;
    tarn_plan *serial, *threaded;
    tarn_view view[BENCH_TENSORS]; /* layout and data; of saved winners the data alone */
    size_t bytes[BENCH_TENSORS];
} bench_case;

/* Reports what went wrong and ends the program: a benchmark that goes on would mislead. */
void bench_stop(const char *what, const char *why);

/* Nanoseconds on a clock that never goes back. */
double bench_now(void);

/* Memory on page boundaries, in huge pages where the system has them, all of it touched. */
void *bench_allocate(size_t bytes);

/* Plans `problem`, serially and for `threads` threads, with the kernel families of the mask `isa`
 * (0: all). */
bench_case *bench_open(const char *problem, int threads, uint32_t isa);
void bench_close(bench_case *c);

/* "fwd", "train", "indices", "jvp", "bwd", "bwd_x". A backward pass from x is "bwd" where there are
 * no winners to save. */
const char *bench_pass_name(const bench_case *c, tarn_pass pass);
bool bench_has(const bench_case *c, tarn_pass pass);

/* The kernel that a pass runs, as far as the plan tells. */
void bench_kernel(const bench_case *c, tarn_pass pass, char *name, size_t size);

/* Bytes that a pass cannot avoid to read and to write. */
size_t bench_read_bytes(const bench_case *c, tarn_pass pass);
size_t bench_written_bytes(const bench_case *c, tarn_pass pass);

/* The tensor whose elements are the result of a pass. */
tarn_operand bench_result(tarn_pass pass);

/* Nanoseconds of `repeats` calls of a pass; of as many times making and freeing its plan. */
double bench_run(const bench_case *c, tarn_pass pass, bool threaded, long repeats);
double bench_run_planning(const bench_case *c, long repeats);

/* For callers in other languages. */
void *bench_data(const bench_case *c, int tensor);
const tarn_view *bench_view(const bench_case *c, int operand);

#endif
