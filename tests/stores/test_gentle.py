"""What firnline.yaml says of a store reaches whatever asks it: reads and deletes, of buckets and of files."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from firnline.app.places import Places, now_ms, places_of
from firnline.app.stores import Stores
from firnline.caches.expand import CachedExpand
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.formats.iceberg.table import IcebergFormat
from firnline.formats.paimon.walking.expand import PaimonExpand
from firnline.local.delete import LocalDeleteMany
from firnline.local.engine import LocalEngine
from firnline.model.times import DAY_MS
from firnline.ops.orphans.neighbours import EachItsOwn
from firnline.policy.parse import parse_policy
from firnline.ports.catalogs import TableName
from firnline.ports.delete import Doomed, Fate, always
from firnline.ports.listings import KeyRange
from firnline.ports.stores import shared
from firnline.stores import throttle
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.throttle import LocalBudget, Throttle
from firnline.stores.wrappers.read_only import ReadOnly
from firnline.testing.tables import QuickFiles, SmallTable
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.caches.lying import Ledger, memory_of
from tests.neighbours.lakes import real_lake

from .careless import Careless, careless


def places(text: str) -> Places:
    return places_of(parse_policy(text), engine="local")


class Naps:
    """A clock on which time passes only when somebody sleeps, and then at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self._lock = Lock()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds

    def stores(self, text: str) -> Stores:
        """Returns the stores of a configuration, paced by this clock."""
        found = places(text).stores
        found._throttles[""] = Throttle(found._throttle({}).lanes, LocalBudget(clock=self), self)
        return found


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> Naps:
    found = Naps()
    throttle_sleeps(monkeypatch, found.sleep)
    return found


def throttle_sleeps(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], None]) -> None:
    """Only the throttle's: a thread that another test left behind sleeps too, and must not count here."""
    monkeypatch.setattr(throttle, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))


def napping(delete: Any, naps: Naps) -> Any:
    delete._sleep = naps.sleep
    return delete


def filled(folder: Path, files: int) -> list[str]:
    folder.mkdir(parents=True)
    for number in range(files):
        (folder / f"{number:03d}").write_bytes(b"x")
    return [f"{folder}/{number:03d}" for number in range(files)]


READS: dict[str, Callable[[Any, str], Any]] = {
    "get": lambda store, key: store.get(key),
    "head": lambda store, key: store.head(key),
    "names": lambda store, key: store.names(key.rpartition("/")[0]),
    "links": lambda store, key: store.links(key.rpartition("/")[0]),
    "list": lambda store, key: list(store.list(key.rpartition("/")[0])),
}


@pytest.mark.parametrize("verb", READS)
def test_local_files_are_read_no_faster_than_was_said(tmp_path: Path, naps: Naps, verb: str) -> None:
    keys = filled(tmp_path / "t", 5)
    store = naps.stores(f"stores: {{{tmp_path}: {{reads-per-second: 10}}}}").open({})
    for number, key in enumerate(keys):
        assert naps.now == pytest.approx(max(0, number - 1) / 10)
        READS[verb](store, key)
    before = naps.now
    READS[verb](naps.stores("").open({}), keys[0])
    assert naps.now == before, "where nothing was said, files of this machine are read as fast as they can be"


def test_a_listing_in_pieces_counts_too(tmp_path: Path, naps: Naps) -> None:
    filled(tmp_path / "t", 3)
    ranges = naps.stores(f"stores: {{{tmp_path}: {{reads-per-second: 10}}}}").ranges({})
    for _ in range(4):
        assert sum(map(len, ranges.batches(KeyRange(f"{tmp_path}/t")))) == 3
    assert naps.now == pytest.approx(0.3)


@pytest.mark.parametrize("root", ["file", "memory"])
def test_every_store_deletes_no_faster_than_was_said(tmp_path: Path, naps: Naps, root: str) -> None:
    place = str(tmp_path) if root == "file" else f"memory://{unique('gentle')}"
    store = ObjectStores()
    keys = [f"{place}/t/{number}" for number in range(6)]
    for key in keys:
        store.put(key, b"x")
    stores = naps.stores(f"stores: {{'{place}': {{deletes-per-second: 10}}}}")
    delete = napping(stores.delete(TableName.at(f"{place}/t"), ""), naps)
    said = delete.delete([Doomed(key) for key in keys])
    assert [each.fate for each in said] == [Fate.DELETED] * 6
    assert naps.now == pytest.approx(0.5)


def test_own_objects_and_metadata_are_removed_at_the_same_pace(tmp_path: Path, naps: Naps) -> None:
    keys = filled(tmp_path / "t", 4)
    stores = naps.stores(f"stores: {{{tmp_path}: {{deletes-per-second: 10}}}}")
    retire: Any = stores.retire(TableName.at(str(tmp_path)), stores.open({}))
    napping(retire._delete, naps)
    assert [retire.retire(key, b"x") for key in keys] == [True] * 4
    assert naps.now == pytest.approx(0.3)
    discard: Any = stores.discard({})
    assert discard._delete.throttle is retire._delete.throttle


@pytest.mark.parametrize(("said", "threads"), [("reads-at-once: 3", 3), ("deletes-at-once: 3", 8)])
def test_the_local_engine_has_as_many_threads_as_may_read(tmp_path: Path, said: str, threads: int) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    table.append()
    state = IcebergFormat(ObjectStores()).load("t", table.publish())
    engine = places(f"stores: {{{tmp_path}: {{{said}}}}}").engines.choose(state, IcebergFormat(ObjectStores()), "auto")
    assert isinstance(engine, LocalEngine)
    assert engine.threads == threads


def test_tables_that_are_walked_together_have_as_many_threads_as_the_widest_place() -> None:
    """Each place keeps to its own number: its throttle lets no more reads go."""
    engines = places("stores: {/narrow: {reads-at-once: 2}, /wide: {reads-at-once: 20}}").engines
    for lying, threads in ((["/narrow/t"], 2), (["/narrow/t", "/t"], 8), (["/narrow/t", "/wide/t", "/t"], 20)):
        found = engines.choose_together([("local", place, 1, 1) for place in lying], len(lying))
        assert all(isinstance(each, LocalEngine) and each.threads == threads for each in found)


def test_as_many_threads_delete_as_was_said_and_a_call_is_over_soon_enough_to_stop_after_it() -> None:
    engines = places("stores: {s3://b: {deletes-at-once: 3, deletes-per-second: 10}}").engines
    name = TableName.at("s3://b/t")
    many = engines.delete_many(name, "s3://b/t", 10)
    assert isinstance(many, LocalDeleteMany)
    assert (many.threads, many.rows) == (3, 200)
    assert replace(engines, part=0.2).delete_many(name, "s3://b/t", 10).rows == 40
    assert replace(engines, part=0.001).delete_many(name, "s3://b/t", 10).rows == 1
    assert engines.delete_many(name, "s3://c/t", 10).rows == LocalDeleteMany().rows == 16_000


NARROWEST = (
    "reads-at-once: 1, deletes-at-once: 1, delete-batch: 1, reads-per-second: 100000, deletes-per-second: 100000"
)


def test_a_whole_run_goes_through_the_narrowest_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step waits for another one behind it: two tables side by side, each with other tables to ask."""
    with real_lake(tmp_path, monkeypatch) as lake:
        lake.policy = f"stores: {{{tmp_path}: {{{NARROWEST}}}}}"
        for name in ("one", "two"):
            lake.create(name)
            for number in range(4):
                lake.append(name, number)
            lake.overwrite(name, 9)
        several = lake.firnline().several(["lake.db.*"])
        asked = {"older_than": now_ms(), "retain_last": 1, "grace": "0s", "blast_radius": 1.0}
        several.expire(**asked)
        for name in ("one", "two"):
            assert lake.read_all(name) == [[9]]
            assert lake.firnline().check(f"lake.db.{name}").sound
            (run,) = lake.firnline().runs(f"lake.db.{name}")
            assert run.state == "done"
        lake.firnline().orphans("lake.db.one", older_than=now_ms() - 2 * DAY_MS, dry_run=True)


# ---------------------------------------------------------------- on S3


@pytest.fixture
def lax(moto_server: Server) -> Iterator[Careless]:
    with careless(moto_server.url) as server:
        yield server


def bulk_deletes(lax: Careless) -> list[int]:
    return [body.count(b"<Key>") for method, path, body in lax.bodies if method == "POST" and "delete" in path]


def test_a_request_brings_no_more_keys_than_was_said(moto_server: Server, lax: Careless) -> None:
    root = make_bucket(moto_server, unique("gentle"))
    store = ObjectStores(moto_server.settings)
    keys = [f"{root}/t/{number}" for number in range(20)]
    for key in keys:
        store.put(key, b"x")
    asked = places(f"stores: {{'{root}': {{delete-batch: 7, deletes-per-second: 100000}}}}")
    settings = {**moto_server.settings, "s3.endpoint": lax.url}
    delete = ObjectDelete(settings, throttle=asked.stores._throttle(settings))
    assert {each.fate for each in delete.delete([Doomed(key) for key in keys])} == {Fate.DELETED}
    assert bulk_deletes(lax) == [7, 7, 6]


def most_at_once(lax: Careless) -> Callable[[], int]:
    """Returns what tells how many requests the server ever worked on together; each takes a little while."""
    inside, most, lock = 0, 0, Lock()

    def slow(method: str, path: str, body: bytes, answer: tuple[int, bytes]) -> tuple[int, bytes]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.01)
        with lock:
            inside -= 1
        return answer

    lax.change = slow
    return lambda: most


@pytest.mark.parametrize("said", [1, 2])
def test_no_more_requests_are_under_way_than_was_said(moto_server: Server, lax: Careless, said: int) -> None:
    root = make_bucket(moto_server, unique("gentle"))
    store = ObjectStores(moto_server.settings)
    keys = [f"{root}/t/{number}" for number in range(40)]
    for key in keys:
        store.put(key, b"x")
    most = most_at_once(lax)
    asked = places(f"stores: {{'{root}': {{deletes-at-once: {said}, delete-batch: 2}}}}")
    settings = {**moto_server.settings, "s3.endpoint": lax.url}
    delete = ObjectDelete(settings, throttle=asked.stores._throttle(settings))
    LocalDeleteMany(at_once=16).delete_many([Doomed(key) for key in keys], delete, always)
    assert most() == said


# ---------------------------------------------------------------- on executors


def test_what_travels_to_executors_has_its_share(tmp_path: Path) -> None:
    """Whatever wraps the store: a cache around a format around three wrappers."""
    asked = places(f"stores: {{{tmp_path}: {{reads-per-second: 100, reads-at-once: 8}}}}")
    store = ReadOnly(asked.stores.open({}))
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    table.append()
    table_format = IcebergFormat(store)
    state = table_format.load("t", table.publish())
    expand = memory_of(Ledger()).of(store)(table_format, state, DAY_MS)
    assert isinstance(expand, CachedExpand)
    others = EachItsOwn({"/x": PaimonExpand(store)}, {"/y": IcebergExpand(store)}, IcebergExpand(store))
    sent = pickle.loads(pickle.dumps([shared(each, 4) for each in (expand, PaimonExpand(store), others)]))
    inner = [sent[0].expand, sent[1], sent[2].by_folder["/x"], sent[2].by_stem["/y"], sent[2].otherwise]
    throttles = [each.store._store._store._throttle for each in inner]
    assert {(each.budget.part, each._parts) for each in throttles} == {(0.25, 4)}
    assert len(set(map(id, throttles))) == 1, "all that one task reads stands in one line, of however many tables"


def test_doctor_shows_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from firnline.cli.main import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    Path("firnline.yaml").write_text("stores:\n  s3a://lake/:\n    deletes-per-second: 1500\n    delete-batch: 100\n")
    run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    said = [each["said"] for each in found if each["topic"] == "limits"]
    assert said == ["s3://lake/ deletes-per-second 1,500 (line 3), delete-batch 100 (line 4)"]


def test_a_lease_waits_behind_no_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A purge reads as fast as it may, on many threads. A renewal behind all of these would come when the lease has run
    out: the slower the store may be asked, the sooner.
    """

    def sleep(seconds: float) -> None:
        assert seconds < 1

    with real_lake(tmp_path, monkeypatch) as lake:
        lake.create("t")
        lake.policy = f"stores: {{{tmp_path}: {{reads-per-second: 1, reads-at-once: 1}}}}"
        found = lake.firnline().places
        work = found.table_context("lake.db.t")
        state = work.source.load()
        line = found.stores._throttle({})
        lane = line.reads(str(tmp_path))
        line.reserve(lane, 3_600)
        throttle_sleeps(monkeypatch, sleep)
        with line.turn(lane), work.lease(state) as (_, lease):
            assert lease.lend() > 0, "what writes a claim once more"
