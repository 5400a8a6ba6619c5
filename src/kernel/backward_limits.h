/* What the vector kernels of gradients take, and where the windows of a cell lie. */
#ifndef TARN_BACKWARD_LIMITS_H
#define TARN_BACKWARD_LIMITS_H

#include "../problem.h"

enum {
    MOST_READERS = 128,       /* windows that read a cell, on one axis */
    MOST_STRIDE = 16,         /* on the innermost axis */
    MOST_ROWS_KEPT = 128,     /* rows of windows that are kept */
    MOST_TAPS = 1024,         /* of a window whose winner is scattered, or runs */
    MOST_LANE_WINDOWS = 25,   /* that read a cell of interleaved planes, without buffers */
    ROWS_AHEAD = 8,           /* of cells, when winners are scattered */
    SCRATCH_BYTES = 128 << 10, /* on the stack, all rows together */
    BLOCK_BYTES = 64 << 10,   /* of these, for blocks of short rows */
    RUN_BYTES = 64 << 10,     /* on the stack for places, and for sums, where winners run */
    RUN_TOTALS_BYTES = 32 << 10, /* ... and for totals */
    MOST_RUN_WINDOWS = 2048,  /* in a row */
    MOST_NEIGHBOURS = 4,      /* windows to the right of one that may have its winner, where all are asked */
    MOST_RUN_COLUMNS = 1 << 16, /* of cells */
    PATCH_BYTES = 32 << 10,   /* on the stack for the windows of a patch of cells */
    LONGEST_ROW = 2048,       /* elements of a row that is kept */
    LONGEST_NESTED_ROW = 256, /* ... where sums over outer axes need more rows on the stack */
};

/* How many windows of an axis read a cell, at most; MOST_READERS + 1 stands for all that is beyond these
 * kernels. */
static inline int64_t most_readers(const tarn_axis *axis)
{
    if (axis->adaptive || axis->dilation != 1)
        return MOST_READERS + 1;
    return min_i64((axis->kernel - 1) / axis->stride, MOST_READERS) + 1;
}

/* The windows that read a cell of a sliding axis without dilation: last, last-1, ..., `count` of them if
 * the output went on for ever; window last-i by tap phase + i*stride. */
typedef struct tarn_readers {
    int64_t last, count, phase;
} tarn_readers;

static inline tarn_readers readers_of(const tarn_axis *axis, int64_t cell)
{
    int64_t position = cell + axis->lo;
    if (axis->stride == 1)
        return (tarn_readers){position, axis->kernel, 0};
    int64_t last = position / axis->stride, phase = position - last * axis->stride;
    int64_t count = phase < axis->kernel ? (axis->kernel - 1 - phase) / axis->stride + 1 : 0;
    return (tarn_readers){last, count, phase};
}

/* Rows of windows that are kept: those that can reach one row of cells. */
static inline int64_t rows_kept(const tarn_problem *problem)
{
    int64_t rows = 1;
    for (int a = 0; a < problem->spatial - 1; a++)
        rows *= most_readers(&problem->axis[a]);
    return rows;
}

/* Taps of window o on one axis that count for its divisor. */
static inline int64_t counted_taps(const tarn_problem *problem, int axis, int64_t o)
{
    if (problem->count_include_pad)
        return padded_taps(&problem->axis[axis], o);
    tarn_span taps = window_taps(&problem->axis[axis], o);
    return taps.hi - taps.lo;
}

/* Windows that read a cell, at most; MOST_READERS + 1 for what is beyond. */
static inline int64_t windows_of_cell(const tarn_problem *problem)
{
    int64_t windows = 1;
    for (int a = 0; a < problem->spatial && windows <= MOST_READERS; a++)
        windows = min_i64(windows * most_readers(&problem->axis[a]), MOST_READERS + 1);
    return windows;
}

/* Rows of windows that are scattered together (of adaptive windows, which have no stride, any number will do); scratch
 * rows that scattering takes, and columns beyond the cells of a strip in each. */
static inline int64_t rows_together(const tarn_problem *problem)
{
    const tarn_axis *axis = &problem->axis[0];
    int64_t most = axis->kernel <= 16 ? 4 : axis->kernel <= 32 ? 2 : 1;
    return min_i64(most, ROWS_AHEAD / max_i64(1, min_i64(axis->stride, ROWS_AHEAD + 1)) + 1);
}

static inline int64_t scatter_rows(const tarn_problem *problem)
{
    int64_t together = rows_together(problem);
    return 2 + (2 + problem->axis[0].kernel) * together + problem->axis[0].kernel + ROWS_AHEAD;
}

static inline int64_t scatter_halo(const tarn_problem *problem)
{
    const tarn_axis *axis = &problem->axis[problem->spatial - 1];
    return 2 * (axis->kernel + min_i64(axis->stride, MOST_STRIDE));
}

/* Whether the vector kernels take the problem's windows and the layout of gy and gx, when they use `rows`
 * scratch rows with `halo` columns beyond a strip's cells. Written for the longest vectors, so that all
 * instruction sets agree. */
static inline bool slides_backward(const tarn_problem *problem, int64_t rows, int64_t halo)
{
    enum { LONGEST_VECTOR = 16 };
    int inner = problem->spatial - 1;
    for (int a = 0; a <= inner; a++) {
        int64_t most = a == 0 || a == inner ? MOST_READERS : 8;
        if (most_readers(&problem->axis[a]) > most)
            return false;
    }
    int64_t longest = inner > 1 ? LONGEST_NESTED_ROW : LONGEST_ROW;
    int64_t bytes = problem->dtype == TARN_F64 ? 8 : 4; /* of a sum */
    int64_t room = min_i64(SCRATCH_BYTES / bytes / rows, longest) - 3 * LONGEST_VECTOR;
    return problem->axis[inner].stride <= MOST_STRIDE && rows_kept(problem) <= MOST_ROWS_KEPT &&
           room >= halo + 8 &&
           (problem->lanes > 1 || (problem->stride[TARN_GX][inner] == 1 && problem->stride[TARN_GY][inner] == 1));
}

#endif
