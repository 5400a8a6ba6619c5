/* A font of dots for the pictures: printable ASCII, five dots wide. */
#ifndef TARN_TOOL_FONT_H
#define TARN_TOOL_FONT_H

#include <stdbool.h>

enum {
    FONT_WIDTH = 5,
    FONT_HEIGHT = 9,  /* the lowest two rows are for descenders */
    FONT_ASCENT = 7,  /* rows above the baseline: the height of a capital */
    FONT_ADVANCE = 6, /* from one letter to the next */
    FONT_LINE = 11    /* from one line to the next */
};

/* Whether a dot of a letter is set; false outside the letter, '?' for letters the font does not
 * have. */
bool font_dot(char letter, int column, int row);

#endif
