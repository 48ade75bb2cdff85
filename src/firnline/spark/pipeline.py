"""The survey as a pipeline of DataFrames: open units kind by kind, then one aggregation that judges every file.

Rows travel through every round: a unit that is due is replaced by itself (now with its size) and by what it names,
any other row passes unchanged. So the lineage is one chain, nothing is cached, and each unit is opened once.
An executor that cannot read a unit sends a row that says so instead of failing its task: Spark would only try
again and then bury the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from firnline.ports.engines import ELSEWHERE, NEAR_MISS, OUTSIDE, Territory
from firnline.ports.expanding import Expand
from firnline.spark.opening import ROWS_DDL, Opening
from firnline.spark.spread import Spread

if TYPE_CHECKING:
    from pyspark.sql import Column

Once = Callable[..., DataFrame]
"""From rows and the names of columns that tell files apart to one row for each."""

KEPT, VICTIM, UNREADABLE = "kept", "victim", "unreadable"
_FEW_FOLDERS = 32
_STEM = r"^[^:]+://[^/]*"


def walk(rows: DataFrame, expand: Expand, spread: Spread) -> DataFrame:
    """Returns one row per file that the rows reach. The rows are one per unit, each with the task that opens it.

    Every walk looks for itself: a session hands out what it holds in memory of any plan that is equal, so an earlier
    walk from the same roots would answer for a unit that is gone by now.
    """
    look = uuid4().hex
    placed = rows.repartitionById(spread.tasks, F.col("task")).drop("task")
    *upper, last = expand.order
    for kind in upper:
        found = placed.mapInArrow(Opening(expand, kind, look, spread), ROWS_DDL)
        placed = dealt(found, spread.tasks)
    # Files are hardly ever named twice by one task: to look for those before they travel would sort all of them twice.
    found = placed.mapInArrow(Opening(expand, last, look, spread), ROWS_DDL).repartition("identity")
    return one_per_file(found, "identity")


def dealt(rows: DataFrame, tasks: int, once: Once | None = None, within: Sequence[str] = ()) -> DataFrame:
    """Returns one row per file, dealt to tasks like cards, the longest first: each task gets as much to read.

    Hands of cards are dealt apart, so that no single task has to sort them all. `within` orders the rows of one file
    where there are several: a task that runs again must deal the same way, or a row comes twice and another never.
    """
    hand = F.pmod(F.xxhash64("identity"), F.lit(tasks)).alias("hand")
    each = (once or one_per_file)(rows.select("*", hand).repartition(tasks, "hand"), "hand", "identity")
    longest_first = Window.partitionBy("hand").orderBy(F.desc_nulls_first("size"), "identity", *within)
    task = F.pmod(F.row_number().over(longest_first) + F.col("hand"), F.lit(tasks))
    return each.withColumn("task", task.cast("int")).repartitionById(tasks, F.col("task")).drop("task", "hand")


def one_per_file(rows: DataFrame, *by: str) -> DataFrame:
    """Returns one row per identity: needed if any row of it is, its bytes counted once. `by` names the identity."""
    return rows.groupBy(*by).agg(
        F.min("key").alias("key"),
        F.max("size").alias("size"),
        F.min("kind").alias("kind"),
        F.max("opens").alias("opens"),
        F.max("needed").alias("needed"),
        F.max("expects").alias("expects"),
        F.max("error").alias("error"),
    )


def stem() -> Column:
    """Returns scheme and authority of each file; where all have one, no two can be a near miss."""
    return F.substring_index("identity", "/", 3)


def judge(files: DataFrame, territory: Territory, near_misses: bool, elsewhere: DataFrame | None = None) -> DataFrame:
    """Returns the files with a column `verdict`. A file is a victim only if every check lets it go.

    `elsewhere` are the files that other tables need.
    """
    verdict = (
        F.when(F.col("error").isNotNull(), UNREADABLE)
        .when(F.col("needed"), KEPT)
        .when(F.col("near_miss"), NEAR_MISS)
        .when(~_inside(territory), OUTSIDE)
        .when(F.col("elsewhere"), ELSEWHERE)
        .otherwise(VICTIM)
    )
    checked = _with_near_misses(files) if near_misses else files.withColumn("near_miss", F.lit(False))
    asked = _marked(checked, elsewhere, "elsewhere")
    return asked.withColumn("verdict", verdict).drop("near_miss", "elsewhere", "opens", "needed", "expects")


def _with_near_misses(files: DataFrame) -> DataFrame:
    """Adds `near_miss`: a needed file has the same path under another scheme or authority."""
    return _marked(files, files.filter("needed"), "near_miss")


def _marked(files: DataFrame, others: DataFrame | None, name: str) -> DataFrame:
    """Adds a column that tells whether a file has the path of one of the others."""
    if others is None:
        return files.withColumn(name, F.lit(False))
    path = F.regexp_replace("identity", _STEM, "").alias("path")
    paths = others.select(path).distinct().withColumn(name, F.lit(True))
    joined = files.select("*", path).join(paths, "path", "left").drop("path")
    return joined.withColumn(name, F.coalesce(name, F.lit(False)))


def _inside(territory: Territory) -> Column:
    own = territory.inside
    inside = F.lit(True) if own is None else _begins_with(own)
    return inside & ~_begins_with(territory.outside)


def _begins_with(stems: Sequence[str]) -> Column:
    if len(stems) > _FEW_FOLDERS:  # Spark walks an expression by recursion: a thousand terms are one pattern
        return F.col("identity").rlike(f"^(?:{'|'.join(map(re.escape, stems))})")
    found = F.lit(False)
    for each in stems:
        found = found | F.col("identity").startswith(each)
    return found
