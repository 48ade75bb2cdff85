"""The events of a run: numbered objects, each written once and never changed. Their last one is the run's state."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from firnline.errors import AlreadyExists, LeaseHeld, OutcomeUnknown, StoreError, UnreadableMetadata
from firnline.journal.layout import RecordFolder
from firnline.journal.sealing import UNSEALED, Sealing
from firnline.journal.shapes import EVENT, REMOVAL, misfit
from firnline.journal.states import RunState, check_move
from firnline.model.locations import join
from firnline.ports.stores import Get, List, PutIfAbsent


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

    def said(self) -> dict[str, Any]:
        """Returns all of it as JSON, except the seal."""
        return {"number": self.number, "state": self.state.value, "at_ms": self.at_ms, "write_id": self.write_id,
                "detail": self.detail}  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {**self.said(), "seal": self.seal}


def read_events(store: EventStore, folder: RecordFolder) -> list[Event]:
    """Returns every event in order. A hole in the numbers means that the record was tampered with: nothing goes on."""
    keys = sorted(each.key for each in store.list(folder.events) if each.key.endswith(".json"))
    events = [_parse(store.get(key), key) for key in keys]
    if [event.number for event in events] != list(range(1, len(events) + 1)):
        raise UnreadableMetadata(f"the events in {folder.events} are not whole", hint="restore the run's record")
    return events


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
        if not _is_ours(store, key, event):
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


def _is_ours(store: EventStore, key: str, event: Event) -> bool:
    try:
        return _parse(store.get(key), key).write_id == event.write_id
    except StoreError as silent:
        raise OutcomeUnknown(f"cannot read back {key}", hint="`firnline resume` settles it") from silent


def _parse(data: bytes, key: str) -> Event:
    try:
        said = json.loads(data)
        wrong = misfit(said, EVENT)
        if wrong is None and said["state"] in (RunState.COMMITTING, RunState.COMMITTED):
            wrong = misfit(said["detail"], REMOVAL)
        if wrong is not None:
            raise ValueError(f"it has no {wrong}, or a strange one")
        state = RunState(said["state"])
        return Event(said["number"], state, said["at_ms"], said["write_id"], said["detail"], said["seal"])
    except (ValueError, RecursionError) as damage:
        raise UnreadableMetadata(f"the event {key} is damaged: {damage}", hint="restore the run's record") from damage
