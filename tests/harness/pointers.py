"""A SQL catalog as other writers use it: rows made, moved, renamed and dropped behind firnline's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

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
"""
_MINE = "catalog_name = ? AND table_namespace = ? AND table_name = ?"


class Pointers:
    """The pointers of one namespace in a catalog's database: a SQLite file here, `PostgresPointers` elsewhere."""

    def __init__(self, path: Path, catalog: str = CATALOG, namespace: str = NAMESPACE) -> None:
        self.path = path
        self.catalog = catalog
        self.namespace = namespace

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.path}"

    def create(self) -> None:
        """Makes the empty catalog. A test's database need not survive a power cut."""
        for statement in _SCHEMA.split(";"):
            self._run(statement)
        self.create_namespace()

    def create_namespace(self) -> None:
        """Makes the namespace in a catalog that is there already."""
        values = (self.catalog, self.namespace)
        self._run("INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')", values)

    def names(self) -> list[str]:
        mine = "catalog_name = ? AND table_namespace = ?"
        query = f"SELECT table_name FROM iceberg_tables WHERE {mine} ORDER BY table_name"
        return [str(row[0]) for row in self._run(query, (self.catalog, self.namespace))[0]]

    def get(self, table: str) -> str | None:
        found, _ = self._run(f"SELECT metadata_location FROM iceberg_tables WHERE {_MINE}", self._named(table))
        return str(found[0][0]) if found else None

    def swap(self, table: str, expected: str, new: str) -> bool:
        """Tells whether the pointer stood at `expected` and was moved."""
        values = "metadata_location = ?, previous_metadata_location = ?"
        query = f"UPDATE iceberg_tables SET {values} WHERE {_MINE} AND metadata_location = ?"
        return self._run(query, (new, expected, *self._named(table), expected))[1] == 1

    def register(self, table: str, location: str) -> None:
        self._run("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, 'TABLE')", (*self._named(table), location))

    def drop(self, table: str) -> None:
        self._run(f"DELETE FROM iceberg_tables WHERE {_MINE}", self._named(table))

    def rename(self, table: str, new: str) -> None:
        self._run(f"UPDATE iceberg_tables SET table_name = ? WHERE {_MINE}", (new, *self._named(table)))

    def _named(self, table: str) -> tuple[str, str, str]:
        return self.catalog, self.namespace, table

    def _run(self, statement: str, values: Sequence[str] = ()) -> tuple[list[Any], int]:
        """Returns the rows of one statement, and how many it changed."""
        with self._connected() as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall(), cursor.rowcount

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as connection, connection:
            connection.execute("PRAGMA synchronous=OFF")
            yield connection


class PostgresPointers(Pointers):
    """The same in a PostgreSQL database."""

    def __init__(self, uri: str, catalog: str = CATALOG, namespace: str = NAMESPACE) -> None:
        super().__init__(Path(), catalog, namespace)
        self._uri = uri

    @property
    def uri(self) -> str:
        return self._uri

    def _run(self, statement: str, values: Sequence[str] = ()) -> tuple[list[Any], int]:
        import psycopg

        if not statement.strip():
            return [], 0
        with psycopg.connect(self._uri.replace("+psycopg", "")) as connection:
            cursor = connection.execute(statement.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else [], cursor.rowcount
