/* Memory between guard pages: a byte read or written outside faults at once. */
#ifndef TARN_GUARDED_H
#define TARN_GUARDED_H

#include "check.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

typedef struct {
    char *begin;     /* first usable byte; the page before it is a guard */
    size_t capacity; /* the page behind begin + capacity is a guard */
} guarded;

#ifdef _WIN32
static inline size_t page_size(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

static inline char *map_pages(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

static inline bool forbid_page(char *page, size_t bytes)
{
    DWORD before;
    return VirtualProtect(page, bytes, PAGE_NOACCESS, &before) != 0;
}
#else
static inline size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static inline char *map_pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline bool forbid_page(char *page, size_t bytes)
{
    return mprotect(page, bytes, PROT_NONE) == 0;
}
#endif

static inline guarded guarded_make(size_t bytes)
{
    size_t page = page_size(), size = (bytes + page - 1) / page * page;
    char *memory = map_pages(size + 2 * page);
    if (!memory || !forbid_page(memory, page) || !forbid_page(memory + page + size, page)) {
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
