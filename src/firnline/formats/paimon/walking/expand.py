"""Opening manifest lists, manifests and index manifests: the only Paimon code that runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata
from firnline.formats.avro import CorruptAvro
from firnline.formats.columns import identities
from firnline.formats.opening import named, opened
from firnline.formats.paimon.reading.schema import stored_schemas
from firnline.formats.paimon.walking.entries import ENTRY_SCHEMA, Named, index_rows, list_rows, manifest_rows
from firnline.formats.paimon.walking.layout import Layout
from firnline.model.files import File, FileKind
from firnline.ports.expanding import Expanded, Together, joined
from firnline.ports.stores import Read

_ROWS: dict[FileKind, Callable[[Sequence[bytes], Layout], Named]] = {
    FileKind.CHANGES_LIST: list_rows,
    FileKind.MANIFEST_LIST: list_rows,
    FileKind.INDEX_MANIFEST: index_rows,
    FileKind.MANIFEST: manifest_rows,
}
_PLACED = (FileKind.MANIFEST, FileKind.INDEX_MANIFEST)
"""Units that name files by partition and bucket: where these lie depends on options."""


@dataclass(slots=True)
class PaimonExpand:
    """Expands lists into manifests, and manifests into what they add and take away.

    A unit lies in its table's folder `manifest`, and the table's schema beside that says how partitions become paths:
    so one of these serves any number of tables. Each copy, one for each task, reads a schema once.
    """

    store: Read
    _layouts: dict[str, list[Layout]] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[PaimonExpand], tuple[Read]]:
        return PaimonExpand, (self.store,)

    @property
    def order(self) -> tuple[FileKind, ...]:
        return tuple(_ROWS)

    @property
    def folds(self) -> bool:
        return True

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        read = list(zip(units, together(self._read, units), strict=True))
        tables: dict[str, list[int]] = {}
        for number, (unit, data) in enumerate(read):
            if data is not None:
                tables.setdefault(_table_of(unit), []).append(number)
        parts: list[tuple[Sequence[int], Expanded]] = []
        for location, numbers in tables.items():
            present = [(unit, data) for unit, data in (read[number] for number in numbers) if data is not None]
            parts.append((numbers, self._of_table(location, *zip(*present, strict=True))))
        return joined(parts) if parts else _nothing()

    def _read(self, unit: File) -> bytes | None:
        """Returns the unit's bytes; None for a changelog that is gone: nobody reads it any more, and nothing is needed
        for its sake.
        """
        try:
            with opened(self.store, unit) as data:
                return data
        except UnreadableMetadata as damage:
            if unit.kind is FileKind.CHANGES_LIST and isinstance(damage.__cause__, ObjectNotFound):
                return None
            raise

    def _of_table(self, location: str, units: Sequence[File], contents: Sequence[bytes]) -> Expanded:
        """Returns what units of one table name. Whatever is wrong with one of them is told with its name."""
        if len(units) > 1:
            with suppress(CorruptAvro, FirnlineError):
                return self._expanded(location, units, contents)
        alone = (self._alone(location, *each) for each in zip(units, contents, strict=True))
        return joined(([number], each) for number, each in enumerate(alone))

    def _alone(self, location: str, unit: File, data: bytes) -> Expanded:
        with named(unit):
            return self._expanded(location, [unit], [data])

    def _expanded(self, location: str, units: Sequence[File], contents: Sequence[bytes]) -> Expanded:
        layouts = self._layouts_of(location)
        if len(layouts) > 1 and units[0].kind in _PLACED:
            rows, of = _joined_rows([self._tried(units[0].kind, data, layouts) for data in contents])
        else:
            rows, of = _ROWS[units[0].kind](contents, layouts[0])
        every = pa.concat_batches([_themselves(units, contents), rows])
        return Expanded(every, np.concatenate([np.arange(len(units)), of]))

    def _layouts_of(self, location: str) -> list[Layout]:
        """Returns the layouts that manifests of the table may have been written in, the main branch's first: a branch
        that was empty may have been given options, or a main branch after it, by which its files lie elsewhere.
        """
        if location not in self._layouts:
            every = (Layout.of(location, schema) for schema in stored_schemas(self.store, location))
            self._layouts[location] = list(dict.fromkeys(every))
        return self._layouts[location]

    def _tried(self, kind: FileKind, data: bytes, layouts: Sequence[Layout]) -> Named:
        """Returns the rows of a manifest in the layout in which a file of it is there. Nothing in it says of which
        branch it is, and no name is given twice. Where no file is there, in the first layout that can be.
        """
        readings: list[Named] = []
        damages: list[UnreadableMetadata] = []
        for layout in layouts:
            try:
                readings.append(_ROWS[kind]([data], layout))
            except UnreadableMetadata as damage:
                damages.append(damage)
        if not readings:
            raise damages[0]
        columns = [rows.column("key").to_pylist() for rows, _ in readings]
        if all(keys == columns[0] for keys in columns):
            return readings[0]
        there = (place for keys in zip(*columns, strict=True) for place, key in enumerate(keys) if self._is_there(key))
        return readings[next(there, 0)]

    def _is_there(self, key: str) -> bool:
        try:
            self.store.head(key)
        except ObjectNotFound:
            return False
        return True


def _joined_rows(named_rows: Sequence[Named]) -> Named:
    """Returns the rows of units that were read one by one, each with the number of its unit."""
    numbers = [np.full(len(rows), place, dtype=np.int64) for place, (rows, _) in enumerate(named_rows)]
    return pa.concat_batches([rows for rows, _ in named_rows]), np.concatenate(numbers)


def _table_of(unit: File) -> str:
    return unit.key.rpartition("/")[0].rpartition("/")[0]


def _themselves(units: Sequence[File], contents: Sequence[bytes]) -> pa.RecordBatch:
    keys = pa.array([unit.key for unit in units], pa.string())
    sizes = pa.array(list(map(len, contents)), pa.int64())
    kinds = pa.array([unit.kind.value for unit in units], pa.string())
    rest = [pa.repeat(pa.scalar(value, kind), len(keys)) for value, kind in _OWN]
    return pa.record_batch([identities(keys), keys, sizes, kinds, *rest], schema=ENTRY_SCHEMA)


_OWN = ((False, pa.bool_()), (0, pa.int64()), (1, pa.int8()))
"""A unit itself is no unit to open any more, and nothing takes it away."""


def _nothing() -> Expanded:
    return Expanded(pa.RecordBatch.from_pylist([], schema=ENTRY_SCHEMA), np.empty(0, dtype=np.int64))
