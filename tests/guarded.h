/* Memory between guard pages: a byte read or written outside faults at once. */
#ifndef TARN_GUARDED_H
#define TARN_GUARDED_H

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    char *begin;     /* first usable byte; the page before it is a guard */
    size_t capacity; /* the page behind begin + capacity is a guard */
} guarded;

static inline guarded guarded_make(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    char *memory =
        mmap(NULL, size + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) ||
        mprotect(memory + page + size, page, PROT_NONE)) {
        perror("guarded memory");
        exit(2);
    }
    return (guarded){memory + page, size};
}

/* `bytes` of it, flush with the guard behind or with the guard before. */
static inline char *guarded_place(const guarded *g, size_t bytes, bool at_end)
{
    if (bytes > g->capacity) {
        fprintf(stderr, "a test needs %zu guarded bytes of %zu\n", bytes, g->capacity);
        exit(2);
    }
    return at_end ? g->begin + (g->capacity - bytes) : g->begin;
}

#endif
