"""Plots as SVG, written by hand: no library needed, and the files can be compared line by line."""

import math
from html import escape

from report_targets import SIZES, SWEPT, is_sweep, peer_ratios, sweep_time

COLOURS = {"max": "#c0392b", "min": "#2471a3", "avg": "#1e8449", "nchw": "#2471a3", "nhwc": "#d68910"}
FONT = 'font-family="sans-serif" font-size="11"'


class Svg:
    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = [f'<rect width="{width}" height="{height}" fill="white"/>']
        self.text(10, 18, title, size=14)

    def add(self, markup):
        self.parts.append(markup)

    def text(self, x, y, text, anchor="start", size=11, colour="#222"):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1.0):
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x, y, colour):
        self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>')

    def path(self, points, colour, dashed):
        route = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.add(f'<polyline points="{route}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" {FONT}>', file=file)
            print("\n".join(self.parts), file=file)
            print("</svg>", file=file)


class LogScale:
    """A logarithmic axis with marks at 1, 2, 5, 10, ..."""

    def __init__(self, values, begin, end):
        self.low, self.high = min(values) / 1.1, max(values) * 1.1
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)

    def marks(self):
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [m * 10.0 ** d for d in decades for m in (1, 2, 5) if self.low <= m * 10.0 ** d <= self.high]


# ---- Time against window size ----


def draw_sweep(svg, run, dtype, left, width):
    lines = {(op, who): [(k, t / 1e6) for k in SIZES if (t := sweep_time(run, op, dtype, k, who))]
             for op, d in SWEPT if d == dtype for who in ("tarn", "opencv")}
    lines = {key: points for key, points in lines.items() if points}
    if not lines:
        return
    across = LogScale(SIZES, left, left + width)
    up = LogScale([t for points in lines.values() for _, t in points], 330, 50)
    for mark in up.marks():
        svg.line(left, up(mark), left + width, up(mark))
        svg.text(left - 6, up(mark) + 4, f"{mark:g}", "end")
    for k in SIZES:
        svg.text(across(k), 348, str(k), "middle")
    for (op, who), points in lines.items():
        svg.path([(across(k), up(t)) for k, t in points], COLOURS[op], who != "tarn")
    svg.text(left, 42, f"{dtype}, ms")


def window_size(run, path):
    svg = Svg(860, 395, "Time against window size: stride 1, 2048x2048, one thread")
    draw_sweep(svg, run, "f32", 60, 340)
    draw_sweep(svg, run, "u8", 480, 340)
    for k, op in enumerate(("max", "min", "avg")):
        svg.text(60 + 60 * k, 375, op, colour=COLOURS[op])
    svg.text(260, 375, "solid: tarn, dashed: OpenCV; below: kernel size")
    svg.write(path)


# ---- One line for each row and pass ----


def dots(title, lines, unit_text, path):
    """lines: (label, {layout: value}); the unit is where the value is 1."""
    values = [v for _, by_layout in lines for v in by_layout.values()] + [1.0]
    left, top, step = 360, 60, 14
    svg = Svg(960, top + step * len(lines) + 20, title)
    scale = LogScale(values, left, 940)
    bottom = top + step * len(lines)
    for mark in scale.marks():
        svg.line(scale(mark), top - 8, scale(mark), bottom, "#888" if mark == 1 else "#ddd", 1.5 if mark == 1 else 1)
        svg.text(scale(mark), top - 14, f"{mark:g}", "middle")
    for k, (label, by_layout) in enumerate(lines):
        svg.text(left - 8, top + step * k + 9, label, "end", 10)
        for layout, value in by_layout.items():
            svg.dot(scale(value), top + step * k + 5, COLOURS[layout])
    for k, layout in enumerate(("nchw", "nhwc")):
        svg.text(10 + 50 * k, 38, layout, colour=COLOURS[layout])
    svg.text(120, 38, unit_text)
    svg.write(path)


def against_bound(run, path):
    lines = []
    for row, name in run.keys(1):
        bound = run.bound(row, name, 1)
        if bound and not is_sweep(row):
            lines.append((f"{row} {name}", {e.layout: e.ns / bound.ns for e in run.all(row, name, 1, who="tarn")}))
    dots("Time of every row and pass, relative to the streaming bound, one thread", lines, "1 = bound; less is better", path)


def against_peers(run, path):
    lines = {}
    for layout in ("nchw", "nhwc"):
        for row, name, mine, peer in peer_ratios(run, 1, layout):
            label = f"{row} {name} ({peer.label})"
            lines.setdefault(label, {})[layout] = peer.ns / mine.ns
    dots("Time of the fastest peer, in its best layout, relative to tarn's, one thread", list(lines.items()),
         "1 = as fast; more is better", path)
