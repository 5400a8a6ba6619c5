/* Forward over dense rows: plan, sizes, blocks. See dense.h for the idea. */
#include "dense.h"
#include "engines.h"
#include "row_types.h"

static bool set_plan(dense *d, char *const *base, bool by_order);
static void run_items(dense *d, int64_t items, int64_t row_lo, int64_t row_hi, int64_t o_lo,
                      int64_t o_hi);

/* ---- Planes and slabs ----------------------------------------------------------------------- */

/* What a step of one cell adds to a place: bytes, or positions in the flattened input. */
static uint64_t place_step(const tarn_problem *p, int operand, int axis)
{
    uint64_t step = 1;
    if (operand != TARN_INDICES)
        return (uint64_t)(p->stride[operand][axis] * p->element_bytes[operand]);
    for (int a = axis + 1; a < p->spatial; a++)
        step *= (uint64_t)p->axis[a].size;
    return step;
}

static void set_written(dense *d, const tarn_tensors *t, int out)
{
    bool indices = t->base[TARN_INDICES];
    d->written[WRITE_Y] = out;
    d->written[WRITE_SAVED] = OPERAND_SAVED;
    d->written[WRITE_OTHER] = indices ? TARN_INDICES : TARN_DY;
    for (int a = 0; a < d->p->spatial; a++) {
        d->place_step[PLACE_IN_X][a] = place_step(d->p, TARN_X, a);
        d->place_step[PLACE_OTHER][a] = place_step(d->p, indices ? TARN_INDICES : TARN_DX, a);
    }
}

/* Places on the axes before the last two, from axis `from` on. */
static int64_t outer_places(const dense *d, int from)
{
    int64_t places = 1;
    for (int a = from; a < d->row_axis; a++)
        places *= d->p->axis[a].out;
    return places;
}

void tarn_dense_next(const dense *d, dense_place *at)
{
    for (int a = d->row_axis - 1; a >= 0; a--) {
        if (++at->o[a] < d->p->axis[a].out)
            return;
        at->o[a] = 0;
    }
    for (int k = 0; k < OPERANDS && d->p->leading == 1; k++)
        if (at->base[k])
            at->base[k] += d->p->lead_stride[k][0] * d->p->element_bytes[k];
}

static void run_slab(dense *d, const tarn_slab *slab)
{
    bool columns = d->row_axis < 0, rows = d->row_axis == 0;
    int64_t units = slab->hi - slab->lo;
    memcpy(d->at.base, slab->base, sizeof slab->base);
    memset(d->at.o, 0, sizeof d->at.o);
    if (d->row_axis > 0)
        d->at.o[0] = slab->lo;
    run_items(d, columns || rows ? 1 : units * outer_places(d, 1), rows ? slab->lo : 0,
              rows ? slab->hi : d->rows.out, columns ? slab->lo : 0,
              columns ? slab->hi : d->columns->out);
}

bool tarn_dense_run(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                    const tarn_row_ops *ops, int in, int out)
{
    _Alignas(64) char arena[DENSE_BYTES];
    int64_t units = p->axis[0].out;
    tarn_slab slab;
    dense d;
    d.p = p;
    d.ops = ops;
    d.in = in;
    d.arena = arena;
    set_written(&d, t, out);
    if (!set_plan(&d, t->base, false))
        return false;
    if (p->leading > 1 || begin % units != 0 || end % units != 0) {
        while (next_slab(p, t, units, &begin, end, &slab))
            run_slab(&d, &slab);
    } else if (begin < end) {
        int64_t planes = (end - begin) / units;
        int64_t first = begin;
        next_slab(p, t, units, &first, end, &slab);
        memcpy(d.at.base, slab.base, sizeof slab.base);
        memset(d.at.o, 0, sizeof d.at.o);
        run_items(&d, planes * outer_places(&d, 0), 0, d.rows.out, 0, d.columns->out);
    }
    return true;
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* The columns that the outputs of the tile read. */
static void set_tile(dense *d, int64_t o, int64_t outputs)
{
    const tarn_axis *axis = d->columns;
    tarn_span last = window_taps(axis, o + outputs - 1);
    d->o = o;
    d->outputs = outputs;
    d->first = window_taps(axis, o).first;
    d->read = span_at(&last, last.n - 1) + 1 - d->first;
    d->lo = min_i64(max_i64(-d->first, 0), d->read);
    d->hi = max_i64(min_i64(axis->size - d->first, d->read), d->lo);
    d->clean = d->held = d->held_end = 0;
    d->level_first = d->level_end = INT64_MIN;
}

static void run_again(const dense *d);
static void begin_scratch(dense *d);

static void run_block(dense *d, int64_t row, int64_t rows)
{
    d->row = row;
    d->block_rows = rows;
    if (d->codes ? tarn_dense_winners(d) : tarn_dense_values(d))
        tarn_dense_write(d);
    else {
        run_again(d);
        begin_scratch(d);
    }
}

/* Items from d->at on: output rows [row_lo,row_hi) and columns [o_lo,o_hi) of each. */
static void run_items(dense *d, int64_t items, int64_t row_lo, int64_t row_hi, int64_t o_lo,
                      int64_t o_hi)
{
    for (; items > 0; items -= d->items) {
        d->items = min_i64(items, d->most_items);
        for (int64_t o = o_lo; o < o_hi; o += d->most_outputs) {
            set_tile(d, o, min_i64(d->most_outputs, o_hi - o));
            for (int64_t row = row_lo; row < row_hi; row += d->most_rows)
                run_block(d, row, min_i64(d->most_rows, row_hi - row));
        }
        for (int64_t k = 0; k < d->items; k++)
            tarn_dense_next(d, &d->at);
    }
}

/* The block holds NaN or -0: once more, in the order of the contract. */
static __attribute__((noinline)) void run_again(const dense *d)
{
    dense again;
    again.p = d->p;
    again.ops = d->ops;
    again.in = d->in;
    again.arena = d->arena;
    memcpy(again.written, d->written, sizeof d->written);
    memcpy(again.place_step, d->place_step, sizeof d->place_step);
    set_plan(&again, d->at.base, true);
    again.at = d->at;
    run_items(&again, d->items, d->row, d->row + d->block_rows, d->o, d->o + d->outputs);
}

/* ---- Plan ----------------------------------------------------------------------------------- */

/* How the dtype is compared. For min, the order is reversed. */
static void set_key(dense *d)
{
    static const tarn_key keys[TARN_DTYPES][2] = {[TARN_F64] = {KEY_F64, KEY_ORDER_F64},
                                                  [TARN_F32] = {KEY_F32, KEY_ORDER_F32},
                                                  [TARN_F16] = {KEY_F16, KEY_ORDER_F16},
                                                  [TARN_BF16] = {KEY_BF16, KEY_ORDER_BF16},
                                                  [TARN_I8] = {KEY_8, KEY_8},
                                                  [TARN_U8] = {KEY_8, KEY_8},
                                                  [TARN_I16] = {KEY_16, KEY_16},
                                                  [TARN_U16] = {KEY_16, KEY_16},
                                                  [TARN_I32] = {KEY_32, KEY_32},
                                                  [TARN_U32] = {KEY_32, KEY_32},
                                                  [TARN_I64] = {KEY_64, KEY_64},
                                                  [TARN_U64] = {KEY_64, KEY_64}};
    static const tarn_core cores[KEYS] = {CORE_I8,  CORE_I16, CORE_I32, CORE_I64,
                                          CORE_F32, CORE_F64, CORE_I16, CORE_I16,
                                          CORE_I32, CORE_I64, CORE_I16, CORE_I16};
    tarn_dtype dtype = d->p->dtype;
    bool is_unsigned =
        dtype == TARN_U8 || dtype == TARN_U16 || dtype == TARN_U32 || dtype == TARN_U64;
    d->key = keys[dtype][d->by_order];
    d->core = cores[d->key];
    uint64_t sign = UINT64_C(1) << (8 * core_bytes(d->core) - 1);
    d->flip = is_unsigned ? sign : 0;
    if (d->p->op == TARN_MIN)
        d->flip ^= d->core >= CORE_F32 ? sign : ~UINT64_C(0);
    /* Integers are widened until the numbers of taps fit. */
    while (d->codes && d->core < CORE_I32 && (d->taps - 1) >> (8 * core_bytes(d->core)) != 0)
        d->core++;
}

static void set_core(dense *d)
{
    const tarn_problem *p = d->p;
    if (d->sums) {
        bool single =
            p->dtype <= TARN_BF16 ? p->dtype != TARN_F64 : means_fit_f32(p->dtype, d->taps);
        d->core = single ? CORE_F32 : CORE_F64;
        d->native = p->dtype == (single ? TARN_F32 : TARN_F64);
    } else
        set_key(d);
    d->bytes = core_bytes(d->core);
    if (!d->sums) {
        d->look_up = d->by_order || d->bytes != p->element_bytes[TARN_X];
        d->native = !d->look_up && d->flip == 0 && d->key <= KEY_F64;
    } else
        d->look_up = false;
}

/* Whether a window on the axis may have no tap. */
static bool may_miss(const tarn_axis *axis)
{
    tarn_span first = window_taps(axis, 0), last = window_taps(axis, axis->out - 1);
    return first.lo >= first.hi || last.lo >= last.hi || axis->dilation > axis->size;
}

static bool counts_differ(const tarn_problem *p, const tarn_axis *axis)
{
    tarn_span first = window_taps(axis, 0), last = window_taps(axis, axis->out - 1);
    if (p->count_include_pad)
        return padded_taps(axis, axis->out - 1) != axis->kernel;
    return first.lo > 0 || last.hi < last.n;
}

static void set_shortcuts(dense *d)
{
    const tarn_problem *p = d->p;
    int last = p->spatial - 1, y = d->written[WRITE_Y];
    int64_t bytes = p->element_bytes[y] * p->lanes * p->planes;
    bool y_follows = p->stride[y][last] == d->channels;
    d->has_empty = d->has_padding = false;
    d->one_divisor = true;
    for (int a = 0; a <= last; a++) {
        bytes = bytes > p->cache_bytes ? bytes : bytes * p->axis[a].out;
        d->has_empty |= may_miss(&p->axis[a]);
        d->has_padding |= p->axis[a].lo > 0 ||
                          window_taps(&p->axis[a], p->axis[a].out - 1).hi < p->axis[a].kernel;
        d->one_divisor = d->one_divisor && (p->divisor > 0 || !counts_differ(p, &p->axis[a]));
    }
    d->past_caches = bytes > p->cache_bytes && y_follows;
    bool is_short = d->bytes < 4 && d->columns->size * d->channels < d->ops->vector_bytes;
    d->in_place = d->native && p->stride[d->in][last] == d->channels && !is_short &&
                  (d->row_axis <= 0 || d->codes);
    d->outer_in_place = d->native && p->stride[d->in][last] == d->channels &&
                        p->axis[0].kernel <= MOST_FOLDED &&
                        (!d->sums || p->axis[0].kernel <= 3 || p->axis[0].lo == 0);
    d->to_y = !d->sums && d->native && y_follows && !d->past_caches;
    d->winners_to_y =
        d->to_y && d->codes && d->row_axis <= 0 &&
        (d->row_axis < 0 || p->stride[y][0] == d->columns->out * d->channels) &&
        (p->leading == 0 ||
         (p->leading == 1 && p->lead_stride[y][0] == d->rows.out * d->columns->out * d->channels));
    d->to_y = d->to_y && !d->codes;
}

/* ---- Sizes ---------------------------------------------------------------------------------- */

enum { MANY_CELLS = 1 << 16 };

static bool is_moderate(const tarn_axis *axis)
{
    return axis->kernel <= MANY_CELLS && axis->dilation <= MANY_CELLS / axis->kernel &&
           axis->stride <= MANY_CELLS;
}

static int64_t extent_of(const tarn_axis *axis)
{
    return (axis->kernel - 1) * axis->dilation + 1;
}

static int64_t cells_read(const tarn_axis *axis, int64_t windows)
{
    return (windows - 1) * axis->stride + extent_of(axis);
}

/* Temporary rows of sums over outer axes: one for each halving; of extremes one. */
static int count_temps(const dense *d)
{
    int temps = 0;
    for (int a = d->outer_in_place ? 1 : 0; a < d->row_axis && !d->codes; a++) {
        temps += 1;
        for (int64_t k = d->p->axis[a].kernel; d->sums && k > 2; k = (k + 1) / 2)
            temps += 1;
    }
    return temps;
}

static char *take(const dense *d, int64_t *used, int64_t bytes)
{
    char *taken = d->arena + *used;
    *used += (bytes + SCRATCH_SLACK + 63) / 64 * 64;
    return taken;
}

static dense_rows take_rows(const dense *d, int64_t *used, int64_t elements, bool codes)
{
    dense_rows rows = {take(d, used, elements * d->bytes), NULL, 0, 0};
    if (codes)
        rows.codes = take(d, used, elements * d->bytes);
    return rows;
}

static bool has_gaps(const dense *d)
{
    const tarn_problem *p = d->p;
    bool gaps = p->stride[d->in][p->spatial - 1] != d->channels || d->past_caches;
    for (int k = 0; k < WRITES; k++)
        gaps |= p->stride[d->written[k]][p->spatial - 1] != d->channels;
    return gaps;
}

/* [S1] Sums of 8 rows. Extremes: folds that may overlap, with the least taps altogether; the first
 * ones are made at every row. */
static void set_level(dense *d)
{
    const tarn_axis *axis = &d->rows;
    int64_t least = axis->kernel;
    d->level_taps = 0;
    if (d->sums && axis->kernel > MOST_FOLDED) {
        d->level_taps = 8;
        d->level_windows = axis->kernel / 8;
        d->level_step = 8 * axis->dilation;
    }
    for (int64_t windows = 2; !d->sums && windows <= MOST_FOLDED; windows++) {
        int64_t step = axis->kernel / windows, taps = axis->kernel - (windows - 1) * step;
        int64_t cost = axis->stride * (taps + 1) + windows + 1;
        if (axis->kernel <= 8 || cost >= least)
            continue;
        least = cost;
        d->level_taps = taps;
        d->level_windows = windows;
        d->level_step = step * axis->dilation;
    }
}

/* Lays scratch out for blocks of that size; the bytes that it takes. */
static int64_t lay_out(dense *d, int64_t outputs, int64_t rows, int64_t items)
{
    enum { CHUNK = 4 << 10, TEMP = 1 << 10 };
    const tarn_axis *axis = d->columns;
    int64_t used = 0, read = cells_read(axis, outputs), row = read * d->channels;
    int64_t in_x = min_i64(read, axis->size) * d->channels, n = outputs * d->channels;
    int64_t rows_read = min_i64(cells_read(&d->rows, rows), d->rows.size);
    bool padded = axis->stride == 2 || slides(d) || d->has_padding; /* a tile may be short */
    int64_t chunk =
        items > 1 ? rows_read : min_i64(rows_read, max_i64(CHUNK / (row * d->bytes), 1));
    int64_t level = 0;
    if (d->level_taps) { /* rows are then read for a part of the level */
        enum { LEVEL_CHUNK = 8 };
        level = (rows - 1) * d->rows.stride + (d->level_windows - 1) * d->level_step + 1;
        d->level_chunk = items > 1 ? level : LEVEL_CHUNK;
        rows_read = min_i64(max_i64(d->level_chunk, d->rows.stride) +
                                (d->level_taps - 1) * d->rows.dilation,
                            d->rows.size);
        if (items == 1)
            chunk = min_i64(chunk, rows_read);
        else
            chunk = rows_read;
    }
    d->most_outputs = outputs;
    d->most_rows = rows;
    d->most_items = items;
    d->chunk_rows = chunk;
    d->padded = d->folded = d->result = d->more = d->level = d->tail = (dense_rows){0};
    if (d->level_taps)
        d->level = take_rows(d, &used, items * level * (d->codes ? n : in_x), d->codes);
    if (d->level_taps && d->sums && d->rows.kernel % d->level_taps)
        d->tail = take_rows(d, &used, items * rows * in_x, false);
    d->pad = take(d, &used, row * d->bytes);
    if (has_gaps(d))
        d->gathered = take(d, &used, max_i64(row, n) * 8);
    if (!d->in_place)
        d->source = take_rows(d, &used, items * (d->codes ? chunk : rows_read) * in_x, false);
    if (d->codes) {
        if (padded)
            d->padded = take_rows(d, &used, items * chunk * row, slides(d));
        d->folded = take_rows(d, &used, items * rows_read * n, true);
        d->result.codes = take(d, &used, items * rows * n * d->bytes);
        if (!(d->winners_to_y && (outputs == axis->out || d->row_axis < 0)))
            d->result_values = take(d, &used, items * rows * n * d->bytes);
        if (d->row_axis > 0)
            d->more = take_rows(d, &used, items * rows * n, true);
        return used;
    }
    d->padded = take_rows(d, &used, items * rows * row, false);
    if (!d->to_y)
        d->result = take_rows(d, &used, items * rows * n, false);
    for (int k = 0; k < 2 && d->sums && slides(d); k++)
        d->sums_of[k] = take(d, &used, items * rows * row * d->bytes);
    if (d->sums)
        d->divisors = take(d, &used, d->one_divisor ? d->bytes : n * d->bytes);
    d->temp_bytes = (max_i64(in_x * d->bytes, TEMP) + SCRATCH_SLACK + 63) / 64 * 64;
    d->temp = take(d, &used, d->temps * d->temp_bytes);
    return used;
}

/* Blocks of as many rows as there is room for; tiles narrower than the output where only a few
 * rows would fit. */
static bool set_sizes(dense *d)
{
    enum { MOST_ROWS = 256, MOST_ITEMS = 64, ENOUGH_ELEMENTS = 128 };
    const tarn_axis *rows_axis = &d->rows;
    int64_t out = rows_axis->out, extent = extent_of(rows_axis);
    int64_t wanted = min_i64(out, d->codes || d->level_taps ? 4 : max_i64(8, extent / 2));
    if (rows_axis->stride > 2 * extent) /* rows between are not read */
        out = wanted = 1;
    int64_t outputs = min_i64(d->columns->out, MANY_CELLS), rows;
    for (;; outputs -= (outputs + 3) / 4) {
        if (outputs < 1)
            return false;
        for (rows = min_i64(out, MOST_ROWS);
             rows > 0 && lay_out(d, outputs, rows, 1) > DENSE_BYTES;)
            rows -= (rows + 7) / 8;
        if (rows >= wanted || (rows > 0 && outputs * d->channels <= ENOUGH_ELEMENTS))
            break;
    }
    int64_t items = 1;
    bool whole = outputs == d->columns->out && rows == rows_axis->out && d->p->leading <= 1;
    if (whole && !(d->codes && d->row_axis > 0))
        for (items = MOST_ITEMS; items > 1 && lay_out(d, outputs, rows, items) > DENSE_BYTES;)
            items -= (items + 7) / 8;
    lay_out(d, outputs, rows, items);
    return true;
}

/* Nothing is there but the row of padding. */
static void begin_scratch(dense *d)
{
    static const uint64_t least[CORES] = {
        [CORE_I8] = 0x80,        [CORE_I16] = 0x8000,
        [CORE_I32] = 0x80000000, [CORE_I64] = UINT64_C(1) << 63,
        [CORE_F32] = 0xff800000, [CORE_F64] = UINT64_C(0xfff) << 52};
    static const uint64_t times[9] = {[1] = ~UINT64_C(0) / 0xff,
                                      [2] = ~UINT64_C(0) / 0xffff,
                                      [4] = ~UINT64_C(0) / 0xffffffff,
                                      [8] = 1};
    uint64_t word = d->sums ? 0 : least[d->core] * times[d->bytes];
    int64_t bytes =
        d->has_padding ? cells_read(d->columns, d->most_outputs) * d->channels * d->bytes : 0;
    for (int64_t k = 0; k < bytes; k += (int64_t)sizeof word)
        memcpy(d->pad + k, &word, sizeof word);
    d->padded_rows = d->clean = d->held = d->held_end = 0;
    d->level_first = d->level_end = INT64_MIN;
    d->divisors_o = -1;
}

static bool takes(const dense *d)
{
    const tarn_problem *p = d->p;
    for (int a = 0; a < p->spatial; a++)
        if (p->axis[a].adaptive || !is_moderate(&p->axis[a]))
            return false;
    const tarn_axis *axis = d->columns;
    int64_t bytes = max_i64(d->bytes, 4) * d->channels;
    if (axis->stride > 2 || axis->out == 1 ||
        d->rows.kernel > (d->sums ? 8 * MOST_FOLDED - 1 : 256) ||
        (axis->stride == 2 && (d->channels > 1 || (d->sums && axis->kernel > MOST_FOLDED))))
        return false;
    return d->by_order ||
           6 * extent_of(axis) * bytes + 4 * extent_of(&d->rows) * bytes <= DENSE_BYTES / 2;
}

static bool set_plan(dense *d, char *const *base, bool by_order)
{
    const tarn_problem *p = d->p;
    d->by_order = by_order;
    d->sums = p->op == TARN_AVG;
    d->columns = &p->axis[p->spatial - 1];
    d->row_axis = p->spatial - 2;
    d->rows = d->row_axis >= 0
                  ? p->axis[d->row_axis]
                  : (tarn_axis){.size = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    d->channels = p->lanes;
    d->taps = 1;
    for (int a = 0; a < p->spatial; a++)
        d->taps *= p->axis[a].kernel;
    d->codes = !d->sums && (by_order || base[OPERAND_SAVED] || base[TARN_INDICES] || base[TARN_DY]);
    set_core(d);
    if (!takes(d))
        return false;
    set_shortcuts(d);
    d->to_y = d->to_y && base[d->written[WRITE_Y]];
    d->winners_to_y = d->winners_to_y && base[d->written[WRITE_Y]];
    d->temps = count_temps(d);
    set_level(d);
    if (!set_sizes(d))
        return false;
    begin_scratch(d);
    if (d->codes)
        tarn_dense_set_places(d);
    return true;
}
