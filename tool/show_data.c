#include "show_data.h"
#include "../src/checked.h"
#include "../src/error.h"
#include "../src/io/convert.h"

#include <stdlib.h>
#include <string.h>

enum {
    PLANES_SHOWN = 9,             /* leading indices beyond that are left out */
    MOST_CELLS = 64 * 1024 * 1024 /* of one tensor: half a gigabyte of numbers */
};

int64_t stack_count(const stack *s)
{
    return s->planes * s->depth * s->rows * s->columns;
}

double stack_at(const stack *s, int64_t plane, int64_t slice, int64_t row, int64_t column)
{
    return s->numbers[((plane * s->depth + slice) * s->rows + row) * s->columns + column];
}

/* ---- Tensors to numbers ---------------------------------------------------------------------- */

/* Shape of a stack: the last two of `spatial` axes are rows and columns. False if it is too
 * large. */
static bool shape_stack(stack *s, const tarn_view *view, int spatial)
{
    *s = (stack){.planes = 1, .depth = 1, .rows = 1, .columns = 1};
    int64_t count = 1;
    for (int a = 0; a < view->rank; a++) {
        int behind = view->rank - 1 - a;
        int64_t *side = behind >= spatial ? &s->planes
                        : behind >= 2     ? &s->depth
                        : behind == 1     ? &s->rows
                                          : &s->columns;
        if (!checked_mul(count, view->shape[a], &count) || count > MOST_CELLS)
            return false;
        *side *= view->shape[a];
    }
    return true;
}

static tarn_status check_memory(const void *memory, tarn_error *error)
{
    return memory ? TARN_OK
                  : tarn_fail(error, TARN_NO_MEMORY, NO_AXIS, "no memory for the arrays to show");
}

/* Room for the numbers of a tensor like `view`. */
static tarn_status make_stack(stack *s, const tarn_view *view, int spatial, tarn_error *error)
{
    if (!shape_stack(s, view, spatial))
        return tarn_fail(
            error, TARN_OVERFLOW, NO_AXIS,
            "more than %d cells: too many for a picture; crop the input, or pool it first",
            MOST_CELLS);
    s->numbers = calloc((size_t)(stack_count(s) > 0 ? stack_count(s) : 1), sizeof *s->numbers);
    return check_memory(s->numbers, error);
}

static tarn_view doubles_of(const stack *s, const tarn_view *like)
{
    return tarn_view_dense(s->numbers, TARN_F64, like->rank, like->shape);
}

static tarn_status read_stack(stack *s, const tarn_view *view, bool swapped, int spatial,
                              tarn_error *error)
{
    tarn_status status = make_stack(s, view, spatial, error);
    if (!status) {
        tarn_view numbers = doubles_of(s, view);
        tarn_convert(view, swapped, &numbers);
    }
    return status;
}

/* ---- The problem ---------------------------------------------------------------------------- */

/* Spatial axes of y: a flat one has none. */
static int output_spatial(const show_data *data)
{
    return data->pool.flat ? 0 : data->pool.spatial;
}

/* Keeps so many leading indices that at most PLANES_SHOWN pictures remain: the first ones. */
static tarn_view first_planes(const show_data *data, const tarn_view *full, int spatial)
{
    tarn_view view = *full;
    int64_t budget = PLANES_SHOWN;
    int axis = view.rank - spatial - 1;
    if (data->request->colour && axis >= 0) {
        view.shape[axis] = min_i64(view.shape[axis], data->channels); /* alpha is not looked at */
        axis--;
    }
    for (; axis >= 0; axis--) {
        view.shape[axis] = min_i64(view.shape[axis], budget);
        budget /= max_i64(view.shape[axis], 1);
    }
    return view;
}

/* A dense tensor of that shape; the caller frees its data. */
static tarn_status make_dense(tarn_view *view, const tarn_view *like, tarn_dtype dtype,
                              tarn_error *error)
{
    *view = tarn_view_dense(NULL, dtype, like->rank, like->shape);
    size_t bytes = tarn_view_bytes(view);
    view->data = calloc(bytes > 0 ? bytes : 1, 1);
    return check_memory(view->data, error);
}

static int64_t leading_indices(const tarn_view *view, int spatial)
{
    int64_t count = 1;
    for (int a = 0; a < view->rank - spatial; a++)
        count *= view->shape[a]; /* fits: the problem was checked */
    return count;
}

/* The part of x that is shown, in the type it is pooled in. */
static tarn_status load_input(show_data *data, tarn_error *error)
{
    const show_source *x = &data->request->x;
    tarn_view part = first_planes(data, &x->view, data->pool.spatial);
    stack shape;
    if (!shape_stack(&shape, &part, data->pool.spatial))
        return make_stack(&data->x, &part, data->pool.spatial, error); /* says what is wrong */
    tarn_status status = make_dense(&data->x_view, &part, data->request->dtype, error);
    if (status)
        return status;
    tarn_convert(&part, x->swapped, &data->x_view);
    data->left_out = leading_indices(&x->view, data->pool.spatial) - shape.planes;
    return read_stack(&data->x, &data->x_view, false, data->pool.spatial, error);
}

/* y in the type of x, as the program computes it, and the winners. */
static tarn_status compute_values(show_data *data, tarn_view *y, tarn_error *error)
{
    const tarn_view *x = &data->x_view;
    tarn_view like, indices = {0};
    tarn_status status = tarn_output_view(&data->pool, x, &like, error);
    if (!status)
        status = make_dense(y, &like, like.dtype, error);
    if (!status && (data->pool.op == TARN_MAX || data->pool.op == TARN_MIN)) {
        status = make_dense(&indices, &like, TARN_I64, error);
        data->winners = indices.data;
    }
    if (!status)
        status = data->winners ? tarn_pool_indices(&data->pool, x, y, &indices, error)
                               : tarn_pool_forward(&data->pool, x, y, error);
    data->y_dtype = y->dtype;
    return status ? status : read_stack(&data->y, y, false, output_spatial(data), error);
}

/* A tensor of the caller's, which must have the shape of `like`. */
static tarn_status read_given(const show_data *data, const show_source *given,
                              const tarn_view *like, int spatial, const char *what, stack *s,
                              tarn_error *error)
{
    tarn_view view = first_planes(data, &given->view, spatial);
    if (view.rank != like->rank ||
        memcmp(view.shape, like->shape, (size_t)like->rank * sizeof *like->shape) != 0)
        return tarn_fail(error, TARN_BAD_SHAPE, NO_AXIS,
                         "the %s does not have the shape of the %sput", what,
                         like == &data->x_view ? "in" : "out");
    return read_stack(s, &view, given->swapped, spatial, error);
}

static tarn_status make_ones(stack *gy, const tarn_view *y, int spatial, tarn_error *error)
{
    tarn_status status = make_stack(gy, y, spatial, error);
    for (int64_t k = 0; !status && k < stack_count(gy); k++)
        gy->numbers[k] = 1;
    return status;
}

/* gx in binary64, which is where integers have derivatives, too; gy NULL: ones. */
static tarn_status pull_back(const show_data *data, const tarn_view *y, const show_source *given,
                             stack *gx, tarn_error *error)
{
    stack gy = {0};
    int spatial = output_spatial(data);
    tarn_status status = given ? read_given(data, given, y, spatial, "cotangent", &gy, error)
                               : make_ones(&gy, y, spatial, error);
    if (!status)
        status = make_stack(gx, &data->x_view, data->pool.spatial, error);
    if (!status) {
        tarn_view x = doubles_of(&data->x, &data->x_view), cotangent = doubles_of(&gy, y);
        tarn_view gradient = doubles_of(gx, &data->x_view);
        status = tarn_pool_vjp(&data->pool, &x, &cotangent, &gradient, error);
    }
    free(gy.numbers);
    return status;
}

static tarn_status compute_gradients(show_data *data, const tarn_view *y, tarn_error *error)
{
    const show_source *given = data->request->gy;
    tarn_status status = pull_back(data, y, given, &data->gx, error);
    if (status || !data->winners)
        return status;
    if (given)
        return pull_back(data, y, NULL, &data->won, error);
    status = make_stack(&data->won, &data->x_view, data->pool.spatial, error);
    if (!status) /* the same, and computed already */
        memcpy(data->won.numbers, data->gx.numbers,
               (size_t)stack_count(&data->won) * sizeof *data->won.numbers);
    return status;
}

static tarn_status compute_tangent(show_data *data, const tarn_view *y, tarn_error *error)
{
    tarn_status status = read_given(data, data->request->dx, &data->x_view, data->pool.spatial,
                                    "tangent", &data->dx, error);
    if (!status)
        status = make_stack(&data->dy, y, output_spatial(data), error);
    if (status)
        return status;
    tarn_view x = doubles_of(&data->x, &data->x_view), dx = doubles_of(&data->dx, &data->x_view);
    tarn_view dy = doubles_of(&data->dy, y);
    return tarn_pool_jvp(&data->pool, &x, &dx, NULL, &dy, error);
}

static void note_sizes(show_data *data, const tarn_view *y)
{
    int spatial = data->pool.spatial;
    for (int a = 0; a < spatial; a++) {
        data->size[a] = data->x_view.shape[data->x_view.rank - spatial + a];
        data->out[a] = data->pool.flat ? 1 : y->shape[y->rank - spatial + a];
    }
}

tarn_status show_data_compute(show_data *data, const show_request *request, tarn_error *error)
{
    *data = (show_data){.request = request, .pool = request->pool};
    data->pool.flat = data->pool.window == TARN_GLOBAL && data->pool.flat;
    data->channels = request->colour ? 3 : 1;
    tarn_view y = {0}, typed = request->x.view, full;
    typed.dtype = request->dtype;
    tarn_status status = tarn_output_view(&data->pool, &typed, &full, error); /* checks all of x */
    if (!status)
        status = load_input(data, error);
    if (!status)
        status = compute_values(data, &y, error);
    if (!status) {
        note_sizes(data, &y);
        status = compute_gradients(data, &y, error);
    }
    if (!status && request->dx)
        status = compute_tangent(data, &y, error);
    free(y.data);
    return status;
}

void show_data_free(show_data *data)
{
    stack *const stacks[] = {&data->x, &data->y, &data->gx, &data->dx, &data->dy, &data->won};
    for (size_t k = 0; k < sizeof stacks / sizeof stacks[0]; k++)
        free(stacks[k]->numbers);
    free(data->x_view.data);
    free(data->winners);
}

/* ---- Windows -------------------------------------------------------------------------------- */

reach window_reach(const show_data *data, int axis, int64_t o)
{
    const tarn_pool *pool = &data->pool;
    int64_t size = data->size[axis];
    if (pool->window == TARN_GLOBAL)
        return (reach){0, size, 1};
    if (pool->window == TARN_ADAPTIVE) {
        int64_t start = tarn_adaptive_start(o, size, data->out[axis]);
        return (reach){start, tarn_adaptive_end(o, size, data->out[axis]) - start, 1};
    }
    return (reach){o * pool->stride[axis] - pool->pad_lo[axis], pool->kernel[axis],
                   pool->dilation[axis]};
}

int64_t reach_end(const reach *r)
{
    return r->first + (r->count - 1) * r->step + 1;
}
