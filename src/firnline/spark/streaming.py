"""Bringing rows from the cluster to the caller as Arrow batches; and what a person who watches Spark reads of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from firnline.errors import StoreError
from firnline.spark.packets import packed, unpacked
from firnline.spark.telling import forget_zip_importers, in_one_line

_DESCRIPTION = "spark.job.description"


@contextmanager
def described(session: SparkSession, text: str, of: str = "") -> Iterator[None]:
    """Names the jobs that are started inside, and tells in one line why one failed; `of` is the table."""
    with in_one_line(text), named(session, f"{text} of {of}" if of else text):
        yield


@contextmanager
def named(session: SparkSession, text: str) -> Iterator[None]:
    """Names the jobs that are started inside. A caller that passed a session in finds its own name again afterwards.

    Spark Connect knows no descriptions, but shows tags, without commas.
    """
    name = f"firnline: {text}"
    with _tagged(session, name.replace(",", "")) if is_remote() else _with_description(session, name):
        yield


@contextmanager
def _with_description(session: SparkSession, name: str) -> Iterator[None]:
    before = session.sparkContext.getLocalProperty(_DESCRIPTION)
    session.sparkContext.setJobDescription(name)
    try:
        yield
    finally:
        session.sparkContext.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def _tagged(session: SparkSession, tag: str) -> Iterator[None]:
    session.addTag(tag)
    try:
        yield
    finally:
        session.removeTag(tag)


_ROWS_PER_JOB = 250_000


def brought(rows: DataFrame, count: int, of: str = "") -> Iterator[Any]:
    """Yields rows of packets, one partition's at a time; `count` is how many files are in them.

    Every partition costs a job of its own, so there are only as many as the files need.
    """
    few = rows.coalesce(1 + count // _ROWS_PER_JOB)
    with described(rows.sparkSession, f"bringing {count:,} files", of):  # its jobs keep the name that they begin with
        coming = few.toLocalIterator()
    with in_one_line("bringing its rows here"):
        yield from coming


def refuse_others(count: int, came: int) -> None:
    """Raises StoreError unless as many files came as were counted: rows that went with an executor are computed again,
    and then others may come out.
    """
    if came != count:
        raise StoreError(
            f"the cluster counted {count:,} files, and then {came:,} came", "an executor may have been lost: plan again"
        )


def streamed(rows: DataFrame, count: int, of: str = "", *, crowded: bool = False) -> Iterator[pa.RecordBatch]:
    """Yields batches of rows that lie on the cluster one by one. Raises StoreError at the end where they are not
    `count`. `crowded`: there may be few partitions, with so many rows each that the driver could not hold those of one.
    """
    came, jobs = 0, 1 + count // _ROWS_PER_JOB
    dealt = rows.repartition(jobs) if crowded and jobs > 1 else rows
    for row in brought(dealt.mapInArrow(_as_messages, "message binary"), count, of):
        for batch in unpacked(row.message).to_batches():
            came += len(batch)
            yield batch
    refuse_others(count, came)


def _as_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    forget_zip_importers()
    for batch in batches:
        yield pa.record_batch([pa.array([packed(batch)], pa.binary())], names=["message"])
