"""Pools a tensor whose rows are spread over the ranks of an MPI job, and checks the bits.

    mpirun -n 4 python examples/mpi_pool.py

Each rank owns a slab of x and makes a slab of y. `pool.piece()` tells every rank which rows any
other rank needs, so that all halos travel in one exchange, whatever their width; no rank ever holds
the whole. Then the gradient, in the same way: the windows that read a rank's rows come to it.
"""

import numpy
from mpi4py import MPI

import tarn

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size


def slab(size, k):
    """The rows of rank k: some ranks may have none."""
    return slice(size * k // ranks, size * (k + 1) // ranks)


def exchange(mine, size, wanted):
    """Sends every rank its part of `mine`, the rows of `size` that this rank owns; returns those of
    `wanted[rank]`, a slice of rows for each rank, or None."""
    own = slab(size, rank)
    parts = []
    for rows in wanted:
        lo, hi = (0, 0) if rows is None else (max(rows.start, own.start), min(rows.stop, own.stop))
        parts.append(mine[lo - own.start:hi - own.start] if lo < hi else mine[:0])
    return numpy.concatenate(comm.alltoall(parts))


def pieces(pool, shape, rows, pass_):
    """The piece of every rank; None for one that writes nothing."""
    slabs = [slab(rows, k) for k in range(ranks)]
    return [pool.piece(shape, (s,), pass_) if s.stop > s.start else None for s in slabs]


def run(pool, shape, dtype):
    x = numpy.random.default_rng(1).standard_normal(shape).astype(dtype)  # each keeps its slab
    y, height = pool(x), pool.output_shape(shape)[0]
    gy = numpy.random.default_rng(2).standard_normal(y.shape).astype(dtype)
    mine, mine_gy = x[slab(shape[0], rank)], gy[slab(height, rank)]

    plan = pieces(pool, shape, height, "forward")
    cells = exchange(mine, shape[0], [piece and piece[1][0] for piece in plan])
    same = True
    if plan[rank]:
        piece, _, _, keep = plan[rank]
        same = piece(cells)[keep].tobytes() == y[slab(height, rank)].tobytes()

    plan = pieces(pool, shape, shape[0], "vjp")
    cells = exchange(mine, shape[0], [piece and piece[1][0] for piece in plan])
    windows = exchange(mine_gy, height, [piece and piece[2][0] for piece in plan])
    if plan[rank]:
        piece, _, _, keep = plan[rank]
        whole = pool.vjp(x, gy)[slab(shape[0], rank)]
        same &= piece.vjp(cells, windows)[keep].tobytes() == whole.tobytes()
    return comm.allreduce(same, MPI.LAND)


cases = [(tarn.MaxPool(3, 2, 1), "float32"), (tarn.AvgPool((9, 2), 1, (4, 1)), "float32"),
         (tarn.AdaptiveAvgPool((11, 5)), "float64"), (tarn.SmoothMaxPool(5, 3, 2), "float16"),
         (tarn.AvgPool(7, 2, (3, 3), ceil_mode=True, count_include_pad=False), "float32")]
good = all([run(pool, (61, 40), dtype) for pool, dtype in cases])
if rank == 0:
    print(f"{len(cases)} pools on {ranks} ranks:", "equal" if good else "DIFFERENT")
raise SystemExit(0 if good else 1)
