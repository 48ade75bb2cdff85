"""Repositories that commits of firnline change, the steps of these commits, and processes that die on the way."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firnline.formats.icechunk.committing.commits import IcechunkCommits
from firnline.formats.icechunk.committing.properties import read_properties
from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.rewriting import rewritten
from firnline.formats.icechunk.reading.repository import IcechunkRepository, read_repository
from firnline.formats.icechunk.versions import version_name
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.ports.catalogs import Attempt, Step, TableName, Version
from firnline.ports.stores import ReadWrite
from firnline.stores.objects import ObjectStores

from .growing import made, storage
from .repositories import STORE
from .test_library_expiry import MANNERS, Commits


class Died(BaseException):
    """The process was killed."""


@dataclass
class Countdown:
    """Lets some requests through, and kills the process before the next one. It never does where `left` is None."""

    left: int | None = None
    asked: int = 0

    def __call__(self) -> None:
        self.asked += 1
        if self.left is not None and self.asked > self.left:
            raise Died


class CutStore(ObjectStores):
    """A store whose own writes count too."""

    def __init__(self, countdown: Countdown) -> None:
        super().__init__()
        self.countdown = countdown

    def put(self, key: str, data: bytes) -> None:
        self.countdown()
        super().put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.countdown()
        super().put_if_absent(key, data)


@dataclass
class Stepped:
    """A repository of `main` with six commits, a branch off the second, tags, and its commits through firnline."""

    commits: Commits
    snapshots: list[str]

    @property
    def location(self) -> str:
        return str(self.commits.folder)

    @property
    def repo(self) -> Any:
        return self.commits.repo

    def writing(self, store: ReadWrite = STORE) -> IcechunkCommits:
        return IcechunkCommits(store, {}, self.location)

    def read(self) -> IcechunkRepository:
        return read_repository(STORE, self.location)

    def time(self, number: int) -> int:
        return self.read().snapshots[self.snapshots[number]].flushed_us

    def lines(self) -> dict[tuple[str, str], list[str]]:
        return self.commits.lines()

    def version(self) -> Version:
        return version_at(STORE, self.location)


def stepped(folder: Path, spec: int) -> Stepped:
    commits = Commits(folder, made(storage(folder), spec), random.Random(0))
    snapshots = [commits.repo.lookup_branch(MAIN), *(commits.commit(MAIN) for _ in range(6))]
    commits.repo.create_branch("side", snapshots[2])
    snapshots.append(commits.commit("side"))
    commits.repo.create_tag("old", snapshots[3])
    commits.repo.create_tag("young", snapshots[5])
    return Stepped(commits, snapshots)


def version_at(store: ReadWrite, location: str) -> Version:
    found, properties = read_repository(store, location), read_properties(store, location)
    return Version(version_name(found, properties), {"repository": found, "properties": properties})


def step_from(
    base: Version,
    threshold_us: int | None = None,
    delete: Collection[Ref] = (),
    create: Collection[Ref] = (),
    properties: Mapping[str, str] | None = None,
    loose: Set[str] = frozenset(),
) -> Step:
    """Returns the step that a plan would make, as it is foretold without the library."""
    before: IcechunkRepository = base.document["repository"]
    refs = (set(before.refs) | set(create)) - set(delete)
    history = RefHistory(before.snapshots, tuple(refs))
    if threshold_us is not None:
        history = rewritten(history, survivors_since(history, threshold_us), MANNERS[before.spec]).after
    if before.spec == 1:
        history = history.without(history.snapshots.keys() - history.reachable())
    history = history.without(loose)
    after = replace(
        before,
        branches={ref.name: ref.snapshot for ref in refs if ref.kind is RefKind.BRANCH},
        tags={ref.name: ref.snapshot for ref in refs if ref.kind is RefKind.TAG},
        snapshots=history.snapshots,
    )
    document = {
        "repository": after,
        "properties": base.document["properties"] if properties is None else properties,
        "threshold_us": threshold_us,
        "gone": sorted(before.snapshots.keys() - after.snapshots.keys()),
        "loose": sorted(loose),
    }
    return Step(base, document, b"", f"{base.location}-next")


def attempt_at(commits: IcechunkCommits, step: Step) -> Attempt:
    return commits.prepare(TableName.at(commits.location), step)
