"""Every allocation of a call fails once, then all from it on: a MemoryError, and nothing leaks.

Python's allocations come from malloc here, too, so that those made for the module fail as well."""

import os
import pathlib
import platform
import subprocess
import sys
import sysconfig

import pytest

import tarn

PROGRAM = """
import array, ctypes, gc, os, pathlib, sys
import numpy, tarn, tarn.reduce

folder = sys.argv[1]

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

labels, skipping = numpy.arange(48).reshape(2, 6, 4) % 5, tarn.AvgPool(3, 1, 1, skip=0, min_count=2)
largest, where = tarn.max_pool2d(x, 2, return_indices=True)
winners, form = tarn._core.pool_saved(pool, x, None, None)[1], (x.shape, tuple(n // 4 for n in x.strides))
file, memory = os.path.join(folder, "file"), bytearray(100)
pathlib.Path(file).write_bytes(bytes(50))

def build():
    made = tarn.Graph.load(text)
    return made.save()

def glue():
    made = tarn.Graph()
    one = made.name(made.input("f32", (1, 4, 4)), "one")
    two = made.add(made.unpad(made.pad(one, [1, 1]), [1, 1]), made.constant(x[:1, :4]))
    made.output(made.flatten(made.concat([two, made.reshape(one, (1, 4, 4))], 1), 1))
    made.find("one"), made.view(two), made.memory("vjp"), made.dot()
    return made.jvp([x[:1, :4]], [x[:1, :4]])

CALLS = {"function": lambda: tarn.max_pool2d(x, 2, return_indices=True), "value": lambda: tarn.MaxPool(3, 2, 1),
         "pool": lambda: pool(x), "vjp": lambda: split.vjp(x, y), "jvp": lambda: pool.jvp(x, x),
         "buffer": lambda: tarn.MaxPool((2,))(buffer), "last": lambda: pool(x.transpose(1, 2, 0)),
         "text": lambda: repr(pool), "explain": lambda: pool.explain(x.shape, "f32"),
         "graph": lambda: graph(x), "graph vjp": lambda: graph.vjp([x], [gy]), "build": build,
         "compare": lambda: graph == tarn.Graph.load(text), "plans": lambda: plans(), "glue": glue,
         "mode": lambda: tarn.mode_pool2d(labels, 2, skip=0), "skip": lambda: skipping(x),
         "skip vjp": lambda: skipping.vjp(x, x), "sum": lambda: tarn.sum_pool2d(x, 2, skip=numpy.nan),
         "piece": lambda: pool.piece(x.shape, (slice(0, 1), slice(1, 3), slice(0, 1)), "vjp"),
         "reduce": lambda: tarn.reduce.mean(x, axis=(1, 2)), "pad": lambda: tarn.unpad(tarn.pad(x, [1, 2]), [1, 2]),
         "unpool": lambda: tarn.max_unpool2d(largest, where, 2),
         "saved": lambda: tarn._core.pool_saved(pool, x, None, None),
         "vjp saved": lambda: tarn._core.vjp_saved(pool, form, winners, largest),
         "copy": lambda: tarn._core.copy_file(file, file + "1", file + "2", memory)}

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
    "Growth in a round, up to ten until one hardly grows: a leak grows in each, a cache (80 lists) does not."
    counts = [settled(call, number, all_behind) for _ in range(2)]
    while len(counts) < 11 and counts[-1] - counts[-2] >= 10:
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


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="it has an allocator of its own only")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the other malloc has no second name")
def test_every_allocation_may_fail(tmp_path):
    source, shim = pathlib.Path(__file__).with_name("no_memory.c"), tmp_path / "no_memory.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls",
                    str(source), "-o", str(shim)], check=True)
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONMALLOC": "malloc"})
    assert done.returncode == 0, done.stderr[-2000:]
    print(done.stdout)  # pytest -s shows how many failed
    assert int(done.stdout) > 300
