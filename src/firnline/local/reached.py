"""Files that walks reached, in this process: found by sorted marks, so that a question costs no look at all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa

from firnline.local.rows import Numbers, in_batches
from firnline.ports.engines import REACHED_COLUMNS, Survey
from firnline.ports.stores import RealNames
from firnline.walking.arrow import column_of
from firnline.walking.reached import REACHED, marked, marks

_PARTS = 4
_BATCH_ROWS = 65_536


class _Part:
    """Rows of REACHED, with the order of each of their marks."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._by_path, self._by_name = (_Order(rows.column(name)) for name in ("path_mark", "name_mark"))

    def find(self, paths: pa.Array, names: pa.Array) -> pa.Table:
        places = np.union1d(self._by_path.places(paths), self._by_name.places(names))
        return self.rows.select(list(REACHED_COLUMNS)).take(column_of(places))


class _Order:
    def __init__(self, found: pa.ChunkedArray) -> None:
        at = np.flatnonzero(found.is_valid().to_numpy())
        values = found.drop_null().to_numpy()
        order = np.argsort(values)
        self._marks, self._places = values[order], at[order]

    def places(self, wanted: pa.Array) -> Numbers:
        """Returns the numbers of the rows that have one of these marks."""
        asked = np.unique(wanted.to_numpy(zero_copy_only=False))
        first, end = (np.searchsorted(self._marks, asked, side) for side in ("left", "right"))
        spans = [self._places[a:b] for a, b in zip(first.tolist(), end.tolist(), strict=True) if a < b]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans])


class LocalReached:
    """Parts of rows, of which several become one with each file once."""

    def __init__(self, everywhere: bool, real: RealNames) -> None:
        self._everywhere = everywhere
        self._real = real
        self._parts: list[_Part] = []

    def add(self, survey: Survey, walk: int, *, by_name: bool = False) -> None:
        names = (batch.column("identity") for batch in survey.kept_batches())
        rows = [marked(each, walk, by_name, self._everywhere, self._real) for each in names]
        self._parts.append(_Part(pa.Table.from_batches(rows, REACHED)))
        if len(self._parts) > _PARTS:
            self._parts = [_Part(_each_once(pa.concat_tables(part.rows for part in self._parts)))]

    def find(self, paths: Collection[str], names: Collection[str]) -> Iterator[pa.RecordBatch]:
        asked = [marks(pa.array(list(each), pa.string())) for each in (paths, names)]
        for part in self._parts:
            yield from in_batches(part.find(*asked), _BATCH_ROWS)


def _each_once(rows: pa.Table) -> pa.Table:
    """Returns each file once for both ways in which it may be found, with the first walk that reached it."""
    firsts = [(name, "min") for name in ("walk", "path_mark", "name_mark")]
    found = rows.group_by(["identity", "by_name"], use_threads=False).aggregate(firsts)
    return pa.table({name: found.column(_named(name, found)) for name in REACHED.names}, REACHED)


def _named(name: str, found: pa.Table) -> str:
    return name if name in found.column_names else f"{name}_min"
