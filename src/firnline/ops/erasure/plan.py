"""Planning an erasure: units that name all but the files are written, then what nobody needs any more is found."""

from __future__ import annotations

from collections.abc import Iterator, Set
from shlex import quote

from firnline.errors import FirnlineError, RefusedForSafety
from firnline.model.files import Root
from firnline.model.locations import identity
from firnline.ops.erasure.finding import erases
from firnline.ops.neighbours.around import around
from firnline.ops.reachability.live_roots import live_roots, may_come_back
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.runs.measured import measured
from firnline.ops.runs.plan import Planned
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.waking import Inquiry
from firnline.plans.erasure import Erasure
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.plans.stages import CommitErasure, stages_of_erasure
from firnline.ports.catalogs import always
from firnline.ports.engines import Survey, TableWalk, Territory
from firnline.ports.erasing import Namers
from firnline.ports.formats import State, UndoWindow


def plan_erasure(
    work: TableContext, state: State, files: Set[str], naming: Namers, asked: Inquiry, grace_ms: int | None
) -> Planned:
    """Returns the plan of an erasure, whose new units are written by then: the table names none of them yet. Readers
    have `grace_ms` after the commit; None for what the policy says.

    Raises RefusedForSafety where a file would be needed all the same: by another table, by a run that can be undone, or
    because it lies where nothing may go.
    """
    trimming = erases(work.source.format, state.table).trimmed(state, files, naming, work.store, always)
    snapshots = tuple(sorted(each.id for each in state.graph))
    paths = tuple(sorted(each.path for each in naming.files))
    units = tuple(sorted(each.key for each in naming.units))
    erasure = Erasure(paths, asked.case, asked.by, snapshots, trimming.snapshots, units, trimming.written)
    survey, engine, others = _surveyed(work, state, erasure)
    _refuse_needed(work, state, naming, survey)
    return Planned(_plan(work, state, erasure, survey, engine, others, grace_ms), survey, state, Request())


def _surveyed(work: TableContext, state: State, erasure: Erasure) -> tuple[Survey, str, int | None]:
    """Returns what nobody needs once the snapshots are trimmed, who walked it, and how many other tables were asked."""
    outside = policy_in_force(state, work.source.name, work.config, Request()).include_outside.value
    found = around(work, state, everywhere=outside)
    found.refuse_conflict()
    territory = Territory(None if outside else state.owned, found.holes, found.real)
    table_format = work.source.format
    starts = list(_starts(work, state, erasure))
    engine = work.choose(state, table_format, "auto")
    (survey,) = engine.surveys([TableWalk(starts, table_format.expand, territory, found.elsewhere)])
    if isinstance(survey, FirnlineError):
        raise survey
    return measured(work.store, survey), engine.name, found.asked


def _starts(work: TableContext, state: State, erasure: Erasure) -> Iterator[Root]:
    """Yields all that will be needed, and what the trimmed snapshots begin with as long as they are as they were.
    Pointers lead to the present version until they follow the commit: a purge looks where they lead then.
    """
    table_format = work.source.format
    after = erases(table_format, state.table).with_trimmed(state, erasure.trimmed)
    yield from live_roots(work, after, work.now(), pointed=())
    kept = {(owner, file.key) for owner, file in table_format.roots(after)}
    going = ((owner, file) for owner, file in table_format.roots(state) if (owner, file.key) not in kept)
    yield from (Root(file, False, f"{owner} before") for owner, file in going)


def _refuse_needed(work: TableContext, state: State, naming: Namers, survey: Survey) -> None:
    """Raises RefusedForSafety unless every file that a snapshot has now is one that nobody needs then."""
    due = {identity(each.path): each.path for each in naming.files if each.lives}
    left = sorted(due.keys() - _victims(survey, sorted(due)))
    if not left:
        return
    path = due[left[0]]
    runs = [quote(str(run.id)) for run, removal in may_come_back(work, state, work.now()) if removal.ids]
    if runs:
        why, hint = f"{runs[0]} may still bring it back", f"`firnline purge {runs[0]}` once its grace is over"
    else:
        why = "another table needs it, or this one by another path"
        hint = "name all its paths together; or delete its rows there with an engine, and expire what has them"
    raise RefusedForSafety(f"{path} cannot be erased from {state.table}: {why}", hint=f"{hint}; nothing was changed")


def _victims(survey: Survey, among: list[str]) -> set[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(among, pa.string())
    names = (batch.column("identity") for batch in survey.victim_batches())
    return {name for column in names for name in column.filter(pc.is_in(column, wanted)).to_pylist()}


def _plan(
    work: TableContext,
    state: State,
    erasure: Erasure,
    survey: Survey,
    engine: str,
    asked: int | None,
    grace_ms: int | None,
) -> Plan:
    policy = policy_in_force(state, work.source.name, work.config, Request())
    waits_ms = policy.grace.value if grace_ms is None else grace_ms
    commit = CommitErasure(len(erasure.trimmed), len(erasure.files))
    return Plan(
        table=state.table,
        format=state.format,
        location=state.location,
        uuid=state.uuid,
        fence=state.fence,
        now_ms=work.now(),
        policy=f"erased for {erasure.case}",
        keep=(),
        expire=(),
        expire_refs=(),
        kept=survey.kept,
        victims=survey.victims,
        spared=survey.spared,
        engine=engine,
        units_opened=survey.units_opened,
        stages=stages_of_erasure(commit, waits_ms, survey.victims.all),
        undo=UndoWindow.NONE,
        asked=asked,
        erasure=erasure,
    )
