"""Spark with Iceberg's own readers and writers in a JVM beside the tests: any other engine, as far as firnline knows.

It is spoken to through py4j alone, so a session that firnline has in the same process is another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.judge.jvm import ICEBERG, Jvm, started

JARS = (f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}", "org.xerial:sqlite-jdbc:3.50.3.0")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",  # the tables are tiny: compiling takes longer than reading
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


class JavaSpark:
    """One session. Catalogs are added as tests make them, each under a name of its own."""

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        builder = jvm.java("org.apache.spark.sql.classic.SparkSession").builder().master("local[2]")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext().setLogLevel("OFF")

    def add_catalog(self, name: str, settings: Mapping[str, str]) -> None:
        prefix = f"spark.sql.catalog.{name}"
        self._session.conf().set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, value in settings.items():
            self._session.conf().set(f"{prefix}.{key}", value)

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Returns the rows of a statement; a value that is null has no key. Raises AssertionError with what Java says
        where it fails.
        """
        try:
            found = self._session.sql(statement).toJSON().collectAsList()
        except Py4JJavaError as failed:
            raise AssertionError(f"{failed.java_exception.getMessage()}\n{statement}") from None
        return [json.loads(each) for each in self.jvm.texts(found)]

    def refresh(self, table: str) -> None:
        """Makes the session see what another program wrote."""
        self.sql(f"REFRESH TABLE {table}")

    def table(self, name: str) -> Any:
        """Returns the table as Iceberg's Java has it."""
        return self.jvm.iceberg("spark.Spark3Util").loadIcebergTable(self._session, name)

    @property
    def session(self) -> Any:
        """The session as Java has it."""
        return self._session

    def stop(self) -> None:
        self._session.stop()


@contextmanager
def java_spark() -> Iterator[JavaSpark]:
    with started(JARS) as jvm:
        spark = JavaSpark(jvm)
        try:
            yield spark
        finally:
            spark.stop()
