"""Errors that travel as rows: an executor says what went wrong instead of failing its task.

Spark would only try again and then bury the reason. What Spark itself says of a job that failed is told in one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from firnline import errors
from firnline.errors import FirnlineError

_HINT = "its page, or the executors' logs, say more; then try again"


def told(problem: FirnlineError) -> str:
    """Returns the error as text. Its class is the nearest one in the tree that everybody knows; adapters have finer."""
    known = next(each.__name__ for each in type(problem).__mro__ if each.__module__ == FirnlineError.__module__)
    return json.dumps([known, problem.message, problem.hint])


def raise_told(said: str | None) -> None:
    """Raises the error that an executor told; returns where it told none."""
    if said:
        kind, message, hint = json.loads(said)
        raise getattr(errors, kind)(message, hint)


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Around jobs: raises FirnlineError where Spark could not carry one out."""
    try:
        yield
    except PySparkException as problem:
        raise FirnlineError(f"Spark failed while {what}: {said_by(problem)}", _HINT) from problem


def said_by(problem: PySparkException) -> str:
    """Returns the last error that is named: the lines before it say through which code, those after it are advice."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    named = [line for line in lines if "Error: " in line]
    return (named or lines or [type(problem).__name__])[-1]
