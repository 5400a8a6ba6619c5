/* A pass may take minutes, or hours where windows are large. Its plan then gets an executor of this
 * file: parts of about half a second, and between two of them the thread that called asks the
 * interpreter for signals. After an interrupt the parts that are left are not run. */
#include "interrupts.h"

#include <time.h>

/* How long a part should take: what backwards cut is in part computed twice. */
#define PART_SECONDS 0.5
#define ASK_SECONDS 0.1

/* So few cells, read by as many windows of as many taps, take a tenth of a second. */
enum { FEW_CELLS = 256, MOST_PARTS = 1 << 20 };

static _Thread_local watch *current;

/* ---- How long a pass may take -------------------------------------------------------------- */

/* Of a pool on x, roughly. The pool is not checked yet: any number may be in it. */
typedef struct {
    double cells, windows; /* of all planes */
    double taps;           /* of a window */
    double readers;        /* windows that read a cell, */
    double rows;           /* those at one place of the last axis, */
    double runs;           /* and stretches of 64 windows in a plane */
} extent;

static double within(double low, double number, double high)
{
    return !(number > low) ? low : number < high ? number : high;
}

static void add_axis(extent *e, const tarn_pool *pool, int a, double size, bool last)
{
    double kernel = size, windows = 1, readers = 1;
    if (pool->window == TARN_SLIDING) {
        double stride = within(1, (double)pool->stride[a], 0x1p62);
        double padding = (double)pool->pad_lo[a] + (double)pool->pad_hi[a];
        kernel = within(1, (double)pool->kernel[a], size);
        double span = (kernel - 1) * within(1, (double)pool->dilation[a], 0x1p62) + 1;
        windows = within(1, (size + padding - span) / stride + 1, 0x1p62);
        readers = within(1, kernel / stride, windows);
    } else if (pool->window == TARN_ADAPTIVE) {
        windows = within(1, (double)pool->out[a], 0x1p62);
        kernel = within(1, size / windows, size);
    }
    e->windows *= windows;
    e->taps *= kernel;
    e->readers *= readers;
    e->rows *= last ? 1 : readers;
    e->runs *= last ? windows / 64 + 1 : windows;
}

static extent measure(const tarn_pool *pool, const tarn_view *x)
{
    extent e = {1, 1, 1, 1, 1, 1};
    int first = x->rank - pool->spatial;
    for (int a = 0; a < x->rank; a++) {
        e.cells *= (double)x->shape[a];
        if (a < first)
            e.windows *= (double)x->shape[a];
        else
            add_axis(&e, pool, a - first, (double)x->shape[a], a == x->rank - 1);
    }
    return e;
}

/* Nanoseconds, as measured on one machine: right within a factor of five or so. A pass that reads
 * the windows of a cell anew for each row of cells is dear, but loses nothing if it is cut. */
static double guess_vjp(const tarn_pool *pool, const extent *e)
{
    double both = e->readers * e->taps;
    if (pool->skip != TARN_SKIP_NOTHING)
        return 6 * e->cells * both;
    if (pool->op == TARN_SMOOTH || pool->op == TARN_LP)
        return e->cells * (50 + (both < 5e5 ? 3e-4 : 3e-3) * both);
    if (pool->op == TARN_AVG)
        return 10 * e->cells;
    if (pool->ties == TARN_TIES_FIRST)
        return e->cells * (10 + 0.07 * (e->readers > 1 ? e->taps : 0));
    return e->runs > 20 ? 2 * e->cells * e->rows * e->taps : 4 * e->windows * e->taps;
}

static double guess(const tarn_pool *pool, const extent *e, tarn_pass pass)
{
    bool extreme = pool->op == TARN_MAX || pool->op == TARN_MIN;
    if (pool->op == TARN_MODE)
        return e->windows * e->taps * 6 * (e->taps > 16 ? e->taps : 1);
    if (pass == TARN_VJP || pass == TARN_VJP_SAVED)
        return guess_vjp(pool, e);
    if (pass == TARN_JVP && pool->skip != TARN_SKIP_NOTHING)
        return 26 * e->windows * e->taps;
    if (pass == TARN_JVP && extreme && pool->ties != TARN_TIES_FIRST)
        return 4 * e->windows * e->taps;
    return e->cells * (extreme || pool->op == TARN_AVG ? 10 : 100);
}

double guess_parts(const tarn_pool *pool, const tarn_view *x, tarn_pass pass)
{
    if (pool->spatial < 1 || pool->spatial > TARN_MAX_SPATIAL || pool->spatial > x->rank)
        return 0;
    extent e = measure(pool, x);
    if (e.cells <= FEW_CELLS)
        return 0;
    return within(0, guess(pool, &e, pass) / (1e9 * PART_SECONDS), MOST_PARTS);
}

int count_parts(const tarn_pool *pool, const tarn_view *x, tarn_pass pass)
{
    double parts = guess_parts(pool, x, pass);
    return parts > 1 ? (int)parts : 1;
}

/* ---- Parts --------------------------------------------------------------------------------- */

/* What the threads of a pass take parts from. */
typedef struct {
    void (*body)(void *argument, int index);
    void *argument;
    int count;
    atomic_int taken;
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
    if (time >= watch->asked && time < watch->asked + ASK_SECONDS)
        return;
    PyEval_RestoreThread(watch->thread);
    if (PyErr_CheckSignals())
        watch->interrupted = true;
    watch->thread = PyEval_SaveThread();
    watch->asked = time;
}

static void take_parts(void *argument, int thread)
{
    job *job = argument;
    (void)thread;
    for (int k; (k = atomic_fetch_add(&job->taken, 1)) < job->count;) {
        if (job->watch && job->watch->interrupted)
            return;
        job->body(job->argument, k);
        if (job->watch && job->watch == current) /* not in a helper's thread */
            ask(job->watch);
    }
}

static void in_turn(void *context, int count, void (*body)(void *argument, int index),
                    void *argument)
{
    (void)context;
    job job = {body, argument, count, 0, current};
    take_parts(&job, 0);
}

/* The context is the number of threads. */
static void in_threads(void *context, int count, void (*body)(void *argument, int index),
                       void *argument)
{
    tarn_executor threads;
    int wanted = (int)(intptr_t)context;
    job job = {body, argument, count, 0, current};
    if (tarn_executor_threads(wanted, &threads, NULL))
        take_parts(&job, 0);
    else
        threads.parallel_for(threads.context, wanted, take_parts, &job);
}

/* ---- For others ---------------------------------------------------------------------------- */

void interrupts_prepare(int parts, tarn_executor *executor)
{
    int threads = executor->parts;
    if (parts <= 1)
        return;
    *executor = (tarn_executor){.parts = parts, .parallel_for = in_turn};
    if (threads > 1) {
        executor->parts = parts > 4 * threads ? parts : 4 * threads;
        executor->parallel_for = in_threads;
        executor->context = (void *)(intptr_t)threads;
    }
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
