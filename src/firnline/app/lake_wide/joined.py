"""Expiries that take with them what no table needs: all folders are listed before any table is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firnline.app.lake_wide.plans import Drafted, LakePlans
from firnline.app.lake_wide.searches import LakeSearches
from firnline.app.runs import Leave
from firnline.app.searches import Examined, SearchTerms
from firnline.errors import FirnlineError
from firnline.ops.neighbours.others import OthersOnce
from firnline.ops.orphans.joining import joined
from firnline.ops.orphans.rules import SearchRequest
from firnline.plans.answers import Found, TableAnswer
from firnline.plans.request import Request

if TYPE_CHECKING:
    from firnline.ops.runs.plan import Planned
    from firnline.ports.catalogs import TableName

Search = Examined | FirnlineError
"""What a search found of a table's folders, or what stopped it."""


@dataclass(frozen=True, slots=True)
class JoinedPlans:
    """Searches many tables, and plans them by what was listed before."""

    searches: LakeSearches
    plans: LakePlans

    def each(
        self,
        names: Sequence[TableName],
        request: Request,
        act: Callable[[Drafted, Planned, Search], Found],
        interrupted: Callable[[], bool],
    ) -> Iterator[TableAnswer[Found]]:
        """Yields what `act` makes of each table's search and plan, in the order given. What stops a search stops no
        expiry: the plan is then without.
        """

        others = OthersOnce()

        def conclude(some: Sequence[Examined]) -> Iterator[TableAnswer[TableAnswer[Found]]]:
            found = {str(each): each for each in some}
            plan = self._plans(request, act, found, interrupted, len(names), others)
            for each in plan([each.name for each in some]):
                yield TableAnswer(each.table, each)

        searched = list(self.searches.each(names, SearchRequest(), _terms(request), conclude))
        stopped = {each.table: each.problem for each in searched if each.problem is not None}
        without = [name for name in names if str(name) in stopped]
        alone = self._plans(request, act, stopped, interrupted, len(names), others)(without)
        yield from (next(alone) if each.value is None else each.value for each in searched)

    def _plans(
        self,
        request: Request,
        act: Callable[[Drafted, Planned, Search], Found],
        found: Mapping[str, Search],
        interrupted: Callable[[], bool],
        of_all: int,
        others: OthersOnce,
    ) -> Callable[[Sequence[TableName]], Iterator[TableAnswer[Found]]]:
        """Returns what plans some of the tables: all of them look at the others of the lake once."""

        def planned(each: Drafted, plan: Planned) -> Found:
            return act(each, plan, found[str(each)])

        return lambda names: self.plans.each(names, request, planned, interrupted, of_all, others)


def _terms(request: Request) -> SearchTerms:
    """Returns the terms of the expiry for its search, which becomes no run by itself."""
    leave = Leave(include_outside=request.include_outside)
    return SearchTerms(request.grace_ms, request.blast_radius, True, lambda plan: False, leave, None, None)


def with_search(planned: Planned, search: Search) -> Planned:
    """Returns the plan with what the search found, or with a note of what stopped it."""
    if isinstance(search, Examined):
        return joined(planned, search.searched, search.write)
    note = f"its folders were not searched: {search.message}"
    return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, note)))
