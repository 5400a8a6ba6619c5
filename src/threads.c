/* The library's own threads, for those who have no OpenMP: one pool for the process, started
 * when the first pass asks for it. Threads sleep between passes and never spin, so that a busy
 * machine does not stall them; a child of fork() starts with none. */
#define _POSIX_C_SOURCE 200809L
#define _DARWIN_C_SOURCE /* macOS hides the number of processors otherwise */
#include "executor.h"

#include <stdbool.h>

#if defined(TARN_NO_THREADS) || defined(_WIN32) || defined(__wasm__)

tarn_status tarn_executor_threads(int threads, tarn_executor *executor, tarn_error *error)
{
    if (tarn_check_threads(threads, executor, error))
        return TARN_BAD_ARGUMENT;
    return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS, "this build of tarn has no threads");
}

#else

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Waking a thread takes some microseconds, and so many elements as long. */
enum { GRAIN = 16384 };

/* A kernel takes 64 KiB at most; the C library and sanitizers want more. */
enum { STACK_BYTES = 1 << 20 };

/* Parts that are handed out one by one. It lives on the stack of the thread that waits for it. */
typedef struct job {
    void (*body)(void *argument, int index);
    void *argument;
    int count, taken, done;
    struct job *next;
} job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;   /* there may be parts to take */
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER; /* a job may be done */
static job *jobs;                                          /* those with parts left */
static int helpers;                                        /* threads that were started */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void for_threads(void *context, int count, void (*body)(void *argument, int index),
                        void *argument);

static int count_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > 4096 ? 4096 : (int)count;
}

tarn_status tarn_executor_threads(int threads, tarn_executor *executor, tarn_error *error)
{
    if (tarn_check_threads(threads, executor, error))
        return TARN_BAD_ARGUMENT;
    *executor = (tarn_executor){.parts = threads ? threads : count_processors(),
                                .parallel_for = for_threads,
                                .grain = GRAIN};
    return tarn_succeed(error);
}

/* Takes a part of `job` and runs it; called and left with the lock held. */
static void run_part(job *job)
{
    int index = job->taken++;
    if (job->taken == job->count) {
        struct job **link = &jobs;
        while (*link != job)
            link = &(*link)->next;
        *link = job->next;
    }
    pthread_mutex_unlock(&lock);
    job->body(job->argument, index);
    pthread_mutex_lock(&lock);
    if (++job->done == job->count)
        pthread_cond_broadcast(&finished);
}

static void *help(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!jobs)
            pthread_cond_wait(&wanted, &lock);
        run_part(jobs);
    }
    return NULL;
}

/* Signals are for the program's own threads, but for those that a thread brings upon itself: a
 * blocked one would end the process without asking a handler, such as the program's for mapped
 * files that shrink. */
static void block_signals(sigset_t *before)
{
    sigset_t others;
    sigfillset(&others);
    sigdelset(&others, SIGBUS);
    sigdelset(&others, SIGSEGV);
    sigdelset(&others, SIGFPE);
    sigdelset(&others, SIGILL);
    pthread_sigmask(SIG_SETMASK, &others, before);
}

/* A small stack if the system allows it. */
static bool start_helper(void)
{
    sigset_t before;
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    bool is_small = !pthread_attr_setstacksize(&small, STACK_BYTES);
    block_signals(&before);
    bool started = (is_small && !pthread_create(&thread, &small, help, NULL)) ||
                   !pthread_create(&thread, NULL, help, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    return started && !pthread_detach(thread);
}

/* Parts may outnumber processors; threads need not, beyond a few. Fewer than asked for are enough:
 * the caller runs whatever is left. */
static void start_helpers(int count)
{
    enum { FEW = 3 };
    int processors = count_processors(), most = processors > FEW ? processors : FEW;
    while (helpers < count && helpers < most && start_helper())
        helpers++;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Only the forking thread lives on, and it was running no job. */
static void in_child(void)
{
    jobs = NULL;
    helpers = 0;
    pthread_cond_init(&wanted, NULL);
    pthread_cond_init(&finished, NULL);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void for_threads(void *context, int count, void (*body)(void *argument, int index),
                        void *argument)
{
    (void)context;
    job job = {.body = body, .argument = argument, .count = count};
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    start_helpers(count - 1);
    job.next = jobs;
    jobs = &job;
    pthread_cond_broadcast(&wanted);
    while (job.taken < job.count)
        run_part(&job);
    while (job.done < job.count)
        pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
}

#endif
