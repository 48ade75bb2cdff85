"""Flatbuffers made by hand: what no writer of Icechunk writes."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.formats.icechunk.reading.flat import IDENTIFIER, Field, FlatBuffer, TableLayout

LAYOUT = TableLayout("Thing", (Field("size", required=True), Field("names"), Field("extra", reserved=True)))


def buffer(slots: list[int], size: int = 12, after: bytes = b"", values: tuple[int, int] = (7, 0)) -> bytes:
    """Returns a buffer of one table: two numbers, at 4 and at 8, and a vtable that says where its fields are."""
    vtable = struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), size, *slots)
    vtable += bytes(-len(vtable) % 4)
    table = struct.pack("<iII", len(vtable), *values)
    return struct.pack("<I4s", 8 + len(vtable), IDENTIFIER) + vtable + table + after


def test_a_sound_one_is_read() -> None:
    root = FlatBuffer(buffer([4])).root(LAYOUT)
    assert root.numbers("size", "<u4").tolist() == [7]
    assert root.vectors("names", 4).counts.tolist() == [0]


@pytest.mark.parametrize(
    ("slots", "told"),
    [
        ([0, 8], "no Thing.size"),
        ([4, 6], "lies on another"),
        ([4, 4], "lies on another"),
        ([2], "lies on another"),
        ([10], "outside of its table"),
        ([4, 0xFFFF], "outside of its table"),
    ],
)
def test_fields_lie_beside_each_other_in_their_table(slots: list[int], told: str) -> None:
    with pytest.raises(CorruptIcechunk, match=told):
        FlatBuffer(buffer(slots)).root(LAYOUT)


@pytest.mark.parametrize("slots", [[4, 0, 8], [4, 0, 0, 8], [4, 0, 0, 0, 0, 8]])
def test_a_field_that_nobody_knows_is_refused(slots: list[int]) -> None:
    with pytest.raises(UnsupportedIcechunk, match=r"nobody knows|beyond the 3"):
        FlatBuffer(buffer(slots)).root(LAYOUT)


@pytest.mark.parametrize("size", [0, 3, 13, 4_000])
def test_a_table_ends_in_its_buffer(size: int) -> None:
    with pytest.raises(CorruptIcechunk):
        FlatBuffer(buffer([4], size)).root(LAYOUT)


@pytest.mark.parametrize("count", [3, 1 << 20, (1 << 32) - 1])
def test_a_list_ends_in_its_buffer(count: int) -> None:
    listed = struct.pack("<III", count, 0, 0)
    root = FlatBuffer(buffer([4, 8], after=listed, values=(7, 4))).root(LAYOUT)
    with pytest.raises(CorruptIcechunk, match="outside"):
        root.vectors("names", 4)


def test_lists_that_share_their_bytes_are_refused() -> None:
    data = FlatBuffer(buffer([4, 8], after=struct.pack("<I4I", 4, 0, 0, 0, 0), values=(7, 4)))
    at = data.root(LAYOUT).at
    with pytest.raises(CorruptIcechunk, match="overlap"):
        data.root(LAYOUT).others(np.repeat(at, 9), LAYOUT).vectors("names", 4)


def test_what_a_shorter_list_leaves_belongs_to_nothing() -> None:
    def read(count: int) -> None:
        data = FlatBuffer(buffer([4, 8], after=struct.pack("<III", count, 5, 6), values=(7, 4)), accounted=True)
        data.root(LAYOUT).vectors("names", 4)
        data.refuse_unread()

    read(2)
    for fewer in (0, 1):
        with pytest.raises(CorruptIcechunk, match="belong to nothing"):
            read(fewer)


@pytest.mark.parametrize("zeros", [0, 3, 7])
def test_zeros_between_two_values_belong_to_nothing_too(zeros: int) -> None:
    data = FlatBuffer(buffer([4], 12, bytes(zeros)), accounted=True)
    data.root(LAYOUT)
    data.refuse_unread()


def test_many_zeros_do_not() -> None:
    data = FlatBuffer(buffer([4], 12, bytes(8)), accounted=True)
    data.root(LAYOUT)
    with pytest.raises(CorruptIcechunk, match="belong to nothing"):
        data.refuse_unread()


@pytest.mark.parametrize("cut", range(28))
def test_a_cut_one_is_refused(cut: int) -> None:
    with pytest.raises(CorruptIcechunk):
        FlatBuffer(buffer([4, 8])[:cut]).root(LAYOUT)
