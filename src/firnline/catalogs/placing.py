"""The first row of a table in a SQL catalog, and the tables of the catalog itself, in a database that has none.

They are those of Iceberg's JdbcCatalog (V1) and of PyIceberg's SqlCatalog, which both list a namespace that has a
property, and write `exists` for one that has no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, ProgrammingError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateTable

from firnline.catalogs.rows import KIND, SEPARATOR, TABLES, CatalogRows, stored_name
from firnline.errors import UsageError
from firnline.ports.catalogs import TableName

_TABLE = "TABLE"
_EXISTS = {"property_key": "exists", "property_value": "true"}
_METADATA = sa.MetaData()
_ROWS = sa.Table(
    TABLES,
    _METADATA,
    *(sa.Column(name, sa.String(255), primary_key=True) for name in ("catalog_name", "table_namespace", "table_name")),
    *(sa.Column(name, sa.String(1000)) for name in ("metadata_location", "previous_metadata_location")),
    sa.Column(KIND, sa.String(5)),
)
_SPACES = sa.Table(
    "iceberg_namespace_properties",
    _METADATA,
    *(sa.Column(name, sa.String(255), primary_key=True) for name in ("catalog_name", "namespace", "property_key")),
    sa.Column("property_value", sa.String(1000), nullable=False),
)


def require_levels(table: TableName) -> None:
    """Raises UsageError for a namespace that rows cannot tell from another: they have its levels as one text."""
    if any(SEPARATOR in level or not level for level in table.namespace):
        raise UsageError(
            f"a SQL catalog has no row for {table}: a level of its namespace is empty or has a {SEPARATOR!r} in it",
            "choose another namespace for it, or a REST catalog",
        )


def has_tables(connection: sa.Connection) -> bool:
    """Tells whether the database has the rows that every look at a catalog reads."""
    return sa.inspect(connection).has_table(TABLES)


@contextmanager
def empty_catalog() -> Iterator[sa.Connection]:
    """Yields a catalog without any row, in memory: so a database reads that has none yet."""
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    _METADATA.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def make_tables(connection: sa.Connection) -> None:
    """Makes those of the catalog's tables that the database lacks, and commits. What is there stays as it is."""
    for each in _METADATA.sorted_tables:
        if not sa.inspect(connection).has_table(each.name):
            _make(connection, each)


def _make(connection: sa.Connection, table: sa.Table) -> None:
    try:
        connection.execute(CreateTable(table, if_not_exists=True))
        connection.commit()
    except (IntegrityError, ProgrammingError):
        # On PostgreSQL two that make one table at once both see that it is absent, and one fails.
        connection.rollback()
        if not sa.inspect(connection).has_table(table.name):
            raise


def insert_table(connection: sa.Connection, rows: CatalogRows, table: TableName, metadata: str) -> None:
    """Inserts the row of a table, after those of its namespaces. Raises IntegrityError where its name is taken.

    The namespaces go from the outermost in, so that two who insert the same ones wait for each other in one order.
    """
    name = rows.name if rows.is_named else _name_by_namespaces(connection, rows.name)
    spaces = list(accumulate(table.namespace, lambda outer, level: f"{outer}{SEPARATOR}{level}"))
    known = set(connection.scalars(sa.select(_SPACES.c.namespace).where(_SPACES.c.catalog_name == name)))
    for space in spaces:
        if space not in known:
            _insert_space(connection, name, space)
    values = {
        "catalog_name": name,
        "table_namespace": SEPARATOR.join(table.namespace),
        "table_name": table.name,
        "metadata_location": metadata,
        **({KIND: _TABLE} if rows.has_kinds else {}),
    }
    connection.execute(sa.insert(rows.table).values(values))


def name_taken(table: TableName) -> UsageError:
    return UsageError(f"the catalog has a view named {table}", "drop the view, or place the table under another name")


def _name_by_namespaces(connection: sa.Connection, catalog: str) -> str:
    """Returns how a catalog without tables is spelled: it may have namespaces already."""
    return stored_name(set(connection.scalars(sa.select(_SPACES.c.catalog_name).distinct())), catalog)


def _insert_space(connection: sa.Connection, catalog: str, space: str) -> None:
    """Inserts a namespace, unless another program does so in this very moment."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    values = {"catalog_name": catalog, "namespace": space, **_EXISTS}
    connection.execute(insert(_SPACES).values(values).on_conflict_do_nothing())
