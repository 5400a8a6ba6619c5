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
 *
 * Whole planes that are short, those of global windows, go many at a time.
 */
#include "engines.h"

enum {
    SUM_ARENA_BYTES = 16 << 10, /* rows that wait while windows are folded down */
    MOST_PIECE = 1 << 10,       /* columns of them */
    KEY_PIECE_BYTES = 8 << 10,  /* of a run, so that it is still near when it is read again */
    MOST_LONG_STEPS = 128,
    MOST_ACROSS = 66, /* steps of 256 columns */
    MOST_LANES = 16   /* of a vector of f32 */
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
    int64_t across_count; /* along rows of whole planes that were folded down */
    tarn_lane_step across[MOST_ACROSS];
    char *arena; /* SUM_ARENA_BYTES */
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
    return axis->out == 1 && taps.n == axis->size && taps.hi - taps.lo == taps.n;
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
    bool left = taps->lo < column + half, right = taps->hi > column + half;
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

/* ---- Whole planes --------------------------------------------------------------------------- */

enum { MOST_PLANES = 64 }; /* at a time: what a mask has bits for */

/* Planes of a leading axis, from the one in hand on. */
typedef struct {
    char *const *base;
    int64_t step[OPERANDS]; /* bytes from a plane to the next */
    int64_t elements;
} long_planes;

static char *plane_of(const long_planes *planes, int operand, int64_t k)
{
    return planes->base[operand] ? planes->base[operand] + k * planes->step[operand] : NULL;
}

/* The winner of a plane, by its number on the run. */
static void write_place(const long_state *s, const long_planes *planes, int64_t k, int64_t at)
{
    const tarn_problem *p = s->p;
    char *saved = plane_of(planes, OPERAND_SAVED, k), *indices = plane_of(planes, TARN_INDICES, k);
    char *dy = plane_of(planes, TARN_DY, k);
    const int64_t bytes = p->element_bytes[TARN_DX];
    if (saved)
        store_winner(p, saved, 0, at);
    if (indices)
        memcpy(indices, &at, sizeof at);
    if (dy)
        memcpy(dy, plane_of(planes, TARN_DX, k) + at * bytes, (size_t)bytes);
}

/* Which of the keys are zeros of f32 or f64: either sign may have won. */
static uint64_t zeros_of(const tarn_problem *p, const char *keys, int64_t count)
{
    uint64_t zeros = 0;
    for (int64_t k = 0; k < count && p->dtype == TARN_F32; k++) {
        float key;
        memcpy(&key, keys + 4 * k, sizeof key);
        zeros |= (uint64_t)(key == 0) << k;
    }
    for (int64_t k = 0; k < count && p->dtype == TARN_F64; k++) {
        double key;
        memcpy(&key, keys + 8 * k, sizeof key);
        zeros |= (uint64_t)(key == 0) << k;
    }
    return zeros;
}

static void run_one_plane(long_state *s, const long_planes *planes, int64_t k)
{
    char *base[OPERANDS];
    for (int operand = 0; operand < OPERANDS; operand++)
        base[operand] = plane_of(planes, operand, k);
    s->base = base;
    run_extreme(s);
}

/* The extremes of up to MOST_PLANES of them. */
static void run_extremes(long_state *s, const long_planes *planes, int64_t count)
{
    const int64_t bytes = s->p->element_bytes[TARN_X], n = planes->elements;
    const char *x = planes->base[TARN_X];
    char *y = planes->base[TARN_Y], keys[8 * MOST_PLANES], values[8 * MOST_PLANES];
    bool dense = planes->step[TARN_Y] == bytes;
    uint64_t odd = s->ops->best_runs[s->key](keys, x, planes->step[TARN_X], s->flip, n, count);
    odd |= zeros_of(s->p, keys, count);
    if (y)
        s->ops->unkey[s->key](dense ? y : values, keys, s->flip, count);
    for (int64_t k = 0; k < count && y && !dense; k++)
        memcpy(plane_of(planes, TARN_Y, k), values + k * bytes, (size_t)bytes);
    for (int64_t k = 0; k < count && s->codes; k++)
        if (!(odd >> k & 1))
            write_place(s, planes, k,
                        s->ops->find_run[s->key](keys + k * bytes, x + k * planes->step[TARN_X],
                                                 s->flip, n));
    for (; odd; odd &= odd - 1)
        run_one_plane(s, planes, __builtin_ctzll(odd));
}

/* The means of as many as a vector has sums. Planes are folded down to a row each, side by side;
 * these rows are turned, so that each lane is a plane, and summed across. */
static void run_some_means(const long_state *s, const long_planes *planes, int64_t first,
                           int64_t count)
{
    const tarn_problem *p = s->p;
    const int64_t columns = p->axis[p->spatial - 1].size, row = columns * s->bytes;
    const int64_t lanes = s->ops->vector_bytes / s->bytes, divisor = window_divisor(p, s->o);
    const tarn_dtype term = s->bytes == 4 ? TARN_F32 : TARN_F64;
    const float single = (float)divisor;
    const double wide = (double)divisor;
    const void *rows[MOST_LANES];
    char *turned = s->arena + SUM_ARENA_BYTES / 2, sums[64], means[64];
    char *y = plane_of(planes, s->out, first);
    bool dense = planes->step[s->out] == p->element_bytes[s->out];
    ops_for(s->ops, row)
        ->sum_lanes[p->dtype](
            &(tarn_lane_row){.from = plane_of(planes, s->in, first),
                             .lanes = columns,
                             .outputs = count,
                             .window_step = planes->step[s->in],
                             .step_count = s->step_count,
                             .steps = s->steps,
                             .first_step = p->stride[s->in][0] * p->element_bytes[s->in],
                             .to = s->arena,
                             .to_step = row});
    for (int64_t k = 0; k < lanes; k++)
        rows[k] = s->arena + min_i64(k, count - 1) * row;
    s->ops->turn[core_width(s->bytes == 4 ? CORE_F32 : CORE_F64)](turned, rows, columns);
    s->ops->sum_lanes[term](&(tarn_lane_row){.from = turned,
                                             .lanes = lanes,
                                             .outputs = 1,
                                             .step_count = s->across_count,
                                             .steps = s->across,
                                             .first_step = s->ops->vector_bytes,
                                             .to = sums});
    if (s->bytes == 4)
        s->ops->means_f32[p->dtype](dense ? y : means, (float *)(void *)sums, &single, 0, count);
    else
        s->ops->means_f64[p->dtype](dense ? y : means, (double *)(void *)sums, &wide, 0, count);
    for (int64_t k = 0; k < count && !dense; k++)
        memcpy(plane_of(planes, s->out, first + k), means + k * p->element_bytes[s->out],
               (size_t)p->element_bytes[s->out]);
}

static void run_means(const long_state *s, const long_planes *planes, int64_t count)
{
    const int64_t lanes = s->ops->vector_bytes / s->bytes;
    for (int64_t k = 0; k < count; k += lanes)
        run_some_means(s, planes, k, min_i64(lanes, count - k));
}

/* Whether planes can be summed so: rows of whole vectors, not too many; lists of steps that fit. */
static bool set_plane_sums(long_state *s)
{
    const tarn_problem *p = s->p;
    const int last = p->spatial - 1;
    const int64_t columns = p->axis[last].size, row = columns * s->bytes;
    const int64_t lanes = s->ops->vector_bytes / s->bytes, element = p->element_bytes[s->in];
    if (last == 0 || row < 16 || lanes * row > SUM_ARENA_BYTES / 2)
        return false;
    for (int a = 0; a <= last; a++)
        if (!is_global(&p->axis[a]))
            return false;
    int64_t steps = p->axis[0].size / 4 + 2;
    for (int a = 1; a < last && steps <= MOST_LONG_STEPS; a++)
        steps *= p->axis[a].size;
    if (steps > MOST_LONG_STEPS || columns / 4 + 2 > MOST_ACROSS)
        return false;
    s->step_count = list_steps(s->steps, 0, p->axis[0].size, p->stride[s->in][0] * element);
    for (int a = 1; a < last; a++)
        s->step_count =
            repeat_steps(s->steps, s->steps, s->step_count, s->steps[s->step_count - 1].pops, 0,
                         p->axis[a].size, p->stride[s->in][a] * element);
    s->across_count = list_steps(s->across, 0, columns, s->ops->vector_bytes);
    return true;
}

/* Whether planes are one run each, of at least a vector, and short enough to be still near when
 * they are read again; and the place of a winner on it is its number of tap, and lies so in dx. */
static bool planes_are_runs(const long_state *s, bool has_dx)
{
    const tarn_problem *p = s->p;
    const int64_t bytes = p->element_bytes[TARN_X], n = s->inner * p->axis[0].size;
    int64_t cells = 1;
    if (s->run_axis > 0 || !is_whole(&p->axis[0]) || n > KEY_PIECE_BYTES / bytes ||
        n * bytes < s->ops->vector_bytes)
        return false;
    for (int a = p->spatial - 1; a >= 0; cells *= p->axis[a--].size)
        if (p->axis[a].kernel != p->axis[a].size || (has_dx && p->stride[TARN_DX][a] != cells))
            return false;
    return true;
}

/* Units are planes. */
static void run_planes(long_state *s, const tarn_tensors *t, int64_t begin, int64_t end)
{
    const tarn_problem *p = s->p;
    const int outer = p->leading - 1; /* the axis along which planes lie */
    const int64_t along = p->leading > 0 ? p->lead_size[outer] : 1;
    tarn_slab slab;
    long_planes planes = {.base = slab.base};
    for (int k = 0; k < OPERANDS && p->leading > 0; k++)
        planes.step[k] = p->lead_stride[k][outer] * p->element_bytes[k];
    for (int a = 0; a < p->spatial; a++)
        s->taps[a] = window_taps(&p->axis[a], 0);
    planes.elements = s->inner * p->axis[0].size;
    while (begin < end) {
        int64_t count = min_i64(min_i64(end - begin, along - begin % along), MOST_PLANES);
        int64_t next = begin + count;
        next_slab(p, t, 1, &begin, end, &slab);
        if (p->op == TARN_AVG)
            run_means(s, &planes, count);
        else
            run_extremes(s, &planes, count);
        begin = next;
    }
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
    if (p->op == TARN_AVG ? set_plane_sums(&s) : planes_are_runs(&s, t->base[TARN_DX])) {
        run_planes(&s, t, begin, end);
        return;
    }
    while (next_slab(p, t, p->axis[0].out, &begin, end, &slab)) {
        s.base = slab.base;
        run_slab(&s, slab.lo, slab.hi);
    }
}
