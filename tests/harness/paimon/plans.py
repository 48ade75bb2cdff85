"""What Paimon's Java says that a root's scan opens, with full paths: the proof of the plain reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.paimon.gateway import Jvm
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import CHANGELOG, TAG, PaimonRoot, plain


class JavaPlans:
    """Scans of one table by Paimon's own planner."""

    def __init__(self, jvm: Jvm, table: JavaTable) -> None:
        self._jvm = jvm
        self._table = table

    def data(self, root: PaimonRoot) -> set[str]:
        """Returns the data files, and files beside them, that are live in a snapshot or tag."""
        return self._scan(root, "ALL")

    def changes(self, root: PaimonRoot) -> set[str]:
        """Returns the files that a stream reads for a snapshot or changelog.

        A table that writes no changelogs is read by what its appends added; other commits say nothing to a stream.
        """
        snapshot = self._snapshot(root)
        if self._table.open(root.branch).coreOptions().changelogProducer().name() != "NONE":
            return self._scan(root, "CHANGELOG") if snapshot.changelogManifestList() is not None else set()
        return self._scan(root, "DELTA") if snapshot.commitKind().name() == "APPEND" else set()

    def index(self, root: PaimonRoot) -> set[str]:
        """Returns the index files of a snapshot or tag: deletion vectors, hashes of dynamic buckets."""
        name = self._snapshot(root).indexManifest()
        handler = self._table.open(root.branch).store().newIndexFileHandler()
        found = handler.readManifest(name) if name is not None else ()
        return {plain(handler.filePath(entry).toString()) for entry in found}

    def _scan(self, root: PaimonRoot, mode: str) -> set[str]:
        store = self._table.open(root.branch).store()
        kind = getattr(self._jvm.paimon("table.source.ScanMode"), mode)
        plan = store.newScan().withKind(kind).withSnapshot(self._snapshot(root)).plan()
        return {path for entry in plan.files() if entry.kind().name() == "ADD" for path in _paths(store, entry)}

    def _snapshot(self, root: PaimonRoot) -> Any:
        table = self._table.open(root.branch)
        if root.kind == TAG:
            return table.tagManager().getOrThrow(root.name).trimToSnapshot()
        if root.kind == CHANGELOG:
            return table.changelogManager().longLivedChangelog(int(root.name))
        return table.snapshot(int(root.name))


def _paths(store: Any, entry: Any) -> Iterator[str]:
    factory = store.pathFactory().createDataFilePathFactory(entry.partition(), entry.bucket())
    yield plain(factory.toPath(entry).toString())
    for name in entry.extraFiles():
        yield plain(factory.toAlignedPath(name, entry.file()).toString())
