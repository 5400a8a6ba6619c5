"""One reducer for the block functions of dask, xarray, astropy and scikit-image."""

import dask.array as da
import numpy
import pytest
import xarray

import tarn

X = numpy.random.default_rng(3).standard_normal((12, 21)).astype("float32")
PAIRS = [(tarn.reduce.mean, tarn.AvgPool), (tarn.reduce.max, tarn.MaxPool),
         (tarn.reduce.min, tarn.MinPool),
         (tarn.reduce.sum, lambda k: tarn.AvgPool(k, divisor_override=1))]


@pytest.mark.parametrize("function, kind", PAIRS)
def test_coarsen(function, kind):
    expected = kind((3, 7))(X)
    for chunks in ((12, 21), (6, 7), (3, 14)):
        made = da.coarsen(function, da.from_array(X, chunks), {0: 3, 1: 7})
        assert made.dtype == X.dtype
        assert made.compute().tobytes() == expected.tobytes()


@pytest.mark.parametrize("function, kind", PAIRS)
@pytest.mark.parametrize("chunks", (None, {"y": 5, "x": 4}))
def test_xarray(function, kind, chunks):
    a = xarray.DataArray(X, dims=("y", "x"))
    a = a if chunks is None else a.chunk(chunks)
    made = a.coarsen(y=3, x=7).reduce(function)
    assert made.values.tobytes() == kind((3, 7))(X).tobytes()
    rolled = a.rolling(x=3).reduce(function).values[:, 2:]
    assert rolled.tobytes() == numpy.ascontiguousarray(_sliding(kind)(X)).tobytes()


def _sliding(kind):
    pool = kind((1, 3))
    return tarn.Pool.parse(pool.text.replace("s1,3", "s1,1"))


@pytest.mark.parametrize("function, kind", PAIRS)
def test_block_reduce(function, kind):
    expected = kind((3, 7))(X)
    astropy = pytest.importorskip("astropy.nddata")
    measure = pytest.importorskip("skimage.measure")
    assert astropy.block_reduce(X, (3, 7), function).tobytes() == expected.tobytes()
    assert measure.block_reduce(X, (3, 7), function).tobytes() == expected.tobytes()


def test_axes_and_types():
    assert tarn.reduce.mean(X).shape == () and tarn.reduce.mean(X, axis=-1).shape == (12,)
    assert tarn.reduce.max(X, axis=0, keepdims=True).shape == (1, 21)
    u = numpy.full((4, 4), 255, "uint8")
    assert tarn.reduce.sum(u) == 16 * 255 and tarn.reduce.mean(u) == 255
    assert tarn.reduce.sum(u).dtype == "uint64" and tarn.reduce.mean(u).dtype == "uint8"


def test_skipped_and_most_frequent():
    x = X.copy()
    x[::2, 1::3] = numpy.nan
    x[:3, :7] = numpy.nan
    for name in ("mean", "max", "min"):
        pool = {"mean": tarn.AvgPool, "max": tarn.MaxPool, "min": tarn.MinPool}[name]((3, 7), skip=numpy.nan)
        function = getattr(tarn.reduce, "nan" + name)
        made = da.coarsen(function, da.from_array(x, (6, 7)), {0: 3, 1: 7}).compute()
        assert made.tobytes() == pool(x).tobytes()
        blocks = x.reshape(4, 3, 3, 7).transpose(0, 2, 1, 3).reshape(4, 3, 21)
        judged = numpy.array([[getattr(numpy, "nan" + name)(b) if (b == b).any() else numpy.nan for b in row] for row in blocks])
        numpy.testing.assert_allclose(made, judged, rtol=1e-6, atol=1e-6)
    labels = numpy.array([[3, 3, 9, 2], [1, 5, 2, 9]], "uint16")
    assert tarn.reduce.mode(labels.reshape(1, 2, 2, 2), axis=(1, 3)).tolist() == [[3, 2]]


def test_no_copy():
    view = numpy.lib.stride_tricks.sliding_window_view(numpy.arange(1000000.0), 1000)
    assert tarn.reduce.max(view[:4], axis=1).tolist() == [999, 1000, 1001, 1002]
    assert tarn.reduce.mean(numpy.broadcast_to(1.0, (1 << 20, 3)), axis=0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("edge", ("exact", "trim", "keep"))
@pytest.mark.parametrize("chunks", (None, {"y": 5, "x": 4}))
def test_accessor(edge, chunks):
    import tarn.xarray  # noqa: F401
    y, x = (3, 7) if edge == "exact" else (5, 4)
    a = xarray.DataArray(X, dims=("y", "x"), name="t", attrs={"units": "K"},
                         coords={"y": numpy.arange(12.0), "x": numpy.arange(21.0) ** 2,
                                 "height": 2.0, "both": (("y", "x"), X)})
    a = a if chunks is None else a.chunk(chunks)
    made = a.tarn.pool("avg", y=y, x=x, edge=edge)
    expected = tarn.AvgPool((y, x), ceil_mode=edge == "keep", count_include_pad=False)(X)
    assert made.values.tobytes() == expected.tobytes()
    assert made.name == "t" and made.attrs == {"units": "K"} and made.dims == ("y", "x")
    like = a.coarsen(y=y, x=x, boundary={"keep": "pad"}.get(edge, edge)).mean()
    assert set(made.coords) == set(like.coords)
    for name in like.coords:
        numpy.testing.assert_array_equal(made[name], like[name])
    numpy.testing.assert_allclose(made, like, rtol=1e-5, atol=1e-6)
    other = a.transpose("x", "y").tarn.pool("max", {"y": y}, edge=edge)
    assert other.dims == ("x", "y") and other.shape == (21, made.shape[0])


@pytest.mark.parametrize("chunks", (None, {"y": 5, "x": 4}))
def test_accessor_skips(chunks):
    import tarn.xarray  # noqa: F401
    x = X.copy()
    x[:5, 3:9] = numpy.nan
    a = xarray.DataArray(x, dims=("y", "x"))
    labels = xarray.DataArray((X * 2).astype("int16"), dims=("y", "x"))
    if chunks:
        a, labels = a.chunk(chunks), labels.chunk(chunks)
    for least in (1, 9):
        made = a.tarn.pool("avg", y=5, x=4, edge="keep", skip="nan", min_count=least).values
        pool = tarn.AvgPool((5, 4), ceil_mode=True, count_include_pad=False, skip=numpy.nan,
                            min_count=least)
        assert made.tobytes() == pool(x).tobytes()
    blocks = a.coarsen(y=5, x=4, boundary="pad")
    numpy.testing.assert_allclose(a.tarn.pool("avg", y=5, x=4, edge="keep", skip="nan"), blocks.mean(),
                                  rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(a.tarn.pool("sum", y=3, x=7, skip=numpy.nan),
                                  tarn.SumPool((3, 7), skip=numpy.nan)(x))
    made = labels.tarn.pool("mode", y=3, x=7, skip=0).values
    assert made.tobytes() == tarn.ModePool((3, 7), skip=0)(labels.values).tobytes()


def test_accessor_errors():
    import tarn.xarray  # noqa: F401
    a = xarray.DataArray(X, dims=("y", "x"))
    for match, call in [("do not fill", lambda: a.tarn.pool("avg", y=5)),
                        ("not one of the dimensions", lambda: a.tarn.pool("avg", z=5)),
                        ("edge is 'wrap'", lambda: a.tarn.pool("avg", y=3, edge="wrap")),
                        ("not positive", lambda: a.tarn.pool("avg", y=0)),
                        ("no window", lambda: a.tarn.pool("avg")),
                        ("min_count goes with skip", lambda: a.tarn.pool("avg", y=3, min_count=2)),
                        ("op is 'median'", lambda: a.tarn.pool("median", y=3))]:
        with pytest.raises(ValueError, match=match):
            call()


@pytest.mark.parametrize("dtype", (">f4", "<f4", ">i2", "<i2"))
def test_byte_orders_of_files(dtype):
    """FITS and NetCDF-3 are big-endian."""
    import tarn.xarray  # noqa: F401
    x = (X * 100).astype(dtype)
    expected = tarn.AvgPool((3, 7))(x.astype(x.dtype.newbyteorder("=")))
    blocks, lazy = x.reshape(4, 3, 3, 7), da.from_array(x, (5, 9))
    a = xarray.DataArray(x, dims=("y", "x"))
    for made in (tarn.reduce.mean(blocks, axis=(1, 3)), tarn.dask.pool(lazy, tarn.AvgPool((3, 7))).compute(),
                 a.tarn.pool("avg", y=3, x=7).values, a.chunk(y=5).tarn.pool("avg", y=3, x=7).values):
        assert made.dtype.isnative and made.tobytes() == expected.tobytes()


def test_integers_and_booleans():
    ints = (X * 9).astype("int16").reshape(4, 3, 3, 7)
    for name in ("mean", "max", "min"):
        plain, nan = (getattr(tarn.reduce, word)(ints, axis=(1, 3)) for word in (name, f"nan{name}"))
        assert nan.dtype == ints.dtype and (plain == nan).all()
    bools = ints > 3
    for name in ("max", "min"):
        made = getattr(tarn.reduce, name)(bools, axis=(1, 3))
        assert made.dtype == bool and (made == getattr(numpy, name)(bools, axis=(1, 3))).all()
    assert (tarn.reduce.sum(bools, axis=(1, 3)) == bools.sum((1, 3))).all()
    assert (tarn.reduce.mode(bools, axis=(1, 3)) == (2 * bools.sum((1, 3)) > 21)).all()
    with pytest.raises(TypeError, match="booleans have no mean"):
        tarn.reduce.mean(bools, axis=(1, 3))
