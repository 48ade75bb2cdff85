"""An erasure is cut at any effect, in the live table, the cold one or among bundles: nothing but the file is ever lost,
and the same call, made again, brings it to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.testing.faults import CountingFault, Died, Dying, Fault, Losing
from tests.erasure.erasing import erase, file_of, mentions
from tests.tiers.cutting import passing_through
from tests.tiers.deep_lakes import DeepLake, deep_lake
from tests.tiers.test_broken import chosen_cuts
from tests.tiers.test_deep_broken import WAYS, DeepBrokenLake

GONE = 1


class ErasedLake(DeepBrokenLake):
    """A lake from which one file goes, of all three tables."""

    def readable(self) -> None:
        """Every snapshot of every table is read, with all rows but that of the file, and with that or without it."""
        for found in (self.lake.rows_by_snapshot("t"), self.cold_rows(), self.deep_rows()):
            for snapshot, rows in found.items():
                less = [each for each in self.before[snapshot] if each != GONE]
                assert rows in (less, self.before[snapshot])

    def ended(self, path: str) -> None:
        self.readable()
        everywhere = (self.lake.rows_by_snapshot("t"), self.cold_rows(), self.deep_rows())
        assert not any(GONE in rows for found in everywhere for rows in found.values())
        assert not any(Path(path).name.encode() in bundle.read_bytes() for bundle in self.lake.bundles())
        left = mentions(self.folder, Path(path).name)
        assert all(each.name.endswith(".begun.json") or "/erasures/" in str(each) for each in left), left


@contextmanager
def _made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ErasedLake, str]]:
    folder.mkdir()
    with deep_lake(folder, monkeypatch) as lake:
        assert isinstance(lake, DeepLake)
        lake.create("t")
        for number in range(4):
            lake.append("t", number)
        path, before = file_of(lake, "t", GONE), lake.rows_by_snapshot("t")
        lake.expire("t")
        lake.expire_cold("t")
        made = ErasedLake(lake, monkeypatch)
        made.keep()
        made.before = before
        yield made, path


def _fault(way: str, at: int) -> Fault:
    return Losing(at) if way == "no answer" else Dying(at, when="before" if way == "before" else "after")


@pytest.mark.parametrize("way", WAYS)
def test_cut_at_every_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    with _made(tmp_path / "lake", monkeypatch) as (lake, path):
        counting = CountingFault()
        with passing_through(counting, lake.folder, monkeypatch):
            assert erase(lake.lake, "t", path).is_done
        lake.ended(path)
        for at in chosen_cuts(counting.effects):
            lake.set_back()
            with suppress(Died, FirnlineError), passing_through(_fault(way, at), lake.folder, monkeypatch):
                erase(lake.lake, "t", path)
            lake.readable()
            for lease in lake.folder.rglob("lease/*.json"):
                lease.unlink()  # as if its time had come
            assert erase(lake.lake, "t", path).is_done, f"{way} {at}"
            lake.ended(path)
