"""The type stubs name what there is, with the same parameters, and type checkers accept them."""

import ast
import importlib
import inspect
import pathlib

import pytest

import tarn

FOLDER = pathlib.Path(tarn.__file__).parent


def parameters(arguments):
    names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    return [name for name in names if name not in ("self", "cls")]


def definitions(module):
    tree = ast.parse((FOLDER / f"{module.__name__.rpartition('.')[2]}.pyi").read_text())
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node


@pytest.mark.parametrize("name", ("errors", "functional", "pools", "torch", "jax", "onnx",
                                  "dask", "reduce", "xarray"))
def test_stub_matches(name):
    if name in ("jax", "onnx", "dask", "xarray"):
        pytest.importorskip(name)
    module = importlib.import_module(f"tarn.{name}")
    named = {node.name for node in definitions(module)}
    own = {name for name, value in vars(module).items()
           if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__}
    assert own <= named, f"no stub for {own - named}"
    for node in definitions(module):
        real = getattr(module, node.name)
        if isinstance(node, ast.FunctionDef) and inspect.isfunction(real):
            expected = [name for name in inspect.signature(real).parameters]
            assert parameters(node.args) == expected, node.name
        for method in getattr(node, "body", []):
            if isinstance(method, ast.FunctionDef) and method.name in ("__new__", "__init__"):
                made = list(inspect.signature(real).parameters)
                assert parameters(method.args) == made or node.name == "threads", node.name


def test_core_stub_names_everything():
    from tarn import _core
    tree = ast.parse((FOLDER / "_core.pyi").read_text())
    named = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    constants = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in vars(_core) if not name.startswith("__")} == set(named) | constants
    for kind in (_core.Pool, _core.Graph):
        methods = {m.name for m in named[kind.__name__].body if isinstance(m, ast.FunctionDef)}
        assert {name for name in vars(kind) if not name.startswith("__")} <= methods


def test_package_is_typed():
    assert (FOLDER / "py.typed").exists()


def test_a_type_checker_agrees_with_a_users_program():
    api = pytest.importorskip("mypy.api")
    here = pathlib.Path(__file__).parent
    words, errors, status = api.run(["--strict", f"--cache-dir={here.parents[1] / 'build/mypy'}",
                                     str(here / "typed_program.py")])
    assert status == 0, words + errors
