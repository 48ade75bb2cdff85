"""Where the blocks of files lie: the headers and frames of many files in one pass. Lengths are claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np

from firnline.formats.avro.engine import Engine
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.header import CODEC, SCHEMA, Writer, codec_name, read_header
from firnline.formats.avro.kernel import FAULTS, PLACES, SYNC_BYTES

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


def find_blocks(files: Sequence[bytes], engine: Engine) -> Iterator[tuple[Writer, Packed]]:
    """The blocks of all files, each closed by its file's sync marker: those with one schema and codec together."""
    data = b"".join(files)
    bounds = [0, *accumulate(map(len, files))]
    places = np.full(len(files) * PLACES, -1, dtype=np.int64)
    packed = _framed(data, bounds, places, engine)
    alike: dict[Writer, list[int]] = {}
    for number, (start, end, codec, codec_end, strange) in enumerate(places.reshape(-1, PLACES).tolist()):
        if start < 0 or strange >= 0:
            _refuse(files[number])
        writer = Writer(data[start:end], codec_name(data[codec:codec_end]) if codec >= 0 else "null")
        alike.setdefault(writer, []).append(number)
    for writer, members in alike.items():
        yield writer, packed if len(alike) == 1 else packed.of(members)


def _framed(data: bytes, bounds: list[int], places: Any, engine: Engine) -> Packed:
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
