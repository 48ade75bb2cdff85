"""Pointers that nobody asks for any more, registrations that diverge, and what cleans up when nobody says sync."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.places import now_ms
from firnline.errors import RefusedForSafety, UsageError
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.pointers.document import parse_pointer
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import RealLake, rows
from tests.pointers.seen import files, folder, read, sync

LINKS = "\npointer-links: 7d"


def pins(lake: RealLake) -> list[str]:
    plan = lake.firnline().plan("lake.db.t", older_than=now_ms(), retain_last=1, blast_radius=1.0).plan
    return [reason for each in plan.keep for reason in each.reasons if "pointer" in reason]


def grown(lake: RealLake) -> Path:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    lake.overwrite("t", 2)
    return folder(lake, "t")


def test_pointers_that_are_turned_on_again_do_not_end(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    place = grown(lake)
    sync(lake)
    lake.policy = "pointers: off"
    sync(lake)
    lake.policy = "pointers: identifier"
    assert sync(lake) == [("db_t_main.ver", "moved on")]
    assert parse_pointer((place / "db_t_main.ver").read_bytes(), "x").expires_at is None


@pytest.mark.parametrize("naming", ["identifier", "ordinal", "uuid"])
def test_pointers_that_are_turned_off_go_on_for_a_while_and_end(lake: RealLake, naming: str) -> None:
    lake.policy = f"pointers: {naming}{LINKS}"
    place = grown(lake)
    lake.policy = f"pointers: off{LINKS}"
    assert pins(lake), "nobody took it away, and readers may go by it"
    assert {outcome for _, outcome in sync(lake)} == {"ends"}
    assert read(lake, place) == [2], "until its end it says what the catalog says"
    assert sync(lake) == []
    dated(lake.firnline(), Clock(8 * DAY_MS)).pointers.sync()
    assert files(place) == []
    assert pins(lake) == []


def test_a_policy_that_says_nothing_any_more_ends_those_of_named_tables(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    place = grown(lake)
    lake.policy = ""
    assert lake.firnline().pointers.sync() == []
    assert sync(lake, tables=["lake.db.t"]) == [("db_t_main.ver", "ends")]
    assert parse_pointer((place / "db_t_main.ver").read_bytes(), "x").expires_at is not None


def test_links_of_a_catalog_that_was_taken_over_end(lake: RealLake) -> None:
    lake.policy = f"pointers: identifier{LINKS}"
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    lake.catalog.rename_table("db.t", "db.u")
    sync(lake)
    place = folder(lake, "u")
    with moved_to_another_catalog(lake, "u") as catalog:
        catalog.load_table("db.u").append(rows(2))
        sync(lake, take_over=True)
        assert read(lake, place, table="db.u") == [1, 2]
        assert read(lake, place, table="db.t") == [1, 2]
        dated(lake.firnline(), Clock(8 * DAY_MS)).pointers.sync()
        assert files(place) == ["db_u_main.ver"]


def moved_to_another_catalog(lake: RealLake, name: str) -> SqlCatalog:
    """Returns another catalog, now configured in place of the lake's, that has the table in the same folder."""
    settings = {"type": "sql", "uri": f"sqlite:///{lake.folder}/dev.db", "warehouse": f"file://{lake.folder}/warehouse"}
    other = SqlCatalog("lake", **settings)
    other.create_namespace("db")
    other.register_table(f"db.{name}", lake.table(name).metadata_location)
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))
    return other


@pytest.mark.parametrize("naming", ["identifier", "uuid"])
def test_two_registrations_that_diverged_do_not_lead_readers_to_and_fro(lake: RealLake, naming: str) -> None:
    lake.policy = f"pointers: {naming}\nversion-hint: true"
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    lake.catalog.register_table("db.u", lake.table("t").metadata_location)
    lake.append("t", 2)
    sync(lake, tables=["lake.db.t"])
    lake.append("u", 3)
    place = folder(lake, "t")
    hint = place / "metadata" / "version-hint.text"
    for name in ("u", "t", "u"):
        (done,) = lake.firnline().pointers.sync([f"lake.db.{name}"])
        assert bool(done.problems) == (name == "u")
        assert hint.read_text() in lake.table("t").metadata_location
        if naming == "uuid":
            assert read(lake, place) == [1, 2]
    told = [str(each) for each in done.problems]
    assert any("another table's" in each for each in told), "the hint"
    assert any("registered twice" in each for each in told) == (naming == "uuid")
    lake.catalog.drop_table("db.t")
    sync(lake)
    assert read(lake, place, table="db.u") == [1, 3], "a rename looks the same, and is none"


def test_a_log_is_trimmed_by_what_makes_it_grow(lake: RealLake) -> None:
    lake.policy = f"pointers: ordinal{LINKS}"
    place = grown(lake)
    clock = Clock()
    firnline = dated(lake.firnline(), clock)
    (name,) = firnline.places.catalogs.chosen(["lake.db.t"]).tables
    firnline.pointers.publish(name)
    assert len(files(place)) == 3, "the guard and two entries"
    clock.ahead_ms = 8 * DAY_MS
    lake.append("t", 3)
    done = firnline.pointers.publish(name)
    assert [each.outcome for each in done].count("expired") == 2
    assert len(files(place)) == 2


def test_a_watch_cleans_up_once_a_day(lake: RealLake) -> None:
    lake.policy = f"pointers: identifier{LINKS}"
    lake.create("t")
    sync(lake)
    lake.catalog.rename_table("db.t", "db.u")
    place = folder(lake, "u")
    clock = Clock()
    watching = dated(lake.firnline(), clock).pointers.watch()
    list(watching.look())
    assert files(place) == ["db_t_main.ver", "db_u_main.ver"]
    clock.ahead_ms = 23 * HOUR_MS
    assert list(watching.look()) == []
    lake.append("u", 1)
    list(watching.look())
    told = parse_pointer((place / "db_t_main.ver").read_bytes(), "x")
    assert told.metadata_file_path != lake.table("u").metadata_location
    clock.ahead_ms = 25 * HOUR_MS
    list(watching.look())
    assert read(lake, place / "db_t_main.ver") == [1], "the link is up to date"
    clock.ahead_ms = 9 * DAY_MS
    list(watching.look())
    assert files(place) == ["db_u_main.ver"]


def test_what_a_hint_is_refused_for_does_not_keep_links(lake: RealLake) -> None:
    lake.policy = f"pointers: identifier\nversion-hint: true{LINKS}"
    lake.create("t")
    sync(lake)
    place = folder(lake, "t")
    lake.create("other")
    strange = Path(lake.table("other").metadata_location.removeprefix("file://"))
    (place / "metadata" / strange.name).write_bytes(strange.read_bytes())
    (place / "metadata" / "version-hint.text").write_text(strange.name.removesuffix(".metadata.json"))
    lake.catalog.rename_table("db.t", "db.u")
    (done,) = lake.firnline().pointers.sync(["lake.db.u"])
    assert [type(each) for each in done.problems] == [RefusedForSafety]
    assert "leads to db_u_main.ver" in {each.outcome for each in done.pointers}


def test_a_catalog_that_cannot_be_listed_stops_no_other(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    lake.create("t")
    config = lake.folder / ".pyiceberg.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["catalog"]["away"] = {"type": "sql", "uri": f"sqlite:///{lake.folder}/none/away.db", "warehouse": "/w"}
    config.write_text(yaml.safe_dump(settings))
    done = {each.table: len(each.problems) for each in lake.firnline().pointers.sync()}
    assert done == {"lake.db.t": 0, "away": 1}


def test_a_watch_of_an_empty_catalog_finds_rows_of_whatever_spelling(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    watching = lake.firnline().pointers.watch()
    assert list(watching.look()) == []
    other = SqlCatalog("Lake", **lake.catalog.properties)
    other.create_namespace("db")
    other.create_table("db.t", rows(1).schema)
    other.close()
    assert [each.table for each in watching.look()] == ["lake.db.t"]


def test_a_log_is_read_where_the_name_of_the_table_ends(lake: RealLake) -> None:
    """Another naming: the old file ends, and only a sync takes it along; the log goes on with each commit."""
    lake.policy = "pointers: identifier"
    place = grown(lake)
    lake.policy = "pointers: ordinal"
    sync(lake)
    lake.append("t", 3)
    firnline = lake.firnline()
    firnline.pointers.publish(firnline.places.catalogs.name_of("lake.db.t"))
    assert read(lake, place, table="db.t") == [2, 3]
    uuid = str(lake.table("t").metadata.table_uuid)
    assert read(lake, place, uuid=uuid.upper()) == [2, 3]


def test_a_huge_file_under_a_pointers_name_is_not_read_before_it_is_replaced(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    place = grown(lake)
    told = (place / "db_t_main.ver").read_text()
    (place / "db_t_main.ver").write_text(told + " " * (2 << 20))
    (done,) = lake.firnline().pointers.sync()
    assert "2,09" in str(done.problems[0])
    assert len((place / "db_t_main.ver").read_text()) > 2 << 20


@pytest.mark.parametrize("between", ["off", "uuid"])
def test_a_file_that_is_in_use_again_does_not_end(lake: RealLake, between: str) -> None:
    """No commit comes between. Else it would go at the next rename at once, and lead nobody on."""
    lake.policy = f"pointers: identifier{LINKS}"
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    lake.policy = f"pointers: {between}{LINKS}"
    assert ("db_t_main.ver", "ends") in sync(lake)
    lake.policy = f"pointers: identifier{LINKS}"
    sync(lake)
    place = folder(lake, "t")
    assert parse_pointer((place / "db_t_main.ver").read_bytes(), "x").expires_at is None
    lake.catalog.rename_table("db.t", "db.new")
    clock = Clock()
    clock.ahead_ms = 8 * DAY_MS
    dated(lake.firnline(), clock).pointers.sync()
    assert read(lake, place, table="db.t") == [1]


def test_links_that_stay_for_ever_can_be_read(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\npointer-links: 99999999d"
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    lake.catalog.rename_table("db.t", "db.new")
    sync(lake)
    assert sync(lake) == [("db_new_main.ver", "unchanged")]
    assert read(lake, folder(lake, "new"), table="db.t") == [1]
    lake.expire("new")


def test_readers_of_a_table_that_is_registered_twice_are_asked_which(lake: RealLake) -> None:
    """Without that they would be led from one registration to the other and back, by whichever was published last."""
    lake.policy = "pointers: identifier"
    lake.create("one")
    lake.append("one", 1)
    lake.catalog.register_table("db.two", lake.table("one").metadata_location)
    sync(lake)
    place = folder(lake, "one")
    assert read(lake, place) == [1], "both lead to the same"
    for number, name in enumerate(("one", "two"), 2):
        lake.append(name, number)
        sync(lake)
        with pytest.raises(UsageError, match=r"db\.one .*db\.two|db\.two .*db\.one"):
            read(lake, place)
    assert (read(lake, place, table="db.one"), read(lake, place, table="db.two")) == ([1, 2], [1, 3])


def test_a_file_that_ends_is_not_preferred_to_one_that_does_not(lake: RealLake) -> None:
    """It is from a clock that was ahead, and only `sync` brings it on."""
    lake.policy = f"pointers: identifier{LINKS}"
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    place = folder(lake, "t")
    old = place / "db_t_main.ver"
    old.write_bytes(replace(parse_pointer(old.read_bytes(), "x"), ordinal="20990101T000000.000").to_bytes())
    lake.policy = f"pointers: uuid{LINKS}"
    sync(lake)
    firnline = lake.firnline()
    lake.append("t", 2)
    firnline.pointers.publish_one(firnline.pointers.places.catalogs.name_of("lake.db.t"))
    assert read(lake, place) == [1, 2]
