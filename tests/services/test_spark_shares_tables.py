"""Spark with Iceberg 1.12.0 writes tables on S3 behind both catalogs, firnline expires them, Spark goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from firnline.app.places import places_of
from firnline.catalogs.config import CatalogSettings
from firnline.journal.events import RunState
from firnline.lake import Lake
from firnline.ops.runs.status import RunStatus
from firnline.policy.parse import Section
from harness.grounds import Ground
from harness.servers.fixtures import unique

pytestmark = pytest.mark.spark
ICEBERG = "1.12.0"
JARS = (
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
    f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
    "org.postgresql:postgresql:42.7.8",
)
Sql = Callable[[str], list[list[Any]]]


@dataclass(frozen=True)
class Shared:
    """One catalog as both sides are configured for it."""

    name: str
    ground: Ground

    def for_spark(self) -> dict[str, str]:
        theirs = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": self.ground.properties["s3.region"],
            "cache-enabled": "false",
            **{key: value for key, value in self.ground.properties.items() if key != "database"},
            **self._jdbc(),
        }
        prefix = f"spark.sql.catalog.{self.name}"
        named = {f"{prefix}.{key}": value for key, value in theirs.items()}
        return {prefix: "org.apache.iceberg.spark.SparkCatalog", **named}

    def _jdbc(self) -> Mapping[str, str]:
        if self.ground.properties["type"] == "rest":
            return {}
        uri = self.ground.properties["uri"].replace("postgresql+psycopg://firnline@", "jdbc:postgresql://")
        return {"type": "jdbc", "uri": uri, "jdbc.user": "firnline", "jdbc.schema-version": "V1"}

    def for_firnline(self) -> Lake:
        settings = self.ground.properties
        lake = Lake(places_of(Section(), engine="local"))
        vars(lake.places.catalogs)["configured"] = {
            self.name: CatalogSettings(self.name, settings["type"], settings["uri"], settings)
        }
        return lake


@pytest.fixture
def shared(make_ground: Callable[[str], Ground]) -> dict[str, Shared]:
    return {kind: Shared(name, make_ground(kind)) for name, kind in (("pg", "s3+postgresql"), ("rs", "s3+rest"))}


@pytest.fixture
def sql(shared: dict[str, Shared], start_spark: Callable[..., Sql]) -> Sql:
    """Runs one statement in Spark and returns its rows."""
    return start_spark(JARS, {key: value for each in shared.values() for key, value in each.for_spark().items()})


@pytest.mark.full
def test_both_work_on_the_same_tables(shared: dict[str, Shared], sql: Sql) -> None:
    for each in shared.values():
        namespace = unique("spark").replace("-", "_")
        table = f"{each.name}.{namespace}.t"
        _written(sql, table, f"{each.name}.{namespace}")
        assert _expired(each, table).run.state is RunState.DONE
        assert _rows(sql, table) == [2, 3], table
        assert sql(f"SELECT count(*) FROM {table}.snapshots") == [[1]], table
        sql(f"INSERT INTO {table} VALUES (4)")
        assert _rows(sql, table) == [2, 3, 4], table
        _expired(each, table)
        assert each.for_firnline().check(table).sound
        assert _rows(sql, table) == [2, 3, 4], table


def _written(sql: Sql, table: str, namespace: str) -> None:
    sql(f"CREATE NAMESPACE {namespace}")
    sql(f"CREATE TABLE {table} (x bigint) USING iceberg")
    sql(f"INSERT INTO {table} VALUES (1)")
    sql(f"INSERT OVERWRITE {table} VALUES (2)")
    sql(f"INSERT INTO {table} VALUES (3)")


def _rows(sql: Sql, table: str) -> list[int]:
    return sorted(row[0] for row in sql(f"SELECT x FROM {table}"))


def _expired(each: Shared, table: str) -> RunStatus:
    """Returns the run that leaves only the current snapshot."""
    soon = int(time.time() * 1000) + 60_000
    done = each.for_firnline().expire(table, older_than=soon, retain_last=1, grace="0s", blast_radius=1.0)
    assert isinstance(done, RunStatus)
    return done
