"""What is wrong around a run: each has an error of its own that says so, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.app.places import now_ms, places_of
from firnline.catalogs.config import CatalogSettings
from firnline.errors import FirnlineError
from firnline.journal.events import RunState
from firnline.lake import Lake
from firnline.policy.parse import Section
from harness.grounds import Ground, sql_ground
from harness.servers import Rule, moto, proxy
from harness.servers.fixtures import Bucket, unique
from harness.servers.moto import enforce, user
from harness.servers.postgres import execute
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket
from harness.world import World

MakeGround = Callable[[str], Ground]
ALL_BUT_DELETE = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
        {"Effect": "Deny", "Action": ["s3:DeleteObject"], "Resource": "*"},
    ],
}


def lake_of(world: World, **changed: str) -> Lake:
    """The lake as the command line opens it, with some of the catalog's settings changed."""
    settings: Mapping[str, str] = {**world.ground.properties, **changed}
    lake = Lake(places_of(Section(), engine="local"))
    vars(lake.places.catalogs)["configured"] = {
        "lake": CatalogSettings("lake", settings["type"], settings["uri"], settings)
    }
    return lake


def refused(world: World, lake: Lake) -> str:
    """Returns what is said when an expiry fails before it changed anything."""
    place, files = world.writer.place(), world.files()
    with pytest.raises(FirnlineError) as caught:
        lake.expire(world.table, grace="0s")
    assert (world.writer.place(), files - world.files()) == (place, set())
    world.check()
    return f"{caught.value} {caught.value.hint}"


def test_wrong_credentials(versitygw_bucket: Bucket, database: Server, tmp_path: Path) -> None:
    s3 = versitygw_bucket.server
    ground = sql_ground(versitygw_bucket.uri, s3.settings, client(s3), database.url)
    world = World.make(tmp_path, ground=ground)
    said = refused(world, lake_of(world, **{"s3.secret-access-key": "wrong"}))
    assert "credential" in said.lower() or "SignatureDoesNotMatch" in said


@pytest.mark.full
def test_no_permission_to_delete_is_found_before_the_commit(database: Server, tmp_path: Path) -> None:
    with moto(tmp_path / "server") as s3:
        ground = sql_ground(make_bucket(s3, "locked-down"), s3.settings, client(s3), database.url)
        world = World.make(tmp_path, ground=ground)
        limited = user(s3, "cannot-delete", ALL_BUT_DELETE)
        place, files = world.writer.place(), world.files()
        enforce(s3)
        with pytest.raises(FirnlineError, match="delete"):
            lake_of(world, **limited.settings).expire(world.table, grace="0s")
        enforce(s3, on=False)
        assert (world.writer.place(), files - world.files()) == (place, set())
        world.check()


@pytest.mark.full
def test_a_bucket_that_is_not_there(make_ground: MakeGround, tmp_path: Path) -> None:
    world = World.make(tmp_path, ground=make_ground("s3+postgresql"))
    place, gone = world.writer.place(), f"s3://{unique('never')}/t/metadata/1.metadata.json"
    assert world.pointers.swap("t", place, gone)
    with pytest.raises(FirnlineError, match=r"bucket"):
        lake_of(world).expire(world.table, grace="0s")
    assert world.pointers.swap("t", gone, place)
    world.check()


@pytest.mark.full
def test_a_token_that_expires_in_the_middle_of_a_run(make_ground: MakeGround, tmp_path: Path) -> None:
    """Deletes stop with the store's own word for it; a new token, and the run goes on where it was."""
    world = World.make(tmp_path, ground=make_ground("s3+postgresql"))
    with proxy(world.ground.properties["s3.endpoint"]) as network:
        lake = lake_of(world, **{"s3.endpoint": network.url})
        lake.expire(world.table, grace="1s")
        network.rules = [Rule("expired")]
        (run,) = world.runs()
        with pytest.raises(FirnlineError, match=r"(?i)expired"):
            lake_of(world, **{"s3.endpoint": network.url}).purge(run)
        world.check()
        network.rules = []
        later = lake_of(world, **{"s3.endpoint": network.url})
        later = Lake(replace(later.places, clock=lambda: now_ms() + 2_000))  # the end of grace has come
        assert later.purge(run).run.state is RunState.DONE
    world.check()


@pytest.mark.full
def test_a_database_that_takes_no_writes(make_ground: MakeGround, tmp_path: Path) -> None:
    """A role that may only read: said at the commit, which changed nothing; another role, and the run goes on."""
    world = World.make(tmp_path, ground=make_ground("s3+postgresql"))
    uri, reader = world.ground.properties["uri"], unique("reader").replace("-", "_")
    for statement in (f"CREATE ROLE {reader} LOGIN", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}"):
        execute(Server("postgres", uri, 0), statement)
    said = refused(world, lake_of(world, uri=uri.replace("//firnline@", f"//{reader}@")))
    assert "permission denied" in said or "read" in said
    lake_of(world).resume(world.table)
    assert len(world.rows()) < len(world.snapshots)
    world.check()


@pytest.mark.parametrize("version", ["V0", "V1"])
@pytest.mark.full
def test_both_versions_of_the_shared_schema(version: str, make_ground: MakeGround, tmp_path: Path) -> None:
    ground = make_ground("s3+postgresql")
    world = World.make(tmp_path, ground=ground)
    if version == "V0":
        execute(Server("postgres", ground.properties["uri"], 0), "ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    lake_of(world).expire(world.table, grace="0s")
    world.check()
    assert len(world.rows()) < len(world.snapshots)


@pytest.mark.full
def test_a_table_that_is_dropped_during_a_run(kind: str, make_ground: MakeGround, tmp_path: Path) -> None:
    """Its files stay: what was decided for a table that is gone is decided for nobody."""
    world = World.make(tmp_path, ground=make_ground(kind))
    world.process().expire(world.table, grace="1h")
    (run,) = world.runs()
    files, place = world.files(), world.writer.place()
    world.pointers.drop("t")
    world.clock.advance(2 * 3_600_000)
    with pytest.raises(FirnlineError, match=r"t\b.*(not|gone|no)|no table"):
        world.process().advance(run)
    assert files <= world.files()
    world.pointers.register("t", place)
    world.check()
