"""Pooling of labelled arrays: ``dataarray.tarn.pool("avg", y=2, x=2)``; import it once.

>>> import numpy, xarray, tarn.xarray
>>> a = xarray.DataArray(numpy.arange(10.0), dims="x", coords={"x": numpy.arange(10)})
>>> a.tarn.pool("avg", x=4, edge="keep").values
array([1.5, 5.5, 8.5])
>>> a.tarn.pool("avg", x=4, edge="keep").x.values
array([1.5, 5.5, 8.5])
"""

import math
import operator

import xarray

from .pools import AvgPool, LpPool, MaxPool, MinPool, ModePool, SmoothMaxPool, SumPool

__all__ = ["DataArrayPools"]

_EDGES = {"exact": "exact", "trim": "trim", "keep": "pad"}  # and what coarsen() calls them


def _make_pool(op, windows, keep, options):
    kernel = tuple(windows.values())
    kinds = {"max": MaxPool, "min": MinPool, "avg": AvgPool, "sum": SumPool, "mode": ModePool,
             "smooth": SmoothMaxPool, "lp": LpPool}
    if op not in kinds:
        raise ValueError(f"op is {op!r}, not one of {', '.join(kinds)}")
    if op in ("avg", "smooth"):  # the mean of what there is
        options = {"count_include_pad": False, **options}
    return kinds[op](kernel, ceil_mode=keep, **options)


def _skipping(skip, min_count):
    if skip is None:
        if min_count is not None:
            raise ValueError("min_count goes with skip")
        return {}
    skip = math.nan if skip == "nan" else skip
    return {"skip": skip} if min_count is None else {"skip": skip, "min_count": min_count}


@xarray.register_dataarray_accessor("tarn")
class DataArrayPools:
    """What ``dataarray.tarn`` can do."""

    def __init__(self, array):
        self._array = array

    def pool(self, op, windows=None, *, edge="exact", skip=None, min_count=None,
             coord_func="mean", options=None, **dims):
        """Pools blocks, as ``coarsen()`` lays them out; lazily if the data is a dask array.

        ``op`` is "max", "min", "avg", "sum", "mode" (integers), "smooth" or "lp". ``windows`` or
        keywords say the length of the window on each dimension. ``edge`` says what becomes of cells that are
        left over at the end: "exact" refuses them, "trim" drops them, "keep" makes a smaller window
        of them. Cells that equal ``skip``, "nan" or a number, do not count; where fewer than
        ``min_count`` (1) do, the result is ``skip``. Coordinates are reduced by ``coord_func``, by
        their mean unless told. ``options`` go to the pool: ``{"beta": 3}``.
        """
        windows = {**(windows or {}), **dims}
        if not windows:
            raise ValueError("no window: name a dimension, as in pool('avg', y=2)")
        options = {**(options or {}), **_skipping(skip, min_count)}
        array = self._array
        if edge not in _EDGES:
            raise ValueError(f"edge is {edge!r}, not one of {', '.join(_EDGES)}")
        for dim, length in windows.items():
            if dim not in array.dims:
                raise ValueError(f"{dim!r} is not one of the dimensions {array.dims}")
            if operator.index(length) < 1:
                raise ValueError(f"the window on {dim!r} has length {length}, which is not positive")
            if edge == "exact" and array.sizes[dim] % length:
                raise ValueError(f"dimension {dim!r} has size {array.sizes[dim]}, which windows of "
                                 f"{length} do not fill: say edge='trim' or edge='keep'")
        moved = array.transpose(..., *windows)
        pool = _make_pool(op, windows, edge == "keep", options)
        data = moved.variable.data
        if hasattr(data, "__dask_graph__"):
            from . import dask
            pooled = dask.pool(data, pool)
        else:
            pooled = pool(data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("=")))
        made = xarray.DataArray(pooled, dims=moved.dims, name=array.name, attrs=array.attrs,
                                coords=self._coordinates(windows, edge, coord_func))
        return made.transpose(*array.dims)

    def _coordinates(self, windows, edge, coord_func):
        coordinates = {}
        for name, coordinate in self._array.coords.items():
            own = {dim: length for dim, length in windows.items() if dim in coordinate.dims}
            variable = coordinate.variable
            if own:
                func = coord_func.get(name, "mean") if isinstance(coord_func, dict) else coord_func
                variable = variable.coarsen(own, func, _EDGES[edge], "left")
            coordinates[name] = variable
        return coordinates
