"""Values as they are encoded: arrays, whose items are read one by one, numbers and texts. Most readers never look
inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.kernel import FAULTS, read_size, read_varint

Item = TypeVar("Item")
ReadItem = Callable[[bytes, int], tuple[Item, int]]
"""Returns the item that begins at a place, and the place after it."""


def items_of(data: bytes, read: ReadItem[Item], what: str) -> list[Item]:
    """Returns the items of an array, whichever way its writer cut it into blocks. Raises CorruptAvro, which says `what`
    it is an array of.
    """
    try:
        return _items(data, read)
    except CorruptAvro as damage:
        raise CorruptAvro(f"an array of {what}: {damage}") from None


def _items(data: bytes, read: ReadItem[Item]) -> list[Item]:
    items: list[Item] = []
    count, at = number_at(data, 0)
    while count:
        if count < 0:  # the size of the block in bytes follows
            count = -count
            _, at = number_at(data, at)
        for _ in range(count):
            item, at = read(data, at)
            items.append(item)
        count, at = number_at(data, at)
    return items


def encoded_texts(data: bytes) -> tuple[str, ...]:
    """Returns the texts of an array of texts. Raises CorruptAvro."""
    return tuple(items_of(data, text_at, "texts"))


def number_at(data: bytes, at: int) -> tuple[int, int]:
    number, after = read_varint(data, at, len(data))
    return number, _sound(after)


def bytes_at(data: bytes, at: int) -> tuple[bytes, int]:
    size, start = read_size(data, at, len(data))
    return data[_sound(start) : start + size], start + size


def number_by_number(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Returns an entry of a map from numbers to numbers."""
    key, at = number_at(data, at)
    value, at = number_at(data, at)
    return (key, value), at


def bytes_by_number(data: bytes, at: int) -> tuple[tuple[int, bytes], int]:
    """Returns an entry of a map from numbers to bytes."""
    key, at = number_at(data, at)
    value, at = bytes_at(data, at)
    return (key, value), at


def text_at(data: bytes, at: int) -> tuple[str, int]:
    raw, at = bytes_at(data, at)
    try:
        return raw.decode(), at
    except UnicodeDecodeError:
        raise CorruptAvro("a text is not UTF-8") from None


def _sound(place: int) -> int:
    if place < 0:
        raise CorruptAvro(FAULTS[place])
    return place


def varint(number: int) -> bytes:
    """Returns a number as Avro writes it: its sign in the last bit, and seven bits a byte."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def sized(data: bytes) -> bytes:
    """Returns a text, or bytes, as Avro writes them: their length comes first."""
    return varint(len(data)) + data
