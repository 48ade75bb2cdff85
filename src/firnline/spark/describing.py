"""What a person who watches Spark reads of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from firnline.spark.troubles import in_one_line


@contextmanager
def described(session: SparkSession, text: str) -> Iterator[None]:
    """Names the jobs that are started inside, also where one fails.

    Spark Connect knows no descriptions, but shows tags, without commas.
    """
    name = f"firnline: {text}"
    tag = name.replace(",", "")
    if is_remote():
        session.addTag(tag)
    else:
        session.sparkContext.setJobDescription(name)
    try:
        with in_one_line(text):
            yield
    finally:
        if is_remote():
            session.removeTag(tag)
        else:
            session.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
