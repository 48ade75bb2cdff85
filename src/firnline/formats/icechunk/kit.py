"""Icechunk's kit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from firnline.catalogs.icechunk import IcechunkFolders
from firnline.formats.icechunk import names
from firnline.model.snapshots import SnapshotId
from firnline.ports.stores import Get, Read, ReadWrite

if TYPE_CHECKING:
    from firnline.formats.icechunk.committing.commits import IcechunkCommits
    from firnline.formats.icechunk.table import IcechunkFormat
    from firnline.formats.icechunk.tables import IcechunkTables


class IcechunkKit:
    """Repositories in file systems and object stores, which no catalog lists."""

    name = "icechunk"
    documents = names.DOCUMENTS
    folders = (names.CHUNKS, names.MANIFESTS, names.SNAPSHOTS, names.TRANSACTIONS)
    known_by_folder = True

    def has_table(self, store: Read, location: str) -> bool:
        from firnline.formats.icechunk.reading.detection import has_repository

        return has_repository(store, location)

    def table_folder(self, document: str) -> str:
        return names.table_folder(document) or document

    def format(self, store: Read, trusted: frozenset[SnapshotId] = frozenset()) -> IcechunkFormat:
        from firnline.formats.icechunk.table import IcechunkFormat

        return IcechunkFormat(store, trusted)

    def folder_tables(self, store: Read) -> IcechunkFolders:
        return IcechunkFolders(store, self.has_table)

    def library_commits(self, store: ReadWrite, settings: Mapping[str, str], location: str) -> IcechunkCommits:
        from firnline.formats.icechunk.committing.commits import IcechunkCommits

        return IcechunkCommits(store, settings, location)

    def inspect(self, store: Get) -> IcechunkTables:
        from firnline.formats.icechunk.tables import IcechunkTables

        return IcechunkTables(store)


KIT = IcechunkKit()
