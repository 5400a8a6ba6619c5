/* The text form: one node on a line. docs/graph.md has the grammar. */
#include "graph.h"
#include "graph_write.h"

#include "../error.h"
#include "../scalar.h"
#include "../shape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const op_names[TARN_OPS] = {"max", "min", "avg", "smooth", "lp"};
static const char *const tie_names[TARN_TIES] = {"first", "all", "split"};

/* ---- Words --------------------------------------------------------------------------------- */

enum { WORD_BYTES = 2048 }; /* 64 sizes of 20 digits fit; longer words are refused */

/* One word of a line. */
typedef struct {
    char text[WORD_BYTES];
    const char *at;
    size_t length;
} word;

typedef struct {
    const char *at, *end, *line; /* the rest, the end, the start of this line */
    int line_number;
    tarn_graph *graph;
    tarn_resolve resolve;
    void *context;
    tarn_error *error;
    tarn_list operands; /* tarn_value, of the line being read */
    bool returned;
} loader;

static tarn_status bad(const loader *l, const char *at, const char *what)
{
    return tarn_fail(l->error, TARN_BAD_TEXT, NO_AXIS, "line %d, column %lld: %s", l->line_number,
                     (long long)(at - l->line) + 1, what);
}

/* Puts the place before the message of a builder. */
static tarn_status locate(const loader *l, const char *at, tarn_status status)
{
    if (!status || !l->error)
        return status;
    tarn_error inner = *l->error;
    tarn_fail(l->error, status, inner.axis, "line %d, column %lld: %.180s", l->line_number,
              (long long)(at - l->line) + 1, inner.message);
    return status;
}

/* Where a complaint about the word read last belongs. */
static const char *place_of(const loader *l, bool got, const word *w)
{
    return got ? w->at : l->at;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(loader *l)
{
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

static bool at_end_of_line(loader *l)
{
    skip_blanks(l);
    return l->at == l->end || *l->at == '\n' || *l->at == '#';
}

/* The next word of the line; false at its end. A word that is too long is cut and refused by whatever
 * reads it, since no name or number is that long. */
static bool next_word(loader *l, word *w)
{
    if (at_end_of_line(l))
        return false;
    w->at = l->at;
    while (l->at < l->end && !is_blank(*l->at) && *l->at != '\n' && *l->at != '#')
        l->at++;
    w->length = (size_t)(l->at - w->at);
    size_t kept = w->length < WORD_BYTES ? w->length : WORD_BYTES - 1;
    memcpy(w->text, w->at, kept);
    w->text[kept] = '\0';
    if (strlen(w->text) != w->length) /* too long, or a zero inside: no word of the language */
        w->text[0] = '\0';
    return true;
}

/* What follows `key=` in a word, or NULL. */
static const char *value_of(const word *w, const char *key)
{
    size_t length = strlen(key);
    return strncmp(w->text, key, length) == 0 && w->text[length] == '=' ? w->text + length + 1
                                                                        : NULL;
}

static bool is_word(const word *w, const char *text)
{
    return strcmp(w->text, text) == 0;
}

/* ---- Numbers ------------------------------------------------------------------------------- */

static bool read_integer(const char **at, int64_t *number)
{
    char *end;
    if (!(**at >= '0' && **at <= '9') && **at != '-')
        return false;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (end == *at || errno == ERANGE)
        return false;
    *number = value;
    *at = end;
    return true;
}

/* "3" or "3,5,..."; with `hi`, "1:2,0:1,...". *count numbers; one stands for every axis. */
static bool read_values(const char *at, int64_t *lo, int64_t *hi, int *count)
{
    int found = 0;
    do {
        if (found == TARN_MAX_SPATIAL || !read_integer(&at, &lo[found]))
            return false;
        if (hi)
            hi[found] = lo[found];
        if (hi && *at == ':' && (at++, !read_integer(&at, &hi[found])))
            return false;
        found++;
    } while (*at == ',' && at++);
    if (*at != '\0' || (found > 1 && *count > 1 && found != *count))
        return false;
    for (int a = found; a < TARN_MAX_SPATIAL; a++) {
        lo[a] = lo[0];
        if (hi)
            hi[a] = hi[0];
    }
    *count = found > *count ? found : *count;
    return true;
}

static bool read_double(const char *at, double *number)
{
    char *end;
    if (*at == '\0' || *at == ' ')
        return false;
    *number = strtod(at, &end);
    return *end == '\0';
}

static bool read_shape(const word *w, int *rank, int64_t *shape)
{
    const char *at = w->text;
    *rank = 0;
    if (is_word(w, "scalar"))
        return true;
    do {
        if (*rank == TARN_MAX_RANK || !read_integer(&at, &shape[(*rank)++]))
            return false;
    } while (*at == 'x' && at++);
    return *at == '\0';
}

static bool read_dtype(const word *w, tarn_dtype *dtype)
{
    for (int k = 0; k < TARN_DTYPES; k++)
        if (is_word(w, tarn_dtype_name((tarn_dtype)k))) {
            *dtype = (tarn_dtype)k;
            return true;
        }
    return false;
}

/* ---- Nodes --------------------------------------------------------------------------------- */

/* Operands are the words that name values, until one does not. */
static tarn_status read_operands(loader *l)
{
    word w;
    l->operands.count = 0;
    for (;;) {
        const char *before = l->at;
        if (!next_word(l, &w))
            return TARN_OK;
        tarn_value value = tarn_graph_find(l->graph, w.text);
        if (value < 0) {
            l->at = before;
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
    skip_blanks(l);
    if (status || l->operands.count == count)
        return status;
    return bad(l, l->at,
               count == 1 ? "expected one value that is defined above"
                          : "expected two values that are defined above");
}

static tarn_value operand(const loader *l, int k)
{
    return ((const tarn_value *)l->operands.items)[k];
}

static tarn_status read_type(loader *l, tarn_dtype *dtype, int *rank, int64_t *shape)
{
    bool got;
    word w;
    got = next_word(l, &w);
    if (!got || !read_dtype(&w, dtype))
        return bad(l, place_of(l, got, &w), "expected a dtype such as f32");
    got = next_word(l, &w);
    if (!got || !read_shape(&w, rank, shape))
        return bad(l, place_of(l, got, &w), "expected a shape such as 1x64x112x112, or scalar");
    return TARN_OK;
}

static tarn_status load_input(loader *l, const char *at, tarn_value *value)
{
    tarn_dtype dtype;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_status status = read_type(l, &dtype, &rank, shape);
    return status ? status
                  : locate(l, at, tarn_graph_input(l->graph, dtype, rank, shape, value, l->error));
}

/* A number of a constant: decimal, or the bits as 0x... */
static bool read_element(const char *at, tarn_dtype dtype, void *to)
{
    char *end;
    double number = 0;
    size_t size = tarn_dtype_size(dtype);
    errno = 0;
    if (at[0] == '0' && at[1] == 'x') {
        uint64_t bits = strtoull(at, &end, 16);
        if (end == at + 2 || *end != '\0' || errno == ERANGE || (size < 8 && bits >> (8 * size)))
            return false;
        uint8_t b1 = (uint8_t)bits;
        uint16_t b2 = (uint16_t)bits;
        uint32_t b4 = (uint32_t)bits;
        memcpy(to,
               size == 1   ? (void *)&b1
               : size == 2 ? (void *)&b2
               : size == 4 ? (void *)&b4
                           : &bits,
               size);
        return true;
    }
    if (is_floating(dtype)) {
        if (!read_double(at, &number))
            return false;
        float single = f32_narrow(number);
        uint16_t half = dtype == TARN_F16 ? f16_narrow(number) : bf16_narrow(number);
        memcpy(to, size == 8 ? (void *)&number : size == 4 ? (void *)&single : &half, size);
        return true;
    }
    if (dtype == TARN_U64) {
        uint64_t wide = strtoull(at, &end, 10);
        memcpy(to, &wide, size);
        return *at >= '0' && *at <= '9' && *end == '\0' && errno != ERANGE;
    }
    int64_t value, low, high;
    bool is_unsigned = dtype == TARN_U8 || dtype == TARN_U16 || dtype == TARN_U32;
    high = size == 8 ? INT64_MAX : ((int64_t)1 << (8 * size - (is_unsigned ? 0 : 1))) - 1;
    low = is_unsigned ? 0 : -high - 1;
    if (!read_integer(&at, &value) || *at != '\0' || value < low || value > high)
        return false;
    int8_t b1 = (int8_t)value;
    int16_t b2 = (int16_t)value;
    int32_t b4 = (int32_t)value;
    memcpy(to,
           size == 1   ? (void *)&b1
           : size == 2 ? (void *)&b2
           : size == 4 ? (void *)&b4
                       : &value,
           size);
    return true;
}

static tarn_status read_elements(loader *l, tarn_dtype dtype, tarn_list *bytes)
{
    size_t size = tarn_dtype_size(dtype);
    word w;
    while (next_word(l, &w)) {
        if (!tarn_list_reserve(bytes, (int64_t)size, 1, &l->graph->allocator))
            return tarn_no_memory(l->error);
        if (!read_element(w.text, dtype, (char *)bytes->items + bytes->count))
            return bad(l, w.at, "expected a number that the dtype holds");
        bytes->count += (int64_t)size;
    }
    return TARN_OK;
}

static tarn_status load_constant(loader *l, const char *at, tarn_value *value)
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
            status = bad(l, l->at, "the shape does not have as many elements");
        else
            status = locate(l, at, tarn_graph_constant(l->graph, &view, value, l->error));
    }
    tarn_list_free(&bytes, &l->graph->allocator);
    return status;
}

/* The words of a pool that are not numbers for each axis. */
static bool read_pool_word(const word *w, tarn_pool *pool, bool *ties_given)
{
    const char *value;
    int64_t number;
    if (is_word(w, "ceil"))
        return pool->ceil_mode = 1, true;
    if (is_word(w, "nopad"))
        return pool->count_include_pad = 0, true;
    if (is_word(w, "global"))
        return pool->window = TARN_GLOBAL, true;
    if (is_word(w, "flat"))
        return pool->window = TARN_GLOBAL, pool->flat = 1, true;
    if ((value = value_of(w, "beta")))
        return read_double(value, &pool->beta);
    if ((value = value_of(w, "p")))
        return read_double(value, &pool->power);
    if ((value = value_of(w, "div")))
        return read_integer(&value, &pool->divisor) && *value == '\0';
    if ((value = value_of(w, "spatial"))) {
        bool fits = read_integer(&value, &number) && *value == '\0' && number >= 1 &&
                    number <= TARN_MAX_SPATIAL;
        pool->spatial = fits ? (int)number : 0;
        return fits;
    }
    for (int k = 0; (value = value_of(w, "ties")) && k < TARN_TIES; k++)
        if (strcmp(value, tie_names[k]) == 0) {
            pool->ties = (tarn_ties)k;
            return *ties_given = true;
        }
    return false;
}

/* The words that have a number for each axis. */
static bool read_window_word(const word *w, tarn_pool *pool, int *count, bool *stride_given)
{
    const char *value;
    if ((value = value_of(w, "kernel")))
        return read_values(value, pool->kernel, NULL, count);
    if ((value = value_of(w, "stride")))
        return *stride_given = true, read_values(value, pool->stride, NULL, count);
    if ((value = value_of(w, "dilation")))
        return read_values(value, pool->dilation, NULL, count);
    if ((value = value_of(w, "pad")))
        return read_values(value, pool->pad_lo, pool->pad_hi, count);
    if ((value = value_of(w, "adaptive")))
        return pool->window = TARN_ADAPTIVE, read_values(value, pool->out, NULL, count);
    return false;
}

static tarn_status load_pool(loader *l, const char *at, tarn_op op, tarn_value *value)
{
    tarn_pool pool = tarn_max_pool(2);
    bool ties_given = false, stride_given = false;
    int count = 0;
    word w;
    pool.op = op;
    pool.spatial = 0;
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    while (next_word(l, &w))
        if (!read_pool_word(&w, &pool, &ties_given) &&
            !read_window_word(&w, &pool, &count, &stride_given))
            return bad(l, w.at,
                       "expected kernel= stride= pad= dilation= adaptive= global flat spatial= "
                       "ceil nopad div= beta= p= ties= with as many numbers as axes");
    if (!stride_given)
        memcpy(pool.stride, pool.kernel, sizeof pool.stride);
    if (pool.spatial && count > 1 && count != pool.spatial)
        return bad(l, at, "expected as many numbers as spatial axes");
    if (!pool.spatial)
        pool.spatial = count > 1 ? count : 2;
    if (!ties_given && pool.window == TARN_GLOBAL)
        pool.ties = TARN_TIES_ALL;
    return locate(l, at, tarn_graph_pool(l->graph, operand(l, 0), &pool, value, l->error));
}

static tarn_status load_padding(loader *l, const char *at, bool pad, tarn_value *value)
{
    bool got;
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL], spatial = 0;
    int count = 0;
    word w;
    const char *text;
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    got = next_word(l, &w);
    if (!got || !(text = value_of(&w, "pad")) || !read_values(text, lo, hi, &count))
        return bad(l, place_of(l, got, &w),
                   "expected pad= and up to 8 numbers, such as pad=1 or pad=1:2,0:1");
    if (next_word(l, &w)) {
        text = value_of(&w, "spatial");
        if (!text || !read_integer(&text, &spatial) || *text || spatial < 1 ||
            spatial > TARN_MAX_SPATIAL || (count > 1 && count != spatial))
            return bad(l, w.at, "expected spatial= and the number of padded axes");
    }
    int axes = spatial ? (int)spatial : count > 1 ? count : 2;
    return locate(l, at,
                  (pad ? tarn_graph_pad : tarn_graph_unpad)(l->graph, operand(l, 0), axes, lo, hi,
                                                            value, l->error));
}

/* `key=` and an integer. */
static tarn_status read_number(loader *l, const char *key, const char *expected, int64_t *number)
{
    bool got;
    word w;
    const char *text;
    got = next_word(l, &w);
    if (!got || !(text = value_of(&w, key)) || !read_integer(&text, number) || *text ||
        *number < INT32_MIN || *number > INT32_MAX)
        return bad(l, place_of(l, got, &w), expected);
    return TARN_OK;
}

static tarn_status load_scale(loader *l, const char *at, tarn_value *value)
{
    bool got;
    word w;
    double factor;
    const char *text;
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    got = next_word(l, &w);
    if (!got || !(text = value_of(&w, "factor")) || !read_double(text, &factor))
        return bad(l, place_of(l, got, &w), "expected factor= and a number");
    return locate(l, at, tarn_graph_scale(l->graph, operand(l, 0), factor, value, l->error));
}

static tarn_status load_concat(loader *l, const char *at, tarn_value *value)
{
    int64_t axis;
    tarn_status status;
    if ((status = read_operands(l)) ||
        (status = read_number(l, "axis", "expected values defined above and axis=", &axis)))
        return status;
    return locate(l, at,
                  tarn_graph_concat(l->graph, (int)l->operands.count, l->operands.items, (int)axis,
                                    value, l->error));
}

static tarn_status load_reshape(loader *l, const char *at, tarn_value *value)
{
    bool got;
    word w;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_status status = expect_operands(l, 1);
    if (status)
        return status;
    got = next_word(l, &w);
    if (!got || !read_shape(&w, &rank, shape))
        return bad(l, place_of(l, got, &w), "expected a shape such as 1x2048, or scalar");
    return locate(l, at, tarn_graph_reshape(l->graph, operand(l, 0), rank, shape, value, l->error));
}

static tarn_status load_flatten(loader *l, const char *at, tarn_value *value)
{
    int64_t axis;
    tarn_status status;
    if ((status = expect_operands(l, 1)) ||
        (status = read_number(l, "axis", "expected axis= and the first axis to join", &axis)))
        return status;
    return locate(l, at, tarn_graph_flatten(l->graph, operand(l, 0), (int)axis, value, l->error));
}

static tarn_status load_add(loader *l, const char *at, tarn_value *value)
{
    tarn_status status = expect_operands(l, 2);
    if (status)
        return status;
    return locate(l, at, tarn_graph_add(l->graph, operand(l, 0), operand(l, 1), value, l->error));
}

/* The caller's function knows the payloads; the text knows the shape. */
static tarn_status resolve_custom(loader *l, const word *name, const char *at, tarn_dtype dtype,
                                  int rank, const int64_t *shape, tarn_value *value)
{
    const tarn_allocator *allocator = &l->graph->allocator;
    size_t count = (size_t)l->operands.count;
    tarn_view *views = allocator->allocate(allocator->context, (count + 1) * sizeof *views);
    if (!views)
        return tarn_no_memory(l->error);
    for (size_t k = 0; k < count; k++)
        views[k] = graph_node(l->graph, operand(l, (int)k))->view;
    tarn_custom custom = {0};
    tarn_error inner = {0};
    tarn_status status = l->resolve(l->context, name->text, (int)count, views, &custom, &inner);
    allocator->release(allocator->context, views);
    if (status) {
        tarn_fail(l->error, status, NO_AXIS, "%s",
                  inner.code == status ? inner.message : "the custom node was not resolved");
        return locate(l, at, status);
    }
    custom.name = name->text;
    custom.dtype = dtype;
    custom.rank = rank;
    memcpy(custom.shape, shape, sizeof *shape * (size_t)rank);
    status = locate(
        l, at,
        tarn_graph_custom(l->graph, (int)count, l->operands.items, &custom, value, l->error));
    if (status && custom.destroy)
        custom.destroy(custom.context);
    return status;
}

static tarn_status load_custom(loader *l, const char *at, tarn_value *value)
{
    bool got;
    word name;
    tarn_dtype dtype;
    int rank;
    int64_t shape[TARN_MAX_RANK];
    tarn_status status;
    got = next_word(l, &name);
    if (!got || !tarn_is_name(name.text, strlen(name.text)))
        return bad(l, place_of(l, got, &name), "expected the name of a custom node");
    if (!l->resolve)
        return bad(l, name.at, "custom nodes need a resolver");
    if ((status = read_operands(l)) || (status = read_type(l, &dtype, &rank, shape)))
        return status;
    return resolve_custom(l, &name, at, dtype, rank, shape, value);
}

static tarn_status load_node(loader *l, const word *op, tarn_value *value)
{
    static const struct {
        const char *name;
        tarn_status (*load)(loader *, const char *, tarn_value *);
    } ops[] = {{"input", load_input},     {"constant", load_constant}, {"add", load_add},
               {"scale", load_scale},     {"concat", load_concat},     {"reshape", load_reshape},
               {"flatten", load_flatten}, {"custom", load_custom}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (is_word(op, ops[k].name))
            return ops[k].load(l, op->at, value);
    for (int k = 0; k < TARN_OPS; k++)
        if (is_word(op, op_names[k]))
            return load_pool(l, op->at, (tarn_op)k, value);
    if (is_word(op, "pad") || is_word(op, "unpad"))
        return load_padding(l, op->at, op->text[0] == 'p', value);
    return bad(l, op->at,
               "expected input, constant, max, min, avg, smooth, lp, pad, unpad, add, scale, concat, "
               "reshape, flatten or custom");
}

/* ---- Lines --------------------------------------------------------------------------------- */

static tarn_status load_return(loader *l)
{
    tarn_status status = read_operands(l);
    if (status)
        return status;
    l->returned = true;
    for (int k = 0; k < l->operands.count && !status; k++)
        status = tarn_graph_output(l->graph, operand(l, k), l->error);
    return status;
}

static tarn_status load_line(loader *l)
{
    bool got;
    word name, equals, op;
    tarn_value value;
    tarn_status status;
    if (!next_word(l, &name))
        return TARN_OK;
    if (l->returned)
        return bad(l, name.at, "nothing may follow return");
    if (is_word(&name, "return")) {
        status = load_return(l);
    } else {
        if (!tarn_is_name(name.text, strlen(name.text)))
            return bad(l, name.at, "expected a name or return");
        if (tarn_graph_find(l->graph, name.text) >= 0)
            return bad(l, name.at, "this name is defined above: values are assigned once");
        got = next_word(l, &equals);
        if (!got || !is_word(&equals, "="))
            return bad(l, place_of(l, got, &equals), "expected = with a blank on each side");
        if (!next_word(l, &op))
            return bad(l, l->at, "expected an operator");
        if ((status = load_node(l, &op, &value)) == TARN_OK)
            status = tarn_graph_name(l->graph, value, name.text, l->error);
    }
    if (!status && !at_end_of_line(l))
        return bad(l, l->at, "expected the end of the line, or a value that is defined above");
    return status;
}

static tarn_status load_lines(loader *l)
{
    for (;;) {
        l->line = l->at;
        l->line_number++;
        tarn_status status = load_line(l);
        if (status)
            return status;
        while (l->at < l->end && *l->at != '\n') /* a comment */
            l->at++;
        if (l->at == l->end)
            break;
        l->at++;
    }
    return l->returned ? TARN_OK : bad(l, l->at, "expected return");
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
    loader l = {
        .at = text, .end = text + length, .resolve = resolve, .context = context, .error = error};
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

/* ---- Saving -------------------------------------------------------------------------------- */

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
    if (pool->op == TARN_SMOOTH)
        tarn_put(w, " beta=%.17g", pool->beta);
    if (pool->op == TARN_LP)
        tarn_put(w, " p=%.17g", pool->power);
    if (extreme && pool->ties != usual)
        tarn_put(w, " ties=%s", tie_names[pool->ties]);
}

void tarn_put_shape(tarn_writer *w, const tarn_view *view)
{
    if (view->rank == 0)
        tarn_put(w, "scalar");
    for (int a = 0; a < view->rank; a++)
        tarn_put(w, a ? "x%lld" : "%lld", (long long)view->shape[a]);
}

/* Decimal where that gives the bits back, else the bits. */
static void put_element(tarn_writer *w, tarn_dtype dtype, const char *at)
{
    size_t size = tarn_dtype_size(dtype);
    uint64_t bits = 0;
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    memcpy(size == 1   ? (void *)&b1
           : size == 2 ? (void *)&b2
           : size == 4 ? (void *)&b4
                       : &bits,
           at, size);
    bits = size == 1 ? b1 : size == 2 ? b2 : size == 4 ? b4 : bits;
    if (!is_floating(dtype)) {
        bool is_signed =
            dtype == TARN_I8 || dtype == TARN_I16 || dtype == TARN_I32 || dtype == TARN_I64;
        int64_t value = size == 1   ? (int8_t)b1
                        : size == 2 ? (int16_t)b2
                        : size == 4 ? (int32_t)b4
                                    : (int64_t)bits;
        if (is_signed)
            tarn_put(w, " %lld", (long long)value);
        else
            tarn_put(w, " %llu", (unsigned long long)bits);
        return;
    }
    double number = dtype == TARN_F64   ? f64_of_bits(bits)
                    : dtype == TARN_F32 ? (double)f32_of_bits((uint32_t)bits)
                    : dtype == TARN_F16 ? (double)f16_load((uint16_t)bits)
                                        : (double)bf16_load((uint16_t)bits);
    if (number - number == 0) /* finite */
        tarn_put(w, " %.17g", number);
    else
        tarn_put(w, " 0x%llx", (unsigned long long)bits);
}

/* The operator, as it stands in the text, without operands. */
const char *tarn_node_word(const tarn_node *node)
{
    static const char *const names[] = {
        [NODE_INPUT] = "input",   [NODE_CONSTANT] = "constant", [NODE_PAD] = "pad",
        [NODE_UNPAD] = "unpad",   [NODE_ADD] = "add",           [NODE_SCALE] = "scale",
        [NODE_CONCAT] = "concat", [NODE_RESHAPE] = "reshape",   [NODE_CUSTOM] = "custom"};
    return node->kind == NODE_POOL ? op_names[((const tarn_pool *)node->payload)->op]
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
        tarn_put(w, " factor=%.17g", *(const double *)node->payload);
        return;
    case NODE_CONCAT:
        tarn_put(w, " axis=%d", *(const int *)node->payload);
        return;
    default:
        return;
    }
}

static void put_node(tarn_writer *w, const tarn_graph *graph, const tarn_node *node)
{
    const tarn_value *x = node_operands(graph, node);
    bool typed =
        node->kind == NODE_INPUT || node->kind == NODE_CONSTANT || node->kind == NODE_CUSTOM;
    tarn_put(w, "%s = %s", node->name, tarn_node_word(node));
    if (node->kind == NODE_CUSTOM)
        tarn_put(w, " %s", ((const tarn_custom_node *)node->payload)->name);
    for (int k = 0; k < node->operands; k++)
        tarn_put(w, " %s", graph_node(graph, x[k])->name);
    if (typed)
        tarn_put(w, " %s", tarn_dtype_name(node->view.dtype));
    if (typed || node->kind == NODE_RESHAPE) {
        tarn_put(w, " ");
        tarn_put_shape(w, &node->view);
    }
    tarn_put_parameters(w, node);
    int64_t size = (int64_t)tarn_dtype_size(node->view.dtype);
    for (int64_t at = 0; node->kind == NODE_CONSTANT && at < node->bytes; at += size)
        put_element(w, node->view.dtype, (const char *)node->payload + at);
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
