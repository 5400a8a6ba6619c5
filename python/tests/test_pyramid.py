"""Pyramids: values of every level, metadata, errors. What happens to killed runs: test_pyramid_kill.py."""

import json
import os
import resource
import subprocess
import sys

import numcodecs
import numpy
import ome_zarr_models.v05
import pytest
import zarr

import tarn
import tarn.pyramid
from tarn.pyramid import RequestError, WorkError, command, driver, journal, plan, source, write
from tarn.pyramid.chunks import Foreign, loaded, open_array

DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")


def pick(rng, *options):
    return options[rng.integers(len(options))]


def random_cells(rng, shape, dtype):
    if numpy.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 100).astype(dtype)
    info = numpy.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def save(rng, folder, x, axes):
    """`x` as some file that pyramids are made of."""
    kind = pick(rng, "npy", "npy F", "v2", "v3", "v3 shards", "0.4", "0.5")
    path = os.path.join(folder, "x" + kind.replace(" ", ""))
    chunks = tuple(int(rng.integers(-(-n // 3), n + 3)) for n in x.shape)
    if kind.startswith("npy"):
        path += ".npy"
        numpy.save(path, numpy.asfortranarray(x) if kind == "npy F" else x)
        return path
    where = os.path.join(path, "full") if kind.startswith("0") else path
    shards = tuple(c * int(rng.integers(1, 4)) for c in chunks) if "shards" in kind else None
    array = zarr.create_array(where, shape=x.shape, dtype=x.dtype, chunks=chunks, shards=shards,
                              zarr_format=2 if kind in ("v2", "0.4") else 3)
    array[...] = x
    if kind.startswith("0"):
        save_image(path, kind, axes, [1.0] * x.ndim)
    return path


def save_image(path, version, axes, scale, translation=None, **more):
    steps = [{"type": "scale", "scale": scale}]
    if translation:
        steps.append({"type": "translation", "translation": translation})
    kinds = {"t": "time", "c": "channel"}
    image = {"axes": [{"name": a, "type": kinds.get(a, "space")} for a in axes],
             "datasets": [{"path": "full", "coordinateTransformations": steps}]}
    facts = {"multiscales": [image], **more}
    if version == "0.4":
        image["version"] = "0.4"
    group = zarr.open_group(path, mode="a", zarr_format=2 if version == "0.4" else 3)
    group.attrs.update(facts if version == "0.4" else {"ome": {"version": "0.5", **facts}})


def pooled(x, op, step, edge, **skipped):
    """A level by one call of tarn, on the whole level below."""
    order = sorted(range(x.ndim), key=lambda a: step[a] > 1)
    kernel = tuple(min(step[a], x.shape[a]) for a in order if step[a] > 1)
    stride = tuple(step[a] for a in order if step[a] > 1)
    words = {"ceil_mode": edge == "keep", **skipped}
    if op == "avg":
        words["count_include_pad"] = False
    kind = {"avg": tarn.AvgPool, "max": tarn.MaxPool, "min": tarn.MinPool,
            "mode": tarn.ModePool}[op]
    y = kind(kernel, stride, **words)(x.transpose(order))
    return y.transpose(numpy.argsort(order))


def check_levels(out, x, op, edge, level_from, **skipped):
    group = zarr.open_group(out, mode="r")
    image = group.attrs["ome"]["multiscales"][0]
    full = [1] * x.ndim
    levels = [x]
    for number, dataset in enumerate(image["datasets"]):
        factor = [round(v) for v in dataset["coordinateTransformations"][0]["scale"]]
        if number:
            below, step = (levels[0], factor) if level_from == "base" else \
                (levels[-1], [a // b for a, b in zip(factor, full)])
            levels.append(pooled(below, op, step, edge, **skipped))
        full = factor
        found = group[dataset["path"]]
        assert found.shape == levels[-1].shape
        assert found.dtype == x.dtype
        assert found[...].tobytes() == levels[-1].tobytes(), number
    return levels


def write_tightly(*words, **options):
    """With as little memory as is taken, to a factor of two: units are computed in many parts."""
    for bits in range(10, 40):
        try:
            return write(*words, **options, memory=plan.WORKER_BYTES + (1 << bits))
        except RequestError as error:
            assert "memory: a unit of level" in str(error)


@pytest.mark.parametrize("case", range(30))
def test_levels(case, tmp_path, seed, monkeypatch):
    rng = numpy.random.default_rng([seed, case])
    monkeypatch.setattr(plan, "PART_BYTES", 1 << (case % 2 * 18))
    axes = pick(rng, "yx", "zyx", "cyx", "tyx", "czyx", "tcyx", "tczyx")
    shape = tuple(int(rng.integers(1, 4 if a in "tc" else 40 if len(axes) < 4 else 14)) for a in axes)
    x = random_cells(rng, shape, pick(rng, *DTYPES))
    factor = {a: int(rng.integers(1, 5)) for a in axes if a not in "tc"} | {"x": int(rng.integers(2, 5))}
    if rng.random() < 0.2 and "c" in axes:
        factor["c"] = 2
    ops = ("avg", "max", "min") if x.dtype.kind == "f" else ("avg", "max", "min", "mode", "mode")
    options = {"op": pick(rng, *ops), "edge": pick(rng, "keep", "trim"),
               "level_from": pick(rng, "previous", "base")}
    if rng.random() < 0.4:
        options |= {"skip": float("nan") if x.dtype.kind == "f" else int(x.flat[0])}
        options |= {"min_count": int(rng.integers(0, 5))} if rng.random() < 0.5 else {}
        x[rng.random(x.shape) < 0.4] = options["skip"]
    chunks = {a: int(rng.integers(-(-n // 4), n + 2)) for a, n in zip(axes, shape)}
    layout = {} if rng.random() < 0.4 else {"chunks": chunks}
    if layout and rng.random() < 0.6:
        layout["shards"] = {a: n * int(rng.integers(1, 4)) for a, n in chunks.items()}
    codec = pick(rng, "auto", "none", "zstd:1", "gzip:1", "blosc:3")
    given = write_tightly(save(rng, tmp_path, x, axes), tmp_path / "out", workers=1, factor=factor,
                          axes=axes, codec=codec, **options, **layout)
    levels = check_levels(tmp_path / "out", x, **options)
    assert given.shapes == tuple(level.shape for level in levels)
    assert given.tasks == given.tasks_run
    ome_zarr_models.v05.Image.from_zarr(zarr.open_group(tmp_path / "out", mode="r"))
    assert not (tmp_path / "out" / journal.NAME).exists()


def test_problem_strings_make_the_levels(tmp_path):
    rng = numpy.random.default_rng(3)
    x = random_cells(rng, (2, 9, 31, 5), "f4")
    numpy.save(tmp_path / "x.npy", x)
    write(tmp_path / "x.npy", tmp_path / "out", factor={"z": 2, "x": 3}, levels=3, workers=1)
    group = zarr.open_group(tmp_path / "out", mode="r")
    for level in group.attrs["ome"]["multiscales"][0]["metadata"]["levels"]:
        *words, dtype, shape = level["problem"].split()
        below = group[level["of"]][...].transpose(0, 2, 1, 3)
        assert (dtype, shape) == ("f32", "x".join(map(str, below.shape)))
        again = tarn.Pool.parse(" ".join(words))(below).transpose(0, 2, 1, 3)
        assert again.tobytes() == group[level["path"]][...].tobytes()


def test_booleans(tmp_path):
    x = numpy.random.default_rng(4).random((9, 13)) < 0.3
    numpy.save(tmp_path / "x.npy", x)
    write(tmp_path / "x.npy", tmp_path / "out", op="max", factor=3, levels=2, workers=1)
    y = zarr.open_array(tmp_path / "out" / "1", mode="r")[...]
    assert y.dtype == bool and (y == pooled(x.view("u1"), "max", (3, 3), "keep").view(bool)).all()
    with pytest.raises(RequestError, match="booleans"):
        write(tmp_path / "x.npy", tmp_path / "other", op="avg")


def test_foreign_byte_order(tmp_path):
    x = numpy.arange(35, dtype=">u2").reshape(5, 7)
    numpy.save(tmp_path / "x.npy", x)
    write(tmp_path / "x.npy", tmp_path / "out", factor=2, levels=2, workers=1)
    check_levels(tmp_path / "out", x.astype("u2"), "avg", "keep", "previous")


def test_large_npy_is_mapped_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAPPED_BYTES", 100)
    x = numpy.random.default_rng(5).random((7, 11, 13))
    for order in "CF":
        numpy.save(tmp_path / "x.npy", numpy.asarray(x, order=order))
        box = ((1, 6), (3, 11), (2, 9))
        part = source.Mapped(tmp_path / "x.npy").read(box)
        assert (part == x[tuple(slice(*span) for span in box)]).all()


def resident_file_pages():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssFile"))


def test_large_npy_leaves_memory_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAPPED_BYTES", 1 << 20)
    numpy.lib.format.open_memmap(tmp_path / "x.npy", "w+", "u2", (512, 256, 256))  # 64 MiB
    mapped = source.Mapped(tmp_path / "x.npy")
    before = resident_file_pages()
    for y in (64, 128):  # boxes whose rows end where the system has mapped more than was asked for
        mapped.read(((0, 512), (y, y + 40), (0, 30)))
        assert resident_file_pages() - before < 4 << 20


def test_pages_that_come_in_large_pieces_are_let_go(tmp_path):
    """What is read ahead from the disk is mapped in pieces of up to a huge page."""
    numpy.save(tmp_path / "x.npy", numpy.ones((32, 1024, 1024), "u2"))
    with open(tmp_path / "x.npy", "rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    mapped = source.Mapped(tmp_path / "x.npy")
    before = resident_file_pages()
    for y in range(0, 1024, 128):
        for x in range(0, 1024, 128):
            mapped.read(((0, 32), (y, y + 128), (x, x + 128)))
            assert resident_file_pages() - before < 4 << 20


# ---- Metadata -----------------------------------------------------------------------------------


def image_of(out):
    return zarr.open_group(out, mode="r").attrs["ome"]


def test_scales_and_translations_are_exact(tmp_path):
    path = tmp_path / "x.zarr"
    x = numpy.zeros((2, 5, 37, 41), "u1")
    zarr.create_array(path / "full", shape=x.shape, dtype=x.dtype, chunks=(1, 5, 8, 8), zarr_format=2)
    omero = {"channels": [{"color": "FF0000", "window": {"start": 0, "end": 9, "min": 0, "max": 9}}]}
    save_image(path, "0.4", "czyx", [1, 2.0, 0.1, 0.3], [0, 10, 0.7, -3], omero=omero)
    write(path, tmp_path / "out", factor={"y": 3, "x": 2}, levels=3, workers=1, unit="micrometer")
    ome = image_of(tmp_path / "out")
    steps = [d["coordinateTransformations"] for d in ome["multiscales"][0]["datasets"]]
    assert [s[0]["scale"] for s in steps] == [[1, 2.0, 0.1, 0.3], [1, 2.0, 0.1 * 3, 0.6], [1, 2.0, 0.1 * 9, 1.2]]
    # Rounded once: 0.7 + 4*0.1 of the exact values of these doubles.
    assert [s[1]["translation"] for s in steps] == [
        [0, 10, 0.7, -3], [0, 10, 0.7 + 0.1, -3 + 0.15], [0, 10, 0.7 + 0.4, -3 + 0.3 * 1.5]]
    assert ome["version"] == "0.5" and ome["omero"] == omero
    image = ome["multiscales"][0]
    assert image["axes"][1:] == [{"name": a, "type": "space", "unit": "micrometer"} for a in "zyx"]
    assert image["type"] == "avg" and image["name"] and image["metadata"]["version"] == tarn.__version__
    arrays = [zarr.open_array(tmp_path / "out" / str(k), mode="r") for k in range(3)]
    assert all(a.metadata.dimension_names == ("c", "z", "y", "x") for a in arrays)


def test_labels_keep_their_colours(tmp_path):
    path = tmp_path / "labels"
    x = numpy.random.default_rng(1).integers(0, 9, (21, 34)).astype("u4")
    zarr.create_array(path / "full", shape=x.shape, dtype=x.dtype, chunks=(8, 8))[...] = x
    label = {"version": "0.4", "colors": [{"label-value": 1, "rgba": [255, 0, 0, 255]}]}
    save_image(path, "0.5", "yx", [1.0, 1.0], **{"image-label": label})
    write(path, tmp_path / "out", op="max", workers=1, factor=2, levels=3)
    assert image_of(tmp_path / "out")["image-label"] == {"colors": label["colors"]}
    ome_zarr_models.v05.ImageLabel.from_zarr(zarr.open_group(tmp_path / "out", mode="r"))


@pytest.mark.parametrize("skipped", [{}, {"skip": 0}])
def test_labels_are_labels_of_the_block(tmp_path, skipped):
    rng = numpy.random.default_rng(12)
    x = rng.choice(numpy.array([0, 0, 5, 70000, 2**40 + 1], "u8"), (17, 30, 23))
    numpy.save(tmp_path / "x.npy", x)
    write(tmp_path / "x.npy", tmp_path / "out", op="mode", factor=2, levels=3, level_from="base", workers=1, **skipped)
    for level in (1, 2):
        y = zarr.open_array(tmp_path / "out" / str(level), mode="r")[...]
        f = 2**level
        for place in numpy.ndindex(y.shape):
            block = x[tuple(slice(i * f, i * f + f) for i in place)]
            values, counts = numpy.unique(block, return_counts=True)
            if skipped and len(values) > 1:
                values, counts = values[values != 0], counts[values != 0]
            assert y[place] == values[counts.argmax()]


def test_automatic_factors_draw_spacings_level(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((2, 64, 256, 256), "u1"))
    found = source.open_source(tmp_path / "x.npy", scale={"z": 4})
    made = plan.make_plan(found, "/nowhere", plan.Request(chunks=(("z", 16), ("y", 32), ("x", 32))))
    assert [level.shape for level in made.levels] == [
        (2, 64, 256, 256), (2, 64, 128, 128), (2, 64, 64, 64), (2, 32, 32, 32), (2, 16, 16, 16)]


def test_a_source_encoded_alike_is_copied_as_it_is(tmp_path):
    x = random_cells(numpy.random.default_rng(2), (64, 64), "u2")
    x[:32, :32] = 0  # no file
    array = zarr.create_array(tmp_path / "x", shape=x.shape, dtype=x.dtype, chunks=(8, 8), shards=(32, 32),
                              compressors=zarr.codecs.GzipCodec(level=1))
    array[...] = x
    write(tmp_path / "x", tmp_path / "out", workers=1, levels=2, factor=2)
    assert files(tmp_path / "out" / "0" / "c") == files(tmp_path / "x" / "c")
    check_levels(tmp_path / "out", x, "avg", "keep", "previous")


def files(folder):
    return {os.path.relpath(os.path.join(where, name), folder):
            open(os.path.join(where, name), "rb").read()
            for where, _, names in os.walk(folder) for name in names}


# ---- Chunks and shards --------------------------------------------------------------------------


SHARDS = {"chunks": {"z": 8, "y": 8, "x": 8}, "shards": {"z": 16, "y": 32, "x": 24}}


@pytest.mark.parametrize("codec", ["none", "zstd:1", "blosc:1"])
def test_neither_memory_nor_threads_change_a_byte(tmp_path, codec):
    x = random_cells(numpy.random.default_rng(13), (37, 70, 51), "u2")
    numpy.save(tmp_path / "x.npy", x)
    words = {"factor": 2, "levels": 3, "codec": codec, **SHARDS}
    write(tmp_path / "x.npy", tmp_path / "one", workers=1, **words)
    write(tmp_path / "x.npy", tmp_path / "many", workers=5, **words)
    write_tightly(tmp_path / "x.npy", tmp_path / "tight", workers=1, **words)
    assert files(tmp_path / "one") == files(tmp_path / "many") == files(tmp_path / "tight")
    check_levels(tmp_path / "one", x, "avg", "keep", "previous")


class Stop(Exception):
    pass


@pytest.mark.parametrize("seed", range(16))
def test_levels_joined_or_apart_are_the_same(tmp_path, monkeypatch, seed):
    """The first two levels are written in one go, or one after the other; stopped anywhere, too."""
    rng = numpy.random.default_rng(seed)
    shape = tuple(map(int, rng.integers(25, 45, 3)))
    dtype = ["u1", "<u2", ">f4", "?"][seed % 4]
    step = [int(f) for f in rng.choice([1, 2, 3], 3)]
    step[rng.integers(3)] = 2
    chunks = [int(c) for c in rng.permutation([6, 6, 12])]
    shards = [c * int(n) for c, n in zip(chunks, rng.integers(1, 3, 3))] if seed % 3 == 0 else None
    packed = zarr.codecs.ZstdCodec(level=1) if seed % 2 else None
    x = rng.integers(0, 2 if dtype == "?" else 200, shape).astype(dtype)
    x[:20, :, :17] = 0  # chunks without a file
    zarr.create_array(tmp_path / "x", shape=shape, dtype=dtype, chunks=chunks, shards=shards,
                      compressors=packed)[...] = x
    options = {"factor": dict(zip("zyx", step)), "levels": 3, "edge": ["keep", "trim"][seed // 4 % 2],
               "op": "max" if dtype == "?" else "avg", "workers": 1,
               "chunks": dict(zip("zyx", chunks)), "shards": dict(zip("zyx", shards)) if shards else "none",
               "codec": ["auto", "none"][seed // 8]}
    seen = []
    write(tmp_path / "x", tmp_path / "joined", progress=lambda state: seen.append(state.level), **options)
    assert seen.index(1) < len(seen) - 1 - seen[::-1].index(0), "they were not joined"

    def stop(state):
        if state.tasks_done == stop_at:
            raise Stop
    stop_at = int(rng.integers(1, len(seen)))
    with pytest.raises(Stop):
        write(tmp_path / "x", tmp_path / "stopped", progress=stop, **options)
    write(tmp_path / "x", tmp_path / "stopped", resume=True, **options)
    monkeypatch.setattr("tarn.pyramid.plan._can_join", lambda plan, workers: False)
    write(tmp_path / "x", tmp_path / "apart", **options)
    assert files(tmp_path / "joined") == files(tmp_path / "apart") == files(tmp_path / "stopped")


def test_fill_values_have_no_bytes(tmp_path):
    x = numpy.zeros((32, 64, 48), "f4")
    x[0, 0, 0], x[20:24, 40:48, :] = 5, -0.0
    numpy.save(tmp_path / "x.npy", x)
    write(tmp_path / "x.npy", tmp_path / "out", workers=1, levels=2, factor=2, codec="none", **SHARDS)
    check_levels(tmp_path / "out", x, "avg", "keep", "previous")  # minus zero is no fill value
    there = {name: len(data) for name, data in files(tmp_path / "out" / "0" / "c").items()}
    chunk, index = 8**3 * 4, 2 * 4 * 3 * 16 + 4
    assert there == {"0/0/0": chunk + index, "1/1/0": 3 * chunk + index, "1/1/1": 3 * chunk + index}


@pytest.mark.parametrize("codec", ["none", "zstd:1", "blosc:1"])
def test_chunks_are_what_zarr_writes(tmp_path, codec):
    x = random_cells(numpy.random.default_rng(17), (61, 45), "u2")
    x[:24, :24] = 7
    words = {"shape": x.shape, "dtype": "u2", "fill_value": 7}
    zarr.create_array(tmp_path / "x", chunks=(20, 20), **words)[...] = x
    write(tmp_path / "x", tmp_path / "out", workers=1, levels=1, chunks={"y": 8, "x": 16}, codec=codec)
    zarr.create_array(tmp_path / "z", chunks=(8, 16), compressors=driver._compressors(codec), **words)[...] = x
    assert files(tmp_path / "out" / "0" / "c") == files(tmp_path / "z" / "c")


def test_gzip_does_not_tell_the_time(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(6400, dtype="u2").reshape(80, 80))
    write(tmp_path / "x.npy", tmp_path / "out", workers=1, levels=1, codec="gzip:1")
    assert [data[:8] for data in files(tmp_path / "out" / "0" / "c").values()] == [b"\x1f\x8b\x08" + bytes(5)]
    assert (zarr.open_array(tmp_path / "out" / "0", mode="r")[...].ravel() == numpy.arange(6400)).all()


FOREIGN = {
    "transposed": {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))], "compressors": None},
    "checked": {"compressors": [zarr.codecs.Crc32cCodec()]},
    "index first": {"shards": (32, 32), "compressors": None, "serializer": zarr.codecs.ShardingCodec(
        chunk_shape=(8, 8), index_location="start")},
    "v2, order F": {"zarr_format": 2, "order": "F"},
    "v2, filter": {"zarr_format": 2, "filters": [numcodecs.Delta("u2")]},
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_only_zarr_reads(tmp_path, kind):
    x = random_cells(numpy.random.default_rng(14), (61, 45), "u2")
    words = dict(FOREIGN[kind])
    chunks = words.pop("shards", (8, 8))
    zarr.create_array(tmp_path / "x", shape=x.shape, dtype="u2", chunks=chunks, **words)[...] = x
    assert isinstance(open_array(str(tmp_path / "x")), Foreign)
    write_tightly(tmp_path / "x", tmp_path / "out", workers=3, levels=3, factor=2)
    check_levels(tmp_path / "out", x, "avg", "keep", "previous")
    assert not isinstance(open_array(str(tmp_path / "out" / "0")), Foreign)


@pytest.mark.parametrize("kind", ["v3 big", "v2 big", "v2 blosc", "v2 names", "v3 names", "fill"])
def test_what_is_read_without_zarr(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(plan, "PART_BYTES", 1)  # one chunk is read at a time, where it lies
    x = random_cells(numpy.random.default_rng(15), (61, 45), "u2")
    x[:20, :20] = 7
    words = {"v3 big": {"serializer": zarr.codecs.BytesCodec(endian="big"), "compressors": None},
             "v2 big": {"zarr_format": 2, "dtype": ">u2"},
             "v2 blosc": {"zarr_format": 2, "compressors": numcodecs.Blosc(shuffle=2)},
             "v2 names": {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
             "v3 names": {"chunk_key_encoding": {"name": "default", "separator": "."}},
             "fill": {"fill_value": 7}}[kind]
    zarr.create_array(tmp_path / "x", shape=x.shape, chunks=(8, 10), **{"dtype": "u2"} | words)[...] = x
    assert not isinstance(open_array(str(tmp_path / "x")), Foreign)
    write(tmp_path / "x", tmp_path / "out", workers=1, levels=2, factor=2)
    check_levels(tmp_path / "out", x, "avg", "keep", "previous")


@pytest.mark.parametrize("damage, words", [("index", "index is damaged"), ("cut", "index is damaged"),
                                           ("chunk", "ends before a chunk does"), ("zstd", "")])
def test_damaged_shards(tmp_path, damage, words):
    x = random_cells(numpy.random.default_rng(16), (32, 32), "u2")
    codec = zarr.codecs.ZstdCodec() if damage == "zstd" else None
    zarr.create_array(tmp_path / "x", shape=x.shape, dtype="u2", chunks=(8, 8), shards=(16, 16),
                      compressors=codec)[...] = x
    path = tmp_path / "x" / "c" / "1" / "0"
    data = bytearray(path.read_bytes())
    if damage == "index":
        data[-30] ^= 1
    elif damage == "zstd":
        data[:40] = bytes(40)
    else:
        data = data[300:] if damage == "chunk" else data[:-1]  # from the front: the index is whole
    path.write_bytes(data)
    with pytest.raises(WorkError, match=rf"level 0, chunk \(1, 0\), key 0/c/1/0: .*{words}"):
        write(tmp_path / "x", tmp_path / "out", workers=2, levels=2, factor=2, shards="none",
              chunks={"y": 16, "x": 16})
    assert not (tmp_path / "out" / "zarr.json").exists()


# ---- Memory -------------------------------------------------------------------------------------


def test_a_file_that_is_cut_short_is_an_error(tmp_path):
    (tmp_path / "cells").write_bytes(bytes(10))
    with open(tmp_path / "cells", "rb") as file:
        assert loaded(file.fileno(), 4, 6).tolist() == [0] * 6
        with pytest.raises(ValueError, match="ends after 10 bytes"):
            loaded(file.fileno(), 4, 7)


def test_parts_fit_the_budget(tmp_path):
    rng = numpy.random.default_rng(8)
    numpy.save(tmp_path / "x.npy", numpy.zeros((40, 90, 70), "u2"))
    found = source.open_source(tmp_path / "x.npy")
    for _ in range(50):
        chunks = tuple((a, int(rng.integers(1, 30))) for a in "zyx")
        shards = tuple((a, n * int(rng.integers(1, 5))) for a, n in chunks)
        made = plan.make_plan(found, "/nowhere", plan.Request(chunks=chunks, shards=shards))
        for level in range(1, len(made.levels)):
            least = plan.unit_bytes(made, level, made.levels[level].chunks, (1, 1, 1))
            budget = int(least * rng.uniform(1, 3))
            slab, part = plan.split_unit(made, level, budget)
            assert plan.unit_bytes(made, level, slab, part) <= budget
            unit, chunk = made.levels[level].box((0, 0, 0)), made.levels[level].chunks
            # Slabs are rows: one chunk on the axes before one that is cut, all chunks on those behind.
            cut = [(s >= b) - (s <= c) for (_, b), s, c in zip(unit, slab, chunk) if c < b]
            assert cut == sorted(cut) and cut.count(0) <= 1
        with pytest.raises(RequestError, match="memory"):
            plan.split_unit(made, 1, least // 2)


def test_a_worker_stays_within_memory(tmp_path):
    numpy.save(tmp_path / "x.npy", random_cells(numpy.random.default_rng(9), (96, 400, 400), "u2"))
    code = ("import re, sys, tarn.pyramid\n"
            "tarn.pyramid.write(*sys.argv[1:], workers=1, memory='96M', levels=2, codec='none',\n"
            "                   shards=dict(z=128, y=128, x=128), chunks=dict(z=64, y=64, x=64))\n"
            "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])")
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "x.npy", tmp_path / "out"],
                         stdout=subprocess.PIPE, check=True)
    assert int(run.stdout) * 1024 <= 96 << 20


# ---- What is wrong ------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path):
    x = random_cells(numpy.random.default_rng(6), (40, 50), "u2")
    array = zarr.create_array(tmp_path / "x", shape=x.shape, dtype=x.dtype, chunks=(8, 8), compressors=None)
    array[...] = x
    return tmp_path


@pytest.mark.parametrize("options, words", [
    ({"op": "median"}, "op: 'median'"),
    ({"skip": "nan", "levels": 2}, "op avg, dtype uint16: "),
    ({"skip": 70000, "levels": 2}, "op avg, dtype uint16: "),
    ({"skip": "zero"}, "skip: 'zero'"),
    ({"min_count": 2}, "min_count: goes with skip"),
    ({"factor": {"q": 2}}, "no axis q; there are y, x"),
    ({"factor": {"y": 0}}, "y=0 is not positive"),
    ({"factor": {"y": 1}}, "all are 1"),
    ({"factor": "half"}, "factor: 'half'"),
    ({"levels": 0}, "levels: 0"),
    ({"levels": 20}, "40x50 has 7"),
    ({"levels": 9, "edge": "trim"}, "40x50 has 6"),
    ({"edge": "wrap"}, "edge: 'wrap'"),
    ({"level_from": "top"}, "from: 'top'"),
    ({"chunks": {"x": 8, "y": 8}, "shards": {"x": 12}}, "x=12 is not a multiple of the chunk, 8"),
    ({"codec": "zip"}, "codec: 'zip'"),
    ({"memory": "much"}, "memory: 'much'"),
    ({"memory": "1M"}, "memory: a unit of level 0"),
    ({"codec": "blosc:10"}, "codec: 'blosc:10'"),
    ({"codec": None}, "codec: None"),
    ({"workers": 0}, "workers: 0"),
    ({"workers": 1.5}, "workers: 1.5 is not a whole number"),
    ({"levels": 2.5}, "levels: 2.5 is not a whole number"),
    ({"factor": 2.5}, "factor: 2.5 is not a whole number"),
    ({"factor": (2, 2)}, "factor: (2, 2) is not a whole number"),
    ({"factor": {"y": 2.5}}, "factor: y: 2.5 is not a whole number"),
    ({"skip": 1, "min_count": 2.5}, "min_count: 2.5 is not a whole number"),
    ({"skip": 10**400, "levels": 2}, "op avg, dtype uint16: "),
    ({"skip": [1]}, "skip: [1]"),
    ({"axes": [1, 2]}, "axes [1, 2]"),
    ({"scale": {"x": "wide"}}, "x=wide is not a positive number"),
    ({"axes": "zyx"}, "3 names for an array of 2"),
    ({"axes": "cx"}, "two or three axes of space"),
    ({"scale": {"x": -1.0}}, "not a positive number"),
    ({"scale": {"z": 1.0}}, "no axis z"),
])
def test_bad_requests(small, options, words):
    with pytest.raises(RequestError) as caught:
        write(small / "x", small / "out", **({"workers": 1} | options))
    assert words in str(caught.value)
    assert not (small / "out" / "zarr.json").exists()


def test_one_channel_is_enough(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((1, 1, 1, 8, 8), "u1"))
    with pytest.raises(RequestError, match="wants time, channel"):
        write(tmp_path / "x.npy", tmp_path / "out", axes=["t", "c", "channel", "y", "x"])


def test_bad_inputs(small):
    with pytest.raises(RequestError, match="no such file"):
        write(small / "y", small / "out")
    (small / "text.npy").write_text("not numbers")
    with pytest.raises(RequestError, match="not a .npy file"):
        write(small / "text.npy", small / "out")
    zarr.open_group(small / "group", mode="w").create_array("inside", shape=(3, 3), dtype="u1")
    with pytest.raises(RequestError, match="name an array or an image inside it .inside"):
        write(small / "group", small / "out")
    numpy.save(small / "c.npy", numpy.zeros((3, 3), "c8"))
    with pytest.raises(RequestError, match="dtype complex64"):
        write(small / "c.npy", small / "out")
    for name, words in (("text", {"dtype": str}), ("cells", {"dtype": [("a", "u1")], "zarr_format": 2})):
        zarr.create_array(small / name, shape=(3, 3), chunks=(3, 3), **words)
        with pytest.raises(RequestError, match="is not pooled"):
            write(small / name, small / "out")
    numpy.save(small / "one.npy", numpy.zeros(3))
    numpy.save(small / "f.npy", numpy.zeros((3, 3)))
    with pytest.raises(RequestError, match="op mode, dtype float64: "):
        write(small / "f.npy", small / "out", op="mode", factor=2, levels=2)
    with pytest.raises(RequestError, match="OME-Zarr has 2 to 5"):
        write(small / "one.npy", small / "out")
    numpy.save(small / "none.npy", numpy.zeros((3, 0)))
    with pytest.raises(RequestError, match="nothing in an array"):
        write(small / "none.npy", small / "out")
    with pytest.raises(RequestError, match="lies in the input"):
        write(small / "x", small / "x" / "out")
    with pytest.raises(RequestError, match="lies in the input"):
        write(small / "x", small, overwrite=True)


@pytest.mark.parametrize("key, value", [
    ("datasets", []), ("datasets", [{"path": "full"}]), ("datasets", [7]), ("axes", None), ("axes", [{"name": "x"}]),
    ("datasets", [{"path": "full", "coordinateTransformations": [{"type": "scale", "scale": [1.0]}]}]),
    ("datasets", [{"path": "full", "coordinateTransformations": [{"type": "scale", "scale": [1, "x"]}]}]),
    ("datasets", [{"path": "full", "coordinateTransformations": [{"type": "affine"}]}]),
    ("datasets", [{"path": "full", "coordinateTransformations": [{"type": "scale", "scale": [0, 1]}]}]),
    ("datasets", [{"path": "full", "coordinateTransformations": [{"type": "scale", "scale": [1e308, 1]}]}]),
    ("datasets", [{"path": "full", "coordinateTransformations": 2 * [{"type": "scale", "scale": [2, 2]}]}]),
    ("datasets", [{"path": "full", "coordinateTransformations": [
        {"type": "translation", "translation": [1, 1]}, {"type": "scale", "scale": [2, 2]}]}]),
    ("version", "0.3"),
    ("datasets", [{"path": "other", "coordinateTransformations": []}]),
])
def test_damaged_metadata(small, key, value):
    os.makedirs(small / "image")
    os.rename(small / "x", small / "image" / "full")
    save_image(small / "image", "0.5", "yx", [1.0, 1.0])
    write(small / "image", small / "right", workers=1)
    ome = dict(zarr.open_group(small / "image", mode="r").attrs["ome"])
    ome["multiscales"][0][key] = value
    zarr.open_group(small / "image", mode="a").attrs["ome"] = ome
    with pytest.raises(RequestError, match="image|beyond all numbers"):
        write(small / "image", small / "out", workers=1, factor=2, levels=3)
    assert not (small / "out").exists()
    zarr.open_group(small / "image", mode="a").attrs["ome"] = 7
    with pytest.raises(RequestError, match="a group without 'multiscales'"):
        write(small / "image", small / "out", workers=1)


def test_an_output_is_not_lost(small):
    (small / "out").mkdir()
    (small / "out" / "thesis.txt").write_text("all of it")
    for options in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(RequestError):
            write(small / "x", small / "out", workers=1, **options)
    assert (small / "out" / "thesis.txt").read_text() == "all of it"
    write(small / "x", small / "image", workers=1)
    with pytest.raises(RequestError, match="--overwrite replaces it"):
        write(small / "x", small / "image", workers=1)
    write(small / "x", small / "image", workers=1, overwrite=True, op="max")
    assert image_of(small / "image")["multiscales"][0]["type"] == "max"


def test_numbers_of_numpy_are_numbers(small):
    two, skip = numpy.int64(2), numpy.uint16(0)
    write(small / "x", small / "out", workers=numpy.int8(1), factor=two, levels=two, op="mode", skip=skip,
          min_count=two, scale={"y": numpy.float32(0.5)})
    found = image_of(small / "out")["multiscales"][0]
    assert found["metadata"]["levels"][0]["problem"] == "mode k2,2s2,2 d2 ceil skip=0 min=2 u16 40x50"
    numpy.save(small / "f.npy", numpy.ones((9, 9), "f4"))
    for skip in (numpy.float32("nan"), float("nan"), "nan"):
        write(small / "f.npy", small / "f", workers=1, factor=2, levels=2, skip=skip, overwrite=(small / "f").exists())
        assert image_of(small / "f")["multiscales"][0]["metadata"]["request"]["skip"] == "nan"


@pytest.mark.parametrize("change", ["shape", "attributes", "gone", "npy"])
def test_an_input_that_changes_under_way(small, change):
    path, meta = small / "x", small / "x" / "zarr.json"
    if change == "npy":
        path = small / "x.npy"
        numpy.save(path, numpy.ones((40, 50), "u2"))

    def progress(state):
        if state.tasks_done > 1:
            return
        if change == "npy":
            os.utime(path, (1, 1))
        elif change == "gone":
            meta.unlink()
        else:
            facts = json.loads(meta.read_text())
            facts[change] = {"shape": [40, 40], "attributes": {"seen": True}}[change]
            meta.write_text(json.dumps(facts))
    if change == "attributes":
        write(path, small / "out", workers=1, factor=2, levels=2, progress=progress)
        return
    with pytest.raises(WorkError, match="No such file|No array" if change == "gone" else "changed while it was read"):
        write(path, small / "out", workers=1, factor=2, levels=2, progress=progress)
    assert not (small / "out" / "zarr.json").exists()


def test_folders_that_cannot_be_written(small, monkeypatch):
    (small / "file").write_text("no folder")
    with pytest.raises(WorkError, match="file/out: .*Not a directory"):
        write(small / "x", small / "file" / "out", workers=1)

    def full(self, line):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(journal.Journal, "add", full)
    with pytest.raises(WorkError, match="out: .*No space left"):
        write(small / "x", small / "out", workers=1)


def test_an_operator_is_refused_where_one_level_is_all(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.ones((5, 5), "f4"))
    with pytest.raises(RequestError, match="op mode, dtype float32"):
        write(tmp_path / "x.npy", tmp_path / "out", op="mode", workers=1)
    assert not (tmp_path / "out").exists()


def test_a_damaged_input_is_named(small):
    (small / "x" / "c" / "2" / "3").write_bytes(b"short")
    with pytest.raises(WorkError, match=r"level 0, chunk \(2, 3\), key 0/c/2/3: "):
        write(small / "x", small / "out", workers=1, levels=2, factor=2, chunks={"y": 8, "x": 8})
    assert not (small / "out" / "zarr.json").exists()
    with pytest.raises(WorkError, match=r"level 0, chunk \(0, 0\), key 0/c/0/0: "):
        write(small / "x", small / "out", workers=1, levels=2, factor=2, overwrite=True)


def run_command(*words, **more):
    return subprocess.run([sys.executable, "-m", "tarn", "pyramid", *map(str, words)],
                          capture_output=True, text=True, **more)


def test_a_full_disk_leaves_nothing_that_looks_whole(small):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3500, 3500))
    words = (small / "x", small / "out", "--codec=none", "--chunks=y=64,x=64", "--workers=1")
    run = run_command(*words, preexec_fn=limit)
    assert run.returncode == 1 and "level 0, chunk (0, 0), key 0/c/0/0: " in run.stderr
    assert not (small / "out" / "zarr.json").exists()
    assert not [name for name in files(small / "out") if name.endswith(".partial")]
    assert run_command(*words).returncode == 2
    run = run_command(*words, "--resume", "--json")
    assert run.returncode == 0 and json.loads(run.stdout.splitlines()[-1])["event"] == "done"
    write(small / "x", small / "straight", workers=1, codec="none", chunks={"y": 64, "x": 64})
    assert files(small / "out") == files(small / "straight")


def test_command_line(small, capsys):
    words = [str(small / "x"), str(small / "out"), "--workers=1"]
    assert command.main([*words, "--factor=y=2,x=3", "--levels=2", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1]["shapes"] == [[40, 50], [20, 17]]
    assert command.main([*words, "--factor=2"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert command.main([*words, "--json", "--facter=2"]) == 2
    assert json.loads(capsys.readouterr().err)["status"] == 2
    assert command.main([str(small / "x"), "/dev/null/out"]) == 1
    assert capsys.readouterr().err.startswith("tarn pyramid: ")
    assert command.main([*words, "--overwrite", "--axes=y,x", "--scale=y=0.5", "--factor=2", "--levels=2",
                         "--op=mode", "--skip=0", "--min-count=2"]) == 0
    assert image_of(small / "out")["multiscales"][0]["metadata"]["levels"][0]["problem"] == \
        "mode k2,2s2,2 d2 ceil skip=0 min=2 u16 40x50"


def test_progress_counts_to_the_end(small):
    seen = []
    given = write(small / "x", small / "out", workers=1, progress=seen.append)
    assert [state.tasks_done for state in seen] == list(range(1, given.tasks + 1))
    assert seen[-1].bytes_done == seen[-1].bytes and seen[-1].eta_seconds == 0
