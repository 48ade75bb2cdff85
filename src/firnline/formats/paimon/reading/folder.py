"""A table's metadata as one mapping from path to text: as it is now, as it was when a run read it first, and when the
files were written whose age counts.

Nobody reads a folder in one instant. What vanished between the listing and the read (a writer's own expiry, a
rollback) is looked at again, and so is what looks damaged: a writer may be in the middle of it. Hints are read but
never believed.

Nothing in a Paimon folder is a version that could be read again: its files come and go. A query that looks at a table
more than once names the digest of its first look. Snapshots and schemas that were added since are put aside one after
the other, the newest first, until the digest is the same.

Text first, then time: who moves a consumer, or writes a tag again, between the two makes it younger, and it stays.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from firnline.errors import NoSuchTable, ObjectNotFound, TableMoved, UnreadableMetadata
from firnline.formats.links import refuse_links
from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.snapshot import TAG_RETAINED
from firnline.journal.layout import PROPERTIES
from firnline.model.locations import identity, join, stem_of
from firnline.ports.stores import Get, ObjectMeta, Read

Files = Mapping[str, str]
Made = TypeVar("Made")

_THREADS = 16
_LOOKS = 5
_SETTLING_LOOKS, _SETTLING_S = 10, 0.3


def read_settled(store: Read, location: str, make: Callable[[Files], Made]) -> Made:
    """Returns what `make` makes of the folder's files. Raises UnreadableMetadata where that finds the same files
    damaged twice, with a moment between; else as `read_folder` does.

    Paimon's writers write consumers and tags over where they are, and make a branch file by file, its schemas last: in
    the middle of it a text is empty, or a branch without a schema. Their own readers look again, too.
    """
    before: Files | None = None
    for _ in range(_SETTLING_LOOKS):
        files = read_folder(store, location)
        try:
            return make(files)
        except UnreadableMetadata:
            if files == before:
                raise
        before = files
        time.sleep(_SETTLING_S)
    return make(read_folder(store, location))


def read_whole(store: Read, location: str) -> Files:
    """Returns the folder's files, none of them half written: for who compares texts and does not read them."""

    def whole(files: Files) -> Files:
        for path in files:
            if not names.is_hint(path):
                fields.parse(files[path], join(location, path))
        return files

    return read_settled(store, location, whole)


def read_folder(store: Read, location: str) -> Files:
    """Returns every metadata file of every branch, by its path below the table's folder.

    Raises NoSuchTable where there is no schema, UnreadableMetadata where files keep vanishing or are not text.
    """
    look: dict[str, ObjectMeta] = {}
    found: dict[str, str] = {}
    for _ in range(_LOOKS):
        before, look = look, dict(_wanted(store, location))
        known = {path: text for path, text in found.items() if _is_as_it_was(path, before[path], look.get(path))}
        found = {**known, **_read_all(store, location, [path for path in look if path not in known])}
        if len(found) == len(look):
            if not any(_is_schema(path) for path in found):
                raise NoSuchTable(f"no Paimon table at {location}", "a table's folder has a folder `schema` in it")
            return {**found, **_read_all(store, location, [PROPERTIES])}
    raise UnreadableMetadata(
        f"the metadata of {location} changes faster than it can be read", hint="nothing was changed; try again"
    )


def _is_schema(path: str) -> bool:
    known = names.numbered(path)
    return known is not None and known[0] == "schema"


def _is_as_it_was(path: str, before: ObjectMeta, now: ObjectMeta | None) -> bool:
    """Tells whether what was read between two listings is what the second one names, by all that the store says of it.

    Where a writer expires while thousands of files are read, some always vanish: were all read again at every look,
    such a table could never be read. What is written over where it is, a tag or a consumer, is read anew.
    """
    is_numbered = names.numbered(names.split_branch(path)[1]) is not None
    return is_numbered and before.etag is not None and before == now


def _wanted(store: Read, location: str) -> Iterator[tuple[str, ObjectMeta]]:
    """Yields the metadata files. Other names, such as those of a write that is under way, are nobody's yet."""
    for folder in (*names.FOLDERS, names.BRANCHES):
        stem = identity(location).rstrip("/") + "/"
        refuse_links(store, join(location, folder))
        for found in store.list(join(location, folder)):
            path = identity(found.key).removeprefix(stem)
            below = names.split_branch(path)[1]
            if names.numbered(below):
                _refuse_strange_number(below, found.key)
                yield path, found
            elif names.named(below) or below in names.HINTS:
                yield path, found


def _refuse_strange_number(below: str, key: str) -> None:
    """Raises UnreadableMetadata for a number with zeros before it, or beyond all that Paimon counts to: readers would
    look elsewhere.
    """
    _, number = names.known(below) or ("", "")
    if number != str(int(number)) or int(number) > names.LARGEST:
        raise UnreadableMetadata(
            f"metadata is damaged: {key}: its number is none that Paimon writes", hint="nothing was changed"
        )


def _read_all(store: Get, location: str, paths: list[str]) -> dict[str, str]:
    """Returns the texts of those that are still there."""
    with ThreadPoolExecutor(_THREADS) as pool:
        texts = pool.map(lambda path: _text(store, join(location, path), names.is_hint(path)), paths)
        return {path: text for path, text in zip(paths, texts, strict=True) if text is not None}


def _text(store: Get, key: str, is_hint: bool) -> str | None:
    """Returns what the file says; None where it is gone. Nobody believes a hint, so it need not even be text."""
    try:
        return store.get(key).decode(errors="replace" if is_hint else "strict")
    except ObjectNotFound:
        return None
    except UnicodeDecodeError as damage:
        raise UnreadableMetadata(f"metadata is damaged: {key}: {damage}", hint="nothing was changed") from damage


_VERSION = re.compile(r"(.+)#([0-9a-f]{32})", re.DOTALL)
_MOST_ASIDE = 1_000


def version_name(files: Files, location: str) -> str:
    """Returns the name of a version: the table's place, and a digest of every file that is more than a hint."""
    return f"{location}#{_digest(_digests(files).values())}"


def place_of(version: str) -> tuple[str, str | None]:
    """Returns the table's place and the digest of one of its versions; None where only a place was named."""
    match = _VERSION.fullmatch(version)
    return (match[1], match[2]) if match else (version, None)


def as_it_was(files: Files, location: str, digest: str) -> Files:
    """Returns the files of the version with this digest. Raises TableMoved where they are not all there any more."""
    left, digests = dict(files), _digests(files)
    oldest_first = sorted((when, path) for path, text in files.items() if (when := _committed_ms(path, text, location)))
    for _ in range(_MOST_ASIDE):
        if _digest(digests.values()) == digest:
            return left
        if not oldest_first:
            break
        _, path = oldest_first.pop()
        del left[path], digests[path]
    raise TableMoved(f"{location} changed while it was being read", hint="ask again")


def _committed_ms(path: str, text: str, location: str) -> int:
    """Returns when a snapshot or schema was written; 0 for what cannot simply be put aside."""
    known = names.numbered(names.split_branch(path)[1])
    if known is None:
        return 0
    return fields.whole_or_none(fields.parse(text, join(location, path)), "timeMillis", path) or 0


def _digests(files: Files) -> dict[str, bytes]:
    told = {path: text for path, text in files.items() if not names.is_hint(path)}
    return {path: hashlib.sha256(f"{path}\0{text}".encode()).digest() for path, text in told.items()}


def _digest(each: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(each))).hexdigest()[:32]


def written_times(store: Read, location: str, files: Files) -> dict[str, int]:
    """Returns when each was last written, by path; none for one whose time the store does not tell."""
    due: dict[str, set[str]] = {}
    for path, text in files.items():
        if (folder := _folder(path, text)) is not None:
            due.setdefault(folder, set()).add(path)
    found: dict[str, int] = {}
    for folder, paths in due.items():
        for each in _told(store, join(location, folder), [join(location, path) for path in paths]):
            path = identity(each.key).removeprefix(stem_of(location))
            if path in paths and each.modified_ms is not None:
                found[path] = each.modified_ms
    return found


def _told(store: Read, folder: str, keys: list[str]) -> Iterator[ObjectMeta]:
    """Yields what the store says of files in one folder: one is asked about by itself, a listing tells of many."""
    if len(keys) > 1:
        yield from store.list(folder)
        return
    for key in keys:
        try:
            yield store.head(key)
        except ObjectNotFound:
            continue


def _folder(path: str, text: str) -> str | None:
    """Returns the folder of all files of this one's kind, where its age counts."""
    branch, below = names.split_branch(path)
    known = names.named(below)
    counts = known is not None and (known[0] == "consumer" or TAG_RETAINED in text)
    return f"{names.branch_folder(branch)}{known[0]}" if known is not None and counts else None
