"""Runs as they are recorded: the plan as it was saved, and the events since."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from firnline.errors import ObjectNotFound, UnreadableMetadata, UnsupportedFormat, UsageError
from firnline.journal.events import (
    ARCHIVE,
    ERASURE_PART,
    EXPIRY_PLAN,
    FINISHED,
    JOINED_PLAN,
    RECORDS_KEY,
    SEARCH_PLAN,
    UNDOABLE,
    UNSEALED,
    Event,
    EventStore,
    RunState,
    Sealing,
    append_event,
    are_sealed,
    misfit,
    read_events,
)
from firnline.journal.layout import RecordFolder, RunId
from firnline.journal.lost_plans import plans_since
from firnline.journal.parts import CHANGED, Seals, put_own, seal
from firnline.model.locations import join
from firnline.model.removals import Removal
from firnline.plans.kinds import ERASURE, EXPIRY, ORPHANS
from firnline.plans.plan import PLAN_VERSION
from firnline.plans.request import Request
from firnline.plans.stages import (
    ERASURE_STAGES,
    EXPIRY_STAGES,
    SEARCH_STAGES,
    ArchiveSnapshots,
    AwaitGrace,
    AwaitUndo,
    BeginGrace,
    CommitErasure,
    CommitExpiry,
    PurgeVictims,
    Sequences,
    Stage,
    read_stages,
)
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:
    from firnline.plans.erasure import Erasure

_STAGE_IN: Mapping[RunState, tuple[type[Stage], ...]] = {
    RunState.PLANNED: (AwaitUndo, ArchiveSnapshots, CommitExpiry, CommitErasure, BeginGrace),
    RunState.ARCHIVED: (ArchiveSnapshots,),
    RunState.COMMITTING: (ArchiveSnapshots, CommitExpiry, CommitErasure),
    RunState.COMMITTED: (AwaitGrace,),
    RunState.PURGING: (PurgeVictims,),
}
"""The stage with which a run in that state goes on."""
_STAGES_OF: Mapping[str, Sequences] = {EXPIRY: EXPIRY_STAGES, ORPHANS: SEARCH_STAGES, ERASURE: ERASURE_STAGES}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: everything that any process needs to go on with it.

    `is_sealed`: all of its record was sealed with the very secret that `sealing` has. Any other record
    names files, and proves nothing about them.
    """

    id: RunId
    folder: RecordFolder
    plan: Mapping[str, Any]
    events: tuple[Event, ...]
    sealing: Sealing = UNSEALED
    is_sealed: bool = False

    @property
    def state(self) -> RunState:
        return self.events[-1].state

    @property
    def kind(self) -> str:
        """What the run does: it expires snapshots, removes orphans, or erases files."""
        return str(self.plan["kind"])

    @property
    def uuid(self) -> str:
        return str(self.plan["uuid"])

    @property
    def request(self) -> Request:
        return Request.from_json(self.plan["request"])

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What the plan showed, and the run carries out."""
        return read_stages(self.plan["stages"], _STAGES_OF[self.kind])

    @property
    def stages_left(self) -> tuple[Stage, ...]:
        """The stages from the one on that the run is in; none if it is finished, or on its way back."""
        begun = _STAGE_IN.get(self.state)
        return () if begun is None else tuple(dropwhile(lambda stage: not isinstance(stage, begun), self.stages))

    @property
    def grace_ms(self) -> int:
        """How long every byte stays in place after the commit."""
        return next((stage.grace_ms for stage in self.stages if isinstance(stage, AwaitGrace)), 0)

    @property
    def is_meant(self) -> bool:
        """Whether the operator asked for the run itself, not only for a plan to look at; or approved that later."""
        return bool(self.plan["meant"]) or self._meant_at.number > 1

    @property
    def approval(self) -> Event | None:
        """The event by which a person approved the run, `by` and `note` in its detail; None before."""
        return next(
            (event for event in self.events if event.state is RunState.PLANNED and event.detail.get("by")), None
        )

    @property
    def _meant_at(self) -> Event:
        """The last event before anything was tried: the plan itself, or the operator's approval."""
        return next((event for event in reversed(self.events) if event.state is RunState.PLANNED), self.events[0])

    @property
    def victim_seals(self) -> Seals:
        """The written list, part by part: what was planned, and metadata that fell off the log at the commit."""
        late = self.committed.detail.get("forgotten_parts") if self.committed else None
        return {**self.plan["parts"]["victims"], **(late or {})}

    @property
    def archive(self) -> Mapping[str, Any] | None:
        """What the plan hands to a tier; None where it hands nothing over."""
        found: Mapping[str, Any] | None = self.plan.get("archive")
        return found

    @property
    def search(self) -> Mapping[str, Any] | None:
        """What the plan says of a search: where it looked, and whom it asked. All of the plan, or the part of an expiry
        that takes what was found with it; None where nothing was searched.
        """
        found: Mapping[str, Any] | None = self.plan if self.kind == ORPHANS else self.plan.get("orphans")
        return found

    @property
    def erasure(self) -> Erasure:
        """What a run of that kind erases."""
        from firnline.plans.erasure import Erasure

        return Erasure.from_json(self.plan["erasure"])

    @property
    def archived(self) -> Event | None:
        """The event that says what a tier has, complete and verified; None before."""
        return next((event for event in reversed(self.events) if event.state is RunState.ARCHIVED), None)

    @property
    def attempts(self) -> tuple[Event, ...]:
        """Every commit that was tried, oldest first; any of them may be the one that landed."""
        return tuple(event for event in self.events if event.state is RunState.COMMITTING)

    @property
    def committed(self) -> Event | None:
        """The event that says what was really committed; its detail names snapshots, refs and the removal."""
        return next((event for event in reversed(self.events) if event.state is RunState.COMMITTED), None)

    @property
    def removal(self) -> Removal | None:
        """What was really committed; None before the commit."""
        return None if self.committed is None else self.committed.removal

    @property
    def removals(self) -> tuple[Removal, ...]:
        """What later runs must treat as roots while this run may still be undone."""
        if self.state not in UNDOABLE or self.kind != EXPIRY:
            return ()
        known = [self.committed] if self.committed else self.attempts
        return tuple(event.removal for event in known)

    @property
    def undo(self) -> UndoWindow:
        """When the run can be undone."""
        if any(isinstance(stage, AwaitUndo) for stage in self.stages):
            return UndoWindow.BEFORE_COMMIT
        after = any(isinstance(stage, AwaitGrace) and stage.undo for stage in self.stages)
        return UndoWindow.AFTER_COMMIT if after or not self.stages else UndoWindow.NONE

    @property
    def commit_due_ms(self) -> int | None:
        """When a run that waits to be called off is committed; None for every other run, and for one without any time
        for that: what was read of the store's clock then and now may differ a little.
        """
        first = next(iter(self.stages_left), None)
        if not isinstance(first, AwaitUndo) or not self.is_meant or first.grace_ms <= 0:
            return None
        return self._meant_at.at_ms + first.grace_ms

    @property
    def purge_due_ms(self) -> int | None:
        """When grace ends; None before the commit. One that did not wait to be called off has that time after it, for
        grace is as long either way.
        """
        first = next((event for event in self.events if event.state is RunState.COMMITTED), None)
        if first is None:
            return None
        before_ms = next((stage.grace_ms for stage in self.stages if isinstance(stage, AwaitUndo)), 0)
        if not before_ms:  # the plan may have a time that is a little ahead of the commit's
            return first.at_ms + self.grace_ms
        asked_ms = self._meant_at.at_ms if self.is_meant else first.at_ms
        return max(first.at_ms, asked_ms + before_ms) + self.grace_ms

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED

    def moved(self, store: EventStore, state: RunState, at_ms: int, **detail: Any) -> Run:
        """Returns the run in its new state, written first. Raises LeaseHeld where another process moved it."""
        event = append_event(store, self.folder, self.events[-1], state, at_ms, sealing=self.sealing, **detail)
        return replace(self, events=(*self.events, event))


def put_plan(
    store: EventStore,
    folder: RecordFolder,
    record: Mapping[str, Any],
    at_ms: int,
    sealing: Sealing,
    enter: Callable[[], None],
) -> None:
    """Writes a run's plan, last of all: with it the run exists. Its first event has its digest.

    `enter` puts the run on the list of unfinished ones, right before: a run that is on no list would be forgotten.
    """
    data = json.dumps(record, indent=1).encode()
    enter()
    append_event(store, folder, None, RunState.PLANNED, at_ms, sealing=sealing, plan=seal(data))
    put_own(store, folder.plan, data)


def refuse_edited(store: EventStore, run: Run) -> None:
    """Raises UnreadableMetadata unless the plan is as it was saved: it says whom a purge must ask before it deletes."""
    if seal(store.get(run.folder.plan)) != run.events[0].detail.get("plan"):
        raise UnreadableMetadata(
            f"{run.folder.plan} is not as it was written",
            hint=CHANGED,
        )


def refuse_unsealed_run(run: Run) -> None:
    """Raises UnreadableMetadata where the operator has a key and the run's record is not sealed with it."""
    if run.sealing.required and not run.is_sealed:
        raise UnreadableMetadata(
            f"the record of {run.id} is not sealed with {RECORDS_KEY}",
            hint="plan again with the key; a run of your own from before there was one is finished without the key",
        )


def refuse_changed_run(run: Run) -> None:
    """Raises UnreadableMetadata unless the record of a run that was saved just now is sealed, where it can be."""
    refuse_unsealed_run(run)
    if run.sealing.secret is not None and not run.is_sealed:
        raise UnreadableMetadata(f"the record of {run.id} is not as it was saved", hint=CHANGED)


def load_run(store: EventStore, root: str, run: RunId, sealing: Sealing) -> Run:
    """Returns the run. Raises UsageError where there is no such run, and refuses a record it does not understand."""
    folder = RecordFolder(root, run.stamp)
    try:
        data = store.get(folder.plan)
        plan = json.loads(data)
    except ObjectNotFound as missing:
        raise UsageError(f"no such run: {run}", hint="`firnline runs` shows them") from missing
    except (ValueError, RecursionError) as damage:
        raise UnreadableMetadata(f"the record {folder.plan} is damaged: {damage}", hint="restore it") from damage
    if not isinstance(plan, dict):
        raise UnreadableMetadata(f"the record {folder.plan} is not a JSON object", hint="restore it")
    if plan.get("version") != PLAN_VERSION:
        raise UnsupportedFormat(
            f"the record {folder.plan} has version {plan.get('version')!r}", hint="upgrade firnline"
        )
    events = tuple(read_events(store, folder))
    is_sealed = bool(events) and events[0].detail.get("plan") == seal(data) and are_sealed(events, folder, sealing)
    found = Run(run, folder, plan, events, sealing, is_sealed)
    wrong = _strange_kind(plan) or _unknown_words(found)
    if wrong is not None:
        raise UnreadableMetadata(f"the record {folder.plan} has no {wrong}, or a strange one", hint="restore it")
    if not events:
        raise UnreadableMetadata(f"the record in {folder.folder} lacks its events", hint="restore it")
    return found


def _strange_kind(plan: Mapping[str, Any]) -> str | None:
    """Returns what is missing of a plan of its kind, or is of another shape; None where all is as it must be."""
    kind = plan.get("kind")
    if not isinstance(kind, str) or kind not in _STAGES_OF:
        return "kind"
    expiry = EXPIRY_PLAN if plan.get("orphans") is None else JOINED_PLAN
    wrong = misfit(plan, SEARCH_PLAN if kind == ORPHANS else expiry)
    if wrong is None and kind == ERASURE:
        wrong = misfit(plan.get("erasure"), ERASURE_PART, "erasure")
    return wrong if wrong is not None or plan.get("archive") is None else misfit(plan["archive"], ARCHIVE, "archive")


def _unknown_words(run: Run) -> str | None:
    """Returns what of the plan has the right shape and yet says nothing; None where all of it is understood."""
    if any(len(pair) != _PAIR for pair in (run.search or _NOWHERE)["scope"]["same"]):
        return "scope.same"
    try:
        _ = run.request, run.stages
    except (TypeError, ValueError) as strange:
        return f"request or stages ({strange})"
    hands_over = any(isinstance(stage, ArchiveSnapshots) for stage in run.stages)
    return None if hands_over == (run.archive is not None) else "archive"


_PAIR = 2
_NOWHERE: Mapping[str, Any] = {"scope": {"same": ()}}


def has_run(store: EventStore, root: str, run: RunId, uuid: str) -> bool:
    """Tells whether there is such a run, of the table with this uuid."""
    try:
        return load_run(store, root, run, UNSEALED).uuid == uuid
    except UsageError:
        return False


def list_runs(
    store: EventStore,
    root: str,
    table: str,
    sealing: Sealing,
    *,
    but: str | None = None,
    finished: dict[str, Run] | None = None,
) -> list[Run]:
    """Returns every run that was recorded under `root`, in the order of planning, without the one of the stamp `but`.

    Who asks again and again hands in `finished`, which remembers what can never move again: a table may have a
    thousand runs behind it, each of several objects.
    """
    keys = sorted(each.key for each in store.list(join(root, "runs") + "/"))
    plans = [key for key in keys if key.endswith("/plan.json")]
    plans = sorted([*plans, *plans_since(store, keys, {key.removesuffix("plan.json") for key in plans})])
    known = {} if finished is None else finished
    runs = []
    for key in plans:
        stamp = key.removesuffix("/plan.json").rpartition("/")[2]
        if stamp != but:
            run = known.get(key) or load_run(store, root, RunId(table, stamp), sealing)
            runs.append(run)
            if run.is_finished:
                known[key] = run
    return sorted(runs, key=lambda run: (run.events[0].at_ms, run.id.stamp))  # stamps tell whole seconds


def in_commit_order(runs: list[Run]) -> list[Run]:
    """Returns the runs that were committed, or may have been, by the time of their first attempt."""
    first = {run.id.stamp: next((each for each in run.events if each.state in _TRIED), None) for run in runs}
    tried = [(event.at_ms, run.id.stamp, run) for run in runs if (event := first[run.id.stamp]) is not None]
    return [run for _, _, run in sorted(tried, key=lambda each: each[:2])]


_TRIED = (RunState.COMMITTING, RunState.COMMITTED)
