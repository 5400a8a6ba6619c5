/* The picture of `tarn show`: panels side by side. */
#ifndef TARN_TOOL_SHOW_PICTURE_H
#define TARN_TOOL_SHOW_PICTURE_H

#include "canvas.h"
#include "show_data.h"

/* Opens a canvas of the right size with `open` (one of canvas_open_*()) and draws. Errors:
 * NO_MEMORY. The caller closes the canvas, also after an error. */
tarn_status show_picture(const show_data *data, bool (*open)(canvas *on, int width, int height),
                         canvas *on, tarn_error *error);

#endif
