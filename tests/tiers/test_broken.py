"""A run that hands over is cut at any effect: nothing leaves the live table that the tier does not have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.errors import FirnlineError
from firnline.testing.faults import CountingFault, Died, Dying, Fault, Losing, When
from tests.tiers.cutting import passing_through
from tests.tiers.lakes import TieredLake, forget_catalogs, tiered_lake

FULL = bool(os.environ.get("FIRNLINE_FULL"))
CUTS = 2
"""How many of all cuts are tried by default, spread over the whole run."""

Rows = dict[int, list[int]]


@dataclass
class BrokenLake:
    """A lake that is set back to its beginning as often as a test likes, under the same paths."""

    lake: TieredLake
    monkeypatch: pytest.MonkeyPatch
    before: Rows = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.lake.folder

    def keep(self) -> None:
        """Takes the lake as it is now for its beginning."""
        self.before = self.lake.rows_by_snapshot("t")
        shutil.copytree(self.folder, self._kept, dirs_exist_ok=True)

    def set_back(self) -> None:
        self.lake.catalog.close()
        forget_catalogs()
        for each in self.folder.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        shutil.copytree(self._kept, self.folder, dirs_exist_ok=True)
        self.lake.catalog = SqlCatalog("lake", **_settings(self.folder))

    @property
    def _kept(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-kept")

    def expire_under(self, fault: Fault) -> None:
        with passing_through(fault, self.folder, self.monkeypatch):
            self.lake.expire("t")

    def goes_on(self) -> None:
        """Does what a person does after a crash: resumes; and expires anew where nothing was written down yet."""
        firnline = self.lake.firnline()
        firnline.resume("lake.db.t", break_lease=True)
        if len(self.lake.rows_by_snapshot("t")) > 1:
            self.lake.expire("t")

    def check_nothing_lost(self) -> None:
        """Every row of every snapshot is read, from the live table or from the tier."""
        live, cold = self.lake.rows_by_snapshot("t"), self.cold_rows()
        assert {**live, **cold} == self.before

    def check_end(self) -> None:
        live = self.lake.rows_by_snapshot("t")
        assert len(live) == 1
        assert self.lake.cold_rows("t") == {each: rows for each, rows in self.before.items() if each not in live}
        runs = self.lake.firnline().runs("lake.db.t")
        assert runs[-1].state == "done"
        assert all(each.state in ("done", "cancelled") for each in runs)

    def cold_rows(self) -> Rows:
        has_catalog = (self.folder / "cold.db").exists() and self.lake.cold.table_exists("db.t")
        return self.lake.cold_rows("t") if has_catalog else {}

    def cold_files(self) -> dict[str, bytes]:
        """Returns what lies in the tier, but for its metadata: a try that was cut leaves that behind."""
        root = self.lake.cold_root
        found = (each for each in root.rglob("*") if each.is_file() and not each.name.startswith(".firnline-tmp-"))
        return {str(each.relative_to(root)): each.read_bytes() for each in found if each.suffix != ".json"}


def _settings(folder: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokenLake]:
    folder = tmp_path / "lake"
    folder.mkdir()
    with tiered_lake(folder, monkeypatch) as lake:
        lake.create("t")
        lake.append("t", 1)
        lake.append("t", 2)
        lake.overwrite("t", 7, 8)
        lake.append("t", 9)
        made = BrokenLake(lake, monkeypatch)
        made.keep()
        yield made


def chosen_cuts(effects: int) -> list[int]:
    every = range(1, effects + 1)
    return list(every) if FULL else list(every[effects // CUTS // 2 :: effects // CUTS])


@pytest.mark.parametrize("when", ["before", "after"] if FULL else ["after"])
def test_dies_at_every_effect(broken: BrokenLake, when: When) -> None:
    """Whatever was written when it died: nothing is lost then, and the next one reaches the same end."""
    counting = CountingFault()
    broken.expire_under(counting)
    broken.check_end()
    whole = broken.cold_files()
    for at in chosen_cuts(counting.effects):
        broken.set_back()
        fault = Dying(at, when=when)
        with suppress(Died, FirnlineError):
            broken.expire_under(fault)
        assert fault.dead or fault.count > at  # a name that was taken already is no effect: the run went on
        broken.check_nothing_lost()
        halfway = broken.cold_files()
        assert halfway.items() <= whole.items()
        broken.goes_on()
        broken.check_end()
        assert broken.cold_files() == whole, f"died {when} effect {at}: {counting.trace[at - 1]}"


@pytest.mark.full
def test_no_answer_to_any_effect(broken: BrokenLake) -> None:
    """Each write takes place and its answer is lost: the run stops or goes on, and ends alike."""
    counting = CountingFault()
    broken.expire_under(counting)
    whole = broken.cold_files()
    for at in chosen_cuts(counting.effects):
        broken.set_back()
        with suppress(FirnlineError):
            broken.expire_under(Losing(at))
        broken.check_nothing_lost()
        broken.goes_on()
        broken.check_end()
        assert broken.cold_files() == whole, f"no answer to effect {at}: {counting.trace[at - 1]}"
