"""One policy for a whole lake: what cannot be handed over is told, and stops nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiers.lakes import TieredLake, tiered_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        yield made


def _firnline(lake: TieredLake, *arguments: str) -> tuple[int, Any, str]:
    """Returns the exit code of the command, what it says as JSON, and its errors."""
    (lake.folder / "firnline.yaml").write_text(lake.policy)
    command = [sys.executable, "-m", "firnline", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=lake.folder, check=False)
    return done.returncode, json.loads(done.stdout or "null"), done.stderr


@pytest.mark.parametrize("own", [True, False])
def test_the_tier_s_own_tables_are_left_alone(lake: TieredLake, own: bool) -> None:
    if not own:
        lake.policy = lake.policy.partition("catalogs:")[0]
    for name in ("a", "b"):
        lake.create(name)
        for number in (1, 2, 3):
            lake.append(name, number)
    before = {name: lake.rows_by_snapshot(name) for name in ("a", "b")}
    for _ in range(2):
        code, said, errors = _firnline(lake, "expire", "--all", "--retain-last", "1", "--older-than", "2100-01-01T00:00:00Z", "--grace", "0s", "--yes")
        print(code, json.dumps(said)[:3000], errors)
        assert code == 0
    for name in ("a", "b"):
        live = lake.rows_by_snapshot(name)
        assert len(live) == 1
        assert lake.cold_rows(name) == {each: rows for each, rows in before[name].items() if each not in live}
    code, said, errors = _firnline(lake, "plan", "--all", "--retain-last", "1", "--older-than", "2100-01-01T00:00:00Z")
    print(code, json.dumps(said)[:3000], errors)
    assert code == 0
