/* The engine "long": max, min and avg of windows that read long runs of elements, each window by
 * itself; with winners, indices and tangents on request.
 *
 *     window -> its runs -> one key, or one sum -> result
 *
 * A run is what a window reads along the last axis. Extremes take the greatest key of all runs;
 * then, if it is asked who won, they look for the first element that has it, in the piece of a run
 * that raised it last. As no order matters to them, runs go on over axes that are read from end to
 * end.
 *
 * Sums are cut along the last axis into pieces that are halves of each other [S1], each of which is
 * folded down, axis by axis [S2], to one row of scratch, and then summed. What is one row already
 * is summed where it lies.
 */
#include "engines.h"

enum {
    SUM_ARENA_BYTES = 16 << 10, /* rows that wait while windows are folded down */
    MOST_PIECE = 1 << 10,       /* columns of them */
    KEY_PIECE_BYTES = 8 << 10,  /* of a run, so that it is still near when it is read again */
    MOST_LONG_STEPS = 128
};

typedef struct {
    const tarn_problem *p;
    const tarn_row_ops *ops;
    char *const *base; /* of the plane */
    int in, out;       /* X and Y, or DX and DY for tangents of averages */
    int64_t o[TARN_MAX_SPATIAL];
    tarn_span taps[TARN_MAX_SPATIAL];

    /* Extremes: axes from run_axis on are one run, `inner` elements for each cell of it. */
    int run_axis;
    int64_t inner;
    bool codes;
    tarn_key key;
    uint64_t flip;

    /* Sums, of `bytes` bytes each. */
    int64_t bytes, piece;
    int64_t step_count;
    tarn_lane_step steps[MOST_LONG_STEPS];
    char *arena;
} long_state;

static tarn_engine_pass run_pass;

void tarn_engine_long(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                      const tarn_row_ops *ops)
{
    run_passes(run_pass, p, t, begin, end, ops);
}

/* ---- Extremes ------------------------------------------------------------------------------- */

/* Whether the window of an axis reads it from end to end, by taps that are its cells. */
static bool is_whole(const tarn_axis *axis)
{
    tarn_span taps = window_taps(axis, 0);
    return axis->out == 1 && taps.n == axis->size && taps.hi - taps.lo == taps.n &&
           (taps.step == 1 || taps.n == 1);
}

static void set_runs(long_state *s)
{
    const tarn_problem *p = s->p;
    int a = p->spatial - 1;
    s->inner = 1;
    for (; a > 0 && is_whole(&p->axis[a]); a--) {
        const tarn_axis *outer = &p->axis[a - 1];
        int64_t elements = s->inner * p->axis[a].size;
        if (p->stride[TARN_X][a - 1] != elements || (!outer->adaptive && outer->dilation > 1))
            break;
        s->inner = elements;
    }
    s->run_axis = a;
}

/* Where a run begins, given the taps on the axes before it. */
static int64_t offset_of_run(const long_state *s, const int64_t *tap)
{
    const int64_t *stride = s->p->stride[TARN_X];
    const tarn_span *run = &s->taps[s->run_axis];
    int64_t offset = span_at(run, run->lo) * s->inner;
    for (int a = 0; a < s->run_axis; a++)
        offset += span_at(&s->taps[a], tap[a]) * stride[a];
    return offset * s->p->element_bytes[TARN_X];
}

static bool next_run(const long_state *s, int64_t *tap)
{
    for (int a = s->run_axis - 1; a >= 0; a--) {
        if (++tap[a] < s->taps[a].hi)
            return true;
        tap[a] = s->taps[a].lo;
    }
    return false;
}

/* A piece of a run: from element `at` on. */
typedef struct {
    int64_t tap[TARN_MAX_SPATIAL], at;
} long_place;

/* The greatest key of the window, and the piece that was the first to reach it; true if it holds
 * what keys cannot order. */
static bool fold_window(const long_state *s, uint64_t *best, long_place *reached)
{
    const tarn_span *run = &s->taps[s->run_axis];
    const int64_t element = s->p->element_bytes[TARN_X], n = (run->hi - run->lo) * s->inner;
    long_place place = {.at = 0};
    bool odd = false, begins = true;
    for (int a = 0; a < s->run_axis; a++)
        place.tap[a] = s->taps[a].lo;
    do {
        const char *from = s->base[TARN_X] + offset_of_run(s, place.tap);
        for (int64_t some; (some = min_i64(n - place.at, KEY_PIECE_BYTES / element)) > 0;
             place.at += some) {
            uint64_t before = *best;
            odd |= s->ops->best_run[s->key](best, begins, from + place.at * element, s->flip, some);
            if (begins || *best != before)
                *reached = place;
            begins = false;
        }
        place.at = 0;
    } while (!odd && next_run(s, place.tap));
    return odd;
}

/* The first cell that has the key, in a piece that has it. */
static void find_cell(const long_state *s, const uint64_t *best, const long_place *reached,
                      int64_t *cell)
{
    const tarn_problem *p = s->p;
    const tarn_span *run = &s->taps[s->run_axis];
    const int64_t element = p->element_bytes[TARN_X];
    const char *from = s->base[TARN_X] + offset_of_run(s, reached->tap) + reached->at * element;
    int64_t some = min_i64((run->hi - run->lo) * s->inner - reached->at, KEY_PIECE_BYTES / element);
    int64_t at = span_at(run, run->lo) * s->inner + reached->at +
                 s->ops->find_run[s->key](best, from, s->flip, some);
    for (int a = 0; a < s->run_axis; a++)
        cell[a] = span_at(&s->taps[a], reached->tap[a]);
    for (int a = p->spatial - 1; a > s->run_axis; a--) {
        cell[a] = at % p->axis[a].size;
        at /= p->axis[a].size;
    }
    cell[s->run_axis] = at;
}

static char *output_of(const long_state *s, int operand)
{
    return s->base[operand] + offset_of(s->p, operand, s->o) * s->p->element_bytes[operand];
}

static void copy_cell(const long_state *s, int to, int from, const int64_t *cell)
{
    const int64_t bytes = s->p->element_bytes[from];
    memcpy(output_of(s, to), s->base[from] + offset_of(s->p, from, cell) * bytes, (size_t)bytes);
}

static void write_winner(const long_state *s, const int64_t *cell)
{
    const tarn_problem *p = s->p;
    if (s->base[TARN_Y])
        copy_cell(s, TARN_Y, TARN_X, cell);
    if (s->base[OPERAND_SAVED])
        store_winner(p, s->base[OPERAND_SAVED], offset_of(p, OPERAND_SAVED, s->o),
                     tap_index(p, s->o, cell));
    if (s->base[TARN_INDICES]) {
        int64_t index = cell_index(p, cell);
        memcpy(output_of(s, TARN_INDICES), &index, sizeof index);
    }
    if (s->base[TARN_DY])
        copy_cell(s, TARN_DY, TARN_DX, cell);
}

/* NaN, and zeros of either sign, go by the order of the contract: once more. */
static void run_extreme(long_state *s)
{
    const tarn_dtype dtype = s->p->dtype;
    uint64_t best = 0, sign = UINT64_C(1) << (8 * s->p->element_bytes[TARN_X] - 1);
    int64_t cell[TARN_MAX_SPATIAL];
    long_place reached;
    bool odd = fold_window(s, &best, &reached);
    if (odd || (dtype <= TARN_F32 && (best & ~sign) == 0)) { /* or f64 */
        tarn_key key = s->key;
        uint64_t flip = s->flip;
        odd = true;
        best = 0;
        s->key = key_of(dtype, true);
        s->flip = flip_of(s->p, s->key);
        fold_window(s, &best, &reached);
        find_cell(s, &best, &reached, cell);
        s->key = key;
        s->flip = flip;
    } else if (s->codes)
        find_cell(s, &best, &reached, cell);
    if (odd || s->codes)
        write_winner(s, cell);
    else
        narrowest(s->ops)->unkey[s->key](output_of(s, TARN_Y), &best, s->flip, 1);
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* n columns, at least a vector of them, summed over the first axis. */
static void sum_first_axis(const long_state *s, const tarn_row_ops *ops, const char *from,
                           int64_t n, char *to)
{
    const tarn_problem *p = s->p;
    ops->sum_lanes[p->dtype](&(tarn_lane_row){.from = from,
                                              .lanes = n,
                                              .outputs = 1,
                                              .step_count = s->step_count,
                                              .first_step = s->taps[0].step * p->stride[s->in][0] *
                                                            p->element_bytes[s->in],
                                              .steps = s->steps,
                                              .to = to});
}

/* [S2] n columns, folded over axes [0,a] to the row `to` of scratch; those behind it are for sums
 * that wait. */
static void fold_down(const long_state *s, int a, const char *from, int64_t n, char *to)
{
    const tarn_problem *p = s->p;
    const tarn_row_ops *ops = ops_for(s->ops, n * s->bytes);
    const tarn_span *taps = &s->taps[a];
    const int64_t step = p->stride[s->in][a] * p->element_bytes[s->in];
    const int64_t row = s->piece * s->bytes, vector = ops->vector_bytes / s->bytes;
    const tarn_core core = s->bytes == 4 ? CORE_F32 : CORE_F64;
    int waiting = 0;
    if (a == 0)
        from += span_at(taps, taps->lo) * step;
    if (a == 0 && n >= vector) {
        sum_first_axis(s, ops, from, n, to);
        return;
    }
    for (int64_t j = taps->lo; j < taps->hi; j++) {
        char *top = to + waiting * row;
        if (a > 0)
            fold_down(s, a - 1, from + span_at(taps, j) * step, n, top);
        else
            make_terms(s->ops, s->bytes == 8, p->dtype, top,
                       from + (j - taps->lo) * taps->step * step, n);
        for (int pops = take_in(j, 0, taps->lo, j + 1 == taps->hi, &waiting); pops > 0; pops--) {
            const void *both[] = {top - row, top};
            top -= row; /* whole vectors, so that none is added twice */
            ops->sum[core](top, both, 2, (n + vector - 1) / vector * vector);
        }
    }
}

/* [S1] The columns [column,column+k) of the window's list. */
static void sum_columns(const long_state *s, int64_t column, int64_t k, char *to)
{
    const tarn_problem *p = s->p;
    const int last = p->spatial - 1;
    const tarn_span *taps = &s->taps[last];
    const int64_t lo = max_i64(column, taps->lo), hi = min_i64(column + k, taps->hi);
    const char *from = s->base[s->in] + span_at(taps, lo) * p->element_bytes[s->in];
    char *sums = s->arena;
    if (last == 0) {
        s->ops->sum_run[p->dtype](to, from, k);
        return;
    }
    if (hi - lo < k)
        memset(sums, 0, (size_t)(k * s->bytes));
    char *row = hi - lo < k ? sums + s->piece * s->bytes : sums;
    fold_down(s, last - 1, from, hi - lo, row);
    if (row != sums)
        memcpy(sums + (lo - column) * s->bytes, row, (size_t)((hi - lo) * s->bytes));
    s->ops->sum_run[s->bytes == 4 ? TARN_F32 : TARN_F64](to, sums, k);
}

/* In halves, down to a piece; of a single row, to what exists. Some of it does. */
static void sum_list(const long_state *s, int64_t column, int64_t k, char *to)
{
    const tarn_span *taps = &s->taps[s->p->spatial - 1];
    bool exists = column >= taps->lo && column + k <= taps->hi;
    _Alignas(double) char other[sizeof(double)];
    if (s->p->spatial == 1 ? exists : k <= s->piece) {
        sum_columns(s, column, k, to);
        return;
    }
    int64_t half = split_point(k);
    bool left = taps->lo < column + half && taps->hi > column,
         right = taps->hi > column + half && taps->lo < column + k;
    if (left)
        sum_list(s, column, half, to);
    if (right)
        sum_list(s, column + half, k - half, left ? other : to);
    if (left && right)
        narrowest(s->ops)->add_sums[s->bytes == 8](to, other, 1);
}

static void run_mean(long_state *s)
{
    const tarn_problem *p = s->p;
    _Alignas(double) char sum[sizeof(double)], divisor[sizeof(double)];
    if (p->spatial > 1)
        s->step_count = list_steps(s->steps, s->taps[0].lo, s->taps[0].hi,
                                   s->taps[0].step * p->stride[s->in][0] * p->element_bytes[s->in]);
    sum_list(s, 0, s->taps[p->spatial - 1].n, sum);
    put_one_divisor(s->bytes == 8, divisor, window_divisor(p, s->o));
    make_means(narrowest(s->ops), s->bytes == 8, p->dtype, output_of(s, s->out), sum, divisor, 0,
               1);
}

/* Rows that wait: on each axis as many as a count of its taps has digits, and one; and one more
 * where columns are missing. */
static void set_piece(long_state *s)
{
    int64_t rows = 2;
    for (int a = 0; a + 1 < s->p->spatial; a++)
        for (int64_t k = 2 * s->p->axis[a].kernel; k > 0; k /= 2)
            rows++;
    for (s->piece = MOST_PIECE; rows * s->piece * s->bytes > SUM_ARENA_BYTES;)
        s->piece /= 2;
}

/* ---- Windows -------------------------------------------------------------------------------- */

static void run_slab(long_state *s, int64_t lo, int64_t hi)
{
    const tarn_problem *p = s->p;
    int a;
    memset(s->o, 0, sizeof s->o);
    s->o[0] = lo;
    do {
        for (a = 0; a < p->spatial; a++)
            s->taps[a] = window_taps(&p->axis[a], s->o[a]);
        if (p->op == TARN_AVG)
            run_mean(s);
        else
            run_extreme(s);
        for (a = p->spatial - 1; a >= 0; a--) {
            if (++s->o[a] < (a == 0 ? hi : p->axis[a].out))
                break;
            s->o[a] = 0;
        }
    } while (a >= 0);
}

static void run_pass(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                     const tarn_row_ops *ops, int in, int out)
{
    _Alignas(64) char arena[SUM_ARENA_BYTES + SCRATCH_SLACK];
    long_state s = {.p = p, .ops = ops, .in = in, .out = out, .arena = arena};
    tarn_slab slab;
    if (p->op == TARN_AVG) {
        bool wide = p->dtype == TARN_F64 || p->dtype == TARN_I32 || p->dtype == TARN_U32;
        s.bytes = wide ? 8 : 4;
        set_piece(&s);
    } else {
        s.codes = t->base[OPERAND_SAVED] || t->base[TARN_INDICES] || t->base[TARN_DY];
        s.key = key_of(p->dtype, false);
        s.flip = flip_of(p, s.key);
        set_runs(&s);
    }
    while (next_slab(p, t, p->axis[0].out, &begin, end, &slab)) {
        s.base = slab.base;
        run_slab(&s, slab.lo, slab.hi);
    }
}
