"""A rebuilt file is what fastavro would have written with these records left out, told again and changed."""

from __future__ import annotations

import copy
import io
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.formats.avro import CorruptAvro, read_header
from firnline.formats.avro.encoded import sized, varint
from firnline.formats.avro.rebuilding import rebuild
from harness.lanes import by_lane

from .strategies import Sample, samples

WAYS = ["python", "compiled"]
COUNT = by_lane(40, 40, 2_000)
SCHEMA = {
    "type": "record", "name": "manifest_file", "fields": [
        {"name": "path", "type": "string"}, {"name": "length", "type": "long"},
        {"name": "parts", "type": ["null", {"type": "array", "items": "string"}]},
        {"name": "first", "type": ["null", "long"]}, {"name": "last", "type": ["long", "null"]},
        {"name": "inner", "type": {"type": "record", "name": "r", "fields": [
            {"name": "deep", "type": ["null", "int"]}]}},
    ],
}  # fmt: skip


def rows_of(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def written(records: list[Any], codec: str = "deflate", interval: int = 200) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(copy.deepcopy(SCHEMA)), records, codec, interval)
    return out.getvalue()


optional = st.none() | st.integers(-(2**40), 2**40)
listed = st.fixed_dictionaries(
    {
        "path": st.text(max_size=20), "length": st.integers(0, 2**40),
        "parts": st.none() | st.lists(st.text(max_size=3)),
        "first": optional, "last": optional, "inner": st.fixed_dictionaries({"deep": st.none() | st.integers(0, 99)}),
    }
)  # fmt: skip
changes = st.fixed_dictionaries(
    {}, optional={"path": st.text(max_size=30), "first": optional, "last": optional, "parts": st.none(),
                  "inner.deep": st.none() | st.integers(0, 10**6)},
)  # fmt: skip


def encoded(value: Any) -> bytes | None:
    if value is None:
        return None
    return varint(value) if isinstance(value, int) else sized(value.encode())


def changed(record: Any, values: dict[str, Any]) -> Any:
    found = copy.deepcopy(record)
    for name, value in values.items():
        if name == "inner.deep":
            found["inner"]["deep"] = value
        else:
            found[name] = value
    return found


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    records=st.lists(st.tuples(listed, st.lists(changes, max_size=3)), max_size=12),
    codec=st.sampled_from(["null", "deflate"]),
)
def test_records_are_left_out_told_again_and_changed(way: Any, records: list[Any], codec: str) -> None:
    data = written([record for record, _ in records], codec, 30)
    columns = ("path", "first", "last", "parts", "inner.deep", "absent.leaf")
    wanted = [[{name: encoded(value) for name, value in each.items()} for each in told] for _, told in records]
    found = rebuild(data, columns, lambda number: wanted[number], way=way)
    assert rows_of(found) == [changed(record, each) for record, told in records for each in told]
    assert read_header(found).metadata == read_header(data).metadata


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sample=samples(), data=st.data())
def test_any_file_keeps_the_records_that_stay(way: Any, sample: Sample, data: st.DataObject) -> None:
    before = rows_of(sample.data)
    stays = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before)))
    schema = read_header(sample.data).schema
    if isinstance(schema, list) or not sample.leaves:
        return  # records that may be null, or have no bytes, are refused
    found = rebuild(sample.data, (), lambda number: ({},) if stays[number] else (), way=way)
    assert rows_of(found) == [row for row, kept in zip(before, stays, strict=True) if kept]


def test_a_null_in_a_field_that_takes_none_is_refused() -> None:
    data = written([{"path": "a", "length": 1, "parts": None, "first": None, "last": 2, "inner": {"deep": None}}])
    with pytest.raises(CorruptAvro, match="path cannot be null"):
        rebuild(data, ("path",), lambda number: ({"path": None},))
