#!/usr/bin/env python3
"""Draws tarn.pgm and tarn.png, the pictures of the examples: a mountain lake at sunrise, grey and in colour.

usage: make_picture.py [FILE.pgm|FILE.png]...        without names: both, beside this script

Only + - * / and comparisons on numbers: no function of a mathematics library takes part, so every
machine draws the same bytes.
"""

import os
import struct
import sys
import zlib

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


def reflection(x, y):
    """What a point of the water shows: its depth in the picture, its wave, and a point of the land."""
    depth = (y - SHORE) / (HEIGHT - SHORE)
    wave = rough(x / mix(26.0, 44.0, depth), y / mix(1.1, 3.4, depth), 3)
    mirrored = 2.0 * SHORE - y + mix(1.5, 20.0, depth) * wave
    return depth, wave, x + 7.0 * wave * depth, min(mirrored, SHORE - 0.01)


def water(x, y):
    """The land upside down, shaken by waves that grow towards the viewer, and a path of light."""
    depth, wave, seen_x, seen_y = reflection(x, y)
    shade = mix(land(seen_x, seen_y) * 0.86, 62.0, 0.42 * depth)
    spread = mix(4.0, 26.0, depth)
    path = smooth(1.0 - abs(x - SUN_X - 14.0 * wave * depth) / spread)
    glitter = smooth((rough(x / 7.0, y / 1.3, 2) + 0.10) * 3.2)
    shade += 150.0 * path * glitter * (1.0 - 0.35 * depth) + 34.0 * wave
    return mix(shade, 222.0, 0.5 * smooth(1.0 - (y - SHORE) / 2.0))


# Colours by brightness: what is dark is cold, what the sun reaches is warm.
SKY = ((0, (10, 18, 44)), (70, (38, 62, 122)), (130, (104, 118, 176)), (180, (226, 158, 150)),
       (215, (252, 206, 146)), (255, (255, 250, 226)))
ROCK = ((0, (16, 16, 36)), (90, (74, 80, 122)), (150, (176, 132, 138)), (200, (246, 204, 178)),
        (255, (255, 250, 240)))
FIRS = ((0, (4, 12, 16)), (40, (18, 44, 44)), (80, (40, 84, 74)), (160, (206, 158, 132)),
        (255, (255, 246, 220)))


def land_colours(x, y):
    if y >= near_ridge(x):
        return FIRS
    return ROCK if y >= far_ridge(x) else SKY


def tinted(shade, colours):
    """The colour of a brightness, blended between the two that are given around it."""
    shade = min(max(shade, 0.0), 255.0)
    for (low, a), (high, b) in zip(colours, colours[1:]):
        if shade <= high:
            return tuple(mix(p, q, (shade - low) / (high - low)) for p, q in zip(a, b))
    return colours[-1][1]


def grey(x, y):
    return (land(x, y) if y < SHORE else water(x, y),)


def coloured(x, y):
    seen = (x, y) if y < SHORE else reflection(x, y)[2:]
    return tinted(grey(x, y)[0], land_colours(*seen))


def pixel(column, row, point):
    """The mean of four points of a cell, so that edges are not jagged."""
    corners = [point(column + dx, row + dy) for dy in (0.25, 0.75) for dx in (0.25, 0.75)]
    return [min(max(int(sum(lights) / 4.0 + 0.5), 0), 255) for lights in zip(*corners)]


def rows(point):
    return [bytes(light for x in range(WIDTH) for light in pixel(x, y, point)) for y in range(HEIGHT)]


def pgm():
    header = b"P5\n# a tarn, drawn by make_picture.py\n%d %d\n255\n" % (WIDTH, HEIGHT)
    return header + b"".join(rows(grey))


def png():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)  # 8 bits, red green blue
    lines = b"".join(b"\0" + row for row in rows(coloured))
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for path in sys.argv[1:] or [os.path.join(here, name) for name in ("tarn.pgm", "tarn.png")]:
        picture = png() if path.endswith(".png") else pgm()
        with open(path, "wb") as file:
            file.write(picture)


if __name__ == "__main__":
    main()
