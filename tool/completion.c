/* Completion scripts, written from the tables. */
#include "tool.h"

#include <string.h>

static void put_command_names(void)
{
    for (int k = 0; k < tool_command_count; k++)
        printf("%s%s", k ? " " : "", tool_commands[k].name);
}

static void put_option_names(const tool_command *command)
{
    for (int k = 0; k < OPTIONS; k++)
        if (tool_options[k].groups & command->groups)
            printf(" --%s", tool_options[k].name);
}

/* The words an option's argument is chosen from, as in "first|all|split"; NULL if it is free. */
static const char *choices(const tool_option *option)
{
    return option->argument && strchr(option->argument, '|') ? option->argument : NULL;
}

static void put_choices(const char *text)
{
    for (; *text; text++)
        putchar(*text == '|' ? ' ' : *text);
}

static void put_bash_values(void)
{
    puts("    case $previous in");
    for (int k = 0; k < OPTIONS; k++)
        if (choices(&tool_options[k])) {
            printf("    --%s) COMPREPLY=($(compgen -W \"", tool_options[k].name);
            put_choices(choices(&tool_options[k]));
            puts("\" -- \"$word\")); return ;;");
        }
    puts("    esac");
}

static void print_bash(void)
{
    fputs(
        "_tarn() {\n    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local options=\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W \"",
        stdout);
    put_command_names();
    puts("\" -- \"$word\"))\n        return\n    fi");
    put_bash_values();
    puts("    case ${COMP_WORDS[1]} in");
    for (int k = 0; k < tool_command_count; k++) {
        printf("    %s) options=\"", tool_commands[k].name);
        put_option_names(&tool_commands[k]);
        puts("\" ;;");
    }
    puts("    esac\n    if [[ $word == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    else\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
         "complete -o filenames -F _tarn tarn");
}

/* Text inside single quotes and brackets of a zsh specification. */
static void put_zsh(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf(strchr("[]:", *text) ? "\\%c" : "%c", *text);
}

static void put_zsh_option(const tool_option *option)
{
    printf(" \\\n            '--%s[", option->name);
    put_zsh(option->help);
    putchar(']');
    if (choices(option)) {
        fputs(":value:(", stdout);
        put_choices(choices(option));
        putchar(')');
    } else if (option->argument) {
        fputs(":value:_files", stdout);
    }
    putchar('\'');
}

static void print_zsh(void)
{
    puts("#compdef tarn\n_tarn() {\n    local -a commands\n    commands=(");
    for (int k = 0; k < tool_command_count; k++) {
        printf("        '%s:", tool_commands[k].name);
        put_zsh(tool_commands[k].summary);
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        "
         "return\n"
         "    fi\n    case $words[2] in");
    for (int k = 0; k < tool_command_count; k++) {
        printf("    %s)\n        _arguments '*:file:_files'", tool_commands[k].name);
        for (int j = 0; j < OPTIONS; j++)
            if (tool_options[j].groups & tool_commands[k].groups)
                put_zsh_option(&tool_options[j]);
        puts(" ;;");
    }
    puts("    esac\n}\n_tarn \"$@\"");
}

static void put_fish(const char *text)
{
    for (; *text; text++)
        printf(strchr("'\\", *text) ? "\\%c" : "%c", *text);
}

static void put_fish_option(const tool_option *option)
{
    fputs("complete -c tarn -n '__fish_seen_subcommand_from", stdout);
    for (int k = 0; k < tool_command_count; k++)
        if (tool_commands[k].groups & option->groups)
            printf(" %s", tool_commands[k].name);
    printf("' -l %s", option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->argument)
        fputs(choices(option) ? " -x -a '" : " -r", stdout);
    if (choices(option)) {
        put_choices(choices(option));
        putchar('\'');
    }
    fputs(" -d '", stdout);
    put_fish(option->help);
    puts("'");
}

static void print_fish(void)
{
    for (int k = 0; k < tool_command_count; k++) {
        printf("complete -c tarn -n __fish_use_subcommand -f -a %s -d '", tool_commands[k].name);
        put_fish(tool_commands[k].summary);
        puts("'");
    }
    for (int k = 0; k < OPTIONS; k++)
        put_fish_option(&tool_options[k]);
}

bool tool_run_completion(const tool_call *call, tarn_complaint *complaint)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t k = 0; k < sizeof shells / sizeof *shells; k++)
        if (call->words == 1 && strcmp(call->word[0], shells[k].name) == 0) {
            shells[k].print();
            return true;
        }
    return tarn_complain(complaint, BAD_USAGE, "say which shell: tarn completion bash|zsh|fish");
}
