#include "bench_bound.h"
#include "bench_case.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* A block is read, then its share of the output is written, as a kernel that goes through its input
 * once would do. Boundaries are those of cache lines. */
enum { BLOCK = 4096, LINE = 64 };

typedef struct {
    const char *from;
    char *to;
    size_t read, written;
    bool bypass;
    int parts;
} work;

typedef struct {
    size_t lo, hi;
} range;

/* Everything that is read ends in what is written, so that no compiler can leave it out. */
static uint64_t fold_words(const char *from, size_t bytes)
{
    uint64_t word, sum = 0;
    for (size_t at = 0; at < bytes; at += sizeof word) {
        size_t rest = bytes - at;
        word = 0;
        memcpy(&word, from + at, rest < sizeof word ? rest : sizeof word);
        sum |= word;
    }
    return sum;
}

#if defined(__x86_64__)
#define VECTOR __attribute__((target("avx2")))
typedef __m256i vector;

VECTOR static uint64_t fold(const char *from, size_t bytes)
{
    vector sum[4] = {{0}, {0}, {0}, {0}};
    size_t at = 0;
    for (; at + 4 * sizeof(vector) <= bytes; at += 4 * sizeof(vector))
        for (int k = 0; k < 4; k++) {
            const vector *here = (const vector *)(const void *)(from + at) + k;
            sum[k] = _mm256_or_si256(sum[k], _mm256_loadu_si256(here));
        }
    for (int k = 1; k < 4; k++)
        sum[0] = _mm256_or_si256(sum[0], sum[k]);
    uint64_t words[4];
    _mm256_storeu_si256((vector *)(void *)words, sum[0]);
    return words[0] | words[1] | words[2] | words[3] | fold_words(from + at, bytes - at);
}

VECTOR static size_t spread_vectors(char *to, size_t bytes, uint64_t word, bool bypass)
{
    vector value = _mm256_set1_epi64x((long long)word);
    size_t at = 0;
    if (bypass)
        for (; at + sizeof value <= bytes; at += sizeof value)
            _mm256_stream_si256((vector *)(void *)(to + at), value);
    else
        for (; at + sizeof value <= bytes; at += sizeof value)
            _mm256_storeu_si256((vector *)(void *)(to + at), value);
    return at;
}

static bool have_vectors(void)
{
    return __builtin_cpu_supports("avx2");
}

static void finish_stores(void)
{
    _mm_sfence();
}
#else
/* Simple loops, which compilers vectorise; there are no stores past the caches. */
static uint64_t fold(const char *from, size_t bytes)
{
    return fold_words(from, bytes);
}

static size_t spread_vectors(char *to, size_t bytes, uint64_t word, bool bypass)
{
    (void)to, (void)bytes, (void)word, (void)bypass;
    return 0;
}

static bool have_vectors(void)
{
    return false;
}

static void finish_stores(void)
{
}
#endif

static void spread(char *to, size_t bytes, uint64_t word, bool bypass, bool vectors)
{
    for (size_t at = vectors ? spread_vectors(to, bytes, word, bypass) : 0; at < bytes;
         at += sizeof word) {
        size_t rest = bytes - at;
        memcpy(to + at, &word, rest < sizeof word ? rest : sizeof word);
    }
}

/* Piece `index` of `count` of so many bytes. */
static range piece(size_t bytes, size_t index, size_t count)
{
    size_t lines = bytes / LINE;
    return (range){lines * index / count * LINE,
                   index + 1 == count ? bytes : lines * (index + 1) / count * LINE};
}

static void stream(const char *from, size_t read, char *to, size_t written, bool bypass)
{
    bool vectors = have_vectors();
    size_t blocks = (read > written ? read : written) / BLOCK + 1;
    for (size_t k = 0; k < blocks; k++) {
        range in = piece(read, k, blocks), out = piece(written, k, blocks);
        uint64_t sum =
            vectors ? fold(from + in.lo, in.hi - in.lo) : fold_words(from + in.lo, in.hi - in.lo);
        spread(to + out.lo, out.hi - out.lo, sum, bypass, vectors);
    }
    if (bypass)
        finish_stores();
}

static void stream_part(void *argument, int index)
{
    const work *w = argument;
    range in = piece(w->read, (size_t)index, (size_t)w->parts);
    range out = piece(w->written, (size_t)index, (size_t)w->parts);
    stream(w->from + in.lo, in.hi - in.lo, w->to + out.lo, out.hi - out.lo, w->bypass);
}

/* A buffer that grows with the greatest row; the bound overwrites no tensor of a case. */
static char *buffer(int which, size_t bytes)
{
    static char *memory[2];
    static size_t size[2];
    if (bytes > size[which] || !memory[which]) {
        free(memory[which]);
        memory[which] = bench_allocate(bytes);
        size[which] = bytes;
    }
    return memory[which];
}

double bench_bound(size_t read, size_t written, int threads, bool bypass, long repeats)
{
    work w = {buffer(0, read), buffer(1, written), read, written, bypass, threads};
    tarn_executor executor = tarn_executor_serial();
    tarn_error error;
    if (threads > 1 && tarn_executor_threads(threads, &executor, &error))
        bench_stop("threads", error.message);
    double begin = bench_now();
    for (long k = 0; k < repeats; k++)
        if (threads > 1)
            executor.parallel_for(executor.context, threads, stream_part, &w);
        else
            stream(w.from, read, w.to, written, bypass);
    return bench_now() - begin;
}
