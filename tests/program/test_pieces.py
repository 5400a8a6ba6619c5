"""Work in pieces gives the bits of one call, whatever the layout, the window and the memory."""

import numpy as np
import pytest

from conftest import SANITIZED

ROUNDS = 8 if SANITIZED else 60


def random_options(rng, rule, op, spatial):
    words = ["--spatial", spatial]
    if rule == "adaptive":
        words += ["--out", ",".join(str(rng.integers(1, 9)) for _ in range(spatial))]
    elif rule == "sliding":
        kernel, dilation = rng.integers(1, 5, spatial), rng.integers(1, 3, spatial)
        extent = dilation * (kernel - 1) + 1
        words += ["--kernel", ",".join(map(str, kernel)), "--dilation", ",".join(map(str, dilation)),
                  "--stride", ",".join(str(rng.integers(1, 5)) for _ in range(spatial)), "--pad",
                  ",".join(f"{rng.integers(0, e + 1)}:{rng.integers(0, e + 1)}" for e in extent)]
        words += ["--ceil"] if rng.integers(2) else []
        words += ["--no-count-include-pad"] if op in ("avg", "smooth") and rng.integers(2) else []
    words += ["--power", rng.choice(["1", "2", "2.5"])] if op == "lp" else []
    words += ["--ties", rng.choice(["first", "all", "split"])] if op in ("max", "min") else []
    return words


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_pieces_equal_one_call(good, seed):
    rng = np.random.default_rng(seed)
    spatial = int(rng.integers(1, 4))
    leading, sizes = tuple(rng.integers(1, 4, rng.integers(0, 3))), tuple(rng.integers(9, 17, spatial))
    last = bool(leading) and rng.integers(2)
    shape = leading[:-1] + sizes + leading[-1:] if last else leading + sizes
    op = str(rng.choice(["max", "min", "avg", "smooth", "lp"]))
    rule = str(rng.choice(["sliding", "sliding", "sliding", "adaptive", "global"]))
    name = op if rule == "sliding" else f"{rule}-{op}"
    words = random_options(rng, rule, op, spatial)
    words += ["--layout", "last"] if last else []
    order = "F" if rng.integers(2) else "C"
    dtype = ">f4" if rng.integers(2) else "<f4"

    def save(path, size):
        array = rng.integers(-9, 9, size) + rng.standard_normal(size)
        np.save(good.folder / path, np.asarray(array, dtype, order=order))

    save("x.npy", shape)
    save("dx.npy", shape)
    good(name, "x.npy", "-o", "y.npy", *words)
    save("gy.npy", np.load(good.folder / "y.npy").shape)
    for more in [], ["--jvp", "dx.npy"], ["--vjp", "gy.npy"]:
        good(name, "x.npy", "-o", "whole.npy", *more, *words)
        whole = (good.folder / "whole.npy").read_bytes()
        for memory in 1, 400, 3000:
            good(name, "x.npy", "-o", "pieces.npy", "--memory", memory, *more, *words)
            assert (good.folder / "pieces.npy").read_bytes() == whole, (more, memory)


@pytest.mark.parametrize("more", [[], ["--vjp", "gy.npy"]])
def test_divisor_of_a_last_window_that_hangs(good, more):
    """In ceil mode the last window reaches beyond the padding, and its divisor counts less than its taps."""
    rng = np.random.default_rng(0)
    np.save(good.folder / "x.npy", rng.random((10, 12)))
    np.save(good.folder / "gy.npy", rng.random((5, 6)))
    words = ["avg", "x.npy", "-k3", "-s2", "--ceil", *more, "-o"]
    good(*words, "whole.npy")
    good(*words, "pieces.npy", "--memory", 1)
    assert (good.folder / "pieces.npy").read_bytes() == (good.folder / "whole.npy").read_bytes()
    if not more:
        x = np.load(good.folder / "x.npy")
        assert np.isclose(np.load(good.folder / "pieces.npy")[4, 5], x[8:, 10:].mean())  # 4 taps, not 9


@pytest.mark.parametrize("seed", range(ROUNDS // 4))
def test_indices_of_pieces(good, seed):
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(7, 13, 2))
    shape = (2, *sizes, 3) if seed % 4 == 0 else (2, 3, *sizes)
    order = "F" if seed % 2 else "C"
    np.save(good.folder / "x.npy", np.asarray(rng.integers(0, 3, shape), "u1", order=order))
    words = random_options(rng, "sliding" if seed % 3 else "adaptive", "max", 2)
    words += ["--layout", "last"] if seed % 4 == 0 else []
    name = "max" if seed % 3 else "adaptive-max"
    good(name, "x.npy", "-o", "y.npy", "--indices", "i.npy", *words)
    for memory in 1, 500:
        good(name, "x.npy", "-o", "y2.npy", "--indices", "i2.npy", "--memory", memory, *words)
        for a, b in ("y.npy", "y2.npy"), ("i.npy", "i2.npy"):
            assert (good.folder / a).read_bytes() == (good.folder / b).read_bytes(), (a, memory)


def test_threads_and_families_do_not_matter(good):
    x = np.random.default_rng(0).standard_normal((3, 40, 50)).astype("f4")
    np.save(good.folder / "x.npy", x)
    results = set()
    for more in ["-j1"], ["-j2"], ["--isa", "spec"], ["--isa=portable,spec"], ["-m", "4K"]:
        good("avg", "x.npy", "-o", "y.npy", "-k7", "-s2", "-p3", *more)
        results.add((good.folder / "y.npy").read_bytes())
    assert len(results) == 1


def test_levels_of_a_file(good):
    """The commands that docs/program.md has for a pyramid: odd sizes, means rounded half to even."""
    x = np.random.default_rng(0).integers(0, 65536, (3, 23, 37), "u2")
    np.save(good.folder / "level0.npy", x)
    for level in 1, 2, 3:
        good("avg", f"level{level - 1}.npy", "-o", f"level{level}.npy", "--kernel", 2, "--ceil",
             "--no-count-include-pad", "--memory", 300)
        cells = np.pad(x.astype("i8"), ((0, 0), (0, x.shape[1] % 2), (0, x.shape[2] % 2)))
        there = np.pad(np.ones(x.shape, "i8"), ((0, 0), (0, x.shape[1] % 2), (0, x.shape[2] % 2)))
        total, count = (a[:, 0::2, 0::2] + a[:, 0::2, 1::2] + a[:, 1::2, 0::2] + a[:, 1::2, 1::2]
                        for a in (cells, there))
        x = np.load(good.folder / f"level{level}.npy")
        assert x.dtype == "u2" and (x == np.rint(total / count)).all()
