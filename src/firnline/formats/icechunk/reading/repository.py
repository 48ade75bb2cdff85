"""A whole repository: its refs, and the history that they lead to, as they were at one moment.

Version 2 has both in one object. Version 1 has an object for each ref, and each snapshot's own object names its parent.
Expiry writes such an object anew in its place, one ref after the other. So what was read is compared with what is there
afterwards, and read again where the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from firnline.errors import FirnlineError, NoSuchTable, ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.formats.damage import REPAIR, named
from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.objects import lineage_at
from firnline.formats.icechunk.reading.refs import RefFiles, read_refs, refs_named, side_by_side
from firnline.formats.icechunk.reading.repo import RepoObject, read_repo
from firnline.formats.links import refuse_links
from firnline.model.locations import identity, join, stem_of
from firnline.model.snapshots import MAIN, Ref
from firnline.ports.stores import Head, List, ObjectMeta, Read

_LOOKS = 5

Stamp = tuple[int, int | None, str | None]
"""What a store says of an object and says differently once it was written again."""


@dataclass(frozen=True, slots=True)
class IcechunkRepository:
    """Refs and history. In version 1 the snapshots are those that refs lead to; in version 2 all that `repo` lists,
    which is more where a branch was reset. `first_logs` are first snapshots that have a transaction log: those that
    version 2 made, and none that an upgrade took over. `left` are refs of version 1 that an upgrade left, and that name
    nothing but what `repo` lists.
    """

    location: str
    spec: int
    branches: Mapping[str, str]
    tags: Mapping[str, str]
    deleted_tags: frozenset[str]
    snapshots: Mapping[str, HistorySnapshot] = field(repr=False)
    repo: RepoObject | None = field(default=None, repr=False)
    first_logs: frozenset[str] = frozenset()
    left: tuple[Ref, ...] = ()

    @property
    def refs(self) -> Iterator[Ref]:
        """Yields every ref. A tag may have the name of a branch."""
        return refs_named(self.branches, self.tags)

    def refs_at(self) -> dict[str, list[Ref]]:
        """Returns the refs that name each snapshot, of those that have any."""
        found: dict[str, list[Ref]] = {}
        for ref in self.refs:
            found.setdefault(ref.snapshot, []).append(ref)
        return found

    def ancestry(self, snapshot: str) -> Iterator[HistorySnapshot]:
        """Yields a snapshot and all before it, the newest first."""
        here: str | None = snapshot
        while here is not None:
            yield self.snapshots[here]
            here = self.snapshots[here].parent


def read_repository(store: Read, location: str) -> IcechunkRepository:
    """Returns the repository in a folder. Raises NoSuchTable where there is none, UnreadableMetadata where an object
    that tells of its history is missing or damaged, or where it changes faster than it can be read.
    """
    known: dict[tuple[str, Stamp], HistorySnapshot | FirnlineError] = {}
    for _ in range(_LOOKS):
        data = _repo_bytes(store, location)
        found = _version_1(store, location, known) if data is None else _version_2(store, location, data)
        if found is not None:
            return found
    raise UnreadableMetadata(
        f"the history of {location} changes faster than it can be read", hint="nothing was changed; try again"
    )


def _repo_bytes(store: Read, location: str) -> bytes | None:
    try:
        return store.get(join(location, names.REPO))
    except ObjectNotFound:
        return None


def _version_2(store: Read, location: str, data: bytes) -> IcechunkRepository:
    key = join(location, names.REPO)
    with named("history", key):
        repo = read_repo(data)
    left = _left_refs(store, location, repo)
    first = (each.id for each in repo.snapshots.values() if each.parent is None)
    logs = frozenset(each for each in first if _has_log(store, location, each))
    named_in_repo = (repo.branches, repo.tags, repo.deleted_tags, repo.snapshots)
    return IcechunkRepository(location, 2, *named_in_repo, repo, logs, left)


def _has_log(store: Head, location: str, snapshot: str) -> bool:
    try:
        store.head(join(location, names.TRANSACTIONS, snapshot))
    except ObjectNotFound:
        return False
    return True


def _left_refs(store: Read, location: str, repo: RepoObject) -> tuple[Ref, ...]:
    """Returns the refs of version 1 that lie beside `repo`. Raises UnsupportedFormat where one names a snapshot that it
    does not list: an upgrade may leave them, and a writer of version 1 that goes on by them makes snapshots that `repo`
    knows nothing of.
    """
    try:
        left = tuple(read_refs(store, location).all)
    except ObjectNotFound:
        return ()  # an upgrade is just removing them
    for ref in left:
        if ref.snapshot not in repo.snapshots:
            raise UnsupportedFormat(
                f"{join(location, names.REFS)} has a ref {ref.name} of version 1, at {ref.snapshot}, which "
                f"{join(location, names.REPO)} does not list: there are two histories",
                hint="nothing was changed; remove the refs that an upgrade left, once nobody writes by them",
            )
    return left


def _version_1(
    store: Read, location: str, known: dict[tuple[str, Stamp], HistorySnapshot | FirnlineError]
) -> IcechunkRepository | None:
    """Returns the repository; None where it changed on the way, so that it must be looked at again.

    `known` is what earlier looks read: an object with the same stamp says the same.
    """
    stamps = snapshot_stamps(store, location)
    refs = _refs_if_whole(store, location)
    if refs is None:
        return None
    due = [each for each in stamps.items() if each not in known]
    known.update(zip(due, side_by_side(lambda each: _told(store, location, each[0]), due), strict=True))
    found = _reachable(refs, {name: known[name, stamp] for name, stamp in stamps.items()})
    later = snapshot_stamps(store, location)
    same = all(stamps.get(name) == later.get(name) for name in found)
    if not same or _refs_if_whole(store, location) != refs or _repo_bytes(store, location) is not None:
        return None
    _refuse_none(refs, location)
    return IcechunkRepository(location, 1, refs.branches, refs.tags, refs.deleted_tags, _sound(found, location))


def _refs_if_whole(store: Read, location: str) -> RefFiles | None:
    try:
        return read_refs(store, location)
    except ObjectNotFound:
        return None


def _refuse_none(refs: RefFiles, location: str) -> None:
    if not refs.branches and not refs.tags and not refs.deleted_tags:
        raise NoSuchTable(f"no Icechunk repository at {location}", f"it has an object `{names.REPO}`, or refs")
    if MAIN not in refs.branches:
        raise UnreadableMetadata(f"{join(location, names.REFS)} has no branch {MAIN}", hint=REPAIR)


def snapshot_stamps(store: Read, location: str) -> dict[str, Stamp]:
    """Returns what the store says of each snapshot, by name."""
    folder = join(location, names.SNAPSHOTS)
    refuse_links(store, folder)
    found = ((each.key.rpartition("/")[2], each) for each in _directly(store, folder))
    return {name: (each.size, each.modified_ms, each.etag) for name, each in found if names.is_object_name(name)}


def _directly(store: List, folder: str) -> Iterator[ObjectMeta]:
    return (each for each in store.list(folder) if "/" not in identity(each.key).removeprefix(stem_of(folder)))


def _told(store: Read, location: str, name: str) -> HistorySnapshot | FirnlineError:
    """Returns what a snapshot's object says of the history, or what is wrong with it: that counts only if a ref leads
    to it.
    """
    try:
        return lineage_at(store, location, name)
    except (UnreadableMetadata, UnsupportedFormat) as trouble:
        return trouble


def _reachable(
    refs: RefFiles, told: Mapping[str, HistorySnapshot | FirnlineError]
) -> dict[str, HistorySnapshot | FirnlineError | None]:
    """Returns what is said of every snapshot that refs lead to; None where it was not listed."""
    found: dict[str, HistorySnapshot | FirnlineError | None] = {}
    due = [*refs.branches.values(), *refs.tags.values()]
    while due:
        name = due.pop()
        if name not in found:
            found[name] = here = told.get(name)
            if isinstance(here, HistorySnapshot) and here.parent is not None:
                due.append(here.parent)
    return found


def _sound(found: Mapping[str, HistorySnapshot | FirnlineError | None], location: str) -> dict[str, HistorySnapshot]:
    """Returns the history. Raises where a snapshot of it is missing, damaged or its own ancestor."""
    sound: dict[str, HistorySnapshot] = {}
    for name, here in found.items():
        if here is None:
            key = join(location, names.SNAPSHOTS, name)
            raise UnreadableMetadata(f"snapshot is missing: {key}", hint=REPAIR)
        if isinstance(here, FirnlineError):
            raise here
        sound[name] = here
    _refuse_circles(sound, location)
    return sound


def _refuse_circles(snapshots: Mapping[str, HistorySnapshot], location: str) -> None:
    """Raises unless every snapshot comes from a first one."""
    ended: set[str] = set()
    for name in snapshots:
        line: dict[str, None] = {}
        here: str | None = name
        while here is not None and here not in ended:
            if here in line:
                key = join(location, names.SNAPSHOTS, here)
                raise UnreadableMetadata(f"snapshot is damaged: {key}: it is its own ancestor", hint=REPAIR)
            line[here] = None
            here = snapshots[here].parent
        ended.update(line)
