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
from firnline.formats.damage import named
from firnline.formats.opening import opened
from firnline.formats.paimon.walking.entries import (
    ENTRY_SCHEMA,
    Named,
    index_entries,
    index_rows,
    list_rows,
    manifest_entries,
    manifest_rows,
)
from firnline.formats.paimon.walking.layouts import Layouts, Rows
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.ports.expanding import Expanded, Together, joined
from firnline.ports.stores import Read, shared

_PLACED: dict[FileKind, tuple[Callable[[Sequence[bytes]], Named], Rows]] = {
    FileKind.INDEX_MANIFEST: (index_entries, index_rows),
    FileKind.MANIFEST: (manifest_entries, manifest_rows),
}
"""Units that name files by partition and bucket: where these lie depends on the schema."""


@dataclass(slots=True)
class PaimonExpand:
    """Expands lists into manifests, and manifests into what they add and take away.

    A unit lies in its table's folder `manifest`, and the table's schemas beside that say how partitions become paths:
    so one of these serves any number of tables. Each copy, one for each task, reads a schema once.
    """

    store: Read
    _layouts: dict[str, Layouts] = field(default_factory=dict, repr=False)
    _told: dict[str, str | None] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[PaimonExpand], tuple[Read]]:
        return PaimonExpand, (self.store,)

    @property
    def order(self) -> tuple[FileKind, ...]:
        return (FileKind.CHANGES_LIST, FileKind.MANIFEST_LIST, *_PLACED)

    @property
    def folds(self) -> bool:
        return True

    def share(self, parts: int) -> PaimonExpand:
        return PaimonExpand(shared(self.store, parts))

    def depends_on(self, unit: File) -> str | None:
        """Returns the layout of the table, by which the unit's entries become paths; nothing for a list, which names
        its manifests beside itself. None where several layouts would have to be tried, or a schema cannot be read.
        """
        if unit.kind not in _PLACED:
            return ""
        location = _table_of(unit)
        if location not in self._told:
            self._told[location] = self._only_layout(location)
        return self._told[location]

    def _only_layout(self, location: str) -> str | None:
        with suppress(FirnlineError):  # what opens a unit of this table meets it again, and tells
            return self._layouts_of(location).only
        return None

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
        with named(unit.kind, unit.key):
            return self._expanded(location, [unit], [data])

    def _expanded(self, location: str, units: Sequence[File], contents: Sequence[bytes]) -> Expanded:
        rows, of = self._named(location, units[0].kind, contents)
        every = pa.concat_batches([_themselves(units, contents), rows])
        return Expanded(every, np.concatenate([np.arange(len(units)), of]))

    def _named(self, location: str, kind: FileKind, contents: Sequence[bytes]) -> Named:
        if kind not in _PLACED:
            return list_rows(contents, join(location, "manifest"))
        entries, rows = _PLACED[kind]
        return self._layouts_of(location).placed(*entries(contents), rows)

    def _layouts_of(self, location: str) -> Layouts:
        """Returns what is read once, by whichever thread is first: an answer and what it depends on are of one look."""
        if location not in self._layouts:
            self._layouts.setdefault(location, Layouts(self.store, location))
        return self._layouts[location]


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
