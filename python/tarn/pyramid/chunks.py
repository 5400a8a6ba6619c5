"""Zarr arrays on local disks, read and written chunk by chunk in the thread that asks.

zarr's own path through its event loop takes longer than the work. Here a chunk is one read of its
file and one call of numcodecs. Known are arrays of v2 and v3 whose cells are plain bytes, as they are
or packed by zstd, gzip or blosc, in shards or not; what else a source may be is left to zarr.
"""

import contextlib
import functools
import gzip
import itertools
import json
import math
import os
import threading

import google_crc32c
import numcodecs
import numpy
import zarr

from .._core import copy_file

PARTIAL = ".partial"  # how files end that are not finished
ABSENT = 2**64 - 1  # offset and size, in a shard's index, of a chunk of fill values
INDEX_BYTES = 64  # of a chunk in a shard's index, at most, while it is made
COPIED_BYTES = 256 << 10  # at a time: they stay in the cache
CACHE_LINE = 64


def open_array(folder):
    """The array in a folder: a `Chunks`, or a `Foreign` that zarr has to read."""
    path = f"{folder}/zarr.json"
    try:
        status = os.stat(path)
    except FileNotFoundError:
        path = f"{folder}/.zarray"
        status = os.stat(path)
    return _opened(folder, path, status.st_mtime_ns, status.st_ino)


@functools.lru_cache(maxsize=64)
def _opened(folder, path, *stamp):
    array = zarr.open_array(folder, mode="r")
    with open(path, encoding="utf-8") as file:
        facts = json.load(file)
    layout = (_layout_v3 if path.endswith("zarr.json") else _layout_v2)(facts)
    return Foreign(array) if layout is None else Chunks(folder, array, facts, *layout)


class Foreign:
    _lock = threading.Lock()  # zarr's settings are those of the process

    def __init__(self, array):
        self._array, self.encoding = array, None

    def read(self, box):
        with self._lock, zarr.config.set({"async.concurrency": 1}):
            return self._array[tuple(slice(*span) for span in box)]

    def read_into(self, out, box):
        out[...] = self.read(box)


# ---- What the metadata say ----------------------------------------------------------------------


def _layout_v3(facts):
    """Shapes of units and chunks, stored dtype and codecs; None if they are not all known."""
    if facts["chunk_grid"]["name"] != "regular" or facts.get("storage_transformers"):
        return None
    unit = chunk = facts["chunk_grid"]["configuration"]["chunk_shape"]
    codecs = facts["codecs"]
    if codecs[0]["name"] == "sharding_indexed":
        shard = codecs[0]["configuration"]
        chunk, index = shard["chunk_shape"], [_name(codec) for codec in shard["index_codecs"]]
        if len(codecs) > 1 or index != ["bytes little", "crc32c"] or \
                shard.get("index_location", "end") != "end":
            return None
        codecs = shard["codecs"]
    order = {"bytes": "|", "bytes little": "<", "bytes big": ">"}.get(_name(codecs[0]))
    packed = [_numcodec(codec) for codec in codecs[1:]]
    if order is None or None in packed or not isinstance(facts["data_type"], str):
        return None
    return unit, chunk, numpy.dtype(facts["data_type"]).newbyteorder(order), packed


def _name(codec):
    endian = codec.get("configuration", {}).get("endian")
    return f"bytes {endian}" if codec["name"] == "bytes" and endian else codec["name"]


def _numcodec(codec):
    facts = dict(codec.get("configuration", {}))
    if codec["name"] not in ("zstd", "gzip", "blosc"):
        return None
    if codec["name"] == "gzip":
        return _Gzip(**facts)
    if "shuffle" in facts:
        facts["shuffle"] = ("noshuffle", "shuffle", "bitshuffle").index(facts["shuffle"])
    return numcodecs.get_codec({"id": codec["name"], **facts})


class _Gzip(numcodecs.GZip):
    """Without the time of day, so that the same cells have the same bytes."""

    def encode(self, buf):
        return gzip.compress(buf, self.level, mtime=0)


def _layout_v2(facts):
    if facts.get("filters") or facts["order"] != "C" or not isinstance(facts["dtype"], str):
        return None
    packed = facts["compressor"]
    return (facts["chunks"], facts["chunks"], numpy.dtype(facts["dtype"]),
            [numcodecs.get_codec(packed)] if packed else [])


# ---- Reading ------------------------------------------------------------------------------------


class Chunks:
    """An array whose files are understood here. `encoding` decides every byte of them."""

    def __init__(self, folder, array, facts, unit, chunk, stored, codecs):
        self.folder, self.shape = folder, array.shape
        self.unit, self.chunk, self.sharded = tuple(unit), tuple(chunk), unit is not chunk
        self._stored, self._codecs = stored, codecs
        self._fill = numpy.zeros((), stored)
        if array.fill_value is not None:
            self._fill[...] = array.fill_value
        self._grid = tuple(u // c for u, c in zip(self.unit, self.chunk))
        self._index_grid = self._grid if self.sharded else None
        self._key = array.metadata.encode_chunk_key
        keys = ("zarr_format", "shape", "data_type", "chunk_grid", "codecs", "fill_value")
        self.encoding = [facts.get(key) for key in keys]

    def key(self, unit):
        return self._key(unit)

    def path(self, unit):
        return os.path.join(self.folder, self._key(unit))

    def read(self, box):
        """The cells of `box`, a tuple of (start, stop), in memory of this thread that the next call
        uses again."""
        number = tuple(a // n for (a, _), n in zip(box, self.chunk))
        if not self._codecs and self._stored.isnative and \
                all((i * n, (i + 1) * n) == span for i, n, span in zip(number, self.chunk, box)):
            with self._unit_file(tuple(i // g for i, g in zip(number, self._grid))) as file:
                cells = self._chunk(file, number)
            if cells is not None:
                return cells
        out = scratch("x", [b - a for a, b in box], self._stored.newbyteorder("="))
        self.read_into(out, box)
        return out

    def read_into(self, out, box):
        """Fills `out` with the cells of `box`."""
        for unit in _grid_of(box, self.unit):
            inside = [(max(a, i * u), min(b, (i + 1) * u))
                      for (a, b), i, u in zip(box, unit, self.unit)]
            with self._unit_file(unit) as file:
                for number in _grid_of(inside, self.chunk):
                    there, part = _meeting(box, number, self.chunk)
                    cells = self._chunk(file, number)
                    out[there] = self._fill if cells is None else cells[part]

    @contextlib.contextmanager
    def _unit_file(self, unit):
        """The file of a unit, open; None if there is no file."""
        try:
            fd = os.open(self.path(unit), os.O_RDONLY)
        except FileNotFoundError:
            yield None
            return
        try:
            yield _UnitFile(fd, None, self._index_grid)
        finally:
            os.close(fd)

    def _chunk(self, file, number):
        """The cells of a chunk; None if all are fill values."""
        if file is None:
            return None
        offset, size = 0, file.size
        if file.index is not None:
            offset, size = map(int, file.index[tuple(i % g for i, g in zip(number, self._grid))])
            if offset == ABSENT:
                return None
            if offset + size > file.size:
                raise ValueError("the shard ends before a chunk does")
        return self._decoded(file.read(offset, size))

    def _decoded(self, data):
        """The cells of a chunk, of its bytes."""
        for codec in reversed(self._codecs):
            data = codec.decode(data)
        cells = numpy.frombuffer(data, self._stored)
        if cells.size != math.prod(self.chunk):
            raise ValueError(f"a chunk of {cells.nbytes} bytes, where "
                             f"{math.prod(self.chunk) * self._stored.itemsize} are expected")
        cells = cells.reshape(self.chunk)
        return cells if cells.flags.aligned else cells.copy()  # others put chunks at any byte

    # ---- Writing --------------------------------------------------------------------------------

    def write(self, unit, blocks):
        """Writes a unit from the cells of its chunks, in row-major order, each without what lies
        beyond the array. Gives size and checksum of the file: (0, None) if all are fill values.
        """
        sizes = []
        with whole_file(self.path(unit)) as file:
            for block in blocks:
                data = self._encode(block)
                sizes.append(0 if data is None else file.write(data))
            if self.sharded and any(sizes):
                file.write(self._make_index(unit, sizes))
        return file.facts()

    def _encode(self, block):
        """The bytes of a chunk; None if all are fill values, bit by bit."""
        block = block.astype(self._stored, copy=False)
        if _all_equal(block, self._fill):
            return None
        if block.shape != self.chunk:
            whole = numpy.full(self.chunk, self._fill, self._stored)
            whole[tuple(slice(n) for n in block.shape)] = block
            block = whole
        data = numpy.ascontiguousarray(block).reshape(-1)
        for codec in self._codecs:
            data = numpy.frombuffer(codec.encode(data), numpy.uint8)
        return data.view(numpy.uint8)

    def _make_index(self, unit, sizes):
        """Offsets and sizes of a shard's chunks, and their checksum."""
        index = numpy.full((*self._grid, 2), ABSENT, "<u8")
        inside = self.chunks_of(unit)
        offset = 0
        for size, chunk in zip(sizes, inside, strict=True):
            if size:
                index[tuple(c % g for c, g in zip(chunk, self._grid))] = offset, size
                offset += size
        data = index.tobytes()
        return data + google_crc32c.value(data).to_bytes(4, "little")

    def chunks_of(self, unit):
        """The chunks of a unit that meet the array, in row-major order."""
        box = [(i * u, min((i + 1) * u, n)) for i, u, n in zip(unit, self.unit, self.shape)]
        return _grid_of(box, self.chunk)

    def box_of(self, chunk):
        """The cells of the array in a chunk."""
        return tuple((i * c, min((i + 1) * c, n)) for i, c, n in zip(chunk, self.chunk, self.shape))

    def filled(self, box):
        """As many fill values, in memory that `read` uses, too."""
        out = scratch("x", [b - a for a, b in box], self._stored.newbyteorder("="))
        out[...] = self._fill
        return out

    def copy(self, unit, source, room, see=None):
        """Writes a unit as another array of the same encoding has it. `see` is called with the number
        and the cells of each chunk, which are None if all are fill values, while they are at hand.
        A file of at most `room` bytes, and its index, is read once."""
        memory = scratch("file", [room + INDEX_BYTES * math.prod(self._grid)], numpy.uint8)
        size = copy_at_once(source.path(unit), self.path(unit), memory)
        if size > memory.size:
            return self._copy_in_pieces(unit, source, see)
        if see is not None:
            found = _UnitFile(None, memory[:size], source._index_grid) if size else None
            for number in self.chunks_of(unit):
                see(number, source._chunk(found, number))
        return (size, google_crc32c.value(memory[:size])) if size else (0, None)

    def _copy_in_pieces(self, unit, source, see):
        with whole_file(self.path(unit)) as file, source._unit_file(unit) as found:
            for start in range(0, found.size, COPIED_BYTES):
                file.write(found.read(start, min(COPIED_BYTES, found.size - start)))
            if see is not None:
                for number in self.chunks_of(unit):
                    see(number, source._chunk(found, number))
        return file.facts()


class _UnitFile:
    """The file of a unit, open or in memory: its size, and offsets and sizes of its chunks if it is a
    shard, with `grid` chunks."""

    def __init__(self, fd, data, grid):
        self._fd, self._data = fd, data
        self.size = os.fstat(fd).st_size if data is None else data.size
        self.index = None if grid is None else self._read_index(grid)

    def _read_index(self, grid):
        size = 16 * math.prod(grid) + 4
        if size > self.size:
            raise ValueError("the shard's index is damaged")
        data = self.read(self.size - size, size).tobytes()
        if google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise ValueError("the shard's index is damaged")
        return numpy.frombuffer(data[:-4], "<u8").reshape(*grid, 2)

    def read(self, offset, size):
        """Some bytes; those of an open file in memory of this thread that the next call uses again."""
        if self._data is not None:
            return self._data[offset:offset + size]
        return loaded(self._fd, offset, size)


def _grid_of(box, shape):
    """The numbers of the boxes of a grid that meet `box`."""
    return itertools.product(*(range(a // n, -(-b // n)) for (a, b), n in zip(box, shape)))


def _meeting(box, number, shape):
    """Where box `number` of a grid meets `box`: slices of the one and of the other."""
    there, inside = [], []
    for (a, b), i, n in zip(box, number, shape):
        start, stop = max(a, i * n), min(b, (i + 1) * n)
        there.append(slice(start - a, stop - a))
        inside.append(slice(start - i * n, stop - i * n))
    return tuple(there), tuple(inside)


def _all_equal(block, fill):
    bits = numpy.dtype(f"u{fill.itemsize}")
    first, wanted = block[(0,) * block.ndim], fill[()]
    return first.tobytes() == wanted.tobytes() and bool((block.view(bits) == fill.view(bits)).all())


_buffers = threading.local()


def scratch(name, shape, dtype):
    """An array of this thread that is used again: fresh memory costs more than what is done there.
    It begins at a cache line. malloc() begins 16 bytes behind a page, and to there Zen 3 copies the
    pages of a file at a fifth of its speed."""
    size = math.prod(shape) * numpy.dtype(dtype).itemsize
    held = _buffers.__dict__.get(name)
    if held is None or held.size < size:
        memory = numpy.empty(size + CACHE_LINE, numpy.uint8)
        held = _buffers.__dict__[name] = memory[-memory.ctypes.data % CACHE_LINE:][:size]
    return held[:size].view(dtype).reshape(shape)


def loaded(fd, offset, size):
    """Bytes of a file, in memory of this thread that the next call uses again. They are not mapped:
    mapping and unmapping stops all threads, and a file that is cut short would end the process."""
    data = left = scratch("file", [size], numpy.uint8)
    while left.size:
        count = os.preadv(fd, [left], offset + size - left.size)
        if not count:
            raise ValueError(f"the file ends after {offset + size - left.size} bytes")
        left = left[count:]
    return data


# ---- Files --------------------------------------------------------------------------------------


def file_facts(path):
    """Size and checksum of a file; (0, None) if there is none, as for a unit of fill values."""
    size, checksum = 0, 0
    try:
        with open(path, "rb", buffering=0) as file:
            while part := file.read(COPIED_BYTES):
                size, checksum = size + len(part), google_crc32c.extend(checksum, part)
    except FileNotFoundError:
        return 0, None
    return size, checksum


def copy_at_once(source, path, memory):
    """Copies a file, and leaves it in `memory`; gives its size, 0 if there is none. One that is
    larger than the memory is left alone."""
    temporary = _temporary(path)
    try:
        size = copy_file(source, temporary, path, memory)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            size = copy_file(source, temporary, path, memory)
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return 0
    if size == 0:
        raise ValueError("the file is empty")
    return size


def _temporary(path):
    return f"{path}.{os.urandom(8).hex()}{PARTIAL}"


class _File:
    """A file being written, its size and checksum. It is there from the first byte on."""

    def __init__(self, path):
        self._path, self._fd, self.size, self.checksum = path, None, 0, 0

    def write(self, data):
        """Writes all of `data`, bytes or an array of them; gives how many."""
        left = memoryview(data)
        if self._fd is None:
            self._fd = self._open()
        while left:
            left = left[os.write(self._fd, left):]
        self.checksum = google_crc32c.extend(self.checksum, data)
        self.size += len(data)
        return len(data)

    def _open(self):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            return os.open(self._path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            return os.open(self._path, flags, 0o666)

    def facts(self):
        return (self.size, self.checksum) if self.size else (0, None)

    def close(self):
        if self._fd is not None:
            os.close(self._fd)


@contextlib.contextmanager
def whole_file(path):
    """A file to write that takes its name at the end, so that a name is never on half a file. If
    nothing is written there is none in the end."""
    temporary = _temporary(path)
    try:
        with contextlib.closing(_File(temporary)) as file:
            yield file
        if file.size:
            os.replace(temporary, path)
            return
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
