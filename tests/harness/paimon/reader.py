"""What every snapshot, tag and changelog of a Paimon table needs, read the plain way: JSON, fastavro and a listing.

A judge of firnline's own reader, so it shares no code with it. Where a data file lies is not derived from its
partition: file names are unique, so a name is looked up in the listing of what is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

from harness.paimon import layout
from harness.paimon.layout import CHANGELOG, SNAPSHOT, TAG, PaimonRoot, plain

ADD = 0
APPENDED = 0
_STANDING = ("schema/", "consumer/", "snapshot/EARLIEST", "snapshot/LATEST", "changelog/EARLIEST", "changelog/LATEST")
_IN_BUCKETS, _SEARCHED = ("data-", "changelog-", "index-"), ("manifest", "index", "statistics")
Record = dict[str, Any]


@dataclass
class Needs:
    """Paths that a root needs and that are there, and the names of those that are not. Absolute paths."""

    metadata: set[str] = field(default_factory=set)
    data: set[str] = field(default_factory=set)
    changelog: set[str] = field(default_factory=set)
    index: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)

    @property
    def files(self) -> set[str]:
        return self.metadata | self.data | self.changelog | self.index


class TableReader:
    """Reads one table as it is now: what is found on disk is listed once, manifests are opened once."""

    def __init__(self, folder: Path, elsewhere: Iterable[Path] = ()) -> None:
        self.folder = folder
        self.disk = {path for place in (folder, *elsewhere) for path in walk(place)}
        self._places = {os.path.basename(path): path for path in self.disk}
        self._records = cache(self._open)

    def needs(self, root: PaimonRoot, *, as_tag: bool = False) -> Needs:
        """Returns what a root needs, or what a tag of a snapshot would.

        Only a snapshot needs rows and changes: who reads a tag never reads its changes, which go with its snapshot,
        and a changelog that outlived its snapshot needs its changes alone.
        """
        document, found = layout.document(root.path(self.folder)), Needs()
        found.metadata.add(str(root.path(self.folder)))
        self._schema(root.branch, document["schemaId"], found)
        if root.kind == CHANGELOG:
            self._changes(root.branch, document, found)
        else:
            self._table(document, found)
        if root.kind == SNAPSHOT and not as_tag:
            self._changelog(document, found)
        return found

    def reachable(self) -> dict[PaimonRoot, Needs]:
        """Returns what each root of every branch needs."""
        return {root: self.needs(root) for root in layout.roots(self.folder)}

    def standing(self) -> set[str]:
        """Returns what belongs to the table and to no root: schemas, hints, consumers. None of it is ever garbage."""
        found: set[str] = set()
        for branch in layout.branches(self.folder):
            place = f"{layout.branch_folder(self.folder, branch)}/"
            kinds = tuple(f"{place}{each}" for each in _STANDING)
            found |= {path for path in self.disk if path.startswith(kinds)}
        return found

    def orphans(self) -> set[str]:
        """Returns every file that no root needs: what expiry left behind, and what was never committed."""
        needed = {path for needs in self.reachable().values() for path in needs.files}
        return self.disk - needed - self.standing()

    def unnamed(self) -> set[str]:
        """Returns what nothing names, not even to take it away, in the folders in which Paimon itself looks for
        orphans: manifests, data files, changelogs, indexes and statistics, and snapshots without a name yet.
        """
        found = Needs()
        for root in layout.roots(self.folder):
            document = layout.document(root.path(self.folder))
            for name in self._lists(root, document):
                for entry in self._entries(name, found):
                    self._data(entry, found.data, found)
            if root.kind != CHANGELOG:
                self._beside(document, found)
        return {path for path in self.disk - found.files if self._is_written(path)}

    def _lists(self, root: PaimonRoot, document: Record) -> Iterator[str]:
        produced = layout.options(self.folder, root.branch).get("changelog-producer", "none") != "none"
        changes = document.get("changelogManifestList")
        if root.kind != CHANGELOG:
            yield from (document["baseManifestList"], document["deltaManifestList"])
        elif changes is None and not produced and document["commitKind"] != "COMPACT":
            yield document["deltaManifestList"]
        if root.kind != TAG and changes is not None:
            yield changes

    def _is_written(self, path: str) -> bool:
        folder, name = os.path.split(path)
        in_bucket = os.path.basename(folder).startswith("bucket-") and name.startswith(_IN_BUCKETS)
        unfinished = os.path.basename(folder) in ("snapshot", "changelog") and name[0] == "." and name.endswith(".tmp")
        return in_bucket or unfinished or folder in {str(self.folder / each) for each in _SEARCHED}

    def _table(self, document: Record, found: Needs) -> None:
        live: dict[tuple[Any, ...], Record] = {}
        for name in (document["baseManifestList"], document["deltaManifestList"]):
            for entry in self._entries(name, found):
                if entry["_KIND"] == ADD:
                    live[_identity(entry)] = entry
                else:
                    live.pop(_identity(entry), None)
        for entry in live.values():
            self._data(entry, found.data, found)
        self._beside(document, found)

    def _beside(self, document: Record, found: Needs) -> None:
        """Notes indexes and statistics."""
        self._indexes(document.get("indexManifest"), found)
        if document.get("statistics"):
            self._note(document["statistics"], found.metadata, found)

    def _changelog(self, document: Record, found: Needs) -> None:
        if document.get("changelogManifestList"):
            for entry in self._entries(document["changelogManifestList"], found):
                self._data(entry, found.changelog, found)

    def _changes(self, branch: str, document: Record, found: Needs) -> None:
        """A table that writes changelogs reads nothing else as changes; another one the rows that writers added, and of
        a compaction nothing.
        """
        if layout.options(self.folder, branch).get("changelog-producer", "none") != "none":
            self._changelog(document, found)
            return
        for entry in self._added(document, found):
            if entry["_FILE"].get("_FILE_SOURCE") in (None, APPENDED):
                self._data(entry, found.changelog, found)

    def restored(self) -> set[str]:
        """Returns what changelogs name, also what a compaction wrote: who makes an old version the newest again adds
        such a file once more. Paimon's own expiry takes it away; a stream that reads overwrites would miss it.
        """
        found = Needs()
        for root in layout.roots(self.folder):
            if root.kind == CHANGELOG:
                for entry in self._added(layout.document(root.path(self.folder)), found):
                    self._data(entry, found.changelog, found)
        return found.changelog

    def _added(self, document: Record, found: Needs) -> Iterator[Record]:
        if document["commitKind"] != "COMPACT":
            entries = self._entries(document["deltaManifestList"], found)
            yield from (entry for entry in entries if entry["_KIND"] == ADD)

    def _entries(self, name: str, found: Needs) -> Iterator[Record]:
        for manifest in self._read(name, found):
            for sidecar in manifest.get("_EXTRA_FILES") or ():
                self._note(sidecar, found.metadata, found)
            yield from self._read(manifest["_FILE_NAME"], found)

    def _indexes(self, name: str | None, found: Needs) -> None:
        for entry in self._read(name, found) if name else ():
            self._note(entry.get("_EXTERNAL_PATH") or entry["_FILE_NAME"], found.index, found)

    def _data(self, entry: Record, to: set[str], found: Needs) -> None:
        file = entry["_FILE"]
        for name in (file.get("_EXTERNAL_PATH") or file["_FILE_NAME"], *(file["_EXTRA_FILES"] or ())):
            self._note(name, to, found)

    def _read(self, name: str, found: Needs) -> list[Record]:
        self._note(name, found.metadata, found)
        return self._records(name) if name in self._places else []

    def _open(self, name: str) -> list[Record]:
        with open(self._places[name], "rb") as opened:
            return [record for record in fastavro.reader(opened) if isinstance(record, dict)]

    def _note(self, name: str, to: set[str], found: Needs) -> None:
        """Notes a name, or the path in an address, as needed."""
        path = plain(name) if "/" in name else self._places.get(name)
        if path in self.disk:
            to.add(path)
        else:
            found.missing.add(name)

    def _schema(self, branch: str, number: int, found: Needs) -> None:
        place = str(layout.branch_folder(self.folder, branch) / "schema" / f"schema-{number}")
        to = found.metadata if place in self.disk else found.missing
        to.add(place)


def walk(folder: Path) -> Iterator[str]:
    """Yields the path of every file below a folder."""
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names)


def _identity(entry: Record) -> tuple[Any, ...]:
    file = entry["_FILE"]
    own = (file["_LEVEL"], file["_FILE_NAME"], tuple(file["_EXTRA_FILES"] or ()), file.get("_EXTERNAL_PATH"))
    return (entry["_PARTITION"], entry["_BUCKET"], file.get("_EMBEDDED_FILE_INDEX"), *own)
