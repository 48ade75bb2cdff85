"""What an executor does in a round of the walk: it opens units, several at a time, and errors travel as rows.

Spark would only try again and then bury the reason. What Spark itself says of a job that failed is told in one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from zipimport import zipimporter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from firnline import errors
from firnline.errors import FirnlineError
from firnline.memory import keep_freed_memory
from firnline.model.files import File, FileKind
from firnline.model.locations import identity
from firnline.ports.expanding import Expand, Expanded, Opener, opener
from firnline.spark.spread import Spread


def forget_zip_importers() -> None:
    """Drops Python's importers of zip archives; whatever is still to be imported from one is found again.

    Before every task PySpark makes Python forget what it knows of its import paths, and every zip importer then reads
    the directory of its archive again. An executor has one for each package that it took from pyspark.zip: 0.2 s of
    every task, however small, on Python 3.11.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            sys.path_importer_cache.pop(path, None)


_HINT = "its page, or the executors' logs, say more; then try again"


def told(problem: FirnlineError) -> str:
    """Returns the error as text. Its class is the nearest one in the tree that everybody knows; adapters have finer."""
    known = next(each.__name__ for each in type(problem).__mro__ if each.__module__ == FirnlineError.__module__)
    return json.dumps([known, problem.message, problem.hint])


def raise_told(said: str | None) -> None:
    """Raises the error that an executor told; returns where it told none."""
    if said:
        kind, message, hint = json.loads(said)
        raise getattr(errors, kind)(message, hint)


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Around jobs: raises FirnlineError where Spark could not carry one out."""
    try:
        yield
    except (PySparkException, Py4JError) as problem:  # rows that are streamed fail with the JVM's own words
        raise FirnlineError(f"Spark failed while {what}: {said_by(problem)}", _HINT) from problem


def said_by(problem: Exception) -> str:
    """Returns the last error that is named: the lines before it say through which code, those after it are advice."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    named = [line for line in lines if "Error: " in line]
    return (named or lines or [type(problem).__name__])[-1]


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


class Opening:
    """Opens the units of one kind in each batch; picklable, so that it reaches executors as it is.

    `look` makes this walk's function another one than every other walk's. A unit that cannot be read is told in many
    rows, each under another name, so that they reach every part of a shuffle (`Spread.telling`):

    1. A task reads its units; half of the tasks that take its rows are done.
    2. Its executor is lost, so Spark runs the task again, and now the store does not answer.
    3. One row that says so may belong to a part that is done: nobody would see it, and what the other parts miss is a
       file that seems to be needed by nobody.
    """

    def __init__(self, expand: Expand, kind: FileKind, look: str, spread: Spread) -> None:
        self._expand = expand
        self._kind = kind
        self._look = look
        self._threads = spread.threads
        self._telling = spread.telling

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        keep_freed_memory()
        with opener(self._expand, self._threads) as opened:
            for batch in batches:
                yield from self._through(batch, opened)

    def _through(self, batch: pa.RecordBatch, opened: Opener) -> Iterator[pa.RecordBatch]:
        due = pc.and_(batch.column("opens"), pc.equal(batch.column("kind"), self._kind.value))
        passing = batch.filter(pc.invert(due))
        if len(passing):
            yield pa.record_batch([passing.column(field.name).cast(field.type) for field in ROWS], schema=ROWS)
        needs, *facts = (batch.filter(due).column(name).to_pylist() for name in ("needed", "key", "size", "expects"))
        units = [File(self._kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]
        waiting = set(range(len(units)))
        try:
            for numbers, answer in opened(units):
                yield merged(_with_need(answer, needs))
                waiting.difference_update(numbers)
        except FirnlineError as problem:
            yield self._unreadable(units[min(waiting)].key, problem)

    def _unreadable(self, key: str, problem: FirnlineError) -> pa.RecordBatch:
        row = [key, None, self._kind.value, False, True, None, told(problem)]
        return rows_to_tell(key, row, ROWS, self._telling)


def rows_to_tell(key: str, row: Sequence[object], schema: pa.Schema, telling: int) -> pa.RecordBatch:
    """Returns rows that tell of a unit that cannot be read. `row` is what they have in common: all but their names."""
    names = pa.array([f"{identity(key)}#{number}" for number in range(telling)], pa.string())
    rest = zip(row, list(schema)[1:], strict=True)
    columns = [names, *(pa.array([value] * telling, field.type) for value, field in rest)]
    return pa.record_batch(columns, schema=schema)


def _with_need(found: Expanded, needs: list[bool]) -> pa.RecordBatch:
    """Returns the rows that units named, each needed as its unit is."""
    nothing = [pa.nulls(len(found.rows), kind) for kind in (pa.int64(), pa.string())]
    needed = pa.array(np.asarray(needs, dtype=bool)[found.of])
    return pa.record_batch([*found.rows.columns, needed, *nothing], schema=ROWS)


def merged(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns what some units name, units that more than one of them names only once.

    Lists that follow each other name nearly the same manifests: most of the rows need not leave the executor.
    """
    deeper, rest = rows.filter(rows.column("opens")), rows.filter(pc.invert(rows.column("opens")))
    return pa.concat_batches([rest, _once(deeper)]) if len(deeper) else rows


def _once(units: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the units without equal rows. Rows that differ in anything stay: they are judged where all meet."""
    table = pa.Table.from_batches([units])
    (batch,) = table.group_by(ROWS.names).aggregate([]).select(ROWS.names).combine_chunks().to_batches()
    return pa.record_batch(batch.columns, schema=ROWS)
