"""An Avro file laid open: where the values of some fields lie in its blocks, and a file of other blocks after the same
header, compressed as its writer did it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from firnline.formats.avro.codecs import Blocks, codecs_for, expand
from firnline.formats.avro.decoding import Cells, block_limit, run
from firnline.formats.avro.encoded import sized, varint
from firnline.formats.avro.engine import Way, engine_for
from firnline.formats.avro.framing import find_blocks, read_header
from firnline.formats.avro.kernel import SYNC_BYTES
from firnline.formats.avro.packing import packed_by
from firnline.formats.avro.program import compile_program


@dataclass(frozen=True, slots=True)
class LaidOpen:
    """The header with its sync marker, the blocks without compression, and of each field and record the place and the
    length of what encodes it.
    """

    header: bytes
    codec: str
    blocks: Blocks
    places: Cells
    lengths: Cells

    def written(self, blocks: Iterable[tuple[int, bytes]]) -> bytes:
        """Returns the file with these blocks, each after its number of records."""
        sync, pack = self.header[-SYNC_BYTES:], packed_by(self.codec)
        pieces = [self.header]
        for count, block in blocks:
            pieces += (varint(count), sized(pack(block)), sync)
        return b"".join(pieces)


def lay_open(data: bytes, fields: Sequence[str], way: Way, max_bytes: int, *, unions: bool = False) -> LaidOpen:
    """Returns the file with the values of some fields, by their dotted names; `unions` as `compile_program` has it.
    Raises CorruptAvro as `decode` does.
    """
    header, engine = read_header(data), engine_for(len(data), way)
    [(writer, packed)] = find_blocks([data], engine)
    wanted = tuple((name, pa.binary()) for name in fields)
    program = compile_program(writer.schema, wanted, encoded=True, unions=unions)
    blocks = expand(packed, writer.codec, block_limit(packed, max_bytes), codecs_for(way))
    places, lengths = run(blocks, blocks.rows(program.width), program, engine)
    return LaidOpen(data[: header.body], writer.codec, blocks, places, lengths)
