/* A pass whose work grows with its taps may take minutes. Its plan gets an executor of this file:
 * more parts than threads, and between two parts the thread that called asks the interpreter for
 * signals, ten times a second. After an interrupt the parts that are left are not run. */
#include "interrupts.h"

#include <time.h>

/* Fewer taps take some tenths of a second at most. */
#define MANY_TAPS 0x1p28
#define SECONDS 0.1

/* A part has the rows of so many windows: backwards look at those across its ends twice. */
enum { MOST_PARTS = 64, WINDOWS = 8 };

static _Thread_local watch *current;

/* ---- Which plans --------------------------------------------------------------------------- */

static bool grows_with_taps(const tarn_pool *pool)
{
    bool folds = pool->op == TARN_MAX || pool->op == TARN_MIN;
    return (folds ? pool->ties != TARN_TIES_FIRST : pool->op != TARN_AVG) ||
           pool->skip != TARN_SKIP_NOTHING;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The taps of all windows, roughly. The pool is not checked yet: any number may be in it. */
static double count_taps(const tarn_pool *pool, const tarn_view *x)
{
    double taps = 1;
    for (int a = 0; a < x->rank; a++)
        taps *= (double)x->shape[a];
    for (int a = 0; a < pool->spatial && pool->window == TARN_SLIDING; a++)
        taps *= larger(1, (double)pool->kernel[a] / larger(1, (double)pool->stride[a]));
    return taps;
}

/* Into how many parts a pass comes apart well: planes, and stretches of their first axis. Axes that
 * lie closer than that one are done together. */
static double count_parts(const tarn_pool *pool, const tarn_view *x)
{
    int first = x->rank - pool->spatial;
    double planes = 1, rows = 1;
    for (int a = 0; a < first; a++)
        planes *= x->strides[a] > x->strides[first] ? (double)x->shape[a] : 1;
    if (pool->window == TARN_SLIDING)
        rows = (double)x->shape[first] /
               (WINDOWS * larger(1, (double)pool->dilation[0] * (double)pool->kernel[0]));
    return planes * larger(1, rows);
}

/* ---- Parts --------------------------------------------------------------------------------- */

typedef struct {
    void (*body)(void *argument, int index);
    void *argument;
    watch *watch; /* NULL: nobody can be asked */
} job;

static double now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void ask(watch *watch)
{
    double time = now();
    if (watch->asked > 0 && time >= watch->asked && time < watch->asked + SECONDS)
        return;
    if (watch->asked > 0) {
        PyEval_RestoreThread(watch->thread);
        if (PyErr_CheckSignals())
            watch->interrupted = true;
        watch->thread = PyEval_SaveThread();
    }
    watch->asked = time;
}

static void run_part(void *argument, int index)
{
    const job *job = argument;
    if (job->watch && job->watch->interrupted)
        return;
    job->body(job->argument, index);
    if (job->watch && job->watch == current) /* not in a helper's thread */
        ask(job->watch);
}

static void in_turn(void *context, int count, void (*body)(void *argument, int index),
                    void *argument)
{
    (void)context;
    job job = {body, argument, current};
    for (int k = 0; k < count; k++)
        run_part(&job, k);
}

static void in_threads(void *context, int count, void (*body)(void *argument, int index),
                       void *argument)
{
    tarn_executor threads;
    job job = {body, argument, current};
    if (tarn_executor_threads(2, &threads, NULL))
        in_turn(context, count, body, argument);
    else
        threads.parallel_for(threads.context, count, run_part, &job);
}

/* ---- For others ---------------------------------------------------------------------------- */

void interrupts_prepare(const tarn_pool *pool, const tarn_view *x, tarn_executor *executor)
{
    if (pool->spatial < 1 || pool->spatial > TARN_MAX_SPATIAL || pool->spatial > x->rank ||
        !grows_with_taps(pool) || count_taps(pool, x) < MANY_TAPS)
        return;
    double parts = count_parts(pool, x);
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    if (parts < executor->parts + 1)
        return;
    executor->parallel_for = executor->parts > 1 ? in_threads : in_turn;
    executor->parts = (int)parts;
}

void watch_begin(watch *watch)
{
    watch->former = current;
    watch->asked = 0;
    watch->interrupted = false;
    current = watch;
    watch->thread = PyEval_SaveThread();
}

bool watch_end(watch *watch)
{
    PyEval_RestoreThread(watch->thread);
    current = watch->former;
    return watch->interrupted;
}
