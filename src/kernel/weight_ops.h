/* The row operations of smooth max and Lp: exponentials, powers and what is made of their sums, in
 * binary64, for every floating type. There is one table for each instruction set; the engine
 * (weighted.c) is plain C.
 *
 * Rows of numbers are scratch (row_ops.h), of which SCRATCH_SLACK bytes more may be read; no more
 * than n numbers are written, but for values and norms. What is read of tensors is what is told.
 */
#ifndef TARN_WEIGHT_OPS_H
#define TARN_WEIGHT_OPS_H

#include "row_ops.h"

/* What a row held: the least and the greatest number, and whether all are finite. */
typedef struct tarn_seen {
    double low, high;
    bool finite;
} tarn_seen;

typedef struct tarn_weight_ops {
    const tarn_row_ops *rows;

    /* Pixels of `lanes` elements, `step` bytes apart, as numbers side by side, exactly; and back,
     * rounded once, a NaN as the one quiet NaN. */
    void (*read[TARN_BF16 + 1])(double *to, const char *from, int64_t step, int64_t pixels,
                                int64_t lanes);
    void (*write[TARN_BF16 + 1])(char *to, int64_t step, const double *from, int64_t pixels,
                                 int64_t lanes);

    /* x becomes e^(beta*x) * 2^-shift, for an even shift; in full or short (exponential.h). What is
     * seen is beta*x. Right where |beta*x| < 2^24 and the result is a normal number. */
    void (*exponentials)(double *x, int64_t n, bool full, double beta, double shift,
                         tarn_seen *seen);
    /* x becomes |x|^q * 2^-shift, or as much with the sign of x; q of 0, 1 and 2 is without a
     * scale. What is seen, unless NULL, is |x|, zeros left out. Right where |x| is normal, and the
     * result, too. */
    void (*powers)(double *x, int64_t n, double q, bool signs, double shift, tarn_seen *seen);

    /* [L3] Values from the sums of weights and the taps of the greatest; 0 where the sum is 0. */
    void (*smooth_values)(double *to, const double *sums, const double *tops, int64_t n, bool full,
                          double beta, double shift);
    /* [N3] Norms from the sums of powers and, unless p is 1 or 2, the greatest |x|. */
    void (*norms)(double *to, const double *sums, const double *tops, int64_t n, double p,
                  double shift);

    void (*products)(double *to, const double *a, const double *b,
                     int64_t n); /* a*b + 0; a*0 is 0 */
    void (*quotients)(double *to, const double *a, const double *b,
                      int64_t n); /* a/b + 0; a/0 is 0 */
} tarn_weight_ops;

extern const tarn_weight_ops tarn_portable_weight_ops;
#if HAVE_AVX2
extern const tarn_weight_ops tarn_avx2_weight_ops;
#endif
#if HAVE_AVX512
extern const tarn_weight_ops tarn_avx512_weight_ops;
#endif

#endif
