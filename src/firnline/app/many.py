"""One verb on many tables: each ends as if it were alone, and one that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from firnline.errors import FirnlineError, Interrupted
from firnline.ports.catalogs import TableName
from firnline.ports.progress import Progress

AT_ONCE = 4
"""How many tables are worked on side by side: most of the time goes to waiting for stores."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class TableAnswer(Generic[Found]):
    """What a verb returned for one table, or why it could not; or why a catalog of this name could not be read."""

    table: str
    value: Found | None = None
    problem: FirnlineError | None = None


def on_each(
    tables: Sequence[TableName],
    act: Callable[[TableName], Found],
    at_once: int,
    interrupted: Callable[[], bool],
    progress: Progress,
) -> Iterator[TableAnswer[Found]]:
    """Yields the answer for each table, in the order given; a few are under way while one is waited for.

    Raises Interrupted between two tables if the operator asked for it. Those that are under way then come to their end.
    """

    def answered(table: TableName) -> TableAnswer[Found]:
        if interrupted():
            return TableAnswer(str(table), problem=Interrupted(f"stopped before {table}"))
        try:
            return TableAnswer(str(table), act(table))
        except FirnlineError as problem:
            return TableAnswer(str(table), problem=problem)

    with ThreadPoolExecutor(max(1, at_once)) as pool:
        for done, answer in enumerate(pool.map(answered, tables), 1):
            if isinstance(answer.problem, Interrupted):
                raise answer.problem
            progress.step("tables", done, len(tables))
            yield answer
