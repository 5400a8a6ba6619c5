/* usage: replay_TARGET CORPUS [ROUNDS]
 *
 * Runs a fuzz target on the files of a corpus, whole, cut at every length, and with single bytes
 * changed: what a fuzzer tries first, in every test run and under every sanitizer. Then as many
 * random inputs as asked for, made from these files: a fuzzer for builds that libFuzzer does not
 * know, as the one with vector kernels. */
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

/* Up to 16 bytes of a copy are changed, and the end may be cut off. */
static void run_random(const unsigned char *data, size_t size, uint64_t *state)
{
    static unsigned char copy[MOST_BYTES];
    memcpy(copy, data, size);
    for (uint64_t k = next_random(state) % 16; k > 0 && size > 0; k--)
        copy[next_random(state) % size] = (unsigned char)next_random(state);
    if (next_random(state) % 8 == 0 && size > 0)
        size = next_random(state) % size;
    LLVMFuzzerTestOneInput(copy, size);
}

int main(int argc, char **argv)
{
    static unsigned char data[MOST_BYTES];
    int files = 0;
    long rounds = argc == 3 ? atol(argv[2]) : 0;
    DIR *folder = argc == 2 || argc == 3 ? opendir(argv[1]) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        size_t size = read_file(path, data);
        uint64_t state = (uint64_t)files + 1;
        run_damaged(data, size);
        for (long k = 0; k < rounds; k++)
            run_random(data, size, &state);
        files++;
    }
    if (folder)
        closedir(folder);
    printf("%d files, %ld random inputs\n", files, rounds * files);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE; /* an empty corpus proves nothing */
}
