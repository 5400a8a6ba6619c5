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
from .pools import *  # noqa: F403
from .pools import __all__ as _objects

__all__ = ["Error", "Graph", *_functions, *_objects]

_BRIDGES = {"torch": "PyTorch 2.6 or later", "jax": "JAX", "onnx": "ONNX",
            "pyramid": "zarr 3.1 or later", "dask": "dask 2025.1 or later", "xarray": "xarray",
            "reduce": "NumPy"}
# What a bridge imports, where that is not just its own name.
_IMPORTS = {"onnx": ("onnx", "numpy"), "reduce": ("numpy",),
            "pyramid": ("numpy", "zarr", "numcodecs", "google_crc32c")}


def __getattr__(name):
    # Bridges to libraries that not everybody has are imported when they are first named.
    if name not in _BRIDGES:
        raise AttributeError(f"module 'tarn' has no attribute '{name}'")
    from importlib import import_module
    try:
        return import_module(f"tarn.{name}")
    except ModuleNotFoundError as error:
        if error.name not in _IMPORTS.get(name, (name,)):
            raise
        raise ImportError(f"tarn.{name} needs {_BRIDGES[name]}: "
                          f"pip install 'tarn-pooling[{name}]'") from error


def __dir__():
    return sorted({*globals(), *_BRIDGES})
