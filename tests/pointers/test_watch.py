"""Watching: what moves on is published, at the price of one query for each look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from firnline.lake import Lake
from tests.neighbours.lakes import RealLake, real_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as found:
        found.policy = "pointers: identifier"
        yield found


def newest(firnline: Lake, lake: RealLake, name: str) -> bool:
    found = firnline.pointers.open_path(lake.table(name).location())
    return found.metadata == lake.table(name).metadata_location


def test_what_moves_on_is_published_and_nothing_else(lake: RealLake) -> None:
    for name in ("one", "two"):
        lake.create(name)
    firnline = lake.firnline()
    watching = firnline.pointers.watch()
    assert sorted(each.table for each in watching.look()) == ["lake.db.one", "lake.db.two"]
    assert list(watching.look()) == []
    lake.append("two", 1)
    assert [each.table for each in watching.look()] == ["lake.db.two"]
    assert newest(firnline, lake, "one")
    assert newest(firnline, lake, "two")


def test_tables_come_go_and_change_their_names(lake: RealLake) -> None:
    lake.create("t")
    firnline = lake.firnline()
    watching = firnline.pointers.watch()
    list(watching.look())
    lake.create("u")
    lake.catalog.rename_table("db.t", "db.new")
    done = {each.table: each for each in watching.look()}
    assert sorted(done) == ["lake.db.new", "lake.db.u"]
    place = lake.table("new").location()
    assert firnline.pointers.open_path(place, table="db.t").metadata == lake.table("new").metadata_location
    lake.catalog.drop_table("db.u")
    assert list(watching.look()) == []


def test_a_table_that_fails_stops_no_other_and_is_tried_again(lake: RealLake) -> None:
    for name in ("bad", "good"):
        lake.create(name)
    broken = Path(lake.table("bad").location().removeprefix("file://")) / "db_bad_main.ver"
    broken.write_text("{")
    firnline = lake.firnline()
    watching = firnline.pointers.watch()
    done = {each.table: each.problems for each in watching.look()}
    assert done["lake.db.good"] == ()
    assert len(done["lake.db.bad"]) == 1
    assert list(watching.look()) == [], "told once"
    broken.unlink()
    assert [(each.table, each.problems) for each in watching.look()] == [("lake.db.bad", ())]


def test_a_look_is_one_query(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        lake.create(f"t{number}")
    watching = lake.firnline().pointers.watch()
    list(watching.look())
    asked: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        assert list(watching.look()) == []
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert [each.split()[0] for each in asked if not each.startswith("PRAGMA")] == ["SELECT"]
