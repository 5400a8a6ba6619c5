"""Pyramids whose driver or worker is killed: after a resumed run the files are those of a run that nobody
disturbed, byte by byte, and little was done twice. `--kills 20` kills more often (make check-pyramid).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy
import pytest
import zarr

from tarn.pyramid import RequestError, journal, write

WORKERS = 2
OPTIONS = {"factor": 2, "levels": 3, "chunks": {"z": 8, "y": 8, "x": 8},
           "shards": {"z": 16, "y": 16, "x": 16}}
WORDS = ["--factor=2", "--levels=3", "--chunks=z=8,y=8,x=8", "--shards=z=16,y=16,x=16"]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A source, and the pyramid of it that nobody disturbed."""
    folder = tmp_path_factory.mktemp("straight")
    rng = numpy.random.default_rng(11)
    x = rng.integers(0, 60000, (30, 90, 125)).astype("u2")
    x[:, :32, :32] = 0  # units without a file
    numpy.save(folder / "x.npy", x)
    write(folder / "x.npy", folder / "out", workers=1, **OPTIONS)
    return folder


def files(folder):
    return {os.path.relpath(os.path.join(where, name), folder):
            open(os.path.join(where, name), "rb").read()
            for where, _, names in os.walk(folder) for name in names}


def start(straight, out, *words):
    return subprocess.Popen([sys.executable, "-m", "tarn", "pyramid", straight / "x.npy", out, *WORDS,
                             f"--workers={WORKERS}", "--json", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, error = process.communicate()
    assert process.returncode == 0, error
    return json.loads(out.splitlines()[-1])


def lines_of(out):
    path = out / journal.NAME
    text = path.read_bytes() if path.exists() else b""
    return [line for line in map(journal._decode, text.split(b"\n")[:-1]) if line is not None]


def wait_for_lines(process, out, lines):
    """Until the journal has as many lines; the moment does not depend on how fast the machine is."""
    while process.poll() is None and len(lines_of(out)) < lines:
        time.sleep(0.002)


def test_killed_drivers(straight, tmp_path, kills, seed):
    rng = numpy.random.default_rng(seed)
    out = tmp_path / "out"
    total = write(straight / "x.npy", straight / "out", workers=1, resume=True, **OPTIONS).tasks
    for _ in range(kills):
        process = start(straight, out, "--resume")
        wait_for_lines(process, out, int(rng.integers(0, total)))
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        process.communicate()
        # Files that no line tells of are done again: at most one for each worker.
        done = {(line["level"], tuple(line["unit"])) for line in lines_of(out)[1:]}
        there = {(int(key.split(os.sep)[0]), tuple(map(int, key.split(os.sep)[2:])))
                 for key in files(out) if f"{os.sep}c{os.sep}" in key and not key.endswith(".partial")}
        whole = (out / "zarr.json").exists()
        assert len(there - done) <= WORKERS or whole
        if whole or rng.random() < 0.3:
            finish(start(straight, out, "--resume"))
            assert files(out) == files(straight / "out")
            shutil.rmtree(out)
    assert finish(start(straight, out, "--resume"))["tasks"] == total
    assert files(out) == files(straight / "out")


# ---- The journal --------------------------------------------------------------------------------


class Stop(Exception):
    pass


def write_some(straight, out, tasks, **more):
    """A run that its caller stops after some tasks."""
    def stop(state):
        if state.tasks_done == tasks:
            raise Stop
    with pytest.raises(Stop):
        write(straight / "x.npy", out, workers=1, progress=stop, **OPTIONS, **more)


def test_resume_goes_on(straight, tmp_path):
    write_some(straight, tmp_path / "out", 20)
    assert len(lines_of(tmp_path / "out")) == 21 and not (tmp_path / "out" / "zarr.json").exists()
    (tmp_path / "out" / "0" / "c" / "0" / "1.0123.partial").write_bytes(b"half")
    given = write(straight / "x.npy", tmp_path / "out", workers=1, resume=True, **OPTIONS)
    assert given.tasks_run == given.tasks - 20
    assert files(tmp_path / "out") == files(straight / "out")
    again = write(straight / "x.npy", tmp_path / "out", workers=1, resume=True, **OPTIONS)
    assert again.tasks_run == 0


@pytest.mark.parametrize("name, value", [("op", "max"), ("factor", {"x": 2}), ("levels", 2), ("edge", "trim"),
                                         ("level_from", "base"), ("codec", "none"), ("name", "other")])
def test_resume_refuses_another_request(straight, tmp_path, name, value):
    write_some(straight, tmp_path / "out", 3)
    with pytest.raises(RequestError, match=f"begun with another {name}"):
        write(straight / "x.npy", tmp_path / "out", workers=1, resume=True, **OPTIONS | {name: value})
    with pytest.raises(RequestError, match="whole already, and made otherwise"):
        write(straight / "x.npy", straight / "out", workers=1, resume=True, **OPTIONS | {name: value})


def test_resume_refuses_another_source(straight, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.load(straight / "x.npy"))
    write_some(tmp_path, tmp_path / "out", 3)
    os.utime(tmp_path / "x.npy", (1, 1))
    with pytest.raises(RequestError, match="begun with another source"):
        write(tmp_path / "x.npy", tmp_path / "out", workers=1, resume=True, **OPTIONS)


def test_two_drivers_are_refused(straight, tmp_path):
    write_some(straight, tmp_path / "out", 3)
    other = journal.Journal(tmp_path / "out", lines_of(tmp_path / "out")[0], True)
    with pytest.raises(RequestError, match="written by another process"):
        write(straight / "x.npy", tmp_path / "out", workers=1, resume=True, **OPTIONS)
    other.close()


@pytest.mark.parametrize("damage", ["torn", "line", "gone", "shard", "truncated", "stray"])
def test_damage_is_done_again(straight, tmp_path, damage):
    out = tmp_path / "out"
    write_some(straight, out, 30)
    path = out / journal.NAME
    lines = path.read_bytes().splitlines(keepends=True)
    shards = [name for name in files(out) if f"{os.sep}c{os.sep}" in name]
    if damage == "torn":
        path.write_bytes(b"".join(lines)[:-7])
    elif damage == "line":
        assert b'"level":0' in lines[8]
        lines[8] = lines[8].replace(b'"level":0', b'"level":1')
        path.write_bytes(b"".join(lines))
    elif damage == "gone":
        (out / shards[5]).unlink()
    elif damage == "stray":
        (out / "0" / "c" / "0" / "0" / "0").write_bytes(b"a file where fill values have none")
    else:
        data = bytearray((out / shards[5]).read_bytes())
        data[len(data) // 2] ^= 1
        (out / shards[5]).write_bytes(data[:-1] if damage == "truncated" else data)
    given = write(straight / "x.npy", out, workers=1, resume=True, **OPTIONS)
    redone = given.tasks_run - (given.tasks - 30)
    assert redone == (23 if damage == "line" else 1)
    assert files(out) == files(straight / "out")


def test_whole_lines_of_a_torn_journal_stay(tmp_path):
    header, lines = {"tarn": "1"}, [{"level": 0, "unit": [k]} for k in range(3)]
    begun = journal.Journal(tmp_path, header, False)
    for line in lines:
        begun.add(line)
    begun.close()
    path = tmp_path / journal.NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    resumed = journal.Journal(tmp_path, header, True)
    assert list(resumed.done.values()) == lines[:-1]
    resumed.add(lines[-1])
    resumed.close()
    assert path.read_bytes() == whole


def test_a_damaged_header_is_refused(straight, tmp_path):
    write_some(straight, tmp_path / "out", 3)
    path = tmp_path / "out" / journal.NAME
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(RequestError, match="damaged; --overwrite begins anew"):
        write(straight / "x.npy", tmp_path / "out", workers=1, resume=True, **OPTIONS)
    write(straight / "x.npy", tmp_path / "out", workers=1, overwrite=True, **OPTIONS)
    assert files(tmp_path / "out") == files(straight / "out")


# ---- dask ---------------------------------------------------------------------------------------


def test_cluster_with_a_killed_worker(straight, tmp_path, kills, seed):
    """A cluster of two processes, one of which is killed in mid-run: equal files, no unit twice."""
    from distributed import LocalCluster
    rng = numpy.random.default_rng(seed)
    for number in range(kills if kills > 2 else 1):
        out = tmp_path / str(number)
        moment, victim, seen = int(rng.integers(5, 40)), int(rng.integers(2)), []
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            def kill(state):
                seen.append(lines_of(out)[-1])
                if state.tasks_done == moment:
                    os.kill(cluster.workers[victim].pid, signal.SIGKILL)

            write(straight / "x.npy", out, scheduler=cluster.scheduler_address, progress=kill, **OPTIONS)
        assert files(out) == files(straight / "out")
        units = [(line["level"], tuple(line["unit"])) for line in seen]
        assert len(units) == len(set(units)) > moment


def test_no_scheduler(straight, tmp_path):
    with pytest.raises(RequestError, match="scheduler: "):
        write(straight / "x.npy", tmp_path / "out", scheduler="nonsense://there", **OPTIONS)


def test_zarr_reads_what_is_whole(straight):
    assert zarr.open_group(straight / "out", mode="r").attrs["ome"]["version"] == "0.5"
