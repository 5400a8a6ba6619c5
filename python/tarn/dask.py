"""Pooling of dask arrays: lazy, in pieces, with the bits of one call on the whole array.

One task makes a block of the result from the chunks that its windows read; where that is a small
part of a chunk, a task beside the chunk cuts it out, so that only the halo travels. A global
average comes apart at the nodes of the tree in which it is summed [P4 of the contract].

>>> import dask.array, numpy, tarn
>>> x = dask.array.from_array(numpy.arange(100.0).reshape(10, 10), chunks=(3, 7))
>>> y = tarn.dask.pool(x, tarn.AvgPool(3, stride=2, padding=1))
>>> y.chunks
((2, 2, 1), (4, 1))
>>> bool((y.compute() == tarn.AvgPool(3, stride=2, padding=1)(x.compute())).all())
True
"""

import itertools
import math

import dask.array as da
import numpy
from dask._task_spec import Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from . import _core
from ._core import MAX, MIN, Pool
from .pools import AvgPool, MaxPool, MinPool

__all__ = ["jvp", "pool", "vjp"]


def pool(x, p, indices=False):
    """The result of pool ``p`` on the dask array ``x``; with ``indices`` also those of the winners.

    Chunks of the result follow those of ``x``: a window belongs to the chunk in which it begins.
    """
    x = _known(x, "x")
    _, spatial = _shapes(p, x)
    if _is_spread(p, x, spatial):
        if p.op in (MAX, MIN) and not p.skips:
            return _reduce_extreme(p, x, None, indices)
        if p.linear and not indices:
            return _reduce_mean(p, x)
        _refuse(p, x, spatial)
    if not indices:
        return _cut(p, "forward", x, {"x": x})
    return _cut(p, "indices", x, {"x": x})


def jvp(p, x, dx):
    """The tangent of the result for the tangent ``dx`` of ``x``: J(x) dx."""
    x, dx = _known(x, "x"), _alike(_known(dx, "dx"), x)
    _, spatial = _shapes(p, x)
    if p.linear:  # the map itself, of which x takes no part
        return pool(dx, p)
    if _is_spread(p, x, spatial):
        if not p.keeps_winners or p.skips:
            _refuse(p, x, spatial)
        return _reduce_extreme(p, x, dx, False)
    return _cut(p, "jvp", x, {"x": x, "dx": dx})


def vjp(p, x, gy):
    """The gradient of ``x`` for the gradient ``gy`` of the result: J(x)' gy, in the chunks of ``x``."""
    x = _known(x, "x")
    shape, spatial = _shapes(p, x)
    gy = _alike(_known(gy, "gy"), x, shape)
    if p.linear:  # linear: nothing is read of x
        return _cut(p, "vjp", x, {"gy": gy})
    if _is_spread(p, x, spatial):
        _refuse(p, x, spatial)
    return _cut(p, "vjp", x, {"x": x, "gy": gy})


# ---- Arguments -----------------------------------------------------------------------------------


def _known(x, name):
    x = da.asarray(x)
    if any(math.isnan(size) for size in x.shape):
        raise ValueError(f"{name} has chunks of unknown size: call its compute_chunk_sizes() first")
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def _alike(array, x, shape=None):
    shape = x.shape if shape is None else shape
    if array.shape != shape or array.dtype != x.dtype:
        raise ValueError(f"{array.dtype} of shape {array.shape} where {x.dtype} of shape {shape} "
                         f"is expected")
    return array


def _shapes(p, x):
    """The shape of the result, and the first spatial axis."""
    if not isinstance(p, Pool):
        raise TypeError(f"{type(p).__name__} is not a pool such as tarn.MaxPool")
    shape, spatial = p.output_shape(x.shape), x.ndim - len(p.axes)
    _check_dtype(p, x, spatial)
    return shape, spatial


def _check_dtype(p, x, spatial):
    """What the pool refuses is refused now, not in a worker."""
    name = "bf16" if x.dtype.name == "bfloat16" else f"{x.dtype.kind}{8 * x.dtype.itemsize}"
    try:
        p.explain(x.shape[spatial:], name)
    except TypeError:
        raise TypeError(f"x has dtype {x.dtype}, which is none of tarn's") from None


def _is_spread(p, x, spatial):
    """Whether one window has its cells in several chunks of every block: a global one."""
    return p.window == "global" and any(n > 1 for n in x.numblocks[spatial:])


def _refuse(p, x, spatial):
    axis = next(k for k in range(spatial, x.ndim) if x.numblocks[k] > 1)
    raise ValueError(f"axis {axis} has {x.numblocks[axis]} chunks, and this pass of {p!r} does not "
                     f"come apart there: give it one chunk, x.rechunk({{{axis}: -1}})")


# ---- Pieces --------------------------------------------------------------------------------------


def _bounds(chunks):
    return [0, *itertools.accumulate(chunks)]


def _output_chunks(p, x, shape, spatial):
    """Windows go to the chunk of their first cell; chunks without a window are left out."""
    chunks = list(x.chunks[:spatial])
    for (_, stride, _, lo, _, _), sizes, out in zip(p.axes, x.chunks[spatial:], shape[spatial:]):
        size = sum(sizes)
        ends = []
        for end in _bounds(sizes)[1:]:
            if end == size or p.window == "global":
                ends.append(out)
            elif p.window == "adaptive":
                ends.append(-(-end * out // size))
            else:
                ends.append(min(out, -(-(end + lo) // stride)))
        begins = [0, *ends]
        chunks.append(tuple(end - begin for begin, end in zip(begins, ends) if end > begin))
    return tuple(chunks)


def _blocks(chunks):
    """The number and the slices of every block."""
    bounds = [_bounds(sizes) for sizes in chunks]
    for number in itertools.product(*(range(len(sizes)) for sizes in chunks)):
        yield number, tuple(slice(b[k], b[k + 1]) for b, k in zip(bounds, number))


def _cut(p, pass_, x, operands):
    """One task for each block of what the pass writes."""
    shape, spatial = _shapes(p, x)
    gathers = {name: _Gather(array) for name, array in operands.items()}
    token = tokenize(p, pass_, x.shape, x.dtype, *operands.values(), _core.version)
    name, tasks = f"tarn-{pass_}-{token}", {}
    chunks = x.chunks if pass_ == "vjp" else _output_chunks(p, x, shape, spatial)
    for number, box in _blocks(chunks):
        piece, cells, windows, keep = p.piece(x.shape, box, pass_)
        places, references = {}, []
        for operand, gather in gathers.items():
            part = windows if operand == "gy" else cells
            places[operand] = gather.parts(part, references, tasks)
        call = _Call(piece, pass_, x.dtype, tuple(s.stop - s.start for s in cells), keep, places)
        key = (name, *number)
        tasks[key] = Task(key, call, *references)
    dependencies = list(operands.values())
    if pass_ != "indices":
        return _array(name, tasks, dependencies, chunks, x.dtype)
    y, indices = f"tarn-values-{token}", f"tarn-winners-{token}"
    values = {(y, *key[1:]): Task((y, *key[1:]), _first, TaskRef(key)) for key in tasks
              if key[0] == name}
    winners = {(indices, *key[1:]): Task((indices, *key[1:]), _second, TaskRef(key))
               for key in tasks if key[0] == name}
    return (_array(y, tasks | values, dependencies, chunks, x.dtype),
            _array(indices, tasks | winners, dependencies, chunks, numpy.dtype("int64")))


def _array(name, tasks, dependencies, chunks, dtype):
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=dependencies)
    return da.Array(graph, name, chunks, meta=numpy.empty((0,) * len(chunks), dtype))


class _Gather:
    """Which chunks of an array make up a box of it."""

    def __init__(self, array):
        self.array = array
        self.bounds = [_bounds(sizes) for sizes in array.chunks]

    def parts(self, box, references, tasks):
        """Appends references to the chunks; returns (position, in the box, in the chunk) of each."""
        overlaps = [self._overlaps(axis, part) for axis, part in enumerate(box)]
        places = []
        for parts in itertools.product(*overlaps):
            key = (self.array.name, *(part[0] for part in parts))
            there = tuple(part[1] for part in parts)
            inside = tuple(part[2] for part in parts)
            if self._is_small(key[1:], inside):  # cut where the chunk is: little travels
                cut = f"tarn-halo-{self.array.name}"
                key = (cut, *key[1:], *(bound for s in inside for bound in (s.start, s.stop)))
                source = TaskRef((self.array.name, *key[1:1 + len(inside)]))
                tasks[key] = Task(key, _getitem, source, inside)
                inside = None
            places.append((len(references), there, inside))
            references.append(TaskRef(key))
        return places

    def _overlaps(self, axis, part):
        """The chunks of an axis that meet a slice: number, slice of the box, slice of the chunk."""
        for number, (lo, hi) in enumerate(itertools.pairwise(self.bounds[axis])):
            begin, end = max(lo, part.start), min(hi, part.stop)
            if begin < end or (part.start == part.stop == lo and hi == lo):
                yield (number, slice(begin - part.start, end - part.start),
                       slice(begin - lo, end - lo))

    def _is_small(self, number, inside):
        cells = [chunks[k] for chunks, k in zip(self.array.chunks, number)]
        return 2 * math.prod(s.stop - s.start for s in inside) < math.prod(cells)


def _getitem(chunk, part):
    return chunk[part]


def _first(pair):
    return pair[0]


def _second(pair):
    return pair[1]


class _Call:
    """What a task does with its chunks. Equal calls have equal pickles, so a retry is the same."""

    __slots__ = ("dtype", "keep", "pass_", "places", "pool", "shape")

    def __init__(self, pool, pass_, dtype, shape, keep, places):
        self.pool, self.pass_, self.dtype = pool, pass_, dtype
        self.shape, self.keep, self.places = shape, keep, places

    def __reduce__(self):
        return _Call, (self.pool, self.pass_, self.dtype, self.shape, self.keep, self.places)

    def __call__(self, *chunks):
        given = {name: _join(parts, chunks) for name, parts in self.places.items()}
        x = given.get("x")
        if x is None:  # of an average's gradient only the shape matters
            x = numpy.broadcast_to(numpy.zeros((), self.dtype), self.shape)
        if self.pass_ == "indices":
            return tuple(array[self.keep] for array in self.pool.forward_indices(x))
        if self.pass_ == "jvp":
            return self.pool.jvp(x, given["dx"])[self.keep]
        if self.pass_ == "vjp":
            return self.pool.vjp(x, given["gy"])[self.keep]
        return self.pool(x)[self.keep]


def _join(parts, chunks):
    pieces = [(chunks[k] if inside is None else chunks[k][inside], there)
              for k, there, inside in parts]
    if len(pieces) == 1:
        return _aligned(pieces[0][0])
    shape = [max(there[axis].stop for _, there in pieces) for axis in range(pieces[0][0].ndim)]
    whole = numpy.empty(shape, pieces[0][0].dtype)
    for piece, there in pieces:
        whole[there] = piece
    return whole


def _aligned(chunk):
    """Chunks that came through a network may lie at any address: those are copied."""
    return numpy.require(chunk, requirements="A")


# ---- Global windows ------------------------------------------------------------------------------


def _reduce_extreme(p, x, dx, indices):
    """Each chunk's winner, then the best of them: by value, and among equals by index [M2]."""
    shape, spatial = _shapes(p, x)
    token = tokenize("extreme", p, x, dx, indices, _core.version)
    name, tasks, groups = f"tarn-global-{token}", {}, {}
    gather = None if dx is None else _Gather(dx)
    for number, box in _blocks(x.chunks):
        whole = ",".join(f"{size}:{part.start}:0:1" for size, part in zip(x.shape[spatial:],
                                                                          box[spatial:]))
        piece = Pool.parse(f"{p.text} piece={whole}")
        references = [TaskRef((x.name, *number))]
        parts = gather.parts(box, references, tasks) if gather else None
        key = (f"tarn-winner-{token}", *number)
        tasks[key] = Task(key, _winner, piece, parts, *references)
        groups.setdefault(number[:spatial], []).append(TaskRef(key))
    wanted = "dy" if gather else "y"
    chunks = (*x.chunks[:spatial], *((1,) for _ in shape[spatial:]))

    def make(name, what, dtype):
        best = {}
        for number, winners in groups.items():
            key = (name, *number, *(0 for _ in shape[spatial:]))
            best[key] = Task(key, _best, p.op == MAX, what, *winners)
        return _array(name, tasks | best, [x] if dx is None else [x, dx], chunks, dtype)

    result = make(name, wanted, x.dtype)
    return (result, make(f"{name}-indices", "index", numpy.dtype("int64"))) if indices else result


def _winner(piece, parts, x, *chunks):
    y, index = piece.forward_indices(_aligned(x))
    tangent = None if parts is None else piece.jvp(_aligned(x), _join(parts, (x, *chunks)))
    return {"y": y, "index": index, "dy": tangent}


def _best(greatest, what, *winners):
    index = numpy.stack([winner["index"] for winner in winners], -1)
    order = numpy.argsort(index, -1, kind="stable")  # the first of equals wins
    values = numpy.take_along_axis(numpy.stack([winner["y"] for winner in winners], -1), order, -1)
    kind = MaxPool if greatest else MinPool
    place = kind((len(winners),)).indices(values)
    wanted = numpy.take_along_axis(numpy.stack([winner[what] for winner in winners], -1), order, -1)
    return numpy.take_along_axis(wanted, place, -1)[..., 0]


def _reduce_mean(p, x):
    """Sums of the nodes of each chunk, axis by axis, the outermost first [P4]."""
    shape, spatial = _shapes(p, x)
    token = tokenize("mean", p, x, _core.version)
    tasks, count = {}, math.prod(x.shape[spatial:])
    blocks = {number: (x.name, *number) for number in numpy.ndindex(*x.numblocks)}
    for axis in range(spatial, x.ndim):
        bounds, size = _bounds(x.chunks[axis]), x.shape[axis]
        groups = {}
        for number, source in blocks.items():
            lo, hi = bounds[number[axis]], bounds[number[axis] + 1]
            key = (f"tarn-nodes-{axis}-{token}", *number)
            ends = _core.nodes(size, lo, hi)
            tasks[key] = Task(key, _sum_nodes, TaskRef(source), axis - x.ndim, lo, ends,
                              axis == spatial)
            group = (*number[:axis], 0, *number[axis + 1:])
            groups.setdefault(group, []).append((ends, key))
        blocks = {}
        for group, members in groups.items():
            key = (f"tarn-sum-{axis}-{token}", *group)
            ends = [end for part, _ in members for end in part]
            tasks[key] = Task(key, _sum_tree, axis - x.ndim, ends,
                              *(TaskRef(member) for _, member in members))
            blocks[group] = key
    name = f"tarn-mean-{token}"
    for group, source in blocks.items():
        key = (name, *group[:len(shape)])
        tasks[key] = Task(key, _divide, TaskRef(source), p.divisor or count, x.dtype, len(p.axes), p.flat)
    chunks = (*x.chunks[:spatial], *((1,) for _ in shape[spatial:]))
    return _array(name, tasks, [x], chunks, x.dtype)


_LIMB = 16  # bits of an integer that are summed together: 2^47 terms fit 63 bits


def _to_sums(x):
    """In the type of the sum [S6]; integers as an axis of limbs, the lowest first."""
    if x.dtype.kind not in "iu":
        return x.astype(numpy.float64 if x.dtype == numpy.float64 else numpy.float32)[None]
    if x.dtype.itemsize <= 2:
        return x.astype(numpy.int64)[None]
    shifts = range(0, 8 * x.dtype.itemsize, _LIMB)
    lower = [(x >> x.dtype.type(s)).astype(numpy.int64) & (2**_LIMB - 1) for s in shifts[:-1]]
    return numpy.stack([*lower, (x >> x.dtype.type(shifts[-1])).astype(numpy.int64)])


def _sum_axis(terms, axis):
    """The sum over an axis, in halves: an average of divisor 1."""
    kernel = [1] * -axis
    kernel[0] = terms.shape[axis]
    return AvgPool(tuple(kernel), divisor_override=1)(terms)


def _sum_nodes(x, axis, lo, ends, first):
    terms = _to_sums(x) if first else _aligned(x)
    pieces = numpy.split(terms, [end - lo for end in ends[:-1]], axis)
    return numpy.concatenate([_sum_axis(piece, axis) for piece in pieces], axis)


def _sum_tree(axis, ends, *parts):
    nodes = numpy.concatenate(parts, axis)
    place = {end: k for k, end in enumerate(ends)}

    def add(first, n):
        k = place[first + n]
        if (ends[k - 1] if k > 0 else 0) == first:
            return numpy.take(nodes, [k], axis)
        half = 1 << (n - 1).bit_length() - 1
        both = numpy.concatenate([add(first, half), add(first + half, n - half)], axis)
        return _sum_axis(both, axis)

    return add(0, ends[-1])


def _divide(sums, count, dtype, spatial, flat):
    if dtype.kind in "iu":
        total = sum(limb.astype(object) << k * _LIMB for k, limb in enumerate(sums))
        mean = numpy.frompyfunc(lambda t: _half_even(t, count), 1, 1)(total).astype(dtype)
    else:
        ones = (1,) * spatial
        mean = AvgPool(ones, divisor_override=count)(_aligned(sums[0])).astype(dtype)
    return mean.reshape(mean.shape[:mean.ndim - spatial]) if flat else mean


def _half_even(total, count):
    quotient, rest = divmod(int(total), count)
    return quotient + (2 * rest > count or (2 * rest == count and quotient % 2))
