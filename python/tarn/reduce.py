"""Reductions for other libraries' block functions: ``func(x, axis=..., keepdims=False)``.

``dask.array.coarsen``, the ``reduce()`` of xarray's ``coarsen()`` and ``rolling()``, and the
``block_reduce()`` of astropy and scikit-image take them. To tarn each call is a strided view and a
global pool: nothing is copied, and the bits are those of the contract, whatever the chunks. Only
arrays of another machine's byte order, as FITS and NetCDF-3 have them, are turned first.

>>> import numpy, tarn
>>> x = numpy.arange(16.0).reshape(4, 4)
>>> tarn.reduce.mean(x.reshape(2, 2, 2, 2), axis=(1, 3))
array([[ 2.5,  4.5],
       [10.5, 12.5]])
"""

import numpy

from .pools import AvgPool, GlobalAvgPool, GlobalMaxPool, GlobalMinPool, MaxPool, MinPool, ModePool

__all__ = ["max", "mean", "min", "mode", "nanmax", "nanmean", "nanmin", "sum"]


def mean(x, axis=None, keepdims=False):
    """The mean. That of integers is an integer, rounded half to even, of the dtype of ``x``; booleans have none."""
    return _reduce(x, axis, keepdims, lambda shape: GlobalAvgPool(len(shape), keepdims=False))


def sum(x, axis=None, keepdims=False):
    """The sum. Integers are summed exactly and given as int64 or uint64, as NumPy does."""
    if x.dtype.kind in "iub":
        x = x.astype(numpy.uint64 if x.dtype.kind == "u" else numpy.int64)
    return _reduce(x, axis, keepdims, lambda shape: AvgPool(shape, divisor_override=1))


def max(x, axis=None, keepdims=False):
    """The greatest; NaN if there is one."""
    return _reduce_any(x, axis, keepdims, lambda shape: GlobalMaxPool(len(shape), keepdims=False))


def min(x, axis=None, keepdims=False):
    """The least; NaN if there is one."""
    return _reduce_any(x, axis, keepdims, lambda shape: GlobalMinPool(len(shape), keepdims=False))


def mode(x, axis=None, keepdims=False):
    """The most frequent integer, of equals the least."""
    return _reduce_any(x, axis, keepdims, ModePool)


def nanmean(x, axis=None, keepdims=False):
    """The mean of what is not NaN; NaN where all is. Of integers as `mean`."""
    if x.dtype.kind in "iub":
        return mean(x, axis, keepdims)
    return _reduce(x, axis, keepdims, lambda shape: AvgPool(shape, skip=numpy.nan))


def nanmax(x, axis=None, keepdims=False):
    """The greatest but for NaN; NaN where all is."""
    if x.dtype.kind in "iub":
        return max(x, axis, keepdims)
    return _reduce(x, axis, keepdims, lambda shape: MaxPool(shape, skip=numpy.nan))


def nanmin(x, axis=None, keepdims=False):
    """The least but for NaN; NaN where all is."""
    if x.dtype.kind in "iub":
        return min(x, axis, keepdims)
    return _reduce(x, axis, keepdims, lambda shape: MinPool(shape, skip=numpy.nan))


def _axes(x, axis):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(numpy.lib.array_utils.normalize_axis_tuple(tuple(axes), x.ndim)))


def _reduce_any(x, axis, keepdims, make):
    """`_reduce` that takes booleans, too."""
    if x.dtype != bool:
        return _reduce(x, axis, keepdims, make)
    return _reduce(x.astype(numpy.uint8), axis, keepdims, make).astype(bool)


def _reduce(x, axis, keepdims, make):
    """The pooled axes go last, as a view; the pool covers them."""
    axes = _axes(x, axis)
    if x.dtype == bool:
        raise TypeError("booleans have no mean: take that of x.astype('f4')")
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    lazy = hasattr(x, "__dask_graph__")
    if not axes:
        return x
    others = [k for k in range(x.ndim) if k not in axes]
    moved = x.transpose(*others, *axes)
    pool = make(tuple(moved.shape[len(others):]))
    if lazy:
        from . import dask
        y = dask.pool(moved, pool)
    else:
        y = pool(moved)
    shape = tuple(1 if k in axes else size for k, size in enumerate(x.shape))
    y = y.reshape(shape if keepdims else tuple(x.shape[k] for k in others))
    return y if lazy or y.ndim else y[()]
