"""tarn.jax against tarn itself, bit by bit, and its derivatives against JAX's own checks."""

import os
import subprocess
import sys

import numpy
import pytest

jax = pytest.importorskip("jax", exc_type=(ImportError, AttributeError))  # it wants NumPy 2

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import tarn  # noqa: E402
import tarn.jax  # noqa: E402

POOLS = {
    "max": tarn.MaxPool(3, stride=2, padding=1),
    "max split": tarn.MaxPool(2, stride=1, ties="split"),
    "min": tarn.MinPool(2),
    "avg": tarn.AvgPool(3, stride=1, padding=((1, 0), (2, 1)), count_include_pad=False),
    "smooth": tarn.SmoothMaxPool(3, stride=2, beta=1.5),
    "lp": tarn.LpPool(3, stride=2, padding=1, p=3),
    "adaptive": tarn.AdaptiveAvgPool((3, 2)),
    "global": tarn.GlobalMaxPool(keepdims=False),
}
every_pool = pytest.mark.parametrize("name", POOLS)


@pytest.fixture(params=["compiled", "callback"])
def way(request):
    """How functions that JAX compiles call tarn."""
    return take(request.param)


def take(way):
    tarn.jax.build()
    if way == "callback":
        tarn.jax._disconnect()
    return way


@pytest.fixture(autouse=True)
def wide_types():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def draw(*shape, dtype="float64", seed=3):
    """Numbers that lie apart, so that differences of them do not change a winner."""
    rng = numpy.random.default_rng(seed)
    apart = rng.permutation(numpy.prod(shape, dtype=int)).reshape(shape) / 4.0 - 7.1
    return apart.astype(dtype)


@every_pool
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("way", ["eager", "compiled", "callback"])
def test_bits(name, dtype, way):
    p, wrap = POOLS[name], (lambda f: f) if take(way) == "eager" else jax.jit
    if dtype == "bfloat16":
        dtype = jnp.bfloat16
    x, dx = draw(2, 3, 6, 5, dtype=dtype), draw(2, 3, 6, 5, dtype=dtype, seed=4)
    gy = draw(*p.output_shape(x.shape), dtype=dtype, seed=5)

    def same(ours, theirs):
        theirs = numpy.asarray(theirs)
        assert theirs.dtype == ours.dtype and theirs.shape == ours.shape
        assert theirs.tobytes() == numpy.ascontiguousarray(ours).tobytes()

    same(p(x), wrap(lambda x: tarn.jax.pool(p, x))(x))
    y, dy = wrap(lambda x, dx: jax.jvp(lambda x: tarn.jax.pool(p, x), (x,), (dx,)))(x, dx)
    same(p(x), y)
    same(p.jvp(x, dx), dy)
    pull = wrap(lambda x, gy: jax.vjp(lambda x: tarn.jax.pool(p, x), x)[1](gy)[0])
    same(p.vjp(x, gy), pull(x, gy))


@every_pool
def test_derivatives(name):
    p = POOLS[name]
    x = draw(2, 6, 5)
    check_grads(lambda x: tarn.jax.pool(p, x), (x,), order=1, modes=["fwd", "rev"], eps=1e-5)
    if name not in ("lp",):
        check_grads(lambda x: jnp.sin(tarn.jax.pool(p, x)), (x,), order=2, modes=["fwd", "rev"],
                    eps=1e-5, atol=1e-4, rtol=1e-4)


def test_second_derivative_of_lp_is_refused():
    with pytest.raises(NotImplementedError, match="Lp"):
        jax.hessian(lambda x: tarn.jax.lp_pool1d(x, 3, 2).sum())(draw(1, 4))


@every_pool
def test_vmap(name, way):
    p = POOLS[name]
    x, dx = draw(4, 2, 6, 5), draw(4, 2, 6, 5, seed=4)
    f = applied(p)
    expected = numpy.stack([p(x[k]) for k in range(4)])
    assert (jax.vmap(f)(x) == expected).all()
    assert (jax.jit(jax.vmap(f))(x) == expected).all()
    assert (jax.vmap(f, in_axes=2, out_axes=1)(jnp.moveaxis(x, 0, 2)) ==
            numpy.moveaxis(expected, 0, 1)).all()
    gradients = jax.vmap(jax.grad(lambda x: f(x).sum()))(x)
    assert (gradients == numpy.stack([p.vjp(x[k], numpy.ones(p.output_shape(x.shape[1:])))
                                      for k in range(4)])).all()
    tangents = jax.vmap(lambda dx: jax.jvp(f, (x[0],), (dx,))[1])(dx)  # one x, many tangents
    assert (tangents == numpy.stack([p.jvp(x[0], dx[k]) for k in range(4)])).all()
    assert jax.jacrev(f)(x[0]).shape == (*p.output_shape(x.shape[1:]), 2, 6, 5)
    assert numpy.allclose(jax.jacrev(f)(x[0]), jax.jacfwd(f)(x[0]), rtol=1e-12)


def applied(p):
    return lambda x: tarn.jax.pool(p, x)


CALLS = {
    "max_pool2d": ((3,), {"stride": 2, "padding": 1}),
    "min_pool2d": ((2,), {"dilation": 2}),
    "avg_pool2d": (((2, 3),), {"ceil_mode": True, "divisor_override": 5}),
    "smooth_max_pool2d": ((2,), {"beta": -2.0, "padding": 1, "count_include_pad": False}),
    "lp_pool2d": ((2.5, 2), {"stride": 1}),
    "adaptive_max_pool2d": (((None, 2),), {}),
    "adaptive_avg_pool2d": ((3,), {}),
    "global_max_pool": ((), {"keepdims": False}),
    "global_avg_pool": ((), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name):
    arguments, options = CALLS[name]
    x = draw(2, 3, 7, 6, dtype="float32")
    y = getattr(tarn.jax, name)(jnp.asarray(x), *arguments, **options)
    assert isinstance(y, jax.Array)
    assert (numpy.asarray(y) == getattr(tarn, name)(x, *arguments, **options)).all()


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_every_function_in_every_rank(ndim):
    x = draw(2, *(6, 5, 4)[:ndim])
    for word, arguments in (("max", (2,)), ("min", (2,)), ("avg", (2,)), ("smooth_max", (2,)),
                            ("lp", (2, 2)), ("adaptive_max", (2,)), ("adaptive_avg", (2,))):
        name = f"{word}_pool{ndim}d"
        assert (getattr(tarn.jax, name)(x, *arguments) == getattr(tarn, name)(x, *arguments)).all()


@pytest.mark.parametrize("wide", [False, True])
def test_indices(wide, way):
    jax.config.update("jax_enable_x64", wide)
    x = draw(2, 3, 6, 4, dtype="float32")
    expected = tarn.max_pool2d(x, 2, return_indices=True)
    for wrap in (lambda f: f, jax.jit, jax.vmap):
        y, where = wrap(lambda x: tarn.jax.max_pool2d(x, 2, return_indices=True))(jnp.asarray(x))
        assert (y == expected[0]).all() and (where == expected[1]).all()
        assert where.dtype == (numpy.int64 if wide else numpy.int32)
    gradient = jax.grad(lambda x: tarn.jax.max_pool2d(x, 2, return_indices=True)[0].sum())(x)
    assert gradient.sum() == expected[0].size


def test_integers():
    x = jnp.arange(16).reshape(1, 4, 4)
    assert (tarn.jax.max_pool2d(x, 2) == numpy.array([[[5, 7], [13, 15]]])).all()
    with pytest.raises(tarn.Error, match="floating"):
        tarn.jax.smooth_max_pool2d(x, 2)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_refusals_come_while_tracing(wrap):
    x = jnp.zeros((1, 4, 4))
    with pytest.raises(tarn.Error, match="does not fit"):
        wrap(lambda x: tarn.jax.max_pool2d(x, 5))(x)
    with pytest.raises(tarn.Error, match="power"):
        wrap(lambda x: tarn.jax.lp_pool2d(x, 0.5, 2))(x)
    with pytest.raises(tarn.Error, match="rank"):
        wrap(lambda x: tarn.jax.max_pool2d(x[0], 2))(x)


def test_it_can_be_switched_off(tmp_path):
    """Without a compiler, and where the environment says no, callbacks do the work."""
    script = ("import jax, jax.numpy as jnp, tarn.jax; f = jax.jit(lambda x: tarn.jax.max_pool2d(x, 2)); "
              "x = jnp.ones((1, 4, 4)); print('callback' in f.lower(x).as_text(), f(x).sum())")
    for words in ({"TARN_JAX_NATIVE": "0"}, {"CXX": "no-such-compiler", "TARN_CACHE_DIR": str(tmp_path)}):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              env={**os.environ, **words})
        assert done.stdout.split() == ["True", "4.0"], done.stderr


def test_the_way_is_taken(way):
    x = jnp.arange(64.0, dtype="float32").reshape(1, 8, 8)
    for function in (applied(tarn.MaxPool(2)), jax.grad(lambda x: tarn.jax.avg_pool2d(x, 2).sum())):
        assert ("callback" in jax.jit(function).lower(x).as_text()) == (way == "callback")
        assert ("tarn_pool" in jax.jit(function).lower(x).as_text()) == (way == "compiled")
    empty = jax.jit(applied(tarn.MaxPool(2)))(x[:0])
    assert empty.shape == (0, 4, 4)


@pytest.mark.parametrize("kernel", [3, 17])  # winners of one byte, and of four
def test_winners_are_the_residuals(kernel, way):
    p = tarn.MaxPool(kernel, stride=1, padding=kernel // 2)
    x = draw(2, 3, 8, 8, dtype="float32")
    gradient = jax.jit(jax.grad(lambda x: (tarn.jax.pool(p, x) ** 2).sum()))
    text = gradient.lower(x).as_text()
    assert (f"2x3x8x8xui{8 if kernel == 3 else 32}" in text.replace("xi32", "xui32"))
    if way == "compiled":  # the backward reads winners and gy, and not x
        assert text.count("@tarn_pool(%arg0") == 1
    assert numpy.asarray(gradient(x)).tobytes() == p.vjp(x, 2 * p(x)).tobytes()


def test_subnormals_survive(way):
    """XLA's threads flush them to zero; tarn sets the state of its runs."""
    x = numpy.full((1, 2, 2), 1e-40, "float32")
    assert numpy.asarray(jax.jit(applied(tarn.AvgPool(2)))(x)).item() == x[0, 0, 0]


def test_threads(way):
    """In threads of Python, and in those of tarn."""
    from concurrent.futures import ThreadPoolExecutor

    def check(n):
        x = draw(1, n % 40 + 2, n // 40 + 2, dtype="float32", seed=n)
        assert (jax.jit(applied(tarn.MaxPool(2)))(x) == tarn.max_pool2d(x, 2)).all()

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(check, range(40)))
    x = draw(4, 128, 256, dtype="float32")
    f = jax.jit(applied(tarn.MaxPool(3, stride=2)))
    expected = numpy.asarray(f(x))
    tarn.set_num_threads(2)
    try:
        assert (numpy.asarray(f(x)) == expected).all()
    finally:
        tarn.set_num_threads(1)
