#define _DEFAULT_SOURCE /* madvise */
#define _FILE_OFFSET_BITS 64
#include "region.h"
#ifndef _WIN32 /* which has region_windows.c */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_ROOM = 1 << 16 };

/* A temporary file that has no name any more: it vanishes with the process. */
static int open_unlinked(void)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/tarn-XXXXXX", folder ? folder : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path)
        return errno = ENAMETOOLONG, -1;
    int file = mkstemp(path);
    if (file >= 0)
        unlink(path);
    return file;
}

static bool map(int file, size_t size, int protection, tarn_region *region)
{
    *region = (tarn_region){.size = size};
    if (size == 0)
        return true;
    void *data = mmap(NULL, size, protection, MAP_SHARED, file, 0);
    if (data == MAP_FAILED)
        return false;
    region->data = data;
    region->mapped = true;
    return true;
}

/* Room on the disk; 0, or why not. macOS cannot reserve it: there a full disk ends the program. */
static int reserve(int file, off_t size)
{
#ifdef __APPLE__
    return ftruncate(file, size) == 0 ? 0 : errno;
#else
    return posix_fallocate(file, 0, size);
#endif
}

bool tarn_region_create(size_t size, int64_t memory, tarn_region *region, tarn_complaint *complaint)
{
    if (size <= (uint64_t)memory) {
        *region = (tarn_region){.data = calloc(size ? size : 1, 1), .size = size};
        return region->data
                   ? true
                   : tarn_complain(complaint, FAILED_WORK, "no memory for %zu bytes", size);
    }
    int file = open_unlinked();
    if (file < 0)
        return tarn_complain_errno(complaint, "TMPDIR", "no temporary file for decoded data");
    int failed = reserve(file, (off_t)size);
    bool mapped = !failed && map(file, size, PROT_READ | PROT_WRITE, region);
    errno = failed ? failed : errno;
    int reason = errno;
    close(file);
    errno = reason;
    return mapped ||
           tarn_complain(complaint, FAILED_WORK, "no room for %zu decoded bytes in TMPDIR: %s",
                         size, strerror(errno));
}

void tarn_region_close(tarn_region *region)
{
    if (region->mapped)
        munmap(region->data, region->size);
    else
        free(region->data);
    *region = (tarn_region){0};
}

/* Reads until `room` bytes are there or the file ends; false with errno set if it cannot. */
static bool read_some(int file, unsigned char *data, size_t room, size_t *count)
{
    for (*count = 0; *count < room;) {
        ssize_t got = read(file, data + *count, room - *count);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return false;
        *count += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_all(int file, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(file, data, size);
        if (put < 0 && errno != EINTR)
            return false;
        data += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

/* The rest of a stream that is too long for memory: what was read and what follows go to disk. */
static bool spool(int stream, tarn_region *region, size_t used)
{
    int file = open_unlinked();
    size_t total = 0, count = used;
    bool good = file >= 0;
    while (good && count > 0) {
        good = write_all(file, region->data, count);
        total += count;
        good = good && read_some(stream, region->data, region->size, &count);
    }
    int reason = errno;
    free(region->data);
    *region = (tarn_region){0};
    errno = reason;
    good = good && map(file, total, PROT_READ, region);
    if (file >= 0)
        close(file);
    return good;
}

/* A pipe: read to its end. */
static bool read_stream(int stream, int64_t memory, tarn_region *region)
{
    size_t used = 0, count;
    *region = (tarn_region){.data = malloc(FIRST_ROOM), .size = FIRST_ROOM};
    while (region->data) {
        if (!read_some(stream, region->data + used, region->size - used, &count))
            return false;
        used += count;
        if (used < region->size)
            return region->size = used, true;
        if (region->size > (uint64_t)memory / 2)
            return spool(stream, region, used);
        unsigned char *more = realloc(region->data, 2 * region->size);
        if (!more)
            return false;
        region->data = more;
        region->size *= 2;
    }
    return false;
}

static bool read_or_map(int file, int64_t memory, tarn_region *region)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return false;
    if (S_ISDIR(about.st_mode))
        return errno = EISDIR, false;
    if (!S_ISREG(about.st_mode) || lseek(file, 0, SEEK_CUR) != 0)
        return read_stream(file, memory, region);
    return map(file, (size_t)about.st_size, PROT_READ, region);
}

bool tarn_region_open(const char *path, int64_t memory, tarn_region *region,
                      tarn_complaint *complaint)
{
    bool standard = strcmp(path, "-") == 0;
    tarn_complaint_file(complaint, standard ? "standard input" : path);
    *region = (tarn_region){0};
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return tarn_complain_errno(complaint, path, "cannot be opened");
    bool good = read_or_map(file, memory, region);
    if (!good) {
        tarn_complain_errno(complaint, standard ? "standard input" : path, "cannot be read");
        tarn_region_close(region);
    }
    if (!standard)
        close(file);
    return good;
}

/* Advice is given on whole pages. */
static void advise(const tarn_region *region, size_t begin, size_t end, int advice)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    begin -= begin % page;
    end = end < region->size ? end : region->size;
    if (region->mapped && begin < end)
        madvise(region->data + begin, end - begin, advice);
}

void tarn_region_will_need(const tarn_region *region, size_t begin, size_t end)
{
    advise(region, begin, end, MADV_WILLNEED);
}

void tarn_region_is_done(const tarn_region *region, size_t begin, size_t end)
{
    advise(region, begin, end, MADV_DONTNEED);
}

int64_t tarn_region_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}

#endif
