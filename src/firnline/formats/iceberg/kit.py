"""Iceberg's kit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from firnline.catalogs.versions import is_metadata_file
from firnline.formats.iceberg.names import DOCUMENT
from firnline.formats.iceberg.runtime import RUNTIME
from firnline.model.locations import join
from firnline.model.snapshots import RefKind, SnapshotId
from firnline.ports.stores import Get, Read, ReadWrite

if TYPE_CHECKING:
    from firnline.catalogs.paths import PathCommits, PathTables
    from firnline.formats.iceberg.rows import IcebergRows
    from firnline.formats.iceberg.table import IcebergFormat
    from firnline.formats.iceberg.tables import IcebergTables
    from firnline.ports.formats import State
    from firnline.ports.inspect import SparkSource


class IcebergKit:
    """Tables of catalogs, and path tables."""

    name = "iceberg"
    documents = (DOCUMENT,)
    folders = ("data", "metadata")
    known_by_folder = False
    runtime = RUNTIME

    def has_table(self, store: Read, location: str) -> bool:
        """Tells it by the names in the folder `metadata`; or by the location's own, if it is that of a document."""
        return is_metadata_file(location) or any(map(is_metadata_file, store.names(join(location, "metadata"))))

    def table_folder(self, document: str) -> str:
        return document.rpartition("/")[0].rpartition("/")[0]

    def format(self, store: Read, trusted: frozenset[SnapshotId] = frozenset()) -> IcebergFormat:
        from firnline.formats.iceberg.table import IcebergFormat

        return IcebergFormat(store, trusted)

    def folder_tables(self, store: Read) -> PathTables:
        from firnline.catalogs.paths import PathTables

        return PathTables(store)

    def commits(self, store: ReadWrite, location: str) -> PathCommits:
        from firnline.catalogs.paths import PathCommits

        return PathCommits(store)

    def inspect(self, store: Get) -> IcebergTables:
        from firnline.formats.iceberg.tables import IcebergTables

        return IcebergTables(store)

    def rows(self, state: State, settings: Mapping[str, str], version: str | None) -> IcebergRows:
        from firnline.formats.iceberg.rows import IcebergRows

        if version is None:
            return IcebergRows(state.fence, dict(settings), None, as_table=True)
        ref = state.refs.get(version)
        is_branch = ref is not None and ref.kind is RefKind.BRANCH
        return IcebergRows(state.fence, dict(settings), int(state.named(version)), as_table=is_branch)

    def spark_source(self, state: State, version: str | None) -> SparkSource:
        """Returns the metadata that was loaded, and a version in it: Iceberg reads branches by the table's schema."""
        from firnline.ports.inspect import SparkSource

        return SparkSource("iceberg", state.fence, {} if version is None else {"versionAsOf": version})


KIT = IcebergKit()
