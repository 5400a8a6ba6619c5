"""Objects that act while they are read, that carry more than numbers, or that say less than others."""

import ctypes
import sys

import numpy
import pytest
import torch
import torch.autograd.forward_ad as forward_ad

import tarn
from tarn import _core


class Acting:
    """An array that does something when it is asked for its numbers."""

    def __init__(self, base, act):
        self.base, self.act = base, act

    def __dlpack__(self, **kwargs):
        self.act()
        return self.base.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.base.__dlpack_device__()


def small_graph():
    graph = tarn.Graph()
    x = graph.input("f64", (4,))
    graph.output(graph.pool(x, tarn.MaxPool((2,))))
    return graph, x


def grow(graph, how, count):
    for _ in range(count):
        if how == "input":
            graph.output(graph.input("f64", (4,)))
        else:
            graph.output(graph.scale(0, 2.0))


@pytest.mark.parametrize("how", ["input", "output"])
@pytest.mark.parametrize("count", [1, 2, 7, 40, 300])
def test_a_graph_that_grows_while_it_is_read(how, count):
    for mode in ["forward", "jvp", "vjp"]:
        graph, _ = small_graph()
        x = numpy.arange(4.0)
        acting = Acting(x, lambda: grow(graph, how, count))
        with pytest.raises(tarn.Error, match="changed while"):
            if mode == "forward":
                graph(acting)
            elif mode == "jvp":
                graph.jvp([x], [acting])
            else:
                graph.vjp([x], [Acting(x[:2], lambda: grow(graph, how, count))])


def test_a_graph_that_is_run_while_it_is_read():
    graph, _ = small_graph()
    inner = []
    x = numpy.arange(4.0)
    y, = graph(Acting(x, lambda: inner.append(graph(x)[0])))
    assert (numpy.from_dlpack(y) == [1, 3]).all() and (inner[0] == [1, 3]).all()


@pytest.mark.parametrize("ndim", [-1, 0, 9, 99, 2**31, 2**32 + 2, 2**70])
def test_numbers_of_axes(ndim):
    """The functions behind those of the package check for themselves."""
    x = numpy.zeros((1, 4, 4))
    sliding = [ndim, x, 2, None, 0, 1, False, True, None, 1.0, None, None]
    for call in [lambda: _core.sliding(_core.MAX, *sliding, False, None),
                 lambda: _core.sliding_pool(_core.MAX, *sliding, False, None),
                 lambda: _core.adaptive(_core.MAX, ndim, x, 2, 1.0, None, None, False, None),
                 lambda: _core.global_(_core.MAX, ndim, x, True, "first", 1.0, None, None, None),
                 lambda: _core.unpool(ndim, x, x.astype("int64"), 2, None)]:
        with pytest.raises((tarn.Error, OverflowError), match="ndim"):
            call()


def test_arrays_of_ctypes():
    rows = (ctypes.c_float * 4 * 4)(*((ctypes.c_float * 4)(*range(4 * r, 4 * r + 4)) for r in range(4)))
    assert tarn.MaxPool((2, 2))(rows).tolist() == [[5.0, 7.0], [13.0, 15.0]]
    numbers = (ctypes.c_int16 * 6)(5, 1, 4, 2, 0, 3)
    assert tarn.MaxPool((2,))(numbers).tolist() == [5, 4, 3]
    out = (ctypes.c_int16 * 3)()
    assert tarn.MaxPool((2,))(numbers, out=out) is out and list(out) == [5, 4, 3]
    with pytest.raises(tarn.Error, match="format"):
        tarn.MaxPool((2,))((ctypes.c_bool * 4)())


def test_forward_mode_tangents_are_not_lost():
    x = torch.rand(1, 1, 4, 4)
    pool = tarn.MaxPool((2, 2))
    graph = tarn.Graph()
    graph.output(graph.pool(graph.input("f32", (1, 1, 4, 4)), pool))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        for call in [lambda: tarn.max_pool2d(dual, 2), lambda: tarn.adaptive_avg_pool2d(dual, 2),
                     lambda: tarn.global_avg_pool(dual), lambda: tarn.pad(dual, (1, 1)),
                     lambda: pool(dual), lambda: pool.vjp(dual, x[..., :2, :2]), lambda: graph(dual)]:
            with pytest.raises(BufferError, match="forward-mode tangent"):
                call()
        assert tarn.max_pool2d(x, 2).equal(tarn.max_pool2d(dual.detach(), 2))
        y = tarn.torch.max_pool2d(dual, 2)
        assert forward_ad.unpack_dual(y).tangent.equal(torch.ones(1, 1, 2, 2))


def test_masks_are_not_lost():
    x = numpy.arange(16.0).reshape(1, 4, 4)
    masked = numpy.ma.masked_greater(x, 12)
    graph = tarn.Graph()
    graph.output(graph.pool(graph.input("f64", (1, 4, 4)), tarn.MaxPool((2, 2))))
    for call in [lambda: tarn.max_pool2d(masked, 2), lambda: tarn.MaxPool((2, 2)).vjp(x, masked[:, :2, :2]),
                 lambda: tarn.max_pool2d(x, 2, out=numpy.ma.zeros((1, 2, 2))), lambda: graph(masked)]:
        with pytest.raises(TypeError, match="masked array"):
            call()
    assert tarn.max_pool2d(masked.filled(0), 2).max() == 12
    assert tarn.max_pool2d(masked.data, 2).max() == 15


@pytest.mark.skipif(sys.platform != "linux", reason="the linker of Linux is told so")
def test_the_module_exports_its_init_function_only():
    library = ctypes.CDLL(_core.__file__)
    assert hasattr(library, "PyInit__core")
    for name in ("tarn_forward", "tarn_plan_create", "tarn_graph_create", "tarn_version"):
        assert not hasattr(library, name)


def chain(nodes, name):
    """The text of a graph of so many nodes, whose names are name(0), name(1), ..."""
    lines = [f"{name(k + 1)} = max {name(k)} kernel=1 spatial=1" for k in range(nodes)]
    return "\n".join([f"{name(0)} = input f32 4", *lines, f"return {name(nodes)}"]) + "\n"


def test_drawings_and_names_grow_with_the_graph():
    """Twice the nodes take twice the drawing; names that agree up to their ends are as good as others."""
    lengths = [len(tarn.Graph.load(chain(nodes, "v{}".format)).dot()) for nodes in (2000, 4000)]
    assert lengths[1] < 2.2 * lengths[0]
    text = chain(4000, lambda k: "a" * 50 + format(k, "012b").translate({48: "a", 49: "q"}))
    assert tarn.Graph.load(text).save().count("\n") == text.count("\n")


class Failing:
    """Fails at whatever it is asked for, each time in another way."""

    def __bool__(self):
        raise LookupError("truth")

    def __float__(self):
        raise ZeroDivisionError("number")

    __index__ = __float__


def test_an_error_is_not_lost_behind_another():
    """The first one ends a call: nothing else is asked then."""
    x, bad = numpy.zeros((1, 4, 4)), Failing()
    sliding = [2, x, 2, None, 0, 1, bad, bad, None, bad, None, None, False, None]
    for call in [lambda: tarn.lp_pool1d(x, bad, 2, ceil_mode=bad), lambda: _core.sliding(_core.LP, *sliding),
                 lambda: _core.sliding(_core.LP, *sliding[:6], False, *sliding[7:]),
                 lambda: _core.global_(_core.LP, 2, x, bad, "first", bad, None, None, None)]:
        with pytest.raises(LookupError, match="truth"):
            call()
    with pytest.raises(ZeroDivisionError, match="number"):
        _core.global_(bad, 2, x, True, "first", bad, None, None, None)
