/* One pass of a pool over Python arrays: read them, plan, make the results, run. */
#ifndef TARN_PYTHON_POOLING_H
#define TARN_PYTHON_POOLING_H

#include "plan_cache.h"

/* What x must look like: anything; channels and maybe a batch, which alone may be empty; or the
 * same with any first axis empty, as PyTorch's adaptive functions have it. */
typedef enum { FRAME_ANY, FRAME_BATCH, FRAME_FIRST } frame;

/* Operands of a pass: the library's, and the winners that a backward needs instead of x. They are
 * an array of y's shape and order of axes, dense: bytes, or integers of 4 or 8 bytes for larger
 * windows. */
enum { WINNERS = TARN_OPERANDS, OPERANDS };

/* What to run. The objects are the inputs of the pass, and the arrays to write to; a result that is
 * NULL or None is made. A backward without x (from winners, or of means) has its layout instead. */
typedef struct {
    const tarn_pool *pool;
    tarn_pass pass;
    PyObject *object[OPERANDS];
    frame frame;
    const tarn_view *x; /* the layout of x if there is no object */
    bool recorded; /* gradients are not lost: autograd looks after them, or does not want them */
    plan_entry **plan; /* if not NULL, receives the plan, or has one that the arrays must lie as */
} pooling;

/* Whether a backward of the pool needs winners and not x: max and min, where the first of equals
 * wins. */
bool keeps_winners(const tarn_pool *pool);

/* Whether a backward needs neither: means that skip nothing. */
bool is_linear(const tarn_pool *pool);

/* The result of the pass (y; y and indices or winners; dy; gx), a new reference; NULL with an
 * exception. */
PyObject *pooling_run(module_state *state, const pooling *call);

/* The parts of that, for whoever reads and makes tensors otherwise: whether x has the frame (0, or
 * -1 with an exception), the dtype of the winners of y, the threads for x where PyTorch has so
 * many, and the pass itself, without the GIL if it takes long (0, or -1 with an exception). */
int check_frame(const module_state *state, const tarn_pool *pool, frame frame, const tarn_view *x);
tarn_dtype winner_dtype(const tarn_plan *plan, const tarn_view *y);
int choose_threads(const tarn_view *x, int torch);
int run_plan(const module_state *state, const tarn_plan *plan, tarn_pass pass, bool large,
             void *const *data);

/* Threads of passes: for the process (0: one, or PyTorch's number for its tensors), and for this
 * thread (0: as the process). */
extern int pooling_threads;
extern _Thread_local int pooling_threads_here;

/* Whether a pass over x, in so many parts, takes long enough to give the GIL away. */
bool is_large(const tarn_view *x, int parts);

#endif
