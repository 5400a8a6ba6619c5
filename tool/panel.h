/* A labelled panel of a picture: slices of coloured cells, numbers in them where they fit, and a
 * bar that says which colour is which number. */
#ifndef TARN_TOOL_PANEL_H
#define TARN_TOOL_PANEL_H

#include "canvas.h"
#include "show_data.h"

/* Pictures to draw beside each other: slices x rows x columns numbers, or colours without
 * numbers. */
typedef struct sheet {
    int slices, rows, columns;
    int64_t left_out; /* slices that are not drawn */
    int64_t factor;   /* a drawn cell is the mean of factor x factor cells */
    double *numbers;  /* NULL: colours only */
    colour *cells;
} sheet;

/* Slices of a stack, made smaller if they are larger than a panel. With more than one channel the
 * channels are added. False if there is no memory; free with sheet_free(), then, too. */
bool sheet_of_stack(sheet *s, const stack *from, int channels);
/* The same in colour: three planes are red, green and blue; `white` is full light. */
bool sheet_of_colours(sheet *s, const stack *from, double white);
/* A black sheet of that shape, without numbers. */
bool sheet_make(sheet *s, int slices, int rows, int columns);
void sheet_free(sheet *s);
/* Colours the numbers. */
void sheet_paint(sheet *s, const colour_scale *scale);

typedef struct panel {
    char title[40], caption[160];
    sheet sheet;
    bool has_bar;
    colour_scale scale;
    bool with_grid;              /* lines between cells, if they are large enough */
    int cell_width, cell_height; /* dots */
    int in_row;                  /* slices beside each other */
    int x, y;                    /* top left, set by whoever arranges panels */
} panel;

/* The largest cells that let the slices fit a panel, but none larger than `widest`. */
void panel_measure(panel *p, int widest);
/* Slices as large as those of another panel, as far as whole dots allow. */
void panel_measure_like(panel *p, const panel *other, int widest);
int panel_width(const panel *p);
int panel_height(const panel *p);
/* Where slice k is drawn. */
box panel_slice(const panel *p, int k);
/* Where a cell of slice k is drawn. */
box panel_cell(const panel *p, int k, int64_t row, int64_t column);
void panel_draw(const panel *p, canvas *on);

enum {
    PANEL_SIDE = 320,
    SLICES_SHOWN = 9,
    INK = 0x22262b,
    FAINT_INK = 0x6b7280,
    PAPER_LINE = 0xc9cdd3
};

#endif
