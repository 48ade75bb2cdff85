"""Sessions of the real library, step by step, on repositories with an old history."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr

from firnline.formats.icechunk import names
from firnline.model.times import DAY_MS, MINUTE_MS
from firnline.ops.runs.status import RunStatus
from firnline.testing.dated import Clock, copy_dated, date
from firnline.testing.faults import Fault
from firnline.testing.folder_process import FolderProcess

from .growing import made, storage
from .redating import DAY_US, aged

FOLDERS = (names.CHUNKS, names.MANIFESTS, names.SNAPSHOTS, names.TRANSACTIONS)
LATER = "2100-01-01T00:00:00Z"
"""A cutoff that an operator forced beyond every session's start."""
HISTORY, LITTER = 5, 3
GRACE = "1m"
COMMIT = 4


def now_ms() -> float:
    return time.time() * 1000


def objects(folder: Path) -> set[Path]:
    return {path for each in FOLDERS for path in (folder / each).glob("*")}


def opened(folder: Path) -> Any:
    return icechunk.Repository.open(storage(folder))


def arrays(folder: Path, branch: str = "main") -> dict[str, list[int]]:
    """Returns every array of a branch, as a reader that was just started sees it."""
    group = zarr.open_group(opened(folder).readonly_session(branch).store, mode="r")
    return {name: np.asarray(group[name][:]).tolist() for name in group.array_keys()}


def put(session: Any, name: str, chunk: int, value: int) -> None:
    group = zarr.open_group(session.store, mode="a")
    if name not in group:
        group.create_array(name, shape=(80,), chunks=(10,), dtype="i8", compressors=None, fill_value=0)
    group[name][10 * chunk : 10 * chunk + 10] = value


def commit(folder: Path, chunk: int, value: int, branch: str = "main") -> str:
    """Somebody else commits."""
    session = opened(folder).writable_session(branch)
    put(session, "x", chunk, value)
    return str(session.commit(f"value {value}"))


@dataclass
class OpenWriter:
    """A session, step by step. What it left until its commit is `age_ms` old for the store. `own` are these objects."""

    folder: Path
    age_ms: int = 0
    number: int = 0
    session: Any = None
    own: set[Path] = field(default_factory=set)
    values: dict[str, list[int]] = field(default_factory=dict)

    def step(self, which: int) -> None:
        before = objects(self.folder)
        (self.open, self.first, self.over, self.more, self.commit)[which]()
        if which != COMMIT:
            self.made(objects(self.folder) - before)

    def made(self, left: set[Path]) -> None:
        self.own |= left
        for path in left:
            date(path, now_ms() - self.age_ms)

    def open(self) -> None:
        self.session = opened(self.folder).writable_session("main")

    def put(self, name: str, chunk: int, value: int) -> None:
        put(self.session, name, chunk, value)
        self.values.setdefault(name, [0] * 80)[10 * chunk : 10 * chunk + 10] = [value] * 10

    def first(self) -> None:
        self.put(f"y{self.number}", 0, 101 + self.number)

    def over(self) -> None:
        """Writes into an array that was there: its manifest is read and written anew."""
        put(self.session, "x", 5 + self.number, 102 + self.number)

    def more(self) -> None:
        self.put(f"y{self.number}", 7, 103 + self.number)

    def commit(self) -> None:
        self.session.commit("a writer", rebase_with=icechunk.ConflictDetector())

    def run(self, steps: range) -> None:
        for which in steps:
            self.step(which)

    def is_whole(self) -> None:
        """Raises AssertionError unless all that was committed reads back; nothing of the session went."""
        assert self.own
        assert self.own <= objects(self.folder)
        found = arrays(self.folder)
        assert {name: found[name] for name in self.values} == self.values
        assert found["x"][10 * (5 + self.number)] == 102 + self.number
        assert found["x"][:50] == [HISTORY] * 10 + [each for each in range(1, HISTORY) for _ in range(10)]


def flush(writer: OpenWriter) -> str:
    """Returns the snapshot that a session flushed, which no ref leads to yet."""
    before = objects(writer.folder)
    flushed = str(writer.session.flush("not yet"))
    writer.made(objects(writer.folder) - before)
    return flushed


def outcome_of(act: Callable[[], object]) -> str:
    """Returns how the library ended: the kind of its error, or nothing."""
    try:
        act()
    except (icechunk.IcechunkError, icechunk.ConflictError) as error:
        return type(error).__name__
    return ""


@dataclass
class Scene:
    """A repository with an old history and the chunks that a writer of long ago left behind."""

    folder: Path
    litter: set[Path]
    clock: Clock = field(default_factory=Clock)

    @property
    def location(self) -> str:
        return str(self.folder)

    def process(self, fault: Fault | None = None) -> FolderProcess:
        return FolderProcess(fault, clock=self.clock)

    def search(self, fault: Fault | None = None, grace: str = "0s", older_than: str | None = LATER) -> Any:
        plan, ended = self.process(fault).orphans(
            self.location, older_than=older_than, grace=grace, consent=lambda plan: True, blast_radius=1.0
        )
        return plan, ended

    def plan(self, fault: Fault | None = None, retain_last: int = 1) -> None:
        """An expiry is planned, and waits for its time to undo: Icechunk has none after the commit."""
        self.process(fault).expire(
            self.location, older_than=LATER, retain_last=retain_last, grace=GRACE, blast_radius=1.0
        )

    def go_on(self, fault: Fault | None = None) -> list[RunStatus]:
        """What every run waited for is over: what was planned is committed, and what was committed is purged."""
        self.clock.advance(2 * MINUTE_MS)
        return self.process(fault).resume(self.location)

    def is_sound(self) -> None:
        listed = self.process().check(self.location).presence.listed
        assert {each.kind for each in listed} <= {"clock"}  # objects that a test made older than they say


def is_version_2(scene: Scene) -> bool:
    return (scene.folder / names.REPO).exists()


def old_repository(folder: Path, spec: int) -> set[str]:
    """Writes a repository that is thirty days old. Returns the names of the chunks that a session left behind then."""
    made(storage(folder), spec)
    for number in range(1, HISTORY):
        session = opened(folder).writable_session("main")
        put(session, "x", 0, number)
        put(session, "x", number, number)
        session.commit(f"commit {number}")
    commit(folder, 0, HISTORY)
    before, abandoned = objects(folder), opened(folder).writable_session("main")
    for chunk in range(LITTER):
        put(abandoned, "x", chunk, 77)
    litter = objects(folder) - before
    aged(folder, 30 * DAY_US)
    for path in objects(folder):
        if path.parent.name != names.SNAPSHOTS:
            date(path, now_ms() - 30 * DAY_MS)
    return {path.name for path in litter}


def copied(source: Path, litter: set[str], folder: Path) -> Scene:
    shutil.copytree(source, folder, copy_function=copy_dated)
    return Scene(folder, {folder / names.CHUNKS / each for each in litter})
