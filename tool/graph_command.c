/* tarn graph: runs, differentiates, checks and draws graphs in files. */
#include "result.h"
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
    bool channels_last; /* arrays in files have their channels last */
    tarn_array model; /* the first picture that was read: pictures that are written have its type */
    int bindings;
    binding binding[MOST_WORDS];
    tool_result *results; /* of the bindings that are written */
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
    job->binding[job->bindings++] = b;
    return true;
}

/* A file that two results go to would lose one of them; one that is read is kept unless asked
 * for. */
static bool check_pair(const graph_job *job, const binding *b, const binding *other,
                       tarn_complaint *complaint)
{
    if (!other->role->written)
        return tool_check_replaced(job->call, b->role->option, other->path, b->path, complaint);
    return other >= b || !tarn_output_same(b->path, other->path) ||
           tool_complain_option(complaint, b->role->option,
                                "'%.60s' is the same file as '%.60s': one would be lost", b->path,
                                other->path);
}

static bool check_outputs(const graph_job *job, tarn_complaint *complaint)
{
    const binding *end = job->binding + job->bindings;
    for (const binding *b = job->binding; b < end; b++) {
        if (b->role->written && !tool_check_replaced(job->call, b->role->option, job->call->word[1],
                                                     b->path, complaint))
            return false;
        for (const binding *other = job->binding; other < end && b->role->written; other++)
            if (!check_pair(job, b, other, complaint))
                return false;
    }
    return true;
}

static bool writes(const graph_job *job)
{
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->written)
            return true;
    return false;
}

/* --text alone: everything that -o could name, on standard output. */
static bool bind_text(graph_job *job, tarn_complaint *complaint)
{
    const role *r = roles;
    while (r->option != OPTION_OUTPUT || !(r->verbs & IN(job->verb)))
        r++;
    graph_port *ports = r->of_inputs ? job->file.input : job->file.output;
    int count = r->of_inputs ? job->file.inputs : job->file.outputs;
    for (int k = 0; k < count; k++) {
        if (r->which != GRAPH_VALUE && !graph_port_varies(&ports[k]))
            continue;
        if (job->bindings == MOST_WORDS)
            return tool_complain_option(complaint, OPTION_TEXT, "the graph has more than %d",
                                        MOST_WORDS);
        job->binding[job->bindings++] = (binding){r, &ports[k], "-"};
    }
    return true;
}

static bool bind_all(graph_job *job, tarn_complaint *complaint)
{
    for (int k = 0; k < job->call->nameds; k++)
        if (!bind(job, &job->call->named[k], complaint))
            return false;
    return check_outputs(job, complaint) &&
           (!tool_given(job->call, OPTION_TEXT) || writes(job) || bind_text(job, complaint));
}

/* ---- Tensors in files ----------------------------------------------------------------------- */

/* Spatial axes of a tensor with channels: those behind N and C, or two behind C alone. */
static int spatial_axes(int rank)
{
    return rank > 4 ? rank - 2 : 2;
}

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

/* Axes of size 1 in front, as a picture alone has none for N and for one channel. */
static tarn_view lead_with_ones(tarn_view view, int rank)
{
    int more = rank - view.rank;
    if (more <= 0)
        return view;
    memmove(view.shape + more, view.shape, (size_t)view.rank * sizeof *view.shape);
    memmove(view.strides + more, view.strides, (size_t)view.rank * sizeof *view.strides);
    for (int a = 0; a < more; a++) {
        view.shape[a] = 1;
        view.strides[a] = 0;
    }
    view.rank = rank;
    return view;
}

/* The file's array with its axes as the graph has them. */
static tarn_view as_in_graph(const graph_job *job, const tarn_array *array, const graph_port *port)
{
    bool picture = tarn_array_is_picture(array);
    if (picture && same_shape(&array->view, &port->view))
        return array->view;
    bool last = job->channels_last || array->channels_last || (picture && array->view.rank == 3);
    tarn_view view =
        tool_logical_view(&array->view, picture ? 2 : spatial_axes(array->view.rank), last);
    return picture ? lead_with_ones(view, port->view.rank) : view;
}

/* The type is converted, the shape must be right. */
static bool load(graph_job *job, const binding *b, tarn_complaint *complaint)
{
    tarn_array array = {0};
    if (b->port->tensor[b->role->which])
        return tool_complain_option(complaint, b->role->option, "names %s twice", b->port->name);
    if (!tarn_array_open(b->path, job->memory, &array, complaint))
        return false;
    tarn_view from = as_in_graph(job, &array, b->port);
    bool good = same_shape(&from, &b->port->view) || complain_shape(&from, b->port, complaint);
    good = good && graph_port_room(b->port, b->role->which, complaint);
    if (good) {
        tarn_view to = graph_port_view(b->port, b->role->which);
        tarn_convert(&from, array.swapped, &to);
        *complaint = tarn_no_complaint();
        if (tarn_array_is_picture(&array) && !tarn_array_is_picture(&job->model))
            job->model = (tarn_array){.view = {.dtype = array.view.dtype}, .white = array.white};
    }
    tarn_array_close(&array);
    return good;
}

/* Values become pictures of the type of those that were read; derivatives do not. */
static bool check_kind(const binding *b, const tool_target *target, tarn_complaint *complaint)
{
    tarn_file_kind kind = tarn_file_kind_of(target->path);
    return target->text || kind == TARN_FILE_NPY || kind == TARN_FILE_TEXT ||
           kind == TARN_FILE_UNKNOWN || b->role->which == GRAPH_VALUE ||
           tool_complain_option(complaint, target->option,
                                "pictures hold u8 and u16, which a derivative is not: write .npy");
}

/* The tensor as its file is to have it. */
static tarn_view file_layout(const graph_job *job, const graph_port *port)
{
    const tarn_view *v = &port->view;
    int spatial = spatial_axes(v->rank);
    return job->channels_last && v->rank > spatial
               ? tarn_view_channels_last(NULL, v->dtype, v->rank, spatial, v->shape)
               : tarn_view_dense(NULL, v->dtype, v->rank, v->shape);
}

static bool open_result(const graph_job *job, const binding *b, tool_result *result,
                        tarn_complaint *complaint)
{
    tarn_view view = file_layout(job, b->port);
    int spatial = spatial_axes(view.rank);
    tool_target target = {.option = b->role->option,
                          .path = b->path,
                          .name = b->port->name,
                          .text = tool_given(job->call, OPTION_TEXT),
                          .channels_last = job->channels_last && view.rank > spatial,
                          .like = tarn_array_is_picture(&job->model) ? &job->model : NULL,
                          .memory = job->memory};
    return check_kind(b, &target, complaint) &&
           tool_result_open(result, &target, &view, spatial, complaint);
}

/* The bytes of a tensor in the order of its file. */
static bool put_result(const graph_job *job, const binding *b, tool_result *result,
                       tarn_complaint *complaint)
{
    tarn_view tensor = graph_port_view(b->port, b->role->which);
    tarn_view copy = file_layout(job, b->port);
    size_t bytes = tarn_view_bytes(&copy);
    copy.data = malloc(bytes ? bytes : 1);
    if (!copy.data)
        return tarn_complain(complaint, FAILED_WORK, "no memory for %zu bytes", bytes);
    tarn_convert(&tensor, false, &copy);
    bool good = tool_result_put(result, copy.data, bytes, complaint);
    free(copy.data);
    return good;
}

static bool commit_result(const graph_job *job, const binding *b, tool_result *result,
                          tarn_complaint *complaint)
{
    (void)job, (void)b;
    return tool_result_commit(result, complaint);
}

typedef bool result_step(const graph_job *job, const binding *b, tool_result *result,
                         tarn_complaint *complaint);

/* Results go in step, so that what is wrong with one is known before another has its name. */
static bool each_result(graph_job *job, result_step *step, tarn_complaint *complaint)
{
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->written &&
            !step(job, &job->binding[k], &job->results[k], complaint))
            return false;
    return true;
}

static bool open_results(graph_job *job, tarn_complaint *complaint)
{
    job->results = calloc((size_t)job->bindings + 1, sizeof *job->results);
    if (!job->results)
        return tarn_complain(complaint, FAILED_WORK, "no memory for the results");
    for (int k = 0; k < job->bindings; k++)
        tarn_output_none(&job->results[k].output);
    return each_result(job, open_result, complaint);
}

static void close_results(graph_job *job)
{
    for (int k = 0; k < job->bindings && job->results; k++)
        tool_result_close(&job->results[k]);
    free(job->results);
}

static bool load_all(graph_job *job, tarn_complaint *complaint)
{
    for (int k = 0; k < job->bindings; k++)
        if (!job->binding[k].role->written && !load(job, &job->binding[k], complaint))
            return false;
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

static bool writes_to_stdout(const graph_job *job)
{
    for (int k = 0; k < job->bindings; k++)
        if (job->binding[k].role->written && tarn_output_is_standard(job->binding[k].path))
            return true;
    return false;
}

/* What was written, and where: shapes as the files have them. */
static void report_results(const graph_job *job, FILE *to)
{
    static const char *const kinds[GRAPH_TENSORS] = {"value", "tangent", "cotangent"};
    const char *comma = "";
    fputs(", \"outputs\": [", to);
    for (const binding *b = job->binding; b < job->binding + job->bindings; b++) {
        if (!b->role->written)
            continue;
        tarn_view file =
            tool_file_view(&b->port->view, spatial_axes(b->port->view.rank), job->channels_last);
        fprintf(to, "%s{\"name\": ", comma);
        tool_json_string(to, b->port->name);
        fprintf(to, ", \"tensor\": \"%s\", \"file\": ", kinds[b->role->which]);
        tool_json_string(to, b->path);
        fputs(", \"shape\": ", to);
        tool_json_numbers(to, file.shape, file.rank);
        fprintf(to, ", \"dtype\": \"%s\"}", tarn_dtype_name(file.dtype));
        comma = ", ";
    }
    putc(']', to);
}

static bool report(const graph_job *job, const tarn_program *program, tarn_complaint *complaint)
{
    FILE *to = writes_to_stdout(job) ? stderr : stdout;
    tarn_memory memory;
    tarn_error error;
    if (tarn_program_memory(program, &memory, &error))
        return tool_complain_library(complaint, &error);
    if (tool_given(job->call, OPTION_JSON)) {
        fprintf(to,
                "{\"values\": %d, \"steps\": %d, \"peak_bytes\": %lld, "
                "\"bytes_without_reuse\": %lld, \"floor_bytes\": %lld, \"saved_bytes\": %lld",
                tarn_graph_values(job->file.graph), memory.steps, (long long)memory.arena,
                (long long)memory.without_reuse, (long long)memory.floor, (long long)memory.saved);
        report_results(job, to);
        fputs("}\n", to);
    } else if (!tool_given(job->call, OPTION_QUIET))
        fprintf(to,
                "%d values, %d steps; memory besides inputs and outputs: %lld bytes, %lld "
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
    bool good = load_all(job, complaint) && check_inputs(&job->file, complaint) &&
                open_results(job, complaint) && want(job, complaint) &&
                graph_file_room(&job->file, mode, values, complaint) &&
                graph_file_compile(&job->file, mode, values, &program, complaint) &&
                graph_file_run(&job->file, mode, program, complaint) &&
                each_result(job, put_result, complaint) &&
                each_result(job, commit_result, complaint) && report(job, program, complaint);
    close_results(job);
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
        load_all(job, complaint) &&
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

static bool read_layout(graph_job *job, tarn_complaint *complaint)
{
    const char *layout = job->call->value[OPTION_LAYOUT];
    job->channels_last = layout && strcmp(layout, "last") == 0;
    return !layout || job->channels_last || strcmp(layout, "first") == 0 ||
           tool_complain_option(complaint, OPTION_LAYOUT, "'%.60s' is not %s", layout,
                                tool_options[OPTION_LAYOUT].argument);
}

/* Words that say where tensors go do not go with verbs that write none. */
static bool check_verb_options(const graph_job *job, tarn_complaint *complaint)
{
    static const tool_option_id writing[] = {OPTION_TEXT, OPTION_IN_PLACE};
    for (size_t k = 0; k < sizeof writing / sizeof *writing && job->verb >= CHECK_VERB; k++)
        if (tool_given(job->call, writing[k]))
            return tool_complain_option(complaint, writing[k], "does not go with 'tarn graph %s'",
                                        verb_names[job->verb]);
    return true;
}

bool tool_run_graph(const tool_call *call, tarn_complaint *complaint)
{
    static bool (*const act[VERBS])(graph_job * job, tarn_complaint * complaint) = {
        run_verb, run_verb, run_verb, check_verb, dot_verb};
    graph_job job = {.call = call};
    tarn_options options;
    bool good =
        read_verb(call, &job.verb, complaint) && read_layout(&job, complaint) &&
        check_verb_options(&job, complaint) && tool_read_memory(call, &job.memory, complaint) &&
        tool_read_options(call, &options, complaint) &&
        graph_file_open(call->word[1], job.memory, &options, &job.file, complaint) &&
        (job.verb == DOT_VERB ? check_dot_options(call, complaint) : bind_all(&job, complaint)) &&
        act[job.verb](&job, complaint);
    graph_file_close(&job.file);
    return good;
}
