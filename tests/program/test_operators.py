"""Every operator and derivative against the brute force."""

import itertools

import numpy as np
import pytest

import brute_force as bf

OPS = ["max", "min", "avg", "smooth", "lp"]
SETTINGS = {"smooth": ["--beta", 0.5], "lp": ["--power", 2.5]}


def numbers(rng, shape, dtype):
    """Small integers: sums of them are exact, and ties are frequent."""
    return rng.integers(-4 if np.dtype(dtype).kind != "u" else 0, 5, shape).astype(dtype)


def axes_of(window, shape, spatial):
    sizes = shape[len(shape) - spatial:]
    if window["rule"] == "global":
        return [bf.whole(n) for n in sizes]
    if window["rule"] == "adaptive":
        return [bf.adaptive(n, window["out"]) for n in sizes]
    return [bf.sliding(n, *window["sliding"], window["ceil"]) for n in sizes]


def words_of(op, window):
    if window["rule"] == "global":
        return ["global-" + op]
    if window["rule"] == "adaptive":
        return ["adaptive-" + op, "--out", window["out"]]
    kernel, stride, lo, hi, dilation = window["sliding"]
    return [op, "--kernel", kernel, "--stride", stride, "--pad", f"{lo}:{hi}", "--dilation", dilation,
            *(["--ceil"] if window["ceil"] else [])]


WINDOWS = [
    {"rule": "sliding", "sliding": (3, 2, 1, 1, 1), "ceil": False},
    {"rule": "sliding", "sliding": (2, 2, 0, 1, 2), "ceil": True},
    {"rule": "sliding", "sliding": (2, 3, 3, 2, 1), "ceil": False},  # windows in the padding alone
    {"rule": "sliding", "sliding": (3, 2, 0, 0, 1), "ceil": True},
    {"rule": "adaptive", "out": 3},
    {"rule": "global"},
]


def close(found, expected, op, exact):
    assert found.shape == expected.shape
    if op in SETTINGS or not exact:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    else:
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w["rule"] + str(w.get("sliding", "")))
def test_value_and_derivatives(good, op, window, spatial):
    rng = np.random.default_rng(1)
    shape = (2, 8, 7, 5)[: 1 + spatial]
    x, dx = numbers(rng, shape, "f8"), numbers(rng, shape, "f8")
    pool = bf.Pool(op, axes_of(window, shape, spatial), beta=0.5, power=2.5)
    if window["rule"] == "global":
        pool.ties = "all"
    gy = numbers(rng, (2,) + pool.output_shape(), "f8")
    words = words_of(op, window) + ["--spatial", spatial] + SETTINGS.get(op, [])
    for name, array in (("x", x), ("dx", dx), ("gy", gy)):
        np.save(good.folder / f"{name}.npy", array)
    good(words[0], "x.npy", "-o", "y.npy", *words[1:])
    good(words[0], "x.npy", "-o", "dy.npy", "--jvp", "dx.npy", *words[1:])
    good(words[0], "x.npy", "-o", "gx.npy", "--vjp", "gy.npy", *words[1:])
    exact = op != "avg"  # quotients of gradients are rounded one by one
    close(np.load(good.folder / "y.npy"), pool.forward(x), op, True)
    close(np.load(good.folder / "dy.npy"), pool.jvp(x, dx), op, exact)
    close(np.load(good.folder / "gx.npy"), pool.vjp(x, gy), op, exact)


@pytest.mark.parametrize("op, ties", list(itertools.product(["max", "min"], ["first", "all", "split"])))
@pytest.mark.parametrize("prefix, options", [("", ["-k3", "-s1", "-p1"]), ("adaptive-", ["--out", "2,3"]),
                                             ("global-", [])])
def test_ties(good, op, ties, prefix, options):
    rng = np.random.default_rng(2)
    x, dx = rng.integers(0, 2, (2, 5, 6)).astype("f8"), rng.integers(-9, 9, (2, 5, 6)).astype("f8")
    axes = {"": [bf.sliding(n, 3, 1, 1, 1, 1, False) for n in (5, 6)],
            "adaptive-": [bf.adaptive(5, 2), bf.adaptive(6, 3)],
            "global-": [bf.whole(5), bf.whole(6)]}[prefix]
    pool = bf.Pool(op, axes, ties=ties)
    gy = rng.integers(-9, 9, (2,) + pool.output_shape()).astype("f8")
    for name, array in (("x", x), ("dx", dx), ("gy", gy)):
        np.save(good.folder / f"{name}.npy", array)
    good(prefix + op, "x.npy", "--jvp", "dx.npy", "-o", "dy.npy", "--ties", ties, *options)
    good(prefix + op, "x.npy", "--vjp", "gy.npy", "-o", "gx.npy", "--ties", ties, *options)
    np.testing.assert_allclose(np.load(good.folder / "dy.npy"), pool.jvp(x, dx), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(np.load(good.folder / "gx.npy"), pool.vjp(x, gy), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: w["rule"] + str(w.get("sliding", "")))
def test_indices(good, op, window):
    x = numbers(np.random.default_rng(3), (2, 8, 7), "f4")
    pool = bf.Pool(op, axes_of(window, x.shape, 2))
    np.save(good.folder / "x.npy", x)
    words = words_of(op, window)
    good(words[0], "x.npy", "-o", "y.npy", "--indices", "i.npy", *words[1:])
    assert np.array_equal(np.load(good.folder / "y.npy"), pool.forward(x))
    found = np.load(good.folder / "i.npy")
    assert found.dtype == np.int64 and np.array_equal(found, pool.indices(x))


@pytest.mark.parametrize("options, settings", [
    (["--count-include-pad"], {}),
    (["--no-count-include-pad"], {"count_pad": False}),
    (["--divisor", "5"], {"divisor": 5}),
])
@pytest.mark.parametrize("ceil", [False, True])
def test_divisors(good, options, settings, ceil):
    x = numbers(np.random.default_rng(4), (2, 7, 8), "f8")
    pool = bf.Pool("avg", [bf.sliding(7, 3, 2, 2, 1, 1, ceil), bf.sliding(8, 2, 3, 0, 1, 2, ceil)], **settings)
    np.save(good.folder / "x.npy", x)
    good("avg", "x.npy", "-o", "y.npy", "-k", "3,2", "-s", "2,3", "-p", "2:1,0:1", "-e", "1,2", *options,
         *(["--ceil"] if ceil else []))
    assert np.array_equal(np.load(good.folder / "y.npy"), pool.forward(x))


def test_smooth_without_padding(good):
    x = numbers(np.random.default_rng(5), (6, 6), "f8")
    pool = bf.Pool("smooth", [bf.sliding(6, 2, 2, 2, 2, 1, False)] * 2, count_pad=False, beta=-3)
    np.save(good.folder / "x.npy", x)
    good("smooth", "x.npy", "-o", "y.npy", "-k2", "-p2", "--no-count-include-pad", "--beta=-3")
    np.testing.assert_allclose(np.load(good.folder / "y.npy"), pool.forward(x), rtol=1e-12)


@pytest.mark.parametrize("options, power", [([], 2), (["--power", 1], 1), (["--power=3"], 3),
                                            (["--power", "1.25"], 1.25)])
def test_powers(good, options, power):
    rng = np.random.default_rng(8)
    x, gy = numbers(rng, (2, 7, 6), "f8"), numbers(rng, (2, 4, 3), "f8")
    pool = bf.Pool("lp", [bf.sliding(n, 3, 2, 1, 1, 1, False) for n in (7, 6)], power=power)
    np.save(good.folder / "x.npy", x)
    np.save(good.folder / "gy.npy", gy)
    good("lp", "x.npy", "-o", "y.npy", "-k3", "-s2", "-p1", *options)
    good("lp", "x.npy", "-o", "gx.npy", "-k3", "-s2", "-p1", "--vjp", "gy.npy", *options)
    np.testing.assert_allclose(np.load(good.folder / "y.npy"), pool.forward(x), rtol=1e-14)
    np.testing.assert_allclose(np.load(good.folder / "gx.npy"), pool.vjp(x, gy), rtol=1e-13, atol=1e-14)


def test_norms_do_not_overflow(good):
    np.save(good.folder / "x.npy", np.array([[3e200, -4e200], [3e-200, 4e-200]]))
    good("lp", "x.npy", "-o", "y.npy", "-k2", "--spatial", 1)
    np.testing.assert_allclose(np.load(good.folder / "y.npy"), [[5e200], [5e-200]], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("op", ["max", "min", "avg"])
def test_dtypes(good, op, dtype):
    x = numbers(np.random.default_rng(6), (3, 6, 6), dtype)
    pool = bf.Pool(op, [bf.sliding(6, 2, 2, 0, 0, 1, False)] * 2)
    np.save(good.folder / "x.npy", x)
    good(op, "x.npy", "-o", "y.npy", "-k2")
    y = np.load(good.folder / "y.npy")
    assert y.dtype == x.dtype
    expected = pool.forward(x)
    if np.dtype(dtype).kind in "iu":
        expected = np.rint(expected)  # half to even, as the contract says
    assert np.array_equal(y, expected.astype(dtype))


@pytest.mark.parametrize("prefix", ["max", "avg", "lp"])
def test_flat(good, prefix):
    x = numbers(np.random.default_rng(7), (2, 3, 4, 5), "f8")
    np.save(good.folder / "x.npy", x)
    np.save(good.folder / "gy.npy", np.ones((2, 3)))
    good("global-" + prefix, "x.npy", "-o", "y.npy", "--flat")
    good("global-" + prefix, "x.npy", "-o", "gx.npy", "--flat", "--vjp", "gy.npy")
    pool = bf.Pool(prefix, [bf.whole(4), bf.whole(5)], ties="all")
    np.testing.assert_allclose(np.load(good.folder / "y.npy"), pool.forward(x)[..., 0, 0],
                               rtol=1e-15 if prefix == "lp" else 0)
    np.testing.assert_allclose(np.load(good.folder / "gx.npy"), pool.vjp(x, np.ones((2, 3, 1, 1))), rtol=1e-14)
