#!/usr/bin/env bash
# usage: tools/test_amalgamation.sh [full]
# The library as one file: gcc and clang read it without a warning, also with parts left out. full: it is compiled, which takes minutes, and
# gives the bits of the build.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
build=${TARN_BUILD_DIR:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

build/venv/bin/python tools/amalgamate.py "$tmp"
flags="-std=c11 -Wall -Wextra -Werror -ffp-contract=off -I$tmp"
small='-DTARN_NO_AVX2 -DTARN_NO_F16 -DTARN_NO_BF16 -DTARN_NO_F64 -DTARN_NO_SMOOTH -DTARN_NO_LP -DTARN_NO_THREADS'
# shellcheck disable=SC2086
for compiler in gcc clang; do
    $compiler $flags -fsyntax-only "$tmp/tarn.c"
    $compiler $flags $small -fsyntax-only "$tmp/tarn.c"
    [ "${1:-}" = full ] || continue
    $compiler $flags -O1 -Itests "$tmp/tarn.c" tests/hashes.c -pthread -o "$tmp/hashes"
    "$tmp/hashes" | diff - <("$build/tests/hashes") || { echo "$compiler: tarn.c gives other bits than the library" >&2 && exit 1; }
    $compiler $flags $small -O1 "$tmp/tarn.c" tests/consumer/consumer.c -o "$tmp/consumer"
    "$tmp/consumer"
    size "$tmp/hashes" "$tmp/consumer"
done
