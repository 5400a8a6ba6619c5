"""Fixtures of the end-to-end tests: they run the built program and nothing else."""

import os
import subprocess

import pytest

PROGRAM = os.environ["TARN_PROGRAM"]
SOURCE = os.environ["TARN_SOURCE_DIR"]
SANITIZED = os.environ.get("TARN_SANITIZED") == "1"


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr


@pytest.fixture
def tarn(tmp_path):
    """Runs `tarn ...` in an empty folder; arguments are turned into text."""

    def run(*words, stdin=b"", env=None, timeout=60, text=True):
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive", **(env or {})}
        done = subprocess.run([PROGRAM, *map(str, words)], input=stdin, capture_output=True,
                              cwd=tmp_path, env=environment, timeout=timeout)
        result = Result(done)
        result.err = result.err.decode()
        if text:
            result.out = result.out.decode()
        return result

    run.folder = tmp_path
    return run


@pytest.fixture
def good(tarn):
    """Runs the program and insists that it succeeds and says nothing on standard error."""

    def run(*words, **more):
        result = tarn(*words, **more)
        assert (result.status, result.err) == (0, ""), result.err
        return result

    run.folder = tarn.folder
    return run
