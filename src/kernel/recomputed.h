/* Winners that are recomputed for a few rows of windows at a time, instead of saved. */
#ifndef TARN_RECOMPUTED_H
#define TARN_RECOMPUTED_H

#include "backward_limits.h"

enum { RECOMPUTED_BYTES = 24 << 10 }; /* on the stack */

/* Bytes of the winners at one coordinate of the first axis; 0 if they do not fit. */
static inline int64_t recomputed_row_bytes(const tarn_problem *problem)
{
    int64_t bytes = problem->lanes * problem->element_bytes[OPERAND_SAVED];
    for (int a = 1; a < problem->spatial && bytes <= RECOMPUTED_BYTES; a++)
        bytes = problem->axis[a].out > RECOMPUTED_BYTES ? RECOMPUTED_BYTES + 1
                                                        : bytes * problem->axis[a].out;
    return bytes <= RECOMPUTED_BYTES ? bytes : 0;
}

/* For how many coordinates of cells on the first axis the winners fit the buffer at once; 0 if for none. */
static inline int64_t recomputed_rows(const tarn_problem *problem)
{
    int64_t bytes = recomputed_row_bytes(problem);
    int64_t windows = bytes > 0 ? RECOMPUTED_BYTES / bytes - most_readers(&problem->axis[0]) : 0;
    return max_i64(windows, 0) * min_i64(problem->axis[0].stride, MOST_READERS);
}

/* The problem with winners that lie densely, in every plane at the same place. */
static inline tarn_problem with_own_winners(const tarn_problem *problem)
{
    tarn_problem own = *problem;
    int64_t stride = problem->lanes;
    for (int a = problem->spatial - 1; a >= 0; a--) {
        own.stride[OPERAND_SAVED][a] = stride;
        stride *= problem->axis[a].out;
    }
    memset(own.lead_stride[OPERAND_SAVED], 0, sizeof own.lead_stride[OPERAND_SAVED]);
    return own;
}

#endif
