#!/usr/bin/env bash
# One line compiles the library and a program: no build system, no generated file. Kernels for vectors are left out here, to
# build in less time. Those for AVX-512 are compiled here where the machine has none, as no other test does it then.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

flags="-O1 -Wall -Wextra -Wpedantic -Werror -ffp-contract=off -Iinclude"
# shellcheck disable=SC2086
gcc $flags -DTARN_NO_AVX2 src/*.c src/*/*.c tests/consumer/consumer.c -o "$tmp/consumer"
"$tmp/consumer"
[ "$(tools/has_avx512.sh)" = OFF ] || exit 0
for source in src/kernel/*avx512*.c; do
    echo "-- $source"
    # shellcheck disable=SC2086
    gcc $flags -c "$source" -o "$tmp/kernels.o"
    # shellcheck disable=SC2086
    clang $flags -fsyntax-only "$source" # which gives all of its warnings
done
