"""Flush-to-zero, which torch.set_flush_denormal() and other libraries' fast-math set for a thread, and rounding modes change nothing."""

import ctypes
import platform

import numpy
import pytest
import torch

import tarn


@pytest.fixture
def flushed():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormals to zero")
    yield
    torch.set_flush_denormal(False)


def subnormals(shape):
    bits = numpy.arange(numpy.prod(shape), dtype="uint32").reshape(shape) % 9973 + 1
    return bits.view("float32")


def is_flushing():
    return float(torch.tensor(1e-310, dtype=torch.float64) * 0.5) == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pools_keep_subnormals(flushed, threads):
    x = subnormals((8, 3, 64, 64))
    bits = x.view("uint32").astype("uint64").reshape(8, 3, 32, 2, 32, 2)
    with tarn.threads(threads):
        assert is_flushing()
        largest = tarn.max_pool2d(x, 2).view("uint32")
        mean = tarn.avg_pool2d(x, 2, divisor_override=1).view("uint32")
        gradient = tarn.AvgPool((2, 2), divisor=1).vjp(x, tarn.max_pool2d(x, 2)).view("uint32")
        assert is_flushing()
    assert (largest == bits.max((3, 5))).all()
    assert (mean == bits.sum((3, 5))).all()
    assert (gradient.reshape(8, 3, 32, 2, 32, 2) == bits.max((3, 5), keepdims=True)).all()


def test_other_entries_keep_subnormals(flushed):
    x = numpy.array([[1, 2], [3, 4]], "uint32").view("float32")[None]
    assert tarn.torch.avg_pool2d(torch.from_numpy(x), 2, divisor_override=1).numpy().view("uint32") == 10
    assert tarn.global_avg_pool(numpy.tile(x, (1, 2, 2))).view("uint32") == 2  # 2.5, to even
    graph = tarn.Graph()
    value = graph.input("f32", (1, 2, 2))
    graph.output(graph.pool(graph.scale(graph.add(value, value), 0.5), tarn.AvgPool((2, 2), divisor=1)))
    assert graph(x)[0].view("uint32") == 10
    text = "x = input f64 2\ny = scale x factor=9.99999999999997e-311\nreturn y\n"
    assert tarn.Graph.load(text).save() == text


FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO = 0x400, 0x800, 0xC00  # x86-64: <fenv.h>


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have other numbers of rounding modes")
@pytest.mark.parametrize("mode", [FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO])
@pytest.mark.parametrize("threads", [1, 3])
def test_rounding_modes_change_nothing(mode, threads):
    x = numpy.random.default_rng(0).standard_normal((2, 3, 40, 40)).astype("float32")
    graph = tarn.Graph()
    graph.output(graph.pool(graph.scale(graph.input("f32", x.shape), 0.3), tarn.AvgPool((3, 3))))

    def results():
        for pool in tarn.AvgPool((3, 3)), tarn.SmoothMaxPool((3, 3), beta=1.3), tarn.LpPool((3, 3), p=3):
            yield from (pool(x), pool.vjp(x, pool(x)))
        leaf = torch.from_numpy(x).requires_grad_()
        y = tarn.torch.avg_pool2d(leaf, 3)
        y.sum().backward()
        yield from (tarn.global_avg_pool(x), graph(x)[0], y.detach().numpy(), leaf.grad.numpy())
        yield numpy.frombuffer(tarn.Graph.load("x = input f64 2\ny = scale x factor=0.1\nreturn y\n").save().encode(), "uint8")

    with tarn.threads(threads):
        expected = [result.tobytes() for result in results()]
        library = ctypes.CDLL(None)
        library.fesetround(mode)
        try:
            found = [result.tobytes() for result in results()]
            assert library.fegetround() == mode
        finally:
            library.fesetround(0)
    assert found == expected
