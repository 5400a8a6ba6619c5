#!/usr/bin/env python3
"""Instructions that a call of each pass executes, counted by callgrind: the same numbers in every run.

usage: counts.py PROGRAM [ROW | PROBLEM]...

PROGRAM is build/bench/bench. TARN_ISA in the environment chooses kernels as always; callgrind knows no AVX-512.
Prints row,pass,outputs,instructions,instructions_per_output.
"""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile

# The function of bench.c that makes the calls: counted while it runs, and dumped to a file each time it ends.
COUNTED = "counted_calls"


def dumped_counts(folder):
    """The counts of all dumps, in their order."""
    parts = sorted(folder.glob("counts.*"), key=lambda part: int(part.suffix[1:]))
    for part in parts:
        for line in part.read_text().splitlines():
            if line.startswith("totals: "):
                yield int(line.split()[1])


def run_counted(program, problems, folder, isa):
    """What the program prints for every pass it called: row, pass, outputs."""
    callgrind = ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}", f"--dump-after={COUNTED}",
                 f"--callgrind-out-file={folder}/counts"]
    environment = dict(os.environ, LD_BIND_NOW="1", OMP_NUM_THREADS="1", **({"TARN_ISA": isa} if isa else {}))
    done = subprocess.run(callgrind + [program, "--threads", "1", "--calls", "1", *problems], env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"counts.py: {done.stderr.strip().splitlines()[-1]}")
    return [line.rsplit(",", 2) for line in done.stdout.splitlines()]


def counts(program, problems, isa=None):
    """(row, pass, outputs, instructions) of every pass of every problem."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        passes = run_counted(program, problems, folder, isa)
        found = list(dumped_counts(folder))[:len(passes)]
    if len(found) != len(passes):
        sys.exit(f"counts.py: {len(passes)} passes, but {len(found)} counts")
    return [(row, which, int(outputs), count) for (row, which, outputs), count in zip(passes, found)]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("row", "pass", "outputs", "instructions", "instructions_per_output"))
    for row, which, outputs, count in counts(sys.argv[1], sys.argv[2:]):
        table.writerow((row, which, outputs, count, f"{count / outputs:.2f}"))


if __name__ == "__main__":
    main()
