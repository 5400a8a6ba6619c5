"""Who is timed, and what each must compute: tarn and its families, the streaming bound, PyTorch, oneDNN, tarn.torch."""

import ctypes as C
from dataclasses import dataclass, field
import os
import sys
from time import monotonic_ns, process_time_ns
from typing import Callable

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "peers"))
import tarn_case
from tarn_case import DX, DY, FORWARD, FORWARD_INDICES, FORWARD_SAVED, GX, GY, INDICES, JVP, VJP, VJP_SAVED, X, Y

NUMPY = {**tarn_case.NUMPY, "i8": np.int8, "i16": np.int16, "i32": np.int32}
STEP, PATCHED = "step", "patched"
RESULTS = {"fwd": (Y,), "train": (Y,), "indices": (Y, INDICES), "jvp": (DY,), "bwd": (GX,), "bwd_x": (GX,), STEP: (Y, GX), PATCHED: (Y, GX)}
ISA_AVX512 = 1 << 4
threads = 1  # of everyone; run_population.py sets it
FAMILIES = {"tarn": 0, "tarn:avx2": 0b01111, "tarn:portable": 0b00011}  # masks of tarn.h: all, up to AVX2, portable


@dataclass
class Contestant:
    who: str
    passes: tuple  # the passes that this call does the work of
    once: Callable = None  # one call
    many: Callable = None  # so many calls, where it has a loop of its own
    results: Callable = None  # {operand: array} after a call; None where there is nothing to check
    overhead_ns: float = 0  # of a call, taken off; a quarter of the time stays at least
    samples: list = field(default_factory=list)

    def run(self, repeats):
        """Nanoseconds. By one thread: of processor time, which is the time that passes on one core, less what others
        use of the core meanwhile. By several: the time that passes."""
        once, now = self.once, process_time_ns if threads == 1 else monotonic_ns
        begin = now()
        if self.many:
            self.many(repeats)
        else:
            for _ in range(repeats):
                once()
        taken = now() - begin
        return max(taken - self.overhead_ns * repeats, taken / 4)


# ---- tarn and the bound ----


class Case(tarn_case.Case):
    """A problem with one mask of families, its tensors as arrays [batch, channels, space...]."""

    def __init__(self, library, problem, isa):
        self.library, self.problem = library, problem
        self.handle = library.bench_open(problem.text.encode(), threads, isa)

    def array(self, operand):
        view = self.library.bench_view(self.handle, operand).contents
        dtype = np.dtype(np.int64 if operand == INDICES else NUMPY[self.problem.dtype])
        shape, strides = view.shape[:view.rank], view.strides[:view.rank]
        elements = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        memory = (C.c_char * (elements * dtype.itemsize)).from_address(view.data)
        return np.lib.stride_tricks.as_strided(np.frombuffer(memory, dtype), shape, [s * dtype.itemsize for s in strides])

    def passes(self):
        """{name: number}; without winners the only backward pass is that from x."""
        found = {"fwd": FORWARD, "train": FORWARD_SAVED, "indices": FORWARD_INDICES, "jvp": JVP, "bwd": VJP_SAVED,
                 "bwd_x": VJP}
        found = {name: number for name, number in found.items() if self.has(number)}
        if "bwd_x" in found and "bwd" not in found:
            found["bwd"] = found.pop("bwd_x")
        return found


def load_tarn(build):
    library = tarn_case.load(os.path.join(build, "bench", "libtarn_bench_parts.so"))
    library.tarn_isa_available.restype = C.c_uint32
    library.tarn_version.restype = C.c_char_p
    return library


def families(library):
    """The masks that differ on this machine."""
    has_avx512 = library.tarn_isa_available() & ISA_AVX512
    return {who: mask for who, mask in FAMILIES.items() if has_avx512 or who != "tarn:avx2"}


def tarn_contestants(case, who):
    return [Contestant(who, (name,), many=lambda repeats, number=number: case.run(number, threads, repeats))
            for name, number in case.passes().items()]


def bound_contestants(case, passes):
    """The bytes of a step are those of its two passes."""
    def moved(name):
        parts = ("fwd", "bwd") if name in (STEP, PATCHED) else (name,)
        return tuple(map(sum, zip(*(case.bytes(case.passes()[part]) for part in parts))))
    run = case.library.bench_bound
    return [Contestant("bound", (name,), many=lambda repeats, b=moved(name), bypass=bypass: run(*b, threads, bypass, repeats))
            for name in passes for bypass in (False, True)]


# ---- oneDNN ----

ONEDNN_AXES = 12  # DNNL_MAX_NDIMS
ONEDNN_DTYPES = ("f32", "bf16", "f16", "f64", "u8", "i8", "i32")


class OnednnProblem(C.Structure):
    _fields_ = [(name, C.c_int32) for name in "is_max counts_padding pass_ channels_last dtype spatial".split()] + \
               [(name, C.c_int64 * ONEDNN_AXES) for name in "shape out kernel stride dilation lo hi".split()] + \
               [(name, C.c_void_p) for name in "x y gy gx".split()]


class Onednn:
    """Through peer_onednn3.c. The library on PyPI hands every call to a thread of SYCL; what that takes is
    measured on a single element and taken off its times."""

    def __init__(self, path):
        self.library = library = C.CDLL(path)
        library.onednn_open.restype = C.c_void_p
        library.onednn_run.restype, library.onednn_run.argtypes = C.c_bool, [C.c_void_p, C.c_long]
        library.onednn_close.argtypes = [C.c_void_p]
        library.onednn_version.restype = C.c_char_p
        self.handles = []
        self.submission_ns = self.measure_submission()

    def version(self):
        return f"{self.library.onednn_version().decode()} (less {self.submission_ns / 1e3:.1f} us to submit a call)"

    def measure_submission(self):
        x, y = np.zeros(1, np.float32), np.zeros(1, np.float32)
        ones = lambda count: (C.c_int64 * ONEDNN_AXES)(*[1] * count)
        pointers = [a.ctypes.data for a in (x, y, y, x)]
        none = ones(0)
        handle = self.open(OnednnProblem(1, 1, 0, 0, 0, 2, ones(4), ones(4), ones(2), ones(2), none, none, none, *pointers))
        if not handle:
            raise OSError("it has no engine for this CPU")
        empty = Contestant("onednn", (), many=lambda n: self.run(handle, n))
        best = min(empty.run(100) / 100 for _ in range(20))
        self.close()
        return best

    def open(self, problem):
        handle = self.library.onednn_open(C.byref(problem))
        if handle:
            self.handles.append(handle)
        return handle

    def close(self):
        for handle in self.handles:
            self.library.onednn_close(handle)
        self.handles = []

    def run(self, handle, repeats):
        if not self.library.onednn_run(handle, repeats):
            raise RuntimeError("oneDNN: the call failed")

    def windows(self, p, out):
        """Kernel, stride, dilation and padding as oneDNN has them, or None."""
        axes = range(p.spatial)
        if p.window == "sliding":
            # The last window of ceil mode is padding to oneDNN, which would count.
            if p.op == "avg" and p.ceil:
                return None
            reach = [(out[a] - 1) * p.stride[a] + (p.kernel[a] - 1) * p.dilation[a] + 1 - p.size[a] - p.pad_lo[a] for a in axes]
            return p.kernel, p.stride, [e - 1 for e in p.dilation], p.pad_lo, [max(h, r) for h, r in zip(p.pad_hi, reach)]
        if any(n % o for n, o in zip(p.size, out)):
            return None
        kernel = [n // o for n, o in zip(p.size, out)]
        return kernel, kernel, [0 for _ in axes], [0 for _ in axes], [0 for _ in axes]

    def contestants(self, p, case):
        out = case.array(Y).shape[2:]
        if p.op not in ("max", "avg") or p.dtype not in ONEDNN_DTYPES or p.spatial > 3 or not self.windows(p, out):
            return []
        y, gx = (np.empty_like(case.array(operand)) for operand in (Y, GX))  # in the same order of memory
        pointers = [a.ctypes.data for a in (case.array(X), y, case.array(GY), gx)]
        axes = lambda values: (C.c_int64 * ONEDNN_AXES)(*values)
        wanted = case.passes() if p.ties == "first" else ("fwd",)
        found = []
        for number, (passes, result) in enumerate(((("fwd",), {Y: y}), (("train",), {Y: y}), (("bwd", "bwd_x"), {GX: gx}))):
            passes = tuple(name for name in passes if name in wanted)
            handle = passes and self.open(OnednnProblem(
                p.op == "max", p.counts_padding, number, p.layout == "last", ONEDNN_DTYPES.index(p.dtype), p.spatial,
                axes(p.shape), axes((*p.shape[:2], *out)), *map(axes, self.windows(p, out)), *pointers))
            if handle:
                found.append(Contestant("onednn", passes, many=lambda n, h=handle: self.run(h, n),
                                        results=lambda r=result: r, overhead_ns=self.submission_ns))
        return found
