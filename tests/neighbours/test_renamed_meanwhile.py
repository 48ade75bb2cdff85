"""Tables that change names while all of them are read: each is met, under whatever name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.ops.neighbours.index import Index
from firnline.ops.neighbours.others import others_now
from firnline.ops.table.context import Registered
from firnline.ops.table.listings import read_all
from firnline.ports.catalogs import TableName
from tests.neighbours.lakes import RealLake

NAMES = "abcde"
RENAMES = st.lists(st.none() | st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12)
"""What happens before each read: nothing, or one name is given up for another one if that is free."""


@dataclass
class MovingTables:
    """A catalog whose tables are called otherwise between two reads. Each is known by the name that it had first. It
    is at a new version whenever it is listed, unless `tells_metadata` is False: then no listing tells.
    """

    renames: list[tuple[str, str] | None]
    tells_metadata: bool
    tables: dict[str, str] = field(default_factory=lambda: {name: name.upper() for name in NAMES[:3]})
    listings: int = 0

    def listed(self, afresh: bool) -> list[Registered]:
        self.listings += 1
        return [
            Registered(TableName("lake", ("db",), name), "", self._metadata(uuid), lambda: pytest.fail("never opened"))
            for name, uuid in sorted(self.tables.items())
        ]

    def read(self, due: Sequence[Registered]) -> Iterable[str | None]:
        for each in due:
            old, new = (self.renames.pop(0) if self.renames else None) or ("", "")
            if old in self.tables and new not in self.tables:
                self.tables[new] = self.tables.pop(old)
            yield self.tables.get(each.name.name)

    def _metadata(self, uuid: str) -> str | None:
        return f"{uuid}-{self.listings}" if self.tells_metadata else None


@given(renames=RENAMES, tells_metadata=st.booleans())
def test_every_table_is_read_whatever_it_is_called_meanwhile(
    renames: list[tuple[str, str] | None], tells_metadata: bool
) -> None:
    moving = MovingTables(list(renames), tells_metadata)
    found = read_all(moving.listed, moving.read, str)
    assert {*found} == {"A", "B", "C"}


@pytest.mark.parametrize("tells_metadata", [True, False])
def test_tables_that_are_written_to_and_never_renamed_are_listed_twice(tells_metadata: bool) -> None:
    moving = MovingTables([], tells_metadata)
    assert read_all(moving.listed, moving.read, str) == ["A", "B", "C"]
    assert moving.listings == 2


@pytest.fixture
def swapped(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Table b takes the name of c in the first look, right after c was read and before b is: a table is replaced so."""
    read, is_done = Index._read, Event()

    def then_swapped(self: Index, table: Registered) -> Any:
        if table.name.name == "b":
            is_done.wait(60)
        found = read(self, table)
        if table.name.name == "c" and not is_done.is_set():
            lake.catalog.rename_table("db.c", "db.old")
            lake.catalog.rename_table("db.b", "db.c")
            is_done.set()
        return found

    monkeypatch.setattr(Index, "_read", then_swapped)
    yield
    assert is_done.is_set()


@pytest.mark.parametrize("tells_metadata", [True, False], ids=["sql", "rest"])
def test_a_neighbour_that_takes_the_name_of_one_that_was_read_is_asked(
    lake: RealLake, request: pytest.FixtureRequest, tells_metadata: bool
) -> None:
    for name in NAMES[:3]:
        lake.create(name)
    uuid = str(lake.table("b").metadata.table_uuid)
    request.getfixturevalue("swapped")
    work = lake.firnline().places.table_context("lake.db.a")
    if not tells_metadata:
        listed = work.registered
        work = replace(work, registered=lambda also: [replace(each, metadata=None) for each in listed(also)])
    others = others_now(work, work.source.load(), ())
    assert uuid in {each.card.uuid for each in others.tables.values()}
