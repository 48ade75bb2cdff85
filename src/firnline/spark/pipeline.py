"""The survey as a pipeline of DataFrames: open units kind by kind, then one aggregation that judges every file.

Rows travel through every round: a unit that is due is replaced by itself (now with its size) and by what it names,
any other row passes unchanged. So the lineage is one chain, nothing is cached, and each unit is opened once.
An executor that cannot read a unit sends a row that says so instead of failing its task: Spark would only try
again and then bury the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.model.files import File, FileKind
from firnline.model.locations import identity
from firnline.ports.engines import NEAR_MISS, OUTSIDE, Territory
from firnline.ports.formats import Expand
from firnline.spark.importers import forget_zip_importers
from firnline.spark.troubles import told

if TYPE_CHECKING:
    from pyspark.sql import Column

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
KEPT, VICTIM, UNREADABLE = "kept", "victim", "unreadable"
_STEM = r"^[^:]+://[^/]*"


def walk(rows: DataFrame, expand: Expand, tasks: int) -> DataFrame:
    """Returns one row per file that the rows reach.

    Every walk looks for itself: a session hands out what it holds in memory of any plan that is equal, so an earlier
    walk from the same roots would answer for a unit that is gone by now.
    """
    look = uuid4().hex
    for kind in expand.order:
        due = one_per_file(rows).repartition(tasks)
        rows = due.mapInArrow(_opening(expand, kind, look), ROWS_DDL)
    return one_per_file(rows)


def one_per_file(rows: DataFrame) -> DataFrame:
    """Returns one row per identity: needed if any row of it is, its bytes counted once."""
    return rows.groupBy("identity").agg(
        F.min("key").alias("key"),
        F.max("size").alias("size"),
        F.min("kind").alias("kind"),
        F.max("opens").alias("opens"),
        F.max("needed").alias("needed"),
        F.max("expects").alias("expects"),
        F.max("error").alias("error"),
    )


def has_several_stems(files: DataFrame) -> bool:
    """Tells whether the files have more than one scheme and authority; with one, no two can be a near miss."""
    return files.select(F.regexp_extract("identity", _STEM, 0).alias("stem")).distinct().limit(2).count() > 1


def judge(files: DataFrame, territory: Territory, near_misses: bool) -> DataFrame:
    """Returns the files with a column `verdict`. A file is a victim only if every check lets it go."""
    verdict = (
        F.when(F.col("error").isNotNull(), UNREADABLE)
        .when(F.col("needed"), KEPT)
        .when(F.col("near_miss"), NEAR_MISS)
        .when(~_inside(territory), OUTSIDE)
        .otherwise(VICTIM)
    )
    checked = _with_near_misses(files) if near_misses else files.withColumn("near_miss", F.lit(False))
    return checked.withColumn("verdict", verdict).drop("near_miss", "opens", "needed", "expects")


def _with_near_misses(files: DataFrame) -> DataFrame:
    """Adds `near_miss`: a needed file has the same path under another scheme or authority."""
    by_path = files.withColumn("path", F.regexp_replace("identity", _STEM, ""))
    needed = by_path.filter("needed").select("path").distinct().withColumn("near_miss", F.lit(True))
    joined = by_path.join(needed, "path", "left").drop("path")
    return joined.withColumn("near_miss", F.coalesce("near_miss", F.lit(False)))


def _inside(territory: Territory) -> Column:
    if territory.owned is None:
        return F.lit(True)
    inside = F.lit(False)
    for root in territory.owned:
        inside = inside | F.col("identity").startswith(identity(root).rstrip("/") + "/")
    return inside


class _opening:
    """Opens the units of one kind in each batch; picklable, so that it reaches executors as it is.

    `look` makes this walk's function another one than every other walk's.
    """

    def __init__(self, expand: Expand, kind: FileKind, look: str) -> None:
        self._expand = expand
        self._kind = kind
        self._look = look

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        for batch in batches:
            yield from self._through(batch)

    def _through(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        due = [opens and kind == self._kind for opens, kind in self._columns(batch, "opens", "kind")]
        passing = batch.filter(pa.array([not each for each in due], pa.bool_()))
        if len(passing):
            yield passing.select(ROWS.names)
        units = batch.filter(pa.array(due, pa.bool_()))
        for key, size, needed, expects in self._columns(units, "key", "size", "needed", "expects"):
            yield self._opened(File(self._kind, key, size, True, expects), needed)

    def _opened(self, unit: File, needed: bool) -> pa.RecordBatch:
        try:
            named = self._expand(unit)
        except FirnlineError as problem:
            row = [
                [identity(unit.key)],
                [unit.key],
                [None],
                [self._kind.value],
                [False],
                [True],
                [None],
                [told(problem)],
            ]
            return pa.record_batch(row, schema=ROWS)
        nothing = [pa.nulls(len(named), kind) for kind in (pa.int64(), pa.string())]
        columns = [*named.columns, pa.repeat(pa.scalar(needed), len(named)), *nothing]
        return pa.record_batch(columns, schema=ROWS)

    @staticmethod
    def _columns(batch: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
        return zip(*(batch.column(name).to_pylist() for name in names), strict=True)
