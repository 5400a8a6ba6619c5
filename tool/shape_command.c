/* tarn shape: the output's shape, its windows and divisors. */
#include "tool.h"
#include "../src/shape.h"

enum { MOST_COUNTED = 1 << 20 }; /* windows of an axis that are looked at one by one */

/* The least and the greatest of what windows have; greatest 0: there are too many windows to
 * look. */
typedef struct {
    int64_t least, greatest;
} range;

/* Real taps of the windows of an axis, or those inside the padded extent. */
static range axis_taps(const tarn_axis *axis, bool padded)
{
    range r = {INT64_MAX, 0};
    for (int64_t o = 0; o < axis->out && axis->out <= MOST_COUNTED; o++) {
        tarn_span taps = window_taps(axis, o);
        int64_t count = padded ? padded_taps(axis, o) : taps.hi - taps.lo;
        r.least = min_i64(r.least, count);
        r.greatest = max_i64(r.greatest, count);
    }
    return r;
}

/* A divisor is a product over the axes, so its range is the product of theirs. */
static range divisors(const tarn_problem *problem)
{
    range all = {1, 1};
    if (problem->divisor > 0)
        return (range){problem->divisor, problem->divisor};
    for (int a = 0; a < problem->spatial; a++) {
        range r = axis_taps(&problem->axis[a], problem->count_include_pad);
        all = (range){r.greatest ? all.least * r.least : 0, all.greatest * r.greatest};
    }
    return all;
}

static void print_range(const char *before, range r, const char *behind)
{
    if (r.greatest == 0)
        return;
    printf("%s%lld", before, (long long)r.least);
    if (r.least < r.greatest)
        printf(" to %lld", (long long)r.greatest);
    fputs(behind, stdout);
}

static void print_axis(int number, const tarn_axis *axis)
{
    printf("axis %d   %lld cells, %lld windows", number, (long long)axis->size,
           (long long)axis->out);
    if (!axis->adaptive)
        printf(" of %lld taps, stride %lld, dilation %lld, padding %lld:%lld",
               (long long)axis->kernel, (long long)axis->stride, (long long)axis->dilation,
               (long long)axis->lo, (long long)axis->hi);
    print_range("; ", axis_taps(axis, false), axis->adaptive ? " taps" : " taps are real");
    putchar('\n');
}

static void print_text(const tarn_view *y, const tarn_problem *checked)
{
    fputs("output   ", stdout);
    tool_print_shape(stdout, y->shape, y->rank);
    printf(" %s\n", tarn_dtype_name(y->dtype));
    for (int a = 0; a < checked->spatial; a++)
        print_axis(a, &checked->axis[a]);
    if (checked->op == TARN_AVG && (!checked->skips || checked->divisor > 0))
        print_range("divisor  ", divisors(checked), "\n");
}

static void print_json_range(const char *name, range r)
{
    if (r.greatest > 0)
        printf(", \"%s\": [%lld, %lld]", name, (long long)r.least, (long long)r.greatest);
}

static void print_json(const tarn_view *y, const tarn_problem *checked)
{
    fputs("{\"shape\": ", stdout);
    tool_json_numbers(stdout, y->shape, y->rank);
    printf(", \"dtype\": \"%s\", \"axes\": [", tarn_dtype_name(y->dtype));
    for (int a = 0; a < checked->spatial; a++) {
        const tarn_axis *axis = &checked->axis[a];
        printf("%s{\"size\": %lld, \"windows\": %lld, \"kernel\": %lld", a ? ", " : "",
               (long long)axis->size, (long long)axis->out, (long long)axis->kernel);
        print_json_range("real_taps", axis_taps(axis, false));
        putchar('}');
    }
    putchar(']');
    if (checked->op == TARN_AVG && (!checked->skips || checked->divisor > 0))
        print_json_range("divisor", divisors(checked));
    puts("}");
}

bool tool_run_shape(const tool_call *call, tarn_complaint *complaint)
{
    tool_problem problem;
    tarn_problem checked;
    tarn_view y;
    tarn_error error;
    if (!tool_problem_open(call, &problem, complaint))
        return false;
    bool good = !tarn_output_view(&problem.pool, &problem.x, &y, &error) &&
                !tarn_check_pool(&problem.pool, &problem.x, &checked, &error);
    if (good) {
        y = tool_file_view(&y, tool_output_spatial(&problem.pool), problem.channels_last);
        (tool_given(call, OPTION_JSON) ? print_json : print_text)(&y, &checked);
    }
    tool_problem_close(&problem);
    return good || tool_complain_library(complaint, &error);
}
