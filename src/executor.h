/* Executors: who runs the parts of a pass. */
#ifndef TARN_EXECUTOR_H
#define TARN_EXECUTOR_H

#include "error.h"

/* Whether a number of threads, and the room for their executor, are what they should be. */
tarn_status tarn_check_threads(int threads, const tarn_executor *executor, tarn_error *error);

/* Whether parts, grain and parallel_for of an executor fit each other. */
tarn_status tarn_check_executor(const tarn_executor *executor, tarn_error *error);

#endif
