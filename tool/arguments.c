/* The command line, read by the table of options. */
#include "tool.h"
#include "../src/checked.h"
#include "../src/io/array_write.h"
#include "../src/io/region.h"
#include "../src/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int argc, at;
    char *const *argv;
    tool_call *call;
    tarn_complaint *complaint;
} parser;

static bool add_named(parser *p, int option, const char *value)
{
    if (p->call->nameds == MOST_WORDS)
        return tarn_complain(p->complaint, BAD_USAGE, "more than %d options", MOST_WORDS);
    p->call->named[p->call->nameds++] = (tool_named){(tool_option_id)option, value};
    return true;
}

/* An option of other commands. Windows of another kind are the usual reason, so that is said. */
static bool refuse(const parser *p, int option, const char *text)
{
    const tool_command *command = p->call->command;
    unsigned groups = tool_options[option].groups;
    const char *why = NULL;
    if (command->pools && command->window == TARN_GLOBAL && (groups & (SLIDING | ADAPTIVE)))
        why = "a global window covers everything";
    else if (command->pools && command->window == TARN_ADAPTIVE && (groups & SLIDING))
        why = "say --out N, the number of windows on each axis";
    else if (command->pools && command->window == TARN_SLIDING && (groups & ADAPTIVE))
        why = "say --kernel N, or call the command with adaptive- before its name";
    if (why)
        return tarn_complain_option(p->complaint, text, "is no option of 'tarn %s': %s",
                                    command->name, why);
    return tarn_complain_option(p->complaint, text,
                                "is no option of 'tarn %s' (see tarn %s --help)", command->name,
                                command->name);
}

static bool set(parser *p, int option, const char *value)
{
    const tool_command *command = p->call->command;
    const char *text = tool_option_text((tool_option_id)option);
    if (!(tool_options[option].groups & command->groups))
        return refuse(p, option, text);
    if (tool_options[option].groups & command->groups & NAMED)
        return add_named(p, option, value);
    if (p->call->value[option])
        return tarn_complain_option(p->complaint, text, "is given twice");
    p->call->value[option] = value;
    return true;
}

/* Whether a word is an option of the table, as -o or --output. Values may begin with a dash, too:
 * -1, -inf, or - for standard input. */
static bool is_option(const char *word)
{
    if (word[0] != '-')
        return false;
    for (int k = 0; k < OPTIONS; k++)
        if ((tool_options[k].letter && word[1] == tool_options[k].letter && !word[2]) ||
            strcmp(word, tool_option_text((tool_option_id)k)) == 0)
            return true;
    return false;
}

/* The option's value: after '=' or directly after the letter, or else the next argument. */
static bool take_value(parser *p, int option, const char *attached)
{
    const tool_option *row = &tool_options[option];
    const char *text = tool_option_text((tool_option_id)option);
    if (!row->argument)
        return attached ? tarn_complain_option(p->complaint, text, "takes no value")
                        : set(p, option, "");
    if (attached)
        return set(p, option, attached);
    if (p->at >= p->argc)
        return tarn_complain_option(p->complaint, text, "needs a value: %s %s", text,
                                    row->argument);
    if (is_option(p->argv[p->at]))
        return tarn_complain_option(p->complaint, text,
                                    "needs a value, and '%.60s' is an option: %s %s",
                                    p->argv[p->at], text, row->argument);
    return set(p, option, p->argv[p->at++]);
}

/* Options as other libraries call them. */
static const tarn_spelling foreign_options[] = {
    {"kernel-size", "--kernel"},     {"ksize", "--kernel"},       {"window", "--kernel"},
    {"strides", "--stride"},         {"padding", "--pad"},        {"ceil-mode", "--ceil"},
    {"output-size", "--out"},        {"norm-type", "--power"},    {"divisor-override", "--divisor"},
    {"return-indices", "--indices"}, {"data-format", "--layout"}, {"channels-last", "--layout"},
    {"dilations", "--dilation"},     {"type", "--dtype"},         {"jobs", "--threads"},
    {"gradient", "--vjp"},           {"print", "--text"},         {"out-file", "--output"}};
enum { FOREIGN_OPTIONS = sizeof foreign_options / sizeof *foreign_options };

/* The option of this command that was probably meant, with its dashes; NULL if none is near. */
static const char *suggest_option(const tool_command *command, const char *word, size_t length)
{
    tarn_spelling list[OPTIONS + FOREIGN_OPTIONS];
    int count = 0;
    for (size_t k = 0; k < OPTIONS; k++)
        if (tool_options[k].groups & command->groups)
            list[count++] =
                (tarn_spelling){tool_options[k].name, tool_option_text((tool_option_id)k)};
    memcpy(list + count, foreign_options, sizeof foreign_options);
    return tarn_suggest(word, length, list, count + FOREIGN_OPTIONS);
}

static bool unknown_long(const parser *p, const char *word, size_t length)
{
    const char *meant = suggest_option(p->call->command, word, length);
    int shown = (int)(length < 60 ? length : 60);
    if (meant)
        return tarn_complain(p->complaint, BAD_USAGE, "unknown option --%.*s: did you mean %s?",
                             shown, word, meant);
    return tarn_complain(p->complaint, BAD_USAGE, "unknown option --%.*s (see tarn %s --help)",
                         shown, word, p->call->command->name);
}

/* --name, --name value, --name=value */
static bool take_long(parser *p, const char *word)
{
    size_t length = strcspn(word, "=");
    const char *attached = word[length] == '=' ? word + length + 1 : NULL;
    for (int k = 0; k < OPTIONS; k++)
        if (strlen(tool_options[k].name) == length &&
            memcmp(tool_options[k].name, word, length) == 0)
            return take_value(p, k, attached);
    return unknown_long(p, word, length);
}

/* -k 3, -k3, -k=3; switches do not come in bundles. */
static bool take_short(parser *p, const char *word)
{
    for (int k = 0; k < OPTIONS; k++)
        if (strcmp(tool_options[k].name, word) == 0)
            return tarn_complain(p->complaint, BAD_USAGE, "unknown option -%s: did you mean --%s?",
                                 word, word);
    for (int k = 0; k < OPTIONS; k++)
        if (tool_options[k].letter == word[0])
            return take_value(p, k, word[1] ? word + 1 + (word[1] == '=') : NULL);
    return tarn_complain(p->complaint, BAD_USAGE, "unknown option -%c (see tarn %s --help)",
                         word[0], p->call->command->name);
}

static bool take_word(parser *p, const char *word)
{
    if (p->call->words == MOST_WORDS)
        return tarn_complain(p->complaint, BAD_USAGE, "more than %d arguments", MOST_WORDS);
    p->call->word[p->call->words++] = word;
    return true;
}

static bool take_argument(parser *p, bool *only_words)
{
    const char *word = p->argv[p->at++];
    if (*only_words || word[0] != '-' || word[1] == '\0')
        return take_word(p, word);
    if (strcmp(word, "--") == 0)
        return *only_words = true;
    return word[1] == '-' ? take_long(p, word + 2) : take_short(p, word + 1);
}

const char *tool_suggest_command(const char *name, bool pools)
{
    static const tarn_spelling foreign[] = {{"average", "avg"},      {"mean", "avg"},
                                            {"maximum", "max"},      {"minimum", "min"},
                                            {"logsumexp", "smooth"}, {"softmax", "smooth"},
                                            {"norm", "lp"},          {"maxpool", "max"},
                                            {"avgpool", "avg"},      {"max-pool", "max"},
                                            {"avg-pool", "avg"},     {"draw", "show"},
                                            {"benchmark", "bench"},  {"completions", "completion"}};
    enum { MOST_NAMES = 64 };
    tarn_spelling list[MOST_NAMES + sizeof foreign / sizeof *foreign];
    int count = 0;
    for (int k = 0; k < tool_command_count && count < MOST_NAMES; k++)
        if (tool_commands[k].pools || !pools)
            list[count++] = (tarn_spelling){tool_commands[k].name, tool_commands[k].name};
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
        if (tool_find_command(foreign[k].meant)->pools || !pools)
            list[count++] = foreign[k];
    return tarn_suggest(name, strlen(name), list, count);
}

bool tool_complain_command(tarn_complaint *complaint, const char *name)
{
    static const tarn_spelling about[] = {{"--help", "--help"}, {"--version", "--version"}};
    const char *meant = name[0] == '-' ? tarn_suggest(name, strlen(name), about, 2)
                                       : tool_suggest_command(name, false);
    if (strcmp(name, "pyramid") == 0)
        return tarn_complain(complaint, BAD_USAGE,
                             "pyramids are written by the Python package: python -m tarn pyramid");
    if (name[0] == '-' && !meant)
        return tarn_complain(complaint, BAD_USAGE,
                             "the command comes before '%.60s', as in tarn max photo.png -o "
                             "small.png -k 2 (see tarn --help)",
                             name);
    if (tarn_file_kind_of(name) != TARN_FILE_UNKNOWN && strchr(name, '.'))
        return tarn_complain(complaint, BAD_USAGE,
                             "the command comes before '%.60s', as in tarn max %.60s -k 2 (see "
                             "tarn --help)",
                             name, name);
    if (meant)
        return tarn_complain(complaint, BAD_USAGE, "unknown command '%.60s': did you mean %s?",
                             name, meant);
    return tarn_complain(complaint, BAD_USAGE, "unknown command '%.60s' (see tarn --help)", name);
}

bool tool_parse(int argc, char *const *argv, tool_call *call, tarn_complaint *complaint)
{
    parser p = {.argc = argc, .at = 2, .argv = argv, .call = call, .complaint = complaint};
    bool only_words = false;
    *call = (tool_call){.command = argc > 1 ? tool_find_command(argv[1]) : NULL};
    if (!call->command)
        return tool_complain_command(complaint, argc > 1 ? argv[1] : "");
    while (p.at < argc)
        if (!take_argument(&p, &only_words))
            return false;
    return true;
}

bool tool_read_integer(const tool_call *call, tool_option_id option, int64_t least, int64_t *number,
                       tarn_complaint *complaint)
{
    const char *text = call->value[option];
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno == ERANGE)
        return tool_complain_option(complaint, option, "'%.60s' is too large for 64 bits", text);
    if (end == text || *end || value < least)
        return tool_complain_option(complaint, option, "'%.60s' is not an integer from %lld on",
                                    text, (long long)least);
    *number = value;
    return true;
}

bool tool_read_size(const tool_call *call, tool_option_id option, int64_t *bytes,
                    tarn_complaint *complaint)
{
    static const char units[] = "KMGT";
    const char *text = call->value[option], *unit;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool good = end != text && errno != ERANGE && value > 0;
    int shift = 0;
    if (good && *end && (unit = strchr(units, *end & ~0x20))) {
        shift = 10 * (int)(unit - units + 1);
        end++;
    }
    if (!good || *end || !checked_mul(value, INT64_C(1) << shift, bytes))
        return tool_complain_option(complaint, option, "'%.60s' is not a size such as 256M or 4G",
                                    text);
    return true;
}

bool tool_read_memory(const tool_call *call, int64_t *memory, tarn_complaint *complaint)
{
    if (tool_given(call, OPTION_MEMORY))
        return tool_read_size(call, OPTION_MEMORY, memory, complaint);
    int64_t all = tarn_region_machine_memory();
    *memory = all > 0 ? all / 4 : INT64_C(1) << 28;
    return true;
}
