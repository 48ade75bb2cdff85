"""Tags: names for snapshots that every engine keeps."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any

from firnline.errors import UsageError
from firnline.model.snapshots import Ref, RefKind, SnapshotId
from firnline.model.times import format_duration, format_instant, tell_instant
from firnline.ops.runs.change import amend
from firnline.ops.runs.drop import dropping, refuse_tag_of_hold
from firnline.ops.table.context import TableContext
from firnline.policy.native import LONGEST_AGE_MS
from firnline.ports.formats import Amendment, State

FOREVER = LONGEST_AGE_MS
"""An unlimited age is written out: a ref without one falls under the table's default, which may be short."""


_OWN = "firnline-"


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tag, and until when it is kept; None for ever."""

    ref: Ref
    until_ms: int | None

    @staticmethod
    def of(state: State, ref: Ref) -> Tagged:
        """Returns the tag with its end. A ref's age counts from the time of its snapshot; of a format that counts from
        when the tag was made, the age is reckoned so when the tag is read.
        """
        age = state.native.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        endless = age >= FOREVER or ref.snapshot not in state.graph
        return Tagged(ref, None if endless else state.graph[ref.snapshot].timestamp_ms + age)

    @property
    def kept_told(self) -> str:
        """For how long the tag is kept, as a person is told it."""
        kept = "kept forever" if self.until_ms is None else f"kept until {tell_instant(self.until_ms)}"
        return f"{kept}, as the table's default says" if self.ref.max_ref_age_ms is None else kept

    def to_json(self) -> dict[str, Any]:
        until = None if self.until_ms is None else format_instant(self.until_ms)
        said = {"name": self.ref.name, "snapshot": self.ref.snapshot, "max_ref_age_ms": self.ref.max_ref_age_ms}
        return {**said, "until": until}


def add_tag(work: TableContext, name: str, snapshot: str | None, retain_ms: int | None) -> Tagged:
    """Returns the tag as it was written: a moment later another writer may have moved it, or replaced the table.

    It is kept for `retain_ms` from now on; where that is None, for as long as the table's default says. Raises
    UsageError where the name is taken by something else, or the tag would be gone with the next run.
    """
    check_name(name, "tag")
    if name.startswith(_OWN):
        raise UsageError(f"tags named {_OWN}… are firnline's own, and moved by it", hint="name the tag otherwise")
    if retain_ms is not None and retain_ms < 1:
        raise UsageError("a tag that is kept for no time is no tag", hint="write an age such as 30d, or forever")
    written: dict[str, Tagged] = {}
    now_ms = work.now()

    def wanted(state: State) -> Amendment:
        tagged = written[name] = _tagged(state, name, resolve(state, snapshot), retain_ms, now_ms)
        tag, present = tagged.ref, state.refs.get(name)
        if present == tag:
            return Amendment()
        if present is not None:
            raise UsageError(
                f"{state.table} has a {present.kind} {name} at {present.snapshot} already", hint="remove it first"
            )
        return Amendment(refs=(tag,))

    amend(work, wanted)
    return written[name]


def _tagged(state: State, name: str, snapshot: SnapshotId, retain_ms: int | None, now_ms: int) -> Tagged:
    """Returns the tag with the age that its snapshot has when the time is over.

    Raises UsageError where it would be over already: the next run would drop what the operator has just asked to keep.
    """
    already = max(0, now_ms - state.graph[snapshot].timestamp_ms)
    age = None if retain_ms is None else min(retain_ms + already, FOREVER)
    tagged = Tagged.of(state, Ref(name, RefKind.TAG, snapshot, age))
    if tagged.until_ms is not None and tagged.until_ms <= now_ms:
        raise UsageError(
            f"{state.table} keeps refs for {format_duration(state.native.max_ref_age_ms)}, and {snapshot} is older: "
            f"the next run would drop it",
            hint="`--retain` says how long the tag is kept from now on, such as 90d, or forever",
        )
    return tagged


def check_name(name: str, what: str) -> None:
    """Raises UsageError for names that other engines, or our own properties, could not carry."""
    if not name.strip() or name != name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} is no name for a {what}", hint="write letters, digits and signs")


def remove_tag(work: TableContext, name: str) -> None:
    """Removes a tag. A branch is never removed, and a hold's tag only by releasing the hold."""

    def wanted(state: State) -> Amendment:
        _refuse_no_tag(state, name)
        refuse_tag_of_hold(state, name)
        return Amendment(refs_gone=frozenset({name}))

    amend(work, wanted)


def holds_alone(work: TableContext, name: str) -> bool:
    """Tells whether a snapshot would be nobody's without this tag. Raises UsageError where there is no such tag."""
    state = work.source.load()
    _refuse_no_tag(state, name)
    return bool(dropping(work.source.format, state, {name}).snapshots)


def _refuse_no_tag(state: State, name: str) -> None:
    present = state.refs.get(name)
    if present is None or present.kind is not RefKind.TAG:
        raise UsageError(f"{state.table} has no tag {name!r}", hint="`firnline tag list TABLE` shows them")


def refuse_no_branch(work: TableContext, name: str) -> None:
    """Raises UsageError for a tag's name where a branch is meant. A branch without snapshots is no ref, and is one all
    the same.
    """
    state = work.source.load()
    present = state.refs.get(name)
    if present is not None and present.kind is not RefKind.BRANCH:
        raise UsageError(
            f"{name} is a tag of {state.table}", hint=f"`firnline tag remove {quote(state.table)} {quote(name)}`"
        )


def resolve(state: State, snapshot: str | None) -> SnapshotId:
    """Returns the snapshot that an id or a ref means; none given means the current one."""
    wanted = state.current if snapshot is None else snapshot
    if wanted is None or (wanted not in state.refs and wanted not in state.graph):
        raise UsageError(f"{state.table} has no snapshot {wanted!r}", hint="`firnline plan TABLE --list` shows them")
    return state.named(wanted)
