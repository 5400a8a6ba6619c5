"""Libraries with a C interface, through peer_onednn.c and peer_xnnpack.c."""

import ctypes as C
import os

import numpy as np

from peer_call import BLOCK, Call, from_blocked, from_last, to_blocked

LAYOUTS = {"nchw": 0, "nhwc": 1, "nChw8c": 2}
DTYPES = {"f32": 0, "u8": 1, "bf16": 2}
OPS = {"max": 0, "avg": 1}
AXES = 12  # as PEER_AXES
PASSES = {"fwd": 0, "train": 1, "bwd": 2}


class NativeProblem(C.Structure):
    _fields_ = [(name, C.c_int32) for name in ("op", "pass_", "layout", "dtype", "spatial", "threads")] + \
               [(name, C.c_int64) for name in ("batch", "channels")] + \
               [(name, C.c_int64 * AXES) for name in ("size", "out", "kernel", "stride", "padding")] + \
               [(name, C.c_void_p) for name in ("x", "y", "gy", "gx")]


class Handle:
    """Closes what it opened."""

    def __init__(self, library, problem):
        self.library = library
        self.pointer = library.peer_open(C.byref(problem))

    def run(self, repeats):
        nanoseconds = self.library.peer_run(self.pointer, repeats)
        if nanoseconds < 0:
            raise RuntimeError("the call failed")
        return nanoseconds

    def __del__(self):
        if self.pointer:
            self.library.peer_close(self.pointer)


def empty_like_layout(n, c, size, dtype, layout):
    shape = {"nchw": (n, c, *size), "nhwc": (n, *size, c), "nChw8c": (n, c // BLOCK, *size, BLOCK)}[layout]
    return np.zeros(shape, dtype)


class Native:
    def __init__(self, who, layouts, directory, padding_counts):
        self.who, self.layouts, self.padding_counts = who, layouts, padding_counts
        self.library = C.CDLL(os.path.join(directory, f"libpeer_{who}.so"))
        self.library.peer_open.restype = C.c_void_p
        self.library.peer_run.restype = C.c_double
        self.library.peer_run.argtypes = [C.c_void_p, C.c_long]
        self.library.peer_close.argtypes = [C.c_void_p]
        self.library.peer_version.restype = C.c_char_p

    def version(self):
        return self.library.peer_version().decode()

    def describe(self, problem, name, layout, threads, arrays):
        n, c = problem.batch_and_channels
        axes = lambda values: (C.c_int64 * AXES)(*values)
        return NativeProblem(OPS[problem.op], PASSES[name], LAYOUTS[layout], DTYPES[problem.dtype], problem.spatial,
                             threads, n, c, axes(problem.size), axes(problem.out), axes(problem.kernels),
                             axes(problem.strides), axes(problem.paddings), *(a.ctypes.data for a in arrays))

    def call(self, problem, name, inputs, threads, layout):
        n, c = problem.batch_and_channels
        place = {"nchw": np.ascontiguousarray, "nhwc": lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1)),
                 "nChw8c": to_blocked}[layout]
        back = {"nchw": lambda a: a, "nhwc": from_last, "nChw8c": from_blocked}[layout]
        source = inputs.x_last if layout == "nhwc" else inputs.x
        cotangent = inputs.gy_last if layout == "nhwc" else inputs.gy
        x, gy = place(source), place(cotangent)
        y = empty_like_layout(n, c, problem.out, x.dtype, layout)
        gx = empty_like_layout(n, c, problem.size, x.dtype, layout) if name == "bwd" else y
        handle = Handle(self.library, self.describe(problem, name, layout, threads, (x, y, gy, gx)))
        if not handle.pointer:
            return []
        result = gx if name == "bwd" else y
        interior = problem.op == "avg" and problem.padding > 0 and not self.padding_counts
        return [Call(self.who, layout, lambda: handle.run(1), lambda: back(result), "padding not counted" * interior,
                     handle.run, interior, [x, y, gy, gx])]

    def calls(self, problem, name, inputs, threads):
        if problem.op not in OPS or problem.dtype not in DTYPES or not problem.kernels or problem.dilation > 1:
            return []
        found = []
        for layout in self.layouts:
            if layout != "nChw8c" or problem.batch_and_channels[1] % BLOCK == 0:
                found += self.call(problem, name, inputs, threads, layout)
        return found


def onednn(directory):
    return Native("onednn", ("nchw", "nhwc", "nChw8c"), directory, True)


def xnnpack(directory):
    return Native("xnnpack", ("nhwc",), directory, False)
