/* The program: parse, run, complain. */
#include "tool.h"

#include "../src/io/output.h"

#include <errno.h>
#include <string.h>

/* Whether --json stands anywhere: also complaints about the command line obey it. */
static bool wants_json(int argc, char *const *argv)
{
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], "--json") == 0)
            return true;
    return false;
}

/* What is printed goes through here; a full disk or a closed pipe behind it is a failure. */
static bool finish_output(tarn_complaint *complaint)
{
    errno = 0;
    return (fflush(stdout) == 0 && !ferror(stdout)) ||
           tarn_complain_errno(complaint, "standard output", "cannot be written");
}

static bool print_about(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return tool_print_help(NULL), true;
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0)
        return printf("tarn %s\n", tarn_version()), true;
    if (strcmp(word, "--manual") == 0) /* the source of tarn.1, for the build */
        return tool_print_manual(), true;
    return false;
}

/* tarn help COMMAND */
static bool print_help_of(const char *name, tarn_complaint *complaint)
{
    const tool_command *command = tool_find_command(name);
    if (command)
        tool_print_help(command);
    return command || tool_complain_command(complaint, name);
}

static bool run(int argc, char *const *argv, tarn_complaint *complaint)
{
    tool_call call;
    if (argc < 2)
        return tool_print_overview(), true;
    if (argc == 2 && print_about(argv[1]))
        return true;
    if (argc == 3 && strcmp(argv[1], "help") == 0)
        return print_help_of(argv[2], complaint);
    if (!tool_parse(argc, argv, &call, complaint))
        return false;
    if (tool_given(&call, OPTION_HELP))
        return tool_print_help(call.command), true;
    return call.command->run(&call, complaint);
}

int main(int argc, char **argv)
{
    tarn_complaint complaint = tarn_no_complaint();
    tarn_output_guard_signals(); /* for every command: each of them maps its inputs */
    if (run(argc, argv, &complaint) && finish_output(&complaint))
        return 0;
    fflush(stdout);
    tool_print_complaint(&complaint, wants_json(argc, argv));
    return complaint.status;
}
