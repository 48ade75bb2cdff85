"""An Avro file with records left out, or told several times with other values: every other byte of a record stays as
its writer wrote it, as in `splicing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from firnline.formats.avro.codecs import MAX_BYTES, Blocks
from firnline.formats.avro.encoded import varint
from firnline.formats.avro.engine import Way
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.framing import read_header
from firnline.formats.avro.laying import lay_open
from firnline.formats.avro.schema import Plain, Record, Type, Union, parse_schema, width_of

Replaced = Mapping[str, bytes | None]
"""Values of some fields, by their dotted names, as Avro encodes them; None for null. All other fields stay."""

Rebuild = Callable[[int], Sequence[Replaced]]
"""Returns what stands in the place of the record of that number: nothing, or the record once for each of these."""


def rebuild(
    data: bytes, columns: Sequence[str], records: Rebuild, *, way: Way = "auto", max_bytes: int = MAX_BYTES
) -> bytes:
    """Returns the file with each record as it is rebuilt; `columns` are the fields whose values may be replaced. One
    that the file does not have is left out. The header stays as it is.

    Raises CorruptAvro as `decode` does, and where a null is put into a field that takes none.
    """
    root = _record_of(read_header(data).writer.schema)
    known = {name: node for name in columns if (node := _field(root, name)) is not None}
    names = tuple(dict.fromkeys((_first_leaf(root), *known)))
    laid = lay_open(data, names, way, max_bytes, unions=True)
    cells = _Cells(laid.blocks, {name: (laid.places[n], laid.lengths[n]) for n, name in enumerate(names)}, known)
    rebuilt = cells.blocks_of(records, laid.places[0].tolist())
    return laid.written((len(each), b"".join(each)) for each in rebuilt if each)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Where values lie, with the number of their branch where they are of a union, and the types that they have."""

    blocks: Blocks
    where: Mapping[str, tuple[Sequence[int], Sequence[int]]]
    types: Mapping[str, Type]

    def blocks_of(self, records: Rebuild, starts: list[int]) -> Iterator[list[bytes]]:
        """Yields the records of each block."""
        number = 0
        for end, count in zip(self.blocks.ends.tolist(), self.blocks.counts.tolist(), strict=True):
            rebuilt: list[bytes] = []
            for start, after in pairwise([*starts[number : number + count], end]):
                rebuilt += [self._with(number, start, after, each) for each in records(number)]
                number += 1
            yield rebuilt

    def _with(self, number: int, start: int, end: int, replaced: Replaced) -> bytes:
        """Returns the bytes of one record with other values."""
        data, pieces = self.blocks.data, list[bytes]()
        for place, name in sorted((int(self.where[name][0][number]), name) for name in replaced if name in self.types):
            pieces += (data[start:place], _encoded(name, self.types[name], replaced[name]))
            start = place + int(self.where[name][1][number])
        return b"".join([*pieces, data[start:end]])


def _encoded(name: str, node: Type, value: bytes | None) -> bytes:
    """Returns a value, or null, with the number of its branch where the field is a union."""
    branches = node.branches if isinstance(node, Union) else (node,)
    of_it = [number for number, each in enumerate(branches) if (each == Plain("null")) == (value is None)]
    if not of_it:
        raise CorruptAvro(f"the field {name} cannot be {'null' if value is None else 'anything but null'}")
    return (varint(of_it[0]) if isinstance(node, Union) else b"") + (value or b"")


def _record_of(schema: bytes) -> Record:
    root = parse_schema(schema)
    if isinstance(root, Record):
        return root
    raise CorruptAvro("the file's records may be null")


def _field(root: Record, name: str) -> Type | None:
    node: Type | None = root
    for part in name.split("."):
        node = node.fields.get(part) if isinstance(node, Record) else None
    return node


def _first_leaf(root: Record) -> str:
    """Returns the name of the first field that takes any bytes: where it begins, its record does."""
    name, node = next(((name, node) for name, node in root.fields.items() if width_of(node)), ("", None))
    if node is None:
        raise CorruptAvro("the file's records have no bytes")
    return f"{name}.{_first_leaf(node)}" if isinstance(node, Record) else name
