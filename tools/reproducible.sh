#!/usr/bin/env bash
# usage: tools/reproducible.sh
# Builds the libraries and the program of this tree twice, in folders of other names and lengths, under other user settings, and
# compares the bytes. Nothing is taken from a compiler's cache.
set -euo pipefail
cd "$(dirname "$0")/.."

tree=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
build() { # build <folder> <jobs> <locale> <timezone>
    mkdir -p "$work/$1"
    (cd "$tree" && git ls-files -z | xargs -0 tar -c) | tar -x -C "$work/$1"
    cd "$work/$1"
    export LC_ALL=$3 TZ=$4
    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DTARN_TESTS=OFF -DTARN_EXAMPLES=OFF >/dev/null
    cmake --build build --parallel "$2" --target tarn tarn_static tarn_tool tarn_manual >/dev/null
    cd "$tree"
}
jobs=${JOBS:-$(nproc)}
(build a "$jobs" C UTC)
(umask 077 && build 'another folder/with a longer name' 1 C.UTF-8 Asia/Kathmandu)

status=0
for file in libtarn.so libtarn.a tarn tarn.1; do
    first=$work/a/build/$file second="$work/another folder/with a longer name/build/$file"
    if cmp "$first" "$second"; then
        echo "$file: same $(wc -c <"$first") bytes, sha256 $(sha256sum <"$first" | cut -c 1-16)..."
    else
        status=1
    fi
done
exit $status
