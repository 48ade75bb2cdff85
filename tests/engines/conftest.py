from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from firnline.ports.engines import Engine
from firnline.spark.engine import SparkEngine
from firnline.spark.session import session


@pytest.fixture(scope="session")
def spark_session() -> SparkSession:
    """One session for all tests of this worker; it ends with the worker's own process."""
    return session()


@pytest.fixture(scope="session")
def spark(spark_session: SparkSession) -> Engine:
    return SparkEngine(spark_session)
