"""The bounds of the paths that a file of position deletes names, within the maps of all its bounds."""

from __future__ import annotations

from typing import Final

from firnline.errors import UnsupportedFormat
from firnline.formats.avro import CorruptAvro
from firnline.formats.avro.encoded import bytes_at, bytes_by_number, items_of, number_at, sized, varint
from firnline.ports.relocating import Place

PATH_ID: Final = 2147483546
PATH_NAME: Final = "file_path"
"""The column of paths in a file of position deletes, by its id and its name."""


def moved_bounds(lower: bytes | None, upper: bytes | None, place: Place) -> tuple[bytes | None, bytes | None]:
    """Returns the two maps, as they are encoded, with the bounds of paths as bounds of their places; None where a map
    says nothing of paths.

    A reader that finds a data file outside of the bounds does not open the deletes: its deleted rows would be seen
    again. Raises UnsupportedFormat where only one bound is told: whether the order of paths stays cannot be known then.
    """
    bounds = _path_in(lower), _path_in(upper)
    match bounds:
        case None, None:
            return None, None
        case str(first), str(last) if lower and upper:
            new_first, new_last = place.bounds(first, last)
            return _replaced(lower, new_first), _replaced(upper, new_last)
    raise UnsupportedFormat(
        f"deletes tell only one bound of their paths: {bounds[0] or bounds[1]!r}",
        hint="rewrite the table's position deletes, then hand its history over; nothing was changed",
    )


def _path_in(encoded: bytes | None) -> str | None:
    items = items_of(encoded, bytes_by_number, "bounds") if encoded else []
    match [value for key, value in items if key == PATH_ID]:
        case []:
            return None
        case [value]:
            return _text(value)
    raise CorruptAvro("a file has several bounds of one column")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CorruptAvro("a bound of paths is not UTF-8") from None


def _replaced(encoded: bytes, path: str) -> bytes:
    """Returns the map with another bound of paths, and every other byte as it was."""
    pieces: list[bytes] = []
    at = 0
    count, body = number_at(encoded, at)
    while count:
        if count < 0:  # the size of the block in bytes follows
            _, body = number_at(encoded, body)
        items, end = _block(encoded, body, abs(count), path)
        head = encoded[at:body] if count > 0 or items == encoded[body:end] else varint(count) + varint(len(items))
        pieces += (head, items)
        at = end
        count, body = number_at(encoded, at)
    if body != len(encoded):
        raise CorruptAvro("an array of bounds has more than its items")
    return b"".join([*pieces, encoded[at:]])


def _block(encoded: bytes, at: int, count: int, path: str) -> tuple[bytes, int]:
    """Returns the items of a block, and the place after them."""
    pieces: list[bytes] = []
    for _ in range(count):
        key, value = number_at(encoded, at)
        _, end = bytes_at(encoded, value)
        pieces += (encoded[at:value], sized(path.encode())) if key == PATH_ID else (encoded[at:end],)
        at = end
    return b"".join(pieces), at
