"""Changing a table's metadata: reload, edit, compare-and-swap; lost races are run again, unknown outcomes settled."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from firnline.errors import ObjectNotFound, OutcomeUnknown, StoreError, TableMoved
from firnline.ports.catalogs import SwapOutcome
from firnline.ports.formats import Edited, State
from firnline.ports.stores import Get
from firnline.ports.tables import WritableTable

Edit = Callable[[State], Edited | None]
"""From a fresh state to its successor; None where nothing is left to change."""

BeforeSend = Callable[[State, Edited, str], None]
"""Called with the base, the edit and the location it is going to have, before anything is sent."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long lost races are run again: a busy table moves on every second, and a run must not starve."""

    tries: int = 200
    budget_s: float = 300.0
    first_pause_s: float = 0.05
    longest_pause_s: float = 2.0

    def pause(self, attempt: int) -> float:
        return random.uniform(0, min(self.longest_pause_s, self.first_pause_s * 2.0**attempt))


PATIENT = Patience()


@dataclass(frozen=True, slots=True)
class Changed:
    """The commit that landed: what it was built on, and where it lies."""

    base: State
    edited: Edited
    location: str


def change(
    source: WritableTable, store: Get, edit: Edit, before_send: BeforeSend, patience: Patience = PATIENT
) -> Changed | None:
    """Returns the commit that landed, or None where the edit found nothing to do.

    Every try starts from a fresh read, so a ref that appeared meanwhile always wins. Raises TableMoved when the
    budget is used up, OutcomeUnknown when nobody can tell whether the last try landed.
    """
    deadline = time.monotonic() + patience.budget_s
    for attempt in range(patience.tries):
        base = source.load()
        edited = edit(base)
        if edited is None:
            return None
        location = source.commits.successor(source.name, base.fence, edited.location)
        before_send(base, edited, location)
        if _landed(source, store, base, edited, location):
            return Changed(base, edited, location)
        pause = patience.pause(attempt)
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    raise TableMoved(
        f"{source.name} moved on faster than {patience.tries} tries in {patience.budget_s:.0f} s could follow",
        hint="`firnline resume` tries again; nothing was removed",
    )


def _landed(source: WritableTable, store: Get, base: State, edited: Edited, location: str) -> bool:
    """Tells whether the commit is in the table. An unknown outcome is settled by sending the very same commit again.

    That is safe: it can succeed once only. If it loses, the table's own log says whether the first one had won.
    """
    failure: StoreError | None = None
    unanswered = False
    for pause in (0.0, 0.1, 0.5, 2.0):
        time.sleep(pause)
        try:
            outcome = source.commits.commit(source.name, base.fence, location, edited.data)
            if outcome is SwapOutcome.DONE:
                return True
            if outcome is SwapOutcome.LOST:
                return was_committed(source.load(), store, location, digest_of(edited.data))
            unanswered = True
        except StoreError as known:
            failure = known
    if failure is not None and not unanswered:
        raise failure  # nothing was ever sent that could still land
    raise OutcomeUnknown(
        f"nobody answered whether {source.name} is at {location} now", hint="`firnline resume` reads it back"
    )


def was_committed(state: State, store: Get, location: str, digest: str) -> bool:
    """Tells whether our metadata at `location` is, or once was, the table's: the log of every successor names it.

    On a path table another writer's commit may lie under that very name, so the bytes are compared too.
    """
    log = state.document.get("metadata-log") or ()
    known = state.fence == location or any(entry.get("metadata-file") == location for entry in log)
    try:
        return known and digest_of(store.get(location)) == digest
    except ObjectNotFound:
        return False  # somebody removed it although the log names it: it cannot tell any more


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
