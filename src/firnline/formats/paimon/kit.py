"""Paimon's kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from firnline.catalogs.paimon import PaimonFolders
from firnline.catalogs.versions import counted_version
from firnline.formats.paimon import names
from firnline.model.snapshots import SnapshotId
from firnline.ports.kits import ListFolders
from firnline.ports.retire import Retire
from firnline.ports.stores import Get, Read, ReadWrite

if TYPE_CHECKING:
    from firnline.formats.paimon.committing.commits import PaimonCommits
    from firnline.formats.paimon.rows import PaimonRows
    from firnline.formats.paimon.table import PaimonFormat
    from firnline.formats.paimon.tables import PaimonTables
    from firnline.ports.formats import State
    from firnline.ports.inspect import SparkSource


class PaimonKit:
    """Tables in file systems and object stores, which no catalog lists."""

    name = "paimon"
    documents = (names.DOCUMENT,)
    folders = ("manifest", "snapshot")
    known_by_folder = True
    runtime = "paimon-spark"

    def has_table(self, store: Read, location: str) -> bool:
        return PaimonFolders(store).has_table(location)

    def table_folder(self, document: str) -> str:
        """Returns the table's folder, also for the schemas of its branches."""
        return names.table_of_schema(document) or document

    def format(self, store: Read, trusted: frozenset[SnapshotId] = frozenset()) -> PaimonFormat:
        """Returns the format. Its lists say how much is in them, so that nobody has to vouch for any."""
        from firnline.formats.paimon.table import PaimonFormat

        return PaimonFormat(store)

    def folder_tables(self, store: Read) -> PaimonFolders:
        return PaimonFolders(store)

    def retiring_commits(self, store: ReadWrite, retire: Retire, location: str) -> PaimonCommits:
        from firnline.formats.paimon.committing.commits import PaimonCommits

        return PaimonCommits(store, retire, location)

    def inspect(self, store: Get) -> PaimonTables:
        from firnline.formats.paimon.tables import PaimonTables

        return PaimonTables(store)

    def rows(self, state: State, settings: Mapping[str, str], version: str | None) -> PaimonRows:
        """Returns the rows. Buckets are reached as pypaimon reaches them, by what the environment says."""
        from firnline.formats.paimon.rows import PaimonRows, selection_of

        return PaimonRows(state.location, selection_of(state, version))

    def spark_source(self, state: State, version: str | None) -> SparkSource:
        from firnline.formats.paimon.rows import selection_of
        from firnline.ports.inspect import SparkSource

        return SparkSource("paimon", state.location, selection_of(state, version))

    def mirrors(self, store: Read, location: str) -> Iterator[str]:
        return PaimonFolders(store).mirrors(location)

    def is_original(self, store: Read, location: str, metadata: Iterable[str]) -> bool:
        """Tells it by the versions that its writers count in the names of that metadata. Catalogs do not: of their
        tables no folder is listed for this.
        """
        counted = any(counted_version(name.rpartition("/")[2]) is not None for name in metadata)
        return counted and self.has_table(store, location)

    def below(self, store: Read, warehouse: str, folders: ListFolders) -> Iterator[str]:
        return (each.name for each in PaimonFolders(store).below(warehouse, folders))

    def around(self, store: Read, location: str, folders: ListFolders) -> Iterator[str]:
        return (each.name for each in PaimonFolders(store).around(location, folders))

    def table_around(self, store: Read, folder: str) -> str | None:
        return PaimonFolders(store).table_around(folder)

    def written(self, store: Read, location: str) -> tuple[str, ...]:
        from firnline.formats.paimon.reading.schema import stored_schema
        from firnline.formats.paimon.reading.state import folders_of

        return folders_of(location, stored_schema(store, location)) if self.has_table(store, location) else ()


KIT = PaimonKit()
