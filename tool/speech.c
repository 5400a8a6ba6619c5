/* Words for people and for machines. */
#define _POSIX_C_SOURCE 200809L /* isatty, fileno */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tool_has_colours(FILE *file)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0) && isatty(fileno(file));
}

/* Bytes of the character that begins here; 0 if UTF-8 has none like it, or it is a command to the
 * terminal. */
static size_t character_bytes(const unsigned char *at)
{
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    if (*at < 0x80)
        return *at >= 0x20 && *at != 0x7f;
    size_t bytes = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    uint32_t code = *at & (0x7fu >> bytes);
    for (size_t k = 1; k < bytes; k++) {
        if ((at[k] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[k] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff, begins = *at >= 0xc0 && *at < 0xf8;
    return begins && code >= least[bytes] && code <= 0x10ffff && !surrogate ? bytes : 0;
}

/* What is no character becomes U+FFFD: JSON is UTF-8, and names may hold anything. */
void tool_json_string(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t bytes = character_bytes(at);
        if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (bytes > 0)
            fwrite(at, 1, bytes, file);
        else
            fprintf(file, "\\u%04x", *at < 0x80 ? *at : 0xfffdu);
        at += bytes > 0 ? bytes : 1;
    }
    putc('"', file);
}

void tool_json_numbers(FILE *file, const int64_t *numbers, int count)
{
    putc('[', file);
    for (int k = 0; k < count; k++)
        fprintf(file, "%s%lld", k ? ", " : "", (long long)numbers[k]);
    putc(']', file);
}

void tool_format_shape(char *text, size_t room, const int64_t *shape, int rank)
{
    size_t used = (size_t)snprintf(text, room, rank ? "" : "scalar");
    for (int a = 0; a < rank && used < room; a++)
        used +=
            (size_t)snprintf(text + used, room - used, "%s%lld", a ? "x" : "", (long long)shape[a]);
}

void tool_print_shape(FILE *file, const int64_t *shape, int rank)
{
    char text[21 * TARN_MAX_RANK + 8];
    tool_format_shape(text, sizeof text, shape, rank);
    fputs(text, file);
}

static void print_json(const tarn_complaint *c)
{
    fputs("{\"error\": ", stderr);
    tool_json_string(stderr, c->message);
    fprintf(stderr, ", \"status\": %d", c->status);
    if (c->option[0]) {
        fputs(", \"option\": ", stderr);
        tool_json_string(stderr, c->option);
    }
    if (c->file[0]) {
        fputs(", \"file\": ", stderr);
        tool_json_string(stderr, c->file);
    }
    if (c->axis >= 0)
        fprintf(stderr, ", \"axis\": %d", c->axis);
    if (c->offset >= 0)
        fprintf(stderr, ", \"offset\": %lld", (long long)c->offset);
    fputs("}\n", stderr);
}

/* Names and messages may hold anything; a line of error is one line, without commands to the
 * terminal. */
static void put_printable(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t bytes = character_bytes(at);
        if (bytes > 0)
            fwrite(at, 1, bytes, stderr);
        else
            fprintf(stderr, "\\x%02x", *at);
        at += bytes > 0 ? bytes : 1;
    }
}

void tool_print_complaint(const tarn_complaint *c, bool json)
{
    if (json) {
        print_json(c);
        return;
    }
    fputs(tool_has_colours(stderr) ? "\033[1;31mtarn:\033[0m " : "tarn: ", stderr);
    if (c->option[0])
        fprintf(stderr, "%s: ", c->option);
    put_printable(c->file);
    if (c->file[0])
        fputs(": ", stderr);
    if (c->offset >= 0)
        fprintf(stderr, "byte %lld: ", (long long)c->offset);
    put_printable(c->message);
    putc('\n', stderr);
}

void tool_print_note(const char *file, const char *note, bool json)
{
    if (json) {
        fputs("{\"note\": ", stderr);
        tool_json_string(stderr, note);
        fputs(", \"file\": ", stderr);
        tool_json_string(stderr, file);
        fputs("}\n", stderr);
        return;
    }
    fputs("tarn: ", stderr);
    put_printable(file);
    fputs(": ", stderr);
    put_printable(note);
    putc('\n', stderr);
}

tool_verdict tool_judge(double worst, double allowed, double largest)
{
    if (!(worst <= allowed))
        return CHECK_FAILED;
    return allowed < largest ? CHECK_OK : CHECK_SKIPPED;
}

void tool_print_answer(const char *check, tool_verdict verdict, const char *note, bool json)
{
    static const char *const words[] = {"FAILED", "ok", "skipped"};
    static const char *const values[] = {"false", "true", "null"};
    static const char *const colour[] = {"\033[1;31m", "\033[32m", "\033[33m"};
    if (json) {
        printf("{\"check\": \"%s\", \"ok\": %s, \"note\": ", check, values[verdict]);
        tool_json_string(stdout, note);
        puts("}");
        return;
    }
    bool colours = tool_has_colours(stdout);
    printf("%s%-7s%s %s: %s\n", colours ? colour[verdict] : "", words[verdict],
           colours ? "\033[0m" : "", check, note);
}
