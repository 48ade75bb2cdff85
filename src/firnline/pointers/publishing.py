"""Moving a pointer on to what the catalog says now, so that no reader ever sees an older state after a newer one.

Every publisher does the same three things in this order: it reads the file, asks the catalog, and replaces the file
only as it was read. What stands in the file was said by the catalog before, so what the catalog says afterwards is as
new or newer; and where another publisher came between, nothing is written and all begins anew. No clock is asked.
Ordinals count up at each write, so that no two versions of a file are the same bytes.

A log has the file named after its table beside it, and that one goes first: an entry that is written late has the
smaller ordinal, and no reader takes it for the newest. Where that file is gone, the newest entry stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from firnline.errors import AlreadyExists, ObjectChanged, OutcomeUnknown, RefusedForSafety, StoreError
from firnline.model.locations import identity, join
from firnline.model.names import written
from firnline.model.snapshots import MAIN
from firnline.pointers.document import Pointer
from firnline.pointers.names import (
    FOLDER,
    Naming,
    PointedBranch,
    branch_end,
    by_identifier,
    by_ordinal,
    by_uuid,
    read_name,
)
from firnline.pointers.ordinals import later
from firnline.pointers.reading import FoundPointer, newest_names, pointer_names, read_to_replace
from firnline.ports.stores import ReadWrite

_TRIES = 50
_Last = tuple[FoundPointer | None, Pointer | None]
"""The file as it was read, and what was published last."""
Seen = TypeVar("Seen")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class CatalogTruth:
    """What a catalog says of a table now. `address` tells the catalog from others; `committed_ms` is when the metadata
    was written, by its writer's clock.
    """

    namespace: tuple[str, ...]
    table: str
    guid: str
    location: str
    metadata: str
    committed_ms: int
    address: str

    @property
    def identifier(self) -> str:
        return written((*self.namespace, self.table))


Ask = Callable[[], CatalogTruth]
"""Asks the catalog. Raises NoSuchTable where the table is gone."""


def in_order(
    ask: Ask,
    home: Callable[[CatalogTruth], object],
    key_of: Callable[[CatalogTruth], str],
    read: Callable[[str], Seen],
    write: Callable[[str, Seen, CatalogTruth], Done],
) -> Done:
    """Returns what `write` does with a file as it was read and what the catalog said after that, again where another
    publisher came first. `home` is what of the catalog's word tells where the file is. Raises StoreError where others
    always come first.
    """
    first = ask()  # tells no more than where the file is: what is published is asked for after that was read
    for _ in range(_TRIES):
        key = key_of(first)
        seen = read(key)
        truth = ask()
        if home(truth) != home(first):
            first = truth
            continue
        try:
            return write(key, seen, truth)
        except (ObjectChanged, AlreadyExists, OutcomeUnknown):
            continue  # another publisher came first, or an answer got lost: what stands there now is read again
    raise StoreError(f"{key} was written by others in each of {_TRIES} tries", hint="try again")


class Published(StrEnum):
    """What became of a pointer."""

    NEW = "new"
    MOVED_ON = "moved on"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Publication:
    """A pointer that says what the catalog said. `before` is what was published until now, if anything was."""

    key: str
    outcome: Published
    pointer: Pointer
    before: Pointer | None = None


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one branch of one table. `take_over` lets it replace a pointer that was taken from another catalog;
    `is_registered` tells whether the catalog has a pointer's table under the pointer's name.
    """

    store: ReadWrite
    naming: Naming
    is_registered: Callable[[Pointer], bool]
    branch: str = MAIN
    take_over: bool = False

    def publish(self, ask: Ask) -> Publication:
        """Returns the pointer as it is now. Raises RefusedForSafety where another catalog's table has the same name."""
        return in_order(ask, _home, self._key, self._read, self._settled)

    def _read(self, key: str) -> _Last:
        """Returns the file, and what was published last: what it says, or the newest entry of its log. Without that a
        log whose file is gone would begin anew by a commit's time, and its readers would stay at a later entry, from a
        clock that was ahead.
        """
        seen = read_to_replace(self.store, key)
        return seen, self._last_entry(key) if seen is None else seen.pointer

    def _last_entry(self, key: str) -> Pointer | None:
        folder, _, name = key.rpartition("/")
        told = read_name(name)
        if self.naming is not Naming.ORDINAL or told is None:
            return None
        for each in newest_names(pointer_names(self.store, folder)):
            entry = read_name(each)
            if entry is not None and entry.ordinal is not None and entry.subject == told.subject:
                found = read_to_replace(self.store, join(folder, each))
                return None if found is None else found.pointer
        return None

    def _settled(self, key: str, last: _Last, truth: CatalogTruth) -> Publication:
        seen, before = last
        if before is not None and not self.take_over:
            refuse_strange(key, before, truth)
        if before is not None:
            self._refuse_another_name(key, before, truth)
        if seen is not None and says(seen.pointer, truth):
            self._enter(key, seen.pointer)
            return Publication(key, Published.UNCHANGED, seen.pointer, before)
        told = pointer_to(truth, self.branch, before)
        if seen is None:
            self.store.put_if_absent(key, told.to_bytes())
        else:
            self.store.put_if_match(key, told.to_bytes(), seen.seen)
        self._enter(key, told)
        return Publication(key, Published.NEW if seen is None else Published.MOVED_ON, told, before)

    def _refuse_another_name(self, key: str, before: Pointer, truth: CatalogTruth) -> None:
        """Raises RefusedForSafety if the file speaks of another name that the table still has: it is registered twice,
        each registration goes its own way, and readers would be led from one to the other and back.
        """
        is_other = before.guid == truth.guid and before.table_identifier != truth.identifier
        if is_other and not before.is_over and self.is_registered(before):
            raise RefusedForSafety(
                f"{key} speaks of {before.table_identifier}; {truth.identifier} is the same table, registered twice",
                hint="drop one of the registrations, or have pointers named by `identifier`: each name has its own",
            )

    def _enter(self, key: str, pointer: Pointer) -> None:
        """Writes the log's entry of what the file says, where there is a log and not this entry."""
        told = read_name(key.rpartition("/")[2])
        if self.naming is not Naming.ORDINAL or told is None:
            return
        entry = join(key.rpartition("/")[0], by_ordinal(told.subject, pointer.ordinal))
        try:
            self.store.put_if_absent(entry, pointer.to_bytes())
        except AlreadyExists:
            return

    def _key(self, truth: CatalogTruth) -> str:
        subject = PointedBranch(truth.namespace, truth.table, self.branch)
        folder = folder_of(truth.location, self.naming)
        if self.naming is not Naming.UUID:
            return join(folder, by_identifier(subject))
        return join(folder, self._of_uuid(folder, truth.guid) or by_uuid(subject, truth.guid))

    def _of_uuid(self, folder: str, guid: str) -> str | None:
        """Returns the file that this table has already, under whatever name it was first published."""
        end = f"_{guid}{branch_end(self.branch)}.ver"
        found = [name for name in pointer_names(self.store, folder) if name.endswith(end)]
        return min(found, default=None)


def folder_of(location: str, naming: Naming) -> str:
    """Returns the folder of a table's pointers: the table's own if readers know the files' names, else one in it."""
    return location if naming is Naming.IDENTIFIER else join(location, FOLDER)


def _home(truth: CatalogTruth) -> tuple[str, ...]:
    return (*truth.namespace, truth.table, truth.guid, truth.location)


def says(pointer: Pointer, truth: CatalogTruth) -> bool:
    """Tells whether a pointer says what the catalog says, and nothing of an end: a name that is in use again has none
    any more, or the file would be taken away at once when the table is renamed later.
    """
    same = pointer.guid == truth.guid and identity(pointer.metadata_file_path) == identity(truth.metadata)
    named = pointer.table_identifier == truth.identifier and pointer.published_by == truth.address
    return same and named and not pointer.is_over and pointer.expires_at is None


def pointer_to(truth: CatalogTruth, branch: str, before: Pointer | None) -> Pointer:
    """Returns what to write: unknown keys of the file stay, if it speaks of the same table."""
    others = before.others if before is not None and before.guid == truth.guid else {}
    ordinal = later(truth.committed_ms, None if before is None else before.ordinal)
    return Pointer(truth.identifier, truth.guid, truth.metadata, ordinal, branch, truth.address, others=others)


def refuse_strange(key: str, before: Pointer, truth: CatalogTruth) -> None:
    """Raises RefusedForSafety unless the file was written for this very catalog: another environment may have a table
    of the same name over the same folder, and each would take the other's readers along.

    A table that was dropped and made again in one catalog is that catalog's own matter: the uuid tells readers.
    """
    if before.published_by == truth.address or (not before.published_by and before.guid == truth.guid):
        return
    whose = "another catalog" if before.published_by else "another program"
    raise RefusedForSafety(
        f"{key} was published from {whose}, for {before.table_identifier} with the uuid {before.guid}; "
        f"this one is {truth.identifier} with {truth.guid}",
        hint="give each environment its own folder, or `pointers: uuid`; if this catalog took over, add --take-over",
    )
