"""The writer's schema and the wanted columns, compiled to one short program for the kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from firnline.formats.avro import kernel as op
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.schema import (
    Enum,
    Fixed,
    Leaf,
    Plain,
    Record,
    Repeated,
    Type,
    Union,
    parse_schema,
    width_of,
)

Wanted = tuple[tuple[str, pa.DataType], ...]
Tree = dict[str, "int | Tree"]

VARINTS: Final = ("int", "long")
STRINGS: Final = ("string", "bytes")
_INTS, _FLOATS = (pa.int32(), pa.int64()), (pa.float32(), pa.float64())
_TEXTS, _BYTES = (pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())
# The Arrow types that a column may ask of each Avro type: the same or wider, never narrower.
ACCEPTED: Final[dict[str, tuple[pa.DataType, ...]]] = {
    "int": _INTS, "long": _INTS[1:], "float": _FLOATS, "double": _FLOATS[1:], "boolean": (pa.bool_(),),
    "string": _TEXTS, "enum": _TEXTS, "bytes": _BYTES, "fixed": _BYTES,
}  # fmt: skip


@dataclass(slots=True)
class Column:
    """One wanted leaf, or an array as it is encoded. `source` is its type in the file; None: the file has no such
    field, all is null.
    """

    name: str
    type: pa.DataType
    source: Leaf | Repeated | Union | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """What the kernel runs once per record, and what it needs to bound a file's claims before it runs."""

    code: np.ndarray[tuple[int], np.dtype[np.int64]]
    columns: tuple[Column, ...]
    width: int
    arrow: pa.Schema


@functools.lru_cache(maxsize=256)
def compile_program(schema: bytes, wanted: Wanted, encoded: bool = False, unions: bool = False) -> Program:
    """The program; kept, because the manifests of a table nearly all have the same schema. `encoded`: of every column
    the place and the length of what encodes it, whatever type it has; `unions`: with the number of its branch, so that
    a null has a place, too.
    """
    columns = tuple(Column(name, kind) for name, kind in wanted)
    for column in columns:
        if not any(column.type in types for types in ACCEPTED.values()):
            raise TypeError(f"column {column.name}: no Avro type is read as {column.type}")
    root = parse_schema(schema)
    assembler = _Assembler(columns, encoded, unions)
    assembler.take(root, _tree(columns))
    assembler.finish()
    return Program(np.array(assembler.code, dtype=np.int64), columns, width_of(root), pa.schema(list(wanted)))


def _tree(columns: tuple[Column, ...]) -> Tree:
    """Dotted names as nested fields with the column's number at each leaf."""
    tree: Tree = {}
    for number, column in enumerate(columns):
        *parents, leaf = column.name.split(".")
        level = tree
        for parent in parents:
            below = level.setdefault(parent, {})
            if isinstance(below, int):
                raise ValueError(f"column {column.name} lies within another column")
            level = below
        if leaf in level:
            raise ValueError(f"column {column.name} is wanted twice, or a column lies within it")
        level[leaf] = number
    return tree


@dataclass(slots=True)
class _Assembler:
    """Emits instructions. A skipped record becomes a routine, written once: code grows as the schema does."""

    columns: tuple[Column, ...]
    encoded: bool = False
    unions: bool = False
    code: list[int] = field(default_factory=list)
    label: int = 0  # nothing before this address may still be changed: something jumps here
    calls: list[tuple[int, Record]] = field(default_factory=list)

    def finish(self) -> None:
        """End the main program, then write each routine that something calls."""
        self._emit(op.RETURN)
        addresses: dict[Record, int] = {}
        for place, record in self.calls:  # grows while routines call others
            if record not in addresses:
                addresses[record] = self._mark()
                for each in record.fields.values():
                    self._skip(each)
                self._emit(op.RETURN)
            self.code[place] = addresses[record]

    def _project(self, record: Record, tree: Tree) -> None:
        """Take the wanted fields of a record and skip the others."""
        for name, each in record.fields.items():
            if name in tree:
                self.take(each, tree[name])
            else:
                self._skip(each)

    def take(self, node: Type, want: int | Tree) -> None:
        """Take what is wanted of a value; all of it is null where a union says so."""
        match node, want:
            case Plain("null"), _:
                return
            case Union(), int() if self.unions:
                self._take_encoded(node, want)
            case Union(branches), _ if sum(each != Plain("null") for each in branches) <= 1:
                self._union(branches, lambda each: self.take(each, want))
            case Record(), dict():
                self._project(node, want)
            case ((Plain() | Fixed() | Enum() | Repeated()), int()) if self.encoded:
                self._take_encoded(node, want)
            case ((Plain() | Fixed() | Enum()), int()):
                self._take_leaf(node, self.columns[want], want)
            case Repeated(), int() if self.columns[want].type in _BYTES:
                self._take_encoded(node, want)
            case _:
                name = self.columns[_first_column(want)].name
                raise CorruptAvro(f"column {name}: the file has {_kind(node)} there, or on the way to it")

    def _take_leaf(self, node: Leaf, column: Column, number: int) -> None:
        if column.type not in ACCEPTED[_kind(node)]:
            raise CorruptAvro(f"column {column.name}: the file has {_kind(node)}, wanted is {column.type}")
        column.source = node
        if _is_varint(node):
            self._emit(op.TAKE_VARINT, number)
        elif _is_string(node):
            self._emit(op.TAKE_BYTES, number)
        else:
            self._emit(op.TAKE_FIXED, number, width_of(node))

    def _take_encoded(self, node: Leaf | Repeated | Union, number: int) -> None:
        """Skips a value, and notes where it lies. Of arrays and maps few files have one that is not empty."""
        self.columns[number].source = node
        self._emit(op.TAKE_FIXED, number, 0)
        self._skip(node)
        self._emit(op.CLOSE, number)

    def _skip(self, node: Type) -> None:
        match node:
            case Union(branches):
                self._union(branches, self._skip)
            case Repeated(parts):
                self._repeat(parts)
            case Record(core=Record() as core):
                self.calls.append((self._emit(op.CALL) + 1, core))
            case Record(core=core):
                if core is not None:
                    self._skip_leaf(core)
            case _:
                self._skip_leaf(node)

    def _skip_leaf(self, node: Leaf | Record) -> None:
        if _is_varint(node):
            self._add(op.SKIP_VARINTS, 1)
        elif _is_string(node):
            self._emit(op.SKIP_BYTES)
        elif width_of(node):
            self._add(op.SKIP_FIXED, width_of(node))

    def _union(self, branches: tuple[Type, ...], each: Callable[[Type], None]) -> None:
        """A jump table and the branches. One that has nothing to do is a jump to the end in the table."""
        table = self._emit(op.UNION, len(branches)) + op.SIZE
        self.code.extend([0] * len(branches))
        to_end = []
        for place, branch in enumerate(branches, table):
            self.code[place] = self._mark()
            each(branch)
            if len(self.code) == self.code[place]:
                to_end.append(place)
            elif place < table + len(branches) - 1:
                to_end.append(self._emit(op.JUMP) + 1)
        end = self._mark()
        for place in to_end:
            self.code[place] = end

    def _repeat(self, parts: tuple[Type, ...]) -> None:
        flat = _flat(parts)
        if flat is not None:
            self._emit(op.SKIP_FLAT, *flat)
            return
        enter = self._emit(op.ENTER)
        body = self._mark()
        for each in parts:
            self._skip(each)
        self.code[enter + 1] = self._emit(op.LOOP, body)
        self._mark()

    def _emit(self, opcode: int, a: int = 0, b: int = 0) -> int:
        self.code += (opcode, a, b)
        return len(self.code) - op.SIZE

    def _add(self, opcode: int, amount: int) -> None:
        """Skip more: in the last instruction, if it is of the same kind and always comes right before."""
        last = len(self.code) - op.SIZE
        if last >= self.label and self.code[last] == opcode:
            self.code[last + 1] += amount
        else:
            self._emit(opcode, amount)

    def _mark(self) -> int:
        self.label = len(self.code)
        return self.label


def _flat(parts: tuple[Type, ...]) -> tuple[int, int] | None:
    """How many numbers and then strings an item is made of, None if it is made of anything else."""
    inner = [part.fields.values() if isinstance(part, Record) else [part] for part in parts]
    filled = [each for group in inner for each in group if width_of(each)]
    numbers = sum(map(_is_varint, filled))
    if all(map(_is_varint, filled[:numbers])) and all(map(_is_string, filled[numbers:])):
        return numbers, len(filled) - numbers
    return None


def _is_varint(node: Type) -> bool:
    return isinstance(node, Enum) or (isinstance(node, Plain) and node.kind in VARINTS)


def _is_string(node: Type) -> bool:
    return isinstance(node, Plain) and node.kind in STRINGS


def _kind(node: Type) -> str:
    return node.kind if isinstance(node, Plain) else type(node).__name__.lower()


def _first_column(want: int | Tree) -> int:
    while not isinstance(want, int):
        want = next(iter(want.values()))
    return want
