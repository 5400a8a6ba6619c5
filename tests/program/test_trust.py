"""What once went wrong: results lost at the end, memory without bound, damaged bytes taken for good, inputs that shrink."""

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest

import png_files
from conftest import PROGRAM, SANITIZED


@pytest.fixture
def x(tmp_path):
    x = np.arange(16, dtype="f4").reshape(4, 4)
    np.save(tmp_path / "x.npy", x)
    return x


def names_in(folder):
    return sorted(p.name for p in folder.iterdir())


# ---- Outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [248, 249, 250, 254, 255])
def test_long_names(good, x, length):
    name = "y" * (length - 4) + ".npy"
    good("max", "x.npy", "-k2", "-o", name)
    assert np.load(good.folder / name).shape == (2, 2)
    (good.folder / name).write_bytes(b"old")
    good("max", "x.npy", "-k2", "-o", name)
    assert np.load(good.folder / name).shape == (2, 2)
    assert names_in(good.folder) == ["x.npy", name]


@pytest.mark.parametrize("name", ["y" * 252 + ".npy", "missing/y.npy", "x.npy/y.npy", "loop.npy", "y" * 5000, "", "y/", "folder",
                                  "socket", "long.npy"])
def test_names_that_cannot_be_are_refused_before_the_work(tarn, x, name, monkeypatch):
    os.symlink("loop.npy", tarn.folder / "loop.npy")
    os.mkdir(tarn.folder / "folder")
    deep = "d" * 250 + "/"
    os.makedirs(tarn.folder / (deep * 12))
    os.symlink("./" * 1500 + "y.npy", tarn.folder / (deep * 12) / "long.npy")  # together longer than names can be
    monkeypatch.chdir(tarn.folder)
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind("socket")
    before = names_in(tarn.folder)
    result = tarn("max", "x.npy", "-k2", *["--text"] * (not name.endswith(".npy")), "-o", deep * 12 * (name == "long.npy") + name)
    assert result.status == 1 and "cannot be written" in result.err
    assert names_in(tarn.folder) == before


def run_with_leftovers(folder, count, words, program=PROGRAM):
    """Runs the program as a process whose temporary names are taken already."""

    def leave():  # runs in the process that becomes the program, so with its number
        for k in range(count):
            with open(f".tarn-{os.getpid()}-{k}", "w") as file:
                file.write("left")

    return subprocess.run([program, *words], cwd=folder, preexec_fn=leave, capture_output=True, timeout=60)


def test_leftovers_that_are_too_many(tmp_path, x):
    done = run_with_leftovers(tmp_path, 1000, ["max", "x.npy", "-k2", "-o", "y.npy"])
    assert done.returncode == 1 and b"y.npy: cannot be written: File exists" in done.stderr
    assert len(names_in(tmp_path)) == 1001


@pytest.mark.parametrize("count", [1, 5])
def test_leftovers_of_a_process_of_the_same_number(tmp_path, x, count):
    done = run_with_leftovers(tmp_path, count, ["max", "x.npy", "-k2", "-o", "y.npy"])
    assert (done.returncode, done.stderr) == (0, b"")
    assert np.load(tmp_path / "y.npy").tolist() == [[5, 7], [13, 15]]
    left = [p for p in tmp_path.iterdir() if p.name.startswith(".tarn-")]
    assert len(left) == count and all(p.read_text() == "left" for p in left)


def test_without_proc(tmp_path, x):
    """Without /proc a file cannot get its name later: it has one from the start."""
    script = 'mount -t tmpfs tmpfs /proc && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", script, "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("NO /proc NOT TESTED: hiding it takes rights this user lacks")
    name = "y" * 251 + ".npy"
    for _ in range(2):
        done = subprocess.run([*words, PROGRAM, "max", "x.npy", "-k2", "-o", name, "--indices", "i.npy"], cwd=tmp_path,
                              capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert np.load(tmp_path / name).tolist() == [[5, 7], [13, 15]]
        assert np.load(tmp_path / "i.npy").tolist() == [[5, 7], [13, 15]]
    assert names_in(tmp_path) == ["i.npy", "x.npy", name]


def test_a_link_without_a_file(good, x):
    os.mkdir(good.folder / "there")
    os.symlink("there/second", good.folder / "y.npy")
    os.symlink("y.npy", good.folder / "there/second")  # there/y.npy does not exist yet
    for value in 1, 2:
        good("max", "x.npy", "-k2", "-o", "y.npy")
        assert os.path.islink(good.folder / "y.npy") and not os.path.islink(good.folder / "there/y.npy")
        assert np.load(good.folder / "there/y.npy").shape == (2, 2)


def test_two_results_through_links_to_one_file(tarn, x):
    os.symlink("both.npy", tarn.folder / "y.npy")
    result = tarn("max", "x.npy", "-k2", "-o", "y.npy", "--indices", "both.npy")
    assert result.status == 2 and names_in(tarn.folder) == ["x.npy", "y.npy"]


def test_links_with_whole_names(good, x):
    os.mkdir(good.folder / "there")
    os.symlink(good.folder / "there" / "y.npy", good.folder / "y.npy")
    good("max", "x.npy", "-k2", "-o", "y.npy")
    assert np.load(good.folder / "there/y.npy").tolist() == [[5, 7], [13, 15]] and os.path.islink(good.folder / "y.npy")


@pytest.mark.parametrize("first, second, status", [
    ("a/y.npy", "b/y.npy", 0), ("a/y.npy", "a/../a/y.npy", 2), ("a/y.npy", "none/y.npy", 1), ("none/y.npy", "b/y.npy", 1),
    ("a/loop.npy", "b/loop.npy", 1)])
def test_two_results_of_one_name(tarn, x, first, second, status):
    for folder in "ab":
        os.mkdir(tarn.folder / folder)
        os.symlink("loop.npy", tarn.folder / folder / "loop.npy")
    result = tarn("max", "x.npy", "-k2", "-o", first, "--indices", second)
    assert result.status == status, result.err
    written = [p for p in tarn.folder.glob("*/y.npy")]
    assert len(written) == (2 if status == 0 else 0)


def test_signals_that_are_ignored_stay_so(tmp_path, x):
    """As nohup has it."""
    process = subprocess.Popen([PROGRAM, "max", "-", "-k2", "-o", "y.npy"], cwd=tmp_path, stdin=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    data = (tmp_path / "x.npy").read_bytes()
    process.stdin.write(data[:100])
    process.stdin.flush()
    time.sleep(0.2)
    process.send_signal(signal.SIGHUP)
    process.stdin.write(data[100:])
    process.stdin.close()
    assert process.wait(60) == 0 and np.load(tmp_path / "y.npy").tolist() == [[5, 7], [13, 15]]


# ---- Memory --------------------------------------------------------------------------------------


def blank_png(columns, rows, extra=b""):
    size = (columns + 1) * rows
    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(bytes(min(1 << 20, size - at))) for at in range(0, size, 1 << 20)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + png_files.chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)) +
            extra + png_files.chunk(b"IDAT", data) + png_files.chunk(b"IEND", b""))


def run_and_measure(folder, words):
    """Status, standard error, and the largest resident size, in a process that has no other children."""
    script = ("import resource, subprocess, sys\n"
              "done = subprocess.run(sys.argv[1:], capture_output=True)\n"
              "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.stderr.decode())")
    done = subprocess.run([sys.executable, "-c", script, PROGRAM, *words], cwd=folder, capture_output=True, text=True)
    status, kilobytes, error = done.stdout.split(" ", 2)
    return int(status), int(kilobytes), error


@pytest.mark.skipif(SANITIZED, reason="the sanitizer takes memory of its own")
def test_tall_and_wide_pictures(tmp_path):
    rows = 5_000_000  # pointers to all of them would take 40 MB
    (tmp_path / "tall.png").write_bytes(blank_png(1, rows))
    (tmp_path / "wide.png").write_bytes(blank_png(rows, 1))
    words = ["--memory", "2M", "-k1", "-o", "y.npy"]
    status, kilobytes, error = run_and_measure(tmp_path, ["max", "tall.png", "-s100000,1", *words])
    assert (status, error) == (0, "\n") and kilobytes < 24000
    assert np.load(tmp_path / "y.npy").shape == (50, 1)
    (tmp_path / "y.npy").unlink()
    status, kilobytes, error = run_and_measure(tmp_path, ["max", "wide.png", "-s1,100000", *words])
    assert status == 1 and "two are held in memory" in error and kilobytes < 24000
    assert names_in(tmp_path) == ["tall.png", "wide.png"]
    words[1] = "16M"
    assert run_and_measure(tmp_path, ["max", "wide.png", "-s1,100000", *words])[::2] == (0, "\n")


@pytest.mark.skipif(SANITIZED, reason="the sanitizer takes memory of its own")
def test_extras_of_pictures_are_not_read(tmp_path):
    """Palettes that are only suggested: libpng holds them in memory. Texts would be unpacked, a thousand times their size."""
    palettes = b"".join(png_files.chunk(b"sPLT", b"%d\0\x08" % k + bytes(6_000_000)) for k in range(2))
    (tmp_path / "x.png").write_bytes(blank_png(2, 2, palettes))
    status, kilobytes, error = run_and_measure(tmp_path, ["max", "x.png", "-k1", "--memory", "1M", "-o", "y.npy"])
    assert (status, error) == (0, "\n") and kilobytes < 24000  # of which 12000 are the file


@pytest.mark.skipif(SANITIZED, reason="the sanitizer takes memory of its own")
@pytest.mark.parametrize("name, shape", [("y.png", (6000, 6000)), ("y.pgm", (6000, 6000)), ("y.txt", (2000, 700))])
def test_results_larger_than_memory(tmp_path, name, shape):
    """Pictures and text are encoded at the end. What they come from is in a file by then, and so is what they become."""
    data = np.zeros(shape, "u1") if name != "y.txt" else np.zeros(shape, "f8")
    np.save(tmp_path / "x.npy", data)
    least = 4 << 20  # of private memory, for the program itself
    done = subprocess.run([PROGRAM, "max", "x.npy", "-k1", "-j1", "--memory", "1M", *["--text"] * (name == "y.txt"), "-o", name],
                          cwd=tmp_path, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (least + data.nbytes // 2,) * 2))
    assert (done.returncode, done.stderr) == (0, "")
    assert names_in(tmp_path) == ["x.npy", name]


# ---- Checksums -----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["max", "x.npz", "-o", "y.npy"], ["check", "max", "x.npz"],
                                   ["show", "max", "x.npz", "-o", "y.png"],
                                   ["graph", "run", "g.graph", "-i", "x=x.npz", "-o", "y.npy"]])
def test_stored_members_are_checked(tarn, words):
    (tarn.folder / "g.graph").write_text("x = input f32 64x64\ny = max x kernel=2,2\nreturn y\n")
    data = np.random.default_rng(1).standard_normal((64, 64)).astype("f4")
    np.savez(tarn.folder / "x.npz", x=data)
    words = words + ["-k2"] * (words[0] != "graph")
    result = tarn(*words)
    assert result.status == 0, result.err
    raw = bytearray((tarn.folder / "x.npz").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tarn.folder / "x.npz").write_bytes(raw)
    result = tarn(*words)
    assert result.status == 1 and "zip member 'x.npy' has the wrong checksum" in result.err


# ---- Inputs that shrink --------------------------------------------------------------------------


def is_mapped(process, name):
    try:
        with open(f"/proc/{process.pid}/maps") as maps:
            return name in maps.read()
    except OSError:
        return False


@pytest.mark.skipif(SANITIZED, reason="the sanitizer takes the signal for itself")
@pytest.mark.parametrize("size, left, words", [
    (1000, 4096, ["check", "max", "x.npy", "-k3"]),
    (3000, 4096, ["show", "max", "x.npy", "-k3", "-o", "y.png"]),
    (6000, 4096, ["graph", "run", "g.graph", "-i", "x=x.npy", "-o", "y.npy"]),
    (2700, 4 * 2700 * 1800, ["max", "x.npy", "-k31", "-s1", "-j3", "-o", "y.npy"])])  # in another thread than the first
def test_inputs_that_shrink(tmp_path, size, left, words):
    """Cut as soon as it is mapped; the program is still reading it then."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (size, size)}
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * size * size)
    (tmp_path / "g.graph").write_text(f"x = input f32 {size}x{size}\ny = max x kernel=3,3\nreturn y\n")
    process = subprocess.Popen([PROGRAM, *words], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while process.poll() is None and not is_mapped(process, "x.npy"):
        time.sleep(0.001)
    os.truncate(tmp_path / "x.npy", left)
    assert process.wait(60) == 1
    assert process.stderr.read() == b"tarn: an input file became shorter while it was read\n"
    process.stderr.close()
    assert names_in(tmp_path) == ["g.graph", "x.npy"]


# ---- Graphs of many nodes ------------------------------------------------------------------------


def test_drawings_of_long_chains(good):
    """A node names its neighbourhood, not all that share its memory: the drawing grows with the nodes, not with their square."""
    nodes = [f"v{k + 1} = max v{k} kernel=1,1 stride=1" for k in range(1000)]
    (good.folder / "chain.graph").write_text("\n".join(["v0 = input f32 4x4", *nodes, "return v1000"]) + "\n")
    drawing = good("graph", "dot", "chain.graph").out
    assert drawing.count("and 243 more nearby") > 400 and len(drawing) < 300_000


# ---- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [
    ["max", "x.npy", "-k500", "-s1", "--ties", "all", "--vjp", "g.npy", "-j2", "-o", "y.npy"],
    ["graph", "vjp", "g.graph", "-i", "x=x.npy", "-o", "x=y.npy", "-j2"],
    ["check", "max", "k500s1", "ties=all", "f64", "1500x1500"]])
def test_a_long_pass_can_be_interrupted(tmp_path, words):
    """The signal ends the program in the middle of a pass of minutes, not behind it, and leaves nothing."""
    np.save(tmp_path / "x.npy", np.zeros((1500, 1500)))
    np.save(tmp_path / "g.npy", np.zeros((1001, 1001)))
    (tmp_path / "g.graph").write_text("x = input f64 1500x1500\ny = max x kernel=500,500 stride=1,1 ties=all\nreturn y\n")
    process = subprocess.Popen([PROGRAM, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        time.sleep(0.5)
        assert process.poll() is None, process.stderr.read()
        process.send_signal(2)
        assert process.wait(60) == -2
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert names_in(tmp_path) == ["g.graph", "g.npy", "x.npy"]


# ---- Small stacks --------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="frames of instrumented code are larger")
@pytest.mark.parametrize("words", [
    ["max", "x.npy", "-k7", "-s1", "--ties", "all", "--vjp", "g.npy", "-j3", "-o", "y.npy"],
    ["smooth", "x.npy", "-k7", "-s1", "-j1", "-o", "y.npy"],
    ["graph", "vjp", "g.graph", "-i", "x=x.npy", "-j1", "-o", "x=y.npy"],
    ["check", "max", "k7s1", "f32", "60x60"]])
def test_a_stack_of_256_kib(tmp_path, words):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((60, 300)).astype("f4"))
    np.save(tmp_path / "g.npy", np.ones((54, 294), "f4"))
    (tmp_path / "g.graph").write_text("x = input f32 60x300\ny = max x kernel=7,7 stride=1,1\nreturn y\n")
    outcomes = []
    for bytes_of_stack in 8 << 20, 256 << 10:
        done = subprocess.run([PROGRAM, *words], cwd=tmp_path, capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (bytes_of_stack, bytes_of_stack)))
        assert done.returncode == 0, done.stderr
        outcomes.append((tmp_path / "y.npy").read_bytes() if "y.npy" in names_in(tmp_path) else done.stdout)
    assert outcomes[0] == outcomes[1]
