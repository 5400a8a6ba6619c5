#!/usr/bin/env bash
# The benchmark runs, on tiny problems: every pass in both layouts with its bound, numbers where numbers belong,
# errors within what the types allow; and its report is written. No time can fail it.
set -euo pipefail

source=${TARN_SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
build=${TARN_BUILD_DIR:-$source/build}
bench=$build/bench/bench
export OMP_WAIT_POLICY=passive # other tests run beside this one
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "bench_smoke.sh: $*" >&2
    exit 1
}

run() { # run <csv> <argument>...
    local csv=$1
    shift
    "$bench" --quick --threads 2 --csv "$csv" "$@" >"$tmp/table" || fail "$* does not run"
}

# check <csv> <greatest error> <pass>...: every line is whole and plausible, and no pass is missing in any
# layout, with any number of threads, nor is its bound.
check() {
    python3 - "$@" <<'END' || fail "$1"
import csv, math, sys
path, most_error, *passes = sys.argv[1:]
lines = list(csv.DictReader(line for line in open(path) if not line.startswith("#")))
assert lines, "no line"
for line in lines:
    least, median, most = (float(line[c]) for c in ("min_ns", "median_ns", "max_ns"))
    error = float(line["error"])
    assert line["who"] in ("tarn", "bound") and line["threads"] in "12" and int(line["rounds"]) >= 1, line
    assert 0 < least <= median <= most < math.inf and line["detail"] and None not in line, line
    assert line["pass"] == "plan" or int(line["bytes"]) > 0, line
    assert 0 <= error <= float(most_error), line
for row in {line["row"] for line in lines}:
    found = {(l["pass"], l["threads"], l["who"], l["layout"]) for l in lines if l["row"] == row}
    for threads in "12":
        for name in passes:
            for kind in (("bound", "-"), ("tarn", "nchw"), ("tarn", "nhwc")):
                assert (name, threads, *kind) in found, (row, name, threads, kind)
END
}

echo '-- all passes, layouts and threads'
# Kernels, strides, paddings, dilations and sizes that differ, so that no two are taken for each other.
for problem in 'max k2,3s2,1p1:0,0:1e1,2 f32 1x3x9x8' 'min a3,2 f64 2x2x7x5' 'max d1 k3s2 ties=first f32 2x2x11'; do
    run "$tmp/max.csv" "$problem"
    check "$tmp/max.csv" 1e-6 fwd train indices jvp bwd bwd_x
done
for problem in 'avg k3,2s2,1p1:0,0:1 f32 1x2x9x7' 'smooth k2s1 beta=2 f32 1x2x5x6' 'avg d3 global f64 2x3x2x3x4' \
    'smooth k3s2p1 f64 1x2x6x5' 'avg k3s2p1 nopad f32 1x2x7x6' 'smooth k3s2p1 nopad f32 1x2x7x6'; do
    run "$tmp/sum.csv" "$problem"
    check "$tmp/sum.csv" 1e-6 fwd jvp bwd
done
grep -q ',plan,1,tarn,-,' "$tmp/max.csv" || fail 'planning is not measured'

echo '-- narrow types round, integers do not err'
run "$tmp/bf16.csv" 'avg k3s1 bf16 1x2x6x6' 'smooth k2 f16 1x2x6x6'
check "$tmp/bf16.csv" 0.01 fwd jvp bwd
run "$tmp/u8.csv" 'avg k3s2p1 u8 1x2x9x9' 'max k2 i16 1x2x6x6'
check "$tmp/u8.csv" 0 fwd

echo '-- rows'
"$bench" --list >"$tmp/rows"
[ "$(wc -l <"$tmp/rows")" -ge 90 ] || fail 'rows are missing'
[ -z "$(cut -d, -f1,2 "$tmp/rows" | sort | uniq -d)" ] || fail 'two rows have one name'
run "$tmp/row.csv" o1.max2x2s2.tiny1x1x4x4 o2
check "$tmp/row.csv" 1e-6
grep -q '^o2.avg2x2s2.tiny1x1x4x4,bwd,1,tarn,nchw,' "$tmp/row.csv" || fail 'a row is missing'
[ "$("$bench" --calls 1 --pass bwd_x o1)" = o1.max2x2s2.tiny1x1x4x4,bwd_x,16 ] || fail '--calls'
for wrong in 'no-such-row' 'max k2s2' '--no-such-option'; do
    if "$bench" --quick "$wrong" >/dev/null 2>&1; then fail "$wrong is accepted"; fi
done

echo '-- report'
report() { python3 -B "$source/bench/report/bench_report.py" "$@"; }
says() { grep -qF -- "$1" "$tmp/report/table.md" || fail "the report does not say: $1"; }
mkdir "$tmp/report"
cp "$tmp/row.csv" "$tmp/report/core.csv"
report "$tmp/report" >/dev/null
says '| o1.max2x2s2.tiny1x1x4x4 | fwd | nchw |'
says '- a planned call on 1x1x4x4 at most 50 ns: **'
[ -n "$(report --slug "$tmp/row.csv")" ] || fail 'no name for the CPU'

# Times made up, so that it is known what follows from them: one row won 4:1 in nchw, one lost 2:1; the geometric mean is
# the square root of 2. Two layouts, two peers, of which the faster counts; a bound that is 95 % of one row's time.
header=row,pass,threads,who,layout,median_ns,min_ns,max_ns,rounds,bytes,error,detail
cat >"$tmp/report/core.csv" <<END
# cpu: Some CPU (family 1, model 2), threads: 1
# last-level cache: 1000 bytes
$header
a.big,fwd,1,bound,-,95,95,95,3,5000,0,-
a.big,fwd,1,tarn,nchw,100,90,110,3,5000,0,kernel
a.big,train,1,tarn,nchw,140,90,110,3,5000,0,kernel
b.small,fwd,1,bound,-,10,10,10,3,500,0,-
b.small,fwd,1,tarn,nchw,100,90,110,3,500,0,kernel
END
cat >"$tmp/report/peers.csv" <<END
$header
a.big,fwd,1,bound,-,95,95,95,3,5000,0,-
a.big,fwd,1,tarn,nchw,100,90,110,3,5000,0,
a.big,fwd,1,tarn,nhwc,200,90,110,3,5000,0,
a.big,fwd,1,torch,nchw,9000,90,110,3,5000,0,
a.big,fwd,1,onednn,nhwc,400,90,110,3,5000,0,
b.small,fwd,1,bound,-,10,10,10,3,500,0,-
b.small,fwd,1,tarn,nchw,100,90,110,3,500,0,
b.small,fwd,1,torch,nchw,50,40,60,3,500,0,
sweep.max.f32.k3,fwd,1,tarn,nchw,100,90,110,3,500,0,
sweep.max.f32.k3,fwd,1,opencv,nchw,150,90,110,3,500,0,
sweep.max.f32.k31,fwd,1,tarn,nchw,160,90,110,3,500,0,
sweep.max.f32.k31,fwd,1,opencv,nchw,155,90,110,3,500,0,
END
report "$tmp/report" >/dev/null
says 'each row at least as fast as the fastest peer in its best layout: **not met: 1 of 2**'
says '  - `b.small` fwd: 100 ns, torch/nchw 50 ns (0.50x)'
says 'nchw, 1 T: geometric mean 1.41x the fastest peer (at least 2): **not met**'
says 'nhwc, 1 T: geometric mean 1.00x the fastest peer (at least 2): **not met**'
says 'nchw, 1 T: geometric mean 6.7x PyTorch in nchw, 2 rows (at least 10): **not met**'
says 'nchw, 1 T: rows beyond the last-level cache at 90 % of the bound or better: **met**'
says 'k = 31 at most 1.5 times k = 3: **not met**'
says 'ahead of OpenCV at every k: **not met: 1 of 2**'
says 'nchw: train at most 1.3x fwd: **not met**'
says '| a.big | fwd | 95 ns | 100 ns (90 ns .. 110 ns) | 200 ns (90 ns .. 110 ns) | onednn/nhwc 400 ns'
[ "$(report --slug "$tmp/report/core.csv")" = some-cpu-family-1-model-2 ] || fail 'the name for the CPU'
[ "$(ls "$tmp/report" | tr '\n' ' ')" = 'bound.svg core.csv peers.csv peers.svg table.md window-size.svg ' ] || fail 'the files'
python3 -c 'import sys, xml.dom.minidom as dom; [dom.parse(name) for name in sys.argv[1:]]' "$tmp"/report/*.svg
