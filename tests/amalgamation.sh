#!/usr/bin/env bash
# The library as one file: gcc and clang compile it without a warning, and it gives the bits of the build; also with parts left out.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
build=${TARN_BUILD_DIR:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

build/venv/bin/python tools/amalgamate.py "$tmp"
flags="-std=c11 -O0 -Wall -Wextra -Werror -ffp-contract=off -DTARN_NO_AVX2 -I$tmp"
expected=$("$build/tests/hashes" | tail -n 1)
small='-DTARN_NO_F16 -DTARN_NO_BF16 -DTARN_NO_F64 -DTARN_NO_SMOOTH -DTARN_NO_LP -DTARN_NO_THREADS'
# shellcheck disable=SC2086
for compiler in gcc clang; do
    $compiler $flags "$tmp/tarn.c" tests/hashes.c -Itests -pthread -o "$tmp/hashes"
    [ "$("$tmp/hashes" | tail -n 1)" = "$expected" ] || { echo "$compiler: tarn.c gives other bits than the library" >&2 && exit 1; }
    $compiler $flags $small "$tmp/tarn.c" tests/consumer/consumer.c -o "$tmp/consumer"
    "$tmp/consumer"
done
