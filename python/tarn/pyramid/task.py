"""One task: one whole shard (or chunk) of one level; of the first two levels, one of the second and
those that it is made of. A pure function of the plan and the level below: done twice, it leaves the
same bytes.
"""

import functools
import itertools
import math
import os

import numpy

from .. import Pool, __version__
from . import source as sources
from .chunks import open_array, scratch
from .errors import WorkError, naming
from .plan import pool_text, pooled_last


def run_task(plan, task, left, shapes):
    """Writes those units of a task that are `left`, in the order of the plan; yields a line for each
    as it is finished: what file that made, how many bytes, and their checksum."""
    if __version__ != plan.version:
        raise WorkError(f"this worker has tarn {__version__}, the pyramid is made by {plan.version}")
    run = _run_joined if shapes.joined and task[0] == 1 else _run_alone
    with naming(f"level {task[0]}, unit {task[1]}"):
        yield from run(plan, *task, left, shapes)


def _run_alone(plan, level, unit, left, shapes):
    target, below = _target(plan, level), _below(plan, level)
    yield _line(plan, level, unit, target, lambda: _write(
        plan, level, unit, target, below, *shapes.of_level[level]))


def _run_joined(plan, level, unit, left, shapes):
    """The full resolution is pooled while its cells are at hand, not read again. What is done
    already is read."""
    target, base, source = _target(plan, 1), _target(plan, 0), _below(plan, 0)
    box, step = plan.levels[1].box(unit), plan.levels[1].step
    pools = (1, unit) in left
    block = scratch("pooled", [b - a for a, b in box], plan.source.dtype) if pools else None

    def see(chunk, cells):
        span = base.box_of(chunk)
        rows = [(a // f, min(-(-b // f), end)) for (a, b), f, (_, end) in zip(span, step, box)]
        if any(a >= b for a, b in rows):
            return  # trimmed
        x = base.filled(span) if cells is None else cells[_inside(span, span)]
        _pool_part(plan, 1, x, block[_inside(rows, box)])

    for child in plan.children(unit):
        if (0, child) in left:
            yield _line(plan, 0, child, base, lambda: _write(
                plan, 0, child, base, source, *shapes.of_level[0], see if pools else None))
        elif pools:
            for chunk in base.chunks_of(child):
                see(chunk, base.read(base.box_of(chunk)))
    if pools:
        chunks = (block[_inside(chunk, box)] for chunk in _parts(box, plan.levels[1].chunks))
        yield _line(plan, 1, unit, target, lambda: target.write(unit, chunks))


def _target(plan, level):
    return open_array(os.path.join(plan.out, str(level)))


def _below(plan, level):
    """What a level is made of."""
    reads = plan.levels[level].reads
    return sources.open_cells(plan.source) if reads < 0 else _target(plan, reads)


def _line(plan, level, unit, target, write):
    try:
        size, checksum = write()
    except Exception as error:
        words = str(error) or type(error).__name__
        raise WorkError(f"level {level}, {'shard' if plan.levels[level].shards else 'chunk'} "
                        f"{unit}, key {level}/{target.key(unit)}: {words}") from None
    return {"level": level, "unit": list(unit), "bytes": size, "crc32c": checksum}


def _write(plan, level, unit, target, below, slab, part, see=None):
    """Writes a unit; `see` is shown the number and the cells of each chunk."""
    if plan.levels[level].reads < 0 and below.encoding == target.encoding:
        # What computing would take for its slab is there for the file.
        return target.copy(unit, below, math.prod(slab) * numpy.dtype(plan.source.dtype).itemsize, see)
    blocks = _blocks(plan, level, below, plan.levels[level].box(unit), slab, part)
    return target.write(unit, blocks if see is None else _seen(target.chunks_of(unit), blocks, see))


def _seen(chunks, blocks, see):
    for chunk, block in zip(chunks, blocks):
        see(chunk, block)
        yield block


def _blocks(plan, level, below, box, slab, part):
    """The cells of the unit's chunks, in row-major order, computed slab by slab."""
    chunks = plan.levels[level].chunks
    for rows in _parts(box, slab):
        block = scratch("block", [b - a for a, b in rows], plan.source.dtype)
        for span in _parts(rows, part):
            _fill(plan, level, below, span, block[_inside(span, rows)])
        for chunk in _parts(rows, chunks):
            yield block[_inside(chunk, rows)]


def _parts(box, shape):
    """`box` in parts of at most `shape`, in row-major order."""
    return itertools.product(*([(i, min(i + n, b)) for i in range(a, b, n)]
                               for (a, b), n in zip(box, shape)))


def _inside(span, box):
    return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(span, box))


def _fill(plan, level, below, span, out):
    """Computes the cells of a part."""
    if plan.levels[level].reads < 0:
        below.read_into(out, span)
        return
    _pool_part(plan, level, below.read(plan.reads_box(level, span)), out)


def _pool_part(plan, level, x, out):
    if x.dtype == bool:
        x, out = x.view(numpy.uint8), out.view(numpy.uint8)
    x = x.astype(x.dtype.newbyteorder("="), copy=False)
    pool, order = _pool(plan.request, plan.levels[level].step, x.shape)
    pool(x.transpose(order), out=out.transpose(order))


@functools.lru_cache(maxsize=64)
def _pool(request, step, shape):
    """The pool for a part of this shape, and the order of axes in which it sees them."""
    return Pool.parse(pool_text(request, step, shape)), pooled_last(step)
