"""A worker that dies in mid-run changes nothing: make check-dask runs this."""

import os
import signal
import time

import dask.array as da
import numpy
import pytest
from problems import digest
from test_dask import cluster  # noqa: F401

import tarn


@pytest.mark.parametrize("seed", range(20))
def test_a_killed_worker(cluster, seed):
    made, client = cluster
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal((600, 600)).astype("float32")
    slow = da.from_array(x, (50, 50)).map_blocks(lambda b: (time.sleep(0.01), b)[1], dtype=x.dtype)
    pool = tarn.AvgPool(5, 2, 2)
    future = client.compute(tarn.dask.pool(slow, pool))
    time.sleep(0.2 + 0.5 * rng.random())
    os.kill(list(made.workers.values())[seed % 2].pid, signal.SIGKILL)
    assert digest(future.result(timeout=120)) == digest(pool(x))
    client.wait_for_workers(2, timeout=120)
