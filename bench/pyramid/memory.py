"""The memory of pyramids whose input is larger and larger.

usage: memory.py [--gib 1,4,16] [--memory 256M] [--workers 2] [--folder FOLDER] [--sparse]

Prints, for each size of a .npy file, the greatest resident memory of the process. Input and pyramid take
twice the size on the disk, and are removed. Of a sparse file every eighth slab is noise and the rest a hole,
so that they take a quarter of the size.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

import numpy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", default="1,4,16")
    parser.add_argument("--memory", default="256M")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--folder", default="build/bench")
    parser.add_argument("--sparse", action="store_true")
    options = parser.parse_args()
    print("| input | seconds | peak, MiB |\n| --- | --: | --: |")
    for gib in map(int, options.gib.split(",")):
        path, out = (os.path.join(options.folder, name) for name in ("memory.npy", "memory.ome.zarr"))
        make(path, gib, 512 if options.sparse else 64)
        began = time.monotonic()
        peak = run([sys.executable, "-m", "tarn", "pyramid", path, out, "--overwrite", "--codec=none",
                    "--chunks=z=64,y=64,x=64", "--shards=z=128,y=128,x=128",
                    f"--memory={options.memory}", f"--workers={options.workers}"])
        print(f"| {gib} GiB | {time.monotonic() - began:.0f} | {peak >> 10} |", flush=True)
        os.unlink(path)
        shutil.rmtree(out)


def make(path, gib, step):
    """Slabs of noise, so that they are no fill values."""
    slab = numpy.random.default_rng(0).integers(1, 60000, (64, 1024, 1024), "u2")
    array = numpy.lib.format.open_memmap(path, "w+", "u2", (gib * 512, 1024, 1024))
    for z in range(0, len(array), step):
        array[z:z + 64] = slab


def run(command):
    """The peak of a process, in KiB, threads and mapped files included; the kernel keeps it while
    the process lives."""
    process, peak = subprocess.Popen(command), 0
    while process.poll() is None:
        peak = max(peak, peak_of(process.pid))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(process.returncode)
    return peak


def peak_of(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


if __name__ == "__main__":
    main()
