"""All commits that a random history is made of, by name."""

from __future__ import annotations

from collections.abc import Callable

from .data_commits import DataCommits
from .history_commits import HistoryCommits
from .table_commits import TableCommits


class Operations(DataCommits, HistoryCommits, TableCommits):
    """Random commits on one table."""


def named(operations: Operations, name: str) -> Callable[[], bool]:
    operation: Callable[[], bool] = getattr(operations, name)
    return operation
