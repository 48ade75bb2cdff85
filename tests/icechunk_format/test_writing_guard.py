"""What a program that writes with the library may ask before its commit: does this machine's clock fit?"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import icechunk
import pytest

from firnline.errors import FirnlineError, NoSuchTable, RefusedForSafety, UsageError
from firnline.formats.icechunk.reading.tip import branch_tip
from firnline.icechunk_writing import refuse_wrong_clock
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import Counting
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .growing import SPECS, Growing, grown, storage
from .redating import DAY_US, HOUR_US, aged, line_of, read, redated
from .repositories import STORE
from .test_s3 import in_bucket

MINUTE_MS = 60_000
HEAVY = ("icechunk", "numpy", "obstore", "pyarrow", "pyiceberg", "pyspark")


def off_by(ms: int) -> Callable[[], int]:
    """Returns the clock of a machine that is ahead, or behind."""
    return lambda: time.time_ns() // 1_000_000 + ms


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("spec", SPECS)
def test_a_right_clock_passes_and_leaves_nothing_behind(tmp_path: Path, spec: int) -> None:
    world = line_of(tmp_path / "r", 2, spec)
    before = files(tmp_path)
    refuse_wrong_clock(str(tmp_path / "r"))
    refuse_wrong_clock(f"file://{tmp_path}/r/", branch="main", settings={})
    assert files(tmp_path) == before
    world.commit()
    assert icechunk.Repository.open(storage(tmp_path / "r")).lookup_branch("main") == world.written[-1]


@pytest.mark.parametrize("minutes", [6, -6, 60, -24 * 60])
def test_a_machine_whose_clock_is_off(tmp_path: Path, minutes: int) -> None:
    line_of(tmp_path, 1)
    aged(tmp_path, 2 * DAY_US)
    before = files(tmp_path)
    with pytest.raises(RefusedForSafety, match="this machine's clock and the store's differ by"):
        refuse_wrong_clock(str(tmp_path), now=off_by(minutes * MINUTE_MS))
    assert files(tmp_path) == before
    for little in (4 * MINUTE_MS, -4 * MINUTE_MS):
        refuse_wrong_clock(str(tmp_path), now=off_by(little))


def test_a_slow_clock_that_comes_after_a_right_one(tmp_path: Path) -> None:
    """Four minutes are little, and too much for a branch that was written to just now."""
    line_of(tmp_path, 2)
    tip = read(tmp_path).branches["main"]
    with pytest.raises(RefusedForSafety, match=f"no younger than its parent {tip}, which is 3m5"):
        refuse_wrong_clock(str(tmp_path), now=off_by(-4 * MINUTE_MS))


@pytest.mark.skipif(1 not in SPECS, reason="the installed library writes no version 1")
def test_a_parent_from_the_future(tmp_path: Path) -> None:
    """The library refuses that commit too, after it has written the chunks; another branch is not concerned."""
    world = line_of(tmp_path, 2)
    tip, first = world.written[-1], world.written[0]
    world.repo.create_branch("side", first)
    redated(tmp_path, tip, read(tmp_path).snapshots[tip].flushed_us + HOUR_US)
    with pytest.raises(RefusedForSafety, match=f"no younger than its parent {tip}, which is 59m"):
        refuse_wrong_clock(str(tmp_path))
    refuse_wrong_clock(str(tmp_path), branch="side")
    again = Growing(icechunk.Repository.open(storage(tmp_path)), world.choice, 1, count=100)
    with pytest.raises(icechunk.IcechunkError, match="invalid snapshot timestamp ordering"):
        again.save(again.repo.writable_session("main"))


@pytest.mark.parametrize("number", [0, 3])
def test_a_repository_of_version_2(recorded: list[Path], tmp_path: Path, number: int) -> None:
    folder = Path(shutil.copytree(recorded[number], tmp_path / "r"))
    refuse_wrong_clock(str(folder))
    tip = read(folder).branches["main"]
    redated(folder, tip, time.time_ns() // 1000 + HOUR_US)
    with pytest.raises(RefusedForSafety, match=f"no younger than its parent {tip}"):
        refuse_wrong_clock(str(folder))


@pytest.mark.parametrize("branch", ["nothing", "../branch.main", "main/../branch.main", ""])
def test_a_branch_that_is_not_there(recorded: list[Path], small: Path, branch: str) -> None:
    for folder in (small, recorded[0]):
        before = files(folder)
        with pytest.raises(UsageError, match="no branch"):
            refuse_wrong_clock(str(folder), branch)
        assert files(folder) == before


def test_a_folder_without_a_repository_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTable, match="no Icechunk repository"):
        refuse_wrong_clock(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_history_is_refused_by_name(small: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small, tmp_path / "r"))
    place = folder / "snapshots" / read(folder).branches["main"]
    place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(FirnlineError, match=place.name):
        refuse_wrong_clock(str(folder))


def test_the_tip_costs_the_same_however_long_the_history_is(tmp_path: Path, recorded: list[Path]) -> None:
    world = line_of(tmp_path, 6)
    for folder, asked in ((tmp_path, 3), (recorded[2], 1)):
        counting = Counting(STORE)
        found = branch_tip(counting, str(folder), "main")
        assert found == read(folder).snapshots[read(folder).branches["main"]]
        assert counting.calls().total() == asked
    assert len(world.written) == 6


@pytest.mark.parametrize("spec", SPECS)
def test_in_a_bucket(moto_server: Server, spec: int) -> None:
    bucket = make_bucket(moto_server, unique("guard")).removeprefix("s3://")
    location, settings = f"s3://{bucket}/lake/r", moto_server.settings
    with pytest.raises(NoSuchTable):
        refuse_wrong_clock(location, settings=settings)
    grown(in_bucket(moto_server, bucket), 2, spec, steps=5)
    refuse_wrong_clock(location, settings=settings)
    for minutes in (6, -6):
        with pytest.raises(RefusedForSafety, match="this machine's clock and the store's differ by"):
            refuse_wrong_clock(location, settings=settings, now=off_by(minutes * MINUTE_MS))
    with pytest.raises(RefusedForSafety, match="no younger than its parent"):
        refuse_wrong_clock(location, settings=settings, now=off_by(-2 * MINUTE_MS))
    assert [each.key for each in ObjectStores(settings).list(f"{location}/_firnline")] == []


def test_to_import_it_costs_nothing() -> None:
    asked = f"import sys, firnline.icechunk_writing\nassert not set({HEAVY}) & set(sys.modules), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", asked], check=True, timeout=60)
