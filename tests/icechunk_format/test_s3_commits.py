"""Commits to repositories in a bucket, beside writers that go on writing."""

from __future__ import annotations

import os
import random
import signal
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import icechunk
import pytest
import zarr

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.committing.commits import IcechunkCommits
from firnline.formats.icechunk.committing.properties import read_properties
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.ports.catalogs import SwapOutcome
from firnline.stores.objects import ObjectStores
from harness.servers.fixtures import unique
from harness.servers.moto import moto
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .growing import SPECS, made
from .stepping import Countdown, Died, attempt_at, step_from, version_at
from .test_library_expiry import Commits
from .test_s3 import in_bucket


@dataclass
class InBucket:
    """A repository in a bucket of its own, with some commits."""

    server: Server
    spec: int
    bucket: str = field(default_factory=lambda: unique("icecommit"))
    commits: Commits = field(init=False)
    snapshots: list[str] = field(init=False)

    def __post_init__(self) -> None:
        make_bucket(self.server, self.bucket)
        self.commits = Commits(Path(), made(in_bucket(self.server, self.bucket), self.spec), random.Random(0))
        self.snapshots = [self.commits.commit(MAIN) for _ in range(5)]

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/lake/r"

    @property
    def store(self) -> ObjectStores:
        return ObjectStores(self.server.settings)

    @property
    def writing(self) -> IcechunkCommits:
        return IcechunkCommits(self.store, self.server.settings, self.location)

    def opened(self) -> Any:
        return icechunk.Repository.open(in_bucket(self.server, self.bucket))

    def time(self, number: int) -> int:
        return read_repository(self.store, self.location).snapshots[self.snapshots[number]].flushed_us


@pytest.mark.full
@pytest.mark.parametrize("spec", SPECS)
def test_a_commit_in_a_bucket_is_cut_and_carried_on(moto_server: Server, spec: int) -> None:
    found = InBucket(moto_server, spec)
    found.commits.repo.create_tag("old", found.snapshots[1])
    gone, come = Ref("old", RefKind.TAG, found.snapshots[1]), Ref("hold", RefKind.TAG, found.snapshots[2])
    step = step_from(version_at(found.store, found.location), found.time(3), [gone], [come], {"a": "1"})
    attempt = attempt_at(found.writing, step)
    with pytest.raises(Died):
        found.writing.commit(replace(attempt, still=Countdown(2)))
    assert found.writing.landed(attempt.proof, version_at(found.store, found.location))
    after = read_repository(found.store, found.location)
    assert after.tags == {"hold": found.snapshots[2]}
    assert after.snapshots.keys() == step.document["repository"].snapshots.keys()
    assert read_properties(found.store, found.location) == {"a": "1"}
    line = [each.id for each in found.opened().ancestry(branch=MAIN)]
    assert line == [each.id for each in step.document["repository"].ancestry(found.snapshots[4])]


@pytest.mark.parametrize("spec", SPECS)
def test_a_writer_goes_on(moto_server: Server, spec: int) -> None:
    """A commit that loses to a writer is made anew, until one lands; no commit of the writer is lost."""
    found, stop, written = InBucket(moto_server, spec), threading.Event(), list[str]()

    def write() -> None:
        repo = found.opened()
        while not stop.is_set():
            session = repo.writable_session(MAIN)
            zarr.open_group(session.store, mode="a").attrs["count"] = len(written)
            written.append(str(session.commit(f"written {len(written)}")))
            stop.wait(1.5)  # longer than a look takes on a busy machine: nobody could read it otherwise

    writer = threading.Thread(target=write)
    writer.start()
    try:
        outcomes = []
        while not outcomes or outcomes[-1] is SwapOutcome.LOST:
            step = step_from(version_at(found.store, found.location), found.time(3))
            outcomes.append(found.writing.commit(attempt_at(found.writing, step)))
    finally:
        stop.set()
        writer.join()
    assert outcomes[-1] is SwapOutcome.DONE
    line = [each.id for each in found.opened().ancestry(branch=MAIN)]
    assert line == [*reversed(written), *found.snapshots[:2:-1], line[-1]]
    assert zarr.open_group(found.opened().readonly_session(MAIN).store, mode="r").attrs["count"] == len(written) - 1


def test_two_stores_of_one_name(moto_server: Server, tmp_path: Path) -> None:
    """What firnline reads and what the library opens must be one repository: settings may lead them apart."""
    with moto(tmp_path) as elsewhere:
        one = InBucket(moto_server, SPECS[-1])
        other = InBucket(elsewhere, SPECS[-1], one.bucket)
        attempt = attempt_at(one.writing, step_from(version_at(one.store, one.location), one.time(3)))
        with pytest.raises(RefusedForSafety, match="does not see the same branch main"):
            IcechunkCommits(one.store, elsewhere.settings, one.location).commit(attempt)
        assert len(list(other.opened().ancestry(branch=MAIN))) == 6
    assert len(list(one.opened().ancestry(branch=MAIN))) == 6


@pytest.mark.full
@pytest.mark.parametrize("spec", SPECS)
def test_a_server_that_dies_in_the_middle(tmp_path: Path, spec: int) -> None:
    """Nobody can tell whether the expiry was done: that is said, and never guessed."""
    with moto(tmp_path) as server:
        found = InBucket(server, spec)
        attempt = attempt_at(found.writing, step_from(version_at(found.store, found.location), found.time(3)))

        def still() -> None:
            os.kill(server.pid, signal.SIGKILL)

        assert found.writing.commit(replace(attempt, still=still)) is SwapOutcome.UNKNOWN
