"""The start of a file, and where the blocks of many files lie, found in one pass. Lengths are claims."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np

from firnline.formats.avro import kernel
from firnline.formats.avro.engine import KernelEngine
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.kernel import FAULTS, PLACES, SYNC_BYTES, read_size, read_varint

MAGIC: Final = bytes(kernel.MAGIC)
SCHEMA: Final = b"avro.schema"
CODEC: Final = b"avro.codec"


class BlockWriter(NamedTuple):
    """How the blocks of a file are written: files that share it can be decoded in one run."""

    schema: bytes  # as it stands in the file
    codec: str


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says about itself. `metadata` also has what its writer added, such as a partition spec."""

    metadata: dict[str, bytes]
    body: int  # where the first block starts

    @property
    def writer(self) -> BlockWriter:
        """The writer's schema and codec; "null" is the default."""
        try:
            schema = self.metadata[SCHEMA.decode()]
        except KeyError:
            raise CorruptAvro("the file has no schema") from None
        return BlockWriter(schema, codec_name(self.metadata.get(CODEC.decode(), b"null")))

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
    return Header(metadata, body)


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


Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_NAMES: Final = SCHEMA + CODEC


@dataclass(frozen=True, slots=True)
class Packed:
    """Blocks as they lie in their files: the bytes of each, how many records it claims, the number of its file."""

    pieces: list[bytes]
    counts: Numbers
    files: Numbers

    def of(self, files: Sequence[int]) -> Packed:
        """The blocks of those files alone."""
        chosen = np.flatnonzero(np.isin(self.files, files))
        return Packed([self.pieces[place] for place in chosen.tolist()], self.counts[chosen], self.files[chosen])


def find_blocks(files: Sequence[bytes], engine: KernelEngine) -> Iterator[tuple[BlockWriter, Packed]]:
    """The blocks of all files, each closed by its file's sync marker: those with one schema and codec together."""
    data = b"".join(files)
    bounds = [0, *accumulate(map(len, files))]
    places = np.full(len(files) * PLACES, -1, dtype=np.int64)
    packed = _framed(data, bounds, places, engine)
    alike: dict[BlockWriter, list[int]] = {}
    for number, (start, end, codec, codec_end, strange) in enumerate(places.reshape(-1, PLACES).tolist()):
        if start < 0 or strange >= 0:
            _refuse(files[number])
        writer = BlockWriter(data[start:end], codec_name(data[codec:codec_end]) if codec >= 0 else "null")
        alike.setdefault(writer, []).append(number)
    for writer, members in alike.items():
        yield writer, packed if len(alike) == 1 else packed.of(members)


def _framed(data: bytes, bounds: list[int], places: Any, engine: KernelEngine) -> Packed:
    room = len(data) // (SYNC_BYTES + 2) + 1  # the smallest block: two lengths and the marker
    starts, ends, counts = (np.empty(room, dtype=np.int64) for _ in range(3))
    firsts = np.empty(len(bounds) - 1, dtype=np.int64)
    told, where = np.zeros(1, dtype=np.int64), engine.numbers(bounds)
    fault = engine.frame_files(data, len(firsts), where, _NAMES, places, firsts, starts, ends, counts, told)
    found = int(told[0])
    if fault:
        raise CorruptAvro(f"block {found}: {FAULTS[fault]}")
    pieces = [data[start:end] for start, end in zip(starts[:found].tolist(), ends[:found].tolist(), strict=True)]
    files = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=found))
    return Packed(pieces, counts[:found], files)


def _refuse(data: bytes) -> None:
    """Raises what is wrong with a header: without a schema, or with a name that is not UTF-8."""
    _ = read_header(data).writer
