"""Lp pooling from Python: against the formula, and apart from its neighbours."""

import numpy
import pytest

import tarn


def windows(x, kernel, stride):
    """Windows of the last two axes, gathered into one last axis."""
    view = numpy.lib.stride_tricks.sliding_window_view(x, kernel, axis=(-2, -1))
    view = view[..., ::stride[0], ::stride[1], :, :]
    return view.reshape(*view.shape[:-2], -1)


@pytest.mark.parametrize("p", [1, 2, 3, 4.5])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(p, dtype):
    x = numpy.random.default_rng(1).standard_normal((2, 3, 7, 8)).astype(dtype)
    exact = (numpy.abs(windows(x.astype("float64"), (3, 2), (2, 1))) ** p).sum(-1) ** (1 / p)
    y = tarn.lp_pool2d(x, p, (3, 2), (2, 1))
    assert y.dtype == dtype
    assert numpy.allclose(y, exact, rtol=2 * numpy.finfo(dtype).eps, atol=0)


def test_a_plan_is_remembered_with_its_p():
    x = numpy.array([[3.0, 4.0]])
    assert [float(tarn.lp_pool1d(x, p, 2)[0, 0]) for p in (1, 2, 1, 2)] == [7, 5, 7, 5]
    assert tarn.LpPool((2,), p=1)(x[0])[0] == 7 and tarn.LpPool((2,), p=2)(x[0])[0] == 5


@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_objects(p):
    pool, rng = tarn.LpPool((3, 2), padding=((1, 0), (0, 1)), p=p), numpy.random.default_rng(2)
    x, dx = rng.standard_normal((2, 2, 7, 6))
    gy = rng.standard_normal(pool.output_shape(x.shape))
    step = 1e-6
    slope = (pool(x + step * dx) - pool(x - step * dx)) / (2 * step)
    assert numpy.allclose(pool.jvp(x, dx), slope, atol=1e-7)
    assert numpy.isclose((gy * pool.jvp(x, dx)).sum(), (pool.vjp(x, gy) * dx).sum(), rtol=1e-12)
    # Norms are homogeneous: x itself is a direction in which they grow by their own size.
    assert numpy.allclose(pool.jvp(x, x), pool(x), rtol=1e-13)
    assert tarn.Pool.parse(pool.text).text == pool.text and pool.power == p


def test_the_largest_numbers():
    x = numpy.array([[3e300, -4e300]])
    assert numpy.isclose(tarn.lp_pool1d(x, 2, 2)[0, 0], 5e300, rtol=1e-15)


def test_out():
    x, out = numpy.ones((1, 2, 4, 4)), numpy.zeros((1, 2, 2, 2))
    assert tarn.lp_pool2d(x, 2, 2, out=out) is out and (out == 2).all()


def test_refusals():
    x = numpy.ones((1, 4, 4))
    for p in (0.5, -1, float("nan"), float("inf")):
        with pytest.raises(tarn.Error, match="power"):
            tarn.lp_pool2d(x, p, 2)
    with pytest.raises(tarn.Error, match="lp needs a floating dtype"):
        tarn.lp_pool2d(x.astype(int), 2, 2)
    with pytest.raises(TypeError):
        tarn.lp_pool2d(x, "two", 2)
    with pytest.raises(tarn.Error, match="half"):
        tarn.lp_pool2d(x, 2, 2, padding=2)
