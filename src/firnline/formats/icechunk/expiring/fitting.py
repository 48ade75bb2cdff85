"""What of a decision the library's expiry can bring about: it cuts every line of a repository at one instant.

A rule may ask for less than that takes, or for more. What no threshold can take out alone stays, with the reason. Where
a threshold would take what a rule keeps, nothing is done at all: a survivor below a gap, a clock that ran back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.expressing import refusals
from firnline.formats.icechunk.expiring.loose_ends import affordable, beyond_threshold, loose
from firnline.formats.icechunk.expiring.rewriting import Manner, Rewriting, rewritten
from firnline.model.snapshots import Ref, SnapshotId
from firnline.model.times import format_instant
from firnline.policy.decide import Decision
from firnline.policy.reasons import Reason

_TOLD = 3
_GAP = "Icechunk can only cut off the old end of a line; keep all since some instant, or hold single snapshots by tags"

_LOOSE = Reason("unreferenced", ", until no session can need it; then by a later run, or Icechunk's own collection")


def manner_of(spec: int) -> Manner:
    """Returns how the library rewrites the history of a repository of this version."""
    return Manner.VERSION_1 if spec == 1 else Manner.VERSION_2


def fitted(
    decision: Decision, history: RefHistory, expired_refs: Iterable[Ref], spec: int, open_since_us: int
) -> Decision:
    """Returns the decision with all that one threshold can take out, and of version 2 what is loose above it; not a
    snapshot more, nor one that was flushed since `open_since_us` and has no ref yet.

    Raises RefusedForSafety where it would take one that a rule keeps.
    """
    left = history.without(refs=expired_refs)
    reached = left.reachable()
    listed = left.snapshots.keys() if spec > 1 else reached
    lost = history.reachable() - reached if spec == 1 else set()
    young = _flushed_since(history, open_since_us)
    going = [left.snapshots[each].flushed_us for each in decision.expired if each in listed and each not in young]
    if not going:
        return _with(decision, history, lost, None)
    kept = [left.snapshots[each] for each in decision.kept if each in listed]
    survivors = {each.id for each in kept if each.parent} - {ref.snapshot for ref in left.refs}
    # What a ref points to stays by that alone, however old it is: it never moves the threshold.
    cut_us = min((each.flushed_us for each in kept if each.id in survivors), default=1 + max(going))
    cut_us = min([cut_us, *young.values()])
    found = _cut(left, cut_us, spec)
    gone = gone_after(found, spec)
    _refuse_more(gone, survivors)
    old = {each for each in decision.expired if left.snapshots[each].flushed_us < open_since_us}
    above = affordable(found.after, old) if spec > 1 else set()
    return _with(decision, history, gone | lost | above, cut_us)


def _flushed_since(history: RefHistory, open_since_us: int) -> dict[SnapshotId, int]:
    """Returns the snapshots that no ref leads to, with their times, of those that may be of a session that is open.

    1. A session of version 2 flushes: `repo` lists its snapshot, and no ref leads to it before the session makes one.
    2. Others commit. A threshold that takes one of their snapshots takes the flushed one, which is older.
    3. A purge deletes all that the session wrote. In version 1 nothing lists such a snapshot, and no expiry finds it.

    What a reset or an amendment left looks the same, and goes once it is as old.
    """
    times = {each: history.snapshots[each].flushed_us for each in loose(history)}
    return {each: flushed_us for each, flushed_us in times.items() if flushed_us >= open_since_us}


def parts_of(history: RefHistory, gone: Set[SnapshotId], spec: int) -> tuple[int | None, frozenset[SnapshotId]]:
    """Returns the threshold that takes these out, but for those loose ones of version 2 that none takes alone, and
    these. None where there are no others. Raises RefusedForSafety where no threshold takes just the others.
    """
    above = beyond_threshold(history, gone) if spec > 1 else frozenset()
    below = gone - above
    return threshold_to_expire(history, below, spec) if below else None, above


def threshold_to_expire(history: RefHistory, gone: Set[SnapshotId], spec: int) -> int:
    """Returns the threshold, in microseconds, that takes out exactly these snapshots of a history.

    Raises RefusedForSafety where none does: something else was written or pointed to since that was decided.
    """
    cut_us = 1 + max(history.snapshots[each].flushed_us for each in gone)
    found = gone_after(_cut(history, cut_us, spec), spec)
    for what, more in (("would go, too", found - gone), ("would stay", gone - found)):
        if more:
            raise RefusedForSafety(
                f"no threshold takes out just what was planned: {_some(more)} {what}",
                hint="nothing was changed; the repository moved on: plan again",
            )
    return cut_us


def gone_after(found: Rewriting, spec: int) -> set[SnapshotId]:
    """Returns what a history has no more: in version 1 what no ref leads to, in version 2 what `repo` does not list."""
    return set(found.released) if spec == 1 else set(found.before.snapshots.keys() - found.after.snapshots.keys())


def _cut(history: RefHistory, cut_us: int, spec: int) -> Rewriting:
    """Returns what the library makes of the history. Raises RefusedForSafety where clocks ran back, so that what is
    young lies below what is old.
    """
    survivors = survivors_since(history, cut_us)
    if why := refusals(history, survivors):
        raise RefusedForSafety(
            f"this cannot be expired: {'; '.join(why[:_TOLD])}",
            hint="nothing was changed; a writer's clock was wrong: `firnline check` tells which",
        )
    return rewritten(history, survivors, manner_of(spec))


def _refuse_more(gone: Set[SnapshotId], survivors: Set[SnapshotId]) -> None:
    if lost := gone & survivors:
        raise RefusedForSafety(
            f"no threshold spares {_some(lost)}, which is to stay", hint=f"nothing was changed; {_GAP}"
        )


def _with(decision: Decision, history: RefHistory, gone: Set[SnapshotId], cut_us: int | None) -> Decision:
    """Returns the decision by which exactly these go."""
    instant = "" if cut_us is None else f", {format_instant(cut_us // 1000)}"
    on_line, apart = Reason("threshold", f", all lines are cut at one instant{instant}"), loose(history)
    spared = {
        each: (_LOOSE if each in apart else on_line,)
        for each in history.snapshots
        if each not in gone and each not in decision.kept
    }
    kept: Mapping[SnapshotId, tuple[Reason, ...]] = {
        each: reasons for each, reasons in {**decision.kept, **spared}.items() if each not in gone
    }
    oldest_first = sorted(gone, key=lambda each: (history.snapshots[each].flushed_us // 1000, each))
    return replace(decision, kept=kept, expired=tuple(oldest_first))


def _some(snapshots: Set[SnapshotId]) -> str:
    more = f" and {len(snapshots) - _TOLD} more" if len(snapshots) > _TOLD else ""
    return f"{', '.join(sorted(snapshots)[:_TOLD])}{more}"
