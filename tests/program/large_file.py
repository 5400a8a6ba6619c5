"""Pools a file much larger than the memory it may use, beside `cp` of the same file.

usage: large_file.py [FOLDER] [GIBIBYTES]     (make test-large; 8 GiB need 20 GB of disk)

Fails if the program holds 400 MiB or more, or runs at less than 80 % of cp's rate. Both are measured in turn,
twice, and the better of each counts.
"""

import os
import pathlib
import subprocess
import sys
import time

import numpy as np

PROGRAM = os.environ["TARN_PROGRAM"]
MOST_RESIDENT = 400 << 20
LEAST_RATE = 0.8


def make_input(path, gibibytes):
    """f32 numbers of [0,1): 64 MiB of them, over and over."""
    block = np.random.default_rng(0).random((16, 1024, 1024), np.float32)
    header = {"descr": "<f4", "fortran_order": False, "shape": (gibibytes * 16, 16, 1024, 1024)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(gibibytes * 16):
            file.write(block.tobytes())


def run(words):
    """Seconds, and the greatest resident set in bytes."""
    begin = time.monotonic()
    process = subprocess.Popen(words)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return time.monotonic() - begin, usage.ru_maxrss * 1024


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    gibibytes = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    x, y, copy = (folder / f"tarn-large-{name}.npy" for name in ("x", "y", "copy"))
    copies, pools = [], []
    try:
        make_input(x, gibibytes)
        for _ in range(2):
            copies.append(run(["cp", x, copy])[0])
            copy.unlink()
            pools.append(run([PROGRAM, "max", x, "-o", y, "-k2", "--memory", "256M", "--quiet"]))
            assert np.load(y, mmap_mode="r").shape == (gibibytes * 16, 16, 512, 512)
            y.unlink()
    finally:
        for path in x, y, copy:
            path.unlink(missing_ok=True)
    seconds, resident = min(s for s, _ in pools), max(r for _, r in pools)
    rate = min(copies) / seconds
    print(f"cp {copies} s, tarn {[s for s, _ in pools]} s, at most {resident >> 20} MiB resident")
    print(f"tarn runs at {rate:.0%} of cp's rate")
    return resident >= MOST_RESIDENT or rate < LEAST_RATE


if __name__ == "__main__":
    sys.exit(main())
