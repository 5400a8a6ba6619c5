"""Arrays in and out: libraries, layouts, dtypes, `out`, and objects that lie."""

import array
import ctypes
import gc
import sys

import ml_dtypes
import numpy
import pytest
import torch

import tarn

DTYPES = ["float64", "float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32",
          "uint32", "int64", "uint64"]


def numpy_dtype(name):
    return numpy.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def ramp(shape, dtype="float32"):
    return (numpy.arange(numpy.prod(shape)) % 100).astype(numpy_dtype(dtype)).reshape(shape)


# ---- Libraries and dtypes ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_dtypes(dtype):
    x = ramp((2, 4, 6), dtype)
    y, indices = tarn.max_pool2d(x, 2, return_indices=True)
    assert type(y) is numpy.ndarray and y.dtype == x.dtype and indices.dtype == numpy.int64
    expected = x.reshape(2, 2, 2, 3, 2).astype("f8").max((2, 4))
    assert (y.astype("f8") == expected).all()
    assert (x.reshape(2, -1)[numpy.arange(2)[:, None], indices.reshape(2, -1)]
            == y.reshape(2, -1)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_dtypes(dtype):
    x = torch.from_numpy(ramp((2, 4, 6), "float32")).to(getattr(torch, dtype))
    y = tarn.max_pool2d(x, 2)
    assert type(y) is torch.Tensor and y.dtype == x.dtype
    assert y.double().equal(x.double().reshape(2, 2, 2, 3, 2).amax((2, 4)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8"])
def test_jax_dtypes(dtype):
    jax = pytest.importorskip("jax", exc_type=(ImportError, AttributeError))
    x = jax.numpy.asarray(ramp((2, 4, 6), "float32")).astype(dtype)
    y = tarn.max_pool2d(x, 2)
    assert isinstance(y, jax.Array) and y.dtype == x.dtype
    assert (numpy.asarray(y).astype("f8") == ramp((2, 4, 6)).reshape(2, 2, 2, 3, 2).max((2, 4))).all()


def test_plain_buffers():
    numbers = array.array("d", range(16))
    y = tarn.max_pool2d(memoryview(numbers).cast("B").cast("d", (1, 4, 4)), 2)
    assert type(y) is memoryview and y.tolist() == [[[5.0, 7.0], [13.0, 15.0]]]
    assert tarn.MaxPool((2,))(numbers).tolist() == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]


class OnlyDLPack:
    """An array library that nobody knows, without a from_dlpack."""

    def __init__(self, base):
        self.base = base

    def __dlpack__(self, **kwargs):
        return self.base.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.base.__dlpack_device__()


def test_unknown_library():
    y = tarn.max_pool2d(OnlyDLPack(ramp((1, 4, 4))), 2)
    assert (numpy.from_dlpack(y) == [[[5, 7], [13, 15]]]).all()
    assert (numpy.asarray(memoryview(y)) == numpy.from_dlpack(y)).all()


def test_old_dlpack_without_versions():
    class Old(OnlyDLPack):
        def __dlpack__(self):
            return self.base.__dlpack__()

    assert (numpy.from_dlpack(tarn.max_pool2d(Old(ramp((1, 4, 4))), 4)) == 15).all()


# ---- Layouts -------------------------------------------------------------------------------------


def layouts(x):
    """The same numbers, laid out in several ways."""
    yield x.copy()
    yield numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)  # channels last
    yield numpy.asfortranarray(x)
    yield x[::-1, :, ::-1][::-1, :, ::-1]
    large = numpy.zeros([2 * n for n in x.shape], x.dtype)
    large[tuple(slice(None, None, 2) for _ in x.shape)] = x
    yield large[tuple(slice(None, None, 2) for _ in x.shape)]
    yield numpy.ascontiguousarray(x[:, :, ::-1])[:, :, ::-1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_layouts_agree(dtype):
    x = ramp((2, 3, 6, 8), dtype)
    expected = tarn.max_pool2d(x, 3, 2, 1)
    for other in layouts(x):
        assert (tarn.max_pool2d(other, 3, 2, 1) == expected).all()


def test_channels_last_stays():
    x = ramp((2, 8, 8, 3)).transpose(0, 3, 1, 2)
    y = tarn.avg_pool2d(x, 2)
    assert y.shape == (2, 3, 4, 4) and y.transpose(0, 2, 3, 1).flags.c_contiguous
    t = torch.rand(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    assert tarn.avg_pool2d(t, 2).is_contiguous(memory_format=torch.channels_last)


def test_broadcast_input():
    x = numpy.broadcast_to(numpy.float32(3), (64, 64, 512, 512))  # 4 GiB if it were copied
    assert (tarn.global_avg_pool(x[:1, :1]) == 3).all()


def test_nothing_is_copied(monkeypatch):
    """Reading a strided array leaves no trace in NumPy: no method of it that copies is called."""
    import tracemalloc
    x = ramp((1, 64, 256, 256)).transpose(0, 1, 3, 2)
    out = numpy.empty((1, 64, 1, 1), "float32")
    tarn.global_max_pool(x, out=out)
    tracemalloc.start()
    tarn.global_max_pool(x, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 100


# ---- out -----------------------------------------------------------------------------------------


def test_out_is_filled_and_returned():
    x, out = ramp((1, 4, 4)), numpy.zeros((1, 2, 2), "float32")
    assert tarn.max_pool2d(x, 2, out=out) is out and out[0, 1, 1] == 15
    strided = numpy.zeros((1, 2, 4), "float32")[:, :, ::2]
    assert tarn.max_pool2d(x, 2, out=strided) is strided and strided[0, 1, 1] == 15
    pair = numpy.zeros((1, 2, 2), "float32"), numpy.zeros((1, 2, 2), "int64")
    values, indices = tarn.max_pool2d(x, 2, return_indices=True, out=pair)
    assert values is pair[0] and indices is pair[1] and indices[0, 1, 1] == 15
    tensor = torch.zeros(1, 2, 2)
    assert tarn.max_pool2d(x, 2, out=tensor) is tensor and tensor[0, 1, 1] == 15
    padded = numpy.ones((1, 6, 6), "float32")
    assert tarn.pad(x, (1, 1, 1, 1), out=padded) is padded and padded[0, 0, 0] == 0
    assert tarn.unpad(padded, (1, 1, 1, 1), out=x * 0).tolist() == x.tolist()


def test_bad_out():
    x = ramp((1, 4, 4))
    fixed = numpy.zeros((1, 2, 2), "float32")
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        tarn.max_pool2d(x, 2, out=fixed)
    with pytest.raises(tarn.Error, match="y is written and shares memory with x"):
        tarn.max_pool2d(x, 2, out=x[:, :2, :2])
    with pytest.raises(tarn.Error, match="elements overlap"):
        tarn.max_pool2d(x, 2, out=numpy.lib.stride_tricks.as_strided(
            numpy.zeros(4, "float32"), (1, 2, 2), (16, 4, 4)))
    with pytest.raises(tarn.Error, match="y has size 3 in dimension 2, expected 2"):
        tarn.max_pool2d(x, 2, out=numpy.zeros((1, 2, 3), "float32"))
    with pytest.raises(tarn.Error, match="y has dtype f64, expected f32"):
        tarn.max_pool2d(x, 2, out=numpy.zeros((1, 2, 2)))
    with pytest.raises(TypeError, match="a pair"):
        tarn.max_pool2d(x, 2, return_indices=True, out=numpy.zeros((1, 2, 2), "float32"))
    with pytest.raises(TypeError, match="out is a list"):
        tarn.max_pool2d(x, 2, out=[])


def test_immutable_out():
    jax = pytest.importorskip("jax", exc_type=(ImportError, AttributeError))
    out = jax.numpy.zeros((1, 2, 2))
    with pytest.raises(BufferError, match="out is read-only"):
        tarn.max_pool2d(ramp((1, 4, 4)), 2, out=out)
    assert (numpy.asarray(out) == 0).all()


# ---- Objects that lie ----------------------------------------------------------------------------


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32),
                ("dtype", Type), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def capsule(pointer, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(pointer, name, None)


class Liar:
    """Tells whatever it was told about four by four floats."""

    def __init__(self, name=b"dltensor", device=(1, 0), said=(1, 0), **members):
        self.memory = (ctypes.c_float * 16)(*range(16))
        self.shape = (ctypes.c_int64 * 3)(1, 4, 4)
        self.tensor = Tensor(ctypes.addressof(self.memory), Device(*device), 3, Type(2, 32, 1),
                             self.shape, None, 0, None, None)
        for member, value in members.items():
            setattr(self.tensor, member, value)
        self.name, self.said = name, said

    def __dlpack_device__(self):
        return self.said

    def __dlpack__(self, **kwargs):
        return capsule(ctypes.addressof(self.tensor), self.name)


def test_an_honest_liar():
    assert numpy.from_dlpack(tarn.max_pool2d(Liar(), 2)).tolist() == [[[5, 7], [13, 15]]]


@pytest.mark.parametrize("liar, exception, words", [
    (Liar(said=(2, 0)), BufferError, "device CUDA:0"),
    (Liar(said=(10, 1)), BufferError, "device ROCm:1"),
    (Liar(device=(2, 3)), BufferError, "device CUDA:3"),
    (Liar(device=(99, 0)), BufferError, r"DLPack type 99"),
    (Liar(said="cpu"), TypeError, "integer"),
    (Liar(said=()), IndexError, "range"),
    (Liar(name=b"nonsense"), TypeError, "did not return a DLPack capsule"),
    (Liar(name=b"used_dltensor"), TypeError, "did not return a DLPack capsule"),
    (Liar(ndim=-1), tarn.Error, "rank -1"),
    (Liar(ndim=65), tarn.Error, "rank 65"),
    (Liar(shape=None), tarn.Error, "rank 3"),
    (Liar(data=None), tarn.Error, "x is NULL"),
    (Liar(dtype=Type(2, 8, 1)), tarn.Error, "elements of a type that tarn does not pool .DLPack code 2, 8 bits"),
    (Liar(dtype=Type(2, 32, 4)), tarn.Error, "4 lanes"),
    (Liar(dtype=Type(5, 64, 1)), tarn.Error, "complex numbers that tarn does not pool"),
    (Liar(dtype=Type(6, 8, 1)), tarn.Error, "booleans that tarn does not pool"),
    (Liar(byte_offset=2), tarn.Error, "not aligned"),
    (Liar(shape=(ctypes.c_int64 * 3)(1, -4, 4)), tarn.Error, "size -4"),
    (Liar(shape=(ctypes.c_int64 * 3)(2**40, 2**20, 2**20)), tarn.Error, "63 bits"),
    (Liar(strides=(ctypes.c_int64 * 3)(2**62, 2**62, 1)), tarn.Error, "63 bits"),
])
def test_liars(liar, exception, words):
    with pytest.raises(exception, match=words):
        tarn.max_pool2d(liar, 2)


class Raises:
    def __dlpack__(self, **kwargs):
        raise KeyError("no")

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("x, exception, words", [
    (Raises(), KeyError, "no"),
    (OnlyDLPack(3), AttributeError, "dlpack"),
    (numpy.ones((1, 4, 4), object), tarn.Error, "format 'O'"),
    (numpy.ones((1, 4, 4), bool), tarn.Error, "format '\\?'"),
    (numpy.ones((1, 4, 4), complex), tarn.Error, "format 'Zd'"),
    (numpy.ones((1, 4, 4), ">f4"), tarn.Error, "format '>f'"),
    (numpy.ones((1, 4, 4), "f4,f8")["f1"], tarn.Error, "no multiple"),
    (numpy.ones((1, 4, 4), "M8[s]"), ValueError, "dtype"),
    (numpy.frombuffer(bytes(65), "f4", offset=1, count=16).reshape(1, 4, 4), tarn.Error, "aligned"),
    (torch.ones(1, 4, 4, dtype=torch.complex64), tarn.Error, "complex numbers"),
    (torch.ones(1, 4, 4, requires_grad=True), BufferError, "tarn.torch"),
    (torch.ones(1, 4, 4, device="meta"), (BufferError, RuntimeError, ValueError), "."),
    (torch.ones(1, 4, 4).to_sparse(), (BufferError, RuntimeError, ValueError), "."),
    (None, TypeError, "NoneType"),
    ([[1.0]], TypeError, "x is a list, not an array"),
    ("text", TypeError, "x is a str"),
])
def test_refused(x, exception, words):
    with pytest.raises(exception, match=words):
        tarn.max_pool2d(x, 2)


def test_an_output_too_large_for_any_memory():
    """Strides of 0 describe more cells than there is memory; the result would have to have them."""
    x = numpy.broadcast_to(numpy.float32(1), (2**20, 2**20, 2**9, 2**8))
    with pytest.raises(MemoryError):
        tarn.max_pool2d(x, 1)
    with pytest.raises(MemoryError):
        tarn.max_pool2d(torch.ones(1).expand(2**20, 2**20, 2**9, 2**8), 1)


@pytest.mark.parametrize("kwargs, exception", [
    ({"kernel_size": 2**63}, OverflowError),
    ({"kernel_size": 2**62, "ceil_mode": True}, tarn.Error),
    ({"kernel_size": "33"}, TypeError),
    ({"kernel_size": 2, "stride": "2"}, TypeError),
    ({"kernel_size": 2, "padding": None}, TypeError),
    ({"kernel_size": 2, "dilation": 2**62}, tarn.Error),
    ({"kernel_size": {1: 2}}, (TypeError, KeyError)),
])
def test_bad_arguments(kwargs, exception):
    with pytest.raises(exception):
        tarn.max_pool2d(ramp((1, 4, 4)), **kwargs)


def test_sequences_that_change_their_minds():
    class Shrinks(list):
        def __len__(self):
            return 2

    with pytest.raises(IndexError):
        tarn.max_pool2d(ramp((1, 4, 4)), Shrinks())

    class Raises:
        def __index__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tarn.max_pool2d(ramp((1, 4, 4)), (Raises(), 2))


# ---- Nothing is kept -----------------------------------------------------------------------------


def churn(x, t):
    tarn.max_pool2d(x, 2, return_indices=True)
    tarn.max_pool2d(t, 2, return_indices=True)
    tarn.max_pool2d(OnlyDLPack(x), 2)
    tarn.max_pool2d(memoryview(x), 2)
    tarn.avg_pool2d(x.astype(ml_dtypes.bfloat16), 2)
    tarn.pad(tarn.unpad(x, (1, 1)), (1, 1))
    p = tarn.MaxPool(2)
    p.vjp(x, p.jvp(x, x))
    tarn.Pool.parse(p.text).explain((4, 4))
    g = tarn.Graph()
    g.output(g.pool(g.input("f32", x.shape), p))
    g.vjp([x], g(x))
    for bad in (lambda: tarn.max_pool2d(x, 99), lambda: tarn.max_pool2d(x, "a"),
                lambda: tarn.max_pool2d(x, 2, out=x), lambda: tarn.max_pool2d(Liar(ndim=-1), 2),
                lambda: g.vjp([x], [x]), lambda: tarn.MaxPool((2, "a")), lambda: g(x, x),
                lambda: tarn.adaptive_avg_pool2d(x, (None, "a"))):
        with pytest.raises(Exception):
            bad()


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_no_leaks():
    """Caches fill and other threads allocate, so one quiet stretch is enough; a leak leaves none."""
    x, t = ramp((1, 64, 64)), torch.ones(1, 64, 64)
    growth, grown = [], []
    references = sys.getrefcount(x)
    for _ in range(5):
        gc.collect()
        blocks, resident = sys.getallocatedblocks(), resident_bytes()
        for _ in range(400):
            churn(x, t)
        gc.collect()
        growth.append(sys.getallocatedblocks() - blocks)
        grown.append(resident_bytes() - resident)
    assert sys.getrefcount(x) == references
    assert min(growth) < 200, growth  # one block each time would be 400
    assert min(grown) < 1 << 20, grown  # 16 KiB each time, the size of x, would be 6.5 MB


def test_results_outlive_everything():
    y = tarn.max_pool2d(torch.arange(16.0).reshape(1, 4, 4), 2)
    z = numpy.from_dlpack(tarn.max_pool2d(OnlyDLPack(ramp((1, 4, 4))), 2))
    view = tarn.max_pool2d(memoryview(ramp((1, 4, 4))), 2)
    gc.collect()
    assert y.tolist() == z.tolist() == view.tolist() == [[[5, 7], [13, 15]]]
