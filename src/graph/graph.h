/* A graph: nodes, their operands, inputs, outputs, names. */
#ifndef TARN_GRAPH_INTERNAL_H
#define TARN_GRAPH_INTERNAL_H

#include "tarn_graph.h"

#include <stdbool.h>

/* A growing array; the owner knows the type and the allocator. */
typedef struct tarn_list {
    void *items;
    int64_t count, room;
} tarn_list;

/* Room for `more` items; false, and nothing changed, if there is no memory. */
bool tarn_list_reserve(tarn_list *list, int64_t more, size_t item_bytes,
                       const tarn_allocator *allocator);
void tarn_list_free(tarn_list *list, const tarn_allocator *allocator);
tarn_status tarn_no_memory(tarn_error *error);
tarn_status tarn_settle_allocator(const tarn_allocator *given, tarn_allocator *allocator,
                                  tarn_error *error);

typedef enum tarn_node_kind {
    NODE_INPUT,
    NODE_CONSTANT, /* payload: the bytes */
    NODE_POOL,     /* payload: tarn_pool */
    NODE_PAD,      /* payload: tarn_padding */
    NODE_UNPAD,    /* payload: tarn_padding */
    NODE_ADD,
    NODE_SCALE,  /* payload: double */
    NODE_CONCAT, /* payload: int, the axis */
    NODE_RESHAPE,
    NODE_CUSTOM /* payload: tarn_custom_node */
} tarn_node_kind;

typedef struct tarn_padding {
    int spatial;
    int64_t lo[TARN_MAX_SPATIAL], hi[TARN_MAX_SPATIAL];
} tarn_padding;

typedef struct tarn_custom_node {
    tarn_custom custom; /* its name is NULL: the copy is what counts */
    char name[TARN_NAME_BYTES];
} tarn_custom_node;

typedef struct tarn_node {
    tarn_node_kind kind;
    int first, operands; /* graph->operand[first] ... */
    int input;           /* NODE_INPUT: its number */
    void *payload;       /* owned; NULL where there is none */
    tarn_view view;      /* dense, without data */
    int64_t bytes;
    char name[TARN_NAME_BYTES];
} tarn_node;

/* Where names part: at a bit, to two forks or values; the values as their complements. */
typedef struct tarn_fork {
    int32_t bit, side[2];
} tarn_fork;

struct tarn_graph {
    tarn_allocator allocator;
    tarn_list nodes;    /* tarn_node */
    tarn_list operands; /* tarn_value */
    tarn_list inputs;   /* tarn_value */
    tarn_list outputs;  /* tarn_value */
    tarn_list forks;    /* tarn_fork: the tree of names, graph_names.c */
    int32_t name_root;  /* its top: a fork, or the complement of a value; unset without values */
};

static inline tarn_node *graph_node(const tarn_graph *graph, tarn_value value)
{
    return (tarn_node *)graph->nodes.items + value;
}

static inline const tarn_value *node_operands(const tarn_graph *graph, const tarn_node *node)
{
    static const tarn_value none = 0; /* there is no list while there are inputs only */
    const tarn_value *all = graph->operands.items;
    return all ? all + node->first : &none;
}

static inline tarn_value graph_output(const tarn_graph *graph, int64_t k)
{
    return ((const tarn_value *)graph->outputs.items)[k];
}

static inline tarn_value graph_input(const tarn_graph *graph, int64_t k)
{
    return ((const tarn_value *)graph->inputs.items)[k];
}

/* Refuses a NULL graph and a number that is not one of its values. */
tarn_status tarn_check_value(const tarn_graph *graph, const char *what, tarn_value value,
                             tarn_error *error);

/* ---- graph_names.c ------------------------------------------------------------------------- */

bool tarn_is_name(const char *name, size_t length);
/* Room for the name of one more node; false if there is no memory. */
bool tarn_reserve_names(tarn_graph *graph);
/* Gives the node that is about to become `value` a name that is not taken. */
void tarn_name_node(tarn_graph *graph, tarn_node *node, tarn_value value);

#endif
