"""Arrays of texts that `decode` handed out as they are encoded."""

from __future__ import annotations

from collections.abc import Iterable

from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.kernel import FAULTS, read_size, read_varint

EMPTY = b"\x00"
"""An array without items, as every writer encodes it."""


def encoded_texts(data: bytes) -> tuple[str, ...]:
    """Returns the texts of an array, whichever way its writer cut it into blocks. Raises CorruptAvro."""
    texts: list[str] = []
    count, pos = _number(data, 0)
    while count:
        if count < 0:  # the size of the block in bytes follows
            count = -count
            _, pos = _number(data, pos)
        for _ in range(count):
            size, pos = read_size(data, pos, len(data))
            if pos < 0:
                raise CorruptAvro(f"an array of texts: {FAULTS[pos]}")
            texts.append(_text(data[pos : pos + size]))
            pos += size
        count, pos = _number(data, pos)
    return tuple(texts)


def encoded(texts: Iterable[str]) -> bytes:
    """Returns an array of texts as Avro encodes it, in one block: what `encoded_texts` reads."""
    items = [text.encode() for text in texts]
    block = [_varint(len(items)), *(part for item in items for part in (_varint(len(item)), item))] if items else []
    return b"".join([*block, EMPTY])


def _varint(size: int) -> bytes:
    """Returns a size as Avro writes it: doubled, since its last bit is a sign, and seven bits a byte."""
    rest, out = size * 2, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _number(data: bytes, pos: int) -> tuple[int, int]:
    number, pos = read_varint(data, pos, len(data))
    if pos < 0:
        raise CorruptAvro(f"an array of texts: {FAULTS[pos]}")
    return number, pos


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CorruptAvro("an array of texts: a text is not UTF-8") from None
