"""Pools and graphs as values: compared, hashed, copied, pickled, sent to workers; names of arguments."""

import copy
import multiprocessing
import pickle
import subprocess
import sys

import numpy
import pytest

import tarn

POOLS = [tarn.MaxPool(3, stride=2, padding=((0, 1), (2, 3)), ties="split"), tarn.AvgPool((2,), divisor=3),
         tarn.SmoothMaxPool(2, beta=0.1), tarn.LpPool(2, ceil=True, p=3.5), tarn.AdaptiveMinPool((3, 4)),
         tarn.AdaptiveSmoothMaxPool(3, beta=-2.0), tarn.AdaptiveLpPool((2,), 1.5), tarn.GlobalMinPool(3),
         tarn.GlobalSmoothMaxPool(1, False, 0.3), tarn.GlobalLpPool(2, p=4.0)]


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_pools_are_values(pool):
    twins = [pickle.loads(pickle.dumps(pool)), copy.copy(pool), copy.deepcopy(pool), eval(repr(pool))]
    for twin in twins:
        assert twin == pool and hash(twin) == hash(pool) and type(twin) is type(pool)
        assert twin.__dask_tokenize__() == pool.__dask_tokenize__()
    assert pool != tarn.MaxPool(7) and pool != pool.text
    assert len({*POOLS, *twins}) == len(POOLS)


def test_names_of_arguments():
    assert tarn.MaxPool(kernel_size=3, ceil_mode=True) == tarn.MaxPool(kernel=3, ceil=True)
    assert tarn.AvgPool(2, divisor_override=3) == tarn.AvgPool(2, divisor=3)
    assert tarn.LpPool(2, norm_type=3) == tarn.LpPool(2, p=3)
    with pytest.raises(TypeError):
        tarn.MaxPool(kernel_size=3, kernel=3)
    x = numpy.arange(32.0).reshape(1, 2, 4, 4)
    assert (tarn.max_pool2d(input=x, kernel_size=2) == tarn.MaxPool(2)(x)).all()


def test_sizes_that_stay():
    x = numpy.random.default_rng(3).random((2, 6, 4), "f4")
    for pool in tarn.adaptive_max_pool2d, tarn.adaptive_avg_pool2d:
        assert (pool(x, (None, 2)) == pool(x, (6, 2))).all() and (pool(x, [3, None]) == pool(x, (3, 4))).all()


def test_graphs_travel():
    graph = tarn.Graph()
    x = graph.input("f64", (2, 4))
    graph.output(graph.pool(x, tarn.MaxPool((2,))))
    values = numpy.arange(8.0).reshape(2, 4)
    twins = pickle.loads(pickle.dumps(graph)), copy.copy(graph), copy.deepcopy(graph), eval(repr(graph))
    for twin in twins:
        assert twin == graph and not twin != graph and (twin(values)[0] == graph(values)[0]).all()
    twin.output(twin.scale(0, 2.0))
    assert twin != graph and graph != 5 and graph == eval(repr(graph))
    with pytest.raises(TypeError, match="unhashable"):
        hash(graph)
    with pytest.raises(TypeError):
        graph < twin


WORKERS = """
import multiprocessing, sys, numpy, tarn
def pooled(pool, x): return pool(x)[0] if isinstance(pool, tarn.Graph) else pool(x)
if __name__ == "__main__":
    x = numpy.arange(16.0).reshape(4, 4)
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as workers:
        y = workers.apply(pooled, (tarn.MaxPool(2), x))
        graph = tarn.Graph()
        graph.output(graph.pool(graph.input("f64", x.shape), tarn.MaxPool(2)))
        assert (y == workers.apply(pooled, (graph, x))).all()
    assert (y == tarn.MaxPool(2)(x)).all()
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers(method, tmp_path):
    """In a process of its own: a fork of this one would take the threads of other tests along."""
    program = tmp_path / "workers.py"
    program.write_text(WORKERS)
    subprocess.run([sys.executable, str(program), method], check=True, timeout=120)


def test_without_numpy():
    program = """
import sys
sys.modules["numpy"] = None
import array, tarn
assert tarn.MaxPool((2,))(array.array("d", [1, 3, 2, 5])).tolist() == [3, 5]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_python_m_tarn(tmp_path, monkeypatch):
    def call():
        return subprocess.run([sys.executable, "-m", "tarn", "shape"], capture_output=True, text=True)

    monkeypatch.setenv("PATH", str(tmp_path))
    assert call().returncode == 1 and "not on PATH" in call().stderr
    program = tmp_path / "tarn"
    program.write_text("#!/bin/sh\necho \"$1\"\n")
    program.chmod(0o755)
    assert call().stdout == "shape\n"
