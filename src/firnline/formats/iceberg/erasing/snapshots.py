"""Snapshots without some data files: who names these, and what they begin with afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from firnline.errors import UnsupportedFormat
from firnline.formats.damage import named
from firnline.formats.iceberg.document import Document, metadata_folder
from firnline.formats.iceberg.erasing.lists import NewManifest, manifests_in, with_manifests
from firnline.formats.iceberg.erasing.manifests import ReadManifest, read_manifest
from firnline.formats.opening import opened
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.portions import portions
from firnline.model.snapshots import SnapshotId
from firnline.ports.catalogs import Still
from firnline.ports.erasing import Lost, NamedFile, Namers, Trimmed, Trimming
from firnline.ports.progress import Progress
from firnline.ports.stores import Get, PutIfAbsent

_THREADS = 8
_NUMBERED_SINCE = 3
_TOTALS = (
    ("total-data-files", "files"), ("total-records", "rows"), ("total-delete-files", "deletes"),
    ("total-position-deletes", "positions"), ("total-files-size", "bytes"),
)  # fmt: skip
_OF_PARTITIONS = ("partitions.", "partition-summaries-included")


@dataclass(frozen=True, slots=True)
class Erasing:
    """Data files that shall go from the snapshots of one document. Each manifest is opened once, however many of them
    have it.
    """

    store: Get
    document: Document
    files: Set[str]

    def naming(self, progress: Progress, among: Set[SnapshotId] | None = None) -> Namers:
        """Returns who names them. Raises UnsupportedFormat for a snapshot without a manifest list."""
        lists = self._lists(among)
        with ThreadPoolExecutor(_THREADS) as pool:
            every = self._manifests(lists, pool)
            found: dict[File, bool] = {}
            files: dict[str, NamedFile] = {}
            for done, (unit, read) in enumerate(self._read(every, pool), 1):
                progress.step("looking for the files in manifests", done, len(every))
                if read.names_any:
                    found[unit] = read.loses_rows
                    files |= {each.path: each for each in read.files() if each.lives or each.path not in files}
            losing, mentioning = set[SnapshotId](), set[SnapshotId]()
            for snapshot, units in zip(lists, pool.map(self._named_by, lists.values()), strict=True):
                told = [found[unit] for unit in units if unit in found]
                (losing if any(told) else mentioning if told else set()).add(snapshot)
        return Namers(tuple(files.values()), frozenset(losing), frozenset(mentioning), tuple(found))

    def trimmed(self, naming: Namers, store: PutIfAbsent, still: Still) -> Trimming:
        """Returns the snapshots without the files. Units that are of no use if this is cut short are found by a search
        for orphans.
        """
        folder = metadata_folder(self.document)
        new: dict[str, list[NewManifest]] = {}
        lost: dict[str, Lost] = {}
        for unit in naming.units:
            read, path = self._opened(unit), unit.key
            lost[path], new[path] = read.lost(), []
            for piece in read.pieces(numbered=self._is_numbered):
                still()
                data, key = read.written(piece), join(folder, f"{uuid4()}-m0.avro")
                store.put_if_absent(key, data)
                new[path].append(NewManifest(key, len(data), piece.rows_before, piece.counts))
        lists = self._lists(naming.snapshots)
        trimmed = [self._with(each, lists[each], new, lost, folder, store, still) for each in sorted(lists)]
        manifests = (each.path for some in new.values() for each in some)
        return Trimming(tuple(trimmed), (*manifests, *(each.after for each in trimmed)))

    def _with(
        self,
        snapshot: SnapshotId,
        before: str,
        new: Mapping[str, Sequence[NewManifest]],
        lost: Mapping[str, Lost],
        folder: str,
        store: PutIfAbsent,
        still: Still,
    ) -> Trimmed:
        with named(FileKind.MANIFEST_LIST, before):
            data = self.store.get(before)
            less = sum((lost[each.key] for each in manifests_in(data) if each.key in lost), Lost())
            rebuilt = with_manifests(data, new)
        still()
        after = join(folder, f"snap-{snapshot}-1-{uuid4()}.avro")
        store.put_if_absent(after, rebuilt)
        return Trimmed(snapshot, before, after, less)

    @property
    def _is_numbered(self) -> bool:
        return int(self.document["format-version"]) >= _NUMBERED_SINCE

    def _lists(self, among: Set[SnapshotId] | None) -> dict[SnapshotId, str]:
        found: dict[SnapshotId, str] = {}
        for each in self.document.get("snapshots") or ():
            snapshot = str(each["snapshot-id"])
            if among is not None and snapshot not in among:
                continue
            if not isinstance(each.get("manifest-list"), str):
                raise UnsupportedFormat(
                    f"snapshot {snapshot} has no manifest list", hint="its engine must rewrite it; nothing was changed"
                )
            found[snapshot] = each["manifest-list"]
        return found

    def _manifests(self, lists: Mapping[SnapshotId, str], pool: ThreadPoolExecutor) -> list[File]:
        named_by = pool.map(self._named_by, dict.fromkeys(lists.values()))
        return list(dict.fromkeys(unit for units in named_by for unit in units))

    def _named_by(self, path: str) -> list[File]:
        with named(FileKind.MANIFEST_LIST, path):
            return manifests_in(self.store.get(path))

    def _read(self, units: Sequence[File], pool: ThreadPoolExecutor) -> Iterator[tuple[File, ReadManifest]]:
        """Yields manifests, of which a few are held at once."""
        for some in portions(units):
            yield from zip(some, pool.map(self._opened, some), strict=True)

    def _opened(self, unit: File) -> ReadManifest:
        with opened(self.store, unit) as data:
            return read_manifest(data, self.files)


def with_trimmed(document: Document, trimmed: Sequence[Trimmed]) -> dict[str, Any] | None:
    """Returns the document with trimmed snapshots in the places of those that are as they were, and without what was
    counted for them; None where there is none any more.
    """
    due = {(each.snapshot, each.before): each for each in trimmed}
    snapshots = list(document.get("snapshots") or ())
    changed = {number: due[key] for number, each in enumerate(snapshots) if (key := _key(each)) in due}
    if not changed:
        return None
    gone = {each.snapshot for each in changed.values()}
    told = [_trimmed(each, changed[number]) if number in changed else each for number, each in enumerate(snapshots)]
    edited = {**document, "snapshots": told}
    for name in ("statistics", "partition-statistics"):
        if document.get(name):
            edited[name] = [each for each in document[name] if str(each["snapshot-id"]) not in gone]
    return edited


def _key(snapshot: Mapping[str, Any]) -> tuple[SnapshotId, Any]:
    return str(snapshot["snapshot-id"]), snapshot.get("manifest-list")


def _trimmed(snapshot: Mapping[str, Any], trimmed: Trimmed) -> dict[str, Any]:
    """Returns the snapshot with its new list. Its totals are lowered: a list that tells of less looks cut short. What
    was noted of each partition goes: its name tells a value of the file.
    """
    summary = snapshot.get("summary")
    if isinstance(summary, dict):
        lower = {name: _less(summary[name], getattr(trimmed.lost, of)) for name, of in _TOTALS if name in summary}
        stays = {name: told for name, told in summary.items() if not name.startswith(_OF_PARTITIONS)}
        snapshot = {**snapshot, "summary": {**stays, **lower}}
    return {**snapshot, "manifest-list": trimmed.after}


def _less(told: Any, lost: int) -> Any:
    return str(max(0, int(told) - lost)) if isinstance(told, str) and told.isascii() and told.isdigit() else told
