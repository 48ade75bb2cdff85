"""Bringing rows from the cluster to the caller as Arrow batches; and what a person who watches Spark reads of a job."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from firnline.errors import StoreError
from firnline.spark.executors.beginning import begin_task
from firnline.spark.packets import packed, unpacked, with_short_offsets
from firnline.spark.telling import in_one_line

_DESCRIPTION = "spark.job.description"
_OURS = f"firnline-{os.getpid()}"  # one driver may serve several processes


@contextmanager
def described(session: SparkSession, text: str, of: str = "", *, stoppable: bool = True) -> Iterator[None]:
    """Names the jobs that are started inside, and tells in one line why one failed; `of` is the table. Those of which
    each outcome must be told are not `stoppable`.
    """
    marked = _marked(session) if stoppable else nullcontext()
    with in_one_line(text), named(session, f"{text} of {of}" if of else text), marked:
        yield


def stop_jobs(session: SparkSession) -> None:
    """Ends all stoppable jobs of a session: each raises Interrupted where it was started. Tasks that copy leave half
    a copy, which has no name yet, as those of a dead process do.
    """
    session.interruptTag(_OURS) if is_remote() else session.sparkContext.cancelJobsWithTag(_OURS)


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
def _marked(session: SparkSession) -> Iterator[None]:
    """Marks jobs for `stop_jobs`. What Spark itself calls a session's tags is known to the thread alone that set them,
    and one thread must stop what others began: so these are marks of its context.
    """
    if is_remote():
        with _tagged(session, _OURS):
            yield
        return
    context = session.sparkContext
    was_marked = _OURS in context.getJobTags()
    context.addJobTag(_OURS)
    try:
        yield
    finally:
        if not was_marked:
            context.removeJobTag(_OURS)


@contextmanager
def _tagged(session: SparkSession, tag: str) -> Iterator[None]:
    was_tagged = tag in session.getTags()
    session.addTag(tag)
    try:
        yield
    finally:
        if not was_tagged:
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


def streamed(rows: DataFrame, count: int, of: str = "", *, in_order: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yields batches of rows that lie on the cluster one by one. Raises StoreError at the end where they are not
    `count`. However few partitions they lie in, a job brings no more than the driver can hold.

    `in_order`: what one job brings is sorted by these columns; which job is next, nothing tells.
    """
    came, jobs = 0, 1 + count // _ROWS_PER_JOB
    if in_order:
        rows = rows.repartitionByRange(jobs, *in_order).sortWithinPartitions(*in_order)
    elif jobs > 1:
        rows = rows.repartition(jobs)
    for row in brought(rows.mapInArrow(_as_messages, "message binary"), count, of):
        for batch in unpacked(row.message).to_batches():
            came += len(batch)
            yield batch
    refuse_others(count, came)


@contextmanager
def on_a_disk(what: str) -> Iterator[None]:
    """Around what is put on a disk of this machine: raises StoreError where that takes no more."""
    try:
        yield
    except OSError as problem:
        raise StoreError(
            f"{what} could not be put on a disk of this machine: {problem}", "make room where TMPDIR points"
        ) from problem


def _as_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        yield pa.record_batch([pa.array([packed(with_short_offsets(batch))], pa.binary())], names=["message"])
