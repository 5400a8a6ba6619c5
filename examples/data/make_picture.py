#!/usr/bin/env python3
"""Draws tarn.pgm, the picture of the demonstration: a mountain lake at sunrise.

usage: make_picture.py [FILE]        FILE is tarn.pgm beside this script unless given

Only + - * / and comparisons on numbers: no function of a mathematics library takes part, so every
machine draws the same bytes.
"""

import os
import sys

WIDTH, HEIGHT = 160, 120
SHORE = 70  # the row where the water begins
SUN_X, SUN_Y, SUN_RADIUS = 101.0, 33.0, 7.0


def hashed(x, y):
    """A number in [0,1) that looks random, the same for the same cell."""
    h = (x * 374761393 + y * 668265263) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    return ((h ^ (h >> 16)) & 0xFFFF) / 65536.0


def smooth(t):
    t = min(max(t, 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


def mix(a, b, t):
    return a + (b - a) * t


def noise(x, y):
    """Value noise: random numbers on the grid of integers, blended in between."""
    column, row = int(x // 1), int(y // 1)
    tx, ty = smooth(x - column), smooth(y - row)
    top = mix(hashed(column, row), hashed(column + 1, row), tx)
    bottom = mix(hashed(column, row + 1), hashed(column + 1, row + 1), tx)
    return mix(top, bottom, ty)


def rough(x, y, octaves):
    """Noise with finer noise on top: rock, clouds, the line of a ridge. Around 0."""
    total, size = 0.0, 1.0
    for octave in range(octaves):
        total += size * (noise(x, y + 17 * octave) - 0.5)
        x, y, size = x * 2.0, y * 2.0, size * 0.5
    return total


def peak(x, top, height, slope):
    """How high a mountain with straight flanks stands over the shore at column x."""
    return max(height - slope * abs(x - top), 0.0)


def far_ridge(x):
    """The row where the pale ridge behind the lake begins."""
    mountains = max(peak(x, 64, 47, 0.98), peak(x, 30, 33, 0.70), peak(x, 132, 25, 0.50), 9.0)
    return SHORE - mountains - 5.0 * rough(x / 9.0, 3.5, 4)


def near_ridge(x):
    """The row where the dark slopes at both sides begin, firs included."""
    slopes = max(peak(x, -8, 45, 0.82), peak(x, 172, 46, 0.86), 2.5)
    fir = abs((x / 4.0) % 1.0 - 0.5) * 2.0  # 1 at the tip of a tree, 0 between two
    height = 2.0 + 5.5 * hashed(int(x // 4), 91)
    return SHORE - slopes - 3.0 * rough(x / 11.0, 8.5, 3) - height * fir


def sky(x, y):
    brightness = mix(70.0, 214.0, smooth(y / 62.0))
    brightness += 46.0 * rough(x / 34.0 + 5.0, y / 6.0, 4) * smooth((52.0 - y) / 30.0)
    dx, dy, edge = x - SUN_X, y - SUN_Y, SUN_RADIUS + 0.8
    distance2 = dx * dx + dy * dy
    brightness += 52.0 / (1.0 + distance2 / 420.0)
    inside = smooth(edge * edge / (distance2 + 0.01) - 0.62)
    return mix(brightness, 255.0, inside)


def far_rock(x, y):
    """Sunlit right of the summit, in shade left of it, snow at the top, mist at the foot."""
    depth = y - far_ridge(x)
    lit = smooth((x - 64.0 + 9.0 * rough(x / 7.0, y / 7.0, 3)) / 5.0 + 0.5)
    rock = mix(84.0, 148.0, lit) + 40.0 * rough(x / 5.0 - y / 6.0, y / 8.0, 3)
    snow_line = 40.0 + 22.0 * rough(x / 4.0, y / 9.0, 3)
    snow = smooth((snow_line - y) / 5.0) * smooth(depth / 1.5)
    rock = mix(rock, mix(168.0, 246.0, lit), snow)
    return mix(rock, 186.0, smooth((y - 54.0) / 18.0) * 0.8)


def near_rock(x, y):
    return 26.0 + 26.0 * smooth((y - 40.0) / 34.0) + 22.0 * rough(x / 2.5, y / 3.0, 2)


def land(x, y):
    """The picture above the shore."""
    if y >= near_ridge(x):
        return near_rock(x, y)
    return far_rock(x, y) if y >= far_ridge(x) else sky(x, y)


def water(x, y):
    """The land upside down, shaken by waves that grow towards the viewer, and a path of light."""
    depth = (y - SHORE) / (HEIGHT - SHORE)
    wave = rough(x / mix(26.0, 44.0, depth), y / mix(1.1, 3.4, depth), 3)
    mirrored = 2.0 * SHORE - y + mix(1.5, 20.0, depth) * wave
    shade = land(x + 7.0 * wave * depth, min(mirrored, SHORE - 0.01))
    shade = mix(shade * 0.86, 62.0, 0.42 * depth)
    spread = mix(4.0, 26.0, depth)
    path = smooth(1.0 - abs(x - SUN_X - 14.0 * wave * depth) / spread)
    glitter = smooth((rough(x / 7.0, y / 1.3, 2) + 0.10) * 3.2)
    shade += 150.0 * path * glitter * (1.0 - 0.35 * depth) + 34.0 * wave
    return mix(shade, 222.0, 0.5 * smooth(1.0 - (y - SHORE) / 2.0))


def pixel(column, row):
    """The mean of four points of a cell, so that edges are not jagged."""
    total = 0.0
    for dy in (0.25, 0.75):
        for dx in (0.25, 0.75):
            x, y = column + dx, row + dy
            total += land(x, y) if y < SHORE else water(x, y)
    return min(max(int(total / 4.0 + 0.5), 0), 255)


def main():
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tarn.pgm")
    path = sys.argv[1] if len(sys.argv) > 1 else default
    pixels = bytes(pixel(x, y) for y in range(HEIGHT) for x in range(WIDTH))
    with open(path, "wb") as file:
        file.write(b"P5\n# a tarn, drawn by make_picture.py\n%d %d\n255\n" % (WIDTH, HEIGHT))
        file.write(pixels)


if __name__ == "__main__":
    main()
