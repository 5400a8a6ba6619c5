/* The library's own threads: several callers at once, jobs within jobs, processes that fork,
 * threads that cannot be started. Whatever happens, the bits are those of one thread. */
#define _GNU_SOURCE /* fork, setrlimit, RTLD_NEXT */
#include "fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLERS = 4, SIDE = 256 };
#ifdef TARN_SHORT_TESTS
enum { RUNS = 30 };
#else
enum { RUNS = 200 };
#endif

static float x[SIDE * SIDE], expected[SIDE * SIDE];
static tarn_plan *plan; /* of many parts; runs may share it */

static bool run_is_right(float *y)
{
    memset(y, POISON, sizeof expected);
    return tarn_forward(plan, x, y, NULL, NULL) == TARN_OK &&
           memcmp(y, expected, sizeof expected) == 0;
}

static void *call_again(void *argument)
{
    float *y = malloc(sizeof expected);
    bool *right = argument;
    for (int k = 0; k < RUNS; k++)
        *right &= run_is_right(y);
    free(y);
    return NULL;
}

static void test_callers(void)
{
    pthread_t threads[CALLERS];
    bool right[CALLERS];
    for (int k = 0; k < CALLERS; k++) {
        right[k] = true;
        if (pthread_create(&threads[k], NULL, call_again, &right[k]))
            abort();
    }
    for (int k = 0; k < CALLERS; k++) {
        pthread_join(threads[k], NULL);
        CHECK(right[k], "caller %d of %d", k, CALLERS);
    }
}

/* A part that has parts itself. */
static tarn_executor outer;

static void run_inside(void *argument, int index)
{
    float *y = malloc(sizeof expected);
    ((bool *)argument)[index] = run_is_right(y);
    free(y);
}

static void test_nested(void)
{
    bool right[CALLERS] = {false};
    outer.parallel_for(outer.context, CALLERS, run_inside, right);
    for (int k = 0; k < CALLERS; k++)
        CHECK(right[k], "part %d", k);
}

/* The sanitizer of threads dies of a child that starts some; those of clang have a
 * pthread_create() of their own. */
#if !defined(__SANITIZE_THREAD__) && !(defined(__clang__) && defined(TARN_SANITIZED))
#define STARTS_FAIL 1

/* The linker takes this one for the library's: starts fail from the first on, so many of them. */
static int first_failure, failures, starts;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    int (*start)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&start = dlsym(RTLD_NEXT, "pthread_create");
    int number = failures ? starts++ - first_failure : -1;
    return number >= 0 && number < failures ? EAGAIN : start(thread, attributes, run, argument);
}

/* Status of a child whose passes find that threads do not start. */
static int child_without(int first, int count)
{
    static float y[SIDE * SIDE];
    pid_t child = fork();
    if (child == 0) {
        starts = 0;
        first_failure = first;
        failures = count;
        for (int k = 0; k < 3; k++)
            if (!run_is_right(y))
                _exit(1);
        _exit(starts > first ? 0 : 2);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Each start fails once, twice (with a small stack, and then with any), and then for ever. */
static void test_starts_that_fail(void)
{
    static const int counts[] = {1, 2, 1000};
    for (int first = 0; first < CALLERS - 1; first++)
        for (int k = 0; k < 3; k++) {
            int status = child_without(first, counts[k]);
            CHECK(status == 0, "start %d fails %d times: status %d", first, counts[k], status);
        }
}

#endif

/* A child has none of its parent's threads and starts its own, or does without: the limit is of the
 * processes and threads of a user, which root does not feel. */
#ifndef __SANITIZE_THREAD__
static void test_forks(void)
{
    static float y[SIDE * SIDE]; /* not of the heap: a child frees nothing */
    for (int starve = 0; starve < 2; starve++) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit none = {0, 0};
            if (starve && (setrlimit(RLIMIT_NPROC, &none) || (getuid() == 0 && setuid(65534))))
                _exit(2);
            for (int k = 0; k < 20; k++)
                if (!run_is_right(y))
                    _exit(1);
            _exit(0);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                  WEXITSTATUS(status) == 0,
              "child %d: status %d", starve, status);
        CHECK(run_is_right(y), "the parent, after child %d", starve);
    }
}
#endif

int main(void)
{
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 1, 1);
    tarn_view view = tarn_view_dense(NULL, TARN_F32, 2, (int64_t[]){SIDE, SIDE});
    tarn_options options = tarn_options_default();
    tarn_plan *serial;
    rng r = {3};
    for (int k = 0; k < SIDE * SIDE; k++)
        x[k] = (float)rng_unit(&r);
    if (tarn_plan_create(&serial, &pool, &view, NULL, NULL) ||
        tarn_forward(serial, x, expected, NULL, NULL) ||
        tarn_executor_threads(CALLERS, &outer, NULL))
        abort();
    options.executor = outer;
    options.executor.grain = 1; /* parts, however small */
    if (tarn_plan_create(&plan, &pool, &view, &options, NULL))
        abort();
    test_callers();
    test_nested();
#ifndef __SANITIZE_THREAD__
    test_forks();
#endif
#ifdef STARTS_FAIL
    test_starts_that_fail();
#endif
    tarn_plan_destroy(serial);
    tarn_plan_destroy(plan);
    return finish_checks();
}
