"""Arguments, exit statuses, and what is printed, to the letter."""

import json
import pathlib
import re
import subprocess

import numpy as np
import pytest

from conftest import PROGRAM, SOURCE

COMMANDS = ["max", "min", "avg", "smooth", "lp", "adaptive-max", "adaptive-min", "adaptive-avg", "adaptive-smooth",
            "adaptive-lp", "global-max", "global-min", "global-avg", "global-smooth", "global-lp", "sum", "mode", "shape", "explain",
            "check", "bench", "completion"]


@pytest.fixture
def x(tarn):
    array = np.random.default_rng(0).standard_normal((2, 6, 6)).astype("f4")
    np.save(tarn.folder / "x.npy", array)
    return array


def test_shape(good):
    assert good("shape", "avg", "--kernel", 3, "--stride", 2, "--pad", 1, "1x64x112x112").out == (
        "output   1x64x56x56 f32\n"
        "axis 0   112 cells, 56 windows of 3 taps, stride 2, dilation 1, padding 1:1; 2 to 3 taps are real\n"
        "axis 1   112 cells, 56 windows of 3 taps, stride 2, dilation 1, padding 1:1; 2 to 3 taps are real\n"
        "divisor  9\n")
    assert good("shape", "adaptive-avg", "--out", "7,5", "20x10", "--dtype", "u8").out == (
        "output   7x5 u8\n"
        "axis 0   20 cells, 7 windows; 3 to 4 taps\n"
        "axis 1   10 cells, 5 windows; 2 taps\n"
        "divisor  6 to 8\n")
    assert good("shape", "global-max", "--flat", "2x3x4x5").out == (
        "output   2x3 f32\n"
        "axis 0   4 cells, 1 windows of 4 taps, stride 1, dilation 1, padding 0:0; 4 taps are real\n"
        "axis 1   5 cells, 1 windows of 5 taps, stride 1, dilation 1, padding 0:0; 5 taps are real\n")
    assert json.loads(good("shape", "--op=avg", "-k2", "--divisor=3", "--json", "4x4").out) == {
        "shape": [2, 2], "dtype": "f32", "divisor": [3, 3],
        "axes": [{"size": 4, "windows": 2, "kernel": 2, "real_taps": [2, 2]}] * 2}


def test_shape_of_a_file_and_of_files_with_channels_last(good, x):
    assert good("shape", "-k2", "x.npy").out.startswith("output   2x3x3 f32\n")
    assert good("shape", "-k2", "--layout", "last", "1x8x6x3").out.startswith("output   1x4x3x3 f32\n")


def test_problem_strings(good, tarn, x):
    expected = good("shape", "max", "-k3", "-s2", "-p1", "1x64x112x112").out
    assert good("shape", "max k3s2p1 f32 1x64x112x112").out == expected
    assert good("shape", "max", "k3s2p1", "f32", "1x64x112x112").out == expected
    good("avg", "x.npy", "-o", "a.npy", "-k2", "--no-count-include-pad", "-p1")
    good("avg", "x.npy", "-o", "b.npy", "--problem", "avg k2p1 nopad f32 2x6x6")
    assert (tarn.folder / "a.npy").read_bytes() == (tarn.folder / "b.npy").read_bytes()
    result = tarn("max", "x.npy", "-o", "c.npy", "--problem", "max k2 f32 2x6x7")
    assert (result.status, result.err) == (2, "tarn: x.npy: is 2x6x6, but the problem string says 2x6x7\n")
    result = tarn("shape", "max k3 f32 9x9", "-k3")
    assert (result.status, result.err) == (
        2, "tarn: --kernel: does not go with a problem string, which says it all\n")


def test_spatial_axes(good):
    def shape(*words):
        return good("shape", *words).out.split()[1]

    assert shape("-k2", "8x8x8x8") == "8x8x4x4"
    assert shape("-k2,2,2", "8x8x8x8") == "8x4x4x4"
    assert shape("-k2", "-d1", "8x8x8x8") == "8x8x8x4"
    assert shape("-k2", "8") == "4"


@pytest.mark.parametrize("words, message", [
    (["frobnicate"], "unknown command 'frobnicate' (see tarn --help)"),
    (["help", "frobnicate"], "unknown command 'frobnicate' (see tarn --help)"),
    (["pyramid", "in.zarr", "out.zarr"], "pyramids are written by the Python package: python -m tarn pyramid"),
    (["maxx"], "unknown command 'maxx': did you mean max?"),
    (["mxa"], "unknown command 'mxa': did you mean max?"),
    (["help", "explian"], "unknown command 'explian': did you mean explain?"),
    (["average"], "unknown command 'average': did you mean avg?"),
    (["adaptve-avg"], "unknown command 'adaptve-avg': did you mean adaptive-avg?"),
    (["q"], "unknown command 'q' (see tarn --help)"),
    (["x" * 99], f"unknown command '{'x' * 60}' (see tarn --help)"),
    (["max", "x.npy", "--kernal", "3"], "unknown option --kernal: did you mean --kernel?"),
    (["max", "x.npy", "--kernel-size=3"], "unknown option --kernel-size: did you mean --kernel?"),
    (["max", "x.npy", "--padding", "3"], "unknown option --padding: did you mean --pad?"),
    (["max", "x.npy", "--strides", "3"], "unknown option --strides: did you mean --stride?"),
    (["lp", "x.npy", "--norm-type", "3"], "unknown option --norm-type: did you mean --power?"),
    (["graph", "run", "g", "--inptu", "x"], "unknown option --inptu: did you mean --input?"),
    (["shape", "avgg", "4x4", "-k2"], "'avgg' is no operator: did you mean avg?"),
    (["shape", "--op", "maximum", "4x4", "-k2"], "--op: 'maximum' is no operator: did you mean max?"),
    (["shape", "mean", "k2", "f32", "4x4"], "column 1: expected max, min, avg, sum, mode, smooth or lp: did you mean avg?"),
    (["shape", "max k2 float32 4x4"], "column 8: unknown word 'float32': did you mean f32?"),
    (["shape", "max k2 f33 4x4"], "column 8: unknown word 'f33': did you mean f32?"),
    (["shape", "max kernel=2 f32 4x4"], "column 5: unknown word 'kernel=2': did you mean k?"),
    (["shape", "avg k2 f32 4x4 divisor=3"], "column 16: unknown word 'divisor=3': did you mean div=?"),
    (["max", "x.npy", "-k2"], "--output: is missing: say -o FILE, or --text to see the numbers"),
    (["max"], "nothing to pool: tarn max in.npy -o out.npy --kernel 3 --stride 2 --pad 1"),
    (["max", "-o", "y.npy"], "nothing to pool: tarn max in.npy -o out.npy --kernel 3 --stride 2 --pad 1"),
    (["shape"], "nothing to work on: tarn shape [OPERATOR] SHAPE|FILE | PROBLEM"),
    (["shape", "max"], "max of what? tarn shape [OPERATOR] SHAPE|FILE | PROBLEM"),
    (["bench", "max"], "max of what? tarn bench [PROBLEM]... | [OPERATOR] SHAPE|FILE"),
    (["shape", "max", "k2", "x.npy"], "'x.npy' is a file: windows beside it are options, as in tarn shape max x.npy --kernel 3"),
    (["shape", "max 3 f32 4x4"], "column 11: expected one shape only (a kernel is written k3)"),
    (["shape", "max k3 f32 4,4"], "column 13: expected x between the sizes, as in 1x64x112x112"),
    (["shape", "max k3z2 f32 4x4"], "column 7: expected s, p or e after the kernel, as in k3s2p1"),
    (["shape", "max k3 f32 4x4 stride=2"], "column 16: unknown word 'stride=2': did you mean k3s2?"),
    (["x.npy", "-k2"], "the command comes before 'x.npy', as in tarn max x.npy -k 2 (see tarn --help)"),
    (["-k2", "max", "x.npy"],
     "the command comes before '-k2', as in tarn max photo.png -o small.png -k 2 (see tarn --help)"),
    (["--verson"], "unknown command '--verson': did you mean --version?"),
    (["max", "x.npy", "-kernel", "2", "--text"], "unknown option -kernel: did you mean --kernel?"),
    (["max", "x.npy", "-k2", "--vjp", "-o", "y.npy"], "--vjp: needs a value, and '-o' is an option: --vjp GY"),
    (["max", "x.npy", "-k2", "--vjp", "--text"], "--vjp: needs a value, and '--text' is an option: --vjp GY"),
    (["max", "x.npy", "-k2", "-o", "y.npy", "--text"], "--output: 'y.npy' would not hold text: say FILE.txt, or no --text"),
    (["max", "x.npy", "-k2", "--out", "3", "--text"],
     "--out: is no option of 'tarn max': say --kernel N, or call the command with adaptive- before its name"),
    (["adaptive-avg", "x.npy", "-k2", "--text"],
     "--kernel: is no option of 'tarn adaptive-avg': say --out N, the number of windows on each axis"),
    (["global-avg", "x.npy", "-k2", "--text"],
     "--kernel: is no option of 'tarn global-avg': a global window covers everything"),
    (["max", "x.npy", "-k2", "--dtype", "float32", "--text"],
     "--dtype: 'float32' is not one of f64 f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64: did you mean f32?"),
    (["max", "x.npy", "-o", "y.npy"], "--kernel: is missing: say --kernel N"),
    (["max", "x.npy", "-o"], "--output: needs a value: --output FILE"),
    (["max", "x.npy", "y.npy", "-o", "z.npy", "-k2"], "'y.npy' is one argument too many: results go to -o FILE, and lists have commas but no spaces"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "-k3"], "--kernel: is given twice"),
    (["max", "x.npy", "-o", "y.npy", "-k2.5"], "--kernel: '2.5' is not a list of integers such as 3 or 3,5"),
    (["max", "x.npy", "-o", "y.npy", "-k"], "--kernel: needs a value: --kernel N[,N...]"),
    (["max", "x.npy", "-o", "y.npy", "-k", "99999999999999999999"], "--kernel: '99999999999999999999' is too large for 64 bits"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "-s", "1,99999999999999999999"],
     "--stride: '1,99999999999999999999' is too large for 64 bits"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "-j", "99999999999999999999"],
     "--threads: '99999999999999999999' is too large for 64 bits"),
    (["shape", "-k2", "4x99999999999999999999"], "'4x99999999999999999999' is too large for 64 bits"),
    (["max", "x.npy", "-o", "y.npy", "-k2,"], "--kernel: '2,' is not a list of integers such as 3 or 3,5"),
    (["max", "x.npy", "-o", "y.npy", "-k1,1,1,1,1,1,1,1,1"], "--kernel: has more than 8 values"),
    (["max", "x.npy", "-o", "y.npy", "-k2,2", "-s1,1,1"], "--stride: has 3 values where another option has 2"),
    (["max", "x.npy", "-o", "y.npy", "-k2,2", "-d3"], "--spatial: is 3, but an option has 2 values"),
    (["max", "x.npy", "-o", "y.npy", "-k0"], "kernel 0 on axis 0 is less than 1"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "-s0"], "stride 0 on axis 0 is less than 1"),
    (["max", "x.npy", "-o", "y.npy", "-k7"], "kernel 7 does not fit axis 0: padded size is 6"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--ceil=1"], "--ceil: takes no value"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--beta", "3"], "--beta: is no option of 'tarn max' (see tarn max --help)"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--ties", "last"], "--ties: 'last' is not first|all|split"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--dtype", "f8"],
     "--dtype: 'f8' is not one of f64 f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--memory", "lots"], "--memory: 'lots' is not a size such as 256M or 4G"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--threads", "0"], "--threads: '0' is not an integer from 1 on"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--isa", "mmx"], "--isa: 'mmx' is no kernel family"),
    (["max", "x.npy", "-o", "y.gif", "-k2"],
     "--output: 'y.gif' has no extension that tarn writes: .npy .png .pbm .pgm .ppm .pnm .pam .txt"),
    (["max", "x.npy", "-o", "y.png", "-k2"],
     "--output: pictures hold u8 and u16, not f32: write .npy, or say --dtype u8"),
    (["max", "x.npy", "-o", "y.png", "-k2", "--jvp", "x.npy"],
     "--output: pictures hold u8 and u16, which a derivative is not: write .npy"),
    (["lp", "x.npy", "-o", "y.png", "-k2"], "--output: pictures hold u8 and u16, which lp is not: write .npy"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--jvp", "x.npy", "--vjp", "x.npy"], "--vjp: does not go with --jvp"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--vjp", "x.npy"], "x.npy: has size 6 on axis 1; 3 is expected"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--vjp", "x.npy", "--dtype", "i32"],
     "i32 has no derivative: say --dtype f32 to convert"),
    (["smooth", "x.npy", "-o", "y.npy", "-k2", "--beta", "x"], "--beta: 'x' is not a number"),
    (["smooth", "x.npy", "-o", "y.npy", "-k2", "--beta", "1,5"], "--beta: '1,5' is not a number"),
    (["smooth", "x.npy", "-o", "y.npy", "-k2", "--power", "3"],
     "--power: is no option of 'tarn smooth' (see tarn smooth --help)"),
    (["mode", "x.npy", "-o", "y.npy", "-k2"], "mode needs an integer dtype, x is f32 (--dtype i32 converts)"),
    (["mode", "x.npy", "-o", "y.npy", "-k2", "--jvp", "x.npy"], "--jvp: is no option of 'tarn mode' (see tarn mode --help)"),
    (["avg", "x.npy", "-o", "y.npy", "-k2", "--skip", "none"], "--skip: 'none' is neither nan nor a number"),
    (["avg", "x.npy", "-o", "y.npy", "-k2", "--min-count", "2"], "--min-count: needs --skip"),
    (["sum", "x.npy", "-o", "y.npy", "-k2", "--divisor", "2"], "--divisor: is no option of 'tarn sum' (see tarn sum --help)"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--skip", "nan"], "--skip: is no option of 'tarn lp' (see tarn lp --help)"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--beta", "3"], "--beta: is no option of 'tarn lp' (see tarn lp --help)"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--power", "two"], "--power: 'two' is not a number"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--power", "0.5"], "power 0.5 is not finite and at least 1"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--power", "1e999"], "power inf is not finite and at least 1"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--dtype", "i32"],
     "lp needs a floating dtype, x is i32 (--dtype f32 converts)"),
    (["lp", "x.npy", "-o", "y.npy", "-k2", "--no-count-include-pad"],
     "--no-count-include-pad: is no option of 'tarn lp' (see tarn lp --help)"),
    (["shape", "lp", "-k2", "--beta", "3", "4x4"], "--beta: does not go with this operator and its windows"),
    (["shape", "max", "-k2", "--power", "3", "4x4"], "--power: does not go with this operator and its windows"),
    (["shape", "lp k2 f32 4x4", "--power", "3"], "--power: does not go with a problem string, which says it all"),
    (["avg", "x.npy", "-o", "y.npy", "-k2", "--divisor", "0"], "--divisor: '0' is not an integer from 1 on"),
    (["avg", "x.npy", "-o", "y.npy", "-k2", "--count-include-pad", "--no-count-include-pad"],
     "--no-count-include-pad: contradicts --count-include-pad"),
    (["adaptive-max", "x.npy", "-o", "y.npy"], "--out: is missing: say --out N"),
    (["max", "x.npy", "-o", "y.npy", "-k2", "--wrong"], "unknown option --wrong (see tarn max --help)"),
    (["shape", "-k2", "--op", "shape", "4x4"], "--op: 'shape' is no operator"),
    (["shape", "global-max", "-k2", "4x4"], "--kernel: does not go with this operator and its windows"),
    (["max", "x.npy", "-o", "y.npy", "--problem", "avg k2 f32 2x6x6"], "--problem: says avg, but the command max"),
    (["max", "x.npy", "-o", "y.npy", "--problem", "max a2 f32 2x6x6"],
     "--problem: says adaptive-max, but the command max"),
    (["show", "global-lp", "x.npy", "-o", "y.png", "--problem", "max global f32 2x6x6"],
     "--problem: says global-max, but the command global-lp"),
    (["completion", "tcsh"], "say which shell: tarn completion bash|zsh|fish"),
])
def test_bad_usage(tarn, x, words, message):
    result = tarn(*words)
    assert (result.status, result.out, result.err) == (2, "", f"tarn: {message}\n")
    assert [p.name for p in tarn.folder.iterdir()] == ["x.npy"]


def test_errors_as_json(tarn, x):
    result = tarn("max", "x.npy", "-o", "y.npy", "-k7", "--json")
    assert json.loads(result.err) == {"error": "kernel 7 does not fit axis 0: padded size is 6", "status": 2, "axis": 0}
    (tarn.folder / "bad.npy").write_bytes(b"\x93NUMPY\1\0\xff\xff{")
    result = tarn("max", "bad.npy", "-o", "y.npy", "-k7", "--json")
    assert result.status == 1
    assert json.loads(result.err) == {
        "error": "the .npy header has 65535 bytes, but the file ends after 1", "status": 1, "file": "bad.npy",
        "offset": 8}


def test_result_as_json(good, x):
    result = good("max", "x.npy", "-o", "y.npy", "-k2", "--json")
    assert json.loads(result.out) == {"output": "y.npy", "shape": [2, 3, 3], "dtype": "f32"}


def test_silence(good, x):
    assert good("max", "x.npy", "-o", "y.npy", "-k2").out == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_parses(good, tarn, command):
    text = good(command, "--help").out
    assert text.startswith(f"tarn {command}: ") and good("help", command).out == text
    example = re.search(r"^Example: (.*)$", text, re.M).group(1)
    assert example.startswith(f"tarn {command}")
    for option in re.findall(r"(?<= )--[a-z-]+", example):
        assert option + " " in text + " "


@pytest.mark.parametrize("command", ["max", "show", "graph"])
def test_help_says_what_standard_output_gets(good, command):
    text = " ".join(good(command, "--help").out.split())
    assert "- is standard output, as .npy (show: PNG; graph dot: text)" in text


def test_every_command_is_everywhere(good):
    text = good("--help").out
    found = re.findall(r"^  ([a-z-]+)  ", text, re.M)
    assert found[: len(COMMANDS) - 1] == COMMANDS[:-1] or set(COMMANDS) <= set(found)
    manual = good("--manual").out.replace("\\-", "-")
    completions = {shell: good("completion", shell).out for shell in ("bash", "zsh", "fish")}
    for command in found:
        assert f".B tarn {command} " in manual
        options = re.findall(r"--[a-z][a-z-]*", good(command, "--help").out.split("Options:")[1])
        for option in options:
            assert option in manual and option in completions["bash"] and option in completions["zsh"]
            assert f"-l {option[2:]} " in completions["fish"]
        assert all(command in script for script in completions.values())


def test_manual_page_in_the_build_is_up_to_date(good):
    page = pathlib.Path(PROGRAM).parent / "tarn.1"
    assert page.read_text() == good("--manual").out


def test_completion_scripts_are_well_formed(good):
    script = good("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script.encode(), check=True)

    def offered(*words):
        probe = f"{script}\nCOMP_WORDS=(tarn {' '.join(words)}); COMP_CWORD={len(words)}; _tarn; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", probe], capture_output=True, check=True, cwd=good.folder).stdout.decode().split()

    (good.folder / "global.npy").touch()
    assert offered("max", "--ker") == ["--kernel"] and offered("max", "--te") == ["--text"]
    assert offered("max", "--ties", "s") == ["split"] and offered("max", "--dtype", "bf") == ["bf16"]
    assert offered("max", "--isa", "p") == ["portable"] and offered("shape", "--op", "global-m") == ["global-max", "global-min", "global-mode"]
    assert offered("help", "ex") == ["explain"] and offered("completion", "z") == ["zsh"]
    assert offered("graph", "v") == ["vjp"] and offered("graph", "run", "glo") == ["global.npy"]
    assert offered("show", "global") == ["global-max", "global-min", "global-avg", "global-sum", "global-mode", "global-smooth", "global-lp", "global.npy"]
    assert offered("show", "max", "glo") == ["global.npy"]


def test_version(good):
    header = (pathlib.Path(SOURCE) / "include/tarn.h").read_text()
    parts = [re.search(f"TARN_VERSION_{p} (\\d+)", header).group(1) for p in ("MAJOR", "MINOR", "PATCH")]
    assert good("--version").out == f"tarn {'.'.join(parts)}\n"
    assert good("version").out == good("--version").out


def test_explain(good):
    out = good("explain", "max k3s2p1 f32 1x64x112x112", "-j1").out.splitlines()
    assert out[0] == "problem  max k3s2p1 f32 1x64x112x112"
    assert out[1] == "output   1x64x56x56 f32"
    assert "threads  1" in out and "winners  200704 bytes, if saved for a later vjp" in out
    assert any(line.startswith("forward: tarn_") and "moves 4014080 bytes" in line for line in out)
    assert any("spec" in line for line in good("explain", "avg", "8x8", "-k2", "--isa=spec").out.splitlines()
               if line.startswith("forward"))
    told = json.loads(good("explain", "avg", "8x8", "-k2", "--json").out)
    assert told["output"] == [4, 4] and len(told["passes"]) == 3


@pytest.mark.parametrize("problem", ["max k3s2p1 f32 2x3x20x20", "min k2 i16 9x9", "avg k3p1 nopad bf16 3x11x12",
                                     "smooth k3s1 beta=3 f64 10x10", "lp k3s1p1 f32 2x12x12",
                                     "lp k2 p=1 f16 2x9x9", "lp a3 p=1.0625 f64 11x12", "lp global p=3 f32 3x50x50",
                                     "lp k3s1 p=1e6 f64 20x20", "lp k3s1 p=1e300 f64 20x20",
                                     "max a3 ties=all f16 4x9x20",
                                     "avg flat u8 3x5x5", "max global f32 last 2x3x8x8"])
def test_check(good, problem):
    out = good("check", problem).out.splitlines()
    assert out[0].startswith("check   ") and len(out) == 4
    assert all(line.startswith("ok      ") for line in out[1:])


@pytest.mark.parametrize("array, skipped", [
    (np.zeros((0, 4, 4), "f4"), 3), (np.zeros((4, 4)), 1), (np.full((4, 4), np.inf), 1),
    (np.arange(16.0).reshape(4, 4) * 1e300, 1)])
def test_checks_without_anything_to_compare_are_skipped(good, array, skipped):
    np.save(good.folder / "x.npy", array)
    words = [line.split()[0] for line in good("check", "max", "x.npy", "-k2").out.splitlines()[1:]]
    assert words == ["ok"] * (3 - skipped) + ["skipped"] * skipped
    told = [json.loads(line)["ok"] for line in good("check", "max", "x.npy", "-k2", "--json").out.splitlines()]
    assert told == [True] * (3 - skipped) + [None] * skipped


def test_check_of_the_picture(good):
    out = good("check", f"{SOURCE}/examples/data/tarn.pgm", "-k3", "-s2", "-p1", "--json").out
    assert [json.loads(line)["ok"] for line in out.splitlines()] == [True] * 3


@pytest.mark.parametrize("operator", ["smooth", "lp"])
def test_bench(good, operator):
    out = good("bench", "max k2 f32 8x8", "avg k2 f32 8x8").out.splitlines()
    assert out[0].split()[:2] == ["problem", "pass"]
    assert len(out) == 1 + 6 + 3 and all("f32 8x8" in line for line in out[1:])
    rows = [json.loads(line) for line in good("bench", operator, "8x8", "-k2", "--json").out.splitlines()]
    assert [row["pass"] for row in rows] == ["forward", "jvp", "vjp"]
    assert all(row["seconds"] > 0 for row in rows)


def test_printing_to_a_full_disk_fails(tarn):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "shape", "-k2", "4x4"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"standard output: cannot be written" in done.stderr


def test_the_program_alone_shows_what_it_can_do(good):
    out = good().out
    assert out.startswith("tarn ") and len(out.splitlines()) < 20
    commands = re.findall(r"^  tarn ([a-z]+)", out, re.M)
    assert {"max", "avg", "show", "shape", "explain", "graph"} <= set(commands)
    for line in re.findall(r"^  tarn ([a-z]+ .*?)  ", out, re.M):
        command, *words = line.split()
        told = good(command.rstrip(","), "--help").out
        for option in [word for word in words if word.startswith("-")]:
            assert re.search(rf"{option}[ ,]", told), line


def test_no_colours_in_pipes(tarn):
    assert "\033" not in tarn("mix").err
