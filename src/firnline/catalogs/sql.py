"""The SQL catalog that Iceberg's JdbcCatalog and PyIceberg's SqlCatalog share: rows of `iceberg_tables`.

Reading and writing are two connections. The reading one cannot write (SQLite opens the file read-only) and neither
ever creates a table or a file, so looking at a catalog provably changes nothing. Only the first table that is placed in
a new catalog makes that, over a connection of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from firnline.catalogs.connections import Connections, shown
from firnline.catalogs.placing import empty_catalog, has_tables, insert_table, make_tables, name_taken, require_levels
from firnline.catalogs.rows import CatalogRows, column_names, levels_of
from firnline.catalogs.troubles import explained, no_such_table
from firnline.errors import UnreadableMetadata
from firnline.ports.catalogs import SwapOutcome, TableName
from firnline.ports.formats import UndoWindow


class SqlCatalog:
    """One catalog of a database. A pickled copy opens its own connections.

    Its rows have the catalog's own name, however the case of that is written; or `stored`, where that is given. One
    that `may_be_new` reads as an empty catalog where its database has none yet; any other is then taken for misspelled,
    because all files of a catalog that seems empty would look like garbage.
    """

    def __init__(self, name: str, uri: str, stored: str | None = None, may_be_new: bool = False) -> None:
        self._name = name
        self._uri = uri
        self._stored = stored
        self._may_be_new = may_be_new
        self._connections = Connections(uri)
        self._columns: list[str] = []
        self._seen = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def format(self) -> str:
        return "iceberg"

    @property
    def undo(self) -> UndoWindow:
        return UndoWindow.AFTER_COMMIT

    def __reduce__(self) -> tuple[type[SqlCatalog], tuple[str, str, str | None, bool]]:
        return SqlCatalog, (self._name, self._uri, self._stored, self._may_be_new)

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
            return iter(self._located(connection, self._rows(connection)))

    def watched(self) -> Callable[[], Sequence[tuple[TableName, str | None]]]:
        """Returns a look that asks once how the rows are spelled. In a database without any, the next one may be
        spelled otherwise: then it is asked again.
        """
        known: list[CatalogRows] = []

        def look() -> Sequence[tuple[TableName, str | None]]:
            with self._reading() as connection:
                rows = known[0] if known else self._rows(connection)
                found = self._located(connection, rows)
            if found and not known:
                known.append(rows)
            return found

        return look

    def _located(self, connection: sa.Connection, rows: CatalogRows) -> list[tuple[TableName, str | None]]:
        columns = rows.table.c
        query = sa.select(columns.table_namespace, columns.table_name, columns.metadata_location).where(rows.mine)
        return [
            (TableName(self._name, levels_of(space), name), place) for space, name, place in connection.execute(query)
        ]

    def locate(self, table: TableName) -> str:
        with self._reading() as connection:
            found = self._standing(connection, table)
        if found is None:
            raise no_such_table(table, self.tables())
        if not found:
            raise UnreadableMetadata(
                f"the catalog's row of {table} names no metadata", "register the table again, or drop its row"
            )
        return found

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

    def place_table(self, table: TableName, expected: str | None, metadata: str) -> SwapOutcome:
        """Inserts the table's row, or moves it in one UPDATE as `swap` does; of two who try at once, one succeeds.

        A failure before the commit was sent changed no table and raises StoreError; one while it was sent is UNKNOWN.
        Raises UsageError where the name is a view's, or one that rows cannot tell from another.
        """
        require_levels(table)
        with self._working():
            now = self._placed_at(table)
            if now == expected != metadata:
                if expected is None:
                    return self._insert(table, metadata)
                with self._connections.writer().connect() as connection:
                    if self._update(connection, table, expected, metadata):
                        return _committed(connection)
                now = self._placed_at(table)
        return SwapOutcome.DONE if now == metadata else SwapOutcome.LOST

    def _insert(self, table: TableName, metadata: str) -> SwapOutcome:
        """Returns DONE where another process has inserted the very same meanwhile: it may be our own request, sent
        again.
        """
        with self._connections.maker().connect() as connection:
            make_tables(connection)
            rows = self._rows(connection)
            try:
                insert_table(connection, rows, table, metadata)
            except IntegrityError:
                connection.rollback()
                now = self._standing(connection, table)
                if now is None and rows.is_taken(connection, table):
                    raise name_taken(table) from None
                return SwapOutcome.DONE if now == metadata else SwapOutcome.LOST
            return _committed(connection)

    def _placed_at(self, table: TableName) -> str | None:
        """Returns which version of the table the catalog has, as the location of its metadata, which may be empty; None
        if there is no such table, or no catalog yet.
        """
        with self._looking(may_be_new=True) as connection:
            return self._standing(connection, table)

    def _standing(self, connection: sa.Connection, table: TableName) -> str | None:
        """Returns the metadata that the table's row names, which may be empty; None where it has no row."""
        rows = self._rows(connection, self._columns)
        query = sa.select(rows.table.c.metadata_location).where(rows.mine, rows.named(table))
        found = connection.scalars(query).all()
        return (found[0] or "") if found else None

    def close(self) -> None:
        """Gives the connections back; the catalog opens new ones when it is asked again."""
        self._connections.close()

    def _update(self, connection: sa.Connection, table: TableName, expected: str, new: str) -> int:
        rows = self._rows(connection)
        unmoved = rows.table.c.metadata_location == expected
        update = sa.update(rows.table).where(rows.mine, rows.named(table), unmoved)
        values = {"metadata_location": new, "previous_metadata_location": expected}
        return connection.execute(update.values(values)).rowcount

    def _rows(self, connection: sa.Connection, known: Sequence[str] = ()) -> CatalogRows:
        """Returns the rows, by columns that are known already or as the database has them now.

        Every listing asks the database, which takes several requests; to find one table of a thousand it was asked
        before. A column that came since tells views from tables: without it a view counts as a table.
        """
        if not known:
            self._columns = column_names(connection)
        return CatalogRows(connection, known or self._columns, self._name, self._stored)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._working(), self._looking(self._may_be_new) as connection:
            yield connection

    @contextmanager
    def _looking(self, may_be_new: bool) -> Iterator[sa.Connection]:
        if not may_be_new or self._is_there():
            with self._connections.reader().connect() as connection:
                yield connection
            return
        with empty_catalog() as connection:
            try:
                yield connection
            finally:
                self._columns = []  # another program may make the catalog, with other columns

    def _is_there(self) -> bool:
        if not self._seen and self._connections.is_there():
            with self._connections.reader().connect() as connection:
                self._seen = has_tables(connection)
        return self._seen

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
