"""Queries of Spark Structured Streaming that read Iceberg tables and write their rows to a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.neighbours.lakes import COLUMN, RealLake
from tests.tiers.java_spark import JavaSpark

AVAILABLE_NOW, CONTINUED = "available now", "continued"


@dataclass(frozen=True)
class Streams:
    """Streams over the tables of a lake, in a session of its own: others have a catalog of the same name."""

    spark: JavaSpark
    lake: RealLake
    session: Any

    @staticmethod
    def over(spark: JavaSpark, lake: RealLake) -> Streams:
        session = spark.session.newSession()
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "jdbc",
            ".uri": f"jdbc:sqlite:{lake.folder}/catalog.db",
            ".jdbc.schema-version": "V1",
            ".warehouse": f"file://{lake.folder}/warehouse",
            ".cache-enabled": "false",
        }
        for name, value in settings.items():
            session.conf().set(f"spark.sql.catalog.lake{name}", value)
        return Streams(spark, lake, session)

    def checkpoint(self, name: str) -> Path:
        return self.lake.folder / "checkpoints" / name

    def run(self, name: str, *tables: str, trigger: str = CONTINUED) -> None:
        """Runs a query until it has read all, and stops it. Raises AssertionError with what Spark says if it fails."""
        query = self._started(name, tables, trigger)
        try:
            if trigger == AVAILABLE_NOW:
                query.awaitTermination()
            else:
                query.processAllAvailable()
        except Py4JJavaError as failed:
            raise AssertionError(str(failed.java_exception.getMessage())) from None
        finally:
            query.stop()

    def _started(self, name: str, tables: tuple[str, ...], trigger: str) -> Any:
        found = [self.session.readStream().format("iceberg").load(f"lake.db.{each}") for each in tables]
        read = found[0] if len(found) == 1 else found[0].union(found[1])
        triggers = self.spark.jvm.java("org.apache.spark.sql.streaming.Trigger")
        when = triggers.AvailableNow() if trigger == AVAILABLE_NOW else triggers.ProcessingTime(100)
        written = read.writeStream().format("json").option("path", str(self._rows(name)))
        return written.option("checkpointLocation", str(self.checkpoint(name))).trigger(when).start()

    def _rows(self, name: str) -> Path:
        return self.lake.folder / "read" / name

    def rows(self, name: str) -> list[int]:
        """Returns what a query has read, each row as often as it wrote it."""
        lines = [line for file in self._rows(name).glob("part-*") for line in file.read_text().splitlines()]
        return sorted(int(json.loads(line)[COLUMN]) for line in lines)
