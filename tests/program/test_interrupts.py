"""Whatever happens on the way, the output is the old file or the new one, and nothing else is left."""

import os
import random
import resource
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from conftest import PROGRAM, SANITIZED

KILLS = 20 if SANITIZED else 100


@pytest.fixture
def work(tmp_path):
    """A problem in many pieces, its expected output, and how long it takes."""
    x = np.random.default_rng(0).integers(0, 256, (8, 512, 512)).astype("u1")
    np.save(tmp_path / "x.npy", x)
    words = [PROGRAM, "max", "x.npy", "-k3", "-s2", "-p1", "-j1", "--memory", "128K", "-o"]
    subprocess.run(words + ["new.npy"], cwd=tmp_path, check=True)
    begin = time.monotonic()
    subprocess.run(words + ["new.npy"], cwd=tmp_path, check=True)
    seconds = time.monotonic() - begin
    new = (tmp_path / "new.npy").read_bytes()
    (tmp_path / "new.npy").unlink()
    return words + ["y.npy"], new, seconds


def test_killed_at_random_moments(work, tmp_path):
    words, new, seconds = work
    chance = random.Random(1)
    outcomes = {"old": 0, "new": 0}
    for k in range(KILLS):
        (tmp_path / "y.npy").write_bytes(b"old")
        process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE)
        time.sleep(chance.uniform(0, 1.2 * seconds))
        process.send_signal([signal.SIGKILL, signal.SIGTERM, signal.SIGINT][k % 3])
        process.wait()
        process.stderr.close()
        found = (tmp_path / "y.npy").read_bytes()
        assert found in (b"old", new)
        outcomes["new" if found == new else "old"] += 1
        left = {p.name for p in tmp_path.iterdir()} - {"x.npy", "y.npy"}
        if k % 3:  # a killed process cannot clean up; others must
            assert not left
        for name in left:
            (tmp_path / name).unlink()
    assert outcomes["old"] > 0  # or the moments were not random
    subprocess.run(words, cwd=tmp_path, check=True)
    assert (tmp_path / "y.npy").read_bytes() == new


def test_the_signal_is_what_the_parent_sees(work, tmp_path):
    words, _, _ = work
    read, write = os.pipe()  # no bytes ever come: the program waits for them
    process = subprocess.Popen(words[:2] + ["-"] + words[3:], cwd=tmp_path, stdin=read)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    os.close(read)
    os.close(write)


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"FULL DISK NOT TESTED: mounting a tmpfs takes rights this user lacks: {done.stderr.decode()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("more", [[], ["--indices", "disk/i.npy"]])
def test_full_disk(work, tmp_path, small_disk, more):
    words, _, _ = work
    for old in False, True:
        if old:
            (small_disk / "y.npy").write_bytes(b"old")
        done = subprocess.run(words[:-1] + ["disk/y.npy", *more], cwd=tmp_path, capture_output=True)
        assert done.returncode == 1 and b"No space left on device" in done.stderr, done.stderr
        assert [(p.name, p.read_bytes()) for p in small_disk.iterdir()] == [("y.npy", b"old")] * old


def test_picture_on_a_full_disk(tmp_path, small_disk):
    x = np.random.default_rng(0).integers(0, 256, (900, 900)).astype("u1")
    np.save(tmp_path / "x.npy", x)
    for name in "y.png", "y.pgm":
        done = subprocess.run([PROGRAM, "max", "x.npy", "-k1", "-o", f"disk/{name}"], cwd=tmp_path, capture_output=True)
        assert done.returncode == 1 and b"No space left on device" in done.stderr, done.stderr
        assert list(small_disk.iterdir()) == []


def test_file_size_limit(work, tmp_path):
    words, _, _ = work
    (tmp_path / "y.npy").write_bytes(b"old")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    done = subprocess.run(words, cwd=tmp_path, capture_output=True, preexec_fn=limit)
    assert done.returncode == 1 and b"File too large" in done.stderr
    assert (tmp_path / "y.npy").read_bytes() == b"old"
    assert {p.name for p in tmp_path.iterdir()} == {"x.npy", "y.npy"}


def test_input_that_shrinks(tmp_path):
    """A mapped file that is cut while it is read ends the program with a sentence, not with a crash."""
    if SANITIZED:
        pytest.skip("the sanitizer takes the signal for itself")
    np.save(tmp_path / "x.npy", np.zeros((4, 1024, 1024), "u1"))
    os.mkfifo(tmp_path / "fifo.npy")
    process = subprocess.Popen([PROGRAM, "max", "x.npy", "-k1", "-j1", "-m", "64K", "-o", "fifo.npy"], cwd=tmp_path,
                               stderr=subprocess.PIPE)
    with open(tmp_path / "fifo.npy", "rb") as pipe:  # the program waits here for its reader
        pipe.read(1000)
        os.truncate(tmp_path / "x.npy", 5000)
        shutil.copyfileobj(pipe, open(os.devnull, "wb"))
    assert process.wait(20) == 1
    assert process.stderr.read() == b"tarn: an input file became shorter while it was read\n"
