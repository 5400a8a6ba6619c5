/* Arguments of pools: numbers for every axis, names, words. */
#ifndef TARN_PYTHON_ARGUMENTS_H
#define TARN_PYTHON_ARGUMENTS_H

#include "module.h"

/* An integer; -1 with an exception set, which also a -1 may be: ask PyErr_Occurred(). */
int64_t parse_integer(PyObject *object, const char *name);

/* An integer for every axis, or one integer (or a sequence of one) for all. Returns 0 or -1. */
int parse_axes(PyObject *object, const char *name, int count, int64_t *values);

/* The same where each entry may also be a pair (before, behind). */
int parse_padding(PyObject *object, int count, int64_t *lo, int64_t *hi);

/* "first", "all" or "split". */
int parse_ties(PyObject *object, tarn_ties *ties);

/* "f32", ..., or what str() makes of another library's dtype: "float32", "torch.float32". */
int parse_dtype(PyObject *object, tarn_dtype *dtype);

/* A sequence of sizes, at most TARN_MAX_RANK. Returns how many, or -1. */
int parse_shape(PyObject *object, int64_t *shape);

/* The number of spatial axes, 1..TARN_MAX_SPATIAL; -1 with an exception. */
int parse_spatial(PyObject *object);

/* Pairs (before, behind), the last axis first, as torch.nn.functional.pad() has them. Returns the
 * number of axes, or -1. */
int parse_pairs(PyObject *object, int64_t *lo, int64_t *hi);

/* Sets the operator: one of tarn_op, or SUM, an average with divisor 1. */
enum { SUM = TARN_OPS };
void set_operator(tarn_pool *pool, long op);

/* What is skipped (None, "nan" or a number), and the least count, 1 if it is None. */
int parse_skip(PyObject *skip, PyObject *min_count, tarn_pool *pool);

/* Sets the one real number that the pool's operator takes: the p of Lp, the beta of smooth max. */
void set_number(tarn_pool *pool, double number);

#endif
