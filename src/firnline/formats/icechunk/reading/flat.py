"""Flatbuffers, read many tables at a time, and without faith.

Every place is checked before it is read: it lies in the buffer, and where the format puts it. A field that this version
does not know is refused: it may name objects. So a buffer whose bytes were changed gives either an error or a sound
structure, never a read beyond its end and never a shorter list than it says.

A table begins with the distance back to its vtable. That has its own length, the table's, and for each field where in
the table it lies; 0 is for a field that is not there. Lists, texts and other tables are named by the distance to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from firnline.formats.icechunk.ids import Octets
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

IDENTIFIER: Final = b"Ichk"
_NUMBERS: Final = {"<u1": 1, "<u2": 2, "<u4": 4, "<i4": 4, "<u8": 8}
_LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table, and how many bytes it takes there: 4 where it leads elsewhere. Of a `reserved` one nobody
    knows yet what it will mean.
    """

    name: str
    width: int = 4
    required: bool = False
    reserved: bool = False


@dataclass(frozen=True)
class TableLayout:
    """All fields of a table, in the order of the schema."""

    name: str
    fields: tuple[Field, ...]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {field.name: number for number, field in enumerate(self.fields)}


class FlatBuffer:
    """The bytes of one buffer."""

    def __init__(self, body: bytes) -> None:
        self.octets: Octets = np.frombuffer(body, np.uint8)
        self.size = len(body)

    def root(self, layout: TableLayout) -> FlatTables:
        """Returns the table that everything else hangs on, as the only one."""
        if self.octets[4:8].tobytes() != IDENTIFIER:
            raise CorruptIcechunk("its buffer is not marked as Icechunk's")
        return FlatTables(self, self.numbers(np.zeros(1, np.int64), "<u4"), layout)

    def numbers(self, at: Numbers, kind: str) -> Numbers:
        """Returns the numbers at these places."""
        width = _NUMBERS[kind]
        self.refuse_outside(at, width, width)
        whole = self.octets[: self.size // width * width].view(kind)
        found = whole[at // width]
        if kind == "<u8" and np.any(found > _LARGEST):
            raise CorruptIcechunk("a number in it is larger than any count or time")
        return found.astype(np.int64)

    def rows(self, at: Numbers, width: int) -> Octets:
        """Returns so many bytes at each place."""
        self.refuse_outside(at, width, 1)
        if not len(at):
            return np.empty((0, width), np.uint8)
        windows = np.ndarray((self.size - width + 1,), f"V{width}", self.octets.data, strides=(1,))
        return windows[at].view(np.uint8).reshape(-1, width)

    def refuse_outside(self, at: Numbers, width: int, align: int) -> None:
        """Raises unless at each place so many bytes are there, and each is a multiple of `align`."""
        if len(at) and (int(at.min()) < 0 or int(at.max()) > self.size - width):
            raise CorruptIcechunk(f"it leads outside of its {self.size:,} bytes")
        if align > 1 and np.any(at & (align - 1)):
            raise CorruptIcechunk("a place in it is not where such a value can lie")


@dataclass(frozen=True, slots=True)
class Vectors:
    """Lists of one width: where the elements of each begin, and how many there are."""

    buffer: FlatBuffer
    starts: Numbers
    counts: Numbers

    def places(self, width: int) -> Numbers:
        """Returns the place of every element, those of the first list first."""
        ends = np.cumsum(self.counts)
        before = np.repeat(ends - self.counts, self.counts)
        return np.repeat(self.starts, self.counts) + (np.arange(len(before)) - before) * width

    def whole(self) -> list[bytes]:
        """Returns each list as bytes, if its elements are bytes."""
        spans = zip(self.starts.tolist(), self.counts.tolist(), strict=True)
        return [self.buffer.octets[start : start + count].tobytes() for start, count in spans]


class FlatTables:
    """Tables of one layout, at these places."""

    def __init__(self, buffer: FlatBuffer, at: Numbers, layout: TableLayout) -> None:
        self._buffer, self._at, self._layout = buffer, at, layout
        vtables = at - buffer.numbers(at, "<i4")
        self._shapes = np.unique(vtables)
        self._shape_of = np.searchsorted(self._shapes, vtables)
        self._sizes, self._slots = self._read_shapes()
        buffer.refuse_outside(at + self.sizes, 0, 1)

    def __len__(self) -> int:
        return len(self._at)

    @property
    def at(self) -> Numbers:
        return self._at

    @property
    def sizes(self) -> Numbers:
        """How long each table is."""
        return self._sizes[self._shape_of]

    def has(self, field: str) -> Flags:
        found: Flags = self._offsets(field) != 0
        return found

    def picked(self, which: Flags) -> FlatTables:
        return self if which.all() else FlatTables(self._buffer, self._at[which], self._layout)

    def others(self, at: Numbers, layout: TableLayout) -> FlatTables:
        """Returns tables of another layout in the same buffer."""
        return FlatTables(self._buffer, at, layout)

    def numbers(self, field: str, kind: str, default: int = 0) -> Numbers:
        """Returns the number in each table; the default where the field is not there."""
        there = self.has(field)
        found = np.full(len(self), default, np.int64)
        found[there] = self._buffer.numbers(self._places(field)[there], kind)
        return found

    def rows(self, field: str, width: int) -> Octets:
        """Returns the bytes of the field, which every table has."""
        self._refuse_absent(field)
        return self._buffer.rows(self._places(field), width)

    def vectors(self, field: str, width: int, align: int = 4) -> Vectors:
        """Returns the lists of the tables; an empty one where the field is not there.

        Lists that together take more room than there is share their bytes: no writer makes such, and a small buffer
        could name any number of elements with them.
        """
        there = self.has(field)
        starts, counts = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        heads = self._followed(self._places(field)[there])
        starts[there], counts[there] = heads + 4, self._buffer.numbers(heads, "<u4")
        self._buffer.refuse_outside(starts + counts * width, 0, 1)
        self._buffer.refuse_outside(starts[counts > 0], 0, align)
        if int(counts.sum()) * width > self._buffer.size:
            raise CorruptIcechunk(f"lists of {self._name(field)} overlap")
        return Vectors(self._buffer, starts, counts)

    def listed_at(self, field: str) -> Numbers:
        """Returns where the tables are that the tables list, those of the first list first."""
        return self._followed(self.vectors(field, 4).places(4))

    def listed(self, field: str, layout: TableLayout) -> FlatTables:
        """Returns the tables that the tables list. Raises where two of them share bytes."""
        found = self.others(self.listed_at(field), layout)
        refuse_shared(found.at, found.sizes)
        return found

    def named(self, field: str, layout: TableLayout) -> FlatTables:
        """Returns the one table that each table names in the field."""
        self._refuse_absent(field)
        return self.others(self._followed(self._places(field)), layout)

    def texts(self, field: str) -> list[str]:
        """Returns the text of each table; an empty one where the field is not there."""
        return [decoded(each, self._name(field)) for each in self.vectors(field, 1).whole()]

    def lists_of_texts(self, field: str) -> list[str]:
        """Returns the texts that the tables list, one list after the other."""
        heads = self.listed_at(field)
        counts = self._buffer.numbers(heads, "<u4")
        self._buffer.refuse_outside(heads + 4 + counts, 0, 1)
        return [decoded(each, self._name(field)) for each in Vectors(self._buffer, heads + 4, counts).whole()]

    def _followed(self, at: Numbers) -> Numbers:
        return at + self._buffer.numbers(at, "<u4")

    def _places(self, field: str) -> Numbers:
        return self._at + self._offsets(field)

    def _offsets(self, field: str) -> Numbers:
        slots: Numbers = self._slots[:, self._layout.numbers[field]]
        return slots[self._shape_of]

    def _refuse_absent(self, field: str) -> None:
        if not self.has(field).all():
            raise CorruptIcechunk(f"a table has no {self._name(field)}")

    def _name(self, field: str) -> str:
        return f"{self._layout.name}.{field}"

    def _read_shapes(self) -> tuple[Numbers, Numbers]:
        """Returns for each vtable how long its tables are, and where in them each field lies; 0 where it is not there.
        Raises unless the fields lie beside each other in the table, and all of them are known.
        """
        lengths = self._buffer.numbers(self._shapes, "<u2")
        if np.any(lengths < 4) or np.any(lengths & 1):
            raise CorruptIcechunk(f"a vtable of {self._layout.name} has no possible length")
        self._buffer.refuse_outside(self._shapes + lengths, 0, 1)
        sizes = self._buffer.numbers(self._shapes + 2, "<u2")
        slots = np.zeros((len(self._shapes), len(self._layout.fields)), np.int64)
        for number in range(int((lengths.max() - 4) // 2) if len(lengths) else 0):
            there = lengths > 4 + 2 * number
            offsets = self._buffer.numbers(self._shapes[there] + 4 + 2 * number, "<u2")
            if number < len(self._layout.fields):
                slots[there, number] = offsets
            elif np.any(offsets):
                raise UnsupportedIcechunk(f"a table {self._layout.name} has a field {number}, which is not known")
        self._refuse_fields(sizes, slots)
        return sizes, slots

    def _refuse_fields(self, sizes: Numbers, slots: Numbers) -> None:
        widths = np.array([field.width for field in self._layout.fields], np.int64)
        there = slots > 0
        if np.any(there & ((slots < 4) | (slots + widths > sizes[:, None]))) or np.any(sizes < 4):
            raise CorruptIcechunk(f"a field of {self._layout.name} lies outside of its table")
        order = np.argsort(slots, axis=1)
        begins = np.take_along_axis(slots, order, axis=1)
        ends = begins + widths[order]
        if np.any((begins[:, :-1] > 0) & (ends[:, :-1] > begins[:, 1:])):
            raise CorruptIcechunk(f"fields of {self._layout.name} overlap")
        for field, present in zip(self._layout.fields, there.T, strict=True):
            if field.required and not present.all():
                raise CorruptIcechunk(f"a table has no {self._name(field.name)}")
            if field.reserved and present.any():
                raise UnsupportedIcechunk(f"{self._name(field.name)} is used, and nobody knows yet for what")


def decoded(text: bytes, name: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as damage:
        raise CorruptIcechunk(f"{name} is not text: {damage}") from damage


def refuse_shared(at: Numbers, sizes: Numbers) -> None:
    """Raises where two tables share bytes. A distance that leads to another table of the list hides the one it led to,
    and the list is as long as before.
    """
    if len(at) > 1 and at[0] > at[-1]:
        at, sizes = at[::-1], sizes[::-1]
    if np.any(at[1:] <= at[:-1]):
        order = np.argsort(at)
        at, sizes = at[order], sizes[order]
    if np.any(at[:-1] + sizes[:-1] > at[1:]):
        raise CorruptIcechunk("two of its tables lie in the same place")
