"""What an executor does in a round of the walk: it opens units, several at a time, and passes on all other rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError
from firnline.model.files import File, FileKind
from firnline.model.locations import identity
from firnline.ports.formats import Expand
from firnline.spark.importers import forget_zip_importers
from firnline.spark.troubles import told

ROWS = pa.schema(
    [
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.string()),
        ("opens", pa.bool_()),
        ("needed", pa.bool_()),
        ("expects", pa.int64()),
        ("error", pa.string()),
    ]
)
ROWS_DDL = (
    "identity string, key string, size bigint, kind string, opens boolean, needed boolean, expects bigint, error string"
)
_UNITS_AT_ONCE = 64
"""Opened before their rows leave: so many answers are in memory at a time."""


class Opening:
    """Opens the units of one kind in each batch; picklable, so that it reaches executors as it is.

    `look` makes this walk's function another one than every other walk's.
    """

    def __init__(self, expand: Expand, kind: FileKind, look: str, threads: int) -> None:
        self._expand = expand
        self._kind = kind
        self._look = look
        self._threads = threads

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        with ThreadPoolExecutor(self._threads) as pool:
            for batch in batches:
                yield from self._through(batch, pool)

    def _through(self, batch: pa.RecordBatch, pool: ThreadPoolExecutor) -> Iterator[pa.RecordBatch]:
        due = pc.and_(batch.column("opens"), pc.equal(batch.column("kind"), self._kind.value))
        passing = batch.filter(pc.invert(due))
        if len(passing):
            yield passing.select(ROWS.names)
        units = batch.filter(due)
        for start in range(0, len(units), _UNITS_AT_ONCE):
            yield merged(list(pool.map(self._opened, *self._columns(units.slice(start, _UNITS_AT_ONCE)))))

    @staticmethod
    def _columns(units: pa.RecordBatch) -> Iterator[list[Any]]:
        return (units.column(name).to_pylist() for name in ("key", "size", "expects", "needed"))

    def _opened(self, key: str, size: int | None, expects: int | None, needed: bool) -> pa.RecordBatch:
        try:
            named = self._expand(File(self._kind, key, size, True, expects))
        except FirnlineError as problem:
            return self._unreadable(key, problem)
        nothing = [pa.nulls(len(named), kind) for kind in (pa.int64(), pa.string())]
        columns = [*named.columns, pa.repeat(pa.scalar(needed), len(named)), *nothing]
        return pa.record_batch(columns, schema=ROWS)

    def _unreadable(self, key: str, problem: FirnlineError) -> pa.RecordBatch:
        row = [identity(key), key, None, self._kind.value, False, True, None, told(problem)]
        return pa.record_batch([[value] for value in row], schema=ROWS)


def merged(found: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns what several units name in one batch, units that more than one of them names only once.

    Lists that follow each other name nearly the same manifests: most of the rows need not leave the executor.
    """
    rows = pa.concat_batches(found)
    units, rest = rows.filter(rows.column("opens")), rows.filter(pc.invert(rows.column("opens")))
    if len(found) < 2 or not len(units):
        return rows
    return pa.concat_batches([rest, _once(units)])


def _once(units: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the units without equal rows. Rows that differ in anything stay: they are judged where all meet."""
    table = pa.Table.from_batches([units])
    (batch,) = table.group_by(ROWS.names).aggregate([]).select(ROWS.names).combine_chunks().to_batches()
    return pa.record_batch(batch.columns, schema=ROWS)
