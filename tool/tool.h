/* What the parts of the program share: the tables, the parsed command line, and how to say what is
 * wrong. */
#ifndef TARN_TOOL_H
#define TARN_TOOL_H

#include "../src/io/array_file.h"
#include "tarn.h"

#include <stdio.h>

/* ---- The tables ---------------------------------------------------------------------------- */

/* Groups of options: a command takes the options of which it has a group. */
enum {
    SLIDING = 1 << 0,
    ADAPTIVE = 1 << 1,
    GLOBAL = 1 << 2,
    EXTREME = 1 << 3,       /* max and min */
    AVERAGE = 1 << 4,       /* avg */
    SMOOTH = 1 << 5,        /* smooth */
    SUMS = 1 << 6,          /* avg and smooth */
    PROBLEM = 1 << 7,       /* has a problem */
    OPERATOR = 1 << 8,      /* ... whose operator is not the name of the command */
    OUTPUT = 1 << 9,        /* writes a file */
    INDICES = 1 << 10,      /* and may write indices */
    DERIVATIVE = 1 << 11,   /* or derivatives instead */
    RUN = 1 << 12,          /* runs kernels */
    NAMED = 1 << 14,        /* takes NAME=FILE, for several names */
    DRAW_GRAPH = 1 << 15,   /* draws or compares graphs */
    EVERY = 1 << 13,        /* every command */
    NORM = 1 << 16,         /* lp */
    WRITES = 1 << 17,       /* writes tensors */
    NAMED_LAYOUT = 1 << 18, /* graphs: reads and writes tensors with channels */
    SKIPS = 1 << 19,        /* max, min, avg and mode */
    ANY_POOL = SLIDING | ADAPTIVE | GLOBAL | EXTREME | AVERAGE | SMOOTH | SUMS | NORM | SKIPS,
    ANY_WINDOW = ANY_POOL | PROBLEM | OPERATOR
};

typedef enum tool_option_id {
#define OPTION(id, name, letter, argument, groups, help) OPTION_##id,
#include "options.def"
#undef OPTION
    OPTIONS
} tool_option_id;

typedef struct tool_option {
    const char *name;
    char letter;
    const char *argument; /* NULL: a switch */
    unsigned groups;
    const char *help;
} tool_option;

extern const tool_option tool_options[OPTIONS];

typedef struct tool_call tool_call;

typedef struct tool_command {
    const char *name;
    bool (*run)(const tool_call *call, tarn_complaint *complaint); /* false: see the complaint */
    unsigned groups;
    const char *arguments, *example, *summary;
    bool pools; /* it is an operator, and these are it: */
    tarn_op op;
    tarn_window window;
    int64_t divisor; /* 1: sums */
} tool_command;

extern const tool_command tool_commands[];
extern const int tool_command_count;

/* The command of that name, or NULL. */
const tool_command *tool_find_command(const char *name);

/* ---- The command line ---------------------------------------------------------------------- */

enum { MOST_WORDS = 64 };

/* One use of an option that may be used more than once. */
typedef struct tool_named {
    tool_option_id option;
    const char *value;
} tool_named;

struct tool_call {
    const tool_command *command;
    const char *value[OPTIONS]; /* NULL: not given; of a switch: "" */
    int words;                  /* arguments that are not options */
    const char *word[MOST_WORDS];
    int nameds; /* options of the group NAMED, in their order */
    tool_named named[MOST_WORDS];
};

static inline bool tool_given(const tool_call *call, tool_option_id option)
{
    return call->value[option] != NULL;
}

/* Parses argv[1..], of which there is one at least. */
bool tool_parse(int argc, char *const *argv, tool_call *call, tarn_complaint *complaint);

/* The command whose name is nearest, among those that pool or among all; NULL if none is near. */
const char *tool_suggest_command(const char *name, bool pools);
/* A complaint about a command that is not in the table; returns false. */
bool tool_complain_command(tarn_complaint *complaint, const char *name);

/* A complaint about an option of the table; does not return true. */
#define tool_complain_option(complaint, option, ...)                                               \
    tarn_complain_option(complaint, tool_option_text(option), __VA_ARGS__)

/* "--kernel". Static text. */
const char *tool_option_text(tool_option_id option);

/* An integer, or a size in bytes such as 256M, of an option that was given. */
bool tool_read_integer(const tool_call *call, tool_option_id option, int64_t least, int64_t *number,
                       tarn_complaint *complaint);
bool tool_read_size(const tool_call *call, tool_option_id option, int64_t *bytes,
                    tarn_complaint *complaint);

/* What --memory says, or a quarter of the machine. */
bool tool_read_memory(const tool_call *call, int64_t *memory, tarn_complaint *complaint);

/* Threads and kernel families, as --threads and --isa say. */
bool tool_read_options(const tool_call *call, tarn_options *options, tarn_complaint *complaint);

/* Whether a file that is written is none that was read, or --in-place is given; else a
 * complaint. */
bool tool_check_replaced(const tool_call *call, tool_option_id option, const char *read,
                         const char *written, tarn_complaint *complaint);

/* ---- Problems ------------------------------------------------------------------------------ */

/* What a call is about: the pooling, and the input. */
typedef struct tool_problem {
    tarn_pool pool;
    tarn_view x; /* leading axes first, then the spatial ones; data in the file, if there is one */
    bool channels_last; /* files have the channel axis behind the spatial ones */
    tarn_array file;    /* the input's; view.rank 0 and no data where only a shape was given */
} tool_problem;

/* The problem of a command line: of [OPERATOR] SHAPE, [OPERATOR] FILE, or a problem string, and of
 * the options. Close it with tool_problem_close(). */
bool tool_problem_open(const tool_call *call, tool_problem *problem, tarn_complaint *complaint);
void tool_problem_close(tool_problem *problem);

/* The view of an array with the channel axis put in front of the spatial ones, if it is behind
 * them. */
tarn_view tool_logical_view(const tarn_view *file, int spatial, bool channels_last);
/* Spatial axes of the output: none if they are dropped. */
static inline int tool_output_spatial(const tarn_pool *pool)
{
    return pool->window == TARN_GLOBAL && pool->flat ? 0 : pool->spatial;
}
/* The reverse: the axes of a tensor in the order they have in files. */
tarn_view tool_file_view(const tarn_view *logical, int spatial, bool channels_last);

/* Passes on what the library says. Problems that do not plan are bad usage. */
bool tool_complain_library(tarn_complaint *complaint, const tarn_error *error);

/* ---- Words for people and machines --------------------------------------------------------- */

/* Prints the complaint to standard error: "tarn: in.npy: byte 8: ...", or one line of JSON. */
void tool_print_complaint(const tarn_complaint *complaint, bool json);

/* A remark on standard error, for people or as one line of JSON. */
void tool_print_note(const char *file, const char *note, bool json);

/* What a check found; skipped where there was nothing that could have failed. */
typedef enum tool_verdict { CHECK_FAILED, CHECK_OK, CHECK_SKIPPED } tool_verdict;

/* Errors of numbers up to `largest` are `worst` at most. Skipped if every number could pass. */
tool_verdict tool_judge(double worst, double allowed, double largest);

/* Prints what a check found, as a line of text or of JSON ("ok" is null if it was skipped). */
void tool_print_answer(const char *check, tool_verdict verdict, const char *note, bool json);

/* A string with quotes and escapes; a list of numbers such as [1, 64, 56, 56]. */
void tool_json_string(FILE *file, const char *text);
void tool_json_numbers(FILE *file, const int64_t *numbers, int count);
/* 1x64x56x56; "scalar" without axes. Cut where the room ends. */
void tool_format_shape(char *text, size_t room, const int64_t *shape, int rank);
void tool_print_shape(FILE *file, const int64_t *shape, int rank);

/* Whether to use colours on that stream: a terminal, and NO_COLOR not set. */
bool tool_has_colours(FILE *file);

/* ---- Commands ------------------------------------------------------------------------------ */

void tool_print_overview(void);                    /* what the program can do, in short */
void tool_print_help(const tool_command *command); /* NULL: of the program */
void tool_print_manual(void);                      /* tarn.1 */
bool tool_run_completion(const tool_call *call, tarn_complaint *complaint);
bool tool_run_pool(const tool_call *call, tarn_complaint *complaint);
bool tool_run_graph(const tool_call *call, tarn_complaint *complaint);
bool tool_run_show(const tool_call *call, tarn_complaint *complaint);
bool tool_run_bench(const tool_call *call, tarn_complaint *complaint);
bool tool_run_check(const tool_call *call, tarn_complaint *complaint);
bool tool_run_explain(const tool_call *call, tarn_complaint *complaint);
bool tool_run_shape(const tool_call *call, tarn_complaint *complaint);

#endif
