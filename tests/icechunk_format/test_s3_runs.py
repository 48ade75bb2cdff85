"""Whole runs on repositories in a bucket: planned, committed by the library, purged and searched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr

from firnline.model.times import DAY_MS
from firnline.ops.runs import presence
from firnline.ops.runs.status import RunStatus
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock
from firnline.testing.faults import CountingFault
from firnline.testing.folder_process import FolderProcess
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .growing import SPECS, made
from .test_s3 import in_bucket

MANY = 50


@pytest.mark.parametrize("spec", SPECS)
def test_what_expired_is_gone_and_the_rest_reads_the_same(moto_server: Server, spec: int) -> None:
    bucket = unique("iceruns")
    make_bucket(moto_server, bucket)
    repo, location = made(in_bucket(moto_server, bucket), spec), f"s3://{bucket}/lake/r"
    for number in range(5):
        commit(repo, number)
    before = objects(moto_server, location)
    clock = Clock()
    process = FolderProcess(clock=clock, settings=moto_server.settings)
    asked: dict[str, Any] = {"older_than": "2100-01-01T00:00:00Z", "retain_last": 1, "blast_radius": 1.0}
    plan = process.plan(location, **asked).plan
    finish(process, clock, location, **asked)
    gone = {key: size for key, size in before.items() if key not in objects(moto_server, location)}
    assert (len(gone), sum(gone.values())) == (plan.victims.all.files, plan.victims.all.bytes)
    assert plan.victims.all.files > 8
    again = icechunk.Repository.open(in_bucket(moto_server, bucket))
    rows = zarr.open_group(again.readonly_session("main").store, mode="r")["x"][:]
    assert rows.tolist() == np.full(400, 4).tolist()
    left = again.garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True)
    assert (left.chunks_deleted, left.manifests_deleted) == (0, 0)
    assert process.check(location).sound


@pytest.mark.full
@pytest.mark.parametrize("spec", SPECS)
def test_what_was_reset_away_goes_though_older_ones_stay(moto_server: Server, spec: int) -> None:
    """Version 1 leaves it to a search, which takes nothing that is younger than a session may be."""
    bucket = unique("iceloose")
    make_bucket(moto_server, bucket)
    repo, location = made(in_bucket(moto_server, bucket), spec), f"s3://{bucket}/lake/r"
    for number in range(5):
        commit(repo, number)
    line = [each.id for each in repo.ancestry(branch="main")]
    repo.reset_branch("main", line[2])
    commit(repo, 5)
    before, clock = objects(moto_server, location), Clock(ahead_ms=4 * DAY_MS)
    process = FolderProcess(clock=clock, settings=moto_server.settings)
    asked: dict[str, Any] = {"older_than": "2100-01-01T00:00:00Z", "retain_last": 3, "blast_radius": 1.0}
    plan = process.plan(location, **asked).plan
    assert {each.id for each in plan.expire} == {line[4], *(line[:2] if spec > 1 else [])}
    finish(process, clock, location, **asked)
    gone = {key: size for key, size in before.items() if key not in objects(moto_server, location)}
    assert (len(gone), sum(gone.values())) == (plan.victims.all.files, plan.victims.all.bytes)
    again = icechunk.Repository.open(in_bucket(moto_server, bucket))
    assert [each.id for each in again.ancestry(branch="main")][1:] == [*line[2:4], line[5]]
    assert again.list_branches() == {"main"}
    if spec > 1:
        left = again.garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True)
        assert (left.chunks_deleted, left.manifests_deleted, left.snapshots_deleted) == (0, 0, 0)
    assert process.check(location).sound


def finish(process: FolderProcess, clock: Clock, location: str, **asked: Any) -> None:
    """Expires, and carries the run to its end."""
    ended = process.expire(location, grace="1h", **asked)
    while isinstance(ended, RunStatus) and not ended.run.is_finished:
        clock.advance(2 * 3_600_000)
        (ended,) = process.resume(location)


@pytest.mark.full
def test_many_needed_objects_are_listed_before_a_purge_and_by_a_check(
    moto_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is asked for by itself: a listing names objects in a bucket exactly as the manifests do."""
    monkeypatch.setattr(presence, "FEW_LOOKS", MANY)
    bucket = unique("icelisted")
    make_bucket(moto_server, bucket)
    repo, location = made(in_bucket(moto_server, bucket), SPECS[0]), f"s3://{bucket}/lake/r"
    session = repo.writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    many = group.create_array("many", shape=(100 * MANY,), chunks=(100,), dtype="i8", compressors=None)
    many[:] = np.arange(1, 100 * MANY + 1)
    session.commit("many chunks")
    for number in range(2):
        commit(repo, number)
    clock, asked = Clock(), CountingFault()
    process = FolderProcess(asked, clock=clock, settings=moto_server.settings)
    finish(process, clock, location, older_than="2100-01-01T00:00:00Z", retain_last=1, blast_radius=1.0)
    assert sum("/chunks/" in key for key in objects(moto_server, location)) == MANY + 4
    assert process.check(location).sound
    assert [key for verb, key in asked.trace if verb == "head" and "/chunks/" in key] == []
    short = max(key for key in objects(moto_server, location) if "/chunks/" in key)
    ObjectStores(moto_server.settings).put(short, b"short")
    assert [each.path for each in process.check(location).presence.listed] == [short]
    assert [key for verb, key in asked.trace if verb == "head" and "/chunks/" in key] == [short]


def commit(repo: Any, number: int) -> None:
    session = repo.writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    array = group["x"] if number else group.create_array("x", shape=(400,), chunks=(100,), dtype="i8", compressors=None)
    array[:] = number
    session.commit(f"commit {number}")


def objects(server: Server, location: str) -> dict[str, int]:
    found = ObjectStores(server.settings).list(location)
    return {each.key: each.size for each in found if "/_firnline/" not in each.key and "/overwritten/" not in each.key}
