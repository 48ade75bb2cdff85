"""What tells that a folder is an Icechunk repository."""

from __future__ import annotations

from firnline.errors import ObjectNotFound
from firnline.formats.icechunk import names
from firnline.model.locations import identity, join, stem_of
from firnline.model.snapshots import RefKind
from firnline.ports.stores import Read


def has_repository(store: Read, location: str) -> bool:
    """Tells whether a repository is in this folder: an object `repo` that begins as Icechunk's objects do, or a branch
    of version 1. A `repo` that does not begin so is a damaged one where snapshots lie beside it, and reading it will
    say so; any other has nothing to do with Icechunk.
    """
    if _has_repo(store, location) or _has_branch(store, location):
        return True
    return _has_repo(store, location)  # an upgrade may have written it and removed the branches between the two looks


def _has_repo(store: Read, location: str) -> bool:
    from firnline.formats.icechunk.reading.envelope import MAGIC

    try:
        data = store.get(join(location, names.REPO))
    except ObjectNotFound:
        return False
    return data.startswith(MAGIC) or _has_snapshot(store, location)


def _has_branch(store: Read, location: str) -> bool:
    folder = join(location, names.REFS)
    paths = (identity(each.key).removeprefix(stem_of(folder)) for each in store.list(folder))
    return any(known is not None and known[0] == RefKind.BRANCH for known in map(names.ref_file, paths))


def _has_snapshot(store: Read, location: str) -> bool:
    return any(map(names.is_object_name, store.names(join(location, names.SNAPSHOTS))))
