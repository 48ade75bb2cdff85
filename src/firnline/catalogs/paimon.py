"""Paimon tables known by their folder: the file system is the catalog, a folder `schema` the sign of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from firnline.catalogs.paths import PathTables
from firnline.catalogs.versions import is_metadata_file
from firnline.errors import NoSuchTable
from firnline.model.locations import join
from firnline.ports.catalogs import TableName

Folders = Callable[[str], Iterable[str]]
_DATABASE = ".db"
_SCHEMA = re.compile(r"schema-[0-9]+")
_BUCKET = re.compile(r"bucket-(?:[0-9]+|postpone)")
"""Every data file lies in such a folder, below those of its partition."""


class PaimonFolders(PathTables):
    """The read side: path tables that are found by another sign."""

    @property
    def format(self) -> str:
        return "paimon"

    def passed(self, table: TableName, current: str) -> Iterator[str]:
        """Yields nothing: the folder itself is the version that readers open."""
        return iter(())

    def has_table(self, location: str) -> bool:
        """Tells whether a Paimon table is in this folder. One may carry Iceberg metadata too, for other engines."""
        names = (found.key.rpartition("/")[2] for found in self._store.list(join(location, "schema")))
        return any(_SCHEMA.fullmatch(name) for name in names)

    def below(self, warehouse: str, folders: Folders) -> Iterator[TableName]:
        """Yields the tables of a warehouse: its folders `*.db` are databases, a table's folder lies in one. Where a
        database is named itself, its tables.

        `folders` returns those that are directly in one: a listing of everything would name every data file.
        """
        for database in sorted(each for each in (warehouse, *folders(warehouse)) if _is_database(each)):
            yield from self._in(database, folders)

    def around(self, table: str, folders: Folders) -> Iterator[TableName]:
        """Yields the tables of the warehouse that a table is in, itself too; where its folder is in no database, the
        tables beside it.
        """
        database, _, _ = table.rstrip("/").rpartition("/")
        if not _is_database(database):
            return self._in(database, folders)
        return self.below(database.rpartition("/")[0], folders)

    def _in(self, database: str, folders: Folders) -> Iterator[TableName]:
        found = (table.rstrip("/") for table in sorted(folders(database)))
        return (TableName.at(table) for table in found if self.has_table(table))

    def table_around(self, folder: str) -> str | None:
        """Returns the innermost table in whose folder a bucket lies; None for what is no bucket, or of no table."""
        outer, _, bucket = folder.rstrip("/").rpartition("/")
        if not _BUCKET.fullmatch(bucket):
            return None
        while outer.rpartition("/")[2]:
            if self.has_table(outer):
                return outer
            outer = outer.rpartition("/")[0]
        return None

    def mirrors(self, location: str) -> Iterator[str]:
        """Yields every metadata file for Iceberg's readers that Paimon's writers keep for a table: in its own folder,
        and where a catalog of the warehouse looks. Options do not tell: a job may bring its own, and they change.
        """
        for folder in _mirror_folders(location):
            yield from sorted(join(folder, name) for name in self._store.names(folder) if is_metadata_file(name))

    def locate(self, table: TableName) -> str:
        if not self.has_table(table.name):
            raise NoSuchTable(f"no Paimon table at {table.name}", "a table's folder has a folder `schema` in it")
        return table.name


def _mirror_folders(location: str) -> Iterator[str]:
    yield join(location, "metadata")
    database, _, table = location.rstrip("/").rpartition("/")
    if _is_database(database):
        warehouse, _, name = database.rpartition("/")
        yield join(warehouse, "iceberg", name.removesuffix(_DATABASE), table, "metadata")


def _is_database(folder: str) -> bool:
    return folder.rstrip("/").endswith(_DATABASE)
