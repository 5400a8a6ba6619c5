/* What the parts of the compiler share: the graph and request in hand, what is known of each value,
 * and the program in the making. graph_compile.c has the overview. */
#ifndef TARN_GRAPH_COMPILER_H
#define TARN_GRAPH_COMPILER_H

#include "graph_program.h"

#include "../plan.h"
#include "../shape.h"

typedef struct tarn_compiler {
    const tarn_graph *graph;
    tarn_program *program;
    tarn_request request;
    tarn_options options;
    tarn_error *error;
    tarn_status status; /* the first failure; everything is quiet after it */
    int values;
    unsigned char *need;   /* the value is computed */
    unsigned char *varies; /* it depends on an input that we differentiate by */
    unsigned char *diff;   /* and an output that is wanted depends on it */
    unsigned char *beside; /* a contribution to its gradient waits beside the gradient's memory */
    tarn_value *root;      /* through reshapes, the value whose memory this one is */
    tarn_place *value, *tangent, *gradient, *saved;
    int *head, *tail; /* list of contributions to the gradient of a value */
    tarn_list contributions;
    tarn_list recent; /* tarn_value: nodes whose plans are the last in program->plans */
} tarn_compiler;

static const tarn_place nowhere = {NO_BUFFER, 0, 0};

static inline const tarn_node *node_of(const tarn_compiler *c, tarn_value v)
{
    return graph_node(c->graph, v);
}

static inline const tarn_value *operands_of(const tarn_compiler *c, tarn_value v)
{
    return node_operands(c->graph, node_of(c, v));
}

static inline const tarn_pool *pool_of(const tarn_node *node)
{
    return node->payload;
}

/* Whether the derivatives of a pool do not depend on its operand. */
static inline bool is_linear_pool(const tarn_node *node)
{
    return pool_of(node)->op == TARN_AVG && pool_of(node)->skip == TARN_SKIP_NOTHING;
}

/* ---- Requests ------------------------------------------------------------------------------ */

static inline bool wants_output(const tarn_compiler *c, int64_t k)
{
    return !c->request.outputs || c->request.outputs[k];
}

static inline bool wants_value(const tarn_compiler *c, int64_t k)
{
    return wants_output(c, k) && (c->request.mode == TARN_GRAPH_FORWARD || c->request.values);
}

static inline bool is_float(const tarn_compiler *c, tarn_value v)
{
    return is_floating(node_of(c, v)->view.dtype);
}

static inline bool differentiates_by(const tarn_compiler *c, int input)
{
    return is_float(c, graph_input(c->graph, input)) &&
           (!c->request.inputs || c->request.inputs[input]);
}

/* Whether a VJP can be made from saved winners [M7]. */
static inline bool keeps_winners(const tarn_node *node)
{
    tarn_op op = pool_of(node)->op;
    return (op == TARN_MAX || op == TARN_MIN) && pool_of(node)->ties == TARN_TIES_FIRST;
}

/* ---- graph_mark.c -------------------------------------------------------------------------- */

/* Fills varies, diff, need and root. */
void tarn_mark_values(tarn_compiler *c);
/* UNSUPPORTED if a custom node lacks the payload of the derivative asked for. */
tarn_status tarn_check_payloads(const tarn_compiler *c);

/* ---- graph_steps.c ------------------------------------------------------------------------- */

/* One more item of a list; NULL, and c->status set, if there is no memory. */
void *tarn_append(tarn_compiler *c, tarn_list *list, size_t item_bytes);

tarn_place tarn_new_buffer(tarn_compiler *c, int base, int64_t bytes, tarn_value value,
                           tarn_role role);
/* A tensor of the caller, or a constant, shaped like `value`. */
tarn_place tarn_external(tarn_compiler *c, int base, tarn_value value, tarn_role role);
/* Whether a place lies in that tensor. */
bool tarn_lies_in(const tarn_compiler *c, tarn_place place, int base);

tarn_step *tarn_add_step(tarn_compiler *c, tarn_step_kind kind, tarn_value node);
/* Adds a place to the step made last. Written places come first. */
void tarn_add_ref(tarn_compiler *c, tarn_place place, bool written);

/* A step that pools, with its plan. */
tarn_step *tarn_begin_pool(tarn_compiler *c, tarn_step_kind kind, tarn_value node);
/* A sum and the place it writes; the operands follow as refs. */
bool tarn_begin_sum(tarn_compiler *c, tarn_value node, tarn_place to);
/* A step that calls a payload; its refs have views. */
tarn_step *tarn_begin_custom(tarn_compiler *c, tarn_step_kind kind, tarn_value node);
void tarn_add_viewed(tarn_compiler *c, tarn_value like, tarn_place place, bool written);

/* Whole steps. Nothing is added for places without bytes. */
void tarn_add_scale(tarn_compiler *c, tarn_value node, tarn_place to, tarn_place from);
void tarn_add_zero(tarn_compiler *c, tarn_value node, tarn_place to);
void tarn_add_copy(tarn_compiler *c, tarn_value node, tarn_step_kind kind, const tarn_inset *box,
                   tarn_place to, tarn_place from);
void tarn_add_plain_copy(tarn_compiler *c, tarn_value node, tarn_place to, tarn_place from);

/* ---- graph_boxes.c ------------------------------------------------------------------------- */

/* The place of the small tensor in the large one of a pad or unpad node. */
tarn_inset tarn_padding_box(const tarn_compiler *c, tarn_value v);
/* The place of operand k of a concatenation; `offset` is its first byte in each of the outer
 * rows. */
tarn_inset tarn_operand_slice(const tarn_compiler *c, tarn_value v, int k, int64_t offset);

/* ---- graph_values.c, graph_gradients.c ----------------------------------------------------- */

/* Steps that make values, and tangents beside them, in the order of the nodes. */
void tarn_emit_values(tarn_compiler *c);
/* Steps that make gradients, in the reverse order. */
void tarn_emit_gradients(tarn_compiler *c);

#endif
