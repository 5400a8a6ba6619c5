"""Pooling with one written meaning: max, min, average, smooth max and norms, with derivatives.

Functions have the names of ``torch.nn.functional``; objects such as `MaxPool` take any number of
spatial axes and differentiate both ways; `tarn.torch` brings autograd. Arrays may come from NumPy,
PyTorch, JAX or any library with the buffer protocol or DLPack.

>>> import numpy, tarn
>>> tarn.max_pool2d(numpy.arange(16.0).reshape(1, 1, 4, 4), 2)
array([[[[ 5.,  7.],
         [13., 15.]]]])
"""

from ._core import Graph
from ._core import version as __version__
from .errors import Error
from .functional import *  # noqa: F403
from .functional import __all__ as _functions
from .pools import (AdaptiveAvgPool, AdaptiveMaxPool, AvgPool, GlobalAvgPool, GlobalLpPool,
                    GlobalMaxPool, LpPool, MaxPool, MinPool, Pool, SmoothMaxPool)

__all__ = ["AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "Error", "GlobalAvgPool",
           "GlobalLpPool", "GlobalMaxPool", "Graph", "LpPool", "MaxPool", "MinPool", "Pool", "SmoothMaxPool", *_functions]


def __getattr__(name):
    # Bridges to libraries that not everybody has are imported when they are first named.
    if name in ("torch", "jax", "onnx"):
        from importlib import import_module
        return import_module(f"tarn.{name}")
    raise AttributeError(f"module 'tarn' has no attribute '{name}'")
