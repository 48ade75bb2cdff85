"""Telling a person how far long work has come."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def step(self, what: str, done: int, total: int | None = None) -> None:
        """Says that `done` of `total` (None: not known) of a named step are finished."""
        ...


class Silent:
    """No progress at all: for programs and tests."""

    def step(self, what: str, done: int, total: int | None = None) -> None:
        return None
