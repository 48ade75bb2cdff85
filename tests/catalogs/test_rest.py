"""The REST catalog keeps the contract on Iceberg's own servlet, with tables that PyIceberg made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchTableError

from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.commits import RestCommits
from firnline.ports.catalogs import Catalog, Commit, TableName
from firnline.testing.catalogs import CatalogContract
from harness.servers import Server

from .lakes import SCHEMA, make_tables, rows

pytestmark = pytest.mark.xdist_group("rest")


def theirs(server: Server) -> PyIcebergCatalog:
    return PyIcebergCatalog("lake", **server.settings)


@pytest.fixture(scope="session")
def lake(servlet: Server) -> Server:
    """The server, with the four tables in it."""
    make_tables(theirs(servlet))
    return servlet


@pytest.fixture
def fresh(lake: Server) -> Iterator[TableName]:
    """A table of its own for one test, with two snapshots."""
    name = f"events_{uuid4().hex[:8]}"
    table = theirs(lake).create_table(f"eu.west.{name}", SCHEMA)
    for number in range(2):
        table.append(rows(number))
    yield TableName("lake", ("eu", "west"), name)
    with suppress(NoSuchTableError):
        theirs(lake).drop_table(f"eu.west.{name}")


@pytest.mark.full("test_of_racing_processes_one_wins", "test_of_racing_threads_one_wins")
class TestServlet(CatalogContract):
    @pytest.fixture
    def catalog(self, lake: Server) -> Catalog:
        return RestCatalog("lake", lake.settings)

    @pytest.fixture
    def commits(self, catalog: RestCatalog) -> Commit:
        return RestCommits(catalog)

    @pytest.fixture
    def table(self, fresh: TableName) -> TableName:
        return fresh

    @pytest.fixture
    def absent(self) -> TableName:
        return TableName("lake", ("sales",), "evnts")

    def contents(self, catalog: Catalog) -> object:
        return {str(table): catalog.locate(table) for table in catalog.tables()}
