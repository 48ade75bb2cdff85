"""A few columns of an Avro file, as Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firnline.formats.avro.codecs import MAX_BYTES, Blocks, Codecs, codecs_for, expand
from firnline.formats.avro.engine import KernelEngine, Way, engine_for
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.framing import BlockWriter, Numbers, Packed, find_blocks, read_header
from firnline.formats.avro.gather import to_arrow
from firnline.formats.avro.kernel import FAULTS, MAX_DEPTH
from firnline.formats.avro.program import Program, compile_program
from firnline.inflate import believable

Cells = np.ndarray[tuple[int, int], np.dtype[Any]]


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

    `way`: "python" needs no package but numpy and pyarrow; "auto" takes what is installed and pays.
    Raises CorruptAvro if any byte that had to be read makes no sense, or if a field has another type. A file
    cut exactly between two blocks is still valid: compare its size or rows with what its owner recorded.
    """
    header = read_header(data)
    engine = engine_for(len(data), way)
    [(writer, packed)] = find_blocks([data], engine)
    batch, rows = _decoded(packed, writer, columns, engine, codecs_for(way), max_bytes)
    return Decoded(batch, header.metadata, rows)


def decode_many(
    files: Sequence[bytes], columns: Mapping[str, pa.DataType], *, way: Way = "auto", max_bytes: int = MAX_BYTES
) -> tuple[pa.RecordBatch, Numbers]:
    """The rows of some files, as `decode` has them, and the number of the file that each comes from.

    A call costs more than a small file does, so those of one schema are decoded in one. Raises CorruptAvro where any
    of them is damaged, or all together hold too much: the caller that wants to know which asks for each alone.
    """
    engine = engine_for(sum(map(len, files)), way)
    batches, numbers = [], []
    for writer, packed in find_blocks(files, engine):
        batch, _ = _decoded(packed, writer, columns, engine, codecs_for(way), max_bytes)
        batches.append(batch)
        numbers.append(np.repeat(packed.files, packed.counts))
    return pa.concat_batches(batches), np.concatenate(numbers)


def _decoded(
    packed: Packed,
    writer: BlockWriter,
    columns: Mapping[str, pa.DataType],
    engine: KernelEngine,
    codecs: Codecs,
    max_bytes: int,
) -> tuple[pa.RecordBatch, int]:
    """The rows of files with one schema and codec, end to end, and how many they are."""
    program = compile_program(writer.schema, tuple(columns.items()))
    blocks = expand(packed, writer.codec, block_limit(packed, max_bytes), codecs)
    rows = blocks.rows(program.width)
    batch = pa.RecordBatch.from_arrays(_columns(blocks, rows, program, engine), schema=program.arrow)
    return batch, rows


def _columns(blocks: Blocks, rows: int, program: Program, engine: KernelEngine) -> list[pa.Array]:
    """Run the program over all blocks at once and gather each column."""
    values, lengths = run(blocks, rows, program, engine)
    return [
        to_arrow(column, blocks.data, values[number], lengths[number], engine)
        for number, column in enumerate(program.columns)
    ]


def run(blocks: Blocks, rows: int, program: Program, engine: KernelEngine) -> tuple[Cells, Cells]:
    """Of each column and row a number, or a place in the blocks' bytes; and a length, -1 for null."""
    width = len(program.columns)
    value = np.zeros(width * rows, dtype=np.int64)
    length = np.full(width * rows, -1, dtype=np.int32)
    told, numbers = np.zeros(1, dtype=np.int64), engine.numbers
    fault = engine.run_blocks(
        blocks.data, len(blocks.starts),
        numbers(blocks.starts), numbers(blocks.ends), numbers(blocks.counts),
        numbers(program.code), np.zeros(MAX_DEPTH, dtype=np.int64), rows, value, length, told,
    )  # fmt: skip
    if fault:
        raise CorruptAvro(f"record {told[0]}: {FAULTS[fault]}")
    return value.reshape(width, rows), length.reshape(width, rows)


def block_limit(packed: Packed, max_bytes: int) -> int:
    """How many bytes blocks may hold once inflated."""
    return min(max_bytes, MAX_BYTES, believable(sum(map(len, packed.pieces))))
