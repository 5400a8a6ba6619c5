/* tarn max, avg, ...: pools a file, piece by piece, or writes a derivative. */
#include "pieces.h"
#include "progress.h"
#include "result.h"
#include "../src/io/convert.h"
#include "../src/shape.h"

#include <stdlib.h>
#include <string.h>

/* Pieces of this size are large enough to share among threads and small enough for the caches. */
static const int64_t usual_piece = INT64_C(32) << 20;

/* A tensor that is read: where it lies, and what the current piece sees of it. */
typedef struct {
    const tarn_region *region;
    tarn_view view; /* logical; dtype and data of the file */
    bool swapped, shaped_like_y;
    void *buffer; /* of converted elements */
    size_t room;
    size_t begin, end; /* bytes of the region that the last piece saw */
} source;

typedef struct {
    const tool_call *call;
    const char *output; /* a file, or "-" */
    tool_problem problem;
    tarn_array tangent_file;
    tarn_pool pool; /* not flat: the bytes are the same, and pieces have spatial axes */
    tarn_view y;    /* its output */
    tarn_pass pass;
    tarn_options options;
    int64_t memory;
    int order[TARN_MAX_RANK]; /* axes, outermost in memory first */
    source x, tangent;        /* the second is dx or gy */
    bool reads_x;
    tool_cutter cutter;
    tool_result result, indices;
    void *written, *kept;
    int64_t *index_buffer;
    size_t written_room, kept_room, index_room;
} job;

/* ---- What is asked for --------------------------------------------------------------------- */

/* Where the result goes: what -o says, over the input, or to be read by people. */
static bool choose_output(job *j, tarn_complaint *complaint)
{
    const tool_call *call = j->call;
    if (call->words == 0)
        return tarn_complain(complaint, BAD_USAGE, "nothing to pool: %s", call->command->example);
    if (tool_given(call, OPTION_OUTPUT))
        j->output = call->value[OPTION_OUTPUT];
    else if (tool_given(call, OPTION_IN_PLACE) && call->words == 1)
        j->output = call->word[0];
    else if (tool_given(call, OPTION_TEXT) || tarn_output_is_terminal("-"))
        j->output = "-";
    return j->output ||
           tool_complain_option(complaint, OPTION_OUTPUT,
                                "is missing: say -o FILE, or --text to see the numbers");
}

/* Files that are read are not replaced unless that is asked for. */
static bool check_inputs(const job *j, tarn_complaint *complaint)
{
    const tool_call *call = j->call;
    const char *read[] = {call->words ? call->word[0] : NULL, call->value[OPTION_JVP],
                          call->value[OPTION_VJP]};
    const char *written[] = {j->output, call->value[OPTION_INDICES]};
    for (int k = 0; k < 6; k++)
        if (read[k / 2] && written[k % 2] &&
            !tool_check_replaced(call, k % 2 ? OPTION_INDICES : OPTION_OUTPUT, read[k / 2],
                                 written[k % 2], complaint))
            return false;
    return true;
}

static bool is_for_indices(tarn_file_kind kind)
{
    return kind == TARN_FILE_NPY || kind == TARN_FILE_TEXT;
}

static bool choose_pass(job *j, tarn_complaint *complaint)
{
    bool jvp = tool_given(j->call, OPTION_JVP), vjp = tool_given(j->call, OPTION_VJP);
    bool indices = tool_given(j->call, OPTION_INDICES);
    if (jvp && vjp)
        return tool_complain_option(complaint, OPTION_VJP, "does not go with --jvp");
    if (indices && (jvp || vjp))
        return tool_complain_option(complaint, OPTION_INDICES, "does not go with %s",
                                    jvp ? "--jvp" : "--vjp");
    if (indices && !is_for_indices(tarn_file_kind_of(j->call->value[OPTION_INDICES])))
        return tool_complain_option(complaint, OPTION_INDICES,
                                    "indices are written as .npy or .txt only");
    if (indices && tarn_output_same(j->output, j->call->value[OPTION_INDICES]))
        return tool_complain_option(complaint, OPTION_INDICES,
                                    "is the same file as --output: one would be lost");
    if (tool_given(j->call, OPTION_JSON) &&
        (tarn_output_is_standard(j->output) ||
         (indices && tarn_output_is_standard(j->call->value[OPTION_INDICES]))))
        return tool_complain_option(complaint, OPTION_JSON,
                                    "does not go with a result on standard output");
    j->pass = jvp ? TARN_JVP : vjp ? TARN_VJP : indices ? TARN_FORWARD_INDICES : TARN_FORWARD;
    return true;
}

/* Checks the problem as a whole, so that nothing is opened for a request that cannot be done. */
static bool check_problem(job *j, tarn_complaint *complaint)
{
    tarn_error error;
    j->pool = j->problem.pool;
    j->pool.flat = 0;
    if (j->pass >= TARN_JVP && !is_floating(j->problem.x.dtype))
        return tarn_complain(complaint, BAD_USAGE,
                             "%s has no derivative: say --dtype f32 to convert",
                             tarn_dtype_name(j->problem.x.dtype));
    if (tarn_output_view(&j->pool, &j->problem.x, &j->y, &error)) {
        tool_complain_library(complaint, &error);
        if (error.code == TARN_BAD_DTYPE)
            strncat(complaint->message,
                    j->pool.op == TARN_MODE ? " (--dtype i32 converts)" : " (--dtype f32 converts)",
                    sizeof complaint->message - strlen(complaint->message) - 1);
        return false;
    }
    return true;
}

/* Axes in the order that files have them in memory, outermost first. */
static void find_order(job *j)
{
    const tarn_view *x = &j->problem.x;
    tarn_view numbers = *x;
    for (int a = 0; a < x->rank; a++)
        numbers.shape[a] = a;
    numbers = tool_file_view(&numbers, j->pool.spatial, j->problem.channels_last);
    for (int k = 0; k < x->rank; k++)
        j->order[k] = (int)numbers.shape[j->problem.file.fortran ? x->rank - 1 - k : k];
}

/* Dense strides, axes in that order. */
static void make_dense(const job *j, tarn_view *view)
{
    int64_t stride = 1;
    for (int k = view->rank - 1; k >= 0; k--) {
        view->strides[j->order[k]] = stride;
        stride *= max_i64(view->shape[j->order[k]], 1); /* checked by planning */
    }
}

static source make_source(const tarn_array *array, const tarn_view *logical)
{
    source s = {.region = array->decoded.data ? &array->decoded : &array->file,
                .view = *logical,
                .swapped = array->swapped};
    s.view.dtype = array->view.dtype;
    return s;
}

/* ---- dx and gy ----------------------------------------------------------------------------- */

/* A flat cotangent gets its spatial axes back, of size 1. */
static void unflatten(tarn_view *view, int spatial)
{
    for (int a = 0; a < spatial; a++, view->rank++) {
        view->shape[view->rank] = 1;
        view->strides[view->rank] = 0;
    }
}

static bool check_tangent(const job *j, const tarn_view *found, const tarn_view *expected,
                          tarn_complaint *complaint)
{
    if (found->rank != expected->rank)
        return tarn_complain(complaint, BAD_USAGE, "has %d axes; %d are expected", found->rank,
                             expected->rank);
    for (int a = 0; a < found->rank; a++)
        if (found->shape[a] != expected->shape[a])
            return tarn_complain(complaint, BAD_USAGE, "has size %lld on axis %d; %lld is expected",
                                 (long long)found->shape[a], a, (long long)expected->shape[a]);
    if (found->dtype != j->problem.x.dtype && !tool_given(j->call, OPTION_DTYPE) &&
        j->problem.file.view.dtype == j->problem.x.dtype)
        return tarn_complain(complaint, BAD_USAGE,
                             "has dtype %s, the input has %s: say --dtype to convert both",
                             tarn_dtype_name(found->dtype), tarn_dtype_name(j->problem.x.dtype));
    return true;
}

/* The file given with --jvp or --vjp; its axes are told as those of the input's file. */
static bool open_tangent(job *j, tarn_complaint *complaint)
{
    if (j->pass < TARN_JVP)
        return true;
    bool like_y = j->pass == TARN_VJP;
    int flat = like_y ? j->pool.spatial - tool_output_spatial(&j->problem.pool) : 0;
    const char *path = j->call->value[like_y ? OPTION_VJP : OPTION_JVP];
    if (!tarn_array_open(path, j->memory, &j->tangent_file, complaint))
        return false;
    tarn_view expected = like_y ? j->y : j->problem.x;
    tarn_view found = tool_logical_view(&j->tangent_file.view, j->pool.spatial - flat,
                                        j->problem.channels_last && flat == 0);
    expected.rank -= flat;
    if (!check_tangent(j, &found, &expected, complaint))
        return false;
    unflatten(&found, flat);
    j->tangent = make_source(&j->tangent_file, &found);
    j->tangent.shaped_like_y = like_y;
    *complaint = tarn_no_complaint();
    return true;
}

/* ---- Pieces -------------------------------------------------------------------------------- */

static tarn_view crop(const tarn_view *view, const tarn_box *part)
{
    tarn_view result = *view;
    int64_t offset = 0;
    for (int a = 0; a < view->rank; a++) {
        offset += part->lo[a] * view->strides[a];
        result.shape[a] = part->hi[a] - part->lo[a];
    }
    result.data = (char *)view->data + offset * (int64_t)tarn_dtype_size(view->dtype);
    return result;
}

static tarn_view shaped(const job *j, const tarn_box *part, tarn_dtype dtype)
{
    tarn_view view = {.dtype = dtype, .rank = j->y.rank};
    for (int a = 0; a < view.rank; a++)
        view.shape[a] = part->hi[a] - part->lo[a];
    make_dense(j, &view);
    return view;
}

static const tarn_box *part_of(const source *s, const tool_piece *piece)
{
    return s->shaped_like_y ? &piece->y : &piece->x;
}

static int64_t source_cost(const job *j, const source *s, const tool_piece *piece)
{
    tarn_view part = crop(&s->view, part_of(s, piece));
    int64_t bytes = (int64_t)tarn_view_bytes(&part);
    if (!tarn_is_direct(&part, s->swapped, j->problem.x.dtype)) {
        tarn_view copy = shaped(j, part_of(s, piece), j->problem.x.dtype);
        bytes += (int64_t)tarn_view_bytes(&copy);
    }
    return bytes;
}

/* What a piece keeps in memory: mapped pages count. */
static int64_t cost(const void *context, const tool_piece *piece)
{
    const job *j = context;
    tarn_view written = shaped(j, tool_computed(&j->cutter, piece), j->problem.x.dtype);
    int64_t elements = (int64_t)(tarn_view_bytes(&written) / tarn_dtype_size(written.dtype));
    int64_t bytes = (int64_t)tarn_view_bytes(&written);
    bool indices = j->pass == TARN_FORWARD_INDICES;
    const int64_t more[] = {j->reads_x ? source_cost(j, &j->x, piece) : 0,
                            j->tangent.region ? source_cost(j, &j->tangent, piece) : 0,
                            indices ? elements : 0, indices ? elements : 0};
    const int64_t scale[] = {1, 1, 4, 4}; /* an index has 8 bytes: twice 4, each checked */
    for (int k = 0; k < 4; k++) {
        int64_t product;
        if (!checked_mul(more[k], scale[k], &product) || !checked_add(bytes, product, &bytes))
            return INT64_MAX;
    }
    return bytes;
}

static bool grow(void **buffer, size_t *room, size_t bytes, tarn_complaint *complaint)
{
    if (bytes <= *room && *buffer)
        return true;
    free(*buffer);
    *buffer = malloc(bytes ? bytes : 1);
    *room = bytes;
    return *buffer || tarn_complain(complaint, FAILED_WORK, "no memory for %zu bytes", bytes);
}

/* Pages that this piece does not need any more leave memory; those of the next are asked for. */
static void move_on(source *s, const tarn_view *part)
{
    size_t begin = (size_t)((const unsigned char *)part->data - s->region->data);
    size_t end = begin + tarn_view_bytes(part);
    if (s->end > s->begin && begin > s->begin)
        tarn_region_is_done(s->region, s->begin, begin < s->end ? begin : s->end);
    if (s->end > end)
        tarn_region_is_done(s->region, end, s->end);
    tarn_region_will_need(s->region, begin, end + (end - begin));
    s->begin = begin;
    s->end = end;
}

/* What a piece sees of a tensor: the file's own bytes if they will do, else a converted copy. */
static bool fetch(const job *j, source *s, const tool_piece *piece, tarn_view *view,
                  tarn_complaint *complaint)
{
    *view = crop(&s->view, part_of(s, piece));
    move_on(s, view);
    if (tarn_is_direct(view, s->swapped, j->problem.x.dtype))
        return true;
    tarn_view copy = shaped(j, part_of(s, piece), j->problem.x.dtype);
    if (!grow(&s->buffer, &s->room, tarn_view_bytes(&copy), complaint))
        return false;
    copy.data = s->buffer;
    tarn_convert(view, s->swapped, &copy);
    *view = copy;
    return true;
}

static bool same_box(const tarn_box *a, const tarn_box *b, int axes)
{
    size_t bytes = sizeof a->lo[0] * (size_t)axes;
    return memcmp(a->lo, b->lo, bytes) == 0 && memcmp(a->hi, b->hi, bytes) == 0;
}

/* Appends what is kept of a computed tensor to its file. */
static bool put(job *j, tool_result *result, const tool_piece *piece, const tarn_view *computed,
                tarn_complaint *complaint)
{
    const tarn_box *part = tool_computed(&j->cutter, piece);
    if (same_box(part, &piece->kept, computed->rank))
        return tool_result_put(result, computed->data, tarn_view_bytes(computed), complaint);
    tarn_box inside;
    for (int a = 0; a < computed->rank; a++) {
        inside.lo[a] = piece->kept.lo[a] - part->lo[a];
        inside.hi[a] = piece->kept.hi[a] - part->lo[a];
    }
    tarn_view from = crop(computed, &inside), to = shaped(j, &piece->kept, computed->dtype);
    if (!grow(&j->kept, &j->kept_room, tarn_view_bytes(&to), complaint))
        return false;
    to.data = j->kept;
    tarn_convert(&from, false, &to);
    return tool_result_put(result, to.data, tarn_view_bytes(&to), complaint);
}

static tarn_status run_pass(const job *j, const tarn_plan *plan, const void *x, const void *tangent,
                            tarn_error *error)
{
    switch (j->pass) {
    case TARN_JVP:
        return tarn_jvp(plan, x, tangent, NULL, j->written, error);
    case TARN_VJP:
        return tarn_vjp(plan, x, NULL, tangent, j->written, error);
    case TARN_FORWARD_INDICES:
        return tarn_forward_indices(plan, x, j->written, j->index_buffer, error);
    default:
        return tarn_forward(plan, x, j->written, NULL, error);
    }
}

/* Plans and runs one piece; the result lies in j->written, laid out as `written` says. */
static bool compute(job *j, const tool_piece *piece, const tarn_view *written,
                    tarn_complaint *complaint)
{
    tarn_view x = shaped(j, &piece->x, j->problem.x.dtype), tangent = {0};
    tarn_view y = shaped(j, &piece->y, x.dtype);
    tarn_options options = j->options;
    tarn_error error;
    tarn_plan *plan;
    if ((j->reads_x && !fetch(j, &j->x, piece, &x, complaint)) ||
        (j->tangent.region && !fetch(j, &j->tangent, piece, &tangent, complaint)))
        return false;
    options.layout[TARN_Y] = &y;
    options.layout[TARN_DX] = j->pass == TARN_JVP ? &tangent : NULL;
    options.layout[TARN_GY] = j->pass == TARN_VJP ? &tangent : NULL;
    options.layout[TARN_GX] = j->pass == TARN_VJP ? written : NULL;
    if (tarn_plan_create(&plan, &piece->pool, &x, &options, &error))
        return tool_complain_library(complaint, &error);
    tarn_status status = run_pass(j, plan, x.data, tangent.data, &error);
    tarn_plan_destroy(plan);
    return !status || tool_complain_library(complaint, &error);
}

static bool run_piece(job *j, const tool_piece *piece, tarn_complaint *complaint)
{
    tarn_view written = shaped(j, tool_computed(&j->cutter, piece), j->problem.x.dtype);
    tarn_view indices = written;
    indices.dtype = TARN_I64;
    size_t index_bytes = j->pass == TARN_FORWARD_INDICES ? tarn_view_bytes(&indices) : 0;
    if (!grow(&j->written, &j->written_room, tarn_view_bytes(&written), complaint) ||
        !grow((void **)&j->index_buffer, &j->index_room, index_bytes, complaint) ||
        !compute(j, piece, &written, complaint))
        return false;
    written.data = j->written;
    indices.data = j->index_buffer;
    if (!put(j, &j->result, piece, &written, complaint))
        return false;
    if (index_bytes == 0)
        return true;
    return put(j, &j->indices, piece, &indices, complaint);
}

static bool run_pieces(job *j, tarn_complaint *complaint)
{
    tool_piece piece;
    tool_progress progress;
    int64_t total = 0;
    bool good = true;
    tarn_count_bytes(j->y.rank, j->cutter.written_shape, j->problem.x.dtype, &total);
    tool_progress_begin(&progress, total, tool_given(j->call, OPTION_QUIET));
    while (good && tool_next_piece(&j->cutter, &piece)) {
        good = run_piece(j, &piece, complaint);
        tarn_view kept = shaped(j, &piece.kept, j->problem.x.dtype);
        tool_progress_add(&progress, (int64_t)tarn_view_bytes(&kept));
    }
    tool_progress_end(&progress);
    return good;
}

/* ---- The whole ----------------------------------------------------------------------------- */

/* The written tensor as its file has it: flat results have no spatial axes. */
static tarn_view result_view(const job *j, tarn_dtype dtype, int *spatial)
{
    bool gradient = j->pass == TARN_VJP;
    tarn_view view = gradient ? j->problem.x : j->y;
    make_dense(j, &view);
    view.dtype = dtype;
    *spatial = gradient ? j->pool.spatial : tool_output_spatial(&j->problem.pool);
    view.rank -= j->pool.spatial - *spatial;
    return view;
}

/* The picture whose type and colour the result keeps; NULL if there is none. */
static const tarn_array *find_model(const job *j)
{
    return tarn_array_is_picture(&j->problem.file) && j->pass < TARN_JVP ? &j->problem.file : NULL;
}

/* Results that no --dtype makes integers do not become pictures on their own. */
static bool check_kind(const job *j, tarn_complaint *complaint)
{
    tarn_file_kind kind = tarn_file_kind_of(j->output);
    bool floating = j->pass >= TARN_JVP || j->pool.op == TARN_SMOOTH || j->pool.op == TARN_LP;
    return kind == TARN_FILE_NPY || kind == TARN_FILE_TEXT || kind == TARN_FILE_UNKNOWN ||
           !floating || find_model(j) ||
           tool_complain_option(complaint, OPTION_OUTPUT,
                                "pictures hold u8 and u16, which %s is not: write .npy",
                                j->pass >= TARN_JVP ? "a derivative" : j->call->command->name);
}

static bool open_results(job *j, tarn_complaint *complaint)
{
    int spatial;
    tarn_view view = result_view(j, j->problem.x.dtype, &spatial);
    tool_target target = {.option = OPTION_OUTPUT,
                          .path = j->output,
                          .text = tool_given(j->call, OPTION_TEXT),
                          .converts = true,
                          .channels_last = j->problem.channels_last,
                          .fortran = j->problem.file.fortran,
                          .like = find_model(j),
                          .memory = j->memory};
    if ((!target.text && !check_kind(j, complaint)) ||
        !tool_result_open(&j->result, &target, &view, spatial, complaint))
        return false;
    if (j->pass != TARN_FORWARD_INDICES)
        return true;
    view = result_view(j, TARN_I64, &spatial);
    target.option = OPTION_INDICES;
    target.path = j->call->value[OPTION_INDICES];
    target.text = target.text && tarn_output_is_stream(target.path);
    target.like = NULL;
    return tool_result_open(&j->indices, &target, &view, spatial, complaint);
}

static bool prepare(job *j, tarn_complaint *complaint)
{
    if (!choose_output(j, complaint) || !choose_pass(j, complaint) || !check_inputs(j, complaint) ||
        !tool_read_memory(j->call, &j->memory, complaint) ||
        !tool_read_options(j->call, &j->options, complaint) ||
        !tool_problem_open(j->call, &j->problem, complaint) || !check_problem(j, complaint))
        return false;
    find_order(j);
    j->x = make_source(&j->problem.file, &j->problem.x);
    bool linear = j->pool.op == TARN_AVG && j->pool.skip == TARN_SKIP_NOTHING;
    j->reads_x = j->pass < TARN_JVP || !linear;
    return open_tangent(j, complaint) && open_results(j, complaint);
}

static void report(const job *j)
{
    int spatial;
    tarn_view view = result_view(j, j->problem.x.dtype, &spatial);
    view = tool_file_view(&view, spatial, j->problem.channels_last);
    fputs("{\"output\": ", stdout);
    tool_json_string(stdout, j->output);
    fputs(", \"shape\": ", stdout);
    tool_json_numbers(stdout, view.shape, view.rank);
    printf(", \"dtype\": \"%s\"}\n", tarn_dtype_name(view.dtype));
}

static void close_job(job *j)
{
    tool_result_close(&j->result);
    tool_result_close(&j->indices);
    tool_problem_close(&j->problem);
    tarn_array_close(&j->tangent_file);
    free(j->x.buffer);
    free(j->tangent.buffer);
    free(j->written);
    free(j->kept);
    free(j->index_buffer);
}

bool tool_run_pool(const tool_call *call, tarn_complaint *complaint)
{
    job j = {.call = call};
    tarn_output_none(&j.result.output);
    tarn_output_none(&j.indices.output);
    bool good = prepare(&j, complaint);
    if (good) {
        tarn_error error;
        good = !tool_cutter_begin(&j.cutter, &j.pool, &j.problem.x, &j.y, j.pass, j.order,
                                  min_i64(j.memory / 2, usual_piece), cost, &j, &error) ||
               tool_complain_library(complaint, &error);
        good = good && run_pieces(&j, complaint) && tool_result_commit(&j.result, complaint) &&
               (j.pass != TARN_FORWARD_INDICES || tool_result_commit(&j.indices, complaint));
    }
    if (good && tool_given(call, OPTION_JSON))
        report(&j);
    close_job(&j);
    return good;
}
