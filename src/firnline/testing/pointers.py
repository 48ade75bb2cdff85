"""A SQL catalog as other writers use it: rows made, moved, renamed and dropped behind firnline's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

CATALOG = "lake"
NAMESPACE = "db"

_SCHEMA = """
CREATE TABLE iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000) NOT NULL, PRIMARY KEY (catalog_name, namespace, property_key));
INSERT INTO iceberg_namespace_properties VALUES ('lake', 'db', 'exists', 'true');
"""
_MINE = "catalog_name = 'lake' AND table_namespace = 'db' AND table_name = ?"


class Pointers:
    """The pointers of one catalog in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.path}"

    def create(self) -> None:
        """Makes the empty catalog. A test's database need not survive a power cut."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript("PRAGMA synchronous=OFF;" + _SCHEMA)

    def names(self) -> list[str]:
        with self._connected() as connection:
            return [row[0] for row in connection.execute("SELECT table_name FROM iceberg_tables ORDER BY table_name")]

    def get(self, table: str) -> str | None:
        with self._connected() as connection:
            row = connection.execute(f"SELECT metadata_location FROM iceberg_tables WHERE {_MINE}", (table,)).fetchone()
        return None if row is None else str(row[0])

    def swap(self, table: str, expected: str, new: str) -> bool:
        """Tells whether the pointer stood at `expected` and was moved."""
        values = "metadata_location = ?, previous_metadata_location = ?"
        query = f"UPDATE iceberg_tables SET {values} WHERE {_MINE} AND metadata_location = ?"
        with self._connected() as connection:
            return connection.execute(query, (new, expected, table, expected)).rowcount == 1

    def register(self, table: str, location: str) -> None:
        with self._connected() as connection:
            connection.execute(
                "INSERT INTO iceberg_tables VALUES ('lake', 'db', ?, ?, NULL, 'TABLE')", (table, location)
            )

    def drop(self, table: str) -> None:
        with self._connected() as connection:
            connection.execute(f"DELETE FROM iceberg_tables WHERE {_MINE}", (table,))

    def rename(self, table: str, new: str) -> None:
        with self._connected() as connection:
            connection.execute(f"UPDATE iceberg_tables SET table_name = ? WHERE {_MINE}", (new, table))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            connection.execute("PRAGMA synchronous=OFF")
            yield connection
