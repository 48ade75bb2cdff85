"""History rewriting: what stays of the history once snapshots expire, before any object is deleted.

Of each line of ancestors the oldest survivor gets the line's root as its parent. It is edited in place: no id changes,
so every ref and every reader that knows an id still finds it. What no ref leads to then dangles, and a collection may
take it. Neither a root nor what a ref points to ever goes.

Icechunk's design and its two implementations differ in what they do for a ref that points to an expired snapshot. A
plan must show what its commit will do, so all three are here (`Manner`).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import Enum

from firnline.formats.icechunk.expiring.ancestry import Footing, RefHistory, footings
from firnline.model.snapshots import MAIN, Ref, RefKind


class Manner(Enum):
    """Who rewrites."""

    DESIGNED = "as designed"
    """The published design: a ref that points to an expired snapshot is left alone, with its whole old view."""
    VERSION_1 = "version 1"
    """The library on version 1 of the format: such a snapshot follows the root from then on. A ref that points to the
    root is expired by the root's time, like any other, and goes on request.
    """
    VERSION_2 = "version 2"
    """The library on version 2: whatever is listed, expired and pointed to by no ref is no longer listed, whether or
    not a ref leads to it; what came right after such a snapshot follows the root.
    """


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The history after, and how it came about.

    `parents` has the edits, and nothing that stays as it was. `expired_refs` are those that go on request, `deleted` of
    these the ones for which that was asked. `dangling` is every snapshot to which no ref leads afterwards, `released`
    those of them to which one led before.
    """

    before: RefHistory
    after: RefHistory
    survivors: Set[str]
    parents: dict[str, str]
    expired_refs: tuple[Ref, ...]
    deleted: tuple[Ref, ...]
    dangling: frozenset[str]
    released: frozenset[str]


def rewritten(
    history: RefHistory,
    survivors: Set[str],
    manner: Manner = Manner.DESIGNED,
    delete: Set[RefKind] = frozenset(),
) -> Rewriting:
    """Returns what becomes of a history in which `survivors` are not expired; the order of its refs means nothing.

    `survivors` are those of a rule, or of a threshold. What stays only because a ref points to it is none of them
    (`ruled_survivors`): such a ref is expired, and goes if `delete` has its kind. `main` never does.

    As designed, what lies in a gap, between survivors of one line, stays: only the end of a line can be cut off.
    Raises ValueError where the library is asked for survivors with a gap: it would part them from their ref.
    """
    below = footings(history, survivors)
    if manner is not Manner.DESIGNED:
        _refuse_gaps(history, below)
    expired = tuple(ref for ref in history.refs if _is_expired(ref, below[ref.snapshot], survivors, manner))
    deleted = tuple(ref for ref in expired if ref.kind in delete)
    if manner is Manner.VERSION_2:
        unlisted = _unlisted(history, survivors, deleted)
        parents = _next_to(history, below, unlisted)
    else:
        unlisted = frozenset()
        parents = _edits(history, below, survivors, manner)
    after = history.edited(parents).without(unlisted, deleted)
    still = after.reachable()
    return Rewriting(
        before=history,
        after=after,
        survivors=survivors,
        parents=parents,
        expired_refs=expired,
        deleted=deleted,
        dangling=frozenset(history.snapshots.keys() - still),
        released=frozenset(history.reachable() - still),
    )


def _refuse_gaps(history: RefHistory, below: dict[str, Footing]) -> None:
    for ref in history.refs:
        if (gap := below[ref.snapshot].gap) is not None:
            raise ValueError(f"{ref.kind} {ref.name} has a gap: {gap[0]} is to go, and {gap[1]} below it to stay")


def _is_expired(ref: Ref, footing: Footing, survivors: Set[str], manner: Manner) -> bool:
    if ref.snapshot in survivors or (ref.kind is RefKind.BRANCH and ref.name == MAIN):
        return False
    return ref.snapshot != footing.root or manner is Manner.VERSION_1


def _edited(footing: Footing, tip: str, survivors: Set[str], manner: Manner) -> str | None:
    """Returns which snapshot of a ref's line is to follow the root; None where none is."""
    if manner is Manner.DESIGNED:
        return footing.oldest if tip in survivors else None
    return footing.oldest or (tip if tip != footing.root else None)


def _edits(history: RefHistory, below: dict[str, Footing], survivors: Set[str], manner: Manner) -> dict[str, str]:
    found: dict[str, str] = {}
    for ref in history.refs:
        footing = below[ref.snapshot]
        edited = _edited(footing, ref.snapshot, survivors, manner)
        if edited is not None and history.snapshots[edited].parent != footing.root:
            found[edited] = footing.root
    return found


def _unlisted(history: RefHistory, survivors: Set[str], deleted: tuple[Ref, ...]) -> frozenset[str]:
    """Returns the expired snapshots that no ref that stays points to."""
    held = {ref.snapshot for ref in history.without(refs=deleted).refs}
    expired = (each.id for each in history.snapshots.values() if each.parent and each.id not in survivors)
    return frozenset(each for each in expired if each not in held)


def _next_to(history: RefHistory, below: dict[str, Footing], unlisted: Set[str]) -> dict[str, str]:
    """Returns the edits of what stays and came right after something that does not."""
    stays = (each for each in history.snapshots.values() if each.id not in unlisted)
    return {each.id: below[each.id].root for each in stays if each.parent in unlisted}
