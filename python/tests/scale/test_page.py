"""The examples of docs/scale.md run as they stand there, and give what their comments say."""

import pathlib
import re
import shlex

import dask.array as da
import numpy
import pytest
import xarray
import zarr

import tarn
import tarn.pyramid
from tarn.pyramid import command

PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    python -m tarn pyramid (.*)$", PAGE, re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RNG = numpy.random.default_rng(5)


def block_with(words):
    found, = (block for block in BLOCKS if words in block)
    return found


def run(block, names):
    """Line after line; `# == this` must be what the line has assigned."""
    for line in block.splitlines():
        code, _, comment = line.partition("#")
        exec(code, names)
        if comment.startswith(" == "):
            assert (names[code.split("=")[0].strip()] == eval(comment[4:], names)).all(), line
    return names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    volume = RNG.integers(0, 60000, (20, 70, 90), "u2")
    for name, cells in (("volume", volume), ("labels", volume // 20000)):
        zarr.create_array(f"{name}.zarr", shape=cells.shape, dtype="u2", chunks=(16, 32, 32))[...] = cells
    return tmp_path


def test_every_example_is_run():
    assert len(COMMANDS) == 2 and len(BLOCKS) == 4


def test_commands(folder):
    for words in COMMANDS:
        # Chunks of an array this small make small shards.
        words = words.replace("z=256,y=256,x=256", "z=32,y=64,x=64")
        assert command.main(["--quiet", *shlex.split(words)]) == 0
    first = zarr.open_group("volume.ome.zarr", mode="r").attrs["ome"]["multiscales"][0]["datasets"]
    scales = [level["coordinateTransformations"][0]["scale"] for level in first]
    assert scales[:3] == [[2, 0.5, 0.5], [2, 1, 1], [2, 2, 2]]
    labels = zarr.open_group("labels.ome.zarr", mode="r")
    assert set(numpy.unique(labels["1"])) <= set(numpy.unique(labels["0"]))


def test_call(folder):
    run(block_with("tarn.pyramid.write"), {"tarn": tarn})
    assert zarr.open_group("volume.ome.zarr", mode="r").attrs["ome"]["version"] == "0.5"


def test_pieces():
    x = RNG.standard_normal((200, 190))
    run(block_with("p.piece"), {"tarn": tarn, "x": x, "gy": RNG.standard_normal((100, 95))})


def test_dask(folder):
    cells = zarr.open_array("volume.zarr", mode="r")[...]
    p = tarn.AvgPool((3, 3), stride=2, padding=1)
    dx, gy = cells.astype("u2"), numpy.ones(p.output_shape(cells.shape), "u2")
    block = block_with("tarn.dask.pool").replace('from_zarr("volume.zarr")', 'from_zarr("volume.zarr").astype("f4")')
    names = run(block, {"dx": da.from_array(dx.astype("f4"), 16), "gy": da.from_array(gy.astype("f4"), 9)})
    x = cells.astype("f4")
    assert names["gx"].compute().tobytes() == p.vjp(x, gy.astype("f4")).tobytes()
    assert names["dy"].compute().tobytes() == p(x).tobytes()
    assert names["y"].compute().tobytes() == tarn.MaxPool(2)(x).tobytes()


def test_xarray():
    sizes = {"lat": 18, "lon": 22}
    coords = {name: numpy.arange(n) * 0.5 for name, n in sizes.items()}
    a = xarray.DataArray(RNG.standard_normal((18, 22)), coords=coords, dims=("lat", "lon"))
    labels = xarray.DataArray(RNG.integers(0, 4, (18, 22)), dims=("lat", "lon"))
    a[:7, :9] = numpy.nan
    names = run(block_with("tarn.xarray"), {"a": a, "labels": labels})
    blocks = a.coarsen(lat=4, lon=4, boundary="pad")
    expected = blocks.mean().where(blocks.count() >= 4)
    numpy.testing.assert_allclose(names["b"], expected, rtol=1e-12)
    numpy.testing.assert_array_equal(names["b"].lat, expected.lat)
    assert names["cover"].shape == (5, 6) and names["cover"].min() > 0
