/* Memory that runs out on demand: loaded with LD_PRELOAD, before the C library. It runs out for
 * tarn's module and for what the module has Python make for it; Python itself dies where some of
 * its own allocations fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

long countdown = -1; /* allocations that still succeed; negative: all do */
long forever;        /* whether all fail after that, or one */
long failures;
long blocks; /* allocated and not freed since the start, by all threads */

/* The C library's own, under names that it exports besides. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

__attribute__((constructor)) static void load_unwinder(void)
{
    void *frame;
    backtrace(&frame, 1); /* The first call allocates. */
}

static int starts_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* Whether the innermost caller that is neither the C library nor Python is tarn's module. */
static __attribute__((noinline)) int is_ours(void)
{
    void *frame[64];
    Dl_info info;
    int frames = backtrace(frame, 64);
    for (int k = 3; k < frames; k++) { /* This function, fails() and the allocation come first. */
        if (!dladdr(frame[k], &info) || !info.dli_fname)
            return 0;
        const char *slash = strrchr(info.dli_fname, '/');
        const char *name = slash ? slash + 1 : info.dli_fname;
        if (starts_with(name, "_core."))
            return 1;
        if (!starts_with(name, "python") && !starts_with(name, "libpython") &&
            !starts_with(name, "libc.") && !starts_with(name, "libc-"))
            return 0;
    }
    return 0;
}

static __attribute__((noinline)) int fails(void)
{
    if (countdown < 0 || !is_ours() || countdown-- > 0)
        return 0;
    countdown = forever ? 0 : -1;
    failures++;
    errno = ENOMEM;
    return 1;
}

/* ---- Threads -------------------------------------------------------------------------------- */

long no_threads; /* whether those that the module asks for cannot be started */
long refused_threads;

typedef int start(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument)
{
    static start *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!no_threads)
        return real(thread, attributes, body, argument);
    refused_threads++;
    return EAGAIN;
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void *counted(void *block)
{
    if (block)
        __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
    if (fails())
        return NULL;
    return block ? __libc_realloc(block, size) : counted(__libc_malloc(size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

void free(void *block)
{
    if (block)
        __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    __libc_free(block);
}
