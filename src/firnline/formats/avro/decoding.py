"""A few columns of an Avro file, as Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from firnline.formats.avro.blocks import MAX_BYTES, Blocks, expand, find_blocks
from firnline.formats.avro.engine import Engine, Way, engine_for
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.gather import to_arrow
from firnline.formats.avro.header import read_header
from firnline.formats.avro.kernel import FAULTS
from firnline.formats.avro.program import Program, compile_program

MAX_DEPTH: Final = 512  # records and arrays within one another, at run time


@dataclass(frozen=True, slots=True)
class Decoded:
    """The wanted columns and the file's own metadata. `rows` also counts when no column was wanted."""

    batch: pa.RecordBatch
    metadata: dict[str, bytes]
    rows: int


def decode(
    data: bytes, columns: Mapping[str, pa.DataType], *, way: Way = "auto", max_bytes: int = MAX_BYTES
) -> Decoded:
    """One Arrow column for each dotted name, in that order, null where the file has no such field. An array or map that
    is wanted as bytes comes as it is encoded (`encoded_texts` reads it).

    Raises CorruptAvro if any byte that had to be read makes no sense, or if a field has another type. A file
    cut exactly between two blocks is still valid: compare its size or rows with what its owner recorded.
    """
    header = read_header(data)
    program = compile_program(header.schema_text, tuple(columns.items()))
    engine = engine_for(len(data), way)
    blocks = expand(find_blocks(data, header, engine), header.codec, min(max_bytes, MAX_BYTES))
    arrays = _columns(blocks, program, engine)
    schema = pa.schema([(column.name, column.type) for column in program.columns])
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return Decoded(batch, header.metadata, int(blocks.counts.sum()))


def _columns(blocks: Blocks, program: Program, engine: Engine) -> list[pa.Array]:
    """Run the program over all blocks at once and gather each column."""
    shape = (len(program.columns), blocks.rows(program.width))
    value = np.zeros(shape, dtype=np.int64)
    length = np.full(shape, -1, dtype=np.int32)
    numbers = engine.numbers
    fault, row = engine.run_blocks(
        engine.view(blocks.data),
        numbers(blocks.starts), numbers(blocks.ends), numbers(blocks.counts),
        numbers(program.code), np.zeros(MAX_DEPTH, dtype=np.int64), value, length,
    )  # fmt: skip
    if fault:
        raise CorruptAvro(f"record {row}: {FAULTS[fault]}")
    return [
        to_arrow(column, blocks.data, value[number], length[number], engine)
        for number, column in enumerate(program.columns)
    ]
