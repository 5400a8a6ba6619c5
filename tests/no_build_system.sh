#!/usr/bin/env bash
# One line compiles the library and a program: no build system, no generated file. Kernels for vectors are left out here, and nothing
# is optimised, to build in less time. Those for AVX-512 are compiled here where the machine has none, so that no other test does, and
# clang reads them here alone.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

flags="-O0 -Wall -Wextra -Wpedantic -Werror -ffp-contract=off -Iinclude"
# shellcheck disable=SC2086
gcc $flags -DTARN_NO_AVX2 src/*.c src/*/*.c tests/consumer/consumer.c -o "$tmp/consumer"
"$tmp/consumer"
for source in src/kernel/*avx512*.c; do
    echo "-- $source"
    # shellcheck disable=SC2086
    [ "$(tools/has_avx512.sh)" = ON ] || gcc $flags -c "$source" -o "$tmp/kernels.o"
    # shellcheck disable=SC2086
    clang $flags -fsyntax-only "$source" # which gives all of its warnings
done
