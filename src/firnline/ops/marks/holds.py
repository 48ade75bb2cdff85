"""Holds: who needs what, why and until when; written so that every other engine keeps it too."""

from __future__ import annotations

from dataclasses import replace

from firnline.errors import RefusedForSafety, UsageError
from firnline.journal.events import RunState
from firnline.journal.runs import Run
from firnline.model.holds import Hold, hold_tag
from firnline.model.snapshots import Ref, RefKind
from firnline.ops.marks.tags import FOREVER, check_name, resolve
from firnline.ops.runs.change import amend
from firnline.ops.runs.plan import RESTART
from firnline.ops.table.context import TableContext
from firnline.policy.holds import HOLD_PREFIX, format_hold
from firnline.ports.abilities import ExpiringWriters, NotesHolds
from firnline.ports.formats import Amendment, State, TableFormat, UndoWindow

GC = "gc.enabled"
GC_BEFORE = "firnline.gc-before-hold"
_ABSENT = "(absent)"
_STOPPED = "gc.enabled is false, so no engine removes anything"
_WRITERS_STOPPED = f"its options let no writer expire anything; {RESTART}, and expire nothing by hand"
_LATE = (RunState.PURGING, RunState.DONE)


def add_hold(work: TableContext, hold: Hold) -> str:
    """Returns what now protects it, in words. A hold on the table forbids every engine to collect anything.

    A snapshot that a run has already taken out of the table can still be held while its files are there: no tag can
    name it then, but the purge reads the hold and spares them.
    """

    check_name(hold.name, "hold")

    def wanted(state: State) -> Amendment:
        if any(each.name == hold.name for each in state.holds):
            raise UsageError(f"{state.table} has a hold {hold.name!r} already", hint="release it first")
        if hold_tag(hold.name) in state.refs:
            raise UsageError(f"{state.table} has a ref {hold_tag(hold.name)} already", hint="name the hold otherwise")
        return _table_hold(state, hold) if hold.snapshot is None else _snapshot_hold(work, state, hold)

    amend(work, wanted)
    state = work.source.load()
    _withdraw_if_late(work, state, hold)
    return _protection(work, state, hold)


def _withdraw_if_late(work: TableContext, state: State, hold: Hold) -> None:
    """Raises RefusedForSafety if a purge began before it could see the hold: some of the files may be gone already.

    Looked at after the hold was written: a purge that starts later reads it and spares everything it names.
    """
    if hold.snapshot is None or hold.snapshot in state.graph:
        return
    late = next((run for run in work.recorded(state) if _took_out(run, hold.snapshot) and run.state in _LATE), None)
    if late is not None:
        release_hold(work, hold.name)
        raise RefusedForSafety(
            f"snapshot {hold.snapshot} cannot be held any more: {late.id} is {late.state}",
            hint="its files are going or gone; nothing was held",
        )


def release_hold(work: TableContext, name: str) -> None:
    """Releases a hold, also one that cannot be read: with all that it may have written. When the last hold on the table
    goes, collection is as it was before the first.
    """

    def wanted(state: State) -> Amendment:
        hold = next((each for each in state.holds if each.name == name), None)
        if hold is None:
            raise UsageError(f"{state.table} has no hold {name!r}", hint="`firnline hold list TABLE` shows them")
        gone = frozenset({HOLD_PREFIX + name})
        tags = _tags(state, hold)
        if hold.snapshot is not None or any(each.snapshot is None and each.name != name for each in state.holds):
            return Amendment(refs_gone=tags, properties_gone=gone)
        return replace(_collect_as_before(state, gone), refs_gone=tags)

    amend(work, wanted)


def _tags(state: State, hold: Hold) -> frozenset[str]:
    """Returns the tag that a hold wrote, if any; of one that cannot be read nobody knows whether it did."""
    tag = state.refs.get(hold_tag(hold.name))
    wrote_one = hold.snapshot is not None or bool(hold.damage)
    return frozenset({tag.name}) if tag and tag.kind is RefKind.TAG and wrote_one else frozenset()


def _snapshot_hold(work: TableContext, state: State, hold: Hold) -> Amendment:
    properties = dict([format_hold(hold)])
    if hold.snapshot is not None and hold.snapshot in state.graph:
        tag = Ref(hold_tag(hold.name), RefKind.TAG, resolve(state, hold.snapshot), max_ref_age_ms=FOREVER)
        return Amendment(refs=(tag,), properties=properties)
    if not any(_took_out(run, hold.snapshot) and not run.is_finished for run in work.recorded(state)):
        raise UsageError(
            f"{state.table} has no snapshot {hold.snapshot!r}", hint="`firnline plan TABLE --list` shows them"
        )
    return Amendment(properties=properties)


def _took_out(run: Run, snapshot: str | None) -> bool:
    """Tells whether a run removed the snapshot, or may have."""
    return any(snapshot in event.removal.ids for event in run.attempts)


def _table_hold(state: State, hold: Hold) -> Amendment:
    properties = dict([format_hold(hold)])
    if GC_BEFORE not in state.properties:
        properties[GC_BEFORE] = state.properties.get(GC, _ABSENT)
    return Amendment(properties={**properties, GC: "false"})


def _collect_as_before(state: State, gone: frozenset[str]) -> Amendment:
    before = state.properties.get(GC_BEFORE)
    if before is None:  # the hold was not written by us, and neither was gc.enabled
        return Amendment(properties_gone=gone)
    if before == _ABSENT:
        return Amendment(properties_gone=gone | {GC_BEFORE, GC})
    return Amendment(properties={GC: before}, properties_gone=gone | {GC_BEFORE})


def _stopped(table_format: TableFormat) -> str:
    if isinstance(table_format, NotesHolds):
        return table_format.unheeded
    return _WRITERS_STOPPED if isinstance(table_format, ExpiringWriters) else _STOPPED


def _protection(work: TableContext, state: State, hold: Hold) -> str:
    if hold.snapshot is None:
        return f"the whole table: {_stopped(work.source.format)}"
    if hold.snapshot in state.graph:
        return f"snapshot {hold.snapshot}: by the tag {hold_tag(hold.name)} with unlimited age"
    held = f"the files of snapshot {hold.snapshot}, which a run took out of the table"
    if state.capabilities.undo is UndoWindow.BEFORE_COMMIT:
        return f"{held}: firnline spares them; nothing puts it back, and other tools may collect them"
    return f"{held}: undo that run to read it again"
