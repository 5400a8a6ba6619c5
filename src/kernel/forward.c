/* The forward engine: plan, tiles, jobs. See forward.h for the idea. */
#include "boxes.h"
#include "engines.h"
#include "forward.h"
#include "row_types.h"

static tarn_engine_pass run_pass, run_nested;
static void run_in(char *arena, int64_t bytes, const tarn_problem *p, const tarn_tensors *t,
                   int64_t begin, int64_t end, const tarn_row_ops *ops, int in, int out);
static void run_slab(forward_state *s, int64_t lo, int64_t hi, int64_t planes);
static void run_lines(forward_state *s, int64_t planes);
static void run_box(forward_state *s, forward_box box, int64_t o_lo, int64_t o_hi);
static void run_rows(forward_state *s, int64_t row, int64_t end, int64_t o_lo, int64_t o_hi);
static void run_row(forward_state *s, int64_t o_lo, int64_t o_hi);
static void run_row_by_order(forward_state *s, int64_t o_lo, int64_t o_hi);
static void set_tile(forward_state *s, int64_t o, int64_t outputs);
static void add_job(forward_state *s, int64_t o, int64_t outputs, int64_t rows);
static void add_jobs(forward_state *s, int64_t o, int64_t outputs, int64_t rows);
static void flush_jobs(forward_state *s);

void tarn_engine_forward(const tarn_problem *p, const tarn_tensors *t, int64_t begin, int64_t end,
                         const tarn_row_ops *ops)
{
    run_passes(p->nested ? run_nested : run_pass, p, t, begin, end, ops);
}

/* ---- Plan ----------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static void set_key(forward_plan *plan, bool by_order)
{
    static const tarn_core cores[KEYS] = {CORE_I8,  CORE_I16, CORE_I32, CORE_I64,
                                          CORE_F32, CORE_F64, CORE_I16, CORE_I16,
                                          CORE_I32, CORE_I64, CORE_I16, CORE_I16};
    plan->key = key_of(plan->p->dtype, by_order);
    plan->core = cores[plan->key];
    plan->flip = flip_of(plan->p, plan->key);
}

/* Numbers of taps, and beyond them those of padding, must fit the core: integers are widened
 * until they do. */
static void set_codes(forward_plan *plan)
{
    int64_t kernel = plan->columns->kernel, needed = plan->taps + kernel;
    while (plan->core < CORE_I32 && needed >> (8 * core_bytes(plan->core)) != 0)
        plan->core++;
    bool is_64 = core_bytes(plan->core) == 8;
    plan->pad_code =
        (is_64 ? INT64_MAX : (INT64_C(1) << (8 * core_bytes(plan->core))) - 1) - kernel;
}

static void set_core(forward_plan *plan, bool by_order)
{
    const tarn_problem *p = plan->p;
    if (plan->sums) {
        bool floats = p->dtype <= TARN_BF16;
        bool single = floats ? p->dtype != TARN_F64 : means_fit_f32(p->dtype, plan->taps);
        plan->core = single ? CORE_F32 : CORE_F64;
    } else {
        set_key(plan, by_order);
        if (plan->codes)
            set_codes(plan);
    }
    plan->bytes = core_bytes(plan->core);
    plan->lanes = plan->ops->vector_bytes / plan->bytes;
    plan->look_up = !plan->sums && (by_order || plan->bytes != p->element_bytes[TARN_X]);
}

static bool slides_by_one(const tarn_axis *axis)
{
    return !axis->adaptive && (axis->stride == 1 || axis->out == 1);
}

/* Whether keys, or terms of sums, are the elements themselves. */
static bool is_native(const forward_plan *plan)
{
    if (plan->p->skips)
        return false;
    if (plan->sums)
        return plan->p->dtype == (plan->core == CORE_F32 ? TARN_F32 : TARN_F64);
    return !plan->look_up && plan->flip == 0 && plan->key <= KEY_F64;
}

/* Padded columns that n outputs read. All outputs have whole rows, which follow each other in
 * memory, if few cells are left over. */
static int64_t columns_of(const tarn_axis *axis, int64_t n)
{
    /* window o ends before (o+1)*size/out + 1, and begins after o*size/out - 1 */
    if (axis->adaptive)
        return min_i64(axis->size, muldiv_ceil(n, axis->whole, axis->windows) + 2);
    int64_t columns;
    bool fits = checked_mul(n - 1, axis->stride, &columns) &&
                checked_add(columns, (axis->kernel - 1) * axis->dilation + 1, &columns);
    if (!fits)
        return INT64_MAX;
    int64_t row = axis->lo + axis->size;
    return n == axis->out && row > columns && row - columns <= row / 4 ? row : columns;
}

/* Channels that go together, in bytes: all, if a tile of all then has as many outputs as its
 * windows have columns, two rows of it, with their codes, taking the arena; or a few lines of
 * memory, so that several rows go together. */
static int64_t block_bytes(const forward_plan *plan)
{
    enum { LINE = 64, SOME_CHANNELS = 8 * LINE, FEW_CHANNELS = 2 * LINE, LEAST_OUTPUTS = 4 };
    const tarn_problem *p = plan->p;
    const tarn_axis *axis = plan->columns;
    bool follow = p->stride[plan->in][p->spatial - 1] == p->lanes;
    int64_t outputs = max_i64(min_i64(axis->kernel, axis->out), LEAST_OUTPUTS);
    int64_t columns = columns_of(axis, outputs), rows = plan->codes ? 4 : 2;
    int64_t room = columns < plan->room / rows ? plan->room / rows / columns : 0;
    if (follow && is_native(plan) && p->lanes * plan->bytes <= room)
        return room;
    return max_i64(min_i64(room / 4 / LINE * LINE, SOME_CHANNELS), FEW_CHANNELS);
}

/* Shorter vectors, if pixels then fill one. */
static void suit_channels(forward_plan *plan)
{
    const tarn_row_ops *ops = plan->ops;
    int64_t pixel = plan->group * plan->bytes;
    while (ops->narrower && pixel < ops->vector_bytes)
        ops = ops->narrower;
    if (pixel >= ops->vector_bytes) {
        plan->ops = ops;
        plan->lanes = ops->vector_bytes / plan->bytes;
    }
}

/* Pixels go together if that suits what is done across. */
static void set_across(forward_plan *plan)
{
    const tarn_axis *axis = plan->columns;
    bool one_by_one = slides_by_one(axis), few = axis->kernel <= MOST_LISTED;
    bool lists = axis->adaptive || (!few && plan->sums) || axis->kernel > 2 * MOST_LISTED;
    if (plan->group > 1 && !one_by_one)
        suit_channels(plan);
    int64_t lanes = plan->group, most = block_bytes(plan) / plan->bytes;
    bool narrow =
        lanes < plan->lanes && !axis->adaptive && axis->out > 1 && axis->stride <= MOST_PICKED;
    plan->channels = lanes >= plan->lanes || one_by_one || narrow ? min_i64(lanes, most) : 1;
    plan->lists = lists;
    plan->picks = false;
    bool slides = one_by_one && axis->out > 1 && (lists || plan->channels == lanes);
    if (plan->channels >= plan->lanes)
        plan->across = slides ? ACROSS_SLIDE : lists ? ACROSS_LISTS : ACROSS_PIXELS;
    else if (plan->channels == 1 && !lists && axis->stride == 2 && axis->out > 1)
        plan->across = ACROSS_STRIDE2;
    else if (narrow) {
        plan->across = ACROSS_SLIDE;
        plan->picks = axis->stride > 1;
    } else
        plan->across = plan->channels == 1 ? ACROSS_TURNED : ACROSS_LISTS;
}

static bool every_tap_exists(const tarn_axis *axis)
{
    tarn_span first = window_taps(axis, 0), last = window_taps(axis, axis->out - 1);
    return first.lo == 0 && last.hi == last.n;
}

/* Whether windows of an axis have as many taps that count. */
static bool counts_alike(const forward_plan *plan, const tarn_axis *axis)
{
    return plan->p->divisor > 0 ||
           ((!axis->adaptive || axis->out == 1) &&
            (every_tap_exists(axis) ||
             (plan->p->count_include_pad && padded_taps(axis, axis->out - 1) == axis->kernel)));
}

static void set_shortcuts(forward_plan *plan)
{
    const tarn_problem *p = plan->p;
    int last = p->spatial - 1;
    plan->native = is_native(plan);
    plan->direct = plan->native && p->stride[plan->in][last] == plan->channels;
    plan->strided = is_native(plan) && !plan->direct && plan->channels >= plan->lanes &&
                    plan->row_axis == 0 && plan->columns->kernel <= MOST_LISTED &&
                    p->axis[0].kernel <= MOST_SUMMED;
    plan->gathers = p->stride[plan->in][last] != plan->channels ||
                    (p->skips && p->stride[TARN_X][last] != plan->channels);
    for (int k = 0; k < WRITES; k++)
        plan->gathers |= p->stride[plan->written[k]][last] != plan->channels;
    enum {
        LONG_ROW = 256
    }; /* bytes from which on it pays to store each row to y, and not all by a copy */
    bool is_long = plan->columns->out * plan->channels * plan->bytes >= LONG_ROW;
    bool to_pixels = (plan->across == ACROSS_PIXELS && !plan->codes) ||
                     p->stride[plan->written[WRITE_Y]][last] == plan->channels;
    bool by_row = plan->across == ACROSS_SLIDE || plan->across == ACROSS_PIXELS ||
                  plan->across == ACROSS_LISTS;
    plan->writes_y =
        is_long && by_row && to_pixels && plan->has_y && !plan->sums && is_native(plan);
    plan->has_missing = false;
    for (int a = 0; a < last && plan->sums; a++)
        plan->has_missing |= !p->axis[a].adaptive && !every_tap_exists(&p->axis[a]);
    plan->one_divisor = plan->sums;
    for (int a = 0; a <= last; a++)
        plan->one_divisor &= counts_alike(plan, &p->axis[a]);
    plan->copies_y = !plan->sums && !plan->look_up && !plan->writes_y &&
                     p->stride[plan->written[WRITE_Y]][last] == plan->channels;
    tarn_span first = window_taps(plan->columns, 0),
              final = window_taps(plan->columns, plan->columns->out - 1);
    plan->has_empty = first.lo >= first.hi || final.lo >= final.hi ||
                      (!plan->columns->adaptive && plan->columns->dilation > plan->columns->size);
}

/* Rows that folds of many rows keep for later, on top of each other: two for each halving of
 * more than a list. */
static int rows_for_halves(const forward_plan *plan, int axes)
{
    int rows = 0;
    for (int a = 0; a < axes; a++) {
        bool across = a > plan->row_axis, wide = plan->across == ACROSS_WIDE;
        bool single =
            axes > plan->row_axis; /* not runs of rows, which need not follow each other */
        bool listed = across ? !wide : a == plan->row_axis || (a == 0 && plan->direct && single);
        if ((across && plan->across < ACROSS_LISTS) || (a == 0 && plan->sums_in_x && !single))
            continue;
        int64_t most = !listed ? 1 : a == plan->row_axis ? plan->listed : MOST_LISTED;
        const tarn_axis *axis = &plan->p->axis[a];
        int64_t k = axis->kernel;
        /* Halves that lie in the padding take no row: taps that exist are split once at a large
         * scale, and then where they are most of what is split. */
        if (!axis->adaptive && (!across || wide))
            k = min_i64(k, 4 * ((axis->size - 1) / axis->dilation + 1));
        rows += k < axis->kernel ? 2 : 0;
        if (!plan->sums && !(across && wide)) /* extremes need no tree */
            rows += k > most;
        else
            for (; k > most; k = (k + 1) / 2)
                rows += 2;
        if (across && wide) /* a piece is a list of columns, padding included */
            for (k = min_i64(axis->kernel, plan->most_columns); k > MOST_LISTED; k = (k + 1) / 2)
                rows += 2;
    }
    return rows;
}

/* Rows of x that are converted, or folded over outer axes, are kept in a ring while windows
 * below read them. */
static void set_ring(forward_plan *plan, bool keeps)
{
    enum { FEW_LISTED = 4 };
    plan->ring_rows = 0;
    plan->ring_keeps = false;
    plan->listed = MOST_LISTED;
    if (plan->row_axis < 0 || (plan->row_axis == 0 && plan->direct))
        return;
    const tarn_axis *axis = &plan->p->axis[plan->row_axis];
    int64_t extent = axis->adaptive ? axis->kernel : (axis->kernel - 1) * axis->dilation + 1;
    plan->ring_keeps = keeps && extent <= MOST_RING_ROWS && !plan->strided;
    plan->listed = plan->ring_keeps ? MOST_LISTED
                   : plan->strided  ? 1
                                    : FEW_LISTED; /* then, they are rarely used */
    plan->ring_rows = plan->ring_keeps ? (int)extent : (int)min_i64(axis->kernel, plan->listed);
}

/* Elements from a row to the next, among those folded down and across. Turned rows are stored
 * in pieces of 16 bytes; rows that are doubled in place, in whole vectors; strides divide the
 * pitch. */
static void set_pitches(forward_plan *plan, int64_t n, int64_t columns)
{
    int64_t elements = columns * plan->channels, outputs = n * plan->channels;
    plan->pitch = plan->output_pitch = elements;
    if (plan->across == ACROSS_TURNED) {
        plan->pitch = plan->output_pitch = round_up(max_i64(elements, outputs), 16 / plan->bytes);
        if (n == 1) /* the vector of results is the column of them */
            plan->output_pitch = 1;
    } else if (plan->across == ACROSS_STRIDE2) {
        plan->pitch = round_up(elements, 2);
        plan->output_pitch = plan->pitch / 2;
    } else if (plan->picks) {
        int64_t step = plan->columns->stride * plan->channels;
        plan->pitch = round_up(elements, step);
        plan->output_pitch = plan->pitch / step * plan->channels;
    } else if (plan->across != ACROSS_SLIDE || plan->writes_y)
        plan->output_pitch = outputs;
    else if (plan->columns->kernel > MOST_LISTED)
        plan->pitch = plan->output_pitch = round_up(elements, plan->lanes);
}

/* Rows that a box has on the way, of which more than the arena has bytes do not fit. */
static int64_t rows_times(int64_t rows, int64_t n)
{
    int64_t product;
    return checked_mul(rows, n, &product) ? min_i64(product, ARENA_BYTES) : ARENA_BYTES;
}

/* What a box takes, if output rows go `rows` at a time: the rows of x that it reads, and what is
 * made of them, axis by axis, by turns in the one place and in the other. */
static void set_box_bytes(forward_plan *plan, int64_t columns, int64_t rows)
{
    const tarn_problem *p = plan->p;
    const int first = plan->box_axis;
    int64_t made[2] = {0, 0}, pixel = plan->channels * plan->bytes;
    plan->source_bytes = plan->part_bytes = plan->source_rows = 0;
    if (first < 0)
        return;
    const tarn_axis *axis = &p->axis[first];
    const int64_t boxes = first < plan->row_axis ? 1 : (axis->out + rows - 1) / rows;
    const int64_t windows = (axis->out + boxes - 1) / boxes;
    const int64_t extent = (axis->kernel - 1) * axis->dilation + 1;
    int64_t read = axis->size, span;
    if (!axis->adaptive && checked_mul(windows - 1, axis->stride, &span))
        read = min_i64(axis->size, span + extent);
    plan->box_windows = windows;
    for (int done = first; done <= plan->row_axis; done++) { /* axes before `done` are folded */
        int64_t n = plan->box_planes;
        for (int a = first; a <= plan->row_axis; a++)
            n = rows_times(n, a < done ? p->axis[a].out : a == first ? read : p->axis[a].size);
        if (done > first || !plan->in_place)
            made[(done - first) % 2] = max_i64(made[(done - first) % 2], n);
    }
    plan->source_rows = plan->in_place ? 0 : made[0];
    plan->source_bytes = made[0] > 0 ? made[0] * columns * pixel + SCRATCH_SLACK : 0;
    plan->part_bytes = made[1] > 0 ? made[1] * columns * pixel + SCRATCH_SLACK : 0;
}

/* Whether rows that boxes fold over the first axis follow each other, and are summed as they lie.
 */
static bool can_sum_in_x(const forward_plan *plan)
{
    const tarn_problem *p = plan->p;
    const bool wide = p->dtype == TARN_F64 || p->dtype == TARN_I32 || p->dtype == TARN_U32;
    return plan->box_axis > 0 && plan->sums && !p->skips && p->axis[0].kernel <= MOST_SUMMED &&
           plan->most_columns >= plan->columns->lo + plan->columns->size &&
           p->stride[plan->in][p->spatial - 1] == plan->channels &&
           p->stride[plan->in][plan->row_axis] == plan->columns->size * plan->channels &&
           plan->ops->sum_lanes[p->dtype] && (plan->core == CORE_F64) == wide;
}

/* Bytes of the arena that tiles of n outputs take, `rows` rows at once; sets the plan's sizes.
 * What set_rows() takes. */
static int64_t arena_bytes(forward_plan *plan, int64_t n, int64_t columns, int64_t rows)
{
    bool turned = plan->across == ACROSS_TURNED;
    bool sums_of_many =
        plan->sums && plan->across == ACROSS_SLIDE && plan->columns->kernel > MOST_LISTED;
    int64_t copies = plan->codes ? 2 : 1, pixel = plan->channels * plan->bytes;
    plan->most_outputs = n;
    plan->most_columns = columns;
    plan->sums_in_x = can_sum_in_x(plan);
    plan->batch_rows = (int)rows;
    set_pitches(plan, n, columns);
    plan->row_bytes = round_up(columns * pixel + SCRATCH_SLACK, 64);
    plan->down_bytes = round_up(rows * plan->pitch * plan->bytes + SCRATCH_SLACK, 64);
    int64_t across_pitch = plan->picks ? plan->pitch : plan->output_pitch;
    plan->across_bytes =
        turned ? 0 : round_up(rows * across_pitch * plan->bytes + SCRATCH_SLACK, 64);
    plan->folded_bytes = turned ? round_up(max_i64(columns, n), 16) * plan->ops->vector_bytes
                         : sums_of_many ? plan->across_bytes
                                        : 0;
    plan->gathered_bytes =
        round_up(max_i64(columns, plan->codes ? 8 * n / plan->bytes : n) * pixel, 64);
    const int64_t divisors = plan->one_divisor ? 1 : rows * plan->output_pitch;
    plan->divisor_bytes = plan->sums ? round_up(divisors * plan->bytes, 64) : 0;
    set_box_bytes(plan, columns, rows);
    int64_t bare = plan->row_axis > 0 ? copies : 1; /* rows of x have no codes */
    int64_t halves = rows_for_halves(plan, plan->p->spatial) * plan->row_bytes;
    if (plan->source_rows > 0 && plan->box_axis > 0) /* the same for runs of rows */
        halves = max_i64(halves,
                         rows_for_halves(plan, plan->box_axis) * round_up(plan->source_bytes, 64));
    return copies * (halves + plan->down_bytes + plan->across_bytes +
                     plan->folded_bytes * (turned ? 2 : 1)) +
           bare * (plan->ring_rows * plan->row_bytes + round_up(plan->source_bytes, 64) +
                   round_up(plan->part_bytes, 64)) +
           plan->divisor_bytes + (plan->has_missing ? plan->row_bytes : 0) +
           (plan->gathers + plan->look_up) * plan->gathered_bytes;
}

/* Tiles of as many columns as fit; false if there is no room for a single window. */
static bool set_tile_size(forward_plan *plan)
{
    enum { MOST_COLUMNS = 64 << 10 };
    int64_t n = min_i64(plan->columns->out, MOST_COLUMNS), columns = columns_of(plan->columns, n);
    int64_t rows = plan->across == ACROSS_TURNED ? plan->lanes : 1;
    while (columns > MOST_COLUMNS || arena_bytes(plan, n, columns, rows) > plan->room) {
        if (n == 1)
            return false;
        n = n > 16 ? n * 3 / 4 : n - 1;
        columns = columns_of(plan->columns, n);
    }
    int64_t tiles = (plan->columns->out + n - 1) / n;
    int64_t even = (plan->columns->out + tiles - 1) / tiles; /* but parts of rows may take more */
    if (arena_bytes(plan, even, columns_of(plan->columns, even), rows) > plan->room)
        arena_bytes(plan, n, columns, rows);
    return true;
}

/* Several rows go at once, while they stay in the level-1 cache. */
static void set_batch(forward_plan *plan)
{
    enum { ENOUGH_BYTES = 8 << 10 };
    int64_t n = plan->most_outputs, columns = plan->most_columns, rows = 1;
    if (plan->across == ACROSS_TURNED || plan->across == ACROSS_WIDE)
        return;
    rows = min_i64(max_i64(ENOUGH_BYTES / (plan->pitch * plan->bytes), 1), MOST_ROWS);
    while (rows > 1 && arena_bytes(plan, n, columns, rows) > plan->room)
        rows -= (rows + 7) / 8;
    arena_bytes(plan, n, columns, rows);
}

/* Windows in pieces: of at least `least` columns, or false, and nothing is changed. */
static bool set_wide(forward_plan *plan, int64_t least)
{
    forward_plan wide = *plan;
    int64_t columns = 1 << 10;
    wide.across = ACROSS_WIDE;
    wide.picks = false;
    wide.writes_y = false;
    set_ring(&wide, false);
    while (arena_bytes(&wide, 1, columns, 1) > plan->room && columns > least)
        columns /= 2;
    if (arena_bytes(&wide, 1, columns, 1) > plan->room)
        return false;
    *plan = wide;
    return true;
}

/* Whether the rows that a block reads can be counted without overflow. */
static bool windows_are_moderate(const tarn_axis *axis)
{
    enum { MOST_CELLS = 1 << 20 };
    return axis->adaptive || (axis->stride <= MOST_CELLS && axis->dilation <= MOST_CELLS &&
                              axis->kernel <= MOST_CELLS / axis->dilation);
}

/* Windows that all read something, each in one fold. */
static bool suits_boxes(const forward_plan *plan, const tarn_axis *axis)
{
    const tarn_span first = window_taps(axis, 0), last = window_taps(axis, axis->out - 1);
    return windows_are_moderate(axis) && (!plan->sums || axis->kernel <= MOST_SUMMED) &&
           first.lo < first.hi && last.lo < last.hi &&
           (axis->adaptive || axis->dilation <= axis->size);
}

/* Boxes of that axis, or none; false, and nothing is changed, if they cannot be. */
static bool set_box_axis(forward_plan *plan, int first)
{
    const tarn_problem *p = plan->p;
    const int64_t *stride = p->stride[plan->in];
    int64_t follows = plan->channels;
    for (int a = p->spatial - 1; first >= 0 && a >= first; a--) {
        if (a <= plan->row_axis && !suits_boxes(plan, &p->axis[a]))
            return false;
        bool follow = stride[a] == follows && (!p->skips || p->stride[TARN_X][a] == follows);
        if (first < plan->row_axis && !follow)
            return false;
        follows *= p->axis[a].size;
    }
    plan->box_axis = first;
    plan->box_planes = 1;
    plan->in_place = plan->strided || (first == 0 && plan->direct);
    return true;
}

/* Whether small boxes make rows of x again that a ring would keep for them: four times, or twice if
 * they are folded over other axes. */
static bool boxes_read_again(const forward_plan *plan)
{
    if (plan->row_axis < 0 || plan->source_rows == 0)
        return false;
    const tarn_axis *axis = &plan->p->axis[plan->row_axis];
    const int64_t windows = plan->box_windows, extent = (axis->kernel - 1) * axis->dilation + 1;
    const int64_t most = plan->box_axis > 0 ? 2 : 4;
    return windows < axis->out && extent <= MOST_RING_ROWS &&
           (axis->adaptive ||
            (windows - 1) * axis->stride + extent >= most * windows * axis->stride);
}

/* Boxes of more axes than the last before the row, and of several planes. */
static void widen_boxes(forward_plan *plan)
{
    const forward_plan before = *plan;
    const int64_t n = plan->most_outputs, columns = plan->most_columns;
    const int row_axis = plan->row_axis;
    bool fits = false;
    if (n != plan->columns->out || plan->across == ACROSS_WIDE)
        return;
    const bool whole = columns >= plan->columns->lo + plan->columns->size;
    for (int first = 0; first < row_axis && !fits && whole; first++) {
        int64_t rows = before.batch_rows;
        if (!set_box_axis(plan, first))
            continue;
        fits = arena_bytes(plan, n, columns, rows) <= plan->room;
        while (!fits && rows > plan->p->axis[row_axis].out && plan->across != ACROSS_TURNED) {
            rows -= (rows + 7) / 8;
            fits = arena_bytes(plan, n, columns, rows) <= plan->room;
        }
    }
    if (!fits)
        *plan = before;
    if (plan->p->leading == 0 || plan->channels != plan->p->lanes || plan->strided ||
        (row_axis >= 0 && plan->box_axis != 0))
        return;
    int64_t planes = plan->batch_rows, rows = plan->batch_rows;
    for (int a = 0; a <= row_axis; a++)
        planes /= plan->p->axis[a].out;
    for (plan->box_planes = max_i64(planes, 1);
         arena_bytes(plan, n, columns, rows) > plan->room && plan->box_planes > 1;)
        plan->box_planes -= (plan->box_planes + 7) / 8;
}

/* Whether rows of a box are results as those of one plane would be. */
static bool rows_join(const forward_plan *plan, char *const *base)
{
    const tarn_problem *p = plan->p;
    if (plan->look_up || (!plan->sums && base[plan->written[WRITE_OTHER]]))
        return false;
    for (int k = 0; k < (plan->sums ? 1 : WRITES); k++) {
        const int operand = plan->written[k];
        int64_t step = plan->written_step[k] / p->element_bytes[operand];
        for (int a = plan->row_axis; a >= 0 && base[operand]; a--) {
            const int64_t next = a == 0 ? plane_step(plan, operand) : p->stride[operand][a - 1];
            step *= p->axis[a].out;
            if ((a > plan->box_axis || plan->box_planes > 1) && next != step)
                return false;
        }
    }
    return true;
}

/* Boxes of rows, if they fit, and share what they read. */
static bool set_boxes(forward_plan *plan)
{
    if (!set_box_axis(plan, plan->row_axis))
        return false;
    set_ring(plan, false); /* few rows go one by one */
    if (!set_tile_size(plan))
        return false;
    set_batch(plan);
    return !boxes_read_again(plan);
}

/* A window that does not fit is folded in pieces, or has fewer channels. */
static void set_tiles(forward_plan *plan)
{
    enum { FEW_COLUMNS = 4 };
    if (!set_boxes(plan)) {
        set_box_axis(plan, -1);
        set_ring(plan, true);
        while (!set_tile_size(plan)) {
            bool whole = plan->columns->out == 1 &&
                         plan->p->stride[plan->in][plan->p->spatial - 1] == plan->channels;
            if ((whole && set_wide(plan, FEW_COLUMNS)) ||
                (plan->channels <= plan->lanes && set_wide(plan, 1)))
                return;
            plan->channels =
                plan->channels > plan->lanes ? max_i64(plan->lanes, plan->channels / 2) : 1;
            set_shortcuts(plan);
            set_ring(plan, true);
        }
        set_batch(plan);
    }
    widen_boxes(plan);
}

static void set_written(forward_plan *plan, const tarn_tensors *t, int out)
{
    bool indices = t->base[TARN_INDICES];
    plan->written[WRITE_Y] = out;
    plan->written[WRITE_SAVED] = OPERAND_SAVED;
    plan->written[WRITE_OTHER] = indices ? TARN_INDICES : TARN_DY;
    const tarn_problem *p = plan->p;
    for (int k = 0; k < WRITES; k++) {
        int operand = plan->written[k];
        int64_t step =
            p->spatial > 1 ? p->stride[operand][p->spatial - 2] : plane_step(plan, operand);
        plan->written_step[k] = step * p->element_bytes[operand];
    }
}

static void plan_with(forward_plan *plan, const tarn_row_ops *ops, char *const *base, bool by_order)
{
    const tarn_problem *p = plan->p;
    plan->ops = ops;
    plan->sums = p->op == TARN_AVG;
    plan->columns = &p->axis[p->spatial - 1];
    plan->row_axis = p->spatial - 2;
    plan->taps = taps_of(p);
    plan->codes =
        !plan->sums && (by_order || base[OPERAND_SAVED] || base[TARN_INDICES] || base[TARN_DY]);
    set_core(plan, by_order);
    set_across(plan);
    plan->has_y = base[plan->written[WRITE_Y]];
    plan->result = p->part == WHOLE_MEANS ? p->dtype : plan->core == CORE_F32 ? TARN_F32 : TARN_F64;
    if (p->skips)
        plan->skip = tarn_rule_of_skipping(p);
    set_shortcuts(plan);
    set_tiles(plan);
    plan->joins = rows_join(plan, base);
    plan->write_ops = plan->across == ACROSS_TURNED ? narrowest(plan->ops) : plan->ops;
}

/* Shorter vectors have fewer rows or channels to a tile: windows may fit them that do not fit the
 * widest. */
static void set_plan(forward_plan *plan, char *const *base, bool by_order)
{
    const tarn_row_ops *ops = plan->widest;
    plan_with(plan, ops, base, by_order);
    while (plan->across == ACROSS_WIDE && (ops = ops->narrower) != NULL)
        plan_with(plan, ops, base, by_order);
    if (plan->across == ACROSS_WIDE)
        plan_with(plan, plan->widest, base, by_order);
}

/* [A2] Taps of a window, on an axis, that count. */
static int64_t counted_taps(const tarn_problem *p, const tarn_axis *axis, int64_t o)
{
    const tarn_span taps = window_taps(axis, o);
    return p->count_include_pad ? padded_taps(axis, o) : taps.hi - taps.lo;
}

/* That of the first window, which is that of all. */
static void set_one_divisor(const forward_plan *plan, char *to)
{
    int64_t divisor = 1;
    for (int a = 0; a < plan->p->spatial; a++)
        divisor *= counted_taps(plan->p, &plan->p->axis[a], 0);
    put_one_divisor(plan->core == CORE_F64, to,
                    max_i64(plan->p->divisor > 0 ? plan->p->divisor : divisor, 1));
}

/* Lays the scratch rows out. */
static void set_rows(forward_state *s)
{
    const forward_plan *plan = &s->plan;
    s->arena_used = 0;
    s->jobs = s->rows = 0;
    s->divisors_o = -1;
    s->divisors = forward_take_bytes(s, plan->divisor_bytes);
    if (plan->one_divisor)
        set_one_divisor(plan, s->divisors);
    if (plan->has_missing) {
        s->zeros = forward_take_bytes(s, plan->row_bytes);
        memset(s->zeros, 0, (size_t)plan->row_bytes);
    }
    if (plan->gathers)
        s->gathered[0] = forward_take_bytes(s, plan->gathered_bytes);
    if (plan->look_up)
        s->gathered[1] = forward_take_bytes(s, plan->gathered_bytes);
    bool bare = plan->row_axis <= 0; /* rows of x have no codes */
    for (int r = 0; r < plan->ring_rows; r++)
        s->ring[r] = forward_take_row(s, plan->row_bytes, plan->codes && !bare);
    s->source = forward_take_row(s, plan->source_bytes, plan->codes && !bare);
    s->part = forward_take_row(s, plan->part_bytes, plan->codes && !bare);
    s->down = forward_take_row(s, plan->down_bytes, plan->codes);
    s->across = plan->across == ACROSS_TURNED
                    ? s->down
                    : forward_take_row(s, plan->across_bytes, plan->codes);
    if (plan->across == ACROSS_TURNED)
        s->turned = forward_take_row(s, plan->folded_bytes, plan->codes);
    s->folded = forward_take_row(s, plan->folded_bytes, plan->codes);
    if (plan->across == ACROSS_TURNED && plan->output_pitch == 1)
        s->across = s->folded;
    forward_forget_rows(s);
    forward_forget_margins(s);
    if (plan->codes)
        tarn_list_places(&s->places, s->plan.written[WRITE_OTHER] == TARN_INDICES);
}

/* ---- Planes, channels, rows ----------------------------------------------------------------- */

static void move_base(forward_state *s, char *const *base, int64_t lanes)
{
    for (int k = 0; k < OPERANDS; k++)
        s->base[k] = base[k] ? base[k] + lanes * s->plan.p->element_bytes[k] : NULL;
}

__attribute__((noinline)) static void run_pass(const tarn_problem *p, const tarn_tensors *t,
                                               int64_t begin, int64_t end, const tarn_row_ops *ops,
                                               int in, int out)
{
    _Alignas(64) char arena[ARENA_BYTES];
    run_in(arena, ARENA_BYTES, p, t, begin, end, ops, in, out);
}

__attribute__((noinline)) static void run_nested(const tarn_problem *p, const tarn_tensors *t,
                                                 int64_t begin, int64_t end,
                                                 const tarn_row_ops *ops, int in, int out)
{
    _Alignas(64) char arena[LEAST_ARENA_BYTES];
    run_in(arena, LEAST_ARENA_BYTES, p, t, begin, end, ops, in, out);
}

__attribute__((noinline)) static void run_in(char *arena, int64_t bytes, const tarn_problem *p,
                                             const tarn_tensors *t, int64_t begin, int64_t end,
                                             const tarn_row_ops *ops, int in, int out)
{
    forward_state s;
    s.arena = arena;
    s.run_rows = 1;
    s.margin_first = 0;
    s.plan = (forward_plan){.p = p, .widest = ops, .in = in, .group = p->lanes, .room = bytes};
    set_written(&s.plan, t, out);
    set_place_steps(&s.places, p, t->base[TARN_INDICES] != NULL);
    set_plan(&s.plan, t->base, false);
    set_rows(&s);
    tarn_slab slab;
    int64_t planes;
    while ((planes = next_planes(p, t, p->axis[0].out, &begin, end, s.plan.box_planes, &slab)) > 0)
        for (int64_t lane = 0; lane < p->lanes; lane += s.plan.channels) {
            move_base(&s, slab.base,
                      min_i64(lane, p->lanes - s.plan.channels)); /* the last block overlaps */
            run_slab(&s, slab.lo, slab.hi, planes);
        }
    flush_jobs(&s);
}

/* Steps the first `axes` axes; false after the last place. Axis 0 runs over [lo,hi). */
static bool next_outer(forward_state *s, int axes, int64_t lo, int64_t hi)
{
    for (int a = axes - 1; a >= 0; a--) {
        if (++s->o[a] < (a == 0 ? hi : s->plan.p->axis[a].out))
            return true;
        s->o[a] = a == 0 ? lo : 0;
    }
    return false;
}

/* Tile by tile, so that rows are kept from one output row to the next. */
static void run_slab(forward_state *s, int64_t lo, int64_t hi, int64_t planes)
{
    const forward_plan *plan = &s->plan;
    const int row = plan->row_axis, axis = plan->box_axis < 0 ? row : plan->box_axis;
    const int64_t o_lo = row < 0 ? lo : 0, o_hi = row < 0 ? hi : plan->columns->out;
    const int64_t begin = axis == 0 ? lo : 0, end = axis < 0    ? 1
                                                    : axis == 0 ? hi
                                                                : plan->p->axis[axis].out;
    for (int64_t o = o_lo, next; o < o_hi; o = next) {
        next = min_i64(o + plan->most_outputs, o_hi);
        memset(s->o, 0, sizeof s->o);
        s->o[0] = axis > 0 ? lo : 0;
        forward_forget_rows(s);
        if (plan->columns->adaptive && s->jobs > 0 && s->job[0].o != o) /* other lists */
            flush_jobs(s);
        do {
            if (planes > 1 && row < 0)
                run_lines(s, planes);
            else if (plan->box_axis < 0)
                run_rows(s, begin, end, o, next);
            else
                for (int64_t k = begin; k < end; k += plan->box_windows)
                    run_box(s, (forward_box){k, min_i64(k + plan->box_windows, end), planes, 0}, o,
                            next);
        } while (next_outer(s, axis, lo, hi));
    }
}

/* ---- Jobs ----------------------------------------------------------------------------------- */

/* The columns that outputs [o,o+outputs) read. */
static void set_tile(forward_state *s, int64_t o, int64_t outputs)
{
    const tarn_axis *axis = s->plan.columns;
    tarn_span last = window_taps(axis, o + outputs - 1);
    s->first = window_taps(axis, o).first;
    s->columns = s->plan.across == ACROSS_TURNED || outputs == axis->out
                     ? s->plan.most_columns
                     : span_at(&last, last.n - 1) + 1 - s->first;
    s->lo = min_i64(max_i64(-s->first, 0), s->columns);
    s->hi = max_i64(min_i64(axis->size - s->first, s->columns), s->lo);
}

/* What the rows from s->o on count, as rows from `slot` on. */
static void count_rows(forward_state *s, int64_t slot, int64_t rows)
{
    const tarn_problem *p = s->plan.p;
    const int row_axis = s->plan.row_axis;
    int64_t counted = 1;
    if (!s->plan.sums || s->plan.one_divisor)
        return;
    for (int a = 0; a < row_axis; a++)
        counted *= counted_taps(p, &p->axis[a], s->o[a]);
    for (int64_t r = 0; r < rows; r++)
        s->counted[slot + r] =
            row_axis < 0 ? 1 : counted * counted_taps(p, &p->axis[row_axis], s->o[row_axis] + r);
}

/* The rows s->o and those behind it, folded down already: where their results go and their
 * winners lie, and what they are divided by. */
static void add_job(forward_state *s, int64_t o, int64_t outputs, int64_t rows)
{
    const tarn_problem *p = s->plan.p;
    const forward_plan *plan = &s->plan;
    forward_job *job = &s->job[s->jobs++];
    *job = (forward_job){.o = o, .outputs = outputs, .slot = s->rows, .rows = (int)rows};
    s->rows += (int)rows;
    int64_t offset[WRITES];
    for (int k = 0; k < WRITES; k++)
        offset[k] = o * p->stride[plan->written[k]][p->spatial - 1];
    for (int a = 0; a <= plan->row_axis; a++) {
        tarn_span taps = window_taps(&p->axis[a], s->o[a]);
        job->empty |= taps.lo >= taps.hi;
        for (int which = 0; which < PLACES; which++)
            job->place[which] += (uint64_t)taps.first * s->places.step[which][a];
        for (int k = 0; k < WRITES; k++)
            offset[k] += s->o[a] * p->stride[plan->written[k]][a];
    }
    for (int k = 0; k < (plan->sums ? 1 : WRITES); k++) {
        int operand = plan->written[k];
        if (s->base[operand])
            job->written[k] = s->base[operand] + offset[k] * p->element_bytes[operand];
    }
    job->read[PLACE_IN_X] = s->base[TARN_X];
    job->read[PLACE_OTHER] = plan->written[WRITE_OTHER] == TARN_DY ? s->base[TARN_DX] : NULL;
    if (s->rows == plan->batch_rows || s->jobs == MOST_JOBS)
        flush_jobs(s);
}

/* Rows from s->o on, of one group, but for those of adaptive windows that are looked up. */
static void add_jobs(forward_state *s, int64_t o, int64_t outputs, int64_t rows)
{
    const forward_plan *plan = &s->plan;
    const int row_axis = plan->row_axis;
    const bool single = !plan->joins && !plan->sums && plan->p->axis[row_axis].adaptive;
    for (int64_t n = single ? 1 : rows; rows > 0; rows -= n, s->o[row_axis] += n)
        add_job(s, o, outputs, n);
}

static void flush_jobs(forward_state *s)
{
    if (s->jobs == 0)
        return;
    tarn_forward_across(s);
    tarn_forward_write(s);
    s->jobs = s->rows = 0;
}

/* ---- Boxes, rows ---------------------------------------------------------------------------- */

/* Plane k of those that go together. */
static void go_to_plane(forward_state *s, char *const *base, int64_t k)
{
    for (int operand = 0; operand < OPERANDS; operand++)
        s->base[operand] = base[operand] ? base[operand] + k * plane_step(&s->plan, operand) *
                                                               s->plan.p->element_bytes[operand]
                                         : NULL;
}

/* As many planes of one axis as rows. */
static void run_lines(forward_state *s, int64_t planes)
{
    const forward_plan *plan = &s->plan;
    char *base[OPERANDS];
    memcpy(base, s->base, sizeof base);
    for (int64_t k = 0, some; k < planes; k += some) {
        some = min_i64(planes - k, plan->batch_rows - s->rows);
        if (!plan->joins)
            some = min_i64(some, MOST_JOBS - s->jobs);
        go_to_plane(s, base, k);
        set_tile(s, 0, plan->most_outputs);
        const bool made = tarn_forward_down_lines(s, some, down_row(s, s->rows));
        count_rows(s, s->rows, some);
        const int64_t rows = plan->joins ? some : 1; /* of a job */
        for (int64_t line = k; line < k + some; line += made ? rows : 1) {
            go_to_plane(s, base, line);
            if (made)
                add_job(s, 0, plan->most_outputs, rows);
            else
                run_row(s, 0, plan->most_outputs);
        }
    }
    memcpy(s->base, base, sizeof base);
}

/* Group n of a box: a place on the axes from the box's own to the row axis. */
static void go_to_group(forward_state *s, const forward_box *box, char *const *base, int64_t n)
{
    const forward_plan *plan = &s->plan;
    for (int a = plan->row_axis - 1; a >= plan->box_axis; a--) {
        const bool first = a == plan->box_axis;
        const int64_t windows = first ? box->hi - box->lo : plan->p->axis[a].out;
        s->o[a] = (first ? box->lo : 0) + n % windows;
        n /= windows;
    }
    if (box->planes > 1)
        go_to_plane(s, base, n);
}

/* How many rows of a group, and how many groups, from `row` on, go next; makes room for them. */
static int64_t rows_of_chunk(forward_state *s, int64_t row, int64_t first, int64_t end,
                             int64_t *groups)
{
    const forward_plan *plan = &s->plan;
    if (plan->across != ACROSS_TURNED && end - row <= plan->batch_rows &&
        end - row > plan->batch_rows - s->rows)
        flush_jobs(s);
    const int64_t room = plan->batch_rows - s->rows;
    *groups = plan->joins && row == first ? max_i64(min_i64(*groups, room / (end - first)), 1) : 1;
    return min_i64(end - row, plan->joins ? room : min_i64(room, MOST_JOBS - s->jobs));
}

static void run_box(forward_state *s, forward_box box, int64_t o_lo, int64_t o_hi)
{
    const forward_plan *plan = &s->plan;
    const int row_axis = plan->row_axis;
    const bool only = plan->box_axis == row_axis, counts = plan->sums && !plan->one_divisor;
    const int64_t first = only ? box.lo : 0, end = only ? box.hi : plan->p->axis[row_axis].out;
    int64_t groups = box.planes;
    char *base[OPERANDS];
    memcpy(base, s->base, sizeof base);
    set_tile(s, o_lo, o_hi - o_lo);
    for (int a = plan->box_axis; a < row_axis; a++)
        groups *= a == plan->box_axis ? box.hi - box.lo : plan->p->axis[a].out;
    const bool made = tarn_forward_begin_box(s, &box);
    for (int64_t group = 0, some = 1; group < groups; group += some)
        for (int64_t row = first, rows; row < end; row += rows) {
            go_to_group(s, &box, base, group);
            s->o[row_axis] = row;
            some = groups - group;
            rows = made ? rows_of_chunk(s, row, first, end, &some) : end - row;
            if (made) {
                tarn_forward_down_box(s, group, some, row, rows, down_row(s, s->rows));
                for (int64_t k = counts ? some - 1 : -1; k >= 0; k--) {
                    go_to_group(s, &box, base, group + k);
                    count_rows(s, s->rows + k * rows, rows);
                }
                add_jobs(s, o_lo, o_hi - o_lo, some * rows);
            } else {
                some = 1;
                forward_forget_rows(s);
                run_rows(s, row, end, o_lo, o_hi);
            }
        }
    memcpy(s->base, base, sizeof base);
}

/* Output rows [row,end) of a tile, one by one. */
static void run_rows(forward_state *s, int64_t row, int64_t end, int64_t o_lo, int64_t o_hi)
{
    forward_forget_ring(s);
    for (; row < end; row++) {
        if (s->plan.row_axis >= 0)
            s->o[s->plan.row_axis] = row;
        run_row(s, o_lo, o_hi);
    }
}

/* The outputs [o_lo,o_hi) of the row s->o, a tile; of wide windows, one. */
static void run_row(forward_state *s, int64_t o_lo, int64_t o_hi)
{
    s->odd = false;
    if (s->plan.across == ACROSS_WIDE)
        tarn_forward_wide(s, o_lo, s->across);
    else {
        set_tile(s, o_lo, o_hi - o_lo);
        tarn_forward_down(s, down_row(s, s->rows));
    }
    if (s->odd) {
        run_row_by_order(s, o_lo, o_hi);
        return;
    }
    count_rows(s, s->rows, 1);
    add_job(s, o_lo, o_hi - o_lo, 1);
}

/* The row holds NaN or -0: once more, in the order of the contract. Fewer channels may go
 * together then. */
static void run_row_by_order(forward_state *s, int64_t o_lo, int64_t o_hi)
{
    forward_plan plan = s->plan;
    char *base[OPERANDS];
    flush_jobs(s);
    memcpy(base, s->base, sizeof base);
    s->plan.group = plan.channels;
    set_plan(&s->plan, base, true);
    set_rows(s);
    for (int64_t lane = 0; lane < plan.channels; lane += s->plan.channels) {
        move_base(s, base, min_i64(lane, plan.channels - s->plan.channels));
        for (int64_t o = o_lo; o < o_hi; o += s->plan.most_outputs) {
            forward_forget_rows(s);
            run_row(s, o, min_i64(o + s->plan.most_outputs, o_hi));
            flush_jobs(s);
        }
    }
    flush_jobs(s);
    memcpy(s->base, base, sizeof base);
    s->plan = plan;
    set_rows(s);
}
