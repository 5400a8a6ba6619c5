"""docs/which-function.md: commands run, C names exist."""

import os
import pathlib
import re
import shlex
import subprocess

import numpy
import pytest

SOURCE = pathlib.Path(os.environ["TARN_SOURCE_DIR"])
PAGE = (SOURCE / "docs/which-function.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`]+)`", PAGE)
COMMANDS = [code for code in CODE if re.match(r"tarn [a-z-]+ .*(\.png|\.npy|f32)", code) and "graph" not in code]


@pytest.fixture
def folder(tmp_path):
    program = os.environ["TARN_PROGRAM"]
    numpy.save(tmp_path / "labels.npy", numpy.random.default_rng(2).integers(0, 4, (8, 8), dtype="u1"))
    numpy.save(tmp_path / "in.npy", numpy.random.default_rng(1).random((3, 96, 128), dtype=numpy.float32))
    subprocess.run([program, "avg", SOURCE / "examples/data/tarn.pgm", "-o", tmp_path / "in.png", "-k", "1"], check=True)
    (tmp_path / "photo.png").write_bytes((tmp_path / "in.png").read_bytes())
    return tmp_path


def test_the_page_has_commands():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, folder):
    words = shlex.split(command)
    subprocess.run([os.environ["TARN_PROGRAM"], *words[1:]], cwd=folder, check=True, capture_output=True)


def test_c_names_exist():
    header = (SOURCE / "include/tarn.h").read_text(encoding="utf-8") + "tarn_graph.h"
    names = {name for code in CODE for name in re.findall(r"\btarn_[a-z0-9_]+", code)}
    assert len(names) >= 15
    assert not [name for name in names if name not in header]
