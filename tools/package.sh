#!/usr/bin/env bash
# usage: tools/package.sh dist|test-dist|deb|abi
# dist:       build/dist/tarn-VERSION.tar.gz, of what is committed
# test-dist:  builds the library and the program from that file alone, and runs them
# deb:        Debian packages in build/deb/, by packaging/debian (TARN_FLAGS="-DTARN_AVX2=OFF": more options for CMake)
# abi:        the shared library beside that of another commit (BASE=tag), by abidiff; fails if the ABI is not compatible
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "tools/package.sh: $*" >&2
    exit 1
}
part() { sed -n "s/^#define TARN_VERSION_$1 \([0-9]*\).*/\1/p" include/tarn.h; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
name=tarn-$version
jobs=${JOBS:-$(nproc)}

dist() {
    mkdir -p build/dist
    git archive --format=tar --prefix="$name/" HEAD | gzip -n >build/dist/"$name.tar.gz"
    echo "build/dist/$name.tar.gz"
}

unpack() { # unpack <folder>
    rm -rf "$1"
    mkdir -p "$1"
    tar -xzf build/dist/"$name.tar.gz" -C "$1"
}

test_dist() {
    unpack build/dist/test
    local tree=build/dist/test/$name
    cmake -S "$tree" -B "$tree/build" -DTARN_TESTS=OFF -DTARN_EXAMPLES=OFF -DTARN_AVX2=OFF >/dev/null
    cmake --build "$tree/build" --parallel "$jobs" >/dev/null
    [ "$("$tree/build/tarn" --version)" = "tarn $version" ] || fail 'the program of the tarball has another version'
    "$tree/build/tarn" check max k3s2p1 f32 2x3x20x20
}

deb() {
    unpack build/deb
    cp -a packaging/debian "build/deb/$name/debian"
    (cd "build/deb/$name" && dpkg-buildpackage -us -uc -b)
    ls build/deb/*.deb
}

# Without vectors and hardly optimised: the ABI is the same and the build takes less time.
build_abi() { # build_abi <source> <build>
    cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-g -DTARN_TESTS=OFF -DTARN_TOOL=OFF -DTARN_EXAMPLES=OFF -DTARN_AVX2=OFF >/dev/null
    cmake --build "$2" --parallel "$jobs" --target tarn >/dev/null
}

abi() {
    local base=${BASE:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
    [ -n "$base" ] || fail 'there is no release yet to compare with: say BASE=commit'
    rm -rf build/abi/base
    mkdir -p build/abi/base
    git archive "$base" | tar -x -C build/abi/base
    build_abi build/abi/base build/abi/before
    build_abi . build/abi/now
    abidiff --headers-dir1 build/abi/base/include --headers-dir2 include build/abi/before/libtarn.so build/abi/now/libtarn.so ||
        [ $? -eq 4 ] || fail "the ABI is not compatible with that of $base" # 4: additions only
    echo "the ABI is compatible with that of $base"
}

case ${1:-} in
dist) dist ;;
test-dist) dist && test_dist ;;
deb) dist && deb ;;
abi) abi ;;
*)
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
    ;;
esac
