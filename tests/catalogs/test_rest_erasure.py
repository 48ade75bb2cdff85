"""A REST catalog takes no snapshot in the place of another: an erasure stops before anything is changed, and the way
that its hint tells leads to the same end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from firnline.app.places import now_ms, places_of
from firnline.errors import RefusedForSafety
from firnline.lake import Lake
from firnline.ops.erasure.report import ErasureReport
from firnline.ops.tiers.waking import Inquiry
from firnline.policy.parse import parse_policy
from harness.servers import Server
from tests.tiers.lakes import POLICY

from .lakes import five_snapshots, rows

pytestmark = pytest.mark.xdist_group("rest")


def lake_with_tier(folder: Path) -> Lake:
    return Lake(places_of(parse_policy(POLICY.format(root=f"file://{folder}/colder")), engine="local"))


def erase(lake: Lake, name: str, path: str) -> ErasureReport:
    return lake.erasures.carry_out(name, [path], Inquiry("RIGHT-17", "A. Person"), 0, lambda plan: None)


def expire(lake: Lake, name: str) -> None:
    lake.expire(name, older_than=now_ms() + 1, retain_last=1, grace="0s", blast_radius=1.0)


def file_with(table: Table, number: int) -> str:
    """Returns the file of a row: each append made one."""
    snapshot = table.snapshots()[number]
    (added,) = [
        each.file.file_path
        for each in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
        if rows_in(each.file.file_path) == [number]
    ]
    return added


def rows_in(path: str) -> list[int]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path.removeprefix("file://")).column("id").to_pylist())


def everything(folder: str) -> set[Path]:
    """Returns all files of a table, but those that say who works on it."""
    below = Path(folder.removeprefix("file://")).rglob("*")
    return {each for each in below if each.is_file() and "_firnline" not in each.parts}


@pytest.fixture
def live(own_rest: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    name = five_snapshots(own_rest, tmp_path, monkeypatch)
    return PyIcebergCatalog("lake", **own_rest.settings).load_table(name)


def test_a_table_of_a_rest_catalog_is_left_as_it_is(live: Table) -> None:
    before, files = live.metadata_location, everything(live.location())
    lake = Lake(places_of(parse_policy(""), engine="local"))
    name, path = ".".join(("lake", *live.name()[-2:])), file_with(live, 2)
    shown = lake.erasures.plan(name, [path])
    assert "takes no snapshot in the place of another" in str(shown.tables[0].refused)
    with pytest.raises(RefusedForSafety, match="takes no snapshot in the place of another"):
        erase(lake, name, path)
    assert live.refresh().metadata_location == before
    assert everything(live.location()) == files


@pytest.mark.full
def test_the_way_that_the_hint_tells_erases_it_from_the_tier_too(
    live: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = {"type": "sql", "uri": f"sqlite:///{tmp_path}/cold.db", "warehouse": f"file://{tmp_path}/colder"}
    for key, value in cold.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__COLD__{key.upper()}", value)
    lake, name, path = lake_with_tier(tmp_path), ".".join(("lake", *live.name()[-2:])), file_with(live, 2)
    live.delete(EqualTo("id", 2))
    live.append(rows(5))  # leaves out the manifest that tells of the delete, as a rewrite of manifests does
    expire(lake, name)
    assert not Path(path.removeprefix("file://")).exists()
    report = erase(lake, name, path)
    assert report.is_done, report.to_json()
    there = SqlCatalog("cold", **cold).load_table(".".join(live.name()[-2:]))
    read = [set(there.scan(snapshot_id=each.snapshot_id).to_arrow()["id"].to_pylist()) for each in there.snapshots()]
    assert set().union(*read) == {0, 1, 3, 4}
    assert not [each for each in everything(str(tmp_path / "colder")) if each.name == Path(path).name]
    assert set(live.refresh().scan().to_arrow()["id"].to_pylist()) == {0, 1, 3, 4, 5}


@pytest.mark.full
def test_a_tier_in_a_rest_catalog_stops_it_before_the_live_table_loses_anything(
    live: Table, own_rest: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The live table is in a SQL catalog, its history in the REST one."""
    space = live.name()[-2]
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/main.db", "warehouse": f"file://{tmp_path}/main"}
    settings = {"catalog": {"main": where, "cold": dict(own_rest.settings)}}
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    theirs = SqlCatalog("main", **where)
    theirs.create_namespace(space)
    table = theirs.create_table(f"{space}.own", live.schema())
    for number in range(4):
        table.append(rows(number))
    lake, name = lake_with_tier(tmp_path), f"main.{space}.own"
    path = file_with(table, 1)
    expire(lake, name)
    before = table.refresh().metadata_location
    with pytest.raises(RefusedForSafety, match=f"cold.{space}.own.*takes no snapshot in the place of another"):
        erase(lake, name, path)
    assert table.refresh().metadata_location == before
    assert set(table.scan().to_arrow()["id"].to_pylist()) == {0, 1, 2, 3}
