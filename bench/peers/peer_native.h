/* What the C libraries are asked for: one pooling, on the caller's memory. The Python side
 * (peer_native.py) has the same structure. */
#ifndef PEER_NATIVE_H
#define PEER_NATIVE_H

#include <stdint.h>
#include <time.h>

enum { PEER_MAX, PEER_AVG };
enum { PEER_FWD, PEER_TRAIN, PEER_BWD };
enum { PEER_NCHW, PEER_NHWC, PEER_BLOCKED };
enum { PEER_F32, PEER_U8, PEER_BF16 };
enum { PEER_AXES = 12 }; /* as long as the arrays of oneDNN; at most 3 are used */

typedef struct {
    int32_t op, pass, layout, dtype, spatial, threads;
    int64_t batch, channels;
    int64_t size[PEER_AXES], out[PEER_AXES], kernel[PEER_AXES], stride[PEER_AXES],
        padding[PEER_AXES];
    void *x, *y, *gy, *gx;
} peer_problem;

static inline double peer_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Each library exports: open, NULL if it cannot do the problem; nanoseconds of so many calls,
 * negative on failure; close; version. */
void *peer_open(const peer_problem *problem);
double peer_run(void *handle, long repeats);
void peer_close(void *handle);
const char *peer_version(void);

#endif
