"""Files that lie. Each is refused with status 1, a sentence and a place, and nothing is written."""

import json
import struct
import zipfile
import zlib

import numpy as np
import pytest

import png_files


def npy(header, data=b"", version=1, length=None):
    text = header.encode()
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size) + text + data


def head(descr="'<f4'", order="False", shape="(4, 4)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


GOOD = b"\0" * 64
NPY = {
    "empty": (b"", "is empty"),
    "one byte": (b"\x93", "is not .npy, .npz, PNG or PNM"),
    "wrong magic": (b"\x93NUMPX" + npy(head(), GOOD)[6:], "is not .npy, .npz, PNG or PNM"),
    "magic only": (b"\x93NUMPY", "ends inside"),
    "version 0": (npy(head(), GOOD, version=0), "version 0.0"),
    "version 9": (npy(head(), GOOD, version=9), "version 9.0"),
    "long header": (npy(head(), GOOD, length=65535), "but the file ends after"),
    "long header, 32 bits": (npy(head(), GOOD, version=2, length=2**32 - 1), "but the file ends after"),
    "short header": (npy(head(), GOOD, length=20), "malformed"),
    "truncated": (npy(head(), GOOD[:-1]), "is truncated: the elements take 64 bytes, but only 63"),
    "no data": (npy(head()), "is truncated"),
    "object": (npy(head("'|O'"), GOOD), "dtype '|O' is not supported"),
    "structured": (npy(head("[('a', '<f4')]"), GOOD), "structured"),
    "complex": (npy(head("'<c8'"), GOOD), "dtype '<c8' is not supported"),
    "string": (npy(head("'<U4'"), GOOD), "dtype '<U4' is not supported"),
    "long double": (npy(head("'<f16'"), GOOD), "dtype '<f16' is not supported"),
    "long dtype": (npy(head("'<f4444444444444444444'"), GOOD), "expected a dtype"),
    "unclosed dtype": (npy(head("'<f4"), GOOD), "dtype '<f4, ' is not supported"),
    "negative size": (npy(head(shape="(-4, 4)"), GOOD), "not negative"),
    "size of 2^63": (npy(head(shape=f"({2**63}, 1)"), GOOD), "at most 63 bits"),
    "size of 2^63-1": (npy(head(shape=f"({2**63 - 1}, 2)"), GOOD), "does not fit 63 bits"),
    "product that wraps": (npy(head(shape=f"({2**32}, {2**32})"), GOOD), "does not fit 63 bits"),
    "product that wraps to 64": (npy(head(shape=f"({2**31}, {2**31}, 4, 4)"), GOOD), "does not fit 63 bits"),
    "bytes that wrap": (npy(head(shape=f"({2**61}, 4)"), GOOD), "does not fit 63 bits"),
    "wrap hidden by a zero": (npy(head(shape=f"({2**40}, {2**40}, 0)"), GOOD), "does not fit 63 bits"),
    "large": (npy(head(shape=f"({2**30}, {2**20})"), GOOD), "is truncated"),
    "65 axes": (npy(head(shape="(" + "1, " * 65 + ")"), GOOD), "at most 64 axes"),
    "no shape": (npy("{'descr': '<f4', 'fortran_order': False, }", GOOD), "once each"),
    "shape twice": (npy("{'shape': (4,), 'shape': (4,)}", GOOD), "once each"),
    "unknown key": (npy("{'colour': 'red'}", GOOD), "once each"),
    "not a tuple": (npy(head(shape="4"), GOOD), "expected a shape"),
    "a float in the shape": (npy(head(shape="(4.0, 4)"), GOOD), "malformed"),
    "expression": (npy(head(shape="__import__('os').system('id')"), GOOD), "expected a shape"),
    "order twice": (npy("{'fortran_order': False, 'fortran_order': False}", GOOD), "once each"),
    "no dtype": (npy("{'fortran_order': False, 'shape': (4,)}", GOOD), "once each"),
    "no order": (npy("{'descr': '<f4', 'shape': (4,)}", GOOD), "once each"),
    "a key without quotes": (npy("{shape: (4,)}", GOOD), "expected a key"),
    "order of 1": (npy(head(order="1"), GOOD), "True or False"),
    "text behind": (npy(head() + "x", GOOD), "nothing behind"),
    "no dictionary": (npy("[]", GOOD), "expected {"),
    "zero bytes": (npy("\0" * 64, GOOD), "expected {"),
}


@pytest.fixture
def refuses(tarn):
    def check(data, expected, name="hostile"):
        (tarn.folder / name).write_bytes(data)
        (tarn.folder / "y.npy").write_bytes(b"old")
        result = tarn("max", name, "-o", "y.npy", "-k2")
        assert result.status == 1 and result.out == "", result.err
        assert expected in result.err and result.err.startswith(f"tarn: {name}: ") and result.err.count("\n") == 1
        assert (tarn.folder / "y.npy").read_bytes() == b"old"
        assert sorted(p.name for p in tarn.folder.iterdir()) == sorted([name, "y.npy"])

    return check


@pytest.mark.parametrize("name", NPY)
def test_npy(refuses, name):
    refuses(*NPY[name])


def archive(tmp_path, compress=False):
    save = np.savez_compressed if compress else np.savez
    save(tmp_path / "good.npz", x=np.zeros((8, 8), "f4"))
    data = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "good.npz").unlink()
    return bytearray(data)


@pytest.mark.parametrize("compress", [False, True])
def test_npz(refuses, tmp_path, compress):
    data = archive(tmp_path, compress)
    end = data.rindex(b"PK\5\6")
    entry = data.rindex(b"PK\1\2")

    def spoil(at, value):
        bad = bytearray(data)
        bad[at:at + len(value)] = value
        return bytes(bad)

    refuses(bytes(data[:-30]), "without an end record")
    refuses(spoil(end + 16, struct.pack("<I", 2**31)), "lies outside the file")
    refuses(spoil(end + 12, struct.pack("<I", 2**31)), "lies outside the file")
    refuses(spoil(end + 10, struct.pack("<H", 9)), "directory of the zip file is damaged")
    refuses(spoil(entry + 42, struct.pack("<I", 12345)), "no zip member begins here")
    refuses(spoil(entry + 42, struct.pack("<I", 2**32 - 2)), "no zip member begins here")
    refuses(spoil(entry + 28, struct.pack("<H", 60000)), "too long")
    refuses(spoil(entry + 10, struct.pack("<H", 12)), "packed by method 12")
    refuses(spoil(entry + 8, struct.pack("<H", 1)), "is encrypted")
    refuses(spoil(entry + 20, struct.pack("<I", 2**31)), "takes 2147483648 bytes")
    if compress:
        refuses(spoil(entry + 24, struct.pack("<I", 2**31)), "cannot have 2147483648 bytes")
        refuses(spoil(entry + 24, struct.pack("<I", 300)), "does not inflate to 300 bytes")
        refuses(spoil(entry + 16, b"\0\0\0\0"), "wrong checksum")
        start = 30 + struct.unpack("<H", data[26:28])[0] + struct.unpack("<H", data[28:30])[0]
        refuses(spoil(start, b"\xff" * 8), "does not inflate")


def test_npz_without_an_end(refuses):
    refuses(b"PK\3\4" + bytes(70000), "without an end record")  # it is looked for in the last 65557 bytes


def test_npz_members_of_one_name(tarn):
    with zipfile.ZipFile(tarn.folder / "x.npz", "w") as z, pytest.warns(UserWarning, match="Duplicate"):
        for _ in range(2):
            z.writestr("x.npy", npy(head(), GOOD))
        z.writestr("xy.npy", npy(head(), GOOD))
    result = tarn("max", "x.npz:x", "-o", "y.npy", "-k2")
    assert (result.status, result.err) == (1, "tarn: x.npz: has more than one member 'x'; it has: x.npy, x.npy, xy.npy\n")
    result = tarn("max", "x.npz:x.n", "-o", "y.npy", "-k2")
    assert result.err == "tarn: x.npz: has no member 'x.n'; it has: x.npy, x.npy, xy.npy\n"


def test_members_of_what_is_no_archive(tarn):
    (tarn.folder / "x.npz").write_bytes(npy(head(), GOOD))
    result = tarn("max", "x.npz:x", "-o", "y.npy", "-k2")
    assert (result.status, result.err) == (1, "tarn: x.npz: byte 0: has no member 'x': it is not an .npz file\n")


def test_npz_members_that_are_not_arrays(refuses, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        z.writestr("readme.txt", "hello, not an array at all")
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").unlink()
    refuses(data, "is not .npy: wrong magic bytes")


def header(columns, rows, bits=8, colour=0, interlace=0):
    return png_files.chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, interlace))


MAGIC = b"\x89PNG\r\n\x1a\n"
BODY = png_files.chunk(b"IDAT", zlib.compress(b"\0" * 20)) + png_files.chunk(b"IEND", b"")
PNG = {
    "magic only": MAGIC,
    "no width": MAGIC + header(0, 4) + BODY,
    "2^31 columns": MAGIC + header(2**31, 4) + BODY,
    "huge": MAGIC + header(2**31 - 1, 2**31 - 1) + BODY,
    "16 million square": MAGIC + header(2**24, 2**24, 16, 6) + BODY,
    "bits of 3": MAGIC + header(4, 4, 3) + BODY,
    "colour of 5": MAGIC + header(4, 4, 8, 5) + BODY,
    "palette missing": MAGIC + header(4, 4, 8, 3) + BODY,
    "no data": MAGIC + header(4, 4),
    "short data": MAGIC + header(4, 400) + BODY,
    "garbage": MAGIC + header(4, 4) + png_files.chunk(b"IDAT", b"\xff" * 40) + BODY[-12:],
    "bad checksum": MAGIC + header(4, 4)[:-1] + b"\0" + BODY,
    "chunk beyond the end": MAGIC + struct.pack(">I", 2**31 - 1) + b"IHDR",
    "interlaced and cut": MAGIC + header(4, 4, interlace=1) + BODY[:10],
}


@pytest.mark.parametrize("name", PNG)
def test_png(refuses, name):
    refuses(PNG[name], "")


PNM = {
    "letters": (b"P5 x 4 255 ", "expected the width"),
    "no height": (b"P5 4", "expected the height"),
    "no pixel": (b"P5 0 4 255 ", "has no pixel"),
    "white of 0": (b"P5 4 4 0 " + b"\0" * 16, "from 1 to 65535"),
    "white of 65536": (b"P5 4 4 65536 " + b"\0" * 32, "from 1 to 65535"),
    "truncated": (b"P5 4 4 255 " + b"\0" * 15, "take 16 bytes, but only 15"),
    "truncated, wide": (b"P6 4 4 1000 " + b"\0" * 95, "take 96 bytes, but only 95"),
    "truncated bits": (b"P4 9 4 " + b"\0" * 7, "take 8 bytes, but only 7"),
    "huge": (b"P5 99999999999 99999999999 255 ", "do not fit"),
    "2^63": (b"P5 9223372036854775808 1 255 ", "at most 63 bits"),
    "wraps": (b"P6 4294967296 4294967296 255 ", "do not fit"),
    "plain, too large": (b"P2 2 1 100 5 101 ", "up to the greatest value"),
    "plain, cut": (b"P2 2 2 100 5 6 7", "expected a pixel"),
    "plain bits": (b"P1 2 2 0 1 2 1", "0 or 1"),
    "no end of header": (b"P7\nWIDTH 4\nHEIGHT 4\n", "ENDHDR"),
    "5 channels": (b"P7\nWIDTH 4\nHEIGHT 4\nDEPTH 5\nMAXVAL 255\nENDHDR\n" + b"\0" * 80, "1 to 4 channels"),
    "no depth": (b"P7\nWIDTH 4\nHEIGHT 4\nMAXVAL 255\nENDHDR\n" + b"\0" * 80, "1 to 4 channels"),
}


@pytest.mark.parametrize("name", PNM)
def test_pnm(refuses, name):
    refuses(*PNM[name])


@pytest.mark.parametrize("temporary", ["missing", "t" * 5000])
def test_no_room_for_decoded_data(tarn, temporary):
    (tarn.folder / "x.png").write_bytes(png_files.encode(np.zeros((60, 60), "u1")))
    result = tarn("max", "x.png", "-o", "y.npy", "-k2", "--memory", "1K", env={"TMPDIR": temporary})
    assert result.status == 1 and "no temporary file for decoded data" in result.err and result.err.count("\n") == 1
    assert sorted(p.name for p in tarn.folder.iterdir()) == ["x.png"]


def test_a_name_that_is_too_long(tarn):
    result = tarn("max", "x" * 5000 + ".npy", "-o", "y.npy", "-k2")
    assert result.status == 1 and "the name has more than 4095 bytes" in result.err


def test_missing_files_and_folders(tarn):
    result = tarn("max", "nowhere.npy", "-o", "y.npy", "-k2")
    assert (result.status, result.err) == (1, "tarn: nowhere.npy: cannot be opened: No such file or directory\n")
    result = tarn("max", ".", "-o", "y.npy", "-k2")
    assert (result.status, result.err) == (1, "tarn: .: cannot be read: Is a directory\n")
    np.save(tarn.folder / "x.npy", np.zeros((4, 4)))
    result = tarn("max", "x.npy", "-o", "no/y.npy", "-k2")
    assert (result.status, result.err) == (1, "tarn: no/y.npy: cannot be written: No such file or directory\n")


def test_names_cannot_write_to_the_terminal(tarn):
    result = tarn("max", "a\n\033[31mb.npy", "-o", "y.npy", "-k2")
    assert result.err == "tarn: a\\x0a\\x1b[31mb.npy: cannot be opened: No such file or directory\n"


# Names of members: all the letters that one may have, the least and the greatest of each length; then what is none.
CHARACTERS = ["é ü", "\u00a0\u07ff", "\u0800\uffff", "\U00010000\U0010ffff", '"\\']  # the least and the greatest of each length
NO_CHARACTERS = [b"\x7f", b"\xc2\x9b31m", b"\x9b31m", b"\xc0\xaf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf",
                 b"\xf4\x90\x80\x80", b"\xf8\x90\x80\x80", b"\xe2\x82", b"\xff"]


def by_bytes(name, strange):
    return "".join(chr(byte) if 0x20 <= byte < 0x7f else strange(byte) for byte in name)


@pytest.mark.parametrize("name, said, in_json", [(name.encode(), name, name) for name in CHARACTERS] + [
    (name, by_bytes(name, "\\x{:02x}".format), by_bytes(name, lambda byte: "\x7f" if byte == 0x7f else "\ufffd"))
    for name in NO_CHARACTERS])
def test_names_in_files_are_told_as_text(tarn, name, said, in_json):
    with zipfile.ZipFile(tarn.folder / "x.npz", "w") as z:
        for letter in "x", "y":
            z.writestr(letter * len(name), npy(head(), GOOD))
    data = (tarn.folder / "x.npz").read_bytes()
    (tarn.folder / "x.npz").write_bytes(data.replace(b"x" * len(name), name))
    result = tarn("max", "x.npz:none", "-o", "y.npy", "-k2")
    assert result.err == f"tarn: x.npz: has no member 'none'; it has: {said}, {'y' * len(name)}\n"
    result = tarn("max", "x.npz:none", "-o", "y.npy", "-k2", "--json")
    assert json.loads(result.err)["error"] == f"has no member 'none'; it has: {in_json}, {'y' * len(name)}"
