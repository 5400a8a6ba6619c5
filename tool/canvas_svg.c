#include "canvas.h"
#include "font.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes behind the text and a closing zero. */
static bool reserve(canvas *on, size_t more)
{
    if (on->no_memory || more < on->room - on->bytes)
        return !on->no_memory;
    size_t room = 2 * (on->room + more) + 1;
    unsigned char *data = realloc(on->data, room);
    on->no_memory = !data;
    if (data) {
        on->data = data;
        on->room = room;
    }
    return data != NULL;
}

__attribute__((format(printf, 2, 3))) static void put(canvas *on, const char *format, ...)
{
    char line[320]; /* longer than any line below */
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= (int)sizeof line || !reserve(on, (size_t)length))
        return;
    memcpy(on->data + on->bytes, line, (size_t)length);
    on->bytes += (size_t)length;
}

static void svg_rectangle(canvas *on, box at, colour fill)
{
    put(on, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n", at.x, at.y,
        at.width, at.height, (unsigned)fill);
}

static void svg_disc(canvas *on, int x, int y, int radius, colour fill)
{
    put(on, "<circle cx=\"%d.5\" cy=\"%d.5\" r=\"%d.5\" fill=\"#%06x\"/>\n", x, y, radius,
        (unsigned)fill);
}

static void put_escaped(canvas *on, char letter)
{
    switch (letter) {
    case '&':
        put(on, "&amp;");
        break;
    case '<':
        put(on, "&lt;");
        break;
    case '>':
        put(on, "&gt;");
        break;
    default:
        put(on, "%c", letter >= ' ' && letter <= '~' ? letter : '?');
    }
}

/* The viewer's own font, stretched to the width of ours. */
static void svg_text(canvas *on, int x, int y, int size, colour fill, const char *text)
{
    if (!*text)
        return;
    put(on, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" textLength=\"%d\" fill=\"#%06x\">", x,
        y + FONT_ASCENT * size, 10 * size, canvas_text_width(size, text), (unsigned)fill);
    for (; *text; text++)
        put_escaped(on, *text);
    put(on, "</text>\n");
}

/* Runs of equal cells in a row, in units of cells. */
static void svg_cells(canvas *on, box at, int columns, int rows, const colour *fill)
{
    put(on, "<g shape-rendering=\"crispEdges\" transform=\"translate(%d,%d) scale(%d,%d)\">\n",
        at.x, at.y, at.width / columns, at.height / rows);
    for (int row = 0; row < rows; row++, fill += columns)
        for (int first = 0, end; first < columns; first = end) {
            for (end = first + 1; end < columns && fill[end] == fill[first];)
                end++;
            put(on, "<path fill=\"#%06x\" d=\"M%d %dh%dv1h%dz\"/>\n", (unsigned)fill[first], first,
                row, end - first, first - end);
        }
    put(on, "</g>\n");
}

static void svg_finish(canvas *on)
{
    put(on, "</g>\n</svg>\n");
}

static const canvas_backend svg = {svg_rectangle, svg_disc, svg_text, svg_cells, svg_finish};

bool canvas_open_svg(canvas *surface, int width, int height)
{
    *surface = (canvas){.backend = &svg, .width = width, .height = height};
    if (width < 1 || height < 1 || width > CANVAS_WIDEST || height > CANVAS_WIDEST)
        return false;
    put(surface,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\">\n<g font-family=\"monospace\" xml:space=\"preserve\">\n",
        width, height, width, height);
    svg_rectangle(surface, (box){0, 0, width, height}, 0xffffff);
    return !surface->no_memory;
}
