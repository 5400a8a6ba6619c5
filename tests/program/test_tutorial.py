"""The commands of docs/tutorial.md run, print what the page says, and draw the pictures it shows."""

import importlib.util

from conftest import SOURCE

spec = importlib.util.spec_from_file_location("tutorial", f"{SOURCE}/tools/tutorial.py")
tutorial = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tutorial)


def test_tutorial():
    assert tutorial.main(write=False) == 0


def test_every_operator_is_in_it():
    with open(tutorial.PAGE) as file:
        commands = "".join(block["commands"] for block in tutorial.BLOCK.finditer(file.read()))
    for word in ("max", "min", "avg", "smooth", "lp", "adaptive-max", "adaptive-avg", "global-max", "global-avg",
                 "--jvp", "--vjp", "--ties", "--dilation", "--ceil", "graph run", "graph check"):
        assert f" {word} " in commands.replace("\n", " "), word
