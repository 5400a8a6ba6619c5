"""Mode, sum and skipped taps, judged by NumPy and by PyTorch's autograd."""

import itertools
import math
import pickle

import numpy as np
import pytest

import tarn


def blocks(x, k=2):
    """The taps of windows of k x k that do not overlap, on the last axis."""
    n, h, w = x.shape[0], x.shape[1] // k, x.shape[2] // k
    return x[:, :h * k, :w * k].reshape(n, h, k, w, k).swapaxes(2, 3).reshape(n, h, w, k * k)


def plain_mode(taps, ignored=None):
    values, counts = np.unique(taps[taps != ignored] if ignored is not None else taps,
                               return_counts=True)
    return values[counts.argmax()] if len(values) else ignored


@pytest.mark.parametrize("dtype", ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"))
@pytest.mark.parametrize("ignored", (None, 0, 3))
def test_mode_of_integers(dtype, ignored):
    x = np.random.default_rng(7).integers(0, 4, (2, 18, 22)).astype(dtype)
    for k in (2, 3, 6):
        wanted = np.apply_along_axis(plain_mode, -1, blocks(x, k), ignored)
        assert (tarn.mode_pool2d(x, k, skip=ignored) == wanted).all()
        assert (tarn.ModePool((k, k), skip=ignored)(x) == wanted).all()
    assert tarn.mode_pool2d(x, 2).dtype == x.dtype


def test_mode_of_the_greatest_labels():
    greatest = 2**64 - 1
    x = np.array([greatest, greatest, 5, 7], "u8")
    assert tarn.ModePool((4,))(x) == [greatest]
    pool = tarn.ModePool((4,), skip=greatest)
    assert pool.text == f"mode k4s4 d1 skip={greatest}"
    assert pool(x) == [5] and pickle.loads(pickle.dumps(pool)) == pool
    assert pool(np.full(4, greatest, "u8")) == [greatest]
    with pytest.raises(ValueError, match="the skipped value 18446744073709551615 is not a number of i64"):
        pool(x.astype("i8"))


def test_mode_and_its_windows():
    x = np.array([[3, 1, 1], [3, 3, 2]], "i4")
    assert tarn.GlobalModePool()(x) == [[3]]
    assert (tarn.AdaptiveModePool((1, 3))(x) == [[3, 1, 1]]).all()
    assert (tarn.ModePool(2, 1, 1)(x) == [[3, 1, 1, 1], [3, 3, 1, 1], [3, 3, 2, 2]]).all()
    assert (tarn.ModePool(1, 3, 1)(x) == [[0, 0]]).all()  # Nothing but padding.


def test_mode_refuses():
    x = np.zeros((4, 4), "f4")
    with pytest.raises(ValueError, match="mode needs an integer dtype, x is f32"):
        tarn.ModePool(2)(x)
    with pytest.raises(ValueError, match="mode has no derivatives"):
        tarn.ModePool(2).jvp(x.astype(int), x.astype(int))
    with pytest.raises(ValueError, match="only max and min have winners"):
        tarn.ModePool(2).indices(x.astype(int))
    with pytest.raises(ValueError, match="skipping NaN needs a floating dtype"):
        tarn.ModePool(2, skip=math.nan)(x.astype(int))
    assert tarn.ModePool(2, skip=-7).output_shape((9, 9)) == (4, 4)


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8"))
@pytest.mark.parametrize("skip", (math.nan, -1.0))
@pytest.mark.parametrize("min_count", (None, 0, 1, 2, 4))
def test_skip_of_floats(dtype, skip, min_count):
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 9, (3, 12, 14)).astype(dtype)
    x[rng.random(x.shape) < 0.6] = skip
    taps = blocks(x)
    counted = ~np.isnan(taps) if math.isnan(skip) else taps != skip
    enough = counted.sum(-1) >= (1 if min_count is None else min_count)
    none = np.where(enough, 0, skip)

    def check(y, wanted):
        np.testing.assert_array_equal(y, np.where(counted.any(-1) & enough, wanted, none).astype(dtype))

    words = {"skip": skip, "min_count": min_count}
    check(tarn.max_pool2d(x, 2, **words), np.where(counted, taps, -99).max(-1))
    check(tarn.min_pool2d(x, 2, **words), np.where(counted, taps, 99).min(-1))
    total = np.where(counted, taps, 0).astype("f8").sum(-1)
    check(tarn.sum_pool2d(x, 2, **words), total)
    check(tarn.avg_pool2d(x, 2, **words), (total / np.maximum(counted.sum(-1), 1)).astype("f4" if dtype == "f2" else dtype))


def test_skip_of_integers():
    x = np.array([0, 0, 9, 0, 250, 200], "u1")
    assert (tarn.AvgPool((2,), skip=0)(x) == [0, 9, 225]).all()
    assert (tarn.SumPool((2,), skip=0)(x) == [0, 9, 255]).all()  # Sums of integers saturate.
    assert (tarn.MinPool((2,), skip=0)(x) == [0, 9, 200]).all()
    values, indices = tarn.MinPool((2,), skip=0).forward_indices(x)
    assert (indices == [-1, 2, 5]).all()
    assert (tarn.AvgPool((2,), skip=9, min_count=2)(x) == [0, 9, 225]).all()
    assert (tarn.global_sum_pool(x.astype("i8")[None], skip=9) == [[450]]).all()
    assert (tarn.adaptive_avg_pool1d(x[None], 2, skip=0) == [[9, 225]]).all()


def test_padding_and_divisors():
    """Padding counts as it does without skipping; a given divisor is as given."""
    x = np.array([[4.0, math.nan]])
    pool = {"kernel_size": (1, 2), "stride": 1, "padding": ((0, 0), (1, 1)), "skip": math.nan}
    np.testing.assert_array_equal(tarn.AvgPool(**pool)(x), [[2, 4, math.nan]])
    np.testing.assert_array_equal(tarn.AvgPool(**pool, min_count=0)(x), [[2, 4, 0]])
    np.testing.assert_array_equal(tarn.AvgPool(**pool, count_include_pad=False)(x), [[4, 4, math.nan]])
    np.testing.assert_array_equal(tarn.AvgPool(**pool, divisor_override=4)(x), [[1, 1, math.nan]])


@pytest.mark.parametrize("op, ties", list(
    itertools.product((tarn.MaxPool, tarn.MinPool), ("first", "all", "split"))))
def test_derivatives_of_extremes(op, ties):
    """Skipped taps are as if they were not there: a value that never wins."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 4, (7, 9)).astype("f8")
    gone = rng.random(x.shape) < 0.5
    hidden = np.where(gone, -9 if op is tarn.MaxPool else 9, x)
    marked = np.where(gone, math.nan, x)
    skips, plain = op((3, 3), 2, 1, ties=ties, skip=math.nan), op((3, 3), 2, 1, ties=ties)
    some = ~np.isnan(skips(marked))
    dx, gy = rng.normal(size=x.shape), rng.normal(size=plain.output_shape(x.shape))
    np.testing.assert_array_equal(skips.jvp(marked, dx), np.where(some, plain.jvp(hidden, dx), 0))
    np.testing.assert_array_equal(skips.vjp(marked, gy), plain.vjp(hidden, np.where(some, gy, 0)))
    if ties == "first":
        indices = np.where(some, plain.indices(hidden), -1)
        np.testing.assert_array_equal(skips.indices(marked), indices)


@pytest.mark.parametrize("word", ("avg", "sum", "max", "min"))
@pytest.mark.parametrize("min_count", (0, 1, 3))
def test_autograd(word, min_count):
    torch = pytest.importorskip("torch")
    import tarn.torch
    kind = {"avg": tarn.AvgPool, "sum": tarn.SumPool, "max": tarn.MaxPool, "min": tarn.MinPool}[word]
    pool = kind(3, 2, 1, skip=math.nan, min_count=min_count)
    x = torch.randn(2, 7, 9, dtype=torch.float64)
    x[torch.rand(x.shape) < 0.6] = math.nan
    counts = tarn.SumPool(3, 2, 1)((~x.isnan()).double().numpy())
    fed = x.clone().requires_grad_()
    y = tarn.torch.pool(pool, fed)
    gy = torch.randn_like(y)
    (gx,) = torch.autograd.grad(y, fed, gy)
    np.testing.assert_array_equal(gx, pool.vjp(x.numpy(), gy.numpy()))
    assert (gx[x.isnan()] == 0).all()
    _, dy = torch.func.jvp(lambda t: tarn.torch.pool(pool, t), (x,), (torch.ones_like(x),))
    enough = counts >= max(min_count, 1)
    wanted = counts if word == "sum" else None if word == "avg" else np.ones_like(counts)
    if wanted is not None:
        np.testing.assert_array_equal(dy, np.where(enough, wanted, 0))
    np.testing.assert_allclose((gy * dy).sum(), gx.sum(), rtol=1e-12)
    again = torch.vmap(lambda t: tarn.torch.pool(pool, t))(x)
    torch.testing.assert_close(again, y.detach(), rtol=0, atol=0, equal_nan=True)


def test_autograd_by_the_operators():
    torch = pytest.importorskip("torch")
    import tarn.torch
    pool = tarn.AvgPool(2, skip=math.nan)
    x = torch.tensor([[1.0, math.nan], [2.0, 3.0]], requires_grad=True)
    y = torch.ops.tarn.pool(x, pool.text)
    (gx,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert gx[0, 1] == 0 and gx[0, 0] == torch.tensor(1.0) / 3
    labels = torch.tensor([[1, 1], [0, 2]])
    assert tarn.torch.pool(tarn.ModePool(2), labels).item() == 1


def test_text():
    for pool, text in ((tarn.AvgPool(2, skip=math.nan), "avg k2s2 skip=nan"),
                       (tarn.AvgPool(2, skip="nan", min_count=3), "avg k2s2 skip=nan min=3"),
                       (tarn.SumPool((2,)), "avg k2s2 d1 div=1"),
                       (tarn.AdaptiveSumPool(3), "avg a3 div=1"),
                       (tarn.GlobalSumPool(skip=0.5), "avg global div=1 skip=0.5"),
                       (tarn.MaxPool(2, skip=-9999), "max k2s2 skip=-9999"),
                       (tarn.GlobalModePool(3), "mode global d3")):
        assert pool.text.replace(" d2", "") == text
        assert tarn.Pool.parse(pool.text) == pool and hash(tarn.Pool.parse(pool.text)) == hash(pool)
    assert tarn.Pool.parse("sum k2") == tarn.SumPool(2)
    assert tarn.AvgPool(2).linear and not tarn.AvgPool(2, skip=0).linear
    assert tarn.AvgPool(2, skip=0).skips and not tarn.AvgPool(2).skips


@pytest.mark.parametrize("words, error, message", (
    ({"skip": "zero"}, TypeError, "skip must be None, nan or a number"),
    ({"skip": [1]}, TypeError, "skip must be None, nan or a number"),
    ({"skip": 2**64}, OverflowError, "too (big|large)"),
    ({"skip": 1, "min_count": "two"}, TypeError, "min_count must be an integer"),
    ({"min_count": 2}, ValueError, "min_count needs skip"),
    ({"skip": 1, "min_count": -1}, ValueError, "min_count -1 is negative"),
    ({"skip": 1e39}, ValueError, "the skipped value .*e.3[89] is not a number of f32"),
))
def test_bad_arguments(words, error, message):
    x = np.zeros((1, 4, 4), "f4")
    for call in (lambda: tarn.avg_pool2d(x, 2, **words), lambda: tarn.AvgPool(2, **words)(x),
                 lambda: tarn.adaptive_max_pool2d(x, 2, **words), lambda: tarn.global_min_pool(x, **words)):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("text", ("smooth k2 skip=nan", "lp k2 skip=0"))
def test_others_do_not_skip(text):
    with pytest.raises(ValueError, match="does not skip: max, min, avg and mode do"):
        tarn.Pool.parse(text)(np.zeros((4, 4)))


def test_numbers_of_other_libraries():
    x = np.array([1.5, 7.0], "f4")
    for skip in (np.float32(1.5), np.float64(1.5)):
        assert tarn.MaxPool((2,), skip=skip)(x) == [7]
    for skip in (np.uint64(7), np.int8(7), np.float32(7)):
        assert tarn.MaxPool((2,), skip=skip)(x) == [1.5]
    assert np.isnan(tarn.MaxPool((2,), skip=np.float32("nan"))(np.full(2, math.nan, "f4")))
