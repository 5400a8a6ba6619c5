"""Every allocation of a call fails once, then all from it on: a MemoryError, and nothing leaks.

Python's allocations come from malloc here, too, so that those made for the module fail as well."""

import os
import pathlib
import platform
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import tarn

PROGRAM = """
import array, ctypes, gc
import numpy, tarn

library = ctypes.CDLL(None)
countdown, forever, failures, blocks = (ctypes.c_long.in_dll(library, name)
                                        for name in ("countdown", "forever", "failures", "blocks"))
x = numpy.arange(48.0, dtype="f4").reshape(2, 6, 4)
buffer = array.array("d", range(8))
pool, split = tarn.MaxPool(2), tarn.MaxPool(3, 1, 1, ties="split")
graph = tarn.Graph()
graph.output(graph.scale(graph.pool(graph.input("f32", x.shape), pool), 2.0))
text, gy, y = graph.save(), numpy.ones((2, 3, 2), "f4"), split(x)
graph.vjp([x], [gy])

def build():
    made = tarn.Graph.load(text)
    return made.save()

CALLS = {"function": lambda: tarn.max_pool2d(x, 2, return_indices=True), "value": lambda: tarn.MaxPool(3, 2, 1),
         "pool": lambda: pool(x), "vjp": lambda: split.vjp(x, y), "jvp": lambda: pool.jvp(x, x),
         "buffer": lambda: tarn.MaxPool((2,))(buffer), "last": lambda: pool(x.transpose(1, 2, 0)),
         "text": lambda: repr(pool), "explain": lambda: pool.explain(x.shape, "f32"),
         "graph": lambda: graph(x), "graph vjp": lambda: graph.vjp([x], [gy]), "build": build,
         "compare": lambda: graph == tarn.Graph.load(text), "plans": lambda: plans()}

sizes = iter(range(1, 10**6))

def plans():
    return tarn.avg_pool1d(numpy.ones((1, next(sizes) % 97 + 4), "f4"), 2)

def attempt(call, number, all_behind):
    "Whether the call raised MemoryError, being refused memory from its allocation of that number on."
    forever.value, countdown.value = all_behind, number
    try:
        call()
    except MemoryError:
        return True
    finally:
        countdown.value = -1
    return False

def settled(call, number, all_behind):
    "How many blocks there are after 12 attempts. Python remembers a few exceptions and frames."
    for _ in range(12):
        attempt(call, number, all_behind)
    gc.collect()
    return blocks.value

def growth(call, number, all_behind):
    "Growth in a round, up to five until one hardly grows: a leak grows in each, a cache does not."
    counts = [settled(call, number, all_behind) for _ in range(2)]
    while len(counts) < 6 and counts[-1] - counts[-2] >= 10:
        counts.append(settled(call, number, all_behind))
    return counts[-1] - counts[-2]

gc.collect()
gc.freeze()  # what is there already is not searched again each time
injected = 0
for name, call in CALLS.items():
    call()
    for all_behind in (0, 1):
        for number in range(200):
            before = failures.value
            attempt(call, number, all_behind)
            if failures.value == before:
                break
            injected += 1
            grown = growth(call, number, all_behind)
            assert grown < 10 or name == "plans", f"{name}: {grown} blocks left after 12 failures at {number}"
        assert number < 199, f"{name}: {number}"
    call()

# Threads that cannot be started: those that are there do the work.
no_threads, refused = (ctypes.c_long.in_dll(library, name) for name in ("no_threads", "refused_threads"))
large = numpy.random.default_rng(1).random((4, 300, 300), "f4")
expected = tarn.max_pool2d(large, 3).tobytes()
for threads, fails in (3, 1), (3, 0), (5, 1), (5, 0):
    no_threads.value = fails
    with tarn.threads(threads):
        assert tarn.max_pool2d(large, 3).tobytes() == expected
assert refused.value > 0
print(injected)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the other malloc has no second name")
def test_every_allocation_may_fail(tmp_path):
    source, shim = pathlib.Path(__file__).with_name("no_memory.c"), tmp_path / "no_memory.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls",
                    str(source), "-o", str(shim)], check=True)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONMALLOC": "malloc"})
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 50


@pytest.fixture
def ctrl_c():
    """SIGINT raises KeyboardInterrupt, also where a shell has it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def test_an_interrupt_is_raised_when_the_call_returns(ctrl_c):
    x = numpy.random.default_rng(1).random((1, 2000), "f4")
    pool = tarn.MaxPool((1000,), 1, ties="split")
    gy = pool(x)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        for _ in range(10**6):
            pool.vjp(x, gy)


def leaves_cells(run, size):
    """Whether cells are left that are never written, if the signal comes when the first one is."""
    x = numpy.random.default_rng(1).random((64, size, size), "f4")
    gradient = run is vjp
    out = numpy.full((64, *(2 * [size if gradient else size - 24])), numpy.nan, "f4")

    def interrupt():
        while numpy.isnan(out[0]).all():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        other.start()
        run(tarn.SmoothMaxPool(25, 1), x, out)
        other.join()
    other.join()
    return numpy.isnan(out).any()


def vjp(pool, x, out):
    return pool.vjp(x, numpy.ones((64, x.shape[1] - 24, x.shape[2] - 24), "f4"), out=out)


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("run", (lambda pool, x, out: pool(x, out=out),
                                 lambda pool, x, out: pool.jvp(x, x, out=out), vjp))
def test_a_long_call_is_interrupted(ctrl_c, run, threads):
    """Signals are asked for now and then: what a fast machine has done by then is tried again, larger."""
    with tarn.threads(threads):
        assert any(leaves_cells(run, size) for size in (160, 320, 640))
