"""Opening manifest lists, manifests and index manifests: the only Paimon code that runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata
from firnline.formats.avro import CorruptAvro
from firnline.formats.paimon.entries import ENTRY_SCHEMA, index_rows, list_rows, manifest_rows
from firnline.formats.paimon.layout import Layout
from firnline.formats.paimon.schema import stored_schema
from firnline.model.files import File, FileKind
from firnline.model.locations import identity
from firnline.ports.stores import Read

_REPAIR = "nothing was changed; without it nobody can tell which files are needed"
_ROWS: dict[FileKind, Callable[[bytes, Layout], pa.RecordBatch]] = {
    FileKind.MANIFEST_LIST: list_rows,
    FileKind.INDEX_MANIFEST: index_rows,
    FileKind.MANIFEST: manifest_rows,
}


@dataclass(slots=True)
class PaimonExpand:
    """Expands lists into manifests, and manifests into what they add and take away.

    A unit lies in its table's folder `manifest`, and the table's schema beside that says how partitions become paths:
    so one of these serves any number of tables. Each copy, one for each task, reads a schema once.
    """

    store: Read
    _layouts: dict[str, Layout] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[PaimonExpand], tuple[Read]]:
        return PaimonExpand, (self.store,)

    @property
    def order(self) -> tuple[FileKind, ...]:
        return tuple(_ROWS)

    @property
    def folds(self) -> bool:
        return True

    def __call__(self, unit: File) -> pa.RecordBatch:
        with _opened(self.store, unit) as data:
            rows = _ROWS[unit.kind](data, self._layout(unit.key))
        return pa.concat_batches([_itself(unit, len(data)), rows])

    def _layout(self, key: str) -> Layout:
        location = key.rpartition("/")[0].rpartition("/")[0]
        if location not in self._layouts:
            self._layouts[location] = Layout.of(location, stored_schema(self.store, location))
        return self._layouts[location]


def _itself(unit: File, size: int) -> pa.RecordBatch:
    row = [[identity(unit.key)], [unit.key], [size], [unit.kind.value], [False], [0], [1]]
    return pa.record_batch(row, schema=ENTRY_SCHEMA)


@contextmanager
def _opened(store: Read, unit: File) -> Iterator[bytes]:
    """Hands out the unit's bytes. Raises UnreadableMetadata where it is missing, cut short or, inside, not decoded."""
    try:
        data = store.get(unit.key)
        if unit.size is not None and len(data) != unit.size:
            # One that is cut exactly between two blocks still decodes, with fewer entries.
            raise CorruptAvro(f"it has {len(data)} bytes, whoever names it says {unit.size}")
        yield data
    except ObjectNotFound as missing:
        raise UnreadableMetadata(f"{unit.kind} is missing: {unit.key}", hint=_REPAIR) from missing
    except CorruptAvro as damage:
        raise UnreadableMetadata(f"{unit.kind} is damaged: {unit.key}: {damage}", hint=_REPAIR) from damage
    except FirnlineError as known:
        raise type(known)(f"{unit.kind} {unit.key}: {known.message}", known.hint) from known
