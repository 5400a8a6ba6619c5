"""Results have the bits of one call, whatever the chunks and the scheduler."""

import os

import dask
import dask.array as da
import numpy
import pytest
from problems import digest, lazy_and_expected, random_chunks, random_problem

import tarn

LONG = os.environ.get("TARN_LONG_TESTS") == "1"
PROBLEMS, CHUNKINGS = (200, 10) if LONG else (20, 2)


def check(pairs, **how):
    results = dask.compute(*(lazy for lazy, _ in pairs), **how)
    for (lazy, expected), result in zip(pairs, results):
        assert digest(result) == digest(expected)
        assert lazy.shape == expected.shape and lazy.dtype == expected.dtype
        assert all(size > 0 for sizes in lazy.chunks for size in sizes)


def pairs_of(seed, chunkings=CHUNKINGS):
    rng = numpy.random.default_rng(seed)
    pool, x = random_problem(rng)
    return [pair for _ in range(chunkings)
            for pair in lazy_and_expected(rng, pool, x, random_chunks(rng, x.shape))]


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_chunks_do_not_matter(seed):
    check(pairs_of(seed), scheduler="synchronous")


@pytest.mark.parametrize("seed", range(PROBLEMS if LONG else 5))
def test_threads_do_not_matter(seed):
    check(pairs_of(seed), scheduler="threads", num_workers=4)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as made:
        with distributed.Client(made) as client:
            yield made, client


@pytest.mark.parametrize("seed", range(PROBLEMS if LONG else 2))
def test_processes_do_not_matter(cluster, seed):
    check(pairs_of(seed))


def test_nothing_is_computed_before_it_is_asked_for():
    def fail(block):
        raise AssertionError("computed")

    x = da.zeros((64, 64), chunks=16).map_blocks(fail, dtype="f8", meta=numpy.zeros((0, 0)))
    for p in (tarn.MaxPool(3, 2, 1), tarn.GlobalAvgPool(2), tarn.AdaptiveAvgPool(5)):
        assert tarn.dask.pool(x, p).shape == p.output_shape(x.shape)


def test_few_tasks():
    x = da.zeros((256, 256), chunks=16)
    y = tarn.dask.pool(x, tarn.AvgPool(3, 2, 1))
    own = [key for key in y.__dask_graph__() if str(key[0]).startswith("tarn-")]
    halos = [key for key in own if "halo" in key[0]]
    blocks = 16 * 16
    assert len(own) - len(halos) == blocks == y.npartitions
    assert len(halos) <= 3 * blocks


def test_equal_requests_have_equal_names():
    x = da.arange(100, chunks=7)
    assert tarn.dask.pool(x, tarn.MaxPool((3,))).name == tarn.dask.pool(x, tarn.MaxPool((3,))).name
    assert tarn.dask.pool(x, tarn.MaxPool((3,))).name != tarn.dask.pool(x, tarn.MinPool((3,))).name


def test_what_does_not_come_apart_names_the_axis():
    x = da.zeros((3, 20, 20), chunks=(1, 20, 5))
    with pytest.raises(ValueError, match=r"axis 2 has 4 chunks.*rechunk\(\{2: -1\}\)"):
        tarn.dask.pool(x, tarn.GlobalSmoothMaxPool(2))
    with pytest.raises(ValueError, match="axis 2"):
        tarn.dask.vjp(tarn.GlobalMaxPool(2), x, da.zeros((3, 1, 1)))
    with pytest.raises(ValueError, match="expected"):
        tarn.dask.vjp(tarn.MaxPool(2), x, da.zeros((3, 9, 10)))
    with pytest.raises(TypeError, match="not a pool"):
        tarn.dask.pool(x, max)


def test_long_integer_means():
    x = numpy.array([[2**63 - 1] * 9, [-2**63] * 9, [2**62 + 1] * 9], "int64")
    p = tarn.GlobalAvgPool(1, keepdims=False)
    assert (tarn.dask.pool(da.from_array(x, (2, 4)), p).compute() == p(x)).all()
    u = numpy.full((1, 9), 2**64 - 1, "uint64")
    assert (tarn.dask.pool(da.from_array(u, (1, 2)), p).compute() == u[:, 0]).all()


def test_pieces_by_hand():
    p, x = tarn.MaxPool(3, 2, 1), numpy.random.default_rng(0).standard_normal((20, 30))
    y, gy = p(x), numpy.ones(p.output_shape(x.shape))
    box = slice(3, 6), slice(2, 9)
    piece, cells, windows, keep = p.piece(x.shape, box)
    assert (piece(x[cells])[keep] == y[box]).all()
    assert (piece.indices(x[cells])[keep] == p.indices(x)[box]).all()
    piece, cells, windows, keep = p.piece(x.shape, box, "vjp")
    assert (piece.vjp(x[cells], gy[windows])[keep] == p.vjp(x, gy)[box]).all()
    assert tarn.Pool.parse(piece.text) == piece
    with pytest.raises(tarn.Error, match="box holds"):
        p.piece(x.shape, (slice(5, 5),))
    with pytest.raises(ValueError, match="step"):
        p.piece(x.shape, (slice(0, 5, 2),))
    with pytest.raises(ValueError, match="pass_"):
        p.piece(x.shape, box, "backward")


@pytest.mark.parametrize("p, dtype, error", [(tarn.MaxPool(2), "c8", TypeError), (tarn.MaxPool(2), "?", TypeError),
                                             (tarn.ModePool(2), "f4", tarn.Error)])
def test_dtypes_are_refused_at_once(p, dtype, error):
    with pytest.raises(error):
        tarn.dask.pool(da.zeros((8, 8), chunks=4, dtype=dtype), p)
