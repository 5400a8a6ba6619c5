"""tarn graph: values and derivatives against NumPy, checks that can fail, errors with their place."""

import json
import pathlib

import numpy as np
import pytest

import brute_force as bf
from conftest import SOURCE

GRAPHS = pathlib.Path(SOURCE, "examples", "graphs")

DIAMOND = """# two branches of one input, and a second input
x = input f64 2x6x6
w = input f64 2x3x3
a = max x kernel=2
b = avg x kernel=2
half = scale b factor=0.5
sum = add a half
y = add sum w
return y a
"""


@pytest.fixture
def diamond(good):
    rng = np.random.default_rng(7)
    (good.folder / "d.graph").write_text(DIAMOND)
    tensors = {}
    for name, shape in {"x": (2, 6, 6), "dx": (2, 6, 6), "w": (2, 3, 3), "dw": (2, 3, 3),
                        "gy": (2, 3, 3), "ga": (2, 3, 3)}.items():
        tensors[name] = rng.integers(-8, 9, shape).astype("f8")
        np.save(good.folder / f"{name}.npy", tensors[name])
    return tensors


def pool(op):
    return bf.Pool(op, [bf.sliding(6, 2, 2, 0, 0, 1, False)] * 2)


def loaded(good, name):
    return np.load(good.folder / name)


def test_run(good, diamond):
    good("graph", "run", "d.graph", "--input", "x=x.npy", "-i", "w=w.npy", "-o", "y=y.npy", "-o", "a=a.npy")
    a, b = pool("max").forward(diamond["x"]), pool("avg").forward(diamond["x"])
    assert np.array_equal(loaded(good, "a.npy"), a)
    assert np.array_equal(loaded(good, "y.npy"), a + b / 2 + diamond["w"])


def test_jvp(good, diamond):
    words = ["graph", "jvp", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "--tangent", "x=dx.npy"]
    good(*words, "-o", "y=dy.npy", "--values", "y=y.npy")
    x, dx = diamond["x"], diamond["dx"]
    dy = pool("max").jvp(x, dx) + pool("avg").jvp(x, dx) / 2
    assert np.array_equal(loaded(good, "dy.npy"), dy)
    good("graph", "run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "y=value.npy")
    assert np.array_equal(loaded(good, "y.npy"), loaded(good, "value.npy"))
    good(*words, "--tangent", "w=dw.npy", "-o", "y=dy.npy")
    assert np.array_equal(loaded(good, "dy.npy"), dy + diamond["dw"])


def test_vjp(good, diamond):
    words = ["graph", "vjp", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "x=gx.npy"]
    good(*words, "-o", "w=gw.npy", "--cotangent", "y=gy.npy", "--cotangent", "a=ga.npy")
    x, gy, ga = diamond["x"], diamond["gy"], diamond["ga"]
    assert np.array_equal(loaded(good, "gx.npy"), pool("max").vjp(x, gy + ga) + pool("avg").vjp(x, gy / 2))
    assert np.array_equal(loaded(good, "gw.npy"), gy)
    good(*words)  # without cotangents: ones for both outputs
    ones = np.ones_like(gy)
    assert np.array_equal(loaded(good, "gx.npy"), pool("max").vjp(x, 2 * ones) + pool("avg").vjp(x, ones / 2))


def test_threads_and_families_do_not_matter(good, diamond):
    words = ["graph", "vjp", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "--cotangent", "y=gy.npy"]
    good(*words, "-o", "x=a.npy", "--threads", 3)
    good(*words, "-o", "x=b.npy", "--threads", 1, "--isa", "spec")
    assert (good.folder / "a.npy").read_bytes() == (good.folder / "b.npy").read_bytes()


def test_memory_is_reported(good):
    np.save(good.folder / "x.npy", np.zeros((120, 160), "f4"))
    words = ["graph", "run", GRAPHS / "motion.graph", "--input", "x.npy", "-o", "dx.npy"]
    assert good(*words).out == ("5 values, 5 steps; memory besides inputs and outputs: 154112 bytes, "
                                "230912 without reuse\n")
    assert good(*words[:-2]).out == good(*words).out + "nothing was written: say -o NAME=FILE\n"
    assert good(*words[:-2], "--quiet").out == ""
    said = json.loads(good(*words, "--json").out)
    assert said["peak_bytes"] == 154112 and said["bytes_without_reuse"] == 230912
    assert good(*words, "--quiet").out == ""


def test_pictures_come_in(good):
    picture = np.arange(24, dtype="u1").reshape(4, 6)
    (good.folder / "x.pgm").write_bytes(b"P5 6 4 255\n" + picture.tobytes())
    (good.folder / "g.graph").write_text("x = input u8 4x6\ny = max x kernel=2\nreturn y\n")
    good("graph", "run", "g.graph", "-i", "x.pgm", "-o", "y.npy")
    assert np.array_equal(loaded(good, "y.npy"), picture[1::2, 1::2])


def test_standard_output(good):
    np.save(good.folder / "x.npy", np.ones((2, 256, 7, 7), "f4"))
    good("graph", "run", GRAPHS / "head.graph", "-i", "x.npy", "-o", "y.npy", "--quiet")
    out = good("graph", "run", GRAPHS / "head.graph", "-i", "x.npy", "-o", "-", "--quiet", text=False).out
    assert out == (good.folder / "y.npy").read_bytes()


@pytest.mark.parametrize("name", ["head", "pyramid", "motion"])
def test_examples_check(good, name):
    out = good("graph", "check", GRAPHS / f"{name}.graph").out
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "ok      adjoint identity", "ok      finite differences", "ok      specification"]


SMALL_SPP = """x = input {dtype} 1x3x9x8
a = max x kernel=3,3 stride=1 pad=1
b = max {b}
y = concat x a b axis=1
return y
"""


def test_same_as(tarn):
    (tarn.folder / "spp.graph").write_text(SMALL_SPP.format(dtype="f32", b="x kernel=5,5 stride=1 pad=2"))
    (tarn.folder / "sppf.graph").write_text(SMALL_SPP.format(dtype="f32", b="a kernel=3,3 stride=1 pad=1"))
    (tarn.folder / "other.graph").write_text(SMALL_SPP.format(dtype="f32", b="a kernel=5,5 stride=1 pad=2"))
    (tarn.folder / "f64.graph").write_text(SMALL_SPP.format(dtype="f64", b="a kernel=5,5 stride=1 pad=2"))
    result = tarn("graph", "check", "spp.graph", "--same-as", "sppf.graph")
    assert result.status == 0 and "ok      same as: sppf.graph" in result.out
    result = tarn("graph", "check", "spp.graph", "--same-as", "other.graph")
    assert result.status == 1 and "FAILED  same as: other.graph: 3 of its" in result.out
    assert result.err == "tarn: 1 of the checks failed\n"
    result = tarn("graph", "check", "spp.graph", "--same-as", "f64.graph")
    assert result.status == 1 and "cannot be compared" in result.err


def test_check_as_json(good):
    lines = good("graph", "check", GRAPHS / "head.graph", "--json").out.splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [True] * 3


def test_checks_of_narrow_and_whole_numbers(good):
    (good.folder / "g.graph").write_text(
        "x = input f16 4x4\nk = input i32 4x4\na = max x kernel=2\nb = max k kernel=2\nreturn a b\n")
    out = good("graph", "check", "g.graph").out
    assert "skipped finite differences: a type narrower than f32" in out and out.count("ok      ") == 2


@pytest.mark.parametrize("text, fill, skipped", [
    ("x = input f64 0x8x8\na = max x kernel=2\nreturn a\n", None,
     ["adjoint identity", "finite differences", "specification"]),
    ("x = input i32 8x8\na = max x kernel=2\nreturn a\n", None, ["adjoint identity", "finite differences"]),
    ("x = input f64 8x8\na = max x kernel=2\nreturn a\n", np.inf, ["finite differences"]),
    ("x = input f64 8x8\na = max x kernel=2\nreturn a\n", 0, ["finite differences"]),
    ("x = input f64 8x8\na = max x kernel=2\nb = scale a factor=1e-9\nreturn b\n", None, ["finite differences"]),
])
def test_checks_without_anything_to_compare_are_skipped(good, text, fill, skipped):
    (good.folder / "g.graph").write_text(text)
    np.save(good.folder / "x.npy", np.full((8, 8), fill or 0, "f8"))
    given = [] if fill is None else ["-i", "x.npy"]
    lines = [json.loads(line) for line in good("graph", "check", "g.graph", *given, "--json").out.splitlines()]
    assert len(lines) == 3
    assert [line["check"] for line in lines if line["ok"] is None] == skipped
    assert all(line["ok"] is True for line in lines if line["check"] not in skipped)


def test_differences_mostly_at_kinks_are_skipped(good):
    (good.folder / "g.graph").write_text("x = input f64 8x8\na = max x kernel=2\nreturn a\n")
    x = np.zeros((8, 8))
    x[:2, :2] = np.arange(4).reshape(2, 2)  # one window of sixteen without a tie
    np.save(good.folder / "x.npy", x)
    out = good("graph", "check", "g.graph", "-i", "x.npy").out
    assert "\nskipped finite differences: 16 numbers, 1" in out


def test_dot(good):
    for words in ([], ["--pass", "vjp"]):
        out = good("graph", "dot", GRAPHS / "spp.graph", *words).out
        assert out.startswith("digraph") and out.rstrip().endswith("}") and "concat" in out
    good("graph", "dot", GRAPHS / "spp.graph", "-o", "spp.dot")
    assert (good.folder / "spp.dot").read_text() == good("graph", "dot", GRAPHS / "spp.graph").out


@pytest.mark.parametrize("text, place", [
    ("x = input f32 4x4\ny = max x kernel=5\nreturn y\n", "line 2, column 5: kernel 5 does not fit axis 0"),
    ("x = input f32 4x4\ny = max z kernel=2\nreturn y\n", "line 2, column 9"),
    ("x = custom f x f32 4\n", "line 1, column"),
    ("", "line 1, column 1"),
])
def test_errors_name_their_place(tarn, text, place):
    (tarn.folder / "bad.graph").write_text(text)
    result = tarn("graph", "run", "bad.graph")
    assert result.status == 1 and result.err.startswith("tarn: bad.graph: " + place)


@pytest.mark.parametrize("words, status, said", [
    (["run"], 2, "say tarn graph run|jvp|vjp|check|dot FILE.graph"),
    (["walk", "d.graph"], 2, "say tarn graph"),
    (["run", "none.graph"], 1, "none.graph"),
    (["run", "d.graph"], 2, "--input: is missing: say --input x=FILE"),
    (["run", "d.graph", "-i", "x.npy"], 2, "say NAME=FILE"),
    (["run", "d.graph", "-i", "z=x.npy"], 2, "--input: 'z' is no input of the graph"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "x=x.npy"], 2, "names x twice"),
    (["run", "d.graph", "-i", "x=w.npy"], 2, "w.npy: is 2x3x3, but x is 2x6x6 in the graph"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "y=y.png"], 2, "pictures hold u8 and u16, not f64: write .npy"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "a=a.npy", "-o", "y=y.gif"], 2, "'y.gif' has no extension"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "y=x.npy"], 2,
     "--output: 'x.npy' is read, too: say --in-place to replace it"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "y=d.graph"], 2, "'d.graph' is read, too"),
    (["vjp", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "x=x.png"], 2, "which a derivative is not"),
    (["run", "d.graph", "--layout", "middle"], 2, "--layout: 'middle' is not first|last"),
    (["check", "d.graph", "--text"], 2, "--text: does not go with 'tarn graph check'"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "x=y.npy"], 2, "'x' is no output"),
    (["jvp", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "y=y.npy"], 2, "--tangent: is missing"),
    (["run", "d.graph", "--cotangent", "y=gy.npy"], 2, "does not go with 'tarn graph run'"),
    (["run", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "-o", "y=y.npy", "-o", "a=./y.npy"], 2,
     "--output: './y.npy' is the same file as 'y.npy': one would be lost"),
    (["jvp", "d.graph", "-i", "x=x.npy", "-i", "w=w.npy", "--tangent", "x=dx.npy", "-o", "y=y.npy", "--values",
      "y=y.npy"], 2, "--values: 'y.npy' is the same file as 'y.npy'"),
    (["dot", "d.graph", "--input", "x=x.npy"], 2, "does not go with 'tarn graph dot'"),
    (["dot", "d.graph", "--pass", "walk"], 2, "'walk' is not run|jvp|vjp"),
])
def test_refusals(tarn, diamond, words, status, said):
    result = tarn("graph", *words)
    assert result.status == status and said in result.err and result.err.count("\n") == 1
    assert not (tarn.folder / "y.npy").exists()
