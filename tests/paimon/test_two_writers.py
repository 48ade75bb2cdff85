"""Two Java writers commit without a pause while firnline expires, drops, undoes and purges: no row of anybody is lost.

FIRNLINE_PAIMON_STRESS sets for how many seconds (6 unless told, 300 in the long lane).
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from firnline.errors import FirnlineError
from firnline.ops.marks.adopt import adopt
from firnline.testing.dated import Clock
from firnline.testing.folder_process import FolderProcess
from harness.paimon import layout
from harness.paimon.histories import is_refusal
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import SNAPSHOT, PaimonRoot
from harness.paimon.reader import TableReader
from harness.paimon.rows import Rows, java_rows, python_rows
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, quick_folder, row

SECONDS = float(os.environ.get("FIRNLINE_PAIMON_STRESS", "300" if os.environ.get("FIRNLINE_FULL") else "6"))
HEADING = "count: two writers and firnline"
BRANCHES = 4
GRACE, GRACE_OVER_MS = "1m", 61_000
Record = Callable[[str, object], None]


@dataclass
class Log:
    """What the writers committed: keys that nobody else writes and nobody removes, by branch."""

    keys: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[BaseException] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def committed(self, branch: str, key: int) -> None:
        with self.lock:
            self.keys[branch].add(key)

    def done(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1


@dataclass
class Writer:
    """Writes, compacts, tags and branches until it is stopped."""

    name: str
    table: JavaTable
    log: Log
    numbers: Iterator[int]
    rng: random.Random

    def run(self, stop: Event) -> None:
        try:
            while not stop.is_set():
                self._act(self.rng.choices([self._write, self._compact, self._aside, self._branch], [8, 2, 2, 1])[0])
        except BaseException as trouble:
            self.log.troubles.append(trouble)

    def _act(self, act: Callable[[], str]) -> None:
        try:
            self.log.done(f"{self.name}: {act()}")
        except Py4JJavaError as error:
            if not is_refusal(error) and not self._is_gone(error):
                raise
            self.log.done(f"{self.name}: Paimon refuses")

    def _is_gone(self, error: Py4JJavaError) -> bool:
        """Tells whether a branch, or what it was to be made from, went while it was opened."""
        said = str(error.java_exception)
        return "FileNotFoundException" in said or "doesn't exist" in said

    def _write(self, branch: str = MAIN) -> str:
        key = next(self.numbers)
        self.table.write(branch, [row(key, f"{self.name} {key}", self.rng.choice("xyz"))])
        self.log.committed(branch, key)
        return "commits"

    def _compact(self) -> str:
        self.table.compact(MAIN, self.rng.random() < 0.5)
        return "compactions"

    def _aside(self) -> str:
        """A commit to a branch that may be on its way out."""
        names = layout.branches(self.table.folder)[1:]
        if not names:
            return "nothing to do"
        self._write(self.rng.choice(names))
        return "commits to branches"

    def _branch(self) -> str:
        if len(layout.branches(self.table.folder)) > BRANCHES:
            return "nothing to do"
        name = f"{self.name}{next(self.numbers)}"
        self.table.tag(MAIN, f"t{name}", layout.snapshots(self.table.folder, MAIN)[-1])
        self.table.create_branch(f"b{name}", f"t{name}")
        return "branches"


@dataclass
class Keeper:
    """Firnline, one verb after the other."""

    folder: Path
    log: Log
    rng: random.Random
    clock: Clock = field(default_factory=Clock)

    @property
    def process(self) -> FolderProcess:
        return FolderProcess(clock=self.clock)

    def act(self) -> None:
        name = self.rng.choices(["expire", "drop", "undo", "purge", "resume"], [4, 3, 2, 1, 2])[0]
        try:
            answer = getattr(self, name)()
            self.log.done(f"firnline: {name}" if answer is not None else "firnline: nothing to do")
        except FirnlineError as refusal:
            self.log.done(f"firnline: {name} refused ({refusal.kind})")

    def expire(self) -> Any:
        terms = {**EVERYTHING_OLD, "retain_last": self.rng.randint(1, 4), "grace": self.rng.choice(["0s", GRACE])}
        return self.process.expire(str(self.folder), **terms)

    def drop(self) -> Any:
        names = layout.branches(self.folder)[1:] + layout.tags(self.folder, MAIN)
        names = [each for each in names if not each.startswith("firnline-")]
        terms = {"blast_radius": 1.0, "grace": self.rng.choice(["0s", GRACE])}
        return self.process.drop(str(self.folder), [self.rng.choice(names)], **terms) if names else None

    def undo(self) -> Any:
        committed = [each for each in self.process.runs(str(self.folder)) if each.state == "committed"]
        return self.process.undo(str(committed[-1].run.id)) if committed else None

    def purge(self) -> Any:
        self.clock.advance(GRACE_OVER_MS)
        return self.process.purge_table(str(self.folder))

    def expire_all_but_the_newest(self) -> None:
        """Ends what waits, too."""
        self.purge()
        self.process.expire(
            str(self.folder), **{**EVERYTHING_OLD, "retain_last": 1, "grace": "0s", "sole_writer": True}
        )

    def resume(self) -> Any:
        return self.process.resume(str(self.folder))


@pytest.fixture
def table(both: Paimon) -> Iterator[JavaTable]:
    folder = quick_folder()
    made = JavaTable(both.java, folder / "t")
    made.create(Shape("java", True, ("p",), {"bucket": "1"}))
    made.write(MAIN, [row(0, "the first", "x")])
    yield made
    shutil.rmtree(folder)


@contextmanager
def writing(both: Paimon, table: JavaTable, log: Log) -> Iterator[None]:
    stop, numbers = Event(), count(1)
    writers = [
        Writer(name, JavaTable(both.java, table.folder, name), log, numbers, random.Random(name))
        for name in ("one", "two")
    ]
    threads = [Thread(target=each.run, args=(stop,)) for each in writers]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in threads:
            each.join()


def test_two_writers_lose_no_row_to_runs(both: Paimon, table: JavaTable, record_property: Record) -> None:
    log = Log()
    keeper = Keeper(table.folder, log, random.Random(0))
    adopt(FolderProcess(policy="keep: {last: 2}").places.table_context(str(table.folder)))
    until = time.monotonic() + SECONDS
    with writing(both, table, log):
        while time.monotonic() < until and not log.troubles:
            keeper.act()
    if log.troubles:
        raise log.troubles[0]
    log.counts["roots read by pypaimon after the last commit"] = len(sound_rows(both, table.folder, log))
    keeper.expire_all_but_the_newest()
    python = sound_rows(both, table.folder, log)
    java = java_rows(JavaTable(both.java, table.folder))
    assert java == {root: python[root] for root in java}
    log.counts["roots read by both in the end"] = len(java)
    record_property(HEADING, dict(sorted(log.counts.items())))
    assert keeper.process.check(str(table.folder)).sound
    assert log.counts["firnline: expire"], "nothing was tried"


def sound_rows(both: Paimon, folder: Path, log: Log) -> Rows:
    """Returns the rows of every root. Raises AssertionError unless each has as many as its snapshot says, and the
    newest of each branch all that was committed to it.
    """
    python = python_rows(both.python, folder)
    assert not {root: each.missing for root, each in TableReader(folder).reachable().items() if each.missing}
    for root, rows in python.items():
        assert len(rows) == layout.document(root.path(folder))["totalRecordCount"], root
    for branch in layout.branches(folder):
        newest = PaimonRoot(branch, SNAPSHOT, str(layout.snapshots(folder, branch)[-1]))
        lost = log.keys[branch] - {each[0] for each in python[newest]}
        assert not lost, (branch, sorted(lost))
    return python
