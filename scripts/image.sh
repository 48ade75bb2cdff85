#!/bin/sh
# Builds the container of deploy/Containerfile with podman, buildah or docker, whichever is here; arguments go to its build.
set -eu
cd "$(dirname "$0")/.."
for tool in podman buildah docker; do
    if command -v "$tool" >/dev/null 2>&1; then
        exec "$tool" build -f deploy/Containerfile -t firnline "$@" .
    fi
done
echo "no podman, buildah or docker here" >&2
exit 1
