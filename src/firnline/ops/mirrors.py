"""Tables that are mirrors: metadata that the writers of another table keep over their own files, for other readers.

Who expires a mirror by its own snapshots deletes what a branch or an older snapshot of the original needs. And who
commits to it takes the version that the original's next commit would have been published as.
"""

from __future__ import annotations

from firnline.errors import RefusedForSafety
from firnline.ports.formats import State


def mirrored(state: State) -> str | None:
    """Returns what the table is a mirror of, in words; None for one that stands on its own."""
    if state.original is None:
        return None
    return f"the metadata of {state.table} is written over the files of another table, the one at {state.original}"


def way_out(state: State) -> str:
    """Returns what to do with a mirror instead."""
    return f"work on {state.original} itself: its writers bring the mirror up to date"


def refuse_mirror(state: State) -> None:
    """Raises RefusedForSafety if the table is a mirror."""
    told = mirrored(state)
    if told is not None:
        raise RefusedForSafety(told, hint=f"nothing was changed; {way_out(state)}")
