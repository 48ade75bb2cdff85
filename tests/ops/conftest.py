from __future__ import annotations

import time
from pathlib import Path

import pytest

from demo.lake import build

DAYS = 16


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three real tables. Every test reads it and none may change it."""
    folder = tmp_path_factory.mktemp("lake")
    build(folder, time.time_ns() // 1_000_000, days=DAYS)
    return folder


@pytest.fixture
def in_lake(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lake, with the process standing in its folder, where its configuration is found."""
    monkeypatch.chdir(lake)
    monkeypatch.setenv("PYICEBERG_HOME", str(lake))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(lake / "no-config"))
    monkeypatch.delenv("FIRNLINE_CONFIG", raising=False)
    monkeypatch.delenv("FIRNLINE_ENGINE", raising=False)
    return lake
