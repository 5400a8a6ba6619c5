/* usage: bits SEED COUNT
 * Random problems with hostile values through the native library, to standard output: for each, the
 * problem string with its length before it, then x, dx, gy, y, indices, dy, gx, as far as it has them.
 * The page must give the same bytes. */
#include "check.h"

enum { MOST = 4096 }; /* elements of a tensor */

static void write_tensor(const void *data, size_t bytes)
{
    uint32_t length = (uint32_t)bytes;
    fwrite(&length, 4, 1, stdout);
    fwrite(data, 1, bytes, stdout);
}

/* Few distinct values, so that there are ties; then bits of all kinds: NaN with payloads, infinities,
 * zeros of both signs, subnormals. */
static void fill(rng *r, void *data, tarn_dtype dtype, size_t count)
{
    size_t size = tarn_dtype_size(dtype);
    int kind = (int)rng_range(r, 0, 3);
    for (size_t k = 0; k < count; k++) {
        uint64_t bits = rng_next(r);
        double number = (double)rng_range(r, -4, 4);
        float single = (float)number;
        if (kind == 1 || (kind == 2 && bits % 8))
            bits = bits % 5 == 0 ? 0 : bits % 5 == 1 ? UINT64_C(1) << (8 * size - 1) : bits;
        if (dtype == TARN_F64 && kind != 3)
            memcpy(&bits, &number, 8);
        if (dtype == TARN_F32 && kind != 3)
            memcpy(&bits, &single, 4);
        if (dtype > TARN_BF16 && kind != 3)
            bits = (uint64_t)(int64_t)number;
        if ((kind == 1 || kind == 2) && rng_range(r, 0, 7) == 0)
            bits = rng_next(r) | (rng_range(r, 0, 1) ? UINT64_C(0x7ff07ff07f807f80) : 0);
        memcpy((char *)data + k * size, &bits, size);
    }
}

static int random_axis(rng *r, char *text, tarn_window window, int part)
{
    static const char *const prefix[] = {"k", "s", "p", "e"};
    if (window == TARN_ADAPTIVE)
        return sprintf(text, "a%d", (int)rng_range(r, 1, 6));
    if (part == 2)
        return sprintf(text, "p%d:%d", (int)rng_range(r, 0, 3), (int)rng_range(r, 0, 3));
    return sprintf(text, "%s%d", prefix[part], (int)rng_range(r, 1, part == 0 ? 5 : 3));
}

static void random_problem(rng *r, char *text)
{
    static const char *const ops[] = {"max", "min", "avg", "smooth", "lp"};
    static const char *const ties[] = {"first", "all", "split"};
    int op = (int)rng_range(r, 0, 4), spatial = (int)rng_range(r, 1, 3);
    int window = (int)rng_range(r, 0, 5); /* sliding more often than not */
    text += sprintf(text, "%s ", ops[op]);
    if (window == 5)
        text += sprintf(text, "global%s", rng_range(r, 0, 1) ? " flat" : "");
    else if (window == 4)
        text += random_axis(r, text, TARN_ADAPTIVE, 0);
    else
        for (int part = 0; part < 4; part++)
            text += random_axis(r, text, TARN_SLIDING, part);
    text += sprintf(text, " %s d%d %dx%d",
                    tarn_dtype_name((tarn_dtype)rng_range(r, 0, op > 2 ? 3 : 11)), spatial,
                    (int)rng_range(r, 1, 2), (int)rng_range(r, 1, 3));
    for (int a = 0; a < spatial; a++)
        text += sprintf(text, "x%d", (int)rng_range(r, 1, spatial == 3 ? 7 : 14));
    text += sprintf(text, "%s%s%s", rng_range(r, 0, 3) ? "" : " last",
                    window < 4 && rng_range(r, 0, 1) ? " ceil" : "",
                    (op == 2 || op == 3) && rng_range(r, 0, 1) ? " nopad" : "");
    if (op < 2)
        sprintf(text, " ties=%s", ties[rng_range(r, 0, 2)]);
    if (op == 2 && window < 4 && rng_range(r, 0, 2) == 0)
        sprintf(text, " div=%d", (int)rng_range(r, 1, 9));
    if (op == 3)
        sprintf(text, " beta=%g", (rng_unit(r) - 0.5) * 40);
    if (op == 4)
        sprintf(text, " p=%g",
                rng_range(r, 0, 1) ? (double)rng_range(r, 1, 4) : 1 + 9 * rng_unit(r));
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
