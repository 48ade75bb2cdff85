"""PyIceberg and Iceberg's own Java commit on the table in between: what it remembers survives them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.formats.iceberg.runtime import PACKAGE
from harness.pointers import CATALOG, NAMESPACE
from harness.servers.jars import for_spark
from harness.world import World
from tests.history.parts import expire, ids, listed, pointer

WRITER = Path(__file__).with_name("spark_between.py")


def append_with_pyiceberg(world: World) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(CATALOG, uri=world.pointers.uri, warehouse=f"file://{world.folder}/warehouse")
    try:
        table = catalog.load_table(f"{NAMESPACE}.{world.writer.name}")
        table.append(pa.table({"x": pa.array([1], pa.int64())}).cast(table.schema().as_arrow()))
    finally:
        catalog.close()


def test_pyiceberg_drops_the_field_and_the_property_carries_the_history_on(world: World) -> None:
    expire(world, grace="0s")
    before = {each["snapshot-id"] for each in listed(world)}
    append_with_pyiceberg(world)
    assert "expired-snapshots-path" not in world.writer.document()
    found = {each["snapshot-id"] for each in world.process().expired_snapshots(world.table)}
    assert found == before == ids(world, "s3", "s4", "s5", "s7")
    expire(world, grace="0s", older_than=world.clock(), retain_last=1)
    assert {each["snapshot-id"] for each in listed(world)} == before | ids(world, "s8", "s9")
    assert world.writer.document()["expired-snapshots-path"] == pointer(world)


@pytest.mark.full
@pytest.mark.spark
def test_java_commits_in_between(tmp_path: Path) -> None:
    command = [sys.executable, str(WRITER), str(tmp_path), for_spark([PACKAGE])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=tmp_path)
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said["first"]) == 2
    assert said["field_after_java"] is None
    assert said["first"] == said["after_java"]
    assert set(said["first"]) < set(said["second"])
    assert len(said["second"]) == 5
    assert said["ledger"] == len(said["second"])
    assert said["java_reads"] == 6
