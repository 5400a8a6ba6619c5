#!/usr/bin/env bash
# usage: tools/python.sh <install|wheel|check-wheel|test|suites|differential|dask|mpi|pyramid>
#   install  the package into build/venv, with NumPy
#   wheel    a wheel and a source distribution into build/dist
#   check-wheel  the same; then auditwheel must call the wheel manylinux, and abi3audit clean
#   suites <checkout> [suite]...  PyTorch's own tests of pooling, inside tarn.torch.patch()
#   test     install without the vector kernels, optimised lightly, with all that the tests need, and run them
#   differential [cases]  install, and compare so many random calls (100000) with PyTorch's
#   dask     install, and run the long tests of tarn.dask
#   mpi      install, and run examples/mpi_pool.py on 1, 2, 4 and 7 ranks
#   pyramid  install, and kill drivers and workers of pyramids, so many times (20); check their metadata
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/venv/bin
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
[ -x $venv/python ] || python3 -m venv build/venv

# Installs what is missing; asks the network only then.
need() {
    local missing=() requirement
    for requirement; do
        $venv/python - "$requirement" <<'PYTHON' || missing+=("$requirement")
import sys
from importlib.metadata import version
name, _, wanted = sys.argv[1].partition("==")
sys.exit(not (wanted in ("", version(name).partition("+")[0])))
PYTHON
    done 2>/dev/null
    [ ${#missing[@]} -eq 0 ] || $venv/pip install -q --disable-pip-version-check "${missing[@]}"
}

install() { # install <build folder> [argument of pip]...
    need scikit-build-core numpy
    $venv/pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
        --force-reinstall -Cbuild-dir="$1" -Ccmake.define.TARN_WERROR=ON "${@:2}" .
}

make_wheel() {
    need scikit-build-core build
    rm -rf build/dist
    $venv/python -m build --no-isolation --outdir build/dist .
}

case ${1:-} in
install) install build/python ;;
wheel) make_wheel ;;
check-wheel)
    need auditwheel abi3audit
    make_wheel
    $venv/python -m auditwheel show build/dist/*.whl | tee build/dist/auditwheel.txt
    grep -q '"manylinux_' build/dist/auditwheel.txt
    $venv/python -m abi3audit --strict --summary build/dist/*.whl
    ;;
suites)
    need torch==2.13.0 numpy pytest hypothesis expecttest
    install build/python
    $venv/python tools/torch_suites.py "${@:2}"
    ;;
test)
    need torch==2.13.0 ml_dtypes hypothesis pytest pytest-xdist mypy jax onnx onnxscript zarr ome-zarr-models distributed xarray astropy scikit-image
    # The package is tested here; the kernels, which give the same bits, by the other stages.
    install build/python-test -Ccmake.define.TARN_AVX2=OFF -Ccmake.define.CMAKE_C_FLAGS_RELEASE=-O1
    # Two at a time: the differential test alone takes half of the time.
    $venv/python -m pytest -q -n 2 --doctest-modules python/tests --pyargs tarn
    ;;
differential)
    need torch==2.13.0 pytest
    install build/python
    $venv/python -m pytest -q -s python/tests/test_differential.py --cases "${2:-100000}"
    ;;
mpi)
    need mpi4py
    install build/python
    for ranks in 1 2 4 7; do # as root only if we are; more ranks than cores are fine
        mpirun $([ "$(id -u)" -ne 0 ] || echo --allow-run-as-root) --oversubscribe -n $ranks $venv/python examples/mpi_pool.py
    done
    ;;
dask)
    need ml_dtypes pytest pytest-xdist distributed
    install build/python
    TARN_LONG_TESTS=1 $venv/python -m pytest -q -n 2 python/tests/scale/test_dask.py
    $venv/python -m pytest -q python/tests/scale/killed_worker.py
    ;;
pyramid)
    need pytest zarr distributed ngff-zarr jsonschema
    install build/python
    $venv/python -m pytest -q python/tests/test_pyramid_kill.py --kills "${2:-20}"
    $venv/python -m pytest -q python/tests/scale/strict_schema.py
    ;;
*)
    sed -n '2,11s/^# //p' "$0" >&2
    exit 2
    ;;
esac
