#!/bin/sh
# Makes .venv with firnline and everything it needs at the locked versions. Safe to run again.
set -eu
cd "$(dirname "$0")/.."
. scripts/system.sh

is_suitable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.12 python3.13 python3.11 python3.14 python; do
        if command -v "$candidate" >/dev/null 2>&1 && is_suitable "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

python_or_install() {
    if find_python; then return 0; fi
    install_system_package "Python 3.11 or newer" apt=python3,python3.12,python3.11 dnf=python3.12,python3.11 \
        yum=python3.12,python3.11 apk=python3 zypper=python312,python311 pacman=python brew=python@3.12 || true
    if find_python; then return 0; fi
    echo "setup: firnline needs Python 3.11 to 3.14. Install one, or name it: make setup PYTHON=/path/to/python3" >&2
    return 1
}

# Debian and Ubuntu split ensurepip from Python, so a venv can fail there: add the package that holds it; without
# root, let the system's pip fill a venv that has none of its own.
make_venv() {
    if "$1" -m venv .venv >/dev/null 2>&1; then return 0; fi
    rm -rf .venv
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    install_system_package "Python's venv module" "apt=python$version-venv,python3-venv" || true
    if "$1" -m venv .venv >/dev/null 2>&1; then return 0; fi
    rm -rf .venv
    if "$1" -m venv --without-pip .venv && "$1" -m pip --python .venv/bin/python install --quiet pip; then return 0; fi
    rm -rf .venv
    echo "setup: $1 cannot make a virtual environment. Install python$version-venv (Debian, Ubuntu) and try again." >&2
    return 1
}

# uv is five to ten times quicker; pip does the same work where uv has no wheel. pip compiles what it installs, uv does so
# only when told: without it a Python that may not write beside its modules compiles pandas and numba at every start.
# No cache: PySpark is built from its source at each set-up and kept each time, a gigabyte that nothing reads again.
install() {
    if [ -x .venv/bin/uv ]; then .venv/bin/uv pip install --no-cache --quiet --compile-bytecode --python .venv/bin/python "$@"
    else .venv/bin/python -m pip install --no-cache-dir --quiet "$@"; fi
}

if ! [ -x .venv/bin/python ] || ! is_suitable .venv/bin/python; then
    python=$(python_or_install)
    echo "setup: making .venv with $python" >&2
    rm -rf .venv
    make_venv "$python"
fi
if ! [ -x .venv/bin/uv ]; then
    .venv/bin/python -m pip install --quiet --only-binary :all: uv || echo "setup: no uv here, pip does it more slowly" >&2
fi
echo "setup: installing what requirements.lock names" >&2
install --requirement requirements.lock
install --no-deps --editable .
