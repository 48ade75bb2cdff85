"""Refs of version 1: a small JSON object for each, which names a snapshot. A tag that was deleted stays, with a second
object beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from firnline.errors import UnsupportedFormat
from firnline.formats.damage import REPAIR, named
from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.damage import CorruptIcechunk
from firnline.formats.links import refuse_links
from firnline.model.locations import identity, join, stem_of
from firnline.model.snapshots import Ref, RefKind
from firnline.ports.stores import Get, List, Read

_THREADS = 16
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RefFiles:
    """What the refs of version 1 name."""

    branches: Mapping[str, str]
    tags: Mapping[str, str]
    deleted_tags: frozenset[str]

    @property
    def all(self) -> Iterator[Ref]:
        return refs_named(self.branches, self.tags)


def refs_named(branches: Mapping[str, str], tags: Mapping[str, str]) -> Iterator[Ref]:
    """Yields refs, of which these are the names and snapshots."""
    yield from (Ref(name, RefKind.BRANCH, snapshot) for name, snapshot in branches.items())
    yield from (Ref(name, RefKind.TAG, snapshot) for name, snapshot in tags.items())


def read_refs(store: Read, location: str) -> RefFiles:
    """Returns all refs. Raises ObjectNotFound where one vanished since they were listed, UnreadableMetadata where one
    makes no sense, and UnsupportedFormat where something else lies among them: it may be a ref that nobody sees.
    """
    refuse_links(store, join(location, names.REFS))
    listed = list(_listed(store, location))
    deleted = frozenset(name for _, name, file in listed if file == names.DELETED)
    due = [(kind, name) for kind, name, file in listed if file == names.REF]
    live = [(kind, name) for kind, name in due if kind == RefKind.BRANCH or name not in deleted]
    found = dict(zip(live, side_by_side(lambda ref: _snapshot(store, location, *ref), live), strict=True))
    branches = {name: snapshot for (kind, name), snapshot in found.items() if kind == RefKind.BRANCH}
    tags = {name: snapshot for (kind, name), snapshot in found.items() if kind == RefKind.TAG}
    return RefFiles(branches, tags, deleted)


def side_by_side(work: Callable[[T], R], each: Iterable[T]) -> list[R]:
    """Returns what some requests answer, made at the same time."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, each))


def _listed(store: List, location: str) -> Iterator[tuple[RefKind, str, str]]:
    folder = join(location, names.REFS)
    for each in store.list(folder):
        path = identity(each.key).removeprefix(stem_of(folder))
        known = names.ref_file(path)
        if known is not None:
            yield known
        elif not names.is_unfinished(path):
            raise UnsupportedFormat(f"{each.key} lies among the refs, and is none that is known", hint=REPAIR)


def _snapshot(store: Get, location: str, kind: RefKind, name: str) -> str:
    key = join(location, names.REFS, f"{kind}.{name}", names.REF)
    text = store.get(key)
    with named("ref", key):
        return snapshot_in(text)


def snapshot_in(text: bytes) -> str:
    """Returns the snapshot that a ref's file names. Raises CorruptIcechunk unless it names one, and nothing else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as damage:
        raise CorruptIcechunk(str(damage)) from damage
    snapshot = found.get("snapshot") if isinstance(found, dict) and len(found) == 1 else None
    if not isinstance(snapshot, str) or not names.is_object_name(snapshot):
        raise CorruptIcechunk("it does not name a snapshot, and nothing else")
    return snapshot
