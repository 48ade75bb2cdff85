"""Paimon tables in buckets: a run does there what it does on local files, however it is cut."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from firnline.cli.main import run
from firnline.errors import FirnlineError
from firnline.ops.runs.status import RunStatus
from firnline.testing.dated import Clock
from firnline.testing.faults import CountingFault, Died, Dying, Fault, When
from firnline.testing.folder_process import LEASE, FolderProcess
from harness.paimon.java_table import JavaTable
from harness.paimon.rows import java_rows
from harness.paimon.worlds import Paimon
from harness.servers.fixtures import GetServer, unique
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket

from .small import EVERYTHING_OLD, Copy

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OF_THE_COMMIT = ("/snapshot/", "/tag/", "/commits/", "properties.json")


@dataclass
class InBucket:
    """A copy of a table in a bucket of its own, with a clock of its own."""

    server: Server
    uri: str
    clock: Clock = field(default_factory=Clock)

    @cached_property
    def client(self) -> Any:
        return client(self.server)

    @staticmethod
    def of(made: Path, server: Server) -> InBucket:
        found = InBucket(server, make_bucket(server, unique("paimon")))
        for path, data in Copy(made).picture().items():
            found.client.put_object(Bucket=found.bucket, Key=f"lake/db.db/t{path}", Body=data)
        return found

    @property
    def bucket(self) -> str:
        return self.uri.removeprefix("s3://")

    @property
    def table(self) -> str:
        return f"{self.uri}/lake/db.db/t"

    def process(self, fault: Fault | None = None) -> FolderProcess:
        return FolderProcess(fault, clock=self.clock, settings=self.server.settings)

    def expire(self, fault: Fault | None = None, **options: Any) -> RunStatus:
        asked = {**EVERYTHING_OLD, "grace": "0s", "sole_writer": True, **options}
        carried = self.process(fault).expire(self.table, **asked)
        assert isinstance(carried, RunStatus)
        return carried

    def wait_for_lease(self) -> None:
        self.clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)

    def picture(self) -> dict[str, bytes]:
        """Returns every object by its path, without firnline's own."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        keys = [each["Key"] for page in pages for each in page.get("Contents", ())]
        wanted = [key for key in keys if "/_firnline/" not in key]
        got = {key: self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in wanted}
        return {key.removeprefix("lake/db.db/t"): data for key, data in got.items()}

    def download(self, folder: Path) -> Path:
        for path, data in self.picture().items():
            target = folder / "t" / path.removeprefix("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return folder / "t"


@pytest.fixture(params=["moto", "versitygw"] if FULL else ["versitygw"])
def place(request: pytest.FixtureRequest, server: GetServer, made: Path) -> InBucket:
    return InBucket.of(made, server(request.param))


@pytest.fixture(scope="module")
def expired_locally(made: Path) -> Iterator[dict[str, bytes]]:
    """What the same run leaves of the same table on local files."""
    copy = Copy.of(made, "local")
    copy.expire()
    yield copy.picture()
    copy.end()


@pytest.mark.full
def test_a_run_does_what_it_does_on_local_files(
    both: Paimon, place: InBucket, made: Path, expired_locally: dict[str, bytes], tmp_path: Path
) -> None:
    before = place.picture()
    plan = place.process().plan(place.table, **EVERYTHING_OLD).to_json()
    ended = place.expire(grace="1h", keep={"history": "forever"})
    assert place.picture().keys() < before.keys() | {"/snapshot/EARLIEST"} | _own_tags(place)
    assert place.process().check(place.table).sound
    assert {str(each["snapshot-id"]) for each in place.process().expired_snapshots(place.table)} == set(plan["expire"])
    place.process().undo(str(ended.run.id))
    assert _without_hints(place.picture()) == _without_hints(before)
    assert list(place.process().expired_snapshots(place.table)) == []
    ended = place.expire()
    assert ended.outcomes["deleted"].files == plan["victims"]["files"] > 0
    assert place.picture() == expired_locally
    rows = java_rows(JavaTable(both.java, made / "t"))
    left = java_rows(JavaTable(both.java, place.download(tmp_path)))
    assert left
    assert {root: rows[root] for root in left} == left


def _own_tags(place: InBucket) -> set[str]:
    return {path for path in place.picture() if path.startswith("/tag/tag-firnline-")}


def _without_hints(picture: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in picture.items() if not path.endswith(("EARLIEST", "LATEST"))}


@pytest.mark.full
@pytest.mark.parametrize("when", ["before", "after"] if FULL else ["after"])
def test_a_run_in_a_bucket_is_cut_at_every_write(
    versitygw_server: Server, made: Path, expired_locally: dict[str, bytes], when: When
) -> None:
    counting = CountingFault()
    InBucket.of(made, versitygw_server).expire(counting)
    effects = [each for each in counting.trace if CountingFault([each]).effects]
    chosen = [at for at, (_, key) in enumerate(effects, 1) if any(each in key for each in OF_THE_COMMIT) or at % 9 == 0]
    assert any("/snapshot/snapshot-1" in effects[at - 1][1] for at in chosen)
    for at in chosen if FULL else chosen[::3]:
        place, fault = InBucket.of(made, versitygw_server), Dying(at, when=when)
        with suppress(Died, FirnlineError):
            place.expire(fault)
        assert fault.dead
        place.wait_for_lease()
        assert place.process().check(place.table).sound, effects[at - 1]
        place.process().resume(place.table)
        if place.picture() != expired_locally:  # it died before it was a run at all
            place.expire()
        assert place.picture() == expired_locally, effects[at - 1]


def test_the_command_line_lists_and_plans_them(
    place: InBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": place.uri}
    lines = "".join(f"    {name}: '{value}'\n" for name, value in {**warehouse, **place.server.settings}.items())
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{lines}")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["tables", f"{place.uri}/lake", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tables": [place.table]}
    assert run(["plan", place.table, "--retain-last", "2", "--older-than", "2100-01-01T00:00:00Z", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "paimon"


def test_tables_of_a_local_warehouse_are_listed(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tables = [str(tmp_path / name) for name in ("one.db/t", "two.db/a", "two.db/b")]
    for each in (*tables, str(tmp_path / "elsewhere/c")):
        shutil.copytree(copy.table, each)
    (tmp_path / "two.db" / "no-table").mkdir()
    assert run(["tables", "./", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == tables
    assert run(["tables", "./two.db/", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == tables[1:]
