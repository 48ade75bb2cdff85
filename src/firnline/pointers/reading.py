"""Reading pointers: one file, or all that lie in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound
from firnline.model.locations import join
from firnline.model.names import written
from firnline.pointers.ordinals import ordinal_ms
from firnline.ports.stores import Read, ReadWrite, TaggedObject

if TYPE_CHECKING:
    from firnline.pointers.document import Pointer
    from firnline.pointers.names import PointerName


@dataclass(frozen=True, slots=True)
class FoundPointer:
    """A pointer, the file that it was read from and how that was; `named` is what the file's name says, if anything."""

    key: str
    pointer: Pointer
    seen: TaggedObject = field(repr=False)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def named(self) -> PointerName | None:
        from firnline.pointers.names import read_name

        return read_name(self.name)

    @property
    def is_named_well(self) -> bool:
        """Whether the file has the name that firnline would give it, or one that says nothing."""
        told, pointer = self.named, self.pointer
        if told is None or told.ordinal is None:
            return True
        subject = (written((*told.subject.namespace, told.subject.table)), told.subject.branch)
        return subject == (pointer.table_identifier, pointer.branch)


def read_pointer(store: Read, key: str) -> FoundPointer:
    """Returns the pointer in a file. Raises ObjectNotFound; UnreadableMetadata for what is none, or far too large."""
    from firnline.pointers.document import parse_pointer

    _refuse_large(store, key)
    data = store.get(key)
    return FoundPointer(key, parse_pointer(data, key), TaggedObject(data))


def read_to_replace(store: ReadWrite, key: str) -> FoundPointer | None:
    """Returns the pointer in a file, ready to be replaced; None where there is no file. Raises UnreadableMetadata."""
    from firnline.pointers.document import parse_pointer

    try:
        _refuse_large(store, key)
        seen = store.get_tagged(key)
    except ObjectNotFound:
        return None
    return FoundPointer(key, parse_pointer(seen.data, key), seen)


def _refuse_large(store: Read, key: str) -> None:
    """Raises before anything is read: what lies under the name of a pointer may be anything."""
    from firnline.pointers.document import LARGEST, REMOVE, NoPointer, too_large

    size = store.head(key).size
    if size > LARGEST:
        raise NoPointer(f"{key} is no pointer: {too_large(size).message}", hint=REMOVE)


def pointer_names(store: Read, folder: str) -> list[str]:
    """Returns the names of the files in a folder that are pointers by their names' end."""
    from firnline.pointers.names import SUFFIX

    return sorted(name for name in store.names(folder) if name.endswith(SUFFIX))


def newest_names(names: list[str]) -> list[str]:
    """Returns the names without those of a log that a later one of the same table and branch follows: no reader goes
    by them.
    """
    from firnline.pointers.names import read_name

    newest: dict[object, tuple[int, str]] = {}
    others: list[str] = []
    for name in names:
        told = read_name(name)
        if told is None or told.ordinal is None:
            others.append(name)
        else:
            newest[told.subject] = max(newest.get(told.subject, (0, "")), (ordinal_ms(told.ordinal), name))
    return sorted([*others, *(name for _, name in newest.values())])


def pointers_in(store: Read, folder: str) -> Iterator[FoundPointer]:
    """Yields the pointers in a folder, of each log the newest. Raises UnreadableMetadata where a file that is one by
    its name cannot be read. One that goes meanwhile is left out.
    """
    names = pointer_names(store, folder)
    for name in newest_names(names):
        for found in _read_if_pointer(store, folder, name):
            yield from (found,) if found.is_named_well else _newest_in(store, folder, names, found)


def _read_if_pointer(store: Read, folder: str, name: str) -> Iterator[FoundPointer]:
    """Yields the pointer in a file; nothing where it is gone, or of another program: no name and no content of ours."""
    from firnline.pointers.document import NoPointer
    from firnline.pointers.names import read_name

    try:
        yield read_pointer(store, join(folder, name))
    except ObjectNotFound:
        return
    except NoPointer:
        if read_name(name) is not None:
            raise


def _newest_in(store: Read, folder: str, names: list[str], found: FoundPointer) -> Iterator[FoundPointer]:
    """Yields the newest of each log among files that one name is read from. A program that does not escape gives the
    logs of `a_b` + `c` and `a` + `b_c` the same names: what counts is what the files say.
    """
    newest: dict[object, tuple[int, FoundPointer]] = {}
    log = [name for name in names if _is_in_one_log(name, found)]
    for each in (each for name in log for each in _read_if_pointer(store, folder, name)):
        told = each.pointer
        subject, at = (told.table_identifier, told.guid, told.branch), ordinal_ms(told.ordinal)
        newest[subject] = max(newest.get(subject, (0, each)), (at, each), key=lambda pair: pair[0])
    return (each for _, each in newest.values())


def _is_in_one_log(name: str, found: FoundPointer) -> bool:
    from firnline.pointers.names import read_name

    told, other = read_name(name), found.named
    if told is None or other is None or other.ordinal is None:
        return name == found.name
    return told.ordinal is not None and told.subject == other.subject


def pointers_of(store: Read, location: str) -> Iterator[FoundPointer]:
    """Yields the pointers that readers of a table's folder find: beside its data, and in the folder for pointers."""
    from firnline.pointers.names import FOLDER

    yield from pointers_in(store, location)
    yield from pointers_in(store, join(location, FOLDER))
