#include "executor.h"

#ifdef TARN_OPENMP
#include <omp.h>

/* OpenMP needs one to three microseconds to start threads and to wait for them; so many
 * elements take two to ten. */
enum { OPENMP_GRAIN = 16384 };

static void for_openmp(void *context, int count, void (*body)(void *argument, int index),
                       void *argument)
{
    (void)context;
    /* Parts may outnumber what the machine can run; threads should not. */
    int most =
        omp_get_num_procs() > omp_get_max_threads() ? omp_get_num_procs() : omp_get_max_threads();
    int threads = count < most ? count : most;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int index = 0; index < count; index++)
        body(argument, index);
}
#endif

tarn_executor tarn_executor_serial(void)
{
    return (tarn_executor){.parts = 1};
}

tarn_status tarn_check_threads(int threads, const tarn_executor *executor, tarn_error *error)
{
    if (!executor)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "executor is NULL");
    if (threads < 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d threads are negative", threads);
    return TARN_OK;
}

tarn_status tarn_executor_openmp(int threads, tarn_executor *executor, tarn_error *error)
{
    if (tarn_check_threads(threads, executor, error))
        return TARN_BAD_ARGUMENT;
#ifdef TARN_OPENMP
    *executor = (tarn_executor){.parts = threads ? threads : omp_get_max_threads(),
                                .parallel_for = for_openmp,
                                .grain = OPENMP_GRAIN};
    return tarn_succeed(error);
#else
    return tarn_fail(error, TARN_UNSUPPORTED, NO_AXIS,
                     "this build of tarn has no OpenMP; compile it with -fopenmp -DTARN_OPENMP");
#endif
}

tarn_status tarn_check_executor(const tarn_executor *executor, tarn_error *error)
{
    if (executor->parts < 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "executor has %d parts",
                         executor->parts);
    if (executor->parts > 1 && !executor->parallel_for)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                         "executor has %d parts but no parallel_for", executor->parts);
    if (executor->grain < 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "the executor's grain %lld is negative",
                         (long long)executor->grain);
    return TARN_OK;
}
