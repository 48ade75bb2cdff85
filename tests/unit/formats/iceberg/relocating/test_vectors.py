"""A relocated Puffin has its vectors where they were, and a footer that names the data files where they lie now."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.errors import RefusedForSafety, UnreadableMetadata, UnsupportedFormat
from firnline.model.files import FileKind
from harness.lanes import by_lane

from .shelf import COLD, KEY, relocation
from .written import PATHS

COUNT = by_lane(100, 100, 3_000)
quick = settings(max_examples=COUNT, deadline=None)
KIND = FileKind.DELETION_VECTORS
MAGIC = b"PFA1"
LATER = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), st.lists, max_leaves=4)


def puffin(blobs: list[bytes], footer: Any, *, packed: bool = False, flags: int = 0) -> bytes:
    payload = json.dumps(footer).encode()
    if packed:
        payload = bytes(pa.compress(payload, "lz4", asbytes=True))
    end = struct.pack("<iI", len(payload), flags | packed)
    return b"".join([MAGIC, *blobs, MAGIC, payload, end, MAGIC])


def footer_of(data: bytes) -> tuple[bytes, Any]:
    """Returns what is before the footer, and the footer, which is not compressed."""
    size, flags = struct.unpack("<iI", data[-12:-4])
    assert flags == 0
    start = len(data) - 12 - size
    assert data[start - 4 : start] == MAGIC == data[-4:]
    return data[: start - 4], json.loads(data[start:-12])


@st.composite
def files(draw: st.DrawFn) -> tuple[list[bytes], Any]:
    blobs = draw(st.lists(st.binary(max_size=30), max_size=4))
    told, at = [], len(MAGIC)
    for blob in blobs:
        properties = {"referenced-data-file": draw(PATHS), "cardinality": "3"} if draw(st.booleans()) else None
        said = {"type": "deletion-vector-v1", "fields": [2147483645], "offset": at, "length": len(blob)}
        told.append({**said, "of-later": draw(LATER), **({"properties": properties} if properties else {})})
        at += len(blob)
    return blobs, {"properties": {"created-by": "é"}, "blobs": told, "of-later": draw(LATER)}


@quick
@given(made=files(), packed=st.booleans())
def test_only_the_paths_in_the_footer_change(made: tuple[list[bytes], Any], packed: bool) -> None:
    blobs, footer = made
    before = puffin(blobs, footer, packed=packed)
    after = relocation().relocated(KIND, KEY, before)
    vectors, found = footer_of(after)
    assert vectors == b"".join([MAGIC, *blobs])
    for blob in footer["blobs"]:
        if "properties" in blob:
            blob["properties"]["referenced-data-file"] = COLD.place(blob["properties"]["referenced-data-file"])
    assert found == footer
    assert relocation().relocated(KIND, KEY, before) == after


@quick
@given(made=files(), packed=st.booleans(), data=st.data())
def test_damage_is_told_with_the_name_of_the_file(
    made: tuple[list[bytes], Any], packed: bool, data: st.DataObject
) -> None:
    """A changed byte may make another footer or vector; what is cut short is always seen."""
    whole = puffin(*made, packed=packed)
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    try:
        relocation().relocated(KIND, KEY, bytes(damaged))
    except RefusedForSafety as refused:
        assert KEY in refused.message  # noqa: PT017
    with pytest.raises(UnreadableMetadata, match=KEY):
        relocation().relocated(KIND, KEY, whole[:place])


BLOB = {"offset": 4, "length": 0}


@pytest.mark.parametrize(
    "footer",
    [
        [], {}, {"blobs": {}}, {"blobs": [3]}, {"blobs": [{"offset": 4}]}, {"blobs": [{"offset": 4, "length": 99}]},
        {"blobs": [{"offset": -1, "length": 1}]}, {"blobs": [{**BLOB, "properties": []}]},
        {"blobs": [{**BLOB, "properties": {"referenced-data-file": 3}}]}, {"blobs": [], "x": float("nan")},
    ],
)  # fmt: skip
def test_a_footer_of_another_form_is_damaged(footer: Any) -> None:
    with pytest.raises(UnreadableMetadata, match=KEY):
        relocation().relocated(KIND, KEY, puffin([], footer))


def test_flags_that_are_not_known_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="flags"):
        relocation().relocated(KIND, KEY, puffin([], {"blobs": []}, flags=2))


def test_a_footer_that_bursts_is_refused() -> None:
    with pytest.raises(UnreadableMetadata, match="holds more than"):
        relocation().relocated(KIND, KEY, puffin([], {"blobs": [], "x": " " * (65 << 20)}, packed=True))
