/* Output files on Windows (output.h): a temporary file in the same folder takes the name. */
#include "output.h"
#ifdef _WIN32

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

enum { MOST_TEMPORARIES = 64, MOST_AT_ONCE = 1 << 30 };

/* ---- Interrupts ------------------------------------------------------------------------------ */

/* Open temporary files, which an interrupt closes and removes. */
static const tarn_output *doomed[MOST_TEMPORARIES];

static void replace_doomed(const tarn_output *before, const tarn_output *after)
{
    for (int k = 0; k < MOST_TEMPORARIES; k++)
        if (doomed[k] == before) {
            doomed[k] = after;
            return;
        }
}

static void on_end(int number)
{
    for (int k = 0; k < MOST_TEMPORARIES; k++)
        if (doomed[k]) {
            close(doomed[k]->file); /* an open file cannot be removed */
            unlink(doomed[k]->temporary);
        }
    signal(number, SIG_DFL);
    raise(number);
}

void tarn_output_guard_signals(void)
{
    signal(SIGINT, on_end);
    signal(SIGTERM, on_end);
}

/* ---- Opening --------------------------------------------------------------------------------- */

bool tarn_output_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

bool tarn_output_is_stream(const char *path)
{
    struct stat about;
    return tarn_output_is_standard(path) ||
           (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}

bool tarn_output_is_terminal(const char *path)
{
    return tarn_output_is_standard(path) && isatty(_fileno(stdout));
}

/* Names end where the last separator of the path does: the temporary lies in the same folder. */
static bool open_temporary(tarn_output *o)
{
    const char *end = o->path;
    for (const char *c = o->path; *c; c++)
        if (*c == '/' || *c == '\\' || *c == ':')
            end = c + 1;
    for (int k = 0; k < 1000; k++) {
        snprintf(o->temporary, sizeof o->temporary, "%.*s.tarn-%lu-%d", (int)(end - o->path),
                 o->path, (unsigned long)GetCurrentProcessId(), k);
        o->file = open(o->temporary, O_CREAT | O_EXCL | O_WRONLY | O_BINARY, 0666);
        if (o->file >= 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    o->temporary[0] = '\0';
    return false;
}

bool tarn_output_open(const char *path, int64_t bytes, tarn_output *output,
                      tarn_complaint *complaint)
{
    struct stat about;
    bool standard = tarn_output_is_standard(path);
    (void)bytes;
    *output = (tarn_output){.file = -1, .direct = tarn_output_is_stream(path)};
    if (strlen(path) >= OUTPUT_PATH)
        return errno = ENAMETOOLONG, tarn_complain_errno(complaint, path, "cannot be written");
    if (!standard && stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return errno = EISDIR, tarn_complain_errno(complaint, path, "cannot be written");
    snprintf(output->path, sizeof output->path, "%s", standard ? "standard output" : path);
    if (standard)
        output->file = dup(_fileno(stdout));
    else if (output->direct)
        output->file = open(path, O_WRONLY | O_BINARY);
    else if (open_temporary(output))
        replace_doomed(NULL, output);
    if (standard)
        _setmode(output->file, O_BINARY);
    return output->file >= 0 || tarn_complain_errno(complaint, output->path, "cannot be written");
}

bool tarn_output_same(const char *path, const char *other)
{
    char full[OUTPUT_PATH], other_full[OUTPUT_PATH];
    if (strcmp(path, other) == 0)
        return true;
    return GetFullPathNameA(path, sizeof full, full, NULL) &&
           GetFullPathNameA(other, sizeof other_full, other_full, NULL) &&
           _stricmp(full, other_full) == 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

bool tarn_output_write(tarn_output *output, const void *data, size_t size,
                       tarn_complaint *complaint)
{
    for (const char *at = data; size > 0;) {
        int put = write(output->file, at, size < MOST_AT_ONCE ? (unsigned)size : MOST_AT_ONCE);
        if (put <= 0)
            return tarn_complain_errno(complaint, output->path, "cannot be written");
        at += put;
        size -= (size_t)put;
    }
    return true;
}

bool tarn_output_commit(tarn_output *output, tarn_complaint *complaint)
{
    bool good = close(output->file) == 0;
    output->file = -1;
    if (!output->direct) {
        replace_doomed(output, NULL);
        if (good && !MoveFileExA(output->temporary, output->path, MOVEFILE_REPLACE_EXISTING))
            errno = EACCES, good = false;
        if (!good)
            unlink(output->temporary);
    }
    return good || tarn_complain_errno(complaint, output->path, "cannot be written");
}

void tarn_output_abandon(tarn_output *output)
{
    if (output->file < 0)
        return;
    close(output->file);
    output->file = -1;
    if (!output->direct) {
        replace_doomed(output, NULL);
        unlink(output->temporary);
    }
}

#endif
