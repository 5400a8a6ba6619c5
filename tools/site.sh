#!/usr/bin/env bash
# usage: tools/site.sh <folder>
# Writes the documentation site to the folder: pages with search (Sphinx), the C interface (Doxygen), and the explorer if it is built.
# A warning, a link that leads nowhere or a page that no menu has is an error.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
site=$(cd "$1" && pwd)
cd "$root"
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

cp docs/*.md docs/site/api.md docs/site/conf.py CONTRIBUTING.md SECURITY.md NEWS.md "$pages"
cp -r docs/pictures "$pages"
cat README.md docs/site/contents.md >"$pages/index.md"
TARN_SOURCE_DIR=$root build/venv/bin/python -m sphinx -q -W --keep-going -b html -d "$pages/.doctrees" "$pages" "$site"
{
    cat docs/Doxyfile
    echo "OUTPUT_DIRECTORY = $site"
} | doxygen -q -
if [ -d build/explorer ]; then
    mkdir -p "$site/explorer" && cp build/explorer/*.html "$site/explorer/"
fi
