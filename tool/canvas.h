/* A drawing surface with two back ends: dots for PNG and the like, text for SVG. Drawings are made
 * of a few shapes, so that a new back end is a few functions. Coordinates count dots from the top
 * left; what lies outside is not drawn. All arithmetic is on integers: every machine draws the
 * same. */
#ifndef TARN_TOOL_CANVAS_H
#define TARN_TOOL_CANVAS_H

#include "colour_map.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct box {
    int x, y, width, height;
} box;

typedef struct canvas canvas;

typedef struct canvas_backend {
    void (*rectangle)(canvas *on, box at, colour fill);
    void (*disc)(canvas *on, int x, int y, int radius, colour fill);
    /* (x,y) is the left end of the top of a capital. */
    void (*text)(canvas *on, int x, int y, int size, colour fill, const char *text);
    /* columns x rows rectangles of equal size that fill `at`, whose sides are multiples of them. */
    void (*cells)(canvas *on, box at, int columns, int rows, const colour *fill);
    void (*finish)(canvas *on);
} canvas_backend;

struct canvas {
    const canvas_backend *backend;
    int width, height;
    unsigned char *data; /* dots: red, green, blue, row by row; or the text of the SVG */
    size_t bytes, room;
    bool no_memory; /* then nothing more is drawn */
};

enum { CANVAS_WIDEST = 16384 }; /* a surface larger than that on a side is refused */

/* White surfaces. False if there is no memory or the size is out of range; free with
 * canvas_close(). */
bool canvas_open_dots(canvas *surface, int width, int height);
bool canvas_open_svg(canvas *surface, int width, int height);
/* Completes `data`. False if memory ran out on the way. */
bool canvas_finish(canvas *surface);
void canvas_close(canvas *surface);

/* Shapes made of shapes. */
void canvas_rectangle(canvas *on, box at, colour fill);
void canvas_outline(canvas *on, box at, int thickness, colour fill);
void canvas_cells(canvas *on, box at, int columns, int rows, const colour *fill);
/* A disc with a ring around it. */
void canvas_mark(canvas *on, int x, int y, int radius, colour fill, colour ring);
void canvas_text(canvas *on, int x, int y, int size, colour fill, const char *text);
void canvas_text_centred(canvas *on, box in, int size, colour fill, const char *text);
/* Dots that a text of that size takes. */
int canvas_text_width(int size, const char *text);

#endif
