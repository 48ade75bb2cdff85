"""The SQL catalog that Iceberg's JdbcCatalog and PyIceberg's SqlCatalog share: rows of `iceberg_tables`.

Reading and writing are two connections. The reading one cannot write (SQLite opens the file read-only) and neither
ever creates a table or a file, so looking at a catalog provably changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

from firnline.catalogs.connections import Connections, shown
from firnline.catalogs.troubles import explained, no_such_table
from firnline.errors import UnreadableMetadata, UsageError
from firnline.ports.catalogs import SwapOutcome, TableName
from firnline.ports.formats import UndoWindow

_TABLE = "iceberg_tables"
_VIEW = "VIEW"
_SEPARATOR = "."


class CatalogRows:
    """What the database's own columns allow to ask.

    Newer catalogs keep views beside tables, told by `iceberg_type`. What is not known to be a view counts as a table.
    """

    def __init__(self, connection: sa.Connection, names: Sequence[str], catalog: str, stored: str | None) -> None:
        self.table = sa.table(_TABLE, *(sa.column(name) for name in names))
        catalogs = connection.scalars(sa.select(self.table.c.catalog_name).distinct())
        self.stored = frozenset(str(name) for name in catalogs)
        self.name = _stored_name(self.stored, catalog) if stored is None else stored
        self.mine = self.table.c.catalog_name == self.name
        if "iceberg_type" in names:
            kind = self.table.c.iceberg_type
            self.mine = sa.and_(self.mine, sa.or_(kind != _VIEW, kind.is_(None)))

    def named(self, table: TableName) -> sa.ColumnElement[bool]:
        columns = self.table.c
        return sa.and_(columns.table_namespace == _SEPARATOR.join(table.namespace), columns.table_name == table.name)


def levels_of(namespace: str) -> tuple[str, ...]:
    """Returns the levels of a namespace that a row has as one text, which they make again; none for an empty one."""
    return tuple(namespace.split(_SEPARATOR)) if namespace else ()


def _column_names(connection: sa.Connection) -> list[str]:
    try:
        return [column["name"] for column in sa.inspect(connection).get_columns(_TABLE)]
    except NoSuchTableError as error:
        raise UsageError(
            f"the database {connection.engine.url.database} is no Iceberg catalog: it has no table {_TABLE}",
            "check the uri; a first table made by PyIceberg or Spark makes a catalog of a database",
        ) from error


def _stored_name(stored: Set[str], catalog: str) -> str:
    """Returns the catalog's name as its rows spell it.

    PyIceberg lower-cases names in its configuration but writes rows under the name its caller used, so a
    single spelling that differs in case only is the same catalog. Two such spellings are not guessed
    between.
    """
    alike = sorted(name for name in stored if name.lower() == catalog.lower())
    if catalog in stored or not alike:
        return catalog
    if len(alike) > 1:
        raise UsageError(f"the catalog {catalog} may be any of {', '.join(alike)}", "spell it as it is stored")
    return alike[0]


class SqlCatalog:
    """One catalog of a database. A pickled copy opens its own connections.

    Its rows have the catalog's own name, however the case of that is written; or `stored`, where that is given.
    """

    def __init__(self, name: str, uri: str, stored: str | None = None) -> None:
        self._name = name
        self._uri = uri
        self._stored = stored
        self._connections = Connections(uri)
        self._columns: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def format(self) -> str:
        return "iceberg"

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
            rows = self._rows(connection, self._columns)
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

    def _rows(self, connection: sa.Connection, known: Sequence[str] = ()) -> CatalogRows:
        """Returns the rows, by columns that are known already or as the database has them now.

        Every listing asks the database, which takes several requests; to find one table of a thousand it was asked
        before. A column that came since tells views from tables: without it a view counts as a table.
        """
        if not known:
            self._columns = _column_names(connection)
        return CatalogRows(connection, known or self._columns, self._name, self._stored)

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
