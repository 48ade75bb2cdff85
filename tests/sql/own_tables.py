"""Asks Iceberg itself and firnline the same of the same tables: a folder on stdin, what differs as JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from firnline.lake import Lake, open_lake
from firnline.spark.session import Session
from firnline.sql.asking import asked_of, open_relation
from firnline.sql.relations import TimeBounds
from firnline.sql.session import StatementAnswer
from firnline.sql.source import spark_schema
from tests.sql.plain_iceberg import started

TABLES = ("files", "entries", "partitions", "metadata_log_entries", "refs", "history", "snapshots", "manifests")
AT_VERSIONS = ("files", "entries", "partitions", "manifests")
LEFT_OUT = {"manifests": {"partition_summaries", "sequence_number"}}
"""Columns that only one of the two has."""
COLUMNS = (
    "id BIGINT, name STRING, price DECIMAL(9, 2), ratio DOUBLE, share FLOAT, day DATE, at TIMESTAMP, "
    "local TIMESTAMP_NTZ, raw BINARY, flag BOOLEAN, n INT, s STRUCT<x: INT, y: STRING>, l ARRAY<STRING>, "
    "m MAP<STRING, INT>"
)
ROW = (
    "SELECT {n}L, 'name {n}', CAST({n} - 0.25 AS DECIMAL(9, 2)), IF({n} = 2, double('NaN'), {n} / 3D), float({n}), "
    "date '2024-07-0{n}', timestamp '2024-07-0{n} 10:00:00', timestamp_ntz '2024-07-0{n} 11:00:00', "
    "unhex('00ff0{n}'), {n} = 1, IF({n} = 3, NULL, {n}), named_struct('x', {n}, 'y', 'y{n}'), array('a', NULL), "
    "map('k', {n})"
)


SHAPES = {"two": ("2", "PARTITIONED BY (day, bucket(2, id))"), "three": ("3", "")}


def made(spark: Session, folder: str) -> None:
    """Makes tables by Iceberg's Java: one with position deletes, and one with deletion vectors, not partitioned."""
    for name, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": folder}.items():
        spark.conf.set(f"spark.sql.catalog.w{name}", value)
    for name, (version, partition) in SHAPES.items():
        options = f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read'"
        spark.sql(f"CREATE TABLE w.ns.{name} ({COLUMNS}) USING iceberg {partition} TBLPROPERTIES ({options})")
        for number in (1, 2, 3):
            both = f"{ROW.format(n=number)} UNION ALL {ROW.format(n=number)}"
            spark.sql(f"INSERT INTO w.ns.{name} {both.replace('name', 'other', 1)}")
        spark.sql(f"DELETE FROM w.ns.{name} WHERE (id = 1 AND name LIKE 'other%') OR id = 3")


def rows(found: Iterable[dict[str, Any]], leave: set[str]) -> list[str]:
    texts = (repr(_plain({name: row[name] for name in sorted(row) if name not in leave})) for row in found)
    return sorted(each.replace("file:///", "file:/") for each in texts)  # as Hadoop spells the place of a path table


def _plain(value: Any) -> Any:
    """Returns maps in the order of their keys: Iceberg's have none."""
    match value:
        case dict():
            return {key: _plain(value[key]) for key in sorted(value)}
        case [(int() | str(), _), *_]:
            return sorted(value)
    return value


@dataclass
class Comparison:
    """What was compared, and what differs."""

    lake: Lake
    differs: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def metadata(self, theirs: DataFrame, table: str, what: str, **options: str) -> None:
        """Compares one of Iceberg's tables with what an executor reads."""
        relation, _ = open_relation(asked_of({"table": table, "what": what, **options}))
        names = relation.schema.names
        batches = [each for piece in relation.pieces(TimeBounds()) for each in relation.read(piece, names)]
        leave = LEFT_OUT.get(what, set())
        types = {each.name: each.dataType.simpleString() for each in spark_schema(relation.schema, None)}
        own = {name: kind for name, kind in types.items() if name not in leave}
        self._note(
            f"types of {table}.{what}", [each for each in theirs.dtypes if each[0] not in leave], list(own.items())
        )
        mine = [row for batch in batches for row in batch.to_pylist()]
        self._note(f"{table}.{what} {options}", rows(theirs.toArrow().to_pylist(), leave), rows(mine, leave))

    def statement(self, theirs: DataFrame, text: str) -> None:
        (found,) = self.lake.sql(text)
        assert not isinstance(found, StatementAnswer)
        self._note(text, rows(theirs.toArrow().to_pylist(), set()), rows(found.toArrow().to_pylist(), set()))

    def _note(self, name: str, theirs: list[Any], mine: list[Any]) -> None:
        self.count += 1
        if theirs != mine:
            self.differs[name] = [
                [each for each in theirs if each not in mine][:2],
                [each for each in mine if each not in theirs][:2],
                [len(theirs), len(mine)],
            ]


def compare(spark: Session, comparison: Comparison, name: str, location: str) -> None:
    table = f"w.ns.{name}"
    for what in TABLES:
        comparison.metadata(spark.sql(f"SELECT * FROM {table}.{what}"), location, what)
    snapshots = spark.sql(f"SELECT snapshot_id, committed_at FROM {table}.snapshots ORDER BY committed_at").collect()
    second = str(snapshots[1].snapshot_id)
    for what in AT_VERSIONS:
        at_second = spark.sql(f"SELECT * FROM {table}.{what} VERSION AS OF {second}")
        comparison.metadata(at_second, location, what, versionAsOf=second)
    moment = snapshots[1].committed_at
    for clause in (
        f"FOR SYSTEM_VERSION AS OF {second}",
        f"TIMESTAMP AS OF '{moment}'",
        f"FOR SYSTEM_TIME AS OF TIMESTAMP '{moment}' - INTERVAL 1 MILLISECOND",
        "TIMESTAMP AS OF current_timestamp()",
    ):
        comparison.statement(
            spark.sql(f"SELECT id, name FROM {table} {clause}"), f"SELECT id, name FROM `{location}` {clause}"
        )


def main() -> None:
    asked = json.loads(sys.stdin.read())
    spark = started()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    made(spark, f"file://{asked['folder']}")
    comparison = Comparison(open_lake(session=spark))
    for name in SHAPES:
        compare(spark, comparison, name, f"file://{asked['folder']}/ns/{name}")
    for table, metadata in asked["metadata"].items():
        for what in TABLES:
            comparison.metadata(spark.read.format("iceberg").load(f"{metadata}#{what}"), table, what)
    print(json.dumps({"differs": comparison.differs, "compared": comparison.count}, default=str))


if __name__ == "__main__":
    main()
