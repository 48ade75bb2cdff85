"""Relocated position deletes name the files where they lie now, and are otherwise what they were."""

from __future__ import annotations

import decimal
import io
import uuid
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import read_header
from firnline.model.files import FileKind
from harness.lanes import by_lane

from .shelf import COLD, KEY, relocation
from .written import CODECS, PATHS, avro, field, rows_of

COUNT = by_lane(50, 50, 2_000)
quick = settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KIND = FileKind.POSITION_DELETES
METADATA = {"iceberg.schema": '{"type":"struct","schema-id":0}', "delete-type": "position", "of-later": "ü"}
ROW_TYPES = {
    "count": (pa.int32(), 7),
    "cents": (pa.decimal128(9, 2), decimal.Decimal("1.25")),
    "units": (pa.decimal128(30, 3), decimal.Decimal("7.125")),
    "at": (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, tzinfo=UTC)),
    "local": (pa.timestamp("us"), datetime(2026, 1, 2)),
    "day": (pa.date32(), date(2026, 1, 2)),
    "raw": (pa.binary(3), b"abc"),
    "id": (pa.uuid(), uuid.UUID(int=5).bytes),
    "names": (pa.list_(pa.field("element", pa.string(), metadata={"PARQUET:field_id": "31"})), ["a", None]),
    "nested": (pa.struct([pa.field("x", pa.float64(), metadata={"PARQUET:field_id": "32"})]), {"x": 0.5}),
}


def with_id(name: str, kind: pa.DataType, number: int, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})


def schema(*more: pa.Field, path: str = "file_path") -> pa.Schema:
    known = [with_id(path, pa.string(), 2147483546), with_id("pos", pa.int64(), 2147483545)]
    return pa.schema([*known, *more], METADATA)


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink, rows = pa.BufferOutputStream(), options.pop("row_group_size", None)
    options = {"store_schema": False, "compression": "zstd", **options}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, rows)
        if not options["store_schema"] and table.schema.metadata:
            writer.add_key_value_metadata(table.schema.metadata)
    return bytes(sink.getvalue())


def positions(places: list[tuple[str, int]], *more: pa.Array, of: pa.Schema | None = None) -> pa.Table:
    ordered = sorted(places)
    paths, rows = (
        pa.array([each for each, _ in ordered], pa.string()),
        pa.array([row for _, row in ordered], pa.int64()),
    )
    return pa.Table.from_arrays([paths, rows, *more], schema=of or schema())


def opened(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data))


@quick
@given(
    places=st.lists(st.tuples(PATHS, st.integers(0, 2**40)), max_size=40),
    codec=st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4"]),
    group=st.sampled_from([1, 7, 100]),
    stored=st.booleans(),
)
def test_parquet(places: list[tuple[str, int]], codec: str, group: int, stored: bool) -> None:
    before = parquet(positions(places), compression=codec, row_group_size=group, store_schema=stored)
    after = relocation().relocated(KIND, KEY, before)
    old, new = opened(before), opened(after)
    assert new.read().to_pylist() == [
        {**row, "file_path": COLD.place(row["file_path"])} for row in old.read().to_pylist()
    ]
    assert new.schema.equals(old.schema)
    assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
    assert new.metadata.metadata == old.metadata.metadata
    assert (b"ARROW:schema" in new.metadata.metadata) is stored
    assert shape(new) == shape(old)
    assert relocation().relocated(KIND, KEY, before) == after


def shape(file: pq.ParquetFile) -> list[tuple[int, list[str]]]:
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    return [(each.num_rows, [each.column(column).compression for column in range(each.num_columns)]) for each in groups]


def test_bounds_of_row_groups_are_those_of_the_places() -> None:
    """Readers skip row groups by them."""
    before = parquet(positions([("s3://lake/a", 1), ("s3://lake/b", 2)]), row_group_size=1)
    after = opened(relocation().relocated(KIND, KEY, before))
    found = [after.metadata.row_group(number).column(0).statistics for number in range(2)]
    assert (
        [each.min for each in found]
        == [each.max for each in found]
        == [COLD.place("s3://lake/a"), COLD.place("s3://lake/b")]
    )


def test_the_rows_in_a_file_stay_with_their_types_and_ids() -> None:
    fields = [with_id(name, kind, number, True) for number, (name, (kind, _)) in enumerate(ROW_TYPES.items(), 1)]
    row = with_id("row", pa.struct(fields), 2147483544, True)
    arrays = [pa.array([value, None], kind) for kind, value in ROW_TYPES.values()]
    rows = pa.StructArray.from_arrays(arrays, fields=fields)
    made = positions([("s3://lake/a", 1), ("s3://lake/b", 2)], rows, of=schema(row))
    before = parquet(made, store_decimal_as_integer=True)
    old, new = opened(before), opened(relocation().relocated(KIND, KEY, before))
    assert new.read().column("row").equals(old.read().column("row"))
    assert new.schema.equals(old.schema)
    assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
    assert "INT32" in {new.schema.column(number).physical_type for number in range(len(new.schema))}


def test_rows_in_types_that_would_change_are_refused() -> None:
    row = with_id("row", pa.struct([with_id("at", pa.timestamp("ns"), 1, True)]), 2147483544, True)
    rows = pa.array([{"at": 5}], row.type)
    before = parquet(positions([("s3://lake/a", 1)], rows, of=schema(row)), use_deprecated_int96_timestamps=True)
    with pytest.raises(UnsupportedFormat, match="types that cannot be written") as refused:
        relocation().relocated(KIND, KEY, before)
    assert KEY in refused.value.message


def test_the_column_is_found_by_its_id_then_by_its_name() -> None:
    plain = pa.table({"pos": [4], "file_path": ["s3://lake/a"]})
    assert opened(relocation().relocated(KIND, KEY, parquet(plain))).read().to_pylist() == [
        {"pos": 4, "file_path": COLD.place("s3://lake/a")}
    ]
    called = positions([("s3://lake/a", 1)], of=schema(path="other"))
    assert opened(relocation().relocated(KIND, KEY, parquet(called))).read()["other"].to_pylist() == [
        COLD.place("s3://lake/a")
    ]


@pytest.mark.parametrize(
    "table", [pa.table({"pos": [4]}), pa.table({"pos": [4], "file_path": [5]})], ids=["no paths", "numbers"]
)
def test_a_file_without_paths_is_damaged(table: pa.Table) -> None:
    with pytest.raises(UnreadableMetadata, match=KEY):
        relocation().relocated(KIND, KEY, parquet(table))


def test_paths_whose_order_may_change_are_refused() -> None:
    places = [("file:///z/a", 1), ("s3://lake/a", 1)]
    rows = [{"file_path": path, "pos": row} for path, row in places]
    for before in (parquet(positions(places)), avro(AVRO_SCHEMA, rows)):
        with pytest.raises(UnsupportedFormat, match="several schemes"):
            relocation().relocated(KIND, KEY, before)


# ---------------------------------------------------------------- Avro, and others

AVRO_SCHEMA = {
    "type": "record",
    "name": "delete",
    "fields": [
        field(2147483546, "file_path", "string"),
        field(2147483545, "pos", "long"),
        field(2147483544, "row", {"type": "record", "name": "row", "fields": [field(1, "file_path", "string")]}, True),
    ],
}
ROWS = st.fixed_dictionaries(
    {"file_path": PATHS, "pos": st.integers(0, 2**40), "row": st.none() | st.fixed_dictionaries({"file_path": PATHS})}
)


@quick
@given(rows=st.lists(ROWS, max_size=20), codec=st.sampled_from(CODECS), block_bytes=st.sampled_from([1, 16_000]))
def test_avro(rows: list[Any], codec: str, block_bytes: int) -> None:
    before = avro(AVRO_SCHEMA, rows, codec, block_bytes)
    after = relocation().relocated(KIND, KEY, before)
    assert rows_of(after) == [{**row, "file_path": COLD.place(row["file_path"])} for row in rows_of(before)]
    assert read_header(after) == read_header(before)
    assert relocation().relocated(KIND, KEY, before) == after


def test_avro_without_paths_is_damaged() -> None:
    other = {"type": "record", "name": "delete", "fields": [field(2147483545, "pos", "long")]}
    with pytest.raises(UnreadableMetadata, match="no column of paths"):
        relocation().relocated(KIND, KEY, avro(other, [{"pos": 1}]))


def test_orc_is_refused_with_a_way_out() -> None:
    out = io.BytesIO()
    pyarrow.orc.write_table(positions([("s3://lake/a", 1)]), out)
    with pytest.raises(UnsupportedFormat, match="ORC") as refused:
        relocation().relocated(KIND, KEY, out.getvalue())
    assert "Parquet" in refused.value.hint
    assert KEY in refused.value.message


@pytest.mark.parametrize("magic", [b"PARE", b"AGS1"])
def test_what_is_encrypted_is_refused(magic: bytes) -> None:
    with pytest.raises(UnsupportedFormat, match="encrypted"):
        relocation().relocated(KIND, KEY, magic + bytes(40))


@pytest.mark.parametrize("way", ["parquet", "avro"])
@quick
@given(data=st.data())
def test_what_is_cut_short_is_damaged(way: str, data: st.DataObject) -> None:
    places = [("s3://lake/a", 1), ("s3://lake/b", 2)]
    whole = (
        parquet(positions(places)) if way == "parquet" else avro(AVRO_SCHEMA, [{"file_path": "s3://lake/a", "pos": 1}])
    )
    cut = data.draw(st.integers(0, len(whole) - 1))
    if way == "avro" and cut == read_header(whole).body:
        return  # a file of no rows
    with pytest.raises(UnreadableMetadata, match=KEY):
        relocation().relocated(KIND, KEY, whole[:cut])
