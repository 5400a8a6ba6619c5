/* oneDNN 2: pooling primitives on plain, channels-last and blocked memory. */
#define _POSIX_C_SOURCE 200809L
#include "peer_native.h"

#include <oneapi/dnnl/dnnl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ARGUMENTS = 4 };

typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t forward, backward; /* backward: NULL unless asked for */
    dnnl_memory_t memory[2 * MOST_ARGUMENTS];
    int memories, threads;
    dnnl_exec_arg_t arguments[2][MOST_ARGUMENTS];
    int argument_count[2];
} pooling;

static dnnl_format_tag_t tag_of(const peer_problem *p)
{
    static const dnnl_format_tag_t tags[3][3] = {
        {dnnl_ncw, dnnl_nwc, dnnl_nCw8c},
        {dnnl_nchw, dnnl_nhwc, dnnl_nChw8c},
        {dnnl_ncdhw, dnnl_ndhwc, dnnl_nCdhw8c},
    };
    return tags[p->spatial - 1][p->layout];
}

static bool describe(const peer_problem *p, const int64_t *size, dnnl_memory_desc_t *description)
{
    static const dnnl_data_type_t types[] = {dnnl_f32, dnnl_u8, dnnl_bf16};
    dnnl_dims_t dims = {p->batch, p->channels};
    for (int a = 0; a < p->spatial; a++)
        dims[2 + a] = size[a];
    return dnnl_memory_desc_init_by_tag(description, 2 + p->spatial, dims, types[p->dtype],
                                        tag_of(p)) == 0;
}

static bool add_argument(pooling *o, int primitive, int kind, const dnnl_memory_desc_t *description,
                         void *data)
{
    dnnl_memory_t *memory = &o->memory[o->memories];
    if (dnnl_memory_create(memory, description, o->engine, data))
        return false;
    o->arguments[primitive][o->argument_count[primitive]++] = (dnnl_exec_arg_t){kind, *memory};
    o->memories++;
    return true;
}

/* The second primitive uses the workspace of the first. */
static bool add_workspace(pooling *o, const_dnnl_primitive_desc_t description, bool for_backward)
{
    const dnnl_memory_desc_t *workspace =
        dnnl_primitive_desc_query_md(description, dnnl_query_workspace_md, 0);
    if (!workspace || dnnl_memory_desc_get_size(workspace) == 0)
        return true; /* averages have none */
    if (!add_argument(o, 0, DNNL_ARG_WORKSPACE, workspace, DNNL_MEMORY_ALLOCATE))
        return false;
    if (for_backward)
        o->arguments[1][o->argument_count[1]++] =
            (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, o->memory[o->memories - 1]};
    return true;
}

static bool make_backward(pooling *o, const peer_problem *p, dnnl_alg_kind_t kind,
                          const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *y,
                          const_dnnl_primitive_desc_t hint)
{
    dnnl_pooling_desc_t operation;
    dnnl_primitive_desc_t description = NULL;
    bool made = !dnnl_pooling_backward_desc_init(&operation, kind, x, y, p->stride, p->kernel,
                                                 p->padding, p->padding) &&
                !dnnl_primitive_desc_create(&description, &operation, NULL, o->engine, hint) &&
                !dnnl_primitive_create(&o->backward, description) &&
                add_argument(o, 1, DNNL_ARG_DIFF_DST, y, p->gy) &&
                add_argument(o, 1, DNNL_ARG_DIFF_SRC, x, p->gx);
    dnnl_primitive_desc_destroy(description);
    return made;
}

static bool make_primitives(pooling *o, const peer_problem *p)
{
    dnnl_alg_kind_t kind = p->op == PEER_MAX ? dnnl_pooling_max : dnnl_pooling_avg_include_padding;
    dnnl_prop_kind_t use = p->pass == PEER_FWD ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_memory_desc_t x, y;
    dnnl_pooling_desc_t operation;
    dnnl_primitive_desc_t description = NULL;
    bool made = describe(p, p->size, &x) && describe(p, p->out, &y) &&
                !dnnl_pooling_forward_desc_init(&operation, use, kind, &x, &y, p->stride, p->kernel,
                                                p->padding, p->padding) &&
                !dnnl_primitive_desc_create(&description, &operation, NULL, o->engine, NULL) &&
                !dnnl_primitive_create(&o->forward, description) &&
                add_argument(o, 0, DNNL_ARG_SRC, &x, p->x) &&
                add_argument(o, 0, DNNL_ARG_DST, &y, p->y) &&
                add_workspace(o, description, p->pass == PEER_BWD) &&
                (p->pass != PEER_BWD || make_backward(o, p, kind, &x, &y, description));
    dnnl_primitive_desc_destroy(description);
    return made;
}

static bool execute(const pooling *o, int which)
{
    return !dnnl_primitive_execute(which ? o->backward : o->forward, o->stream,
                                   o->argument_count[which], o->arguments[which]) &&
           !dnnl_stream_wait(o->stream);
}

void *peer_open(const peer_problem *p)
{
    pooling *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->threads = p->threads;
    omp_set_num_threads(p->threads);
    if (!dnnl_engine_create(&o->engine, dnnl_cpu, 0) &&
        !dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags) &&
        make_primitives(o, p) && execute(o, 0)) /* fills the workspace */
        return o;
    peer_close(o);
    return NULL;
}

double peer_run(void *handle, long repeats)
{
    const pooling *o = handle;
    omp_set_num_threads(o->threads);
    double begin = peer_now();
    for (long k = 0; k < repeats; k++)
        if (!execute(o, o->backward != NULL))
            return -1;
    return peer_now() - begin;
}

void peer_close(void *handle)
{
    pooling *o = handle;
    for (int k = 0; k < o->memories; k++)
        dnnl_memory_destroy(o->memory[k]);
    dnnl_primitive_destroy(o->backward);
    dnnl_primitive_destroy(o->forward);
    dnnl_stream_destroy(o->stream);
    dnnl_engine_destroy(o->engine);
    free(o);
}

const char *peer_version(void)
{
    static char text[32];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    return text;
}
