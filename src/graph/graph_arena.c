/* Packing: buffers whose lives do not meet may take the same bytes.
 *
 * The steps are walked in order, as they will run. A buffer takes the smallest gap that holds it when
 * it is first touched, and gives it back, joined with its neighbours, after its last step. */
#include "graph_program.h"

#include "../checked.h"
#include "../error.h"

enum { ALIGNMENT = 64 }; /* a cache line; also enough for every dtype */

typedef struct {
    int64_t begin, end;
} gap;

typedef struct {
    tarn_program *program;
    tarn_list
        gaps; /* gap, by address, none touching another; the space behind `top` is free, too */
    int64_t top;
    int *next_dead, *dead_at; /* lists of the buffers that die at a step */
    int *next_born, *born_at;
} packer;

static gap *gap_at(const packer *p, int64_t k)
{
    return (gap *)p->gaps.items + k;
}

static void remove_gap(packer *p, int64_t k)
{
    p->gaps.count--;
    for (; k < p->gaps.count; k++)
        *gap_at(p, k) = *gap_at(p, k + 1);
}

static bool insert_gap(packer *p, int64_t k, gap made)
{
    if (!tarn_list_reserve(&p->gaps, 1, sizeof(gap), &p->program->allocator))
        return false;
    for (int64_t j = p->gaps.count++; j > k; j--)
        *gap_at(p, j) = *gap_at(p, j - 1);
    *gap_at(p, k) = made;
    return true;
}

/* The smallest gap that holds `bytes`, else the top. */
static bool take_bytes(packer *p, int64_t bytes, int64_t *offset)
{
    int64_t best = -1;
    for (int64_t k = 0; k < p->gaps.count; k++) {
        int64_t room = gap_at(p, k)->end - gap_at(p, k)->begin;
        if (room >= bytes && (best < 0 || room < gap_at(p, best)->end - gap_at(p, best)->begin))
            best = k;
    }
    if (best >= 0) {
        *offset = gap_at(p, best)->begin;
        gap_at(p, best)->begin += bytes;
        if (gap_at(p, best)->begin == gap_at(p, best)->end)
            remove_gap(p, best);
        return true;
    }
    /* A gap that ends at the top is stretched. */
    int64_t last = p->gaps.count - 1;
    bool stretch = last >= 0 && gap_at(p, last)->end == p->top;
    *offset = stretch ? gap_at(p, last)->begin : p->top;
    if (stretch)
        remove_gap(p, last);
    return checked_add(*offset, bytes, &p->top);
}

static bool give_back(packer *p, int64_t begin, int64_t end)
{
    int64_t k = p->gaps.count;
    while (k > 0 && gap_at(p, k - 1)->begin > begin)
        k--;
    bool joins_low = k > 0 && gap_at(p, k - 1)->end == begin;
    bool joins_high = k < p->gaps.count && gap_at(p, k)->begin == end;
    if (joins_low && joins_high) {
        gap_at(p, k - 1)->end = gap_at(p, k)->end;
        remove_gap(p, k);
    } else if (joins_low) {
        gap_at(p, k - 1)->end = end;
    } else if (joins_high) {
        gap_at(p, k)->begin = begin;
    } else {
        return insert_gap(p, k, (gap){begin, end});
    }
    return true;
}

static int64_t rounded(const tarn_buffer *buffer)
{
    return (buffer->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Which buffers are born and die at each step, as lists. */
static void sort_by_step(packer *p)
{
    for (int64_t k = 0; k < p->program->steps.count; k++)
        p->born_at[k] = p->dead_at[k] = NO_BUFFER;
    for (int64_t k = p->program->buffers.count - 1; k >= 0; k--) {
        const tarn_buffer *buffer = program_buffer(p->program, k);
        if (buffer->base != 0 || buffer->first > buffer->last || buffer->bytes == 0)
            continue;
        p->next_born[k] = p->born_at[buffer->first];
        p->born_at[buffer->first] = (int)k;
        p->next_dead[k] = p->dead_at[buffer->last];
        p->dead_at[buffer->last] = (int)k;
    }
}

static tarn_status pack(packer *p, tarn_error *error)
{
    tarn_memory *report = &p->program->report;
    int64_t alive = 0;
    for (int64_t step = 0; step < p->program->steps.count; step++) {
        for (int k = p->born_at[step]; k != NO_BUFFER; k = p->next_born[k]) {
            tarn_buffer *buffer = program_buffer(p->program, k);
            int64_t bytes = rounded(buffer);
            if (!checked_add(report->without_reuse, bytes, &report->without_reuse) ||
                !take_bytes(p, bytes, &buffer->offset))
                return tarn_fail(error, TARN_OVERFLOW, NO_AXIS,
                                 "the buffers of the program do not fit 63 bits");
            alive += bytes;
            report->saved += buffer->role == ROLE_SAVED ? bytes : 0;
        }
        report->floor = max_i64(report->floor, alive);
        for (int k = p->dead_at[step]; k != NO_BUFFER; k = p->next_dead[k]) {
            const tarn_buffer *buffer = program_buffer(p->program, k);
            alive -= rounded(buffer);
            if (!give_back(p, buffer->offset, buffer->offset + rounded(buffer)))
                return tarn_no_memory(error);
        }
    }
    report->arena = p->top;
    report->steps = (int)p->program->steps.count;
    return TARN_OK;
}

static void settle_refs(tarn_program *program)
{
    for (int64_t k = 0; k < program->refs.count; k++) {
        tarn_ref *ref = program_ref(program, k);
        ref->base = -1;
        if (ref->place.buffer == NO_BUFFER)
            continue;
        const tarn_buffer *buffer = program_buffer(program, ref->place.buffer);
        ref->base = buffer->base;
        ref->at = buffer->offset + ref->place.offset;
    }
}

static tarn_status allocate_arena(tarn_program *program, tarn_error *error)
{
    int64_t bytes;
    if (!checked_add(program->report.arena, ALIGNMENT, &bytes))
        return tarn_no_memory(error);
    program->memory = program->allocator.allocate(program->allocator.context, (size_t)bytes);
    if (!program->memory)
        return tarn_fail(error, TARN_NO_MEMORY, NO_AXIS, "no memory for an arena of %lld bytes",
                         (long long)program->report.arena);
    uintptr_t at = (uintptr_t)program->memory, past = at % ALIGNMENT;
    program->base[0] = (char *)program->memory + (past ? ALIGNMENT - past : 0);
    return TARN_OK;
}

tarn_status tarn_pack_arena(tarn_program *program, tarn_error *error)
{
    const tarn_allocator *allocator = &program->allocator;
    int64_t steps = program->steps.count, buffers = program->buffers.count;
    size_t bytes = (size_t)(2 * (steps + buffers) + 1) * sizeof(int);
    int *lists = allocator->allocate(allocator->context, bytes);
    if (!lists)
        return tarn_no_memory(error);
    packer p = {.program = program,
                .born_at = lists,
                .dead_at = lists + steps,
                .next_born = lists + 2 * steps,
                .next_dead = lists + 2 * steps + buffers};
    sort_by_step(&p);
    tarn_status status = pack(&p, error);
    tarn_list_free(&p.gaps, allocator);
    allocator->release(allocator->context, lists);
    if (status)
        return status;
    settle_refs(program);
    return allocate_arena(program, error);
}
