"""Random problems and random chunks, and what NumPy gets, for the tests in this folder."""

import hashlib
import math
import warnings

import dask.array as da
import ml_dtypes
import numpy

import tarn

FLOATS = ("float64", "float32", "float16", ml_dtypes.bfloat16)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def random_pool(rng, ndim, sizes):
    """Any operator and window, paddings longer than windows too."""
    op = rng.choice(["max", "min", "avg", "smooth", "lp", "mode"], p=[0.25, 0.15, 0.35, 0.1, 0.1, 0.05])
    words = [op]
    rule = rng.choice(["sliding", "adaptive", "global"], p=[0.6, 0.2, 0.2])
    if rule == "sliding":
        kernel, dilation = rng.integers(1, 6, ndim), rng.integers(1, 3, ndim)
        extent = dilation * (kernel - 1) + 1
        lo = rng.integers(0, 4, ndim)
        hi = numpy.maximum(rng.integers(0, 9 if rng.random() < 0.2 else 3, ndim), extent - lo - sizes)
        pads = ",".join(f"{a}:{b}" for a, b in zip(lo, hi))
        words.append(f"k{_list(kernel)}s{_list(rng.integers(1, 4, ndim))}p{pads}e{_list(dilation)}")
        words += ["ceil"] if rng.random() < 0.5 else []
    elif rule == "adaptive":
        words.append(f"a{_list(rng.integers(1, 12, ndim))}")
    else:
        words.append(str(rng.choice(["global", "flat"])))
    if op in ("max", "min"):
        words.append(f"ties={rng.choice(['first', 'all', 'split'])}")
    if op in ("avg", "smooth") and rng.random() < 0.5:
        words.append("nopad")
    return tarn.Pool.parse(" ".join([*words, f"d{ndim}"]))


def _list(numbers):
    return ",".join(map(str, numbers))


def random_values(rng, shape, dtype):
    dtype = numpy.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 256, (*shape, dtype.itemsize), "uint8").view(dtype)[..., 0]
    x = rng.standard_normal(shape)
    x = numpy.where(rng.random(shape) < 0.3, numpy.round(x), x)  # ties, and zeros of both signs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.astype(dtype)


def random_problem(rng):
    ndim = int(rng.integers(1, 4))
    sizes = rng.integers(1, (40, 18, 10)[ndim - 1], ndim)
    shape = (*rng.integers(1, 4, rng.integers(0, 3)), *sizes)
    pool = random_pool(rng, ndim, sizes)
    weighs, counts = pool.op in (tarn._core.SMOOTH, tarn._core.LP), pool.op == tarn._core.MODE
    floating = weighs or (not counts and rng.random() < 0.7)
    dtype = FLOATS[rng.integers(4)] if floating else INTEGERS[rng.integers(8)]
    x = random_values(rng, tuple(map(int, shape)), dtype)
    if weighs or rng.random() < 0.7:
        return pool, x
    skipped = numpy.nan if floating else int(x.flat[0])
    x[rng.random(x.shape) < 0.4] = skipped
    return tarn.Pool.parse(f"{pool.text} skip={skipped} min={rng.integers(0, 4)}"), x


def random_chunks(rng, shape):
    """Irregular ones: of size 1, smaller than any halo, or whole; not too many."""
    chunks = [random_cuts(rng, size) for size in shape]
    while math.prod(map(len, chunks)) > 30:
        axis = rng.choice([k for k, sizes in enumerate(chunks) if len(sizes) > 1])
        at = rng.integers(len(chunks[axis]) - 1)
        a, b = chunks[axis][at:at + 2]
        chunks[axis] = (*chunks[axis][:at], a + b, *chunks[axis][at + 2:])
    return tuple(chunks)


def random_cuts(rng, size):
    most = size if rng.random() < 0.4 else min(size, int(rng.integers(1, 6)))
    sizes = []
    while size > 0:
        sizes.append(int(min(size, rng.integers(1, most + 1))))
        size -= sizes[-1]
    return tuple(sizes)


def digest(array):
    array = numpy.ascontiguousarray(array)
    return str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()


def comes_apart(pool, pass_):
    if pool.window != "global":
        return True
    if pool.skips:
        return False
    if pool.op in (tarn._core.MAX, tarn._core.MIN):
        return pass_ in ("forward", "indices") or (pass_ == "jvp" and pool.keeps_winners)
    return pool.op == tarn._core.AVG


def lazy_and_expected(rng, pool, x, chunks):
    """Pairs of a dask array and what it must be, for every pass; nothing is computed here."""
    lazy, pairs = da.from_array(x, chunks), []

    def add(pass_, make, expected):
        spread = any(len(c) > 1 for c in chunks[x.ndim - len(pool.axes):])
        if spread and not comes_apart(pool, pass_):
            try:
                make()
            except ValueError as error:
                assert "chunks" in str(error) and "axis" in str(error)
                return
            raise AssertionError(f"{pass_} of {pool!r} comes apart")
        made, found = make(), expected()
        pairs.extend(zip(made, found) if isinstance(made, tuple) else [(made, found)])

    add("forward", lambda: tarn.dask.pool(lazy, pool), lambda: pool(x))
    if pool.op in (tarn._core.MAX, tarn._core.MIN):
        add("indices", lambda: tarn.dask.pool(lazy, pool, indices=True),
            lambda: pool.forward_indices(x))
    if x.dtype.kind not in "iu":
        dx, gy = random_values(rng, x.shape, x.dtype), random_values(rng, pool(x).shape, x.dtype)
        other, ys = random_chunks(rng, x.shape), random_chunks(rng, gy.shape)
        add("jvp", lambda: tarn.dask.jvp(pool, lazy, da.from_array(dx, other)),
            lambda: pool.jvp(x, dx))
        add("vjp", lambda: tarn.dask.vjp(pool, lazy, da.from_array(gy, ys)), lambda: pool.vjp(x, gy))
    return pairs
