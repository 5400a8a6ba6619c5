/* What `tarn show` shows: the arrays of one problem as numbers, and where its windows lie. */
#ifndef TARN_TOOL_SHOW_DATA_H
#define TARN_TOOL_SHOW_DATA_H

#include "tarn.h"

#include <stdbool.h>

/* A tensor as it lies in its file: axes in the library's order, perhaps not aligned. */
typedef struct show_source {
    tarn_view view;
    bool swapped; /* the bytes of an element come in the other order */
} show_source;

/* What is asked for. */
typedef struct show_request {
    const char *name; /* of the input, for the headline */
    tarn_pool pool;
    show_source x;
    tarn_dtype dtype; /* x is converted to it before pooling */
    bool colour;      /* the axis before the spatial ones is red, green, blue, perhaps alpha */
    double white;     /* colour: the number that is full light */
    /* cotangent of y; NULL: ones, so that gx is the gradient of the sum of y */
    const show_source *gy;
    const show_source *dx; /* tangent of x; NULL: no tangents are shown */
} show_request;

/* A tensor as planes (leading axes) of depth slices (outer spatial axes) of rows and columns. */
typedef struct stack {
    int64_t planes, depth, rows, columns; /* in this order: the last two are a slice's shape */
    double *numbers;                      /* NULL: there is no such tensor */
} stack;

/* Cells first, first+step, ... of one window on one axis: count of them, padding included. */
typedef struct reach {
    int64_t first, count, step;
} reach;

typedef struct show_data {
    const show_request *request;
    tarn_pool pool;
    /* what is pooled: the input less the leading indices that are not shown; dense */
    tarn_view x_view;
    int64_t size[TARN_MAX_SPATIAL], out[TARN_MAX_SPATIAL]; /* cells and windows on each axis */
    tarn_dtype y_dtype;
    stack x, y, gx, dx, dy;
    /* max, min: for each y the first cell of its plane that reaches it, or -1; else NULL */
    int64_t *winners;
    stack won; /* max, min: what each cell of x gets if every output gives 1; else no numbers */
    int64_t left_out; /* planes of x that are not shown */
    int channels;     /* planes that make one picture: 3 for colour, else 1 */
} show_data;

/* Computes everything; the request must outlive it. Errors: those of planning; OVERFLOW if there is
 * more than a picture can show, NO_MEMORY. Free with show_data_free(), also after an error. */
tarn_status show_data_compute(show_data *data, const show_request *request, tarn_error *error);
void show_data_free(show_data *data);

int64_t stack_count(const stack *s);
/* A cell; row and column need not be checked by callers that stay within the stack. */
double stack_at(const stack *s, int64_t plane, int64_t slice, int64_t row, int64_t column);

/* Window o on a spatial axis. */
reach window_reach(const show_data *data, int axis, int64_t o);
int64_t reach_end(const reach *r); /* one behind the last cell */

#endif
