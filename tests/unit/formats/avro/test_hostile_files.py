"""Every way in which a file can lie ends in CorruptAvro, whichever way the loop runs."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from firnline.formats.avro import MAX_ROWS, CorruptAvro, decode, read_header
from firnline.formats.avro.engine import Way

from .containers import SYNC, block, deflated, file, header, record, snappy, text, varint, zstd, zstd_streamed

NAME = record(("name", "string"))
BOMB = bytes(64 << 20)


@pytest.fixture(params=["python", "compiled"])
def way(request: pytest.FixtureRequest) -> Way:
    return request.param  # type: ignore[no-any-return]


def refused(data: bytes, way: Way, columns: dict[str, Any] | None = None, **options: Any) -> str:
    """The reason."""
    with pytest.raises(CorruptAvro) as caught:
        decode(data, columns if columns is not None else {"name": pa.string()}, way=way, **options)
    return str(caught.value)


def test_the_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(CorruptAvro("record 3: cut")))
    assert isinstance(error, ValueError)
    assert str(error) == "record 3: cut"


# ---------------------------------------------------------------- the container


@pytest.mark.parametrize("data", [b"", b"Obj", b"Obj\x02" + header(NAME)[4:], b"PAR1" * 10])
def test_bad_magic(data: bytes, way: Way) -> None:
    assert "not an Avro file" in refused(data, way)


def test_a_header_cut_anywhere(way: Way) -> None:
    whole = header(NAME)
    for size in range(4, len(whole)):
        refused(whole[:size], way)
    assert decode(whole, {"name": pa.string()}, way=way).rows == 0


@pytest.mark.parametrize("count", [2**62, -(2**63), 2**40])
def test_a_header_that_claims_endless_metadata(count: int, way: Way) -> None:
    refused(b"Obj\x01" + varint(count) + varint(9) + text("a") + text("b") + SYNC, way)


def test_a_header_in_sized_runs_is_read() -> None:
    entries = text("avro.schema") + text(b'"null"')
    assert read_header(b"Obj\x01" + varint(-1) + varint(len(entries)) + entries + b"\0" + SYNC).schema == "null"


def test_a_header_without_schema(way: Way) -> None:
    assert "no schema" in refused(b"Obj\x01" + varint(1) + text("avro.codec") + text("null") + b"\0" + SYNC, way)


def test_metadata_names_that_are_not_text(way: Way) -> None:
    refused(b"Obj\x01" + varint(1) + text(b"\xff") + text("null") + b"\0" + SYNC, way)


def test_wrong_sync_marker(way: Way) -> None:
    body = text("a")
    good, bad = block(1, body), block(1, body, SYNC[:-1] + b"\xee")
    assert "block 1" in refused(header(NAME) + good + bad, way)


@pytest.mark.parametrize("count", [-1, -(2**63)])
def test_negative_record_count(count: int, way: Way) -> None:
    assert "negative" in refused(file(NAME, (count, text("a"))), way)


@pytest.mark.parametrize("size", [-1, -(2**63), 3, 2**62])
def test_block_size_beyond_the_file(size: int, way: Way) -> None:
    refused(header(NAME) + varint(1) + varint(size) + text("a") + SYNC, way)


@pytest.mark.parametrize("count", [2, 3, 2**31, 2**62])
def test_more_records_than_bytes(count: int, way: Way) -> None:
    refused(file(NAME, (count, text("a"))), way)


def test_counts_whose_sum_wraps_around(way: Way) -> None:
    empty = record()
    assert "claims" in refused(file(empty, *[(2**62, b"")] * 4), way)


def test_bytes_after_the_last_record(way: Way) -> None:
    assert "after its last record" in refused(file(NAME, (1, text("a") + b"x")), way)
    assert "after its last record" in refused(file(NAME, (0, text("a"))), way)


def test_a_block_cut_short(way: Way) -> None:
    whole = file(NAME, (1, text("abc")))
    for size in range(len(header(NAME)) + 1, len(whole)):
        refused(whole[:size], way)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("columns", [{"name": pa.string()}, {}])
@pytest.mark.parametrize(
    "raw", [varint(-1) + b"a", varint(-(2**63)), varint(2**63 - 1) + b"a", varint(2) + b"a", b"\x80" * 4]
)
def test_string_lengths_that_lie(raw: bytes, columns: dict[str, Any], way: Way) -> None:
    refused(file(NAME, (1, raw)), way, columns)


@pytest.mark.parametrize("columns", [{"n": pa.int64()}, {}])
@pytest.mark.parametrize("raw", [b"\x80" * 10 + b"\0", b"\xff" * 10 + b"\x01", b"\x80" * 100 + b"\0"])
def test_numbers_longer_than_ten_bytes(raw: bytes, columns: dict[str, Any], way: Way) -> None:
    assert "longer than 64 bits" in refused(file(record(("n", "long")), (1, raw)), way, columns)


def test_numbers_beyond_64_bits(way: Way) -> None:
    schema, wanted = record(("n", "long")), {"n": pa.int64()}
    assert "longer than 64 bits" in refused(file(schema, (1, varint(2**63))), way, wanted)
    edges = [2**63 - 1, -(2**63), 0, -1]
    decoded = decode(file(schema, (4, b"".join(map(varint, edges)))), wanted, way=way)
    assert decoded.batch["n"].to_pylist() == edges


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_an_int_beyond_32_bits(number: int, way: Way) -> None:
    schema = record(("n", "int"))
    for kind in (pa.int32(), pa.int64()):
        assert "32 bits" in refused(file(schema, (1, varint(number))), way, {"n": kind})


@pytest.mark.parametrize("columns", [{"name": pa.string()}, {}])
@pytest.mark.parametrize("branch", [2, -1, 2**62, -(2**63)])
def test_a_union_branch_that_does_not_exist(branch: int, columns: dict[str, Any], way: Way) -> None:
    schema = record(("name", ["null", "string"]))
    assert "branch" in refused(file(schema, (1, varint(branch) + text("a"))), way, columns)


def test_a_union_without_branches(way: Way) -> None:
    assert "branch" in refused(file(record(("name", [])), (1, b"\0")), way)


def test_a_boolean_that_is_neither(way: Way) -> None:
    assert "boolean" in refused(file(record(("b", "boolean")), (1, b"\2")), way, {"b": pa.bool_()})


@pytest.mark.parametrize("number", [-1, 2, 2**62])
def test_an_enum_without_that_symbol(number: int, way: Way) -> None:
    schema = record(("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}))
    assert "symbol" in refused(file(schema, (1, varint(number))), way, {"e": pa.string()})


def test_symbols_that_would_fill_memory(way: Way) -> None:
    symbols = {"type": "enum", "name": "e", "symbols": ["x" * 1_000_000]}
    assert "too large" in refused(file(record(("e", symbols)), (3000, bytes(3000))), way, {"e": pa.string()})


def test_a_string_that_is_not_utf8(way: Way) -> None:
    assert "UTF-8" in refused(file(NAME, (2, text(b"\xc3") + text(b"\xa9"))), way)


def test_fixed_and_double_cut_short(way: Way) -> None:
    fixed = {"type": "fixed", "name": "f", "size": 9}
    for kind, wanted in (("double", pa.float64()), (fixed, pa.binary())):
        schema = record(("n", "long"), ("v", kind))
        for columns in ({"v": wanted}, {}):
            refused(file(schema, (1, varint(2**40) + b"1234567")), way, columns)


# ---------------------------------------------------------------- arrays and nesting


@pytest.mark.parametrize("items", ["null", record(name="empty"), {"type": "fixed", "name": "f", "size": 0}])
def test_endless_items_without_width(items: Any, way: Way) -> None:
    schema = record(("a", {"type": "array", "items": items}))
    assert "items" in refused(file(schema, (1, varint(2**62) + b"\0")), way, {})
    assert decode(file(schema, (1, varint(5) + b"\0")), {}, way=way).rows == 1


@pytest.mark.parametrize(
    "items", ["long", "string", "double", ["null", "long"], record(("x", "string"), ("y", "long"), name="pair")]
)
@pytest.mark.parametrize("count", [2**62, 2**63 - 1, 2**20])
def test_endless_items(items: Any, count: int, way: Way) -> None:
    schema = record(("a", {"type": "array", "items": items}))
    refused(file(schema, (1, varint(count) + b"\0" * 50)), way, {})


@pytest.mark.parametrize("size", [-1, 3, 2**62])
def test_a_sized_run_of_items_that_lies_about_its_size(size: int, way: Way) -> None:
    schema = record(("a", {"type": "array", "items": "long"}))
    refused(file(schema, (1, varint(-1) + varint(size) + b"\0\0")), way, {})


@pytest.mark.parametrize("items", ["long", {"type": "array", "items": "long"}])
def test_sized_runs_of_items_are_passed_over(items: Any, way: Way) -> None:
    schema = record(("a", {"type": "array", "items": items}), ("n", "long"))
    sized = varint(-2) + varint(4) + b"\2\0\2\0"
    decoded = decode(file(schema, (1, sized + sized + b"\0" + varint(7))), {"n": pa.int64()}, way=way)
    assert decoded.batch["n"].to_pylist() == [7]


def test_records_without_width_are_counted_within_reason(way: Way) -> None:
    empty = record(("nothing", "null"))
    assert decode(file(empty, (1000, b"")), {"nothing": pa.int64()}, way=way).batch.num_rows == 1000
    assert "claims" in refused(file(empty, (MAX_ROWS + 1, b"")), way, {})


def doubling(leaf: str) -> Any:
    """Forty-odd records, each holding the one before twice: 2^45 leaves in a small schema."""
    fields: list[tuple[str, Any]] = [("f0", record(("leaf", leaf), name="r0"))]
    fields += [(f"f{n}", record(("a", f"r{n - 1}"), ("b", f"r{n - 1}"), name=f"r{n}")) for n in range(1, 46)]
    return record(*fields)


def test_records_that_double_without_width_take_no_time(way: Way) -> None:
    assert decode(file(doubling("null"), (3, b"")), {}, way=way).rows == 3


def test_records_that_double_cannot_be_held_by_any_block(way: Way) -> None:
    assert "more records than" in refused(file(doubling("long"), (1, bytes(1000))), way, {})


def test_wrappers_around_one_field_cost_nothing_at_run_time(way: Way) -> None:
    chain = record(("r0", record(("leaf", "long"), name="r0")))
    chain["fields"] += [{"name": f"r{n}", "type": record(("inner", f"r{n - 1}"), name=f"r{n}")} for n in range(1, 2000)]
    assert decode(file(chain, (1, bytes(2000))), {"r1.inner.leaf": pa.int64()}, way=way).rows == 1


def test_values_nested_without_end(way: Way) -> None:
    chain = record(("n", "long"), ("next", ["null", "chain"]), name="chain")
    whole = (b"\0\2" * 100) + b"\0\0"
    assert decode(file(chain, (1, whole)), {"n": pa.int64()}, way=way).rows == 1
    assert "too deeply" in refused(file(chain, (1, b"\0\2" * 100_000 + b"\0\0")), way, {})


# ---------------------------------------------------------------- the schema


NO_SCHEMA = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b"9" * 10_000,
    "string",
    ["null", NAME],
    {"type": "record"},
    {"type": "record", "name": "r"},
    {"type": "record", "name": "r", "fields": {}},
    {"type": "record", "name": "r", "fields": [{"name": "a"}]},
    {"type": "record", "name": 5, "fields": []},
    {"type": {"type": "record"}},
    record(("a", "nowhere")),
    record(("a", 5)),
    record(("a", None)),
    record(("a", {"type": "array"})),
    record(("a", {"type": "enum", "name": "e", "symbols": [1]})),
    record(("a", {"type": "enum", "name": "e", "symbols": "AB"})),
    b'{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"enum","name":"e","symbols":["\\ud800"]}}]}',
    record(("a", {"type": "fixed", "name": "f", "size": -1})),
    record(("a", {"type": "fixed", "name": "f", "size": 2**31})),
    record(("a", {"type": "fixed", "name": "f", "size": True})),
    record(("a", {"type": "fixed", "name": "f", "size": "8"})),
    record(("a", "long"), ("a", "long")),
    record(("a", NAME), ("b", NAME)),
    record(("a", "r")),
    record(("a", record(("b", "r"), name="inner"))),
]


@pytest.mark.parametrize("schema", NO_SCHEMA, ids=lambda schema: str(schema)[:60])
def test_schemas_that_are_none(schema: Any, way: Way) -> None:
    refused(file(schema, (1, bytes(50))), way)


def test_types_nested_without_end(way: Way) -> None:
    kind: Any = "long"
    for _ in range(200):
        kind = {"type": "array", "items": kind}
    assert "nested too deeply" in refused(file(record(("a", kind)), (1, b"\0")), way, {})


# ---------------------------------------------------------------- codecs


@pytest.mark.parametrize("codec", ["lzma", "", "n\0ll", "\u00fc"])
def test_unknown_codec(codec: str, way: Way) -> None:
    assert "codec" in refused(header(NAME, codec) + block(1, text("a")), way)


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard"])
@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff" * 30, b"\xff\xff\xff\xff\x0fabcd", b"\x28\xb5\x2f\xfd"])
def test_blocks_that_are_not_compressed(codec: str, raw: bytes, way: Way) -> None:
    refused(header(NAME, codec) + block(1, raw), way)


@pytest.mark.parametrize(("codec", "pack"), [("deflate", deflated), ("snappy", snappy), ("zstandard", zstd_streamed)])
def test_streams_cut_anywhere(codec: str, pack: Any, way: Way) -> None:
    body = text("the same words, the same words, the same words")
    whole = pack(body)
    for size in range(len(whole) - 4):
        refused(header(NAME, codec) + block(1, whole[:size]), way)


def test_snappy_checksum(way: Way) -> None:
    good = snappy(text("abc"))
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 1
        refused(header(NAME, "snappy") + block(1, bytes(bad)), way)


@pytest.mark.parametrize(
    ("codec", "pack"),
    [("deflate", deflated), ("snappy", snappy), ("zstandard", zstd), ("zstandard", zstd_streamed)],
    ids=["deflate", "snappy", "zstandard", "zstandard streamed"],
)
def test_a_bomb_is_not_inflated(codec: str, pack: Any, way: Way) -> None:
    data = header(NAME, codec) + block(1, pack(text(BOMB)))
    tracemalloc.start()
    try:
        refused(data, way, max_bytes=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_the_limit_is_for_the_whole_file(codec: str, way: Way) -> None:
    blocks = [(1, text("x" * 1000))] * 10
    assert decode(file(NAME, *blocks, codec=codec), {"name": pa.string()}, way=way, max_bytes=11_000).rows == 10
    refused(file(NAME, *blocks, codec=codec), way, max_bytes=9_000)


def test_claimed_sizes_are_not_believed(way: Way) -> None:
    snappy_claim = b"\xff\xff\xff\xff\x03" + b"\0a" + bytes(4)  # one GiB in a few bytes
    zstd_claim = b"\x28\xb5\x2f\xfd\xa0" + (1 << 30).to_bytes(4, "little") + b"\1\0\0"
    assert "more than" in refused(header(NAME, "snappy") + block(1, snappy_claim), way)
    too_much = "more than" if way == "compiled" else "too much memory"
    assert too_much in refused(header(NAME, "zstandard") + block(1, zstd_claim), way)


@pytest.mark.parametrize(
    ("codec", "pack"), [("deflate", deflated), ("zstandard", zstd), ("zstandard", zstd_streamed), ("snappy", snappy)]
)
def test_blocks_that_compress_unusually_well_are_read(codec: str, pack: Any, way: Way) -> None:
    data = header(NAME, codec) + block(1, pack(text("a" * 1_000_000))) + block(1, pack(text("b")))
    assert decode(data, {"name": pa.string()}, way=way).batch["name"].to_pylist() == ["a" * 1_000_000, "b"]


def test_deflate_with_part_of_the_zlib_trailer_is_read(way: Way) -> None:
    import zlib

    data = header(NAME, "deflate") + block(1, zlib.compress(text("a"))[2:-1])
    assert decode(data, {"name": pa.string()}, way=way).rows == 1
