"""Flatbuffers, read many tables at a time, and without faith.

Every place is checked before it is read: it lies in the buffer, and where the format puts it. A field that this version
does not know is refused: it may name objects. So a buffer whose bytes were changed gives either an error or a sound
structure, never a read beyond its end and never a shorter list than it says.

A table begins with the distance back to its vtable. That has its own length, the table's, and for each field where in
the table it lies; 0 is for a field that is not there. Lists, texts and other tables are named by the distance to them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from firnline.formats.icechunk.ids import Octets
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

IDENTIFIER: Final = b"Ichk"
_NUMBERS: Final = {"<u1": 1, "<u2": 2, "<u4": 4, "<i4": 4, "<u8": 8}
_LARGEST: Final = (1 << 63) - 1
_ROOT_ENDS: Final = 8
"""Before everything else: the distance to the first table, and the mark."""
_LONGEST_FILL: Final = 7
"""Zeros between two values, so that the next lies on a multiple of 8."""


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


class TableShape(NamedTuple):
    """How long tables are, and where in them each field lies; 0 where it is not there."""

    size: int
    slots: tuple[int, ...]


def _refuse_fields(layout: TableLayout, size: int, slots: tuple[int, ...]) -> None:
    """Raises unless each field lies in the table and none on another, the required ones are there and no reserved."""
    free = 4
    for at, field in sorted(zip(slots, layout.fields, strict=True), key=itemgetter(0)):
        if at and at < free:
            raise CorruptIcechunk(f"{layout.name}.{field.name} lies on another field")
        free = at + field.width if at else free
        if free > size:
            raise CorruptIcechunk(f"{layout.name}.{field.name} lies outside of its table")
        if not at and field.required:
            raise CorruptIcechunk(f"a table has no {layout.name}.{field.name}")
        if at and field.reserved:
            raise UnsupportedIcechunk(f"{layout.name}.{field.name} is used, and nobody knows yet for what")


class FlatBuffer:
    """The bytes of one buffer. One that is `accounted` notes which of them were read."""

    def __init__(self, body: bytes, accounted: bool = False) -> None:
        self._body = body
        self._accounted = accounted
        self._read: list[tuple[Numbers, Numbers]] = []
        self.octets: Octets = np.frombuffer(body, np.uint8)
        self.size = len(body)

    def root(self, layout: TableLayout) -> FlatTables:
        """Returns the table that everything else hangs on, as the only one."""
        if self.octets[4:8].tobytes() != IDENTIFIER:
            raise CorruptIcechunk("its buffer is not marked as Icechunk's")
        return FlatTables(self, self.numbers(np.zeros(1, np.int64), "<u4"), layout)

    def note(self, starts: Numbers, ends: Numbers) -> None:
        """Remembers that something lies from each start to its end."""
        if self._accounted:
            self._read.append((starts, ends))

    def refuse_unread(self) -> None:
        """Raises unless everything was read but what fills up the room between two values.

        A list whose length was changed to a smaller one is sound by itself: what it no longer claims, nothing claims.
        """
        depth = np.zeros(self.size + 1, np.int64)
        for starts, ends in self._read:
            np.add.at(depth, starts, 1)
            np.add.at(depth, ends, -1)
        left = np.flatnonzero(np.cumsum(depth[:-1]) == 0)
        left = left[left >= _ROOT_ENDS]
        longest = np.diff(np.flatnonzero(np.diff(left, prepend=-2, append=self.size + 2) != 1))
        if self.octets[left].any() or (longest > _LONGEST_FILL).any():
            raise CorruptIcechunk("bytes of it belong to nothing: one of its lists may have been longer")

    def shape(self, at: int, layout: TableLayout) -> TableShape:
        """Returns what a vtable says. Raises unless the fields of its tables are known and lie beside each other in the
        table. Writers give all tables that have the same fields the same vtable: there are few.
        """
        if at < 0 or at & 1 or at + 4 > self.size:
            raise CorruptIcechunk(f"a table {layout.name} has no vtable")
        length, size = struct.unpack_from("<HH", self._body, at)
        if length < 4 or length & 1 or at + length > self.size or size < 4:
            raise CorruptIcechunk(f"a vtable of {layout.name} has no possible length")
        offsets = struct.unpack_from(f"<{length // 2 - 2}H", self._body, at + 4)
        known = len(layout.fields)
        if any(offsets[known:]):
            raise UnsupportedIcechunk(f"a table {layout.name} has a field beyond the {known} that are known")
        slots = offsets[:known] + (0,) * (known - len(offsets))
        _refuse_fields(layout, size, slots)
        self.note(np.array([at]), np.array([at + length]))
        return TableShape(size, slots)

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
        if align > 1 and (at & (align - 1)).any():
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
        shapes = [buffer.shape(at, layout) for at in self._shapes.tolist()]
        self._sizes = np.array([shape.size for shape in shapes], np.int64)
        self._slots = np.array([shape.slots for shape in shapes], np.int64).reshape(len(shapes), len(layout.fields))
        buffer.refuse_outside(at + self.sizes, 0, 1)
        buffer.note(at, at + self.sizes)

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

    def vectors(self, field: str, width: int, align: int = 4, ending: int = 0) -> Vectors:
        """Returns the lists of the tables; an empty one where the field is not there. So many bytes more end each.

        Lists that together take more room than there is share their bytes: no writer makes such, and a small buffer
        could name any number of elements with them.
        """
        there = self.has(field)
        starts, counts = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        if not there.any():
            return Vectors(self._buffer, starts, counts)
        heads = self._followed(self._places(field)[there])
        starts[there], counts[there] = heads + 4, self._buffer.numbers(heads, "<u4")
        self._buffer.refuse_outside((starts + counts * width)[there] + ending, 0, 1)
        self._buffer.refuse_outside(starts[counts > 0], 0, align)
        if int(counts.sum()) * width > self._buffer.size:
            raise CorruptIcechunk(f"lists of {self._name(field)} overlap")
        self._buffer.note(heads, (starts + counts * width)[there] + ending)
        return Vectors(self._buffer, starts, counts)

    def listed_at(self, field: str) -> Numbers:
        """Returns the offset of each table or text that these tables list, those of the first list first."""
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
        return [decoded(each, self._name(field)) for each in self.vectors(field, 1, ending=1).whole()]

    def lists_of_texts(self, field: str) -> list[str]:
        """Returns the texts that the tables list, one list after the other."""
        heads = self.listed_at(field)
        counts = self._buffer.numbers(heads, "<u4")
        self._buffer.refuse_outside(heads + 4 + counts + 1, 0, 1)
        self._buffer.note(heads, heads + 4 + counts + 1)
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
