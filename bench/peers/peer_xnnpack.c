/* XNNPACK: channels last only, 1-D and 2-D. Forward with winners and its reverse exist for windows
 * that do not overlap (argmax pooling, unpooling). */
#define _POSIX_C_SOURCE 200809L
#include "peer_native.h"

#include <math.h>
#include <pthreadpool.h>
#include <stdbool.h>
#include <stdlib.h>
#include <xnnpack.h>

typedef struct {
    xnn_operator_t forward, backward; /* backward: NULL unless asked for */
    pthreadpool_t pool;               /* NULL: the calling thread alone */
    uint32_t *indices;
} pooling;

/* A row is a picture of height 1. */
typedef struct {
    uint32_t height, width, out_height, out_width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
        pad_w;
} picture;

static picture picture_of(const peer_problem *p)
{
    int w = p->spatial - 1;
    bool flat = p->spatial == 1;
    return (picture){flat ? 1 : (uint32_t)p->size[0],    (uint32_t)p->size[w],
                     flat ? 1 : (uint32_t)p->out[0],     (uint32_t)p->out[w],
                     flat ? 1 : (uint32_t)p->kernel[0],  (uint32_t)p->kernel[w],
                     flat ? 1 : (uint32_t)p->stride[0],  (uint32_t)p->stride[w],
                     flat ? 0 : (uint32_t)p->padding[0], (uint32_t)p->padding[w]};
}

static bool make_max(pooling *o, const peer_problem *p, const picture *i)
{
    size_t c = (size_t)p->channels, n = (size_t)p->batch;
    if (p->dtype == PEER_U8)
        return !xnn_create_max_pooling2d_nhwc_u8(i->pad_h, i->pad_w, i->pad_h, i->pad_w,
                                                 i->kernel_h, i->kernel_w, i->stride_h, i->stride_w,
                                                 1, 1, c, c, c, 0, 255, 0, &o->forward) &&
               !xnn_setup_max_pooling2d_nhwc_u8(o->forward, n, i->height, i->width, p->x, p->y,
                                                o->pool);
    return !xnn_create_max_pooling2d_nhwc_f32(i->pad_h, i->pad_w, i->pad_h, i->pad_w, i->kernel_h,
                                              i->kernel_w, i->stride_h, i->stride_w, 1, 1, c, c, c,
                                              -INFINITY, INFINITY, 0, &o->forward) &&
           !xnn_setup_max_pooling2d_nhwc_f32(o->forward, n, i->height, i->width, p->x, p->y,
                                             o->pool);
}

static bool make_average(pooling *o, const peer_problem *p, const picture *i)
{
    size_t c = (size_t)p->channels, n = (size_t)p->batch;
    if (p->dtype != PEER_F32)
        return false;
    if (i->out_height == 1 && i->out_width == 1) /* one window: it has a call for that */
        return !xnn_create_global_average_pooling_nwc_f32(c, c, c, -INFINITY, INFINITY, 0,
                                                          &o->forward) &&
               !xnn_setup_global_average_pooling_nwc_f32(
                   o->forward, n, (size_t)i->height * i->width, p->x, p->y, o->pool);
    return !xnn_create_average_pooling2d_nhwc_f32(
               i->pad_h, i->pad_w, i->pad_h, i->pad_w, i->kernel_h, i->kernel_w, i->stride_h,
               i->stride_w, c, c, c, -INFINITY, INFINITY, 0, &o->forward) &&
           !xnn_setup_average_pooling2d_nhwc_f32(o->forward, n, i->height, i->width, p->x, p->y,
                                                 o->pool);
}

static bool make_argmax(pooling *o, const peer_problem *p, const picture *i)
{
    size_t c = (size_t)p->channels, n = (size_t)p->batch;
    bool apart =
        i->kernel_h == i->stride_h && i->kernel_w == i->stride_w && i->pad_h + i->pad_w == 0;
    bool covers =
        i->out_height * i->kernel_h == i->height && i->out_width * i->kernel_w == i->width;
    if (!apart || !covers || p->dtype != PEER_F32)
        return false;
    o->indices = malloc(n * c * i->out_height * i->out_width * sizeof *o->indices);
    if (!o->indices ||
        xnn_create_argmax_pooling2d_nhwc_f32(0, 0, 0, 0, i->kernel_h, i->kernel_w, c, c, c, 0,
                                             &o->forward) ||
        xnn_setup_argmax_pooling2d_nhwc_f32(o->forward, n, i->height, i->width, p->x, p->y,
                                            o->indices, o->pool))
        return false;
    if (p->pass == PEER_TRAIN)
        return true;
    return !xnn_create_unpooling2d_nhwc_x32(0, 0, 0, 0, i->kernel_h, i->kernel_w, c, c, c, 0,
                                            &o->backward) &&
           !xnn_setup_unpooling2d_nhwc_x32(o->backward, n, i->out_height, i->out_width, p->gy,
                                           o->indices, p->gx, o->pool);
}

static bool make_operators(pooling *o, const peer_problem *p)
{
    picture i = picture_of(p);
    if (p->op == PEER_AVG)
        return p->pass == PEER_FWD && make_average(o, p, &i);
    return p->pass == PEER_FWD ? make_max(o, p, &i) : make_argmax(o, p, &i);
}

void *peer_open(const peer_problem *p)
{
    if (p->layout != PEER_NHWC || p->spatial > 2 || p->dtype == PEER_BF16 || xnn_initialize(NULL))
        return NULL;
    pooling *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->pool = p->threads > 1 ? pthreadpool_create((size_t)p->threads) : NULL;
    if (make_operators(o, p) && !xnn_run_operator(o->forward, o->pool)) /* makes the indices */
        return o;
    peer_close(o);
    return NULL;
}

double peer_run(void *handle, long repeats)
{
    const pooling *o = handle;
    xnn_operator_t chosen = o->backward ? o->backward : o->forward;
    double begin = peer_now();
    for (long k = 0; k < repeats; k++)
        if (xnn_run_operator(chosen, o->pool))
            return -1;
    return peer_now() - begin;
}

void peer_close(void *handle)
{
    pooling *o = handle;
    if (o->backward)
        xnn_delete_operator(o->backward);
    if (o->forward)
        xnn_delete_operator(o->forward);
    pthreadpool_destroy(o->pool);
    free(o->indices);
    free(o);
}

const char *peer_version(void)
{
    return "of the distribution"; /* the library does not tell */
}
