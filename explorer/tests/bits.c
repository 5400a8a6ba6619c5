/* usage: bits SEED COUNT
 * Random problems with hostile values through the native library, to standard output: for each, the
 * problem string with its length before it, then x, dx, gy, y, indices, dy, gx, as far as it has
 * them. The page must give the same bytes. */
#include "random_problem.h"

enum { MOST = 4096 }; /* elements of a tensor */

static void write_tensor(const void *data, size_t bytes)
{
    uint32_t length = (uint32_t)bytes;
    fwrite(&length, 4, 1, stdout);
    fwrite(data, 1, bytes, stdout);
}

/* The elements of a view in row-major order. */
static void write_view(const tarn_view *view, const void *data)
{
    static char dense[MOST * 8];
    size_t size = tarn_dtype_size(view->dtype), count = 1;
    for (int a = 0; a < view->rank; a++)
        count *= (size_t)view->shape[a];
    for (size_t k = 0; k < count; k++) {
        size_t rest = k;
        int64_t offset = 0;
        for (int a = view->rank - 1; a >= 0; a--) {
            offset += (int64_t)(rest % (size_t)view->shape[a]) * view->strides[a];
            rest /= (size_t)view->shape[a];
        }
        memcpy(dense + k * size, (const char *)data + (size_t)offset * size, size);
    }
    write_tensor(dense, count * size);
}

int main(int argc, char **argv)
{
    static uint64_t memory[TARN_OPERANDS][MOST];
    if (argc != 3)
        return 2;
    rng r = {strtoull(argv[1], NULL, 10)};
    for (int left = atoi(argv[2]); left > 0;) {
        char text[256];
        tarn_pool pool;
        tarn_view x, view[TARN_OPERANDS];
        tarn_plan *plan;
        random_problem(&r, text);
        if (tarn_problem_parse(text, &pool, &x, NULL))
            return 1;
        if (tarn_plan_create(&plan, &pool, &x, NULL, NULL))
            continue; /* does not fit */
        bool fits = true;
        for (int k = 0; k < TARN_OPERANDS; k++) {
            tarn_plan_layout(plan, (tarn_operand)k, &view[k], NULL);
            fits = fits && tarn_view_bytes(&view[k]) <= sizeof memory[k];
        }
        if (!fits) {
            tarn_plan_destroy(plan);
            continue;
        }
        size_t cells = tarn_view_bytes(&view[TARN_X]) / tarn_dtype_size(x.dtype);
        size_t outs = tarn_view_bytes(&view[TARN_Y]) / tarn_dtype_size(x.dtype);
        fill(&r, memory[TARN_X], x.dtype, cells);
        fill(&r, memory[TARN_DX], x.dtype, cells);
        fill(&r, memory[TARN_GY], x.dtype, outs);
        bool extreme = pool.op == TARN_MAX || pool.op == TARN_MIN, real = x.dtype <= TARN_BF16;
        tarn_status status = tarn_forward(plan, memory[TARN_X], memory[TARN_Y], NULL, NULL);
        if (extreme)
            status |= tarn_forward_indices(plan, memory[TARN_X], NULL,
                                           (int64_t *)memory[TARN_INDICES], NULL);
        if (real) {
            status |= tarn_jvp(plan, memory[TARN_X], memory[TARN_DX], NULL, memory[TARN_DY], NULL);
            status |= tarn_vjp(plan, memory[TARN_X], NULL, memory[TARN_GY], memory[TARN_GX], NULL);
        }
        if (status)
            return 1;
        static const int order[] = {TARN_X,       TARN_DX, TARN_GY, TARN_Y,
                                    TARN_INDICES, TARN_DY, TARN_GX};
        write_tensor(text, strlen(text));
        for (int k = 0; k < 7; k++)
            if ((order[k] != TARN_INDICES || extreme) && (k < 5 || real))
                write_view(&view[order[k]], memory[order[k]]);
        tarn_plan_destroy(plan);
        left--;
    }
    return 0;
}
