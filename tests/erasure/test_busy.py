"""A table that is appended to whenever an erasure is about to commit loses the file all the same, in every snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from firnline.testing.faults import Answer, PortRequest
from tests.erasure.erasing import erase, file_of, mentions
from tests.neighbours.lakes import RealLake, real_lake
from tests.tiers.cutting import passing_through

APPENDS = 12


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        for number in range(3):
            made.append("t", number)
        yield made


@dataclass
class BeforeEachCommit:
    """Another writer acts before new metadata gets its name, so many times."""

    act: Callable[[int], None]
    left: int = APPENDS

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.left and request.verb == "put_if_absent" and request.key.endswith(".metadata.json"):
            self.left -= 1
            self.act(100 + self.left)
        return request.send()


@pytest.mark.full
def test_a_busy_table_loses_it(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(lake, "t", 1)
    busy = BeforeEachCommit(lambda number: lake.append("t", number))
    with passing_through(busy, lake.folder, monkeypatch):
        report = erase(lake, "t", path)
    assert busy.left == 0
    assert report.is_done, report.to_json()
    for rows in lake.read_all("t"):
        assert 1 not in rows
    assert len(lake.read("t")) == 2 + APPENDS
    assert lake.firnline().check("lake.db.t").sound
    assert len(lake.firnline().runs("lake.db.t")) == 1
    left = [each for each in mentions(lake.folder / "warehouse", Path(path).name) if each.suffix != ".json"]
    assert left == []
