"""What every catalog must do: subclass the contract, say how a table is found and committed to, and pytest runs
it.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import ClassVar
from uuid import uuid4

import pytest

from firnline.errors import NoSuchTable
from firnline.ports.catalogs import Catalog, Commit, SwapOutcome, TableName

RACERS = 4
ROUNDS = 8


class CatalogContract:
    """The contract of Catalog and Commit.

    A subclass gives the fixtures: `catalog`, `commits` (picklable), `table` (one that exists) and `absent` (one that
    does not); and `contents`, which returns every byte the catalog stands on.
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
        self, catalog: Catalog, commits: Commit, absent: TableName
    ) -> None:
        before = self.contents(catalog)
        with pytest.raises(NoSuchTable):
            advance(commits, absent, "/nowhere/metadata/v1.metadata.json", "nobody")
        assert self.contents(catalog) == before

    def test_reading_changes_no_byte(self, catalog: Catalog, table: TableName, absent: TableName) -> None:
        before = self.contents(catalog)
        list(catalog.tables())
        catalog.locate(table)
        with pytest.raises(NoSuchTable):
            catalog.locate(absent)
        assert self.contents(catalog) == before

    def test_an_advanced_pointer_has_moved(self, catalog: Catalog, commits: Commit, table: TableName) -> None:
        before = catalog.locate(table)
        assert advance(commits, table, before, "first") is SwapOutcome.DONE
        after = catalog.locate(table)
        assert after != before
        assert advance(commits, table, after, "second") is SwapOutcome.DONE
        assert catalog.locate(table) not in (before, after)

    def test_a_stale_expectation_loses_and_changes_nothing(
        self, catalog: Catalog, commits: Commit, table: TableName
    ) -> None:
        stale = catalog.locate(table)
        assert advance(commits, table, stale, "first") is SwapOutcome.DONE
        before = self.contents(catalog)
        assert advance(commits, table, stale, "late") is SwapOutcome.LOST
        assert self.contents(catalog) == before

    def test_the_same_commit_succeeds_at_most_once(self, catalog: Catalog, commits: Commit, table: TableName) -> None:
        base = catalog.locate(table)
        new = commits.successor(table, base, f"{base.rpartition('/')[0]}/again.metadata.json")
        sent = [commits.commit(table, base, new, b"the same") for _ in range(3)]
        assert sent == [SwapOutcome.DONE, SwapOutcome.LOST, SwapOutcome.LOST]
        assert catalog.locate(table) == new

    def test_of_racing_threads_one_wins(self, catalog: Catalog, commits: Commit, table: TableName) -> None:
        with ThreadPoolExecutor(RACERS) as racers:
            _race(racers, catalog, commits, table)

    def test_of_racing_processes_one_wins(self, catalog: Catalog, commits: Commit, table: TableName) -> None:
        with ProcessPoolExecutor(RACERS, multiprocessing.get_context("spawn")) as racers:
            _race(racers, catalog, commits, table)


def advance(commits: Commit, table: TableName, base: str, writer: str) -> SwapOutcome:
    """Makes one commit after `base`, whose name and data tell its writer."""
    suggested = f"{base.rpartition('/')[0]}/{uuid4()}-{writer}.metadata.json"
    return commits.commit(table, base, commits.successor(table, base, suggested), writer.encode())


def _race(racers: Executor, catalog: Catalog, commits: Commit, table: TableName) -> None:
    seen = {catalog.locate(table)}
    for number in range(ROUNDS):
        expected = catalog.locate(table)
        entered = [racers.submit(advance, commits, table, expected, f"{number}-{racer}") for racer in range(RACERS)]
        outcomes = Counter(entry.result() for entry in entered)
        assert outcomes == {SwapOutcome.DONE: 1, SwapOutcome.LOST: RACERS - 1}
        seen.add(catalog.locate(table))
    assert len(seen) == ROUNDS + 1
