"""What a pointer leads readers to stays: PyIceberg opens the table by the pointer's metadata alone, after removals."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyiceberg.table import StaticTable

from firnline.app.places import now_ms
from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.lake import Lake
from firnline.model.files import FileKind
from firnline.model.locations import join
from firnline.model.times import DAY_MS
from firnline.pointers.document import Pointer
from firnline.pointers.hints import HINT
from firnline.pointers.names import FOLDER, PointedBranch, by_identifier
from firnline.pointers.ordinals import ordinal_at
from firnline.testing.counting import Counting
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import COLUMN, RealLake

TABLE = "lake.db.a"
NAME = by_identifier(PointedBranch(("db",), "a"))
EXPIRE: dict[str, Any] = {"retain_last": 1, "grace": "0s", "blast_radius": 1.0}


def bare(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def publish(lake: RealLake, metadata: str, *, folder: str = "", name: str = NAME, **said: Any) -> Path:
    """Writes a pointer to this metadata into the folder of `a`."""
    table = lake.table("a")
    told = {"guid": str(table.metadata.table_uuid), **said}
    file = bare(table.location()) / folder / name
    file.parent.mkdir(exist_ok=True)
    pointer = Pointer("db.a", metadata_file_path=metadata, ordinal=ordinal_at(now_ms()), **told)
    file.write_bytes(pointer.to_bytes())
    return file


def grown(lake: RealLake, **properties: str) -> str:
    """Makes the table `a` of three snapshots that share no file, and returns the metadata of the first one."""
    lake.create("a", **properties)
    lake.append("a", 1, 2)
    first = lake.table("a").metadata_location
    lake.overwrite("a", 3)
    lake.overwrite("a", 4)
    return first


def first_snapshot(metadata: str) -> str:
    return str(json.loads(bare(metadata).read_text())["current-snapshot-id"])


def read_by(pointer: Path) -> list[int]:
    """Returns the rows that a reader without a catalog finds, who goes by the pointer."""
    metadata = json.loads(pointer.read_text())["metadata_file_path"]
    return sorted(StaticTable.from_metadata(metadata).scan().to_arrow().column(COLUMN).to_pylist())


def expire(lake: RealLake, engine: str = "local", **asked: Any) -> Any:
    return lake.firnline(engine).expire(TABLE, **{"older_than": now_ms(), **EXPIRE, **asked})


def later(lake: RealLake, engine: str = "local") -> Lake:
    """Returns firnline a month from now: every file is old enough for a search."""
    return dated(lake.firnline(engine), Clock(30 * DAY_MS))


def search(lake: Lake, **asked: Any) -> Any:
    return lake.orphans(TABLE, grace="0s", blast_radius=1.0, consent=lambda plan: True, **asked)


def drop_by_other_tool(lake: RealLake, metadata: str) -> None:
    """Takes the first snapshot out of the table and leaves its files, as an expiry of metadata alone does."""
    lake.table("a").maintenance.expire_snapshots().by_id(int(first_snapshot(metadata))).commit()


@pytest.mark.parametrize("folder", ["", FOLDER])
def test_a_stale_pointers_snapshot_survives_and_the_plan_says_why(lake: RealLake, folder: str) -> None:
    metadata = grown(lake)
    pointer = publish(lake, metadata, folder=folder)
    plan = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    kept = {each.id: each.reasons for each in plan.keep}
    assert f"pin pointer {NAME}" in kept[first_snapshot(metadata)]
    assert f"pin pointer {NAME}" in json.dumps(plan.to_json())
    assert len(plan.expire) > 0
    expire(lake)
    assert read_by(pointer) == [1, 2]
    assert lake.read("a") == [4]


def test_without_a_pointer_its_readers_would_find_nothing(lake: RealLake) -> None:
    metadata = grown(lake)
    pointer = publish(lake, metadata)
    text = pointer.read_bytes()
    pointer.unlink()
    expire(lake)
    pointer.write_bytes(text)
    with pytest.raises(FileNotFoundError):
        read_by(pointer)


def test_a_pointer_to_the_current_metadata_keeps_nothing_that_would_go(lake: RealLake) -> None:
    grown(lake)
    pointer = publish(lake, lake.table("a").metadata_location)
    before = len(lake.table("a").snapshots())
    expire(lake)
    assert len(lake.table("a").snapshots()) == 1 < before
    assert read_by(pointer) == [4]


@pytest.mark.parametrize("is_published", [True, False])
def test_metadata_that_falls_off_the_log_stays_while_a_pointer_names_it(lake: RealLake, is_published: bool) -> None:
    trimming = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    metadata = grown(lake, **trimming)
    assert in_log(lake)[0] == bare(metadata)
    pointer = publish(lake, metadata)
    if not is_published:
        pointer.unlink()
    expire(lake)
    assert bare(metadata) not in in_log(lake)
    assert bare(metadata).exists() == is_published
    assert not is_published or read_by(pointer) == [1, 2]


def in_log(lake: RealLake) -> list[Path]:
    return [bare(each.metadata_file) for each in lake.table("a").metadata.metadata_log]


def test_a_pointer_of_a_branch_keeps_the_head_of_that_branch(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    table = lake.table("a")
    head = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(head, "audit").commit()
    metadata = lake.table("a").metadata_location
    lake.overwrite("a", 3)
    lake.table("a").manage_snapshots().remove_branch("audit").commit()
    pointer = publish(lake, metadata, name=by_identifier(PointedBranch(("db",), "a", "audit")), branch="audit")
    expire(lake)
    opened = StaticTable.from_metadata(metadata)
    assert sorted(opened.scan(snapshot_id=head).to_arrow().column(COLUMN).to_pylist()) == [1, 2]
    assert pointer.exists()


def test_a_snapshot_that_left_the_table_stays_whole_for_readers_of_the_pointer(lake: RealLake) -> None:
    """Its data file is also that of a snapshot which expires now."""
    lake.create("a")
    lake.append("a", 1, 2)
    metadata = lake.table("a").metadata_location
    lake.append("a", 3)
    lake.overwrite("a", 4)
    pointer = publish(lake, metadata)
    drop_by_other_tool(lake, metadata)
    plan = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    assert first_snapshot(metadata) not in {each.id for each in plan.keep}
    assert plan.victims.by_kind[FileKind.DATA].files == 1  # that of the second row; the first is needed by readers
    expire(lake)
    assert read_by(pointer) == [1, 2]
    search(later(lake))
    assert read_by(pointer) == [1, 2]
    assert lake.read("a") == [4]


@pytest.mark.parametrize(
    "engine",
    ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.full])],
)
def test_orphans_keep_what_an_old_pointer_names(lake: RealLake, engine: str) -> None:
    metadata = grown(lake, **{"write.metadata.previous-versions-max": "1"})
    pointer = publish(lake, metadata)
    hint = bare(lake.table("a").location()) / "metadata" / "version-hint.text"
    hint.write_text("1")
    drop_by_other_tool(lake, metadata)
    lake.append("a", 5)
    assert bare(metadata) not in in_log(lake)
    stray = bare(lake.table("a").location()) / "data" / "stray.parquet"
    stray.write_bytes(b"nobody's")
    search(later(lake, engine))
    assert not stray.exists()
    assert read_by(pointer) == [1, 2]
    assert hint.exists()
    search(later(lake, engine))
    assert read_by(pointer) == [1, 2]
    pointer.unlink()
    search(later(lake, engine), dead=frozenset({metadata}))
    assert not bare(metadata).exists()


def test_a_pointer_that_comes_between_plan_and_commit_counts(lake: RealLake) -> None:
    metadata = grown(lake)
    saved = lake.firnline().plan(TABLE, save=True, older_than=now_ms(), **EXPIRE)
    assert first_snapshot(metadata) in {each.id for each in saved.plan.expire}
    pointer = publish(lake, metadata)
    lake.firnline().advance(saved.plan.run)
    assert first_snapshot(metadata) in {str(each.snapshot_id) for each in lake.table("a").snapshots()}
    assert read_by(pointer) == [1, 2]


def test_a_pointer_that_comes_between_commit_and_purge_counts(lake: RealLake) -> None:
    metadata = grown(lake)
    run = expire(lake, grace="1s").run
    assert first_snapshot(metadata) not in {str(each.snapshot_id) for each in lake.table("a").snapshots()}
    pointer = publish(lake, metadata)
    status = dated(lake.firnline(), Clock(2_000)).purge(str(run.id))
    assert read_by(pointer) == [1, 2]
    assert "spared" in json.dumps(status.to_json())


def test_a_pointer_to_metadata_that_is_gone_is_told_and_stops_nothing(lake: RealLake) -> None:
    metadata = grown(lake)
    gone = metadata.replace("/metadata/", "/metadata/gone-")
    pointer = publish(lake, gone)
    plan = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    assert [note for note in plan.notes if NAME in note and "not there" in note]
    found = lake.firnline().check(TABLE)
    assert [each.path for each in found.presence.listed if each.kind == "pointer"] == [f"file://{pointer}"]
    assert not found.sound
    expire(lake)
    assert len(lake.table("a").snapshots()) == 1


def test_a_pointer_to_a_snapshot_whose_files_another_tool_removed_stops_nothing(lake: RealLake) -> None:
    metadata = grown(lake)
    publish(lake, metadata)
    lists = json.loads(bare(metadata).read_text())["snapshots"]
    drop_by_other_tool(lake, metadata)
    for each in lists:
        bare(each["manifest-list"]).unlink()
    plan = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    assert [note for note in plan.notes if "is gone" in note]
    expire(lake)
    assert lake.read("a") == [4]


def test_metadata_that_is_there_and_cannot_be_read_stops(lake: RealLake) -> None:
    metadata = grown(lake)
    torn = bare(metadata).with_name("00009-torn.metadata.json")
    torn.write_text('{"format-version": 2')
    publish(lake, f"file://{torn}")
    with pytest.raises(UnreadableMetadata, match=r"torn\.metadata\.json"):
        expire(lake)
    assert len(lake.table("a").snapshots()) > 2


def test_a_file_that_is_no_pointer_stops_with_what_to_do(lake: RealLake) -> None:
    grown(lake)
    broken = bare(lake.table("a").location()) / NAME
    broken.write_text('{"version": 1')
    with pytest.raises(UnreadableMetadata, match="is no pointer") as told:
        expire(lake)
    assert "pointers sync" in (told.value.hint or "")


def test_a_pointer_to_a_place_that_is_not_the_tables_stops(lake: RealLake) -> None:
    grown(lake)
    publish(lake, "file:///etc/hostname")
    with pytest.raises(RefusedForSafety, match="no folder of"):
        expire(lake)


def test_a_pointer_of_another_table_keeps_no_snapshot_of_this_one(lake: RealLake) -> None:
    metadata = grown(lake)
    publish(lake, metadata, guid=str(uuid4()))
    expire(lake)
    assert len(lake.table("a").snapshots()) == 1


def test_a_pointer_beside_a_table_without_a_uuid_counts(lake: RealLake) -> None:
    """Tables of version 1 may have none, and a pointer always has one: nobody can say that it is another's."""
    metadata = grown(lake, **{"format-version": "1"})
    for file in bare(metadata).parent.glob("*.metadata.json"):
        said = json.loads(file.read_text())
        said.pop("table-uuid")
        file.write_text(json.dumps(said))
    pointer = publish(lake, metadata, guid=str(uuid4()))
    expire(lake)
    assert read_by(pointer) == [1, 2]


def in_the_same_folder(lake: RealLake) -> tuple[str, str]:
    """Drops `a` and makes it again in its folder; returns the last metadata of the first one, and its uuid."""
    lake.create("a")
    lake.append("a", 1)
    old = lake.table("a")
    lake.append("a", 2)
    last = lake.table("a").metadata_location
    lake.catalog.drop_table("db.a")
    lake.create("a")
    assert lake.table("a").location() == old.location()
    lake.append("a", 3)
    return last, str(old.metadata.table_uuid)


def test_a_search_still_refuses_the_table_of_another_pointer(lake: RealLake) -> None:
    """Its metadata is needed now; but nobody counted what else that table needs."""
    last, uuid = in_the_same_folder(lake)
    for file in bare(last).parent.glob("*.metadata.json"):
        if json.loads(file.read_text())["table-uuid"] == uuid and file != bare(last):
            file.unlink()
    publish(lake, last, guid=uuid, name="old.ver")
    with pytest.raises(RefusedForSafety, match=uuid):
        search(later(lake))


def test_what_another_tables_pointer_names_stays_even_if_that_is_said_to_be_gone(lake: RealLake) -> None:
    last, uuid = in_the_same_folder(lake)
    pointer = publish(lake, last, guid=uuid, name="old.ver")
    search(later(lake), dead=frozenset({uuid}))
    assert read_by(pointer) == [1, 2]
    pointer.unlink()
    search(later(lake), dead=frozenset({uuid}))
    assert not bare(last).exists()
    assert lake.read("a") == [3]


def test_a_dropped_table_is_not_removed_while_a_pointer_leads_to_it(lake: RealLake) -> None:
    metadata = grown(lake)
    pointer = publish(lake, metadata)
    folder = lake.table("a").location()
    lake.create("b")
    lake.catalog.drop_table("db.a")
    with pytest.raises(RefusedForSafety, match=r"still leads readers"):
        later(lake).purge_dropped(str(lake.folder / "warehouse"), folder)
    said = json.loads(pointer.read_text())
    pointer.write_text(json.dumps({**said, "dropped_at": "2026-01-01T00:00:00Z"}))
    plan, _ = later(lake).purge_dropped(str(lake.folder / "warehouse"), folder, dry_run=True)
    assert plan.victims.all.files > 0


def test_all_tables_of_a_lake_at_once(lake: RealLake) -> None:
    metadata = grown(lake)
    lake.create("b")
    lake.append("b", 1)
    lake.overwrite("b", 2)
    pointer = publish(lake, metadata)
    several = lake.firnline().several()
    answers = list(several.expire(confirm=lambda plans: True, older_than=now_ms(), **EXPIRE))
    assert [each.problem for each in answers if each.problem] == []
    assert read_by(pointer) == [1, 2]
    found = later(lake).several().orphans(confirm=lambda plans: True, grace="0s", blast_radius=1.0)
    assert [each.problem for each in found if each.problem] == []
    assert read_by(pointer) == [1, 2]


def test_a_file_is_told_to_be_there_for_readers_of_a_pointer(lake: RealLake) -> None:
    metadata = grown(lake)
    data = next(iter(StaticTable.from_metadata(metadata).scan().plan_files())).file.file_path
    publish(lake, metadata)
    drop_by_other_tool(lake, metadata)
    told = lake.firnline().why(TABLE, data)
    assert told.kept
    assert "pointer" in {each.kind for each in told.needed_by}


def test_a_table_without_pointers_costs_three_requests(lake: RealLake) -> None:
    grown(lake)
    firnline, location = lake.firnline(), lake.table("a").location()
    opened, made = firnline.places.stores.open, list[Counting]()

    def counting(settings: Any) -> Counting:
        made.append(Counting(opened(settings)))
        return made[-1]

    vars(firnline.places.stores)["open"] = counting
    firnline.plan(TABLE, older_than=now_ms(), **EXPIRE)
    asked = sum((each.calls() for each in made), Counter[tuple[str, str]]())
    assert [asked["names", folder] for folder in (location, join(location, FOLDER))] == [1, 1]
    assert asked["head", join(location, "metadata", HINT)] == 1


def test_a_stale_hint_keeps_what_its_readers_find(lake: RealLake) -> None:
    metadata = grown(lake)
    hint = bare(metadata).parent / HINT
    hint.write_text(bare(metadata).name.removesuffix(".metadata.json"))
    plan = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    kept = {each.id: each.reasons for each in plan.keep}
    assert f"pin pointer {HINT}" in kept[first_snapshot(metadata)]
    expire(lake)
    search(later(lake))
    found = StaticTable.from_metadata(lake.table("a").location()).scan().to_arrow()
    assert sorted(found.column(COLUMN).to_pylist()) == [1, 2]


@pytest.mark.parametrize("said", ["3", "", "../../elsewhere", "x" * 5_000], ids=["number", "empty", "path", "long"])
def test_a_hint_that_names_no_file_keeps_nothing(lake: RealLake, said: str) -> None:
    metadata = grown(lake)
    (bare(metadata).parent / HINT).write_text(said)
    plan = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    assert first_snapshot(metadata) in {each.id for each in plan.expire}


def test_a_hint_to_what_is_gone_is_told_and_stops_nothing(lake: RealLake) -> None:
    metadata = grown(lake)
    (bare(metadata).parent / HINT).write_text("00009-gone")
    planned = lake.firnline().plan(TABLE, older_than=now_ms(), **EXPIRE).plan
    assert any(HINT in each and "not there" in each for each in planned.notes)
    expire(lake)
