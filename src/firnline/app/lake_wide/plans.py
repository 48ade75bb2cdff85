"""Plans of many tables: each is decided by itself, and their files are looked at together, in as few passes as memory
allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.app.many import answer_of, on_each
from firnline.app.runs import Runs
from firnline.errors import FirnlineError, told_bug
from firnline.ops.neighbours.others import FindOthers, OthersOnce
from firnline.plans.answers import Found, TableAnswer
from firnline.plans.request import Request
from firnline.ports.progress import Silent

if TYPE_CHECKING:
    from firnline.ops.runs.plan import Draft, Planned
    from firnline.ops.table.context import TableContext
    from firnline.ports.catalogs import TableName
    from firnline.ports.engines import Engine, Survey

TABLES_ON_THREADS, TABLES_ON_SPARK, FILES_OF_A_PASS = 16, 128, 200_000
"""What is held at a time: the roots of so many tables, and the rows of about so many files, half a gigabyte. A larger
table has a pass of its own. On Spark a pass costs seconds however small it is; threads gain nothing from a larger one.
"""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A table, and what is decided of it."""

    name: TableName
    work: TableContext
    draft: Draft

    @property
    def entries(self) -> int:
        return 0 if self.draft.walk is None else self.draft.walk.entries

    def __str__(self) -> str:
        return str(self.name)


Act = Callable[[Drafted, "Planned"], Found]
"""Returns what becomes of a table's plan."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A table whose files were looked at; None where nothing of it goes. A problem is what a survey of it raised."""

    drafted: Drafted
    survey: Survey | FirnlineError | None
    engine: str = ""

    def __str__(self) -> str:
        return str(self.drafted)


@dataclass(frozen=True, slots=True)
class LakePlans:
    """Plans many tables, so many side by side where each is by itself."""

    runs: Runs
    at_once: int

    def each(
        self,
        names: Sequence[TableName],
        request: Request,
        act: Act[Found],
        interrupted: Callable[[], bool],
        of_all: int | None = None,
        others: FindOthers | None = None,
    ) -> Iterator[TableAnswer[Found]]:
        """Yields what `act` makes of each table's plan, in the order given; it closes the plan when it is done. Where
        these are some of more tables, `of_all` is how many, and `others` finds the rest of the lake for all of them.
        """
        progress, done = self.runs.places.progress, 0
        find, every = others or OthersOnce(), of_all or len(names)

        def draft(name: TableName) -> Drafted:
            return self._drafted(name, request, find)

        engines = self.runs.places.engines
        if len(names) > 1:
            progress.step("tables", done, len(names))
        while done < len(names):
            some = names[done : done + (TABLES_ON_SPARK if engines.spreads else TABLES_ON_THREADS)]
            drafts = list(on_each(some, draft, self.at_once, interrupted, Silent()))
            for answers in _passes(drafts):
                for answer in self._planned(answers, act, every, interrupted):
                    done += 1
                    progress.step("tables", done, len(names))
                    yield answer

    def _drafted(self, name: TableName, request: Request, others: FindOthers) -> Drafted:
        work = self.runs.places.table_context(name)
        return Drafted(name, work, self.runs.draft(work, request, others))

    def _planned(
        self,
        answers: Sequence[TableAnswer[Drafted]],
        act: Act[Found],
        of_all: int,
        interrupted: Callable[[], bool],
    ) -> Iterator[TableAnswer[Found]]:
        def finished(each: Surveyed) -> Found:
            if isinstance(each.survey, FirnlineError):
                raise each.survey
            drafted = each.drafted
            return act(drafted, self.runs.finished(drafted.work, drafted.draft, each.survey, each.engine))

        drafted = [answer.value for answer in answers if answer.value is not None]
        surveyed = self._surveyed(drafted, of_all, interrupted)
        ended = on_each(surveyed, finished, self.at_once, interrupted, Silent())
        for answer in answers:
            yield TableAnswer(answer.table, problem=answer.problem) if answer.value is None else next(ended)

    def _surveyed(self, drafted: Sequence[Drafted], of_all: int, interrupted: Callable[[], bool]) -> list[Surveyed]:
        """Returns what was found of each table. What ends a pass as a whole is told of each of its tables."""
        due = [each for each in drafted if each.draft.walk is not None]
        tables = ((each.draft, each.draft.state, each.entries) for each in due)
        weighed = [(draft.engine, state.location, len(state.graph), entries) for draft, state, entries in tables]
        engines = self.runs.places.engines.choose_together(weighed, of_all) if due else []
        groups: dict[int, tuple[Engine, list[Drafted]]] = {}
        for engine, each in zip(engines, due, strict=True):
            groups.setdefault(id(engine), (engine, []))[1].append(each)
        found = {id(each): Surveyed(each, None) for each in drafted}
        for engine, some in groups.values():
            answer = answer_of(_Pass(engine, some), _Pass.surveys, interrupted)
            for number, each in enumerate(some):
                survey = answer.problem if answer.value is None else answer.value[number]
                found[id(each)] = Surveyed(each, survey, engine.name)
        return [found[id(each)] for each in drafted]


@dataclass(frozen=True, slots=True)
class _Pass:
    engine: Engine
    tables: Sequence[Drafted]

    def __str__(self) -> str:
        return f"{len(self.tables):,} tables"

    def surveys(self) -> Sequence[Survey | FirnlineError]:
        """Returns the answer for each table. What no engine foresaw in the units of one table ends a pass as a whole:
        then each is looked at by itself, and that one alone is lost.
        """
        try:
            return self.engine.surveys([each.draft.walk for each in self.tables if each.draft.walk is not None])
        except FirnlineError:
            raise
        except Exception as bug:
            problem = told_bug(str(self), bug)
            if len(self.tables) == 1:
                return [problem]
            return [_Pass(self.engine, [each]).surveys()[0] for each in self.tables]


def _passes(answers: Sequence[TableAnswer[Drafted]]) -> Iterator[list[TableAnswer[Drafted]]]:
    """Yields the tables in their order, so many at a time as one pass may look at."""
    some: list[TableAnswer[Drafted]] = []
    files = 0
    for answer in answers:
        more = 0 if answer.value is None else answer.value.entries
        if some and files + more > FILES_OF_A_PASS:
            yield some
            some, files = [], 0
        some.append(answer)
        files += more
    if some:
        yield some
