#include "show_windows.h"
#include "../src/checked.h"

#include <stdlib.h>

enum {
    SMALL = 18,        /* an input with no longer side is drawn whole */
    SMALL_ROW = 40,    /* the same for one row */
    DETAIL_LEAST = 12, /* cells of a detail on a side, */
    DETAIL_MOST = 48,  /* and at most; if windows need more the input is drawn whole */
    WIDEST_CELL = 44,
    OUTLINES = 16,     /* on an axis, at most */
    MARKS = 4096,      /* with more windows only those with an outline have their winner marked */
    TAPS = 65536,      /* windows with more taps show their first winner only, not all of a tie */
    OVERLAP_DRAWN = 2, /* where more windows than that meet, only some outlines are drawn */
    PADDING_CELL = 0xe3e6ea
};

static const colour window_colours[4] = {0xd9480f, 0x1864ab, 0x2b8a3e, 0x9c36b5};
static const colour channel_colours[3] = {0xe03131, 0x2f9e44, 0x1971c2};

/* ---- Which part ----------------------------------------------------------------------------- */

/* The spatial axis of rows (behind == 1) or columns (0); -1 if there are no rows. */
static int axis_of(const show_data *data, int behind)
{
    return data->pool.spatial - 1 - behind;
}

static int64_t cells_on(const show_data *data, int axis)
{
    return axis < 0 ? 1 : data->size[axis];
}

/* The whole axis with the padding that windows reach into, as far as it is no larger than the
 * axis. */
static stretch whole_stretch(const show_data *data, int axis)
{
    int64_t size = cells_on(data, axis);
    if (axis < 0 || data->out[axis] == 0)
        return (stretch){0, size};
    reach first = window_reach(data, axis, 0), last = window_reach(data, axis, data->out[axis] - 1);
    return (stretch){max_i64(min_i64(first.first, 0), -size),
                     min_i64(max_i64(reach_end(&last), size), 2 * size)};
}

/* Cells that two windows beside each other span. */
static int64_t two_windows(const show_data *data, int axis)
{
    if (axis < 0 || data->out[axis] < 2)
        return cells_on(data, axis);
    reach a = window_reach(data, axis, 0), b = window_reach(data, axis, 1);
    return reach_end(&b) - a.first;
}

/* Writes the greatest and then the least number of each window; NULL if there is no memory. */
static double *extremes_of(tarn_pool pool, const tarn_view *x, const tarn_view *like, int64_t count)
{
    double *extremes = malloc((size_t)count * 2 * sizeof *extremes);
    tarn_view most = *like, least = *like;
    if (!extremes)
        return NULL;
    most.data = extremes;
    least.data = extremes + count;
    pool.op = TARN_MAX;
    bool fine = !tarn_pool_forward(&pool, x, &most, NULL);
    pool.op = TARN_MIN;
    if (fine && !tarn_pool_forward(&pool, x, &least, NULL))
        return extremes;
    free(extremes);
    return NULL;
}

/* The square of `cells` x `cells` of the first slice whose numbers differ most is worth looking at.
 * Squares overlap by half. The middle if there is no memory. */
static void find_contrast(const show_data *data, int64_t cells, int64_t *row, int64_t *column)
{
    int64_t kernel[2] = {min_i64(cells, data->x.rows), min_i64(cells, data->x.columns)};
    int64_t stride[2] = {max_i64(kernel[0] / 2, 1), max_i64(kernel[1] / 2, 1)};
    tarn_pool pool = tarn_max_pool_nd(2, kernel, stride, NULL);
    tarn_view x = tarn_view_dense(data->x.numbers, TARN_F64, 2, &data->x.rows), y = {0};
    bool fine = !tarn_output_view(&pool, &x, &y, NULL);
    int64_t squares = y.shape[0] * y.shape[1];
    double *extremes = fine ? extremes_of(pool, &x, &y, squares) : NULL, largest = -1;
    *row = (data->x.rows - kernel[0]) / 2;
    *column = (data->x.columns - kernel[1]) / 2;
    for (int64_t k = 0; extremes && k < squares; k++)
        if (extremes[k] - extremes[squares + k] > largest) {
            largest = extremes[k] - extremes[squares + k];
            *row = k / y.shape[1] * stride[0];
            *column = k % y.shape[1] * stride[1];
        }
    free(extremes);
}

/* `cells` cells from about `begin` on, beginning where a window does. */
static stretch stretch_from(const show_data *data, int axis, int64_t begin, int64_t cells)
{
    int64_t size = cells_on(data, axis);
    if (axis >= 0) {
        int64_t o = muldiv_floor(begin, data->out[axis], max_i64(size, 1));
        int64_t start = window_reach(data, axis, min_i64(o, data->out[axis] - 1)).first;
        begin = max_i64(0, min_i64(start, size - cells));
    }
    return (stretch){begin, min_i64(begin + cells, size)};
}

detail windows_detail(const show_data *data)
{
    int rows = axis_of(data, 1), columns = axis_of(data, 0);
    int64_t longest = max_i64(cells_on(data, rows), cells_on(data, columns)), row, column;
    int64_t wanted = max_i64(two_windows(data, rows), two_windows(data, columns));
    bool small = longest <= (cells_on(data, rows) == 1 ? SMALL_ROW : SMALL);
    if (small || wanted > DETAIL_MOST || stack_count(&data->y) == 0)
        return (detail){whole_stretch(data, rows), whole_stretch(data, columns), true};
    int64_t cells = max_i64(DETAIL_LEAST, wanted);
    find_contrast(data, cells, &row, &column);
    return (detail){stretch_from(data, rows, row, cells),
                    stretch_from(data, columns, column, cells), false};
}

/* ---- The cells ------------------------------------------------------------------------------ */

/* Slice k of the panel is this plane (the first of its channels) and this slice of the stack. */
static int64_t plane_of(const show_data *data, int k)
{
    return k / data->x.depth * data->channels;
}

/* Pale, so that the strong colours are those of the outlines. */
static colour background(const show_data *data, const colour_scale *scale, int k, int64_t row,
                         int64_t column)
{
    int64_t plane = plane_of(data, k), slice = k % data->x.depth;
    colour seen = 0;
    if (data->channels == 1)
        return colour_mix(colour_of_number(scale, stack_at(&data->x, plane, slice, row, column)),
                          0xffffff, 160);
    for (int c = 0; c < 3; c++)
        seen |= (colour)colour_level(stack_at(&data->x, plane + c, slice, row, column), 0,
                                     data->request->white)
                << (16 - 8 * c);
    return colour_mix(seen, 0xffffff, 96);
}

static bool inside(int64_t at, int64_t size)
{
    return at >= 0 && at < size;
}

bool windows_panel(panel *p, const show_data *data, const detail *part)
{
    int64_t rows = part->rows.end - part->rows.begin;
    int64_t columns = part->columns.end - part->columns.begin;
    int64_t factor = max_i64(1, ceil_div(max_i64(rows, columns), 2 * PANEL_SIDE));
    sheet *s = &p->sheet;
    if (!sheet_make(s, (int)min_i64(data->x.planes / data->channels * data->x.depth, SLICES_SHOWN),
                    (int)ceil_div(rows, factor), (int)ceil_div(columns, factor)))
        return false;
    s->factor = factor;
    for (int64_t i = 0; i < (int64_t)s->slices * s->rows * s->columns; i++) {
        int64_t row = part->rows.begin + i / s->columns % s->rows * factor;
        int64_t column = part->columns.begin + i % s->columns * factor;
        bool real = inside(row, data->x.rows) && inside(column, data->x.columns);
        s->cells[i] =
            real ? background(data, &p->scale, (int)(i / s->columns / s->rows), row, column)
                 : PADDING_CELL;
    }
    p->with_grid = true;
    panel_measure(p, WIDEST_CELL);
    return true;
}

/* ---- Outlines and winners ------------------------------------------------------------------- */

/* How the windows on one axis are drawn. */
typedef struct rhythm {
    int64_t first, last; /* windows that lie in the part, last included */
    int64_t step;        /* every step-th outline is drawn */
    int64_t colours;     /* colours and insets alternate so often: 1 where windows do not meet */
} rhythm;

/* Drawing one slice of the panel. */
typedef struct brush {
    const panel *panel;
    const show_data *data;
    const detail *part;
    canvas *on;
    int slice;
    int64_t depth_at[TARN_MAX_SPATIAL]; /* where the slice lies on the outer axes */
    rhythm rhythm[TARN_MAX_SPATIAL];
    bool mark_all; /* the winner of every window is marked, or of those with an outline only */
} brush;

/* Windows that share a cell. */
static int64_t overlap_on(const show_data *data, int axis)
{
    if (data->out[axis] < 2)
        return 1;
    reach a = window_reach(data, axis, 0), b = window_reach(data, axis, 1);
    return ceil_div(reach_end(&a) - a.first, max_i64(b.first - a.first, 1));
}

static bool lies_in(const reach *window, const stretch *part)
{
    return window->first >= part->begin && reach_end(window) <= part->end;
}

static rhythm rhythm_on(const show_data *data, int axis, const stretch *part)
{
    rhythm r = {.first = 0, .last = -1, .step = 1, .colours = 1};
    int64_t overlap = overlap_on(data, axis);
    for (int64_t o = 0; o < data->out[axis]; o++) {
        reach window = window_reach(data, axis, o);
        if (part && !lies_in(&window, part))
            continue;
        r.first = r.last < 0 ? o : r.first;
        r.last = o;
    }
    if (overlap <= OVERLAP_DRAWN)
        r.colours = overlap;
    else
        r.step = overlap;
    r.step = max_i64(r.step, ceil_div(r.last - r.first + 1, OUTLINES));
    return r;
}

/* The rhythm of every axis, and whether all winners can be marked. */
static void prepare(brush *b)
{
    int spatial = b->data->pool.spatial;
    int64_t windows = 1;
    for (int a = 0; a < spatial; a++) {
        const stretch *part = a == spatial - 1   ? &b->part->columns
                              : a == spatial - 2 ? &b->part->rows
                                                 : NULL;
        b->rhythm[a] = rhythm_on(b->data, a, part);
        int64_t here = b->rhythm[a].last - b->rhythm[a].first + 1;
        if (!checked_mul(windows, here, &windows))
            windows = INT64_MAX;
    }
    b->mark_all = windows <= MARKS;
}

const char *windows_remark(const show_data *data, const detail *part)
{
    brush b = {.data = data, .part = part};
    prepare(&b);
    for (int a = 0; a < data->pool.spatial; a++)
        if (b.rhythm[a].step > 1)
            return ", not all outlined";
    bool padded = part->rows.begin < 0 || part->columns.begin < 0 ||
                  part->rows.end > data->x.rows || part->columns.end > data->x.columns;
    return padded ? ", grey is padding" : "";
}

/* Dots from the left (or top) of the slice to the beginning of a cell. */
static int dots_to(const brush *b, int64_t cell, int64_t begin, int cell_dots)
{
    return (int)((cell - begin) * cell_dots / b->panel->sheet.factor);
}

/* The outline of a window, inset so that those of its neighbours stay visible. */
static box outline_of(const brush *b, const int64_t *o)
{
    int columns = axis_of(b->data, 0), rows = axis_of(b->data, 1);
    box at = panel_slice(b->panel, b->slice);
    reach across = window_reach(b->data, columns, o[columns]), down = {0, 1, 1};
    int inset_x = 1 + 3 * (int)(o[columns] % b->rhythm[columns].colours), inset_y = 1;
    if (rows >= 0) {
        down = window_reach(b->data, rows, o[rows]);
        inset_y += 3 * (int)(o[rows] % b->rhythm[rows].colours);
    }
    int left = dots_to(b, across.first, b->part->columns.begin, b->panel->cell_width);
    int right = dots_to(b, reach_end(&across), b->part->columns.begin, b->panel->cell_width);
    int top = dots_to(b, down.first, b->part->rows.begin, b->panel->cell_height);
    int bottom = dots_to(b, reach_end(&down), b->part->rows.begin, b->panel->cell_height);
    return (box){at.x + left + inset_x, at.y + top + inset_y, right - left - 2 * inset_x,
                 bottom - top - 2 * inset_y};
}

/* A number that differs between windows that meet. */
static int64_t pattern(const brush *b, const int64_t *o)
{
    int64_t which = 0;
    for (int a = 0; a < b->data->pool.spatial; a++)
        which = which * b->rhythm[a].colours + o[a] % b->rhythm[a].colours;
    return which;
}

static bool is_drawn(const brush *b, const int64_t *o)
{
    for (int a = 0; a < b->data->pool.spatial; a++)
        if ((o[a] - b->rhythm[a].first) % b->rhythm[a].step != 0)
            return false;
    return true;
}

/* Whether a window has taps in the slice that is being drawn. */
static bool meets_slice(const brush *b, const int64_t *o)
{
    for (int a = 0; a + 2 < b->data->pool.spatial; a++) {
        reach window = window_reach(b->data, a, o[a]);
        int64_t from = b->depth_at[a] - window.first;
        if (from < 0 || b->depth_at[a] >= reach_end(&window) || from % window.step != 0)
            return false;
    }
    return true;
}

/* The cells that a dilated window reads. */
static void draw_taps(const brush *b, const int64_t *o, colour fill)
{
    int columns = axis_of(b->data, 0), rows = axis_of(b->data, 1);
    int width = b->panel->cell_width, height = b->panel->cell_height;
    box at = panel_slice(b->panel, b->slice);
    reach across = window_reach(b->data, columns, o[columns]), down = {0, 1, 1};
    if (rows >= 0)
        down = window_reach(b->data, rows, o[rows]);
    if ((across.step == 1 && down.step == 1) || width < 12)
        return;
    for (int64_t j = 0; j < down.count; j++)
        for (int64_t i = 0; i < across.count; i++) {
            int x = dots_to(b, across.first + i * across.step, b->part->columns.begin, width);
            int y = dots_to(b, down.first + j * down.step, b->part->rows.begin, height);
            canvas_rectangle(
                b->on, (box){at.x + x + width / 3, at.y + y + height / 3, width / 3, height / 3},
                fill);
        }
}

static void draw_outline(const brush *b, const int64_t *o)
{
    if (!is_drawn(b, o) || !meets_slice(b, o))
        return;
    int thick = b->panel->cell_width >= 16 * b->panel->sheet.factor ? 2 : 1;
    canvas_outline(b->on, outline_of(b, o), thick, window_colours[pattern(b, o) % 4]);
    draw_taps(b, o, window_colours[pattern(b, o) % 4]);
}

/* Takes a cell of a plane apart; false if it is not in the slice that is being drawn. */
static bool find_cell(const brush *b, int64_t winner, int64_t *row, int64_t *column)
{
    const stack *x = &b->data->x;
    if (winner < 0 || winner / (x->rows * x->columns) != b->slice % x->depth)
        return false;
    *row = winner / x->columns % x->rows;
    *column = winner % x->columns;
    return true;
}

/* Marks of windows that share a cell lie beside each other in it, as do those of its channels. */
static void draw_mark(const brush *b, const int64_t *o, int channel, int64_t row, int64_t column)
{
    int columns = axis_of(b->data, 0), rows = axis_of(b->data, 1), channels = b->data->channels;
    int64_t across = b->rhythm[columns].colours * channels;
    int64_t down = rows >= 0 ? b->rhythm[rows].colours : 1;
    int64_t i = o[columns] % b->rhythm[columns].colours * channels + channel;
    int64_t j = rows >= 0 ? o[rows] % down : 0;
    box at = panel_slice(b->panel, b->slice);
    int left = dots_to(b, column, b->part->columns.begin, b->panel->cell_width);
    int top = dots_to(b, row, b->part->rows.begin, b->panel->cell_height);
    int x = at.x + left + (int)((2 * i + 1) * b->panel->cell_width / (2 * across));
    int y = at.y + top + (int)((2 * j + 1) * b->panel->cell_height / (2 * down));
    int radius =
        (int)min_i64(b->panel->cell_width / (2 * across), b->panel->cell_height / (2 * down));
    canvas_mark(b->on, x, y, (int)max_i64(2, min_i64(radius - 1, 9)),
                channels == 3 ? channel_colours[channel] : window_colours[pattern(b, o) % 4],
                0xffffff);
}

/* Where on a plane window o has tap t; -1 in the padding. */
static int64_t cell_of_tap(const show_data *data, const int64_t *o, const int64_t *t)
{
    int64_t cell = 0;
    for (int a = 0; a < data->pool.spatial; a++) {
        reach window = window_reach(data, a, o[a]);
        int64_t at = window.first + t[a] * window.step;
        if (!inside(at, data->size[a]))
            return -1;
        cell = cell * data->size[a] + at;
    }
    return cell;
}

/* Steps to the next tap of window o; false behind the last. */
static bool next_tap(const show_data *data, const int64_t *o, int64_t *t)
{
    int a = data->pool.spatial - 1;
    while (a >= 0 && ++t[a] == window_reach(data, a, o[a]).count)
        t[a--] = 0;
    return a >= 0;
}

static void mark_cell(const brush *b, const int64_t *o, int channel, int64_t cell)
{
    int64_t row, column;
    if (find_cell(b, cell, &row, &column))
        draw_mark(b, o, channel, row, column);
}

/* Every cell of a window that reaches its extreme. */
static void mark_ties(const brush *b, const int64_t *o, int channel, int64_t plane, double extreme)
{
    const stack *x = &b->data->x;
    int64_t t[TARN_MAX_SPATIAL] = {0};
    do {
        int64_t cell = cell_of_tap(b->data, o, t);
        if (cell >= 0 && x->numbers[plane * x->depth * x->rows * x->columns + cell] == extreme)
            mark_cell(b, o, channel, cell);
    } while (next_tap(b->data, o, t));
}

static bool shows_ties(const show_data *data, const int64_t *o)
{
    int64_t taps = data->pool.ties == TARN_TIES_FIRST ? INT64_MAX : 1;
    for (int a = 0; a < data->pool.spatial && taps <= TAPS; a++)
        if (!checked_mul(taps, window_reach(data, a, o[a]).count, &taps))
            return false;
    return taps <= TAPS;
}

static void draw_winners(const brush *b, const int64_t *o)
{
    const show_data *data = b->data;
    int64_t index = 0, windows = data->y.depth * data->y.rows * data->y.columns;
    for (int a = 0; a < data->pool.spatial; a++)
        index = index * data->out[a] + o[a];
    for (int c = 0; c < data->channels; c++) {
        int64_t plane = plane_of(data, b->slice) + c;
        double extreme = data->y.numbers[plane * windows + index];
        if (shows_ties(data, o) && extreme == extreme)
            mark_ties(b, o, c, plane, extreme);
        else
            mark_cell(b, o, c, data->winners[plane * windows + index]);
    }
}

/* Calls `draw` for every window of the part. */
static void for_each_window(const brush *b, void (*draw)(const brush *b, const int64_t *o))
{
    int spatial = b->data->pool.spatial, axis = 0;
    int64_t o[TARN_MAX_SPATIAL];
    for (int a = 0; a < spatial; a++) {
        o[a] = b->rhythm[a].first;
        if (b->rhythm[a].last < b->rhythm[a].first)
            return;
    }
    while (axis >= 0) {
        draw(b, o);
        for (axis = spatial - 1; axis >= 0 && (o[axis] += b->mark_all ? 1 : b->rhythm[axis].step) >
                                                  b->rhythm[axis].last;
             axis--)
            o[axis] = b->rhythm[axis].first;
    }
}

void windows_draw(const panel *p, const show_data *data, const detail *part, canvas *on)
{
    brush b = {.panel = p, .data = data, .part = part, .on = on};
    prepare(&b);
    for (b.slice = 0; b.slice < p->sheet.slices; b.slice++) {
        int64_t rest = b.slice % data->x.depth;
        for (int a = data->pool.spatial - 3; a >= 0; a--) {
            b.depth_at[a] = rest % data->size[a];
            rest /= data->size[a];
        }
        for_each_window(&b, draw_outline);
        if (data->winners)
            for_each_window(&b, draw_winners);
    }
}
