"""versitygw: an S3 server over a folder, whose conditional writes hold in a race. Built once with Go, then kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.servers.cache import alone, cache_folder
from harness.servers.process import HOST, Command, Missing, Server, end, running, tied
from harness.servers.s3 import ACCESS, REGION, SECRET, answers_http, s3_settings

VERSION = "v1.8.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"


@contextmanager
def versitygw(folder: Path) -> Iterator[Server]:
    """Yields an S3 server over FOLDER/objects; a bucket is a folder there, an object a file."""
    gateway = build()
    objects = folder / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    _check_attributes(objects)

    def arguments(port: int) -> list[str]:
        return [str(gateway), "--quiet", "--port", f"{HOST}:{port}", "--region", REGION, "posix", str(objects)]

    keys = {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
    with running(Command("versitygw", arguments, answers_http, keys), folder) as (port, pid):
        url = f"http://{HOST}:{port}"
        yield Server("versitygw", url, pid, s3_settings(url))


def build() -> Path:
    """Returns the program; builds it where it is not there yet, which takes minutes. Raises Missing without Go."""
    program = _program()
    if program.exists():
        return program
    go = _go()
    if go is None:
        raise Missing("versitygw is not built and Go is not installed (scripts/services.sh --all gets it)")
    with alone(program.with_name("versitygw.lock")):
        if not program.exists():
            _build(go, program)
    return program


def is_built() -> bool:
    """Returns whether the server can start at once."""
    return _program().exists()


def _program() -> Path:
    return cache_folder("bin") / f"versitygw-{VERSION}"


def _go() -> str | None:
    return shutil.which("go") or shutil.which("go", path=f"{Path(sys.executable).parent}:/usr/local/go/bin")


@contextmanager
def building_ahead() -> Iterator[None]:
    """Builds beside the block, at the lowest priority: who asks for the server meanwhile waits for it."""
    if is_built() or _go() is None:
        yield
        return
    build = tied(["nice", "-n", "19", sys.executable, "-m", "harness.servers", "build"], signal.SIGTERM)
    side_objects = subprocess.Popen(build, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        end(side_objects)


def _build(go: str, program: Path) -> None:
    print(f"building {_MODULE}, once: some minutes", file=sys.stderr, flush=True)
    environment = {**os.environ, "GOBIN": str(program.parent), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
    built = subprocess.run([go, "install", _MODULE], env=environment, capture_output=True, text=True, check=False)
    if built.returncode:
        raise Missing(f"versitygw does not build with this Go:\n{built.stderr[-1000:]}")
    program.with_name("versitygw").replace(program)


def _check_attributes(folder: Path) -> None:
    """Raises Missing where the file system keeps no extended attributes: ETags and metadata live in them."""
    try:
        os.setxattr(folder, "user.firnline", b"1")
    except (OSError, AttributeError) as error:
        raise Missing(f"versitygw needs a file system with extended attributes, {folder} has none: {error}") from error
