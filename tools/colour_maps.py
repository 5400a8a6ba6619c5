#!/usr/bin/env python3
"""Derives the control points of the colour maps of `tarn show`; not part of the build.

Both are curves in Oklab (L lightness, a and b the colour), where equal steps look about equally large:
- sequential: lightness rises evenly while the hue turns evenly at constant chroma, a helix, so every step
  has the same length: from the night blue of deep water over teal to pale light;
- diverging: two straight arms from near white, to blue for negative and to red for positive numbers, of
  the same lightness at the same distance from zero.

tool/colour_map.c holds what is printed; between the points it interpolates in sRGB.
"""

import math

POINTS = 9

SEQUENTIAL_LIGHTNESS = (0.24, 0.95)
SEQUENTIAL_HUE = (296.0, 108.0)  # degrees
SEQUENTIAL_CHROMA = 0.096  # about as much as the screen has all along the way

NEUTRAL_LIGHTNESS = 0.975
ARM_LIGHTNESS, ARM_CHROMA = 0.46, 0.165
NEGATIVE_HUE, POSITIVE_HUE = 258.0, 29.0


def encode(linear):
    """A linear component as sRGB, 0 to 255."""
    if not -1e-3 <= linear <= 1.001:
        raise ValueError("out of gamut: %g" % linear)
    linear = min(max(linear, 0.0), 1.0)
    value = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
    return int(255 * value + 0.5)


def srgb(lightness, chroma, hue):
    """Oklab in polar form to sRGB, by the matrices of its definition (B. Ottosson, 2020)."""
    a, b = (chroma * f(math.radians(hue)) for f in (math.cos, math.sin))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return tuple(
        encode(m[0] * long + m[1] * medium + m[2] * short)
        for m in (
            (4.0767416621, -3.3077115913, 0.2309699292),
            (-1.2684380046, 2.6097574011, -0.3413193965),
            (-0.0041960863, -0.7034186147, 1.7076147010),
        )
    )


def mix(ends, t):
    return ends[0] + (ends[1] - ends[0]) * t


def sequential(t):
    return srgb(mix(SEQUENTIAL_LIGHTNESS, t), SEQUENTIAL_CHROMA, mix(SEQUENTIAL_HUE, t))


def diverging(t):
    """t in [-1,1]."""
    hue = NEGATIVE_HUE if t < 0 else POSITIVE_HUE
    return srgb(mix((NEUTRAL_LIGHTNESS, ARM_LIGHTNESS), abs(t)), ARM_CHROMA * abs(t), hue)


def control_points():
    steps = [k / (POINTS - 1) for k in range(POINTS)]
    return {
        "sequential": [sequential(t) for t in steps],
        "diverging": [diverging(2 * t - 1) for t in steps],
    }


if __name__ == "__main__":
    for name, points in control_points().items():
        print(name, ", ".join("0x%02x%02x%02x" % point for point in points))
