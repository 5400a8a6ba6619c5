#include "colour_map.h"

enum { COLOUR_POINTS = 9, SEGMENT = 32 }; /* eight segments of 32 steps */

/* Derived by tools/colour_maps.py: equal steps of a number are steps that look equal. */
static const colour sequential[COLOUR_POINTS] = {0x251046, 0x252f66, 0x1a4f7e, 0x01708e, 0x1a8f97,
                                                 0x4cad9a, 0x82c79a, 0xbbdf9d, 0xf4f4a8};
static const colour diverging[COLOUR_POINTS] = {0x0753b1, 0x4c7dc5, 0x84a6d8, 0xbccee8, 0xf7f7f7,
                                                0xe6c3bd, 0xd39086, 0xbb5d51, 0xa02018};
static const colour not_a_number = 0xd81b8c;

colour_scale colour_scale_sequential(double low, double high)
{
    return (colour_scale){sequential, low, high};
}

colour_scale colour_scale_diverging(double greatest)
{
    return (colour_scale){diverging, -greatest, greatest};
}

static int component(colour c, int shift)
{
    return (int)(c >> shift & 255);
}

colour colour_mix(colour a, colour b, int t)
{
    colour mixed = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        int sum = component(a, shift) * (256 - t) + component(b, shift) * t;
        mixed |= (colour)((sum + 128) / 256) << shift;
    }
    return mixed;
}

colour colour_of_step(const colour_scale *scale, int k)
{
    int place = k * (COLOUR_POINTS - 1) * SEGMENT / (COLOUR_STEPS - 1); /* 0 .. 8*SEGMENT */
    int point = place / SEGMENT;
    if (point == COLOUR_POINTS - 1)
        return scale->points[point];
    return colour_mix(scale->points[point], scale->points[point + 1],
                      place % SEGMENT * (256 / SEGMENT));
}

int colour_level(double number, double low, double high)
{
    /* Halves, so that the width of a range up to the greatest number does not overflow. */
    double width = high / 2 - low / 2, t = (number / 2 - low / 2) / width;
    if (!(width > 0))
        return COLOUR_STEPS / 2;
    return (int)((t > 0 ? t < 1 ? t : 1 : 0) * (COLOUR_STEPS - 1) + 0.5);
}

colour colour_of_number(const colour_scale *scale, double number)
{
    if (number != number)
        return not_a_number;
    return colour_of_step(scale, colour_level(number, scale->low, scale->high));
}

colour colour_for_text_on(colour background)
{
    int luma = 299 * component(background, 16) + 587 * component(background, 8) +
               114 * component(background, 0);
    return luma > 140 * 1000 ? 0x000000 : 0xffffff;
}
