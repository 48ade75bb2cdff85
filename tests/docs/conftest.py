"""Lakes for the examples, and a folder to run them in."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import lake

FEW_DAYS = 24


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Forgets the environment that a developer may have set, and gives back what a command changed in the process."""
    for name in ("FIRNLINE_CONFIG", "FIRNLINE_ENGINE", "FIRNLINE_LEASE"):
        monkeypatch.delenv(name, raising=False)
    handler = signal.getsignal(signal.SIGINT)
    yield monkeypatch
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def small_lake(tmp_path_factory: pytest.TempPathFactory, inside: pytest.MonkeyPatch) -> Path:
    """A lake of the test's own, with a few days of history up to now, in the current folder. It outlives the test: a
    Spark session that is started there has workers that stay in it, and serves other tests of the process.
    """
    folder: Path = tmp_path_factory.mktemp("lake")
    lake.build(folder, int(time.time() * 1000), days=FEW_DAYS)
    return entered(folder, inside)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("tiny")
    lake.build(folder, int(time.time() * 1000), days=1)
    return folder


@pytest.fixture
def tiny_lake(tiny: Path, inside: pytest.MonkeyPatch) -> Path:
    """A lake with one day of history, to look at only, in the current folder."""
    return entered(tiny, inside)


def entered(folder: Path, inside: pytest.MonkeyPatch) -> Path:
    inside.chdir(folder)
    inside.setenv("PYICEBERG_HOME", str(folder))
    return folder
