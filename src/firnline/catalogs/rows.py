"""The rows of `iceberg_tables`, as far as a database's own columns tell what they mean."""

from __future__ import annotations

from collections.abc import Sequence, Set

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError

from firnline.errors import UsageError
from firnline.ports.catalogs import TableName

TABLES = "iceberg_tables"
SEPARATOR = "."
KIND = "iceberg_type"
_VIEW = "VIEW"


class CatalogRows:
    """What the database's own columns allow to ask.

    Newer catalogs keep views beside tables, told by `iceberg_type`. What is not known to be a view counts as a table.
    """

    def __init__(self, connection: sa.Connection, names: Sequence[str], catalog: str, stored: str | None) -> None:
        self.table = sa.table(TABLES, *(sa.column(name) for name in names))
        catalogs = connection.scalars(sa.select(self.table.c.catalog_name).distinct())
        self.stored = frozenset(str(name) for name in catalogs)
        self.name = stored_name(self.stored, catalog) if stored is None else stored
        self.is_named = stored is not None or self.name in self.stored
        self.mine = self.table.c.catalog_name == self.name
        self.has_kinds = KIND in names
        if self.has_kinds:
            kind = self.table.c[KIND]
            self.mine = sa.and_(self.mine, sa.or_(kind != _VIEW, kind.is_(None)))

    def named(self, table: TableName) -> sa.ColumnElement[bool]:
        columns = self.table.c
        return sa.and_(columns.table_namespace == SEPARATOR.join(table.namespace), columns.table_name == table.name)

    def is_taken(self, connection: sa.Connection, table: TableName) -> bool:
        """Tells whether there is a row of this name, be it a view's."""
        query = sa.select(self.table.c.table_name).where(self.table.c.catalog_name == self.name, self.named(table))
        return connection.scalars(query).first() is not None


def levels_of(namespace: str) -> tuple[str, ...]:
    """Returns the levels of a namespace that a row has as one text, which they make again; none for an empty one."""
    return tuple(namespace.split(SEPARATOR)) if namespace else ()


def column_names(connection: sa.Connection) -> list[str]:
    """Returns the columns of the rows. Raises UsageError where the database is no catalog."""
    try:
        return [column["name"] for column in sa.inspect(connection).get_columns(TABLES)]
    except NoSuchTableError as error:
        raise UsageError(
            f"the database {connection.engine.url.database} is no Iceberg catalog: it has no table {TABLES}",
            "check the uri; a first table made by PyIceberg or Spark makes a catalog of a database",
        ) from error


def stored_name(stored: Set[str], catalog: str) -> str:
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
