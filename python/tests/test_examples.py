"""The examples run and keep what they promise: each checks itself."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name, arguments", (("python_cnn.py", ["60"]), ("python_temperature.py", []),
                                             ("python_channels_last.py", [])))
def test_example(name, arguments, tmp_path):
    subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], check=True, timeout=900,
                   cwd=tmp_path)


def test_pictures_are_written(tmp_path):
    written = tmp_path / "pooled.pgm"
    subprocess.run([sys.executable, str(EXAMPLES / "python_temperature.py"),
                    str(EXAMPLES / "data" / "tarn.pgm"), str(written)], check=True, timeout=60)
    assert written.read_bytes().startswith(b"P5\n160 30\n255\n")
    assert written.stat().st_size == len(b"P5\n160 30\n255\n") + 160 * 30


README = pathlib.Path(__file__).parents[2] / "README.md"
BLOCKS = README.read_text().split("```python\n")[1:]


@pytest.mark.parametrize("code", [block.split("```")[0] for block in BLOCKS])
def test_readme_can_be_typed_as_it_stands(code):
    names = {}
    exec(code, names)  # noqa: S102
    assert names["gx"].shape == names["x"].shape and names["gx"].any()
