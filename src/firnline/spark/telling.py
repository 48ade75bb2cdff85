"""What executors say of an error, and what Spark says of a job that failed: in one line.

Errors travel as rows: Spark would only try again and then bury the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from firnline import errors
from firnline.errors import FirnlineError, Interrupted

_ENDED = re.compile(r"\b(SPARK_JOB_CANCELLED|OPERATION_CANCELED)\b")
_HINT = "its page, or the executors' logs, say more; then try again"


def told(problem: FirnlineError) -> str:
    """Returns the error as text. Its class is the nearest one in the tree that everybody knows; adapters have finer."""
    known = next(each.__name__ for each in type(problem).__mro__ if each.__module__ == FirnlineError.__module__)
    return json.dumps([known, problem.message, problem.flags])


def error_of(said: str) -> FirnlineError:
    """Returns the error that an executor told."""
    kind, message, hint = json.loads(said)
    problem: FirnlineError = getattr(errors, kind)(message, hint)
    return problem


def raise_told(said: str | None) -> None:
    """Raises the error that an executor told; returns where it told none."""
    if said:
        raise error_of(said)


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Around jobs: raises FirnlineError where Spark could not carry one out, and Interrupted where it was told to end
    it: by us, or on Spark's own page.
    """
    try:
        yield
    except (PySparkException, Py4JError) as problem:  # rows that are streamed fail with the JVM's own words
        if _ENDED.search(str(problem)):
            raise Interrupted(f"a job on Spark was stopped while {what}", hint="`firnline resume` goes on") from problem
        raise FirnlineError(f"Spark failed while {what}: {said_by(problem)}", _HINT) from problem


def said_by(problem: Exception) -> str:
    """Returns the last error that is named: the lines before it say through which code, those after it are advice."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    named = [line for line in lines if "Error: " in line]
    return (named or lines or [type(problem).__name__])[-1]


def told_of(lost: Mapping[int, str]) -> bytes:
    """Returns what is told of walks that cannot be judged: by their numbers the errors, as text."""
    return json.dumps(sorted(lost.items())).encode()


def lost_walks(said: bytes) -> dict[int, str]:
    """Returns the errors by the numbers of the walks, as `told_of` has them."""
    return dict(json.loads(said))
