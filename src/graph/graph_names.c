/* Names of values: which there may be, and a hash table from name to value. */
#include "graph.h"

#include "../error.h"

#include <stdio.h>
#include <string.h>

/* ---- Words --------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Words of the text form that could be taken for a value. */
static bool is_reserved(const char *name, size_t length)
{
    static const char *const words[] = {"return", "global", "flat", "ceil", "nopad", "scalar"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strlen(words[k]) == length && memcmp(words[k], name, length) == 0)
            return true;
    for (int k = 0; k < TARN_DTYPES; k++) {
        const char *dtype = tarn_dtype_name((tarn_dtype)k);
        if (strlen(dtype) == length && memcmp(dtype, name, length) == 0)
            return true;
    }
    return false;
}

bool tarn_is_name(const char *name, size_t length)
{
    if (length == 0 || length >= TARN_NAME_BYTES || !is_letter(name[0]) ||
        is_reserved(name, length))
        return false;
    for (size_t k = 1; k < length; k++)
        if (!is_letter(name[k]) && !(name[k] >= '0' && name[k] <= '9'))
            return false;
    return true;
}

static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

/* The slot that holds `name`, or the free one where it belongs. */
static int64_t name_slot(const tarn_graph *graph, const char *name)
{
    int64_t mask = graph->name_slots - 1, slot = (int64_t)(hash_name(name) & (uint64_t)mask);
    while (graph->names[slot] >= 0 &&
           strcmp(graph_node(graph, graph->names[slot])->name, name) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

bool tarn_reserve_names(tarn_graph *graph)
{
    int64_t slots = graph->name_slots ? graph->name_slots : 16;
    while (slots < 2 * (graph->nodes.count + 1))
        slots *= 2;
    if (slots == graph->name_slots)
        return true;
    tarn_value *names =
        graph->allocator.allocate(graph->allocator.context, (size_t)slots * sizeof *names);
    if (!names)
        return false;
    for (int64_t k = 0; k < slots; k++)
        names[k] = -1;
    if (graph->names)
        graph->allocator.release(graph->allocator.context, graph->names);
    graph->names = names;
    graph->name_slots = slots;
    for (tarn_value v = 0; v < graph->nodes.count; v++)
        names[name_slot(graph, graph_node(graph, v)->name)] = v;
    return true;
}

/* Takes a name out and moves up those that a search would no longer reach. */
static void remove_name(tarn_graph *graph, const char *name)
{
    int64_t mask = graph->name_slots - 1, slot = name_slot(graph, name);
    graph->names[slot] = -1;
    for (slot = (slot + 1) & mask; graph->names[slot] >= 0; slot = (slot + 1) & mask) {
        tarn_value moved = graph->names[slot];
        graph->names[slot] = -1;
        graph->names[name_slot(graph, graph_node(graph, moved)->name)] = moved;
    }
}

/* v7, or v7_1, v7_2, ... if that is taken. */
void tarn_name_node(tarn_graph *graph, tarn_node *node, tarn_value value)
{
    snprintf(node->name, sizeof node->name, "v%d", (int)value);
    for (int k = 1; graph->names[name_slot(graph, node->name)] >= 0; k++)
        snprintf(node->name, sizeof node->name, "v%d_%d", (int)value, k);
    graph->names[name_slot(graph, node->name)] = value;
}

tarn_status tarn_graph_name(tarn_graph *graph, tarn_value value, const char *name,
                            tarn_error *error)
{
    tarn_status status = tarn_check_value(graph, "value", value, error);
    if (status)
        return status;
    if (!name)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "name is NULL");
    if (!tarn_is_name(name, strlen(name)))
        return tarn_fail(
            error, TARN_BAD_ARGUMENT, NO_AXIS,
            "'%.70s' is not a name: a letter, then letters and digits, at most %d, and no word "
            "of the text form",
            name, TARN_NAME_BYTES - 1);
    tarn_value holder = graph->names[name_slot(graph, name)];
    if (holder == value)
        return tarn_succeed(error);
    if (holder >= 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "the name %s is taken by value %d",
                         name, (int)holder);
    char kept[TARN_NAME_BYTES]; /* `name` may be a part of what changes */
    snprintf(kept, sizeof kept, "%s", name);
    remove_name(graph, graph_node(graph, value)->name);
    memcpy(graph_node(graph, value)->name, kept, sizeof kept);
    graph->names[name_slot(graph, kept)] = value;
    return tarn_succeed(error);
}

tarn_value tarn_graph_find(const tarn_graph *graph, const char *name)
{
    return graph && name && graph->names ? graph->names[name_slot(graph, name)] : -1;
}
