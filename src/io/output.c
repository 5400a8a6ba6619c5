#define _GNU_SOURCE /* O_TMPFILE, fallocate: Linux has them, macOS does not */
#define _FILE_OFFSET_BITS 64
#include "output.h"
#ifndef _WIN32 /* which has output_windows.c */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Signals ------------------------------------------------------------------------------- */

enum { MOST_TEMPORARIES = 64 }; /* as many results as a command line can name */

/* Names that a signal handler must remove. Changed only while signals are blocked. */
static char doomed[MOST_TEMPORARIES][OUTPUT_PATH + 32];

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ, SIGXCPU};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

static void remove_doomed(void)
{
    for (int k = 0; k < MOST_TEMPORARIES; k++)
        if (doomed[k][0])
            unlink(doomed[k]);
}

static void on_end(int number)
{
    remove_doomed();
    signal(number, SIG_DFL);
    raise(number); /* the parent sees why it ended */
}

static void on_bus_error(int number)
{
    static const char sentence[] = "tarn: an input file became shorter while it was read\n";
    (void)number;
    remove_doomed();
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
    _exit(FAILED_WORK);
}

void tarn_output_guard_signals(void)
{
    struct sigaction action = {.sa_handler = on_end}, before;
    sigemptyset(&action.sa_mask);
    for (int k = 0; k < ENDING_SIGNALS; k++)
        if (sigaction(ending_signals[k], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ending_signals[k], &action, NULL);
    action.sa_handler = on_bus_error;
    sigaction(SIGBUS, &action, NULL);
}

static sigset_t block_signals(void)
{
    sigset_t ending, before;
    sigemptyset(&ending);
    for (int k = 0; k < ENDING_SIGNALS; k++)
        sigaddset(&ending, ending_signals[k]);
    sigprocmask(SIG_BLOCK, &ending, &before);
    return before;
}

static void unblock_signals(const sigset_t *before)
{
    int reason = errno;
    sigprocmask(SIG_SETMASK, before, NULL);
    errno = reason;
}

static void doom(const char *name)
{
    for (int k = 0; k < MOST_TEMPORARIES; k++)
        if (!doomed[k][0]) {
            snprintf(doomed[k], sizeof doomed[k], "%s", name);
            return;
        }
}

static void spare(const char *name)
{
    for (int k = 0; k < MOST_TEMPORARIES; k++)
        if (strcmp(doomed[k], name) == 0)
            doomed[k][0] = '\0';
}

/* ---- Opening ------------------------------------------------------------------------------- */

/* The folder of the output. */
static const char *folder_of(const tarn_output *o, char folder[OUTPUT_PATH])
{
    snprintf(folder, OUTPUT_PATH, "%s", o->path);
    return dirname(folder);
}

/* Takes temporary names one after the other until one is free: others may be left from a process
 * of the same number. They are short, because the output's own name may be as long as names can
 * be. False, and no name, with errno set if none can be had. */
static bool try_names(tarn_output *o, bool (*take)(tarn_output *o))
{
    char folder[OUTPUT_PATH];
    const char *where = folder_of(o, folder);
    for (int k = 0; k < 1000; k++) {
        snprintf(o->temporary, sizeof o->temporary, "%s/.tarn-%ld-%d", where, (long)getpid(), k);
        if (take(o))
            return true;
        if (errno != EEXIST)
            break;
    }
    o->temporary[0] = '\0';
    return false;
}

static bool create_named(tarn_output *o)
{
    o->file = open(o->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return o->file >= 0;
}

/* How a file without a name is found when it gets one; needs /proc. */
static const char *link_to(int file, char link[64])
{
    snprintf(link, 64, "/proc/self/fd/%d", file);
    return link;
}

/* A file that has no name yet; false if the system has none, or could not name it later. */
static bool open_nameless(tarn_output *o)
{
#ifndef O_TMPFILE
    return (void)o, false;
#else
    char folder[OUTPUT_PATH], link[64];
    o->file = open(folder_of(o, folder), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (o->file < 0 || access(link_to(o->file, link), F_OK) == 0)
        return o->file >= 0;
    close(o->file);
    o->file = -1;
    return false;
#endif
}

/* A new file beside the output: without a name if the system can, else under one that is removed on
 * signals. */
static bool open_temporary(tarn_output *o)
{
    o->temporary[0] = '\0';
    if (open_nameless(o))
        return true;
    sigset_t before = block_signals();
    bool good = try_names(o, create_named);
    if (good)
        doom(o->temporary);
    unblock_signals(&before);
    return good;
}

/* Keeps the permissions of a file that is replaced; tells a full disk before the work begins.
 * Systems that cannot reserve room find out while writing. */
static bool prepare(const tarn_output *o, const struct stat *replaced, int64_t bytes)
{
    if (replaced)
        (void)!fchmod(o->file, replaced->st_mode & 07777);
#ifdef FALLOC_FL_KEEP_SIZE
    return bytes == 0 || fallocate(o->file, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0 ||
           (errno != ENOSPC && errno != EFBIG && errno != EDQUOT);
#else
    return (void)bytes, true;
#endif
}

static bool open_beside(tarn_output *o, const struct stat *replaced, int64_t bytes,
                        tarn_complaint *complaint)
{
    if (!open_temporary(o))
        return tarn_complain_errno(complaint, o->path, "cannot be written");
    if (prepare(o, replaced, bytes))
        return true;
    tarn_complain_errno(complaint, o->path, "no room for the result");
    tarn_output_abandon(o);
    return false;
}

static bool open_direct(tarn_output *o, tarn_complaint *complaint)
{
    o->direct = true;
    o->file = open(o->path, O_WRONLY | O_CLOEXEC);
    return o->file >= 0 || tarn_complain_errno(complaint, o->path, "cannot be written");
}

bool tarn_output_is_standard(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

bool tarn_output_is_stream(const char *path)
{
    struct stat about;
    return tarn_output_is_standard(path) ||
           (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}

bool tarn_output_is_terminal(const char *path)
{
    struct stat about;
    if (tarn_output_is_standard(path))
        return isatty(STDOUT_FILENO);
    bool device = stat(path, &about) == 0 && S_ISCHR(about.st_mode);
    int file = device ? open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK) : -1;
    bool terminal = file >= 0 && isatty(file);
    if (file >= 0)
        close(file);
    return terminal;
}

/* The name that a chain of links leads to, whether there is a file or not: that one is made or
 * replaced, not the link. False with errno set. */
static bool follow_links(const char *path, char target[OUTPUT_PATH])
{
    enum { MOST_LINKS = 40 }; /* as Linux has it */
    char next[OUTPUT_PATH], folder[OUTPUT_PATH];
    snprintf(target, OUTPUT_PATH, "%s", path);
    for (int k = 0; k < MOST_LINKS; k++) {
        ssize_t length = readlink(target, next, sizeof next);
        if (length < 0)
            return true; /* no link; what else may be wrong shows when it is opened */
        if (length == sizeof next)
            return errno = ENAMETOOLONG, false;
        next[length] = '\0';
        memcpy(folder, target, sizeof folder);
        int put = next[0] == '/' ? snprintf(target, OUTPUT_PATH, "%s", next)
                                 : snprintf(target, OUTPUT_PATH, "%s/%s", dirname(folder), next);
        if (put >= OUTPUT_PATH)
            return errno = ENAMETOOLONG, false;
    }
    return errno = ELOOP, false;
}

bool tarn_output_open(const char *path, int64_t bytes, tarn_output *output,
                      tarn_complaint *complaint)
{
    struct stat about;
    *output = (tarn_output){.file = -1};
    if (tarn_output_is_standard(path)) {
        output->direct = true;
        output->file = dup(STDOUT_FILENO);
        snprintf(output->path, sizeof output->path, "standard output");
        return output->file >= 0 ||
               tarn_complain_errno(complaint, output->path, "cannot be written");
    }
    if (strlen(path) >= OUTPUT_PATH)
        return errno = ENAMETOOLONG, tarn_complain_errno(complaint, path, "cannot be written");
    bool exists = stat(path, &about) == 0;
    if (!exists && (errno != ENOENT || !path[0] || path[strlen(path) - 1] == '/'))
        return tarn_complain_errno(complaint, path, "cannot be written"); /* now, not at the end */
    memcpy(output->path, path, strlen(path) + 1);
    if (exists && S_ISDIR(about.st_mode))
        return errno = EISDIR, tarn_complain_errno(complaint, path, "cannot be written");
    if (exists && !S_ISREG(about.st_mode))
        return open_direct(output, complaint);
    if (!follow_links(path, output->path))
        return tarn_complain_errno(complaint, path, "cannot be written");
    return open_beside(output, exists ? &about : NULL, bytes, complaint);
}

/* ---- Comparing ----------------------------------------------------------------------------- */

static bool find_file(const char *path, struct stat *about)
{
    return (tarn_output_is_standard(path) ? fstat(STDOUT_FILENO, about) : stat(path, about)) == 0;
}

/* Files that are not there yet: the same name in the same folder. */
static bool same_place(const char *path, const char *other)
{
    char copies[4][OUTPUT_PATH];
    struct stat folder, other_folder;
    for (int k = 0; k < 4; k++)
        if (!follow_links(k < 2 ? path : other, copies[k]))
            return false; /* neither will be written */
    return strcmp(basename(copies[0]), basename(copies[2])) == 0 &&
           stat(dirname(copies[1]), &folder) == 0 && stat(dirname(copies[3]), &other_folder) == 0 &&
           folder.st_dev == other_folder.st_dev && folder.st_ino == other_folder.st_ino;
}

bool tarn_output_same(const char *path, const char *other)
{
    struct stat file, other_file;
    bool exists = find_file(path, &file), other_exists = find_file(other, &other_file);
    if (strcmp(path, other) == 0)
        return true;
    if (exists && other_exists)
        return file.st_dev == other_file.st_dev && file.st_ino == other_file.st_ino;
    return !exists && !other_exists && same_place(path, other);
}

/* ---- Writing ------------------------------------------------------------------------------- */

bool tarn_output_write(tarn_output *output, const void *data, size_t size,
                       tarn_complaint *complaint)
{
    for (const char *at = data; size > 0;) {
        ssize_t put = write(output->file, at, size);
        if (put < 0 && errno != EINTR)
            return tarn_complain_errno(complaint, output->path, "cannot be written");
        at += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* A nameless file gets a name that is then changed: a link alone would not replace what is
 * there. */
static bool link_named(tarn_output *o)
{
    char link[64];
    return linkat(AT_FDCWD, link_to(o->file, link), AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0;
}

static bool take_name(tarn_output *o)
{
    if (o->direct)
        return true;
    if (!o->temporary[0] && !try_names(o, link_named))
        return false;
    if (rename(o->temporary, o->path) != 0)
        return false;
    spare(o->temporary);
    o->temporary[0] = '\0';
    return true;
}

bool tarn_output_commit(tarn_output *output, tarn_complaint *complaint)
{
    sigset_t before = block_signals();
    bool good =
        take_name(output) || tarn_complain_errno(complaint, output->path, "cannot be written");
    if (good && close(output->file) != 0)
        good = tarn_complain_errno(complaint, output->path, "cannot be written");
    else if (!good)
        tarn_output_abandon(output);
    output->file = -1;
    unblock_signals(&before);
    return good;
}

void tarn_output_abandon(tarn_output *output)
{
    if (output->file < 0)
        return;
    sigset_t before = block_signals();
    close(output->file);
    if (!output->direct && output->temporary[0]) {
        unlink(output->temporary);
        spare(output->temporary);
    }
    output->file = -1;
    unblock_signals(&before);
}

#endif
