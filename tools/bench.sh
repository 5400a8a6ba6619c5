#!/usr/bin/env bash
# usage: tools/bench.sh core [arguments of build/bench/bench]
#        tools/bench.sh peers [arguments of bench/peers/run_peers.py]
#        tools/bench.sh counts [rows]
#        tools/bench.sh population [arguments of bench/population/run_population.py]
#        tools/bench.sh pyramid [arguments of bench/pyramid/run_pyramid.py]
# Runs a measurement and writes numbers, tables and plots to a folder named after the CPU, below
# $RESULTS (build/bench/results). What `make bench`, `make bench-peers`, `make bench-counts`,
# `make bench-population` and `make bench-pyramid` call. A population has SEED=n (1) and COUNT=n (120); it may be another
# build's: BUILD=<its directory> (build), PEERS=<Python environment with the peers> (build/peers).
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

check_parts() { # check_parts <build> <target of make>
    if [ "$1/libtarn.a" -nt "$1/bench/libtarn_bench_parts.so" ]; then
        echo "$1/bench/libtarn_bench_parts.so is older than the library: make $2 builds both" >&2
        exit 1
    fi
}

run_peers() {
    check_parts build bench-peers
    build_natives
    build/peers/bin/python bench/peers/run_peers.py --build build --csv build/bench/peers.csv "$@"
    file_results build/bench/peers.csv
}

# The Python package on the library of this build, without installing it: the training step runs through it.
build_package() { # build_package <python> <build> <folder>
    local source headers flags='-std=gnu11 -O2 -shared -fPIC -fvisibility=hidden -ffp-contract=off -fopenmp'
    source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$2/CMakeCache.txt")
    headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    rm -rf "$3"
    mkdir -p "$3/tarn"
    cp -r "$source/python/tarn" "$3/"
    cp "$source/include/tarn.h" "$3/tarn/"
    # shellcheck disable=SC2086
    gcc $flags -I"$source/include" -I"$headers" "$source"/python/src/*.c "$2/libtarn.a" -lm -lpthread \
        -o "$3/tarn/_core.abi3.so" || echo 'the training step is left out: the package does not build' >&2
}

# libdnnl finds its own libraries by our rpath only if it is of the old kind.
build_onednn3() { # build_onednn3 <peers> <folder>
    mkdir -p "$2"
    gcc -std=c11 -O2 -Wall -Wextra -shared -fPIC -I"$1/include" bench/population/peer_onednn3.c \
        -o "$2/libpeer_onednn3.so" -L"$1/lib" -ldnnl -Wl,--disable-new-dtags,-rpath,"$1/lib" ||
        echo 'oneDNN is left out: onednn-devel is not installed' >&2
}

run_population() {
    local build peers csv folder compiler seed=${SEED:-1} name
    name=population-$seed$(sed -n 's/.*--threads[ =]\([0-9]*\).*/-threads\1/p' <<<"$*")
    build=$(realpath "${BUILD:-build}")
    peers=$(realpath "${PEERS:-build/peers}")
    csv=$build/bench/$name.csv
    check_parts "$build" bench-population
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
    build_package "$peers/bin/python" "$build" "$build/bench/python"
    build_onednn3 "$peers" "$build/bench/peers"
    # Freed memory is kept, so that peers that allocate their results do not fault it in again in every
    # call. SYCL, which oneDNN runs on, is told where its driver for CPUs is.
    MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2000000000 MALLOC_TOP_PAD_=67108864 OMP_NUM_THREADS=1 \
        OCL_ICD_FILENAMES=$peers/lib/libintelocl.so PYTHONPATH=$build/bench/python \
        TARN_CACHE_DIR=$build/bench/cache "$peers/bin/python" bench/population/run_population.py --build "$build" --csv "$csv" \
        --compiler "$("$compiler" --version | head -n 1)" --seed "$seed" ${COUNT:+--count "$COUNT"} "$@"
    folder=$results/$(python3 bench/report/bench_report.py --slug <(grep '^#' "$csv"))
    mkdir -p "$folder"
    cp "$csv" "$folder/"
    python3 bench/population/summary.py "$csv" | tee "$folder/$name.md"
}

run_pyramid() {
    local folder csv=build/bench/pyramid.csv
    build_package build/pyramid/bin/python build build/bench/python
    PYTHONPATH=build/bench/python build/pyramid/bin/python bench/pyramid/run_pyramid.py --csv "$csv" "$@"
    folder=$results/$(python3 bench/report/bench_report.py --slug <(grep '^#' "$csv"))
    mkdir -p "$folder"
    cp "$csv" "$folder/"
    build/pyramid/bin/python bench/pyramid/run_pyramid.py --table "$csv" | tee "$folder/pyramid.md"
}

task=${1:-}
[ $# -eq 0 ] || shift
case $task in
core) run_core "$@" ;;
peers) run_peers "$@" ;;
counts)
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- $counted_rows
    tools/counts.py "$program" "$@" | tee build/bench/counts.csv
    ;;
population) run_population "$@" ;;
pyramid) run_pyramid "$@" ;;
*)
    sed -n '2,6s/^# //p' "$0" >&2
    exit 1
    ;;
esac
