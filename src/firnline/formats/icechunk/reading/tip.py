"""The newest snapshot of one branch, without the rest of the history."""

from __future__ import annotations

from firnline.errors import NoSuchTable, ObjectNotFound, UsageError
from firnline.formats.damage import named
from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.objects import lineage_at
from firnline.formats.icechunk.reading.refs import snapshot_in
from firnline.formats.icechunk.reading.repo import read_repo
from firnline.model.locations import join
from firnline.model.snapshots import MAIN, RefKind
from firnline.ports.stores import Get


def branch_tip(store: Get, location: str, branch: str) -> HistorySnapshot:
    """Returns the snapshot that a branch points to: one request in version 2, three in version 1, however long the
    history is. Raises NoSuchTable where there is no repository, UsageError where it has no such branch,
    UnreadableMetadata or UnsupportedFormat where what tells is damaged or not understood.
    """
    key = join(location, names.REPO)
    try:
        data = store.get(key)
    except ObjectNotFound:
        return lineage_at(store, location, _in_version_1(store, location, branch))
    with named("history", key):
        repo = read_repo(data)
    if branch not in repo.branches:
        raise _no_branch(location, branch)
    return repo.snapshots[repo.branches[branch]]


def _in_version_1(store: Get, location: str, branch: str) -> str:
    path = f"{RefKind.BRANCH}.{branch}/{names.REF}"
    if names.ref_file(path) is None:  # a slash in it would lead out of the refs
        raise _no_branch(location, branch)
    key = join(location, names.REFS, path)
    try:
        text = store.get(key)
    except ObjectNotFound:
        if branch == MAIN:  # every repository has it
            raise NoSuchTable(f"no Icechunk repository at {location}", "it has an object `repo`, or refs") from None
        raise _no_branch(location, branch) from None
    with named("ref", key):
        return snapshot_in(text)


def _no_branch(location: str, branch: str) -> UsageError:
    hint = "name a branch as the store does: on local files some letters are written with percent signs"
    return UsageError(f"no branch {branch!r} in {location}", hint)
