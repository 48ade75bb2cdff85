"""A folder that is read in the middle of what writers do to it: nothing of that is damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from firnline.errors import UnreadableMetadata
from firnline.formats.paimon.reading import folder
from firnline.testing.faults import Answer, Fault, PortRequest
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, Copy


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_SETTLING_S", 0)


@dataclass
class Overwritten:
    """A writer writes a file over where it is, and is in the middle of that at every second look at it."""

    path: Path
    looks: int = 0

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb != "get" or request.key != str(self.path):
            return request.send()
        self.looks += 1
        whole = self.path.read_bytes()
        self.path.write_bytes(b"" if self.looks % 2 else whole)
        try:
            return request.send()
        finally:
            self.path.write_bytes(whole)


@pytest.mark.parametrize("name", ["consumer/consumer-c", "tag/tag-two", "branch/branch-side/tag/tag-two"])
def test_a_text_that_is_being_written_over_stops_no_run(both: Paimon, copy: Copy, name: str) -> None:
    """Java and pypaimon write consumers and tags in place: for a moment they are empty. It counted as damage."""
    JavaTable(both.java, copy.folder / "t").consumer(MAIN, "c", 7)
    writing = Overwritten(copy.folder / "t" / name)
    status = copy.expire(writing)
    assert status.state == "done"
    assert writing.looks > 2
    assert not copy.missing()


def test_a_text_that_stays_empty_is_damage(copy: Copy) -> None:
    (copy.folder / "t/tag/tag-two").write_bytes(b"")
    before = copy.picture()
    with pytest.raises(UnreadableMetadata, match="tag-two"):
        copy.expire()
    assert copy.picture() == before


@dataclass
class BranchComes:
    """Paimon makes a branch file by file: one more is there at each look at its folder."""

    table: Path
    hidden: Path
    files: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        shutil.move(self.table / "branch", self.hidden)
        begins = ("branch-side/tag/tag-two", "branch-side/snapshot/snapshot-2", "branch-side/schema/schema-0")
        rest = (path for path in sorted(self.hidden.rglob("*")) if path.is_file())
        names = (path.relative_to(self.hidden).as_posix() for path in rest)
        self.files = iter([*begins, *(name for name in names if name not in begins)])

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        name = next(self.files, None) if request.verb == "list" and request.key.endswith("/t/branch") else None
        if name is not None:
            (self.table / "branch" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.hidden / name, self.table / "branch" / name)
        return request.send()


def test_a_branch_that_is_being_made_stops_no_run(copy: Copy, tmp_path: Path) -> None:
    """Its schemas come last. Until then the table counted as damaged."""
    copy.expire(BranchComes(copy.folder / "t", tmp_path / "branch"))
    assert not copy.missing()


@dataclass
class Busy:
    """A table whose writers commit and expire while it is read: each time that twenty of its files were."""

    table: Path
    read: int = 0
    lock: Any = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        """Fills the folders as a job does that keeps its changelogs for long."""
        self.text = json.loads((self.table / "snapshot/snapshot-7").read_text())
        for number in range(8, 150):
            self.put("snapshot" if number > 120 else "changelog", number)
        for number in range(1, 8):
            (self.table / f"snapshot/snapshot-{number}").unlink()

    def put(self, kind: str, number: int) -> None:
        path = self.table / kind / f"{kind}-{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**self.text, "id": number}))

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        with self.lock:
            if request.verb == "get" and ("/t/snapshot/" in request.key or "/t/changelog/" in request.key):
                self.read += 1
                if self.read % 20 == 0:
                    self.commit()
            return request.send()

    def commit(self) -> None:
        numbers = sorted(int(path.name.rpartition("-")[2]) for path in (self.table / "snapshot").glob("snapshot-*"))
        self.put("snapshot", numbers[-1] + 1)
        self.put("changelog", numbers[0])
        (self.table / f"snapshot/snapshot-{numbers[0]}").unlink()


def test_a_table_that_moves_on_while_it_is_read_can_be_read(copy: Copy) -> None:
    """Snapshots were read after thousands of changelogs, and the first of them had always gone by then: five looks, of
    which each read everything again, all failed.
    """
    busy: Fault = Busy(copy.folder / "t")
    plan = copy.process(busy).plan(copy.table, **EVERYTHING_OLD)
    assert plan.plan.keep
