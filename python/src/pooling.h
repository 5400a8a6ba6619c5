/* One pass of a pool over Python arrays: read them, plan, make the results, run. */
#ifndef TARN_PYTHON_POOLING_H
#define TARN_PYTHON_POOLING_H

#include "module.h"

/* What x must look like: anything; channels and maybe a batch, which alone may be empty; or the same with
 * any first axis empty, as PyTorch's adaptive functions have it. */
typedef enum { FRAME_ANY, FRAME_BATCH, FRAME_FIRST } frame;

/* What to run. The objects are the inputs of the pass, and the arrays to write to; a result that is NULL
 * or None is made. */
typedef struct {
    const tarn_pool *pool;
    tarn_pass pass;
    PyObject *object[TARN_OPERANDS];
    frame frame;
} pooling;

/* The result of the pass (y; y and indices; dy; gx), a new reference; NULL with an exception. */
PyObject *pooling_run(module_state *state, const pooling *call);

/* Threads of passes: for the process, and for this thread (0: as the process). */
extern int pooling_threads;
extern _Thread_local int pooling_threads_here;

/* Whether a pass over x takes long enough to give the GIL away. */
bool is_large(const tarn_view *x);

#endif
