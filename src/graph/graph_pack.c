/* Two ways to pack, the better one is kept.
 *
 * The first walks the steps as they will run: a block takes the smallest gap that holds it when it
 * is born and gives it back, joined with its neighbours, when it dies. That is fast, and mostly
 * takes no more than what is alive at once, which cannot be beaten. Where it does, and there are
 * not too many blocks, the second places them by size, the largest first, each as low as those it
 * lives with allow: small blocks then fill the gaps that large ones leave. */
#include "graph_pack.h"

#include "../checked.h"
#include "../error.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BY_SIZE = 2048 }; /* the second way takes quadratic time: some milliseconds here */

/* ---- Along the steps ----------------------------------------------------------------------- */

typedef struct {
    int64_t begin, end;
} gap;

typedef struct {
    tarn_block *blocks;
    const tarn_allocator *allocator;
    tarn_list gaps; /* by address, none touching another; the space behind `top` is free, too */
    int64_t top;
    int *born_at, *next_born; /* by step and by block: lists of the blocks born at a step */
    int *dead_at, *next_dead;
} walk;

enum { NONE = -1 };

static gap *gap_at(const walk *w, int64_t k)
{
    return (gap *)w->gaps.items + k;
}

static int64_t gap_bytes(const walk *w, int64_t k)
{
    return gap_at(w, k)->end - gap_at(w, k)->begin;
}

static void remove_gap(walk *w, int64_t k)
{
    w->gaps.count--;
    for (; k < w->gaps.count; k++)
        *gap_at(w, k) = *gap_at(w, k + 1);
}

static bool insert_gap(walk *w, int64_t k, gap made)
{
    if (!tarn_list_reserve(&w->gaps, 1, sizeof(gap), w->allocator))
        return false;
    for (int64_t j = w->gaps.count++; j > k; j--)
        *gap_at(w, j) = *gap_at(w, j - 1);
    *gap_at(w, k) = made;
    return true;
}

static int64_t smallest_gap(const walk *w, int64_t bytes)
{
    int64_t best = NONE;
    for (int64_t k = 0; k < w->gaps.count; k++)
        if (gap_bytes(w, k) >= bytes && (best == NONE || gap_bytes(w, k) < gap_bytes(w, best)))
            best = k;
    return best;
}

/* The top is at most the sum of all bytes. */
static void take_bytes(walk *w, int64_t bytes, int64_t *offset)
{
    int64_t best = smallest_gap(w, bytes);
    if (best != NONE) {
        *offset = gap_at(w, best)->begin;
        gap_at(w, best)->begin += bytes;
        if (gap_bytes(w, best) == 0)
            remove_gap(w, best);
        return;
    }
    int64_t last = w->gaps.count - 1;
    bool stretch = last >= 0 && gap_at(w, last)->end == w->top; /* a gap that ends at the top */
    *offset = stretch ? gap_at(w, last)->begin : w->top;
    if (stretch)
        remove_gap(w, last);
    w->top = *offset + bytes;
}

static bool give_back(walk *w, int64_t begin, int64_t end)
{
    int64_t k = w->gaps.count;
    while (k > 0 && gap_at(w, k - 1)->begin > begin)
        k--;
    bool joins_low = k > 0 && gap_at(w, k - 1)->end == begin;
    bool joins_high = k < w->gaps.count && gap_at(w, k)->begin == end;
    if (joins_low && joins_high) {
        gap_at(w, k - 1)->end = gap_at(w, k)->end;
        remove_gap(w, k);
    } else if (joins_low) {
        gap_at(w, k - 1)->end = end;
    } else if (joins_high) {
        gap_at(w, k)->begin = begin;
    } else {
        return insert_gap(w, k, (gap){begin, end});
    }
    return true;
}

static void sort_by_step(walk *w, int count, int steps)
{
    for (int k = 0; k < steps; k++)
        w->born_at[k] = w->dead_at[k] = NONE;
    for (int k = count - 1; k >= 0; k--) {
        const tarn_block *block = &w->blocks[k];
        w->next_born[k] = w->born_at[block->first];
        w->born_at[block->first] = k;
        w->next_dead[k] = w->dead_at[block->last];
        w->dead_at[block->last] = k;
    }
}

static tarn_status walk_steps(walk *w, int steps, tarn_error *error)
{
    for (int step = 0; step < steps; step++) {
        for (int k = w->born_at[step]; k != NONE; k = w->next_born[k])
            take_bytes(w, w->blocks[k].bytes, &w->blocks[k].offset);
        for (int k = w->dead_at[step]; k != NONE; k = w->next_dead[k])
            if (!give_back(w, w->blocks[k].offset, w->blocks[k].offset + w->blocks[k].bytes))
                return tarn_no_memory(error);
    }
    return TARN_OK;
}

static tarn_status pack_along_steps(tarn_block *blocks, int count, int steps,
                                    const tarn_allocator *allocator, int64_t *top,
                                    tarn_error *error)
{
    size_t bytes = 2 * ((size_t)count + (size_t)steps) * sizeof(int) + 1;
    int *lists = allocator->allocate(allocator->context, bytes);
    if (!lists)
        return tarn_no_memory(error);
    walk w = {.blocks = blocks,
              .allocator = allocator,
              .born_at = lists,
              .dead_at = lists + steps,
              .next_born = lists + 2 * (size_t)steps,
              .next_dead = lists + 2 * (size_t)steps + count};
    sort_by_step(&w, count, steps);
    tarn_status status = walk_steps(&w, steps, error);
    tarn_list_free(&w.gaps, allocator);
    allocator->release(allocator->context, lists);
    *top = w.top;
    return status;
}

/* ---- By size ------------------------------------------------------------------------------- */

typedef struct {
    tarn_block block;
    int index;
} entry;

/* Largest first, then in the order of birth; no two compare equal. */
static int compare_sizes(const void *first, const void *second)
{
    const entry *a = first, *b = second;
    if (a->block.bytes != b->block.bytes)
        return a->block.bytes < b->block.bytes ? 1 : -1;
    return a->index - b->index;
}

static bool meet_in_time(const tarn_block *a, const tarn_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset that is free; `placed` lie by offset. */
static int64_t lowest_offset(const tarn_block *block, const entry *const *placed, int count)
{
    int64_t offset = 0;
    for (int k = 0; k < count; k++) {
        const tarn_block *other = &placed[k]->block;
        if (!meet_in_time(block, other))
            continue;
        if (other->offset - offset >= block->bytes)
            break;
        offset = max_i64(offset, other->offset + other->bytes);
    }
    return offset;
}

static void insert_by_offset(const entry **placed, int count, const entry *made)
{
    int k = count;
    for (; k > 0 && placed[k - 1]->block.offset > made->block.offset; k--)
        placed[k] = placed[k - 1];
    placed[k] = made;
}

/* Places all entries; returns the memory it takes, or `limit` as soon as it takes as much. */
static int64_t place_by_size(entry *entries, const entry **placed, int count, int64_t limit)
{
    int64_t top = 0;
    qsort(entries, (size_t)count, sizeof *entries, compare_sizes);
    for (int k = 0; k < count; k++) {
        tarn_block *block = &entries[k].block;
        block->offset = lowest_offset(block, placed, k);
        if (block->offset >= limit - block->bytes)
            return limit;
        top = max_i64(top, block->offset + block->bytes);
        insert_by_offset(placed, k, &entries[k]);
    }
    return top;
}

/* Keeps what it finds if that takes less than *top. */
static tarn_status improve_by_size(tarn_block *blocks, int count, const tarn_allocator *allocator,
                                   int64_t *top, tarn_error *error)
{
    size_t n = (size_t)count, bytes = n * (sizeof(entry) + sizeof(entry *));
    entry *entries = allocator->allocate(allocator->context, bytes);
    if (!entries)
        return tarn_no_memory(error);
    for (int k = 0; k < count; k++)
        entries[k] = (entry){blocks[k], k};
    int64_t found = place_by_size(entries, (const entry **)(void *)(entries + n), count, *top);
    for (int k = 0; k < count && found < *top; k++)
        blocks[entries[k].index].offset = entries[k].block.offset;
    *top = found < *top ? found : *top;
    allocator->release(allocator->context, entries);
    return TARN_OK;
}

/* ---- Both ---------------------------------------------------------------------------------- */

tarn_status tarn_most_alive(const tarn_block *blocks, int count, int steps,
                            const tarn_allocator *allocator, int64_t *most, tarn_error *error)
{
    size_t bytes = ((size_t)steps + 1) * sizeof(int64_t);
    int64_t *change = allocator->allocate(allocator->context, bytes), alive = 0;
    if (!change)
        return tarn_no_memory(error);
    memset(change, 0, bytes);
    for (int k = 0; k < count; k++) {
        change[blocks[k].first] += blocks[k].bytes;
        change[blocks[k].last + 1] -= blocks[k].bytes;
    }
    *most = 0;
    for (int step = 0; step < steps; step++)
        *most = max_i64(*most, alive += change[step]);
    allocator->release(allocator->context, change);
    return TARN_OK;
}

tarn_status tarn_pack_blocks(tarn_block *blocks, int count, int steps,
                             const tarn_allocator *allocator, int64_t *top, tarn_error *error)
{
    int64_t most = 0;
    tarn_status status = pack_along_steps(blocks, count, steps, allocator, top, error);
    if (!status)
        status = tarn_most_alive(blocks, count, steps, allocator, &most, error);
    if (!status && *top > most && count <= MOST_BY_SIZE)
        status = improve_by_size(blocks, count, allocator, top, error);
    return status;
}
