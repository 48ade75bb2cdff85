"""The start of a file: magic, metadata, sync marker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from firnline.formats.avro import kernel
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.kernel import FAULTS, SYNC_BYTES, read_size, read_varint

MAGIC: Final = bytes(kernel.MAGIC)
SCHEMA: Final = b"avro.schema"
CODEC: Final = b"avro.codec"


class Writer(NamedTuple):
    """How the blocks of a file are written: files that share it can be decoded in one run."""

    schema: bytes  # as it stands in the file
    codec: str


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says about itself. `metadata` also has what its writer added, such as a partition spec."""

    metadata: dict[str, bytes]
    sync: bytes
    body: int  # where the first block starts

    @property
    def writer(self) -> Writer:
        """The writer's schema and codec; "null" is the default."""
        try:
            schema = self.metadata[SCHEMA.decode()]
        except KeyError:
            raise CorruptAvro("the file has no schema") from None
        return Writer(schema, codec_name(self.metadata.get(CODEC.decode(), b"null")))

    @property
    def schema(self) -> Any:
        """The writer's schema as parsed JSON, parsed at each call."""
        return parse_json(self.writer.schema)


def parse_json(text: bytes) -> Any:
    """The document. Nesting beyond what the parser can follow is an error like any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptAvro(f"the schema is not JSON: {error}") from None


def codec_name(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def read_header(data: bytes) -> Header:
    """The header of an object container file."""
    if not data.startswith(MAGIC):
        raise CorruptAvro("not an Avro file: it does not start with Obj\\x01")
    metadata: dict[str, bytes] = {}
    pos = len(MAGIC)
    count, pos = _number(data, pos)
    while count:
        if count < 0:  # the size in bytes follows; entries are read one by one all the same
            count = -count
            _, pos = _number(data, pos)
        for _ in range(count):  # each turn uses up bytes, so an absurd count ends as a truncated file
            name, pos = _bytes(data, pos)
            metadata[_text(name)], pos = _bytes(data, pos)
        count, pos = _number(data, pos)
    body = pos + SYNC_BYTES
    if body > len(data):
        raise CorruptAvro("the file ends within its header")
    return Header(metadata, data[pos:body], body)


def _number(data: bytes, pos: int) -> tuple[int, int]:
    number, pos = read_varint(data, pos, len(data))
    if pos < 0:
        raise CorruptAvro(f"header: {FAULTS[pos]}")
    return number, pos


def _bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_size(data, pos, len(data))
    if pos < 0:
        raise CorruptAvro(f"header: {FAULTS[pos]}")
    return data[pos : pos + size], pos + size


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CorruptAvro("header: a name is not UTF-8") from None
