"""A run that hands over to the deep tier is cut at any effect, and so is the way back: nothing leaves a table that no
other has, whole and findable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import FirnlineError
from firnline.testing.faults import CountingFault, Died, Dying, Fault, Losing
from tests.tiers.cutting import passing_through
from tests.tiers.deep_lakes import FORMAL, DeepLake, deep_lake
from tests.tiers.test_broken import FULL, BrokenLake, Rows, chosen_cuts

WAYS = ("before", "after", "no answer") if FULL else ("after", "no answer")
DIRECT = "archive: deep\n"
LIVE, COLD = "lake.db.t", "cold.db.t"


@dataclass
class DeepBrokenLake(BrokenLake):
    """A lake with a deep tier that is set back to its beginning. `table` is the one that hands over."""

    lake: DeepLake
    table: str = LIVE

    def expire(self) -> Any:
        return self.lake.expire("t") if self.table == LIVE else self.lake.expire_cold("t")

    def goes_on(self) -> None:
        """Does what a person does after a crash: resumes, and expires anew."""
        self.lake.firnline().resume(self.table, break_lease=True)
        self.expire()

    def deep_rows(self) -> Rows:
        has_catalog = (self.folder / "deep.db").exists() and self.lake.deep.table_exists("db.t")
        if not has_catalog:
            return {}
        with self.lake.unpacked():
            return self.lake.deep_rows("t")

    def check_nothing_lost(self) -> None:
        """Every row of every snapshot is read: from the live table, from the cold one, or out of the bundles."""
        assert {**self.lake.rows_by_snapshot("t"), **self.cold_rows(), **self.deep_rows()} == self.before

    def check_end(self) -> None:
        self.check_nothing_lost()
        left = self.lake.rows_by_snapshot("t") if self.table == LIVE else self.cold_rows()
        assert len(left) == 1
        runs = self.lake.firnline().runs(self.table)
        assert all(each.state in ("done", "cancelled") for each in runs)


@contextmanager
def _broken(folder: Path, monkeypatch: pytest.MonkeyPatch, table: str) -> Iterator[DeepBrokenLake]:
    folder.mkdir()
    with deep_lake(folder, monkeypatch) as lake:
        lake.create("t")
        lake.append("t", 1)
        lake.append("t", 2)
        lake.overwrite("t", 7, 8)
        lake.append("t", 9)
        if table == LIVE:
            lake.policy = lake.policy.replace("archive: cold\n", DIRECT, 1)
        made = DeepBrokenLake(lake, monkeypatch, table=table)
        before = lake.rows_by_snapshot("t")
        if table == COLD:
            lake.expire("t")
        made.keep()
        made.before = before
        yield made


def _cut(broken: DeepBrokenLake, way: str, at: int, act: Callable[[], Any]) -> None:
    fault: Fault = Losing(at) if way == "no answer" else Dying(at, when="before" if way == "before" else "after")
    with suppress(Died, FirnlineError), passing_through(fault, broken.folder, broken.monkeypatch):
        act()


def _counted(broken: DeepBrokenLake, act: Callable[[], Any]) -> CountingFault:
    counting = CountingFault()
    with passing_through(counting, broken.folder, broken.monkeypatch):
        act()
    return counting


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", [LIVE, COLD])
def test_cut_at_every_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, way: str) -> None:
    with _broken(tmp_path / "lake", monkeypatch, table) as broken:
        counting = _counted(broken, broken.expire)
        broken.check_end()
        for at in chosen_cuts(counting.effects):
            broken.set_back()
            _cut(broken, way, at, broken.expire)
            broken.check_nothing_lost()
            broken.goes_on()
            broken.check_end()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("to", ["live", "cold"])
def test_a_restore_that_was_cut_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, way: str
) -> None:
    with _broken(tmp_path / "lake", monkeypatch, COLD) as broken:
        broken.expire()
        old, before = min(broken.lake.deep_ids("t")), broken.before
        broken.keep()
        broken.before = before

        def restore() -> Any:
            return broken.lake.firnline().restore(LIVE, str(old), to=to, inquiry=FORMAL)

        for at in chosen_cuts(_counted(broken, restore).effects):
            broken.set_back()
            _cut(broken, way, at, restore)
            broken.check_nothing_lost()
            for lease in broken.folder.rglob("lease/*.json"):
                lease.unlink()  # as if its time had come
            restore()
            back = broken.lake.rows_by_snapshot("t") if to == "live" else broken.cold_rows()
            assert back[old] == before[old]
            assert broken.lake.firnline().check(LIVE if to == "live" else COLD).sound
