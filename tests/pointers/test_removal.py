"""Pointers whose time is over, on S3: each goes only as it was read, or stays as a file that leads nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.errors import NoSuchTable
from firnline.model.times import DAY_MS
from firnline.pointers.document import Pointer, parse_pointer
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock, dated
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.neighbours.lakes import RealLake
from tests.stores.careless import Careless, careless

OLD, NEW = "db_t_main.ver", "db_new_main.ver"


class OnS3(RealLake):
    """A lake in a bucket. Its catalog's own clients ask the server; firnline asks one before it, which may forget."""

    store: ObjectStores

    def pointers(self) -> dict[str, Pointer]:
        """Returns the pointers in the folder of the one table there is, and fails for anything left of a question."""
        (name,) = self.catalog.list_tables("db")
        place = self.catalog.load_table(name).location()
        assert not list(self.store.list(f"{place}/_pointers"))
        found = [each for each in self.store.names(place) if each.endswith(".ver")]
        return {each: parse_pointer(self.store.get(f"{place}/{each}"), each) for each in found}

    def sync(self, days: int = 0) -> dict[str, str]:
        """Returns what became of the pointers, in some days from now."""
        clock = Clock()
        clock.ahead_ms = days * DAY_MS
        (done,) = dated(self.firnline(), clock).pointers.sync()
        assert not done.problems
        return {each.key.rpartition("/")[2]: each.outcome for each in done.pointers}


@pytest.fixture
def between(moto_server: Server) -> Iterator[Careless]:
    with careless(moto_server.url) as found:
        yield found


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moto_server: Server, between: Careless) -> Iterator[OnS3]:
    bucket = make_bucket(moto_server, unique("ends"))
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": bucket, **moto_server.settings}
    asked = {**settings, "s3.endpoint": between.url}
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": asked}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("FIRNLINE_CACHE", str(tmp_path / "cache"))
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    made = OnS3(tmp_path, catalog, "pointers: identifier\npointer-links: 7d")
    made.store = ObjectStores(moto_server.settings)
    yield made
    catalog.close()


@pytest.fixture
def renamed(lake: OnS3) -> OnS3:
    lake.create("t")
    lake.append("t", 1)
    lake.sync()
    lake.catalog.rename_table("db.t", "db.new")
    assert lake.sync() == {NEW: "new", OLD: f"leads to {NEW}"}
    return lake


def test_a_link_goes_when_its_time_is_over(renamed: OnS3) -> None:
    assert renamed.sync(days=8) == {NEW: "unchanged", OLD: "expired"}
    assert list(renamed.pointers()) == [NEW]


def test_a_name_that_is_used_again_while_its_link_is_removed_keeps_its_file(renamed: OnS3, between: Careless) -> None:
    def use_again(method: str, path: str) -> None:
        if method == "DELETE" and path.endswith(OLD):
            renamed.catalog.rename_table("db.new", "db.t")
            renamed.sync()

    between.before = use_again
    assert renamed.sync(days=8) == {NEW: "unchanged"}
    assert renamed.pointers()[OLD].metadata_file_path == renamed.table("t").metadata_location


def test_where_the_store_ignores_the_condition_a_link_stays_and_leads_nowhere(renamed: OnS3, between: Careless) -> None:
    between.forgets, between.forgets_of = ("if-match",), ("DELETE",)
    assert renamed.sync(days=8) == {NEW: "unchanged", OLD: "expired, leads nowhere"}
    assert renamed.pointers()[OLD].dropped_at is not None, "such a pointer keeps nothing"
    with pytest.raises(NoSuchTable):
        renamed.firnline().pointers.open_path(renamed.table("new").location(), table="db.t")
    renamed.append("new", 2)
    for days in (8, 40):
        assert OLD not in renamed.sync(days), "it is no link again"
    renamed.catalog.rename_table("db.new", "db.t")
    assert renamed.sync(days=41)[OLD] == "moved on"
    assert not renamed.pointers()[OLD].is_over
