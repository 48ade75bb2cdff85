"""The writer's schema as a graph of types. It comes from the file, so it is trusted no more than the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.framing import parse_json

# Least number of bytes of a value of each type; only null has none.
WIDTHS: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip
MAX_NESTING: Final = 64  # of types written within types
MAX_FIXED: Final = (1 << 31) - 1
MAX_WIDTH: Final = 1 << 40  # a record that holds another twice, and so on, doubles at each step


@dataclass(frozen=True, slots=True)
class Plain:
    """A type that is only a name."""

    kind: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """That many bytes without a length."""

    size: int


@dataclass(frozen=True, slots=True)
class Enum:
    """A number that stands for one of the symbols."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """An array, or a map: the same on the wire, with a string as the first part of each item."""

    parts: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The number of a branch, then a value of that branch."""

    branches: tuple[Type, ...]


@dataclass(eq=False, slots=True)
class Record:
    """Fields in order. `width` and `core` are set once the whole schema is read: records may hold themselves.

    `core` is what skipping this record comes down to: itself, or what remains when it wraps a single field.
    """

    name: str
    fields: dict[str, Type] = field(default_factory=dict)
    width: int = 0
    core: Leaf | Record | None = None


Leaf = Plain | Fixed | Enum
Type = Leaf | Repeated | Union | Record


def width_of(node: Type) -> int:
    """The least number of bytes a value takes. 0 means that every value takes none."""
    match node:
        case Plain(kind):
            return WIDTHS[kind]
        case Fixed(size):
            return size
        case Record():
            return node.width
        case _:
            return 1


def parse_schema(text: bytes) -> Record | Union:
    """The record that the file is made of, or the union of it and null: Paimon wrote one before its version 0.9."""
    reader = _Reader()
    root = reader.read(parse_json(text), "", 0)
    _measure(reader.records)
    match root:
        case Record() | Union((Record(),) | (Plain("null"), Record()) | (Record(), Plain("null"))):
            return root
    raise CorruptAvro("the file's schema is not a record")


def _measure(records: list[Record]) -> None:
    """Set `width` and `core`, inner records first. A record that always holds itself has no finite value."""
    order: TopologicalSorter[Record] = TopologicalSorter()
    for record in records:
        order.add(record, *(each for each in record.fields.values() if isinstance(each, Record)))
    try:
        for record in order.static_order():
            record.width = min(sum(map(width_of, record.fields.values())), MAX_WIDTH)
            record.core = _core(record)
    except CycleError as error:
        raise CorruptAvro(f"record {error.args[1][0].name[:80]!r} always contains itself") from None


def _core(record: Record) -> Leaf | Record | None:
    match [each for each in record.fields.values() if width_of(each)]:
        case []:
            return None
        case [Record() as only]:
            return only.core
        case [Plain() | Fixed() | Enum() as only]:
            return only
    return record


class _Reader:
    """Reads types and remembers the named ones."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._named: dict[str, Record | Fixed | Enum] = {}

    def read(self, node: Any, space: str, depth: int) -> Type:
        """The type that a piece of the schema describes, within a namespace."""
        if depth > MAX_NESTING:
            raise CorruptAvro("the schema is nested too deeply")
        match node:
            case str():
                return self._by_name(node, space)
            case list():
                return Union(tuple(self.read(each, space, depth + 1) for each in node))
            case {"type": "array", "items": items}:
                return Repeated((self.read(items, space, depth + 1),))
            case {"type": "map", "values": values}:
                return Repeated((Plain("string"), self.read(values, space, depth + 1)))
            case {"type": "record" | "enum" | "fixed", "name": str(name)}:
                return self._define(node, name, space, depth)
            case {"type": str() | dict() | list() as inner}:
                return self.read(inner, space, depth + 1)
        raise CorruptAvro(f"the schema has a {type(node).__name__} that is no type")

    def _by_name(self, name: str, space: str) -> Type:
        if name in WIDTHS:
            return Plain(name)
        found = self._named.get(_full(name, space)) or self._named.get(name)
        if found is None:
            raise CorruptAvro(f"the schema uses a type it does not define: {name[:80]!r}")
        return found

    def _define(self, node: dict[str, Any], name: str, space: str, depth: int) -> Type:
        declared = node.get("namespace")
        full = _full(name, declared if isinstance(declared, str) else space)
        if full in self._named:
            raise CorruptAvro(f"the schema defines {full[:80]!r} twice")
        match node:
            case {"type": "fixed", "size": int(size)} if 0 <= size <= MAX_FIXED and size is not True:
                self._named[full] = Fixed(size)
            case {"type": "enum", "symbols": [*symbols]} if all(map(_is_text, symbols)):
                self._named[full] = Enum(tuple(symbols))
            case {"type": "record", "fields": [*fields]}:
                self._named[full] = record = Record(full)
                self.records.append(record)
                self._fill(record, fields, depth)
            case _:
                raise CorruptAvro(f"the schema does not say what {full[:80]!r} is made of")
        return self._named[full]

    def _fill(self, record: Record, fields: list[Any], depth: int) -> None:
        space = record.name.rpartition(".")[0]
        for each in fields:
            match each:
                case {"name": str(name), "type": inner} if name not in record.fields:
                    record.fields[name] = self.read(inner, space, depth + 1)
                case _:
                    raise CorruptAvro(f"record {record.name[:80]!r} has an incomplete or repeated field")


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _is_text(value: object) -> bool:
    """Whether it is a string that UTF-8 can carry; JSON can also hold half a character."""
    return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)
