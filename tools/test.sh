#!/usr/bin/env bash
# usage: tools/test.sh <stage>... [-- <stage>...]      stages: the presets of CMakePresets.json, docs, python, explorer, browser, wasm
# Runs the stages in turn, stops at the first that fails, and ends with a summary. Stages behind -- run beside those before it, so
# that no core waits for a stage that has work for one only; then each writes to build/test-<stage>.log, of which a failure is shown.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)

test_preset() {
    local log=build/ctest-$1.log run=() families=() began=$SECONDS built
    case $1 in # kernels that cannot run here are compiled once, by tests/no_build_system.sh; clang's of AVX-512 run in make test-vectors
    release | *-vectors) families=(-DTARN_AVX512="$(tools/has_avx512.sh)") ;;
    esac
    cmake --preset "$1" -DTARN_TESTS=ON -DTARN_WERROR=ON ${families[@]+"${families[@]}"}
    cmake --build --preset "$1" --parallel "$jobs"
    built=$SECONDS
    # Thread sanitizers of this age die of address layouts that newer kernels choose at random.
    if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then
        run=(setarch -R)
    fi
    ${run[@]+"${run[@]}"} ctest --preset "$1" --output-on-failure -j "$jobs" | tee "$log"
    summary="$(grep 'tests passed' "$log"); built in $((built - began)) s, tested in $((SECONDS - built)) s"
}

run_stage() {
    case $1 in
    docs)
        tools/site.sh build/site
        summary="$(find build/site -maxdepth 1 -name '*.html' | wc -l) pages, no warnings"
        ;;
    python)
        tools/python.sh test | tee build/pytest.log
        summary=$(grep -E ' (passed|failed)' build/pytest.log | tail -n 1)
        ;;
    explorer | browser | wasm)
        [ "$1" = wasm ] || tools/explorer.sh build
        tools/explorer.sh "${1/explorer/test}" | tee "build/explorer-$1.log"
        summary=$(grep -cE '^ *✔|^ok |passed' "build/explorer-$1.log")' passed'
        ;;
    *) test_preset "$1" ;;
    esac
}

# Seconds of a processor that this shell and all it has started took so far.
cpu_seconds() {
    times >"$results/times$BASHPID"
    awk -F '[ ms]+' '{ sum += 60 * ($1 + $3) + $2 + $4 } END { print int(sum) }' "$results/times$BASHPID"
}

# What a stage says goes to the terminal if there is one lane, else to a log.
run_lane() { # run_lane <results> <stage>...
    local began cpu summary=
    trap '[ $? -eq 0 ] || echo "$stage" >>"$results/failed"' EXIT
    for stage in "${@:2}"; do
        began=$SECONDS
        cpu_seconds >"$1.cpu"
        cpu=$(<"$1.cpu")
        printf '==== %s ====\n' "$stage"
        if [ "$lanes" -eq 1 ]; then
            run_stage "$stage"
        else
            run_stage "$stage" >"build/test-$stage.log" 2>&1
        fi
        cpu_seconds >"$1.cpu"
        echo "$stage: $summary ($((SECONDS - began)) s, $(($(<"$1.cpu") - cpu)) s of a processor)" | tee -a "$1"
    done
}

finish() { # the lanes that still run end with the one that failed
    trap - EXIT
    local failed took="$((SECONDS / 60)) min $((SECONDS % 60)) s" pid
    failed=$(head -n 1 "$results/failed" 2>/dev/null || true)
    for pid in $(jobs -p); do
        kill -- "-$pid" 2>/dev/null || true
    done
    [ -z "$failed" ] || [ "$lanes" -eq 1 ] || tail -n 100 "build/test-$failed.log"
    printf '\n'
    cat "$results"/lane[0-9] 2>/dev/null || true
    rm -rf "$results"
    [ -n "$all_passed" ] || { echo "tarn: stage ${failed:-(interrupted)} FAILED after $took"; exit 1; }
    echo "tarn: all stages passed ($*) in $took"
}

mkdir -p build
results=$(mktemp -d)
all_passed=
trap 'finish "$@"' EXIT
trap 'exit 130' INT TERM
set -m # each lane is a group of processes
lanes=$(printf '%s\n' "$@" -- | grep -cx -e --)
lane=()
for word in "$@" --; do
    if [ "$word" = -- ]; then
        run_lane "$results/lane$(jobs -p | wc -l)" "${lane[@]}" </dev/null &
        lane=()
    else
        lane+=("$word")
    fi
done
for _ in $(jobs -p); do
    wait -n
done
all_passed=1
