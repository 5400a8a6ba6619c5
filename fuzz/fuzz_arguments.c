/* Command lines, one argument on a line, and problem strings. */
#include "fuzz.h"
#include "../tool/tool.h"

enum { MOST_ARGUMENTS = 40, MOST_TEXT = 1000 };

/* A problem that parses is printed as text that parses to the same text. */
static void round_trip(const char *text)
{
    char once[2000], twice[2000];
    tarn_pool pool;
    tarn_view x;
    if (tarn_problem_parse(text, &pool, &x, NULL))
        return;
    int length = tarn_problem_format(&pool, &x, once, sizeof once);
    if (length < 0 || length >= (int)sizeof once)
        return;
    if (tarn_problem_parse(once, &pool, &x, NULL))
        abort();
    tarn_problem_format(&pool, &x, twice, sizeof twice);
    if (strcmp(once, twice) != 0)
        abort();
}

/* Words that are no shapes would be opened as files. */
static bool opens_files(const tool_call *call)
{
    if (call->command->pools)
        return true;
    for (int k = 0; k < call->words; k++)
        if (!strchr(call->word[k], ' ') && !tool_find_command(call->word[k]) &&
            call->word[k][strspn(call->word[k], "-0123456789x")] != '\0')
            return true;
    return call->words > 0 && strcmp(call->word[call->words - 1], "-") == 0;
}

static void open_problem(const tool_call *call)
{
    tool_problem problem;
    tarn_complaint complaint = tarn_no_complaint();
    tarn_view y;
    if (opens_files(call))
        return;
    bool good = tool_problem_open(call, &problem, &complaint);
    if (good == (complaint.status != 0))
        abort();
    if (good)
        tarn_output_view(&problem.pool, &problem.x, &y, NULL);
    if (good)
        tool_problem_close(&problem);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static char program[] = "tarn";
    char text[MOST_TEXT + 1], *argv[MOST_ARGUMENTS + 1] = {program};
    int argc = 1;
    tool_call call;
    tarn_complaint complaint = tarn_no_complaint();
    size = size < MOST_TEXT ? size : MOST_TEXT;
    memcpy(text, data, size);
    text[size] = '\0';
    round_trip(text);
    for (char *word = strtok(text, "\n"); word && argc < MOST_ARGUMENTS; word = strtok(NULL, "\n"))
        argv[argc++] = word;
    bool good = tool_parse(argc, argv, &call, &complaint);
    if (good == (complaint.status != 0))
        abort();
    if (good)
        open_problem(&call);
    return 0;
}
