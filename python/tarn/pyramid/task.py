"""One task: one whole shard (or chunk) of one level. A pure function of the plan and the level below:
done twice, it leaves the same bytes.
"""

import functools
import itertools
import os

import numpy

from .. import Pool, __version__
from . import source as sources
from .chunks import open_array, scratch
from .errors import WorkError
from .plan import pool_text, pooled_last


def run_task(plan, level, unit, shapes):
    """Writes one unit of a level, in slabs and parts of these `shapes`; says what file that made:
    how many bytes, and their checksum."""
    if __version__ != plan.version:
        raise WorkError(f"this worker has tarn {__version__}, the pyramid is made by {plan.version}")
    target = open_array(os.path.join(plan.out, str(level)))
    try:
        size, checksum = _write(plan, level, unit, target, *shapes)
    except Exception as error:
        words = str(error) or type(error).__name__
        raise WorkError(f"level {level}, {'shard' if plan.levels[level].shards else 'chunk'} "
                        f"{unit}, key {level}/{target.key(unit)}: {words}") from None
    return {"level": level, "unit": list(unit), "bytes": size, "crc32c": checksum}


def _write(plan, level, unit, target, slab, part):
    this = plan.levels[level]
    if this.reads >= 0:
        below = open_array(os.path.join(plan.out, str(this.reads)))
    else:
        below = sources.open_cells(plan.source)
        if below.encoding == target.encoding:
            return target.copy(unit, below)
    return target.write(unit, _blocks(plan, level, below, this.box(unit), slab, part))


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
    x = below.read(plan.reads_box(level, span))
    if x.dtype == bool:
        x, out = x.view(numpy.uint8), out.view(numpy.uint8)
    pool, order = _pool(plan.request, plan.levels[level].step, x.shape)
    pool(x.transpose(order), out=out.transpose(order))


@functools.lru_cache(maxsize=64)
def _pool(request, step, shape):
    """The pool for a part of this shape, and the order of axes in which it sees them."""
    return Pool.parse(pool_text(request, step, shape)), pooled_last(step)
