/* The panel of windows: their outlines over the input, and their winners. */
#ifndef TARN_TOOL_SHOW_WINDOWS_H
#define TARN_TOOL_SHOW_WINDOWS_H

#include "panel.h"

/* Cells [begin,end) of an axis of the input, beyond its ends where windows reach into padding. */
typedef struct stretch {
    int64_t begin, end;
} stretch;

/* The part of the input whose windows are drawn: all of a small one, a detail of a large one. */
typedef struct detail {
    stretch rows, columns;
    bool whole;
} detail;

detail windows_detail(const show_data *data);

/* The panel without its outlines. False if there is no memory. */
bool windows_panel(panel *p, const show_data *data, const detail *part);
/* What a caption should add, such as ", grey is padding". Static text. */
const char *windows_remark(const show_data *data, const detail *part);
/* Outlines and winners, over the panel drawn. */
void windows_draw(const panel *p, const show_data *data, const detail *part, canvas *on);

#endif
