"""What a pyramid will be, before any of it is computed: its levels, the problem that makes each,
the units of work and the memory that a unit takes.

A plan is plain values and follows from the request and the source alone, not from memory, workers
or what is done already: so two runs with the same request agree in every byte.
"""

import contextlib
import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy

from .. import Error, Pool, __version__
from .chunks import INDEX_BYTES
from .errors import RequestError
from .source import MAPPED_BYTES, Source

OPS = {"avg": "nopad", "max": "", "min": "", "mode": ""}  # and the words that go with them
DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "int8": "i8", "uint8": "u8",
          "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
          "uint64": "u64", "bool": "u8"}
MOST_LEVELS = 32

# Chunks of a source that has none, or unwieldy ones: 512 KiB of u16, in a cube or a square.
CHUNK_CELLS = {2: 512, 3: 64}
CHUNK_BYTES = (16 << 10, 32 << 20)


@dataclasses.dataclass(frozen=True)
class Request:
    op: str = "avg"
    factor: object = "auto"  # "auto", or (axis, factor) pairs
    levels: object = "auto"  # how many, the full resolution included
    edge: str = "keep"
    level_from: str = "previous"
    skip: object = None  # None, "nan" or a number: cells that do not count
    min_count: object = None  # how many must count
    chunks: object = "auto"  # "auto" or (axis, cells) pairs
    shards: object = "auto"  # ... or "none"
    codec: str = "auto"
    name: object = None


@dataclasses.dataclass(frozen=True)
class Level:
    shape: tuple
    factor: tuple  # cells of the full resolution on each axis
    step: tuple  # cells of the level that it reads
    reads: int  # that level; -1 is the source
    chunks: tuple
    shards: tuple | None
    problem: str  # "" for the full resolution, a copy

    @property
    def unit(self):
        """Shape of what is written at once: a shard, or a chunk where there are no shards."""
        return self.shards or self.chunks

    def units(self):
        return itertools.product(*(range(-(-n // u)) for n, u in zip(self.shape, self.unit)))

    def count(self):
        return math.prod(-(-n // u) for n, u in zip(self.shape, self.unit))

    def box(self, unit):
        return tuple((i * u, min((i + 1) * u, n)) for i, u, n in zip(unit, self.unit, self.shape))


@dataclasses.dataclass(frozen=True)
class Plan:
    source: Source
    out: str
    request: Request
    levels: tuple
    version: str = __version__

    def read_shape(self, level):
        reads = self.levels[level].reads
        return self.source.shape if reads < 0 else self.levels[reads].shape

    def reads_box(self, level, box):
        """The box that `box` of a level is computed from."""
        return tuple((a * f, min(b * f, n)) for (a, b), f, n in
                     zip(box, self.levels[level].step, self.read_shape(level)))

    def children(self, unit):
        """The units of the full resolution that a unit of the first pooled level is made of; the last
        one on an axis has those, too, that are trimmed."""
        base, this = self.levels[:2]
        spans = []
        for i, u, f, n, u0, n0 in zip(unit, this.unit, this.step, this.shape, base.unit, base.shape):
            last = (i + 1) * u >= n
            spans.append(range(i * u * f // u0, -(-n0 // u0) if last else (i + 1) * u * f // u0))
        return itertools.product(*spans)

    def as_json(self):
        """What must be the same for a run to go on where another stopped."""
        return json.loads(json.dumps({
            "tarn": self.version, "source": dataclasses.asdict(self.source),
            "request": dataclasses.asdict(self.request),
            "levels": [dataclasses.asdict(level) for level in self.levels]}))


def make_plan(source, out, request):
    check_request(source, request)
    chunks = _chunks(source, request)
    shards = _shards(source, request, chunks)
    rank = len(source.shape)
    one = (1,) * rank
    levels = [_level(source.shape, one, one, -1, chunks, shards, "")]
    while len(levels) < (MOST_LEVELS if request.levels == "auto" else request.levels):
        last = levels[-1]
        if request.levels == "auto" and _fits_one_chunk(source, request, last, chunks):
            break
        step = _step(source, request, last)
        shape = tuple(-(-n // f) if request.edge == "keep" else n // f
                      for n, f in zip(last.shape, step))
        if shape == last.shape or 0 in shape:
            if request.levels == "auto":
                break
            raise RequestError(f"levels: {request.levels} are too many; with these factors "
                               f"{'x'.join(map(str, source.shape))} has {len(levels)}")
        factor = tuple(a * b for a, b in zip(last.factor, step))
        reads = len(levels) - 1
        if request.level_from == "base":
            step, reads = factor, 0
        levels.append(_level(shape, factor, step, reads, chunks, shards,
                             _problem(source, request, step, levels[reads].shape)))
    _try_pool(source, request, levels[1].step if len(levels) > 1 else (2,) * rank)
    return Plan(source, out, request, tuple(levels))


# ---- Checks -------------------------------------------------------------------------------------


def check_request(source, request):
    if request.op not in OPS:
        raise RequestError(f"op: {request.op!r} is none of {', '.join(OPS)}")
    if source.dtype not in DTYPES:
        raise RequestError(f"{source.path}: dtype {source.dtype} is not pooled; "
                           f"these are: {', '.join(DTYPES)}")
    if source.dtype == "bool" and request.op == "avg":
        raise RequestError("op: an average of booleans is not a boolean; max, min and mode are")
    if math.prod(source.shape) == 0:
        raise RequestError(f"{source.path}: there is nothing in an array of shape {source.shape}")
    for name, value, allowed in (("edge", request.edge, ("keep", "trim")),
                                 ("from", request.level_from, ("previous", "base"))):
        if value not in allowed:
            raise RequestError(f"{name}: {value!r} is none of {', '.join(allowed)}")
    if request.skip is not None and request.skip != "nan" and not (
            isinstance(request.skip, int) or
            isinstance(request.skip, float) and math.isfinite(request.skip)):
        raise RequestError(f"skip: {request.skip!r} is neither nan nor a number")
    if request.min_count is not None and (request.skip is None or request.min_count < 0):
        raise RequestError("min_count: goes with skip, and is not negative")
    if request.levels != "auto" and not 1 <= request.levels <= MOST_LEVELS:
        raise RequestError(f"levels: {request.levels} is not between 1 and {MOST_LEVELS}")


def _try_pool(source, request, step):
    """Pools one cell: what the library has against operator, dtype and options, it says here."""
    rank = sum(f > 1 for f in step)
    dtype = "uint8" if source.dtype == "bool" else source.dtype
    try:
        Pool.parse(pool_text(request, step, (1,) * len(step)))(numpy.ones((1,) * rank, dtype))
    except (Error, ValueError) as error:
        raise RequestError(f"op {request.op}, dtype {source.dtype}: {error}") from None


def _by_axis(source, option, pairs, default):
    """One number for each axis, from (axis, number) pairs."""
    names = [axis["name"] for axis in source.axes]
    numbers = dict(zip(names, default))
    for name, number in pairs:
        if name not in numbers:
            raise RequestError(f"{option}: there is no axis {name}; there are {', '.join(names)}")
        if number < 1:
            raise RequestError(f"{option}: {name}={number} is not positive")
        numbers[name] = number
    return tuple(numbers.values())


# ---- Levels -------------------------------------------------------------------------------------


def _is_space(source):
    return [axis["type"] == "space" for axis in source.axes]


def _step(source, request, last):
    if request.factor != "auto":
        step = _by_axis(source, "factor", request.factor, (1,) * len(source.shape))
        if max(step) == 1:
            raise RequestError("factor: all are 1, so there is nothing to pool")
        return step
    # Spacings draw level: an axis is halved unless its cells are twice as long as the shortest.
    spacing = [abs(s) * f for s, f in zip(source.scale, last.factor)]
    live = [i for i, space in enumerate(_is_space(source)) if space and last.shape[i] > 1]
    least = min((spacing[i] for i in live), default=0)
    return tuple(2 if i in live and spacing[i] < 2 * least else 1 for i in range(len(spacing)))


def _fits_one_chunk(source, request, last, chunks):
    return all(n <= c for n, c, f in zip(last.shape, chunks, _step(source, request, last)) if f > 1)


def _level(shape, factor, step, reads, chunks, shards, problem):
    chunks = tuple(min(c, n) for c, n in zip(chunks, shape))
    if shards:
        times = [s // c for s, c in zip(shards, chunks)]
        shards = tuple(min(t, -(-n // c)) * c for t, c, n in zip(times, chunks, shape))
    return Level(shape, factor, step, reads, chunks, shards, problem)


def pool_text(request, step, shape):
    """The pool that computes a level, for a part of `shape` of the level it reads."""
    pooled = [(f, n) for f, n in zip(step, shape) if f > 1]
    kernel = ",".join(str(min(f, n)) for f, n in pooled)
    stride = ",".join(str(f) for f, n in pooled)
    words = [request.op, f"k{kernel}s{stride}", f"d{len(pooled)}", OPS[request.op]]
    words += ["ceil"] if request.edge == "keep" else []
    words += [f"skip={request.skip}"] if request.skip is not None else []
    words += [f"min={request.min_count}"] if request.min_count is not None else []
    return " ".join(filter(None, words))


def _problem(source, request, step, shape):
    """The problem string of a whole level; axes that are not pooled lead."""
    order = pooled_last(step)
    size = "x".join(str(shape[axis]) for axis in order)
    return f"{pool_text(request, step, shape)} {DTYPES[source.dtype]} {size}"


def pooled_last(step):
    """The order of the axes in which tarn sees them: those that are pooled come last."""
    return sorted(range(len(step)), key=lambda axis: step[axis] > 1)


# ---- Chunks, shards -----------------------------------------------------------------------------


def _chunks(source, request):
    space = _is_space(source)
    cells = CHUNK_CELLS[sum(space)]
    chunks = tuple(cells if s else 1 for s in space)
    if source.chunks:
        size = math.prod(source.chunks) * numpy.dtype(source.dtype).itemsize
        if source.shards or CHUNK_BYTES[0] <= size <= CHUNK_BYTES[1]:
            chunks = source.chunks
    if request.chunks != "auto":
        chunks = _by_axis(source, "chunks", request.chunks, chunks)
    return tuple(min(c, n) for c, n in zip(chunks, source.shape))


def _shards(source, request, chunks):
    if request.shards == "none":
        return None
    if request.shards == "auto":
        shards = source.shards if request.chunks == "auto" else None
        fit = shards and all(s % c == 0 for s, c in zip(shards, chunks))
        return shards if fit else None
    shards = _by_axis(source, "shards", request.shards, chunks)
    for axis, s, c, n in zip(source.axes, shards, chunks, source.shape):
        if s % c and s < n:
            raise RequestError(f"shards: {axis['name']}={s} is not a multiple of the chunk, {c}")
    return tuple(-(-s // c) * c for s, c in zip(shards, chunks))


# ---- Memory -------------------------------------------------------------------------------------

# What a process takes before its first task (CPython, NumPy, zarr, tarn), measured, and rounded up.
WORKER_BYTES = 64 << 20
# A part no larger than this is not cut for its own sake: calls take time, too.
PART_BYTES = 256 << 10


@dataclasses.dataclass(frozen=True)
class Shapes:
    """How tasks are computed, so that they fit a budget: for each level slab and part, as `split_unit`
    has them. If the first two levels are `joined`, a task writes a unit of the second and those of
    the first that it is made of."""
    of_level: tuple
    joined: bool


def shapes_of_tasks(plan, budget, workers):
    if len(plan.levels) > 1 and _can_join(plan, workers):
        first = plan.levels[1]
        size = numpy.dtype(plan.source.dtype).itemsize
        block = math.prod(min(u, n) for u, n in zip(first.unit, first.shape)) * size
        with contextlib.suppress(RequestError):
            rest = [split_unit(plan, level, budget) for level in range(1, len(plan.levels))]
            return Shapes((split_unit(plan, 0, budget - block), *rest), True)
    return Shapes(tuple(split_unit(plan, level, budget) for level in range(len(plan.levels))), False)


def _can_join(plan, workers):
    """Whether units of the second level hold whole units of the first, and chunks whole windows, and
    there are tasks enough for all workers."""
    base, this = plan.levels[:2]
    return this.count() >= 4 * workers and all(
        (u * f % u0 == 0 or u >= n) and (c % f == 0 or c >= n0) for u, f, n, u0, c, n0 in
        zip(this.unit, this.step, this.shape, base.unit, base.chunks, base.shape))


def split_unit(plan, level, budget):
    """In what shapes a unit of a level is computed, so that it fits `budget` bytes: slabs, whole
    rows of chunks that are written one after the other, and the parts of a slab.

    A part reads whole chunks where that can be. Slabs are as large as fits, so that large chunks
    below are read few times. The order in which chunks are written does not depend on the budget.
    """
    this = plan.levels[level]
    slab = [min(u, n) for u, n in zip(this.unit, this.shape)]
    part = _natural_part(plan, level, slab)
    while unit_bytes(plan, level, slab, part) > budget:
        rows = [a for a, n in enumerate(slab) if n > this.chunks[a]]
        cells = sorted((-n, a) for a, n in enumerate(part) if n > 1)
        if rows:
            axis, chunk = rows[0], this.chunks[rows[0]]
            slab[axis] = -(-slab[axis] // (2 * chunk)) * chunk
            part = [min(p, s) for p, s in zip(part, slab)]
        elif cells:
            part[cells[0][1]] = -(-part[cells[0][1]] // 2)
        else:
            raise RequestError(
                f"memory: a unit of level {level} ({'x'.join(map(str, this.unit))}) takes at least "
                f"{unit_bytes(plan, level, slab, part) + WORKER_BYTES >> 20} MiB; "
                "give more memory, fewer workers or smaller chunks")
    return tuple(slab), tuple(part)


def _natural_part(plan, level, slab):
    """One chunk of what is read, on each axis whose chunks hold whole windows."""
    this, part = plan.levels[level], list(slab)
    chunks, _ = _chunks_read(plan, this)
    size = math.prod(slab) * math.prod(this.step) * numpy.dtype(plan.source.dtype).itemsize
    for axis, (n, f) in enumerate(zip(chunks or (), this.step)):
        if n % f == 0 and n // f < part[axis] and size * n // (part[axis] * f) >= PART_BYTES:
            size = size * n // (part[axis] * f)
            part[axis] = n // f
    return part


def unit_bytes(plan, level, slab, part):
    """Bytes that a unit of a level takes at most, computed in such slabs and parts."""
    this = plan.levels[level]
    size = numpy.dtype(plan.source.dtype).itemsize
    block, chunk = math.prod(slab) * size, math.prod(this.chunks) * size
    index = INDEX_BYTES * math.prod(this.unit) // math.prod(this.chunks)
    box = [min(p * f, n) for p, f, n in zip(part, this.step, plan.read_shape(level))]
    x = math.prod(box) * size if this.reads >= 0 else 0
    # The slab; then either a chunk that is made whole and encoded, or what a part reads.
    return block + index + max(3 * chunk, x + _decoding_cells(plan, this, box) * size)


def _decoding_cells(plan, level, box):
    """Cells under way while a box is read."""
    chunks, shards = _chunks_read(plan, level)
    if chunks is None:
        cells = MAPPED_BYTES // numpy.dtype(plan.source.dtype).itemsize
        return min(cells, math.prod(plan.source.shape))
    # A chunk before and after; zarr takes all encoded chunks of a shard that the box needs at once.
    cells = 2 * math.prod(chunks)
    if level.reads < 0 and plan.source.foreign:
        cells += math.prod(box)
        if shards:
            cells += math.prod(b if b % c == 0 else (-(-b // c) + 1) * c
                               for b, c in zip(box, chunks))
    return cells


def _chunks_read(plan, level):
    if level.reads < 0:
        return plan.source.chunks, plan.source.shards
    return plan.levels[level.reads].chunks, plan.levels[level.reads].shards


# ---- Metadata -----------------------------------------------------------------------------------


def ome_attributes(plan):
    """The `ome` attributes of the image: OME-Zarr 0.5."""
    source, request = plan.source, plan.request
    datasets = [{"path": str(number), "coordinateTransformations": _transformations(source, level)}
                for number, level in enumerate(plan.levels)]
    metadata = {"method": "tarn.pyramid.write", "version": plan.version,
                "description": "a level is `problem` (docs/problem-strings.md of tarn) of level `of`",
                "request": dataclasses.asdict(request),
                "levels": [{"path": str(number), "of": str(level.reads), "problem": level.problem}
                           for number, level in enumerate(plan.levels) if level.reads >= 0]}
    image = {"name": request.name or source.name, "type": request.op, "axes": list(source.axes),
             "datasets": datasets, "metadata": metadata}
    if source.transformations:
        image["coordinateTransformations"] = list(source.transformations)
    ome = {"version": "0.5", "multiscales": [image]}
    for key, value in source.extra:
        ome[key] = {k: v for k, v in value.items() if k != "version"}  # 0.5 says it once, above
    return ome


def _transformations(source, level):
    try:
        scale = [float(Fraction(s) * f) for s, f in zip(source.scale, level.factor)]
        translation = [float(Fraction(t) + Fraction(f - 1, 2) * Fraction(s)) for t, s, f in
                       zip(source.translation, source.scale, level.factor)]
    except OverflowError:
        raise RequestError(
            f"scale: {source.scale} times {level.factor} is beyond all numbers") from None
    return [{"type": "scale", "scale": scale}, {"type": "translation", "translation": translation}]
