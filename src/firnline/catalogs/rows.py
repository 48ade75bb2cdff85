"""The rows of `iceberg_tables` that belong to one catalog and are tables."""

from __future__ import annotations

from collections.abc import Set

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError

from firnline.errors import UsageError
from firnline.ports.catalogs import TableName

_TABLE = "iceberg_tables"
_VIEW = "VIEW"
_SEPARATOR = "."


class Rows:
    """What the database's own columns allow to ask.

    Newer catalogs keep views beside tables, told by `iceberg_type`. What is not known to be a view counts as a table.
    """

    def __init__(self, connection: sa.Connection, catalog: str, stored: str | None) -> None:
        names = _column_names(connection)
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
