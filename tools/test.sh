#!/usr/bin/env bash
# usage: tools/test.sh <stage>...      stages: the presets of CMakePresets.json, docs, python, explorer, browser, wasm
# Runs the stages in turn, stops at the first that fails, and ends with a summary.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)
stage=
results=
finish() {
    status=$?
    printf '\n%s' "$results"
    if [ $status -eq 0 ]; then
        echo "tarn: all stages passed ($*) in $((SECONDS / 60)) min $((SECONDS % 60)) s"
    else
        echo "tarn: stage $stage FAILED after $((SECONDS / 60)) min $((SECONDS % 60)) s"
    fi
}
trap 'finish "$@"' EXIT

test_preset() {
    local log=build/test-$1.log run=() families=()
    case $1 in # kernels that cannot run here are compiled once, by tests/no_build_system.sh
    release | clang | asan-vectors) families=(-DTARN_AVX512="$(tools/has_avx512.sh)") ;;
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

for stage; do
    printf '\n==== %s ====\n' "$stage"
    began=$SECONDS
    case $stage in
    docs)
        tools/site.sh build/site
        summary="$(find build/site -maxdepth 1 -name '*.html' | wc -l) pages, no warnings"
        ;;
    python)
        tools/python.sh test | tee build/test-python.log
        summary=$(grep -E ' (passed|failed)' build/test-python.log | tail -n 1)
        ;;
    explorer | browser | wasm)
        mkdir -p build
        [ "$stage" = wasm ] || tools/explorer.sh build
        tools/explorer.sh "${stage/explorer/test}" | tee "build/test-$stage.log"
        summary=$(grep -cE '^ *✔|^ok |passed' "build/test-$stage.log")' passed'
        ;;
    *) test_preset "$stage" ;;
    esac
    results+="$stage: $summary ($((SECONDS - began)) s)"$'\n'
done
