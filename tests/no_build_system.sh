#!/usr/bin/env bash
# One line compiles the library, all families of kernels, and a program: no build system, no generated file, no definition.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for cc in gcc clang; do
    echo "-- $cc"
    "$cc" -O0 -Wall -Wextra -Wpedantic -Werror -ffp-contract=off -Iinclude src/*.c src/*/*.c tests/consumer/consumer.c \
        -o "$tmp/consumer-$cc"
    "$tmp/consumer-$cc"
done
