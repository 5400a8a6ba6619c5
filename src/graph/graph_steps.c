/* Steps, and the buffers they touch: every step stretches the lives of its buffers. */
#include "graph_compiler.h"

#include "../error.h"

#include <limits.h>

enum { RECENT_PLANS = 8 }; /* chains repeat themselves: plans are shared with the last few */

void *tarn_append(tarn_compiler *c, tarn_list *list, size_t item_bytes)
{
    if (c->status)
        return NULL;
    if (list->count >= INT_MAX || !tarn_list_reserve(list, 1, item_bytes, &c->program->allocator)) {
        c->status = tarn_no_memory(c->error);
        return NULL;
    }
    return (char *)list->items + (size_t)list->count++ * item_bytes;
}

/* ---- Buffers ------------------------------------------------------------------------------- */

tarn_place tarn_new_buffer(tarn_compiler *c, int base, int64_t bytes, tarn_value value,
                           tarn_role role)
{
    tarn_buffer *made = tarn_append(c, &c->program->buffers, sizeof *made);
    if (!made)
        return nowhere;
    *made = (tarn_buffer){
        .base = base, .bytes = bytes, .first = INT_MAX, .last = -1, .value = value, .role = role};
    return (tarn_place){(int)c->program->buffers.count - 1, 0, bytes};
}

tarn_place tarn_external(tarn_compiler *c, int base, tarn_value value, tarn_role role)
{
    const tarn_node *node = node_of(c, value);
    tarn_program *p = c->program;
    if (p->external[base] == NO_BUFFER) {
        p->external[base] = tarn_new_buffer(c, base, node->bytes, value, role).buffer;
        p->external_alignment[base] = (int)tarn_dtype_size(node->view.dtype);
    }
    return (tarn_place){p->external[base], 0, node->bytes};
}

bool tarn_lies_in(const tarn_compiler *c, tarn_place place, int base)
{
    return place.buffer != NO_BUFFER && program_buffer(c->program, place.buffer)->base == base;
}

/* ---- Steps --------------------------------------------------------------------------------- */

tarn_step *tarn_add_step(tarn_compiler *c, tarn_step_kind kind, tarn_value node)
{
    tarn_step *step = tarn_append(c, &c->program->steps, sizeof *step);
    if (step)
        *step = (tarn_step){.kind = kind, .node = node, .first = (int)c->program->refs.count};
    return step;
}

void tarn_add_ref(tarn_compiler *c, tarn_place place, bool written)
{
    tarn_ref *ref = tarn_append(c, &c->program->refs, sizeof *ref);
    if (!ref)
        return;
    int now = (int)c->program->steps.count - 1;
    tarn_step *step = program_step(c->program, now);
    *ref = (tarn_ref){.place = place};
    step->count++;
    step->written += written;
    if (place.buffer == NO_BUFFER)
        return;
    tarn_buffer *buffer = program_buffer(c->program, place.buffer);
    buffer->written |= written;
    if (buffer->first > now)
        buffer->first = now;
    buffer->last = now;
}

bool tarn_begin_sum(tarn_compiler *c, tarn_value node, tarn_place to)
{
    tarn_step *step = to.bytes > 0 ? tarn_add_step(c, STEP_SUM, node) : NULL;
    if (!step)
        return false;
    step->arithmetic = tarn_arithmetic_of(node_of(c, node)->view.dtype);
    tarn_add_ref(c, to, true);
    return true;
}

void tarn_add_scale(tarn_compiler *c, tarn_value node, tarn_place to, tarn_place from)
{
    tarn_step *step = to.bytes > 0 ? tarn_add_step(c, STEP_SCALE, node) : NULL;
    if (!step)
        return;
    step->arithmetic = tarn_arithmetic_of(node_of(c, node)->view.dtype);
    step->factor = *(const double *)node_of(c, node)->payload;
    tarn_add_ref(c, to, true);
    tarn_add_ref(c, from, false);
}

void tarn_add_zero(tarn_compiler *c, tarn_value node, tarn_place to)
{
    if (to.bytes > 0 && tarn_add_step(c, STEP_ZERO, node))
        tarn_add_ref(c, to, true);
}

void tarn_add_copy(tarn_compiler *c, tarn_value node, tarn_step_kind kind, const tarn_inset *box,
                   tarn_place to, tarn_place from)
{
    tarn_inset *made = to.bytes > 0 ? tarn_append(c, &c->program->boxes, sizeof *made) : NULL;
    tarn_step *step = made ? tarn_add_step(c, kind, node) : NULL;
    if (!step)
        return;
    *made = *box;
    step->detail = c->program->boxes.count - 1;
    tarn_add_ref(c, to, true);
    tarn_add_ref(c, from, false);
}

void tarn_add_plain_copy(tarn_compiler *c, tarn_value node, tarn_place to, tarn_place from)
{
    tarn_add_copy(c, node, STEP_INTO, &(tarn_inset){.run = to.bytes}, to, from);
}

/* ---- Custom steps -------------------------------------------------------------------------- */

tarn_step *tarn_begin_custom(tarn_compiler *c, tarn_step_kind kind, tarn_value node)
{
    tarn_step *step = tarn_add_step(c, kind, node);
    if (step) {
        step->custom = node_of(c, node)->payload;
        step->detail = c->program->views.count;
    }
    return step;
}

void tarn_add_viewed(tarn_compiler *c, tarn_value like, tarn_place place, bool written)
{
    tarn_view *view = tarn_append(c, &c->program->views, sizeof *view);
    if (view)
        *view = node_of(c, like)->view;
    tarn_add_ref(c, place, written);
}

/* ---- Plans --------------------------------------------------------------------------------- */

/* Member by member, but for those of pieces, which graphs do not take: bytes between members say
 * nothing. Numbers by their bits: the caller's floating-point state may take small ones for
 * equal. */
static bool same_pool(const tarn_pool *a, const tarn_pool *b)
{
#define SAME(member) (memcmp(&a->member, &b->member, sizeof a->member) == 0)
    return a->op == b->op && a->window == b->window && a->spatial == b->spatial && SAME(kernel) &&
           SAME(stride) && SAME(dilation) && SAME(pad_lo) && SAME(pad_hi) && SAME(out) &&
           a->ceil_mode == b->ceil_mode && a->count_include_pad == b->count_include_pad &&
           a->divisor == b->divisor && SAME(beta) && SAME(power) && a->ties == b->ties &&
           a->flat == b->flat && a->skip == b->skip && a->skip_integer == b->skip_integer &&
           SAME(skip_real) && a->min_count == b->min_count;
#undef SAME
}

static const tarn_view *input_of(const tarn_compiler *c, tarn_value pool)
{
    return &node_of(c, operands_of(c, pool)[0])->view;
}

static bool same_problem(const tarn_compiler *c, tarn_value a, tarn_value b)
{
    const tarn_view *x = input_of(c, a), *y = input_of(c, b);
    return same_pool(pool_of(node_of(c, a)), pool_of(node_of(c, b))) && x->dtype == y->dtype &&
           x->rank == y->rank &&
           memcmp(x->shape, y->shape, sizeof *x->shape * (size_t)x->rank) == 0;
}

static const tarn_plan *plan_of(tarn_compiler *c, tarn_value node)
{
    tarn_plan **plans = c->program->plans.items;
    const tarn_value *made_for = c->recent.items;
    int64_t count = c->program->plans.count;
    for (int64_t k = count - 1; k >= 0 && k >= count - RECENT_PLANS; k--)
        if (same_problem(c, made_for[k], node))
            return plans[k];
    tarn_value *remembered = tarn_append(c, &c->recent, sizeof *remembered);
    tarn_plan **made = remembered ? tarn_append(c, &c->program->plans, sizeof *made) : NULL;
    if (!made)
        return NULL;
    *remembered = node;
    *made = NULL;
    c->status =
        tarn_plan_create(made, pool_of(node_of(c, node)), input_of(c, node), &c->options, c->error);
    return *made;
}

tarn_step *tarn_begin_pool(tarn_compiler *c, tarn_step_kind kind, tarn_value node)
{
    const tarn_plan *plan = plan_of(c, node);
    tarn_step *step = plan ? tarn_add_step(c, kind, node) : NULL;
    if (step)
        step->plan = plan;
    return step;
}
