"""Errors that cross Spark as the error they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from firnline.errors import FirnlineError, UsageError
from firnline.spark.telling import raise_told, told

_SAID = re.compile(r"firnline says (\[\".*\"\]) end of what firnline says")
_MARKED = re.compile(r"^(?:: [\w.$]+: )?(?:\[[A-Z_.0-9]+\] )?")
_CALLING = "An error occurred while calling "
"""So begins what Py4J says, and only then comes what Java said."""


class ErrorInWords(Exception):
    """A firnline error in words that are found again in whatever Spark makes of them."""

    def __init__(self, problem: FirnlineError) -> None:
        super().__init__(f"firnline says {told(problem)} end of what firnline says")


@contextmanager
def telling() -> Iterator[None]:
    """Inside a worker: raises Told for every error of firnline's own."""
    try:
        yield
    except FirnlineError as problem:
        raise ErrorInWords(problem) from problem


@contextmanager
def understanding() -> Iterator[None]:
    """Around what Spark runs: raises the error that a worker told, or what Spark has against the statement."""
    try:
        yield
    except (AnalysisException, ParseException) as problem:
        _raise_said(problem)
        raise UsageError(_first_line(problem), hint="the statement is Spark SQL; see `firnline tables`") from None
    except (PySparkException, Py4JJavaError) as problem:  # the latter from rows that are fetched one by one
        _raise_said(problem)
        message = f"Spark could not run the statement: {_first_line(problem)}"
        raise FirnlineError(
            message, "try a part of it; where executors run elsewhere, their logs say more"
        ) from problem


def _raise_said(problem: Exception) -> None:
    found = _SAID.search(str(problem))
    raise_told(found[1] if found else None)


def _first_line(problem: Exception) -> str:
    lines = (each for each in str(problem).splitlines() if each.strip() and not each.startswith(_CALLING))
    line = next(lines, type(problem).__name__)
    return _MARKED.sub("", line).partition(" SQLSTATE:")[0]
