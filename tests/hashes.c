/* usage: hashes [SEED [COUNT]]
 * Random problems with hostile values through whatever library this is linked with: one hash of all
 * values, indices and derivatives for each dtype, and one of all. Two builds that print the same
 * lines give the same bits. */
#include "random_problem.h"

enum { MOST = 4096 }; /* elements of a tensor */

static uint64_t memory[TARN_OPERANDS][MOST];

static uint64_t hash_view(uint64_t hash, const tarn_view *view, const void *data)
{
    size_t size = tarn_dtype_size(view->dtype);
    return hash_elements(hash, data, size, tarn_view_bytes(view) / size); /* it is dense */
}

/* The results of one problem, into the hash; false if it is none that fits. */
static bool hash_problem(rng *r, tarn_dtype *dtype, uint64_t *hashes)
{
    char text[256];
    tarn_pool pool;
    tarn_view x, view[TARN_OPERANDS];
    tarn_plan *plan;
    tarn_error error;
    random_problem(r, text);
    CHECK(tarn_problem_parse(text, &pool, &x, &error) == TARN_OK, "%s: %s", text, error.message);
    if (tarn_plan_create(&plan, &pool, &x, NULL, &error))
        return false;
    bool fits = true, real = x.dtype <= TARN_BF16, extreme = pool.op <= TARN_MIN;
    for (int k = 0; k < TARN_OPERANDS; k++) {
        tarn_plan_layout(plan, (tarn_operand)k, &view[k], NULL);
        fits = fits && tarn_view_bytes(&view[k]) <= sizeof memory[k];
    }
    if (fits) {
        size_t size = tarn_dtype_size(x.dtype);
        fill(r, memory[TARN_X], x.dtype, tarn_view_bytes(&view[TARN_X]) / size);
        fill(r, memory[TARN_DX], x.dtype, tarn_view_bytes(&view[TARN_DX]) / size);
        fill(r, memory[TARN_GY], x.dtype, tarn_view_bytes(&view[TARN_GY]) / size);
        CHECK(!tarn_forward(plan, memory[TARN_X], memory[TARN_Y], NULL, &error), "%s", text);
        CHECK(!extreme || !tarn_forward_indices(plan, memory[TARN_X], NULL,
                                                (int64_t *)memory[TARN_INDICES], &error),
              "%s", text);
        CHECK(!real ||
                  !tarn_jvp(plan, memory[TARN_X], memory[TARN_DX], NULL, memory[TARN_DY], &error),
              "%s", text);
        CHECK(!real ||
                  !tarn_vjp(plan, memory[TARN_X], NULL, memory[TARN_GY], memory[TARN_GX], &error),
              "%s", text);
        static const tarn_operand written[] = {TARN_Y, TARN_INDICES, TARN_DY, TARN_GX};
        for (int k = 0; k < 4; k++)
            if (k == 0 || (k == 1 && extreme) || (k > 1 && real))
                hashes[x.dtype] = hash_view(hashes[x.dtype], &view[written[k]], memory[written[k]]);
    }
    *dtype = x.dtype;
    tarn_plan_destroy(plan);
    return fits;
}

int main(int argc, char **argv)
{
    rng r = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    int count = argc > 2 ? atoi(argv[2]) : 4000, problems[TARN_DTYPES] = {0};
    uint64_t hashes[TARN_DTYPES], all = HASH_BEGIN;
    for (int k = 0; k < TARN_DTYPES; k++)
        hashes[k] = HASH_BEGIN;
    for (int done = 0; done < count;) {
        tarn_dtype dtype;
        bool fits = hash_problem(&r, &dtype, hashes);
        done += fits;
        if (fits)
            problems[dtype]++;
    }
    for (int k = 0; k < TARN_DTYPES; k++) {
        printf("%-4s  %4d problems  %016llx\n", tarn_dtype_name((tarn_dtype)k), problems[k],
               (unsigned long long)hashes[k]);
        all = (all ^ hashes[k]) * UINT64_C(0x100000001b3);
    }
    printf("all   %4d problems  %016llx\n", count, (unsigned long long)all);
    return checks_failed > 0;
}
