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

void tool_print_overview(void)
{
    printf(
        "tarn %s %s\n\n"
        "  tarn max photo.png -o small.png --kernel 2       pool a picture\n"
        "  tarn avg x.npy --kernel 3 --pad 1 --text         pool an array and print the numbers\n"
        "  tarn max x.npy --vjp gy.npy -o gx.npy -k 3       the gradient\n"
        "  tarn show max photo.png -o what.png -k 3 -s 2    draw what happens\n"
        "  tarn shape max k3s2p1 f32 1x64x112x112           sizes, without data\n"
        "  tarn explain, check, bench                       which kernels, whether right, how "
        "fast\n"
        "  tarn graph run pyramid.graph -i x.npy -o y.npy   a graph of pools\n\n"
        "Operators: max min avg sum mode smooth lp, and each as adaptive-max, global-max, ...\n"
        "Files: .npy .npz PNG PNM; - is standard input or output.\n"
        "tarn --help lists all commands, tarn COMMAND --help the options of one.\n",
        tarn_version(), about);
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
    puts(".");
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
    fputs(
        "\n.SH SYNOPSIS\n.B tarn\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR]... [\\fIOPTION\\fR]...\n"
        ".SH DESCRIPTION\n"
        ".B tarn\n"
        "moves a window over an array or a picture and keeps one number of each: the greatest, the "
        "least, the average, a smooth maximum or a norm. It writes derivatives, too, draws and "
        "explains what it does, and checks it.\n"
        "The same input gives the same bits on every machine.\n"
        ".SH COMMANDS\n",
        stdout);
    for (int k = 0; k < tool_command_count; k++)
        put_manual_command(&tool_commands[k]);
    puts(".SH OPTIONS\n"
         "Which of these a command takes,\n.B tarn \\fICOMMAND\\fB \\-\\-help\n"
         "says.");
    for (int k = 0; k < OPTIONS; k++)
        put_manual_option(&tool_options[k]);
    fputs(
#include "manual_sections.h"
        , stdout);
}
