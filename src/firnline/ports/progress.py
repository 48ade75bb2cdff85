"""Telling a person how far long work has come."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

SPARK_IS_HEARD: ContextVar[Callable[[], bool]] = ContextVar("spark_is_heard", default=lambda: True)
"""Tells whether what a JVM of ours says by itself goes to stderr. A program's own stderr is left as it is; a command
shows none of it without -v.
"""


PURGING_FILES = "purging files"
"""The step that a purge tells of: how many files of its list have met their end."""


class Progress(Protocol):
    def step(self, what: str, done: int, total: int | None = None) -> None:
        """Says that `done` of `total` (None: not known) of a named step are finished."""
        ...


class Silent:
    """No progress at all: for programs and tests."""

    def step(self, what: str, done: int, total: int | None = None) -> None:
        return None
