"""From the document to the state: what is read, what counts where a field is absent, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.iceberg.expand import roots_of
from firnline.formats.iceberg.state import state_of
from firnline.model.files import FileKind
from firnline.model.snapshots import Ref, RefKind
from firnline.model.times import DAY_MS
from firnline.policy.native import LONGEST_AGE_MS
from firnline.ports.formats import State
from firnline.stores.objects import ObjectStores
from firnline.testing.documents import document_of
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import SmallTable

HERE = "memory://states/t/metadata/v1.metadata.json"


@pytest.fixture
def table() -> SmallTable:
    made = SmallTable(ObjectStores(), "memory://states/t")
    made.append()
    made.append()
    return made


def state(table: SmallTable, **fields: Any) -> State:
    return state_of(document_of(table) | fields, "lake.ns.t", HERE)


def test_snapshots_have_their_parents_times_and_operations(table: SmallTable) -> None:
    first, second = table.changes.values()
    read = state(table).graph
    assert (read[str(first.id)].parent, read[str(second.id)].parent) == (None, str(first.id))
    assert read[str(second.id)].timestamp_ms == second.timestamp_ms
    assert read[str(second.id)].operation == "append"


def test_refs_have_their_own_retention(table: SmallTable) -> None:
    first, second = table.changes
    table.tag("release", first, max_ref_age_ms=7)
    table.branch("audit", first, max_snapshot_age_ms=8, min_snapshots_to_keep=9, max_ref_age_ms=10)
    assert state(table).refs == {
        "main": Ref("main", RefKind.BRANCH, str(second)),
        "release": Ref("release", RefKind.TAG, str(first), max_ref_age_ms=7),
        "audit": Ref("audit", RefKind.BRANCH, str(first), 10, 8, 9),
    }


@pytest.mark.parametrize("fields", [{"refs": None}, {"refs": {}}])
def test_where_a_writer_named_no_refs_the_current_snapshot_is_the_head_of_main(
    table: SmallTable, fields: dict[str, Any]
) -> None:
    read = state(table, **fields)
    assert read.refs["main"].snapshot == read.current == str(table.head())


@pytest.mark.parametrize("nothing", [None, -1])
def test_a_table_without_a_current_snapshot_is_empty(nothing: int | None) -> None:
    empty = SmallTable(ObjectStores(), "memory://states/t")
    read = state(empty, **{"current-snapshot-id": nothing, "refs": None})
    assert (read.current, len(read.graph), dict(read.refs)) == (None, 0, {})


def test_the_tables_own_retention_is_read_from_its_properties(table: SmallTable) -> None:
    defaults = state(table).native
    assert (defaults.max_snapshot_age_ms, defaults.min_snapshots_to_keep) == (5 * DAY_MS, 1)
    assert defaults.max_ref_age_ms == LONGEST_AGE_MS
    names = ("max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms")
    table.properties.update({f"history.expire.{name}": str(value) for value, name in enumerate(names, 11)})
    own = state(table).native
    assert (own.max_snapshot_age_ms, own.min_snapshots_to_keep, own.max_ref_age_ms) == (11, 12, 13)


def test_the_folders_that_properties_name_belong_to_the_table(table: SmallTable) -> None:
    table.properties.update({"write.data.path": "s3://b/data", "write.metadata.path": ""})
    assert state(table).owned == (table.location, "s3://b/data")


@pytest.mark.parametrize(
    ("value", "allowed"),
    [("true", True), ("TRUE", True), ("false", False), ("no", False), (" true", False), ("true\n", False)],
)
def test_only_true_allows_to_remove_anything(table: SmallTable, value: str, allowed: bool) -> None:
    table.properties["gc.enabled"] = value
    assert (state(table).forbidden is None) is allowed


def test_a_hold_that_cannot_be_read_stops_everything(table: SmallTable) -> None:
    """And yet the table can be read, so that somebody can look at the hold and release it."""
    table.properties["firnline.hold.audit"] = "not JSON"
    read = state(table)
    (hold,) = read.holds
    assert (hold.name, hold.snapshot) == ("audit", None)
    assert hold.in_force(2**62)
    assert "firnline.hold.audit" in str(read.forbidden)


def spoil(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """Returns an edit that sets one field, however deep, to a value it must not have."""

    def edit(document: dict[str, Any]) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return edit


DAMAGED = {
    "no location": spoil("location", value=None),
    "a location that is a number": spoil("location", value=5),
    "a current snapshot that is not there": spoil("current-snapshot-id", value=17),
    "a current snapshot that is a text": spoil("current-snapshot-id", value="17"),
    "a snapshot without an id": spoil("snapshots", 0, "snapshot-id", value=None),
    "a snapshot whose id is true": spoil("snapshots", 0, "snapshot-id", value=True),
    "a snapshot without a time": spoil("snapshots", 1, "timestamp-ms", value=None),
    "a snapshot whose time is a fraction": spoil("snapshots", 1, "timestamp-ms", value=1.5),
    "a parent that is a text": spoil("snapshots", 1, "parent-snapshot-id", value="x"),
    "a snapshot that is a text": spoil("snapshots", 1, value="x"),
    "a ref that is a text": spoil("refs", "main", value="x"),
    "a ref of another kind": spoil("refs", "main", "type", value="bookmark"),
    "a ref without a snapshot": spoil("refs", "main", "snapshot-id", value=None),
    "a ref whose age is a text": spoil("refs", "main", "max-ref-age-ms", value="1d"),
    "a main that is a tag": spoil("refs", "main", "type", value="tag"),
    "a time beyond 64 bits": spoil("snapshots", 1, "timestamp-ms", value=10**30),
    "a uuid that is a number": spoil("table-uuid", value=5),
    "a location with half a character": spoil("location", value="memory://states/\ud800"),
    "an age with an underscore": spoil("properties", value={"history.expire.max-snapshot-age-ms": "5_000"}),
    "an age with a space": spoil("properties", value={"history.expire.max-snapshot-age-ms": " 5000"}),
    "an age in other digits": spoil("properties", value={"history.expire.max-snapshot-age-ms": "\u0665"}),
    "an age beyond 64 bits": spoil("properties", value={"history.expire.max-snapshot-age-ms": "9" * 19}),
    "refs that are a list": spoil("refs", value=[]),
    "an age that is no number": spoil("properties", value={"history.expire.max-snapshot-age-ms": "5 days"}),
}


@pytest.mark.parametrize("edit", DAMAGED.values(), ids=list(DAMAGED))
def test_a_field_that_makes_no_sense_stops_everything(
    table: SmallTable, edit: Callable[[dict[str, Any]], None]
) -> None:
    document = document_of(table)
    edit(document)
    with pytest.raises(UnreadableMetadata) as damage:
        state_of(document, "lake.ns.t", HERE)
    assert HERE in damage.value.message
    assert damage.value.hint


def test_two_snapshots_of_one_id_stop_everything(table: SmallTable) -> None:
    document = document_of(table)
    document["snapshots"].append(dict(document["snapshots"][0]))
    with pytest.raises(UnreadableMetadata, match="share one id"):
        state_of(document, "lake.ns.t", HERE)


# ---- roots


def test_the_roots_are_what_the_document_names(table: SmallTable) -> None:
    first, second = table.changes.values()
    statistics = table.statistics(first.id)
    parts = table.statistics(second.id, by_partition=True)
    assert {(snapshot, file.kind, file.key, file.size, file.opens) for snapshot, file in roots_of(state(table))} == {
        (str(first.id), FileKind.MANIFEST_LIST, first.manifest_list, None, True),
        (str(second.id), FileKind.MANIFEST_LIST, second.manifest_list, None, True),
        (str(first.id), FileKind.STATISTICS, statistics, table.made[statistics].size, False),
        (str(second.id), FileKind.PARTITION_STATISTICS, parts, table.made[parts].size, False),
    }


def test_inline_manifests_are_roots_of_their_own() -> None:
    old = SmallTable(ObjectStores(), "memory://states/old", AvroLayout(1))
    snapshot = old.append(inline=True)
    old.append(inline=True)
    named = [(owner, file.key) for owner, file in roots_of(state(old))]
    assert {key for owner, key in named if owner == str(snapshot)} == old.changes[snapshot].units
    assert {key for _, key in named} == {path for path in old.made if "manifest" in path}


@pytest.mark.parametrize("manifests", [None, "x", [""], [5]])
def test_a_snapshot_that_names_no_units_stops_everything(table: SmallTable, manifests: Any) -> None:
    document = document_of(table)
    document["snapshots"][0] |= {"manifest-list": None, "manifests": manifests}
    with pytest.raises(UnreadableMetadata, match=str(document["snapshots"][0]["snapshot-id"])):
        list(roots_of(state_of(document, "lake.ns.t", HERE)))


@pytest.mark.parametrize("field", ["statistics-path", "file-size-in-bytes", "snapshot-id"])
def test_statistics_without_a_field_stop_everything(table: SmallTable, field: str) -> None:
    table.statistics(next(iter(table.changes)))
    document = document_of(table)
    del document["statistics"][0][field]
    with pytest.raises(UnreadableMetadata, match=field):
        list(roots_of(state_of(document, "lake.ns.t", HERE)))


DOTTED = "memory://states/t/../u"
DOTTED_FIELDS: list[dict[str, Any]] = [
    {"location": DOTTED},
    {"properties": {"write.data.path": DOTTED}},
    {"metadata-log": [{"timestamp-ms": 1, "metadata-file": DOTTED}]},
]


@pytest.mark.parametrize("fields", DOTTED_FIELDS)
def test_a_folder_with_a_dotted_segment_is_refused(table: SmallTable, fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedFormat, match=r"v1.metadata.json.*t/\.\./u"):
        state(table, **fields)


@pytest.mark.parametrize("field", ["manifest-list", "manifests", "statistics"])
def test_a_root_with_a_dotted_segment_is_refused(table: SmallTable, field: str) -> None:
    document = document_of(table) | {"format-version": 1}
    if field == "statistics":
        document["statistics"] = [{"snapshot-id": 1, "statistics-path": DOTTED, "file-size-in-bytes": 1}]
    else:
        first = {**document["snapshots"][0], "manifest-list": None, field: [DOTTED] if field == "manifests" else DOTTED}
        document["snapshots"] = [first, *document["snapshots"][1:]]
    with pytest.raises(UnsupportedFormat, match=r"t/\.\./u"):
        list(roots_of(state_of(document, "lake.ns.t", HERE)))


def test_a_snapshot_of_a_newer_version_must_have_a_manifest_list() -> None:
    old = SmallTable(ObjectStores(), "memory://states/inline", AvroLayout(1))
    old.append(inline=True)
    assert list(roots_of(state(old)))
    with pytest.raises(UnreadableMetadata, match="manifest list"):
        list(roots_of(state(old, **{"format-version": 2})))


@pytest.mark.parametrize(
    ("summary", "expected"),
    [({"total-data-files": "7"}, 7), ({"total-data-files": "-1"}, None), ({"total-data-files": 7}, None), (None, None)],
)
def test_a_list_has_to_tell_of_as_many_files_as_its_snapshot(
    table: SmallTable, summary: Any, expected: int | None
) -> None:
    document = document_of(table)
    document["snapshots"][0]["summary"] = summary
    first = next(file for _, file in roots_of(state_of(document, "lake.ns.t", HERE)))
    assert first.expects == expected


@pytest.mark.parametrize("size", [-1, 10**30, True, None])
def test_statistics_of_an_impossible_size_stop_everything(table: SmallTable, size: Any) -> None:
    each = {"snapshot-id": 1, "statistics-path": "memory://states/t/s", "file-size-in-bytes": size}
    with pytest.raises(UnreadableMetadata, match="file-size-in-bytes"):
        list(roots_of(state(table, statistics=[each])))
