"""Opening a unit: everything it names, with kind and size, or an error that names it; never a part."""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path
from typing import Any

import fastavro
import pytest

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.columns import ROW_SCHEMA
from firnline.formats.iceberg.expand import IcebergExpand, roots_of
from firnline.formats.iceberg.state import state_of
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind, Root
from firnline.ports.engines import Territory
from firnline.stores.objects import ObjectStores
from firnline.testing.damage import SPOILED
from firnline.testing.documents import document_of
from firnline.testing.engines import a_long_life
from firnline.testing.manifests import AvroLayout, Content, Entry, Item, Status, entry_schema, list_schema
from firnline.testing.tables import QuickFiles, SmallTable

MANIFEST = "memory://expand/m.avro"
LIST = "memory://expand/l.avro"
GOOD_FILE: dict[str, Any] = {
    "content": 0, "file_path": "memory://expand/x", "file_format": "PARQUET", "partition": {},
    "record_count": 1, "file_size_in_bytes": 7,
}  # fmt: skip
GOOD_MANIFEST: dict[str, Any] = {
    "manifest_path": MANIFEST, "manifest_length": 7, "partition_spec_id": 0, "content": 0, "sequence_number": 1,
    "min_sequence_number": 1, "added_snapshot_id": 1, "added_files_count": 1, "existing_files_count": 0,
    "deleted_files_count": 0, "added_rows_count": 1, "existing_rows_count": 0, "deleted_rows_count": 0,
}  # fmt: skip


def opened(kind: FileKind, key: str, data: bytes, size: int | None = None) -> list[dict[str, Any]]:
    store = ObjectStores()
    store.put(key, data)
    batch = IcebergExpand(store)([File(kind, key, size, opens=True)]).rows
    assert batch.schema == ROW_SCHEMA
    return list(batch.to_pylist())


def avro(schema: Any, *records: Any) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    return out.getvalue()


def row(key: str, size: int, kind: FileKind, opens: bool = False) -> dict[str, Any]:
    return {"identity": key, "key": key, "size": size, "kind": kind.value, "opens": opens}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_list_names_itself_and_its_manifests(version: int) -> None:
    table = SmallTable(ObjectStores(), f"memory://expand/{version}", AvroLayout(version))
    table.append()
    last = table.changes[table.append()]
    batch = IcebergExpand(ObjectStores())([File(FileKind.MANIFEST_LIST, last.manifest_list or "", opens=True)]).rows
    assert batch.to_pylist() == [
        row(last.manifest_list or "", table.made[last.manifest_list or ""].size, FileKind.MANIFEST_LIST),
        *(row(each.path, each.length, FileKind.MANIFEST, opens=True) for each in last.manifests),
    ]


def test_a_manifest_names_its_live_files_by_kind() -> None:
    items = {
        FileKind.DATA: Item("memory://expand/data", 1),
        FileKind.POSITION_DELETES: Item("memory://expand/positions", 2, Content.POSITION_DELETES),
        FileKind.EQUALITY_DELETES: Item("memory://expand/equality", 3, Content.EQUALITY_DELETES),
        FileKind.DELETION_VECTORS: Item("memory://expand/vectors", 4, Content.POSITION_DELETES, "puffin", "x", 4),
    }
    entries = [Entry(Status.EXISTING, item, 1) for item in items.values()]
    gone = Entry(Status.DELETED, Item("memory://expand/gone", 9), 1)
    data = AvroLayout(3).manifest([*entries, gone], deletes=True)
    assert opened(FileKind.MANIFEST, MANIFEST, data) == [
        row(MANIFEST, len(data), FileKind.MANIFEST),
        *(row(item.path, item.size, kind) for kind, item in items.items()),
    ]


def test_every_file_of_a_version_1_manifest_is_data() -> None:
    data = AvroLayout(1).manifest([Entry(Status.ADDED, Item("memory://expand/x", 5), 1)], deletes=False)
    assert opened(FileKind.MANIFEST, MANIFEST, data)[1:] == [row("memory://expand/x", 5, FileKind.DATA)]


@pytest.mark.parametrize("kind", [FileKind.MANIFEST, FileKind.MANIFEST_LIST])
def test_a_unit_that_names_nothing_still_names_itself(kind: FileKind) -> None:
    data = (
        AvroLayout(2).manifest([], deletes=False) if kind is FileKind.MANIFEST else AvroLayout(2).manifest_list([], 1)
    )
    assert opened(kind, MANIFEST, data) == [row(MANIFEST, len(data), kind)]


def test_keys_stay_as_they_are_spelled_and_identities_do_not() -> None:
    data = AvroLayout(2).manifest([Entry(Status.ADDED, Item("S3A://Bucket//x", 5), 1)], deletes=False)
    (_, named) = opened(FileKind.MANIFEST, MANIFEST, data)
    assert (named["key"], named["identity"]) == ("S3A://Bucket//x", "s3://bucket/x")


@pytest.mark.parametrize(
    ("change", "words"),
    [({"file_size_in_bytes": -1}, "negative"), ({"content": 3}, "content 3"), ({"content": -1}, "content -1")],
)
def test_an_entry_that_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    entry = {"status": 1, "snapshot_id": 1, "data_file": GOOD_FILE | change}
    with pytest.raises((UnreadableMetadata, UnsupportedFormat), match=words) as refused:
        opened(FileKind.MANIFEST, MANIFEST, avro(entry_schema(2), entry))
    assert MANIFEST in refused.value.message


@pytest.mark.parametrize("status", [-1, 3, 2**31 - 1])
def test_an_unknown_status_is_refused(status: int) -> None:
    entry = {"status": status, "snapshot_id": 1, "data_file": GOOD_FILE}
    with pytest.raises(UnsupportedFormat, match=f"status {status}"):
        opened(FileKind.MANIFEST, MANIFEST, avro(entry_schema(2), entry))


def test_a_list_of_encrypted_manifests_is_refused() -> None:
    entries = [GOOD_MANIFEST, GOOD_MANIFEST | {"key_metadata": b"key"}]
    with pytest.raises(UnsupportedFormat, match="encrypted") as refused:
        opened(FileKind.MANIFEST_LIST, LIST, avro(list_schema(2), *entries))
    assert LIST in refused.value.message


def test_a_list_with_a_negative_length_is_refused() -> None:
    with pytest.raises(UnreadableMetadata, match="negative"):
        opened(FileKind.MANIFEST_LIST, LIST, avro(list_schema(2), GOOD_MANIFEST | {"manifest_length": -1}))


OTHER = {"type": "record", "name": "other", "fields": [{"name": "x", "type": "long"}]}


@pytest.mark.parametrize("kind", [FileKind.MANIFEST, FileKind.MANIFEST_LIST])
def test_an_avro_file_of_something_else_is_refused(kind: FileKind) -> None:
    with pytest.raises(UnreadableMetadata) as refused:
        opened(kind, MANIFEST, avro(OTHER, {"x": 1}))
    assert MANIFEST in refused.value.message


def test_a_list_given_for_a_manifest_is_refused_and_so_is_a_manifest_given_for_a_list() -> None:
    with pytest.raises(UnreadableMetadata):
        opened(FileKind.MANIFEST, MANIFEST, avro(list_schema(2), GOOD_MANIFEST))
    entry = {"status": 1, "snapshot_id": 1, "data_file": GOOD_FILE}
    with pytest.raises(UnreadableMetadata):
        opened(FileKind.MANIFEST_LIST, LIST, avro(entry_schema(2), entry))


@pytest.mark.parametrize("off", [-1, 1])
def test_a_unit_of_another_length_than_its_list_says_is_refused(off: int) -> None:
    data = AvroLayout(2).manifest([Entry(Status.ADDED, Item("memory://expand/x", 5), 1)], deletes=False)
    assert len(opened(FileKind.MANIFEST, MANIFEST, data, len(data))) == 2
    with pytest.raises(UnreadableMetadata, match=f"{len(data)} bytes"):
        opened(FileKind.MANIFEST, MANIFEST, data, len(data) + off)


def test_it_travels_to_other_processes() -> None:
    copy = pickle.loads(pickle.dumps(IcebergExpand(ObjectStores())))
    assert copy.order == (FileKind.MANIFEST_LIST, FileKind.MANIFEST)


@pytest.mark.parametrize("path", ["memory://expand/data/../data/x", "memory://expand/./x", "memory://expand/../o/x"])
def test_a_path_with_a_dotted_segment_may_be_another_file_and_is_refused(path: str) -> None:
    entry = {"status": 1, "snapshot_id": 1, "data_file": GOOD_FILE | {"file_path": path}}
    with pytest.raises(UnsupportedFormat, match=rf"{re.escape(MANIFEST)}.*{re.escape(path)}"):
        opened(FileKind.MANIFEST, MANIFEST, avro(entry_schema(2), entry))
    with pytest.raises(UnsupportedFormat, match=rf"{re.escape(LIST)}.*{re.escape(path)}"):
        opened(FileKind.MANIFEST_LIST, LIST, avro(list_schema(2), GOOD_MANIFEST | {"manifest_path": path}))


def listing(expects: int | None, *manifests: dict[str, Any]) -> int:
    """Returns how many manifests a list of these has, opened for a snapshot of so many data files."""
    store = ObjectStores()
    store.put(LIST, avro(list_schema(1), *manifests))
    return len(IcebergExpand(store)([File(FileKind.MANIFEST_LIST, LIST, None, True, expects)]).rows) - 1


def test_a_list_that_tells_of_fewer_files_than_its_snapshot_was_cut_short() -> None:
    two = GOOD_MANIFEST | {"manifest_path": "memory://expand/2.avro", "added_files_count": 0, "existing_files_count": 2}
    assert listing(3, GOOD_MANIFEST, two) == 2
    assert listing(None) == listing(0) == 0
    for cut in ([], [GOOD_MANIFEST], [two]):
        with pytest.raises(UnreadableMetadata, match=rf"{LIST}.*its snapshot of 3"):
            listing(3, *cut)


def test_a_manifest_that_leaves_its_counts_out_is_no_sign_of_a_cut() -> None:
    assert listing(9, GOOD_MANIFEST | {"added_files_count": None}) == 1


def test_a_list_cut_between_two_blocks_is_refused_by_every_walk() -> None:
    table = SmallTable(ObjectStores(), "memory://expand/cut", AvroLayout(2))
    table.append(3)
    state = state_of(document_of(table), "lake.ns.cut", "memory://expand/cut/v1.metadata.json")
    ((_, unit),) = roots_of(state)
    ObjectStores().put(unit.key, avro(list_schema(2)))
    with pytest.raises(UnreadableMetadata, match="its snapshot of 3"):
        LocalEngine().survey([Root(unit, needed=True)], IcebergExpand(ObjectStores()), Territory(None))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("kind", [FileKind.MANIFEST_LIST, FileKind.MANIFEST])
def test_many_units_name_what_each_names_alone(version: int, kind: FileKind) -> None:
    store = ObjectStores()
    table, _ = a_long_life(SmallTable(store, f"memory://expand/many-{version}-{kind}", AvroLayout(version)))
    units = [File(each.kind, path, opens=True) for path, each in table.made.items() if each.kind is kind]
    expand = IcebergExpand(store)
    found = expand(units)
    each = [expand([unit]).rows for unit in units]
    assert [rows.to_pylist() for rows in found.by_unit(len(units))] == [rows.to_pylist() for rows in each]
    assert len(each) > 2


@pytest.mark.parametrize("how", SPOILED)
def test_of_many_units_the_spoiled_one_is_named(tmp_path: Path, how: str) -> None:
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(2)))
    made = [File(each.kind, path, each.size, True) for path, each in table.made.items()]
    units = [unit for unit in made if unit.kind is FileKind.MANIFEST]
    chosen = units[len(units) // 2].key
    SPOILED[how](chosen.removeprefix("file://"))
    with pytest.raises(UnreadableMetadata, match=re.escape(chosen)):
        IcebergExpand(ObjectStores())(units)
