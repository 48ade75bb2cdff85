"""From a folder to a table's current metadata, without a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firnline.errors import NoSuchTable, ObjectNotFound, RefusedForSafety, UnreadableMetadata, UsageError
from firnline.model.locations import identity, join, within
from firnline.model.names import parts_of
from firnline.model.snapshots import MAIN
from firnline.pointers.document import Pointer
from firnline.pointers.names import FOLDER, SUFFIX, PointedBranch, by_identifier, read_name
from firnline.pointers.ordinals import ordinal_ms
from firnline.pointers.reading import FoundPointer, newest_names, pointer_names, pointers_of, read_pointer
from firnline.ports.stores import Read

_MOST_LINKS = 8
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which table of a folder is meant: by its name, by its uuid, or the only one; and which branch of it."""

    table: str | None = None
    guid: str | None = None
    branch: str = MAIN

    @property
    def subject(self) -> PointedBranch | None:
        if self.table is None:
            return None
        *levels, name = parts_of(self.table)
        return PointedBranch(tuple(levels), name, self.branch)

    def fits(self, found: FoundPointer) -> bool:
        pointer = found.pointer
        return pointer.branch == self.branch and self.guid in (None, pointer.guid)


@dataclass(frozen=True, slots=True)
class ResolvedPointer:
    """Where the metadata is, by which file; `followed` are the files of earlier names that led there."""

    key: str
    pointer: Pointer
    followed: tuple[str, ...] = ()

    def age_ms(self, now_ms: int) -> int:
        """Returns how long ago the state was committed that the pointer names."""
        return max(0, now_ms - ordinal_ms(self.pointer.ordinal))


def resolve(store: Read, path: str, wanted: Wanted, *, outside: bool = False) -> ResolvedPointer:
    """Returns the pointer of the table that is meant, by way of the names it had before.

    Raises NoSuchTable where there is none or the table was dropped, UsageError where several may be meant, and
    RefusedForSafety where the metadata lies outside of the table's folder, unless `outside` allows that.
    """
    folder = table_folder(path)
    start = read_pointer(store, path) if path.endswith(SUFFIX) else _start(store, folder, wanted)
    found = _followed(store, start)
    pointer = found.pointer
    if wanted.guid not in (None, pointer.guid):
        raise NoSuchTable(f"{found.key} speaks of the table {pointer.guid}, not of {wanted.guid}", hint=_RECREATED)
    if pointer.dropped_at is not None:
        raise NoSuchTable(f"{pointer.table_identifier} was dropped at {pointer.dropped_at}", hint=_RECREATED)
    if not outside and not within(folder, pointer.metadata_file_path):
        raise RefusedForSafety(
            f"{found.key} names {pointer.metadata_file_path}, which is not in {folder}",
            hint="if its metadata is meant to lie there, add --allow-outside",
        )
    return found


_RECREATED = "the table may have been made again: without --uuid you get what is there now"


def table_folder(path: str) -> str:
    """Returns the folder of the table in which a path lies: of one of its pointers, or the folder itself."""
    folder = path.rpartition("/")[0] if path.endswith(SUFFIX) else path.rstrip("/")
    return folder.removesuffix(f"/{FOLDER}")


def _start(store: Read, folder: str, wanted: Wanted) -> FoundPointer:
    subject = wanted.subject
    if subject is not None:
        named = _of_subject(store, folder, subject)
        if named is not None and named.pointer.expires_at is None:
            return named
    candidates = [each for each in pointers_of(store, folder) if wanted.fits(each) and _is_named(each, wanted.table)]
    return _only(folder, candidates, wanted)


def _is_named(found: FoundPointer, table: str | None) -> bool:
    return table is None or found.pointer.parts == parts_of(table)


def _of_subject(store: Read, folder: str, subject: PointedBranch) -> FoundPointer | None:
    """Returns the pointer that has its table's name: one request, no listing; else the newest of its log."""
    try:
        return read_pointer(store, join(folder, by_identifier(subject)))
    except ObjectNotFound:
        inner = join(folder, FOLDER)
    names = [name for name in newest_names(pointer_names(store, inner)) if _is_of(name, subject)]
    found = [read_pointer(store, join(inner, name)) for name in names]
    return max(found, key=lambda each: ordinal_ms(each.pointer.ordinal), default=None)


def _is_of(name: str, subject: PointedBranch) -> bool:
    told = read_name(name)
    return told is not None and told.guid is None and told.subject == subject


def _standing(found: list[FoundPointer]) -> list[FoundPointer]:
    """Returns the pointers without an end, else those that still speak of a table, else all: one that ends is brought
    on at each `sync` only, and may have the later ordinal all the same.
    """
    speaking = [each for each in found if not each.pointer.is_over]
    return [each for each in speaking if each.pointer.expires_at is None] or speaking or found


def _only(folder: str, candidates: Iterable[FoundPointer], wanted: Wanted) -> FoundPointer:
    """Returns the one that is meant. Of one table's names, each goes its own way where it is registered twice: readers
    who are not told which would be led from one to the other and back.
    """
    found = sorted(candidates, key=lambda each: ordinal_ms(each.pointer.ordinal))
    by_name = {(each.pointer.guid, each.pointer.parts): each for each in _standing(found)}
    tables = {(guid, identity(each.pointer.metadata_file_path)): each for (guid, _), each in by_name.items()}
    if not tables:
        what = "" if wanted == Wanted() else f" of {wanted.table or wanted.guid or f'branch {wanted.branch}'}"
        raise NoSuchTable(f"no pointer{what} in {folder}", hint="a policy has to ask for them: `pointers: identifier`")
    if len(tables) > 1:
        shown = [f"{told.table_identifier} ({told.guid})" for told in (each.pointer for each in tables.values())]
        raise UsageError(
            f"{folder} has pointers of {len(tables)} tables: {', '.join(shown[:_SHOWN])}", hint="add --table or --uuid"
        )
    return next(iter(tables.values()))


def _followed(store: Read, start: FoundPointer) -> ResolvedPointer:
    passed = [*_links(store, start)]
    last = passed[-1]
    return ResolvedPointer(last.key, last.pointer, tuple(each.key for each in passed[:-1]))


def _links(store: Read, start: FoundPointer) -> Iterator[FoundPointer]:
    """Yields the pointer and those that it leads to. Raises UnreadableMetadata for a circle, a long way and another
    table at its end.
    """
    here, seen = start, {start.key}
    yield here
    while here.pointer.renamed_to is not None:
        there = join(here.key.rpartition("/")[0], here.pointer.renamed_to)
        if there in seen or len(seen) > _MOST_LINKS:
            raise UnreadableMetadata(f"{start.key} leads in a circle, or over more than {_MOST_LINKS} names", _AGAIN)
        seen.add(there)
        try:
            found = read_pointer(store, there)
        except ObjectNotFound as gone:
            raise UnreadableMetadata(f"{here.key} leads to {there}, which is gone", _AGAIN) from gone
        if found.pointer.guid != start.pointer.guid:
            raise UnreadableMetadata(f"{here.key} leads to {there}, which speaks of another table", _AGAIN)
        yield found
        here = found


_AGAIN = "`firnline pointers sync` writes what the catalog says"
