"""A worker that dies in mid-run changes nothing: make check-dask runs this."""

import os
import signal
import time

import dask.array as da
import distributed
import numpy
import pytest
from problems import digest

import tarn


def slowly(block):
    time.sleep(0.01)
    return block


@pytest.mark.parametrize("seed", range(20))
def test_a_killed_worker(seed):
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal((600, 600)).astype("float32")
    pool = tarn.AvgPool(5, 2, 2)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            slow = da.from_array(x, (50, 50)).map_blocks(slowly, dtype=x.dtype)
            future = client.compute(tarn.dask.pool(slow, pool))
            time.sleep(0.2 + 0.5 * rng.random())
            os.kill(list(cluster.workers.values())[seed % 2].pid, signal.SIGKILL)
            assert digest(future.result()) == digest(pool(x))
