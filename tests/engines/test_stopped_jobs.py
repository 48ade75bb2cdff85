"""A job on Spark ends where its process is to stop; deletes, whose outcomes must be told, do not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from firnline.app.engines import Engines
from firnline.errors import Interrupted
from firnline.spark.streaming import described

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LONG_S, SHORT_S = 120.0, 6.0


class Slow:
    """A task that says that it has begun, and takes its time."""

    def __init__(self, begun: Path, lasts_s: float) -> None:
        self.begun, self.lasts_s = begun, lasts_s

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.begun.touch()
        for batch in batches:
            until = time.monotonic() + self.lasts_s
            while time.monotonic() < until:
                time.sleep(0.1)
                self.begun.with_suffix(".last").write_text(str(time.time()))
            yield batch


def job(session: SparkSession, begun: Path, lasts_s: float, *, stoppable: bool) -> int:
    rows = session.range(1, numPartitions=1).mapInArrow(Slow(begun, lasts_s), "id long")
    with described(session, "testing", stoppable=stoppable):
        return len(rows.collect())


def begin(session: SparkSession, begun: Path, lasts_s: float, *, stoppable: bool) -> Future[int]:
    pool = ThreadPoolExecutor(1)
    running = pool.submit(job, session, begun, lasts_s, stoppable=stoppable)
    pool.shutdown(wait=False)
    while not begun.exists():
        assert not running.done(), running.result()
        time.sleep(0.05)
    return running


@pytest.fixture
def engines(spark_session: SparkSession) -> Engines:
    found = Engines("spark", spark_session)
    found.spark("a table")
    return found


def test_a_job_ends_at_once_and_so_do_its_tasks(spark_session: SparkSession, engines: Engines, tmp_path: Path) -> None:
    running = begin(spark_session, tmp_path / "begun", LONG_S, stoppable=True)
    engines.stop_jobs()
    with pytest.raises(Interrupted):
        running.result(timeout=30)
    time.sleep(5)  # Spark gives a task's Python two seconds
    last = float((tmp_path / "begun.last").read_text())
    assert time.time() - last > 1, "its task goes on"


def test_a_job_of_deletes_is_waited_for(spark_session: SparkSession, engines: Engines, tmp_path: Path) -> None:
    running = begin(spark_session, tmp_path / "begun", SHORT_S, stoppable=False)
    engines.stop_jobs()
    assert running.result(timeout=60) == 1


def test_the_next_job_is_none_of_those_that_were_stopped(
    spark_session: SparkSession, engines: Engines, tmp_path: Path
) -> None:
    engines.stop_jobs()
    assert job(spark_session, tmp_path / "begun", 0, stoppable=True) == 1
    assert not spark_session.sparkContext.getJobTags()


def test_a_process_that_never_used_spark_has_nothing_to_stop() -> None:
    Engines("local").stop_jobs()
