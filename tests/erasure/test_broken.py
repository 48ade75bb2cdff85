"""An erasure from a live table, its cold tier and its deep one is cut at any effect: no other row is lost at any time,
and the same call, made again, reaches the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.testing.faults import CountingFault, Died, Dying, Fault, Losing
from tests.erasure.erasing import erase, file_of, mentions, without
from tests.tiers.cutting import passing_through
from tests.tiers.deep_lakes import deep_lake
from tests.tiers.test_broken import FULL, Rows, chosen_cuts
from tests.tiers.test_deep_broken import COLD, LIVE, DeepBrokenLake

WAYS = ("before", "after", "no answer") if FULL else ("after", "no answer")
ERASED = 2


@dataclass
class ErasedLake(DeepBrokenLake):
    """A lake of which one file goes that snapshots of all three tables have."""

    path: str = ""

    def erase(self) -> bool:
        return erase(self.lake, "t", self.path).is_done

    def erase_under(self, fault: Fault) -> None:
        with suppress(Died, FirnlineError), passing_through(fault, self.folder, self.monkeypatch):
            self.erase()

    def all_rows(self) -> Rows:
        return {**self.deep_rows(), **self.cold_rows(), **self.lake.rows_by_snapshot("t")}

    def check_nothing_else_lost(self) -> None:
        assert without(self.all_rows(), ERASED) == without(self.before, ERASED)

    def goes_on_erasing(self) -> None:
        for lease in self.folder.rglob("lease/*.json"):
            lease.unlink()  # as if its time had come
        assert self.erase()

    def check_erased(self) -> None:
        assert self.all_rows() == without(self.before, ERASED)
        named = mentions(self.folder, Path(self.path).name)
        assert all(each.parent.name == "erasures" for each in named), named
        for table in (LIVE, COLD, "deep.db.t"):
            assert self.lake.firnline().check(table).sound, table
            runs = self.lake.firnline().runs(table)
            assert all(each.state in ("done", "cancelled") for each in runs), table


@contextmanager
def _erased_lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ErasedLake]:
    folder.mkdir()
    with deep_lake(folder, monkeypatch) as lake:
        lake.create("t")
        for number in range(1, 5):
            lake.append("t", number)
        before = lake.rows_by_snapshot("t")
        lake.expire("t")
        lake.expire_cold("t")
        made = ErasedLake(lake, monkeypatch, path=file_of(lake, "t", ERASED))
        made.keep()
        made.before = before
        yield made


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
def test_cut_at_every_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    with _erased_lake(tmp_path / "lake", monkeypatch) as broken:
        counting = CountingFault()
        with passing_through(counting, broken.folder, monkeypatch):
            assert broken.erase()
        broken.check_erased()
        for at in chosen_cuts(counting.effects):
            broken.set_back()
            fault = Losing(at) if way == "no answer" else Dying(at, when="before" if way == "before" else "after")
            broken.erase_under(fault)
            broken.check_nothing_else_lost()
            broken.goes_on_erasing()
            broken.check_erased()
