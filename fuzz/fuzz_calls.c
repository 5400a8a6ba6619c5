/* Calls besides plans of whole pools, from bytes: helpers, pools into views of any strides, pieces
 * of any boxes. Memory is as large as the tensors; the specification judges pieces. */
#include "fuzz_run.h"

enum { MOST_AXES = 6 };

/* Sizes and strides that may be anything. */
static tarn_view take_any_view(fuzz_bytes *b, int rank)
{
    int64_t shape[TARN_MAX_RANK] = {0};
    tarn_dtype dtype = (tarn_dtype)(fuzz_byte(b) % (TARN_DTYPES + 1));
    for (int a = 0; a < rank; a++)
        shape[a] = fuzz_number(b, 0, 9);
    tarn_view view = tarn_view_dense(NULL, dtype, rank, shape);
    for (int a = fuzz_byte(b) % 2 ? 0 : rank; a < rank; a++)
        view.strides[a] = fuzz_number(b, -3, 40);
    return view;
}

/* Memory for a tensor that is small; others have none, and must be refused. */
static fuzz_tensor make_if_small(const tarn_view *view, const fuzz_bytes *b)
{
    bool small = view->dtype < TARN_DTYPES && fuzz_reach(view) < 1e5;
    for (int a = 0; a < view->rank; a++)
        small = small && view->shape[a] >= 0;
    return small ? fuzz_make_tensor(view, b) : (fuzz_tensor){.view = *view};
}

static void expect_reason(tarn_status status, const tarn_error *error)
{
    fuzz_expect(error->code == status && (status != 0) == (error->message[0] != '\0'));
}

/* ---- Helpers -------------------------------------------------------------------------------- */

static void count_element(void *context, void *accumulator, const void *element)
{
    (void)context, (void)element;
    *(unsigned char *)accumulator += 1;
}

/* Mostly the shape that pad (1), unpad (-1) or fold (0) give. */
static tarn_view take_result(fuzz_bytes *b, const tarn_view *x, int spatial, int sign,
                             const int64_t *lo, const int64_t *hi)
{
    tarn_view y = *x;
    if (fuzz_byte(b) % 4 == 0)
        return take_any_view(b, (int)(fuzz_byte(b) % MOST_AXES));
    for (int a = 0; spatial <= x->rank && a < spatial; a++) {
        uint64_t padding = (uint64_t)lo[a] + (uint64_t)hi[a];
        int64_t *size = &y.shape[x->rank - spatial + a];
        *size = sign ? (int64_t)((uint64_t)*size + (uint64_t)sign * padding) : 1;
    }
    return tarn_view_dense(NULL, y.dtype, y.rank, y.shape);
}

static void call_helper(fuzz_bytes *b, unsigned which)
{
    int rank = (int)(fuzz_byte(b) % MOST_AXES), spatial = (int)fuzz_number(b, 1, 3);
    int64_t lo[TARN_MAX_SPATIAL] = {0}, hi[TARN_MAX_SPATIAL] = {0};
    for (int a = 0; a < 3; a++) {
        lo[a] = fuzz_number(b, 0, 3);
        hi[a] = fuzz_number(b, 0, 3);
    }
    tarn_view layout = take_any_view(b, rank), indices = layout;
    indices.dtype = TARN_I64;
    tarn_view result = take_result(b, &layout, spatial < 4 ? spatial : 0,
                                   which == 0   ? 1
                                   : which == 1 ? -1
                                                : 0,
                                   lo, hi);
    fuzz_tensor x = make_if_small(&layout, b), y = make_if_small(&result, b);
    fuzz_tensor places = make_if_small(&indices, b);
    for (size_t k = 0; k + 8 <= places.bytes; k += 8) {
        int64_t place = fuzz_number(b, -1, 30);
        memcpy(places.memory + k, &place, 8);
    }
    tarn_error error = {.code = TARN_OK};
    expect_reason(which == 0   ? tarn_pad(&x.view, spatial, lo, hi, &y.view, &error)
                  : which == 1 ? tarn_unpad(&x.view, spatial, lo, hi, &y.view, &error)
                  : which == 2
                      ? tarn_unpool(&x.view, &places.view, spatial, &y.view, &error)
                      : tarn_global_fold(&x.view, spatial, count_element, NULL, &y.view, &error),
                  &error);
    free(x.memory);
    free(y.memory);
    free(places.memory);
}

/* ---- Pools into views ----------------------------------------------------------------------- */

static void call_pool(fuzz_bytes *b)
{
    tarn_pool pool = fuzz_take_pool(b);
    tarn_view x = fuzz_take_view(b, &pool), y;
    tarn_error error;
    if (tarn_output_view(&pool, &x, &y, NULL) || fuzz_steps(&pool, &x, &y) > 3e4)
        return;
    tarn_view gx = tarn_view_dense(NULL, x.dtype, x.rank, x.shape);
    for (int a = 0; a < y.rank; a++)
        y.strides[a] = fuzz_number(b, -3, 60);
    for (int a = fuzz_byte(b) % 2 ? 0 : x.rank; a < x.rank; a++)
        gx.strides[a] = fuzz_number(b, -3, 60);
    tarn_view indices = y;
    indices.dtype = TARN_I64;
    const tarn_view *layouts[] = {&x, &gx, &gx, &y, &y, &indices};
    enum { X, DX, GX, Y, DY, INDICES, TENSORS };
    fuzz_tensor t[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        t[k] = make_if_small(layouts[k], b);
    expect_reason(tarn_pool_forward(&pool, &t[X].view, &t[Y].view, &error), &error);
    expect_reason(tarn_pool_indices(&pool, &t[X].view, NULL, &t[INDICES].view, &error), &error);
    expect_reason(tarn_pool_jvp(&pool, &t[X].view, &t[DX].view, &t[Y].view, &t[DY].view, &error),
                  &error);
    expect_reason(tarn_pool_vjp(&pool, &t[X].view, &t[Y].view, &t[GX].view, &error), &error);
    for (int k = 0; k < TENSORS; k++)
        free(t[k].memory);
}

/* ---- Pieces --------------------------------------------------------------------------------- */

/* What a piece says of its boxes must hold, and it must run. */
static void run_piece(const tarn_pool *piece, const tarn_view *x, const tarn_box *x_box,
                      const tarn_box *y_box, const fuzz_bytes *b)
{
    int64_t shape[TARN_MAX_RANK];
    for (int a = 0; a < x->rank; a++) {
        fuzz_expect(0 <= x_box->lo[a] && x_box->lo[a] <= x_box->hi[a]);
        fuzz_expect(x_box->hi[a] <= x->shape[a]);
        shape[a] = x_box->hi[a] - x_box->lo[a];
    }
    tarn_view part = tarn_view_dense(NULL, x->dtype, x->rank, shape), y;
    fuzz_expect(!tarn_output_view(piece, &part, &y, NULL));
    for (int a = 0; a < y.rank; a++)
        fuzz_expect(y.shape[a] == y_box->hi[a] - y_box->lo[a]);
    fuzz_problem(piece, &part, b);
}

/* Of ten pools one claims to be a piece already, of anything. */
static void cut_piece(fuzz_bytes *b)
{
    tarn_pool pool = fuzz_take_pool(b), piece;
    tarn_view x = fuzz_take_view(b, &pool);
    tarn_pass pass = (tarn_pass)(fuzz_byte(b) % 7);
    tarn_box box = {{0}, {0}}, x_box, y_box;
    tarn_error error;
    for (int a = 0; a < x.rank; a++) {
        box.lo[a] = fuzz_number(b, 0, 4);
        box.hi[a] = fuzz_number(b, 1, 9);
    }
    bool cut = fuzz_byte(b) % 10 == 9;
    for (int a = 0; cut && a < TARN_MAX_SPATIAL && a < pool.spatial; a++) {
        pool.whole[a] = fuzz_number(b, 0, 60);
        pool.origin[a] = fuzz_number(b, 0, 9);
        pool.first[a] = fuzz_number(b, 0, 5);
        pool.count[a] = fuzz_number(b, 0, 9);
    }
    if (cut)
        fuzz_problem(&pool, &x, b);
    tarn_status status = tarn_piece(&pool, &x, pass, &box, &piece, &x_box, &y_box, &error);
    expect_reason(status, &error);
    if (!status)
        run_piece(&piece, &x, &x_box, &y_box, b);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    fuzz_bytes bytes = {data, size, 0};
    unsigned which = fuzz_byte(&bytes) % 8;
    if (which < 4)
        call_helper(&bytes, which);
    else if (which < 6)
        call_pool(&bytes);
    else
        cut_piece(&bytes);
    return 0;
}
