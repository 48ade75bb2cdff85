from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from firnline.ports.engines import Engine
from firnline.spark.engine import SparkEngine
from firnline.spark.session import session

from .clusters import LACKED, Cluster, first_on_path, python_without, standalone, surroundings


@pytest.fixture(scope="session")
def spark_session() -> SparkSession:
    """One session for all tests of this worker; it ends with the worker's own process.

    It answers many tiny questions: compiling code for each of them costs more than it gains, and so do more parts of
    a shuffle than the two by which an answer can already depend on where a row went.
    """
    started = session()
    started.conf.set("spark.sql.shuffle.partitions", "2")
    started.conf.set("spark.sql.codegen.wholeStage", "false")
    started.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return started


@pytest.fixture(scope="session")
def spark(spark_session: SparkSession) -> Engine:
    return SparkEngine(spark_session)


@pytest.fixture(scope="session")
def small_standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with one worker, whose Python has neither firnline nor all that it needs."""
    folder: Path = tmp_path_factory.mktemp("standalone")
    python = python_without(folder / "bare", [LACKED])
    with standalone(first_on_path(python, surroundings(folder)), folder, workers=1) as master:
        yield Cluster(master, python)
