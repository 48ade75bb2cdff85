"""The judge: reads what is left of every table in a catalog and compares it with what was once committed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from firnline.formats.iceberg.expand import IcebergExpand
from firnline.model.files import File, FileKind
from firnline.stores.objects import ObjectStores
from firnline.testing.pointers import Pointers
from firnline.testing.rows import read_rows
from firnline.testing.writers import Document, Ledger, Truth, local, read_document


class Judge:
    """Judges one moment of a world. `without` names files whose absence is no surprise.

    Reads as a reader would, from the pointer on: metadata, lists and manifests by firnline's own decoder, rows from
    the data files. Compares with the ledger, which was written when each snapshot was committed.
    """

    def __init__(self, ledger: Ledger, without: frozenset[str] = frozenset()) -> None:
        self.ledger = ledger
        self.without = without
        self._expand = IcebergExpand(ObjectStores())
        self._named = cache(self._names)
        self._rows = cache(_rows_at)
        self._wrong = cache(self._wrong_with)

    def problems(self, pointers: Pointers) -> Iterator[str]:
        """Yields everything that is wrong with any table of the catalog."""
        for name in pointers.names():
            place = pointers.get(name)
            if place is None or not local(place).exists():
                yield f"the metadata of {name} is gone: {place}"
            else:
                yield from self._of_table(read_document(place))

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

    def _of_table(self, document: Document) -> Iterator[str]:
        snapshots = {each["snapshot-id"]: each for each in document["snapshots"]}
        for name, ref in document["refs"].items():
            if ref["snapshot-id"] not in snapshots:
                yield f"the ref {name} names no snapshot of the table"
        for entry in document["snapshot-log"]:
            if entry["snapshot-id"] not in snapshots:
                yield f"the log names {entry['snapshot-id']}, which is not in the table"
        if document.get("x-of-another-engine") != {"must": ["stay"]}:
            yield "a field of another engine is gone"
        for each in document.get("statistics", ()):
            yield from self._wrong(each["statistics-path"])
        for snapshot, fields in snapshots.items():
            yield from self._of_snapshot(snapshot, fields["manifest-list"])

    def _of_snapshot(self, snapshot: int, listed: str) -> Iterator[str]:
        truth = self.ledger.truths[snapshot]
        wrong = [problem for path in sorted(truth.files) for problem in self._wrong(path)]
        yield from (f"snapshot {snapshot}: {problem}" for problem in wrong)
        if wrong or not truth.files.isdisjoint(self.without):
            return
        if self.reached(listed) != truth.files:
            yield f"snapshot {snapshot} reaches other files than it was committed with"
        if self.rows(truth) != truth.rows:
            yield f"snapshot {snapshot} has other rows than it was committed with"

    def _wrong_with(self, path: str) -> tuple[str, ...]:
        if not local(path).exists():
            return () if path in self.without else (f"{path} is missing",)
        same = local(path).read_bytes() == self.ledger.contents[path]
        return () if same else (f"{path} has other bytes than were written",)

    def _names(self, kind: FileKind, unit: str) -> frozenset[str]:
        rows = self._expand(File(kind, unit, opens=True))
        return frozenset(rows.column("key").to_pylist())


def _rows_at(path: str) -> list[int]:
    return read_rows(local(path).read_bytes())
