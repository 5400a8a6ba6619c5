/* Saving the text form, so that loading gives the graph back. */
#include "graph_write.h"

#include "../decimal.h"
#include "../float_state.h"
#include "../scalar.h"
#include "../shape.h"
#include "../skip.h"

#include <stdarg.h>
#include <stdio.h>

const char *const tarn_op_words[TARN_OPS] = {"max", "min", "avg", "smooth", "lp", "mode"};
const char *const tarn_tie_words[TARN_TIES] = {"first", "all", "split"};

/* ---- Writing ------------------------------------------------------------------------------- */

void tarn_put(tarn_writer *w, const char *format, ...)
{
    va_list arguments;
    size_t used = (size_t)w->length < w->size ? (size_t)w->length : w->size;
    va_start(arguments, format);
    w->length += vsnprintf(w->text ? w->text + used : NULL, w->size - used, format, arguments);
    va_end(arguments);
}

static void put_decimal(tarn_writer *w, double number)
{
    char text[DECIMAL_BYTES];
    tarn_print_decimal(number, text);
    tarn_put(w, "%s", text);
}

/* ---- Nodes --------------------------------------------------------------------------------- */

static void put_axes(tarn_writer *w, const char *key, const int64_t *lo, const int64_t *hi,
                     int count)
{
    tarn_put(w, " %s=", key);
    for (int a = 0; a < count; a++) {
        tarn_put(w, a ? ",%lld" : "%lld", (long long)lo[a]);
        if (lo[a] != hi[a])
            tarn_put(w, ":%lld", (long long)hi[a]);
    }
}

static bool all_are(const int64_t *values, int count, int64_t number)
{
    for (int a = 0; a < count; a++)
        if (values[a] != number)
            return false;
    return true;
}

static void put_window(tarn_writer *w, const tarn_pool *pool)
{
    int d = pool->spatial;
    if (pool->window == TARN_GLOBAL) {
        tarn_put(w, pool->flat ? " flat" : " global");
    } else if (pool->window == TARN_ADAPTIVE) {
        put_axes(w, "adaptive", pool->out, pool->out, d);
    } else {
        put_axes(w, "kernel", pool->kernel, pool->kernel, d);
        put_axes(w, "stride", pool->stride, pool->stride, d);
        if (!all_are(pool->pad_lo, d, 0) || !all_are(pool->pad_hi, d, 0))
            put_axes(w, "pad", pool->pad_lo, pool->pad_hi, d);
        if (!all_are(pool->dilation, d, 1))
            put_axes(w, "dilation", pool->dilation, pool->dilation, d);
    }
    if (d == 1 || (pool->window == TARN_GLOBAL && d != 2))
        tarn_put(w, " spatial=%d", d);
}

static void put_skip(tarn_writer *w, const tarn_pool *pool)
{
    char text[DECIMAL_BYTES];
    if (pool->skip == TARN_SKIP_NOTHING)
        return;
    tarn_print_skip(pool, text);
    tarn_put(w, " skip=%s", text);
    if (pool->min_count != 1)
        tarn_put(w, " min=%lld", (long long)pool->min_count);
}

static void put_pool(tarn_writer *w, const tarn_pool *pool)
{
    tarn_ties usual = pool->window == TARN_GLOBAL ? TARN_TIES_ALL : TARN_TIES_FIRST;
    bool extreme = pool->op == TARN_MAX || pool->op == TARN_MIN;
    bool counts = pool->op == TARN_AVG || pool->op == TARN_SMOOTH;
    put_window(w, pool);
    if (pool->window == TARN_SLIDING && pool->ceil_mode)
        tarn_put(w, " ceil");
    if (counts && !pool->count_include_pad)
        tarn_put(w, " nopad");
    if (pool->op == TARN_AVG && pool->divisor)
        tarn_put(w, " div=%lld", (long long)pool->divisor);
    if (pool->op == TARN_SMOOTH) {
        tarn_put(w, " beta=");
        put_decimal(w, pool->beta);
    }
    if (pool->op == TARN_LP) {
        tarn_put(w, " p=");
        put_decimal(w, pool->power);
    }
    if (extreme && pool->ties != usual)
        tarn_put(w, " ties=%s", tarn_tie_words[pool->ties]);
    put_skip(w, pool);
}

void tarn_put_shape(tarn_writer *w, const tarn_view *view)
{
    if (view->rank == 0)
        tarn_put(w, "scalar");
    for (int a = 0; a < view->rank; a++)
        tarn_put(w, a ? "x%lld" : "%lld", (long long)view->shape[a]);
}

static uint64_t load_bits(const char *at, size_t size)
{
    uint8_t one = 0;
    uint16_t two = 0;
    uint32_t four = 0;
    uint64_t eight = 0;
    void *const to[] = {[1] = &one, [2] = &two, [4] = &four, [8] = &eight};
    memcpy(to[size], at, size);
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : eight;
}

/* Widens as the floating-point state says: see set_float_state() for why it is not inlined. */
static __attribute__((noinline)) void put_float(tarn_writer *w, tarn_dtype dtype, uint64_t bits)
{
    double number = dtype == TARN_F64   ? f64_of_bits(bits)
                    : dtype == TARN_F32 ? (double)f32_of_bits((uint32_t)bits)
                    : dtype == TARN_F16 ? (double)f16_load((uint16_t)bits)
                                        : (double)bf16_load((uint16_t)bits);
    tarn_put(w, " ");
    if (number - number == 0) /* finite */
        put_decimal(w, number);
    else
        tarn_put(w, "0x%llx", (unsigned long long)bits);
}

/* Decimal where that gives the bits back, else the bits. */
static void put_element(tarn_writer *w, tarn_dtype dtype, const char *at)
{
    size_t size = tarn_dtype_size(dtype);
    uint64_t bits = load_bits(at, size), sign = UINT64_C(1) << (8 * size - 1);
    bool is_signed =
        dtype == TARN_I8 || dtype == TARN_I16 || dtype == TARN_I32 || dtype == TARN_I64;
    uint64_t former = set_float_state();
    if (is_floating(dtype))
        put_float(w, dtype, bits);
    else if (is_signed && bits & sign) /* -2^(n-1) + the rest, without leaving the type */
        tarn_put(w, " %lld", -(long long)(sign - 1) - 1 + (long long)(bits - sign));
    else
        tarn_put(w, " %llu", (unsigned long long)bits);
    restore_float_state(former);
}

/* The operator, as it stands in the text, without operands. */
const char *tarn_node_word(const tarn_node *node)
{
    static const char *const names[] = {
        [NODE_INPUT] = "input",   [NODE_CONSTANT] = "constant", [NODE_PAD] = "pad",
        [NODE_UNPAD] = "unpad",   [NODE_ADD] = "add",           [NODE_SCALE] = "scale",
        [NODE_CONCAT] = "concat", [NODE_RESHAPE] = "reshape",   [NODE_CUSTOM] = "custom"};
    return node->kind == NODE_POOL ? tarn_op_words[((const tarn_pool *)node->payload)->op]
                                   : names[node->kind];
}

void tarn_put_parameters(tarn_writer *w, const tarn_node *node)
{
    const tarn_padding *padding = node->payload;
    switch (node->kind) {
    case NODE_POOL:
        put_pool(w, node->payload);
        return;
    case NODE_PAD:
    case NODE_UNPAD:
        put_axes(w, "pad", padding->lo, padding->hi, padding->spatial);
        if (padding->spatial == 1)
            tarn_put(w, " spatial=1");
        return;
    case NODE_SCALE:
        tarn_put(w, " factor=");
        put_decimal(w, *(const double *)node->payload);
        return;
    case NODE_CONCAT:
        tarn_put(w, " axis=%d", *(const int *)node->payload);
        return;
    default:
        return;
    }
}

static void put_operands(tarn_writer *w, const tarn_graph *graph, const tarn_node *node)
{
    for (int k = 0; k < node->operands; k++)
        tarn_put(w, " %s", graph_node(graph, node_operands(graph, node)[k])->name);
}

static void put_node(tarn_writer *w, const tarn_graph *graph, const tarn_node *node)
{
    tarn_node_kind kind = node->kind;
    tarn_dtype dtype = node->view.dtype;
    int64_t size = (int64_t)tarn_dtype_size(dtype);
    bool typed = kind == NODE_INPUT || kind == NODE_CONSTANT || kind == NODE_CUSTOM;
    tarn_put(w, "%s = %s", node->name, tarn_node_word(node));
    if (kind == NODE_CUSTOM)
        tarn_put(w, " %s", ((const tarn_custom_node *)node->payload)->name);
    put_operands(w, graph, node);
    if (typed)
        tarn_put(w, " %s", tarn_dtype_name(dtype));
    if (typed || kind == NODE_RESHAPE) {
        tarn_put(w, " ");
        tarn_put_shape(w, &node->view);
    }
    tarn_put_parameters(w, node);
    for (int64_t at = 0; kind == NODE_CONSTANT && at < node->bytes; at += size)
        put_element(w, dtype, (const char *)node->payload + at);
    tarn_put(w, "\n");
}

int64_t tarn_graph_save(const tarn_graph *graph, char *text, size_t size)
{
    tarn_writer w = {.text = text, .size = text ? size : 0};
    if (!graph)
        return -1;
    for (tarn_value v = 0; v < graph->nodes.count; v++)
        put_node(&w, graph, graph_node(graph, v));
    tarn_put(&w, "return");
    for (int64_t k = 0; k < graph->outputs.count; k++)
        tarn_put(&w, " %s", graph_node(graph, graph_output(graph, k))->name);
    tarn_put(&w, "\n");
    return w.length;
}
