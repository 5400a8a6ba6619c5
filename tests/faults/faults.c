/* Calls of the system that fail on demand. Linked with --wrap for each function below, so that what
 * the library and the program call comes through here and what the C library calls does not. The
 * environment says which call fails:
 *
 * TARN_FAULT=12: call number 12, counted from 0, and no other;
 * TARN_FAULT=12+: that one and all behind it;
 * TARN_FAULT=12=4: that one, for the reason 4 (EINTR) instead of the usual one;
 * TARN_FAULT_LOG: a file that gets the number of calls and of blocks that were not freed, at the
 * end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls, blocks;
static long first = -1;
static int other_reason;       /* or 0 */
static bool forever, counting; /* from main() to exit(): not what runtimes do before and after */

static void write_log(void)
{
    const char *path = getenv("TARN_FAULT_LOG");
    counting = false;
    FILE *log = path ? fopen(path, "w") : NULL;
    if (log) {
        fprintf(log, "%ld %ld\n", (long)calls, (long)blocks);
        fclose(log);
    }
}

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
int __wrap_main(int argc, char **argv)
{
    const char *fault = getenv("TARN_FAULT");
    if (fault) {
        first = atol(fault);
        forever = strchr(fault, '+') != NULL;
        other_reason = strchr(fault, '=') ? atoi(strchr(fault, '=') + 1) : 0;
    }
    atexit(write_log);
    counting = true;
    return __real_main(argc, argv);
}

/* Counts a call; true, with errno set, if it is to fail. */
static bool fails(int reason)
{
    if (!counting)
        return false;
    long call = atomic_fetch_add(&calls, 1);
    bool now = first >= 0 && (forever ? call >= first : call == first);
    if (now)
        errno = other_reason ? other_reason : reason;
    return now;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);

static void *counted(void *block)
{
    if (block && counting)
        blocks++;
    return block;
}

void *__wrap_malloc(size_t size)
{
    return fails(ENOMEM) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(ENOMEM) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (fails(ENOMEM))
        return NULL;
    return block ? __real_realloc(block, size) : counted(__real_realloc(NULL, size));
}

void __wrap_free(void *block)
{
    if (block && counting)
        blocks--;
    __real_free(block);
}

/* ---- Files ----------------------------------------------------------------------------------- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(EMFILE) ? -1 : __real_open64(path, flags, mode);
}

#define WRAP(result, bad, reason, name, parameters, arguments)                                     \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return fails(reason) ? bad : __real_##name arguments;                                      \
    }

WRAP(ssize_t, -1, EIO, read, (int file, void *data, size_t size), (file, data, size))
WRAP(ssize_t, -1, ENOSPC, write, (int file, const void *data, size_t size), (file, data, size))
WRAP(int, -1, EIO, fstat64, (int file, struct stat64 *about), (file, about))
WRAP(int, -1, EACCES, stat64, (const char *path, struct stat64 *about), (path, about))
WRAP(ssize_t, -1, EIO, readlink, (const char *path, char *target, size_t size),
     (path, target, size))
WRAP(off64_t, -1, ESPIPE, lseek64, (int file, off64_t at, int from), (file, at, from))
WRAP(int, -1, EPERM, fchmod, (int file, mode_t mode), (file, mode))
WRAP(int, -1, EACCES, rename, (const char *from, const char *to), (from, to))
WRAP(int, -1, EPERM, linkat, (int a, const char *from, int b, const char *to, int flags),
     (a, from, b, to, flags))
WRAP(int, -1, ENOSPC, fallocate64, (int file, int mode, off64_t at, off64_t size),
     (file, mode, at, size))
WRAP(int, ENOSPC, ENOSPC, posix_fallocate64, (int file, off64_t at, off64_t size), (file, at, size))
WRAP(int, -1, EMFILE, mkstemp64, (char *name), (name))
WRAP(int, -1, EMFILE, dup, (int file), (file))
WRAP(void *, MAP_FAILED, ENOMEM, mmap64,
     (void *at, size_t size, int protection, int flags, int file, off64_t offset),
     (at, size, protection, flags, file, offset))

/* Closes in any case, as the system does. */
int __real_close(int file);
int __wrap_close(int file)
{
    bool failing = fails(EIO);
    int result = __real_close(file);
    if (failing)
        errno = EIO;
    return failing ? -1 : result;
}

/* ---- Threads --------------------------------------------------------------------------------- */

WRAP(int, EAGAIN, EAGAIN, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
     (thread, attributes, body, argument))
