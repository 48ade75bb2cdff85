from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from firnline.spark.session import session

from .lakes import Facts, build, expire


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The worker's one session, whoever started it."""
    started = session()
    started.conf.set("spark.sql.codegen.wholeStage", "false")
    started.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return started


@pytest.fixture(scope="module")
def july(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """A lake in the current folder whose table remembers July 2024 and nothing else does."""
    folder = tmp_path_factory.mktemp("july").resolve()
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        facts = build(folder)
        expire()
        yield facts


def enter(folder: Path, patch: pytest.MonkeyPatch) -> None:
    for name in ("FIRNLINE_CONFIG", "FIRNLINE_ENGINE", "FIRNLINE_SPARK_PACKAGES"):
        patch.delenv(name, raising=False)
    patch.setenv("PYICEBERG_HOME", str(folder))
    patch.setenv("XDG_CONFIG_HOME", str(folder / "none"))
    patch.chdir(folder)
