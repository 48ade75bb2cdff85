"""Which files of a table's history lie in which bundle of a tier."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, Protocol

from firnline.errors import AlreadyExists
from firnline.model.locations import identity, join
from firnline.ports.copying import Stored
from firnline.ports.packing import BundleOutcome, PackedFile
from firnline.ports.stores import Get, Names, PutIfAbsent, shared
from firnline.tiers.bundles.segments import SEGMENT, IndexEntry, entries_in, entries_of, segment_name, segment_of

_BUNDLES = "_bundles"
_SEGMENTS = "index"
BUNDLE = ".tar"
_AT_ONCE = 16
_TABLES = """
CREATE TABLE bundle (number INTEGER PRIMARY KEY, key TEXT UNIQUE, size INTEGER, checksum TEXT);
CREATE TABLE file (
  place TEXT, size INTEGER, checksum TEXT, source_checksum TEXT, bundle INTEGER, offset INTEGER,
  PRIMARY KEY (place, bundle)
) WITHOUT ROWID;
"""
_FIND = (
    "SELECT file.place, file.size, file.checksum, bundle.key, file.offset, file.source_checksum, bundle.size,"
    " bundle.checksum FROM file JOIN bundle ON bundle.number = file.bundle WHERE file.place = ?"
    " LIMIT 1"
)
_HOLDING = (
    "SELECT bundle.key, bundle.size, bundle.checksum FROM file JOIN bundle ON bundle.number = file.bundle"
    " WHERE file.place = ?"
)
_MEMBERS = (
    "SELECT file.place, file.size, file.checksum, bundle.key, file.offset, file.source_checksum"
    " FROM bundle CROSS JOIN file ON bundle.number = file.bundle WHERE bundle.key = ? ORDER BY file.offset"
)
_PLACES = "SELECT DISTINCT place FROM file"
_FORGET = "DELETE FROM file WHERE bundle = (SELECT number FROM bundle WHERE key = ?)"


class SegmentStore(Get, Names, PutIfAbsent, Protocol):
    """What an index is read from and written to."""


def bundles_folder(root: str, uuid: str) -> str:
    """Returns the folder in which a tier has the bundles of one table's history. It goes by the uuid, whatever the
    table is called and wherever it lies.
    """
    return join(root, _BUNDLES, uuid)


def has_bundles(store: Names, root: str, uuid: str) -> bool:
    """Tells whether files of a table's history lie in bundles of a tier."""
    return any(name.endswith(SEGMENT) for name in store.names(join(bundles_folder(root, uuid), _SEGMENTS)))


class PackedIndex:
    """All that is packed of one table's history. It is read when it is first asked, into a database of this process's
    own that lies on disk, so memory does not grow with the files. Picklable: elsewhere it is read again.
    `forgotten` are bundles that were seen to be damaged: what they hold is packed again, or lies in another one.
    """

    def __init__(self, store: SegmentStore, folder: str, forgotten: Iterable[str] = ()) -> None:
        self._store = store
        self.folder = folder
        self._forgotten = set(forgotten)
        self._lock = Lock()
        self._opened: sqlite3.Connection | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedIndex, (self._store, self.folder, frozenset(self._forgotten))

    def share(self, parts: int) -> PackedIndex:
        return PackedIndex(shared(self._store, parts), self.folder, self._forgotten)

    def find(self, place: str) -> PackedFile | None:
        found = self.entry(place)
        return None if found is None else found.file

    def entry(self, place: str) -> IndexEntry | None:
        """Returns a file with its bundle; None where it is no member of any. Raises UnreadableMetadata."""
        with self._lock:
            row = self._database().execute(_FIND, (place,)).fetchone()
        if row is None:
            return None
        place, size, checksum, key, offset, source, bundle_size, bundle_checksum = row
        file = PackedFile(place, size, checksum, key, offset, source)
        return IndexEntry(file, Stored(key, bundle_size, bundle_checksum))

    def add(self, outcomes: Sequence[BundleOutcome]) -> None:
        """Notes bundles that were written: in the tier first."""
        data = segment_of([each for outcome in outcomes for each in entries_in(outcome)])
        key = join(self.segments, segment_name(data))
        with suppress(AlreadyExists):  # the answer to this very write got lost: the name tells what it holds
            self._store.put_if_absent(key, data)
        with self._lock:
            _insert(self._database(), entries_of(key, data))

    def spelled(self, identities: Set[str]) -> set[str]:
        """Returns the places of these identities, as they were spelled when they were packed. Goes through all places
        once.
        """
        names = {each.rpartition("/")[2] for each in identities}
        with self._lock:
            every = self._database().execute(_PLACES)
            alike = [place for (place,) in every if place.rpartition("/")[2] in names]
        return {place for place in alike if identity(place) in identities}

    def holding(self, places: Iterable[str]) -> dict[str, Stored]:
        """Returns the bundles in which any of these files lies, by their names: all of them, where one lies in two."""
        with self._lock:
            database = self._database()
            rows = [row for place in places for row in database.execute(_HOLDING, (place,))]
        return {key: Stored(key, size, checksum) for key, size, checksum in rows}

    def members(self, bundle: str) -> list[PackedFile]:
        """Returns all that a bundle holds, in the order in which it lies there."""
        with self._lock:
            return [PackedFile(*row) for row in self._database().execute(_MEMBERS, (bundle,))]

    def unnamed(self) -> list[str]:
        """Returns the bundles that no segment names: a hand-over is about to say what they hold, or died before."""
        every = (join(self.folder, name) for name in sorted(self._store.names(self.folder)) if name.endswith(BUNDLE))
        return [bundle for bundle in every if not self.members(bundle)]

    def without(self, bundle: str) -> Iterator[str]:
        """Writes every segment anew that names a bundle, without it, and yields the name of each that is of no use any
        more: it is to be removed before the bundle is, or what lies in two bundles would be looked for in that one.
        """
        names = sorted(name for name in self._store.names(self.segments) if name.endswith(SEGMENT))
        for key, data in self._read([join(self.segments, name) for name in names]):
            entries = list(entries_of(key, data))
            stays = [each for each in entries if each.file.bundle != bundle]
            if len(stays) < len(entries):
                self._put(stays)
                yield key.rpartition("/")[2]

    def _put(self, entries: Sequence[IndexEntry]) -> None:
        if entries:
            data = segment_of(entries)
            with suppress(AlreadyExists):
                self._store.put_if_absent(join(self.segments, segment_name(data)), data)

    def forget(self, bundles: Iterable[str]) -> None:
        """Leaves damaged bundles out, in this process alone: a segment is never changed."""
        with self._lock:
            self._forgotten.update(bundles)
            _drop(self._database(), self._forgotten)

    def recall(self) -> None:
        """Takes all bundles for whole again."""
        with self._lock:
            self._forgotten, self._opened = set(), None

    @property
    def segments(self) -> str:
        """The folder of the segments."""
        return join(self.folder, _SEGMENTS)

    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            database = sqlite3.connect("", check_same_thread=False)  # a file of its own that goes when it is closed
            database.executescript(_TABLES)
            names = sorted(name for name in self._store.names(self.segments) if name.endswith(SEGMENT))
            for key, data in self._read([join(self.segments, name) for name in names]):
                _insert(database, entries_of(key, data))
            _drop(database, self._forgotten)
            self._opened = database
        return self._opened

    def _read(self, keys: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yields segments, of which a few are asked for at once and as few are held."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                yield from zip(some, pool.map(self._store.get, some), strict=True)


def _insert(database: sqlite3.Connection, entries: Iterable[IndexEntry]) -> None:
    """Adds entries. A file that two runs packed at once lies in two bundles: either will do, unless one is damaged."""
    with database:
        for file, bundle in entries:
            database.execute("INSERT OR IGNORE INTO bundle (key, size, checksum) VALUES (?, ?, ?)", bundle)
            database.execute(
                "INSERT OR IGNORE INTO file SELECT ?, ?, ?, ?, number, ? FROM bundle WHERE key = ?",
                (file.place, file.size, file.checksum, file.source_checksum, file.offset, file.bundle),
            )


def _drop(database: sqlite3.Connection, bundles: Iterable[str]) -> None:
    with database:
        database.executemany(_FORGET, [(each,) for each in bundles])
