"""The judge: reads what is left of every table in a catalog and compares it with what was once committed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from firnline.formats.iceberg.expand import IcebergExpand
from firnline.model.files import File, FileKind
from firnline.stores.objects import ObjectStores
from harness.disks import Disk, LocalDisk
from harness.grounds import Ground
from harness.pointers import Pointers
from harness.rows import read_rows
from harness.writers import Document, Ledger, Truth


class Looked:
    """What was wrong with each file at one moment; each is looked at once, however many snapshots need it."""

    def __init__(self, ledger: Ledger, disk: Disk, without: frozenset[str]) -> None:
        self.without = without
        self._ledger = ledger
        self._disk = disk
        self.at = cache(self._look_at)

    def _look_at(self, path: str) -> tuple[str, ...]:
        try:
            same = self._disk.read(path) == self._ledger.contents[path]
        except FileNotFoundError:
            return () if path in self.without else (f"{path} is missing",)
        return () if same else (f"{path} has other bytes than were written",)


class Judge:
    """Judges a world by its ledger, which was written when each snapshot was committed.

    Reads as a reader would, from the pointer on: metadata, lists and manifests by firnline's own decoder, rows from
    the data files. Every file's bytes are looked at every time; what they mean is remembered, for it cannot change.
    """

    def __init__(self, ledger: Ledger, ground: Ground | None = None) -> None:
        self.ledger = ledger
        self._disk = LocalDisk() if ground is None else ground.disk
        self._keeps_unknown = ground is None or ground.keeps_unknown
        self._expand = IcebergExpand(ObjectStores({} if ground is None else ground.properties))
        self._named = cache(self._names)
        self._rows = cache(self._rows_at)

    def problems(self, pointers: Pointers, without: frozenset[str] = frozenset()) -> Iterator[str]:
        """Yields what is wrong with any table of the catalog; `without` are files whose absence is no surprise."""
        looked = Looked(self.ledger, self._disk, without)
        for name in pointers.names():
            place = pointers.get(name)
            if place is None or not self._disk.exists(place):
                yield f"the metadata of {name} is gone: {place}"
            else:
                yield from self._of_table(json.loads(self._disk.read(place)), looked)

    def reached(self, manifest_list: str) -> frozenset[str]:
        """Returns every path that firnline's decoder reaches from a manifest list, the list itself included."""
        manifests = self._named(FileKind.MANIFEST_LIST, manifest_list) - {manifest_list}
        files = (self._named(FileKind.MANIFEST, manifest) for manifest in manifests)
        return frozenset({manifest_list, *manifests}.union(*files))

    def rows(self, truth: Truth) -> tuple[int, ...]:
        """Returns the rows in the snapshot's data files as they lie there now, without the deleted positions."""
        gone = {place for item in truth.live for place in self.ledger.deleted.get(item.path, ())}
        places = ((path, place, row) for path in truth.data for place, row in enumerate(self._rows(path)))
        return tuple(sorted(row for path, place, row in places if (path, place) not in gone))

    def _of_table(self, document: Document, looked: Looked) -> Iterator[str]:
        snapshots = {each["snapshot-id"]: each for each in document["snapshots"]}
        for name, ref in document["refs"].items():
            if ref["snapshot-id"] not in snapshots:
                yield f"the ref {name} names no snapshot of the table"
        for entry in document["snapshot-log"]:
            if entry["snapshot-id"] not in snapshots:
                yield f"the log names {entry['snapshot-id']}, which is not in the table"
        if self._keeps_unknown and document.get("x-of-another-engine") != {"must": ["stay"]}:
            yield "a field of another engine is gone"
        for each in document.get("statistics", ()):
            yield from looked.at(each["statistics-path"])
        for snapshot, fields in snapshots.items():
            yield from self._of_snapshot(snapshot, fields["manifest-list"], looked)

    def _of_snapshot(self, snapshot: int, listed: str, looked: Looked) -> Iterator[str]:
        truth = self.ledger.truths[snapshot]
        wrong = [problem for path in sorted(truth.files) for problem in looked.at(path)]
        yield from (f"snapshot {snapshot}: {problem}" for problem in wrong)
        if wrong or not truth.files.isdisjoint(looked.without):
            return
        if self.reached(listed) != truth.files:
            yield f"snapshot {snapshot} reaches other files than it was committed with"
        if self.rows(truth) != truth.rows:
            yield f"snapshot {snapshot} has other rows than it was committed with"

    def _names(self, kind: FileKind, unit: str) -> frozenset[str]:
        rows = self._expand([File(kind, unit, opens=True)]).rows
        return frozenset(rows.column("key").to_pylist())

    def _rows_at(self, path: str) -> list[int]:
        return read_rows(self._disk.read(path))
