#!/bin/sh
# usage: tools/setup.sh <group>...     groups: build python test pictures docs coverage analysis format bench peers counts
#                                              population pyramid neon avx512 machines explorer node browser mpi deb abi amalgamation
# Installs the Debian packages that are missing, and says nothing if none is. The groups peers and population also
# make a Python environment in build/peers, the group pyramid one in build/pyramid, the groups test, docs and amalgamation one in build/venv, the group avx512 a Linux in build/bochs.
set -eu

missing=
need() { # need <package> <command that succeeds if it is there>
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
has() { command -v "$1"; }
includes() { echo "#include <$1>" | gcc -fsyntax-only -x c -; }
links() { echo 'int main(void) { return 0; }' | clang "$@" -x c - -o /dev/null; }
python_header='import os, sysconfig
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))'

fail() {
    echo "tools/setup.sh: $*" >&2
    exit 1
}

apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" \
        >"$log" 2>&1 </dev/null
}
install_missing() {
    [ -n "$missing" ] || return 0
    has apt-get >/dev/null || fail "please install:$missing (there is no apt-get here to do it)"
    sudo=
    if [ "$(id -u)" -ne 0 ]; then
        has sudo >/dev/null || fail "please install as root:$missing"
        sudo=sudo
        [ -t 0 ] || sudo='sudo -n' # Nobody is there to type a password.
    fi
    echo "tools/setup.sh: installing$missing"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    apt update || true # Old package lists may still do; if not, the install says so.
    # shellcheck disable=SC2086
    apt install -y --no-install-recommends $missing ||
        fail "apt-get could not install$missing: $(grep . "$log" | tail -n 1)"
    missing=
}

# Runtimes of clang are packaged by version: ask the clang that is there.
need_clang_runtimes() {
    version=$(clang -dumpversion | cut -d. -f1)
    runtime=libclang-rt-$version-dev
    apt-cache show "$runtime" >/dev/null 2>&1 || runtime=libclang-common-$version-dev
    need "$runtime" links -fsanitize=memory
    need "libomp-$version-dev" links -fopenmp
}

need_wasm_runtime() {
    need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev-wasm32" \
        test -e "$(clang --target=wasm32-wasi -rtlib=compiler-rt -print-libgcc-file-name)"
}

# What the comparison runs against, in an environment of its own. A library that has no package for
# this machine is left out of the comparison, which says so.
peer_packages='numpy torch==2.13.0 onnx onnxruntime openvino opencv-python-headless scipy tinybrain'
population_packages='numpy torch==2.13.0 onednn-devel'
pyramid_packages='numpy zarr dask distributed ome-zarr ngff-zarr tensorstore xarray tinybrain scikit-image'
make_peers() { # make_peers <folder> <package>...
    peers=$1
    shift
    [ -x "$peers/bin/python" ] || python3 -m venv "$peers"
    for package; do
        "$peers/bin/pip" show --quiet "${package%%=*}" >/dev/null 2>&1 && continue
        echo "tools/setup.sh: installing $package"
        "$peers/bin/pip" install --quiet "$package" || echo "tools/setup.sh: $package is left out" >&2
    done
}

# Python packages in a folder of the build's own, as far as they are missing.
make_venv() { # make_venv <modules, with commas> <package>...
    venv=$(dirname "$0")/../build/venv
    "$venv/bin/python" -c "import $1" >/dev/null 2>&1 && return 0
    shift
    echo "tools/setup.sh: installing $* into build/venv"
    output=$({ python3 -m venv "$venv" && "$venv/bin/pip" -q install "$@"; } 2>&1) ||
        fail "pip could not install $*: $(echo "$output" | grep . | tail -n 1)"
}

# zig brings clang with the headers and libraries of systems that Debian has no cross compiler for.
make_zig() {
    zig=$(dirname "$0")/../build/machines/zig
    "$zig/bin/python" -c 'import ziglang' >/dev/null 2>&1 && return 0
    echo 'tools/setup.sh: installing ziglang into build/machines/zig'
    output=$({ python3 -m venv "$zig" && "$zig/bin/pip" -q install ziglang; } 2>&1) ||
        fail "pip could not install ziglang: $(echo "$output" | grep . | tail -n 1)"
}

# What Bochs boots. Packages are unpacked, not installed: this machine keeps its own kernel.
unpack() { # unpack <package>
    (cd "$bochs" && apt-get -qq download "$1" && dpkg -x "$1"_*.deb . && rm "$1"_*.deb) >/dev/null 2>&1 ||
        fail "apt-get could not download $1"
}
make_bochs() {
    bochs=$(dirname "$0")/../build/bochs
    [ -x "$bochs/bin/busybox" ] && ls "$bochs"/boot/vmlinuz-* >/dev/null 2>&1 && return 0
    echo 'tools/setup.sh: unpacking a Linux into build/bochs'
    mkdir -p "$bochs"
    unpack busybox-static
    unpack "$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)"
}

[ $# -gt 0 ] || fail 'usage: tools/setup.sh <build|python|test|pictures|docs|coverage|analysis|format|bench|peers|counts|population|pyramid|neon|avx512|machines|explorer|node|browser|mpi|deb|abi|amalgamation>...'
for group; do
    case $group in
    build)
        need make has make
        need cmake has cmake
        need gcc has gcc
        need libc6-dev includes stdlib.h
        need libpng-dev includes png.h
        need zlib1g-dev includes zlib.h
        ;;
    test)
        need g++ has g++
        need clang has clang++
        need libgmp-dev includes gmp.h
        need libmpfr-dev includes mpfr.h
        need pkg-config has pkg-config
        need python3 has python3
        need binutils has readelf
        need valgrind has valgrind
        need python3-venv python3 -c 'import ensurepip'
        ;;
    pictures) need python3 has python3 ;;
    python)
        need python3 has python3
        need python3-venv python3 -c 'import ensurepip, venv'
        need python3-dev python3 -c "$python_header"
        ;;
    docs)
        need doxygen has doxygen
        need python3-venv python3 -c 'import ensurepip, venv'
        ;;
    coverage)
        need clang-19 has clang-19
        need llvm-19 has llvm-cov-19
        need libclang-rt-19-dev sh -c 'echo "int main(void) { return 0; }" | clang-19 -fprofile-instr-generate -x c - -o /dev/null'
        ;;
    analysis)
        need cppcheck has cppcheck
        need clang-tidy-19 has clang-tidy-19
        ;;
    format) need clang-format has clang-format ;;
    bench) need python3 has python3 ;;
    peers)
        need python3-venv python3 -c 'import ensurepip, venv'
        need libdnnl-dev includes oneapi/dnnl/dnnl.h
        need libxnnpack-dev includes xnnpack.h
        need libpthreadpool-dev includes pthreadpool.h
        ;;
    counts) need valgrind has valgrind ;;
    population | pyramid)
        need python3-venv python3 -c 'import ensurepip, venv'
        need python3-dev python3 -c "$python_header"
        ;;
    neon)
        need gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
        need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdlib.h
        need qemu-user has qemu-aarch64
        ;;
    avx512)
        need bochs has bochs
        # Any screen does for apt; this one is small.
        need bochs-term test -e "/usr/lib/$(uname -m)-linux-gnu/bochs/plugins/libbx_term_gui.so"
        need isolinux test -e /usr/lib/ISOLINUX/isolinux.bin
        need syslinux-common test -e /usr/lib/syslinux/modules/bios/ldlinux.c32
        need xorriso has xorriso
        need cpio has cpio
        ;;
    machines)
        need gcc-i686-linux-gnu has i686-linux-gnu-gcc
        need libc6-dev-i386-cross test -e /usr/i686-linux-gnu/include/stdlib.h
        need gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
        need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdlib.h
        need gcc-arm-linux-gnueabihf has arm-linux-gnueabihf-gcc
        need libc6-dev-armhf-cross test -e /usr/arm-linux-gnueabihf/include/stdlib.h
        need gcc-riscv64-linux-gnu has riscv64-linux-gnu-gcc
        need libc6-dev-riscv64-cross test -e /usr/riscv64-linux-gnu/include/stdlib.h
        need gcc-s390x-linux-gnu has s390x-linux-gnu-gcc
        need libc6-dev-s390x-cross test -e /usr/s390x-linux-gnu/include/stdlib.h
        need gcc-powerpc64le-linux-gnu has powerpc64le-linux-gnu-gcc
        need libc6-dev-ppc64el-cross test -e /usr/powerpc64le-linux-gnu/include/stdlib.h
        need gcc-mingw-w64-x86-64-posix has x86_64-w64-mingw32-gcc-posix
        need musl-tools has musl-gcc
        need qemu-user has qemu-s390x
        need wine64 test -x /usr/lib/wine/wine64
        need python3-venv python3 -c 'import ensurepip, venv'
        need clang has clang
        need lld has wasm-ld
        need wasi-libc test -e /usr/include/wasm32-wasi/stdlib.h
        need nodejs has node
        ;;
    mpi) need openmpi-bin has mpirun ;;
    deb)
        need debhelper has dh
        need dpkg-dev has dpkg-buildpackage
        need fakeroot has fakeroot
        ;;
    abi) need abigail-tools has abidiff ;;
    amalgamation) need python3-venv python3 -c 'import ensurepip, venv' ;;
    explorer)
        need python3 has python3
        need clang has clang
        need lld has wasm-ld
        need zopfli has zopfli
        need binaryen has wasm-opt
        need wasi-libc test -e /usr/include/wasm32-wasi/stdlib.h
        ;;
    node) need nodejs has node ;;
    browser) need chromium has chromium ;;
    *) fail "unknown group '$group'" ;;
    esac
done
install_missing
case " $* " in
*' test '*)
    need_clang_runtimes
    install_missing
    make_venv 'numpy, pytest, clang.cindex' numpy pytest libclang
    ;;
esac
case " $* " in
*' amalgamation '*) make_venv 'clang.cindex' libclang ;;
esac
case " $* " in
*' docs '*) make_venv 'sphinx, furo, myst_parser, sphinx_copybutton' sphinx furo myst-parser sphinx-copybutton ;;
esac
case " $* " in
*' explorer '* | *' machines '*)
    need_wasm_runtime
    install_missing
    ;;
esac
case " $* " in
# shellcheck disable=SC2086
*' peers '*) make_peers build/peers $peer_packages ;;
esac
case " $* " in
# shellcheck disable=SC2086
*' population '*) make_peers build/peers $population_packages ;;
esac
case " $* " in
# shellcheck disable=SC2086
*' pyramid '*) make_peers build/pyramid $pyramid_packages ;;
esac
case " $* " in
*' machines '*) make_zig ;;
esac
case " $* " in
*' avx512 '*) make_bochs ;;
esac
