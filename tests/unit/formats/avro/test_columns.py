"""What may be asked of a file: types the same or wider, leaves under records, and nothing that does not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from firnline.formats.avro import CorruptAvro, decode, encoded_texts

from .containers import file, record, text, varint

INNER = record(("name", "string"), ("size", "long"), name="inner")
FILE = file(
    record(("id", "int"), ("inner", ["null", INNER]), ("again", "inner"), ("many", {"type": "array", "items": "long"})),
    (1, varint(1) + b"\0" + text("x") + varint(5) + b"\0"),
    (1, varint(2) + b"\2" + text("y") + varint(6) + text("z") + b"\0\0"),
)


def test_leaves_under_records_that_may_be_null() -> None:
    wanted = {"again.size": pa.int64(), "inner.name": pa.string(), "inner.size": pa.int64(), "id": pa.int64()}
    assert decode(FILE, wanted).batch.to_pydict() == {
        "again.size": [5, 0],
        "inner.name": [None, "y"],
        "inner.size": [None, 6],
        "id": [1, 2],
    }


@pytest.mark.parametrize("way", ["python", "compiled"])
@pytest.mark.parametrize("null_first", [True, False])
def test_rows_that_may_be_null_as_a_whole(null_first: bool, way: Any) -> None:
    branches, row, none = (["null", INNER], b"\2", b"\0") if null_first else ([INNER, "null"], b"\0", b"\2")
    data = file(branches, (3, row + text("x") + varint(5) + none + row + text("y") + varint(6)))
    wanted = {"size": pa.int64(), "name": pa.string(), "none": pa.string()}
    found = decode(data, wanted, way=way)
    assert found.batch.to_pydict() == {"size": [5, None, 6], "name": ["x", None, "y"], "none": [None, None, None]}
    with pytest.raises(CorruptAvro, match="branch"):
        decode(file(branches, (1, b"\4")), wanted, way=way)


@pytest.mark.parametrize("schema", ["long", ["null", "long"], ["null"], [INNER, "long"], []])
def test_files_that_are_no_rows(schema: Any) -> None:
    with pytest.raises(CorruptAvro, match="not a record"):
        decode(file(schema, (1, b"\0\0\0")), {})


def test_fields_that_are_not_there_are_null() -> None:
    batch = decode(FILE, {"inner.none": pa.bool_(), "none.at.all": pa.binary()}).batch
    assert batch.schema == pa.schema({"inner.none": pa.bool_(), "none.at.all": pa.binary()})
    assert batch.to_pydict() == {"inner.none": [None, None], "none.at.all": [None, None]}


def test_rows_are_counted_without_columns() -> None:
    assert decode(FILE, {}).rows == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("id", pa.string()),
        ("inner.size", pa.int32()),
        ("inner.name", pa.binary()),
        ("inner", pa.string()),
        ("id.deeper", pa.int64()),
        ("many", pa.int64()),
        ("many.item", pa.int64()),
    ],
)
def test_another_type_than_wanted(name: str, kind: Any) -> None:
    with pytest.raises(CorruptAvro, match=f"column {name}"):
        decode(FILE, {name: kind})


def test_a_union_of_several_types_is_skipped_but_not_projected() -> None:
    data = file(record(("u", ["null", "long", "string"]), ("n", "long")), (1, b"\4" + text("a") + varint(3)))
    assert decode(data, {"n": pa.int64()}).batch["n"].to_pylist() == [3]
    with pytest.raises(CorruptAvro, match="column u"):
        decode(data, {"u": pa.string()})


@pytest.mark.parametrize(
    "wanted", [{"inner": pa.string(), "inner.name": pa.string()}, {"a.b": pa.string(), "a": pa.string()}]
)
def test_a_column_within_a_column_is_the_callers_mistake(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="column") as caught:
        decode(FILE, wanted)
    assert not isinstance(caught.value, CorruptAvro)


def test_an_arrow_type_that_no_avro_type_has_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match="date32"):
        decode(FILE, {"id": pa.date32()})


def test_names_in_namespaces() -> None:
    inner = {"type": "fixed", "name": "two", "size": 2}
    schema = record(("a", inner), ("b", "two"), ("c", "org.example.two"), name="org.example.r")
    data = file(schema, (1, b"aabbcc"))
    wanted = {name: pa.binary() for name in "abc"}
    assert decode(data, wanted).batch.to_pylist() == [{"a": b"aa", "b": b"bb", "c": b"cc"}]


def test_fixed_without_size_is_not_null() -> None:
    nothing = {"type": "fixed", "name": "nothing", "size": 0}
    data = file(record(("f", ["null", nothing]), ("g", "nothing")), (2, b"\0\2"))
    batch = decode(data, {"f": pa.binary(), "g": pa.large_binary()}).batch
    assert batch.to_pydict() == {"f": [None, b""], "g": [b"", b""]}


def test_a_union_may_name_one_type_twice_when_it_is_skipped() -> None:
    pair = record(("x", "long"), ("y", "string"), name="pair")
    data = file(record(("u", [pair, "pair"]), ("n", "long")), (1, b"\0" + varint(1) + text("a") + varint(9)))
    assert decode(data, {"n": pa.int64()}).batch["n"].to_pylist() == [9]


TEXTS = record(("before", "long"), ("texts", {"type": "array", "items": "string"}), ("after", "long"))


@pytest.mark.parametrize(
    ("encoded", "texts"),
    [
        (b"\0", ()),
        (varint(2) + text("a") + text("bc") + b"\0", ("a", "bc")),
        (varint(1) + text("a") + varint(1) + text("b") + b"\0", ("a", "b")),
        (varint(-2) + varint(5) + text("a") + text("bc") + b"\0", ("a", "bc")),
    ],
)
def test_an_array_comes_as_it_is_encoded(encoded: bytes, texts: tuple[str, ...]) -> None:
    data = file(TEXTS, (1, varint(7) + encoded + varint(8)))
    for way in ("python", "compiled"):
        batch = decode(data, {"texts": pa.binary(), "after": pa.int64()}, way=way).batch  # type: ignore[arg-type]
        assert batch.to_pydict() == {"texts": [encoded], "after": [8]}
    assert encoded_texts(encoded) == texts


@pytest.mark.parametrize("damage", [b"", varint(1), varint(1) + varint(9) + b"a", varint(1) + varint(1) + b"\xff\0"])
def test_texts_that_are_damaged(damage: bytes) -> None:
    with pytest.raises(CorruptAvro, match="array of texts"):
        encoded_texts(damage)
