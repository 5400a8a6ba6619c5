/* The package's own executor: threads that start when they are first asked for and stay. */
#ifndef TARN_PYTHON_THREAD_POOL_H
#define TARN_PYTHON_THREAD_POOL_H

#include <tarn.h>

/* Splits a pass over the pool, `threads` - 1 helpers and the caller; serial for one. */
tarn_executor thread_pool_executor(int threads);

#endif
