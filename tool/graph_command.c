/* tarn graph: runs, differentiates, checks and draws graphs in files. */
#include "../src/io/array_write.h"
#include "../src/io/convert.h"
#include "graph_file.h"

#include <stdlib.h>
#include <string.h>

/* What the words behind `tarn graph` ask for. */
typedef enum verb { RUN_VERB, JVP_VERB, VJP_VERB, CHECK_VERB, DOT_VERB, VERBS } verb;
static const char *const verb_names[VERBS] = {"run", "jvp", "vjp", "check", "dot"};

/* ---- NAME=FILE ------------------------------------------------------------------------------ */

/* What an option names: a tensor of an input or output, read or written, in some verbs. */
typedef struct role {
    tool_option_id option;
    unsigned verbs;
    bool of_inputs, written;
    graph_tensor which;
} role;

#define IN(verb) (1u << (verb))
static const role roles[] = {
    {OPTION_INPUT, IN(RUN_VERB) | IN(JVP_VERB) | IN(VJP_VERB) | IN(CHECK_VERB), true, false,
     GRAPH_VALUE},
    {OPTION_TANGENT, IN(JVP_VERB) | IN(CHECK_VERB), true, false, GRAPH_TANGENT},
    {OPTION_COTANGENT, IN(VJP_VERB) | IN(CHECK_VERB), false, false, GRAPH_COTANGENT},
    {OPTION_VALUES, IN(JVP_VERB) | IN(VJP_VERB), false, true, GRAPH_VALUE},
    {OPTION_OUTPUT, IN(RUN_VERB), false, true, GRAPH_VALUE},
    {OPTION_OUTPUT, IN(JVP_VERB), false, true, GRAPH_TANGENT},
    {OPTION_OUTPUT, IN(VJP_VERB), true, true, GRAPH_COTANGENT},
};

/* A use of such an option. */
typedef struct binding {
    const role *role;
    graph_port *port;
    const char *path;
} binding;

typedef struct graph_job {
    const tool_call *call;
    verb verb;
    int64_t memory;
    graph_file file;
    int bindings;
    binding binding[MOST_WORDS];
} graph_job;

/* The port that "NAME=FILE" names, and the file; a file alone is enough if there is one port. */
static bool find_port(graph_port *ports, int count, const tool_named *given, binding *b,
                      tarn_complaint *complaint)
{
    int length = (int)strcspn(given->value, "=");
    bool alone = given->value[length] == '\0';
    b->path = alone ? given->value : given->value + length + 1;
    for (int k = 0; k < count && !b->port; k++)
        if (alone ? count == 1
                  : (int)strlen(ports[k].name) == length &&
                        memcmp(ports[k].name, given->value, (size_t)length) == 0)
            b->port = &ports[k];
    if (b->port)
        return true;
    return alone ? tool_complain_option(complaint, given->option,
                                        "'%.60s' does not say of which value: say NAME=FILE",
                                        given->value)
                 : tool_complain_option(complaint, given->option, "'%.*s' is no %s of the graph",
                                        length < 60 ? length : 60, given->value,
                                        b->role->of_inputs ? "input" : "output");
}

static bool bind(graph_job *job, const tool_named *given, tarn_complaint *complaint)
{
    binding b = {0};
    for (size_t k = 0; k < sizeof roles / sizeof *roles && !b.role; k++)
        if (roles[k].option == given->option && (roles[k].verbs & IN(job->verb)))
            b.role = &roles[k];
    if (!b.role)
        return tool_complain_option(complaint, given->option, "does not go with 'tarn graph %s'",
                                    verb_names[job->verb]);
    graph_file *file = &job->file;
    if (!find_port(b.role->of_inputs ? file->input : file->output,
                   b.role->of_inputs ? file->inputs : file->outputs, given, &b, complaint))
        return false;
    if (b.role->written && tarn_file_kind_of(b.path) != TARN_FILE_NPY)
        return tool_complain_option(complaint, given->option, "'%.60s' is not a .npy file", b.path);
    job->binding[job->bindings++] = b;
    return true;
}

/* A file that two results go to would lose one of them. */
static bool check_outputs(const graph_job *job, tarn_complaint *complaint)
{
    for (const binding *b = job->binding; b < job->binding + job->bindings; b++)
        for (const binding *other = job->binding; other < b; other++)
            if (b->role->written && other->role->written && tarn_output_same(b->path, other->path))
                return tool_complain_option(
                    complaint, b->role->option,
                    "'%.60s' is the same file as '%.60s': one would be lost", b->path, other->path);
    return true;
}

static bool bind_all(graph_job *job, tarn_complaint *complaint)
{
    for (int k = 0; k < job->call->nameds; k++)
        if (!bind(job, &job->call->named[k], complaint))
            return false;
    return check_outputs(job, complaint);
}

/* ---- Tensors in files ----------------------------------------------------------------------- */

static bool same_shape(const tarn_view *a, const tarn_view *b)
{
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

static bool complain_shape(const tarn_view *file, const graph_port *port, tarn_complaint *complaint)
{
    char is[120], should[120];
    tool_format_shape(is, sizeof is, file->shape, file->rank);
    tool_format_shape(should, sizeof should, port->view.shape, port->view.rank);
    return tarn_complain(complaint, BAD_USAGE, "is %s, but %s is %s in the graph", is, port->name,
                         should);
}

/* The type is converted, the shape must be right. */
static bool load(const binding *b, int64_t memory, tarn_complaint *complaint)
{
    tarn_array array = {0};
    if (b->port->tensor[b->role->which])
        return tool_complain_option(complaint, b->role->option, "names %s twice", b->port->name);
    if (!tarn_array_open(b->path, memory, &array, complaint))
        return false;
    bool good =
        same_shape(&array.view, &b->port->view) || complain_shape(&array.view, b->port, complaint);
    good = good && graph_port_room(b->port, b->role->which, complaint);
    if (good) {
        tarn_view to = graph_port_view(b->port, b->role->which);
        tarn_convert(&array.view, array.swapped, &to);
        *complaint = tarn_no_complaint();
    }
    tarn_array_close(&array);
    return good;
}

static bool store(const binding *b, tarn_complaint *complaint)
{
    char header[NPY_HEADER];
    size_t length = tarn_npy_header(&b->port->view, false, header);
    size_t bytes = tarn_view_bytes(&b->port->view);
    tarn_output output;
    if (!tarn_output_open(b->path, (int64_t)(length + bytes), &output, complaint))
        return false;
    if (tarn_output_write(&output, header, length, complaint) &&
        tarn_output_write(&output, b->port->tensor[b->role->which], bytes, complaint))
        return tarn_output_commit(&output, complaint);
    tarn_output_abandon(&output);
    return false;
}

/* Reads what is to be read (written == false), or writes what is to be written. */
static bool transfer(graph_job *job, bool written, tarn_complaint *complaint)
{
    for (int k = 0; k < job->bindings; k++) {
        const binding *b = &job->binding[k];
        if (b->role->written == written &&
            !(written ? store(b, complaint) : load(b, job->memory, complaint)))
            return false;
    }
    return true;
}

/* ---- run, jvp, vjp -------------------------------------------------------------------------- */

/* Ports that results are written of take part; the others not, if there are such. */
static void want_written(graph_job *job, bool inputs)
{
    graph_port *ports = inputs ? job->file.input : job->file.output;
    int count = inputs ? job->file.inputs : job->file.outputs;
    bool any = false;
    for (int k = 0; k < job->bindings; k++)
        any |= job->binding[k].role->written && job->binding[k].role->of_inputs == inputs;
    for (int k = 0; k < count && any; k++)
        ports[k].wanted = false;
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->written && job->binding[k].role->of_inputs == inputs)
            job->binding[k].port->wanted = true;
}

/* Ports that have such a tensor take part; returns how many. */
static int want_given(graph_port *ports, int count, graph_tensor which)
{
    int wanted = 0;
    for (int k = 0; k < count; k++)
        wanted += ports[k].wanted = ports[k].tensor[which] != NULL;
    return wanted;
}

static int want_floating(graph_port *ports, int count)
{
    int wanted = 0;
    for (int k = 0; k < count; k++)
        wanted += ports[k].wanted = graph_port_varies(&ports[k]);
    return wanted;
}

/* Ones for every output that can have a cotangent: the gradient of their sum. */
static bool make_ones(graph_file *file, tarn_complaint *complaint)
{
    static double one = 1;
    want_floating(file->output, file->outputs);
    for (int k = 0; k < file->outputs; k++) {
        graph_port *port = &file->output[k];
        if (!port->wanted)
            continue;
        if (!graph_port_room(port, GRAPH_COTANGENT, complaint))
            return false;
        tarn_view from = {.data = &one, .dtype = TARN_F64, .rank = port->view.rank}; /* strides 0 */
        memcpy(from.shape, port->view.shape, sizeof from.shape);
        tarn_view to = graph_port_view(port, GRAPH_COTANGENT);
        tarn_convert(&from, false, &to);
    }
    return true;
}

/* Decides what takes part, by what was given and what is to be written. */
static bool want(graph_job *job, tarn_complaint *complaint)
{
    graph_file *file = &job->file;
    if (job->verb == JVP_VERB && !want_given(file->input, file->inputs, GRAPH_TANGENT))
        return tool_complain_option(complaint, OPTION_TANGENT,
                                    "is missing: say --tangent NAME=FILE");
    if (job->verb == VJP_VERB) {
        want_floating(file->input, file->inputs);
        want_written(job, true);
        if (!want_given(file->output, file->outputs, GRAPH_COTANGENT))
            return make_ones(file, complaint);
        for (int k = 0; k < job->bindings; k++)
            if (job->binding[k].role->option == OPTION_VALUES)
                job->binding[k].port->wanted = true;
        return true;
    }
    want_written(job, false);
    return true;
}

/* Every input has its tensor. */
static bool check_inputs(const graph_file *file, tarn_complaint *complaint)
{
    for (int k = 0; k < file->inputs; k++)
        if (!file->input[k].tensor[GRAPH_VALUE])
            return tool_complain_option(complaint, OPTION_INPUT, "is missing: say --input %s=FILE",
                                        file->input[k].name);
    return true;
}

static bool writes(const graph_job *job)
{
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->written)
            return true;
    return false;
}

static bool writes_to_stdout(const graph_job *job)
{
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->written && tarn_output_is_standard(job->binding[k].path))
            return true;
    return false;
}

static bool report(const graph_job *job, const tarn_program *program, tarn_complaint *complaint)
{
    FILE *to = writes_to_stdout(job) ? stderr : stdout;
    tarn_memory memory;
    tarn_error error;
    if (tarn_program_memory(program, &memory, &error))
        return tool_complain_library(complaint, &error);
    if (tool_given(job->call, OPTION_JSON))
        fprintf(to,
                "{\"values\": %d, \"steps\": %d, \"peak_bytes\": %lld, "
                "\"bytes_without_reuse\": %lld, \"floor_bytes\": %lld, \"saved_bytes\": %lld}\n",
                tarn_graph_values(job->file.graph), memory.steps, (long long)memory.arena,
                (long long)memory.without_reuse, (long long)memory.floor, (long long)memory.saved);
    else if (!tool_given(job->call, OPTION_QUIET))
        fprintf(to,
                "%d values, %d steps; beside inputs and outputs %lld bytes at the peak, %lld "
                "without reuse\n%s",
                tarn_graph_values(job->file.graph), memory.steps, (long long)memory.arena,
                (long long)memory.without_reuse,
                writes(job) ? "" : "nothing was written: say -o NAME=FILE\n");
    return true;
}

static bool names_values(const graph_job *job)
{
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->option == OPTION_VALUES)
            return true;
    return false;
}

static bool run_verb(graph_job *job, tarn_complaint *complaint)
{
    static const tarn_mode modes[] = {TARN_GRAPH_FORWARD, TARN_GRAPH_JVP, TARN_GRAPH_VJP};
    tarn_mode mode = modes[job->verb];
    bool values = mode == TARN_GRAPH_FORWARD || names_values(job);
    tarn_program *program = NULL;
    bool good = transfer(job, false, complaint) && check_inputs(&job->file, complaint) &&
                want(job, complaint) && graph_file_room(&job->file, mode, values, complaint) &&
                graph_file_compile(&job->file, mode, values, &program, complaint) &&
                graph_file_run(&job->file, mode, program, complaint) &&
                transfer(job, true, complaint) && report(job, program, complaint);
    tarn_program_destroy(program);
    return good;
}

/* ---- check, dot ----------------------------------------------------------------------------- */

static bool check_verb(graph_job *job, tarn_complaint *complaint)
{
    const char *path = job->call->value[OPTION_SAME_AS];
    graph_file other = {0};
    graph_finding findings[GRAPH_CHECKS];
    int count = 0, failures = 0;
    bool good =
        transfer(job, false, complaint) &&
        (!path || graph_file_open(path, job->memory, &job->file.options, &other, complaint)) &&
        graph_file_check(&job->file, path ? &other : NULL, findings, &count, complaint);
    graph_file_close(&other);
    for (int k = 0; k < count && good; k++) {
        tool_print_answer(findings[k].name, findings[k].verdict, findings[k].text,
                          tool_given(job->call, OPTION_JSON));
        failures += findings[k].verdict == CHECK_FAILED;
    }
    return good && (failures == 0 ||
                    tarn_complain(complaint, FAILED_WORK, "%d of the checks failed", failures));
}

static bool read_pass(const tool_call *call, tarn_mode *mode, tarn_complaint *complaint)
{
    static const char *const names[TARN_MODES] = {"run", "jvp", "vjp"};
    *mode = TARN_GRAPH_FORWARD;
    for (int k = 0; k < TARN_MODES && tool_given(call, OPTION_PASS); k++)
        if (strcmp(call->value[OPTION_PASS], names[k]) == 0)
            return *mode = (tarn_mode)k, true;
    return !tool_given(call, OPTION_PASS) ||
           tool_complain_option(complaint, OPTION_PASS, "'%.60s' is not run|jvp|vjp",
                                call->value[OPTION_PASS]);
}

static bool write_text(const char *path, const char *text, tarn_complaint *complaint)
{
    tarn_output output;
    if (!tarn_output_open(path, 0, &output, complaint))
        return false;
    if (tarn_output_write(&output, text, strlen(text), complaint))
        return tarn_output_commit(&output, complaint);
    tarn_output_abandon(&output);
    return false;
}

static bool dot_verb(graph_job *job, tarn_complaint *complaint)
{
    tarn_program *program = NULL;
    tarn_mode mode;
    char *text = NULL;
    want_floating(job->file.input, job->file.inputs);
    bool good = read_pass(job->call, &mode, complaint) &&
                graph_file_compile(&job->file, mode, false, &program, complaint);
    if (good) {
        int64_t length = tarn_graph_dot(job->file.graph, program, NULL, 0);
        text = length >= 0 ? malloc((size_t)length + 1) : NULL;
        good = text || tarn_complain(complaint, FAILED_WORK, "no memory for the drawing");
        if (good)
            tarn_graph_dot(job->file.graph, program, text, (size_t)length + 1);
    }
    if (good)
        good = write_text(job->call->nameds ? job->call->named[0].value : "-", text, complaint);
    free(text);
    tarn_program_destroy(program);
    return good;
}

/* -o of a drawing is a file, without a name before it. */
static bool check_dot_options(const tool_call *call, tarn_complaint *complaint)
{
    for (int k = 0; k < call->nameds; k++)
        if (call->named[k].option != OPTION_OUTPUT || k > 0)
            return tool_complain_option(complaint, call->named[k].option,
                                        k > 0 ? "is one too many"
                                              : "does not go with 'tarn graph dot'");
    return true;
}

static bool read_verb(const tool_call *call, verb *which, tarn_complaint *complaint)
{
    for (int k = 0; k < VERBS && call->words == 2; k++)
        if (strcmp(call->word[0], verb_names[k]) == 0)
            return *which = (verb)k, true;
    return tarn_complain(complaint, BAD_USAGE, "say tarn graph %s", call->command->arguments);
}

bool tool_run_graph(const tool_call *call, tarn_complaint *complaint)
{
    static bool (*const act[VERBS])(graph_job * job, tarn_complaint * complaint) = {
        run_verb, run_verb, run_verb, check_verb, dot_verb};
    graph_job job = {.call = call};
    tarn_options options;
    bool good =
        read_verb(call, &job.verb, complaint) && tool_read_memory(call, &job.memory, complaint) &&
        tool_read_options(call, &options, complaint) &&
        graph_file_open(call->word[1], job.memory, &options, &job.file, complaint) &&
        (job.verb == DOT_VERB ? check_dot_options(call, complaint) : bind_all(&job, complaint)) &&
        act[job.verb](&job, complaint);
    graph_file_close(&job.file);
    return good;
}
