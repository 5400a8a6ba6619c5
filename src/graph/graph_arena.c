/* The arena: buffers whose lives do not meet may take the same bytes, and a sum or a product may be
 * made over an operand that nothing reads again. */
#include "graph_pack.h"
#include "graph_program.h"

#include "../checked.h"
#include "../error.h"

enum { ALIGNMENT = 64 }; /* a cache line; also enough for every dtype */

typedef struct {
    tarn_program *program;
    tarn_block *blocks;
    int *block_of; /* by buffer; NO_BLOCK: no bytes of the arena */
    int count;
} layout;

enum { NO_BLOCK = -1 };

static int64_t rounded(const tarn_buffer *buffer)
{
    return (buffer->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- Blocks -------------------------------------------------------------------------------- */

/* Whether a ref is a whole buffer of the arena. */
static bool is_whole(const layout *l, const tarn_ref *ref)
{
    int buffer = ref->place.buffer;
    return buffer != NO_BUFFER && l->block_of[buffer] != NO_BLOCK &&
           ref->place.bytes == program_buffer(l->program, buffer)->bytes;
}

/* The buffer that may be overwritten by what step `now` writes: same size, read for the last
 * time. */
static int dying_operand(const layout *l, int now)
{
    const tarn_step *step = program_step(l->program, now);
    for (int k = step->written; k < step->count; k++) {
        const tarn_ref *ref = program_ref(l->program, step->first + k);
        if (is_whole(l, ref) && program_buffer(l->program, ref->place.buffer)->last == now)
            return ref->place.buffer;
    }
    return NO_BUFFER;
}

/* Block of a buffer that is born at step `now`: that of an operand it is made over, if it may
 * be. */
static int block_at_birth(const layout *l, int buffer, int now)
{
    const tarn_step *step = program_step(l->program, now);
    if (step->kind != STEP_SUM && step->kind != STEP_SCALE)
        return NO_BLOCK;
    const tarn_ref *y = program_ref(l->program, step->first);
    if (y->place.bytes != program_buffer(l->program, buffer)->bytes)
        return NO_BLOCK; /* a slice of what is born */
    int over = dying_operand(l, now);
    return over == NO_BUFFER ? NO_BLOCK : l->block_of[over];
}

/* Buffers in the order of birth, so that the operands of a step have their blocks before it. */
static void add_buffer(layout *l, int buffer, int now)
{
    const tarn_buffer *b = program_buffer(l->program, buffer);
    if (b->base != 0 || b->bytes == 0 || b->first != now || l->block_of[buffer] != NO_BLOCK)
        return;
    int block = block_at_birth(l, buffer, now);
    if (block == NO_BLOCK) {
        block = l->count++;
        l->blocks[block] = (tarn_block){.bytes = rounded(b), .first = now};
    }
    l->blocks[block].last = b->last;
    l->block_of[buffer] = block;
}

static void make_blocks(layout *l)
{
    for (int64_t k = 0; k < l->program->buffers.count; k++)
        l->block_of[k] = NO_BLOCK;
    for (int now = 0; now < l->program->steps.count; now++) {
        const tarn_step *step = program_step(l->program, now);
        for (int k = 0; k < step->count; k++) {
            int buffer = program_ref(l->program, step->first + k)->place.buffer;
            if (buffer != NO_BUFFER)
                add_buffer(l, buffer, now);
        }
    }
}

/* ---- The report ---------------------------------------------------------------------------- */

static tarn_status count_bytes(tarn_program *program, tarn_error *error)
{
    tarn_memory *report = &program->report;
    int64_t all = ALIGNMENT;
    report->steps = (int)program->steps.count;
    for (int64_t k = 0; k < program->buffers.count; k++) {
        const tarn_buffer *buffer = program_buffer(program, k);
        if (buffer->base != 0 || buffer->first > buffer->last)
            continue;
        if (buffer->bytes > INT64_MAX - ALIGNMENT || !checked_add(all, rounded(buffer), &all))
            return tarn_fail(error, TARN_OVERFLOW, NO_AXIS,
                             "the buffers of the program do not fit 63 bits");
        report->saved += buffer->role == ROLE_SAVED ? rounded(buffer) : 0;
    }
    report->without_reuse = all - ALIGNMENT;
    return TARN_OK;
}

/* ---- Offsets ------------------------------------------------------------------------------- */

static tarn_status pack(layout *l, tarn_error *error)
{
    tarn_program *p = l->program;
    tarn_memory *report = &p->report;
    tarn_status status;
    make_blocks(l);
    if ((status = tarn_pack_blocks(l->blocks, l->count, report->steps, &p->allocator,
                                   &report->arena, error)) ||
        (status = tarn_most_alive(l->blocks, l->count, report->steps, &p->allocator, &report->floor,
                                  error)))
        return status;
    for (int64_t k = 0; k < p->buffers.count; k++)
        if (l->block_of[k] != NO_BLOCK)
            program_buffer(p, k)->offset = l->blocks[l->block_of[k]].offset;
    return TARN_OK;
}

static tarn_status settle_buffers(tarn_program *program, tarn_error *error)
{
    const tarn_allocator *allocator = &program->allocator;
    size_t n = (size_t)program->buffers.count;
    tarn_block *blocks =
        allocator->allocate(allocator->context, n * (sizeof *blocks + sizeof(int)) + 1);
    if (!blocks)
        return tarn_no_memory(error);
    layout l = {.program = program, .blocks = blocks, .block_of = (int *)(void *)(blocks + n)};
    tarn_status status = pack(&l, error);
    allocator->release(allocator->context, blocks);
    return status;
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
    program->memory = program->allocator.allocate(program->allocator.context,
                                                  size_of_bytes(program->report.arena + ALIGNMENT));
    if (!program->memory)
        return tarn_fail(error, TARN_NO_MEMORY, NO_AXIS, "no memory for an arena of %lld bytes",
                         (long long)program->report.arena);
    uintptr_t at = (uintptr_t)program->memory, past = at % ALIGNMENT;
    program->base[0] = (char *)program->memory + (past ? ALIGNMENT - past : 0);
    return TARN_OK;
}

tarn_status tarn_pack_arena(tarn_program *program, tarn_error *error)
{
    tarn_status status;
    if ((status = count_bytes(program, error)) || (status = settle_buffers(program, error)))
        return status;
    settle_refs(program);
    return allocate_arena(program, error);
}
