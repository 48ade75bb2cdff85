"""Pointers are roots: what readers find who go by a file in a table's folder, and not by its catalog.

1. A publisher writes a pointer to the newest metadata, and stops.
2. Commits go on, and an expiry takes out the snapshot that this metadata has as its current one.
3. A reader without a catalog opens the metadata and finds no file of it.

So the pointer is asked wherever a hold would be: in every decision, before every batch of a purge, in every search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from firnline.errors import RefusedForSafety
from firnline.model.files import File, FileKind, Root
from firnline.model.holds import Pin
from firnline.pointers.document import PUBLISH_AGAIN
from firnline.ports.abilities import FolderPointer, PointedVersion, ReadByPointers
from firnline.ports.formats import State, TableFormat


def pointed_versions(table_format: TableFormat, state: State) -> tuple[PointedVersion, ...]:
    """Returns what the table's own pointers lead to, read just now. Raises where one cannot be read."""
    return own_versions(table_format, state, folder_pointers(table_format, state))


def own_versions(
    table_format: TableFormat, state: State, pointers: Iterable[FolderPointer]
) -> tuple[PointedVersion, ...]:
    """Returns what those of the pointers lead to that are the table's own. Raises where one cannot be read."""
    found = versions_behind(table_format, state, (each for each in pointers if each.is_of(state.uuid)))
    refuse_outside(found)
    return found


def refuse_outside(versions: Iterable[PointedVersion]) -> None:
    """Raises RefusedForSafety if metadata was not read because it lies elsewhere: what it names may lie here."""
    for each in versions:
        if each.is_outside:
            raise RefusedForSafety(f"{each.trouble}: nobody can tell what its readers need", hint=PUBLISH_AGAIN)


def folder_pointers(table_format: TableFormat, state: State) -> tuple[FolderPointer, ...]:
    """Returns the pointers in the table's folder; none for a format that nobody reads by pointers."""
    return tuple(table_format.pointers(state)) if isinstance(table_format, ReadByPointers) else ()


def versions_behind(
    table_format: TableFormat, state: State, pointers: Iterable[FolderPointer]
) -> tuple[PointedVersion, ...]:
    """Returns what pointers lead to, in the table's folder, of whichever table they are."""
    if not isinstance(table_format, ReadByPointers):
        return ()
    return tuple(table_format.version_behind(state, each) for each in pointers)


def pins_of(versions: Iterable[PointedVersion]) -> Iterator[Pin]:
    return (Pin(each.snapshot, f"pointer {each.pointer.name}") for each in versions if each.snapshot is not None)


def needed_files(versions: Iterable[PointedVersion]) -> Iterator[File]:
    """Yields the metadata that pointers name, and what the snapshots in it name."""
    for each in versions:
        yield File(FileKind.METADATA, each.pointer.metadata)
        yield from each.files


def roots_beyond(versions: Iterable[PointedVersion], present: Set[File]) -> Iterator[Root]:
    """Yields what pointers need beyond what is present: of snapshots that the table does not have any more."""
    for each in versions:
        owner = f"{each.snapshot} by {each.pointer.name}"
        yield from (Root(file, True, owner) for file in each.files if file not in present)


def troubles_of(versions: Iterable[PointedVersion]) -> tuple[str, ...]:
    """Returns what is wrong with pointers, in words: of what is gone, nothing can be kept for their readers."""
    return tuple(each.trouble for each in versions if each.trouble)


def refuse_pointed(table_format: TableFormat, departed: State) -> None:
    """Raises RefusedForSafety if a pointer still leads readers to a table that no catalog has any more."""
    for each in folder_pointers(table_format, departed):
        if each.is_of(departed.uuid):
            raise RefusedForSafety(
                f"the pointer {each.key} still leads readers to the dropped table {departed.uuid}",
                hint="remove that file, if no reader goes by it any more",
            )
