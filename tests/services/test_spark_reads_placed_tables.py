"""Spark with Iceberg 1.12.0 and PyIceberg read a table of Spark's that firnline placed under other catalogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from firnline.catalogs.config import CatalogSettings, open_catalog
from firnline.ports.catalogs import PlacesTables, SwapOutcome, TableName
from harness.servers.fixtures import GetServer, unique
from harness.servers.postgres import make_database

pytestmark = pytest.mark.spark
JARS = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.postgresql:postgresql:42.7.8",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
Sql = Callable[[str], list[list[Any]]]


@dataclass(frozen=True)
class Tier:
    """One new catalog as firnline and Spark are configured for it."""

    name: str
    ours: Mapping[str, str]
    theirs: Mapping[str, str]

    def for_spark(self) -> dict[str, str]:
        prefix = f"spark.sql.catalog.{self.name}"
        named = {f"{prefix}.{key}": value for key, value in {"cache-enabled": "false", **self.theirs}.items()}
        return {prefix: "org.apache.iceberg.spark.SparkCatalog", **named}

    def opened(self) -> PlacesTables:
        catalog = open_catalog(
            CatalogSettings(self.name, self.ours["type"], self.ours["uri"], self.ours, may_be_new=True)
        )
        assert isinstance(catalog, PlacesTables)
        return catalog


@pytest.fixture
def tiers(server: GetServer, tmp_path: Path) -> list[Tier]:
    database = make_database(server("postgres"), unique("tier")).settings["uri"]
    jdbc = {"type": "jdbc", "warehouse": f"file://{tmp_path}/cold"}
    there = database.replace("postgresql+psycopg://firnline@", "jdbc:postgresql://")
    rest = server("rest").settings["uri"]
    return [
        Tier(
            "lite",
            {"type": "sql", "uri": f"sqlite:///{tmp_path}/cold.db"},
            {**jdbc, "uri": f"jdbc:sqlite:{tmp_path}/cold.db"},
        ),
        Tier("pg", {"type": "sql", "uri": database}, {**jdbc, "uri": there, "jdbc.user": "firnline"}),
        Tier("rs", {"type": "rest", "uri": rest}, {"type": "rest", "uri": rest}),
    ]


@pytest.fixture
def live(tmp_path: Path) -> dict[str, str]:
    """A catalog of Spark's alone."""
    return Tier("live", {}, {"type": "hadoop", "warehouse": f"file://{tmp_path}/live"}).for_spark()


def versions_of(sql: Sql) -> list[tuple[str, int]]:
    """Returns where the metadata lies of each version of a new table that has a snapshot, and its newest snapshot."""
    sql("CREATE NAMESPACE live.ns")
    sql("CREATE TABLE live.ns.t (x bigint) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    for number in range(3):
        sql(f"INSERT INTO live.ns.t VALUES ({number})")
    sql("ALTER TABLE live.ns.t CREATE TAG audited AS OF VERSION " + str(_newest(sql, "live.ns.t")))
    log = sql("SELECT file, latest_snapshot_id FROM live.ns.t.metadata_log_entries ORDER BY timestamp, file")
    return [(file, snapshot) for file, snapshot in log if snapshot is not None]


@pytest.mark.full
def test_spark_and_pyiceberg_read_a_placed_table(
    tiers: list[Tier], start_spark: Callable[..., Sql], live: dict[str, str]
) -> None:
    # A catalog is opened by Spark when it is first named: those of the tiers when a table was placed there.
    sql = start_spark(JARS, live | {key: value for each in tiers for key, value in each.for_spark().items()})
    (first, _), *_, (last, newest) = versions_of(sql)
    namespace = unique("old").replace("-", "_")
    for tier in tiers:
        table, name = TableName(tier.name, (namespace, "eu"), "t"), f"{tier.name}.{namespace}.eu.t"
        assert tier.opened().place_table(table, None, first) is SwapOutcome.DONE
        assert _rows(sql, name) == [0], name
        assert tier.opened().place_table(table, first, last) is SwapOutcome.DONE
        assert _rows(sql, name) == [0, 1, 2], name
        assert _rows(sql, f"{name} VERSION AS OF 'audited'") == [0, 1, 2], name
        assert _newest(sql, name) == newest
        assert [namespace] in sql(f"SHOW NAMESPACES IN {tier.name}")
        assert sql(f"SHOW NAMESPACES IN {tier.name}.{namespace}") == [[f"{namespace}.eu"]]
        assert [row[1] for row in sql(f"SHOW TABLES IN {tier.name}.{namespace}.eu")] == ["t"]
        theirs = load_catalog(tier.name, **tier.ours)
        assert (namespace,) in theirs.list_namespaces()
        seen = theirs.load_table((namespace, "eu", "t"))
        assert [each.snapshot_id for each in seen.snapshots()][-1] == newest
        assert sorted(seen.scan().to_arrow()["x"].to_pylist()) == [0, 1, 2]
        theirs.drop_table((namespace, "eu", "t"))  # before its files go: others use the same server


@pytest.mark.full
def test_spark_makes_its_own_tables_beside_placed_ones(
    tiers: list[Tier], start_spark: Callable[..., Sql], live: dict[str, str]
) -> None:
    """In a catalog that a placed table made; and a table is placed in one that Spark made."""
    lite, pg, _ = tiers
    sql = start_spark(JARS, {**live, **lite.for_spark(), **pg.for_spark()})
    (first, _), *_ = versions_of(sql)
    assert lite.opened().place_table(TableName("lite", ("old",), "t"), None, first) is SwapOutcome.DONE
    for tier in (lite, pg):
        sql(f"CREATE NAMESPACE {tier.name}.own")
        sql(f"CREATE TABLE {tier.name}.own.t (x bigint) USING iceberg")
        sql(f"INSERT INTO {tier.name}.own.t VALUES (5)")
    assert pg.opened().place_table(TableName("pg", ("old",), "t"), None, first) is SwapOutcome.DONE
    for tier in (lite, pg):
        assert _rows(sql, f"{tier.name}.own.t") == [5]
        assert _rows(sql, f"{tier.name}.old.t") == [0]
        assert sorted(sql(f"SHOW NAMESPACES IN {tier.name}")) == [["old"], ["own"]]


def _rows(sql: Sql, table: str) -> list[int]:
    return sorted(row[0] for row in sql(f"SELECT x FROM {table}"))


def _newest(sql: Sql, table: str) -> int:
    return int(sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC, snapshot_id LIMIT 1")[0][0])
