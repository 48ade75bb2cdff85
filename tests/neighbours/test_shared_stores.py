"""What tables that are worked on side by side share of their stores: the pace of deletes, and what was probed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml

from firnline.app.places import Places, open_places
from firnline.ports.catalogs import TableName
from firnline.stores.delete import ObjectDelete
from firnline.stores.throttle import Throttle
from tests.neighbours.lakes import RealLake


def throttle(places: Places, catalog: str) -> Throttle:
    delete = places.stores.delete(TableName(catalog, ("db",), "a"), "s3://bucket/a/_firnline")
    assert isinstance(delete, ObjectDelete)
    return delete.throttle


def test_one_store_has_one_pace_whoever_asks_for_the_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server hands out credentials for each table of its own: they are many, and the store is one."""

    def catalog(name: str, **settings: str) -> dict[str, dict[str, str]]:
        return {name: {"type": "sql", "uri": f"sqlite:///{tmp_path}/{name}.db", **settings}}

    here, elsewhere = {"s3.endpoint": "http://127.0.0.1:9"}, {"s3.endpoint": "http://127.0.0.1:7"}
    catalogs = {
        **catalog("one", **here, **{"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"}),
        **catalog("two", **here, **{"s3.access-key-id": "d", "s3.secret-access-key": "e", "s3.session-token": "f"}),
        **catalog("far", **elsewhere),
    }
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": catalogs}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    (tmp_path / "firnline.yaml").write_text("")
    places = open_places(str(tmp_path / "firnline.yaml"))
    assert throttle(places, "one") is throttle(places, "two")
    assert throttle(places, "one") is not throttle(places, "far")


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
def test_a_purge_begins_while_another_table_is_probed(lake: RealLake) -> None:
    lake.create("a")
    places = lake.firnline().places
    work = places.table_context("lake.db.a")
    state, done = work.source.load(), Event()

    def probe() -> None:
        for number in range(2_000):
            places.stores.prepare(work, replace(state, location=f"{state.location}{number}"), deletes=True)
        done.set()

    other = Thread(target=probe)
    other.start()
    while not done.is_set():
        places.stores.delete(work.source.name, work.root(state))
    other.join()
