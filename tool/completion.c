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

enum { WORDS = 512 };

static void add_word(char words[WORDS], const char *word, size_t length)
{
    size_t used = strlen(words);
    snprintf(words + used, WORDS - used, "%s%.*s", used ? " " : "", (int)length, word);
}

static void add_operators(char words[WORDS])
{
    for (int k = 0; k < tool_command_count; k++)
        if (tool_commands[k].pools)
            add_word(words, tool_commands[k].name, strlen(tool_commands[k].name));
}

/* "first|all|split" as words; nothing of texts without a '|'. */
static void add_choices(char words[WORDS], const char *text)
{
    size_t end = strcspn(text, " ");
    for (size_t at = 0, length; memchr(text, '|', end) && at < end; at += length + 1) {
        length = strcspn(text + at, "| ");
        add_word(words, text + at, length);
    }
}

/* The words that an option's argument is chosen from, with spaces between; none if it is free. */
static const char *option_words(int option, char words[WORDS])
{
    words[0] = '\0';
    if (option == OPTION_OP)
        add_operators(words);
    for (int k = 0; k < TARN_DTYPES && option == OPTION_DTYPE; k++)
        add_word(words, tarn_dtype_name((tarn_dtype)k), strlen(tarn_dtype_name((tarn_dtype)k)));
    if (option == OPTION_ISA)
        add_choices(words, "spec|portable|avx2|avx512");
    if (tool_options[option].argument)
        add_choices(words, tool_options[option].argument);
    return words;
}

/* The words that a command's first argument is chosen from; files may follow. */
static const char *command_words(const tool_command *command, char words[WORDS])
{
    words[0] = '\0';
    if (strncmp(command->arguments, "[OPERATOR]", 10) == 0 || command->groups & OPERATOR)
        add_operators(words);
    else if (command->arguments[0] >= 'a')
        add_choices(words, command->arguments);
    return words;
}

static void put_bash_values(void)
{
    char words[WORDS];
    puts("    case $previous in");
    for (int k = 0; k < OPTIONS; k++)
        if (*option_words(k, words))
            printf("    --%s) COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n",
                   tool_options[k].name, words);
    puts("    esac");
}

static void print_bash(void)
{
    char words[WORDS];
    fputs(
        "_tarn() {\n    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local options= words=\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W \"",
        stdout);
    put_command_names();
    puts("\" -- \"$word\"))\n        return\n    fi");
    put_bash_values();
    fputs("    case ${COMP_WORDS[1]} in\n    help) words=\"", stdout);
    put_command_names();
    puts("\" ;;");
    for (int k = 0; k < tool_command_count; k++) {
        printf("    %s) options=\"", tool_commands[k].name);
        put_option_names(&tool_commands[k]);
        printf("\" words=\"%s\" ;;\n", command_words(&tool_commands[k], words));
    }
    puts("    esac\n    if [[ $word == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    else\n"
         "        [ \"$COMP_CWORD\" -eq 2 ] || words=\n"
         "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "        case ${COMP_WORDS[1]}:$COMP_CWORD in\n"
         "        help:* | completion:* | graph:2) ;;\n"
         "        *) COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
         "        esac\n    fi\n}\n"
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

static void put_zsh_option(int number)
{
    const tool_option *option = &tool_options[number];
    char words[WORDS];
    printf(" \\\n            '--%s[", option->name);
    put_zsh(option->help);
    putchar(']');
    if (*option_words(number, words))
        printf(":value:(%s)", words);
    else if (option->argument)
        fputs(":value:_files", stdout);
    putchar('\'');
}

static void print_zsh(void)
{
    char words[WORDS];
    puts("#compdef tarn\n_tarn() {\n    local -a commands\n    commands=(");
    for (int k = 0; k < tool_command_count; k++) {
        printf("        '%s:", tool_commands[k].name);
        put_zsh(tool_commands[k].summary);
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        "
         "return\n"
         "    fi\n    case $words[2] in\n    help) _describe command commands ;;");
    for (int k = 0; k < tool_command_count; k++) {
        printf("    %s)\n        _arguments ", tool_commands[k].name);
        if (*command_words(&tool_commands[k], words))
            printf("'2:word:_alternative \"words:word:(%s)\" \"files:file:_files\"' ", words);
        fputs("'*:file:_files'", stdout);
        for (int j = 0; j < OPTIONS; j++)
            if (tool_options[j].groups & tool_commands[k].groups)
                put_zsh_option(j);
        puts(" ;;");
    }
    puts("    esac\n}\n_tarn \"$@\"");
}

static void put_fish(const char *text)
{
    for (; *text; text++)
        printf(strchr("'\\", *text) ? "\\%c" : "%c", *text);
}

static void put_fish_option(int number)
{
    const tool_option *option = &tool_options[number];
    char words[WORDS];
    bool chosen = *option_words(number, words);
    fputs("complete -c tarn -n '__fish_seen_subcommand_from", stdout);
    for (int k = 0; k < tool_command_count; k++)
        if (tool_commands[k].groups & option->groups)
            printf(" %s", tool_commands[k].name);
    printf("' -l %s", option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (chosen)
        printf(" -x -a '%s'", words);
    else if (option->argument)
        fputs(" -r", stdout);
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
    char words[WORDS];
    for (int k = 0; k < tool_command_count; k++)
        if (*command_words(&tool_commands[k], words))
            printf("complete -c tarn -n '__fish_seen_subcommand_from %s' -a '%s'\n",
                   tool_commands[k].name, words);
    for (int k = 0; k < OPTIONS; k++)
        put_fish_option(k);
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
