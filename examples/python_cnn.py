#!/usr/bin/env python3
"""Trains a small network on drawn digits twice: with PyTorch's pooling and with tarn's, in turns.

The two start from the same weights and see the same pictures, so their loss curves lie on each other. The times
are those of a step (forward, backward, update), and of the pools in it alone.

usage: python_cnn.py [STEPS]         60 unless given; needs the packages torch and tarn
"""

import sys
import time

import torch
from torch import nn

import tarn.torch

# Seven strokes of a digital clock, as rows and columns of a 16x16 picture.
STROKES = [((2, 3), (4, 12)), ((2, 8), (11, 12)), ((8, 14), (11, 12)), ((13, 14), (4, 12)),
           ((8, 14), (4, 5)), ((2, 8), (4, 5)), ((7, 8), (4, 12))]
DIGITS = ["012345", "12", "01346", "01236", "1256", "02356", "023456", "012", "0123456", "012356"]


def pictures(count, generator):
    """Digits at random places under noise, and what they are."""
    labels = torch.randint(10, (count,), generator=generator)
    x = 0.4 * torch.randn(count, 1, 16, 16, generator=generator)
    for picture, label in zip(x, labels):
        down, right = torch.randint(-1, 2, (2,), generator=generator).tolist()
        for stroke in DIGITS[label]:
            (top, bottom), (left, end) = STROKES[int(stroke)]
            picture[0, top + down:bottom + down + 1, left + right:end + right + 1] += 1.0
    return x, labels


def network(pools):
    """Two convolutions, each pooled, and an average over what is left. `pools` has the modules."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), pools.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), pools.MaxPool2d(3, stride=2, padding=1),
        pools.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10))


class Training:
    """A network on its way, step by step."""

    def __init__(self, pools):
        self.generator = torch.Generator().manual_seed(2)
        self.model = network(pools)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.losses, self.seconds = [], []

    def step(self):
        x, labels = pictures(64, self.generator)
        begin = time.perf_counter()
        loss = nn.functional.cross_entropy(self.model(x), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seconds.append(time.perf_counter() - begin)
        self.losses.append(loss.item())


def seconds_of_pools(pools):
    """Of the three pools of the network, forward and backward, on tensors of its sizes."""
    shapes = (64, 8, 16, 16), (64, 16, 8, 8), (64, 16, 4, 4)
    modules = pools.MaxPool2d(2), pools.MaxPool2d(3, stride=2, padding=1), pools.AdaptiveAvgPool2d(2)
    leaves = [torch.randn(shape, requires_grad=True) for shape in shapes]
    gradients = [torch.ones_like(module(x)) for module, x in zip(modules, leaves)]
    begin = time.perf_counter()
    for module, x, gradient in zip(modules, leaves, gradients):
        torch.autograd.grad(module(x), x, gradient)
    return time.perf_counter() - begin


def report_times(theirs, ours):
    pools = [[seconds_of_pools(library) for library in (nn, tarn.torch)] for _ in range(50)]
    rows = {"a step": (theirs.seconds, ours.seconds), "its pools": zip(*pools)}
    print("least ms    torch.nn   tarn.torch")
    for name, (first, second) in rows.items():
        print(f"{name:9}   {1e3 * min(first):8.3f}   {1e3 * min(second):10.3f}")


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    theirs, ours = Training(nn), Training(tarn.torch)
    for _ in range(steps):
        theirs.step()
        ours.step()
    print("step        torch.nn   tarn.torch")
    for step in range(0, steps, max(1, steps // 10)):
        print(f"{step:4}        {theirs.losses[step]:8.5f}   {ours.losses[step]:10.5f}")
    report_times(theirs, ours)
    apart = max(abs(a - b) for a, b in zip(theirs.losses, ours.losses))
    print(f"greatest distance of the two curves: {apart:.2g}")
    if apart > 1e-3 or not ours.losses[-1] < ours.losses[0] / 2:
        sys.exit("the curves differ, or nothing was learnt")


if __name__ == "__main__":
    main()
