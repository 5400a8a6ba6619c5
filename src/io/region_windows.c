/* Regions on Windows (region.h): in memory whole, so that files and decoded data must fit it. */
#include "region.h"
#ifdef _WIN32

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

enum { FIRST_ROOM = 1 << 16, MOST_AT_ONCE = 1 << 30 };

bool tarn_region_create(size_t size, int64_t memory, tarn_region *region, tarn_complaint *complaint)
{
    (void)memory;
    *region = (tarn_region){.data = calloc(size ? size : 1, 1), .size = size};
    return region->data ||
           tarn_complain(complaint, FAILED_WORK, "no memory for %zu bytes", size);
}

void tarn_region_close(tarn_region *region)
{
    free(region->data);
    *region = (tarn_region){0};
}

/* To the end of the file; false with errno set. */
static bool read_all(int file, tarn_region *region)
{
    size_t used = 0;
    *region = (tarn_region){.data = malloc(FIRST_ROOM), .size = FIRST_ROOM};
    while (region->data) {
        size_t room = region->size - used;
        int got =
            read(file, region->data + used, room < MOST_AT_ONCE ? (unsigned)room : MOST_AT_ONCE);
        if (got < 0)
            return false;
        if (got == 0)
            return region->size = used, true;
        used += (size_t)got;
        if (used < region->size)
            continue;
        unsigned char *more = realloc(region->data, 2 * region->size);
        if (!more)
            return false;
        region->data = more;
        region->size *= 2;
    }
    return false;
}

bool tarn_region_open(const char *path, int64_t memory, tarn_region *region,
                      tarn_complaint *complaint)
{
    bool standard = strcmp(path, "-") == 0;
    struct stat about;
    (void)memory;
    tarn_complaint_file(complaint, standard ? "standard input" : path);
    *region = (tarn_region){0};
    if (!standard && stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return errno = EISDIR, tarn_complain_errno(complaint, path, "cannot be read");
    int file = standard ? _fileno(stdin) : open(path, O_RDONLY | O_BINARY);
    if (file < 0)
        return tarn_complain_errno(complaint, path, "cannot be opened");
    if (standard)
        _setmode(file, O_BINARY);
    bool good = read_all(file, region);
    if (!good) {
        tarn_complain_errno(complaint, standard ? "standard input" : path, "cannot be read");
        tarn_region_close(region);
    }
    if (!standard)
        close(file);
    return good;
}

void tarn_region_will_need(const tarn_region *region, size_t begin, size_t end)
{
    (void)region, (void)begin, (void)end;
}

void tarn_region_is_done(const tarn_region *region, size_t begin, size_t end)
{
    (void)region, (void)begin, (void)end;
}

int64_t tarn_region_machine_memory(void)
{
    MEMORYSTATUSEX about = {.dwLength = sizeof about};
    return GlobalMemoryStatusEx(&about) ? (int64_t)about.ullTotalPhys : 0;
}

#endif
