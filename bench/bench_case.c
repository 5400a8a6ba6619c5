#define _DEFAULT_SOURCE /* clock_gettime, madvise */
#include "bench_case.h"

#include "../src/scalar.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

void bench_stop(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

double bench_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

void *bench_allocate(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    size_t rounded = (bytes / page + 1) * page;
    void *memory = aligned_alloc(bytes < page ? 4096 : page, rounded);
    if (!memory)
        bench_stop("tensors", "out of memory");
#ifdef MADV_HUGEPAGE
    if (bytes >= page)
        madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memset(memory, 0, rounded);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

/* Random bits for integers, 32 of them at most; ordinary numbers of both signs for floats: no NaN,
 * no subnormal, which would be another benchmark. */
static void fill(tarn_view *view, size_t bytes, uint64_t state)
{
    size_t size = tarn_dtype_size(view->dtype);
    for (size_t at = 0; at + size <= bytes; at += size) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t bits = state ^ state >> 31;
        double value = (double)(int32_t)(bits >> 32) * 0x1p-31;
        if (view->dtype >= TARN_I64)
            bits >>= 32;
        if (view->dtype == TARN_F64)
            memcpy(&bits, &value, sizeof value);
        else if (view->dtype == TARN_F32)
            bits = bits_of_f32((float)value);
        else if (view->dtype == TARN_F16 || view->dtype == TARN_BF16)
            bits = view->dtype == TARN_F16 ? f16_narrow(value) : bf16_narrow(value);
        memcpy((char *)view->data + at, &bits,
               size); /* little endian, as all that tarn is fast on */
    }
}

static void make_tensors(bench_case *c)
{
    tarn_error error;
    for (int k = 0; k < BENCH_TENSORS; k++) {
        if (k < TARN_OPERANDS && tarn_plan_layout(c->serial, (tarn_operand)k, &c->view[k], &error))
            bench_stop("layout", error.message);
        c->bytes[k] =
            k < TARN_OPERANDS ? tarn_view_bytes(&c->view[k]) : tarn_plan_saved_bytes(c->serial);
        c->view[k].data = bench_allocate(c->bytes[k]);
    }
    const tarn_operand inputs[] = {TARN_X, TARN_DX, TARN_GY};
    for (int k = 0; k < 3; k++)
        fill(&c->view[inputs[k]], c->bytes[inputs[k]], (uint64_t)k + 1);
    if (bench_has(c, TARN_FORWARD_SAVED)) /* the backward pass wants true winners */
        bench_run(c, TARN_FORWARD_SAVED, false, 1);
}

/* ---- Opening ------------------------------------------------------------------------------- */

static tarn_plan *make_plan(const tarn_pool *pool, const tarn_view *x, int threads, uint32_t isa)
{
    tarn_error error;
    tarn_plan *plan;
    tarn_options options = tarn_options_default();
    options.isa = isa;
    if (threads > 1 && tarn_executor_threads(threads, &options.executor, &error))
        bench_stop("threads", error.message);
    if (tarn_plan_create(&plan, pool, x, &options, &error))
        bench_stop("plan", error.message);
    return plan;
}

bench_case *bench_open(const char *problem, int threads, uint32_t isa)
{
    tarn_error error;
    bench_case *c = calloc(1, sizeof *c);
    if (!c)
        bench_stop(problem, "out of memory");
    if (tarn_problem_parse(problem, &c->pool, &c->view[TARN_X], &error))
        bench_stop(problem, error.message);
    c->serial = make_plan(&c->pool, &c->view[TARN_X], 1, isa);
    c->threaded = make_plan(&c->pool, &c->view[TARN_X], threads, isa);
    make_tensors(c);
    return c;
}

void bench_close(bench_case *c)
{
    tarn_plan_destroy(c->serial);
    tarn_plan_destroy(c->threaded);
    for (int k = 0; k < BENCH_TENSORS; k++)
        free(c->view[k].data);
    free(c);
}

/* ---- Passes -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int reads[3], writes[3]; /* tensors, closed by -1; the first that is written is the result */
} passes[TARN_PASSES] = {
    [TARN_FORWARD] = {"fwd", {TARN_X, -1}, {TARN_Y, -1}},
    [TARN_FORWARD_SAVED] = {"train", {TARN_X, -1}, {TARN_Y, BENCH_SAVED, -1}},
    [TARN_FORWARD_INDICES] = {"indices", {TARN_X, -1}, {TARN_Y, TARN_INDICES, -1}},
    [TARN_JVP] = {"jvp", {TARN_X, TARN_DX, -1}, {TARN_DY, -1}},
    [TARN_VJP] = {"bwd_x", {TARN_X, TARN_GY, -1}, {TARN_GX, -1}},
    [TARN_VJP_SAVED] = {"bwd", {BENCH_SAVED, TARN_GY, -1}, {TARN_GX, -1}},
};

const char *bench_pass_name(const bench_case *c, tarn_pass pass)
{
    bool alone = pass == TARN_VJP && !bench_has(c, TARN_VJP_SAVED);
    return passes[alone ? TARN_VJP_SAVED : pass].name;
}

bool bench_has(const bench_case *c, tarn_pass pass)
{
    return tarn_plan_explain(c->serial, pass, NULL, 0) >= 0;
}

/* "forward: KERNEL, the fastest ..." */
void bench_kernel(const bench_case *c, tarn_pass pass, char *name, size_t size)
{
    char text[256] = "";
    tarn_plan_explain(c->serial, pass, text, sizeof text);
    const char *colon = strchr(text, ':');
    const char *begin = colon ? colon + 1 + strspn(colon + 1, " ") : text;
    snprintf(name, size, "%.*s", (int)strcspn(begin, ", "), begin);
}

static size_t total_bytes(const bench_case *c, const int *tensors, bool without_x)
{
    size_t bytes = 0;
    for (const int *k = tensors; *k >= 0; k++)
        if (*k != TARN_X || !without_x)
            bytes += c->bytes[*k];
    return bytes;
}

size_t bench_read_bytes(const bench_case *c, tarn_pass pass)
{
    bool linear =
        c->pool.op == TARN_AVG && pass >= TARN_JVP; /* its derivatives do not depend on x */
    return total_bytes(c, passes[pass].reads, linear);
}

size_t bench_written_bytes(const bench_case *c, tarn_pass pass)
{
    return total_bytes(c, passes[pass].writes, false);
}

tarn_operand bench_result(tarn_pass pass)
{
    return (tarn_operand)passes[pass].writes[0];
}

/* A loop for each pass: tiny problems shall not pay for choosing one. */
#define REPEAT(call)                                                                               \
    do                                                                                             \
        for (long k = 0; k < repeats && !status; k++)                                              \
            status = (call);                                                                       \
    while (0)

static tarn_status repeat_pass(const bench_case *c, const tarn_plan *plan, tarn_pass pass,
                               long repeats, tarn_error *error)
{
    tarn_status status = TARN_OK;
    const tarn_view *v = c->view;
    const void *x = v[TARN_X].data, *dx = v[TARN_DX].data, *gy = v[TARN_GY].data;
    void *y = v[TARN_Y].data, *dy = v[TARN_DY].data, *gx = v[TARN_GX].data;
    void *saved = v[BENCH_SAVED].data, *indices = v[TARN_INDICES].data;
    if (pass == TARN_FORWARD)
        REPEAT(tarn_forward(plan, x, y, NULL, error));
    else if (pass == TARN_FORWARD_SAVED)
        REPEAT(tarn_forward(plan, x, y, saved, error));
    else if (pass == TARN_FORWARD_INDICES)
        REPEAT(tarn_forward_indices(plan, x, y, indices, error));
    else if (pass == TARN_JVP)
        REPEAT(tarn_jvp(plan, x, dx, NULL, dy, error));
    else if (pass == TARN_VJP)
        REPEAT(tarn_vjp(plan, x, NULL, gy, gx, error));
    else
        REPEAT(tarn_vjp(plan, NULL, saved, gy, gx, error));
    return status;
}

double bench_run(const bench_case *c, tarn_pass pass, bool threaded, long repeats)
{
    tarn_error error;
    double begin = bench_now();
    if (repeat_pass(c, threaded ? c->threaded : c->serial, pass, repeats, &error))
        bench_stop(passes[pass].name, error.message);
    return bench_now() - begin;
}

double bench_run_planning(const bench_case *c, long repeats)
{
    double begin = bench_now();
    for (long k = 0; k < repeats; k++)
        tarn_plan_destroy(make_plan(&c->pool, &c->view[TARN_X], 1, 0));
    return bench_now() - begin;
}

void *bench_data(const bench_case *c, int tensor)
{
    return c->view[tensor].data;
}

const tarn_view *bench_view(const bench_case *c, int operand)
{
    return &c->view[operand];
}
