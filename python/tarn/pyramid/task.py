"""One task: one whole shard (or chunk) of one level. A pure function of the plan and the level below:
done twice, it leaves the same bytes.
"""

import contextlib
import errno
import functools
import itertools
import os
import threading
import uuid
import zlib

import numpy
import zarr

from .. import Pool, __version__
from . import source as sources
from .errors import WorkError
from .plan import CONCURRENCY, pooled_last, split_unit

PARTIAL = ".partial"  # how files end that zarr's store, or we, have not finished


def run_task(plan, level, unit, budget):
    """Writes one unit of a level; says what file that made: its bytes and their checksum."""
    if __version__ != plan.version:
        raise WorkError(f"this worker has tarn {__version__}, the pyramid is made by {plan.version}")
    target = _level_array(plan.out, level)
    key = target.metadata.encode_chunk_key(unit)
    try:
        path = os.path.join(plan.out, str(level), key)
        with zarr.config.set({"async.concurrency": CONCURRENCY}):
            if level > 0 or not _copy_encoded(plan, unit, path):
                _write(plan, level, unit, target, path, budget)
        size, checksum = file_facts(path)
    except Exception as error:
        words = str(error) or type(error).__name__
        raise WorkError(f"level {level}, {'shard' if plan.levels[level].shards else 'chunk'} "
                        f"{unit}, key {level}/{key}: {words}") from None
    return {"level": level, "unit": list(unit), "bytes": size, "crc32": checksum}


def file_facts(path):
    """Size and checksum of a file; (0, None) if there is none, as a unit of fill values has none."""
    size, checksum = 0, 0
    try:
        with open(path, "rb", buffering=0) as file:
            while part := file.read(1 << 20):
                size, checksum = size + len(part), zlib.crc32(part, checksum)
    except FileNotFoundError:
        return 0, None
    return size, checksum


# ---- Pooling ------------------------------------------------------------------------------------


def _write(plan, level, unit, target, path, budget):
    this = plan.levels[level]
    box = this.box(unit)
    block = numpy.empty([b - a for a, b in box], plan.source.dtype)
    below = _level_array(plan.out, this.reads) if this.reads >= 0 else _source_array(plan.source)
    for part in _parts(box, split_unit(plan, level, budget)):
        inside = tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(part, box))
        x = _read(plan, this.reads, below, plan.reads_box(level, part))
        block[inside] = x if this.reads < 0 else _pool(plan, level, x)
        del x
    if os.path.exists(path):
        os.unlink(path)  # zarr would merge an edge with what a killed run left
    target[tuple(slice(*span) for span in box)] = block


def _parts(box, shape):
    """`box` in parts of at most `shape`, in row-major order."""
    return itertools.product(*([(i, min(i + n, b)) for i in range(a, b, n)]
                               for (a, b), n in zip(box, shape)))


def _read(plan, reads, array, box):
    if reads < 0:
        return sources.read(plan.source, array, box)
    return numpy.asarray(array[tuple(slice(*span) for span in box)])


def _pool(plan, level, x):
    order = pooled_last(plan.levels[level].step)
    back = numpy.argsort(order)
    pool = _parsed(plan.pool_text(level, x.shape))
    if x.dtype == bool:
        return pool(x.view(numpy.uint8).transpose(order)).transpose(back).view(bool)
    return pool(x.transpose(order)).transpose(back)


_parsed = functools.lru_cache(maxsize=64)(Pool.parse)


# ---- Arrays -------------------------------------------------------------------------------------

_open = threading.local()  # arrays that this thread has open, by folder and its metadata's date


def _opened(folder, mode):
    """An array and its encoding."""
    names = [os.path.join(folder, name) for name in ("zarr.json", ".zarray")]
    status = os.stat(next((name for name in names if os.path.exists(name)), names[0]))
    stamp = (mode, status.st_mtime_ns, status.st_ino)
    known = _open.__dict__.setdefault("arrays", {})
    if folder not in known or known[folder][0] != stamp:
        if len(known) > 64:
            known.clear()
        array = zarr.open_array(folder, mode=mode)
        known[folder] = stamp, array, _encoding(array)
    return known[folder][1:]


def _level_array(out, level):
    return _opened(os.path.join(out, str(level)), "r+")[0]


def _source_array(source):
    return _opened(source.path, "r")[0] if source.kind == "zarr" else None


def _encoding(array):
    """What decides the bytes of a chunk, and where chunks are cut."""
    facts = array.metadata.to_dict()
    return [facts.get(key) for key in ("zarr_format", "shape", "data_type", "chunk_grid", "codecs",
                                       "fill_value")]


# ---- The full resolution ------------------------------------------------------------------------


def _copy_encoded(plan, unit, path):
    """Copies the bytes of a unit as they are, if the source is encoded as the target is."""
    if plan.source.kind != "zarr":
        return False
    array, encoding = _opened(plan.source.path, "r")
    if encoding != _opened(os.path.join(plan.out, "0"), "r+")[1]:
        return False
    encoded = os.path.join(plan.source.path, array.metadata.encode_chunk_key(unit))
    if os.path.exists(path):
        os.unlink(path)
    if os.path.exists(encoded):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with whole_file(path) as written, open(encoded, "rb") as read:
            _copy_file(read, written)
    return True


@contextlib.contextmanager
def whole_file(path):
    """A file to write that takes its name at the end, so that a name is never on half a file."""
    temporary = f"{path}.{uuid.uuid4().hex}{PARTIAL}"
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _copy_file(read, written):
    """In the kernel where that can be done; some file systems then share the blocks."""
    left = os.fstat(read.fileno()).st_size
    while left and hasattr(os, "copy_file_range"):
        try:
            copied = os.copy_file_range(read.fileno(), written.fileno(), left)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                break
            raise
        if not copied:
            return
        left -= copied
    while part := os.read(read.fileno(), 1 << 20):
        written.write(part)
