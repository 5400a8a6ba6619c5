/* A tour of tarn on a grey picture: `demo FILE.pgm`. Shows what pooling, its indices and its
 * derivatives do, and checks what can be checked: the exit status is 1 if a check fails. */
#define _POSIX_C_SOURCE 200809L /* isatty, clock_gettime */
#include "tarn.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 24, WIDEST = 76, CROP = 6, POOLED = CROP / 2, ROUNDS = 9 };

typedef struct {
    int64_t size[2]; /* rows, columns */
    unsigned char *pixels;
} picture;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "demo: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* Every call of the library goes through here: no status is dropped. */
static void must(tarn_status status, const tarn_error *error)
{
    if (status)
        stop(tarn_status_name(status), error->message);
}

/* The next number of the header, with the one space behind it; 0 if there is none. */
static int read_number(FILE *file)
{
    int letter = getc(file), number = 0;
    for (bool comment = false; letter != EOF; letter = getc(file)) {
        comment = letter == '#' || (comment && letter != '\n');
        if (!comment && !isspace(letter))
            break;
    }
    for (; isdigit(letter) && number <= 65535; letter = getc(file))
        number = number * 10 + (letter - '0');
    return isspace(letter) ? number : 0;
}

static picture read_picture(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        stop(path, "cannot be opened");
    bool binary_pgm = getc(file) == 'P' && getc(file) == '5';
    int width = read_number(file), height = read_number(file), white = read_number(file);
    if (!binary_pgm || width < 8 || width > 4096 || height < 8 || height > 4096 || white < 1 ||
        white > 255)
        stop(path, "not a binary PGM (P5) of 8 bits a pixel and 8 to 4096 pixels a side");
    size_t count = (size_t)width * (size_t)height;
    picture p = {{height, width}, malloc(count)};
    if (!p.pixels || fread(p.pixels, 1, count, file) != count)
        stop(path, p.pixels ? "ends before the last pixel" : "no memory for it");
    fclose(file);
    return p;
}

static void show_picture(const picture *p)
{
    puts("-- 1. The picture, by adaptive average pooling ---------------------------------");
    const char *term = getenv("TERM");
    bool blocks = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
    int64_t columns = 2 * ROWS * p->size[1] / p->size[0]; /* characters are taller than wide */
    columns = columns > WIDEST ? WIDEST : columns > 0 ? columns : 1;
    int64_t step = blocks ? 2 : 1, out[2] = {ROWS * step, columns};
    unsigned char shade[2 * ROWS * WIDEST];
    tarn_error error;
    tarn_pool pool = tarn_adaptive_avg_pool(2, out);
    tarn_view x = tarn_view_dense(p->pixels, TARN_U8, 2, p->size);
    tarn_view y = tarn_view_dense(shade, TARN_U8, 2, out);
    must(tarn_pool_forward(&pool, &x, &y, &error), &error);
    for (unsigned char *row = shade; row < shade + out[0] * columns; row += step * columns) {
        for (int64_t k = 0; k < columns; k++)
            if (blocks) /* two pixels in one character, in the 24 greys of the 256 colours */
                printf("\033[38;5;%d;48;5;%dm\u2580", 232 + row[k] * 24 / 256,
                       232 + row[columns + k] * 24 / 256);
            else
                putchar(" .:-=+*#%@"[row[k] * 10 / 256]);
        puts(blocks ? "\033[0m" : "");
    }
}

static void show_plan(const picture *p)
{
    puts("-- 2. A plan: max over 3x3, stride 2, padding 1, in bytes ----------------------");
    char text[400];
    tarn_error error;
    tarn_plan *plan;
    tarn_pool pool = tarn_max_pool2d_padded(3, 3, 2, 1);
    tarn_view y, x = tarn_view_dense(NULL, TARN_U8, 2, p->size);
    must(tarn_plan_create(&plan, &pool, &x, NULL, &error), &error);
    must(tarn_plan_layout(plan, TARN_Y, &y, &error), &error);
    tarn_problem_format(&pool, &x, text, sizeof text);
    printf("\"%s\" gives %dx%d\n", text, (int)y.shape[0], (int)y.shape[1]);
    tarn_plan_explain(plan, TARN_FORWARD, text, sizeof text);
    tarn_plan_destroy(plan);
    int column = 0;
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        bool wrap = column + strlen(word) > 78;
        column = printf("%s%s", wrap ? "\n" : column ? " " : "", word) + (wrap ? -1 : column);
    }
    puts("");
}

typedef struct {
    tarn_plan *plan;
    size_t count[TARN_INDICES]; /* elements of each operand before the indices */
    double *data[TARN_INDICES];
} problem;

/* Pooling of the picture in f64; what is not the picture is arbitrary numbers in [0,1). */
static problem make_problem(const picture *p, const char *words, uint32_t isa)
{
    char text[80];
    problem q;
    tarn_error error;
    tarn_pool pool;
    tarn_view view;
    tarn_options options = tarn_options_default();
    options.isa = isa;
    snprintf(text, sizeof text, "%s f64 %dx%d", words, (int)p->size[0], (int)p->size[1]);
    must(tarn_problem_parse(text, &pool, &view, &error), &error);
    must(tarn_plan_create(&q.plan, &pool, &view, &options, &error), &error);
    for (int k = 0; k < TARN_INDICES; k++) {
        must(tarn_plan_layout(q.plan, (tarn_operand)k, &view, &error), &error);
        q.count[k] = (size_t)(view.shape[0] * view.shape[1]);
        q.data[k] = malloc(q.count[k] * sizeof(double));
        if (!q.data[k])
            stop(text, "no memory for it");
        for (uint32_t i = 0; i < q.count[k]; i++)
            q.data[k][i] = k == TARN_X ? p->pixels[i] : (i + 1) * UINT32_C(2654435761) * 0x1p-32;
    }
    return q;
}

/* y and dy = J dx, then gx = J' gy. Returns the microseconds it took. */
static double compute(const problem *q)
{
    tarn_error error;
    struct timespec begin, end;
    double *const *data = q->data;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    must(tarn_jvp(q->plan, data[TARN_X], data[TARN_DX], data[TARN_Y], data[TARN_DY], &error),
         &error);
    must(tarn_vjp(q->plan, data[TARN_X], NULL, data[TARN_GY], data[TARN_GX], &error), &error);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
}

static void drop_problem(problem *q)
{
    tarn_plan_destroy(q->plan);
    for (int k = 0; k < TARN_INDICES; k++)
        free(q->data[k]);
}

/* Table 0 is 6x6; right of it the 3x3 tables 1 and 2 stand above 3 and 4. Titles are line 0. */
static void print_tables(const char *const *titles, const double *const *values)
{
    for (int line = 0; line < 2 * (POOLED + 1); line++) {
        for (int k = 0; k < 3; k++) {
            int which = k > 0 && line > POOLED ? k + 2 : k, side = k > 0 ? POOLED : CROP;
            int inner = k > 0 ? line % (POOLED + 1) : line;
            int column = inner == 0 ? printf("%s", titles[which]) : 0;
            for (int i = 0; i < side && inner > 0 && inner <= side; i++)
                column +=
                    printf(which > 2 ? "%7.2f" : "%4.3g", values[which][(inner - 1) * side + i]);
            printf("%*s", k < 2 ? 28 - column : 0, "");
        }
        puts("");
    }
}

static void print_numbers(double *const *max, double *const *avg, double *const *smooth,
                          const double *winners)
{
    puts("-- 3. Values: 6x6 pixels, windows of 2x2 ---------------------------------------");
    print_tables(
        (const char *[]){"x", "max", "index of the winner", "average", "smooth max, beta = 1/16"},
        (const double *[]){max[TARN_X], max[TARN_Y], winners, avg[TARN_Y], smooth[TARN_Y]});
    puts("(smooth max is log-sum-exp: above the maximum, by at most ln(4)/beta = 22.2)");
    puts("-- 4. Derivatives: gx = J' gy; dy = J dx, where dx is row + column/10 ----------");
    print_tables(
        (const char *[]){"gx of max", "gy", "dy of max", "dy of average", "dy of smooth max"},
        (const double *[]){max[TARN_GX], max[TARN_GY], max[TARN_DY], avg[TARN_DY],
                           smooth[TARN_DY]});
}

static void show_numbers(const picture *p)
{
    static const char *const words[3] = {"max k2", "avg k2", "smooth k2 beta=0.0625"};
    unsigned char crop[CROP * CROP];
    int64_t top = (p->size[0] - CROP) / 5, left = (p->size[1] - CROP) * 2 / 5;
    for (int k = 0; k < CROP * CROP; k++)
        crop[k] = p->pixels[(top + k / CROP) * p->size[1] + left + k % CROP];
    problem q[3];
    for (int k = 0; k < 3; k++) {
        q[k] = make_problem(&(picture){{CROP, CROP}, crop}, words[k], TARN_ISA_ALL);
        for (int i = 0; i < CROP * CROP; i++)
            q[k].data[TARN_DX][i] = i / CROP + i % CROP / 10.0; /* dy of max names the winners */
        for (int i = 0; i < POOLED * POOLED; i++)
            q[k].data[TARN_GY][i] = i + 1;
        compute(&q[k]);
    }
    int64_t indices[POOLED * POOLED];
    double winners[POOLED * POOLED];
    tarn_error error;
    must(tarn_forward_indices(q[0].plan, q[0].data[TARN_X], NULL, indices, &error), &error);
    for (int k = 0; k < POOLED * POOLED; k++)
        winners[k] = (double)indices[k];
    print_numbers(q[0].data, q[1].data, q[2].data, winners);
    for (int k = 0; k < 3; k++)
        drop_problem(&q[k]);
}

static double dot(const problem *q, tarn_operand a, tarn_operand b)
{
    double sum = 0;
    for (size_t k = 0; k < q->count[a]; k++)
        sum += q->data[a][k] * q->data[b][k];
    return sum;
}

static bool adjoint_holds(const picture *p, const char *words)
{
    problem q = make_problem(p, words, TARN_ISA_ALL);
    compute(&q);
    double left = dot(&q, TARN_GY, TARN_DY), right = dot(&q, TARN_GX, TARN_DX);
    double relative = (left > right ? left - right : right - left) / left;
    bool ok = relative < 1e-12; /* no term is negative, so none cancel; NaN is not ok */
    printf("%-23s %16.9f %16.9f   %7.1e  %s\n", words, left, right, relative, ok ? "ok" : "FAILED");
    drop_problem(&q);
    return ok;
}

static bool same_bits(const picture *p, const char *words)
{
    if (~tarn_isa_available() & (TARN_ISA_SPEC | TARN_ISA_PORTABLE))
        return puts("skipped: TARN_ISA leaves one of them out") >= 0;
    problem spec = make_problem(p, words, TARN_ISA_SPEC);
    problem fast = make_problem(p, words, TARN_ISA_PORTABLE);
    double spec_us = 0, fast_us = 0;
    for (int round = 0; round < ROUNDS; round++) { /* in turn: a busy machine slows both */
        spec_us += compute(&spec) / ROUNDS;
        fast_us += compute(&fast) / ROUNDS;
    }
    bool ok = true;
    for (int k = 0; k < TARN_INDICES; k++)
        ok &= memcmp(spec.data[k], fast.data[k], spec.count[k] * sizeof(double)) == 0;
    printf("%s f64 on the picture: y, dy and gx %s\n", words,
           ok ? "are the same, ok" : "differ, FAILED");
    printf("jvp + vjp, mean of %d runs, just now: spec %.0f us, portable %.0f us, ratio %.1f\n",
           ROUNDS, spec_us, fast_us, spec_us / fast_us);
    drop_problem(&spec);
    drop_problem(&fast);
    return ok;
}

static bool refuses_too_large(const picture *p)
{
    tarn_error error;
    tarn_plan *plan; /* NULL after an error: nothing to free */
    tarn_pool pool = tarn_max_pool2d(3, p->size[1] + 1, 1);
    tarn_view x = tarn_view_dense(NULL, TARN_U8, 2, p->size);
    tarn_status status = tarn_plan_create(&plan, &pool, &x, NULL, &error);
    printf("%s, axis %d: %s\n", tarn_status_name(status), error.axis, error.message);
    return status == TARN_DOES_NOT_FIT;
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"max k3s2p1", "min k3s2p1",
                                        "avg k3s2p1", "smooth k3s2 beta=0.0625",
                                        "avg a7",     "max global"};
    if (argc != 2)
        stop("usage", "demo FILE.pgm");
    picture p = read_picture(argv[1]);
    show_picture(&p);
    show_plan(&p);
    show_numbers(&p);
    puts("-- 5. JVP and VJP are transposes, in f64 and to rounding, on the whole picture --");
    printf("%40s %16s   relative difference\n", "<gy, J dx>", "<J' gy, dx>");
    bool ok = true;
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        ok &= adjoint_holds(&p, words[k]);
    puts("-- 6. Specification and fast kernels return the same bits ----------------------");
    ok &= same_bits(&p, words[0]);
    puts("-- 7. A window that does not fit is refused, with the numbers ------------------");
    ok &= refuses_too_large(&p);
    free(p.pixels);
    puts(ok ? "-- All checks passed." : "-- A check FAILED.");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
