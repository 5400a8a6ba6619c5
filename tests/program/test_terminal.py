"""What people see: text on terminals, never binary; --text; layouts that travel through pipes."""

import io
import json
import os
import pty
import subprocess
import zlib

import numpy as np
import pytest

from conftest import PROGRAM

PHOTO = (np.random.default_rng(3).integers(0, 256, (32, 48, 3))).astype("u1")


@pytest.fixture
def on_terminal(tmp_path):
    """Runs `tarn ...` with a terminal for its standard output."""

    def run(*words):
        ours, theirs = pty.openpty()
        with subprocess.Popen([PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=theirs,
                              stderr=subprocess.PIPE, cwd=tmp_path) as child:
            os.close(theirs)
            shown = b""
            try:
                while block := os.read(ours, 65536):
                    shown += block
            except OSError:  # how Linux says that the other end is closed
                pass
            err = child.stderr.read().decode()
        os.close(ours)
        return child.returncode, shown.replace(b"\r\n", b"\n").decode(), err

    return run


@pytest.fixture
def photo(tmp_path):
    (tmp_path / "photo.ppm").write_bytes(b"P6 48 32 255\n" + PHOTO.tobytes())
    return PHOTO


def halves(picture):
    """2x2 averages, rounded as integers are: to nearest, ties to even."""
    rows, columns = picture.shape[0] // 2, picture.shape[1] // 2
    return np.rint(picture.astype("f8").reshape(rows, 2, columns, 2, -1).mean((1, 3))).astype("u1")


def test_text(good):
    x = np.arange(2 * 4 * 4, dtype="f4").reshape(2, 4, 4) / 10
    np.save(good.folder / "x.npy", x)
    out = good("max", "x.npy", "-k2", "--text").out
    assert out == "# 2x2x2 f32\n0.5 0.7\n1.3 1.5\n\n2.1 2.3\n2.9 3.1\n"
    assert np.array_equal(np.loadtxt(io.StringIO(out), dtype="f4").reshape(2, 2, 2), x[:, 1::2, 1::2])
    good("max", "x.npy", "-k2", "-o", "y.txt", "--indices", "w.txt")
    assert (good.folder / "y.txt").read_text() == out
    assert (good.folder / "w.txt").read_text() == "# 2x2x2 i64\n5 7\n13 15\n\n5 7\n13 15\n"
    good("max", "x.npy", "-k2", "-o", "other.dat", "--text", "--indices", "w.npy")
    assert (good.folder / "other.dat").read_text() == out
    assert (good.folder / "w.npy").read_bytes().startswith(b"\x93NUMPY")
    assert good("global-avg", "x.npy", "--flat", "--text").out == "# 2 f32\n0.75 2.35\n"


@pytest.mark.parametrize("dtype, numbers, lines", [
    ("f8", [0.1, 1e300, -0.0, 5e-324], "0.1 1e+300 -0 5e-324"), ("f4", [0.1, 100, 1e16, 2.5], "0.1 100 1e+16 2.5"),
    ("f2", [0.1, 65504, np.nan, -np.inf], "0.1 65504 nan -inf"), ("i1", [-128, 127, 0, 5], "-128 127 0 5"),
    ("u8", [2**64 - 1, 0, 1, 2], "18446744073709551615 0 1 2"), ("i8", [-2**63, 0, 1, 2], "-9223372036854775808 0 1 2"),
    ("f8", [123456789012, 0.0001, 1e15, 1 / 3], "123456789012 0.0001 1000000000000000 0.3333333333333333")])
def test_numbers_have_the_fewest_digits_that_give_them_back(good, dtype, numbers, lines):
    x = np.array(numbers, dtype)
    np.save(good.folder / "x.npy", x)
    out = good("max", "x.npy", "-k1", "--text").out
    assert out.split("\n")[1] == lines
    assert np.array_equal(np.array(lines.split(), dtype), x, equal_nan=dtype[0] == "f")


def test_text_follows_the_axes_not_the_memory(good):
    x = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
    np.save(good.folder / "x.npy", x)
    out = good("max", "x.npy", "-k1", "--text").out
    assert np.array_equal(np.loadtxt(io.StringIO(out)).reshape(2, 3, 4), x)


def test_small_results_are_shown_on_a_terminal(on_terminal, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(16.0).reshape(4, 4))
    expected = (0, "# 2x2 f64\n5 7\n13 15\n", "")
    assert on_terminal("max", "x.npy", "-k2") == expected
    assert on_terminal("max", "x.npy", "-k2", "-o", "-") == expected
    assert on_terminal("max", "x.npy", "-k2", "-o", "/dev/stdout") == expected


@pytest.mark.parametrize("words, said", [
    (["max", "x.npy", "-k1"], "--output: 4096 numbers are too many for a terminal: say -o FILE, or --text"),
    (["max", "x.npy", "-k1", "-o", "-"], "--output: 4096 numbers are too many for a terminal: say -o FILE, or --text"),
    (["show", "max", "x.npy", "-k2", "-o", "-"],
     "--output: binary is not written to a terminal: name a file, or use a pipe"),
    (["graph", "run", "g.graph", "-i", "x.npy", "-o", "-"],
     "--output: 4096 numbers are too many for a terminal: say -o FILE, or --text")])
def test_binary_is_never_written_to_a_terminal(on_terminal, tmp_path, words, said):
    np.save(tmp_path / "x.npy", np.zeros((64, 64), "f4"))
    (tmp_path / "g.graph").write_text("x = input f32 64x64\ny = max x kernel=1\nreturn y\n")
    assert on_terminal(*words) == (2, "", f"tarn: {said}\n")


def test_text_on_a_terminal_is_as_long_as_asked_for(on_terminal, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((64, 64), "f4"))
    status, shown, _ = on_terminal("max", "x.npy", "-k1", "--text")
    assert status == 0 and shown.count("\n") == 65


# ---- Layouts ----


def test_layout_travels_through_pipes(good, photo):
    first = good("avg", "photo.ppm", "-k2", "-o", "-", text=False).out
    assert np.array_equal(np.load(io.BytesIO(first)), halves(photo))  # NumPy reads it
    second = good("avg", "-", "-k2", "-o", "-", stdin=first, text=False).out
    assert np.array_equal(np.load(io.BytesIO(second)), halves(halves(photo)))
    good("avg", "-", "-k2", "-o", "small.ppm", stdin=second)  # and further, back to a picture
    expected = halves(halves(halves(photo)))
    assert (good.folder / "small.ppm").read_bytes() == b"P6\n6 4\n255\n" + expected.tobytes()
    flat = good("global-max", "-", "--flat", "--text", stdin=first).out
    assert flat == "# 3 u8\n" + " ".join(map(str, halves(photo).max((0, 1)))) + "\n"


def test_layout_of_a_gradient_travels(good, photo):
    y = good("smooth", "photo.ppm", "-k2", "-o", "-", text=False).out
    good("smooth", "photo.ppm", "--vjp", "-", "-k2", "-o", "gx.npy", stdin=y)
    assert np.load(good.folder / "gx.npy").shape == photo.shape


def test_layout_that_is_said_wins(good, photo):
    first = good("avg", "photo.ppm", "-k2", "-o", "-", text=False).out
    assert good("shape", "avg", "-", "-k2", "--layout", "first", stdin=first).out.startswith("output   16x12x1 u8\n")


def test_files_are_as_numpy_writes_them(good, photo):
    good("avg", "photo.ppm", "-k2", "-o", "y.npy")
    buffer = io.BytesIO()
    np.save(buffer, halves(photo))
    assert (good.folder / "y.npy").read_bytes() == buffer.getvalue()


def test_channels_that_are_about_to_be_mixed_are_told(tarn, photo):
    np.save(tarn.folder / "x.npy", photo)
    note = "the last axis, of 3, is pooled over: say --layout last if it holds channels, or --layout first"
    result = tarn("avg", "x.npy", "-k2", "-o", "y.npy")
    assert (result.status, result.err) == (0, f"tarn: x.npy: {note}\n")
    result = tarn("avg", "x.npy", "-k2", "-o", "y.npy", "--json")
    assert json.loads(result.err) == {"note": note, "file": "x.npy"}
    for layout in "first", "last":
        assert tarn("avg", "x.npy", "-k2", "-o", "y.npy", "--layout", layout).err == ""
    np.save(tarn.folder / "x.npy", np.zeros((1, 64, 4, 4), "f4"))  # a small map, not rows of colours
    assert tarn("avg", "x.npy", "-k2", "-o", "y.npy").err == ""


# ---- Graphs ----

PYRAMID = "x = input f32 1x3x32x48\nhalf = avg x kernel=2\nquarter = avg half kernel=2\nreturn half quarter\n"


def test_graphs_take_and_give_colour_pictures(good, photo):
    (good.folder / "g.graph").write_text(PYRAMID)
    good("graph", "run", "g.graph", "-i", "photo.ppm", "-o", "half=h.ppm", "-o", "quarter=q.npy", "-q")
    expected = photo.astype("f4").reshape(16, 2, 24, 2, 3).mean((1, 3))
    assert (good.folder / "h.ppm").read_bytes() == b"P6\n24 16\n255\n" + np.rint(expected).astype("u1").tobytes()
    quarter = expected.reshape(8, 2, 12, 2, 3).mean((1, 3))
    assert np.array_equal(np.load(good.folder / "q.npy"), quarter.transpose(2, 0, 1)[None])


def test_a_graph_may_have_the_axes_of_a_picture(good, photo):
    (good.folder / "g.graph").write_text("x = input u8 32x48x3\ny = max x kernel=2,3\nreturn y\n")
    good("graph", "run", "g.graph", "-i", "photo.ppm", "-o", "y.npy", "-q")
    expected = photo.reshape(32, 24, 2, 3).max((2, 3))
    assert np.array_equal(np.load(good.folder / "y.npy")[..., 0], expected)


def test_graphs_with_channels_last(good, photo):
    (good.folder / "g.graph").write_text(PYRAMID)
    np.save(good.folder / "x.npy", photo[None].astype("f4"))
    good("graph", "run", "g.graph", "-i", "x.npy", "-o", "half=h.npy", "--layout", "last", "-q")
    expected = photo.astype("f4").reshape(16, 2, 24, 2, 3).mean((1, 3))[None]
    assert np.array_equal(np.load(good.folder / "h.npy"), expected)
    np.save(good.folder / "g.npy", np.ones((1, 16, 24, 3), "f4"))
    good("graph", "vjp", "g.graph", "-i", "x.npy", "--cotangent", "half=g.npy", "-o", "gx.npy", "--layout", "last", "-q")
    assert np.array_equal(np.load(good.folder / "gx.npy"), np.full((1, 32, 48, 3), 0.25, "f4"))


def test_graphs_name_their_results_in_json(good, photo):
    (good.folder / "g.graph").write_text(PYRAMID)
    words = ["graph", "run", "g.graph", "-i", "photo.ppm", "-o", "half=h.npy", "-o", "quarter=q.ppm", "--json"]
    assert json.loads(good(*words).out)["outputs"] == [
        {"name": "half", "tensor": "value", "file": "h.npy", "shape": [1, 3, 16, 24], "dtype": "f32"},
        {"name": "quarter", "tensor": "value", "file": "q.ppm", "shape": [1, 3, 8, 12], "dtype": "f32"}]
    said = json.loads(good(*words, "--layout", "last").out)["outputs"]
    assert [row["shape"] for row in said] == [[1, 16, 24, 3], [1, 8, 12, 3]]
    said = json.loads(good("graph", "vjp", "g.graph", "-i", "photo.ppm", "-o", "x=gx.npy", "--json").out)["outputs"]
    assert said == [{"name": "x", "tensor": "cotangent", "file": "gx.npy", "shape": [1, 3, 32, 48], "dtype": "f32"}]


def test_graphs_print_their_results(good):
    (good.folder / "g.graph").write_text("x = input f32 1x4\na = max x kernel=1,2\nb = min x kernel=1,2\nreturn a b\n")
    np.save(good.folder / "x.npy", np.array([[1, 5, 2.5, 0]], "f4"))
    out = good("graph", "run", "g.graph", "-i", "x.npy", "--text", "-q").out
    assert out == "# a 1x2 f32\n5 2.5\n# b 1x2 f32\n1 0\n"
    assert good("graph", "vjp", "g.graph", "-i", "x.npy", "--text", "-q").out == "# x 1x4 f32\n1 1 1 1\n"


def test_jpeg_is_named(tarn):
    (tarn.folder / "x.jpg").write_bytes(b"\xff\xd8\xff\xe0" + zlib.compress(b"x" * 99))
    result = tarn("max", "x.jpg", "-k2", "-o", "y.npy")
    assert (result.status, result.err) == (1, "tarn: x.jpg: byte 0: is a JPEG, which tarn does not read: make it a PNG\n")
