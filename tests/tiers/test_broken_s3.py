"""Two buckets of a real server: what is damaged or lost in the tier is found before anything of it leaves the live
table, whatever a store says of its objects.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import Catalog, load_catalog

from firnline.app.places import now_ms
from firnline.errors import ArchiveIncomplete, FirnlineError
from firnline.lake import Lake, open_lake
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket
from tests.tiers.lakes import forget_catalogs


class TwoBuckets:
    """A live table and its tier, each in a bucket of its own, and what a person does to the tier's."""

    def __init__(self, home: Path, server: Server, scheme: str = "s3") -> None:
        self.client, self.live, self.cold = client(server), unique("live"), unique("cold")
        self.home = home
        for bucket in (self.live, self.cold):
            make_bucket(server, bucket)
        places = {"lake": f"{scheme}://{self.live}/ware house", "cold": f"s3://{self.cold}"}
        self.settings = {
            name: {"type": "sql", "uri": f"sqlite:///{home}/{name}.db", "warehouse": place, **server.settings}
            for name, place in places.items()
        }
        (home / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": self.settings}))
        (home / "firnline.yaml").write_text(f"archive: cold\ntiers:\n  cold:\n    root: s3://{self.cold}/keep\n")
        self.catalog("lake").create_namespace("db")
        table = self.catalog("lake").create_table("db.t", schema=pa.schema([("x", pa.int64())]))
        for number in range(3):
            table.append(pa.table({"x": [number]}))
        table.overwrite(pa.table({"x": [9]}))

    def catalog(self, name: str) -> Catalog:
        return load_catalog(name, **self.settings[name])

    def rows(self, name: str) -> dict[int, list[int]]:
        table = self.catalog(name).load_table("db.t")
        return {
            each.snapshot_id: sorted(table.scan(snapshot_id=each.snapshot_id).to_arrow().column("x").to_pylist())
            for each in table.snapshots()
        }

    def keys(self, bucket: str, ending: str = "") -> list[str]:
        found = self.client.list_objects_v2(Bucket=bucket).get("Contents", ())
        return sorted(each["Key"] for each in found if each["Key"].endswith(ending))

    def firnline(self) -> Lake:
        return open_lake(str(self.home / "firnline.yaml"), engine="local")

    def committed(self) -> str:
        view = self.firnline().plan("lake.db.t", save=True, older_than=now_ms(), retain_last=1, grace="0s")
        run = str(view.plan.run)
        assert self.firnline().commit(run).state == "committed"
        time.sleep(1.1)  # buckets tell the time in whole seconds: for the next process the commit may be to come
        return run


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TwoBuckets]:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("FIRNLINE_CACHE", str(tmp_path / "cache"))
    forget_catalogs()
    return lambda server, **options: TwoBuckets(tmp_path, server, **options)


def _flip(lake: TwoBuckets, key: str) -> None:
    data = bytearray(lake.client.get_object(Bucket=lake.cold, Key=key)["Body"].read())
    data[len(data) // 2] ^= 1
    lake.client.put_object(Bucket=lake.cold, Key=key, Body=bytes(data))


def _remove(lake: TwoBuckets, key: str) -> None:
    lake.client.delete_object(Bucket=lake.cold, Key=key)


@pytest.mark.full
@pytest.mark.parametrize("damage", [_flip, _remove])
@pytest.mark.parametrize("ending", [".parquet", ".avro"])
def test_damage_in_the_bucket_stops_the_purge(
    make: Callable[..., TwoBuckets], moto_server: Server, damage: Any, ending: str
) -> None:
    lake = make(moto_server)
    before = lake.rows("lake")
    run = lake.committed()
    kept = lake.keys(lake.live, ending)
    damage(lake, lake.keys(lake.cold, ending)[0])
    with pytest.raises(FirnlineError) as refused:
        lake.firnline().purge(run)
    assert isinstance(refused.value, ArchiveIncomplete) or ending == ".avro"
    assert lake.keys(lake.live, ending) == kept
    assert lake.firnline().undo(run).state == "undone"
    assert lake.rows("lake") == before


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_whole_copies_let_the_live_ones_go(make: Callable[..., TwoBuckets], moto_server: Server, scheme: str) -> None:
    """Under a path with a space in it, and whatever the table calls the scheme of its bucket."""
    lake = make(moto_server, scheme=scheme)
    before = lake.rows("lake")
    assert lake.firnline().purge(lake.committed()).state == "done"
    live = lake.rows("lake")
    assert len(live) == 1
    assert lake.rows("cold") == {each: rows for each, rows in before.items() if each not in live}


@pytest.mark.full
def test_a_bucket_that_is_gone_in_the_middle(make: Callable[..., TwoBuckets], moto_server: Server) -> None:
    lake = make(moto_server)
    before = lake.rows("lake")
    lake.client.delete_bucket(Bucket=lake.cold)
    with pytest.raises(FirnlineError):
        lake.firnline().expire("lake.db.t", older_than=now_ms(), retain_last=1, grace="0s")
    assert lake.rows("lake") == before
    lake.client.create_bucket(Bucket=lake.cold)
    lake.firnline().resume("lake.db.t")
    if lake.rows("lake") == before:  # nothing had been written down yet
        lake.firnline().expire("lake.db.t", older_than=now_ms(), retain_last=1, grace="0s")
    live = lake.rows("lake")
    assert lake.rows("cold") == {each: rows for each, rows in before.items() if each not in live}
