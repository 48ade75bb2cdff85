"""The rows of every table, read as an executor reads them, compared with what PyIceberg says of the same metadata."""

from __future__ import annotations

import gc
import pickle
import re
from collections.abc import Generator, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType, TimestamptzType

from firnline.errors import UnsupportedFormat, UsageError
from firnline.formats.iceberg.partitions import PartitionField, avro_name, partition_fields
from firnline.history.listing import bytes_of, row_of, text_of
from firnline.history.names import INDEX, PATH
from firnline.history.opening import History, Segment, digest_of, index_bytes
from firnline.ports.formats import State, TableFormat
from firnline.sql import METADATA
from firnline.sql.asking import RelationRequest, asked_of, open_relation
from firnline.sql.relations import TimeBounds
from firnline.sql.snapshots import ALL_SNAPSHOTS, SNAPSHOTS, Snapshots, batch_of, numbers
from firnline.sql.source import spark_schema
from firnline.stores.objects import ObjectStores
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable

from .conftest import enter
from .lakes import at

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "odd name", StringType()),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "price", DecimalType(9, 2)),
    NestedField(5, "day", DateType()),
)


def batch(number: int) -> pa.Table:
    columns = [
        pa.array(range(number, number + 3), pa.int64()),
        pa.array(["leo", "geo", None], pa.string()),
        pa.array([datetime(2026, 1, number + 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        pa.array([Decimal("-1.25"), Decimal("3.00"), None], pa.decimal128(9, 2)),
        pa.array([date(2026, 1, 1)] * 3, pa.date32()),
    ]
    return pa.table(columns, names=[each.name for each in SCHEMA.fields])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table with three partition specs, one after the other, appends, a delete, a tag and a rollback."""
    folder: Path = tmp_path_factory.mktemp("specs").resolve()
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    lines = "".join(f"    {name}: {value}\n" for name, value in settings.items())
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{lines}")
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("ns")
    made = catalog.create_table("ns.t", SCHEMA)
    live(made)
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        yield made
    catalog.close()


def live(table: Table) -> None:
    table.append(batch(0))
    with table.update_spec() as spec:
        spec.add_field("odd name", IdentityTransform(), "odd name")
        spec.add_field("id", IdentityTransform(), "number")
    table.append(batch(1))
    with table.update_spec() as spec:
        spec.remove_field("number")
        spec.add_field("at", IdentityTransform(), "moment")
        spec.add_field("price", IdentityTransform(), "price")
    table.append(batch(2))
    with table.update_spec() as spec:
        spec.remove_field("moment")
        spec.add_field("day", IdentityTransform(), "day")
    table.append(batch(3))
    table.delete(EqualTo("odd name", "geo"))
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_tag(head.snapshot_id, "good", max_ref_age_ms=9_000).commit()
    table.append(batch(4))
    table.manage_snapshots().rollback_to_snapshot(head.snapshot_id).commit()


def rows(what: str, **options: Any) -> list[dict[str, Any]]:
    """Returns the rows of a table's table, after a journey such as the one to an executor."""
    relation, _ = open_relation(RelationRequest("lake.ns.t", what, **options))
    relation, pieces = pickle.loads(pickle.dumps((relation, list(relation.pieces(TimeBounds())))))
    batches = [each for piece in pieces for each in relation.read(piece, relation.schema.names)]
    return [row for each in batches for row in each.to_pylist()]


def same(ours: list[dict[str, Any]], theirs: pa.Table, *leave: str) -> None:
    """Compares on all columns that both have: PyIceberg's have statistics, ours have not."""
    listed = theirs.to_pylist()
    shared = [name for name in ours[0] if name in listed[0] and name not in leave]
    assert len(shared) >= 3
    assert sorted(str(_only(row, shared)) for row in ours) == sorted(str(_only(row, shared)) for row in listed)


def _only(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: _plain(row[name]) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((name, _plain(each)) for name, each in value.items() if each is not None)
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def test_files_with_three_specs_are_as_pyiceberg_reads_them(table: Table) -> None:
    ours = rows("files")
    same(ours, table.inspect.files(), "spec_id")
    assert {each["spec_id"] for each in ours} == {1, 2, 3}
    assert any(each["partition"]["price"] == Decimal("-1.25") for each in ours)


def test_entries_are_as_pyiceberg_reads_them(table: Table) -> None:
    theirs = table.inspect.entries()
    same(rows("entries"), theirs, "data_file")
    files = [each["data_file"] for each in theirs.to_pylist()]
    found = [each["data_file"] for each in rows("entries")]
    assert sorted(each["file_path"] for each in found) == sorted(each["file_path"] for each in files)
    assert sum(each["record_count"] for each in found) == sum(each["record_count"] for each in files)


def test_an_older_snapshot_has_its_own_files(table: Table) -> None:
    first = table.metadata.snapshots[0].snapshot_id
    same(rows("files", snapshot=str(first)), table.inspect.files(first), "partition", "spec_id")
    assert len(rows("files", snapshot=str(first))) == 1
    assert rows("files", snapshot="good") == rows("files")


def test_manifests_refs_history_and_snapshots_are_as_pyiceberg_reads_them(table: Table) -> None:
    same(rows("manifests"), table.inspect.manifests(), "partition_summaries")
    same(rows("refs"), table.inspect.refs())
    same(rows("history"), table.inspect.history())
    same(rows("snapshots"), table.inspect.snapshots(), "summary")
    assert [row["expired"] for row in rows("all_snapshots")] == [False] * len(table.metadata.snapshots)


def test_the_rows_of_the_table_itself(table: Table) -> None:
    assert sorted(map(str, rows("rows"))) == sorted(map(str, table.scan().to_arrow().to_pylist()))


def test_every_table_has_a_schema_that_spark_knows(table: Table) -> None:
    for what in METADATA:
        relation, _ = open_relation(RelationRequest("lake.ns.t", what))
        assert spark_schema(relation.schema, None).fieldNames() == relation.schema.names
    with pytest.raises(UsageError, match="no column 'nothing'"):
        spark_schema(relation.schema, ["nothing"])


def test_a_table_without_snapshots_has_no_rows(table: Table) -> None:
    table.catalog.create_table_if_not_exists("ns.empty", SCHEMA)
    for what in ("all_snapshots", "entries", "files", "manifests", "refs", "history", "runs", "ledger", "rows"):
        relation, _ = open_relation(RelationRequest("lake.ns.empty", what))
        assert [
            b for piece in relation.pieces(TimeBounds()) for b in relation.read(piece, relation.schema.names) if len(b)
        ] == []


@pytest.mark.parametrize(("name", "written"), [("a b", "a_x20b"), ("1st", "_1st"), ("-x", "_x2Dx"), ("día", "día")])
def test_names_in_avro(name: str, written: str) -> None:
    assert avro_name(name) == written


@pytest.mark.parametrize("options", [{}, {"table": "a.b", "what": "nothing"}, {"table": "a.b", "tabel": "x"}])
def test_options_that_make_no_sense(options: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        asked_of(options)
    assert refused.value.hint


# ---------------------------------------------------------------- equality deletes and segments


def test_equality_deletes_are_refused_and_the_jar_is_named(tmp_path: Path) -> None:
    made = SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(2))
    made.append(1)
    made.delete_rows(made.live(), equality=True)
    made.publish()
    relation, _ = open_relation(RelationRequest(f"file://{tmp_path}/t", "rows"))
    with pytest.raises(UnsupportedFormat, match="equality deletes") as refused:
        relation.pieces(TimeBounds())
    assert "iceberg-spark-runtime" in refused.value.hint


@pytest.mark.parametrize("what", ["entries", "files", "manifests"])
def test_manifests_that_a_snapshot_names_without_a_list_are_read_like_listed_ones(tmp_path: Path, what: str) -> None:
    for name, inline in (("old", True), ("new", False)):
        made = SmallTable(QuickFiles(), f"file://{tmp_path}/{name}", AvroLayout(1))
        made.append(3, inline=inline)
        made.overwrite(made.live()[:1])
        made.publish()
    found = [_of(f"file://{tmp_path}/{name}", what) for name in ("old", "new")]
    assert found[0] == found[1]
    assert found[0]


def _of(table: str, what: str) -> list[str]:
    """Returns the rows of a table's first snapshot as text, without what differs between two equal tables."""
    first = min(_document(str(max(Path(table.removeprefix("file://")).glob("metadata/*.json"))))["snapshots"], key=_age)
    relation, _ = open_relation(RelationRequest(table, what, snapshot=str(first["snapshot-id"])))
    batches = [each for piece in relation.pieces(TimeBounds()) for each in relation.read(piece, relation.schema.names)]
    return sorted(re.sub(rf"{table}\S*?'", "", str(row)) for each in batches for row in each.to_pylist())


def _age(snapshot: dict[str, Any]) -> int:
    return int(snapshot["timestamp-ms"])


@pytest.fixture
def remembering(tmp_path: Path) -> tuple[str, list[Path]]:
    """A table by path that remembers three segments of four snapshots each and two in its list."""
    made = SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(2))
    made.append(1)
    folder = tmp_path / "t" / "_firnline" / "history"
    published = made.publish()
    uuid = next(iter(_document(published)["table-uuid"].split()))
    own = folder / uuid
    own.mkdir(parents=True)
    groups = [[_snapshot(day) for day in range(start, start + 4)] for start in (1, 5, 9)]
    segments = [_segment(own, group) for group in groups]
    (own / "index-0a.json").write_bytes(index_bytes(segments))
    (own / "expired-snapshots-0b.json").write_bytes(bytes_of(text_of(_snapshot(day)) for day in (13, 14)))
    made.publish(
        edit=lambda document: document["properties"].update(
            {PATH: f"{own}/expired-snapshots-0b.json", INDEX: f"{own}/index-0a.json"}
        )
    )
    return f"file://{tmp_path}/t", [Path(each.key) for each in segments]


def _document(location: str) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(Path(location.removeprefix("file://")).read_bytes())
    return found


def _snapshot(day: int) -> dict[str, Any]:
    return {"snapshot-id": day, "timestamp-ms": at(f"2024-07-{day:02d}"), "summary": {"operation": "append"}}


def _segment(folder: Path, group: list[dict[str, Any]]) -> Segment:
    data = bytes_of(map(text_of, group))
    digest = digest_of(data)
    path = folder / f"segment-{digest}.json"
    path.write_bytes(data)
    return Segment(str(path), len(group), len(data), group[0]["timestamp-ms"], group[-1]["timestamp-ms"], digest)


def test_segments_are_pieces_and_bounds_spare_those_outside(remembering: tuple[str, list[Path]]) -> None:
    table, segments = remembering
    relation, _ = open_relation(RelationRequest(table, "all_snapshots"))
    assert len(relation.pieces(TimeBounds())) == 5
    assert len(relation.pieces(TimeBounds(expired=True))) == 4
    assert len(relation.pieces(TimeBounds(expired=False))) == 1
    segments[0].unlink()
    late = relation.pieces(TimeBounds(first_ms=at("2024-07-08")))
    found = [
        row for piece in late for each in relation.read(piece, ["snapshot_id", "expired"]) for row in each.to_pylist()
    ]
    assert sorted(row["snapshot_id"] for row in found if row["expired"]) == [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]


def test_the_partition_has_a_type_for_every_transform() -> None:
    columns = [
        ("long", "a"),
        ("timestamptz", "b"),
        ("uuid", "c"),
        ("fixed[4]", "d"),
        ("timestamp", "e"),
        ("float", "f"),
    ]
    schema = [{"id": place, "name": name, "type": kind} for place, (kind, name) in enumerate(columns, 1)]
    said = [
        (1, "bucket[4]"), (1, "truncate[10]"), (2, "day"), (2, "hour"), (2, "years"), (3, "identity"), (4, "identity"),
        (5, "identity"), (6, "void"), (9, "identity"),
    ]  # fmt: skip
    spec = [{"source-id": source, "transform": name, "name": f"p{n}"} for n, (source, name) in enumerate(said)]
    document = {"schema": {"fields": schema}, "partition-spec": spec}
    state = cast("State", SimpleNamespace(document=document, fence="here"))
    shown = [each.shown_as for each in partition_fields(state)]
    assert shown == [
        pa.int32(), pa.int64(), pa.date32(), pa.int32(), pa.int32(), pa.string(), pa.binary(),
        pa.timestamp("us"), pa.float32(), pa.binary(),
    ]  # fmt: skip


def test_values_of_types_that_avro_has_not() -> None:
    raw = uuid4()
    as_uuid = PartitionField(1, "u", "uuid").shown(pa.array([raw.bytes, None]))
    assert as_uuid.to_pylist() == [str(raw), None]
    price = PartitionField(1, "p", "decimal(9, 2)").shown(pa.array([(-125).to_bytes(2, "big", signed=True), None]))
    assert price.to_pylist() == [Decimal("-1.25"), None]
    assert PartitionField(1, "d", "date").shown(pa.array([0, None])).to_pylist() == [date(1970, 1, 1), None]


# ---------------------------------------------------------------- snapshots of any format


class Another:
    """A format of which only this is known: its snapshots, as the port asks for them."""

    def load(self, table: str, version: str) -> str:
        return version

    def snapshot_objects(self, state: str) -> Iterator[dict[str, Any]]:
        return (_snapshot(day) for day in range(1, 4))


def snapshots(store: Any, history: History | None, live: frozenset[str]) -> Snapshots:
    return Snapshots(cast("TableFormat", Another()), store, "t", "v1", history, live)


def test_snapshots_of_another_format_have_the_same_columns() -> None:
    relation = snapshots(None, None, frozenset({"1", "2", "3"}))
    (piece,) = relation.pieces(TimeBounds())
    (found,) = relation.read(piece, relation.schema.names)
    assert found.schema.equals(SNAPSHOTS)
    assert found.column("snapshot_id").to_pylist() == [1, 2, 3]


ODD = [
    {"snapshot-id": 1, "timestamp-ms": 5},
    {"snapshot-id": 2, "timestamp-ms": 6, "parent-snapshot-id": -1, "summary": None, "manifest-list": None},
    {
        "snapshot-id": 3,
        "timestamp-ms": 7,
        "parent-snapshot-id": 2,
        "summary": {"n": 4, "operation": "append", "x": True},
    },
    {"snapshot-id": 4, "timestamp-ms": 8, "manifest-list": "s3://b/l.avro", "summary": {"operation": "delete"}},
]


def test_columns_are_what_the_rows_of_the_same_snapshots_say() -> None:
    names = ALL_SNAPSHOTS.names
    found = batch_of(ODD, names, {}).to_pylist()
    rows = [row_of(each, expired=True) for each in ODD]
    assert [int(row.committed_at_ms) for row in rows] == [int(row["committed_at"].timestamp() * 1000) for row in found]
    assert [(row.snapshot_id, row.parent_id) for row in rows] == [
        (str(row["snapshot_id"]), row["parent_id"] and str(row["parent_id"])) for row in found
    ]
    for name in ("operation", "manifest_list", "expired"):
        assert [getattr(row, name) for row in rows] == [row[name] for row in found]
    assert [dict(row.summary) for row in rows] == [dict(row["summary"]) for row in found]


def test_pythons_search_for_cycles_goes_on_after_a_read() -> None:
    relation = snapshots(None, None, frozenset({"1", "2", "3"}))
    (piece,) = relation.pieces(TimeBounds())
    reading = relation.read(piece, ["snapshot_id"])
    assert isinstance(reading, Generator)
    next(reading)
    assert not gc.isenabled()
    reading.close()
    assert gc.isenabled()


def test_a_long_list_streams_in_batches_and_leaves_out_what_is_live(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(bytes_of(text_of({**_snapshot(1), "snapshot-id": each}) for each in range(25_000)))
    relation = snapshots(ObjectStores({}), History((str(path),)), frozenset({"7"}))
    _, piece = relation.pieces(TimeBounds())
    batches = list(relation.read(piece, ["snapshot_id"]))
    assert [len(each) for each in batches] == [10_000, 10_000, 4_999]
    assert 7 not in batches[0].column("snapshot_id").to_pylist()


def test_ids_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="not a number"):
        numbers(["1CECHNKREP0F1RSTCMT0"])
