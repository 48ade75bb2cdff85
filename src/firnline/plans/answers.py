"""One table of several: what a verb says of it, or why it cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from firnline.errors import FirnlineError

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class TableAnswer(Generic[Found]):
    """What a verb returned for one table, and why it went no further; or why a catalog of this name cannot be read."""

    table: str
    value: Found | None = None
    problem: FirnlineError | None = None

    def error_json(self) -> dict[str, Any]:
        """Returns what every answer has in JSON, whatever else it says."""
        return {"table": self.table, "error": None if self.problem is None else self.problem.to_json()}


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
