"""Objects that act while they are read."""

import numpy
import pytest

import tarn


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
