"""Listing on executors: each task reads some pieces to their end, and sees whether two roads lead to one folder.

Names are compared on executors as they are called. Where two of them may mean one file, that is not enough: such a
table is left to the engine that compares real names.

The rows are kept by a local checkpoint and never computed again. A listing that Spark quietly repeated after the roots
were read would show files that the roots do not know yet; where an executor takes its rows with it, the job that needs
them fails instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline.errors import FirnlineError, RefusedForSafety
from firnline.model.files import Tally
from firnline.ports.engines import Territory
from firnline.ports.listings import LISTED_COLUMNS, KeyRange, ListRanges
from firnline.spark.opening import forget_zip_importers, raise_told, told
from firnline.spark.streaming import described

_LOCAL = "file:///"


def refuse_two_roads(files: DataFrame, elsewhere: DataFrame | None, territory: Territory) -> None:
    """Raises RefusedForSafety if two local folders of these files are one, or if one from which files may go only seems
    to be the table's own.

    Only folders are looked at, each once; a table that has no local folder costs nothing.
    """
    if territory.inside is not None and not any(stem.startswith(_LOCAL) for stem in territory.inside):
        return
    names = files.select("identity", "needed")
    if elsewhere is not None:
        names = names.union(elsewhere.select("identity", F.lit(True)))
    local = names.filter(F.col("identity").startswith(_LOCAL))
    # A pattern costs a second for a million files; where the name begins is found for a tenth of that.
    folder = F.expr("left(identity, length(identity) - length(substring_index(identity, '/', -1)))")
    rows = local.groupBy(folder.alias("folder")).agg(F.min("needed").alias("needed"))
    _refuse_doubles(((row["folder"], row["needed"]) for row in rows.toLocalIterator()), territory)


def _refuse_doubles(folders: Iterable[tuple[str, bool]], territory: Territory) -> None:
    own = territory.inside or ("",)
    real_own = tuple(map(territory.real, own))
    called: dict[str, str] = {}
    for folder, all_stays in folders:
        real = territory.real(folder)
        other = called.setdefault(real, folder)
        if other != folder:
            raise _refusal(f"{min(folder, other)} and {max(folder, other)} are one folder")
        if not all_stays and folder.startswith(own) != real.startswith(real_own):
            raise _refusal(f"{folder} is really {real}")


def _refusal(what: str) -> RefusedForSafety:
    return RefusedForSafety(
        f"{what}: what is needed by one name would go by the other",
        hint="plan with --engine local, which tells them apart",
    )


_PIECES = pa.schema(
    [
        ("folder", pa.string()),
        ("deep", pa.bool_()),
        ("after", pa.string()),
        ("until", pa.string()),
        ("block", pa.int32()),
    ]
)
_ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
        ("etag", pa.string()),
        ("error", pa.string()),
    ]
)
_ROWS_DDL = "key string, size bigint, modified_ms bigint, etag string, error string"
_FEWEST_TASKS, _MOST_TASKS, _PIECES_PER_TASK = 8, 2_000, 8


@dataclass(frozen=True, slots=True)
class SparkListing:
    """A listing whose rows stay on the cluster until nobody holds this any more."""

    rows: DataFrame
    all: Tally
    newest_ms: int | None

    def close(self) -> None:
        return None


def list_pieces(session: SparkSession, pieces: Iterable[KeyRange], source: ListRanges, of: str = "") -> SparkListing:
    """Returns the listing, complete. Raises what any piece raised."""
    asked = [(piece.folder, piece.deep, piece.after, piece.until, piece.block) for piece in pieces]
    columns = list(zip(*asked, strict=True)) or [() for _ in _PIECES]
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, _PIECES, strict=True)], _PIECES)
    tasks = min(max(len(asked), 1), _MOST_TASKS, max(_FEWEST_TASKS, len(asked) // _PIECES_PER_TASK))
    with described(session, f"listing {len(asked):,} pieces", of):
        spread = session.createDataFrame(table).repartition(tasks)
        found = spread.mapInArrow(_listing(source), _ROWS_DDL).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        sums = found.agg(F.count("key"), F.sum("size"), F.max("modified_ms"), F.max("error")).collect()
    ((count, size, newest, error),) = sums
    raise_told(error)
    return SparkListing(found.select(*LISTED_COLUMNS), Tally(count, size or 0), newest)


class _listing:
    """Lists the pieces of each batch; picklable, so that it reaches executors as it is.

    `look` makes every listing's function another one, so that no session takes an earlier listing for its answer.
    """

    def __init__(self, source: ListRanges) -> None:
        self._source = source
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        try:
            for batch in batches:
                for row in batch.to_pylist():
                    for found in self._source.batches(KeyRange(**row)):
                        yield _without_error(found)
        except FirnlineError as problem:
            yield pa.record_batch([[None], [None], [None], [None], [told(problem)]], schema=_ROWS)


def _without_error(found: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([*found.columns, pa.nulls(len(found), pa.string())], schema=_ROWS)
