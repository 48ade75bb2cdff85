"""Sessions that are open in a bucket while firnline searches, expires and purges, between any two of their steps.

Nobody can make an object of a bucket older. So the world's clock is days ahead, and what a session left just before is
dated back to it: for a purge, which asks the store again, though not for the listing that it follows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr

from firnline.errors import FirnlineError
from firnline.formats.icechunk import names
from firnline.model.times import DAY_MS, MINUTE_MS
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock
from firnline.testing.folder_process import FolderProcess
from harness.lanes import by_lane
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .growing import SPECS, made
from .open_writing import FOLDERS, GRACE, LATER, put
from .test_s3 import in_bucket

HISTORY = 4


@dataclass
class Bucket:
    """A repository with a history, and chunks that a session of long ago left."""

    server: Server
    spec: int
    clock: Clock = field(default_factory=Clock)
    name: str = field(default_factory=lambda: unique("iceopen"))

    def __post_init__(self) -> None:
        make_bucket(self.server, self.name)
        made(in_bucket(self.server, self.name), self.spec)
        for number in range(HISTORY):
            self.commit(number, number + 1)
        before = self.objects()
        put(self.opened().writable_session("main"), "x", 0, 77)
        self.litter = self.objects() - before
        self.clock.advance(10 * DAY_MS)

    @property
    def location(self) -> str:
        return f"s3://{self.name}/lake/r"

    def opened(self) -> Any:
        return icechunk.Repository.open(in_bucket(self.server, self.name))

    def objects(self) -> set[str]:
        store = ObjectStores(self.server.settings)
        return {each.key for folder in FOLDERS for each in store.list(f"{self.location}/{folder}")}

    def commit(self, chunk: int, value: int) -> None:
        session = self.opened().writable_session("main")
        put(session, "x", chunk, value)
        session.commit(f"value {value}")

    def process(self) -> FolderProcess:
        return FolderProcess(clock=self.clock, settings=self.server.settings)

    def search(self) -> None:
        self.process().orphans(self.location, older_than=LATER, grace="0s", consent=lambda plan: True, blast_radius=1.0)

    def plan(self) -> None:
        self.process().expire(self.location, older_than=LATER, retain_last=1, grace=GRACE, blast_radius=1.0)

    def go_on(self) -> None:
        self.clock.advance(2 * MINUTE_MS)
        self.process().resume(self.location)

    def array(self, name: str) -> list[int]:
        group = zarr.open_group(self.opened().readonly_session("main").store, mode="r")
        return np.asarray(group[name][:]).tolist()


@dataclass
class BucketSession:
    """A session, step by step. `own` is what it left before its commit."""

    bucket: Bucket
    own: set[str] = field(default_factory=set)
    session: Any = None

    def steps(self) -> list[Callable[[], None]]:
        return [self.open, lambda: self.put("y", 0), lambda: self.put("x", 6), lambda: self.put("y", 7), self.commit]

    def open(self) -> None:
        self.session = self.bucket.opened().writable_session("main")

    def put(self, name: str, chunk: int) -> None:
        before, clock = self.bucket.objects(), self.bucket.clock
        put(self.session, name, chunk, 101)
        for key in self.bucket.objects() - before:
            clock.written[key] = clock.ahead_ms
            self.own.add(key)

    def commit(self) -> None:
        self.session.commit("a writer", rebase_with=icechunk.ConflictDetector())


@pytest.mark.full
@pytest.mark.parametrize("spec", SPECS)
def test_between_any_two_steps_of_a_session(moto_server: Server, spec: int) -> None:
    """Sessions one after the other, and before each step of each another part of a search or an expiry."""
    bucket = Bucket(moto_server, spec)
    for first in range(by_lane(1, 2, 5)):
        session = BucketSession(bucket)
        acts = [bucket.search, bucket.plan, bucket.go_on, bucket.search, bucket.go_on]
        for number, step in enumerate(session.steps()):
            with suppress(FirnlineError):  # such as a run that waits for another
                acts[(first + number) % len(acts)]()
            step()
        assert len(session.own) == 3
        assert session.own <= bucket.objects()
        assert bucket.array("y") == [*[101] * 10, *[0] * 60, *[101] * 10]
        assert bucket.array("x")[:40] == [1 + each // 10 for each in range(40)]
        assert bucket.array("x")[60:70] == [101] * 10
    assert not bucket.litter & bucket.objects()
    assert len([each for each in bucket.objects() if f"/{names.SNAPSHOTS}/" in each]) < HISTORY + 6
    listed = bucket.process().check(bucket.location).presence.listed
    assert {each.kind for each in listed} <= {"clock"}
