"""Whether two Avro files say the same, however their blocks are compressed."""

from __future__ import annotations

from firnline.formats.avro.codecs import MAX_BYTES, codecs_for, expand
from firnline.formats.avro.decoding import block_limit
from firnline.formats.avro.engine import engine_for
from firnline.formats.avro.framing import find_blocks, read_header


def same_records(one: bytes, other: bytes) -> bool:
    """Tells whether both have one header, with schema and codec, and the same bytes of records in the same blocks.
    Raises CorruptAvro.
    """
    first, second = read_header(one), read_header(other)
    if one[: first.body] != other[: second.body]:
        return False
    return _records(one) == _records(other)


def _records(data: bytes) -> tuple[bytes, list[int]]:
    [(writer, packed)] = find_blocks([data], engine_for(len(data), "auto"))
    blocks = expand(packed, writer.codec, block_limit(packed, MAX_BYTES), codecs_for("auto"))
    return bytes(blocks.data), blocks.counts.tolist()
