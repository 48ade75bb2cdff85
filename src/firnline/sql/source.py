"""The data source `firnline`: `spark.read.format("firnline").option("what", "all_snapshots").load(TABLE)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from secrets import token_hex
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkTypeError
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from firnline.errors import UnsupportedFormat, UsageError
from firnline.spark.executors.beginning import begin_task
from firnline.sql.faults import telling
from firnline.sql.home import carried_options, leave_gone_folder, usual_options
from firnline.sql.relations import Piece, Relation, TimeBounds, bounds_of

NAME = "firnline"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_RUNTIME = "a runtime of the table's own format may read it: FIRNLINE_SPARK_PACKAGES names one"


def own_name() -> str:
    """Returns a name for the data source that nobody else gives it. A session may be that of two lakes, and over Spark
    Connect a name is looked up whenever rows are asked for: by the usual name the last configuration would answer.
    """
    return f"{NAME}_{token_hex(4)}"


def register(spark: SparkSession, config: str | None = None, name: str = NAME) -> None:
    """Makes `spark.read.format(name)` work in a session, on its executors too, with the configuration that is found
    here and now: Spark asks in a process that stands where the session was started. A server of Spark Connect
    has files of its own, so it is sent what these here say. A session in which the case of names counts takes one
    registration of a name only: the first stays there.
    """
    from firnline.spark.executors.shipping import equipped

    usual = carried_options(config) if is_remote() else usual_options(config)
    equipped(spark)
    try:
        with nullcontext() if is_remote() else _active(spark):
            spark.dataSource.register(type("SettledSource", (FirnlineSource,), {"usual": usual, "called": name}))
    except AnalysisException as problem:
        if problem.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Makes a session the active one for a moment: Spark looks there whether the name is taken, and another session of
    this process may well have it.
    """
    session: Any = spark
    sessions = session._jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class FirnlineSource(DataSource):
    """Snapshots, entries, files and records of one table. Pins the version that its schema was read from. `usual` is
    what counts where a reader says nothing of the configuration, `called` the name that it is registered by.
    """

    usual: Mapping[str, str] = MappingProxyType({})
    called = NAME

    @classmethod
    def name(cls) -> str:
        return cls.called

    def schema(self) -> StructType:
        relation, self._version, columns = self._open(None)
        with telling():
            return spark_schema(relation.schema, columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        relation, _, _ = self._open(getattr(self, "_version", None))
        pushes = self.options.get("pushdown", "false").lower() == "true"
        return (PushingReader if pushes else Reader)(relation, schema)

    def _open(self, version: str | None) -> tuple[Relation, str, Sequence[str] | None]:
        """Returns the relation, its version and the columns asked for.

        What finds tables is imported here: each query has Python processes, and executors, that only pass this on.
        """
        from firnline.sql.asking import asked_of, open_relation

        leave_gone_folder()
        with telling():
            asked = asked_of({**self.usual, **self.options})
            return *open_relation(replace(asked, version=version or asked.version)), asked.columns


@dataclass
class Part(InputPartition):
    """One piece of a relation, on its way to an executor."""

    piece: Piece

    def __init__(self, piece: Piece) -> None:
        super().__init__(None)
        self.piece = piece


class Reader(DataSourceReader):
    """Reads a relation piece by piece, as Arrow batches."""

    def __init__(self, relation: Relation, schema: StructType) -> None:
        self._relation = relation
        self._names = schema.fieldNames()
        self._schema = to_arrow_schema(schema)
        self._bounds = TimeBounds()

    def partitions(self) -> Sequence[InputPartition]:
        """Returns a part for each piece. Without any Spark still asks for one, which then has no rows."""
        with telling():
            return [Part(each) for each in self._relation.pieces(self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        begin_task()
        with telling():
            for batch in self._relation.read(partition.piece, self._names) if isinstance(partition, Part) else ():
                yield _shaped(batch, self._schema)


class PushingReader(Reader):
    """The same where Spark hands filters down. A class of its own: Spark refuses one that could and may not."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Notes what spares whole pieces, and hands every filter back: rows are Spark's to filter."""
        self._bounds = bounds_of(filters)
        return filters


def spark_schema(schema: pa.Schema, columns: Sequence[str] | None) -> StructType:
    """Returns the columns that were asked for, or all. Raises UsageError for one that is not there."""
    chosen = schema if columns is None else pa.schema(dict.fromkeys(_field(schema, name) for name in columns))
    try:
        return from_arrow_schema(chosen, prefer_timestamp_ntz=True)
    except PySparkTypeError as problem:
        raise UnsupportedFormat(f"Spark has no type for a column: {problem}", hint=_RUNTIME) from problem


def _field(schema: pa.Schema, name: str) -> pa.Field:
    """Returns the column of that name, or the one of which it names a part."""
    by_name = {each.name.lower(): each for each in schema}
    found = by_name.get(name.lower()) or by_name.get(name.lower().partition(".")[0])
    if found is None:
        raise UsageError(f"there is no column {name!r}", hint=f"columns are: {', '.join(schema.names)}")
    return found


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the batch with Arrow's types as Spark expects them; most have them already."""
    arrays = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)
