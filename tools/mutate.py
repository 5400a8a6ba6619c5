#!/usr/bin/env python3
"""usage: tools/mutate.py [--count N] [--seed S] [--only PATTERNS] [--tests TESTS] [--skip K] [--jobs J] [--list]

Changes the library in small ways, one at a time, and runs the tests that should notice: a mutant that no test kills shows what is
not tested. Mutants are drawn from the seed, so that a run can be repeated; --skip continues one. --list prints them and runs nothing.
--only 'src/plan.c src/graph/*' draws from these files; --tests 'test_shape, test_kernels 1 false' asks what these tests notice by themselves.

Works on a copy in build/mutation/, compiled with -O1 and without AVX-512, which shares its code with AVX2, with the short tests that
sanitized builds have. Of a mutant the files that hold it are compiled again, and linked before the library into one test program after
the other, until one fails: first those that killed mutants of the same file, then the quickest. Survivors that tests/mutants.txt names,
with a reason why no test can tell, are no failure; any other is. The report is build/mutation/report.txt.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutation"
BUILD = WORK / "build"

# Which tests should notice a change, the quickest first. Words behind a name are its arguments.
SWEEPS = [f"test_kernels 1 {sweep}" for sweep in
          "13x13 small long weights 3-D adaptive nan gradients 2-D mode skip false pieces found rank huge whole near large 1-D".split()]
GROUPS = [
    ("src/spec/*", ["test_golden", "test_seeds", "test_corners", *SWEEPS[:13], "test_exact_sums", "test_exact_lp", "test_exact_smooth", "test_identities"]),
    ("src/graph/*", ["test_graph_corners", "test_graph_names", "replay_graph fuzz/corpus/graph", "test_graph_text", "test_graph_limits",
                     "test_graph", "test_exact_graph"]),
    ("src/kernel/*", [*SWEEPS, "test_row_types", "test_row_ops", "test_row_winners"]),
    ("src/piece.c src/skip.c", ["test_corners", "test_text", "test_pieces 2000", "test_kernels 1 skip", "test_errors", "test_pieces 20000",
                                "test_kernels 1 pieces"]),
    ("src/text.c src/decimal.c", ["replay_problem fuzz/corpus/problem", "test_decimal", "test_text"]),
    ("src/shape.c src/layout.c src/plan.c src/run.c src/helpers.c src/window.h src/checked.h src/executor.c src/error.c src/threads.c "
     "src/dispatch.c src/choose.c src/families.c",
     ["test_bad_inputs", "test_errors", "test_corners", "test_golden", "test_shape", "test_threads", "test_pieces 20000", *SWEEPS[:13],
      "test_float_state", "replay_pool fuzz/corpus/pool", "test_graph", "test_identities"]),
]

# What is changed into what. Each place where a pattern stands is a mutant.
CHANGES = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
           (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r"(?<=[a-z0-9_)\]]) \* (?=[a-z(0-9])", " + "),
           (r"\+ 1\b", "+ 2"), (r"- 1\b", "- 0"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\b0;", "1;"),
           (r"if \((?!.*;)(?=[^;]*\)$)", "if (!("), (r"\bmin_i64\b", "max_i64"), (r"\bmax_i64\b", "min_i64")]


only_tests = [] # of --tests


def tests_of(path):
    return only_tests or next(tests for patterns, tests in GROUPS if any(fnmatch.fnmatch(path, p) for p in patterns.split()))


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


def draw(only, seed):
    """All mutants, shuffled, the groups in turn: kernels have most lines. A group's order is its own, so that --only a group draws what
    the whole draws of it."""
    groups = {}
    for path in sources():
        if any(fnmatch.fnmatch(path, p) for p in only.split()):
            groups.setdefault(tuple(tests_of(path)), []).extend(mutants_in(path))
    for tests, mutants in groups.items():
        random.Random(f"{seed} {tests}").shuffle(mutants)
    rows = itertools.zip_longest(*groups.values())
    return [mutant for row in rows for mutant in row if mutant]


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", **more)


def prepare(programs, jobs):
    """A copy of the tree, and its release with these test programs."""
    for name in filter(None, run(["git", "ls-files"], cwd=ROOT).stdout.split("\n")):
        source, target = ROOT / name, WORK / name
        if source.is_file() and (not target.exists() or target.read_bytes() != source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    BUILD.mkdir(exist_ok=True)
    if not (BUILD / "venv").exists():
        (BUILD / "venv").symlink_to(ROOT / "build" / "venv")
    for words in (["cmake", "--preset", "release", "-DTARN_TESTS=ON", "-DTARN_WERROR=ON", "-DTARN_EXAMPLES=OFF",
                   "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG", "-DTARN_SHORT_TESTS=ON", "-DTARN_AVX512=OFF",
                   "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
                  ["cmake", "--build", "build", "--parallel", str(jobs), "--target", *programs]):
        done = run(words, cwd=WORK)
        if done.returncode:
            sys.exit(done.stdout)


def make_room(job):
    """What one of the jobs changes and writes: sources, objects, programs."""
    room = WORK / f"job{job}"
    shutil.rmtree(room, ignore_errors=True)
    for folder in "src", "include":
        shutil.copytree(WORK / folder, room / folder)
    return room


def compilations():
    """Of each file of the library: its command, and the files that it reads."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words, source = shlex.split(entry["command"]), pathlib.Path(entry["file"])
        target = words[words.index("-o") + 1]
        if "tarn_objects.dir" in target:
            read = (BUILD / (target + ".d")).read_text().replace("\\\n", " ").split()
            found[str(source.relative_to(WORK))] = words + ["-w"], {os.path.relpath(BUILD / f, WORK) for f in read[1:]}
    return found


def holders(path, commands):
    """The files of the library to compile again. Of row operations, which each family compiles for itself, one family does: tests
    judge each alone."""
    names = [name for name, (_, read) in commands.items() if path in read]
    if not names:
        sys.exit(f"no file of the library reads {path}")
    return [name for name in names if name.replace("portable", "avx2") == name or name.replace("portable", "avx2") not in names]


def compile_mutant(path, commands, room):
    """The objects that hold it, or None if it does not compile."""
    objects = []
    for name in holders(path, commands):
        words = [word.replace(f"{WORK}/", f"{room}/") for word in commands[name][0]]
        words[words.index("-o") + 1] = str(room / f"{len(objects)}.o")
        if run(words, cwd=BUILD).returncode:
            return None
        objects.append(words[words.index("-o") + 1])
    return objects


def link(program, objects, room):
    """Before the library, which then gives the rest."""
    words = shlex.split((BUILD / "CMakeFiles" / f"{program}.dir" / "link.txt").read_text())
    words[words.index("-o") + 1] = str(room / "program")
    first = next(k for k, word in enumerate(words) if word.endswith(".o"))
    return run(words[:first] + objects + words[first:], cwd=BUILD).returncode == 0


def run_test(test, objects, seconds, room):
    """Its status, and the seconds it took of a processor."""
    program, *arguments = test.split()
    if not link(program, objects, room):
        sys.exit(f"{program} cannot be linked with the mutant")
    with open(os.devnull, "w") as nothing:
        started = subprocess.Popen(["prlimit", f"--cpu={seconds}", room / "program", *arguments], cwd=WORK, stdout=nothing, stderr=nothing)
        waits = threading.Timer(100 * seconds, started.kill) # of those that sleep
        waits.start()
        _, status, usage = os.wait4(started.pid, 0)
        waits.cancel()
        started.returncode = os.waitstatus_to_exitcode(status)
        return started.returncode, usage.ru_utime


def killer(tests, objects, limits, kills, room):
    """The test that notices, or None. How long a test may take is what it takes of the library as it is."""
    for test in sorted(tests, key=lambda test: -kills[test]): # which keeps their order otherwise
        if test not in limits:
            status, seconds = run_test(test, [], 600, room)
            if status:
                sys.exit(f"{test} fails before anything is changed")
            limits[test] = int(5 + 5 * seconds)
        status, _ = run_test(test, objects, limits[test], room)
        if status:
            kills[test] += 1
            return test + (" (time)" if status in (-9, -24) else f" (signal {-status})" if status < 0 else "")
    return None


def judge(mutant, commands, limits, kills, room):
    path, number, _, changed = mutant
    target = room / path
    before = target.read_text()
    lines = before.split("\n")
    lines[number] = changed
    target.write_text("\n".join(lines))
    try:
        objects = compile_mutant(path, commands, room)
    finally:
        target.write_text(before)
    return "does not compile" if objects is None else killer(tests_of(path), objects, limits, kills[path], room) or "SURVIVES"


def described(mutant):
    path, _, line, changed = mutant
    return f"{path}: {line.strip()}  ->  {changed.strip()}"


def excused():
    """Mutants that behave as the original; each line is followed by one that says why."""
    text = (ROOT / "tests" / "mutants.txt").read_text()
    return {line for line in text.split("\n") if "  ->  " in line}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="*", help="patterns of files, separated by blanks")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tests", default="", help="tests, separated by commas")
    options = parser.parse_args()
    only_tests.extend(test.strip() for test in options.tests.split(",") if test.strip())
    found = draw(options.only, options.seed)[options.skip:]
    if options.list:
        for mutant in found[:options.count]:
            print(described(mutant))
        print(f"{min(options.count, len(found))} of {len(found)}")
        return 0
    prepare(sorted({test.split()[0] for mutant in found for test in tests_of(mutant[0])}), options.jobs)
    counts = judge_all(found, options)
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return counts["survived"] > 0


def judge_all(found, options):
    """Until enough are judged that compile. Jobs take one mutant after the other from the list."""
    commands, limits, reasons = compilations(), {}, excused()
    kills = collections.defaultdict(collections.Counter) # of each file: how many of its mutants each test has killed
    counts = {"killed": 0, "excused": 0, "survived": 0, "not compiled": 0}
    rest, one_at_a_time = iter(found), threading.Lock()

    def work(job):
        room = make_room(job)
        while True:
            with one_at_a_time:
                mutant = next(rest, None)
                if not mutant or sum(counts.values()) - counts["not compiled"] >= options.count:
                    return
            verdict = judge(mutant, commands, limits, kills, room)
            if verdict == "SURVIVES" and described(mutant) in reasons:
                verdict = "excused"
            kind = {"SURVIVES": "survived", "does not compile": "not compiled", "excused": "excused"}.get(verdict, "killed")
            with one_at_a_time:
                counts[kind] += 1
                for file in sys.stdout, report:
                    print(f"{described(mutant)}  [line {mutant[1] + 1}: {verdict}]", file=file, flush=True)

    with open(WORK / "report.txt", "a") as report, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(work, job) for job in range(options.jobs)]:
            done.result()
    return counts


if __name__ == "__main__":
    sys.exit(main())
