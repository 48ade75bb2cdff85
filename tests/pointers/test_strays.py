"""Files in a table's folder that are no pointers, or nobody's: what they stop, and what they do not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from firnline.app.places import now_ms
from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.model.times import DAY_MS
from firnline.pointers.document import Pointer
from firnline.pointers.ordinals import ordinal_at
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import RealLake

GUID = "123e4567-e89b-12d3-a456-426614174000"
EXPIRE: dict[str, Any] = {"retain_last": 1, "grace": "0s", "blast_radius": 1.0}


@pytest.fixture
def place(lake: RealLake) -> Path:
    """Returns the folder of `a`; the lake has another table, `b`."""
    for name in "ab":
        lake.create(name)
        lake.append(name, 1)
        lake.overwrite(name, 2)
    return Path(lake.table("a").location().removeprefix("file://"))


def expire(lake: RealLake, name: str) -> Any:
    return lake.firnline().expire(f"lake.db.{name}", older_than=now_ms(), **EXPIRE)


def search(lake: RealLake, name: str) -> Any:
    later = dated(lake.firnline(), Clock(30 * DAY_MS))
    return later.orphans(f"lake.db.{name}", grace="0s", blast_radius=1.0, consent=lambda plan: True)


def stray(metadata: str) -> bytes:
    return Pointer("x.y", GUID, metadata, ordinal_at(now_ms())).to_bytes()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "text",
    ["1.2.3\n", "", "[1]", '{"version": 1}', "\x00\xff", "x" * 2_000_000],
    ids=["version", "empty", "list", "object", "bytes", "large"],
)
@pytest.mark.parametrize("folder", [".", "_pointers"])
def test_another_programs_file_stops_nothing(lake: RealLake, place: Path, folder: str, text: str) -> None:
    lake.policy = "pointers: identifier"
    file = place / folder / "app.ver"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    synced = lake.firnline().pointers.sync()
    assert [each.problems for each in synced] == [(), ()]
    for name in "ab":
        expire(lake, name)
        search(lake, name)
        assert lake.read(name) == [2]
    assert file.read_text() == text
    assert lake.firnline().pointers.open_path(str(place)).metadata == lake.table("a").metadata_location


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("db_a_main.ver", "1.2.3\n"),
        ("db_a_20240128T153045.ver", ""),
        ("app.ver", json.dumps({"version": 7, "metadata_file_path": "/x/1.metadata.json"})),
    ],
)
def test_what_may_be_a_pointer_stops_and_nobody_is_told_to_drop_a_table(
    lake: RealLake, place: Path, name: str, text: str
) -> None:
    (place / name).write_text(text)
    with pytest.raises(UnreadableMetadata, match=name):
        expire(lake, "a")
    for act in (expire, search):
        with pytest.raises(RefusedForSafety, match=name) as stopped:
            act(lake, "b")
        assert "drop" not in stopped.value.hint


def test_a_strangers_pointer_to_elsewhere_stops_a_search_of_its_folder_alone(lake: RealLake, place: Path) -> None:
    (place / "x_y_main.ver").write_bytes(stray("s3://other/y/metadata/1.metadata.json"))
    expire(lake, "a")
    expire(lake, "b")
    search(lake, "b")
    with pytest.raises(RefusedForSafety, match="lies in no folder of"):
        search(lake, "a")


def test_a_strangers_pointer_to_elsewhere_stops_a_purge_that_was_decided_before(lake: RealLake, place: Path) -> None:
    garbage = place / "data" / "00000-0-0.parquet"
    garbage.write_bytes(b"PAR1")

    def publish(_: Any) -> bool:
        (place / "x_y_main.ver").write_bytes(stray("s3://other/y/metadata/1.metadata.json"))
        return True

    later = dated(lake.firnline(), Clock(30 * DAY_MS))
    with pytest.raises(RefusedForSafety, match="lies in no folder of"):
        later.orphans("lake.db.a", grace="0s", blast_radius=1.0, consent=publish)
    assert garbage.exists()


def test_logs_of_two_tables_whose_writer_does_not_escape(lake: RealLake, place: Path) -> None:
    """Both logs have the names a_b_c_TIME.ver: the newest entry is the other table's, and this one's counts."""
    first = lake.table("a").metadata_location
    uuid = str(lake.table("a").metadata.table_uuid)
    log = place / "_pointers"
    log.mkdir()
    for identifier, guid, ordinal in (("a_b.c", uuid, "20240128T153045"), ("a.b_c", GUID, "20240128T153046")):
        told = Pointer(identifier, guid, first, ordinal).to_bytes()
        (log / f"a_b_c_{ordinal}.ver").write_bytes(told)
    snapshot = str(lake.table("a").current_snapshot().snapshot_id)  # type: ignore[union-attr]
    lake.overwrite("a", 3)
    lake.overwrite("a", 4)
    plan = lake.firnline().plan("lake.db.a", older_than=now_ms(), **EXPIRE).plan
    assert snapshot in {each.id for each in plan.keep}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["app.ver", "db_x_main.ver", "metadata/version-hint.text"])
@pytest.mark.parametrize("kind", ["endless", "pipe", "circle", "nowhere", "folder"])
def test_what_is_no_file_is_no_pointer(lake: RealLake, place: Path, name: str, kind: str) -> None:
    """None of these may hang, fill the memory or stop anybody: no reader gets anything by them."""
    lake.policy = "pointers: identifier"
    file = place / name
    make: dict[str, Callable[[], None]] = {
        "endless": lambda: file.symlink_to("/dev/zero"),
        "pipe": lambda: os.mkfifo(file),
        "circle": lambda: file.symlink_to(file.name),
        "nowhere": lambda: file.symlink_to("nowhere"),
        "folder": file.mkdir,
    }
    make[kind]()
    assert [each.problems for each in lake.firnline().pointers.sync()] == [(), ()]
    expire(lake, "a")
    search(lake, "b")
    assert lake.firnline().pointers.open_path(str(place)).metadata == lake.table("a").metadata_location


def test_a_name_that_nobody_can_read_stops_nothing(lake: RealLake, place: Path) -> None:
    lake.policy = "pointers: identifier"
    lake.firnline().pointers.sync()
    own = json.loads((place / "db_a_main.ver").read_text())
    (place / "x_y_main.ver").write_text(json.dumps({**own, "table_identifier": '"x'}))
    done = {each.table: each for each in lake.firnline().pointers.sync()}["lake.db.a"]
    assert done.problems == ()
    assert [each.outcome for each in done.pointers] == ["unchanged", "leads to db_a_main.ver"]
    found = lake.firnline().pointers.open_path(str(place), table="db.a")
    assert found.metadata == lake.table("a").metadata_location


@pytest.mark.parametrize("uri", ["nonsense", ""])
def test_a_reader_does_without_a_catalog_that_is_badly_configured(lake: RealLake, place: Path, uri: str) -> None:
    lake.policy = "pointers: identifier"
    lake.firnline().pointers.sync()
    settings = lake.folder / ".pyiceberg.yaml"
    known = yaml.safe_load(settings.read_text())["catalog"]
    settings.write_text(yaml.safe_dump({"catalog": {"a_bad_one": {"type": "sql", "uri": uri}, **known}}))
    found = lake.firnline().pointers.open_path(str(place))
    assert (found.catalog, found.metadata) == ("lake", lake.table("a").metadata_location)


def test_a_uuid_that_is_spelled_otherwise_is_the_same(lake: RealLake, place: Path) -> None:
    """One writer has it without dashes and in large letters: the pointer is that table's all the same."""
    first = lake.table("a").metadata_location
    uuid = lake.table("a").metadata.table_uuid
    lake.overwrite("a", 3)
    for file in (place / "metadata").glob("*.metadata.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "table-uuid": uuid.hex.upper()}))
    (place / "db_a_main.ver").write_bytes(Pointer("db.a", str(uuid), first, ordinal_at(now_ms())).to_bytes())
    plan = lake.firnline().plan("lake.db.a", older_than=now_ms(), **EXPIRE).plan
    kept = [each.reasons for each in plan.keep]
    assert [each for each in kept if "pin pointer db_a_main.ver" in each]
    assert len(kept) == 2
