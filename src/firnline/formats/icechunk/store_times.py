"""When a store says that a repository's snapshots were written, held against what they say themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import partial

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk import names
from firnline.formats.icechunk.clocks import Disagreement, disagreements, faults_around, written_late
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.expiring.loose_ends import as_young_as_what_stays
from firnline.formats.icechunk.reading.objects import lineage_at, snapshot_at
from firnline.formats.icechunk.reading.refs import side_by_side
from firnline.formats.icechunk.reading.repository import IcechunkRepository, snapshot_stamps
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId
from firnline.ports.abilities import ClockFault
from firnline.ports.stores import Get, Read

_EVERY = "*"
_TOLD = 3


def doubtful_times(store: Read, repository: IcechunkRepository) -> Iterator[Disagreement]:
    """Yields what contradicts the times of a repository's snapshots. One listing, and a look at each that was written
    later than it says. Raises UnreadableMetadata where such a one cannot be read.
    """
    stamps = snapshot_stamps(store, repository.location)
    # A local file without a time of its own has 0, which tells nothing.
    written = {name: modified_ms for name, (_, modified_ms, _) in stamps.items() if modified_ms}
    late = written_late(repository, written)
    looked = side_by_side(partial(_was_edited, store, repository), late)
    edited = {name for name, was_edited in zip(late, looked, strict=True) if was_edited}
    yield from disagreements(repository, written, edited)


def clock_faults_of(store: Read, repository: IcechunkRepository) -> Iterator[ClockFault]:
    """Yields the same as faults of the table, each with the snapshot's object."""
    for each in doubtful_times(store, repository):
        where = join(repository.location, names.SNAPSHOTS, each.snapshot)
        yield ClockFault(each.snapshot, each.problem, each.hint, where)


def refuse_doubtful_cut(
    store: Read, repository: IcechunkRepository, gone: Iterable[SnapshotId], trusted: Set[SnapshotId]
) -> None:
    """Raises RefusedForSafety if one of two clocks says that a snapshot is older than all that goes, and the other that
    it is not: what goes may be younger than it seems. `trusted` are those for whose times the operator vouches.

    What is loose above the threshold goes for itself, so of these only their own times matter.
    """
    if _EVERY in trusted:
        return
    found = list(doubtful_times(store, repository))
    loose = as_young_as_what_stays(RefHistory.of(repository), set(gone)) if repository.spec > 1 else frozenset()
    doubtful = _around(found, repository, set(gone) - loose)
    doubtful += [each for each in _around(found, repository, loose) if loose & set(each.snapshots)]
    due = [each for each in doubtful if not trusted >= set(each.snapshots)]
    if due:
        told = "; ".join(f"{each.snapshot} {each.problem}" for each in due[:_TOLD])
        more = f"; and {len(due) - _TOLD} more" if len(due) > _TOLD else ""
        raise RefusedForSafety(
            f"the ages of snapshots around the cutoff are in doubt: {told}{more}",
            hint="nothing was changed; `firnline check` lists all; --trust-snapshot ID, or '*' for all, takes the time "
            "that snapshots say themselves, if the repository was copied or you know better",
        )


def _around(found: list[Disagreement], repository: IcechunkRepository, gone: Set[SnapshotId]) -> list[Disagreement]:
    times = [repository.snapshots[each].flushed_us for each in gone]
    return faults_around(found, 1 + max(times)) if times else []


def _was_edited(store: Get, repository: IcechunkRepository, snapshot: str) -> bool:
    """Tells whether an expiry may have written a snapshot again: only those of version 1 do, and give it a first
    snapshot as its parent.

    In version 1 its object is asked once more where the parent is another one: an expiry may have come between the
    look at the history and the listing. In version 2 the object tells whether a writer of version 1 left it.
    """
    follows_root = _is_root(repository, repository.snapshots[snapshot].parent)
    if repository.spec == 1:
        return follows_root or _is_root(repository, lineage_at(store, repository.location, snapshot).parent)
    return follows_root and snapshot_at(store, repository.location, snapshot).spec == 1


def _is_root(repository: IcechunkRepository, snapshot: str | None) -> bool:
    found = repository.snapshots.get(snapshot) if snapshot is not None else None
    return found is not None and found.parent is None
