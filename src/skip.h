/* Skipped values [K1]: as text, and as elements of a dtype. */
#ifndef TARN_SKIP_H
#define TARN_SKIP_H

#include "decimal.h"
#include "problem.h"

/* "nan", an integer or a decimal number, the whole text, into the pool; false for anything else. */
bool tarn_read_skip(const char *text, tarn_pool *pool);

/* What tarn_read_skip() reads; the pool skips something. */
void tarn_print_skip(const tarn_pool *pool, char text[DECIMAL_BYTES]);

/* Checks what the pool skips, and sets it in the problem. */
tarn_status tarn_check_skip(const tarn_pool *pool, tarn_dtype dtype, tarn_problem *problem,
                            tarn_error *error);

#endif
