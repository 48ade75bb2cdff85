"""Five runs on one table: each file is put once, and what the tier has only grows. The long test uses both engines."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from harness.servers.fixtures import GetServer, unique
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket
from tests.tiers.shores import NAMESPACE, Shore

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tiers-spark")]
FULL = bool(os.environ.get("FIRNLINE_FULL"))
ENGINES = ("local", "spark", "local", "spark", "local") if FULL else ("local",) * 3


@pytest.fixture
def moto(server: GetServer) -> Server:
    return server("moto")


@pytest.fixture
def shore(tmp_path: Path, moto: Server, monkeypatch: pytest.MonkeyPatch) -> Shore:
    """A live bucket, and a cold one that keeps every version of an object: so many puts it had."""
    live, cold = make_bucket(moto, unique("live")), make_bucket(moto, unique("cold"), versioned=True)
    made = Shore(unique("growing").replace("-", "_"), tmp_path, live, cold, moto.settings)
    made.configure(monkeypatch)
    catalog = SqlCatalog(made.lake_name, **made.settings_of(made.lake_name))
    catalog.create_namespace(NAMESPACE)
    schema = pa.schema([("x", pa.int64())])
    catalog.create_table(f"{NAMESPACE}.t", schema, properties={"commit.manifest-merge.enabled": "true"})
    return made


@pytest.mark.full
def test_each_file_is_put_once_and_what_is_there_stays(shore: Shore, moto: Server) -> None:
    before: dict[str, Any] = {"snapshots": [], "snapshot-log": [], "refs": {}}
    rows: dict[int, list[int]] = {}
    for number, engine in enumerate(ENGINES):
        rows |= _worked(shore, number)
        run = shore.expire(engine)
        assert run["state"] == "done"
        puts = _puts(shore, moto)
        assert set(puts.values()) == {1}, puts.most_common(3)
        now = _document(shore)
        _assert_grown(before, now)
        assert {each["snapshot-id"] for each in now["snapshots"]} == set(rows) - {_head(shore)}
        before = now
    cold = shore.pyiceberg(shore.cold_table())
    for each in cold.snapshots():
        read = cold.scan(snapshot_id=each.snapshot_id).to_arrow().column("x").to_pylist()
        assert sorted(read) == rows[each.snapshot_id]


def _worked(shore: Shore, number: int) -> dict[int, list[int]]:
    """Commits some snapshots and a tag that is over at once. Returns the rows of each snapshot that the table has."""
    table = shore.pyiceberg(shore.live_table())
    table.append(_rows(10 * number, 10 * number + 1))
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_tag(head.snapshot_id, f"tag-{number}", max_ref_age_ms=1).commit()
    table.append(_rows(10 * number + 2))
    table.delete(f"x == {10 * number}")
    found = shore.pyiceberg(shore.live_table())
    return {
        each.snapshot_id: sorted(found.scan(snapshot_id=each.snapshot_id).to_arrow().column("x").to_pylist())
        for each in found.snapshots()
    }


def _rows(*numbers: int) -> pa.Table:
    return pa.table({"x": pa.array(numbers, pa.int64())})


def _head(shore: Shore) -> int:
    head = shore.pyiceberg(shore.live_table()).current_snapshot()
    assert head is not None
    return int(head.snapshot_id)


def _puts(shore: Shore, moto: Server) -> Counter[str]:
    """Returns how often each object of the tier was written."""
    pages = client(moto).get_paginator("list_object_versions").paginate(Bucket=shore.cold.removeprefix("s3://"))
    found = Counter(each["Key"] for page in pages for each in page.get("Versions", ()))
    assert any(key.endswith(".parquet") for key in found)
    return found


def _document(shore: Shore) -> dict[str, Any]:
    table = shore.pyiceberg(shore.cold_table())
    with table.io.new_input(table.metadata_location).open() as stream:
        document: dict[str, Any] = json.loads(stream.read())
    return document


def _assert_grown(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert now["snapshot-log"][: len(before["snapshot-log"])] == before["snapshot-log"]
    assert [each for each in now["snapshots"] if each in before["snapshots"]] == before["snapshots"]
    assert len(now["snapshots"]) > len(before["snapshots"])
    names = {name: ref for name, ref in before["refs"].items() if name != "main"}
    assert names.items() <= now["refs"].items()
    assert len(now["refs"]) == max(2, len(before["refs"]) + 1)
