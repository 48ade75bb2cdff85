"""The states of a run and the moves between them."""

from __future__ import annotations

from enum import StrEnum

from firnline.errors import RefusedForSafety


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
    # Straight to committed goes what changes no table: orphans, whose grace begins with the operator's word.
    _S.PLANNED: frozenset({_S.ARCHIVED, _S.COMMITTING, _S.COMMITTED, _S.CANCELLED}),
    _S.ARCHIVED: frozenset({_S.COMMITTING, _S.CANCELLED}),
    _S.COMMITTING: frozenset({_S.COMMITTING, _S.COMMITTED, _S.CANCELLED}),
    _S.COMMITTED: frozenset({_S.PURGING, _S.UNDOING}),
    _S.PURGING: frozenset({_S.PURGING, _S.DONE}),
    _S.UNDOING: frozenset({_S.UNDOING, _S.UNDONE, _S.COMMITTED}),
    _S.DONE: frozenset(),
    _S.UNDONE: frozenset(),
    _S.CANCELLED: frozenset(),
}

FINISHED = frozenset({_S.DONE, _S.UNDONE, _S.CANCELLED})
UNDOABLE = frozenset({_S.COMMITTING, _S.COMMITTED, _S.UNDOING})
"""States in which the removed snapshots may come back, so that every later run must leave their files alone."""


def check_move(old: RunState, new: RunState) -> None:
    """Returns where a run may go from one state to the other; raises where it may not."""
    if new not in MOVES[old]:
        allowed = ", ".join(sorted(MOVES[old])) or "nothing: it is finished"
        raise RefusedForSafety(f"a run that is {old} cannot become {new}", hint=f"it can become: {allowed}")
