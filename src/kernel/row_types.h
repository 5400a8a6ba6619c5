/* Which means of integers can be computed in f32 or f64: sums, one division, rounded half to
 * even.
 *
 * Let p be the bits of the type's mantissa, 24 or 53, and let every sum of the taps, S, stay
 * below 2^(p-1). Then sums are exact, and rounding the quotient S/d, itself rounded to the
 * type, gives what rounding the exact quotient does, whatever the divisor d. Rounding keeps
 * order, and the type holds every number halfway between integers that an integer dtype can
 * have, h = (2k+1)/2: a quotient can only move to h, not beyond it. If it moves to h and is not
 * h, then 0 < |S/d - h| <= 2^-p |h|, and with 2d multiplied,
 *     0 < |2S - 2hd| <= 2^-p |2hd|.
 * In the middle are integers: |2hd| >= 2^p, so |2S| >= 2^p - 1, and as 2S is even, |S| >=
 * 2^(p-1). A divisor that the type does not hold is over 2^p, and so is what it is rounded to,
 * or equal: the quotient stays below a half, and its rounding is 0 in any case. Quotients
 * beyond the dtype saturate before they are rounded to integers.
 */
#ifndef TARN_ROW_TYPES_H
#define TARN_ROW_TYPES_H

#include "tarn.h"

#include <stdbool.h>

/* Whether no sum of so many elements of an integer dtype reaches a limit, with either sign. Of
 * 64-bit ones none does that is asked for here. */
static inline bool sums_stay_below(int64_t limit, tarn_dtype dtype, int64_t taps)
{
    static const int64_t greatest[TARN_DTYPES] = {
        [TARN_I8] = 128,         [TARN_U8] = UINT8_MAX,  [TARN_I16] = 32768,
        [TARN_U16] = UINT16_MAX, [TARN_I32] = 1LL << 31, [TARN_U32] = UINT32_MAX,
        [TARN_I64] = INT64_MAX,  [TARN_U64] = INT64_MAX,
    };
    return taps <= (limit - 1) / greatest[dtype];
}

/* Whether the means of windows of so many taps are those of terms_f32 and means_f32, by any
 * positive divisor. */
static inline bool means_fit_f32(tarn_dtype dtype, int64_t taps)
{
    if (dtype <= TARN_BF16)
        return dtype != TARN_F64;
    return sums_stay_below(1LL << 23, dtype, taps);
}

/* ... of terms_f64 and means_f64. Of 64-bit integers the numbers decide, not the dtype: sums below
 * 2^51 (wide_means.c). */
static inline bool means_fit_f64(tarn_dtype dtype, int64_t taps)
{
    if (dtype <= TARN_BF16)
        return dtype == TARN_F64;
    return sums_stay_below(1LL << 52, dtype, taps);
}

#endif
