"""One table of several: what a verb says of it, or why it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from firnline.errors import FirnlineError
from firnline.plans.pages import Line, counted

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class TableAnswer(Generic[Found]):
    """What a verb returned for one table, and why it went no further; or why a catalog of this name cannot be read."""

    table: str
    value: Found | None = None
    problem: FirnlineError | None = None
    of_catalog: bool = False
    """Whether it stands for a catalog that cannot be read: nobody knows how many tables that has."""

    def error_json(self) -> dict[str, Any]:
        """Returns what every answer has in JSON, whatever else it says."""
        return {"table": self.table, "error": None if self.problem is None else self.problem.to_json()}


def counts_of(answers: Sequence[TableAnswer[Any]]) -> dict[str, int]:
    """Returns how many tables there are, those that nothing is known of, and the catalogs that cannot be read."""
    tables = [each for each in answers if not each.of_catalog]
    failed = sum(each.value is None for each in tables)
    return {"tables": len(tables), "failed": failed, "unread_catalogs": len(answers) - len(tables)}


def what_failed(said: str, failed: int, unread_catalogs: int) -> Iterator[Line]:
    """Yields how many tables something was not done with, in these words, and how many catalogs cannot be read."""
    if failed:
        yield Line(said.format(counted(failed, "table")))
    if unread_catalogs:
        yield Line(f"{counted(unread_catalogs, 'catalog')} cannot be read")


def the_answer(answers: Iterable[TableAnswer[Found]]) -> Found:
    """Returns what a verb returned for the one table that was named. Raises what stopped it."""
    (answer,) = answers
    if answer.problem is not None:
        raise answer.problem
    assert answer.value is not None
    return answer.value


class Telling(Protocol):
    def to_json(self) -> dict[str, Any]: ...


Told = TypeVar("Told", bound=Telling)


def facts_of(answer: TableAnswer[Told]) -> dict[str, Any]:
    """Returns what a verb says of one table in JSON, and its error, null if there is none."""
    return {**answer.error_json(), **({} if answer.value is None else answer.value.to_json())}
