/* Rows of stored numbers as binary64 or in the type of sums, and back: all that some kernels
 * need to know of a dtype. */
#ifndef TARN_NUMBERS_H
#define TARN_NUMBERS_H

#include "../scalar.h"

/* Pixels of `lanes` numbers: `step` bytes apart in memory, side by side in the row. */
typedef struct tarn_numbers {
    void (*read)(void *to, const char *from, int64_t step, int64_t pixels, int64_t lanes);
    void (*write)(char *to, int64_t step, const void *from, int64_t pixels, int64_t lanes);
    bool full; /* all of binary64 counts: see exponential.h */
} tarn_numbers;

/* Loops that compilers vectorise; pixels without a gap are one run. */
#define NUMBERS(dtype, type, name, load, store)                                                    \
    static void dtype##_read_##name(void *to, const char *from, int64_t step, int64_t pixels,      \
                                    int64_t lanes)                                                 \
    {                                                                                              \
        int64_t run = step == lanes * (int64_t)sizeof(dtype##_s) ? lanes * pixels : lanes;         \
        for (type *row = to, *end = row + lanes * pixels; row < end; row += run, from += step) {   \
            const dtype##_s *restrict x = (const dtype##_s *)(const void *)from;                   \
            for (int64_t k = 0; k < run; k++)                                                      \
                row[k] = dtype##_##load(x[k]);                                                     \
        }                                                                                          \
    }                                                                                              \
    static void dtype##_write_##name(char *to, int64_t step, const void *from, int64_t pixels,     \
                                     int64_t lanes)                                                \
    {                                                                                              \
        int64_t run = step == lanes * (int64_t)sizeof(dtype##_s) ? lanes * pixels : lanes;         \
        for (const type *row = from, *end = row + lanes * pixels; row < end;                       \
             row += run, to += step) {                                                             \
            dtype##_s *restrict y = (dtype##_s *)(void *)to;                                       \
            for (int64_t k = 0; k < run; k++)                                                      \
                y[k] = dtype##_##store(row[k]);                                                    \
        }                                                                                          \
    }                                                                                              \
    static const tarn_numbers dtype##_##name = {dtype##_read_##name, dtype##_write_##name,         \
                                                sizeof(dtype##_s) == sizeof(double)};

#define WIDE_NUMBERS(dtype) NUMBERS(dtype, double, wide, widen, narrow)
#define SUM_NUMBERS(dtype) NUMBERS(dtype, dtype##_a, sum, load, store)

#endif
