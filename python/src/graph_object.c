#include "graph_object.h"

#include "arguments.h"
#include "array.h"
#include "interrupts.h"
#include "pool_object.h"
#include "pooling.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn_graph.h>

typedef struct {
    PyObject ob_base;
    tarn_graph *graph;
    tarn_program *idle[TARN_MODES]; /* a program that no thread runs just now, or NULL */
    int version;                    /* counts changes, so that old programs are not kept */
    double parts[TARN_MODES], longest[TARN_MODES]; /* of all pools, and of one: see interrupts.h */
    module_state *state;
} graph_object;

static graph_object *graph_of(PyObject *object)
{
    return (graph_object *)object;
}

/* ---- Making and unmaking ------------------------------------------------------------------- */

static void forget_programs(graph_object *self)
{
    self->version++;
    for (int mode = 0; mode < TARN_MODES; mode++) {
        tarn_program_destroy(self->idle[mode]);
        self->idle[mode] = NULL;
    }
}

/* An object for the graph, which it owns from now on. */
static PyObject *make_object(PyTypeObject *type, module_state *state, tarn_graph *graph)
{
    graph_object *self = (graph_object *)PyType_GenericAlloc(type, 0);
    if (!self) {
        tarn_graph_destroy(graph);
        return NULL;
    }
    self->graph = graph;
    self->state = state;
    return (PyObject *)self;
}

static module_state *state_of_type(PyTypeObject *type)
{
    PyObject *module = PyType_GetModule(type); /* The type is final: it is the module's own. */
    return module ? PyModule_GetState(module) : NULL;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    tarn_graph *graph;
    tarn_error error;
    module_state *state = state_of_type(type);
    if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "", names))
        return NULL;
    if (tarn_graph_create(&graph, NULL, &error))
        return raise_error(state, &error);
    return make_object(type, state, graph);
}

static void graph_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    forget_programs(graph_of(object));
    tarn_graph_destroy(graph_of(object)->graph);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- Building ------------------------------------------------------------------------------ */

/* The handle of a node that was built, or the reason why it was not. */
static PyObject *built(graph_object *self, tarn_status status, const tarn_value *value,
                       const tarn_error *error)
{
    if (status)
        return raise_error(self->state, error);
    forget_programs(self);
    return PyLong_FromLong(*value);
}

static PyObject *graph_input(PyObject *object, PyObject *args)
{
    PyObject *word, *sizes;
    tarn_dtype dtype;
    int64_t shape[TARN_MAX_RANK];
    tarn_value value = -1;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "OO", &word, &sizes) || parse_dtype(word, &dtype))
        return NULL;
    int rank = parse_shape(sizes, shape);
    if (rank < 0)
        return NULL;
    graph_object *self = graph_of(object);
    return built(self, tarn_graph_input(self->graph, dtype, rank, shape, &value, &error), &value,
                 &error);
}

static PyObject *graph_constant(PyObject *object, PyObject *data)
{
    graph_object *self = graph_of(object);
    array array;
    tarn_value value = -1;
    tarn_error error;
    if (array_import(self->state, data, "constant", false, &array))
        return NULL;
    tarn_status status = tarn_graph_constant(self->graph, &array.view, &value, &error);
    array_release(&array);
    return built(self, status, &value, &error);
}

static void note_pool(graph_object *self, const tarn_pool *pool, tarn_value x)
{
    static const tarn_pass pass[TARN_MODES] = {TARN_FORWARD, TARN_JVP, TARN_VJP};
    tarn_view view;
    tarn_graph_view(self->graph, x, &view, NULL);
    for (int mode = 0; mode < TARN_MODES; mode++) {
        double parts = guess_parts(pool, &view, pass[mode]);
        self->parts[mode] += parts;
        self->longest[mode] = parts > self->longest[mode] ? parts : self->longest[mode];
    }
}

static PyObject *graph_pool(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    PyObject *pool;
    tarn_value x, value = -1;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "iO!", &x, self->state->pool_type, &pool))
        return NULL;
    tarn_status status = tarn_graph_pool(self->graph, x, pool_of(pool), &value, &error);
    if (!status)
        note_pool(self, pool_of(pool), x);
    return built(self, status, &value, &error);
}

typedef tarn_status pad_builder(tarn_graph *graph, tarn_value x, int spatial, const int64_t *lo,
                                const int64_t *hi, tarn_value *value, tarn_error *error);

static PyObject *build_pad(PyObject *object, PyObject *args, pad_builder *build)
{
    graph_object *self = graph_of(object);
    PyObject *pairs;
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL];
    tarn_value x, value = -1;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "iO", &x, &pairs))
        return NULL;
    int spatial = parse_pairs(pairs, lo, hi);
    if (spatial < 0)
        return NULL;
    return built(self, build(self->graph, x, spatial, lo, hi, &value, &error), &value, &error);
}

static PyObject *graph_pad(PyObject *self, PyObject *args)
{
    return build_pad(self, args, tarn_graph_pad);
}

static PyObject *graph_unpad(PyObject *self, PyObject *args)
{
    return build_pad(self, args, tarn_graph_unpad);
}

static PyObject *graph_add(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    tarn_value a, b, value = -1;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "ii", &a, &b))
        return NULL;
    return built(self, tarn_graph_add(self->graph, a, b, &value, &error), &value, &error);
}

static PyObject *graph_scale(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    tarn_value x, value = -1;
    double factor;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "id", &x, &factor))
        return NULL;
    return built(self, tarn_graph_scale(self->graph, x, factor, &value, &error), &value, &error);
}

static PyObject *graph_concat(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    PyObject *list;
    int axis;
    tarn_value values[TARN_MAX_RANK], value = -1;
    int64_t numbers[TARN_MAX_RANK];
    tarn_error error;
    if (!PyArg_ParseTuple(args, "Oi", &list, &axis))
        return NULL;
    int count = parse_shape(list, numbers); /* at most 64 values; chain more */
    if (count < 0)
        return NULL;
    for (int k = 0; k < count; k++)
        values[k] = numbers[k] == (tarn_value)numbers[k] ? (tarn_value)numbers[k] : -1;
    return built(self, tarn_graph_concat(self->graph, count, values, axis, &value, &error), &value,
                 &error);
}

static PyObject *graph_reshape(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    PyObject *sizes;
    int64_t shape[TARN_MAX_RANK];
    tarn_value x, value = -1;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "iO", &x, &sizes))
        return NULL;
    int rank = parse_shape(sizes, shape);
    if (rank < 0)
        return NULL;
    return built(self, tarn_graph_reshape(self->graph, x, rank, shape, &value, &error), &value,
                 &error);
}

static PyObject *graph_flatten(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    tarn_value x, value = -1;
    int axis = 1;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "i|i", &x, &axis))
        return NULL;
    return built(self, tarn_graph_flatten(self->graph, x, axis, &value, &error), &value, &error);
}

/* output(value) and name(value, text) return the value, so that calls nest. */
static PyObject *graph_output(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    tarn_value value;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "i", &value))
        return NULL;
    return built(self, tarn_graph_output(self->graph, value, &error), &value, &error);
}

static PyObject *graph_name(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    tarn_value value;
    const char *name;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "is", &value, &name))
        return NULL;
    return built(self, tarn_graph_name(self->graph, value, name, &error), &value, &error);
}

/* ---- Programs ------------------------------------------------------------------------------ */

/* A program that nobody else runs: the idle one, or a new one. A program has one block of memory,
 * so that threads need one each. */
static tarn_program *take_program(graph_object *self, tarn_mode mode)
{
    STATE_LOCK(self->state);
    tarn_program *program = self->idle[mode];
    self->idle[mode] = NULL;
    STATE_UNLOCK(self->state);
    if (program)
        return program;
    const tarn_request request = {.mode = mode};
    tarn_options options = tarn_options_default();
    double parts = self->parts[mode] > 1 ? 2 : 1; /* two, to stop between pools */
    parts = self->longest[mode] > parts ? self->longest[mode] : parts;
    interrupts_prepare((int)parts, &options.executor);
    tarn_error error;
    if (tarn_graph_compile(&program, self->graph, &request, &options, &error))
        raise_error(self->state, &error);
    return program;
}

static void return_program(graph_object *self, tarn_mode mode, int version, tarn_program *program)
{
    STATE_LOCK(self->state);
    bool keep = program && !self->idle[mode] && version == self->version;
    if (keep)
        self->idle[mode] = program;
    STATE_UNLOCK(self->state);
    if (!keep)
        tarn_program_destroy(program);
}

/* ---- Running ------------------------------------------------------------------------------- */

/* Tensors of one kind for a run: those of the inputs, or those of the outputs. */
typedef struct {
    int count;
    array *array;         /* of arrays given; NULL if there are none */
    tensor_memory **copy; /* of arrays given: a dense copy, or NULL if the array is dense */
    result *result;       /* of arrays to be made */
    bool *held;           /* which entries are valid */
    void **data;
} tensor_list;

static int allocate_list(tensor_list *list, int count, bool given)
{
    size_t number = (size_t)count + 1; /* never nothing */
    *list = (tensor_list){.count = count};
    list->array = given ? calloc(number, sizeof *list->array) : NULL;
    list->copy = given ? calloc(number, sizeof *list->copy) : NULL;
    list->result = given ? NULL : calloc(number, sizeof *list->result);
    list->held = calloc(number, sizeof *list->held);
    list->data = calloc(number, sizeof *list->data);
    if (list->held && list->data && (given ? list->array && list->copy : list->result != NULL))
        return 0;
    PyErr_NoMemory();
    return -1;
}

static void release_list(tensor_list *list)
{
    for (int k = 0; list->held && k < list->count; k++) {
        if (!list->held[k])
            continue;
        if (list->array)
            array_release(&list->array[k]);
        if (list->copy)
            tensor_memory_release(list->copy[k]);
        if (list->result)
            result_drop(&list->result[k]);
    }
    free(list->array);
    free(list->copy);
    free(list->result);
    free(list->held);
    free(list->data);
}

static bool is_dense(const tarn_view *view)
{
    tarn_view dense = tarn_view_dense(NULL, view->dtype, view->rank, view->shape);
    for (int a = 0; a < view->rank; a++)
        if (view->shape[a] > 1 && view->strides[a] != dense.strides[a])
            return false;
    return true;
}

/* A dense copy of entry k: graphs run on dense tensors. Padding by nothing copies. */
static int copy_entry(graph_object *self, tensor_list *list, int k)
{
    const tarn_view *from = &list->array[k].view;
    const int64_t none = 0;
    tarn_view to = tarn_view_dense(NULL, from->dtype, from->rank, from->shape);
    tarn_error error;
    list->copy[k] = tensor_memory_create(&to);
    if (!list->copy[k])
        return -1;
    list->data[k] = to.data = list->copy[k]->versioned.tensor.data;
    if (tarn_pad(from, 1, &none, &none, &to, &error)) {
        raise_error(self->state, &error);
        return -1;
    }
    return 0;
}

static int check_entry(graph_object *self, const char *what, int k, const tarn_view *given,
                       const tarn_view *wanted)
{
    bool same = given->rank == wanted->rank && given->dtype == wanted->dtype;
    for (int a = 0; same && a < given->rank; a++)
        same = given->shape[a] == wanted->shape[a];
    if (same)
        return 0;
    return raise_status(self->state, TARN_BAD_SHAPE, -1,
                        "%s %d does not have the dtype %s, the rank %d or the sizes of the graph's",
                        what, k, tarn_dtype_name(wanted->dtype), wanted->rank);
}

typedef tarn_value value_at(const tarn_graph *graph, int k);

static int read_entry(graph_object *self, const char *what, value_at *at, PyObject *object, int k,
                      tensor_list *list)
{
    tarn_view wanted;
    tarn_graph_view(self->graph, at(self->graph, k), &wanted, NULL);
    if (object == Py_None && wanted.dtype > TARN_BF16)
        return 0; /* Integers have no tangent: none is looked at. */
    if (array_import(self->state, object, what, false, &list->array[k]))
        return -1;
    list->held[k] = true;
    list->data[k] = list->array[k].view.data;
    if (check_entry(self, what, k, &list->array[k].view, &wanted))
        return -1;
    bool empty = tarn_view_bytes(&list->array[k].view) == 0;
    return empty || is_dense(&list->array[k].view) ? 0 : copy_entry(self, list, k);
}

/* `objects` is a tuple, which keeps the arrays alive for the run. */
static int read_list(graph_object *self, const char *what, value_at *at, int count,
                     PyObject *objects, tensor_list *list)
{
    Py_ssize_t given = PyTuple_Size(objects);
    if (given < 0 || allocate_list(list, count, true))
        return -1;
    if (given != count) {
        PyErr_Format(PyExc_ValueError, "the graph takes %d arrays as %s, not %zd", count, what,
                     given);
        return -1;
    }
    for (int k = 0; k < count; k++)
        if (read_entry(self, what, at, PyTuple_GetItem(objects, k), k, list))
            return -1;
    return 0;
}

static int make_entry(graph_object *self, value_at *at, int k, const array *like, bool floating,
                      tensor_list *list)
{
    tarn_view layout;
    tarn_graph_view(self->graph, at(self->graph, k), &layout, NULL);
    if (floating && layout.dtype > TARN_BF16)
        return 0;
    PyObject *shape = make_tuple(layout.rank, layout.shape);
    int failed =
        !shape || result_prepare(self->state, like, &layout, shape, true, &list->result[k]);
    Py_XDECREF(shape);
    list->held[k] = !failed;
    list->data[k] = failed ? NULL : list->result[k].data;
    return failed ? -1 : 0;
}

/* The filled results as a tuple; None where there is none. */
static PyObject *finish_list(graph_object *self, const array *like, tensor_list *list)
{
    PyObject *tuple = PyTuple_New(list->count);
    for (int k = 0; tuple && k < list->count; k++) {
        PyObject *object;
        if (list->held[k]) {
            object = result_finish(self->state, like, &list->result[k]);
        } else {
            object = Py_None;
            Py_INCREF(object);
        }
        if (!object || PyTuple_SetItem(tuple, k, object))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* A run: inputs, a second list for the derivatives, results. */
typedef struct {
    tensor_list inputs, seconds, results;
    tarn_mode mode;
} graph_run;

static tarn_status run_program(tarn_program *program, const graph_run *run, tarn_error *error)
{
    const void *const *inputs = (const void *const *)run->inputs.data;
    const void *const *seconds = (const void *const *)run->seconds.data;
    switch (run->mode) {
    case TARN_GRAPH_FORWARD:
        return tarn_program_forward(program, inputs, run->results.data, error);
    case TARN_GRAPH_JVP:
        return tarn_program_jvp(program, inputs, seconds, NULL, run->results.data, error);
    default:
        return tarn_program_vjp(program, inputs, seconds, NULL, run->results.data, error);
    }
}

static int execute(graph_object *self, const graph_run *run)
{
    int version = self->version;
    tarn_program *program = take_program(self, run->mode);
    tarn_error error;
    watch watch;
    if (!program)
        return -1;
    watch_begin(&watch);
    tarn_status status = run_program(program, run, &error);
    bool interrupted = watch_end(&watch);
    return_program(self, run->mode, version, program);
    if (interrupted)
        return -1;
    if (status)
        raise_error(self->state, &error);
    return status ? -1 : 0;
}

/* Reads, makes, runs. The results have the type of the first input. */
static PyObject *run_lists(graph_object *self, PyObject *inputs, PyObject *seconds, graph_run *run)
{
    const tarn_graph *graph = self->graph;
    int version = self->version;
    int input_count = tarn_graph_inputs(graph), output_count = tarn_graph_outputs(graph);
    bool backward = run->mode == TARN_GRAPH_VJP;
    value_at *input = tarn_graph_input_value, *output = tarn_graph_output_value;
    if (read_list(self, "input", input, input_count, inputs, &run->inputs))
        return NULL;
    if (seconds &&
        (backward ? read_list(self, "cotangent", output, output_count, seconds, &run->seconds)
                  : read_list(self, "tangent", input, input_count, seconds, &run->seconds)))
        return NULL;
    const array nothing = {.class = {.kind = ARRAY_BUFFER}};
    const array *like = input_count > 0 ? &run->inputs.array[0] : &nothing;
    int count = backward ? input_count : output_count;
    if (allocate_list(&run->results, count, false))
        return NULL;
    for (int k = 0; k < count; k++)
        if (make_entry(self, backward ? input : output, k, like, seconds != NULL, &run->results))
            return NULL;
    if (version != self->version) { /* by an array's __dlpack__, say, which may do anything */
        raise_status(self->state, TARN_BAD_ARGUMENT, -1,
                     "the graph was changed while its arrays were being read");
        return NULL;
    }
    return execute(self, run) ? NULL : finish_list(self, like, &run->results);
}

static PyObject *run_graph(PyObject *object, tarn_mode mode, PyObject *inputs, PyObject *seconds)
{
    graph_run run = {.mode = mode};
    PyObject *made = run_lists(graph_of(object), inputs, seconds, &run);
    release_list(&run.inputs);
    release_list(&run.seconds);
    release_list(&run.results);
    return made;
}

static PyObject *graph_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a graph takes its inputs by position");
        return NULL;
    }
    return run_graph(self, TARN_GRAPH_FORWARD, args, NULL);
}

/* (inputs, seconds), two sequences, which are made tuples. */
static PyObject *run_derivative(PyObject *self, tarn_mode mode, PyObject *args)
{
    PyObject *inputs, *seconds, *made = NULL;
    if (!PyArg_ParseTuple(args, "OO", &inputs, &seconds))
        return NULL;
    inputs = PySequence_Tuple(inputs);
    seconds = inputs ? PySequence_Tuple(seconds) : NULL;
    if (seconds)
        made = run_graph(self, mode, inputs, seconds);
    Py_XDECREF(seconds);
    Py_XDECREF(inputs);
    return made;
}

static PyObject *graph_jvp(PyObject *self, PyObject *args)
{
    return run_derivative(self, TARN_GRAPH_JVP, args);
}

static PyObject *graph_vjp(PyObject *self, PyObject *args)
{
    return run_derivative(self, TARN_GRAPH_VJP, args);
}

/* ---- Text and questions -------------------------------------------------------------------- */

/* A word of the text's line, copied; the place behind it. */
static const char *next_word(const char *at, const char *end, char *word, size_t size)
{
    size_t length = 0;
    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at != ' ' && *at != '\n'; at++)
        if (length + 1 < size)
            word[length++] = *at;
    word[length] = 0;
    return at;
}

/* The words of a pool's line as those of a problem string, and the shape of its input. */
static void write_problem(const char *at, const char *end, const tarn_view *x, char *text,
                          size_t size)
{
    static const struct {
        const char *name, *as;
    } words[] = {{"kernel=", " k"}, {"stride=", "s"}, {"pad=", "p"}, {"dilation=", "e"},
                 {"adaptive=", " a"}, {"spatial=", " d"}};
    char word[128];
    while ((at = next_word(at, end, word, sizeof word)), *word && *word != '#') {
        const char *name = "", *as = " ";
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (!strncmp(word, words[k].name, strlen(words[k].name)))
                name = words[k].name, as = words[k].as;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", as, word + strlen(name));
    }
    for (int a = 0; a < x->rank; a++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%lld", a ? "x" : " f32 ", (long long)x->shape[a]);
    }
}

/* Notes the pools of a text that was loaded: a graph does not say what its nodes are. */
static void note_pools(graph_object *self, const char *text, size_t length)
{
    const char *end = text + length;
    for (const char *line = text, *next; line < end; line = next) {
        char name[128], equals[8], problem[1024], operand[128];
        tarn_pool pool;
        tarn_view x;
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next + 1 : end;
        const char *at = next_word(line, next, name, sizeof name);
        at = next_word(at, next, equals, sizeof equals);
        at = next_word(at, next, problem, sizeof name);
        at = next_word(at, next, operand, sizeof operand);
        tarn_value value = tarn_graph_find(self->graph, operand);
        if (value < 0 || tarn_graph_view(self->graph, value, &x, NULL))
            continue;
        write_problem(at, next, &x, problem, sizeof problem);
        if (!tarn_problem_parse(problem, &pool, &x, NULL))
            note_pool(self, &pool, value);
    }
}

static PyObject *graph_load(PyObject *type, PyObject *args)
{
    const char *text;
    Py_ssize_t length;
    tarn_graph *graph;
    tarn_error error;
    module_state *state = state_of_type((PyTypeObject *)type);
    if (!state || !PyArg_ParseTuple(args, "s#", &text, &length))
        return NULL;
    if (tarn_graph_load(&graph, text, (size_t)length, NULL, NULL, NULL, &error))
        return raise_error(state, &error);
    PyObject *made = make_object((PyTypeObject *)type, state, graph);
    if (made)
        note_pools(graph_of(made), text, (size_t)length);
    return made;
}

static int64_t write_text(const graph_object *self, bool drawing, char *text, size_t size)
{
    return drawing ? tarn_graph_dot(self->graph, NULL, text, size)
                   : tarn_graph_save(self->graph, text, size);
}

static PyObject *text_of_graph(PyObject *object, bool drawing)
{
    const graph_object *self = graph_of(object);
    int64_t length = write_text(self, drawing, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (!text)
        return PyErr_NoMemory();
    write_text(self, drawing, text, (size_t)length + 1);
    PyObject *made = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
    free(text);
    return made;
}

static PyObject *graph_save(PyObject *self, PyObject *unused)
{
    (void)unused;
    return text_of_graph(self, false);
}

/* For pickle and copy: load() and its argument. */
static PyObject *graph_reduce(PyObject *self, PyObject *unused)
{
    PyObject *text = graph_save(self, unused);
    PyObject *load = text ? PyObject_GetAttrString((PyObject *)Py_TYPE(self), "load") : NULL;
    PyObject *made = load ? Py_BuildValue("(N(N))", load, text) : NULL;
    if (!load)
        Py_XDECREF(text);
    return made;
}

static PyObject *graph_repr(PyObject *self)
{
    PyObject *text = text_of_graph(self, false);
    PyObject *made = text ? PyUnicode_FromFormat("tarn.Graph.load(%R)", text) : NULL;
    Py_XDECREF(text);
    return made;
}

/* Equal graphs save the same text. They can change: there is no hash. */
static PyObject *graph_compare(PyObject *self, PyObject *other, int op)
{
    if (Py_TYPE(self) != Py_TYPE(other) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *mine = text_of_graph(self, false);
    PyObject *theirs = mine ? text_of_graph(other, false) : NULL;
    PyObject *is = theirs ? PyObject_RichCompare(mine, theirs, op) : NULL;
    Py_XDECREF(theirs);
    Py_XDECREF(mine);
    return is;
}

static PyObject *graph_dot(PyObject *self, PyObject *unused)
{
    (void)unused;
    return text_of_graph(self, true);
}

static PyObject *graph_view(PyObject *object, PyObject *args)
{
    graph_object *self = graph_of(object);
    tarn_value value;
    tarn_view view;
    tarn_error error;
    if (!PyArg_ParseTuple(args, "i", &value))
        return NULL;
    if (tarn_graph_view(self->graph, value, &view, &error))
        return raise_error(self->state, &error);
    PyObject *shape = make_tuple(view.rank, view.shape);
    return shape ? Py_BuildValue("sN", tarn_dtype_name(view.dtype), shape) : NULL;
}

static PyObject *graph_find(PyObject *object, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    tarn_value value = tarn_graph_find(graph_of(object)->graph, name);
    if (value >= 0)
        return PyLong_FromLong(value);
    PyErr_Format(PyExc_KeyError, "no value has the name '%s'", name);
    return NULL;
}

/* Bytes that a program holds: {"arena": ..., "without_reuse": ..., ...}. */
static PyObject *graph_memory(PyObject *object, PyObject *args)
{
    static const char *const words[TARN_MODES] = {"forward", "jvp", "vjp"};
    graph_object *self = graph_of(object);
    const char *word = "forward";
    int mode = 0;
    if (!PyArg_ParseTuple(args, "|s", &word))
        return NULL;
    while (mode < TARN_MODES && strcmp(word, words[mode]))
        mode++;
    if (mode == TARN_MODES)
        return PyErr_Format(PyExc_ValueError, "'%s' is not 'forward', 'jvp' or 'vjp'", word);
    int version = self->version;
    tarn_program *program = take_program(self, (tarn_mode)mode);
    tarn_memory memory;
    if (!program)
        return NULL;
    tarn_program_memory(program, &memory, NULL);
    return_program(self, (tarn_mode)mode, version, program);
    return Py_BuildValue("{sLsLsLsLsi}", "arena", (long long)memory.arena, "without_reuse",
                         (long long)memory.without_reuse, "floor", (long long)memory.floor, "saved",
                         (long long)memory.saved, "steps", memory.steps);
}

/* ---- The type ------------------------------------------------------------------------------ */

static PyMethodDef graph_methods[] = {
    {"input", graph_input, METH_VARARGS,
     "input($self, dtype, shape, /)\n--\n\nA tensor that every run is given, in the order of "
     "building."},
    {"constant", graph_constant, METH_O,
     "constant($self, array, /)\n--\n\nNumbers known now; they are copied."},
    {"pool", graph_pool, METH_VARARGS,
     "pool($self, x, pool, /)\n--\n\nA pool such as tarn.MaxPool(2) applied to the value x."},
    {"pad", graph_pad, METH_VARARGS,
     "pad($self, x, pad, /)\n--\n\nZeros around the last axes, as tarn.pad()."},
    {"unpad", graph_unpad, METH_VARARGS,
     "unpad($self, x, pad, /)\n--\n\nThe crop that undoes pad()."},
    {"add", graph_add, METH_VARARGS, "add($self, a, b, /)\n--\n\nThe sum of two values."},
    {"scale", graph_scale, METH_VARARGS,
     "scale($self, x, factor, /)\n--\n\nThe value times a number."},
    {"concat", graph_concat, METH_VARARGS,
     "concat($self, values, axis, /)\n--\n\nValues (at most 64) one behind the other along an "
     "axis."},
    {"reshape", graph_reshape, METH_VARARGS,
     "reshape($self, x, shape, /)\n--\n\nThe same elements under another shape."},
    {"flatten", graph_flatten, METH_VARARGS,
     "flatten($self, x, axis=1, /)\n--\n\nAll axes from `axis` on joined to one."},
    {"output", graph_output, METH_VARARGS,
     "output($self, value, /)\n--\n\nMakes a value an output; returns it."},
    {"name", graph_name, METH_VARARGS,
     "name($self, value, name, /)\n--\n\nNames a value for text and drawings; returns it."},
    {"find", graph_find, METH_VARARGS, "find($self, name, /)\n--\n\nThe value of that name."},
    {"view", graph_view, METH_VARARGS,
     "view($self, value, /)\n--\n\nDtype and shape of a value: ('f32', (1, 3, 8, 8))."},
    {"jvp", graph_jvp, METH_VARARGS,
     "jvp($self, inputs, tangents, /)\n--\n\n"
     "The tangents of the outputs, a tuple. Integers have none: give None, get None."},
    {"vjp", graph_vjp, METH_VARARGS,
     "vjp($self, inputs, cotangents, /)\n--\n\n"
     "The gradients of the inputs, a tuple; None for integers."},
    {"memory", graph_memory, METH_VARARGS,
     "memory($self, mode='forward', /)\n--\n\nThe bytes that a program of that mode holds."},
    {"__reduce__", graph_reduce, METH_NOARGS, NULL},
    {"save", graph_save, METH_NOARGS, "save($self, /)\n--\n\nThe text form of the graph."},
    {"load", graph_load, METH_VARARGS | METH_CLASS,
     "load(text, /)\n--\n\nThe graph of a text form; see docs/graph.md."},
    {"dot", graph_dot, METH_NOARGS, "dot($self, /)\n--\n\nThe graph as Graphviz DOT."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, "Graph()\n--\n\n"
                "Pools and the glue between them, built once, then run and differentiated.\n\n"
                "Values are numbers in the order of building. Calling the graph with its inputs "
                "gives a tuple\n"
                "of outputs, arrays of the library that the first input came from.\n\n"
                ">>> import numpy, tarn\n"
                ">>> g = tarn.Graph()\n"
                ">>> x = g.input('f64', (1, 2, 2))\n"
                ">>> y = g.output(g.scale(g.pool(x, tarn.MaxPool(2)), 10.0))\n"
                ">>> g(numpy.array([[[1.0, 4.0], [3.0, 2.0]]]))\n"
                "(array([[[40.]]]),)\n"
                ">>> g.vjp([numpy.array([[[1.0, 4.0], [3.0, 2.0]]])], [numpy.array([[[1.0]]])])\n"
                "(array([[[ 0., 10.],\n"
                "        [ 0.,  0.]]]),)\n"},
    {Py_tp_new, graph_new},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_call, graph_call},
    {Py_tp_repr, graph_repr},
    {Py_tp_richcompare, graph_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_methods, graph_methods},
    {0, NULL},
};

PyType_Spec graph_spec = {
    .name = "tarn._core.Graph",
    .basicsize = sizeof(graph_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};
