"""The SQL catalog that Iceberg's JdbcCatalog and PyIceberg's SqlCatalog share: one row of `iceberg_tables`
per table.

Reading and writing are two connections. The reading one cannot write (SQLite opens the file read-only) and
neither ever creates a table or a file, so looking at a catalog provably changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from firnline.catalogs.connections import Connections, shown
from firnline.catalogs.near import no_such_table
from firnline.catalogs.rows import Rows, levels_of
from firnline.catalogs.troubles import explained
from firnline.errors import UnreadableMetadata
from firnline.ports.catalogs import SwapOutcome, TableName
from firnline.ports.formats import UndoWindow


class SqlCatalog:
    """One catalog of a database. A pickled copy opens its own connections.

    Its rows have the catalog's own name, however the case of that is written; or `stored`, where that is given.
    """

    def __init__(self, name: str, uri: str, stored: str | None = None) -> None:
        self._name = name
        self._uri = uri
        self._stored = stored
        self._connections = Connections(uri)

    @property
    def name(self) -> str:
        return self._name

    @property
    def undo(self) -> UndoWindow:
        return UndoWindow.AFTER_COMMIT

    def __reduce__(self) -> tuple[type[SqlCatalog], tuple[str, str, str | None]]:
        return SqlCatalog, (self._name, self._uri, self._stored)

    def tables(self) -> Iterator[TableName]:
        with self._reading() as connection:
            rows = self._rows(connection)
            query = sa.select(rows.table.c.table_namespace, rows.table.c.table_name).where(rows.mine)
            found = [TableName(self._name, levels_of(space), name) for space, name in connection.execute(query)]
        return iter(sorted(found, key=lambda table: (table.namespace, table.name)))

    @property
    def stored(self) -> str:
        """The name of this catalog in its rows."""
        with self._reading() as connection:
            return self._rows(connection).name

    def others(self) -> list[str]:
        """Returns the names of the other catalogs that have rows in this one's database, as they are stored."""
        with self._reading() as connection:
            rows = self._rows(connection)
            return sorted(rows.stored - {rows.name})

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        with self._reading() as connection:
            rows = self._rows(connection)
            columns = rows.table.c
            query = sa.select(columns.table_namespace, columns.table_name, columns.metadata_location).where(rows.mine)
            found = [
                (TableName(self._name, levels_of(space), name), place)
                for space, name, place in connection.execute(query)
            ]
        return iter(found)

    def locate(self, table: TableName) -> str:
        with self._reading() as connection:
            rows = self._rows(connection)
            query = sa.select(rows.table.c.metadata_location).where(rows.mine, rows.named(table))
            found = connection.scalars(query).all()
        if not found:
            raise no_such_table(table, self.tables())
        if not found[0]:
            raise UnreadableMetadata(
                f"the catalog's row of {table} names no metadata", "register the table again, or drop its row"
            )
        return str(found[0])

    def vended(self, table: TableName) -> Mapping[str, str]:
        return {}

    def swap(self, table: TableName, expected: str, new: str) -> SwapOutcome:
        """Moves the pointer in one UPDATE that only matches where it stands at `expected`.

        A failure before the commit was sent changed nothing and raises StoreError; one while it was sent is
        UNKNOWN.
        """
        with self._working(), self._connections.writer().connect() as connection:
            if self._update(connection, table, expected, new):
                return _committed(connection)
        self.locate(table)  # raises NoSuchTable, which is another thing than a lost race
        return SwapOutcome.LOST

    def close(self) -> None:
        """Gives the connections back; the catalog opens new ones when it is asked again."""
        self._connections.close()

    def _update(self, connection: sa.Connection, table: TableName, expected: str, new: str) -> int:
        rows = self._rows(connection)
        unmoved = rows.table.c.metadata_location == expected
        update = sa.update(rows.table).where(rows.mine, rows.named(table), unmoved)
        values = {"metadata_location": new, "previous_metadata_location": expected}
        return connection.execute(update.values(values)).rowcount

    def _rows(self, connection: sa.Connection) -> Rows:
        return Rows(connection, self._name, self._stored)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._working(), self._connections.reader().connect() as connection:
            yield connection

    @contextmanager
    def _working(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise explained(error, f"catalog {self._name} at {shown(self._uri)}", self._uri) from None


def _committed(connection: sa.Connection) -> SwapOutcome:
    try:
        connection.commit()
    except SQLAlchemyError:
        return SwapOutcome.UNKNOWN
    return SwapOutcome.DONE
