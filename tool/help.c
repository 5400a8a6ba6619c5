/* What the tables say, for people: --help and the manual page. */
#include "tool.h"

#include <string.h>

static const char about[] = "pools arrays and pictures in files: values, derivatives, explanations";

/* "-k, --kernel N[,N...]" */
static int format_option(const tool_option *option, char *text, size_t room)
{
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    return snprintf(text, room, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
                    option->argument ? option->argument : "");
}

/* Wraps text at `width` columns, each line but the first behind `indent` spaces. */
static void print_wrapped(const char *text, int indent, int width)
{
    int column = indent;
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " ");
        if (column > indent && column + 1 + length > width) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%s%.*s", column > indent ? " " : "", length, word);
        word += length + (word[length] == ' ');
    }
    putchar('\n');
}

static void print_options(const tool_command *command)
{
    enum { INDENT = 34, WIDTH = 96 };
    char text[80];
    puts("\nOptions:");
    for (int k = 0; k < OPTIONS; k++)
        if (tool_options[k].groups & command->groups) {
            format_option(&tool_options[k], text, sizeof text);
            printf("  %-*s", INDENT - 2, text);
            print_wrapped(tool_options[k].help, INDENT, WIDTH);
        }
}

void tool_print_help(const tool_command *command)
{
    if (command) {
        printf("tarn %s: %s\n\nUsage: tarn %s %s [OPTION]...\nExample: %s\n", command->name,
               command->summary, command->name, command->arguments, command->example);
        print_options(command);
        return;
    }
    printf("tarn %s\n\nUsage: tarn COMMAND [ARGUMENT]... [OPTION]...\n\nCommands:\n", about);
    for (int k = 0; k < tool_command_count; k++)
        printf("  %-16s  %s\n", tool_commands[k].name, tool_commands[k].summary);
    puts(
        "\n  tarn COMMAND --help   what a command takes, with an example; also tarn help COMMAND\n"
        "  tarn --version        the version\n\n"
        "Files: .npy, .npz (FILE.npz:NAME for a member), PNG, PNM; - is standard input or output.");
}

/* ---- The manual page ----------------------------------------------------------------------- */

/* Text for roff: hyphens that are minus signs, no accidental requests. */
static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++)
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
}

static void put_manual_option(const tool_option *option)
{
    fputs(".TP\n.B ", stdout);
    if (option->letter)
        printf("\\-%c, ", option->letter);
    fputs("\\-\\-", stdout);
    put_roff(option->name);
    if (option->argument) {
        fputs(" \\fI", stdout);
        put_roff(option->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_roff(option->help);
    fputs(".\nTaken by:", stdout);
    const char *comma = "";
    for (int k = 0; k < tool_command_count && !(option->groups & EVERY); k++)
        if (tool_commands[k].groups & option->groups) {
            printf("%s ", comma);
            put_roff(tool_commands[k].name);
            comma = ",";
        }
    puts(option->groups & EVERY ? " every command." : ".");
}

static void put_manual_command(const tool_command *command)
{
    fputs(".TP\n.B tarn ", stdout);
    put_roff(command->name);
    fputs(" \\fI", stdout);
    put_roff(command->arguments);
    fputs("\\fR\n", stdout);
    put_roff(command->summary);
    fputs(".\n.br\n", stdout);
    put_roff(command->example);
    putchar('\n');
}

void tool_print_manual(void)
{
    printf(".TH TARN 1 \"\" \"tarn %s\" \"User Commands\"\n.SH NAME\ntarn \\- ", tarn_version());
    put_roff(about);
    fputs("\n.SH SYNOPSIS\n.B tarn\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR]... [\\fIOPTION\\fR]...\n"
          ".SH COMMANDS\n",
          stdout);
    for (int k = 0; k < tool_command_count; k++)
        put_manual_command(&tool_commands[k]);
    puts(".SH OPTIONS");
    for (int k = 0; k < OPTIONS; k++)
        put_manual_option(&tool_options[k]);
    fputs(
#include "manual_sections.h"
        , stdout);
}
