/* The row operations of max and min where equal taps share [M6], one table for each instruction
 * set; the engine (ties.c) is plain C.
 *
 * Numbers are computed with in the type of sums: f64 for f64, f32 for the others. Rows are pixels
 * of `lanes` elements, `step` bytes apart, and side by side in scratch; no more than these elements
 * is read or written.
 */
#ifndef TARN_TIE_OPS_H
#define TARN_TIE_OPS_H

#include "row_ops.h"

/* Rows of x, `row_step` bytes apart, each of a window of its own, and the best of each lane of
 * each: tops[row*lanes + lane]. */
typedef struct tarn_tied_rows {
    const char *x;
    int64_t step, pixels, lanes;
    int64_t rows, row_step;
    const void *tops;
} tarn_tied_rows;

typedef struct tarn_tie_ops {
    const tarn_row_ops *rows;
    /* tops[.] = the greatest (least) of it and its lane of all pixels; NaN is the best of all. */
    void (*tops[TARN_BF16 + 1])(void *tops, const tarn_tied_rows *rows, bool least);
    /* count[.] += how many taps are as good as the top. */
    void (*counts[TARN_BF16 + 1])(int64_t *count, const tarn_tied_rows *rows);
    /* gx = share[.] + 0 where the tap is as good as the top, else 0. */
    void (*give[TARN_BF16 + 1])(char *gx, int64_t step, int64_t row_step,
                                const tarn_tied_rows *rows, const void *share);
    /* Scratch sums += share[.] where the tap is as good as the top; steps are in numbers. */
    void (*add[TARN_BF16 + 1])(void *sums, int64_t step, int64_t row_step,
                               const tarn_tied_rows *rows, const void *share);
    /* Scratch to = dx + 0 where the tap is as good as the top, else 0. */
    void (*tangents[TARN_BF16 + 1])(void *to, const char *dx, int64_t step, int64_t row_step,
                                    const tarn_tied_rows *rows);
} tarn_tie_ops;

extern const tarn_tie_ops tarn_portable_tie_ops;
#if HAVE_AVX2
extern const tarn_tie_ops tarn_avx2_tie_ops;
#endif
#if HAVE_AVX512
extern const tarn_tie_ops tarn_avx512_tie_ops;
#endif

#endif
