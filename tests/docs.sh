#!/usr/bin/env bash
# Everything public is documented, and every reference in the documentation leads somewhere.
set -euo pipefail

cd "${TARN_SOURCE_DIR:-$(dirname "$0")/..}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

{
    cat docs/Doxyfile
    echo "OUTPUT_DIRECTORY = $tmp"
} | doxygen -q -
[ -s "$tmp/index.html" ]
