"""A small table, a command line, and an audit log beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from firnline.cli.main import run
from harness.world import World


@dataclass
class WatchedLake:
    """A world, and a command line in a folder whose firnline.yaml says who is told."""

    world: World
    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def entries(self) -> list[Path]:
        return sorted((self.log / "_firnline" / "audit").rglob("*.json"))

    def configure(self, text: str) -> None:
        (self.folder / "firnline.yaml").write_text(text)

    def __call__(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """Returns the exit code of a command, its JSON, and what it said on stderr."""
        self.capsys.readouterr()
        code = run([*arguments, "--json"])
        said = self.capsys.readouterr()
        return code, json.loads(said.out) if said.out else {}, said.err

    def expire(self, grace: str = "0s") -> tuple[int, dict[str, Any], str]:
        return self("expire", self.world.table, "--grace", grace, "--yes")


@pytest.fixture
def watched(
    quick_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[WatchedLake]:
    world = World.make(quick_folder / "world")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", world.pointers.uri)
    monkeypatch.setenv("FIRNLINE_ENGINE", "local")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    made = WatchedLake(world, tmp_path, capsys)
    made.configure(f"audit: {made.log}\n")
    yield made
    signal.signal(signal.SIGINT, handler)


def command(
    *arguments: str, stderr: int | IO[str] = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Returns what one command said, in a process of its own."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("firnline")), *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=False,
        timeout=240,
    )
