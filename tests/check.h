/* A test is a program: it counts checks, prints the failed ones, and returns 0 if none failed. */
#ifndef TARN_CHECK_H
#define TARN_CHECK_H

#include "tarn.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long checks_passed, checks_failed;

/* Counts one check; prints place, condition and a printf-style note (a problem string, a seed) when it
 * fails. Stops the program after many failures: the first ones tell the story. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (condition) {                                                                           \
            checks_passed++;                                                                       \
        } else {                                                                                   \
            fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #condition);                \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            if (++checks_failed >= 50)                                                             \
                exit(finish_checks());                                                             \
        }                                                                                          \
    } while (0)

/* The closing line, and the exit status for main. A run without a check is a failure. */
static inline int finish_checks(void)
{
    printf("%lld passed, %lld failed\n", checks_passed, checks_failed);
    return checks_failed > 0 || checks_passed == 0;
}

/* splitmix64: small, seeded, the same everywhere. */
typedef struct {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in [low, high]. */
static inline int64_t rng_range(rng *r, int64_t low, int64_t high)
{
    return low + (int64_t)(rng_next(r) % (uint64_t)(high - low + 1));
}

/* Uniform in [0,1). */
static inline double rng_unit(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

#endif
