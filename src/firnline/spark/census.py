"""The census on Spark: what was listed, joined with what is reached, by one shuffle of hashed paths.

Objects that are one have one path, and near misses too: so a single join finds both, and what it finds is compared
letter by letter. A hash is only where rows meet. Both sides are kept by local checkpoints, so that what was counted
is what is streamed later. Several tables are one census: a row is of the search that it was dealt to, and what is
reached says by whose walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from firnline.errors import FirnlineError, StoreError
from firnline.model.files import FileKind, Tally, Totals
from firnline.model.spans import Flags
from firnline.ports.engines import FILE_COLUMNS
from firnline.ports.listings import SORTED_COLUMNS, VICTIM_COLUMNS, ObjectClass, Sort
from firnline.spark.census_rows import OF_ALL, OnCluster, OnDisk
from firnline.spark.executors.beginning import begin_task
from firnline.spark.judged import each_kind
from firnline.spark.packets import with_short_offsets
from firnline.spark.telling import error_of
from firnline.walking.dealing import stopped_by

if TYPE_CHECKING:
    from pyspark.sql import Column

NEAR_MISSES_SHOWN = 20
_REACHED = pa.schema(
    [
        ("walk", pa.int32()),
        ("common", pa.bool_()),
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.string()),
        ("error", pa.string()),
        ("path", pa.string()),
    ]
)
_REACHED_DDL = (
    "walk int, common boolean, identity string, key string, size bigint, kind string, error string, path string"
)
_SORTED = ["search", "owners", "private", *SORTED_COLUMNS]
_SORTED_DDL = (
    "search int, owners array<int>, private array<int>, "
    "key string, size bigint, modified_ms bigint, etag string, identity string, path string, class string, kind string"
)


class Deal(Protocol):
    """Tells which objects, by their identities, are of which searches. Picklable."""

    def __call__(self, identities: pa.Array) -> tuple[Any, Any]: ...


class ToTheOne:
    """Deals every object to the only search."""

    def __call__(self, identities: pa.Array) -> tuple[Any, Any]:
        return np.arange(len(identities)), np.zeros(len(identities), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Sum:
    """How many objects of one class and kind there are, how many of them some root reaches, and how new they are."""

    of: ObjectClass
    kind: str | None
    reached: bool
    tally: Tally
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class SparkCensus:
    """A census of which only sums were collected: the rest comes when it is asked for."""

    rows: OnCluster | OnDisk
    search: int
    sums: tuple[Sum, ...]
    near_misses: tuple[tuple[str, str], ...]
    units_opened: int

    @property
    def classes(self) -> Mapping[ObjectClass, Tally]:
        return {each: sum((row.tally for row in self.sums if row.of is each), Tally()) for each in ObjectClass}

    @property
    def newest_ms(self) -> int | None:
        return max((row.newest_ms for row in self.sums if row.newest_ms is not None), default=None)

    @property
    def victims(self) -> Totals:
        victims = (row for row in self.sums if row.of is ObjectClass.VICTIM)
        return Totals.of((FileKind(str(row.kind)), row.tally) for row in victims)

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return self.rows.victims(self.search, self.victims.all.files)

    def document_batches(self) -> Iterator[pa.RecordBatch]:
        metadata = FileKind.METADATA.value
        count = sum(row.tally.files for row in self.sums if row.kind == metadata and not row.reached)
        return self.rows.documents(self.search, count)

    def unit_batches(self) -> Iterator[pa.RecordBatch]:
        return self.rows.units(self.search, self.units_opened)

    def close(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Asked:
    """The searches of a census: how each sorts, the walks whose files it needs, those that count for it and not for
    all, and which objects it is about; `common` tells of each walk whether it counts for all. All sorts call objects
    alike.
    """

    sorts: Sequence[Sort]
    owners: Sequence[Sequence[int]]
    private: Sequence[Sequence[int]]
    common: Flags
    deal: Deal


def take(
    listed: DataFrame, files: DataFrame, kinds: Iterable[FileKind], asked: Asked, of: str = ""
) -> list[SparkCensus | FirnlineError]:
    """Returns the census of what was listed for each search, against all files that roots reach; or why there is none.
    `kinds`: those of units.
    """
    reached = _kept(_placed(files.mapInArrow(_pathing(asked), _REACHED_DDL)))
    errors = reached.filter("error is not null").groupBy("walk").agg(F.max("error").alias("error")).collect()
    problems = {row["walk"]: error_of(row["error"]) for row in errors}
    stopped = [stopped_by(problems, asked.common, private) for private in asked.private]
    objects = _kept(_classed(_placed(listed.mapInArrow(_sorting(asked), _SORTED_DDL)), reached))
    sums, doubtful = _sums(objects)
    doubles = _doubles(objects) if doubtful else {}
    is_near = any(row.of is ObjectClass.NEAR_MISS for rows in sums.values() for row in rows)
    near = _near_misses(objects) if is_near else {}
    units = _units(reached.filter(F.col("kind").isin([kind.value for kind in kinds])), asked)
    opened = {row["search"]: row["count"] for row in units.groupBy("search").count().collect()}
    searches, cluster = len(asked.sorts), OnCluster(objects, units, of)
    rows = cluster if searches == 1 else OnDisk(cluster)
    found: list[SparkCensus | FirnlineError] = []
    for search in range(searches):
        told = (tuple(sums.get(search, ())), tuple(near.get(search, ())))
        count = opened.get(OF_ALL, 0) + opened.get(search, 0)
        found.append(stopped[search] or doubles.get(search) or SparkCensus(rows, search, *told, count))
    return found


def _units(units: DataFrame, asked: Asked) -> DataFrame:
    """Returns each unit once, of however many tables it is: those that count for all, and the others for each search
    that they count for.
    """
    facts = (F.min("key").alias("key"), F.max("size").alias("size"), F.min("kind").alias("kind"))
    once = units.groupBy("identity").agg(*facts, F.max("common").alias("common"), F.collect_set("walk").alias("walks"))
    of_all = once.filter("common").select(F.lit(OF_ALL).alias("search"), *FILE_COLUMNS)
    pairs = [(walk, search) for search, walks in enumerate(asked.private) for walk in walks]
    if not pairs:
        return _kept(of_all)
    whose = F.broadcast(units.sparkSession.createDataFrame(pairs, "walk int, search int"))
    own = once.filter("not common").select(F.explode("walks").alias("walk"), *FILE_COLUMNS).join(whose, "walk")
    return _kept(of_all.unionByName(own.dropDuplicates(["search", "identity"]).select("search", *FILE_COLUMNS)))


def _kept(rows: DataFrame) -> DataFrame:
    return rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _placed(rows: DataFrame) -> DataFrame:
    """Adds `place`: eight bytes sort and travel faster than paths that all begin alike."""
    return rows.withColumn("place", F.xxhash64("path"))


def _classed(objects: DataFrame, reached: DataFrame) -> DataFrame:
    """Returns the objects in their classes, with `is_reached` and the key of what a near miss is near to."""
    names = F.struct("identity", "path", "key", "walk", "common")
    there = reached.groupBy("place").agg(F.collect_list(names).alias("there"))
    joined = objects.join(there, "place", "left")
    same = _any(lambda each: (each["identity"] == F.col("identity")) & _counts(each))
    needed = _any(lambda each: (each["identity"] == F.col("identity")) & F.array_contains("owners", each["walk"]))
    near = _any(lambda each: (each["path"] == F.col("path")) & _counts(each))
    sorted_as = F.col("class")
    of = (
        F.when(needed, ObjectClass.NEEDED.value)
        .when(same, ObjectClass.ANOTHER_TABLE.value)
        .when((sorted_as == ObjectClass.VICTIM.value) & near, ObjectClass.NEAR_MISS.value)
        .otherwise(sorted_as)
    )
    neighbours = F.filter("there", lambda each: (each["path"] == F.col("path")) & _counts(each))
    return joined.select(
        "search",
        "place",
        *VICTIM_COLUMNS,
        of.alias("class"),
        same.alias("is_reached"),
        F.when(near & ~same, F.get(neighbours, F.lit(0))["key"]).alias("near_to"),
    )


def _counts(reached: Column) -> Column:
    return reached["common"] | F.array_contains("private", reached["walk"])


def _any(test: object) -> Column:
    return F.coalesce(F.exists("there", test), F.lit(False))  # type: ignore[arg-type]


def _sums(objects: DataFrame) -> tuple[dict[int, list[Sum]], bool]:
    """Returns the sums by search, and whether some objects of one meet at one place, so that two of them may be one."""
    facts = (F.count("*").alias("n"), F.sum("size").alias("bytes"), F.max("modified_ms").alias("newest"))
    by_class = objects.groupBy("search", "class", "kind", "is_reached").agg(*facts)
    crowded = _crowded(objects).agg(F.count("*").alias("n"))
    sums: dict[int, list[Sum]] = {}
    doubtful = False
    for row in by_class.unionByName(crowded, allowMissingColumns=True).collect():
        if row["class"] is None:
            doubtful = row["n"] > 0
        else:
            tally = Tally(row["n"], row["bytes"] or 0)
            found = Sum(ObjectClass(row["class"]), row["kind"], row["is_reached"], tally, row["newest"])
            sums.setdefault(row["search"], []).append(found)
    return sums, doubtful


def _crowded(objects: DataFrame) -> DataFrame:
    """Returns the places at which several objects of one search meet."""
    return objects.groupBy("search", "place").count().filter("count > 1").select("search", "place")


def _near_misses(objects: DataFrame) -> dict[int, list[tuple[str, str]]]:
    near = objects.filter(F.col("class") == ObjectClass.NEAR_MISS.value).select("search", "key", "near_to")
    first = F.row_number().over(Window.partitionBy("search").orderBy("key"))
    shown = near.withColumn("at", first).filter(F.col("at") <= NEAR_MISSES_SHOWN).orderBy("search", "key")
    found: dict[int, list[tuple[str, str]]] = {}
    for row in shown.collect():
        found.setdefault(row["search"], []).append((row["key"], row["near_to"]))
    return found


def _doubles(objects: DataFrame) -> dict[int, StoreError]:
    """Returns the searches in which two rows are one object. Hashes say where to look, so that nearly nothing is
    compared.
    """
    suspects = objects.join(_crowded(objects), ["search", "place"], "left_semi")
    first = F.min("identity").alias("identity")
    doubled = suspects.groupBy("search", "identity").count().filter("count > 1")
    return {row["search"]: _double(row["identity"]) for row in doubled.groupBy("search").agg(first).collect()}


def _double(name: str) -> StoreError:
    return StoreError(f"the listing names {name!r} twice", "a folder marker may have the name of a file: remove it")


class _sorting:
    """Deals each batch of what was listed to the searches, and sorts it for each. `look` makes every census's function
    another one.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in map(with_short_offsets, batches):
            places, dealt = self._asked.deal(self._asked.sorts[0].identities(batch.column("key")))
            for search in np.unique(dealt).tolist():
                first, end = np.searchsorted(dealt, [search, search + 1]).tolist()
                yield self._sorted(search, batch.take(pa.array(places[first:end])))

    def _sorted(self, search: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = self._asked.sorts[search](batch).select(list(SORTED_COLUMNS))
        walks = (self._asked.owners[search], self._asked.private[search])
        said = [pa.repeat(pa.scalar(list(each), pa.list_(pa.int32())), len(batch)) for each in walks]
        searches = pa.array(np.full(len(batch), search, np.int32))
        return pa.record_batch([searches, *said, *found.columns], names=_SORTED)


class _pathing:
    """Gives each file that is reached the name it is compared by, and its path."""

    def __init__(self, asked: Asked) -> None:
        self._sort = asked.sorts[0]
        self._common = asked.common
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            for walk, one in zip(batch.column("walk").to_pylist(), each_kind(batch), strict=True):
                if one.error is not None:
                    yield pa.record_batch([[walk], *[[None]] * 5, [one.error], [None]], schema=_REACHED)
                else:
                    yield from (self._named(walk, files) for files in one.batches())

    def _named(self, walk: int, files: pa.RecordBatch) -> pa.RecordBatch:
        names = self._sort.names(files.column("identity"))
        said = {"walk": pa.scalar(walk, pa.int32()), "common": pa.scalar(bool(self._common[walk]))}
        said = {name: pa.repeat(value, len(files)) for name, value in said.items()}
        said |= {name: files.column(name) for name in ("key", "size", "kind")}
        said |= {"identity": names, "path": self._sort.paths(names), "error": pa.nulls(len(files), pa.string())}
        return pa.record_batch([said[name] for name in _REACHED.names], schema=_REACHED)
