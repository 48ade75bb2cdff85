"""The rows of `iceberg_tables` that belong to one catalog and are tables."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError

from firnline.errors import UsageError
from firnline.ports.catalogs import TableName

_TABLE = "iceberg_tables"


class Rows:
    """What the database's own columns allow to ask.

    Newer catalogs keep views beside tables, told by `iceberg_type`.
    """

    def __init__(self, connection: sa.Connection, catalog: str) -> None:
        names = _column_names(connection)
        self.table = sa.table(_TABLE, *(sa.column(name) for name in names))
        self.mine = self.table.c.catalog_name == _stored_name(connection, self.table, catalog)
        if "iceberg_type" in names:
            kind = self.table.c.iceberg_type
            self.mine = sa.and_(self.mine, sa.or_(kind == "TABLE", kind.is_(None)))

    def named(self, table: TableName) -> sa.ColumnElement[bool]:
        columns = self.table.c
        return sa.and_(columns.table_namespace == table.namespace, columns.table_name == table.name)


def _column_names(connection: sa.Connection) -> list[str]:
    try:
        return [column["name"] for column in sa.inspect(connection).get_columns(_TABLE)]
    except NoSuchTableError as error:
        raise UsageError(
            f"the database {connection.engine.url.database} is no Iceberg catalog: it has no table {_TABLE}",
            "check the uri; a first table made by PyIceberg or Spark makes a catalog of a database",
        ) from error


def _stored_name(connection: sa.Connection, table: sa.TableClause, catalog: str) -> str:
    """Returns the catalog's name as its rows spell it.

    PyIceberg lower-cases names in its configuration but writes rows under the name its caller used, so a
    single spelling that differs in case only is the same catalog. Two such spellings are not guessed
    between.
    """
    stored = {str(name) for name in connection.scalars(sa.select(table.c.catalog_name).distinct())}
    alike = sorted(name for name in stored if name.lower() == catalog.lower())
    if catalog in stored or not alike:
        return catalog
    if len(alike) > 1:
        raise UsageError(f"the catalog {catalog} may be any of {', '.join(alike)}", "spell it as it is stored")
    return alike[0]
