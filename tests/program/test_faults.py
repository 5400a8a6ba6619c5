"""Every allocation, read, write, rename, mapping and thread start that the program makes fails once, and then for ever: each time
there is a sentence and status 1, or the right result; the output is the old file or the new one; nothing is left behind.

The program is `tarn_faulty`, the same objects linked with tests/faults/faults.c.
"""

import errno
import os
import pathlib
import subprocess

import numpy as np
import pytest

import png_files
from conftest import PROGRAM

FAULTY = pathlib.Path(PROGRAM).parent / "tests" / "tarn_faulty"
GRAPH = """x = input f32 1x64x64
a = max x kernel=3,3 stride=1 pad=1
b = avg x kernel=3,3 stride=1 pad=1
c = add a b
y = smooth c kernel=2,2 beta=3
return y
"""

# Words, and the files that they write. Standard input is x.npy, or large.npy.
COMMANDS = {
    "pieces": (["max", "x.npy", "-k3", "-s2", "-p1", "-j1", "-m", "64K", "-o", "y.npy"], ["y.npy"]),
    "threads": (["avg", "large.npy", "-k3", "-s1", "-p1", "-j3", "-o", "y.npy"], ["y.npy"]),
    "indices": (["max", "x.npy", "-k2", "-j1", "--indices", "i.npy", "-o", "y.npy"], ["i.npy", "y.npy"]),
    "vjp": (["smooth", "x.npy", "-k2", "-j1", "--vjp", "g.npy", "-o", "y.npy"], ["y.npy"]),
    "deflated": (["max", "x.npz", "-k2", "-j1", "-m", "1K", "-o", "y.png"], ["y.png"]),
    "stdin": (["min", "-", "-k2", "-j1", "-m", "16K", "-o", "y.npy"], ["y.npy"]),
    "large stdin on disk": (["min", "-", "-k2", "-j1", "-m", "16K", "-o", "y.npy"], ["y.npy"]),
    "large stdin": (["min", "-", "-k2", "-j1", "-m", "4M", "-o", "y.npy"], ["y.npy"]),
    "show": (["show", "max", "small.npy", "-k3", "-o", "y.png"], ["y.png"]),
    "check": (["check", "max", "k2", "f32", "1x6x6"], []),
    "graph": (["graph", "vjp", "g.graph", "-i", "x=x.npy", "-j1", "-o", "x=y.npy", "--values", "y=v.npy"],
              ["v.npy", "y.npy"]),
    "dot": (["graph", "dot", "g.graph", "--pass", "vjp", "-o", "y.dot"], ["y.dot"]),
    "mode": (["mode", "labels.npy", "-k2", "--skip", "0", "-j1", "-m", "4K", "-o", "y.npy"], ["y.npy"]),
    "skip": (["avg", "x.npy", "-k3", "-s1", "-p1", "--skip", "nan", "--min-count", "2", "-j1", "-m", "64K", "-o", "y.npy"],
             ["y.npy"]),
    "skip vjp": (["max", "x.npy", "-k2", "--skip", "nan", "-j1", "--vjp", "g.npy", "-o", "y.npy"], ["y.npy"]),
    "sum": (["adaptive-sum", "x.npy", "--out", "5", "-j1", "-m", "4K", "-o", "y.npy"], ["y.npy"]),
    "png": (["max", "labels.png", "-k2", "-j1", "-m", "1K", "-o", "y.png"], ["y.png"]),
    "picture": (["lp", "labels.pgm", "-k2", "-j1", "-o", "y.pgm"], ["y.pgm"]),
    "text": (["min", "small.npy", "-k2", "-j1", "--indices", "i.txt", "--text", "-o", "y.txt"], ["i.txt", "y.txt"]),
    "in place": (["max", "y.npy", "-k2", "-j1", "--in-place"], ["y.npy"]),
    "pipe": (["max", "x.npy", "-k2", "-j1", "-o", "-"], []),
    "svg": (["show", "avg", "small.npy", "-k3", "-o", "y.svg"], ["y.svg"]),
    "graph jvp": (["graph", "jvp", "g.graph", "-i", "x=x.npy", "--tangent", "x=x.npy", "-j1", "-o", "y=y.npy"], ["y.npy"]),
    "graph check": (["graph", "check", "g.graph", "-j1"], []),
    "shape": (["shape", "avg", "-k3", "x.npy"], []),
    "explain": (["explain", "max", "k2", "f32", "1x6x6"], []),
}

# Calls that are interrupted, and reservations that a file system does not have, are no faults.
OTHER_REASONS = {"large stdin on disk": errno.EINTR, "pipe": errno.EINTR, "indices": errno.EOPNOTSUPP}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    random = np.random.default_rng(0)
    np.save(folder / "x.npy", random.standard_normal((1, 64, 64)).astype("f4"))
    np.save(folder / "small.npy", random.standard_normal((8, 8)).astype("f4"))
    np.save(folder / "large.npy", random.standard_normal((4, 128, 128)).astype("f4"))
    np.save(folder / "g.npy", np.ones((1, 32, 32), "f4"))
    np.save(folder / "labels.npy", random.integers(0, 4, (2, 32, 32)).astype("u2"))
    (folder / "labels.pgm").write_bytes(b"P5 32 32 255\n" + random.integers(0, 255, 1024).astype("u1").tobytes())
    (folder / "labels.png").write_bytes(png_files.encode(random.integers(0, 255, (40, 40)).astype("u1")))
    np.savez_compressed(folder / "x.npz", x=random.integers(0, 255, (64, 64)).astype("u1"))
    (folder / "g.graph").write_text(GRAPH)
    return folder


def run(folder, words, fault, given):
    """Status, output, complaint, number of calls, blocks that were not freed (None if it did not end by itself)."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, "TARN_FAULT_LOG": str(log), "TMPDIR": str(folder)}
    environment.update({"TARN_FAULT": fault} if fault else {})
    with open(folder / given, "rb") as source:
        feeder = subprocess.Popen(["cat"], stdin=source, stdout=subprocess.PIPE)
        done = subprocess.run([FAULTY, *words], cwd=folder, stdin=feeder.stdout, capture_output=True, env=environment,
                              timeout=60)
        feeder.stdout.close()
        feeder.wait()
    calls, blocks = map(int, log.read_text().split()) if log.exists() else (None, None)
    log.unlink(missing_ok=True)
    return done.returncode, done.stdout, done.stderr.decode(), calls, blocks


@pytest.mark.parametrize("name", COMMANDS)
def test_faults(folder, name):
    words, outputs = COMMANDS[name]
    old, inputs = (folder / "x.npy").read_bytes(), sorted(p.name for p in folder.iterdir())

    def attempt(fault):
        for output in outputs:
            (folder / output).write_bytes(old)
        result = run(folder, words, fault, "large.npy" if name.startswith("large") else "x.npy")
        found = {output: (folder / output).read_bytes() for output in outputs}
        for output in outputs:
            (folder / output).unlink()
        assert sorted(p.name for p in folder.iterdir()) == inputs, fault
        return found, *result

    new, status, printed, error, calls, blocks = attempt(None)
    assert (status, error, blocks) == (0, "", 0) and calls > 0
    def refusals(mode):
        refused = 0
        for fault in [f"{call}{mode}" for call in range(calls)]:
            found, status, out, error, _, blocks = attempt(fault)
            assert status in (0, 1), (fault, status, error)
            assert blocks == 0, (fault, blocks, error)
            if status == 0:
                assert (found, out, error) == (new, printed, ""), fault
            else:
                refused += 1
                assert error.startswith("tarn: ") and error.count("\n") == 1, (fault, error)
                assert all(found[output] in (old, new[output]) for output in outputs), fault
        return refused

    once, for_ever = refusals(""), refusals("+")
    assert once > 0  # or no fault came through
    if name in OTHER_REASONS:
        assert refusals(f"={OTHER_REASONS[name]}") < once
    print(f"{name}: {2 * calls} faults, {once + for_ever} refused")  # pytest -s shows it
