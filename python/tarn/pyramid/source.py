"""What a pyramid is made of: a zarr array (v2, v3), the first level of an OME-Zarr image, or a .npy
file, with the names and spacings of its axes.

A source is described by plain values, so that it can be sent to workers, compared by a later run
and opened again wherever a task runs.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import mmap
import os

import numpy
import zarr

from .chunks import Foreign, open_array
from .errors import RequestError, WorkError, naming

# Axes that have no names are called by these: the last ones.
DEFAULT_AXES = "tczyx"
KINDS = {"t": "time", "time": "time", "c": "channel", "channel": "channel"}


@dataclasses.dataclass(frozen=True)
class Source:
    path: str  # of the array itself
    kind: str  # "zarr" or "npy"
    shape: tuple
    dtype: str  # NumPy's name, native byte order
    axes: tuple  # dicts with name, type and perhaps unit, as OME-Zarr has them
    scale: tuple
    translation: tuple
    chunks: tuple | None
    shards: tuple | None
    foreign: bool  # zarr has to read it
    fingerprint: str  # of the metadata: another array under the same name is noticed
    name: str
    transformations: tuple = ()  # those of the whole image, which come after a level's own
    extra: tuple = ()  # (key, value) of other things that OME-Zarr says of the image


def open_source(path, axes=None, scale=None, unit=None):
    """The source at `path`; `axes`, `scale` and `unit` go before what the file says."""
    path = os.path.abspath(os.fspath(path))
    if not os.path.exists(path):
        raise RequestError(f"{path}: no such file or folder")
    source = _open_npy(path) if os.path.isfile(path) else _open_zarr(path)
    return _with_axes(source, axes, scale, unit)


def refuse_changed(source):
    """A pyramid of two inputs under one name would be of neither."""
    with naming(source.path):
        if _fingerprint(source.path) != source.fingerprint:
            raise WorkError(f"{source.path}: changed while it was read; --overwrite begins anew")


def _fingerprint(path):
    """Of the metadata of a zarr array, less attributes, which others may edit; of a file size and time."""
    if os.path.isfile(path):
        status = os.stat(path)
        return f"{status.st_size} {status.st_mtime_ns}"
    meta = os.path.join(path, "zarr.json")
    with open(meta if os.path.exists(meta) else os.path.join(path, ".zarray"), "rb") as file:
        facts = json.load(file)
    facts.pop("attributes", None)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def open_cells(source):
    """What `read_into(out, box)` reads: cells as they are, in native byte order."""
    if source.kind == "zarr":
        return open_array(source.path)
    status = os.stat(source.path)
    return _mapped(source.path, status.st_mtime_ns, status.st_ino)


# ---- Zarr ---------------------------------------------------------------------------------------

# What OME-Zarr says of an image beside its levels, and that pooling leaves true.
_CARRIED = ("image-label", "omero")


def _open_zarr(path):
    try:
        node = zarr.open(path, mode="r")
    except Exception as error:
        raise RequestError(f"{path}: neither zarr nor .npy ({_first_line(error)})") from None
    if isinstance(node, zarr.Array):
        return _from_array(path, node, _names_of(node), (), None, (), ())
    attributes = dict(node.attrs)
    ome = attributes.get("ome", attributes)
    if not isinstance(ome, dict) or not ome.get("multiscales"):
        inside = ", ".join(sorted(node.keys())[:8])
        raise RequestError(f"{path}: a group without 'multiscales', not an image; name an array or "
                           f"an image inside it ({inside or 'it is empty'})")
    return _from_image(path, node, ome)


def _from_image(path, group, ome):
    try:
        image = ome["multiscales"][0]
        if image.get("version") in ("0.1", "0.2", "0.3"):
            raise RequestError(f"{path}: OME-Zarr {image['version']}; 0.4 and 0.5 are read. Name the "
                               "array of its first level, and say axes and scale")
        first = image["datasets"][0]
        array = group[first["path"]]
        axes = [dict(a) if isinstance(a, dict) else {"name": a} for a in image["axes"]]
        extra = tuple((key, dict(ome[key])) for key in _CARRIED if key in ome)
        return _from_array(os.path.join(path, first["path"]), array, axes,
                           first["coordinateTransformations"], image.get("name"),
                           image.get("coordinateTransformations") or (), extra)
    except RequestError:
        raise
    except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError) as error:
        raise RequestError(f"{path}: damaged 'multiscales': {error!r}") from None


def _from_array(path, array, axes, steps, name, transformations, extra):
    if array.dtype.kind not in "biuf":
        raise RequestError(f"{path}: dtype {array.dtype} is not pooled")
    return Source(path, "zarr", array.shape, array.dtype.newbyteorder("=").name,
                  tuple(axes), *_spacing(path, array.ndim, steps), array.chunks, array.shards,
                  isinstance(open_array(path), Foreign), _fingerprint(path), str(name or _stem(path)),
                  tuple(transformations), extra)


def _spacing(path, rank, steps):
    """Scale and translation. In another order, or twice, they would mean something else."""
    found = {"scale": (1.0,) * rank, "translation": (0.0,) * rank}
    for step in steps:
        if step.get("type") not in (*found, "identity") or "path" in step:
            raise RequestError(f"{path}: a transformation of type {step.get('type')} is not supported")
        if step["type"] in found:
            found[step["type"]] = tuple(float(v) for v in step[step["type"]])
    if [step["type"] for step in steps] not in (
            [], ["identity"], ["scale"], ["translation"], ["scale", "translation"]):
        raise RequestError(f"{path}: transformations of a level are a scale, then perhaps a "
                           "translation")
    finite = all(len(numbers) == rank and all(map(math.isfinite, numbers))
                 for numbers in found.values())
    if not finite or 0 in found["scale"]:
        raise RequestError(f"{path}: a scale or translation is not {rank} numbers, or a scale is 0")
    return found["scale"], found["translation"]


def _names_of(array):
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    return [{"name": name} for name in names] if names and all(names) else []


def _stem(path):
    name = os.path.basename(path)
    for ending in (".zarr", ".ome", ".npy"):
        name = name.removesuffix(ending)
    return name or "image"


def _first_line(error):
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


# ---- .npy ---------------------------------------------------------------------------------------

# A part of a mapped file that is touched at once. Mapped pages count as the process's memory, and
# reading a narrow box touches far more of them than it has cells.
MAPPED_BYTES = 16 << 20
# The system maps pages around one that is touched, too: Linux up to a huge page.
AROUND_BYTES = 2 << 20


def _open_npy(path):
    try:
        array = numpy.lib.format.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise RequestError(f"{path}: not a .npy file ({_first_line(error)})") from None
    return Source(path, "npy", array.shape, array.dtype.newbyteorder("=").name, (),
                  (1.0,) * array.ndim, (0.0,) * array.ndim, None, None, False,
                  _fingerprint(path), _stem(path))


@functools.lru_cache(maxsize=1)
def _mapped(path, *stamp):
    return Mapped(path)


class Mapped:
    """A .npy file in the address space, of which little is in memory at a time."""

    encoding = None

    def __init__(self, path):
        like = numpy.load(path, mmap_mode="r", allow_pickle=False)
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._cells = numpy.ndarray(like.shape, like.dtype, self._map, like.offset, like.strides)
        self._offset = like.offset
        self._order = sorted(range(like.ndim), key=lambda axis: -like.strides[axis])

    def read(self, box):
        out = numpy.empty([b - a for a, b in box], self._cells.dtype.newbyteorder("="))
        self.read_into(out, box)
        return out

    def read_into(self, out, box):
        inside = self._cells[tuple(slice(*span) for span in box)]
        self._copy(out.transpose(self._order), inside.transpose(self._order))

    def _copy(self, out, part):
        """Copies part after part, and lets go of its pages; axes are in the order of the file."""
        span = sum((n - 1) * s for n, s in zip(part.shape, part.strides)) + part.itemsize
        if span > MAPPED_BYTES and part.ndim > 1:
            for i in range(len(part)):
                self._copy(out[i], part[i])
            return
        out[...] = part
        start = part.__array_interface__["data"][0] - self._cells.__array_interface__["data"][0]
        self._let_go(start + self._offset, span)

    def _let_go(self, start, size):
        """These bytes and those around them stay in the cache of files; they no longer count as ours."""
        if hasattr(self._map, "madvise"):
            page = max(0, start - AROUND_BYTES) // mmap.PAGESIZE * mmap.PAGESIZE
            end = min(start + size + AROUND_BYTES, len(self._map))
            self._map.madvise(mmap.MADV_DONTNEED, page, end - page)


# ---- Axes ---------------------------------------------------------------------------------------


def _with_axes(source, names, scale, unit):
    rank = len(source.shape)
    axes = [dict(axis) for axis in source.axes]
    if names is not None:
        if len(names) != rank:
            raise RequestError(f"axes: {len(names)} names for an array of {rank} axes")
        axes = [{"name": name} for name in names]
    elif not axes:
        if not 2 <= rank <= 5:
            raise RequestError(f"{source.path}: {rank} axes; OME-Zarr has 2 to 5")
        axes = [{"name": name} for name in DEFAULT_AXES[-rank:]]
    _check_axes(source, axes)
    spacing = dict(zip((a["name"] for a in axes), source.scale))
    for name, value in (scale or {}).items():
        if name not in spacing:
            raise RequestError(f"scale: there is no axis {name}; there are {', '.join(spacing)}")
        spacing[name] = _positive(f"scale: {name}", value)
    if unit is not None:
        for axis in axes:
            if axis["type"] == "space":
                axis["unit"] = unit
    return dataclasses.replace(source, axes=tuple(axes), scale=tuple(spacing.values()))


def _positive(option, value):
    with contextlib.suppress(TypeError, ValueError):
        if 0 < float(value) < math.inf:
            return float(value)
    raise RequestError(f"{option}={value} is not a positive number")


def _check_axes(source, axes):
    """OME-Zarr wants time, then channel, then two or three axes of space."""
    names = [axis.get("name") for axis in axes]
    if len(axes) != len(source.shape) or len(set(names)) != len(names) or \
            not all(isinstance(name, str) for name in names):
        raise RequestError(f"{source.path}: axes {names} do not name the {len(source.shape)} axes")
    for axis in axes:
        axis.setdefault("type", KINDS.get(axis["name"], "space"))
    kinds = [axis["type"] for axis in axes]
    order = ["time", "channel", "space"]
    ranks = [order.index(kind) if kind in order else 1 for kind in kinds]
    if ranks != sorted(ranks) or not 2 <= kinds.count("space") <= 3 or \
            len(kinds) - kinds.count("space") > 2 or kinds.count("time") > 1:
        raise RequestError(f"{source.path}: axes {', '.join(names)}; OME-Zarr wants time, channel, "
                           "then two or three axes of space: say which with axes")


def as_json(source):
    return json.loads(json.dumps(dataclasses.asdict(source)))
