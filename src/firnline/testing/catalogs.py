"""What every catalog must do: subclass the contract, say how a table is found and committed to, and pytest runs
it.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from typing import Any, ClassVar, Protocol
from uuid import uuid4

import pytest

from firnline.errors import NoSuchTable
from firnline.ports.catalogs import Attempt, Catalog, Commit, PlacesTables, Step, SwapOutcome, TableName, Version
from firnline.ports.stores import Get, ReadWrite
from firnline.stores.objects import ObjectStores

RACERS = 4
ROUNDS = 8
TURN = "turn"
"""A tag that every commit of the contract moves: what one writer changed, another expects as it was."""

Document = dict[str, Any]


class CatalogContract:
    """The contract of Catalog and Commit.

    A subclass gives the fixtures: `catalog`, `commits` (picklable), `table` (one that exists, with two snapshots or
    more) and `absent` (one that does not); and `contents`, which returns every byte the catalog stands on.
    """

    enumerates: ClassVar[bool] = True
    """Whether the catalog can list its tables."""

    @pytest.fixture
    def catalog(self) -> Catalog:
        raise NotImplementedError

    @pytest.fixture
    def commits(self) -> Commit:
        raise NotImplementedError

    @pytest.fixture
    def table(self) -> TableName:
        raise NotImplementedError

    @pytest.fixture
    def absent(self) -> TableName:
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> Get:
        """Where the tables lie; picklable."""
        return ObjectStores()

    def contents(self, catalog: Catalog) -> object:
        raise NotImplementedError

    def test_lists_its_tables_sorted(self, catalog: Catalog, table: TableName) -> None:
        listed = list(catalog.tables())
        assert listed == sorted(listed, key=lambda each: (each.namespace, each.name))
        assert (table in listed) is self.enumerates
        assert all(catalog.locate(each) for each in listed)

    def test_an_unknown_table_is_named(self, catalog: Catalog, absent: TableName) -> None:
        with pytest.raises(NoSuchTable) as missing:
            catalog.locate(absent)
        assert absent.name in missing.value.message
        assert missing.value.hint

    def test_nothing_is_committed_to_an_unknown_table(
        self, catalog: Catalog, commits: Commit, table: TableName, absent: TableName, store: Get
    ) -> None:
        before = self.contents(catalog)
        base = read_version(store, catalog.locate(table))
        with pytest.raises(NoSuchTable):
            commits.commit(commits.prepare(absent, step_from(base, "nobody")))
        assert self.contents(catalog) == before

    def test_reading_changes_no_byte(self, catalog: Catalog, table: TableName, absent: TableName) -> None:
        before = self.contents(catalog)
        list(catalog.tables())
        catalog.locate(table)
        catalog.vended(table)
        with pytest.raises(NoSuchTable):
            catalog.locate(absent)
        assert self.contents(catalog) == before

    def test_an_advanced_table_has_moved_and_says_what_was_committed(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        seen = [catalog.locate(table)]
        for writer in ("first", "second"):
            sent = advance(commits, store, table, seen[-1], writer)
            assert commits.commit(sent) is SwapOutcome.DONE
            now = read_version(store, catalog.locate(table))
            assert now.location not in seen
            assert now.document["properties"]["writer"] == writer
            assert now.document["metadata-log"][-1]["metadata-file"] == seen[-1]
            assert turn_of(now.document) == turn_of(sent.step.document)
            seen.append(now.location)

    def test_what_a_step_does_not_name_survives(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        before = read_version(store, catalog.locate(table))
        assert commits.commit(advance(commits, store, table, before.location, "first")) is SwapOutcome.DONE
        after = read_version(store, catalog.locate(table)).document
        for name in ("table-uuid", "location", "snapshots", "schemas", "snapshot-log", "current-snapshot-id"):
            assert after[name] == before.document[name], name

    def test_a_stale_expectation_loses_and_changes_nothing(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        stale = catalog.locate(table)
        late = advance(commits, store, table, stale, "late")
        assert commits.commit(advance(commits, store, table, stale, "first")) is SwapOutcome.DONE
        before = self.contents(catalog)
        assert commits.commit(late) is SwapOutcome.LOST
        assert self.contents(catalog) == before
        assert not commits.landed(late.proof, read_version(store, catalog.locate(table)))

    def test_the_same_commit_changes_the_table_once(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        sent = advance(commits, store, table, catalog.locate(table), "first")
        assert commits.commit(sent) is SwapOutcome.DONE
        once = catalog.locate(table)
        assert commits.commit(sent) in (SwapOutcome.DONE, SwapOutcome.LOST)
        assert catalog.locate(table) == once

    def test_a_commit_that_landed_is_told_from_one_that_did_not_by_its_record_alone(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        sent = advance(commits, store, table, catalog.locate(table), "first")
        record = json.loads(json.dumps(sent.proof))
        assert not commits.landed(record, read_version(store, catalog.locate(table)))
        assert commits.commit(sent) is SwapOutcome.DONE
        assert commits.landed(record, read_version(store, catalog.locate(table)))

    def test_a_fence_keeps_a_commit_that_is_still_on_its_way_from_landing(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        frozen = advance(commits, store, table, catalog.locate(table), "frozen")
        now = read_version(store, catalog.locate(table))
        between = commits.fence([frozen.proof], now)
        assert between is not None
        fenced = commits.prepare(table, step_of(now, lambda document: _amend(document, between)))
        assert commits.commit(fenced) is SwapOutcome.DONE
        before = self.contents(catalog)
        assert commits.commit(frozen) is SwapOutcome.LOST
        assert self.contents(catalog) == before
        assert commits.fence([frozen.proof], read_version(store, catalog.locate(table))) is None

    def test_of_racing_threads_one_wins(self, catalog: Catalog, commits: Commit, table: TableName, store: Get) -> None:
        with ThreadPoolExecutor(RACERS) as racers:
            _race(racers, catalog, commits, store, table)

    def test_of_racing_processes_one_wins(
        self, catalog: Catalog, commits: Commit, table: TableName, store: Get
    ) -> None:
        with ProcessPoolExecutor(RACERS, multiprocessing.get_context("spawn")) as racers:
            _race(racers, catalog, commits, store, table)


class Placing(Catalog, PlacesTables, Protocol):
    """A catalog of a tier, with both of its sides."""


class PlacingContract:
    """The contract of PlacesTables, for a catalog that reads as empty where it is not there yet.

    A subclass gives the fixtures: `catalog` (picklable), `place` (a table that is not there, in a namespace that is not
    there) and `metadata`, where that of a real table lies. Copies of it are placed.
    """

    compares: ClassVar[bool] = True
    """Whether of several processes that move one table on at once only one can."""

    @pytest.fixture(scope="class")
    @classmethod
    def racers(cls) -> Iterator[Executor]:
        """Processes, the same for all tests of a class: to start them takes longer than to race."""
        with ProcessPoolExecutor(RACERS, multiprocessing.get_context("spawn")) as started:
            yield started

    @pytest.fixture
    def catalog(self) -> Placing:
        raise NotImplementedError

    @pytest.fixture
    def place(self) -> TableName:
        raise NotImplementedError

    @pytest.fixture
    def metadata(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> ReadWrite:
        """Where the metadata lies."""
        return ObjectStores()

    @pytest.fixture
    def versions(self, store: ReadWrite, metadata: str) -> Iterator[str]:
        """Further copies of the metadata, without end."""
        return _copies(store, metadata)

    def test_it_is_told_from_a_catalog_that_takes_none(self, catalog: Placing) -> None:
        assert isinstance(catalog, PlacesTables)

    def test_a_table_that_was_never_placed_is_not_there(self, catalog: Placing, place: TableName) -> None:
        assert place not in list(catalog.tables())
        assert place not in [table for table, _ in catalog.pointers()]
        with pytest.raises(NoSuchTable, match=place.name):
            catalog.locate(place)

    def test_a_placed_table_is_there_with_its_metadata(self, catalog: Placing, place: TableName, metadata: str) -> None:
        assert catalog.place_table(place, None, metadata) is SwapOutcome.DONE
        assert catalog.locate(place) == metadata
        assert place in list(catalog.tables())

    def test_a_placed_table_moves_on(self, catalog: Placing, place: TableName, versions: Iterator[str]) -> None:
        stands = None
        for new in islice(versions, 3):
            assert catalog.place_table(place, stands, new) is SwapOutcome.DONE
            assert catalog.locate(place) == new
            stands = new
        assert list(catalog.tables()).count(place) == 1

    def test_a_table_that_is_there_is_not_replaced(
        self, catalog: Placing, place: TableName, versions: Iterator[str]
    ) -> None:
        first, second = islice(versions, 2)
        catalog.place_table(place, None, first)
        assert catalog.place_table(place, None, second) is SwapOutcome.LOST
        assert catalog.locate(place) == first

    def test_a_table_that_stands_elsewhere_stays_there(
        self, catalog: Placing, place: TableName, versions: Iterator[str]
    ) -> None:
        first, second, third, late = islice(versions, 4)
        catalog.place_table(place, None, first)
        catalog.place_table(place, first, second)
        assert catalog.place_table(place, first, late) is SwapOutcome.LOST
        assert catalog.place_table(place, third, late) is SwapOutcome.LOST
        assert catalog.locate(place) == second

    def test_a_table_that_is_not_there_does_not_move_on(
        self, catalog: Placing, place: TableName, versions: Iterator[str]
    ) -> None:
        assert catalog.place_table(place, next(versions), next(versions)) is SwapOutcome.LOST
        with pytest.raises(NoSuchTable):
            catalog.locate(place)

    def test_the_very_same_sent_again_changes_nothing(
        self, catalog: Placing, place: TableName, versions: Iterator[str]
    ) -> None:
        first, second = islice(versions, 2)
        for _ in range(2):
            assert catalog.place_table(place, None, first) is SwapOutcome.DONE
        for _ in range(2):
            assert catalog.place_table(place, first, second) is SwapOutcome.DONE
        assert catalog.place_table(place, None, first) is SwapOutcome.LOST
        assert catalog.locate(place) == second

    def test_tables_lie_beside_each_other_and_in_namespaces_within(
        self, catalog: Placing, place: TableName, versions: Iterator[str]
    ) -> None:
        inner = TableName(place.catalog, (*place.namespace, "within"), place.name)
        beside = TableName(place.catalog, place.namespace, place.name + "_too")
        placed = dict(zip((inner, place, beside), versions, strict=False))
        for table, location in placed.items():
            assert catalog.place_table(table, None, location) is SwapOutcome.DONE
        assert {table: catalog.locate(table) for table in placed} == placed
        assert placed.keys() <= set(catalog.tables())

    def test_of_racing_processes_one_places_a_table(
        self, catalog: Placing, place: TableName, versions: Iterator[str], racers: Executor
    ) -> None:
        for number in range(ROUNDS):
            table = TableName(place.catalog, place.namespace, f"{place.name}_{number}")
            _race_to_place(racers, catalog, table, None, versions)

    def test_of_racing_processes_one_moves_a_table_on(
        self, catalog: Placing, place: TableName, versions: Iterator[str], racers: Executor
    ) -> None:
        """Where nothing compares, several may be told that they did; the table is never lost, and stands at one's."""
        catalog.place_table(place, None, next(versions))
        for _ in range(ROUNDS):
            _race_to_place(racers, catalog, place, catalog.locate(place), versions, self.compares)

    def test_processes_that_place_different_tables_at_once_all_succeed(
        self, catalog: Placing, place: TableName, versions: Iterator[str], racers: Executor
    ) -> None:
        """The catalog and the namespace are not there yet: each of the processes makes them, or finds them made."""
        tables = [TableName(place.catalog, place.namespace, f"{place.name}_{number}") for number in range(RACERS)]
        list(racers.map(_woken, range(RACERS)))
        entered = [racers.submit(catalog.place_table, table, None, next(versions)) for table in tables]
        assert [entry.result() for entry in entered] == [SwapOutcome.DONE] * RACERS
        assert set(tables) <= set(catalog.tables())


def _copies(store: ReadWrite, metadata: str) -> Iterator[str]:
    data, folder = store.get(metadata), metadata.rpartition("/")[0]
    while True:
        copy = f"{folder}/{uuid4()}.metadata.json"
        store.put(copy, data)
        yield copy


def _woken(number: int) -> int:
    """Keeps one process for a moment, so that every one is started before they race."""
    time.sleep(0.5)
    return number


def _race_to_place(
    racers: Executor,
    catalog: Placing,
    table: TableName,
    expected: str | None,
    versions: Iterator[str],
    compares: bool = True,
) -> None:
    sent = list(islice(versions, RACERS))
    entered = [racers.submit(catalog.place_table, table, expected, each) for each in sent]
    outcomes = [entry.result() for entry in entered]
    won = [each for each, outcome in zip(sent, outcomes, strict=True) if outcome is SwapOutcome.DONE]
    assert set(outcomes) <= {SwapOutcome.DONE, SwapOutcome.LOST}, outcomes
    assert len(won) == 1 or not compares, outcomes
    assert catalog.locate(table) in won


def read_version(store: Get, location: str) -> Version:
    return Version(location, json.loads(store.get(location)))


def step_of(base: Version, edit: Callable[[Document], object]) -> Step:
    """Returns a step as a format makes it: an edited copy, the log extended, a name that was never used."""
    document: Document = json.loads(json.dumps(base.document))
    edit(document)
    entry = {"timestamp-ms": document["last-updated-ms"], "metadata-file": base.location}
    document["metadata-log"] = [*document.get("metadata-log", ()), entry]
    document["last-updated-ms"] += 1
    folder = base.location.rpartition("/")[0]
    return Step(base, document, json.dumps(document).encode(), f"{folder}/{uuid4()}.metadata.json")


def step_from(base: Version, writer: str) -> Step:
    """Returns a step that moves the tag to another snapshot and tells its writer."""

    def edit(document: Document) -> None:
        ids = sorted(each["snapshot-id"] for each in document["snapshots"])
        other = ids[0] if turn_of(document) != ids[0] else ids[1]
        document.setdefault("refs", {})[TURN] = {"snapshot-id": other, "type": "tag"}
        document.setdefault("properties", {})["writer"] = writer

    return step_of(base, edit)


def turn_of(document: Any) -> int | None:
    head: int | None = document.get("refs", {}).get(TURN, {}).get("snapshot-id")
    return head


def advance(commits: Commit, store: Get, table: TableName, base: str, writer: str) -> Attempt:
    """Returns one commit after `base`, which tells its writer, ready to be sent."""
    return commits.prepare(table, step_from(read_version(store, base), writer))


def _amend(document: Document, amendment: Any) -> None:
    for ref in amendment.refs:
        entry = {"snapshot-id": int(ref.snapshot), "type": ref.kind.value, "max-ref-age-ms": ref.max_ref_age_ms}
        document["refs"][ref.name] = entry
    for name in amendment.refs_gone:
        del document["refs"][name]


def _send(commits: Commit, store: Get, table: TableName, base: str, writer: str) -> SwapOutcome:
    return commits.commit(advance(commits, store, table, base, writer))


def _race(racers: Executor, catalog: Catalog, commits: Commit, store: Get, table: TableName) -> None:
    seen = {catalog.locate(table)}
    for number in range(ROUNDS):
        base = catalog.locate(table)
        entered = [racers.submit(_send, commits, store, table, base, f"{number}-{racer}") for racer in range(RACERS)]
        outcomes = Counter(entry.result() for entry in entered)
        assert outcomes == {SwapOutcome.DONE: 1, SwapOutcome.LOST: RACERS - 1}, outcomes
        seen.add(catalog.locate(table))
    assert len(seen) == ROUNDS + 1
