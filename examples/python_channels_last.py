#!/usr/bin/env python3
"""Pools a channels-last batch of NumPy: photographs as cameras and decoders give them.

Nothing is copied: the batch is looked at as (N, C, H, W), which is a matter of strides, and the result
lies channels last again.
"""

import numpy

import tarn


def main():
    batch = numpy.random.default_rng(0).integers(0, 256, (8, 120, 160, 3), dtype="uint8")  # N H W C
    x = batch.transpose(0, 3, 1, 2)  # the same memory as N C H W
    y = tarn.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)
    small = y.transpose(0, 2, 3, 1)  # N H W C again
    print(f"{batch.shape} -> {small.shape}, {small.dtype}, "
          f"row-major: {small.flags.c_contiguous}, brightest: {tarn.global_max_pool(x).max()}")
    assert numpy.shares_memory(batch, x) and small.flags.c_contiguous

    # The mean of bytes is exact and rounded once, half to even.
    corner = batch[0, :2, :2, 0].astype(int)
    assert small[0, 0, 0, 0] == round(corner.mean())

    # A buffer of one's own is filled again and again.
    out = numpy.empty_like(y)
    for _ in range(3):
        tarn.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False, out=out)
    assert (out == y).all()


if __name__ == "__main__":
    main()
