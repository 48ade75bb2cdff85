"""Planning: load, decide, survey. Nothing here can change a table or delete a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING

from firnline.errors import UnreadableMetadata
from firnline.model.files import Root, Tally, Totals
from firnline.model.snapshots import SnapshotId
from firnline.model.times import MINUTE_MS, format_duration
from firnline.ops.neighbours.around import Around
from firnline.ops.reachability.pointed import pointed_versions, roots_beyond, troubles_of
from firnline.ops.readers.needs import starts_that_go
from firnline.ops.runs.bounded import oldest_only
from firnline.ops.runs.decision import Settled, decide_to_act, includes_outside, window_ms
from firnline.ops.runs.drop import consequences_of, narrowed
from firnline.plans.graph.facts import SnapshotGraph
from firnline.plans.plan import Archive, ExpiredSnapshot, KeptSnapshot, Plan, share_removed
from firnline.plans.request import Request
from firnline.plans.stages import ArchiveSnapshots, AwaitGrace, CommitExpiry, PurgeVictims, Stage, stages_of_expiry
from firnline.policy.parse import Section, longest_write_ms
from firnline.policy.policy import Level
from firnline.policy.readers import ReaderNeeds
from firnline.ports.abilities import (
    Consequences,
    DrawsHistory,
    ExpiringWriters,
    OpenSessions,
    PointedVersion,
    TellsSize,
)
from firnline.ports.cache import Remember
from firnline.ports.catalogs import TableName, TableSource
from firnline.ports.engines import Survey, TableWalk, Territory
from firnline.ports.expanding import Expand
from firnline.ports.formats import FenceKind, State, TableFormat, UndoWindow

if TYPE_CHECKING:
    from firnline.ops.orphans.written import WriteSearch

SHORTEST_GRACE_MS = MINUTE_MS
"""Of a table whose commits are no compare-and-swap."""

_SEVERAL = 2
RESTART = "a job goes by the options that it found when it started; restart those that run"

AskOthers = Callable[[State, bool], Around]
"""Returns what other tables mean for one; the flag says that files outside its own folders may go too."""

AskReaders = Callable[[State], ReaderNeeds]
"""Returns what programs still need of a table in this state."""

CountForgotten = Callable[[State, int], int]
"""Returns how many expired snapshots the table's history holds that were committed at an instant or before."""

Measure = Callable[[Survey], Survey]
"""Returns the survey with the sizes that the store tells of victims of which no metadata tells one."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and the survey behind it; None where nothing expires and so nothing was walked. `search` writes what
    it takes with it of what no table needs. `settled` is the decision behind it, None of an erasure.
    """

    plan: Plan
    survey: Survey | None
    state: State
    request: Request
    search: WriteSearch | None = None
    settled: Settled | None = None

    def close(self) -> None:
        """Gives back what the engine holds for the survey; the plan stays."""
        if self.survey is not None:
            self.survey.close()


ChooseArchive = Callable[[State, Settled], Archive | None]
"""Returns what is handed to a tier before the commit."""


def archives_nothing(state: State, settled: Settled) -> Archive | None:
    return None


def forgets_nothing(state: State, bound_ms: int) -> int:
    return 0


def by_opening(table_format: TableFormat, state: State, window_ms: int) -> Expand:
    """Returns the format's own expand: every unit is opened."""
    return table_format.expand


@dataclass(frozen=True, slots=True)
class Draft:
    """What is decided of a table before its files are looked at. `walk` is what an engine is asked; None where nothing
    is released. `engine` is the one that its policy names.
    """

    plan: Plan
    state: State
    request: Request
    settled: Settled
    walk: TableWalk | None = None
    around: Around | None = None

    @property
    def engine(self) -> str:
        return str(self.settled.effective.engine.value)


@dataclass(frozen=True, slots=True)
class DecidedPlan:
    """A plan before anybody asks for files: which snapshots go and stay, and what follows for the table."""

    plan: Plan
    state: State
    settled: Settled
    follows: Consequences
    pointed: tuple[PointedVersion, ...]


def decide_plan(
    source: TableSource,
    config: Section,
    request: Request,
    ask_readers: AskReaders,
    now_ms: int,
    count_forgotten: CountForgotten = forgets_nothing,
    choose_archive: ChooseArchive = archives_nothing,
) -> DecidedPlan:
    """Returns which snapshots a run would take out. Raises, with nothing changed, where anything cannot be read."""
    state = source.load()
    pointed, read = pointed_versions(source.format, state), ask_readers(state)
    settled = decide_to_act(source.format, state, source.name, config, request, now_ms, pointed, read)
    settled = narrowed(settled, source.format, state, request)
    settled = oldest_only(settled, source.format, state, request, now_ms - longest_write_ms(config))
    follows = consequences_of(source.format, state, settled)
    forgets, trouble = _forgets(state, request, settled, count_forgotten)
    archive = choose_archive(state, settled)
    plan = _without_files(state, request, settled, follows, forgets, archive)
    plan = replace(
        plan,
        live=source.format.live_size(state) if isinstance(source.format, TellsSize) else None,
        notes=(
            *_notes(source.format, state),
            *_miswritten(config, source.name),
            *troubles_of(pointed),
            *trouble,
            *read.notes,
            *starts_that_go(read, set(settled.decision.expired)),
        ),
    )
    plan = _after_sessions(plan, source.format, request, settled, longest_write_ms(config))
    plan = replace(plan, drawing=_drawing(source.format, state, settled, plan))
    return DecidedPlan(plan, state, settled, follows, pointed)


def draft_plan(
    source: TableSource,
    config: Section,
    request: Request,
    ask_others: AskOthers,
    ask_readers: AskReaders,
    now_ms: int,
    remember: Remember = by_opening,
    count_forgotten: CountForgotten = forgets_nothing,
    choose_archive: ChooseArchive = archives_nothing,
) -> Draft:
    """Returns what a run on the table would take out. Raises, with nothing changed, where anything cannot be read."""
    decided = decide_plan(source, config, request, ask_readers, now_ms, count_forgotten, choose_archive)
    plan, state, settled, follows = decided.plan, decided.state, decided.settled, decided.follows
    if not follows.released:
        return Draft(plan, state, request, settled)
    outside = includes_outside(settled.effective, request)
    around = ask_others(state, outside)
    territory = Territory(None if outside else state.owned, around.holes, around.real)
    window = window_ms(state, settled.native, settled.effective.policy, settled.decision.now_ms)
    expand = remember(source.format, state, window)
    starts = list(roots(source.format, state, follows.released))
    kept_for_readers = roots_beyond(decided.pointed, {root.file for root in starts if root.needed})
    walk = TableWalk([*starts, *kept_for_readers], expand, territory, around.elsewhere)
    return Draft(plan, state, request, settled, walk, around)


def finish_plan(draft: Draft, survey: Survey, engine: str, measure: Measure) -> Planned:
    """Returns the plan with what a survey found. Raises where the store cannot tell what it was asked."""
    sized = measure(survey)
    planned = _with_files(draft.plan, draft.settled, sized, engine, draft.request)
    if draft.around is not None:
        planned = _beside_others(planned, draft.around)
    return Planned(planned, sized, draft.state, draft.request, settled=draft.settled)


def _forgets(state: State, request: Request, settled: Settled, count: CountForgotten) -> tuple[int, tuple[str, ...]]:
    """Returns how many expired snapshots have grown too old to be remembered, and what the operator should know of a
    history that cannot be read. A run that drops refs touches nothing else.
    """
    bound = settled.effective.history.value
    if bound is None or bound.is_endless or request.drop:
        return 0, ()
    try:
        return count(state, bound.cutoff_ms(settled.decision.now_ms)), ()
    except UnreadableMetadata as problem:
        return 0, (problem.message,)


def _beside_others(plan: Plan, around: Around) -> Plan:
    return replace(plan, asked=around.asked, conflict=around.conflict, notes=(*plan.notes, *around.notes))


def _drawing(table_format: TableFormat, state: State, settled: Settled, plan: Plan) -> SnapshotGraph | None:
    """Returns the history before and after, where the commit would rewrite it."""
    goes = settled.decision.expired or settled.decision.expired_refs
    if not goes or not isinstance(table_format, DrawsHistory):
        return None
    from firnline.ops.looking.graphs import graph_of

    return graph_of(table_format, state, settled, plan)


def _notes(table_format: TableFormat, state: State) -> tuple[str, ...]:
    """Returns what the operator should know of the table: writers that expire on their own look at their branch alone,
    also those of a branch that was made since the table was adopted, and jobs that have not been started again since.
    """
    if not isinstance(table_format, ExpiringWriters):
        return ()
    late = table_format.unaware(state)
    told = [f"jobs that write to {', '.join(late)} still expire as they did before: {RESTART}"] if late else []
    if len(state.native.ranges or {}) >= _SEVERAL and table_format.expiry_off(state):
        ends = f"`firnline adopt {quote(state.table)}` ends it"
        told.append(f"its writers expire on their own and lose files of other branches; {ends}")
    return tuple(told)


def _miswritten(config: Section, name: TableName) -> list[str]:
    from firnline.policy.written.entries import miswritten_patterns

    return miswritten_patterns(config, name.catalog, name.namespace, name.name) if name.catalog else []


def roots(table_format: TableFormat, state: State, released: Set[str]) -> Iterator[Root]:
    """Yields every root of the table, needed unless its owner needs nothing any more."""
    return (Root(file, owner not in released, owner) for owner, file in table_format.roots(state))


def _without_files(
    state: State,
    request: Request,
    settled: Settled,
    follows: Consequences,
    forgets: int,
    archive: Archive | None,
) -> Plan:
    decision = settled.decision
    stamp = state.graph.by_id
    return Plan(
        table=state.table,
        format=state.format,
        location=state.location,
        uuid=state.uuid,
        fence=state.fence,
        now_ms=decision.now_ms,
        policy=settled.policy_text,
        by_own_retention=settled.effective.policy.is_native,
        keep=tuple(_kept(state, settled)),
        expire=tuple(ExpiredSnapshot(each, stamp[each].timestamp_ms) for each in decision.expired),
        expire_refs=decision.expired_refs,
        kept=None,
        victims=Totals(),
        spared={},
        engine="none",
        units_opened=0,
        stages=_stages(state, request, settled, len(follows.going), forgets, archive),
        undo=state.capabilities.undo,
        tagged=follows.tagged if decision.expired or decision.expired_refs else {},
        kept_side_objects=follows.staying,
        expired_side_objects=follows.going,
        seen=settled.seen,
        archive=archive,
    )


def _grace_ms(request: Request, settled: Settled) -> int:
    return settled.effective.grace.value if request.grace_ms is None else request.grace_ms


def _least_after_ms(state: State, request: Request) -> int:
    """Returns the least time between a commit and its deletes, for writers that name a snapshot while it goes.

    Where nothing is compare-and-swap, a tag may be on its way to a snapshot that a commit takes out: its files must
    still be there when it arrives.
    """
    alone = request.sole_writer or state.capabilities.fence is not FenceKind.NONE
    return 0 if alone else SHORTEST_GRACE_MS


def _after_sessions(plan: Plan, table_format: TableFormat, request: Request, settled: Settled, longest_ms: int) -> Plan:
    """Returns the plan that deletes nothing before every session is over that may have been opened on what goes; with a
    note instead where the operator said to wait for less. A grace that covers every session covers it after the commit,
    whatever of it lies before.

    1. A session is opened. Others commit over what it was opened on, and that expires.
    2. The session gives chunks of its own base another place in an array, and writes none.
    3. A purge takes these chunks: nothing that the repository lists needs them.
    4. The session commits on top of the others, and the branch names chunks that are gone.
    """
    waits_ms = next((each.grace_ms for each in plan.stages if isinstance(each, AwaitGrace)), longest_ms)
    if request.sole_writer or not isinstance(table_format, OpenSessions) or waits_ms >= longest_ms:
        return plan
    said = request.grace_ms is not None or settled.effective.grace.source.level is not Level.DEFAULT
    if said and _grace_ms(request, settled) < longest_ms:
        note = f"grace is shorter than longest-write, {format_duration(longest_ms)}: {table_format.outlived}"
        return replace(plan, notes=(*plan.notes, note))
    waiting = (replace(each, grace_ms=longest_ms) if isinstance(each, AwaitGrace) else each for each in plan.stages)
    return replace(plan, stages=tuple(waiting))


def _stages(
    state: State, request: Request, settled: Settled, side_objects: int, forgets: int, archive: Archive | None
) -> tuple[Stage, ...]:
    """Returns what a run does; how much it purges is not known before the survey."""
    decision, undo, bound = settled.decision, state.capabilities.undo, settled.effective.history.value
    commit = CommitExpiry(
        len(decision.expired),
        len(decision.expired_refs),
        final=undo is not UndoWindow.AFTER_COMMIT,
        history=None if bound is None else str(bound),
        side_objects=side_objects,
        forgets=forgets,
    )
    handed = None if archive is None else ArchiveSnapshots(archive.tier, len(archive.snapshots))
    after_ms = _least_after_ms(state, request)
    return stages_of_expiry(commit, _grace_ms(request, settled), Tally(), undo, handed, after_ms=after_ms)


def _kept(state: State, settled: Settled) -> Iterator[KeptSnapshot]:
    names: dict[SnapshotId, list[str]] = {}
    for ref in state.refs.values():
        if ref.name not in settled.decision.expired_refs:
            names.setdefault(ref.snapshot, []).append(ref.name)
    for snapshot in state.graph:
        reasons = settled.decision.kept.get(snapshot.id)
        if reasons is not None:
            refs = tuple(names.get(snapshot.id, ()))
            yield KeptSnapshot(snapshot.id, snapshot.timestamp_ms, refs, tuple(map(str, reasons)))


def _with_files(plan: Plan, settled: Settled, survey: Survey, engine: str, request: Request) -> Plan:
    victims, kept = survey.victims, survey.kept
    purge = PurgeVictims(victims.all.files, victims.all.bytes)
    cap = settled.effective.blast_radius.value if request.blast_radius is None else request.blast_radius
    return replace(
        plan,
        kept=kept,
        victims=victims,
        spared=survey.spared,
        engine=engine,
        units_opened=survey.units_opened,
        stages=tuple(purge if isinstance(each, PurgeVictims) else each for each in plan.stages),
        refused=blast_radius_refusal(kept.all, victims.all, cap),
        cap=cap,
    )


def blast_radius_refusal(kept: Tally, victims: Tally, cap: float) -> str | None:
    """Returns why a run would refuse: it removes a larger share of the table than the cap allows."""
    what, share = share_removed(kept, victims)
    if share <= cap:
        return None
    return f"it would remove {share:.1%} of the table's {what}, the cap is {cap:.0%} (blast-radius)"
