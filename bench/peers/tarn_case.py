"""tarn itself, through the shared library that the benchmark is made of (bench/bench_case.h)."""

import ctypes as C

import numpy as np

MAX_RANK = 64
X, Y, DX, DY, GX, GY, INDICES, SAVED = range(8)
FORWARD, FORWARD_SAVED, FORWARD_INDICES, JVP, VJP, VJP_SAVED = range(6)
NUMPY = {"f64": np.float64, "f32": np.float32, "bf16": np.uint16, "f16": np.float16, "u8": np.uint8}


class View(C.Structure):
    _fields_ = [("data", C.c_void_p), ("dtype", C.c_int), ("rank", C.c_int),
                ("shape", C.c_int64 * MAX_RANK), ("strides", C.c_int64 * MAX_RANK)]


def load(path):
    library = C.CDLL(path)
    case, size = C.c_void_p, C.c_size_t
    signatures = {
        "bench_open": (case, [C.c_char_p, C.c_int, C.c_uint32]),
        "bench_close": (None, [case]),
        "bench_has": (C.c_bool, [case, C.c_int]),
        "bench_run": (C.c_double, [case, C.c_int, C.c_bool, C.c_long]),
        "bench_bound": (C.c_double, [size, size, C.c_int, C.c_bool, C.c_long]),
        "bench_read_bytes": (size, [case, C.c_int]),
        "bench_written_bytes": (size, [case, C.c_int]),
        "bench_view": (C.POINTER(View), [case, C.c_int]),
        "bench_reference": (C.c_double, [case, C.c_int, C.c_int64]),
        "bench_probes": (C.c_int64, [case, C.c_int]),
        "bench_probe": (C.c_int64, [case, C.c_int, C.c_int64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Case:
    """A problem in one layout, with its tensors as arrays of the logical shape."""

    def __init__(self, library, problem, layout, threads):
        text = problem.text + (" last" if layout == "nhwc" else "")
        self.library, self.problem, self.layout = library, problem, layout
        self.handle = library.bench_open(text.encode(), threads, 0)
        self.references = {}

    def close(self):
        self.library.bench_close(self.handle)

    def array(self, operand):
        view = self.library.bench_view(self.handle, operand).contents
        dtype = np.dtype(NUMPY[self.problem.dtype])
        shape, strides = view.shape[:view.rank], view.strides[:view.rank]
        elements = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        memory = (C.c_char * (elements * dtype.itemsize)).from_address(view.data)
        flat = np.frombuffer(memory, dtype)
        return np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])

    def take_inputs(self, other):
        """The same logical values as another case, in this layout."""
        for operand in (X, DX, GY):
            self.array(operand)[...] = other.array(operand)
        if self.has(FORWARD_SAVED):
            self.run(FORWARD_SAVED, 1, 1)

    def has(self, tarn_pass):
        return self.library.bench_has(self.handle, tarn_pass)

    def backward(self):
        return VJP_SAVED if self.has(VJP_SAVED) else VJP

    def run(self, tarn_pass, threads, repeats):
        return self.library.bench_run(self.handle, tarn_pass, threads > 1, repeats)

    def bytes(self, tarn_pass):
        return (self.library.bench_read_bytes(self.handle, tarn_pass),
                self.library.bench_written_bytes(self.handle, tarn_pass))

    def bound(self, tarn_pass, threads, bypass, repeats):
        return self.library.bench_bound(*self.bytes(tarn_pass), threads, bypass, repeats)

    def reference(self, tarn_pass):
        """Some elements of the result (row-major numbers) and what they should be."""
        if tarn_pass not in self.references:
            count = self.library.bench_probes(self.handle, tarn_pass)
            elements = [self.library.bench_probe(self.handle, tarn_pass, k) for k in range(count)]
            values = [self.library.bench_reference(self.handle, tarn_pass, e) for e in elements]
            self.references[tarn_pass] = np.array(elements), np.array(values)
        return self.references[tarn_pass]
