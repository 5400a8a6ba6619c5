/* tarn show: a picture of what pooling does to a file. */
#include "../src/io/array_write.h"
#include "show_picture.h"
#include "show_text.h"
#include "result.h"
#include "tool.h"

#include <string.h>

/* A cotangent or tangent in a file, if the option names one. */
typedef struct given {
    tarn_array file;
    show_source source;
    const show_source *there; /* NULL: not given */
} given;

static bool open_given(const tool_call *call, tool_option_id option, const tool_problem *problem,
                       int spatial, given *g, tarn_complaint *complaint)
{
    int64_t memory;
    *g = (given){0};
    if (!tool_given(call, option))
        return true;
    if (!tool_read_memory(call, &memory, complaint) ||
        !tarn_array_open(call->value[option], memory, &g->file, complaint))
        return false;
    *complaint = tarn_no_complaint();
    g->source.view = tool_logical_view(&g->file.view, spatial, problem->channels_last);
    g->source.swapped = g->file.swapped;
    g->there = &g->source;
    return true;
}

/* Red, green and blue are there: a picture with three or four channels. */
static bool is_colour(const tool_problem *problem)
{
    int channel = problem->x.rank - problem->pool.spatial - 1;
    return tarn_array_is_picture(&problem->file) && problem->channels_last && channel >= 0 &&
           problem->x.shape[channel] >= 3;
}

static show_request make_request(const tool_problem *problem, const char *path)
{
    const char *slash = strrchr(path, '/');
    show_request request = {.name = slash ? slash + 1 : path,
                            .pool = problem->pool,
                            .x = {problem->x, problem->file.swapped},
                            .dtype = problem->x.dtype,
                            .colour = is_colour(problem),
                            .white = (double)problem->file.white};
    request.x.view.dtype = problem->file.view.dtype; /* --dtype changed only what it becomes */
    return request;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* What kind of picture a name asks for; standard output, a pipe or a device is a PNG. False for
 * kinds without colours. */
static bool find_kind(const char *path, bool *svg, tarn_file_kind *kind, tarn_complaint *complaint)
{
    *svg = ends_with(path, ".svg");
    *kind = tarn_file_kind_of(path);
    if (tarn_output_is_stream(path) && *kind == TARN_FILE_NPY && !ends_with(path, ".npy"))
        *kind = TARN_FILE_PNG; /* a stream without an extension */
    if (*svg || *kind == TARN_FILE_PNG || *kind == TARN_FILE_PPM || *kind == TARN_FILE_PNM ||
        *kind == TARN_FILE_PAM)
        return true;
    return tool_complain_option(complaint, OPTION_OUTPUT,
                                "'%.60s' is no picture in colour: say FILE.png or FILE.svg", path);
}

static bool write_dots(tarn_output *output, tarn_file_kind kind, const canvas *drawing,
                       tarn_complaint *complaint)
{
    int64_t shape[3] = {drawing->height, drawing->width, 3};
    tarn_view picture = tarn_view_dense(drawing->data, TARN_U8, 3, shape);
    return tarn_picture_write(output, kind, &picture, 255, complaint);
}

static bool write_picture(const char *path, const canvas *drawing, bool svg, tarn_file_kind kind,
                          tarn_complaint *complaint)
{
    tarn_output output;
    if (!tarn_output_open(path, 0, &output, complaint))
        return false;
    if (svg ? tarn_output_write(&output, drawing->data, drawing->bytes, complaint)
            : write_dots(&output, kind, drawing, complaint))
        return tarn_output_commit(&output, complaint);
    tarn_output_abandon(&output);
    return false;
}

static void report(const tool_call *call, const show_data *data, const canvas *drawing)
{
    const char *path = call->value[OPTION_OUTPUT];
    if (tarn_output_is_standard(path))
        return; /* standard output is the picture */
    if (tool_given(call, OPTION_JSON)) {
        fputs("{\"picture\": ", stdout);
        tool_json_string(stdout, path);
        printf(", \"width\": %d, \"height\": %d}\n", drawing->width, drawing->height);
        return;
    }
    show_text(data, stdout);
    printf("%s: %d x %d pixels\n", path, drawing->width, drawing->height);
}

static bool show(const tool_call *call, const show_request *request, tarn_complaint *complaint)
{
    const char *path = call->value[OPTION_OUTPUT];
    bool svg;
    tarn_file_kind kind;
    show_data data;
    canvas drawing = {0};
    tarn_error error;
    if (!find_kind(path, &svg, &kind, complaint) ||
        (!svg && !tool_refuse_terminal(OPTION_OUTPUT, path, complaint)))
        return false;
    bool good = !show_data_compute(&data, request, &error) &&
                !show_picture(&data, svg ? canvas_open_svg : canvas_open_dots, &drawing, &error);
    if (!good)
        tool_complain_library(complaint, &error);
    good = good && write_picture(path, &drawing, svg, kind, complaint);
    if (good)
        report(call, &data, &drawing);
    canvas_close(&drawing);
    show_data_free(&data);
    return good;
}

bool tool_run_show(const tool_call *call, tarn_complaint *complaint)
{
    tool_problem problem;
    given gy = {0}, dx = {0};
    if (!tool_given(call, OPTION_OUTPUT))
        return tool_complain_option(complaint, OPTION_OUTPUT,
                                    "is missing: say -o PICTURE.png or PICTURE.svg");
    for (int k = 0; k < call->words; k++)
        if (!tool_check_replaced(call, OPTION_OUTPUT, call->word[k], call->value[OPTION_OUTPUT],
                                 complaint))
            return false;
    if (!tool_problem_open(call, &problem, complaint))
        return false;
    bool good =
        problem.file.view.data ||
        tarn_complain(complaint, BAD_USAGE, "nothing to show: a file is needed, not a shape");
    good = good &&
           open_given(call, OPTION_VJP, &problem, tool_output_spatial(&problem.pool), &gy,
                      complaint) &&
           open_given(call, OPTION_JVP, &problem, problem.pool.spatial, &dx, complaint);
    if (good) {
        show_request request = make_request(&problem, call->word[call->words - 1]);
        request.gy = gy.there;
        request.dx = dx.there;
        good = show(call, &request, complaint);
    }
    tarn_array_close(&gy.file);
    tarn_array_close(&dx.file);
    tool_problem_close(&problem);
    return good;
}
