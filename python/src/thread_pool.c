#define _POSIX_C_SOURCE 200809L
#include "thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* OpenMP would make wheels depend on a runtime that other packages bring in other versions, and that
 * does not survive fork(). This pool does: the child starts with none of its threads. */

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
static int helpers;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* Signals are for Python's own threads: a helper is born deaf. */
static bool start_helper(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&thread, NULL, help, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started && !pthread_detach(thread);
}

/* Fewer helpers than asked for are enough: the caller runs whatever is left. */
static void start_helpers(int count)
{
    while (helpers < count && start_helper())
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

static void for_pool(void *context, int count, void (*body)(void *argument, int index),
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

/* Helpers sleep between passes; it takes some microseconds to wake them, and so many elements as long. */
enum { GRAIN = 16384 };

tarn_executor thread_pool_executor(int threads)
{
    return (tarn_executor){.parts = threads > 1 ? threads : 1, .parallel_for = for_pool, .grain = GRAIN};
}
