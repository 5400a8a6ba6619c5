/* How a training loop uses the library: plan once, then for every batch a forward pass that keeps
 * the winners and a backward pass that needs only them. Threads and memory are the caller's own. */
#include "tarn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 3, THREADS = 2 };

/* ---- The caller's threads ------------------------------------------------------------------ */

typedef struct {
    void (*body)(void *argument, int index);
    void *argument;
    int index;
    pthread_t thread;
    int started;
} part;

static void *run_part(void *argument)
{
    part *p = argument;
    p->body(p->argument, p->index);
    return NULL;
}

/* A tarn_parallel_for: part 0 runs here, every other in a thread of its own. A real program would
 * hand the parts to its pool of threads. The library promises the same bits whoever runs them. */
static void run_in_threads(void *context, int count, void (*body)(void *argument, int index),
                           void *argument)
{
    part parts[THREADS]; /* count is never more than the parts asked for below */
    (void)context;       /* a pool of threads would be here */
    for (int k = 1; k < count; k++) {
        parts[k] = (part){.body = body, .argument = argument, .index = k};
        parts[k].started = pthread_create(&parts[k].thread, NULL, run_part, &parts[k]) == 0;
    }
    body(argument, 0);
    for (int k = 1; k < count; k++)
        if (parts[k].started)
            pthread_join(parts[k].thread, NULL);
        else
            body(argument, k); /* no thread to be had: the work must be done all the same */
}

/* ---- The caller's memory ------------------------------------------------------------------- */

/* Plans are the only thing the library ever allocates, one block each. This one counts them. */
static void *count_and_allocate(void *context, size_t bytes)
{
    ++*(int *)context;
    return malloc(bytes);
}

static void count_and_release(void *context, void *memory)
{
    --*(int *)context;
    free(memory);
}

/* ---- The training step --------------------------------------------------------------------- */

static void must(tarn_status status, const tarn_error *error)
{
    if (status) {
        fprintf(stderr, "train_step: %s: %s\n", tarn_status_name(status), error->message);
        exit(EXIT_FAILURE);
    }
}

static size_t count_elements(const tarn_view *view)
{
    size_t count = 1;
    for (int a = 0; a < view->rank; a++)
        count *= (size_t)view->shape[a];
    return count;
}

static float *allocate_like(const tarn_view *view)
{
    float *data = calloc(count_elements(view), sizeof *data);
    if (!data) {
        fputs("train_step: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return data;
}

/* What the layer before this one would have computed: numbers in [-1,1). */
static void make_batch(float *x, size_t count, uint32_t seed)
{
    for (size_t k = 0; k < count; k++) {
        seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
        x[k] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

/* The loss of this toy is half the sum of the squares of y, so its gradient there is y itself. */
static double loss_of(const float *y, size_t count)
{
    double loss = 0;
    for (size_t k = 0; k < count; k++)
        loss += 0.5 * (double)y[k] * (double)y[k];
    return loss;
}

static tarn_plan *make_plan(const tarn_view *x, int *live_plans)
{
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 2, 1);
    tarn_options options = tarn_options_default();
    options.executor = (tarn_executor){.parts = THREADS, .parallel_for = run_in_threads};
    options.allocator = (tarn_allocator){count_and_allocate, count_and_release, live_plans};
    tarn_plan *plan;
    tarn_error error;
    must(tarn_plan_create(&plan, &pool, x, &options, &error), &error);
    return plan;
}

int main(void)
{
    int live_plans = 0;
    tarn_error error;
    /* Batch, channels, height, width. Only the layout is needed to plan, not the numbers. */
    tarn_view x_view = tarn_view_dense(NULL, TARN_F32, 4, (int64_t[]){2, 16, 56, 56}), y_view;
    tarn_plan *plan = make_plan(&x_view, &live_plans);
    must(tarn_plan_layout(plan, TARN_Y, &y_view, &error), &error);

    size_t inputs = count_elements(&x_view), outputs = count_elements(&y_view);
    float *x = allocate_like(&x_view), *gx = allocate_like(&x_view), *y = allocate_like(&y_view);
    void *saved = malloc(tarn_plan_saved_bytes(plan));
    if (!saved)
        return EXIT_FAILURE;
    printf("%zu inputs, %zu outputs, %zu bytes of saved winners, %d plan\n", inputs, outputs,
           tarn_plan_saved_bytes(plan), live_plans);

    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        make_batch(x, inputs, batch);
        must(tarn_forward(plan, x, y, saved, &error), &error);
        /* The winners are all that the backward pass needs: x may be overwritten, or NULL. */
        must(tarn_vjp(plan, NULL, saved, y, gx, &error), &error);

        size_t reached = 0;
        for (size_t k = 0; k < inputs; k++)
            reached += gx[k] != 0;
        printf("batch %u: loss %.3f, gradient reaches %zu of %zu inputs\n", (unsigned)batch,
               loss_of(y, outputs), reached, inputs);
    }

    tarn_plan_destroy(plan);
    free(saved);
    free(x);
    free(y);
    free(gx);
    return live_plans == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
