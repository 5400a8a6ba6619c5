#!/usr/bin/env bash
# usage: tools/bench.sh core [arguments of build/bench/bench]
#        tools/bench.sh peers [arguments of bench/peers/run_peers.py]
#        tools/bench.sh counts [rows]
# Runs a measurement and writes numbers, tables and plots to a folder named after the CPU, below
# $RESULTS (build/bench/results). What `make bench`, `make bench-peers` and `make bench-counts` call.
set -euo pipefail
cd "$(dirname "$0")/.."

results=${RESULTS:-build/bench/results}
program=build/bench/bench
counted_rows='a2 b1 c1 d3 e1 f1 h l.u8max3 n.lse o1'

# Files a CSV under the name of the CPU that it tells, then writes the tables and plots again.
file_results() { # file_results <csv>
    local folder
    folder=$results/$(python3 bench/report/bench_report.py --slug "$1")
    mkdir -p "$folder"
    cp "$1" "$folder/"
    python3 bench/report/bench_report.py "$folder"
}

run_core() {
    "$program" --csv build/bench/core.csv "$@"
    file_results build/bench/core.csv
}

# The C libraries are reached through small libraries of ours; one that does not build is left out.
build_natives() {
    mkdir -p build/bench/peers
    local flags='-std=c11 -O2 -Wall -Wextra -shared -fPIC -fopenmp'
    # shellcheck disable=SC2086
    gcc $flags bench/peers/peer_onednn.c -o build/bench/peers/libpeer_onednn.so -ldnnl ||
        echo 'oneDNN is left out: version 2 is needed' >&2
    # shellcheck disable=SC2086
    gcc $flags bench/peers/peer_xnnpack.c -o build/bench/peers/libpeer_xnnpack.so -lXNNPACK -lpthreadpool -lm ||
        echo 'XNNPACK is left out: its interface has changed' >&2
}

run_peers() {
    if [ build/libtarn.a -nt build/bench/libtarn_bench_parts.so ]; then
        echo 'build/bench/libtarn_bench_parts.so is older than the library: make bench-peers builds both' >&2
        exit 1
    fi
    build_natives
    build/peers/bin/python bench/peers/run_peers.py --build build --csv build/bench/peers.csv "$@"
    file_results build/bench/peers.csv
}

# Instructions that a program executes, counted by callgrind: the same in every run.
instructions() { # instructions <row> <pass> <calls>
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" --threads 1 --pass "$2" --calls "$3" "$1" 2>&1 >/dev/null |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

# Eleven calls less one call are ten calls, whatever setting up costs.
run_counts() {
    local row pass outputs one eleven
    echo 'row,pass,outputs,instructions_per_output'
    "$program" --threads 1 --calls 1 "$@" | while IFS=, read -r row pass outputs; do
        one=$(instructions "$row" "$pass" 1)
        eleven=$(instructions "$row" "$pass" 11)
        awk -v row="$row" -v pass="$pass" -v n="$outputs" -v i="$((eleven - one))" \
            'BEGIN { printf "%s,%s,%d,%.2f\n", row, pass, n, i / 10 / n }'
    done
}

task=${1:-}
[ $# -eq 0 ] || shift
case $task in
core) run_core "$@" ;;
peers) run_peers "$@" ;;
counts)
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- $counted_rows
    run_counts "$@" | tee build/bench/counts.csv
    ;;
*)
    sed -n '2,4s/^# //p' "$0" >&2
    exit 1
    ;;
esac
