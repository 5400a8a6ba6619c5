/* The engine "lanes", a box of outputs: fill the tile, fold windows, write. See lanes.h for the
 * idea. */
#include "engines.h"
#include "lanes.h"

static void set_cells(lanes_state *s, lanes_box *box);
static void fill_tile(lanes_state *s, const lanes_box *box);
static void set_runs(lanes_state *s, const lanes_box *box);
static void fold_row(lanes_state *s, const lanes_box *box, const int64_t *o, int64_t index);
static void write_codes(lanes_state *s, const lanes_lane *lane, const char *codes,
                        const lanes_box *box);
static void turn_values_back(lanes_state *s, const lanes_box *box);
static void turn_codes_back(lanes_state *s, const lanes_box *box);
static void divide_row(lanes_state *s, const lanes_box *box, const int64_t *o, int64_t index);
static void fold_means(lanes_state *s, const int64_t *o);

void tarn_lanes_run_box(lanes_state *s, lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    int64_t o[TARN_MAX_SPATIAL], index = 0;
    s->odd = false;
    set_cells(s, box);
    if (plan->turned)
        fill_tile(s, box);
    set_runs(s, box);
    memcpy(o, box->o, sizeof o);
    do {
        if (s->odd)
            return;
        fold_row(s, box, o, index);
        if (plan->sums && !plan->in_place)
            divide_row(s, box, o, index);
        index++;
    } while (next_in_box(o, box->o, box->n, plan->p->spatial - 1));
    if (s->odd)
        return;
    if (plan->turned && !plan->by_order && s->lane[0].base[plan->out])
        turn_values_back(s, box);
    if (plan->codes && plan->turned)
        turn_codes_back(s, box);
    else if (plan->codes && !plan->saves) /* a box of channels is a row */
        write_codes(s, &s->lane[0], s->codes, box);
}

/* ---- Cells ---------------------------------------------------------------------------------- */

/* The cells between the first tap of a box and its last, and where they are, or will be. */
static void set_cells(lanes_state *s, lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    bool in_place = !plan->turned;
    int64_t step = plan->lanes * plan->element;
    for (int a = p->spatial - 1; a >= 0; a--) {
        const tarn_axis *axis = &plan->axis[a];
        tarn_span first = window_taps(axis, box->o[a]),
                  last = window_taps(axis, box->o[a] + box->n[a] - 1);
        box->first[a] = max_i64(first.first, 0);
        box->cells[a] = min_i64(span_at(&last, last.n - 1) + 1, axis->size) - box->first[a];
        if (!in_place && box->n[a] == axis->out && cells_of(axis, axis->out) == axis->size) {
            box->first[a] = 0;
            box->cells[a] = axis->size;
        }
        s->first[a] = in_place ? 0 : box->first[a];
        s->step[a] = in_place ? p->stride[plan->in][a] * p->element_bytes[plan->in] : step;
        step *= box->cells[a];
    }
    s->cells = in_place ? s->lane[0].base[plan->in] : s->tile;
}

/* ---- The tile ------------------------------------------------------------------------------- */

/* From which axis on a box is one run of elements, where each axis steps over all that the next
 * ones have; `first` is the least that is asked for. */
static int run_axis(const tarn_problem *p, int operand, const int64_t *n, int64_t channels,
                    int first)
{
    int a = p->spatial - 1;
    if (n[a] > 1 && p->stride[operand][a] != channels)
        return a + 1;
    for (int64_t elements = channels * n[a]; a > first; elements *= n[--a])
        if (n[a - 1] > 1 && p->stride[operand][a - 1] != elements)
            break;
    return a;
}

static int width_of(int64_t bytes)
{
    return bytes == 1 ? CORE_I8 : bytes == 2 ? CORE_I16 : bytes == 4 ? CORE_I32 : CORE_I64;
}

/* What stands for a cell outside x, in the low bytes: what no tap is below, or 0. */
static uint64_t outside(const lanes_plan *plan)
{
    static const uint64_t infinities[] = {[TARN_F64] = 0x7ff0000000000000,
                                          [TARN_F32] = 0x7f800000,
                                          [TARN_F16] = 0x7c00,
                                          [TARN_BF16] = 0x7f80};
    uint64_t sign = UINT64_C(1) << (8 * plan->element - 1);
    if (plan->sums)
        return 0;
    if (plan->p->dtype <= TARN_BF16)
        return infinities[plan->p->dtype] | (plan->p->op == TARN_MAX ? sign : 0);
    return sign ^ plan->flip;
}

/* In one lane of n columns. */
static void clear_lane(const lanes_plan *plan, char *to, int lane, int64_t n)
{
    uint64_t element = outside(plan);
    to += lane * plan->element;
    for (; n > 0; n--, to += plan->width * plan->element)
        put_integer(to, element, plan->element);
}

/* Rows of x from cell c on, lane by lane; returns which lanes have none, as c[0] lies outside. */
static uint64_t set_rows_of_x(lanes_state *s, const int64_t *c)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    int64_t bytes = p->element_bytes[plan->in], first = p->stride[plan->in][0] * bytes;
    int64_t offset = 0, size = p->axis[0].size;
    uint64_t outside = 0;
    for (int a = 1; a < p->spatial; a++)
        offset += c[a] * p->stride[plan->in][a] * bytes;
    if (s->least_origin + c[0] >= 0 && s->most_origin + c[0] < size) {
        for (int k = 0; k < plan->width; k++)
            s->rows[k] = s->in[k] + ((s->origin[k] + c[0]) * first + offset);
        return 0;
    }
    for (int k = 0; k < plan->width; k++) {
        int64_t cell = s->origin[k] + c[0];
        bool exists = cell >= 0 && cell < size;
        s->rows[k] = s->in[k] + (exists ? cell * first + offset : 0);
        outside |= (uint64_t)!exists << k;
    }
    return outside;
}

/* A run of cells from c on: `n` elements of each lane. */
static void turn_cells(lanes_state *s, char *to, const int64_t *c, int64_t n)
{
    const lanes_plan *plan = s->plan;
    uint64_t outside = set_rows_of_x(s, c);
    plan->ops->turn[width_of(plan->element)](to, s->rows, n);
    for (int k = 0; outside != 0 && k < plan->width; k++)
        if (outside >> k & 1)
            clear_lane(plan, to, k, n);
}

/* Bands of a single axis: columns that all lanes have are turned, others are filled lane by
 * lane. */
static void turn_line(lanes_state *s, const lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    int64_t size = plan->p->axis[0].size, lo = 0, hi = box->cells[0], one = plan->channels;
    int64_t column = plan->lanes * plan->element;
    lo = max_i64(lo, -(s->least_origin + box->first[0]));
    hi = min_i64(hi, size - (s->most_origin + box->first[0]));
    for (int64_t c = 0; c < box->cells[0]; c++) {
        int64_t at[TARN_MAX_SPATIAL] = {box->first[0] + c}, n = c == lo && hi > lo ? hi - lo : 1;
        turn_cells(s, s->tile + c * column, at, n * one);
        c += n - 1;
    }
}

/* Whether windows read cell c, as far as the axes before `axes` tell: large strides and dilation
 * leave rows out. */
static bool is_read(const lanes_plan *plan, const int64_t *c, int axes)
{
    for (int a = 0; a < axes; a++) {
        const tarn_axis *axis = &plan->axis[a];
        if (!axis->adaptive && axis->stride > 1 &&
            (axis->stride > axis->kernel || axis->dilation > 1)) {
            tarn_span windows = cell_windows(axis, c[a]);
            if (windows.lo >= windows.hi)
                return false;
        }
    }
    return true;
}

static void fill_tile(lanes_state *s, const lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    int64_t c[TARN_MAX_SPATIAL], n = plan->channels;
    char *to = s->tile;
    if (plan->banded && p->spatial == 1) {
        turn_line(s, box);
        return;
    }
    int axes = run_axis(p, plan->in, box->cells, plan->channels, plan->banded);
    for (int a = axes; a < p->spatial; a++)
        n *= box->cells[a];
    memcpy(c, box->first, sizeof c);
    do {
        if (is_read(plan, c, axes))
            turn_cells(s, to, c, n);
        to += n * plan->width * plan->element;
    } while (next_in_box(c, box->first, box->cells, axes));
}

/* ---- Windows -------------------------------------------------------------------------------- */

/* The run of windows from the k-th of the box on, or the first of it. */
static lanes_run run_from(const lanes_state *s, int64_t k)
{
    const lanes_plan *plan = s->plan;
    const int last = plan->p->spatial - 1;
    const tarn_axis *axis = &plan->axis[last];
    const int64_t o = s->runs_o + k, step = s->step[last], begin = o * axis->stride - axis->lo;
    const int64_t inside =
        axis->adaptive ? -1 : axis->size - 1 - (axis->kernel - 1) * axis->dilation;
    if (begin >= 0 && begin <= inside) /* nothing is clipped */
        return (lanes_run){.first = k,
                           .n = min_i64((inside - begin) / axis->stride + 1, s->runs_n - k),
                           .at = (begin - s->first[last]) * step,
                           .step = axis->stride * step,
                           .hi = (int32_t)axis->kernel,
                           .counted = (int32_t)axis->kernel};
    tarn_span taps = window_taps(axis, o);
    int64_t counted = plan->p->count_include_pad ? padded_taps(axis, o) : taps.hi - taps.lo;
    return (lanes_run){.first = k,
                       .n = 1,
                       .at = (span_at(&taps, taps.lo) - s->first[last]) * step,
                       .lo = (int32_t)taps.lo,
                       .hi = (int32_t)taps.hi,
                       .counted = (int32_t)counted};
}

/* Whether a window goes on with a run. */
static bool joins(const lanes_run *run, const lanes_run *next)
{
    return next->n == 1 && run->lo == next->lo && run->hi == next->hi &&
           run->counted == next->counted &&
           (run->n == 1 || next->at == run->at + run->n * run->step);
}

/* The windows of a box along the last axis. */
static void set_runs(lanes_state *s, const lanes_box *box)
{
    const int last = s->plan->p->spatial - 1;
    if (s->runs_o == box->o[last] && s->runs_n == box->n[last])
        return;
    s->runs_o = box->o[last];
    s->runs_n = box->n[last];
    s->run_count = 0;
    for (int64_t k = 0; k < s->runs_n;) {
        lanes_run next = run_from(s, k), *run = &s->runs[max_i64(s->run_count - 1, 0)];
        k += next.n;
        if (s->run_count > 0 && joins(run, &next)) {
            run->step = (next.at - run->at) / run->n;
            run->n++;
        } else
            s->runs[s->run_count++] = next;
    }
}

static void put_code(const lanes_plan *plan, char *to, int64_t tap)
{
    put_integer(to, (uint64_t)tap ^ UINT64_C(1) << (8 * plan->bytes - 1), plan->bytes);
}

/* The taps of the axes before the last in their order, from those of the first axis on. */
static void set_tap_rows(lanes_state *s)
{
    const lanes_plan *plan = s->plan;
    int last = plan->p->spatial - 1;
    s->row.rows = 1;
    s->row_at[0] = s->row_codes[0] = 0;
    for (int a = 0; a < last; a++) {
        const lanes_taps *taps = &s->clip[a];
        int64_t n = taps->hi - taps->lo;
        for (int64_t r = s->row.rows - 1; r >= 0; r--)
            for (int64_t j = n - 1; j >= 0; j--) {
                s->row_at[r * n + j] = s->row_at[r] + j * taps->step;
                s->row_codes[r * n + j] = s->row_codes[r] * plan->p->axis[a].kernel + taps->lo + j;
            }
        s->row.rows *= n;
    }
    for (int64_t r = 0; r < s->row.rows; r++)
        s->row_codes[r] *= plan->p->axis[last].kernel;
    for (int64_t k = 0; k * plan->bytes < (int64_t)sizeof s->first_codes; k++)
        put_code(plan, s->first_codes + k * plan->bytes, s->row_codes[0]);
}

/* Bands that begin before x have other first taps than the rest, in window o of the first axis. */
static void set_first_codes(lanes_state *s, int64_t o)
{
    const lanes_plan *plan = s->plan;
    const tarn_axis *axis = &plan->p->axis[0];
    int64_t inner = 1;
    for (int a = 1; a < plan->p->spatial; a++)
        inner *= plan->p->axis[a].kernel;
    for (int k = 0; k < plan->width; k++) {
        int64_t lo = window_taps(axis, s->lane[k].start + o).lo;
        put_code(plan, s->first_codes + k * plan->bytes, s->row_codes[0] + lo * inner);
    }
}

/* [S2] The steps of sums over the axes before the last. */
static void set_column(lanes_state *s)
{
    const int last = s->plan->p->spatial - 1;
    s->row.rows = 1; /* tells that this is done */
    s->row.first_step = last > 0 ? s->clip[0].step : s->row.tap_step;
    s->column_steps = s->column_pops = s->lists = 0;
    for (int a = 0; a < last; a++) {
        const lanes_taps *taps = &s->clip[a];
        s->column_steps = a == 0 ? list_steps(s->steps, taps->lo, taps->hi, taps->step)
                                 : repeat_steps(s->steps, s->steps, s->column_steps, s->column_pops,
                                                taps->lo, taps->hi, taps->step);
        s->column_pops = s->steps[s->column_steps - 1].pops;
    }
}

/* ... over the columns [lo,hi) of them, which fit: behind the lists that are there, or again from
 * the first on. */
static lanes_list *add_list(lanes_state *s, int64_t lo, int64_t hi)
{
    const bool line = s->plan->p->spatial == 1;
    /* A step has 4 taps of a line, but for two at its begin and one at its end. */
    const int64_t most = line ? (hi - lo) / 4 + 3 : s->column_steps * (hi - lo);
    const lanes_list *before = s->lists > 0 ? &s->list[s->lists - 1] : NULL;
    int64_t first = before ? before->first + before->count : 0;
    if (s->lists == MOST_LISTS || first + most > MOST_STEPS)
        first = s->lists = 0;
    lanes_list *list = &s->list[s->lists++];
    *list = (lanes_list){.lo = lo, .hi = hi, .first = first};
    list->count = line ? list_steps(s->steps + first, lo, hi, s->row.tap_step)
                       : repeat_steps(s->steps + first, s->steps, s->column_steps, s->column_pops,
                                      lo, hi, s->row.tap_step);
    return list;
}

static void set_columns(lanes_state *s, tarn_lane_row *row, int64_t lo, int64_t hi)
{
    const lanes_list *list = NULL;
    for (int k = 0; k < s->lists && !list; k++)
        if (s->list[k].lo == lo && s->list[k].hi == hi)
            list = &s->list[k];
    if (!list)
        list = add_list(s, lo, hi);
    row->steps = s->steps + list->first;
    row->step_count = list->count;
}

static void set_rows(lanes_state *s, const int64_t *o)
{
    const lanes_plan *plan = s->plan;
    int last = plan->p->spatial - 1;
    bool changed = s->row.rows == 0;
    s->row.from = s->cells;
    for (int a = 0; a < last; a++) {
        tarn_span taps = window_taps(&plan->axis[a], o[a]);
        lanes_taps clip = {taps.lo, taps.hi, taps.step * s->step[a]};
        s->row.from += (span_at(&taps, taps.lo) - s->first[a]) * s->step[a];
        const lanes_taps *old = &s->clip[a];
        changed |= clip.lo != old->lo || clip.hi != old->hi || clip.step != old->step;
        s->clip[a] = clip;
    }
    if (plan->sums && changed)
        set_column(s);
    if (!plan->sums && (changed || plan->banded))
        set_tap_rows(s);
    if (plan->codes && plan->banded && last > 0)
        set_first_codes(s, o[0]);
}

static void fold_alike(lanes_state *s, const tarn_lane_row *row)
{
    const lanes_plan *plan = s->plan;
    s->odd |= plan->sums    ? plan->ops->sum_lanes[plan->p->dtype](row)
              : plan->codes ? plan->ops->best_codes_lanes[plan->key](row)
                            : plan->ops->best_lanes[plan->key](row);
}

/* A sum of more steps than there is room for, of some lanes: columns that are halves of each other
 * [S1], a power of two of them at a time. */
static void sum_in_pieces(lanes_state *s, tarn_lane_row *row, int64_t most, int64_t lo, int64_t hi)
{
    enum { ROW_BYTES = STAGING_BYTES / 16 }; /* 2^16 taps are most */
    const lanes_plan *plan = s->plan;
    const char *from = row->from;
    int waiting = 0;
    for (int64_t piece = lo / most; piece * most < hi; piece++) {
        const int64_t begin = max_i64(lo, piece * most), end = min_i64(hi, (piece + 1) * most);
        row->to = s->staging + waiting * ROW_BYTES;
        row->from = from + (begin - lo) * row->tap_step;
        set_columns(s, row, begin, end);
        fold_alike(s, row);
        for (int pops = take_in(piece, 0, lo / most, end == hi, &waiting); pops > 0; pops--) {
            row->to -= ROW_BYTES;
            plan->ops->add_sums[plan->bytes == 8](row->to, row->to + ROW_BYTES, row->lanes);
        }
    }
}

/* Windows of many columns, each in as many lanes at a time as there is room for. */
static void fold_long(lanes_state *s, const tarn_lane_row *window, int64_t most, int64_t lo,
                      int64_t hi)
{
    const lanes_plan *plan = s->plan;
    const int64_t lanes = min_i64(plan->lanes, STAGING_BYTES / 16 / plan->bytes);
    const double wide = window->multiplies ? 1 / window->divisor : window->divisor;
    const float single = (float)wide;
    for (int64_t o = 0; o < window->outputs; o++)
        for (int64_t k = 0; k < plan->lanes; k += lanes) {
            const int64_t lane = min_i64(k, plan->lanes - lanes);
            char *to = window->to + o * window->to_step +
                       lane * (window->divides ? plan->element : plan->bytes);
            tarn_lane_row row = *window;
            row.from += o * window->window_step + lane * plan->element;
            row.lanes = lanes;
            row.outputs = 1;
            row.divides = false;
            sum_in_pieces(s, &row, most, lo, hi);
            if (window->divides)
                make_means(plan->ops, plan->bytes == 8, plan->p->dtype, to, s->staging,
                           plan->bytes == 4 ? (const void *)&single : &wide, 0, lanes);
            else
                memcpy(to, s->staging, (size_t)(lanes * plan->bytes));
        }
}

/* Columns whose steps there is room for, a power of two; of one axis, a step has up to four. */
static int64_t most_columns(const lanes_state *s)
{
    int64_t most = s->plan->p->spatial == 1 ? 2 * MOST_STEPS : 1;
    while (2 * most * s->column_steps <= MOST_STEPS && s->plan->p->spatial > 1)
        most *= 2;
    return most;
}

/* Windows of 2 or 3 taps on each axis, all of which exist. */
static void set_cube(const lanes_state *s, tarn_lane_row *row)
{
    const lanes_plan *plan = s->plan;
    const int last = plan->p->spatial - 1;
    const int64_t k = row->columns;
    row->cube = row->axes = 0;
    for (int a = 0; a < last && last < 3; a++) {
        row->cube_step[a] = s->clip[a].step;
        if (s->clip[a].hi - s->clip[a].lo != k || s->clip[a].lo > 0)
            return;
    }
    if (k < 2 || k > 3 || last > 2 || row->first_column > 0)
        return;
    row->cube_step[last] = row->tap_step;
    row->axes = last + 1;
    row->cube = (int)k;
}

static void fold_run(lanes_state *s, const lanes_run *run)
{
    const lanes_plan *plan = s->plan;
    const int64_t most = plan->sums ? most_columns(s) : INT64_MAX;
    tarn_lane_row row = s->row;
    row.from += run->at;
    row.outputs = run->n;
    row.window_step = run->step;
    row.first_column = run->lo;
    row.columns = run->hi - run->lo;
    row.to += run->first * row.to_step;
    row.codes += plan->codes ? run->first * row.codes_step : 0;
    if (plan->sums)
        set_cube(s, &row);
    if (row.columns > most) {
        fold_long(s, &row, most, run->lo, run->hi);
        return;
    }
    if (plan->sums && row.cube == 0)
        set_columns(s, &row, run->lo, run->hi);
    fold_alike(s, &row);
}

/* Windows [first,end) of the row. */
static void fold(lanes_state *s, int64_t first, int64_t end)
{
    for (int r = 0; r < s->run_count; r++) {
        lanes_run run = s->runs[r];
        int64_t skipped = max_i64(first - run.first, 0);
        run.n = min_i64(run.n, end - run.first) - skipped;
        run.first += skipped;
        run.at += skipped * run.step;
        if (run.n > 0)
            fold_run(s, &run);
    }
}

static char *output_at(const lanes_state *s, const lanes_lane *lane, int operand, const int64_t *o)
{
    const tarn_problem *p = s->plan->p;
    int64_t offset = offset_of(p, operand, o) + lane->start * p->stride[operand][0];
    return lane->base[operand] + offset * p->element_bytes[operand];
}

/* Where the first of the bands begins: any lane may have it. */
static int64_t first_start(const lanes_state *s)
{
    int64_t start = s->lane[0].start;
    for (int k = 1; k < s->used; k++)
        start = min_i64(start, s->lane[k].start);
    return start;
}

/* The windows of the row o, which is row `index` of the box. */
static void fold_row(lanes_state *s, const lanes_box *box, const int64_t *o, int64_t index)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    int last = p->spatial - 1;
    int64_t cell = plan->lanes * plan->bytes, n = box->n[last], kept = 0;
    if (plan->turned)
        kept = index * n * cell;
    s->row.tap_step = (p->axis[last].adaptive ? 1 : p->axis[last].dilation) * s->step[last];
    set_rows(s, o);
    s->row.to = plan->in_place ? output_at(s, &s->lane[0], plan->out, o) : s->values + kept;
    s->row.to_step = plan->in_place ? p->stride[plan->out][last] * plan->element : cell;
    s->row.codes = plan->saves ? output_at(s, &s->lane[0], OPERAND_SAVED, o) : s->codes + kept;
    s->row.codes_step = plan->saves ? p->stride[OPERAND_SAVED][last] : cell;
    s->row.saves = plan->saves;
    int64_t alone = 0;
    if (plan->codes && plan->banded && last == 0)
        for (int64_t start = first_start(s);
             alone < n && window_taps(&p->axis[0], start + o[0] + alone).lo > 0; alone++) {
            set_first_codes(s, o[0] + alone);
            fold(s, alone, alone + 1);
        }
    if (alone > 0)
        set_tap_rows(s);
    if (plan->sums && plan->in_place)
        fold_means(s, o);
    else
        fold(s, alone, n);
}

/* ---- Means ---------------------------------------------------------------------------------- */

/* [A2] What counts of window o on an axis. */
static int64_t counted_on(const tarn_problem *p, int a, int64_t o)
{
    tarn_span taps = window_taps(&p->axis[a], o);
    return p->count_include_pad ? padded_taps(&p->axis[a], o) : taps.hi - taps.lo;
}

/* What counts of a lane's windows on all axes but the last. */
static int64_t counted_before(const lanes_state *s, const lanes_lane *lane, const int64_t *o)
{
    const tarn_problem *p = s->plan->p;
    int64_t counted = 1;
    for (int a = 0; a + 1 < p->spatial; a++)
        counted *= counted_on(p, a, o[a] + (a == 0 ? lane->start : 0));
    return counted;
}

/* Divisors of the window k of a row, of which so many taps count on the last axis, for each lane;
 * returns whether they are the same. `before` is what counts on the other axes, by lane. */
static bool set_divisors(lanes_state *s, const int64_t *before, const int64_t *o, int64_t k,
                         int64_t columns)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    bool same = true, line = plan->banded && p->spatial == 1;
    for (int n = 0; n < (plan->banded ? plan->width : 1); n++) {
        int64_t counted = line ? counted_on(p, 0, s->lane[n].start + o[0] + k) : columns;
        put_one_divisor(plan->bytes == 8, s->staging + n * plan->bytes,
                        p->divisor > 0 ? p->divisor : before[n] * counted);
        same &= memcmp(s->staging, s->staging + n * plan->bytes, (size_t)plan->bytes) == 0;
    }
    return same;
}

/* The windows of a row, divided as they are summed. */
static void fold_means(lanes_state *s, const int64_t *o)
{
    int64_t before = counted_before(s, &s->lane[0], o), fixed = s->plan->p->divisor;
    s->row.divides = true;
    for (int r = 0; r < s->run_count; r++) {
        int64_t divisor = fixed > 0 ? fixed : before * s->runs[r].counted;
        s->row.multiplies = (divisor & (divisor - 1)) == 0;
        s->row.divisor = s->plan->bytes == 4 ? (double)(float)divisor : (double)divisor;
        if (s->row.multiplies)
            s->row.divisor = 1 / s->row.divisor;
        fold_run(s, &s->runs[r]);
    }
}

/* A row's sums become means, to be turned back. Windows of a run have the same divisor, but for
 * those of bands of a line. */
static void divide_row(lanes_state *s, const lanes_box *box, const int64_t *o, int64_t index)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    int last = p->spatial - 1;
    int64_t n, end = box->n[last], before[MOST_VECTOR_LANES];
    bool line = plan->banded && last == 0 && p->divisor == 0;
    const char *sums = s->row.to;
    char *to = s->values + index * end * plan->lanes * plan->element;
    const lanes_run *run = s->runs;
    for (int k = 0; k < (plan->banded ? plan->width : 1); k++)
        before[k] = counted_before(s, &s->lane[k], o);
    for (int64_t k = 0; k < end; k += n) {
        run += k == run->first + run->n;
        n = line ? 1 : run->n;
        bool same = set_divisors(s, before, o, k, run->counted);
        int64_t some = same ? n * plan->lanes : plan->width;
        for (int64_t i = 0; i < n * plan->lanes; i += some)
            make_means(plan->ops, plan->bytes == 8, p->dtype, to + i * plan->element,
                       sums + i * plan->bytes, s->staging, !same, some);
        to += n * plan->lanes * plan->element;
        sums += n * plan->lanes * plan->bytes;
    }
}

/* ---- Winners -------------------------------------------------------------------------------- */

void tarn_lanes_begin(lanes_state *s, const lanes_plan *plan)
{
    s->plan = plan;
    s->code_ops = plan->turned ? narrowest(plan->ops) : plan->ops;
    s->tile = s->arena;
    s->values = s->arena + plan->tile_bytes;
    s->codes = s->values + plan->value_bytes;
    s->runs_o = s->runs_n = -1;
    s->row = (tarn_lane_row){.lanes = plan->lanes,
                             .row_at = s->row_at,
                             .row_codes = s->row_codes,
                             .flip = plan->flip,
                             .first_codes = s->first_codes,
                             .steps = s->steps};
    if (plan->by_order || plan->other >= 0) {
        set_place_steps(&s->places, plan->p, plan->other == TARN_INDICES);
        tarn_list_places(&s->places, plan->other == TARN_INDICES);
    }
}

/* Of a row at once, if it is written side by side; otherwise window by window. */
static void look_up(lanes_state *s, const lanes_lane *lane, const char *codes, const int64_t *o,
                    int64_t n, int operand, int which)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    const int last = p->spatial - 1;
    const int64_t *stride = p->stride[operand], bytes = p->element_bytes[operand];
    const int64_t windows = stride[last] == plan->channels ? n : 1;
    int64_t at[TARN_MAX_SPATIAL];
    memcpy(at, o, sizeof at);
    at[0] += lane->start;
    place_look_up l = {.ops = plan->ops,
                       .code_ops = s->code_ops,
                       .which = which,
                       .width = width_of(plan->bytes),
                       .codes = codes,
                       .to = lane->base[operand] + offset_of(p, operand, at) * bytes,
                       .bytes = bytes,
                       .channels = plan->channels,
                       .o = at[last],
                       .windows = windows};
    if (operand != TARN_INDICES)
        l.from = lane->base[operand == TARN_Y ? TARN_X : TARN_DX];
    for (int a = 0; a < last; a++)
        l.place += (uint64_t)window_taps(&p->axis[a], at[a]).first * s->places.step[which][a];
    for (int64_t k = 0; k < n; k += windows, l.o++) {
        tarn_look_up(&s->places, &l);
        l.codes += plan->channels * plan->bytes;
        l.to += stride[last] * bytes;
    }
}

/* Saved winners go in runs, as long as the box has them. */
static void write_saved(const lanes_state *s, const lanes_lane *lane, const char *codes,
                        const lanes_box *box)
{
    static const int8_t kind[] = {[1] = 0, [4] = 1, [8] = 2};
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    int axes = run_axis(p, OPERAND_SAVED, box->n, plan->channels, 0);
    int64_t o[TARN_MAX_SPATIAL], n = plan->channels;
    for (int a = axes; a < p->spatial; a++)
        n *= box->n[a];
    memcpy(o, box->o, sizeof o);
    do {
        s->code_ops->save_codes[width_of(plan->bytes)][kind[p->element_bytes[OPERAND_SAVED]]](
            output_at(s, lane, OPERAND_SAVED, o), codes, n);
        codes += n * plan->bytes;
    } while (next_in_box(o, box->o, box->n, axes));
}

/* The winners of a lane's box. */
static void write_codes(lanes_state *s, const lanes_lane *lane, const char *codes,
                        const lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    int last = plan->p->spatial - 1;
    bool values = plan->by_order && lane->base[TARN_Y];
    int64_t o[TARN_MAX_SPATIAL];
    if (lane->base[OPERAND_SAVED])
        write_saved(s, lane, codes, box);
    if (!values && plan->other < 0)
        return;
    memcpy(o, box->o, sizeof o);
    do {
        if (values)
            look_up(s, lane, codes, o, box->n[last], TARN_Y, PLACE_IN_X);
        if (plan->other >= 0)
            look_up(s, lane, codes, o, box->n[last], plan->other, PLACE_OTHER);
        codes += box->n[last] * plan->channels * plan->bytes;
    } while (next_in_box(o, box->o, box->n, last));
}

/* ---- Back to rows --------------------------------------------------------------------------- */

static void turn_values_back(lanes_state *s, const lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    const tarn_problem *p = plan->p;
    int axes = run_axis(p, plan->out, box->n, plan->channels, 0);
    int64_t o[TARN_MAX_SPATIAL], n = plan->channels;
    const char *from = s->values;
    for (int a = axes; a < p->spatial; a++)
        n *= box->n[a];
    memcpy(o, box->o, sizeof o);
    do {
        void *rows[MOST_VECTOR_LANES];
        for (int k = 0; k < plan->width; k++)
            rows[k] = output_at(s, &s->lane[k], plan->out, o);
        plan->ops->turn_back[width_of(plan->element)](rows, from, n);
        from += n * plan->width * plan->element;
    } while (next_in_box(o, box->o, box->n, axes));
}

static void turn_codes_back(lanes_state *s, const lanes_box *box)
{
    const lanes_plan *plan = s->plan;
    void *rows[MOST_VECTOR_LANES];
    int64_t n = plan->channels;
    for (int a = 0; a < plan->p->spatial; a++)
        n *= box->n[a];
    for (int k = 0; k < plan->width; k++)
        rows[k] = s->tile + k * n * plan->bytes;
    plan->ops->turn_back[width_of(plan->bytes)](rows, s->codes, n);
    for (int k = 0; k < s->used; k++)
        write_codes(s, &s->lane[k], rows[k], box);
}
