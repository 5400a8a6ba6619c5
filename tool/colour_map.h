/* Numbers to colours. */
#ifndef TARN_TOOL_COLOUR_MAP_H
#define TARN_TOOL_COLOUR_MAP_H

#include <stdint.h>

typedef uint32_t colour; /* 0xRRGGBB */

enum { COLOUR_STEPS = 256 }; /* colours of a map */

/* What a range of numbers looks like. */
typedef struct colour_scale {
    const colour *points; /* COLOUR_POINTS control points */
    double low, high;     /* the numbers at both ends */
} colour_scale;

/* Dark for low, light for high. */
colour_scale colour_scale_sequential(double low, double high);
/* Blue for negative, white for 0, red for positive; the ends are -greatest and greatest. */
colour_scale colour_scale_diverging(double greatest);

/* The step, 0 to COLOUR_STEPS-1, of a number in a range; the middle one if the range is empty. */
int colour_level(double number, double low, double high);
/* The colour of step k of COLOUR_STEPS. */
colour colour_of_step(const colour_scale *scale, int k);
/* The colour of a number: numbers beyond an end look like it, NaN is magenta. */
colour colour_of_number(const colour_scale *scale, double number);

/* t/256 of the way from a to b, 0 <= t <= 256. */
colour colour_mix(colour a, colour b, int t);
/* Black or white, whichever is easier to read on a colour. */
colour colour_for_text_on(colour background);

#endif
