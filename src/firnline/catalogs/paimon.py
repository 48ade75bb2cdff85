"""Paimon tables known by their folder: the file system is the catalog, a folder `schema` the sign of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from firnline.catalogs.paths import PathTables
from firnline.errors import NoSuchTable
from firnline.model.locations import join
from firnline.ports.catalogs import TableName

_DATABASE = ".db"
_SCHEMA = re.compile(r"schema-[0-9]+")


class PaimonFolders(PathTables):
    """The read side: path tables that are found by another sign."""

    def has_table(self, location: str) -> bool:
        """Tells whether a Paimon table is in this folder. One may carry Iceberg metadata too, for other engines."""
        names = (found.key.rpartition("/")[2] for found in self._store.list(join(location, "schema")))
        return any(_SCHEMA.fullmatch(name) for name in names)

    def below(self, warehouse: str, folders: Callable[[str], Iterable[str]]) -> Iterator[TableName]:
        """Yields the tables of a warehouse: its folders `*.db` are databases, a table's folder lies in one.

        `folders` returns those that are directly in one: a listing of everything would name every data file.
        """
        databases = sorted(each for each in folders(warehouse) if each.rstrip("/").endswith(_DATABASE))
        for table in (table for database in databases for table in sorted(folders(database))):
            if self.has_table(table):
                yield TableName("", "", table.rstrip("/"))

    def locate(self, table: TableName) -> str:
        if not self.has_table(table.name):
            raise NoSuchTable(f"no Paimon table at {table.name}", "a table's folder has a folder `schema` in it")
        return table.name
