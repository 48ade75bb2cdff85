"""Two Java writers commit without a pause while firnline expires, drops, undoes and purges: no row of anybody is lost.

FIRNLINE_PAIMON_STRESS sets for how many seconds (6 unless told, 300 in the long lane).
"""

from __future__ import annotations

import math
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
from threading import Event, Lock, Thread, Timer
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
from harness.paimon.rows import python_files, python_rows
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .contents import contents_of
from .small import EVERYTHING_OLD, quick_folder, row
from .views import JavaViews, covering, is_read_by_java

SECONDS = float(os.environ.get("FIRNLINE_PAIMON_STRESS", "300" if os.environ.get("FIRNLINE_FULL") else "6"))
HEADING = "count: two writers and firnline"
BRANCHES = 4
PILE, PAUSE_S = 300, 1.0
GRACE, GRACE_OVER_MS = "1m", 61_000
AT_ONCE = {"snapshot.expire.limit": "100000"}
"""Unless told, a run takes fifty snapshots of a branch: two writers add more than that from one run to the next."""
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
        """Goes slower while snapshots pile up: a run that purges takes longer the more there are."""
        try:
            while not stop.wait(PAUSE_S if self._piles_up() else 0):
                self._act(self.rng.choices([self._write, self._compact, self._aside, self._branch], [8, 2, 2, 1])[0])
        except BaseException as trouble:
            self.log.troubles.append(trouble)

    def _piles_up(self) -> bool:
        return len(layout.snapshots(self.table.folder, MAIN)) > PILE

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
        without_schema = "Cannot get latest schema for table t$branch_" in str(error)  # the cause, not the exception
        return "FileNotFoundException" in said or "doesn't exist" in said or without_schema

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
    made.create(Shape("java", True, ("p",), {"bucket": "1", **AT_ONCE}))
    made.write(MAIN, [row(0, "the first", "x")])
    yield made
    shutil.rmtree(folder)


@contextmanager
def writing(both: Paimon, table: JavaTable, log: Log) -> Iterator[Event]:
    """Hands out what tells that the writers were stopped, which they are when their time is over."""
    stop, numbers = Event(), count(1)
    writers = [
        Writer(name, JavaTable(both.java, table.folder, name), log, numbers, random.Random(name))
        for name in ("one", "two")
    ]
    threads = [Thread(target=each.run, args=(stop,)) for each in writers]
    over = Timer(SECONDS, stop.set)
    for each in (*threads, over):
        each.start()
    try:
        yield stop
    finally:
        over.cancel()
        stop.set()
        for each in threads:
            each.join()


@pytest.mark.full
def test_two_writers_lose_no_row_to_runs(both: Paimon, table: JavaTable, record_property: Record) -> None:
    log = Log()
    keeper = Keeper(table.folder, log, random.Random(0))
    adopt(FolderProcess(policy="keep: {last: 2}").places.table_context(str(table.folder)))
    with writing(both, table, log) as stopped:
        while not stopped.is_set() and not log.troubles:
            keeper.act()
    if log.troubles:
        raise log.troubles[0]
    read_by_both(both, table.folder, log, "after the last commit")
    keeper.expire_all_but_the_newest()
    read_by_both(both, table.folder, log, "in the end")
    record_property(HEADING, dict(sorted(log.counts.items())))
    assert keeper.process.check(str(table.folder)).sound
    assert log.counts["firnline: expire"], "nothing was tried"


def read_by_both(both: Paimon, folder: Path, log: Log, when: str) -> None:
    """Both plan every root. Java reads each as a whole; pypaimon, which takes longer, those that have all files between
    them, and those that Java cannot read.

    Raises AssertionError unless they read the same, of each root as many rows as its snapshot says, and of the newest
    of each branch all that was committed to it.
    """
    contents = contents_of(folder)
    assert not {root: each.missing for root, each in TableReader(folder).reachable().items() if each.missing}
    reading, began = JavaViews(both.java, JavaTable(both.java, folder)), time.monotonic()
    java = {root: reading.of(root) for root in contents if is_read_by_java(root)}
    by_java = time.monotonic()
    planned = python_files(both.python, folder)
    assert {root: planned[root] for root in java} == {root: each.files for root, each in java.items()}
    chosen = covering(planned, contents.keys() - java.keys())
    python = python_rows(both.python, folder, chosen)
    by_python = time.monotonic()
    for root in contents:
        rows = python[root] if root in python else java[root].rows
        assert root not in java or rows == java[root].rows, root
        assert len(rows) == layout.document(root.path(folder))["totalRecordCount"], root
    for branch in layout.branches(folder):
        newest = PaimonRoot(branch, SNAPSHOT, str(layout.snapshots(folder, branch)[-1]))
        lost = log.keys[branch] - {each[0] for each in java[newest].rows}
        assert not lost, (branch, sorted(lost))
    log.counts |= {
        f"{when}: roots that both planned alike": len(java),
        f"{when}: roots that Java read": len(java),
        f"{when}: rows of those": sum(len(each.rows) for each in java.values()),
        f"{when}: splits that they share": reading.splits,
        f"{when}: seconds of Java": math.ceil(by_java - began),
        f"{when}: roots that pypaimon read": len(python),
        f"{when}: seconds of pypaimon": math.ceil(by_python - by_java),
    }
