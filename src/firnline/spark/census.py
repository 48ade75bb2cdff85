"""The census on Spark: what was listed, joined with what is reached, by one shuffle of hashed paths.

Objects that are one have one path, and near misses too: so a single join finds both, and what it finds is compared
letter by letter. A hash is only where rows meet. Both sides are kept by local checkpoints, so that what was counted
is what is streamed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import StoreError
from firnline.model.files import FileKind, Tally, Totals
from firnline.ports.engines import FILE_COLUMNS
from firnline.ports.listings import SORTED_COLUMNS, VICTIM_COLUMNS, ObjectClass, Sort
from firnline.spark.judged import each_kind
from firnline.spark.streaming import streamed
from firnline.spark.telling import forget_zip_importers, raise_told
from firnline.walking.verdicts import KEPT, VERDICTS

if TYPE_CHECKING:
    from pyspark.sql import Column

NEAR_MISSES_SHOWN = 20
_REACHED = pa.schema(
    [
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.string()),
        ("needed", pa.bool_()),
        ("error", pa.string()),
        ("path", pa.string()),
    ]
)
_REACHED_DDL = "identity string, key string, size bigint, kind string, needed boolean, error string, path string"
_SORTED_DDL = (
    "key string, size bigint, modified_ms bigint, etag string, identity string, path string, class string, kind string"
)


@dataclass(frozen=True, slots=True)
class Sum:
    """How many objects of one class and kind there are, and how many of them some root reaches."""

    of: ObjectClass
    kind: str | None
    reached: bool
    tally: Tally


@dataclass(frozen=True, slots=True)
class SparkCensus:
    """A census whose rows stay on the cluster until nobody holds this any more; only sums were collected."""

    objects: DataFrame
    units: DataFrame
    sums: tuple[Sum, ...]
    near_misses: tuple[tuple[str, str], ...]
    units_opened: int
    of: str = ""

    @property
    def classes(self) -> Mapping[ObjectClass, Tally]:
        return {each: sum((row.tally for row in self.sums if row.of is each), Tally()) for each in ObjectClass}

    @property
    def victims(self) -> Totals:
        victims = (row for row in self.sums if row.of is ObjectClass.VICTIM)
        return Totals.of((FileKind(str(row.kind)), row.tally) for row in victims)

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        victims = self.objects.filter(F.col("class") == ObjectClass.VICTIM.value)
        return streamed(victims.select(*VICTIM_COLUMNS), self.victims.all.files, self.of)

    def document_batches(self) -> Iterator[pa.RecordBatch]:
        metadata = FileKind.METADATA.value
        count = sum(row.tally.files for row in self.sums if row.kind == metadata and not row.reached)
        documents = self.objects.filter((F.col("kind") == metadata) & ~F.col("is_reached"))
        return streamed(documents.select(*VICTIM_COLUMNS), count, self.of)

    def unit_batches(self) -> Iterator[pa.RecordBatch]:
        return streamed(self.units.select(*FILE_COLUMNS), self.units_opened, self.of)

    def close(self) -> None:
        return None


def take(listed: DataFrame, files: DataFrame, kinds: Iterable[FileKind], sort: Sort, of: str = "") -> SparkCensus:
    """Returns the census of what was listed against all files that roots reach. `kinds`: those of units."""
    is_unit = F.col("kind").isin([kind.value for kind in kinds])
    reached = _kept(_placed(files.mapInArrow(_pathing(sort), _REACHED_DDL)))
    ((error, opened),) = reached.agg(F.max("error"), F.count_if(is_unit)).collect()
    raise_told(error)
    objects = _kept(_classed(_placed(listed.mapInArrow(_sorting(sort), _SORTED_DDL)), reached))
    sums, doubtful = _sums(objects)
    if doubtful:
        _refuse_doubles(objects)
    near = _near_misses(objects) if any(each.of is ObjectClass.NEAR_MISS for each in sums) else ()
    return SparkCensus(objects, reached.filter(is_unit), sums, near, opened, of)


def _kept(rows: DataFrame) -> DataFrame:
    return rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _placed(rows: DataFrame) -> DataFrame:
    """Adds `place`: eight bytes sort and travel faster than paths that all begin alike."""
    return rows.withColumn("place", F.xxhash64("path"))


def _classed(objects: DataFrame, reached: DataFrame) -> DataFrame:
    """Returns the objects in their classes, with `is_reached` and the key of what a near miss is near to."""
    names = F.struct("identity", "path", "key", "needed")
    there = reached.groupBy("place").agg(F.collect_list(names).alias("there"))
    joined = objects.join(there, "place", "left")
    same = _any(lambda each: each["identity"] == F.col("identity"))
    needed = _any(lambda each: (each["identity"] == F.col("identity")) & each["needed"])
    near = _any(lambda each: each["path"] == F.col("path"))
    sorted_as = F.col("class")
    of = (
        F.when(needed, ObjectClass.NEEDED.value)
        .when(same, ObjectClass.ANOTHER_TABLE.value)
        .when((sorted_as == ObjectClass.VICTIM.value) & near, ObjectClass.NEAR_MISS.value)
        .otherwise(sorted_as)
    )
    neighbours = F.filter("there", lambda each: each["path"] == F.col("path"))
    return joined.select(
        "place",
        *VICTIM_COLUMNS,
        of.alias("class"),
        same.alias("is_reached"),
        F.when(near & ~same, F.get(neighbours, F.lit(0))["key"]).alias("near_to"),
    )


def _any(test: object) -> Column:
    return F.coalesce(F.exists("there", test), F.lit(False))  # type: ignore[arg-type]


def _sums(objects: DataFrame) -> tuple[tuple[Sum, ...], bool]:
    """Returns the sums, and whether some objects meet at one place, so that two of them may be one."""
    by_class = objects.groupBy("class", "kind", "is_reached").agg(F.count("*").alias("n"), F.sum("size").alias("bytes"))
    crowded = objects.groupBy("place").agg(F.count("*").alias("here")).filter("here > 1").agg(F.count("*").alias("n"))
    rows = by_class.unionByName(crowded, allowMissingColumns=True).collect()
    sums = tuple(
        Sum(ObjectClass(row["class"]), row["kind"], row["is_reached"], Tally(row["n"], row["bytes"] or 0))
        for row in rows
        if row["class"] is not None
    )
    return sums, any(row["class"] is None and row["n"] for row in rows)


def _near_misses(objects: DataFrame) -> tuple[tuple[str, str], ...]:
    near = objects.filter(F.col("class") == ObjectClass.NEAR_MISS.value).select("key", "near_to")
    return tuple((row["key"], row["near_to"]) for row in near.orderBy("key").limit(NEAR_MISSES_SHOWN).collect())


def _refuse_doubles(objects: DataFrame) -> None:
    """Raises where two rows are one object. Hashes say where to look, so that nearly nothing is compared."""
    suspects = objects.groupBy("place").count().filter("count > 1").select("place")
    doubled = objects.join(suspects, "place", "left_semi").groupBy("identity").count().filter("count > 1").limit(1)
    for row in doubled.collect():
        raise StoreError(
            f"the listing names {row['identity']!r} twice", "a folder marker may have the name of a file: remove it"
        )


class _sorting:
    """Sorts each batch of what was listed. `look` makes every census's function another one."""

    def __init__(self, sort: Sort) -> None:
        self._sort = sort
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        for batch in batches:
            yield self._sort(batch).select(list(SORTED_COLUMNS))


class _pathing:
    """Gives each file that is reached the name it is compared by, and its path."""

    def __init__(self, sort: Sort) -> None:
        self._sort = sort
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        for one in chain.from_iterable(map(each_kind, batches)):
            needed = one.verdict == VERDICTS.index(KEPT)
            if one.error is not None:
                yield pa.record_batch([[None]] * 5 + [[one.error], [None]], schema=_REACHED)
            else:
                for batch in one.batches():
                    yield self._named(batch, needed)

    def _named(self, files: pa.RecordBatch, needed: bool) -> pa.RecordBatch:
        names = self._sort.names(files.column("identity"))
        said = {"needed": pa.repeat(pa.scalar(needed), len(files)), "error": pa.nulls(len(files), pa.string())}
        said |= {name: files.column(name) for name in ("key", "size", "kind")}
        said |= {"identity": names, "path": self._sort.paths(names)}
        return pa.record_batch([said[name] for name in _REACHED.names], schema=_REACHED)
