#!/usr/bin/env bash
# Numbers in text have a dot, also where the point of the locale is a comma.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/comma.source" <<'END'
LC_NUMERIC
decimal_point ","
thousands_sep "."
grouping 3;3
END LC_NUMERIC
END
# localedef fails for the categories that are not there, yet makes the one that is; the test sees whether it has.
localedef -c -i "$tmp/comma.source" "$tmp/comma" 2>/dev/null || true
LOCPATH=$tmp "$TARN_BUILD_DIR/tests/test_decimal" comma ,
