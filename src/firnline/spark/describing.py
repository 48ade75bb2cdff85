"""What a person who watches Spark reads of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from firnline.spark.troubles import in_one_line

_DESCRIPTION = "spark.job.description"


@contextmanager
def described(session: SparkSession, text: str, of: str = "") -> Iterator[None]:
    """Names the jobs that are started inside, and tells in one line why one failed; `of` is the table."""
    with in_one_line(text), named(session, f"{text} of {of}" if of else text):
        yield


@contextmanager
def named(session: SparkSession, text: str) -> Iterator[None]:
    """Names the jobs that are started inside. Whoever passed his session in finds his own name again afterwards.

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
