from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.neighbours.lakes import RealLake, real_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as made:
        yield made
