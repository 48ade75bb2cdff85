"""Tables whose metadata is written already are placed in SQL and REST catalogs, where PyIceberg reads them."""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from uuid import uuid4

import pytest
import sqlalchemy as sa
from pyiceberg.catalog import Catalog as TheirCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from sqlalchemy import event

from firnline.catalogs.config import CatalogSettings, open_catalog, unconfigured
from firnline.catalogs.rest.placing import PlacingRestCatalog
from firnline.catalogs.sql import SqlCatalog
from firnline.errors import AccessDenied, NoSuchTable, StoreError, UnreadableMetadata, UsageError
from firnline.ports.catalogs import SwapOutcome, TableName
from firnline.testing.catalogs import Placing, PlacingContract
from harness.servers import Server
from harness.servers.postgres import execute

from .lakes import SCHEMA, rows

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

EVENTS = TableName("cold", ("eu", "west"), "events")


def versions_of(folder: Path) -> list[str]:
    """Returns where each version lies of the metadata of a table that PyIceberg made: empty, with one row, with two."""
    theirs = PyIcebergCatalog("live", uri=f"sqlite:///{folder}/live.db", warehouse=f"file://{folder}/warehouse")
    theirs.create_namespace("made")
    table = theirs.create_table("made.events", SCHEMA)
    found = [table.metadata_location]
    for number in range(2):
        table.append(rows(number))
        found.append(table.metadata_location)
    theirs.close()
    return found


@pytest.fixture
def metadata(tmp_path: Path) -> str:
    return versions_of(tmp_path)[-1]


@pytest.fixture
def new_uri(tmp_path: Path) -> str:
    """A SQLite file that is not there yet, in a folder that is."""
    (tmp_path / "cold").mkdir()
    return f"sqlite:///{tmp_path}/cold/catalog.db"


def cold(uri: str, name: str = "cold") -> SqlCatalog:
    return SqlCatalog(name, uri, may_be_new=True)


def ids_in(theirs: TheirCatalog, table: TableName) -> list[int]:
    """Returns the rows that PyIceberg reads."""
    return sorted(theirs.load_table((*table.namespace, table.name)).scan().to_arrow()["id"].to_pylist())


class TestSqlitePlacing(PlacingContract):
    @pytest.fixture
    def catalog(self, new_uri: str) -> Placing:
        return cold(new_uri)

    @pytest.fixture
    def place(self) -> TableName:
        return EVENTS

    @pytest.fixture
    def metadata(self, metadata: str) -> str:
        return metadata


@pytest.mark.full_but(
    "test_a_placed_table_is_there_with_its_metadata",
    "test_a_placed_table_moves_on",
    "test_a_table_that_is_there_is_not_replaced",
    "test_the_very_same_sent_again_changes_nothing",
    "test_tables_lie_beside_each_other_and_in_namespaces_within",
)
class TestPostgresPlacing(TestSqlitePlacing):
    @pytest.fixture
    def catalog(self, database: Server) -> Placing:
        return cold(database.settings["uri"])


@pytest.mark.full(
    "test_of_racing_processes_one_places_a_table",
    "test_of_racing_processes_one_moves_a_table_on",
    "test_processes_that_place_different_tables_at_once_all_succeed",
)
@pytest.mark.xdist_group("rest")
class TestServletPlacing(TestSqlitePlacing):
    compares = False

    @pytest.fixture
    def catalog(self, own_rest: Server) -> Placing:
        return PlacingRestCatalog("cold", own_rest.settings)

    @pytest.fixture
    def place(self) -> TableName:
        return TableName("cold", (f"eu_{uuid4().hex[:8]}", "west"), "events")


# ---- what others see


@pytest.fixture(params=["sqlite", "postgresql", "rest"])
def settings(request: pytest.FixtureRequest, new_uri: str) -> CatalogSettings:
    """A catalog as it is configured, that has no table named as EVENTS."""
    if request.param == "rest":
        server = request.getfixturevalue("own_rest")
        return CatalogSettings("cold", "rest", server.settings["uri"], server.settings, may_be_new=True)
    uri = new_uri if request.param == "sqlite" else request.getfixturevalue("database").settings["uri"]
    return CatalogSettings("cold", "sql", uri, {"type": "sql", "uri": uri}, may_be_new=True)


def opened(settings: CatalogSettings) -> Placing:
    catalog = open_catalog(settings)
    assert isinstance(catalog, SqlCatalog | PlacingRestCatalog)
    return catalog


@pytest.mark.xdist_group("rest")
def test_pyiceberg_lists_and_reads_what_was_placed_and_what_it_moved_on_to(
    settings: CatalogSettings, tmp_path: Path
) -> None:
    empty, one, two = versions_of(tmp_path)
    ours, place = opened(settings), TableName("cold", (f"eu_{uuid4().hex[:8]}", "west"), "events")
    assert ours.place_table(place, None, one) is SwapOutcome.DONE
    theirs = load_catalog("cold", **settings.properties)
    assert ids_in(theirs, place) == [0]
    assert place.namespace[:1] in theirs.list_namespaces()
    assert theirs.list_namespaces(place.namespace[:1]) == [place.namespace]
    assert theirs.list_tables(place.namespace) == [(*place.namespace, "events")]
    assert theirs.load_namespace_properties(place.namespace) is not None
    assert ours.place_table(place, one, two) is SwapOutcome.DONE
    assert ids_in(theirs, place) == [0, 1]
    assert ours.place_table(place, two, empty) is SwapOutcome.DONE  # back: nothing compares sequence numbers
    assert ids_in(theirs, place) == []


def test_pyiceberg_goes_on_in_a_catalog_that_a_placed_table_made(new_uri: str, metadata: str, tmp_path: Path) -> None:
    assert cold(new_uri).place_table(EVENTS, None, metadata) is SwapOutcome.DONE
    theirs = PyIcebergCatalog("cold", uri=new_uri, warehouse=f"file://{tmp_path}/theirs")
    theirs.create_namespace("eu.east")
    theirs.create_table("eu.east.orders", SCHEMA).append(rows(7))
    assert [str(table) for table in cold(new_uri).tables()] == ["cold.eu.east.orders", "cold.eu.west.events"]
    theirs.drop_table("eu.west.events")
    assert [str(table) for table in cold(new_uri).tables()] == ["cold.eu.east.orders"]
    assert sorted(theirs.list_namespaces("eu")) == [("eu", "east"), ("eu", "west")]
    assert theirs.load_namespace_properties("eu.west") == theirs.load_namespace_properties("eu.east")


def test_the_tables_are_those_that_pyiceberg_makes(new_uri: str, metadata: str, tmp_path: Path) -> None:
    cold(new_uri).place_table(EVENTS, None, metadata)
    PyIcebergCatalog("cold", uri=f"sqlite:///{tmp_path}/theirs.db").close()

    def columns(file: Path) -> dict[str, list[tuple[object, ...]]]:
        connection = sqlite3.connect(file)
        names = [str(name) for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        found = {name: list(connection.execute(f"pragma table_info({name})")) for name in names}
        connection.close()
        return found

    assert columns(tmp_path / "cold" / "catalog.db") == columns(tmp_path / "theirs.db")


# ---- a catalog that is not there yet


def test_reading_a_new_catalog_makes_nothing(new_uri: str, tmp_path: Path) -> None:
    catalog = cold(new_uri)
    assert list(catalog.tables()) == list(catalog.pointers()) == catalog.others() == list(catalog.watched()()) == []
    assert catalog.stored == "cold"
    with pytest.raises(NoSuchTable):
        catalog.locate(EVENTS)
    assert catalog.place_table(EVENTS, "s3://b/old", "s3://b/new") is SwapOutcome.LOST
    assert os.listdir(tmp_path / "cold") == []


def test_a_new_catalog_does_not_hide_the_others(new_uri: str) -> None:
    settings = CatalogSettings("cold", "sql", new_uri, may_be_new=True)
    assert unconfigured({"cold": settings}) == {}
    assert list(open_catalog(settings).tables()) == []


def test_only_a_catalog_that_may_be_new_reads_as_empty(new_uri: str, tmp_path: Path) -> None:
    assert list(cold(new_uri).tables()) == []
    with pytest.raises(UsageError, match="no file"):
        list(SqlCatalog("cold", new_uri).tables())
    sqlite3.connect(tmp_path / "cold" / "catalog.db").execute("create table other (x)").connection.close()
    assert list(cold(new_uri).tables()) == []
    with pytest.raises(UsageError, match="no table iceberg_tables"):
        list(SqlCatalog("cold", new_uri).tables())


def test_a_catalog_that_is_made_meanwhile_is_seen_with_its_own_columns(new_uri: str, tmp_path: Path) -> None:
    """An old program made it, without the column for views: what was learned from none must not be asked for."""
    catalog = cold(new_uri)
    with pytest.raises(NoSuchTable):
        catalog.locate(EVENTS)
    made = sqlite3.connect(tmp_path / "cold" / "catalog.db")
    made.execute(
        "create table iceberg_tables (catalog_name varchar(255), table_namespace varchar(255), table_name varchar(255),"
        " metadata_location varchar(1000), previous_metadata_location varchar(1000),"
        " primary key (catalog_name, table_namespace, table_name))"
    )
    made.commit()
    made.close()
    assert catalog.place_table(EVENTS, None, "first") is SwapOutcome.DONE
    assert catalog.locate(EVENTS) == "first"
    assert catalog.place_table(EVENTS, "first", "second") is SwapOutcome.DONE
    assert ids_of_rows(new_uri) == [("cold", "eu.west", "events", "second", "first")]


def ids_of_rows(uri: str) -> list[tuple[object, ...]]:
    with sa.create_engine(uri).connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text("select * from iceberg_tables order by 1, 2, 3"))]


def test_a_folder_is_not_made(tmp_path: Path) -> None:
    catalog = cold(f"sqlite:///{tmp_path}/none/catalog.db")
    assert list(catalog.tables()) == []
    with pytest.raises(UsageError, match="no folder") as refused:
        catalog.place_table(EVENTS, None, "first")
    assert str(tmp_path / "none") in refused.value.message
    assert os.listdir(tmp_path) == []


def test_a_catalog_in_memory_takes_no_table() -> None:
    with pytest.raises(UsageError, match="memory"):
        cold("sqlite:///:memory:").place_table(EVENTS, None, "first")


def test_a_new_catalog_travels(new_uri: str, metadata: str) -> None:
    catalog = pickle.loads(pickle.dumps(cold(new_uri)))
    assert list(catalog.tables()) == []
    assert catalog.place_table(EVENTS, None, metadata) is SwapOutcome.DONE
    assert list(pickle.loads(pickle.dumps(catalog)).tables()) == [EVENTS]


# ---- names


def test_rows_keep_the_spelling_that_the_catalog_has(new_uri: str, metadata: str) -> None:
    PyIcebergCatalog("Cold", uri=new_uri).create_namespace("eu")
    assert cold(new_uri).place_table(EVENTS, None, metadata) is SwapOutcome.DONE
    assert ids_in(PyIcebergCatalog("Cold", uri=new_uri), EVENTS) == [0, 1]
    orders = TableName("COLD", ("eu",), "orders")
    assert cold(new_uri, "COLD").place_table(orders, None, metadata) is SwapOutcome.DONE
    assert {row[0] for row in ids_of_rows(new_uri)} == {"Cold"}


def test_a_catalog_of_another_name_has_its_own_rows(new_uri: str, metadata: str) -> None:
    stored = SqlCatalog("cold:deep", new_uri, "deep", may_be_new=True)
    assert cold(new_uri).place_table(EVENTS, None, metadata) is SwapOutcome.DONE
    assert stored.place_table(EVENTS, None, metadata + "2") is SwapOutcome.DONE
    assert [row[0] for row in ids_of_rows(new_uri)] == ["cold", "deep"]
    assert (cold(new_uri).locate(EVENTS), stored.locate(EVENTS)) == (metadata, metadata + "2")


def test_names_that_rows_cannot_tell_apart_are_refused(new_uri: str) -> None:
    for namespace in (("eu.west",), ("eu", "")):
        with pytest.raises(UsageError, match="namespace"):
            cold(new_uri).place_table(TableName("cold", namespace, "events"), None, "first")
    assert cold(new_uri).place_table(TableName("cold", (), "events"), None, "first") is SwapOutcome.DONE
    assert cold(new_uri).locate(TableName("cold", (), "events")) == "first"


def test_a_view_keeps_its_name(new_uri: str) -> None:
    catalog = cold(new_uri)
    catalog.place_table(EVENTS, None, "first")
    with sa.create_engine(new_uri).begin() as connection:
        connection.execute(sa.text("update iceberg_tables set iceberg_type = 'VIEW'"))
    with pytest.raises(UsageError, match="view"):
        catalog.place_table(EVENTS, None, "first")
    assert catalog.place_table(EVENTS, "first", "second") is SwapOutcome.LOST
    assert [row[3] for row in ids_of_rows(new_uri)] == ["first"]


def test_a_row_without_metadata_is_not_taken_for_no_row(new_uri: str) -> None:
    catalog = cold(new_uri)
    catalog.place_table(EVENTS, None, "first")
    with sa.create_engine(new_uri).begin() as connection:
        connection.execute(sa.text("update iceberg_tables set metadata_location = null"))
    assert catalog.place_table(EVENTS, None, "first") is SwapOutcome.LOST
    with pytest.raises(UnreadableMetadata):
        catalog.locate(EVENTS)


# ---- failures


def test_a_commit_without_an_answer_is_unknown(tmp_path: Path, new_uri: str) -> None:
    catalog = cold(new_uri + "?timeout=0.05")
    catalog.place_table(EVENTS, None, "first")
    orders = TableName("cold", ("eu",), "orders")
    reader = sqlite3.connect(tmp_path / "cold" / "catalog.db")
    reader.execute("begin")
    reader.execute("select * from iceberg_tables").fetchone()
    assert catalog.place_table(orders, None, "new") is SwapOutcome.UNKNOWN
    assert catalog.place_table(EVENTS, "first", "second") is SwapOutcome.UNKNOWN
    reader.close()
    assert [row[3] for row in ids_of_rows(new_uri)] == ["first"]
    assert catalog.place_table(orders, None, "new") is SwapOutcome.DONE


def test_a_failure_before_the_commit_raises_and_changes_nothing(tmp_path: Path, new_uri: str) -> None:
    catalog = cold(new_uri + "?timeout=0.05")
    catalog.place_table(EVENTS, None, "first")
    writer = sqlite3.connect(tmp_path / "cold" / "catalog.db", isolation_level=None)
    writer.execute("begin immediate")
    with pytest.raises(StoreError, match="locked"):
        catalog.place_table(TableName("cold", ("other",), "orders"), None, "new")
    writer.close()
    assert len(ids_of_rows(new_uri)) == 1


def test_a_connection_that_is_lost_during_the_commit_leaves_the_outcome_unknown(database: Server) -> None:
    """The server ends the session just before it gets the COMMIT: nobody can tell, and reading back can."""
    catalog = cold(database.settings["uri"])
    catalog.place_table(EVENTS, None, "first")
    others = "pid <> pg_backend_pid() and datname = current_database()"
    orders = TableName("cold", ("other",), "orders")

    def cut(connection: sa.Connection) -> None:
        execute(database, f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")

    engine = catalog._connections.maker()
    event.listen(engine, "commit", cut)
    assert catalog.place_table(orders, None, "new") is SwapOutcome.UNKNOWN
    event.remove(engine, "commit", cut)
    assert list(catalog.tables()) == [EVENTS]
    assert catalog.place_table(orders, None, "new") is SwapOutcome.DONE


def test_a_user_who_may_make_no_tables_is_told(database: Server) -> None:
    name = "visitor_" + database.url.rpartition("-")[2]
    execute(database, f"create role {name} login")
    catalog = cold(database.settings["uri"].replace("firnline@", f"{name}@"))
    assert list(catalog.tables()) == []
    with pytest.raises(AccessDenied, match="permission denied"):
        catalog.place_table(EVENTS, None, "first")
    execute(database, f"drop role {name}")


# ---- races, at the very moment


@contextmanager
def just_before(begins: str, other: Callable[[], object]) -> Iterator[None]:
    """Lets another one act once, just before a statement is sent that begins so."""
    left = [other]

    def act(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.strip().startswith(begins) and left:
            left.pop()()

    event.listen(sa.Engine, "before_cursor_execute", act)
    try:
        yield
    finally:
        event.remove(sa.Engine, "before_cursor_execute", act)
    assert not left


def test_a_catalog_that_another_one_is_just_making_is_used(database: Server) -> None:
    """Its table is not visible until it commits, and ours waits for it, then fails."""
    uri = database.settings["uri"]
    columns = "catalog_name varchar(255), table_namespace varchar(255), table_name varchar(255)"
    more = "metadata_location varchar(1000), previous_metadata_location varchar(1000), iceberg_type varchar(5)"
    other = sa.create_engine(uri).connect()
    timers: list[Timer] = []

    def make() -> None:
        other.exec_driver_sql(
            f"create table iceberg_tables ({columns}, {more}, primary key (catalog_name, table_name))"
        )
        timers.append(Timer(0.5, other.commit))
        timers[0].start()

    with just_before("CREATE TABLE", make), just_before("INSERT INTO iceberg_namespace", timers_end(timers)):
        assert cold(uri).place_table(EVENTS, None, "first") is SwapOutcome.DONE
    other.close()
    assert list(cold(uri).tables()) == [EVENTS]


def timers_end(timers: list[Timer]) -> Callable[[], object]:
    return lambda: [timer.join() for timer in timers]


def test_a_namespace_that_another_one_makes_meanwhile_is_used(new_uri: str) -> None:
    orders = TableName("cold", ("eu", "east"), "orders")
    assert cold(new_uri).place_table(EVENTS, None, "first") is SwapOutcome.DONE
    other = cold(new_uri)
    with just_before("INSERT INTO iceberg_namespace", lambda: other.place_table(orders, None, "other")):
        found = TableName("cold", ("eu", "east"), "found")
        assert cold(new_uri).place_table(found, None, "second") is SwapOutcome.DONE
    assert len(ids_of_rows(new_uri)) == 3


@pytest.mark.parametrize(("theirs", "outcome"), [("other", SwapOutcome.LOST), ("mine", SwapOutcome.DONE)])
def test_a_table_that_another_one_places_or_moves_meanwhile_stays_as_it_is(
    database: Server, theirs: str, outcome: SwapOutcome
) -> None:
    """The same metadata is our own request that was sent twice."""
    uri = database.settings["uri"]
    other = cold(uri)
    other.place_table(TableName("cold", ("eu", "west"), "before"), None, "x")
    with just_before("INSERT INTO iceberg_tables", lambda: other.place_table(EVENTS, None, theirs)):
        assert cold(uri).place_table(EVENTS, None, "mine") is outcome
    assert other.locate(EVENTS) == theirs
    with just_before("UPDATE", lambda: other.place_table(EVENTS, theirs, theirs + "2")):
        assert cold(uri).place_table(EVENTS, theirs, "mine2") is outcome
    assert other.locate(EVENTS) == theirs + "2"
