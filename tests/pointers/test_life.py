"""Pointers of real tables: what readers find after commits, renames, drops, in shared folders and two environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from firnline.errors import NoSuchTable, RefusedForSafety, UnreadableMetadata, UsageError
from firnline.model.times import DAY_MS
from firnline.pointers.document import parse_pointer
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import COLUMN, RealLake
from tests.pointers.seen import files, folder, read, sync

NAMINGS = ("identifier", "ordinal", "uuid")


@pytest.fixture(params=[NAMINGS[0], *(pytest.param(each, marks=pytest.mark.full) for each in NAMINGS[1:])])
def naming(request: pytest.FixtureRequest, lake: RealLake) -> str:
    lake.policy = f"pointers: {request.param}"
    return str(request.param)


def test_nothing_is_published_unless_a_policy_asks(lake: RealLake) -> None:
    lake.create("t")
    lake.append("t", 1)
    assert sync(lake) == []
    lake.expire("t")
    assert files(folder(lake, "t")) == []


def test_a_table_is_read_without_its_catalog(lake: RealLake, naming: str) -> None:
    lake.create("t")
    lake.append("t", 1)
    assert [outcome for _, outcome in sync(lake)] == ["new"]
    guid = lake.table("t").metadata.table_uuid
    assert (
        files(folder(lake, "t"))
        == {
            "identifier": ["db_t_main.ver"],
            "ordinal": ["_pointers/db_t_TIME.ver", "_pointers/db_t_main.ver"],
            "uuid": [f"_pointers/db_t_{guid}.ver"],
        }[naming]
    )
    for asked in ({}, {"table": "db.t"}, {"uuid": str(guid)}):
        assert read(lake, folder(lake, "t"), **asked) == [1]
    found = lake.firnline().pointers.open_path(str(folder(lake, "t")))
    assert found.metadata == lake.table("t").metadata_location
    assert (found.catalog, found.behind) == ("lake", None)


def test_what_was_missed_is_told_and_repaired(lake: RealLake, naming: str) -> None:
    lake.create("t")
    sync(lake)
    for number in range(3):
        lake.append("t", number)
    found = lake.firnline().pointers.open_path(str(folder(lake, "t")))
    assert found.behind is not None
    assert found.behind.commits == 3
    (synced,) = lake.firnline().pointers.sync()
    (pointer,) = synced.pointers
    assert (pointer.outcome, pointer.was_behind) == ("moved on", found.behind)
    assert read(lake, folder(lake, "t")) == [0, 1, 2]
    assert sync(lake) == [(pointer.key.rpartition("/")[2], "unchanged")]


def test_own_commits_are_followed_at_once(lake: RealLake, naming: str) -> None:
    lake.create("t")
    for number in range(3):
        lake.append("t", number)
    run = lake.expire("t", grace="1h")
    assert read(lake, folder(lake, "t")) == [0, 1, 2]
    found = lake.firnline().pointers.open_path(str(folder(lake, "t")))
    assert found.metadata == lake.table("t").metadata_location
    lake.firnline().undo(str(run.id))
    lake.firnline().hold("lake.db.t", "audit", why="x")
    found = lake.firnline().pointers.open_path(str(folder(lake, "t")))
    assert (found.metadata, found.behind) == (lake.table("t").metadata_location, None)


def test_a_pointer_that_cannot_be_written_does_not_fail_the_commit(
    lake: RealLake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.policy = "pointers: identifier"
    lake.create("t")
    lake.append("t", 1)
    (folder(lake, "t") / "db_t_main.ver").write_text("not a pointer")
    lake.firnline().tag("lake.db.t", "kept")
    assert "kept" in lake.table("t").metadata.refs
    assert "were not published" in caplog.text


def test_what_vanished_is_published_again(lake: RealLake, naming: str) -> None:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    for each in folder(lake, "t").rglob("*.ver"):
        each.unlink()
    with pytest.raises(NoSuchTable):
        lake.firnline().pointers.open_path(str(folder(lake, "t")))
    sync(lake)
    assert read(lake, folder(lake, "t")) == [1]


def test_a_renamed_table_is_found_by_both_names(lake: RealLake, naming: str) -> None:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    place = folder(lake, "t")
    lake.catalog.rename_table("db.t", "db.new")
    lake.append("new", 2)
    sync(lake)
    assert read(lake, place) == [1, 2]
    assert read(lake, place, table="db.new") == [1, 2]
    if naming == "uuid":
        assert len(files(place)) == 1, "the same file goes on"
        return
    found = lake.firnline().pointers.open_path(str(place), table="db.t")
    assert found.metadata == lake.table("new").metadata_location
    assert [Path(each).name for each in found.found.followed] != []
    sync(lake)
    assert read(lake, place, table="db.t") == [1, 2], "a link stays a link"


def test_links_end_when_their_time_is_over(lake: RealLake) -> None:
    lake.policy = "pointers: ordinal\npointer-links: 7d"
    lake.create("t")
    sync(lake)
    place = folder(lake, "t")
    lake.catalog.rename_table("db.t", "db.new")
    sync(lake)
    assert "_pointers/db_t_main.ver" in files(place)
    clock = Clock()
    clock.ahead_ms = 8 * DAY_MS
    done = dated(lake.firnline(), clock).pointers.sync()
    assert {each.outcome for table in done for each in table.pointers} == {"unchanged", "expired"}
    assert files(place) == ["_pointers/db_new_TIME.ver", "_pointers/db_new_main.ver"]
    assert read(lake, place) == []


def test_old_entries_of_a_log_go_and_the_newest_stays(lake: RealLake) -> None:
    lake.policy = "pointers: ordinal\npointer-links: 1d"
    lake.create("t")
    for number in range(4):
        lake.append("t", number)
        sync(lake)
    assert len(files(folder(lake, "t"))) == 5
    clock = Clock()
    clock.ahead_ms = 2 * DAY_MS
    dated(lake.firnline(), clock).pointers.sync()
    assert files(folder(lake, "t")) == ["_pointers/db_t_TIME.ver", "_pointers/db_t_main.ver"]
    assert read(lake, folder(lake, "t")) == [0, 1, 2, 3]


def from_a_clock_ahead(lake: RealLake, name: str) -> None:
    """Makes the newest entry of a log one from a clock that was ahead, and lets the file beside the log vanish."""
    (guard,) = folder(lake, name).glob("_pointers/*_main.ver")
    entry = max(each for each in guard.parent.iterdir() if each != guard)
    ahead = {**json.loads(entry.read_text()), "Ordinal": "20990101T000000.000"}
    (guard.parent / f"db_{name}_20990101T000000.000.ver").write_text(json.dumps(ahead))
    guard.unlink()


def test_a_log_counts_on_from_its_newest_entry(lake: RealLake) -> None:
    lake.policy = "pointers: ordinal"
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    from_a_clock_ahead(lake, "t")
    lake.append("t", 2)
    assert sync(lake) == [("db_t_main.ver", "new")]
    assert read(lake, folder(lake, "t")) == [1, 2]
    assert max(each.name for each in folder(lake, "t").glob("_pointers/*T*.ver")) == "db_t_20990101T000000.001.ver"
    assert sync(lake) == [("db_t_main.ver", "unchanged")]


def test_a_log_without_the_file_beside_it_is_still_its_catalogs_own(lake: RealLake) -> None:
    lake.policy = "pointers: ordinal"
    lake.create("t")
    sync(lake)
    (entry,) = folder(lake, "t").glob("_pointers/*T*.ver")
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "published_by": "sql:elsewhere"}))
    (folder(lake, "t") / "_pointers" / "db_t_main.ver").unlink()
    with pytest.raises(RefusedForSafety, match="another catalog"):
        sync(lake)
    sync(lake, take_over=True)
    assert lake.firnline().pointers.open_path(str(folder(lake, "t"))).catalog == "lake"


def test_a_table_made_again_in_the_same_folder_is_told_apart_by_its_uuid(lake: RealLake, naming: str) -> None:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    place, before = folder(lake, "t"), str(lake.table("t").metadata.table_uuid)
    lake.catalog.drop_table("db.t")
    lake.create("t")
    lake.append("t", 2)
    assert folder(lake, "t") == place
    found = lake.firnline().pointers.open_path(str(place))
    assert (found.catalog, found.found.pointer.guid) == ("lake", before)
    assert found.behind is not None, "it still leads to the table that was dropped"
    sync(lake)
    assert read(lake, place) == [2]
    assert read(lake, place, table="db.t") == [2]
    assert read(lake, place, uuid=str(lake.table("t").metadata.table_uuid)) == [2]
    with pytest.raises(NoSuchTable):
        lake.firnline().pointers.open_path(str(place), uuid=before)


def test_several_tables_in_one_folder_have_their_own(lake: RealLake, naming: str) -> None:
    place = f"file://{lake.folder}/shared"
    for name, rows in (("b_c", 1), ("c", 2)):
        lake.catalog.create_table(f"db.{name}", lake.create(f"like_{name}").schema(), location=place)
        lake.append(name, rows)
    lake.catalog.create_namespace("db_b")
    lake.catalog.create_table("db_b.c", lake.table("c").schema(), location=place)
    sync(lake)
    shared = Path(place.removeprefix("file://"))
    assert read(lake, shared, table="db.b_c") == [1]
    assert read(lake, shared, table="db.c") == [2]
    assert read(lake, shared, table="db_b.c") == []
    with pytest.raises(UsageError, match="pointers of 3 tables"):
        lake.firnline().pointers.open_path(str(shared))


def test_another_environment_with_the_same_name_is_refused(
    lake: RealLake, naming: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    place = folder(lake, "t")
    settings = {"type": "sql", "uri": f"sqlite:///{lake.folder}/dev.db", "warehouse": f"file://{lake.folder}/warehouse"}
    dev = SqlCatalog("lake", **settings)
    dev.create_namespace("db")
    dev.create_table("db.t", lake.table("t").schema(), location=lake.table("t").location())
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))
    try:
        if naming == "uuid":
            sync(lake)
            with pytest.raises(UsageError, match="2 tables"):
                lake.firnline().pointers.open_path(str(place))
            return
        with pytest.raises(RefusedForSafety, match="another catalog"):
            sync(lake)
        assert read(lake, place) == [1], "the first one's readers see what they saw"
        sync(lake, take_over=True)
        assert read(lake, place) == []
    finally:
        dev.close()


def test_branches_that_are_asked_for_have_their_own(lake: RealLake, naming: str) -> None:
    lake.policy += "\npointer-branches: [main, release-*]"
    lake.create("t")
    lake.append("t", 1)
    for branch in ("release-1", "dev"):
        lake.branch("t", branch)
    sync(lake)
    found = lake.firnline().pointers.open_path(str(folder(lake, "t")), branch="release-1")
    assert (found.found.pointer.branch, found.metadata) == ("release-1", lake.table("t").metadata_location)
    with pytest.raises(NoSuchTable):
        lake.firnline().pointers.open_path(str(folder(lake, "t")), branch="dev")


# ---------------------------------------------------------------- bad input


def put(place: Path, name: str, **changed: Any) -> None:
    document = {
        "version": 1,
        "table_identifier": "db.t",
        "guid": "123e4567-e89b-12d3-a456-426614174000",
        "metadata_file_path": f"file://{place}/metadata/x.metadata.json",
        "Ordinal": "20240128T153045",
        **changed,
    }
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(json.dumps(document))


def test_a_circle_of_links_ends(lake: RealLake, tmp_path: Path) -> None:
    put(tmp_path / "t", "db_t_main.ver", renamed_to="db_u_main.ver")
    put(tmp_path / "t", "db_u_main.ver", renamed_to="db_t_main.ver")
    with pytest.raises(UnreadableMetadata, match="in a circle"):
        lake.firnline().pointers.open_path(str(tmp_path / "t"), table="db.t")


def test_a_long_way_of_links_ends(lake: RealLake, tmp_path: Path) -> None:
    for number in range(20):
        put(tmp_path / "t", f"db_t{number}_main.ver", renamed_to=f"db_t{number + 1}_main.ver")
    with pytest.raises(UnreadableMetadata, match="more than 8"):
        lake.firnline().pointers.open_path(str(tmp_path / "t"), table="db.t0")


def test_metadata_elsewhere_is_not_read_unless_allowed(lake: RealLake, tmp_path: Path) -> None:
    lake.create("t")
    lake.append("t", 1)
    table = lake.table("t")
    put(
        tmp_path / "x",
        "db_t_main.ver",
        metadata_file_path=table.metadata_location,
        guid=str(table.metadata.table_uuid),
    )
    with pytest.raises(RefusedForSafety, match="which is not in"):
        lake.firnline().pointers.open_path(str(tmp_path / "x"))
    assert read(lake, tmp_path / "x", allow_outside=True) == [1]


def test_another_tables_metadata_is_refused(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    lake.create("t")
    sync(lake)
    place = folder(lake, "t")
    file = place / "db_t_main.ver"
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "guid": "123e4567-e89b-12d3-a456-426614174000"}))
    with pytest.raises(RefusedForSafety, match="names the metadata of the table"):
        lake.firnline().pointers.open_path(str(place))


def test_a_huge_file_is_not_read(lake: RealLake, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "db_t_main.ver").write_bytes(b" " * 10_000_000)
    with pytest.raises(UnreadableMetadata, match="10,000,000 bytes"):
        lake.firnline().pointers.open_path(str(tmp_path / "t"))


def test_keys_of_others_in_a_pointer_outlive_the_next_commit(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    lake.create("t")
    sync(lake)
    file = folder(lake, "t") / "db_t_main.ver"
    file.write_text(json.dumps({**json.loads(file.read_text()), "owner": "sales"}))
    lake.append("t", 1)
    sync(lake)
    found = parse_pointer(file.read_bytes(), "x")
    assert (found.others, found.metadata_file_path) == ({"owner": "sales"}, lake.table("t").metadata_location)


def test_a_reader_does_without_the_catalog(lake: RealLake, naming: str) -> None:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    place, told = folder(lake, "t"), lake.table("t").metadata_location
    lake.catalog.close()
    (lake.folder / "catalog.db").unlink()
    found = lake.firnline().pointers.open_path(str(place))
    assert (found.metadata, found.catalog, found.behind) == (told, None, None)
    (lake.folder / ".pyiceberg.yaml").unlink()
    assert lake.firnline().pointers.open_path(str(place)).metadata == told


def test_a_policy_that_cannot_be_read_is_that_tables_problem(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\ncatalogs: {lake: {namespaces: {db: {tables: {customr: {pointers: 'off'}}}}}}"
    for name in ("customer", "good"):
        lake.create(name)
    done = {each.table: each.problem for each in lake.firnline().pointers.sync()}
    assert done["lake.db.good"] is None
    assert "customr" in str(done["lake.db.customer"])


def test_readers_that_know_only_the_hint_find_the_table(lake: RealLake, naming: str) -> None:
    lake.policy += "\nversion-hint: true"
    lake.create("t")
    place = lake.table("t").location()
    for number in range(3):
        lake.append("t", number)
        sync(lake)
        found = StaticTable.from_metadata(place).scan().to_arrow().column(COLUMN).to_pylist()
        assert sorted(found) == list(range(number + 1))
    lake.expire("t")
    assert StaticTable.from_metadata(place).metadata_location == lake.table("t").metadata_location


def test_another_tables_hint_is_left_alone(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\nversion-hint: true"
    place = f"file://{lake.folder}/shared"
    schema = lake.create("like").schema()
    for number, name in enumerate(("one", "two")):
        lake.catalog.create_table(f"db.{name}", schema, location=place)
        lake.append(name, number)
    done = {each.table: each.problems for each in lake.firnline().pointers.sync()}
    assert done["lake.db.one"] == ()
    assert "another table's" in str(done["lake.db.two"])
    assert StaticTable.from_metadata(place).scan().to_arrow().column(COLUMN).to_pylist() == [0]
    assert read(lake, lake.folder / "shared", table="db.two") == [1], "its pointer was published all the same"


def test_a_link_is_kept_up_to_date_for_readers_who_do_not_follow_it(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    lake.create("t")
    sync(lake)
    old = folder(lake, "t") / "db_t_main.ver"
    lake.catalog.rename_table("db.t", "db.new")
    for number in range(2):
        lake.append("new", number)
        sync(lake)
        told = parse_pointer(old.read_bytes(), "x")
        assert (told.renamed_to, told.table_identifier) == ("db_new_main.ver", "db.t")
        assert told.metadata_file_path == lake.table("new").metadata_location
    assert sync(lake) == [("db_new_main.ver", "unchanged")]


def test_a_name_that_is_in_use_again_is_no_link_any_more(lake: RealLake, naming: str) -> None:
    lake.create("t")
    lake.append("t", 1)
    sync(lake)
    place = folder(lake, "t")
    for there in ("new", "t"):
        lake.catalog.rename_table(*(("db.t", "db.new") if there == "new" else ("db.new", "db.t")))
        lake.append(there, 2)
        sync(lake)
    assert read(lake, place) == read(lake, place, table="db.t") == [1, 2, 2]
    assert lake.firnline().pointers.open_path(str(place), table="db.t").found.followed == ()


def test_a_table_that_is_registered_twice_has_two_pointers(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    lake.create("one")
    lake.catalog.register_table("db.two", lake.table("one").metadata_location)
    sync(lake)
    assert {outcome for _, outcome in sync(lake)} == {"unchanged"}
    assert files(folder(lake, "one")) == ["db_one_main.ver", "db_two_main.ver"]


def test_pointers_of_another_naming_and_of_gone_branches_end(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\npointer-links: 7d\npointer-branches: ['*']"
    lake.create("t")
    lake.append("t", 1)
    lake.branch("t", "dev")
    sync(lake)
    place = folder(lake, "t")
    assert files(place) == ["db_t_dev.ver", "db_t_main.ver"]
    lake.table("t").manage_snapshots().remove_branch("dev").commit()
    lake.policy = lake.policy.replace("identifier", "uuid")
    assert ("db_t_dev.ver", "dropped") in sync(lake)
    with pytest.raises(NoSuchTable, match="was dropped"):
        lake.firnline().pointers.open_path(str(place / "db_t_dev.ver"))
    lake.append("t", 2)
    sync(lake)
    told = parse_pointer((place / "db_t_main.ver").read_bytes(), "x")
    assert told.metadata_file_path == lake.table("t").metadata_location, "it goes on until its end"
    clock = Clock()
    clock.ahead_ms = 8 * DAY_MS
    dated(lake.firnline(), clock).pointers.sync()
    assert files(place) == [f"_pointers/db_t_{lake.table('t').metadata.table_uuid}.ver"]


def test_what_went_further_is_not_led_back(lake: RealLake) -> None:
    """A table was registered twice, one registration went on, and was dropped: the other is an older state."""
    lake.policy = "pointers: identifier"
    lake.create("one")
    lake.append("one", 1)
    lake.catalog.register_table("db.two", lake.table("one").metadata_location)
    lake.append("one", 2)
    sync(lake)
    place, newest = folder(lake, "one"), lake.table("one").metadata_location
    lake.catalog.drop_table("db.one")
    sync(lake)
    told = parse_pointer((place / "db_one_main.ver").read_bytes(), "x")
    assert (told.metadata_file_path, told.renamed_to) == (newest, None)
    assert told.dropped_at is not None


def test_a_neighbour_in_the_folder_says_nothing_of_a_table_that_was_renamed(lake: RealLake) -> None:
    lake.policy = "pointers: identifier"
    place = f"file://{lake.folder}/shared"
    schema = lake.create("like").schema()
    for number, name in enumerate(("one", "two")):
        lake.catalog.create_table(f"db.{name}", schema, location=place)
        lake.append(name, number)
    sync(lake)
    lake.catalog.rename_table("db.one", "db.new")
    sync(lake, tables=["lake.db.two"])
    assert read(lake, lake.folder / "shared", table="db.one") == [0]
    sync(lake)
    assert read(lake, lake.folder / "shared", table="db.one") == [0]


def test_a_branch_that_nobody_asks_for_any_more_is_not_said_to_be_dropped(lake: RealLake) -> None:
    lake.policy = "pointers: identifier\npointer-branches: [main, dev]"
    lake.create("t")
    lake.append("t", 1)
    lake.branch("t", "dev")
    sync(lake)
    lake.policy = "pointers: identifier\npointer-branches: [dev]"
    lake.append("t", 2)
    assert ("db_t_main.ver", "ends") in sync(lake)
    assert read(lake, folder(lake, "t"), table="db.t") == [1, 2]
