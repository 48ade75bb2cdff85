"""The events of a run: numbered objects, each of a known shape, sealed, written once; the last one is the run's state.

Each event is sealed together with the name of its run and the seal before it. The first one says the digest of the
plan, and the plan says those of all parts of the list: so one chain of seals stands for the whole record.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, Protocol

from firnline.errors import (
    AlreadyExists,
    FirnlineError,
    LeaseHeld,
    OutcomeUnknown,
    RefusedForSafety,
    StoreError,
    UnreadableMetadata,
)
from firnline.journal.layout import RecordFolder
from firnline.model.locations import join
from firnline.model.removals import Removal
from firnline.ports.stores import Get, List, PutIfAbsent

Shape = Any
"""A type; a dict of names that must be there, each with its shape; a list of one shape, which every item has."""

EVERY = "*"
"""In place of names: whatever is there, each has the shape."""

_OR_NOTHING = type(None)
_TALLY: Shape = {"files": int, "bytes": int}
_PLAN: Shape = {
    "table": str,
    "location": str,
    "uuid": str,
    "request": dict,
    "stages": [dict],
    "meant": bool,
    "expire": [str],
    "expire_refs": [str],
    "victims": {**_TALLY, "by_kind": {EVERY: _TALLY}},
    "refused": (str, _OR_NOTHING),
    "conflict": (str, _OR_NOTHING),
}
_WALKED: Shape = {"victims": {EVERY: str}, "walked": {EVERY: str}}
EXPIRY_PLAN: Shape = {
    **_PLAN,
    "parts": _WALKED,
    "policy": str,
    "keep": [{"snapshot": str, "refs": [str]}],
    "seen": {EVERY: str},
    "beside": {"expire": [{"kind": str, "name": str}]},
    "archive": (dict, _OR_NOTHING),
}
ERASURE_PART: Shape = {
    "files": [str],
    "case": str,
    "by": str,
    "snapshots": [str],
    "units": [str],
    "written": [str],
    "trimmed": [
        {
            "snapshot": str,
            "before": str,
            "after": str,
            "lost": dict.fromkeys(("files", "rows", "deletes", "positions", "bytes"), int),
        }
    ],
}
"""What a plan has that erases files."""
ARCHIVE: Shape = {"tier": str, "table": str, "root": str, "snapshots": [str]}
"""What a plan has that hands snapshots to a tier, and the detail of the event that says so."""
SEARCH: Shape = {
    "older_than": str,
    "catalogs": [str],
    "scope": {"folders": [str], "departed": (str, _OR_NOTHING), "also": [str], "same": [[str]]},
}
"""What a plan has whose list came of a listing, of which all or a part."""
_SEARCHED: Shape = {"victims": {EVERY: str}, "searched": {EVERY: str}}
SEARCH_PLAN: Shape = {**_PLAN, **SEARCH, "parts": _SEARCHED}
JOINED_PLAN: Shape = {**EXPIRY_PLAN, "orphans": SEARCH, "parts": {**_WALKED, **_SEARCHED}}
"""An expiry that takes what was searched for with it."""
EVENT: Shape = {
    "number": int,
    "state": str,
    "at_ms": int,
    "write_id": str,
    "seal": str,
    "detail": {
        "left_alone": (list, _OR_NOTHING),
        "lost_refs": (list, _OR_NOTHING),
        "history": (dict, _OR_NOTHING),
        "forgotten_parts": (dict, _OR_NOTHING),
    },
}
REMOVAL: Shape = {"removal": {"snapshots": [{"snapshot-id": (int, str)}], "refs": dict, "payload": dict}}
"""What the detail of an event has that says what a commit takes out."""


def misfit(said: Any, shape: Shape, name: str = "") -> str | None:
    """Returns the name of the first thing that is missing or of another shape; None where all is as it must be."""
    if isinstance(shape, dict):
        return _of_fields(said, shape, name) if isinstance(said, dict) else name
    if isinstance(shape, list):
        items = said if isinstance(said, list) else [None]
        return next((wrong for each in items if (wrong := misfit(each, shape[0], name)) is not None), None)
    fits = isinstance(said, shape) and not (shape is int and isinstance(said, bool))
    return None if fits else name


def _of_fields(said: dict[str, Any], shape: dict[str, Shape], name: str) -> str | None:
    asked = ((each, below) for named, below in shape.items() for each in (said if named == EVERY else (named,)))
    inner = (misfit(said.get(each), below, f"{name}.{each}".lstrip(".")) for each, below in asked)
    return next((wrong for wrong in inner if wrong is not None), None)


class RunState(StrEnum):
    PLANNED = "planned"
    ARCHIVED = "archived"
    COMMITTING = "committing"
    COMMITTED = "committed"
    PURGING = "purging"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"
    CANCELLED = "cancelled"


_S = RunState
MOVES: dict[RunState, frozenset[RunState]] = {
    # Planned once more is what the operator approved later. Straight to committed goes what changes no table: orphans,
    # whose grace begins with the operator's word.
    _S.PLANNED: frozenset({_S.PLANNED, _S.ARCHIVED, _S.COMMITTING, _S.COMMITTED, _S.CANCELLED}),
    _S.ARCHIVED: frozenset({_S.ARCHIVED, _S.COMMITTING, _S.COMMITTED, _S.CANCELLED}),
    _S.COMMITTING: frozenset({_S.COMMITTING, _S.COMMITTED, _S.CANCELLED}),
    _S.COMMITTED: frozenset({_S.PURGING, _S.UNDOING}),
    _S.PURGING: frozenset({_S.PURGING, _S.DONE}),
    _S.UNDOING: frozenset({_S.UNDOING, _S.UNDONE, _S.COMMITTED}),
    _S.DONE: frozenset(),
    _S.UNDONE: frozenset(),
    _S.CANCELLED: frozenset(),
}

OPEN = frozenset({_S.PLANNED, _S.ARCHIVED, _S.COMMITTING})
"""States of a run that is not committed yet."""
FINISHED = frozenset({_S.DONE, _S.UNDONE, _S.CANCELLED})
UNDOABLE = frozenset({_S.COMMITTING, _S.COMMITTED, _S.UNDOING})
"""States in which the removed snapshots may come back, so that every later run must leave their files alone."""


def check_move(old: RunState, new: RunState) -> None:
    """Raises RefusedForSafety unless a run may go from one state to the other."""
    if new not in MOVES[old]:
        allowed = ", ".join(sorted(MOVES[old])) or "nothing: it is finished"
        raise RefusedForSafety(f"a run that is {old} cannot become {new}", hint=f"it can become: {allowed}")


RECORDS_KEY = "FIRNLINE_RECORDS_KEY"
"""The variable with the operator's key, the same on every machine that works on the tables."""

_PURPOSE = b"firnline run record\n"


@dataclass(frozen=True, slots=True)
class Sealing:
    """With what records are sealed: a key of the operator, which is then `required` of every run that anything is done
    with; else this user's own secret, or nothing where there is none.
    """

    secret: bytes | None = field(default=None, repr=False)
    required: bool = False

    def over(self, stamp: str, before: str, said: Mapping[str, Any]) -> str:
        """Returns the seal of what an event says, in its place after another one; '' without a secret."""
        if self.secret is None:
            return ""
        read_back = json.loads(json.dumps(said))
        text = json.dumps([stamp, before, read_back], sort_keys=True)
        return hmac.new(self.secret, _PURPOSE + text.encode(), "sha256").hexdigest()

    def holds(self, seal: str, stamp: str, before: str, said: Mapping[str, Any]) -> bool:
        """Tells whether this is the seal that one who has the secret gave."""
        return self.secret is not None and hmac.compare_digest(seal.encode(), self.over(stamp, before, said).encode())


UNSEALED = Sealing()


class EventStore(Get, List, PutIfAbsent, Protocol):
    pass


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `write_id` tells our own write from another's when an answer got lost."""

    number: int
    state: RunState
    at_ms: int
    write_id: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    seal: str = ""

    @property
    def removal(self) -> Removal:
        """What a commit takes out: an event has it that says of a commit that it was tried, or made."""
        return Removal.from_json(self.detail["removal"])

    def said(self) -> dict[str, Any]:
        """Returns all of it as JSON, except the seal."""
        return {"number": self.number, "state": self.state.value, "at_ms": self.at_ms, "write_id": self.write_id,
                "detail": self.detail}  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {**self.said(), "seal": self.seal}


def read_events(store: EventStore, folder: RecordFolder) -> list[Event]:
    """Returns every event in order. A hole in the numbers, or a move that no run makes, means that the record was
    tampered with: nothing goes on.
    """
    keys = sorted(each.key for each in store.list(folder.events) if each.key.endswith(".json"))
    events = [read_event(store, key) for key in keys]
    are_numbered = [event.number for event in events] == list(range(1, len(events) + 1))
    if not are_numbered or not all(new.state in MOVES[old.state] for old, new in pairwise(events)):
        raise UnreadableMetadata(f"the events in {folder.events} are not whole", hint="restore the run's record")
    return events


def read_event(store: Get, key: str) -> Event:
    """Returns one event. Raises UnreadableMetadata where it is none."""
    return _parse(store.get(key), key)


def append_event(
    store: EventStore,
    folder: RecordFolder,
    before: Event | None,
    state: RunState,
    at_ms: int,
    *,
    sealing: Sealing = UNSEALED,
    **detail: Any,
) -> Event:
    """Returns the event, now durable. Raises LeaseHeld where another process moved the run meanwhile.

    A lost answer is settled by reading back: the write id says whose write it was.
    """
    if before is not None:
        check_move(before.state, state)
    number, seal_before = (1, "") if before is None else (before.number + 1, before.seal)
    event = Event(number, state, at_ms, secrets.token_hex(8), detail)
    event = replace(event, seal=sealing.over(folder.stamp, seal_before, event.said()))
    key = join(folder.events, f"{event.number:06d}.json")
    try:
        store.put_if_absent(key, json.dumps(event.to_json()).encode())
    except (AlreadyExists, OutcomeUnknown) as unclear:
        if not _is_ours(store, key, event, unclear):
            raise LeaseHeld(
                f"another process moved this run: event {event.number} of {folder.stamp} exists",
                hint="look at `firnline runs`, then try again",
            ) from unclear
    return event


def are_sealed(events: Sequence[Event], folder: RecordFolder, sealing: Sealing) -> bool:
    """Tells whether each event was written, in its place, by one who has the secret."""
    before = ["", *(event.seal for event in events)]
    return all(
        sealing.holds(event.seal, folder.stamp, last, event.said()) for last, event in zip(before, events, strict=False)
    )


def _is_ours(store: EventStore, key: str, event: Event, unclear: FirnlineError) -> bool:
    """Tells whose write it was. Raises OutcomeUnknown with what made it unclear: a disk that is full is to be named."""
    try:
        return read_event(store, key).write_id == event.write_id
    except StoreError as silent:
        hint = unclear.flags or "`firnline resume` settles it"
        raise OutcomeUnknown(f"cannot read back {key}: {unclear.message}", hint) from silent


def _parse(data: bytes, key: str) -> Event:
    try:
        said = json.loads(data)
        wrong = misfit(said, EVENT)
        if wrong is None and said["state"] in (RunState.COMMITTING, RunState.COMMITTED):
            wrong = misfit(said["detail"], REMOVAL)
        if wrong is None and said["state"] == RunState.ARCHIVED:
            wrong = misfit(said["detail"], ARCHIVE)
        if wrong is not None:
            raise ValueError(f"it has no {wrong}, or a strange one")
        state = RunState(said["state"])
        return Event(said["number"], state, said["at_ms"], said["write_id"], said["detail"], said["seal"])
    except (ValueError, RecursionError) as damage:
        raise UnreadableMetadata(f"the event {key} is damaged: {damage}", hint="restore the run's record") from damage
