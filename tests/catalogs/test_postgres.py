"""The SQL catalog on PostgreSQL: the contract, connections that break, users who may not write, old schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from sqlalchemy import event

from firnline.catalogs.commits import SqlCommits
from firnline.catalogs.connections import Connections
from firnline.catalogs.sql import SqlCatalog
from firnline.errors import AccessDenied, BadCredentials, NoSuchTable, StoreError, Unreachable, UsageError
from firnline.ports.catalogs import Catalog, Commit, SwapOutcome, TableName
from firnline.stores.objects import ObjectStores
from firnline.testing.catalogs import CatalogContract, advance, read_version
from harness.servers import Server
from harness.servers.postgres import execute

from .lakes import TABLES, make_tables

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

EVENTS = TableName("lake", ("eu", "west"), "events")
SECRET = "hunter2-very-secret"


@pytest.fixture
def uri(database: Server, tmp_path: Path) -> str:
    """A database in which PyIceberg created four tables."""
    uri = database.settings["uri"]
    theirs = PyIcebergCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    make_tables(theirs)
    theirs.close()
    return uri


def every_row(uri: str) -> list[Any]:
    with sa.create_engine(uri).connect() as connection:
        return list(connection.execute(sa.text("select * from iceberg_tables order by 1, 2, 3")))


@pytest.mark.full_but(
    "test_a_stale_expectation_loses_and_changes_nothing",
    "test_the_same_commit_changes_the_table_once",
    "test_a_commit_that_landed_is_told_from_one_that_did_not_by_its_record_alone",
    "test_a_fence_keeps_a_commit_that_is_still_on_its_way_from_landing",
    "test_of_racing_threads_one_wins",
)
class TestPostgres(CatalogContract):
    @pytest.fixture
    def catalog(self, uri: str) -> Catalog:
        self.uri = uri
        return SqlCatalog("lake", uri)

    @pytest.fixture
    def commits(self, catalog: SqlCatalog) -> Commit:
        return SqlCommits(catalog, ObjectStores())

    @pytest.fixture
    def table(self) -> TableName:
        return EVENTS

    @pytest.fixture
    def absent(self) -> TableName:
        return TableName("lake", ("sales",), "evnts")

    def contents(self, catalog: Catalog) -> object:
        return every_row(self.uri)


@pytest.mark.parametrize("driver", ["postgresql", "postgresql+psycopg2", "postgresql+psycopg"])
def test_settings_that_name_another_driver_work(uri: str, driver: str) -> None:
    other = uri.replace("postgresql+psycopg", driver)
    assert len(list(SqlCatalog("lake", other).tables())) == len(TABLES)


def test_the_reading_side_cannot_write(uri: str) -> None:
    with (
        Connections(uri).reader().connect() as connection,
        pytest.raises(sa.exc.InternalError, match="read-only transaction"),
    ):
        connection.exec_driver_sql("delete from iceberg_tables")
    assert len(every_row(uri)) == len(TABLES)


def test_a_database_that_its_owner_made_read_only_stays_so(database: Server, uri: str) -> None:
    name = sa.make_url(uri).database
    execute(database, f'alter database "{name}" set default_transaction_read_only = on')
    catalog = SqlCatalog("lake", uri)
    before = catalog.locate(EVENTS)
    with pytest.raises(StoreError, match="read-only"):
        catalog.swap(EVENTS, before, before + "-moved")
    assert catalog.locate(EVENTS) == before


def test_a_connection_that_is_lost_during_the_commit_leaves_the_outcome_unknown(database: Server, uri: str) -> None:
    """The server ends the session just before it gets the COMMIT: nobody can tell, and reading back can."""
    catalog = SqlCatalog("lake", uri)
    commits = SqlCommits(catalog, ObjectStores())
    base = catalog.locate(EVENTS)
    attempt = advance(commits, ObjectStores(), EVENTS, base, "cut")
    others = "pid <> pg_backend_pid() and datname = current_database()"
    engine = catalog._connections.writer()

    def cut(connection: sa.Connection) -> None:
        execute(database, f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")

    event.listen(engine, "commit", cut)
    assert commits.commit(attempt) is SwapOutcome.UNKNOWN
    event.remove(engine, "commit", cut)
    assert catalog.locate(EVENTS) == base
    assert not commits.landed(attempt.proof, read_version(ObjectStores(), base))
    assert commits.commit(attempt) is SwapOutcome.DONE
    assert commits.landed(attempt.proof, read_version(ObjectStores(), catalog.locate(EVENTS)))


def test_connections_that_the_server_ended_are_opened_again(database: Server, uri: str) -> None:
    catalog = SqlCatalog("lake", uri)
    before = catalog.locate(EVENTS)
    others = "pid <> pg_backend_pid() and datname = current_database()"
    execute(database, f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")
    assert catalog.locate(EVENTS) == before


def test_a_user_who_may_only_read_plans_and_is_told_at_the_commit(database: Server, uri: str) -> None:
    name = "reader_" + database.url.rpartition("-")[2]
    execute(database, f"create role {name} login")
    execute(database, f"grant select on iceberg_tables to {name}")
    catalog = SqlCatalog("lake", uri.replace("firnline@", f"{name}@"))
    assert len(list(catalog.tables())) == len(TABLES)
    before = every_row(uri)
    with pytest.raises(AccessDenied, match="permission denied") as denied:
        catalog.swap(EVENTS, catalog.locate(EVENTS), "new")
    assert "plans work" in denied.value.hint
    assert every_row(uri) == before


def test_a_table_that_is_dropped_meanwhile_is_no_lost_race(uri: str) -> None:
    catalog = SqlCatalog("lake", uri)
    commits = SqlCommits(catalog, ObjectStores())
    attempt = advance(commits, ObjectStores(), EVENTS, catalog.locate(EVENTS), "late")
    PyIcebergCatalog("lake", uri=uri).drop_table("eu.west.events")
    with pytest.raises(NoSuchTable):
        commits.commit(attempt)


def test_the_first_schema_without_types_works(database: Server, uri: str) -> None:
    with sa.create_engine(uri).connect() as connection:
        names = {column["name"] for column in sa.inspect(connection).get_columns("iceberg_tables")}
    if "iceberg_type" in names:
        execute(database, "alter table iceberg_tables drop column iceberg_type")
    catalog = SqlCatalog("lake", uri)
    assert len(list(catalog.tables())) == len(TABLES)
    assert catalog.swap(EVENTS, catalog.locate(EVENTS), "new") is SwapOutcome.DONE


def test_views_beside_tables_are_left_alone(database: Server, uri: str) -> None:
    execute(database, "alter table iceberg_tables add column if not exists iceberg_type varchar(5)")
    execute(database, "update iceberg_tables set iceberg_type = 'VIEW' where table_name = 'orders'")
    catalog = SqlCatalog("lake", uri)
    assert "lake.sales.orders" not in [str(table) for table in catalog.tables()]
    with pytest.raises(NoSuchTable):
        catalog.swap(TableName("lake", ("sales",), "orders"), "x", "y")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda uri: uri.replace("firnline@", f"nobody_here:{SECRET}@"), BadCredentials),
        (lambda uri: uri.rpartition("/")[0] + "/no_such_database", StoreError),
        (lambda uri: f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/db", Unreachable),
        (lambda uri: f"postgresql+psycopg://me:{SECRET}@no-such-host.invalid/db", Unreachable),
        (lambda uri: f"::{SECRET}::", UsageError),
    ],
)
def test_each_failure_is_its_own_error_and_no_password_is_shown(uri: str, change: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as failed:
        list(SqlCatalog("lake", change(uri)).tables())
    assert failed.value.hint  # type: ignore[attr-defined]
    assert SECRET not in failed.value.message  # type: ignore[attr-defined]
    assert failed.value.__cause__ is None
