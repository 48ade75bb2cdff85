"""A branch is dropped while Paimon fast-forwards to it: one of both is whole in the end.

Paimon's fast-forward looks at the branch, takes away the end of the main one, and copies the branch in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from firnline.errors import FirnlineError, RefusedForSafety
from firnline.testing.faults import Acting, CountingFault
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import TAG, PaimonRoot
from harness.paimon.shapes import MAIN, Row
from harness.paimon.worlds import Paimon

from .cutting import FULL
from .small import Copy, row

LATER = {"grace": "1m", "blast_radius": 1.0}
LOOKED, HINT_GONE, HALF_GONE, END_GONE, SNAPSHOTS, SCHEMAS, DONE = range(7)
Rows = list[Row] | None


@dataclass
class FastForward:
    """Paimon's fast-forward to a branch, one step at a time, each with Paimon's own file system."""

    both: Paimon
    copy: Copy
    branch: str = "side"
    taken: int = -1

    def __post_init__(self) -> None:
        self._io = self.both.java.paimon("fs.local.LocalFileIO").create()
        self._steps = self._taking()

    def go(self, to: int) -> None:
        """Takes all steps up to this one; none any more once Paimon raised an error."""
        while self.taken < to:
            try:
                self.taken = next(self._steps)
            except (StopIteration, Py4JJavaError):
                return

    def _taking(self) -> Iterator[int]:
        table, branch = Path(self.copy.table), f"branch/branch-{self.branch}"
        first = min(layout.snapshots(table, self.branch), default=None)
        if first is None:
            return
        schema = layout.document(table / f"{branch}/snapshot/snapshot-{first}")["schemaId"]
        yield LOOKED
        tags = [name for name in layout.tags(table, MAIN) if _number(table, name) >= first]
        gone = [f"snapshot/snapshot-{number}" for number in layout.snapshots(table, MAIN) if number >= first]
        gone += [f"schema/{each.name}" for each in table.glob("schema/schema-*") if int(each.name[7:]) >= schema]
        (table / "snapshot/LATEST").unlink()
        yield HINT_GONE
        half = len([path for path in gone if path.startswith("snapshot/")]) - 1
        self._io.deleteFilesQuietly(self.both.java.list(map(self._path, gone[:half])))
        yield HALF_GONE
        rest = [*gone[half:], *(f"tag/tag-{tag}" for tag in tags)]
        self._io.deleteFilesQuietly(self.both.java.list(map(self._path, rest)))
        yield END_GONE
        for step, folder in ((SNAPSHOTS, "snapshot"), (SCHEMAS, "schema"), (DONE, "tag")):
            self._io.copyFiles(self._path(f"{branch}/{folder}"), self._path(folder), True)
            yield step

    def _path(self, below: str) -> Any:
        return self.both.java.paimon("fs.Path")(f"{self.copy.table}/{below}")


def _number(table: Path, tag: str) -> int:
    return int(layout.document(PaimonRoot(MAIN, TAG, tag).path(table))["id"])


def _rows(both: Paimon, copy: Copy, branch: str) -> Rows:
    table = JavaTable(both.java, copy.folder / "t")
    try:
        return sorted(table.rows.read(table.open(branch)))
    except Py4JJavaError:
        return None


def _asked(made: Path) -> int:
    counting, copy = CountingFault(), Copy.of(made, "counted")
    copy.process(counting).drop(copy.table, ["side"], **LATER)
    copy.end()
    return counting.requests


def test_these_are_paimons_own_steps(both: Paimon, made: Path) -> None:
    stepped, whole = Copy.of(made, "stepped"), Copy.of(made, "whole")
    FastForward(both, stepped).go(DONE)
    JavaTable(both.java, whole.folder / "t").fast_forward("side")
    assert stepped.picture() == whole.picture()
    stepped.end()
    whole.end()


@pytest.mark.full
@pytest.mark.parametrize("until", [HALF_GONE, END_GONE, SNAPSHOTS, SCHEMAS, DONE])
def test_a_drop_between_the_steps_of_a_fast_forward_leaves_one_of_both(both: Paimon, made: Path, until: int) -> None:
    main, side = (_rows(both, Copy(made), branch) for branch in (MAIN, "side"))
    asked = _asked(made)
    for at in range(1, asked, 1 if FULL else max(1, asked // 12)):
        copy = Copy.of(made, f"forward-{at}")
        forward = FastForward(both, copy)
        acting = Acting(at, lambda forward=forward: forward.go(until))  # type: ignore[misc]
        with suppress(FirnlineError):
            copy.process(acting).drop(copy.table, ["side"], **LATER)
        forward.go(DONE)
        copy.clock.advance(61_000)
        with suppress(FirnlineError):
            copy.process().resume(copy.table)
        found = _rows(both, copy, MAIN)
        assert found in (main, side) or _rows(both, copy, "side") == side, (at, acting.before, forward.taken)
        copy.end()


def test_no_branch_goes_after_the_end_of_another_went(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.set_option("comment", "a second schema, so that the first one is left")
    table.write(MAIN, [row(7, "seven")])
    table.tag(MAIN, "base", max(layout.snapshots(copy.folder / "t", MAIN)))
    table.create_branch("late", "base")
    table.write("late", [row(8, "eight")])
    forward, late = FastForward(both, copy, "late"), _rows(both, copy, "late")
    with pytest.raises(RefusedForSafety, match="is gone") as caught:
        copy.process().drop(copy.table, ["late"], **LATER, confirm=lambda plan: forward.go(END_GONE))
    assert "fast-forward" in (caught.value.hint or "")
    assert _rows(both, copy, "late") == late
    (refused,) = copy.process().runs(copy.table)
    copy.process().undo(str(refused.run.id))
    forward.go(DONE)
    assert _rows(both, copy, MAIN) == late
    copy.process().drop(copy.table, ["late"], **LATER)
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert not (copy.folder / "t/branch/branch-late").exists()
    assert _rows(both, copy, MAIN) == late
    assert not copy.missing()


def test_a_fast_forward_while_files_go_keeps_what_it_brought(both: Paimon, copy: Copy) -> None:
    """It ends between the commit of the drop of another branch and its purge, and between two looks of the purge."""
    table = JavaTable(both.java, copy.folder / "t")
    table.create_branch("other", "two")
    copy.process().drop(copy.table, ["other"], **LATER)
    side = _rows(both, copy, "side")
    table.fast_forward("side")
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert _rows(both, copy, MAIN) == side
    assert not copy.missing()
