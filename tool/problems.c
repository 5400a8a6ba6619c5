/* From the command line to a problem: operator, windows, and the input's shape or file. */
#include "tool.h"
#include "../src/checked.h"
#include "../src/decimal.h"
#include "../src/io/array_write.h"
#include "../src/skip.h"
#include "../src/suggest.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool tool_complain_library(tarn_complaint *complaint, const tarn_error *error)
{
    complaint->axis = error->axis;
    return tarn_complain(complaint, error->code == TARN_NO_MEMORY ? FAILED_WORK : BAD_USAGE, "%s",
                         error->message);
}

/* ---- Values of options --------------------------------------------------------------------- */

static bool take_integer(const char **text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(*text, &end, 10);
    bool good = end != *text && errno != ERANGE && !isspace((unsigned char)**text);
    *text = end;
    return good;
}

/* "3", "3,5", with `hi` also "1:2,0:1": *count receives how many, and the rest repeats the
 * first. */
static bool read_values(const tool_call *call, tool_option_id option, int64_t *lo, int64_t *hi,
                        int *count, tarn_complaint *complaint)
{
    const char *text = call->value[option];
    bool good = true;
    int n = 0;
    do {
        if (n == TARN_MAX_SPATIAL)
            return tool_complain_option(complaint, option, "has more than %d values",
                                        TARN_MAX_SPATIAL);
        good = take_integer(&text, &lo[n]);
        if (good && hi) {
            hi[n] = lo[n];
            if (*text == ':' && text++)
                good = take_integer(&text, &hi[n]);
        }
        n++;
    } while (good && *text == ',' && text++);
    if (!good || *text)
        return tool_complain_option(complaint, option, "'%.60s' is %s", call->value[option],
                                    errno == ERANGE ? "too large for 64 bits"
                                    : hi ? "not a list of integers such as 1, 1,0 or 1:2,0:1"
                                         : "not a list of integers such as 3 or 3,5");
    for (int a = n; a < TARN_MAX_SPATIAL; a++) {
        lo[a] = lo[0];
        if (hi)
            hi[a] = hi[0];
    }
    if (n > 1 && *count > 1 && n != *count)
        return tool_complain_option(complaint, option, "has %d values where another option has %d",
                                    n, *count);
    *count = n > *count ? n : *count;
    return true;
}

/* The place of `word` in a list that NULL closes; -1 if it is not there. */
static int place_in(const char *const *names, const char *word)
{
    for (int k = 0; names[k]; k++)
        if (strcmp(names[k], word) == 0)
            return k;
    return -1;
}

static bool read_choice(const tool_call *call, tool_option_id option, const char *const *names,
                        int *which, tarn_complaint *complaint)
{
    *which = place_in(names, call->value[option]);
    return *which >= 0 || tool_complain_option(complaint, option, "'%.60s' is not %s",
                                               call->value[option], tool_options[option].argument);
}

static bool read_dtype(const tool_call *call, tarn_dtype *dtype, tarn_complaint *complaint)
{
    for (int k = 0; k < TARN_DTYPES; k++)
        if (strcmp(call->value[OPTION_DTYPE], tarn_dtype_name((tarn_dtype)k)) == 0) {
            *dtype = (tarn_dtype)k;
            return true;
        }
    static const tarn_spelling list[] = {TARN_DTYPE_SPELLINGS};
    const char *word = call->value[OPTION_DTYPE];
    const char *meant = tarn_suggest(word, strlen(word), list, sizeof list / sizeof *list);
    return tool_complain_option(
        complaint, OPTION_DTYPE,
        "'%.60s' is not one of f64 f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64%s%s%s",
        word, meant ? ": did you mean " : "", meant ? meant : "",
        meant ? "?" : "");
}

static bool read_real(const tool_call *call, tool_option_id option, double *number,
                      tarn_complaint *complaint)
{
    return tarn_read_decimal(call->value[option], number) ||
           tool_complain_option(complaint, option, "'%.60s' is not a number", call->value[option]);
}

/* ---- The pooling --------------------------------------------------------------------------- */

/* Options of windows that the window rule does not have would be ignored in silence. */
static bool check_window_options(const tool_call *call, const tarn_pool *pool,
                                 tarn_complaint *complaint)
{
    static const unsigned group[TARN_WINDOWS] = {SLIDING, ADAPTIVE, GLOBAL};
    static const unsigned operator_group[TARN_OPS] = {
        EXTREME | SKIPS, EXTREME | SKIPS, AVERAGE | SUMS | SKIPS, SMOOTH | SUMS, NORM, SKIPS};
    unsigned taken = group[pool->window] | operator_group[pool->op];
    if (pool->divisor > 0) /* a sum */
        taken &= ~(unsigned)(AVERAGE | SUMS);
    for (int k = 0; k < OPTIONS; k++)
        if (call->value[k] && (tool_options[k].groups & ANY_POOL) &&
            !(tool_options[k].groups & taken))
            return tool_complain_option(complaint, (tool_option_id)k,
                                        "does not go with this operator and its windows");
    return true;
}

static bool read_sliding(const tool_call *call, tarn_pool *pool, int *values,
                         tarn_complaint *complaint)
{
    if (!tool_given(call, OPTION_KERNEL))
        return tool_complain_option(complaint, OPTION_KERNEL, "is missing: say --kernel N");
    if (!read_values(call, OPTION_KERNEL, pool->kernel, NULL, values, complaint))
        return false;
    memcpy(pool->stride, pool->kernel, sizeof pool->stride);
    pool->ceil_mode = tool_given(call, OPTION_CEIL);
    return (!tool_given(call, OPTION_STRIDE) ||
            read_values(call, OPTION_STRIDE, pool->stride, NULL, values, complaint)) &&
           (!tool_given(call, OPTION_DILATION) ||
            read_values(call, OPTION_DILATION, pool->dilation, NULL, values, complaint)) &&
           (!tool_given(call, OPTION_PAD) ||
            read_values(call, OPTION_PAD, pool->pad_lo, pool->pad_hi, values, complaint));
}

static bool read_window(const tool_call *call, tarn_pool *pool, int *values,
                        tarn_complaint *complaint)
{
    if (pool->window == TARN_SLIDING)
        return read_sliding(call, pool, values, complaint);
    if (pool->window == TARN_GLOBAL)
        return pool->flat = tool_given(call, OPTION_FLAT), true;
    if (!tool_given(call, OPTION_OUT))
        return tool_complain_option(complaint, OPTION_OUT, "is missing: say --out N");
    return read_values(call, OPTION_OUT, pool->out, NULL, values, complaint);
}

static bool read_skip(const tool_call *call, tarn_pool *pool, tarn_complaint *complaint)
{
    const char *text = call->value[OPTION_SKIP];
    if (text && !tarn_read_skip(text, pool))
        return tool_complain_option(complaint, OPTION_SKIP, "'%.60s' is neither nan nor a number",
                                    text);
    if (!tool_given(call, OPTION_MIN_COUNT))
        return true;
    return text ? tool_read_integer(call, OPTION_MIN_COUNT, 0, &pool->min_count, complaint)
                : tool_complain_option(complaint, OPTION_MIN_COUNT, "needs --skip");
}

static bool read_operator_options(const tool_call *call, tarn_pool *pool, tarn_complaint *complaint)
{
    static const char *const rules[] = {"first", "all", "split", NULL};
    int ties = pool->window == TARN_GLOBAL ? TARN_TIES_ALL : TARN_TIES_FIRST;
    if (tool_given(call, OPTION_TIES) && !read_choice(call, OPTION_TIES, rules, &ties, complaint))
        return false;
    pool->ties = (tarn_ties)ties;
    if (tool_given(call, OPTION_COUNT_PAD) && tool_given(call, OPTION_NO_COUNT_PAD))
        return tool_complain_option(complaint, OPTION_NO_COUNT_PAD,
                                    "contradicts --count-include-pad");
    pool->count_include_pad = !tool_given(call, OPTION_NO_COUNT_PAD);
    return read_skip(call, pool, complaint) &&
           (!tool_given(call, OPTION_DIVISOR) ||
            tool_read_integer(call, OPTION_DIVISOR, 1, &pool->divisor, complaint)) &&
           (!tool_given(call, OPTION_BETA) ||
            read_real(call, OPTION_BETA, &pool->beta, complaint)) &&
           (!tool_given(call, OPTION_POWER) ||
            read_real(call, OPTION_POWER, &pool->power, complaint));
}

/* The number of spatial axes: said, or seen, or usual. */
static bool read_spatial(const tool_call *call, int values, int rank, int *spatial,
                         tarn_complaint *complaint)
{
    int64_t given = values > 1 ? values : rank == 1 ? 1 : 2;
    if (tool_given(call, OPTION_SPATIAL)) {
        if (!tool_read_integer(call, OPTION_SPATIAL, 1, &given, complaint))
            return false;
        if (given > TARN_MAX_SPATIAL)
            return tool_complain_option(complaint, OPTION_SPATIAL, "is at most %d",
                                        TARN_MAX_SPATIAL);
        if (values > 1 && values != given)
            return tool_complain_option(complaint, OPTION_SPATIAL,
                                        "is %d, but an option has %d values", (int)given, values);
    }
    *spatial = (int)given;
    return true;
}

static bool read_pool(const tool_call *call, const tool_command *operation, int rank,
                      tarn_pool *pool, tarn_complaint *complaint)
{
    int values = 0;
    *pool = tarn_max_pool(1); /* the defaults of every operator */
    pool->op = operation->op;
    pool->window = operation->window;
    pool->divisor = operation->divisor;
    return check_window_options(call, pool, complaint) &&
           read_window(call, pool, &values, complaint) &&
           read_operator_options(call, pool, complaint) &&
           read_spatial(call, values, rank, &pool->spatial, complaint);
}

/* ---- Axes ---------------------------------------------------------------------------------- */

static tarn_view move_axis(const tarn_view *view, int from, int to)
{
    tarn_view result = *view;
    int step = from < to ? 1 : -1;
    for (int a = from; a != to; a += step) {
        result.shape[a] = view->shape[a + step];
        result.strides[a] = view->strides[a + step];
    }
    result.shape[to] = view->shape[from];
    result.strides[to] = view->strides[from];
    return result;
}

tarn_view tool_logical_view(const tarn_view *file, int spatial, bool channels_last)
{
    if (!channels_last || spatial >= file->rank || file->rank > TARN_MAX_RANK)
        return *file;
    return move_axis(file, file->rank - 1, file->rank - 1 - spatial);
}

tarn_view tool_file_view(const tarn_view *logical, int spatial, bool channels_last)
{
    if (!channels_last || spatial >= logical->rank)
        return *logical;
    return move_axis(logical, logical->rank - 1 - spatial, logical->rank - 1);
}

/* ---- The input ----------------------------------------------------------------------------- */

static bool looks_like_shape(const char *word)
{
    return isdigit((unsigned char)word[strspn(word, "-")]) &&
           word[strspn(word, "-0123456789x")] == '\0';
}

static bool read_shape(const char *word, tarn_view *view, tarn_complaint *complaint)
{
    int64_t shape[TARN_MAX_RANK];
    int rank = 0;
    const char *text = word;
    bool good = true;
    do {
        if (rank == TARN_MAX_RANK)
            return tarn_complain(complaint, BAD_USAGE, "shape %.60s: more than %d axes", word,
                                 TARN_MAX_RANK);
        good = take_integer(&text, &shape[rank++]);
    } while (good && *text == 'x' && text++);
    if (!good || *text)
        return tarn_complain(complaint, BAD_USAGE, "'%.60s' is %s", word,
                             errno == ERANGE ? "too large for 64 bits"
                                             : "not a shape such as 1x64x112x112");
    *view = tarn_view_dense(NULL, TARN_F32, rank, shape);
    return true;
}

static bool read_layout(const tool_call *call, tool_problem *problem, tarn_complaint *complaint)
{
    static const char *const layouts[] = {"first", "last", NULL};
    int which = (tarn_array_is_picture(&problem->file) && problem->file.view.rank == 3) ||
                problem->file.channels_last;
    if (tool_given(call, OPTION_LAYOUT) &&
        !read_choice(call, OPTION_LAYOUT, layouts, &which, complaint))
        return false;
    problem->channels_last = which;
    return true;
}

/* Rows of colours that windows are about to mix look like this: a short last axis behind a long
 * one. */
static bool looks_like_channels_last(const tarn_view *file, int spatial)
{
    enum { MOST_COLOURS = 4, A_ROW = 16 };
    return file->rank > spatial && spatial == 2 && file->shape[file->rank - 1] <= MOST_COLOURS &&
           file->shape[file->rank - 2] >= A_ROW;
}

static void warn_of_layout(const tool_call *call, const char *word, const tarn_view *file,
                           int spatial)
{
    char note[120];
    if (tool_given(call, OPTION_LAYOUT) || !looks_like_channels_last(file, spatial))
        return;
    snprintf(note, sizeof note,
             "the last axis, of %lld, is pooled over: say --layout last if it holds channels, or "
             "--layout first",
             (long long)file->shape[file->rank - 1]);
    tool_print_note(word, note, tool_given(call, OPTION_JSON));
}

/* Pictures have integers: where those will not do, they are taken as f32. */
static bool needs_floats(const tool_call *call, const tarn_pool *pool)
{
    return pool->op == TARN_SMOOTH || pool->op == TARN_LP || tool_given(call, OPTION_JVP) ||
           tool_given(call, OPTION_VJP);
}

/* A problem out of options and the one word that is left: a shape or a file. */
static bool from_options(const tool_call *call, const tool_command *operation, const char *word,
                         tool_problem *problem, tarn_complaint *complaint)
{
    int64_t memory;
    bool shape = !call->command->pools && looks_like_shape(word);
    if (!tool_read_memory(call, &memory, complaint))
        return false;
    if (shape ? !read_shape(word, &problem->x, complaint)
              : !tarn_array_open(word, memory, &problem->file, complaint))
        return false;
    tarn_view file = shape ? problem->x : problem->file.view;
    *complaint = tarn_no_complaint();
    if (!read_layout(call, problem, complaint) ||
        !read_pool(call, operation, file.rank, &problem->pool, complaint))
        return false;
    if (problem->pool.spatial > 2 && tarn_array_is_picture(&problem->file))
        return tarn_complain(complaint, BAD_USAGE,
                             "a picture has 2 spatial axes, rows and columns; %d are asked for",
                             problem->pool.spatial);
    if (!problem->channels_last && !shape)
        warn_of_layout(call, word, &file, problem->pool.spatial);
    problem->x = tool_logical_view(&file, problem->pool.spatial, problem->channels_last);
    if (tarn_array_is_picture(&problem->file) && needs_floats(call, &problem->pool))
        problem->x.dtype = TARN_F32;
    return !tool_given(call, OPTION_DTYPE) || read_dtype(call, &problem->x.dtype, complaint);
}

/* A problem string says everything: options that say some of it again are refused. */
static bool from_text(const tool_call *call, const char *text, tool_problem *problem,
                      tarn_complaint *complaint)
{
    unsigned windows = ANY_WINDOW & ~(unsigned)PROBLEM;
    tarn_error error;
    for (int k = 0; k < OPTIONS; k++)
        if (call->value[k] && k != OPTION_PROBLEM_TEXT &&
            (tool_options[k].groups & (windows | PROBLEM)))
            return tool_complain_option(complaint, (tool_option_id)k,
                                        "does not go with a problem string, which says it all");
    if (tarn_problem_parse(text, &problem->pool, &problem->x, &error))
        return tool_complain_library(complaint, &error);
    problem->channels_last = false; /* the string's shape is told leading axes first */
    return true;
}

static bool is_operation(const tool_command *command, const tarn_pool *pool)
{
    return command->pools && command->op == pool->op && command->window == pool->window &&
           (command->divisor == 0 || command->divisor == pool->divisor);
}

static const char *operator_name(const tarn_pool *pool)
{
    int k = 0;
    while (k < tool_command_count - 1 &&
           !(is_operation(&tool_commands[k], pool)))
        k++;
    return tool_commands[k].name;
}

/* The operator that the command line names, if it does, is that of the string. */
static bool check_operation(const tool_command *operation, const tarn_pool *pool,
                            tarn_complaint *complaint)
{
    return !operation || is_operation(operation, pool) ||
           tool_complain_option(complaint, OPTION_PROBLEM_TEXT, "says %s, but the command %s",
                                operator_name(pool), operation->name);
}

static bool check_shape(const tarn_view *file, const tool_problem *problem,
                        tarn_complaint *complaint)
{
    char is[120], should[120];
    const tarn_view *x = &problem->x;
    if (file->rank == x->rank &&
        memcmp(file->shape, x->shape, (size_t)x->rank * sizeof *x->shape) == 0)
        return true;
    tool_format_shape(is, sizeof is, file->shape, file->rank);
    tool_format_shape(should, sizeof should, x->shape, x->rank);
    return tarn_complain(complaint, BAD_USAGE, "is %s%s, but the problem string says %s", is,
                         problem->channels_last ? ", channels first" : "", should);
}

/* --problem beside a file: the file must be what the string says. */
static bool from_text_and_file(const tool_call *call, const tool_command *operation,
                               const char *word, tool_problem *problem, tarn_complaint *complaint)
{
    int64_t memory;
    if (!from_text(call, call->value[OPTION_PROBLEM_TEXT], problem, complaint) ||
        !check_operation(operation, &problem->pool, complaint) ||
        !tool_read_memory(call, &memory, complaint) ||
        !tarn_array_open(word, memory, &problem->file, complaint))
        return false;
    tarn_view dense = tarn_view_dense(NULL, problem->x.dtype, problem->x.rank, problem->x.shape);
    problem->channels_last = memcmp(dense.strides, problem->x.strides, sizeof dense.strides) != 0 ||
                             tarn_array_is_picture(&problem->file);
    tarn_view x =
        tool_logical_view(&problem->file.view, problem->pool.spatial, problem->channels_last);
    if (!check_shape(&x, problem, complaint))
        return false;
    x.dtype = problem->x.dtype;
    problem->x = x;
    *complaint = tarn_no_complaint();
    return true;
}

/* The words of a problem string that was not quoted, joined again. */
static bool join_words(const tool_call *call, char *text, size_t room, tarn_complaint *complaint)
{
    size_t used = 0;
    for (int k = 0; k < call->words; k++)
        used += (size_t)snprintf(text + (used < room ? used : room - 1),
                                 used < room ? room - used : 1, k ? " %s" : "%s", call->word[k]);
    return used < room ||
           tarn_complain(complaint, BAD_USAGE, "a problem string of %zu letters", used);
}

/* The name of an operator, followed by a space. */
static bool begins_problem(const char *word)
{
    static const char *const names[] = {"max ",    "min ", "avg ",  "sum ",
                                        "smooth ", "lp ",  "mode ", NULL};
    for (int k = 0; names[k]; k++)
        if (strncmp(word, names[k], strlen(names[k])) == 0)
            return true;
    return false;
}

/* The operator: the command's own, that of the first word, that of --op, or max. */
static bool find_operation(const tool_call *call, bool named, const tool_command **operation,
                           tarn_complaint *complaint)
{
    const char *name = tool_given(call, OPTION_OP) ? call->value[OPTION_OP] : "max";
    if (named && tool_given(call, OPTION_OP))
        return tool_complain_option(complaint, OPTION_OP, "is given although '%s' is",
                                    call->word[0]);
    *operation =
        call->command->pools ? call->command : tool_find_command(named ? call->word[0] : name);
    if (*operation && (*operation)->pools)
        return true;
    const char *meant = tool_suggest_command(name, true);
    return tool_complain_option(complaint, OPTION_OP, "'%.60s' is no operator%s%s%s", name,
                                meant ? ": did you mean " : "", meant ? meant : "",
                                meant ? "?" : "");
}

/* Words that make no problem, for reasons that the parser of problem strings cannot know. */
static bool check_words(const tool_call *call, const tool_command *first, tarn_complaint *complaint)
{
    if (call->words == 0)
        return tarn_complain(complaint, BAD_USAGE, "nothing to work on: tarn %s %s",
                             call->command->name, call->command->arguments);
    if (call->command->pools)
        return true;
    if (call->words == 1 && first && first->pools)
        return tarn_complain(complaint, BAD_USAGE, "%s of what? tarn %s %s", first->name,
                             call->command->name, call->command->arguments);
    if (call->words == 2 && !first) {
        const char *meant = tool_suggest_command(call->word[0], true);
        if (meant)
            return tarn_complain(complaint, BAD_USAGE, "'%.60s' is no operator: did you mean %s?",
                                 call->word[0], meant);
    }
    for (int k = 1; k < call->words && call->words > 2; k++)
        if (strchr(call->word[k], '.') && tarn_file_kind_of(call->word[k]) != TARN_FILE_UNKNOWN)
            return tarn_complain(complaint, BAD_USAGE,
                                 "'%.60s' is a file: windows beside it are options, as in tarn %s "
                                 "%.60s %.60s --kernel 3",
                                 call->word[k], call->command->name, call->word[0], call->word[k]);
    return true;
}

static bool open_problem(const tool_call *call, tool_problem *problem, tarn_complaint *complaint)
{
    char text[1024];
    const tool_command *operation = NULL;
    bool pools = call->command->pools;
    const tool_command *first =
        pools || call->words == 0 ? NULL : tool_find_command(call->word[0]);
    if (!check_words(call, first, complaint))
        return false;
    bool named = first && first->pools && call->words > 1;
    if (!pools &&
        (call->words > 2 || (call->words == 2 && !named) || begins_problem(call->word[0])))
        return join_words(call, text, sizeof text, complaint) &&
               from_text(call, text, problem, complaint);
    if (call->words > 1 + named)
        return tarn_complain(complaint, BAD_USAGE, "'%.60s' is one argument too many%s",
                             call->word[1 + named],
                             pools ? ": results go to -o FILE, and lists have commas but no spaces"
                                   : "");
    if (tool_given(call, OPTION_PROBLEM_TEXT))
        return from_text_and_file(call,
                                  pools   ? call->command
                                  : named ? first
                                          : NULL,
                                  call->word[named], problem, complaint);
    return find_operation(call, named, &operation, complaint) &&
           from_options(call, operation, call->word[named], problem, complaint);
}

bool tool_problem_open(const tool_call *call, tool_problem *problem, tarn_complaint *complaint)
{
    *problem = (tool_problem){0};
    if (open_problem(call, problem, complaint))
        return true;
    tool_problem_close(problem);
    return false;
}

void tool_problem_close(tool_problem *problem)
{
    tarn_array_close(&problem->file);
}
