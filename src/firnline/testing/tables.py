"""Small real Iceberg tables, made file by file, by a writer that remembers what every snapshot needs.

Every file has real bytes of the size that the metadata says, so totals can be compared with the disk. What a
snapshot needs is noted when it is committed and never read back: `reachable` is a judge that shares no code with
what it judges. No real data is in the files; a table whose rows matter is in `demo.lake`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from firnline.model.files import FileKind
from firnline.model.locations import join
from firnline.model.snapshots import MAIN
from firnline.model.times import DAY_MS
from firnline.ports.stores import Put
from firnline.testing.documents import Change, NamedStatistics, document_of
from firnline.testing.manifests import AvroLayout, Content, Entry, Item, Status, WrittenManifest

FIRST_ID = 3_000_000_000_000_000_000
"""Beyond 2**53, where a reader that takes ids for floating point numbers would merge neighbours."""

START_MS = 1_767_225_600_000
_KINDS = {
    Content.DATA: FileKind.DATA,
    Content.POSITION_DELETES: FileKind.POSITION_DELETES,
    Content.EQUALITY_DELETES: FileKind.EQUALITY_DELETES,
}


class QuickFiles:
    """Puts local files without waiting for the disk: a test's folder need not survive a power cut."""

    def put(self, key: str, data: bytes) -> None:
        path = Path(key.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@dataclass(frozen=True, slots=True)
class Made:
    kind: FileKind
    size: int


@dataclass
class SmallTable:
    """A table under `location`, one snapshot a day. Commits go to `on`: a branch, or None to stage them."""

    store: Put
    location: str
    layout: AvroLayout = field(default_factory=lambda: AvroLayout(version=2))
    properties: dict[str, str] = field(default_factory=dict)
    step_ms: int = DAY_MS

    def __post_init__(self) -> None:
        self.now_ms = START_MS
        self.changes: dict[int, Change] = {}
        self.heads: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, int]] = []
        self.named: list[NamedStatistics] = []
        self.made: dict[str, Made] = {}
        self.documents: list[str] = []
        self._items: dict[str, Item] = {}
        self._number = count(1)

    # ---- what there is

    @property
    def version(self) -> int:
        return self.layout.version

    def head(self, on: str | None = MAIN) -> int | None:
        ref = self.heads.get(MAIN if on is None else on)
        return None if ref is None else int(ref["snapshot-id"])

    def live(self, on: str | None = MAIN) -> list[str]:
        """Returns the data files that a branch holds now."""
        head = self.head(on)
        held = self.changes[head].live if head is not None else frozenset()
        return sorted(item.path for item in held if item.content is Content.DATA)

    def gone(self, on: str | None = MAIN) -> list[str]:
        """Returns the data files that were committed once and that the branch does not hold now."""
        data = {path for path, item in self._items.items() if item.content is Content.DATA}
        return sorted(data - set(self.live(on)))

    def reachable(self, snapshot: int) -> set[str]:
        """Returns every path that the snapshot needs."""
        change = self.changes[snapshot]
        own = {each.path for each in self.named if each.snapshot == snapshot}
        return change.units | {item.path for item in change.live} | own

    def victims(self, expired: Collection[int]) -> set[str]:
        """Returns every path that only these snapshots need."""
        kept = self.changes.keys() - set(expired)
        return self._reached(expired) - self._reached(kept)

    def _reached(self, snapshots: Iterable[int]) -> set[str]:
        return {path for each in snapshots for path in self.reachable(each)}

    # ---- commits

    def append(self, files: int = 1, *, on: str | None = MAIN, inline: bool = False, outside: bool = False) -> int:
        """Returns a snapshot with new data files. `inline`: it names its manifests itself, as old writers did."""
        folder = f"{self.location}-elsewhere" if outside else join(self.location, "data")
        return self.commit("append", [self._data(folder) for _ in range(files)], on=on, inline=inline)

    def register(self, items: Sequence[Item], *, on: str | None = MAIN) -> int:
        """Returns a snapshot with files that the table names and this writer does not write."""
        return self.commit("append", items, on=on)

    def overwrite(
        self, removed: Collection[str], files: int = 1, *, on: str | None = MAIN, operation: str = "overwrite"
    ) -> int:
        """Returns a snapshot without some data files (and their deletion vectors), with new ones instead."""
        gone = {item for item in self._held(on) if item.path in removed or item.referenced in removed}
        return self.commit(operation, [self._data(join(self.location, "data")) for _ in range(files)], gone, on=on)

    def delete_rows(self, targets: Collection[str], *, equality: bool = False, on: str | None = MAIN) -> int:
        """Returns a snapshot with rows deleted: from version 3 on, one Puffin that holds a vector for each target."""
        if self.version < 3 or equality:
            content = Content.EQUALITY_DELETES if equality else Content.POSITION_DELETES
            return self.commit("delete", [self._content("data", "deletes.parquet", content)], on=on)
        puffin = self._content("data", "vectors.puffin", Content.POSITION_DELETES, FileKind.DELETION_VECTORS)
        vectors = [
            Item(puffin.path, puffin.size, puffin.content, "PUFFIN", target, 4 + place)
            for place, target in enumerate(sorted(targets))
        ]
        replaced = {item for item in self._held(on) if item.referenced in targets}
        return self.commit("delete", vectors, replaced, on=on)

    def bring_back(self, path: str, *, on: str | None = MAIN) -> int:
        """Returns a snapshot that adds a file again under the path it had before it was removed."""
        return self.commit("append", [self._items[path]], on=on)

    def rewrite_manifests(self, *, on: str | None = MAIN) -> int:
        """Returns a snapshot with the same files, all named by new manifests."""
        snapshot, parent = self._next(on)
        entries = [Entry(Status.EXISTING, item, snapshot) for item in sorted(self._held(on), key=_by_path)]
        manifests = self._manifests(entries, snapshot)
        return self._add(Change(snapshot, parent, self.now_ms, "replace", manifests, self._held(on)), on, inline=False)

    def commit(
        self,
        operation: str,
        added: Sequence[Item] = (),
        removed: Collection[Item] = (),
        *,
        on: str | None = MAIN,
        inline: bool = False,
    ) -> int:
        """Returns a new snapshot. Manifests that lose no file are shared with the parent."""
        self._items.update({item.path: item for item in added})
        snapshot, parent = self._next(on)
        before = self.changes[parent].manifests if parent is not None else ()
        carried = [self._without(removed, each, snapshot) for each in before if each.live]
        new = self._manifests([Entry(Status.ADDED, item, snapshot) for item in added], snapshot)
        live = (self._held(on) - set(removed)) | set(added)
        return self._add(Change(snapshot, parent, self.now_ms, operation, (*carried, *new), live), on, inline)

    # ---- refs and statistics

    def branch(self, name: str, snapshot: int, **retention: int) -> None:
        self.heads[name] = {"snapshot-id": snapshot, "type": "branch", **_dashed(retention)}

    def tag(self, name: str, snapshot: int, **retention: int) -> None:
        self.heads[name] = {"snapshot-id": snapshot, "type": "tag", **_dashed(retention)}

    def rollback(self, snapshot: int) -> None:
        """Makes an older snapshot the current one; what came after it stays, unreferenced."""
        self.heads[MAIN]["snapshot-id"] = snapshot
        self.log.append((self.now_ms, snapshot))

    def statistics(self, snapshot: int, path: str | None = None, *, by_partition: bool = False) -> str:
        """Returns the path of the snapshot's statistics; give the path of others to share their file."""
        kind = FileKind.PARTITION_STATISTICS if by_partition else FileKind.STATISTICS
        shared = path or self._write("metadata", "parts.parquet" if by_partition else "statistics.puffin", kind)
        self.named.append(NamedStatistics(snapshot, kind, shared, self.made[shared].size))
        return shared

    # ---- the metadata document

    def publish(self, *, compressed: bool = False, edit: Callable[[dict[str, Any]], None] | None = None) -> str:
        """Returns the location of the metadata document that this writes; `edit` may spoil the document first."""
        version = len(self.documents) + 1
        document = document_of(self)
        if edit is not None:
            edit(document)
        data = json.dumps(document).encode()
        suffix = ".gz.metadata.json" if compressed else ".metadata.json"
        self.documents.append(join(self.location, "metadata", f"v{version}{suffix}"))
        self.store.put(self.documents[-1], gzip.compress(data, mtime=0) if compressed else data)
        self.store.put(self.hint, b"%d" % version)
        return self.documents[-1]

    @property
    def hint(self) -> str:
        return join(self.location, "metadata", "version-hint.text")

    # ---- writing

    def _held(self, on: str | None) -> frozenset[Item]:
        head = self.head(on)
        return frozenset() if head is None else self.changes[head].live

    def _next(self, on: str | None) -> tuple[int, int | None]:
        self.now_ms += self.step_ms
        return FIRST_ID + len(self.changes) + 1, self.head(on)

    def _add(self, change: Change, on: str | None, inline: bool) -> int:
        if not inline:
            data = self.layout.manifest_list(change.manifests, change.id)
            change = change.listed_in(self._write("metadata", "list.avro", FileKind.MANIFEST_LIST, data))
        self.changes[change.id] = change
        if on is not None:
            self.heads.setdefault(on, {"type": "branch"})["snapshot-id"] = change.id
        if on == MAIN:
            self.log.append((change.timestamp_ms, change.id))
        return change.id

    def _without(self, removed: Collection[Item], manifest: WrittenManifest, snapshot: int) -> WrittenManifest:
        """Returns the manifest itself, or a new one that calls some of its files deleted."""
        if not any(item in removed for item in manifest.live):
            return manifest
        entries = [
            Entry(Status.DELETED if item in removed else Status.EXISTING, item, snapshot) for item in manifest.live
        ]
        (rewritten,) = self._manifests(entries, snapshot)
        return rewritten

    def _manifests(self, entries: Iterable[Entry], snapshot: int) -> tuple[WrittenManifest, ...]:
        """Returns new manifests for the entries: data and deletes never share one."""
        split: dict[bool, list[Entry]] = {}
        for entry in entries:
            split.setdefault(entry.item.content is not Content.DATA, []).append(entry)
        return tuple(self._manifest(deletes, some, snapshot) for deletes, some in split.items())

    def _manifest(self, deletes: bool, entries: list[Entry], snapshot: int) -> WrittenManifest:
        data = self.layout.manifest(entries, deletes)
        path = self._write("metadata", "manifest.avro", FileKind.MANIFEST, data)
        return WrittenManifest(path, len(data), deletes, snapshot, tuple(entries))

    def _data(self, folder: str) -> Item:
        path = self._write(folder, "data.parquet", FileKind.DATA)
        return Item(path, self.made[path].size)

    def _content(self, folder: str, name: str, content: Content, kind: FileKind | None = None) -> Item:
        path = self._write(folder, name, kind or _KINDS[content])
        return Item(path, self.made[path].size, content)

    def _write(self, folder: str, name: str, kind: FileKind, data: bytes | None = None) -> str:
        number = next(self._number)
        inside = folder if "/" in folder else join(self.location, folder)
        path = join(inside, f"{number:05d}-{name}")
        written = bytes([number % 251]) * (20 + number * 7 % 90) if data is None else data
        self.store.put(path, written)
        self.made[path] = Made(kind, len(written))
        return path


def _by_path(item: Item) -> tuple[str, int]:
    return item.path, item.offset or 0


def _dashed(retention: dict[str, int]) -> dict[str, int]:
    return {name.replace("_", "-"): value for name, value in retention.items()}
