#!/usr/bin/env python3
"""usage: tools/coverage.py [--missed PATTERN]

Prints lines, branches and conditions (MC/DC: each shown to decide by itself) that the tests reached in each file of src/, from the
profiles in build/coverage/profiles/, and fails below the levels of tests/coverage.txt. --missed lists the places of the files
that a pattern names instead.
"""

import argparse
import fnmatch
import glob
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "coverage"
KINDS = ["lines", "branches", "mcdc"]


def measure(*options):
    """What llvm-cov says of every file. The shared library has all of the library, the program the rest."""
    profile = BUILD / "merged.profdata"
    subprocess.run(["llvm-profdata-19", "merge", "--failure-mode=all", "-o", profile, *glob.glob(str(BUILD / "profiles" / "*.profraw"))],
                   check=True)
    out = subprocess.run(["llvm-cov-19", "export", *options, "-instr-profile", profile, BUILD / "libtarn.so", "-object", BUILD / "tarn"],
                         check=True, stdout=subprocess.PIPE).stdout
    return {str(pathlib.Path(file["filename"]).relative_to(ROOT)): file for file in json.loads(out)["data"][0]["files"]
            if file["filename"].startswith(str(ROOT / "src"))}


def levels():
    """(pattern, per cent of each kind) rows; the first that names a file counts."""
    rows = (line.split() for line in (ROOT / "tests" / "coverage.txt").read_text().split("\n"))
    return [(row[0], list(map(float, row[1:]))) for row in rows if row and row[0] != "#"]


def table(files):
    status, rows = 0, levels()
    print(f"{'':32}{'lines':>16}{'branches':>16}{'conditions':>16}")
    for name, file in sorted(files.items()):
        counts = [file["summary"][kind] for kind in KINDS]
        least = next((level for pattern, level in rows if fnmatch.fnmatch(name, pattern)), [0, 0, 0])
        below = [kind for kind, count, level in zip(KINDS, counts, least) if count["count"] and count["percent"] < level]
        cells = (f"{c['covered']:5}/{c['count']:<5}{c['percent']:4.0f}%" if c["count"] else "" for c in counts)
        print(f"{name:32}" + "".join(f"{cell:>16}" for cell in cells) + (f"  BELOW: {', '.join(below)}" if below else ""))
        status |= bool(below)
    for kind in KINDS:
        counts = [file["summary"][kind] for file in files.values()]
        covered, count = sum(c["covered"] for c in counts), sum(c["count"] for c in counts)
        print(f"{kind}: {covered} of {count}, {100 * covered / max(count, 1):.1f} %")
    return status


def missed(files, pattern):
    """Branches that were never taken one way, at line:column, and decisions with conditions that nothing showed."""
    for name, file in sorted(files.items()):
        if not fnmatch.fnmatch(name, pattern):
            continue
        text = (ROOT / name).read_text().split("\n")
        sides = {}
        for line, column, _, _, yes, no, *_ in file["branches"]: # of several compilations of a line, any will do
            counts = sides.setdefault((line, column), [0, 0])
            counts[0] += yes
            counts[1] += no
        for (line, column), (yes, no) in sorted(sides.items()):
            if not (yes and no):
                way = "never reached" if not (yes or no) else "never true" if not yes else "never false"
                print(f"{name}:{line}:{column}: {way}: {text[line - 1].strip()}")
        for line, _, _, _, *_, conditions in file.get("mcdc_records", []):
            if not all(conditions):
                print(f"{name}:{line}: conditions {conditions}: {text[line - 1].strip()}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed")
    options = parser.parse_args()
    sys.exit(missed(measure(), options.missed) if options.missed else table(measure("-summary-only")))
