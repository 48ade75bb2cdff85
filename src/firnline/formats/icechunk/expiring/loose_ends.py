"""Snapshots that no ref leads to, and that no threshold takes without others. Pure.

Version 2 lists in `repo` what resets, amendments and deleted branches left. The library's expiry takes of it what is
older than a threshold, and a rule may keep older ones on a line: so a threshold must stop below, and the rest would be
there until the library's own collection. Yet its expiry never takes what a branch points to. So each snapshot that is
to stay gets a branch of its own, a guard, for the time of an expiry with a later threshold.

The ends go first, one layer after the other:

1. `main` was reset from 5 to 3, so that 4 and 5 are loose. Both are to go.
2. Before the library looks, the owner puts `main` back to 5.
3. An expiry of both would find 5 held and 4 not, and 5 would follow the root: `main` would have lost 1 to 4.
4. An expiry of 5 alone finds it held, and changes nothing. One of 4 comes only after 5 is gone.

What the branches of others point to is guarded, too: a commit to such a branch would free its last snapshot.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from firnline.formats.icechunk.expiring.ancestry import RefHistory

MOST_GUARDS = 200
"""Each guard is two writes of `repo`. What would take more is left to the library's collection, or to a later run."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Loose snapshots that no other follows, and what the library is asked for to take just these."""

    ends: frozenset[str]
    guarded: frozenset[str]
    threshold_us: int


def loose(history: RefHistory) -> set[str]:
    """Returns the snapshots that no ref leads to. A first snapshot is none of them: no expiry takes one."""
    reached = history.reachable()
    return {each.id for each in history.snapshots.values() if each.parent and each.id not in reached}


def without_followers(history: RefHistory, due: Set[str]) -> set[str]:
    """Returns those of the snapshots that are loose, and that nothing follows but such as these."""
    found = loose(history) & due
    for each in reversed(list(history.oldest_first())):
        if each.id not in found and each.parent in found:
            found.discard(each.parent)
    return found


def affordable(history: RefHistory, due: Set[str]) -> set[str]:
    """Returns those of the snapshots that can go by few enough guards."""
    times = sorted(each.flushed_us for each in history.snapshots.values() if each.parent)
    cheap = due if len(times) <= MOST_GUARDS else {each for each in due if _is_before(history, each, times)}
    return without_followers(history, cheap)


def _is_before(history: RefHistory, snapshot: str, times: list[int]) -> bool:
    return snapshot in history.snapshots and history.snapshots[snapshot].flushed_us < times[MOST_GUARDS]


def beyond_threshold(history: RefHistory, gone: Set[str]) -> frozenset[str]:
    """Returns those of the snapshots that a threshold cannot take: loose, and no older than one that stays."""
    return as_young_as_what_stays(history, gone) & loose(history)


def as_young_as_what_stays(history: RefHistory, gone: Set[str]) -> frozenset[str]:
    """Returns those of the snapshots that are no older than one that stays without a ref at it."""
    held = {ref.snapshot for ref in history.refs} | gone
    stays = (each.flushed_us for name, each in history.snapshots.items() if each.parent and name not in held)
    first_us = min(stays, default=None)
    if first_us is None:
        return frozenset()
    return frozenset(each for each in gone if history.snapshots[each].flushed_us >= first_us)


def next_layer(history: RefHistory, due: Set[str]) -> Layer | None:
    """Returns the snapshots of `due` to go next; None where none can: the history has no guards in it."""
    followed = {each.parent for each in history.snapshots.values()}
    ends = frozenset((loose(history) & due) - followed)
    if not ends:
        return None
    threshold_us = 1 + max(history.snapshots[each].flushed_us for each in ends)
    return Layer(ends, frozenset(older_than(history, threshold_us) - ends), threshold_us)


def older_than(history: RefHistory, threshold_us: int) -> set[str]:
    """Returns what a threshold takes, unless a ref points to it."""
    return {each.id for each in history.snapshots.values() if each.parent and each.flushed_us < threshold_us}
