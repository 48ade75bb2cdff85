"""A table of a live REST server remembers what expired: the server takes the pointer, and other writers leave it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog

from firnline.app.places import now_ms, places_of
from firnline.history.names import INDEX, PATH
from firnline.lake import Lake
from firnline.ops.runs.status import RunStatus
from firnline.policy.parse import Section
from firnline.sql.asking import RelationRequest, open_relation
from firnline.sql.relations import TimeBounds
from harness.servers import Server

from .lakes import five_snapshots, rows

pytestmark = pytest.mark.xdist_group("rest")


@pytest.fixture
def name(own_rest: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table with five snapshots, as firnline calls it; four of them will expire."""
    return f"lake.{five_snapshots(own_rest, tmp_path, monkeypatch)}"


def expire(lake: Lake, name: str) -> None:
    asked = {"older_than": now_ms() + 1, "retain_last": 1, "grace": "0s", "blast_radius": 1.0}
    carried = lake.expire(name, keep={"history": "forever"}, **asked)
    assert isinstance(carried, RunStatus)
    assert carried.state == "done", carried


def all_snapshots(name: str) -> dict[int, bool]:
    """Returns whether each snapshot expired, as `firnline sql` reads it."""
    relation, _ = open_relation(RelationRequest(name, "all_snapshots"))
    pieces = relation.pieces(TimeBounds())
    batches = [each for piece in pieces for each in relation.read(piece, ["snapshot_id", "expired"])]
    return {row["snapshot_id"]: row["expired"] for each in batches for row in each.to_pylist()}


def test_what_expired_on_a_rest_server_is_remembered_whoever_commits_next(own_rest: Server, name: str) -> None:
    theirs = PyIcebergCatalog("lake", **own_rest.settings)
    table = theirs.load_table(name.removeprefix("lake."))
    ids = [each.snapshot_id for each in table.snapshots()]
    lake = Lake(places_of(Section(), engine="local"))
    expire(lake, name)
    table = table.refresh()
    assert [each.snapshot_id for each in table.snapshots()] == ids[-1:]
    listed = json.loads(Path(table.properties[PATH].removeprefix("file://")).read_bytes())
    assert [each["snapshot-id"] for each in listed] == ids[:-1]
    assert INDEX not in table.properties
    table.append(rows(5))
    ids.append(table.refresh().snapshots()[-1].snapshot_id)
    assert all_snapshots(name) == {**dict.fromkeys(ids[:4], True), **dict.fromkeys(ids[4:], False)}
    expire(lake, name)
    assert [int(each["snapshot-id"]) for each in lake.expired_snapshots(name)] == ids[:-1]
    timeline, trouble = lake.history(name)
    assert trouble is None
    assert sum(each.commits for each in timeline.by_day.values()) == len(ids)


@pytest.mark.full
def test_a_quiet_table_of_a_rest_server_forgets_what_is_older_than_an_instant(own_rest: Server, name: str) -> None:
    lake = Lake(places_of(Section(), engine="local"))
    expire(lake, name)
    listed = list(lake.expired_snapshots(name))
    bound = listed[1]["timestamp-ms"]
    quiet = lake.expire(name, keep={"history": bound}, retain_last=100, grace="0s")
    assert isinstance(quiet, RunStatus)
    assert (quiet.state, quiet.expired) == ("done", ())
    assert [each["snapshot-id"] for each in lake.expired_snapshots(name)] == [
        each["snapshot-id"] for each in listed if each["timestamp-ms"] > bound
    ]
    again = lake.plan(name, keep={"history": bound}, retain_last=100)
    assert again.plan.stages == ()
