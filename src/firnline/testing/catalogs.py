"""What every catalog must do: subclass the contract, say how a table is found and committed to, and pytest runs
it.
"""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from firnline.errors import NoSuchTable
from firnline.ports.catalogs import Attempt, Catalog, Commit, Step, SwapOutcome, TableName, Version
from firnline.ports.stores import Get
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
