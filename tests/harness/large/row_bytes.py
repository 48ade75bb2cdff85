"""Manifests of many entries, made as arrays of bytes: every entry has one layout, so numpy writes them all at once.

A byte of an entry is fixed, or noise under a mask that keeps it valid: numbers stay as long as they were, digits stay
digits. The noise comes from the commit alone, so any process can write any manifest, and write an entry twice alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import deflate
import numpy as np
import zstandard

from firnline.testing.manifests import Status

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
SYNC = bytes(range(16))
BLOCK_BYTES = 64_000
"""What Avro's Java writer collects before it closes a block."""

_LEVEL = 6
_DIGITS = 9
FIRST_PARTITION = 64
"""Partitions are numbers of two bytes: 64 to 8191."""


def number(value: int) -> bytes:
    """Returns a number as Avro writes it."""
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return number(len(data)) + data


def deflated(data: bytes) -> bytes:
    return bytes(deflate.deflate_compress(data, _LEVEL))


def zstandard_packed(data: bytes) -> bytes:
    """Returns one frame that does not say how large it is: Avro's Java writer streams."""
    return zstandard.ZstdCompressor(1, write_content_size=False).compress(data)


_PACKERS = {"deflate": deflated, "zstandard": zstandard_packed}


def container(
    schema: str, metadata: dict[str, str], rows: Iterable[tuple[int, bytes]], codec: str = "deflate"
) -> bytes:
    """Returns an Avro file of these blocks (number of records, their bytes), packed."""
    header = {"avro.schema": schema, "avro.codec": codec, **metadata}
    pairs = b"".join(text(name) + text(value) for name, value in header.items())
    out = [b"Obj\x01", number(len(header)), pairs, number(0), SYNC]
    for count, data in rows:
        packed = _PACKERS[codec](data)
        out += [number(count), number(len(packed)), packed, SYNC]
    return b"".join(out)


@dataclass
class Template:
    """The layout of an entry, byte by byte: what is fixed, and which bits of noise are let through."""

    fixed: bytearray = field(default_factory=bytearray)
    mask: bytearray = field(default_factory=bytearray)
    places: dict[str, slice] = field(default_factory=dict)

    def put(self, data: bytes, mask: int = 0) -> Template:
        self.fixed += data
        self.mask += bytes([mask]) * len(data)
        return self

    def noisy_number(self, width: int) -> Template:
        """Adds a positive number of exactly so many bytes."""
        self.put(b"\x80", 0x7E).put(b"\x80" * (width - 2), 0x7F)
        return self.put(b"\x01", 0x3E)

    def place(self, name: str, data: bytes) -> Template:
        """Adds bytes that differ from entry to entry and are filled in by name."""
        self.places[name] = slice(len(self.fixed), len(self.fixed) + len(data))
        return self.put(data)

    def rows(self, seed: int, count: int) -> Bytes:
        """Returns so many entries, one row each, with the noise of a seed. Places are as they were put."""
        mask = np.frombuffer(bytes(self.mask), np.uint8)
        noisy = np.flatnonzero(mask)
        noise = np.random.default_rng(seed).integers(0, 256, (count, len(noisy)), dtype=np.uint8)
        rows = np.tile(np.frombuffer(bytes(self.fixed), dtype=np.uint8), (count, 1))
        rows[:, noisy] |= noise & mask[noisy]
        return rows


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of a table's manifests. `columns`: how many have statistics."""

    folder: str
    columns: int
    partitions: int

    def template(self, status: Status, snapshot: int, sequence: int | None) -> Template:
        """Returns the layout. `sequence` None: it is inherited, as that of new files is."""
        numbers = b"\x00\x00" if sequence is None else 2 * (b"\x02" + number(sequence))
        row = Template().put(number(status)).put(b"\x02" + number(snapshot)).put(numbers)
        row.put(number(0)).put(number(self._path_bytes()))
        row.put(f"{self.folder}/part=".encode()).place("part", b"0000").put(b"/").place("file", b"0" * _DIGITS)
        row.put(b"-").put(b"0" * 32, 0x07).put(b".parquet").put(text("PARQUET"))
        row.put(b"\x02").place("partition", b"\x80\x01")
        row.noisy_number(3).noisy_number(4)
        self._statistics(row)
        return row.put(b"\x02\x02" + number(4) + b"\x00").put(b"\x00").put(b"\x02\x00")

    def rows(self, commit: int, files: int, template: Template) -> Bytes:
        """Returns the entries of all files that a commit added, one row each."""
        rows = template.rows(commit, files)
        every = np.arange(files)
        part = FIRST_PARTITION + every % self.partitions
        rows[:, template.places["part"]] = digits(part, 4)
        rows[:, template.places["file"]] = digits(commit * files + every, _DIGITS)
        rows[:, template.places["partition"]] = np.stack([2 * part & 0x7F | 0x80, 2 * part >> 7], axis=1)
        return rows

    def paths(self, commit: int, files: int) -> list[str]:
        """Returns the paths of all files that a commit added."""
        template = self.template(Status.ADDED, 1, None)
        start = template.places["part"].start - len(f"{self.folder}/part=".encode())
        rows = self.rows(commit, files, template)[:, start : start + self._path_bytes()]
        return [row.tobytes().decode() for row in np.ascontiguousarray(rows)]

    def _path_bytes(self) -> int:
        return len(f"{self.folder}/part=".encode()) + 4 + 1 + _DIGITS + 1 + 32 + len(".parquet")

    def _statistics(self, row: Template) -> None:
        """Adds sizes, counts and bounds of every column: most of what a real manifest consists of."""
        for width in (3, 3, 2):
            row.put(b"\x02" + number(self.columns))
            for column in range(1, self.columns + 1):
                row.put(number(column)).noisy_number(width)
            row.put(b"\x00")
        row.put(b"\x00")
        for _ in range(2):
            row.put(b"\x02" + number(self.columns))
            for column in range(1, self.columns + 1):
                width = 4 if column == 1 else 16
                row.put(number(column) + number(width)).put(b"\x00" * width, 0x1F)
            row.put(b"\x00")
        row.put(b"\x00")


def blocks_of(rows: Bytes) -> Iterable[tuple[int, bytes]]:
    """Yields the rows as blocks."""
    each = max(1, BLOCK_BYTES // rows.shape[1])
    for start in range(0, len(rows), each):
        part = rows[start : start + each]
        yield len(part), part.tobytes()


def digits(numbers: Any, width: int) -> Bytes:
    powers = 10 ** np.arange(width - 1, -1, -1)
    written: Bytes = (0x30 + numbers[:, None] // powers % 10).astype(np.uint8)
    return written
