"""From a repository to the State that every other part works on; and what one of its metadata objects tells of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from firnline.errors import UnsupportedFormat
from firnline.foreign import harmless
from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.repo import Availability
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.formats.icechunk.versions import version_name
from firnline.formats.notes import notes_here
from firnline.model.graph import Graph
from firnline.model.holds import Pin
from firnline.model.locations import identity, join, stem_of
from firnline.model.snapshots import MAIN, Ref, RefKind, Snapshot
from firnline.policy.holds import parse_holds, unreadable
from firnline.policy.native import NativeRetention
from firnline.policy.periods import LONGEST_AGE_MS
from firnline.ports.abilities import Subject
from firnline.ports.formats import Capabilities, FenceKind, State, UndoWindow

_COLLECT = "gc.enabled"
_FIRST = "the first snapshot of its line, which every other one follows"


def state_of(repository: IcechunkRepository, notes: Mapping[str, str], table: str) -> State:
    """Returns the repository's state. Nothing goes by Icechunk's own settings: it has none for the age of snapshots.

    A first snapshot is pinned: all that an expiry leaves comes right after it.
    """
    properties = notes_here(notes, repository.location)
    holds = parse_holds(properties)
    return State(
        table=table,
        format="icechunk",
        location=repository.location,
        uuid=_uuid(repository),
        fence=version_name(repository, notes),
        graph=Graph(map(_snapshot, repository.snapshots.values())),
        current=repository.branches[MAIN],
        refs={ref.name: ref for ref in _refs(repository)},
        native=NativeRetention(LONGEST_AGE_MS, 1, LONGEST_AGE_MS, is_written=False),
        capabilities=Capabilities(FenceKind.NONE, UndoWindow.BEFORE_COMMIT),
        properties=properties,
        document={"repository": repository, "properties": dict(notes)},
        owned=(repository.location,),
        holds=holds,
        pins=tuple(Pin(each.id, _FIRST) for each in repository.snapshots.values() if each.parent is None),
        forbidden=unreadable(holds) or _forbidden(properties) or _not_online(repository),
    )


def repository_in(state: State) -> IcechunkRepository:
    repository: IcechunkRepository = state.document["repository"]
    return repository


def notes_in(state: State) -> dict[str, str]:
    """Returns what firnline noted about the repository, as it was written."""
    return dict(state.document["properties"])


def ref_in(state: State, name: str) -> Ref:
    """Returns the ref that has this name among all of the state's, by the name that Icechunk knows it by."""
    repository, ref = repository_in(state), state.refs[name]
    return Ref(_told(ref.name, ref.kind, repository), ref.kind, ref.snapshot)


def _told(name: str, kind: RefKind, repository: IcechunkRepository) -> str:
    return name if kind is RefKind.BRANCH or name in repository.tags else name.removeprefix(_TAG)


_TAG = "tag:"
"""Before the name of a tag that a branch has too."""


def _refs(repository: IcechunkRepository) -> Iterator[Ref]:
    for ref in repository.refs:
        if ref.kind is RefKind.BRANCH or ref.name not in repository.branches:
            yield ref
            continue
        other = f"{_TAG}{ref.name}"
        if other in repository.branches or other in repository.tags:
            raise UnsupportedFormat(
                f"{repository.location} has a branch and a tag {ref.name}, and another ref called {other}",
                hint="nothing was changed; give one of them another name, with Icechunk itself",
            )
        yield Ref(other, ref.kind, ref.snapshot)


def _snapshot(said: HistorySnapshot) -> Snapshot:
    return Snapshot(said.id, said.parent, said.flushed_us // 1000)


def _uuid(repository: IcechunkRepository) -> str:
    """Returns what tells the repository from one that was made again in its place: when its first snapshot was made.
    Icechunk gives repositories no id, and that snapshot the same one everywhere.
    """
    *_, first = repository.ancestry(repository.branches[MAIN])
    return hashlib.sha256(f"{first.id} {first.flushed_us}".encode()).hexdigest()[:32]


def _forbidden(properties: Mapping[str, str]) -> str | None:
    collects = properties.get(_COLLECT, "true").lower() == "true"
    return None if collects else f"the note {_COLLECT} is not true"


def _not_online(repository: IcechunkRepository) -> str | None:
    """Returns why the repository's own status forbids every removal: the library's collection heeds it, too."""
    repo = repository.repo
    if repo is None or repo.availability is Availability.ONLINE:
        return None
    why = f" ({harmless(repo.limited_because)})" if repo.limited_because else ""
    return f"its status is {repo.availability.name.lower().replace('_', '-')}{why}"


def metadata_of(repository: IcechunkRepository) -> Iterator[str]:
    """Yields the objects that name snapshots: `repo`, or the file of each ref in version 1; beside `repo` those that an
    upgrade left.
    """
    if repository.spec > 1:
        yield join(repository.location, names.REPO)
    for ref in repository.left if repository.spec > 1 else repository.refs:
        yield join(repository.location, names.REFS, f"{ref.kind}.{ref.name}", names.REF)


def subject_of(state: State, key: str) -> Subject | None:
    """Returns the ref that a file of version 1 is about; None for `repo`, which is about all of them."""
    folder = join(state.location, names.REFS)
    known = names.ref_file(identity(key).removeprefix(stem_of(folder)))
    if known is None:
        return None
    kind, name, _ = known
    shown = name if kind is RefKind.BRANCH or name not in repository_in(state).branches else f"{_TAG}{name}"
    return Subject("ref", shown)
