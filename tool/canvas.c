#include "canvas.h"
#include "font.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 4 }; /* a disc's edge is sampled SAMPLES x SAMPLES times a dot */

/* ---- Dots ----------------------------------------------------------------------------------- */

static void set_dot(canvas *on, int x, int y, colour fill)
{
    if (x < 0 || y < 0 || x >= on->width || y >= on->height)
        return;
    unsigned char *dot = on->data + ((size_t)y * (size_t)on->width + (size_t)x) * 3;
    dot[0] = (unsigned char)(fill >> 16);
    dot[1] = (unsigned char)(fill >> 8);
    dot[2] = (unsigned char)fill;
}

static colour get_dot(const canvas *on, int x, int y)
{
    if (x < 0 || y < 0 || x >= on->width || y >= on->height)
        return 0;
    const unsigned char *dot = on->data + ((size_t)y * (size_t)on->width + (size_t)x) * 3;
    return (colour)dot[0] << 16 | (colour)dot[1] << 8 | dot[2];
}

static int clamp(int value, int limit)
{
    return value < 0 ? 0 : value > limit ? limit : value;
}

static void dots_rectangle(canvas *on, box at, colour fill)
{
    int right = clamp(at.x + at.width, on->width), bottom = clamp(at.y + at.height, on->height);
    for (int y = clamp(at.y, on->height); y < bottom; y++)
        for (int x = clamp(at.x, on->width); x < right; x++)
            set_dot(on, x, y, fill);
}

/* How much of dot (dx,dy) from the centre of a disc lies in it, 0 .. SAMPLES*SAMPLES. */
static int disc_coverage(int dx, int dy, int radius)
{
    int inside = 0, limit = (2 * radius + 1) * SAMPLES; /* in halves of samples */
    for (int j = 0; j < SAMPLES; j++)
        for (int i = 0; i < SAMPLES; i++) {
            int x = 2 * SAMPLES * dx + 2 * i + 1 - SAMPLES;
            int y = 2 * SAMPLES * dy + 2 * j + 1 - SAMPLES;
            inside += x * x + y * y <= limit * limit;
        }
    return inside;
}

static void dots_disc(canvas *on, int x, int y, int radius, colour fill)
{
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++) {
            int share = disc_coverage(dx, dy, radius) * 256 / (SAMPLES * SAMPLES);
            set_dot(on, x + dx, y + dy, colour_mix(get_dot(on, x + dx, y + dy), fill, share));
        }
}

/* A dot of a letter in double size. Where two neighbours that meet at a corner agree against the
 * other two, the corner joins them: slanted strokes lose their steps. */
static bool doubled_dot(char letter, int x, int y)
{
    int column = x >> 1, row = y >> 1, across = x & 1 ? 1 : -1, down = y & 1 ? 1 : -1;
    bool side = font_dot(letter, column + across, row),
         above = font_dot(letter, column, row + down);
    bool other_side = font_dot(letter, column - across, row);
    bool below = font_dot(letter, column, row - down);
    if (side == above && side != below && above != other_side)
        return side;
    return font_dot(letter, column, row);
}

static void dots_letter(canvas *on, int left, int top, int size, colour fill, char letter)
{
    for (int y = 0; y < FONT_HEIGHT * size; y++)
        for (int x = 0; x < FONT_WIDTH * size; x++)
            if (size == 2 ? doubled_dot(letter, x, y) : font_dot(letter, x / size, y / size))
                set_dot(on, left + x, top + y, fill);
}

static void dots_text(canvas *on, int x, int y, int size, colour fill, const char *text)
{
    for (; *text; text++, x += FONT_ADVANCE * size)
        dots_letter(on, x, y, size, fill, *text);
}

static void dots_cells(canvas *on, box at, int columns, int rows, const colour *fill)
{
    int width = at.width / columns, height = at.height / rows;
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            dots_rectangle(on, (box){at.x + column * width, at.y + row * height, width, height},
                           *fill++);
}

static void dots_finish(canvas *on)
{
    (void)on; /* every dot is where it should be */
}

static const canvas_backend dots = {dots_rectangle, dots_disc, dots_text, dots_cells, dots_finish};

bool canvas_open_dots(canvas *surface, int width, int height)
{
    *surface = (canvas){.backend = &dots, .width = width, .height = height};
    if (width < 1 || height < 1 || width > CANVAS_WIDEST || height > CANVAS_WIDEST)
        return false;
    surface->bytes = surface->room = (size_t)width * (size_t)height * 3;
    surface->data = malloc(surface->bytes);
    if (surface->data)
        memset(surface->data, 255, surface->bytes);
    return surface->data != NULL;
}

/* ---- Any back end --------------------------------------------------------------------------- */

bool canvas_finish(canvas *surface)
{
    surface->backend->finish(surface);
    return !surface->no_memory;
}

void canvas_close(canvas *surface)
{
    free(surface->data);
    surface->data = NULL;
}

void canvas_rectangle(canvas *on, box at, colour fill)
{
    if (at.width > 0 && at.height > 0)
        on->backend->rectangle(on, at, fill);
}

void canvas_outline(canvas *on, box at, int thickness, colour fill)
{
    int inner = at.height - 2 * thickness;
    canvas_rectangle(on, (box){at.x, at.y, at.width, thickness}, fill);
    canvas_rectangle(on, (box){at.x, at.y + at.height - thickness, at.width, thickness}, fill);
    canvas_rectangle(on, (box){at.x, at.y + thickness, thickness, inner}, fill);
    canvas_rectangle(on, (box){at.x + at.width - thickness, at.y + thickness, thickness, inner},
                     fill);
}

void canvas_cells(canvas *on, box at, int columns, int rows, const colour *fill)
{
    if (columns > 0 && rows > 0)
        on->backend->cells(on, at, columns, rows, fill);
}

void canvas_mark(canvas *on, int x, int y, int radius, colour fill, colour ring)
{
    on->backend->disc(on, x, y, radius, ring);
    on->backend->disc(on, x, y, radius - (radius > 3 ? 2 : 1), fill);
}

void canvas_text(canvas *on, int x, int y, int size, colour fill, const char *text)
{
    on->backend->text(on, x, y, size, fill, text);
}

void canvas_text_centred(canvas *on, box in, int size, colour fill, const char *text)
{
    canvas_text(on, in.x + (in.width - canvas_text_width(size, text)) / 2,
                in.y + (in.height - FONT_ASCENT * size) / 2, size, fill, text);
}

int canvas_text_width(int size, const char *text)
{
    int letters = (int)strlen(text);
    return letters > 0 ? (letters * FONT_ADVANCE - (FONT_ADVANCE - FONT_WIDTH)) * size : 0;
}
