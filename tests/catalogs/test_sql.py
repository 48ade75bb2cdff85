"""The SQL catalog keeps the contract on databases that PyIceberg's own SqlCatalog made."""

from __future__ import annotations

import hashlib
import os
import pickle
import shlex
import shutil
import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from sqlalchemy.exc import OperationalError

from firnline.catalogs.commits import SqlCommits
from firnline.catalogs.connections import Connections
from firnline.catalogs.sql import SqlCatalog
from firnline.catalogs.troubles import no_such_table
from firnline.errors import AlreadyExists, NoSuchTable, StoreError, UnreadableMetadata, UsageError
from firnline.ports.catalogs import Catalog, Commit, SwapOutcome, TableName, Version
from firnline.stores.objects import ObjectStores
from firnline.testing.catalogs import CatalogContract, read_version, step_of

from .lakes import TABLES, make_tables


def make_catalog(folder: Path, name: str = "lake", uri: str = "", **properties: str) -> str:
    """Returns the URI of a database in which PyIceberg created four tables."""
    uri = uri or f"sqlite:///{folder}/catalog.db"
    catalog = PyIcebergCatalog(name, uri=uri, warehouse=f"file://{folder}/warehouse", **properties)
    make_tables(catalog)
    catalog.close()
    return uri


def digest(folder: Path) -> dict[str, tuple[str, int]]:
    """Returns the hash and the time of every file."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.glob("catalog.db*")
    }


class TestSqlite(CatalogContract):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        self.folder = tmp_path
        return SqlCatalog("lake", make_catalog(tmp_path))

    @pytest.fixture
    def commits(self, catalog: SqlCatalog) -> Commit:
        return SqlCommits(catalog, ObjectStores())

    @pytest.fixture
    def table(self) -> TableName:
        return TableName("lake", ("eu", "west"), "events")

    @pytest.fixture
    def absent(self) -> TableName:
        return TableName("lake", ("sales",), "evnts")

    def contents(self, catalog: Catalog) -> object:
        return digest(self.folder)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_catalog(tmp_path)


def run(tmp_path: Path, statement: str) -> None:
    connection = sqlite3.connect(tmp_path / "catalog.db")
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_lists_what_pyiceberg_made_and_locates_where_it_points(tmp_path: Path, uri: str) -> None:
    ours = SqlCatalog("lake", uri)
    assert [str(table) for table in ours.tables()] == sorted(f"lake.{name}" for name in TABLES)
    theirs = PyIcebergCatalog("lake", uri=uri).load_table("sales.orders").metadata_location
    assert ours.locate(TableName("lake", ("sales",), "orders")) == theirs


def test_pyiceberg_reads_the_swapped_pointer_and_its_predecessor(tmp_path: Path, uri: str) -> None:
    ours, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    old = ours.locate(orders)
    new = old.replace("00000-", "00001-")
    os.link(old.removeprefix("file://"), new.removeprefix("file://"))
    assert ours.swap(orders, old, new) is SwapOutcome.DONE
    assert PyIcebergCatalog("lake", uri=uri).load_table("sales.orders").metadata_location == new
    rows = sqlite3.connect(tmp_path / "catalog.db").execute(
        "select table_name, previous_metadata_location from iceberg_tables where metadata_location = ?", [new]
    )
    assert rows.fetchall() == [("orders", old)]


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("lake.sales.evnts", "did you mean lake.sales.events"),
        ("lake.sale.orders", "did you mean lake.sales.orders"),
        ("lake.ops.events", "lake.eu.west.events"),
        ("lake.SALES.Orders", "did you mean lake.sales.orders"),
        ("lake.x.zzzzzzzz", "firnline tables"),
    ],
)
def test_near_names_are_suggested_same_namespace_first(uri: str, wanted: str, hint: str) -> None:
    catalog, _, rest = wanted.partition(".")
    namespace, _, name = rest.rpartition(".")
    with pytest.raises(NoSuchTable) as missing:
        SqlCatalog("lake", uri).locate(TableName(catalog, tuple(namespace.split(".")), name))
    assert hint in missing.value.hint


def test_only_near_names_are_suggested_as_a_shell_takes_them() -> None:
    known = [TableName("production", ("sales",), "orders"), TableName("production", ("odd names",), "it's a.b")]
    far = no_such_table(TableName("production", ("nosuch",), "table"), known)
    assert far.hint == "`firnline tables` lists what there is"
    near = no_such_table(TableName("production", ("odd names",), "its a.b"), known)
    (word,) = shlex.split(near.hint.removeprefix("did you mean ").removesuffix("?"))
    assert word == str(known[1])


def test_rows_of_other_catalogs_are_not_seen(uri: str) -> None:
    assert list(SqlCatalog("other", uri).tables()) == []
    with pytest.raises(NoSuchTable):
        SqlCatalog("other", uri).locate(TableName("other", ("sales",), "orders"))


def test_a_view_is_no_table(tmp_path: Path, uri: str) -> None:
    columns = {row[1] for row in sqlite3.connect(tmp_path / "catalog.db").execute("pragma table_info(iceberg_tables)")}
    if "iceberg_type" not in columns:
        run(tmp_path, "alter table iceberg_tables add column iceberg_type varchar(5)")
    run(tmp_path, "update iceberg_tables set iceberg_type = 'VIEW' where table_name = 'orders'")
    run(tmp_path, "update iceberg_tables set iceberg_type = null where table_name = 'audit'")
    catalog, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    assert "lake.sales.orders" not in [str(table) for table in catalog.tables()]
    assert catalog.locate(TableName("lake", ("ops",), "audit"))
    with pytest.raises(NoSuchTable):
        catalog.swap(orders, "x", "y")


def test_finding_one_table_after_another_does_not_ask_for_the_columns_again(tmp_path: Path, uri: str) -> None:
    catalog, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        catalog.locate(orders)
        assert any("PRAGMA" in each for each in asked)
        asked.clear()
        catalog.locate(orders)
        assert asked
        assert not any("PRAGMA" in each for each in asked)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def test_a_column_that_comes_while_a_catalog_is_open_counts_from_the_next_listing_on(tmp_path: Path, uri: str) -> None:
    rows = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location"
    run(tmp_path, f"create table old as select {rows} from iceberg_tables")
    run(tmp_path, "drop table iceberg_tables")
    run(tmp_path, "alter table old rename to iceberg_tables")
    catalog, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    assert catalog.locate(orders)
    run(tmp_path, "alter table iceberg_tables add column iceberg_type varchar(5)")
    run(tmp_path, "update iceberg_tables set iceberg_type = 'VIEW' where table_name = 'orders'")
    assert "lake.sales.orders" not in [str(table) for table in catalog.tables()]
    with pytest.raises(NoSuchTable):
        catalog.locate(orders)


def test_a_catalog_without_the_type_column_works(tmp_path: Path, uri: str) -> None:
    rows = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location"
    run(tmp_path, f"create table old as select {rows} from iceberg_tables")
    run(tmp_path, "drop table iceberg_tables")
    run(tmp_path, "alter table old rename to iceberg_tables")
    catalog, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    assert len(list(catalog.tables())) == len(TABLES)
    assert catalog.swap(orders, catalog.locate(orders), "new") is SwapOutcome.DONE
    assert catalog.locate(orders) == "new"


def test_a_name_that_differs_in_case_only_is_found_unless_two_do(tmp_path: Path, uri: str) -> None:
    run(tmp_path, "update iceberg_tables set catalog_name = 'Lake'")
    assert len(list(SqlCatalog("lake", uri).tables())) == len(TABLES)
    run(tmp_path, "update iceberg_tables set catalog_name = 'LAKE' where table_name = 'audit'")
    with pytest.raises(UsageError, match="LAKE, Lake"):
        list(SqlCatalog("lake", uri).tables())
    assert [table.name for table in SqlCatalog("LAKE", uri).tables()] == ["audit"]


def test_a_row_without_metadata_is_refused(tmp_path: Path, uri: str) -> None:
    run(tmp_path, "update iceberg_tables set metadata_location = null where table_name = 'audit'")
    with pytest.raises(UnreadableMetadata, match=r"ops\.audit"):
        SqlCatalog("lake", uri).locate(TableName("lake", ("ops",), "audit"))


def test_a_missing_file_is_named_and_not_created(tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(UsageError, match=r"none\.db"):
        list(catalog.tables())
    with pytest.raises(UsageError):
        catalog.swap(TableName("lake", ("a",), "b"), "x", "y")
    assert os.listdir(tmp_path) == []


def test_the_reading_side_cannot_write(tmp_path: Path, uri: str) -> None:
    before = digest(tmp_path)
    with Connections(uri).reader().connect() as connection, pytest.raises(OperationalError, match="readonly"):
        connection.exec_driver_sql("delete from iceberg_tables")
    assert digest(tmp_path) == before


def test_a_database_without_the_table_is_no_catalog_and_stays_so(tmp_path: Path) -> None:
    run(tmp_path, "create table other (x)")
    before = digest(tmp_path)
    with pytest.raises(UsageError, match="no table iceberg_tables"):
        list(SqlCatalog("lake", f"sqlite:///{tmp_path}/catalog.db").tables())
    assert digest(tmp_path) == before


def test_what_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="not a database"):
        list(SqlCatalog("lake", f"sqlite:///{tmp_path}/catalog.db").tables())
    with pytest.raises(UsageError, match="memory"):
        list(SqlCatalog("lake", "sqlite:///:memory:").tables())
    with pytest.raises(UsageError, match="uri"):
        list(SqlCatalog("lake", "no uri at all").tables())


def test_awkward_folders_and_uri_forms_reach_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b%20c#d"
    folder.mkdir()
    make_catalog(tmp_path)
    shutil.copy(tmp_path / "catalog.db", folder)
    monkeypatch.chdir(folder)
    for uri in (
        f"sqlite:///{quote(str(folder))}/catalog.db",
        "sqlite:///catalog.db",
        "sqlite:///file:catalog.db?uri=true",
        f"sqlite+pysqlite:///{quote(str(folder))}/catalog.db?timeout=1",
    ):
        assert len(list(SqlCatalog("lake", uri).tables())) == len(TABLES)
    assert os.listdir(folder) == ["catalog.db"]


def test_a_catalog_travels(uri: str) -> None:
    catalog = SqlCatalog("lake", uri)
    list(catalog.tables())
    assert list(pickle.loads(pickle.dumps(catalog)).tables()) == list(catalog.tables())


def test_a_commit_without_an_answer_is_unknown(tmp_path: Path, uri: str) -> None:
    catalog, orders = SqlCatalog("lake", uri + "?timeout=0.05"), TableName("lake", ("sales",), "orders")
    expected = catalog.locate(orders)
    reader = sqlite3.connect(tmp_path / "catalog.db")
    reader.execute("begin")
    reader.execute("select * from iceberg_tables").fetchone()
    assert catalog.swap(orders, expected, "new") is SwapOutcome.UNKNOWN
    reader.close()
    assert catalog.locate(orders) == expected


def test_a_failure_before_the_commit_raises_and_changes_nothing(tmp_path: Path, uri: str) -> None:
    catalog, orders = SqlCatalog("lake", uri + "?timeout=0.05"), TableName("lake", ("sales",), "orders")
    expected = catalog.locate(orders)
    writer = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    writer.execute("begin immediate")
    with pytest.raises(StoreError, match="locked"):
        catalog.swap(orders, expected, "new")
    writer.close()
    assert catalog.locate(orders) == expected


def test_reading_a_write_ahead_log_changes_no_database_byte(tmp_path: Path, uri: str) -> None:
    keeper = sqlite3.connect(tmp_path / "catalog.db")
    keeper.execute("pragma journal_mode=wal")
    keeper.execute("update iceberg_tables set metadata_location = 'in the log' where table_name = 'audit'")
    keeper.commit()
    before = {name: hashed for name, (hashed, _) in digest(tmp_path).items() if not name.endswith("-shm")}
    assert SqlCatalog("lake", uri).locate(TableName("lake", ("ops",), "audit")) == "in the log"
    after = {name: hashed for name, (hashed, _) in digest(tmp_path).items() if not name.endswith("-shm")}
    keeper.close()
    assert after == before


def test_a_commit_never_takes_a_name_that_holds_other_data(uri: str) -> None:
    catalog, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    commits, base = SqlCommits(catalog, ObjectStores()), catalog.locate(orders)
    attempt = commits.prepare(orders, step_of(read_version(ObjectStores(), base), lambda document: None))
    taken = attempt.proof["location"]
    ObjectStores().put(taken, b"somebody's")
    with pytest.raises(AlreadyExists):
        commits.commit(attempt)
    assert ObjectStores().get(taken) == b"somebody's"
    assert catalog.locate(orders) == base


def test_a_lost_commit_writes_no_object(tmp_path: Path, uri: str) -> None:
    catalog, orders = SqlCatalog("lake", uri), TableName("lake", ("sales",), "orders")
    before = sorted(tmp_path.rglob("*"))
    stale = Version(catalog.locate(orders) + ".stale", read_version(ObjectStores(), catalog.locate(orders)).document)
    commits = SqlCommits(catalog, ObjectStores())
    assert commits.commit(commits.prepare(orders, step_of(stale, lambda document: None))) is SwapOutcome.LOST
    assert sorted(tmp_path.rglob("*")) == before
