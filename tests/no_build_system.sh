#!/usr/bin/env bash
# One line compiles the library and a program: no build system, no generated file. Kernels for vectors are left out here, to
# build in less time; those for AVX-512, which no other test compiles where the machine has none, are compiled by both compilers.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

flags="-O1 -Wall -Wextra -Wpedantic -Werror -ffp-contract=off -Iinclude"
for compiler in gcc clang; do
    echo "-- $compiler"
    # shellcheck disable=SC2086
    $compiler $flags -DTARN_NO_AVX2 src/*.c src/*/*.c tests/consumer/consumer.c -o "$tmp/consumer"
    "$tmp/consumer"
    for source in src/kernel/*avx512*.c; do
        # shellcheck disable=SC2086
        $compiler $flags -DTARN_WITH_AVX512 -c "$source" -o "$tmp/kernels.o"
    done
done
