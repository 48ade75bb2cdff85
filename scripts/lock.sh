#!/bin/sh
# Resolves pyproject.toml to requirements.lock: one name==version per line and nothing else, so that the lock
# names no host and installs from whatever index a machine uses. Versions already in the lock stay when they can.
#   scripts/lock.sh            keep what fits
#   scripts/lock.sh --upgrade  take the newest
set -eu
cd "$(dirname "$0")/.."
draft=$(mktemp)
trap 'rm -f "$draft"' EXIT
if [ -f requirements.lock ]; then cp requirements.lock "$draft"; fi

.venv/bin/uv pip compile pyproject.toml --group dev --extra all --extra testing --universal --python-version 3.11 \
    --no-annotate --no-header --no-emit-index-url --quiet --output-file "$draft" "$@"

# A platform's marker only spares it a small pure package; without it a line is the same everywhere. A marker of the
# Python version stays: what has no build for a version cannot be installed there.
sed -e '/python_full_version/!s/ *;.*//' -e '/^$/d' "$draft" | LC_ALL=C sort -u > requirements.lock
# Two versions of one package are for two versions of Python, and each says for which.
repeated=$(sed 's/==.*//' requirements.lock | uniq -d)
unmarked=$(for name in $repeated; do grep "^$name==" requirements.lock | grep -v python_full_version; done || true)
if [ -n "$unmarked" ]; then
    echo "lock: more than one version of: $unmarked (needs an upper bound in pyproject.toml)" >&2
    exit 1
fi
