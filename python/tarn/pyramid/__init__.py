"""Image pyramids: OME-Zarr 0.5 from zarr, OME-Zarr or .npy, of any size, in bounded memory.

>>> import tarn.pyramid
>>> tarn.pyramid.write("volume.zarr", "volume.ome.zarr", op="avg")  # doctest: +SKIP

``python -m tarn pyramid`` is the same from a shell.
"""

import math
import numbers
import operator
import re
from collections.abc import Callable, Mapping
from os import PathLike

from .driver import Progress, Result, run
from .errors import RequestError, WorkError
from .plan import Request
from .source import open_source

__all__ = ["Progress", "RequestError", "Result", "WorkError", "write"]


def write(source: str | PathLike, out: str | PathLike, *, op: str = "avg",
          factor: str | int | Mapping[str, int] = "auto", levels: int | str = "auto",
          edge: str = "keep", level_from: str = "previous",
          skip: float | str | None = None, min_count: int | None = None,
          chunks: str | Mapping[str, int] = "auto", shards: str | Mapping[str, int] = "auto",
          codec: str = "auto", axes: str | list[str] | None = None,
          scale: Mapping[str, float] | None = None, unit: str | None = None, name: str | None = None,
          memory: int | str = "2G", workers: int | None = None, scheduler: str | None = None,
          resume: bool = False, overwrite: bool = False,
          progress: Callable[[Progress], None] | None = None) -> Result:
    """Writes the pyramid of `source` to the new folder `out`, in OME-Zarr 0.5.

    `op` is "avg", "max", "min" or "mode" (integers: the most frequent, of equals the least). `factor` is a number for all axes of space, a number for each
    axis (``{"y": 2, "x": 2}``) or "auto": 2 on each axis of space, but not yet on one whose cells are
    twice as long as the shortest. `levels` counts the full resolution; "auto" goes on until a level
    fits one chunk. `edge` is "keep" (a last, shorter window pools what it has) or "trim".
    `level_from` is "previous" or "base". Cells that equal `skip`, NaN or a number, do not count; where
    fewer than `min_count` (1) do, the result is `skip`.

    One task writes one whole shard, or chunk where there are no shards. `memory`, bytes or a text such
    as "2G", is what this process may take. `workers` are threads; `progress` is called in them, one at
    a time. `scheduler` is the address of a dask cluster that sees the same files.

    The image's metadata come last: until then `out` is no image. A run that was stopped goes on
    with `resume` and the same arguments. Raises `RequestError` or `WorkError`.
    """
    found = open_source(source, axes, scale, unit)
    request = Request(op, _factor(found, factor), _whole("levels", levels, "auto"), edge, level_from,
                      _skip(skip), None if min_count is None else _whole("min_count", min_count),
                      _pairs("chunks", chunks, "auto"), _pairs("shards", shards, "auto", "none"),
                      codec, name)
    workers = None if workers is None else _whole("workers", workers)
    return run(found, out, request, bytes_of(memory), workers, scheduler, resume, overwrite, progress)


def _factor(source, factor):
    if isinstance(factor, (str, Mapping)):
        return _pairs("factor", factor, "auto")
    number = _whole("factor", factor)
    return tuple((axis["name"], number) for axis in source.axes if axis["type"] == "space")


def _skip(skip):
    """None, "nan" or a plain number, as it stands in the metadata."""
    if skip is None or isinstance(skip, str):
        return skip
    if isinstance(skip, numbers.Integral):
        return int(skip)
    try:
        return "nan" if math.isnan(skip) else float(skip)
    except TypeError:
        raise RequestError(f"skip: {skip!r} is neither nan nor a number") from None


def _pairs(option, value, *words):
    if isinstance(value, Mapping):
        return tuple((name, _whole(f"{option}: {name}", number)) for name, number in value.items())
    if isinstance(value, str) and value in words:
        return value
    raise RequestError(f"{option}: {value!r} is neither axes with numbers nor {words[0]!r}")


def _whole(option, value, *words):
    """A plain integer, or one of some words. Nothing is rounded in silence."""
    if isinstance(value, str) and value in words:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise RequestError(f"{option}: {value!r} is not a whole number") from None


def bytes_of(memory):
    """Bytes, from a number or a text such as "2G"."""
    match = re.fullmatch(r"(\d+)([KMGT]?)(i?B)?", str(memory).strip(), re.IGNORECASE)
    if not match:
        raise RequestError(f"memory: {memory!r} is not a number of bytes such as 512M or 2G")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()]
