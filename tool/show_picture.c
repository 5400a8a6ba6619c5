#include "show_picture.h"
#include "../src/checked.h"
#include "../src/error.h"
#include "show_windows.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

enum {
    MARGIN = 24,
    HEADLINE = 40, /* the headline and the space below it */
    GAP = 36,      /* between panels */
    WIDEST = 1640, /* panels that do not fit go to the next row */
    WIDEST_CELL = 44,
    WIDEST_OUTPUT_CELL = 132,
    PANELS = 7,
    WINNER = 0xd9480f,
    DETAIL_FRAME = 0xd9480f
};

typedef struct picture {
    const show_data *data;
    detail part;
    panel panels[PANELS];
    int count;
    int windows; /* which panel shows the windows */
    int width, height;
} picture;

/* ---- Words ---------------------------------------------------------------------------------- */

static void format_shape(char *text, size_t size, const stack *s, int spatial)
{
    int length = 0;
    int64_t sides[4] = {s->planes, s->depth, s->rows, s->columns};
    for (int k = 0; k < 4; k++)
        if (k == 3 || (k == 2 && spatial > 1) || sides[k] > 1)
            length += snprintf(text + length, size - (size_t)length, "%s%lld", length ? "x" : "",
                               (long long)sides[k]);
}

/* Ends a caption with what was left out. */
static void caption_rest(panel *p, const picture *q)
{
    size_t used = strlen(p->caption), room = sizeof p->caption - used;
    if (p->sheet.factor > 1)
        snprintf(p->caption + used, room, ", drawn %lld:1", (long long)p->sheet.factor);
    else if (p->sheet.left_out > 0 || q->data->left_out > 0)
        snprintf(p->caption + used, room, ", first %d", p->sheet.slices);
}

static void caption_shape(panel *p, const picture *q, const stack *s, tarn_dtype dtype)
{
    char shape[96];
    format_shape(shape, sizeof shape, s, q->data->pool.spatial);
    snprintf(p->caption, sizeof p->caption, "%s %s", tarn_dtype_name(dtype), shape);
    caption_rest(p, q);
}

/* ---- Scales --------------------------------------------------------------------------------- */

/* Widens [low,high] by the finite numbers of a stack. */
static void widen(const stack *s, double *low, double *high)
{
    for (int64_t k = 0; k < stack_count(s); k++) {
        double number = s->numbers[k];
        if (number - number != 0) /* NaN and infinities */
            continue;
        *low = number < *low ? number : *low;
        *high = number > *high ? number : *high;
    }
}

/* x and y share one, so that the same colour is the same number. */
static colour_scale value_scale(const show_data *data)
{
    double low = DBL_MAX, high = -DBL_MAX;
    widen(&data->x, &low, &high);
    widen(&data->y, &low, &high);
    return low <= high ? colour_scale_sequential(low, high) : colour_scale_sequential(0, 0);
}

static colour_scale derivative_scale(const sheet *s)
{
    double low = 0, high = 0;
    stack all = {1, s->slices, s->rows, s->columns, s->numbers};
    widen(&all, &low, &high);
    return colour_scale_diverging(-low > high ? -low : high);
}

/* ---- Panels --------------------------------------------------------------------------------- */

/* Cells of the output are as large as the part of the input they stand for. */
static void measure(panel *p, const picture *q, bool output)
{
    if (output)
        panel_measure_like(p, &q->panels[0], WIDEST_OUTPUT_CELL);
    else
        panel_measure(p, WIDEST_CELL);
}

static bool add_values(picture *q, const stack *s, const char *title, tarn_dtype dtype, bool output)
{
    panel *p = &q->panels[q->count++];
    snprintf(p->title, sizeof p->title, "%s", title);
    bool colour_picture = q->data->channels == 3;
    bool fine = colour_picture ? sheet_of_colours(&p->sheet, s, q->data->request->white)
                               : sheet_of_stack(&p->sheet, s, 1);
    if (!fine)
        return false;
    p->scale = value_scale(q->data);
    p->has_bar = p->with_grid = !colour_picture;
    if (!colour_picture)
        sheet_paint(&p->sheet, &p->scale);
    measure(p, q, output);
    caption_shape(p, q, s, dtype);
    return true;
}

static bool add_derivative(picture *q, const stack *s, const char *title, const char *caption,
                           bool output)
{
    panel *p = &q->panels[q->count++];
    snprintf(p->title, sizeof p->title, "%s", title);
    if (!sheet_of_stack(&p->sheet, s, q->data->channels))
        return false;
    p->scale = derivative_scale(&p->sheet);
    p->has_bar = p->with_grid = true;
    sheet_paint(&p->sheet, &p->scale);
    measure(p, q, output);
    snprintf(p->caption, sizeof p->caption, "%s%s", caption,
             q->data->channels == 3 ? ", channels added" : "");
    caption_rest(p, q);
    return true;
}

static bool add_windows(picture *q)
{
    const show_data *data = q->data;
    panel *p = &q->panels[q->windows = q->count++];
    snprintf(p->title, sizeof p->title, "windows%s", data->winners ? ", winners" : "");
    p->scale = value_scale(data);
    if (!windows_panel(p, data, &q->part))
        return false;
    char shape[96];
    format_shape(shape, sizeof shape, &data->y, data->pool.spatial);
    snprintf(p->caption, sizeof p->caption, "%s%s", q->part.whole ? shape : "the framed part",
             windows_remark(data, &q->part));
    return true;
}

/* A cell that wins is marked; in colour it shines in the channels it wins in. */
static void light_winners(sheet *s, const show_data *data)
{
    const stack *won = &data->won;
    int64_t slice_cells = won->rows * won->columns;
    for (int64_t k = 0; k < stack_count(won); k++) {
        int64_t row = k / won->columns % won->rows, column = k % won->columns;
        int64_t plane = k / slice_cells / won->depth, depth = k / slice_cells % won->depth;
        int64_t slice = plane / data->channels * won->depth + depth;
        if (won->numbers[k] == 0 || slice >= s->slices)
            continue;
        colour *cell =
            &s->cells[(slice * s->rows + row / s->factor) * s->columns + column / s->factor];
        *cell = data->channels == 3 ? *cell | (colour)0xff0000 >> 8 * (plane % 3) : WINNER;
    }
}

/* The input, faint: towards white, or in colour towards black. */
static void paint_faint(sheet *s, const colour_scale *scale, bool colour_picture)
{
    for (int64_t k = 0; k < (int64_t)s->slices * s->rows * s->columns; k++)
        if (colour_picture)
            s->cells[k] = colour_mix(s->cells[k], 0x000000, 176);
        else
            s->cells[k] =
                colour_mix((colour)colour_level(s->numbers[k], scale->low, scale->high) * 0x010101,
                           0xffffff, 128);
}

static bool add_winners(picture *q)
{
    const show_data *data = q->data;
    bool colour_picture = data->channels == 3;
    panel *p = &q->panels[q->count++];
    if (!(colour_picture ? sheet_of_colours(&p->sheet, &data->x, data->request->white)
                         : sheet_of_stack(&p->sheet, &data->x, 1)))
        return false;
    colour_scale scale = value_scale(data);
    paint_faint(&p->sheet, &scale, colour_picture);
    light_winners(&p->sheet, data);
    panel_measure(p, WIDEST_CELL);
    snprintf(p->title, sizeof p->title, "winners");
    snprintf(p->caption, sizeof p->caption, "%s",
             colour_picture ? "in each channel" : "of all windows");
    return true;
}

static bool add_panels(picture *q)
{
    const show_data *data = q->data;
    bool fine = add_values(q, &data->x, "input x", data->x_view.dtype, false) && add_windows(q);
    if (fine && data->winners && !q->part.whole)
        fine = add_winners(q);
    fine = fine && add_values(q, &data->y, "output y", data->y_dtype, true);
    fine = fine && add_derivative(q, &data->gx, "gradient gx",
                                  data->request->gy ? "J' gy" : "of the sum of y", false);
    if (fine && data->dx.numbers)
        fine = add_derivative(q, &data->dx, "tangent dx", "a direction for x", false) &&
               add_derivative(q, &data->dy, "tangent dy", "J dx", true);
    return fine;
}

/* ---- The whole ------------------------------------------------------------------------------ */

/* Panels that do not fit in one row are shared by two, or as many as it takes. */
static int panels_in_row(const picture *q)
{
    int width = 2 * MARGIN - GAP;
    for (int k = 0; k < q->count; k++)
        width += panel_width(&q->panels[k]) + GAP;
    return width > WIDEST ? (q->count + 1) / 2 : q->count;
}

/* Places panels in rows and notes the size of the whole. */
static void arrange(picture *q, int headline)
{
    int x = MARGIN, y = MARGIN + HEADLINE, tallest = 0, in_row = 0, most = panels_in_row(q);
    q->width = headline + 2 * MARGIN;
    for (int k = 0; k < q->count; k++) {
        panel *p = &q->panels[k];
        if (in_row == most || (in_row > 0 && x + panel_width(p) + MARGIN > WIDEST)) {
            x = MARGIN;
            y += tallest + GAP;
            tallest = in_row = 0;
        }
        p->x = x;
        p->y = y;
        x += panel_width(p) + GAP;
        in_row++;
        tallest = (int)max_i64(tallest, panel_height(p));
        q->width = (int)max_i64(q->width, x - GAP + MARGIN);
    }
    q->height = y + tallest + MARGIN;
}

/* On the input: where the enlarged part lies. */
static void frame_detail(const picture *q, canvas *on)
{
    const panel *x = &q->panels[0];
    int64_t factor = x->sheet.factor;
    if (q->part.whole)
        return;
    for (int k = 0; k < x->sheet.slices; k++) {
        box first = panel_cell(x, k, q->part.rows.begin / factor, q->part.columns.begin / factor);
        box end = panel_cell(x, k, ceil_div(q->part.rows.end, factor),
                             ceil_div(q->part.columns.end, factor));
        box frame = {first.x - 2, first.y - 2, end.x - first.x + 4, end.y - first.y + 4};
        canvas_outline(on, frame, 2, DETAIL_FRAME);
    }
}

static void draw(const picture *q, canvas *on, const char *headline)
{
    canvas_text(on, MARGIN, MARGIN, 2, INK, headline);
    for (int k = 0; k < q->count; k++)
        panel_draw(&q->panels[k], on);
    windows_draw(&q->panels[q->windows], q->data, &q->part, on);
    frame_detail(q, on);
}

/* "lake.png: max k3s2p1 u8 1x3x120x160" */
static void write_headline(const show_data *data, char *text, size_t size)
{
    char problem[200];
    const tarn_view *file = &data->request->x.view;
    tarn_view x = tarn_view_dense(NULL, data->request->dtype, file->rank, file->shape);
    if (tarn_problem_format(&data->pool, &x, problem, sizeof problem) < 0)
        problem[0] = 0;
    snprintf(text, size, "%.200s: %s", data->request->name, problem);
}

tarn_status show_picture(const show_data *data, bool (*open)(canvas *on, int width, int height),
                         canvas *on, tarn_error *error)
{
    char headline[480];
    picture q = {.data = data, .part = windows_detail(data)};
    write_headline(data, headline, sizeof headline);
    *on = (canvas){0};
    bool fine = add_panels(&q);
    if (fine) {
        arrange(&q, canvas_text_width(2, headline));
        fine = open(on, q.width, q.height);
    }
    if (fine) {
        draw(&q, on, headline);
        fine = canvas_finish(on);
    }
    for (int k = 0; k < q.count; k++)
        sheet_free(&q.panels[k].sheet);
    return fine ? TARN_OK : tarn_fail(error, TARN_NO_MEMORY, NO_AXIS, "no memory for the picture");
}
