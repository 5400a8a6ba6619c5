/* Names of values: which there may be, and a tree from name to value.
 *
 * The tree is a crit-bit tree: a fork for every bit at which names that agree before it differ.
 * A search looks at no more bits than a name has, whatever the names: a hash table can be made
 * slow by a file of names that collide. */
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

/* ---- The tree -------------------------------------------------------------------------------- */

static tarn_fork *fork_at(const tarn_graph *graph, int32_t k)
{
    return (tarn_fork *)graph->forks.items + k;
}

/* Beyond the letters of a name all bits are 0. */
static int bit_of(const char *name, size_t length, int32_t bit)
{
    size_t byte = (size_t)bit / 8;
    return byte < length ? (unsigned char)name[byte] >> (7 - bit % 8) & 1 : 0;
}

/* The value whose name agrees with `name` at every fork: the one of that name, if there is one. */
static tarn_value nearest_value(const tarn_graph *graph, const char *name, size_t length)
{
    int32_t at = graph->name_root;
    while (at >= 0) {
        const tarn_fork *fork = fork_at(graph, at);
        at = fork->side[bit_of(name, length, fork->bit)];
    }
    return ~at;
}

static tarn_value find_name(const tarn_graph *graph, const char *name)
{
    if (graph->nodes.count == 0)
        return -1;
    tarn_value value = nearest_value(graph, name, strlen(name));
    return strcmp(graph_node(graph, value)->name, name) == 0 ? value : -1;
}

/* The first bit at which two names differ. */
static int32_t differing_bit(const char *a, const char *b)
{
    int32_t byte = 0, bit = 0;
    while (a[byte] == b[byte])
        byte++;
    unsigned difference = (unsigned char)a[byte] ^ (unsigned char)b[byte];
    while (!(difference >> (7 - bit) & 1))
        bit++;
    return 8 * byte + bit;
}

/* Puts a name that is not taken into a tree that is not empty, with the fork k. */
static void insert_name(tarn_graph *graph, const char *name, tarn_value value, int32_t k)
{
    size_t length = strlen(name);
    int32_t *at = &graph->name_root;
    int32_t bit = differing_bit(name, graph_node(graph, nearest_value(graph, name, length))->name);
    while (*at >= 0 && fork_at(graph, *at)->bit < bit)
        at = &fork_at(graph, *at)->side[bit_of(name, length, fork_at(graph, *at)->bit)];
    tarn_fork *fork = fork_at(graph, k);
    int side = bit_of(name, length, bit);
    fork->bit = bit;
    fork->side[side] = ~value;
    fork->side[!side] = *at;
    *at = k;
}

/* Takes a name out of a tree of at least two; returns the fork that is free now. */
static int32_t remove_name(tarn_graph *graph, const char *name)
{
    size_t length = strlen(name);
    int32_t *at = &graph->name_root;
    for (;;) {
        int32_t k = *at;
        tarn_fork *fork = fork_at(graph, k);
        int side = bit_of(name, length, fork->bit);
        if (fork->side[side] < 0) {
            *at = fork->side[!side];
            return k;
        }
        at = &fork->side[side];
    }
}

bool tarn_reserve_names(tarn_graph *graph)
{
    return tarn_list_reserve(&graph->forks, 1, sizeof(tarn_fork), &graph->allocator);
}

/* v7, or v7_1, v7_2, ... if that is taken. */
void tarn_name_node(tarn_graph *graph, tarn_node *node, tarn_value value)
{
    snprintf(node->name, sizeof node->name, "v%d", (int)value);
    for (int k = 1; find_name(graph, node->name) >= 0; k++)
        snprintf(node->name, sizeof node->name, "v%d_%d", (int)value, k);
    if (value == 0)
        graph->name_root = ~value;
    else
        insert_name(graph, node->name, value, (int32_t)graph->forks.count++);
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
    tarn_value holder = find_name(graph, name);
    if (holder == value)
        return tarn_succeed(error);
    if (holder >= 0)
        return tarn_fail(error, TARN_BAD_ARGUMENT, NO_AXIS, "the name %s is taken by value %d",
                         name, (int)holder);
    char kept[TARN_NAME_BYTES]; /* `name` may be a part of what changes */
    snprintf(kept, sizeof kept, "%s", name);
    bool alone = graph->nodes.count == 1; /* then the tree is this value, whatever its name */
    int32_t fork = alone ? 0 : remove_name(graph, graph_node(graph, value)->name);
    if (!alone)
        insert_name(graph, kept, value, fork);
    memcpy(graph_node(graph, value)->name, kept, sizeof kept);
    return tarn_succeed(error);
}

tarn_value tarn_graph_find(const tarn_graph *graph, const char *name)
{
    return graph && name ? find_name(graph, name) : -1;
}
