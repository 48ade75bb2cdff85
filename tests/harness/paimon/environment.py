"""pypaimon in a virtual environment of its own: it wants an older pyarrow than firnline does.

Built once, when first asked for, and kept in the user's cache.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from harness.servers.cache import alone, cache_folder
from harness.servers.process import Missing, end, tied

VERSION = "2.1.0"
PINS = (f"pypaimon=={VERSION}", "pyarrow==19.0.1", "pandas==2.3.3", "fastavro==1.13.1", "zstandard==0.25.0")
_INSIDE = Path(__file__).with_name("inside.py")


class PaimonError(RuntimeError):
    """What pypaimon refused or could not do; `kind` is the name of its exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Pypaimon:
    """A running pypaimon. One request at a time."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._said = said

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Returns what the function `verb` of inside.py answers. Raises PaimonError with what pypaimon raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"verb": verb, "arguments": arguments}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._said.seek(0)
            raise RuntimeError(f"pypaimon ended:\n{self._said.read()[-2000:].decode(errors='replace')}")
        answer = json.loads(line)
        if "kind" in answer:
            raise PaimonError(answer["kind"], answer["message"])
        return answer["answer"]


@contextmanager
def pypaimon() -> Iterator[Pypaimon]:
    """Yields a pypaimon process. Raises Missing where its environment cannot be built."""
    command = tied([str(interpreter()), "-I", str(_INSIDE)], signal.SIGTERM)
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said) as process,
    ):
        try:
            yield Pypaimon(process, said)
        finally:
            end(process)


def interpreter() -> Path:
    """Returns the Python that has pypaimon. Raises Missing, with what the installer said, where it cannot be had."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder("pypaimon") / f"{VERSION}-python{version}"
    with alone(folder.with_suffix(".lock")):
        if not (folder / "ready").exists():
            _build(folder)
    return folder / "bin" / "python"


def _build(folder: Path) -> None:
    """An environment that was left half made has no mark, and is made again."""
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *PINS])
    else:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        _run([uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--python", python, *PINS])
    (folder / "ready").touch()


def _run(command: list[str]) -> None:
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode:
        raise Missing(f"pypaimon {VERSION} cannot be installed for this Python:\n{said.stdout}{said.stderr[-1000:]}")
