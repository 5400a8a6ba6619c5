#include "arguments.h"

#include <string.h>

int64_t parse_integer(PyObject *object, const char *name)
{
    long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be an integer or integers, not %R", name,
                         object);
        else if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_OverflowError, "%s: %R does not fit 63 bits", name, object);
    }
    return value;
}

static int wrong_count(const char *name, Py_ssize_t count, int expected)
{
    return raise_argument("%s has %zd entries, expected 1 or %d", name, count, expected);
}

/* Entry k of a tuple or another sequence; a new reference. */
static PyObject *entry_of(PyObject *sequence, Py_ssize_t k)
{
    if (!PyTuple_Check(sequence))
        return PySequence_GetItem(sequence, k);
    PyObject *entry = PyTuple_GetItem(sequence, k);
    Py_XINCREF(entry);
    return entry;
}

static bool is_list(PyObject *object)
{
    return PyTuple_Check(object) ||
           (!PyLong_Check(object) && PySequence_Check(object) && !PyUnicode_Check(object));
}

int parse_axes(PyObject *object, const char *name, int count, int64_t *values)
{
    if (!is_list(object)) {
        int64_t value = parse_integer(object, name);
        for (int a = 0; a < count; a++)
            values[a] = value;
        return value == -1 && PyErr_Occurred() ? -1 : 0;
    }
    Py_ssize_t entries = PySequence_Size(object);
    if (entries != 1 && entries != count)
        return entries < 0 ? -1 : wrong_count(name, entries, count);
    for (int a = 0; a < count; a++) {
        PyObject *entry = entry_of(object, entries == 1 ? 0 : a);
        if (!entry)
            return -1;
        values[a] = parse_integer(entry, name);
        Py_DECREF(entry);
        if (values[a] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* An integer for both sides of an axis, or a pair. */
static int parse_sides(PyObject *entry, int64_t *lo, int64_t *hi)
{
    int64_t sides[2];
    if (parse_axes(entry, "padding", 2, sides))
        return -1;
    *lo = sides[0];
    *hi = sides[1];
    return 0;
}

int parse_padding(PyObject *object, int count, int64_t *lo, int64_t *hi)
{
    if (!is_list(object)) {
        if (parse_axes(object, "padding", count, lo))
            return -1;
        memcpy(hi, lo, (size_t)count * sizeof *hi);
        return 0;
    }
    Py_ssize_t entries = PySequence_Size(object);
    if (entries != 1 && entries != count)
        return entries < 0 ? -1 : wrong_count("padding", entries, count);
    for (int a = 0; a < count; a++) {
        PyObject *entry = entry_of(object, entries == 1 ? 0 : a);
        int failed = !entry || parse_sides(entry, &lo[a], &hi[a]);
        Py_XDECREF(entry);
        if (failed)
            return -1;
    }
    return 0;
}

/* The text of a str, valid while the object is; NULL with TypeError. */
static const char *text_of(PyObject *object, const char *name)
{
    if (PyUnicode_Check(object))
        return PyUnicode_AsUTF8AndSize(object, NULL);
    PyErr_Format(PyExc_TypeError, "%s must be a word, not %R", name, object);
    return NULL;
}

int parse_ties(PyObject *object, tarn_ties *ties)
{
    static const char *const words[TARN_TIES] = {"first", "all", "split"};
    const char *text = text_of(object, "ties");
    for (int k = 0; text && k < TARN_TIES; k++)
        if (!strcmp(text, words[k])) {
            *ties = (tarn_ties)k;
            return 0;
        }
    if (text)
        PyErr_Format(PyExc_ValueError, "ties must be 'first', 'all' or 'split', not %R", object);
    return -1;
}

static bool names_dtype(const char *text, tarn_dtype dtype)
{
    static const char *const long_names[TARN_DTYPES] = {"float64", "float32", "float16", "bfloat16",
                                                        "int8",    "uint8",   "int16",   "uint16",
                                                        "int32",   "uint32",  "int64",   "uint64"};
    return !strcmp(text, tarn_dtype_name(dtype)) || !strcmp(text, long_names[dtype]);
}

int parse_dtype(PyObject *object, tarn_dtype *dtype)
{
    /* A scalar type such as numpy.float32 has its name in __name__, other dtypes in str(). */
    PyObject *word = PyObject_GetAttrString(object, "__name__");
    if (!word) {
        PyErr_Clear();
        word = PyObject_Str(object);
    }
    const char *text = word ? text_of(word, "dtype") : NULL;
    const char *dot = text ? strrchr(text, '.') : NULL;
    int found = -1;
    for (int k = 0; text && k < TARN_DTYPES; k++)
        if (names_dtype(dot ? dot + 1 : text, (tarn_dtype)k))
            found = k;
    if (text && found < 0)
        PyErr_Format(PyExc_TypeError, "%R is no dtype of tarn", object);
    Py_XDECREF(word);
    *dtype = (tarn_dtype)found;
    return found < 0 ? -1 : 0;
}

int parse_shape(PyObject *object, int64_t *shape)
{
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0)
        return -1;
    if (count > TARN_MAX_RANK)
        return raise_argument("a shape of %zd sizes; there may be %d", count, TARN_MAX_RANK);
    if (count == 0)
        return 0;
    if (count == 1) { /* parse_axes() would take a nested sequence for it */
        PyObject *entry = PySequence_GetItem(object, 0);
        shape[0] = entry ? parse_integer(entry, "shape") : -1;
        Py_XDECREF(entry);
        return PyErr_Occurred() ? -1 : 1;
    }
    return parse_axes(object, "shape", (int)count, shape) ? -1 : (int)count;
}

int parse_spatial(PyObject *object)
{
    int64_t spatial = parse_integer(object, "ndim");
    if (spatial == -1 && PyErr_Occurred())
        return -1;
    if (spatial < 1 || spatial > TARN_MAX_SPATIAL)
        return raise_argument("ndim is %lld, not in 1..%d", (long long)spatial, TARN_MAX_SPATIAL);
    return (int)spatial;
}

int parse_pairs(PyObject *object, int64_t *lo, int64_t *hi)
{
    int64_t numbers[TARN_MAX_RANK];
    int count = parse_shape(object, numbers);
    if (count < 0)
        return -1;
    if (count % 2 || count < 2 || count > 2 * TARN_MAX_SPATIAL)
        return raise_argument("pad has %d numbers, expected pairs for 1 to %d axes", count,
                              TARN_MAX_SPATIAL);
    int spatial = count / 2;
    for (int a = 0; a < spatial; a++) {
        lo[a] = numbers[2 * (spatial - 1 - a)];
        hi[a] = numbers[2 * (spatial - 1 - a) + 1];
    }
    return spatial;
}

void set_operator(tarn_pool *pool, long op)
{
    pool->op = op == SUM ? TARN_AVG : (tarn_op)op;
    if (op == SUM)
        pool->divisor = 1;
}

static int parse_skipped_real(PyObject *object, tarn_pool *pool)
{
    double number = PyFloat_AsDouble(object);
    if (PyErr_Occurred())
        return -1;
    pool->skip = number == number ? TARN_SKIP_REAL : TARN_SKIP_NAN;
    pool->skip_real = number == number ? number : 0;
    return 0;
}

static int parse_skipped_integer(PyObject *object, tarn_pool *pool)
{
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return -1;
    pool->skip = TARN_SKIP_INTEGER;
    pool->skip_integer = PyLong_AsLongLong(number);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        pool->skip = TARN_SKIP_UNSIGNED;
        pool->skip_integer = (int64_t)PyLong_AsUnsignedLongLong(number);
    }
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int parse_skipped(PyObject *object, tarn_pool *pool)
{
    if (PyUnicode_Check(object) && !PyUnicode_CompareWithASCIIString(object, "nan")) {
        pool->skip = TARN_SKIP_NAN;
        return 0;
    }
    int failed = PyIndex_Check(object) ? parse_skipped_integer(object, pool)
                                       : parse_skipped_real(object, pool);
    if (failed && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "skip must be None, nan or a number, not %R", object);
    return failed;
}

int parse_skip(PyObject *skip, PyObject *min_count, tarn_pool *pool)
{
    if (skip != Py_None && parse_skipped(skip, pool))
        return -1;
    if (min_count == Py_None)
        return 0;
    if (skip == Py_None)
        return raise_argument("min_count needs skip");
    pool->min_count = parse_integer(min_count, "min_count");
    return pool->min_count == -1 && PyErr_Occurred() ? -1 : 0;
}

void set_number(tarn_pool *pool, double number)
{
    if (pool->op == TARN_LP)
        pool->power = number;
    else
        pool->beta = number;
}
