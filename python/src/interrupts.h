/* Ctrl-C in passes that take long: between parts of them the interpreter is asked for signals. */
#ifndef TARN_PYTHON_INTERRUPTS_H
#define TARN_PYTHON_INTERRUPTS_H

#include "module.h"

#include <stdatomic.h>

/* A pass that runs without the GIL. */
typedef struct watch {
    PyThreadState *thread;
    struct watch *former; /* of this thread: a handler of signals may pool, too */
    double asked;         /* when the interpreter was last asked, in seconds; 0: never */
    atomic_bool interrupted;
} watch;

/* How many parts of half a second a pass of this pool on x has, roughly; and into how many, from
 * one on, it should be cut. */
double guess_parts(const tarn_pool *pool, const tarn_view *x, tarn_pass pass);
int count_parts(const tarn_pool *pool, const tarn_view *x, tarn_pass pass);

/* Has plans cut their passes so, on the threads that the executor has. */
void interrupts_prepare(int parts, tarn_executor *executor);

/* Around a pass: gives the GIL away and takes it back. watch_end() is true, with an exception, if
 * the pass was interrupted; then it has not written all of its results. */
void watch_begin(watch *watch);
bool watch_end(watch *watch);

#endif
