#!/usr/bin/env bash
# usage: tools/explorer.sh build|test|browser|wasm
# build:   build/explorer/tarn-explorer.html, tarn inside as WebAssembly
# test:    the page in Node: its bits beside the native library's (which must be built), links, size
# browser: the page in Chromium
# wasm:    tests of the library itself, compiled to WebAssembly and run in Node
set -euo pipefail
cd "$(dirname "$0")/.."

out=build/explorer
page=$out/tarn-explorer.html
compile() { # compile <target>...
    cmake -Wno-dev -S explorer -B $out/wasm --toolchain "$PWD/cmake/wasm32-wasi.cmake" >/dev/null
    cmake --build $out/wasm --parallel "$(nproc)" --target "$@" >/dev/null
}

case ${1:-} in
build)
    compile explorer
    # A tenth smaller. The module does not tell which features it was compiled for.
    wasm-opt -Oz --enable-{simd,bulk-memory,sign-ext,mutable-globals,nontrapping-float-to-int} \
        $out/wasm/explorer.wasm -o $out/explorer.wasm
    python3 -B explorer/bundle.py $out/explorer.wasm $page
    ;;
test)
    openmp=$(grep -q '^TARN_OPENMP:BOOL=ON' build/CMakeCache.txt && echo -fopenmp || true)
    gcc -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -Iinclude -Itests explorer/tests/bits.c build/libtarn.a $openmp -pthread -lm -o $out/bits
    node --test --test-reporter=spec explorer/tests/node.mjs
    ;;
browser)
    $out/bits 11 500 >$out/bits.bin
    node explorer/tests/browser.mjs $page $out
    ;;
wasm)
    compile tests
    for name in test_golden test_seeds hashes; do
        echo "$name: $(node --no-warnings explorer/run_wasi.mjs $out/wasm/$name.wasm | tail -n 1)"
    done
    ;;
*)
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
    ;;
esac
