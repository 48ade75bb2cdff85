"""Readers who know only `version-hint.text`, however it is written and wherever it was left: what they find stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from firnline.errors import RefusedForSafety
from firnline.model.times import DAY_MS
from firnline.pointers.hints import HINT
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import COLUMN, RealLake
from tests.pointers.seen import folder, sync


def by_hint(place: Path) -> list[int]:
    """Returns the rows that PyIceberg finds by the table's folder alone."""
    return sorted(StaticTable.from_metadata(str(place)).scan().to_arrow().column(COLUMN).to_pylist())


def grown(lake: RealLake) -> Path:
    """Makes `a` of three snapshots that share no file; returns the metadata of the first."""
    lake.create("a")
    lake.append("a", 1)
    first = lake.table("a").metadata_location
    lake.overwrite("a", 2)
    lake.overwrite("a", 3)
    return Path(first.removeprefix("file://"))


@pytest.mark.parametrize("end", ["", ".metadata.json"])
def test_a_hint_may_have_the_name_with_its_end(lake: RealLake, end: str) -> None:
    first = grown(lake)
    first.with_name(HINT).write_text(first.name.removesuffix(".metadata.json") + end)
    lake.expire("a", blast_radius=1.0)
    assert by_hint(folder(lake, "a")) == [1]
    assert lake.read("a") == [3]


def test_pyiceberg_does_not_go_on_from_a_number(lake: RealLake) -> None:
    first = grown(lake)
    first.with_name("v7.metadata.json").write_bytes(first.read_bytes())
    first.with_name(HINT).write_text("7")
    lake.expire("a", blast_radius=1.0)
    assert by_hint(folder(lake, "a")) == [1]


def test_a_number_that_names_no_file_is_no_trouble(lake: RealLake) -> None:
    first = grown(lake)
    first.with_name(HINT).write_text("7")
    assert lake.firnline().check("lake.db.a").sound
    lake.expire("a", blast_radius=1.0)
    assert len(lake.table("a").snapshots()) == 1


def test_a_hint_that_was_left_where_the_metadata_was_before_still_counts(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\nversion-hint: true"
    lake.create("a")
    lake.append("a", 1)
    sync(lake)
    place = folder(lake, "a")
    with lake.table("a").transaction() as change:
        change.set_properties({"write.metadata.path": f"file://{place}/elsewhere"})
    lake.overwrite("a", 2)
    lake.overwrite("a", 3)
    sync(lake)
    assert len(list(place.rglob(HINT))) == 2
    assert by_hint(place) == [1]
    lake.expire("a", blast_radius=1.0)
    assert by_hint(place) == [1]


def test_a_dropped_table_is_not_removed_while_a_hint_leads_to_it(lake: RealLake) -> None:
    first = grown(lake)
    place = folder(lake, "a")
    newest = Path(lake.table("a").metadata_location)
    first.with_name(HINT).write_text(newest.name.removesuffix(".metadata.json"))
    lake.create("b")
    lake.catalog.drop_table("db.a")
    later = dated(lake.firnline(), Clock(30 * DAY_MS))
    with pytest.raises(RefusedForSafety, match=HINT):
        later.purge_dropped(str(lake.folder / "warehouse"), f"file://{place}")
    assert by_hint(place) == [3]


def test_another_tables_hint_is_left_alone_however_it_is_written(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\nversion-hint: true"
    first = grown(lake)
    lake.catalog.create_table("db.b", lake.table("a").schema(), location=lake.table("a").location())
    first.with_name(HINT).write_text(first.name)
    (done,) = lake.firnline().pointers.sync(["lake.db.b"])
    assert "another table's" in str(done.problems)
    assert by_hint(folder(lake, "a")) == [1]


def test_no_hint_leads_to_metadata_that_is_called_by_a_number(lake: RealLake) -> None:
    """Readers would look for v00003.metadata.json."""
    lake.policy = "pointers: identifier\nversion-hint: true"
    first = grown(lake)
    number = first.with_name("00003.metadata.json")
    number.write_bytes(first.read_bytes())
    lake.catalog.drop_table("db.a")
    lake.catalog.register_table("db.a", f"file://{number}")
    (done,) = lake.firnline().pointers.sync()
    assert "no hint can lead" in str(done.problems)
    assert not first.with_name(HINT).exists()
