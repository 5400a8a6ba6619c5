"""Kinds of files in and out: .npy, .npz, PNG, PNM, pipes."""

import io
import os
import struct
import subprocess
import zipfile

import numpy as np
import pytest

import png_files
from conftest import PROGRAM

KERNEL = ["-k2"]


def pooled(x):
    """Max over 2x2, stride 2, on the first two axes of a picture (rows x columns [x channels])."""
    rows, columns = x.shape[0] // 2, x.shape[1] // 2
    blocks = x[: rows * 2, : columns * 2].reshape(rows, 2, columns, 2, *x.shape[2:])
    return blocks.max(axis=(1, 3))


def pixels(shape, dtype, seed=0, most=None):
    most = most or np.iinfo(dtype).max
    return np.random.default_rng(seed).integers(0, most + 1, shape).astype(dtype)


def npy_bytes(array, version):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=version)
    return buffer.getvalue()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4", "<f2", ">f2", "i1", "u1", "<i2", ">i2", "<u2", ">u2",
                                   "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(good, version, dtype, order):
    x = np.asarray(np.random.default_rng(1).integers(0, 2 if dtype == "?" else 100, (3, 6, 8)), dtype, order=order)
    (good.folder / "x.npy").write_bytes(npy_bytes(x, version))
    good("max", "x.npy", "-o", "y.npy", *KERNEL)
    y = np.load(good.folder / "y.npy")
    assert y.dtype == (np.uint8 if dtype == "?" else np.dtype(dtype).newbyteorder("="))
    assert np.array_equal(y, np.moveaxis(pooled(np.moveaxis(x.astype(float), 0, 2)), 2, 0))


def test_output_is_what_numpy_writes(good):
    x = np.arange(24, dtype="f4").reshape(4, 6)
    np.save(good.folder / "x.npy", x)
    good("max", "x.npy", "-o", "y.npy", *KERNEL)
    buffer = io.BytesIO()
    np.save(buffer, pooled(x))
    assert (good.folder / "y.npy").read_bytes() == buffer.getvalue()


def test_bfloat16_travels_as_two_opaque_bytes(good):
    patterns = np.array([[0x3F80, 0x4000], [0xBF80, 0x40A0]], "<u2")  # 1, 2, -1, 5
    np.save(good.folder / "x.npy", patterns.view("V2"))
    good("max", "x.npy", "-o", "y.npy", *KERNEL)
    y = np.load(good.folder / "y.npy")
    assert y.dtype == np.dtype("V2") and y.view("<u2").tolist() == [[0x40A0]]
    good("avg", "x.npy", "-o", "z.npy", "--dtype", "f32", *KERNEL)
    assert np.load(good.folder / "z.npy").tolist() == [[1.75]]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(good, tarn, save):
    a, b = pixels((6, 6), "u1"), pixels((8, 8), "u2")
    save(good.folder / "one.npz", a=a)
    save(good.folder / "two.npz", a=a, b=b)
    good("max", "one.npz", "-o", "y.npy", *KERNEL)
    assert np.array_equal(np.load(good.folder / "y.npy"), pooled(a))
    for name in "b", "b.npy":
        good("max", f"two.npz:{name}", "-o", "y.npy", *KERNEL)
        assert np.array_equal(np.load(good.folder / "y.npy"), pooled(b))
    result = tarn("max", "two.npz", "-o", "y.npy", *KERNEL)
    assert (result.status, result.err) == (
        1, "tarn: two.npz: has 2 members, so say which, as in FILE.npz:NAME; it has: a.npy, b.npy\n")
    result = tarn("max", "two.npz:c", "-o", "y.npy", *KERNEL)
    assert result.err == "tarn: two.npz: has no member 'c'; it has: a.npy, b.npy\n"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_of_64_bits(good, tarn, save, monkeypatch):
    """Records that archives beyond 4 GiB have, and damages to them."""
    x = pixels((6, 6), "u1")
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", -1)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 0)
    save(good.folder / "x.npz", x=x)
    good("max", "x.npz", "-o", "y.npy", *KERNEL)
    assert np.array_equal(np.load(good.folder / "y.npy"), pooled(x))
    data = (good.folder / "x.npz").read_bytes()
    entry, locator = data.rindex(b"PK\1\2"), data.rindex(b"PK\6\7")
    extra = entry + 46 + len("x.npy")  # number of the field, its length, sizes
    assert data[extra:extra + 2] == b"\1\0" and data[locator - 56:locator - 52] == b"PK\6\6"
    for at, value, sentence in [(locator + 8, b"\xff" * 8, ""),  # no 64-bit record there; the other one will do
                                (locator + 8, b"\1", ""),
                                (locator - 56 + 48, b"\xff" * 8, "lies outside the file"),
                                (extra + 2, b"\xff\xff", "sizes of 'x.npy' in the zip file are damaged"),
                                (extra + 2, b"\7\0", "sizes of 'x.npy' in the zip file are damaged"),
                                (extra, b"\2", "no zip member begins here")]:
        (good.folder / "bad.npz").write_bytes(data[:at] + value + data[at + len(value):])
        result = tarn("max", "bad.npz", "-o", "y.npy", *KERNEL)
        assert result.status == (sentence != "") and sentence in result.err, result.err


def test_npz_member_that_is_not_aligned(good):
    x = np.random.default_rng(0).standard_normal((6, 6))
    for length in range(1, 9):  # every alignment of the elements
        with zipfile.ZipFile(good.folder / "x.npz", "w") as archive:
            archive.writestr("n" * length + ".npy", npy_bytes(x, (1, 0)))
        good("max", "x.npz", "-o", "y.npy", *KERNEL)
        assert np.array_equal(np.load(good.folder / "y.npy"), pooled(x))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_large_npz(good, save):
    """Members are read in pieces of 32 MiB."""
    x = np.zeros((40, 1 << 20), "u1")
    x[33, 77] = 5
    save(good.folder / "x.npz", x=x)
    good("max", "x.npz", "-o", "y.npy", "-k40,1048576")
    assert np.load(good.folder / "y.npy").tolist() == [[5]]


def test_headers_of_other_writers(good):
    """Other quotes than NumPy's, and a byte order that bytes do not have."""
    text = '{"descr": ">u1", "shape": (2, 2), "fortran_order": False}'
    (good.folder / "x.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + bytes([1, 2, 3, 4]))
    good("max", "x.npy", "-o", "y.npy", "-k2")
    assert np.load(good.folder / "y.npy").tolist() == [[4]]


@pytest.mark.parametrize("shape, name, layout, said", [
    ((4, 4), "y.pbm", "first", "does not hold 1 channel up to 255: write .pgm or .png"),
    ((4, 4), "y.ppm", "first", "does not hold 1 channel up to 255: write .pgm or .png"),
    ((4, 4, 2), "y.pnm", "last", "does not hold 2 channels up to 255: write .pam or .png"),
    ((3, 4, 4), "y.pgm", "first", "does not hold 3 channels up to 255: write .ppm or .png"),
    ((2, 2, 4, 4), "y.pam", "first", "a picture has two spatial axes and 1 to 4 channels"),
    ((2, 4, 4, 2), "y.png", "last", "a picture has two spatial axes and 1 to 4 channels")])
def test_pictures_that_cannot_be_are_refused_before_the_work(tarn, shape, name, layout, said):
    np.save(tarn.folder / "x.npy", np.zeros(shape, "u1"))
    result = tarn("max", "x.npy", "-k2", "--layout", layout, "--indices", "i.npy", "-o", name, "--json")
    assert result.status == 2 and said in result.out + result.err
    assert [p.name for p in tarn.folder.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("channels", [(), (2,), (3,), (4,)])
def test_png_keeps_type_and_colour(good, dtype, channels):
    x = pixels((7, 9) + channels, dtype)
    (good.folder / "x.png").write_bytes(png_files.encode(x))
    good("max", "x.png", "-o", "y.png", *KERNEL)
    y = png_files.decode((good.folder / "y.png").read_bytes())
    assert y.dtype.itemsize == x.dtype.itemsize and np.array_equal(y, pooled(x))
    good("max", "x.png", "-o", "y.npy", *KERNEL)
    assert np.array_equal(np.load(good.folder / "y.npy"), pooled(x))


def test_png_palettes_and_few_bits(good):
    colours = pixels((4, 3), "u1")
    x = pixels((6, 6), "u1", most=3)
    (good.folder / "x.png").write_bytes(png_files.encode(x, palette=colours))
    good("max", "x.png", "-o", "y.png", *KERNEL)
    assert np.array_equal(png_files.decode((good.folder / "y.png").read_bytes()), pooled(colours[x]))
    for bits in 1, 2, 4:
        x = pixels((6, 7), "u1", most=2**bits - 1)
        (good.folder / "x.png").write_bytes(png_files.encode(x, bits=bits))
        good("max", "x.png", "-o", "y.png", *KERNEL)
        scale = 255 // (2**bits - 1)
        assert np.array_equal(png_files.decode((good.folder / "y.png").read_bytes()), pooled(x) * scale)


@pytest.mark.parametrize("dtype, most", [("u1", 255), ("u1", 100), ("u2", 65535), ("u2", 1000)])
@pytest.mark.parametrize("number, channels", [(2, ()), (3, (3,)), (5, ()), (6, (3,)), (7, ()), (7, (2,)), (7, (4,))])
def test_pnm(good, dtype, most, number, channels):
    x = pixels((6, 8) + channels, dtype, most=most)
    size = f"{x.shape[1]} {x.shape[0]}"
    header = f"P{number}\n# a comment\n{size}\n{most}\n"
    if number == 7:
        depth = channels[0] if channels else 1
        header = f"P7\nWIDTH 8\nHEIGHT 6\nDEPTH {depth}\nMAXVAL {most}\nTUPLTYPE any\nENDHDR\n"
    body = " ".join(map(str, x.ravel())).encode() if number < 4 else x.astype(np.dtype(dtype).newbyteorder(">")).tobytes()
    (good.folder / "x.pnm").write_bytes(header.encode() + body)
    extension = "pam" if number == 7 else "pnm"
    good("max", "x.pnm", "-o", "y." + extension, *KERNEL)
    expected = pooled(x).astype(np.dtype(dtype).newbyteorder(">"))
    written = (good.folder / ("y." + extension)).read_bytes()
    if number == 7:
        kind = {1: "GRAYSCALE", 2: "GRAYSCALE_ALPHA", 4: "RGB_ALPHA"}[depth]
        header = f"P7\nWIDTH 4\nHEIGHT 3\nDEPTH {depth}\nMAXVAL {most}\nTUPLTYPE {kind}\nENDHDR\n"
    else:
        header = f"P{6 if channels else 5}\n4 3\n{most}\n"
    assert written == header.encode() + expected.tobytes()


def test_bitmaps(good):
    x = pixels((6, 10), "u1", most=1)
    (good.folder / "x.pbm").write_bytes(b"P4 10 6\n" + np.packbits(1 - x, axis=1).tobytes())
    (good.folder / "plain.pbm").write_text("P1\n10 6\n" + "\n".join("".join(map(str, row)) for row in 1 - x))
    for name in "x.pbm", "plain.pbm":
        good("max", name, "-o", "y.pbm", *KERNEL)
        expected = b"P4\n5 3\n" + np.packbits(1 - pooled(x), axis=1).tobytes()
        assert (good.folder / "y.pbm").read_bytes() == expected
        good("max", name, "-o", "y.png", *KERNEL)  # white is all bits set there
        assert np.array_equal(png_files.decode((good.folder / "y.png").read_bytes()), pooled(x) * 255)


@pytest.mark.parametrize("operator", [["smooth", "--beta", "4"], ["lp", "--power", "3"]])
def test_floating_operators_keep_the_type_of_pictures(good, operator):
    x = pixels((6, 6), "u1")
    (good.folder / "x.png").write_bytes(png_files.encode(x))
    good(*operator, "x.png", "-o", "y.png", *KERNEL)
    good(*operator, "x.png", "-o", "y.npy", *KERNEL)
    y = np.load(good.folder / "y.npy")
    assert y.dtype == np.float32
    rounded = np.minimum(np.rint(y.astype(float)), 255)
    assert np.array_equal(png_files.decode((good.folder / "y.png").read_bytes()), rounded)


def test_derivatives_of_a_colour_picture_are_channels_last(good):
    x = pixels((6, 6, 3), "u1")
    (good.folder / "x.png").write_bytes(png_files.encode(x))
    np.save(good.folder / "gy.npy", np.ones((3, 3, 3), "f4"))
    good("max", "x.png", "--vjp", "gy.npy", "-o", "gx.npy", *KERNEL)
    gx = np.load(good.folder / "gx.npy")
    assert gx.shape == (6, 6, 3) and gx.dtype == np.float32 and gx.sum() == 27
    winners = gx.reshape(3, 2, 3, 2, 3).sum(axis=(1, 3))
    assert np.array_equal(winners, np.ones((3, 3, 3)))
    assert np.array_equal((gx * x).reshape(3, 2, 3, 2, 3).sum(axis=(1, 3)), pooled(x))


def test_array_to_picture_and_layouts(good):
    x = pixels((3, 6, 8), "u1")
    np.save(good.folder / "x.npy", x)
    good("max", "x.npy", "-o", "y.png", *KERNEL)
    expected = pooled(np.moveaxis(x, 0, 2))
    assert np.array_equal(png_files.decode((good.folder / "y.png").read_bytes()), expected)
    np.save(good.folder / "last.npy", np.moveaxis(x, 0, 2))
    good("max", "last.npy", "-o", "y.npy", "--layout", "last", *KERNEL)
    assert np.array_equal(np.load(good.folder / "y.npy"), expected)


def test_pipes(good):
    x = pixels((8, 6), "u2")
    buffer = io.BytesIO()
    np.save(buffer, x)
    result = good("max", "-", "-o", "-", *KERNEL, stdin=buffer.getvalue(), text=False)
    assert np.array_equal(np.load(io.BytesIO(result.out)), pooled(x))
    # A stream beyond the memory allowed goes through a temporary file.
    x = pixels((512, 512), "u1")
    buffer = io.BytesIO()
    np.save(buffer, x)
    result = good("max", "-", "-o", "-", "--memory", "64K", *KERNEL, stdin=buffer.getvalue(), text=False)
    assert np.array_equal(np.load(io.BytesIO(result.out)), pooled(x))


def test_streams_without_an_extension(good):
    np.save(good.folder / "x.npy", pixels((6, 6), "u1"))
    good("max", "x.npy", "-o", "y.npy", *KERNEL)
    expected = (good.folder / "y.npy").read_bytes()
    assert good("max", "x.npy", "-o", "/dev/stdout", *KERNEL, text=False).out == expected
    good("max", "x.npy", "-o", "/dev/null", *KERNEL)
    os.mkfifo(good.folder / "pipe")
    with subprocess.Popen(["cat", good.folder / "pipe"], stdout=subprocess.PIPE) as reader:
        good("max", "x.npy", "-o", "pipe", *KERNEL)
        assert reader.stdout.read() == expected
    assert good("show", "max", "x.npy", "-o", "/dev/stdout", *KERNEL, text=False).out.startswith(b"\x89PNG")


def test_standard_output_that_is_a_file_is_not_replaced(good):
    np.save(good.folder / "x.npy", pixels((6, 6), "u1"))
    out = good.folder / "out"
    with open(out, "wb") as file:
        file.write(b"before")
        file.flush()
        subprocess.run([PROGRAM, "max", "x.npy", "-o", "/dev/stdout", *KERNEL], cwd=good.folder, stdout=file, check=True)
    good("max", "x.npy", "-o", "y.npy", *KERNEL)
    assert out.read_bytes() == b"before" + (good.folder / "y.npy").read_bytes()


@pytest.mark.parametrize("words", [["-o", "x.npy", "--in-place"], ["--in-place"], ["-o", "link.npy", "--in-place"]])
def test_a_file_is_replaced_when_asked_for(good, words):
    x = pixels((8, 8), "u1")
    np.save(good.folder / "x.npy", x)
    (good.folder / "link.npy").symlink_to("x.npy")
    good("max", "x.npy", *words, *KERNEL)
    assert np.array_equal(np.load(good.folder / "x.npy"), pooled(x))


@pytest.mark.parametrize("words, blamed", [
    (["max", "x.npy", "-o", "x.npy"], "--output: 'x.npy'"), (["max", "x.npy", "-o", "./x.npy"], "--output: './x.npy'"),
    (["max", "x.npy", "-o", "link.npy"], "--output: 'link.npy'"), (["max", "x.npy", "-o", "hard.npy"], "--output: 'hard.npy'"),
    (["max", "x.npy", "-o", "y.npy", "--indices", "x.npy"], "--indices: 'x.npy'"),
    (["max", "x.npy", "--vjp", "gy.npy", "-o", "gy.npy"], "--output: 'gy.npy'"),
    (["max", "x.npy", "--jvp", "gy.npy", "-o", "gy.npy"], "--output: 'gy.npy'")])
def test_a_file_that_is_read_is_not_replaced_unasked(tarn, words, blamed):
    np.save(tarn.folder / "x.npy", pixels((8, 8), "u1"))
    np.save(tarn.folder / "gy.npy", pixels((4, 4), "u1"))
    (tarn.folder / "link.npy").symlink_to("x.npy")
    os.link(tarn.folder / "x.npy", tarn.folder / "hard.npy")
    before = {p.name: p.read_bytes() for p in tarn.folder.iterdir()}
    result = tarn(*words, *KERNEL)
    assert (result.status, result.err) == (2, f"tarn: {blamed} is read, too: say --in-place to replace it\n")
    assert {p.name: p.read_bytes() for p in tarn.folder.iterdir()} == before


def test_show_does_not_draw_over_its_input(tarn):
    (tarn.folder / "x.pgm").write_bytes(b"P5 4 4 255 " + bytes(16))
    (tarn.folder / "x.ppm").write_bytes(b"P6 2 2 255 " + bytes(12))
    result = tarn("show", "max", "x.ppm", "-o", "x.ppm", "-k2")
    assert (result.status, result.err) == (2, "tarn: --output: 'x.ppm' is read, too: name another file\n")


@pytest.mark.parametrize("first, second", [
    ("s.npy", "s.npy"), ("s.npy", "./s.npy"), ("old.npy", "link.npy"), ("hard.npy", "old.npy"), ("-", "-")])
def test_two_results_for_one_file_are_refused(tarn, first, second):
    np.save(tarn.folder / "x.npy", pixels((4, 4), "u2"))
    (tarn.folder / "old.npy").write_bytes(b"old")
    (tarn.folder / "link.npy").symlink_to("old.npy")
    os.link(tarn.folder / "old.npy", tarn.folder / "hard.npy")
    result = tarn("max", "x.npy", "-k2", "-o", first, "--indices", second)
    assert (result.status, result.out, result.err) == (
        2, "", "tarn: --indices: is the same file as --output: one would be lost\n")
    assert (tarn.folder / "old.npy").read_bytes() == b"old" and not (tarn.folder / "s.npy").exists()


def test_links_are_followed_and_permissions_kept(good):
    np.save(good.folder / "x.npy", pixels((4, 4), "u1"))
    (good.folder / "real.npy").write_bytes(b"old")
    (good.folder / "real.npy").chmod(0o640)
    (good.folder / "link.npy").symlink_to("real.npy")
    good("max", "x.npy", "-o", "link.npy", *KERNEL)
    assert (good.folder / "link.npy").is_symlink()
    assert (good.folder / "real.npy").stat().st_mode & 0o777 == 0o640
    assert np.load(good.folder / "real.npy").shape == (2, 2)


@pytest.mark.parametrize("source, target, numbers, expected", [
    ("f8", "u1", [-5, 0.5, 1.5, 2.5, 300, np.nan, np.inf, 254.5], [0, 0, 2, 2, 255, 0, 255, 254]),
    ("f8", "i8", [-1e300, 1e300, -0.5, 9007199254740993.0], [-(2**63), 2**63 - 1, 0, 9007199254740992]),
    ("u8", "f4", [2**64 - 1, 2**24 + 1, 2**60 + 2**36 + 1], [2.0**64, 2.0**24, 2.0**60 + 2.0**37]),
    ("i8", "i1", [-1000, 1000, 7], [-128, 127, 7]),
    ("i8", "f4", [-(2**60 + 2**36 + 1), -(2**60) - 3, 2**60 + 3, 2**63 - 1], [-(2.0**60 + 2.0**37), -(2.0**60),
     2.0**60, 2.0**63]),
    ("f8", "f2", [65519.0, 65520.0, 2.0**-25, 1 + 2.0**-11], [65504, np.inf, 0, 1]),
    ("i8", "f8", [2**53 + 1, -(2**63)], [2.0**53, -(2.0**63)]),
])
def test_conversion(good, source, target, numbers, expected):
    names = {"u1": "u8", "i1": "i8", "i8": "i64", "f4": "f32", "f2": "f16", "f8": "f64"}
    np.save(good.folder / "x.npy", np.array(numbers, source))
    good("max", "x.npy", "-o", "y.npy", "--dtype", names[target], "-k1")
    y = np.load(good.folder / "y.npy")
    assert y.dtype == np.dtype(target) and y.tolist() == expected


def test_empty_arrays(good):
    np.save(good.folder / "x.npy", np.zeros((0, 4, 4), "f4"))
    good("max", "x.npy", "-o", "y.npy", *KERNEL)
    assert np.load(good.folder / "y.npy").shape == (0, 2, 2)
