/* The tables of options and commands, made from options.def and commands.def. */
#include "tool.h"

#include <string.h>

const tool_option tool_options[OPTIONS] = {
#define OPTION(id, name, letter, argument, groups, help) {name, letter, argument, groups, help},
#include "options.def"
#undef OPTION
};

#define POOL_GROUPS (PROBLEM | OUTPUT | WRITES | RUN | EVERY)

const tool_command tool_commands[] = {
#define POOL(name, op, window, groups, example, summary)                                           \
    {name, tool_run_pool, POOL_GROUPS | (groups), "IN", example, summary, true, op, window, 0},
#define SUM(name, window, groups, example, summary)                                                \
    {name, tool_run_pool, POOL_GROUPS | (groups), "IN", example, summary, true, TARN_AVG, window,  \
     1},
#define COMMAND(name, run, groups, arguments, example, summary)                                    \
    {name, run, EVERY | (groups), arguments, example, summary, false, TARN_MAX, TARN_SLIDING, 0},
#include "commands.def"
#undef POOL
#undef SUM
#undef COMMAND
};

const int tool_command_count = sizeof tool_commands / sizeof *tool_commands;

const tool_command *tool_find_command(const char *name)
{
    for (int k = 0; k < tool_command_count; k++)
        if (strcmp(tool_commands[k].name, name) == 0)
            return &tool_commands[k];
    return NULL;
}

const char *tool_option_text(tool_option_id option)
{
    static const char *const texts[OPTIONS] = {
#define OPTION(id, name, letter, argument, groups, help) "--" name,
#include "options.def"
#undef OPTION
    };
    return texts[option];
}
