/* Runs a fuzz target on the files of a corpus, whole, cut at every length, and with single bytes changed: what
 * a fuzzer tries first, in every test run and under every sanitizer. */
#define _POSIX_C_SOURCE 200809L /* opendir */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>

enum { MOST_BYTES = 1 << 16, CHANGES = 300 };

static size_t read_file(const char *path, unsigned char *data)
{
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(data, 1, MOST_BYTES, file) : 0;
    if (file)
        fclose(file);
    return size;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void run_damaged(unsigned char *data, size_t size)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, '9', '-'};
    uint64_t state = size;
    LLVMFuzzerTestOneInput(data, size);
    size_t step = size / CHANGES + 1;
    for (size_t length = 0; length < size; length += step)
        LLVMFuzzerTestOneInput(data, length);
    for (int k = 0; k < CHANGES && size > 0; k++) {
        size_t at = next_random(&state) % size;
        unsigned char before = data[at];
        data[at] = values[next_random(&state) % sizeof values];
        LLVMFuzzerTestOneInput(data, size);
        data[at] = before;
    }
}

int main(int argc, char **argv)
{
    static unsigned char data[MOST_BYTES];
    int files = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        run_damaged(data, read_file(path, data));
        files++;
    }
    if (folder)
        closedir(folder);
    printf("%d files\n", files);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE; /* an empty corpus proves nothing */
}
