"""A deep archive in a bucket: bundles in a class that has to be restored, asked for, waited for, and read again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import Catalog, load_catalog

from firnline.cli.main import run as command
from firnline.errors import ArchiveIncomplete, StoreError
from firnline.lake import Lake, open_lake
from firnline.ops.erasure.report import ErasureReport
from firnline.ops.tiers.restoring import Restored
from firnline.ops.tiers.waking import Awaited, Inquiry
from harness.servers.fixtures import unique
from harness.servers.moto import moto, slow_restores
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket
from tests.tiers.lakes import forget_catalogs

POLICY = """
archive: cold
tiers:
  cold: {{root: "s3://{cold}/keep"}}
  deep: {{root: "s3://{deep}/for ever", class: DEEP_ARCHIVE}}
catalogs:
  cold: {{archive: deep, keep: {{last: 1}}}}
  deep: {{archive: off}}
"""
NOW = Inquiry("CASE-1", "A. Person", wait=False)
WAIT_S = 2
_LARGE = 160 << 10  # smaller objects stay in the standard class


class ThreeBuckets:
    """A live table, a cold and a deep tier, each in a bucket of its own."""

    def __init__(self, home: Path, server: Server) -> None:
        self.client, self.home = client(server), home
        self.buckets = {name: unique(name) for name in ("lake", "cold", "deep")}
        for bucket in self.buckets.values():
            make_bucket(server, bucket)
        self.settings = {
            name: {"type": "sql", "uri": f"sqlite:///{home}/{name}.db", "warehouse": f"s3://{bucket}/w"}
            | server.settings
            for name, bucket in self.buckets.items()
        }
        (home / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": self.settings}))
        (home / "firnline.yaml").write_text(POLICY.format(**self.buckets))
        self.catalog("lake").create_namespace("db")
        table = self.catalog("lake").create_table("db.t", schema=pa.schema([("x", pa.binary())]))
        for _ in range(3):
            table.append(pa.table({"x": [os.urandom(_LARGE)]}))
        table.overwrite(pa.table({"x": [b"new"]}))

    def catalog(self, name: str) -> Catalog:
        return load_catalog(name, **self.settings[name])

    def rows(self, name: str) -> dict[int, list[bytes]]:
        table = self.catalog(name).load_table("db.t")
        return {
            each.snapshot_id: sorted(table.scan(snapshot_id=each.snapshot_id).to_arrow().column("x").to_pylist())
            for each in table.snapshots()
        }

    def bundles(self) -> list[dict[str, Any]]:
        found = self.client.list_objects_v2(Bucket=self.buckets["deep"]).get("Contents", ())
        return [each for each in found if each["Key"].endswith(".tar")]

    def firnline(self) -> Lake:
        forget_catalogs()
        return open_lake(str(self.home / "firnline.yaml"), engine="local")

    def sleep(self) -> dict[int, list[bytes]]:
        """Hands all but the newest snapshots to cold, and from there to deep. Returns the rows of what is deep."""
        before = self.rows("lake")
        lake = self.firnline()
        lake.expire("lake.db.t", older_than="2100-01-01T00:00:00Z", retain_last=1, grace="0s", blast_radius=1.0)
        assert self.firnline().expire("cold.db.t", grace="0s", blast_radius=1.0).state == "done"
        deep = {each.snapshot_id for each in self.catalog("deep").load_table("db.t").snapshots()}
        assert len(deep) == 3
        return {each: before[each] for each in deep}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of these tests' own: how long its archives take is said for all that it has."""
    with moto(tmp_path_factory.mktemp("slow")) as running:
        slow_restores(running, WAIT_S)
        yield running


@pytest.fixture
def world(tmp_path: Path, slow: Server, monkeypatch: pytest.MonkeyPatch) -> ThreeBuckets:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("FIRNLINE_CACHE", str(tmp_path / "cache"))
    forget_catalogs()
    return ThreeBuckets(tmp_path, slow)


def test_asked_for_waited_for_and_read_again(world: ThreeBuckets, capsys: pytest.CaptureFixture[str]) -> None:
    slept = world.sleep()
    assert {each["StorageClass"] for each in world.bundles()} == {"DEEP_ARCHIVE"}
    old = min(slept, key=lambda each: len(slept[each]))
    time.sleep(WAIT_S)  # moto counts the first wait from when an object was made
    asked = world.firnline().restore("lake.db.t", str(old), "cold", inquiry=NOW)
    assert isinstance(asked, Awaited)
    assert asked.awake.readable == 0
    assert asked.awake.bundles.files == 1
    assert old not in world.rows("cold")
    words = ["--config", str(world.home / "firnline.yaml"), "--case", "CASE-1", "--by", "A. Person"]
    forget_catalogs()
    assert command(["restore", "lake.db.t", str(old), "--to", "cold", *words]) == 0
    assert f"{old} of deep.db.t is back" in capsys.readouterr().out
    assert world.rows("cold")[old] == slept[old]
    told = [each.event for each in world.firnline().tiers("lake.db.t").restores]
    assert told == ["requested", "requested", "restored"]


@pytest.mark.full
def test_each_snapshot_comes_back_to_live(world: ThreeBuckets) -> None:
    slept = world.sleep()
    for old in slept:
        found = world.firnline().restore("lake.db.t", str(old), inquiry=Inquiry("CASE-2", "A. Person"))
        assert isinstance(found, Restored)
        assert world.rows("lake")[old] == slept[old]


@pytest.mark.full
def test_a_bundle_that_is_gone_or_another_one_stops_the_next_run_and_a_restore(world: ThreeBuckets) -> None:
    slept = world.sleep()
    (bundle,) = world.bundles()
    deep = world.buckets["deep"]
    world.client.delete_object(Bucket=deep, Key=bundle["Key"])
    for old in slept:
        with pytest.raises((ArchiveIncomplete, StoreError)):
            world.firnline().restore("lake.db.t", str(old), inquiry=NOW)
    assert world.firnline().tiers("lake.db.t").restores == ()
    world.client.put_object(Bucket=deep, Key=bundle["Key"], Body=b"x" * bundle["Size"])
    with pytest.raises((ArchiveIncomplete, StoreError)):
        world.firnline().restore("lake.db.t", str(min(slept)), inquiry=NOW)
    assert set(world.rows("lake")).isdisjoint(slept)


@pytest.mark.full
def test_a_file_is_erased_from_a_bundle_that_sleeps(world: ThreeBuckets) -> None:
    slept = world.sleep()
    table = world.catalog("deep").load_table("db.t")
    old = min(slept, key=lambda each: len(slept[each]))
    (entry,) = table.scan(snapshot_id=old).plan_files()
    (gone,) = slept[old]
    (before,) = world.bundles()
    time.sleep(WAIT_S)  # moto counts the first wait from when an object was made

    def erase(asked: Inquiry) -> ErasureReport:
        return world.firnline().erasures.carry_out("lake.db.t", [entry.file.file_path], asked, 0, lambda plan: None)

    first = erase(NOW)
    deep = next(each for each in first.tables if each.tier == "deep")
    assert deep.awaited is not None
    assert [each["Key"] for each in world.bundles()] == [before["Key"]]
    last = erase(Inquiry("CASE-1", "A. Person"))
    assert last.is_done, last.to_json()
    (after,) = world.bundles()
    assert after["Key"] != before["Key"]
    assert after["StorageClass"] == "DEEP_ARCHIVE"
    assert after["Size"] < before["Size"] - _LARGE / 2
    time.sleep(WAIT_S)  # the new bundle is an object that was just made
    for each, rows in slept.items():
        world.firnline().restore("lake.db.t", str(each), inquiry=Inquiry("CASE-2", "A. Person"))
        assert world.rows("lake")[each] == [row for row in rows if row != gone]
