"""Pools as objects: any rank, derivatives, text; and the functions that are not PyTorch's."""

import doctest
import math
import pickle

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tarn

CLASSES = [tarn.MaxPool, tarn.MinPool, tarn.AvgPool, tarn.SmoothMaxPool]


@st.composite
def problems(draw):
    """A sliding pool and an input it fits, of one to four spatial axes."""
    ndim = draw(st.integers(1, 4))

    def numbers(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(ndim))

    kernel, dilation = numbers(1, 3), numbers(1, 2)
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(ndim))
    cls = draw(st.sampled_from(CLASSES))
    ties = {"ties": draw(st.sampled_from(["first", "all", "split"]))}
    pool = cls(kernel, numbers(1, 3), padding, dilation, draw(st.booleans()),
               **(ties if cls in CLASSES[:2] else {}))
    sizes = tuple(max(1, d * (k - 1) + 1 - lo - hi) + draw(st.integers(0, 3))
                  for k, d, (lo, hi) in zip(kernel, dilation, padding))
    lead = tuple(draw(st.lists(st.integers(1, 2), max_size=2)))
    rng = numpy.random.default_rng(draw(st.integers(0, 2**32)))
    return pool, numpy.rint(4 * rng.standard_normal(lead + sizes)) / 2, rng


@settings(max_examples=300, deadline=None)
@given(problems())
def test_the_vjp_is_the_transpose_of_the_jvp(problem):
    pool, x, rng = problem
    y = pool(x)
    assert y.shape == pool.output_shape(x.shape)
    dx, gy = rng.integers(-8, 9, x.shape) * 1.0, rng.integers(-8, 9, y.shape) * 1.0
    forward, backward = (gy * pool.jvp(x, dx)).sum(), (dx * pool.vjp(x, gy)).sum()
    assert math.isclose(forward, backward, rel_tol=1e-9, abs_tol=1e-6)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_text_gives_the_pool_back(problem):
    pool, x, _ = problem
    again = tarn.Pool.parse(pool.text)
    assert again.text == pool.text and again.axes == pool.axes
    assert (again(x) == pool(x)).all()


@settings(max_examples=100, deadline=None)
@given(problems())
def test_the_jvp_is_the_slope(problem):
    pool, x, rng = problem
    if not isinstance(pool, (tarn.AvgPool, tarn.SmoothMaxPool)):
        return
    dx, step = rng.standard_normal(x.shape), 1e-6
    slope = (pool(x + step * dx) - pool(x - step * dx)) / (2 * step)
    assert numpy.allclose(pool.jvp(x, dx), slope, atol=1e-7)


def test_adaptive_and_global():
    x = numpy.arange(2.0 * 5 * 7).reshape(2, 5, 7)
    assert tarn.AdaptiveMaxPool((2, 3))(x).tolist() == tarn.adaptive_max_pool2d(x, (2, 3)).tolist()
    assert tarn.AdaptiveAvgPool(2)(x).tolist() == tarn.adaptive_avg_pool2d(x, 2).tolist()
    assert tarn.GlobalMaxPool(3)(x).tolist() == [[[69.0]]]
    assert tarn.GlobalAvgPool(2, keepdims=False)(x).tolist() == [17.0, 52.0]
    assert tarn.GlobalMaxPool(1, ties="split").vjp(numpy.ones(4), numpy.ones(1)).tolist() == [0.25] * 4
    assert tarn.global_max_pool(x, ndim=1, keepdims=False).shape == (2, 5)


def test_min_is_max_upside_down():
    x = numpy.random.default_rng(1).standard_normal((1, 9, 9))
    low, where = tarn.min_pool2d(x, 3, 2, 1, return_indices=True)
    high, there = tarn.max_pool2d(-x, 3, 2, 1, return_indices=True)
    assert (low == -high).all() and (where == there).all()


@pytest.mark.parametrize("beta", (-3.0, 0.5, 4.0, 1000.0))
def test_smooth_max(beta):
    x = numpy.random.default_rng(2).standard_normal((1, 4, 4))
    blocks = x.reshape(1, 2, 2, 2, 2).swapaxes(2, 3).reshape(1, 2, 2, 4)
    top = (beta * blocks).max(-1, keepdims=True)
    expected = (top[..., 0] + numpy.log(numpy.exp(beta * blocks - top).sum(-1))) / beta
    assert numpy.allclose(tarn.smooth_max_pool2d(x, 2, beta=beta), expected, rtol=1e-14, atol=1e-15)
    for bad in (0.0, math.inf, math.nan):
        with pytest.raises(tarn.Error) as caught:
            tarn.smooth_max_pool2d(x, 2, beta=bad)
        assert caught.value.code == "TARN_BAD_VALUE"


def test_padding_beyond_half():
    assert tarn.MaxPool(1, 1, 1)(numpy.ones((1, 1))).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert tarn.MaxPool(1, 1, 1).indices(numpy.ones((1, 1))).tolist()[0] == [-1, -1, -1]


def test_unpool():
    x = numpy.random.default_rng(3).standard_normal((2, 6, 7))
    y, where = tarn.max_pool2d(x, 2, return_indices=True)
    back = tarn.max_unpool2d(y, where, 2, output_size=(6, 7))
    assert back.shape == x.shape and ((back == x) | (back == 0)).all() and (back != 0).sum() == y.size
    assert tarn.max_unpool2d(y, where, 2, output_size=(2, 6, 7)).shape == x.shape
    where[0, 0, 0] = 42
    with pytest.raises(tarn.Error) as caught:
        tarn.max_unpool2d(y, where, 2, output_size=(6, 7))
    assert caught.value.code == "TARN_BAD_INDEX"
    for sizes in ((9, 7), (6,), (1, 2, 3, 4)):
        with pytest.raises(tarn.Error):
            tarn.max_unpool2d(y, where, 2, output_size=sizes)


def test_pad():
    x = numpy.arange(6.0).reshape(1, 2, 3)
    assert (tarn.pad(x, (1, 2, 3, 0)) == numpy.pad(x, ((0, 0), (3, 0), (1, 2)))).all()
    assert (tarn.unpad(tarn.pad(x, (1, 2, 3, 0)), (1, 2, 3, 0)) == x).all()
    for bad in ((1,), (1, 2, 3), (), (-1, 0), (1, 1) * 9):
        with pytest.raises(tarn.Error):
            tarn.pad(x, bad)
    with pytest.raises(tarn.Error):
        tarn.unpad(x, (2, 2))


def test_explain_and_repr():
    text = tarn.AvgPool(3, 2, 1).explain((1, 8, 32, 32), "f32")
    assert "forward" in text and "vjp" in text and "f32" in text
    assert tarn.MaxPool(2).explain((4, 4), numpy.float64) == tarn.MaxPool(2).explain((4, 4), "f64")
    assert repr(tarn.MaxPool((3, 5), 2, ((1, 2), 0))) == "tarn.MaxPool.parse('max k3,5s2p1:2,0')"
    with pytest.raises(TypeError):
        tarn.MaxPool(2).explain((4, 4), "f33")
    with pytest.raises(tarn.Error, match="unknown word"):
        tarn.Pool.parse("max k3 nonsense")


def test_bad_pools():
    for make in (lambda: tarn.MaxPool((1,) * 9), lambda: tarn.MaxPool(2, ties="some"),
                 lambda: tarn.MaxPool((2, 2), ndim=3), lambda: tarn.MaxPool(2, (1, 2, 3)),
                 lambda: tarn.AvgPool(2, divisor=0), lambda: tarn.MaxPool(2, ndim=0)):
        with pytest.raises(ValueError):
            make()
    for make in (lambda: tarn.MaxPool("ab"), lambda: tarn.MaxPool(2, padding="x"),
                 lambda: tarn.Pool(), lambda: tarn.MaxPool(2, ties=3)):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(tarn.Error):
        tarn.MaxPool(0)(numpy.ones((2, 2)))


def test_derivatives_of_integers():
    with pytest.raises(tarn.Error, match="derivatives need a floating dtype"):
        tarn.MaxPool(1).vjp(numpy.ones((2, 2), int), numpy.ones((2, 2), int))


def test_errors_travel():
    error = pickle.loads(pickle.dumps(tarn.Error("words", "TARN_BAD_SHAPE", 1)))
    assert (str(error), error.code, error.axis) == ("words", "TARN_BAD_SHAPE", 1)
    assert isinstance(error, ValueError) and isinstance(error, RuntimeError)


def test_graph():
    x = numpy.random.default_rng(4).standard_normal((1, 2, 6, 6)).astype("float32")
    g = tarn.Graph()
    value = g.name(g.input("f32", x.shape), "x")
    a = g.pool(value, tarn.MaxPool(3, 1, 1))
    b = g.scale(g.unpad(g.pad(value, (1, 1, 1, 1)), (1, 1, 1, 1)), 2.0)
    both = g.concat([a, b], 1)
    g.output(g.flatten(g.add(both, g.constant(numpy.ones((1, 4, 6, 6), "float32")))))
    g.output(g.reshape(a, (2, 36)))
    flat, again = g(x)
    expected = numpy.concatenate([tarn.max_pool2d(x, 3, 1, 1), 2 * x], 1) + 1
    assert (flat == expected.reshape(1, -1)).all()
    assert (again == tarn.max_pool2d(x, 3, 1, 1).reshape(2, 36)).all()
    assert g.find("x") == value and g.view(both) == ("f32", (1, 4, 6, 6))
    tangents = g.jvp([x], [x])
    gradients = g.vjp((x.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2),), [flat, again])
    left = sum((t.astype("f8") * c).sum() for t, c in zip(tangents, (flat, again)))
    assert math.isclose(left, (gradients[0].astype("f8") * x).sum(), rel_tol=1e-4)
    assert (tarn.Graph.load(g.save())(x)[0] == flat).all()
    assert "digraph" in g.dot() and g.memory("vjp")["steps"] > 0


def test_graph_errors():
    g = tarn.Graph()
    x = g.input("f32", (1, 4, 4))
    for bad in (lambda: g.pool(7, tarn.MaxPool(2)), lambda: g.pool(x, tarn.MaxPool(9)),
                lambda: g.output(-1), lambda: g.name(x, "not a name"), lambda: g.memory("x"),
                lambda: g.concat([], 0), lambda: tarn.Graph.load("y = max"),
                lambda: g(numpy.ones((1, 4, 5), "float32")), lambda: g(numpy.ones((1, 4, 4)))):
        with pytest.raises(ValueError):
            g.output(x)
            bad()
    for bad in (lambda: g.pool(x, "max"), lambda: g.input("x33", (1,)), lambda: g(3),
                lambda: tarn.Graph(1), lambda: g(x=1)):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(KeyError):
        g.find("nobody")


def test_graph_with_integers():
    g = tarn.Graph()
    g.output(g.pool(g.input("i32", (4,)), tarn.MaxPool((2,))))
    x = numpy.arange(4, dtype="int32")
    assert g(x)[0].tolist() == [1, 3]
    assert g.vjp([x], [None]) == (None,)


@pytest.mark.parametrize("thing", (tarn.Graph,))
def test_examples_of_types_made_in_c(thing):
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(recurse=False).find(thing, thing.__name__, globs={}):
        assert runner.run(test).failed == 0 and test.examples
