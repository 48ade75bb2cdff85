"""Bytes changed at random: both ways of running agree, and only CorruptAvro is ever raised."""

from __future__ import annotations

import io
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.formats.avro import CorruptAvro, decode, read_header
from firnline.formats.avro.engine import Way
from harness.lanes import by_lane

from .containers import file, record, text, varint
from .iceberg_schemas import MANIFEST_ENTRY, entry
from .strategies import Sample, samples

COUNT = by_lane(100, 100, 20_000)
WANTED = {
    "status": pa.int32(),
    "snapshot_id": pa.int64(),
    "data_file.file_path": pa.string(),
    "data_file.partition.region": pa.string(),
}


def manifest(codec: str, interval: int) -> bytes:
    rng = random.Random(3)
    out = io.BytesIO()
    rows = [entry(rng, columns=3) for _ in range(4)]
    fastavro.writer(out, MANIFEST_ENTRY, rows, codec=codec, sync_interval=interval)
    return out.getvalue()


FILES = {
    (codec, interval): manifest(codec, interval)
    for codec in ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
    for interval in (1, 16_000)
}


def damaged(draw: Any, data: bytes, first: int = 0) -> bytes:
    """The data with a few bytes flipped, cut off, put in or taken out, at `first` or later."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(first, max(first, len(out) - 1)))
        match draw(st.sampled_from(["flip", "set", "cut", "insert", "remove"])):
            case "flip" if place < len(out):
                out[place] ^= 1 << draw(st.integers(0, 7))
            case "set" if place < len(out):
                out[place] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
            case "cut":
                del out[place:]
            case "insert":
                out[place:place] = draw(st.binary(min_size=1, max_size=12))
            case "remove":
                del out[place : place + draw(st.integers(1, 12))]
    return bytes(out)


def outcome(data: bytes, wanted: dict[str, Any], way: Way) -> pa.RecordBatch | str:
    """The batch or the reason why there is none. Anything but CorruptAvro fails the test."""
    try:
        batch = decode(data, wanted, way=way).batch
    except CorruptAvro as error:
        return str(error)
    batch.validate(full=True)
    return batch


def agree(python: pa.RecordBatch | str, compiled: pa.RecordBatch | str, codec: str) -> bool:
    """Tells whether both read the same or both refuse. As text: a damaged float may be NaN, which equals nothing.

    They expand blocks by other packages, each with its own words; only the plain one minds bytes after a zstd frame.
    """
    if codec == "null" or not isinstance(python, str):
        return str(python) == str(compiled)
    return isinstance(compiled, str) or codec == "zstandard"


@settings(max_examples=COUNT, deadline=None)
@given(which=st.sampled_from(sorted(FILES)), data=st.data())
def test_both_ways_agree_on_damaged_manifests(which: tuple[str, int], data: st.DataObject) -> None:
    bad = damaged(data.draw, FILES[which])
    python, compiled = outcome(bad, WANTED, "python"), outcome(bad, WANTED, "compiled")
    assert agree(python, compiled, which[0])


@settings(max_examples=COUNT // 2, deadline=None)
@given(sample=samples(), data=st.data())
def test_both_ways_agree_on_damaged_files_of_any_schema(sample: Sample, data: st.DataObject) -> None:
    bad = damaged(data.draw, sample.data)
    python, compiled = outcome(bad, sample.leaves, "python"), outcome(bad, sample.leaves, "compiled")
    assert agree(python, compiled, sample.codec)


@pytest.mark.parametrize("interval", [1, 16_000])
@settings(max_examples=COUNT, deadline=None)
@given(data=st.data())
def test_no_damage_passes_a_checksum(interval: int, data: st.DataObject) -> None:
    """With snappy's checksums, what is read is what was written, or the start of it if whole blocks were cut off."""
    good = FILES["snappy", interval]
    bad = damaged(data.draw, good, read_header(good).body)
    expected = outcome(good, WANTED, "python")
    read = outcome(bad, WANTED, "python")
    assert isinstance(read, str) or read == expected[: len(read)]


FLAT = record(("a", "long"), ("b", ["null", "string"]), ("c", "boolean"), ("d", "double"))
ROWS = file(
    FLAT,
    *((1, varint(n) + b"\2" + text(f"name {n}") + b"\1" + bytes(8)) for n in range(5)),
    *((2, (varint(-n) + b"\0\0" + b"?" * 8) * 2) for n in range(5)),
)
FLAT_WANTED = {"a": pa.int64(), "b": pa.string(), "c": pa.bool_(), "d": pa.float64()}


@settings(max_examples=COUNT, deadline=None)
@given(data=st.data())
def test_what_is_read_from_damage_is_what_fastavro_reads(data: st.DataObject) -> None:
    """Where no checksum helps, damage can still make a valid file: then it must be read as such."""
    bad = damaged(data.draw, ROWS, read_header(ROWS).body)
    read = outcome(bad, FLAT_WANTED, "python")
    if isinstance(read, pa.RecordBatch):
        theirs = list(fastavro.reader(io.BytesIO(bad)))
        assert str(read.to_pylist()) == str(theirs)
