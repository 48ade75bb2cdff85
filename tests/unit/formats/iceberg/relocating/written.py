"""Manifests and lists of any version with all that Iceberg may write into them, and fields of a version to come."""

from __future__ import annotations

import io
from typing import Any

import fastavro
from hypothesis import strategies as st

from firnline.formats.iceberg.relocating.bounds import PATH_ID

Json = Any
CODECS = ("null", "deflate", "snappy", "zstandard")
SYNC = b"firnline-relocat"
HEADER = {"schema": '{"type": "struct"}', "partition-spec": "[]", "format-version": "2", "of-later": "ü"}


def field(number: int, name: str, kind: Json, optional: bool = False) -> Json:
    return {"name": name, "type": ["null", kind] if optional else kind, "field-id": number}


def pairs(key: int, value: int) -> Json:
    fields = [field(key, "key", "int"), field(value, "value", "bytes")]
    return {"type": "array", "items": {"type": "record", "name": f"k{key}_v{value}", "fields": fields}}


def entry_schema(version: int) -> Json:
    partition = {"type": "record", "name": "r102", "fields": [field(1000, "day", "int", True)]}
    content = [field(134, "content", "int")] if version > 1 else []
    plain = [field(100, "file_path", "string"), field(101, "file_format", "string"), field(102, "partition", partition)]
    counts = [field(103, "record_count", "long"), field(104, "file_size_in_bytes", "long")]
    old = [field(105, "block_size_in_bytes", "long")] if version == 1 else []
    bounds = [field(125, "lower_bounds", pairs(126, 127), True), field(128, "upper_bounds", pairs(129, 130), True)]
    vectors = [
        field(142, "first_row_id", "long", True),
        field(143, "referenced_data_file", "string", True),
        field(144, "content_offset", "long", True),
    ]
    later = [field(900, "of_later", {"type": "map", "values": "string"}, True)]
    every = [*content, *plain, *counts, *old, *bounds, *(vectors if version > 1 else []), *later]
    file = {"type": "record", "name": "r2", "fields": every}
    numbers = [field(3, "sequence_number", "long", True)] if version > 1 else []
    fields = [field(0, "status", "int"), field(1, "snapshot_id", "long", True), *numbers, field(2, "data_file", file)]
    return {"type": "record", "name": "manifest_entry", "fields": [*fields, field(901, "later", "string", True)]}


LIST_SCHEMA = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        field(500, "manifest_path", "string"),
        field(501, "manifest_length", "long"),
        field(502, "partition_spec_id", "int"),
        field(519, "key_metadata", "bytes", True),
        field(520, "first_row_id", "long", True),
        field(902, "of_later", "string", True),
    ],
}

PATHS = st.builds("s3://lake/t/data/{}.parquet".format, st.text(st.sampled_from("aé%20=/"), min_size=1, max_size=6))
_OTHERS = st.dictionaries(st.integers(0, 2**31 - 200), st.binary(max_size=9), max_size=4)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[Json, Json]:
    """Returns both maps: with bounds of paths in both or neither, among others, in any order."""
    paths = sorted([draw(PATHS), draw(PATHS)])
    known = draw(st.booleans())
    maps = []
    for path in paths:
        items = [{"key": key, "value": value} for key, value in draw(_OTHERS).items()]
        items += [{"key": PATH_ID, "value": path.encode()}] if known else []
        maps.append(draw(st.permutations(items)) if items or draw(st.booleans()) else None)
    return maps[0], maps[1]


@st.composite
def entries(draw: st.DrawFn, version: int) -> Json:
    lower, upper = draw(bounds())
    optional = st.none() | st.integers(0, 2**62)
    file = {
        "content": draw(st.integers(0, 2 if version > 1 else 0)),
        "file_path": draw(PATHS),
        "file_format": draw(st.sampled_from(["PARQUET", "parquet", "AVRO", "PUFFIN"])),
        "partition": {"day": draw(st.none() | st.integers(0, 20_000))},
        "record_count": 3,
        "file_size_in_bytes": draw(st.integers(0, 2**40)),
        "block_size_in_bytes": 64 << 20,
        "lower_bounds": lower,
        "upper_bounds": upper,
        "first_row_id": draw(optional),
        "referenced_data_file": draw(st.none() | PATHS),
        "content_offset": draw(optional),
        "of_later": draw(st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3)),
    }
    numbers = {"status": draw(st.integers(0, 2)), "snapshot_id": draw(optional), "sequence_number": draw(optional)}
    return {**numbers, "data_file": file, "later": draw(st.none() | st.just("s3://lake/t/stays"))}


LISTED = st.fixed_dictionaries(
    {
        "manifest_path": PATHS,
        "manifest_length": st.integers(0, 2**40),
        "partition_spec_id": st.integers(0, 3),
        "key_metadata": st.none(),
        "first_row_id": st.none() | st.integers(0, 2**62),
        "of_later": st.none() | PATHS,
    }
)


def avro(schema: Json, rows: list[Json], codec: str = "deflate", block_bytes: int = 16_000) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec, block_bytes, HEADER, sync_marker=SYNC)
    return out.getvalue()


def rows_of(data: bytes) -> list[Json]:
    return list(fastavro.reader(io.BytesIO(data)))
