#!/usr/bin/env python3
"""What a Python call costs: a tiny pooling and a tiny training step, next to PyTorch's; and large ones,
next to the C library. docs/python.md shows what it printed.

usage: build/venv/bin/python bench/python_overhead.py     needs numpy; torch and jax if they are there

The C library is called through ctypes with a plan and buffers made beforehand, so that its call costs
what it costs in C but for some tenths of a microsecond.
"""

import ctypes
import os
import pathlib
import sys
import timeit

import numpy

import tarn

try:
    import torch
    import tarn.torch
except ImportError:
    torch = None

try:
    import jax
    import tarn.jax
except ImportError:
    jax = None

ROOT = pathlib.Path(__file__).parents[1]


def best(functions, number, rounds):
    """Microseconds of one call of each function: the best of many rounds in which they take turns, so
    that other work on the machine hits all of them."""
    times = [[timeit.timeit(function, number=number) for function in functions]
             for _ in range(rounds)]
    return [min(column) / number * 1e6 for column in zip(*times)]


def tiny():
    x = numpy.zeros((1, 1, 4, 4), "float32")
    pool, out = tarn.MaxPool(2), numpy.empty((1, 1, 2, 2), "float32")
    rows = {"tarn.max_pool2d(x, 2)": lambda: tarn.max_pool2d(x, 2),
            "tarn.max_pool2d(x, 2, out=y)": lambda: tarn.max_pool2d(x, 2, out=out),
            "tarn.MaxPool(2)(x), made before": lambda: pool(x)}
    if torch:
        t = torch.zeros(1, 1, 4, 4)
        rows["tarn.max_pool2d(tensor, 2)"] = lambda: tarn.max_pool2d(t, 2)
        rows["tarn.torch.max_pool2d(tensor, 2)"] = lambda: tarn.torch.max_pool2d(t, 2)
        rows["torch.max_pool2d(tensor, 2)"] = lambda: torch.max_pool2d(t, 2)
        rows["torch.nn.functional.max_pool2d(tensor, 2)"] = lambda: torch.nn.functional.max_pool2d(t, 2)
    for name, time in zip(rows, best(rows.values(), 500, 100)):
        print(f"{name:45} {time:8.2f} us")


def step(pool, x, arguments):
    gy = torch.ones_like(pool(x, *arguments))
    return lambda: torch.autograd.grad(pool(x, *arguments), x, gy)


def tiny_tensors():
    """For one to three axes: one plane; several planes, channels last."""
    formats = {2: torch.channels_last, 3: torch.channels_last_3d}
    for ndim in (1, 2, 3):
        yield ndim, "", torch.randn(1, 1, *[4] * ndim, requires_grad=True)
        if ndim in formats:
            x = torch.randn(1, 8, *[8] * ndim).to(memory_format=formats[ndim])
            yield ndim, ", last", x.requires_grad_()


def tiny_steps():
    """A forward and its backward, on one thread: PyTorch's, tarn.torch's, and PyTorch's under patch(), which has no Lp."""
    functional = torch.nn.functional
    torch.set_num_threads(1)
    if os.environ.get("TARN_TORCH_NATIVE") != "0":
        tarn.torch.build()
    print(f"\n{'forward and backward, 1x1x4..':32} {'PyTorch':>10} {'tarn.torch':>10} {'patch()':>10}   us")
    for ndim, layout, x in tiny_tensors():
        for kind, *arguments in (("max", 2), ("avg", 2), ("adaptive_max", 2), ("adaptive_avg", 2), ("lp", 2.0, 2)):
            name = f"{kind}_pool{ndim}d"
            pools = [getattr(functional, name), getattr(tarn.torch, name)]
            with tarn.torch.patch():
                pools += [getattr(functional, name)] * (kind != "lp")
            rows = best([step(pool, x, arguments) for pool in pools], 30, 150)
            print(f"{name + layout:32} " + " ".join(f"{r:10.1f}" for r in rows))


def jitted_max(pool):
    """A forward, and a forward with its backward, of max 3x3 stride 2, compiled by JAX."""
    return jax.jit(pool), jax.jit(jax.grad(lambda x: pool(x).sum()))


def of_jax(x):
    lowest = -numpy.inf
    return jax.lax.reduce_window(x, lowest, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")


def jax_calls():
    """JAX's own pooling, tarn.jax by XLA's foreign functions, and by callbacks."""
    print(f"\n{'max k3s2 under jax.jit, f32':32} {'JAX':>10} {'compiled':>10} {'callback':>10}   us")
    for shape in ((1, 1, 8, 8), (1, 64, 56, 56)):
        tarn.jax.build()
        x = jax.numpy.asarray(numpy.random.default_rng(1).standard_normal(shape), "float32")
        ways = [jitted_max(of_jax), jitted_max(lambda x: tarn.jax.max_pool2d(x, 3, 2))]
        for function in (*ways[0], *ways[1]):
            function(x)
        tarn.jax._disconnect()
        ways.append(jitted_max(lambda x: tarn.jax.max_pool2d(x, 3, 2)))
        for pass_, words in enumerate(("forward", "gradient")):
            calls = [lambda f=way[pass_]: f(x).block_until_ready() for way in ways]
            rows = best(calls, 10, 30)
            print(f"{words + ' ' + 'x'.join(map(str, shape)):32} " + " ".join(f"{r:10.1f}" for r in rows))


class CLibrary:
    """The shared library of build/, as far as this needs it."""

    def __init__(self):
        self.library = ctypes.CDLL(str(ROOT / "build" / "libtarn.so"))
        self.library.tarn_forward.argtypes = [ctypes.c_void_p] * 5

    def plan(self, problem):
        """A plan for a problem string. Both structures are made large enough for any version."""
        pool, view = (ctypes.c_char * 4096)(), (ctypes.c_char * 4096)()
        error, plan = (ctypes.c_char * 512)(), ctypes.c_void_p()
        if self.library.tarn_problem_parse(problem.encode(), pool, view, error) or \
                self.library.tarn_plan_create(ctypes.byref(plan), pool, view, None, error):
            sys.exit(error[8:].decode())
        return plan


def large():
    library = CLibrary()
    print(f"\n{'f32':32} {'C':>10} {'Python':>10} {'with out':>10}   us")
    for words, shape in (("max k2s2", (1, 16, 56, 56)), ("max k3s2p1", (1, 64, 56, 56)),
                         ("max k3s2p1", (1, 64, 112, 112)), ("avg k3s1", (1, 64, 56, 56)),
                         ("avg global", (8, 512, 7, 7)), ("max k13s1p6", (1, 256, 13, 13))):
        x = numpy.random.default_rng(1).standard_normal(shape).astype("float32")
        pool = tarn.Pool.parse(words)
        y = numpy.empty(pool.output_shape(shape), "float32")
        plan = library.plan(f"{words} f32 {'x'.join(map(str, shape))}")
        call, source, target = library.library.tarn_forward, x.ctypes.data, y.ctypes.data
        rows = best((lambda: call(plan, source, target, None, None), lambda: pool(x),
                     lambda: pool(x, out=y)), 1, 150)
        print(f"{words + ' ' + 'x'.join(map(str, shape)):32} " + " ".join(f"{r:10.1f}" for r in rows))


if __name__ == "__main__":
    tiny()
    if torch:
        tiny_steps()
    if jax:
        jax_calls()
    if (ROOT / "build" / "libtarn.so").exists():
        large()
    else:
        print("\nbuild/libtarn.so is not there (make builds it): no comparison with C")
