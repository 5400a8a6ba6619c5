/* oneDNN 3: one pooling on the caller's memory, channels first or last, forward (inference or
 * training, which fills a workspace) or backward from that workspace. The Python side is
 * contestants.py, which has the same structure. */
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FWD, TRAIN, BWD };
enum { MOST_ARGUMENTS = 3 };

typedef struct {
    int32_t is_max, counts_padding, pass, channels_last, dtype, spatial;
    dnnl_dims_t shape, out_shape; /* logical: batch, channels, space */
    dnnl_dims_t kernel, stride, dilation, pad_lo, pad_hi;
    void *x, *y, *gy, *gx;
} onednn_problem;

typedef struct {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    int count;
} onednn_step;

typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    onednn_step forward, backward;
    bool is_backward;
} onednn_case;

void *onednn_open(const onednn_problem *problem);
bool onednn_run(void *handle, long repeats);
void onednn_close(void *handle);
const char *onednn_version(void);

static bool add(onednn_case *c, onednn_step *step, int kind, const_dnnl_memory_desc_t layout,
                void *data)
{
    dnnl_memory_t memory;
    if (dnnl_memory_create(&memory, layout, c->engine, data))
        return false;
    step->arguments[step->count++] = (dnnl_exec_arg_t){kind, memory};
    return true;
}

static bool describe(const onednn_problem *p, const int64_t *shape, dnnl_memory_desc_t *layout)
{
    static const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16, dnnl_f16, dnnl_f64,
                                             dnnl_u8,  dnnl_s8,   dnnl_s32};
    static const dnnl_format_tag_t tags[3][2] = {
        {dnnl_ncw, dnnl_nwc}, {dnnl_nchw, dnnl_nhwc}, {dnnl_ncdhw, dnnl_ndhwc}};
    return !dnnl_memory_desc_create_with_tag(layout, 2 + p->spatial, shape, types[p->dtype],
                                             tags[p->spatial - 1][p->channels_last]);
}

/* Averages have no workspace. */
static bool add_workspace(onednn_case *c, const_dnnl_primitive_desc_t forward, bool for_backward)
{
    const_dnnl_memory_desc_t layout =
        dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
    if (!layout || !dnnl_memory_desc_get_size(layout))
        return true;
    if (!add(c, &c->forward, DNNL_ARG_WORKSPACE, layout, DNNL_MEMORY_ALLOCATE))
        return false;
    if (for_backward)
        c->backward.arguments[c->backward.count++] = c->forward.arguments[c->forward.count - 1];
    return true;
}

static bool make_steps(onednn_case *c, const onednn_problem *p, const_dnnl_memory_desc_t x,
                       const_dnnl_memory_desc_t y)
{
    dnnl_alg_kind_t kind = p->is_max           ? dnnl_pooling_max
                           : p->counts_padding ? dnnl_pooling_avg_include_padding
                                               : dnnl_pooling_avg_exclude_padding;
    dnnl_prop_kind_t use = p->pass == FWD ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_primitive_desc_t forward = NULL, backward = NULL;
    bool made =
        !dnnl_pooling_forward_primitive_desc_create(&forward, c->engine, use, kind, x, y, p->stride,
                                                    p->kernel, p->dilation, p->pad_lo, p->pad_hi,
                                                    NULL) &&
        !dnnl_primitive_create(&c->forward.primitive, forward) &&
        add(c, &c->forward, DNNL_ARG_SRC, x, p->x) && add(c, &c->forward, DNNL_ARG_DST, y, p->y);
    if (made && p->pass == BWD)
        made = !dnnl_pooling_backward_primitive_desc_create(
                   &backward, c->engine, kind, x, y, p->stride, p->kernel, p->dilation, p->pad_lo,
                   p->pad_hi, forward, NULL) &&
               !dnnl_primitive_create(&c->backward.primitive, backward) &&
               add(c, &c->backward, DNNL_ARG_DIFF_SRC, x, p->gx) &&
               add(c, &c->backward, DNNL_ARG_DIFF_DST, y, p->gy);
    made = made && add_workspace(c, forward, p->pass == BWD);
    dnnl_primitive_desc_destroy(forward);
    dnnl_primitive_desc_destroy(backward);
    return made;
}

static bool execute(const onednn_case *c, const onednn_step *step)
{
    return !dnnl_primitive_execute(step->primitive, c->stream, step->count, step->arguments) &&
           !dnnl_stream_wait(c->stream);
}

void *onednn_open(const onednn_problem *p)
{
    onednn_case *c = calloc(1, sizeof *c);
    dnnl_memory_desc_t x = NULL, y = NULL;
    if (!c)
        return NULL;
    c->is_backward = p->pass == BWD;
    bool made = !dnnl_engine_create(&c->engine, dnnl_cpu, 0) &&
                !dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags) &&
                describe(p, p->shape, &x) && describe(p, p->out_shape, &y) &&
                make_steps(c, p, x, y) && execute(c, &c->forward); /* fills the workspace */
    dnnl_memory_desc_destroy(x);
    dnnl_memory_desc_destroy(y);
    if (made)
        return c;
    onednn_close(c);
    return NULL;
}

bool onednn_run(void *handle, long repeats)
{
    const onednn_case *c = handle;
    for (long k = 0; k < repeats; k++)
        if (!execute(c, c->is_backward ? &c->backward : &c->forward))
            return false;
    return true;
}

static void destroy(onednn_step *step, bool owns_workspace)
{
    for (int k = 0; k < step->count; k++)
        if (owns_workspace || step->arguments[k].arg != DNNL_ARG_WORKSPACE)
            dnnl_memory_destroy(step->arguments[k].memory);
    dnnl_primitive_destroy(step->primitive);
}

void onednn_close(void *handle)
{
    onednn_case *c = handle;
    destroy(&c->backward, false);
    destroy(&c->forward, true);
    dnnl_stream_destroy(c->stream);
    dnnl_engine_destroy(c->engine);
    free(c);
}

const char *onednn_version(void)
{
    static char text[32];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    return text;
}
