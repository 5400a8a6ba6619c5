#include "panel.h"
#include "../src/checked.h"
#include "font.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONGEST_ROW = 960, /* dots of a slice of one row */
    LEAST_SLICE = 96,
    SLICE_GAP = 10,
    SLICE_LABEL = 20,
    TITLE_HEIGHT = 56, /* title, caption and the space below them */
    ROW_CELL = 44,     /* height of a cell where there is one row only */
    GRID_FROM = 12,    /* dots of a cell that is large enough for lines around it */
    BAR_GAP = 12,
    BAR_WIDTH = 14,
    TICK = 4,
    NUMBER_TEXT = 24
};

/* ---- Sheets --------------------------------------------------------------------------------- */

bool sheet_make(sheet *s, int slices, int rows, int columns)
{
    size_t count = (size_t)slices * (size_t)rows * (size_t)columns;
    *s = (sheet){.slices = slices, .rows = rows, .columns = columns, .factor = 1};
    s->cells = calloc(count > 0 ? count : 1, sizeof *s->cells);
    return s->cells != NULL;
}

void sheet_free(sheet *s)
{
    free(s->numbers);
    free(s->cells);
}

/* Means of factor x factor cells of one slice; a picture of pooling is drawn by pooling. */
static bool shrink_slice(const double *from, int64_t rows, int64_t columns, int64_t factor,
                         double *to, int to_rows, int to_columns)
{
    tarn_pool pool = tarn_avg_pool2d(min_i64(factor, rows), factor, factor);
    pool.ceil_mode = 1; /* what hangs over the edge is the mean of what is left */
    pool.count_include_pad = 0;
    tarn_view x = tarn_view_dense((double *)from, TARN_F64, 2, (int64_t[]){rows, columns});
    tarn_view y = tarn_view_dense(to, TARN_F64, 2, (int64_t[]){to_rows, to_columns});
    return tarn_pool_forward(&pool, &x, &y, NULL) == TARN_OK;
}

static int64_t slices_of(const stack *from, int channels)
{
    return from->planes / channels * from->depth;
}

/* Room for the slices of a stack after shrinking. */
static bool make_for_stack(sheet *s, const stack *from, int channels)
{
    int64_t slices = slices_of(from, channels), shown = min_i64(slices, SLICES_SHOWN);
    int64_t longest = max_i64(from->rows, from->columns);
    int64_t factor = max_i64(1, ceil_div(longest, from->rows == 1 ? LONGEST_ROW : PANEL_SIDE));
    if (!sheet_make(s, (int)shown, (int)ceil_div(from->rows, factor),
                    (int)ceil_div(from->columns, factor)))
        return false;
    s->left_out = slices - shown;
    s->factor = factor;
    return true;
}

/* Slice k of a channel: its first number. */
static const double *slice_numbers(const stack *from, int channels, int channel, int k)
{
    int64_t plane = k / from->depth * channels + channel, slice = k % from->depth;
    return from->numbers + (plane * from->depth + slice) * from->rows * from->columns;
}

/* Calls `take` with every slice of every channel, shrunk. False if there is no memory. */
static bool for_each_slice(sheet *s, const stack *from, int channels,
                           void (*take)(sheet *s, int k, int channel, const double *shrunk,
                                        double white),
                           double white)
{
    size_t count = (size_t)s->rows * (size_t)s->columns;
    double *shrunk = malloc((count > 0 ? count : 1) * sizeof *shrunk);
    bool fine = shrunk != NULL;
    for (int k = 0; fine && count > 0 && k < s->slices; k++)
        for (int c = 0; fine && c < channels; c++) {
            fine = shrink_slice(slice_numbers(from, channels, c, k), from->rows, from->columns,
                                s->factor, shrunk, s->rows, s->columns);
            if (fine)
                take(s, k, c, shrunk, white);
        }
    free(shrunk);
    return fine;
}

static void add_numbers(sheet *s, int k, int channel, const double *shrunk, double white)
{
    int64_t count = (int64_t)s->rows * s->columns;
    (void)channel, (void)white;
    for (int64_t i = 0; i < count; i++)
        s->numbers[k * count + i] += shrunk[i];
}

bool sheet_of_stack(sheet *s, const stack *from, int channels)
{
    if (!make_for_stack(s, from, channels))
        return false;
    size_t count = (size_t)s->slices * (size_t)s->rows * (size_t)s->columns;
    s->numbers = calloc(count > 0 ? count : 1, sizeof *s->numbers);
    return s->numbers && for_each_slice(s, from, channels, add_numbers, 0);
}

static void add_light(sheet *s, int k, int channel, const double *shrunk, double white)
{
    int64_t count = (int64_t)s->rows * s->columns;
    for (int64_t i = 0; i < count; i++)
        s->cells[k * count + i] |= (colour)colour_level(shrunk[i], 0, white) << (16 - 8 * channel);
}

bool sheet_of_colours(sheet *s, const stack *from, double white)
{
    return make_for_stack(s, from, 3) && for_each_slice(s, from, 3, add_light, white);
}

void sheet_paint(sheet *s, const colour_scale *scale)
{
    int64_t count = (int64_t)s->slices * s->rows * s->columns;
    for (int64_t k = 0; k < count; k++)
        s->cells[k] = colour_of_number(scale, s->numbers[k]);
}

/* ---- Measures ------------------------------------------------------------------------------- */

static int labelled(const panel *p)
{
    return p->sheet.slices > 1 ? SLICE_LABEL : 0;
}

static int slice_width(const panel *p)
{
    return p->sheet.columns * p->cell_width;
}

static int slice_height(const panel *p)
{
    return p->sheet.rows * p->cell_height;
}

/* So many slices in a row that the whole is about as wide as high. */
static int slices_in_row(const sheet *s)
{
    int in_row = 1;
    while (in_row < s->slices &&
           in_row * s->columns < (s->slices + in_row - 1) / in_row * s->rows && s->rows > 1)
        in_row++;
    return in_row;
}

void panel_measure(panel *p, int widest)
{
    const sheet *s = &p->sheet;
    bool one_row = s->rows == 1 && s->columns > 1;
    p->in_row = slices_in_row(s);
    int side = one_row ? LONGEST_ROW : (int)max_i64(PANEL_SIDE / p->in_row, LEAST_SLICE);
    int longest = (int)max_i64(1, max_i64(s->rows, s->columns));
    p->cell_width = (int)max_i64(1, min_i64(widest, side / longest));
    p->cell_height = one_row ? ROW_CELL : p->cell_width;
}

/* Dots of one of `cells` cells that share a side. */
static int share(int side, int cells, int widest)
{
    return (int)max_i64(1, min_i64(widest, side / (cells > 0 ? cells : 1)));
}

void panel_measure_like(panel *p, const panel *other, int widest)
{
    p->in_row = slices_in_row(&p->sheet);
    p->cell_width = share(slice_width(other), p->sheet.columns, widest);
    p->cell_height = share(slice_height(other), p->sheet.rows, widest);
}

static void bar_label(const panel *p, int which, char text[NUMBER_TEXT])
{
    double at[3] = {p->scale.high, p->scale.low / 2 + p->scale.high / 2, p->scale.low};
    snprintf(text, NUMBER_TEXT, "%.4g", at[which]);
}

/* Dots right of the slices. */
static int bar_room(const panel *p)
{
    int widest = 0;
    char text[NUMBER_TEXT];
    if (!p->has_bar)
        return 0;
    for (int k = 0; k < 3; k++) {
        bar_label(p, k, text);
        widest = (int)max_i64(widest, canvas_text_width(2, text));
    }
    return BAR_GAP + BAR_WIDTH + 2 * TICK + widest;
}

static int slices_width(const panel *p)
{
    return p->in_row * (slice_width(p) + SLICE_GAP) - SLICE_GAP;
}

static int slices_height(const panel *p)
{
    int lines = (p->sheet.slices + p->in_row - 1) / p->in_row;
    return (int)max_i64(lines, 1) * (slice_height(p) + SLICE_GAP + labelled(p)) - SLICE_GAP;
}

int panel_width(const panel *p)
{
    int title = canvas_text_width(2, p->title), caption = canvas_text_width(2, p->caption);
    return (int)max_i64(max_i64(title, caption), slices_width(p) + bar_room(p));
}

/* The bar needs room for its three labels. */
static int bar_height(const panel *p)
{
    return (int)max_i64(slices_height(p) - labelled(p), 3 * 2 * FONT_ASCENT + 12);
}

int panel_height(const panel *p)
{
    int slices = slices_height(p), bar = p->has_bar ? bar_height(p) + labelled(p) : 0;
    return TITLE_HEIGHT + (int)max_i64(slices, bar);
}

box panel_slice(const panel *p, int k)
{
    return (box){p->x + k % p->in_row * (slice_width(p) + SLICE_GAP),
                 p->y + TITLE_HEIGHT + labelled(p) +
                     k / p->in_row * (slice_height(p) + SLICE_GAP + labelled(p)),
                 slice_width(p), slice_height(p)};
}

box panel_cell(const panel *p, int k, int64_t row, int64_t column)
{
    box at = panel_slice(p, k);
    return (box){at.x + (int)column * p->cell_width, at.y + (int)row * p->cell_height,
                 p->cell_width, p->cell_height};
}

/* ---- Drawing -------------------------------------------------------------------------------- */

/* The number with as many digits, four at most, as fit; false if too few do to tell it. */
static bool fit_number(double number, int size, int room, char text[NUMBER_TEXT])
{
    for (int digits = 4; digits >= 1; digits--) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, number == 0 ? 0 : number);
        if (canvas_text_width(size, text) <= room)
            return digits > size || strtod(text, NULL) == number;
    }
    return false;
}

/* The largest text in which every number of the sheet fits its cell; 0 if none does. */
static int number_size(const panel *p)
{
    const sheet *s = &p->sheet;
    int64_t count = (int64_t)s->slices * s->rows * s->columns;
    char text[NUMBER_TEXT];
    if (!s->numbers || p->cell_width < 2 * GRID_FROM - 6)
        return 0;
    for (int size = 2; size >= 1; size--) {
        int64_t k = 0;
        while (k < count && fit_number(s->numbers[k], size, p->cell_width - 3 * size, text))
            k++;
        if (k == count)
            return size;
    }
    return 0;
}

static void draw_numbers(const panel *p, canvas *on, int k, int size)
{
    const sheet *s = &p->sheet;
    char text[NUMBER_TEXT];
    for (int row = 0; row < s->rows; row++)
        for (int column = 0; column < s->columns; column++) {
            int64_t i = ((int64_t)k * s->rows + row) * s->columns + column;
            if (fit_number(s->numbers[i], size, p->cell_width - 3 * size, text))
                canvas_text_centred(on, panel_cell(p, k, row, column), size,
                                    colour_for_text_on(s->cells[i]), text);
        }
}

static void draw_grid(const panel *p, canvas *on, box at)
{
    if (!p->with_grid || p->cell_width < GRID_FROM)
        return;
    for (int column = 1; column < p->sheet.columns; column++)
        canvas_rectangle(on, (box){at.x + column * p->cell_width, at.y, 1, at.height}, 0xffffff);
    for (int row = 1; row < p->sheet.rows; row++)
        canvas_rectangle(on, (box){at.x, at.y + row * p->cell_height, at.width, 1}, 0xffffff);
}

static void draw_slice(const panel *p, canvas *on, int k, int size)
{
    const sheet *s = &p->sheet;
    box at = panel_slice(p, k);
    char label[NUMBER_TEXT];
    canvas_cells(on, at, s->columns, s->rows, s->cells + (int64_t)k * s->rows * s->columns);
    draw_grid(p, on, at);
    if (size > 0)
        draw_numbers(p, on, k, size);
    canvas_outline(on, (box){at.x - 1, at.y - 1, at.width + 2, at.height + 2}, 1, PAPER_LINE);
    snprintf(label, sizeof label, "%d", k);
    if (s->slices > 1)
        canvas_text(on, at.x, at.y - SLICE_LABEL, 2, FAINT_INK, label);
}

/* The top is the highest number. */
static void draw_bar(const panel *p, canvas *on)
{
    char text[NUMBER_TEXT];
    int height = bar_height(p);
    box bar = {p->x + slices_width(p) + BAR_GAP, p->y + TITLE_HEIGHT + labelled(p), BAR_WIDTH,
               height};
    for (int row = 0; row < height; row++)
        canvas_rectangle(on, (box){bar.x, bar.y + row, BAR_WIDTH, 1},
                         colour_of_step(&p->scale, (height - 1 - row) * (COLOUR_STEPS - 1) /
                                                       (height > 1 ? height - 1 : 1)));
    canvas_outline(on, (box){bar.x - 1, bar.y - 1, BAR_WIDTH + 2, height + 2}, 1, PAPER_LINE);
    for (int k = 0; k < 3; k++) {
        int middle = bar.y + k * (height - 1) / 2;
        int top = bar.y + k * (height - 2 * FONT_ASCENT) / 2;
        canvas_rectangle(on, (box){bar.x + BAR_WIDTH, middle, TICK, 1}, INK);
        bar_label(p, k, text);
        canvas_text(on, bar.x + BAR_WIDTH + 2 * TICK, top, 2, INK, text);
    }
}

void panel_draw(const panel *p, canvas *on)
{
    int size = number_size(p);
    canvas_text(on, p->x, p->y, 2, INK, p->title);
    canvas_text(on, p->x, p->y + 2 * FONT_LINE + 2, 2, FAINT_INK, p->caption);
    for (int k = 0; k < p->sheet.slices; k++)
        draw_slice(p, on, k, size);
    if (p->has_bar)
        draw_bar(p, on);
}
