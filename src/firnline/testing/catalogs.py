"""What every catalog must do: subclass the contract, say how a table is made and advanced, and pytest runs
it.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pytest

from firnline.errors import NoSuchTable
from firnline.ports.catalogs import Catalog, Swap, SwapOutcome, TableName

RACERS = 4
ROUNDS = 8


class Advance(Protocol):
    """One attempt to move a table's pointer on from `expected`; `writer` makes the attempt tell itself
    apart.
    """

    def __call__(self, table: TableName, expected: str, writer: str) -> SwapOutcome: ...


@dataclass(frozen=True)
class Swapping:
    """Advances by the Swap port, to a new name that nothing is written under."""

    catalog: Swap

    def __call__(self, table: TableName, expected: str, writer: str) -> SwapOutcome:
        return self.catalog.swap(table, expected, f"{expected}.{writer}")


class CatalogContract:
    """The contract of Catalog, and of moving a pointer by compare-and-swap.

    A subclass gives the fixtures: `catalog`, `advance` (picklable), `table` (one that exists), `absent`
    (one that does not), and `contents`, which returns every byte the catalog stands on.
    """

    enumerates: ClassVar[bool] = True
    """Whether the catalog can list its tables."""

    @pytest.fixture
    def catalog(self) -> Catalog:
        raise NotImplementedError

    @pytest.fixture
    def advance(self) -> Advance:
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

    def test_an_unknown_table_cannot_be_advanced(self, advance: Advance, absent: TableName) -> None:
        with pytest.raises(NoSuchTable):
            advance(absent, f"{absent.name}/metadata/v1.metadata.json", "nobody")

    def test_reading_changes_no_byte(self, catalog: Catalog, table: TableName, absent: TableName) -> None:
        before = self.contents(catalog)
        list(catalog.tables())
        catalog.locate(table)
        with pytest.raises(NoSuchTable):
            catalog.locate(absent)
        assert self.contents(catalog) == before

    def test_an_advanced_pointer_has_moved(self, catalog: Catalog, advance: Advance, table: TableName) -> None:
        before = catalog.locate(table)
        assert advance(table, before, "first") is SwapOutcome.DONE
        after = catalog.locate(table)
        assert after != before
        assert advance(table, after, "second") is SwapOutcome.DONE
        assert catalog.locate(table) not in (before, after)

    def test_a_stale_expectation_loses_and_changes_nothing(
        self, catalog: Catalog, advance: Advance, table: TableName
    ) -> None:
        stale = catalog.locate(table)
        assert advance(table, stale, "first") is SwapOutcome.DONE
        before = self.contents(catalog)
        assert advance(table, stale, "late") is SwapOutcome.LOST
        assert self.contents(catalog) == before

    def test_of_racing_threads_one_wins(self, catalog: Catalog, advance: Advance, table: TableName) -> None:
        with ThreadPoolExecutor(RACERS) as racers:
            _race(racers, catalog, advance, table)

    def test_of_racing_processes_one_wins(self, catalog: Catalog, advance: Advance, table: TableName) -> None:
        with ProcessPoolExecutor(RACERS, multiprocessing.get_context("spawn")) as racers:
            _race(racers, catalog, advance, table)


def _race(racers: Executor, catalog: Catalog, advance: Advance, table: TableName) -> None:
    seen = {catalog.locate(table)}
    for number in range(ROUNDS):
        expected = catalog.locate(table)
        entered = [racers.submit(advance, table, expected, f"{number}-{racer}") for racer in range(RACERS)]
        outcomes = Counter(entry.result() for entry in entered)
        assert outcomes == {SwapOutcome.DONE: 1, SwapOutcome.LOST: RACERS - 1}
        seen.add(catalog.locate(table))
    assert len(seen) == ROUNDS + 1
