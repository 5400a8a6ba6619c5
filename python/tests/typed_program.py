"""A user's program, for type checkers: test_stubs.py has mypy read it. Nothing runs it."""

import math
from typing import Any, assert_type

import jax
import numpy
import torch

import tarn
import tarn.jax
import tarn.onnx
import tarn.torch


Floats = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


def arrays(x: Floats) -> None:
    assert_type(tarn.max_pool2d(x, 3, stride=2, padding=(1, 1)), Floats)
    y, indices = tarn.max_pool2d(x, 2, return_indices=True)
    assert_type(tarn.max_unpool2d(y, indices, 2), Floats)
    assert_type(tarn.min_pool3d(x, 2, return_indices=True), tuple[Floats, Any])
    assert_type(tarn.max_pool1d(x, 2, return_indices=False), Floats)
    assert_type(tarn.adaptive_max_pool2d(x, (3, None), return_indices=True), tuple[Floats, Any])
    assert_type(tarn.adaptive_min_pool1d(x, 3, True), Floats | tuple[Floats, Any])
    assert_type(tarn.max_pool2d(x, 2, None, 0, 1, False, True), Floats | tuple[Floats, Any])
    p = tarn.MaxPool((3, 3), stride=2, padding=((0, 1), (0, 1)), ties="split")
    assert_type(p.vjp(x, p(x)), Floats)
    assert_type(p.output_shape(x.shape), tuple[int, ...])
    assert_type(p == tarn.MaxPool(3), bool)
    with tarn.threads(2):
        tarn.pad(x, (1, 1))
    try:
        tarn.max_pool2d(x, 99)
    except tarn.Error as error:
        assert_type(error.code, str)
    tarn.MaxPool("3")  # type: ignore[arg-type]
    tarn.max_pool2d(x, kernel=3)  # type: ignore[call-overload]


def tensors(x: torch.Tensor) -> None:
    assert_type(tarn.torch.max_pool2d(x, 3), torch.Tensor)
    pair = tarn.torch.max_pool2d(x, 3, return_indices=True)
    assert_type(pair, tuple[torch.Tensor, torch.Tensor])
    pair = tarn.torch.adaptive_max_pool2d(x, (3, None), return_indices=True)
    assert_type(tarn.torch.pool(tarn.AvgPool(2, skip=math.nan), x), torch.Tensor)
    torch.nn.Sequential(tarn.torch.MaxPool2d(2), tarn.torch.SmoothMaxPool2d(2, beta=3.0),
                        tarn.torch.GlobalLpPool())
    with tarn.torch.patch():
        torch.nn.functional.max_pool2d(x, 2)


def traced(x: jax.Array) -> None:
    assert_type(tarn.jax.min_pool2d(x, 3), jax.Array)
    pair = tarn.jax.max_pool2d(x, 3, return_indices=True)
    assert_type(pair, tuple[jax.Array, jax.Array])


def nodes(x: Any) -> None:
    g = tarn.Graph()
    a = g.input("f32", (1, 512, 20, 20))
    g.output(g.concat([a, g.pool(a, tarn.MaxPool(5, 1, 2))], 1))
    g(x)
    assert tarn.onnx.operators
