"""Needs of other tables that are easily missed: out of sight for a moment, far away, or where files outside may go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergSql

from firnline.catalogs.config import CatalogSettings
from firnline.catalogs.sql import SqlCatalog
from firnline.errors import RefusedForSafety
from firnline.model.files import File, FileKind
from firnline.ops.neighbours.index import Index
from firnline.ops.neighbours.others import others_now
from firnline.ops.neighbours.outward import Bridge, gathered
from firnline.ops.table.context import Registered, TableContext
from firnline.ops.table.listings import read_all
from firnline.ports.catalogs import TableName
from tests.neighbours.lakes import RealLake, rows


def _import(lake: RealLake) -> None:
    """Table b needs a file of a, which a itself does not need any more once it expires."""
    lake.create("a")
    lake.create("b")
    lake.append("a", 1, 2)
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)


def _manifests(lake: RealLake, name: str) -> list[Path]:
    table = lake.table(name)
    found = [each.manifest_path for each in table.current_snapshot().manifests(table.io)]
    return [Path(each.removeprefix("file://")) for each in found]


def test_what_others_need_in_their_own_folders_stays_also_with_include_outside(lake: RealLake) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("b", 1, 2)
    lake.table("a").add_files(lake.data_files("b"))
    lake.overwrite("a", 3)
    lake.expire("a", include_outside=True)
    assert lake.read("b") == [1, 2]


def test_a_named_location_at_which_no_table_is_stops_the_run(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    lake.overwrite("a", 3)
    lake.policy = f"shared-with: [{lake.folder}/elsewhere/tabel]"
    with pytest.raises(RefusedForSafety, match="tabel"):
        lake.expire("a")


def test_a_table_that_was_excused_once_is_walked_when_it_can_be_read(lake: RealLake) -> None:
    _import(lake)
    (manifest,) = _manifests(lake, "b")
    away = manifest.with_suffix(".away")
    manifest.rename(away)
    lake.policy = "catalogs: {lake: {namespaces: {db: {tables: {b: {sharing: none}}}}}}"
    lake.create("c")
    lake.append("c", 1)
    lake.overwrite("c", 3)
    lake.expire("c")
    away.rename(manifest)
    lake.policy = ""
    lake.expire("a")
    assert lake.read("b") == [1, 2]


def test_a_table_that_was_away_while_it_was_walked_is_walked_when_it_is_back(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    _import(lake)
    lake.create("c")
    lake.append("c", 1)
    lake.overwrite("c", 3)
    metadata = lake.table("b").metadata_location
    walk = Index._walk

    def dropped_first(self: Index, each: Any, *rest: Any) -> Any:
        if each.name.name == "b":
            lake.catalog.drop_table("db.b")
        return walk(self, each, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Index, "_walk", dropped_first)
        lake.expire("c", grace="1h")
    lake.catalog.register_table("db.b", metadata)
    lake.expire("a")
    assert lake.read("b") == [1, 2]


def test_a_table_that_took_the_name_since_the_look_began_is_another(lake: RealLake) -> None:
    _import(lake)
    work = lake.firnline().places.table_context("lake.db.a")
    state = work.source.load()
    uuid = str(lake.table("b").metadata.table_uuid)
    lake.catalog.drop_table("db.a")
    lake.catalog.rename_table("db.b", "db.a")
    assert [each.card.uuid for each in others_now(work, state, ()).tables.values()] == [uuid]


def test_a_neighbour_that_imports_from_many_deep_folders_still_leads_to_a_shallow_one(lake: RealLake) -> None:
    _import(lake)
    deep = "/".join(f"level{number}" for number in range(20))
    files = [lake.folder / "other" / f"p={number}" / deep / "f.parquet" for number in range(40)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True)
        pq.write_table(rows(number), file)
    lake.create("d")
    lake.append("a", 7)
    lake.table("d").add_files([*lake.data_files("a"), *map(str, files)])
    needed = lake.read("d")
    lake.overwrite("a", 8)
    lake.expire("a")
    assert lake.read("d") == needed


@pytest.fixture
def restless(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Table b gets another name after every third listing of the catalog, back and forth."""
    turns = count()

    def listed(listing: Callable[[SqlCatalog], Iterator[Any]]) -> Callable[[SqlCatalog], Iterator[Any]]:
        def then_renamed(self: SqlCatalog) -> Iterator[Any]:
            found = list(listing(self))
            turn = next(turns)
            if turn % 3 == 0:
                lake.catalog.rename_table(*(("db.b", "db.z"), ("db.z", "db.b"))[turn // 3 % 2])
            return iter(found)

        return then_renamed

    for name in ("pointers", "tables"):
        monkeypatch.setattr(SqlCatalog, name, listed(getattr(SqlCatalog, name)))
    yield
    monkeypatch.undo()


def _read_b(lake: RealLake) -> list[int]:
    return lake.read("b" if lake.catalog.table_exists("db.b") else "z")


def test_a_neighbour_that_is_renamed_after_the_listing_still_counts(
    lake: RealLake, request: pytest.FixtureRequest
) -> None:
    _import(lake)
    request.getfixturevalue("restless")
    lake.expire("a")
    assert _read_b(lake) == [1, 2]


def test_a_table_that_is_renamed_while_all_are_asked_does_not_count_as_dropped(
    lake: RealLake, request: pytest.FixtureRequest
) -> None:
    _import(lake)
    request.getfixturevalue("restless")
    assert lake.firnline().dropped(f"file://{lake.folder}/warehouse") == []


def test_a_table_that_is_gone_whenever_it_is_read_stops_the_run() -> None:
    ghost = Registered(TableName("lake", ("db",), "b"), "", None, open=lambda: pytest.fail("nobody opens it"))
    with pytest.raises(RefusedForSafety, match=r"lake\.db\.b"):
        read_all(lambda afresh: [ghost], lambda tables: [None for _ in tables], lambda each: "")


@pytest.mark.parametrize(
    ("named", "own"),
    [
        ("hdfs://nn:8020/wh/a/data/", "hdfs://ns/wh/a/"),
        ("s3://lake/d%20b/a/data/", "s3://lake/d b/a/"),
    ],
)
def test_a_bridge_leads_by_paths_as_purges_compare_them(named: str, own: str) -> None:
    assert Bridge(File(FileKind.MANIFEST, "s3://lake/b/m.avro", opens=True), (named,)).leads_into([own])


def test_gathered_folders_hold_all_that_they_were_made_of() -> None:
    shallow = {"s3://one/", "file:///x/"}
    deep = {f"s3://two/a/y={number}/b/c/d/e/f/g/h/" for number in range(100)}
    found = gathered(shallow | deep)
    assert all(each.startswith(found) for each in shallow | deep)
    assert shallow < set(found)
    assert len(found) < len(deep)


def test_what_a_table_around_this_one_needs_stays_also_with_include_outside(lake: RealLake) -> None:
    loose = lake.folder / "warehouse" / "loose.parquet"
    lake.create("a")
    lake.create("b", **{"write.data.path": f"file://{lake.folder}/warehouse"})
    pq.write_table(rows(1, 2), loose)
    for name in ("a", "b"):
        lake.table(name).add_files([f"file://{loose}"])
    lake.overwrite("a", 3)
    lake.expire("a", include_outside=True)
    assert lake.read("b") == [1, 2]


def test_the_history_that_a_backup_points_at_stays_when_the_original_writes_a_newer_one(lake: RealLake) -> None:
    lake.policy = "history: forever\nshared-with: [lake.db.backup]"
    lake.create("a", **{"write.metadata.previous-versions-max": "1"})
    for number in range(3):
        lake.overwrite("a", number)
    lake.expire("a")
    lake.catalog.register_table("db.backup", lake.table("a").metadata_location)
    before = list(lake.firnline().expired_snapshots("lake.db.backup"))
    assert before
    for number in range(4):
        lake.overwrite("a", number)
        lake.overwrite("a", number)
        lake.expire("a")
    assert list(lake.firnline().expired_snapshots("lake.db.backup")) == before


@contextmanager
def _a_twin_at_the_same_address(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[PyIcebergSql]:
    """A second catalog at the address of the first, as where a server tells its catalogs apart by who signs in. Two
    databases stand for them.
    """
    settings = {**lake.catalog.properties, "uri": f"sqlite:///{lake.folder}/twin.db"}
    config = {"catalog": {"lake": {"type": "sql", **lake.catalog.properties}, "twin": {"type": "sql", **settings}}}
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.setattr(CatalogSettings, "address", "one server")
    twin = PyIcebergSql("twin", **settings)
    twin.create_namespace("db")
    yield twin
    twin.close()


def test_a_table_of_the_same_name_at_the_same_address_is_another_one_if_its_uuid_is(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _a_twin_at_the_same_address(lake, monkeypatch) as twin:
        lake.create("a")
        lake.append("a", 1, 2)
        theirs = twin.create_table("db.a", rows().schema, location=f"file://{lake.folder}/twin/a")
        theirs.add_files(lake.data_files("a"))
        lake.overwrite("a", 3)
        lake.expire("a")
        assert twin.load_table("db.a").scan().to_arrow().num_rows == 2


def test_a_second_registration_at_the_same_address_is_another_one_if_it_goes_its_own_way(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _a_twin_at_the_same_address(lake, monkeypatch) as twin:
        lake.create("a")
        lake.append("a", 1, 2)
        twin.register_table("db.a", lake.table("a").metadata_location)
        lake.overwrite("a", 3)
        with pytest.raises(RefusedForSafety, match=r"twin\.db\.a is the same table"):
            lake.expire("a")
        assert twin.load_table("db.a").scan().to_arrow().num_rows == 2


def test_a_table_that_moves_on_while_its_two_names_are_read_is_one(lake: RealLake) -> None:
    lake.create("a")
    work = lake.firnline().places.table_context("lake.db.a")
    by_another_name = TableName("twin", ("db",), "a")
    commits = iter([1])

    def opened() -> TableContext:
        for number in commits:
            lake.append("a", number)
        return work

    also = Registered(by_another_name, work.address, None, opened)
    work = replace(work, registered=lambda locations: [also])
    assert not others_now(work, work.source.load(), ()).tables
    assert not list(commits)
