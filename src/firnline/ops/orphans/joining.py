"""An expiry that takes what a search found with it: one plan, one record, one purge.

1. The table's folders are listed to their end.
2. Then every table is read: what none needs, not even by a snapshot that is about to expire, is an orphan.
3. Then the expiry is planned. What only its snapshots need comes before the orphans on the written list.

The listing is the oldest of the three, so that a file which is committed meanwhile is no orphan.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from firnline.model.files import Totals
from firnline.ops.orphans.guard import LakeGuard
from firnline.ops.orphans.written import WriteSearch
from firnline.ops.runs.guard import ListedFile, TableGuard
from firnline.ops.runs.plan import Planned
from firnline.plans.orphans import OrphanPlan
from firnline.plans.stages import PurgeVictims


def joined(planned: Planned, found: OrphanPlan, write: WriteSearch) -> Planned:
    """Returns the plan that takes orphans with it, and writes their list when it is saved. Where there are none, or too
    many, or where nothing expires, it only shows what was found.
    """
    plan = replace(planned.plan, orphans=found)
    if not found.stages or not plan.stages or found.refused:
        return replace(planned, plan=plan)
    both = Totals.of((*plan.victims.by_kind.items(), *found.victims.by_kind.items()))
    purge = PurgeVictims(both.all.files, both.all.bytes)
    stages = tuple(purge if isinstance(each, PurgeVictims) else each for each in plan.stages)
    return replace(planned, plan=replace(plan, victims=both, stages=stages), search=write)


@dataclass(frozen=True, slots=True)
class JoinedGuard:
    """Guards a list of which one part expired and another was searched for. The table is asked about both; the other
    tables of the lake, and the store, also about what was listed.
    """

    table: TableGuard
    lake: LakeGuard

    def look_again(self) -> None:
        self.table.look_again()
        self.lake.look_again()

    def reasons_to_spare(self, lines: Sequence[ListedFile]) -> dict[str, str]:
        spared = self.table.reasons_to_spare(lines)
        return spared | self.lake.reasons_to_spare([each for each in lines if _was_listed(each, spared)])

    def newly_needed(self, keys: Sequence[str]) -> set[str]:
        return self.table.newly_needed(keys) | self.lake.newly_needed(keys)


def _was_listed(line: ListedFile, spared: Container[str]) -> bool:
    """Tells whether the store is still to be asked about a line: only what was listed says how old it was then."""
    return line.modified_ms is not None and line.key not in spared
