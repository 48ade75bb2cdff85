"""What a table's snapshots, tags and changelogs name themselves, each with who needs it; and about how much that is."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.opening import opened
from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import Branch, SnapshotVersion, branches_of, versions_of
from firnline.formats.paimon.reading.ranges import held_in
from firnline.formats.paimon.reading.snapshot import ListFile, PaimonSnapshot
from firnline.formats.paimon.reading.state import files_in
from firnline.formats.paimon.walking.entries import columns_of
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId, changes_of
from firnline.ports.formats import State
from firnline.ports.stores import Get

_COMPACTION = "COMPACT"


def roots_of(state: State) -> Iterator[tuple[SnapshotId, File]]:
    """Yields the lists, index manifests and statistics of every version of every branch, with its owner.

    A tag holds the table as it was and no changelog: Paimon's own expiry takes that away below a tag. So what was
    changed has an owner of its own, for as long as the snapshot's file is there, or a changelog that outlived it.
    """
    for branch in branches_of(files_in(state), state.location).values():
        for version in versions_of(branch).values():
            yield from ((version.id, file) for file in _contents(version.snapshot, state.location))
            if version.in_folder:
                owner = changes_of(version.id)
                yield from ((owner, file) for file in changes(branch, version.snapshot, state.location))
        for number, changelog in branch.changelogs.items():
            owner = changes_of(names.snapshot_id(branch.name, number))
            yield from ((owner, file) for file in _kept_changes(branch, changelog, state.location))


def _contents(snapshot: PaimonSnapshot, location: str) -> Iterator[File]:
    yield from lists_of(snapshot, location)
    if snapshot.index is not None:
        yield File(FileKind.INDEX_MANIFEST, join(location, "manifest", snapshot.index), opens=True)
    if snapshot.statistics is not None:
        yield File(FileKind.STATISTICS, join(location, "statistics", snapshot.statistics))


def lists_of(snapshot: PaimonSnapshot, location: str) -> tuple[File, File]:
    """Returns the lists of all that was there before a snapshot, and of what it changed."""
    return _list(snapshot.base, location), _list(snapshot.delta, location)


def changes(branch: Branch, snapshot: PaimonSnapshot, location: str) -> Iterator[File]:
    """Yields what readers of changes need of a snapshot in the folder, and its changelog where one is to outlive it."""
    if snapshot.changelog is not None:
        yield _changelog(snapshot.changelog, location)
    elif branch.decoupled:
        yield from _kept_changes(branch, snapshot, location)


def _kept_changes(branch: Branch, changelog: PaimonSnapshot, location: str) -> Iterator[File]:
    """Yields what a changelog needs without its snapshot: its own list, or the rows that it added where the table
    writes no changelog. Paimon removes the other lists that it still names.

    A compaction adds no rows, and no stream reads what it wrote: Paimon's own expiry takes that with the snapshot.
    """
    if changelog.changelog is not None:
        yield _changelog(changelog.changelog, location)
    elif not branch.writes_changelog and changelog.kind != _COMPACTION:
        yield _changelog(changelog.delta, location)


def _list(found: ListFile, location: str) -> File:
    return File(FileKind.MANIFEST_LIST, join(location, "manifest", found.name), found.size, opens=True)


def _changelog(found: ListFile, location: str) -> File:
    """Returns the list as a kind of its own: it may be gone. A snapshot that came back from a tag, by a rollback or as
    the first one of a branch, names a changelog that went when the snapshot had expired; and with a tag Paimon deletes
    lists that a changelog still names. Where a snapshot or tag needs the list itself, it must be there.
    """
    return File(FileKind.CHANGES_LIST, join(location, "manifest", found.name), found.size, opens=True)


_COUNTS = {"_NUM_ADDED_FILES": pa.int64(), "_NUM_DELETED_FILES": pa.int64()}


def entries_of(store: Get, state: State) -> int:
    """Returns how many entries the manifests of a snapshot have, of that with the most records or of the newest.

    Their lists say it: at most four requests, for what every walk opens first anyway.
    """
    return max((_entries(store, each, state.location) for each in _largest(state)), default=0)


def _largest(state: State) -> Iterator[PaimonSnapshot]:
    """Yields the newest snapshot of the main branch, and the version with the most records of all branches and tags,
    where that is another one.
    """
    branches = branches_of(files_in(state), state.location)
    versions = [version for branch in branches.values() for version in versions_of(branch).values()]
    if not versions:
        return
    main = branches[names.MAIN]
    most = max(versions, key=lambda each: (_records(state, each), each.snapshot.number)).snapshot
    found = {each.content: each for each in (most, *(main.snapshots[number] for number in (main.latest,) if number))}
    yield from found.values()


def _records(state: State, version: SnapshotVersion) -> int:
    path = held_in(version)
    return fields.whole_or_none(fields.parse(files_in(state)[path], path), "totalRecordCount", path) or 0


def _entries(store: Get, snapshot: PaimonSnapshot, location: str) -> int:
    total = 0
    for unit in lists_of(snapshot, location):
        with opened(store, unit) as data:
            found, _ = columns_of([data], _COUNTS)
        total += sum(pc.sum(found.column(name)).as_py() or 0 for name in _COUNTS)
    return total
