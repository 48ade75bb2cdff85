"""What streaming readers keep of a table at this moment: asked wherever a decision is made, and again at its commit.

1. A plan is made: no reader needs the old snapshots.
2. A stream is started again from an older checkpoint, or a new one begins at the oldest snapshot.
3. The commit takes out what that stream has yet to read.

So the checkpoints are read with the very state that a commit is built on. A stream that begins after that, and before
the commit lands, begins on a table that is about to change, as with any expiry: a grace and `undo` are left to it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from shlex import quote

from firnline.errors import RefusedForSafety, UnsupportedFormat
from firnline.journal.runs import Run
from firnline.model.readers import StreamReader
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ops.readers.finding import FoundReaders, find_readers
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import TableContext
from firnline.plans.request import Request
from firnline.policy.inherit import Effective
from firnline.policy.policy import Level
from firnline.policy.readers import ReaderNeeds, ReaderRules, judge_readers, limit_pins
from firnline.ports.abilities import ReadByStreams
from firnline.ports.formats import State

START = "start"


def reader_needs(work: TableContext, state: State, request: Request, now_ms: int) -> ReaderNeeds:
    """Returns all pins of a table: those that it tells of itself, and those of readers that the operator named. Raises
    where one of these cannot be read.
    """
    in_force = policy_in_force(state, work.source.name, work.config, request)
    rules = _rules(in_force)
    own = limit_pins(state.pins, state.graph, rules.limit_ms, now_ms)
    found = _found(work, in_force)
    needs = judge_readers(found.readers, state.graph, state.current, rules, now_ms)
    strangers = _strangers(found.readers, state, in_force)
    notes = (*found.notes, *strangers, *own.notes, *needs.notes)
    return ReaderNeeds((*own.pins, *needs.pins), notes, () if rules.from_start else needs.began)


def starts_that_go(needs: ReaderNeeds, expired: Set[SnapshotId]) -> tuple[str, ...]:
    """Returns what an operator should know of readers whose first snapshot is about to go. Iceberg's source opens it
    again whenever a query with this trigger starts, although all of it was read.
    """
    return tuple(
        f"reader {checkpoint} began at {snapshot}, which goes: a query with Trigger.AvailableNow could not start any "
        "more; `readers-from: start` keeps it"
        for checkpoint, snapshot in dict.fromkeys(needs.began)
        if snapshot in expired
    )


def refuse_read(work: TableContext, state: State, run: Run, in_force: Effective, now_ms: int) -> None:
    """Raises RefusedForSafety if a reader stands at a snapshot that this run took out, or has yet to read one: it came
    since the commit, and all of it is still there.
    """
    if run.removal is None or not in_force.readers.value:
        return
    gone, limit_ms = set(run.removal.ids), _rules(in_force).limit_ms
    for reader in _found(work, in_force).readers:
        if reader.at is None:
            continue
        unread = () if reader.at in gone else _taken_out_since(state, run.removal, reader.at)
        if (reader.at in gone or unread) and not _is_over(reader, run.removal, unread, limit_ms, now_ms):
            which = f"and has yet to read {unread[-1]}, which" if unread else "which"
            raise RefusedForSafety(
                f"the reader {reader.checkpoint} stands at {reader.at}, {which} {run.id} took out",
                hint=f"nothing more was removed; `firnline undo {quote(str(run.id))}` brings it back; or take the "
                "reader out of `readers`, if it is gone",
            )


def _taken_out_since(state: State, removal: Removal, at: SnapshotId) -> tuple[SnapshotId, ...]:
    """Returns what a run took out between the current snapshot and an earlier one, newest first; nothing where the
    table did not come from there.
    """
    parents = {str(each["snapshot-id"]): each.get("parent-snapshot-id") for each in removal.snapshots}
    seen: dict[SnapshotId, None] = {}
    here = state.current
    while here is not None and here != at and here not in seen:
        seen[here] = None
        above = parents[here] if here in parents else _parent(state, here)
        here = None if above is None else str(above)
    return tuple(each for each in seen if each in parents) if here == at else ()


def _parent(state: State, snapshot: SnapshotId) -> SnapshotId | None:
    return state.graph[snapshot].parent if snapshot in state.graph else state.graph.bridges.get(snapshot)


def _is_over(
    reader: StreamReader, removal: Removal, unread: Sequence[SnapshotId], limit_ms: int | None, now_ms: int
) -> bool:
    """Tells whether a reader stands still for too long: as for a decision, both its checkpoint and what follows where
    it stands must be old.
    """
    next_unread = set(unread[-1:])
    following = [
        int(each["timestamp-ms"])
        for each in removal.snapshots
        if (str(each.get("parent-snapshot-id")) == reader.at or str(each["snapshot-id"]) in next_unread)
        and "timestamp-ms" in each
    ]
    if limit_ms is None or reader.moved_ms is None or not following:
        return False
    return now_ms - max(reader.moved_ms, *following) > limit_ms


def _rules(in_force: Effective) -> ReaderRules:
    return ReaderRules(in_force.readers_max_age.value, in_force.readers_from.value == START)


def _found(work: TableContext, in_force: Effective) -> FoundReaders:
    places, table_format = in_force.readers.value, work.source.format
    if not places:
        return FoundReaders()
    if not isinstance(table_format, ReadByStreams):
        _refuse_unknown(work, in_force)
        return FoundReaders()
    return find_readers(work.checkpoints, table_format, places)


def _refuse_unknown(work: TableContext, in_force: Effective) -> None:
    """Raises UnsupportedFormat if readers are named for this very table, and streams over its format note nothing in
    checkpoints that is known here: they would keep nothing.
    """
    if in_force.readers.source.level is Level.TABLE:
        raise UnsupportedFormat(
            f"`readers` of {work.source.name}: checkpoints of streams over {work.source.format.name} tables are not "
            "understood",
            hint="take it out; a Paimon consumer (`consumer-id`) counts without it",
        )


def _strangers(readers: Sequence[StreamReader], state: State, in_force: Effective) -> list[str]:
    """Returns the checkpoints that are named for this very table and tell of no snapshot that it has."""
    if in_force.readers.source.level is not Level.TABLE:
        return []
    own = {each.checkpoint for each in readers if each.at is None or each.at in state.graph}
    return [
        f"reader {checkpoint} stands at no snapshot that the table has: nothing can be kept for it"
        for checkpoint in dict.fromkeys(each.checkpoint for each in readers)
        if checkpoint not in own
    ]
