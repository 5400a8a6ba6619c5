/* Loading the text form: one node on a line. docs/graph.md has the grammar. */
#include "graph_words.h"
#include "graph_write.h"

#include "../error.h"
#include "../skip.h"

#include <string.h>

typedef struct {
    tarn_reader reader;
    tarn_graph *graph;
    tarn_resolve resolve;
    void *context;
    tarn_error *error;
    tarn_list operands; /* tarn_value, of the line being read */
    const char *op;     /* where its operator stands */
    bool returned;
} loader;

/* ---- Complaints ---------------------------------------------------------------------------- */

static tarn_status bad(const loader *l, const char *at, const char *what)
{
    return tarn_fail(l->error, TARN_BAD_TEXT, NO_AXIS, "line %d, column %lld: %s",
                     l->reader.line_number, (long long)(at - l->reader.line) + 1, what);
}

/* What a builder said of this line, with the place of the operator before its message. */
static tarn_status locate(const loader *l, tarn_status status)
{
    if (!status || !l->error)
        return status;
    tarn_error inner = *l->error;
    return tarn_fail(l->error, status, inner.axis, "line %d, column %lld: %.180s",
                     l->reader.line_number, (long long)(l->op - l->reader.line) + 1, inner.message);
}

/* ---- Parts of lines ------------------------------------------------------------------------ */

/* Operands are the words that name values, until one does not. */
static tarn_status read_operands(loader *l)
{
    tarn_word w;
    l->operands.count = 0;
    for (;;) {
        tarn_reader before = l->reader;
        tarn_next_word(&l->reader, &w);
        tarn_value value = tarn_graph_find(l->graph, w.text);
        if (value < 0) {
            l->reader = before;
            return TARN_OK;
        }
        if (!tarn_list_reserve(&l->operands, 1, sizeof value, &l->graph->allocator))
            return tarn_no_memory(l->error);
        ((tarn_value *)l->operands.items)[l->operands.count++] = value;
    }
}

static tarn_status expect_operands(loader *l, int64_t count)
{
    tarn_status status = read_operands(l);
    tarn_at_line_end(&l->reader); /* a complaint points behind the blanks */
    if (status || l->operands.count == count)
        return status;
    return bad(l, l->reader.at,
               count == 1 ? "expected one value that is defined above"
                          : "expected two values that are defined above");
}

static tarn_value operand(const loader *l, int k)
{
    return ((const tarn_value *)l->operands.items)[k];
}

static tarn_status read_type(loader *l, tarn_dtype *dtype, int *rank, int64_t *shape)
{
    tarn_word w;
    tarn_next_word(&l->reader, &w);
    if (!tarn_read_dtype(w.text, dtype))
        return bad(l, w.at, "expected a dtype such as f32");
    tarn_next_word(&l->reader, &w);
    if (!tarn_read_shape(w.text, rank, shape))
        return bad(l, w.at, "expected a shape such as 1x64x112x112, or scalar");
    return TARN_OK;
}

/* axis= and an integer, which the builder judges. */
static tarn_status read_axis(loader *l, const char *expected, int *axis)
{
    tarn_word w;
    int64_t number;
    tarn_next_word(&l->reader, &w);
    if (!tarn_read_integer(tarn_word_value(&w, "axis"), INT32_MIN, INT32_MAX, &number))
        return bad(l, w.at, expected);
    *axis = (int)number;
    return TARN_OK;
}

/* ---- Inputs and constants ------------------------------------------------------------------ */

static tarn_status load_input(loader *l, tarn_value *value)
{
    tarn_dtype dtype;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_status status = read_type(l, &dtype, &rank, shape);
    return status ? status
                  : locate(l, tarn_graph_input(l->graph, dtype, rank, shape, value, l->error));
}

static tarn_status read_elements(loader *l, tarn_dtype dtype, tarn_list *bytes)
{
    size_t size = tarn_dtype_size(dtype);
    tarn_word w;
    while (tarn_next_word(&l->reader, &w)) {
        if (!tarn_list_reserve(bytes, (int64_t)size, 1, &l->graph->allocator))
            return tarn_no_memory(l->error);
        if (!tarn_read_element(w.text, dtype, (char *)bytes->items + bytes->count))
            return bad(l, w.at, "expected a number that the dtype holds");
        bytes->count += (int64_t)size;
    }
    return TARN_OK;
}

static tarn_status load_constant(loader *l, tarn_value *value)
{
    tarn_dtype dtype;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_list bytes = {0};
    tarn_status status = read_type(l, &dtype, &rank, shape);
    if (!status)
        status = read_elements(l, dtype, &bytes);
    if (!status) {
        tarn_view view = tarn_view_dense(bytes.items, dtype, rank, shape);
        if (tarn_view_bytes(&view) != (size_t)bytes.count)
            status = bad(l, l->reader.at, "the shape does not have as many elements");
        else
            status = locate(l, tarn_graph_constant(l->graph, &view, value, l->error));
    }
    tarn_list_free(&bytes, &l->graph->allocator);
    return status;
}

/* ---- Pools --------------------------------------------------------------------------------- */

typedef struct {
    tarn_pool pool;
    int count; /* numbers of a word that has one for each axis */
    bool has_window, has_stride, has_ties;
} pool_line;

/* A line may say only once how windows are placed. */
static bool set_window(pool_line *p, tarn_window window)
{
    bool first = !p->has_window;
    p->has_window = true;
    p->pool.window = window;
    return first;
}

static bool read_ties(const char *text, pool_line *p)
{
    for (int k = 0; k < TARN_TIES; k++)
        if (strcmp(text, tarn_tie_words[k]) == 0) {
            p->pool.ties = (tarn_ties)k;
            return p->has_ties = true;
        }
    return false;
}

/* The words of a pool that are not numbers for each axis. */
static bool read_pool_word(const tarn_word *w, pool_line *p)
{
    const char *text;
    int64_t number;
    if (tarn_word_is(w, "ceil"))
        return p->pool.ceil_mode = 1, true;
    if (tarn_word_is(w, "nopad"))
        return p->pool.count_include_pad = 0, true;
    if (tarn_word_is(w, "global"))
        return set_window(p, TARN_GLOBAL);
    if (tarn_word_is(w, "flat"))
        return p->pool.flat = 1, set_window(p, TARN_GLOBAL);
    if ((text = tarn_word_value(w, "beta")))
        return tarn_read_decimal(text, &p->pool.beta);
    if ((text = tarn_word_value(w, "p")))
        return tarn_read_decimal(text, &p->pool.power);
    if ((text = tarn_word_value(w, "div")))
        return tarn_read_integer(text, INT64_MIN, INT64_MAX, &p->pool.divisor);
    if ((text = tarn_word_value(w, "skip")))
        return tarn_read_skip(text, &p->pool);
    if ((text = tarn_word_value(w, "min")))
        return tarn_read_integer(text, INT64_MIN, INT64_MAX, &p->pool.min_count);
    if ((text = tarn_word_value(w, "ties")))
        return read_ties(text, p);
    if (!tarn_read_integer(tarn_word_value(w, "spatial"), 1, TARN_MAX_SPATIAL, &number))
        return false;
    p->pool.spatial = (int)number;
    return true;
}

/* The words that have a number for each axis. */
static bool read_window_word(const tarn_word *w, pool_line *p)
{
    tarn_pool *pool = &p->pool;
    const char *text;
    if ((text = tarn_word_value(w, "kernel")))
        return set_window(p, TARN_SLIDING) && tarn_read_axes(text, pool->kernel, NULL, &p->count);
    if ((text = tarn_word_value(w, "adaptive")))
        return set_window(p, TARN_ADAPTIVE) && tarn_read_axes(text, pool->out, NULL, &p->count);
    if ((text = tarn_word_value(w, "stride")))
        return p->has_stride = true, tarn_read_axes(text, pool->stride, NULL, &p->count);
    if ((text = tarn_word_value(w, "dilation")))
        return tarn_read_axes(text, pool->dilation, NULL, &p->count);
    if ((text = tarn_word_value(w, "pad")))
        return tarn_read_axes(text, pool->pad_lo, pool->pad_hi, &p->count);
    return false;
}

/* What was not said. False if two words disagree on the number of axes. */
static bool settle_pool(pool_line *p)
{
    tarn_pool *pool = &p->pool;
    if (!p->has_stride)
        memcpy(pool->stride, pool->kernel, sizeof pool->stride);
    if (!p->has_ties && pool->window == TARN_GLOBAL)
        pool->ties = TARN_TIES_ALL;
    if (pool->spatial && p->count > 1 && p->count != pool->spatial)
        return false;
    if (!pool->spatial)
        pool->spatial = p->count > 1 ? p->count : 2;
    return true;
}

static tarn_status load_pool(loader *l, tarn_op op, int64_t divisor, tarn_value *value)
{
    pool_line p = {.pool = tarn_max_pool(2)};
    tarn_word w;
    p.pool.op = op;
    p.pool.divisor = divisor;
    p.pool.spatial = 0;
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    while (tarn_next_word(&l->reader, &w))
        if (!read_pool_word(&w, &p) && !read_window_word(&w, &p))
            return bad(
                l, w.at,
                "expected one of kernel= adaptive= global flat, and stride= pad= dilation= "
                "spatial= ceil nopad div= beta= p= ties= skip= min= with as many numbers as axes");
    if (!settle_pool(&p))
        return bad(l, l->op, "expected as many numbers as spatial axes");
    return locate(l, tarn_graph_pool(l->graph, operand(l, 0), &p.pool, value, l->error));
}

/* ---- The other nodes ----------------------------------------------------------------------- */

typedef tarn_status pad_builder(tarn_graph *, tarn_value, int, const int64_t *, const int64_t *,
                                tarn_value *, tarn_error *);

static tarn_status load_padding(loader *l, pad_builder *build, tarn_value *value)
{
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL], spatial;
    int count = 0;
    tarn_word w;
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    tarn_next_word(&l->reader, &w);
    if (!tarn_read_axes(tarn_word_value(&w, "pad"), lo, hi, &count))
        return bad(l, w.at, "expected pad= and up to 8 numbers, such as pad=1 or pad=1:2,0:1");
    spatial = count > 1 ? count : 2;
    if (tarn_next_word(&l->reader, &w) &&
        (!tarn_read_integer(tarn_word_value(&w, "spatial"), 1, TARN_MAX_SPATIAL, &spatial) ||
         (count > 1 && count != spatial)))
        return bad(l, w.at, "expected spatial= and the number of padded axes");
    return locate(l, build(l->graph, operand(l, 0), (int)spatial, lo, hi, value, l->error));
}

static tarn_status load_pad(loader *l, tarn_value *value)
{
    return load_padding(l, tarn_graph_pad, value);
}

static tarn_status load_unpad(loader *l, tarn_value *value)
{
    return load_padding(l, tarn_graph_unpad, value);
}

static tarn_status load_add(loader *l, tarn_value *value)
{
    tarn_status status = expect_operands(l, 2);
    if (status)
        return status;
    return locate(l, tarn_graph_add(l->graph, operand(l, 0), operand(l, 1), value, l->error));
}

static tarn_status load_scale(loader *l, tarn_value *value)
{
    tarn_word w;
    double factor;
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    tarn_next_word(&l->reader, &w);
    if (!tarn_read_decimal(tarn_word_value(&w, "factor"), &factor))
        return bad(l, w.at, "expected factor= and a number");
    return locate(l, tarn_graph_scale(l->graph, operand(l, 0), factor, value, l->error));
}

static tarn_status load_concat(loader *l, tarn_value *value)
{
    int axis;
    tarn_status status;
    if ((status = read_operands(l)) ||
        (status = read_axis(l, "expected values defined above and axis=", &axis)))
        return status;
    return locate(l, tarn_graph_concat(l->graph, (int)l->operands.count, l->operands.items, axis,
                                       value, l->error));
}

static tarn_status load_reshape(loader *l, tarn_value *value)
{
    tarn_word w;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    tarn_next_word(&l->reader, &w);
    if (!tarn_read_shape(w.text, &rank, shape))
        return bad(l, w.at, "expected a shape such as 1x2048, or scalar");
    return locate(l, tarn_graph_reshape(l->graph, operand(l, 0), rank, shape, value, l->error));
}

static tarn_status load_flatten(loader *l, tarn_value *value)
{
    int axis;
    tarn_status status;
    if ((status = expect_operands(l, 1)) ||
        (status = read_axis(l, "expected axis= and the first axis to join", &axis)))
        return status;
    return locate(l, tarn_graph_flatten(l->graph, operand(l, 0), axis, value, l->error));
}

/* ---- Custom nodes -------------------------------------------------------------------------- */

/* The caller's function knows the payloads. */
static tarn_status resolve_custom(loader *l, const char *name, tarn_custom *custom)
{
    const tarn_allocator *allocator = &l->graph->allocator;
    size_t count = (size_t)l->operands.count;
    tarn_view *views = allocator->allocate(allocator->context, (count + 1) * sizeof *views);
    tarn_error inner = {.code = TARN_OK};
    if (!views)
        return tarn_no_memory(l->error);
    for (size_t k = 0; k < count; k++)
        views[k] = graph_node(l->graph, operand(l, (int)k))->view;
    tarn_status status = l->resolve(l->context, name, (int)count, views, custom, &inner);
    allocator->release(allocator->context, views);
    if (!status)
        return TARN_OK;
    tarn_fail(l->error, status, NO_AXIS, "%.*s", (int)sizeof inner.message - 1,
              inner.code == status ? inner.message : "the custom node was not resolved");
    return locate(l, status);
}

static tarn_status load_custom(loader *l, tarn_value *value)
{
    tarn_word name;
    tarn_custom made = {.name = NULL};
    tarn_dtype dtype;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_status status;
    tarn_next_word(&l->reader, &name);
    if (!tarn_is_name(name.text, strlen(name.text)))
        return bad(l, name.at, "expected the name of a custom node");
    if (!l->resolve)
        return bad(l, name.at, "custom nodes need a resolver");
    if ((status = read_operands(l)) || (status = read_type(l, &dtype, &rank, shape)) ||
        (status = resolve_custom(l, name.text, &made)))
        return status;
    made.name = name.text; /* the text knows name, dtype and shape */
    made.dtype = dtype;
    made.rank = rank;
    memcpy(made.shape, shape, sizeof *shape * (size_t)rank);
    status = locate(l, tarn_graph_custom(l->graph, (int)l->operands.count, l->operands.items, &made,
                                         value, l->error));
    if (status && made.destroy)
        made.destroy(made.context);
    return status;
}

/* ---- Lines --------------------------------------------------------------------------------- */

static tarn_status load_node(loader *l, const tarn_word *op, tarn_value *value)
{
    static const struct {
        const char *name;
        tarn_status (*load)(loader *, tarn_value *);
    } ops[] = {{"input", load_input},     {"constant", load_constant}, {"add", load_add},
               {"scale", load_scale},     {"concat", load_concat},     {"reshape", load_reshape},
               {"flatten", load_flatten}, {"custom", load_custom},     {"pad", load_pad},
               {"unpad", load_unpad}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (tarn_word_is(op, ops[k].name))
            return ops[k].load(l, value);
    for (int k = 0; k < TARN_OPS; k++)
        if (tarn_word_is(op, tarn_op_words[k]))
            return load_pool(l, (tarn_op)k, 0, value);
    if (tarn_word_is(op, "sum"))
        return load_pool(l, TARN_AVG, 1, value);
    return bad(
        l, op->at,
        "expected input, constant, max, min, avg, sum, smooth, lp, mode, pad, unpad, add, scale, "
        "concat, reshape, flatten or custom");
}

static tarn_status load_return(loader *l)
{
    tarn_status status = read_operands(l);
    l->returned = true;
    for (int k = 0; k < l->operands.count && !status; k++)
        status = tarn_graph_output(l->graph, operand(l, k), l->error);
    return status;
}

/* name = operator ... */
static tarn_status load_assignment(loader *l, const tarn_word *name)
{
    tarn_word w;
    tarn_value value;
    if (!tarn_is_name(name->text, strlen(name->text)))
        return bad(l, name->at, "expected a name or return");
    if (tarn_graph_find(l->graph, name->text) >= 0)
        return bad(l, name->at, "this name is defined above: values are assigned once");
    tarn_next_word(&l->reader, &w);
    if (!tarn_word_is(&w, "="))
        return bad(l, w.at, "expected = with a blank on each side");
    if (!tarn_next_word(&l->reader, &w))
        return bad(l, w.at, "expected an operator");
    l->op = w.at;
    tarn_status status = load_node(l, &w, &value);
    return status ? status : tarn_graph_name(l->graph, value, name->text, l->error);
}

static tarn_status load_line(loader *l)
{
    tarn_word name;
    if (!tarn_next_word(&l->reader, &name))
        return TARN_OK;
    if (l->returned)
        return bad(l, name.at, "nothing may follow return");
    tarn_status status = tarn_word_is(&name, "return") ? load_return(l) : load_assignment(l, &name);
    if (!status && !tarn_at_line_end(&l->reader))
        return bad(l, l->reader.at,
                   "expected the end of the line, or a value that is defined above");
    return status;
}

static tarn_status load_lines(loader *l)
{
    do {
        tarn_status status = load_line(l);
        if (status)
            return status;
    } while (tarn_next_line(&l->reader));
    return l->returned ? TARN_OK : bad(l, l->reader.at, "expected return");
}

tarn_status tarn_graph_load(tarn_graph **graph, const char *text, size_t length,
                            tarn_resolve resolve, void *context, const tarn_allocator *allocator,
                            tarn_error *error)
{
    if (!graph || (!text && length > 0))
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL", graph ? "text" : "graph");
    *graph = NULL;
    if (!text)
        text = "";
    loader l = {.reader = {.at = text, .end = text + length, .line = text, .line_number = 1},
                .resolve = resolve,
                .context = context,
                .error = error};
    tarn_status status = tarn_graph_create(&l.graph, allocator, error);
    if (status)
        return status;
    status = load_lines(&l);
    tarn_list_free(&l.operands, &l.graph->allocator);
    if (status) {
        tarn_graph_destroy(l.graph);
        return status;
    }
    *graph = l.graph;
    return tarn_succeed(error);
}
