"""Pooling as docs/spec.md tells it, in plain Python loops over NumPy arrays of float64.

Written from the page alone and sharing no code with the program that it judges. Leading axes come
first. Sums are exact while the numbers are small integers, so most tests compare without tolerance.
"""

import itertools
import math

import numpy as np


class Axis:
    """The windows of one axis: for each its taps (None for padding), and how many lie in the padded extent."""

    def __init__(self, taps, counted):
        self.taps = taps
        self.counted = counted


def sliding(size, kernel, stride, lo, hi, dilation, ceil):
    extent = dilation * (kernel - 1) + 1
    room = size + lo + hi - extent
    assert room >= 0
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + lo:
        count -= 1
    taps, counted = [], []
    for o in range(count):
        places = [o * stride - lo + dilation * j for j in range(kernel)]
        taps.append([p if 0 <= p < size else None for p in places])
        counted.append(sum(-lo <= p < size + hi for p in places))
    return Axis(taps, counted)


def adaptive(size, out):
    taps = [list(range(i * size // out, -(-(i + 1) * size // out))) for i in range(out)]
    return Axis(taps, [len(t) for t in taps])


def whole(size):
    return Axis([list(range(size))], [size])


class Pool:
    def __init__(self, op, axes, count_pad=True, divisor=None, beta=1.0, power=2.0, ties="first"):
        self.op, self.axes, self.count_pad = op, axes, count_pad
        self.divisor, self.beta, self.power, self.ties = divisor, beta, power, ties

    def windows(self):
        """Each output coordinate with its real taps, its number of padding taps and its divisor."""
        for o in itertools.product(*(range(len(a.taps)) for a in self.axes)):
            lists = [a.taps[i] for a, i in zip(self.axes, o)]
            taps = list(itertools.product(*lists))
            real = [t for t in taps if None not in t]
            counted = math.prod(a.counted[i] for a, i in zip(self.axes, o))
            divisor = self.divisor or (counted if self.count_pad else len(real))
            yield o, real, len(taps) - len(real), divisor

    def output_shape(self):
        return tuple(len(a.taps) for a in self.axes)

    def reached(self, plane, real):
        """The taps that reach the extreme, the first one first."""
        values = [plane[t] for t in real]
        best = max(values) if self.op == "max" else min(values)
        reached = [t for t, v in zip(real, values) if v == best]
        return reached[:1] if self.ties == "first" else reached

    def norm(self, plane, real):
        """Padding adds nothing."""
        return sum(abs(plane[t]) ** self.power for t in real) ** (1 / self.power)

    def weights(self, plane, real, padding, divisor):
        """The derivative of an output: the weight of each tap that has one."""
        if self.op in ("max", "min"):
            taps = self.reached(plane, real) if real else []
            share = 1 / len(taps) if self.ties == "split" and taps else 1
            return [(t, share) for t in taps]
        if self.op == "avg":
            return [(t, 1 / divisor) for t in real] if divisor else []
        if self.op == "lp":
            y = self.norm(plane, real)
            return [(t, math.copysign((abs(plane[t]) / y) ** (self.power - 1), plane[t]))
                    for t in real if plane[t] != 0]
        numbers = [self.beta * plane[t] for t in real]
        zeros = padding if self.count_pad else 0
        top = max(numbers + [0.0] * bool(zeros), default=0.0)
        total = sum(math.exp(v - top) for v in numbers) + zeros * math.exp(-top)
        return [(t, math.exp(v - top) / total) for t, v in zip(real, numbers)]

    def value(self, plane, real, padding, divisor):
        if self.op in ("max", "min"):
            return plane[self.reached(plane, real)[0]] if real else 0
        if self.op == "avg":
            return sum(plane[t] for t in real) / divisor if divisor else 0
        if self.op == "lp":
            return self.norm(plane, real)
        numbers = [self.beta * plane[t] for t in real]
        zeros = padding if self.count_pad else 0
        if not numbers and not zeros:
            return 0
        top = max(numbers + [0.0] * bool(zeros))
        total = sum(math.exp(v - top) for v in numbers) + zeros * math.exp(-top)
        return (top + math.log(total)) / self.beta

    def _planes(self, x):
        spatial = len(self.axes)
        lead = x.shape[: x.ndim - spatial]
        return lead, itertools.product(*(range(n) for n in lead))

    def forward(self, x):
        lead, planes = self._planes(x)
        y = np.zeros(lead + self.output_shape())
        for p in planes:
            for o, real, padding, divisor in self.windows():
                y[p + o] = self.value(x[p], real, padding, divisor)
        return y

    def indices(self, x):
        lead, planes = self._planes(x)
        result = np.zeros(lead + self.output_shape(), np.int64)
        for p in planes:
            for o, real, _, _ in self.windows():
                winner = self.reached(x[p], real)[0] if real else None
                result[p + o] = np.ravel_multi_index(winner, x[p].shape) if winner else -1
        return result

    def jvp(self, x, dx):
        lead, planes = self._planes(x)
        dy = np.zeros(lead + self.output_shape())
        for p in planes:
            for o, *window in self.windows():
                dy[p + o] = sum(w * dx[p][t] for t, w in self.weights(x[p], *window))
        return dy

    def vjp(self, x, gy):
        _, planes = self._planes(x)
        gx = np.zeros(x.shape)
        for p in planes:
            for o, *window in self.windows():
                for t, w in self.weights(x[p], *window):
                    gx[p][t] += w * gy[p + o]
        return gx
