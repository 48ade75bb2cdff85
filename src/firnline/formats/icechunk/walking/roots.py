"""What the history of a repository names: each snapshot's own object, and the transaction logs that are needed."""

from __future__ import annotations

from collections.abc import Iterator

from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.objects import snapshot_at
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.snapshots import MAIN, SnapshotId
from firnline.ports.stores import Get


def roots_of(repository: IcechunkRepository) -> Iterator[tuple[SnapshotId, File]]:
    """Yields each snapshot's object, and the transaction logs that it needs.

    In version 2 a ref's snapshot needs the logs of its whole line: what an expiry takes out between two snapshots is
    noted at the one that stays, with its log. So no expiry takes the log of anything that a ref leads to.
    """
    for each in repository.snapshots.values():
        yield each.id, File(FileKind.SNAPSHOT, join(repository.location, names.SNAPSHOTS, each.id), opens=True)
        yield from ((each.id, _log(repository, snapshot)) for snapshot in _logged(repository, each))
    if repository.spec > 1:
        yield from ((owner, _log(repository, snapshot)) for owner, snapshot in _of_lines(repository))


def _logged(repository: IcechunkRepository, each: HistorySnapshot) -> tuple[SnapshotId, ...]:
    """Returns whose logs a snapshot needs by itself. One that is the first changed nothing, and may have none."""
    own = each.parent is not None or each.id in repository.first_logs
    return (each.id, *each.pruned) if own else each.pruned


def _of_lines(repository: IcechunkRepository) -> Iterator[tuple[SnapshotId, SnapshotId]]:
    """Yields each snapshot below a ref's, once, after the snapshot of the first ref that leads to it: `main` is the
    first of all, and never goes. Then those below the ends that no ref leads to, of which the youngest goes last.
    """
    told: set[SnapshotId] = set()
    young = sorted(repository.snapshots.values(), key=lambda each: -each.flushed_us)
    tips = [repository.branches[MAIN], *(ref.snapshot for ref in repository.refs), *(each.id for each in young)]
    for tip in tips:
        here = repository.snapshots.get(tip)
        while here is not None and here.id not in told:
            told.add(here.id)
            yield from ((tip, logged) for logged in _logged(repository, here))
            # What a hold brings back of a removal may come without its parent.
            here = repository.snapshots.get(here.parent or "")


def _log(repository: IcechunkRepository, snapshot: SnapshotId) -> File:
    return File(FileKind.TRANSACTION_LOG, join(repository.location, names.TRANSACTIONS, snapshot))


_SAMPLES = 8


def entries_of(store: Get, repository: IcechunkRepository) -> int:
    """Returns about how many references a walk meets. Most commits write the manifests of the arrays that they change
    anew, each with all references of its array; so a few snapshots are asked, and what changed from one to the next is
    taken to have changed with each commit between.
    """
    line = sorted(repository.snapshots.values(), key=lambda each: each.flushed_us)
    chosen = sorted({round(place * (len(line) - 1) / (_SAMPLES - 1)) for place in range(_SAMPLES)})
    total, known, before = 0, set[str](), -1
    for place in chosen:
        manifests = snapshot_at(store, repository.location, line[place].id).manifests
        fresh = sum(each.refs or 0 for each in manifests if each.id not in known)
        total += fresh * (place - before)
        known, before = {each.id for each in manifests}, place
    return total
