"""From the places that an operator names to the readers that left their checkpoints there.

A place that is mistyped would keep nothing, and nobody would notice before a stream fails: so what is not there, and
what is no checkpoint, stops whatever was about to decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from firnline.errors import RefusedForSafety, StoreError, UnreadableMetadata
from firnline.model.locations import join
from firnline.model.readers import StreamReader
from firnline.ops.readers.checkpoints import COMMITS, OFFSETS, SOURCES, WAY_OUT, Checkpoint
from firnline.policy.values import is_pattern
from firnline.ports.abilities import ReadByStreams
from firnline.ports.stores import Checkpoints

_PARTS = {OFFSETS, COMMITS, SOURCES}


@dataclass(frozen=True, slots=True)
class FoundReaders:
    """The readers of some places, and what was found there that keeps nothing."""

    readers: tuple[StreamReader, ...] = ()
    notes: tuple[str, ...] = ()


def find_readers(store: Checkpoints, table_format: ReadByStreams, places: Sequence[str]) -> FoundReaders:
    """Returns the readers of every place. Raises RefusedForSafety where one is not there, and UnreadableMetadata where
    one cannot be read.
    """
    readers: list[StreamReader] = []
    notes: list[str] = []
    for location in dict.fromkeys(each for place in places for each in _checkpoints(store, place)):
        found = Checkpoint(store, location, table_format).readers()
        readers += found
        if not found:
            notes.append(f"no source of the checkpoint {location} has an offset of such a table yet: it keeps nothing")
    return FoundReaders(tuple(readers), tuple(notes))


def _checkpoints(store: Checkpoints, place: str) -> Iterator[str]:
    try:
        if is_pattern(place):
            yield from _matching(store, place)
        else:
            _refuse_missing(store, place)
            yield place
    except StoreError as problem:
        raise UnreadableMetadata(
            f"the readers in {place} cannot be seen: {problem.message}", hint=problem.flags or WAY_OUT
        ) from None


def _matching(store: Checkpoints, place: str) -> list[str]:
    """Returns the checkpoints that a pattern names. Other folders beside them are none of ours."""
    parent, _, pattern = place.rstrip("/").rpartition("/")
    named = [name for name in store.folders(parent) if fnmatchcase(name, pattern)]
    if not named:
        raise RefusedForSafety(f"no folder is called {place}: a reader may be missed", hint=WAY_OUT)
    return [join(parent, name) for name in sorted(named) if _PARTS & set(store.folders(join(parent, name)))]


def _refuse_missing(store: Checkpoints, place: str) -> None:
    """Raises RefusedForSafety unless a checkpoint is there, or a folder that has nothing in it yet."""
    inside = set(store.folders(place))
    if inside & _PARTS:
        return
    if inside:
        raise RefusedForSafety(
            f"{place} is no checkpoint: it holds {', '.join(sorted(inside)[:3])}",
            hint=f"write {join(place, '*')} for all checkpoints in it; or: {WAY_OUT}",
        )
    parent, _, name = place.rstrip("/").rpartition("/")
    if not store.names(place) and name not in store.folders(parent):
        raise RefusedForSafety(f"the checkpoint {place} is not there: its reader may be missed", hint=WAY_OUT)
