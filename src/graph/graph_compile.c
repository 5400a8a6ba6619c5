/* Compiling: a graph and a request become steps over places in buffers.
 *
 *   graph_mark.c       which values vary with an input, which reach an output, which must be
 *   computed graph_values.c     where values are made, and the steps that make them and their
 *   tangents graph_gradients.c  the steps that make gradients, from the last node to the first
 *   graph_steps.c      steps, buffers, plans; every step stretches the life of the buffers it
 *   touches graph_boxes.c      small tensors inside large ones graph_arena.c      buffers get their
 *   offsets in one block
 */
#include "graph_compiler.h"

#include "../executor.h"

/* ---- Requests ------------------------------------------------------------------------------ */

static tarn_status check_options(const tarn_options *options, tarn_error *error)
{
    for (int k = 0; k < TARN_MAX_OPERANDS; k++)
        if (options->layout[k])
            return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS,
                             "values of a graph are dense: options must not have layouts");
    return tarn_check_executor(&options->executor, error);
}

static tarn_status check_inputs(const tarn_graph *graph, const unsigned char *inputs,
                                tarn_error *error)
{
    for (int k = 0; k < tarn_graph_inputs(graph); k++) {
        tarn_dtype dtype = graph_node(graph, graph_input(graph, k))->view.dtype;
        if (inputs[k] && !is_floating(dtype))
            return tarn_fail(error, TARN_BAD_DTYPE, NO_AXIS,
                             "derivatives need a floating dtype, input %d is %s", k,
                             tarn_dtype_name(dtype));
    }
    return TARN_OK;
}

static tarn_status check_request(const tarn_graph *graph, const tarn_request *request,
                                 const tarn_options *options, tarn_error *error)
{
    if (!graph || !request)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         graph ? "request" : "graph");
    if ((int)request->mode < 0 || request->mode >= TARN_MODES)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%d is not a mode", (int)request->mode);
    tarn_status status = options ? check_options(options, error) : TARN_OK;
    if (!status && request->mode != TARN_GRAPH_FORWARD && request->inputs)
        status = check_inputs(graph, request->inputs, error);
    return status;
}

/* ---- Memory of the compiler and the program ------------------------------------------------ */

/* The scratch of the compiler, in one block. */
static void *allocate_scratch(tarn_compiler *c)
{
    size_t n = (size_t)c->values, places = 4 * n * sizeof(tarn_place), ints = 3 * n * sizeof(int);
    char *block =
        c->program->allocator.allocate(c->program->allocator.context, places + ints + 4 * n + 1);
    if (!block)
        return NULL;
    tarn_place *place = (tarn_place *)(void *)block;
    int *numbers = (int *)(void *)(block + places);
    unsigned char *marks = (unsigned char *)block + places + ints;
    for (size_t k = 0; k < 4 * n; k++)
        place[k] = nowhere;
    memset(numbers, 0xff, ints); /* -1 everywhere */
    memset(marks, 0, 4 * n);
    c->value = place, c->tangent = place + n, c->gradient = place + 2 * n, c->saved = place + 3 * n;
    c->head = numbers, c->tail = numbers + n, c->root = numbers + 2 * n;
    c->need = marks, c->varies = marks + n, c->diff = marks + 2 * n, c->beside = marks + 3 * n;
    return block;
}

static tarn_status allocate_bases(tarn_program *p, tarn_error *error)
{
    size_t n = (size_t)p->bases;
    p->base = p->allocator.allocate(p->allocator.context, n * (sizeof *p->base + 3 * sizeof(int)));
    if (!p->base)
        return tarn_no_memory(error);
    p->external = (int *)(void *)(p->base + n);
    p->external_alignment = p->external + n;
    p->by_address = p->external + 2 * n;
    for (size_t k = 0; k < n; k++) {
        p->base[k] = NULL;
        p->external[k] = NO_BUFFER;
        p->external_alignment[k] = 1;
    }
    return TARN_OK;
}

static tarn_status number_bases(tarn_program *p, const tarn_graph *graph, tarn_error *error)
{
    int64_t constants = 0;
    for (tarn_value v = 0; v < graph->nodes.count; v++)
        constants += graph_node(graph, v)->kind == NODE_CONSTANT;
    int64_t more = max_i64(p->inputs, p->outputs), all = 1 + p->inputs + p->outputs + 2 * more;
    if (graph->outputs.count > INT32_MAX / 8 || all + constants > INT32_MAX)
        return tarn_fail(error, TARN_OVERFLOW, NO_AXIS, "the graph has too many outputs");
    p->base_inputs = 1;
    p->base_outputs = p->base_inputs + p->inputs;
    p->base_seeds = p->base_outputs + p->outputs;
    p->base_results = p->base_seeds + (int)more;
    p->base_constants = (int)all;
    p->bases = (int)(all + constants);
    return allocate_bases(p, error);
}

/* Tensors that a run compares with each other. */
static void list_tensors(tarn_program *p)
{
    for (int base = 1; base < p->base_constants; base++)
        if (p->external[base] != NO_BUFFER && program_buffer(p, p->external[base])->bytes > 0)
            p->by_address[p->tensors++] = base;
}

/* What drawings need to know: where each value lies. */
static tarn_status keep_places(tarn_compiler *c)
{
    tarn_program *p = c->program;
    size_t bytes = (size_t)c->values * sizeof *p->place;
    p->place = p->allocator.allocate(p->allocator.context, bytes + 1);
    if (!p->place)
        return tarn_no_memory(c->error);
    for (tarn_value v = 0; v < c->values; v++) {
        p->place[v] = c->need[v] ? c->value[v] : nowhere;
        p->place[v].bytes = graph_node(c->graph, v)->bytes;
    }
    p->values = c->values;
    return TARN_OK;
}

/* ---- All of it ----------------------------------------------------------------------------- */

static tarn_status emit(tarn_compiler *c)
{
    tarn_emit_values(c);
    if (c->request.mode == TARN_GRAPH_VJP && !c->status)
        tarn_emit_gradients(c);
    return c->status;
}

static tarn_status compile(tarn_compiler *c)
{
    tarn_program *p = c->program;
    tarn_status status = number_bases(p, c->graph, c->error);
    void *scratch = status ? NULL : allocate_scratch(c);
    if (!scratch)
        return status ? status : tarn_no_memory(c->error);
    tarn_mark_values(c);
    if ((status = tarn_check_payloads(c)) == TARN_OK)
        status = emit(c);
    if (!status) {
        list_tensors(p);
        status = keep_places(c);
    }
    tarn_list_free(&c->contributions, &p->allocator);
    tarn_list_free(&c->recent, &p->allocator);
    p->allocator.release(p->allocator.context, scratch);
    return status ? status : tarn_pack_arena(p, c->error);
}

tarn_status tarn_graph_compile(tarn_program **program, const tarn_graph *graph,
                               const tarn_request *request, const tarn_options *options,
                               tarn_error *error)
{
    if (!program)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "program is NULL");
    *program = NULL;
    tarn_allocator allocator;
    tarn_status status;
    if ((status = check_request(graph, request, options, error)) ||
        (status = tarn_settle_allocator(options ? &options->allocator : NULL, &allocator, error)))
        return status;
    tarn_program *made = allocator.allocate(allocator.context, sizeof *made);
    if (!made)
        return tarn_no_memory(error);
    *made = (tarn_program){.allocator = allocator,
                           .request = {request->mode, request->values, NULL, NULL},
                           .inputs = tarn_graph_inputs(graph),
                           .outputs = tarn_graph_outputs(graph)};
    tarn_compiler c = {.graph = graph,
                       .program = made,
                       .request = *request,
                       .options = options ? *options : tarn_options_default(),
                       .error = error,
                       .values = tarn_graph_values(graph)};
    c.options.allocator = allocator;
    if ((status = compile(&c))) {
        tarn_program_destroy(made);
        return status;
    }
    *program = made;
    return tarn_succeed(error);
}

void tarn_program_destroy(tarn_program *p)
{
    if (!p)
        return;
    tarn_allocator allocator = p->allocator;
    for (int64_t k = 0; k < p->plans.count; k++)
        tarn_plan_destroy(((tarn_plan **)p->plans.items)[k]);
    tarn_list *const lists[] = {&p->steps, &p->refs, &p->buffers, &p->boxes, &p->views, &p->plans};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        tarn_list_free(lists[k], &allocator);
    void *const blocks[] = {p->base, p->place, p->memory, p};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        if (blocks[k])
            allocator.release(allocator.context, blocks[k]);
}

tarn_status tarn_program_memory(const tarn_program *program, tarn_memory *memory, tarn_error *error)
{
    if (!program || !memory)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         program ? "memory" : "program");
    *memory = program->report;
    return tarn_succeed(error);
}
