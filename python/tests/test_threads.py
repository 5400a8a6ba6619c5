"""Python threads, the package's own threads, processes and interpreters."""

import concurrent.futures
import os
import subprocess
import sys
import threading
import time

import numpy
import pytest

import tarn


def picture(*shape):
    return numpy.random.default_rng(5).standard_normal(shape).astype("float32")


def test_eight_threads_on_one_pool():
    p, x = tarn.MaxPool(3, 2, 1), picture(4, 8, 64, 64)
    gy = picture(4, 8, 32, 32)
    expected = p(x), p.indices(x), p.jvp(x, x), p.vjp(x, gy)
    graph = tarn.Graph()
    graph.output(graph.pool(graph.input("f32", x.shape), p))
    start = threading.Barrier(8)

    def work(_):
        start.wait()
        for _ in range(30):
            results = p(x), p.indices(x), p.jvp(x, x), p.vjp(x, gy)
            assert all((a == b).all() for a, b in zip(results, expected))
            assert (graph(x)[0] == expected[0]).all()
            tarn.max_pool2d(picture(1, 8, 8), int(numpy.random.randint(1, 9)))  # other plans
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.parametrize("threads", (1, 2, 3, 8))
def test_the_bits_do_not_depend_on_threads(threads):
    x = picture(2, 3, 150, 170)
    for pool in (tarn.MaxPool(3, 2, 1), tarn.AvgPool(5, 1, 2), tarn.SmoothMaxPool(3)):
        expected = pool(x), pool.vjp(x, pool(x))
        with tarn.threads(threads):
            assert tarn.get_num_threads() == threads
            assert pool(x).tobytes() == expected[0].tobytes()
            assert pool.vjp(x, pool(x)).tobytes() == expected[1].tobytes()


def test_settings():
    assert tarn.get_num_threads() == 1
    with tarn.threads(3) as context:
        with tarn.threads(5):
            assert tarn.get_num_threads() == 5
        with context:
            assert tarn.get_num_threads() == 3
        seen = []
        other = threading.Thread(target=lambda: seen.append(tarn.get_num_threads()))
        other.start()
        other.join()
        assert seen == [1]  # a context is of its own thread
    tarn.set_num_threads(2)
    assert tarn.get_num_threads() == 2
    tarn.set_num_threads(1)
    for bad in (0, -1, 5000):
        with pytest.raises(ValueError):
            tarn.set_num_threads(bad)
    with pytest.raises(TypeError):
        tarn.set_num_threads("2")
    with pytest.raises(ValueError):
        tarn.threads(0)


def test_the_gil_is_released():
    """While one thread pools something large, another goes on."""
    x = picture(2, 16, 512, 512)
    counts, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counts[0] += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        before = counts[0]
        for _ in range(3):
            tarn.max_pool2d(x, 9, 1, 4)
        during = counts[0] - before
    finally:
        done.set()
        counter.join()
    # With the GIL held, the counter would come to run between calls only.
    assert during > 50


FORK = """
import os, sys, numpy, tarn

def threads():
    return len(os.listdir("/proc/self/task"))

x = numpy.random.default_rng(5).standard_normal((2, 3, 200, 200)).astype("float32")
expected, alone = tarn.max_pool2d(x, 3).tobytes(), threads()
with tarn.threads(4):
    assert tarn.max_pool2d(x, 3).tobytes() == expected
    assert threads() == alone + 3, threads()
    child = os.fork()
    before = threads()
    same = tarn.max_pool2d(x, 3).tobytes() == expected
    if child == 0:
        os._exit(0 if same and before == 1 and threads() == 4 else 3)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not same)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_threads_start_and_fork_starts_anew():
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_exit_with_threads_waiting():
    program = "import numpy, tarn; tarn.set_num_threads(4); tarn.max_pool2d(numpy.ones((8,300,300)), 3)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import tarn
one = interpreters.create()
try:
    interpreters.run_string(one, '''
import array, tarn
y = tarn.MaxPool((2,))(array.array("d", [1.0, 3.0, 2.0, 5.0]))
assert y.tolist() == [3.0, 5.0], y.tolist()
try:
    tarn.MaxPool((9,))(array.array("d", [1.0]))
except tarn.Error as error:
    assert "does not fit" in str(error)
''')
finally:
    interpreters.destroy(one)
import array
assert tarn.MaxPool((2,))(array.array("d", [1.0, 3.0])).tolist() == [3.0]
"""


def test_subinterpreters():
    """Each interpreter has a module of its own; its end does not touch the others."""
    result = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True,
                            timeout=60)
    refused = "does not support loading in subinterpreters" in result.stderr  # 3.12 on, own GIL
    assert result.returncode == 0 or refused, result.stderr


def test_a_stack_of_256_kib():
    """Passes of pools and graphs in a thread with little stack have the bits of one with much."""
    x = numpy.random.default_rng(0).standard_normal((60, 300)).astype("f4")
    pool = tarn.MaxPool(7, 1, ties="split")
    graph = tarn.Graph()
    graph.output(graph.pool(graph.input("f32", x.shape), pool))
    gy = numpy.ones((54, 294), "f4")

    def run(found):
        found += [pool(x), pool.vjp(x, gy), pool.jvp(x, x), *graph.vjp([x], [gy])]

    expected, found = [], []
    run(expected)
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=run, args=(found,))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(found) == len(expected) > 3
    assert all(numpy.array_equal(a, b) for a, b in zip(found, expected))
