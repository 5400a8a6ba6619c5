/* tarn explain: the plan of a problem. */
#include "tensors.h"
#include "../src/dispatch.h"

#include <string.h>

static void format_families(char *text, size_t room, uint32_t mask)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t isa = TARN_ISA_SPEC; isa <= TARN_ISA_AVX512 && used < room; isa <<= 1)
        if (mask & isa)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "",
                                     tarn_isa_name(isa));
}

typedef struct {
    char problem[512], machine[128], chosen[128];
    tarn_view y; /* axes as files have them */
    int parts;
    const tarn_plan *plan;
} explanation;

static void print_text(const explanation *e)
{
    char text[400];
    printf("problem  %s\noutput   ", e->problem);
    tool_print_shape(stdout, e->y.shape, e->y.rank);
    printf(" %s\nmachine  %s; allowed: %s\nthreads  %d\nscratch  on the stack: running a plan "
           "allocates "
           "nothing\n",
           tarn_dtype_name(e->y.dtype), e->machine, e->chosen, e->parts);
    if (tarn_plan_saved_bytes(e->plan))
        printf("winners  %zu bytes, if saved for a later vjp\n", tarn_plan_saved_bytes(e->plan));
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (tarn_plan_explain(e->plan, (tarn_pass)pass, text, sizeof text) >= 0)
            printf("%s\n", text);
}

static void print_json(const explanation *e)
{
    char text[400];
    const char *comma = "";
    fputs("{\"problem\": ", stdout);
    tool_json_string(stdout, e->problem);
    fputs(", \"output\": ", stdout);
    tool_json_numbers(stdout, e->y.shape, e->y.rank);
    printf(", \"machine\": \"%s\", \"allowed\": \"%s\", \"threads\": %d, \"scratch\": 0, "
           "\"saved_bytes\": %zu, \"passes\": [",
           e->machine, e->chosen, e->parts, tarn_plan_saved_bytes(e->plan));
    for (int pass = 0; pass < TARN_PASSES; pass++)
        if (tarn_plan_explain(e->plan, (tarn_pass)pass, text, sizeof text) >= 0) {
            fputs(comma, stdout);
            tool_json_string(stdout, text);
            comma = ", ";
        }
    puts("]}");
}

static void explain(const tool_call *call, const tool_problem *problem, const tarn_plan *plan,
                    const tarn_options *options)
{
    explanation e = {.plan = plan,
                     .parts = options->executor.parts > 1 ? options->executor.parts : 1};
    uint32_t machine = tarn_isa_available();
    tarn_problem_format(&problem->pool, &problem->x, e.problem, sizeof e.problem);
    format_families(e.machine, sizeof e.machine, machine);
    format_families(e.chosen, sizeof e.chosen, options->isa ? machine & options->isa : machine);
    tarn_plan_layout(plan, TARN_Y, &e.y, NULL);
    e.y = tool_file_view(&e.y, tool_output_spatial(&problem->pool), problem->channels_last);
    (tool_given(call, OPTION_JSON) ? print_json : print_text)(&e);
}

bool tool_run_explain(const tool_call *call, tarn_complaint *complaint)
{
    tool_problem problem;
    tarn_options options;
    tarn_plan *plan;
    tarn_error error;
    if (!tool_read_options(call, &options, complaint) ||
        !tool_problem_open(call, &problem, complaint))
        return false;
    bool good = !tarn_plan_create(&plan, &problem.pool, &problem.x, &options, &error) ||
                tool_complain_library(complaint, &error);
    if (good)
        explain(call, &problem, plan, &options);
    tarn_plan_destroy(plan);
    tool_problem_close(&problem);
    return good;
}
