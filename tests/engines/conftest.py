from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from firnline.ports.engines import Engine
from firnline.spark.engine import SparkEngine
from firnline.spark.session import session


@pytest.fixture(scope="session")
def spark_session() -> SparkSession:
    """One session for all tests of this worker; it ends with the worker's own process.

    It answers many tiny questions: compiling code for each of them, or optimising any, costs more than it gains.
    """
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    started = session()
    started.conf.set("spark.sql.codegen.wholeStage", "false")
    started.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return started


@pytest.fixture(scope="session")
def spark(spark_session: SparkSession) -> Engine:
    return SparkEngine(spark_session)
