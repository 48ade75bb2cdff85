#!/bin/sh
# Builds the wheel and the sdist into dist/, installs them in bare environments of each Python from 3.11 to 3.14 that is
# here, and lets scripts/smoke.py try them. A Python that is not here is told.
set -eu
cd "$(dirname "$0")/.."
rm -rf dist
.venv/bin/uv build --quiet --out-dir dist
wheel=$(ls "$PWD"/dist/firnline-*.whl) sdist=$(ls "$PWD"/dist/firnline-*.tar.gz)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# $1: a Python; $2: what is installed; $3: --all where all extras are
try() {
    rm -rf "$place/env"
    "$1" -m venv "$place/env"
    .venv/bin/uv pip install --quiet --no-cache --python "$place/env/bin/python" "$2"
    echo "$("$1" --version), $(basename "$2"): $(du -sm "$place/env" | cut -f1) MiB"
    (cd "$place" && env -u PYTHONPATH "$place/env/bin/python" "$OLDPWD/scripts/smoke.py" "$place/env/bin/firnline" $3)
}

# Where pyenv is, its Pythons are found although none of them is chosen.
found() {
    .venv/bin/uv python find --no-python-downloads --system "$1" 2>/dev/null && return 0
    for each in "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if [ -x "$each" ]; then echo "$each"; return 0; fi
    done
    return 1
}

tried=""
for version in 3.11 3.12 3.13 3.14; do
    python=$(found "$version") || { echo "no Python $version here" >&2; continue; }
    try "$python" "$wheel" ""
    if [ -z "$tried" ]; then
        try "$python" "$sdist" ""
        try "$python" "firnline[all] @ file://$wheel" --all
    fi
    tried="$tried $version"
done
[ -n "$tried" ] || { echo "no Python from 3.11 to 3.14 here" >&2; exit 1; }
echo "tried:$tried"
