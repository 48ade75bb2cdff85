"""Lakes with a table of four snapshots, each with a file more than the one before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.neighbours.lakes import RealLake, real_lake
from tests.tiers.deep_lakes import DeepLake, deep_lake

AnyLake = TypeVar("AnyLake", bound=RealLake)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeepLake]:
    with deep_lake(tmp_path, monkeypatch) as made:
        yield _grown(made)


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    """A lake without tiers."""
    with real_lake(tmp_path, monkeypatch) as made:
        yield _grown(made)


def _grown(lake: AnyLake) -> AnyLake:
    lake.create("t")
    for number in range(4):
        lake.append("t", number)
    return lake
