"""Ctrl-C, and other signals, in calls that take long."""

import math
import os
import pickle
import signal
import threading
import time

import numpy
import pytest
import torch

import tarn
import tarn.torch


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


# Seconds to minutes each, were they not interrupted.
TIES, SKIPPED = tarn.MaxPool(49, 1, ties="split"), tarn.MaxPool(24, 1, ties="all", skip=math.nan)


def graph_of(pool, shape):
    graph = tarn.Graph()
    graph.output(graph.pool(graph.input("f32", shape), pool))
    return graph


def ones(pool, x):
    return numpy.ones(pool.output_shape(x.shape), x.dtype)


def derive(pool, x):
    return pool.vjp(x, ones(pool, x))


def run_graph(pool, x):
    return graph_of(pool, x.shape).vjp([x], [ones(pool, x)])


def run_loaded_graph(pool, x):
    graph = pickle.loads(pickle.dumps(graph_of(pool, x.shape)))
    return graph.vjp([x], [ones(pool, x)])


def run_many(pool, x):
    """A graph of many pools, each of them short."""
    graph = tarn.Graph()
    value = graph.input("f32", x.shape)
    for _ in range(1500):
        value = graph.pool(value, pool)
    graph.output(value)
    return graph(x)


def on_two_threads(pool, x):
    with tarn.threads(2):
        return derive(pool, x)


class Tired(Exception):
    pass


@pytest.fixture
def third_signal():
    """A signal five times a second. Python hears of one only where a call asks for them, and then once;
    its handler raises Tired when it is called the third time, before the call is at its end."""
    count = 0

    def count_signals(number, frame):
        nonlocal count
        count += 1
        if count == 3:
            raise Tired

    former = signal.signal(signal.SIGALRM, count_signals)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("run, pool, shape", (
    (derive, TIES, (1, 300, 300)),                             # one plane
    (on_two_threads, TIES, (1, 300, 300)),
    (derive, tarn.SmoothMaxPool(70, 1), (1, 300, 300)),
    (derive, SKIPPED, (63, 63)),                               # few cells
    (lambda pool, x: tarn.mode_pool2d(x.astype("u1"), 17, 1), None, (1, 300, 300)),
    (run_graph, TIES, (1, 300, 300)),
    (run_loaded_graph, TIES, (1, 300, 300)),
    (run_many, tarn.SmoothMaxPool(5, 1, 2), (1, 1000, 1000)),
))
def test_long_calls_ask_for_signals(third_signal, run, pool, shape):
    x = numpy.random.default_rng(1).random(shape, "f4")
    with pytest.raises(Tired):
        run(pool, x)


def test_long_backwards_ask_for_signals(step, third_signal):
    x = torch.rand(1, 300, 300, requires_grad=True)
    with tarn.threads(1), pytest.raises(Tired):
        tarn.torch.pool(TIES, x).sum().backward()
