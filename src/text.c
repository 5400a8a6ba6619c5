/* Problem strings: docs/problem-strings.md. */
#include "decimal.h"
#include "error.h"
#include "shape.h"
#include "skip.h"
#include "suggest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const op_names[TARN_OPS] = {"max", "min", "avg", "smooth", "lp", "mode"};
static const char *const tie_names[TARN_TIES] = {"first", "all", "split"};

/* ---- Parsing -------------------------------------------------------------------------------- */

typedef struct {
    const char *text, *at; /* the whole line, and the rest of it */
    tarn_pool *pool;
    tarn_error *error;
    int values;  /* greatest number of per-axis values seen; 0: none */
    int spatial; /* given by d<n>; 0: not given */
    int pieces;  /* axes that piece= told of */
    bool ties_given, shape_given, dtype_given, window_given, channels_last;
    int64_t shape[TARN_MAX_RANK];
    int rank;
    tarn_dtype dtype;
} parser;

static tarn_status bad_text(const parser *p, const char *expected)
{
    return tarn_fail(p->error, TARN_BAD_TEXT, NO_AXIS, "column %d: expected %s",
                     (int)(p->at - p->text) + 1, expected);
}

static bool at_end_of_word(const parser *p)
{
    return *p->at == '\0' || *p->at == ' ';
}

/* Consumes `word` if it is next. */
static bool take(parser *p, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* Consumes `word` if it is the whole next word. */
static bool take_word(parser *p, const char *word)
{
    const char *before = p->at;
    if (take(p, word) && at_end_of_word(p))
        return true;
    p->at = before;
    return false;
}

static bool take_name(parser *p, const char *const *names, int count, int *which)
{
    for (*which = 0; *which < count; ++*which)
        if (take_word(p, names[*which]))
            return true;
    return false;
}

static tarn_status take_integer(parser *p, int64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)*p->at) && *p->at != '-')
        return bad_text(p, "a number");
    errno = 0;
    long long number = strtoll(p->at, &end, 10);
    if (end == p->at || errno == ERANGE)
        return bad_text(p, "a number of at most 63 bits");
    *value = number;
    p->at = end;
    return TARN_OK;
}

/* "3" for every axis, or "3,5,..."; with `hi`, each value may be two: "1:2". */
static tarn_status take_pairs(parser *p, int64_t *lo, int64_t *hi)
{
    int count = 0;
    do {
        if (count == TARN_MAX_SPATIAL)
            return bad_text(p, "at most 8 values");
        tarn_status status = take_integer(p, &lo[count]);
        if (!status && hi) {
            hi[count] = lo[count];
            if (take(p, ":"))
                status = take_integer(p, &hi[count]);
        }
        if (status)
            return status;
        count++;
    } while (take(p, ","));
    for (int a = count; a < TARN_MAX_SPATIAL; a++) {
        lo[a] = lo[0];
        if (hi)
            hi[a] = hi[0];
    }
    if (count > 1 && p->values > 1 && count != p->values)
        return bad_text(p, "the same number of values everywhere");
    p->values = count > p->values ? count : p->values;
    return TARN_OK;
}

static tarn_status take_values(parser *p, int64_t *values)
{
    return take_pairs(p, values, NULL);
}

/* k3s2p1e1: the stride is the kernel unless given. */
static tarn_status take_sliding(parser *p)
{
    tarn_pool *pool = p->pool;
    tarn_status status = take_values(p, pool->kernel);
    memcpy(pool->stride, pool->kernel, sizeof pool->stride);
    while (!status && !at_end_of_word(p)) {
        if (take(p, "s"))
            status = take_values(p, pool->stride);
        else if (take(p, "p"))
            status = take_pairs(p, pool->pad_lo, pool->pad_hi);
        else if (take(p, "e"))
            status = take_values(p, pool->dilation);
        else
            status = bad_text(p, "s, p or e after the kernel, as in k3s2p1");
    }
    return status;
}

/* Whether what comes next is `letter` and a number. */
static bool at_value(const parser *p, char letter)
{
    return *p->at == letter && (isdigit((unsigned char)p->at[1]) || p->at[1] == '-');
}

/* A window may be said once; `global flat` says one thing in two words. */
static tarn_status set_window(parser *p, tarn_window window)
{
    bool again = p->window_given && !(window == TARN_GLOBAL && p->pool->window == TARN_GLOBAL);
    p->window_given = true;
    p->pool->window = window;
    return again ? bad_text(p, "one window only") : TARN_OK;
}

static tarn_status take_sliding_window(parser *p)
{
    tarn_status status = set_window(p, TARN_SLIDING);
    p->at++;
    return status ? status : take_sliding(p);
}

static tarn_status take_adaptive_window(parser *p)
{
    tarn_status status = set_window(p, TARN_ADAPTIVE);
    p->at++;
    return status ? status : take_values(p, p->pool->out);
}

/* Words of a problem and those of other libraries for them; what takes a value ends at its '='. */
static const tarn_spelling spellings[] = {
    TARN_DTYPE_SPELLINGS,      {"global", "global"}, {"flat", "flat"},    {"ceil", "ceil"},
    {"ceil_mode", "ceil"},     {"nopad", "nopad"},   {"last", "last"},    {"nhwc", "last"},
    {"channels_last", "last"}, {"ties", "ties="},    {"div", "div="},     {"divisor", "div="},
    {"beta", "beta="},         {"power", "p="},      {"norm", "p="},      {"kernel", "k"},
    {"kernel_size", "k"},      {"stride", "k3s2"},   {"strides", "k3s2"}, {"pad", "k3p1"},
    {"padding", "k3p1"},       {"dilation", "k3e2"}, {"adaptive", "a"},   {"skip", "skip="},
    {"ignore", "skip="},       {"min_count", "min="}};

static tarn_status unknown_word(const parser *p)
{
    size_t length = strcspn(p->at, " "), name = strcspn(p->at, " =0123456789");
    int column = (int)(p->at - p->text) + 1, shown = (int)(length < 40 ? length : 40);
    int count = sizeof spellings / sizeof *spellings;
    const char *meant = tarn_suggest(p->at, length, spellings, count);
    if (!meant)
        meant = tarn_suggest(p->at, name, spellings, count);
    if (meant)
        return tarn_fail(p->error, TARN_BAD_TEXT, NO_AXIS,
                         "column %d: unknown word '%.*s': did you mean %s?", column, shown, p->at,
                         meant);
    return tarn_fail(
        p->error, TARN_BAD_TEXT, NO_AXIS,
        "column %d: unknown word '%.*s' (windows: k3s2p1e1, a7, global, flat; then dtype, "
        "shape, d2, last, ceil, nopad, div=, beta=, p=, ties=, skip=, min=, piece=)",
        column, shown, p->at);
}

static tarn_status unknown_operator(const parser *p)
{
    static const tarn_spelling operators[] = {
        {"max", "max"},       {"maximum", "max"},      {"maxpool", "max"},
        {"min", "min"},       {"minimum", "min"},      {"avg", "avg"},
        {"average", "avg"},   {"mean", "avg"},         {"avgpool", "avg"},
        {"smooth", "smooth"}, {"logsumexp", "smooth"}, {"lse", "smooth"},
        {"lp", "lp"},         {"norm", "lp"},          {"l2", "lp"},
        {"sum", "sum"},       {"total", "sum"},        {"mode", "mode"}};
    size_t length = strcspn(p->at, " ");
    const char *meant =
        tarn_suggest(p->at, length, operators, sizeof operators / sizeof *operators);
    if (!meant)
        return bad_text(p, "max, min, avg, sum, mode, smooth or lp");
    return tarn_fail(p->error, TARN_BAD_TEXT, NO_AXIS,
                     "column %d: expected max, min, avg, sum, mode, smooth or lp: did you mean %s?",
                     (int)(p->at - p->text) + 1, meant);
}

static tarn_status take_shape(parser *p)
{
    tarn_status status;
    if (p->shape_given)
        return bad_text(p, "one shape only (a kernel is written k3)");
    p->shape_given = true;
    do {
        if (p->rank == TARN_MAX_RANK)
            return bad_text(p, "at most 64 axes");
        if ((status = take_integer(p, &p->shape[p->rank++])))
            return status;
    } while (take(p, "x"));
    return at_end_of_word(p) ? TARN_OK : bad_text(p, "x between the sizes, as in 1x64x112x112");
}

static tarn_status take_ties(parser *p)
{
    int which;
    if (!take_name(p, tie_names, TARN_TIES, &which))
        return bad_text(p, "first, all or split");
    p->pool->ties = (tarn_ties)which;
    p->ties_given = true;
    return TARN_OK;
}

/* A descriptor can hold numbers that no decimal tells; a string says them, too. */
static bool take_no_decimal(parser *p, double *value)
{
    static const struct {
        const char *name;
        double number;
    } names[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}, {"-nan", NAN}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (take_word(p, names[k].name)) {
            *value = names[k].number;
            return true;
        }
    return false;
}

static tarn_status take_real(parser *p, double *value)
{
    return tarn_take_decimal(&p->at, value) || take_no_decimal(p, value) ? TARN_OK
                                                                         : bad_text(p, "a number");
}

/* nan, or a number. */
static tarn_status take_skip(parser *p)
{
    char word[64];
    size_t length = strcspn(p->at, " ");
    if (length < sizeof word) {
        memcpy(word, p->at, length);
        word[length] = '\0';
        if (tarn_read_skip(word, p->pool)) {
            p->at += length;
            return TARN_OK;
        }
    }
    return bad_text(p, "nan or a number");
}

static bool take_dtype(parser *p)
{
    for (int k = 0; k < TARN_DTYPES; k++)
        if (take_word(p, tarn_dtype_name((tarn_dtype)k))) {
            p->dtype = (tarn_dtype)k;
            p->dtype_given = true;
            return true;
        }
    return false;
}

static tarn_status take_spatial(parser *p)
{
    int64_t number;
    p->at++; /* the d */
    tarn_status status = take_integer(p, &number);
    if (status)
        return status;
    if (number < 1 || number > TARN_MAX_SPATIAL)
        return bad_text(p, "1 to 8 spatial axes");
    p->spatial = (int)number;
    return TARN_OK;
}

/* "24:3:2:5" for every axis: the whole size, x's first cell, y's first window, how many it has. */
static tarn_status take_piece(parser *p)
{
    tarn_pool *pool = p->pool;
    int64_t *const values[] = {pool->whole, pool->origin, pool->first, pool->count};
    if (p->pieces > 0)
        return bad_text(p, "one piece only");
    do {
        if (p->pieces == TARN_MAX_SPATIAL)
            return bad_text(p, "at most 8 values");
        for (int k = 0; k < 4; k++) {
            if (k > 0 && !take(p, ":"))
                return bad_text(p, "four numbers: whole size, first cell, first window, windows");
            tarn_status status = take_integer(p, &values[k][p->pieces]);
            if (status)
                return status;
        }
        p->pieces++;
    } while (take(p, ","));
    return TARN_OK;
}

/* One word after the operator. */
static tarn_status take_item(parser *p)
{
    bool second = p->dtype_given;
    if (take_dtype(p))
        return second ? bad_text(p, "one dtype only") : TARN_OK;
    if (take_word(p, "ceil"))
        return p->pool->ceil_mode = 1, TARN_OK;
    if (take_word(p, "nopad"))
        return p->pool->count_include_pad = 0, TARN_OK;
    if (take_word(p, "last"))
        return p->channels_last = true, TARN_OK;
    if (take_word(p, "global"))
        return set_window(p, TARN_GLOBAL);
    if (take_word(p, "flat"))
        return p->pool->flat = 1, set_window(p, TARN_GLOBAL);
    if (take(p, "ties="))
        return take_ties(p);
    if (take(p, "div="))
        return take_integer(p, &p->pool->divisor);
    if (take(p, "skip="))
        return take_skip(p);
    if (take(p, "min="))
        return take_integer(p, &p->pool->min_count);
    if (take(p, "beta="))
        return take_real(p, &p->pool->beta);
    if (take(p, "p="))
        return take_real(p, &p->pool->power);
    if (take(p, "piece="))
        return take_piece(p);
    if (at_value(p, 'd'))
        return take_spatial(p);
    if (at_value(p, 'k'))
        return take_sliding_window(p);
    if (at_value(p, 'a'))
        return take_adaptive_window(p);
    return isdigit((unsigned char)*p->at) || *p->at == '-' ? take_shape(p) : unknown_word(p);
}

static tarn_status take_items(parser *p)
{
    for (;;) {
        while (*p->at == ' ')
            p->at++;
        if (*p->at == '\0')
            return TARN_OK;
        tarn_status status = take_item(p);
        if (!status && !at_end_of_word(p))
            status = bad_text(p, "a space");
        if (status)
            return status;
    }
}

/* 2 spatial axes, but 1 for a one-dimensional array. */
static int usual_spatial(int rank)
{
    return rank == 1 ? 1 : 2;
}

static tarn_status settle(parser *p, tarn_pool *pool, tarn_view *x)
{
    if (!p->window_given)
        return bad_text(p, "a window: k..., a..., global or flat");
    if (!p->dtype_given)
        return bad_text(p, "a dtype such as f32");
    if (!p->shape_given)
        return bad_text(p, "a shape such as 1x64x112x112");
    if (p->spatial && p->values > 1 && p->values != p->spatial)
        return bad_text(p, "as many values as spatial axes");
    pool->spatial = p->spatial ? p->spatial : p->values > 1 ? p->values : usual_spatial(p->rank);
    if (p->pieces > 0 && p->pieces != pool->spatial)
        return bad_text(p, "a piece of every spatial axis");
    if (!p->ties_given && pool->window == TARN_GLOBAL)
        pool->ties = TARN_TIES_ALL;
    *x = p->channels_last
             ? tarn_view_channels_last(NULL, p->dtype, p->rank, pool->spatial, p->shape)
             : tarn_view_dense(NULL, p->dtype, p->rank, p->shape);
    return tarn_succeed(p->error);
}

/* The operator; `sum` is an average with divisor 1. */
static tarn_status take_operator(parser *p)
{
    int op;
    if (take_word(p, "sum")) {
        p->pool->op = TARN_AVG;
        p->pool->divisor = 1;
        return TARN_OK;
    }
    if (!take_name(p, op_names, TARN_OPS, &op))
        return unknown_operator(p);
    p->pool->op = (tarn_op)op;
    return TARN_OK;
}

tarn_status tarn_problem_parse(const char *text, tarn_pool *pool, tarn_view *x, tarn_error *error)
{
    if (!text || !pool || !x)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "%s is NULL",
                         !text  ? "text"
                         : pool ? "x"
                                : "pool");
    tarn_pool result = tarn_max_pool(2);
    parser p = {.text = text, .at = text, .pool = &result, .error = error};
    while (*p.at == ' ')
        p.at++;
    tarn_view view;
    tarn_status status;
    if ((status = take_operator(&p)) || (status = take_items(&p)) ||
        (status = settle(&p, &result, &view)))
        return status;
    *pool = result;
    *x = view;
    return TARN_OK;
}

/* ---- Formatting ----------------------------------------------------------------------------- */

typedef struct {
    char *text;
    size_t size;
    int length;
} writer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(writer *w, const char *format, ...)
{
    va_list arguments;
    size_t used = (size_t)w->length < w->size ? (size_t)w->length : w->size;
    va_start(arguments, format);
    w->length += vsnprintf(w->text ? w->text + used : NULL, w->size - used, format, arguments);
    va_end(arguments);
}

/* One number if all are equal and more than one axis does not have to be told apart. */
static void put_values(writer *w, const char *letter, const int64_t *lo, const int64_t *hi,
                       int count)
{
    int distinct = 1;
    for (int a = 1; a < count; a++)
        if (lo[a] != lo[0] || hi[a] != hi[0])
            distinct = count;
    put(w, "%s", letter);
    for (int a = 0; a < distinct; a++) {
        put(w, a ? ",%lld" : "%lld", (long long)lo[a]);
        if (lo[a] != hi[a])
            put(w, ":%lld", (long long)hi[a]);
    }
}

static bool any_other_than(const int64_t *values, int count, int64_t usual)
{
    for (int a = 0; a < count; a++)
        if (values[a] != usual)
            return true;
    return false;
}

static void put_window(writer *w, const tarn_pool *pool, int count)
{
    if (pool->window == TARN_GLOBAL) {
        put(w, pool->flat ? " flat" : " global");
        return;
    }
    if (pool->window == TARN_ADAPTIVE) {
        put_values(w, " a", pool->out, pool->out, count);
        return;
    }
    put_values(w, " k", pool->kernel, pool->kernel, count);
    put_values(w, "s", pool->stride, pool->stride, count);
    if (any_other_than(pool->pad_lo, count, 0) || any_other_than(pool->pad_hi, count, 0))
        put_values(w, "p", pool->pad_lo, pool->pad_hi, count);
    if (any_other_than(pool->dilation, count, 1))
        put_values(w, "e", pool->dilation, pool->dilation, count);
}

static void put_real(writer *w, const char *key, double number)
{
    char text[DECIMAL_BYTES];
    tarn_print_decimal(number, text);
    put(w, " %s=%s", key, text);
}

static void put_skip(writer *w, const tarn_pool *pool)
{
    char text[DECIMAL_BYTES];
    if (pool->skip == TARN_SKIP_NOTHING)
        return;
    tarn_print_skip(pool, text);
    put(w, " skip=%s", text);
    if (pool->min_count != 1)
        put(w, " min=%lld", (long long)pool->min_count);
}

static void put_options(writer *w, const tarn_pool *pool)
{
    tarn_ties usual = pool->window == TARN_GLOBAL ? TARN_TIES_ALL : TARN_TIES_FIRST;
    bool extreme = pool->op == TARN_MAX || pool->op == TARN_MIN;
    bool counts = pool->op == TARN_AVG || pool->op == TARN_SMOOTH;
    if (pool->window == TARN_SLIDING && pool->ceil_mode)
        put(w, " ceil");
    if (counts && !pool->count_include_pad)
        put(w, " nopad");
    if (pool->op == TARN_AVG && pool->divisor != 0)
        put(w, " div=%lld", (long long)pool->divisor);
    if (pool->op == TARN_SMOOTH)
        put_real(w, "beta", pool->beta);
    if (pool->op == TARN_LP)
        put_real(w, "p", pool->power);
    if (extreme && pool->ties != usual && (int)pool->ties >= 0 && pool->ties < TARN_TIES)
        put(w, " ties=%s", tie_names[pool->ties]);
    put_skip(w, pool);
}

static void put_piece(writer *w, const tarn_pool *pool, int count)
{
    if (!any_other_than(pool->whole, count, 0))
        return;
    for (int a = 0; a < count; a++)
        put(w, "%s%lld:%lld:%lld:%lld", a ? "," : " piece=", (long long)pool->whole[a],
            (long long)pool->origin[a], (long long)pool->first[a], (long long)pool->count[a]);
}

static bool is_channels_last(const tarn_pool *pool, const tarn_view *x)
{
    tarn_view last = tarn_view_channels_last(NULL, x->dtype, x->rank, pool->spatial, x->shape);
    tarn_view dense = tarn_view_dense(NULL, x->dtype, x->rank, x->shape);
    size_t bytes = sizeof(int64_t) * (size_t)x->rank;
    return memcmp(x->strides, last.strides, bytes) == 0 &&
           memcmp(x->strides, dense.strides, bytes) != 0;
}

int tarn_problem_format(const tarn_pool *pool, const tarn_view *x, char *text, size_t size)
{
    writer w = {.text = text, .size = text ? size : 0};
    if (!pool || !x || x->rank < 0 || x->rank > TARN_MAX_RANK)
        return -1;
    if ((int)pool->op < 0 || pool->op >= TARN_OPS)
        return -1;
    int count = pool->spatial < 1                  ? 1
                : pool->spatial > TARN_MAX_SPATIAL ? TARN_MAX_SPATIAL
                                                   : pool->spatial;
    put(&w, "%s", op_names[pool->op]);
    put_window(&w, pool, count);
    if (pool->spatial != usual_spatial(x->rank))
        put(&w, " d%d", pool->spatial);
    put(&w, " %s", tarn_dtype_name(x->dtype));
    for (int a = 0; a < x->rank; a++)
        put(&w, a ? "x%lld" : " %lld", (long long)x->shape[a]);
    if (is_channels_last(pool, x))
        put(&w, " last");
    put_options(&w, pool);
    put_piece(&w, pool, count);
    return w.length;
}
