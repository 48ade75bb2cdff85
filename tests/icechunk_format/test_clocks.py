"""Which times of snapshots cannot be right, on repositories of the library whose dates were changed since."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import icechunk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import UnreadableMetadata
from firnline.formats.icechunk.clocks import FARTHEST_US, Disagreement, disagreements, faults_around, written_late
from firnline.formats.icechunk.reading.repository import IcechunkRepository, snapshot_stamps
from firnline.formats.icechunk.store_times import clock_faults_of, doubtful_times
from firnline.ports.abilities import ClockFault
from harness.lanes import by_lane

from .growing import SPECS, grown, storage
from .redating import DAY_US, HOUR_US, MINUTE_US, aged, dated, dated_as_they_say, line_of, read, redated
from .repositories import STORE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UPGRADED, OF_VERSION_2 = 3, 1
"""Which of the recorded repositories was upgraded from version 1, and one that was not; both were expired."""


def found_in(folder: Path) -> list[Disagreement]:
    return list(doubtful_times(STORE, read(folder)))


def named(found: Iterable[Disagreement]) -> list[str]:
    return [each.snapshot for each in found]


def main_line(folder: Path) -> list[str]:
    """Returns the snapshots of the main branch, the oldest first."""
    found = read(folder)
    return [each.id for each in found.ancestry(found.branches["main"])][::-1]


def children_of_root(found: IcechunkRepository) -> list[str]:
    roots = {each.id for each in found.snapshots.values() if each.parent is None}
    return sorted(each.id for each in found.snapshots.values() if each.parent in roots)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", range(by_lane(3, 4, 60)))
def test_what_the_library_writes_is_right(tmp_path: Path, seed: int, spec: int) -> None:
    grown(storage(tmp_path / "r"), seed, spec)
    assert found_in(tmp_path / "r") == []


def test_what_a_later_library_wrote_is_right(recorded: list[Path], tmp_path: Path) -> None:
    for number, each in enumerate(recorded):
        folder = Path(shutil.copytree(each, tmp_path / str(number)))
        dated_as_they_say(folder)
        assert found_in(folder) == []


@pytest.mark.parametrize("seed", range(by_lane(10, 15, 400)))
def test_every_snapshot_that_the_store_dates_otherwise_is_named(small: Path, seed: int) -> None:
    """The store's times are drawn here: up to five minutes are nobody's fault, of the first snapshot as of any."""
    repository, choice = read(small), random.Random(seed)
    # A store tells whole milliseconds: what is drawn is up to one of them less.
    offsets = [0, FARTHEST_US, 1000 - FARTHEST_US, FARTHEST_US + 2000, -FARTHEST_US - 2000, HOUR_US, -DAY_US]
    drawn = {name: choice.choice(offsets) for name in repository.snapshots}
    written = {name: (each.flushed_us + drawn[name]) // 1000 for name, each in repository.snapshots.items()}
    late = {name for name, offset in drawn.items() if offset > FARTHEST_US}
    early = {name for name, offset in drawn.items() if offset < -FARTHEST_US}
    assert set(named(disagreements(repository, written))) == late | early
    assert set(named(disagreements(repository, written, late))) == early
    assert set(written_late(repository, written)) == late
    assert list(disagreements(repository, {})) == []


@pytest.mark.parametrize("apart_us", [6 * MINUTE_US + 500_000, -6 * MINUTE_US - 500_000], ids=["slow", "fast"])
def test_a_writer_with_a_wrong_clock(tmp_path: Path, apart_us: int) -> None:
    line_of(tmp_path, 3)
    *_, tip = main_line(tmp_path)
    says_us = read(tmp_path).snapshots[tip].flushed_us
    dated(tmp_path, tip, says_us + apart_us)
    (fault,) = found_in(tmp_path)
    assert (fault.snapshot, fault.parent, fault.snapshots) == (tip, None, (tip,))
    assert abs(fault.other_us - fault.says_us - apart_us) < 1000
    assert f"6m {'later' if apart_us > 0 else 'earlier'} by the store's clock" in fault.problem
    assert ("copied" in fault.hint) == (apart_us > 0)
    (told,) = clock_faults_of(STORE, read(tmp_path))
    assert told == ClockFault(tip, fault.problem, fault.hint, f"{tmp_path}/snapshots/{tip}")


def test_the_first_snapshot_is_held_to_its_time_as_any(tmp_path: Path) -> None:
    line_of(tmp_path, 2)
    aged(tmp_path, DAY_US)
    root, *_ = main_line(tmp_path)
    dated(tmp_path, root, read(tmp_path).snapshots[root].flushed_us + HOUR_US)
    assert [each.snapshot for each in found_in(tmp_path)] == [root]


def test_a_snapshot_must_be_younger_than_its_parent(tmp_path: Path) -> None:
    line_of(tmp_path, 4)
    _, _, parent, child, _ = main_line(tmp_path)
    same_us = read(tmp_path).snapshots[parent].flushed_us
    redated(tmp_path, child, same_us)
    assert found_in(tmp_path) == [Disagreement(child, same_us, same_us, parent)]
    redated(tmp_path, child, same_us - MINUTE_US)
    (fault,) = found_in(tmp_path)
    assert fault.snapshots == (child, parent)
    assert f"no younger than its parent {parent}, 1m later" in fault.problem


def expired_in_place(folder: Path) -> tuple[str, str]:
    """Has the library expire a day-old repository. Returns the snapshot that it edited, and the one after it."""
    line_of(folder, 4)
    aged(folder, DAY_US)
    _, _, edited, after, _ = main_line(folder)
    threshold = EPOCH + timedelta(microseconds=read(folder).snapshots[edited].flushed_us)
    icechunk.Repository.open(storage(folder)).expire_snapshots(threshold)
    return edited, after


@pytest.mark.skipif(1 not in SPECS, reason="the installed library writes no version 1")
def test_what_an_expiry_edited_may_be_written_later(tmp_path: Path) -> None:
    edited, after = expired_in_place(tmp_path)
    repository = read(tmp_path)
    written = {name: stamp[1] or 0 for name, stamp in snapshot_stamps(STORE, str(tmp_path)).items()}
    assert written_late(repository, written) == [edited]
    assert found_in(tmp_path) == []
    assert [each.snapshot for each in disagreements(repository, written)] == [edited]
    says_us = repository.snapshots[edited].flushed_us
    dated(tmp_path, edited, says_us - HOUR_US)
    dated(tmp_path, after, repository.snapshots[after].flushed_us + HOUR_US)
    assert [each.snapshot for each in found_in(tmp_path)] == [edited, after]


@pytest.mark.skipif(1 not in SPECS, reason="the installed library writes no version 1")
def test_an_expiry_between_the_history_and_the_listing(tmp_path: Path) -> None:
    """The history is from before the edit, the store's time from after it: only the object itself tells."""
    line_of(tmp_path, 4)
    aged(tmp_path, DAY_US)
    before, (_, _, edited, _, tip) = read(tmp_path), main_line(tmp_path)
    threshold = EPOCH + timedelta(microseconds=before.snapshots[edited].flushed_us)
    icechunk.Repository.open(storage(tmp_path)).expire_snapshots(threshold)
    assert before.snapshots[edited].parent not in {None, main_line(tmp_path)[0]}
    assert list(doubtful_times(STORE, before)) == []
    dated(tmp_path, tip, before.snapshots[tip].flushed_us + HOUR_US)
    assert [each.snapshot for each in doubtful_times(STORE, before)] == [tip]


def test_an_upgraded_repository_has_what_version_1_edited(recorded: list[Path], tmp_path: Path) -> None:
    """Version 2 edits no snapshot's object, so only those that version 1 left may be written later than they say."""
    for number, excused in ((UPGRADED, True), (OF_VERSION_2, False)):
        folder = Path(shutil.copytree(recorded[number], tmp_path / str(number)))
        dated_as_they_say(folder)
        found = read(folder)
        first = min(children_of_root(found), key=lambda name: found.snapshots[name].flushed_us)
        dated(folder, first, found.snapshots[first].flushed_us + HOUR_US)
        assert [each.snapshot for each in found_in(folder)] == ([] if excused else [first])
        dated(folder, first, found.snapshots[first].flushed_us - HOUR_US)
        assert [each.snapshot for each in found_in(folder)] == [first]


def test_a_time_that_changed_in_repo_is_noticed(recorded: list[Path], tmp_path: Path) -> None:
    """No other object tells a time of version 2's history: the library believes it, and would expire by it."""
    folder = Path(shutil.copytree(recorded[OF_VERSION_2], tmp_path / "r"))
    dated_as_they_say(folder)
    tip = read(folder).branches["main"]
    redated(folder, tip, read(folder).snapshots[tip].flushed_us + (1 << 40))
    assert tip in {each.snapshot for each in found_in(folder)}


def test_a_late_one_that_cannot_be_read_is_refused_by_name(recorded: list[Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(recorded[OF_VERSION_2], tmp_path / "r"))
    dated_as_they_say(folder)
    found = read(folder)
    first = children_of_root(found)[0]
    place = folder / "snapshots" / first
    place.write_bytes(place.read_bytes()[:-1])  # which makes it late, too
    dated(folder, first, found.snapshots[first].flushed_us + HOUR_US)
    with pytest.raises(UnreadableMetadata, match=first):
        found_in(folder)


def test_a_threshold_is_doubtful_between_the_two_times(tmp_path: Path) -> None:
    line_of(tmp_path, 3)
    aged(tmp_path, DAY_US)
    *_, slow, tip = main_line(tmp_path)
    says_us = read(tmp_path).snapshots[slow].flushed_us // 1000 * 1000
    redated(tmp_path, slow, says_us - HOUR_US)
    found = found_in(tmp_path)
    by_parent, by_store = sorted(found, key=lambda each: each.parent is None)
    assert (by_parent.snapshot, by_store.snapshot, by_store.other_us) == (slow, slow, says_us)
    assert faults_around(found, says_us - HOUR_US) == []  # it stays by either clock: a threshold takes what is older
    assert set(faults_around(found, says_us - HOUR_US + 1)) == {by_store, by_parent}
    assert faults_around(found, says_us) == [by_store]
    assert faults_around(found, says_us + 1) == []
    assert tip not in named(found)


times = st.integers(0, 9)


@given(says=times, other=times, threshold=times)
def test_doubt_is_where_the_clocks_decide_differently(says: int, other: int, threshold: int) -> None:
    fault = Disagreement("a", says, other)
    doubtful = min(says, other) < threshold <= max(says, other)
    assert faults_around([fault], threshold) == ([fault] if doubtful else [])
