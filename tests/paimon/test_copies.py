"""A table's folder that is copied or moved, records and all: the copy is another table, whose runs are its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import TableMoved
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .aged import MEANT, age, disk
from .small import EVERYTHING_OLD, Copy, row


@pytest.fixture
def original(made: Path) -> Iterator[Copy]:
    """A table with a run that is committed and not purged."""
    found = Copy.of(made, "original")
    found.expire(grace="1m")
    yield found
    found.end()


@pytest.fixture
def twin(original: Copy) -> Iterator[Copy]:
    found = Copy.of(original.folder, "twin")
    yield found
    found.end()


def hold_the_third(copy: Copy) -> set[Path]:
    """Returns the files of a snapshot that a run took out and that somebody holds now."""
    found = lists_of_the_third(copy)
    add_hold(copy.process().places.table_context(copy.table), Hold("late", "somebody", "a test", "3"))
    return found


def lists_of_the_third(copy: Copy) -> set[Path]:
    before = copy.process().runs(copy.table)[-1].run
    removal = before.committed.detail["removal"] if before.committed else {}
    lists = [each for each in removal["snapshots"] if str(each["snapshot-id"]) == "3"]
    names = {lists[0]["paimon"][name] for name in ("baseManifestList", "deltaManifestList")}
    return {copy.folder / "t/manifest" / name for name in names}


def test_who_works_on_a_copy_removes_nothing_of_the_original(original: Copy, twin: Copy) -> None:
    """The original's run was purged from there: by what the copy needed, and not by the hold on the original."""
    held = hold_the_third(original)
    before = original.picture()
    twin.clock.advance(61_000)
    twin.process().resume(twin.table)
    twin.expire(retain_last=1)
    assert all(path.exists() for path in held)
    assert original.picture() == before
    assert [each.state for each in original.process().runs(original.table)] == ["committed"]


def test_who_works_on_the_original_removes_nothing_of_a_copy(original: Copy, twin: Copy) -> None:
    twin.expire(retain_last=1, grace="1m")
    before = twin.picture()
    original.clock.advance(61_000)
    original.process().resume(original.table)
    assert twin.picture() == before
    assert [each.state for each in original.process().runs(original.table)] == ["done"]
    assert [each.state for each in twin.process().runs(twin.table)] == ["committed"]


def test_a_run_of_the_original_is_none_of_the_copy(original: Copy, twin: Copy) -> None:
    run = original.process().runs(original.table)[0].run.id
    before = twin.picture()
    for act in (twin.process().undo, twin.process().advance, twin.process().purge):
        with pytest.raises(TableMoved, match="planned on"):
            act(f"{twin.table}@{run.stamp}")
    assert twin.picture() == before


def test_a_table_that_was_moved_takes_its_records_along(original: Copy) -> None:
    moved = Copy(original.folder.with_name(f"{original.folder.name}-moved"))
    shutil.move(original.folder, moved.folder)
    moved.expire(retain_last=1)
    assert not original.folder.exists(), "nothing is written where the table was"
    assert not moved.missing()
    shutil.move(moved.folder, original.folder)


def test_a_table_is_the_same_through_a_link(original: Copy) -> None:
    link = original.folder.with_name(f"{original.folder.name}-link")
    link.symlink_to(original.folder)
    assert len(Copy(link).process().runs(str(link / "t"))) == 1
    Copy(link).process().undo(str(Copy(link).process().runs(str(link / "t"))[0].run.id))
    assert [each.state for each in original.process().runs(original.table)] == ["undone"]
    link.unlink()


def _remembering(copy: Copy, **options: object) -> None:
    asked: dict[str, Any] = {**EVERYTHING_OLD, "grace": "0s", "sole_writer": True, **options}
    copy.process(policy="history: forever").expire(copy.table, **asked)


def test_a_copy_clears_away_nothing_of_the_originals_history(made: Path) -> None:
    """Its note named the original's history, of which it knew nothing new."""
    original = Copy.of(made, "original")
    _remembering(original, retain_last=4)
    twin = Copy.of(original.folder, "twin")
    _remembering(original, retain_last=2)
    folder = original.folder / "t/_firnline/history"
    before = {path: path.read_bytes() for path in folder.rglob("*.json")}
    assert before
    twin.process().drop(twin.table, ["side"], grace="1m", blast_radius=1.0)
    twin.process().drop(twin.table, ["two"], grace="1m", blast_radius=1.0)
    assert {path: path.read_bytes() for path in folder.rglob("*.json")} == before
    known = {each["snapshot-id"] for each in twin.process().expired_snapshots(twin.table)}
    assert 1 in known, "what it remembered when it was copied"
    for each in (original, twin):
        each.end()


# ---------------------------------------------------------------- holds on what is out of the table


def _renamed(copy: Copy) -> Copy:
    moved = Copy(copy.folder.with_name(f"{copy.folder.name}-renamed"), copy.clock)
    shutil.move(copy.folder, moved.folder)
    return moved


def _at(paths: set[Path], copy: Copy, moved: Copy) -> set[Path]:
    return {moved.folder / path.relative_to(copy.folder) for path in paths}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("purged", [False, True])
def test_a_hold_on_an_expired_snapshot_outlives_a_renamed_folder(both: Paimon, original: Copy, purged: bool) -> None:
    """The run that took it out was planned under the old name, and its record is all that says what the hold needs."""
    held = hold_the_third(original)
    if purged:
        original.clock.advance(61_000)
        original.process().resume(original.table)
        assert all(path.exists() for path in held)
    moved = _renamed(original)
    age(disk(moved.folder))
    moved.process().orphans(moved.table, **MEANT)
    assert all(path.exists() for path in _at(held, original, moved))
    JavaTable(both.java, moved.folder / "t").write(MAIN, [row(77, "more")])
    moved.expire(retain_last=1)
    moved.process().resume(moved.table)
    age(disk(moved.folder))
    moved.process().orphans(moved.table, **MEANT)
    assert all(path.exists() for path in _at(held, original, moved))
    shutil.move(moved.folder, original.folder)


def test_a_hold_that_comes_after_the_rename_counts_too(original: Copy) -> None:
    lists = lists_of_the_third(original)
    moved = _renamed(original)
    add_hold(moved.process().places.table_context(moved.table), Hold("late", "somebody", "a test", "3"))
    moved.expire(retain_last=1)
    age(disk(moved.folder))
    moved.process().orphans(moved.table, **MEANT)
    assert all(path.exists() for path in _at(lists, original, moved))
    assert not moved.missing()
    shutil.move(moved.folder, original.folder)
