"""An expiry that takes what a search found with it: one plan, one record, one purge.

1. The table's folders are listed to their end.
2. Then every table is read: what none needs, not even by a snapshot that is about to expire, is an orphan.
3. Then the expiry is planned. What only its snapshots need comes before the orphans on the written list.

The listing is the oldest of the three, so that a file which is committed meanwhile is no orphan.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from firnline.errors import FirnlineError
from firnline.model.files import Totals
from firnline.ops.orphans.guard import LakeGuard
from firnline.ops.orphans.plan import Searched
from firnline.ops.orphans.written import WriteSearch
from firnline.ops.runs.guard import ListedFile, TableGuard
from firnline.ops.runs.plan import Planned, blast_radius_refusal
from firnline.plans.plan import Plan
from firnline.plans.stages import BeginGrace, PurgeVictims


def joined(planned: Planned, searched: Searched, write: WriteSearch) -> Planned:
    """Returns the plan that takes orphans with it, and writes their list when it is saved. Where nothing expires they
    are all that goes, by a run of their own. They stay, and the plan says why, if they are too many, or would be
    together with what expires.
    """
    plan, found = planned.plan, searched.plan
    both = Totals.of((*plan.victims.by_kind.items(), *found.victims.by_kind.items()))
    if plan.stages and plan.kept is not None and not found.refused:
        found = replace(found, refused=blast_radius_refusal(plan.kept.all, both.all, searched.cap))
    if found.refused and not plan.refused:
        plan = replace(plan, notes=(*plan.notes, f"what no table needs stays: {found.refused}"))
    plan = replace(plan, orphans=found)
    if not found.stages or found.refused or (plan.refusal is not None and not plan.stages):
        return replace(planned, plan=plan)
    if not plan.stages:
        return replace(planned, plan=replace(plan, victims=found.victims, stages=found.stages))
    purge = PurgeVictims(both.all.files, both.all.bytes)
    stages = tuple(purge if isinstance(each, PurgeVictims) else each for each in plan.stages)
    return replace(planned, plan=replace(plan, victims=both, stages=stages), search=write)


def takes_orphans_alone(plan: Plan) -> bool:
    """Tells whether nothing expires, so that all that goes was searched for."""
    return any(isinstance(each, BeginGrace) for each in plan.stages)


@dataclass(slots=True)
class JoinedGuard:
    """Guards a list of which one part expired and another was searched for. The table is asked about both; the other
    tables of the lake, and the store, also about what was listed.

    What the lake cannot be asked any more holds up no expiry: a table that is gone, a record of another's key. Then all
    that was listed stays, unless some of it went already: whether anything took that up must be seen before all else.
    """

    table: TableGuard
    lake: LakeGuard
    doubt: str | None = None
    _has_sent: bool = False

    def look_again(self) -> None:
        self.table.look_again()
        try:
            self.lake.look_again()
        except FirnlineError as problem:
            if self._has_sent:
                raise
            self.doubt = problem.message

    def look_back(self) -> None:
        self.table.look_back()
        self.lake.look_back()

    def reasons_to_spare(self, lines: Sequence[ListedFile]) -> dict[str, str]:
        spared = self.table.reasons_to_spare(lines)
        listed = [each for each in lines if _was_listed(each, spared)]
        if self.doubt is not None:
            return spared | {each.key: f"not asked who needs it: {self.doubt}" for each in listed}
        spared |= self.lake.reasons_to_spare(listed)
        self._has_sent = self._has_sent or any(each.key not in spared for each in listed)
        return spared

    def newly_needed(self, keys: Sequence[str]) -> set[str]:
        return self.table.newly_needed(keys) | self.lake.newly_needed(keys)


def _was_listed(line: ListedFile, spared: Container[str]) -> bool:
    """Tells whether the store is still to be asked about a line: only what was listed says how old it was then."""
    return line.modified_ms is not None and line.key not in spared
