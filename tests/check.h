/* A test is a program: it counts checks, prints the failed ones, and returns 0 if none failed. */
#ifndef TARN_CHECK_H
#define TARN_CHECK_H

#include "tarn.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 tarn_i128; /* a judge of arithmetic near 2^63 */
#endif

static long long checks_passed, checks_failed;

/* Counts one check; prints place, condition and a printf-style note (a problem string, a seed) when
 * it fails. Stops the program after many failures: the first ones tell the story. */
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

/* The bits of element `k`, as a number of that size: so hashes do not depend on the order of
 * bytes. */
static inline uint64_t element_bits(const void *data, size_t size, size_t k)
{
    const char *at = (const char *)data + k * size;
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (size) {
    case 1:
        return memcpy(&one, at, 1), one;
    case 2:
        return memcpy(&two, at, 2), two;
    case 4:
        return memcpy(&four, at, 4), four;
    default:
        return memcpy(&eight, at, 8), eight;
    }
}

/* FNV-1a over elements, least significant byte first; it begins with HASH_BEGIN. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
static inline uint64_t hash_elements(uint64_t hash, const void *data, size_t size, size_t count)
{
    for (size_t k = 0; k < count; k++)
        for (size_t byte = 0; byte < size; byte++)
            hash = (hash ^ (element_bits(data, size, k) >> (8 * byte) & 255)) *
                   UINT64_C(0x100000001b3);
    return hash;
}

#endif
