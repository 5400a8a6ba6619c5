#include "plan_cache.h"

#include "interrupts.h"

#include <stdlib.h>
#include <string.h>

/* ---- Keys ---------------------------------------------------------------------------------- */

#define POOL_WORDS (14 + 10 * TARN_MAX_SPATIAL)
#define VIEW_WORDS (3 + 2 * TARN_MAX_RANK)

typedef struct {
    int words;
    int64_t word[POOL_WORDS + TARN_OPERANDS * VIEW_WORDS];
} plan_key;

static void add_word(plan_key *key, int64_t word)
{
    key->word[key->words++] = word;
}

static void add_words(plan_key *key, const int64_t *words, int count)
{
    memcpy(key->word + key->words, words, (size_t)count * sizeof *words);
    key->words += count;
}

static void add_pool(plan_key *key, const tarn_pool *pool)
{
    int64_t beta, power, skipped;
    memcpy(&beta, &pool->beta, sizeof beta);
    memcpy(&power, &pool->power, sizeof power);
    memcpy(&skipped, &pool->skip_real, sizeof skipped);
    add_word(key, (int64_t)pool->op | (int64_t)pool->window << 8 | (int64_t)pool->ties << 16 |
                      (int64_t) !!pool->ceil_mode << 24 |
                      (int64_t) !!pool->count_include_pad << 25 | (int64_t) !!pool->flat << 26 |
                      (int64_t)pool->skip << 32);
    add_word(key, pool->spatial);
    add_word(key, pool->divisor);
    add_word(key, beta);
    add_word(key, power);
    add_word(key, skipped);
    add_word(key, pool->skip_integer);
    add_word(key, pool->min_count);
    add_words(key, pool->reserved, 4);
    const int64_t *numbers[] = {pool->kernel, pool->stride, pool->dilation, pool->pad_lo,
                                pool->pad_hi, pool->out,    pool->whole,    pool->origin,
                                pool->first,  pool->count};
    int spatial = pool->spatial > 0 && pool->spatial <= TARN_MAX_SPATIAL ? pool->spatial : 0;
    for (int k = 0; k < 10; k++)
        add_words(key, numbers[k], spatial);
}

static void add_view(plan_key *key, int operand, const tarn_view *view)
{
    add_word(key, operand | view->dtype << 8 | (int64_t)view->rank << 16);
    add_words(key, view->shape, view->rank);
    add_words(key, view->strides, view->rank);
}

static uint64_t hash_key(const plan_key *key)
{
    uint64_t hash = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio: odd, bits well mixed */
    for (int k = 0; k < key->words; k++) {
        hash = (hash ^ (uint64_t)key->word[k]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* ---- Entries ------------------------------------------------------------------------------- */

static void destroy_entry(plan_entry *entry)
{
    for (int k = 0; k < TARN_OPERANDS; k++)
        Py_XDECREF(entry->shape[k]);
    tarn_plan_destroy(entry->plan);
    free(entry);
}

void plan_take(module_state *state, plan_entry *entry)
{
    STATE_LOCK(state);
    entry->users++;
    STATE_UNLOCK(state);
}

void plan_put(module_state *state, plan_entry *entry)
{
    STATE_LOCK(state);
    bool last = entry && --entry->users == 0;
    STATE_UNLOCK(state);
    if (last)
        destroy_entry(entry);
}

/* The remembered entry with a user more, or NULL. */
static plan_entry *find_entry(module_state *state, const plan_key *key, uint64_t hash)
{
    STATE_LOCK(state);
    plan_entry *entry = state->plans[hash % PLAN_SLOTS];
    size_t bytes = (size_t)key->words * sizeof *key->word;
    if (entry && entry->hash == hash && entry->words == key->words &&
        !memcmp(entry->key, key->word, bytes))
        entry->users++;
    else
        entry = NULL;
    STATE_UNLOCK(state);
    return entry;
}

/* Remembers an entry in the place of whatever its slot held. */
static void keep_entry(module_state *state, plan_entry *entry)
{
    STATE_LOCK(state);
    plan_entry **slot = &state->plans[entry->hash % PLAN_SLOTS];
    plan_entry *former = *slot;
    entry->users++;
    *slot = entry;
    STATE_UNLOCK(state);
    plan_put(state, former);
}

static plan_entry *make_entry(const plan_key *key, uint64_t hash)
{
    size_t bytes = (size_t)key->words * sizeof *key->word;
    plan_entry *entry = calloc(1, sizeof *entry + bytes);
    if (!entry) {
        PyErr_NoMemory();
        return NULL;
    }
    entry->hash = hash;
    entry->words = key->words;
    entry->users = 1;
    memcpy(entry->key, key->word, bytes);
    return entry;
}

static plan_entry *make_plan(module_state *state, const plan_key *key, uint64_t hash,
                             const tarn_pool *pool, const tarn_view *x,
                             const tarn_view *const layout[TARN_OPERANDS], int threads,
                             tarn_parallel_for loop, int parts)
{
    tarn_options options = tarn_options_default();
    if (threads > 1) /* where there are no threads, one does the work */
        tarn_executor_threads(threads, &options.executor, NULL);
    if (loop && options.executor.parts > 1)
        options.executor.parallel_for = loop;
    interrupts_prepare(parts, &options.executor);
    for (int k = 0; k < TARN_OPERANDS; k++)
        options.layout[k] = layout[k];
    plan_entry *entry = make_entry(key, hash);
    if (!entry)
        return NULL;
    entry->threads = threads;
    entry->parts = parts;
    tarn_error error;
    if (tarn_plan_create(&entry->plan, pool, x, &options, &error)) {
        destroy_entry(entry);
        raise_error(state, &error);
        return NULL;
    }
    keep_entry(state, entry);
    return entry;
}

plan_entry *plan_get(module_state *state, const tarn_pool *pool, const tarn_view *x,
                     const tarn_view *const layout[TARN_OPERANDS], int threads,
                     tarn_parallel_for loop, int parts)
{
    plan_key key;
    key.words = 0;
    add_word(&key, threads | (int64_t)parts << 32);
    add_word(&key, (intptr_t)loop);
    add_pool(&key, pool);
    add_view(&key, TARN_X, x);
    for (int k = 0; k < TARN_OPERANDS; k++)
        if (layout[k])
            add_view(&key, k, layout[k]);
    uint64_t hash = hash_key(&key);
    plan_entry *entry = find_entry(state, &key, hash);
    return entry ? entry : make_plan(state, &key, hash, pool, x, layout, threads, loop, parts);
}

static bool is_row_major(const tarn_view *view)
{
    int64_t stride = 1;
    for (int a = view->rank - 1; a >= 0; a--) {
        if (view->shape[a] > 1 && view->strides[a] != stride)
            return false;
        stride *= view->shape[a];
    }
    return true;
}

/* Remembers `made` in the entry, unless another thread was faster. */
static PyObject *keep_object(module_state *state, PyObject **place, PyObject *made)
{
    STATE_LOCK(state);
    PyObject *late = *place ? made : NULL;
    if (!late)
        *place = made;
    STATE_UNLOCK(state);
    Py_XDECREF(late);
    return *place;
}

PyObject *plan_shape(module_state *state, plan_entry *entry, tarn_operand operand)
{
    if (entry->shape[operand])
        return entry->shape[operand];
    tarn_view view;
    tarn_plan_layout(entry->plan, operand, &view, NULL);
    entry->dense[operand] = is_row_major(&view);
    return keep_object(state, &entry->shape[operand], make_tuple(view.rank, view.shape));
}

void plan_cache_clear(module_state *state)
{
    for (int k = 0; k < PLAN_SLOTS; k++) {
        STATE_LOCK(state);
        plan_entry *entry = state->plans[k];
        state->plans[k] = NULL;
        STATE_UNLOCK(state);
        plan_put(state, entry);
    }
}
