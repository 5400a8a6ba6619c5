/* Small arrays as text: input with its winners, output and gradient beside each other. */
#ifndef TARN_TOOL_SHOW_TEXT_H
#define TARN_TOOL_SHOW_TEXT_H

#include "show_data.h"

#include <stdio.h>

/* Prints as many of them as fit a line, none if not even the input does. A star marks numbers that
 * win. */
void show_text(const show_data *data, FILE *file);

#endif
