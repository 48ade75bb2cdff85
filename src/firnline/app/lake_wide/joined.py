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
        others = OthersOnce()  # all of them look at the other tables of the lake once

        def planned(some: Sequence[TableName], found: Mapping[str, Search]) -> Iterator[TableAnswer[Found]]:
            def with_its_search(each: Drafted, plan: Planned) -> Found:
                return act(each, plan, found[str(each)])

            return self.plans.each(some, request, with_its_search, interrupted, len(names), others)

        def conclude(some: Sequence[Examined]) -> Iterator[TableAnswer[TableAnswer[Found]]]:
            answers = planned([each.name for each in some], {str(each): each for each in some})
            return (TableAnswer(each.table, each) for each in answers)

        searched = list(self.searches.each(names, SearchRequest(), _terms(request), conclude))
        stopped = {each.table: each.problem for each in searched if each.problem is not None}
        alone = planned([name for name in names if str(name) in stopped], stopped)
        yield from (next(alone) if each.value is None else each.value for each in searched)


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
