"""What a table's snapshots need, read by Iceberg's own Java readers."""

from __future__ import annotations

from typing import Any

from .jvm import Jvm

LOCATION = ("org.apache.iceberg.ContentFile", "location", "java.lang.String")
REFERENCED = ("org.apache.iceberg.DeleteFile", "referencedDataFile", "java.lang.String")
MANIFEST_PATH = ("org.apache.iceberg.ManifestFile", "path", "java.lang.String")


class Reading:
    """The live entries of a table's manifests. Each manifest is opened once, for it never changes."""

    def __init__(self, jvm: Jvm, table: Any) -> None:
        self._jvm = jvm
        self._table = table
        self._data: dict[str, list[str]] = {}
        self._deletes: dict[str, list[tuple[str, str]]] = {}
        self._needs: dict[int, frozenset[str]] = {}

    def data_files(self, snapshot_id: int) -> list[str]:
        """Live data files of a snapshot, sorted."""
        manifests = self._open(self._table.snapshot(snapshot_id))
        return sorted({path for manifest in manifests for path in self._data.get(manifest, ())})

    def delete_files(self, snapshot_id: int) -> list[tuple[str, str]]:
        """Live delete files of a snapshot as (path, the one data file it refers to or 'null'), sorted."""
        manifests = self._open(self._table.snapshot(snapshot_id))
        return sorted({entry for manifest in manifests for entry in self._deletes.get(manifest, ())})

    def needs(self, snapshot_id: int) -> frozenset[str]:
        """Every path that a snapshot needs: list, manifests, live data and delete files."""
        if snapshot_id not in self._needs:
            self._needs[snapshot_id] = frozenset(self._walk(self._table.snapshot(snapshot_id)))
        return self._needs[snapshot_id]

    def _walk(self, snapshot: Any) -> set[str]:
        manifests = self._open(snapshot)
        needed = set(manifests)
        for manifest in manifests:
            needed.update(self._data.get(manifest, ()))
            needed.update(path for path, _ in self._deletes.get(manifest, ()))
        listed = snapshot.manifestListLocation()
        return needed | {listed} if listed else needed

    def _open(self, snapshot: Any) -> list[str]:
        manifests = snapshot.allManifests(self._table.io())
        inline = snapshot.manifestListLocation() is None
        paths = self._jvm.texts(manifests, self._jvm.function(*MANIFEST_PATH))
        for index, path in enumerate(paths):
            if path not in self._data and path not in self._deletes:
                self._read(path, self._inline(path, snapshot) if inline else manifests.get(index))
        return paths

    def _inline(self, path: str, snapshot: Any) -> Any:
        """A manifest that the metadata names itself. Java's own object for it cannot be opened (1.12.0)."""
        integers = [self._jvm.java(f"java.lang.{name}").TYPE for name in ("Integer", "Long")]
        types = [self._jvm.type("org.apache.iceberg.io.InputFile"), *integers]
        manifest = self._jvm.type("org.apache.iceberg.GenericManifestFile")
        make = manifest.getDeclaredConstructor(self._jvm.array("java.lang.Class", types))
        make.setAccessible(True)
        values = [self._table.io().newInputFile(path), 0, snapshot.snapshotId()]
        return make.newInstance(self._jvm.array("java.lang.Object", values))

    def _read(self, path: str, manifest: Any) -> None:
        if manifest.content().name() == "DATA":
            self._data[path] = self._live("read", manifest, LOCATION)
        else:
            paths = self._live("readDeleteManifest", manifest, LOCATION)
            self._deletes[path] = list(zip(paths, self._live("readDeleteManifest", manifest, REFERENCED), strict=True))

    def _live(self, method: str, manifest: Any, function: tuple[str, str, str]) -> list[str]:
        files = self._jvm.iceberg("ManifestFiles")
        reader = getattr(files, method)(manifest, self._table.io(), self._table.specs())
        try:
            return self._jvm.texts(reader, self._jvm.function(*function))
        finally:
            reader.close()
