#!/usr/bin/env python3
"""usage: tools/mutate.py [--count N] [--seed S] [--only PATTERN] [--list]

Changes the library in small ways, one at a time, and runs the tests that should notice: a mutant that no test kills shows what is
not tested. Mutants are drawn from the seed, so that a run can be repeated or continued. Works on a copy in build/mutation/; the
report is build/mutation/report.txt. --list prints the mutants and runs nothing.
"""

import argparse
import fnmatch
import itertools
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutation"

# Which tests should notice a change, the quickest first.
GROUPS = [
    ("src/spec/*", ["test_golden", "test_exact_sums", "test_exact_lp", "test_exact_smooth", "test_seeds", "test_identities"]),
    ("src/graph/*", ["test_graph_text", "test_graph_names", "test_exact_graph", "test_graph", "test_graph_limits"]),
    ("src/kernel/*", ["test_row_ops", "test_row_types", "test_kernels"]),
    ("src/shape.c src/layout.c src/plan.c src/run.c src/choose.c src/helpers.c src/text.c src/decimal.c src/window.h",
     ["test_shape", "test_text", "test_decimal", "test_bad_inputs", "test_errors", "test_float_state", "test_identities",
      "test_kernels"]),
]

# What is changed into what. Each place where a pattern stands is a mutant.
CHANGES = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
           (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* (?=[a-z(])", " + "),
           (r"\+ 1\b", "+ 2"), (r"- 1\b", "- 0"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\b0;", "1;"),
           (r"if \((?!.*;)(?=[^;]*\)$)", "if (!("), (r"\bmin_i64\b", "max_i64"), (r"\bmax_i64\b", "min_i64")]


def tests_of(path):
    return next(tests for patterns, tests in GROUPS if any(fnmatch.fnmatch(path, p) for p in patterns.split()))


def sources():
    for patterns, _ in GROUPS:
        for pattern in patterns.split():
            yield from sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern) if p.suffix in (".c", ".h", ".inc"))


def without_comments(text):
    """Comments and strings become blanks, so that no mutant lies in them."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|^#.*?(?<!\\)$', lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                  flags=re.S | re.M)


def mutants_in(path):
    text = (ROOT / path).read_text()
    bare = without_comments(text).split("\n")
    for number, (line, code) in enumerate(zip(text.split("\n"), bare)):
        for pattern, new in CHANGES:
            for match in re.finditer(pattern, code):
                changed = line[:match.start()] + new + line[match.end():]
                if new.endswith("(!("):
                    changed = changed[:len(changed) - len(changed.rsplit(")", 1)[1]) - 1] + "))" + changed.rsplit(")", 1)[1]
                yield path, number, line, changed


def draw(only, chance):
    """All mutants, shuffled, the groups in turn: kernels have most lines."""
    groups = {}
    for path in sources():
        if fnmatch.fnmatch(path, only):
            groups.setdefault(tuple(tests_of(path)), []).extend(mutants_in(path))
    for mutants in groups.values():
        chance.shuffle(mutants)
    rows = itertools.zip_longest(*groups.values())
    return [mutant for row in rows for mutant in row if mutant]


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def prepare():
    tree = WORK / "tree"
    files = run(["git", "ls-files"], cwd=ROOT).stdout.split("\n")
    for name in filter(None, files):
        target = tree / name
        if (ROOT / name).is_file() and (not target.exists() or target.read_bytes() != (ROOT / name).read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    done = run(["cmake", "-S", tree, "-B", WORK / "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O1", "-DTARN_AVX2=OFF",
                "-DTARN_SHORT_TESTS=ON", "-DTARN_TESTS=ON", "-DTARN_TOOL=OFF", "-DTARN_EXAMPLES=OFF", "-DTARN_WERROR=OFF"])
    if done.returncode:
        sys.exit(done.stdout)
    return tree


def build(tests):
    return run(["cmake", "--build", WORK / "build", "--parallel", "2", "--target", *tests]).returncode == 0


def killer(tests, limits):
    """The test that notices, or None."""
    for test in tests:
        begin = time.monotonic()
        try:
            status = run([WORK / "build" / "tests" / test], cwd=WORK / "tree", timeout=limits.get(test, 600)).returncode
        except subprocess.TimeoutExpired:
            return f"{test} (time)"
        if status:
            return test
        limits.setdefault(test, 20 + 10 * (time.monotonic() - begin))
    return None


def judge(tree, mutant, limits):
    path, number, _, changed = mutant
    target = tree / path
    before = target.read_text()
    lines = before.split("\n")
    lines[number] = changed
    target.write_text("\n".join(lines))
    tests = tests_of(path)
    verdict = "does not compile" if not build(tests) else killer(tests, limits) or "SURVIVES"
    target.write_text(before)
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="*")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    found = draw(options.only, random.Random(options.seed))
    if options.list:
        for path, number, line, changed in found[:options.count]:
            print(f"{path}:{number + 1}: {line.strip()}  ->  {changed.strip()}")
        print(f"{min(options.count, len(found))} of {len(found)}")
        return 0
    tree = prepare()
    limits, counts = {}, {"killed": 0, "survived": 0, "not compiled": 0}
    tests = sorted({test for path, *_ in found for test in tests_of(path)})
    if not build(tests) or killer(tests, limits):
        sys.exit("the tests fail before anything is changed")
    with open(WORK / "report.txt", "a") as report:
        for mutant in found:
            if counts["killed"] + counts["survived"] == options.count:
                break
            path, number, line, changed = mutant
            verdict = judge(tree, mutant, limits)
            kind = {"SURVIVES": "survived", "does not compile": "not compiled"}.get(verdict, "killed")
            counts[kind] += 1
            text = f"{path}:{number + 1}: {line.strip()}  ->  {changed.strip()}  [{verdict}]"
            print(text, flush=True)
            print(text, file=report, flush=True)
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
