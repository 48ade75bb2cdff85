"""Watching: what moves on is published, at the price of one query for each look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.lake import Lake
from firnline.model.times import DAY_MS
from firnline.testing.dated import Clock, dated
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


def test_a_catalog_that_does_not_answer_keeps_no_other_waiting(
    lake: RealLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are due for days, and as many as are looked at in one look; links of the other catalog still end."""
    monkeypatch.setattr("firnline.app.pointers.watch.CLEANED_AT_ONCE", 1)
    uri = f"sqlite:///{tmp_path}/first.db"
    settings = tmp_path / ".pyiceberg.yaml"
    known = yaml.safe_load(settings.read_text())["catalog"]
    first = {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/first"}
    settings.write_text(yaml.safe_dump({"catalog": {"first": first, **known}}))
    catalog = SqlCatalog("first", **first)
    catalog.create_namespace("db")
    catalog.create_table("db.t", lake.create("t").schema())
    catalog.close()
    clock = Clock()
    watching = dated(lake.firnline(), clock).pointers.watch()
    assert sorted(each.table for each in watching.look()) == ["first.db.t", "lake.db.t"]
    (tmp_path / "first.db").unlink()
    pointer = Path(lake.table("t").location().removeprefix("file://")) / "db_t_main.ver"
    pointer.unlink()
    clock.ahead_ms = 2 * DAY_MS
    assert [each.table for each in watching.look()] == ["lake.db.t"]
    assert list(watching.unread) == ["first"]
    assert pointer.exists()
