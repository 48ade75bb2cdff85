"""Planning the removal of orphans, consenting to it and calling it off: no table changes, only the run's own record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from firnline.errors import BlastRadiusExceeded, RefusedForSafety
from firnline.journal.events import EventStore, RunState, Sealing
from firnline.journal.layout import RecordFolder, RunId
from firnline.journal.runs import put_plan
from firnline.model.files import FileKind, Tally
from firnline.model.removals import Removal
from firnline.ops.orphans.rules import SearchRequest
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.search import Means, SearchResult
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.runs.plan import blast_radius_refusal
from firnline.ops.runs.record import write_units, write_victims
from firnline.plans.orphans import OrphanPlan
from firnline.plans.stages import stages_of_search
from firnline.ports.formats import State
from firnline.ports.listings import ObjectClass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Searched:
    """A plan, and the census behind it."""

    plan: OrphanPlan
    found: SearchResult
    scope: Scope
    asked: SearchRequest

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return self.found.census.victim_batches()


def plan_orphans(
    state: State,
    scope: Scope,
    found: SearchResult,
    asked: SearchRequest,
    means: Means,
    *,
    grace_ms: int,
    cap: float,
    notes: tuple[str, ...] = (),
) -> Searched:
    """Returns what would go of a table's folders, or of a prefix, by what was found there. Changes nothing."""
    census = found.census
    needed = census.classes.get(ObjectClass.NEEDED, Tally())
    refusal = None if scope.departed else blast_radius_refusal(needed, census.victims.all, cap)
    plan = OrphanPlan(
        table=state.table,
        format=state.format,
        location=state.location,
        uuid=state.uuid,
        now_ms=means.now(),
        cutoff_ms=found.cutoff_ms,
        listed=found.listed,
        classes=census.classes,
        victims=census.victims,
        tables=found.tables,
        catalogs=found.catalogs,
        engine=means.engine.name,
        units_opened=census.units_opened,
        stages=stages_of_search(grace_ms, census.victims.all),
        notes=notes,
        refused=refusal if census.victims.by_kind else None,
    )
    return Searched(plan, found, scope, asked)


def save_search(
    searched: Searched,
    means: Means,
    store: EventStore,
    root: str,
    sealing: Sealing,
    enter: Callable[[RunId], None],
    *,
    meant: bool,
) -> OrphanPlan:
    """Returns the plan with the run it was saved as. The written list comes first, the plan last."""
    plan, census = searched.plan, searched.found.census
    run = RunId.new(plan.table, plan.now_ms)
    folder = RecordFolder(root, run.stamp)
    seals = {
        "victims": write_victims(census.victim_batches(), _order(searched, means), store, folder.victims),
        "walked": write_units(census.unit_batches(), store, folder.walked),
    }
    saved = replace(plan, run=str(run))
    record = {**saved.to_json(), **_record(searched), "meant": meant, "parts": seals}
    put_plan(store, folder, record, plan.now_ms, sealing, partial(enter, run))
    return saved


def _order(searched: Searched, means: Means) -> tuple[FileKind, ...]:
    """Returns the kinds in the order of deletion, of all formats whose files are searched."""
    departed = searched.scope.departed
    own = () if departed is None else (means.formats.of(departed),)
    formats = (*own, *(each.work.source.format for each in searched.found.insiders))
    return tuple(dict.fromkeys(kind for each in formats for kind in each.purge_order))


def _record(searched: Searched) -> dict[str, Any]:
    """Returns what a purge must know beyond the plan: whom the search asked, and about what."""
    departed = searched.scope.departed
    return {
        "request": {},
        "expire": [],
        "expire_refs": [],
        "fence": None,
        "scope": {
            "folders": list(searched.scope.folders),
            "uuid": searched.scope.uuid,
            "departed": None if departed is None else departed.uuid,
            "also": list(searched.asked.also),
            "same": [list(pair) for pair in searched.asked.same],
        },
    }


def begin_grace(leased: LeasedRun) -> LeasedRun:
    """Returns the run, its grace begun: what nobody needs now must still be needed by nobody when it ends."""
    if leased.run.state is not RunState.PLANNED:
        return leased
    if leased.run.plan.get("refused"):
        raise BlastRadiusExceeded(
            leased.run.plan["refused"], hint="search again with a larger --blast-radius, if meant"
        )
    leased.lease.renew()
    return leased.moved(RunState.COMMITTED, removal=Removal().to_json())


def call_off(leased: LeasedRun) -> LeasedRun:
    """Returns the run, ended before it deleted anything. Raises once its purge has started."""
    leased.lease.renew()
    match leased.run.state:
        case RunState.PLANNED:
            return leased.moved(RunState.CANCELLED, why="called off")
        case RunState.COMMITTED:
            return leased.moved(RunState.UNDOING).moved(RunState.UNDONE)
        case RunState.UNDOING:
            return leased.moved(RunState.UNDONE)
        case RunState.PURGING:
            raise RefusedForSafety(f"the purge of {leased.run.id} has started", hint="what is gone cannot come back")
        case _:
            return leased
