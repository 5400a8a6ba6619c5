"""tarn show: pictures against approved ones, dot by dot, and what they must show whatever they look like.

TARN_APPROVE=1 takes the pictures drawn now as right: look at them before you commit them.
"""

import json
import os
import pathlib
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from conftest import SOURCE


def dots(run, path):
    """The dots of a picture, rows x columns x 3: the program turns PNG into PPM, which is easy to read."""
    run("max", path, "-o", "dots.ppm", "--kernel", "1")
    kind, width, height, white, data = (run.folder / "dots.ppm").read_bytes().split(None, 4)
    assert (kind, white) == (b"P6", b"255")
    return np.frombuffer(data, np.uint8).reshape(int(height), int(width), 3)


APPROVED = pathlib.Path(__file__).parent / "pictures"


def array(*shape):
    """Small whole numbers in an order that looks random, some of them negative."""
    return ((np.arange(np.prod(shape)) * 7919 % 101) % 19 - 5).reshape(shape).astype("f4")


def odd_numbers():
    x = array(5, 6)
    x[0, 0], x[1, 2], x[3, 3], x[4, 1] = np.nan, np.inf, -np.inf, 1e30
    return x


CASES = {
    "row": (array(24), "max --kernel 3 --stride 2 --jvp x.npy"),
    "volume": (array(4, 6, 6), "max --kernel 2 --spatial 3"),
    "planes": (array(2, 3, 5, 4), "min --kernel 2 --stride 1"),
    "dilated": (array(9, 9), "avg --kernel 2 --stride 3 --dilation 3 --pad 1:2,0:1 --ceil"),
    "odd": (odd_numbers(), "max --kernel 2 --ties all"),
    "shrunk": (array(400, 700), "max --kernel 8"),
}


@pytest.mark.parametrize("name", CASES)
def test_approved(good, name):
    x, words = CASES[name]
    np.save(good.folder / "x.npy", x)
    words = words.split()
    good("show", words[0], "x.npy", "-o", name + ".png", *words[1:])
    drawn, approved = good.folder / (name + ".png"), APPROVED / (name + ".png")
    if os.environ.get("TARN_APPROVE"):
        shutil.copy(drawn, approved)
    assert np.array_equal(dots(good, drawn), dots(good, approved))


def test_svg_approved(good):
    np.save(good.folder / "x.npy", array(4, 5))
    good("show", "max", "x.npy", "-o", "small.svg", "--kernel", "2", "--stride", "1")
    drawn, approved = good.folder / "small.svg", APPROVED / "small.svg"
    if os.environ.get("TARN_APPROVE"):
        shutil.copy(drawn, approved)
    assert drawn.read_text() == approved.read_text()
    words = [e.text for e in ElementTree.parse(drawn).iter() if e.tag.endswith("text")]
    assert {"input x", "windows, winners", "output y", "gradient gx"} <= set(words)


def test_svg_escapes_names(good):
    np.save(good.folder / "a<&>.npy", array(3, 3))
    good("show", "max", "a<&>.npy", "-o", "p.svg", "--kernel", "2")
    words = [e.text for e in ElementTree.parse(good.folder / "p.svg").iter() if e.tag.endswith("text")]
    assert words[0].startswith("a<&>.npy: max k2s2")


def test_text(good):
    np.save(good.folder / "x.npy", np.array([[1, 9, 2, 3], [4, 0, 8, 7]], "u1"))
    printed = good("show", "max", "x.npy", "-o", "p.png", "--kernel", "2").out
    assert printed.splitlines()[:3] == [
        "x, * wins       y       gx",
        " 1  9* 2  3      9 8     0 1 0 0",
        " 4  0  8* 7              0 0 1 0",
    ]


def test_json_and_pipe(good):
    np.save(good.folder / "x.npy", array(4, 4))
    said = json.loads(good("show", "x.npy", "-o", "p.png", "--kernel", "2", "--json").out)
    (good.folder / "pipe.png").write_bytes(
        good("show", "x.npy", "-o", "-", "--kernel", "2", text=False).out)
    picture = dots(good, "pipe.png")
    assert said == {"picture": "p.png", "width": picture.shape[1], "height": picture.shape[0]}
    assert np.array_equal(picture, dots(good, "p.png"))


def test_ends_of_the_colour_map(good):
    np.save(good.folder / "x.npy", np.array([[0.0, 1.0]]))
    good("show", "max", "x.npy", "-o", "two.png", "--kernel", "1,2")
    two = dots(good, "two.png").reshape(-1, 3)
    for light in (0x251046, 0xf4f4a8):  # the ends of the sequential map
        assert (two == [light >> 16, light >> 8 & 255, light & 255]).all(1).sum() > 500


@pytest.mark.parametrize("words, status, said", [
    (["x.npy", "--kernel", "2"], 2, "tarn: --output: is missing"),
    (["4x4", "--kernel", "2", "-o", "p.png"], 2, "a file is needed"),
    (["x.npy", "--kernel", "9", "-o", "p.png"], 2, "does not fit"),
    (["x.npy", "--kernel", "2", "-o", "p.png", "--vjp", "x.npy"], 2, "shape of the output"),
    (["x.npy", "--kernel", "2", "-o", "p.png", "--jvp", "y.npy"], 2, "shape of the input"),
    (["x.npy", "--kernel", "2", "-o", "p.gif"], 2, "p.gif"),
    (["x.npy", "--kernel", "2", "-o", "none/p.png"], 1, "none/p.png"),
])
def test_refusals(tarn, words, status, said):
    np.save(tarn.folder / "x.npy", array(4, 4))
    np.save(tarn.folder / "y.npy", array(2, 2))
    result = tarn("show", "max", *words)
    assert result.status == status and said in result.err and result.err.count("\n") == 1
    assert not list(tarn.folder.glob("p.*"))


def test_empty_and_huge_windows(good):
    np.save(good.folder / "none.npy", np.zeros((0, 4, 4), "f4"))
    good("show", "max", "none.npy", "-o", "p.png", "--kernel", "2")
    np.save(good.folder / "x.npy", array(100, 80))
    good("show", "max", "x.npy", "-o", "p.png", "--kernel", "55", "--stride", "2", "--pad", "20")
    good("show", "avg", "x.npy", "-o", "p.svg", "--kernel", "3", "--pad", "1000000", "--stride", "1000000")


def test_shipped_picture(good):
    """The pictures of the examples are what the script draws (looked at in a few rows: it is slow)."""
    import importlib.util
    spec = importlib.util.spec_from_file_location("make_picture", f"{SOURCE}/examples/data/make_picture.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    png = dots(good, pathlib.Path(SOURCE, "examples/data/tarn.png"))
    pgm = pathlib.Path(SOURCE, "examples/data/tarn.pgm").read_bytes()
    grey = np.frombuffer(pgm[-png.shape[0] * png.shape[1]:], np.uint8).reshape(png.shape[:2])
    for row in (30, 90):
        for column in range(0, png.shape[1], 8):
            assert script.pixel(column, row, script.coloured) == png[row, column].tolist()
            assert script.pixel(column, row, script.grey) == [grey[row, column]]
