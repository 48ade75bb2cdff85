"""Planning the removal of orphans, consenting to it and calling it off: no table changes, only the run's own record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from firnline.errors import BlastRadiusExceeded, RefusedForSafety
from firnline.journal.events import EventStore, RunState, Sealing
from firnline.journal.layout import RecordFolder, RunId
from firnline.journal.parts import PutAndGet
from firnline.journal.runs import put_plan
from firnline.model.files import FileKind, Tally
from firnline.model.removals import Removal
from firnline.ops.orphans.rules import SearchRequest
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.search import Means, SearchResult
from firnline.ops.orphans.written import WrittenSearch
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
    """A plan, and the census behind it; `cap` is the largest share of a table that a run may remove."""

    plan: OrphanPlan
    found: SearchResult
    scope: Scope
    asked: SearchRequest
    cap: float

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
    return Searched(plan, found, scope, asked, cap)


def write_search(searched: Searched, means: Means, store: PutAndGet, root: str) -> WrittenSearch:
    """Returns the search, its list written. There is no run before its plan is written, too: by `save_search`, or with
    the expiry that takes it along.
    """
    plan, census = searched.plan, searched.found.census
    run = RunId.new(plan.table, plan.now_ms)
    folder, order = RecordFolder(root, run.stamp), _order(searched, means)
    seals = {
        "victims": write_victims(census.victim_batches(), order, store, folder.victims, searched=True),
        "searched": write_units(census.unit_batches(), store, folder.searched),
    }
    return WrittenSearch(run, plan, seals, _scope(searched))


def save_search(
    written: WrittenSearch,
    store: EventStore,
    root: str,
    sealing: Sealing,
    now_ms: int,
    enter: Callable[[RunId], None],
    *,
    address: str,
    meant: bool,
) -> OrphanPlan:
    """Returns the plan with the run it was saved as. The written list came first, the plan comes last. `address` is
    that of the table's catalog.
    """
    run, folder = written.run, RecordFolder(root, written.run.stamp)
    saved = replace(written.plan, run=str(run))
    nothing_expires: dict[str, Any] = {"request": {}, "expire": [], "expire_refs": [], "fence": None}
    asked = {"scope": written.scope, "meant": meant, "address": address}
    record = {**saved.to_json(), **nothing_expires, **asked, "parts": written.seals}
    put_plan(store, folder, record, now_ms, sealing, partial(enter, run))
    return saved


def _order(searched: Searched, means: Means) -> tuple[FileKind, ...]:
    """Returns the kinds in the order of deletion, of all formats whose files are searched."""
    departed = searched.scope.departed
    own = () if departed is None else (means.formats.of(departed),)
    formats = (*own, *(each.work.source.format for each in searched.found.insiders))
    return tuple(dict.fromkeys(kind for each in formats for kind in each.purge_order))


def _scope(searched: Searched) -> dict[str, Any]:
    """Returns what a purge must know beyond the plan: whom the search asked, and about what."""
    departed = searched.scope.departed
    return {
        "folders": list(searched.scope.folders),
        "uuid": searched.scope.uuid,
        "departed": None if departed is None else departed.uuid,
        "also": list(searched.asked.also),
        "same": [list(pair) for pair in searched.asked.same],
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
