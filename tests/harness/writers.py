"""A writer of a real Iceberg table in a SQL catalog, who notes what every snapshot held when it was committed.

Each commit starts from the table's current metadata, whoever wrote it, and swaps the pointer, as any engine does.
What a snapshot needs and which rows it has is noted in a Ledger and never read back, so the ledger can judge what
firnline leaves of the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

from firnline.model.locations import join
from firnline.model.snapshots import MAIN
from firnline.testing.manifests import AvroLayout, Content, Entry, Item, Status, WrittenManifest
from harness.disks import Disk, LocalDisk
from harness.pointers import Pointers
from harness.rows import deletes_file, numbers, read_rows, rows_file

Document = dict[str, Any]
FIRST_ID = 3_000_000_000_000_000_000
_LAYOUT = AvroLayout(version=2)
_SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}


class TableGone(Exception):
    """The writer's table is not in the catalog any more."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a snapshot held when it was committed: every file it needs, and its rows."""

    manifests: tuple[WrittenManifest, ...]
    live: frozenset[Item]
    files: frozenset[str]
    rows: tuple[int, ...]

    @property
    def data(self) -> list[str]:
        return sorted(item.path for item in self.live if item.content is Content.DATA)


@dataclass
class Ledger:
    """Everything that was ever written: truths by snapshot, bytes by path, statistics by snapshot."""

    truths: dict[int, Truth] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    deleted: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _read: dict[str, list[int]] = field(default_factory=dict)

    def rows(self, live: Iterable[Item]) -> tuple[int, ...]:
        """Returns the rows that these files make: those of the data files without the deleted positions."""
        held = list(live)
        gone = {place for item in held for place in self.deleted.get(item.path, ())}
        found: list[int] = []
        for item in held:
            if item.content is Content.DATA:
                read = enumerate(self._rows_of(item.path))
                found += [row for place, row in read if (item.path, place) not in gone]
        return tuple(sorted(found))

    def _rows_of(self, path: str) -> list[int]:
        if path not in self._read:
            self._read[path] = read_rows(self.contents[path])
        return self._read[path]


@dataclass
class Writer:
    """Writes to the table `name` under `location`, a folder of the disk. `now` stamps what it writes."""

    location: str
    pointers: Pointers
    name: str
    now: Callable[[], int]
    ledger: Ledger = field(default_factory=Ledger)
    disk: Disk = field(default_factory=LocalDisk)

    # ---- the metadata document

    def create(self, properties: dict[str, str] | None = None) -> str:
        """Returns the uuid of a new, empty table under this name and location."""
        uuid = str(uuid4())
        location = self._write_document(_empty(uuid, self.location, self.now(), properties or {}), 0)
        self.pointers.register(self.name, location)
        return uuid

    def document(self) -> Document:
        """Returns the table's metadata as it is now, whoever wrote it."""
        return self.document_at(self.place())

    def document_at(self, place: str) -> Document:
        document: Document = json.loads(self.disk.read(place))
        return document

    def place(self) -> str:
        place = self.pointers.get(self.name)
        if place is None:
            raise TableGone(self.name)
        return place

    def change(self, edit: Callable[[Document], Any]) -> None:
        """Commits an edit of the current document. A lost race is run again from the new one."""
        while True:
            base = self.place()
            document = self.document_at(base)
            edit(document)
            entry = {"timestamp-ms": document["last-updated-ms"], "metadata-file": base}
            document["metadata-log"] = [*document.get("metadata-log", ()), entry]
            document["last-updated-ms"] = max(self.now(), document["last-updated-ms"])
            new = self._write_document(document, len(document["metadata-log"]))
            if self.pointers.swap(self.name, base, new):
                return
            self.disk.remove(new)

    # ---- snapshots

    def commit(
        self,
        operation: str,
        added: Sequence[Item] = (),
        removed: Collection[str] = (),
        *,
        on: str | None = MAIN,
        fresh_manifests: bool = False,
    ) -> int:
        """Returns a new snapshot on a branch; `on` None stages it. Manifests that lose no file are shared."""
        snapshot = FIRST_ID + next(self.ledger.numbers)

        def edit(document: Document) -> None:
            parent = head_of(document, MAIN if on is None else on)
            truth = self._truth(parent, snapshot, added, removed, fresh_manifests)
            self.ledger.truths[snapshot] = truth
            _add_snapshot(document, self._snapshot(snapshot, parent, operation, truth), on)

        self.change(edit)
        return snapshot

    def append(self, files: int = 1, *, on: str | None = MAIN) -> int:
        return self.commit("append", [self.data_file() for _ in range(files)], on=on)

    def overwrite(self, removed: Collection[str], files: int = 1, *, on: str = MAIN) -> int:
        return self.commit("overwrite", [self.data_file() for _ in range(files)], removed, on=on)

    def delete_rows(self, path: str, places: Collection[int], *, on: str = MAIN) -> int:
        """Returns a snapshot with position deletes on some rows of one data file."""
        positions = frozenset((path, place) for place in places)
        written = self.write("data", "deletes.parquet", deletes_file(positions))
        self.ledger.deleted[written] = positions
        return self.commit("delete", [self._item(written, Content.POSITION_DELETES)], on=on)

    def compact(self, *, on: str = MAIN) -> int:
        """Returns a snapshot with the same rows in one new file, and none of the old files."""
        live = self.live(on)
        path = self.write("data", "data.parquet", rows_file(self.ledger.rows(live)))
        return self.commit(
            "replace", [self._item(path, Content.DATA)], {item.path for item in live}, on=on, fresh_manifests=True
        )

    def statistics(self, snapshot: int) -> str:
        """Returns the path of a statistics file that the table now names for the snapshot."""
        path = self.write("metadata", "statistics.puffin", b"PFA1" + bytes(16) + b"PFA1")
        size = len(self.ledger.contents[path])
        named = {"snapshot-id": snapshot, "statistics-path": path, "file-size-in-bytes": size}
        footer = {"file-footer-size-in-bytes": 8, "blob-metadata": []}
        self.change(lambda document: document.setdefault("statistics", []).append({**named, **footer}))
        return path

    # ---- refs

    def set_ref(self, ref: str, snapshot: int, kind: str, **retention: int) -> None:
        fields = {name.replace("_", "-"): value for name, value in retention.items()}
        entry = {"snapshot-id": snapshot, "type": kind, **fields}
        self.change(lambda document: document["refs"].update({ref: entry}))

    def roll_back(self, snapshot: int) -> None:
        """Makes an older snapshot the current one."""

        def edit(document: Document) -> None:
            _move_main(document, snapshot, self.now())

        self.change(edit)

    def live(self, on: str = MAIN) -> frozenset[Item]:
        head = head_of(self.document(), on)
        return frozenset() if head is None else self.ledger.truths[head].live

    # ---- files

    def data_file(self) -> Item:
        """Returns a new data file with ten rows of its own, not yet in any snapshot."""
        path = self.write("data", "data.parquet", rows_file(numbers(next(self.ledger.numbers))))
        return self._item(path, Content.DATA)

    def write(self, folder: str, name: str, data: bytes) -> str:
        """Returns where the file was written, dated by the writer's clock: other tools go by a file's age."""
        path = join(self.location, folder, f"{next(self.ledger.numbers):05d}-{name}")
        self.disk.write(path, data, self.now())
        self.ledger.contents[path] = data
        return path

    def _item(self, path: str, content: Content) -> Item:
        item = Item(path, len(self.ledger.contents[path]), content)
        self.ledger.items[path] = item
        return item

    def _write_document(self, document: Document, version: int) -> str:
        path = join(self.location, "metadata", f"{version:05d}-{uuid4()}.metadata.json")
        self.disk.write(path, json.dumps(document).encode(), self.now())
        return path

    def _truth(
        self, parent: int | None, snapshot: int, added: Sequence[Item], removed: Collection[str], fresh: bool
    ) -> Truth:
        before = self.ledger.truths[parent] if parent is not None else Truth((), frozenset(), frozenset(), ())
        live = frozenset(item for item in before.live if item.path not in removed) | frozenset(added)
        if fresh:
            kept: list[WrittenManifest] = []
            entries = [Entry(Status.ADDED if item in added else Status.EXISTING, item, snapshot) for item in live]
        else:
            kept = [self._without(manifest, removed, snapshot) for manifest in before.manifests if manifest.live]
            entries = [Entry(Status.ADDED, item, snapshot) for item in added]
        manifests = (*kept, *self._manifests(entries, snapshot))
        listed = self.write("metadata", "list.avro", _LAYOUT.manifest_list(manifests, snapshot))
        files = {listed, *(each.path for each in manifests), *(item.path for item in live)}
        return Truth(manifests, live, frozenset(files), self.ledger.rows(live))

    def _without(self, manifest: WrittenManifest, removed: Collection[str], snapshot: int) -> WrittenManifest:
        if not any(item.path in removed for item in manifest.live):
            return manifest
        entries = [
            Entry(Status.DELETED if item.path in removed else Status.EXISTING, item, snapshot) for item in manifest.live
        ]
        (rewritten,) = self._manifests(entries, snapshot)
        return rewritten

    def _manifests(self, entries: Sequence[Entry], snapshot: int) -> tuple[WrittenManifest, ...]:
        """Returns new manifests; data and deletes never share one."""
        kinds = [[e for e in entries if (e.item.content is not Content.DATA) is deletes] for deletes in (False, True)]
        return tuple(self._manifest(bool(deletes), some, snapshot) for deletes, some in enumerate(kinds) if some)

    def _manifest(self, deletes: bool, entries: list[Entry], snapshot: int) -> WrittenManifest:
        data = _LAYOUT.manifest(entries, deletes)
        path = self.write("metadata", "manifest.avro", data)
        return WrittenManifest(path, len(data), deletes, snapshot, tuple(entries))

    def _snapshot(self, snapshot: int, parent: int | None, operation: str, truth: Truth) -> Document:
        (listed,) = truth.files - {each.path for each in truth.manifests} - {item.path for item in truth.live}
        fields: Document = {
            "snapshot-id": snapshot,
            "timestamp-ms": self.now(),
            "summary": {"operation": operation, "total-data-files": str(len(truth.data))},
            "manifest-list": listed,
            "schema-id": 0,
        }
        return fields if parent is None else {**fields, "parent-snapshot-id": parent}


def head_of(document: Document, ref: str) -> int | None:
    entry = document["refs"].get(ref)
    return None if entry is None else int(entry["snapshot-id"])


def _add_snapshot(document: Document, snapshot: Document, on: str | None) -> None:
    document["last-sequence-number"] += 1
    snapshot["sequence-number"] = document["last-sequence-number"]
    document["snapshots"].append(snapshot)
    if on == MAIN:
        _move_main(document, snapshot["snapshot-id"], snapshot["timestamp-ms"])
    elif on is not None:
        document["refs"].setdefault(on, {"type": "branch"})["snapshot-id"] = snapshot["snapshot-id"]


def _move_main(document: Document, snapshot: int, at_ms: int) -> None:
    document["refs"].setdefault(MAIN, {"type": "branch"})["snapshot-id"] = snapshot
    document["current-snapshot-id"] = snapshot
    document["snapshot-log"].append({"timestamp-ms": at_ms, "snapshot-id": snapshot})


def _empty(uuid: str, location: str, now_ms: int, properties: dict[str, str]) -> Document:
    """Returns the document of a table without snapshots. The last field is one that no reader knows: it must stay."""
    return {
        "format-version": 2,
        "table-uuid": uuid,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": now_ms,
        "last-column-id": 1,
        "schemas": [_SCHEMA],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": properties,
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
        "x-of-another-engine": {"must": ["stay"]},
    }
