"""Editing the metadata document: nothing that was not asked for may change, and what was taken out can come back."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.metadata import TableMetadataUtil

from firnline.errors import RefusedForSafety, UnsupportedFormat, UsageError
from firnline.formats.iceberg import edit
from firnline.formats.iceberg.document import document_bytes, successor_name
from firnline.formats.iceberg.state import state_of
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.removals import Removal
from firnline.model.snapshots import Ref, RefKind
from firnline.ops.runs.drop import dropping
from firnline.policy.native import LONGEST_AGE_MS
from firnline.ports.formats import Amendment, State
from firnline.stores.objects import ObjectStores
from harness.lanes import by_lane

Document = dict[str, Any]
BIG = 3_000_000_000_000_000_000
"""Beyond 2**53: an id that went through a floating point number would come back as its neighbour."""

T0 = 1_767_225_600_000
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}


def snapshot(number: int, parent: int | None = None, **more: Any) -> Document:
    said: Document = {
        "snapshot-id": BIG + number,
        "timestamp-ms": T0 + number * 1000,
        "manifest-list": f"file:///lake/t/metadata/snap-{number}.avro",
        "summary": {"operation": "append", "engine-of-tomorrow": "7"},
        "schema-id": 0,
    }
    return said | ({} if parent is None else {"parent-snapshot-id": BIG + parent}) | more


def ref(number: int, kind: str = "tag", **retention: int) -> Document:
    return {"snapshot-id": BIG + number, "type": kind, **retention}


def entry(number: int, at: int | None = None) -> Document:
    return {"snapshot-id": BIG + number, "timestamp-ms": T0 + (number if at is None else at) * 1000}


def statistics(number: int, name: str = "s") -> Document:
    path = f"file:///lake/t/metadata/{name}-{number}.puffin"
    return {"snapshot-id": BIG + number, "statistics-path": path, "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 4, "blob-metadata": []}  # fmt: skip


def document(version: int = 2, count: int = 4, **more: Any) -> Document:
    """Returns a table of snapshots 1 to `count` in a row, the last of them current."""
    said: Document = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:///lake/t",
        "last-updated-ms": T0 + count * 1000,
        "last-column-id": 1,
        "schemas": [SCHEMA],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"owner": "nobody"},
        "current-snapshot-id": BIG + count,
        "refs": {"main": ref(count, "branch")},
        "snapshots": [
            snapshot(n, n - 1 if n > 1 else None, **({"sequence-number": n} if version > 1 else {}))
            for n in range(1, count + 1)
        ],
        "snapshot-log": [entry(n) for n in range(1, count + 1)],
        "metadata-log": [],
        "statistics": [statistics(n) for n in range(1, count + 1)],
        "partition-statistics": [statistics(n, "p") for n in range(1, count + 1)],
    }
    said |= {"schema": SCHEMA, "partition-spec": []} if version == 1 else {"last-sequence-number": count}
    said |= {"next-row-id": 1_000_000_007} if version == 3 else {}
    return said | more


def ids(*numbers: int) -> set[str]:
    return {str(BIG + number) for number in numbers}


def names(said: Document, field: str = "snapshots") -> list[int]:
    return [each["snapshot-id"] - BIG for each in said[field]]


def state(said: Document) -> State:
    return state_of(said, "lake.t", "file:///lake/t/metadata/00007-x.metadata.json")


FORMAT = IcebergFormat(ObjectStores())

# ---------------------------------------------------------------- what survives


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fields_that_firnline_does_not_know_survive_every_edit(version: int) -> None:
    before = document(version, **{"field-of-tomorrow": {"deep": [1, None]}})
    for each in before["snapshots"]:
        each["snapshot-field-of-tomorrow"] = {"first-row-id": 2**60 + 1}
    before["refs"]["main"]["ref-field-of-tomorrow"] = [1, 2]
    edited, removal = edit.expired(before, ids(1, 2), set())
    restored, _ = edit.restored(edited, removal)
    amended = edit.amended(edited, Amendment(refs=(Ref("main", RefKind.BRANCH, str(BIG + 4), None, None, 7),)))
    for after in (edited, restored, amended):
        assert after["field-of-tomorrow"] == {"deep": [1, None]}
        assert after["refs"]["main"]["ref-field-of-tomorrow"] == [1, 2]
        assert all(each["snapshot-field-of-tomorrow"] == {"first-row-id": 2**60 + 1} for each in after["snapshots"])
        assert all(each["summary"]["engine-of-tomorrow"] == "7" for each in after["snapshots"])
    assert amended["refs"]["main"]["min-snapshots-to-keep"] == 7


def test_row_lineage_and_sequence_numbers_of_version_3_survive() -> None:
    before = document(3)
    before["snapshots"] = [
        each | {"first-row-id": 10 * i, "added-rows": 9} for i, each in enumerate(before["snapshots"])
    ]
    edited, _ = edit.expired(before, ids(1), set())
    assert edited["next-row-id"] == 1_000_000_007
    assert edited["last-sequence-number"] == 4
    assert [(s["sequence-number"], s["first-row-id"], s["added-rows"]) for s in edited["snapshots"]] == [
        (2, 10, 9), (3, 20, 9), (4, 30, 9)
    ]  # fmt: skip


def test_ids_survive_the_way_to_bytes_and_back() -> None:
    said = json.loads(FORMAT.expire(state(document()), ids(1, 2), set(), T0).data)
    assert names(said) == [3, 4]
    assert said["current-snapshot-id"] == BIG + 4


def test_children_keep_the_parent_that_is_gone() -> None:
    """A later look at the history must see that something was there; Java keeps it, too."""
    edited, _ = edit.expired(document(), ids(1, 2), set())
    assert edited["snapshots"][0]["parent-snapshot-id"] == BIG + 2


def test_the_document_that_was_read_is_not_touched() -> None:
    before = document()
    untouched = copy.deepcopy(before)
    edited, removal = edit.expired(before, ids(1), set())
    edit.restored(edited, removal)
    edit.amended(before, Amendment(refs_gone=frozenset({"main"}), properties={"a": "b"}))
    edit.stamped(edited, "file:///lake/t/metadata/1.json", T0)
    assert before == untouched


# ---------------------------------------------------------------- the snapshot log


def java_log(log: list[Document], known: set[int]) -> list[Document]:
    """Returns what Java keeps: everything after the last entry whose snapshot is gone."""
    holes = [place for place, each in enumerate(log) if each["snapshot-id"] not in known]
    return log[holes[-1] + 1 :] if holes else log


def test_an_entry_whose_snapshot_is_gone_clears_all_before_it() -> None:
    edited, _ = edit.expired(document(), ids(2), set())
    assert names(edited) == [1, 3, 4]
    assert names(edited, "snapshot-log") == [3, 4]


def test_a_log_of_rollbacks_is_cut_at_its_last_hole() -> None:
    log = [entry(1), entry(2), entry(3), entry(1, 4), entry(2, 5), entry(4, 6)]
    edited, _ = edit.expired(document(**{"snapshot-log": log}), ids(3), set())
    assert edited["snapshot-log"] == log[3:]


def test_a_table_without_a_log_gets_none() -> None:
    before = document()
    del before["snapshot-log"]
    edited, removal = edit.expired(before, ids(1), set())
    assert "snapshot-log" not in edited
    assert "snapshot-log" not in edit.restored(edited, removal)[0]


def test_an_old_part_of_the_log_does_not_come_back_over_a_hole() -> None:
    """Run A took 1, run B took 2; with A undone alone, a log of 1, 3, 4 would say that 1 was current until 3."""
    first, removal_a = edit.expired(document(), ids(1), set())
    second, removal_b = edit.expired(first, ids(2), set())
    a_alone, _ = edit.restored(second, removal_a)
    assert names(a_alone, "snapshot-log") == [3, 4]
    b_first, _ = edit.restored(second, removal_b)
    both, _ = edit.restored(b_first, removal_a)
    assert names(both, "snapshot-log") == [1, 2, 3, 4]


def test_a_log_with_a_clock_that_went_back_keeps_its_order() -> None:
    """The last entry must be the current snapshot, or Java refuses the next change of the log."""
    log = [entry(1, 1), entry(2, 9), entry(3, 8), entry(4, 7)]
    edited, removal = edit.expired(document(**{"snapshot-log": log}), ids(2), set())
    assert edit.restored(edited, removal)[0]["snapshot-log"] == log


def test_commits_since_stay_at_the_end_of_a_restored_log() -> None:
    edited, removal = edit.expired(document(), ids(1, 2), set())
    since = {**edited, "snapshots": [*edited["snapshots"], snapshot(5, 4)], "current-snapshot-id": BIG + 5,
             "snapshot-log": [*edited["snapshot-log"], entry(5)]}  # fmt: skip
    assert names(edit.restored(since, removal)[0], "snapshot-log") == [1, 2, 3, 4, 5]


# ---------------------------------------------------------------- the metadata log


def metadata_log(count: int) -> list[Document]:
    return [{"timestamp-ms": T0 + n, "metadata-file": f"file:///lake/t/metadata/{n}.json"} for n in range(count)]


@pytest.mark.parametrize(("setting", "kept"), [(None, 100), ("3", 3), ("1", 1), ("0", 1)])
def test_the_metadata_log_is_as_long_as_the_table_says(setting: str | None, kept: int) -> None:
    """At least one version is remembered, as Java does: the one that the commit was built on."""
    properties = {} if setting is None else {"write.metadata.previous-versions-max": setting}
    before = document(properties=properties, **{"metadata-log": metadata_log(100)})
    after = edit.stamped(dict(before), "file:///lake/t/metadata/100.json", T0 + 99_000)
    assert len(after["metadata-log"]) == kept
    newest = {"timestamp-ms": before["last-updated-ms"], "metadata-file": "file:///lake/t/metadata/100.json"}
    assert after["metadata-log"][-1] == newest
    assert after["last-updated-ms"] == T0 + 99_000


def test_time_in_the_metadata_never_runs_backwards() -> None:
    before = document()
    assert edit.stamped(dict(before), "file:///x", T0 - 1)["last-updated-ms"] == before["last-updated-ms"]


def test_a_log_length_that_is_no_number_stops() -> None:
    with pytest.raises(RefusedForSafety, match="previous-versions-max"):
        edit.stamped(document(properties={"write.metadata.previous-versions-max": "many"}), "file:///x", T0)


@pytest.mark.parametrize(("asked", "forgotten"), [(None, 0), ("false", 0), ("true", 3), ("TRUE", 3)])
def test_metadata_that_falls_off_the_log_goes_only_where_the_table_asks(asked: str | None, forgotten: int) -> None:
    properties = {"write.metadata.previous-versions-max": "3"}
    properties |= {} if asked is None else {"write.metadata.delete-after-commit.enabled": asked}
    before = document(properties=properties, **{"metadata-log": metadata_log(5)})
    edited = FORMAT.expire(state(before), ids(1), set(), T0)
    assert list(edited.forgotten) == [each["metadata-file"] for each in metadata_log(5)][:forgotten]


# ---------------------------------------------------------------- statistics, refs, refusals


def test_statistics_of_both_kinds_go_and_come_back_with_their_snapshots() -> None:
    edited, removal = edit.expired(document(), ids(1, 2), set())
    assert names(edited, "statistics") == names(edited, "partition-statistics") == [3, 4]
    back, _ = edit.restored(edited, removal)
    assert sorted(names(back, "statistics")) == sorted(names(back, "partition-statistics")) == [1, 2, 3, 4]


def test_statistics_of_a_snapshot_that_the_table_never_had_stay() -> None:
    before = document(statistics=[statistics(1), statistics(77)])
    assert names(edit.expired(before, ids(1), set())[0], "statistics") == [77]


@pytest.mark.parametrize("refs", [set[str](), {"old"}])
def test_a_ref_that_stays_is_never_left_without_its_snapshot(refs: set[str]) -> None:
    before = document(refs={"main": ref(4, "branch"), "audit": ref(2), "old": ref(1)})
    with pytest.raises(RefusedForSafety, match="audit"):
        edit.expired(before, ids(1, 2) if refs else ids(2), refs)


@pytest.mark.parametrize("refs", [{}, None, "absent"])
def test_the_current_snapshot_is_never_removed_even_where_no_ref_names_it(refs: Any) -> None:
    before = document(1, refs=refs)
    if refs == "absent":
        del before["refs"]
    with pytest.raises(RefusedForSafety, match="current snapshot"):
        edit.expired(before, ids(4), set())
    edited, removal = edit.expired(before, ids(1), set())
    assert edited.get("refs") == before.get("refs")
    assert names(edit.restored(edited, removal)[0]) == [1, 2, 3, 4]


def test_a_ref_that_was_created_again_keeps_what_it_says_now() -> None:
    before = document(refs={"main": ref(4, "branch"), "audit": ref(1), "old": ref(2)})
    edited, removal = edit.expired(before, ids(1, 2), {"audit", "old"})
    since = {**edited, "refs": {**edited["refs"], "audit": ref(3, **{"max-ref-age-ms": 5})}}
    back, left_alone = edit.restored(since, removal)
    assert left_alone == ["audit"]
    assert back["refs"] == {"main": ref(4, "branch"), "audit": ref(3, **{"max-ref-age-ms": 5}), "old": ref(2)}


def test_a_ref_whose_snapshot_something_else_removed_does_not_come_back_dangling() -> None:
    """The ref expired first while its snapshot stayed in main; then the snapshot went, by another run or tool."""
    before = document(refs={"main": ref(4, "branch"), "audit": ref(3)})
    without_ref, removal = edit.expired(before, ids(1), {"audit"})
    without_3, _ = edit.expired(without_ref, ids(3), set())
    back, left_alone = edit.restored(without_3, removal)
    assert left_alone == ["audit"]
    assert back["refs"] == {"main": ref(4, "branch")}
    assert names(back) == [1, 2, 4]


def test_a_snapshot_that_is_back_already_is_not_put_back_twice() -> None:
    edited, removal = edit.expired(document(), ids(1, 2), set())
    once, _ = edit.restored(edited, removal)
    twice, _ = edit.restored(once, removal)
    assert twice == once


@pytest.mark.parametrize(("field", "key"), [("schemas", "schema-id"), ("partition-specs", "spec-id")])
def test_an_id_that_a_writer_gave_again_refuses_the_undo(field: str, key: str) -> None:
    """A run dropped unused schema 1; a writer then numbered its new one 1: old snapshots would be read by it."""
    before = document()
    removal = Removal(payload={field: [{key: 1, "fields": []}]})
    clash = {**before, field: [*before[field], {key: 1, "fields": [{"name": "other"}]}]}
    with pytest.raises(RefusedForSafety, match=key):
        FORMAT.restore(state(clash), removal, T0)
    same = {**before, field: [*before[field], {key: 1, "fields": []}]}
    assert [each[key] for each in json.loads(FORMAT.restore(state(same), removal, T0).data)[field]] == [0, 1]


def test_a_tag_on_a_table_of_an_old_writer_writes_main_too() -> None:
    """Where refs are written at all, a reader takes a main that is not among them for gone."""
    before = document(1)
    del before["refs"]
    after = edit.amended(before, Amendment(refs=(Ref("audit", RefKind.TAG, str(BIG + 2), LONGEST_AGE_MS),)))
    assert after["refs"] == {"main": ref(4, "branch"), "audit": ref(2, **{"max-ref-age-ms": LONGEST_AGE_MS})}


def test_properties_are_written_and_removed_one_by_one() -> None:
    before = document(properties={"a": "1", "b": "2"})
    after = edit.amended(before, Amendment(properties={"c": "3"}, properties_gone=frozenset({"a"})))
    assert after["properties"] == {"b": "2", "c": "3"}
    assert after["refs"] == before["refs"]


# ---------------------------------------------------------------- bytes and names


def test_a_compressed_table_stays_compressed_and_is_named_so() -> None:
    before = document(properties={"write.metadata.compression-codec": "gzip"})
    edited = FORMAT.expire(state(before), ids(1), set(), T0)
    assert edited.data[:2] == b"\x1f\x8b"
    assert edited.location.endswith(".gz.metadata.json")


def test_a_compression_that_nobody_knows_refuses() -> None:
    with pytest.raises(UnsupportedFormat, match="zstd"):
        document_bytes(document(properties={"write.metadata.compression-codec": "zstd"}))


@pytest.mark.parametrize(
    ("base", "start"),
    [("00007-abc.metadata.json", "00008-"), ("v41.metadata.json", "00042-"), ("strange.json", "00000-")],
)
def test_a_name_is_never_used_twice(base: str, start: str) -> None:
    made = {successor_name(document(), f"file:///lake/t/metadata/{base}") for _ in range(50)}
    assert len(made) == 50
    assert all(name.startswith(f"file:///lake/t/metadata/{start}") for name in made)


def test_metadata_goes_where_the_table_wants_it() -> None:
    before = document(properties={"write.metadata.path": "file:///elsewhere/m"})
    assert successor_name(before, "file:///elsewhere/m/00001-x.metadata.json").startswith("file:///elsewhere/m/00002-")


# ---------------------------------------------------------------- any document


@st.composite
def cases(draw: st.DrawFn) -> tuple[Document, set[str], set[str]]:
    """Returns a document with branches, tags, rollbacks and statistics, and what of it may expire."""
    count = draw(st.integers(1, 9))
    version = draw(st.sampled_from([1, 2, 3]))
    numbers = st.integers(1, count)
    snapshots = [snapshot(n, draw(st.none() | st.integers(1, n - 1)) if n > 1 else None) for n in range(1, count + 1)]
    tags = draw(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.tuples(numbers, st.booleans())))
    current = draw(numbers)
    refs = {name: ref(at, "tag" if is_tag else "branch") for name, (at, is_tag) in tags.items()}
    log = [*draw(st.lists(numbers, max_size=12)), current]
    said = document(version, count) | {
        "snapshots": snapshots,
        "current-snapshot-id": BIG + current,
        "refs": {"main": ref(current, "branch"), **refs},
        "snapshot-log": [entry(n, at) for at, n in enumerate(log)],
        "statistics": [statistics(n) for n in draw(st.lists(numbers, unique=True))],
        "partition-statistics": [statistics(n, "p") for n in draw(st.lists(numbers, unique=True))],
        "unknown": draw(st.integers()),
    }
    doomed_refs = draw(st.sets(st.sampled_from(sorted(refs)))) if refs else set()
    needed = {current, *(at for name, (at, _) in tags.items() if name not in doomed_refs)}
    free = sorted(set(range(1, count + 1)) - needed)
    doomed = draw(st.sets(st.sampled_from(free))) if free else set()
    return said, ids(*doomed), doomed_refs


UNORDERED = ("snapshots", "statistics", "partition-statistics")


def without_order(said: Document) -> Document:
    return said | {name: sorted(said[name], key=lambda each: each["snapshot-id"]) for name in UNORDERED}


@given(cases())
@settings(max_examples=by_lane(120, 120, 3_000), deadline=None)
def test_what_was_expired_comes_back_as_it_was(case: tuple[Document, set[str], set[str]]) -> None:
    before, snapshots, refs = case
    edited, removal = edit.expired(before, snapshots, refs)
    back, left_alone = edit.restored(edited, json.loads(json.dumps(removal)))
    assert without_order(back) == without_order(before)
    assert left_alone == []


@given(cases())
@settings(max_examples=by_lane(120, 120, 3_000), deadline=None)
def test_an_expiry_changes_what_it_names_and_the_log_and_nothing_else(
    case: tuple[Document, set[str], set[str]],
) -> None:
    before, snapshots, refs = case
    edited, _ = edit.expired(before, snapshots, refs)
    assert edited["snapshots"] == [each for each in before["snapshots"] if str(each["snapshot-id"]) not in snapshots]
    assert edited["refs"] == {name: each for name, each in before["refs"].items() if name not in refs}
    assert edited["snapshot-log"] == java_log(before["snapshot-log"], {s["snapshot-id"] for s in edited["snapshots"]})
    assert edited["snapshot-log"][-1]["snapshot-id"] == edited["current-snapshot-id"]
    for name in ("statistics", "partition-statistics"):
        assert edited[name] == [each for each in before[name] if str(each["snapshot-id"]) not in snapshots]
    changed = {"snapshots", "refs", "snapshot-log", "statistics", "partition-statistics"}
    assert {name: edited[name] for name in before.keys() - changed} == {
        name: before[name] for name in before.keys() - changed
    }
    assert edited.keys() == before.keys()


@given(cases(), st.data())
@settings(max_examples=by_lane(80, 80, 2_000), deadline=None)
def test_two_runs_undone_in_any_order_never_leave_a_ref_that_leads_nowhere(
    case: tuple[Document, set[str], set[str]], data: st.DataObject
) -> None:
    """What is left of the log may be too short, but it never hides a hole."""
    before, snapshots, refs = case
    first = data.draw(st.sets(st.sampled_from(sorted(snapshots)))) if snapshots else set()
    one, removal_one = edit.expired(before, first, refs)
    two, removal_two = edit.expired(one, snapshots - first, set())
    for order in ((removal_one, removal_two), (removal_two, removal_one)):
        said: Document = two
        for removal in order:
            said, _ = edit.restored(said, removal)
            known = {each["snapshot-id"] for each in said["snapshots"]}
            whole = java_log(before["snapshot-log"], known)
            assert {each["snapshot-id"] for each in said["refs"].values()} <= known
            assert said["snapshot-log"] == whole[len(whole) - len(said["snapshot-log"]) :]
        assert {each["snapshot-id"] for each in said["snapshots"]} == {s["snapshot-id"] for s in before["snapshots"]}


@given(cases())
@settings(max_examples=by_lane(30, 30, 600), deadline=None)
def test_pyiceberg_reads_what_was_edited(case: tuple[Document, set[str], set[str]]) -> None:
    before, snapshots, refs = case
    if before["format-version"] == 3:
        before = before | {"format-version": 2}
    edited = FORMAT.expire(state(before), snapshots, refs, T0 + 10**6)
    read = TableMetadataUtil.parse_raw(edited.data.decode())
    said = json.loads(edited.data)
    assert {each.snapshot_id for each in read.snapshots} == {each["snapshot-id"] for each in said["snapshots"]}
    assert set(read.refs) == set(said["refs"])
    assert [each.snapshot_id for each in read.snapshot_log] == [each["snapshot-id"] for each in said["snapshot-log"]]
    back = FORMAT.restore(state(said), edited.removal, T0 + 10**6)
    again = TableMetadataUtil.parse_raw(back.data.decode())
    assert {each.snapshot_id for each in again.snapshots} == {each["snapshot-id"] for each in before["snapshots"]}


def test_a_run_drops_tags_and_takes_no_snapshot_along() -> None:
    before = state(document(refs={"main": ref(4, "branch"), "side": ref(2, "branch"), "old": ref(1)}))
    gone = dropping(FORMAT, before, {"old"})
    assert (gone.snapshots, gone.refs) == (frozenset(), frozenset({"old"}))
    with pytest.raises(UnsupportedFormat, match="side is a branch"):
        dropping(FORMAT, before, {"side"})
    with pytest.raises(UsageError):
        dropping(FORMAT, before, {"nobody"})
