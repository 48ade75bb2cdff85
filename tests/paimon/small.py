"""One small Paimon table with something of everything, made by Paimon's Java API and copied for every test."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firnline.testing.dated import Clock, copy_dated
from firnline.testing.faults import Fault
from firnline.testing.folder_process import LEASE, FolderProcess
from harness.paimon.java_table import JavaTable
from harness.paimon.reader import TableReader, walk
from harness.paimon.shapes import MAIN, Row, Shape
from harness.paimon.worlds import Paimon

SHAPE = Shape("java", True, ("p",), {"bucket": "1", "changelog-producer": "input"})
EVERYTHING_OLD = {"retain_last": 2, "older_than": "2100-01-01T00:00:00Z", "blast_radius": 1.0}
_MEMORY = Path("/dev/shm")


def quick_folder() -> Path:
    """Returns a new folder, in memory where there is one: every record is synced to its disk, which takes time."""
    return Path(tempfile.mkdtemp(prefix="firnline-paimon-", dir=_MEMORY if _MEMORY.is_dir() else None))


def row(number: int, text: str, part: str = "a/b=c") -> Row:
    return (number, text, part, 1, 1, None, 0)


def make(both: Paimon) -> Path:
    """Returns a folder with the table in it: seven snapshots, two tags and a branch."""
    folder = quick_folder()
    table = JavaTable(both.java, folder / "t")
    table.create(SHAPE)
    table.write(MAIN, [row(1, "one"), row(2, "two")])
    table.write(MAIN, [row(2, "deux"), row(3, "three", "x")])
    table.tag(MAIN, "two", 2)
    table.create_branch("side", "two")
    table.write("side", [row(9, "nine")])
    table.compact(MAIN, True)
    table.write(MAIN, [row(1, "uno")])
    table.tag(MAIN, "short", 4, "1h")
    table.write(MAIN, [row(5, "five")], {})
    table.write(MAIN, [row(6, "six")])
    table.compact(MAIN, True)
    return folder


@dataclass
class Copy:
    """A copy of the table, with a clock of its own."""

    folder: Path
    clock: Clock = field(default_factory=Clock)

    @staticmethod
    def of(made: Path, number: object) -> Copy:
        target = made.with_name(f"{made.name}-{number}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target, copy_function=copy_dated)
        return Copy(target)

    @property
    def table(self) -> str:
        return str(self.folder / "t")

    def process(self, fault: Fault | None = None, policy: str = "") -> FolderProcess:
        return FolderProcess(fault, clock=self.clock, policy=policy)

    def expire(self, fault: Fault | None = None, **options: Any) -> Any:
        asked = {**EVERYTHING_OLD, "grace": "0s", "sole_writer": True, **options}
        return self.process(fault).expire(self.table, **asked)

    def wait_for_lease(self) -> None:
        self.clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)

    def reader(self) -> TableReader:
        return TableReader(self.folder / "t")

    def missing(self) -> dict[str, set[str]]:
        """Returns what roots that are there lack. A snapshot that came from a tag may lack its changelog."""
        return {str(root): each.missing for root, each in self.reader().reachable().items() if each.missing}

    def picture(self) -> dict[str, bytes]:
        """Returns every file by its path, without firnline's own."""
        found = (path for path in walk(self.folder / "t") if "/_firnline/" not in path)
        return {path.removeprefix(self.table): Path(path).read_bytes() for path in found}

    def end(self) -> None:
        shutil.rmtree(self.folder)


def seen_by_java(both: Paimon, copy: Copy, branch: str = MAIN) -> tuple[int, int, list[Any]]:
    """Returns the newest and the first snapshot that Java finds, and the rows that it reads."""
    table = JavaTable(both.java, copy.folder / "t")
    opened = table.open(branch)
    manager = opened.snapshotManager()
    return manager.latestSnapshot().id(), manager.earliestSnapshot().id(), sorted(table.rows.read(opened))


def in_two_hours() -> int:
    return int(time.time() * 1000) + 2 * 3_600_000
