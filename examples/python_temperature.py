#!/usr/bin/env python3
"""Pools a picture with smooth max at several temperatures: from the mean towards the maximum.

usage: python_temperature.py [IN.pgm [OUT.pgm]]     needs the packages numpy and tarn

Smooth max, log(sum(exp(beta*x)))/beta, lies log(n)/beta above the mean of n equal cells. Taking that
off gives a picture that goes from the mean (beta near 0) to the maximum (beta large).
OUT.pgm receives the pooled pictures side by side.
"""

import math
import os
import sys

import numpy

import tarn

KERNEL = 4
BETAS = (0.1, 3.0, 30.0, 1000.0)


def read_pgm(path):
    """A binary PGM file of bytes as numbers between 0 and 1."""
    with open(path, "rb") as file:
        words = [line.split(b"#")[0] for line in file.read().split(b"\n", 4)]
    header = b" ".join(words[:-1]).split()
    if header[0] != b"P5" or header[3] != b"255":
        sys.exit(f"{path} is not a binary PGM of bytes")
    width, height = int(header[1]), int(header[2])
    with open(path, "rb") as file:
        data = file.read()[-width * height:]
    return numpy.frombuffer(data, "uint8").reshape(1, height, width) / 255.0


def write_pgm(path, picture):
    with open(path, "wb") as file:
        file.write(b"P5\n%d %d\n255\n" % picture.shape[::-1])
        file.write(numpy.rint(255 * picture.clip(0, 1)).astype("uint8").tobytes())


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    x = read_pgm(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "data", "tarn.pgm"))
    mean, top = tarn.avg_pool2d(x, KERNEL), tarn.max_pool2d(x, KERNEL)
    pooled = []
    print("   beta   from the mean   from the maximum   (greatest distance, black is 0, white is 1)")
    for beta in BETAS:
        smooth = tarn.smooth_max_pool2d(x, KERNEL, beta=beta)
        y = smooth - math.log(KERNEL * KERNEL) / beta
        pooled.append(y[0])
        print(f"{beta:7}   {abs(y - mean).max():13.4f}   {abs(smooth - top).max():16.4f}")
        assert (smooth >= top).all() and (y <= top + 1e-12).all()
    if len(sys.argv) > 2:
        write_pgm(sys.argv[2], numpy.concatenate(pooled, axis=1))


if __name__ == "__main__":
    main()
