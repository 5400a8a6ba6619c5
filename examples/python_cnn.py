#!/usr/bin/env python3
"""Trains a small network on drawn digits twice: with PyTorch's pooling, then with tarn's.

The two start from the same weights and see the same pictures, so their loss curves lie on each other.

usage: python_cnn.py [STEPS]         60 unless given; needs the packages torch and tarn
"""

import sys

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


def train(pools, steps):
    generator = torch.Generator().manual_seed(2)
    model = network(pools)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        x, labels = pictures(64, generator)
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    theirs, ours = train(nn, steps), train(tarn.torch, steps)
    print("step   torch.nn   tarn.torch")
    for step in range(0, steps, max(1, steps // 10)):
        print(f"{step:4}   {theirs[step]:8.5f}   {ours[step]:10.5f}")
    apart = max(abs(a - b) for a, b in zip(theirs, ours))
    print(f"greatest distance of the two curves: {apart:.2g}")
    if apart > 1e-3 or not ours[-1] < ours[0] / 2:
        sys.exit("the curves differ, or nothing was learnt")


if __name__ == "__main__":
    main()
