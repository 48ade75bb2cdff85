"""The layouts that the files of one table lie in: each file in that of the schema with which it was written.

`REPLACE TABLE` keeps old snapshots and may change partitions and options; a branch may have been given options of its
own while it was empty. A manifest holds entries of several schemas, and nothing in it says of which branch it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import ObjectNotFound, UnreadableMetadata
from firnline.formats.paimon.reading.schema import read_schema, stored_schemas
from firnline.formats.paimon.walking.entries import Named
from firnline.formats.paimon.walking.layout import Layout, Numbers
from firnline.ports.expanding import SideBySide
from firnline.ports.stores import Read

Rows = Callable[[pa.RecordBatch, Numbers, Layout], Named]
_SCHEMA_ID, _UNTOLD = "_FILE._SCHEMA_ID", -1
_THREADS = 8


class Layouts:
    """Schemas are listed at once and read when a file of theirs is met, each once."""

    def __init__(self, store: Read, location: str) -> None:
        self._store = store
        self._location = location
        self._branches = stored_schemas(store, location)
        self._read: dict[str, Layout] = {}

    @cached_property
    def only(self) -> str | None:
        """The one layout of all schemas of all branches, whichever a file was written with, in words; None where they
        differ: then where a file lies also depends on where one is found.
        """
        keys = [key for branch in self._branches for key in branch.values()]
        with ThreadPoolExecutor(_THREADS) as pool:
            every = set(SideBySide(pool)(self._of_key, keys))
        return repr(every.pop()) if len(every) == 1 else None

    def placed(self, found: pa.RecordBatch, of: Numbers, rows: Rows) -> Named:
        """Returns the rows of entries, each in the layout of its schema. Those of indexes do not say which that is:
        they lie in any of the table's.
        """
        numbers = _schema_numbers(found)
        every = {number: self._of_schema(number) for number in np.unique(numbers).tolist() or [_UNTOLD]}
        if len({layout for each in every.values() for layout in each}) == 1:
            return rows(found, of, next(iter(every.values()))[0])
        parts = []
        for number, unit in sorted({*zip(numbers.tolist(), of.tolist(), strict=True)}):
            chosen = np.flatnonzero((numbers == number) & (of == unit))
            parts.append(self._tried(found.take(pa.array(chosen)), of[chosen], every[number], rows))
        return pa.concat_batches([each for each, _ in parts]), np.concatenate([each for _, each in parts])

    def _of_schema(self, number: int) -> list[Layout]:
        """Returns the layouts of the schema of this number in each branch that has one, the main branch's first; those
        of the newest schemas where none has it any more.
        """
        if number == _UNTOLD:
            keys = [branch[each] for branch in self._branches for each in sorted(branch, reverse=True)]
        else:
            keys = [branch[number] for branch in self._branches if number in branch]
        return list(dict.fromkeys(map(self._of_key, keys or [branch[max(branch)] for branch in self._branches])))

    def _of_key(self, key: str) -> Layout:
        if key not in self._read:
            self._read[key] = Layout.of(self._location, read_schema(self._store, key))
        return self._read[key]

    def _tried(self, found: pa.RecordBatch, of: Numbers, layouts: Sequence[Layout], rows: Rows) -> Named:
        """Returns the rows in the layout in which a file of them is there: no name is given twice. Where no file is
        there, in the first layout that can be.
        """
        readings: list[Named] = []
        damages: list[UnreadableMetadata] = []
        for layout in layouts:
            try:
                readings.append(rows(found, of, layout))
            except UnreadableMetadata as damage:
                damages.append(damage)
        if not readings:
            raise damages[0]
        columns = [each.column("key").to_pylist() for each, _ in readings]
        if all(keys == columns[0] for keys in columns):
            return readings[0]
        there = (place for keys in zip(*columns, strict=True) for place, key in enumerate(keys) if self._is_there(key))
        return readings[next(there, 0)]

    def _is_there(self, key: str) -> bool:
        try:
            self._store.head(key)
        except ObjectNotFound:
            return False
        return True


def _schema_numbers(found: pa.RecordBatch) -> Numbers:
    if _SCHEMA_ID not in found.schema.names:
        return np.full(len(found), _UNTOLD, dtype=np.int64)
    told: Numbers = pc.fill_null(found.column(_SCHEMA_ID), _UNTOLD).to_numpy(zero_copy_only=False)
    return told
