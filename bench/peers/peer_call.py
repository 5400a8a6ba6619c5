"""What every peer gives to the runner, and the layouts that peers want."""

from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Callable

import numpy as np

BLOCK = 8  # channels in a block of nChw8c, the blocked layout of AVX2 machines


@dataclass
class Call:
    who: str
    layout: str
    once: Callable  # one call
    result: Callable  # the result as an array of the logical shape
    detail: str = ""
    many: Callable = None  # nanoseconds of so many calls, where the peer has a loop of its own
    interior_only: bool = False  # its padding has another meaning: compare where there is none
    keep: list = field(default_factory=list)  # whatever must outlive the call

    def run(self, repeats):
        if self.many:
            return self.many(repeats)
        once = self.once
        begin = perf_counter_ns()
        for _ in range(repeats):
            once()
        return perf_counter_ns() - begin


@dataclass
class Inputs:
    """Arrays of logical shape [N, C, spatial...], in plain and in channels-last memory."""
    x: np.ndarray
    x_last: np.ndarray
    gy: np.ndarray
    gy_last: np.ndarray


def to_last(array):
    """Memory of a channels-last array: [N, spatial..., C], contiguous."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def from_last(memory):
    return np.moveaxis(memory, -1, 1)


def to_blocked(array):
    n, c, *size = array.shape
    return np.ascontiguousarray(np.moveaxis(array.reshape(n, c // BLOCK, BLOCK, *size), 2, -1))


def from_blocked(memory):
    n, blocks, *size, block = memory.shape
    return np.moveaxis(memory, -1, 2).reshape(n, blocks * block, *size)
