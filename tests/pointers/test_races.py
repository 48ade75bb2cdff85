"""Publishers beside a writer, and publishers that die: readers never go back, and a sync ends at the truth."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from firnline.errors import ObjectNotFound, StoreError
from firnline.patience import Patience
from firnline.pointers.names import Naming
from firnline.pointers.ordinals import ordinal_ms
from firnline.pointers.publishing import CatalogTruth, Publisher
from firnline.pointers.reading import newest_names, pointer_names, read_pointer
from firnline.ports.stores import ReadWrite, TaggedObject
from firnline.stores.objects import ObjectStores
from firnline.stores.wrappers.retry import Retrying
from firnline.testing.faults import Died, Dying, When
from firnline.testing.faulty import FaultyStore
from harness.lanes import by_lane
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.neighbours.lakes import real_lake

COMMITS = by_lane(unit=50, test=80, full=1_000)
GUID = "123e4567-e89b-12d3-a456-426614174000"


class Ledger:
    """A catalog of one table: `number` is the version that it is at, and it only ever goes up."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.number = 0

    def __call__(self) -> CatalogTruth:
        number = self.number
        time.sleep(random.uniform(0, 0.004))  # the answer is on its way, and others go on meanwhile
        metadata = f"{self.location}/metadata/{number:05d}-x.metadata.json"
        # A clock that stands still, then jumps back: order must not come from it.
        committed = 1_700_000_000_000 + (number % 7) * 1_000 - (number // 100) * 50_000
        return CatalogTruth(("db",), "t", GUID, self.location, metadata, committed, "sql:here")


def nowhere_else(_: object) -> bool:
    """The catalog has no table twice."""
    return False


def version_in(path: str) -> int:
    return int(path.rpartition("/")[2].partition("-")[0])


def newest_seen(store: ReadWrite, location: str, naming: Naming) -> int | None:
    """Returns the version that a reader finds who knows nothing but the folder."""
    folder = location if naming is Naming.IDENTIFIER else f"{location}/_pointers"
    names = newest_names(pointer_names(store, folder))
    if naming is Naming.ORDINAL:
        names = [name for name in names if not name.endswith("_main.ver")]
    found = []
    for name in names:
        try:
            found.append(read_pointer(store, f"{folder}/{name}").pointer)
        except ObjectNotFound:
            continue
    newest = max(found, key=lambda each: ordinal_ms(each.ordinal), default=None)
    return None if newest is None else version_in(newest.metadata_file_path)


@pytest.fixture
def places(tmp_path: Path, versitygw_server: Server) -> Callable[[str], tuple[ReadWrite, str]]:
    def open_place(kind: str) -> tuple[ReadWrite, str]:
        if kind == "files":
            return ObjectStores(), f"file://{tmp_path}/t"
        return ObjectStores(versitygw_server.settings), f"{make_bucket(versitygw_server, unique('pointers'))}/t"

    return open_place


@pytest.mark.parametrize("kind", ["files", "s3"])
@pytest.mark.parametrize("naming", list(Naming))
def test_no_reader_sees_an_older_state_after_a_newer_one(
    places: Callable[[str], tuple[ReadWrite, str]], naming: Naming, kind: str, record_property: Any
) -> None:
    store, location = places(kind)
    ledger, over = Ledger(location), Event()
    failures: list[BaseException] = []

    def publish() -> None:
        try:
            while not over.is_set():
                Publisher(store, naming, nowhere_else).publish(ledger)
        except BaseException as error:
            failures.append(error)

    seen: list[int] = []
    stale: list[float] = []

    def watch() -> None:
        try:
            while not over.is_set():
                truth = ledger.number
                found = newest_seen(store, location, naming)
                if found is not None:
                    seen.append(found)
                    stale.append(max(0, truth - found))
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=publish), Thread(target=publish), Thread(target=watch)]
    for each in threads:
        each.start()
    for _ in range(COMMITS):
        ledger.number += 1
        time.sleep(0.002)
    over.set()
    for each in threads:
        each.join()
    assert failures == []
    assert seen == sorted(seen), "a reader saw an older state after a newer one"
    assert len(set(seen)) > 1, "the reader saw the table move on"
    Publisher(store, naming, nowhere_else).publish(ledger)
    assert newest_seen(store, location, naming) == COMMITS
    stale.sort()
    shares = {share: stale[int(share * (len(stale) - 1))] for share in (0.5, 0.9, 0.99, 1.0)}
    print(f"{kind}, {naming}: {len(seen)} looks, commits behind at {shares}")
    record_property("commits behind", json.dumps(shares))


def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, naming: str, at: int, when: When) -> bool:
    """Returns whether the publisher came to its end before its `at`th write; a sync then has to end at the truth."""
    tmp_path.mkdir()
    with real_lake(tmp_path, monkeypatch) as lake:
        lake.policy = f"pointers: {naming}"
        lake.create("t")
        lake.firnline().pointers.sync()
        lake.catalog.rename_table("db.t", "db.new")
        lake.append("new", 1)
        dying = lake.firnline()
        opened, fault = dying.places.stores.open, Dying(at, when=when)
        vars(dying.places.stores)["open"] = lambda settings: FaultyStore(opened(settings), fault)
        try:
            dying.pointers.sync()
            survived = True
        except Died:
            survived = False
        (synced,) = lake.firnline().pointers.sync()
        assert synced.problems == ()
        again = lake.firnline().pointers.sync()
        assert {each.outcome for table in again for each in table.pointers} <= {"unchanged"}
        for asked in ({}, {"table": "db.new"}, *([] if naming == "uuid" else [{"table": "db.t"}])):
            found = lake.firnline().pointers.open_path(lake.table("new").location(), **asked)
            assert found.metadata == lake.table("new").metadata_location
        return survived


@pytest.mark.sampled(2)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("naming", list(Naming))
def test_a_sync_ends_at_the_truth_wherever_a_publisher_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, naming: str, when: When
) -> None:
    for at in range(1, 20):
        if lives(tmp_path / str(at), monkeypatch, naming, at, when):
            assert at > 1, "something was written, and killed at"
            return
    raise AssertionError("the publisher never came to its end")


class LostAnswers(ObjectStores):
    """A store whose first conditional writes land, and whose answers get lost."""

    lost = 2

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        super().put_if_match(key, data, seen)
        if self.lost:
            self.lost -= 1
            raise StoreError("no answer")


def test_a_write_whose_answer_got_lost_is_found_by_reading_back(tmp_path: Path) -> None:
    ledger = Ledger(f"file://{tmp_path}/t")
    store = Retrying(LostAnswers(), Patience(base_delay_s=0.001))
    Publisher(store, Naming.IDENTIFIER, nowhere_else).publish(ledger)
    ledger.number = 1
    assert version_in(Publisher(store, Naming.IDENTIFIER, nowhere_else).publish(ledger).pointer.metadata_file_path) == 1
